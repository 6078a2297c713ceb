// The macro-step map of coupled linear units (shared/quality_macro.h).
//
// Over its step of length h, with an input u(s) = u0 + u1 s + u2 s^2, a unit goes exactly
//   x(h) = exp(A h) x + sum_k Gamma_k u_k,   Gamma_k = integral_0^h exp(A (h - s)) B s^k ds,
// and the rest is what the master does with samples: predict, project to what the unit takes,
// refresh, remember. All of it is linear, so that the map is found by stepping unit vectors.
#include "shared/quality_macro.h"

#include <math.h>
#include <string.h>

#include "shared/num.h"

enum { FEW = 3 }; // inner steps of which derivatives look beyond the step

static size_t macro_product(int a, int b)
{
    return (size_t)a * (size_t)b;
}

static int gcd(int a, int b)
{
    while (b) {
        const int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// ---- plan --------------------------------------------------------------------------------------

// Samples of a source with so many derivatives that its predictor looks at.
static int depth_of(crd_predictor p, int gives)
{
    switch (p) {
    case CRD_PREDICT_HOLD:
        return 1;
    case CRD_PREDICT_TAYLOR1:
        return gives >= 1 ? 1 : 2;
    case CRD_PREDICT_HERMITE:
        return gives >= 2 ? 2 : 3 - gives;
    case CRD_PREDICT_TAYLOR2:
        return 3 - (gives > 2 ? 2 : gives);
    case CRD_PREDICT_AB2:
        return 2;
    case CRD_PREDICT_AB3:
        return 3;
    default:
        return 4;
    }
}

// A refreshed target sees derivatives of inputs, which may be made of differences.
static void size_link(const crdi_macro* m, crdi_macro_link* k)
{
    const crdi_macro_unit *from = &m->units[k->from_unit], *to = &m->units[k->to_unit];
    // Means of values need no derivatives, but what is known already (Gauss-Seidel) has them.
    const bool values = k->predictor >= CRD_PREDICT_AB2 && m->phases < 2;
    k->kept = 1 + (m->strict || values ? 0 : from->gives);
    if (k->textbook) { k->kept = 1; }
    k->depth = k->tap_count ? k->tap_count : depth_of(k->predictor, k->kept - 1);
    const int differences = to->refresh && !m->strict ? to->takes - (k->kept - 1) : 0;
    if (!k->tap_count && k->depth < differences) { k->depth = differences; }
    if (k->tap_count) { k->kept = 1; }
}

void crdi_macro_size_links(crdi_macro* m)
{
    for (int i = 0; i < m->link_count; i++) {
        size_link(m, &m->links[i]);
    }
}

// [A B 0 0; 0 0 I 0; 0 0 0 I; 0 0 0 0]: the exponential's first row is exp(A h), and columns of
// integrals of s^k / k!
static crd_status discretise_unit(crdi_macro_unit* u, double h, double* work)
{
    const int n = u->states, q = u->inputs, all = n + 3 * q;
    double *a = work, *rest = work + macro_product(all, all);
    memset(a, 0, macro_product(all, all) * sizeof *a);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            a[i * all + j] = h * u->A[i * n + j];
        }
        for (int j = 0; j < q; j++) {
            a[i * all + n + j] = h * u->B[i * q + j];
        }
    }
    for (int i = 0; i < 2 * q; i++) {
        a[(n + i) * all + n + q + i] = 1; // s / h
    }
    const crd_status st = crdi_num_expm(all, a, rest);
    if (st < 0) { return st; }
    double scale = 1; // h^k k!
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < q; j++) {
                u->gamma[(k * n + i) * q + j] = scale * a[i * all + n + k * q + j];
            }
        }
        scale *= h * (k + 1);
    }
    for (int i = 0; i < n; i++) {
        memcpy(u->phi + i * n, a + i * all, (size_t)n * sizeof *a);
    }
    return CRD_OK;
}

