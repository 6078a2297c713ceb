// The schemas of SSP 1.0 and 2.0 as one table, and the check of a document against it.
//
// A file that says 1.0 and uses words of 2.0 is taken as it is meant: the versions share their
// namespaces, and no word has two meanings. The order of elements does not matter to us. Elements
// and attributes of foreign namespaces pass.
#include "ssp/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" // rows say what matters to them

typedef enum value_type {
    TEXT,
    NAME, // not empty
    NUMBER,
    NUMBERS, // white space between them
    INTEGER, // from low to high
    INTEGERS,
    BOOLEAN,
    BOOLEANS,
    CHOICE,
    HEX, // pairs of hexadecimal digits
    VERSION,
} value_type;

typedef struct attribute {
    const char* name;
    value_type type;
    bool required;
    const char* choices; // "|a|b|c|"
    int64_t low;
    uint64_t high;
} attribute;

typedef enum occurs {
    MANY,
    ONCE,   // at most
    NEEDED, // exactly once
    ONE_OF, // at most one of all that say so
    NEEDS_ONE_OF,
} occurs;

typedef struct child {
    int row;
    occurs occurs;
} child;

// The row of an element: where it may stand is said by the rows that have it as a child.
typedef struct row {
    const char *space, *name;
    const attribute* attributes;
    int attribute_count;
    const child* children;
    int child_count;
    const char* unique; // attribute in which the children differ
    bool forgives;      // two that do not are a warning: real tools write them
    bool any;           // may hold anything else
} row;

// The types of connectors and dictionary entries (C_...) and of parameters (V_...), with what their
// elements have besides their names.
// clang-format off
#define VALUE_TYPES(X)                                                                             \
    X(REAL, "Real", A(unit_attribute), A(real_value))                                              \
    X(FLOAT64, "Float64", A(unit_attribute), A(real_value))                                        \
    X(FLOAT32, "Float32", A(unit_attribute), A(real_value))                                        \
    X(INTEGER, "Integer", NONE, A(int32_value))                                                    \
    X(INT8, "Int8", NONE, A(int8_value))                                                           \
    X(UINT8, "UInt8", NONE, A(uint8_value))                                                        \
    X(INT16, "Int16", NONE, A(int16_value))                                                        \
    X(UINT16, "UInt16", NONE, A(uint16_value))                                                     \
    X(INT32, "Int32", NONE, A(int32_value))                                                        \
    X(UINT32, "UInt32", NONE, A(uint32_value))                                                     \
    X(INT64, "Int64", NONE, A(int64_value))                                                        \
    X(UINT64, "UInt64", NONE, A(uint64_value))                                                     \
    X(BOOLEAN, "Boolean", NONE, A(boolean_value))                                                  \
    X(STRING, "String", NONE, BOTH(string_value, text_values))                                     \
    X(ENUMERATION, "Enumeration", A(type_name_attribute), BOTH(enumeration_value, text_values))    \
    X(BINARY, "Binary", A(mime_attribute), BOTH(binary_value, hex_values))
#define C_TYPE(type, name, attributes, value) C_##type,
#define V_TYPE(type, name, attributes, value) V_##type,
// clang-format on

enum {
    SSD,
    SYSTEM,
    ELEMENTS,
    COMPONENT,
    REFERENCE,
    CONNECTORS,
    CONNECTOR,
    CONNECTOR_CLOCK,
    CONNECTOR_GEOMETRY,
    ELEMENT_GEOMETRY,
    SYSTEM_GEOMETRY,
    GRAPHICAL_ELEMENTS,
    NOTE,
    CONNECTIONS,
    CONNECTION,
    CONNECTION_GEOMETRY,
    BINDINGS,
    BINDING,
    BINDING_VALUES,
    BINDING_MAPPING,
    DICTIONARIES,
    DICTIONARY,
    EXPERIMENT,
    SSD_ENUMERATIONS,
    SSD_UNITS,
    SSD_ANNOTATIONS,
    SSC_ENUMERATION,
    ITEM,
    UNIT,
    BASE_UNIT,
    ANNOTATION,
    SSC_ANNOTATIONS,
    METADATA,
    SIGNATURE,
    CONTENT,
    DIMENSION,
    LINEAR,
    BOOLEAN_MAP,
    BOOLEAN_ENTRY,
    INTEGER_MAP,
    INTEGER_ENTRY,
    ENUMERATION_MAP,
    ENUMERATION_ENTRY,
    VALUE_TYPES(C_TYPE) C_CLOCK,
    SSV,
    PARAMETERS,
    PARAMETER,
    SSV_ENUMERATIONS,
    SSV_UNITS,
    SSV_ANNOTATIONS,
    VALUE_TYPES(V_TYPE) TEXT_VALUE,
    HEX_VALUE,
    SSM,
    MAPPING_ENTRY,
    SSM_ANNOTATIONS,
    SSB,
    DICTIONARY_ENTRY,
    SSB_ENUMERATIONS,
    SSB_UNITS,
    SSB_ANNOTATIONS,
    ROW_COUNT
};

