// The functions that an exported FMU offers for FMI 2.0, over several models in this process.
#include "cardan/model.h"
#include "check.h"

#include <stdio.h>

extern const crd_model crd_model_types, crd_model_chain, crd_model_feedthrough, crd_model_faulty,
    crd_model_events, crd_model_lo_fd2, crd_model_lo_mono, crd_model_rot_2;
static const crd_model* under_test;
#include "fmu_model.h"
#define fmu_model under_test
static int interfaces_under_test;
#define fmu_interfaces interfaces_under_test
#include "fmi2.c"

static char last_message[512];
static int messages;

static void logger(void* environment, const char* name, fmi2Status status, const char* category,
                   const char* message, ...)
{
    (void)environment;
    (void)status;
    check(name && category);
    va_list args;
    va_start(args, message);
    vsnprintf(last_message, sizeof last_message, message, args);
    va_end(args);
    messages++;
}

static const fmi2CallbackFunctions callbacks = {.logger = logger};

static fmi2Component instantiate(const crd_model* m)
{
    char token[40];
    under_test = m;
    messages = 0;
    fmu_token(m, token);
    fmi2Component c = fmi2Instantiate("unit", fmi2CoSimulation, token,
                                      "file:///tmp/a%20b/resources", &callbacks, 0, 0);
    check(c != NULL);
    check_text(((fmu*)c)->resources, "/tmp/a b/resources");
    return c;
}

static fmi2Component start(const crd_model* m)
{
    fmi2Component c = instantiate(m);
    check_int(fmi2SetupExperiment(c, 0, 0, 0, 0, 0), fmi2OK);
    check_int(fmi2EnterInitializationMode(c), fmi2OK);
    check_int(fmi2ExitInitializationMode(c), fmi2OK);
    return c;
}

static uint32_t reference(const char* name)
{
    for (int i = 0; i < under_test->variable_count; i++) {
        if (strcmp(under_test->variables[i].name, name) == 0) { return (uint32_t)i; }
    }
    fail_msg("no variable %s", name);
    return 0;
}

static double get_real(fmi2Component c, const char* name)
{
    const uint32_t r = reference(name);
    double value = NAN;
    check_int(fmi2GetReal(c, &r, 1, &value), fmi2OK);
    return value;
}

static fmi2Status set_real(fmi2Component c, const char* name, double value)
{
    const uint32_t r = reference(name);
    return fmi2SetReal(c, &r, 1, &value);
}

static fmi2Status set_integer(fmi2Component c, const char* name, int value)
{
    const uint32_t r = reference(name);
    return fmi2SetInteger(c, &r, 1, &value);
}

// ------------------------------------------------------------------------------------------------

static void wrong_token_name_or_kind_gives_no_instance(void** state)
{
    char token[40];
    under_test = &crd_model_chain;
    fmu_token(under_test, token);
    check(!fmi2Instantiate("a", fmi2CoSimulation, "{x}", NULL, &callbacks, 0, 0));
    check_contains(last_message, token);
    check(!fmi2Instantiate("", fmi2CoSimulation, token, NULL, &callbacks, 0, 0));
    check(!fmi2Instantiate(NULL, fmi2CoSimulation, token, NULL, NULL, 0, 0));
    check(!fmi2Instantiate("a", fmi2ModelExchange, token, NULL, &callbacks, 0, 0));
    check_contains(last_message, "Co-Simulation");
    check_text(fmi2GetVersion(), "2.0");
    check_text(fmi2GetTypesPlatform(), "default");
}

