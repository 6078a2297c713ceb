/// Test benches behind the Distributed Co-Simulation Protocol: limits, readiness, conditioning and
/// a safe state, after Rautenberg et al. 2023, section 3.4.
///
/// A plain DCP slave does what its master says. A bench does not: it moves masses and voltages, so
/// it keeps its own limits, gets ready and warm before a run, and has a way to stand still that it
/// goes whenever something is wrong. `crd_dcp_bench` is that part. It is a crd_dcp_plant between a
/// crd_dcp_slave and the hardware (crd_dcp_rig), and it works with any master.
///
/// With a master that knows the extension more is said: limits, test case and initial temperatures
/// in CONFIGURATION, sequence numbers that the peer sends back in the run. All of it travels in
/// ordinary means of DCP: parameters, inputs, outputs and log entries that the slave's description
/// lists (crd_dcp_bench_declare). A master that leaves `bench.extension` at 0 notices nothing of
/// it.
///
/// Time is handed in; after `create` nothing allocates. One thread at a time.
#pragma once
#include "cardan/dcp_master.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- limits ------------------------------------------------------------------------------------

enum { CRD_DCP_LIMITS_MAX = 16, CRD_DCP_REGIONS_MAX = 8, CRD_DCP_LIMITS_TEXT = 1024 };

/// A quantity with its bounds, numbers in its unit. -INFINITY, INFINITY: none.
typedef struct crd_dcp_limit {
    char name[32];
    char unit[16];
    double min, max;
    double rate;             ///< unit/s
    crd_dimension dimension; ///< of the unit
} crd_dcp_limit;

/// Operating points that are forbidden: `where` in its bounds while `with` lies in its own; without
/// bounds of its own: while it is anything but 0.
typedef struct crd_dcp_region {
    crd_dcp_limit where, with;
} crd_dcp_region;

/// What a bench can do, or what a test case asks for. As text, statements between semicolons:
///
///     speed 0..6500 1/min rate 2000 1/min/s; torque -210..210 N.m; voltage ..400 V;
///     avoid speed 0..50 1/min with torque
///
/// Of a test case, `avoid` says that it keeps clear of these points. One number stands for a range
/// (torque 0 N.m). "1/min" is a speed of rotation as "rpm" is.
typedef struct crd_dcp_limits {
    crd_dcp_limit of[CRD_DCP_LIMITS_MAX];
    int count;
    crd_dcp_region avoid[CRD_DCP_REGIONS_MAX];
    int avoid_count;
} crd_dcp_limits;

/// CRD_E_FORMAT: the statement and what is wrong with it. Does not allocate.
CRD_API crd_status crd_dcp_limits_parse(crd_context* ctx, const char* text, size_t length,
                                        crd_dcp_limits* out);
/// As snprintf; what is printed reads back as the same.
CRD_API int crd_dcp_limits_print(const crd_dcp_limits* l, char* out, size_t room);
/// NULL: nothing is said about it.
CRD_API const crd_dcp_limit* crd_dcp_limits_find(const crd_dcp_limits* l, const char* name);
/// Whether a test case keeps to the limits of `who`. CRD_E_RANGE: names the limit.
CRD_API crd_status crd_dcp_limits_check(crd_context* ctx, const crd_dcp_limits* planned,
                                        const crd_dcp_limits* limits, const char* who);
/// The exchange of limits: what is planned is checked against both sides, and each quantity of it
/// is known to one of them. CRD_E_RANGE. Both sides come to the same verdict.
CRD_API crd_status crd_dcp_limits_agree(crd_context* ctx, const crd_dcp_limits* planned,
                                        const crd_dcp_limits* bench, const crd_dcp_limits* peer);

/// Temperatures that media have at the start: "oil 80 degC; coolant 60 degC; tolerance 1 K". The
/// tolerance is the limit of that name, 1 K where it is not given.
CRD_API crd_status crd_dcp_initial_parse(crd_context* ctx, const char* text, size_t length,
                                         crd_dcp_limits* out, double* tolerance);

// ---- the bench ---------------------------------------------------------------------------------

/// What becomes of the set value of a quantity in a controlled stop.
typedef enum crd_dcp_role {
    CRD_DCP_ROLE_OTHER,       ///< goes to its safe value at once
    CRD_DCP_ROLE_SPEED,       ///< one at most: is ramped down
    CRD_DCP_ROLE_TORQUE,      ///< is 0 at once
    CRD_DCP_ROLE_VOLTAGE,     ///< is held until the speed is safe, then lowered
    CRD_DCP_ROLE_TEMPERATURE, ///< a medium: is conditioned, and cooled down
} crd_dcp_role;

