// An instance on its way through the states: what becomes of each answer the FMU may give, and that
// no call which the standard forbids reaches it.
#include "fmi/mock/fixture.h"

// ---- answers -----------------------------------------------------------------------------------

static void a_warning_is_told_once_per_function(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "warning", version);
        crd_fmi* i = stepping(&x);
        crd_fmi_step step;
        double y = 0;
        x.mock->status[id(&x, "DoStep")] = CRDI_FMI_WARNING;
        x.mock->status[id(&x, real_name(&x, "Get"))] = CRDI_FMI_WARNING;
        x.mock->log_status = CRDI_FMI_WARNING;
        x.mock->format = "stiff";
        x.line_count = 0;
        for (int n = 0; n < 5; n++) {
            check_ok(crd_fmi_do_step(i, n, 1, true, &step));
            check_near(step.reached, n + 1, 0);
            check_int(crd_fmi_get_state(i), CRD_FMI_STEP);
        }
        check_ok(crd_fmi_get_real(i, &ref1, 1, &y, 1));
        check_int(lines_with(&x, CRD_LOG_WARNING, "DoStep at t = 0 returned Warning"), 1);
        check_int(lines_with(&x, CRD_LOG_WARNING, "DoStep"), 1);
        check_int(lines_with(&x, CRD_LOG_DEBUG, "DoStep at t = 4 returned Warning"), 1);
        check_int(lines_with(&x, CRD_LOG_WARNING, "of y returned Warning"), 1);
        check_int(lines_with(&x, CRD_LOG_WARNING, "bob: stiff"),
                  1);                              // the FMU's own, whoever says it
        x.mock->format = "stiff at -1.5e-3 of 17"; // numbers do not count, words do
        check_ok(crd_fmi_get_real(i, &ref1, 1, &y, 1));
        x.mock->format = "stiff at 3 of 1e+20";
        check_ok(crd_fmi_get_real(i, &ref1, 1, &y, 1));
        check_int(lines_with(&x, CRD_LOG_WARNING, "bob: stiff at"), 1);
        int told = 0, last = 0;
        for (int n = 0; n < 100; n++) { // as many words as there are, those of above among them
            x.line_count = 0;
            char words[8] = {(char)('a' + n / 10), (char)('a' + n % 10)};
            x.mock->format = words;
            check_ok(crd_fmi_get_real(i, &ref1, 1, &y, 1));
            told += lines_with(&x, CRD_LOG_WARNING, "bob: ");
            last += lines_with(&x, CRD_LOG_WARNING, "all other warnings that are new");
        }
        check_int(told, 30 + 1);
        check_int(last, 1);
        x.mock->log_status = 0;
        x.mock->format = NULL;
        x.mock->status[id(&x, "Terminate")] = CRDI_FMI_WARNING;
        check_ok(crd_fmi_terminate(i));
        check_int(crd_fmi_get_state(i), CRD_FMI_TERMINATED);
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void a_discarded_value_is_named(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "discard", version);
        crd_fmi* i = stepping(&x);
        const uint32_t refs[] = {0, 1, 777, 0, 1, 1};
        const double values[6] = {0};
        x.mock->status[id(&x, real_name(&x, "Set"))] = CRDI_FMI_DISCARD;
        check_status(crd_fmi_set_real(i, refs, 6, values, 6), CRD_E_UNIT);
        check_contains(crd_error_text(x.ctx),
                       "of u, y, reference 777, u and 2 more returned Discard");
        check_contains(crd_error_text(x.ctx),
                       version == 2 ? "bob: fmi2SetReal" : "bob: fmi3SetFlo");
        check_int(crd_fmi_get_state(i), CRD_FMI_STEP);
        x.mock->status[id(&x, version == 2 ? "SetInteger" : "SetInt32")] = CRDI_FMI_DISCARD;
        const uint32_t k = version == 2 ? 0 : 2;
        check_status(crd_fmi_set_integer(i, CRD_INT32, &k, 1, &(int64_t){5}, 1), CRD_E_UNIT);
        check_contains(crd_error_text(x.ctx), "of k returned Discard");
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void an_error_ends_the_run_of_an_instance_but_not_its_life(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "error", version);
        crd_fmi* i = stepping(&x);
        crd_fmi_step step;
        x.mock->status[id(&x, "DoStep")] = CRDI_FMI_ERROR;
        x.mock->log_status = CRDI_FMI_ERROR;
        x.mock->format = "singular matrix";
        check_status(crd_fmi_do_step(i, 0.1, 0.1, true, &step), CRD_E_UNIT);
        check_text(
            crd_error_text(x.ctx),
            version == 2
                ? "bob: fmi2DoStep at t = 0.1 returned Error; its last message: singular matrix"
                : "bob: fmi3DoStep at t = 0.1 returned Error; its last message: singular "
                  "matrix");
        check_int(crd_fmi_get_state(i), CRD_FMI_ERROR);
        const int calls = x.mock->calls;
        check_status(crd_fmi_do_step(i, 0.1, 0.1, true, &step), CRD_E_STATE);
        check_contains(crd_error_text(x.ctx), "in state 'error'; allowed in: step mode");
        check_status(crd_fmi_set_real(i, &ref0, 1, &one, 1), CRD_E_STATE);
        check_status(crd_fmi_terminate(i), CRD_E_STATE);
        check_int(x.mock->calls, calls);
        x.mock->status[id(&x, "DoStep")] = CRDI_FMI_OK;
        check_ok(crd_fmi_reset(i));
        check_int(crd_fmi_get_state(i), CRD_FMI_INSTANTIATED);
        x.mock->status[id(&x, "EnterInitializationMode")] = CRDI_FMI_ERROR;
        check_status(crd_fmi_enter_initialization(i, false, 0, 0, false, 0), CRD_E_UNIT);
        check_int(crd_fmi_get_state(i), CRD_FMI_ERROR);
        crd_fmi_destroy(i); // freed, not terminated
        check_int(x.mock->live, 0);
        check_int(x.mock->count[id(&x, "Terminate")], 0);
        close_mock(&x);
    }
}

