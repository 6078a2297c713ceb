// The example models over the FMU runtime, in plain loops as the papers describe them: against
// closed forms, against published numbers, and for the order of convergence.
#include "check.h"
#include "fmu.h"

#include <stdio.h>

extern const crd_model crd_model_lo_mono, crd_model_lo_fd1, crd_model_lo_fd2, crd_model_lo_dd1,
    crd_model_lo_dd2, crd_model_lo_ff1, crd_model_lo_ff2, crd_model_lo_ffspring;
extern const crd_model crd_model_nlo_mono, crd_model_nlo_fd1, crd_model_nlo_fd2;
extern const crd_model crd_model_pen_mono, crd_model_pen_fd1, crd_model_pen_fd2;
extern const crd_model crd_model_hc_mono, crd_model_hc_mech, crd_model_hc_hyd, crd_model_hc_pd_mech,
    crd_model_hc_pd_hyd;
extern const crd_model crd_model_rot_mono, crd_model_rot_1, crd_model_rot_2;
extern const crd_model crd_model_ecar, crd_model_ecar_mono, crd_model_events;
extern const crd_model crd_model_bouncing_ball, crd_model_van_der_pol, crd_model_pwm_lag,
    crd_model_thermostat, crd_model_driven_oscillator, crd_model_heat_rod, crd_model_faulty_me;

enum { SEMI_IMPLICIT = 2, EULER = 2 };

// ---- a unit is an instance of the runtime ------------------------------------------------------

static void print_line(fmu* f, int status, const char* category, const char* text)
{
    print_message("%s: %d %s: %s\n", f->name, status, category, text);
}

static fmu* open_unit(const crd_model* model)
{
    char token[40];
    fmu_token(model, token);
    const fmu from = {.log = print_line, .log_mask = FMU_LOG_STATUS};
    fmu* f = fmu_create(model, &from, model->name, token, "", 0);
    check(f != NULL);
    return f;
}

static uint32_t row(const fmu* f, const char* name)
{
    for (uint32_t i = 0; i < f->count; i++) {
        if (strcmp(f->model->variables[i].name, name) == 0) { return i; }
    }
    fail_msg("%s has no %s", f->name, name);
    return 0;
}

static double get(fmu* f, const char* name)
{
    if (f->dirty) { fmu_refresh(f); }
    return *(const double*)(f->self + f->slots[row(f, name)].offset);
}

static void set(fmu* f, const char* name, double value)
{
    const fmu_slot* s = &f->slots[row(f, name)];
    check(s->set_in & f->phase);
    void* p = f->self + s->offset;
    switch (s->type) {
    case CRD_FLOAT64:
        *(double*)p = value;
        break;
    case CRD_INT32:
        *(int32_t*)p = (int32_t)value;
        break;
    case CRD_BOOLEAN:
        *(bool*)p = value != 0;
        break;
    default:
        *(int64_t*)p = (int64_t)value;
        break;
    }
    f->dirty = true;
}

static void set_if_there(fmu* f, const char* name, double value)
{
    for (uint32_t i = 0; i < f->count; i++) {
        if (strcmp(f->model->variables[i].name, name) == 0) { set(f, name, value); }
    }
}

static double derivative(fmu* f, const char* name, int order)
{
    double value = 0;
    if (f->dirty) { fmu_refresh(f); }
    check_int(fmu_output_derivative(f, row(f, name), order, &value, "get"), FMU_OK);
    return value;
}

static void set_derivative(fmu* f, const char* name, int order, double value)
{
    check_int(fmu_set_input_derivative(f, row(f, name), order, value, "set"), FMU_OK);
}

static void begin(fmu* f)
{
    check_int(fmu_enter_initialization(f, 0, false, 0, "enter"), FMU_OK);
}

static void begin_steps(fmu* f)
{
    check_int(fmu_exit_initialization(f), FMU_OK);
}

static void step(fmu* f, double t, double h)
{
    fmu_outcome out;
    check_int(fmu_step(f, t, h, false, &out, "step"), FMU_OK);
}

/// Relative to the digits that were printed.
#define check_digits(a, b, relative) check_near(a, b, (relative)*fabs(b))

// ---- linear oscillator -------------------------------------------------------------------------

/// Closed form of the undamped oscillator by its two modes, m1 = m2 = 1: x'' = -K x.
static void closed_form(double t, double* x1, double* v1, double* x2, double* v2)
{
    const double a = 110, b = 1100, c = -100; // K = [a c; c b]
    const double mean = 0.5 * (a + b), r = sqrt(0.25 * (a - b) * (a - b) + c * c);
    *x1 = *v1 = *x2 = *v2 = 0;
    for (int mode = 0; mode < 2; mode++) {
        const double lambda = mode ? mean + r : mean - r, w = sqrt(lambda);
        const double length = hypot(c, lambda - a);
        const double e1 = c / length, e2 = (lambda - a) / length;
        const double q = 100 * e1 - 100 * e2; // of the initial velocities
        *x1 += e1 * q / w * sin(w * t);
        *x2 += e2 * q / w * sin(w * t);
        *v1 += e1 * q * cos(w * t);
        *v2 += e2 * q * cos(w * t);
    }
}

