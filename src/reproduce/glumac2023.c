// Glumac and Kovacic 2023: defects of the two-mass rotational oscillator over step size and
// tolerance, their orders, and what the step size controller makes of them.
#include "reproduce/papers.h"
#include "reproduce/rotational.h"

#include <math.h>
#include <stdio.h>

// Numbers of a run in the order of the tables: output, connection, error.
enum { NUMBERS = 6 };
static const char* const number_ids[NUMBERS] = {
    "output.tau", "output.omega", "connection.omega", "connection.tau", "error.tau", "error.omega"};
static const char* const number_names[NUMBERS] = {
    "output defect of tau",     "output defect of omega", "connection defect of omega",
    "connection defect of tau", "error of tau",           "error of omega"};

static void numbers_of(const crdi_rotational_result* r, double out[NUMBERS])
{
    const double all[NUMBERS] = {r->output[0],     r->output[1], r->connection[1],
                                 r->connection[0], r->error[0],  r->error[1]};
    for (int i = 0; i < NUMBERS; i++) {
        out[i] = all[i];
    }
}

static const char* solver_name(bool euler)
{
    return euler ? "euler" : "analytic";
}

// ---- orders (Figures 5 and 6) ------------------------------------------------------------------

// Least-squares slopes of ln RMS over ln H, H = 10^-3, 10^-2.8 ... 10^-1.
static void find_slopes(crdi_rotational_options o, double slope[NUMBERS], double last[NUMBERS])
{
    enum { POINTS = 11 };
    double sx = 0, sxx = 0, sy[NUMBERS] = {0}, sxy[NUMBERS] = {0};
    for (int i = 0; i < POINTS; i++) {
        const double x = -3 + 0.2 * i;
        crdi_rotational_result run;
        o.step = pow(10, x);
        crdi_rotational_run(&o, &run);
        numbers_of(&run, last);
        sx += x;
        sxx += x * x;
        for (int j = 0; j < NUMBERS; j++) {
            sy[j] += log10(last[j]);
            sxy[j] += x * log10(last[j]);
        }
    }
    for (int j = 0; j < NUMBERS; j++) {
        slope[j] = (POINTS * sxy[j] - sx * sy[j]) / (POINTS * sxx - sx * sx);
    }
}

typedef struct slope_case {
    crd_defect_scheme scheme;
    bool euler;
    int m, n;
    double reference[NUMBERS]; // NAN: the defect is 0; all 0: the integer orders are the reference
} slope_case;

static const slope_case slopes[] = {
    CRDI_ROW(CRD_DEFECT_STRICT, false, 0, 0, {1.0137, 1.0036, 1.0038, 0.9966, 1.0091, 0.9995}),
    CRDI_ROW(CRD_DEFECT_STRICT, false, 1, 1, {1.9986, 2.0070, 2.0008, 1.9896, 1.9987, 2.0183}),
    CRDI_ROW(CRD_DEFECT_STRICT, false, 2, 2, {2.9939, 3.0066, 2.9726, 2.9856, 2.9928, 2.9800}),
    CRDI_ROW(CRD_DEFECT_STRICT, true, 0, 0, {0.9954, 1.0042, 1.0042, 1.0002, 1.0077, 1.0001}),
    CRDI_ROW(CRD_DEFECT_STRICT, true, 1, 1, {NAN, NAN, 1.9905, 1.9789, 1.0124, 0.9940}),
    CRDI_ROW(CRD_DEFECT_STRICT, true, 2, 2, {NAN, NAN, 1.9917, 1.9863, 1.0127, 0.9943}),
    CRDI_ROW(CRD_DEFECT_PROGRAM, false, 0, 0, {1.0152, 1.0009, 1.0010, 1.0091, 1.0028, 1.0005}),
    CRDI_ROW(CRD_DEFECT_PROGRAM, false, 1, 1, {2.1481, 1.9959, 1.4986, 1.5057, 1.4990, 1.9947}),
    CRDI_ROW(CRD_DEFECT_PROGRAM, false, 2, 2, {2.9703, 3.0706, 1.4986, 1.5091, 1.4995, 1.9943}),
    CRDI_ROW(CRD_DEFECT_PROGRAM, true, 0, 0, {0.9971, 1.0015, 1.0015, 0.9971, 1.0012, 1.0008}),
    CRDI_ROW(CRD_DEFECT_PROGRAM, true, 1, 1, {NAN, NAN, 1.4988, 1.4988, 1.2281, 0.9988}),
    CRDI_ROW(CRD_DEFECT_PROGRAM, true, 2, 2, {NAN, NAN, 1.4988, 1.4988, 1.2281, 0.9988}),
    CRDI_ROW(CRD_DEFECT_STRICT, false, 0, 1, {0}),
    CRDI_ROW(CRD_DEFECT_STRICT, false, 0, 2, {0}),
    CRDI_ROW(CRD_DEFECT_STRICT, false, 1, 0, {0}),
    CRDI_ROW(CRD_DEFECT_STRICT, false, 2, 0, {0}),
    CRDI_ROW(CRD_DEFECT_STRICT, false, 1, 2, {0}),
    CRDI_ROW(CRD_DEFECT_STRICT, false, 2, 1, {0}),
};

