// Networks that take over from each other while the element runs.
#pragma once
#include "coupling/coupling.h"

enum { CRDI_NETWORKS = 4 };

typedef struct crdi_networks {
    crd_network slot[CRDI_NETWORKS]; // the first is the one of create
    size_t room;                     // weights that each has room for
    int in_use;
    int rival;                 // has to be beaten by the one in use while `trial` > 0
    int leaving;               // was in use before it; while `arriving`
    bool arriving;             // the one in use has made no prediction yet
    int trial;                 // samples that are still to be compared
    crd_real loss, rival_loss; // sums of squared errors so far
    int rows;                  // k_max + 2
    crd_real* said;            // (rows x 2) by the one in use and the rival
    int64_t* said_for;         // (rows) the sample meant, -1 none
} crdi_networks;

crd_status crdi_networks_init(crdi_networks* x, crd_context* ctx, const crd_network* from,
                              int k_max);
void crdi_networks_clear(crdi_networks* x, crd_context* ctx);
void crdi_networks_reset(crdi_networks* x);
/// What was said is of no use any more: the samples are counted anew.
void crdi_networks_forget(crdi_networks* x);
/// `n` is in use from now on; `*rolled_back` if the trial of the one before it ended because of
/// that and it had been worse. `n` fits, see crdi_networks_fits.
void crdi_networks_take(crdi_networks* x, const crd_network* n, int trial, bool* rolled_back);
/// There is room for it, all numbers are finite.
bool crdi_networks_fits(const crdi_networks* x, const crd_network* n);
/// While on trial: predictions of sample number `target` from the newest samples y.
void crdi_networks_predict(crdi_networks* x, const crd_real* y, int64_t target);
/// While on trial: sample number `count` is y[0]; `real[i]`: y[i] arrived, was not filled. `lift`
/// is what a re-based jump has added to all older samples. true: the rival is back in use.
bool crdi_networks_score(crdi_networks* x, const crd_real* y, const bool real[2], int64_t count,
                         crd_real lift);
