// The calls that lead an instance through its states: modes, steps, saved states, derivatives.
#include <sched.h>
#include <string.h>
#include <time.h>

#include "fmi/instance.h"
#include "shared/base.h"

crd_status crdi_fmi_end(crd_fmi* i, int function, crdi_fmi_status status)
{
    crdi_fmi_left(i);
    if (status > CRDI_FMI_WARNING || (int)status < 0) {
        return crdi_fmi_judge(i, function, status, NULL);
    }
    const crd_fmi_state next = crdi_fmi_next(crdi_fmi_kind_of(i), i->state, function, status);
    if (next != (crd_fmi_state)i->state) {
        crdi_float_check(i);
        crdi_fmi_set_state(i, next);
    }
    return status == CRDI_FMI_OK ? CRD_OK : crdi_fmi_judge(i, function, status, NULL);
}

// A call that leads to no other state and comes in every step.
static crd_status end_in_place(crd_fmi* i, int function, crdi_fmi_status status)
{
    crdi_fmi_left(i);
    return __builtin_expect(status == CRDI_FMI_OK, 1) ? CRD_OK : crdi_fmi_end(i, function, status);
}

// A function that both versions have: checks, marks, calls, ends.
#define CALL(i, name2, arguments2, name3, arguments3)                                              \
    CALL_AND(crdi_fmi_end, i, name2, arguments2, name3, arguments3)
#define CALL_AND(end, i, name2, arguments2, name3, arguments3)                                     \
    do {                                                                                           \
        const int function = crdi_fmi_is_two(i) ? (int)CRDI_FMI2_##name2 : (int)CRDI_FMI3_##name3; \
        if (!crdi_fmi_may(i, function)) { return crdi_fmi_refuse(i, function); }                   \
        crdi_fmi_mark(i, function);                                                                \
        const crdi_fmi_status status =                                                             \
            crdi_fmi_is_two(i) ? (i)->f->two.name2 arguments2 : (i)->f->three.name3 arguments3;    \
        return end(i, function, status);                                                           \
    } while (0)

