// What is recorded: rows, events, what ran and how it went.
#pragma once
#include "cardan/results.h"
#include "master/plan/plan.h"

#include <pthread.h>

enum { CRDI_EARLY = 24 }; // warnings that wait until there is a record

/// One value that can be recorded.
typedef struct crdi_signal {
    const char* name;
    int member;
    int32_t variable, element;
    const crdi_offer* offer; // instead of a variable, NULL: none
} crdi_signal;

/// Signals that are recorded at the same times.
typedef struct crdi_raster {
    const char* name; // "10 ms"
    int64_t ticks;    // between two rows
    bool at_end;      // a row at the end of the run, too, wherever it lies
    int value_first, value_count;
    int member_first, member_count; // that have something to read, in readers
    int64_t read;                   // run: tick at which they were read last, -1
} crdi_raster;

/// One recorded value: where it stands and which word of the row it becomes.
typedef struct crdi_recorded {
    const void* from; // double, int64_t or crd_bytes
    int signal;
    int word;
    crd_kind kind;
    bool watched; // an output that only the record sees: NaN ends the run here, too
} crdi_recorded;

/// Variables of a member that only the record reads.
typedef struct crdi_extras {
    crd_binding* binding; // NULL: none
    crd_values values;    // run
    int raster;           // of all signals of the member
} crdi_extras;

typedef struct crdi_columns crdi_columns; // columns.c

/// How many rows of a raster there were when a state was saved, and how many of them are still
/// there.
typedef struct crdi_columns_mark {
    int64_t count, intact, branch;
} crdi_columns_mark;

typedef struct crdi_recording {
    crdi_signal* signals;
    int signal_count;
    crdi_raster* rasters; // one at least, without signals if there are none
    int raster_count;
    crdi_recorded* values; // by raster
    crdi_extras* extras;   // (members)
    int* readers;          // members with extras, by raster
    crd_recorder* recorder;
    crdi_columns* columns; // the record in memory, NULL: none
    double next_row;       // run: of a controlled run
    crd_context* ctx;      // the recorder's
    char* spare;           // memory for after a crash
    size_t spare_size, spare_used;
    bool heap_lost;   // run: take it from there
    bool goes_on;     // without rows that find no room: worth a look
    bool warned;      // run: of that
    char note[400];   // run: what a full disk did to it, ""
    bool closing;     // run: the file gets its end
    crd_text verdict; // room for crd_master_describe_verdict after a crash
    crd_map hashes;   // path -> hash_texts
    const char** hash_texts;
    size_t hash_capacity;
    struct crdi_session_record* session; // states of benches are recorded, NULL: not
} crdi_recording;

/// What happens besides the values: start, end, warnings, failures.
typedef struct crdi_events {
    pthread_mutex_t lock;              // of all below
    bool recording;                    // warnings become events of the record
    bool muted;                        // atomic: only a thread that did not come back may still log
    char early[CRDI_EARLY][CRDI_TEXT]; // warnings before there was a record
    int early_count;
    int64_t warnings;
} crdi_events;

