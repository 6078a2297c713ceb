/// Record and replay: what was exchanged in a run goes its way once more.
///
/// A run with `results.exchange` leaves an MF4 with every sample that arrived at an input. This
/// module reads such a file and prepares a system for one of two kinds of replay:
///
/// - Open loop: some units are played. They are not run; what they sent arrives at the others with
///   the recorded values, stamps, numbers and times of arrival. They do not react to what they get,
///   so how far that differs from what they got in the recorded run says what the replay is worth.
/// - Closed loop: all units run again, and each sample of a coupling takes as long as the sample of
///   its number took in the recorded run; those that were lost are lost again.
#pragma once
#include "cardan/master.h"
#include "cardan/model.h"
#include "cardan/system.h"
#include "shared/base.h"

/// One connection of the recorded run, or one element of it if it is an array. Its samples are in
/// the order of arrival.
typedef struct crdi_exchange_link {
    const char *from, *to; ///< "motor.M", "shaft.M"
    const char* unit;      ///< at the input, "" none
    crd_type type;         ///< of the input
    bool coupled;          ///< it had a coupling
    bool curve;            ///< both ends were real and continuous
    bool transform;        ///< the value was gain * output + offset
    bool mapped;           ///< or what a map made of it
    bool twice;            ///< what the target got was evaluated again after the step
    double gain, offset;
    crd_prediction predict; ///< that was in effect
    crd_history past;       ///< what predictions began with; count 0: nothing is known
    double step;            ///< s between two samples
    int64_t count;
    double *arrival, *stamp, *value, *sequence; ///< (count)
    double* rates[2];                           ///< (count) derivatives, NULL: not known
    double* events;                             ///< (count) 1: the source had one, NULL: not known
    int64_t input_count;
    double *input_time, *input; ///< (input_count) of a coupling: what the input was told
    double* sent;  ///< (input_count) of a coupling: what the source gave then, NULL: not known
    double* acted; ///< (input_count, count without coupling) what acted, NULL: not known
} crdi_exchange_link;

/// A recording of exchanged samples, in memory.
typedef struct crdi_exchange {
    crd_context* ctx;
    crd_arena arena;
    const char* path;
    double start, stop; ///< of the recorded run as it was meant, s
    double end;         ///< up to here everything is known
    double tick;        ///< of its grid, s
    double step;        ///< as its description said it; NaN: it did not
    double pace;        ///< 0: as fast as possible
    bool unfinished;    ///< the run was killed
    bool controlled;    ///< its steps varied
    bool gaps;          ///< writing could not keep up with the run: rows are missing
    crdi_exchange_link* links;
    int link_count;
    const char* const* order; ///< of its units in a Gauss-Seidel scheme
    int order_count;
    const char* const* texts; ///< connections that are not recorded: "a.s -> b.s"
    int text_count;
    int64_t changes;   ///< events of what was changed or marked by hand while it ran
    const char* file;  ///< description of its system, where it was; "": none
    char* description; ///< the same as it was, NULL: not attached
    size_t description_length;
    char* run; ///< CRD_ATTACHMENT_RUN, NULL: none
    size_t run_length;
} crdi_exchange;

/// CRD_E_FORMAT: something else, or damaged. A recording that was cut off is read up to there.
crd_status crdi_exchange_load(crd_context* ctx, const char* path, crdi_exchange** out);
void crdi_exchange_destroy(crdi_exchange* x);

typedef struct crdi_replay_plan {
    const crd_script* scripts; ///< for crd_master_options
    int script_count;
    const char* const* notes; ///< sentences about what is different from the recorded run
    int note_count;
} crdi_replay_plan;

/// Makes `s`, the system of the recording, ready to be replayed: units that are played become
/// models that give what was recorded, the run has the recorded times. `played` (unit_count) may be
/// NULL: a closed loop. All memory is the system's; `x` outlives it.
/// CRD_E_NOT_FOUND: a connection that the recording does not have. CRD_E_RANGE: another step, a
/// unit that cannot be run again. CRD_E_UNSUPPORTED: a variable step.
crd_status crdi_replay_prepare(crd_system* s, const crdi_exchange* x, const bool* played,
                               crdi_replay_plan* out);

/// How far what an input got in a replay is from what it got in the recorded run, at its
/// communication points.
typedef struct crdi_deviation {
    int link;         ///< of the recorded run
    int64_t compared; ///< points, 0: there was nothing to compare
    double rms, max;  ///< of the difference, in the input's unit
    double max_time;
    double relative; ///< rms by that of the recorded signal; 0: equal to the last bit
    double first;    ///< time of the first difference above a hundredth of that, NaN: none
} crdi_deviation;

/// One for each link of `recorded`, into `out`.
void crdi_replay_compare(const crdi_exchange* recorded, const crdi_exchange* replayed,
                         crdi_deviation* out);
