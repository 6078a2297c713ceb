/// What is known about a test bench that takes part in a run: for pages, records of sessions and
/// messages.
///
/// A board belongs to a unit (crdi_unit_board) from its creation to its end, so it is there while
/// the bench is registered, prepared and conditioned, in the run, and while it comes to rest after
/// it. One thread at a time writes it (whoever drives the unit); any other reads it at any time.
/// Neither waits for the other.
#pragma once
#include "cardan/base.h"
#include "shared/dcp_calibration.h"

enum { CRDI_BOARD_QUANTITIES = 16, CRDI_BOARD_MOMENTS = 128 };

/// A quantity that has limits, or that is driven or measured. Numbers in its unit, NAN: unknown.
typedef struct crdi_board_quantity {
    char name[32], unit[16];
    double min, max;      ///< the narrower of the bench's limits and ours; -INFINITY, INFINITY
    double set, measured; ///< the newest that was sent, and that came
    bool clamped;         ///< the set value is held at a limit
    int32_t input;        ///< variable of its set value, -1: none; in its unit: ...
    double input_min, input_max, input_rate; ///< ... the limits, and the rate in 1/s
} crdi_board_quantity;

typedef enum crdi_board_what {
    CRDI_BOARD_STATE,  ///< value: crd_dcp_state; -1: it is lost
    CRDI_BOARD_PHASE,  ///< value: crd_dcp_bench_phase
    CRDI_BOARD_SOURCE, ///< value: crd_board_source
    CRDI_BOARD_HEAT,   ///< value: how far a medium is from its temperature at the start, K
} crdi_board_what;

/// Something that happened to the bench.
typedef struct crdi_board_moment {
    double time; ///< s on the monotonic clock since the board was made
    int what;    ///< crdi_board_what
    double value;
} crdi_board_moment;

/// Whose outputs the run gets.
typedef enum crd_board_source {
    CRDI_BOARD_BENCH,
    CRDI_BOARD_MODEL,  ///< its stand-in
    CRDI_BOARD_COMING, ///< the stand-in's, while the bench is brought up again
} crd_board_source;

typedef struct crdi_board_state {
    int state;        ///< crd_dcp_state, -1: not known
    bool extension;   ///< it has the bench extension, so that phase and reason say something
    int phase;        ///< crd_dcp_bench_phase, as its data and log say
    int reason;       ///< crd_dcp_bench_reason
    bool lost;        ///< it does not answer
    double last_data; ///< s on the monotonic clock since the board was made; NAN: nothing yet
    int64_t clamps, refused;
    uint32_t gap;
    double round_trip, round_trip_max; ///< s, NAN
    char security[96];                 ///< of its link: "plain", or the key and whose it is
    char missing[200];                 ///< of its checklist
    char progress[200];                ///< of conditioning: "conditioning: oil 43.1 degC, ..."
    char why[200];                     ///< of a refusal, clamp, fault or stop
    char stopping[200];                ///< the newest step of a stop: "stop: ..."
    crdi_board_quantity quantities[CRDI_BOARD_QUANTITIES];
    int quantity_count;
    crdi_calibrations calibrations; ///< that the bench has said to use, without their points

    bool has_standby; ///< a model can stand in for it
    int source;       ///< crd_board_source
    double weight;    ///< how much of what the run gets is the bench's own, 0 .. 1
    int64_t takeovers, returns;
    char standby[200]; ///< why the stand-in is in use, or the bench is not back; ""

    double now; ///< when this was written, s on the monotonic clock since the board was made
    crdi_board_moment
        moments[CRDI_BOARD_MOMENTS]; ///< oldest first; of more the first and the newest
    int moment_count;
    int64_t moments_left_out;
} crdi_board_state;

typedef struct crdi_board crdi_board; ///< opaque

/// `*out` is written on CRD_OK only; it begins with state -1 and everything unknown.
crd_status crdi_board_create(crd_context* ctx, crdi_board** out);
void crdi_board_destroy(crdi_board* b);
/// Any thread, at any time.
void crdi_board_read(const crdi_board* b, crdi_board_state* out);
/// The writer: its own copy, to be changed in place, and shown to the others by crdi_board_show.
crdi_board_state* crdi_board_edit(crdi_board* b);
void crdi_board_note(crdi_board* b, crdi_board_what what, double value); ///< adds a moment
/// The same, at a time of the writer's: s on the monotonic clock since the board was made. What is
/// before the newest moment is noted with that one's time.
void crdi_board_note_at(crdi_board* b, crdi_board_what what, double value, double time);
int64_t crdi_board_born(const crdi_board* b); ///< ns on the monotonic clock
void crdi_board_show(crdi_board* b);
