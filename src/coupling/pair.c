// The wave pair with energy tank: one side of a bond.
//
// With e the effort, f the flow, b the impedance, h the inner step:
//     side A owns f, acts with e:  e = b f - q,  q = b fR - eR      (R: received)
//     side B owns e, acts with f:  b f = p - e,  p = b fR + eR
// The sides send e and f, not waves: the steady state is exact for any b, and b may change.
//
// Why no network can make it create energy: each side knows the energy E at its port exactly after
// each inner step and books it in its tank T. With S what a side has granted since the start and R
// the largest S that has been received from it,
//     E_A + E_B = T_A + T_B + (S_A - R_B) + (S_B - R_A) + dumped
// S never decreases and packets carry past values of it, so both brackets are >= 0 for every
// delay, loss, doubling and order; b does not appear. So what is created is at most what the tanks
// are in debt.
//
// Why the debt is bounded: a step pays from half the tank, reckoned with 1.5 times the largest
// surprise so far (own value other than predicted, mean of an inner step), and in debt only what
// absorbs even then is done. So T falls below zero only in a step with a surprise greater than 1.5
// times all before, by less than h |action| surprise. Such surprises grow by 1.5 each, so all of
// them together, for ever, are at most 1/(1 - 1/1.5) = 3 times the last:
//     debt <= 3 h (largest action) (largest surprise),   and 0 if the largest is given and true.
#include <math.h>

#include "cardan/pair.h"
#include "shared/base.h"

static const double huge = 1e100;       // numbers above are no physics; their squares are finite
static const double sync_time = 1;      // s, in which a drift of the integrals is made good
static const double sync_delay = 0.03;  // s, above it the correction costs more than it mends
static const double patience = 1;       // s of silence after which another life is believed
static const double doubted = 1.5;      // times the largest surprise so far is reckoned with
static const double clock_error = 1e-6; // s: rounding of times since 1970
static const double delay_guess = 0.1;  // s, before anything has come back

static bool sane(double x)
{
    return fabs(x) < huge; // false for NaN
}

static double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

crd_pair_options crd_pair_defaults(crd_pair_side side)
{
    return (crd_pair_options){.side = side, .run = 1};
}

static crd_status check_options(crd_context* ctx, const crd_pair_options* o)
{
    if (!(o->step > 0 && sane(o->step))) {
        return crdi_fail(ctx, CRD_E_RANGE, "pair: inner step = %g s, expected > 0", o->step);
    }
    if (!(o->macro >= o->step * (1 - 1e-9) && sane(o->macro))) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "pair: macro step = %g s, expected at least the inner step, %g s",
                         o->macro, o->step);
    }
    if (!(o->impedance >= 0 && sane(o->impedance))) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "pair: impedance = %g, expected > 0 in effort per flow, or 0 to learn it",
                         o->impedance);
    }
    if (!(o->reaction >= 0 && sane(o->reaction))) {
        return crdi_fail(ctx, CRD_E_RANGE, "pair: reaction = %g, expected > 0, or 0 to learn it",
                         o->reaction);
    }
    if (!(o->surprise >= 0 && sane(o->surprise))) {
        return crdi_fail(ctx, CRD_E_RANGE, "pair: surprise = %g, expected > 0, or 0 to learn it",
                         o->surprise);
    }
    if (!(o->power_max >= 0 && o->action_max >= 0)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "pair: power_max = %g, action_max = %g, expected > 0, or 0 for none",
                         o->power_max, o->action_max);
    }
    return CRD_OK;
}

// The reaction in use: as given, or learned, but for the port's equation at first so large that it
// hardly acts. (What a step costs is reckoned without that: too large a reaction promises that the
// unit gives way, and a stiff one, which does not, was paid 7 % of its energy by it.)
static void set_reaction(crd_pair_port* p, double found)
{
    double R = p->opt.reaction;
    if (R == 0) {
        const double start = 100 * (p->opt.side == CRD_PAIR_OWNS_FLOW ? 1 / p->b : p->b);
        p->learned = fmax(0, found);
        R = fmax(p->learned, p->moved < 1000 ? start * exp(-0.07 * (double)p->moved) : 0);
    }
    p->reaction = p->opt.strict ? 1.5 * R : R;
}

crd_status crd_pair_init(crd_context* ctx, crd_pair_port* pair, const crd_pair_options* opt)
{
    const crd_status st = check_options(ctx, opt);
    if (st < 0) { return st; }
    *pair = (crd_pair_port){.opt = *opt,
                            .b = opt->impedance > 0 ? opt->impedance : 1,
                            .forget = exp(-opt->step / 5), // of the scale: 5 s
                            .learned = opt->reaction,
                            .doubt = opt->surprise / doubted,
                            .far_run = NAN,
                            .arrived = NAN,
                            .round_trip = NAN};
    pair->opt.learn = opt->learn || opt->impedance == 0;
    set_reaction(pair, 0);
    return CRD_OK;
}

