// D, a diode:     i = is (exp(v_j / (n vt)) - 1) + gmin v_j - breakdown + q',   v = v_j + rs i
//     breakdown = ibv exp(-(v_j + bv) / (n vt))
//     q = depletion charge + tt i_j,  C(v_j) = cjo (1 - v_j / vj)^-m up to half of vj, then its
//     tangent
// (Shockley; SPICE's charge model: Nagel 1975, Antognetti and Massobrio 1988, ch. 1). The rectifier
// of Rodriguez 2021, ch. 3, has is = 1e-15, n = 1.5, rs = 1 mOhm.
//
// Reference form, rows of Phi (Eq. 3.6), linear about a voltage `at` that Newton's method may move
// only so far:    i_j - i(at) - i'(at) (v_j - at) = 0,   v_a - v_inner - rs i = 0,   q - Q(v_j) =
// 0, and of A x' + b (Eq. 3.7):   q' - i_q = 0. Fast form: the variable is v_j, the logarithm of
// the current; rs is eliminated: i = j + g (v - v_k), g = i' / (1 + rs i'), with q' = w q + history
// in i and i'.
#include "circuit/dae.h"
#include "circuit/netlist.h"
#include "circuit/nodal.h"

// ---- law ---------------------------------------------------------------------------------------

typedef struct value_slope {
    double value, slope;
} value_slope;

// Beyond this exponent the exponential goes on as a straight line: no iterate overflows.
static value_slope bounded_exp(double u)
{
    const double most = 200;
    const double e = exp(fmin(u, most));
    return (value_slope){u > most ? e * (1 + u - most) : e, e};
}

static value_slope current_at(const crd_diode_model* m, double v)
{
    const double nvt = m->n * m->vt;
    const value_slope e = bounded_exp(v / nvt);
    value_slope i = {m->is * (e.value - 1) + m->gmin * v, m->is * e.slope / nvt + m->gmin};
    if (m->bv > 0) {
        const double ibv = m->ibv > 0 ? m->ibv : m->is;
        const value_slope r = bounded_exp(-(v + m->bv) / nvt);
        i.value -= ibv * r.value;
        i.slope += ibv * r.slope / nvt;
    }
    return i;
}

static bool has_charge(const crd_diode_model* m)
{
    return m->cjo > 0 || m->tt > 0;
}

// Depletion charge with the usual straight line above half of vj, and tt times the current `i`:
//     Q = cjo vj / (1 - m) (1 - (1 - v / vj)^(1 - m))
static value_slope charge_at(const crd_diode_model* m, double v, value_slope i)
{
    value_slope q = {0, 0};
    if (m->cjo > 0) {
        const double fc = 0.5, edge = fc * m->vj, e = 1 - m->m;
        if (v < edge) {
            const double u = 1 - v / m->vj;
            q = (value_slope){-m->cjo * m->vj / e * expm1(e * log1p(-v / m->vj)),
                              m->cjo * pow(u, -m->m)};
        } else {
            const double c = m->cjo * pow(1 - fc, -m->m), rise = c * m->m / (m->vj * (1 - fc));
            const double q0 = m->cjo * m->vj / e * (1 - pow(1 - fc, e));
            q = (value_slope){q0 + c * (v - edge) + 0.5 * rise * (v - edge) * (v - edge),
                              c + rise * (v - edge)};
        }
    }
    return (value_slope){q.value + m->tt * i.value, q.slope + m->tt * i.slope};
}

// The voltage from which on the exponential is steeper than what surrounds it (SPICE's vcrit)
static double critical_voltage(const crd_diode_model* m)
{
    const double nvt = m->n * m->vt;
    return nvt * log(nvt / (sqrt(2) * m->is));
}

