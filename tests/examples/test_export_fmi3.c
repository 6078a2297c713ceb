// The functions that an exported FMU offers for FMI 3.0, over several models in this process.
#include "cardan/model.h"
#include "check.h"

extern const crd_model crd_model_types, crd_model_chain, crd_model_feedthrough, crd_model_faulty,
    crd_model_events, crd_model_lo_fd2, crd_model_lo_ffspring, crd_model_rot_2;
static const crd_model* under_test;
#include "fmu_model.h"
#define fmu_model under_test
static int interfaces_under_test;
#define fmu_interfaces interfaces_under_test
#include "fmi3.c"

static char last_message[512];

static void log_message(void* environment, fmi3Status status, const char* category,
                        const char* message)
{
    (void)environment;
    (void)status;
    (void)category;
    snprintf(last_message, sizeof last_message, "%s", message);
}

static fmi3Instance instantiate(const crd_model* m, bool events)
{
    char token[40];
    under_test = m;
    fmu_token(m, token);
    fmi3Instance c = fmi3InstantiateCoSimulation("unit", token, "/tmp/x/", false, false, events,
                                                 events, NULL, 0, NULL, log_message, NULL);
    check(c != NULL);
    check_text(((fmu*)c)->resources, "/tmp/x");
    return c;
}

static void initialize(fmi3Instance c)
{
    check_int(fmi3EnterInitializationMode(c, false, 0, 0, false, 0), fmi3OK);
    check_int(fmi3ExitInitializationMode(c), fmi3OK);
}

static uint32_t reference(const char* name)
{
    for (int i = 0; i < under_test->variable_count; i++) {
        if (strcmp(under_test->variables[i].name, name) == 0) { return (uint32_t)i; }
    }
    fail_msg("no variable %s", name);
    return 0;
}

static double get(fmi3Instance c, const char* name)
{
    const uint32_t r = reference(name);
    double value = NAN;
    check_int(fmi3GetFloat64(c, &r, 1, &value, 1), fmi3OK);
    return value;
}

static fmi3Status set(fmi3Instance c, const char* name, double value)
{
    const uint32_t r = reference(name);
    return fmi3SetFloat64(c, &r, 1, &value, 1);
}

typedef struct step_result {
    bool event, terminate, early;
    double time;
} step_result;

static fmi3Status step(fmi3Instance c, double t, double h, step_result* r)
{
    return fmi3DoStep(c, t, h, true, &r->event, &r->terminate, &r->early, &r->time);
}

// ------------------------------------------------------------------------------------------------

