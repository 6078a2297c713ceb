#include "check.h"
#include "shared/base.h"

#include <stdio.h>

static void arena_hands_out_aligned_zeroed_memory_and_frees_all_at_once(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    for (size_t n = 1; n < 3000; n += 7) {
        unsigned char* p = crdi_arena_new(&arena, n, 1);
        check(p && (uintptr_t)p % _Alignof(max_align_t) == 0);
        for (size_t i = 0; i < n; i++) {
            check_int(p[i], 0);
            p[i] = 0xff;
        }
        check_text(crdi_arena_text(&arena, "abcdef", n % 7),
                   crdi_arena_format(&arena, "%.*s", (int)(n % 7), "abcdef"));
    }
    char* large = crdi_arena_new(&arena, 5, 1 << 20);
    check(large != NULL);
    crd_arena_clear(&arena);
    check_int(a.live, 1); // the context itself
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void arena_that_failed_once_hands_out_nothing_until_it_is_cleared(void** state)
{
    check_allocator a = {.fail_at = -1};
    crd_context* ctx = check_context(&a);
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    check(crdi_arena_new(&arena, 10, 8) != NULL);
    check_ok(crdi_arena_status(&arena));
    a.fail_at = a.allocations; // a large object needs memory of its own
    check(crdi_arena_new(&arena, 1000, 1000) == NULL);
    a.fail_at = -1;
    check(crdi_arena_new(&arena, 1, 1) == NULL); // though there were room
    check(crdi_arena_text(&arena, "", 0) == NULL);
    check_int(crdi_arena_status(&arena), CRD_E_MEMORY);
    crd_arena_clear(&arena);
    check(crdi_arena_new(&arena, 1, 1) != NULL);
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void sizes_that_overflow_are_refused(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    check(crdi_new_array(ctx, SIZE_MAX / 4, 8) == NULL);
    check_contains(crd_error_text(ctx), "out of memory");
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    check(crdi_arena_new(&arena, SIZE_MAX / 4, 8) == NULL);
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
}

static void failures_keep_their_newest_sentence_and_can_be_placed(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    check_text(crd_error_text(ctx), "");
    check_status(crdi_fail(ctx, CRD_E_RANGE, "step = %g", -1.0), CRD_E_RANGE);
    check_status(crdi_fail(ctx, CRD_E_FORMAT, "again: %s", crd_error_text(ctx)), CRD_E_FORMAT);
    check_text(crd_error_text(ctx), "again: step = -1");
    check_status(crdi_fail_in(ctx, CRD_E_FORMAT, "x.yaml:%d", 3), CRD_E_FORMAT);
    check_text(crd_error_text(ctx), "x.yaml:3: again: step = -1");
    char longer[5000];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    (void)crdi_fail(ctx, CRD_E_FORMAT, "%s", longer);
    (void)crdi_fail_in(ctx, CRD_E_FORMAT, "%s", longer);
    check(strlen(crd_error_text(ctx)) < 4000);
    crd_context_destroy(ctx);
}

static void every_status_has_a_name_a_text_and_an_exit_code(void** state)
{
    for (int st = 0; st >= CRD_E_LIMIT; st--) {
        check(strncmp(crd_status_name((crd_status)st), "CRD_", 4) == 0);
        check(strlen(crd_status_text((crd_status)st)) > 3);
        const int code = crd_status_exit_code((crd_status)st);
        check(code >= 0 && code <= 3 && (code == 0) == (st == 0));
    }
    check_text(crd_status_name(CRD_E_LIMIT), "CRD_E_LIMIT");
    check_int(crd_status_exit_code(CRD_E_LIMIT), 3);
}

static void keep_line(void* user, crd_level level, const char* text)
{
    snprintf(user, 100, "%d %s", (int)level, text);
}

static void log_lines_below_the_level_reach_the_sink_others_do_not(void** state)
{
    char line[100] = "";
    crd_context_options opt = crd_context_defaults();
    opt.log = keep_line;
    opt.log_user = line;
    opt.level = CRD_LOG_WARNING;
    crd_context* ctx = crd_context_create(&opt);
    crdi_log(ctx, CRD_LOG_INFO, "no");
    check_text(line, "");
    crdi_log(ctx, CRD_LOG_WARNING, "n = %d", 3);
    check_text(line, "1 n = 3");
    crd_context* child = crdi_context_child(ctx);
    crdi_log(child, CRD_LOG_ERROR, "child");
    check_text(line, "0 child");
    crd_context_destroy(child);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_hands_out_aligned_zeroed_memory_and_frees_all_at_once),
        cmocka_unit_test(arena_that_failed_once_hands_out_nothing_until_it_is_cleared),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(failures_keep_their_newest_sentence_and_can_be_placed),
        cmocka_unit_test(every_status_has_a_name_a_text_and_an_exit_code),
        cmocka_unit_test(log_lines_below_the_level_reach_the_sink_others_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
