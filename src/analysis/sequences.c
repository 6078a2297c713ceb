// What holds of a loop whose samples come late, overtake one another and are lost.
#include "analysis/varied.h"

static const double worst_effort = 4e9, moment_effort = 3e9, limit_effort = 1e9; // operations

static crd_sure compare_with_one(double radius)
{
    return radius < 1 - 1e-8   ? CRD_SURE_STABLE
           : radius > 1 + 1e-8 ? CRD_SURE_UNSTABLE
                               : CRD_SURE_OPEN;
}

// Which samples arrive when a link goes from one state to the next
static uint64_t find_arrivals(const crdi_varied_link* l, int from, int to)
{
    const crdi_ages *a = &l->states[from], *b = &l->states[to];
    uint64_t arrivals = 0;
    for (int i = 0; i < b->count; i++) {
        bool there = false;
        for (int k = 0; k < a->count; k++) {
            there = there || a->age[k] + 1 == b->age[i];
        }
        if (!there && b->age[i] < 64) { arrivals |= UINT64_C(1) << b->age[i]; }
    }
    return arrivals;
}

static crd_status tell_sequence(crd_loop_model* m, const crdi_varied* s, const crdi_radius* r,
                                crd_varied_report* out)
{
    const size_t count = (size_t)r->period * (size_t)s->link_count;
    out->ages = crdi_arena_new(&m->arena, count, sizeof *out->ages);
    out->arrivals = crdi_arena_new(&m->arena, count, sizeof *out->arrivals);
    if (!out->ages || !out->arrivals) { return CRD_E_MEMORY; }
    out->period = r->period;
    for (int t = 0; t < r->period; t++) {
        const int before = r->sequence[(t + r->period - 1) % r->period];
        for (int l = 0; l < s->link_count; l++) {
            const int from = crdi_varied_part(s, before, l),
                      to = crdi_varied_part(s, r->sequence[t], l);
            out->ages[t * s->link_count + l] = s->links[l].states[to].age[0];
            out->arrivals[t * s->link_count + l] = find_arrivals(&s->links[l], from, to);
        }
    }
    return CRD_OK;
}

static crd_status find_worst(crd_loop_model* m, crd_varied_report* out)
{
    crd_status st = CRD_OK;
    crdi_varied s = {0};
    crdi_radius r = {0};
    crdi_gain g = {0};
    out->worst = CRD_SURE_OPEN;
    CRD_TRY(crdi_varied_make(m, false, -1, &s));
    out->stopped = s.stopped;
    if (s.stopped) { goto fail; }
    CRD_TRY(crdi_small_gain(&s, &g));
    out->gain = g.known ? g.loop : (double)NAN;
    out->allowed = g.allowed > 0 ? 0.999 * g.allowed : g.allowed; // four digits may be rounded up
    CRD_TRY(crdi_radius_bound(&s, worst_effort, &r));
    out->low = r.low;
    out->high = s.shared ? INFINITY : r.high; // of some sequences only
    if (r.period) { CRD_TRY(tell_sequence(m, &s, &r, out)); }
    if (out->high < 1) {
        out->worst = CRD_SURE_STABLE;
        out->by = "norm";
    } else if (g.known && g.loop < 1) {
        out->worst = CRD_SURE_STABLE;
        out->by = "small gain";
        out->high = fmin(out->high, 1);
    } else if (compare_with_one(r.low) == CRD_SURE_UNSTABLE) {
        out->worst = CRD_SURE_UNSTABLE;
    } else if (s.shared) {
        out->stopped = r.high < 1 ? "the links together can be in too many states; sequences that "
                                    "are the same for all of them do not grow"
                                  : "the links together can be in too many states; among sequences "
                                    "that are the same for all of them none was found that grows";
    } else if (r.stopped) {
        out->stopped = "no more effort was made";
    }
fail:
    crdi_varied_clear(&s);
    return st;
}

// ---- mean square -------------------------------------------------------------------------------

// Eigenvalues of maps that are not normal may be off by many times the residual.
static crd_sure compare_moment(double radius, double error)
{
    return fabs(radius - 1) > 1000 * error ? compare_with_one(radius) : CRD_SURE_OPEN;
}