static void monolithic_linear_oscillator_follows_its_closed_form(void** state)
{
    fmu* f = open_unit(&crd_model_lo_mono);
    begin(f);
    begin_steps(f);
    for (int k = 0; k < 1000; k++) {
        step(f, k * 0.01, 0.01);
        double x1, v1, x2, v2;
        closed_form((k + 1) * 0.01, &x1, &v1, &x2, &v2);
        check_near(get(f, "x1"), x1, 1e-9);
        check_near(get(f, "v1"), v1, 1e-8);
        check_near(get(f, "x2"), x2, 1e-9);
        check_near(get(f, "v2"), v2, 1e-8);
        check_near(get(f, "energy"), 10000, 1e-6);
    }
    free(f);
}

static void rk4_converges_with_fourth_order_to_the_exact_solution(void** state)
{
    double errors[2];
    for (int k = 0; k < 2; k++) {
        fmu* f = open_unit(&crd_model_lo_mono);
        set(f, "solver", 3);
        set(f, "substeps", k ? 20 : 10);
        begin(f);
        begin_steps(f);
        for (int n = 0; n < 100; n++) {
            step(f, n * 0.01, 0.01);
        }
        double x1, v1, x2, v2;
        closed_form(1, &x1, &v1, &x2, &v2);
        errors[k] = fabs(get(f, "v2") - v2);
        free(f);
    }
    check_near(log2(errors[0] / errors[1]), 4, 0.1);
}

static double oscillator_energy(double x1, double v1, double x2, double v2)
{
    return 0.5 * (v1 * v1 + v2 * v2 + 10 * x1 * x1 + 1000 * x2 * x2 + 100 * (x1 - x2) * (x1 - x2));
}

/// A row of the thesis: two units under a manager step H, input order 0 or 1 (5.38 and following).
typedef struct coupling {
    const crd_model *first, *second, *between; // between: the manager's own force of force-force
    double H, h1, h2, c;
    int order;
} coupling;

typedef struct outcome {
    double error1, error2, energy;
    double x1, v1, x2, v2; // at t = 1
} outcome;

typedef struct held { // an input with its last two samples
    fmu* to;
    const char* name;
    double now, before;
} held;

static void sample(held* u, double value, bool first)
{
    u->before = first ? value : u->now;
    u->now = value;
}

/// Micro steps of one unit over one macro step; inputs are set at the beginning of each.
static void run_unit(fmu* f, held* inputs, int count, double t, double H, double h, int order)
{
    const int n = (int)lround(H / h);
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < count; i++) {
            if (inputs[i].to != f) { continue; }
            const double slope = order ? (inputs[i].now - inputs[i].before) * j * h / H : 0;
            set(f, inputs[i].name, inputs[i].now + slope);
        }
        step(f, t + j * h, h);
    }
}

static outcome run_coupling(const coupling* c)
{
    fmu* a = open_unit(c->first);
    fmu* b = open_unit(c->second);
    fmu* spring = c->between ? open_unit(c->between) : NULL;
    fmu* whole = open_unit(&crd_model_lo_mono);
    fmu* all[] = {a, b, whole, spring};
    for (int i = 0; i < 4 && all[i]; i++) {
        if (all[i] != whole) { set(all[i], "solver", SEMI_IMPLICIT); }
        set_if_there(all[i], "c1", c->c);
        set_if_there(all[i], "c2", c->c);
        set_if_there(all[i], "cc", c->c);
        begin(all[i]);
        begin_steps(all[i]);
    }
    held inputs[4];
    int count = 0;
    const char* const names[] = {"x1", "v1", "x2", "v2", "f"};
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 2; k++) {
            for (uint32_t r = 0; r < all[k]->count; r++) {
                const crd_model_variable* v = &all[k]->model->variables[r];
                if (v->causality == CRD_INPUT && strcmp(v->name, names[i]) == 0) {
                    inputs[count++] = (held){.to = all[k], .name = names[i]};
                }
            }
        }
    }
    outcome out = {0};
    const int steps = (int)lround(10 / c->H);
    for (int k = 0; k < steps; k++) {
        const double t = k * c->H;
        if (spring) {
            set(spring, "x1", get(a, "x1"));
            set(spring, "v1", get(a, "v1"));
            set(spring, "x2", get(b, "x2"));
            set(spring, "v2", get(b, "v2"));
        }
        for (int i = 0; i < count; i++) {
            fmu* from = inputs[i].name[0] == 'f'   ? (spring ? spring : a)
                        : inputs[i].name[1] == '1' ? a
                                                   : b;
            sample(&inputs[i], get(from, inputs[i].name), k == 0);
        }
        run_unit(a, inputs, count, t, c->H, c->h1, c->order);
        run_unit(b, inputs, count, t, c->H, c->h2, c->order);
        step(whole, t, c->H);
        out.error1 = fmax(out.error1, fabs(get(a, "x1") - get(whole, "x1")));
        out.error2 = fmax(out.error2, fabs(get(b, "x2") - get(whole, "x2")));
        if (k + 1 == (int)lround(1 / c->H)) {
            out.x1 = get(a, "x1");
            out.v1 = get(a, "v1");
            out.x2 = get(b, "x2");
            out.v2 = get(b, "v2");
        }
    }
    out.energy = oscillator_energy(get(a, "x1"), get(a, "v1"), get(b, "x2"), get(b, "v2"));
    for (int i = 0; i < 4 && all[i]; i++) {
        free(all[i]);
    }
    return out;
}