static void every_type_passes_through(void** state)
{
    fmi2Component c = start(&crd_model_types);
    check_near(get_real(c, "out_f64"), 0.1, 0);
    check_near(get_real(c, "par_out_f32"), 0.25, 0);
    check_int(set_real(c, "in_f32", 1.5), fmi2OK);
    check_near(get_real(c, "out_f32"), 1.5, 0);
    static const char* const integers[] = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"};
    for (int i = 0; i < 8; i++) {
        char in[16], out[16];
        snprintf(in, sizeof in, "in_%s", integers[i]);
        snprintf(out, sizeof out, "out_%s", integers[i]);
        const uint32_t r = reference(out);
        int value = 0;
        check_int(set_integer(c, in, 100 + i), fmi2OK);
        check_int(fmi2GetInteger(c, &r, 1, &value), fmi2OK);
        check_int(value, 100 + i);
    }
    check_int(set_integer(c, "in_u8", 256), fmi2Error);
    check_contains(last_message, "256 does not fit into in_u8");
    check_int(set_integer(c, "in_u64", -1), fmi2Error);
    check_int(set_integer(c, "in_e", 3), fmi2OK);
    check_int(set_integer(c, "in_e", 4), fmi2Error);
    check_contains(last_message, "in_e = 4, expected 1 to 3");
    uint32_t r = reference("in_b");
    fmi2Boolean b = 0;
    check_int(fmi2SetBoolean(c, &r, 1, &b), fmi2OK);
    r = reference("out_b");
    b = 1;
    check_int(fmi2GetBoolean(c, &r, 1, &b), fmi2OK);
    check_int(b, 0);
    r = reference("in_s");
    const char* text = "w\xc3\xb6rter";
    check_int(fmi2SetString(c, &r, 1, &text), fmi2OK);
    r = reference("out_s");
    const char* back = NULL;
    check_int(fmi2GetString(c, &r, 1, &back), fmi2OK);
    check_text(back, text);
    const char* endless = "0123456789012345678901234567890123456789012345678901234567890123";
    r = reference("in_s");
    check_int(fmi2SetString(c, &r, 1, &endless), fmi2Error);
    check_contains(last_message, "room for 63 bytes");
    const uint32_t element = reference("in_f64s") | 2u << 16, beyond = element + (1u << 16);
    double x = 42;
    check_int(fmi2SetReal(c, &element, 1, &x), fmi2OK);
    const uint32_t out = reference("out_f64s") | 2u << 16;
    check_int(fmi2GetReal(c, &out, 1, &x), fmi2OK);
    check_near(x, 42, 0);
    check_int(fmi2SetReal(c, &beyond, 1, &x), fmi2Error);
    fmi2FreeInstance(c);
}

static void wrong_references_and_causalities_are_named(void** state)
{
    fmi2Component c = start(&crd_model_lo_mono);
    const uint32_t none = 999, big = 0xffffffffu, solver = reference("solver");
    double x = 1;
    check_int(fmi2GetReal(c, &none, 1, &x), fmi2Error);
    check_contains(last_message, "999");
    check_int(fmi2GetReal(c, &big, 1, &x), fmi2Error);
    check_int(fmi2GetReal(c, &solver, 1, &x), fmi2Error);
    check_int(set_real(c, "m1", 2), fmi2Error);
    check_contains(last_message, "m1 cannot be set now (step mode)");
    check_int(set_real(c, "x1", 2), fmi2Error);
    fmi2FreeInstance(c);
}

