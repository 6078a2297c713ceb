// What a run leaves behind: rows in rasters, events, attachments, and what it says of itself.
#include "models.h"
#include "shared/base.h"

#include "cardan/results.h"
#include "json_tree.h"

#include <stdio.h>
#include <time.h>

// A source, y = t and a state with a name, that complains every `every` seconds.
typedef struct {
    double y, t, every;
    int64_t mode;
} noisy;

static crd_model_status noisy_initialize(void* self, const crd_model_host* host, double t)
{
    noisy* n = self;
    (void)host;
    n->t = n->y = t;
    return CRD_MODEL_OK;
}

static void noisy_outputs(void* self, double t)
{
    noisy* n = self;
    (void)t;
    n->y = n->t;
    n->mode = n->t < 0.5 ? 1 : 2;
}

static crd_model_status noisy_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    noisy* n = self;
    *reached = n->t = t + h;
    if (n->every > 0 && fabs(remainder(t, n->every)) < h / 4) {
        host->log(host->user, CRD_MODEL_WARNING, "something is odd");
    }
    return CRD_MODEL_OK;
}

static const char* const noisy_modes[] = {"cold", "warm", 0};
static const crd_model_variable noisy_rows[] = {
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(noisy, y),
     .unit = "s",
     .description = "time",
     .depends = ""},
    {.name = "mode",
     .type = CRD_ENUMERATION,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(noisy, mode),
     .items = noisy_modes,
     .start = 1,
     .depends = ""},
    {.name = "every",
     .type = CRD_FLOAT64,
     .causality = CRD_PARAMETER,
     .variability = CRD_FIXED,
     .offset = offsetof(noisy, every),
     .unit = "s"},
};
static const crd_model noisy_model = {.name = "noisy",
                                      .description = "y = t, with remarks",
                                      .size = sizeof(noisy),
                                      .variables = noisy_rows,
                                      .variable_count = 3,
                                      .default_step = 0.1,
                                      .default_stop = 1,
                                      .initialize = noisy_initialize,
                                      .outputs = noisy_outputs,
                                      .step = noisy_step};

static int setup(void** state)
{
    *state = crd_context_create(NULL);
    return *state ? 0 : -1;
}

static int teardown(void** state)
{
    crd_context_destroy(*state);
    return 0;
}

static crd_recording* open_recording(crd_context* ctx, const char* path)
{
    crd_recording* r = NULL;
    if (crd_recording_open(ctx, path, &r) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    return r;
}

// The attachment with this name as JSON; NULL if there is none.
static const crdi_json* attached(crd_context* ctx, crd_recording* r, const char* name)
{
    const crd_recording_info* info = crd_recording_describe(r);
    for (int i = 0; i < info->attachment_count; i++) {
        if (strcmp(info->attachments[i].name, name) != 0) { continue; }
        char* data = NULL;
        size_t length = 0;
        check_ok(crd_recording_attachment(r, i, &data, &length));
        const crdi_json* j = json_tree(data, length);
        crd_free(ctx, data);
        return j;
    }
    return NULL;
}

static const crdi_json* parsed(crd_text* t)
{
    const crdi_json* j = json_tree(t->data, strlen(t->data));
    crd_text_clear(t);
    return j;
}

static const crdi_json* at(const crdi_json* j, const char* key)
{
    const crdi_json* x = crdi_json_member(j, key);
    if (!x) { fail_msg("there is no key '%s'", key); }
    return x;
}

static const char* text_at(const crdi_json* j, const char* key)
{
    const char* text = json_text(at(j, key));
    if (!text) { fail_msg("'%s' is not a text", key); }
    return text;
}

static double number_at(const crdi_json* j, const char* key)
{
    const crdi_json* x = at(j, key);
    check(json_is(x, CRDI_JSON_NUMBER));
    return crdi_json_value(x);
}

static int count_events(const crd_recording_info* info, crd_event_kind kind)
{
    int n = 0;
    for (int i = 0; i < info->event_count; i++) {
        n += info->events[i].kind == kind;
    }
    return n;
}

static const crd_event_info* event(const crd_recording_info* info, crd_event_kind kind, int k)
{
    for (int i = 0; i < info->event_count; i++) {
        if (info->events[i].kind == kind && k-- == 0) { return &info->events[i]; }
    }
    fail_msg("there are too few events of kind %d", kind);
    return NULL;
}

static void run(crd_context* ctx, crd_system* s, const crd_master_options* opt)
{
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, opt, &m), ctx);
    check_run(crd_master_run(m), ctx);
    crd_master_destroy(m);
}

