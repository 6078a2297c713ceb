// A human being as a unit: one output per lever, moved from the live page through a seat.
//
// While a page has the seat and gives signs of life, each lever goes to its target at no more than
// its rate. After `silence` without one, in the time of the run, nobody has it: the levers go to
// rest at their own rates, or stay and the run ends.
#include "shared/base.h"
#include "shared/unit.h"
#include "shared/unit_seat.h"
#include "unit/unit.h"

#include <math.h>
#include <string.h>

typedef struct driver_unit {
    crd_unit base;
    crd_variable* variables;
    double* values;           // (lever_count)
    unsigned long long signs; // of the seat that were seen
    double last_sign;         // s, when
    crdi_seat seat;
} driver_unit;

crdi_seat* crdi_unit_seat(const crd_unit* u)
{
    const bool driver = u->spec && u->spec->source == CRD_UNIT_DRIVER;
    return driver ? &((driver_unit*)u)->seat : NULL;
}

static crd_status driver_enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    driver_unit* u = (driver_unit*)unit;
    u->last_sign = e->start;
    for (int i = 0; i < unit->info.variable_count; i++) {
        u->values[i] = unit->spec->driver.levers[i].rest;
    }
    return CRD_OK;
}

static crd_status driver_get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    const driver_unit* u = (const driver_unit*)unit;
    for (int32_t j = 0; j < b->count; j++) {
        v->real[j] = u->values[b->variables[j]];
    }
    return CRD_OK;
}

// Who drives in the step that begins at t; 0: nobody.
static int64_t look_who(driver_unit* u, double t)
{
    crdi_seat* s = &u->seat;
    const crd_driver_spec* d = s->driver;
    const unsigned long long signs = atomic_load(&s->signs);
    if (signs != u->signs) {
        u->signs = signs;
        u->last_sign = t;
    }
    const int64_t holder = atomic_load(&s->holder);
    if (t - u->last_sign < d->silence) { return holder; }
    if (holder != 0 && crdi_seat_expire(s, holder)) {
        crdi_log(u->base.ctx, CRD_LOG_WARNING,
                 "unit '%s': its page was silent for %g s, nobody drives: %s", u->base.name,
                 d->silence, d->stop ? "the run ends" : "its levers go to rest");
    }
    if (d->stop && !u->base.wants_stop) {
        if (holder == 0) {
            crdi_log(u->base.ctx, CRD_LOG_WARNING,
                     "unit '%s': nobody has taken it for %g s: the run ends", u->base.name,
                     d->silence);
        }
        crdi_unit_wish_stop(&u->base);
    }
    return 0;
}

// As far towards the goal as the rate allows in h.
static double move(double from, double to, double rate, double h)
{
    const double most = rate * h; // infinite: at once
    return fabs(to - from) <= most ? to : from + copysign(most, to - from);
}

static crd_status driver_step(crd_unit* unit, double t, double h)
{
    driver_unit* u = (driver_unit*)unit;
    crdi_seat* s = &u->seat;
    const int64_t holder = look_who(u, t);
    for (int i = 0; i < s->driver->lever_count; i++) {
        const crd_lever_spec* l = &s->driver->levers[i];
        const double target = holder ? atomic_load(&s->goals[i].target) : l->rest;
        const double rate = holder ? atomic_load(&s->goals[i].rate) : l->rate;
        if (isnan(target) || (!holder && s->driver->stop)) { continue; } // it stays where it is
        u->values[i] = move(u->values[i], target, rate, h);
    }
    return CRD_OK;
}

static void driver_destroy(crd_unit* unit)
{
    driver_unit* u = (driver_unit*)unit;
    crd_free(unit->ctx, u->values);
    crd_free(unit->ctx, u->variables);
    crd_free(unit->ctx, u);
}

static const crd_unit_ops ops = {
    CRDI_SOURCE_OPS,           .enter_initialization = driver_enter_initialization,
    .get = driver_get,         .step = driver_step,
    .destroy = driver_destroy, .find = crdi_source_find,
};

// Discrete: between two steps a hand is where it was, nobody guesses where it goes.
static crd_variable variable_of(const crd_lever_spec* l, int i)
{
    return (crd_variable){.name = l->name,
                          .description = l->item_count ? "selector" : "lever",
                          .unit = l->unit,
                          .reference = (uint32_t)i,
                          .size = 1,
                          .unit_index = -1,
                          .type_index = -1,
                          .alias_of = -1,
                          .type = CRD_FLOAT64,
                          .causality = CRD_OUTPUT,
                          .variability = CRD_DISCRETE,
                          .initial = CRD_CALCULATED,
                          .nominal = 1,
                          .min = l->min,
                          .max = l->max};
}

static crd_status driver_create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                                crd_place* place, crd_unit** out)
{
    (void)store;
    (void)place;
    const crd_driver_spec* d = &spec->driver;
    if (d->lever_count < 1 || d->lever_count > CRD_LEVERS_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "%d levers, expected 1 to %d", d->lever_count,
                         CRD_LEVERS_MAX);
    }
    driver_unit* u = crdi_new(ctx, sizeof *u);
    if (!u) { return CRD_E_MEMORY; }
    const size_t n = (size_t)d->lever_count;
    u->base = (crd_unit){.ops = &ops, .ctx = ctx, .name = spec->name, .spec = spec};
    u->variables = crdi_new_array(ctx, n, sizeof *u->variables);
    u->values = crdi_new_array(ctx, n, sizeof *u->values);
    if (!u->variables || !u->values) {
        driver_destroy(&u->base);
        return CRD_E_MEMORY;
    }
    u->seat.name = spec->name;
    u->seat.driver = d;
    for (int i = 0; i < d->lever_count; i++) {
        u->variables[i] = variable_of(&d->levers[i], i);
        u->values[i] = d->levers[i].rest;
    }
    u->base.info = (crd_unit_info){
        .variables = u->variables,
        .variable_count = d->lever_count,
        .flags = CRD_UNIT_CAN_VARY_STEP | CRD_UNIT_IS_SOURCE,
        .start = NAN,
        .stop = NAN,
        .step = NAN,
        .tolerance = NAN,
        .kind = "driver",
    };
    *out = &u->base;
    return CRD_OK;
}

const crdi_adapter crdi_adapter_driver = {.create = driver_create};
