/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quire-run.c - starts N ranks of a program on this host and looks after them: binds, tags output, forwards signals,
 * says which rank failed first and how, ends the rest, and returns the first failure's status.
 *
 * One loop over poll: a signalfd (children, forwarded signals) and, with --tag, two pipes per rank. No handlers run, so
 * nothing here is limited to what a handler may do. Ranks die with the launcher (PR_SET_PDEATHSIG).
 */
#include <errno.h>
#include <fcntl.h>
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
    LINE_BYTES = 8192,
    KILL_AFTER_MS = 2000, /* between TERM and KILL */
    EXIT_USAGE = 2,
    EXIT_CANNOT = 126,
    EXIT_NOT_FOUND = 127
};

enum binding { BIND_NONE, BIND_CORE, BIND_NUMA };
enum on_failure { FAIL_WAIT, FAIL_KILL, FAIL_IGNORE };

struct stream {
    int fd; /* our end of the pipe; -1 when closed */
    int to; /* 1 or 2 */
    size_t used;
    char line[LINE_BYTES];
};

struct rank {
    pid_t pid; /* 0 once ended */
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
    int alive;
    int first_failed; /* -1 */
    int status;       /* to return */
    int signal_fd;
    sigset_t before;
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

/* True when `cpu` is the first of its core's threads that we may use. */
static bool first_of_core(const cpu_set_t *allowed, int cpu)
{
    int core = read_number("/sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
    int package = read_number("/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    for (int other = 0; other < cpu && core >= 0; other++)
        if (CPU_ISSET(other, allowed) && read_number("/sys/devices/system/cpu/cpu%d/topology/core_id", other) == core &&
            read_number("/sys/devices/system/cpu/cpu%d/topology/physical_package_id", other) == package)
            return false;
    return true;
}

/* The cpu for a rank: one core each while there are some, then their second threads, then round again. */
static bool core_set(int rank, cpu_set_t *set)
{
    cpu_set_t allowed;
    int order[CPU_SETSIZE], n = 0;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &allowed) && first_of_core(&allowed, cpu) == (pass == 0))
                order[n++] = cpu;
    if (n == 0)
        return false;
    CPU_ZERO(set);
    CPU_SET(order[rank % n], set);
    return true;
}

/* "0-3,8" into a set. */
static void parse_cpulist(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    while (*text != '\0') {
        char *end;
        long lo = strtol(text, &end, 10), hi = lo;
        if (end == text)
            return;
        if (*end == '-')
            hi = strtol(end + 1, &end, 10);
        for (long c = lo; c <= hi && c < CPU_SETSIZE; c++)
            CPU_SET((int)c, set);
        text = *end == ',' ? end + 1 : end + strlen(end);
    }
}

static bool numa_set(int rank, cpu_set_t *set)
{
    cpu_set_t allowed, nodes[64];
    int n = 0;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return false;
    for (int node = 0; node < 64 && n < 64; node++) {
        char path[128], text[1024];
        snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
        FILE *f = fopen(path, "re");
        if (f == NULL)
            continue;
        if (fgets(text, sizeof(text), f) != NULL) {
            parse_cpulist(text, &nodes[n]);
            CPU_AND(&nodes[n], &nodes[n], &allowed);
            n += CPU_COUNT(&nodes[n]) > 0;
        }
        fclose(f);
    }
    if (n == 0)
        return false;
    *set = nodes[rank % n];
    return true;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

/* In the child: never returns. */
static void become_rank(const struct run *run, int rank, pid_t parent, int out, int err)
{
    cpu_set_t set;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_CANNOT); /* the launcher has died meanwhile */
    sigprocmask(SIG_SETMASK, &run->before, NULL);
    if (rank != 0) {
        int null = open("/dev/null", O_RDONLY);
        if (null >= 0) {
            dup2(null, 0);
            close(null);
        }
    }
    if (run->tag && (dup2(out, 1) < 0 || dup2(err, 2) < 0))
        _exit(EXIT_CANNOT);
    if (run->bind != BIND_NONE && (run->bind == BIND_CORE ? core_set(rank, &set) : numa_set(rank, &set)) &&
        sched_setaffinity(0, sizeof(set), &set) != 0)
        fprintf(stderr, "quire-run: rank %d stays unbound: %s\n", rank, strerror(errno));
    set_number("QUIRE_RANK", rank);
    set_number("QUIRE_SIZE", run->size);
    set_number("QUIRE_LOCAL_RANK", rank);
    set_number("QUIRE_LOCAL_SIZE", run->size);
    setenv("QUIRE_JOB", run->job, 1);
    execvp(run->program[0], run->program);
    int error = errno;
    if (rank == 0)
        fprintf(stderr, "quire-run: can't run %s: %s%s\n", run->program[0], strerror(error),
                error == ENOENT && strchr(run->program[0], '/') == NULL ? " in PATH" : "");
    _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT);
}

static bool start_rank(struct run *run, int r)
{
    struct rank *rank = &run->ranks[r];
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    rank->out[0].fd = rank->out[1].fd = -1;
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
    run->alive++;
    return true;
}

static void signal_all(const struct run *run, int signal)
{
    for (int r = 0; r < run->size; r++)
        if (run->ranks[r].pid > 0)
            kill(run->ranks[r].pid, signal);
}

