// A document becomes a description. A value that cannot be read is a fault and leaves the default.
#include "dcp/description/dcpx.h"

#include <math.h>
#include <string.h>

enum { MAX_VARIABLES = 1 << 18 };

const char* const crdi_dcp_type_elements[CRD_DCP_DATA_TYPE_COUNT] = {
    "Uint8", "Uint16", "Uint32",  "Uint64",  "Int8",   "Int16",
    "Int32", "Int64",  "Float32", "Float64", "String", "Binary",
};

// A SimpleType: what variables that name it need not say themselves.
typedef struct simple_type {
    const char* name;
    const crdi_xml_element* element; // of its data type, NULL
    uint8_t type;
} simple_type;

typedef struct reader {
    crd_dcp_description* d;
    crdi_dcp_findings* f;
    crd_arena* arena;
    const char* space; // of all elements; should be ""
    crd_map names;     // of types
    simple_type* types;
    int type_count; // in `names` so far
} reader;

// ---- values ------------------------------------------------------------------------------------

static const char* description_read_copy_text(reader* r, const char* text)
{
    if (!text || !*text) { return ""; }
    const char* copy = crdi_arena_text(r->arena, text, strlen(text));
    if (copy) { return copy; }
    r->f->failed = true;
    return "";
}

static void* new_array(reader* r, int count, size_t size)
{
    void* p = crdi_arena_new(r->arena, (size_t)count, size);
    if (!p) { r->f->failed = true; }
    return p;
}

static void bad_value(reader* r, const crdi_xml_element* e, const char* name, const char* expected)
{
    crdi_dcp_found(r->f, "X07", e->line, "<%s> has %s = '%s', expected %s", e->name, name,
                   crdi_clip(crdi_xml_get(e, name)).text, expected);
}

// false: absent or bad; then `*out` is as it was.
static bool get_whole(reader* r, const crdi_xml_element* e, const char* name, uint64_t low,
                      uint64_t high, uint64_t* out)
{
    const char* text = crdi_xml_get(e, name);
    if (!text) { return false; }
    size_t n = 0;
    uint64_t value = 0;
    const char* s = crdi_dcp_trim(text, &n);
    if (n > 1 && *s == '-' && strspn(s + 1, "0") == n - 1) { // -0 is a number of the schema, too
        s++;
        n--;
    }
    if (!crdi_parse_uint64(s, n, &value) || value < low || value > high) {
        crdi_dcp_found(
            r->f, "X07", e->line, "<%s> has %s = '%s', expected a whole number from %llu to %llu",
            e->name, name, crdi_clip(text).text, (unsigned long long)low, (unsigned long long)high);
        return false;
    }
    *out = value;
    return true;
}

static bool get_u32(reader* r, const crdi_xml_element* e, const char* name, uint32_t low,
                    uint32_t* out)
{
    uint64_t value = 0;
    if (!get_whole(r, e, name, low, UINT32_MAX, &value)) { return false; }
    *out = (uint32_t)value;
    return true;
}

static void get_double(reader* r, const crdi_xml_element* e, const char* name, const char* text,
                       double* out)
{
    size_t n = 0;
    double value = 0;
    const char* s = crdi_dcp_trim(text, &n);
    if (!crdi_parse_double(s, n, &value) || !isfinite(value)) {
        bad_value(r, e, name, "a finite number");
        return;
    }
    *out = value;
}

static void get_bool(reader* r, const crdi_xml_element* e, const char* name, bool* out)
{
    const char* text = crdi_xml_get(e, name);
    if (!text) { return; }
    size_t n = 0;
    const char* s = crdi_dcp_trim(text, &n);
    if (n == 1 && (*s == '0' || *s == '1')) {
        *out = *s == '1';
        if (*out) {
            crdi_dcp_found(r->f, "X08", e->line,
                           "<%s> has %s = '1', which some readers take for false; better 'true'",
                           e->name, name);
        }
    } else if ((n == 4 && memcmp(s, "true", 4) == 0) || (n == 5 && memcmp(s, "false", 5) == 0)) {
        *out = n == 4;
    } else {
        bad_value(r, e, name, "true or false");
    }
}

