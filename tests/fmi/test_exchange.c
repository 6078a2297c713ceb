// Instances for Model Exchange: their calls in every state, what the FMU's answers become, and what
// the description says about them.
#include "fmi/mock/fixture.h"

static crd_fmi* exchange_of(fixture* x)
{
    const crd_fmi_options opt = {.model_exchange = true};
    crd_fmi* i = instance_of(x, &opt);
    check(x->mock->exchange);
    return i;
}

static crd_fmi* continuous(fixture* x)
{
    crd_fmi* i = exchange_of(x);
    check_ok(crd_fmi_enter_initialization(i, true, 1e-5, 2, false, 0));
    check_ok(crd_fmi_exit_initialization(i));
    check_int(crd_fmi_get_state(i), CRD_FMI_EVENT);
    crd_fmi_update update;
    check_ok(crd_fmi_update_discrete(i, &update));
    check_ok(crd_fmi_enter_continuous_time(i));
    check_int(crd_fmi_get_state(i), CRD_FMI_CONTINUOUS);
    return i;
}

// ---- what the description says -----------------------------------------------------------------

static crd_fmu* parse(crd_context* ctx, const char* xml)
{
    crd_fmu* f = NULL;
    if (crd_fmu_parse(ctx, xml, strlen(xml), "t.xml", &f) != CRD_OK) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return f;
}

static void the_two_interfaces_keep_their_flags_apart(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_fmu* f = parse(
        ctx, "<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g'"
             " numberOfEventIndicators='3'>"
             "<ModelExchange modelIdentifier='me' canGetAndSetFMUstate='true'"
             " canBeInstantiatedOnlyOncePerProcess='true' completedIntegratorStepNotNeeded='true'/>"
             "<CoSimulation modelIdentifier='cs' providesDirectionalDerivative='true'/>"
             "</fmiModelDescription>");
    const crd_fmu_description* d = crd_fmu_describe(f);
    const crd_fmu_model_exchange* x = &d->exchange;
    check_text(d->model_identifier, "cs");
    check_text(x->model_identifier, "me");
    check(!d->can_get_set_state && !d->can_be_instantiated_once);
    check(d->provides_directional_derivatives && !x->provides_directional_derivatives);
    check(x->can_get_set_state && x->can_be_instantiated_once && !x->needs_completed_step);
    check_int(x->indicator_count, 3);
    crd_fmu_close(f);
    f = parse(ctx, "<fmiModelDescription fmiVersion='3.0' modelName='m' instantiationToken='g'>"
                   "<ModelExchange modelIdentifier='me' needsCompletedIntegratorStep='true'"
                   " canSerializeFMUState='true' providesAdjointDerivatives='true'"
                   " providesDirectionalDerivatives='true'/></fmiModelDescription>");
    d = crd_fmu_describe(f);
    check(!d->has_cosimulation && d->has_model_exchange);
    check_text(d->model_identifier, "");
    check(d->exchange.needs_completed_step && d->exchange.can_serialize_state);
    check(d->exchange.provides_directional_derivatives && !d->provides_directional_derivatives);
    check(d->exchange.provides_adjoint_derivatives);
    crd_fmu_close(f);
    crd_context_destroy(ctx);
}

#define SCALAR(name, ref, attributes)                                                              \
    "<ScalarVariable name='" name "' valueReference='" ref "'><Real " attributes                   \
    "/></ScalarVariable>"