/* ---- watching ---------------------------------------------------------------------------------------------------- */

/* Writes whole lines of a rank, each with its tag; a last one without newline gets one at the end. */
static void pass_on(int rank, struct stream *s, bool end)
{
    size_t at = 0;
    char tag[16];
    FILE *to = s->to == 1 ? stdout : stderr;
    snprintf(tag, sizeof(tag), "[%d] ", rank);
    for (;;) {
        char *newline = memchr(s->line + at, '\n', s->used - at);
        size_t n = newline != NULL ? (size_t)(newline - s->line) - at : s->used - at;
        if (newline == NULL && !(end && n > 0) && n < sizeof(s->line))
            break;
        fprintf(to, "%s%.*s\n", tag, (int)n, s->line + at);
        at += n + (newline != NULL);
        if (at >= s->used)
            break;
    }
    memmove(s->line, s->line + at, s->used - at);
    s->used -= at;
    fflush(to);
}

static void read_stream(int rank, struct stream *s)
{
    while (s->fd >= 0) {
        ssize_t n = read(s->fd, s->line + s->used, sizeof(s->line) - s->used);
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
        say("rank %d (pid %d) was killed by signal %d (%s)%s", rank, (int)pid, WTERMSIG(status),
            strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "");
    else
        say("rank %d (pid %d) exited with status %d", rank, (int)pid, WEXITSTATUS(status));
    if (run->alive > 0 && run->on_failure == FAIL_WAIT)
        run->term_at = now_ms() + run->wait_ms;
    else if (run->alive > 0 && run->on_failure == FAIL_KILL)
        run->term_at = now_ms();
}

/*
 * Several ranks may have ended since the last look, and the kernel doesn't say in which order. One that was killed is
 * the likelier cause of the others' exits, so it counts as the first.
 */
static void reap(struct run *run)
{
    int status, worst = -1, worst_status = 0;
    pid_t worst_pid = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
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
}

static void take_signals(struct run *run)
{
    struct signalfd_siginfo info;
    while (read(run->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        signal_all(run, (int)info.ssi_signo);
        if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP) {
            /* Asked to end: the ranks get the usual grace, then are ended. */
            if (run->first_failed < 0 && run->status == 0)
                run->status = 128 + (int)info.ssi_signo;
            if (run->term_at == 0)
                run->term_at = now_ms() + run->wait_ms;
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
            run->status = 124;
        run->term_at = now;
    }
    if (run->term_at != 0 && now >= run->term_at) {
        if (run->alive > 0 && run->first_failed >= 0)
            say("ending %d rank%s still running after rank %d's failure", run->alive, run->alive == 1 ? "" : "s",
                run->first_failed);
        signal_all(run, SIGTERM);
        run->term_at = 0;
        run->kill_at = now + KILL_AFTER_MS;
    }
    if (run->kill_at != 0 && now >= run->kill_at) {
        signal_all(run, SIGKILL);
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
    return left < 0 ? 0 : (int)left;
}

static void watch(struct run *run)
{
    struct pollfd *polls = calloc((size_t)run->size * 2 + 1, sizeof(*polls));
    if (polls == NULL) {
        say("no memory");
        signal_all(run, SIGKILL);
        return;
    }
    while (run->alive > 0) {
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

/* Returns -1 to go on, or the status to exit with. */
static int parse(struct run *run, int argc, char **argv)
{
    static const char *const valued[] = {"-n", "--np", "--bind", "--on-failure", "--timeout", "-x"};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *name = argv[i];
        bool known = false;
        if (strcmp(name, "--") == 0) {
            i++;
            break;
        }
        if (strcmp(name, "--help") == 0) {
            printf("%s", usage);
            return 0;
        }
        if (strcmp(name, "--version") == 0) {
            printf("quire-run %d.%d.%d\n", QUIRE_MAJOR, QUIRE_MINOR, QUIRE_PATCH);
            return 0;
        }
        if (strcmp(name, "--tag") == 0) {
            run->tag = true;
            continue;
        }
        for (size_t v = 0; v < sizeof(valued) / sizeof(valued[0]); v++)
            known = known || strcmp(name, valued[v]) == 0;
        if (!known)
            return wrong("unknown option %s", name);
        if (i + 1 == argc)
            return wrong("%s wants a value", name);
        int status = take_option(run, name, argv[++i]);
        if (status != 0)
            return status;
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
    struct rlimit files;
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        say("no random bytes for the job's id: %s", strerror(errno));
        return false;
    }
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(run->job + 2 * i, 3, "%02x", random[i]);
    if (run->tag && getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    sigemptyset(&watched);
    static const int forwarded[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
        sigaddset(&watched, forwarded[i]);
    sigprocmask(SIG_BLOCK, &watched, &run->before);
    run->signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    run->ranks = calloc((size_t)run->size, sizeof(*run->ranks));
    if (run->signal_fd < 0 || run->ranks == NULL) {
        say("can't start: %s", strerror(errno));
        return false;
    }
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
            signal_all(&run, SIGKILL);
            run.status = 1;
            break;
        }
    watch(&run);
    free(run.ranks);
    return run.status;
}
