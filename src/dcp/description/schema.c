// The schema of descriptions as a table, and the check of a document against it. What is not in it
// is noted, what is missing is a fault.
#include "dcp/description/dcpx.h"

#include <string.h>

enum {
    MAX_CHILDREN = 16, // of a row
    MAX_ATTRIBUTES = 16,
};

typedef enum occurs { MANY, ONCE, NEEDED } occurs;

typedef struct child {
    const char* name;
    uint8_t row, rank; // rank: place in the order; equal where the order is free
    occurs occurs;
} child;

// Attributes are separated by blanks; those with ! have to be there.
typedef struct row {
    const char* attributes;
    const child* children;
    int child_count;
    bool open; // may hold anything
} row;

enum {
    ROOT,
    OP_MODE,
    NOTHING,
    ANYTHING,
    NON_REAL_TIME,
    UNITS,
    UNIT,
    BASE_UNIT,
    DISPLAY_UNIT,
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
    INTERVAL,
    TRANSPORTS,
    IPV4,
    CONTROL,
    DATA,
    PORT_RANGE,
    PORT,
    USB2,
    DATA_PIPE,
    BLUETOOTH,
    ADDRESS,
    FLAGS,
    VARIABLES,
    VARIABLE,
    INPUT, // and Parameter
    OUTPUT,
    STRUCTURAL,
    INTEGER,
    FLOAT,
    STRING,
    BINARY,
    COUNT_TYPE, // of a structural parameter
    DIMENSIONS,
    DIMENSION,
    DEPENDENCIES,
    DEPENDENCY_LIST,
    DEPENDENCY,
    LOG,
    CATEGORIES,
    CATEGORY,
    TEMPLATES,
    TEMPLATE,
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
    {"TransportProtocols", TRANSPORTS, 6, NEEDED}, {"CapabilityFlags", FLAGS, 7, NEEDED},
    {"Variables", VARIABLES, 8, NEEDED}, {"Log", LOG, 9, ONCE}};
static const child op_mode_children[] = {
    {"HardRealTime", ANYTHING, 0, ONCE}, {"SoftRealTime", ANYTHING, 1, ONCE},
    {"NonRealTime", NON_REAL_TIME, 2, ONCE}};
static const child units_children[] = {{"Unit", UNIT, 0, MANY}};
static const child unit_children[] = {
    {"BaseUnit", BASE_UNIT, 0, ONCE}, {"DisplayUnit", DISPLAY_UNIT, 1, MANY}};
static const child types_children[] = {{"SimpleType", SIMPLE_TYPE, 0, MANY}};
static const child simple_type_children[] = {
    TYPE_CHILDREN(TYPE_INTEGER, TYPE_FLOAT, TYPE_STRING, TYPE_BINARY)};
static const child annotations_children[] = {{"Tool", TOOL, 0, MANY}};
static const child time_res_children[] = {
    {"Resolution", RESOLUTION, 0, MANY}, {"ResolutionRange", RESOLUTION_RANGE, 0, MANY}};
static const child heartbeat_children[] = {{"MaximumPeriodicInterval", INTERVAL, 0, NEEDED}};
static const child transports_children[] = {
    {"UDP_IPv4", IPV4, 0, ONCE}, {"CAN", NOTHING, 1, ONCE}, {"USB2", USB2, 2, ONCE},
    {"Bluetooth", BLUETOOTH, 3, ONCE}, {"TCP_IPv4", IPV4, 4, ONCE}};
static const child ipv4_children[] = {
    {"Control", CONTROL, 0, ONCE}, {"DAT_input_output", DATA, 1, ONCE},
    {"DAT_parameter", DATA, 2, ONCE}};
static const child data_children[] = {
    {"AvailablePortRange", PORT_RANGE, 0, MANY}, {"AvailablePort", PORT, 0, MANY}};
static const child usb_children[] = {{"DataPipe", DATA_PIPE, 0, MANY}};
static const child bluetooth_children[] = {{"Address", ADDRESS, 0, NEEDED}};
static const child variables_children[] = {{"Variable", VARIABLE, 0, MANY}};
static const child variable_children[] = {
    {"Input", INPUT, 0, MANY}, {"Output", OUTPUT, 0, MANY}, {"Parameter", INPUT, 0, MANY},
    {"StructuralParameter", STRUCTURAL, 0, MANY}, {"Annotations", ANNOTATIONS, 1, ONCE}};
static const child input_children[] = {
    TYPE_CHILDREN(INTEGER, FLOAT, STRING, BINARY), {"Dimensions", DIMENSIONS, 1, ONCE}};