static void fmi2_states_come_in_the_order_of_their_derivatives(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_fmu* f = parse(ctx, "<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g'>"
                            "<ModelExchange modelIdentifier='me'/><ModelVariables>" //
                       SCALAR("h", "1", "nominal='5'") SCALAR("v", "2", "")         //
                       SCALAR("der(h)", "3", "derivative='1'")                      //
                       SCALAR("der(v)", "4", "derivative='2'")                      //
                       SCALAR("lost", "5", "")                                      //
                       "</ModelVariables><ModelStructure><Derivatives>"
                       "<Unknown index='4' dependencies='1 2'/><Unknown index='3'/>"
                       "<Unknown index='5' dependencies=''/>"
                       "</Derivatives></ModelStructure></fmiModelDescription>");
    const crd_fmu_model_exchange* x = &crd_fmu_describe(f)->exchange;
    check_int(x->derivatives.count, 3);
    check_int(x->derivatives.unknown[0], 3);
    check_int(x->states[0], 1);
    check_int(x->states[1], 0);
    check_int(x->states[2], -1); // nobody said whose derivative it is
    check(!x->derivatives.on_all[0] && x->derivatives.on_all[1] && !x->derivatives.on_all[2]);
    check_int(x->derivatives.first[1], 2);
    crd_fmu_close(f);
    crd_context_destroy(ctx);
}

static void fmi3_states_and_indicators_may_be_arrays(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_fmu* f = parse(
        ctx, "<fmiModelDescription fmiVersion='3.0' modelName='m' instantiationToken='g'>"
             "<ModelExchange modelIdentifier='me'/><ModelVariables>"
             "<Float64 name='x' valueReference='7'><Dimension start='2'/><Dimension start='3'/>"
             "</Float64>"
             "<Float64 name='der(x)' valueReference='8' derivative='7'><Dimension start='2'/>"
             "<Dimension start='3'/></Float64>"
             "<Float64 name='z' valueReference='9'><Dimension start='4'/></Float64>"
             "<Float64 name='w' valueReference='10'/>"
             "</ModelVariables><ModelStructure>"
             "<ContinuousStateDerivative valueReference='8' dependencies='7'/>"
             "<EventIndicator valueReference='9'/><EventIndicator valueReference='10'/>"
             "</ModelStructure></fmiModelDescription>");
    const crd_fmu_model_exchange* x = &crd_fmu_describe(f)->exchange;
    check_int(x->derivatives.count, 1);
    check_int(x->states[0], 0);
    check_int(x->indicator_variable_count, 2);
    check_int(x->indicator_count, 5);
    check(!x->needs_completed_step);
    crd_fmu_close(f);
    crd_context_destroy(ctx);
}

