#include <math.h>
#include <string.h>

#include "coupling/adaptive.h"
#include "coupling/algorithm.h"
#include "shared/base.h"

enum { HOLD, SHORT_WIENER, LONG_WIENER, SHORT_LEARNER, LONG_LEARNER, EXPERTS };
enum { HELD, EXPECTED, RESULT, ESTIMATES }; // the hold, the experts together, the result
enum { REVIEW = 5, FIRST_REVIEW = 7 };      // samples
// Taps of the Wiener filters and of the learners, and how the work of the latter is spread.
typedef struct sizes {
    int short_wiener, few, many;
    crdi_spread spread;
} sizes;
static const sizes full = {9, 25, 60, CRDI_AT_ONCE}, compact = {5, 9, 12, CRDI_IN_PANELS};
static const crd_real largest = CRDI_OF(1e280, 1e35);
static const crd_real window = 400, ridge = 1e-3; // of what learns
static const crd_real forget = 0.95;              // of an expert's errors, per step
static const crd_real forget_record = 0.99;
static const crd_real forget_products = 0.997;
static const crd_real sharpness = 2; // how much better an expert has to be to count alone
static const crd_real room = 2;      // nobody may say more than this multiple of the largest swing,
static const crd_real forget_swing = 0.99; // whose memory is this long
static const crd_real credit = 10;         // in usual squared errors of the hold

// Experts whose predictions are weighted by how well they did lately, and a judge who compares
// what they say together with the hold.
typedef struct mixture {
    int k_max, rows;
    const sizes* taps;
    crd_linear *short_wiener, *long_wiener; // (k_max + 1)
    crdi_learner learner;
    crd_real* swing;          // (k_max + 1) largest recent change over so many steps
    crd_real* said;           // (rows x EXPERTS) predictions by the sample they were for
    crd_real* together;       // (rows x ESTIMATES)
    int64_t* said_for;        // (rows) that sample
    crd_real loss[EXPERTS];   // sum of squared errors with forgetting
    crd_real record[EXPERTS]; // the same over a longer time
    crd_real products[6];     // sums of products of signal, hold and experts, for the judge
    crd_real share;           // of the experts in the result, the rest is the hold's
    int64_t newest, judged;   // count of samples; of those that were predicted
    crdi_account account;     // against the hold: outliers on a link with losses fool every expert
} mixture;

static crd_status wiener_table(crd_context* ctx, int k_max, int taps, crd_linear** out)
{
    crd_design d = crd_design_defaults(CRD_METHOD_WIENER);
    d.taps = taps;
    crd_linear* table = crdi_new_array(ctx, (size_t)k_max + 1, sizeof *table);
    crd_status st = table ? CRD_OK : CRD_E_MEMORY;
    for (int k = 0; k <= k_max && st == CRD_OK; k++) {
        st = crd_linear_make(ctx, &d, k, &table[k]);
    }
    *out = table; // also half of it: clear comes
    return st;
}

static void mixture_forget_all(void* self);

static crd_status mixture_init(void* self, crd_context* ctx, const crd_coupling_options* o)
{
    mixture* x = self;
    const int k_max = o->k_max;
    crd_status st = CRD_OK;
    const size_t rows = (size_t)k_max + 1;
    const sizes* taps = o->compact ? &compact : &full;
    *x = (mixture){.k_max = k_max, .rows = k_max + 1, .taps = taps};
    CRD_TRY(wiener_table(ctx, k_max, taps->short_wiener, &x->short_wiener));
    CRD_TRY(wiener_table(ctx, k_max, taps->few, &x->long_wiener));
    CRD_TRY(crdi_learner_init(&x->learner, ctx, taps->many, taps->few, k_max, window, ridge,
                              x->long_wiener));
    x->learner.spread = o->algorithm == CRD_ALGORITHM_COMMANDS ? CRDI_IN_PANELS
                        : o->commands > 0 && !o->compact       ? CRDI_IN_HALVES
                                                               : taps->spread;
    x->swing = crdi_new_array(ctx, rows, sizeof *x->swing);
    x->said = crdi_new_array(ctx, rows * EXPERTS, sizeof *x->said);
    x->together = crdi_new_array(ctx, rows * ESTIMATES, sizeof *x->together);
    x->said_for = crdi_new_array(ctx, rows, sizeof *x->said_for);
    if (!x->swing || !x->said || !x->together || !x->said_for) { return CRD_E_MEMORY; }
    mixture_forget_all(x);
fail:
    return st;
}