// clang-format off
#define REQUIRED true
#define OPTIONAL false
#define ANY_INTEGER INT64_MIN, UINT64_MAX
#define BASE                                                                                       \
    {"id", TEXT, OPTIONAL},                                                                        \
    {"description", TEXT, OPTIONAL}
#define TOP_LEVEL                                                                                  \
    {"version", VERSION, REQUIRED}, {"author", TEXT, OPTIONAL}, {"fileversion", TEXT, OPTIONAL},   \
        {"copyright", TEXT, OPTIONAL}, {"license", TEXT, OPTIONAL},                                \
        {"generationTool", TEXT, OPTIONAL}, {"generationDateAndTime", TEXT, OPTIONAL}, BASE
#define BOX                                                                                        \
    {"x1", NUMBER, REQUIRED}, {"y1", NUMBER, REQUIRED}, {"x2", NUMBER, REQUIRED},                  \
    {"y2", NUMBER, REQUIRED}
#define SOURCE_BASE                                                                                \
    {"sourceBase", CHOICE, OPTIONAL, "|SSD|component|"}

static const attribute top_attributes[] = {TOP_LEVEL}; // SSM, SSB
static const attribute named_top_attributes[] = {{"name", TEXT, REQUIRED}, TOP_LEVEL};
static const attribute base_attributes[] = {BASE};
static const attribute name_attributes[] = {{"name", NAME, REQUIRED}, BASE};
static const attribute component_attributes[] = {
    {"name", NAME, REQUIRED},
    {"type", TEXT, OPTIONAL},
    {"source", TEXT, OPTIONAL},
    {"implementation", CHOICE, OPTIONAL, "|any|ModelExchange|CoSimulation|ScheduledExecution|"},
    BASE};
static const attribute reference_attributes[] = {
    {"name", NAME, REQUIRED}, {"dictionary", NAME, REQUIRED}, BASE};
static const attribute connector_attributes[] = {
    {"name", NAME, REQUIRED},
    {"kind", CHOICE, REQUIRED,
     "|input|output|parameter|calculatedParameter|structuralParameter|constant|local|inout"
     "|unspecified|"},
    BASE};
static const attribute clock_name_attributes[] = {{"name", NAME, REQUIRED}};
static const attribute connector_geometry_attributes[] = {{"x", NUMBER, REQUIRED},
                                                          {"y", NUMBER, REQUIRED},
                                                          {"systemInnerX", NUMBER, OPTIONAL},
                                                          {"systemInnerY", NUMBER, OPTIONAL}};
static const attribute element_geometry_attributes[] = {
    BOX,
    {"rotation", NUMBER, OPTIONAL},
    {"iconSource", TEXT, OPTIONAL},
    {"iconRotation", NUMBER, OPTIONAL},
    {"iconFlip", BOOLEAN, OPTIONAL},
    {"iconFixedAspectRatio", BOOLEAN, OPTIONAL}};
static const attribute box_attributes[] = {BOX};
static const attribute note_attributes[] = {BOX, {"text", TEXT, REQUIRED}};
static const attribute connection_attributes[] = {
    {"startElement", TEXT, OPTIONAL},
    {"startConnector", NAME, REQUIRED},
    {"startIndices", INTEGERS, OPTIONAL, NULL, 0, UINT64_MAX},
    {"endElement", TEXT, OPTIONAL},
    {"endConnector", NAME, REQUIRED},
    {"endIndices", INTEGERS, OPTIONAL, NULL, 0, UINT64_MAX},
    {"suppressUnitConversion", BOOLEAN, OPTIONAL},
    BASE};
static const attribute points_attributes[] = {{"pointsX", NUMBERS, REQUIRED},
                                              {"pointsY", NUMBERS, REQUIRED}};
static const attribute binding_attributes[] = {{"type", TEXT, OPTIONAL},
                                               {"source", TEXT, OPTIONAL},
                                               SOURCE_BASE,
                                               {"prefix", TEXT, OPTIONAL},
                                               BASE};
static const attribute mapping_attributes[] = {
    {"type", TEXT, OPTIONAL}, {"source", TEXT, OPTIONAL}, SOURCE_BASE, BASE};
static const attribute dictionary_attributes[] = {
    {"name", NAME, REQUIRED}, {"type", TEXT, OPTIONAL}, {"source", TEXT, OPTIONAL}, BASE};
static const attribute experiment_attributes[] = {{"startTime", NUMBER, OPTIONAL},
                                                  {"stopTime", NUMBER, OPTIONAL}};
static const attribute item_attributes[] = {
    {"name", TEXT, REQUIRED}, {"value", INTEGER, REQUIRED, NULL, INT64_MIN, INT64_MAX}};
