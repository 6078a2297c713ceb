// What the files of the description parser share.
//
//   description.c            expat, limits, the tree of elements, everything that occurs once
//   description_types.c      units, type definitions, enumerations
//   description_variables.c  variables of all versions and their defaults
//   description_finish.c     what needs all variables: aliases, sizes, dependencies, final tables
#pragma once
#include <expat.h>

#include "fmi/description.h"
#include "shared/archive.h" // crdi_show
#include "shared/base.h"

enum {
    CRDI_XML_MAX_DEPTH = 64,
    CRDI_XML_MAX_TAG = 16 << 20,    // bytes of one tag: 700 000 start values of an array
    CRDI_XML_MAX_BYTES = 256 << 20, // of the whole file: a million variables
    CRDI_MAX_RANK = 32,             // dimensions of an array
    CRDI_MAX_ELEMENTS = 100000000,  // elements of an array
    CRDI_TEXT_SLOTS = 256,
};

// Attributes of variables and of types, found in one pass over an element.
#define CRDI_ATTRIBUTE_LIST(X)                                                                     \
    X(NAME, "name")                                                                                \
    X(VALUE_REFERENCE, "valueReference")                                                           \
    X(DESCRIPTION, "description")                                                                  \
    X(CAUSALITY, "causality")                                                                      \
    X(VARIABILITY, "variability")                                                                  \
    X(INITIAL, "initial")                                                                          \
    X(MULTIPLE_SET, "canHandleMultipleSetPerTimeInstant")                                          \
    X(ALIAS, "alias")                                                                              \
    X(FIXED, "fixed")                                                                              \
    X(INTERMEDIATE_UPDATE, "intermediateUpdate")                                                   \
    X(CLOCKS, "clocks")                                                                            \
    X(DECLARED_TYPE, "declaredType")                                                               \
    X(DERIVATIVE, "derivative")                                                                    \
    X(UNIT, "unit")                                                                                \
    X(RELATIVE, "relativeQuantity")                                                                \
    X(MIN, "min")                                                                                  \
    X(MAX, "max")                                                                                  \
    X(NOMINAL, "nominal")                                                                          \
    X(START, "start")
#define CRDI_ATTRIBUTE_ENUM(id, text) CRDI_AT_##id,
typedef enum crdi_attribute {
    CRDI_ATTRIBUTE_LIST(CRDI_ATTRIBUTE_ENUM) CRDI_AT_COUNT
} crdi_attribute;
#undef CRDI_ATTRIBUTE_ENUM

typedef struct crdi_attributes {
    const char* value[CRDI_AT_COUNT]; // NULL: not there
} crdi_attributes;

// What a declared type hands down to its variables.
typedef struct crdi_declared_type {
    const char* name;
    int32_t unit;        // -1: none
    int32_t enumeration; // -1: none
    uint8_t type;        // crd_type, or CRD_TYPE_COUNT while it is not known
    bool relative;
    double nominal, min, max;
} crdi_declared_type;

typedef struct crdi_enumeration_row {
    const char* name;
    int32_t first, count; // in the items
} crdi_enumeration_row;

// A dimension as written: which variable a reference means is known at the end.
typedef struct crdi_axis_row {
    uint64_t start;
    uint32_t reference, line;
    bool by_reference;
} crdi_axis_row;

// Start texts of one array of strings or binaries, one after the other.
typedef struct crdi_text_start {
    int32_t variable;
    uint32_t count;
    size_t length;
} crdi_text_start;

typedef struct crdi_unknown_row {
    uint32_t unknown; // FMI 1 and 2: index from 1; FMI 3: value reference
    uint32_t line, first;
    bool on_all;
} crdi_unknown_row;

// ModelStructure as written.
typedef struct crdi_unknown_list {
    crdi_unknown_row* rows;
    size_t count, capacity;
    uint32_t* known; // like `unknown`; FMI 1: into `dependencies`, until the end
    size_t known_count, known_capacity;
} crdi_unknown_list;

// `derivative` of a variable: FMI 2: index from 1; FMI 3: value reference of the state.
typedef struct crdi_derivative_row {
    int32_t variable;
    uint32_t state, line;
} crdi_derivative_row;

typedef struct crdi_oddity { // told once, with the first place and the number
    int32_t first, count;
} crdi_oddity;