/// What may be called when: a row per function, a column per phase.
static void calls_out_of_order_are_errors(void** state)
{
    enum { I = 1, M = 2, S = 4, T = 8 }; // instantiated, initialization mode, step mode, terminated
    const struct {
        int call, allowed;
    } rows[] = {{0, I},         {1, I},         {2, M},     {3, S},         {4, S},
                {5, M | S | T}, {6, I | M | S}, {7, M | S}, {8, M | S | T}, {9, I | M | S | T},
                {10, 0},        {11, 0}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (int phase = 0; phase < 4; phase++) {
            fmi2Component c = instantiate(&crd_model_rot_2);
            if (rows[r].call != 0) { check_int(fmi2SetupExperiment(c, 0, 0, 0, 0, 0), fmi2OK); }
            if (rows[r].call == 0 && phase > 0) { fmi2SetupExperiment(c, 0, 0, 0, 0, 0); }
            if (phase > 0) { check_int(fmi2EnterInitializationMode(c), fmi2OK); }
            if (phase > 1) { check_int(fmi2ExitInitializationMode(c), fmi2OK); }
            if (phase > 2) { check_int(fmi2Terminate(c), fmi2OK); }
            const uint32_t y = 0, u = 1;
            const int one = 1;
            double x = 0;
            fmi2FMUstate s = NULL;
            fmi2Status st = fmi2OK;
            switch (rows[r].call) {
            case 0:
                st = fmi2SetupExperiment(c, 0, 0, 0, 0, 0);
                break;
            case 1:
                st = fmi2EnterInitializationMode(c);
                break;
            case 2:
                st = fmi2ExitInitializationMode(c);
                break;
            case 3:
                st = fmi2DoStep(c, 0, 0.1, 1);
                break;
            case 4:
                st = fmi2Terminate(c);
                break;
            case 5:
                st = fmi2GetReal(c, &y, 1, &x);
                break;
            case 6:
                st = fmi2SetReal(c, &u, 1, &x);
                break;
            case 7:
                st = fmi2SetRealInputDerivatives(c, &u, 1, &one, &x);
                break;
            case 8:
                st = fmi2GetRealOutputDerivatives(c, &y, 1, &one, &x);
                break;
            case 9:
                st = fmi2GetFMUstate(c, &s);
                fmi2FreeFMUstate(c, &s);
                break;
            case 10:
                st = fmi2CancelStep(c);
                break;
            default:
                st = fmi2SetTime(c, 0);
                break;
            }
            const bool allowed = rows[r].allowed & 1 << phase;
            if ((st == fmi2OK) != allowed) {
                fail_msg("call %d in phase %d gave %d: %s", rows[r].call, phase, (int)st,
                         last_message);
            }
            fmi2FreeInstance(c);
        }
    }
    fmi2Component c = instantiate(&crd_model_chain);
    check_int(fmi2EnterInitializationMode(c), fmi2Error);
    check_contains(last_message, "fmi2SetupExperiment");
    fmi2FreeInstance(c);
    check_int(fmi2DoStep(NULL, 0, 1, 1), fmi2Error);
}

static void steps_that_make_no_sense_are_errors(void** state)
{
    const double bad[][2] = {{0, 0}, {0, -1}, {0, NAN}, {NAN, 1}, {0.5, 0.1}, {0, INFINITY}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fmi2Component c = start(&crd_model_chain);
        check_int(fmi2DoStep(c, bad[i][0], bad[i][1], 1), fmi2Error);
        check_int(fmi2DoStep(c, 0, 0.1, 1), fmi2Error); // it stays failed
        check_int(fmi2Reset(c), fmi2OK);
        fmi2FreeInstance(c);
    }
    fmi2Component c = instantiate(&crd_model_chain);
    check_int(fmi2SetupExperiment(c, 0, 0, 0, 1, 1), fmi2OK);
    check_int(fmi2EnterInitializationMode(c), fmi2OK);
    check_int(fmi2ExitInitializationMode(c), fmi2OK);
    for (int k = 0; k < 10; k++) {
        check_int(fmi2DoStep(c, k * 0.1, 0.1, 1), fmi2OK);
    }
    check_int(fmi2DoStep(c, 1, 0.1, 1), fmi2Error);
    check_contains(last_message, "past the stop time 1");
    fmi2FreeInstance(c);
}

static void faults_come_as_their_codes(void** state)
{
    const fmi2Status want[] = {fmi2OK,    fmi2Warning, fmi2Discard, fmi2Error,
                               fmi2Fatal, fmi2OK,      fmi2Discard};
    for (int mode = 0; mode < 7; mode++) {
        fmi2Component c = instantiate(&crd_model_faulty);
        check_int(set_integer(c, "mode", mode), fmi2OK);
        check_int(fmi2SetupExperiment(c, 0, 0, 0, 0, 0), fmi2OK);
        check_int(fmi2EnterInitializationMode(c), fmi2OK);
        check_int(fmi2ExitInitializationMode(c), fmi2OK);
        check_int(fmi2DoStep(c, 0, 0.5, 1), fmi2OK);
        check_int(fmi2DoStep(c, 0.5, 0.25, 1), want[mode]);
        double last = 0;
        fmi2Boolean terminated = 0;
        if (want[mode] == fmi2Discard) {
            check_int(fmi2GetRealStatus(c, fmi2LastSuccessfulTime, &last), fmi2OK);
            check_int(fmi2GetBooleanStatus(c, fmi2Terminated, &terminated), fmi2OK);
            check_near(last, mode == 6 ? 0.75 : 0.5, 0);
            check_int(terminated, mode == 6);
        }
        if (mode == 5) { check(isnan(get_real(c, "y"))); }
        fmi2FreeInstance(c);
    }
    fmi2Component c = instantiate(&crd_model_faulty);
    check_int(set_integer(c, "mode", 9), fmi2OK);
    check_int(fmi2SetupExperiment(c, 0, 0, 0, 0, 0), fmi2OK);
    check_int(fmi2EnterInitializationMode(c), fmi2OK);
    check_int(fmi2ExitInitializationMode(c), fmi2Error);
    fmi2FreeInstance(c);
}

