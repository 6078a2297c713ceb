// Prediction that knows the commands: a Smith predictor (Rautenberg 2023, 3.4) whose model is
// learned on a basis of fixed poles (basis.h). With psi[n] the features, i the newest sample, k its
// age and r what the model leaves of the signal:
//     y^[i+k] = y[i] + w.(psi[i+k] - psi[i]) + (r^[i+k] - r[i])
// and as much of it as has proved better than what the signal's own past says.
#include "coupling/commands.h"

#include <math.h>
#include <string.h>

#include "coupling/adaptive.h"
#include "coupling/basis.h"
#include "shared/base.h"

enum {
    SOLVE_EVERY = 10,  // updates from one solution to the next, over which its work is spread
    WIDE = 40,         // features that are all in use; of more, products are chosen
    WIDE_ROOM = 10,    // ... for which there is so much room at least
    CHOOSE_EVERY = 100 // updates
};
enum { ALONE, WITH, RESULT, SAID };          // by the signal alone, by the commands, what was used
static const crd_real command_memory = 3000; // updates that count
static const crd_real smallest_pivot =
    CRDI_OF(1e-14, 1e-6); // of a matrix with ones on its diagonal
static const crd_real largest_signal = CRDI_OF(1e100, 1e16); // squares of it are finite
static const crd_real smallest_energy =
    CRDI_OF(1e-250, 1e-30);                // of a feature: below, it does not move
static const crd_real outlier = 3;         // in mean errors
static const crd_real choose_above = 0.08; // correlation of a product with the error
static const crd_real rate_above = 0.5;    // of a command at its rate with it
static const crd_real prior_energy = 0.3;  // of a product that was chosen, in its own
static const crd_real credit = 1;          // in usual squared errors of the signal alone

typedef struct judge {
    crd_real num, den;                         // sums of (y - alone) (ca - alone), (ca - alone)^2
    crd_real fast_num, fast_den;               // over a shorter time
    crd_real fast_with, fast_alone, slow_with; // squared errors
    crd_real share;
    int64_t quiet;        // updates since the last alarm
    crdi_account account; // against the signal alone
    crd_real largest;     // squared error of that: those at jumps, which it is all about
} judge;

struct crdi_commands {
    crd_context* ctx;
    double step, own_step, start_time; // own: that of create
    bool mixture, smith;
    bool careful; // nobody has asked for commands: only what they have gained is put at stake
    int k;        // latency of the newest prediction
    crdi_basis basis;
    int64_t newest, last; // index of the newest sample, of the newest that has arrived
    int64_t origin;       // of the first
    double stamp;         // time of the newest
    bool started;
    crd_real* y;        // (rows) by index
    int64_t* arrived;   // (rows) index, if it has arrived
    crd_real* said;     // (rows x SAID) predictions by the index they are for
    int64_t* said_for;  // (rows)
    crd_real low, high; // of the samples so far, and of those that given weights are from
    crd_real donor_low, donor_high;

    int nx, linear;   // features in use; the first of them are of single commands
    int slot, room;   // then products, then one command at its rate: from `slot` to `room`, or none
    int* active;      // (room) which
    crd_real *w, *w0; // (room) weights; what they are pulled to
    size_t learned;   // numbers from w on that were learned, all but those of the donor
    crd_real *G, *b;  // (room x room) upper triangle, (room)
    crd_real *x, *matrix, *scale, *c;
    crd_real* spare;  // for weights without the rate, NULL: compact
    crd_real slope;   // largest change of the signal in a step so far; an outlier doubles it
    crd_real dd;      // sum of the squared changes that were learned from
    crd_real error;   // usual |error|
    crd_real largest; // change of the signal so far; an outlier doubles it
    int64_t updates, trained_at;                // the latter: from where on it may speak
    int phase;                                  // of the solution under way
    crd_real *chosen_xe, *chosen_xx, chosen_ee; // of each product with the error, of itself
    crd_real *full, *donor;                     // (count) weights to hand out; given at create
    int64_t changes[CRD_COMMANDS_MAX], alarms;

    crd_coupling* residual;
    crd_real r; // of sample `last`
    judge judge;
};

void crdi_commands_moving(const crdi_commands* q, crdi_note_moving* note, void* user)
{
    if (q->residual) { crdi_coupling_moving(q->residual, note, user); }
}

// ---- create ------------------------------------------------------------------------------------

