// The summary of a run on the clock, of accounts made by hand: sentences, tables, JSON, limits.
#include "cardan/unit.h"
#include "check.h"
#include "cli/run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct fixture {
    crd_context* ctx;
    crd_arena arena;
    crd_pace_report pace;
    crd_unit_report units[3];
    crd_link_stats link;
    crd_master_report r;
    char* text;
} fixture;

// A minute at 1 kHz: 10 us late and 300 us of work each, but for what a test adds.
static int set_up(void** state)
{
    fixture* x = calloc(1, sizeof *x);
    if (!x) { return -1; }
    x->ctx = crd_context_create(NULL);
    crd_arena_init(&x->arena, x->ctx);
    x->pace = (crd_pace_report){.on = true, .factor = 1, .period = 1e-3, .priority = -1, .cpu = -1};
    x->units[0] = (crd_unit_report){.name = "engine", .budget = NAN};
    x->units[1] = (crd_unit_report){.name = "driver", .budget = NAN};
    x->units[2] = (crd_unit_report){.name = "bench", .budget = NAN};
    x->r = (crd_master_report){.units = x->units,
                               .unit_count = 3,
                               .time = 60,
                               .results = "",
                               .exchange = "",
                               .pace = &x->pace};
    *state = x;
    return x->ctx ? 0 : -1;
}

static int tear_down(void** state)
{
    fixture* x = *state;
    crd_arena_clear(&x->arena);
    crd_context_destroy(x->ctx);
    free(x->text);
    free(x);
    return 0;
}

static void add_cycles(fixture* x, int count, int64_t late_ns, int64_t busy_ns)
{
    for (int i = 0; i < count; i++) {
        crd_histogram_add(&x->pace.lateness, late_ns);
        crd_histogram_add(&x->pace.busy, busy_ns);
    }
    x->pace.cycles += count;
}

static void add_overrun(fixture* x, int64_t cycle, int64_t late_ns, int unit)
{
    crd_pace_report* p = &x->pace;
    const crd_overrun_info o = {.cycle = cycle,
                                .time = 1e-3 * (double)cycle,
                                .late_ns = late_ns,
                                .busy_ns = 1000000 + late_ns,
                                .unit = unit};
    if (p->overruns == 0 || late_ns > p->worst.late_ns) { p->worst = o; }
    p->overruns++;
    p->kept[p->kept_count++] = o;
    if (p->burst == 0) { p->burst = 1; }
    add_cycles(x, 1, 10000, o.busy_ns);
}

static const char* summary(fixture* x)
{
    crdi_root root;
    crd_text text;
    free(x->text);
    crd_text_init(&text, x->ctx);
    crdi_result_init(&root, x->ctx, false);
    crdi_say_pace(&root.result, &x->r);
    crdi_show_links(&root.result, &x->r);
    crdi_result_write(&root, &text);
    check(!text.failed);
    x->text = strdup(text.data ? text.data : "");
    crdi_result_clear(&root);
    crd_text_clear(&text);
    return x->text;
}

// What --json has under "pace".
static const crdi_json* pace_of(fixture* x)
{
    crdi_root root;
    crd_text text;
    crdi_json* all = NULL;
    crd_text_init(&text, x->ctx);
    crdi_result_init(&root, x->ctx, true);
    crdi_put_pace(&root.result, &x->r);
    crdi_result_write(&root, &text);
    check_ok(crdi_json_parse(&x->arena, text.data, text.length, (crdi_json_source){0}, &all));
    crdi_result_clear(&root);
    crd_text_clear(&text);
    return crdi_json_member(all, "pace");
}

static void a_run_without_pace_says_nothing(void** state)
{
    fixture* x = *state;
    x->pace.on = false;
    check_text(summary(x), "");
}

static void a_run_that_kept_the_clock_is_told_in_one_screen(void** state)
{
    fixture* x = *state;
    add_cycles(x, 59999, 10000, 300000);
    add_cycles(x, 1, 120000, 450000);
    x->pace.fifo = x->pace.locked = x->pace.pinned = x->pace.awake = true;
    x->pace.priority = 80;
    x->pace.cpu = 1;
    x->pace.minor_faults = 12;
    x->pace.voluntary = 60012;
    x->pace.involuntary = 3;
    check_text(summary(x),
               "pace     real time, 60000 cycles of 1 ms; no overrun; grid drift 0\n"
               "         kept: the longest cycle took 45 % of its period\n"
               "system   SCHED_FIFO 80, memory locked, CPU 1, kept awake; page faults 0 major, 12 "
               "minor; context\n"
               "         switches 60012 voluntary, 3 involuntary\n"
               "  per cycle                        p50       p99    p99.99     max  load\n"
               "  wake-up after its deadline  10.24 us  10.24 us  10.24 us  120 us\n"
               "  work                        311.3 us  311.3 us  311.3 us  450 us  30 %\n");
}

