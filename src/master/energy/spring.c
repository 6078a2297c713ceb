// Bonds of two displacements: each unit is given where the other is, and has a spring between both
// of its own. The master works out its force three times: as each of the units has it, with what it
// was given, and as it is between both as they are,
//
//   f1 = k (x1 - x2_told) + d (v1 - v2_told),  f2 = k (x1_told - x2) + d (v1_told - v2),
//   f  = k (x1 - x2) + d (v1 - v2)
//
// f1 brakes the first mass, f2 drives the second one, and f stores and dissipates: what is created
// is
//
//   int (f - f1) v1 + (f2 - f) v2 dt
#include "master/master.h"

#include <math.h>

/// A displacement on its way to the other unit, and the velocity beside it.
typedef struct mover {
    const crdi_connection *x, *v; // v NULL: not connected
    const double *out, *speed;
    double gain, offset, given_gain, given_offset; // to SI in one frame for both ends
    double v_gain, v_given_gain;
    double x_last, v_last, held, v_held; // run
} mover;

struct crdi_spring {
    double stiffness, damping;
    mover movers[2]; // of the action, of the flow
    double created;  // run
    double speed;    // run: of the flow's
};

static const crd_unit* unit_of(const crdi_plan* plan, int member)
{
    return plan->members[member].unit;
}

// The velocity whose displacement goes over k, between the same units.
static const crdi_connection* velocity_beside(const crdi_plan* plan, const crdi_connection* k)
{
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* v = &plan->connections[i];
        if ((v->real || v->spec->coupling) && !v->mapping && v->gain != 0 &&
            crdi_is_displacement(plan, k, v)) {
            return v;
        }
    }
    return NULL;
}

// gain, offset: of what the source gives, to SI
static void plan_mover(const crdi_plan* plan, mover* o, const crdi_connection* k, double gain,
                       double offset)
{
    crd_dimension x, v;
    const double g = k->transform ? k->gain : 1, shift = k->transform ? k->offset : 0;
    *o = (mover){.x = k,
                 .v = velocity_beside(plan, k),
                 .gain = gain,
                 .offset = offset,
                 .given_gain = gain / g,
                 .given_offset = offset - gain * shift / g};
    if (!o->v || !crdi_connection_dimension(plan, k, &x) ||
        !crdi_connection_dimension(plan, o->v, &v)) {
        o->v = NULL;
        return;
    }
    o->v_gain = gain / x.factor * v.factor;
    o->v_given_gain = o->v_gain / (o->v->transform ? o->v->gain : 1);
}

#define REFUSE(spec, name, format, ...)                                                            \
    crdi_fail(plan->ctx, CRD_E_RANGE, "%sbond '%s': " format,                                      \
              crdi_where((spec)->place, (char[512]){0}, 512), name, __VA_ARGS__)

crd_status crdi_spring_plan(crdi_plan* plan, const crd_bond_spec* spec, const char* name,
                            crdi_axis* x)
{
    struct crdi_spring* s = x->spring = crdi_arena_new(plan->arena, 1, sizeof *s);
    crd_dimension k, d;
    bool bare;
    if (!s) { return CRD_E_MEMORY; }
    if (!crd_quantity_parse(spec->stiffness, &s->stiffness, &k, &bare)) { return CRD_E_RANGE; }
    plan_mover(plan, &s->movers[0], x->action, x->gain / s->stiffness, x->offset / s->stiffness);
    plan_mover(plan, &s->movers[1], x->flow, x->v_gain, x->v_offset);
    if (!spec->damping || !spec->damping[0]) { return CRD_OK; }
    if (!crd_quantity_parse(spec->damping, &s->damping, &d, &bare)) { return CRD_E_RANGE; }
    k.s++; // a stiffness times a time, whatever the angles
    d.rad = k.rad;
    if (!crd_dimension_equal(&k, &d)) {
        return REFUSE(
            spec, name,
            "damping '%s' does not belong to stiffness '%s', expected it times a time (N.s/m "
            "and N/m)",
            spec->damping, spec->stiffness);
    }
    for (int i = 0; i < 2; i++) {
        const crdi_connection* o = s->movers[i].x;
        if (s->movers[i].v) { continue; }
        return REFUSE(spec, name,
                      "'damping' needs the velocity beside %s.%s, and none goes from '%s' to '%s': "
                      "connect it, or remove 'damping'",
                      unit_of(plan, o->from.member)->name, o->spec->from,
                      unit_of(plan, o->from.member)->name, unit_of(plan, o->to.member)->name);
    }
    return CRD_OK;
}

