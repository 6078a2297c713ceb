// The commands on the grid of the macro steps, and what the answer to them is made of.
//
//   of a command u_a:    u[n], u[n-1], u[n-2], LP30, LP100 (and LP300 if there are one or two)
//   of u_a u_b, a < b, and u_a |u_a|:  LP30, LP100
//   of u_a at its rate:  V, LP30 of V;  V[n+1] = V[n] + clip(u[n] - V[n], -rate, rate)
// LPtau[n+1] = LPtau[n] + (1 - exp(-dT/tau)) (u[n] - LPtau[n]) with tau in ms. Raw units: nothing
// is centred or scaled. Fixed poles: weights belong to a macro step, not to a latency.
#pragma once
#include "coupling/coupling.h"

typedef struct crdi_basis {
    int commands, per, count; // features of one command, of all but those at their rates
    int all;                  // with them: two for each command from `count` on
    int64_t rows;             // of the rings, a power of 2; row n is at n % rows
    int64_t newest;           // the window is newest - rows/2 < n < newest + rows/2
    int64_t ready;            // features are there up to this step
    bool any;                 // a command has been told
    crd_real pull[3];         // 1 - exp(-dT/tau)
    crd_real* psi;            // (rows x all)
    crd_real* given;          // (rows x commands) as announced
    int64_t* steps;           // (rows) for this step
    crd_real good[CRD_COMMANDS_MAX];
    crd_real low[CRD_COMMANDS_MAX], high[CRD_COMMANDS_MAX]; // of what has acted
    crd_real rate[CRD_COMMANDS_MAX];                        // per step, of steps to come
    crd_real* rates;                                        // (rows x commands) of this step
    int64_t* rated;                                         // (rows)
    int64_t calls, not_finite, outside;
} crdi_basis;

crd_status crdi_basis_init(crdi_basis* b, crd_context* ctx, const crd_coupling_options* o);
void crdi_basis_clear(crdi_basis* b, crd_context* ctx);
void crdi_basis_reset(crdi_basis* b, double step);
/// The window moves; by more than a few steps, what acted then is what was told last before.
void crdi_basis_move(crdi_basis* b, int64_t newest);
/// The answer has changed by so much of its range in a step at most, up to step n: so do the
/// commands at their rates.
void crdi_basis_set_rate(crdi_basis* b, crd_real part, int64_t n);
void crdi_basis_tell(crdi_basis* b, const double* u, int64_t n);
/// Features at step n of the window; `any` only. Valid until the next call.
const crd_real* crdi_basis_at(crdi_basis* b, int64_t n);