static void get_exponent(reader* r, const crdi_xml_element* e, const char* name, const char* text,
                         int8_t* out)
{
    size_t n = 0;
    int64_t value = 0;
    const char* s = crdi_dcp_trim(text, &n);
    if (!crdi_parse_int64(s, n, &value) || value < INT8_MIN || value > INT8_MAX) {
        bad_value(r, e, name, "a whole number from -128 to 127");
    } else {
        *out = (int8_t)value;
    }
}

static void get_word(reader* r, const crdi_xml_element* e, const crdi_dcpx_attribute* a,
                     const char* text, uint8_t* out)
{
    crdi_dcp_line expected = {.out = (char[80]){0}, .room = 80};
    for (const crdi_dcpx_word* w = a->words; w->text; w++) {
        if (strcmp(text, w->text) == 0) {
            *out = w->value;
            return;
        }
        const char* between = w == a->words ? "" : w[1].text ? ", " : " or ";
        crdi_dcp_line_add(&expected, "%s%s", between, w->text);
    }
    bad_value(r, e, a->name, expected.out);
}

static void get_date(reader* r, const crdi_xml_element* e, const char* name, const char* text,
                     const char** out)
{
    if (*text && !crdi_dcp_is_date(text)) {
        crdi_dcp_found(r->f, "G06", e->line,
                       "%s = '%s', expected a time like 2026-01-31T12:00:00Z; it is ignored", name,
                       crdi_clip(text).text);
    } else {
        *out = description_read_copy_text(r, text);
    }
}

static void get_uuid(reader* r, const crdi_xml_element* e, const char* name, const char* text,
                     uint8_t out[16])
{
    size_t n = 0;
    const char* s = crdi_dcp_trim(text, &n);
    if (!crdi_dcp_uuid_parse(s, n, out)) {
        crdi_dcp_found(r->f, "G03", e->line, "%s = '%s', expected hexadecimal digits as 8-4-4-4-12",
                       name, crdi_clip(text).text);
    }
}

static void read_attribute(reader* r, const crdi_xml_element* e, const crdi_dcpx_attribute* a,
                           const char* text, void* base)
{
    void* at = (char*)base + a->offset;
    switch ((crdi_dcpx_kind)a->kind) {
    case CRDI_DCPX_OTHER:
        break;
    case CRDI_DCPX_TEXT:
        *(const char**)at = description_read_copy_text(r, text);
        break;
    case CRDI_DCPX_DATE:
        get_date(r, e, a->name, text, at);
        break;
    case CRDI_DCPX_UUID:
        get_uuid(r, e, a->name, text, at);
        break;
    case CRDI_DCPX_WORD:
        get_word(r, e, a, text, at);
        break;
    case CRDI_DCPX_BOOL:
        get_bool(r, e, a->name, at);
        break;
    case CRDI_DCPX_I8:
        get_exponent(r, e, a->name, text, at);
        break;
    case CRDI_DCPX_REAL:
    case CRDI_DCPX_LIMIT:
        get_double(r, e, a->name, text, at);
        break;
    case CRDI_DCPX_WHOLE: {
        uint64_t x = 0;
        const uint64_t most = UINT64_MAX >> (64 - 8 * a->size);
        if (!get_whole(r, e, a->name, 0, most, &x)) { return; }
        crdi_dcp_member_set(base, a->offset, a->size, x);
        if (a->flag) { *((bool*)base + a->flag) = true; }
        break;
    }
    }
}

// All that are there, into the struct of the element.
static void read_attributes(reader* r, const crdi_xml_element* e, crdi_dcpx_element element,
                            void* base)
{
    for (const crdi_dcpx_attribute* a = crdi_dcpx_attributes(element); a->name; a++) {
        const char* text = crdi_xml_get(e, a->name);
        if (text) { read_attribute(r, e, a, text, base); }
    }
}

static const crdi_xml_element* get_child(const reader* r, const crdi_xml_element* e,
                                         const char* name)
{
    return e ? crdi_xml_child(e, r->space, name) : NULL;
}