crd_status crdi_commands_check(crd_context* ctx, const crd_coupling_options* o)
{
    crd_status st = CRD_OK;
    const bool smith = o->algorithm == CRD_ALGORITHM_SMITH;
    const bool takes =
        smith || o->algorithm == CRD_ALGORITHM_AUTO || o->algorithm == CRD_ALGORITHM_COMMANDS;
    const crd_command_weights* w = o->command_weights;
    const int n = o->commands;
    CRD_TRY(
        crdi_coupling_check_number(ctx, "commands", n, n >= 0 && n <= CRD_COMMANDS_MAX, "0 .. 8"));
    CRD_TRY(crdi_coupling_check_number(ctx, "commands", n, n == 0 || takes,
                                       "0 unless the algorithm is auto, commands or smith"));
    CRD_TRY(crdi_coupling_check_number(ctx, "commands", n, !smith || n == 1,
                                       "1 for smith: the output of the model"));
    if (!w || smith || n == 0) { return CRD_OK; }
    CRD_TRY(crdi_coupling_check_number(ctx, "version of the weights of commands", w->basis,
                                       w->basis == CRD_COMMAND_BASIS, "2"));
    if (w->commands != n || w->count != crd_command_weights_count(n)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "coupling: %d weights for %d commands, expected %d for the %d commands of "
                         "the element",
                         w->count, w->commands, crd_command_weights_count(n), n);
    }
    if (!(fabs(w->step - o->step) <= 1e-6 * o->step)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "coupling: weights of commands for a macro step of %g s, expected the "
                         "element's %g s",
                         w->step, o->step);
    }
    for (int i = 0; i < w->count; i++) {
        CRD_TRY(crdi_coupling_check_number(ctx, "weight of a command", w->w[i],
                                           fabs(w->w[i]) < largest_signal, "a finite number"));
    }
    if (!(w->low < w->high)) { return CRD_OK; }
    CRD_TRY(crdi_coupling_check_number(
        ctx, "range of the weights of commands", w->high - w->low,
        fabs(w->low) < largest_signal && fabs(w->high) < largest_signal, "finite numbers"));
fail:
    return st;
}

static crd_status commands_residual(crdi_commands* q, const crd_coupling_options* o)
{
    if (q->smith) { return CRD_OK; }
    crd_coupling_options inner = crd_coupling_defaults();
    inner.step = o->step;
    inner.algorithm = CRD_ALGORITHM_COMMANDS; // of which it has none
    inner.k_max = o->k_max;
    inner.late = o->late;
    inner.detection = o->detection;
    inner.reaction = o->reaction;
    inner.compact = o->compact;
    return crd_coupling_create(q->ctx, &inner, &q->residual);
}

static crd_status commands_allocate(crdi_commands* q, const crd_coupling_options* o)
{
    crd_context* ctx = q->ctx;
    const crd_status st = crdi_basis_init(&q->basis, ctx, o);
    if (st < 0) { return st; }
    const size_t rows = (size_t)q->basis.rows, count = (size_t)q->basis.count;
    q->linear = o->commands * q->basis.per;
    const int room = q->linear + WIDE_ROOM > WIDE ? q->linear + WIDE_ROOM : WIDE;
    const int most = room - (room - q->linear) % 2; // products have two features
    q->nx = q->slot = q->smith ? 1 : q->basis.count < most ? q->basis.count : most;
    q->room = q->slot + (q->smith ? 0 : 2);
    const size_t nx = (size_t)q->room, all = (size_t)q->basis.all;
    q->y = crdi_new_array(ctx, rows, sizeof *q->y);
    q->arrived = crdi_new_array(ctx, rows, sizeof *q->arrived);
    q->said = crdi_new_array(ctx, SAID * rows, sizeof *q->said);
    q->said_for = crdi_new_array(ctx, rows, sizeof *q->said_for);
    const size_t spare = o->compact ? 0 : nx * nx + 2 * nx;
    const size_t n = 6 * nx + 2 * nx * nx + spare + 2 * all + 2 * count;
    q->learned = n - count;
    q->active = crdi_new_array(ctx, nx, sizeof *q->active);
    q->w = crdi_new_array(ctx, n, sizeof *q->w);
    if (!q->y || !q->arrived || !q->said || !q->said_for || !q->active || !q->w) {
        return CRD_E_MEMORY;
    }
    q->w0 = q->w + nx;
    q->b = q->w0 + nx;
    q->x = q->b + nx;
    q->scale = q->x + nx;
    q->c = q->scale + nx;
    q->G = q->c + nx;
    q->matrix = q->G + nx * nx;
    q->spare = o->compact ? NULL : q->matrix + nx * nx;
    q->chosen_xe = q->matrix + nx * nx + spare;
    q->chosen_xx = q->chosen_xe + all;
    q->full = q->chosen_xx + all;
    if (o->command_weights && !q->smith) {
        q->donor = q->full + count;
        memcpy(q->donor, o->command_weights->w, count * sizeof *q->donor);
        q->donor_low = o->command_weights->low;
        q->donor_high = o->command_weights->high;
    }
    return commands_residual(q, o);
}