static void a_number_that_is_no_status_counts_as_an_error(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "number", version);
        crd_fmi* i = stepping(&x);
        x.mock->status[id(&x, real_name(&x, "Set"))] = -5;
        check_status(crd_fmi_set_real(i, &ref0, 1, &one, 1), CRD_E_UNIT);
        check_contains(crd_error_text(x.ctx), "no status");
        check_int(crd_fmi_get_state(i), CRD_FMI_ERROR);
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void after_a_fatal_error_no_instance_of_the_fmu_is_called_again(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x, other;
        open_mock(&x, "fatal", version);
        open_mock(&other, "not_fatal", version);
        crd_fmi* i = stepping(&x);
        crd_fmi* twin = stepping(&x);
        crd_fmi* stranger = stepping(&other);
        void* saved = NULL;
        check_ok(crd_fmi_save(i, &saved));
        crd_fmi_step step;
        x.mock->status[id(&x, "DoStep")] = CRDI_FMI_FATAL;
        check_status(crd_fmi_do_step(i, 0, 1, true, &step), CRD_E_UNIT);
        check_contains(crd_error_text(x.ctx), "returned Fatal");
        check_int(crd_fmi_get_state(i), CRD_FMI_FATAL);
        check_int(crd_fmi_get_state(twin), CRD_FMI_FATAL);
        check_int(crd_fmi_get_state(stranger), CRD_FMI_STEP);
        const int calls = x.mock->calls;
        check_status(crd_fmi_do_step(twin, 0, 1, true, &step), CRD_E_STATE);
        check_contains(crd_error_text(x.ctx), "fatal");
        check_status(crd_fmi_reset(i), CRD_E_STATE);
        check_status(crd_fmi_terminate(twin), CRD_E_STATE);
        const crd_fmi_options opt = {.instance_name = "third"};
        crd_fmi* third = NULL;
        check_status(crd_fmi_instantiate(x.ctx, x.fmu, &opt, &third), CRD_E_UNIT);
        check_contains(crd_error_text(x.ctx), "fatal");
        check_ok(crd_fmi_free_state(i, &saved)); // ours goes, the FMU's stays
        crd_fmi_destroy(i);
        crd_fmi_destroy(twin);
        check_int(x.mock->calls, calls);
        check_int(x.mock->live, 2); // not freed
        dlclose(x.handle);
        x.handle = dlopen(x.library, RTLD_NOW | RTLD_NOLOAD);
        check(x.handle != NULL); // not unloaded: that would run its destructors
        check_ok(crd_fmi_do_step(stranger, 0, 1, true, &step));
        crd_fmi_destroy(stranger);
        check_int(other.mock->live, 0);
        close_mock(&x);
        close_mock(&other);
    }
}