static void bad_structures_are_refused_with_their_line(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
#define MODEL2(variables, structure)                                                               \
    "<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g'>\n"                              \
    "<ModelExchange modelIdentifier='me'/><ModelVariables>\n" variables                            \
    "</ModelVariables>\n<ModelStructure><Derivatives>" structure                                   \
    "</Derivatives></ModelStructure></fmiModelDescription>"
    static const struct {
        const char *xml, *part;
    } cases[] = {
        {MODEL2(SCALAR("a", "1", ""), "<Unknown index='2'/>"),
         "t.xml:4: ModelStructure: unknown 2"},
        {MODEL2(SCALAR("a", "1", "derivative='9'"), "<Unknown index='1'/>"),
         "t.xml:3: ModelStructure: derivative 9 is out of range"},
        {MODEL2(SCALAR("a", "1", "derivative='x'"), ""), "derivative = 'x', expected a whole"},
        {MODEL2("<ScalarVariable name='i' valueReference='1'><Integer/></ScalarVariable>",
                "<Unknown index='1'/>"),
         "'i' is a state derivative and not of type Real"},
        {"<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g'>"
         "<ModelExchange modelIdentifier='../me'/></fmiModelDescription>",
         "expected a C identifier"},
        {"<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g'><ModelExchange/>"
         "</fmiModelDescription>",
         "<ModelExchange> lacks its attribute 'modelIdentifier'"},
        {"<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g' "
         "numberOfEventIndicators='4000000000'/>",
         "above the limit"},
        {"<fmiModelDescription fmiVersion='3.0' modelName='m' instantiationToken='g'>"
         "<ModelExchange modelIdentifier='me'/><ModelVariables>"
         "<Float64 name='x' valueReference='7'><Dimension start='2'/></Float64>"
         "<Float64 name='d' valueReference='8' derivative='7'/></ModelVariables><ModelStructure>"
         "<ContinuousStateDerivative valueReference='8'/></ModelStructure></fmiModelDescription>",
         "state 'x' has 2 elements and its derivative 'd' has 1"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        crd_fmu* f = NULL;
        check_status(crd_fmu_parse(ctx, cases[k].xml, strlen(cases[k].xml), "t.xml", &f),
                     CRD_E_FORMAT);
        check_contains(crd_error_text(ctx), cases[k].part);
    }
    crd_context_destroy(ctx);
}

// ---- calls -------------------------------------------------------------------------------------

static void a_run_calls_the_fmu_in_order(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "exchange", version);
        x.mock->calls = 0;
        crd_fmi* i = continuous(&x);
        double v[3] = {1, 2, 4}, w[3];
        bool discarded = false, event = true, terminate = true;
        check_ok(crd_fmi_set_time(i, 3));
        check_ok(crd_fmi_set_states(i, v, 3, &discarded));
        check_ok(crd_fmi_get_derivatives(i, w, 3, &discarded));
        check_near(w[2], 12, 0);
        check_ok(crd_fmi_get_indicators(i, w, 3, &discarded));
        check_near(w[0], 2, 0);
        check_ok(crd_fmi_get_states(i, w, 3));
        check_near(w[1], 2, 0);
        check_ok(crd_fmi_get_nominals(i, w, 3));
        check_near(w[1], 10, 0);
        check_ok(crd_fmi_completed_step(i, true, &event, &terminate));
        check(!discarded && !event && !terminate && x.mock->no_rollback);
        check_ok(crd_fmi_completed_step(i, false, &event, &terminate));
        check(!x.mock->no_rollback);
        check_ok(crd_fmi_enter_event_mode(i));
        check_ok(crd_fmi_terminate(i));
        crd_fmi_destroy(i);
        check_trace(
            &x, version == 2
                    ? "Instantiate SetupExperiment EnterInitializationMode "
                      "ExitInitializationMode NewDiscreteStates EnterContinuousTimeMode "
                      "SetTime SetContinuousStates GetDerivatives GetEventIndicators "
                      "GetContinuousStates GetNominalsOfContinuousStates "
                      "CompletedIntegratorStep CompletedIntegratorStep EnterEventMode Terminate "
                      "FreeInstance"
                    : "InstantiateModelExchange EnterInitializationMode "
                      "ExitInitializationMode UpdateDiscreteStates "
                      "EnterContinuousTimeMode SetTime SetContinuousStates "
                      "GetContinuousStateDerivatives GetEventIndicators "
                      "GetContinuousStates GetNominalsOfContinuousStates "
                      "CompletedIntegratorStep CompletedIntegratorStep EnterEventMode Terminate "
                      "FreeInstance");
        check_near(x.mock->tolerance, 1e-5, 0);
        check_near(x.mock->start, 2, 0);
        close_mock(&x);
    }
}

typedef crd_status action(crd_fmi* i);
static double room[3];
static bool flags[2];

static crd_status a_event(crd_fmi* i)
{
    return crd_fmi_enter_event_mode(i);
}
static crd_status a_continuous(crd_fmi* i)
{
    return crd_fmi_enter_continuous_time(i);
}
static crd_status a_update(crd_fmi* i)
{
    return crd_fmi_update_discrete(i, &(crd_fmi_update){0});
}
static crd_status a_time(crd_fmi* i)
{
    return crd_fmi_set_time(i, 1);
}
static crd_status a_set_states(crd_fmi* i)
{
    return crd_fmi_set_states(i, room, 3, flags);
}
static crd_status a_get_states(crd_fmi* i)
{
    return crd_fmi_get_states(i, room, 3);
}
static crd_status a_derivatives(crd_fmi* i)
{
    return crd_fmi_get_derivatives(i, room, 3, flags);
}
static crd_status a_indicators(crd_fmi* i)
{
    return crd_fmi_get_indicators(i, room, 1, flags);
}
static crd_status a_nominals(crd_fmi* i)
{
    return crd_fmi_get_nominals(i, room, 3);
}
static crd_status a_completed(crd_fmi* i)
{
    return crd_fmi_completed_step(i, false, &flags[0], &flags[1]);
}
static crd_status a_set_real(crd_fmi* i)
{
    return crd_fmi_set_real(i, &ref0, 1, &one, 1);
}
static crd_status a_set_integer(crd_fmi* i)
{
    return crd_fmi_set_integer(i, CRD_INT32, &ref0, 1, &(int64_t){1}, 1);
}
static crd_status a_step(crd_fmi* i)
{
    return crd_fmi_do_step(i, 0, 1, true, &(crd_fmi_step){0});
}
static crd_status a_terminate(crd_fmi* i)
{
    return crd_fmi_terminate(i);
}

