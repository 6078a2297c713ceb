// Random linear systems as units that the master runs.
#include "random_system.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- a unit as a model -------------------------------------------------------------------------

typedef struct instance {
    random_unit* of;
    double u[RANDOM_PORTS], du[RANDOM_PORTS][CRD_MODEL_MAX_ORDER];
    double y[RANDOM_PORTS], dy[RANDOM_PORTS][CRD_MODEL_MAX_ORDER];
    double x[RANDOM_STATES], dx[RANDOM_STATES];
    double w[FORCE];
    bool jumped;
} instance;

// Of an output at a communication point: the same whenever it is asked for.
static double noise_of(const random_unit* p, int port, int order, double t)
{
    if (p->rough[port][order] == 0) { return 0; }
    const uint64_t n = (uint64_t)llround(t / p->system->H);
    uint64_t s =
        random_mix(p->system->seed + 64 * n + (uint64_t)(16 * p->number + 4 * port + order));
    return p->rough[port][order] * random_normal(&s);
}

static void rates(instance* v, double* second)
{
    const random_unit* p = v->of;
    const double dw[FORCE] = {p->omega * v->w[1], -p->omega * v->w[0], 0};
    for (int i = 0; i < p->nx; i++) {
        v->dx[i] = 0;
        for (int j = 0; j < p->nx; j++) {
            v->dx[i] += p->A[i][j] * v->x[j];
        }
        for (int j = 0; j < p->nu; j++) {
            v->dx[i] += p->B[i][j] * v->u[j];
        }
        for (int j = 0; j < FORCE; j++) {
            v->dx[i] += p->E[i][j] * v->w[j];
        }
    }
    for (int i = 0; i < p->nx && second; i++) {
        second[i] = 0;
        for (int j = 0; j < p->nx; j++) {
            second[i] += p->A[i][j] * v->dx[j];
        }
        for (int j = 0; j < p->nu; j++) {
            second[i] += p->B[i][j] * v->du[j][0];
        }
        for (int j = 0; j < FORCE; j++) {
            second[i] += p->E[i][j] * dw[j];
        }
    }
}

static void model_outputs(void* self, double t)
{
    instance* v = self;
    const random_unit* p = v->of;
    double second[RANDOM_STATES];
    rates(v, second);
    for (int i = 0; i < p->ny; i++) {
        v->y[i] = noise_of(p, i, 0, t);
        v->dy[i][0] = noise_of(p, i, 1, t);
        v->dy[i][1] = noise_of(p, i, 2, t);
        for (int j = 0; j < p->nx; j++) {
            v->y[i] += p->C[i][j] * v->x[j];
            v->dy[i][0] += p->C[i][j] * v->dx[j];
            v->dy[i][1] += p->C[i][j] * second[j];
        }
        for (int j = 0; j < p->nu; j++) {
            v->y[i] += p->D[i][j] * v->u[j];
            v->dy[i][0] += p->D[i][j] * v->du[j][0];
            v->dy[i][1] += p->D[i][j] * v->du[j][1];
        }
    }
}

static crd_model_status model_initialize(void* self, const crd_model_host* host, double t)
{
    instance* v = self;
    // The system is not const, only the model's word for it is.
    memcpy(&v->of, &host->model->user, sizeof v->of);
    memcpy(v->x, v->of->x0, sizeof v->x);
    memcpy(v->w, v->of->w0, sizeof v->w);
    model_outputs(self, t);
    return CRD_MODEL_OK;
}

static crd_model_status model_derivatives(void* self, double t)
{
    (void)t;
    rates(self, NULL);
    return CRD_MODEL_OK;
}