// ---- what arrives ------------------------------------------------------------------------------

static double delay_of(const crd_pair_port* p)
{
    return isnan(p->round_trip) ? delay_guess : 0.5 * p->round_trip;
}

static bool possible(const crd_pair_packet* k)
{
    return sane(k->run) && k->number >= 1 && sane(k->number) && sane(k->time) && sane(k->effort) &&
           sane(k->flow) && sane(k->effort_sum) && sane(k->flow_sum) && k->granted >= 0 &&
           sane(k->granted) && k->impedance > 0 && sane(k->impedance) && sane(1 / k->impedance);
}

// The first packet of a life: its sums are where the differences begin. What was granted before
// is lost, which errs on the safe side: a former life of this side may have spent it.
static void begin_far_life(crd_pair_port* p, const crd_pair_packet* k, double now)
{
    p->far_run = k->run;
    p->far_granted = k->granted;
    p->far_effort_sum = k->effort_sum;
    p->far_flow_sum = k->flow_sum;
    p->mean_age = now - k->time;
}

static crd_pair_news judge(crd_pair_port* p, const crd_pair_packet* k, double now)
{
    if (!possible(k) || !sane(now)) { return CRD_PAIR_REFUSED; }
    const double silent = now - p->arrived; // NaN: nothing yet
    const bool patient = silent > patience && silent > 20 * p->opt.macro;
    if (isnan(p->far_run) || k->run > p->far_run || (k->run < p->far_run && patient)) {
        begin_far_life(p, k, now);
        return CRD_PAIR_TAKEN;
    }
    if (k->run < p->far_run) { return CRD_PAIR_OLD; }
    // A forged number far ahead would make all true ones old: leaps are refused, and if one has
    // got through, it is forgotten after a silence. What was granted is never forgotten.
    const double leap = 1000 + 10 * fmax(silent, 0) / p->opt.macro;
    if (k->number <= p->far_number && !(patient && k->granted >= p->far_granted)) {
        return CRD_PAIR_OLD;
    }
    if (k->number > p->far_number + leap || k->granted < p->far_granted) {
        return CRD_PAIR_REFUSED;
    }
    const double power = (k->granted - p->far_granted) / fmax(silent, p->opt.macro);
    if (p->opt.power_max > 0 && power > p->opt.power_max) { return CRD_PAIR_REFUSED; }
    return CRD_PAIR_TAKEN;
}

crd_pair_news crd_pair_receive(crd_pair_port* p, const crd_pair_packet* k, double now)
{
    const crd_pair_news news = judge(p, k, now);
    if (news != CRD_PAIR_TAKEN) {
        *(news == CRD_PAIR_OLD ? &p->count.old : &p->count.refused) += 1;
        return news;
    }
    if (p->opt.learn && p->opt.side == CRD_PAIR_OWNS_FLOW) {
        p->b = p->count.taken ? clip(k->impedance, p->b / 4, 4 * p->b) : k->impedance;
    }
    const double grant = k->granted - p->far_granted;
    p->tank += grant;
    p->count.received += grant;
    const double sign = p->opt.side == CRD_PAIR_OWNS_FLOW ? -1 : 1;
    p->wave_far +=
        p->b * (k->flow_sum - p->far_flow_sum) + sign * (k->effort_sum - p->far_effort_sum);
    // Local clocks only; a constant offset cancels, and a drift is followed.
    p->mean_age += 0.02 * (now - k->time - p->mean_age);
    double round_trip = now - k->echo;
    if (k->echo != 0 && round_trip > -clock_error && round_trip < 60) {
        round_trip = fmax(0, round_trip);
        p->round_trip += isnan(p->round_trip) ? 0 : 0.02 * (round_trip - p->round_trip);
        if (isnan(p->round_trip)) { p->round_trip = round_trip; }
    }
    p->far_number = k->number;
    p->far_granted = k->granted;
    p->far_effort_sum = k->effort_sum;
    p->far_flow_sum = k->flow_sum;
    p->far_time = k->time;
    p->far_effort = k->effort;
    p->far_flow = k->flow;
    p->arrived = now;
    p->count.taken++;
    return CRD_PAIR_TAKEN;
}

void crd_pair_predict(crd_pair_port* p, double effort, double flow)
{
    p->ahead = sane(effort) && sane(flow);
    p->ahead_effort = effort;
    p->ahead_flow = flow;
}

// ---- one inner step ----------------------------------------------------------------------------

