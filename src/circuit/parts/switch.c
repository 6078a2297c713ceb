// S and W, switches:     v = R i,   R = on where u > threshold + hysteresis, off where
// u < threshold - hysteresis, and in between what it was;   u = v_c (S) or i_c (W)
//
// Reference form, a row of Phi (Rodriguez 2021, Eq. 3.6): v_a - v_b - R i = 0; fast form: g = 1 /
// R. A switch moves between solutions, never within Newton's method: linear where it stands.
#include "circuit/parts/switch.h"
#include "circuit/dae.h"
#include "circuit/netlist.h"
#include "circuit/nodal.h"

// ---- netlist -----------------------------------------------------------------------------------

static crd_status read_switch(crdi_reading* r, crd_part_kind kind)
{
    crd_status st = CRD_OK;
    crd_part part = crdi_part_start(r, kind);
    CRD_TRY(crdi_part_nodes(r, &part, 2));
    if (kind == CRD_PART_CURRENT_SWITCH) {
        CRD_TRY(crdi_mention(r, crdi_scan_word(&r->s), &part.refs[0]));
    } else {
        CRD_TRY(crdi_node(r, crdi_scan_word(&r->s), &part.nodes[2]));
        CRD_TRY(crdi_node(r, crdi_scan_word(&r->s), &part.nodes[3]));
    }
    CRD_TRY(crdi_model_find(r, crdi_scan_word(&r->s), crdi_part_kind_of(&part), &part.index));
    if (!crdi_scan_end(&r->s)) { // at the start
        const crdi_scan before = r->s;
        const crdi_word w = crdi_scan_word(&r->s);
        part.has_ic = true;
        part.ic = crdi_word_is(w, "on");
        if (!crdi_word_is(w, "on") && !crdi_word_is(w, "off")) {
            r->s = before;
            return crdi_part_expected(r, "on or off");
        }
    }
    CRD_TRY(crdi_part_end(r));
    CRD_TRY(crdi_part_add(r, &part));
fail:
    return st;
}

static crd_status read_s(crdi_reading* r)
{
    return read_switch(r, CRD_PART_SWITCH);
}

static crd_status read_w(crdi_reading* r)
{
    return read_switch(r, CRD_PART_CURRENT_SWITCH);
}

