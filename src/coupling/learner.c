#include <math.h>
#include <string.h>

#include "coupling/adaptive.h"
#include "coupling/algorithm.h"
#include "shared/base.h"

enum {
    SETTLED = 10,
    POWER_WINDOW = 100,
    USUAL_WINDOW = 2000, // samples
    YOUNG = 400,         // samples
    BLOCK = 4,           // see cholesky.c
};
// Differences above this multiple of their usual size are cut: a fast shift of level, which nothing
// in the past could tell, would rule the sums for as long as they remember.
static const crd_real outlier = 2.5;
static const crd_real early = 30;
static const crd_real rest = 0.03; // of the usual power: after a pause, a signal may move again
static const crd_real largest = CRDI_OF(1e280, 1e35);

crd_status crdi_learner_init(crdi_learner* r, crd_context* ctx, int m, int few, int k_max,
                             crd_real window, crd_real ridge, const crd_linear* to)
{
    const size_t n = (size_t)m - 1, ks = (size_t)k_max + 1;
    *r = (crdi_learner){.m = m,
                        .few = few,
                        .k_max = k_max,
                        .mu = 1 - 1 / window,
                        .ridge = ridge,
                        .to = to,
                        .rows = k_max + m,
                        .lags = (k_max + m + BLOCK - 1) / BLOCK * BLOCK};
    r->R = crdi_new_array(ctx, (size_t)r->rows * (size_t)r->lags, sizeof *r->R);
    r->a = crdi_new_array(ctx, ks * (size_t)m, sizeof *r->a);
    r->a_few = crdi_new_array(ctx, ks * (size_t)few + 1, sizeof *r->a_few);
    r->solved = crdi_new_array(ctx, ks, sizeof *r->solved);
    r->matrix = crdi_new_array(ctx, n * n, sizeof *r->matrix);
    r->c = crdi_new_array(ctx, 2 * n, sizeof *r->c);
    r->d = crdi_new_array(ctx, (size_t)r->lags, sizeof *r->d);
    r->tame = crdi_new_array(ctx, (size_t)m, sizeof *r->tame);
    if (!r->d || !r->tame || !r->R || !r->a || !r->a_few || !r->solved || !r->matrix || !r->c) {
        return CRD_E_MEMORY;
    }
    crdi_learner_reset(r);
    return CRD_OK;
}

void crdi_learner_clear(crdi_learner* r, crd_context* ctx)
{
    crd_free(ctx, r->R);
    crd_free(ctx, r->a);
    crd_free(ctx, r->a_few);
    crd_free(ctx, r->solved);
    crd_free(ctx, r->matrix);
    crd_free(ctx, r->c);
    crd_free(ctx, r->d);
    crd_free(ctx, r->tame);
}

// The weight of difference i in sum_j a_j y_j = y_0 + sum_i c_i (y_i - y_{i+1}), if sum a = 1.
static void to_differences(const crd_linear* l, int n, crd_real* c)
{
    crd_real sum = 0;
    for (int i = l->m - 1; i > n; i--) {
        sum += l->a[i];
    }
    for (int i = n - 1; i >= 0; i--) {
        sum += i + 1 < l->m ? l->a[i + 1] : 0;
        c[i] = -sum;
    }
}

static void from_differences(const crd_real* c, int n, crd_real* a)
{
    a[0] = 1 + c[0];
    for (int i = 1; i < n; i++) {
        a[i] = c[i] - c[i - 1];
    }
    a[n] = -c[n - 1];
}

void crdi_learner_reset(crdi_learner* r)
{
    memset(r->R, 0, (size_t)r->rows * (size_t)r->lags * sizeof *r->R);
    memset(r->d, 0, (size_t)r->lags * sizeof *r->d);
    r->head = 0;
    r->count = r->solved_any = 0;
    r->panel = -1;
    r->power = r->usual = 0;
    r->limit = INFINITY;
    for (int k = 0; k <= r->k_max; k++) {
        to_differences(&r->to[k], r->m - 1, r->c); // so that the sum is 1 even with fewer taps
        from_differences(r->c, r->m - 1, &r->a[k * r->m]);
        if (r->few > 1) { from_differences(r->c, r->few - 1, &r->a_few[k * r->few]); }
        r->solved[k] = 0;
    }
}

static const crd_real* learner_row_of(const crdi_learner* r, int age)
{
    const int row = r->head + age;
    return &r->R[(row < r->rows ? row : row - r->rows) * r->lags];
}