// ---- rasters -----------------------------------------------------------------------------------

static crd_system* two_rates(crd_context* ctx, const char* path)
{
    crd_system* s = new_system(ctx, 0.01, 1.005); // the end is on nobody's grid but the tick's
    const int fast = add_unit(s, "fast", &noisy_model, 0.005);
    const int slow = add_unit(s, "slow", &noisy_model, 0.05);
    const int taker = add_unit(s, "taker", &euler_model, 0);
    (void)fast;
    wire(s, slow, "y", taker, "u");
    s->results.path = path;
    return s;
}

static void units_with_a_longer_step_have_a_raster_of_their_own(void** state)
{
    const char* path = TEST_BUILD_DIR "/master_rasters.mf4";
    crd_system* s = two_rates(*state, path);
    run(*state, s, NULL);
    crd_system_destroy(s);
    crd_recording* r = open_recording(*state, path);
    const crd_recording_info* info = crd_recording_describe(r);
    check_int(info->group_count, 3);
    check_text(info->groups[0].name, "5 ms");
    check_text(info->groups[1].name, "50 ms");
    check_text(info->groups[2].name, "10 ms");
    check_int(info->groups[0].rows, 202);
    check_int(info->groups[1].rows, 21);
    check_int(info->groups[2].rows, 101);
    crd_recording_close(r);
    crd_table* t = NULL;
    check_ok(crd_table_read(*state, path, &t));
    const crd_table_column* y = &t->columns[crd_table_find(t, "slow.y")];
    check_int(y->rows, 21);
    for (int i = 0; i < 21; i++) {
        check_near(y->time[i], 0.05 * i, 1e-12);
        check_near(y->values[i], y->time[i], 1e-12);
    }
    const crd_table_column* fast = &t->columns[crd_table_find(t, "fast.y")];
    check_int(fast->rows, 202);
    check_near(fast->time[201], 1.005, 1e-12);
    crd_table_destroy(t);
}

