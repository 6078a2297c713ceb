// What the parts of cardan analyze share; cardan design reads loops with it, too.
#pragma once
#include "cardan/analysis.h"
#include "cardan/coupling.h"
#include "cli/cli.h"
#include "shared/base.h"

typedef struct crdi_analyze_options {
    crdi_common common;
    const char *latency, *omega, *csv, *plot, *signal;
    double step, magnitude, phase, at, from, to, part;
    double min_phase, min_gain, min_delay, min_distance;
    bool require_stable, decibel;
    crdi_list elements;
    int points, modes, length; // -1: not given
} crdi_analyze_options;

// ---- analyze_elements.c
// An element for one latency, as linear functions: one, or the pieces of a network.
typedef struct crdi_linears {
    crd_context* ctx;
    crd_arena arena;
    crd_linear own; // of a linear element: crd_linear_clear
    int count;
    const crd_linear* linear; // (count)
    const double* bias;       // (count) constants of the pieces, NULL: none
    const int* patterns;      // (count) of activation, NULL: not a network
} crdi_linears;
// `step` NaN: the element's own.
crd_status crdi_linears_make(const crd_element* e, double step, int k, crdi_linears* out);
void crdi_linears_clear(crdi_linears* l);
crd_status crdi_analyze_elements(crdi_cli* cli, const crdi_analyze_options* o,
                                 const crdi_list* arguments);

// ---- analyze_loop.c
// A loop with its elements. Elements may have several linear pieces: then it has variants.
typedef struct crdi_loop_element {
    const char* label;
    crdi_linears linears;
    crd_linear* current; // what the loop uses, changed by crdi_loop_choose
} crdi_loop_element;

typedef struct crdi_loop_case {
    crd_context* ctx;
    crd_arena arena;
    const char* name;  // file
    const char* place; // "" or where units were linearised: "at t = 0"
    crd_loop loop;     // network: with direct links closed
    crd_plant whole, reduced;
    crd_plant sampled;  // for the map over one macro step; no links: there is none
    const char* no_map; // why not
    crdi_loop_element* elements;
    int element_count;
    int direct; // links without element
    int variants;
    bool exact; // units are known to rounding: not linearised by differences
} crdi_loop_case;

// A loop file or a system description, by its top-level key. `elements` and `latency` of the
// options take the place of what the file says.
crd_status crdi_loop_read(crd_context* ctx, const char* path, const crdi_analyze_options* o,
                          crdi_loop_case* out);
void crdi_loop_clear(crdi_loop_case* c);
void crdi_loop_choose(crdi_loop_case* c, int variant);
// An element of the case for links to point at; NULL after a failure, which `*st` is.
const crd_linear* crdi_loop_add_element(crdi_loop_case* c, const crd_element* e, double step, int k,
                                        crd_status* st);
// Once `whole` and dT are there: closes direct links, counts variants.
crd_status crdi_loop_finish(crdi_loop_case* c);

// ---- analyze_system.c
crd_status crdi_loop_of_system(crd_context* ctx, const char* path, const crdi_analyze_options* o,
                               crdi_loop_case* out);

// ---- analyze_margins.c
crd_status crdi_analyze_loop(crdi_cli* cli, const crdi_analyze_options* o, const char* path);

// ---- analyze_recording.c
crd_status crdi_analyze_recording(crdi_cli* cli, const crdi_analyze_options* o, const char* path);

// ---- analyze.c
// One latency; `text` NULL: `otherwise`.
crd_status crdi_one_latency(crd_context* ctx, const char* text, double step, int otherwise,
                            int* out);
// A table of numbers as CSV, column by column.
crd_status crdi_write_columns(crd_context* ctx, const char* path, const char* const* names,
                              const double* const* columns, int column_count, int rows);
crd_status crdi_check_svg(crd_context* ctx, const char* path); // ends in .svg