#define EXPONENT(n)                                                                                \
    {n, INTEGER, OPTIONAL, NULL, INT8_MIN, INT8_MAX}
static const attribute base_unit_attributes[] = {EXPONENT("kg"),
                                                 EXPONENT("m"),
                                                 EXPONENT("s"),
                                                 EXPONENT("A"),
                                                 EXPONENT("K"),
                                                 EXPONENT("mol"),
                                                 EXPONENT("cd"),
                                                 EXPONENT("rad"),
                                                 {"factor", NUMBER, OPTIONAL},
                                                 {"offset", NUMBER, OPTIONAL}};
static const attribute annotation_attributes[] = {{"type", TEXT, REQUIRED}};
static const attribute metadata_attributes[] = {{"kind", CHOICE, REQUIRED, "|general|quality|"},
                                                {"type", TEXT, REQUIRED},
                                                {"source", TEXT, OPTIONAL},
                                                {"sourceBase", CHOICE, OPTIONAL, "|file|resource|"},
                                                BASE};
static const attribute signature_attributes[] = {
    {"role", CHOICE, REQUIRED, "|authenticity|suitability|"},
    {"type", TEXT, REQUIRED},
    {"source", TEXT, OPTIONAL},
    {"sourceBase", CHOICE, OPTIONAL, "|file|resource|metaData|"},
    BASE};
static const attribute dimension_attributes[] = {{"size", INTEGER, OPTIONAL, NULL, 0, UINT64_MAX},
                                                 {"sizeConnector", TEXT, OPTIONAL}};
static const attribute linear_attributes[] = {{"factor", NUMBER, OPTIONAL},
                                              {"offset", NUMBER, OPTIONAL}};
static const attribute boolean_entry[] = {{"source", BOOLEAN, REQUIRED},
                                          {"target", BOOLEAN, REQUIRED}};
static const attribute integer_entry[] = {{"source", INTEGER, REQUIRED, NULL, ANY_INTEGER},
                                          {"target", INTEGER, REQUIRED, NULL, ANY_INTEGER}};
static const attribute text_entry[] = {{"source", TEXT, REQUIRED}, {"target", TEXT, REQUIRED}};
static const attribute unit_attribute[] = {{"unit", TEXT, OPTIONAL}};
static const attribute type_name_attribute[] = {{"name", TEXT, REQUIRED}};
static const attribute mime_attribute[] = {{"mime-type", TEXT, OPTIONAL}};
static const attribute clock_attributes[] = {
    {"intervalVariability", CHOICE, OPTIONAL,
     "|constant|fixed|tunable|changing|countdown|triggered|"},
    {"intervalDecimal", NUMBER, OPTIONAL},
    {"shiftDecimal", NUMBER, OPTIONAL},
    {"supportsFraction", BOOLEAN, OPTIONAL},
    {"resolution", INTEGER, OPTIONAL, NULL, 0, UINT64_MAX},
    {"intervalCounter", INTEGER, OPTIONAL, NULL, 0, UINT64_MAX},
    {"shiftCounter", INTEGER, OPTIONAL, NULL, 0, UINT64_MAX},
    {"priority", INTEGER, OPTIONAL, NULL, 0, UINT32_MAX}};
static const attribute real_value[] = {{"value", NUMBERS, REQUIRED}, {"unit", TEXT, OPTIONAL}};
#define INTEGER_VALUE(low, high)                                                                   \
    {{"value", INTEGERS, REQUIRED, NULL, low, high}}
static const attribute int8_value[] = INTEGER_VALUE(INT8_MIN, INT8_MAX);
static const attribute uint8_value[] = INTEGER_VALUE(0, UINT8_MAX);
static const attribute int16_value[] = INTEGER_VALUE(INT16_MIN, INT16_MAX);
static const attribute uint16_value[] = INTEGER_VALUE(0, UINT16_MAX);
static const attribute int32_value[] = INTEGER_VALUE(INT32_MIN, INT32_MAX);
static const attribute uint32_value[] = INTEGER_VALUE(0, UINT32_MAX);
static const attribute int64_value[] = INTEGER_VALUE(INT64_MIN, INT64_MAX);
static const attribute uint64_value[] = INTEGER_VALUE(0, UINT64_MAX);
static const attribute boolean_value[] = {{"value", BOOLEANS, REQUIRED}};
static const attribute string_value[] = {{"value", TEXT, OPTIONAL}};
static const attribute enumeration_value[] = {{"value", TEXT, OPTIONAL}, {"name", TEXT, OPTIONAL}};
static const attribute binary_value[] = {{"value", HEX, OPTIONAL}, {"mime-type", TEXT, OPTIONAL}};
static const attribute one_text[] = {{"value", TEXT, REQUIRED}};
static const attribute one_hex[] = {{"value", HEX, REQUIRED}};
static const attribute mapping_entry_attributes[] = {{"source", TEXT, REQUIRED},
                                                     {"target", NAME, REQUIRED},
                                                     {"suppressUnitConversion", BOOLEAN, OPTIONAL},
                                                     BASE};