static int count_children(const reader* r, const crdi_xml_element* e, const char* name)
{
    int n = 0;
    for (const crdi_xml_element* k = get_child(r, e, name); k; k = crdi_xml_same(k)) {
        n++;
    }
    return n;
}

// All children of this name as an array, read one by one into zeroed memory.
typedef void read_one(reader* r, const crdi_xml_element* e, void* out);
static void* read_list(reader* r, const crdi_xml_element* e, const char* name, size_t size,
                       read_one* one, int* count)
{
    char* all = new_array(r, count_children(r, e, name), size);
    *count = 0;
    for (const crdi_xml_element* k = all ? get_child(r, e, name) : NULL; k; k = crdi_xml_same(k)) {
        one(r, k, all + (size_t)(*count)++ * size);
    }
    return all;
}

// ---- the root and its small parts --------------------------------------------------------------

static void read_root(reader* r, const crdi_xml_element* e)
{
    crd_dcp_description* d = r->d;
    d->lines.root = d->lines.op_mode = d->lines.time_res = d->lines.transports = d->lines.flags =
        d->lines.variables = e->line; // what is missing is missing here
    read_attributes(r, e, CRDI_DCPX_ROOT, d);
}

// Steps of NonRealTime and of an output, code of the rule about fixed ones. Afterwards min and max
// are what holds: both the default if it is fixed.
typedef struct steps {
    uint32_t usual, min, max;
    bool fixed;
} steps;

static steps read_steps(reader* r, const crdi_xml_element* e, const char* fixed_code,
                        const char* shown)
{
    steps s = {.usual = 1, .min = 1, .max = UINT32_MAX, .fixed = true};
    get_bool(r, e, "fixedSteps", &s.fixed);
    get_u32(r, e, "defaultSteps", 0, &s.usual);
    const bool min = get_u32(r, e, "minSteps", 0, &s.min);
    const bool max = get_u32(r, e, "maxSteps", 0, &s.max);
    if (s.fixed && (min || max)) {
        crdi_dcp_found(r->f, fixed_code, e->line,
                       "%s: fixedSteps = true (the default) with %s, expected fixedSteps = false "
                       "or neither minSteps nor maxSteps",
                       shown, min ? "minSteps" : "maxSteps");
    }
    if (s.fixed) { s.min = s.max = s.usual; }
    return s;
}

static void read_op_mode(reader* r, const crdi_xml_element* e)
{
    crd_dcp_description* d = r->d;
    if (!e) { return; }
    d->lines.op_mode = e->line;
    d->hrt = get_child(r, e, "HardRealTime") != NULL;
    d->srt = get_child(r, e, "SoftRealTime") != NULL;
    const crdi_xml_element* nrt = get_child(r, e, "NonRealTime");
    d->nrt = nrt != NULL;
    if (!nrt) { return; }
    const steps s = read_steps(r, nrt, "M02", "<NonRealTime>");
    d->nrt_default_steps = s.usual;
    d->nrt_min_steps = s.min;
    d->nrt_max_steps = s.max;
    d->nrt_fixed_steps = s.fixed;
}

static void description_read_time(reader* r, const crdi_xml_element* e,
                                  const crdi_xml_element* heartbeat)
{
    crd_dcp_description* d = r->d;
    const int count = count_children(r, e, "Resolution") + count_children(r, e, "ResolutionRange");
    crd_dcp_resolution* all = new_array(r, count, sizeof *all);
    if (!all) { return; }
    int n = 0;
    for (const crdi_xml_element* k = e ? e->first : NULL; k; k = k->next) {
        crd_dcp_resolution* x = &all[n];
        if (crdi_xml_is(k, r->space, "Resolution")) {
            bool fixed = true;
            *x = (crd_dcp_resolution){.numerator = 1, .denominator = 1000};
            get_u32(r, k, "numerator", 0, &x->numerator);
            get_u32(r, k, "denominator", 0, &x->denominator);
            get_bool(r, k, "fixed", &fixed);
            get_bool(r, k, "recommended", &x->recommended);
            x->numerator_to = x->numerator;
            d->fixed_resolution = d->fixed_resolution || fixed;
        } else if (crdi_xml_is(k, r->space, "ResolutionRange")) {
            *x = (crd_dcp_resolution){.numerator = 1, .numerator_to = 1, .denominator = 1000};
            get_u32(r, k, "numeratorFrom", 0, &x->numerator);
            get_u32(r, k, "numeratorTo", 0, &x->numerator_to);
            get_u32(r, k, "denominator", 0, &x->denominator);
        } else {
            continue;
        }
        x->line = k->line;
        n++;
    }
    d->resolutions = all;
    d->resolution_count = n;
    if (e) { d->lines.time_res = e->line; }
    d->has_heartbeat = heartbeat != NULL;
    d->lines.heartbeat = heartbeat ? heartbeat->line : 0;
    const crdi_xml_element* interval = get_child(r, heartbeat, "MaximumPeriodicInterval");
    if (interval) { read_attributes(r, interval, CRDI_DCPX_INTERVAL, d); }
}

