// What a bond creates, from the signals that acted at both of its ends:
//
//   into the unit that gives v:   W_B = int f_given v dt
//   out of the unit that gives f: W_A = int f v_given dt, or, where f follows the displacement that
//                                 belongs to v, W_A = int f dx_told with the jumps of x_given
//   created = W_B - W_A
//
// given is what the unit acted with over its step, whatever has made it: hold, prediction, channel,
// element, correction. So delays of all kinds are in it without being known, and with them energy
// that is on its way. Where an output o(s) follows an input at once it jumps with it, by the gain D
// = do/du, at the beginning of the step:
//
//   o(0+) = o_0 + D (u(0) - u_shown),  o(h) = o_1 + D (u(h) - u_shown)
//
// u_shown being the input that o_0, or o_1, was evaluated with. Within the step it follows D u(s),
// and what moves by itself is a line, or a parabola where the derivative at the end is known: exact
// to second or third order in the step. Jumps are of first order and would be half of what a held
// input creates.
#include "master/master.h"

#include <math.h>

// ---- plan --------------------------------------------------------------------------------------

// SI at the unit that gives v, of what is given at the end of a connection: the output's own
// conversion, with the connection undone.
static void undo_connection(crdi_port* p, int i, const crdi_connection* k, double gain,
                            double offset)
{
    const double g = k->transform ? k->gain : 1, o = k->transform ? k->offset : 0;
    p->in[i] = k;
    p->in_gain[i] = gain / g;
    p->in_offset[i] = offset - gain * o / g;
}

static bool follows(const crdi_port* p, const crdi_connection* k)
{
    const crd_unit* u = p->member->unit;
    return crd_unit_depends(u, p->of->from.variable, k->to.variable, false);
}

// Whether it is the integral is seen in the run.
crdi_connection* crdi_balance_displacement(const crdi_plan* plan, const crdi_connection* v)
{
    crdi_connection* best = NULL;
    for (int i = 0; i < plan->connection_count; i++) {
        crdi_connection* k = &plan->connections[i];
        const bool fits = k->from.element == v->from.element;
        if (!crdi_is_displacement(plan, k, v) || k->mapping || k->gain == 0) { continue; }
        if (fits) { return k; }
        if (!best) { best = k; }
    }
    return best;
}

// The unit says what the output depends on.
static bool is_declared(const crd_unit* u, int32_t variable)
{
    const crd_dependencies* d = u->info.outputs;
    for (int32_t r = 0; d && r < d->count; r++) {
        if (d->unknown[r] == variable) { return !(d->on_all && d->on_all[r]); }
    }
    return false;
}

static void plan_port(const crdi_plan* plan, crdi_port* p, const crdi_connection* out,
                      const crdi_connection* in)
{
    p->index = out->from.member;
    p->member = &plan->members[p->index];
    p->of = out;
    p->out = crdi_connection_from(plan, out);
    p->refreshed =
        crdi_refresh_has(plan, p->index) && crd_defect_scheme_refreshes(plan->sys->run.feedthrough);
    p->through[0] = follows(p, in);
    p->declared = is_declared(p->member->unit, out->from.variable);
    if (p->member->rates[0] && out->rate_order > 0) {
        p->rate = p->member->rates[0] + out->from.slot;
    }
}

void crdi_balance_bind(const crdi_plan* plan, crdi_axis* x)
{
    crdi_port *a = &x->ports[0], *b = &x->ports[1];
    plan_port(plan, a, x->action, x->flow);
    plan_port(plan, b, x->flow, x->action);
    a->out_gain = x->gain;
    a->out_offset = x->offset;
    b->out_gain = x->v_gain;
    b->out_offset = x->v_offset;
    undo_connection(a, 0, x->flow, x->v_gain, x->v_offset);
    undo_connection(b, 0, x->action, x->gain, x->offset);
    crd_dimension at, v;
    const crdi_connection* velocity = x->flipped ? x->action : x->flow;
    crdi_port* p = &x->ports[x->flipped];
    if (!x->motion || !crdi_connection_dimension(plan, x->motion, &at) ||
        !crdi_connection_dimension(plan, velocity, &v)) {
        return;
    }
    x->x = crdi_connection_from(plan, x->motion);
    x->x_gain = at.factor / v.factor * (x->flipped ? x->gain : x->v_gain);
    undo_connection(p, 1, x->motion, x->x_gain, 0);
    p->through[1] = follows(p, x->motion);
}

// ---- units that are far away -------------------------------------------------------------------
//
// What a bench gives now answers to what it was given some steps ago: there, and with what it was
// given then, it did its work. So that of the step that the data belong to is taken, and compared
// with that of the other end up to the same step.

