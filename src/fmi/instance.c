// Making and ending an instance: the callbacks, what its state allows.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fmi/instance.h"

// ---- what is allowed ---------------------------------------------------------------------------

void crdi_fmi_close_calls(crd_fmi* i)
{
    atomic_store(&i->fatal, true);
    for (int w = 0; w < CRDI_FMI_WORDS; w++) {
        atomic_store(&i->allowed[w], 0);
    }
    crdi_fmi_tell_joined(i);
}

static void allow(crd_fmi* i, crd_fmi_state state, const uint64_t set[CRDI_FMI_WORDS])
{
    i->state = (uint8_t)state;
    for (int w = 0; w < CRDI_FMI_WORDS; w++) {
        atomic_store(&i->allowed[w], set[w]);
    }
    crdi_fmi_tell_joined(i);
    // Another thread may have closed us in between: it stores the flag first and the set second,
    // we store the set first and look at the flag second, so one of us sees the other.
    if (atomic_load(&i->fatal)) { crdi_fmi_close_calls(i); }
}

void crdi_fmi_set_state(crd_fmi* i, crd_fmi_state state)
{
    allow(i, state, i->library->sets[state]);
}

void crdi_fmi_set_intermediate(crd_fmi* i, bool may_set, bool may_get)
{
    uint64_t set[CRDI_FMI_WORDS];
    for (int w = 0; w < CRDI_FMI_WORDS; w++) {
        uint64_t setters = 0;
        if (CRDI_FMI3_SetFloat32 / 64 == w) { setters |= UINT64_C(1) << CRDI_FMI3_SetFloat32 % 64; }
        if (CRDI_FMI3_SetFloat64 / 64 == w) { setters |= UINT64_C(1) << CRDI_FMI3_SetFloat64 % 64; }
        set[w] = i->library->sets[CRD_FMI_INTERMEDIATE][w] &
                 ((may_set ? setters : 0) | (may_get ? ~setters : 0));
    }
    allow(i, CRD_FMI_INTERMEDIATE, set);
}

// ---- making one --------------------------------------------------------------------------------

void* crdi_fmi_allocate(size_t count, size_t size)
{
    return calloc(count, size);
}

void crdi_fmi_release(void* p)
{
    free(p);
}

// FMI 2.0.4, 2.1.4 and FMI 3.0.2, 2.2.5: is it the interface that we know?
static crd_status check_interface(crd_fmi* i)
{
    const char* expected = crdi_fmi_is_one(i) ? "standard32" : "default";
    if (crdi_fmi_is_two(i) && i->f->two.GetTypesPlatform) {
        crdi_fmi_mark(i, CRDI_FMI2_GetTypesPlatform);
        const char* types = i->f->two.GetTypesPlatform();
        if (types && strcmp(types, expected) != 0) {
            return crdi_fail(i->ctx, CRD_E_UNSUPPORTED,
                             "%s: %s: the types platform is '%.100s', expected '%s'", i->fmu->path,
                             crdi_fmi_library_name(i), types, expected);
        }
    }
    const char* (*get_version)(void) =
        crdi_fmi_is_two(i) ? i->f->two.GetVersion : i->f->three.GetVersion;
    if (!get_version) { return CRD_OK; }
    crdi_fmi_mark(i, crdi_fmi_is_two(i) ? (int)CRDI_FMI2_GetVersion : (int)CRDI_FMI3_GetVersion);
    const char* version = get_version();
    if (!version || version[0] != '0' + i->version || version[1] != '.') {
        crdi_log(i->ctx, CRD_LOG_WARNING, "%s: the library says FMI version '%.40s', expected %d.0",
                 i->name, version ? version : "", (int)i->version);
    }
    return CRD_OK;
}

static void* instantiate2(crd_fmi* i, const crd_fmi_options* opt)
{
    i->callbacks = (crdi_fmi2_callbacks){
        .logger = crdi_fmi2_log,
        .allocate = crdi_fmi_allocate,
        .release = crdi_fmi_release,
        .environment = i,
    };
    return i->f->two.Instantiate(
        i->name, i->exchange ? CRDI_FMI2_MODEL_EXCHANGE : CRDI_FMI2_CO_SIMULATION, i->d->token,
        i->library->resources, &i->callbacks, opt->visible, opt->logging_on);
}

static void* instantiate3(crd_fmi* i, const crd_fmi_options* opt)
{
    const bool update = i->intermediate != NULL;
    if (i->exchange) {
        return i->f->three.InstantiateModelExchange(i->name, i->d->token, i->library->resources,
                                                    opt->visible, opt->logging_on, i,
                                                    crdi_fmi3_log);
    }
    return i->f->three.InstantiateCoSimulation(
        i->name, i->d->token, i->library->resources, opt->visible, opt->logging_on, i->event_mode,
        opt->early_return, update ? opt->intermediate_inputs : NULL,
        update ? opt->intermediate_input_count : 0, i, crdi_fmi3_log,
        update ? crdi_fmi3_update : NULL);
}

static void choose_interface(crd_fmi* i, bool exchange)
{
    const crd_fmu_description* d = i->d;
    const crd_fmu_model_exchange* x = &d->exchange;
    i->exchange = exchange;
    i->can_get_set_state = exchange ? x->can_get_set_state : d->can_get_set_state;
    i->can_serialize_state = exchange ? x->can_serialize_state : d->can_serialize_state;
    i->provides_directional_derivatives =
        exchange ? x->provides_directional_derivatives : d->provides_directional_derivatives;
    i->needs_execution_tool = exchange ? x->needs_execution_tool : d->needs_execution_tool;
    i->can_be_instantiated_once =
        exchange ? x->can_be_instantiated_once : d->can_be_instantiated_once;
}

