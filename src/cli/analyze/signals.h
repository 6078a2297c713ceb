// What the commands around signals share (analyze, design, link, compensate, learn): latencies and
// frequencies as words, loops out of files, and files that are written whole.
#pragma once
#include "cardan/analysis.h"
#include "cli/cli.h"
#include "cli/picture.h"

enum { CRDI_LATENCIES_MAX = CRD_LATENCY_MAX + 1 };

// "6", "0,1,3,6", "4..9", or a time ("60 ms"), rounded up to steps; ascending in `out`.
crd_status crdi_parse_latencies(crd_context* ctx, const char* text, double step,
                                int out[CRDI_LATENCIES_MAX], int* count);
// One latency, in steps or as a time, into `o`; NULL: none.
crd_status crdi_parse_latency(crd_context* ctx, const char* text, crd_loop_options* o);
// The same, or a range of steps ("2..5") that samples take: its end is the latency.
crd_status crdi_parse_spread(crd_context* ctx, const char* text, crd_loop_options* o);
// "0.05" or "5 %" of an option; NULL leaves `out` as it is.
crd_status crdi_parse_part(crd_context* ctx, const char* option, const char* text, double* out);
// "0.1..10", "0.1..10 rad/s", "1..5 Hz"; one number is the upper end, the lower a hundredth of it.
crd_status crdi_parse_interval(crd_context* ctx, const char* option, const char* text,
                               crd_interval* out);

// Commands of a recording, on the raster of its signal.
typedef struct crdi_recorded_commands {
    int count;
    crdi_recorded all[CRD_COMMANDS_MAX];
    const double* y[CRD_COMMANDS_MAX];
    const char* names[CRD_COMMANDS_MAX];
} crdi_recorded_commands;
crd_status crdi_commands_load(crd_context* ctx, const char* path, const crdi_list* names,
                              const crdi_recorded_options* o, const crdi_recorded* signal,
                              crdi_recorded_commands* out);
void crdi_commands_clear(crdi_recorded_commands* c);
// Those that the element names, in its order; all if it knows no names and takes commands at all.
crd_status crdi_commands_choose(crd_context* ctx, const crdi_recorded_commands* c, crd_element* e,
                                const double** out);
// What an element has made of them: sentences, and an array for JSON.
void crdi_commands_report(crdi_result* out, crdi_result* into, const crd_element* e,
                          const crd_coupling_commands* s); // `into`: that of --json

crd_signal crdi_signal_of(const crdi_recorded* r); // borrowed; of one without gaps

// A loop file or a system description, by its top-level key. Units of a system are linearised at
// its start, or after a run to `at`.
crd_status crdi_loop_read(crd_context* ctx, const char* path, const crd_loop_options* o, double at,
                          crd_loop_model* out);
// analyze_system.c: the latter.
crd_status crdi_loop_of_system(crd_context* ctx, const char* path, const crd_loop_options* o,
                               double at, crd_loop_model* out);
// Margins of the loop in file `path` with an element, described by `text`, at latency k in it.
crd_status crdi_loop_margins(crd_context* ctx, const char* path, const char* text, int k,
                             crd_margins* out);
// As JSON, null if they are not known, and as cells loop, phase, delay and nearest of tables.
void crdi_put_margins(crdi_result* row, const crd_margins* m);

// A change as it stands in tables: "+1.2 %".
const char* crdi_percent(crdi_result* row, double part);

// What is written must not be what is read.
crd_status crdi_check_output(crd_context* ctx, const char* output, const char* recording);
// A table of numbers as CSV, column by column.
crd_status crdi_write_columns(crd_context* ctx, const char* path, const char* const* names,
                              const double* const* columns, int column_count, int rows);
