// The exact map of a sampled network over one macro step.
#include <string.h>

#include "analysis/analysis.h"
#include "shared/base.h"

#include "shared/num.h"

typedef struct sampled {
    const crd_plant* w;
    int n, in, out, depth, size;
    double* phi;             // exp([A B 0; 0 0 1; 0 0 0] dT), inputs u0 + theta u1
    double *u0, *u1, *u_end; // (in x size) inputs at theta = 0, their slope, both as rows over z
    double* y;               // (out x size) outputs at t_n
    double *loop, *right;    // (in x in), (in): inputs that depend on outputs of the same step
    int32_t* pivots;
} sampled;

static crd_status monodromy_check_network(crd_context* ctx, const crd_plant* w, double dT,
                                          int* depth)
{
    const crd_loop loop = {.dT = dT, .network = w};
    crd_complex value;
    // Everything that crd_loop_response checks, at a place where nothing has a pole but by accident
    crd_status st = crdi_check_step(ctx, dT);
    if (st >= 0) {
        st = crd_loop_response(ctx, &loop, (crd_complex){0.1234567 / dT, 0.7654321 / dT}, &value);
    }
    if (st < 0) { return st; }
    *depth = 1;
    for (int i = 0; i < w->link_count; i++) {
        const crd_plant_link* l = &w->links[i];
        if (!l->element) {
            return crdi_fail(
                ctx, CRD_E_UNSUPPORTED,
                "link %d has no element: a sampled network exchanges at macro steps only", i + 1);
        }
        if (l->delay > 0) {
            return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                             "link %d has a delay of %g s: a sampled network counts it in macro "
                             "steps, as the element's k",
                             i + 1, l->delay);
        }
        const int reach = l->element->k + l->element->m; // one more than theta = 0 needs
        if (reach > *depth) { *depth = reach; }
    }
    return CRD_OK;
}

static crd_status allocate_sampled(crd_arena* arena, sampled* s)
{
    const size_t all = (size_t)s->n + 2 * (size_t)s->in, in = (size_t)s->in, size = (size_t)s->size;
    s->phi = crdi_arena_new(arena, 3 * all * all, sizeof(double)); // and its workspace
    s->u0 = crdi_arena_new(arena, in * size, sizeof(double));
    s->u1 = crdi_arena_new(arena, in * size, sizeof(double));
    s->u_end = crdi_arena_new(arena, in * size, sizeof(double));
    s->y = crdi_arena_new(arena, (size_t)s->out * size, sizeof(double));
    s->loop = crdi_arena_new(arena, in * in, sizeof(double));
    s->right = crdi_arena_new(arena, in, sizeof(double));
    s->pivots = crdi_arena_new(arena, in, sizeof *s->pivots);
    return s->phi && s->u0 && s->u1 && s->u_end && s->y && s->loop && s->right && s->pivots
               ? CRD_OK
               : CRD_E_MEMORY;
}

crd_status crdi_plant_transition(crd_context* ctx, const crd_plant* w, double dT, double* phi)
{
    const int n = w->states, in = w->inputs, all = n + 2 * in;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            phi[i * all + j] = w->A[i * n + j] * dT;
        }
        for (int u = 0; u < in; u++) {
            phi[i * all + n + u] = w->B[i * in + u] * dT;
        }
    }
    for (int u = 0; u < in; u++) {
        phi[(n + u) * all + n + in + u] = 1; // du/dtheta = u1
    }
    if (crdi_num_expm(all, phi, phi + (size_t)all * (size_t)all) < 0) {
        return crdi_fail(ctx, CRD_E_RANGE, "the units are too fast for a macro step of %g s", dT);
    }
    return CRD_OK;
}

// Column of z that holds output y of `age` macro steps ago, age >= 1
static int column(const sampled* s, int age, int y)
{
    return s->n + (age - 1) * s->out + y;
}

// Inputs over the past outputs: u0 and u1 for the step from t_n, u_end for the end of the one
// before. What depends on y_n itself (k = 0) is left to close_step().
static void past_inputs(const sampled* s)
{
    for (int i = 0; i < s->w->link_count; i++) {
        const crd_plant_link* l = &s->w->links[i];
        const double gain = l->gain == 0 ? 1 : l->gain;
        for (int j = 0; j < l->element->m; j++) {
            const int age = l->element->k + j;
            const double a = gain * l->element->a[j],
                         A = l->element->A ? gain * l->element->A[j] : 0;
            if (age > 0) {
                s->u0[l->to * s->size + column(s, age, l->from)] += a;
                s->u1[l->to * s->size + column(s, age, l->from)] += A;
            }
            s->u_end[l->to * s->size + column(s, age + 1, l->from)] += a + A;
        }
    }
}

// y = C x + D u for given inputs
static void outputs(const sampled* s, const double* u)
{
    for (int y = 0; y < s->out; y++) {
        for (int c = 0; c < s->size; c++) {
            double sum = c < s->n ? s->w->C[y * s->n + c] : 0;
            for (int i = 0; s->w->D && i < s->in; i++) {
                sum += s->w->D[y * s->in + i] * u[i * s->size + c];
            }
            s->y[y * s->size + c] = sum;
        }
    }
}

static void add_present(const sampled* s, const double* y_of, int columns, double* u0, double* u1)
{
    for (int i = 0; i < s->w->link_count; i++) {
        const crd_plant_link* l = &s->w->links[i];
        if (l->element->k > 0) { continue; }
        const double gain = l->gain == 0 ? 1 : l->gain;
        for (int c = 0; c < columns; c++) {
            const double y = gain * y_of[l->from * columns + c];
            if (u0) { u0[l->to * columns + c] += l->element->a[0] * y; }
            if (u1 && l->element->A) { u1[l->to * columns + c] += l->element->A[0] * y; }
        }
    }
}

