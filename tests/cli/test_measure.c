// The measurements of cardan doctor: the grid on a scripted clock, and both on real threads. Built
// from their own file, so that ThreadSanitizer sees them without the whole command.
#include "check.h"
#include "cli/doctor/doctor.h"

// Time moves only in sleeps; each wakes as late as the script says.
typedef struct script {
    int64_t now;
    const int64_t* late; // ns; negative: a signal wakes it so much earlier
    int count, next;
    bool* stop_at_end;
} script;

static int64_t script_now(void* user)
{
    return ((script*)user)->now;
}

static void script_sleep(void* user, int64_t ns)
{
    script* s = user;
    s->now = ns + s->late[s->next % s->count];
    s->next++;
    if (s->stop_at_end && s->next == s->count) { *s->stop_at_end = true; }
}

static void every_grid_point_is_measured_or_counted_as_slept_over(void** state)
{
    // 1 ms grid: on time, 0.4 ms late, 2.5 ms late (two points are gone), a signal, on time
    static const int64_t late[] = {1000, 400000, 2500000, -300000, 2000};
    script s = {.now = 5000000, .late = late, .count = 5};
    const crd_clock clock = {.now = script_now, .sleep_until = script_sleep, .user = &s};
    crdi_latency l = {0};
    crdi_measure_wakeup(clock, 1000000, 12000000, NULL, &l);
    check(l.done);
    check_int(l.h.count + l.missed, 12);
    check_int(l.missed, 4); // the long one came twice
    check_int(l.h.max, 2500000);
    check_int(l.h.min, 1000);
}

static void stopping_keeps_what_was_measured(void** state)
{
    static const int64_t late[] = {1000, 1000, 1000};
    bool stop = false;
    script s = {.late = late, .count = 3, .stop_at_end = &stop};
    const crd_clock clock = {.now = script_now, .sleep_until = script_sleep, .user = &s};
    crdi_latency l = {0};
    crdi_measure_wakeup(clock, 1000000, INT64_C(1000000000000), &stop, &l);
    check_int(l.h.count, 3);
}

static void both_measurements_account_for_their_time(void** state)
{
    crd_context* ctx = *state;
    crdi_cli cli = {.ctx = ctx};
    const crdi_wish wish = {.profile = CRDI_SOFT, .cpu = -1, .priority = 80, .duration = 0.03};
    crdi_latency* l = crdi_new_array(ctx, 2, sizeof *l);
    check(l != NULL);
    crdi_measure(&cli, &wish, NULL, &l[0], &l[1]);
    for (int i = 0; i < 2; i++) {
        check(l[i].done);
        check_text(l[i].problem, "");
        check_int(l[i].period, 1000000);
        check(l[i].h.count <= 30);
    }
    check(l[0].h.count + l[0].missed >= 29 && l[0].h.count > 0);
    check(l[1].h.count + l[1].missed > 0); // an answer may come too late on a machine that is busy
    const bool stop = true;
    crdi_latency* none = crdi_new_array(ctx, 2, sizeof *none);
    check(none != NULL);
    crdi_measure(&cli, &wish, &stop, &none[0], &none[1]);
    check_int(none[0].h.count + none[1].h.count, 0);
    crd_free(ctx, none);
    crd_free(ctx, l);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, check_set_up, check_tear_down)
    const struct CMUnitTest tests[] = {
        T(every_grid_point_is_measured_or_counted_as_slept_over),
        T(stopping_keeps_what_was_measured),
        T(both_measurements_account_for_their_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