// ---- transports --------------------------------------------------------------------------------

static const crd_dcp_ports* description_read_ports(reader* r, const crdi_xml_element* e, int* count)
{
    const int most =
        count_children(r, e, "AvailablePortRange") + count_children(r, e, "AvailablePort");
    crd_dcp_ports* all = new_array(r, most, sizeof *all);
    if (!all) { return NULL; }
    int n = 0;
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        if (crdi_xml_is(k, r->space, "AvailablePortRange")) {
            read_attributes(r, k, CRDI_DCPX_PORT_RANGE, &all[n++]);
        } else if (crdi_xml_is(k, r->space, "AvailablePort")) {
            read_attributes(r, k, CRDI_DCPX_PORT, &all[n]);
            all[n].to = all[n].from;
            n++;
        }
    }
    *count = n;
    return all;
}

static void read_endpoint(reader* r, const crdi_xml_element* e, crd_dcp_endpoint* out)
{
    if (!e) { return; }
    out->offered = true;
    out->line = e->line;
    read_attributes(r, e, CRDI_DCPX_IPV4, out);
    const crdi_xml_element* control = get_child(r, e, "Control");
    if (control) { read_attributes(r, control, CRDI_DCPX_CONTROL, out); }
    const crdi_xml_element* data = get_child(r, e, "DAT_input_output");
    if (data) {
        out->has_data = true;
        out->data_host = description_read_copy_text(r, crdi_xml_get(data, "host"));
        out->data = description_read_ports(r, data, &out->data_count);
    }
    const crdi_xml_element* parameter = get_child(r, e, "DAT_parameter");
    if (parameter) {
        out->has_parameter = true;
        out->parameter_host = description_read_copy_text(r, crdi_xml_get(parameter, "host"));
        out->parameter = description_read_ports(r, parameter, &out->parameter_count);
    }
}

static void read_transports(reader* r, const crdi_xml_element* e)
{
    crd_dcp_description* d = r->d;
    if (!e) { return; }
    d->lines.transports = e->line;
    read_endpoint(r, get_child(r, e, "UDP_IPv4"), &d->udp);
    read_endpoint(r, get_child(r, e, "TCP_IPv4"), &d->tcp);
    d->can = get_child(r, e, "CAN") != NULL;
    d->usb = get_child(r, e, "USB2") != NULL;
    d->bluetooth = get_child(r, e, "Bluetooth") != NULL;
}

// ---- units and types ---------------------------------------------------------------------------

static void read_display_unit(reader* r, const crdi_xml_element* e, void* out)
{
    crd_dcp_display_unit* x = out;
    *x = (crd_dcp_display_unit){.name = "", .factor = 1};
    read_attributes(r, e, CRDI_DCPX_DISPLAY_UNIT, x);
}

static void description_read_unit(reader* r, const crdi_xml_element* e, void* out)
{
    crd_dcp_unit* u = out;
    *u = (crd_dcp_unit){.name = "", .factor = 1, .line = e->line};
    read_attributes(r, e, CRDI_DCPX_UNIT, u);
    const crdi_xml_element* base = get_child(r, e, "BaseUnit");
    u->has_base = base != NULL;
    if (base) { read_attributes(r, base, CRDI_DCPX_BASE_UNIT, u); }
    u->displays =
        read_list(r, e, "DisplayUnit", sizeof *u->displays, read_display_unit, &u->display_count);
}