static void a_failure_is_told_once_and_in_the_models_own_words_if_it_has_some(void** state)
{
    static const char* const want[] = {[2] = "the step from 0.5 was discarded",
                                       [3] = "this step fails, as asked for",
                                       [4] = "the step from 0.5 failed"};
    for (int mode = 2; mode <= 4; mode++) {
        fmi2Component c = instantiate(&crd_model_faulty);
        check_int(set_integer(c, "mode", mode), fmi2OK);
        check_int(fmi2SetupExperiment(c, 0, 0, 0, 0, 0), fmi2OK);
        check_int(fmi2EnterInitializationMode(c), fmi2OK);
        check_int(fmi2ExitInitializationMode(c), fmi2OK);
        check_int(fmi2DoStep(c, 0, 0.5, 1), fmi2OK);
        check_int(messages, 0);
        fmi2DoStep(c, 0.5, 0.25, 1);
        check_int(messages, 1);
        check_text(last_message, want[mode]);
        fmi2FreeInstance(c);
    }
}

// A counter of events whose output is the count; the third event ends the run.
typedef struct counter {
    double count, y;
} counter;

static crd_model_status count_initialize(void* self, const crd_model_host* host, double t)
{
    (void)self, (void)host, (void)t;
    return CRD_MODEL_OK;
}

static void count_outputs(void* self, double t)
{
    (void)t;
    ((counter*)self)->y = ((counter*)self)->count;
}

static crd_model_status count_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    (void)self, (void)host;
    *reached = t + 0.5 * h;
    return CRD_MODEL_EVENT;
}

static crd_model_status count_event(void* self, const crd_model_host* host, double t, double* next)
{
    (void)host, (void)t;
    *next = INFINITY;
    return ++((counter*)self)->count < 3 ? CRD_MODEL_OK : CRD_MODEL_TERMINATE;
}

static void events_show_in_outputs_at_once_and_may_end_the_run(void** state)
{
    static const crd_model_variable rows[] = {
        {.name = "y", .type = CRD_FLOAT64, .causality = CRD_OUTPUT, .offset = offsetof(counter, y)},
    };
    static const crd_model model = {
        .name = "counter",
        .size = sizeof(counter),
        .variables = rows,
        .variable_count = 1,
        .has_events = true,
        .initialize = count_initialize,
        .outputs = count_outputs,
        .step = count_step,
        .event = count_event,
    };
    fmi2Component c = instantiate(&model);
    check_int(fmi2SetupExperiment(c, 0, 0, 0, 0, 0), fmi2OK);
    check_int(fmi2EnterInitializationMode(c), fmi2OK);
    check_near(get_real(c, "y"), 0, 0);
    check_int(fmi2ExitInitializationMode(c), fmi2OK);
    check_near(get_real(c, "y"), 1, 0); // of the event at the start
    check_int(fmi2DoStep(c, 0, 1, 1), fmi2Discard);
    double last = 0;
    fmi2Boolean terminated = 0;
    check_int(fmi2GetRealStatus(c, fmi2LastSuccessfulTime, &last), fmi2OK);
    check_int(fmi2GetBooleanStatus(c, fmi2Terminated, &terminated), fmi2OK);
    check_near(last, 0.75, 0); // the second event of this step, at half of what was left
    check_int(terminated, 1);
    check_near(get_real(c, "y"), 3, 0);
    fmi2FreeInstance(c);
}

