/// Results: record a run off its step path, read recordings, compare them, draw them, report.
///
/// The recorder takes rows from the cycle thread through rings; a writer thread of its own formats
/// and writes them. Whole rows only: after an abort, an error or a full disk the file ends with the
/// last complete row. Formats, by the file's ending: CSV, MDF 4.10 (.mf4), MATLAB (.mat).
#pragma once
#include "cardan/base.h"
#include "cardan/model.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/// One value of an enumeration and its name.
typedef struct crd_label {
    int64_t value;
    const char* text;
} crd_label;

typedef struct crd_column {
    const char* name;
    const char* unit;        ///< "" none
    const char* description; ///< "" none
    crd_type type;
    int raster;              ///< index into the rasters, 0 if there are none
    const crd_label* labels; ///< of an enumeration, in any order
    int label_count;
} crd_column;

/// Columns that are recorded together at their own times.
typedef struct crd_raster {
    const char* name; ///< "10 ms"
    double interval;  ///< s, 0: irregular
} crd_raster;

/// A file inside the result file.
typedef struct crd_attachment {
    const char* name; ///< "system.yaml"
    const char* mime; ///< "application/yaml"
    const void* data;
    size_t length;
} crd_attachment;

/// What Cardan attaches: the system description as it was read, and two JSON documents, what ran
/// (written at the start) and how it went (written at the end). docs/reference/formats.md has their
/// keys.
#define CRD_ATTACHMENT_RUN "cardan-run.json"
#define CRD_ATTACHMENT_VERDICT "cardan-verdict.json"
/// What the rows of exchanged samples (`results.exchange`) do not say themselves.
#define CRD_ATTACHMENT_EXCHANGE "cardan-exchange.json"

typedef enum crd_event_kind {
    CRD_EVENT_START,
    CRD_EVENT_STOP,
    CRD_EVENT_WARNING,
    CRD_EVENT_OVERRUN,
    CRD_EVENT_ERROR,
    CRD_EVENT_MARK, ///< anything else
    CRD_EVENT_KIND_COUNT
} crd_event_kind;

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

/// What happens when the disk is full, or too slow for a run that does not wait.
typedef enum crd_on_full {
    CRD_ON_FULL_STOP, ///< default: begin gives NULL, so that the run ends
    CRD_ON_FULL_THIN, ///< every second row, fourth ... where there is no space for all to come
    CRD_ON_FULL_DROP, ///< the run goes on; rows without room are dropped and counted
} crd_on_full;

typedef struct crd_recorder_options {
    const char* path;
    const crd_column* columns; ///< without time; borrowed during create only
    int column_count;
    size_t ring_rows;          ///< of each raster; 0: chosen so that all rings have about 4 MiB
    bool unit_row;             ///< CSV: a second line with units
    const crd_raster* rasters; ///< borrowed during create only; none: one raster
    int raster_count;
    const crd_attachment* attachments; ///< known at the start; borrowed during create only
    int attachment_count;
    int64_t started;   ///< wall clock of time 0, ns since 1970; 0: now
    const char* title; ///< MF4: comment of the file; NULL: none
    int mat_version;   ///< as crd_results_spec
    crd_on_full on_full;
    const char* second; ///< a file of the same kind for the rest, before on_full; NULL: none. Made
                        ///< at once as well, and removed by finish if it was not needed
    bool never_wait;    ///< with thin and drop: a full ring costs a row, not the caller's time
    double end;         ///< thin: time of the last row that will come, s; 0 or INFINITY: not known
} crd_recorder_options;

/// CRD_E_UNSUPPORTED with a sentence if results cannot be written under this name.
CRD_API crd_status crd_recorder_check_path(crd_context* ctx, const char* path);

/// Whether a file of this name can hold more than one raster (MF4).
CRD_API bool crd_recorder_has_rasters(const char* path);

/// Creates the file at once (so a path that cannot be written fails before the run) and starts the
/// writer thread. Format by ending: .csv, .mf4, .mat; anything else in /dev/ (/dev/stdout) is CSV.
/// CRD_E_UNSUPPORTED otherwise, CRD_E_IO with the reason.
/// MF4: what is on disk can be read at any moment, also after the process was killed: chunks of a
/// raster are appended whole, about five times a second, and links are patched last.
/// MAT: columns need the end of the run, so rows are collected in an unnamed file beside it and the
/// result is written by finish. Events are dropped; attachments become char variables.
/// CSV as FMPy, pandas and PlotJuggler read it: reals with the fewest digits that read back the
/// same, Booleans 0 and 1, texts quoted where needed, binaries as hexadecimal digits. Events and
/// attachments are dropped.
CRD_API crd_status crd_recorder_create(crd_context* ctx, const crd_recorder_options* opt,
                                       crd_recorder** out);
