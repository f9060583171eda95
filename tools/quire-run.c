/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quire-run.c - starts N ranks of a program on this host and looks after them: binds, tags output, forwards signals,
 * says which rank failed first and how, ends the rest, and returns the first failure's status.
 *
 * One loop over poll: a signalfd (children, forwarded signals) and, with --tag, two pipes per rank. No handlers run, so
 * nothing here is limited to what a handler may do. Ranks die with the launcher (PR_SET_PDEATHSIG).
 *
 * Each rank leads a process group of its own: a signal reaches what it started too, nothing of it is left when ranks
 * are ended, and Ctrl-C at a terminal comes once, through here. The exception is rank 0 when the standard input is a
 * terminal: only the launcher's group may read that, so it stays there and has the terminal's signals already.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "quire.h"

enum {
    MAX_RANKS = 4096,
    MAX_NODES = 64,
    LINE_BYTES = 4096,        /* at first; grows */
    LINE_MAX_BYTES = 1 << 20, /* a longer line is cut here */
    KILL_AFTER_MS = 2000,     /* between TERM and KILL */
    LOOK_AGAIN_MS = 20,       /* while only children of ranks are left */
    EXIT_TIMEOUT = 124,
    EXIT_USAGE = 2,
    EXIT_CANNOT = 126,
    EXIT_NOT_FOUND = 127
};

enum binding { BIND_NONE, BIND_CORE, BIND_NUMA };
enum on_failure { FAIL_WAIT, FAIL_KILL, FAIL_IGNORE };

struct stream {
    int fd; /* our end of the pipe; -1 when closed */
    int to; /* 1 or 2 */
    size_t used, room;
    char *line; /* what has come and is not yet a whole line */
};

struct rank {
    pid_t pid;   /* 0 once ended */
    pid_t group; /* 0: the launcher's, or known to be empty */
    struct stream out[2];
};

struct run {
    int size;
    enum binding bind;
    enum on_failure on_failure;
    bool tag;
    long wait_ms, timeout_ms;
    char **program;
    struct rank *ranks;
    cpu_set_t *places; /* where ranks are bound, in turn; NULL: nowhere */
    int place_count;
    int alive;
    int first_failed; /* -1 */
    int status;       /* to return */
    bool asked_to_end, ending;
    bool terminal; /* rank 0 reads it, in the launcher's group */
    int signal_fd;
    sigset_t before;
    struct rlimit files;
    long kill_at, term_at, timeout_at; /* milliseconds of the clock; 0 never */
    char job[33];
};

static const char usage[] =
    "usage: quire-run -n RANKS [options] [--] PROGRAM [ARGUMENTS]\n"
    "  -n, --np N                  how many ranks\n"
    "  --bind core|numa|none       bind each rank to a core, or to a memory node's cores (default none)\n"
    "  --tag                       put [rank] before each line of output, keeping lines whole\n"
    "  --on-failure wait:5s|kill|ignore\n"
    "                              when a rank fails: let the others run so long, then end them (default wait:5s);\n"
    "                              end them at once; or let them be\n"
    "  --timeout T                 end everything after T (30s, 5m)\n"
    "  -x NAME=VALUE               set an environment variable for the ranks\n"
    "  --help, --version\n"
    "Each rank gets QUIRE_RANK, QUIRE_SIZE, QUIRE_LOCAL_RANK, QUIRE_LOCAL_SIZE and QUIRE_JOB. The status is that of\n"
    "the rank that failed first (128 + signal when it was killed), 0 when none did.\n";

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "quire-run: %s\n", text);
    fflush(stderr);
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static int read_number(const char *format, int cpu)
{
    char path[128];
    int value = -1;
    snprintf(path, sizeof(path), format, cpu);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return -1;
    if (fscanf(f, "%d", &value) != 1)
        value = -1;
    fclose(f);
    return value;
}

