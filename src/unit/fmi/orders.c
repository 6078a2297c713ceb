// Which derivatives of its inputs an FMU takes. FMI 1's and 2's canInterpolateInputs promises no
// order (2.0.4, 4.3.1), and many FMUs take the first only. So the FMU is asked, one order after the
// other, with derivatives that are zero: in step mode, where they will be set, as some refuse them
// before. After an Error an instance is of no use, and whoever set its values has to begin again.
#include "unit/fmi/fmi_unit.h"

static crd_status bind_inputs(crdi_fmi_unit* u, crd_binding** out)
{
    crd_unit* unit = &u->base;
    int32_t n = 0;
    int32_t* list = crdi_new_array(unit->ctx, (size_t)unit->info.variable_count, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    for (int32_t i = 0; i < unit->info.variable_count; i++) {
        const crd_variable* v = &unit->info.variables[i];
        if (v->causality == CRD_INPUT && v->alias_of < 0) { list[n++] = i; }
    }
    const crd_status st = crd_binding_create(unit, list, n, out);
    crd_free(unit->ctx, list);
    return st;
}

// From the lowest order on, as who takes the second takes the first.
static crd_status ask(crdi_fmi_unit* u, const crdi_fmi_curves* c, int* taken)
{
    const int wanted = u->base.input_order;
    for (*taken = c->count ? 0 : wanted; *taken < wanted; ++*taken) {
        const size_t first = (size_t)*taken * (size_t)c->count;
        const crd_status st = crd_fmi_try_input_derivatives(u->fmi, c->refs, (size_t)c->count,
                                                            c->orders + first, c->values);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_status crdi_fmi_unit_exit_asking(crdi_fmi_unit* u)
{
    crd_unit* unit = &u->base;
    crd_binding* inputs = NULL;
    int taken = 0;
    crd_status st = CRD_OK;
    CRD_TRY(bind_inputs(u, &inputs));
    CRD_TRY(crd_fmi_exit_initialization(u->fmi));
    const crd_status answer = ask(u, &((crdi_fmi_prepared*)inputs->prepared)->curves, &taken);
    const crd_fmi_state state = crd_fmi_get_state(u->fmi);
    if (state == CRD_FMI_FATAL) { st = answer; }
    if (answer == CRD_OK || st < 0) { goto fail; }
    unit->begin_again = state != CRD_FMI_STEP;
    crdi_log(unit->ctx, CRD_LOG_WARNING,
             "%s; the FMU says canInterpolateInputs, but does not take derivatives of order %d of "
             "its inputs: it gets %s%s",
             crd_error_text(unit->ctx), taken + 1, taken ? "values and slopes" : "values only",
             unit->begin_again ? ", and begins again" : "");
    unit->input_order = unit->info.max_input_order = taken;
fail:
    crd_binding_destroy(inputs);
    return st;
}