static void mixture_clear(void* self, crd_context* ctx)
{
    mixture* x = self;
    crdi_table_free(ctx, x->short_wiener, x->k_max);
    crdi_table_free(ctx, x->long_wiener, x->k_max);
    crdi_learner_clear(&x->learner, ctx);
    crd_free(ctx, x->swing);
    crd_free(ctx, x->said);
    crd_free(ctx, x->together);
    crd_free(ctx, x->said_for);
}

static void mixture_forget_all(void* self)
{
    mixture* x = self;
    crdi_learner_reset(&x->learner);
    memset(x->loss, 0, sizeof x->loss);
    memset(x->record, 0, sizeof x->record);
    memset(x->products, 0, sizeof x->products);
    x->share = 0; // the experts have to show what they can
    x->newest = x->judged = 0;
    x->account = (crdi_account){0};
    for (int i = 0; i < x->rows; i++) {
        x->said_for[i] = -1;
        x->swing[i] = 0;
    }
}

static int mixture_reach(const void* self)
{
    const mixture* x = self;
    return x->rows > x->taps->many ? x->rows : x->taps->many;
}

// ---- the judge ---------------------------------------------------------------------------------

enum { YY, HH, EE, YH, YE, HE }; // signal, hold, experts

// Square of the combined error of Sprague and Geers that the mixture would have had with this share
// of the experts. Least squares alone is a bad advisor: where there is little to predict it says
// little, and that is a loss of amplitude.
static crd_real combined_error(const crd_real* s, crd_real share)
{
    const crd_real pi = 3.14159265358979323846, hold = 1 - share;
    const crd_real ee = hold * hold * s[HH] + 2 * hold * share * s[HE] + share * share * s[EE];
    const crd_real ye = hold * s[YH] + share * s[YE];
    if (!(ee > 0)) { return HUGE_VAL; }
    const crd_real M = sqrt(s[YY] / ee) - 1;
    const crd_real P = acos(crdi_clamp(ye / sqrt(s[YY] * ee), -1, 1)) / pi;
    return M * M + P * P;
}

static void review(mixture* x)
{
    enum { PARTS = 8 };
    const crd_real bonus = 0.04; // for the experts: chance shall not decide
    const crd_real follow = 0.67;
    crd_real best = HUGE_VAL, share = 0;
    for (int i = 0; i <= PARTS; i++) {
        const crd_real s = (crd_real)i / PARTS;
        const crd_real error = combined_error(x->products, s) * (1 + bonus * (1 - s));
        if (error <= best) {
            best = error;
            share = s;
        }
    }
    x->share += follow * (share - x->share);
}

static void remember_products(mixture* x, crd_real y, crd_real hold, crd_real experts)
{
    const crd_real product[] = {y * y,    hold * hold, experts * experts,
                                y * hold, y * experts, hold * experts};
    for (int i = 0; i < 6; i++) {
        x->products[i] = forget_products * x->products[i] + product[i];
    }
}

// ---- the account -------------------------------------------------------------------------------

static const crd_real slack = 0.01, clip = 9;
enum { USUAL = 100 }; // samples

void crdi_account_keep(crdi_account* x, crd_real safe, crd_real result)
{
    const crd_real e = safe * safe, n = x->count < USUAL ? (crd_real)x->count + 1 : USUAL;
    x->gained += (1 + slack) * e - result * result;
    x->usual += ((x->usual > 0 ? fmin(e, clip * x->usual) : e) - x->usual) / n;
    x->count++;
}

crd_real crdi_account_affords(const crdi_account* x, crd_real e, crd_real lent, int k)
{
    const crd_real stake = fmax(x->gained + lent * x->usual, 0) / k;
    return sqrt(e + stake) - sqrt(e);
}

// ---- the experts -------------------------------------------------------------------------------