// y_n and the inputs that use it at once
static crd_status close_step(crd_context* ctx, const sampled* s, crd_sampling sampling)
{
    if (sampling == CRD_SAMPLE_BEFORE) {
        outputs(s, s->u_end);
        add_present(s, s->y, s->size, s->u0, s->u1);
        return CRD_OK;
    }
    // u0 = past + K0 y, y = C x + D u0: (I - K0 D) u0 = past + K0 C x
    double* const past = s->u0;
    memset(s->y, 0, (size_t)s->out * (size_t)s->size * sizeof *s->y);
    for (int y = 0; y < s->out; y++) {
        memcpy(&s->y[y * s->size], &s->w->C[y * s->n], (size_t)s->n * sizeof *s->y);
    }
    add_present(s, s->y, s->size, past, NULL);
    for (int c = 0; s->w->D && c < s->size; c++) {
        memset(s->loop, 0, (size_t)s->in * (size_t)s->in * sizeof *s->loop);
        add_present(s, s->w->D, s->in, s->loop, NULL); // K0 D
        for (int i = 0; i < s->in; i++) {
            for (int j = 0; j < s->in; j++) {
                s->loop[i * s->in + j] = (i == j ? 1 : 0) - s->loop[i * s->in + j];
            }
            s->right[i] = past[i * s->size + c];
        }
        if (crdi_num_solve(s->in, s->loop, s->right, s->pivots) < 0) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "the network has an algebraic loop without solution");
        }
        for (int i = 0; i < s->in; i++) {
            past[i * s->size + c] = s->right[i];
        }
    }
    outputs(s, s->u0);
    add_present(s, s->y, s->size, NULL, s->u1);
    return CRD_OK;
}

static void assemble_map(const sampled* s, double* m)
{
    const int all = s->n + 2 * s->in;
    for (int i = 0; i < s->n; i++) {
        for (int c = 0; c < s->size; c++) {
            double sum = c < s->n ? s->phi[i * all + c] : 0;
            for (int u = 0; u < s->in; u++) {
                sum += s->phi[i * all + s->n + u] * s->u0[u * s->size + c];
                sum += s->phi[i * all + s->n + s->in + u] * s->u1[u * s->size + c];
            }
            m[i * s->size + c] = sum;
        }
    }
    memcpy(&m[s->n * s->size], s->y, (size_t)s->out * (size_t)s->size * sizeof *m);
    for (int i = s->n + s->out; i < s->size; i++) { // the others grow older
        m[i * s->size + i - s->out] = 1;
    }
}

crd_status crd_plant_monodromy(crd_context* ctx, const crd_plant* network, double dT,
                               crd_sampling sampling, crd_monodromy* out)
{
    crd_status st = CRD_OK;
    sampled s = {.w = network};
    double* matrix = NULL;
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    CRD_TRY(monodromy_check_network(ctx, network, dT, &s.depth));
    s.n = network->states;
    s.in = network->inputs;
    s.out = network->outputs;
    if ((double)s.n + (double)s.out * s.depth > 10000) {
        st = crdi_fail(ctx, CRD_E_RANGE, "%d outputs with a history of %d samples are too many",
                       s.out, s.depth);
        goto fail;
    }
    s.size = s.n + s.out * s.depth;
    CRD_TRY(allocate_sampled(&arena, &s));
    matrix = crdi_new_array(ctx, (size_t)s.size * (size_t)s.size, sizeof *matrix);
    if (!matrix) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    CRD_TRY(crdi_plant_transition(ctx, network, dT, s.phi));
    past_inputs(&s);
    CRD_TRY(close_step(ctx, &s, sampling));
    assemble_map(&s, matrix);
    *out = (crd_monodromy){s.size, s.depth, matrix};
    crd_arena_clear(&arena);
    return CRD_OK;
fail:
    crd_free(ctx, matrix);
    crd_arena_clear(&arena);
    return st;
}

void crd_monodromy_clear(crd_context* ctx, crd_monodromy* m)
{
    crd_free(ctx, m->matrix);
    *m = (crd_monodromy){0};
}

crd_status crd_monodromy_modes(crd_context* ctx, const crd_monodromy* m, double dT, int count,
                               crd_complex* out)
{
    crd_status st = crdi_check_step(ctx, dT);
    if (st < 0) { return st; }
    if (count < 0 || count > m->size) {
        return crdi_fail(ctx, CRD_E_RANGE, "%d modes are wanted of a map of size %d", count,
                         m->size);
    }
    const size_t n = (size_t)m->size;
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    double* a = crdi_arena_new(&arena, n * n, sizeof *a);
    double* re = crdi_arena_new(&arena, n, sizeof *re);
    double* im = crdi_arena_new(&arena, n, sizeof *im);
    if (!a || !re || !im) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    memcpy(a, m->matrix, n * n * sizeof *a);
    if (crdi_num_eigenvalues((int)n, a, re, im) < 0) {
        st = crdi_fail(ctx, CRD_E_CONVERGENCE, "the eigenvalues of the map were not found");
        goto fail;
    }
    for (int i = 0; i < count; i++) { // the largest that is left
        size_t best = 0;
        for (size_t j = 1; j < n; j++) {
            if (hypot(re[j], im[j]) > hypot(re[best], im[best])) { best = j; }
        }
        const crdi_complex mode = clog(re[best] + I * im[best]) / dT;
        out[i] = (crd_complex){creal(mode), cimag(mode)};
        re[best] = im[best] = 0;
    }
fail:
    crd_arena_clear(&arena);
    return st;
}
