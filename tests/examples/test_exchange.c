// Model Exchange as an exported FMU offers it, in right and in wrong order, over several models in
// this process. Compiled twice: FMI is 2 or 3.
#include "cardan/model.h"
#include "check.h"

#include <stdio.h>

extern const crd_model crd_model_bouncing_ball, crd_model_van_der_pol, crd_model_pwm_lag,
    crd_model_thermostat, crd_model_driven_oscillator, crd_model_heat_rod, crd_model_heat_array,
    crd_model_faulty_me, crd_model_chain;
static const crd_model* under_test;
static int interfaces_under_test;
#include "fmu_model.h"
#define fmu_model under_test
#define fmu_interfaces interfaces_under_test

// ---- one spelling for both versions; their status codes are the same numbers -------------------

enum { OK, WARNING, DISCARD, ERROR };

static char last_message[512];

typedef struct update_info {
    bool again, terminate, nominals, values, defined;
    double next;
} update_info;

#if FMI == 2
#include "fmi2.c"

static void logger(void* environment, const char* name, fmi2Status status, const char* category,
                   const char* message, ...)
{
    (void)environment, (void)name, (void)status, (void)category;
    va_list args;
    va_start(args, message);
    vsnprintf(last_message, sizeof last_message, message, args);
    va_end(args);
}
static const fmi2CallbackFunctions callbacks = {.logger = logger};

#define CALL(name) fmi2##name

static void* instantiate_as(bool exchange)
{
    char token[40];
    fmu_token(under_test, token);
    return fmi2Instantiate("unit", exchange ? fmi2ModelExchange : fmi2CoSimulation, token, NULL,
                           &callbacks, 0, 0);
}

static int enter_initialization(void* c)
{
    const int st = fmi2SetupExperiment(c, 0, 0, 0, 0, 0);
    return st ? st : (int)fmi2EnterInitializationMode(c);
}

static int get_reals(void* c, const uint32_t* vr, size_t n, double* x)
{
    return fmi2GetReal(c, vr, n, x);
}

static int set_reals(void* c, const uint32_t* vr, size_t n, const double* x)
{
    return fmi2SetReal(c, vr, n, x);
}

static int set_integers(void* c, const uint32_t* vr, size_t n, const int32_t* x)
{
    return fmi2SetInteger(c, vr, n, x);
}

static int get_integers(void* c, const uint32_t* vr, size_t n, int32_t* x)
{
    return fmi2GetInteger(c, vr, n, x);
}

static int update_discrete(void* c, update_info* u)
{
    fmi2EventInfo info = {0};
    const int st = fmi2NewDiscreteStates(c, &info);
    *u = (update_info){.again = info.newDiscreteStatesNeeded,
                       .terminate = info.terminateSimulation,
                       .nominals = info.nominalsOfContinuousStatesChanged,
                       .values = info.valuesOfContinuousStatesChanged,
                       .defined = info.nextEventTimeDefined,
                       .next = info.nextEventTime};
    return st;
}

static int completed_step(void* c, bool* event, bool* terminate)
{
    fmi2Boolean e = 0, t = 0;
    const int st = fmi2CompletedIntegratorStep(c, 1, &e, &t);
    *event = e;
    *terminate = t;
    return st;
}

static int get_slopes(void* c, double* dx, size_t n)
{
    return fmi2GetDerivatives(c, dx, n);
}

static int directional(void* c, uint32_t unknown, uint32_t known, double seed, double* out)
{
    return fmi2GetDirectionalDerivative(c, &unknown, 1, &known, 1, &seed, out);
}

static int do_step(void* c, double t, double h)
{
    return fmi2DoStep(c, t, h, 1);
}

static int get_state(void* c, void** s)
{
    return fmi2GetFMUstate(c, s);
}

static int set_state(void* c, void* s)
{
    return fmi2SetFMUstate(c, s);
}

static void free_state(void* c, void** s)
{
    fmi2FreeFMUstate(c, s);
}
#else
#include "fmi3.c"

static void log_message(void* environment, fmi3Status status, const char* category,
                        const char* message)
{
    (void)environment, (void)status, (void)category;
    snprintf(last_message, sizeof last_message, "%s", message);
}

