/// Recordings at any zoom: the least and the largest value of a signal per pixel, from pyramids
/// that are built little by little.
///
/// A pyramid keeps low and high of every `bucket` rows of a signal, and of 16, 256 ... of those; a
/// short signal is in it row by row. Until it is done a sample of its buckets gives a picture that
/// says how much of the file it has seen. What is finer than its buckets is read from the file.
/// Memory is bounded however large the files are: pyramids that nobody asked for lately are given
/// up. Threads: one at a time.
#pragma once
#include "cardan/results.h"

typedef struct crdi_overview crdi_overview; ///< opaque

/// A signal, or what it differs by from a signal of another recording: a - b at the times of a, b
/// linear between its samples (a held value for whole numbers), NaN where b has none.
typedef struct crdi_track {
    int file, signal;
    int reference, reference_signal; ///< -1: none
} crdi_track;

/// What a track looks like. Arrays live in the arena that was handed in.
typedef struct crdi_strip {
    double part;        ///< of the file that the picture has seen; 1: exact
    bool samples;       ///< every sample, high is low; else the extremes of pixels
    int64_t count;      ///< in the order of time, one before and one behind the window too
    double* time;       ///< (count) s, of the first sample
    double *low, *high; ///< (count); NaN: a gap
    const char* error;  ///< NULL: none; in the overview
} crdi_strip;

/// Borrows the recordings. CRD_E_MEMORY.
crd_status crdi_overview_create(crd_context* ctx, crd_recording* const* files, int count,
                                crdi_overview** out);
void crdi_overview_destroy(crdi_overview* o);
/// First and last time of all signals; false: there is no row.
bool crdi_overview_span(crdi_overview* o, double* first, double* last);
/// Goes on building for about `budget` ns; false: nothing is left to do.
bool crdi_overview_work(crdi_overview* o, int64_t budget);
/// Tracks exist (CRD_E_RANGE otherwise); what cannot be read has an `error` in its strip.
crd_status crdi_overview_look(crdi_overview* o, const crdi_track* tracks, int count, double from,
                              double to, int pixels, crd_arena* arena, crdi_strip* out);
/// At most `most` samples between two times: those around the middle of the window if there are
/// more, or every k-th. `*all`: how many there are.
crd_status crdi_overview_rows(crdi_overview* o, const crdi_track* track, double from, double to,
                              int64_t most, bool thin, crd_arena* arena, crdi_strip* out,
                              int64_t* all);
/// The samples at or before and behind a time; NaN: there is none.
crd_status crdi_overview_at(crdi_overview* o, const crdi_track* track, double time, double times[2],
                            double values[2]);
/// Texts of a signal of texts, as far as they were met: value i of the track is texts[i].
const char* const* crdi_overview_texts(crdi_overview* o, const crdi_track* track, int* count);
