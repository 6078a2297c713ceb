// Steps by CVODE of SUNDIALS (Hindmarsh et al. 2005): BDF with Newton's method for stiff models,
// Adams with fixed-point iteration for the others. Events are located by CVODE's root finding.
#include <cvode/cvode.h>
#include <math.h>
#include <nvector/nvector_serial.h>
#include <stdio.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunlinsol/sunlinsol_klu.h>
#include <sunmatrix/sunmatrix_dense.h>
#include <sunmatrix/sunmatrix_sparse.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

#include "unit/me/me_unit.h"

struct crdi_me_cvode {
    crd_context* ctx;
    SUNContext context;
    void* memory;
    N_Vector y;         // over u->x
    N_Vector tolerance; // absolute
    N_Vector error, weight;
    SUNMatrix matrix;
    SUNLinearSolver linear;
    SUNNonlinearSolver nonlinear;
    int stands; // steps in a row that did not move time
};

enum { MOST_STANDING = 1000, MOST_DENSE = 20000 };

// ---- the model as CVODE asks for it -------------------------------------------------------------

static int right_hand_side(realtype t, N_Vector y, N_Vector dy, void* user)
{
    return (int)crdi_me_derivatives(user, t, N_VGetArrayPointer(y), N_VGetArrayPointer(dy));
}

static int roots(realtype t, N_Vector y, realtype* g, void* user)
{
    crdi_me_unit* u = user;
    if (crdi_me_indicators(u, t, N_VGetArrayPointer(y)) != CRDI_ME_DONE) { return -1; }
    for (int32_t k = 0; k < u->nz; k++) {
        g[k] = crdi_me_beyond(u, k);
        // CVODE divides by them: what is infinite would not be seen, nor what comes after a NaN
        if (isinf(g[k])) { g[k] = copysign(1e300, g[k]); }
        if (isnan(g[k])) { g[k] = u->domain[k]; }
    }
    return 0;
}

// One column of a group: its part of what the group gave.
static void put_column(const crdi_me_unit* u, SUNMatrix m, int32_t j, const double* sum,
                       const double* base, double scale)
{
    const crdi_me_pattern* p = &u->pattern;
    const bool sparse = SUNMatGetID(m) == SUNMATRIX_SPARSE;
    const int32_t count = p->known ? p->first[j + 1] - p->first[j] : u->nx;
    double* to = sparse ? SM_DATA_S(m) + p->first[j] : SM_COLUMN_D(m, j);
    for (int32_t k = 0; k < count; k++) {
        const int32_t i = p->known ? p->rows[p->first[j] + k] : k;
        to[sparse ? k : i] = (sum[i] - (base ? base[i] : 0)) * scale;
    }
}

static void put_structure(const crdi_me_unit* u, SUNMatrix m)
{
    const crdi_me_pattern* p = &u->pattern;
    for (int32_t j = 0; j <= u->nx; j++) {
        SM_INDEXPTRS_S(m)[j] = p->first[j];
    }
    for (int32_t k = 0; k < p->first[u->nx]; k++) {
        SM_INDEXVALS_S(m)[k] = p->rows[k];
    }
}

static int directional_jacobian(crdi_me_unit* u, realtype t, N_Vector y, SUNMatrix m, double* sum)
{
    const crdi_me_pattern* p = &u->pattern;
    const size_t rows = (size_t)u->base.d->exchange.derivatives.count, n = (size_t)u->nx;
    const crdi_me_point at = crdi_me_place(u, t, N_VGetArrayPointer(y));
    if (at != CRDI_ME_DONE) { return (int)at; }
    for (int32_t g = 0; g < p->group_count; g++) {
        for (int32_t k = p->group_first[g]; k < p->group_first[g + 1]; k++) {
            u->seed[p->columns[k]] = 1;
        }
        const crd_status st = crd_fmi_directional_elements(u->base.fmi, u->derivative_refs, rows,
                                                           u->state_refs, rows, u->seed, n, sum, n);
        for (int32_t k = p->group_first[g]; k < p->group_first[g + 1]; k++) {
            u->seed[p->columns[k]] = 0;
        }
        if (st < 0) {
            // after a Discard the FMU is where it was
            const bool retry = crd_fmi_get_state(u->base.fmi) == CRD_FMI_CONTINUOUS;
            if (!retry) { u->failed = st; }
            return retry ? CRDI_ME_RETRY : CRDI_ME_FAILED;
        }
        for (int32_t k = p->group_first[g]; k < p->group_first[g + 1]; k++) {
            put_column(u, m, p->columns[k], sum, NULL, 1);
        }
    }
    return 0;
}

