// How wrong the outputs are, estimated along the run: the units are linearised where they are, and
// the defects that the master measures drive the error of all of them together (estimate.h).
//
// In it are errors of the units' own solvers where they can be seen (solving.h). Not in it: what
// events do to an error, and what is of second order. Of a source with a longer step than the tick
// the newest defect stands for all ticks until there is a new sample.
#include "master/verdict/estimate.h"

#include "master/master.h"
#include "master/verdict/solving.h"
#include "shared/num.h"

#include <math.h>
#include <string.h>

enum {
    MOST_STATES = 60,            // more would cost more than the run
    MOST_STATES_CONTROLLED = 30, // likewise where each step has another length
    MOST_SIGNALS = 120,          // inputs, and outputs
    LOOKS = 500,       // times per run that a nonlinear unit is linearised, at communication points
    LONGEST_REST = 15, // ... of which one that does not change is left alone for this many at most
};
// Matrices that differ by less, against their largest element, are the same
static const double same_if_exact = 1e-12, same_if_differences = 1e-6;

enum { NO_ERROR = -1, NOT_KNOWN = -2 }; // instead of an output's index

/// A unit with inputs that may be wrong, and outputs that somebody uses. Its inputs, outputs and
/// states are in a row among those of all parts.
typedef struct part {
    int member;
    const crdi_model* model;
    int in_first, out_first, state_first;
    int rest, wait;       // run: looks that are left out between two, and now
    crdi_solving solving; // run
} part;

/// What stands behind an input.
typedef struct origin {
    const crdi_connection* link;
    bool fresh; // outputs of its unit are evaluated again with it
    double y;   // run: of a flow, its newest sample
    double u;   // run: at the end of the target's last step, where its unit has an input_lag
    double off; // run: what the unit has there, against what it was given
} origin;

struct crdi_estimate {
    const char* note;   // why there is no estimate, NULL: there is one
    bool *wrong, *used; // per member: inputs may be wrong; real outputs are connected
    int** index;        // per member, per real output: its index, NO_ERROR, NOT_KNOWN
    part* parts;
    int part_count;
    origin* origins;               // (inputs)
    int* source;                   // (inputs)
    double* gain;                  // (inputs)
    int* degree;                   // (inputs)
    crdi_drive* drive;             // run: (inputs)
    double* given;                 // run: (inputs x 3) of one unit, NULL: solvers are not looked at
    double look, look_every;       // run: time of the next linearisation; s
    crdi_errors errors;            // run
    crdi_bound bounds[CRDI_NORMS]; // run
    bool linear;                   // run: all units were the same whenever they were looked at
};

#define ADVICE ": run it again with half the step and `cardan compare --richardson`"

// ---- what there is to do -----------------------------------------------------------------------

static bool is_port(const crd_master* m, int member, int32_t variable)
{
    const crd_variable* v = &m->plan->members[member].unit->info.variables[variable];
    return v->type == CRD_FLOAT64 && v->variability == CRD_CONTINUOUS;
}

// What the unit was given is known, and what it should have been.
static bool estimate_is_plain(const crdi_connection* k)
{
    return (k->real && !k->mapping) || (k->couple >= 0 && k->observed);
}