static void a_state_brings_back_the_same_bits(void** state)
{
    fmi2Component c = start(&crd_model_rot_2);
    const uint32_t u = reference("tau");
    const int one = 1;
    const double slope = 3;
    check_int(fmi2DoStep(c, 0, 0.1, 0), fmi2OK);
    check_int(set_real(c, "tau", 1), fmi2OK);
    check_int(fmi2SetRealInputDerivatives(c, &u, 1, &one, &slope), fmi2OK);
    fmi2FMUstate saved = NULL;
    check_int(fmi2GetFMUstate(c, &saved), fmi2OK);
    const fmi2FMUstate handle = saved;
    check_int(fmi2DoStep(c, 0.1, 0.1, 0), fmi2OK);
    const double y = get_real(c, "omega2");
    size_t size = 0;
    check_int(fmi2SerializedFMUstateSize(c, saved, &size), fmi2OK);
    char* bytes = malloc(size);
    check_int(fmi2SerializeFMUstate(c, saved, bytes, size), fmi2OK);
    check_int(fmi2SerializeFMUstate(c, saved, bytes, size - 1), fmi2Error);

    check_int(fmi2SetFMUstate(c, saved), fmi2OK);
    check_int(fmi2DoStep(c, 0.1, 0.1, 0), fmi2OK);
    check_near(get_real(c, "omega2"), y, 0);
    check_int(fmi2GetFMUstate(c, &saved), fmi2OK);
    check(saved == handle); // used again
    check_int(fmi2FreeFMUstate(c, &saved), fmi2OK);
    check(saved == NULL);
    fmi2FreeInstance(c);

    c = instantiate(&crd_model_rot_2); // another instance takes it over
    check_int(fmi2DeSerializeFMUstate(c, bytes, size, &saved), fmi2OK);
    check_int(fmi2SetFMUstate(c, saved), fmi2OK);
    check_int(fmi2DoStep(c, 0.1, 0.1, 0), fmi2OK);
    check_near(get_real(c, "omega2"), y, 0);
    bytes[20] ^= 1; // of the token
    check_int(fmi2DeSerializeFMUstate(c, bytes, size, &saved), fmi2Error);
    check_int(fmi2DeSerializeFMUstate(c, bytes, 3, &saved), fmi2Error);
    check_int(fmi2SetFMUstate(c, NULL), fmi2Error);
    check_int(fmi2FreeFMUstate(c, &saved), fmi2OK);
    fmi2FreeInstance(c);
    free(bytes);
}

static void reset_leads_back_to_the_start_values(void** state)
{
    fmi2Component c = start(&crd_model_chain);
    check_int(set_real(c, "u", 5), fmi2OK);
    check_int(fmi2DoStep(c, 0, 1, 1), fmi2OK);
    check_near(get_real(c, "y"), 2.5, 0);
    check_int(fmi2Reset(c), fmi2OK);
    check_int(fmi2SetupExperiment(c, 0, 0, 3, 0, 0), fmi2OK);
    check_int(fmi2EnterInitializationMode(c), fmi2OK);
    check_int(fmi2ExitInitializationMode(c), fmi2OK);
    check_int(fmi2DoStep(c, 3, 1, 1), fmi2OK);
    check_near(get_real(c, "y"), 0.5 + 0.003, 0); // u is 1 again, and t is 3
    fmi2FreeInstance(c);
}

