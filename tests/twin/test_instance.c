// A twin as a model: its rows, its steps, what it says of sensors, its states.
#include "check.h"
#include "noise.h"
#include "shared/twin_model.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char circuit[] = "rc\n.input q unit=W start=10\n.thermal\nheat q0 1 input(q)\n"
                              "heat q1 3 0\nresistance r1 1 2 1\n"
                              "resistance r2 2 3 2\nresistance r3 3 0 3\n"
                              "capacity c1 2 0.1 start=-1\ncapacity c2 3 0.2 start=1\n.endthermal\n"
                              ".output T1=t(1) T2=t(2) T3=t(3)\n.tran 1m 5 uic\n.end\n";
static const char following[] =
    "{ \"step\": \"1 ms\", \"sensors\": { \"T2\": { \"sd\": 0.5 }, \"T3\": { \"sd\": 0.5 } },"
    " \"sources\": { \"q1\": { \"model\": \"walk\", \"noise\": 1e-4, \"sd\": 3 } } }";
static const char finding[] =
    "{ \"step\": \"1 ms\", \"sensors\": { \"T2\": { \"sd\": 0.5 }, \"T3\": { \"sd\": 0.5 } },"
    " \"parameters\": { \"r2\": { \"start\": 3 } } }";

static const char as_published[] =
    "{ \"step\": \"1 ms\", \"sensors\": { \"T2\": { \"sd\": 0.5 }, \"T3\": { \"sd\": 0.5 } },"
    " \"parameters\": { \"r2\": { \"start\": 3 } }, \"filter\": \"thesis\" }";

typedef struct fixture {
    check_allocator memory;
    crd_context* ctx;
    crd_netlist* n;
} fixture;

static int set_up(void** state)
{
    static fixture f;
    f.ctx = check_context(&f.memory);
    f.n = NULL;
    if (crd_netlist_parse(f.ctx, circuit, strlen(circuit), "rc.cir", NULL, &f.n) < 0) {
        fail_msg("%s", crd_error_text(f.ctx));
    }
    *state = &f;
    return 0;
}

static int tear_down(void** state)
{
    fixture* f = *state;
    crd_netlist_destroy(f->n);
    crd_context_destroy(f->ctx);
    check_int(f->memory.live, 0);
    return 0;
}

