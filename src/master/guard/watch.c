// Growth in windows (watch.h).
#include "master/guard/watch.h"

#include <math.h>
#include <string.h>

double crdi_growth_defect(const crdi_growth_watch* w, double u, double y)
{
    if (w->count < 2) { return u - 0.5 * (w->y[0] + y); }
    return u - (8 * w->y[0] + 5 * y - w->y[1]) * (1.0 / 12);
}

void crdi_growth_start(crdi_growth_watch* w, double y, double nothing)
{
    *w = (crdi_growth_watch){.y = {y}, .count = 1, .size = fabs(y), .nothing = nothing};
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

// E0 > g E1 > g^2 E2 > ...: so many ratios in a row.
static bool grows(const crdi_growth_window* p, int ratios, double by)
{
    for (int i = 0; i < ratios; i++) {
        if (!(p->E[i] > by * p->E[i + 1])) { return false; }
    }
    return true;
}

// Five ratios in a row, much in all, more than ever before, and not by one leap: a jump of the
// signal on top of a slow drift grows, too.
static bool grows_for_long(const crdi_growth_window* p, int window)
{
    static const double ratio[] = {1.3, 1.15, 1.1}, total[] = {40, 12, 8};
    const int i = window < 2 ? window : 2;
    if (p->count < CRDI_WATCH_KEPT || !grows(p, 5, ratio[i])) { return false; }
    if (!(p->E[0] > total[i] * p->E[4]) || !(p->E[0] > 2 * p->before) || !(p->E[5] > 0)) {
        return false;
    }
    const double mean = log(p->E[0] / p->E[5]) / 5;
    for (int k = 0; k < 5; k++) {
        if (!(log(p->E[k] / p->E[k + 1]) < 2 * mean)) { return false; }
    }
    return true;
}

static bool confirms(const crdi_growth_window* p, double size)
{
    const double before = larger(larger(p->before, p->E[5]), larger(p->E[3], p->E[4]));
    return p->count >= 3 && grows(p, 2, 1.15) && p->E[0] > 3 * p->E[2] && p->E[0] > 1.5 * before &&
           p->E[0] > 0.03 * size;
}

// What grows slowly without swinging does so by itself: at z = 1, of signals that stay, every
// prediction and every delay is exact, so that no exchange can move an eigenvalue of the step map
// across it. A car that accelerates is no loop that diverges.
static bool swings(const crdi_growth_window* p)
{
    int turns = 0;
    for (int i = 0; i < CRDI_WATCH_KEPT; i++) {
        turns += p->turned[i];
    }
    return turns > 1;
}

// The last five logarithms of ratios within 30 % of their mean, and ten-fold in all.
static bool is_steady(const crdi_growth_window* p)
{
    double ratios[5], mean = 0;
    if (p->count < CRDI_WATCH_KEPT || !(p->E[5] > 0)) { return false; }
    for (int i = 0; i < 5; i++) {
        ratios[i] = log(p->E[i] / p->E[i + 1]);
        mean += ratios[i] / 5;
    }
    if (!(5 * mean > 2.302585)) { return false; }
    for (int i = 0; i < 5; i++) {
        if (!(fabs(ratios[i] - mean) < 0.3 * mean)) { return false; }
    }
    return true;
}

static crdi_growth judge_window(crdi_growth_watch* w, int window, bool suspect)
{
    const crdi_growth_window* p = &w->windows[window];
    const int steps = 2 << window;
    if (suspect) {
        if (!confirms(p, w->size)) { return CRDI_GROWTH_NONE; }
        w->rate = log(p->E[0] / p->E[2]) / (2 * steps);
        w->calm = p->size[2];
        w->window = window;
        w->back = 2;
        return CRDI_GROWTH_CONFIRMS;
    }
    if (!grows_for_long(p, window)) { return CRDI_GROWTH_NONE; }
    w->rate = log(p->E[0] / p->E[4]) / (4 * steps);
    w->calm = p->size[4];
    w->window = window;
    w->back = 4;
    w->roughness = p->R[0];
    w->share = p->E[0] / w->size;
    if (p->R[0] > 0.25 && p->R[1] > 0.25 && p->E[0] > 0.1 * w->size) {
        return CRDI_GROWTH_UNRESOLVED;
    }
    return window >= 2 && p->silent == 0 && swings(p) && is_steady(p) ? CRDI_GROWTH_RESOLVED
                                                                      : CRDI_GROWTH_NONE;
}

// A window of this length is full.
static void close_window(crdi_growth_window* p, int window, double size)
{
    if (p->count == CRDI_WATCH_KEPT) { p->before = larger(p->before, p->E[CRDI_WATCH_KEPT - 1]); }
    memmove(p->E + 1, p->E, (CRDI_WATCH_KEPT - 1) * sizeof *p->E);
    memmove(p->size + 1, p->size, (CRDI_WATCH_KEPT - 1) * sizeof *p->size);
    memmove(p->turned + 1, p->turned, (CRDI_WATCH_KEPT - 1) * sizeof *p->turned);
    p->turned[0] = p->turns;
    p->size[0] = size;
    p->E[0] = sqrt(p->defect / (2 << window));
    p->R[1] = p->R[0];
    p->R[0] = p->first > 0 ? sqrt(p->third / p->first) : 0;
    p->count += p->count < CRDI_WATCH_KEPT;
    p->silent -= p->silent > 0;
    p->defect = p->third = p->first = 0;
    p->halves = p->turns = 0;
}

static crdi_growth add_squares(crdi_growth_watch* w, double defect, double third, double first,
                               int turns, bool suspect)
{
    crdi_growth found = CRDI_GROWTH_NONE;
    for (int i = 0; i < CRDI_WATCH_WINDOWS; i++) {
        crdi_growth_window* p = &w->windows[i];
        p->defect += defect;
        p->third += third;
        p->first += first;
        p->turns += turns;
        if (++p->halves < 2) { break; }
        defect = p->defect;
        third = p->third;
        first = p->first;
        turns = p->turns;
        close_window(p, i, w->size);
        const crdi_growth alarm = judge_window(w, i, suspect);
        if (alarm > found) { found = alarm; }
    }
    return found;
}

// A map says that it will grow by more than half in a step: two or three steps have to do. At
// least half of that growth, as a logarithm, and a defect that is not small.
static bool confirms_at_once(crdi_growth_watch* w, double expected)
{
    const double *d = w->step, before = w->step_before;
    if (!(expected > 0.4) || !(d[0] > 0.03 * w->size)) { return false; }
    const double half = exp(0.5 * expected);
    const bool one = expected > 1 && d[0] > half * d[1] && d[0] > 1.5 * larger(before, d[2]);
    const bool two = d[0] > 1.15 * d[1] && d[1] > 1.15 * d[2] && d[0] > half * half * d[2] &&
                     d[0] > 1.5 * before;
    if (!one && !two) { return false; }
    w->rate = expected;
    w->calm = w->size / (half * half);
    w->window = -1;
    return true;
}

static bool look_at_step(crdi_growth_watch* w, double defect, double expected)
{
    w->step_before = larger(w->step_before, w->step[2]);
    w->step[2] = w->step[1];
    w->step[1] = w->step[0];
    w->step[0] = fabs(defect);
    return w->count >= 2 && confirms_at_once(w, expected);
}

static void note_size(crdi_growth_watch* w, double y, int block)
{
    const double size = fabs(y);
    if (size > w->size) { w->size = size; }
    if (size > w->block[block]) { w->block[block] = size; }
}

void crdi_growth_note(crdi_growth_watch* w, double y, int block)
{
    note_size(w, y, block);
    if (block != w->looked) {
        w->looked = block;
        w->turned = w->turns;
        w->turns = 0;
    }
    w->turns += y * w->last < 0;
    if (y != 0) { w->last = y; }
}

crdi_growth crdi_growth_step(crdi_growth_watch* w, double defect, double y, int block,
                             double expected)
{
    note_size(w, y, block);
    const bool soon = expected > 0 && look_at_step(w, defect, expected);
    const double first = y - w->y[0], third = y - 3 * w->y[0] + 3 * w->y[1] - w->y[2];
    w->y[3] = w->y[2];
    w->y[2] = w->y[1];
    w->y[1] = w->y[0];
    w->y[0] = y;
    if (w->count < 4 || !(w->size > w->nothing)) { // at rest rounding may grow as it likes
        w->count += w->count < 4;
        return soon ? CRDI_GROWTH_CONFIRMS : CRDI_GROWTH_NONE;
    }
    const int turns = defect * w->last < 0;
    if (defect != 0) { w->last = defect; }
    const crdi_growth found =
        add_squares(w, defect * defect, third * third, first * first, turns, expected > 0);
    return soon && found == CRDI_GROWTH_NONE ? CRDI_GROWTH_CONFIRMS : found;
}

void crdi_growth_calm(crdi_growth_watch* w)
{
    for (int i = 0; i < CRDI_WATCH_WINDOWS; i++) {
        w->windows[i].silent = 16;
    }
}

// From the last stretch back, as long as each was smaller than the next, and more than rounding.
static int first_that_grew(const crdi_growth_watch* w, int blocks)
{
    int i = blocks - 1;
    while (i > 0 && w->block[i - 1] < 0.9 * w->block[i] && w->block[i - 1] > w->nothing) {
        i--;
    }
    return i;
}

double crdi_growth_of_blocks(const crdi_growth_watch* w, int blocks)
{
    const int i = first_that_grew(w, blocks);
    // What came out of nothing at the beginning did not grow.
    const bool enough = blocks - 1 - i >= 3 && w->block[i] > 0;
    return enough ? w->block[blocks - 1] / w->block[i] : 1;
}

bool crdi_growth_is_even(const crdi_growth_watch* w, int blocks)
{
    const int i = first_that_grew(w, blocks), last = blocks - 1;
    const double all = crdi_growth_of_blocks(w, blocks);
    return all > 1 && w->block[last] > 0.6 * sqrt(all) * w->block[i + (last - i) / 2];
}

// Who began to move out of nothing is no measure for anybody: 1e-12 of what it has become is the
// least.
double crdi_growth_calm_of(const crdi_growth_watch* w, const crdi_growth_watch* seen, int blocks)
{
    double calm = w->size / crdi_growth_of_blocks(w, blocks);
    if (w == seen) {
        calm = w->calm;
    } else if (seen->window >= 0) {
        const crdi_growth_window* p = &w->windows[seen->window];
        calm = p->count > seen->back ? p->size[seen->back] : w->size;
    }
    return larger(calm, 1e-12 * w->size);
}

bool crdi_growth_swings(const crdi_growth_watch* w)
{
    int i = CRDI_WATCH_WINDOWS - 1;
    while (i > 0 && w->windows[i].count < 3) {
        i--;
    }
    return w->turned + w->turns > 1 || swings(&w->windows[i]);
}

// R of a tone is the square of its angle per step: 0.4 are ten steps a period.
bool crdi_growth_is_rough(const crdi_growth_watch* w)
{
    for (int i = CRDI_WATCH_WINDOWS - 1; i > 2; i--) {
        if (w->windows[i].count > 0) { return w->windows[i].R[0] > 0.4; }
    }
    return false;
}

void crdi_growth_fold_blocks(crdi_growth_watch* w)
{
    for (int i = 0; i < CRDI_WATCH_BLOCKS; i++) {
        const int k = 2 * i;
        w->block[i] = k < CRDI_WATCH_BLOCKS ? larger(w->block[k], w->block[k + 1]) : 0;
    }
}
