/// Which level of prediction (shared/quality_level.h) is best in a loop whose units are known as
/// linear ones: for each level that is stable there, the error that the loop would have if it had
/// always been used, driven by how wrong its predictions of the real signals are. A level that
/// rings or resonates disqualifies itself before it is used, and matrices that are wrong by 20 %
/// do no harm. Pure numerics; init takes memory, steps do not.
#pragma once
#include "shared/quality_level.h"
#include "shared/quality_macro.h"

typedef struct crdi_shadow {
    crdi_macro macro; ///< its own
    crdi_macro_state error[CRDI_LEVELS];
    crdi_macro_state real;     ///< of the levels that were used
    double decay[CRDI_LEVELS]; ///< ln per step, <= 0: what falls no faster stays
    double J[CRDI_LEVELS];     ///< running mean square of the errors, of the signals' sizes
    bool allowed[CRDI_LEVELS];
    int first; ///< level to begin with
    int steps; ///< at the same level
    int young; ///< steps in which the level stays: after a reset, and after a doubt
} crdi_shadow;

/// `of` is a map as crdi_macro_init leaves it, without multi-rate; matrices are copied.
/// CRD_E_MEMORY, CRD_E_CONVERGENCE.
crd_status crdi_shadow_init(crd_arena* arena, const crdi_macro* of, crdi_shadow* s);
/// A step: what each link's prediction at this level missed (level - signal, s = 0 at the
/// beginning of the step; one per link), and 1 / size of its signal.
/// `used`: it was the level of this step.
void crdi_shadow_step(crdi_shadow* s, int level, bool used, const crd_poly* delta,
                      const double* scale);
/// The level to use next, by the errors so far. `rough`: signals ring or have noise; then a level
/// above hold needs half of hold's error not only to come but to stay.
/// A change leaves what the level so far has done: the new one has to be better with that.
int crdi_shadow_choose(crdi_shadow* s, int now, bool rough, const double* scale);
/// The level is clearly better than hold, or hold: errors need not be followed for a while.
bool crdi_shadow_sure(const crdi_shadow* s, int now);
void crdi_shadow_reset(crdi_shadow* s); ///< errors begin anew
