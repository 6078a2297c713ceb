#include "reproduce/rotational.h"

#include <math.h>
#include <string.h>

#include "shared/num.h"

// Parameters (44).
#define J1 10.0
#define J2 10.0
#define c1 1.0
#define c2 1.0
#define ck 1.0
#define d1 1.0
#define d2 2.0
#define dk 2.0

enum { N_MAX = 4, TERMS = 64, GAUSS = 8 };

typedef struct linear {
    int n;
    double A[N_MAX][N_MAX], B[N_MAX], C[N_MAX], D;
} linear;

static const linear units[2] = {{3,
                                 {{0, 1, 0}, {-(c1 + ck) / J1, -(d1 + dk) / J1, ck / J1}},
                                 {0, dk / J1, 1},
                                 {ck, dk, -ck},
                                 -dk},
                                {2, {{0, 1}, {-c2 / J2, -d2 / J2}}, {0, 1 / J2}, {0, 1}, 0}};
static const linear whole = {4,
                             {{0, 1, 0, 0},
                              {-(c1 + ck) / J1, -(d1 + dk) / J1, ck / J1, dk / J1},
                              {0, 0, 0, 1},
                              {ck / J2, dk / J2, -(c2 + ck) / J2, -(d2 + dk) / J2}},
                             {0},
                             {0},
                             0};
static const double whole_C[2][N_MAX] = {{ck, dk, -ck, -dk}, {0, 0, 0, 1}};

static void rotational_slope(const linear* s, const double* x, double u, double* dx)
{
    for (int i = 0; i < s->n; i++) {
        dx[i] = crdi_num_dot(s->n, s->A[i], x) + s->B[i] * u;
    }
}

// x(s) = sum c_j s^j
typedef struct expansion {
    int terms;
    double c[TERMS][N_MAX];
} expansion;

// With a polynomial input the series of a linear system converges everywhere, so that it is the
// exact solution; it ends where it does not count any more up to s = h.
static void rotational_expand(const linear* l, const double* x, const crd_poly* u, double h,
                              expansion* e)
{
    memcpy(e->c[0], x, (size_t)l->n * sizeof *x);
    double power = 1;
    for (e->terms = 1; e->terms < TERMS; e->terms++) {
        const int j = e->terms - 1;
        double largest = 0;
        rotational_slope(l, e->c[j], j <= u->degree ? u->c[j] : 0, e->c[j + 1]);
        power *= h;
        for (int i = 0; i < l->n; i++) {
            e->c[j + 1][i] /= j + 1;
            largest = fmax(largest, fabs(e->c[j + 1][i]) * power);
        }
        if (j > CRD_POLY_SIZE && largest < 1e-20) { break; }
    }
}

static void expansion_at(const linear* l, const expansion* e, double s, double* x)
{
    for (int i = 0; i < l->n; i++) {
        x[i] = 0;
        for (int j = e->terms - 1; j >= 0; j--) {
            x[i] = x[i] * s + e->c[j][i];
        }
    }
}

// ---- one unit ----------------------------------------------------------------------------------

enum { ORDERS = 3 }; // value, first and second derivative

typedef struct unit {
    const linear* s;
    bool euler;
    double x[N_MAX]; // state
    expansion step;  // and over the step: of an Euler step two terms
    crd_poly u;      // input over the step
    crd_sample used; // and at its end
    crd_sample y;    // output at the end of the step
    double middle;   // and in its middle
} unit;

static crd_sample sample_of(const crd_poly* p, double s)
{
    crd_sample out = {.order = ORDERS - 1};
    for (int i = 0; i < ORDERS; i++) {
        out.y[i] = crd_poly_derivative(p, i, s);
    }
    return out;
}

static double output_at(const unit* v, double s)
{
    double x[N_MAX];
    expansion_at(v->s, &v->step, s, x);
    return crdi_num_dot(v->s->n, v->s->C, x) + v->s->D * crd_poly_eval(&v->u, s);
}

