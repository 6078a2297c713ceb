// A run whose bench drops out: it goes on, and what happened is in the record, on the page and in
// the report.
#include "models.h"

#include "cardan/results.h"
#include "shared/live.h"
#include "unit/standby/standby.h"

#include <stdio.h>

// euler that fails while the test wants it to.
static double fail_from, fail_until;

static crd_model_status frail_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    if (t >= fail_from && t < fail_until) {
        host->log(host->user, CRD_MODEL_ERROR, "its fuse has blown");
        return CRD_MODEL_ERROR;
    }
    return euler_step(self, host, t, h, reached);
}

static crd_model frail_model(void)
{
    crd_model m = euler_model;
    m.step = frail_step;
    return m;
}

static crd_model frail;
static crd_unit_spec stand_in;

// A loop of two: the bench, whose stand-in settles elsewhere, and a plant.
static crd_system* build(crd_context* ctx, const char* results)
{
    static const crd_setting bench_settings[] = {{.variable = "a", .text = "1"},
                                                 {.variable = "b", .text = "-4"},
                                                 {.variable = "x", .text = "1"}};
    static const crd_setting model_settings[] = {{.variable = "a", .text = "1"},
                                                 {.variable = "b", .text = "-5"},
                                                 {.variable = "x", .text = "0.7"}};
    frail = frail_model();
    crd_system* s = new_system(ctx, 0.01, 5);
    stand_in = crd_unit_spec_defaults();
    stand_in.source = CRD_UNIT_NATIVE;
    stand_in.model = &euler_model;
    stand_in.parameters = model_settings;
    stand_in.parameter_count = 3;
    crd_unit_spec bench = crd_unit_spec_defaults();
    bench.name = "bench";
    bench.source = CRD_UNIT_NATIVE;
    bench.model = &frail;
    bench.parameters = bench_settings;
    bench.parameter_count = 3;
    bench.standby.model = &stand_in;
    bench.standby.fade = 0.3;
    int b = -1;
    check_ok(crd_system_add_unit(s, &bench, &b));
    const int p = add_unit(s, "plant", &euler_model, 0);
    set(s, p, "a", "2");
    set(s, p, "b", "-1");
    set(s, p, "x", "1");
    wire(s, b, "y", p, "u");
    wire(s, p, "y", b, "u");
    s->results.path = results;
    return s;
}

static int count_events(const crd_recording_info* info, const char* text, double* time)
{
    int n = 0;
    for (int i = 0; i < info->event_count; i++) {
        const crd_event_info* e = &info->events[i];
        if (e->kind != CRD_EVENT_MARK || !strstr(e->text, text)) { continue; }
        *time = e->time;
        n++;
    }
    return n;
}

static void a_run_goes_on_and_its_record_says_what_happened(void** state)
{
    (void)state;
    const char* path = TEST_BUILD_DIR "/master_standby.mf4";
    crdi_standby_has_threads = false;
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = build(ctx, path);
    crd_master* m = NULL;
    fail_from = 1;
    fail_until = 1.5;
    check_ok(crd_master_create(ctx, s, NULL, &m));
    check_ok(crd_master_initialize(m));
    double y = value(m, "bench.y"), worst = 0;
    for (int i = 0; i < 500; i++) {
        check_ok(crd_master_advance(m, 1));
        const double now = value(m, "bench.y");
        worst = fmax(worst, fabs(now - y));
        y = now;
        if (i == 199) { // as the attendant does
            check_ok(crdi_standby_bring_up((crdi_standby*)crd_master_get_unit(m, 0)));
        }
    }
    check(worst < 0.05); // the difference was 0.3
    check_ok(crd_master_finish(m));
    const crd_master_report* r = crd_master_get_report(m);
    check(r->units[0].standby && !r->units[1].standby);
    check_int(r->units[0].standby->takeovers, 1);
    check_int(r->units[0].standby->returns, 1);
    check(r->units[0].standby->stood_in > 1.5 && r->units[0].standby->stood_in < 4);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_recording* rec = NULL;
    check_ok(crd_recording_open(ctx, path, &rec));
    const crd_recording_info* info = crd_recording_describe(rec);
    double t = NAN;
    check_int(count_events(info, "bench: the stand-in takes over: ", &t), 1);
    check_near(t, 1.01, 1e-9);
    check_int(count_events(info, "its fuse has blown", &t), 1);
    check_int(count_events(info, "bench: the bench runs again", &t), 1);
    check_near(t, 2.01, 1e-9);
    check_int(count_events(info, "bench: the bench is in use again", &t), 1);
    for (int i = 0; i < info->event_count; i++) { // nothing is wrong with an input for orders
        check(!strstr(info->events[i].text, "standby.use"));
    }
    crd_recording_close(rec);
    crd_context_destroy(ctx);
}

static void the_page_sets_whom_to_use_and_sees_the_change(void** state)
{
    (void)state;
    crdi_standby_has_threads = false;
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = build(ctx, NULL);
    crd_master* m = NULL;
    crdi_live* live = NULL;
    fail_from = fail_until = INFINITY;
    check_ok(crd_master_create(ctx, s, NULL, &m));
    check_ok(crdi_live_create(ctx, m, NULL, &live));
    check_ok(crd_master_initialize(m));
    check_ok(crd_master_advance(m, 50));
    const crdi_live_command to_model = {
        .action = CRDI_LIVE_SET, .name = "bench.standby.use", .text = "model"};
    if (crdi_live_send(live, &to_model) < 0) { fail_msg("%s", crdi_live_error(live)); }
    const double before = value(m, "bench.y");
    check_ok(crd_master_advance(m, 1));
    check_near(value(m, "bench.y"), before, 0.05);
    check_near(value(m, "bench.standby.active"), 1, 0);
    check_ok(crd_master_advance(m, 149));
    check_near(value(m, "bench.y"), value(m, "bench.model.y"), 0.01);
    const crdi_live_command back = {
        .action = CRDI_LIVE_SET, .name = "bench.standby.use", .text = "auto"};
    check_ok(crdi_live_send(live, &back));
    check_ok(crd_master_advance(m, 1));
    check_near(value(m, "bench.standby.active"), 0, 0);
    bool takes = false, again = false;
    int64_t heard = 0;
    for (crdi_live_event e; crdi_live_get_event(live, heard, &e); heard = e.number) {
        takes = takes || strstr(e.text, "bench: the stand-in takes over: standby.use says so");
        again = again || strstr(e.text, "bench: the bench is in use again");
    }
    check(takes && again);
    check_ok(crd_master_finish(m));
    crdi_live_destroy(live);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_goes_on_and_its_record_says_what_happened),
        cmocka_unit_test(the_page_sets_whom_to_use_and_sees_the_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
