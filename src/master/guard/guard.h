// The guard: it tells coupling that makes a loop grow from a plant that grows by itself.
//
//   at the start   loops whose units can be linearised: the macro-step map against the exactly
//                  coupled system says whether the exchange will make them diverge, and how fast
//   in the run     windows over the defects of all connections in loops: growth that the map
//                  predicted, growth that samples do not follow, growth that they do
//   at an alarm    units are linearised where they are: the map decides. Without one it is said
//                  what is known and what would tell
//   switched off   only how large the signals of loops are, now and then: what has exploded by the
//                  end is said all the same
//
// Limits of the run (defects, energy, estimated errors) act here, too. Nothing is allocated or
// worded in a step unless there is an alarm.
#pragma once
#include "master/guard/watch.h"
#include "master/plan/plan.h"
#include "shared/quality_macro.h"

enum { CRDI_GUARD_TEXT = 900 };

/// What can be done about a loop with hardware, one after the other.
typedef enum crdi_rung {
    CRDI_RUNG_NONE,
    CRDI_RUNG_ELEMENT,  // a calmer element on its links
    CRDI_RUNG_STAND_IN, // the models of its benches
    CRDI_RUNG_STOP,
} crdi_rung;

/// One connection of a loop that is watched.
typedef struct crdi_guarded {
    const crdi_connection* of;
    const double *from, *to;
    double gain, offset;
    int loop;
    int64_t every; // ticks between two samples
    crdi_growth_watch watch;
} crdi_guarded;

/// Units that feed each other.
typedef struct crdi_guard_loop {
    int* members;
    int member_count;
    int* inside; // its connections, of the plan
    int inside_count;
    int first, count;           // of its connections, among those that are watched
    const char* unknown;        // why there is no map, NULL: there is one
    const char* names;          // "a.y -> b.u, b.v -> a.w"
    int coupled;                // connection with an element, -1: none
    bool selects;               // predict: auto, so that the best of the levels counts
    crdi_macro macro;           // if it is known
    crdi_macro_link* links;     // as they are in the run, in the order of macro.links
    const crdi_connection** of; // likewise
    double rate, exact;         // ln of the growth per tick: of the map; of the exact system
    bool suspect;               // the map says that it will diverge
    bool other;                 // units are not what they were at the start
    bool done;                  // something was said that is not said twice
    bool named;                 // run: in what is said
    crdi_rung rung;             // run: of the ladder, what was done
} crdi_guard_loop;

/// A member in its loop.
typedef struct crdi_guard_place {
    int loop, at; // -1: in none
} crdi_guard_place;

/// A coupling with the calm element that waits for it, and then with the one that it had.
typedef struct crdi_calm {
    crdi_coupled* of;
    int loop;
    crdi_estimator spare;
} crdi_calm;

/// A bench with a stand-in.
typedef struct crdi_bench_use {
    int member, loop;
    crd_binding* use; // standby.use
} crdi_bench_use;

typedef struct crdi_ladder {
    crdi_calm* calms;
    int calm_count;
    crdi_bench_use* benches;
    int bench_count;
} crdi_ladder;

typedef struct crdi_guard {
    bool on;
    bool blind;      // switched off: only sizes are noted, each `sampled` ticks
    int64_t sampled; // run
    crd_guard_spec spec;
    crdi_guard_loop* loops;
    int loop_count;
    crdi_guard_place* place; // by member
    crdi_guarded* guarded;   // by loop
    int guarded_count;
    int64_t block; // run: ticks of a stretch
    bool limited;  // there is a limit that acts in the run
    crd_guard_state state;
    bool stopped;
    bool exploded;              // a thousand-fold, and nobody knows by what
    double time;                // run: of what is said
    char text[CRDI_GUARD_TEXT]; // run: what and why
    char help[CRDI_GUARD_TEXT]; // run: what would help
    const char* note;           // what is not known, ""
    crdi_ladder ladder;
} crdi_guard;

// guard.c
crd_status crdi_guard_start(crd_master* m);
bool crdi_guard_is_on(const crd_master* m);      ///< steps are looked at
bool crdi_guard_is_limited(const crd_master* m); ///< a limit acts in the run
void crdi_guard_step(crd_master* m);             ///< after a step that counts
void crdi_guard_finish(crd_master* m);           ///< at the end: what grew without a word
bool crdi_guard_sees_rough(const crd_master* m); ///< samples do not follow a loop's signals
crd_guard_report crdi_guard_get_report(const crd_master* m);
void crdi_guard_watch_anew(const crd_master* m, crdi_guarded* p); ///< from this sample on
void crdi_guard_stop(crd_master* m); ///< the run ends with this step, for what the text says
/// The map of the loop that a connection belongs to, and its link there; NULL: not known.
const crdi_macro* crdi_guard_map_of(const crd_master* m, const crdi_connection* k, int* link);
/// Whether the loop of a connection holds with predictions of first or second order.
typedef enum crdi_guard_foresight {
    CRDI_GUARD_UNKNOWN,
    CRDI_GUARD_HOLDS,
    CRDI_GUARD_GROWS,
} crdi_guard_foresight;
crdi_guard_foresight crdi_guard_foresee(crd_master* m, const crdi_connection* k);
// map.c
crd_status crdi_guard_find_loops(crd_master* m);
/// The map of a loop at the start, if it can be known.
crd_status crdi_guard_make_map(crd_master* m, crdi_guard_loop* l);
/// The units as they are now; rate and exact anew. Takes memory. false: not known.
bool crdi_guard_look_again(crd_master* m, crdi_guard_loop* l);
/// ln of the growth per tick by the coupling alone.
double crdi_guard_excess(const crdi_guard_loop* l);
/// The same with another tick, s, as the run couples otherwise; and with the best or with none of
/// the predictions on all connections. false, INFINITY: not known. The map is then as it was,
/// except for its tick.
bool crdi_guard_try_tick(crdi_guard_loop* l, double tick, double* excess);
double crdi_guard_try_level(const crd_master* m, crdi_guard_loop* l, int first, int last);
// advice.c
/// What would hold the loop, from its map; "" if nothing is known.
void crdi_guard_advise(crd_master* m, crdi_guard_loop* l, char* text, size_t size);
/// Why it does not hold: "the step of 20 ms is too long for it".
void crdi_guard_explain(crd_master* m, crdi_guard_loop* l, char* text, size_t size);
// ladder.c: links with hardware
crd_status crdi_ladder_plan(crd_master* m);
/// The next thing is done about a loop. false: nothing is left but to stop.
bool crdi_ladder_climb(crd_master* m, int loop);
void crdi_ladder_free(crd_master* m); ///< before the units go
// limits.c
crd_status crdi_guard_check_limits(crd_master* m); ///< can be kept at all
void crdi_guard_watch_limits(crd_master* m);
