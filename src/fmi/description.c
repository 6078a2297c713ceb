#include "fmi/description.h"

#include <stdio.h>
#include <string.h>

#include "fmi/description_parser.h"

// ---- messages ----------------------------------------------------------------------------------

static crd_status bad_text(crdi_parser* p, uint32_t line, crd_status st, const char* format,
                           va_list args)
{
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    if (p->status == CRD_OK) {
        p->status = crdi_fail(p->ctx, st, "%s:%u: %s", p->name, line, text);
        XML_StopParser(p->xml, XML_FALSE);
    }
    return p->status;
}

crd_status crdi_bad(crdi_parser* p, crd_status st, const char* format, ...)
{
    va_list args;
    va_start(args, format);
    st = bad_text(p, crdi_line(p), st, format, args);
    va_end(args);
    return st;
}

crd_status crdi_bad_at(crdi_parser* p, uint32_t line, crd_status st, const char* format, ...)
{
    va_list args;
    va_start(args, format);
    st = bad_text(p, line, st, format, args);
    va_end(args);
    return st;
}

crd_status crdi_no_memory(crdi_parser* p)
{
    if (p->status == CRD_OK) {
        p->status = CRD_E_MEMORY;
        XML_StopParser(p->xml, XML_FALSE);
    }
    return p->status;
}

uint32_t crdi_line(const crdi_parser* p)
{
    return (uint32_t)XML_GetCurrentLineNumber(p->xml);
}

// ---- texts and values --------------------------------------------------------------------------

const char* crdi_keep(crdi_parser* p, const char* text)
{
    return crdi_keep_part(p, text, text ? strlen(text) : 0);
}

const char* crdi_keep_part(crdi_parser* p, const char* text, size_t length)
{
    if (length == 0) { return ""; }
    uint32_t slot = (uint32_t)length;
    for (size_t i = 0; i < 8 && i < length; i++) { // both ends tell most texts apart
        slot = slot * 31 + (unsigned char)text[i];
        slot = slot * 31 + (unsigned char)text[length - 1 - i];
    }
    slot = (slot ^ (slot >> 11)) % CRDI_TEXT_SLOTS;
    if (p->slots[slot].length == length && memcmp(p->slots[slot].text, text, length) == 0) {
        return p->slots[slot].text;
    }
    const char* kept = crdi_arena_text(p->arena, text, length);
    if (kept) {
        p->slots[slot].text = kept;
        p->slots[slot].length = length;
    }
    return kept;
}

const char* crdi_find(const char** attributes, const char* name)
{
    for (; *attributes; attributes += 2) {
        if (strcmp(*attributes, name) == 0) { return attributes[1]; }
    }
    return NULL;
}

// One comparison decides most names: first letter and length are all different but for a few.
static crdi_attribute attribute_of(const char* name)
{
    static const char* const names[] = {
#define NAME(id, text) text,
        CRDI_ATTRIBUTE_LIST(NAME)
#undef NAME
    };
    crdi_attribute id = CRDI_AT_COUNT;
    switch (name[0]) {
    case 'n':
        id = name[1] == 'a' ? CRDI_AT_NAME : CRDI_AT_NOMINAL;
        break;
    case 'v':
        id = name[3] == 'u' ? CRDI_AT_VALUE_REFERENCE : CRDI_AT_VARIABILITY;
        break;
    case 'd':
        id = name[2] == 's'   ? CRDI_AT_DESCRIPTION
             : name[2] == 'c' ? CRDI_AT_DECLARED_TYPE
                              : CRDI_AT_DERIVATIVE;
        break;
    case 'c':
        id = name[2] == 'u'   ? CRDI_AT_CAUSALITY
             : name[2] == 'o' ? CRDI_AT_CLOCKS
                              : CRDI_AT_MULTIPLE_SET;
        break;
    case 'i':
        id = name[2] == 'i' ? CRDI_AT_INITIAL : CRDI_AT_INTERMEDIATE_UPDATE;
        break;
    case 'u':
        id = CRDI_AT_UNIT;
        break;
    case 'r':
        id = CRDI_AT_RELATIVE;
        break;
    case 'm':
        id = name[1] == 'i' ? CRDI_AT_MIN : CRDI_AT_MAX;
        break;
    case 's':
        id = CRDI_AT_START;
        break;
    case 'a':
        id = CRDI_AT_ALIAS;
        break;
    case 'f':
        id = CRDI_AT_FIXED;
        break;
    default:
        return CRDI_AT_COUNT;
    }
    return strcmp(name, names[id]) == 0 ? id : CRDI_AT_COUNT;
}

