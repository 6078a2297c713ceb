// The rules for the variables of a description.
#include "dcp/description/rules.h"

#include <math.h>
#include <string.h>

// ---- start values ------------------------------------------------------------------------------

// A value of the variable's type, as a double.
static bool number_fits(uint8_t type, const char* s, size_t n, double* value)
{
    int64_t integer = 0;
    const crd_dcp_slot slot = {.type = type, .count = 1, .real = value, .integer = &integer};
    if (!crdi_dcp_parse_number(type, s, n, value, &integer)) { return false; }
    *value = crdi_dcp_slot_number(&slot, 0);
    return true;
}

static bool hex_fits(const char* s, size_t* bytes)
{
    const size_t n = strspn(s, "0123456789abcdefABCDEF");
    *bytes = n / 2;
    return n % 2 == 0 && !s[n];
}

// How many elements there are when everything has its start value; 0: more than a PDU can carry.
static uint64_t element_count(const crdi_dcp_checker* c, const crd_dcp_variable* v)
{
    const uint64_t most = CRDI_DCP_MAX_PAYLOAD / crdi_dcp_size_of((crd_dcp_data_type)v->type);
    uint64_t count = 1;
    for (int i = 0; i < v->rank; i++) {
        uint64_t size = v->dimensions[i];
        if (v->is_linked[i]) {
            const int k = crdi_dcp_look_up(c->by_vr, c->d->variable_count, v->linked[i]);
            const char* start = k >= 0 ? crdi_dcp_plain(c->d->variables[k].start) : "";
            size_t n = 0;
            const char* s = crdi_dcp_word(&start, &n);
            if (!s || !crdi_parse_uint64(s, n, &size)) { size = 1; }
        }
        if (__builtin_mul_overflow(count, size, &count) || count > most) { return 0; }
    }
    return count;
}

static void rules_variables_check_numbers(crdi_dcp_checker* c, const crd_dcp_variable* v,
                                          uint64_t elements)
{
    const char* rest = v->start;
    size_t n = 0;
    uint64_t count = 0;
    bool outside = false;
    for (const char* s = crdi_dcp_word(&rest, &n); s; s = crdi_dcp_word(&rest, &n), count++) {
        double value = 0;
        if (!number_fits(v->type, s, n, &value)) {
            char word[64] = "";
            memcpy(word, s, n < sizeof word ? n : sizeof word - 1);
            crdi_dcp_found(c->f, "V10", v->line, "variable '%s': start = '%s', expected %s",
                           CLIP(v->name), CLIP(word),
                           v->type < CRD_DCP_FLOAT32 ? "a whole number in the range of its type"
                                                     : "a finite number in the range of its type");
            return;
        }
        outside = outside || value < v->min || value > v->max;
    }
    if (count == 0) {
        crdi_dcp_found(c->f, "V10", v->line, "variable '%s': start is empty, expected a number",
                       CLIP(v->name));
    } else if (elements && count != elements) {
        crdi_dcp_found(c->f, "V11", v->line,
                       "variable '%s': %llu start values for %llu elements, expected as many",
                       CLIP(v->name), (unsigned long long)count, (unsigned long long)elements);
    }
    if (outside) {
        crdi_dcp_found(c->f, "V24", v->line,
                       "variable '%s': start = '%s' lies outside of min and max", CLIP(v->name),
                       CLIP(v->start));
    }
}

static void rules_variables_check_start(crdi_dcp_checker* c, const crd_dcp_variable* v,
                                        uint64_t elements)
{
    if (!v->start) {
        if (v->causality == CRD_OUTPUT) {
            crdi_dcp_found(c->f, "V29", v->line,
                           "output '%s' has no start: what it sends before its first step is not "
                           "known",
                           CLIP(v->name));
        } else if (v->type < CRD_DCP_STRING) {
            crdi_dcp_found(c->f, "V08", v->line, "variable '%s' has no start, expected a value",
                           CLIP(v->name));
        } else {
            crdi_dcp_found(c->f, "V09", v->line,
                           "variable '%s' has no start, expected \"\" at least", CLIP(v->name));
        }
        return;
    }
    if (v->type < CRD_DCP_STRING) {
        rules_variables_check_numbers(c, v, elements);
        return;
    }
    size_t length = strlen(v->start);
    if (v->type == CRD_DCP_BINARY && !hex_fits(v->start, &length)) {
        crdi_dcp_found(c->f, "V10", v->line,
                       "variable '%s': start = '%s', expected pairs of hexadecimal digits",
                       CLIP(v->name), CLIP(v->start));
    } else if (length > v->max_size) {
        crdi_dcp_found(c->f, "V30", v->line,
                       "variable '%s': a start of %zu bytes, expected at most maxSize = %u",
                       CLIP(v->name), length, v->max_size);
    }
}