static crd_status instance_fill(crd_fmi* i, crd_fmu* f, const crd_fmi_options* opt)
{
    i->fmu = f;
    i->d = crd_fmu_describe(f);
    i->version = (uint8_t)i->d->version;
    choose_interface(i, opt->model_exchange);
    i->library = &f->libraries[i->exchange];
    i->f = &i->library->f;
    i->state = CRD_FMI_INSTANTIATED;
    i->logger = opt->logger;
    i->logger_user = opt->logger_user;
    i->event_mode =
        !i->exchange && i->version == CRD_FMI_3 && opt->event_mode && i->d->has_event_mode;
    if (!i->exchange && i->version == CRD_FMI_3 && i->d->provides_intermediate_update) {
        i->intermediate = opt->intermediate;
        i->intermediate_user = opt->intermediate_user;
    }
    if (crdi_fmi_is_one(i)) { i->one = crdi_new(i->ctx, sizeof *i->one); }
    return i->one || !crdi_fmi_is_one(i) ? CRD_OK : CRD_E_MEMORY;
}

static int instantiate_number(const crd_fmi* i)
{
    if (crdi_fmi_is_two(i)) { return CRDI_FMI2_Instantiate; }
    return i->exchange ? CRDI_FMI3_InstantiateModelExchange : CRDI_FMI3_InstantiateCoSimulation;
}

static void call_begins(crd_fmi* i, int function, const crd_fmi_options* opt)
{
    crdi_fmi_mark(i, function);
    if (opt->call) { *opt->call = crdi_fmi_function_name(i->version, i->exchange, function); }
}

crd_status crd_fmi_instantiate(crd_context* ctx, crd_fmu* f, const crd_fmi_options* opt,
                               crd_fmi** out)
{
    if (!opt->instance_name || !opt->instance_name[0]) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: an instance needs a name", crd_fmu_path(f));
    }
    crd_status st = crd_fmu_check_interface(f, opt->model_exchange, ctx);
    if (st < 0) { return st; }
    const size_t name = strlen(opt->instance_name) + 1;
    crd_fmi* i = crdi_new(ctx, sizeof *i + name);
    if (!i) { return CRD_E_MEMORY; }
    memcpy(i->name, opt->instance_name, name);
    i->ctx = ctx;
    CRD_TRY(instance_fill(i, f, opt));
    crdi_fmi_speaker_add(i);
    call_begins(i, CRDI_FMI_LOADING, opt);
    CRD_TRY(crdi_fmi_library_join(i));
    CRD_TRY(check_interface(i));
    call_begins(i, instantiate_number(i), opt);
    i->component = crdi_fmi_is_one(i)   ? crdi_fmi1_instantiate(i, opt)
                   : crdi_fmi_is_two(i) ? instantiate2(i, opt)
                                        : instantiate3(i, opt);
    crdi_float_check(i);
    if (!i->component) {
        char text[CRDI_FMI_TEXT];
        crdi_fmi_take_text(i, text);
        st = crdi_fail(ctx, CRD_E_UNIT, "%s: the FMU %s refused to be instantiated%s%s", i->name,
                       crd_fmu_path(f), text[0] ? "; its last message: " : " and gave no reason",
                       text);
        goto fail;
    }
    crdi_fmi_set_state(i, CRD_FMI_INSTANTIATED);
    *out = i;
    return CRD_OK;
fail:
    crd_fmi_destroy(i);
    return st;
}

// ---- ending it ---------------------------------------------------------------------------------

static void instance_forget(crd_fmi* i, bool unload)
{
    crdi_fmi_mark(i, CRDI_FMI_UNLOADING);
    crdi_fmi_library_leave(i, unload);
    crdi_float_check(i);
    crdi_fmi_speaker_remove(i);
    free(i->said);
    crd_free(i->ctx, i->one);
    crd_free(i->ctx, i->scratch);
    crd_free(i->ctx, i);
}

void crd_fmi_destroy(crd_fmi* i)
{
    if (!i) { return; }
    assert(i->state != CRD_FMI_INTERMEDIATE && "an instance cannot go inside its own step");
    if (i->component) {
        const int terminate =
            crdi_fmi_is_two(i) ? (int)CRDI_FMI2_Terminate : (int)CRDI_FMI3_Terminate;
        if (crdi_fmi_may(i, terminate)) { crd_fmi_terminate(i); } // may turn fatal
        const int function =
            crdi_fmi_is_two(i) ? (int)CRDI_FMI2_FreeInstance : (int)CRDI_FMI3_FreeInstance;
        if (crdi_fmi_may(i, function)) {
            crdi_fmi_mark(i, function);
            if (crdi_fmi_is_two(i)) {
                i->f->two.FreeInstance(i->component);
            } else {
                i->f->three.FreeInstance(i->component);
            }
        }
    }
    // Unloading runs the library's destructors, which a fatal error forbids as well.
    instance_forget(i, !atomic_load(&i->fatal));
}

void crd_fmi_abandon(crd_fmi* i)
{
    if (i) { instance_forget(i, false); } // its library stays: its destructors are its code too
}

crd_fmi_state crd_fmi_get_state(const crd_fmi* i)
{
    return atomic_load(&i->fatal) ? CRD_FMI_FATAL : (crd_fmi_state)i->state;
}

void* crd_fmi_component(const crd_fmi* i)
{
    return i->component;
}

const char* crd_fmi_last_call(const crd_fmi* i)
{
    int call = CRDI_FMI_NO_FUNCTION;
    if (i->joined) { call = __atomic_load_n(&i->joined->call, __ATOMIC_RELAXED); }
    if (call == CRDI_FMI_NO_FUNCTION) {
        call = atomic_load_explicit(&i->last_call, memory_order_relaxed);
    }
    return crdi_fmi_function_name(i->version, i->exchange, call);
}