static void a_fatal_error_in_terminate_keeps_the_instance_from_being_freed(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "fatal_end", version);
        crd_fmi* i = stepping(&x);
        x.mock->status[id(&x, "Terminate")] = CRDI_FMI_FATAL;
        crd_fmi_destroy(i);
        check_int(x.mock->count[id(&x, "Terminate")], 1);
        check_int(x.mock->count[id(&x, "FreeInstance")], 0);
        close_mock(&x);
    }
}

static void a_step_discarded_by_fmi2_says_how_far_it_came(void** state)
{
    fixture x;
    open_mock(&x, "part", 2);
    crd_fmi* i = stepping(&x);
    crd_fmi_step step;
    void* saved = NULL;
    check_ok(crd_fmi_save(i, &saved));
    x.mock->status[CRDI_FMI2_DoStep] = CRDI_FMI_DISCARD;
    x.mock->last_successful = 1.25;
    x.mock->terminated = 1;
    check_ok(crd_fmi_do_step(i, 1, 1, false, &step));
    check(step.discarded && step.terminate && !step.early);
    check_near(step.reached, 1.25, 0);
    check_int(crd_fmi_get_state(i), CRD_FMI_STEP_FAILED);
    check_status(crd_fmi_do_step(i, 1, 1, false, &step), CRD_E_STATE);
    check_ok(crd_fmi_restore(i, saved)); // back before the step
    check_int(crd_fmi_get_state(i), CRD_FMI_STEP);
    x.mock->status[CRDI_FMI2_GetRealStatus] = CRDI_FMI_DISCARD;
    x.mock->status[CRDI_FMI2_GetBooleanStatus] = CRDI_FMI_DISCARD;
    check_ok(crd_fmi_do_step(i, 1, 1, false, &step));
    check_near(step.reached, 1, 0);
    check(!step.terminate);
    check_ok(crd_fmi_free_state(i, &saved));
    check_ok(crd_fmi_terminate(i));
    crd_fmi_destroy(i);
    close_mock(&x);
}

static void a_step_discarded_by_fmi3_has_done_nothing(void** state)
{
    fixture x;
    open_mock(&x, "nothing", 3);
    crd_fmi* i = stepping(&x);
    crd_fmi_step step;
    x.mock->status[CRDI_FMI3_DoStep] = CRDI_FMI_DISCARD;
    x.mock->reached = 77; // undefined then
    x.mock->event_needed = true;
    check_ok(crd_fmi_do_step(i, 1, 1, false, &step));
    check(step.discarded && !step.event_needed);
    check_near(step.reached, 1, 0);
    check_int(crd_fmi_get_state(i), CRD_FMI_STEP);
    crd_fmi_destroy(i);
    close_mock(&x);
}

static void a_pending_step_is_waited_for(void** state)
{
    fixture x;
    open_mock(&x, "pending", 2);
    crd_fmi* i = stepping(&x);
    crd_fmi_step step;
    x.mock->status[CRDI_FMI2_DoStep] = CRDI_FMI_PENDING;
    x.mock->pending_polls = 120;
    check_ok(crd_fmi_do_step(i, 1, 1, true, &step));
    check_near(step.reached, 2, 0);
    check_int(x.mock->count[CRDI_FMI2_GetStatus], 121);
    check_text(crd_fmi_last_call(i), "fmi2DoStep");
    x.mock->pending_polls = 1;
    x.mock->pending_end = CRDI_FMI_DISCARD;
    x.mock->last_successful = 2.5;
    check_ok(crd_fmi_do_step(i, 2, 1, true, &step));
    check(step.discarded);
    check_near(step.reached, 2.5, 0);
    check_ok(crd_fmi_reset(i));
    check_ok(crd_fmi_enter_initialization(i, false, 0, 0, false, 0));
    check_ok(crd_fmi_exit_initialization(i));
    x.mock->pending_end = CRDI_FMI_ERROR;
    check_status(crd_fmi_do_step(i, 3, 1, true, &step), CRD_E_UNIT);
    check_contains(crd_error_text(x.ctx), "fmi2DoStep at t = 3 returned Error");
    crd_fmi_destroy(i);
    close_mock(&x);
}

static void fmi3_says_where_a_step_ended_and_why(void** state)
{
    fixture x;
    open_mock(&x, "ended", 3);
    crd_fmi* i = stepping(&x);
    crd_fmi_step step;
    x.mock->reached = 0.75;
    x.mock->early = x.mock->event_needed = true;
    check_ok(crd_fmi_do_step(i, 0, 1, false, &step));
    check_near(step.reached, 0.75, 0);
    check(step.early && step.event_needed && !step.terminate && !step.discarded);
    check(!x.mock->no_rollback);
    x.mock->early = x.mock->event_needed = false;
    x.mock->terminate = true;
    check_ok(crd_fmi_do_step(i, 0.75, 1, false, &step));
    check(step.terminate && !step.early);
    check_near(step.reached, 1.75, 0); // not early: its inner time of 0.75 is its own business
    crd_fmi_destroy(i);
    close_mock(&x);
}