/// Rodriguez (2021), Fig. 5.29a: published with all digits at t = 1.
static void force_displacement_at_1_ms_meets_the_spot_check(void** state)
{
    const coupling c = {&crd_model_lo_fd1, &crd_model_lo_fd2, NULL, 1e-3, 1e-3, 1e-3, 0, 0};
    const outcome o = run_coupling(&c);
    check_digits(o.x1, -4.524954263, 1e-9);
    check_digits(o.v1, -78.61176551, 1e-9);
    check_digits(o.x2, -3.734647104, 1e-9);
    check_digits(o.v2, 27.70693007, 1e-9);
    check_digits(oscillator_energy(o.x1, o.v1, o.x2, o.v2), 10581.14165, 1e-9);
}

static void uncorrected_rows_of_the_thesis_are_reproduced(void** state)
{
    FILE* file = fopen(TEST_SOURCE_DIR "/golden/cosim/thesis_none.csv", "r");
    check(file != NULL);
    char line[512], figure[32], problem[16];
    int rows = 0;
    while (fgets(line, sizeof line, file)) {
        coupling c = {&crd_model_lo_fd1, &crd_model_lo_fd2, NULL, 0, 0, 0, 0, 0};
        double first, second, energy;
        if (sscanf(line, "%31[^,],%15[^,],%lf,%lf,%lf,%d,%*f,%*f,none,%lf,%lf,%lf", figure, problem,
                   &c.H, &c.h1, &c.h2, &c.order, &first, &second, &energy) != 9 ||
            strncmp(problem, "LO", 2) != 0) {
            continue;
        }
        if (strcmp(figure, "coupling DD") == 0) {
            c.first = &crd_model_lo_dd1;
            c.second = &crd_model_lo_dd2;
        } else if (strcmp(figure, "coupling FF") == 0) {
            c.first = &crd_model_lo_ff1;
            c.second = &crd_model_lo_ff2;
            c.between = &crd_model_lo_ffspring;
        }
        c.c = problem[2] == '2' ? 0.1 : 0;
        const outcome o = run_coupling(&c);
        print_message("%s %s H=%g/%g/%g order %d: %.9g %.9g %.9g\n", figure, problem, c.H, c.h1,
                      c.h2, c.order, o.error1, o.error2, o.energy);
        check_digits(o.error1, first, 1e-8);
        check_digits(o.error2, second, 1e-8);
        check_digits(o.energy, energy, 1e-8);
        rows++;
    }
    fclose(file);
    check_int(rows, 24);
}

/// With exact units the error of the coupling is that of the inputs: H for held ones, H^2 for
/// linear, H^3 for quadratic.
static double coupled_error(double H, int order)
{
    fmu* a = open_unit(&crd_model_lo_fd1);
    fmu* b = open_unit(&crd_model_lo_fd2);
    fmu* whole = open_unit(&crd_model_lo_mono);
    fmu* all[] = {a, b, whole};
    const char* const back[] = {"x2", "v2"};
    for (int i = 0; i < 3; i++) {
        set_if_there(all[i], "c1", 0.1);
        set_if_there(all[i], "c2", 0.1);
        set_if_there(all[i], "cc", 0.1);
        begin(all[i]);
    }
    for (int pass = 0; pass < 4; pass++) { // derivatives of the start, one order per pass
        for (int i = 0; i < 2; i++) {
            set(a, back[i], get(b, back[i]));
        }
        set(b, "f", get(a, "f"));
        for (int o = 1; o <= order; o++) {
            for (int i = 0; i < 2; i++) {
                set_derivative(a, back[i], o, derivative(b, back[i], o));
            }
            set_derivative(b, "f", o, derivative(a, "f", o));
        }
    }
    for (int i = 0; i < 3; i++) {
        begin_steps(all[i]);
    }
    double error = 0;
    for (int k = 0; k < lround(1 / H); k++) {
        if (k > 0) {
            double x[2][3], f[3];
            for (int o = 0; o <= order; o++) {
                for (int i = 0; i < 2; i++) {
                    x[i][o] = o ? derivative(b, back[i], o) : get(b, back[i]);
                }
                f[o] = o ? derivative(a, "f", o) : get(a, "f");
            }
            for (int o = 0; o <= order; o++) {
                for (int i = 0; i < 2; i++) {
                    if (o) {
                        set_derivative(a, back[i], o, x[i][o]);
                    } else {
                        set(a, back[i], x[i][o]);
                    }
                }
                if (o) {
                    set_derivative(b, "f", o, f[o]);
                } else {
                    set(b, "f", f[o]);
                }
            }
        }
        step(a, k * H, H);
        step(b, k * H, H);
        step(whole, k * H, H);
        error = fmax(error, fabs(get(b, "x2") - get(whole, "x2")));
    }
    for (int i = 0; i < 3; i++) {
        free(all[i]);
    }
    return error;
}

