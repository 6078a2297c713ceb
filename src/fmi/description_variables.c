#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fmi/description_parser.h"
#include "shared/base_names.h"

// ---- words -------------------------------------------------------------------------------------

// `text` NULL leaves `*out`.
static crd_status get_word(crdi_parser* p, const char* owner, const char* attribute,
                           const char* text, const char* const* words, int count, uint8_t* out)
{
    if (!text) { return CRD_OK; }
    for (int i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = (uint8_t)i;
            return CRD_OK;
        }
    }
    char list[128] = "";
    size_t n = 0;
    for (int i = 0; i < count && n < sizeof list; i++) {
        const char* between = i == 0 ? "" : i == count - 1 ? " or " : ", ";
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", between, words[i]);
    }
    return crdi_bad(p, CRD_E_FORMAT, "%s: %s = '%s', expected %s", crdi_show(owner).text, attribute,
                    crdi_show(text).text, list);
}

// Which combinations of causality (row) and variability (bit) the standards allow.
static bool combination_allowed(uint8_t causality, uint8_t variability)
{
    enum {
        C = 1 << CRD_CONTINUOUS,
        D = 1 << CRD_DISCRETE,
        T = 1 << CRD_TUNABLE,
        F = 1 << CRD_FIXED,
        K = 1 << CRD_CONSTANT
    };
    static const uint8_t allowed[CRD_CAUSALITY_COUNT] = {
        [CRD_LOCAL] = C | D | T | F | K,
        [CRD_INPUT] = C | D,
        [CRD_OUTPUT] = C | D | K,
        [CRD_PARAMETER] = T | F,
        [CRD_CALCULATED_PARAMETER] = T | F,
        [CRD_STRUCTURAL_PARAMETER] = T | F,
        [CRD_INDEPENDENT] = C,
    };
    return (allowed[causality] >> variability) & 1;
}

// An input has no `initial` in the standards: its start value is exact.
static uint8_t default_initial(uint8_t causality, uint8_t variability)
{
    const bool exact = variability == CRD_CONSTANT || causality == CRD_PARAMETER ||
                       causality == CRD_STRUCTURAL_PARAMETER || causality == CRD_INPUT;
    return exact ? CRD_EXACT : CRD_CALCULATED;
}

static void note(crdi_oddity* o, int32_t variable)
{
    if (o->count++ == 0) { o->first = variable; }
}

// ---- start values ------------------------------------------------------------------------------

static bool integer_fits(crd_type type, const char* s, size_t n)
{
    static const struct {
        int64_t min, max;
    } ranges[CRD_TYPE_COUNT] = {
        [CRD_INT8] = {INT8_MIN, INT8_MAX},    [CRD_UINT8] = {0, UINT8_MAX},
        [CRD_INT16] = {INT16_MIN, INT16_MAX}, [CRD_UINT16] = {0, UINT16_MAX},
        [CRD_INT32] = {INT32_MIN, INT32_MAX}, [CRD_UINT32] = {0, UINT32_MAX},
        [CRD_INT64] = {INT64_MIN, INT64_MAX}, [CRD_ENUMERATION] = {INT64_MIN, INT64_MAX},
    };
    uint64_t natural = 0;
    if (type == CRD_UINT64) { return crdi_parse_uint64(s, n, &natural); }
    int64_t value = 0;
    return crdi_parse_int64(s, n, &value) && value >= ranges[type].min && value <= ranges[type].max;
}

static bool hex_fits(const char* s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char c = (char)(s[i] | 0x20);
        if (!(s[i] >= '0' && s[i] <= '9') && !(c >= 'a' && c <= 'f')) { return false; }
    }
    return n % 2 == 0;
}

