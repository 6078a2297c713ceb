// What a command found, as one value: a printer makes text of it, another one JSON.
//
// A result is an object whose members stand in the order in which they were put. Values are seen by
// JSON, sentences by text. A list of rows is an array of objects in JSON; in text it is seen where
// crdi_show_table says which members are columns:
//
//     static const crdi_column columns[] = {
//         {"signal", "name", "%s"}, {">largest", "max", "%.4g"}, {0}};
//
//     crdi_result* list = crdi_array(out, "signals");
//
//     crdi_put(crdi_row(list), TEXT("name", x->name), REAL("max", x->max)); // for each
//
//     crdi_show_table(out, list, columns, "");
//
//     crdi_say(out, "%d signals differ\n", count);
//
// Texts are copied, keys are not (crdi_result_copy does). Nothing fails: without memory nodes are
// NULL, all functions take NULL, and the printer says it. Nor does a result that is not whole get
// printed: what could not be put spoils it, and that is the failure of the command.
#pragma once
#include "shared/base_values.h"

// The value, null unless `there`.
#define ONLY_IF(there, value) crdi_value_if((there), (value))
// A value that looks otherwise in a table.
#define AS(value, shown_text) crdi_value_as((value), (shown_text))
// A cell of a table that JSON does not have.
#define CELL(name, x)                                                                              \
    ((crdi_value){.kind = CRDI_VALUE_TEXT, .only_text = true, .key = (name), .text = (x)})

crdi_value crdi_value_if(bool there, crdi_value v);
crdi_value crdi_value_as(crdi_value v, const char* shown);

typedef struct crdi_column {
    const char* title; // ">title": aligned right. Without any title there is no line of titles
    const char* key;   // of the row's member; NULL: end of the columns
    // Of reals: "%.4g"; "100*%.3g %%": times hundred; "s": "1.5 ms". Others are shown as they are.
    const char* format;
} crdi_column;

typedef struct crdi_result {
    crdi_value value; // object or array, as a member of its parent
    struct crdi_root* root;
    bool aside; // for standard error
    crdi_value *first, *last;
    // of a view
    const struct crdi_result* list;
    const crdi_column* columns;
    const char* indent;
} crdi_result;

typedef struct crdi_root {
    crdi_result result, aside;
    crd_arena arena;
    bool json;         // what is said is not kept
    crd_status failed; // it is not whole and will not be printed: out of memory, or ...
    char why[256];     // ... the failure
    bool line;         // several results, one line of JSON each: what servers say as they go
    bool live;         // somebody waits for each of them
    bool printed;      // what was put so far
    bool beside;       // standard output is a file's: text goes to standard error
    int label_width;   // of facts
} crdi_root;

void crdi_result_init(crdi_root* r, crd_context* ctx, bool json);
void crdi_result_clear(crdi_root* r);
// Events as they happen: each result that is printed is one line of JSON. `live`: it is flushed.
void crdi_json_lines(crdi_result* out, bool live);
// Text or JSON, as wished; nothing if nothing was put. The failure, if something could not be put.
crd_status crdi_result_write(const crdi_root* r, crd_text* out);
// The same; what is put afterwards is another result, and nodes are gone. CRD_E_IO, too.
crd_status crdi_result_print(crdi_root* r);

// Something could not be put: `st`, with the context's text.
void crdi_result_spoil(crdi_result* o, crd_status st);

// The context of the command, for those who need memory of their own.
crd_context* crdi_result_context(const crdi_result* o);

// ---- values
#define crdi_put(object, ...) crdi_put_values(object, (const crdi_value[]){__VA_ARGS__, {0}})
void crdi_put_values(crdi_result* object, const crdi_value* values); // up to CRDI_VALUE_END
crdi_result* crdi_object(crdi_result* object, const char* key);
crdi_result* crdi_object_if(crdi_result* object, const char* key, bool there); // null, NULL
crdi_result* crdi_array(crdi_result* object, const char* key); // NULL: text only, for tables
crdi_result* crdi_row(crdi_result* array);                     // an object
// The result is not an object but a list: in JSON itself, in text for a table.
crdi_result* crdi_whole_array(crdi_result* out);
void crdi_put_texts(crdi_result* object, const char* key, const char* const* items, int count);
void crdi_put_numbers(crdi_result* object, const char* key, const double* x, int64_t count);
// An element of an array that is no object; its key is not used.
#define crdi_add(array, value) crdi_put(array, value)
// A JSON document that others made. One that cannot be read (too long, too deep) spoils the result.
void crdi_put_json(crdi_result* object, const char* key, const char* text, size_t length);
const char* crdi_result_copy(crdi_result* o, const char* text); // as long as the result
const char* crdi_worded(crdi_result* o, const char* format, ...) CRD_PRINTF(2, 3); // likewise
// Whether JSON is made of it: what text does not show need not be put otherwise, if it is much.
bool crdi_makes_json(const crdi_result* o);
// Rows that only one of both has.
void crdi_only_text(crdi_result* row);
void crdi_only_json(crdi_result* row);

// ---- text
void crdi_say(crdi_result* o, const char* format, ...) CRD_PRINTF(2, 3);
// "label         text\n"
void crdi_fact(crdi_result* o, const char* label, const char* format, ...) CRD_PRINTF(3, 4);
// The same for texts that may be empty or NULL: nothing then.
void crdi_fact_if(crdi_result* o, const char* label, const char* text);
// A label of at most eight characters, then words in lines that fit a terminal.
void crdi_say_wrapped(crdi_result* o, const char* label, const char* format, ...) CRD_PRINTF(3, 4);
// A table of the rows of an array; nothing if it has none. `columns` end with {0} and stay.
void crdi_show_table(crdi_result* o, const crdi_result* array, const crdi_column* columns,
                     const char* indent);
// What is said here goes to standard error, in one write, and also if JSON is wished.
crdi_result* crdi_aside(crdi_result* o);
void crdi_label_width(crdi_result* o, int columns); // of facts; 14 unless said