#define META                                                                                       \
    {METADATA, MANY},                                                                              \
    {SIGNATURE, MANY}
#define C_ONE_OF(type, name, attributes, value) {C_##type, ONE_OF},
#define C_NEEDED(type, name, attributes, value) {C_##type, NEEDS_ONE_OF},
#define V_NEEDED(type, name, attributes, value) {V_##type, NEEDS_ONE_OF},
#define TRANSFORMATIONS                                                                            \
    {LINEAR, ONE_OF}, {BOOLEAN_MAP, ONE_OF}, {INTEGER_MAP, ONE_OF},                                \
    {ENUMERATION_MAP, ONE_OF}
#define ELEMENT                                                                                    \
    {CONNECTORS, ONCE}, {ELEMENT_GEOMETRY, ONCE}, {BINDINGS, ONCE}, {SSD_ANNOTATIONS, ONCE}, META
// clang-format on

static const child ssd_children[] = {{SYSTEM, NEEDED},        {SSD_ENUMERATIONS, ONCE},
                                     {SSD_UNITS, ONCE},       {EXPERIMENT, ONCE},
                                     {SSD_ANNOTATIONS, ONCE}, META};
static const child system_children[] = {ELEMENT,
                                        {ELEMENTS, ONCE},
                                        {CONNECTIONS, ONCE},
                                        {DICTIONARIES, ONCE},
                                        {SYSTEM_GEOMETRY, ONCE},
                                        {GRAPHICAL_ELEMENTS, ONCE}};
static const child element_children[] = {ELEMENT}; // of Component, SignalDictionaryReference
static const child elements_children[] = {{COMPONENT, MANY}, {REFERENCE, MANY}, {SYSTEM, MANY}};
static const child connectors_children[] = {{CONNECTOR, MANY}};
static const child connector_children[] = {VALUE_TYPES(C_ONE_OF){C_CLOCK, ONE_OF},
                                           {DIMENSION, MANY},
                                           {CONNECTOR_CLOCK, MANY},
                                           {CONNECTOR_GEOMETRY, ONCE},
                                           {SSD_ANNOTATIONS, ONCE}};
static const child graphical_children[] = {{NOTE, MANY}};
static const child connections_children[] = {{CONNECTION, MANY}};
static const child connection_children[] = {
    TRANSFORMATIONS, {CONNECTION_GEOMETRY, ONCE}, {SSD_ANNOTATIONS, ONCE}};
static const child bindings_children[] = {{BINDING, MANY}};
static const child binding_children[] = {
    {BINDING_VALUES, ONCE}, {BINDING_MAPPING, ONCE}, {SSD_ANNOTATIONS, ONCE}, META};
static const child inline_set[] = {{SSV, ONCE}};
static const child inline_mapping[] = {{SSM, ONCE}};
static const child dictionaries_children[] = {{DICTIONARY, MANY}};
static const child inline_dictionary[] = {{SSB, ONCE}};
static const child experiment_children[] = {{SSD_ANNOTATIONS, ONCE}};
static const child enumerations_children[] = {{SSC_ENUMERATION, MANY}};
static const child units_children[] = {{UNIT, MANY}};
static const child annotations_children[] = {{ANNOTATION, MANY}};
static const child enumeration_children[] = {{ITEM, MANY}, {SSC_ANNOTATIONS, ONCE}};
static const child unit_children[] = {{BASE_UNIT, NEEDED}, {SSC_ANNOTATIONS, ONCE}};
static const child metadata_children[] = {{CONTENT, ONCE}, {SIGNATURE, MANY}};
static const child signature_children[] = {{CONTENT, ONCE}};
static const child boolean_map_children[] = {{BOOLEAN_ENTRY, MANY}};
static const child integer_map_children[] = {{INTEGER_ENTRY, MANY}};
static const child enumeration_map_children[] = {{ENUMERATION_ENTRY, MANY}};
static const child ssv_children[] = {{PARAMETERS, NEEDED},
                                     {SSV_ENUMERATIONS, ONCE},
                                     {SSV_UNITS, ONCE},
                                     {SSV_ANNOTATIONS, ONCE},
                                     META};
static const child parameters_children[] = {{PARAMETER, MANY}};
static const child parameter_children[] = {VALUE_TYPES(V_NEEDED){DIMENSION, MANY},
                                           {SSV_ANNOTATIONS, ONCE}};
static const child text_values[] = {{TEXT_VALUE, MANY}};
static const child hex_values[] = {{HEX_VALUE, MANY}};
static const child ssm_children[] = {{MAPPING_ENTRY, MANY}, {SSM_ANNOTATIONS, ONCE}, META};
static const child mapping_entry_children[] = {TRANSFORMATIONS, {SSM_ANNOTATIONS, ONCE}};
static const child ssb_children[] = {{DICTIONARY_ENTRY, MANY},
                                     {SSB_ENUMERATIONS, ONCE},
                                     {SSB_UNITS, ONCE},
                                     {SSB_ANNOTATIONS, ONCE},
                                     META};
