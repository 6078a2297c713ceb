/// A cycle that is driven again and again is learned: corrections that are added to late coupling
/// signals, from run to run (norm-optimal iterative learning: Ge, Brudnak, Stein, Ersal 2014).
///
/// The numerics know no units and no clock: who learns hands in a function that makes one run.
#pragma once
#include "cardan/base.h"
#include "shared/base.h"

enum {
    CRDI_REPEAT_SIGNALS = 16, ///< that are learned together, at most
    CRDI_REPEAT_LEAST = 256,  ///< samples of a cycle, for the identification
    CRDI_REPEAT_VERSION = 1,  ///< of the file
    CRDI_REPEAT_AGES = 256,   ///< samples, at most, that one may be old and still be waited for
};

/// What a corrected value has to keep to, in the input's unit. -INFINITY, INFINITY: nothing.
typedef struct crdi_repeat_limits {
    double min, max;
    double rate; ///< unit/s
    double most; ///< largest magnitude of a correction
} crdi_repeat_limits;

/// The correction that is left of `wish` so that estimate + correction keeps the limits, `past` s
/// after the value was `before` (NaN: never). Where the estimate alone does not keep them, the
/// correction makes it no worse. Never NaN.
double crdi_repeat_limit(const crdi_repeat_limits* l, double estimate, double wish, double before,
                         double past);

/// A series over the cycle that is not corrected, by which it is recognised.
typedef struct crdi_repeat_series {
    const char* name;
    double scale;    ///< range
    double* samples; ///< (count)
} crdi_repeat_series;

/// One late signal of a bond.
typedef struct crdi_repeat_signal {
    const char *from, *to, *unit;
    double scale, min, max; ///< range of what was sent in the first run, and its ends
    double latency;         ///< mean, in samples
    double steady;          ///< age at which samples are used, in samples; 0: when they come
    double* correction;     ///< (count)
    double* sent;           ///< (count) in the best run; by this a run is recognised
} crdi_repeat_signal;

/// One run of the learning.
typedef struct crdi_repeat_figure {
    const char* what; ///< "hold", "identify engine.speed", "learn"
    double error;     ///< RMS of sent - received of their ranges, over all signals
    double signals[CRDI_REPEAT_SIGNALS];
    double gain;     ///< of the step before it; 0: none
    bool kept;       ///< the best so far
    int64_t limited; ///< samples whose correction a limit has cut
} crdi_repeat_figure;

/// The limits of a signal of the cycle: those of its input, and what it did in the first run with
/// a tenth of its range on both sides.
crdi_repeat_limits crdi_repeat_limits_of(const crdi_repeat_signal* s, double min, double max,
                                         double rate);

/// What was learned. Everything is in the arena.
typedef struct crdi_repeat {
    crd_arena arena;
    double start, step; ///< s
    int count;          ///< samples
    crdi_repeat_signal* signals;
    int signal_count;
    crdi_repeat_series* driven;
    int driven_count;
    const char* const* cycle; ///< (cycle_lines) what the cycle is: units with files and values
    const char* const* link;  ///< (link_lines) what is late, and how
    int cycle_lines, link_lines;
    crdi_repeat_figure* figures;
    int figure_count;
    double first, best; ///< coupling error of the first run and of the best
} crdi_repeat;

/// What goes into a run and comes out of it. Rows are signals.
typedef struct crdi_repeat_pass {
    int number;               ///< from 1: noise of emulated links differs from run to run
    const double* correction; ///< (signals x count); NULL: none
    double* acted;            ///< (signals x count) of it, within the limits
    double* sent;             ///< (signals x count) NaN: it never arrived
    double* received;         ///< (signals x count) what the input was told when that was sent
    double* latency;          ///< (signals) mean, in samples
    int64_t* ages;            ///< (signals x CRDI_REPEAT_AGES) how many samples came how old
    int64_t limited;
    bool real;                 ///< a link on which the age may differ from run to run by one sample
    struct crdi_repeat* cycle; ///< count; ranges, once they are known; room for what is driven
} crdi_repeat_pass;

/// CRD_E_CONVERGENCE: the loop diverges.
typedef crd_status crdi_repeat_runner(void* user, crdi_repeat_pass* pass);

typedef struct crdi_repeat_options {
    int runs;           ///< with corrections or without, but for identification
    double gain;        ///< 0 .. 1, default 1
    double damping;     ///< of the inverse, of the square of the ranges; default 0.03
    double band;        ///< Hz, NaN: half the sampling rate
    double disturbance; ///< largest of the identification, of a signal's range; default 0.05
    /// Called after each run. May be NULL.
    void (*note)(void* user, const crdi_repeat_figure* f, int number);
} crdi_repeat_options;

crdi_repeat_options crdi_repeat_defaults(void);
/// Fills in signals (correction, sent, scale, latency), figures, first and best of `c`, whose step,
/// count and names of signals are there. CRD_E_RANGE: too short. CRD_E_CONVERGENCE: the first loop
/// diverges, or nothing is late.
crd_status crdi_repeat_learn(crd_context* ctx, const crdi_repeat_options* o,
                             crdi_repeat_runner* run, void* user, crdi_repeat* c);

// ---- the file ----------------------------------------------------------------------------------

void crdi_repeat_write(const crdi_repeat* c, crd_text* out);
/// `out` is cleared by the caller in any case. CRD_E_FORMAT with "file:line: ..." for what is cut
/// off, of another version, or makes no sense.
crd_status crdi_repeat_parse(crd_context* ctx, const char* text, size_t length, const char* file,
                             crdi_repeat* out);
/// The first difference of two lists of lines, as a sentence ("" if there is none): "unit engine:
/// is ..., was ... when it was learned".
void crdi_repeat_difference(const char* const* was, int was_count, const char* const* is,
                            int is_count, char* out, size_t room);