// The charge of its junction as volts (over cjo) or amperes (over tt): it moves at its own pace.
static double charge(const crd_circuit* c, int32_t part, bool* volts)
{
    const crd_part* p = &c->n->parts[part];
    const crd_diode_model* m = &c->n->diodes[p->index];
    const double v = c->form->voltage(c, p->nodes[0]) - c->form->voltage(c, p->nodes[1]) -
                     m->rs * c->form->current(c, part);
    *volts = m->cjo > 0;
    return charge_at(m, v, current_at(m, v)).value / (m->cjo > 0 ? m->cjo : m->tt);
}

// ---- netlist -----------------------------------------------------------------------------------

static crd_status add_model(crdi_reading* r, const crd_diode_model* m, int32_t* index)
{
    crdi_netlist* o = r->p->out;
    const size_t count = (size_t)o->n.diode_count;
    crd_diode_model* list =
        crdi_grow(r->p->ctx, o->diodes, &o->diode_capacity, count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    o->diodes = list;
    list[count] = *m;
    o->n.diode_count++;
    *index = (int32_t)count;
    return CRD_OK;
}

// So many times the area
static crd_status add_scaled(crdi_reading* r, double area, int32_t* index)
{
    if (area == 1) { return CRD_OK; }
    crd_diode_model m = r->p->out->diodes[*index];
    m.is *= area;
    m.cjo *= area;
    m.ibv *= area;
    m.rs /= area;
    return add_model(r, &m, index);
}

static crd_status read_diode(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = crdi_part_start(r, CRD_PART_DIODE);
    double area = 1, m = 1;
    crdi_word key;
    CRD_TRY(crdi_part_nodes(r, &part, 2));
    CRD_TRY(crdi_model_find(r, crdi_scan_word(&r->s), &crdi_part_diode, &part.index));
    while (!crdi_scan_end(&r->s)) {
        crdi_scan ahead = r->s;
        if (crdi_key(&r->s, &key)) {
            const bool is_area = crdi_word_is(key, "area");
            if (!is_area && !crdi_word_is(key, "m")) { return crdi_part_unknown_key(r, key); }
            CRD_TRY(crdi_value(r, false, "an area", is_area ? &area : &m));
        } else if (crdi_word_is(crdi_scan_word(&ahead), "off")) {
            r->s = ahead;
            crdi_netlist_note(r->p, &r->s, "off", "of a diode is a hint that is not needed here");
        } else {
            CRD_TRY(crdi_value(r, false, "an area", &area));
        }
    }
    if (!(area * m > 0)) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s: the area is %g, expected > 0",
                              crdi_word_clip(r->name).text, area * m);
    }
    CRD_TRY(add_scaled(r, area * m, &part.index));
    CRD_TRY(crdi_part_add(r, &part));
fail:
    return st;
}

// What the exponential of the breakdown carries at -bv. As ngspice has it: ibv less what it counts
// as leakage there, is bv/vt; with an ibv below that is itself.
static double breakdown_current(const crd_diode_model* m)
{
    const double least = m->is * m->bv / m->vt;
    if (!(m->ibv >= least)) { return m->is; }
    double edge = m->bv - m->n * m->vt * log(1 + m->ibv / m->is); // where it would carry is
    for (int i = 0; i < 25; i++) {
        edge = m->bv - m->n * m->vt * log(m->ibv / m->is + 1 - edge / m->vt);
    }
    const double i = m->is * exp((m->bv - edge) / (m->n * m->vt));
    return isfinite(i) && i > 0 ? i : m->is;
}

static crd_status check_model(crdi_reading* r, const crd_diode_model* m, double level, double fc)
{
    const struct {
        bool good;
        const char* key;
        double value;
        const char* want;
    } all[] = {{level == 1, "level", level, "1"},
               {m->is > 0, "is", m->is, "> 0"},
               {m->n > 0, "n", m->n, "> 0"},
               {m->rs >= 0, "rs", m->rs, ">= 0"},
               {m->cjo >= 0, "cjo", m->cjo, ">= 0"},
               {m->tt >= 0, "tt", m->tt, ">= 0"},
               {m->bv >= 0, "bv", m->bv, ">= 0"},
               {!(m->cjo > 0) || m->vj > 0, "vj", m->vj, "> 0"},
               {!(m->cjo > 0) || (m->m > 0 && m->m < 1), "m", m->m, "between 0 and 1"},
               {!(m->cjo > 0) || fc == 0.5, "fc", fc, "0.5"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i].good) { return crdi_model_range(r, all[i].key, all[i].value, all[i].want); }
    }
    return CRD_OK;
}