// ---- variables ---------------------------------------------------------------------------------

static bool limit_fits(uint8_t type, double x)
{
    double least, most;
    if (isnan(x) || crdi_dcp_is_bytes(type)) { return true; } // not given
    crdi_dcp_range(type, &least, &most);
    return x >= least && x <= most && (crdi_dcp_is_real(type) || !(x < floor(x) || x > floor(x)));
}

static void rules_variables_check_limits(crdi_dcp_checker* c, const crd_dcp_variable* v)
{
    const struct {
        const char* name;
        double value;
    } all[] = {{"min", v->min}, {"max", v->max}, {"gradient", v->gradient}};
    for (size_t i = 0; i < 3; i++) {
        if (!limit_fits(v->type, all[i].value)) {
            crdi_dcp_found(c->f, "V33", v->line, "variable '%s': %s = %g, expected a value of %s",
                           CLIP(v->name), all[i].name, all[i].value,
                           crd_dcp_data_type_name(v->type));
        }
    }
    const struct {
        const char* name;
        double value;
    } others[] = {{"nominal", v->nominal}, {"preEdge", v->pre_edge}, {"postEdge", v->post_edge}};
    for (size_t i = 0; i < 3; i++) {
        if (isinf(others[i].value)) {
            crdi_dcp_found(c->f, "V33", v->line, "variable '%s': %s = %g, expected a finite number",
                           CLIP(v->name), others[i].name, others[i].value);
        }
    }
    if (v->min > v->max) {
        crdi_dcp_found(c->f, "V23", v->line, "variable '%s': min = %g, expected at most max = %g",
                       CLIP(v->name), v->min, v->max);
    }
    if (v->pre_edge < 0 || v->post_edge < 0) {
        crdi_dcp_found(c->f, "V34", v->line, "variable '%s': %s = %g, expected a time of 0 or more",
                       CLIP(v->name), v->pre_edge < 0 ? "preEdge" : "postEdge",
                       v->pre_edge < 0 ? v->pre_edge : v->post_edge);
    }
}

static void check_unit_of(crdi_dcp_checker* c, const crd_dcp_variable* v)
{
    if (!crdi_dcp_plain(v->unit)[0]) { return; }
    const int32_t i = crdi_map_find(&c->units, v->unit);
    if (i < 0) {
        crdi_dcp_found(c->f, "V26", v->line, "variable '%s': unit '%s' is not defined",
                       CLIP(v->name), CLIP(v->unit));
        return;
    }
    const crd_dcp_unit* u = &c->d->units[i];
    const char* shown = crdi_dcp_plain(v->display_unit);
    // nobody has so many; looking through them for each variable would take its time
    bool found = !shown[0] || strcmp(shown, v->unit) == 0 || u->display_count > 100;
    for (int k = 0; k < u->display_count && !found; k++) {
        found = strcmp(crdi_dcp_plain(u->displays[k].name), shown) == 0;
    }
    if (!found) {
        crdi_dcp_found(c->f, "V26", v->line,
                       "variable '%s': display unit '%s' is not defined for unit '%s'",
                       CLIP(v->name), CLIP(shown), CLIP(v->unit));
    }
}

static void check_dependencies(crdi_dcp_checker* c, const crd_dcp_variable* v,
                               const crd_dcp_dependency* all, int count)
{
    for (int i = 0; i < count; i++) {
        if (crdi_dcp_look_up(c->by_vr, c->d->variable_count, all[i].vr) < 0) {
            crdi_dcp_found(c->f, "V25", v->line,
                           "output '%s' depends on value reference %llu, which no variable has",
                           CLIP(v->name), (unsigned long long)all[i].vr);
        }
    }
}

