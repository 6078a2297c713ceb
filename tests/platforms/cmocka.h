// The few words of cmocka that tests of base and coupling use, for C libraries for which there is
// no cmocka (musl).
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct CMUnitTest {
    const char* name;
    void (*test)(void** state);
    int (*set_up)(void** state);
    int (*tear_down)(void** state);
};

#define cmocka_unit_test(f)                                                                        \
    {                                                                                              \
        .name = #f, .test = f                                                                      \
    }
#define cmocka_unit_test_setup_teardown(f, up, down)                                               \
    {                                                                                              \
        .name = #f, .test = f, .set_up = up, .tear_down = down                                     \
    }
#define cmocka_run_group_tests(tests, up, down)                                                    \
    run_tests(tests, sizeof(tests) / sizeof *(tests), up, down)

static jmp_buf test_failed;

__attribute__((unused)) static _Noreturn void fail_msg(const char* format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vprintf(format, list);
    va_end(list);
    (void)printf("\n");
    longjmp(test_failed, 1);
}

#define print_message (void)printf
#define print_error (void)printf
#define fail() fail_msg("%s:%d: failed", __FILE__, __LINE__)
#define skip() longjmp(test_failed, 2)
#define assert_true(c) ((c) ? (void)0 : fail_msg("%s:%d: %s", __FILE__, __LINE__, #c))
#define assert_int_equal(a, b)                                                                     \
    ((long long)(a) == (long long)(b)                                                              \
         ? (void)0                                                                                 \
         : fail_msg("%s:%d: %s is not %s", __FILE__, __LINE__, #a, #b))

static int run_tests(const struct CMUnitTest* tests, size_t count, int (*up)(void**),
                     int (*down)(void**))
{
    void* shared = NULL;
    volatile int failures = 0;
    if (up && up(&shared) != 0) { return 1; }
    for (volatile size_t i = 0; i < count; i++) {
        void* state = shared;
        if (tests[i].set_up && tests[i].set_up(&state) != 0) { failures++; }
        const int end = setjmp(test_failed);
        if (end == 0) { tests[i].test(&state); }
        if (end == 1) {
            (void)printf("FAILED %s\n", tests[i].name);
            failures++;
        }
        if (tests[i].tear_down && tests[i].tear_down(&state) != 0) { failures++; }
    }
    if (down && down(&shared) != 0) { failures++; }
    (void)printf("%zu tests, %d failed\n", count, failures);
    return failures;
}