static bool start_fits(crd_type type, const char* s, size_t n)
{
    double number = 0;
    switch (type) {
    case CRD_FLOAT64:
    case CRD_FLOAT32:
        return crdi_parse_double(s, n, &number);
    case CRD_BOOLEAN:
        return (n == 4 && memcmp(s, "true", 4) == 0) || (n == 5 && memcmp(s, "false", 5) == 0) ||
               (n == 1 && (*s == '0' || *s == '1'));
    case CRD_BINARY:
        return hex_fits(s, n);
    case CRD_STRING:
        return true;
    case CRD_CLOCK:
        return false;
    default:
        return integer_fits(type, s, n);
    }
}

static const char* start_expected(crd_type type)
{
    switch (type) {
    case CRD_FLOAT64:
    case CRD_FLOAT32:
        return "a number";
    case CRD_BOOLEAN:
        return "true or false";
    case CRD_BINARY:
        return "pairs of hexadecimal digits";
    case CRD_CLOCK:
        return "no start value on a clock";
    default:
        return "a whole number in the range of its type";
    }
}

// The start of a number, Boolean or enumeration: one value, or a list of them for an array.
static crd_status description_variables_check_start(crdi_parser* p, const crd_variable* v)
{
    const char* rest = v->start;
    size_t n = 0, words = 0;
    for (const char* s = crdi_next_word(&rest, &n); s; s = crdi_next_word(&rest, &n), words++) {
        if (!start_fits((crd_type)v->type, s, n) || (v->rank == 0 && words > 0)) {
            words = 0;
            break;
        }
    }
    if (words == 0 && (v->rank == 0 || n > 0)) {
        return crdi_bad_at(p, v->line, CRD_E_FORMAT, "variable '%s': start = '%s', expected %s",
                           crdi_show(v->name).text, crdi_show(v->start).text,
                           start_expected((crd_type)v->type));
    }
    return CRD_OK;
}

// ---- variables ---------------------------------------------------------------------------------

static crd_status check_name(crdi_parser* p, const char* name)
{
    if (!name) { return crdi_bad(p, CRD_E_FORMAT, "a variable lacks its attribute 'name'"); }
    if (!*name) { return crdi_bad(p, CRD_E_FORMAT, "a variable has an empty name"); }
    for (const char* s = name; *s; s++) {
        if ((unsigned char)*s < 0x20) {
            return crdi_bad(p, CRD_E_FORMAT,
                            "variable '%s': line breaks and tabs are not allowed in a name",
                            crdi_show(name).text);
        }
    }
    return CRD_OK;
}

// A new variable with everything at its default. -1: failed.
static int32_t description_variables_add_variable(crdi_parser* p, const char* name,
                                                  const char* description)
{
    crd_fmu* f = p->fmu;
    const size_t i = p->variable_count;
    if (check_name(p, name) < 0) { return -1; }
    if (i >= INT32_MAX / 2) {
        crdi_bad(p, CRD_E_FORMAT, "more than %d variables", INT32_MAX / 2);
        return -1;
    }
    crd_variable* grown =
        crdi_grow(p->ctx, f->variables, &p->variable_capacity, i + 1, sizeof *grown);
    if (!grown) {
        crdi_no_memory(p);
        return -1;
    }
    f->variables = grown;
    crd_variable* v = &f->variables[i];
    *v = (crd_variable){.name = crdi_arena_text(p->arena, name, strlen(name)),
                        .description = crdi_keep(p, description),
                        .unit = "",
                        .size = 1,
                        .unit_index = -1,
                        .type_index = -1,
                        .alias_of = -1,
                        .line = crdi_line(p),
                        .can_handle_multiple_set = true,
                        .nominal = 1,
                        .min = -INFINITY,
                        .max = INFINITY};
    bool fresh = false;
    if (!v->name || !v->description || crdi_map_add(&f->names, v->name, (int32_t)i, &fresh) < 0) {
        crdi_no_memory(p);
        return -1;
    }
    p->repeats = fresh ? -1 : crdi_map_find(&f->names, name);
    p->variable_count++;
    return (int32_t)i;
}