/* One place a cpu: first one thread of each core, then the others. */
static void find_cores(struct run *run, const cpu_set_t *allowed)
{
    struct {
        int cpu, core, package, turn;
    } cpus[CPU_SETSIZE];
    int n = 0, last = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, allowed))
            continue;
        cpus[n].cpu = cpu;
        cpus[n].core = read_number("/sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
        cpus[n].package = read_number("/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
        cpus[n].turn = 0; /* how many of this core's threads came before */
        for (int i = 0; i < n && cpus[n].core >= 0; i++)
            cpus[n].turn += cpus[i].core == cpus[n].core && cpus[i].package == cpus[n].package;
        last = cpus[n].turn > last ? cpus[n].turn : last;
        n++;
    }
    for (int turn = 0; turn <= last; turn++)
        for (int i = 0; i < n; i++)
            if (cpus[i].turn == turn) {
                CPU_ZERO(&run->places[run->place_count]);
                CPU_SET(cpus[i].cpu, &run->places[run->place_count++]);
            }
}

/* "0-3,8" into a set. */
static void parse_cpulist(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    while (*text != '\0') {
        char *end;
        long lo = strtol(text, &end, 10), hi = lo;
        if (end == text || lo < 0)
            return;
        if (*end == '-')
            hi = strtol(end + 1, &end, 10);
        for (long c = lo; c <= hi && c < CPU_SETSIZE; c++)
            CPU_SET((int)c, set);
        text = *end == ',' ? end + 1 : end + strlen(end);
    }
}

/* One place a memory node that has cpus we may use. */
static void find_nodes(struct run *run, const cpu_set_t *allowed)
{
    for (int node = 0; node < MAX_NODES; node++) {
        char path[128], text[4096];
        cpu_set_t *place = &run->places[run->place_count];
        snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
        FILE *f = fopen(path, "re");
        if (f == NULL)
            continue;
        if (fgets(text, sizeof(text), f) != NULL) {
            parse_cpulist(text, place);
            CPU_AND(place, place, allowed);
            run->place_count += CPU_COUNT(place) > 0;
        }
        fclose(f);
    }
}

/* Ranks that can't be bound run unbound: the placement is an optimisation. */
static void find_places(struct run *run)
{
    cpu_set_t allowed;
    if (run->bind == BIND_NONE)
        return;
    run->places = calloc(CPU_SETSIZE, sizeof(*run->places));
    if (run->places == NULL || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        say("ranks stay unbound: can't tell which cpus are allowed: %s", strerror(errno));
        return;
    }
    if (run->bind == BIND_CORE)
        find_cores(run, &allowed);
    else
        find_nodes(run, &allowed);
    if (run->place_count == 0)
        say("ranks stay unbound: no memory nodes in /sys/devices/system/node");
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

/* Why execvp failed: it looks through PATH and tells less than one wants to know. */
static void explain_exec(const char *program, int error)
{
    const char *path = getenv("PATH");
    char full[4096];
    if (strchr(program, '/') != NULL) {
        if (error == ENOENT && access(program, F_OK) == 0)
            fprintf(stderr, "quire-run: can't run %s: it is there, but its interpreter is not\n", program);
        else
            fprintf(stderr, "quire-run: can't run %s: %s\n", program, strerror(error));
        return;
    }
    for (const char *entry = path; entry != NULL; entry = strchr(entry, ':') ? strchr(entry, ':') + 1 : NULL) {
        snprintf(full, sizeof(full), "%.*s/%s", (int)strcspn(entry, ":"), entry, program);
        if (access(full, F_OK) == 0 && (access(full, X_OK) != 0 || error == ENOENT)) {
            fprintf(stderr, "quire-run: can't run %s: %s: %s\n", program, full,
                    error == ENOENT ? "it is there, but its interpreter is not" : strerror(error));
            return;
        }
    }
    fprintf(stderr, "quire-run: can't run %s: %s%s%s\n", program, strerror(error), error == ENOENT ? " in PATH=" : "",
            error != ENOENT ? ""
            : path != NULL  ? path
                            : "");
}

/* In the child: never returns. */
static void become_rank(const struct run *run, int rank, pid_t parent, int out, int err)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_CANNOT); /* the launcher has died meanwhile */
    if (rank != 0 || !run->terminal)
        setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &run->before, NULL);
    if (run->tag)
        setrlimit(RLIMIT_NOFILE, &run->files);
    if (rank != 0) {
        int null = open("/dev/null", O_RDONLY);
        if (null < 0 || dup2(null, 0) < 0)
            close(0);
        if (null > 0)
            close(null);
    }
    if (run->tag && (dup2(out, 1) < 0 || dup2(err, 2) < 0))
        _exit(EXIT_CANNOT);
    if (run->place_count > 0 && sched_setaffinity(0, sizeof(cpu_set_t), &run->places[rank % run->place_count]) != 0)
        fprintf(stderr, "quire-run: rank %d stays unbound: %s\n", rank, strerror(errno));
    set_number("QUIRE_RANK", rank);
    set_number("QUIRE_SIZE", run->size);
    set_number("QUIRE_LOCAL_RANK", rank);
    set_number("QUIRE_LOCAL_SIZE", run->size);
    setenv("QUIRE_JOB", run->job, 1);
    execvp(run->program[0], run->program);
    int error = errno;
    if (rank == 0)
        explain_exec(run->program[0], error);
    _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT);
}

