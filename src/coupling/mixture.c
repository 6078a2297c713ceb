#include <math.h>
#include <string.h>

#include "coupling/adaptive.h"

enum { HOLD, SHORT_WIENER, LONG_WIENER, FAST_LEARNER, SLOW_LEARNER }; // the experts
enum { REFRESH = 10, SHORT = 9, LONG = 25, SLOW = 60 };
static const double forget = 0.95; // of an expert's errors, per step
static const double forget_record = 0.99;
static const double sharpness = 2.0; // how much better an expert has to be to be heard alone

static crd_status wiener_table(crd_context* ctx, int k_max, int taps, crd_linear** out)
{
    crd_coupling_options o = crd_coupling_defaults();
    o.algorithm = CRD_ALGORITHM_LINEAR;
    o.k_max = k_max;
    o.design = crd_design_defaults(CRD_METHOD_WIENER);
    o.design.taps = taps;
    return crdi_table_make(ctx, &o, out);
}

crd_status crdi_mixture_init(crdi_mixture* x, crd_context* ctx, int k_max)
{
    crd_status st = CRD_OK;
    *x = (crdi_mixture){.k_max = k_max, .rows = k_max + 1};
    CRD_TRY(wiener_table(ctx, k_max, SHORT, &x->short_wiener));
    CRD_TRY(wiener_table(ctx, k_max, LONG, &x->long_wiener));
    CRD_TRY(crdi_learner_init(&x->fast, ctx, LONG, k_max, 300, 1e-3, x->long_wiener));
    CRD_TRY(crdi_learner_init(&x->slow, ctx, SLOW, k_max, 600, 1e-3, x->long_wiener));
    x->said = crdi_new_array(ctx, (size_t)x->rows * CRDI_EXPERTS, sizeof *x->said);
    x->said_for = crdi_new_array(ctx, (size_t)x->rows, sizeof *x->said_for);
    if (!x->said || !x->said_for) { return CRD_E_MEMORY; }
    crdi_mixture_reset(x);
fail:
    return st;
}

void crdi_mixture_clear(crdi_mixture* x, crd_context* ctx)
{
    crdi_table_free(ctx, x->short_wiener, x->k_max);
    crdi_table_free(ctx, x->long_wiener, x->k_max);
    crdi_learner_clear(&x->fast, ctx);
    crdi_learner_clear(&x->slow, ctx);
    crdi_free(ctx, x->said);
    crdi_free(ctx, x->said_for);
}

void crdi_mixture_reset(crdi_mixture* x)
{
    crdi_learner_reset(&x->fast);
    crdi_learner_reset(&x->slow);
    memset(x->loss, 0, sizeof x->loss);
    memset(x->record, 0, sizeof x->record);
    x->newest = 0;
    for (int i = 0; i < x->rows; i++) {
        x->said_for[i] = -1;
    }
}

int crdi_mixture_reach(const crdi_mixture* x)
{
    return crdi_learner_reach(&x->slow);
}

void crdi_mixture_push(crdi_mixture* x, const double* y, double lift)
{
    crdi_learner_push(&x->fast, y);
    crdi_learner_push(&x->slow, y);
    x->newest++;
    if (lift != 0) { // what was said before the jump was said of the level before it
        for (int i = 0; i < x->rows * CRDI_EXPERTS; i++) {
            x->said[i] += lift;
        }
    }
    const int row = (int)(x->newest % x->rows);
    if (x->said_for[row] != x->newest) { return; }
    for (int e = 0; e < CRDI_EXPERTS; e++) {
        const double error = y[0] - x->said[row * CRDI_EXPERTS + e];
        x->loss[e] = forget * x->loss[e] + error * error;
        x->record[e] = forget_record * x->record[e] + error * error;
    }
}

static double worse_by(double loss, double best)
{
    return loss > best ? fmin((loss - best) / best, 1e3) : 0; // best = 0: infinitely
}

double crdi_mixture_predict(crdi_mixture* x, const double* y, int k)
{
    const double said[CRDI_EXPERTS] = {
        y[0],
        crdi_dot(SHORT, x->short_wiener[k].a, y),
        crdi_dot(LONG, x->long_wiener[k].a, y),
        crdi_dot(LONG, crdi_learner_weights(&x->fast, k, REFRESH), y),
        crdi_dot(SLOW, crdi_learner_weights(&x->slow, k, REFRESH), y),
    };
    double best = x->loss[0], best_record = x->record[0], sum = 0, weights = 0;
    for (int e = 1; e < CRDI_EXPERTS; e++) {
        best = fmin(best, x->loss[e]);
        best_record = fmin(best_record, x->record[e]);
    }
    for (int e = 0; e < CRDI_EXPERTS; e++) {
        double doubt = worse_by(x->loss[e], best);
        // The hold is right at every turn of a signal, which is luck: its long record counts, too.
        if (e == HOLD) { doubt += worse_by(x->record[e], best_record); }
        const double w = exp(-sharpness * doubt);
        sum += w * (said[e] - y[0]);
        weights += w;
    }
    const int64_t target = x->newest + k;
    const int row = (int)(target % x->rows);
    memcpy(&x->said[row * CRDI_EXPERTS], said, sizeof said);
    x->said_for[row] = target;
    return weights > 0 ? y[0] + sum / weights : y[0];
}