static void exact_units_converge_with_the_order_of_their_inputs(void** state)
{
    for (int order = 0; order <= 2; order++) {
        const double coarse = coupled_error(1e-3, order), fine = coupled_error(5e-4, order);
        print_message("inputs of order %d: %g at 1 ms, %g at 0.5 ms\n", order, coarse, fine);
        check_near(log2(coarse / fine), order + 1, 0.15);
    }
}

// ---- nonlinear oscillator ----------------------------------------------------------------------

static void nonlinear_oscillator_reproduces_its_rows(void** state)
{
    const struct {
        double springs, c, energy_error;
    } rows[] = {{1, 0, 0.0872156}, {0, 0.001, 0.552153}};
    for (int k = 0; k < 2; k++) {
        fmu* a = open_unit(&crd_model_nlo_fd1);
        fmu* b = open_unit(&crd_model_nlo_fd2);
        fmu* whole = open_unit(&crd_model_nlo_mono);
        fmu* all[] = {a, b, whole};
        for (int i = 0; i < 3; i++) {
            set(all[i], "springs", rows[k].springs);
            set(all[i], "damping", rows[k].springs == 0);
            set_if_there(all[i], "c1", rows[k].c);
            set_if_there(all[i], "c2", rows[k].c);
            set_if_there(all[i], "cc", rows[k].c);
            set(all[i], "solver", i < 2 ? SEMI_IMPLICIT : 1);
            begin(all[i]);
            begin_steps(all[i]);
        }
        const double start = get(whole, "energy");
        for (int n = 0; n < 10000; n++) {
            const double x2 = get(b, "x2"), v2 = get(b, "v2"), f = get(a, "f");
            set(a, "x2", x2);
            set(a, "v2", v2);
            set(b, "f", f);
            step(a, n * 1e-3, 1e-3);
            step(b, n * 1e-3, 1e-3);
            step(whole, n * 1e-3, 1e-3);
        }
        const double e = fabs(get(a, "x1") - get(b, "x2"));
        const double spring = rows[k].springs != 0 ? 200.0 / 3 * e * sqrt(e) : 50 * e * e;
        const double energy = get(a, "energy") + get(b, "energy") + spring;
        const double reference = k == 0 ? start : get(whole, "energy"); // case 1 has no losses
        print_message("nlo case %d: relative energy error %.9g (reference %.9g, start %g)\n", k + 1,
                      energy / reference - 1, reference, start);
        check_near(energy / reference - 1, rows[k].energy_error, 1e-6);
        if (k == 0) { check_near(get(whole, "energy"), start, 1e-5 * start); }
        for (int i = 0; i < 3; i++) {
            free(all[i]);
        }
    }
}

// ---- pendula -----------------------------------------------------------------------------------

static void pendula_reproduce_their_row(void** state)
{
    fmu* a = open_unit(&crd_model_pen_fd1);
    fmu* b = open_unit(&crd_model_pen_fd2);
    fmu* whole = open_unit(&crd_model_pen_mono);
    fmu* all[] = {a, b, whole};
    const char* const tip[] = {"x2", "y2", "vx2", "vy2"};
    for (int i = 0; i < 3; i++) {
        set(all[i], "solver", i < 2 ? SEMI_IMPLICIT : 1);
        begin(all[i]);
        begin_steps(all[i]);
    }
    check_near(get(whole, "energy"), 25.8060456, 1e-7);
    double error1 = 0, error2 = 0;
    for (int n = 0; n < 10000; n++) {
        double p[4];
        const double fx = get(a, "fx"), fy = get(a, "fy");
        for (int i = 0; i < 4; i++) {
            p[i] = get(b, tip[i]);
        }
        for (int i = 0; i < 4; i++) {
            set(a, tip[i], p[i]);
        }
        set(b, "fx", fx);
        set(b, "fy", fy);
        step(a, n * 1e-3, 1e-3);
        step(b, n * 1e-3, 1e-3);
        step(whole, n * 1e-3, 1e-3);
        error1 = fmax(error1, fabs(get(a, "x1") - get(whole, "x1")));
        error2 = fmax(error2, fabs(get(b, "x2") - get(whole, "x2")));
    }
    const double ex = get(a, "x1") - get(b, "x2"), ey = get(a, "y1") - get(b, "y2");
    const double energy = get(a, "energy") + get(b, "energy") + 3 * (ex * ex + ey * ey);
    print_message("pendula: %.9g %.9g %.9g\n", error1, error2, energy);
    check_digits(energy, 27.4783701, 1e-8);
    check_digits(error1, 3.16085083e-02, 1e-8);
    check_digits(error2, 3.78811978e-02, 1e-8);
    check_near(get(whole, "energy"), 25.8060456, 1e-7);
    for (int i = 0; i < 3; i++) {
        free(all[i]);
    }
}