// A function that one version has.
#define CALL_ONE(i, digit, member, name, arguments)                                                \
    do {                                                                                           \
        const int function = CRDI_FMI##digit##_##name;                                             \
        if ((i)->version != (digit)) { return only_in(i, digit, "fmi" #digit #name); }             \
        if (!crdi_fmi_may(i, function)) { return crdi_fmi_refuse(i, function); }                   \
        crdi_fmi_mark(i, function);                                                                \
        return crdi_fmi_end(i, function, (i)->f->member.name arguments);                           \
    } while (0)

CRDI_COLD static crd_status only_in(crd_fmi* i, int version, const char* function)
{
    return crdi_fail(i->ctx, CRD_E_UNSUPPORTED, "%s: %s needs an FMU of FMI %d.0, this one is %d.0",
                     i->name, function, version, (int)i->version);
}

CRDI_COLD static crd_status cannot(crd_fmi* i, const char* attribute)
{
    return crdi_fail(i->ctx, CRD_E_UNSUPPORTED,
                     "%s: the FMU does not offer this: %s is not set in its modelDescription",
                     i->name, attribute);
}

// ---- modes -------------------------------------------------------------------------------------

static crd_status setup_experiment(crd_fmi* i, bool has_tolerance, double tolerance, double start,
                                   bool has_stop, double stop)
{
    CALL_ONE(i, 2, two, SetupExperiment,
             (i->component, has_tolerance, tolerance, start, has_stop, stop));
}

crd_status crd_fmi_enter_initialization(crd_fmi* i, bool has_tolerance, double tolerance,
                                        double start, bool has_stop, double stop)
{
    if (!has_tolerance) { tolerance = 0; }
    if (!has_stop) { stop = 0; }
    if (crdi_fmi_is_one(i)) {
        *i->one = (crdi_fmi1_part){.has_tolerance = has_tolerance,
                                   .tolerance = tolerance,
                                   .start = start,
                                   .has_stop = has_stop,
                                   .stop = stop};
        return crdi_fmi1_enter(i, CRDI_FMI2_EnterInitializationMode);
    }
    if (crdi_fmi_is_two(i)) {
        const crd_status st = setup_experiment(i, has_tolerance, tolerance, start, has_stop, stop);
        if (st < 0) { return st; }
    }
    CALL(i, EnterInitializationMode, (i->component), EnterInitializationMode,
         (i->component, has_tolerance, tolerance, start, has_stop, stop));
}

crd_status crd_fmi_exit_initialization(crd_fmi* i)
{
    if (crdi_fmi_is_one(i)) {
        const bool done = i->one->early;
        i->one->early = false;
        return done ? CRD_OK : crdi_fmi1_initialize(i);
    }
    CALL(i, ExitInitializationMode, (i->component), ExitInitializationMode, (i->component));
}

crd_status crd_fmi_enter_configuration(crd_fmi* i)
{
    CALL_ONE(i, 3, three, EnterConfigurationMode, (i->component));
}

crd_status crd_fmi_exit_configuration(crd_fmi* i)
{
    CALL_ONE(i, 3, three, ExitConfigurationMode, (i->component));
}

crd_status crd_fmi_enter_event_mode(crd_fmi* i)
{
    if (i->exchange && crdi_fmi_is_one(i)) { return crdi_fmi1_enter(i, CRDI_FMI2_EnterEventMode); }
    if (i->exchange) { CALL(i, EnterEventMode, (i->component), EnterEventMode, (i->component)); }
    if (i->version == CRD_FMI_3 && !i->event_mode) {
        return crdi_fail(i->ctx, CRD_E_STATE, "%s: fmi3EnterEventMode is not allowed: %s", i->name,
                         i->d->has_event_mode ? "the instance was made without event mode"
                                              : "the FMU has no event mode");
    }
    CALL_ONE(i, 3, three, EnterEventMode, (i->component));
}

crd_status crd_fmi_enter_step_mode(crd_fmi* i)
{
    CALL_ONE(i, 3, three, EnterStepMode, (i->component));
}

crd_status crd_fmi_update_discrete(crd_fmi* i, crd_fmi_update* out)
{
    *out = (crd_fmi_update){0};
    if (i->exchange && crdi_fmi_is_two(i)) { return crdi_fmi_new_discrete_states(i, out); }
    CALL_ONE(i, 3, three, UpdateDiscreteStates,
             (i->component, &out->again, &out->terminate, &out->nominals_changed,
              &out->values_changed, &out->has_next_event, &out->next_event));
}

crd_status crd_fmi_terminate(crd_fmi* i)
{
    CALL(i, Terminate, (i->component), Terminate, (i->component));
}

crd_status crd_fmi_reset(crd_fmi* i)
{
    CALL(i, Reset, (i->component), Reset, (i->component));
}

// ---- steps -------------------------------------------------------------------------------------

// An asynchronous FMU went on in the background. We gave no stepFinished callback, so we ask; the
// thread would wait anyway, and asking wakes nobody at the wrong time.
static crdi_fmi_status wait_for_step(crd_fmi* i)
{
    crdi_fmi_status status = CRDI_FMI_PENDING;
    for (int tries = 0; status == CRDI_FMI_PENDING; tries++) {
        if (tries < 100) {
            sched_yield();
        } else {
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        }
        crdi_fmi_mark(i, CRDI_FMI2_GetStatus);
        if (i->f->two.GetStatus(i->component, CRDI_FMI2_DO_STEP_STATUS, &status) >
            CRDI_FMI_WARNING) {
            status = CRDI_FMI_ERROR;
        }
    }
    crdi_fmi_mark(i, CRDI_FMI2_DoStep);
    return status;
}

// FMI 2.0.4, 4.2.2: part of the step was done. How far, and is that the end? (FMI 1 has no word for
// the latter.)
static void ask_after_discard(crd_fmi* i, double t, crd_fmi_step* out)
{
    double reached = t;
    int terminated = 0;
    crdi_fmi_set_state(
        i, crdi_fmi_next(crdi_fmi_kind_of(i), i->state, CRDI_FMI2_DoStep, CRDI_FMI_DISCARD));
    if (crdi_fmi_may(i, CRDI_FMI2_GetRealStatus)) {
        crdi_fmi_mark(i, CRDI_FMI2_GetRealStatus);
        if (i->f->two.GetRealStatus(i->component, CRDI_FMI2_LAST_SUCCESSFUL_TIME, &reached) >
            CRDI_FMI_WARNING) {
            reached = t;
        }
    }
    if (!crdi_fmi_is_one(i) && crdi_fmi_may(i, CRDI_FMI2_GetBooleanStatus)) {
        crdi_fmi_mark(i, CRDI_FMI2_GetBooleanStatus);
        if (i->f->two.GetBooleanStatus(i->component, CRDI_FMI2_TERMINATED, &terminated) >
            CRDI_FMI_WARNING) {
            terminated = 0;
        }
    }
    *out = (crd_fmi_step){.reached = reached, .terminate = terminated != 0, .discarded = true};
}

CRDI_COLD static crd_status step_not_ok(crd_fmi* i, crdi_fmi_status status, double t,
                                        crd_fmi_step* out)
{
    if (crdi_fmi_is_two(i) && status == CRDI_FMI_PENDING) {
        if (!i->f->two.GetStatus) { return crdi_fmi_refuse(i, CRDI_FMI2_GetStatus); }
        status = wait_for_step(i);
        if (status == CRDI_FMI_OK) { return CRD_OK; }
    }
    if (status == CRDI_FMI_DISCARD) {
        if (crdi_fmi_is_two(i)) {
            ask_after_discard(i, t, out);
        } else {
            *out = (crd_fmi_step){.reached = t, .discarded = true};
        }
        return CRD_OK;
    }
    if (status != CRDI_FMI_WARNING) { *out = (crd_fmi_step){.reached = t}; }
    return crdi_fmi_judge(i, CRDI_FMI_DO_STEP, status, &(crdi_fmi_place){.time = &t});
}

crd_status crd_fmi_do_step(crd_fmi* i, double t, double h, bool no_rollback, crd_fmi_step* out)
{
    if (!crdi_fmi_may(i, CRDI_FMI_DO_STEP)) { return crdi_fmi_refuse(i, CRDI_FMI_DO_STEP); }
    crdi_fmi_mark(i, CRDI_FMI_DO_STEP);
    *out = (crd_fmi_step){.reached = t + h};
    crdi_fmi_status status;
    if (crdi_fmi_is_two(i)) {
        // in FMI 1 the last one says that the step before is accepted
        status = i->f->two.DoStep(i->component, t, h, no_rollback | crdi_fmi_is_one(i));
    } else {
        // The FMU's own time may miss t + h by its inner grid. Without early return the next step
        // still starts at t + h: the Reference FMUs insist on that.
        double last = t + h;
        status = i->f->three.DoStep(i->component, t, h, no_rollback, &out->event_needed,
                                    &out->terminate, &out->early, &last);
        if (out->early) { out->reached = last; }
    }
    crdi_fmi_left(i);
    return __builtin_expect(status == CRDI_FMI_OK, 1) ? CRD_OK : step_not_ok(i, status, t, out);
}

// ---- set, step and get at once -----------------------------------------------------------------

#define CRDI_INLINE __attribute__((always_inline))

// What a step looks at stands in the exchange; the bits of the three functions are one flag there.
void crdi_fmi_tell_joined(crd_fmi* i)
{
    const uint64_t all = 1U << CRDI_FMI_SET_REAL | 1U << CRDI_FMI_DO_STEP | 1U << CRDI_FMI_GET_REAL;
    if (!i->joined) { return; }
    const bool ready = (atomic_load(&i->allowed[0]) & all) == all;
    __atomic_store_n(&i->joined->ready, ready, __ATOMIC_SEQ_CST);
}

static inline bool is_ready(const crd_fmi_exchange* x)
{
    return __atomic_load_n(&x->ready, __ATOMIC_RELAXED);
}

static inline void mark_in(crd_fmi_exchange* x, int function)
{
    __atomic_store_n(&x->call, (uint8_t)function, __ATOMIC_RELAXED);
}

CRDI_COLD static crd_status value_not_ok(crd_fmi* i, int function, crdi_fmi_status status,
                                         const uint32_t* refs, size_t n)
{
    return crdi_fmi_judge(i, function, status, &(crdi_fmi_place){.refs = refs, .n = n});
}

// Through the single calls, which find out and say what is wrong.
CRDI_COLD static crd_status advance_slowly(crd_fmi_exchange* x, double t, double h)
{
    crd_status st = CRD_OK;
    crd_fmi_step step = {0};
    if (x->set_refs) {
        CRD_TRY(
            crd_fmi_set_real(x->fmi, x->set_refs, x->set_count, x->set_values, x->set_value_count));
    }
    CRD_TRY(crd_fmi_do_step(x->fmi, t, h, x->no_rollback, &step));
    CRD_TRY(x->odd(x->user, t, h, &step));
    if (x->get_refs) {
        CRD_TRY(
            crd_fmi_get_real(x->fmi, x->get_refs, x->get_count, x->get_values, x->get_value_count));
    }
fail:
    return st;
}

// A step that was not OK, or that asks for something. Then it may still go on.
CRDI_COLD static crd_status step_was_odd(crd_fmi_exchange* x, crdi_fmi_status status, double t,
                                         double h, crd_fmi_step* step)
{
    crd_status st = CRD_OK;
    if (status != CRDI_FMI_OK) { st = step_not_ok(x->fmi, status, t, step); }
    return st < 0 ? st : x->odd(x->user, t, h, step);
}

typedef crdi_fmi_status set2(void*, const uint32_t*, size_t, const double*);
typedef crdi_fmi_status step2(void*, double, double, int);
typedef crdi_fmi_status get2(void*, const uint32_t*, size_t, double*);

static inline CRDI_INLINE crd_status advance2(crd_fmi_exchange* x, double t, double h)
{
    if (__builtin_expect(!is_ready(x), 0)) { return advance_slowly(x, t, h); }
    crdi_fmi_status status = CRDI_FMI_OK;
    crd_status st = CRD_OK;
    if (x->set_refs) {
        mark_in(x, CRDI_FMI_SET_REAL);
        status = ((set2*)x->functions[0])(x->component, x->set_refs, x->set_count, x->set_values);
        if (__builtin_expect(status != CRDI_FMI_OK, 0)) {
            st = value_not_ok(x->fmi, CRDI_FMI_SET_REAL, status, x->set_refs, x->set_count);
            if (st < 0) { return st; }
        }
    }
    mark_in(x, CRDI_FMI_DO_STEP);
    status = ((step2*)x->functions[1])(x->component, t, h, x->no_rollback);
    if (__builtin_expect(status != CRDI_FMI_OK, 0)) {
        crd_fmi_step step = {.reached = t + h};
        st = step_was_odd(x, status, t, h, &step);
        if (st < 0) { return st; }
    }
    if (!x->get_refs) { return CRD_OK; }
    mark_in(x, CRDI_FMI_GET_REAL);
    status = ((get2*)x->functions[2])(x->component, x->get_refs, x->get_count, x->get_values);
    return __builtin_expect(status == CRDI_FMI_OK, 1)
               ? CRD_OK
               : value_not_ok(x->fmi, CRDI_FMI_GET_REAL, status, x->get_refs, x->get_count);
}

typedef crdi_fmi_status set3(void*, const uint32_t*, size_t, const double*, size_t);
typedef crdi_fmi_status step3(void*, double, double, bool, bool*, bool*, bool*, double*);
typedef crdi_fmi_status get3(void*, const uint32_t*, size_t, double*, size_t);

static inline CRDI_INLINE crd_status advance3(crd_fmi_exchange* x, double t, double h)
{
    if (__builtin_expect(!is_ready(x), 0)) { return advance_slowly(x, t, h); }
    crdi_fmi_status status = CRDI_FMI_OK;
    crd_status st = CRD_OK;
    if (x->set_refs) {
        mark_in(x, CRDI_FMI_SET_REAL);
        status = ((set3*)x->functions[0])(x->component, x->set_refs, x->set_count, x->set_values,
                                          x->set_value_count);
        if (__builtin_expect(status != CRDI_FMI_OK, 0)) {
            st = value_not_ok(x->fmi, CRDI_FMI_SET_REAL, status, x->set_refs, x->set_count);
            if (st < 0) { return st; }
        }
    }
    crd_fmi_step step = {.reached = t + h};
    mark_in(x, CRDI_FMI_DO_STEP);
    double last = t + h;
    status = ((step3*)x->functions[1])(x->component, t, h, x->no_rollback, &step.event_needed,
                                       &step.terminate, &step.early, &last);
    if (__builtin_expect(status != CRDI_FMI_OK || (step.event_needed | step.terminate | step.early),
                         0)) {
        if (step.early) { step.reached = last; }
        st = step_was_odd(x, status, t, h, &step);
        if (st < 0) { return st; }
    }
    if (!x->get_refs) { return CRD_OK; }
    mark_in(x, CRDI_FMI_GET_REAL);
    status = ((get3*)x->functions[2])(x->component, x->get_refs, x->get_count, x->get_values,
                                      x->get_value_count);
    return __builtin_expect(status == CRDI_FMI_OK, 1)
               ? CRD_OK
               : value_not_ok(x->fmi, CRDI_FMI_GET_REAL, status, x->get_refs, x->get_count);
}

crd_status crd_fmi_advance(crd_fmi_exchange* first, size_t stride, int count, double t, double h,
                           volatile int* at)
{
    crd_status st = CRD_OK;
    crd_fmi_exchange* x = first;
    for (int k = 0; k < count && st >= 0; k++) {
        *at = x->id;
        crdi_fmi_calling = x->fmi;
        st = x->two ? advance2(x, t, h) : advance3(x, t, h);
        if (k + 1 < count && __builtin_expect(!crdi_float_seems_normal(), 0)) {
            crdi_float_check(x->fmi);
        }
        x = (crd_fmi_exchange*)((char*)x + stride);
    }
    if (count > 0) { crdi_fmi_left(crdi_fmi_calling); }
    return st;
}

void crd_fmi_join(crd_fmi* i, crd_fmi_exchange* x)
{
    i->joined = x;
    x->fmi = i;
    x->component = i->component;
    x->two = crdi_fmi_is_two(i);
    x->no_rollback |= crdi_fmi_is_one(i); // the step before is accepted
    x->call = CRDI_FMI_NO_FUNCTION;
    crdi_fmi_tell_joined(i);
    if (crdi_fmi_is_two(i)) {
        x->functions[0] = (void (*)(void))i->f->two.SetReal;
        x->functions[1] = (void (*)(void))i->f->two.DoStep;
        x->functions[2] = (void (*)(void))i->f->two.GetReal;
    } else {
        x->functions[0] = (void (*)(void))i->f->three.SetFloat64;
        x->functions[1] = (void (*)(void))i->f->three.DoStep;
        x->functions[2] = (void (*)(void))i->f->three.GetFloat64;
    }
}

// FMI 3.0.2, 4.2.2. Runs inside fmi3DoStep, on whatever thread the FMU likes.
void crdi_fmi3_update(void* environment, double t, bool set_requested, bool get_allowed,
                      bool step_finished, bool can_return_early, bool* return_early,
                      double* return_time)
{
    crd_fmi* i = crdi_fmi_speaker(environment);
    bool stop = false;
    if (i && i->intermediate && i->state == CRD_FMI_STEP) {
        crdi_fmi_set_intermediate(i, set_requested, get_allowed);
        stop = i->intermediate(i->intermediate_user, t, set_requested, get_allowed, step_finished,
                               can_return_early);
        if (i->state == CRD_FMI_INTERMEDIATE) { crdi_fmi_set_state(i, CRD_FMI_STEP); }
        crdi_fmi_mark(i, CRDI_FMI3_DoStep);
    }
    if (i) { crdi_fmi_speaker_done(i); }
    if (return_early) { *return_early = stop && can_return_early; }
    if (return_time) { *return_time = t; }
}

// ---- derivatives -------------------------------------------------------------------------------

crd_status crd_fmi_set_input_derivatives(crd_fmi* i, const uint32_t* refs, size_t n,
                                         const int32_t* orders, const double* values)
{
    const int function = CRDI_FMI2_SetRealInputDerivatives;
    if (!crdi_fmi_is_two(i)) { return only_in(i, 2, "fmi2SetRealInputDerivatives"); }
    if (!i->d->can_interpolate_inputs) { return cannot(i, "canInterpolateInputs"); }
    if (!crdi_fmi_may(i, function)) { return crdi_fmi_refuse(i, function); }
    crdi_fmi_mark(i, function);
    return end_in_place(i, function,
                        i->f->two.SetRealInputDerivatives(i->component, refs, n, orders, values));
}

crd_status crd_fmi_try_input_derivatives(crd_fmi* i, const uint32_t* refs, size_t n,
                                         const int32_t* orders, const double* values)
{
    const int function = CRDI_FMI2_SetRealInputDerivatives;
    if (!crdi_fmi_is_two(i)) { return only_in(i, 2, "fmi2SetRealInputDerivatives"); }
    if (!crdi_fmi_may(i, function)) { return crdi_fmi_refuse(i, function); }
    crdi_fmi_mark(i, function);
    i->asked = true;
    const crdi_fmi_status status =
        i->f->two.SetRealInputDerivatives(i->component, refs, n, orders, values);
    i->asked = false;
    if (status != CRDI_FMI_WARNING) { return crdi_fmi_end(i, function, status); }
    char text[CRDI_FMI_TEXT];
    crdi_fmi_take_text(i, text);
    return crdi_fail(i->ctx, CRD_E_UNIT, "%s: %s returned Warning%s%s", i->name,
                     crdi_fmi_function_name(i->version, i->exchange, function),
                     text[0] ? "; its last message: " : "", text);
}

crd_status crd_fmi_get_output_derivatives(crd_fmi* i, const uint32_t* refs, size_t n,
                                          const int32_t* orders, double* values)
{
    if (i->d->max_output_derivative < 1) { return cannot(i, "maxOutputDerivativeOrder"); }
    CALL_AND(end_in_place, i, GetRealOutputDerivatives, (i->component, refs, n, orders, values),
             GetOutputDerivatives, (i->component, refs, n, orders, values, n));
}

crd_status crd_fmi_directional_derivative(crd_fmi* i, const uint32_t* unknowns, size_t nu,
                                          const uint32_t* knowns, size_t nk, const double* seed,
                                          double* sensitivity)
{
    return crd_fmi_directional_elements(i, unknowns, nu, knowns, nk, seed, nk, sensitivity, nu);
}

crd_status crd_fmi_directional_elements(crd_fmi* i, const uint32_t* unknowns, size_t nu,
                                        const uint32_t* knowns, size_t nk, const double* seed,
                                        size_t seed_count, double* sensitivity, size_t count)
{
    if (!i->provides_directional_derivatives) {
        return cannot(i, crdi_fmi_is_two(i) ? "providesDirectionalDerivative"
                                            : "providesDirectionalDerivatives");
    }
    CALL_AND(end_in_place, i, GetDirectionalDerivative,
             (i->component, unknowns, nu, knowns, nk, seed, sensitivity), GetDirectionalDerivative,
             (i->component, unknowns, nu, knowns, nk, seed, seed_count, sensitivity, count));
}

// ---- saved states ------------------------------------------------------------------------------

// What the caller holds: the FMU's own state, and ours that belongs to it.
typedef struct saved {
    void* fmu_state;
    crd_fmi_state state;
} saved;

// In front of the FMU's bytes:
//    0  char[4]  "CRDS"      5  u8  crd_fmi_state
//    4  u8  FMI version      6  u16 zero
enum { PREFIX = 8 };

static crd_status get_state(crd_fmi* i, void** fmu_state)
{
    CALL(i, GetFMUstate, (i->component, fmu_state), GetFMUState, (i->component, fmu_state));
}

static crd_status set_state(crd_fmi* i, void* fmu_state)
{
    CALL(i, SetFMUstate, (i->component, fmu_state), SetFMUState, (i->component, fmu_state));
}

static crd_status free_state(crd_fmi* i, void** fmu_state)
{
    CALL(i, FreeFMUstate, (i->component, fmu_state), FreeFMUState, (i->component, fmu_state));
}

static crd_status calls_state_size(crd_fmi* i, void* fmu_state, size_t* size)
{
    CALL(i, SerializedFMUstateSize, (i->component, fmu_state, size), SerializedFMUStateSize,
         (i->component, fmu_state, size));
}

static crd_status to_bytes(crd_fmi* i, void* fmu_state, uint8_t* bytes, size_t size)
{
    CALL(i, SerializeFMUstate, (i->component, fmu_state, (char*)bytes, size), SerializeFMUState,
         (i->component, fmu_state, bytes, size));
}

static crd_status from_bytes(crd_fmi* i, const uint8_t* bytes, size_t size, void** fmu_state)
{
    CALL(i, DeSerializeFMUstate, (i->component, (const char*)bytes, size, fmu_state),
         DeserializeFMUState, (i->component, bytes, size, fmu_state));
}

static const char* state_attribute(const crd_fmi* i)
{
    return crdi_fmi_is_two(i) ? "canGetAndSetFMUstate" : "canGetAndSetFMUState";
}

static const char* bytes_attribute(const crd_fmi* i)
{
    return crdi_fmi_is_two(i) ? "canSerializeFMUstate" : "canSerializeFMUState";
}

crd_status crd_fmi_save(crd_fmi* i, void** state)
{
    if (!i->can_get_set_state) { return cannot(i, state_attribute(i)); }
    saved* s = *state;
    if (!s) {
        s = crdi_new(i->ctx, sizeof *s);
        if (!s) { return CRD_E_MEMORY; }
    }
    const crd_status st = get_state(i, &s->fmu_state);
    if (st < 0) {
        if (s != *state) { crd_free(i->ctx, s); }
        return st;
    }
    s->state = i->state;
    *state = s;
    return CRD_OK;
}

crd_status crd_fmi_restore(crd_fmi* i, void* state)
{
    if (!i->can_get_set_state) { return cannot(i, state_attribute(i)); }
    const saved* s = state;
    const crd_status st = set_state(i, s->fmu_state);
    if (st == CRD_OK && i->state != s->state) { crdi_fmi_set_state(i, s->state); }
    return st;
}

crd_status crd_fmi_free_state(crd_fmi* i, void** state)
{
    saved* s = *state;
    if (!s) { return CRD_OK; }
    // After a fatal error ours goes and the FMU's stays, as the FMU itself does.
    const bool gone = i->state == CRD_FMI_FATAL || atomic_load(&i->fatal);
    const crd_status st = gone || !s->fmu_state ? CRD_OK : free_state(i, &s->fmu_state);
    crd_free(i->ctx, s);
    *state = NULL;
    return st;
}

crd_status crd_fmi_serialized_size(crd_fmi* i, void* state, size_t* size)
{
    if (!i->can_serialize_state) { return cannot(i, bytes_attribute(i)); }
    const saved* s = state;
    size_t n = 0;
    const crd_status st = calls_state_size(i, s->fmu_state, &n);
    if (st < 0) { return st; }
    if (n > SIZE_MAX - PREFIX) {
        return crdi_fail(i->ctx, CRD_E_UNIT, "%s: a serialized state of %zu bytes makes no sense",
                         i->name, n);
    }
    *size = n + PREFIX;
    return CRD_OK;
}

crd_status crd_fmi_serialize(crd_fmi* i, void* state, uint8_t* bytes, size_t size)
{
    if (!i->can_serialize_state) { return cannot(i, bytes_attribute(i)); }
    if (size < PREFIX) {
        return crdi_fail(i->ctx, CRD_E_RANGE,
                         "%s: %zu bytes are too few for a serialized state, ask for its size",
                         i->name, size);
    }
    const saved* s = state;
    const uint8_t prefix[PREFIX] = {'C', 'R', 'D', 'S', i->version, (uint8_t)s->state, 0, 0};
    memcpy(bytes, prefix, PREFIX);
    return to_bytes(i, s->fmu_state, bytes + PREFIX, size - PREFIX);
}

// States that a saved one may have: those in which fmi2GetFMUstate or fmi3GetFMUState may be
// called.
static bool state_fits(const crd_fmi* i, uint8_t state)
{
    const int function =
        crdi_fmi_is_two(i) ? (int)CRDI_FMI2_GetFMUstate : (int)CRDI_FMI3_GetFMUState;
    return state < CRD_FMI_STATE_COUNT && crdi_fmi_allowed(crdi_fmi_kind_of(i), function, state) &&
           (i->exchange || i->event_mode || state != CRD_FMI_EVENT);
}

crd_status crd_fmi_deserialize(crd_fmi* i, const uint8_t* bytes, size_t size, void** state)
{
    if (!i->can_serialize_state) { return cannot(i, bytes_attribute(i)); }
    if (size < PREFIX || memcmp(bytes, "CRDS", 4) != 0 || bytes[4] != i->version ||
        !state_fits(i, bytes[5])) {
        return crdi_fail(i->ctx, CRD_E_FORMAT,
                         "%s: these %zu bytes are not the serialized state of an FMI %d.0 instance",
                         i->name, size, (int)i->version);
    }
    saved* s = *state;
    crd_status st = CRD_OK;
    if (!s) {
        s = crdi_new(i->ctx, sizeof *s);
        if (!s) { return CRD_E_MEMORY; }
    } else if (s->fmu_state) {
        CRD_TRY(free_state(i, &s->fmu_state));
        s->fmu_state = NULL;
    }
    CRD_TRY(from_bytes(i, bytes + PREFIX, size - PREFIX, &s->fmu_state));
    s->state = bytes[5];
    *state = s;
    return CRD_OK;
fail:
    if (s != *state) { crd_free(i->ctx, s); }
    return st;
}
