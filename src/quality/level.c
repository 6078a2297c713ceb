// One order of prediction for a whole network: shared/quality_level.h.
#include "shared/quality_level.h"

#include <limits.h>
#include <math.h>
#include <string.h>

// Ringing: of a tone with the angle w over a step s3 / s1 = (2 sin(w / 2))^4; 0.4^2 is w = 0.65,
// ten steps a period, and ringing at the Nyquist frequency has 16.
static const double RINGING = 0.16;
static const double FORGET = 0.8, FORGET_DIFFERENCES = 0.9;
enum { SLOW = 50 };                // steps of the slow scores
static const double USEFUL = 0.25; // squared: half of hold's error at most
static const double GAIN = 0.2025; // squared hysteresis upwards, 0.45^2
static const double GROWN = 2;     // times the size after the first steps ...
static const double SWINGS = 1e-3; // ... with periods below 35 steps, as RINGING
static const double TURNED = 0.35; // angle that signals may have gone through
static const double JUMP = 8;      // times the running change
enum {
    READY = 5,     // samples that a signal is known by
    CALM = 4,      // steps without trouble before the level is raised
    EARLY = 12,    // who has to leave that soon does not come back
    FIRST = 100,   // steps above 0 in which signals may become what they are
    RAMP = 10,     // steps until a prediction counts in full
    SHORT = 4,     // the same in sequence, where each step of hold is taken along
    PATIENCE = 64, // steps that others wait, doubled each time
    LONGEST = 1 << 24,
    AFTER_JUMP = 8, // steps on hold, which makes up for a part of what a jump spoils
    RECENT = 8,     // steps in which a jump or an event explains trouble
};

void crdi_level_errors(const crdi_level_signal* s, double y, double* error)
{
    const double d1 = y - s->y, d2 = d1 - s->d1, d3 = d2 - s->d2;
    // The cubic's mean is y_n + d1/2 - d2/12 - d3/24 (Adams-Moulton: 9, 19, -5, 1 of 24); older
    // differences than there are samples for are 0.
    const double third = s->count > 2 ? d3 * (1.0 / 24) : 0;
    const double second = s->count > 1 ? d2 : 0;
    error[0] = 0.5 * d1 - second * (1.0 / 12) - third;
    error[1] = error[0] - (s->count > 1 ? 0.5 * s->d1 : 0);
    error[2] = error[1] - (s->count > 2 ? s->d2 * (5.0 / 12) : 0);
}

// The slow scores stay: the signal is the same.
void crdi_level_restart(crdi_level_signal* s)
{
    s->count = s->count > 0;
    s->d1 = s->d2 = s->weight = s->change = s->s1 = s->s3 = s->base = 0;
    memset(s->score, 0, sizeof s->score);
}

// A change far beyond those of late that neither slope nor curvature had announced.
static bool level_jumped(const crdi_level_signal* s, double d1, double d2, double d3, double noise)
{
    const double change = fabs(d1);
    return s->weight > 0 && change > noise && d1 * d1 * s->weight > JUMP * JUMP * s->change &&
           fmin(fabs(d2), fabs(d3)) > 0.5 * change;
}

bool crdi_level_push(crdi_level_signal* s, double y, const double* error)
{
    const double d1 = y - s->y, d2 = d1 - s->d1, d3 = d2 - s->d2;
    const bool jumped = level_jumped(s, d1, d2, d3, 1e-12 * s->size);
    s->size = fmax(s->size, fabs(y));
    if (s->count == 0 || jumped) {
        *s = (crdi_level_signal){.y = y, .size = s->size, .count = 1};
        return jumped;
    }
    if (s->count > 2) { // before that the levels are not yet what they will be
        const double w = s->count > 3 ? FORGET : 0;
        for (int l = 0; l < CRDI_LEVELS; l++) {
            const double square = error[l] * error[l];
            s->score[l] = w * s->score[l] + (1 - w) * square;
            s->slow[l] += (square - s->slow[l]) / (s->steps + 1);
        }
        s->steps += s->steps < SLOW;
        s->s1 = FORGET_DIFFERENCES * s->s1 + d1 * d1;
        s->s3 = FORGET_DIFFERENCES * s->s3 + d3 * d3;
    }
    const double w = s->count > 1 ? FORGET : 0;
    s->weight = w * s->weight + (1 - w);
    s->change = w * s->change + (1 - w) * d1 * d1;
    s->y = y;
    s->d2 = s->count > 1 ? d2 : 0;
    s->d1 = d1;
    s->count += s->count < READY;
    return false;
}

void crdi_level_resume(crdi_level_signal* s, const double y[3])
{
    s->y = y[0];
    s->d1 = y[0] - y[1];
    s->d2 = y[0] - 2 * y[1] + y[2];
}