// ---- crane -------------------------------------------------------------------------------------

static void crane_starts_in_equilibrium_and_follows_the_reference(void** state)
{
    fmu* f = open_unit(&crd_model_hc_mono);
    begin(f);
    begin_steps(f);
    check_near(get(f, "p1"), 3170846.154, 1e-3);
    check_near(get(f, "p2"), 4529153.846, 1e-3);
    check_near(get(f, "f"), 8829, 1e-8);
    check_near(get(f, "s"), 0.5, 1e-15);
    const double s[11] = {
        [1] = 0.494321529, [5] = 0.488486064, [8] = 0.477683099, [10] = 0.470035248};
    for (int n = 0; n < 10000; n++) {
        step(f, n * 1e-3, 1e-3);
        if ((n + 1) % 1000 == 0 && s[(n + 1) / 1000] != 0) {
            check_near(get(f, "s"), s[(n + 1) / 1000], 1e-9);
        }
    }
    free(f);
}

/// Largest deviation of s from the monolithic solution over 10 s.
static double crane_error(const crd_model* mech, const crd_model* hyd, double H, int substeps,
                          bool euler)
{
    fmu* m = open_unit(mech);
    fmu* h = open_unit(hyd);
    fmu* whole = open_unit(&crd_model_hc_mono);
    const bool pressure = mech == &crd_model_hc_pd_mech;
    if (euler) {
        set(m, "solver", SEMI_IMPLICIT);
        set(h, "solver", SEMI_IMPLICIT);
    }
    set(whole, "substeps", (double)(10 * lround(H / 1e-3)));
    fmu* all[] = {m, h, whole};
    for (int i = 0; i < 3; i++) {
        begin(all[i]);
        begin_steps(all[i]);
    }
    double error = 0;
    for (int n = 0; n < lround(10 / H); n++) {
        const double s = get(m, "s"), sd = get(m, "sd");
        const double f = pressure ? 0 : get(h, "f"), p1 = get(h, "p1"), p2 = get(h, "p2");
        if (pressure) {
            set(m, "p1", p1);
            set(m, "p2", p2);
        } else {
            set(m, "f", f);
        }
        step(m, n * H, H);
        for (int j = 0; j < substeps; j++) {
            set(h, "s", s);
            set(h, "sd", sd);
            step(h, n * H + j * H / substeps, H / substeps);
        }
        step(whole, n * H, H);
        error = fmax(error, fabs(get(m, "s") - get(whole, "s")));
    }
    for (int i = 0; i < 3; i++) {
        free(all[i]);
    }
    return error;
}

static void crane_in_two_units_reproduces_the_thesis(void** state)
{
    const double error = crane_error(&crd_model_hc_mech, &crd_model_hc_hyd, 0.01, 40, true);
    print_message("crane 10/0.25 ms: %.9g\n", error);
    check_digits(error, 1.96665e-3, 1e-5);
    const double one = crane_error(&crd_model_hc_mech, &crd_model_hc_hyd, 1e-3, 1, false);
    const double press = crane_error(&crd_model_hc_pd_mech, &crd_model_hc_pd_hyd, 1e-3, 1, false);
    print_message("crane 1 ms, fine: force %g, pressure %g\n", one, press);
    check(one < 1e-4);
    check(press < 1e-3);
}

// ---- rotational oscillator ---------------------------------------------------------------------