static void overruns_are_told_with_time_cycle_lateness_and_unit(void** state)
{
    fixture* x = *state;
    add_cycles(x, 59997, 10000, 300000);
    add_overrun(x, 12345, 2100000, 0);
    add_overrun(x, 12346, 1400000, 0);
    add_overrun(x, 40000, 50000, -1);
    x->pace.burst = 2;
    x->pace.burst_time = 12.345;
    const char* text = summary(x);
    check_contains(text,
                   "3 overruns, the worst 2.1 ms late at t = 12.345 s, longest\n"
                   "         in unit 'engine'; longest row 2 from t = 12.345 s; grid drift 0\n"
                   "         not kept: 0.005 % of the cycles were late\n");
    check_contains(text, "ordinary scheduler, memory not locked, any CPU; page faults");
    check_contains(text,
                   "  overrun at  cycle    late     work  in a row\n"
                   "    12.345 s  12345  2.1 ms   3.1 ms         1  longest in unit 'engine'\n"
                   "    12.346 s  12346  1.4 ms   2.4 ms         1  longest in unit 'engine'\n"
                   "        40 s  40000   50 us  1.05 ms         1\n");
}

static void a_cycle_that_only_began_late_is_not_the_fault_of_a_unit(void** state)
{
    fixture* x = *state;
    add_cycles(x, 100, 10000, 300000);
    add_overrun(x, 7, 400000, 1);
    add_overrun(x, 8, 300000, 1);
    x->pace.worst.busy_ns = x->pace.kept[0].busy_ns = x->pace.kept[1].busy_ns = 5000;
    x->pace.kept[1].behind = 1;
    const char* text = summary(x);
    check_contains(text, "2 overruns, the worst 400 us late at t = 0.007 s, woken\n"
                         "         late; grid drift 0\n");
    check_contains(text, "     0.007 s      7  400 us  5 us         2  woken late\n");
    check_status(crdi_fail_overrun(x->ctx, &x->r), CRD_E_LIMIT);
    check_contains(crd_error_text(x->ctx), "done 400 us late, woken late, and the run ends");
}

static void a_cycle_that_had_to_catch_up_is_not_said_to_be_woken_late(void** state)
{
    fixture* x = *state;
    add_cycles(x, 100, 10000, 300000);
    add_overrun(x, 7, 400000, 1);
    x->pace.worst.busy_ns = x->pace.kept[0].busy_ns = 5000;
    x->pace.worst.behind = x->pace.kept[0].behind = 3;
    check_contains(summary(x), "1 overrun, 400 us late at t = 0.007 s, behind since cycle 4;\n");
}

static void of_many_overruns_the_latest_are_shown(void** state)
{
    fixture* x = *state;
    for (int i = 0; i < 30; i++) {
        add_overrun(x, 100 * i, (i * 7 % 30 + 1) * 1000000, i % 3);
    }
    x->pace.overruns = 1000; // the others were not kept
    const char* text = summary(x);
    int lines = 0;
    for (const char* c = strstr(text, "overrun at"); c && (c = strchr(c, '\n')); c++) {
        lines++;
    }
    check_int(lines, 1 + 10 + 1);
    check_contains(text, " 30 ms");
    check_contains(text, " 21 ms");
    check(!strstr(text, " 20 ms"));
    check_contains(text, "and 990 more; --json and the report have some of them");
}

static void quantiles_that_few_cycles_cannot_tell_are_left_out(void** state)
{
    fixture* x = *state;
    add_cycles(x, 9999, 10000, 300000);
    check_contains(summary(x), "wake-up after its deadline   10 us   10 us       -   10 us");
    add_cycles(x, 1, 10000, 300000);
    check_contains(summary(x), "wake-up after its deadline   10 us   10 us   10 us   10 us");
    x->pace.lateness = x->pace.busy = (crd_histogram){0};
    add_cycles(x, 99, 10000, 300000);
    check_contains(summary(x), "wake-up after its deadline   10 us    -       -   10 us");
    x->pace.lateness = x->pace.busy = (crd_histogram){0};
    x->pace.cycles = 0;
    const char* text = summary(x);
    check_contains(text, "no cycle was done");
    check_contains(text, "wake-up after its deadline    -    -       -    -");
}

static void what_moved_the_grid_is_told(void** state)
{
    fixture* x = *state;
    add_cycles(x, 100, 10000, 300000);
    x->pace.factor = 10;
    x->pace.moved_ns = 12000000;
    x->pace.skipped = 12;
    x->pace.paused_ns = 3500000000;
    x->pace.drift_ns = -7;
    x->pace.clock_steps = 2;
    x->pace.clock_step_ns = -3200000000;
    const char* text = summary(x);
    check_contains(text,
                   "pace     10x, 100 cycles of 1 ms; no overrun; grid drift -7 ns, grid moved "
                   "by 12 ms, 12 deadlines");
    check_contains(text, "skipped, paused for 3.5 s\n");
    check_contains(text, "the wall clock was set 2 times, by -3.2 s in all\n");
    x->pace.period = 0; // variable steps
    check_contains(summary(x), "100 cycles; no overrun");
}

