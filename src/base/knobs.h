/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * knobs.h - one table of everything that an environment variable can change. Read once, at first use; values don't
 * change afterwards (tests may call knobs_reload). A value that does not parse is an error text from knobs_check() and
 * the default stays in force. Unknown QUIRE_* variables get one warning that suggests the nearest name.
 *
 * Columns: id, variable, type, default, choices (for KNOB_CHOICE: "a|b|c") or NULL, fact, help.
 * `fact`: the value decides plans or layouts, so all ranks must agree; it is hashed at init (see comm_facts).
 */
#ifndef QUIRE_BASE_KNOBS_H
#define QUIRE_BASE_KNOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quire.h"

/* clang-format off */
#define KNOB_LIST(X)                                                                                                                          \
    X(LOG,            "QUIRE_LOG",            KNOB_CHOICE, "warn",   "none|error|warn|info|debug|trace", 0, "how much to print")                \
    X(LOG_FILE,       "QUIRE_LOG_FILE",       KNOB_STRING, "",       NULL, 0, "print to this file (%h host, %p pid) instead of stderr")         \
    X(ROOT,           "QUIRE_ROOT",           KNOB_STRING, "",       NULL, 0, "meeting place: host:port, [v6]:port or file:PATH")              \
    X(INTERFACE,      "QUIRE_INTERFACE",      KNOB_STRING, "",       NULL, 0, "use only these interfaces' addresses: a list, ^ excludes")       \
    X(TRANSPORT,      "QUIRE_TRANSPORT",      KNOB_CHOICE, "auto",   "auto|shm|tcp", 1, "force a transport between ranks")                      \
    X(TIMEOUT,        "QUIRE_TIMEOUT",        KNOB_TIME,   "600s",   NULL, 0, "operations, finalize and destroy: longest wait, 0 none")         \
    X(INIT_TIMEOUT,   "QUIRE_INIT_TIMEOUT",   KNOB_TIME,   "120s",   NULL, 0, "init: longest wait for all ranks, 0 none")                      \
    X(ALGORITHM,      "QUIRE_ALGORITHM",      KNOB_CHOICE, "auto",   "auto|one_shot|two_shot|ring|binomial|dissemination", 1, "force an algorithm where it fits") \
    X(DETERMINISTIC,  "QUIRE_DETERMINISTIC",  KNOB_BOOL,   "0",      NULL, 1, "canonical order of addition everywhere")                       \
    X(LANE_DEPTH,     "QUIRE_LANE_DEPTH",     KNOB_INT,    "8",      NULL, 1, "slots in a lane, 2 to 64")                                     \
    X(SLOT_BYTES,     "QUIRE_SLOT_BYTES",     KNOB_SIZE,   "64K",    NULL, 1, "bytes in a slot, 4K to 1M")                                    \
    X(ONE_SHOT_MAX,   "QUIRE_ONE_SHOT_MAX",   KNOB_SIZE,   "auto",   NULL, 1, "largest all_reduce in bytes that goes one-shot")               \
    X(SPIN,           "QUIRE_SPIN",           KNOB_INT,    "-1",     NULL, 0, "polls before a waiting thread yields; -1 by cores and ranks")   \
    X(SLEEP_AFTER,    "QUIRE_SLEEP_AFTER",    KNOB_TIME,   "20ms",   NULL, 0, "idle time before a waiting thread sleeps")                     \
    X(CHECK_PLANS,    "QUIRE_CHECK_PLANS",    KNOB_BOOL,   "0",      NULL, 0, "prove each plan before its first use (slow)")                  \
    X(CPU_ISA,        "QUIRE_CPU_ISA",        KNOB_CHOICE, "auto",   "auto|generic|avx2", 0, "kernels to use; results are the same bits")        \
    X(FAULT,          "QUIRE_FAULT",          KNOB_STRING, "",       NULL, 0, "inject faults, for tests: see transport/wrap_fault.h")          \
    X(JOB_RANK,       "QUIRE_RANK",           KNOB_STRING, "",       NULL, 0, "set by quire-run: this process's rank")                       \
    X(JOB_SIZE,       "QUIRE_SIZE",           KNOB_STRING, "",       NULL, 0, "set by quire-run: number of ranks")                           \
    X(JOB_LOCAL_RANK, "QUIRE_LOCAL_RANK",     KNOB_STRING, "",       NULL, 0, "set by quire-run: rank among this host's")                     \
    X(JOB_LOCAL_SIZE, "QUIRE_LOCAL_SIZE",     KNOB_STRING, "",       NULL, 0, "set by quire-run: ranks on this host")                        \
    X(JOB_ID,         "QUIRE_JOB",            KNOB_STRING, "",       NULL, 0, "set by quire-run: the job's id")
/* clang-format on */

enum knob_type { KNOB_INT, KNOB_SIZE, KNOB_TIME, KNOB_BOOL, KNOB_STRING, KNOB_CHOICE };

#define KNOB_ENUM(id, variable, type, def, choices, fact, help) KNOB_##id,
enum knob_id { KNOB_LIST(KNOB_ENUM) KNOB_COUNT_ };
#undef KNOB_ENUM

struct knob_info {
    const char *variable;
    enum knob_type type;
    const char *def;
    const char *choices; /* "a|b|c" or NULL */
    bool fact;
    const char *help;
};

const struct knob_info *knob_info(enum knob_id id);
/* Typed reads; no lock after first use. SIZE: bytes ("auto" reads as SIZE_MAX). TIME: nanoseconds. INT/BOOL: value. */
int64_t knob_int(enum knob_id id);
size_t knob_size(enum knob_id id);
uint64_t knob_time_ns(enum knob_id id);
bool knob_bool(enum knob_id id);
/* The text in force ("" when unset and no default); for CHOICE one of the choices. Valid until knobs_reload. */
const char *knob_text(enum knob_id id);
bool knob_is_set(enum knob_id id);
/* OK, or INVALID_ARGUMENT with a sentence that names every variable whose value does not parse. */
quire_status_t knobs_check(void);
/* FNV-1a over name=value of every `fact` knob, for agreement at init. */
uint64_t knobs_fact_hash(void);
/* For tests: forget and read the environment again. Not thread-safe. */
void knobs_reload(void);
/* Parses one value as the given type without touching the table (fuzz target, tests). */
quire_status_t knob_parse(enum knob_id id, const char *text, int64_t *value);

#endif
