// The schema of descriptions as a table, and the check of a document against it. What is not in it
// is noted, what is missing is a fault. Reader and writer take attributes from the same table: what
// they are, and where they stand in the struct of their element.
#include "dcp/description/dcpx.h"

#include <stddef.h>
#include <string.h>

enum { MAX_CHILDREN = 16 }; // of a row

typedef enum occurs { MANY, ONCE, NEEDED } occurs;

typedef struct child {
    const char* name;
    uint8_t row, rank; // rank: place in the order; equal where the order is free
    occurs occurs;
} child;

typedef struct row {
    const crdi_dcpx_attribute* attributes;
    const child* children;
    int child_count;
    bool open; // may hold anything
} row;

// Behind those whose attributes reader and writer take from here.
enum {
    OP_MODE = CRDI_DCPX_TABLED,
    NOTHING,
    ANYTHING,
    NON_REAL_TIME,
    UNITS,
    TYPES,
    SIMPLE_TYPE,
    TYPE_INTEGER,
    TYPE_FLOAT,
    TYPE_STRING,
    TYPE_BINARY,
    ANNOTATIONS,
    TOOL,
    TIME_RES,
    RESOLUTION,
    RESOLUTION_RANGE,
    HEARTBEAT,
    TRANSPORTS,
    DATA,
    USB2,
    DATA_PIPE,
    BLUETOOTH,
    ADDRESS,
    VARIABLES,
    INPUT, // and Parameter
    STRUCTURAL,
    COUNT_TYPE, // of a structural parameter
    DIMENSIONS,
    DIMENSION,
    DEPENDENCIES,
    DEPENDENCY_LIST,
    LOG,
    CATEGORIES,
    TEMPLATES,
    ROW_COUNT
};

// clang-format off
#define TYPE_CHILDREN(integer, real, string, binary)                                               \
    {"Int8", integer, 0, MANY}, {"Int16", integer, 0, MANY}, {"Int32", integer, 0, MANY},          \
    {"Int64", integer, 0, MANY}, {"Uint8", integer, 0, MANY}, {"Uint16", integer, 0, MANY},        \
    {"Uint32", integer, 0, MANY}, {"Uint64", integer, 0, MANY}, {"Float32", real, 0, MANY},        \
    {"Float64", real, 0, MANY}, {"String", string, 0, MANY}, {"Binary", binary, 0, MANY}

static const child root_children[] = {
    {"OpMode", OP_MODE, 0, NEEDED}, {"UnitDefinitions", UNITS, 1, ONCE},
    {"TypeDefinitions", TYPES, 2, ONCE}, {"VendorAnnotations", ANNOTATIONS, 3, ONCE},
    {"TimeRes", TIME_RES, 4, NEEDED}, {"Heartbeat", HEARTBEAT, 5, ONCE},
    {"TransportProtocols", TRANSPORTS, 6, NEEDED}, {"CapabilityFlags", CRDI_DCPX_FLAGS, 7, NEEDED},
    {"Variables", VARIABLES, 8, NEEDED}, {"Log", LOG, 9, ONCE}};
static const child op_mode_children[] = {
    {"HardRealTime", ANYTHING, 0, ONCE}, {"SoftRealTime", ANYTHING, 1, ONCE},
    {"NonRealTime", NON_REAL_TIME, 2, ONCE}};
static const child units_children[] = {{"Unit", CRDI_DCPX_UNIT, 0, MANY}};
static const child unit_children[] = {
    {"BaseUnit", CRDI_DCPX_BASE_UNIT, 0, ONCE}, {"DisplayUnit", CRDI_DCPX_DISPLAY_UNIT, 1, MANY}};
static const child types_children[] = {{"SimpleType", SIMPLE_TYPE, 0, MANY}};
static const child simple_type_children[] = {
    TYPE_CHILDREN(TYPE_INTEGER, TYPE_FLOAT, TYPE_STRING, TYPE_BINARY)};
static const child annotations_children[] = {{"Tool", TOOL, 0, MANY}};
static const child time_res_children[] = {
    {"Resolution", RESOLUTION, 0, MANY}, {"ResolutionRange", RESOLUTION_RANGE, 0, MANY}};