crd_status crdi_commands_create(crd_context* ctx, const crd_coupling_options* o,
                                crdi_commands** out)
{
    crdi_commands* q = crdi_new(ctx, sizeof *q);
    if (!q) { return CRD_E_MEMORY; }
    q->ctx = ctx;
    q->own_step = o->step;
    q->start_time = o->start_time;
    q->mixture = o->command_mixture;
    q->smith = o->algorithm == CRD_ALGORITHM_SMITH;
    q->careful = o->algorithm == CRD_ALGORITHM_AUTO && q->mixture && !o->command_weights;
    const crd_status st = commands_allocate(q, o);
    if (st < 0) {
        crdi_commands_destroy(q);
        return st;
    }
    crdi_commands_reset(q, o->step);
    *out = q;
    return CRD_OK;
}

void crdi_commands_destroy(crdi_commands* q)
{
    if (!q) { return; }
    crdi_basis_clear(&q->basis, q->ctx);
    crd_free(q->ctx, q->y);
    crd_free(q->ctx, q->arrived);
    crd_free(q->ctx, q->said);
    crd_free(q->ctx, q->said_for);
    crd_free(q->ctx, q->active);
    crd_free(q->ctx, q->w);
    crd_coupling_destroy(q->residual);
    crd_free(q->ctx, q);
}

// Products of given weights are in use from the beginning, the largest ones if there are too many.
static void commands_take_donor(crdi_commands* q)
{
    int used = q->linear;
    for (int j = q->linear; j < q->basis.count && q->slot < q->basis.count; j += 2) {
        if (used < q->slot && (q->donor[j] != 0 || q->donor[j + 1] != 0)) {
            q->active[used] = j;
            q->active[used + 1] = j + 1;
            used += 2;
        }
    }
    for (int i = 0; i < q->nx; i++) {
        if (q->active[i] >= 0) { q->w[i] = q->w0[i] = q->donor[q->active[i]]; }
    }
    q->judge.share = 1;
    q->trained_at = 0;
}

// What was learned; the donor's weights if there are any.
static void commands_unlearn(crdi_commands* q)
{
    memset(q->w, 0, q->learned * sizeof *q->w);
    q->nx = q->slot;
    for (int i = 0; i < q->nx; i++) { // of more than there is room for, no product at first
        q->active[i] = i < q->linear || q->slot == q->basis.count ? i : -1;
    }
    q->dd = q->error = q->largest = q->slope = q->chosen_ee = 0;
    q->updates = q->alarms = 0;
    q->phase = 0;
    q->trained_at = 2 * q->slot;
    q->judge = (judge){0};
    memset(q->changes, 0, sizeof q->changes);
    if (q->smith) {
        q->w[0] = q->judge.share = 1;
        q->trained_at = 0;
    }
    if (q->donor && q->step == q->own_step) { commands_take_donor(q); }
}

// Samples and what was said of them.
static void commands_forget_samples(crdi_commands* q)
{
    for (int64_t i = 0; i < q->basis.rows; i++) {
        q->arrived[i] = q->said_for[i] = INT64_MIN;
    }
    q->r = 0;
    if (!q->residual) { return; }
    crd_coupling_reset(q->residual);
    crd_coupling_set_step(q->residual, q->step);
}

void crdi_commands_reset(crdi_commands* q, double step)
{
    q->step = step;
    crdi_basis_reset(&q->basis, q->step);
    commands_forget_samples(q);
    commands_unlearn(q);
    q->started = false;
    q->newest = q->last = q->k = 0;
    q->stamp = q->start_time;
    const bool known = q->donor_low < q->donor_high;
    q->low = known ? q->donor_low : INFINITY;
    q->high = known ? q->donor_high : -INFINITY;
}

void crdi_commands_set_step(crdi_commands* q, double step)
{
    const crd_real y = q->y[q->last & (q->basis.rows - 1)];
    const double stamp = q->stamp;
    const bool started = q->started;
    double acting[CRD_COMMANDS_MAX];
    for (int a = 0; a < CRD_COMMANDS_MAX; a++) {
        acting[a] = q->basis.good[a];
    }
    const bool any = q->basis.any;
    crdi_commands_reset(q, step);
    if (started) { crdi_commands_start(q, y, stamp); }
    if (any) { crdi_basis_tell(&q->basis, acting, q->newest); }
}

// ---- commands ----------------------------------------------------------------------------------