static double output_now(const crdi_port* p)
{
    return p->out_gain * *p->out + p->out_offset;
}

enum { ROOM = 1024 }; // ticks

struct crdi_far {
    int64_t done;       // run: tick up to which the work is known
    double given[ROOM]; // run: mean of the partner's signal over the step that ended with the tick
    double work[ROOM];  // run: of the port, up to a tick
};

crd_status crdi_balance_make_room(crdi_plan* plan, crdi_axis* x)
{
    if (!crdi_member_is_far(x->ports[0].member->unit) &&
        !crdi_member_is_far(x->ports[1].member->unit)) {
        return CRD_OK;
    }
    for (int side = 0; side < 2; side++) {
        x->ports[side].far = crdi_arena_new(plan->arena, 1, sizeof *x->ports[side].far);
        if (!x->ports[side].far) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

static void far_fill(struct crdi_far* f, int64_t tick, double work)
{
    if (tick - f->done > ROOM) { f->done = tick - ROOM; }
    while (f->done < tick) {
        f->work[++f->done % ROOM] = work;
    }
}

// The data are those of a tick that lies behind: a line between the last ones and these, along what
// was given on the way.
static void far_step(crdi_port* p, struct crdi_far* f, int64_t tick, double given, double h)
{
    const int64_t ticks = p->member->ticks;
    f->given[tick % ROOM] = given;
    int64_t made = tick - llround(p->age / h) * ticks;
    if (made < tick - ROOM + ticks) { made = tick - ROOM + ticks; }
    if (made < 0) { made = 0; }
    const int64_t steps = (made - f->done) / ticks;
    if (steps <= 0) { return; } // nothing new
    const double now = output_now(p), slope = (now - p->o) / (double)steps;
    for (int64_t i = 0; i < steps; i++) {
        const double o = p->o + slope * ((double)i + 0.5);
        p->work[0] += o * f->given[(f->done + ticks) % ROOM] * h;
        far_fill(f, f->done + ticks, p->work[0]);
    }
    p->work[1] = p->work[0];
    p->o = now;
}

// ---- gains -------------------------------------------------------------------------------------

static bool gain_by_derivative(const crdi_port* p, const crdi_connection* k, double* out)
{
    crd_unit* u = p->member->unit;
    const int32_t y = p->of->from.variable, v = k->to.variable;
    const double seed = 1;
    if (!(u->info.flags & CRD_UNIT_HAS_DIRECTIONAL) || p->member->async ||
        u->info.variables[y].size != 1 || u->info.variables[v].size != 1) {
        return false;
    }
    return u->ops->derivatives->directional(u, &y, 1, &v, 1, &seed, out) >= 0;
}

// At a communication point, of a unit that answers between steps: it is asked, and asked again with
// the input as it was.
static bool gain_by_asking(const crdi_plan* plan, const crdi_port* p, const crdi_connection* k,
                           double* out)
{
    crdi_member* a = &plan->members[p->index];
    crd_unit* u = a->unit;
    double* input = crdi_connection_to(plan, k);
    if (!(u->info.flags & CRD_UNIT_CAN_REFRESH) || a->async || !k->curve) { return false; }
    const double was = *input, before = *p->out;
    const double d = 1e-6 * fmax(fabs(was), 1e-3);
    *input = was + d;
    bool ok = crdi_member_set(a) >= 0 && u->ops->get(u, a->out, &a->outputs) >= 0;
    const double up = *p->out;
    *input = was - d;
    ok = ok && crdi_member_set(a) >= 0 && u->ops->get(u, a->out, &a->outputs) >= 0;
    *out = (up - *p->out) / (2 * d);
    *input = was;
    ok = ok && crdi_member_set(a) >= 0 && u->ops->get(u, a->out, &a->outputs) >= 0;
    return ok && *p->out == before;
}

// Of a bond that probes, gains are found in the run, and f is freed of the probes with them.
void crdi_balance_probe(crdi_axis* x, const crdi_probing* q)
{
    for (int side = 0; side < 2; side++) {
        crdi_port* p = &x->ports[side];
        for (int i = 0; p->index == q->member && i < 2 && p->in[i]; i++) {
            for (int k = 0; k < q->probe.inputs; k++) {
                if (q->taken[k] != p->in[i]) { continue; }
                // f as it arrives, per what is given
                p->D[i] = q->state.gain[k] * x->ports[!side].in_gain[0] / p->in_gain[i];
                p->known[i] = p->refreshed = p->probed = true;
            }
        }
    }
}

// Circuits and others that give neither, but can be linearised. Takes memory: at the start only.
static bool gain_by_matrices(const crdi_port* p, const crdi_connection* k, double* out)
{
    crd_unit* u = p->member->unit;
    const crd_unit_port in = {k->to.variable, k->to.element};
    const crd_unit_port of = {p->of->from.variable, p->of->from.element};
    crd_linearised l;
    if (p->member->async || (u->info.flags & CRD_UNIT_IN_REAL_TIME) ||
        crd_unit_linearise(u, &in, 1, &of, 1, &l) < 0) {
        return false;
    }
    *out = l.D[0];
    const bool sure = !l.guessed;
    crd_linearised_clear(&l);
    return sure;
}

static void find_gains(const crd_master* m, crdi_port* p, bool ask)
{
    for (int i = 0; i < 2 && p->in[i]; i++) {
        double raw = 0;
        const crdi_connection* k = p->in[i];
        if (!p->through[i] || p->probed) { continue; }
        bool known = gain_by_derivative(p, k, &raw);
        if (!known && ask) {
            known = gain_by_asking(m->plan, p, k, &raw) || gain_by_matrices(p, k, &raw);
        }
        if (!known && p->known[i]) { continue; } // that of the start
        const double D = raw * p->out_gain / p->in_gain[i];
        p->known[i] = known && isfinite(D);
        p->moving = p->moving || (p->known[i] && fabs(D - p->D[i]) > 1e-9 * fabs(D));
        p->D[i] = p->known[i] ? D : 0;
    }
}

// ---- run ---------------------------------------------------------------------------------------

// What the unit acted with over the step of length h that has just ended.
crd_poly crdi_given_over(const crd_master* m, const crdi_connection* k, double h, double held)
{
    if (k->prediction) { return crdi_prediction_given(k->prediction, h); }
    if (!k->curve || k->routed) { return (crd_poly){.c = {held}}; }
    crd_poly p = {.c = {*(const double*)crdi_connection_to(m->plan, k)}};
    if (k->coupled && k->coupled->slope) {
        p.degree = 1;
        p.c[1] = *k->coupled->slope;
    }
    return p;
}

static crd_poly to_frame(const crdi_port* p, int i, crd_poly u)
{
    for (int d = 0; d <= u.degree; d++) {
        u.c[d] *= p->in_gain[i];
    }
    u.c[0] += p->in_offset[i];
    return u;
}

// int a b ds over the step
static double integral(const crd_poly* a, const crd_poly* b, double h)
{
    double sum = 0, outer = h;
    for (int i = 0; i <= a->degree; i++, outer *= h) {
        double power = outer;
        for (int k = 0; k <= b->degree; k++, power *= h) {
            sum += a->c[i] * b->c[k] * power / (i + k + 1);
        }
    }
    return sum;
}

static crd_poly derivative(const crd_poly* u)
{
    crd_poly d = {.degree = u->degree > 0 ? u->degree - 1 : 0};
    for (int i = 1; i <= u->degree; i++) {
        d.c[i - 1] = i * u->c[i];
    }
    return d;
}

// Where an output follows inputs at once and nobody knows how much, all that it moved over the step
// is taken as a jump at its beginning. Where nobody says whether it does, a force that is given a
// displacement is taken to follow it, anything else not to.
static bool jumps_unknown(const crdi_port* p)
{
    if (p->in[1] && p->through[1]) { return !p->known[1]; }
    return p->declared && p->through[0] && !p->known[0];
}

// The part of it that corrections have: held over the step.
static void note_correction(crdi_port* p, const crd_poly* o, double before, double h)
{
    const crd_poly c = {.c = {p->in_gain[0] * crdi_connection_correction(p->in[0])}};
    if (c.c[0] != 0) { p->corrected[0] += integral(o, &c, h); }
    if (p->in[1]) {
        const double x = p->in_gain[1] * crdi_connection_correction(p->in[1]);
        p->corrected[1] += 0.5 * (before + o->c[0]) * (x - p->correction);
        p->correction = x;
    }
}

// The inputs over a step, and at which of them the output at its end was evaluated.
typedef struct acting {
    crd_poly u[2];
    double end[2], shown[2];
    double rate[2]; // of the inputs that were shown; NaN: not known
} acting;

static acting look_back(const crd_master* m, const crdi_port* p, double h)
{
    acting a = {0};
    for (int i = 0; i < 2 && p->in[i]; i++) {
        const crdi_prediction* f = p->in[i]->prediction;
        a.u[i] = to_frame(p, i, crdi_given_over(m, p->in[i], h, p->held[i]));
        a.end[i] = a.shown[i] = crd_poly_eval(&a.u[i], h);
        a.rate[i] = crd_poly_derivative(&a.u[i], 1, h);
        if (p->refreshed && f) { // with the newest inputs
            const crd_sample* y = &f->past.sample[0];
            const double added = p->probed ? 0 : f->correction; // of a probe: what f is freed of
            a.shown[i] = p->in_gain[i] * (y->y[0] + added) + p->in_offset[i];
            a.rate[i] = y->order > 0 ? p->in_gain[i] * y->y[1] : (double)NAN;
        }
    }
    return a;
}

// The derivative of what moves by itself, of an output with the inputs that were shown.
static double rate_now(const crdi_port* p, const acting* a)
{
    double rate = p->rate ? p->out_gain * *p->rate : (double)NAN;
    for (int i = 0; i < 2 && p->in[i]; i++) {
        rate -= p->D[i] != 0 ? p->D[i] * a->rate[i] : 0;
    }
    return rate;
}

// o(s) = D u(s) + what moves by itself: a line, with the derivative at the end a parabola, with
// that at the beginning, which only a unit that is asked again gives, of third degree.
static crd_poly output_over(const crdi_port* p, const acting* a, double plus, double last, double h)
{
    double first = plus, end = last;
    for (int i = 0; i < 2 && p->in[i]; i++) {
        first -= p->D[i] * a->u[i].c[0];
        end -= p->D[i] * a->end[i];
    }
    const double change = (end - first) / h, rate = rate_now(p, a);
    crd_poly o = {.degree = 1, .c = {first, change}};
    if (isfinite(rate) && isfinite(p->rate_last)) {
        o = (crd_poly){.degree = 3,
                       .c = {first, p->rate_last, (3 * change - 2 * p->rate_last - rate) / h,
                             (p->rate_last + rate - 2 * change) / (h * h)}};
    } else if (isfinite(rate)) {
        o = (crd_poly){.degree = 2, .c = {first, 2 * change - rate, (rate - change) / h}};
    }
    for (int i = 0; i < 2 && p->in[i]; i++) {
        for (int d = 0; p->D[i] != 0 && d <= a->u[i].degree; d++) {
            o.c[d] += p->D[i] * a->u[i].c[d];
            if (d > o.degree) { o.degree = d; }
        }
    }
    return o;
}

static void port_step(const crd_master* m, crdi_port* p, double h)
{
    const acting a = look_back(m, p, h);
    const double now = output_now(p);
    double before = p->o, plus = p->o, last = now;
    for (int i = 0; i < 2 && p->in[i]; i++) {
        before += p->D[i] * (p->end[i] - p->shown[i]);
        plus += p->D[i] * (a.u[i].c[0] - p->shown[i]);
        last += p->D[i] * (a.end[i] - a.shown[i]);
    }
    if (jumps_unknown(p)) { plus = last; }
    const crd_poly o = output_over(p, &a, plus, last, h);
    p->work[0] += integral(&o, &a.u[0], h);
    if (p->in[1]) {
        const crd_poly rate = derivative(&a.u[1]);
        p->work[1] += 0.5 * (before + plus) * (a.u[1].c[0] - p->end[1]) + integral(&o, &rate, h);
    }
    note_correction(p, &o, before, h);
    p->o = now;
    p->rate_last = p->refreshed ? rate_now(p, &a) : (double)NAN;
    for (int i = 0; i < 2 && p->in[i]; i++) {
        p->end[i] = a.end[i];
        p->shown[i] = a.shown[i];
        p->held[i] = p->in[i]->gain * *(const double*)crdi_connection_from(m->plan, p->in[i]) +
                     p->in[i]->offset;
    }
}

static void port_start(const crd_master* m, crdi_port* p)
{
    p->work[0] = p->work[1] = p->corrected[0] = p->corrected[1] = p->correction = 0;
    p->o = output_now(p);
    p->rate_last = NAN;
    p->time = m->clock.time;
    for (int i = 0; i < 2 && p->in[i]; i++) {
        const crdi_connection* k = p->in[i];
        p->held[i] = k->gain * *(const double*)crdi_connection_from(m->plan, k) + k->offset;
        p->end[i] = p->shown[i] = p->in_gain[i] * p->held[i] + p->in_offset[i];
    }
    if (p->far) { p->far->done = 0; }
    find_gains(m, p, true);
    p->moving = false;
}

void crdi_balance_start(crd_master* m, crdi_axis* x)
{
    for (int side = 0; side < 2; side++) {
        port_start(m, &x->ports[side]);
    }
    x->x_last = x->x_seen = x->x ? x->x_gain * *x->x : 0;
    x->lasting = 0;
    x->moved = x->missed = 0;
    if (x->spring) { crdi_spring_start(m, x); }
}

// Is what is taken as the displacement the integral of the flow? An angle that starts again at 0
// after a turn is not.
static void compare_motion(crdi_axis* x, double v0, double h)
{
    const double now = x->x_gain * *x->x, way = 0.5 * (v0 + x->ports[!x->flipped].o) * h;
    const double miss = now - x->x_last - way;
    x->moved += way * way;
    x->missed += miss * miss;
    x->x_last = now;
}

bool crdi_balance_by_motion(const crdi_axis* x)
{
    const crdi_port* p = &x->ports[x->flipped];
    if (!p->in[1] || !p->through[1] || x->missed > 0.01 * x->moved) { return false; }
    return !p->known[1] || p->D[1] != 0;
}

static int side_of_motion(const crdi_axis* x, int side)
{
    return side == x->flipped && crdi_balance_by_motion(x) ? 1 : 0;
}

enum { LOOKS = 500 }; // times per run that gains are looked for, unless they are seen to change

void crdi_balance_step(crd_master* m, crdi_axis* x)
{
    const int64_t rest = m->plan->times.tick_count / LOOKS + 1;
    if (x->spring) {
        const double h = m->clock.time - x->ports[0].time;
        if (m->clock.n % x->ports[0].member->ticks != 0 || !(h > 0)) { return; }
        crdi_spring_step(m, x, h);
        x->ports[0].time = m->clock.time;
        return;
    }
    for (int side = 0; side < 2; side++) {
        crdi_port* p = &x->ports[side];
        if (m->clock.n % p->member->ticks != 0) { continue; }
        const double h = m->clock.time - p->time, before = p->o;
        if (!(h > 0)) { continue; }
        p->time = m->clock.time;
        if (crdi_member_is_far(p->member->unit)) {
            const crd_poly u = to_frame(p, 0, crdi_given_over(m, p->in[0], h, p->held[0]));
            p->age = crdi_member_age(m, p->index);
            far_step(p, p->far, m->clock.n, crd_poly_mean(&u, 0, h), h);
            continue;
        }
        if (p->moving || m->clock.n % rest == 0) { find_gains(m, p, false); }
        port_step(m, p, h);
        if (p->far) { far_fill(p->far, m->clock.n, p->work[side_of_motion(x, side)]); }
        if (side == !x->flipped && x->x) { compare_motion(x, before, h); }
    }
}

// Up to the last tick that is known at both ends.
static double far_difference(const crdi_axis* x)
{
    const struct crdi_far *force = x->ports[x->flipped].far, *velocity = x->ports[!x->flipped].far;
    const int64_t tick = force->done < velocity->done ? force->done : velocity->done;
    const int64_t most = force->done > velocity->done ? force->done : velocity->done;
    if (tick <= most - ROOM) { return 0; }
    return velocity->work[tick % ROOM] - force->work[tick % ROOM];
}

// Of the signs of both ends: what comes out where the velocity is made, less what goes in where
// the force is.
static double difference(const crdi_axis* x, const double force[2], const double velocity[2])
{
    return velocity[0] - force[crdi_balance_by_motion(x) ? 1 : 0];
}

// What the unit that gives f would still do if it were given now where the other one is: J that are
// on their way, and belong to neither. With f = o + D (x - x_given) that is o dx + D dx^2 / 2.
static double on_its_way(const crdi_axis* x)
{
    const crdi_port* p = &x->ports[x->flipped];
    if (!crdi_balance_by_motion(x)) { return 0; }
    const double given = p->end[1], dx = x->x_gain * *x->x - given;
    double o = p->o;
    for (int i = 0; i < 2; i++) {
        o += p->D[i] * (p->end[i] - p->shown[i]);
    }
    return (o + 0.5 * p->D[1] * dx) * dx;
}

double crdi_balance_of(const crdi_axis* x)
{
    if (x->spring) { return crdi_spring_created(x); }
    if (x->ports[0].far) { return far_difference(x); }
    return difference(x, x->ports[x->flipped].work, x->ports[!x->flipped].work) - on_its_way(x);
}

double crdi_balance_of_corrections(const crdi_axis* x)
{
    if (x->spring) { return 0; }
    return difference(x, x->ports[x->flipped].corrected, x->ports[!x->flipped].corrected);
}