// Derivatives of state and output at the end of a step; (46), (47).
static void work_out(unit* v)
{
    double x[N_MAX], dx[N_MAX];
    memcpy(x, v->x, sizeof x);
    v->y.order = ORDERS - 1;
    for (int i = 0; i < ORDERS; i++) {
        v->y.y[i] = crdi_num_dot(v->s->n, v->s->C, x) + v->s->D * v->used.y[i];
        rotational_slope(v->s, x, v->used.y[i], dx);
        for (int j = 0; j < v->s->n; j++) {
            x[j] = !v->euler ? dx[j] : i == 0 ? v->step.c[1][j] : 0;
        }
    }
}

static void advance_unit(unit* v, double h)
{
    if (v->euler) {
        v->step.terms = 2;
        memcpy(v->step.c[0], v->x, sizeof v->x);
        rotational_slope(v->s, v->x, v->u.c[0], v->step.c[1]);
    } else {
        rotational_expand(v->s, v->x, &v->u, h, &v->step);
    }
    expansion_at(v->s, &v->step, h, v->x);
    v->middle = output_at(v, 0.5 * h);
    v->used = sample_of(&v->u, h);
    work_out(v);
}

// ---- the run -----------------------------------------------------------------------------------

typedef struct run {
    const crdi_rotational_options* o;
    unit units[2];
    double exact[N_MAX];
    crd_defect_sum output[2], connection[2];
    crd_history past[2]; // of the outputs
    double error[2];     // integrals of the squares: of output polynomials
    double off, size;    // of outputs: their errors, and themselves
} run;

static void start_run(run* r)
{
    static const double x0[N_MAX] = {0.1, 0.1, 0.2, 0.1};
    double d[ORDERS][N_MAX]; // derivatives of the coupled system
    memcpy(d[0], x0, sizeof x0);
    rotational_slope(&whole, d[0], 0, d[1]);
    rotational_slope(&whole, d[1], 0, d[2]);
    memcpy(r->exact, x0, sizeof x0);
    for (int i = 0; i < 2; i++) {
        unit* v = &r->units[i];
        *v = (unit){.s = &units[i], .euler = r->o->euler, .y = {.order = ORDERS - 1}};
        memcpy(v->x, i == 0 ? x0 : x0 + 2, (size_t)v->s->n * sizeof *x0);
        for (int j = 0; j < ORDERS; j++) {
            v->y.y[j] = crdi_num_dot(4, whole_C[i], d[j]);
        }
        v->y = crd_defect_scheme_initial(r->o->scheme, &v->y);
        crd_history_push(&r->past[i], 0, &v->y);
    }
}

static crd_poly predict_input(const run* r, int i, double h)
{
    const int degree = r->o->m < r->o->n ? r->o->m : r->o->n;
    return r->o->two_point ? crd_predict(CRD_PREDICT_HERMITE, &r->past[i], h)
                           : crd_poly_taylor(&r->units[i].y, degree);
}

// (15), or with an output that has been evaluated again since the speed came.
static void connect(run* r, double h, bool first)
{
    unit *torque = &r->units[0], *speed = &r->units[1];
    torque->u = predict_input(r, 1, h);
    if (crd_defect_scheme_refreshes(r->o->scheme) && !first) {
        const crd_sample fresh = sample_of(&torque->u, 0);
        torque->y = crd_sample_refresh(&torque->y, torque->s->D, &torque->used, &fresh);
        crd_history_replace(&r->past[0], &torque->y);
    }
    speed->u = predict_input(r, 0, h);
}