static crd_status read_model(crdi_reading* r, int32_t* index)
{
    static const double boltzmann = 1.380649e-23, elementary = 1.602176634e-19;
    crd_status st = CRD_OK;
    crd_diode_model m = {.is = 1e-14, .n = 1, .vj = 1, .m = 0.5, .ibv = 1e-3};
    double eg = 1.11, xti = 3, tnom = r->p->nominal - 273.15, level = 1, fc = 0.5;
    const crdi_model_entry list[] = {
        {"is", &m.is},   {"js", &m.is},   {"n", &m.n},   {"rs", &m.rs},     {"cjo", &m.cjo},
        {"cj0", &m.cjo}, {"cj", &m.cjo},  {"vj", &m.vj}, {"pb", &m.vj},     {"m", &m.m},
        {"mj", &m.m},    {"tt", &m.tt},   {"bv", &m.bv}, {"ibv", &m.ibv},   {"eg", &eg},
        {"xti", &xti},   {"tnom", &tnom}, {"fc", &fc},   {"level", &level}, {"kf", NULL},
        {"af", NULL},    {"iave", NULL},  {"vpk", NULL}, {"ipk", NULL},     {"mfg", NULL},
        {"type", NULL}};
    CRD_TRY(crdi_model_entries(r, list, (int)(sizeof list / sizeof *list)));
    CRD_TRY(check_model(r, &m, level, fc));
    const double kelvin = r->p->n->temperature, ratio = kelvin / (tnom + 273.15);
    if (!(ratio > 0)) { return crdi_model_range(r, "tnom", tnom, "> -273.15"); }
    m.vt = boltzmann * kelvin / elementary;
    m.gmin = r->p->gmin;
    if (ratio != 1) { // saturation current at the netlist's temperature
        m.is *= exp((ratio - 1) * eg / (m.n * m.vt)) * pow(ratio, xti / m.n);
        if (!(m.is > 0) || !isfinite(m.is)) { return crdi_model_range(r, "is(temp)", m.is, "> 0"); }
        if (m.cjo > 0) {
            crdi_netlist_note(r->p, &r->s, "cjo", "of a diode keeps its value at tnom");
        }
    }
    if (m.bv > 0) { m.ibv = breakdown_current(&m); }
    m.name = crdi_arena_text(&r->p->out->n.arena, r->name.p, r->name.n);
    CRD_TRY(m.name ? add_model(r, &m, index) : CRD_E_MEMORY);
fail:
    return st;
}

static const char* diode_check(const crd_netlist* n, const crd_part* p)
{
    const crd_diode_model* d = &n->diodes[p->index];
    if (!(d->is > 0 && d->n > 0 && d->vt > 0 && d->rs >= 0 && d->cjo >= 0 && d->tt >= 0)) {
        return "its model needs is, n > 0 and rs, cjo, tt >= 0";
    }
    const bool good = !(d->cjo > 0) || (d->vj > 0 && d->m >= 0 && d->m < 1);
    return good ? NULL : "its model needs vj > 0 and 0 <= m < 1";
}

// ---- reference form ----------------------------------------------------------------------------

static unsigned inside(const crd_netlist* n, const crd_part* p)
{
    const crd_diode_model* m = &n->diodes[p->index];
    return has_charge(m) ? CRDI_INSIDE_NODE | CRDI_INSIDE_CHARGE : m->rs > 0 ? CRDI_INSIDE_NODE : 0;
}

static double junction(const crdi_dae* d, int32_t part, const double* x)
{
    return x[d->part[part].inner] - x[d->c->n->parts[part].nodes[1]];
}