static void rules_variables_check_output(crdi_dcp_checker* c, const crd_dcp_variable* v)
{
    const char* name = crdi_dcp_plain(v->name);
    if (v->default_steps < 1 || (!v->fixed_steps && v->min_steps < 1)) {
        crdi_dcp_found(c->f, "V14", v->line, "output '%s': %s = 0, expected at least 1", CLIP(name),
                       v->default_steps < 1 ? "defaultSteps" : "minSteps");
    }
    if (!v->fixed_steps && v->max_steps <= v->min_steps) {
        crdi_dcp_found(c->f, "V13", v->line,
                       "output '%s': maxSteps = %u, expected more than minSteps = %u", CLIP(name),
                       v->max_steps, v->min_steps);
    } else if (!v->fixed_steps &&
               (v->default_steps < v->min_steps || v->default_steps > v->max_steps)) {
        crdi_dcp_found(c->f, "V35", v->line, "output '%s': defaultSteps = %u, expected %u to %u",
                       CLIP(name), v->default_steps, v->min_steps, v->max_steps);
    }
    if (v->initialization && v->has_run_dependencies) {
        crdi_dcp_found(c->f, "V15", v->line,
                       "output '%s': initialization = true with dependencies for Run, expected "
                       "none as it stays as it was initialised",
                       CLIP(name));
    }
    if (v->has_max_missed) {
        crdi_dcp_found(c->f, "V16", v->line,
                       "output '%s' has maxConsecMissedPdus, expected it on inputs and parameters",
                       CLIP(name));
    }
    if (v->has_initial_dependencies) {
        check_dependencies(c, v, v->initial_dependencies, v->initial_dependency_count);
    }
    if (v->has_run_dependencies) {
        check_dependencies(c, v, v->run_dependencies, v->run_dependency_count);
    }
}

static void check_structural(crdi_dcp_checker* c, const crd_dcp_variable* v)
{
    const char* start = crdi_dcp_plain(v->start);
    size_t n = 0;
    uint64_t value = 0;
    const char* s = crdi_dcp_word(&start, &n);
    if (v->type > CRD_DCP_UINT64) {
        crdi_dcp_found(c->f, "V17", v->line,
                       "structural parameter '%s' is a %s, expected an unsigned integer",
                       CLIP(v->name), crd_dcp_data_type_name(v->type));
    } else if (s && crdi_parse_uint64(s, n, &value) && value < 1) {
        crdi_dcp_found(c->f, "V17", v->line,
                       "structural parameter '%s': start = 0, expected at least 1", CLIP(v->name));
    }
}

// Elements, 0 where they cannot be told.
static uint64_t check_dimensions(crdi_dcp_checker* c, const crd_dcp_variable* v)
{
    if (v->rank == 0) { return 1; }
    if (v->type >= CRD_DCP_STRING || v->causality == CRD_STRUCTURAL_PARAMETER) {
        crdi_dcp_found(c->f, "V20", v->line, "variable '%s' has dimensions, expected none on a %s",
                       CLIP(v->name),
                       v->causality == CRD_STRUCTURAL_PARAMETER ? "structural parameter"
                                                                : crd_dcp_data_type_name(v->type));
        return 0;
    }
    if (v->rank < 0 || v->rank > CRDI_DCP_MAX_RANK) {
        crdi_dcp_found(c->f, "V22", v->line, "variable '%s': %d dimensions, expected at most %d",
                       CLIP(v->name), v->rank, CRDI_DCP_MAX_RANK);
        return 0;
    }
    bool known = true;
    for (int i = 0; i < v->rank; i++) {
        if (!v->is_linked[i] && v->dimensions[i] < 1) {
            crdi_dcp_found(c->f, "V18", v->line,
                           "variable '%s': dimension %d is 0, expected at least 1", CLIP(v->name),
                           i + 1);
            known = false;
        }
        const int k =
            v->is_linked[i] ? crdi_dcp_look_up(c->by_vr, c->d->variable_count, v->linked[i]) : -1;
        if (v->is_linked[i] &&
            (k < 0 || c->d->variables[k].causality != CRD_STRUCTURAL_PARAMETER)) {
            crdi_dcp_found(c->f, "V19", v->line,
                           "variable '%s': linkedVR = %llu, expected the value reference of a "
                           "structural parameter",
                           CLIP(v->name), (unsigned long long)v->linked[i]);
            known = false;
        }
    }
    const uint64_t count = known ? element_count(c, v) : 0;
    if (known && count == 0) {
        crdi_dcp_found(c->f, "V21", v->line,
                       "variable '%s' has more elements than one PDU can carry", CLIP(v->name));
    }
    return count;
}