static const child output_children[] = {
    TYPE_CHILDREN(INTEGER, FLOAT, STRING, BINARY), {"Dimensions", DIMENSIONS, 1, ONCE},
    {"Dependencies", DEPENDENCIES, 2, ONCE}};
static const child structural_children[] = {
    TYPE_CHILDREN(COUNT_TYPE, FLOAT, STRING, BINARY), {"Dimensions", DIMENSIONS, 1, ONCE}};
static const child dimensions_children[] = {{"Dimension", DIMENSION, 0, MANY}};
static const child dependencies_children[] = {
    {"Initialization", DEPENDENCY_LIST, 0, ONCE}, {"Run", DEPENDENCY_LIST, 1, ONCE}};
static const child dependency_children[] = {{"Dependency", DEPENDENCY, 0, MANY}};
static const child log_children[] = {
    {"Categories", CATEGORIES, 0, NEEDED}, {"Templates", TEMPLATES, 1, NEEDED}};
static const child categories_children[] = {{"Category", CATEGORY, 0, MANY}};
static const child templates_children[] = {{"Template", TEMPLATE, 0, MANY}};

#define CHILDREN(list) list, sizeof list / sizeof *list, false
#define NO_CHILDREN NULL, 0, false
#define OPEN NULL, 0, true
static const row rows[ROW_COUNT] = {
    [ROOT] = {"dcpMajorVersion! dcpMinorVersion! dcpSlaveName! uuid! description author version "
              "copyright license generationTool generationDateAndTime variableNamingConvention",
              CHILDREN(root_children)},
    [OP_MODE] = {"", CHILDREN(op_mode_children)},
    [NOTHING] = {"", NO_CHILDREN},
    [ANYTHING] = {"", OPEN},
    [NON_REAL_TIME] = {"defaultSteps fixedSteps minSteps maxSteps", NO_CHILDREN},
    [UNITS] = {"", CHILDREN(units_children)},
    [UNIT] = {"name!", CHILDREN(unit_children)},
    [BASE_UNIT] = {"kg m s A K mol cd rad factor offset", NO_CHILDREN},
    [DISPLAY_UNIT] = {"name! factor offset", NO_CHILDREN},
    [TYPES] = {"", CHILDREN(types_children)},
    [SIMPLE_TYPE] = {"name! description", CHILDREN(simple_type_children)},
    [TYPE_INTEGER] = {"min max gradient", NO_CHILDREN},
    [TYPE_FLOAT] = {"min max gradient nominal quantity unit displayUnit", NO_CHILDREN},
    [TYPE_STRING] = {"maxSize", NO_CHILDREN},
    [TYPE_BINARY] = {"mimeType maxSize", NO_CHILDREN},
    [ANNOTATIONS] = {"", CHILDREN(annotations_children)},
    [TOOL] = {"name!", OPEN},
    [TIME_RES] = {"", CHILDREN(time_res_children)},
    [RESOLUTION] = {"numerator denominator fixed recommended", NO_CHILDREN},
    [RESOLUTION_RANGE] = {"numeratorFrom! numeratorTo! denominator!", NO_CHILDREN},
    [HEARTBEAT] = {"", CHILDREN(heartbeat_children)},
    [INTERVAL] = {"numerator denominator", NO_CHILDREN},
    [TRANSPORTS] = {"", CHILDREN(transports_children)},
    [IPV4] = {"maxPduSize", CHILDREN(ipv4_children)},
    [CONTROL] = {"host port", NO_CHILDREN},
    [DATA] = {"host", CHILDREN(data_children)},
    [PORT_RANGE] = {"from! to!", NO_CHILDREN},
    [PORT] = {"port!", NO_CHILDREN},
    [USB2] = {"maxPower maxPduSize", CHILDREN(usb_children)},
    [DATA_PIPE] = {"direction endpointAddress! intervall!", NO_CHILDREN},
    [BLUETOOTH] = {"maxPduSize", CHILDREN(bluetooth_children)},
    [ADDRESS] = {"bd_addr! port! alias", NO_CHILDREN},
    [FLAGS] = {"canAcceptConfigPdus canHandleReset canHandleVariableSteps canMonitorHeartbeat "
               "canProvideLogOnRequest canProvideLogOnNotification", NO_CHILDREN},
    [VARIABLES] = {"", CHILDREN(variables_children)},
    [VARIABLE] = {"name! valueReference! description variability preEdge postEdge "
                  "maxConsecMissedPdus declaredType", CHILDREN(variable_children)},
    [INPUT] = {"", CHILDREN(input_children)},
    [OUTPUT] = {"defaultSteps fixedSteps minSteps maxSteps initialization",
                CHILDREN(output_children)},
    [STRUCTURAL] = {"", CHILDREN(structural_children)},
    [INTEGER] = {"start min max gradient", NO_CHILDREN},
    [FLOAT] = {"start min max gradient nominal quantity unit displayUnit", NO_CHILDREN},
    [STRING] = {"start maxSize", NO_CHILDREN},
    [BINARY] = {"start mimeType maxSize", NO_CHILDREN},
    [COUNT_TYPE] = {"start", NO_CHILDREN},
    [DIMENSIONS] = {"", CHILDREN(dimensions_children)},
    [DIMENSION] = {"constant linkedVR", NO_CHILDREN},
    [DEPENDENCIES] = {"", CHILDREN(dependencies_children)},
    [DEPENDENCY_LIST] = {"", CHILDREN(dependency_children)},
    [DEPENDENCY] = {"vr! dependencyKind!", NO_CHILDREN},
    [LOG] = {"", CHILDREN(log_children)},
    [CATEGORIES] = {"", CHILDREN(categories_children)},
    [CATEGORY] = {"id! name!", NO_CHILDREN},
    [TEMPLATES] = {"", CHILDREN(templates_children)},
    [TEMPLATE] = {"id! category! level! msg!", NO_CHILDREN},
};
// clang-format on