static const struct {
    action* call;
    const char *name2, *name3;
} actions[] = {
    {a_event, "EnterEventMode", "EnterEventMode"},
    {a_continuous, "EnterContinuousTimeMode", "EnterContinuousTimeMode"},
    {a_update, "NewDiscreteStates", "UpdateDiscreteStates"},
    {a_time, "SetTime", "SetTime"},
    {a_set_states, "SetContinuousStates", "SetContinuousStates"},
    {a_get_states, "GetContinuousStates", "GetContinuousStates"},
    {a_derivatives, "GetDerivatives", "GetContinuousStateDerivatives"},
    {a_indicators, "GetEventIndicators", "GetEventIndicators"},
    {a_nominals, "GetNominalsOfContinuousStates", "GetNominalsOfContinuousStates"},
    {a_completed, "CompletedIntegratorStep", "CompletedIntegratorStep"},
    {a_set_real, "SetReal", "SetFloat64"},
    {a_set_integer, "SetInteger", "SetInt32"},
    {a_step, "DoStep", "DoStep"},
    {a_terminate, "Terminate", "Terminate"},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static bool lead(fixture* x, crd_fmi* i, crd_fmi_state s)
{
    const bool two = x->version == 2;
    if (s == CRD_FMI_INSTANTIATED) { return true; }
    if (s == CRD_FMI_CONFIGURATION) { return !two && crd_fmi_enter_configuration(i) == CRD_OK; }
    check_ok(crd_fmi_enter_initialization(i, false, 0, 0, false, 0));
    if (s == CRD_FMI_INITIALIZATION) { return true; }
    check_ok(crd_fmi_exit_initialization(i));
    if (s == CRD_FMI_EVENT) { return true; }
    if (s == CRD_FMI_RECONFIGURATION) { return !two && crd_fmi_enter_configuration(i) == CRD_OK; }
    check_ok(crd_fmi_enter_continuous_time(i));
    if (s == CRD_FMI_CONTINUOUS) { return true; }
    if (s == CRD_FMI_TERMINATED) { return crd_fmi_terminate(i) == CRD_OK; }
    if (s != CRD_FMI_ERROR) { return false; }
    int* status = &x->mock->status[id(x, "SetTime")];
    *status = CRDI_FMI_ERROR;
    check_status(crd_fmi_set_time(i, 1), CRD_E_UNIT);
    *status = CRDI_FMI_OK;
    return true;
}

static void no_forbidden_call_reaches_the_fmu(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "forbidden_exchange", version);
        int tried = 0;
        for (int s = 0; s < CRD_FMI_STATE_COUNT; s++) {
            for (int a = 0; a < ACTIONS; a++) {
                crd_fmi* i = exchange_of(&x);
                x.mock->calls = 0;
                if (lead(&x, i, (crd_fmi_state)s)) {
                    check_int(crd_fmi_get_state(i), s);
                    const int f = id(&x, version == 2 ? actions[a].name2 : actions[a].name3);
                    const crdi_fmi_kind kind = {.version = version, .exchange = true};
                    const bool may = crdi_fmi_allowed(kind, f, (crd_fmi_state)s);
                    const int before = x.mock->calls;
                    const crd_status st = actions[a].call(i);
                    if (st != (may ? CRD_OK : CRD_E_STATE)) {
                        fail_msg("%s in state '%s' gave %s",
                                 crdi_fmi_function_name(version, true, f),
                                 crdi_fmi_state_name((crd_fmi_state)s), crd_status_name(st));
                    }
                    check_int(x.mock->calls, before + may);
                    if (may) { check_int(x.mock->trace[before], f); }
                    tried++;
                }
                crd_fmi_destroy(i);
                check_int(x.mock->live, 0);
            }
        }
        check_int(tried, (version == 2 ? 6 : 8) * ACTIONS);
        close_mock(&x);
    }
}