// The first step at which it acts. Clocks that agree but for a twentieth of a step agree.
static int64_t commands_step_of(const crdi_commands* q, double time)
{
    const double steps = ceil((time - q->stamp) / q->step - 0.05);
    return q->newest + (int64_t)crdi_clamp(steps, -1e15, 1e15);
}

void crdi_commands_tell(crdi_commands* q, const double* u, double acts_at)
{
    if (!isfinite(acts_at)) {
        q->basis.calls++;
        q->basis.outside++;
        return;
    }
    crdi_basis_tell(&q->basis, u, commands_step_of(q, acts_at));
}

static crd_real commands_answer(crdi_commands* q, int64_t from, int64_t to)
{
    const crd_real* after = crdi_basis_at(&q->basis, to); // first: it may be ahead of the other
    const crd_real* before = crdi_basis_at(&q->basis, from);
    crd_real sum = 0;
    for (int i = 0; i < q->nx; i++) {
        if (q->active[i] >= 0) { sum += q->w[i] * (after[q->active[i]] - before[q->active[i]]); }
    }
    return sum;
}

// ---- learning ----------------------------------------------------------------------------------

// What stands for given weights, in the units of G: they may be wrong by as much as the largest one
// of the same command, with errors of the usual size. Something that no command causes, as the
// start of a run may be, then does not put features right that hardly moved.
static crd_real evidence_of_donor(const crdi_commands* q, int i)
{
    const bool product = i >= q->linear;
    const int per = product ? 2 : q->basis.per;
    const int first = product ? i - (i - q->linear) % 2 : i - i % per;
    crd_real most = 0;
    for (int j = first; j < first + per && j < q->nx; j++) {
        most = fmax(most, fabs(q->w0[j]));
    }
    return most > 0 ? q->error / most * (q->error / most) : 0;
}

// w = w0 + S (S G S + mu I)^-1 S (b - G w0), S = diag(G)^-1/2: with so little known at the
// beginning the ridge decides, and what the commands do not excite stays as it was given. Of the
// first n features: the matrix, S, and the right side.
static void solve_begin(const crdi_commands* q, int n, crd_real* matrix, crd_real* scale,
                        crd_real* c)
{
    const crd_real mu = 1e-5 + 250 / ((crd_real)q->updates * (crd_real)q->updates);
    for (int i = 0; i < n; i++) {
        const crd_real g = q->G[i * q->room + i];
        scale[i] = g > smallest_energy ? 1 / sqrt(g) : 0;
        c[i] = q->b[i];
    }
    for (int i = 0; i < n; i++) {
        crd_real* row = &matrix[i * n];
        const crd_real *G = &q->G[i * q->room], w0 = q->w0[i], s = scale[i];
        crd_real sum = G[i] * w0;
        row[i] = s > 0 ? 1 + mu : 1;
        if (q->donor && s > 0) { row[i] += fmin(1e12, evidence_of_donor(q, i) / G[i]); }
        for (int j = i + 1; j < n; j++) {
            row[j] = s * scale[j] * G[j];
            sum += G[j] * q->w0[j];
            c[j] -= G[j] * w0;
        }
        c[i] = (c[i] - sum) * s;
    }
}

// The factor is there: c becomes the weights. False: they are no numbers.
static bool solve_end(const crdi_commands* q, int n, const crd_real* matrix, const crd_real* scale,
                      crd_real* c)
{
    crdi_cholesky_solve(n, matrix, c);
    for (int i = 0; i < n; i++) {
        c[i] = q->w0[i] + scale[i] * c[i];
        if (!(fabs(c[i]) < CRDI_OF(1e280, 1e30))) { return false; }
    }
    return true;
}

// One of SOLVE_EVERY parts of a solution.
static void solve_a_part(crdi_commands* q)
{
    const int n = q->nx, panels = (n + CRDI_CHOLESKY_PANEL - 1) / CRDI_CHOLESKY_PANEL;
    const int parts = SOLVE_EVERY - 2, phase = q->phase;
    q->phase = (phase + 1) % SOLVE_EVERY;
    if (phase == 0) {
        solve_begin(q, n, q->matrix, q->scale, q->c);
        return;
    }
    if (phase == SOLVE_EVERY - 1) { // else the old ones stay
        if (solve_end(q, n, q->matrix, q->scale, q->c)) {
            memcpy(q->w, q->c, (size_t)n * sizeof *q->w);
        }
        return;
    }
    for (int i = panels * (phase - 1) / parts; i < panels * phase / parts; i++) {
        const int p = i * CRDI_CHOLESKY_PANEL;
        bool fine = crdi_cholesky_panel(n, q->matrix, p);
        for (int r = p; r < n && r < p + CRDI_CHOLESKY_PANEL; r++) {
            const crd_real pivot = q->matrix[r * n + r];
            fine = fine && pivot * pivot > smallest_pivot;
        }
        if (!fine) { // w stays; begin again with the next sample
            q->phase = 0;
            return;
        }
    }
}