static void check_variability(crdi_dcp_checker* c, const crd_dcp_variable* v)
{
    const bool data = v->causality == CRD_INPUT || v->causality == CRD_OUTPUT;
    const bool moving = v->variability == CRD_CONTINUOUS || v->variability == CRD_DISCRETE;
    const bool still = v->variability == CRD_FIXED || v->variability == CRD_TUNABLE;
    if (data ? !moving : !still) {
        crdi_dcp_found(c->f, "V07", v->line, "variable '%s': variability, expected %s",
                       CLIP(v->name),
                       data ? "continuous or discrete on an input or output"
                            : "fixed or tunable on a parameter, said explicitly");
    }
}

static void rules_variables_check_variable(crdi_dcp_checker* c, const crd_dcp_variable* v)
{
    const char* texts[] = {v->name,     v->description,   v->unit, v->display_unit,
                           v->quantity, v->declared_type, v->mime, v->start};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        crdi_dcp_check_text(c, texts[i], v->line, "a text of a variable");
    }
    if (!crdi_dcp_plain(v->name)[0]) {
        crdi_dcp_found(c->f, "V04", v->line, "a variable with an empty name, expected a name");
    }
    if (v->vr > INT32_MAX) {
        crdi_dcp_found(c->f, "V32", v->line,
                       "variable '%s': value reference %llu, which some masters cannot read",
                       CLIP(v->name), (unsigned long long)v->vr);
    }
    if (v->causality != CRD_INPUT && v->causality != CRD_OUTPUT && v->causality != CRD_PARAMETER &&
        v->causality != CRD_STRUCTURAL_PARAMETER) {
        crdi_dcp_found(c->f, "V05", v->line,
                       "variable '%s' is none of Input, Output, Parameter and StructuralParameter",
                       CLIP(v->name));
        return;
    }
    check_variability(c, v);
    if (v->type >= CRD_DCP_DATA_TYPE_COUNT) {
        crdi_dcp_found(c->f, "V06", v->line, "variable '%s' has no data type", CLIP(v->name));
        return;
    }
    if (v->type >= CRD_DCP_STRING && v->max_size == UINT32_MAX) {
        crdi_dcp_found(c->f, "V31", v->line,
                       "variable '%s' has no maxSize, so that nobody knows how much to reserve",
                       CLIP(v->name));
    }
    rules_variables_check_start(c, v, check_dimensions(c, v));
    rules_variables_check_limits(c, v);
    check_unit_of(c, v);
    if (v->causality == CRD_OUTPUT) { rules_variables_check_output(c, v); }
    if (v->causality == CRD_STRUCTURAL_PARAMETER) { check_structural(c, v); }
}

void crdi_dcp_check_variables(crdi_dcp_checker* c)
{
    const crd_dcp_description* d = c->d;
    if (d->variable_count == 0) {
        crdi_dcp_found(c->f, "V01", d->lines.variables, "no variables, expected at least one");
    }
    crd_map names;
    crdi_map_init(&names, d->ctx);
    if (crdi_map_reserve(&names, (size_t)d->variable_count) < 0) { c->f->failed = true; }
    for (int i = 0; i < d->variable_count && !c->f->failed; i++) {
        const crd_dcp_variable* v = &d->variables[i];
        rules_variables_check_variable(c, v);
        if (!crdi_dcp_is_new(c, &names, v->name, i)) {
            crdi_dcp_found(c->f, "V02", v->line,
                           "a second variable '%s', expected another name; the first is in line %d",
                           CLIP(v->name),
                           d->variables[crdi_map_find(&names, crdi_dcp_plain(v->name))].line);
        }
    }
    crdi_map_clear(&names);
    for (int i = 1; i < d->variable_count; i++) {
        if (c->by_vr[i].vr == c->by_vr[i - 1].vr) {
            const crd_dcp_variable *a = &d->variables[c->by_vr[i - 1].index],
                                   *b = &d->variables[c->by_vr[i].index];
            crdi_dcp_found(c->f, "V03", b->line,
                           "variable '%s' has the value reference %llu of '%s', expected another",
                           CLIP(b->name), (unsigned long long)b->vr, CLIP(a->name));
        }
    }
}