static const child heartbeat_children[] = {{"MaximumPeriodicInterval", CRDI_DCPX_INTERVAL, 0, NEEDED}};
static const child transports_children[] = {
    {"UDP_IPv4", CRDI_DCPX_IPV4, 0, ONCE}, {"CAN", NOTHING, 1, ONCE}, {"USB2", USB2, 2, ONCE},
    {"Bluetooth", BLUETOOTH, 3, ONCE}, {"TCP_IPv4", CRDI_DCPX_IPV4, 4, ONCE}};
static const child ipv4_children[] = {
    {"Control", CRDI_DCPX_CONTROL, 0, ONCE}, {"DAT_input_output", DATA, 1, ONCE},
    {"DAT_parameter", DATA, 2, ONCE}};
static const child data_children[] = {
    {"AvailablePortRange", CRDI_DCPX_PORT_RANGE, 0, MANY}, {"AvailablePort", CRDI_DCPX_PORT, 0, MANY}};
static const child usb_children[] = {{"DataPipe", DATA_PIPE, 0, MANY}};
static const child bluetooth_children[] = {{"Address", ADDRESS, 0, NEEDED}};
static const child variables_children[] = {{"Variable", CRDI_DCPX_VARIABLE, 0, MANY}};
static const child variable_children[] = {
    {"Input", INPUT, 0, MANY}, {"Output", CRDI_DCPX_OUTPUT, 0, MANY}, {"Parameter", INPUT, 0, MANY},
    {"StructuralParameter", STRUCTURAL, 0, MANY}, {"Annotations", ANNOTATIONS, 1, ONCE}};
static const child input_children[] = {
    TYPE_CHILDREN(CRDI_DCPX_INTEGER, CRDI_DCPX_FLOAT, CRDI_DCPX_STRING, CRDI_DCPX_BINARY), {"Dimensions", DIMENSIONS, 1, ONCE}};
static const child output_children[] = {
    TYPE_CHILDREN(CRDI_DCPX_INTEGER, CRDI_DCPX_FLOAT, CRDI_DCPX_STRING, CRDI_DCPX_BINARY), {"Dimensions", DIMENSIONS, 1, ONCE},
    {"Dependencies", DEPENDENCIES, 2, ONCE}};
static const child structural_children[] = {
    TYPE_CHILDREN(COUNT_TYPE, CRDI_DCPX_FLOAT, CRDI_DCPX_STRING, CRDI_DCPX_BINARY), {"Dimensions", DIMENSIONS, 1, ONCE}};
static const child dimensions_children[] = {{"Dimension", DIMENSION, 0, MANY}};
static const child dependencies_children[] = {
    {"Initialization", DEPENDENCY_LIST, 0, ONCE}, {"Run", DEPENDENCY_LIST, 1, ONCE}};
static const child dependency_children[] = {{"Dependency", CRDI_DCPX_DEPENDENCY, 0, MANY}};
static const child log_children[] = {
    {"Categories", CATEGORIES, 0, NEEDED}, {"Templates", TEMPLATES, 1, NEEDED}};
static const child categories_children[] = {{"Category", CRDI_DCPX_CATEGORY, 0, MANY}};
static const child templates_children[] = {{"Template", CRDI_DCPX_TEMPLATE, 0, MANY}};

// ---- attributes --------------------------------------------------------------------------------

#define LIST(...) ((const crdi_dcpx_attribute[]){__VA_ARGS__, {0}})
#define NO_ATTRIBUTES ((const crdi_dcpx_attribute[]){{0}})
// of the struct X
#define FIELD(k, m) .kind = CRDI_DCPX_##k, .offset = offsetof(X, m), .size = sizeof(((X*)0)->m)
#define MUST(text, k, m) {text, .mandatory = true, FIELD(k, m)}
#define MAY(text, k, m) {text, FIELD(k, m)}
#define UNLESS(text, k, m, value) {text, FIELD(k, m), .sparse = true, .unless = value}
#define OTHER(text) {text, .mandatory = false}
#define MUST_OTHER(text) {text, .mandatory = true}