static const random_exact_step* step_of(random_unit* p, double h)
{
    if (p->steps[0].h == h) { return &p->steps[0]; }
    if (p->steps[1].h == h) { return &p->steps[1]; }
    const double whole = p->system->H * p->ticks;
    random_exact_step* e = &p->steps[fabs(h - whole) > 1e-9 * whole];
    const int nx = p->nx, u = nx + FORCE, n = u + 3 * p->nu;
    double M[LOCAL * LOCAL] = {0};
    for (int i = 0; i < nx; i++) {
        memcpy(M + i * n, p->A[i], (size_t)nx * sizeof *M);
        memcpy(M + i * n + nx, p->E[i], sizeof p->E[i]);
        memcpy(M + i * n + u, p->B[i], (size_t)p->nu * sizeof *M);
    }
    M[nx * n + nx + 1] = p->omega;
    M[(nx + 1) * n + nx] = -p->omega;
    for (int i = 0; i < 2 * p->nu; i++) { // u' moves u, u'' moves u'
        M[(u + i) * n + u + p->nu + i] = 1;
    }
    for (int i = 0; i < n * n; i++) {
        M[i] *= h;
    }
    random_exponential(n, M);
    for (int i = 0; i < nx; i++) {
        memcpy(e->P[i], M + i * n, (size_t)n * sizeof *M);
    }
    e->h = h;
    return e;
}

// u, u' and u'' are those at the beginning; the surroundings move them along.
static void advance(instance* v, double h)
{
    random_unit* p = v->of;
    const random_exact_step* e = step_of(p, h);
    double x[RANDOM_STATES];
    for (int i = 0; i < p->nx; i++) {
        const double* P = e->P[i];
        x[i] = 0;
        for (int j = 0; j < p->nx; j++) {
            x[i] += *P++ * v->x[j];
        }
        for (int j = 0; j < FORCE; j++) {
            x[i] += *P++ * v->w[j];
        }
        for (int j = 0; j < p->nu; j++) {
            x[i] += *P++ * v->u[j];
        }
        for (int j = 0; j < 2 * p->nu; j++) {
            x[i] += *P++ * v->du[j % p->nu][j / p->nu];
        }
    }
    memcpy(v->x, x, (size_t)p->nx * sizeof *x);
    const double c = cos(p->omega * h), s = sin(p->omega * h);
    const double w0 = c * v->w[0] + s * v->w[1];
    v->w[1] = c * v->w[1] - s * v->w[0];
    v->w[0] = w0;
}

static void jump(instance* v)
{
    for (int i = 0; i < v->of->nx; i++) {
        v->x[i] += v->of->jump_x[i];
    }
    v->w[2] += v->of->jump_w;
    v->jumped = true;
}

static crd_model_status model_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    (void)host;
    instance* v = self;
    const random_unit* p = v->of;
    const double at = p->system->jump_time, end = t + h;
    if (!p->jumps || v->jumped || !(at >= t && at < end)) {
        advance(v, h);
        *reached = end;
        return CRD_MODEL_OK;
    }
    advance(v, at - t);
    if (!p->system->traits.unannounced) {
        *reached = at;
        return CRD_MODEL_EVENT;
    }
    jump(v);
    for (int i = 0; i < p->nu; i++) { // inputs go on along their polynomials
        const double s = at - t;
        v->u[i] += s * (v->du[i][0] + 0.5 * s * v->du[i][1]);
        v->du[i][0] += s * v->du[i][1];
    }
    advance(v, end - at);
    for (int i = 0; i < p->nu; i++) { // and back: the surroundings move them over all of it
        const double s = at - t;
        v->du[i][0] -= s * v->du[i][1];
        v->u[i] -= s * (v->du[i][0] + 0.5 * s * v->du[i][1]);
    }
    *reached = end;
    return CRD_MODEL_OK;
}

static crd_model_status model_event(void* self, const crd_model_host* host, double t, double* next)
{
    (void)host;
    instance* v = self;
    if (v->of->jumps && !v->jumped && t >= v->of->system->jump_time) { jump(v); }
    *next = v->of->jumps && !v->jumped ? v->of->system->jump_time : (double)INFINITY;
    return CRD_MODEL_OK;
}

// Rows: inputs, outputs, states, derivatives.
static double model_partial(const void* self, int unknown, int known)
{
    const instance* v = self;
    const random_unit* p = v->of;
    const int states = p->nu + p->ny;
    const bool by_state = known >= states;
    const int j = by_state ? known - states : known;
    if (unknown >= states + p->nx) {
        const int i = unknown - states - p->nx;
        return by_state ? p->A[i][j] : p->B[i][j];
    }
    const int i = unknown - p->nu;
    return by_state ? p->C[i][j] : p->D[i][j];
}