// The element of the data type, and how many there are.
static const crdi_xml_element* find_type(const reader* r, const crdi_xml_element* e, uint8_t* type,
                                         int* count)
{
    const crdi_xml_element* found = NULL;
    *count = 0;
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        for (int i = 0; i < CRD_DCP_DATA_TYPE_COUNT; i++) {
            if (!crdi_xml_is(k, r->space, crdi_dcp_type_elements[i])) { continue; }
            if ((*count)++ == 0) {
                found = k;
                *type = (uint8_t)i;
            }
        }
    }
    return found;
}

static void read_type(reader* r, const crdi_xml_element* e, void* out)
{
    int elements = 0;
    bool fresh = false;
    simple_type* t = out;
    t->name = description_read_copy_text(r, crdi_xml_get(e, "name"));
    t->type = CRD_DCP_DATA_TYPE_COUNT;
    t->element = find_type(r, e, &t->type, &elements);
    if (elements != 1) {
        crdi_dcp_found(r->f, "U04", e->line, "type '%s' has %d data types, expected one",
                       crdi_clip(t->name).text, elements);
    }
    if (crdi_map_add(&r->names, t->name, r->type_count++, &fresh) < 0) { r->f->failed = true; }
    if (!fresh) {
        crdi_dcp_found(r->f, "U03", e->line, "a second type '%s', expected another name",
                       crdi_clip(t->name).text);
    }
}

// ---- variables ---------------------------------------------------------------------------------

// What its declared type says counts where the variable says nothing.
static void apply_type(reader* r, crd_dcp_variable* v)
{
    if (!v->declared_type[0]) { return; }
    const int32_t i = crdi_map_find(&r->names, v->declared_type);
    if (i < 0) {
        crdi_dcp_found(r->f, "V27", v->line, "variable '%s': there is no type '%s'",
                       crdi_clip(v->name).text, crdi_clip(v->declared_type).text);
        v->declared_type = "";
        return;
    }
    const simple_type* t = &r->types[i];
    if (t->element && t->type != v->type) {
        crdi_dcp_found(r->f, "V28", v->line,
                       "variable '%s' is a %s and its type '%s' a %s, expected the same; nothing "
                       "is taken from the type",
                       crdi_clip(v->name).text, crd_dcp_data_type_name(v->type),
                       crdi_clip(t->name).text, crd_dcp_data_type_name(t->type));
        v->declared_type = "";
    } else if (t->element) {
        read_attributes(r, t->element, crdi_dcpx_type_element(v->type), v);
    }
}

static void read_dimensions(reader* r, const crdi_xml_element* e, crd_dcp_variable* v)
{
    for (const crdi_xml_element* k = get_child(r, e, "Dimension"); k; k = crdi_xml_same(k)) {
        const bool constant = crdi_xml_get(k, "constant"), linked = crdi_xml_get(k, "linkedVR");
        if (constant == linked) {
            crdi_dcp_found(r->f, "V18", k->line,
                           "variable '%s': a dimension with %s constant and linkedVR, expected one "
                           "of them",
                           crdi_clip(v->name).text, constant ? "both" : "neither");
        }
        if (v->rank == CRDI_DCP_MAX_RANK) {
            crdi_dcp_found(r->f, "V22", k->line, "variable '%s': more than %d dimensions",
                           crdi_clip(v->name).text, CRDI_DCP_MAX_RANK);
            return;
        }
        v->dimensions[v->rank] = 1;
        get_whole(r, k, "constant", 1, UINT64_MAX, &v->dimensions[v->rank]);
        v->is_linked[v->rank] = linked && !constant;
        if (v->is_linked[v->rank]) {
            v->dimensions[v->rank] = 0;
            get_whole(r, k, "linkedVR", 0, UINT64_MAX, &v->linked[v->rank]);
        }
        v->rank++;
    }
    if (v->rank == 0) {
        crdi_dcp_found(r->f, "V18", e->line,
                       "variable '%s': <Dimensions> is empty, expected a <Dimension>",
                       crdi_clip(v->name).text);
    }
}

