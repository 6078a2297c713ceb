// The account of a run on the clock as JSON: bounded, and whole or refused.
#include "cardan/unit.h"
#include "check.h"
#include "json_tree.h"
#include "shared/pace.h"

#include <math.h>
#include <stdlib.h>

// As much of everything as there can be.
static crd_pace_report* crowded(void)
{
    crd_pace_report* p = calloc(1, sizeof *p);
    check(p != NULL);
    *p = (crd_pace_report){.on = true,
                           .factor = 1.0 / 3,
                           .period = 1e-3 / 3,
                           .cycles = INT64_MAX,
                           .overruns = INT64_MAX,
                           .burst = INT64_MAX,
                           .burst_time = -1.0 / 3e200,
                           .skipped = INT64_MAX,
                           .moved_ns = INT64_MIN,
                           .paused_ns = INT64_MIN,
                           .drift_ns = INT64_MIN,
                           .minor_faults = INT64_MAX,
                           .major_faults = INT64_MAX,
                           .voluntary = INT64_MAX,
                           .involuntary = INT64_MAX,
                           .clock_steps = INT64_MAX,
                           .clock_step_ns = INT64_MIN,
                           .fifo = true,
                           .priority = 99,
                           .pinned = true,
                           .cpu = 4095,
                           .kept_count = CRD_PACE_KEPT,
                           .note_count = CRD_PACE_NOTES};
    p->lateness = (crd_histogram){.count = INT64_MAX, .sum = INT64_MAX, .max = INT64_MAX - 1};
    for (int i = 0; i < CRD_HISTOGRAM_BUCKETS; i++) {
        p->lateness.buckets[i] = INT64_MAX / CRD_HISTOGRAM_BUCKETS;
    }
    p->busy = p->lateness;
    for (int i = 0; i < CRD_PACE_KEPT; i++) {
        p->kept[i] = (crd_overrun_info){.cycle = INT64_MAX,
                                        .time = -1.0 / 3e-200,
                                        .late_ns = INT64_MAX - 1,
                                        .busy_ns = INT64_MAX - 2,
                                        .unit = 1};
    }
    p->worst = p->kept[0];
    for (int i = 0; i < CRD_PACE_NOTES; i++) {
        memset(p->notes[i], 1, CRD_PACE_NOTE_BYTES - 1); // six bytes each
    }
    return p;
}

static void the_text_is_never_longer_than_its_bound(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_pace_report* p = crowded();
    char name[101];
    memset(name, 1, 100);
    name[100] = 0;
    const char* const names[] = {"a", name};
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_json_writer w;
    crdi_json_writer_init(&w, &t, CRDI_JSON_ROWS);
    crdi_pace_put_json(&w, NULL, p, names, 2);
    const size_t bound = crdi_pace_json_size(100);
    check(t.length > bound / 4);
    if (t.length >= bound) { fail_msg("%zu bytes, the bound is %zu", t.length, bound); }
    const crdi_json* j = json_tree(t.data, t.length);
    check_int(crdi_json_count(crdi_json_get_list(j, "overruns")), CRD_PACE_KEPT);
    check_int(crdi_json_count(crdi_json_get_list(crdi_json_get_object(j, "busy"), "histogram")),
              CRD_HISTOGRAM_BUCKETS);
    crd_text_clear(&t);
    free(p);
    crd_context_destroy(ctx);
    (void)state;
}

static void an_index_beyond_the_units_is_nobody(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_pace_report* p = crowded();
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_json_writer w;
    crdi_json_writer_init(&w, &t, CRDI_JSON_ROWS);
    crdi_pace_put_json(&w, NULL, p, NULL, 0);
    const crdi_json* worst = crdi_json_get_object(json_tree(t.data, t.length), "worst");
    check(crdi_json_member(worst, "unit")->kind == CRDI_JSON_NULL);
    crd_text_clear(&t);
    free(p);
    crd_context_destroy(ctx);
    (void)state;
}

static void a_quantile_is_claimed_only_of_enough(void** state)
{
    (void)state;
    static const struct {
        double q;
        int least;
    } rows[] = {{0.5, 2}, {0.9, 10}, {0.99, 100}, {0.999, 1000}, {0.9999, 10000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crd_histogram h = {0};
        for (int k = 0; k < rows[i].least - 1; k++) {
            crd_histogram_add(&h, 1000);
        }
        check(isnan(crdi_histogram_claim(&h, rows[i].q)));
        crd_histogram_add(&h, 1000);
        check_near(crdi_histogram_claim(&h, rows[i].q), 1e-6, 1e-15);
    }
}

static void no_memory_is_told_whenever_it_happens(void** state)
{
    (void)state;
    crd_pace_report* p = crowded();
    const crd_link_stats link = {.age = NAN, .state_name = "RUNNING"};
    bool done = false;
    for (int fail_at = 0; !done; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        a.fail_at = a.allocations + fail_at;
        crd_text t;
        crd_text_init(&t, ctx);
        crdi_json_writer w;
        crdi_json_writer_init(&w, &t, CRDI_JSON_ROWS);
        crdi_json_begin_list(&w, NULL);
        crdi_pace_put_json(&w, NULL, p, NULL, 0);
        crdi_link_put_json(&w, NULL, &link);
        crdi_json_end(&w);
        done = !t.failed;
        crd_text_clear(&t);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        check(fail_at < 1000);
    }
    free(p);
}

static void a_link_has_its_counts_and_what_is_not_known_is_null(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_link_stats link = {.in = 5,
                                 .out = 6,
                                 .lost = 1,
                                 .duplicates = 2,
                                 .reordered = 3,
                                 .bad = 4,
                                 .foreign = 9,
                                 .late = 7,
                                 .age = 1e-3,
                                 .age_mean = 2e-3,
                                 .age_max = 3e-3,
                                 .round_trip = NAN,
                                 .round_trip_max = NAN,
                                 .state_name = "RUNNING"};
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_json_writer w;
    crdi_json_writer_init(&w, &t, CRDI_JSON_ROWS);
    crdi_link_put_json(&w, NULL, &link);
    check_text(
        t.data,
        "{\"in\": 5, \"out\": 6, \"lost\": 1, \"duplicates\": 2, \"reordered\": 3, \"bad\": "
        "4, \"foreign\": 9, \"late\": 7, \"age\": 0.001, \"age_mean\": 0.002, \"age_max\": 0.003, "
        "\"round_trip\": null, \"round_trip_max\": null, \"state\": \"RUNNING\"}");
    crd_text_clear(&t);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_never_longer_than_its_bound),
        cmocka_unit_test(an_index_beyond_the_units_is_nobody),
        cmocka_unit_test(a_quantile_is_claimed_only_of_enough),
        cmocka_unit_test(no_memory_is_told_whenever_it_happens),
        cmocka_unit_test(a_link_has_its_counts_and_what_is_not_known_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