static void mixture_push(void* self, const crd_real* y, crd_real lift)
{
    mixture* x = self;
    if (!(y[0] * y[0] < largest && lift * lift < largest)) { // squares would be no numbers
        mixture_forget_all(x);
        return;
    }
    crdi_learner_push(&x->learner, y);
    x->newest++;
    if (lift != 0) { // what was said before the jump was said of the level before it
        for (int i = 0; i < x->rows * EXPERTS; i++) {
            x->said[i] += lift;
        }
    }
    for (int k = 1; k <= x->k_max; k++) {
        const crd_real change = fabs(y[0] - y[k]), before = forget_swing * x->swing[k];
        x->swing[k] = change > before ? change : before;
    }
    const int row = (int)(x->newest % x->rows);
    if (x->said_for[row] != x->newest) { return; }
    for (int e = 0; e < EXPERTS; e++) {
        const crd_real error = y[0] - x->said[row * EXPERTS + e];
        x->loss[e] = forget * x->loss[e] + error * error;
        x->record[e] = forget_record * x->record[e] + error * error;
    }
    // The judge gets what was really said: where jumps are frequent, that they cannot be foreseen
    // is a property of the signal.
    const crd_real* estimate = &x->together[ESTIMATES * row];
    remember_products(x, y[0], estimate[HELD], estimate[EXPECTED]);
    crdi_account_keep(&x->account, y[0] - estimate[HELD], y[0] - estimate[RESULT]);
    if (++x->judged % REVIEW == 0 && x->judged > FIRST_REVIEW) { review(x); }
}

static crd_real worse_by(crd_real loss, crd_real best)
{
    return loss > best ? fmin((loss - best) / best, 1e3) : 0; // best = 0: infinitely
}

// Returns how far the experts together are from the hold.
static crd_real mixture_weigh(const mixture* x, const crd_real* said)
{
    crd_real best = x->loss[0], best_record = x->record[0], sum = 0, weights = 0;
    for (int e = 1; e < EXPERTS; e++) {
        best = x->loss[e] < best ? x->loss[e] : best;
        best_record = x->record[e] < best_record ? x->record[e] : best_record;
    }
    for (int e = 0; e < EXPERTS; e++) {
        crd_real doubt = worse_by(x->loss[e], best);
        // The hold is right at every turn of a signal, which is luck: its long record counts, too.
        if (e == HOLD) { doubt += worse_by(x->record[e], best_record); }
        const crd_real w = exp(-sharpness * doubt);
        sum += w * (said[e] - said[HOLD]);
        weights += w;
    }
    return weights > 0 ? sum / weights : 0;
}

static crd_real mixture_predict(void* self, const crd_real* y, int k)
{
    mixture* x = self;
    if (k == 0) { return y[0]; }
    const sizes* taps = x->taps;
    const crd_real* v = crdi_learner_tame(&x->learner, y);
    const crd_real* learned = crdi_learner_weights(&x->learner, k);
    crd_real said[EXPERTS] = {
        y[0],
        crdi_dot(taps->short_wiener, x->short_wiener[k].a, v),
        crdi_dot(taps->few, x->long_wiener[k].a, v),
        crdi_dot(taps->few, &x->learner.a_few[k * taps->few], v),
        crdi_dot(taps->many, learned, v),
    };
    const crd_real far_out = room * x->swing[k];
    for (int e = 1; e < EXPERTS; e++) {
        said[e] = crdi_clamp(said[e], y[0] - far_out, y[0] + far_out);
    }
    const crd_real change = mixture_weigh(x, said);
    const int64_t target = x->newest + k;
    const int row = (int)(target % x->rows);
    memcpy(&x->said[row * EXPERTS], said, sizeof said);
    crd_real* estimate = &x->together[ESTIMATES * row];
    const crd_real most = crdi_account_affords(&x->account, x->account.usual, credit, k);
    estimate[HELD] = y[0];
    estimate[EXPECTED] = y[0] + change;
    estimate[RESULT] = y[0] + crdi_clamp(x->share * change, -most, most);
    x->said_for[row] = target;
    return estimate[RESULT];
}

static int mixture_count_taps(const void* self)
{
    return ((const mixture*)self)->learner.m;
}

const crdi_algorithm crdi_algorithm_auto = {
    .name = "auto",
    CRDI_DESCRIBED(.keys = crdi_commands_keys, .check_keys = crdi_commands_check_keys),
    .learns = true,
    .size = sizeof(mixture),
    .init = mixture_init,
    .clear = mixture_clear,
    .forget = mixture_forget_all,
    .push = mixture_push,
    .predict = mixture_predict,
    .reach = mixture_reach,
    .memory = mixture_count_taps};