// What comes from a unit without connected inputs is right whenever it is looked at; so are counts
// and switches that come from there.
static crd_status sort_members(crd_master* m)
{
    struct crdi_estimate* s = m->verdict.estimate;
    const size_t n = (size_t)m->plan->member_count;
    s->wrong = crdi_arena_new(&m->arena, n, sizeof *s->wrong);
    s->used = crdi_arena_new(&m->arena, n, sizeof *s->used);
    s->index = crdi_arena_new(&m->arena, n, sizeof *s->index);
    if (!s->wrong || !s->used || !s->index) { return CRD_E_MEMORY; }
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < m->plan->connection_count; i++) {
            const crdi_connection* k = &m->plan->connections[i];
            const bool brings =
                estimate_is_plain(k) || k->couple >= 0 || k->paired || s->wrong[k->from.member];
            more = more || (brings && !s->wrong[k->to.member]);
            s->wrong[k->to.member] = s->wrong[k->to.member] || brings;
            if (is_port(m, k->from.member, k->from.variable)) { s->used[k->from.member] = true; }
        }
    }
    for (int i = 0; i < m->plan->member_count; i++) {
        const int count = m->plan->members[i].out ? m->plan->members[i].out->real_count : 0;
        s->index[i] = crdi_arena_new(&m->arena, (size_t)count, sizeof **s->index);
        if (!s->index[i]) { return CRD_E_MEMORY; }
        for (int k = 0; k < count; k++) {
            s->index[i][k] = s->wrong[i] ? NOT_KNOWN : NO_ERROR;
        }
    }
    return CRD_OK;
}

static crd_status refuse_link(crd_master* m, const crdi_connection* k, const char* why)
{
    m->verdict.estimate->note = crdi_arena_format(
        &m->arena, "the connection %s.%s -> %s.%s %s%s",
        m->plan->members[k->from.member].unit->name, k->spec->from,
        m->plan->members[k->to.member].unit->name, k->spec->to, why,
        k->paired && crdi_paired_is_late(k->paired) ? ": run it again with half the delay"
                                                    : ADVICE);
    return m->verdict.estimate->note ? CRD_OK : CRD_E_MEMORY;
}

// The links into units whose outputs matter. One whose error cannot be followed ends it here.
static crd_status count_links(crd_master* m)
{
    struct crdi_estimate* s = m->verdict.estimate;
    for (int i = 0; i < m->plan->connection_count; i++) {
        const crdi_connection* k = &m->plan->connections[i];
        if (!s->used[k->to.member]) { continue; }
        if (k->couple >= 0 && !k->observed) {
            return refuse_link(m, k, "has a coupling, and nobody knows the signal itself");
        }
        if (k->paired) { return refuse_link(m, k, "is one of a pair"); }
        if (estimate_is_plain(k)) {
            s->errors.inputs++;
        } else if (s->wrong[k->from.member]) {
            return refuse_link(m, k, "is not one of continuous real numbers");
        }
    }
    if (s->errors.inputs > MOST_SIGNALS) {
        s->note = "there are too many connections to follow their errors" ADVICE;
    }
    return CRD_OK;
}

// Links are sorted by the phase that moves them, so one target may be there in several places;
// inputs of a part are in a row here. Its outputs are those that links use.
static void fill_part(crd_master* m, part* p)
{
    struct crdi_estimate* s = m->verdict.estimate;
    p->in_first = s->errors.inputs;
    p->out_first = s->errors.outputs;
    for (int i = 0; i < m->plan->connection_count; i++) {
        const crdi_connection* k = &m->plan->connections[i];
        if (k->to.member == p->member && estimate_is_plain(k)) {
            s->origins[s->errors.inputs++].link = k;
        }
        if (k->from.member != p->member || !is_port(m, p->member, k->from.variable)) { continue; }
        int* index = &s->index[p->member][k->from.slot];
        if (*index >= 0) { continue; } // another link had it
        *index = s->errors.outputs++;
    }
}

static crd_status make_parts(crd_master* m)
{
    struct crdi_estimate* s = m->verdict.estimate;
    const size_t n = (size_t)s->errors.inputs;
    s->parts = crdi_arena_new(&m->arena, n, sizeof *s->parts);
    s->origins = crdi_arena_new(&m->arena, n, sizeof *s->origins);
    s->source = crdi_arena_new(&m->arena, n, sizeof *s->source);
    s->gain = crdi_arena_new(&m->arena, n, sizeof *s->gain);
    s->degree = crdi_arena_new(&m->arena, n, sizeof *s->degree);
    s->drive = crdi_arena_new(&m->arena, n, sizeof *s->drive);
    if (!s->parts || !s->origins || !s->source || !s->gain || !s->degree || !s->drive) {
        return CRD_E_MEMORY;
    }
    s->errors.inputs = 0; // counted again
    for (int i = 0; i < m->plan->connection_count; i++) {
        const int to = m->plan->connections[i].to.member;
        if (!s->used[to] || !estimate_is_plain(&m->plan->connections[i])) { continue; }
        bool there = false;
        for (int k = 0; k < s->part_count && !there; k++) {
            there = s->parts[k].member == to;
        }
        if (there) { continue; }
        part* p = &s->parts[s->part_count++];
        p->member = to;
        fill_part(m, p);
    }
    if (s->errors.outputs > MOST_SIGNALS) {
        s->note = "there are too many connected outputs to follow their errors" ADVICE;
    }
    return CRD_OK;
}

