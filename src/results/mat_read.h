// Reading MATLAB files: what the layouts share.
#pragma once
#include "results/recording.h"
#include "results/table.h"

#include <matio.h>

typedef struct crdi_mat_column {
    const char *name, *unit, *description;
    crd_type type;
    const double* time;
    int64_t rows;
    double* values; ///< aliases share them
    const char** texts;
    const crd_label* labels;
    int label_count;
} crdi_mat_column;

typedef struct crdi_mat {
    crd_context* ctx;
    const char* path;
    crdi_memory_recording* m;
    crdi_table* table;
    mat_t* file;
    enum mat_ft version;
    double size;  ///< of the file
    double bytes; ///< that its variables claim so far, for the limit
    matvar_t** variables;
    size_t count, capacity;
    double values; ///< that were read so far, for the limit
    crdi_mat_column* columns;
    size_t column_count, column_capacity;
    const matvar_t* signals; ///< names and units, NULL: none
    crd_map signal_index;    ///< variable -> element of signals
    int32_t* in_order;       ///< (elements of signals) index of their variables, -1: there is none
} crdi_mat;

bool crdi_mat_is_numeric(const matvar_t* v);
double crdi_mat_value(const matvar_t* v, size_t i);
crd_type crdi_mat_type(const matvar_t* v);
const matvar_t* crdi_mat_find(const crdi_mat* d, const char* name);

/// Text `row` of a char matrix (lying: each column is a text) as UTF-8 in the arena, without what
/// fills it up; "" for anything else. NULL: out of memory.
const char* crdi_mat_text(crd_arena* arena, const matvar_t* v, size_t row, bool lying);

/// Room for `n` values; CRD_E_MEMORY if that and what was read before is more than there is.
crd_status crdi_mat_room(crdi_mat* d, size_t n, double** out);
/// Values [rows[i] * stride], i < n, as times: finite and never decreasing. `rows` NULL: 0, 1 ...
crd_status crdi_mat_copy_time(crdi_mat* d, const matvar_t* v, const size_t* rows, size_t stride,
                              size_t n, const double** time);
/// The column is copied.
crd_status crdi_mat_add_column(crdi_mat* d, const crdi_mat_column* column);

/// Most bytes that the file's variables may take: 1032 for each of its own, which is what deflate
/// reaches on zeros, but 256 MiB are always allowed.
double crdi_mat_budget(const crdi_mat* d);
/// Before libmatio opens it. CRD_E_FORMAT: the file is none, or cut off, or its cells are more than
/// libmatio bears.
crd_status crdi_mat_check(const crdi_mat* d);

/// Result files of Modelica tools. `*found`: this is one, and its columns have been added.
crd_status crdi_mat_read_modelica(crdi_mat* d, bool* found);