// What the paper says: outputs O(H^(n+1)), connections O(H^(min(m,n)+1)), with Euler at most
// O(H^2), errors as the worst of them and of the solver, which is O(H) with Euler.
static double stated_order(const slope_case* c, int number)
{
    const int least = c->m < c->n ? c->m : c->n;
    if (number < 2) { return c->n + 1; }
    if (!c->euler) { return least + 1; }
    return number < 4 ? fmin(least + 1, 2) : 1;
}

static crd_status claim_slope(crdi_reproduction* r, const slope_case* c, int j, double slope,
                              double last)
{
    char family[64], subject[96], what[64];
    const bool mixed = c->m != c->n, zero = isnan(c->reference[j]);
    snprintf(family, sizeof family, "order.%s.%s.m%dn%d", crd_defect_scheme_name(c->scheme),
             solver_name(c->euler), c->m, c->n);
    snprintf(subject, sizeof subject, "%s, %s, m = %d, n = %d", crd_defect_scheme_name(c->scheme),
             solver_name(c->euler), c->m, c->n);
    snprintf(what, sizeof what, zero ? "%s at H = 0.1" : "order of the %s", number_names[j]);
    crdi_claim row = {.published = stated_order(c, j), .ours = slope};
    if (zero) {
        row.published = 0; // (55)
        row.ours = last;
        row.reference = 0;
        row.tolerance = 1e-15; // outputs are of the order of 0.1
        row.rule = CRDI_CLAIM_AT_MOST;
        row.remark = "0 but for rounding: the polynomial is the straight line of the Euler step";
    } else if (mixed) {
        row.reference = NAN;
        row.tolerance = 0.05; // steps up to 0.1 are not yet asymptotic
    } else {
        row.reference = c->reference[j];
        // Digits given; errors of order 2 are near rounding at H = 10^-3.
        row.tolerance = c->n == 2 && !c->euler && j >= 4 ? 3e-3 : 6e-5;
    }
    return crdi_claim_row(r, family, number_ids[j], subject, what, row);
}

static crd_status orders(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++) {
        const slope_case* c = &slopes[i];
        double slope[NUMBERS], last[NUMBERS];
        find_slopes(
            (crdi_rotational_options){
                .scheme = c->scheme, .euler = c->euler, .m = c->m, .n = c->n, .until = 1},
            slope, last);
        for (int j = 0; j < NUMBERS; j++) {
            CRD_TRY(claim_slope(r, c, j, slope[j], last[j]));
        }
    }
fail:
    return st;
}

// ---- root mean squares with fixed steps --------------------------------------------------------

typedef struct fixed_case {
    crd_defect_scheme scheme;
    bool euler;
    int order;
    double step;
    double reference[NUMBERS]; // NAN: 0 but for rounding
} fixed_case;