#define CALL(name) fmi3##name

static void* instantiate_as(bool exchange)
{
    char token[40];
    fmu_token(under_test, token);
    if (exchange) {
        return fmi3InstantiateModelExchange("unit", token, "/tmp/x/", false, false, NULL,
                                            log_message);
    }
    return fmi3InstantiateCoSimulation("unit", token, "/tmp/x/", false, false, false, false, NULL,
                                       0, NULL, log_message, NULL);
}

static int enter_initialization(void* c)
{
    return fmi3EnterInitializationMode(c, false, 0, 0, false, 0);
}

static int get_reals(void* c, const uint32_t* vr, size_t n, double* x)
{
    return fmi3GetFloat64(c, vr, n, x, n);
}

static int set_reals(void* c, const uint32_t* vr, size_t n, const double* x)
{
    return fmi3SetFloat64(c, vr, n, x, n);
}

static int set_integers(void* c, const uint32_t* vr, size_t n, const int32_t* x)
{
    return fmi3SetInt32(c, vr, n, x, n);
}

static int get_integers(void* c, const uint32_t* vr, size_t n, int32_t* x)
{
    return fmi3GetInt32(c, vr, n, x, n);
}

static int update_discrete(void* c, update_info* u)
{
    *u = (update_info){0};
    return fmi3UpdateDiscreteStates(c, &u->again, &u->terminate, &u->nominals, &u->values,
                                    &u->defined, &u->next);
}

static int completed_step(void* c, bool* event, bool* terminate)
{
    return fmi3CompletedIntegratorStep(c, true, event, terminate);
}

static int get_slopes(void* c, double* dx, size_t n)
{
    return fmi3GetContinuousStateDerivatives(c, dx, n);
}

static int directional(void* c, uint32_t unknown, uint32_t known, double seed, double* out)
{
    return fmi3GetDirectionalDerivative(c, &unknown, 1, &known, 1, &seed, 1, out, 1);
}

static int do_step(void* c, double t, double h)
{
    bool event, terminate, early;
    double reached;
    return fmi3DoStep(c, t, h, true, &event, &terminate, &early, &reached);
}

static int get_state(void* c, void** s)
{
    return fmi3GetFMUState(c, s);
}

static int set_state(void* c, void* s)
{
    return fmi3SetFMUState(c, s);
}

static void free_state(void* c, void** s)
{
    fmi3FreeFMUState(c, s);
}
#endif

// ---- helpers -----------------------------------------------------------------------------------

