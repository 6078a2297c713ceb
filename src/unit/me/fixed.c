// Steps of fixed length for real time: no allocation, and work that is known beforehand. The grid
// of inner steps divides the communication step. A state event is located by bisection on the
// polynomial through both ends of its inner step (a line for Euler, Hermite's cubic for
// Runge-Kutta), a time event shortens its inner step; after either the grid goes on as before.
#include <math.h>

#include "unit/me/me_unit.h"

enum { BISECTIONS = 40 };

static const char help[] = "a shorter step of the solver may help";

crd_status crdi_me_fixed_create(crdi_me_unit* u)
{
    const size_t n = (size_t)u->n;
    double* room = crdi_arena_new(&u->memory, 6 * n, sizeof *room);
    if (!room) { return CRD_E_MEMORY; }
    for (int i = 0; i < 4; i++) {
        u->k[i] = room + (size_t)i * n;
    }
    u->from = room + 4 * n;
    u->work = room + 5 * n;
    return CRD_OK;
}

static void go(const crdi_me_unit* u, double h, const double* slope, double* to)
{
    for (int32_t i = 0; i < u->n; i++) {
        to[i] = u->from[i] + h * slope[i];
    }
}

static crdi_me_point euler(crdi_me_unit* u, double t, double h)
{
    const crdi_me_point at = crdi_me_derivatives(u, t, u->from, u->k[0]);
    if (at == CRDI_ME_DONE) { go(u, h, u->k[0], u->x); }
    return at;
}

// The classical method of order 4.
static crdi_me_point runge_kutta(crdi_me_unit* u, double t, double h)
{
    double** k = u->k;
    crdi_me_point at = crdi_me_derivatives(u, t, u->from, k[0]);
    if (at != CRDI_ME_DONE) { return at; }
    go(u, 0.5 * h, k[0], u->work);
    at = crdi_me_derivatives(u, t + 0.5 * h, u->work, k[1]);
    if (at != CRDI_ME_DONE) { return at; }
    go(u, 0.5 * h, k[1], u->work);
    at = crdi_me_derivatives(u, t + 0.5 * h, u->work, k[2]);
    if (at != CRDI_ME_DONE) { return at; }
    go(u, h, k[2], u->work);
    at = crdi_me_derivatives(u, t + h, u->work, k[3]);
    if (at != CRDI_ME_DONE) { return at; }
    for (int32_t i = 0; i < u->n; i++) {
        u->x[i] = u->from[i] + h / 6 * (k[0][i] + 2 * (k[1][i] + k[2][i]) + k[3][i]);
    }
    return CRDI_ME_DONE;
}

// The states at t + s h, 0 <= s <= 1, into u->work; k[1] has the slope at the end for the cubic.
static void between(crdi_me_unit* u, double h, double s)
{
    if (u->method == CRD_SOLVER_EULER) {
        go(u, s * h, u->k[0], u->work);
        return;
    }
    const double r = 1 - s;
    for (int32_t i = 0; i < u->n; i++) {
        const double a = u->from[i], b = u->x[i];
        u->work[i] = r * r * (1 + 2 * s) * a + s * s * (3 - 2 * s) * b +
                     s * r * h * (r * u->k[0][i] - s * u->k[1][i]);
    }
}

// The first time when an indicator has left its domain, within h / 2^BISECTIONS.
static crdi_me_point locate(crdi_me_unit* u, double t, double h)
{
    double low = 0, high = 1;
    crdi_me_point at = CRDI_ME_DONE;
    if (u->method == CRD_SOLVER_RK4) {
        at = crdi_me_derivatives(u, t + h, u->x, u->k[1]);
        if (at != CRDI_ME_DONE) { return at; }
    }
    for (int i = 0; i < BISECTIONS; i++) {
        const double s = 0.5 * (low + high);
        between(u, h, s);
        at = crdi_me_indicators(u, t + s * h, u->work);
        if (at != CRDI_ME_DONE) { return at; }
        if (crdi_me_left_domain(u)) {
            high = s;
        } else {
            low = s;
        }
    }
    if (high < 1) {
        between(u, h, high);
        for (int32_t i = 0; i < u->n; i++) {
            u->x[i] = u->work[i];
        }
        u->t = t + high * h;
    }
    return CRDI_ME_DONE;
}

crd_status crdi_me_fixed_advance(crdi_me_unit* u, double target, bool* event)
{
    const double t = u->t;
    // ends of inner steps are counted from the beginning: a sum would drift
    double end = target;
    while (u->grid_at < u->grid - 1) {
        end = u->begin + u->h * (u->grid_at + 1) / u->grid;
        if (end > t) { break; }
        u->grid_at++;
        end = target;
    }
    if (end > target) { end = target; }
    for (int32_t i = 0; i < u->n; i++) {
        u->from[i] = u->x[i];
    }
    const double h = end - t;
    u->t = end;
    crdi_me_point at = u->method == CRD_SOLVER_EULER ? euler(u, t, h) : runge_kutta(u, t, h);
    if (at == CRDI_ME_DONE && u->nz) {
        at = crdi_me_indicators(u, end, u->x);
        *event = at == CRDI_ME_DONE && crdi_me_left_domain(u);
        if (*event) { at = locate(u, t, h); }
    }
    return at == CRDI_ME_DONE ? CRD_OK : crdi_me_fail_point(u, t, help);
}