#define STRICT CRD_DEFECT_STRICT
#define FRESH CRD_DEFECT_FRESH
#define PROGRAM CRD_DEFECT_PROGRAM
static const fixed_case fixed_cases[] = {
    CRDI_ROW(STRICT, false, 0, 0.1,
             {1.21905621e-03, 2.70199093e-03, 4.68428255e-03, 7.08234486e-03, 5.62249200e-03,
              3.15914820e-03}),
    CRDI_ROW(STRICT, false, 0, 0.01,
             {1.13886009e-04, 2.65023270e-04, 4.59070895e-04, 7.19956056e-04, 5.35814158e-04,
              3.17028658e-04}),
    CRDI_ROW(STRICT, false, 1, 0.1,
             {8.77974803e-06, 2.02031041e-05, 2.52405439e-05, 1.72226506e-04, 2.94551773e-05,
              1.64799811e-05}),
    CRDI_ROW(STRICT, false, 1, 0.01,
             {8.98714702e-08, 1.95330759e-07, 2.51146693e-07, 1.81479446e-06, 2.93909014e-07,
              1.50535161e-07}),
    CRDI_ROW(STRICT, false, 2, 0.1,
             {8.18720256e-07, 7.99741569e-08, 9.93206116e-08, 2.46240632e-06, 9.49808404e-07,
              1.36507160e-07}),
    CRDI_ROW(STRICT, false, 2, 0.01,
             {8.40591514e-10, 7.69739929e-11, 1.08215930e-10, 2.60585940e-09, 9.74944885e-10,
              1.50300058e-10}),
    CRDI_ROW(STRICT, true, 0, 0.1,
             {1.10083582e-03, 2.71127683e-03, 4.69606922e-03, 7.22724168e-03, 4.98042925e-03,
              3.20685743e-03}),
    CRDI_ROW(STRICT, true, 1, 0.1,
             {NAN, NAN, 4.75428247e-05, 2.42220294e-04, 6.82056184e-04, 2.44820613e-04}),
    CRDI_ROW(STRICT, true, 2, 0.1,
             {NAN, NAN, 4.78826311e-05, 2.53046493e-04, 6.83244190e-04, 2.45361538e-04}),
    CRDI_ROW(FRESH, false, 0, 0.1,
             {1.22842314e-03, 2.66171492e-03, 4.61408443e-03, 2.05707300e-03, 6.22765783e-03,
              2.80905660e-03}),
    CRDI_ROW(FRESH, false, 1, 0.1,
             {8.76742800e-06, 1.98682890e-05, 2.51540469e-05, 1.16958463e-05, 4.02638069e-05,
              1.89568659e-05}),
    CRDI_ROW(FRESH, false, 2, 0.1,
             {8.18626924e-07, 7.87663511e-08, 1.01818349e-07, 1.22756595e-06, 8.66455440e-07,
              9.39018130e-08}),
    CRDI_ROW(PROGRAM, true, 0, 0.1,
             {1.11063073e-03, 2.67014533e-03, 4.62482738e-03, 1.92366885e-03, 5.52423781e-03,
              2.84832660e-03}),
    CRDI_ROW(PROGRAM, true, 1, 0.1,
             {NAN, NAN, 9.14104155e-04, 3.65729791e-04, 1.94693366e-03, 2.51091526e-04}),
};

static crd_status fixed_steps(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    for (size_t i = 0; i < sizeof fixed_cases / sizeof *fixed_cases; i++) {
        const fixed_case* c = &fixed_cases[i];
        crdi_rotational_result run;
        double ours[NUMBERS];
        char family[64], subject[96], what[64];
        crdi_rotational_run(&(crdi_rotational_options){.scheme = c->scheme,
                                                       .euler = c->euler,
                                                       .m = c->order,
                                                       .n = c->order,
                                                       .step = c->step,
                                                       .until = 1},
                            &run);
        numbers_of(&run, ours);
        snprintf(family, sizeof family, "fixed.%s.%s.n%d.%gms", crd_defect_scheme_name(c->scheme),
                 solver_name(c->euler), c->order, 1e3 * c->step);
        snprintf(subject, sizeof subject, "%s, %s, order %d, H = %g s",
                 crd_defect_scheme_name(c->scheme), solver_name(c->euler), c->order, c->step);
        for (int j = 0; j < NUMBERS; j++) {
            const bool zero = isnan(c->reference[j]);
            snprintf(what, sizeof what, "RMS of the %s", number_names[j]);
            CRD_TRY(crdi_claim_row(
                r, family, number_ids[j], subject, what,
                (crdi_claim){.published = NAN,
                             .ours = ours[j],
                             .reference = zero ? 0 : c->reference[j],
                             // and rounding of outputs that are of the order of 0.1
                             .tolerance = zero ? 1e-15 : 1e-6 * c->reference[j] + 5e-15,
                             .rule = zero ? CRDI_CLAIM_AT_MOST : CRDI_CLAIM_NEAR}));
        }
    }
fail:
    return st;
}