static bool start_rank(struct run *run, int r)
{
    struct rank *rank = &run->ranks[r];
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    for (int i = 0; i < 2 && run->tag; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) != 0) {
            say("no pipe for rank %d: %s", r, strerror(errno));
            return false;
        }
        fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
        rank->out[i].fd = pipes[i][0];
        rank->out[i].to = i + 1;
    }
    pid_t parent = getpid();
    rank->pid = fork();
    if (rank->pid == 0)
        become_rank(run, r, parent, pipes[0][1], pipes[1][1]);
    for (int i = 0; i < 2 && run->tag; i++)
        close(pipes[i][1]);
    if (rank->pid < 0) {
        say("can't start rank %d: %s", r, strerror(errno));
        rank->pid = 0;
        return false;
    }
    /* Here and in the child: whoever comes first, the group is there before a signal is sent to it. */
    if (r != 0 || !run->terminal) {
        setpgid(rank->pid, rank->pid);
        rank->group = rank->pid;
    }
    run->alive++;
    return true;
}

/*
 * To every rank that lives, and what it started; but a user's signal means something to the program only, and would
 * kill its helpers. `from_terminal`: who is in our group has it already.
 */
static void signal_ranks(const struct run *run, int signal, bool from_terminal)
{
    bool whole = signal != SIGUSR1 && signal != SIGUSR2;
    for (int r = 0; r < run->size; r++) {
        const struct rank *rank = &run->ranks[r];
        if (rank->pid > 0 && (rank->group != 0 || !from_terminal))
            kill(rank->group != 0 && whole ? -rank->group : rank->pid, signal);
    }
}

/* True while a rank that has ended has children left; signals them when `signal` isn't 0. */
static bool orphans(struct run *run, int signal)
{
    bool any = false;
    for (int r = 0; r < run->size; r++) {
        struct rank *rank = &run->ranks[r];
        if (rank->pid == 0 && rank->group != 0 && kill(-rank->group, signal) != 0)
            rank->group = 0;
        any = any || (rank->pid == 0 && rank->group != 0);
    }
    return any;
}

/* ---- watching ---------------------------------------------------------------------------------------------------- */

/* Writes whole lines of a rank, each with its tag; a last one without newline gets one at the end. */
static void pass_on(int rank, struct stream *s, bool end)
{
    size_t at = 0;
    FILE *to = s->to == 1 ? stdout : stderr;
    while (at < s->used) {
        const char *newline = memchr(s->line + at, '\n', s->used - at);
        size_t n = newline != NULL ? (size_t)(newline - s->line) - at : s->used - at;
        if (newline == NULL && !end && n < LINE_MAX_BYTES)
            break;
        fprintf(to, "[%d] ", rank);
        fwrite(s->line + at, 1, n, to);
        fputc('\n', to);
        at += n + (newline != NULL);
    }
    if (at == 0)
        return;
    memmove(s->line, s->line + at, s->used - at);
    s->used -= at;
    fflush(to);
}

/* Reads what there is. */
static void read_stream(int rank, struct stream *s)
{
    while (s->fd >= 0) {
        if (s->used == s->room) {
            size_t room = s->room == 0 ? LINE_BYTES : s->room * 2;
            char *line = room <= LINE_MAX_BYTES ? realloc(s->line, room) : NULL;
            if (line == NULL) { /* cut the line rather than lose it */
                pass_on(rank, s, true);
            } else {
                s->line = line;
                s->room = room;
            }
        }
        ssize_t n = s->room == 0 ? 0 : read(s->fd, s->line + s->used, s->room - s->used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            pass_on(rank, s, true);
            close(s->fd);
            s->fd = -1;
            return;
        }
        s->used += (size_t)n;
        pass_on(rank, s, false);
    }
}

