#include "reproduce/stop.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

enum { WATCHED = 14 }; // macro steps after an impact

crdi_stop_run_options crdi_stop_run_defaults(void)
{
    return (crdi_stop_run_options){.oscillator = crdi_oscillator_defaults(true),
                                   .until = 500,
                                   .k = 3,
                                   .train_at = 5,
                                   .swap_at = 8,
                                   .smooth_from = 8,
                                   .smooth_to = 50,
                                   .late_from = 450};
}

// The sums behind a result.
typedef struct watch {
    const crdi_stop_run_options* opt;
    crdi_stop_result* out;
    int taps;         // steps after a jump that do not count as smooth, with k
    int64_t last_hit; // macro step after the last impact
    double squares;
    int64_t smooth;
} watch;

static void see_jump(watch* w, const crdi_row* r)
{
    crdi_stop_result* out = w->out;
    if (r->hit) {
        w->last_hit = r->n;
        if (out->jump_count < CRDI_STOP_IMPACTS) {
            out->jumps[out->jump_count] = (crdi_jump){r->impact, -HUGE_VAL, HUGE_VAL};
        }
        out->jump_count++;
        if (r->t > w->opt->late_from) { out->late_impacts++; }
    }
    const int64_t since = r->n - w->last_hit;
    if (out->jump_count == 0 || out->jump_count > CRDI_STOP_IMPACTS || since >= WATCHED) { return; }
    crdi_jump* j = &out->jumps[out->jump_count - 1];
    const double part = (r->v1_hat - j->impact.before) / (j->impact.after - j->impact.before);
    j->over = fmax(j->over, part);
    if (since >= w->opt->k || w->opt->whole) { j->under = fmin(j->under, part); }
}

static void see(watch* w, const crdi_row* r)
{
    const crdi_stop_run_options* opt = w->opt;
    crdi_stop_result* out = w->out;
    see_jump(w, r);
    const bool apart = w->last_hit < 0 || r->n - w->last_hit >= opt->k + w->taps;
    if (apart && r->t > opt->smooth_from && r->t <= opt->smooth_to) {
        const double error = r->v1_hat - r->v1;
        w->squares += error * error;
        w->smooth++;
        out->smooth_worst = fmax(out->smooth_worst, fabs(error));
    }
    if (r->t >= opt->late_from) {
        out->late_max = fmax(out->late_max, r->x1);
        out->late_min = fmin(out->late_min, r->x1);
    }
    out->energy = r->energy;
    if (opt->see) { opt->see(opt->user, r); }
}

static crd_status check_stop_options(crd_context* ctx, const crdi_stop_run_options* o)
{
    const double steps = o->until / o->oscillator.step;
    if (!(steps >= 1 && steps <= 1e9)) {
        return crdi_fail(ctx, CRD_E_RANGE, "stop example: %g s with steps of %g s", o->until,
                         o->oscillator.step);
    }
    if (!o->whole && !o->linear) {
        return crdi_fail(ctx, CRD_E_RANGE, "stop example: the coupling has no weights");
    }
    if (o->k < 0 || o->k > CRD_LATENCY_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "stop example: k = %d, expected 0 .. %d", o->k,
                         CRD_LATENCY_MAX);
    }
    if (o->train && (o->whole || !o->network ||
                     !(o->train_at > 0 && o->train_at <= o->swap_at && o->swap_at <= o->until))) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "stop example: training needs a network and times in the order 0 < %g <= "
                         "%g <= %g",
                         o->train_at, o->swap_at, o->until);
    }
    return CRD_OK;
}

static crd_status run_whole(const crdi_stop_run_options* opt, int64_t steps, watch* w)
{
    crdi_whole s;
    const crd_status st = crdi_whole_init(&s, &opt->oscillator);
    if (st < 0) { return st; }
    see(w, &s.row);
    for (int64_t n = 0; n < steps; n++) {
        crdi_whole_step(&s);
        see(w, &s.row);
    }
    return CRD_OK;
}

static crd_status run_cut(crd_context* ctx, const crdi_stop_run_options* opt, int64_t steps,
                          watch* w)
{
    crd_status st = CRD_OK;
    crdi_cut s;
    crd_linear held = *opt->linear;
    if (!opt->own) { held.A = NULL; }
    const crdi_continuation by = {.linear = &held};
    const crdi_continuation v1 = opt->network ? (crdi_continuation){.network = opt->network} : by;
    const double h = opt->oscillator.step;
    const int64_t train_at = opt->train ? llround(opt->train_at / h) : -1;
    const int64_t swap_at = opt->train ? llround(opt->swap_at / h) : -1;
    crd_network trained = {0};
    double* samples = NULL;
    if (opt->train) {
        samples = crdi_new_array(ctx, (size_t)train_at + 1, sizeof *samples);
        if (!samples) { return CRD_E_MEMORY; }
    }
    crdi_cut_init(&s, &opt->oscillator, opt->k, opt->sampling, by, v1, by);
    for (int64_t n = 0;; n++) {
        see(w, &s.row);
        if (n <= train_at) { samples[n] = s.row.v1; }
        if (n == train_at) {
            crd_training t = *opt->train;
            t.k = opt->k;
            // what has been sampled now arrives k steps later: it is not there yet
            CRD_TRY(crd_learn_train(ctx, &t, samples, n + 1 - opt->k, opt->network, &trained,
                                    &w->out->report, NULL));
        }
        if (n == swap_at) { s.v1 = (crdi_continuation){.network = &trained}; }
        if (n == steps) { break; }
        crdi_cut_step(&s);
    }
fail:
    crd_network_clear(ctx, &trained);
    crd_free(ctx, samples);
    return st;
}

crd_status crdi_stop_run(crd_context* ctx, const crdi_stop_run_options* opt, crdi_stop_result* out)
{
    crd_status st = check_stop_options(ctx, opt);
    if (st < 0) { return st; }
    crdi_stop_result result = {.late_max = -HUGE_VAL, .late_min = HUGE_VAL};
    watch w = {.opt = opt, .out = &result, .last_hit = -(1 << 20)};
    w.taps = opt->network ? opt->network->m : opt->linear ? opt->linear->m : 1;
    const int64_t steps = llround(opt->until / opt->oscillator.step);
    st = opt->whole ? run_whole(opt, steps, &w) : run_cut(ctx, opt, steps, &w);
    if (st < 0) { return st; }
    result.smooth_rms = w.smooth > 0 ? sqrt(w.squares / (double)w.smooth) : 0;
    *out = result;
    return CRD_OK;
}
