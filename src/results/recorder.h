// What stands between the recorder's rings and a file: one sink per format.
//
// A sink is made in create, on the caller's thread; from then on only the writer thread calls it,
// attach excepted. Nothing in it allocates or frees before destroy (MAT does, in finish).
#pragma once
#include "cardan/results.h"

/// Where a column is: `word` in the rows of its raster.
typedef struct crdi_field {
    crd_type type;
    int raster, word;
} crdi_field;

/// How the rows look; made by the recorder, outlives the sink.
typedef struct crdi_rows {
    const crdi_field* fields; ///< (field_count), in the order of the columns
    int field_count;
    const size_t* words; ///< (raster_count) of a row
    int raster_count;    ///< at least 1
} crdi_rows;

enum { CRDI_EVENT_TEXT = 256 }; ///< bytes with the final zero

typedef struct crdi_event {
    crd_event_kind kind;
    double time;
    char text[CRDI_EVENT_TEXT];
} crdi_event;

typedef struct crdi_sink crdi_sink;

typedef struct crdi_sink_ops {
    void (*start)(crdi_sink* s); ///< the head of the file is written
    void (*row)(crdi_sink* s, int raster, const crd_word* row);
    void (*flush)(crdi_sink* s);                          ///< what came so far can be read
    void (*event)(crdi_sink* s, const crdi_event* event); ///< NULL: the format has no room
    /// What is in the buffer and could not be written goes to another sink of the same columns.
    /// NULL: there is none; it is given up, or thinned out. Returns how many rows that left out.
    int64_t (*hand_over)(crdi_sink* s, crdi_sink* to);
    void (*finish)(crdi_sink* s); ///< the rest, also after a failure; closes the file
    crd_status (*attach)(crdi_sink* s, const crd_attachment* a); ///< NULL: the format has no room
    void (*destroy)(crdi_sink* s);
    int naps_to_flush; ///< of about 1 ms each
    size_t stack_bytes;
} crdi_sink_ops;

struct crdi_sink {
    const crdi_sink_ops* ops;
    crd_context* ctx;
    char* path;
    int fd;           ///< -1: closed
    int error;        ///< errno of the first failure
    char reason[192]; ///< what it was if errno does not say, else ""
    int64_t written;  ///< rows in the file
    int naps;         ///< of the writer since the last write
};

/// The common part: opens the file, so that a path that cannot be written fails before the run.
crd_status crdi_sink_init(crdi_sink* s, const crdi_sink_ops* ops, crd_context* ctx,
                          const char* path);
void crdi_sink_clear(crdi_sink* s);
/// What is left on the disk of a file, for us. false: it is no file, or nobody knows.
bool crdi_sink_free_bytes(int fd, uint64_t* bytes);
/// The error says that there is no more space.
bool crdi_sink_is_full(const crdi_sink* s);
/// All of it at a place of a file. Returns false after storing the error.
bool crdi_sink_write(crdi_sink* s, int fd, const void* bytes, size_t length, int64_t offset);
/// Fails if somebody deleted the file, which is still open.
void crdi_sink_check(crdi_sink* s);
void crdi_sink_close(crdi_sink* s);

crd_status crdi_csv_sink(crd_context* ctx, const crd_recorder_options* opt, const crdi_rows* rows,
                         crdi_sink** out);
crd_status crdi_mdf_sink(crd_context* ctx, const crd_recorder_options* opt, const crdi_rows* rows,
                         crdi_sink** out);
/// A variable of a version 5 file holds at most `most_bytes`, 0: what the format allows.
crd_status crdi_mat_sink(crd_context* ctx, const crd_recorder_options* opt, const crdi_rows* rows,
                         uint64_t most_bytes, crdi_sink** out);