static void* instantiate(const crd_model* m)
{
    under_test = m;
    interfaces_under_test = FMU_AUTO;
    void* c = instantiate_as(true);
    check(c != NULL);
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

static double get(void* c, const char* name)
{
    const uint32_t r = reference(name);
    double x = NAN;
    check_int(get_reals(c, &r, 1, &x), OK);
    return x;
}

static int set(void* c, const char* name, double x)
{
    const uint32_t r = reference(name);
    return set_reals(c, &r, 1, &x);
}

static int get_integer(void* c, const char* name)
{
    const uint32_t r = reference(name);
    int32_t x = 0;
    check_int(get_integers(c, &r, 1, &x), OK);
    return x;
}

static void set_integer(void* c, const char* name, int32_t x)
{
    const uint32_t r = reference(name);
    check_int(set_integers(c, &r, 1, &x), OK);
}

/// Out of the initialisation and through the first event iteration into continuous-time mode.
static void begin(void* c, update_info* u)
{
    check_int(enter_initialization(c), OK);
    check_int(CALL(ExitInitializationMode)(c), OK);
    check_int(update_discrete(c, u), OK);
    check(!u->again);
    check_int(CALL(EnterContinuousTimeMode)(c), OK);
}

/// One Runge-Kutta step from t over h: what an importer does.
static void rk4(void* c, double t, double h, size_t n)
{
    static const double at[4] = {0, 0.5, 0.5, 1}, weight[4] = {1, 2, 2, 1};
    double x0[128], x[128], k[128] = {0}, sum[128] = {0};
    check_int(CALL(GetContinuousStates)(c, x0, n), OK);
    for (int s = 0; s < 4; s++) {
        for (size_t i = 0; i < n; i++) {
            x[i] = x0[i] + at[s] * h * k[i];
        }
        check_int(CALL(SetTime)(c, t + at[s] * h), OK);
        check_int(CALL(SetContinuousStates)(c, x, n), OK);
        check_int(get_slopes(c, k, n), OK);
        for (size_t i = 0; i < n; i++) {
            sum[i] += weight[s] * k[i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        x[i] = x0[i] + h / 6 * sum[i];
    }
    check_int(CALL(SetTime)(c, t + h), OK);
    check_int(CALL(SetContinuousStates)(c, x, n), OK);
}

// ------------------------------------------------------------------------------------------------

static void only_what_is_offered_can_be_instantiated(void** state)
{
    under_test = &crd_model_bouncing_ball;
    const struct {
        int interfaces;
        bool exchange, cosimulation;
    } cases[] = {{FMU_AUTO, true, true},
                 {FMU_BOTH, true, true},
                 {FMU_EXCHANGE, true, false},
                 {FMU_COSIMULATION, false, true}};
    for (int i = 0; i < 4; i++) {
        interfaces_under_test = cases[i].interfaces;
        for (int exchange = 0; exchange < 2; exchange++) {
            void* c = instantiate_as(exchange);
            check_int(c != NULL, exchange ? cases[i].exchange : cases[i].cosimulation);
            if (!c) {
                check_contains(last_message, exchange ? "this FMU is for Co-Simulation only"
                                                      : "this FMU is for Model Exchange only");
            }
            CALL(FreeInstance)(c);
        }
    }
    under_test = &crd_model_chain; // no derivatives
    interfaces_under_test = FMU_AUTO;
    check(!instantiate_as(true));
    check_contains(last_message, "Co-Simulation only");
}

enum { I = 1, M = 2, E = 4, C = 8, T = 16, PHASES = 5 }; // as the table below has them
#define CALLS(X)                                                                                   \
    X(EnterEventMode, E | C)                                                                       \
    X(EnterContinuousTimeMode, E)                                                                  \
    X(NewDiscreteStates, E)                                                                        \
    X(CompletedIntegratorStep, C)                                                                  \
    X(SetTime, E | C)                                                                              \
    X(SetContinuousStates, C)                                                                      \
    X(GetContinuousStates, M | E | C | T)                                                          \
    X(GetDerivatives, M | E | C | T)                                                               \
    X(GetEventIndicators, M | E | C | T)                                                           \
    X(GetNominals, I | M | E | C | T)                                                              \
    X(GetOutput, M | E | C | T)                                                                    \
    X(SetInput, I | M | E | C)                                                                     \
    X(SetParameter, I | M)                                                                         \
    X(SetStateVariable, I | M)                                                                     \
    X(GetDirectional, M | E | C | T)                                                               \
    X(GetState, I | M | E | C | T)                                                                 \
    X(DoStep, 0)                                                                                   \
    X(Terminate, E | C)                                                                            \
    X(ExitInitialization, M)                                                                       \
    X(Reset, I | M | E | C | T)
#define X(name, allowed) CALL_##name,
enum { CALLS(X) CALL_COUNT };
#undef X

static int call(void* c, int which)
{
    double x[2] = {0, 0};
    bool event, terminate;
    update_info u;
    void* s = NULL;
    switch (which) {
    case CALL_EnterEventMode:
        return CALL(EnterEventMode)(c);
    case CALL_EnterContinuousTimeMode:
        return CALL(EnterContinuousTimeMode)(c);
    case CALL_NewDiscreteStates:
        return update_discrete(c, &u);
    case CALL_CompletedIntegratorStep:
        return completed_step(c, &event, &terminate);
    case CALL_SetTime:
        return CALL(SetTime)(c, 0.25);
    case CALL_SetContinuousStates:
        return CALL(SetContinuousStates)(c, x, 2);
    case CALL_GetContinuousStates:
        return CALL(GetContinuousStates)(c, x, 2);
    case CALL_GetDerivatives:
        return get_slopes(c, x, 2);
    case CALL_GetEventIndicators:
        return CALL(GetEventIndicators)(c, x, 0);
    case CALL_GetNominals:
        return CALL(GetNominalsOfContinuousStates)(c, x, 2);
    case CALL_GetOutput: {
        const uint32_t r = reference("a");
        return get_reals(c, &r, 1, x);
    }
    case CALL_SetInput:
        return set(c, "u", 1);
    case CALL_SetParameter:
        return set(c, "zeta", 0.5);
    case CALL_SetStateVariable:
        return set(c, "x", 0.5);
    case CALL_GetDirectional:
        return directional(c, reference("a"), reference("u"), 1, x);
    case CALL_GetState: {
        const int st = get_state(c, &s);
        free_state(c, &s);
        return st;
    }
    case CALL_DoStep:
        return do_step(c, 0, 0.1);
    case CALL_Terminate:
        return CALL(Terminate)(c);
    case CALL_ExitInitialization:
        return CALL(ExitInitializationMode)(c);
    default:
        return CALL(Reset)(c);
    }
}

static void calls_out_of_order_are_errors_that_name_the_mode(void** state)
{
#define X(name, allowed) {#name, allowed},
    static const struct {
        const char* name;
        int allowed;
    } rows[] = {CALLS(X)};
#undef X
    for (int r = 0; r < CALL_COUNT; r++) {
        for (int phase = 0; phase < PHASES; phase++) {
            void* c = instantiate(&crd_model_driven_oscillator);
            update_info u;
            if (phase == 1) { check_int(enter_initialization(c), OK); }
            if (phase >= 2) { begin(c, &u); }
            if (phase == 2) { check_int(CALL(EnterEventMode)(c), OK); }
            if (phase == 4) { check_int(CALL(Terminate)(c), OK); }
            last_message[0] = 0;
            const int st = call(c, r);
            const bool allowed = rows[r].allowed & 1 << phase;
            if ((st == OK) != allowed || (!allowed && st != ERROR)) {
                fail_msg("%s in phase %d gave %d: %s", rows[r].name, phase, st, last_message);
            }
            if (!allowed) { check_contains(last_message, " now ("); }
            CALL(FreeInstance)(c);
        }
    }
}

static void instances_for_co_simulation_have_no_model_exchange(void** state)
{
    under_test = &crd_model_driven_oscillator;
    interfaces_under_test = FMU_AUTO;
    void* c = instantiate_as(false);
    check_int(enter_initialization(c), OK);
    double x[2];
    check_int(CALL(GetContinuousStates)(c, x, 2), ERROR);
    check_int(CALL(ExitInitializationMode)(c), OK);
    check_int(get_slopes(c, x, 2), ERROR);
    check_int(CALL(SetTime)(c, 0), ERROR);
    check_int(CALL(EnterContinuousTimeMode)(c), ERROR);
    check_int(CALL(EnterEventMode)(c), ERROR);
    check_contains(last_message, "not allowed now (step mode)");
    check_int(do_step(c, 0, 0.1), OK);
    CALL(FreeInstance)(c);
}

static void wrong_numbers_of_states_and_times_are_named(void** state)
{
    void* c = instantiate(&crd_model_driven_oscillator);
    update_info u;
    double x[3] = {0};
    begin(c, &u);
    check_int(CALL(SetContinuousStates)(c, x, 3), ERROR);
    check_contains(last_message, "3 values, expected 2");
    check_int(CALL(GetContinuousStates)(c, x, 1), ERROR);
    check_int(get_slopes(c, x, 0), ERROR);
    check_int(CALL(GetEventIndicators)(c, x, 1), ERROR);
    check_contains(last_message, "1 values, expected 0");
    check_int(CALL(SetTime)(c, NAN), ERROR);
    check_contains(last_message, "time is nan");
    CALL(FreeInstance)(c);
}

/// x(t) of the driven oscillator from x = 1, v = 0 with the input held at u.
static double oscillator(double t, double u)
{
    const double w = 6.283185307179586, zeta = 0.1, wd = w * sqrt(1 - zeta * zeta);
    return u + (1 - u) * exp(-zeta * w * t) * (cos(wd * t) + zeta * w / wd * sin(wd * t));
}

static void an_importers_own_solver_meets_the_closed_form_and_co_simulation(void** state)
{
    void* c = instantiate(&crd_model_driven_oscillator);
    update_info u;
    begin(c, &u);
    check(!u.defined && !u.values && !u.terminate && !u.nominals);
    check_int(set(c, "u", 0.25), OK); // continuous inputs may be set here
    void* other = instantiate_as(false);
    check_int(set(other, "u", 0.25), OK);
    check_int(enter_initialization(other), OK);
    check_int(CALL(ExitInitializationMode)(other), OK);
    for (int k = 0; k < 1000; k++) {
        rk4(c, k * 1e-3, 1e-3, 2);
        bool event, terminate;
        check_int(completed_step(c, &event, &terminate), OK);
        check(!event && !terminate);
        check_int(do_step(other, k * 1e-3, 1e-3), OK);
        check_near(get(c, "x"), get(other, "x"), 1e-13);
        check_near(get(c, "a"), get(other, "a"), 1e-11);
    }
    // error of RK4: (w h)^4 w t / 120, about 1e-10
    check_near(get(c, "x"), oscillator(1, 0.25), 2e-10);
    check_near(get(c, "x"), get(other, "x"), 1e-13);
    CALL(FreeInstance)(c);
    CALL(FreeInstance)(other);
}

static void a_state_event_turns_the_velocity_round_and_says_so(void** state)
{
    void* c = instantiate(&crd_model_bouncing_ball);
    update_info u;
    begin(c, &u);
    double x[2], z = NAN;
    check_int(CALL(GetEventIndicators)(c, &z, 1), OK);
    check(z > 0);
    const double hit = sqrt(2 / 9.81) + 1e-9; // a little behind
    const double before[2] = {1 - 0.5 * 9.81 * hit * hit, -9.81 * hit};
    check_int(CALL(SetTime)(c, hit), OK);
    check_int(CALL(SetContinuousStates)(c, before, 2), OK);
    check_int(CALL(GetEventIndicators)(c, &z, 1), OK);
    check(z < 0);
#if FMI == 3
    const uint32_t indicator = (uint32_t)under_test->variable_count + 1;
    double again = NAN;
    check_int(get_reals(c, &indicator, 1, &again), OK);
    check_near(again, z, 0);
    size_t n = 0;
    check_int(fmi3GetNumberOfEventIndicators(c, &n), OK);
    check_int(n, 1);
    check_int(fmi3GetNumberOfContinuousStates(c, &n), OK);
    check_int(n, 2);
#endif
    check_int(CALL(EnterEventMode)(c), OK);
    check_int(update_discrete(c, &u), OK);
    check(u.values && !u.again && !u.defined && !u.terminate);
    check_int(CALL(GetContinuousStates)(c, x, 2), OK);
    check_near(x[0], 0, 0);
    check_near(x[1], -0.7 * before[1], 1e-15);
    check_int(get_integer(c, "bounces"), 1);
    check_int(update_discrete(c, &u), OK); // nothing more happens
    check(!u.values);
    check_int(get_integer(c, "bounces"), 1);
    check_int(CALL(EnterContinuousTimeMode)(c), OK);
    check_int(CALL(GetEventIndicators)(c, &z, 1), OK);
    check(z > 0); // the sign is clear behind the event
    CALL(FreeInstance)(c);
}

static void time_events_are_announced_and_change_what_is_discrete(void** state)
{
    void* c = instantiate(&crd_model_pwm_lag);
    update_info u;
    begin(c, &u);
    double y = 0, last = 1;
    for (int edge = 1; edge <= 6; edge++) {
        const double from = edge / 2 * 0.1 - (edge % 2 ? 0 : 0.07);
        check(u.defined);
        check_near(u.next, edge / 2 * 0.1 + (edge % 2 ? 0.03 : 0), 1e-12);
        const int steps = 200;
        for (int k = 0; k < steps; k++) {
            rk4(c, from + k * (u.next - from) / steps, (u.next - from) / steps, 1);
        }
        y = last + (y - last) * exp(-(u.next - from) / 0.05);
        check_near(get(c, "y"), y, 3e-11); // RK4: (h / T)^4 t / T / 120 of it
        check_int(CALL(EnterEventMode)(c), OK);
        check_int(update_discrete(c, &u), OK);
        check(!u.values); // y goes on as it is
        last = edge % 2 ? 0 : 1;
        check_near(get(c, "u"), last, 0);
        check_int(CALL(EnterContinuousTimeMode)(c), OK);
    }
    CALL(FreeInstance)(c);
}

static void both_limits_of_a_thermostat_have_their_indicator(void** state)
{
    void* c = instantiate(&crd_model_thermostat);
    update_info u;
    begin(c, &u);
    double z[2], nominal = 0;
    check_int(CALL(GetEventIndicators)(c, z, 2), OK);
    check_near(z[0], -4.5, 1e-12);
    check_near(z[1], 5.5, 1e-12);
    check_int(CALL(GetNominalsOfContinuousStates)(c, &nominal, 1), OK);
    check_near(nominal, 20, 0);
    const double hot = 20.5 + 1e-9, cold = 19.5 - 1e-9;
    for (int k = 0; k < 4; k++) {
        check_int(CALL(SetTime)(c, 100 * (k + 1)), OK);
        check_int(CALL(SetContinuousStates)(c, k % 2 ? &cold : &hot, 1), OK);
        check_int(CALL(EnterEventMode)(c), OK);
        check_int(update_discrete(c, &u), OK);
        check_int(get_integer(c, "switches"), k + 1);
        check_near(get(c, "der(T)"), k % 2 ? (30 - cold) / 600 : (10 - hot) / 600, 1e-15);
        check_int(CALL(EnterContinuousTimeMode)(c), OK);
    }
    CALL(FreeInstance)(c);
}

/// d unknown / d known by differences, all states and the input put back afterwards.
static double difference(void* c, uint32_t unknown, int state, double* x, size_t n, uint32_t input)
{
    double y[2], u = 0;
    const double eps = 1e-6;
    if (state < 0) { check_int(get_reals(c, &input, 1, &u), OK); }
    for (int side = 0; side < 2; side++) {
        const double d = side ? -eps : eps;
        if (state >= 0) {
            const double kept = x[state];
            x[state] += d;
            check_int(CALL(SetContinuousStates)(c, x, n), OK);
            check_int(get_reals(c, &unknown, 1, &y[side]), OK);
            x[state] = kept;
            check_int(CALL(SetContinuousStates)(c, x, n), OK);
        } else {
            const double moved = u + d;
            check_int(set_reals(c, &input, 1, &moved), OK);
            check_int(get_reals(c, &unknown, 1, &y[side]), OK);
            check_int(set_reals(c, &input, 1, &u), OK);
        }
    }
    return (y[0] - y[1]) / (2 * eps);
}

static void directional_derivatives_are_those_of_the_equations(void** state)
{
    const crd_model* const models[] = {&crd_model_bouncing_ball,     &crd_model_van_der_pol,
                                       &crd_model_pwm_lag,           &crd_model_thermostat,
                                       &crd_model_driven_oscillator, &crd_model_heat_rod};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        void* c = instantiate(models[m]);
        const fmu* f = c;
        const size_t n = f->ode.states;
        update_info u;
        double x[128];
        begin(c, &u);
        for (size_t i = 0; i < n; i++) {
            x[i] = 1.25 + 0.5 * (double)(i % 7);
        }
        check_int(CALL(SetTime)(c, 0.01), OK);
        check_int(CALL(SetContinuousStates)(c, x, n), OK);
        for (uint32_t i = 0; i < f->count; i++) {
            const crd_model_variable* v = &f->model->variables[i];
            if (v->type != CRD_FLOAT64 || (v->causality != CRD_OUTPUT && !v->derivative_of)) {
                continue;
            }
            int at = 0; // of the state, in the order of the derivatives
            for (uint32_t k = 0; k < f->count; k++) {
                const int known = crd_model_state_of(f->model, (int)k);
                const bool input = f->model->variables[k].causality == CRD_INPUT;
                if (known < 0 && !input) { continue; }
                const uint32_t r = input ? k : (uint32_t)known;
                double out = NAN;
                check_int(directional(c, i, r, 2, &out), OK);
                const double want = 2 * difference(c, i, input ? -1 : at, x, n, k);
                at += !input;
                if (!(fabs(out - want) <= 1e-6 * (1 + fabs(want)))) {
                    fail_msg("%s: d %s / d %s: %.12g, expected %.12g", f->model->name, v->name,
                             f->model->variables[r].name, out / 2, want / 2);
                }
            }
        }
        double out = 0;
        check_int(directional(c, reference(f->model->variables[f->count - 1].name), 0, 1, &out),
                  ERROR); // a parameter is no unknown
        check_contains(last_message, "has no partial derivatives");
        CALL(FreeInstance)(c);
    }
}

static void array_states_come_element_by_element(void** state)
{
    void* scalars = instantiate(&crd_model_heat_rod);
    update_info u;
    begin(scalars, &u);
    void* array = instantiate(&crd_model_heat_array);
    begin(array, &u);
    double x[2][100], dx[2][100];
    check_int(CALL(GetContinuousStates)(scalars, x[0], 100), OK);
    check_int(CALL(GetContinuousStates)(array, x[1], 100), OK);
    check_near(x[0][0], sin(3.14159265358979323846 / 101), 1e-15); // worked out by initialize
    for (int k = 0; k < 20; k++) {
        rk4(scalars, k * 1e-4, 1e-4, 100);
        rk4(array, k * 1e-4, 1e-4, 100);
    }
    check_int(get_slopes(scalars, dx[0], 100), OK);
    check_int(get_slopes(array, dx[1], 100), OK);
    for (int i = 0; i < 100; i++) {
        check_near(dx[0][i], dx[1][i], 0);
    }
    const double s = sin(3.14159265358979323846 / 202);
    check_near(get(array, "middle"),
               sin(3.14159265358979323846 * 51 / 101) * exp(-4000 * s * s * 2e-3), 1e-12);
    double out = 0;
    check_int(directional(array, 3, 0, 1, &out), ERROR);
    CALL(FreeInstance)(scalars);
    CALL(FreeInstance)(array);
}

static void a_restored_state_repeats_the_bits_in_every_mode(void** state)
{
    void* c = instantiate(&crd_model_bouncing_ball);
    update_info u;
    void* s = NULL;
    double x[2], again[2];
    begin(c, &u);
    rk4(c, 0, 0.1, 2);
    check_int(get_state(c, &s), OK);
    rk4(c, 0.1, 0.1, 2);
    check_int(CALL(GetContinuousStates)(c, x, 2), OK);
    check_int(CALL(EnterEventMode)(c), OK);
    check_int(set_state(c, s), OK); // back in continuous-time mode
    rk4(c, 0.1, 0.1, 2);
    check_int(CALL(GetContinuousStates)(c, again, 2), OK);
    check_near(again[0], x[0], 0);
    check_near(again[1], x[1], 0);
    void* other = instantiate_as(false);
    check_int(set_state(other, s), ERROR); // it was for Model Exchange
    check_contains(last_message, "no state of this FMU");
    CALL(FreeInstance)(other);
    free_state(c, &s);
    CALL(FreeInstance)(c);
}

static void* faulty(int mode, update_info* u)
{
    void* c = instantiate(&crd_model_faulty_me);
    set_integer(c, "mode", mode);
    begin(c, u);
    check(u->defined);
    check_near(u->next, 0.5, 0);
    return c;
}

static int slope_at(void* c, double t)
{
    double dx = 0;
    check_int(CALL(SetTime)(c, t), OK);
    return get_slopes(c, &dx, 1);
}

static void a_point_without_derivatives_is_discarded_and_another_one_tried(void** state)
{
    update_info u;
    void* c = faulty(1, &u);
    const uint32_t x = reference("x");
    double value = 0;
    check_int(slope_at(c, 0.4), OK);
    check_int(slope_at(c, 0.6), DISCARD);
    check_contains(last_message, "the evaluation at 0.6 was discarded");
    check_int(get_reals(c, &x, 1, &value), DISCARD);
    check_int(slope_at(c, 0.45), OK);
    CALL(FreeInstance)(c);
    c = faulty(2, &u);
    check_int(slope_at(c, 0.6), ERROR);
    check_int(CALL(SetTime)(c, 0.4), ERROR); // it stays failed
    check_contains(last_message, "not allowed now (failed)");
    CALL(FreeInstance)(c);
}

static void an_event_iteration_that_goes_on_keeps_the_event_mode(void** state)
{
    update_info u;
    void* c = faulty(5, &u);
    check_int(CALL(SetTime)(c, 0.5), OK);
    check_int(CALL(EnterEventMode)(c), OK);
    for (int i = 0; i < 5; i++) {
        check_int(update_discrete(c, &u), OK);
        check(u.again);
    }
    check_int(CALL(EnterContinuousTimeMode)(c), ERROR);
    check_contains(last_message, "the event iteration has not ended");
    CALL(FreeInstance)(c);
#if FMI == 3
    under_test = &crd_model_faulty_me; // likewise in the event mode of Co-Simulation
    char token[40];
    fmu_token(under_test, token);
    c = fmi3InstantiateCoSimulation("unit", token, NULL, false, false, true, true, NULL, 0, NULL,
                                    log_message, NULL);
    set_integer(c, "mode", 5);
    check_int(set(c, "when", 0), OK);
    check_int(enter_initialization(c), OK);
    check_int(fmi3ExitInitializationMode(c), OK);
    check_int(update_discrete(c, &u), OK);
    check(u.again);
    check_int(fmi3EnterStepMode(c), ERROR);
    check_contains(last_message, "the event iteration has not ended");
    fmi3FreeInstance(c);
#endif
    // without event mode it ends with a message
    under_test = &crd_model_faulty_me;
    c = instantiate_as(false);
    set_integer(c, "mode", 5);
    check_int(enter_initialization(c), OK);
    check_int(CALL(ExitInitializationMode)(c), OK);
    check_int(do_step(c, 0, 0.4), OK);
    check_int(do_step(c, 0.4, 0.4), ERROR);
    check_contains(last_message, "the event iteration does not end");
    CALL(FreeInstance)(c);
}

static void wishes_of_events_and_completed_steps_are_passed_on(void** state)
{
    update_info u;
    bool event, terminate;
    void* c = faulty(9, &u);
    check_int(completed_step(c, &event, &terminate), OK);
    check(!event && !terminate);
    check_int(CALL(SetTime)(c, 0.6), OK);
    check_int(completed_step(c, &event, &terminate), OK);
    check(event && !terminate);
    CALL(FreeInstance)(c);
    c = faulty(13, &u);
    check_int(CALL(SetTime)(c, 0.6), OK);
    check_int(completed_step(c, &event, &terminate), OK);
    check(!event && terminate);
    CALL(FreeInstance)(c);
    c = faulty(10, &u);
    check_int(CALL(SetTime)(c, 0.6), OK);
    check_int(CALL(EnterEventMode)(c), OK);
    check_int(update_discrete(c, &u), OK);
    check(u.terminate);
    CALL(FreeInstance)(c);
    c = faulty(11, &u);
    check_int(CALL(SetTime)(c, 0.6), OK);
    check_int(CALL(EnterEventMode)(c), OK);
    check_int(update_discrete(c, &u), ERROR);
    check_contains(last_message, "this event fails, as asked for");
    CALL(FreeInstance)(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_offered_can_be_instantiated),
        cmocka_unit_test(calls_out_of_order_are_errors_that_name_the_mode),
        cmocka_unit_test(instances_for_co_simulation_have_no_model_exchange),
        cmocka_unit_test(wrong_numbers_of_states_and_times_are_named),
        cmocka_unit_test(an_importers_own_solver_meets_the_closed_form_and_co_simulation),
        cmocka_unit_test(a_state_event_turns_the_velocity_round_and_says_so),
        cmocka_unit_test(time_events_are_announced_and_change_what_is_discrete),
        cmocka_unit_test(both_limits_of_a_thermostat_have_their_indicator),
        cmocka_unit_test(directional_derivatives_are_those_of_the_equations),
        cmocka_unit_test(array_states_come_element_by_element),
        cmocka_unit_test(a_restored_state_repeats_the_bits_in_every_mode),
        cmocka_unit_test(a_point_without_derivatives_is_discarded_and_another_one_tried),
        cmocka_unit_test(an_event_iteration_that_goes_on_keeps_the_event_mode),
        cmocka_unit_test(wishes_of_events_and_completed_steps_are_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