/// Start from crd_dcp_quantity_defaults. NAN: not given.
typedef struct crd_dcp_quantity {
    const char* name; ///< as in the limits
    const char* unit; ///< of its values here and in its variables; NULL: that of its limit
    crd_dcp_role role;
    const char* input;         ///< the variable of its set value, NULL: none
    const char* output;        ///< the variable of its measured value, NULL: none
    double conditioning;       ///< set value while media are conditioned
    double safe;               ///< set value at the end of a stop; default 0, a medium's: as it is
    double trip_min, trip_max; ///< measured values beyond are a fault
    double cool_down;          ///< a medium: a stop is over when it is not above this
} crd_dcp_quantity;

/// Everything is borrowed and outlives the bench. Start from crd_dcp_bench_defaults.
typedef struct crd_dcp_bench_config {
    const char* limits; ///< as text; set values are kept to them
    const crd_dcp_quantity* quantities;
    int quantity_count;           ///< at most CRD_DCP_LIMITS_MAX
    const char* const* checklist; ///< what has to be so before remote control is given
    int checklist_count;          ///< at most 31
    const char* initial;          ///< temperatures where the master says none; default ""
    double tolerance;             ///< K, where the master says none; default 1
    double safe_speed;            ///< in the unit of the speed; default 100
    double turn_speed;            ///< while a stop cools down; default NAN: half of the safe speed
    double stop_rate;  ///< of the speed in a stop, unit/s; default NAN: its limit's, else 1000
    double standstill; ///< a speed that counts as 0; default 1
    double induced;    ///< voltage that the machine induces per unit of speed: the set value of the
                       ///< voltage is never below that; default 0
    double watchdog;   ///< s without valid data in a run until the stop; default 0.5; 0: none
    uint32_t gap_limit; ///< of sequence numbers; default 100. A side that sends 100 times as often
                        ///< as the other needs more
    double period;      ///< s, of the bench's own control; default 0.01
    double report;      ///< s between entries of the log about what is waited for; default 5
    double stop_patience; ///< s until a stop that does not end is reported; default 60
} crd_dcp_bench_config;

/// The hardware. Quantities and items by their index in the configuration.
typedef struct crd_dcp_rig {
    void* user;
    void (*set)(void* user, int quantity, double value);
    double (*measure)(void* user, int quantity);
    bool (*ready)(void* user, int item); ///< NULL: all are
    int (*error)(void* user);            ///< what is in the error memory, 0: nothing; NULL: never
    void (*remote)(void* user, bool given);   ///< remote control is given or withdrawn; NULL
    void (*step)(void* user, double seconds); ///< its controller or model goes on; NULL
    /// Variables that are not of the bench, as in crd_dcp_plant; NULL: nothing to do.
    crd_dcp_outcome (*set_variable)(void* user, int variable, const crd_dcp_slot* value);
    crd_dcp_outcome (*get_variable)(void* user, int variable, crd_dcp_slot* value);
} crd_dcp_rig;

/// Where the bench is; `bench.status`.
typedef enum crd_dcp_bench_phase {
    CRD_DCP_BENCH_IDLE,         ///< nobody's, at rest
    CRD_DCP_BENCH_PREPARATION,  ///< goes through its checklist
    CRD_DCP_BENCH_PREPARED,     ///< under remote control from here on
    CRD_DCP_BENCH_CONDITIONING, ///< media come to their temperatures
    CRD_DCP_BENCH_CONDITIONED,  ///< and are held there
    CRD_DCP_BENCH_RUN,          ///< follows the set values of the master
    CRD_DCP_BENCH_SPEED_DOWN,   ///< remote control withdrawn, torque 0, voltage held
    CRD_DCP_BENCH_VOLTAGE_DOWN, ///< the speed is safe
    CRD_DCP_BENCH_COOL_DOWN,    ///< turns slowly until the media are cool enough
    CRD_DCP_BENCH_STAND_DOWN,   ///< to standstill, voltage to 0
    CRD_DCP_BENCH_SAFE,         ///< at rest; remote control needs a new registration
} crd_dcp_bench_phase;

/// Why the last stop was; `bench.reason`.
typedef enum crd_dcp_bench_reason {
    CRD_DCP_BENCH_NO_REASON,
    CRD_DCP_BENCH_BY_MASTER,   ///< STC_stop
    CRD_DCP_BENCH_BY_OPERATOR, ///< crd_dcp_bench_stop
    CRD_DCP_BENCH_WATCHDOG,    ///< valid data have stopped
    CRD_DCP_BENCH_GAP,         ///< sequence numbers too far apart
    CRD_DCP_BENCH_TRIP,        ///< a measured value beyond its bounds
    CRD_DCP_BENCH_RIG_ERROR,   ///< the error memory of the rig
    CRD_DCP_BENCH_ITEM_LOST,   ///< of the checklist
    CRD_DCP_BENCH_LIMITS,      ///< the test case was refused
    CRD_DCP_BENCH_WITHDRAWN,   ///< STC_prepare without a new registration
    CRD_DCP_BENCH_SLAVE,       ///< anything that the slave found: heartbeat, missed PDUs
} crd_dcp_bench_reason;

