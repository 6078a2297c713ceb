// From one jump of the inputs to the next. A multistep method has to begin anew at every jump, at
// order 1 and with many short steps, and adds up their errors. Where inputs are held and the
// communication step is short, one step of a Runge-Kutta pair of order 5(4) (Dormand, Prince 1980)
// does it in seven evaluations and with an error far below the tolerance. If its estimate says
// otherwise, CVODE does it: the model is stiff, or the step long.
#include <math.h>
#include <string.h>

#include "unit/me/me_unit.h"

enum { STAGES = 7, MOST_SKIPPED = 256 };

// The estimate has to stay that far below the tolerance: there are many such steps.
static const double PART = 0.01;

static const double nodes[STAGES] = {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1};
static const double weights[STAGES][STAGES - 1] = {
    {0},
    {1.0 / 5},
    {3.0 / 40, 9.0 / 40},
    {44.0 / 45, -56.0 / 15, 32.0 / 9},
    {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
    {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
    {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84},
};
// order 5 minus order 4
static const double errors[STAGES] = {71.0 / 57600,      0,          -71.0 / 16695, 71.0 / 1920,
                                      -17253.0 / 339200, 22.0 / 525, -1.0 / 40};

crd_status crdi_me_bridge_create(crdi_me_unit* u)
{
    const size_t n = (size_t)u->n;
    u->stages = crdi_arena_new(&u->memory, (STAGES + 1) * n, sizeof *u->stages);
    u->skip = u->skipped = 0;
    return u->stages ? CRD_OK : CRD_E_MEMORY;
}

// The states of stage s, and after the last one of the end, into `y`.
static void combine(const crdi_me_unit* u, int s, double h, double* y)
{
    for (int32_t i = 0; i < u->n; i++) {
        double sum = 0;
        for (int j = 0; j < s; j++) {
            sum += weights[s][j] * u->stages[j * u->n + i];
        }
        y[i] = u->x[i] + h * sum;
    }
}

// Root mean square of the estimate, in tolerances.
static double estimate(const crdi_me_unit* u, double h, const double* y)
{
    double sum = 0;
    for (int32_t i = 0; i < u->n; i++) {
        double e = 0;
        for (int j = 0; j < STAGES; j++) {
            e += errors[j] * u->stages[j * u->n + i];
        }
        const double size = fmax(fabs(u->x[i]), fabs(y[i]));
        const double nominal = u->nx ? u->nominal[i] : 1;
        e *= h / (u->relative * size + u->absolute * nominal);
        sum += e * e;
    }
    return sqrt(sum / u->n);
}

// CVODE locates events. In the middle, on the cubic through both ends, one is looked for as well:
// an indicator that is back at the end has not been there unseen for long.
static crdi_me_point look_for_events(crdi_me_unit* u, double target, const double* y, bool* good)
{
    const double h = target - u->t;
    const double *begin = u->stages, *end = u->stages + (STAGES - 1) * u->n; // slopes
    double* middle = u->stages + u->n;                                       // no longer needed
    for (int32_t i = 0; i < u->n; i++) {
        middle[i] = 0.5 * (u->x[i] + y[i]) + 0.125 * h * (begin[i] - end[i]);
    }
    crdi_me_point at = crdi_me_indicators(u, u->t + 0.5 * h, middle);
    *good = at == CRDI_ME_DONE && !crdi_me_left_domain(u);
    if (*good) {
        at = crdi_me_indicators(u, target, y);
        *good = at == CRDI_ME_DONE && !crdi_me_left_domain(u);
    }
    return at;
}

static crdi_me_point attempt(crdi_me_unit* u, double target, double* y, bool* good)
{
    const double h = target - u->t;
    crdi_me_point at = crdi_me_derivatives(u, u->t, u->x, u->stages);
    for (int s = 1; s < STAGES && at == CRDI_ME_DONE; s++) {
        combine(u, s, h, y);
        at = crdi_me_derivatives(u, u->t + nodes[s] * h, y, u->stages + s * u->n);
    }
    if (at != CRDI_ME_DONE) { return at; }
    *good = estimate(u, h, y) <= PART; // false for NaN
    if (*good && u->nz) { at = look_for_events(u, target, y, good); }
    return at;
}

crd_status crdi_me_bridge(crdi_me_unit* u, double target, bool* done)
{
    const double longest = u->base.base.spec->solver.step;
    double* y = u->stages + STAGES * u->n;
    bool good = false;
    *done = false;
    if (longest > 0 && target - u->t > longest * (1 + 1e-9)) { return CRD_OK; }
    if (u->skip > 0) { // it was in vain before
        u->skip--;
        return CRD_OK;
    }
    if (attempt(u, target, y, &good) == CRDI_ME_FAILED) { return crdi_me_fail_point(u, u->t, ""); }
    if (!good) {
        u->skipped = u->skipped ? 2 * u->skipped : 1;
        if (u->skipped > MOST_SKIPPED) { u->skipped = MOST_SKIPPED; }
        u->skip = u->skipped;
        return CRD_OK;
    }
    u->skipped = 0;
    memcpy(u->x, y, (size_t)u->n * sizeof *y);
    u->t = target;
    u->restart = *done = true;
    return CRD_OK;
}
