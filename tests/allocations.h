// What allocates is tried again and again: with its first allocation failing, its second, ... until
// it succeeds, and all of it once more with an allocator that works again afterwards.
#pragma once
#include "check.h"

/// All is freed when it returns.
typedef crd_status check_attempt(crd_context* ctx, const void* user);

static inline void check_allocations(check_attempt* attempt, const void* user)
{
    for (int once = 0; once < 2; once++) {
        crd_status st = CRD_E_MEMORY;
        for (int fail_at = 0; st != CRD_OK; fail_at++) {
            check(fail_at < 20000);
            check_allocator a;
            crd_context* ctx = check_context(&a);
            const int64_t before = a.live;
            a.allocations = 0;
            a.fail_at = fail_at;
            a.once = once;
            st = attempt(ctx, user);
            if (st != CRD_OK && st != CRD_E_MEMORY) {
                fail_msg("allocation %d: %s, %s", fail_at, crd_status_name(st),
                         crd_error_text(ctx));
            }
            check_int(a.live, before);
            crd_context_destroy(ctx);
        }
    }
}
