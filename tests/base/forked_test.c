/* SPDX-License-Identifier: BSD-3-Clause */
/* forked_test.c - a process knows that it is a copy, and the copy of a copy too; the parent stays what it was. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/forked.h"
#include "base_test.h"

/* The generation that a child sees, and its own child, as the exit status's two halves of 4 bits. */
static int generations_below(void)
{
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        pid_t inner = fork();
        if (inner == 0)
            _exit((int)fork_generation());
        if (waitpid(inner, &status, 0) != inner || !WIFEXITED(status))
            _exit(255);
        _exit((int)fork_generation() << 4 | WEXITSTATUS(status));
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(each_generation_has_its_number_and_the_parent_keeps_its_own)
{
    uint32_t own = fork_generation();
    for (int i = 0; i < 3; i++) { /* siblings are of one generation */
        int below = generations_below();
        ck_assert_int_eq(below >> 4, (int)own + 1);
        ck_assert_int_eq(below & 15, (int)own + 2);
        ck_assert_uint_eq(fork_generation(), own);
    }
}
END_TEST

BASE_TEST_MAIN("forked", each_generation_has_its_number_and_the_parent_keeps_its_own)