/// Words of a row: 1 for time, then the columns in order (see crd_word). Waits while the ring is
/// full. NULL once writing has failed: then the run should stop. With CRD_ON_FULL_THIN and _DROP
/// never NULL: a row without room is a place that nobody reads.
CRD_API crd_word* crd_recorder_begin(crd_recorder* r);
CRD_API void crd_recorder_end(crd_recorder* r); ///< hand over the row
/// The same for one of several rasters. All rasters belong to one thread.
CRD_API crd_word* crd_recorder_begin_raster(crd_recorder* r, int raster);
CRD_API void crd_recorder_end_raster(crd_recorder* r, int raster);
/// Never waits: NULL also when the ring is full.
CRD_API crd_word* crd_recorder_try_raster(crd_recorder* r, int raster);
/// Something happened at `time`. Any thread; neither allocates nor locks. Texts are cut to 255
/// bytes, and beyond some thousand events only their number is kept.
CRD_API void crd_recorder_event(crd_recorder* r, crd_event_kind kind, double time,
                                const char* text);
/// A file that is known only at the end. Before finish; copied. Formats without room ignore it.
CRD_API crd_status crd_recorder_attach(crd_recorder* r, const crd_attachment* a);
/// Position of column i in the row of words of its raster.
CRD_API int crd_recorder_word(const crd_recorder* r, int column);
/// Rows handed over so far; once finished, those that are in the file.
CRD_API int64_t crd_recorder_rows(const crd_recorder* r);
/// Everything handed over is in the file when this returns. CRD_E_IO if it is not (disk full):
/// the text has path, reason and the number of rows that are. Neither allocates nor frees (MAT
/// does: CRD_E_MEMORY), so that it may be called after a unit crashed in the middle of anything.
/// May be called again.
CRD_API crd_status crd_recorder_finish(crd_recorder* r);
CRD_API void crd_recorder_destroy(crd_recorder* r); ///< finishes if need be

/// What a full or slow disk did to the record.
typedef struct crd_recorder_loss {
    int64_t lost;       ///< rows that are in no file; before finish those that are known
    int64_t thinned;    ///< rows that were left out on purpose
    int thin;           ///< one of so many rows is recorded now; 1: all
    const char* second; ///< the file that has the rest, NULL: it was not needed
    double since;       ///< time of the run at which it began, s; NaN: nothing happened
    const char* reason; ///< of the first failure, "": none
} crd_recorder_loss;
/// Of the thread that records.
CRD_API crd_recorder_loss crd_recorder_get_loss(const crd_recorder* r);

// ---- reading -----------------------------------------------------------------------------------

typedef struct crd_signal_info {
    const char* name;
    const char* unit;        ///< "" none
    const char* description; ///< "" none
    crd_type type;           ///< CRD_FLOAT64 where the file does not say; CRD_STRING for texts
    const crd_label* labels;
    int label_count;
    int group;
} crd_signal_info;

typedef struct crd_group_info {
    const char* name; ///< "" none
    int64_t rows;
    int first_signal, signal_count; ///< into the signals
} crd_group_info;

typedef struct crd_event_info {
    crd_event_kind kind;
    double time;
    const char* text;
} crd_event_info;

typedef struct crd_attachment_info {
    const char *name, *mime;
    uint64_t size;
} crd_attachment_info;

/// What is in a recording; const once opened.
typedef struct crd_recording_info {
    const char* path;
    const char* format;  ///< "CSV", "MDF 4.10", "MAT 5", "MAT 7.3"
    const char* program; ///< that wrote it, ""
    const char* comment; ///< ""
    int64_t started;     ///< ns since 1970, 0 unknown
    bool unfinished;     ///< the writer never closed it
    const crd_group_info* groups;
    int group_count;
    const crd_signal_info* signals; ///< group after group, without the time channels
    int signal_count;
    const crd_event_info* events;
    int event_count;
    const crd_attachment_info* attachments;
    int attachment_count;
} crd_recording_info;

typedef struct crd_recording crd_recording; ///< opaque
typedef struct crd_cursor crd_cursor;       ///< opaque