static crd_twin_description* parse(crd_context* ctx, const crd_netlist* n, const char* json)
{
    crd_twin_description* d = NULL;
    if (crd_twin_parse(ctx, json, strlen(json), "t.json", 1, n, &d) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return d;
}

static const crd_model* make(fixture* f, const char* json)
{
    const crd_model* m = NULL;
    crd_twin_description* d = parse(f->ctx, f->n, json);
    if (crdi_twin_model_create(f->ctx, d, "t.json", "t", &m) < 0) {
        fail_msg("%s", crd_error_text(f->ctx));
    }
    return m;
}

// An instance, as an FMU has one.
typedef struct instance {
    const crd_model* m;
    char* self;
    char said[512];
    crd_model_host host;
} instance;

static void host_log(void* user, crd_model_status status, const char* text)
{
    instance* i = user;
    (void)status;
    snprintf(i->said, sizeof i->said, "%s", text);
}

static void start(instance* i, const crd_model* m)
{
    *i = (instance){.m = m, .self = calloc(1, m->size)};
    i->host = (crd_model_host){.user = i, .log = host_log, .resources = "", .model = m};
    crd_model_reset(m, i->self);
}

static void begin(instance* i, const crd_model* m)
{
    start(i, m);
    check_int(m->initialize(i->self, &i->host, 0), CRD_MODEL_OK);
    m->outputs(i->self, 0);
}

static void end(instance* i)
{
    i->m->clear(i->self);
    free(i->self);
}

static void* field(instance* i, const char* name)
{
    for (int k = 0; k < i->m->variable_count; k++) {
        if (strcmp(i->m->variables[k].name, name) == 0) {
            return i->self + i->m->variables[k].offset;
        }
    }
    fail_msg("there is no %s", name);
    return NULL;
}

static double* value(instance* i, const char* name)
{
    return field(i, name);
}

static int status(instance* i, const char* name)
{
    return *(const int32_t*)field(i, name);
}

static crd_model_status go(instance* i, double t, double h)
{
    double reached = t + h;
    const crd_model_status st = i->m->step(i->self, &i->host, t, h, &reached);
    i->m->outputs(i->self, t + h);
    return st;
}

static void rows_are_measurements_inputs_estimates_and_states_of_sensors(void** state)
{
    static const char* const names[] = {"T2.measured", "T3.measured", "q",        "T1",    "T1.sd",
                                        "T2",          "T2.sd",       "T3",       "T3.sd", "q1",
                                        "q1.sd",       "T2.status",   "T3.status"};
    const crd_model* m = make(*state, following);
    check_int(m->variable_count, (int)(sizeof names / sizeof *names));
    for (int i = 0; i < m->variable_count; i++) {
        check_text(m->variables[i].name, names[i]);
    }
    check_text(m->variables[0].unit, "K");
    check_text(m->variables[9].unit, "W");
    check(isnan(m->variables[0].start));
    check_near(m->variables[2].start, 10, 0);
    check_near(m->default_step, 1e-3, 0);
    check_near(m->default_stop, 5, 0);
    crdi_twin_model_destroy(m);
}

// The same measurements by hand and as a model, with a sensor that drops out in between.
static void steps_are_those_of_the_twin(fixture* f, const char* json, const char* unknown)
{
    const crd_model* m = make(f, json);
    crd_twin_description* d = parse(f->ctx, f->n, json);
    crd_twin* w = NULL;
    instance i;
    noise random = {.state = 7};
    check_ok(crd_twin_create(f->ctx, f->n, &d->spec, &w));
    check_ok(crd_twin_begin(w, 0));
    begin(&i, m);
    int64_t before = 0;
    for (int k = 0; k < 500; k++) {
        const double q = 10 + sin(0.01 * k);
        const double y[2] = {0.05 * k + 0.5 * noise_next(&random),
                             k > 100 && k < 200 ? (double)NAN : 1 + 0.5 * noise_next(&random)};
        crd_twin_set_input(w, 0, q);
        check_ok(crd_twin_step(w, y));
        *value(&i, "q") = q;
        *value(&i, "T2.measured") = y[0];
        *value(&i, "T3.measured") = y[1];
        if (k == 3) { before = f->memory.allocations; }
        check_int(go(&i, k * 1e-3, 1e-3), CRD_MODEL_OK);
        const crd_estimate e = crd_twin_output(w, 0);
        const crd_estimate u =
            d->spec.source_count ? crd_twin_source_now(w, 0) : crd_twin_parameter_now(w, 0);
        check_near(*value(&i, "T1"), e.value, 0);
        check_near(*value(&i, "T1.sd"), e.sd, 0);
        check_near(*value(&i, unknown), u.value, 0);
        check_int(status(&i, "T3.status") == CRDI_TWIN_MISSING, isnan(y[1]));
    }
    check_int(f->memory.allocations, before);
    end(&i);
    crd_twin_destroy(w);
    crd_twin_description_destroy(d);
    crdi_twin_model_destroy(m);
}

static void steps_of_the_model_are_those_of_the_twin_and_do_not_allocate(void** state)
{
    steps_are_those_of_the_twin(*state, following, "q1");
    steps_are_those_of_the_twin(*state, finding, "r2");
}

static void longer_steps_measure_at_their_end_and_others_are_refused(void** state)
{
    fixture* f = *state;
    const crd_model* m = make(f, following);
    crd_twin_description* d = parse(f->ctx, f->n, following);
    crd_twin* w = NULL;
    instance i;
    check_ok(crd_twin_create(f->ctx, f->n, &d->spec, &w));
    check_ok(crd_twin_begin(w, 0));
    begin(&i, m);
    for (int k = 1; k <= 20; k++) {
        const double y[2] = {k % 5 ? (double)NAN : 1.0 * k, k % 5 ? (double)NAN : 1.0};
        check_ok(crd_twin_step(w, y));
    }
    for (int k = 0; k < 4; k++) {
        double* y = value(&i, "T2.measured");
        y[0] = 5.0 * k; // moves to its value at the end of the step
        y[1] = 5 / 5e-3;
        *value(&i, "T3.measured") = 1;
        check_int(go(&i, k * 5e-3, 5e-3), CRD_MODEL_OK);
    }
    check_near(*value(&i, "T1"), crd_twin_output(w, 0).value, 1e-9);
    const double last = *value(&i, "T1");
    check_int(go(&i, 0.02, 1.5e-3), CRD_MODEL_ERROR);
    check_contains(i.said, "a communication step of 0.0015 s at 0.02 s, expected a multiple of the "
                           "twin's step of 0.001 s");
    check_int(go(&i, 0.02, 0.5e-3), CRD_MODEL_ERROR);
    check_near(*value(&i, "T1"), last, 0);
    check_int(go(&i, 0.02, 1e-3), CRD_MODEL_OK);
    end(&i);
    crd_twin_destroy(w);
    crd_twin_description_destroy(d);
    crdi_twin_model_destroy(m);
}

static void measure(instance* i, double t2, double t3)
{
    *value(i, "T2.measured") = t2;
    *value(i, "T3.measured") = t3;
}

static void bad_sensors_show_in_their_status(void** state)
{
    const crd_model* m = make(*state, following);
    instance i;
    noise random = {.state = 3};
    begin(&i, m);
    check_int(status(&i, "T2.status"), CRDI_TWIN_MISSING);
    int t = 0;
    for (; t < 3000; t++) {
        const double t2 = *value(&i, "T2"), t3 = *value(&i, "T3");
        measure(&i, t2 + 0.5 * noise_next(&random), t3 + 0.5 * noise_next(&random));
        check_int(go(&i, t * 1e-3, 1e-3), CRD_MODEL_OK);
    }
    check_int(status(&i, "T2.status"), CRDI_TWIN_GOOD);
    const double sure = *value(&i, "T2.sd");
    measure(&i, *value(&i, "T2") + 50, *value(&i, "T3"));
    check_int(go(&i, t++ * 1e-3, 1e-3), CRD_MODEL_OK);
    check_int(status(&i, "T2.status"), CRDI_TWIN_REFUSED);
    check_int(status(&i, "T3.status"), CRDI_TWIN_GOOD);
    for (int k = 0; k < 40; k++) {
        measure(&i, *value(&i, "T2") + 50 + k, *value(&i, "T3") + 0.5 * noise_next(&random));
        check_int(go(&i, t++ * 1e-3, 1e-3), CRD_MODEL_OK);
    }
    check_int(status(&i, "T2.status"), CRDI_TWIN_WILD);
    check(*value(&i, "T2.sd") > sure); // without it less is known
    const double same = *value(&i, "T3");
    for (int k = 0; k < 40; k++) {
        measure(&i, (double)NAN, same);
        check_int(go(&i, t++ * 1e-3, 1e-3), CRD_MODEL_OK);
    }
    check_int(status(&i, "T2.status"), CRDI_TWIN_MISSING);
    check_int(status(&i, "T3.status"), CRDI_TWIN_STUCK);
    end(&i);
    crdi_twin_model_destroy(m);
}

static void divergence_is_an_error_that_says_when(void** state)
{
    const crd_model* m = make(*state, following);
    instance i;
    crd_model_status st = CRD_MODEL_OK;
    begin(&i, m);
    for (int t = 0; t < 5000 && st == CRD_MODEL_OK; t++) {
        measure(&i, t % 2 ? 1e12 : -1e12, t % 2 ? -1e12 : 1e12); // nothing does that
        st = go(&i, t * 1e-3, 1e-3);
    }
    check_int(st, CRD_MODEL_ERROR);
    check_contains(i.said, "the filter diverged at t = ");
    end(&i);
    crdi_twin_model_destroy(m);
}

static void restored_states_go_on_as_before(fixture* f, const char* json)
{
    const crd_model* m = make(f, json);
    instance a, b;
    noise random = {.state = 11};
    double y[300][2];
    begin(&a, m);
    start(&b, m); // not initialised: the state is all it gets
    *value(&a, "q") = 0;
    for (int k = 0; k < 300; k++) {
        y[k][0] = 0.5 * noise_next(&random);
        y[k][1] = 1 + 0.5 * noise_next(&random);
    }
    for (int k = 0; k < 150; k++) {
        measure(&a, y[k][0], y[k][1]);
        check_int(go(&a, k * 1e-3, 1e-3), CRD_MODEL_OK);
    }
    const size_t size = m->outside(a.self);
    char* bytes = malloc(size);
    m->save(a.self, bytes);
    memcpy(b.self + m->kept, a.self + m->kept, m->size - m->kept);
    check_int(m->restore(b.self, &b.host, bytes, size), CRD_MODEL_OK);
    for (int k = 150; k < 300; k++) {
        measure(&a, y[k][0], y[k][1]);
        measure(&b, y[k][0], y[k][1]);
        check_int(go(&a, k * 1e-3, 1e-3), CRD_MODEL_OK);
        check_int(go(&b, k * 1e-3, 1e-3), CRD_MODEL_OK);
        check_near(*value(&b, "T1"), *value(&a, "T1"), 0);
        check_near(*value(&b, "T1.sd"), *value(&a, "T1.sd"), 0);
    }
    bytes[size / 2] ^= 1;
    check_int(m->restore(b.self, &b.host, bytes, size), CRD_MODEL_ERROR);
    check_contains(b.said, "damaged");
    check_int(m->restore(b.self, &b.host, bytes, size - 8), CRD_MODEL_ERROR);
    check_contains(b.said, "no state of this twin");
    check_int(m->restore(b.self, &b.host, NULL, 0), CRD_MODEL_OK); // before the initialisation
    check_int(go(&b, 0, 1e-3), CRD_MODEL_ERROR);
    free(bytes);
    end(&a);
    end(&b);
    crdi_twin_model_destroy(m);
}

static void a_restored_state_goes_on_as_before(void** state)
{
    restored_states_go_on_as_before(*state, following);
    restored_states_go_on_as_before(*state, finding);
    restored_states_go_on_as_before(*state, as_published);
}

static void a_packed_twin_is_read_as_it_was(void** state)
{
    fixture* f = *state;
    crd_text text;
    char message[300];
    const char* folder = TEST_BUILD_DIR "/packed_twin";
    (void)mkdir(folder, 0777);
    check(!crdi_twin_model_load(TEST_BUILD_DIR "/no_such_twin", message, sizeof message));
    check_contains(message, "no_such_twin/twin.json");
    crd_twin_description* d = parse(f->ctx, f->n, finding);
    crd_text_init(&text, f->ctx);
    check_ok(crdi_twin_model_pack(d, "packed", &text));
    FILE* file = fopen(TEST_BUILD_DIR "/packed_twin/twin.json", "w");
    fwrite(text.data, 1, text.length, file);
    fclose(file);
    file = fopen(TEST_BUILD_DIR "/packed_twin/circuit.cir", "w");
    fputs(circuit, file);
    fclose(file);
    const crd_model* m = crdi_twin_model_load(folder, message, sizeof message);
    if (!m) { fail_msg("%s", message); }
    // What is too large is refused, not cut off where it would still be readable.
    check_int(truncate(TEST_BUILD_DIR "/packed_twin/twin.json", (64 << 20) + 1), 0);
    check(!crdi_twin_model_load(folder, message, sizeof message));
    check_contains(message, "twin.json: larger than 64 MiB, expected the table of a twin");
    const crd_model* own = make(f, finding);
    check_text(m->name, "packed");
    check_int(m->variable_count, own->variable_count);
    for (int i = 0; i < m->variable_count; i++) {
        check_text(m->variables[i].name, own->variables[i].name);
    }
    instance a, b;
    begin(&a, m);
    begin(&b, own);
    for (int k = 0; k < 100; k++) {
        measure(&a, 0.1 * k, 1);
        measure(&b, 0.1 * k, 1);
        check_int(go(&a, k * 1e-3, 1e-3), CRD_MODEL_OK);
        check_int(go(&b, k * 1e-3, 1e-3), CRD_MODEL_OK);
    }
    check_near(*value(&a, "r2"), *value(&b, "r2"), 0);
    end(&a);
    end(&b);
    crdi_twin_model_destroy(m);
    crdi_twin_model_destroy(own);
    crd_twin_description_destroy(d);
    crd_text_clear(&text);
}

static void what_makes_no_model_is_refused(void** state)
{
    fixture* f = *state;
    static const struct {
        const char *json, *says;
    } bad[] = {
        {"{ \"sensors\": { \"T2\": { \"sd\": 1 } } }", "t.json: step is missing"},
        {"{ \"step\": 1, \"sensors\": {} }", "there is no sensor"},
        {"{ \"step\": 1, \"sensors\": { \"T2\": { \"sd\": 1 } }, \"parameters\": { \"T1\": { "
         "\"parts\": [\"r1\"] } } }",
         "two variables are called 'T1'"},
        {"{ \"step\": 1, \"sensors\": { \"T\\u00012\": { \"at\": \"T2\", \"sd\": 1 } } }",
         "control character"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const crd_model* m = NULL;
        crd_twin_description* d = parse(f->ctx, f->n, bad[i].json);
        check(crdi_twin_model_create(f->ctx, d, "t.json", "t", &m) < 0);
        check_contains(crd_error_text(f->ctx), bad[i].says);
        crd_twin_description_destroy(d);
    }
}

static void every_allocation_may_fail(void** state)
{
    for (int once = 0; once < 2; once++) {
        bool good = false;
        for (int fail_at = 0; !good; fail_at++) {
            check(fail_at < 5000);
            check_allocator a;
            crd_context* ctx = check_context(&a);
            crd_netlist* n = NULL;
            check_ok(crd_netlist_parse(ctx, circuit, strlen(circuit), "rc.cir", NULL, &n));
            crd_twin_description* d = parse(ctx, n, following);
            const int64_t before = a.live;
            a.allocations = 0;
            a.fail_at = fail_at;
            a.once = once;
            const crd_model* m = NULL;
            const crd_status st = crdi_twin_model_create(ctx, d, "t.json", "t", &m);
            check(st == CRD_OK || st == CRD_E_MEMORY);
            if (m) {
                instance i;
                start(&i, m);
                good = m->initialize(i.self, &i.host, 0) == CRD_MODEL_OK;
                check(good || strstr(i.said, "memory"));
                m->outputs(i.self, 0);
                end(&i);
                crdi_twin_model_destroy(m);
            } else {
                check_int(a.live, before);
                crd_twin_description_destroy(d);
            }
            crd_netlist_destroy(n);
            crd_context_destroy(ctx);
            check_int(a.live, 0);
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(rows_are_measurements_inputs_estimates_and_states_of_sensors),
        TEST(steps_of_the_model_are_those_of_the_twin_and_do_not_allocate),
        TEST(longer_steps_measure_at_their_end_and_others_are_refused),
        TEST(bad_sensors_show_in_their_status),
        TEST(divergence_is_an_error_that_says_when),
        TEST(a_restored_state_goes_on_as_before),
        TEST(a_packed_twin_is_read_as_it_was),
        TEST(what_makes_no_model_is_refused),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