// ---- defects -----------------------------------------------------------------------------------

static bool is_fresh(const crd_master* m, const crdi_prediction* f)
{
    return crdi_refresh_has(m->plan, f->of->to.member) &&
           crd_defect_scheme_refreshes(m->plan->sys->run.feedthrough);
}

// What stands behind an input, and where it comes from.
static crd_status find_origins(crd_master* m)
{
    struct crdi_estimate* s = m->verdict.estimate;
    for (int i = 0; i < s->errors.inputs; i++) {
        origin* o = &s->origins[i];
        const crdi_prediction* f = o->link->prediction;
        if (f) {
            o->fresh = is_fresh(m, f);
            o->y = f->gain * *f->from + f->offset;
        }
        o->u = f ? o->y : o->link->observed ? o->link->observed->last : 0;
        const int index = s->index[o->link->from.member][o->link->from.slot];
        s->source[i] = index >= 0 ? index : -1;
        s->gain[i] = o->link->gain;
        s->degree[i] = f && f->slope[1] ? 2 : f && f->slope[0] ? 1 : 0;
        if (!f && !o->link->observed) { return refuse_link(m, o->link, "is not watched"); }
    }
    return CRD_OK;
}

// What the unit was given at the beginning of its step, or of the last part of it, goes on to the
// end, where the sample is taken; unless it was shown something else for that.
static double input_at_end(const crdi_prediction* f, double now, double h)
{
    const crdi_member* p = f->target;
    if (p->shown) { return *f->to; }
    const double s = p->run->parts > 1 ? h / p->run->parts : now - f->begin;
    const double slope = f->slope[0] ? *f->slope[0] : 0, curve = f->slope[1] ? *f->slope[1] : 0;
    return *f->to + s * (slope + 0.5 * s * curve);
}

// Loops at level 0 hold to the letter: in that step nothing was made fresh.
static bool was_fresh(const origin* o)
{
    const crdi_prediction* f = o->link->prediction;
    return o->fresh && !(f->network && f->used == CRD_PREDICT_HOLD);
}

static crdi_drive drive_of_prediction(origin* o, double now, double h)
{
    const crdi_prediction* f = o->link->prediction;
    const double y = f->gain * *f->from + f->offset, s = now - f->origin;
    // A unit that holds, but in so many parts of its step, follows the input as a staircase.
    const double parts = fmax(1, f->target->run->parts),
                 stairs = f->slope[0] ? 0 : 1 / (parts * parts);
    const double moved = crd_poly_eval(&f->u, s) - crd_poly_eval(&f->u, s - h);
    const crdi_drive d = {.mean = f->bias + f->correction,
                          .change = (1 - stairs) * moved - (y - o->y),
                          .shape = f->shape,
                          .end = f->probed      ? 0 // the gain takes it out of the output
                                 : was_fresh(o) ? f->correction
                                                : input_at_end(f, now, h) - y};
    o->y = y;
    return d;
}

// u is constant, or a line, and y is a line
static crdi_drive drive_of_observed(const origin* o)
{
    const crdi_observed* w = o->link->observed;
    const double end = *w->to + w->rise - (w->gain * *w->from + w->offset);
    return (crdi_drive){.mean = w->bias, .change = 2 * (end - w->bias), .end = end};
}