/// CSV, MF4 or MAT, told by the content. Reads what describes the file, not the data of an MF4.
/// CRD_E_FORMAT with "file: ..." (and line or block offset), CRD_E_NOT_FOUND, CRD_E_UNSUPPORTED
/// with what there is and what would be read.
CRD_API crd_status crd_recording_open(crd_context* ctx, const char* path, crd_recording** out);
CRD_API void crd_recording_close(crd_recording* r);
CRD_API const crd_recording_info* crd_recording_describe(const crd_recording* r);
/// The bytes of attachment i with a zero behind them, from the context: the caller frees.
CRD_API crd_status crd_recording_attachment(crd_recording* r, int i, char** data, size_t* length);

/// Some rows of some signals of one group.
typedef struct crd_block {
    int64_t first, rows; ///< index of the first row; 0 rows: the end
    const double* time;
    const double* const* values;     ///< (signals)(rows)
    const char* const* const* texts; ///< (signals)(rows), entry NULL for numbers
} crd_block;

/// Walk once through a group, in memory that does not grow with the file (MF4). `signals` are
/// indices into the recording's. Close the cursor before the recording.
CRD_API crd_status crd_cursor_open(crd_recording* r, int group, const int* signals, int count,
                                   crd_cursor** out);
/// The block is valid until the next call. Times never decrease: CRD_E_FORMAT if they do; in a
/// recording that is unfinished that is the end of its rows, told as a warning.
CRD_API crd_status crd_cursor_next(crd_cursor* c, crd_block* out);
CRD_API void crd_cursor_close(crd_cursor* c);

/// A recording in memory. Booleans are 0 and 1, columns of texts have `texts`.
typedef struct crd_table_column {
    const char* name;
    const char* unit;         ///< "" none
    const double* values;     ///< (rows); NaN where the text is not a number or absent
    const char* const* texts; ///< (rows), NULL for numeric columns
    const double* time;       ///< (rows) of this column's raster, never decreasing
    int64_t rows;
    crd_type type; ///< CRD_FLOAT64 where the file does not say
} crd_table_column;

typedef struct crd_table {
    const char* path;
    int64_t rows; ///< of the first raster
    int column_count;
    const double* time;              ///< (rows) of the first raster
    const crd_table_column* columns; ///< without time
    const crd_map* names;            ///< the library's; NULL in a table that the caller fills in
} crd_table;

/// CSV, MF4 and MAT. CSV: comma, semicolon, tab or blanks between fields, quotes as in RFC 4180;
/// time is the column called so, or else the first; units in the names or in a row of their own
/// (see docs/reference/formats.md). Bounded by memory only; CRD_E_FORMAT with "file:line: ...".
CRD_API crd_status crd_table_read(crd_context* ctx, const char* path, crd_table** out);
/// CSV from memory.
CRD_API crd_status crd_table_parse(crd_context* ctx, const char* text, size_t length,
                                   const char* name_in_messages, crd_table** out);
CRD_API void crd_table_destroy(crd_table* t);
/// A table as a result file, by its ending as crd_recorder_create. Columns of texts are left out,
/// and so are those whose times are not the first raster's where the format knows one raster only.
/// CRD_E_IO, CRD_E_UNSUPPORTED.
CRD_API crd_status crd_table_write(crd_context* ctx, const crd_table* t, const char* path,
                                   const crd_attachment* attachments, int attachment_count);
/// -1 when absent. The first of several: rasters of an MF4 file may have signals of the same name.
CRD_API int crd_table_find(const crd_table* t, const char* name);
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
    bool differs;      ///< true for a signal that only one has, too
    double first_time; ///< where it first exceeds the tolerance, NaN if nowhere
    double max_error, max_error_time, value_a, value_b; ///< where it is largest; infinite where
                                                        ///< one is NaN or a different text
    double rms_error;
    double tolerance; ///< that was applied: absolute + relative * range
} crd_difference;

typedef struct crd_comparison {
    int signal_count, different_count;
    const crd_difference* signals; ///< in the order of A, then those only in B
    double start, stop;            ///< the times that both cover
} crd_comparison;

CRD_API crd_compare_options crd_compare_defaults(void);
/// B is interpolated linearly at the times of A that both cover; texts hold. Where a time occurs
/// several times (an event), the first, second ... row of A meets the first, second ... row of B
/// and the last the last. Likewise the second signal of a name meets the second. Each signal is
/// compared at the times of its own raster (a constant that A keeps with two rows apart from its
/// first raster: at those of B); one that has no time in common differs, and so does one whose unit
/// of measure in B cannot be converted into that in A (values of B are those in A's). CRD_E_RANGE
/// if none has a time that both cover, CRD_E_NOT_FOUND if a pattern matches nothing.
CRD_API crd_status crd_compare(crd_context* ctx, const crd_table* a, const crd_table* b,
                               const crd_compare_options* opt, crd_comparison** out);