// ---- the call order, through the public functions ----------------------------------------------

typedef crd_status action(crd_fmi* i, void* saved);

static double real_out[4];
static int64_t integer_out[4];
static uint8_t bytes_out[2048];

static crd_status a_enter_init(crd_fmi* i, void* s)
{
    (void)s;
    return crd_fmi_enter_initialization(i, false, 0, 0, false, 0);
}
#define SIMPLE(name, call)                                                                         \
    static crd_status name(crd_fmi* i, void* s)                                                    \
    {                                                                                              \
        (void)s;                                                                                   \
        return call;                                                                               \
    }
SIMPLE(a_exit_init, crd_fmi_exit_initialization(i))
SIMPLE(a_enter_conf, crd_fmi_enter_configuration(i))
SIMPLE(a_exit_conf, crd_fmi_exit_configuration(i))
SIMPLE(a_enter_event, crd_fmi_enter_event_mode(i))
SIMPLE(a_enter_step, crd_fmi_enter_step_mode(i))
SIMPLE(a_update, crd_fmi_update_discrete(i, &(crd_fmi_update){0}))
SIMPLE(a_terminate, crd_fmi_terminate(i))
SIMPLE(a_reset, crd_fmi_reset(i))
SIMPLE(a_step, crd_fmi_do_step(i, 0, 1, true, &(crd_fmi_step){0}))
SIMPLE(a_set_real, crd_fmi_set_real(i, &ref0, 1, &one, 1))
SIMPLE(a_get_real, crd_fmi_get_real(i, &ref0, 1, real_out, 1))
SIMPLE(a_set_float32, crd_fmi_set_float32(i, &ref0, 1, &one, 1))
SIMPLE(a_get_float32, crd_fmi_get_float32(i, &ref0, 1, real_out, 1))
SIMPLE(a_set_int32, crd_fmi_set_integer(i, CRD_INT32, &ref0, 1, &(int64_t){1}, 1))
SIMPLE(a_get_int32, crd_fmi_get_integer(i, CRD_INT32, &ref0, 1, integer_out, 1))
SIMPLE(a_set_uint64, crd_fmi_set_integer(i, CRD_UINT64, &ref0, 1, &(int64_t){1}, 1))
SIMPLE(a_get_uint64, crd_fmi_get_integer(i, CRD_UINT64, &ref0, 1, integer_out, 1))
SIMPLE(a_set_boolean, crd_fmi_set_integer(i, CRD_BOOLEAN, &ref0, 1, &(int64_t){1}, 1))
SIMPLE(a_get_boolean, crd_fmi_get_integer(i, CRD_BOOLEAN, &ref0, 1, integer_out, 1))
SIMPLE(a_set_string, crd_fmi_set_string(i, &ref0, 1, &(const char*){"a"}, 1))
SIMPLE(a_get_string, crd_fmi_get_string(i, &ref0, 1, &(const char*){0}, 1))
SIMPLE(a_set_binary, crd_fmi_set_binary(i, &ref0, 1, &(crd_fmi_binary){0}, 1))
SIMPLE(a_get_binary, crd_fmi_get_binary(i, &ref0, 1, &(crd_fmi_binary){0}, 1))
SIMPLE(a_set_input, crd_fmi_set_input_derivatives(i, &ref0, 1, &(int32_t){1}, &one))
SIMPLE(a_get_output, crd_fmi_get_output_derivatives(i, &ref1, 1, &(int32_t){1}, real_out))
SIMPLE(a_partial, crd_fmi_directional_derivative(i, &ref1, 1, &ref0, 1, &one, real_out))
static crd_status a_save(crd_fmi* i, void* s)
{
    return crd_fmi_save(i, &s); // again into the same
}
static crd_status a_restore(crd_fmi* i, void* s)
{
    return crd_fmi_restore(i, s);
}
static crd_status a_size(crd_fmi* i, void* s)
{
    return crd_fmi_serialized_size(i, s, &(size_t){0});
}
static crd_status a_serialize(crd_fmi* i, void* s)
{
    return crd_fmi_serialize(i, s, bytes_out, sizeof(mock_instance) + 8);
}