// What the unit was given for the step, s = 0 at its beginning.
static crd_poly input_over(const origin* o, double now, double h)
{
    const crdi_prediction* f = o->link->prediction;
    if (!f) {
        const crdi_observed* w = o->link->observed;
        return (crd_poly){.degree = 1, .c = {*w->to, w->rise / h}};
    }
    crd_poly p = crd_poly_shift(&f->u, now - h - f->origin);
    const int degree = f->slope[1] ? 2 : f->slope[0] ? 1 : 0;
    if (!f->textbook) {
        p = crd_poly_nearest(&p, degree, h);
    } else if (degree == 0) {
        p.degree = 0;
    }
    p.c[0] += f->correction;
    return p;
}

// By the trapezoidal rule an input that jumps at the beginning of a step was a ramp from its last
// value, over twice the lag a: u - J (1 - t / 2a). Its mean over h is -J a / h, and of the line
// that is nearest the change is J (3 r - 2 r^2), r = 2a / h.
static void add_lag(const crd_master* m, origin* o, double now, double h, crdi_drive* d)
{
    const double lag = m->plan->members[o->link->to.member].unit->input_lag;
    if (!(lag > 0)) { return; }
    const crd_poly p = input_over(o, now, h);
    const double jump = p.c[0] - o->u, r = fmin(1, 2 * lag / h);
    d->mean -= 0.5 * r * jump;
    d->change += (3 * r - 2 * r * r) * jump;
    o->u = crd_poly_eval(&p, h);
}

static bool is_due(const crd_master* m, int member)
{
    return !m->plan->times.multirate || crdi_member_is_due(m, member);
}

// A longer step of the source: what is known is the mean of its last one. Of the target: its
// outputs stay what they were until it ends.
static void drive(const crd_master* m, int input, double now, double h)
{
    struct crdi_estimate* s = m->verdict.estimate;
    origin* o = &s->origins[input];
    crdi_drive d = o->link->prediction ? drive_of_prediction(o, now, h) : drive_of_observed(o);
    if (!m->plan->times.multirate) { add_lag(m, o, now, h, &d); }
    if (m->plan->times.multirate && m->plan->members[o->link->from.member].ticks > 1) {
        d.change = 0;
        if (!o->fresh) { d.end = d.mean; }
    }
    d.end += o->off;
    if (!is_due(m, o->link->to.member)) { d.end = s->drive[input].end; }
    const crdi_prediction* f = o->link->prediction;
    d.most = fmax(f ? f->max + fabs(f->correction) : 0,
                  fabs(d.mean) + 0.5 * fabs(d.change) + fabs(d.shape));
    s->drive[input] = d;
}

// ---- the units' own solvers --------------------------------------------------------------------

static bool solvers_show(const crd_master* m)
{
    return !m->plan->paced && !m->plan->controlled;
}

static crd_status watch_solvers(crd_master* m)
{
    struct crdi_estimate* s = m->verdict.estimate;
    crd_status st = CRD_OK;
    if (!solvers_show(m)) { return CRD_OK; }
    s->given = crdi_arena_new(&m->arena, 3 * (size_t)s->errors.inputs, sizeof *s->given);
    if (!s->given) { return CRD_E_MEMORY; }
    for (int i = 0; i < s->part_count && st >= 0; i++) {
        part* p = &s->parts[i];
        const crdi_member* member = &m->plan->members[p->member];
        if (member->async) { continue; }
        st = crdi_solving_init(&m->arena, member->unit, p->model->in, &p->model->linear,
                               (double)member->ticks * m->plan->times.tick, &p->solving);
    }
    return st;
}

// false: of some input it is not known.
static bool fill_given(const crd_master* m, const part* p, double now, double h)
{
    const struct crdi_estimate* s = m->verdict.estimate;
    const int count = p->model->in_count;
    memset(s->given, 0, 3 * (size_t)count * sizeof *s->given);
    for (int i = 0; i < count; i++) {
        const origin* o = &s->origins[p->in_first + i];
        const crdi_prediction* f = o->link->prediction;
        if (f && f->target->run->parts > 1) { return false; }
        const crd_poly u = input_over(o, now, h);
        for (int k = 0; k <= u.degree && k < 3; k++) {
            s->given[3 * i + k] = u.c[k];
        }
    }
    return !(m->live && crdi_live_disturbs(m));
}