// Some tools write a local variable twice. Nobody connects it: the first one has the name, the
// other is called by its line, too.
static crd_status name_repeated(crdi_parser* p, crd_variable* v, bool may)
{
    if (p->repeats < 0) { return CRD_OK; }
    bool fresh = false;
    const char* name = crdi_arena_format(p->arena, "%s (line %u)", v->name, v->line);
    if (!name) { return crdi_no_memory(p); }
    if (may && crdi_map_add(&p->fmu->names, name, (int32_t)(v - p->fmu->variables), &fresh) < 0) {
        return crdi_no_memory(p);
    }
    if (!fresh) {
        return crdi_bad(p, CRD_E_FORMAT,
                        "variable '%s' is declared again; the first one is in line %u",
                        crdi_show(v->name).text, p->fmu->variables[p->repeats].line);
    }
    v->name = name;
    if (p->repeated.count++ == 0) { p->repeated.first = (int32_t)(v - p->fmu->variables); }
    return CRD_OK;
}

// FMI 1 has other words. What it calls a parameter becomes fixed here; which causality that means
// is known at the end of the variable.
static crd_status get_roles1(crdi_parser* p, const crdi_attributes* a, crd_variable* v)
{
    static const char* const causalities[] = {"internal", "input", "output", "none"};
    static const uint8_t causality[] = {CRD_LOCAL, CRD_INPUT, CRD_OUTPUT, CRD_LOCAL};
    static const char* const variabilities[] = {"continuous", "discrete", "parameter", "constant"};
    static const uint8_t variability[] = {CRD_CONTINUOUS, CRD_DISCRETE, CRD_FIXED, CRD_CONSTANT};
    static const char* const aliases[] = {"noAlias", "alias", "negatedAlias"};
    crd_status st = CRD_OK;
    uint8_t c = 0, w = 0, alias = 0;
    CRD_TRY(get_word(p, v->name, "causality", a->value[CRDI_AT_CAUSALITY], causalities, 4, &c));
    CRD_TRY(
        get_word(p, v->name, "variability", a->value[CRDI_AT_VARIABILITY], variabilities, 4, &w));
    CRD_TRY(get_word(p, v->name, "alias", a->value[CRDI_AT_ALIAS], aliases, 3, &alias));
    v->causality = causality[c];
    v->variability = variability[w];
    v->negated = alias == 2;
    p->fixed = true;
    p->has_dependencies = false;
    p->known_before = p->outputs.known_count;
fail:
    return st;
}

// What FMI 2 and 3 have instead.
static crd_status get_roles(crdi_parser* p, const crdi_attributes* a, crd_variable* v)
{
    crd_status st = CRD_OK;
    CRD_TRY(get_word(p, v->name, "causality", a->value[CRDI_AT_CAUSALITY], crdi_causality_names,
                     CRD_CAUSALITY_COUNT, &v->causality));
    if (v->causality == CRD_STRUCTURAL_PARAMETER && p->d->version == CRD_FMI_2) {
        return crdi_bad(p, CRD_E_FORMAT, "%s: causality = 'structuralParameter' needs FMI 3.0",
                        crdi_show(v->name).text);
    }
    CRD_TRY(get_word(p, v->name, "variability", a->value[CRDI_AT_VARIABILITY],
                     crdi_variability_names, CRD_VARIABILITY_COUNT, &v->variability));
    CRD_TRY(get_word(p, v->name, "initial", a->value[CRDI_AT_INITIAL], crdi_initial_names,
                     CRD_INITIAL_COUNT, &v->initial));
fail:
    return st;
}