static const struct {
    action* call;
    const char *name2, *name3; // the FMI function behind it; NULL: the version has none
} actions[] = {
    {a_enter_init, "SetupExperiment", "EnterInitializationMode"},
    {a_exit_init, "ExitInitializationMode", "ExitInitializationMode"},
    {a_enter_conf, NULL, "EnterConfigurationMode"},
    {a_exit_conf, NULL, "ExitConfigurationMode"},
    {a_enter_event, NULL, "EnterEventMode"},
    {a_enter_step, NULL, "EnterStepMode"},
    {a_update, NULL, "UpdateDiscreteStates"},
    {a_terminate, "Terminate", "Terminate"},
    {a_reset, "Reset", "Reset"},
    {a_step, "DoStep", "DoStep"},
    {a_set_real, "SetReal", "SetFloat64"},
    {a_get_real, "GetReal", "GetFloat64"},
    {a_set_float32, NULL, "SetFloat32"},
    {a_get_float32, NULL, "GetFloat32"},
    {a_set_int32, "SetInteger", "SetInt32"},
    {a_get_int32, "GetInteger", "GetInt32"},
    {a_set_uint64, NULL, "SetUInt64"},
    {a_get_uint64, NULL, "GetUInt64"},
    {a_set_boolean, "SetBoolean", "SetBoolean"},
    {a_get_boolean, "GetBoolean", "GetBoolean"},
    {a_set_string, "SetString", "SetString"},
    {a_get_string, "GetString", "GetString"},
    {a_set_binary, NULL, "SetBinary"},
    {a_get_binary, NULL, "GetBinary"},
    {a_set_input, "SetRealInputDerivatives", NULL},
    {a_get_output, "GetRealOutputDerivatives", "GetOutputDerivatives"},
    {a_partial, "GetDirectionalDerivative", "GetDirectionalDerivative"},
    {a_save, "GetFMUstate", "GetFMUState"},
    {a_restore, "SetFMUstate", "SetFMUState"},
    {a_size, "SerializedFMUstateSize", "SerializedFMUStateSize"},
    {a_serialize, "SerializeFMUstate", "SerializeFMUState"},
};
enum { ACTIONS = sizeof actions / sizeof actions[0] };

// Tries one action in the state the instance is in.
static void try_action(fixture* x, crd_fmi* i, int a, void* saved)
{
    const char* name = x->version == 2 ? actions[a].name2 : actions[a].name3;
    const crd_fmi_state s = crd_fmi_get_state(i);
    const int before = x->mock->calls;
    const crd_status st = actions[a].call(i, saved);
    if (!name) {
        check_status(st, CRD_E_UNSUPPORTED);
        check_int(x->mock->calls, before);
        return;
    }
    const int f = id(x, name);
    const bool may = crdi_fmi_allowed((crdi_fmi_kind){.version = x->version}, f, s);
    if (st != (may ? CRD_OK : CRD_E_STATE)) {
        fail_msg("%s in state '%s' gave %s", name, crdi_fmi_state_name(s), crd_status_name(st));
    }
    if (!may) {
        check_int(x->mock->calls, before);
        check_contains(crd_error_text(x->ctx), name);
    } else {
        check(x->mock->calls > before);
        check_int(x->mock->trace[before], f);
    }
}

// Leads an instance into a state; false if the version has no such state.
static bool lead(fixture* x, crd_fmi* i, crd_fmi_state s)
{
    const bool two = x->version == 2;
    int* status = &x->mock->status[id(x, "DoStep")];
    if (s == CRD_FMI_INSTANTIATED) { return true; }
    if (s == CRD_FMI_CONFIGURATION) { return !two && crd_fmi_enter_configuration(i) == CRD_OK; }
    check_ok(crd_fmi_enter_initialization(i, false, 0, 0, false, 0));
    if (s == CRD_FMI_INITIALIZATION) { return true; }
    check_ok(crd_fmi_exit_initialization(i));
    if (s == CRD_FMI_EVENT) { return !two; }
    if (!two) { check_ok(crd_fmi_enter_step_mode(i)); }
    switch (s) {
    case CRD_FMI_STEP:
        return true;
    case CRD_FMI_RECONFIGURATION:
        return !two && crd_fmi_enter_configuration(i) == CRD_OK;
    case CRD_FMI_TERMINATED:
        return crd_fmi_terminate(i) == CRD_OK;
    case CRD_FMI_STEP_FAILED:
        *status = CRDI_FMI_DISCARD;
        break;
    case CRD_FMI_ERROR:
        *status = CRDI_FMI_ERROR;
        break;
    default:
        return false; // INTERMEDIATE and FATAL have tests of their own
    }
    crd_fmi_do_step(i, 0, 1, true, &(crd_fmi_step){0});
    *status = CRDI_FMI_OK;
    return crd_fmi_get_state(i) == s;
}