void crdi_collect(const char** attributes, crdi_attributes* out)
{
    memset(out, 0, sizeof *out);
    for (; *attributes; attributes += 2) {
        const crdi_attribute id = attribute_of(attributes[0]);
        if (id < CRDI_AT_COUNT) { out->value[id] = attributes[1]; }
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

const char* crdi_trim(const char* text, size_t* length)
{
    while (is_space(*text)) {
        text++;
    }
    size_t n = strlen(text);
    while (n > 0 && is_space(text[n - 1])) {
        n--;
    }
    *length = n;
    return text;
}

const char* crdi_next_word(const char** text, size_t* length)
{
    const char* s = *text;
    while (is_space(*s)) {
        s++;
    }
    size_t n = 0;
    while (s[n] && !is_space(s[n])) {
        n++;
    }
    *text = s + n;
    *length = n;
    return n ? s : NULL;
}

static crd_status bad_value(crdi_parser* p, const char* owner, const char* attribute,
                            const char* text, const char* expected)
{
    return crdi_bad(p, CRD_E_FORMAT, "%s: %s = '%s', expected %s", crdi_show(owner).text, attribute,
                    crdi_show(text).text, expected);
}

crd_status crdi_get_bool(crdi_parser* p, const char* owner, const char* attribute, const char* text,
                         bool* out)
{
    if (!text) { return CRD_OK; }
    size_t n = 0;
    const char* s = crdi_trim(text, &n);
    const bool yes = (n == 4 && memcmp(s, "true", 4) == 0) || (n == 1 && *s == '1');
    const bool no = (n == 5 && memcmp(s, "false", 5) == 0) || (n == 1 && *s == '0');
    if (!yes && !no) { return bad_value(p, owner, attribute, text, "true or false"); }
    *out = yes;
    return CRD_OK;
}

crd_status crdi_get_double(crdi_parser* p, const char* owner, const char* attribute,
                           const char* text, double* out)
{
    if (!text) { return CRD_OK; }
    size_t n = 0;
    const char* s = crdi_trim(text, &n);
    if (!crdi_parse_double(s, n, out)) { return bad_value(p, owner, attribute, text, "a number"); }
    return CRD_OK;
}

crd_status crdi_get_uint32(crdi_parser* p, const char* owner, const char* attribute,
                           const char* text, uint32_t* out)
{
    if (!text) { return CRD_OK; }
    size_t n = 0;
    uint64_t value = 0;
    const char* s = crdi_trim(text, &n);
    if (!crdi_parse_uint64(s, n, &value) || value > UINT32_MAX) {
        return bad_value(p, owner, attribute, text, "a whole number from 0 to 4294967295");
    }
    *out = (uint32_t)value;
    return CRD_OK;
}

// ---- what occurs once --------------------------------------------------------------------------

static crd_status required(crdi_parser* p, const char** attributes, const char* element,
                           const char* name, const char** out)
{
    const char* value = crdi_find(attributes, name);
    if (!value) {
        return crdi_bad(p, CRD_E_FORMAT, "<%s> lacks its attribute '%s'", element, name);
    }
    *out = crdi_keep(p, value);
    return *out ? CRD_OK : crdi_no_memory(p);
}

static crd_status get_version(crdi_parser* p, const char** attributes)
{
    const char* text = NULL;
    const crd_status st = required(p, attributes, "fmiModelDescription", "fmiVersion", &text);
    if (st < 0) { return st; }
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || (text[digits] && text[digits] != '.')) {
        return crdi_bad(p, CRD_E_FORMAT, "fmiVersion = '%s', expected a version like 2.0 or 3.0",
                        crdi_show(text).text);
    }
    if (digits != 1 || text[0] < '1' || text[0] > '3') {
        return crdi_bad(p, CRD_E_UNSUPPORTED,
                        "fmiVersion = '%s' is not known here, only FMI 1.0, 2.0 and 3.0 are",
                        crdi_show(text).text);
    }
    p->d->version = (crd_fmi_version)(text[0] - '0');
    p->d->fmi_version_text = text;
    return CRD_OK;
}

static crd_status get_count(crdi_parser* p, const char** attributes, const char* name,
                            uint32_t* out)
{
    const crd_status st =
        crdi_get_uint32(p, "fmiModelDescription", name, crdi_find(attributes, name), out);
    if (st < 0 || *out <= CRDI_MAX_ELEMENTS) { return st; }
    return crdi_bad(p, CRD_E_FORMAT, "%s = %u is above the limit of %d", name, *out,
                    CRDI_MAX_ELEMENTS);
}

// It becomes the name of the library that is loaded.
static crd_status get_identifier(crdi_parser* p, const char* element, const char** attributes,
                                 const char** out)
{
    const crd_status st = required(p, attributes, element, "modelIdentifier", out);
    if (st < 0) { return st; }
    if (!(*out)[0] || strpbrk(*out, "/\\") || (*out)[0] == '.') {
        return crdi_bad(p, CRD_E_FORMAT, "modelIdentifier = '%s', expected a C identifier",
                        crdi_show(*out).text);
    }
    return CRD_OK;
}

static crd_status start_model(crdi_parser* p, const char** attributes)
{
    crd_fmu_description* d = p->d;
    crd_status st = CRD_OK;
    CRD_TRY(get_version(p, attributes));
    CRD_TRY(required(p, attributes, "fmiModelDescription", "modelName", &d->model_name));
    if (d->version == CRD_FMI_1) {
        CRD_TRY(get_identifier(p, "fmiModelDescription", attributes, &p->identifier));
        CRD_TRY(get_count(p, attributes, "numberOfContinuousStates", &d->exchange.state_count));
    }
    if (d->version != CRD_FMI_3) {
        CRD_TRY(get_count(p, attributes, "numberOfEventIndicators", &d->exchange.indicator_count));
    }
    CRD_TRY(required(p, attributes, "fmiModelDescription",
                     d->version == CRD_FMI_3 ? "instantiationToken" : "guid", &d->token));
    const struct {
        const char* name;
        const char** out;
    } texts[] = {
        {"description", &d->description}, {"author", &d->author},
        {"version", &d->model_version},   {"generationTool", &d->generation_tool},
        {"copyright", &d->copyright},     {"generationDateAndTime", &d->generation_date},
        {"license", &d->license},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i].out = crdi_keep(p, crdi_find(attributes, texts[i].name));
        if (!*texts[i].out) { return crdi_no_memory(p); }
    }
fail:
    return st;
}