// Forget only as much as comes in: by the part of what is known of each feature that is new.
static crd_real part_to_forget(const crdi_commands* q, crd_real weight)
{
    crd_real fresh = 0;
    for (int i = 0; i < q->nx; i++) {
        const crd_real xx = weight * q->x[i] * q->x[i], g = q->G[i * q->room + i];
        fresh += xx < g ? xx / g : xx > 0;
    }
    return fmin(1, command_memory / q->nx * fresh) / command_memory;
}

static void add_products(crdi_commands* q, crd_real weight, crd_real d, crd_real keep)
{
    const int n = q->nx;
    const crd_real* x = q->x;
    for (int i = 0; i < n; i++) {
        crd_real* restrict row = &q->G[i * q->room];
        const crd_real xi = weight * x[i];
        for (int j = i; j < n; j++) {
            row[j] = keep * row[j] + xi * x[j];
        }
        q->b[i] = keep * q->b[i] + xi * d;
    }
    q->dd = keep * q->dd + weight * d * d;
}

// Huber's weight of an error, by their usual size. Where the model is exact or all is at rest for
// long that goes to nothing, and the first thing that happens then is no outlier.
static crd_real weight_of_error(crdi_commands* q, crd_real e, crd_real d)
{
    const crd_real size = fabs(e), change = fabs(d);
    if (change > q->largest) {
        q->largest = q->largest > 0 ? fmin(change, 2 * q->largest) : change;
    }
    if (q->updates <= 2 * q->slot) {
        q->error += (size - q->error) / (crd_real)q->updates;
        return 1;
    }
    const crd_real most = outlier * fmax(q->error, 0.002 * q->largest);
    q->error += 0.005 * (fmin(size, most) - q->error);
    return size > most ? most / size : 1;
}

// ---- features that are chosen ------------------------------------------------------------------

// Of more commands than there is room for, products; and always one command at its rate, if that
// explains what the others do not: a machine that is asked for more than it can change in time.

// The first feature that may be chosen.
static int choose_from(const crdi_commands* q)
{
    return q->slot < q->basis.count ? q->linear : q->basis.count;
}

static void choose_watch(crdi_commands* q, const crd_real* now, const crd_real* before, crd_real e)
{
    const crd_real keep = 1 - 1.0 / 300;
    q->chosen_ee = keep * q->chosen_ee + e * e;
    for (int j = choose_from(q); j < q->basis.all; j += 2) {
        const crd_real x = now[j] - before[j];
        q->chosen_xe[j] = keep * q->chosen_xe[j] + x * e;
        q->chosen_xx[j] = keep * q->chosen_xx[j] + x * x;
        const crd_real slower = now[j + 1] - before[j + 1];
        q->chosen_xx[j + 1] = keep * q->chosen_xx[j + 1] + slower * slower;
    }
}

static bool is_active(const crdi_commands* q, int feature)
{
    for (int i = q->linear; i < q->nx; i++) {
        if (q->active[i] == feature) { return true; }
    }
    return false;
}

// The one from `from` on and before `to` that explains most of what is left, and so much, or -1.
static int best_candidate(const crdi_commands* q, int from, int to, crd_real above)
{
    crd_real best = above;
    int found = -1;
    for (int j = from; j < to; j += 2) {
        const crd_real norm = sqrt(q->chosen_xx[j]) * sqrt(q->chosen_ee);
        const crd_real corr = norm > 0 ? fabs(q->chosen_xe[j]) / norm : 0;
        if (corr > best && !is_active(q, j)) {
            best = corr;
            found = j;
        }
    }
    return found;
}

// A free place, or that of the product that says least.
static int worst_place(const crdi_commands* q)
{
    crd_real least = INFINITY;
    int place = q->linear;
    for (int i = q->linear; i + 1 < q->slot; i += 2) {
        crd_real says = 0;
        for (int j = i; j < i + 2; j++) {
            says += q->w[j] * q->w[j] * q->G[j * q->room + j];
        }
        if (q->active[i] < 0) { return i; }
        if (says < least) {
            least = says;
            place = i;
        }
    }
    return place;
}

// A zero row leaves G positive semidefinite; without energy on the diagonal the weights would
// explode.
static void choose_for(crdi_commands* q, int place, int feature)
{
    const int n = q->room;
    for (int i = place; i < place + 2; i++) {
        q->active[i] = feature + i - place;
        for (int j = 0; j < n; j++) {
            q->G[i <= j ? i * n + j : j * n + i] = 0;
        }
        q->G[i * n + i] = prior_energy * q->chosen_xx[feature + i - place];
        q->b[i] = q->w[i] = q->w0[i] = 0;
    }
    q->phase = 0;
}