static void first_failure(struct run *run, int rank, pid_t pid, int status)
{
    bool killed = WIFSIGNALED(status);
    if (run->first_failed >= 0 || run->status != 0)
        return; /* what comes after the first, or after we ended them, is no news */
    run->first_failed = rank;
    run->status = killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (killed)
        say("rank %d (pid %d) was killed by signal %d (SIG%s, %s)%s", rank, (int)pid, WTERMSIG(status),
            sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?", strsignal(WTERMSIG(status)),
            WCOREDUMP(status) ? ", core dumped" : "");
    else
        say("rank %d (pid %d) exited with status %d", rank, (int)pid, WEXITSTATUS(status));
    if (run->alive > 0 && run->on_failure == FAIL_WAIT)
        run->term_at = now_ms() + run->wait_ms;
    else if (run->on_failure == FAIL_KILL)
        run->term_at = now_ms(); /* what the ranks have started, too, though they may all be gone */
}

/*
 * Several ranks may have ended since the last look, and the kernel doesn't say in which order. One that was killed is
 * the likelier cause of the others' exits, so it counts as the first.
 */
static void reap(struct run *run)
{
    int status, worst = -1, worst_status = 0;
    pid_t worst_pid = 0;
    bool any = false;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0; any = true)
        for (int r = 0; r < run->size; r++) {
            if (run->ranks[r].pid != pid)
                continue;
            run->ranks[r].pid = 0;
            run->alive--;
            for (int i = 0; i < 2; i++)
                read_stream(r, &run->ranks[r].out[i]);
            bool bad = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
            if (bad && (worst < 0 || (WIFSIGNALED(status) && !WIFSIGNALED(worst_status)))) {
                worst = r;
                worst_pid = pid;
                worst_status = status;
            }
        }
    if (worst >= 0)
        first_failure(run, worst, worst_pid, worst_status);
    /* Forget groups as they become empty: their numbers may soon belong to someone else. */
    if (any)
        orphans(run, 0);
}

/* The ranks get the usual grace, then are ended; asked a second time, they are ended now. */
static void asked_to_end(struct run *run, int signal)
{
    if (run->first_failed < 0 && run->status == 0)
        run->status = 128 + signal;
    if (run->asked_to_end && !run->ending)
        run->term_at = now_ms();
    else if (run->term_at == 0 && !run->ending)
        run->term_at = now_ms() + run->wait_ms;
    run->asked_to_end = true;
}

static void take_signals(struct run *run)
{
    struct signalfd_siginfo info;
    while (read(run->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        int signal = (int)info.ssi_signo;
        if (signal == SIGCHLD)
            continue;
        signal_ranks(run, signal, info.ssi_code == SI_KERNEL);
        if (signal == SIGTSTP) {
            /* Stop as a program without a launcher would, and go on together. */
            raise(SIGSTOP);
            signal_ranks(run, SIGCONT, false);
        } else if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
            asked_to_end(run, signal);
        }
    }
    reap(run);
}

static void keep_time(struct run *run)
{
    long now = now_ms();
    if (run->timeout_at != 0 && now >= run->timeout_at) {
        say("still running after %ld ms (--timeout): ending %d ranks", run->timeout_ms, run->alive);
        run->timeout_at = 0;
        if (run->status == 0)
            run->status = EXIT_TIMEOUT;
        run->term_at = now;
    }
    if (run->term_at != 0 && now >= run->term_at) {
        if (run->alive > 0 && run->first_failed >= 0)
            say("ending %d rank%s still running after rank %d's failure", run->alive, run->alive == 1 ? "" : "s",
                run->first_failed);
        signal_ranks(run, SIGTERM, false);
        orphans(run, SIGTERM);
        run->ending = true;
        run->term_at = 0;
        run->kill_at = now + KILL_AFTER_MS;
    }
    if (run->kill_at != 0 && now >= run->kill_at) {
        signal_ranks(run, SIGKILL, false);
        orphans(run, SIGKILL);
        run->kill_at = now + KILL_AFTER_MS;
    }
}

