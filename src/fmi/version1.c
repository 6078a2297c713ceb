// What FMI 1.0 does in a way of its own: making and initialising an instance, events, Booleans. All
// else goes through the pointers of FMI 2.
#include "fmi/instance.h"

#define AS(type, pointer) ((crdi_fmi1_##type*)(void (*)(void))(i)->f->two.pointer)

void* crdi_fmi1_instantiate(crd_fmi* i, const crd_fmi_options* opt)
{
    if (i->exchange) {
        const crdi_fmi1_callbacks callbacks = {crdi_fmi1_log, crdi_fmi_allocate, crdi_fmi_release};
        return AS(instantiate_model, Instantiate)(i->name, i->d->token, callbacks,
                                                  (char)opt->logging_on);
    }
    const crdi_fmi1_slave_callbacks callbacks = {crdi_fmi1_log, crdi_fmi_allocate, crdi_fmi_release,
                                                 NULL};
    const double forever = 0; // timeout, ms
    return AS(instantiate_slave, Instantiate)(i->name, i->d->token, i->library->resources,
                                              i->fmu->mime_type, forever, (char)opt->visible, 0,
                                              callbacks, (char)opt->logging_on);
}

// The event information stays that of the instance: FMUs that do not write all of it each time are
// taken as the example of the standard takes them.
crd_status crdi_fmi1_initialize(crd_fmi* i)
{
    const int function = CRDI_FMI2_ExitInitializationMode;
    crdi_fmi1_part* p = i->one;
    if (!crdi_fmi_may(i, function)) { return crdi_fmi_refuse(i, function); }
    if (!i->exchange) {
        crdi_fmi_mark(i, function);
        return crdi_fmi_end(i, function,
                            AS(initialize_slave, ExitInitializationMode)(
                                i->component, p->start, (char)p->has_stop, p->stop));
    }
    crdi_fmi_mark(i, CRDI_FMI2_SetTime);
    const crdi_fmi_status status = i->f->two.SetTime(i->component, p->start);
    if (status != CRDI_FMI_OK) {
        const crd_status st = crdi_fmi_judge(i, CRDI_FMI2_SetTime, status, NULL);
        if (st < 0) { return st; }
    }
    crdi_fmi_mark(i, function);
    p->info = (crdi_fmi1_event_info){0};
    p->has_info = true;
    return crdi_fmi_end(i, function,
                        AS(initialize_model, ExitInitializationMode)(
                            i->component, (char)p->has_tolerance, p->tolerance, &p->info));
}

crd_status crdi_fmi_open(crd_fmi* i, int function)
{
    const crd_fmi_state next = i->exchange ? CRD_FMI_EVENT : CRD_FMI_STEP;
    if (!crdi_fmi_is_one(i) || i->state != CRD_FMI_INITIALIZATION || atomic_load(&i->fatal) ||
        !((i->library->sets[next][function / 64] >> (function % 64)) & 1)) {
        return crdi_fmi_refuse(i, function);
    }
    const crd_status st = crdi_fmi1_initialize(i);
    i->one->early = st == CRD_OK;
    return st;
}

crd_status crdi_fmi1_enter(crd_fmi* i, int function)
{
    if (!crdi_fmi_may(i, function)) { return crdi_fmi_refuse(i, function); }
    if (function == CRDI_FMI2_EnterEventMode) { i->one->has_info = false; }
    return crdi_fmi_end(i, function, CRDI_FMI_OK);
}

// fmiInitialize has gone through the event at the start already and said what comes next.
crdi_fmi_status crdi_fmi1_update_events(crd_fmi* i, crd_fmi_update* out)
{
    crdi_fmi1_event_info* e = &i->one->info;
    const bool done = i->one->has_info;
    i->one->has_info = false;
    const crdi_fmi_status status =
        done ? CRDI_FMI_OK : AS(event_update, NewDiscreteStates)(i->component, 0, e);
    *out = (crd_fmi_update){.again = !done && !e->converged,
                            .terminate = e->terminate != 0,
                            .nominals_changed = e->references_changed != 0, // other states
                            .values_changed = e->values_changed != 0,
                            .has_next_event = e->has_next_event != 0,
                            .next_event = e->next_event};
    return status;
}

crdi_fmi_status crdi_fmi1_completed(crd_fmi* i, bool* event)
{
    char call = 0;
    const crdi_fmi_status status = AS(completed_step, CompletedIntegratorStep)(i->component, &call);
    *event = call != 0;
    return status;
}

crdi_fmi_status crdi_fmi1_get_booleans(crd_fmi* i, const uint32_t* refs, size_t n, char* values)
{
    return AS(get_boolean, GetBoolean)(i->component, refs, n, values);
}

crdi_fmi_status crdi_fmi1_set_booleans(crd_fmi* i, const uint32_t* refs, size_t n,
                                       const char* values)
{
    return AS(set_boolean, SetBoolean)(i->component, refs, n, values);
}
