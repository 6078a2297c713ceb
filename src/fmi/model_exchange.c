// What Model Exchange has beyond Co-Simulation: time, states, derivatives and indicators.
#include "fmi/instance.h"
#include "shared/base.h"

crd_status crdi_fmi_new_discrete_states(crd_fmi* i, crd_fmi_update* out)
{
    crdi_fmi2_event_info e = {0};
    const int function = CRDI_FMI2_NewDiscreteStates;
    if (!crdi_fmi_may(i, function)) { return crdi_fmi_refuse(i, function); }
    crdi_fmi_mark(i, function);
    if (crdi_fmi_is_one(i)) { return crdi_fmi_end(i, function, crdi_fmi1_update_events(i, out)); }
    const crdi_fmi_status status = i->f->two.NewDiscreteStates(i->component, &e);
    *out = (crd_fmi_update){.again = e.new_discrete_states_needed != 0,
                            .terminate = e.terminate_simulation != 0,
                            .nominals_changed = e.nominals_changed != 0,
                            .values_changed = e.values_changed != 0,
                            .has_next_event = e.next_event_time_defined != 0,
                            .next_event = e.next_event_time};
    return crdi_fmi_end(i, function, status);
}

CRDI_COLD static crd_status not_exchange(crd_fmi* i)
{
    return crdi_fail(i->ctx, CRD_E_STATE,
                     "%s: the instance was made for Co-Simulation, this belongs to Model Exchange",
                     i->name);
}

// A function that both versions have and that leads nowhere else; one that may say Discard sets
// `discarded`.
#define EXCHANGE(i, name2, name3, arguments, discarded)                                            \
    do {                                                                                           \
        if (!(i)->exchange) { return not_exchange(i); }                                            \
        const int function = crdi_fmi_is_two(i) ? (int)CRDI_FMI2_##name2 : (int)CRDI_FMI3_##name3; \
        if (!crdi_fmi_may(i, function)) { return crdi_fmi_refuse(i, function); }                   \
        crdi_fmi_mark(i, function);                                                                \
        const crdi_fmi_status status =                                                             \
            crdi_fmi_is_two(i) ? (i)->f->two.name2 arguments : (i)->f->three.name3 arguments;      \
        crdi_fmi_left(i);                                                                          \
        if (__builtin_expect(status == CRDI_FMI_OK, 1)) { return CRD_OK; }                         \
        return exchange_not_ok(i, function, status, discarded);                                    \
    } while (0)

CRDI_COLD static crd_status exchange_not_ok(crd_fmi* i, int function, crdi_fmi_status status,
                                            bool* discarded)
{
    if (status == CRDI_FMI_DISCARD && discarded) {
        *discarded = true;
        return CRD_OK;
    }
    return crdi_fmi_judge(i, function, status, NULL);
}

crd_status crd_fmi_get_counts(crd_fmi* i, size_t* states, size_t* indicators)
{
    if (!i->exchange) { return not_exchange(i); }
    const crd_fmu_model_exchange* x = &i->d->exchange;
    *states = x->state_count;
    *indicators = x->indicator_count;
    if (crdi_fmi_is_two(i)) { return CRD_OK; }
    crd_status st = CRD_OK;
    if (crdi_fmi_may(i, CRDI_FMI3_GetNumberOfContinuousStates)) {
        crdi_fmi_mark(i, CRDI_FMI3_GetNumberOfContinuousStates);
        st = crdi_fmi_end(i, CRDI_FMI3_GetNumberOfContinuousStates,
                          i->f->three.GetNumberOfContinuousStates(i->component, states));
    }
    if (st == CRD_OK && crdi_fmi_may(i, CRDI_FMI3_GetNumberOfEventIndicators)) {
        crdi_fmi_mark(i, CRDI_FMI3_GetNumberOfEventIndicators);
        st = crdi_fmi_end(i, CRDI_FMI3_GetNumberOfEventIndicators,
                          i->f->three.GetNumberOfEventIndicators(i->component, indicators));
    }
    return st;
}