crd_status crdi_spring_bind(const crdi_plan* plan, const crdi_bond* p, crdi_axis* x)
{
    const crdi_member *a = x->ports[0].member, *b = x->ports[1].member;
    if (a->ticks != b->ticks) {
        return REFUSE(p->spec, p->name,
                      "'%s' has a step of %g s and '%s' one of %g s: a bond of two displacements "
                      "takes units of one step",
                      a->unit->name, a->step, b->unit->name, b->step);
    }
    for (int i = 0; i < 2; i++) {
        mover* o = &x->spring->movers[i];
        o->out = crdi_connection_from(plan, o->x);
        o->speed = o->v ? crdi_connection_from(plan, o->v) : NULL;
    }
    return CRD_OK;
}

// ---- run ---------------------------------------------------------------------------------------

static double sample_of(const crdi_plan* plan, const crdi_connection* k)
{
    return k->gain * *(const double*)crdi_connection_from(plan, k) + k->offset;
}

static void mover_rest(const crd_master* m, mover* o)
{
    o->x_last = o->gain * *o->out + o->offset;
    o->held = sample_of(m->plan, o->x);
    if (!o->v) { return; }
    o->v_last = o->v_gain * *o->speed;
    o->v_held = sample_of(m->plan, o->v);
}

void crdi_spring_start(const crd_master* m, crdi_axis* x)
{
    struct crdi_spring* s = x->spring;
    s->created = s->speed = 0;
    for (int i = 0; i < 2; i++) {
        mover_rest(m, &s->movers[i]);
    }
    if (s->movers[1].v) { s->speed = s->movers[1].v_last; }
}

// A displacement as it was, and as the other unit was given; and the velocities.
typedef struct course {
    crd_poly x, given, v_given;
} course;

static crd_poly scaled(crd_poly p, double gain, double offset)
{
    for (int i = 0; i <= p.degree; i++) {
        p.c[i] *= gain;
    }
    p.c[0] += offset;
    return p;
}

static course follow(const crd_master* m, const mover* o, double h)
{
    const int order = o->v ? 1 : 0;
    const crd_sample a = {.y = {o->x_last, o->v_last}, .order = order};
    const crd_sample b = {.y = {o->gain * *o->out + o->offset, o->v ? o->v_gain * *o->speed : 0},
                          .order = order};
    course c = {.x = crd_poly_hermite(&a, order + 1, &b, order + 1, h)};
    c.given = scaled(crdi_given_over(m, o->x, h, o->held), o->given_gain, o->given_offset);
    if (o->v) { c.v_given = scaled(crdi_given_over(m, o->v, h, o->v_held), o->v_given_gain, 0); }
    return c;
}

// What the force misses, by what the other unit was given of this motion; N
static double force_of_error(const struct crdi_spring* s, const course* c, double t)
{
    const double x = crd_poly_eval(&c->given, t) - crd_poly_eval(&c->x, t);
    const double v =
        s->damping > 0 ? crd_poly_eval(&c->v_given, t) - crd_poly_derivative(&c->x, 1, t) : 0;
    return s->stiffness * x + s->damping * v;
}

void crdi_spring_step(const crd_master* m, crdi_axis* x, double h)
{
    // Gauss, exact for the polynomials of degree 7 that there can be
    static const double at[] = {0.06943184420297371, 0.33000947820757187, 0.66999052179242813,
                                0.93056815579702629};
    static const double weight[] = {0.17392742256872693, 0.32607257743127307, 0.32607257743127307,
                                    0.17392742256872693};
    struct crdi_spring* s = x->spring;
    const course first = follow(m, &s->movers[0], h), second = follow(m, &s->movers[1], h);
    for (int i = 0; i < 4; i++) {
        const double t = at[i] * h;
        // f - f1 = k (x2_told - x2) + ..., f2 - f = k (x1_told - x1) + ...
        s->created += weight[i] * h *
                      (force_of_error(s, &second, t) * crd_poly_derivative(&first.x, 1, t) +
                       force_of_error(s, &first, t) * crd_poly_derivative(&second.x, 1, t));
    }
    s->speed = crd_poly_derivative(&second.x, 1, h);
    for (int i = 0; i < 2; i++) {
        mover_rest(m, &s->movers[i]);
    }
}

double crdi_spring_created(const crdi_axis* x)
{
    return x->spring->created;
}

double crdi_spring_speed(const crdi_axis* x)
{
    return x->spring->speed;
}