// One flag of an interface's element.
typedef struct flag {
    const char* name;
    bool* out;
} flag;

static crd_status get_flags(crdi_parser* p, const char* element, const char** attributes,
                            const flag* flags, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const crd_status st = crdi_get_bool(p, element, flags[i].name,
                                            crdi_find(attributes, flags[i].name), flags[i].out);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// <ModelExchange>, of both versions as below.
static crd_status model_exchange(crdi_parser* p, const char** attributes)
{
    crd_fmu_model_exchange* x = &p->d->exchange;
    crd_status st = CRD_OK;
    bool not_needed = false, needed = false;
    const flag flags[] = {
        {"needsExecutionTool", &x->needs_execution_tool},
        {"canBeInstantiatedOnlyOncePerProcess", &x->can_be_instantiated_once},
        {"canNotUseMemoryManagementFunctions", &x->can_not_use_memory_functions},
        {"canGetAndSetFMUstate", &x->can_get_set_state}, // FMI 2
        {"canGetAndSetFMUState", &x->can_get_set_state}, // FMI 3
        {"canSerializeFMUstate", &x->can_serialize_state},
        {"canSerializeFMUState", &x->can_serialize_state},
        {"providesDirectionalDerivative", &x->provides_directional_derivatives},
        {"providesDirectionalDerivatives", &x->provides_directional_derivatives},
        {"providesAdjointDerivatives", &x->provides_adjoint_derivatives},
        {"completedIntegratorStepNotNeeded", &not_needed}, // FMI 2
        {"needsCompletedIntegratorStep", &needed},         // FMI 3
    };
    p->d->has_model_exchange = true;
    CRD_TRY(get_identifier(p, "ModelExchange", attributes, &x->model_identifier));
    CRD_TRY(get_flags(p, "ModelExchange", attributes, flags, sizeof flags / sizeof *flags));
    x->needs_completed_step = p->d->version == CRD_FMI_2 ? !not_needed : needed;
fail:
    return st;
}

// <CoSimulation>, in FMI 1 <Capabilities>: flags of all versions; their names do not collide.
static crd_status cosimulation(crdi_parser* p, const char* element, const char** attributes)
{
    crd_fmu_description* d = p->d;
    crd_status st = CRD_OK;
    bool might_return_early = false;
    uint32_t order = 0;
    const flag flags[] = {
        {"needsExecutionTool", &d->needs_execution_tool},
        {"canHandleVariableCommunicationStepSize", &d->can_handle_variable_step},
        {"canInterpolateInputs", &d->can_interpolate_inputs},
        {"canRunAsynchronuously", &d->can_run_asynchronously}, // the standard's spelling
        {"canBeInstantiatedOnlyOncePerProcess", &d->can_be_instantiated_once},
        {"canNotUseMemoryManagementFunctions", &d->can_not_use_memory_functions},
        {"canGetAndSetFMUstate", &d->can_get_set_state}, // FMI 2
        {"canGetAndSetFMUState", &d->can_get_set_state}, // FMI 3
        {"canSerializeFMUstate", &d->can_serialize_state},
        {"canSerializeFMUState", &d->can_serialize_state},
        {"providesDirectionalDerivative", &d->provides_directional_derivatives},
        {"providesDirectionalDerivatives", &d->provides_directional_derivatives},
        {"providesAdjointDerivatives", &d->provides_adjoint_derivatives},
        {"hasEventMode", &d->has_event_mode},
        {"providesIntermediateUpdate", &d->provides_intermediate_update},
        {"canReturnEarlyAfterIntermediateUpdate", &d->can_return_early},
        {"mightReturnEarlyFromDoStep", &might_return_early},
    };
    d->has_cosimulation = true;
    if (d->version != CRD_FMI_1) {
        CRD_TRY(get_identifier(p, element, attributes, &d->model_identifier));
    }
    CRD_TRY(get_flags(p, element, attributes, flags, sizeof flags / sizeof *flags));
    d->can_return_early = d->can_return_early || might_return_early;
    CRD_TRY(crdi_get_uint32(p, element, "maxOutputDerivativeOrder",
                            crdi_find(attributes, "maxOutputDerivativeOrder"), &order));
    d->max_output_derivative = order < 1000 ? (int)order : 1000;
    CRD_TRY(crdi_get_double(p, element, "fixedInternalStepSize",
                            crdi_find(attributes, "fixedInternalStepSize"),
                            &d->fixed_internal_step));
fail:
    return st;
}

static crd_status default_experiment(crdi_parser* p, const char** attributes)
{
    crd_fmu_description* d = p->d;
    const struct {
        const char* name;
        bool* has;
        double* out;
    } numbers[] = {
        {"startTime", &d->has_start, &d->start},
        {"stopTime", &d->has_stop, &d->stop},
        {"tolerance", &d->has_tolerance, &d->tolerance},
        {"stepSize", &d->has_step, &d->step},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const char* text = crdi_find(attributes, numbers[i].name);
        const crd_status st =
            crdi_get_double(p, "DefaultExperiment", numbers[i].name, text, numbers[i].out);
        if (st < 0) { return st; }
        *numbers[i].has = text != NULL;
    }
    return CRD_OK;
}

static crd_status log_category(crdi_parser* p, const char** attributes)
{
    const char** grown = crdi_grow(p->ctx, p->categories, &p->category_capacity,
                                   p->category_count + 1, sizeof *p->categories);
    if (!grown) { return crdi_no_memory(p); }
    p->categories = grown;
    const crd_status st =
        required(p, attributes, "Category", "name", &p->categories[p->category_count]);
    if (st == CRD_OK) { p->category_count++; }
    return st;
}

// FMI 2: <File name="all.c"/> in <SourceFiles>
static void source_file(crdi_parser* p, bool exchange, const char** attributes)
{
    crdi_source_name* s = crdi_arena_new(p->arena, 1, sizeof *s);
    if (!s) {
        crdi_no_memory(p);
        return;
    }
    s->line = (int)XML_GetCurrentLineNumber(p->xml);
    s->next = p->fmu->source_names[exchange];
    if (required(p, attributes, "File", "name", &s->name) == CRD_OK) {
        p->fmu->source_names[exchange] = s;
    }
}

// ---- the tree of elements ----------------------------------------------------------------------

// Where in the tree an element's children are.
typedef enum place {
    AT_ROOT,
    AT_MODEL,
    AT_UNITS,
    AT_UNIT,
    AT_TYPES,
    AT_SIMPLE_TYPE, // FMI 1 and 2
    AT_TYPE,
    AT_LOG,
    AT_COSIMULATION,
    AT_EXCHANGE,
    AT_SOURCES, // FMI 2: of Co-Simulation
    AT_EXCHANGE_SOURCES,
    AT_VARIABLES,
    AT_SCALAR,       // FMI 1 and 2: in a ScalarVariable
    AT_DEPENDENCIES, // FMI 1: in a DirectDependency
    AT_NAME,         // FMI 1: its text counts
    AT_SLAVES,       // FMI 1: in Implementation
    AT_SLAVE,        // FMI 1: in CoSimulation_StandAlone or CoSimulation_Tool
    AT_VARIABLE,     // FMI 3: in a variable
    AT_STRUCTURE,
    AT_OUTPUTS,     // FMI 2
    AT_DERIVATIVES, // FMI 2
    AT_INITIAL,     // FMI 2
    AT_OTHER,       // nothing below is of interest: vendor annotations, later versions
} place;

static bool is(const char* a, const char* b)
{
    return strcmp(a, b) == 0;
}

static place in_root(crdi_parser* p, const char* element, const char** attributes)
{
    if (!is(element, "fmiModelDescription")) {
        crdi_bad(p, CRD_E_FORMAT, "the root element is <%s>, expected <fmiModelDescription>",
                 crdi_show(element).text);
        return AT_OTHER;
    }
    start_model(p, attributes);
    return AT_MODEL;
}

static place in_model(crdi_parser* p, const char* element, const char** attributes)
{
    static const struct {
        const char* element;
        place next;
    } sections[] = {
        {"ModelVariables", AT_VARIABLES}, {"ModelStructure", AT_STRUCTURE},
        {"UnitDefinitions", AT_UNITS},    {"TypeDefinitions", AT_TYPES},
        {"LogCategories", AT_LOG},        {"Implementation", AT_SLAVES},
    };
    const bool one = p->d->version == CRD_FMI_1;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        if (is(element, sections[i].element)) { return sections[i].next; }
    }
    if (is(element, "CoSimulation") && !one) {
        cosimulation(p, element, attributes);
        return AT_COSIMULATION;
    } else if (is(element, "ModelExchange") && !one) {
        model_exchange(p, attributes);
        return AT_EXCHANGE;
    } else if (is(element, "ScheduledExecution")) {
        p->d->has_scheduled_execution = p->d->version == CRD_FMI_3;
    } else if (is(element, "DefaultExperiment")) {
        default_experiment(p, attributes);
    }
    return AT_OTHER;
}