// What all versions write on the variable's own element.
static crd_status begin_variable(crdi_parser* p, const crdi_attributes* a)
{
    crd_status st = CRD_OK;
    const int32_t i = description_variables_add_variable(p, a->value[CRDI_AT_NAME],
                                                         a->value[CRDI_AT_DESCRIPTION]);
    if (i < 0) { return p->status; }
    p->variable = i;
    p->has_type = false;
    p->text_length = p->text_count = 0;
    crd_variable* v = &p->fmu->variables[i];
    if (!a->value[CRDI_AT_VALUE_REFERENCE]) {
        return crdi_bad(p, CRD_E_FORMAT, "variable '%s' lacks its attribute 'valueReference'",
                        crdi_show(v->name).text);
    }
    CRD_TRY(crdi_get_uint32(p, v->name, "valueReference", a->value[CRDI_AT_VALUE_REFERENCE],
                            &v->reference));
    v->variability = CRD_VARIABILITY_COUNT; // the default depends on the type
    v->initial = CRD_INITIAL_COUNT;
    CRD_TRY(p->d->version == CRD_FMI_1 ? get_roles1(p, a, v) : get_roles(p, a, v));
    CRD_TRY(name_repeated(p, v, v->causality == CRD_LOCAL && v->variability != CRD_FIXED));
    CRD_TRY(crdi_get_bool(p, v->name, "canHandleMultipleSetPerTimeInstant",
                          a->value[CRDI_AT_MULTIPLE_SET], &v->can_handle_multiple_set));
    CRD_TRY(crdi_get_bool(p, v->name, "intermediateUpdate", a->value[CRDI_AT_INTERMEDIATE_UPDATE],
                          &v->intermediate_update));
    const char* clocks = p->d->version == CRD_FMI_3 ? a->value[CRDI_AT_CLOCKS] : NULL;
    size_t length = 0;
    if (clocks && crdi_trim(clocks, &length) && length && !p->d->clocked) {
        p->d->clocked = v->name;
    }
fail:
    return st;
}

static crd_status add_derivative(crdi_parser* p, const crd_variable* v, const char* text)
{
    crdi_derivative_row row = {.variable = p->variable, .line = v->line};
    const crd_status st = crdi_get_uint32(p, v->name, "derivative", text, &row.state);
    if (st < 0) { return st; }
    crdi_derivative_row* grown = crdi_grow(p->ctx, p->derivative_rows, &p->derivative_capacity,
                                           p->derivative_count + 1, sizeof *grown);
    if (!grown) { return crdi_no_memory(p); }
    p->derivative_rows = grown;
    p->derivative_rows[p->derivative_count++] = row;
    return CRD_OK;
}

// What stands with the type: on the type element in FMI 2, on the variable's in FMI 3.
static crd_status set_type(crdi_parser* p, crd_type type, const crdi_attributes* a)
{
    crd_variable* v = &p->fmu->variables[p->variable];
    crdi_declared_type t = {
        .unit = -1, .enumeration = -1, .nominal = 1, .min = -INFINITY, .max = INFINITY};
    const char* declared = a->value[CRDI_AT_DECLARED_TYPE];
    v->type = (uint8_t)type;
    if (declared && *declared) {
        const int32_t i = crdi_map_find(&p->type_names, declared);
        if (i < 0) {
            return crdi_bad(p, CRD_E_FORMAT,
                            "variable '%s': declaredType = '%s' is not among the TypeDefinitions",
                            crdi_show(v->name).text, crdi_show(declared).text);
        }
        t = p->types[i];
        if (t.type != type) {
            return crdi_bad(p, CRD_E_FORMAT,
                            "variable '%s': declaredType = '%s' is a type of another kind",
                            crdi_show(v->name).text, crdi_show(declared).text);
        }
    }
    const crd_status st = crdi_quantity(p, v->name, type, a, &t);
    if (st < 0) { return st; }
    v->unit_index = t.unit;
    v->unit = t.unit < 0 ? "" : p->units[t.unit].name;
    v->type_index = t.enumeration;
    v->relative_quantity = t.relative;
    v->nominal = t.nominal;
    v->min = t.min;
    v->max = t.max;
    const char* start = a->value[CRDI_AT_START];
    if (start) {
        size_t length = strlen(start);
        if (type != CRD_STRING) { start = crdi_trim(start, &length); }
        v->start = crdi_keep_part(p, start, length);
        if (!v->start) { return crdi_no_memory(p); }
    }
    p->has_type = true;
    return a->value[CRDI_AT_DERIVATIVE] ? add_derivative(p, v, a->value[CRDI_AT_DERIVATIVE])
                                        : CRD_OK;
}