crd_status crdi_macro_set_tick(crdi_macro* m, double tick)
{
    m->tick = tick;
    for (int i = 0; i < m->unit_count; i++) {
        crdi_macro_unit* u = &m->units[i];
        const double h = u->ticks * tick,
                     n = u->longest > 0 ? fmax(1, ceil(h / u->longest * (1 - 1e-9))) : 0;
        u->inner = n <= FEW ? (int)n : 0;
        const crd_status st = discretise_unit(u, u->inner ? h / u->inner : h, m->work);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

void crdi_macro_set_level(crdi_macro* m, int level)
{
    m->strict = level == 0;
    for (int i = 0; i < m->link_count; i++) {
        crdi_macro_link* k = &m->links[i];
        const crdi_macro_unit *from = &m->units[k->from_unit], *to = &m->units[k->to_unit];
        const bool means = !from->gives && !to->takes && from->ticks == to->ticks;
        k->textbook = level == 0;
        k->predictor = level == 0   ? CRD_PREDICT_HOLD
                       : level == 1 ? (means ? CRD_PREDICT_AB2 : CRD_PREDICT_TAYLOR1)
                                    : (means ? CRD_PREDICT_AB3 : CRD_PREDICT_TAYLOR2);
    }
    crdi_macro_size_links(m);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static crd_status macro_count(crdi_macro* m)
{
    m->first = crdi_arena_new(m->arena, (size_t)m->unit_count, sizeof *m->first);
    m->first_output = crdi_arena_new(m->arena, (size_t)m->unit_count, sizeof *m->first_output);
    m->first_kept = crdi_arena_new(m->arena, (size_t)m->unit_count, sizeof *m->first_kept);
    m->stamp = crdi_arena_new(m->arena, (size_t)m->unit_count, sizeof *m->stamp);
    if (!m->first || !m->first_output || !m->first_kept || !m->stamp) { return CRD_E_MEMORY; }
    int outputs = 0, most = 0;
    m->states = m->phases = 0;
    m->period = 1;
    m->work_size = 0;
    for (int i = 0; i < m->unit_count; i++) {
        crdi_macro_unit* u = &m->units[i];
        const int all = u->states + 3 * u->inputs;
        m->first[i] = m->states;
        m->first_output[i] = outputs;
        m->states += u->states;
        outputs += u->outputs;
        const int common = gcd(m->period, u->ticks);
        m->period *= u->ticks / (common > 0 ? common : 1);
        m->work_size = larger(m->work_size, 3 * macro_product(all, all));
        most = all > most ? all : most;
        if (u->phase >= m->phases) { m->phases = u->phase + 1; }
        u->phi = crdi_arena_new(m->arena, macro_product(u->states, u->states), sizeof(double));
        u->gamma =
            crdi_arena_new(m->arena, 3 * macro_product(u->states, u->inputs), sizeof(double));
        if (!u->phi || !u->gamma) { return CRD_E_MEMORY; }
    }
    m->numbers = m->states;
    for (int i = 0; i < m->unit_count; i++) {
        const crdi_macro_unit* u = &m->units[i];
        m->first_kept[i] = m->numbers;
        if (u->longest > 0) { m->numbers += u->inputs + u->points * u->outputs; }
    }
    m->outputs = crdi_arena_new(m->arena, (size_t)outputs, sizeof *m->outputs);
    m->v = crdi_arena_new(m->arena, 6 * (size_t)most, sizeof *m->v);
    m->work = crdi_arena_new(m->arena, m->work_size, sizeof *m->work);
    return m->outputs && m->v && m->work ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_macro_init(crd_arena* arena, crdi_macro* m)
{
    m->arena = arena;
    crd_status st = macro_count(m);
    crdi_macro_size_links(m);
    if (st >= 0) { st = crdi_macro_state_init(arena, m, &m->own); }
    return st < 0 ? st : crdi_macro_set_tick(m, m->tick);
}

crd_status crdi_macro_state_init(crd_arena* arena, const crdi_macro* m, crdi_macro_state* s)
{
    s->x = crdi_arena_new(arena, (size_t)m->numbers, sizeof *s->x);
    s->flows = crdi_arena_new(arena, (size_t)m->link_count, sizeof *s->flows);
    if (!s->x || !s->flows) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->link_count; i++) {
        if (!m->links[i].tap_count) { continue; }
        s->flows[i].taps = crdi_arena_new(arena, (size_t)m->links[i].tap_count, sizeof(double));
        if (!s->flows[i].taps) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

// ---- one step ----------------------------------------------------------------------------------

// Ticks between two samples that are remembered: those of the target's steps, if they fit.
static int macro_every(const crdi_macro* m, const crdi_macro_link* k)
{
    const int from = m->units[k->from_unit].ticks, to = m->units[k->to_unit].ticks;
    return !k->textbook && !k->tap_count && to % from == 0 ? to : from;
}

static crd_sample output_of(const crdi_macro* m, const crdi_macro_link* k)
{
    crd_sample s = m->outputs[m->first_output[k->from_unit] + k->from];
    for (int d = 0; d < 3; d++) {
        s.y[d] = d < k->kept ? k->gain * s.y[d] : 0;
    }
    s.order = k->kept - 1;
    return s;
}

static crd_poly by_taps(const crdi_macro_link* k, const double* y)
{
    crd_poly u = {.degree = k->rise ? 1 : 0};
    for (int i = 0; i < k->tap_count; i++) {
        u.c[0] += k->taps[i] * y[i];
        if (k->rise) { u.c[1] += k->rise[i] * y[i]; }
    }
    return u;
}

// The source is ahead: its step is known.
static crd_poly macro_interpolate(const crdi_macro* m, const crdi_macro_link* k,
                                  const crdi_macro_flow* f, int begin)
{
    const crd_sample end = output_of(m, k), *start = &f->past.sample[0];
    const int now = m->stamp[k->from_unit];
    const double h = (now - f->time) * m->tick;
    const bool newest = k->textbook && !m->units[k->to_unit].takes;
    if (newest || m->strict || (k->textbook && k->predictor == CRD_PREDICT_HOLD)) {
        return (crd_poly){.c = {end.y[0]}};
    }
    if (begin >= f->time) {
        const crd_poly u = crd_poly_hermite(start, start->order + 1, &end, end.order + 1, h);
        return crd_poly_shift(&u, (begin - f->time) * m->tick);
    }
    crd_history longer = f->past;
    crd_history_push(&longer, h, &end);
    const crd_poly u = crd_predict(CRD_PREDICT_TAYLOR2, &longer, h);
    return crd_poly_shift(&u, (begin - now) * m->tick);
}

// What the target gets over its step from tick `begin` on.
static void begin_link(const crdi_macro* m, int i, crdi_macro_flow* f, int begin,
                       const crd_poly* delta)
{
    const crdi_macro_link* k = &m->links[i];
    const crdi_macro_unit* to = &m->units[k->to_unit];
    const double h = to->ticks * m->tick, source = m->units[k->from_unit].ticks * m->tick;
    if (k->tap_count) {
        f->u = by_taps(k, f->taps);
    } else if (m->stamp[k->from_unit] > f->time) {
        f->u = macro_interpolate(m, k, f, begin);
    } else {
        const crd_poly u = crd_predict(k->predictor, &f->past, h > source ? h : source);
        f->u = crd_poly_shift(&u, (begin - f->time) * m->tick);
    }
    if (delta) {
        for (int d = 0; d < CRD_POLY_SIZE; d++) {
            f->u.c[d] += delta[i].c[d];
        }
        f->u.degree = f->u.degree > delta[i].degree ? f->u.degree : delta[i].degree;
    }
    f->given = k->textbook && !delta ? f->u : crd_poly_nearest(&f->u, to->takes, h);
    for (int d = to->takes + 1; d < CRD_POLY_SIZE; d++) {
        f->given.c[d] = 0;
    }
    f->given.degree = f->given.degree < to->takes ? f->given.degree : to->takes;
}

static void add_row(int n, const double* a, const double* x, double* sum)
{
    for (int j = 0; j < n; j++) {
        *sum += a[j] * x[j];
    }
}

// y, y', y'' of a unit at x with inputs u (inputs x 3):
//   y = C x + D u, y' = C (A x + B u) + D u', y'' = C (A (A x + B u) + B u') + D u''
static void give_outputs(const crdi_macro* m, int unit, const double* x, const double* u)
{
    const crdi_macro_unit* p = &m->units[unit];
    const int n = p->states, q = p->inputs;
    const double* now = x;
    double* next = m->v + 3 * q;
    for (int d = 0; d <= p->gives; d++) {
        for (int i = 0; i < p->outputs; i++) {
            double y = 0;
            add_row(n, p->C + i * n, now, &y);
            add_row(q, p->D + i * q, u + d * q, &y);
            m->outputs[m->first_output[unit] + i].y[d] = y;
        }
        if (d == p->gives) { break; }
        double* to = next + (d % 2) * n;
        for (int i = 0; i < n; i++) {
            to[i] = 0;
            add_row(n, p->A + i * n, now, &to[i]);
            add_row(q, p->B + i * q, u + d * q, &to[i]);
        }
        now = to;
    }
}

// x over one step, or inner step, with inputs u (3 x inputs): phi x + sum_k Gamma_k u_k
static void advance_states(const crdi_macro_unit* p, const double* u, double* x, double* next)
{
    const int n = p->states, q = p->inputs;
    for (int i = 0; i < n; i++) {
        next[i] = 0;
        add_row(n, p->phi + i * n, x, &next[i]);
        for (int k = 0; k < 3; k++) {
            add_row(q, p->gamma + (k * n + i) * q, u + k * q, &next[i]);
        }
    }
    memcpy(x, next, (size_t)n * sizeof *x);
}

// Inner steps follow inputs as lines, the first of them from what the input was before: a jump J
// acts as J (1 - t / 2a) less, a the part of the inner step that the past decides, or the line that
// is nearest to that. Outputs at their ends are kept.
static void advance_inner(const crdi_macro* m, crdi_macro_state* s, int unit, const double* u)
{
    const crdi_macro_unit* p = &m->units[unit];
    const int q = p->inputs, r = p->outputs;
    const double h = p->ticks * m->tick / p->inner, lag = fmin(1, 2 * p->past);
    double *line = m->v + 3 * q, *next = line + 3 * q, *x = s->x + m->first[unit];
    double *before = s->x + m->first_kept[unit], *kept = before + q;
    memset(line, 0, 3 * (size_t)q * sizeof *line);
    for (int k = 0; k < p->inner; k++) {
        for (int j = 0; j < q; j++) {
            const double t = k * h, e = t + h;
            const double from = u[j] + t * (u[q + j] + t * u[2 * q + j]);
            const double to = u[j] + e * (u[q + j] + e * u[2 * q + j]);
            const double jump = from - before[j], rise = (3 - 2 * lag) * lag * jump;
            line[j] = from - 0.5 * (lag * jump + rise);
            line[q + j] = (to - from + rise) / h;
            before[j] = to;
        }
        advance_states(p, line, x, next);
        for (int i = 0; i < r; i++) {
            double* y = kept + i * p->points;
            memmove(y + 1, y, (size_t)(p->points - 1) * sizeof *y);
            y[0] = 0;
            add_row(p->states, p->C + i * p->states, x, &y[0]);
            add_row(q, p->D + i * q, before, &y[0]);
        }
    }
}

// y' of the polynomial through the last points, at the newest.
static void give_slopes(const crdi_macro* m, const crdi_macro_state* s, int unit)
{
    static const double weights[3][4] = {{1, -1}, {1.5, -2, 0.5}, {11.0 / 6, -3, 1.5, -1.0 / 3}};
    const crdi_macro_unit* p = &m->units[unit];
    const double h = p->ticks * m->tick / p->inner;
    for (int i = 0; i < p->outputs; i++) {
        const double* y = s->x + m->first_kept[unit] + p->inputs + i * p->points;
        double slope = 0;
        add_row(p->points, weights[p->points - 2], y, &slope);
        m->outputs[m->first_output[unit] + i].y[1] = slope / h;
    }
}

static void advance_unit(const crdi_macro* m, crdi_macro_state* s, int unit, int now)
{
    const crdi_macro_unit* p = &m->units[unit];
    const int q = p->inputs;
    const double h = p->ticks * m->tick;
    double *u = m->v, *next = u + 3 * q, *x = s->x + m->first[unit];
    const bool shown = p->refresh == CRDI_MACRO_ASKED && !m->strict;
    memset(u, 0, 3 * (size_t)q * sizeof *u);
    for (int i = 0; i < m->link_count; i++) {
        if (m->links[i].to_unit != unit) { continue; }
        for (int d = 0; d < 3; d++) {
            u[d * q + m->links[i].to] += s->flows[i].given.c[d];
        }
    }
    if (p->inner) {
        advance_inner(m, s, unit, u);
    } else {
        advance_states(p, u, x, next);
    }
    memset(u, 0, 3 * (size_t)q * sizeof *u);
    for (int i = 0; i < m->link_count; i++) {
        crdi_macro_flow* f = &s->flows[i];
        if (m->links[i].to_unit != unit) { continue; }
        for (int d = 0; d < 3; d++) {
            const bool takes_it = d <= p->takes;
            f->used.y[d] = takes_it ? crd_poly_derivative(shown ? &f->u : &f->given, d, h) : 0;
            u[d * q + m->links[i].to] += f->used.y[d];
        }
    }
    give_outputs(m, unit, x, u);
    if (p->inner && p->gives) { give_slopes(m, s, unit); }
    m->stamp[unit] = now;
}

// The newest sample of a link with derivatives as far as the target takes them.
static crd_sample macro_newest(const crdi_macro* m, const crdi_macro_link* k,
                               const crdi_macro_flow* f, int now)
{
    const int order = m->units[k->to_unit].takes;
    const double h = (now - f->time) * m->tick;
    if (!f->fresh || k->tap_count) {
        crd_sample s = {.order = 2};
        const double at = m->units[k->to_unit].ticks * m->tick;
        for (int d = 0; d < 3; d++) {
            s.y[d] = crd_poly_derivative(&f->u, d, at);
        }
        return s;
    }
    if (f->end.order >= order) { return f->end; }
    crd_history longer = f->past;
    crd_history_push(&longer, h, &f->end);
    return crd_history_estimate(&longer, order);
}

static void add_gains(const crdi_macro* m, int unit, int input, const crd_sample* fresh,
                      const crd_sample* used)
{
    const crdi_macro_unit* p = &m->units[unit];
    for (int i = 0; i < p->outputs; i++) {
        for (int d = 0; d <= p->gives; d++) {
            m->outputs[m->first_output[unit] + i].y[d] +=
                p->D[i * p->inputs + input] * (fresh->y[d] - used->y[d]);
        }
    }
}

static void refresh_unit(const crdi_macro* m, crdi_macro_state* s, int unit, int now)
{
    const crdi_macro_unit* p = &m->units[unit];
    const int q = p->inputs;
    double* u = m->v;
    memset(u, 0, 3 * (size_t)q * sizeof *u);
    for (int i = 0; i < m->link_count; i++) {
        const crdi_macro_link* k = &m->links[i];
        if (k->to_unit != unit) { continue; }
        const crd_sample fresh = macro_newest(m, k, &s->flows[i], now);
        if (p->refresh == CRDI_MACRO_GAIN) {
            add_gains(m, unit, k->to, &fresh, &s->flows[i].used);
            continue;
        }
        for (int d = 0; d <= p->takes; d++) {
            u[d * q + k->to] += fresh.y[d];
        }
    }
    if (p->refresh == CRDI_MACRO_ASKED) { give_outputs(m, unit, s->x + m->first[unit], u); }
    for (int i = 0; i < m->link_count; i++) {
        if (m->links[i].from_unit == unit && s->flows[i].fresh) {
            s->flows[i].end = output_of(m, &m->links[i]);
        }
    }
}

static void remember(const crdi_macro* m, crdi_macro_state* s, int now)
{
    for (int i = 0; i < m->link_count; i++) {
        const crdi_macro_link* k = &m->links[i];
        crdi_macro_flow* f = &s->flows[i];
        if (!f->fresh) { continue; }
        if (k->tap_count) {
            memmove(f->taps + 1, f->taps, (size_t)(k->tap_count - 1) * sizeof *f->taps);
            f->taps[0] = f->end.y[0];
        } else {
            crd_history_push(&f->past, macro_every(m, k) * m->tick, &f->end);
            f->past.count = k->depth < CRD_HISTORY ? k->depth : CRD_HISTORY;
        }
        f->time = now;
    }
}

// Values move, units that are due advance.
static void run_phase(const crdi_macro* m, crdi_macro_state* s, int t, int phase,
                      const crd_poly* delta)
{
    for (int i = 0; i < m->link_count; i++) {
        const crdi_macro_link* k = &m->links[i];
        const int ticks = m->units[k->to_unit].ticks;
        if (k->phase != phase) { continue; }
        if (k->early ? t % ticks == 0 : (t + 1) % ticks == 0) {
            begin_link(m, i, &s->flows[i], k->early ? t : t + 1 - ticks, delta);
        }
    }
    for (int i = 0; i < m->unit_count; i++) {
        const crdi_macro_unit* u = &m->units[i];
        if (u->phase == phase && (t + 1) % u->ticks == 0) { advance_unit(m, s, i, t + 1); }
    }
}

void crdi_macro_step(crdi_macro* m, crdi_macro_state* s, const crd_poly* delta)
{
    memset(m->stamp, 0, (size_t)m->unit_count * sizeof *m->stamp);
    for (int i = 0; i < m->link_count; i++) {
        crdi_macro_flow* f = &s->flows[i];
        f->time = 0;
        f->past.count = m->links[i].depth < CRD_HISTORY ? m->links[i].depth : CRD_HISTORY;
        for (int j = 0; j < CRD_HISTORY - 1; j++) {
            f->past.h[j] = macro_every(m, &m->links[i]) * m->tick;
            f->past.sample[j].order = f->past.sample[j + 1].order = m->links[i].kept - 1;
        }
    }
    for (int t = 0; t < m->period; t++) {
        for (int p = 0; p < m->phases; p++) {
            run_phase(m, s, t, p, delta);
        }
        for (int i = 0; i < m->link_count; i++) {
            const crdi_macro_link* k = &m->links[i];
            s->flows[i].fresh =
                m->stamp[k->from_unit] > s->flows[i].time && (t + 1) % macro_every(m, k) == 0;
            if (s->flows[i].fresh) { s->flows[i].end = output_of(m, k); }
        }
        for (int i = 0; i < m->refresh_count && !m->strict; i++) {
            const int unit = m->order[i];
            if ((t + 1) % m->units[unit].ticks == 0) { refresh_unit(m, s, unit, t + 1); }
        }
        remember(m, s, t + 1);
    }
}

// ---- the map -----------------------------------------------------------------------------------

int crdi_macro_size(const crdi_macro* m)
{
    int size = m->numbers;
    for (int i = 0; i < m->link_count; i++) {
        size += m->links[i].depth * m->links[i].kept;
    }
    return size;
}

// Place of number d of sample j of a link.
static double* place_of(const crdi_macro_link* k, crdi_macro_flow* f, int j, int d)
{
    return k->tap_count ? &f->taps[j] : &f->past.sample[j].y[d];
}

void crdi_macro_pack(const crdi_macro* m, const crdi_macro_state* s, double* z)
{
    memcpy(z, s->x, (size_t)m->numbers * sizeof *z);
    z += m->numbers;
    for (int i = 0; i < m->link_count; i++) {
        for (int j = 0; j < m->links[i].depth * m->links[i].kept; j++) {
            const int kept = m->links[i].kept;
            *z++ = *place_of(&m->links[i], &s->flows[i], j / kept, j % kept);
        }
    }
}

void crdi_macro_unpack(const crdi_macro* m, const double* z, crdi_macro_state* s)
{
    memcpy(s->x, z, (size_t)m->numbers * sizeof *z);
    z += m->numbers;
    for (int i = 0; i < m->link_count; i++) {
        crdi_macro_flow* f = &s->flows[i];
        f->past = (crd_history){0};
        for (int j = 0; j < m->links[i].depth * m->links[i].kept; j++) {
            const int kept = m->links[i].kept;
            *place_of(&m->links[i], f, j / kept, j % kept) = *z++;
        }
    }
}

// Columns: row-major here, so the unit vector of column j fills map[i * n + j].
static void fill_map(crdi_macro* m, double* map, double* z)
{
    const int n = crdi_macro_size(m);
    for (int j = 0; j < n; j++) {
        memset(z, 0, (size_t)n * sizeof *z);
        z[j] = 1;
        crdi_macro_unpack(m, z, &m->own);
        crdi_macro_step(m, &m->own, NULL);
        crdi_macro_pack(m, &m->own, z);
        for (int i = 0; i < n; i++) {
            map[i * n + j] = z[i];
        }
    }
}

static crd_status map_modes(crdi_macro* m, int n, double* map)
{
    double* re = map + macro_product(n, n);
    fill_map(m, map, re);
    return crdi_num_eigenvalues(n, map, re, re + n);
}

crd_status crdi_macro_ln_rho(crdi_macro* m, double* out)
{
    const int n = crdi_macro_size(m);
    crd_context* ctx = m->arena->ctx;
    double* map = crdi_new_array(ctx, macro_product(n, n + 2) + 1, sizeof *map);
    if (!map) { return CRD_E_MEMORY; }
    const double *re = map + macro_product(n, n), *im = re + n;
    const crd_status st = map_modes(m, n, map);
    double largest = 0;
    for (int i = 0; st >= 0 && i < n; i++) {
        largest = fmax(largest, hypot(re[i], im[i]));
    }
    *out = log(largest) / m->period;
    crd_free(ctx, map);
    return st;
}

// ---- the exactly coupled system ----------------------------------------------------------------

// u = G y, y = C x + D u: y = (I - D G)^-1 C x, x' = (A + B G (I - D G)^-1 C) x
typedef struct closing {
    int outputs;
    double *loop, *y, *column, *a; // (outputs^2), (outputs), (outputs^2), (states^2)
    int32_t* pivots;
} closing;

static void fill_loop(const crdi_macro* m, const closing* c)
{
    const int r = c->outputs;
    memset(c->loop, 0, macro_product(r, r) * sizeof *c->loop);
    for (int i = 0; i < r; i++) {
        c->loop[i * r + i] = 1;
    }
    for (int l = 0; l < m->link_count; l++) {
        const crdi_macro_link* k = &m->links[l];
        const crdi_macro_unit* to = &m->units[k->to_unit];
        const int from = m->first_output[k->from_unit] + k->from;
        for (int i = 0; i < to->outputs; i++) {
            c->loop[(m->first_output[k->to_unit] + i) * r + from] -=
                to->D[i * to->inputs + k->to] * k->gain;
        }
    }
}

// Column `state` of unit `unit`, into c->a.
static crd_status close_column(const crdi_macro* m, const closing* c, int unit, int state)
{
    const crdi_macro_unit* u = &m->units[unit];
    const int r = c->outputs, n = m->states, at = m->first[unit] + state;
    memset(c->y, 0, (size_t)r * sizeof *c->y);
    for (int i = 0; i < u->outputs; i++) {
        c->y[m->first_output[unit] + i] = u->C[i * u->states + state];
    }
    memcpy(c->column, c->loop, macro_product(r, r) * sizeof *c->loop);
    if (r && crdi_num_solve(r, c->column, c->y, c->pivots) < 0) { return CRD_E_CONVERGENCE; }
    for (int i = 0; i < u->states; i++) {
        c->a[(m->first[unit] + i) * n + at] += u->A[i * u->states + state];
    }
    for (int l = 0; l < m->link_count; l++) {
        const crdi_macro_link* k = &m->links[l];
        const crdi_macro_unit* to = &m->units[k->to_unit];
        const double y = k->gain * c->y[m->first_output[k->from_unit] + k->from];
        for (int i = 0; i < to->states; i++) {
            c->a[(m->first[k->to_unit] + i) * n + at] += to->B[i * to->inputs + k->to] * y;
        }
    }
    return CRD_OK;
}

static crd_status exact_modes(const crdi_macro* m, double* re, double* im)
{
    crd_status st = CRD_OK;
    crd_context* ctx = m->arena->ctx;
    const int n = m->states;
    closing c = {0};
    for (int i = 0; i < m->unit_count; i++) {
        c.outputs += m->units[i].outputs;
    }
    const size_t square = macro_product(c.outputs, c.outputs);
    double* room =
        crdi_new_array(ctx, 2 * square + (size_t)c.outputs + macro_product(n, n) + 1, sizeof *room);
    c.pivots = crdi_new_array(ctx, (size_t)c.outputs + 1, sizeof *c.pivots);
    if (!room || !c.pivots) { CRD_TRY(CRD_E_MEMORY); }
    c.loop = room;
    c.column = room + square;
    c.y = c.column + square;
    c.a = c.y + c.outputs;
    fill_loop(m, &c);
    for (int i = 0; i < m->unit_count; i++) {
        for (int j = 0; j < m->units[i].states; j++) {
            CRD_TRY(close_column(m, &c, i, j));
        }
    }
    CRD_TRY(crdi_num_eigenvalues(n, c.a, re, im));
fail:
    crd_free(ctx, room);
    crd_free(ctx, c.pivots);
    return st;
}

crd_status crdi_macro_exact(const crdi_macro* m, double* growth, double* fastest)
{
    const int n = m->states;
    double largest = 0;
    double* re = crdi_new_array(m->arena->ctx, 2 * (size_t)n + 1, sizeof *re);
    const crd_status st = re ? exact_modes(m, re, re + n) : CRD_E_MEMORY;
    *growth = n ? -INFINITY : 0;
    for (int i = 0; st >= 0 && i < n; i++) {
        *growth = fmax(*growth, re[i]);
        largest = fmax(largest, hypot(re[i], re[n + i]));
    }
    if (fastest) { *fastest = largest; }
    crd_free(m->arena->ctx, re);
    return st;
}

crd_status crdi_macro_deviation(crdi_macro* m, double* out)
{
    const int n = m->states, size = crdi_macro_size(m);
    const double h = m->period * m->tick;
    crd_context* ctx = m->arena->ctx;
    double* exact = crdi_new_array(ctx, 2 * (size_t)n + 1, sizeof *exact);
    double* map = crdi_new_array(ctx, macro_product(size, size + 2) + 1, sizeof *map);
    crd_status st = CRD_OK;
    if (!exact || !map) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(exact_modes(m, exact, exact + n));
    CRD_TRY(map_modes(m, size, map));
    const double *re = map + macro_product(size, size), *im = re + size;
    *out = 0;
    for (int i = 0; i < n; i++) {
        const double r = exp(exact[i] * h), angle = exact[n + i] * h;
        double nearest = INFINITY;
        for (int j = 0; j < size; j++) {
            nearest = fmin(nearest, hypot(re[j] - r * cos(angle), im[j] - r * sin(angle)));
        }
        *out = fmax(*out, nearest / fmax(1 - r, 1e-3));
    }
fail:
    crd_free(ctx, exact);
    crd_free(ctx, map);
    return st;
}
