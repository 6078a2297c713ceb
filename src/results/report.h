// What the files of the report share; not for others.
//
//   recordings --cursor--> traces (bins, statistics) --grouping--> plots --> HTML or Markdown
//
// Memory grows with signals times points, never with the length of the recordings.
#pragma once
#include "cardan/results.h"
#include "shared/base.h"
#include "shared/base_asset.h"
#include "shared/results.h"

// ---- traces: report_trace.c --------------------------------------------------------------------

typedef struct crdi_point {
    int64_t row; // -1: there is none
    double time, value;
} crdi_point;

// Neighbouring rows of a signal: what is left of them.
typedef struct crdi_bin {
    crdi_point first, low, high, last; // finite values only
    crdi_point gap;                    // the first value that is not finite
} crdi_bin;

enum { CRDI_BIN_POINTS = 5 };

// A signal of one run. Starts with bins of the width that fits the number of rows; when there turn
// out to be more rows, neighbouring bins are merged and bins are twice as wide from then on.
typedef struct crdi_trace {
    crdi_bin* bins;
    int64_t bin_count, bin_most;
    int64_t width, filled;      // rows of a bin, and of the last one so far
    double min, max, sum, last; // of finite values; NaN: none
    int64_t samples, bad;       // bad: not finite
} crdi_trace;

// `rows` is what the file promises; at most about `points` points are kept, all of them if there
// are no more rows than that.
crd_status crdi_trace_init(crdi_trace* t, crd_arena* a, int64_t rows, int points);
void crdi_trace_add(crdi_trace* t, const double* time, const double* values, int64_t rows);
// In the order of rows, NaN for gaps. `out` has room for crdi_trace_most() points.
int64_t crdi_trace_points(const crdi_trace* t, crdi_point* out);
int64_t crdi_trace_most(const crdi_trace* t);

// ---- what a report is about: report.c ----------------------------------------------------------

/// A part of a signal, or of the energy, that is missing or wrong makes a run doubtful.
#define CRDI_MUCH_ERROR 0.1
/// So does a tenth of that in a loop whose errors nobody knows: there defects add up.
bool crdi_report_adds_up(const crdi_json* verdict);
/// Nothing was measured of its loops: they are not called good.
bool crdi_report_knows_nothing(const crdi_json* verdict);
typedef enum crdi_state { CRDI_GOOD, CRDI_UNKNOWN, CRDI_DOUBTFUL, CRDI_BAD } crdi_state;

// A raster of one run. Regular: row k was taken at t0 + k dt.
typedef struct crdi_report_group {
    bool regular;
    double t0, dt, last;
    int64_t rows;
} crdi_report_group;

typedef struct crdi_report_part { // of a run
    const crd_report_run* run;
    const crd_recording_info* info;
    const char* label;
    const crdi_json *what, *verdict; // NULL: not known
    crdi_report_group* groups;
    crdi_state state;
} crdi_report_part;

typedef struct crdi_text_change {
    double time;
    const char* text;
} crdi_text_change;

enum {
    CRDI_MOST_CHANGES = 100, // of a text
    CRDI_MOST_TEXT = 200,    // bytes of it
    CRDI_MOST_EVENTS = 500,  // in the table
    CRDI_MOST_LINES = 8,     // in a plot
};

// One signal in one run.
typedef struct crdi_report_line {
    bool there;
    int group;
    double factor, offset; // into the unit of measure of the first run that has it
    crdi_trace trace;
    crdi_text_change* changes; // of a text, at most CRDI_MOST_CHANGES
    char* latest;              // of a text, CRDI_MOST_TEXT + 1 bytes
    int64_t change_count;      // also of those that are not kept
} crdi_report_line;

typedef enum crdi_kind {
    CRDI_KIND_REAL,
    CRDI_KIND_INTEGER,
    CRDI_KIND_BOOLEAN,
    CRDI_KIND_ENUMERATION,
    CRDI_KIND_TEXT,
} crdi_kind;