// signals.c
crd_status crdi_record_plan(crd_master* m);
crd_status crdi_record_bind(crd_master* m); ///< once the units are initialised
int crdi_record_signal_count(const crd_master* m);
const crdi_signal* crdi_record_signal(const crd_master* m, int i);
const crdi_recorded* crdi_record_value(const crd_master* m, int i); ///< in the order of rasters
// record.c
void crdi_record_init(crd_master* m);
crd_status crdi_record_open(crd_master* m);
/// The description as it was read, as an attachment without name if it is no text. `bytes` belongs
/// to the caller.
crd_status crdi_record_read_description(crd_master* m, crd_attachment* out, char** bytes);
/// Rows of all rasters that are due now.
crd_status crdi_record_rows(crd_master* m);
double* crdi_record_next(crd_master* m);          ///< the state of the record, of a controlled run
double crdi_record_next_row(const crd_master* m); ///< s; of a controlled run, INFINITY: none
/// Values that only the record reads, whether or not a row is due.
void crdi_record_read_extras(crd_master* m);
/// Says how the run ended, attaches the verdict and closes the file.
crd_status crdi_record_close(crd_master* m);
/// The same, once, when a unit has crashed or hangs: with the sentence about it, and the exchanged
/// samples. false: there is no file, or not all rows are in it.
bool crdi_record_rescue(crd_master* m, const char* sentence);
void crdi_record_free(crd_master* m);                     ///< the file, before the units
void crdi_record_clear(crd_master* m);                    ///< the rest, behind them
void crdi_record_clear_member(crd_master* m, int member); ///< before its unit is destroyed
bool crdi_record_is_open(const crd_master* m);            ///< a file
bool crdi_record_has_rows(const crd_master* m);           ///< there, or in memory
int64_t crdi_record_row_count(const crd_master* m);
/// What a full or slow disk did to the record; nothing if there is none. As a sentence: "" or that.
crd_recorder_loss crdi_record_loss(const crd_master* m);
const char* crdi_record_note(const crd_master* m);
void crdi_record_event(crd_master* m, crd_event_kind kind, double time, const char* text);
crdi_extras* crdi_record_extras(crd_master* m, int member);
/// Whether a member's extras at this tick are needed before it has made its next step.
bool crdi_record_needs(const crd_master* m, int member, int64_t tick);
// columns.c: the record in memory
crd_status crdi_columns_open(crd_master* m);                    ///< if it is asked for
crd_status crdi_columns_reserve(crd_master* m, int64_t ticks);  ///< room for so many more
int64_t crdi_columns_slice(const crd_master* m, int64_t ticks); ///< that it is made for at once
void crdi_columns_row(crd_master* m, int raster);
int64_t crdi_columns_rows(const crd_master* m);
int crdi_columns_count(const crd_master* m); ///< marks of a saved state: rasters, 0 without columns
void crdi_columns_save(const crd_master* m, crdi_columns_mark* out);
/// Before the run goes back: what this branch has written over of a state that was saved.
void crdi_columns_branch(const crd_master* m, crdi_columns_mark* of);
void crdi_columns_restore(crd_master* m, const crdi_columns_mark* to);
void crdi_columns_free(crd_master* m);
// events.c
crd_status crdi_events_init(crd_master* m);
void crdi_events_clear(crd_master* m);
crd_log_sink crdi_events_from_log; ///< of m->log; any thread
void crdi_events_note(crd_master* m, crd_event_kind kind, const char* text);
/// What units have to say for the record, after a tick.
void crdi_events_note_remarks(crd_master* m);
/// The record is there, or somebody watches; once.
void crdi_events_start(crd_master* m);
void crdi_events_stop(crd_master* m);
void crdi_events_lock(crd_master* m); ///< against those who note something
void crdi_events_unlock(crd_master* m);
void crdi_events_mute(crd_master* m); ///< nothing is noted any more
int64_t crdi_events_warnings(const crd_master* m);
/// Keeps the sentence of the run's failure and notes it; hands `st` back.
crd_status crdi_events_note_failure(crd_master* m, crd_status st);
// describe.c
/// Room for the verdict, so that writing it takes no memory.
crd_status crdi_record_reserve_verdict(crd_master* m);
// spare.c
crd_status crdi_record_open_spare(crd_master* m);
void crdi_record_close_spare(crd_master* m);
// hash.c
/// SHA-256 of a file as 64 hexadecimal digits, "" if it is no regular file that can be read. The
/// text is the master's and worked out once.
crd_status crdi_record_hash(crd_master* m, const char* path, const char** out);
// session_record.c: the states of the benches, when all is over
crd_status crdi_session_plan(crd_master* m);
crd_status crdi_session_write(crd_master* m); ///< does not allocate
void crdi_session_free(crd_master* m);

// describe.c
/// What must be equal for a state to fit, as JSON with a line for each unit and connection.
crd_status crdi_describe_fingerprint(crd_master* m, crd_text* out);