static int next_timeout(const struct run *run)
{
    long at = 0, times[3] = {run->term_at, run->kill_at, run->timeout_at};
    for (int i = 0; i < 3; i++)
        if (times[i] != 0 && (at == 0 || times[i] < at))
            at = times[i];
    if (at == 0)
        return -1;
    long left = at - now_ms();
    if (run->alive == 0 && left > LOOK_AGAIN_MS)
        left = LOOK_AGAIN_MS;
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* Until all ranks have ended, and, when they were made to, what they had started. */
static void watch(struct run *run)
{
    struct pollfd *polls = calloc((size_t)run->size * 2 + 1, sizeof(*polls));
    if (polls == NULL) {
        say("no memory");
        signal_ranks(run, SIGKILL, false);
        return;
    }
    while (run->alive > 0 || (run->ending && orphans(run, 0))) {
        int n = 0;
        polls[n++] = (struct pollfd){run->signal_fd, POLLIN, 0};
        for (int r = 0; r < run->size && run->tag; r++)
            for (int i = 0; i < 2; i++)
                polls[n++] = (struct pollfd){run->ranks[r].out[i].fd, POLLIN, 0};
        if (poll(polls, (nfds_t)n, next_timeout(run)) < 0 && errno != EINTR)
            break;
        for (int r = 0; r < run->size && run->tag; r++)
            for (int i = 0; i < 2; i++)
                if (polls[1 + r * 2 + i].revents != 0)
                    read_stream(r, &run->ranks[r].out[i]);
        take_signals(run);
        keep_time(run);
    }
    /* A child of a rank may hold a pipe for ever; what the rank itself wrote has all come. */
    for (int r = 0; r < run->size; r++)
        for (int i = 0; i < 2; i++) {
            pass_on(r, &run->ranks[r].out[i], true);
            free(run->ranks[r].out[i].line);
        }
    free(polls);
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static bool parse_ms(const char *text, long *ms)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    double unit = strcmp(end, "ms") == 0                  ? 1
                  : strcmp(end, "s") == 0 || *end == '\0' ? 1000
                  : strcmp(end, "m") == 0                 ? 60000
                                                          : -1;
    if (end == text || errno != 0 || unit < 0 || !(value >= 0) || value * unit > 1e12)
        return false;
    *ms = (long)(value * unit);
    return true;
}

static int wrong(const char *format, const char *what)
{
    fprintf(stderr, "quire-run: ");
    fprintf(stderr, format, what);
    fprintf(stderr, "\n%s", usage);
    return EXIT_USAGE;
}

/* One option with its value; 0, or the status to exit with. */
static int take_option(struct run *run, const char *name, const char *value)
{
    if (strcmp(name, "-n") == 0 || strcmp(name, "--np") == 0) {
        char *end;
        long n = strtol(value, &end, 10);
        if (*end != '\0' || n < 1 || n > MAX_RANKS)
            return wrong("-n %s: expected a number from 1 to 4096", value);
        run->size = (int)n;
    } else if (strcmp(name, "--bind") == 0) {
        if (strcmp(value, "core") == 0)
            run->bind = BIND_CORE;
        else if (strcmp(value, "numa") == 0)
            run->bind = BIND_NUMA;
        else if (strcmp(value, "none") == 0)
            run->bind = BIND_NONE;
        else
            return wrong("--bind %s: expected core, numa or none", value);
    } else if (strcmp(name, "--on-failure") == 0) {
        if (strcmp(value, "kill") == 0)
            run->on_failure = FAIL_KILL;
        else if (strcmp(value, "ignore") == 0)
            run->on_failure = FAIL_IGNORE;
        else if (strncmp(value, "wait:", 5) == 0 && parse_ms(value + 5, &run->wait_ms))
            run->on_failure = FAIL_WAIT;
        else
            return wrong("--on-failure %s: expected wait:5s, kill or ignore", value);
    } else if (strcmp(name, "--timeout") == 0) {
        if (!parse_ms(value, &run->timeout_ms))
            return wrong("--timeout %s: expected a time such as 30s", value);
    } else {
        const char *equals = strchr(value, '=');
        char variable[256];
        if (equals == NULL || equals == value || (size_t)(equals - value) >= sizeof(variable))
            return wrong("-x %s: expected NAME=VALUE", value);
        snprintf(variable, sizeof(variable), "%.*s", (int)(equals - value), value);
        setenv(variable, equals + 1, 1);
    }
    return 0;
}

/* The value of an option: behind "=" of a long one, or the next argument. NULL: there is none. */
static const char *option_value(char **argv, int i, char *name, size_t bytes)
{
    const char *equals = strncmp(argv[i], "--", 2) == 0 ? strchr(argv[i], '=') : NULL;
    size_t length = equals != NULL ? (size_t)(equals - argv[i]) : strlen(argv[i]);
    snprintf(name, bytes, "%.*s", (int)(length < bytes ? length : bytes - 1), argv[i]);
    return equals != NULL ? equals + 1 : argv[i + 1];
}

/* Returns -1 to go on, or the status to exit with. */
static int parse(struct run *run, int argc, char **argv)
{
    static const char *const valued[] = {"-n", "--np", "--bind", "--on-failure", "--timeout", "-x"};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        char name[64];
        bool known = false;
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            printf("%s", usage);
            return 0;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("quire-run %d.%d.%d\n", QUIRE_MAJOR, QUIRE_MINOR, QUIRE_PATCH);
            return 0;
        }
        if (strcmp(argv[i], "--tag") == 0) {
            run->tag = true;
            continue;
        }
        const char *value = option_value(argv, i, name, sizeof(name));
        for (size_t v = 0; v < sizeof(valued) / sizeof(valued[0]); v++)
            known = known || strcmp(name, valued[v]) == 0;
        if (!known)
            return wrong("unknown option %s", argv[i]);
        if (value == NULL)
            return wrong("%s wants a value", name);
        int status = take_option(run, name, value);
        if (status != 0)
            return status;
        i += value == argv[i + 1];
    }
    if (run->size == 0)
        return wrong("how many ranks? give -n %s", "N");
    if (i == argc)
        return wrong("%s", "no program given");
    run->program = argv + i;
    return -1;
}