static void rasters_are_named_in_the_unit_that_suits_them(void** state)
{
    const char* path = TEST_BUILD_DIR "/master_raster_names.mf4";
    static const struct {
        double step;
        const char* name;
    } cases[] = {{1, "1 s"}, {1e-3, "1 ms"}, {2.5e-3, "2.5 ms"}, {1e-6, "1 us"}, {1e-9, "1 ns"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        crd_system* s = new_system(*state, cases[i].step, 2 * cases[i].step);
        add_unit(s, "n", &noisy_model, 0);
        s->results.path = path;
        run(*state, s, NULL);
        crd_system_destroy(s);
        crd_recording* r = open_recording(*state, path);
        check_text(crd_recording_describe(r)->groups[0].name, cases[i].name);
        crd_recording_close(r);
    }
}

static void a_file_of_one_raster_has_them_all(void** state)
{
    const char* path = TEST_BUILD_DIR "/master_rasters.csv";
    crd_system* s = two_rates(*state, path);
    run(*state, s, NULL);
    crd_system_destroy(s);
    crd_table* t = NULL;
    check_ok(crd_table_read(*state, path, &t));
    check_int(t->rows, 202);
    crd_table_destroy(t);
}

static void the_interval_is_that_of_the_shared_raster(void** state)
{
    const char* path = TEST_BUILD_DIR "/master_interval.mf4";
    crd_system* s = two_rates(*state, path);
    s->results.interval = 0.02; // slow.y comes every 50 ms: less often than that
    run(*state, s, NULL);
    crd_system_destroy(s);
    crd_recording* r = open_recording(*state, path);
    const crd_recording_info* info = crd_recording_describe(r);
    check_int(info->group_count, 2);
    check_text(info->groups[0].name, "20 ms");
    check_int(info->groups[0].rows, 52); // 0 to 1, and the end
    check_text(info->groups[1].name, "50 ms");
    crd_recording_close(r);
}

static void steps_do_not_allocate_with_several_rasters(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_system* s = two_rates(ctx, TEST_BUILD_DIR "/master_allocate.mf4");
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    const int64_t before = a.allocations;
    check_run(crd_master_advance(m, 150), ctx);
    check_int(a.allocations, before);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void names_of_an_enumeration_go_into_the_file(void** state)
{
    const char* path = TEST_BUILD_DIR "/master_labels.mf4";
    crd_system* s = new_system(*state, 0.1, 1);
    add_unit(s, "n", &noisy_model, 0);
    s->results.path = path;
    run(*state, s, NULL);
    crd_system_destroy(s);
    crd_recording* r = open_recording(*state, path);
    const crd_recording_info* info = crd_recording_describe(r);
    int seen = 0;
    for (int i = 0; i < info->signal_count; i++) {
        const crd_signal_info* x = &info->signals[i];
        if (strcmp(x->name, "n.mode") != 0) { continue; }
        seen = 1;
        check_int(x->label_count, 2);
        for (int k = 0; k < 2; k++) {
            check_text(x->labels[k].text, x->labels[k].value == 1 ? "cold" : "warm");
        }
    }
    check_int(seen, 1);
    crd_recording_close(r);
}

static void rows_and_events_do_not_depend_on_the_number_of_threads(void** state)
{
    const char* paths[] = {TEST_BUILD_DIR "/master_threads1.mf4",
                           TEST_BUILD_DIR "/master_threads3.mf4"};
    for (int k = 0; k < 2; k++) {
        crd_system* s = new_system(*state, 0.01, 2);
        char name[16];
        for (int i = 0; i < 12; i++) {
            snprintf(name, sizeof name, "n%d", i);
            add_unit(s, name, &noisy_model, i % 3 ? 0 : 0.04);
            set(s, i, "every", "0.2");
        }
        s->run.threads = k ? 3 : 1;
        s->results.path = paths[k];
        run(*state, s, NULL);
        crd_system_destroy(s);
    }
    crd_table *a = NULL, *b = NULL;
    check_ok(crd_table_read(*state, paths[0], &a));
    check_ok(crd_table_read(*state, paths[1], &b));
    check_int(a->column_count, 24);
    for (int i = 0; i < a->column_count; i++) {
        const crd_table_column *x = &a->columns[i], *y = &b->columns[i];
        check_text(x->name, y->name);
        check_int(x->rows, y->rows);
        check_int(memcmp(x->values, y->values, (size_t)x->rows * sizeof *x->values), 0);
        check_int(memcmp(x->time, y->time, (size_t)x->rows * sizeof *x->time), 0);
    }
    crd_table_destroy(a);
    crd_table_destroy(b);
    int counts[2];
    for (int k = 0; k < 2; k++) {
        crd_recording* r = open_recording(*state, paths[k]);
        counts[k] = count_events(crd_recording_describe(r), CRD_EVENT_WARNING);
        crd_recording_close(r);
    }
    check_int(counts[0], counts[1]);
    check_int(counts[0], 12 * 10);
}

// ---- events ------------------------------------------------------------------------------------

static void warnings_come_with_their_time(void** state)
{
    const char* path = TEST_BUILD_DIR "/master_events.mf4";
    crd_system* s = new_system(*state, 0.1, 1);
    add_unit(s, "n", &noisy_model, 0);
    add_unit(s, "lonely", &euler_model, 0); // its input is not connected: told at the start
    set(s, 0, "every", "0.3");
    s->results.path = path;
    run(*state, s, NULL);
    crd_system_destroy(s);
    crd_recording* r = open_recording(*state, path);
    const crd_recording_info* info = crd_recording_describe(r);
    check_int(count_events(info, CRD_EVENT_START), 1);
    check_int(count_events(info, CRD_EVENT_STOP), 1);
    check_int(count_events(info, CRD_EVENT_WARNING), 1 + 4);
    check_contains(event(info, CRD_EVENT_WARNING, 0)->text, "lonely.u is not connected");
    check_near(event(info, CRD_EVENT_WARNING, 0)->time, 0, 0);
    for (int k = 0; k < 4; k++) { // at the beginning of the step that complains
        check_near(event(info, CRD_EVENT_WARNING, k + 1)->time, 0.3 * k, 1e-9);
        check_contains(event(info, CRD_EVENT_WARNING, k + 1)->text, "something is odd");
    }
    check_text(event(info, CRD_EVENT_STOP, 0)->text, "stop time");
    check_near(event(info, CRD_EVENT_STOP, 0)->time, 1, 1e-9);
    const crdi_json* verdict = attached(*state, r, CRD_ATTACHMENT_VERDICT);
    check(verdict != NULL);
    check_text(text_at(verdict, "end"), "stop time");
    check_near(number_at(verdict, "warnings"), 5, 0);
    check_near(number_at(verdict, "steps"), 10, 0);
    check_near(number_at(verdict, "time"), 1, 1e-12);
    check_near(number_at(verdict, "rows"), 11, 0);
    check_text(text_at(verdict, "unit"), "");
    check_text(text_at(verdict, "message"), "");
    const crdi_json* unit = crdi_json_item(at(verdict, "units"), 1);
    check_text(text_at(unit, "name"), "lonely");
    check_near(number_at(unit, "steps"), 10, 0);
    check_int((int)crdi_json_count(at(verdict, "loops")), 0);
    crd_recording_close(r);
}

// How a run of the clock ends: what 1 wishes the end, 2 fails, 4 crashes.
static void check_end(crd_context* ctx, const char* what, const char* end, const char* stop,
                      const char* message)
{
    const char* path = TEST_BUILD_DIR "/master_end.mf4";
    crd_system* s = new_system(ctx, 0.1, 1);
    add_unit(s, "c", &clock_model, 0);
    set(s, 0, "what", what);
    set(s, 0, "when", "0.45");
    s->results.path = path;
    crd_master_options opt = crd_master_defaults();
    opt.guard_crashes = true;
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, &opt, &m), ctx);
    const crd_status st = crd_master_run(m);
    check(message[0] ? st < 0 : st == CRD_OK);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_recording* r = open_recording(ctx, path);
    const crd_recording_info* info = crd_recording_describe(r);
    check(!info->unfinished);
    check_text(event(info, CRD_EVENT_STOP, 0)->text, stop);
    check_int(count_events(info, CRD_EVENT_ERROR), message[0] != 0);
    const crdi_json* verdict = attached(ctx, r, CRD_ATTACHMENT_VERDICT);
    check(verdict != NULL);
    check_text(text_at(verdict, "end"), end);
    check_text(text_at(verdict, "unit"), "c");
    check_contains(text_at(verdict, "message"), message);
    if (message[0]) {
        check_contains(event(info, CRD_EVENT_ERROR, 0)->text, message);
        check_near(event(info, CRD_EVENT_ERROR, 0)->time, 0.4, 1e-9);
    }
    crd_recording_close(r);
}