static crd_model_variable* add_row(random_unit* p, const char* what, int i, size_t offset)
{
    const int n = p->model.variable_count++;
    crd_model_variable* row = &p->rows[n];
    snprintf(p->names[n], sizeof p->names[n], "%s%d", what, i + 1);
    *row = (crd_model_variable){.name = p->names[n], .type = CRD_FLOAT64, .offset = offset};
    return row;
}

static void list(char* text, size_t size, const char* what, int count)
{
    for (int i = 0; i < count; i++) {
        const size_t n = strlen(text);
        snprintf(text + n, size - n, "%s%s%d", n ? " " : "", what, i + 1);
    }
}

static void make_rows(random_unit* p)
{
    for (int i = 0; i < p->nu; i++) {
        crd_model_variable* row =
            add_row(p, "u", i, offsetof(instance, u) + (size_t)i * sizeof(double));
        row->causality = CRD_INPUT;
        row->derivatives = offsetof(instance, du) + (size_t)i * 2 * sizeof(double);
    }
    for (int i = 0; i < p->ny; i++) {
        crd_model_variable* row =
            add_row(p, "y", i, offsetof(instance, y) + (size_t)i * sizeof(double));
        char* depends = p->depends[p->model.variable_count - 1];
        row->causality = CRD_OUTPUT;
        row->derivatives = offsetof(instance, dy) + (size_t)i * 2 * sizeof(double);
        if (random_unit_is_direct(p)) { list(depends, sizeof p->depends[0], "u", p->nu); }
        if (p->model.derivatives) { list(depends, sizeof p->depends[0], "x", p->nx); }
        row->depends = depends;
    }
    for (int i = 0; i < p->nx; i++) {
        add_row(p, "x", i, offsetof(instance, x) + (size_t)i * sizeof(double))->causality =
            CRD_LOCAL;
    }
    for (int i = 0; i < p->nx && p->model.derivatives; i++) {
        crd_model_variable* row =
            add_row(p, "dx", i, offsetof(instance, dx) + (size_t)i * sizeof(double));
        row->causality = CRD_LOCAL;
        row->derivative_of = p->names[p->nu + p->ny + i];
    }
}

static void make_model(random_unit* p, bool linear)
{
    const random_traits* t = &p->system->traits;
    const bool event = p->jumps && !t->unannounced;
    memset(p->depends, 0, sizeof p->depends);
    p->model = (crd_model){.name = "linear",
                           .description = "x' = A x + B u",
                           .size = sizeof(instance),
                           .variables = p->rows,
                           .default_step = p->system->H,
                           .default_stop = p->system->H,
                           .max_input_derivative = t->input_order,
                           .max_output_derivative = t->output_order,
                           .has_events = event,
                           .initialize = model_initialize,
                           .outputs = model_outputs,
                           .step = model_step,
                           .event = event ? model_event : NULL,
                           .partial = linear ? model_partial : NULL,
                           .derivatives = linear ? model_derivatives : NULL,
                           .user = p,
                           .kept = sizeof(random_unit*), // `of`: elsewhere in another process
                           .stateless = !t->save};
    make_rows(p);
}

// ---- runs --------------------------------------------------------------------------------------