static void no_forbidden_call_reaches_the_fmu(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "forbidden", version);
        int tried = 0;
        for (int s = 0; s < CRD_FMI_STATE_COUNT; s++) {
            for (int a = 0; a < ACTIONS; a++) {
                const crd_fmi_options opt = {.event_mode = true};
                crd_fmi* i = instance_of(&x, &opt);
                void* saved = NULL;
                check_ok(crd_fmi_save(i, &saved));
                x.mock->calls = 0; // the trace starts here
                if (lead(&x, i, (crd_fmi_state)s)) {
                    check_int(crd_fmi_get_state(i), s);
                    try_action(&x, i, a, saved);
                    tried++;
                }
                check_ok(crd_fmi_free_state(i, &saved));
                crd_fmi_destroy(i);
                check_int(x.mock->live, 0);
            }
        }
        check_int(tried, (version == 2 ? 6 : 8) * ACTIONS);
        close_mock(&x);
    }
}

static void destroy_frees_in_every_state(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "destroy", version);
        for (int s = 0; s < CRD_FMI_STATE_COUNT; s++) {
            const crd_fmi_options opt = {.event_mode = true};
            crd_fmi* i = instance_of(&x, &opt);
            lead(&x, i, (crd_fmi_state)s);
            const int terminate = id(&x, "Terminate"), before = x.mock->count[terminate];
            const bool may = crdi_fmi_allowed((crdi_fmi_kind){.version = version}, terminate,
                                              crd_fmi_get_state(i));
            crd_fmi_destroy(i);
            check_int(x.mock->count[terminate], before + may);
            check_int(x.mock->live, 0);
        }
        crd_fmi_destroy(NULL);
        crd_fmi_abandon(NULL);
        close_mock(&x);
    }
}

// ---- intermediate update and events ------------------------------------------------------------

typedef struct visit {
    fixture* x;
    crd_fmi* i;
    int count;
    void* saved;
    bool wish, set_allowed, get_allowed, try_all;
} visit;

static bool on_update(void* user, double time, bool inputs_wanted, bool outputs_there,
                      bool step_finished, bool can_return_early)
{
    visit* v = user;
    v->count++;
    check_near(time, 0.5, 0);
    check(step_finished);
    check_int(inputs_wanted, v->set_allowed);
    check_int(outputs_there, v->get_allowed);
    (void)can_return_early;
    check_int(crd_fmi_get_state(v->i), CRD_FMI_INTERMEDIATE);
    if (v->try_all) {
        for (int a = 0; a < ACTIONS; a++) {
            try_action(v->x, v->i, a, v->saved);
            check_int(crd_fmi_get_state(v->i), CRD_FMI_INTERMEDIATE);
        }
    } else {
        const double u = 5;
        check_status(crd_fmi_set_real(v->i, &ref0, 1, &u, 1),
                     v->set_allowed ? CRD_OK : CRD_E_STATE);
        check_status(crd_fmi_get_real(v->i, &ref1, 1, real_out, 1),
                     v->get_allowed ? CRD_OK : CRD_E_STATE);
    }
    return v->wish;
}