// The wave that comes from the other side: q = b f - e for A, p = b f + e for B. Up to a short
// delay its integral is made to agree with that of the sender, so that positions do not drift.
static double wave_in(crd_pair_port* p, double now)
{
    const double sign = p->opt.side == CRD_PAIR_OWNS_FLOW ? -1 : 1;
    if (p->ahead) {
        p->wave_own = p->wave_far;
        return p->b * p->ahead_flow + sign * p->ahead_effort;
    }
    const double wave = p->b * p->far_flow + sign * p->far_effort;
    p->wave_max = fmax(p->forget * p->wave_max, fabs(wave));
    if (p->opt.no_sync || isnan(p->arrived) || !(delay_of(p) <= sync_delay)) {
        p->wave_own = p->wave_far;
        return wave;
    }
    const double since = clip(now - p->far_time - p->mean_age, -1, 1);
    const double most = 0.1 * p->wave_max * sync_time;
    double missing = p->wave_far + wave * since - p->wave_own;
    if (fabs(missing) > most) {
        const double kept = copysign(most, missing);
        p->wave_own += missing - kept;
        missing = kept;
    }
    return wave + missing / sync_time;
}

// The part s of the action that half the tank can pay. With x = s action - last action the mean of
// the own value over the step is own + (+-) (r x + d), |d| <= 1.5 doubt, so s action costs at most
//     h (own' s a + r s a (s a - a1) + 1.5 doubt s |a|) = B s + A s^2,    own' = -f for A, e for B.
static double payable(const crd_pair_port* p, double own, double action)
{
    const double h = p->opt.step, have = fmax(0, 0.5 * p->tank), r = p->learned;
    const double cost = (p->opt.side == CRD_PAIR_OWNS_FLOW ? -action : action) * own;
    const double A = r * action * action * h;
    const double B = (cost - r * action * p->action + doubted * p->doubt * fabs(action)) * h;
    if (!(B + A > have)) { return 1; }
    const double s = A > 0 ? (sqrt(B * B + 4 * A * have) - B) / (2 * A) : have / B;
    return clip(s, 0, 1); // NaN cannot be: A, B, have are finite
}

// own value over the step = own + reaction (action - last action), put into the port's equation:
//     A:  e = b f - q, f = f0 + G (.. - ..) -> e = (b (f0 + G e1) - q) / (1 + b G)
//     B:  b f = p - e, e = ee + D (f - f1)  -> f = (p - (ee - D f1)) / (b + D)
double crd_pair_act(crd_pair_port* p, double own, double now)
{
    const double R = p->reaction;
    if (!sane(own) || !sane(now)) {
        p->action = p->last = 0;
        p->own = NAN;
        return 0;
    }
    const double wave = wave_in(p, now);
    const bool flow = p->opt.side == CRD_PAIR_OWNS_FLOW;
    // What the own value would be without action.
    const double rest = flow ? own + R * p->action : own - R * p->action;
    double action = flow ? (p->b * rest - wave) / (1 + p->b * R) : (wave - rest) / (p->b + R);
    if (p->opt.action_max > 0) { action = clip(action, -p->opt.action_max, p->opt.action_max); }
    if (!sane(action)) { action = 0; }
    // The first actions are small, 2^-10 on: a step of them tells the reaction and costs nothing.
    if (p->moved < 10 && p->opt.reaction == 0) { action = ldexp(action, (int)p->moved - 10); }
    const double s = payable(p, own, action);
    action *= s;
    p->count.limited += s < 1;
    p->own = own;
    p->count.steps++;
    p->last = p->action;
    p->action = action;
    return action;
}

// The unit's reaction by least squares over the last 500 steps: y = R x, x the change of the
// action, y that of the own value from the start of the step to its mean.
static void learn_reaction(crd_pair_port* p, double x, double y)
{
    p->xy = 0.998 * p->xy + x * y;
    p->xx = 0.998 * p->xx + x * x;
    p->moved += x != 0;
    set_reaction(p, p->xx > 0 ? 1.1 * p->xy / p->xx : 0);
}