static void budgets_and_links_have_their_lines(void** state)
{
    fixture* x = *state;
    x->pace.on = false; // they are told of runs without a clock, too
    x->units[0].budget = 500e-6;
    x->units[0].late = 12;
    x->units[1].budget = 1e-3;
    x->link = (crd_link_stats){.in = 60000,
                               .out = 60001,
                               .lost = 3,
                               .duplicates = 1,
                               .reordered = 2,
                               .late = 4,
                               .age = 1e-3,
                               .age_mean = 1.1e-3,
                               .age_max = 3e-3,
                               .round_trip = 80e-6,
                               .round_trip_max = NAN};
    x->units[2].link = &x->link;
    check_text(summary(x),
               "budget   unit 'engine', 500 us: 12 cycles went on without it\n"
               "budget   unit 'driver', 1 ms: never late\n"
               "  link      in    out  lost  twice  swapped  bad  late  age mean  age max  round "
               "trip  max\n"
               "  bench  60000  60001     3      1        2    0     4    1.1 ms     3 ms       80 "
               "us    -\n");
}

static void the_json_has_all_of_it(void** state)
{
    fixture* x = *state;
    add_cycles(x, 150, 10000, 300000);
    add_overrun(x, 7, 2100000, 0);
    x->pace.note_count = 1;
    snprintf(x->pace.notes[0], sizeof x->pace.notes[0], "a \"note\"\n");
    const crdi_json* j = pace_of(x);
    check(crdi_json_get_bool(j, "on", false));
    check_near(crdi_json_get_number(j, "period"), 1e-3, 0);
    check_near(crdi_json_get_number(j, "overrun_count"), 1, 0);
    const crdi_json* o = crdi_json_item(crdi_json_get_list(j, "overruns"), 0);
    check_text(crdi_json_get_text(o, "unit"), "engine");
    check_near(crdi_json_get_number(o, "late"), 2.1e-3, 0);
    check_near(crdi_json_get_number(crdi_json_get_object(j, "worst"), "cycle"), 7, 0);
    const crdi_json* busy = crdi_json_get_object(j, "busy");
    check_near(crdi_json_get_number(busy, "max"), 3.1e-3, 0);
    check(crdi_json_member(busy, "p99")->kind == CRDI_JSON_NUMBER);
    check(crdi_json_member(busy, "p99.99")->kind == CRDI_JSON_NULL);
    const crdi_json* h = crdi_json_get_list(busy, "histogram");
    double sum = 0;
    for (int i = 0; i < crdi_json_count(h); i++) {
        sum += crdi_json_item(crdi_json_item(h, i), 1)->number;
    }
    check_near(sum, 151, 0);
    const double edge = crdi_json_item(crdi_json_item(h, 0), 0)->number;
    check(edge <= 300e-6 && edge > 300e-6 * 15 / 16);
    check(crdi_json_member(j, "priority")->kind == CRDI_JSON_NULL);
    check(crdi_json_member(j, "cpu")->kind == CRDI_JSON_NULL);
    check_text(crdi_json_item(crdi_json_get_list(j, "notes"), 0)->text, "a \"note\"\n");
    x->pace.on = false;
    j = pace_of(x);
    check(j->kind == CRDI_JSON_NULL);
}

static void limits_become_sentences(void** state)
{
    fixture* x = *state;
    add_cycles(x, 100, 10000, 300000);
    check_ok(crdi_check_pace(x->ctx, &x->r, 0, 11e-6));
    add_overrun(x, 7, 2100000, 1);
    check_ok(crdi_check_pace(x->ctx, &x->r, 1, NAN));
    check_ok(crdi_check_pace(x->ctx, &x->r, -1, NAN));
    check_status(crdi_check_pace(x->ctx, &x->r, 0, NAN), CRD_E_LIMIT);
    check_text(
        crd_error_text(x->ctx),
        "1 of 101 cycles were late, the worst 2.1 ms at t = 0.007 s (cycle 7, longest in unit "
        "'driver'), more than --max-overruns = 0");
    check_status(crdi_check_pace(x->ctx, &x->r, -1, 9e-6), CRD_E_LIMIT);
    check_text(crd_error_text(x->ctx),
               "a cycle began 10 us after its deadline, more than --max-lateness = 9 us");
    check_int(crd_status_exit_code(CRD_E_LIMIT), 3);
    x->r.results = "run.mf4";
    check_status(crdi_fail_overrun(x->ctx, &x->r), CRD_E_LIMIT);
    check_text(crd_error_text(x->ctx),
               "cycle 7 at t = 0.007 s was done 2.1 ms late, longest in unit 'driver', and the run "
               "ends then ('overrun: stop'); everything up to there is recorded in run.mf4");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_run_without_pace_says_nothing),
        TEST(a_run_that_kept_the_clock_is_told_in_one_screen),
        TEST(overruns_are_told_with_time_cycle_lateness_and_unit),
        TEST(a_cycle_that_only_began_late_is_not_the_fault_of_a_unit),
        TEST(a_cycle_that_had_to_catch_up_is_not_said_to_be_woken_late),
        TEST(of_many_overruns_the_latest_are_shown),
        TEST(quantiles_that_few_cycles_cannot_tell_are_left_out),
        TEST(what_moved_the_grid_is_told),
        TEST(budgets_and_links_have_their_lines),
        TEST(the_json_has_all_of_it),
        TEST(limits_become_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
