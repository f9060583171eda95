/* SPDX-License-Identifier: BSD-3-Clause */
/* executor_internal.h - what the executor's own files share: steps.c runs one step, run.c strands, wait.c waiting. */
#ifndef QUIRE_EXECUTOR_EXECUTOR_INTERNAL_H
#define QUIRE_EXECUTOR_EXECUTOR_INTERNAL_H

#include "executor.h"

enum step_result { STEP_DONE, STEP_BLOCKED, STEP_ERROR };

/* Runs iteration c->repeat of step s in pass c->pass. */
enum step_result step_run(struct exec_run *run, const struct plan_step *s, struct exec_cursor *c);
/* The peers of iteration i of a step. */
int step_from(const struct exec_run *run, const struct plan_step *s, uint32_t i);
int step_to(const struct exec_run *run, const struct plan_step *s, uint32_t i);
/* Adds the ranks a blocked step waits for. */
void step_missing(struct exec_run *run, const struct plan_step *s, const struct exec_cursor *c, uint64_t *mask);
/* Announces (add = 1) or takes back (-1) on the step's lanes that this rank is going to sleep. */
void step_announce(struct exec_run *run, const struct plan_step *s, const struct exec_cursor *c, int add);

/* Looks at stop word, deadline and hooks of one idle run. */
void exec_idle_check(struct exec_run *run, uint64_t now);

#endif