// FMI 1: an FMU with <Implementation> is for Co-Simulation, one without for Model Exchange.
static place in_slaves(crdi_parser* p, const char* element)
{
    const bool tool = is(element, "CoSimulation_Tool");
    if (!tool && !is(element, "CoSimulation_StandAlone")) { return AT_OTHER; }
    p->d->has_cosimulation = p->d->version == CRD_FMI_1;
    p->d->needs_execution_tool = tool;
    return AT_SLAVE;
}

static place in_slave(crdi_parser* p, const char* element, const char** attributes)
{
    const char* type = is(element, "Model") ? crdi_find(attributes, "type") : NULL;
    if (is(element, "Capabilities")) { cosimulation(p, element, attributes); }
    if (type && !(p->fmu->mime_type = crdi_keep(p, type))) { crdi_no_memory(p); }
    return AT_OTHER;
}

static place in_types(crdi_parser* p, const char* element, const char** attributes)
{
    if (p->d->version != CRD_FMI_3) {
        if (!is(element, p->d->version == CRD_FMI_1 ? "Type" : "SimpleType")) { return AT_OTHER; }
        crdi_start_type(p, attributes);
        return AT_SIMPLE_TYPE;
    }
    const int type = crdi_fmi3_type(element, "Type");
    if (type < 0) { return AT_OTHER; }
    if (crdi_start_type(p, attributes) == CRD_OK) {
        crdi_type_content(p, (crd_type)type, attributes);
    }
    return AT_TYPE;
}

