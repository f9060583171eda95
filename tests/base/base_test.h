/* SPDX-License-Identifier: BSD-3-Clause */
/* base_test.h - the frame of the small unit suites: one suite, one case, a list of tests. */
#ifndef QUIRE_TESTS_BASE_TEST_H
#define QUIRE_TESTS_BASE_TEST_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline int base_test_main(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#define BASE_TEST_MAIN(name, ...)                                                                                      \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *const tests[] = {__VA_ARGS__};                                                                    \
        return base_test_main(name, tests, sizeof(tests) / sizeof(tests[0]));                                          \
    }

#endif