void crd_pair_done(crd_pair_port* p, double mean)
{
    const double h = p->opt.step;
    const bool known = sane(mean) && sane(p->own);
    if (!sane(mean)) { // energy that nobody knows: nothing may be spent on the strength of it
        p->count.dumped += fmax(0, p->tank);
        p->tank = fmin(0, p->tank);
        mean = 0;
    }
    const bool flow = p->opt.side == CRD_PAIR_OWNS_FLOW;
    const double e = flow ? p->action : mean, f = flow ? mean : p->action;
    const double got = (flow ? 1 : -1) * e * f * h;
    p->tank += got;
    *(got > 0 ? &p->count.absorbed : &p->count.spent) += fabs(got);
    p->gain += fmax(0, got);
    p->count.debt = fmax(p->count.debt, -p->tank);
    const double x = p->action - p->last;
    const double moved = known ? (flow ? -1 : 1) * (mean - p->own) : p->learned * x;
    p->doubt = fmax(p->doubt, fabs(moved - p->learned * x));
    p->wave_own += (p->b * f + (flow ? -e : e)) * h;
    p->scale = fmax(p->forget * p->scale, p->b * f * f + e * e / p->b);
    learn_reaction(p, x, moved);
    const double at = (double)p->inner++ + 0.5;
    p->effort_h += e;
    p->flow_h += f;
    p->effort_t += e * at;
    p->flow_t += f * at;
}

void crd_pair_done_as(crd_pair_port* p, double action, double mean)
{
    const bool known = sane(action);
    if (known) { p->action = action; }
    crd_pair_done(p, known ? mean : NAN);
}

// ---- the end of a macro step -------------------------------------------------------------------

// b := b + 0.1 (rms of changes of e / rms of changes of f - b), changes over one delay: the
// impedance of what is coupled at the frequencies that the link can carry.
static void learn_impedance(crd_pair_port* p, double e, double f)
{
    const int64_t n = (int64_t)p->number;
    const int64_t m = (int64_t)clip(delay_of(p) / p->opt.macro + 1, 1, CRD_PAIR_PAST - 1);
    p->past[n % CRD_PAIR_PAST][0] = e;
    p->past[n % CRD_PAIR_PAST][1] = f;
    if (n <= m) { return; }
    const double* old = p->past[(n - m) % CRD_PAIR_PAST];
    p->ee = 0.997 * p->ee + (e - old[0]) * (e - old[0]);
    p->ff = 0.997 * p->ff + (f - old[1]) * (f - old[1]);
    if (!(p->ee > 0 && p->ff > 0)) { return; }
    p->b += 0.1 * (clip(sqrt(p->ee / p->ff), p->b / 4, 4 * p->b) - p->b);
    p->b = clip(p->b, 1e-9, 1e9);
}

// Value between the mean of the step and its end on the line through the inner steps.
static double fitted(double sum, double sum_t, int64_t inner)
{
    const double n = (double)inner, mean = sum / n;
    const double squares = n * (n * n - 1) / 12; // of the times from the middle, in inner steps
    return inner < 2 ? mean : mean + 0.25 * n * (sum_t - 0.5 * n * sum) / squares;
}

// The tank keeps what its own port may need during a round trip, all else it has gained goes to
// the other side, and what is left above is thrown away: it could only feed an explosion later.
static void share_tank(crd_pair_port* p)
{
    double grant = fmin(p->gain, fmax(0, p->tank));
    grant += 0.02 * fmax(0, p->tank - grant);
    p->granted += grant;
    p->tank -= grant;
    p->gain = 0;
    const double most = 4 * p->scale * 2 * (delay_of(p) + p->opt.macro);
    p->count.dumped += fmax(0, p->tank - most);
    p->tank = fmin(p->tank, most);
}

void crd_pair_send(crd_pair_port* p, double now, crd_pair_packet* out)
{
    share_tank(p);
    p->number++;
    const bool any = p->inner > 0;
    const double e = any ? p->effort_h / (double)p->inner : 0;
    const double f = any ? p->flow_h / (double)p->inner : 0;
    p->effort_sum += p->effort_h * p->opt.step;
    p->flow_sum += p->flow_h * p->opt.step;
    if (any && p->opt.learn && p->opt.side == CRD_PAIR_OWNS_EFFORT) { learn_impedance(p, e, f); }
    *out = (crd_pair_packet){
        .run = p->opt.run,
        .number = p->number,
        .time = now,
        .effort = any ? fitted(p->effort_h, p->effort_t, p->inner) : 0,
        .flow = any ? fitted(p->flow_h, p->flow_t, p->inner) : 0,
        .effort_sum = p->effort_sum,
        .flow_sum = p->flow_sum,
        .granted = p->granted,
        .impedance = p->b,
        .echo = isnan(p->arrived) ? 0 : p->far_time + now - p->arrived,
    };
    p->effort_h = p->flow_h = p->effort_t = p->flow_t = 0;
    p->inner = 0;
}

crd_pair_state crd_pair_get_state(const crd_pair_port* p, double now)
{
    crd_pair_state s = p->count;
    s.tank = p->tank;
    s.granted = p->granted;
    s.impedance = p->b;
    s.reaction = p->reaction;
    s.delay = 0.5 * p->round_trip;
    s.age = now - p->arrived;
    s.strict = p->opt.strict;
    return s;
}