static const child dictionary_entry_children[] = {
    VALUE_TYPES(C_NEEDED){C_CLOCK, NEEDS_ONE_OF}, {DIMENSION, MANY}, {SSB_ANNOTATIONS, ONCE}};

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))
#define A(a) .attributes = a, .attribute_count = COUNT(a)
#define C(c) .children = c, .child_count = COUNT(c)
#define BOTH(a, c) A(a), C(c)
#define NONE .any = false
#define C_ROW(type, text, a, value) [C_##type] = {CRDI_SSC, text, a},
#define V_ROW(type, text, a, value) [V_##type] = {CRDI_SSV, text, value},

static const row rows[ROW_COUNT] = {
    [SSD] = {CRDI_SSD, "SystemStructureDescription", A(named_top_attributes), C(ssd_children)},
    [SYSTEM] = {CRDI_SSD, "System", A(name_attributes), C(system_children)},
    [ELEMENTS] = {CRDI_SSD, "Elements", C(elements_children), .unique = "name"},
    [COMPONENT] = {CRDI_SSD, "Component", A(component_attributes), C(element_children)},
    [REFERENCE] = {CRDI_SSD, "SignalDictionaryReference", A(reference_attributes),
                   C(element_children)},
    [CONNECTORS] = {CRDI_SSD, "Connectors", C(connectors_children), .unique = "name"},
    [CONNECTOR] = {CRDI_SSD, "Connector", A(connector_attributes), C(connector_children)},
    [CONNECTOR_CLOCK] = {CRDI_SSD, "Clock", A(clock_name_attributes)},
    [CONNECTOR_GEOMETRY] = {CRDI_SSD, "ConnectorGeometry", A(connector_geometry_attributes)},
    [ELEMENT_GEOMETRY] = {CRDI_SSD, "ElementGeometry", A(element_geometry_attributes)},
    [SYSTEM_GEOMETRY] = {CRDI_SSD, "SystemGeometry", A(box_attributes)},
    [GRAPHICAL_ELEMENTS] = {CRDI_SSD, "GraphicalElements", C(graphical_children)},
    [NOTE] = {CRDI_SSD, "Note", A(note_attributes)},
    [CONNECTIONS] = {CRDI_SSD, "Connections", C(connections_children)},
    [CONNECTION] = {CRDI_SSD, "Connection", A(connection_attributes), C(connection_children)},
    [CONNECTION_GEOMETRY] = {CRDI_SSD, "ConnectionGeometry", A(points_attributes)},
    [BINDINGS] = {CRDI_SSD, "ParameterBindings", C(bindings_children)},
    [BINDING] = {CRDI_SSD, "ParameterBinding", A(binding_attributes), C(binding_children)},
    [BINDING_VALUES] = {CRDI_SSD, "ParameterValues", C(inline_set), .any = true},
    [BINDING_MAPPING] = {CRDI_SSD, "ParameterMapping", A(mapping_attributes), C(inline_mapping),
                         .any = true},
    [DICTIONARIES] = {CRDI_SSD, "SignalDictionaries", C(dictionaries_children), .unique = "name"},
    [DICTIONARY] = {CRDI_SSD, "SignalDictionary", A(dictionary_attributes), C(inline_dictionary),
                    .any = true},
    [EXPERIMENT] = {CRDI_SSD, "DefaultExperiment", A(experiment_attributes),
                    C(experiment_children)},
    [SSD_ENUMERATIONS] = {CRDI_SSD, "Enumerations", C(enumerations_children), .unique = "name"},
    [SSD_UNITS] = {CRDI_SSD, "Units", C(units_children), .unique = "name"},
    [SSD_ANNOTATIONS] = {CRDI_SSD, "Annotations", C(annotations_children)},
    [SSC_ENUMERATION] = {CRDI_SSC, "Enumeration", A(name_attributes), C(enumeration_children),
                         .unique = "name"},
    [ITEM] = {CRDI_SSC, "Item", A(item_attributes)},
    [UNIT] = {CRDI_SSC, "Unit", A(name_attributes), C(unit_children)},
    [BASE_UNIT] = {CRDI_SSC, "BaseUnit", A(base_unit_attributes)},
    [ANNOTATION] = {CRDI_SSC, "Annotation", A(annotation_attributes), .any = true},
    [SSC_ANNOTATIONS] = {CRDI_SSC, "Annotations", C(annotations_children)},
    [METADATA] = {CRDI_SSC, "MetaData", A(metadata_attributes), C(metadata_children)},
    [SIGNATURE] = {CRDI_SSC, "Signature", A(signature_attributes), C(signature_children)},
    [CONTENT] = {CRDI_SSC, "Content", A(base_attributes), .any = true},
    [DIMENSION] = {CRDI_SSC, "Dimension", A(dimension_attributes)},
    [LINEAR] = {CRDI_SSC, "LinearTransformation", A(linear_attributes)},
    [BOOLEAN_MAP] = {CRDI_SSC, "BooleanMappingTransformation", C(boolean_map_children),
                     .unique = "source"},
    [BOOLEAN_ENTRY] = {CRDI_SSC, "MapEntry", A(boolean_entry)},
    [INTEGER_MAP] = {CRDI_SSC, "IntegerMappingTransformation", C(integer_map_children),
                     .unique = "source"},
    [INTEGER_ENTRY] = {CRDI_SSC, "MapEntry", A(integer_entry)},
    [ENUMERATION_MAP] = {CRDI_SSC, "EnumerationMappingTransformation", C(enumeration_map_children),
                         .unique = "source"},
    [ENUMERATION_ENTRY] = {CRDI_SSC, "MapEntry", A(text_entry)},
    VALUE_TYPES(C_ROW)[C_CLOCK] = {CRDI_SSC, "Clock", A(clock_attributes)},
    [SSV] = {CRDI_SSV, "ParameterSet", A(named_top_attributes), C(ssv_children)},
    [PARAMETERS] = {CRDI_SSV, "Parameters", C(parameters_children), .unique = "name",
                    .forgives = true},
    [PARAMETER] = {CRDI_SSV, "Parameter", A(name_attributes), C(parameter_children)},
    [SSV_ENUMERATIONS] = {CRDI_SSV, "Enumerations", C(enumerations_children), .unique = "name"},
    [SSV_UNITS] = {CRDI_SSV, "Units", C(units_children), .unique = "name"},
    [SSV_ANNOTATIONS] = {CRDI_SSV, "Annotations", C(annotations_children)},
    VALUE_TYPES(V_ROW)[TEXT_VALUE] = {CRDI_SSV, "Value", A(one_text)},
    [HEX_VALUE] = {CRDI_SSV, "Value", A(one_hex)},
    [SSM] = {CRDI_SSM, "ParameterMapping", A(top_attributes), C(ssm_children), .unique = "target"},
    [MAPPING_ENTRY] = {CRDI_SSM, "MappingEntry", A(mapping_entry_attributes),
                       C(mapping_entry_children)},
    [SSM_ANNOTATIONS] = {CRDI_SSM, "Annotations", C(annotations_children)},
    [SSB] = {CRDI_SSB, "SignalDictionary", A(top_attributes), C(ssb_children), .unique = "name"},
    [DICTIONARY_ENTRY] = {CRDI_SSB, "DictionaryEntry", A(name_attributes),
                          C(dictionary_entry_children)},
    [SSB_ENUMERATIONS] = {CRDI_SSB, "Enumerations", C(enumerations_children), .unique = "name"},
    [SSB_UNITS] = {CRDI_SSB, "Units", C(units_children), .unique = "name"},
    [SSB_ANNOTATIONS] = {CRDI_SSB, "Annotations", C(annotations_children)},
};

