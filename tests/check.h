// Our own assertions over cmocka: they print both numbers when they fail.
#pragma once
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants the four above before it
#include <cmocka.h>

#include "cardan/base.h"

// Sweeps have all their cases in the release, and on arm64 under emulation. Under a sanitizer, and
// on armhf, each case takes many times as long, and a tenth of them goes through the same code.
#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHECK_TENTH
#endif
#endif
#if defined TEST_EMULATED && UINTPTR_MAX == UINT32_MAX
#define CHECK_TENTH
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || defined CHECK_TENTH
enum { CHECK_SHARE = 10 };
#else
enum { CHECK_SHARE = 1 };
#endif

// Every test gets a state, and few need it.
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define check(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) { fail_msg("%s:%d: %s does not hold", __FILE__, __LINE__, #cond); }           \
    } while (0)

#define check_status(expr, want)                                                                   \
    do {                                                                                           \
        const crd_status check_st = (expr);                                                        \
        if (check_st != (want)) {                                                                  \
            fail_msg("%s:%d: %s gave %s, expected %s", __FILE__, __LINE__, #expr,                  \
                     crd_status_name(check_st), crd_status_name(want));                            \
        }                                                                                          \
    } while (0)

#define check_ok(expr) check_status(expr, CRD_OK)

#define check_near(a, b, tolerance)                                                                \
    do {                                                                                           \
        const double check_a = (a), check_b = (b), check_t = (tolerance);                          \
        if (!(fabs(check_a - check_b) <= check_t)) {                                               \
            fail_msg("%s:%d: %s = %.17g, expected %.17g within %g, off by %g", __FILE__, __LINE__, \
                     #a, check_a, check_b, check_t, fabs(check_a - check_b));                      \
        }                                                                                          \
    } while (0)

#define check_int(a, b)                                                                            \
    do {                                                                                           \
        const long long check_a = (long long)(a), check_b = (long long)(b);                        \
        if (check_a != check_b) {                                                                  \
            fail_msg("%s:%d: %s = %lld, expected %lld", __FILE__, __LINE__, #a, check_a, check_b); \
        }                                                                                          \
    } while (0)

#define check_text(a, b)                                                                           \
    do {                                                                                           \
        const char *check_a = (a), *check_b = (b);                                                 \
        if (strcmp(check_a, check_b) != 0) {                                                       \
            fail_msg("%s:%d: %s = \"%s\", expected \"%s\"", __FILE__, __LINE__, #a, check_a,       \
                     check_b);                                                                     \
        }                                                                                          \
    } while (0)

/// The message names what it should.
#define check_contains(text, part)                                                                 \
    do {                                                                                           \
        const char *check_a = (text), *check_b = (part);                                           \
        if (!strstr(check_a, check_b)) {                                                           \
            fail_msg("%s:%d: \"%s\" does not contain \"%s\"", __FILE__, __LINE__, check_a,         \
                     check_b);                                                                     \
        }                                                                                          \
    } while (0)

/// An allocator that counts, and fails from the `fail_at`-th allocation on (-1: never). With `once`
/// it fails there and works again: who does not look at every result is found out.
typedef struct check_allocator {
    int64_t allocations, live, fail_at;
    bool once;
} check_allocator;

static inline void* check_realloc(void* user, void* p, size_t size)
{
    check_allocator* a = user;
    if (size == 0) {
        if (p) { a->live--; }
        free(p);
        return NULL;
    }
    if (a->fail_at >= 0 && a->allocations >= a->fail_at) {
        if (a->once) { a->fail_at = -1; }
        return NULL;
    }
    a->allocations++;
    void* q = realloc(p, size);
    if (q && !p) { a->live++; }
    return q;
}

static inline crd_context* check_context(check_allocator* a)
{
    *a = (check_allocator){.fail_at = -1};
    crd_context_options opt = crd_context_defaults();
    opt.realloc = check_realloc;
    opt.realloc_user = a;
    return crd_context_create(&opt);
}

/// For tests whose state is a context.
static inline int check_set_up(void** state)
{
    *state = crd_context_create(NULL);
    return *state ? 0 : -1;
}

static inline int check_tear_down(void** state)
{
    crd_context_destroy(*state);
    return 0;
}

/// The same with an allocator that counts: a test that leaves something behind fails.
static check_allocator check_memory;

static inline int check_count_up(void** state)
{
    *state = check_context(&check_memory);
    return *state ? 0 : -1;
}

static inline int check_count_down(void** state)
{
    crd_context_destroy(*state);
    return check_memory.live == 0 ? 0 : -1;
}

/// And with the lines of its log, one behind the other.
static char check_log[8192];

static inline void check_log_line(void* user, crd_level level, const char* text)
{
    const size_t n = strlen(check_log);
    snprintf(check_log + n, sizeof check_log - n, "%s\n", text);
}

static inline int check_log_up(void** state)
{
    check_memory = (check_allocator){.fail_at = -1};
    check_log[0] = 0;
    crd_context_options opt = crd_context_defaults();
    opt.realloc = check_realloc;
    opt.realloc_user = &check_memory;
    opt.log = check_log_line;
    *state = crd_context_create(&opt);
    return *state ? 0 : -1;
}