// ---- against the schema ------------------------------------------------------------------------

// A document is held against the table.
typedef struct holder {
    crdi_dcp_findings* f;
    const char* space; // of all elements; should be ""
} holder;

// Names that may have been meant. Those of attributes are cut out of their list.
typedef struct candidates {
    const char* at; // rest of the list
    const child* children;
    int left; // of the children
    int count;
    char words[MAX_ATTRIBUTES][32];
} candidates;

static const char* next_candidate(void* user)
{
    candidates* c = user;
    if (c->left > 0) { return c->children[--c->left].name; }
    size_t n = 0;
    const char* s = c->at && c->count < MAX_ATTRIBUTES ? crdi_dcp_word(&c->at, &n) : NULL;
    if (!s) { return NULL; }
    n -= s[n - 1] == '!';
    char* word = c->words[c->count++];
    memcpy(word, s, n);
    word[n] = 0;
    return word;
}

static const char* nearest(const holder* h, const char* code, const char* word, candidates* c,
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

static void check_attributes(holder* h, const crdi_xml_element* e, const row* spec)
{
    size_t n = 0;
    const char* at = spec->attributes;
    for (const char* s = crdi_dcp_word(&at, &n); s; s = crdi_dcp_word(&at, &n)) {
        char name[64];
        if (s[n - 1] != '!') { continue; }
        memcpy(name, s, n - 1);
        name[n - 1] = 0;
        if (!crdi_xml_get(e, name)) {
            crdi_dcp_found(h->f, "X06", e->line, "<%s> lacks its attribute '%s'", e->name, name);
        }
    }
    for (int i = 0; i < e->attribute_count && !spec->open; i++) {
        const crdi_xml_attribute* a = &e->attributes[i];
        bool known = a->space[0] != 0; // of somebody else, as xsi:noNamespaceSchemaLocation
        at = spec->attributes;
        for (const char* s = crdi_dcp_word(&at, &n); s && !known; s = crdi_dcp_word(&at, &n)) {
            n -= s[n - 1] == '!';
            known = strncmp(s, a->name, n) == 0 && !a->name[n];
        }
        if (known) { continue; }
        char hint[96];
        candidates c = {.at = spec->attributes};
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
static void check_element(holder* h, const crdi_xml_element* e, int number)
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
        check_element(h, k, c->row);
    }
    for (int i = 0; i < spec->child_count; i++) {
        if (spec->children[i].occurs == NEEDED && counts[i] == 0) {
            crdi_dcp_found(h->f, "X05", e->line, "<%s> lacks <%s>", e->name,
                           spec->children[i].name);
        }
    }
}

void crdi_dcp_hold(const crdi_xml_element* root, crdi_dcp_findings* f)
{
    holder h = {.f = f, .space = root->space};
    if (root->space[0]) {
        crdi_dcp_found(f, "X09", root->line,
                       "the elements are in the namespace '%s', expected none",
                       crdi_clip(root->space).text);
    }
    check_element(&h, root, ROOT);
}
