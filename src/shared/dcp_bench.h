/// What modules share of test benches behind DCP: limits as they were read, and the master's side.
/// Not for users, whose systems say `bench:` of a unit.
#pragma once
#include "cardan/dcp.h"

// ---- limits ------------------------------------------------------------------------------------

#ifdef CRDI_SMALL // of a bench on a controller
enum { CRDI_DCP_LIMITS = 6, CRDI_DCP_REGIONS_MAX = 3, CRDI_DCP_LIMITS_TEXT = 320 };
#else
enum {
    CRDI_DCP_LIMITS = CRD_DCP_LIMITS_MAX,
    CRDI_DCP_REGIONS_MAX = 8,
    CRDI_DCP_LIMITS_TEXT = 1024
};
#endif

/// A quantity with its bounds, numbers in its unit. -INFINITY, INFINITY: none.
typedef struct crdi_dcp_limit {
    char name[32];
    char unit[16];
    double min, max;
    double rate;             ///< unit/s
    crd_dimension dimension; ///< of the unit
} crdi_dcp_limit;

/// Operating points that are forbidden: `where` in its bounds while `with` lies in its own; without
/// bounds of its own: while it is anything but 0.
typedef struct crdi_dcp_region {
    crdi_dcp_limit where, with;
} crdi_dcp_region;

/// The text of limits, read: cardan/dcp.h says what it looks like.
typedef struct crdi_dcp_limits {
    crdi_dcp_limit of[CRDI_DCP_LIMITS];
    int count;
    crdi_dcp_region avoid[CRDI_DCP_REGIONS_MAX];
    int avoid_count;
} crdi_dcp_limits;

/// CRD_E_FORMAT: the statement and what is wrong with it. Does not allocate.
crd_status crdi_dcp_limits_parse(crd_context* ctx, const char* text, size_t length,
                                 crdi_dcp_limits* out);
/// As snprintf; what is printed reads back as the same.
int crdi_dcp_limits_print(const crdi_dcp_limits* l, char* out, size_t room);
/// As crd_dimension_parse, but 1/min is a speed of rotation.
bool crdi_bench_dimension(const char* unit, crd_dimension* out);
/// NULL: nothing is said about it.
const crdi_dcp_limit* crdi_dcp_limits_find(const crdi_dcp_limits* l, const char* name);
/// Whether a test case keeps to the limits of `who`. CRD_E_RANGE: names the limit.
crd_status crdi_dcp_limits_check(crd_context* ctx, const crdi_dcp_limits* planned,
                                 const crdi_dcp_limits* limits, const char* who);
/// The exchange of limits: what is planned is checked against both sides, and each quantity of it
/// is known to one of them. CRD_E_RANGE. Both sides come to the same verdict.
crd_status crdi_dcp_limits_agree(crd_context* ctx, const crdi_dcp_limits* planned,
                                 const crdi_dcp_limits* bench, const crdi_dcp_limits* peer);

/// Temperatures that media have at the start: "oil 80 degC; coolant 60 degC; tolerance 1 K". The
/// tolerance is the limit of that name, 1 K where it is not given.
crd_status crdi_dcp_initial_parse(crd_context* ctx, const char* text, size_t length,
                                  crdi_dcp_limits* out, double* tolerance);

// ---- the bench's side --------------------------------------------------------------------------

/// A set value that something between master and bench has worked out (a wave port): kept to the
/// envelope as any other. `value` NAN: none yet. `data`: what it was worked out from has just come
/// from the master and is good; without that the deadman comes, however many values there are.
void crdi_bench_follow(crd_dcp_bench* b, int quantity, double value, bool data);

// ---- the master's side -------------------------------------------------------------------------

/// States of a master with the numbers of Rautenberg 2023, table 7.
typedef enum crdi_dcp_master_state {
    CRDI_DCP_MASTER_REGISTER,
    CRDI_DCP_MASTER_CONFIGURE,
    CRDI_DCP_MASTER_APPLY,
    CRDI_DCP_MASTER_INITIALIZE,
    CRDI_DCP_MASTER_SEND_I,
    CRDI_DCP_MASTER_RUN,
    CRDI_DCP_MASTER_SEND_D,
    CRDI_DCP_MASTER_STOP,
    CRDI_DCP_MASTER_STOPPED,
    CRDI_DCP_MASTER_STATE_COUNT,
} crdi_dcp_master_state;

const char* crdi_dcp_master_state_name(int state); ///< "REGISTER"; NULL: unknown
/// The state that a master is in with slaves in these states: that of the one that is furthest
/// behind, STOP as soon as one stops or is in Error. `ready` false: the master's own side is not
/// conditioned, and it stays in APPLY.
crdi_dcp_master_state crdi_dcp_master_state_of(const crd_dcp_state* slaves, int count, bool ready);

/// Variables of the extension in a description, by index.
typedef struct crdi_dcp_bench_variables {
    int extension, limits, peer_limits, planned, initial;                 ///< parameters
    int sequence, echo;                                                   ///< inputs
    int sequence_out, echo_out, status, reason, clamped, clamps, refused; ///< outputs
} crdi_dcp_bench_variables;