static void next_row(int lags, crd_real mu, const crd_real* restrict before,
                     const crd_real* restrict d, crd_real* restrict now)
{
    const crd_real newest = d[0];
    for (int l = 0; l < lags; l += BLOCK) {
        for (int c = l; c < l + BLOCK; c++) {
            now[c] = mu * before[c] + newest * d[c];
        }
    }
}

void crdi_learner_push(crdi_learner* r, const crd_real* y)
{
    const crd_real d = y[0] - y[1], count = (crd_real)r->count;
    if (!(d * d < largest)) {
        crdi_learner_reset(r);
        return;
    }
    const crd_real power = r->power > rest * r->usual ? r->power : rest * r->usual;
    if (r->count >= SETTLED) { r->limit = outlier * sqrt(power); }
    memmove(&r->d[1], &r->d[0], (size_t)(r->lags - 1) * sizeof *r->d);
    r->d[0] = crdi_clamp(d, -r->limit, r->limit);
    r->power += (r->d[0] * r->d[0] - r->power) / (count < POWER_WINDOW ? count + 1 : POWER_WINDOW);
    r->usual += (d * d - r->usual) / (count < USUAL_WINDOW ? count + 1 : USUAL_WINDOW);
    const crd_real* before = learner_row_of(r, 0);
    r->head = r->head > 0 ? r->head - 1 : r->rows - 1;
    next_row(r->lags, r->mu, before, r->d, &r->R[r->head * r->lags]);
    r->count++;
}

// The normal equations for latency k. False: nothing has moved yet.
static bool refresh_begin(crdi_learner* r, int k)
{
    const int n = r->m - 1;
    crd_real trace = 0;
    for (int i = 0; i < n; i++) {
        const crd_real* row = learner_row_of(r, k + i);
        trace += row[0];
        memcpy(&r->matrix[i * n + i], row, (size_t)(n - i) * sizeof *row);
    }
    // Few samples say little: in the beginning the pull is strong.
    const crd_real count = (crd_real)r->count;
    const crd_real pull = (r->ridge + early * r->m / (count * count)) * trace / n;
    if (!(pull > CRDI_OF(1e-280, 1e-35))) { return false; }
    to_differences(&r->to[k], n, r->c);
    for (int i = 0; i < n; i++) {
        r->matrix[i * n + i] += pull;
        r->c[i] *= pull;
    }
    for (int l = 0; l < k; l++) {
        const crd_real* row = learner_row_of(r, l) + k - l;
        for (int i = 0; i < n; i++) {
            r->c[i] += row[i];
        }
    }
    return true;
}

// Once the matrix is factorised.
static void refresh_end(crdi_learner* r, int k)
{
    const int n = r->m - 1, few = r->few - 1;
    crdi_cholesky_forward(n, r->matrix, r->c);
    if (few > 0) {
        crd_real* c = r->c + n;
        memcpy(c, r->c, (size_t)few * sizeof *c);
        crdi_cholesky_back(few, n, r->matrix, c);
        from_differences(c, few, &r->a_few[k * r->few]);
    }
    crdi_cholesky_back(n, n, r->matrix, r->c);
    from_differences(r->c, n, &r->a[k * r->m]);
}

// A panel of the matrix at a time, beside what else a step has to do; a half of the work where a
// few samples make a difference: in the beginning, and if other latencies wait for their turn.
static void refresh_a_part(crdi_learner* r, int k)
{
    const bool quick = r->spread == CRDI_IN_HALVES || r->count < YOUNG || k != r->panel_of;
    const int n = r->m - 1, half = n / 5; // (1 - 1/5)^3 = 0.51
    if (r->panel < 0) {
        const int refresh = quick ? CRDI_REFRESH : CRDI_REFRESH_SPREAD;
        if (r->count < r->solved[k] + refresh || !refresh_begin(r, k)) { return; }
        r->panel = 0;
        r->panel_of = k;
        r->solved[k] = r->count;
    }
    const int end = !quick ? r->panel + 1 : r->panel < half ? half : n;
    for (; r->panel < end; r->panel += CRDI_CHOLESKY_PANEL) {
        if (crdi_cholesky_panel(n, r->matrix, r->panel)) { continue; }
        r->panel = -1;
        return;
    }
    if (r->panel < n) { return; }
    refresh_end(r, r->panel_of);
    r->panel = -1;
}