crd_status crdi_start_scalar_variable(crdi_parser* p, const char** attributes)
{
    crdi_attributes a;
    crdi_collect(attributes, &a);
    return begin_variable(p, &a);
}

crd_status crdi_scalar_type(crdi_parser* p, const char* element, const char** attributes)
{
    const int type = crdi_fmi2_type(element, "");
    if (type < 0) { return CRD_OK; } // annotations
    if (p->has_type) {
        return crdi_bad(p, CRD_E_FORMAT, "variable '%s' has two types",
                        crdi_show(p->fmu->variables[p->variable].name).text);
    }
    crdi_attributes a;
    crdi_collect(attributes, &a);
    const crd_status st = set_type(p, (crd_type)type, &a);
    if (st < 0 || p->d->version != CRD_FMI_1) { return st; }
    const char* name = p->fmu->variables[p->variable].name;
    return crdi_get_bool(p, name, "fixed", a.value[CRDI_AT_FIXED], &p->fixed);
}

crd_status crdi_start_variable(crdi_parser* p, crd_type type, const char** attributes)
{
    crdi_attributes a;
    crdi_collect(attributes, &a);
    const crd_status st = begin_variable(p, &a);
    return st < 0 ? st : set_type(p, type, &a);
}

// ---- children of FMI 3 variables ----------------------------------------------------------------

static crd_status add_axis(crdi_parser* p, const char** attributes)
{
    crd_variable* v = &p->fmu->variables[p->variable];
    const char* start = crdi_find(attributes, "start");
    const char* reference = crdi_find(attributes, "valueReference");
    if (!start == !reference) {
        return crdi_bad(p, CRD_E_FORMAT,
                        "variable '%s': <Dimension> needs either start or valueReference",
                        crdi_show(v->name).text);
    }
    if (v->rank == CRDI_MAX_RANK) {
        return crdi_bad(p, CRD_E_FORMAT, "variable '%s' has more than %d dimensions",
                        crdi_show(v->name).text, CRDI_MAX_RANK);
    }
    crdi_axis_row row = {.line = crdi_line(p), .by_reference = reference != NULL};
    if (reference) {
        const crd_status st =
            crdi_get_uint32(p, v->name, "valueReference of <Dimension>", reference, &row.reference);
        if (st < 0) { return st; }
    } else {
        size_t n = 0;
        const char* s = crdi_trim(start, &n);
        if (!crdi_parse_uint64(s, n, &row.start)) {
            return crdi_bad(p, CRD_E_FORMAT,
                            "variable '%s': <Dimension> has start = '%s', expected a length",
                            crdi_show(v->name).text, crdi_show(start).text);
        }
    }
    crdi_axis_row* grown =
        crdi_grow(p->ctx, p->axes, &p->axis_capacity, p->axis_count + 1, sizeof *grown);
    if (!grown) { return crdi_no_memory(p); }
    p->axes = grown;
    p->axes[p->axis_count++] = row;
    v->rank++;
    return CRD_OK;
}

crd_status crdi_add_text(crdi_parser* p, const char* text, size_t length)
{
    if (p->text_length + length > CRDI_XML_MAX_TAG) {
        return crdi_bad(p, CRD_E_FORMAT, "a text is longer than the limit of %d bytes",
                        CRDI_XML_MAX_TAG);
    }
    char* grown =
        crdi_grow(p->ctx, p->texts, &p->text_capacity, p->text_length + length + 1, sizeof *grown);
    if (!grown) { return crdi_no_memory(p); }
    p->texts = grown;
    memcpy(p->texts + p->text_length, text, length);
    p->text_length += length;
    p->texts[p->text_length] = 0;
    return CRD_OK;
}