static void choose(crdi_commands* q)
{
    const int count = q->basis.count;
    const int product = best_candidate(q, choose_from(q), count, choose_above);
    if (product >= 0) { choose_for(q, worst_place(q), product); }
    // What was given is believed for longer than what these few errors say.
    if (q->nx > q->slot || (q->donor && q->updates < 10 * CHOOSE_EVERY)) { return; }
    const int limited = best_candidate(q, count, q->basis.all, rate_above);
    if (limited < 0) { return; }
    choose_for(q, q->slot, limited);
    q->nx = q->room;
}

// ---- a sample ----------------------------------------------------------------------------------

static void commands_learn(crdi_commands* q, int64_t i)
{
    const int64_t mask = q->basis.rows - 1, before = i - (q->k > 0 ? q->k : 1);
    if (q->arrived[before & mask] != before || !q->basis.any) { return; }
    const crd_real d = q->y[i & mask] - q->y[before & mask];
    const crd_real *now = crdi_basis_at(&q->basis, i), *then = crdi_basis_at(&q->basis, before);
    if (!(fabs(d) < largest_signal)) { return; }
    crd_real e = d;
    bool rests = d == 0;
    for (int j = 0; j < q->nx; j++) {
        q->x[j] = q->active[j] < 0 ? 0 : now[q->active[j]] - then[q->active[j]];
        e -= q->w[j] * q->x[j];
        rests = rests && q->x[j] == 0;
    }
    if (rests) { return; } // which teaches nothing
    for (int a = 0; a < q->basis.commands; a++) {
        q->changes[a] += now[a * q->basis.per] != now[a * q->basis.per + 1];
    }
    if (!(fabs(e) < largest_signal)) { return; }
    if (q->smith) { // learns nothing: only how much of the changes the model accounts for
        const crd_real keep = 1 - 1 / command_memory;
        q->dd = keep * q->dd + d * d;
        q->b[0] = keep * q->b[0] + d * d - e * e;
        return;
    }
    q->updates++;
    q->judge.quiet++;
    const crd_real weight = weight_of_error(q, e, d);
    add_products(q, weight, d, 1 - part_to_forget(q, weight));
    if (q->slot < q->basis.count || q->nx == q->slot) {
        choose_watch(q, now, then, e);
        if (q->updates % CHOOSE_EVERY == 0) { choose(q); }
    }
    if (q->phase > 0 || q->updates >= SOLVE_EVERY) { solve_a_part(q); }
}

// s = sum (y - alone) (ca - alone) / sum (ca - alone)^2 is the share with the least squared error.
// Over a short time as well: what has become wrong is left at once.
static void commands_judge(crdi_commands* q, int64_t i)
{
    const int64_t place = i & (q->basis.rows - 1);
    if (q->said_for[place] != i) { return; }
    judge* j = &q->judge;
    const crd_real* said = &q->said[SAID * place];
    const crd_real alone = said[ALONE], a = said[WITH] - alone;
    const crd_real e = q->y[place] - alone;
    if (!(fabs(e) < largest_signal && fabs(a) < largest_signal)) { return; }
    const crd_real window = fmin(300, 50 + (crd_real)q->updates / 4), fast = 80, slow = 1000;
    const crd_real fresh = j->den > 0 ? crdi_clamp(a * a * window / j->den, 0.3, 1) : 1;
    const crd_real keep = 1 - fresh / window, keep_fast = 1 - 1 / fast;
    const crd_real with = (e - a) * (e - a);
    crdi_account_keep(&j->account, e, q->y[place] - said[RESULT]);
    j->largest = fmax(e * e, (1 - 1 / slow) * j->largest);
    j->num = keep * j->num + e * a;
    j->den = keep * j->den + a * a;
    j->fast_num = keep_fast * j->fast_num + e * a;
    j->fast_den = keep_fast * j->fast_den + a * a;
    j->fast_with = keep_fast * j->fast_with + with;
    j->fast_alone = keep_fast * j->fast_alone + e * e;
    const bool worse = j->fast_with > j->fast_alone;
    if (j->den > 0) { j->share = crdi_clamp(j->num / j->den, 0, 1); }
    if (worse && j->fast_den > 0) {
        j->share = fmin(j->share, crdi_clamp(j->fast_num / j->fast_den, 0, 1));
    }
    if (worse && j->fast_with / fast > 4 * j->slow_with && j->quiet >= 100) {
        j->quiet = 0;
        q->alarms++;
        for (int n = 0; n < q->room * q->room; n++) {
            q->G[n] *= 0.2;
        }
        for (int n = 0; n < q->nx; n++) {
            q->b[n] *= 0.2;
        }
        q->dd *= 0.2;
    }
    j->slow_with += (with - j->slow_with) / slow;
}