static crd_status moment_at(const crd_loop_model* m, double loss, double* effort,
                            crd_varied_report* out)
{
    crdi_varied s = {0};
    out->moment = out->moment_error = out->drawn = out->drawn_error = NAN;
    out->mean_square = CRD_SURE_OPEN;
    crd_status st = crdi_varied_make(m, true, loss, &s);
    if (st >= 0 && !s.stopped) {
        st = crdi_moment_radius(&s, effort, &out->moment, &out->moment_error);
        if (isnan(out->moment)) { s.stopped = "it would be too much effort"; }
    }
    if (!isnan(out->moment)) { out->mean_square = compare_moment(out->moment, out->moment_error); }
    out->no_moment = s.stopped;
    out->shared = s.shared;
    if (st >= 0 && loss < 0 && s.phi && (s.shared || out->mean_square == CRD_SURE_OPEN)) {
        st = crdi_varied_drawn(&s, &out->drawn, &out->drawn_error);
    }
    crdi_varied_clear(&s);
    return st;
}

// The first loss above the present one at which second moments do not die out any more. They need
// not grow with the loss: steps first, then halves.
static crd_status find_loss_limit(const crd_loop_model* m, double loss, crd_varied_report* out)
{
    enum { STEPS = 12, HALVES = 14 };
    const double most = 0.95;
    double low = loss, effort = limit_effort;
    crd_varied_report at = {0};
    if (!(loss > 0) || out->mean_square != CRD_SURE_STABLE) { return CRD_OK; }
    for (int i = 1; i <= STEPS && low < most; i++) {
        double high = loss + (most - loss) * i / STEPS;
        crd_status st = moment_at(m, high, &effort, &at);
        if (st < 0 || at.no_moment || at.mean_square == CRD_SURE_OPEN) { return st; }
        out->loss_tried = high;
        if (at.mean_square == CRD_SURE_STABLE) {
            low = high;
            continue;
        }
        for (int k = 0; k < HALVES; k++) {
            const double middle = (low + high) / 2;
            st = moment_at(m, middle, &effort, &at);
            if (st < 0 || at.no_moment) { return st; }
            *(at.moment < 1 ? &low : &high) = middle;
        }
        out->loss_limit = low;
        return CRD_OK;
    }
    return CRD_OK;
}

crd_status crd_analysis_varied(crd_loop_model* m, crd_varied_report* out)
{
    crd_status st = CRD_OK;
    crd_varied_report r = {.by = "",
                           .high = INFINITY,
                           .gain = NAN,
                           .moment = NAN,
                           .drawn = NAN,
                           .drawn_error = NAN,
                           .loss_limit = NAN,
                           .loss_tried = NAN,
                           .mean_square = CRD_SURE_OPEN,
                           .allowed = -1};
    double loss = 0, effort = moment_effort;
    bool bursts = false;
    if (m->no_map || !m->sampled.link_count) {
        r.reason = m->no_map ? m->no_map : "no link has an element";
        *out = r;
        return CRD_OK;
    }
    r.link_count = m->sampled.link_count;
    r.links = crdi_arena_new(&m->arena, (size_t)r.link_count, sizeof *r.links);
    if (!r.links) { return CRD_E_MEMORY; }
    for (int l = 0; l < r.link_count; l++) {
        for (int i = 0; i < m->element_count; i++) {
            const crd_loop_element* e = &m->elements[i];
            if (e->current != m->sampled.links[l].element) { continue; }
            r.links[l] = &e->variation;
            r.adapting += e->adapts;
            loss = fmax(loss, e->variation.loss);
            bursts = bursts || e->variation.at_once > 1;
        }
    }
    CRD_TRY(find_worst(m, &r));
    if (bursts) {
        r.no_moment = "a channel loses several samples at once, which are not independent";
        *out = r;
        return CRD_OK;
    }
    CRD_TRY(moment_at(m, -1, &effort, &r));
    CRD_TRY(find_loss_limit(m, loss, &r));
    *out = r;
fail:
    return st;
}
