#include "coupling/networks.h"
#include "shared/base.h"
#include "shared/coupling.h"

#include <string.h>

crd_status crdi_networks_init(crdi_networks* x, crd_context* ctx, const crd_network* from,
                              int k_max)
{
    crd_status st = CRD_OK;
    *x = (crdi_networks){.rows = k_max + 2};
    x->room = CRD_NETWORK_ROOM;
    if (crdi_network_has_shape(from) && crdi_network_weights(from) > x->room) {
        x->room = crdi_network_weights(from);
    }
    for (int i = 0; i < CRDI_NETWORKS; i++) {
        CRD_TRY(crdi_network_copy(ctx, from, CRD_NETWORK_ROOM, &x->slot[i]));
    }
    x->said = crdi_new_array(ctx, 2 * (size_t)x->rows, sizeof *x->said);
    x->said_for = crdi_new_array(ctx, (size_t)x->rows, sizeof *x->said_for);
    if (!x->said || !x->said_for) { return CRD_E_MEMORY; }
    crdi_networks_reset(x);
fail:
    return st;
}

void crdi_networks_clear(crdi_networks* x, crd_context* ctx)
{
    for (int i = 0; i < CRDI_NETWORKS; i++) {
        crd_network_clear(ctx, &x->slot[i]);
    }
    crd_free(ctx, x->said);
    crd_free(ctx, x->said_for);
}

void crdi_networks_reset(crdi_networks* x)
{
    x->in_use = x->rival = x->leaving = 0;
    x->arriving = false;
    x->trial = 0;
    crdi_networks_forget(x);
}

void crdi_networks_forget(crdi_networks* x)
{
    for (int i = 0; i < x->rows; i++) {
        x->said_for[i] = -1;
    }
}

bool crdi_networks_fits(const crdi_networks* x, const crd_network* n)
{
    return crdi_network_has_shape(n) && n->m <= x->slot[0].m &&
           crdi_network_weights(n) <= x->room && crdi_network_is_sane(n);
}

// One of those that were made in create but are not needed now. The first is kept for the reset.
static int unused_slot(const crdi_networks* x)
{
    int i = 1;
    while (i == x->in_use || i == x->rival || (x->arriving && i == x->leaving)) {
        i++;
    }
    return i;
}

void crdi_networks_take(crdi_networks* x, const crd_network* n, int trial, bool* rolled_back)
{
    const bool on_trial = x->trial > 0;
    *rolled_back = on_trial && x->rival_loss < x->loss;
    // Who was still on trial and has not been better is no measure for the next one.
    if (!on_trial || x->loss < x->rival_loss) { x->rival = x->in_use; }
    if (!x->arriving) { x->leaving = x->in_use; }
    x->arriving = true;
    // In use, rival and leaving are two at most here: who is both in use and arriving never spoke.
    x->in_use = x->leaving;
    x->in_use = unused_slot(x);
    crdi_network_set(&x->slot[x->in_use], n);
    x->trial = trial > 0 ? trial : 0;
    x->loss = x->rival_loss = 0;
    crdi_networks_forget(x);
}

// What would have come out of an element with this network.
static crd_real networks_predict(const crd_network* n, const crd_real* y)
{
    const crd_real p = crd_network_eval(n, y);
    return crdi_is_prediction(p, 0) ? p : y[0];
}

void crdi_networks_predict(crdi_networks* x, const crd_real* y, int64_t target)
{
    const int row = (int)(target % x->rows);
    // An FMU is asked at the end of a step, and once more, a sample younger, at the start of the
    // next one: what was said first is what was used.
    if (x->said_for[row] == target) { return; }
    x->said[2 * row] = networks_predict(&x->slot[x->in_use], y);
    x->said[2 * row + 1] = networks_predict(&x->slot[x->rival], y);
    x->said_for[row] = target;
}

bool crdi_networks_score(crdi_networks* x, const crd_real* y, const bool real[2], int64_t count,
                         crd_real lift)
{
    for (int i = 0; i < 2 * x->rows && lift != 0; i++) {
        x->said[i] += lift; // it was said of the level before the jump
    }
    // Also the sample before: of latency 0, it was said after that one had come.
    for (int age = 1; age >= 0 && x->trial > 0; age--) {
        const int row = (int)((count - age) % x->rows);
        if (x->said_for[row] != count - age) { continue; }
        x->said_for[row] = -1;
        if (!real[age]) { continue; }
        const crd_real error = y[age] - x->said[2 * row], rival = y[age] - x->said[2 * row + 1];
        x->loss += error * error;
        x->rival_loss += rival * rival;
        x->trial--;
        if (x->trial == 0 && x->rival_loss < x->loss) {
            if (!x->arriving) { x->leaving = x->in_use; }
            x->in_use = x->rival;
            x->arriving = true;
            return true;
        }
    }
    return false;
}