static void every_end_is_in_the_file(void** state)
{
    check_end(*state, "1", "unit", "unit 'c' wished the end", "");
    check_end(*state, "2", "failed", "failed", "unit 'c' at t = 0.4: ");
    check_end(*state, "4", "failed", "failed", "unit 'c' at t = 0.4: crashed in ");
}

// A unit may have crashed inside malloc: what follows must do without.
static void after_a_crash_nothing_is_allocated_until_the_file_is_closed(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_system* s = new_system(ctx, 0.1, 1);
    add_unit(s, "c", &clock_model, 0);
    add_unit(s, "e", &euler_model, 0);
    wire(s, 0, "y", 1, "u");
    set(s, 0, "what", "4");
    set(s, 0, "when", "0.45");
    s->results.path = TEST_BUILD_DIR "/master_crash.mf4";
    crd_master_options opt = crd_master_defaults();
    opt.guard_crashes = true;
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, &opt, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    const int64_t before = a.allocations, live = a.live;
    check_status(crd_master_advance(m, 100), CRD_E_CRASH);
    check_ok(crd_master_finish(m));
    check_int(a.allocations, before);
    check_int(a.live, live);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_recording* r = open_recording(ctx, TEST_BUILD_DIR "/master_crash.mf4");
    const crdi_json* verdict = attached(ctx, r, CRD_ATTACHMENT_VERDICT);
    check(verdict != NULL);
    check_contains(text_at(verdict, "message"), "crashed");
    crd_recording_close(r);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void a_run_that_was_given_up_is_interrupted(void** state)
{
    const char* path = TEST_BUILD_DIR "/master_given_up.mf4";
    crd_system* s = new_system(*state, 0.1, 1);
    add_unit(s, "c", &clock_model, 0);
    s->results.path = path;
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_initialize(m), *state);
    check_run(crd_master_advance(m, 3), *state);
    crd_text t;
    crd_text_init(&t, *state);
    check_run(crd_master_describe_verdict(m, &t), *state);
    const crdi_json* so_far = parsed(&t);
    check(json_is(at(so_far, "end"), CRDI_JSON_NULL));
    check_near(number_at(so_far, "steps"), 3, 0);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_recording* r = open_recording(*state, path);
    const crdi_json* verdict = attached(*state, r, CRD_ATTACHMENT_VERDICT);
    check_text(text_at(verdict, "end"), "interrupted");
    check_near(number_at(verdict, "steps"), 3, 0);
    crd_recording_close(r);
}

