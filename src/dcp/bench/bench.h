// The bench between its files: safety.c says what may act and when it has to stop, bench.c is the
// slave's plant, run.c control, watch and duties, describe.c what the description lists, limits.c
// the texts, peer.c the master.
#pragma once
#include "dcp/slave/slave.h"
#include "shared/base.h"
#include "shared/dcp_bench.h"
#include "shared/dcp_safety.h"

enum { CRDI_BENCH_ITEMS = 31 }; // by bits; 31 is the error memory
#ifdef CRDI_SMALL
enum { CRDI_BENCH_RING = 64 };
#else
enum { CRDI_BENCH_RING = 256 };
#endif

/// Entries of the log; bench_describe.c has their texts.
typedef enum crdi_bench_log {
    CRDI_LOG_READY,
    CRDI_LOG_MISSING,
    CRDI_LOG_CONDITIONING,
    CRDI_LOG_CONDITIONED,
    CRDI_LOG_REFUSED,
    CRDI_LOG_CLAMPED,
    CRDI_LOG_NOT_A_NUMBER,
    CRDI_LOG_TRIP,
    CRDI_LOG_WATCHDOG,
    CRDI_LOG_GAP,
    CRDI_LOG_RIG_ERROR,
    CRDI_LOG_ITEM_LOST,
    CRDI_LOG_STOP,
    CRDI_LOG_STOP_LATE,
    CRDI_LOG_AVOIDED,
    CRDI_LOG_FOREIGN,
    CRDI_LOG_UNSAFE,
    CRDI_LOG_SILENCE,
    CRDI_LOG_CALIBRATED,
    CRDI_LOG_COUNT,
} crdi_bench_log;

typedef struct crdi_bench_quantity {
    const crd_dcp_quantity* spec;
    int of; // the quantity that it moves as well, -1
    const char* unit;
    crd_dimension dimension;
    crdi_safety_axis axis; // in its own unit
    double wanted;         // by the master
    bool given;            // wanted counts
    double taken;          // when it last came in a run, -INFINITY: not yet
    bool driven;           // the rig has got a set value in this run
    double set, target;    // what the rig has, what it goes to
    double measured;
    bool at_once; // out of a forbidden region
    crdi_safety_clamps outside;
    double logged; // when a clamp was
} crdi_bench_quantity;

typedef struct crdi_bench_region { // in the units of its quantities
    int where, with;
    double where_min, where_max, with_min, with_max; // with NAN: all but 0
} crdi_bench_region;

typedef struct crdi_bench_medium { // that is conditioned
    int quantity;
    double wanted, tolerance;
} crdi_bench_medium;

/// One direction of sequence numbers, seen from who sends them.
typedef struct crdi_bench_sequence {
    uint32_t sent;   // the newest of ours
    uint32_t back;   // the newest of ours that they have sent back
    uint32_t theirs; // the newest of theirs
    uint32_t lost;   // between the last two of theirs
    uint32_t timed;  // the newest of ours in the round trips
    bool has_theirs, has_back;
    double times[CRDI_BENCH_RING]; // when ours left
    crd_dcp_round_trip round_trip;
} crdi_bench_sequence;

struct crd_dcp_bench {
    crd_context* ctx;
    crd_arena arena;
    const crd_dcp_description* d;
    crd_dcp_bench_config c;
    crd_dcp_rig rig;
    crd_dcp_slave* slave;
    crdi_dcp_bench_variables at;
    bool declared;
    const crd_dcp_log_template* logs[CRDI_LOG_COUNT]; // NULL: not in the description
    crdi_bench_quantity q[CRDI_DCP_LIMITS];
    int speed;    // index, -1
    int16_t* set; // (variable_count) quantity of a set value, -1
    int16_t* get; // (variable_count) quantity of a measured value, -1
    crdi_dcp_limits own;
    crdi_bench_region regions[3 * CRDI_DCP_REGIONS_MAX]; // own, of the case, of the other side
    int region_count, own_regions;
    crdi_bench_medium media[CRDI_DCP_LIMITS];
    int media_count;
    // said by the master
    bool extension;
    char texts[3][CRDI_DCP_LIMITS_TEXT]; // its limits, the case, initial
    uint32_t lengths[3];
    // now
    crdi_safety safety;
    crd_dcp_bench_reason reason;
    crd_dcp_bench_reason cause; // of the stop that is about to begin, if it is known
    bool remote;
    uint64_t configurations; // of the slave, when it was reset last
    uint32_t missing, clamped;
    int64_t clamps, refused;
    double safe_since, reported;
    bool conditioned;
    bool turned;  // since it was prepared
    bool running; // the second STC_run has been seen
    double valid, valid_before, data_time;
    int64_t foreign;      // data of others that have been told
    double foreign_since; // when
    bool data_bad;
    crdi_bench_sequence numbers;
    // time
    bool started, ticking;
    double time, base;
    int64_t periods;
};

// limits.c
/// A limit in a unit; false: of another dimension.
bool crdi_bench_range(const crdi_dcp_limit* l, const char* unit, const crd_dimension* dimension,
                      crdi_safety_range* out);
/// A value in the unit of a limit as one in another unit of the same dimension.
double crdi_bench_convert(double x, const crdi_dcp_limit* from, const char* unit,
                          const crd_dimension* dimension);

// describe.c
extern const char* const crdi_bench_words[3]; // what the three texts are, for messages
const crd_dcp_log_template* crdi_bench_template(const crd_dcp_description* d, crdi_bench_log log);
/// `real` (up to 4) and `text` (up to 2) go to the places that the template has for them.
void crdi_bench_tell(crd_dcp_bench* b, crdi_bench_log log, const char* const* text,
                     const double* real);

// bench.c
/// Adds the forbidden regions of a text, of quantities that the bench has.
crd_status crdi_bench_add_regions(crd_dcp_bench* b, const crdi_dcp_limits* from, bool own);

// run.c
/// Which media are to be conditioned to what.
crd_status crdi_bench_read_media(crd_dcp_bench* b, const crdi_dcp_limits* initial,
                                 double tolerance);
/// When all that moves was last set by the master.
double crdi_bench_valid(const crd_dcp_bench* b);
/// Parses and checks what the master has said; false: refused, and the slave is in error.
bool crdi_bench_agree(crd_dcp_bench* b, double now);
/// What of the configuration leaves the machine without a guard: to who makes it, and to the
/// master.
void crdi_bench_warn(crd_dcp_bench* b, bool master);
void crdi_bench_begin_stop(crd_dcp_bench* b, crd_dcp_bench_reason reason);
void crdi_bench_check_items(crd_dcp_bench* b);
void crdi_bench_condition(crd_dcp_bench* b);
/// Goes on through the phases of a stop as far as it can; true: it is over.
bool crdi_bench_stopped(crd_dcp_bench* b);
/// Control and rig over `seconds`.
void crdi_bench_go_on(crd_dcp_bench* b, double seconds);

/// Of the plant: control, watch, duties that were LATER.
double crdi_bench_next(void* user);
void crdi_bench_advance(void* user, double now);

// numbers.c
void crdi_bench_next_number(crdi_bench_sequence* s, double now);
bool crdi_bench_take_number(crdi_bench_sequence* s, uint32_t number); // theirs; false: not new
void crdi_bench_take_echo(crdi_bench_sequence* s, uint32_t number, double now); // ours, back