// If the latency varies, its filters take turns, so that a step does not become dear.
const crd_real* crdi_learner_weights(crdi_learner* r, int k)
{
    const bool due = r->count >= r->solved[k] + CRDI_REFRESH;
    if (r->spread != CRDI_AT_ONCE) {
        refresh_a_part(r, k);
    } else if (due && (r->solved[k] == 0 || r->count >= r->solved_any + CRDI_REFRESH / 5)) {
        if (refresh_begin(r, k) && crdi_cholesky(r->m - 1, r->matrix)) { refresh_end(r, k); }
        r->solved[k] = r->solved_any = r->count;
    }
    return &r->a[k * r->m];
}

// What lies behind a fast shift of level would be taken for a swing that comes back. So outliers
// among the older differences are cut as they are for learning, and those far out at any age.
const crd_real* crdi_learner_tame(crdi_learner* r, const crd_real* y)
{
    const crd_real limit = r->limit, far_out = 6 * limit;
    crd_real lift = 0;
    r->tame[0] = y[0];
    for (int i = 0; i + 1 < r->m; i++) {
        const crd_real d = y[i] - y[i + 1], size = fabs(d);
        if (size > limit) {
            const crd_real cut = size > far_out ? 1 : crdi_clamp((i - 2) / 6.0, 0, 1);
            lift += cut * (d - copysign(limit, d));
        }
        r->tame[i + 1] = y[i + 1] + lift;
    }
    return r->tame;
}

// ---- as an algorithm ---------------------------------------------------------------------------

typedef struct ridge {
    crdi_learner learner;
    crd_linear* towards; // (k_max + 1) the design
} ridge;

static crd_status ridge_init(void* self, crd_context* ctx, const crd_coupling_options* o)
{
    ridge* r = self;
    r->learner.k_max = o->k_max;
    const crd_status st = crdi_table_make(ctx, o, &r->towards);
    return st < 0 ? st
                  : crdi_learner_init(&r->learner, ctx, o->learning_taps, 0, o->k_max,
                                      o->learning_window, o->learning_ridge, r->towards);
}

static void ridge_clear(void* self, crd_context* ctx)
{
    ridge* r = self;
    crdi_table_free(ctx, r->towards, r->learner.k_max);
    crdi_learner_clear(&r->learner, ctx);
}

static void ridge_forget(void* self)
{
    crdi_learner_reset(&((ridge*)self)->learner);
}

static void ridge_push(void* self, const crd_real* y, crd_real lift)
{
    (void)lift;
    crdi_learner_push(&((ridge*)self)->learner, y);
}

static crd_real ridge_predict(void* self, const crd_real* y, int k)
{
    crdi_learner* r = &((ridge*)self)->learner;
    return crdi_dot(r->m, crdi_learner_weights(r, k), crdi_learner_tame(r, y));
}

static int ridge_count_taps(const void* self)
{
    return ((const ridge*)self)->learner.m;
}

static crd_status read_towards(crdi_element_reader* r, const crdi_json* n)
{
    crd_element towards;
    const crd_status st = crdi_element_read_nested(r, n, &towards);
    if (st < 0) { return st; }
    if (towards.options.algorithm != CRD_ALGORITHM_LINEAR) {
        return crdi_element_fail(
            r, n, CRD_E_FORMAT,
            "given weights do not serve every latency, expected a linear algorithm by "
            "its name");
    }
    r->e->options.design = towards.options.design;
    r->e->bands_given = towards.bands_given;
    return CRD_OK;
}

static void write_towards(crdi_element_writer* w, const crd_element* e)
{
    crdi_element_put_key(w, "towards");
    crdi_text_put(w->out, "{", 1);
    crdi_element_put_algorithm(&(crdi_element_writer){w->out, false},
                               crdi_design_at((int)e->options.design.method), e);
    crdi_text_put(w->out, "}", 1);
}

static const crdi_element_option keys[] = {
    CRDI_ELEMENT_LEARNING,
    {"pull", CRDI_ELEMENT_NUMBER, CRDI_ELEMENT_FIELD(learning_ridge), .range = CRDI_POSITIVE},
    {"towards", .read = read_towards, .write = write_towards},
    CRDI_ELEMENT_GAIN_LIMIT,
    {0},
};

const crdi_algorithm crdi_algorithm_ridge = {.name = "ridge",
                                             CRDI_DESCRIBED(.keys = keys),
                                             .learns = true,
                                             .has_design = true,
                                             .check_options = crdi_coupling_check_learning,
                                             .size = sizeof(ridge),
                                             .init = ridge_init,
                                             .clear = ridge_clear,
                                             .forget = ridge_forget,
                                             .push = ridge_push,
                                             .predict = ridge_predict,
                                             .reach = ridge_count_taps,
                                             .memory = ridge_count_taps};