typedef struct crdi_report_signal {
    const crd_signal_info* info; // of the first run that has it
    const char* name;            // unique
    const char* owner;           // the system's unit, "" none
    const char* member;          // the name inside it
    crdi_kind kind;
    crdi_report_line* lines; // (runs)
    // x with x.low and x.high has a band: their indices, and in them what they bound; 0: none, else
    // the index + 1
    int low, high, bounds;
} crdi_report_signal;

typedef struct crdi_report_plot {
    const char* title;
    const char* owner;
    const char* unit;
    crdi_kind kind;
    int signals[CRDI_MOST_LINES];
    int count;
    double low, high; // of all its lines; NaN: none
    double least;     // range of the flattest line that is not constant; infinite: none
    bool band;        // three signals: x, its lower and its upper bound
} crdi_report_plot;

typedef struct crdi_report {
    crd_context* ctx;
    crd_arena arena;
    const char* path;
    const char* title;
    const crd_report_options* options;
    crdi_report_part* parts; // (part_count)
    int part_count;
    crdi_report_signal* signals;
    int signal_count;
    int left_out; // signals that only the reference has
    crdi_report_plot* plots;
    int plot_count;
    int points;                       // per line
    double start, stop;               // over all runs
    const char *folder, *folder_name; // of pictures beside a Markdown file, and in its links
    double* converted;                // of a block
    size_t converted_rows;
    crdi_point* scratch; // room for one trace
    int64_t scratch_most;
} crdi_report;

crd_status crdi_report_group_signals(crdi_report* r); // report_group.c

// ---- writing: report_doc.c ---------------------------------------------------------------------

// A document in one of two formats; most of its calls are shared.
struct crdi_doc {
    crd_context* ctx;
    int fd;
    bool html;
    crd_text text; // not yet written
    crd_status st;
    int column, columns;
    const char* align;  // a letter per column: l, r
    char own_align[16]; // of crdi_doc_columns
    const char* path;   // for messages
};

// As snprintf, but cut at a whole character. Returns `out`.
const char* crdi_doc_format(char* out, size_t size, const char* format, ...) CRD_PRINTF(3, 4);
void crdi_doc_flush(crdi_doc* d);
void crdi_doc_put(crdi_doc* d, const char* raw);
void crdi_doc_bytes(crdi_doc* d, const void* bytes, size_t length);
void crdi_doc_text(crdi_doc* d, const char* text); // escaped
void crdi_doc_base64(crdi_doc* d, const unsigned char* bytes, size_t length);
void crdi_doc_cell_tip(crdi_doc* d, const char* text, const char* tip); // tip in HTML only
// "1.23457", without locale; at most 32 bytes. An en dash for what is not finite.
const char* crdi_number_text(char out[32], double x, int digits);
const char* crdi_seconds_text(char out[32], double seconds); // "1.5 ms"

// ---- rows of JSON and charts: report_rows.c ----------------------------------------------------

enum { CRDI_CELL = 512 };

typedef enum crdi_cell_kind { // of a member that may be missing or something else
    CRDI_CELL_TEXT,           // a dash if empty; stands on the left, all others on the right
    CRDI_CELL_NUMBER,
    CRDI_CELL_SECONDS, // "1.5 ms"
    CRDI_CELL_PERCENT,
} crdi_cell_kind;

typedef struct crdi_doc_column {
    const char *title, *key;
    crdi_cell_kind kind;
    int digits;       // of a number
    const char* part; // the object in the row that has the member; NULL: the row itself
    const char* (*make)(const crdi_json* row, char out[CRDI_CELL]); // out of several members
    const char* tip;                                                // member shown on a long look
} crdi_doc_column;

#define CRDI_TEXT(t, k) .title = (t), .key = (k)
#define CRDI_NUMBER(t, k, n) CRDI_TEXT(t, k), .kind = CRDI_CELL_NUMBER, .digits = (n)
#define CRDI_SECONDS(t, k) CRDI_TEXT(t, k), .kind = CRDI_CELL_SECONDS
#define CRDI_PERCENT(t, k) CRDI_TEXT(t, k), .kind = CRDI_CELL_PERCENT
#define CRDI_COLUMNS(columns) columns, (int)(sizeof(columns) / sizeof *(columns))