static void read_dependency(reader* r, const crdi_xml_element* e, void* out)
{
    read_attributes(r, e, CRDI_DCPX_DEPENDENCY, out);
}

static const crd_dcp_dependency* read_dependencies(reader* r, const crdi_xml_element* e, bool* has,
                                                   int* count)
{
    *has = e != NULL;
    return e ? read_list(r, e, "Dependency", sizeof(crd_dcp_dependency), read_dependency, count)
             : NULL;
}

static void read_output(reader* r, const crdi_xml_element* e, crd_dcp_variable* v)
{
    char shown[96] = "variable '";
    strcat(shown, crdi_clip(v->name).text);
    strcat(shown, "'");
    const steps s = read_steps(r, e, "V12", shown);
    v->default_steps = s.usual;
    v->min_steps = s.min;
    v->max_steps = s.max;
    v->fixed_steps = s.fixed;
    if (!s.fixed && (!crdi_xml_get(e, "minSteps") || !crdi_xml_get(e, "maxSteps"))) {
        crdi_dcp_found(r->f, "V13", e->line,
                       "%s: fixedSteps = false without %s, expected minSteps and maxSteps", shown,
                       crdi_xml_get(e, "minSteps") ? "maxSteps" : "minSteps");
    }
    read_attributes(r, e, CRDI_DCPX_OUTPUT, v);
    const crdi_xml_element* dependencies = get_child(r, e, "Dependencies");
    v->initial_dependencies =
        read_dependencies(r, get_child(r, dependencies, "Initialization"),
                          &v->has_initial_dependencies, &v->initial_dependency_count);
    v->run_dependencies = read_dependencies(r, get_child(r, dependencies, "Run"),
                                            &v->has_run_dependencies, &v->run_dependency_count);
}

// Data type, start and dimensions below Input, Output, Parameter, StructuralParameter.
static void read_causality(reader* r, const crdi_xml_element* e, crd_dcp_variable* v)
{
    int types = 0;
    const crdi_xml_element* type = find_type(r, e, &v->type, &types);
    if (types > 1) {
        crdi_dcp_found(r->f, "V06", e->line, "variable '%s' has %d data types, expected one",
                       crdi_clip(v->name).text, types);
    }
    if (!type) { return; }
    if (v->type == CRD_DCP_BINARY) { v->mime = CRDI_DCP_MIME; }
    apply_type(r, v);
    if (v->causality != CRD_STRUCTURAL_PARAMETER) {
        read_attributes(r, type, crdi_dcpx_type_element(v->type), v);
    }
    const char* start = crdi_xml_get(type, "start");
    if (start) {
        v->start = description_read_copy_text(r, start);
    } else if (v->type >= CRD_DCP_STRING &&
               (v->causality == CRD_INPUT || v->causality == CRD_PARAMETER)) {
        crdi_dcp_found(r->f, "V09", type->line,
                       "variable '%s' has no start; it is taken as empty, write start=\"\"",
                       crdi_clip(v->name).text);
        v->start = "";
    }
    const crdi_xml_element* dimensions = get_child(r, e, "Dimensions");
    if (dimensions) { read_dimensions(r, dimensions, v); }
    if (v->causality == CRD_OUTPUT) { read_output(r, e, v); }
}

static void read_variable(reader* r, const crdi_xml_element* e, void* out)
{
    crd_dcp_variable* v = out;
    static const struct {
        const char* name;
        uint8_t causality;
    } kinds[] = {{"Input", CRD_INPUT},
                 {"Output", CRD_OUTPUT},
                 {"Parameter", CRD_PARAMETER},
                 {"StructuralParameter", CRD_STRUCTURAL_PARAMETER}};
    *v = crd_dcp_variable_defaults();
    v->line = e->line;
    v->type = CRD_DCP_DATA_TYPE_COUNT;
    read_attributes(r, e, CRDI_DCPX_VARIABLE, v);
    const crdi_xml_element* found = NULL;
    int count = 0;
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            if (crdi_xml_is(k, r->space, kinds[i].name) && count++ == 0) {
                found = k;
                v->causality = kinds[i].causality;
            }
        }
    }
    if (count > 1) {
        crdi_dcp_found(r->f, "V05", v->line,
                       "variable '%s' is declared as %d of Input, Output, Parameter and "
                       "StructuralParameter, expected one",
                       crdi_clip(v->name).text, count);
    }
    if (found) { read_causality(r, found, v); }
}