static place in_simple_type(crdi_parser* p, const char* element, const char** attributes)
{
    const int type = crdi_fmi2_type(element, p->d->version == CRD_FMI_1 ? "Type" : "");
    if (type < 0) { return AT_OTHER; }
    crdi_type_content(p, (crd_type)type, attributes);
    return AT_TYPE;
}

static place in_variables(crdi_parser* p, const char* element, const char** attributes)
{
    if (p->d->version != CRD_FMI_3) {
        if (!is(element, "ScalarVariable")) { return AT_OTHER; }
        crdi_start_scalar_variable(p, attributes);
        return AT_SCALAR;
    }
    const int type = crdi_fmi3_type(element, "");
    if (type < 0) { return AT_OTHER; }
    crdi_start_variable(p, (crd_type)type, attributes);
    return AT_VARIABLE;
}

static place in_scalar(crdi_parser* p, const char* element, const char** attributes)
{
    if (p->d->version == CRD_FMI_1 && is(element, "DirectDependency")) {
        p->has_dependencies = true;
        return AT_DEPENDENCIES;
    }
    crdi_scalar_type(p, element, attributes);
    return AT_OTHER;
}

static place in_structure(crdi_parser* p, const char* element, const char** attributes)
{
    if (p->d->version == CRD_FMI_1) { return AT_OTHER; }
    if (p->d->version == CRD_FMI_2) {
        return is(element, "Outputs")           ? AT_OUTPUTS
               : is(element, "Derivatives")     ? AT_DERIVATIVES
               : is(element, "InitialUnknowns") ? AT_INITIAL
                                                : AT_OTHER;
    }
    if (is(element, "Output")) {
        crdi_unknown(p, &p->outputs, "valueReference", attributes);
    } else if (is(element, "InitialUnknown")) {
        crdi_unknown(p, &p->initial_unknowns, "valueReference", attributes);
    } else if (is(element, "ContinuousStateDerivative")) {
        crdi_unknown(p, &p->derivatives, "valueReference", attributes);
    } else if (is(element, "EventIndicator")) {
        crdi_unknown(p, &p->indicators, "valueReference", attributes);
    }
    return AT_OTHER;
}