static crd_status read_model(crdi_reading* r, bool current, int32_t* index)
{
    crd_status st = CRD_OK;
    crdi_netlist* o = r->p->out;
    crd_switch_model m = {.on = 1, .off = 1e12};
    const crdi_model_entry list[] = {{current ? "it" : "vt", &m.threshold},
                                     {current ? "ih" : "vh", &m.hysteresis},
                                     {"ron", &m.on},
                                     {"roff", &m.off}};
    CRD_TRY(crdi_model_entries(r, list, 4));
    if (!(m.hysteresis >= 0)) { return crdi_model_range(r, "hysteresis", m.hysteresis, ">= 0"); }
    if (!(m.on > 0)) { return crdi_model_range(r, "ron", m.on, "> 0"); }
    if (!(m.off > 0)) { return crdi_model_range(r, "roff", m.off, "> 0"); }
    m.name = crdi_arena_text(&o->n.arena, r->name.p, r->name.n);
    if (!m.name) { return CRD_E_MEMORY; }
    const size_t count = (size_t)o->n.switch_count;
    crd_switch_model* all =
        crdi_grow(r->p->ctx, o->switches, &o->switch_capacity, count + 1, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    o->switches = all;
    all[count] = m;
    o->n.switch_count++;
    *index = (int32_t)count;
fail:
    return st;
}

static crd_status read_sw(crdi_reading* r, int32_t* index)
{
    return read_model(r, false, index);
}

static crd_status read_csw(crdi_reading* r, int32_t* index)
{
    return read_model(r, true, index);
}

static const char* switch_check(const crd_netlist* n, const crd_part* p)
{
    const crd_switch_model* s = &n->switches[p->index];
    const bool good = s->on > 0 && s->off > 0 && isfinite(s->on) && isfinite(s->off);
    return good ? NULL : "its model needs resistances on, off > 0";
}

// ---- positions ---------------------------------------------------------------------------------

// Where a switch stands after it saw `u`
static double moves(const crd_switch_model* m, double u, double was)
{
    const double reach = fabs(m->hysteresis);
    return u > m->threshold + reach ? 1 : u < m->threshold - reach ? 0 : was;
}

void crdi_switch_excess(const crd_circuit* c, int32_t part, double excess[2])
{
    const crd_part* p = &c->n->parts[part];
    const crd_switch_model* m = &c->n->switches[p->index];
    const double u = p->kind == CRD_PART_SWITCH
                         ? c->form->voltage(c, p->nodes[2]) - c->form->voltage(c, p->nodes[3])
                         : c->form->current(c, p->refs[0]);
    const double reach = fabs(m->hysteresis);
    excess[0] = u - (m->threshold + reach);
    excess[1] = m->threshold - reach - u;
}

void crdi_dae_switches_begin(crdi_dae* d)
{
    const crd_netlist* n = d->c->n;
    for (int32_t i = 0; i < n->part_count && d->switches > 0; i++) {
        const crd_part* p = &n->parts[i];
        if (crdi_part_kind_of(p)->switches && p->has_ic) {
            d->closed[d->part[i].device] = p->ic != 0;
        }
    }
}

bool crdi_dae_switch(crdi_dae* d, const double* x)
{
    const crd_netlist* n = d->c->n;
    bool moved = false;
    for (int32_t i = 0; i < n->part_count && d->switches > 0; i++) {
        const crd_part* p = &n->parts[i];
        if (!crdi_part_kind_of(p)->switches) { continue; }
        const double u = p->kind == CRD_PART_SWITCH ? x[p->nodes[2]] - x[p->nodes[3]]
                                                    : x[d->part[p->refs[0]].current];
        double* at = &d->closed[d->part[i].device];
        const double was = *at;
        *at = moves(&n->switches[p->index], u, was);
        moved = moved || *at != was;
    }
    return moved;
}

bool crdi_nodal_switch(crdi_nodal* d, crdi_device_state* state)
{
    bool moved = false;
    for (int32_t k = 0; k < d->net.devices && d->switches; k++) {
        const crdi_device* e = &d->device[k];
        if (e->kind->nonlinear) { continue; }
        const double u = e->d >= 0 ? d->pot[e->c] - d->pot[e->d] : d->pot[e->c];
        const double is = moves(e->model, u, state[k].closed);
        moved = moved || is != state[k].closed;
        state[k].closed = is;
    }
    return moved;
}

// ---- forms -------------------------------------------------------------------------------------

static void switch_law(crdi_dae* d, int32_t part, const crdi_dae_point* at)
{
    const crd_switch_model* m = &d->c->n->switches[d->c->n->parts[part].index];
    const bool closed = d->closed[d->part[part].device] != 0;
    crdi_dae_put_resistance(d, part, at, closed ? m->on : m->off);
}

static void switch_make(crdi_nodal* d, crdi_device* e)
{
    const crdi_network* net = &d->net;
    const crd_part* p = &net->n->parts[e->part];
    e->model = &net->n->switches[p->index];
    e->d = p->kind == CRD_PART_SWITCH ? net->node_at[p->nodes[3]] : -1;
    e->c = e->d >= 0 ? net->node_at[p->nodes[2]] : crdi_network_current_unknown(net, p->refs[0]);
}

static int32_t switch_stamp(crdi_nodal* d, int32_t first, int32_t count, double t, bool tangent)
{
    (void)t;
    (void)tangent;
    for (int32_t k = first; k < first + count; k++) {
        crdi_device* e = &d->device[k];
        const double g = 1 / (d->next[k].closed != 0 ? e->model->on : e->model->off);
        e->conductance = g;
        crdi_device_stamp(d, e, g, g * (d->p0[e->a] - d->p0[e->b]));
    }
    return -1;
}

static void switch_settle(const crdi_nodal* d, int32_t first, int32_t count, double w)
{
    (void)w;
    for (int32_t k = first; k < first + count; k++) {
        const crdi_device* e = &d->device[k];
        d->next[k].i = (d->pot[e->a] - d->pot[e->b]) * e->conductance;
    }
}

static void switch_take_state(const crdi_dae* dae, const crdi_device* e, crdi_device_state* s)
{
    s->closed = dae->closed[dae->part[e->part].device];
}

static const crdi_device_kind device = {
    .make = switch_make, .stamp = switch_stamp, .settle = switch_settle, .take = switch_take_state};

const crdi_part_kind crdi_part_voltage_switch = {
    .article = "a switch",
    .plural = "voltage-controlled switches",
    .control = CRDI_CONTROL_VOLTAGE,
    .model = CRDI_MODEL_SWITCH,
    .switches = true,
    .letter = 's',
    .usage = "Sname n+ n- c+ c- model [on|off]",
    .read = read_s,
    .model_type = "sw",
    .read_model = read_sw,
    .check = switch_check,
    .law = switch_law,
    .role = {CRDI_ROLE_DEVICE},
    .device = &device,
};

const crdi_part_kind crdi_part_current_switch = {
    .article = "a switch",
    .plural = "current-controlled switches",
    .control = CRDI_CONTROL_CURRENT,
    .model = CRDI_MODEL_SWITCH,
    .switches = true,
    .letter = 'w',
    .usage = "Wname n+ n- Vname model [on|off]",
    .read = read_w,
    .model_type = "csw",
    .read_model = read_csw,
    .check = switch_check,
    .law = switch_law,
    .role = {CRDI_ROLE_DEVICE},
    .device = &device,
};