static crd_status read_variables(reader* r, const crdi_xml_element* e)
{
    const int count = count_children(r, e, "Variable");
    if (count > MAX_VARIABLES) {
        return crdi_fail(r->d->ctx, CRD_E_FORMAT, "%s:%d: %d variables, expected at most %d",
                         r->d->file, e->line, count, MAX_VARIABLES);
    }
    if (e) { r->d->lines.variables = e->line; }
    r->d->variables =
        read_list(r, e, "Variable", sizeof(crd_dcp_variable), read_variable, &r->d->variable_count);
    return r->d->variables ? CRD_OK : CRD_E_MEMORY;
}

// ---- log ---------------------------------------------------------------------------------------

static void read_category(reader* r, const crdi_xml_element* e, void* out)
{
    crd_dcp_log_category* c = out;
    *c = (crd_dcp_log_category){.name = "", .line = e->line};
    read_attributes(r, e, CRDI_DCPX_CATEGORY, c);
}

static void read_template(reader* r, const crdi_xml_element* e, void* out)
{
    crd_dcp_log_template* t = out;
    *t = (crd_dcp_log_template){.message = "", .line = e->line};
    read_attributes(r, e, CRDI_DCPX_TEMPLATE, t);
    if (crdi_dcp_read_arguments(r->arena, t) < 0) { r->f->failed = true; }
}

static void read_log(reader* r, const crdi_xml_element* e)
{
    crd_dcp_description* d = r->d;
    if (!e) { return; }
    d->lines.log = e->line;
    d->categories = read_list(r, get_child(r, e, "Categories"), "Category", sizeof *d->categories,
                              read_category, &d->category_count);
    d->templates = read_list(r, get_child(r, e, "Templates"), "Template", sizeof *d->templates,
                             read_template, &d->template_count);
    if (!d->category_count && !d->template_count) {
        crdi_dcp_found(r->f, "L09", e->line,
                       "<Log> has no categories and no templates, expected at least one of each");
    }
}

crd_status crdi_dcp_read(crd_dcp_description* d, const crdi_xml* xml, crdi_dcp_findings* f)
{
    const crdi_xml_element* root = xml->root;
    crd_status st = CRD_OK;
    if (strcmp(root->name, "dcpSlaveDescription") != 0) {
        return crdi_fail(d->ctx, CRD_E_FORMAT,
                         "%s:%d: the document is a '%s', expected a dcpSlaveDescription", d->file,
                         root->line, crdi_clip(root->name).text);
    }
    reader r = {.d = d, .f = f, .arena = &d->arena, .space = root->space};
    crdi_map_init(&r.names, d->ctx);
    crdi_dcp_check_schema(root, f);
    read_root(&r, root);
    read_op_mode(&r, get_child(&r, root, "OpMode"));
    int types = 0;
    d->units = read_list(&r, get_child(&r, root, "UnitDefinitions"), "Unit", sizeof *d->units,
                         description_read_unit, &d->unit_count);
    r.types = read_list(&r, get_child(&r, root, "TypeDefinitions"), "SimpleType", sizeof *r.types,
                        read_type, &types);
    description_read_time(&r, get_child(&r, root, "TimeRes"), get_child(&r, root, "Heartbeat"));
    read_transports(&r, get_child(&r, root, "TransportProtocols"));
    const crdi_xml_element* flags = get_child(&r, root, "CapabilityFlags");
    if (flags) {
        d->lines.flags = flags->line;
        read_attributes(&r, flags, CRDI_DCPX_FLAGS, d);
    }
    CRD_TRY(read_variables(&r, get_child(&r, root, "Variables")));
    read_log(&r, get_child(&r, root, "Log"));
    if (f->failed) { st = CRD_E_MEMORY; }
fail:
    crdi_map_clear(&r.names);
    return st;
}