static const crdi_dcpx_word conventions[] = {{"flat", false}, {"structured", true}, {0}};
static const crdi_dcpx_word dependency_kinds[] = {{"dependent", false}, {"linear", true}, {0}};
static const crdi_dcpx_word variabilities[] = {
    {"continuous", CRD_CONTINUOUS}, {"discrete", CRD_DISCRETE}, {"fixed", CRD_FIXED}, {"tunable", CRD_TUNABLE}, {0}};

#define X crd_dcp_description
static const crdi_dcpx_attribute root_attributes[] = {
    MUST("dcpMajorVersion", WHOLE, major), MUST("dcpMinorVersion", WHOLE, minor),
    MUST("dcpSlaveName", TEXT, name), MUST("uuid", UUID, uuid), MAY("description", TEXT, description),
    MAY("author", TEXT, author), MAY("version", TEXT, version), MAY("copyright", TEXT, copyright),
    MAY("license", TEXT, license), MAY("generationTool", TEXT, tool),
    MAY("generationDateAndTime", DATE, date),
    {"variableNamingConvention", FIELD(WORD, structured), .words = conventions}, {0}};
static const crdi_dcpx_attribute interval_attributes[] = {
    MAY("numerator", WHOLE, heartbeat_numerator), MAY("denominator", WHOLE, heartbeat_denominator), {0}};
static const crdi_dcpx_attribute flag_attributes[] = {
    MAY("canAcceptConfigPdus", BOOL, can_accept_config), MAY("canHandleReset", BOOL, can_reset),
    MAY("canHandleVariableSteps", BOOL, can_vary_steps),
    MAY("canMonitorHeartbeat", BOOL, can_monitor_heartbeat),
    MAY("canProvideLogOnRequest", BOOL, can_log_on_request),
    MAY("canProvideLogOnNotification", BOOL, can_log_on_notification), {0}};
#undef X
#define X crd_dcp_unit
static const crdi_dcpx_attribute unit_attributes[] = {MUST("name", TEXT, name), {0}};
static const crdi_dcpx_attribute base_unit_attributes[] = {
    UNLESS("kg", I8, exponents[0], 0), UNLESS("m", I8, exponents[1], 0),
    UNLESS("s", I8, exponents[2], 0), UNLESS("A", I8, exponents[3], 0),
    UNLESS("K", I8, exponents[4], 0), UNLESS("mol", I8, exponents[5], 0),
    UNLESS("cd", I8, exponents[6], 0), UNLESS("rad", I8, exponents[7], 0),
    UNLESS("factor", REAL, factor, 1), UNLESS("offset", REAL, offset, 0), {0}};
#undef X
#define X crd_dcp_display_unit
static const crdi_dcpx_attribute display_unit_attributes[] = {
    MUST("name", TEXT, name), UNLESS("factor", REAL, factor, 1), UNLESS("offset", REAL, offset, 0), {0}};
#undef X
#define X crd_dcp_endpoint
static const crdi_dcpx_attribute ipv4_attributes[] = {MAY("maxPduSize", WHOLE, max_pdu_size), {0}};
static const crdi_dcpx_attribute control_attributes[] = {
    MAY("host", TEXT, host), UNLESS("port", WHOLE, port, 0), {0}};
#undef X
#define X crd_dcp_ports
static const crdi_dcpx_attribute port_range_attributes[] = {MUST("from", WHOLE, from), MUST("to", WHOLE, to), {0}};
static const crdi_dcpx_attribute port_attributes[] = {MUST("port", WHOLE, from), {0}};
#undef X
#define X crd_dcp_variable
static const crdi_dcpx_attribute variable_attributes[] = {
    MUST("name", TEXT, name), MUST("valueReference", WHOLE, vr), MAY("description", TEXT, description),
    {"variability", FIELD(WORD, variability), .words = variabilities}, MAY("preEdge", REAL, pre_edge),
    MAY("postEdge", REAL, post_edge),
    {"maxConsecMissedPdus", FIELD(WHOLE, max_missed), .flag = offsetof(X, has_max_missed)},
    MAY("declaredType", TEXT, declared_type), {0}};