static void commands_widen(crdi_commands* q, crd_real y)
{
    q->low = fmin(q->low, y);
    q->high = fmax(q->high, y);
}

// The largest change in a step, as a part of the range: what commands at their rates go by.
static void commands_note_slope(crdi_commands* q, crd_real change, int64_t steps)
{
    const crd_real slope = fabs(change) / (crd_real)steps, range = q->high - q->low;
    if (slope > q->slope) { q->slope = q->slope > 0 ? fmin(slope, 2 * q->slope) : slope; }
    if (q->slope > 0 && range > 0 && q->basis.any) {
        crdi_basis_set_rate(&q->basis, q->slope / range, q->newest);
    }
}

static void commands_push_residual(crdi_commands* q, int64_t i, crd_real r)
{
    if (!q->residual) { return; }
    crd_coupling_push(q->residual, r, (double)i * q->step, i - q->origin);
}

void crdi_commands_start(crdi_commands* q, crd_real y, double stamp)
{
    commands_forget_samples(q);
    q->newest = q->last =
        q->newest + (int64_t)crdi_clamp(rint((stamp - q->stamp) / q->step), -1e15, 1e15);
    q->origin = q->newest;
    q->stamp = stamp;
    q->started = true;
    crdi_basis_move(&q->basis, q->newest);
    const int64_t place = q->newest & (q->basis.rows - 1);
    q->y[place] = y;
    q->arrived[place] = q->newest;
    commands_widen(q, y);
    commands_push_residual(q, q->newest, 0);
}

void crdi_commands_push(crdi_commands* q, crd_real y, double stamp, int64_t steps, bool real)
{
    q->newest += steps;
    q->stamp = stamp;
    crdi_basis_move(&q->basis, q->newest);
    if (!real) { return; }
    const int64_t mask = q->basis.rows - 1, i = q->newest;
    q->y[i & mask] = y;
    q->arrived[i & mask] = i;
    commands_widen(q, y);
    commands_judge(q, i);
    commands_learn(q, i);
    // In increments: it does not jump when the weights change.
    const bool near = i - q->last < q->basis.rows / 2;
    crd_real change = near ? y - q->y[q->last & mask] : 0;
    if (near && i > q->last) { commands_note_slope(q, change, i - q->last); }
    if (near && q->basis.any) { change -= commands_answer(q, q->last, i); }
    q->r = fabs(q->r + change) < CRDI_OF(1e200, 1e30) ? q->r + change : 0;
    q->last = i;
    commands_push_residual(q, i, q->r);
}

void crdi_commands_push_late(crdi_commands* q, crd_real y, int age)
{
    const int64_t mask = q->basis.rows - 1, i = q->newest - age;
    if (age >= q->basis.rows / 2 || i >= q->last) { return; }
    q->y[i & mask] = y;
    q->arrived[i & mask] = i;
    commands_widen(q, y);
    crd_real change = q->y[q->last & mask] - y;
    if (q->basis.any) { change -= commands_answer(q, i, q->last); }
    if (fabs(q->r - change) < CRDI_OF(1e200, 1e30)) { commands_push_residual(q, i, q->r - change); }
}

// ---- prediction --------------------------------------------------------------------------------

static crd_real predict_with(crdi_commands* q, int64_t to)
{
    const crd_real y = q->y[q->last & (q->basis.rows - 1)];
    crd_real with = y + commands_answer(q, q->last, to);
    if (q->smith) { return with; }
    with += crd_coupling_eval(q->residual, (double)to * q->step) - q->r;
    const crd_real beyond = 0.1 * (q->high - q->low);
    return crdi_clamp(with, q->low - beyond, q->high + beyond);
}

crd_real crdi_commands_predict(crdi_commands* q, crd_real alone, int k)
{
    q->k = k;
    if (k == 0 || !q->started || !q->basis.any) { return alone; }
    const int64_t to = q->newest + k, place = to & (q->basis.rows - 1);
    crd_real with = q->updates >= q->trained_at ? predict_with(q, to) : alone;
    if (!(fabs(with) < CRDI_OF(1e300, 1e36))) { with = alone; }
    if (q->smith) { return with; }
    crd_real result = with;
    if (q->mixture) { result = alone + q->judge.share * (with - alone); }
    if (q->careful) {
        const crd_real most = crdi_account_affords(&q->judge.account, q->judge.largest, credit, k);
        result = crdi_clamp(result, alone - most, alone + most);
    }
    memcpy(&q->said[SAID * place], (crd_real[SAID]){alone, with, result}, SAID * sizeof *q->said);
    q->said_for[place] = to;
    return result;
}