static void the_intermediate_update_may_set_and_get_what_was_asked_for(void** state)
{
    fixture x;
    open_mock(&x, "update", 3);
    visit v = {.x = &x};
    const uint32_t refs[] = {0, 1};
    const crd_fmi_options opt = {.intermediate = on_update,
                                 .intermediate_user = &v,
                                 .intermediate_inputs = refs,
                                 .intermediate_input_count = 2,
                                 .early_return = true};
    crd_fmi* i = instance_of(&x, &opt);
    v.i = i;
    check(x.mock->has_intermediate);
    check_int(x.mock->intermediate_count, 2);
    check_int(x.mock->intermediate[1], 1);
    check_ok(crd_fmi_enter_initialization(i, false, 0, 0, false, 0));
    check_ok(crd_fmi_save(i, &v.saved));
    check_ok(crd_fmi_exit_initialization(i));
    x.mock->update = true;
    crd_fmi_step step;
    for (int k = 0; k < 8; k++) {
        x.mock->update_set = v.set_allowed = k & 1;
        x.mock->update_get = v.get_allowed = k & 2;
        x.mock->update_can_return = k & 4;
        v.wish = true;
        check_ok(crd_fmi_do_step(i, 0, 1, true, &step));
        check_int(x.mock->updated_early, (k & 4) != 0); // a wish only where it can be granted
        check_near(x.mock->updated_time, 0.5, 0);
        check_int(crd_fmi_get_state(i), CRD_FMI_STEP);
        check_text(crd_fmi_last_call(i), "fmi3DoStep");
    }
    check_int(v.count, 8);
    v.wish = false;
    check_ok(crd_fmi_do_step(i, 0, 1, true, &step));
    check(!x.mock->updated_early);
    // all public functions inside the callback
    v.try_all = true;
    x.mock->update_set = x.mock->update_get = v.set_allowed = v.get_allowed = true;
    x.mock->calls = 0;
    check_ok(crd_fmi_do_step(i, 0, 1, true, &step));
    check_ok(crd_fmi_free_state(i, &v.saved));
    crd_fmi_destroy(i);
    close_mock(&x);
}

static bool set_fails(void* user, double time, bool inputs_wanted, bool outputs_there,
                      bool step_finished, bool can_return_early)
{
    (void)time, (void)inputs_wanted, (void)outputs_there, (void)step_finished;
    (void)can_return_early;
    visit* v = user;
    check_status(crd_fmi_set_real(v->i, &ref0, 1, &one, 1), CRD_E_UNIT);
    return false;
}

static void an_error_inside_the_intermediate_update_is_not_forgotten(void** state)
{
    fixture x;
    open_mock(&x, "update_error", 3);
    visit v = {.x = &x};
    const crd_fmi_options opt = {.intermediate = set_fails, .intermediate_user = &v};
    crd_fmi* i = v.i = instance_of(&x, &opt);
    check_ok(crd_fmi_enter_initialization(i, false, 0, 0, false, 0));
    check_ok(crd_fmi_exit_initialization(i));
    x.mock->update = x.mock->update_set = true;
    x.mock->status[CRDI_FMI3_SetFloat64] = CRDI_FMI_ERROR;
    crd_fmi_step step;
    crd_fmi_do_step(i, 0, 1, true, &step);
    check_int(crd_fmi_get_state(i), CRD_FMI_ERROR);
    check_status(crd_fmi_do_step(i, 1, 1, true, &step), CRD_E_STATE);
    crd_fmi_destroy(i);
    close_mock(&x);
}

static void event_mode_is_used_when_agreed(void** state)
{
    fixture x;
    open_mock(&x, "event", 3);
    const crd_fmi_options opt = {.event_mode = true};
    crd_fmi* i = instance_of(&x, &opt);
    crd_fmi_update update;
    check_ok(crd_fmi_enter_initialization(i, false, 0, 0, false, 0));
    check_ok(crd_fmi_exit_initialization(i));
    check_int(crd_fmi_get_state(i), CRD_FMI_EVENT);
    check_ok(crd_fmi_update_discrete(i, &update));
    check(update.again && update.values_changed && update.has_next_event);
    check(!update.terminate && !update.nominals_changed);
    check_near(update.next_event, 4.5, 0);
    check_ok(crd_fmi_enter_step_mode(i));
    check_ok(crd_fmi_enter_event_mode(i));
    crd_fmi_destroy(i); // terminates out of event mode
    check_int(x.mock->count[CRDI_FMI3_Terminate], 1);
    i = stepping(&x); // without event mode straight to the steps
    check(!x.mock->event_mode);
    check_status(crd_fmi_enter_event_mode(i), CRD_E_STATE);
    check_contains(crd_error_text(x.ctx), "made without event mode");
    crd_fmi_destroy(i);
    close_mock(&x);
}

// ---- saved states ------------------------------------------------------------------------------

