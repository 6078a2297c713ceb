// Commands on top of a pair: the waves that a side has sent are commands, the waves that come back
// answer to them. What answers is learned over the whole round trip while the pair holds the loop.
#include <math.h>

#include "shared/coupling.h"

static const double learning = 5;   // s, before it may take over
static const double memory = 0.995; // of both errors, per packet
static const double better = 0.25;  // squared error over that of what has arrived, to take over

crd_status crdi_pair_over_init(crd_context* ctx, crdi_pair_over* o, double macro, double start)
{
    crd_coupling_options opt = crd_coupling_defaults();
    *o = (crdi_pair_over){.macro = macro, .start = start};
    opt.step = macro;
    opt.start_time = start;
    opt.k_max = CRDI_PAIR_OVER_RING - 1;
    opt.algorithm = CRD_ALGORITHM_COMMANDS;
    opt.commands = 1;
    opt.command_mixture = false; // the pair is what it falls back to
    opt.detection = CRD_DETECT_NONE;
    return crd_coupling_create(ctx, &opt, &o->element);
}

// b f - e comes to the side that owns the flow and b f + e to the other; each sends the other one.
static double wave(const crd_pair_port* p, double effort, double flow, double direction)
{
    return p->b * flow + direction * (p->opt.side == CRD_PAIR_OWNS_FLOW ? -effort : effort);
}

// It answers to the packet that the other side had in use, which the echo tells.
void crdi_pair_over_receive(crdi_pair_over* o, const crd_pair_port* p, const crd_pair_packet* k)
{
    if (k->echo == 0) { return; }
    const double answer = wave(p, k->effort, k->flow, 1);
    const int64_t m = llround((k->echo - o->start) / o->macro) - 1;
    crd_coupling_push(o->element, answer, o->start + (double)m * o->macro, m);
    if (m <= 0 || m > o->n || o->n - m >= CRDI_PAIR_OVER_RING) { return; }
    const double e = o->predicted[m % CRDI_PAIR_OVER_RING] - answer;
    const double late = o->late[m % CRDI_PAIR_OVER_RING] - answer;
    o->error = memory * o->error + e * e;
    o->error_late = memory * o->error_late + late * late;
}

void crdi_pair_over_begin(crdi_pair_over* o, crd_pair_port* p, double t)
{
    const double answer = crd_coupling_eval(o->element, t);
    o->predicted[o->n % CRDI_PAIR_OVER_RING] = answer;
    o->late[o->n % CRDI_PAIR_OVER_RING] = wave(p, p->far_effort, p->far_flow, 1);
    const bool use = t - o->start > learning && o->error < better * o->error_late;
    o->used += use;
    crd_pair_predict(p, use ? 0 : NAN, answer / p->b);
}

void crdi_pair_over_sent(crdi_pair_over* o, const crd_pair_port* p, const crd_pair_packet* k)
{
    const double sent = wave(p, k->effort, k->flow, -1);
    crd_coupling_command(o->element, &sent, k->time);
    o->n++;
}

// ---- signs -------------------------------------------------------------------------------------

void crdi_pair_answer_note(crdi_pair_answer* a, const crd_pair_port* p, double mean)
{
    const double bent = mean - p->own, x = p->action - a->action, y = bent - a->bent;
    a->bent = bent;
    a->action = p->action;
    if (p->count.steps < 3 || x == 0) { return; }
    a->xx += x * x;
    a->yy += y * y;
    a->xy += p->opt.side == CRD_PAIR_OWNS_FLOW ? -x * y : x * y;
    a->count++;
}

double crdi_pair_answer_of(const crdi_pair_answer* a)
{
    enum { ENOUGH = 30 };
    if (a->count < ENOUGH || !(a->xx > 0 && a->yy > 0)) { return 0; }
    const double r = a->xy / sqrt(a->xx) / sqrt(a->yy);
    return isfinite(r) ? fmax(-1, fmin(1, r)) : 0; // of squares that are no numbers any more
}