// A table of the rows that are wanted (NULL: all); nothing if there is none.
void crdi_doc_rows(crdi_doc* d, const char* caption, const crdi_doc_column* columns, int count,
                   const crdi_json* list, bool (*wanted)(const crdi_json* row));
// The same piece by piece, for rows from elsewhere; crdi_doc_table_end ends it.
void crdi_doc_columns(crdi_doc* d, const char* caption, const crdi_doc_column* columns, int count);
void crdi_doc_row(crdi_doc* d, const crdi_doc_column* columns, int count, const crdi_json* row);
void crdi_doc_sentences(crdi_doc* d, const crdi_json* texts); // a bullet each

const char* crdi_text_or_dash(const char* text);
const char* crdi_percent_text(char out[CRDI_CELL], double x);                // a part of a whole
const char* crdi_connection_text(const crdi_json* row, char out[CRDI_CELL]); // from and to

#define CRDI_SVG_FONT                                                                              \
    "font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:var(--tt)"
// At most `most` characters and an ellipsis; `out` has room for 4 * most + 8 bytes.
void crdi_svg_clip(char* out, const char* text, int most);
void crdi_svg_begin(crd_text* t, const char* class, const char* label, int width, int height);
// With the style of bars on a grid. `alone`: a file of its own, with its own colours.
void crdi_svg_begin_chart(crd_text* t, const char* class, const char* label, int width, int height,
                          bool alone);
// In a page, which scrolls it.

typedef struct crdi_chart_words {
    const char *label, *alt, *file; // file: its name up to the number of the run
} crdi_chart_words;

// In a page, or as a file beside the Markdown.
crd_status crdi_report_chart(crdi_report* r, crdi_doc* d, int part, const crdi_chart_words* words,
                             const crd_text* svg);

// ---- the parts of a report ---------------------------------------------------------------------

void crdi_report_summary(crdi_doc* d, const crdi_report* r);  // report_tables.c
crd_status crdi_report_what_ran(crdi_doc* d, crdi_report* r); // without its drawing; how well, too
void crdi_report_texts(crdi_doc* d, const crdi_report* r);
void crdi_report_tables(crdi_doc* d, const crdi_report* r); // from events to statistics
const char* crdi_state_word(crdi_state s);
const crdi_json* crdi_report_drawn(const crdi_report* r); // the system that is drawn, NULL

// The system as SVG; nothing if there is too little or too much to draw. `alone`: a file of its
// own, with its own colours. report_drawing.c
enum { CRDI_MOST_BOXES = 30 };
crd_status crdi_report_drawing(crd_context* ctx, const crdi_json* what, bool alone, crd_text* out);

// Defects, energy, step control, iteration and advice; nothing if no run knows of them.
crd_status crdi_report_quality(crdi_report* r, crdi_doc* d); // report_quality.c
// How runs kept the clock, budgets and links; nothing if no run knows of them. report_pace.c
crd_status crdi_report_pace(crdi_report* r, crdi_doc* d);
const crdi_json* crdi_report_paced(const crdi_json* verdict); // its account, NULL: not on the clock
// An SVG as a file beside the Markdown, and the link to it. report_md.c
crd_status crdi_report_picture(crdi_report* r, crdi_doc* d, const char* alt, const char* file,
                               const crd_text* svg);

crd_status crdi_report_html(crdi_report* r, crdi_doc* d);
void crdi_report_html_head(crdi_doc* d, const char* title, crdi_state state); // up to the verdict
void crdi_doc_verdict(crdi_doc* d, crdi_state state); // the mark; a sentence and _end follow
void crdi_doc_verdict_end(crdi_doc* d);
crd_status crdi_report_markdown(crdi_report* r, crdi_doc* d);

// ---- files of the page, embedded by the build --------------------------------------------------

extern const crdi_asset crdi_page_css, crdi_page_js, crdi_chart_js;