static void a_restored_instance_repeats_its_steps(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "saved", version);
        crd_fmi* i = stepping(&x);
        crd_fmi_step step;
        void* saved = NULL;
        double a = 0, b = 0;
        check_ok(crd_fmi_set_real(i, &ref0, 1, &(double){2}, 1));
        check_ok(crd_fmi_do_step(i, 0, 1, false, &step));
        check_ok(crd_fmi_save(i, &saved));
        const int64_t allocations = x.memory.allocations;
        check_ok(crd_fmi_do_step(i, 1, 1, false, &step));
        check_ok(crd_fmi_get_real(i, &ref1, 1, &a, 1));
        check_ok(crd_fmi_restore(i, saved));
        check_ok(crd_fmi_do_step(i, 1, 1, false, &step));
        check_ok(crd_fmi_get_real(i, &ref1, 1, &b, 1));
        check_near(a, 4, 0);
        check_near(b, 4, 0);
        check_ok(crd_fmi_save(i, &saved)); // the same handle again
        check_int(x.memory.allocations, allocations);
        check_ok(crd_fmi_terminate(i));
        check_ok(crd_fmi_restore(i, saved)); // our state comes back with the FMU's
        check_int(crd_fmi_get_state(i), CRD_FMI_STEP);
        check_ok(crd_fmi_free_state(i, &saved));
        check(saved == NULL);
        check_ok(crd_fmi_free_state(i, &saved)); // nothing to do
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void a_state_travels_as_bytes(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "bytes", version);
        crd_fmi* i = stepping(&x);
        crd_fmi_step step;
        void *saved = NULL, *again = NULL;
        size_t size = 0;
        uint8_t bytes[2048];
        double y = 0;
        check_ok(crd_fmi_set_real(i, &ref0, 1, &(double){2}, 1));
        check_ok(crd_fmi_do_step(i, 0, 1, false, &step));
        check_ok(crd_fmi_save(i, &saved));
        check_ok(crd_fmi_serialized_size(i, saved, &size));
        check(size > 8 && size < sizeof bytes);
        check_ok(crd_fmi_serialize(i, saved, bytes, size));
        check_status(crd_fmi_serialize(i, saved, bytes, 7), CRD_E_RANGE);
        check_ok(crd_fmi_reset(i));
        check_ok(crd_fmi_set_real(i, &ref1, 1, &(double){-1}, 1));
        check_ok(crd_fmi_deserialize(i, bytes, size, &again));
        check_ok(crd_fmi_deserialize(i, bytes, size, &again)); // into a used handle
        check_ok(crd_fmi_restore(i, again));
        check_int(crd_fmi_get_state(i), CRD_FMI_STEP);
        check_ok(crd_fmi_get_real(i, &ref1, 1, &y, 1));
        check_near(y, 2, 0);
        void* none = NULL;
        for (int k = 0; k < 6; k++) { // every byte that we wrote in front matters
            const uint8_t old = bytes[k];
            bytes[k] = 0xee;
            check_status(crd_fmi_deserialize(i, bytes, size, &none), CRD_E_FORMAT);
            bytes[k] = old;
        }
        check_status(crd_fmi_deserialize(i, bytes, 5, &none), CRD_E_FORMAT);
        bytes[5] = CRD_FMI_EVENT; // not agreed with this instance
        check_status(crd_fmi_deserialize(i, bytes, size, &none), CRD_E_FORMAT);
        bytes[5] = CRD_FMI_STEP;
        check_status(crd_fmi_deserialize(i, bytes, size - 1, &none), CRD_E_UNIT); // the FMU's word
        check(none == NULL);
        check_ok(crd_fmi_free_state(i, &saved));
        check_ok(crd_fmi_free_state(i, &again));
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_warning_is_told_once_per_function),
        cmocka_unit_test(a_discarded_value_is_named),
        cmocka_unit_test(an_error_ends_the_run_of_an_instance_but_not_its_life),
        cmocka_unit_test(a_number_that_is_no_status_counts_as_an_error),
        cmocka_unit_test(after_a_fatal_error_no_instance_of_the_fmu_is_called_again),
        cmocka_unit_test(a_fatal_error_in_terminate_keeps_the_instance_from_being_freed),
        cmocka_unit_test(a_step_discarded_by_fmi2_says_how_far_it_came),
        cmocka_unit_test(a_step_discarded_by_fmi3_has_done_nothing),
        cmocka_unit_test(a_pending_step_is_waited_for),
        cmocka_unit_test(fmi3_says_where_a_step_ended_and_why),
        cmocka_unit_test(no_forbidden_call_reaches_the_fmu),
        cmocka_unit_test(destroy_frees_in_every_state),
        cmocka_unit_test(the_intermediate_update_may_set_and_get_what_was_asked_for),
        cmocka_unit_test(an_error_inside_the_intermediate_update_is_not_forgotten),
        cmocka_unit_test(event_mode_is_used_when_agreed),
        cmocka_unit_test(a_restored_instance_repeats_its_steps),
        cmocka_unit_test(a_state_travels_as_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