static void diode_law(crdi_dae* d, int32_t part, const crdi_dae_point* point)
{
    const crd_part* p = &d->c->n->parts[part];
    const crdi_dae_part* q = &d->part[part];
    const crd_diode_model* m = &d->c->n->diodes[p->index];
    const double* x = point->x;
    double* f = point->f;
    const double v = junction(d, part, x), at = point->limit ? point->limit[q->device] : v;
    const value_slope own = current_at(m, at);
    value_slope g = own;
    g.value += d->leak * at;
    g.slope += d->leak;
    f[q->row] = x[q->inner_current] - (g.value + g.slope * (v - at));
    crdi_dae_put(&d->j, q->row, q->inner_current, 1);
    crdi_dae_put(&d->j, q->row, q->inner, -g.slope);
    crdi_dae_put(&d->j, q->row, p->nodes[1], g.slope);
    if (q->series_row >= 0) {
        f[q->series_row] = x[p->nodes[0]] - x[q->inner] - m->rs * x[q->current];
        crdi_dae_put(&d->j, q->series_row, p->nodes[0], 1);
        crdi_dae_put(&d->j, q->series_row, q->inner, -1);
        crdi_dae_put(&d->j, q->series_row, q->current, -m->rs);
    }
    if (q->charge >= 0) {
        const value_slope s = charge_at(m, at, own);
        f[q->charge_row] = x[q->charge] - (s.value + s.slope * (v - at));
        crdi_dae_put(&d->j, q->charge_row, q->charge, 1);
        crdi_dae_put(&d->j, q->charge_row, q->inner, -s.slope);
        crdi_dae_put(&d->j, q->charge_row, p->nodes[1], s.slope);
        f[q->charging_row] = -x[q->charging];
        crdi_dae_put(&d->j, q->charging_row, q->charging, -1);
    }
}

static void diode_mass(crdi_dae* d, int32_t part) // q'
{
    const crdi_dae_part* q = &d->part[part];
    if (q->charge >= 0) { crdi_dae_put(&d->a, q->charging_row - d->m, q->charge, 1); }
}

// An exponential is followed upwards on its tangent's logarithm: from `old` to where the current
// is what the line at `old` would give at `v` (SPICE's pnjlim).
static double limit_exponential(double v, double old, double nvt, double critical)
{
    if (v > critical && fabs(v - old) > 2 * nvt) {
        if (old > 0) {
            const double u = (v - old) / nvt;
            return u > 0 ? old + nvt * log1p(u) : critical;
        }
        return nvt * log(v / nvt);
    }
    return v;
}

static bool limit(const crdi_dae* d, int32_t part, const double* x, double* limits)
{
    const crd_diode_model* m = &d->c->n->diodes[d->c->n->parts[part].index];
    double* at = &limits[d->part[part].device];
    const double nvt = m->n * m->vt, v = junction(d, part, x), critical = critical_voltage(m);
    double to = limit_exponential(v, *at, nvt, critical);
    if (m->bv > 0 && v < -m->bv) { // the mirror image beyond the breakdown
        to = -m->bv - limit_exponential(-v - m->bv, -*at - m->bv, nvt, fmax(critical, 2 * nvt));
    }
    *at = to;
    return fabs(to - v) > d->c->opt.tolerance * fmax(1, fabs(v));
}

// The tangent of an exponential is g dv^2 / (2 n vt) off after a change of dv.
static double off(const crdi_dae* d, int32_t part, const double* x, const double* limits)
{
    const crd_diode_model* m = &d->c->n->diodes[d->c->n->parts[part].index];
    const double at = limits[d->part[part].device], dv = junction(d, part, x) - at;
    return current_at(m, fmax(at, at + dv)).slope * dv * dv / (2 * m->n * m->vt);
}

// ---- fast form ---------------------------------------------------------------------------------

static const crdi_device_kind plain_device; // without charge and breakdown