// ---- reports -----------------------------------------------------------------------------------

// Which commands a feature is made of.
static void feature_owners(const crdi_basis* b, int feature, int owner[2])
{
    int j = b->commands * b->per;
    if (feature < j) {
        owner[0] = owner[1] = feature / b->per;
        return;
    }
    if (feature >= b->count) {
        owner[0] = owner[1] = (feature - b->count) / 2;
        return;
    }
    for (int a = 0; a < b->commands; a++) {
        for (int c = a; c < b->commands; c++, j += 2) {
            if (feature != j && feature != j + 1) { continue; }
            owner[0] = a;
            owner[1] = c;
            return;
        }
    }
}

// The energy w'b that the model accounts for, by features.
static void commands_parts(const crdi_commands* q, double* part)
{
    for (int i = 0; i < q->nx && q->dd > 0; i++) {
        if (q->active[i] < 0) { continue; }
        int owner[2] = {0, 0};
        feature_owners(&q->basis, q->active[i], owner);
        // What a product with a constant says, the other has said.
        const int a = owner[q->changes[owner[0]] > 0 ? 0 : 1],
                  b = owner[q->changes[owner[1]] > 0 ? 1 : 0];
        const crd_real half = 0.5 * q->w[i] * q->b[i] / q->dd;
        part[a] += half;
        part[b] += half;
    }
    crd_real all = 0, added = 0; // commands that undo what another says have none of it
    for (int a = 0; a < q->basis.commands; a++) {
        all += part[a];
        part[a] = part[a] > 0 ? part[a] : 0;
        added += part[a];
    }
    for (int a = 0; a < q->basis.commands; a++) {
        part[a] = added > 0 ? part[a] / added * crdi_clamp(all, 0, 1) : 0;
    }
}

static int commands_original(const crdi_commands* q, int a)
{
    const int n = q->room, per = q->basis.per, i = a * per;
    const crd_real aa = q->G[i * n + i];
    for (int b = 0; b < a && aa > smallest_energy; b++) {
        const int j = b * per;
        const crd_real bb = q->G[j * n + j];
        const bool same = fabs(q->G[j * n + i]) > 0.99999 * sqrt(aa) * sqrt(bb);
        if (bb > smallest_energy && same) { return b; }
    }
    return -1;
}

crd_coupling_commands crdi_commands_get(const crdi_commands* q)
{
    crd_coupling_commands s = {.count = q->basis.commands,
                               .share = q->mixture || q->smith ? q->judge.share
                                                               : q->updates >= q->trained_at,
                               .updates = q->updates,
                               .given = q->basis.calls,
                               .not_finite = q->basis.not_finite,
                               .too_late = q->basis.outside,
                               .alarms = q->alarms};
    commands_parts(q, s.part);
    for (int a = 0; a < s.count; a++) {
        s.changes[a] = q->changes[a];
        s.copy_of[a] = q->smith ? -1 : commands_original(q, a);
    }
    return s;
}

// Weights of the basis without the command at its rate, which is of this run: what they would be
// without it. In `spare`; NULL: they cannot be told.
static const crd_real* weights_without_rate(const crdi_commands* q)
{
    const int n = q->slot;
    if (!q->spare) { return NULL; }
    crd_real *c = q->spare, *scale = c + n, *matrix = scale + n;
    solve_begin(q, n, matrix, scale, c);
    bool fine = true;
    for (int p = 0; p < n && fine; p += CRDI_CHOLESKY_PANEL) {
        fine = crdi_cholesky_panel(n, matrix, p);
    }
    return fine && solve_end(q, n, matrix, scale, c) ? c : NULL;
}

bool crdi_commands_weights(const crdi_commands* q, crd_command_weights* out)
{
    if (q->smith || q->updates < q->trained_at) { return false; }
    const crd_real* w = q->nx > q->slot ? weights_without_rate(q) : q->w;
    if (!w) { return false; }
    memset(q->full, 0, (size_t)q->basis.count * sizeof *q->full);
    for (int i = 0; i < q->slot; i++) {
        if (q->active[i] >= 0) { q->full[q->active[i]] = w[i]; }
    }
    *out = (crd_command_weights){.basis = CRD_COMMAND_BASIS,
                                 .step = q->step,
                                 .commands = q->basis.commands,
                                 .count = q->basis.count,
                                 .w = q->full,
                                 .low = q->low,
                                 .high = q->high};
    return true;
}