/// Glumac and Kovacic (2023): Jacobi, inputs are Taylor polynomials of the partner's output at the
/// beginning of the step ("strict"), exact derivatives at the start. Result: RMS over 1 s of the
/// outputs' Taylor polynomials (about the end of each step) against the exact solution.
static void rotational_errors(double H, int order, int solver, double* tau_error,
                              double* omega_error)
{
    static const double node[4] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267,
                                   0.9602898564975363};
    static const double weight[4] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745,
                                     0.1012285362903763};
    fmu* a = open_unit(&crd_model_rot_1);
    fmu* b = open_unit(&crd_model_rot_2);
    fmu* whole = open_unit(&crd_model_rot_mono);
    set(a, "solver", solver);
    set(b, "solver", solver);
    begin(a);
    begin(b);
    begin(whole);
    for (int pass = 0; pass < 4; pass++) {
        set(a, "omega2", get(b, "omega2"));
        set(b, "tau", get(a, "tau"));
        for (int o = 1; o <= order; o++) {
            set_derivative(a, "omega2", o, derivative(b, "omega2", o));
            set_derivative(b, "tau", o, derivative(a, "tau", o));
        }
    }
    begin_steps(a);
    begin_steps(b);
    begin_steps(whole);
    double sums[2] = {0};
    const int steps = (int)lround(1 / H);
    for (int k = 0; k < steps; k++) {
        double y[2][3] = {{0}};
        for (int o = 0; o <= order && k > 0; o++) {
            y[0][o] = o ? derivative(a, "tau", o) : get(a, "tau");
            y[1][o] = o ? derivative(b, "omega2", o) : get(b, "omega2");
        }
        for (int o = 0; o <= order && k > 0; o++) {
            if (o) {
                set_derivative(a, "omega2", o, y[1][o]);
                set_derivative(b, "tau", o, y[0][o]);
            } else {
                set(a, "omega2", y[1][0]);
                set(b, "tau", y[0][0]);
            }
        }
        step(a, k * H, H);
        step(b, k * H, H);
        for (int o = 0; o <= order; o++) {
            y[0][o] = o ? derivative(a, "tau", o) : get(a, "tau");
            y[1][o] = o ? derivative(b, "omega2", o) : get(b, "omega2");
        }
        void* saved = NULL;
        for (int i = 0; i < 8; i++) { // Gauss points of the step
            const double z = i < 4 ? -node[i] : node[i - 4];
            const double tau = 0.5 * H * (z - 1); // before the end of the step
            check_int(fmu_get_state(whole, &saved, "get"), FMU_OK);
            step(whole, k * H, H + tau);
            const double exact[2] = {get(whole, "tau"), get(whole, "omega2")};
            check_int(fmu_set_state(whole, saved, "set"), FMU_OK);
            for (int q = 0; q < 2; q++) {
                const double d = y[q][0] + tau * (y[q][1] + 0.5 * tau * y[q][2]) - exact[q];
                sums[q] += 0.5 * H * weight[i % 4] * d * d;
            }
        }
        free(saved);
        step(whole, k * H, H);
    }
    *tau_error = sqrt(sums[0]);
    *omega_error = sqrt(sums[1]);
    free(a);
    free(b);
    free(whole);
}

static void rotational_oscillator_reproduces_the_published_errors(void** state)
{
    const struct {
        int solver, order;
        double H, tau, omega;
    } rows[] = {
        {1, 0, 0.1, 5.62249200e-03, 3.15914820e-03}, {1, 0, 0.01, 5.35814158e-04, 3.17028658e-04},
        {1, 1, 0.1, 2.94551773e-05, 1.64799811e-05}, {1, 1, 0.01, 2.93909014e-07, 1.50535161e-07},
        {1, 2, 0.1, 9.49808404e-07, 1.36507160e-07}, {1, 2, 0.01, 9.74944885e-10, 1.50300058e-10},
        {2, 0, 0.1, 4.98042925e-03, 3.20685743e-03}, {2, 1, 0.1, 6.82056184e-04, 2.44820613e-04},
        {2, 2, 0.1, 6.83244190e-04, 2.45361538e-04}, {2, 1, 0.01, 6.51432736e-05, 2.55714993e-05},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double tau, omega;
        rotational_errors(rows[i].H, rows[i].order, rows[i].solver, &tau, &omega);
        print_message("solver %d order %d H = %g: tau %.9g, omega %.9g\n", rows[i].solver,
                      rows[i].order, rows[i].H, tau, omega);
        check_digits(tau, rows[i].tau, 1e-6);
        check_digits(omega, rows[i].omega, 1e-6);
    }
}

// ---- e-Car, ball -------------------------------------------------------------------------------

static void ecar_follows_the_reference_with_torque_inside_and_outside(void** state)
{
    for (int inside = 0; inside < 2; inside++) {
        FILE* file = fopen(TEST_SOURCE_DIR "/golden/cosim/ecar.csv", "r");
        check(file != NULL);
        char line[512];
        fmu* f = NULL;
        int n = 0, rows = 0, reaction = -1;
        while (fgets(line, sizeof line, file)) {
            int r;
            double t, y[7];
            if (sscanf(line, "%d,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &r, &t, &y[0], &y[1], &y[2],
                       &y[3], &y[4], &y[5], &y[6]) != 9) {
                continue;
            }
            if (r != reaction) {
                free(f);
                f = open_unit(inside ? &crd_model_ecar_mono : &crd_model_ecar);
                set(f, "reaction", r);
                begin(f);
                begin_steps(f);
                reaction = r;
                n = 0;
            }
            for (; n < lround(t * 1000); n++) {
                if (!inside) { set(f, "tau", n >= 500 && n < 1500 ? 0.2 : 0); }
                step(f, n * 1e-3, 1e-3);
            }
            const char* const names[] = {"x_G", "y_G", "theta", "vx", "s_F", "s_R", "omega_F"};
            for (int i = 0; i < 7; i++) {
                check_near(get(f, names[i]), y[i], 1e-8);
            }
            rows++;
        }
        free(f);
        fclose(file);
        check_int(rows, 24);
    }
}