static const crdi_dcpx_attribute output_attributes[] = {
    OTHER("defaultSteps"), OTHER("fixedSteps"), OTHER("minSteps"), OTHER("maxSteps"),
    MAY("initialization", BOOL, initialization), {0}};
// What a SimpleType has, too; a variable has its start as well.
#define LIMITS MAY("min", LIMIT, min), MAY("max", LIMIT, max), MAY("gradient", LIMIT, gradient)
#define QUANTITY MAY("nominal", REAL, nominal), MAY("quantity", TEXT, quantity), MAY("unit", TEXT, unit), \
    MAY("displayUnit", TEXT, display_unit)
#define SIZE UNLESS("maxSize", WHOLE, max_size, UINT32_MAX)
#define MIME MAY("mimeType", TEXT, mime)
#define START OTHER("start")
#undef X
#define X crd_dcp_dependency
static const crdi_dcpx_attribute dependency_attributes[] = {
    MUST("vr", WHOLE, vr),
    {"dependencyKind", .mandatory = true, FIELD(WORD, linear), .words = dependency_kinds}, {0}};
#undef X
#define X crd_dcp_log_category
static const crdi_dcpx_attribute category_attributes[] = {MUST("id", WHOLE, id), MUST("name", TEXT, name), {0}};
#undef X
#define X crd_dcp_log_template
static const crdi_dcpx_attribute template_attributes[] = {
    MUST("id", WHOLE, id), MUST("category", WHOLE, category), MUST("level", WHOLE, level),
    MUST("msg", TEXT, message), {0}};
#undef X
#define X crd_dcp_variable

// ---- elements ----------------------------------------------------------------------------------