// Difference quotients, a group of columns with one evaluation. Increments as CVODE takes them for
// dense matrices.
static int difference_jacobian(crdi_me_unit* u, realtype t, N_Vector y, N_Vector f, SUNMatrix m,
                               N_Vector moved, N_Vector sum, N_Vector step)
{
    const crdi_me_pattern* p = &u->pattern;
    crdi_me_cvode* c = u->cvode;
    const double* y0 = N_VGetArrayPointer(y);
    double* y1 = N_VGetArrayPointer(moved);
    double* d = N_VGetArrayPointer(step);
    const double* w = N_VGetArrayPointer(c->weight);
    realtype h = 0;
    CVodeGetErrWeights(c->memory, c->weight);
    CVodeGetCurrentStep(c->memory, &h);
    const double norm = N_VWrmsNorm(f, c->weight);
    const double least = norm != 0 ? 1000 * fabs(h) * SUN_UNIT_ROUNDOFF * u->nx * norm : 1;
    for (int32_t j = 0; j < u->nx; j++) {
        y1[j] = y0[j];
        d[j] = fmax(sqrt(SUN_UNIT_ROUNDOFF) * fabs(y0[j]), least / w[j]);
    }
    for (int32_t g = 0; g < p->group_count; g++) {
        for (int32_t k = p->group_first[g]; k < p->group_first[g + 1]; k++) {
            y1[p->columns[k]] += d[p->columns[k]];
        }
        const crdi_me_point at = crdi_me_derivatives(u, t, y1, N_VGetArrayPointer(sum));
        if (at != CRDI_ME_DONE) { return (int)at; }
        for (int32_t k = p->group_first[g]; k < p->group_first[g + 1]; k++) {
            const int32_t j = p->columns[k];
            put_column(u, m, j, N_VGetArrayPointer(sum), N_VGetArrayPointer(f), 1 / d[j]);
            y1[j] = y0[j];
        }
    }
    return 0;
}

static int jacobian(realtype t, N_Vector y, N_Vector f, SUNMatrix m, void* user, N_Vector a,
                    N_Vector b, N_Vector c)
{
    crdi_me_unit* u = user;
    if (SUNMatGetID(m) == SUNMATRIX_SPARSE) { put_structure(u, m); }
    return u->state_refs ? directional_jacobian(u, t, y, m, N_VGetArrayPointer(a))
                         : difference_jacobian(u, t, y, f, m, a, b, c);
}

static void cvode_keep_text(int code, const char* module, const char* function, char* text,
                            void* user)
{
    (void)code, (void)module, (void)function;
    crdi_me_unit* u = user;
    snprintf(u->text, sizeof u->text, "%s", text);
}

// ---- making it ---------------------------------------------------------------------------------

// References of all states and their derivatives, if directional derivatives can be asked for.
static crd_status list_references(crdi_me_unit* u)
{
    const crd_fmu_model_exchange* x = &u->base.d->exchange;
    const crd_unit* unit = &u->base.base;
    const size_t rows = (size_t)x->derivatives.count;
    u->state_refs = NULL;
    if (!x->provides_directional_derivatives || !u->nx) { return CRD_OK; }
    for (size_t r = 0; r < rows; r++) {
        if (x->states[r] < 0) { return CRD_OK; }
    }
    uint32_t* refs = crdi_arena_new(&u->memory, 2 * rows, sizeof *refs);
    u->seed = crdi_arena_new(&u->memory, (size_t)u->nx, sizeof *u->seed);
    if (!refs || !u->seed) { return CRD_E_MEMORY; }
    for (size_t r = 0; r < rows; r++) {
        refs[r] = crdi_fmi_unit_reference(unit, x->states[r]);
        refs[rows + r] = crdi_fmi_unit_reference(unit, x->derivatives.unknown[r]);
    }
    u->state_refs = refs;
    u->derivative_refs = refs + rows;
    return CRD_OK;
}

static bool make_newton(crdi_me_unit* u, crdi_me_cvode* c)
{
    const bool sparse = crdi_me_is_sparse(u);
    if (sparse) {
        c->matrix = SUNSparseMatrix(u->n, u->n, u->pattern.first[u->nx], CSC_MAT, c->context);
        if (c->matrix) { put_structure(u, c->matrix); } // KLU looks at it before it has numbers
        c->linear = c->matrix ? SUNLinSol_KLU(c->y, c->matrix, c->context) : NULL;
    } else {
        c->matrix = SUNDenseMatrix(u->n, u->n, c->context);
        c->linear = c->matrix ? SUNLinSol_Dense(c->y, c->matrix, c->context) : NULL;
    }
    // Without structure and derivatives CVODE's own quotients do.
    const bool own = u->nx && (u->state_refs || u->pattern.known);
    return c->linear && CVodeSetLinearSolver(c->memory, c->linear, c->matrix) == CV_SUCCESS &&
           (!own || CVodeSetJacFn(c->memory, jacobian) == CV_SUCCESS);
}