// Who holds the beginning of a line makes outputs with that.
static void compare_inputs(crd_master* m, const part* p, bool known, double now, double h)
{
    struct crdi_estimate* s = m->verdict.estimate;
    for (int i = 0; i < p->model->in_count; i++) {
        origin* o = &s->origins[p->in_first + i];
        const crdi_observed* w = o->link->observed;
        const double given =
            o->link->prediction ? input_at_end(o->link->prediction, now, h) : *w->to + w->rise;
        o->off = known && p->solving.known && !crdi_solving_rests(&p->solving)
                     ? crdi_solving_input(&p->solving, i) - given
                     : 0;
    }
}

static void look_at_solvers(crd_master* m, double now, double h)
{
    struct crdi_estimate* s = m->verdict.estimate;
    for (int i = 0; s->given && i < s->part_count; i++) {
        part* p = &s->parts[i];
        const crdi_member* member = &m->plan->members[p->member];
        const double own = (double)member->ticks * m->plan->times.tick; // its step
        double* missed = s->errors.missed + p->state_first;
        memset(missed, 0, (size_t)p->model->linear.states * sizeof *missed);
        if (!p->solving.known || (h > 0 && !is_due(m, p->member))) { continue; }
        const bool whole = h == m->plan->times.tick && fill_given(m, p, now, own);
        m->running = p->member;
        crdi_solving_step(&p->solving, whole ? s->given : NULL);
        m->running = -1;
        if (h > 0) { compare_inputs(m, p, whole, now, own); }
        if (!p->solving.known) { crdi_errors_forget_own(&s->errors); }
        memcpy(missed, p->solving.missed, (size_t)p->model->linear.states * sizeof *missed);
    }
}

void crdi_estimate_close(crd_master* m)
{
    struct crdi_estimate* s = m->verdict.estimate;
    for (int i = 0; s && i < s->part_count; i++) {
        crdi_solving_clear(&s->parts[i].solving);
    }
}

// ---- linearisation -----------------------------------------------------------------------------

static double largest(const double* a, int n)
{
    double x = 0;
    for (int i = 0; i < n; i++) {
        x = fmax(x, fabs(a[i]));
    }
    return x;
}

// A block of a unit (row-major) into the matrix of all, which lies column by column; whether it was
// another one.
static bool place(const double* from, int rows, int columns, double* to, int stride, double same)
{
    const double size = largest(from, rows * columns);
    bool other = false;
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            double* x = &to[j * stride + i];
            if (fabs(*x - from[i * columns + j]) > same * size) { other = true; }
            *x = from[i * columns + j];
        }
    }
    return other;
}

static bool place_all(crdi_errors* e, const part* p)
{
    const crd_linearised* l = &p->model->linear;
    const double same = l->exact ? same_if_exact : same_if_differences;
    const int n = e->states, r = e->outputs, x = p->state_first, u = p->in_first, y = p->out_first;
    bool other = place(l->A, l->states, l->states, e->A + x * n + x, n, same);
    other |= place(l->B, l->states, l->inputs, e->B + u * n + x, n, same);
    other |= place(l->C, l->outputs, l->states, e->C + x * r + y, r, same);
    other |= place(l->D, l->outputs, l->inputs, e->D + u * r + y, r, same);
    return other;
}

