/// One order of prediction for a whole loop of connections, never worse than hold.
///
/// What predicts well on a recording may ring in a loop: an open-loop score judges signals that the
/// loop has made. So all connections of a strongly connected network share one level, 0 is hold to
/// the letter, and the level is left at once, for all of them, when the signals ring or the
/// prediction is not clearly better than hold; who had to leave early does not come back. Pure
/// numerics; structs are plain and may be copied.
#pragma once
#include "cardan/quality.h"

enum { CRDI_LEVELS = 3 }; ///< hold, first and second order

/// Weights of the last n values (row n - 1), newest first, at equal steps: the mean over the step
/// to come of the polynomial through them, hold and Adams-Bashforth.
extern const double crdi_even_means[CRD_HISTORY][CRD_HISTORY];

/// A signal at equal steps, as the level sees it. All zero at the start.
typedef struct crdi_level_signal {
    double y, d1, d2;          ///< newest sample, its backward differences
    int count;                 ///< samples, as far as it matters
    double change, weight;     ///< running mean square of d1
    double s1, s3;             ///< running sums of squares of first and third differences
    double score[CRDI_LEVELS]; ///< mean square error of each level, of the last few steps
    double slow[CRDI_LEVELS];  ///< the same of many: where a tone turns back hold is nearly right
    int steps;                 ///< in them, as far as it matters
    double size;               ///< largest magnitude
    double base;               ///< the same when the level had been above 0 for a while, 0: not yet
} crdi_level_signal;

/// Errors of the three levels over a step that ended in y, if its mean counts: hold and the means
/// of Adams-Bashforth against that of the cubic through the last four samples. Before the push.
void crdi_level_errors(const crdi_level_signal* s, double y, double* error);
/// A sample and what the levels missed in the step that ended with it. true: it jumped, and the
/// past does not count any more.
bool crdi_level_push(crdi_level_signal* s, double y, const double* error);
/// The last samples, newest first, where it was not looked at for a while.
void crdi_level_resume(crdi_level_signal* s, const double y[3]);
/// The past does not count: an event, another way of sampling.
void crdi_level_restart(crdi_level_signal* s);

/// What the signals of a network say together. All zero at first, then each signal is added.
typedef struct crdi_level_vote {
    double ringing;          ///< largest s3 / s1
    double worst;            ///< largest score of the level in use / that of hold
    double sum[CRDI_LEVELS]; ///< of score / that of hold
    int counted, ready,
        better;     ///< signals that move; known well enough; first order clearly better
    bool disturbed; ///< a jump or an event
    bool grows;     ///< much larger than it was: a loop that swings up slowly does not ring
} crdi_level_vote;

typedef struct crdi_level {
    int now;          ///< 0, 1, 2
    bool fixed;       ///< hold for ever
    bool sequential;  ///< one after the other: errors of hold cancel in part
    int age;          ///< steps above 0, since it was counted anew
    int calm, wait;   ///< steps at 0: without a sign of trouble; that are left
    int patience;     ///< how long it waited last
    int since;        ///< steps since the level left 0 or came back to it
    bool changed;     ///< it did so before the step that was made last
    int quiet;        ///< steps since the last jump or event
    int64_t switches; ///< counted
} crdi_level;

void crdi_level_count(const crdi_level* l, crdi_level_signal* s, crdi_level_vote* v);
/// After a step: the level of the next. true: it changed.
bool crdi_level_decide(crdi_level* l, const crdi_level_vote* v);
/// A step in which nobody looked.
void crdi_level_pass(crdi_level* l);
/// Somebody who knows the loop says the level: before the first step, and after one.
void crdi_level_begin(crdi_level* l, int level);
void crdi_level_follow(crdi_level* l, int level);
/// Signals ring and the prediction is worse than hold: a level above 0 must not stay.
bool crdi_level_alarms(const crdi_level* l, const crdi_level_vote* v);
bool crdi_level_rough(const crdi_level_vote* v); ///< signals ring, or have noise
/// Something speaks against the level: a jump, a prediction that is not clearly better than hold,
/// or at level 0 one that is.
bool crdi_level_doubts(const crdi_level* l, const crdi_level_vote* v);
/// Part of the prediction in what is told, the rest is hold: it comes gently.
double crdi_level_part(const crdi_level* l);