// ---- what ran ----------------------------------------------------------------------------------

static const char* write_file(const char* name, const char* text)
{
    static char path[512];
    snprintf(path, sizeof path, TEST_BUILD_DIR "/%s", name);
    FILE* f = fopen(path, "w");
    check(f != NULL);
    fputs(text, f);
    check_int(fclose(f), 0);
    return path;
}

static crd_system* a_bit_of_everything(crd_context* ctx)
{
    static const crd_map_entry map[] = {{"cold", "1"}, {"warm", "2"}};
    crd_system* s = new_system(ctx, 0.1, 1);
    const int n = add_unit(s, "n \"quoted\"", &noisy_model, 0.2);
    const int e = add_unit(s, "e", &euler_model, 0);
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = "cycle";
    u.source = CRD_UNIT_REPLAY;
    u.path = TEST_BUILD_DIR "/master_what_ran.csv";
    check_ok(crd_system_add_unit(s, &u, NULL));
    set(s, e, "a", "2.5");
    set(s, e, "b", "0"); // as it is anyway
    set(s, n, "every", "300 ms");
    wire(s, 2, "v", e, "u")->predict = CRD_PREDICTION_LINEAR;
    s->connections[0].gain = 2;
    s->connections[0].has_transformation = true;
    const int g = add_unit(s, "g", &euler_model, 0);
    crd_connection_spec* c = wire(s, n, "mode", g, "u");
    c->map = map;
    c->map_count = 2;
    s->title = "everything";
    return s;
}