// The first time: only now is it known how many states there are.
static crd_status linearise_all(crd_master* m)
{
    struct crdi_estimate* s = m->verdict.estimate;
    for (int i = 0; i < s->part_count; i++) {
        part* p = &s->parts[i];
        const crd_status st = crdi_models_get(m, p->member, &p->model);
        if (st < 0) { return st; }
        if (p->model->status < 0) {
            s->note = crdi_arena_format(&m->arena, "unit '%s' %s" ADVICE,
                                        m->plan->members[p->member].unit->name, p->model->why);
            return s->note ? CRD_OK : CRD_E_MEMORY;
        }
        p->state_first = s->errors.states;
        s->errors.states += p->model->linear.states;
        if (s->errors.states > (m->plan->controlled ? MOST_STATES_CONTROLLED : MOST_STATES)) {
            s->note = "the units have too many states to follow their errors" ADVICE;
            return CRD_OK;
        }
    }
    s->errors.source = s->source;
    s->errors.gain = s->gain;
    if (m->plan->iterated) { s->errors.degree = s->degree; } // elsewhere defects are larger
    const crd_status st = crdi_errors_init(&m->arena, &s->errors);
    for (int i = 0; st >= 0 && i < s->part_count; i++) {
        place_all(&s->errors, &s->parts[i]);
    }
    return st;
}

static void close_loop(struct crdi_estimate* s)
{
    if (crdi_errors_close(&s->errors) < 0) {
        s->note = "the connections make an algebraic loop without a unique solution" ADVICE;
    }
}

// Again, at a communication point. A unit that stays the same is asked less and less often; one
// that cannot say now keeps what it had.
static void look_again(crd_master* m)
{
    struct crdi_estimate* s = m->verdict.estimate;
    bool other = false;
    for (int i = 0; i < s->part_count; i++) {
        part* p = &s->parts[i];
        if (p->wait-- > 0) { continue; }
        const bool changed = crdi_models_ask_again(m, p->member) && place_all(&s->errors, p);
        p->rest = changed ? 0 : p->rest < LONGEST_REST ? 2 * p->rest + 1 : p->rest;
        p->wait = p->rest;
        other = other || changed;
    }
    if (!other) { return; }
    s->linear = false;
    close_loop(s);
}

// ---- the run -----------------------------------------------------------------------------------

static crd_status estimate_start(crd_master* m)
{
    struct crdi_estimate* s = m->verdict.estimate;
    crd_status st = CRD_OK;
    CRD_TRY(sort_members(m));
    CRD_TRY(count_links(m));
    if (s->note) { return CRD_OK; }
    CRD_TRY(make_parts(m));
    CRD_TRY(find_origins(m));
    if (s->note) { return CRD_OK; }
    CRD_TRY(linearise_all(m));
    if (!s->note) { close_loop(s); }
    if (s->note) { return CRD_OK; }
    CRD_TRY(watch_solvers(m));
    look_at_solvers(m, m->clock.time, 0);
    s->linear = !m->plan->times.multirate; // whose defects are not known in every tick
    for (int i = 0; i < CRDI_NORMS && s->linear; i++) {
        CRD_TRY(crdi_bound_init(&m->arena, &s->errors, (crdi_norm)i, &s->bounds[i]));
    }
fail:
    return st;
}

crd_status crdi_estimate_start(crd_master* m)
{
    if (!m->plan->estimated) { return CRD_OK; }
    m->verdict.estimate = crdi_arena_new(&m->arena, 1, sizeof *m->verdict.estimate);
    if (!m->verdict.estimate) { return CRD_E_MEMORY; }
    m->verdict.estimate->look_every = (m->plan->times.stop - m->plan->times.start) / LOOKS;
    m->verdict.estimate->look = m->plan->times.start + m->verdict.estimate->look_every;
    const crd_status st = estimate_start(m);
    if (st < 0) {
        crdi_estimate_close(m);
        m->verdict.estimate = NULL;
    }
    return st;
}

bool crdi_estimate_is_on(const crd_master* m)
{
    const struct crdi_estimate* s = m->verdict.estimate;
    return s && !s->note && s->part_count > 0;
}