crd_status crd_fmi_enter_continuous_time(crd_fmi* i)
{
    if (!i->exchange) { return not_exchange(i); }
    if (crdi_fmi_is_one(i)) { return crdi_fmi1_enter(i, CRDI_FMI2_EnterContinuousTimeMode); }
    const int function = crdi_fmi_is_two(i) ? (int)CRDI_FMI2_EnterContinuousTimeMode
                                            : (int)CRDI_FMI3_EnterContinuousTimeMode;
    if (!crdi_fmi_may(i, function)) { return crdi_fmi_refuse(i, function); }
    crdi_fmi_mark(i, function);
    return crdi_fmi_end(i, function,
                        crdi_fmi_is_two(i) ? i->f->two.EnterContinuousTimeMode(i->component)
                                           : i->f->three.EnterContinuousTimeMode(i->component));
}

crd_status crd_fmi_set_time(crd_fmi* i, double t)
{
    EXCHANGE(i, SetTime, SetTime, (i->component, t), NULL);
}

crd_status crd_fmi_set_states(crd_fmi* i, const double* x, size_t n, bool* discarded)
{
    EXCHANGE(i, SetContinuousStates, SetContinuousStates, (i->component, x, n), discarded);
}

crd_status crd_fmi_get_states(crd_fmi* i, double* x, size_t n)
{
    EXCHANGE(i, GetContinuousStates, GetContinuousStates, (i->component, x, n), NULL);
}

crd_status crd_fmi_get_derivatives(crd_fmi* i, double* dx, size_t n, bool* discarded)
{
    EXCHANGE(i, GetDerivatives, GetContinuousStateDerivatives, (i->component, dx, n), discarded);
}

crd_status crd_fmi_get_indicators(crd_fmi* i, double* z, size_t n, bool* discarded)
{
    EXCHANGE(i, GetEventIndicators, GetEventIndicators, (i->component, z, n), discarded);
}

crd_status crd_fmi_get_nominals(crd_fmi* i, double* x, size_t n)
{
    const bool present = crdi_fmi_is_two(i) ? i->f->two.GetNominalsOfContinuousStates != NULL
                                            : i->f->three.GetNominalsOfContinuousStates != NULL;
    for (size_t k = 0; k < n; k++) {
        x[k] = 1;
    }
    if (i->exchange && !present) { return CRD_OK; }
    EXCHANGE(i, GetNominalsOfContinuousStates, GetNominalsOfContinuousStates, (i->component, x, n),
             NULL);
}

static crd_status completed2(crd_fmi* i, bool no_rollback, bool* enter_event_mode, bool* terminate)
{
    int enter = 0, end = 0;
    const crdi_fmi_status status =
        crdi_fmi_is_one(i)
            ? crdi_fmi1_completed(i, enter_event_mode)
            : i->f->two.CompletedIntegratorStep(i->component, no_rollback, &enter, &end);
    crdi_fmi_left(i);
    if (!crdi_fmi_is_one(i)) { *enter_event_mode = enter != 0; }
    *terminate = end != 0;
    return status == CRDI_FMI_OK
               ? CRD_OK
               : exchange_not_ok(i, CRDI_FMI2_CompletedIntegratorStep, status, NULL);
}

crd_status crd_fmi_completed_step(crd_fmi* i, bool no_rollback, bool* enter_event_mode,
                                  bool* terminate)
{
    if (!i->exchange) { return not_exchange(i); }
    const int function = crdi_fmi_is_two(i) ? (int)CRDI_FMI2_CompletedIntegratorStep
                                            : (int)CRDI_FMI3_CompletedIntegratorStep;
    *enter_event_mode = *terminate = false;
    if (!crdi_fmi_may(i, function)) { return crdi_fmi_refuse(i, function); }
    crdi_fmi_mark(i, function);
    if (crdi_fmi_is_two(i)) { return completed2(i, no_rollback, enter_event_mode, terminate); }
    const crdi_fmi_status status =
        i->f->three.CompletedIntegratorStep(i->component, no_rollback, enter_event_mode, terminate);
    crdi_fmi_left(i);
    return status == CRDI_FMI_OK ? CRD_OK : exchange_not_ok(i, function, status, NULL);
}
