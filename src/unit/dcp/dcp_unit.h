// A slave of the Distributed Co-Simulation Protocol as a unit, and the session that all of them in
// a system share.
#pragma once
#include "cardan/dcp.h"
#include "shared/base.h"
#include "shared/board.h"
#include "shared/dcp_bench.h"
#include "shared/unit_dcp.h"
#include "unit/unit.h"

typedef struct crdi_session crdi_session;

// A value on its way between the unit and the session.
typedef struct crdi_dcp_move {
    const crd_dcp_slot *from, *to;
} crdi_dcp_move;

// How values of a variable become those of a quantity: x * scale + offset.
typedef struct crdi_dcp_gauge {
    int32_t variable; // -1: none
    double scale, offset;
} crdi_dcp_gauge;

typedef struct crdi_dcp_gauges { // of a quantity on the board
    crdi_dcp_gauge set, measured;
    int bit; // of bench.clamped, -1: not known
} crdi_dcp_gauges;

typedef struct crdi_dcp_medium { // that is conditioned, as the log says
    char name[32], unit[16];
    double measured, wanted;
    double heat; // how far they are apart, K
} crdi_dcp_medium;

typedef struct crdi_dcp_unit {
    crd_unit base;
    crd_arena arena;
    crd_dcp_description* d;
    crd_variable* variables;
    crd_map names;
    crd_arena memory;       // of the values
    crdi_dcp_value* values; // (variable_count) as they were at the end of the last step

    crd_dcp_address address;
    crd_dcp_can_description* can; // on a CAN bus, NULL
    crd_dcp_op_mode mode;
    uint32_t numerator, denominator;
    double resolution; // s

    crdi_dcp_bench_peer* bench; // NULL: driven as a plain slave
    crdi_session* session;
    bool own_session; // no store: nobody else has it
    int slave;        // index in the session
    bool* fed;        // per variable: an input that is set from here, a parameter that is set
    bool* routed;     // an input that another slave feeds
    crdi_dcp_move *inputs, *outputs;
    int input_count, output_count;
    bool configured;   // groups and parameters are what they are
    bool initializing; // between enter and exit of the initialisation
    bool dirty;        // inputs changed since the outputs were computed (initialisation)
    bool begun;        // a step is under way
    crd_status failed; // of begin
    bool fell;         // into ERRORHANDLING
    bool slow_stop;    // the bench did not come to rest in its time
    bool excused;      // another slave has failed, whose unit is to say so
    int64_t late;      // steps of SRT and HRT that ended later than they should

    // What is told about the link, as it was at the end of the last step.
    crd_link_stats link;
    char security[96];           // of the link, in words
    crd_dcp_slave_status before; // at the start of the run
    int64_t taken;               // data PDUs that outputs were made of
    double age_sum;
    int64_t age_count;

    // What is known about the slave. Written with the baton of the session.
    crdi_board* board;
    double board_offset;         // from the clock of the net to the board's, s; NAN: no net yet
    double board_shown;          // on the clock of the net
    crdi_dcp_bench_variables at; // with the extension
    crdi_dcp_gauges gauges[CRDI_BOARD_QUANTITIES];
    crdi_dcp_medium media[4]; // of the newest report
    int medium_count;
    int ward; // its row there + 1, 0: none yet
} crdi_dcp_unit;

// ---- describe.c
crd_status crdi_dcp_unit_describe(crdi_dcp_unit* u);
// Sizes of arrays with the structural parameters of the settings, and room for all values.
crd_status crdi_dcp_unit_resize(crd_unit* u);
bool crdi_dcp_unit_dimension(const crd_unit* u, int32_t variable, crd_dimension* out);
uint32_t crdi_dcp_unit_extent(const crd_unit* u, int32_t variable, int axis);

// ---- dcp_board.c
crd_status crdi_dcp_board_create(crdi_dcp_unit* u);
void crdi_dcp_board_open(crdi_dcp_unit* u, double net_now); // a session begins
void crdi_dcp_board_notice(crdi_dcp_unit* u, const crd_dcp_notice* n,
                           const crd_dcp_slave_status* t);
// Outputs of a step have been taken. Does not format.
void crdi_dcp_board_data(crdi_dcp_unit* u, const crd_dcp_slave_status* t, double now);
// Now and then while others are waited for.
void crdi_dcp_board_refresh(crdi_dcp_unit* u, const crd_dcp_slave_status* t, double now);

// ---- session.c
// Makes the network of a session: real sockets, unless a test puts another one here.
extern crd_status (*crdi_session_open_net)(crd_context* ctx, crd_dcp_net** out);
// Tests that let the time of a virtual network pass without the master have no other thread there.
extern bool crdi_session_has_thread;
// The clock that grids of runs are on, ns, which goes on with that of the net.
extern int64_t (*crdi_session_now)(void);
// All units of a store are in one session, but for those with a stand-in. Nothing is sent before
// configure.
crd_status crdi_session_join(crd_unit_store* store, crdi_dcp_unit* u);
void crdi_session_leave(crdi_dcp_unit* u); // brings the session down if it is up
void crdi_session_destroy(crdi_session* s);
// An output of one of its units goes to an input of another, directly if that is possible.
bool crdi_session_route(crdi_dcp_unit* from, int32_t output, crdi_dcp_unit* to, int32_t input);
// Where a store has several sessions: this one is brought up by a thread of its own, so that no
// bench waits until another one is conditioned. If one fails, the others give up.
void crdi_session_approach(crdi_dcp_unit* u, const crd_experiment* e);
// Brings all slaves to CONFIGURED; the first call does it for all.
crd_status crdi_session_configure(crdi_dcp_unit* u, const crd_experiment* e);
// One turn of the initialisation of this slave.
crd_status crdi_session_initialize(crdi_dcp_unit* u);
// Inputs leave; the first call starts all slaves, the experiment is at `t`.
crd_status crdi_session_check_step(const crdi_dcp_unit* u, double h);
crd_status crdi_session_begin(crdi_dcp_unit* u, double t, double h);
crd_status crdi_session_end(crdi_dcp_unit* u, double t, double h);
// Starts a session that was initialised while its run goes on: its first step may begin at any time
// of that. The run was at `t` when the monotonic clock was at `origin`, ns; 0: it is not in real
// time.
crd_status crdi_session_start_on(crdi_dcp_unit* u, int64_t origin, double t);
// Around changes of inputs: the first step of any slave sends those of all in real time.
void crdi_session_lock(crdi_dcp_unit* u);
void crdi_session_unlock(crdi_dcp_unit* u);
// A session that has failed is over, and somebody else will stop it: no more heartbeats, so that
// the slave knows, too. Does not wait.
void crdi_session_let_go(crdi_dcp_unit* u);
// From another thread: whoever waits in a step gives up.
void crdi_session_interrupt(crdi_dcp_unit* u);
// Tells all slaves to stop and waits for nobody; the first call does it for all.
void crdi_session_halt(crdi_dcp_unit* u);
// Stops all slaves; the first call does it for all.
crd_status crdi_session_stop(crdi_dcp_unit* u);
