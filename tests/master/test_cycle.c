// The master on a clock that the test turns: work of every unit in every cycle is scripted, and the
// account has to say exactly that.
#include "models.h"

#include "cardan/results.h"
#include "shared/pace.h"

#include <stdio.h>
#include <unistd.h>

enum { UNITS = 4, CYCLES = 400, MS = 1000000 };

static int64_t now_ns, wall_shift;
static int64_t work[UNITS][CYCLES + 1]; // ns of a unit's step
static int64_t wake[CYCLES + 1];        // ns that the sleep before a cycle is late
static int64_t slept, begun[CYCLES + 1], asked[CYCLES + 1];
static int sleeps;
static int stop_in = -1; // sleep at whose end the stop flag is set
static volatile bool* stop_flag;

static int64_t virtual_now(void* user)
{
    (void)user;
    return now_ns;
}

static void virtual_sleep(void* user, int64_t until)
{
    (void)user;
    if (until > now_ns) { now_ns = until; }
    if (sleeps <= CYCLES) {
        now_ns += wake[sleeps];
        asked[sleeps] = until;
    }
    if (sleeps == stop_in) { *stop_flag = true; }
    sleeps++;
    slept = until;
}

static int64_t virtual_wall(void* user)
{
    (void)user;
    return now_ns + 1000000000000 + wall_shift;
}

static const crd_clock virtual_clock = {virtual_now, virtual_sleep, virtual_wall, NULL};

// y = steps so far; each step takes the scripted time.
typedef struct {
    double u, y;
    int32_t which;
} laborer;

static crd_model_status laborer_initialize(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static void laborer_outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static crd_model_status laborer_step(void* self, const crd_model_host* host, double t, double h,
                                     double* reached)
{
    laborer* w = self;
    (void)host;
    const int64_t cycle = llround(t / h);
    if (w->which == 0 && cycle <= CYCLES) { begun[cycle] = now_ns; }
    if (cycle <= CYCLES) { now_ns += work[w->which][cycle]; }
    w->y += 1;
    *reached = t + h;
    return CRD_MODEL_OK;
}

static const crd_model_variable laborer_variables[] = {
    REAL(laborer, u, CRD_INPUT, 0),
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_CONTINUOUS,
     .offset = offsetof(laborer, y),
     .depends = ""},
    {.name = "which",
     .type = CRD_INT32,
     .causality = CRD_PARAMETER,
     .variability = CRD_FIXED,
     .offset = offsetof(laborer, which)},
};
static const crd_model laborer_model = {.name = "laborer",
                                        .size = sizeof(laborer),
                                        .variables = laborer_variables,
                                        .variable_count = 3,
                                        .default_step = 1e-3,
                                        .default_stop = 1,
                                        .initialize = laborer_initialize,
                                        .outputs = laborer_outputs,
                                        .step = laborer_step};

typedef struct {
    crd_context* ctx;
    crd_system* sys;
    crd_master* m;
    volatile bool stop;
} fixture;

static void open_run(fixture* f, crd_overrun policy, double factor, const char* results)
{
    static const char* const names[UNITS] = {"a", "b", "c", "d"};
    static crd_setting settings[UNITS];
    *f = (fixture){.ctx = crd_context_create(NULL)};
    check_ok(crd_system_create(f->ctx, &f->sys));
    for (int i = 0; i < UNITS; i++) {
        static const char* const numbers[UNITS] = {"0", "1", "2", "3"};
        crd_unit_spec u = crd_unit_spec_defaults();
        u.source = CRD_UNIT_NATIVE;
        u.name = names[i];
        u.model = &laborer_model;
        settings[i] = (crd_setting){.variable = "which", .text = numbers[i]};
        u.parameters = &settings[i];
        u.parameter_count = 1;
        check_ok(crd_system_add_unit(f->sys, &u, NULL));
    }
    for (int i = 0; i < UNITS; i++) {
        crd_connection_spec c = crd_connection_spec_defaults();
        c.from_unit = i;
        c.to_unit = (i + 1) % UNITS;
        c.from = "y";
        c.to = "u";
        c.predict = CRD_PREDICTION_HOLD;
        check_ok(crd_system_add_connection(f->sys, &c));
    }
    f->sys->run.step = 1e-3;
    f->sys->run.stop = 1e-3 * CYCLES;
    f->sys->run.threads = 1;
    f->sys->run.pace.factor = factor;
    f->sys->run.pace.overrun = policy;
    f->sys->results.path = results;
    crd_master_options opt = crd_master_defaults();
    opt.clock = &virtual_clock;
    opt.stop = &f->stop;
    check_ok(crd_master_create(f->ctx, f->sys, &opt, &f->m));
    now_ns = 5000 * (int64_t)MS;
    wall_shift = slept = sleeps = 0;
}

