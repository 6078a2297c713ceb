// Growth of a connection's defect, seen through windows of 2, 4, ... 128 steps at once. Thresholds
// were found on random linear systems with exact solutions and tried on others. Pure numbers.
//
//   d = mean(u) - y over a step,  E = RMS of d over a window,  R = RMS(D3 y) / RMS(D y)
//   before = the largest E of all windows before the ones that are compared
#pragma once
#include <stdbool.h>

enum {
    CRDI_WATCH_WINDOWS = 7,
    CRDI_WATCH_KEPT = 6,   // windows of one length
    CRDI_WATCH_BLOCKS = 16 // stretches of the run
};

typedef struct crdi_growth_window {
    double defect, third, first;  // sums of squares of the window under way: d, D3 y, D y
    int halves;                   // of two
    int turns;                    // likewise how often d changed its sign
    int turned[CRDI_WATCH_KEPT];  // newest first
    int count;                    // windows that were, at most CRDI_WATCH_KEPT
    double E[CRDI_WATCH_KEPT];    // newest first
    double size[CRDI_WATCH_KEPT]; // likewise the largest |y| up to then
    double R[2];
    double before; // the largest E that is no longer among them
    int silent;    // windows that are left in which resolved growth is no news
} crdi_growth_window;

/// What a step shows. The first has the shortest window and asks for no more than a suspicion.
typedef enum crdi_growth {
    CRDI_GROWTH_NONE,
    CRDI_GROWTH_CONFIRMS,   ///< grows as a map that says so makes one expect
    CRDI_GROWTH_RESOLVED,   ///< swings up steadily, and samples follow it: plant or coupling
    CRDI_GROWTH_UNRESOLVED, ///< grows, and samples do not follow it: the exchange is too rare
} crdi_growth;

typedef struct crdi_growth_watch {
    double y[4]; // newest first
    int count;
    double size;               // largest |y|
    double nothing;            // what is smaller is rounding
    double calm;               // of the alarm: largest |y| before the growth that is seen
    int window, back;          // of the alarm: where that stands, window < 0: in no window
    double rate;               // of the alarm: ln of the growth per step
    double roughness;          // of the alarm: R
    double share;              // of the alarm: E of the size
    double last;               // d of the newest step, if it is not 0
    int looked, turns, turned; // where nothing but sizes is noted: the stretch, how often y changed
                               // its sign in it, and in the one before
    double step[3], step_before; // |d| of the newest steps, and the largest before them
    crdi_growth_window windows[CRDI_WATCH_WINDOWS];
    double block[CRDI_WATCH_BLOCKS]; // largest |y| of each stretch
} crdi_growth_watch;

/// Before the first step: the sample there. No growth begins below `nothing`: at rest there is
/// rounding.
void crdi_growth_start(crdi_growth_watch* w, double y, double nothing);
/// The size and the sign of a sample, nothing else.
void crdi_growth_note(crdi_growth_watch* w, double y, int block);
/// A step with its defect and the sample at its end. `expected`: ln of the growth per step that a
/// map foretells, 0: none does. NaN makes no alarm.
crdi_growth crdi_growth_step(crdi_growth_watch* w, double defect, double y, int block,
                             double expected);
/// The defect of an input that was u on average: u - (8 y(n) + 5 y(n+1) - y(n-1)) / 12.
double crdi_growth_defect(const crdi_growth_watch* w, double u, double y);
/// Resolved growth was looked into: no news for a while.
void crdi_growth_calm(crdi_growth_watch* w);
/// What a signal was before the growth that was seen at another one; `blocks`: stretches so far.
double crdi_growth_calm_of(const crdi_growth_watch* w, const crdi_growth_watch* seen, int blocks);
/// By how much it grew from stretch to stretch, up to the last one that began; 1: it did not.
double crdi_growth_of_blocks(const crdi_growth_watch* w, int blocks);
/// Whether that went on evenly, as what explodes does, or became slower, as t^4 does.
bool crdi_growth_is_even(const crdi_growth_watch* w, int blocks);
/// Whether its defect changed its sign more than once in the last long windows; where only sizes
/// are noted, the signal in the last stretches.
bool crdi_growth_swings(const crdi_growth_watch* w);
/// Whether its samples rang, or had noise, all along the last long window.
bool crdi_growth_is_rough(const crdi_growth_watch* w);
/// All stretches are full: two become one.
void crdi_growth_fold_blocks(crdi_growth_watch* w);