// ---- variable steps ----------------------------------------------------------------------------

enum { STEPS, END, MEAN, MAX, WORST, CON_OMEGA, CON_TAU, ERR_TAU, ERR_OMEGA, COLUMNS };
static const char* const column_ids[COLUMNS] = {"steps",          "end",       "mean_step",
                                                "max_step",       "eps",       "connection.omega",
                                                "connection.tau", "error.tau", "error.omega"};
static const char* const column_names[COLUMNS] = {"steps",
                                                  "end of the last one, s",
                                                  "mean step, s",
                                                  "largest step, s",
                                                  "largest eps over tol",
                                                  "RMS of the connection defect of omega",
                                                  "RMS of the connection defect of tau",
                                                  "RMS of the error of tau",
                                                  "RMS of the error of omega"};

typedef struct variable_case {
    double until;
    crd_defect_scheme scheme;
    bool euler;
    int order;
    double tolerance;
    bool published; // connection defects: printed by the authors' program
    double reference[COLUMNS];
} variable_case;

static const variable_case variable_cases[] = {
    CRDI_ROW(1, STRICT, false, 0, 1e-3, false,
             {108, 1.0148619, 9.3968698e-03, 1.5125196e-02, 0.93348095, 5.4612758e-04,
              8.4570248e-04, 6.4094964e-04, 3.7484147e-04}),
    CRDI_ROW(1, STRICT, false, 0, 1e-2, false,
             {40, 1.0461458, 2.6153645e-02, 7.9021839e-02, 0.46939288, 2.4131156e-03, 3.4919737e-03,
              2.8888845e-03, 1.6246234e-03}),
    CRDI_ROW(1, STRICT, false, 1, 1e-3, false,
             {24, 1.1011229, 4.5880123e-02, 1.3513561e-01, 0.32333328, 2.9079484e-05, 1.9036931e-04,
              3.5752514e-05, 1.9224220e-05}),
    CRDI_ROW(1, STRICT, false, 2, 1e-3, false,
             {17, 1.1171520, 6.5714825e-02, 2.7297609e-01, 1.9455549e-02, 5.4268488e-07,
              1.2924263e-05, 6.8266059e-06, 3.3102278e-07}),
    CRDI_ROW(1, PROGRAM, true, 0, 1e-3, true,
             {84, 1.0143023, 1.2075027e-02, 2.2065535e-02, 0.91293100, 7.7535753e-04, 3.4171017e-04,
              9.2764042e-04, 4.7836147e-04}),
    CRDI_ROW(1, PROGRAM, true, 1, 1e-2, true,
             {17, 1.0333067, 6.0782747e-02, 2.5342701e-01, 2.7008401e-02, 1.6104043e-04,
              4.5240665e-05, 1.1410772e-03, 3.2871987e-04}),
    CRDI_ROW(50, STRICT, false, 0, 1e-3, false,
             {585, 50.488033, 8.6304330e-02, 8.4536947e-01, 1.5326133, 6.2394502e-04, 4.5256414e-04,
              9.0101017e-04, 5.7574347e-04}),
    CRDI_ROW(50, STRICT, false, 1, 1e-3, false,
             {122, 50.433207, 4.1338695e-01, 1.3534578, 1.4654815, 1.2441247e-04, 8.5202273e-04,
              4.5949160e-04, 1.4727884e-04}),
    CRDI_ROW(50, STRICT, false, 2, 1e-3, false,
             {65, 50.102989, 7.7081522e-01, 1.3653699, 2.1916318, 1.1296304e-04, 9.5985184e-04,
              3.7643539e-04, 1.5732722e-04}),
    CRDI_ROW(50, STRICT, false, 1, 1e-2, false,
             {62, 52.134285, 8.4087557e-01, 2.8814483, 1.7067197, 1.0526433e-03, 7.1592759e-03,
              3.5959906e-03, 1.1110613e-03}),
};