typedef struct crdi_parser {
    crd_context* ctx;
    crd_fmu* fmu;
    crd_arena* arena; // the FMU's
    crd_fmu_description* d;
    const char* name; // in messages
    XML_Parser xml;
    crd_status status; // of the first failure
    int depth;
    uint8_t places[CRDI_XML_MAX_DEPTH + 1];

    crd_fmu_unit* units;
    size_t unit_count, unit_capacity;
    crd_map unit_names;
    int32_t unit; // the one whose children are read

    crdi_declared_type* types;
    size_t type_count, type_capacity;
    crd_map type_names;
    crdi_enumeration_row* enumerations;
    size_t enumeration_count, enumeration_capacity;
    crd_fmu_item* items;
    size_t item_count, item_capacity;

    size_t variable_count, variable_capacity; // of fmu->variables
    int32_t variable;                         // the one whose children are read
    bool has_type;                            // FMI 1 and 2: its type element was there
    bool fixed, has_dependencies;             // FMI 1: its start is no guess; DirectDependency
    const char** dependencies;                // FMI 1: names of inputs
    size_t dependency_count, dependency_capacity;
    size_t known_before;    // FMI 1: of p->outputs, before this variable
    const char* identifier; // FMI 1: of the model
    char* texts;            // its <Start> children, each with a final zero
    size_t text_length, text_capacity;
    uint32_t text_count;
    crdi_text_start* text_starts;
    size_t text_start_count, text_start_capacity;
    crdi_axis_row* axes;
    size_t axis_count, axis_capacity;

    crdi_unknown_list outputs, initial_unknowns, derivatives, indicators;
    crdi_derivative_row* derivative_rows; // in the order of the variables
    size_t derivative_count, derivative_capacity;
    const char** categories;
    size_t category_count, category_capacity;

    crdi_oddity bad_combination, missing_start, odd_dependency, repeated;
    int32_t repeats; // the variable whose name the new one has, -1: none
    struct {
        const char* text;
        size_t length;
    } slots[CRDI_TEXT_SLOTS]; // texts that came lately, to be shared
} crdi_parser;

// ---- description.c: messages and values ---------------------------------------------------------

// Stores "file:line: sentence" and stops expat. Returns `st`.
crd_status crdi_bad(crdi_parser* p, crd_status st, const char* format, ...) CRD_PRINTF(3, 4);
crd_status crdi_bad_at(crdi_parser* p, uint32_t line, crd_status st, const char* format, ...)
    CRD_PRINTF(4, 5);
crd_status crdi_no_memory(crdi_parser* p); // the allocator's sentence stands already
uint32_t crdi_line(const crdi_parser* p);

// A lasting copy, shared with an equal text that came lately; "" for NULL. NULL: out of memory.
const char* crdi_keep(crdi_parser* p, const char* text);
const char* crdi_keep_part(crdi_parser* p, const char* text, size_t length);
const char* crdi_find(const char** attributes, const char* name); // NULL when absent
void crdi_collect(const char** attributes, crdi_attributes* out);
// Without the white space around it.
const char* crdi_trim(const char* text, size_t* length);
// The next word of a list separated by white space; NULL at the end.
const char* crdi_next_word(const char** text, size_t* length);

// Values of attributes. `text` NULL leaves `*out` as it is; a bad text is a message that names the
// attribute and `owner`.
crd_status crdi_get_bool(crdi_parser* p, const char* owner, const char* attribute, const char* text,
                         bool* out);
crd_status crdi_get_double(crdi_parser* p, const char* owner, const char* attribute,
                           const char* text, double* out);
crd_status crdi_get_uint32(crdi_parser* p, const char* owner, const char* attribute,
                           const char* text, uint32_t* out);

// ---- description_types.c ------------------------------------------------------------------------

crd_status crdi_start_unit(crdi_parser* p, const char** attributes);
crd_status crdi_base_unit(crdi_parser* p, const char** attributes);
crd_status crdi_start_type(crdi_parser* p, const char** attributes); // its name
crd_status crdi_type_content(crdi_parser* p, crd_type type, const char** attributes);
crd_status crdi_type_item(crdi_parser* p, const char** attributes);
// unit, relativeQuantity, nominal, min, max: of a type and of a variable
crd_status crdi_quantity(crdi_parser* p, const char* owner, crd_type type, const crdi_attributes* a,
                         crdi_declared_type* out);
int crdi_fmi2_type(const char* element, const char* suffix); // crd_type, or -1; also of FMI 1
int crdi_fmi3_type(const char* element, const char* suffix);

// ---- description_variables.c --------------------------------------------------------------------

// FMI 1 and 2
crd_status crdi_start_scalar_variable(crdi_parser* p, const char** attributes);
crd_status crdi_scalar_type(crdi_parser* p, const char* element, const char** attributes);
// FMI 1: the text of a <Name>, piece by piece, and its end
crd_status crdi_add_text(crdi_parser* p, const char* text, size_t length);
crd_status crdi_end_dependency(crdi_parser* p);
crd_status crdi_start_variable(crdi_parser* p, crd_type type, const char** attributes); // FMI 3
crd_status crdi_variable_child(crdi_parser* p, const char* element, const char** attributes);
crd_status crdi_end_variable(crdi_parser* p);

// ---- description_finish.c -----------------------------------------------------------------------

crd_status crdi_unknown(crdi_parser* p, crdi_unknown_list* list, const char* reference,
                        const char** attributes);
crd_status crdi_finish(crdi_parser* p);
