// What the verdict of a run is made from; for judge.c, advice.c and their tests.
#pragma once
#include "master/master.h"

/// A defect below this part of a signal's scale is small: a thousandth is what sensors and most
/// models are good for. What advice aims at, unless the options of the master say otherwise.
#define CRDI_DEFECT_GOAL 1e-3
/// Energy that the exchange may add to what passes a bond: a hundredth is of the size of usual
/// friction losses, and grows with the time of the run.
#define CRDI_ENERGY_GOAL 1e-2

/// Of the RMS of a signal, estimated errors or what defects have added up to where those are not
/// known. Both are good to a factor of two: what is wrong by a tenth shows as a twentieth.
#define CRDI_MUCH_PART 0.05

enum {
    CRDI_ADVICE = 6,     // sentences
    CRDI_SENTENCE = 480, // bytes of one, cut at a whole character
};

/// What a connection misses, against the size of its signal.
typedef struct crdi_missed {
    const char* from;
    double part, error; // defect; estimated error of the output, NaN: not known
    double turned;      // half the angle that it has turned by, or 1 / (2 zeta), at least 1
} crdi_missed;

/// Room and facts of the verdict, made when it is asked for first.
typedef struct crdi_judge {
    const crdi_connection** links; // (count) predicted ones, observed ones, those of pairs
    int count;
    int* order;          // (count) by relative defect, largest first: link of report k
    double* keys;        // (count) of links
    bool* stale;         // (count) its output follows an input at once, and is not made fresh
    int* loop;           // (members) which cycle of connections it is in; sources of others have
                         // larger numbers
    int* along;          // (count + coupled) those of a cycle before what leaves it, from sources
                         // to sinks; from `count` on coupled ones
    crdi_missed* missed; // (count + coupled) run
    bool* estimated;     // (members) run: errors of outputs that others use
    double *arrives, *adds; // (cycles) run: what defects can have done to inputs, and inside of it
    int grown;              // run: flow whose defect grew at the end, errors not known; -1: none
    bool at_worst;          // run: it is defects that the worst part is told of, no estimate
    bool* loop_saves;       // (members) by cycle: it has several members, and all save their state
    int action, feedback;   // links that form a power bond that nobody watches, -1: none
    const char* sentences[CRDI_ADVICE];
    char texts[CRDI_ADVICE][CRDI_SENTENCE];
    int sentence_count;
} crdi_judge;

/// Fills the judge's sentences from the report, which is complete otherwise. Takes no memory.
/// A loop whose defect is many times its RMS when the run ends.
bool crdi_judge_sees_growth(const crd_master* m, const crdi_connection* k,
                            const crd_flow_report* f);
double crdi_defect_goal(const crd_master* m);
double crdi_energy_goal(const crd_master* m);