static void ball_bounces_when_its_closed_form_says(void** state)
{
    fmu* f = open_unit(&crd_model_events);
    begin(f);
    begin_steps(f);
    const double fall = sqrt(2 / 9.81); // impacts at fall (1 + 2 e + 2 e^2 + ...)
    for (int n = 0; n < 140; n++) {
        step(f, n * 0.01, 0.01);
    }
    const double second = fall * (1 + 2 * 0.7), t = 1.4 - second;
    const double v = 0.49 * 9.81 * fall; // after the second impact
    check(t > 0 && t < 2 * 0.49 * fall);
    check_int(*(int32_t*)(f->self + f->slots[row(f, "bounces")].offset), 2);
    check_near(get(f, "height"), v * t - 0.5 * 9.81 * t * t, 1e-12);
    check_near(get(f, "velocity"), v - 9.81 * t, 1e-12);
    for (int n = 140; n < 600; n++) {
        step(f, n * 0.01, 0.01);
    } // through all of them, to rest
    check_near(get(f, "height"), 0, 0);
    free(f);
}

// ---- differential equations in Co-Simulation: the solver of cardan/model.h
// -----------------------

static int integer(fmu* f, const char* name)
{
    return *(const int32_t*)(f->self + f->slots[row(f, name)].offset);
}

static fmu* started(const crd_model* model)
{
    fmu* f = open_unit(model);
    begin(f);
    begin_steps(f);
    return f;
}

/// Height of the ball and its bounces so far, from 1 m: e = 0.7, free fall between impacts.
static double ball_height(double t, int* bounces)
{
    const double g = 9.81, e = 0.7;
    double hit = sqrt(2 / g), v = g * hit;
    if (t < hit) {
        *bounces = 0;
        return 1 - 0.5 * g * t * t;
    }
    for (*bounces = 1;; ++*bounces) {
        v *= e;
        if (v * v <= 2 * g * 1e-6) { return 0; } // it lies
        if (t < hit + 2 * v / g) { return (v - 0.5 * g * (t - hit)) * (t - hit); }
        hit += 2 * v / g;
    }
}

static void inner_solver_finds_every_bounce_of_the_ball(void** state)
{
    const double steps[] = {0.01, 0.1}; // also when a step has many bounces
    for (int i = 0; i < 2; i++) {
        fmu* f = started(&crd_model_bouncing_ball);
        const int n = (int)lround(3 / steps[i]);
        for (int k = 0; k < n; k++) {
            step(f, k * steps[i], steps[i]);
            int bounces;
            // RK4 is exact here; each impact is located to 1e-15 s and 1e-12 m
            check_near(get(f, "height"), ball_height((k + 1) * steps[i], &bounces), 1e-9);
            check_int(integer(f, "bounces"), bounces);
        }
        check_near(get(f, "velocity"), 0, 0);
        check_int(integer(f, "bounces"), 20);
        free(f);
    }
}

static void inner_solver_meets_time_events_where_they_are(void** state)
{
    const double steps[] = {1e-3, 0.07, 0.25}; // edges on, near and far from the grid
    for (int i = 0; i < 3; i++) {
        fmu* f = started(&crd_model_pwm_lag);
        const int n = (int)(1.05 / steps[i]);
        for (int k = 0; k < n; k++) {
            step(f, k * steps[i], steps[i]);
            const double t = (k + 1) * steps[i];
            double y = 0, from = 0, u = 1;
            for (int edge = 1;; edge++) {
                const double next = edge / 2 * 0.1 + (edge % 2 ? 0.03 : 0);
                const double to = next < t ? next : t;
                y = u + (y - u) * exp(-(to - from) / 0.05);
                if (next >= t - 1e-9) { break; }
                from = next;
                u = edge % 2 ? 0 : 1;
            }
            check_near(get(f, "y"), y, 1e-9); // RK4: (1e-3 / 0.05)^4 / 120
        }
        free(f);
    }
}

static void inner_solver_switches_the_thermostat_at_its_limits(void** state)
{
    fmu* f = started(&crd_model_thermostat);
    // Heating from 15 to 20.5, then falling to 19.5 and rising to 20.5 in turn.
    double next = 600 * log(15 / 9.5), T = 15;
    int switches = 0;
    for (int k = 0; k < 720; k++) {
        const double t = 5.0 * (k + 1);
        step(f, 5.0 * k, 5);
        double from = 0, from_T = 15;
        switches = 0;
        next = 600 * log(15 / 9.5);
        while (next < t) {
            from = next;
            from_T = switches % 2 ? 19.5 : 20.5;
            switches++;
            next += 600 * log(10.5 / 9.5); // up and down take the same time
        }
        const double end = switches % 2 ? 10 : 30;
        T = end + (from_T - end) * exp(-(t - from) / 600);
        check_near(get(f, "T"), T, 3e-9); // RK4: (5 / 600)^5 / 120 of 15 K per step
        check_int(integer(f, "switches"), switches);
    }
    check(switches >= 50);
    free(f);
}