CRD_API const char* crd_dcp_bench_phase_name(int phase);   ///< "conditioning"; NULL: unknown
CRD_API const char* crd_dcp_bench_reason_name(int reason); ///< "watchdog"; NULL: unknown

/// Times between sending a sequence number and getting it back.
typedef struct crd_dcp_round_trip {
    int64_t count;
    double last, least, most, sum; ///< s
} crd_dcp_round_trip;

typedef struct crd_dcp_bench_state {
    crd_dcp_bench_phase phase;
    crd_dcp_bench_reason reason;
    bool extension;    ///< switched on by the master
    bool remote;       ///< the master has control
    uint32_t missing;  ///< items of the checklist, by bits; bit 31: the error memory
    uint32_t clamped;  ///< set values: bit i outside of limits, bit 16 + i changing too fast
    int64_t clamps;    ///< how often a set value went outside
    int64_t refused;   ///< set values that were not numbers
    double safe_since; ///< speed safe and torque 0, s; NAN: not
    double valid;      ///< time of the last valid data, -INFINITY
    double time;       ///< of its control, which is what the watchdog goes by
    crd_dcp_round_trip round_trip;
} crd_dcp_bench_state;

typedef struct crd_dcp_bench crd_dcp_bench; ///< opaque

CRD_API crd_dcp_quantity crd_dcp_quantity_defaults(void);
CRD_API crd_dcp_bench_config crd_dcp_bench_defaults(void);

/// Adds the variables `bench.*` (value references from `first_vr` on) and the log entries of a
/// bench to a description of crd_dcp_description_create. CRD_E_RANGE: a name or reference that is
/// taken; CRD_E_FORMAT: the limits.
CRD_API crd_status crd_dcp_bench_declare(crd_dcp_description* d, const crd_dcp_bench_config* c,
                                         uint64_t first_vr);

/// `d` need not be declared a bench: then masters cannot switch the extension on, and all else is
/// there. CRD_E_NOT_FOUND: a variable or limit that is named does not exist. CRD_E_RANGE.
CRD_API crd_status crd_dcp_bench_create(crd_context* ctx, const crd_dcp_description* d,
                                        const crd_dcp_bench_config* c, const crd_dcp_rig* rig,
                                        crd_dcp_bench** out);
CRD_API void crd_dcp_bench_destroy(crd_dcp_bench* b);
/// For crd_dcp_slave_create, whose slave is then told to the bench (borrowed). What the bench does
/// by itself (control, watch, duties that take their time) it does when crd_dcp_slave_advance or
/// crd_dcp_slave_receive is called: who drives the slave drives the bench. In NRT the rig's time is
/// that of the steps while it runs.
CRD_API crd_dcp_plant crd_dcp_bench_plant(crd_dcp_bench* b);
CRD_API void crd_dcp_bench_attach(crd_dcp_bench* b, crd_dcp_slave* s);
/// Somebody at the bench wants it to stop.
CRD_API void crd_dcp_bench_stop(crd_dcp_bench* b, double now);
CRD_API crd_dcp_bench_state crd_dcp_bench_get_state(const crd_dcp_bench* b);
CRD_API double crd_dcp_bench_set_value(const crd_dcp_bench* b, int quantity); ///< what the rig has

// ---- the master's side -------------------------------------------------------------------------

/// States of a master with the numbers of Rautenberg 2023, table 7.
typedef enum crd_dcp_master_state {
    CRD_DCP_MASTER_REGISTER,
    CRD_DCP_MASTER_CONFIGURE,
    CRD_DCP_MASTER_APPLY,
    CRD_DCP_MASTER_INITIALIZE,
    CRD_DCP_MASTER_SEND_I,
    CRD_DCP_MASTER_RUN,
    CRD_DCP_MASTER_SEND_D,
    CRD_DCP_MASTER_STOP,
    CRD_DCP_MASTER_STOPPED,
    CRD_DCP_MASTER_STATE_COUNT,
} crd_dcp_master_state;

CRD_API const char* crd_dcp_master_state_name(int state); ///< "REGISTER"; NULL: unknown
/// The state that a master is in with slaves in these states: that of the one that is furthest
/// behind, STOP as soon as one stops or is in Error. `ready` false: the master's own side is not
/// conditioned, and it stays in APPLY.
CRD_API crd_dcp_master_state crd_dcp_master_state_of(const crd_dcp_state* slaves, int count,
                                                     bool ready);