#define CHILDREN(list) list, sizeof list / sizeof *list, false
#define NO_CHILDREN NULL, 0, false
#define OPEN NULL, 0, true
static const row rows[ROW_COUNT] = {
    [CRDI_DCPX_ROOT] = {root_attributes, CHILDREN(root_children)},
    [OP_MODE] = {NO_ATTRIBUTES, CHILDREN(op_mode_children)},
    [NOTHING] = {NO_ATTRIBUTES, NO_CHILDREN},
    [ANYTHING] = {NO_ATTRIBUTES, OPEN},
    [NON_REAL_TIME] = {LIST(OTHER("defaultSteps"), OTHER("fixedSteps"), OTHER("minSteps"), OTHER("maxSteps")),
                       NO_CHILDREN},
    [UNITS] = {NO_ATTRIBUTES, CHILDREN(units_children)},
    [CRDI_DCPX_UNIT] = {unit_attributes, CHILDREN(unit_children)},
    [CRDI_DCPX_BASE_UNIT] = {base_unit_attributes, NO_CHILDREN},
    [CRDI_DCPX_DISPLAY_UNIT] = {display_unit_attributes, NO_CHILDREN},
    [TYPES] = {NO_ATTRIBUTES, CHILDREN(types_children)},
    [SIMPLE_TYPE] = {LIST(MUST_OTHER("name"), OTHER("description")), CHILDREN(simple_type_children)},
    [TYPE_INTEGER] = {LIST(LIMITS), NO_CHILDREN},
    [TYPE_FLOAT] = {LIST(LIMITS, QUANTITY), NO_CHILDREN},
    [TYPE_STRING] = {LIST(SIZE), NO_CHILDREN},
    [TYPE_BINARY] = {LIST(MIME, SIZE), NO_CHILDREN},
    [ANNOTATIONS] = {NO_ATTRIBUTES, CHILDREN(annotations_children)},
    [TOOL] = {LIST(MUST_OTHER("name")), OPEN},
    [TIME_RES] = {NO_ATTRIBUTES, CHILDREN(time_res_children)},
    [RESOLUTION] = {LIST(OTHER("numerator"), OTHER("denominator"), OTHER("fixed"), OTHER("recommended")), NO_CHILDREN},
    [RESOLUTION_RANGE] = {LIST(MUST_OTHER("numeratorFrom"), MUST_OTHER("numeratorTo"), MUST_OTHER("denominator")),
                          NO_CHILDREN},
    [HEARTBEAT] = {NO_ATTRIBUTES, CHILDREN(heartbeat_children)},
    [CRDI_DCPX_INTERVAL] = {interval_attributes, NO_CHILDREN},
    [TRANSPORTS] = {NO_ATTRIBUTES, CHILDREN(transports_children)},
    [CRDI_DCPX_IPV4] = {ipv4_attributes, CHILDREN(ipv4_children)},
    [CRDI_DCPX_CONTROL] = {control_attributes, NO_CHILDREN},
    [DATA] = {LIST(OTHER("host")), CHILDREN(data_children)},
    [CRDI_DCPX_PORT_RANGE] = {port_range_attributes, NO_CHILDREN},
    [CRDI_DCPX_PORT] = {port_attributes, NO_CHILDREN},
    [USB2] = {LIST(OTHER("maxPower"), OTHER("maxPduSize")), CHILDREN(usb_children)},
    [DATA_PIPE] = {LIST(OTHER("direction"), MUST_OTHER("endpointAddress"), MUST_OTHER("intervall")), NO_CHILDREN},
    [BLUETOOTH] = {LIST(OTHER("maxPduSize")), CHILDREN(bluetooth_children)},
    [ADDRESS] = {LIST(MUST_OTHER("bd_addr"), MUST_OTHER("port"), OTHER("alias")), NO_CHILDREN},
    [CRDI_DCPX_FLAGS] = {flag_attributes, NO_CHILDREN},
    [VARIABLES] = {NO_ATTRIBUTES, CHILDREN(variables_children)},
    [CRDI_DCPX_VARIABLE] = {variable_attributes, CHILDREN(variable_children)},
    [INPUT] = {NO_ATTRIBUTES, CHILDREN(input_children)},
    [CRDI_DCPX_OUTPUT] = {output_attributes, CHILDREN(output_children)},
    [STRUCTURAL] = {NO_ATTRIBUTES, CHILDREN(structural_children)},
    [CRDI_DCPX_INTEGER] = {LIST(START, LIMITS), NO_CHILDREN},
    [CRDI_DCPX_FLOAT] = {LIST(START, LIMITS, QUANTITY), NO_CHILDREN},
    [CRDI_DCPX_STRING] = {LIST(START, SIZE), NO_CHILDREN},
    [CRDI_DCPX_BINARY] = {LIST(START, MIME, SIZE), NO_CHILDREN},
    [COUNT_TYPE] = {LIST(START), NO_CHILDREN},
    [DIMENSIONS] = {NO_ATTRIBUTES, CHILDREN(dimensions_children)},
    [DIMENSION] = {LIST(OTHER("constant"), OTHER("linkedVR")), NO_CHILDREN},
    [DEPENDENCIES] = {NO_ATTRIBUTES, CHILDREN(dependencies_children)},
    [DEPENDENCY_LIST] = {NO_ATTRIBUTES, CHILDREN(dependency_children)},
    [CRDI_DCPX_DEPENDENCY] = {dependency_attributes, NO_CHILDREN},
    [LOG] = {NO_ATTRIBUTES, CHILDREN(log_children)},
    [CATEGORIES] = {NO_ATTRIBUTES, CHILDREN(categories_children)},
    [CRDI_DCPX_CATEGORY] = {category_attributes, NO_CHILDREN},
    [TEMPLATES] = {NO_ATTRIBUTES, CHILDREN(templates_children)},
    [CRDI_DCPX_TEMPLATE] = {template_attributes, NO_CHILDREN},
};
// clang-format on

const crdi_dcpx_attribute* crdi_dcpx_attributes(crdi_dcpx_element element)
{
    return rows[element].attributes;
}

crdi_dcpx_element crdi_dcpx_type_element(uint8_t data_type)
{
    return data_type == CRD_DCP_STRING   ? CRDI_DCPX_STRING
           : data_type == CRD_DCP_BINARY ? CRDI_DCPX_BINARY
           : crdi_dcp_is_real(data_type) ? CRDI_DCPX_FLOAT
                                         : CRDI_DCPX_INTEGER;
}

// ---- against the schema ------------------------------------------------------------------------

typedef struct checker {
    crdi_dcp_findings* f;
    const char* space; // of all elements; should be ""
} checker;