// ---- problems ----------------------------------------------------------------------------------

enum { MAX_PROBLEMS = 100 };

typedef struct checker {
    crd_context* ctx;
    const crdi_xml* xml;
    int problems;
    crd_status st; // of the first
} checker;

static bool tired(const checker* c)
{
    return c->problems >= MAX_PROBLEMS || c->st == CRD_E_MEMORY;
}

CRD_PRINTF(3, 4)
static void problem(checker* c, const crdi_xml_element* e, const char* format, ...)
{
    if (tired(c)) { return; }
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (c->problems++ == 0) {
        c->st = crdi_fail(c->ctx, CRD_E_FORMAT, "%s:%d: %s", c->xml->file, e->line, text);
    } else {
        crdi_log(c->ctx, CRD_LOG_ERROR, "%s:%d: %s", c->xml->file, e->line, text);
    }
    if (c->problems == MAX_PROBLEMS) {
        crdi_log(c->ctx, CRD_LOG_ERROR, "%s: %d problems, the rest is not looked at", c->xml->file,
                 MAX_PROBLEMS);
    }
}

// ---- values ------------------------------------------------------------------------------------

static bool schema_next_word(const char** p, const char** word, size_t* length)
{
    *word = *p + strspn(*p, " \t\r\n");
    *length = strcspn(*word, " \t\r\n");
    *p = *word + *length;
    return *length > 0;
}

static bool is_boolean(const char* word, size_t n)
{
    return (n == 1 && (*word == '0' || *word == '1')) || (n == 4 && memcmp(word, "true", 4) == 0) ||
           (n == 5 && memcmp(word, "false", 5) == 0);
}

static bool is_integer(const attribute* a, const char* word, size_t n)
{
    int64_t x = 0;
    uint64_t u = 0;
    if (crdi_parse_int64(word, n, &x)) { return x >= a->low && (x < 0 || (uint64_t)x <= a->high); }
    return crdi_parse_uint64(word, n, &u) && u <= a->high;
}

