/// Units and systems as slaves of the Distributed Co-Simulation Protocol.
///
/// A crdi_serve makes a slave description from what a unit or a system offers, and is the plant
/// behind the slave that it creates. A system of one unit without connections is that unit: steps
/// go to it as they come, of any length that it can do. Any other system runs in a master of its
/// own, whose macro step is the time resolution; its free inputs, its outputs and its parameters
/// are called `unit.variable`.
///
/// Nothing here has a thread or a clock: time passes in crdi_serve_turn, on the clock of the
/// network. After the slave has reached CONFIGURED its steps do not allocate. A unit that fails or
/// crashes brings the slave to ERRORHANDLING with an entry in its log; STC_reset makes a new one.
#pragma once
#include "cardan/base.h"
#include "cardan/dcp.h"
#include "cardan/system.h"

typedef struct crdi_serve crdi_serve; ///< opaque
struct crd_last_words;

typedef struct crdi_serve_options {
    const char* name;   ///< of the slave; NULL: the model's, else the title, else the file's
    double resolution;  ///< s; NaN: the macro step of the description, the unit's, or 1 ms
    double heartbeat;   ///< s that may pass between two INF_state; NaN: it is not monitored
    bool hrt;           ///< offer hard real time, too
    uint32_t max_text;  ///< bytes of a string or binary; default 1024
    uint32_t max_steps; ///< of one STC_do_step and between two sendings; default 1000000
    /// Wave ports (shared/unit_wave.h), each "input:output"; at most CRDI_WAVES_MAX.
    const char* const* pairs;
    int pair_count;
    uint32_t life;                    ///< greater after each start of the process; default 1
    const crd_dcp_address* addresses; ///< where it will listen, in the description
    int address_count;                ///< 0: udp://127.0.0.1:8080
    /// Called when a unit has crashed in this process, whose heap may be damaged or locked: tells,
    /// without it, and ends the process. NULL: the slave goes to ERRORHANDLING, as with units that
    /// crash in a worker.
    void (*last_words)(void* user, const struct crd_last_words* words);
    void* last_words_user;
} crdi_serve_options;

crdi_serve_options crdi_serve_defaults(void);

/// Opens the units of `sys` (borrowed, outlives it; its run gets a step and no stop, its results
/// are not recorded) and describes them. Nothing of a unit runs yet. CRD_E_UNSUPPORTED: a system
/// with a variable step; CRD_E_RANGE: an option makes no sense.
crd_status crdi_serve_create(crd_context* ctx, crd_system* sys, const crdi_serve_options* opt,
                             crdi_serve** out);
void crdi_serve_destroy(crdi_serve* s);

/// The description in use. Its own has no findings.
const crd_dcp_description* crdi_serve_description(const crdi_serve* s);
/// Another description (borrowed, without faults) instead of its own: variables that it knows by
/// name, or fewer of them, with types, dimensions and causalities that fit; value references, uuid,
/// addresses and start values are the description's. Before crdi_serve_start.
/// CRD_E_RANGE, CRD_E_NOT_FOUND: what does not fit, and what would.
crd_status crdi_serve_use(crdi_serve* s, const crd_dcp_description* d);
/// The unit is a bench: roles, limits, checklist and stop by a file (borrowed, outlives it). Before
/// crdi_serve_start, with its own description. CRD_E_RANGE: what of the file does not fit the unit.
struct crdi_bench_file;
crd_status crdi_serve_as_bench(crdi_serve* s, const struct crdi_bench_file* f);
bool crdi_serve_at_rest(const crdi_serve* s); ///< nothing moves, or it is no bench
/// All of it for a description alone: the caller's.
crd_status crdi_serve_describe(crd_context* ctx, crd_system* sys, const crdi_serve_options* opt,
                               crd_dcp_description** out);

/// Told when the slave has entered a state.
typedef void crdi_serve_watch(void* user, crd_dcp_state state);

/// Creates the slave. `opt` NULL: defaults with room for all variables. `watch` may be NULL.
crd_status crdi_serve_start(crdi_serve* s, const crd_dcp_link* link,
                            const crd_dcp_slave_options* opt, crdi_serve_watch* watch, void* user);
crd_dcp_slave* crdi_serve_slave(crdi_serve* s); ///< NULL before start

/// Takes in what has arrived at `net` (whose link the slave has), lets the slave do what is due,
/// and waits for more: until something comes, something is due, or `most` seconds have passed.
void crdi_serve_turn(crdi_serve* s, crd_dcp_net* net, double most);

/// The slave goes, at time `now`. A master in a session with it is told: in Run that it stops,
/// before Run that it is in Error.
void crdi_serve_leave(crdi_serve* s, double now);

/// Why the plant failed last, a sentence; "" if it never did.
const char* crdi_serve_failure(const crdi_serve* s);