static const char* variable_remark(const variable_case* c, int column)
{
    if (column == WORST) {
        return c->until < 2 ? "the controller is still starting: the limit is not exercised"
                            : "nothing is rejected: a limit would be 1";
    }
    if (column == MEAN && c->until > 2) {
        return "grows with the order, where the text says the opposite";
    }
    return "";
}

static crd_status variable_steps(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    for (size_t i = 0; i < sizeof variable_cases / sizeof *variable_cases; i++) {
        const variable_case* c = &variable_cases[i];
        crdi_rotational_result run;
        char family[64], subject[96];
        crdi_rotational_run(&(crdi_rotational_options){.scheme = c->scheme,
                                                       .euler = c->euler,
                                                       .m = c->order,
                                                       .n = c->order,
                                                       .step = 1e-4,
                                                       .tolerance = c->tolerance,
                                                       .until = c->until},
                            &run);
        const double ours[COLUMNS] = {(double)run.steps, run.end,      run.mean_step,
                                      run.max_step,      run.worst,    run.connection[1],
                                      run.connection[0], run.error[0], run.error[1]};
        snprintf(family, sizeof family, "variable.%s.%s.n%d.tol%g.%gs",
                 crd_defect_scheme_name(c->scheme), solver_name(c->euler), c->order, c->tolerance,
                 c->until);
        snprintf(subject, sizeof subject, "%s, %s, order %d, tol = %g, %g s",
                 crd_defect_scheme_name(c->scheme), solver_name(c->euler), c->order, c->tolerance,
                 c->until);
        for (int j = 0; j < COLUMNS; j++) {
            const bool printed = c->published && (j == CON_OMEGA || j == CON_TAU);
            CRD_TRY(crdi_claim_row(r, family, column_ids[j], subject, column_names[j],
                                   CRDI_WITHIN(printed ? c->reference[j] : NAN, ours[j],
                                               c->reference[j], j == STEPS ? 0 : 1e-6,
                                               .remark = printed ? "published: the authors' program"
                                                                 : variable_remark(c, j))));
        }
    }
fail:
    return st;
}

// ---- beyond the paper --------------------------------------------------------------------------

// The paper's best, and the two-point predictor, defects and digital filter, at equal effort.
static crd_status beyond(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    crdi_rotational_result paper, ours;
    crdi_rotational_options o = {
        .scheme = FRESH, .m = 2, .n = 2, .step = 1e-4, .tolerance = 1.7e-5, .until = 50};
    crdi_rotational_run(&o, &paper);
    o.two_point = true;
    o.tolerance = 2e-8;
    crdi_rotational_run(&o, &ours);
    const char* const subject = "fresh, two-point Hermite, H211b, tol = 2e-8, 50 s";
    CRD_TRY(crdi_claim_row(r, "beyond", "steps", subject, "steps",
                           CRDI_AT_MOST(NAN, (double)ours.steps, 130,
                                        .remark = "not in the paper; nothing is rejected")));
    CRD_TRY(crdi_claim_row(r, "beyond", "error", subject, "RMS error of both outputs, of their RMS",
                           CRDI_AT_MOST(NAN, ours.relative, 1e-6, .remark = "not in the paper")));
    CRD_TRY(crdi_claim_row(
        r, "beyond", "paper.steps", "fresh, order 2, PI, tol = 1.7e-5, 50 s", "steps",
        CRDI_NEAR(
            NAN, (double)paper.steps, 114, 0,
            .remark =
                "the paper's method at about equal effort; at tol = 1e-3 it is the better one")));
fail:
    return st;
}

// ---- figures -----------------------------------------------------------------------------------

enum { RESPONSE = 4096, RESPONSE_COLUMNS = 5 };

typedef struct response {
    double* v;
    int64_t rows;
} response;

static void see_response(void* user, double t, double step, const double y[2],
                         const double exact[2])
{
    (void)step;
    response* s = user;
    if (s->rows == RESPONSE) { return; }
    double* row = &s->v[RESPONSE_COLUMNS * s->rows++];
    row[0] = t;
    row[1] = y[0];
    row[2] = exact[0];
    row[3] = y[1];
    row[4] = exact[1];
}