static place fmi_description_enter(crdi_parser* p, place here, const char* element,
                                   const char** attributes)
{
    switch (here) {
    case AT_ROOT:
        return in_root(p, element, attributes);
    case AT_MODEL:
        return in_model(p, element, attributes);
    case AT_TYPES:
        return in_types(p, element, attributes);
    case AT_SIMPLE_TYPE:
        return in_simple_type(p, element, attributes);
    case AT_VARIABLES:
        return in_variables(p, element, attributes);
    case AT_STRUCTURE:
        return in_structure(p, element, attributes);
    case AT_SCALAR:
        return in_scalar(p, element, attributes);
    case AT_DEPENDENCIES:
        p->text_length = 0;
        return is(element, "Name") ? AT_NAME : AT_OTHER;
    case AT_SLAVES:
        return in_slaves(p, element);
    case AT_SLAVE:
        return in_slave(p, element, attributes);
    case AT_VARIABLE:
        crdi_variable_child(p, element, attributes);
        break;
    case AT_UNITS:
        if (!is(element, "Unit")) { break; }
        crdi_start_unit(p, attributes);
        return AT_UNIT;
    case AT_UNIT:
        if (is(element, "BaseUnit")) { crdi_base_unit(p, attributes); }
        break;
    case AT_TYPE:
        if (is(element, "Item")) { crdi_type_item(p, attributes); }
        break;
    case AT_LOG:
        if (is(element, "Category")) { log_category(p, attributes); }
        break;
    case AT_COSIMULATION:
        return is(element, "SourceFiles") ? AT_SOURCES : AT_OTHER;
    case AT_EXCHANGE:
        return is(element, "SourceFiles") ? AT_EXCHANGE_SOURCES : AT_OTHER;
    case AT_SOURCES:
    case AT_EXCHANGE_SOURCES:
        if (is(element, "File")) { source_file(p, here == AT_EXCHANGE_SOURCES, attributes); }
        break;
    case AT_OUTPUTS:
        if (is(element, "Unknown")) { crdi_unknown(p, &p->outputs, "index", attributes); }
        break;
    case AT_DERIVATIVES:
        if (is(element, "Unknown")) { crdi_unknown(p, &p->derivatives, "index", attributes); }
        break;
    case AT_INITIAL:
        if (is(element, "Unknown")) { crdi_unknown(p, &p->initial_unknowns, "index", attributes); }
        break;
    case AT_NAME:
    case AT_OTHER:
        break;
    }
    return AT_OTHER;
}

