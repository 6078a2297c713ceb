/// Mappings read by tables: one row per key says its name, its type and where the value goes.
///
/// Everything that can be wrong with a key or a value is worded here, once: unknown keys with the
/// nearest known one, missing keys, wrong types, wrong dimensions, values out of range.
#pragma once
#include "shared/base.h"
#include "shared/system.h"
#include "system/yaml.h"

typedef enum crdi_key_type {
    CRDI_KEY_NODE,      ///< const crdi_node*: the reader of the table goes on from there
    CRDI_KEY_TEXT,      ///< const char*, not empty
    CRDI_KEY_TEXTS,     ///< crdi_texts; one text or a list of them
    CRDI_KEY_PATH,      ///< const char*, relative to the folder of the file
    CRDI_KEY_BOOL,      ///< bool
    CRDI_KEY_INT,       ///< int within min..max
    CRDI_KEY_SEED,      ///< uint64_t
    CRDI_KEY_NUMBER,    ///< double
    CRDI_KEY_TIME,      ///< double, s
    CRDI_KEY_FREQUENCY, ///< double, Hz
    CRDI_KEY_ANGLE,     ///< double, rad
    CRDI_KEY_NUMBERS,   ///< crdi_numbers
    CRDI_KEY_TIMES,     ///< crdi_numbers, s
    CRDI_KEY_CHOICE,    ///< an enum, by its place in `choices`
    CRDI_KEY_EITHER,    ///< bool: the second of two `choices`
    CRDI_KEY_TABLE,     ///< a mapping of its own, `table`
    CRDI_KEY_OWN,       ///< by `read`
} crdi_key_type;

typedef enum crdi_range { CRDI_ANY, CRDI_POSITIVE, CRDI_NOT_NEGATIVE } crdi_range;

typedef struct crdi_reader crdi_reader;

typedef struct crdi_key {
    const char* name;
    crdi_key_type type;
    size_t offset; ///< of the value in the object
    bool required;
    crdi_range range;           ///< numbers
    int min, max;               ///< CRDI_KEY_INT
    const char* const* choices; ///< CRDI_KEY_CHOICE, ends with NULL
    const struct crdi_table* table;
    crd_status (*read)(crdi_reader* r, const crdi_node* n, void* out);
    crdi_key_type stored; ///< CRDI_KEY_OWN: what the value is written as, NODE: by somebody else
} crdi_key;

typedef struct crdi_table {
    const char* name; ///< also the name of its definition in the schema file
    const crdi_key* keys;
    int count; ///< 64 at most
} crdi_table;

typedef struct crdi_texts {
    const char* const* items;
    int count;
} crdi_texts;

typedef struct crdi_numbers {
    const double* items;
    int count;
} crdi_numbers;

/// ", did you mean 'x'?" or "".
typedef struct crdi_hint {
    char text[100];
} crdi_hint;

struct crdi_reader {
    crd_context* ctx;
    crd_system* system; ///< that is being read
    crd_arena* arena;   ///< of the system: what stays
    crd_arena* scratch; ///< gone after reading
    const char* file;
    size_t folder_length; ///< of `file` up to and with its last slash
    char path[200];       ///< "units.mass1.signal", where we are
    size_t path_length;
    int base_units, base_connections; ///< that were there before: they are changed, not added
    int base_bonds;
    bool foreign_names;                ///< new units may have any name
    crdi_hint hint;                    ///< unit that may have been meant
    const char *path_read, *path_made; ///< the last path, as it is written and as it is kept
};

/// `*given` (may be NULL) gets bit i for key i of the table.
crd_status crdi_read_mapping(crdi_reader* r, const crdi_node* n, const crdi_table* table,
                             void* object, uint64_t* given);
/// The members whose values are not those of `defaults`, as the reader would read them.
void crdi_flow_table(crdi_flow* f, const crdi_table* table, const void* object,
                     const void* defaults);
/// "file:line: path: sentence"
crd_status crdi_read_fail(crdi_reader* r, crd_status st, int line, const char* format, ...)
    CRD_PRINTF(4, 5);

/// Go down by a key, and back to what enter returned.
size_t crdi_path_enter(crdi_reader* r, const char* key);
size_t crdi_path_enter_item(crdi_reader* r, int index); ///< from 0, shown from 1
void crdi_path_leave(crdi_reader* r, size_t mark);

crd_status crdi_expect_kind(crdi_reader* r, const crdi_node* n, crdi_node_kind kind,
                            const char* expected);
crd_status crdi_read_number(crdi_reader* r, const crdi_node* n, crdi_range range, double* out);
crd_status crdi_read_int(crdi_reader* r, const crdi_node* n, int min, int max, int* out);
/// A scalar that is text and not empty.
crd_status crdi_read_text(crdi_reader* r, const crdi_node* n, const char** out);
/// The same as a path: relative to the folder of the file.
crd_status crdi_read_path(crdi_reader* r, const crdi_node* n, const char** out);

/// ", it belongs to channel", or "".
crdi_hint crdi_key_home(const char* key);
crdi_hint crdi_hint_from(const char* word, const char* (*next)(void* user), void* user);
