/// Results: record a run off its step path, read recordings, compare them, draw them.
///
/// The recorder takes rows from the cycle thread through a ring; a writer thread of its own formats
/// and writes them. Whole rows only: after an abort, an error or a full disk the file ends with the
/// last complete row.
#pragma once
#include "cardan/base.h"
#include "cardan/model.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct crd_column {
    const char* name;
    const char* unit;        ///< "" none
    const char* description; ///< "" none
    crd_type type;
} crd_column;

/// One value of a row. Strings and binaries take CRD_RECORD_BYTES words: a length word, then bytes.
typedef union crd_word {
    double real;
    int64_t integer;
} crd_word;

#define CRD_RECORD_BYTES 33 ///< words of a string or binary: 8 * 32 = 256 bytes, longer is cut

/// Put a string (without its final zero) or a binary at its place in a row.
static inline void crd_word_set_bytes(crd_word* at, const void* bytes, size_t length)
{
    const size_t most = (CRD_RECORD_BYTES - 1) * sizeof(crd_word);
    at->integer = (int64_t)length;
    if (length) { memcpy(at + 1, bytes, length < most ? length : most); }
}

typedef struct crd_recorder crd_recorder; ///< opaque

typedef struct crd_recorder_options {
    const char* path;
    const crd_column* columns; ///< without time; borrowed during create only
    int column_count;
    size_t ring_rows; ///< 0: chosen so that the ring has about 4 MiB
    bool unit_row;    ///< CSV: a second line with units
} crd_recorder_options;

/// CRD_E_UNSUPPORTED with a sentence if results cannot be written under this name.
CRD_API crd_status crd_recorder_check_path(crd_context* ctx, const char* path);

/// Creates the file at once (so a path that cannot be written fails before the run) and starts the
/// writer thread. Format by ending: .csv, also anything in /dev/ (/dev/stdout). CRD_E_UNSUPPORTED
/// otherwise, CRD_E_IO with the reason. CSV as FMPy, pandas and PlotJuggler read it: reals with 17
/// digits, Booleans 0 and 1, texts quoted where needed, binaries as hexadecimal digits.
CRD_API crd_status crd_recorder_create(crd_context* ctx, const crd_recorder_options* opt,
                                       crd_recorder** out);
/// Words of a row: 1 for time, then the columns in order (see crd_word). Waits while the ring is
/// full. NULL once writing has failed: then the run should stop.
CRD_API crd_word* crd_recorder_begin(crd_recorder* r);
CRD_API void crd_recorder_end(crd_recorder* r); ///< hand over the row
/// Position of column i in the row of words.
CRD_API int crd_recorder_word(const crd_recorder* r, int column);
/// Rows handed over so far; once finished, those that are in the file.
CRD_API int64_t crd_recorder_rows(const crd_recorder* r);
/// Everything handed over is in the file when this returns. CRD_E_IO if it is not (disk full):
/// the text has path, reason and the number of rows that are. Neither allocates nor frees, so that
/// it may be called after a unit crashed in the middle of anything. May be called again.
CRD_API crd_status crd_recorder_finish(crd_recorder* r);
CRD_API void crd_recorder_destroy(crd_recorder* r); ///< finishes if need be

// ---- reading -----------------------------------------------------------------------------------

/// A recording in memory. Booleans are 0 and 1, columns of texts have `texts`.
typedef struct crd_table_column {
    const char* name;
    const char* unit;   ///< "" none
    const double* values;      ///< (rows); NaN where the text is not a number or absent
    const char* const* texts;  ///< (rows), NULL for numeric columns
} crd_table_column;

typedef struct crd_table {
    const char* path;
    int64_t rows;
    int column_count;
    const double* time;             ///< (rows), never decreasing
    const crd_table_column* columns; ///< without time
} crd_table;

/// CSV: comma, semicolon or tab separated, quotes as in RFC 4180, first column is time whatever
/// its name, optional row of units in brackets. Bounded by memory only; CRD_E_FORMAT with
/// "file:line: ...".
CRD_API crd_status crd_table_read(crd_context* ctx, const char* path, crd_table** out);
CRD_API crd_status crd_table_parse(crd_context* ctx, const char* text, size_t length,
                                   const char* name_in_messages, crd_table** out);
CRD_API void crd_table_destroy(crd_table* t);
CRD_API int crd_table_find(const crd_table* t, const char* name); ///< -1
/// Value of a column at time t. hold: last row at or before t. Before the first row the first
/// value, after the last the last. Where a time occurs twice, the later row counts from then on.
/// `*hint` (start with 0) makes ascending calls fast.
CRD_API double crd_table_value(const crd_table* t, int column, double time, bool linear,
                               int64_t* hint);

// ---- comparing ---------------------------------------------------------------------------------

/// A signal that has another name in B.
typedef struct crd_pair {
    const char *a, *b;
} crd_pair;

typedef struct crd_compare_options {
    double relative; ///< of the signal's range in A (of its size if it is constant), default 1e-9
    double absolute; ///< default 1e-12
    const char* const* patterns; ///< only signals that match one; none: all
    int pattern_count;
    const crd_pair* pairs; ///< if there are any, these are compared and nothing else
    int pair_count;
} crd_compare_options;

typedef struct crd_difference {
    const char* name;
    bool only_in_a, only_in_b;
    bool differs;             ///< true for a signal that only one has, too
    double first_time;        ///< where it first exceeds the tolerance, NaN if nowhere
    double max_error, max_error_time, value_a, value_b; ///< where it is largest; infinite where
                                                        ///< one is NaN or a different text
    double rms_error;
    double tolerance;         ///< that was applied: absolute + relative * range
} crd_difference;

typedef struct crd_comparison {
    int signal_count, different_count;
    const crd_difference* signals; ///< in the order of A, then those only in B
    double start, stop;            ///< the times that both cover
} crd_comparison;

CRD_API crd_compare_options crd_compare_defaults(void);
/// B is interpolated linearly at the times of A that both cover; texts hold. Where a time occurs
/// several times (an event), the first, second ... row of A meets the first, second ... row of B
/// and the last the last. CRD_E_RANGE if there is no time that both cover, CRD_E_NOT_FOUND if a
/// pattern matches nothing.
CRD_API crd_status crd_compare(crd_context* ctx, const crd_table* a, const crd_table* b,
                               const crd_compare_options* opt, crd_comparison** out);
CRD_API void crd_comparison_destroy(crd_comparison* c);

// ---- drawing -----------------------------------------------------------------------------------

typedef struct crd_plot_series {
    const char* label;
    const double* x;
    const double* y;
    int64_t count;
    bool dashed;
} crd_plot_series;

/// One panel under the other, x axes shared.
typedef struct crd_plot_panel {
    const char* title;
    const char* y_label;
    const crd_plot_series* series;
    int series_count;
} crd_plot_panel;

/// A self-contained SVG that reads well on light and dark ground; long series are thinned to what
/// can be seen (min and max per pixel).
CRD_API crd_status crd_plot_svg(crd_context* ctx, const char* path, const char* title,
                                const char* x_label, const crd_plot_panel* panels, int panel_count);

#ifdef __cplusplus
}
#endif