static void XMLCALL on_start(void* user, const char* element, const char** attributes)
{
    crdi_parser* p = user;
    if (p->status < 0) { return; }
    if (p->depth == CRDI_XML_MAX_DEPTH) {
        crdi_bad(p, CRD_E_FORMAT, "elements are nested more than %d deep", CRDI_XML_MAX_DEPTH);
        return;
    }
    const place here = (place)p->places[p->depth];
    p->places[++p->depth] = (uint8_t)fmi_description_enter(p, here, element, attributes);
}

static void XMLCALL on_end(void* user, const char* element)
{
    (void)element;
    crdi_parser* p = user;
    if (p->status < 0) { return; }
    const place closed = (place)p->places[p->depth--];
    if (closed == AT_SCALAR || closed == AT_VARIABLE) { crdi_end_variable(p); }
    if (closed == AT_NAME) { crdi_end_dependency(p); }
}

static void XMLCALL on_text(void* user, const XML_Char* text, int length)
{
    crdi_parser* p = user;
    if (p->status == CRD_OK && p->places[p->depth] == AT_NAME) {
        crdi_add_text(p, text, (size_t)length);
    }
}

// Nothing in FMI needs a document type, and entities are how a small file becomes a large one.
static void XMLCALL on_doctype(void* user, const char* name, const char* system_id,
                               const char* public_id, int has_internal_subset)
{
    (void)system_id, (void)public_id, (void)has_internal_subset;
    crdi_bad(user, CRD_E_FORMAT, "<!DOCTYPE %s> is refused: a modelDescription has none",
             crdi_show(name).text);
}

// ---- the file ----------------------------------------------------------------------------------

static crd_status expat_failure(crdi_parser* p)
{
    if (p->status < 0) { return p->status; }
    const enum XML_Error code = XML_GetErrorCode(p->xml);
    if (code == XML_ERROR_NO_MEMORY) {
        return crdi_fail(p->ctx, CRD_E_MEMORY, "out of memory while reading %s", p->name);
    }
    return crdi_bad(p, CRD_E_FORMAT, "not well-formed XML: %s", XML_ErrorString(code));
}

