// Reading CSV: what its header and its rows share.
#pragma once
#include "results/table.h"

typedef struct crdi_csv {
    crd_context* ctx;
    crdi_table* t;
    const char* name; ///< in messages
    const char *at, *end;
    int64_t line;   ///< of `at`, from 1
    char separator; ///< , ; tab, or a blank that stands for any number of blanks and tabs
    int fields;     ///< of a row, with time; a row may have empty ones behind them
    int time_field;
    double time_factor, time_divisor; ///< seconds = number * factor / divisor
    size_t capacity;                  ///< rows
    uint8_t* is_text;                 ///< (fields), by slot
} crdi_csv;

/// One field: without the blanks around it and without its quotes.
typedef struct crdi_csv_field {
    const char* text;
    size_t length;
    bool doubled; ///< has quotes that stand for one
    bool last;    ///< of its row
    bool cut;     ///< the text ends inside its quotes
} crdi_csv_field;

/// Where a field goes: time is 0, the columns follow in their order.
static inline int crdi_csv_slot(const crdi_csv* r, int field)
{
    return field == r->time_field ? 0 : field < r->time_field ? field + 1 : field;
}

crd_status crdi_csv_fail(const crdi_csv* r, int64_t line, const char* what);
crd_status crdi_csv_next(crdi_csv* r, crdi_csv_field* f);
/// Empty lines, and those that begin with #.
void crdi_csv_skip(crdi_csv* r);
/// A number, with a comma for the point where that cannot be the separator; or true, false. An
/// empty field is no value: NaN.
bool crdi_csv_number(const crdi_csv* r, const char* text, size_t length, double* out);
/// The field's text with single quotes; at most length + 1 bytes. Returns the end.
char* crdi_csv_copy(const crdi_csv_field* f, char* to);
/// Case does not matter; `word` is in small letters.
bool crdi_csv_equals(const char* text, size_t length, const char* word);

/// Separator, names and units; then the reader stands at the first row.
crd_status crdi_csv_header(crdi_csv* r);