static bool prepare(struct run *run)
{
    unsigned char random[16];
    sigset_t watched;
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        say("no random bytes for the job's id: %s", strerror(errno));
        return false;
    }
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(run->job + 2 * i, 3, "%02x", random[i]);
    if (getrlimit(RLIMIT_NOFILE, &run->files) == 0 && run->tag) {
        struct rlimit more = {run->files.rlim_max, run->files.rlim_max}; /* two pipes a rank */
        setrlimit(RLIMIT_NOFILE, &more);
    }
    /* Someone who ignores SIGCHLD may have started us; then no child would ever be reported. */
    signal(SIGCHLD, SIG_DFL);
    /* What a rank leaves behind comes to us and is reaped here, so that an empty group is seen to be empty. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    run->terminal = isatty(0) == 1;
    find_places(run);
    sigemptyset(&watched);
    static const int forwarded[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP};
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
        sigaddset(&watched, forwarded[i]);
    sigprocmask(SIG_BLOCK, &watched, &run->before);
    run->signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    run->ranks = calloc((size_t)run->size, sizeof(*run->ranks));
    if (run->signal_fd < 0 || run->ranks == NULL) {
        say("can't start: %s", strerror(errno));
        return false;
    }
    for (int r = 0; r < run->size; r++)
        run->ranks[r].out[0].fd = run->ranks[r].out[1].fd = -1;
    return true;
}

int main(int argc, char **argv)
{
    struct run run = {.first_failed = -1, .wait_ms = 5000};
    int status = parse(&run, argc, argv);
    if (status >= 0)
        return status;
    if (!prepare(&run))
        return 1;
    if (run.timeout_ms != 0)
        run.timeout_at = now_ms() + run.timeout_ms;
    fflush(NULL);
    for (int r = 0; r < run.size; r++)
        if (!start_rank(&run, r)) {
            run.status = 1;
            run.term_at = now_ms();
            break;
        }
    watch(&run);
    free(run.places);
    free(run.ranks);
    return run.status;
}