static void check_what_ran(const crdi_json* j)
{
    check_near(number_at(j, "format"), 1, 0);
    check_text(text_at(j, "cardan"), crd_version());
    check_text(text_at(at(j, "system"), "title"), "everything");
    check(json_is(at(at(j, "system"), "sha256"), CRDI_JSON_NULL));
    struct tm started = {0};
    check(strptime(text_at(j, "started"), "%Y-%m-%dT%H:%M:%SZ", &started));
    check_near((double)timegm(&started), (double)time(NULL), 600); // whatever the time zone
    check(number_at(at(j, "machine"), "processors") >= 1);
    const crdi_json* run = at(j, "run");
    check_near(number_at(run, "stop"), 1, 0);
    check_near(number_at(run, "step"), 0.1, 1e-15);
    check(json_is(at(run, "tolerance"), CRDI_JSON_NULL));
    check_text(text_at(run, "scheme"), "jacobi");
    check_near(number_at(run, "threads"), 1, 0);
    const crdi_json* units = at(j, "units");
    check_int((int)crdi_json_count(units), 4);
    const crdi_json* n = crdi_json_item(units, 0);
    check_text(text_at(n, "name"), "n \"quoted\"");
    check_near(number_at(n, "step"), 0.2, 1e-15);
    check_near(number_at(n, "outputs"), 2, 0);
    const crdi_json* every = crdi_json_item(at(n, "parameters"), 0);
    check_text(text_at(every, "name"), "every");
    check_text(text_at(every, "value"), "0.3");
    check_text(text_at(every, "start"), "0");
    check_text(text_at(every, "unit"), "s");
    const crdi_json* e = crdi_json_item(units, 1);
    check_int((int)crdi_json_count(at(e, "parameters")), 1); // b is what it was
    check(json_is(at(e, "file"), CRDI_JSON_NULL));
    const crdi_json* cycle = crdi_json_item(units, 2);
    check_text(text_at(cycle, "kind"), "recording");
    check_contains(text_at(cycle, "file"), "master_what_ran.csv");
    check_text(text_at(cycle, "sha256"),
               "702078a3c12f4ccdf76daba736949a3211f317e3148f8d23d11b45284a9cab20");
    const crdi_json* first = crdi_json_item(at(j, "connections"), 0);
    check_text(text_at(first, "from"), "cycle.v");
    check_text(text_at(first, "to"), "e.u");
    check_near(number_at(first, "gain"), 2, 0);
    check_text(text_at(first, "predict"), "linear");
    check(!crdi_json_get_bool(first, "mapped", true));
    check(crdi_json_get_bool(crdi_json_item(at(j, "connections"), 1), "mapped", false));
}

static void what_runs_is_told_before_and_in_the_file(void** state)
{
    const char* path = TEST_BUILD_DIR "/master_what_ran.mf4";
    write_file("master_what_ran.csv", "time,v\n0,0\n10,36\n20,72\n");
    setenv("TZ", "XXX-5", 1);
    tzset();
    crd_system* s = a_bit_of_everything(*state);
    s->results.path = path;
    crd_master* m = NULL;
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    crd_text t;
    crd_text_init(&t, *state);
    check_run(crd_master_describe_run(m, &t), *state);
    const crdi_json* j = parsed(&t);
    check_what_ran(j);
    check_near(number_at(j, "signals"), 5, 0);
    check_int((int)crdi_json_count(at(j, "rasters")), 2);
    check_text(text_at(crdi_json_item(at(j, "rasters"), 1), "name"), "200 ms");
    check_near(number_at(crdi_json_item(at(j, "rasters"), 1), "interval"), 0.2, 1e-15);
    check_run(crd_master_run(m), *state);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_recording* r = open_recording(*state, path);
    j = attached(*state, r, CRD_ATTACHMENT_RUN);
    check(j != NULL);
    check_what_ran(j);
    crd_recording_close(r);
    unsetenv("TZ");
    tzset();
}

static void the_description_goes_into_the_file_as_it_was_read(void** state)
{
    static const char yaml[] = "cardan: 1\n"
                               "units:\n"
                               "  s: { signal: { shape: sine, frequency: 1 } }\n"
                               "run: { step: 100 ms, stop: 1 s }\n";
    crd_system* s = NULL;
    check_run(crd_system_load(*state, write_file("master_described.yaml", yaml), &s), *state);
    s->results.path = TEST_BUILD_DIR "/master_described.mf4";
    run(*state, s, NULL);
    crd_system_destroy(s);
    crd_recording* r = open_recording(*state, TEST_BUILD_DIR "/master_described.mf4");
    const crd_recording_info* info = crd_recording_describe(r);
    bool seen = false;
    for (int i = 0; i < info->attachment_count; i++) {
        if (strcmp(info->attachments[i].name, "master_described.yaml") != 0) { continue; }
        char* data = NULL;
        size_t length = 0;
        check_text(info->attachments[i].mime, "application/yaml");
        check_ok(crd_recording_attachment(r, i, &data, &length));
        check_int(length, sizeof yaml - 1);
        check_text(data, yaml);
        crd_free(*state, data);
        seen = true;
    }
    check(seen);
    const crdi_json* j = attached(*state, r, CRD_ATTACHMENT_RUN);
    check_int((int)strlen(text_at(at(j, "system"), "sha256")), 64);
    crd_recording_close(r);
}