static crd_status describe(random_linear* s, const random_run* run, crd_context* ctx,
                           crd_system** out)
{
    crd_status st = crd_system_create(ctx, out);
    for (int k = 0; k < s->traits.units && st >= 0; k++) {
        random_unit* p = &s->units[k];
        make_model(p, s->traits.linear && !run->black_box);
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = p->name;
        u.source = CRD_UNIT_NATIVE;
        u.model = &p->model;
        u.step = p->ticks > 1 ? p->ticks * s->H : 0;
        u.refresh = s->traits.refresh ? CRD_REFRESH_AUTO : CRD_REFRESH_NO;
        st = crd_system_add_unit(*out, &u, NULL);
    }
    for (int k = 0; k < s->traits.units; k++) {
        const random_unit* p = &s->units[k];
        for (int j = 0; j < p->nu && st >= 0; j++) {
            crd_connection_spec c = crd_connection_spec_defaults();
            c.from_unit = p->from_unit[j];
            c.from = s->units[c.from_unit].names[s->units[c.from_unit].nu + p->from_port[j]];
            c.to_unit = k;
            c.to = p->names[j];
            c.predict = run->predict;
            st = crd_system_add_connection(*out, &c);
        }
    }
    if (st < 0) { return st; }
    (*out)->run.start = 0;
    (*out)->run.step = s->H;
    (*out)->run.stop = s->traits.steps * s->H;
    (*out)->run.threads = 1;
    (*out)->run.scheme = s->traits.gauss_seidel ? CRD_SCHEME_GAUSS_SEIDEL : CRD_SCHEME_JACOBI;
    if (run->change) { run->change(run->user, *out); }
    return CRD_OK;
}

typedef struct tally {
    double square[RANDOM_OUTPUTS];
    int64_t points[RANDOM_OUTPUTS];
} tally;

static void compare(const random_linear* s, crd_master* m, int64_t n, tally* a, random_result* r)
{
    for (int k = 0, i = 0; k < s->traits.units; k++) {
        const random_unit* p = &s->units[k];
        for (int j = 0; j < p->ny; j++, i++) {
            double y = NAN;
            if (n % p->ticks) { continue; }
            (void)crd_master_value(m, s->names[i], &y);
            y -= noise_of(p, j, 0, (double)n * s->H);
            const double e = y - random_linear_exact(s, (int)n, i);
            a->square[i] += e * e;
            a->points[i]++;
            r->largest[i] = fmax(r->largest[i], fabs(y) / s->rms[i]);
            if (!isfinite(y)) { r->largest[i] = INFINITY; }
        }
    }
}

static void sum_up(const random_linear* s, const tally* a, random_result* r)
{
    double all = 0;
    for (int i = 0; i < s->outputs; i++) {
        const double points = (double)(a->points[i] ? a->points[i] : 1);
        r->error[i] = sqrt(a->square[i] / points) / s->rms[i];
        all += r->error[i] * r->error[i] / s->outputs;
        r->size = fmax(r->size, r->largest[i]);
    }
    r->total = isfinite(all) && r->ticks == s->traits.steps ? sqrt(all) : (double)INFINITY;
}

// Times are those of the grid; a run with a variable step is compared by its end only.
random_result random_linear_run(random_linear* s, const random_run* run)
{
    random_result r = {.worst_defect = NAN};
    tally a = {0};
    crd_system* system = NULL;
    crd_master* m = NULL;
    crd_context* ctx = crd_context_create(NULL);
    r.status = ctx ? describe(s, run, ctx, &system) : CRD_E_MEMORY;
    if (r.status >= 0) { r.status = crd_master_create(ctx, system, NULL, &m); }
    if (r.status >= 0) { r.status = crd_master_initialize(m); }
    const bool varies = system && system->run.control.on;
    while (r.status >= 0 && crd_master_ended(m) == CRD_END_NONE) {
        r.status = crd_master_advance(m, 1);
        if (r.status < 0) { break; }
        r.ticks++;
        if (!varies) { compare(s, m, r.ticks, &a, &r); }
        if (run->tick) { run->tick(run->user, m, r.ticks); }
    }
    if (m) {
        r.ended = crd_master_ended(m);
        (void)crd_master_finish(m);
        const crd_master_report* report = crd_master_get_report(m);
        r.worst_defect = report->worst_defect;
        if (run->end) { run->end(run->user, m, report); }
    }
    if (r.status < 0 && ctx && !m) { fprintf(stderr, "%s\n", crd_error_text(ctx)); }
    sum_up(s, &a, &r);
    crd_master_destroy(m);
    crd_system_destroy(system);
    crd_context_destroy(ctx);
    return r;
}