static crd_status draw_response(crdi_reproduction* r, const char* id, const char* title,
                                double tolerance, double* work)
{
    static const char* const names[RESPONSE_COLUMNS] = {"t [s]", "tau [N.m]", "tau, whole system",
                                                        "omega [rad/s]", "omega, whole system"};
    response s = {.v = work};
    crdi_rotational_result run;
    crdi_rotational_run(&(crdi_rotational_options){.scheme = PROGRAM,
                                                   .euler = true,
                                                   .step = 1,
                                                   .tolerance = tolerance,
                                                   .until = 50,
                                                   .see = see_response,
                                                   .user = &s},
                        &run);
    return crdi_figure_add(r, &CRDI_FIGURE(id, title, RESPONSE_COLUMNS, names, s.rows, work));
}

enum { CURVES = 12, SWEEP = 16 }; // both signals, both solvers, orders 0 to 2; 10^-3 ... 10^0

// One figure: the numbers `first` and `first` + 1 (or the mean step) over H or tol.
static crd_status draw_sweep(crdi_reproduction* r, const char* id, const char* title, bool variable,
                             int first, double* v)
{
    const bool mean = first < 0;
    const int signals = mean ? 1 : 2, columns = 1 + 6 * signals;
    char texts[CURVES][48];
    const char* names[CURVES + 1] = {variable ? "lg tol" : "lg H"};
    for (int c = 0; c < 6 * signals; c++) {
        const int order = c % 3, euler = c / 3 % 2, number = first + c / 6;
        snprintf(texts[c], sizeof texts[c], "%s, order %d%s%s", solver_name(euler), order,
                 mean ? "" : ", ",
                 mean                                        ? ""
                 : number % 2 ^ (number == 2 || number == 3) ? "omega"
                                                             : "tau");
        names[c + 1] = texts[c];
        for (int i = 0; i < SWEEP; i++) {
            const double x = -3 + 0.2 * i;
            crdi_rotational_result run;
            double all[NUMBERS];
            crdi_rotational_run(&(crdi_rotational_options){.scheme = PROGRAM,
                                                           .euler = euler,
                                                           .m = order,
                                                           .n = order,
                                                           .step = variable ? 1e-4 : pow(10, x),
                                                           .tolerance = variable ? pow(10, x) : 0,
                                                           .until = 1},
                                &run);
            numbers_of(&run, all);
            v[i * columns] = x;
            v[i * columns + 1 + c] = mean ? run.mean_step : fmax(all[number], 1e-18);
        }
    }
    return crdi_figure_add(r, &CRDI_FIGURE(id, title, columns, names, SWEEP, v, .log_y = true));
}

static crd_status figures(crdi_reproduction* r)
{
    static const struct {
        const char *id, *title;
        bool variable;
        int first;
    } sweeps[] = {
        {"fig5a", "Figure 5a: output defects, fixed steps", false, 0},
        {"fig5b", "Figure 5b: connection defects, fixed steps", false, 2},
        {"fig6", "Figure 6: errors, fixed steps", false, 4},
        {"fig7", "Figure 7: output defects, variable steps", true, 0},
        {"fig8", "Figure 8: connection defects, variable steps", true, 2},
        {"fig9", "Figure 9: errors, variable steps", true, 4},
        {"fig10", "Figure 10: mean step, variable steps", true, -1},
    };
    crd_status st = CRD_OK;
    double* v = crdi_arena_new(&r->arena, (size_t)RESPONSE * RESPONSE_COLUMNS, sizeof *v);
    if (!v) { return CRD_E_MEMORY; }
    CRD_TRY(draw_response(r, "fig4a", "Figure 4a: fixed step of 1 s", 0, v));
    CRD_TRY(draw_response(r, "fig4b", "Figure 4b: variable step, tol = 0.005", 0.005, v));
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++) {
        CRD_TRY(
            draw_sweep(r, sweeps[i].id, sweeps[i].title, sweeps[i].variable, sweeps[i].first, v));
    }
fail:
    return st;
}

crd_status crdi_reproduce_glumac2023(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    r->paper = "Glumac, Kovacic 2023: Defect Analysis of a Non-Iterative Co-Simulation, "
               "Mathematics 11, 1342";
    CRD_TRY(orders(r));
    CRD_TRY(fixed_steps(r));
    CRD_TRY(variable_steps(r));
    CRD_TRY(beyond(r));
    CRD_TRY(figures(r));
fail:
    return st;
}