static bool is_word(const attribute* a, const char* word, size_t n)
{
    if (a->type == BOOLEAN || a->type == BOOLEANS) { return is_boolean(word, n); }
    if (n > 1 && word[0] == '+' && word[1] != '-' && word[1] != '+') {
        word++;
        n--;
    }
    if (a->type == INTEGER || a->type == INTEGERS) { return is_integer(a, word, n); }
    return crdi_parse_double(word, n, &(double){0});
}

// One word, or any number of them.
static bool are_words(const attribute* a, const char* text, bool list)
{
    const char* word = NULL;
    size_t n = 0;
    int count = 0;
    for (; schema_next_word(&text, &word, &n); count++) {
        if (!is_word(a, word, n)) { return false; }
    }
    return list || count == 1;
}

static bool is_choice(const attribute* a, const char* text)
{
    const size_t n = strlen(text);
    if (!n || strchr(text, '|')) { return false; }
    for (const char* p = a->choices; (p = strstr(p, text)) != NULL; p++) {
        if (p[-1] == '|' && p[n] == '|') { return true; } // no word begins at the first '|'
    }
    return false;
}

static void check_value(checker* c, const crdi_xml_element* e, const attribute* a, const char* text)
{
    const crdi_shown shown = crdi_show(text);
    char choices[160];
    switch (a->type) {
    case TEXT:
        return;
    case NAME:
        if (!text[0]) { problem(c, e, "%s '%s' is empty, expected a name", e->name, a->name); }
        return;
    case VERSION:
        if (strcmp(text, "1.0") != 0 && strcmp(text, "2.0") != 0) {
            crdi_log(c->ctx, CRD_LOG_WARNING, "%s:%d: version '%s', read as 2.0", c->xml->file,
                     e->line, shown.text);
        }
        return;
    case CHOICE:
        if (is_choice(a, text)) { return; }
        snprintf(choices, sizeof choices, "%s", a->choices + 1);
        for (char* p = choices; *p; p++) {
            if (*p == '|') { *p = p[1] ? ' ' : 0; }
        }
        problem(c, e, "%s %s = '%s', expected one of: %s", e->name, a->name, shown.text, choices);
        return;
    case HEX:
        if (strlen(text) % 2 == 0 && strspn(text, "0123456789abcdefABCDEF") == strlen(text)) {
            return;
        }
        problem(c, e, "%s %s = '%s', expected pairs of hexadecimal digits", e->name, a->name,
                shown.text);
        return;
    case NUMBER:
    case NUMBERS:
        if (are_words(a, text, a->type == NUMBERS)) { return; }
        problem(c, e, "%s %s = '%s', expected %s", e->name, a->name, shown.text,
                a->type == NUMBER ? "a number" : "numbers");
        return;
    case BOOLEAN:
    case BOOLEANS:
        if (are_words(a, text, a->type == BOOLEANS)) { return; }
        problem(c, e, "%s %s = '%s', expected true or false", e->name, a->name, shown.text);
        return;
    case INTEGER:
    case INTEGERS:
        if (are_words(a, text, a->type == INTEGERS)) { return; }
        problem(c, e, "%s %s = '%s', expected %s from %lld to %llu", e->name, a->name, shown.text,
                a->type == INTEGER ? "a whole number" : "whole numbers", (long long)a->low,
                (unsigned long long)a->high);
        return;
    }
}

// ---- attributes and children -------------------------------------------------------------------

typedef struct names {
    const row* row;
    int at;
} names;

static const char* next_attribute(void* user)
{
    names* n = user;
    return n->at < n->row->attribute_count ? n->row->attributes[n->at++].name : NULL;
}

static const char* next_child(void* user)
{
    names* n = user;
    return n->at < n->row->child_count ? rows[n->row->children[n->at++].row].name : NULL;
}

static void check_attributes(checker* c, const crdi_xml_element* e, const row* r)
{
    for (int i = 0; i < e->attribute_count && !tired(c); i++) {
        const crdi_xml_attribute* given = &e->attributes[i];
        if (given->space[0]) { continue; } // xsi:schemaLocation and the like
        int k = 0;
        while (k < r->attribute_count && strcmp(r->attributes[k].name, given->name) != 0) {
            k++;
        }
        if (k < r->attribute_count) {
            check_value(c, e, &r->attributes[k], given->value);
            continue;
        }
        const char* near = crdi_nearest(given->name, next_attribute, &(names){r, 0});
        problem(c, e, "%s has an unknown attribute '%s'%s%s%s", e->name,
                crdi_show(given->name).text, near ? ", did you mean '" : "", near ? near : "",
                near ? "'?" : "");
    }
    for (int k = 0; k < r->attribute_count; k++) {
        if (r->attributes[k].required && !crdi_xml_get(e, r->attributes[k].name)) {
            problem(c, e, "%s lacks the attribute '%s'", e->name, r->attributes[k].name);
        }
    }
}