#define PASSES(c, kind, ctype, name, a)                                                            \
    do {                                                                                           \
        const uint32_t in = reference("in_" name), out = reference("out_" name);                   \
        const ctype value = (a);                                                                   \
        ctype back = 0;                                                                            \
        check_int(fmi3Set##kind(c, &in, 1, &value, 1), fmi3OK);                                    \
        check_int(fmi3Get##kind(c, &out, 1, &back, 1), fmi3OK);                                    \
        check(back == value);                                                                      \
    } while (0)

static void every_type_passes_through(void** state)
{
    fmi3Instance c = instantiate(&crd_model_types, false);
    initialize(c);
    PASSES(c, Float64, double, "f64", -1e300);
    PASSES(c, Float32, float, "f32", 1.5f);
    PASSES(c, Int8, int8_t, "i8", INT8_MIN);
    PASSES(c, UInt8, uint8_t, "u8", UINT8_MAX);
    PASSES(c, Int16, int16_t, "i16", INT16_MIN);
    PASSES(c, UInt16, uint16_t, "u16", UINT16_MAX);
    PASSES(c, Int32, int32_t, "i32", INT32_MIN);
    PASSES(c, UInt32, uint32_t, "u32", UINT32_MAX);
    PASSES(c, Int64, int64_t, "i64", INT64_MIN);
    PASSES(c, UInt64, uint64_t, "u64", UINT64_MAX);
    PASSES(c, Int64, int64_t, "e", 3);
    PASSES(c, Boolean, bool, "b", false);
    const uint32_t e = reference("in_e");
    const int64_t wrong = 4;
    check_int(fmi3SetInt64(c, &e, 1, &wrong, 1), fmi3Error);
    check_contains(last_message, "expected 1 to 3");
    // arrays and scalars in one call
    const uint32_t in[] = {reference("in_f64s"), reference("in_f64")};
    const uint32_t out[] = {reference("out_f64"), reference("out_f64s")};
    const double values[] = {1, 2, 3, 4};
    double back[4];
    check_int(fmi3SetFloat64(c, in, 2, values, 4), fmi3OK);
    check_int(fmi3GetFloat64(c, out, 2, back, 4), fmi3OK);
    check_near(back[0], 4, 0);
    check_near(back[3], 3, 0);
    check_int(fmi3SetFloat64(c, in, 2, values, 3), fmi3Error);
    check_int(fmi3GetFloat64(c, out, 1, back, 4), fmi3Error);
    const uint32_t time = (uint32_t)under_test->variable_count;
    check_int(fmi3GetFloat64(c, &time, 1, back, 1), fmi3OK);
    check_near(back[0], 0, 0);
    check_int(fmi3SetFloat64(c, &time, 1, back, 1), fmi3Error);
    fmi3FreeInstance(c);
}

static void strings_and_binaries_pass_through(void** state)
{
    fmi3Instance c = instantiate(&crd_model_types, false);
    initialize(c);
    uint32_t r = reference("par_out_bin");
    size_t size = 0;
    const uint8_t* bytes = NULL;
    check_int(fmi3GetBinary(c, &r, 1, &size, &bytes, 1), fmi3OK);
    check_int(size, 3);
    check_int(memcmp(bytes, "\x00\xff\x10", 3), 0);
    r = reference("in_bin");
    const uint8_t some[40] = {9, 8, 7};
    const uint8_t* p = some;
    size = 3;
    check_int(fmi3SetBinary(c, &r, 1, &size, &p, 1), fmi3OK);
    size = 33;
    check_int(fmi3SetBinary(c, &r, 1, &size, &p, 1), fmi3Error);
    check_contains(last_message, "room for 32 bytes, not 33");
    r = reference("out_bin");
    check_int(fmi3GetBinary(c, &r, 1, &size, &bytes, 1), fmi3OK);
    check_int(size, 3);
    check_int(bytes[0], 9);
    r = reference("in_bin");
    size = 0;
    p = NULL;
    check_int(fmi3SetBinary(c, &r, 1, &size, &p, 1), fmi3OK);
    r = reference("in_ss");
    const char* const texts[] = {"one", ""};
    check_int(fmi3SetString(c, &r, 1, texts, 2), fmi3OK);
    check_int(fmi3SetString(c, &r, 1, texts, 1), fmi3Error);
    r = reference("out_ss");
    const char* back[2];
    check_int(fmi3GetString(c, &r, 1, back, 2), fmi3OK);
    check_text(back[0], "one");
    check_text(back[1], "");
    last_message[0] = 0;
    check_int(fmi3SetString(c, &r, 1, texts, 2), fmi3Error);
    check_contains(last_message, "out_ss cannot be set now");
    r = reference("out_bin");
    size = 3;
    p = some;
    last_message[0] = 0;
    check_int(fmi3SetBinary(c, &r, 1, &size, &p, 1), fmi3Error);
    check_contains(last_message, "out_bin cannot be set now");
    fmi3FreeInstance(c);
}

static void only_co_simulation_is_offered(void** state)
{
    char token[40];
    under_test = &crd_model_chain;
    fmu_token(under_test, token);
    check(!fmi3InstantiateModelExchange("a", token, NULL, 0, 0, NULL, log_message));
    check_contains(last_message, "Co-Simulation");
    check(!fmi3InstantiateScheduledExecution("a", token, NULL, 0, 0, NULL, log_message, NULL, NULL,
                                             NULL));
    check(!fmi3InstantiateCoSimulation("a", token, NULL, 0, 0, true, false, NULL, 0, NULL,
                                       log_message, NULL));
    check_contains(last_message, "no event mode");
    check(!fmi3InstantiateCoSimulation("a", "other", NULL, 0, 0, false, false, NULL, 0, NULL, NULL,
                                       NULL));
    check_text(fmi3GetVersion(), "3.0");
    fmi3Instance c = instantiate(&crd_model_chain, false);
    bool clock = false;
    const uint32_t u = 0;
    check_int(fmi3GetClock(c, NULL, 0, NULL), fmi3OK);
    check_int(fmi3GetClock(c, &u, 1, &clock), fmi3Error);
    check_int(fmi3EnterConfigurationMode(c), fmi3Error);
    check_int(fmi3EnterEventMode(c), fmi3Error);
    check_int(fmi3EnterEventMode(NULL), fmi3Error);
    check_int(fmi3SetTime(c, 0), fmi3Error);
    check_int(fmi3ActivateModelPartition(c, 0, 0), fmi3Error);
    fmi3FreeInstance(c);
}

static void faults_come_as_their_codes(void** state)
{
    const fmi3Status want[] = {fmi3OK,    fmi3Warning, fmi3Discard, fmi3Error,
                               fmi3Fatal, fmi3OK,      fmi3OK};
    for (int mode = 0; mode < 7; mode++) {
        fmi3Instance c = instantiate(&crd_model_faulty, false);
        const uint32_t r = reference("mode");
        step_result out;
        check_int(fmi3SetInt32(c, &r, 1, &mode, 1), fmi3OK);
        initialize(c);
        check_int(step(c, 0, 0.5, &out), fmi3OK);
        check_int(step(c, 0.5, 0.5, &out), want[mode]);
        check_int(out.terminate, mode == 6);
        check_near(out.time, mode >= 2 && mode <= 4 ? 0.5 : 1, 0);
        if (mode == 4) { check_int(fmi3Reset(c), fmi3Error); }
        fmi3FreeInstance(c);
    }
}

static void event_mode_and_early_return_bring_the_importer_to_the_impact(void** state)
{
    fmi3Instance c = instantiate(&crd_model_events, true);
    fmi3Instance alone = instantiate(&crd_model_events, false);
    initialize(c);
    initialize(alone);
    bool again, stop, nominals, values, defined;
    double next;
    step_result out;
    check_int(step(c, 0, 0.1, &out), fmi3Error); // still in event mode
    check_int(fmi3UpdateDiscreteStates(c, &again, &stop, &nominals, &values, &defined, &next),
              fmi3OK);
    check(!again && !stop && !defined);
    check_int(fmi3EnterStepMode(c), fmi3OK);
    double t = 0;
    int impacts = 0;
    for (int k = 1; k <= 10;) {
        check_int(step(c, t, k * 0.1 - t, &out), fmi3OK);
        check_int(out.early || out.event, out.event);
        t = out.time;
        if (out.event) {
            impacts++;
            check_near(get(c, "height"), 0, 0);
            check(get(c, "velocity") < 0);
            check_int(fmi3EnterEventMode(c), fmi3OK);
            check_int(
                fmi3UpdateDiscreteStates(c, &again, &stop, &nominals, &values, &defined, &next),
                fmi3OK);
            check(get(c, "velocity") > 0);
            check_int(fmi3EnterStepMode(c), fmi3OK);
        }
        if (!out.early) {
            t = k * 0.1;
            k++;
        }
    }
    check_int(impacts, 1);
    for (int k = 0; k < 10; k++) {
        check_int(step(alone, k * 0.1, 0.1, &out), fmi3OK);
        check(!out.event && !out.early);
    }
    check_near(get(c, "height"), get(alone, "height"), 1e-13);
    fmi3FreeInstance(c);
    fmi3FreeInstance(alone);
}

static double parabola(double t)
{
    return 5 + 4 * t + 3 * t * t;
}

static void give_inputs(void* environment, double time, bool set_requested, bool get_allowed,
                        bool finished, bool may_return, bool* return_early, double* early_time)
{
    (void)get_allowed;
    (void)early_time;
    fmi3Instance c = *(fmi3Instance*)environment;
    const uint32_t f = reference("f"), m = reference("m2");
    const double value = parabola(time);
    *return_early = false;
    check(set_requested && !finished && !may_return);
    check_int(fmi3SetFloat64(c, &f, 1, &value, 1), fmi3OK);
    check_int(fmi3SetFloat64(c, &m, 1, &value, 1), fmi3Error);
    check_int(fmi3Reset(c), fmi3Error); // nothing else is allowed in there
}

static void intermediate_update_is_exact_for_parabolas(void** state)
{
    char token[40];
    under_test = &crd_model_lo_fd2;
    fmu_token(under_test, token);
    const uint32_t f = reference("f");
    fmi3Instance c = NULL;
    c = fmi3InstantiateCoSimulation("unit", token, NULL, false, false, false, false, &f, 1, &c,
                                    log_message, give_inputs);
    check(c != NULL);
    initialize(c);
    fmu* direct = instantiate(under_test, false);
    initialize(direct);
    step_result out;
    for (int k = 0; k < 10; k++) {
        check_int(set(c, "f", parabola(k * 0.1)), fmi3OK);
        check_int(set(direct, "f", parabola(k * 0.1)), fmi3OK);
        check_int(fmu_set_input_derivative(direct, f, 1, 4 + 6 * k * 0.1, "set"), FMU_OK);
        check_int(fmu_set_input_derivative(direct, f, 2, 6, "set"), FMU_OK);
        check_int(step(c, k * 0.1, 0.1, &out), fmi3OK);
        check_int(step(direct, k * 0.1, 0.1, &out), fmi3OK);
        check_near(get(c, "x2"), get(direct, "x2"), 1e-12);
        check_near(get(c, "f"), parabola((k + 1) * 0.1), 1e-12);
    }
    fmi3FreeInstance(c);
    fmi3FreeInstance(direct);
}

static void directional_and_adjoint_derivatives_are_transposed(void** state)
{
    fmi3Instance c = instantiate(&crd_model_lo_ffspring, false);
    initialize(c);
    const uint32_t y = reference("f");
    const uint32_t u[] = {reference("x1"), reference("v1"), reference("x2"), reference("v2")};
    const double seed[] = {1, 10, 2, 10}, one = 1;
    double d = 0, row[4];
    check_int(fmi3GetDirectionalDerivative(c, &y, 1, u, 4, seed, 4, &d, 1), fmi3OK);
    check_near(d, 100 * (1 - 2), 0);
    check_int(fmi3GetAdjointDerivative(c, &y, 1, u, 4, &one, 1, row, 4), fmi3OK);
    check_near(row[0], 100, 0);
    check_near(row[2], -100, 0);
    check_int(fmi3GetDirectionalDerivative(c, &y, 1, u, 4, seed, 3, &d, 1), fmi3Error);
    step_result out;
    check_int(step(c, 0, 0.1, &out), fmi3OK); // a unit without states can be stepped
    fmi3FreeInstance(c);
}

static void states_and_output_derivatives_work_as_in_fmi_2(void** state)
{
    fmi3Instance c = instantiate(&crd_model_rot_2, false);
    initialize(c);
    step_result out;
    check_int(step(c, 0, 0.1, &out), fmi3OK);
    fmi3FMUState saved = NULL;
    check_int(fmi3GetFMUState(c, &saved), fmi3OK);
    check_int(step(c, 0.1, 0.1, &out), fmi3OK);
    const double y = get(c, "omega2");
    size_t size = 0;
    check_int(fmi3SerializedFMUStateSize(c, saved, &size), fmi3OK);
    uint8_t* bytes = malloc(size);
    check_int(fmi3SerializeFMUState(c, saved, bytes, size), fmi3OK);
    check_int(fmi3FreeFMUState(c, &saved), fmi3OK);
    check_int(fmi3DeserializeFMUState(c, bytes, size, &saved), fmi3OK);
    check_int(fmi3SetFMUState(c, saved), fmi3OK);
    check_int(step(c, 0.1, 0.1, &out), fmi3OK);
    check_near(get(c, "omega2"), y, 0);
    check_int(fmi3FreeFMUState(c, &saved), fmi3OK);
    free(bytes);
    const uint32_t r = reference("phi2");
    const int32_t order = 1;
    double d = 0;
    check_int(fmi3GetOutputDerivatives(c, &r, 1, &order, &d, 1), fmi3OK);
    check_near(d, y, 0);
    check_int(fmi3Terminate(c), fmi3OK);
    check_int(step(c, 0.2, 0.1, &out), fmi3Error);
    check_int(fmi3Reset(c), fmi3OK);
    initialize(c);
    fmi3FreeInstance(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_passes_through),
        cmocka_unit_test(strings_and_binaries_pass_through),
        cmocka_unit_test(only_co_simulation_is_offered),
        cmocka_unit_test(faults_come_as_their_codes),
        cmocka_unit_test(event_mode_and_early_return_bring_the_importer_to_the_impact),
        cmocka_unit_test(intermediate_update_is_exact_for_parabolas),
        cmocka_unit_test(directional_and_adjoint_derivatives_are_transposed),
        cmocka_unit_test(states_and_output_derivatives_work_as_in_fmi_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