static void calls_of_model_exchange_need_such_an_instance(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "wrong", version);
        crd_fmi* i = stepping(&x);
        action* const calls[] = {a_continuous,  a_time,       a_set_states, a_get_states,
                                 a_derivatives, a_indicators, a_nominals,   a_completed};
        const int before = x.mock->calls;
        for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
            check_status(calls[k](i), CRD_E_STATE);
            check_contains(crd_error_text(x.ctx), "made for Co-Simulation");
        }
        size_t nx = 0, nz = 0;
        check_status(crd_fmi_get_counts(i, &nx, &nz), CRD_E_STATE);
        check_int(x.mock->calls, before);
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void a_point_may_be_discarded(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "discard", version);
        crd_fmi* i = continuous(&x);
        const char* const names[] = {"SetContinuousStates",
                                     version == 2 ? "GetDerivatives"
                                                  : "GetContinuousStateDerivatives",
                                     "GetEventIndicators"};
        action* const calls[] = {a_set_states, a_derivatives, a_indicators};
        for (int k = 0; k < 3; k++) {
            int* status = &x.mock->status[id(&x, names[k])];
            flags[0] = false;
            *status = CRDI_FMI_DISCARD;
            check_ok(calls[k](i));
            check(flags[0]);
            check_int(crd_fmi_get_state(i), CRD_FMI_CONTINUOUS);
            *status = CRDI_FMI_WARNING;
            check_ok(calls[k](i));
            *status = CRDI_FMI_OK;
        }
        x.mock->status[id(&x, "SetTime")] = CRDI_FMI_DISCARD; // not among those
        check_status(a_time(i), CRD_E_UNIT);
        check_contains(crd_error_text(x.ctx), "SetTime returned Discard");
        x.mock->status[id(&x, "CompletedIntegratorStep")] = CRDI_FMI_ERROR;
        check_status(a_completed(i), CRD_E_UNIT);
        check_int(crd_fmi_get_state(i), CRD_FMI_ERROR);
        x.mock->status[id(&x, "CompletedIntegratorStep")] = CRDI_FMI_OK;
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void events_tell_all_they_have(void** state)
{
    fixture x;
    open_mock(&x, "told", 2);
    crd_fmi* i = continuous(&x);
    x.mock->again = x.mock->terminate = x.mock->nominals_changed = true;
    x.mock->values_changed = x.mock->has_next_event = true;
    x.mock->next_event = 4.5;
    x.mock->enter_event_mode = x.mock->completed_terminate = true;
    check_ok(a_completed(i));
    check(flags[0] && flags[1]);
    crd_fmi_update update;
    check_ok(crd_fmi_enter_event_mode(i));
    check_ok(crd_fmi_update_discrete(i, &update));
    check(update.again && update.terminate && update.nominals_changed && update.values_changed);
    check(update.has_next_event);
    check_near(update.next_event, 4.5, 0);
    crd_fmi_destroy(i);
    close_mock(&x);
}