static bool schema_is_ours(const char* space)
{
    return !space[0] || strncmp(space, "http://ssp-standard.org/SSP1/", 29) == 0;
}

static void unknown_child(checker* c, const crdi_xml_element* e, const row* r)
{
    if (r->any || !schema_is_ours(e->space)) { return; }
    for (int k = 0; k < r->child_count; k++) {
        const row* known = &rows[r->children[k].row];
        if (strcmp(known->name, e->name) == 0) {
            problem(c, e, "%s in %s has the namespace '%s', expected '%s'", e->name, r->name,
                    crdi_show(e->space).text, known->space);
            return;
        }
    }
    const char* near = crdi_nearest(e->name, next_child, &(names){r, 0});
    problem(c, e, "unknown element '%s' in %s%s%s%s", crdi_show(e->name).text, r->name,
            near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static void check_unique(checker* c, const crdi_xml_element* e, const row* r)
{
    crd_map seen;
    crdi_map_init(&seen, c->ctx);
    for (const crdi_xml_element* k = e->first; k && !tired(c); k = k->next) {
        const char* name = crdi_xml_get(k, r->unique);
        bool fresh = true;
        if (!name) { continue; }
        if (crdi_map_add(&seen, name, k->line, &fresh) < 0) { c->st = CRD_E_MEMORY; }
        if (fresh) { continue; }
        const crdi_shown shown = crdi_show(name);
        const int first = crdi_map_find(&seen, name);
        if (r->forgives) {
            crdi_log(c->ctx, CRD_LOG_WARNING,
                     "%s:%d: %s '%s' is there twice, first in line %d: the last one counts",
                     c->xml->file, k->line, k->name, shown.text, first);
            break; // one example is enough
        }
        problem(c, k, "%s %s = '%s' is there twice, first in line %d", k->name, r->unique,
                shown.text, first);
    }
    crdi_map_clear(&seen);
}

// The depth is bounded by the parser.
static void schema_check_element(checker* c, const crdi_xml_element* e, const row* r)
{
    enum { MOST = 32 };
    _Static_assert(COUNT(connector_children) <= MOST, "counts of children");
    int counts[MOST] = {0};
    check_attributes(c, e, r);
    for (const crdi_xml_element* x = e->first; x && !tired(c); x = x->next) {
        int k = 0;
        while (k < r->child_count &&
               !crdi_xml_is(x, rows[r->children[k].row].space, rows[r->children[k].row].name)) {
            k++;
        }
        if (k == r->child_count) {
            unknown_child(c, x, r);
            continue;
        }
        schema_check_element(c, x, &rows[r->children[k].row]);
        counts[k]++;
        if ((r->children[k].occurs == ONCE || r->children[k].occurs == NEEDED) && counts[k] == 2) {
            problem(c, x, "a second %s in %s, expected one", x->name, e->name);
        }
    }
    int one_of = 0;
    bool needs_one_of = false;
    for (int k = 0; k < r->child_count; k++) {
        const occurs o = r->children[k].occurs;
        if (o == NEEDED && counts[k] == 0) {
            problem(c, e, "%s lacks the element '%s'", e->name, rows[r->children[k].row].name);
        }
        one_of += o == ONE_OF || o == NEEDS_ONE_OF ? counts[k] : 0;
        needs_one_of = needs_one_of || o == NEEDS_ONE_OF;
    }
    if (one_of > 1) {
        problem(c, e, "%s has %d types or transformations, expected one", e->name, one_of);
    }
    if (needs_one_of && one_of == 0) {
        problem(c, e, "%s lacks a type, expected an element like '%s'", e->name,
                rows[r->children[0].row].name);
    }
    if (r == &rows[V_STRING] || r == &rows[V_ENUMERATION] || r == &rows[V_BINARY]) {
        if ((crdi_xml_get(e, "value") != NULL) == (counts[0] > 0)) {
            problem(c, e, "%s needs the attribute 'value' or elements 'Value', and not both",
                    e->name);
        }
    }
    if (r->unique) { check_unique(c, e, r); }
}

crd_status crdi_ssp_check(crd_context* ctx, const crdi_xml* xml, crdi_ssp_root root)
{
    static const int roots[] = {SSD, SSV, SSM, SSB};
    const row* r = &rows[roots[root]];
    checker c = {.ctx = ctx, .xml = xml};
    const crdi_xml_element* e = xml->root;
    if (crdi_xml_is(e, r->space, r->name)) {
        schema_check_element(&c, e, r);
    } else if (strcmp(e->name, r->name) == 0) {
        problem(&c, e, "the root %s has the namespace '%s', expected '%s'", e->name,
                crdi_show(e->space).text, r->space);
    } else {
        problem(&c, e, "the root is '%s', expected %s", crdi_show(e->name).text, r->name);
    }
    return c.st;
}