static void close_run(fixture* f)
{
    crd_master_destroy(f->m);
    crd_system_destroy(f->sys);
    crd_context_destroy(f->ctx);
}

static uint64_t draw(uint64_t* s)
{
    *s = *s * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *s >> 33;
}

static void script(uint64_t seed, int one_in)
{
    memset(wake, 0, sizeof wake);
    for (int n = 0; n <= CYCLES; n++) {
        wake[n] = (int64_t)(draw(&seed) % 60000);
        for (int i = 0; i < UNITS; i++) {
            work[i][n] = 20000 + (int64_t)(draw(&seed) % 100000);
        }
        if (one_in && draw(&seed) % (uint64_t)one_in == 0) {
            work[draw(&seed) % UNITS][n] += (int64_t)(draw(&seed) % (5 * MS));
        }
    }
}

static void every_cycle_begins_on_the_grid_when_nothing_is_late(void** state)
{
    (void)state;
    fixture f;
    script(1, 0);
    open_run(&f, CRD_OVERRUN_RECORD, 1, NULL);
    const int64_t origin = now_ns;
    check_ok(crd_master_run(f.m));
    const crd_pace_report* p = crd_master_get_report(f.m)->pace;
    check(p->on);
    check_int(p->cycles, CYCLES);
    check_int(p->overruns, 0);
    check_int(p->drift_ns, 0);
    check_int(p->lateness.count, CYCLES);
    check_int(p->busy.count, CYCLES);
    int64_t most = 0;
    for (int n = 0; n < CYCLES; n++) {
        check(begun[n] >= origin + n * (int64_t)MS);
        const int64_t late = begun[n] - (origin + n * (int64_t)MS);
        most = late > most ? late : most;
    }
    check_int(p->lateness.max, most);
    close_run(&f);
}

// The account once more, from the script alone.
static void the_account_is_what_the_script_did(void** state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        fixture f;
        script(seed, 12);
        open_run(&f, CRD_OVERRUN_RECORD, 1, NULL);
        const int64_t origin = now_ns;
        check_ok(crd_master_run(f.m));
        const crd_pace_report* p = crd_master_get_report(f.m)->pace;
        int64_t overruns = 0, burst = 0, row = 0, worst = 0, busy_sum = 0;
        int worst_unit = -1;
        for (int n = 0; n < CYCLES; n++) {
            int64_t busy = 0, most = 0;
            int slow = -1;
            for (int i = 0; i < UNITS; i++) {
                busy += work[i][n];
                if (work[i][n] > most) {
                    most = work[i][n];
                    slow = i;
                }
            }
            busy_sum += busy;
            const int64_t late = begun[n] + busy - (origin + (n + 1) * (int64_t)MS);
            row = late > 0 ? row + 1 : 0;
            overruns += late > 0;
            burst = row > burst ? row : burst;
            if (late > worst) {
                worst = late;
                worst_unit = slow;
            }
        }
        check(overruns > 5);
        check_int(p->overruns, overruns);
        check_int(p->burst, burst);
        check_int(p->busy.sum, busy_sum);
        check_int(p->worst.late_ns, worst);
        check_int(p->worst.unit, worst_unit);
        check_int(p->drift_ns, 0);
        check_int(p->cycles, CYCLES);
        close_run(&f);
    }
}