static void diode_make(crdi_nodal* d, crdi_device* e)
{
    const crd_netlist* n = d->net.n;
    const crd_diode_model* m = &n->diodes[n->parts[e->part].index];
    e->diode = m;
    e->charged = has_charge(m);
    if (!e->charged && m->bv <= 0) { e->kind = &plain_device; }
    e->is = m->is;
    e->nvt = m->n * m->vt;
    e->inverse_nvt = 1 / e->nvt;
    e->critical = critical_voltage(m);
}

// i = j + g (v - v_k), g = i' / (1 + rs i'), at the tangent of i (with i') at the junction's v_j
static inline void put_tangent(crdi_nodal* d, crdi_device* e, double v, value_slope i)
{
    const double rs = e->diode->rs, across = d->p0[e->a] - d->p0[e->b];
    e->slope = 1 / (1 + rs * i.slope); // dv_j / dv
    e->conductance = i.slope * e->slope;
    e->v = v + rs * i.value;
    e->j = i.value;
    crdi_device_stamp(d, e, e->conductance, e->j + e->conductance * (across - e->v));
}

static int32_t diode_stamp(crdi_nodal* d, int32_t first, int32_t count, double t, bool tangent)
{
    (void)t;
    (void)tangent;
    for (int32_t k = first; k < first + count; k++) {
        crdi_device* e = &d->device[k];
        const double v = d->next[k].v[0];
        value_slope i = current_at(e->diode, v);
        if (e->charged) { // q' = w q + history
            const value_slope q = charge_at(e->diode, v, i);
            i.value += d->now->w * q.value + e->history;
            i.slope += d->now->w * q.slope;
        }
        put_tangent(d, e, v, i);
    }
    return -1;
}

// i = is (exp(v_j / (n vt)) - 1) + gmin v_j
static int32_t plain_stamp(crdi_nodal* d, int32_t first, int32_t count, double t, bool tangent)
{
    (void)t;
    (void)tangent;
    for (int32_t k = first; k < first + count; k++) {
        crdi_device* e = &d->device[k];
        const double v = d->next[k].v[0], u = v * e->inverse_nvt, gmin = e->diode->gmin;
        value_slope i;
        if (u < -700) { // exp would underflow, slowly
            i = (value_slope){gmin * v - e->is, gmin};
        } else if (u < 200) {
            const double x = e->is * exp(u);
            i = (value_slope){x - e->is + gmin * v, x * e->inverse_nvt + gmin};
        } else {
            i = current_at(e->diode, v);
        }
        put_tangent(d, e, v, i);
    }
    return -1;
}

// Upwards a diode follows the logarithm of the current that the tangent promises, and not beyond
// `critical` in one go. Returns by how many n vt it moved, 0: it has settled.
static inline double move_one(crdi_nodal* d, const crdi_device* e, crdi_device_state* s,
                              double small)
{
    const double across = crdi_device_across(d, e);
    const double was = s->v[0], dv = e->slope * (across - e->v), nvt = e->nvt;
    double v = was + dv;
    s->i = e->j + e->conductance * (across - e->v);
    const crd_diode_model* m = e->diode;
    if (dv > nvt && v > e->critical) {
        v = fmax(e->critical, was + nvt * log1p(dv / nvt));
    } else if (m->bv > 0 && -dv > nvt && v < -m->bv) { // the mirror image
        const double edge = -m->bv - fmax(e->critical, 2 * nvt);
        if (v < edge) { v = fmin(edge, was - nvt * log1p(-dv / nvt)); }
    }
    s->v[0] = v;
    const double deep = -40 * nvt;
    if (!e->charged && m->bv <= 0 && was < deep && v < deep) { return 0; }
    if (fabs(v - was - dv) > 1e-9 * nvt) { return 1; } // limited
    const double x = fabs(dv) / nvt;
    return x <= small ? 0 : x;
}

static double diode_move(crdi_nodal* d, int32_t first, int32_t count, double small, int* worst)
{
    double most = 0;
    for (int32_t k = first; k < first + count; k++) {
        const double x = move_one(d, &d->device[k], &d->next[k], small);
        if (x > most) {
            most = x;
            *worst = k;
        }
    }
    return most;
}