/// Variables of the extension in a description, by index.
typedef struct crd_dcp_bench_variables {
    int extension, limits, peer_limits, planned, initial;                 ///< parameters
    int sequence, echo;                                                   ///< inputs
    int sequence_out, echo_out, status, reason, clamped, clamps, refused; ///< outputs
} crd_dcp_bench_variables;

/// false: a plain slave.
CRD_API bool crd_dcp_bench_find(const crd_dcp_description* d, crd_dcp_bench_variables* out);

/// A quantity of a bench and its variables, by index; -1: none.
typedef struct crd_dcp_bench_pair {
    char name[32];
    int input, output; ///< of its set value, of its measured value
} crd_dcp_bench_pair;

/// The quantities of a bench as crd_dcp_bench_declare writes them into the description of
/// `bench.clamped`, in the order of its bits; `out` has room for CRD_DCP_LIMITS_MAX. How many; 0:
/// the description does not say.
CRD_API int crd_dcp_bench_pairs(const crd_dcp_description* d, crd_dcp_bench_pair* out);

/// What the master's side says to a bench. Texts may be NULL or "".
typedef struct crd_dcp_bench_plan {
    const char* name;    ///< of the slave, for messages; borrowed, as the texts
    const char* limits;  ///< of the master's side
    const char* planned; ///< the test case
    const char* initial; ///< temperatures at its start
    uint32_t gap_limit;  ///< default 100, in numbers of this side
    double watchdog;     ///< s without a new sequence number; default 0.5; 0: none
} crd_dcp_bench_plan;

/// A bench as its master sees it.
typedef struct crd_dcp_bench_peer crd_dcp_bench_peer; ///< opaque

typedef struct crd_dcp_bench_view {
    crd_dcp_bench_phase phase; ///< as the last data said
    crd_dcp_bench_reason reason;
    uint32_t clamped;
    int64_t clamps, refused;
    uint32_t gap;    ///< numbers that are on their way
    uint32_t behind; ///< how many numbers ago we sent the one that its newest data answer to
    bool answers;    ///< there was one
    double heard;    ///< time of the last new sequence number, -INFINITY
    crd_dcp_round_trip round_trip;
    const char* missing;  ///< the newest entry of its log about preparation, ""
    const char* progress; ///< about conditioning
    const char* why;      ///< about a refusal, clamp, fault or stop
} crd_dcp_bench_view;

CRD_API crd_dcp_bench_plan crd_dcp_bench_plan_defaults(void);
/// Reads the declaration and checks the test case against the limits of both sides: before anything
/// is said to the bench. CRD_E_UNSUPPORTED: a plain slave; CRD_E_FORMAT, CRD_E_RANGE.
CRD_API crd_status crd_dcp_bench_peer_create(crd_context* ctx, const crd_dcp_description* d,
                                             const crd_dcp_bench_plan* plan,
                                             crd_dcp_bench_peer** out);
CRD_API void crd_dcp_bench_peer_destroy(crd_dcp_bench_peer* p);
/// The parameters of the extension for crd_dcp_master_configure; from here on the master's slots
/// are used. Its inputs and outputs are fed and watched by the caller, best together with its set
/// values and measured values: crd_dcp_bench_peer_inputs, crd_dcp_bench_peer_outputs.
CRD_API crd_status crd_dcp_bench_peer_bind(crd_dcp_bench_peer* p, crd_dcp_master* m, int slave);
CRD_API int crd_dcp_bench_peer_inputs(const crd_dcp_bench_peer* p, int out[2]);
CRD_API int crd_dcp_bench_peer_outputs(const crd_dcp_bench_peer* p, int out[7]);
/// A run begins at `start` on the clock of the net.
CRD_API void crd_dcp_bench_peer_begin(crd_dcp_bench_peer* p, double start);
/// Before each crd_dcp_master_send: the next number, and the echo of theirs.
CRD_API void crd_dcp_bench_peer_send(crd_dcp_bench_peer* p, double now);
/// Of `ratio` numbers of the bench one is looked at, because it sends so much more often than we
/// do: the gap limit counts ours. It is `least` at least. Defaults 1 and 0.
CRD_API void crd_dcp_bench_peer_set_pace(crd_dcp_bench_peer* p, double ratio, double least);
/// After each crd_dcp_master_poll. CRD_E_UNIT: the numbers are too far apart, or none has come for
/// the time of the watchdog.
CRD_API crd_status crd_dcp_bench_peer_check(crd_dcp_bench_peer* p, double now);
/// Notices of the session: keeps what the bench's log says.
CRD_API void crd_dcp_bench_peer_notice(crd_dcp_bench_peer* p, const crd_dcp_notice* n);
CRD_API crd_dcp_bench_view crd_dcp_bench_peer_view(const crd_dcp_bench_peer* p);

#ifdef __cplusplus
}
#endif