static void a_late_cycle_ends_the_run_if_it_is_to(void** state)
{
    (void)state;
    fixture f;
    script(3, 0);
    work[2][123] = 3 * MS;
    open_run(&f, CRD_OVERRUN_STOP, 1, NULL);
    check_ok(crd_master_run(f.m));
    const crd_master_report* r = crd_master_get_report(f.m);
    check_int(r->end, CRD_END_OVERRUN);
    check_text(r->end_unit, "c");
    check_int(r->steps, 124);
    check_int(r->pace->worst.cycle, 123);
    check_near(r->pace->worst.time, 0.123, 1e-12);
    close_run(&f);
}

// A cycle that has begun is done: nothing is counted that was not.
static void a_stop_at_a_deadline_leaves_every_cycle_accounted_for(void** state)
{
    (void)state;
    fixture f;
    script(3, 0);
    open_run(&f, CRD_OVERRUN_RECORD, 1, NULL);
    stop_flag = &f.stop;
    stop_in = 50;
    check_ok(crd_master_run(f.m));
    stop_in = -1;
    const crd_master_report* r = crd_master_get_report(f.m);
    check_int(r->end, CRD_END_INTERRUPTED);
    check(r->steps > 40 && r->steps < 60);
    check_int(r->pace->cycles, r->steps);
    check_int(r->pace->lateness.count, r->steps);
    check_int(r->pace->busy.count, r->steps);
    close_run(&f);
}

static void time_goes_slower_by_what_was_late_when_it_stretches(void** state)
{
    (void)state;
    fixture f;
    script(4, 0);
    memset(wake, 0, sizeof wake);
    work[0][10] = 7 * MS;
    open_run(&f, CRD_OVERRUN_STRETCH, 1, NULL);
    const int64_t origin = now_ns;
    check_ok(crd_master_run(f.m));
    const crd_pace_report* p = crd_master_get_report(f.m)->pace;
    check_int(p->overruns, 1);
    int64_t busy = 0;
    for (int i = 0; i < UNITS; i++) {
        busy += work[i][10];
    }
    check_int(p->moved_ns, busy - MS);
    check_int(begun[399], origin + 399 * (int64_t)MS + busy - MS);
    check_int(p->drift_ns, 0);
    close_run(&f);
}

static void skipped_points_keep_the_phase(void** state)
{
    (void)state;
    fixture f;
    script(5, 0);
    memset(wake, 0, sizeof wake);
    work[3][10] = 7 * MS + MS / 2; // and some more of the others
    open_run(&f, CRD_OVERRUN_SKIP, 1, NULL);
    const int64_t origin = now_ns;
    check_ok(crd_master_run(f.m));
    const crd_pace_report* p = crd_master_get_report(f.m)->pace;
    check_int(p->overruns, 1);
    check(p->skipped > 0);
    check_int(p->moved_ns, p->skipped * MS);
    check_int((begun[11] - origin) % MS, 0);
    check_int(begun[399], origin + (399 + p->skipped) * MS);
    close_run(&f);
}

static void ten_times_as_fast_is_a_grid_of_a_tenth(void** state)
{
    (void)state;
    fixture f;
    memset(work, 0, sizeof work);
    memset(wake, 0, sizeof wake);
    open_run(&f, CRD_OVERRUN_RECORD, 10, NULL);
    const int64_t origin = now_ns;
    check_ok(crd_master_run(f.m));
    const crd_pace_report* p = crd_master_get_report(f.m)->pace;
    for (int n = 0; n < CYCLES; n++) {
        check_int(begun[n], origin + n * (int64_t)(MS / 10));
    }
    check_near(p->period, 1e-4, 1e-15);
    close_run(&f);
}

