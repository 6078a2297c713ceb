// What bonds do at the communication points: the balance, the residual power, and the corrections
// that act over the next step.
#include "master/master.h"

#include <math.h>

// As it is given now, or, where it comes late and is corrected there, as the element tells it.
static double seen(const crdi_axis* x, int side)
{
    const crdi_port *p = &x->ports[side], *other = &x->ports[!side];
    const crdi_connection* k = other->in[0];
    if (k == x->target && k->coupled) {
        return other->in_gain[0] * k->coupled->estimators[0].estimate + other->in_offset[0];
    }
    return p->out_gain * *p->out + p->out_offset;
}

// f and v as they are now. With the roles swapped v is the action and -f the flow: the residual
// power is the same.
static void bonds_look(const crdi_bond* p)
{
    for (int i = 0; i < p->axis_count; i++) {
        const crdi_axis* x = &p->axes[i];
        const double f = seen(x, 0), v = x->spring ? crdi_spring_speed(x) : seen(x, 1);
        p->parts[i].f = p->corrects_flow ? x->back_gain * v : f;
        p->parts[i].v = p->corrects_flow ? -f / x->back_gain : v;
    }
}

// The displacement is led by its change as the flow is by its own; what else corrects the flow is
// integrated, and forgotten, or it would stay for ever.
static void apply_motion(const crdi_bond* p, crdi_axis* x, const crd_bond_axis* part, double h,
                         double next)
{
    enum { FORGET = 3 }; // periods of the motion
    const crdi_coupled* late = x->motion->coupled;
    const double gain = x->ports[x->flipped].in_gain[1];
    const double now = late ? gain * late->estimators[0].estimate : x->x_gain * *x->x;
    const double lead = h > 0 ? crd_bond_lead(&p->bond, &p->state, h) * next / h : 0;
    const double rest = (part->B - lead * part->df) / (p->corrects_flow ? x->back_gain : 1);
    const double period = FORGET * p->state.period;
    x->lasting += rest * next;
    if (period > 0) { x->lasting *= fmax(0, 1 - next / period); }
    *crdi_connection_corrects(x->motion) = (lead * (now - x->x_seen) + x->lasting) / gain;
    x->x_seen = now;
}

static void apply(const crdi_bond* p, double h, double next)
{
    for (int i = 0; i < p->axis_count; i++) {
        crdi_axis* x = &p->axes[i];
        if (!x->target) { continue; }
        *crdi_connection_corrects(x->target) =
            p->parts[i].B * (p->corrects_flow ? x->back_in_unit : x->in_unit);
        if (x->moves) { apply_motion(p, x, &p->parts[i], h, next); }
    }
}

void crdi_bonds_start(crd_master* m)
{
    for (int i = 0; i < m->energy.bond_count; i++) {
        crdi_bond* p = &m->energy.bonds[i];
        bonds_look(p);
        crd_bond_start_axes(&p->state, p->axis_count, p->parts);
        p->time = m->clock.time;
        p->late_sum = p->late_time = 0;
        p->created = p->largest = p->worked = p->power = 0;
        for (int k = 0; k < p->axis_count; k++) {
            crdi_balance_start(m, &p->axes[k]);
        }
        if (p->probing) { crdi_probing_start(m, p); }
        apply(p, 0, 0);
    }
}

static void add_up(crdi_bond* p, double h)
{
    double created = 0;
    p->worked = 0;
    for (int k = 0; k < p->axis_count; k++) {
        created += crdi_balance_of(&p->axes[k]);
        p->worked += crdi_balance_of_corrections(&p->axes[k]);
    }
    p->power = (created - p->created) / h;
    p->created = created;
    p->largest = crd_defect_larger(p->largest, fabs(created));
}

crdi_bond_balance crdi_bond_get_balance(const crdi_bond* p)
{
    return (crdi_bond_balance){p->created, p->largest, p->state.scale, p->power};
}

void crdi_bonds_balance(crd_master* m)
{
    const double now = m->clock.time;
    for (int i = 0; i < m->energy.bond_count; i++) {
        crdi_bond* p = &m->energy.bonds[i];
        for (int k = 0; k < p->axis_count; k++) {
            if (p->probing) { crdi_balance_probe(&p->axes[k], p->probing); }
            crdi_balance_step(m, &p->axes[k]);
        }
        if (m->clock.n % p->every != 0) { continue; }
        const double h = now - p->time;
        if (!(h > 0)) { continue; }
        double next = m->plan->rule->ahead(m, p->every);
        if (!(next > 0)) { next = h; } // the end
        add_up(p, h);
        p->state.balance = p->axes[0].flipped ? -p->created : p->created; // as f v is signed
        crdi_bond_follow_delay(m, p, h);
        bonds_look(p);
        crd_bond_step_axes(&p->bond, &p->state, h, next, p->axis_count, p->parts);
        if (p->probing) {
            crdi_probing_apply(p->probing);
            const crdi_axis* x = &p->axes[0];
            p->parts[0].B = p->probing->lead / (p->corrects_flow ? x->back_in_unit : x->in_unit);
            p->state.B = p->parts[0].B;
        }
        p->time = now;
        apply(p, h, next);
    }
}

void crdi_bond_report(const crdi_bond* p, crd_bond_report* r)
{
    const crd_bond_state* s = &p->state;
    const double net = p->created;
    *r = (crd_bond_report){
        .name = p->name,
        .action = p->action_name,
        .flow = p->flow_name,
        .correct = p->bond.correction,
        .mu = p->bond.mu,
        .energy = net - p->worked,
        .residual = s->energy,
        .work = p->worked,
        .transferred = s->scale,
        .relative = net == 0 ? 0 : net / s->scale,
        .power_min = s->power_min,
        .power_max = s->power_max,
    };
}