// Defects of the step that has just been made; the largest RMS (38).
static double defects(run* r, double t, double h)
{
    double worst = 0;
    for (int i = 0; i < 2; i++) {
        const unit* v = &r->units[i];
        const crd_poly *u = &r->units[1 - i].u, y = crd_poly_output(&v->y, r->o->n, h);
        crd_defect d;
        if (r->o->two_point) {
            d = crd_defect_two_point(u, &r->past[i].sample[0], &v->y, h, v->middle);
        } else {
            d.connection = crd_defect_connection(u, &y, h, &d.max);
            d.output = crd_defect_output(&v->y, r->o->n, h, v->middle);
        }
        crd_defect_add(&r->connection[i], t, h, d.connection, d.max);
        crd_defect_add(&r->output[i], t, h, d.output, d.output);
        worst = crd_defect_larger(worst, crd_defect_larger(d.connection, d.output));
        crd_history_push(&r->past[i], h, &v->y);
    }
    return worst;
}

static void errors(run* r, double h)
{
    static const double node[GAUSS / 2] = {0.1834346424956498, 0.5255324099163290,
                                           0.7966664774136267, 0.9602898564975363};
    static const double weight[GAUSS / 2] = {0.3626837833783620, 0.3137066458778873,
                                             0.2223810344533745, 0.1012285362903763};
    static const crd_poly none = {0};
    expansion exact;
    double x[N_MAX];
    rotational_expand(&whole, r->exact, &none, h, &exact);
    for (int g = 0; g < GAUSS; g++) {
        const double s = 0.5 * h * (1 + (g % 2 ? 1 : -1) * node[g / 2]);
        expansion_at(&whole, &exact, s, x);
        for (int i = 0; i < 2; i++) {
            const crd_poly y = crd_poly_output(&r->units[i].y, r->o->n, h);
            const double right = crdi_num_dot(4, whole_C[i], x), part = 0.5 * h * weight[g / 2];
            const double e = crd_poly_eval(&y, s) - right, off = output_at(&r->units[i], s) - right;
            r->error[i] += part * e * e;
            r->off += part * off * off;
            r->size += part * right * right;
        }
    }
    expansion_at(&whole, &exact, h, r->exact);
}

static void show_step(const run* r, double t, double h)
{
    const double y[2] = {r->units[0].y.y[0], r->units[1].y.y[0]};
    const double exact[2] = {crdi_num_dot(4, whole_C[0], r->exact),
                             crdi_num_dot(4, whole_C[1], r->exact)};
    if (r->o->see) { r->o->see(r->o->user, t, h, y, exact); }
}

void crdi_rotational_run(const crdi_rotational_options* opt, crdi_rotational_result* out)
{
    run r = {.o = opt};
    *out = (crdi_rotational_result){0};
    crd_step_options control = crd_step_defaults();
    control.method = opt->two_point ? CRD_STEP_H211B : CRD_STEP_PI;
    control.tol = opt->tolerance;
    control.h1 = opt->step;
    crd_step step;
    crd_step_init(&control, opt->step, &step);
    start_run(&r);
    double t = 0, h = opt->step;
    const bool variable = opt->tolerance > 0;
    const int order =
        opt->two_point ? crd_predictor_order(CRD_PREDICT_HERMITE) : opt->n + 1; // of the defects
    const int64_t count = (int64_t)ceil(opt->until / opt->step - 1e-9);
    for (int64_t k = 1; variable ? t < opt->until : k <= count; k++) {
        connect(&r, h, k == 1);
        advance_unit(&r.units[0], h);
        advance_unit(&r.units[1], h);
        t = variable ? t + h : (double)k * h; // a sum would drift
        const double eps = defects(&r, t, h);
        errors(&r, h);
        show_step(&r, t, h);
        out->steps = k;
        out->max_step = fmax(out->max_step, h);
        if (variable) {
            out->worst = fmax(out->worst, eps / opt->tolerance);
            h = crd_step_next(&control, &step, eps, order);
        }
    }
    out->end = t;
    out->mean_step = t / (double)out->steps;
    out->relative = sqrt(r.off / r.size);
    for (int i = 0; i < 2; i++) {
        out->output[i] = crd_defect_rms(&r.output[i]);
        out->connection[i] = crd_defect_rms(&r.connection[i]);
        out->error[i] = sqrt(r.error[i] / t);
    }
}