static crd_status add_start_text(crdi_parser* p, const char** attributes)
{
    const crd_variable* v = &p->fmu->variables[p->variable];
    const char* text = crdi_find(attributes, "value");
    if (crd_type_kind((crd_type)v->type) != CRD_BYTES) { return CRD_OK; }
    if (!text) {
        return crdi_bad(p, CRD_E_FORMAT, "variable '%s': <Start> lacks its attribute 'value'",
                        crdi_show(v->name).text);
    }
    size_t length = strlen(text);
    if (v->type == CRD_BINARY) {
        text = crdi_trim(text, &length);
        if (!hex_fits(text, length)) {
            return crdi_bad(p, CRD_E_FORMAT, "variable '%s': start = '%s', expected %s",
                            crdi_show(v->name).text, crdi_show(text).text,
                            start_expected(CRD_BINARY));
        }
    }
    const crd_status st = crdi_add_text(p, text, length);
    p->text_length += st == CRD_OK; // with its final zero
    p->text_count++;
    return st;
}

crd_status crdi_variable_child(crdi_parser* p, const char* element, const char** attributes)
{
    if (strcmp(element, "Dimension") == 0) { return add_axis(p, attributes); }
    if (strcmp(element, "Start") == 0) { return add_start_text(p, attributes); }
    if (strcmp(element, "Alias") != 0) { return CRD_OK; } // annotations
    const int32_t i = description_variables_add_variable(p, crdi_find(attributes, "name"),
                                                         crdi_find(attributes, "description"));
    if (i < 0) { return p->status; }
    p->fmu->variables[i].alias_of = p->variable;
    return name_repeated(p, &p->fmu->variables[i], false);
}

// ---- the end of a variable ----------------------------------------------------------------------

// <Start> children become v->start; how many there are is compared with the size at the end.
static crd_status keep_start_texts(crdi_parser* p, crd_variable* v)
{
    if (p->text_count == 0) {
        if (!v->start) { return CRD_OK; }
        // FMI 2, or a start attribute where FMI 3 wants children: one text
        p->text_count = 1;
        p->text_length = strlen(v->start) + 1;
        if (v->type == CRD_BINARY && !hex_fits(v->start, p->text_length - 1)) {
            return description_variables_check_start(p, v);
        }
    } else {
        v->start =
            p->text_length == 1 ? "" : crdi_arena_text(p->arena, p->texts, p->text_length - 1);
        if (!v->start) { return crdi_no_memory(p); }
    }
    if (v->rank == 0 && p->text_count == 1) { return CRD_OK; }
    crdi_text_start* grown = crdi_grow(p->ctx, p->text_starts, &p->text_start_capacity,
                                       p->text_start_count + 1, sizeof *grown);
    if (!grown) { return crdi_no_memory(p); }
    p->text_starts = grown;
    p->text_starts[p->text_start_count++] = (crdi_text_start){
        .variable = p->variable, .count = p->text_count, .length = p->text_length};
    return CRD_OK;
}

// FMI 1: a parameter is one that has a value to begin with; others are computed from those.
static void set_defaults1(crdi_parser* p, crd_variable* v)
{
    const bool real = crd_type_kind((crd_type)v->type) == CRD_REAL;
    if (v->variability == CRD_FIXED && v->causality != CRD_OUTPUT) {
        v->causality = v->start && p->fixed ? CRD_PARAMETER : CRD_CALCULATED_PARAMETER;
    } else if (v->variability == CRD_FIXED || (v->variability == CRD_CONTINUOUS && !real)) {
        v->variability = CRD_DISCRETE;
    }
    const uint8_t initial = default_initial(v->causality, v->variability);
    v->initial = initial == CRD_EXACT ? CRD_EXACT
                 : !v->start          ? CRD_CALCULATED
                 : p->fixed           ? CRD_EXACT
                                      : CRD_APPROX;
    if (v->type == CRD_STRING || v->type == CRD_ENUMERATION) { v->negated = false; }
}