void crdi_level_count(const crdi_level* l, crdi_level_signal* s, crdi_level_vote* v)
{
    if (l->now > 0 && l->age >= FIRST && s->base == 0) { s->base = s->size; }
    v->grows = v->grows || (s->base > 0 && s->size > GROWN * s->base && s->s3 > SWINGS * s->s1);
    const double rounding = 1e-16 * s->size * s->size;
    if (s->count < READY) {
        v->counted++; // not ready
        return;
    }
    const double hold = fmax(s->score[0], s->slow[0]);
    if (!(hold > rounding) || !(s->s1 > rounding)) { return; }
    v->counted++;
    v->ready++;
    v->better += s->slow[1] < USEFUL * s->slow[0] && s->score[1] < USEFUL * hold;
    v->ringing = fmax(v->ringing, s->s3 / s->s1);
    v->worst = fmax(v->worst, s->score[l->now] / hold);
    for (int i = 0; i < CRDI_LEVELS; i++) {
        v->sum[i] += s->slow[i] / s->slow[0];
    }
}

static void level_leave(crdi_level* l)
{
    if (l->quiet < RECENT) {
        l->wait = AFTER_JUMP;
    } else {
        l->patience = l->age < EARLY          ? INT_MAX
                      : l->patience == 0      ? PATIENCE
                      : l->patience < LONGEST ? 2 * l->patience
                                              : l->patience;
        l->wait = l->patience;
        l->fixed = l->patience == INT_MAX;
    }
    l->now = 0;
    l->calm = l->age = l->since = 0;
    l->changed = true;
    l->switches++;
}

static void level_stay(crdi_level* l, const crdi_level_vote* v)
{
    if (l->patience > 0 && l->age > 8LL * l->patience) {
        l->patience /= 2;
        l->age = 0;
    }
    const int other = 3 - l->now;
    const double least = other > l->now ? GAIN : 1;
    if (v->counted && v->ready == v->counted && v->sum[other] < least * v->sum[l->now]) {
        l->now = other;
        l->switches++;
    }
}

// One after the other, the lead of inputs that are known makes up for the lag of the others: errors
// of hold swing with the signals, and whoever leaves it takes them along as they are then. Near the
// start, or a jump, they are still small: after n steps of a tone n theta of what they will be.
static bool may_rise(const crdi_level* l, const crdi_level_vote* v)
{
    const int steps = l->since < l->quiet ? l->since : l->quiet;
    return !l->sequential || steps * sqrt(sqrt(v->ringing)) < TURNED;
}

bool crdi_level_decide(crdi_level* l, const crdi_level_vote* v)
{
    const int before = l->now;
    l->changed = false;
    l->since += l->since < INT_MAX;
    if (l->fixed) { return false; }
    l->quiet = v->disturbed ? 0 : l->quiet + (l->quiet < INT_MAX);
    const bool bad =
        v->ringing > RINGING || (l->now > 0 && (v->worst > USEFUL || v->grows || v->disturbed));
    if (l->now > 0) {
        l->age += l->age < INT_MAX;
        if (bad) {
            level_leave(l);
        } else {
            level_stay(l, v);
        }
        return l->now != before;
    }
    if (v->disturbed && l->wait < AFTER_JUMP) { l->wait = AFTER_JUMP; }
    l->calm = bad ? 0 : l->calm + (l->calm < INT_MAX);
    if (l->wait > 0) {
        l->wait--;
    } else if (may_rise(l, v) && l->calm >= CALM && v->ready > 0 && v->ready == v->counted &&
               v->better == v->ready) {
        l->now = 1;
        l->age = l->since = 0;
        l->changed = true;
        l->switches++;
    }
    return l->now != before;
}

void crdi_level_pass(crdi_level* l)
{
    l->changed = false;
    l->since += l->since < INT_MAX;
    l->quiet += l->quiet < INT_MAX;
    l->age += l->now > 0 && l->age < INT_MAX;
    l->calm += l->now == 0 && l->calm < INT_MAX;
    l->wait -= l->now == 0 && l->wait > 0;
}

void crdi_level_begin(crdi_level* l, int level)
{
    l->now = level;
    l->since = RAMP;
}

void crdi_level_follow(crdi_level* l, int level)
{
    l->changed = (l->now == 0) != (level == 0);
    l->since = l->changed ? 0 : l->since + (l->since < INT_MAX);
    l->switches += l->now != level;
    l->now = level;
}

bool crdi_level_alarms(const crdi_level* l, const crdi_level_vote* v)
{
    return l->now > 0 && v->ringing > RINGING && v->worst > 1;
}

bool crdi_level_rough(const crdi_level_vote* v)
{
    return v->ringing > RINGING;
}

bool crdi_level_doubts(const crdi_level* l, const crdi_level_vote* v)
{
    const bool better = v->ready > 0 && v->better == v->ready && v->ready == v->counted;
    return v->disturbed || (l->now > 0 ? v->worst > USEFUL : better);
}

double crdi_level_part(const crdi_level* l)
{
    const int ramp = l->sequential ? SHORT : RAMP;
    return l->since < ramp ? (double)l->since / ramp : 1;
}