static double device_off(const crdi_nodal* d, int32_t k)
{
    const crdi_device* e = &d->device[k];
    const double dv = e->slope * (crdi_device_across(d, e) - e->v);
    const double g = fmax(e->conductance, current_at(e->diode, d->next[k].v[0]).slope);
    return g * dv * dv / (2 * e->nvt);
}

// A diode's voltage goes on as before, but none is switched on or off by that.
static double diode_guess(const crdi_device* e, const crdi_device_state* s)
{
    const double v = 4 * (s->v[0] + s->v[2]) - 6 * s->v[1] - s->v[3], nvt = e->nvt;
    const double conducts = e->critical - 25 * nvt;
    const bool leap = s->v[0] > conducts ? fabs(v - s->v[0]) > nvt : v > conducts;
    return leap ? s->v[0] : v;
}

static void plain_begin(crdi_nodal* d, int32_t first, int32_t count, const double* w,
                        bool trapezoid)
{
    (void)w;
    (void)trapezoid;
    for (int32_t k = first; k < first + count; k++) {
        const crdi_device_state* s = &d->state[k];
        crdi_device_state* next = &d->next[k];
        next->v[0] = diode_guess(&d->device[k], s);
        next->v[1] = s->v[0];
        next->v[2] = s->v[1];
        next->v[3] = s->v[2];
    }
}

// q1' = w0 q1 + history
static void diode_begin(crdi_nodal* d, int32_t first, int32_t count, const double* w,
                        bool trapezoid)
{
    plain_begin(d, first, count, w, trapezoid);
    for (int32_t k = first; k < first + count; k++) {
        const crdi_device_state* s = &d->state[k];
        d->device[k].history = trapezoid ? -w[0] * s->q[0] - s->charging
                                         : w[1] * s->q[0] + w[2] * s->q[1] + w[3] * s->q[2];
        d->next[k].q[1] = s->q[0];
        d->next[k].q[2] = s->q[1];
    }
}

static void diode_settle(const crdi_nodal* d, int32_t first, int32_t count, double w)
{
    for (int32_t k = first; k < first + count; k++) {
        const crdi_device* e = &d->device[k];
        crdi_device_state* s = &d->next[k];
        if (!e->charged) { continue; }
        s->q[0] = charge_at(e->diode, s->v[0], current_at(e->diode, s->v[0])).value;
        s->charging = w * s->q[0] + e->history;
    }
}

static void diode_take_state(const crdi_dae* dae, const crdi_device* e, crdi_device_state* s)
{
    const crdi_dae_part* q = &dae->part[e->part];
    s->v[0] = junction(dae, e->part, dae->x[0]);
    if (e->charged) {
        s->q[0] = dae->x[0][q->charge];
        s->charging = dae->x[0][q->charging];
    }
}

static const crdi_device_kind device = {.nonlinear = true,
                                        .make = diode_make,
                                        .stamp = diode_stamp,
                                        .move = diode_move,
                                        .off = device_off,
                                        .begin = diode_begin,
                                        .settle = diode_settle,
                                        .take = diode_take_state};

static const crdi_device_kind plain_device = {.nonlinear = true,
                                              .stamp = plain_stamp,
                                              .move = diode_move,
                                              .off = device_off,
                                              .begin = plain_begin,
                                              .take = diode_take_state};

const crdi_part_kind crdi_part_diode = {
    .article = "a diode",
    .plural = "diodes",
    .model = CRDI_MODEL_DIODE,
    .letter = 'd',
    .usage = "Dname anode cathode model [area] [m=]",
    .read = read_diode,
    .model_type = "d",
    .read_model = read_model,
    .check = diode_check,
    .inside = inside,
    .law = diode_law,
    .mass = diode_mass,
    .limit = limit,
    .off = off,
    .role = {CRDI_ROLE_DEVICE},
    .device = &device,
    .charge = charge,
};
