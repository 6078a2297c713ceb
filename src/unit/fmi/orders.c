// Which derivatives of its inputs an FMU takes. FMI 2's canInterpolateInputs promises no order
// (2.0.4, 4.3.1), and many FMUs take the first only. So the FMU is asked, one order after the
// other, with derivatives that are zero: in step mode, where they will be set, as some refuse them
// before. After an Error an instance is of no use: then a new one is made, with the same inputs.
#include "unit/fmi/fmi_unit.h"

// All inputs of the unit, and what they are in initialization mode.
typedef struct all_inputs {
    crd_arena arena;
    crd_binding* b;
    crd_values v;
} all_inputs;

static crd_status inputs_read(crdi_fmi_unit* u, all_inputs* x)
{
    crd_status st = CRD_OK;
    crd_unit* unit = &u->base;
    int32_t n = 0;
    crd_arena_init(&x->arena, unit->ctx);
    int32_t* list = crdi_arena_new(&x->arena, (size_t)unit->info.variable_count, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    for (int32_t i = 0; i < unit->info.variable_count; i++) {
        const crd_variable* v = &unit->info.variables[i];
        if (v->causality == CRD_INPUT && v->alias_of < 0) { list[n++] = i; }
    }
    CRD_TRY(crd_binding_create(unit, list, n, &x->b));
    CRD_TRY(crdi_values_create(&x->arena, x->b, &x->v));
    if (n) { CRD_TRY(unit->ops->get(unit, x->b, &x->v)); }
fail:
    return st;
}

static void inputs_clear(crdi_fmi_unit* u, all_inputs* x)
{
    crdi_values_clear(u->base.ctx, x->b, &x->v);
    crd_binding_destroy(x->b);
    crd_arena_clear(&x->arena);
}

static crd_status begin_again(crdi_fmi_unit* u, const all_inputs* x)
{
    crd_status st = CRD_OK;
    crd_unit* unit = &u->base;
    CRD_TRY(crd_unit_instantiate(unit));
    CRD_TRY(unit->ops->enter_initialization(unit, &u->experiment));
    CRD_TRY(unit->ops->set(unit, x->b, &x->v));
    CRD_TRY(crd_fmi_exit_initialization(u->fmi));
fail:
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
    all_inputs x = {0};
    int taken = 0;
    crd_status st = inputs_read(u, &x);
    if (st >= 0) { st = crd_fmi_exit_initialization(u->fmi); }
    if (st < 0) { goto fail; }
    const crd_status answer = ask(u, &((crdi_fmi_prepared*)x.b->prepared)->curves, &taken);
    const crd_fmi_state state = crd_fmi_get_state(u->fmi);
    if (state == CRD_FMI_FATAL) { st = answer; }
    if (answer == CRD_OK || st < 0) { goto fail; }
    crdi_log(unit->ctx, CRD_LOG_WARNING,
             "%s; the FMU says canInterpolateInputs, but does not take derivatives of order %d of "
             "its inputs: it gets %s%s",
             crd_error_text(unit->ctx), taken + 1, taken ? "values and slopes" : "values only",
             state == CRD_FMI_STEP ? "" : ", and begins again");
    unit->input_order = unit->info.max_input_order = taken;
    if (state != CRD_FMI_STEP) { st = begin_again(u, &x); }
fail:
    inputs_clear(u, &x);
    return st;
}