static bool make_fixed_point(crdi_me_cvode* c)
{
    c->nonlinear = SUNNonlinSol_FixedPoint(c->y, 0, c->context);
    return c->nonlinear && CVodeSetNonlinearSolver(c->memory, c->nonlinear) == CV_SUCCESS;
}

static bool cvode_make(crdi_me_unit* u, crdi_me_cvode* c)
{
    const bool stiff = u->method == CRD_SOLVER_BDF;
    if (SUNContext_Create(NULL, &c->context) != 0) { return false; }
    c->y = N_VMake_Serial(u->n, u->x, c->context);
    c->tolerance = N_VNew_Serial(u->n, c->context);
    c->error = N_VNew_Serial(u->n, c->context);
    c->weight = N_VNew_Serial(u->n, c->context);
    c->memory = CVodeCreate(stiff ? CV_BDF : CV_ADAMS, c->context);
    if (!c->y || !c->tolerance || !c->error || !c->weight || !c->memory) { return false; }
    N_VConst(1, c->tolerance);
    const double longest = u->base.base.spec->solver.step;
    return CVodeSetErrHandlerFn(c->memory, cvode_keep_text, u) == CV_SUCCESS &&
           CVodeInit(c->memory, right_hand_side, 0, c->y) == CV_SUCCESS &&
           CVodeSetUserData(c->memory, u) == CV_SUCCESS &&
           CVodeSVtolerances(c->memory, 1e-6, c->tolerance) == CV_SUCCESS &&
           CVodeSetMaxHnilWarns(c->memory, -1) == CV_SUCCESS &&
           (!u->nz || (CVodeRootInit(c->memory, u->nz, roots) == CV_SUCCESS &&
                       CVodeSetNoInactiveRootWarn(c->memory) == CV_SUCCESS)) &&
           (!(longest > 0) || CVodeSetMaxStep(c->memory, longest) == CV_SUCCESS) &&
           (stiff ? make_newton(u, c) : make_fixed_point(c));
}

crd_status crdi_me_cvode_create(crdi_me_unit* u)
{
    crd_context* ctx = u->base.base.ctx;
    crd_status st = CRD_OK;
    if (u->method == CRD_SOLVER_BDF) {
        CRD_TRY(crdi_me_find_pattern(u));
        CRD_TRY(list_references(u));
        if (u->nx > MOST_DENSE && !crdi_me_is_sparse(u)) {
            return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                             "%d states without the dependencies of their derivatives need a dense "
                             "Jacobian, which is possible up to %d states; take the solver adams, "
                             "rk4 or euler, or an FMU whose ModelStructure has dependencies",
                             (int)u->nx, MOST_DENSE);
        }
    }
    crdi_me_cvode* c = crdi_new(ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->ctx = ctx;
    u->cvode = c;
    u->text[0] = 0;
    if (!cvode_make(u, c)) {
        return crdi_fail(ctx, CRD_E_MEMORY, "out of memory for a solver of %d states%s%s",
                         (int)u->nx, u->text[0] ? ": " : "", u->text);
    }
fail:
    return st;
}

void crdi_me_cvode_destroy(crdi_me_cvode* c)
{
    if (!c) { return; }
    if (c->memory) { CVodeFree(&c->memory); }
    if (c->linear) { SUNLinSolFree(c->linear); }
    if (c->nonlinear) { SUNNonlinSolFree(c->nonlinear); }
    if (c->matrix) { SUNMatDestroy(c->matrix); }
    N_Vector vectors[] = {c->y, c->tolerance, c->error, c->weight};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        if (vectors[i]) { N_VDestroy(vectors[i]); }
    }
    if (c->context) { SUNContext_Free(&c->context); }
    crd_free(c->ctx, c);
}

// ---- steps -------------------------------------------------------------------------------------