void crdi_estimate_step(crd_master* m, double h)
{
    struct crdi_estimate* s = m->verdict.estimate;
    if (!crdi_estimate_is_on(m)) { return; }
    const double now = crdi_time_of(m, m->clock.n + 1);
    look_at_solvers(m, now, h);
    for (int i = 0; i < s->errors.inputs; i++) {
        drive(m, i, now, h);
    }
    for (int i = 0; i < CRDI_NORMS && s->linear; i++) {
        crdi_bound_step(&s->bounds[i], &s->errors, h, s->drive);
    }
    if (crdi_errors_step(&s->errors, h, s->drive) < 0) {
        s->note = "the linearised error grows beyond all numbers" ADVICE;
    } else if (now >= s->look) {
        s->look = fmax(s->look, now) + s->look_every;
        look_again(m);
    }
}

void crdi_estimate_of(const crd_master* m, int member, int slot, double* rms, double* max)
{
    const struct crdi_estimate* s = m->verdict.estimate;
    const int i = s ? s->index[member][slot] : NOT_KNOWN;
    *rms = *max = i == NO_ERROR ? 0 : (double)NAN;
    if (i < 0 || s->note) { return; }
    *rms = s->errors.time > 0 ? sqrt(s->errors.square[i] / s->errors.time) : 0;
    *max = s->errors.max[i];
}

// An event inside of a step may be a jump, which is not what its samples were taken for.
static bool had_events(const crd_master* m)
{
    for (int i = 0; i < m->connections.prediction_count; i++) {
        if (*m->connections.predictions[i].event_count > 0) { return true; }
    }
    return false;
}

double crdi_estimate_bound(const crd_master* m, int member, int slot)
{
    const struct crdi_estimate* s = m->verdict.estimate;
    const int i = s ? s->index[member][slot] : NOT_KNOWN;
    if (i == NO_ERROR) { return 0; }
    if (i < 0 || s->note || !s->linear || !(s->errors.time > 0)) { return (double)NAN; }
    if (had_events(m)) { return (double)NAN; }
    const double own = sqrt(s->errors.own_square[i] / s->errors.time);
    double x = INFINITY;
    for (int k = 0; k < CRDI_NORMS; k++) {
        x = fmin(x, sqrt(s->bounds[k].square[i] / s->errors.time)); // not one that is NaN
    }
    return isfinite(x) && own <= 0.01 * x ? x : (double)NAN; // it is one of connections alone
}

bool crdi_estimate_blames_solvers(const crd_master* m, int member, int slot)
{
    const struct crdi_estimate* s = m->verdict.estimate;
    const int i = s ? s->index[member][slot] : NOT_KNOWN;
    return i >= 0 && !s->note && s->errors.own_square[i] > 0.25 * s->errors.square[i];
}

const char* crdi_estimate_worst_solver(const crd_master* m)
{
    const struct crdi_estimate* s = m->verdict.estimate;
    const part* worst = NULL;
    for (int i = 0; s && i < s->part_count; i++) {
        const part* p = &s->parts[i];
        if (!worst || p->solving.most > worst->solving.most) { worst = p; }
    }
    return worst ? m->plan->members[worst->member].unit->name : "";
}

double crdi_estimate_growth(crd_master* m)
{
    const struct crdi_estimate* s = m->verdict.estimate;
    if (!s || s->note || !s->errors.states) { return (double)NAN; }
    const int n = s->errors.states;
    const size_t square = (size_t)n * (size_t)n;
    double* a = crdi_arena_new(&m->arena, square + 2 * (size_t)n, sizeof *a);
    if (!a) { return (double)NAN; }
    memcpy(a, s->errors.Ac, square * sizeof *a); // transposed, which is the same
    if (crdi_num_eigenvalues(n, a, a + square, a + square + n) < 0) { return (double)NAN; }
    double growth = -INFINITY;
    for (int i = 0; i < n; i++) {
        growth = fmax(growth, a[square + (size_t)i]);
    }
    return growth;
}

const char* crdi_estimate_note(const crd_master* m)
{
    return !m->verdict.estimate        ? "defects are not monitored"
           : m->verdict.estimate->note ? m->verdict.estimate->note
                                       : "";
}