CRD_API void crd_comparison_destroy(crd_comparison* c);

// ---- error of a run, from runs with other steps ------------------------------------------------

/// Richardson's estimate. If the error of a run is C(t) H^p in its step H, two runs whose steps
/// have the ratio r = H / h tell it: the error of the finer one is (y_H - y_h) / (r^p - 1), that of
/// the coarser one r^p times as much. A third, still finer run tells the order p as well.
enum { CRD_RICHARDSON_RUNS = 3 };

typedef struct crd_richardson_options {
    double order;     ///< p > 0; NaN: as observed in three runs, 1 of two
    double ratios[2]; ///< step of run i by that of run i + 1, > 1; NaN: from the median distance of
                      ///< the rows
    double relative, absolute;   ///< the two finest runs agree if they differ by no more (RMS) than
                                 ///< absolute + relative * scale, by default 0 and 1e-12
    const char* const* patterns; ///< only signals that match one; none: all
    int pattern_count;
    const crd_pair*
        pairs; ///< name in the first run and in the others; if there are any, only these
    int pair_count;
} crd_richardson_options;

typedef enum crd_richardson_state {
    CRD_RICHARDSON_GOOD,
    CRD_RICHARDSON_AGREE,     ///< the finest runs differ by rounding only, which has no order: the
                              ///< errors are estimated with the order given, or 1
    CRD_RICHARDSON_IRREGULAR, ///< three runs: no order from 0.1 to 8 explains the differences; no
                              ///< errors unless the order is given
    CRD_RICHARDSON_FEW,       ///< fewer than 3 rows in which all runs have numbers: no errors
    CRD_RICHARDSON_MISSING,   ///< not in all runs: nothing else is known
} crd_richardson_state;

/// Estimated error of a signal in one run, against the extrapolation from the two finest.
typedef struct crd_richardson_error {
    double rms, max, max_time;
    double relative; ///< max / scale
} crd_richardson_error;

typedef struct crd_richardson_signal {
    const char* name;
    crd_richardson_state state;
    int64_t rows;          ///< compared: times that all runs have
    int64_t of_rows;       ///< that the first run has
    int64_t skipped;       ///< such times where one of them has no finite number
    double order;          ///< that the errors were estimated with; NaN: there are none
    double observed;       ///< of three runs; NaN: unknown
    double scale;          ///< largest magnitude in the finest run
    double differences[2]; ///< RMS of run i minus run i + 1
    crd_richardson_error errors[CRD_RICHARDSON_RUNS]; ///< of each run; NaN: unknown
    double end_time, end, extrapolated; ///< last row, value of the finest run, extrapolated value
} crd_richardson_signal;

typedef struct crd_richardson {
    int run_count, signal_count;
    const crd_richardson_signal* signals; ///< in the order of the first run, then those that only
                                          ///< others have; without texts and whole numbers
    double ratios[2];                     ///< that were used
    double start, stop;                   ///< first and last time that was compared
} crd_richardson;

CRD_API crd_richardson_options crd_richardson_defaults(void);
/// Two or three runs, coarsest first. Only rows whose times all runs have are used (to 1e-6 of the
/// distance of rows), nothing is interpolated; where a time occurs several times, the first, second
/// ... row meets the first, second ... if all have as many, else only the last meets the last.
/// CRD_E_RANGE if an option makes no sense, if the ratio of steps cannot be seen in the rows, or no
/// signal has 3 rows in common; CRD_E_NOT_FOUND if no real signal is in all runs or a pattern
/// matches none. `opt` NULL: defaults.
CRD_API crd_status crd_richardson_create(crd_context* ctx, const crd_table* const* runs,
                                         int run_count, const crd_richardson_options* opt,
                                         crd_richardson** out);
CRD_API void crd_richardson_destroy(crd_richardson* r);
/// The order p that explains the sizes of two differences, of runs with steps h1 r1, h1 and h1 /
/// r2:
///   coarse / fine = (r1^p - 1) / (1 - r2^-p)
/// NaN unless 0.1 <= p <= 8.
CRD_API double crd_richardson_order(double coarse, double fine, double r1, double r2);

// ---- drawing -----------------------------------------------------------------------------------

typedef struct crd_plot_series {
    const char* label;
    const double* x;
    const double* y;
    int64_t count;
    bool dashed;
    bool points; ///< dots instead of a line
    bool right;  ///< belongs to the axis at the right
} crd_plot_series;