// Feeds the file in blocks. expat looks again at an unfinished tag with every block, so blocks grow
// with the tag: the work stays linear in its length.
static crd_status feed(crdi_parser* p, crdi_pull* pull, void* user)
{
    const size_t block = 64 * 1024;
    int64_t fed = 0, seen = 0; // bytes handed to expat; start of the tag it is at
    for (size_t got = 1; got > 0;) {
        const size_t room = (size_t)(fed - seen) > block ? (size_t)(fed - seen) : block;
        void* buffer = XML_GetBuffer(p->xml, (int)room);
        if (!buffer) { return expat_failure(p); }
        const crd_status st = pull(user, buffer, room, &got);
        if (st < 0) { return st; }
        fed += (int64_t)got;
        if (fed > CRDI_XML_MAX_BYTES) {
            return crdi_bad(p, CRD_E_FORMAT, "the file has more than the limit of %d bytes",
                            CRDI_XML_MAX_BYTES);
        }
        if (XML_ParseBuffer(p->xml, (int)got, got == 0) != XML_STATUS_OK) {
            return expat_failure(p);
        }
        const int64_t at = XML_GetCurrentByteIndex(p->xml);
        if (at > seen) { seen = at; }
        if (fed - seen > CRDI_XML_MAX_TAG) {
            return crdi_bad(p, CRD_E_FORMAT,
                            "a tag (an attribute, a comment) is longer than the limit of %d bytes",
                            CRDI_XML_MAX_TAG);
        }
    }
    return CRD_OK;
}

static void clear_parser(crdi_parser* p)
{
    if (p->xml) { XML_ParserFree(p->xml); }
    void* const owned[] = {p->units,
                           p->types,
                           p->items,
                           p->enumerations,
                           p->texts,
                           p->text_starts,
                           p->axes,
                           p->outputs.rows,
                           p->outputs.known,
                           p->initial_unknowns.rows,
                           p->initial_unknowns.known,
                           p->derivatives.rows,
                           p->derivatives.known,
                           p->indicators.rows,
                           p->indicators.known,
                           p->derivative_rows,
                           p->dependencies,
                           p->categories};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
        crd_free(p->ctx, owned[i]);
    }
    crdi_map_clear(&p->unit_names);
    crdi_map_clear(&p->type_names);
    crd_free(p->ctx, p);
}

static void empty_texts(crd_fmu_description* d)
{
    d->fmi_version_text = d->model_name = d->model_identifier = d->token = d->description = "";
    d->author = d->model_version = d->generation_tool = d->generation_date = d->copyright = "";
    d->license = d->exchange.model_identifier = "";
}

crd_status crdi_description_read(crd_fmu* fmu, const char* name_in_messages, crdi_pull* pull,
                                 void* user)
{
    crd_context* ctx = fmu->ctx;
    crd_status st = CRD_OK;
    crdi_parser* p = crdi_new(ctx, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    p->ctx = ctx;
    p->fmu = fmu;
    p->arena = &fmu->arena;
    p->d = &fmu->description;
    p->name = name_in_messages;
    p->places[0] = AT_ROOT;
    crdi_map_init(&p->unit_names, ctx);
    crdi_map_init(&p->type_names, ctx);
    empty_texts(p->d);
    p->xml = XML_ParserCreate(NULL);
    if (!p->xml) {
        st = crdi_fail(ctx, CRD_E_MEMORY, "out of memory while reading %s", name_in_messages);
        goto fail;
    }
    XML_SetUserData(p->xml, p);
    XML_SetElementHandler(p->xml, on_start, on_end);
    XML_SetCharacterDataHandler(p->xml, on_text);
    XML_SetStartDoctypeDeclHandler(p->xml, on_doctype);
    CRD_TRY(feed(p, pull, user));
    CRD_TRY(crdi_finish(p));
fail:
    clear_parser(p);
    return st;
}