// ---- drive cycles ------------------------------------------------------------------------------

// x' = v with v in m/s
typedef struct {
    double v, y, x;
} car;

static crd_model_status car_initialize(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static void car_outputs(void* self, double t)
{
    (void)t;
    ((car*)self)->y = ((car*)self)->x;
}

static crd_model_status car_step(void* self, const crd_model_host* host, double t, double h,
                                 double* reached)
{
    (void)host;
    ((car*)self)->x += h * ((car*)self)->v;
    *reached = t + h;
    return CRD_MODEL_OK;
}

static const crd_model_variable car_rows[] = {
    {.name = "v",
     .type = CRD_FLOAT64,
     .causality = CRD_INPUT,
     .offset = offsetof(car, v),
     .unit = "m/s"},
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(car, y),
     .unit = "m",
     .depends = ""},
};
static const crd_model car_model = {.name = "car",
                                    .description = "drives",
                                    .size = sizeof(car),
                                    .variables = car_rows,
                                    .variable_count = 2,
                                    .default_step = 0.1,
                                    .default_stop = 1,
                                    .initialize = car_initialize,
                                    .outputs = car_outputs,
                                    .step = car_step};

static void a_drive_cycle_in_kilometres_per_hour_drives_a_car(void** state)
{
    static const char* const cycles[] = {"time,v\n[s],[km/h]\n0,0\n10,36\n20,36\n30,0\n",
                                         "time,v\n0,0\n10,36\n20,36\n30,0\n"};
    static const crd_column_spec column = {.name = "v", .unit = "km/h"};
    for (int k = 0; k < 2; k++) {
        crd_system* s = new_system(*state, 0.01, 30);
        const int c = add_unit(s, "car", &car_model, 0);
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = "cycle";
        u.source = CRD_UNIT_REPLAY;
        u.path = write_file("master_cycle.csv", cycles[k]);
        if (k) {
            u.columns = &column;
            u.column_count = 1;
        }
        int r = -1;
        check_ok(crd_system_add_unit(s, &u, &r));
        wire(s, r, "v", c, "v");
        crd_master* m = NULL;
        check_run(crd_master_create(*state, s, NULL, &m), *state);
        check_run(crd_master_run(m), *state);
        check_near(value(m, "car.y"), 50 + 100 + 50, 0.1); // m, Euler
        crd_master_destroy(m);
        crd_system_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(units_with_a_longer_step_have_a_raster_of_their_own, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(rasters_are_named_in_the_unit_that_suits_them, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_file_of_one_raster_has_them_all, setup, teardown),
        cmocka_unit_test_setup_teardown(the_interval_is_that_of_the_shared_raster, setup, teardown),
        cmocka_unit_test(steps_do_not_allocate_with_several_rasters),
        cmocka_unit_test_setup_teardown(names_of_an_enumeration_go_into_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_and_events_do_not_depend_on_the_number_of_threads,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(warnings_come_with_their_time, setup, teardown),
        cmocka_unit_test_setup_teardown(every_end_is_in_the_file, setup, teardown),
        cmocka_unit_test(after_a_crash_nothing_is_allocated_until_the_file_is_closed),
        cmocka_unit_test_setup_teardown(a_run_that_was_given_up_is_interrupted, setup, teardown),
        cmocka_unit_test_setup_teardown(what_runs_is_told_before_and_in_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(the_description_goes_into_the_file_as_it_was_read, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_drive_cycle_in_kilometres_per_hour_drives_a_car, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