static double driven_error(double h, int order)
{
    // x'' = w^2 (u - x) with u = t^2: x = t^2 - 2/w^2 + (1 + 2/w^2) cos(w t)
    const double w = 6.283185307179586;
    crd_model m = crd_model_driven_oscillator;
    m.default_step = h; // one inner step per step
    fmu* f = open_unit(&m);
    set(f, "zeta", 0);
    begin(f);
    begin_steps(f);
    for (int k = 0; k < (int)lround(0.9 / h); k++) {
        const double t = k * h;
        set(f, "u", t * t);
        set_derivative(f, "u", 1, order > 0 ? 2 * t : 0);
        set_derivative(f, "u", 2, order > 1 ? 2 : 0);
        step(f, t, h);
        check_near(get(f, "u"),
                   order > 1 ? (t + h) * (t + h)
                   : order   ? t * t + 2 * t * h
                             : t * t,
                   1e-15);
    }
    const double x = 0.81 - 2 / (w * w) + (1 + 2 / (w * w)) * cos(0.9 * w);
    const double error = fabs(get(f, "x") - x);
    free(f);
    return error;
}

static void inner_solver_has_order_four_along_polynomial_inputs(void** state)
{
    const double expected[] = {1, 2, 4}; // held, along a line, along the parabola
    for (int order = 0; order <= 2; order++) {
        const double rate = log2(driven_error(0.01, order) / driven_error(0.005, order));
        check_near(rate, expected[order], 0.2);
    }
}

static void inner_solver_says_when_a_model_is_too_stiff_for_it(void** state)
{
    fmu* f = open_unit(&crd_model_van_der_pol);
    set(f, "mu", 1000);
    begin(f);
    begin_steps(f);
    fmu_outcome out;
    int status = FMU_OK;
    for (int k = 0; k < 100 && status == FMU_OK; k++) {
        status = fmu_step(f, k * 0.1, 0.1, false, &out, "step");
    }
    check_int(status, FMU_ERROR);
    check(f->explained);
    free(f);
}

static void inner_solver_leaves_nothing_behind_when_it_discards(void** state)
{
    fmu* f = open_unit(&crd_model_faulty_me);
    set(f, "mode", 1);
    begin(f);
    begin_steps(f);
    step(f, 0, 0.5); // up to and with the event there
    fmu_outcome out;
    check_int(fmu_step(f, 0.5, 0.1, false, &out, "step"), FMU_DISCARD);
    check_near(out.reached, 0.5, 0);
    check_near(get(f, "x"), 0.5, 1e-15);
    free(f);
}

static void the_rod_cools_as_its_eigenvector(void** state)
{
    fmu* f = started(&crd_model_heat_rod);
    const double s = sin(3.14159265358979323846 / 202),
                 first = sin(51 * 3.14159265358979323846 / 101);
    for (int k = 0; k < 100; k++) {
        step(f, k * 0.01, 0.01);
        check_near(get(f, "middle"), first * exp(-4000 * s * s * (k + 1) * 0.01), 1e-12);
    }
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monolithic_linear_oscillator_follows_its_closed_form),
        cmocka_unit_test(rk4_converges_with_fourth_order_to_the_exact_solution),
        cmocka_unit_test(force_displacement_at_1_ms_meets_the_spot_check),
        cmocka_unit_test(uncorrected_rows_of_the_thesis_are_reproduced),
        cmocka_unit_test(exact_units_converge_with_the_order_of_their_inputs),
        cmocka_unit_test(nonlinear_oscillator_reproduces_its_rows),
        cmocka_unit_test(pendula_reproduce_their_row),
        cmocka_unit_test(crane_starts_in_equilibrium_and_follows_the_reference),
        cmocka_unit_test(crane_in_two_units_reproduces_the_thesis),
        cmocka_unit_test(rotational_oscillator_reproduces_the_published_errors),
        cmocka_unit_test(ecar_follows_the_reference_with_torque_inside_and_outside),
        cmocka_unit_test(ball_bounces_when_its_closed_form_says),
        cmocka_unit_test(inner_solver_finds_every_bounce_of_the_ball),
        cmocka_unit_test(inner_solver_meets_time_events_where_they_are),
        cmocka_unit_test(inner_solver_switches_the_thermostat_at_its_limits),
        cmocka_unit_test(inner_solver_has_order_four_along_polynomial_inputs),
        cmocka_unit_test(inner_solver_says_when_a_model_is_too_stiff_for_it),
        cmocka_unit_test(inner_solver_leaves_nothing_behind_when_it_discards),
        cmocka_unit_test(the_rod_cools_as_its_eigenvector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