static void derivatives_of_inputs_move_them_and_of_outputs_are_true(void** state)
{
    fmi2Component c = start(&crd_model_lo_fd2);
    const uint32_t f = reference("f"), x2 = reference("x2"), v2 = reference("v2");
    const int orders[] = {1, 2, 3};
    check_int(set_real(c, "f", 5), fmi2OK);
    const uint32_t ff[] = {f, f};
    const double d[] = {4, 6};
    check_int(fmi2SetRealInputDerivatives(c, ff, 2, orders, d), fmi2OK);
    check_int(fmi2DoStep(c, 0, 0.5, 1), fmi2OK);
    check_near(get_real(c, "f"), 5 + 4 * 0.5 + 3 * 0.25, 1e-15);
    const uint32_t xs[] = {x2, x2, x2};
    double y[3];
    check_int(fmi2GetRealOutputDerivatives(c, xs, 3, orders, y), fmi2OK);
    check_near(y[0], get_real(c, "v2"), 0);
    check_near(y[1], get_real(c, "f") - 1000 * get_real(c, "x2"), 1e-12);
    check_near(y[2], 0, 0); // beyond what is offered
    const uint32_t vs[] = {v2, v2};
    check_int(fmi2GetRealOutputDerivatives(c, vs, 2, orders, y), fmi2OK);
    check_near(y[1], (4 + 6 * 0.5) - 1000 * get_real(c, "v2"), 1e-9);
    check_int(fmi2SetRealInputDerivatives(c, &f, 1, &orders[2], d), fmi2Error);
    check_int(fmi2SetRealInputDerivatives(c, &x2, 1, orders, d), fmi2Error);
    check_int(fmi2GetRealOutputDerivatives(c, &f, 1, orders, y), fmi2Error);
    fmi2FreeInstance(c);
}

static void feedthrough_is_fresh_and_has_its_directional_derivative(void** state)
{
    fmi2Component c = instantiate(&crd_model_feedthrough);
    check_int(set_integer(c, "kind", 1), fmi2OK);
    check_int(set_real(c, "a", 2), fmi2OK);
    check_int(fmi2SetupExperiment(c, 0, 0, 0, 0, 0), fmi2OK);
    check_int(fmi2EnterInitializationMode(c), fmi2OK);
    check_int(set_real(c, "u", 0.5), fmi2OK);
    check_near(get_real(c, "y"), 2 * cos(0.5) + 1, 1e-15);
    const uint32_t y = reference("y"), u = reference("u");
    double seed = 3, d = 0;
    check_int(fmi2GetDirectionalDerivative(c, &y, 1, &u, 1, &seed, &d), fmi2OK);
    check_near(d, -6 * sin(0.5), 1e-15);
    check_int(fmi2GetDirectionalDerivative(c, &u, 1, &u, 1, &seed, &d), fmi2Error);
    check_int(fmi2ExitInitializationMode(c), fmi2OK);
    check_int(fmi2DoStep(c, 0, 1, 1), fmi2OK);
    check_int(set_real(c, "u", 1), fmi2OK);
    check_near(get_real(c, "y"), 2 * cos(1) + 1, 1e-15);
    fmi2FreeInstance(c);
    c = start(&crd_model_chain);
    check_int(fmi2GetDirectionalDerivative(c, &y, 1, &u, 1, &seed, &d), fmi2Error);
    fmi2FreeInstance(c);
}

static void log_categories_narrow_the_log(void** state)
{
    fmi2Component c = start(&crd_model_faulty);
    const char* const wrong = "logNothing";
    const char* const right = "logStatusError";
    check_int(fmi2SetDebugLogging(c, 1, 1, &wrong), fmi2Error);
    check_contains(last_message, "logNothing");
    check_int(fmi2SetDebugLogging(c, 1, 1, &right), fmi2OK);
    check_int(fmi2SetDebugLogging(c, 0, 0, NULL), fmi2OK);
    messages = 0;
    check_int(fmi2SetTime(c, 0), fmi2Error);
    check_int(messages, 1);
    fmi2FreeInstance(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_token_name_or_kind_gives_no_instance),
        cmocka_unit_test(every_type_passes_through),
        cmocka_unit_test(wrong_references_and_causalities_are_named),
        cmocka_unit_test(calls_out_of_order_are_errors),
        cmocka_unit_test(steps_that_make_no_sense_are_errors),
        cmocka_unit_test(faults_come_as_their_codes),
        cmocka_unit_test(a_failure_is_told_once_and_in_the_models_own_words_if_it_has_some),
        cmocka_unit_test(events_show_in_outputs_at_once_and_may_end_the_run),
        cmocka_unit_test(a_state_brings_back_the_same_bits),
        cmocka_unit_test(reset_leads_back_to_the_start_values),
        cmocka_unit_test(derivatives_of_inputs_move_them_and_of_outputs_are_true),
        cmocka_unit_test(feedthrough_is_fresh_and_has_its_directional_derivative),
        cmocka_unit_test(log_categories_narrow_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