/// One panel under the other, x axes shared.
typedef struct crd_plot_panel {
    const char* title;
    const char* y_label;
    const crd_plot_series* series;
    int series_count;
    const char* right_label; ///< of the axis at the right, if a series has it
} crd_plot_panel;

/// A self-contained SVG that reads well on light and dark ground; long series are thinned to what
/// can be seen (min and max per pixel).
CRD_API crd_status crd_plot_svg(crd_context* ctx, const char* path, const char* title,
                                const char* x_label, const crd_plot_panel* panels, int panel_count);

/// How a panel is scaled. All zero: linear, as far as the data reach, over the x axis of the plot.
typedef struct crd_plot_scale {
    bool log_y;          ///< values that are not > 0 are gaps
    bool own_x;          ///< not the plot's x axis but one of its own, numbers and label below it
    bool log_x;          ///< of its own axis
    bool equal;          ///< own axis, both linear: a unit is as long in x as in y
    const char* x_label; ///< of its own axis
    double x_low, x_high, y_low, y_high; ///< what is shown, low < high; else what the data need.
                                         ///< x counts for its own axis only
    const char* const* y_names; ///< of the values 0, 1, ... in place of numbers; NULL: numbers
    int y_name_count;
    bool keep_shape; ///< of a curve that goes to and fro
    bool bars;       ///< every series is a row of bars, whose colours are the names of its values
} crd_plot_scale;

typedef enum crd_plot_format {
    CRD_PLOT_SVG,
    CRD_PLOT_PNG,     ///< needs Cairo (libcairo.so.2), which is loaded then
    CRD_PLOT_PDF,     ///< likewise
    CRD_PLOT_TERMINAL ///< lines of text: dots of Braille letters between axes
} crd_plot_format;

typedef struct crd_plot_options {
    const char *title, *x_label;
    bool log_x;                   ///< of the x axis that panels share
    const crd_plot_scale* scales; ///< (panel_count), NULL: all as crd_plot_svg has them
    crd_plot_format format;
    double width, height; ///< mm; 0: for a screen, and as high as the panels need
    const char* font;     ///< NULL: sans-serif
    double font_size;     ///< pt, 0: 9
    double dpi;           ///< of PNG, 0: 300
    int columns;          ///< of the terminal, 0: 80
    bool color;           ///< the terminal has colours
} crd_plot_options;

/// In the format of the options; "-" is standard output. CRD_E_UNSUPPORTED if Cairo is needed and
/// not there, CRD_E_RANGE if a size makes no sense.
CRD_API crd_status crd_plot_write(crd_context* ctx, const char* path,
                                  const crd_plot_options* options, const crd_plot_panel* panels,
                                  int panel_count);
/// As SVG, whatever the options say.
CRD_API crd_status crd_plot_svg_scaled(crd_context* ctx, const char* path,
                                       const crd_plot_options* options,
                                       const crd_plot_panel* panels, int panel_count);

// ---- report ------------------------------------------------------------------------------------

typedef enum crd_report_format { CRD_REPORT_HTML, CRD_REPORT_MARKDOWN } crd_report_format;

typedef struct crd_report_run {
    crd_recording* recording;
    const char* label;   ///< "" its file name
    const char* what;    ///< CRD_ATTACHMENT_RUN for a file that has none, NULL
    const char* verdict; ///< CRD_ATTACHMENT_VERDICT likewise, NULL
    bool reference;      ///< drawn dashed behind the others
} crd_report_run;

typedef struct crd_report_options {
    crd_report_format format;
    const char* title;           ///< NULL: from what ran
    const char* const* patterns; ///< signals to show; none: all
    int pattern_count;
    int points; ///< of a plot's line, min and max of each bin are kept; 0: 4000, fewer if there are
                ///< more than 250 lines
} crd_report_options;

/// One self-contained file that works offline and prints well. Several runs are overlaid: signals
/// with the same name share a plot. Memory stays bounded however long the recordings are.
CRD_API crd_status crd_report_write(crd_context* ctx, const char* path, const crd_report_run* runs,
                                    int run_count, const crd_report_options* opt);
/// What ran (the text of CRD_ATTACHMENT_RUN) as a drawing of units and connections: appends an SVG
/// that stands alone, nothing if there is too little or too much to draw. CRD_E_FORMAT.
CRD_API crd_status crd_report_drawing(crd_context* ctx, const char* what, size_t length,
                                      crd_text* out);

#ifdef __cplusplus
}
#endif