static void counts_are_what_the_fmu_says(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "counts", version);
        crd_fmi* i = exchange_of(&x);
        size_t nx = 7, nz = 7;
        check_ok(crd_fmi_get_counts(i, &nx, &nz));
        check_int(nx, version == 2 ? 0 : 3);
        check_int(nz, version == 2 ? 1 : 2);
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void states_of_an_instance_are_saved_with_their_mode(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "modes", version);
        crd_fmi* i = continuous(&x);
        void* saved = NULL;
        check_ok(crd_fmi_save(i, &saved));
        check_ok(crd_fmi_enter_event_mode(i));
        check_ok(crd_fmi_restore(i, saved));
        check_int(crd_fmi_get_state(i), CRD_FMI_CONTINUOUS);
        uint8_t bytes[sizeof(mock_instance) + 8];
        check_ok(crd_fmi_serialize(i, saved, bytes, sizeof bytes));
        check_ok(crd_fmi_enter_event_mode(i));
        check_ok(crd_fmi_deserialize(i, bytes, sizeof bytes, &saved));
        check_ok(crd_fmi_restore(i, saved));
        check_int(crd_fmi_get_state(i), CRD_FMI_CONTINUOUS);
        check_ok(crd_fmi_free_state(i, &saved));
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void each_interface_demands_its_own_functions(void** state)
{
    for (int version = 2; version <= 3; version++) {
        const char* platform = version == 2 ? PLATFORM2 : PLATFORM3;
        const char* attributes = version == 2 ? ALL2 : ALL3;
        crd_fmi_options opt = {.instance_name = "bob", .model_exchange = true};
        crd_fmi* i = NULL;
        fixture x;
        open_at(&x, version == 2 ? "no_exchange2" : "no_exchange3", version,
                version == 2 ? "mock2_no_exchange" : "mock3_no_exchange", platform, attributes);
        check_status(crd_fmi_instantiate(x.ctx, x.fmu, &opt, &i), CRD_E_FORMAT);
        check_contains(crd_error_text(x.ctx), version == 2
                                                  ? "no function fmi2SetTime, which FMI 2.0"
                                                  : "no function fmi3SetTime, which FMI 3.0");
        check_contains(crd_error_text(x.ctx), "Model Exchange demands");
        opt.model_exchange = false;
        check_ok(crd_fmi_instantiate(x.ctx, x.fmu, &opt, &i));
        crd_fmi_destroy(i);
        close_mock(&x);
        open_at(&x, version == 2 ? "no_step2" : "no_step3", version,
                version == 2 ? "mock2_broken" : "mock3_no_step", platform, attributes);
        check_status(crd_fmi_instantiate(x.ctx, x.fmu, &opt, &i), CRD_E_FORMAT);
        check_contains(crd_error_text(x.ctx), "Co-Simulation demands");
        opt.model_exchange = true;
        check_ok(crd_fmi_instantiate(x.ctx, x.fmu, &opt, &i));
        crd_fmi_destroy(i);
        close_mock(&x);
        open_at(&x, version == 2 ? "no_nominals2" : "no_nominals3", version,
                version == 2 ? "mock2_no_nominals" : "mock3_no_nominals", platform, attributes);
        i = continuous(&x);
        room[1] = 0;
        check_ok(a_nominals(i));
        check_near(room[1], 1, 0);
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void every_failing_allocation_is_survived(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "exchange_memory", version);
        const crd_fmi_options opt = {.instance_name = "bob", .model_exchange = true};
        crd_fmi* i = NULL;
        const int64_t idle = x.memory.live;
        int64_t n = 0;
        for (;; n++) {
            x.memory.allocations = 0;
            x.memory.fail_at = n;
            const crd_status st = crd_fmi_instantiate(x.ctx, x.fmu, &opt, &i);
            x.memory.fail_at = -1;
            if (st == CRD_OK) { break; }
            check_status(st, CRD_E_MEMORY);
            check_int(x.memory.live, idle);
        }
        check(n >= 1);
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_two_interfaces_keep_their_flags_apart),
        cmocka_unit_test(fmi2_states_come_in_the_order_of_their_derivatives),
        cmocka_unit_test(fmi3_states_and_indicators_may_be_arrays),
        cmocka_unit_test(bad_structures_are_refused_with_their_line),
        cmocka_unit_test(a_run_calls_the_fmu_in_order),
        cmocka_unit_test(no_forbidden_call_reaches_the_fmu),
        cmocka_unit_test(calls_of_model_exchange_need_such_an_instance),
        cmocka_unit_test(a_point_may_be_discarded),
        cmocka_unit_test(events_tell_all_they_have),
        cmocka_unit_test(counts_are_what_the_fmu_says),
        cmocka_unit_test(states_of_an_instance_are_saved_with_their_mode),
        cmocka_unit_test(each_interface_demands_its_own_functions),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
