// Tables, for those who make them.
#pragma once
#include "cardan/results.h"
#include "shared/base.h"

typedef struct crdi_table {
    crd_table view; ///< first, so that the caller's pointer is ours
    crd_context* ctx;
    crd_arena arena; ///< names, units, column descriptions, and columns that do not come from CSV
    crd_map names;
    crd_table_column* columns; ///< as view.columns
    double* values;            ///< CSV: time, then the columns, (capacity) each
    char* texts;               ///< CSV: all texts of text columns, each with a final zero
    const char** text_rows;
} crdi_table;

/// No columns yet, but room for `columns` of them.
crd_status crdi_table_create(crd_context* ctx, const char* path, int columns, crdi_table** out);
/// The next column. Names may repeat: crd_table_find gives the first.
crd_status crdi_table_add(crdi_table* t, const crd_table_column* column);
/// From a file that is open.
crd_status crdi_table_read_csv(crd_context* ctx, int fd, const char* path, crd_table** out);

/// What a text is worth as a number: decimal, true, false; NaN for anything else.
double crdi_text_value(const char* text, size_t length);

/// The text, or what it says in UTF-8 in the arena: spreadsheets and tools write Latin-1, and what
/// is not UTF-8 is taken for that. NULL: out of memory.
char* crdi_table_utf8(crd_arena* arena, char* text);

/// CRD_E_MEMORY if `values` doubles are more than this machine could hold.
crd_status crdi_table_check_size(crd_context* ctx, const char* path, double values);