static void an_administrator_who_sets_the_clock_is_noticed_and_changes_nothing(void** state)
{
    (void)state;
    fixture f;
    script(6, 0);
    open_run(&f, CRD_OVERRUN_RECORD, 1, NULL);
    check_ok(crd_master_initialize(f.m));
    check_ok(crd_master_advance(f.m, 100));
    wall_shift = -3600 * (int64_t)1000000000;
    check_ok(crd_master_advance(f.m, 300));
    check_ok(crd_master_finish(f.m));
    const crd_pace_report* p = crd_master_get_report(f.m)->pace;
    check_int(p->clock_steps, 1);
    check_int(p->clock_step_ns, wall_shift);
    check_int(p->overruns, 0);
    check_int(p->drift_ns, 0);
    close_run(&f);
}

static void lateness_and_work_are_channels_of_the_record(void** state)
{
    (void)state;
    const char* path = TEST_BUILD_DIR "/cycle.mf4";
    fixture f;
    script(7, 20);
    open_run(&f, CRD_OVERRUN_RECORD, 1, path);
    const int64_t origin = now_ns;
    check_ok(crd_master_run(f.m));
    crd_table* t = NULL;
    check_ok(crd_table_read(f.ctx, path, &t));
    const int late = crd_table_find(t, "cardan.lateness"), busy = crd_table_find(t, "cardan.busy");
    check(late >= 0 && busy >= 0);
    check_int(t->rows, CYCLES + 1);
    for (int n = 0; n < CYCLES; n++) {
        const double want = 1e-9 * (double)(begun[n] - (origin + n * (int64_t)MS));
        check_near(t->columns[late].values[n + 1], want, 1e-15);
        int64_t sum = 0;
        for (int i = 0; i < UNITS; i++) {
            sum += work[i][n];
        }
        check_near(t->columns[busy].values[n + 1], 1e-9 * (double)sum, 1e-15);
    }
    crd_table_destroy(t);
    crd_recording* r = NULL;
    check_ok(crd_recording_open(f.ctx, path, &r));
    const crd_recording_info* info = crd_recording_describe(r);
    int64_t overruns = 0;
    for (int i = 0; i < info->event_count; i++) {
        overruns += info->events[i].kind == CRD_EVENT_OVERRUN;
    }
    check_int(overruns, crd_master_get_report(f.m)->pace->overruns);
    crd_recording_close(r);
    close_run(&f);
}

static void the_pace_does_not_change_the_numbers(void** state)
{
    (void)state;
    double values[2];
    script(8, 15);
    for (int k = 0; k < 2; k++) {
        fixture f;
        open_run(&f, CRD_OVERRUN_RECORD, k, NULL);
        check_ok(crd_master_initialize(f.m));
        check_ok(crd_master_advance(f.m, CYCLES / 2));
        check_ok(crd_master_value(f.m, "b.u", &values[k]));
        check(crd_master_get_report(f.m)->pace->on == (k == 1));
        close_run(&f);
    }
    check(values[0] == values[1] && values[0] == CYCLES / 2 - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cycle_begins_on_the_grid_when_nothing_is_late),
        cmocka_unit_test(the_account_is_what_the_script_did),
        cmocka_unit_test(a_late_cycle_ends_the_run_if_it_is_to),
        cmocka_unit_test(a_stop_at_a_deadline_leaves_every_cycle_accounted_for),
        cmocka_unit_test(time_goes_slower_by_what_was_late_when_it_stretches),
        cmocka_unit_test(skipped_points_keep_the_phase),
        cmocka_unit_test(ten_times_as_fast_is_a_grid_of_a_tenth),
        cmocka_unit_test(an_administrator_who_sets_the_clock_is_noticed_and_changes_nothing),
        cmocka_unit_test(lateness_and_work_are_channels_of_the_record),
        cmocka_unit_test(the_pace_does_not_change_the_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