static void set_defaults(crdi_parser* p, crd_variable* v)
{
    const bool parameter = v->causality == CRD_PARAMETER ||
                           v->causality == CRD_CALCULATED_PARAMETER ||
                           v->causality == CRD_STRUCTURAL_PARAMETER;
    const bool real = crd_type_kind((crd_type)v->type) == CRD_REAL;
    if (v->variability == CRD_VARIABILITY_COUNT) {
        v->variability = parameter ? CRD_FIXED : real ? CRD_CONTINUOUS : CRD_DISCRETE;
        // FMI 2 has no default for parameters: what it has for the type is not allowed on them.
        if (parameter && p->d->version == CRD_FMI_2) { note(&p->bad_combination, p->variable); }
    } else if (!combination_allowed(v->causality, v->variability) ||
               (v->variability == CRD_CONTINUOUS && !real)) {
        note(&p->bad_combination, p->variable);
    }
    if (v->initial == CRD_INITIAL_COUNT) {
        v->initial = default_initial(v->causality, v->variability);
    }
    if (v->initial != CRD_CALCULATED && !v->start && v->type != CRD_CLOCK) {
        note(&p->missing_start, p->variable);
    }
}

// ---- DirectDependency of FMI 1 ------------------------------------------------------------------

crd_status crdi_end_dependency(crdi_parser* p)
{
    crdi_unknown_list* list = &p->outputs;
    size_t length = 0;
    const char* text = p->text_length ? crdi_trim(p->texts, &length) : "";
    const char** names = crdi_grow(p->ctx, p->dependencies, &p->dependency_capacity,
                                   p->dependency_count + 1, sizeof *names);
    if (!names) { return crdi_no_memory(p); }
    p->dependencies = names;
    uint32_t* known =
        crdi_grow(p->ctx, list->known, &list->known_capacity, list->known_count + 1, sizeof *known);
    if (!known) { return crdi_no_memory(p); }
    list->known = known;
    names[p->dependency_count] = crdi_keep_part(p, text, length);
    if (!names[p->dependency_count]) { return crdi_no_memory(p); }
    known[list->known_count++] = (uint32_t)p->dependency_count++;
    p->text_length = 0;
    return CRD_OK;
}

// Of an output; no such element means that it depends on all inputs.
static crd_status end_dependencies(crdi_parser* p, const crd_variable* v)
{
    crdi_unknown_list* list = &p->outputs;
    if (v->causality != CRD_OUTPUT) {
        list->known_count = p->known_before;
        return CRD_OK;
    }
    crdi_unknown_row* grown =
        crdi_grow(p->ctx, list->rows, &list->capacity, list->count + 1, sizeof *grown);
    if (!grown) { return crdi_no_memory(p); }
    list->rows = grown;
    list->rows[list->count++] = (crdi_unknown_row){.unknown = (uint32_t)p->variable + 1,
                                                   .line = v->line,
                                                   .first = (uint32_t)p->known_before,
                                                   .on_all = !p->has_dependencies};
    return CRD_OK;
}

crd_status crdi_end_variable(crdi_parser* p)
{
    crd_variable* v = &p->fmu->variables[p->variable];
    crd_status st = CRD_OK;
    if (!p->has_type) {
        return crdi_bad_at(p, v->line, CRD_E_FORMAT,
                           "variable '%s' has no type (Real, Integer, Boolean, String or "
                           "Enumeration)",
                           crdi_show(v->name).text);
    }
    if (crd_type_kind((crd_type)v->type) == CRD_BYTES) {
        CRD_TRY(keep_start_texts(p, v));
    } else if (v->start) {
        CRD_TRY(description_variables_check_start(p, v));
    }
    if (p->d->version == CRD_FMI_1) {
        set_defaults1(p, v);
        CRD_TRY(end_dependencies(p, v));
    } else {
        set_defaults(p, v);
    }
    if (v->type == CRD_CLOCK && v->causality == CRD_INPUT && !p->d->input_clock) {
        p->d->input_clock = v->name;
    }
    for (size_t i = (size_t)p->variable + 1; i < p->variable_count; i++) {
        crd_variable* alias = &p->fmu->variables[i];
        const crd_variable own = *alias;
        *alias = *v;
        alias->name = own.name;
        alias->description = own.description;
        alias->line = own.line;
        alias->alias_of = own.alias_of;
    }
fail:
    return st;
}