static const char* reason(int flag)
{
    switch (flag) {
    case CV_TOO_MUCH_ACC:
        return "the tolerances ask for more digits than numbers have";
    case CV_ERR_FAILURE:
        return "the error stays above the tolerance however short the step is";
    case CV_CONV_FAILURE:
        return "the equations of a step have no solution however short it is";
    case CV_LSETUP_FAIL:
    case CV_LSOLVE_FAIL:
    case CV_LINIT_FAIL:
        return "the linear equations of a step cannot be solved";
    case CV_FIRST_RHSFUNC_ERR:
    case CV_REPTD_RHSFUNC_ERR:
    case CV_UNREC_RHSFUNC_ERR:
    case CV_RHSFUNC_FAIL:
        return "the derivatives cannot be computed however short the step is";
    case CV_RTFUNC_FAIL:
        return "the event indicators cannot be computed";
    case CV_TOO_CLOSE:
        return "its steps have become so short that time stands still";
    default:
        return "the solver gave up";
    }
}

// The state that keeps the solver back: the one whose derivative is not finite, else the one with
// the largest weighted error.
static int32_t worst_state(crdi_me_unit* u)
{
    crdi_me_cvode* c = u->cvode;
    int32_t worst = u->bad >= 0 ? u->bad : 0;
    if (u->bad >= 0 || CVodeGetEstLocalErrors(c->memory, c->error) != CV_SUCCESS ||
        CVodeGetErrWeights(c->memory, c->weight) != CV_SUCCESS) {
        return worst;
    }
    const double* e = N_VGetArrayPointer(c->error);
    const double* w = N_VGetArrayPointer(c->weight);
    for (int32_t k = 1; k < u->nx; k++) {
        if (!(fabs(e[k] * w[k]) <= fabs(e[worst] * w[worst]))) { worst = k; }
    }
    return worst;
}

static crd_status gave_up(crdi_me_unit* u, int flag)
{
    crd_context* ctx = u->base.base.ctx;
    const char* method = u->method == CRD_SOLVER_BDF ? "BDF" : "Adams";
    char name[160], state[256] = "";
    if (u->failed < 0) {
        return crdi_fail_in(ctx, u->failed, "in the solver (%s) at t = %.9g", method, u->t);
    }
    if (u->nx) {
        const int32_t k = worst_state(u);
        snprintf(state, sizeof state, "; %s the state '%s' = %g%s",
                 u->bad >= 0 ? "look at" : "most in the way is",
                 crdi_me_state_name(u, k, name, sizeof name), u->x[k],
                 u->bad >= 0    ? ", whose derivative is not finite"
                 : u->discarded ? "; the FMU refused to be computed at some points (Discard)"
                                : "");
    }
    return crdi_fail(ctx, CRD_E_UNIT, "the solver (%s) failed at t = %.9g: %s%s", method, u->t,
                     reason(flag), state);
}

static crd_status begin_anew(crdi_me_unit* u)
{
    crdi_me_cvode* c = u->cvode;
    double* absolute = N_VGetArrayPointer(c->tolerance);
    for (int32_t k = 0; k < u->n; k++) {
        absolute[k] = u->absolute * (u->nx ? u->nominal[k] : 1);
    }
    int flag = CVodeReInit(c->memory, u->t, c->y);
    if (flag == CV_SUCCESS) { flag = CVodeSVtolerances(c->memory, u->relative, c->tolerance); }
    // KLU keeps the order of its pivots, which would show in the last bits
    if (flag == CV_SUCCESS && u->forget && c->matrix &&
        SUNMatGetID(c->matrix) == SUNMATRIX_SPARSE) {
        flag = SUNLinSol_KLUReInit(c->linear, c->matrix, u->pattern.first[u->nx],
                                   SUNKLU_REINIT_PARTIAL);
    }
    u->restart = u->forget = false;
    return flag == CV_SUCCESS ? CRD_OK : gave_up(u, flag);
}

crd_status crdi_me_cvode_advance(crdi_me_unit* u, double target, bool* event)
{
    crdi_me_cvode* c = u->cvode;
    u->failed = CRD_OK;
    u->bad = -1;
    if (u->restart) {
        const crd_status st = begin_anew(u);
        if (st < 0) { return st; }
    }
    const double before = u->t;
    int flag = CVodeSetStopTime(c->memory, target);
    if (flag == CV_SUCCESS) { flag = CVode(c->memory, target, c->y, &u->t, CV_ONE_STEP); }
    if (flag < 0) { return gave_up(u, flag); }
    *event = flag == CV_ROOT_RETURN;
    const bool stands = !*event && u->t - before <= 4 * SUN_UNIT_ROUNDOFF * fabs(u->t);
    c->stands = stands ? c->stands + 1 : 0;
    if (!stands) { u->discarded = false; } // else it is why
    return c->stands < MOST_STANDING ? CRD_OK : gave_up(u, CV_TOO_CLOSE);
}