/// false: a plain slave.
bool crdi_dcp_bench_find(const crd_dcp_description* d, crdi_dcp_bench_variables* out);

/// A quantity of a bench and its variables, by index; -1: none.
typedef struct crdi_dcp_bench_pair {
    char name[32];
    int input, output; ///< of its set value, of its measured value
} crdi_dcp_bench_pair;

/// The quantities of a bench as crd_dcp_bench_declare writes them into the description of
/// `bench.clamped`, in the order of its bits; `out` has room for CRD_DCP_LIMITS_MAX. How many; 0:
/// the description does not say.
int crdi_dcp_bench_pairs(const crd_dcp_description* d, crdi_dcp_bench_pair* out);

/// What the master's side says to a bench. Texts may be NULL or "".
typedef struct crdi_dcp_bench_plan {
    const char* name;    ///< of the slave, for messages; borrowed, as the texts
    const char* limits;  ///< of the master's side
    const char* planned; ///< the test case
    const char* initial; ///< temperatures at its start
    uint32_t gap_limit;  ///< default 100, in numbers of this side
    double watchdog;     ///< s without a new sequence number; default 0.5; 0: none
} crdi_dcp_bench_plan;

/// A bench as its master sees it.
typedef struct crdi_dcp_bench_peer crdi_dcp_bench_peer; ///< opaque

typedef struct crdi_dcp_bench_view {
    crd_dcp_bench_phase phase; ///< as the last data said
    crd_dcp_bench_reason reason;
    uint32_t clamped;
    int64_t clamps, refused;
    uint32_t gap;       ///< numbers that are on their way
    uint32_t behind;    ///< how many numbers ago we sent the one that its newest data answer to
    bool answers;       ///< there was one
    double last_number; ///< time of the last new sequence number, -INFINITY
    crd_dcp_round_trip round_trip;
    const char* missing;  ///< the newest entry of its log about preparation, ""
    const char* progress; ///< about conditioning
    const char* why;      ///< about a refusal, clamp, fault or stop
} crdi_dcp_bench_view;

crdi_dcp_bench_plan crdi_dcp_bench_plan_defaults(void);
/// Reads the declaration and checks the test case against the limits of both sides: before anything
/// is said to the bench. CRD_E_UNSUPPORTED: a plain slave; CRD_E_FORMAT, CRD_E_RANGE.
crd_status crdi_dcp_bench_peer_create(crd_context* ctx, const crd_dcp_description* d,
                                      const crdi_dcp_bench_plan* plan, crdi_dcp_bench_peer** out);
void crdi_dcp_bench_peer_destroy(crdi_dcp_bench_peer* p);
/// The parameters of the extension for crd_dcp_master_configure; from here on the master's slots
/// are used. Its inputs and outputs are fed and watched by the caller, best together with its set
/// values and measured values: crdi_dcp_bench_peer_inputs, crdi_dcp_bench_peer_outputs.
crd_status crdi_dcp_bench_peer_bind(crdi_dcp_bench_peer* p, crd_dcp_master* m, int slave);
int crdi_dcp_bench_peer_inputs(const crdi_dcp_bench_peer* p, int out[2]);
int crdi_dcp_bench_peer_outputs(const crdi_dcp_bench_peer* p, int out[7]);
/// A run begins at `start` on the clock of the net.
void crdi_dcp_bench_peer_begin(crdi_dcp_bench_peer* p, double start);
/// Keeps the set values in the master's slots to what was agreed, before they are sent; `seconds`
/// since they were sent last, 0: the rate does not count. The first value of a quantity that is
/// kept is a warning in `log`.
void crdi_dcp_bench_peer_limit(crdi_dcp_bench_peer* p, double seconds, double now,
                               crd_context* log);
/// What was kept, one kind of one quantity after the other: a sentence, "" where nothing was.
/// False: there is no such kind.
bool crdi_dcp_bench_peer_clamps(const crdi_dcp_bench_peer* p, int i, char* out, size_t room);
/// What was sent of this input in the end. False: it has no limits, or nothing was sent.
bool crdi_dcp_bench_peer_acting(const crdi_dcp_bench_peer* p, int variable, double* value);
/// Before each crd_dcp_master_send: the next number, and the echo of theirs.
void crdi_dcp_bench_peer_send(crdi_dcp_bench_peer* p, double now);
/// Of `ratio` numbers of the bench one is looked at, because it sends so much more often than we
/// do: the gap limit counts ours. It is `least` at least. Defaults 1 and 0.
void crdi_dcp_bench_peer_set_pace(crdi_dcp_bench_peer* p, double ratio, double least);
/// After each crd_dcp_master_poll. CRD_E_UNIT: the numbers are too far apart, or none has come for
/// the time of the watchdog.
crd_status crdi_dcp_bench_peer_check(crdi_dcp_bench_peer* p, double now);
/// Notices of the session: keeps what the bench's log says.
void crdi_dcp_bench_peer_notice(crdi_dcp_bench_peer* p, const crd_dcp_notice* n);
crdi_dcp_bench_view crdi_dcp_bench_peer_view(const crdi_dcp_bench_peer* p);