// Names that may have been meant.
typedef struct candidates {
    const crdi_dcpx_attribute* attribute; // the next, NULL: elements
    const child* children;
    int left; // of the children
} candidates;

static const char* next_candidate(void* user)
{
    candidates* c = user;
    if (c->attribute) { return c->attribute++->name; }
    return c->left > 0 ? c->children[--c->left].name : NULL;
}

static const char* nearest(const checker* h, const char* code, const char* word, candidates* c,
                           char room[96])
{
    const bool look = strlen(word) < 64 && crdi_dcp_wanted(h->f, code);
    const char* near = look ? crdi_nearest(word, next_candidate, c) : NULL;
    room[0] = 0;
    if (near) {
        strcpy(room, "; is it meant to be '");
        strcat(room, near);
        strcat(room, "'?");
    }
    return room;
}

static void check_attributes(checker* h, const crdi_xml_element* e, const row* spec)
{
    for (const crdi_dcpx_attribute* x = spec->attributes; x->name; x++) {
        if (x->mandatory && !crdi_xml_get(e, x->name)) {
            crdi_dcp_found(h->f, "X06", e->line, "<%s> lacks its attribute '%s'", e->name, x->name);
        }
    }
    for (int i = 0; i < e->attribute_count && !spec->open; i++) {
        const crdi_xml_attribute* a = &e->attributes[i];
        const crdi_dcpx_attribute* x = spec->attributes;
        while (x->name && strcmp(x->name, a->name) != 0) {
            x++;
        }
        if (x->name || a->space[0]) { continue; } // of somebody else: xsi:noNamespaceSchemaLocation
        char hint[96];
        candidates c = {.attribute = spec->attributes};
        crdi_dcp_found(h->f, "X02", e->line, "<%s> has no attribute '%s', it is ignored%s", e->name,
                       crdi_clip(a->name).text, nearest(h, "X02", a->name, &c, hint));
    }
}

static const child* find_child(const row* spec, const char* name)
{
    for (int i = 0; i < spec->child_count; i++) {
        if (strcmp(spec->children[i].name, name) == 0) { return &spec->children[i]; }
    }
    return NULL;
}

// Down as far as the table goes, which is not deep.
static void schema_check_element(checker* h, const crdi_xml_element* e, int number)
{
    const row* spec = &rows[number];
    check_attributes(h, e, spec);
    if (spec->open) { return; }
    uint32_t counts[MAX_CHILDREN] = {0};
    const child* last = NULL;
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        const child* c = strcmp(k->space, h->space) == 0 ? find_child(spec, k->name) : NULL;
        if (!c) {
            char hint[96];
            candidates all = {.children = spec->children, .left = spec->child_count};
            crdi_dcp_found(h->f, "X01", k->line, "<%s> is unknown in <%s> and ignored%s",
                           crdi_clip(k->name).text, e->name,
                           nearest(h, "X01", k->name, &all, hint));
            continue;
        }
        if (last && c->rank < last->rank) {
            crdi_dcp_found(h->f, "X03", k->line, "<%s> stands behind <%s>, expected it before",
                           k->name, last->name);
        } else {
            last = c;
        }
        if (++counts[c - spec->children] == 2 && c->occurs != MANY) {
            crdi_dcp_found(h->f, "X04", k->line,
                           "a second <%s> in <%s>, expected one; it is ignored", k->name, e->name);
        }
        schema_check_element(h, k, c->row);
    }
    for (int i = 0; i < spec->child_count; i++) {
        if (spec->children[i].occurs == NEEDED && counts[i] == 0) {
            crdi_dcp_found(h->f, "X05", e->line, "<%s> lacks <%s>", e->name,
                           spec->children[i].name);
        }
    }
}

void crdi_dcp_check_schema(const crdi_xml_element* root, crdi_dcp_findings* f)
{
    checker h = {.f = f, .space = root->space};
    if (root->space[0]) {
        crdi_dcp_found(f, "X09", root->line,
                       "the elements are in the namespace '%s', expected none",
                       crdi_clip(root->space).text);
    }
    schema_check_element(&h, root, CRDI_DCPX_ROOT);
}
