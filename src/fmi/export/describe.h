/// The writer of modelDescription.xml and buildDescription.xml for a model, FMI 2.0 or 3.0. The
/// build's program `describe` and the library include it; it trusts the model's table.
#pragma once
#include "cardan/base.h"
#include "fmu.h"
#include "fmu_model.h"

/// What is described.
typedef struct description {
    const crd_model* of;
    int interfaces;      // FMU_AUTO ... FMU_BOTH
    const char* version; // of Cardan
    int source_count;
    const char* const* sources; // what has to be compiled, as named below sources/
} description;

static bool offers(const description* d, int which)
{
    return fmu_model_offers(d->of, d->interfaces, which);
}

static bool has_start(const crd_model_variable* v)
{
    return v->causality == CRD_INPUT || v->causality == CRD_PARAMETER || v->exact;
}

static bool is_state(const crd_model* model, int index)
{
    for (int i = 0; i < model->variable_count; i++) {
        const char* of = model->variables[i].derivative_of;
        if (of && strcmp(of, model->variables[index].name) == 0) { return true; }
    }
    return false;
}

// ---- XML ---------------------------------------------------------------------------------------

/// attribute="value", escaped.
static void put_text(FILE* f, const char* attribute, const char* text)
{
    fprintf(f, " %s=\"", attribute);
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", f);
            break;
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc(*text, f);
        }
    }
    fputc('"', f);
}

static void put_number(FILE* f, double x)
{
    if (!isfinite(x)) { // as XML Schema spells them
        fputs(isnan(x) ? "NaN" : x > 0 ? "INF" : "-INF", f);
        return;
    }
    char text[32]; // the shortest that reads back the same
    const bool whole = fabs(x) < 1e9 && x == floor(x);
    snprintf(text, sizeof text, "%.0f", x);
    for (int digits = 1; !whole && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) { break; }
    }
    fputs(text, f);
}

static void put_attribute(FILE* f, const char* attribute, double x)
{
    fprintf(f, " %s=\"", attribute);
    put_number(f, x);
    fputc('"', f);
}

static void put_flag(FILE* f, const char* attribute, bool on)
{
    if (on) { fprintf(f, " %s=\"true\"", attribute); }
}

static const char* const causality_names[] = {"local", "input", "output", "parameter",
                                              "calculatedParameter"};
static const char* const variability_names[] = {"continuous", "discrete", "tunable", "fixed",
                                                "constant"};

static bool is_initial_unknown(const crd_model* model, int index)
{
    const crd_model_variable* v = &model->variables[index];
    if (v->causality == CRD_CALCULATED_PARAMETER) { return true; }
    return !v->exact && (v->causality == CRD_OUTPUT || v->derivative_of || is_state(model, index));
}

static void put_common(FILE* f, const crd_model_variable* v)
{
    if (v->description) { put_text(f, "description", v->description); }
    put_text(f, "causality", causality_names[v->causality]);
    put_text(f, "variability", variability_names[v->variability]);
    if (v->causality != CRD_INPUT) {
        put_text(f, "initial", has_start(v) ? "exact" : "calculated");
    }
}

/// start="..." of numbers, elements first .. first + count - 1
static void put_start(FILE* f, const crd_model_variable* v, size_t first, size_t count)
{
    fputs(" start=\"", f);
    for (size_t k = first; k < first + count; k++) {
        const double x = v->starts ? v->starts[k] : v->start;
        if (k > first) { fputc(' ', f); }
        if (v->type == CRD_BOOLEAN) {
            fputs(x != 0 ? "true" : "false", f);
        } else {
            put_number(f, v->type == CRD_FLOAT32 ? (double)(float)x : x);
        }
    }
    fputc('"', f);
}

static void put_limits(FILE* f, const crd_model_variable* v)
{
    if (v->min == 0 && v->max == 0) { return; }
    if (v->min > -INFINITY) { put_attribute(f, "min", v->min); }
    if (v->max < INFINITY) { put_attribute(f, "max", v->max); }
}

/// Each unit and each enumeration is named once, by the first variable that has it.
static bool first_with(const crd_model* model, int index, bool enumeration)
{
    const crd_model_variable* v = &model->variables[index];
    if (enumeration ? !v->items : !v->unit) { return false; }
    for (int i = 0; i < index; i++) {
        const crd_model_variable* w = &model->variables[i];
        if (enumeration ? w->items == v->items : w->unit && !strcmp(w->unit, v->unit)) {
            return false;
        }
    }
    return true;
}

static const char* type_name(const crd_model* model,
                             const crd_model_variable* v) // of an enumeration
{
    for (int i = 0;; i++) {
        if (model->variables[i].items == v->items) { return model->variables[i].name; }
    }
}

/// The model's own definition of a unit, or what its name says. false: only the name is known.
static bool find_unit(const crd_model* model, const char* name, crd_dimension* out)
{
    for (int i = 0; i < model->unit_count; i++) {
        const crd_model_unit* m = &model->units[i];
        const int8_t* e = m->exponents;
        if (strcmp(m->name, name) != 0) { continue; }
        *out =
            (crd_dimension){e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7], m->factor, m->offset};
        return m->has_base;
    }
    return crd_dimension_parse(name, out);
}

static void put_units(FILE* f, const description* d)
{
    static const char* const names[8] = {"kg", "m", "s", "A", "K", "mol", "cd", "rad"};
    const crd_model* model = d->of;
    bool open = false;
    for (int i = 0; i < model->variable_count; i++) {
        if (!first_with(model, i, false)) { continue; }
        if (!open) { fputs("  <UnitDefinitions>\n", f); }
        open = true;
        crd_dimension u;
        fputs("    <Unit", f);
        put_text(f, "name", model->variables[i].unit);
        if (!find_unit(model, model->variables[i].unit, &u)) {
            fputs("/>\n", f);
            continue;
        }
        fputs("><BaseUnit", f);
        const int exponents[8] = {u.kg, u.m, u.s, u.A, u.K, u.mol, u.cd, u.rad};
        for (int k = 0; k < 8; k++) {
            if (exponents[k]) { fprintf(f, " %s=\"%d\"", names[k], exponents[k]); }
        }
        if (u.factor != 1) { put_attribute(f, "factor", u.factor); }
        if (u.offset != 0) { put_attribute(f, "offset", u.offset); }
        fputs("/></Unit>\n", f);
    }
    if (open) { fputs("  </UnitDefinitions>\n", f); }
}

static void put_enumerations(FILE* f, const description* d, int version)
{
    const crd_model* model = d->of;
    bool open = false;
    for (int i = 0; i < model->variable_count; i++) {
        const crd_model_variable* v = &model->variables[i];
        if (!first_with(model, i, true)) { continue; }
        if (!open) { fputs("  <TypeDefinitions>\n", f); }
        open = true;
        fputs(version == 2 ? "    <SimpleType" : "    <EnumerationType", f);
        put_text(f, "name", v->name);
        fputs(version == 2 ? "><Enumeration>\n" : ">\n", f);
        for (int k = 0; v->items[k]; k++) {
            fputs("      <Item", f);
            put_text(f, "name", v->items[k]);
            fprintf(f, " value=\"%d\"/>\n", k + 1);
        }
        fputs(version == 2 ? "    </Enumeration></SimpleType>\n" : "    </EnumerationType>\n", f);
    }
    if (open) { fputs("  </TypeDefinitions>\n", f); }
}

static void put_log_categories(FILE* f)
{
    fputs("  <LogCategories>\n", f);
    for (size_t i = 0; i < sizeof fmu_categories / sizeof *fmu_categories; i++) {
        fprintf(f, "    <Category name=\"%s\"/>\n", fmu_categories[i]);
    }
    fputs("  </LogCategories>\n", f);
}

static void put_experiment(FILE* f, const description* d)
{
    const crd_model* model = d->of;
    fputs("  <DefaultExperiment startTime=\"0\"", f);
    put_attribute(f, "stopTime", model->default_stop);
    put_attribute(f, "stepSize", model->default_step);
    fputs("/>\n", f);
}

/// The lists of ModelStructure.
enum { OUTPUTS, DERIVATIVES, INITIAL };

static bool is_unknown(const description* d, int index, int list)
{
    const crd_model* model = d->of;
    const crd_model_variable* v = &model->variables[index];
    return list == INITIAL       ? is_initial_unknown(model, index)
           : list == DERIVATIVES ? v->derivative_of && offers(d, FMU_EXCHANGE)
                                 : v->causality == CRD_OUTPUT;
}

static void put_head(FILE* f, const description* d, int version)
{
    const crd_model* model = d->of;
    char token[40], generator[64];
    fmu_token(model, token);
    snprintf(generator, sizeof generator, "Cardan %s", d->version);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<fmiModelDescription", f);
    put_text(f, "fmiVersion", version == 2 ? "2.0" : "3.0");
    put_text(f, "modelName", model->name);
    put_text(f, version == 2 ? "guid" : "instantiationToken", token);
    if (model->description) { put_text(f, "description", model->description); }
    put_text(f, "generationTool", generator);
    put_text(f, "variableNamingConvention", "flat");
    if (version == 2) {
        put_attribute(f, "numberOfEventIndicators",
                      offers(d, FMU_EXCHANGE) ? model->indicator_count : 0);
    }
    fputs(">\n", f);
}

/// Does the known `k` act on the unknown `i`? At the start parameters and all that is exact act as
/// well. A state that is an output depends on itself.
static bool depends(const crd_model* model, int i, int k, bool initial)
{
    const crd_model_variable* known = &model->variables[k];
    if (initial && k != i && (known->causality == CRD_PARAMETER || known->exact)) { return true; }
    const bool states = !initial && model->derivatives;
    if (known->causality != CRD_INPUT && !(states && is_state(model, k))) { return false; }
    if (states && is_state(model, i)) { return k == i; }
    const char* list =
        initial && model->variables[i].starts_with_all ? NULL : model->variables[i].depends;
    const size_t n = strlen(known->name);
    for (const char* d = list ? list : ""; *d;) {
        const size_t length = strcspn(d, " ");
        if (length == n && memcmp(d, known->name, n) == 0) { return true; }
        d += length + strspn(d + length, " ");
    }
    return list == NULL;
}

/// Only the elements with the same number belong to each other; a state depends on itself.
static bool element_by_element(const crd_model* model, int i, int k)
{
    const crd_model_variable *v = &model->variables[i], *w = &model->variables[k];
    return k == i || (v->by_element && w->causality == CRD_INPUT && v->size && w->size == v->size);
}

static bool exists(const crd_model_variable* v, int version)
{
    return version == 3 || v->type != CRD_BINARY;
}

/// What belongs to the type of a variable; `state` is what it is the derivative of, -1: none.
static void put_type(FILE* f, const description* d, int index, int state)
{
    const crd_model* model = d->of;
    const crd_model_variable* v = &model->variables[index];
    if (v->type == CRD_ENUMERATION) { put_text(f, "declaredType", type_name(model, v)); }
    if (v->unit && v->type <= CRD_FLOAT32) { put_text(f, "unit", v->unit); }
    if (v->type < CRD_BOOLEAN) { put_limits(f, v); }
    if (v->nominal > 0 && v->type <= CRD_FLOAT32) { put_attribute(f, "nominal", v->nominal); }
    if (state >= 0) { fprintf(f, " derivative=\"%d\"", state); }
    put_flag(f, "reinit", offers(d, FMU_EXCHANGE) && model->has_events && is_state(model, index));
}

/// What both interface types can do.
static void put_abilities(FILE* f, const crd_model* model, int version)
{
    const bool two = version == 2;
    put_flag(f, two ? "canGetAndSetFMUstate" : "canGetAndSetFMUState", !model->stateless);
    put_flag(f, two ? "canSerializeFMUstate" : "canSerializeFMUState",
             !model->pinned && !model->stateless);
    put_flag(f, two ? "providesDirectionalDerivative" : "providesDirectionalDerivatives",
             model->partial != NULL);
    put_flag(f, "providesAdjointDerivatives", !two && model->partial != NULL);
}

// ---- FMI 2.0 -----------------------------------------------------------------------------------

static int scalars(const crd_model_variable* v)
{
    return !exists(v, 2) ? 0 : v->size ? (int)v->size : 1;
}

static int first_index(const crd_model* model,
                       int variable) // of its first scalar in the file, counted from 1
{
    int n = 1;
    for (int i = 0; i < variable; i++) {
        n += scalars(&model->variables[i]);
    }
    return n;
}

static void put_variable_2(FILE* f, const description* d, int index, int element)
{
    const crd_model* model = d->of;
    const crd_model_variable* v = &model->variables[index];
    static const char* const names[] = {"Real",    "Real",        "Integer", "Integer", "Integer",
                                        "Integer", "Integer",     "Integer", "Integer", "Integer",
                                        "Boolean", "Enumeration", "String"};
    char name[256];
    snprintf(name, sizeof name, v->size ? "%s[%d]" : "%s", v->name, element + 1);
    fputs("    <ScalarVariable", f);
    put_text(f, "name", name);
    fprintf(f, " valueReference=\"%u\"", (unsigned)index | (unsigned)element << 16);
    put_common(f, v);
    fprintf(f, "><%s", names[v->type]);
    const int state = crd_model_state_of(model, index);
    put_type(f, d, index, state < 0 ? -1 : first_index(model, state) + element);
    if (has_start(v) && v->type == CRD_STRING) {
        put_text(f, "start", v->start_text ? v->start_text : "");
    } else if (has_start(v)) {
        put_start(f, v, (size_t)element, 1);
    }
    fputs("/></ScalarVariable>\n", f);
}

static void put_unknowns_2(FILE* f, const description* d, int list)
{
    const crd_model* model = d->of;
    bool open = false;
    const char* name = ((const char*[]){"Outputs", "Derivatives", "InitialUnknowns"})[list];
    for (int i = 0; i < model->variable_count; i++) {
        const crd_model_variable* v = &model->variables[i];
        if (!is_unknown(d, i, list)) { continue; }
        for (int e = 0; e < scalars(v); e++) {
            if (!open) { fprintf(f, "    <%s>\n", name); }
            open = true;
            fprintf(f, "      <Unknown index=\"%d\" dependencies=\"", first_index(model, i) + e);
            const char* space = "";
            for (int k = 0; k < model->variable_count; k++) {
                if (!depends(model, i, k, list == INITIAL)) { continue; }
                for (int s = 0; s < scalars(&model->variables[k]); s++) {
                    if (s != e && element_by_element(model, i, k)) { continue; }
                    fprintf(f, "%s%d", space, first_index(model, k) + s);
                    space = " ";
                }
            }
            fputs("\"/>\n", f);
        }
    }
    if (open) { fprintf(f, "    </%s>\n", name); }
}

static void put_sources_2(FILE* f, const description* d, const char* element)
{
    fputs(">\n    <SourceFiles>\n", f);
    for (int i = 0; i < d->source_count; i++) {
        fputs("      <File", f);
        put_text(f, "name", d->sources[i]);
        fputs("/>\n", f);
    }
    fprintf(f, "    </SourceFiles>\n  </%s>\n", element);
}

static void put_exchange_2(FILE* f, const description* d)
{
    const crd_model* model = d->of;
    fputs("  <ModelExchange", f);
    put_text(f, "modelIdentifier", model->name);
    put_flag(f, "completedIntegratorStepNotNeeded", !model->completed);
    put_flag(f, "canNotUseMemoryManagementFunctions", true);
    put_abilities(f, model, 2);
    put_sources_2(f, d, "ModelExchange");
}

static void put_cosimulation_2(FILE* f, const description* d)
{
    const crd_model* model = d->of;
    fputs("  <CoSimulation", f);
    put_text(f, "modelIdentifier", model->name);
    put_flag(f, "canHandleVariableCommunicationStepSize", !model->fixed_step);
    put_flag(f, "canInterpolateInputs", model->max_input_derivative > 0);
    if (model->max_output_derivative > 0) {
        put_attribute(f, "maxOutputDerivativeOrder", model->max_output_derivative);
    }
    put_flag(f, "canNotUseMemoryManagementFunctions", true);
    put_abilities(f, model, 2);
    put_sources_2(f, d, "CoSimulation");
}

static void describe_2(FILE* f, const description* d)
{
    const crd_model* model = d->of;
    put_head(f, d, 2);
    if (offers(d, FMU_EXCHANGE)) { put_exchange_2(f, d); }
    if (offers(d, FMU_COSIMULATION)) { put_cosimulation_2(f, d); }
    put_units(f, d);
    put_enumerations(f, d, 2);
    put_log_categories(f);
    put_experiment(f, d);
    fputs("  <ModelVariables>\n", f);
    for (int i = 0; i < model->variable_count; i++) {
        for (int e = 0; e < scalars(&model->variables[i]); e++) {
            put_variable_2(f, d, i, e);
        }
    }
    fputs("  </ModelVariables>\n  <ModelStructure>\n", f);
    put_unknowns_2(f, d, OUTPUTS);
    put_unknowns_2(f, d, DERIVATIVES);
    put_unknowns_2(f, d, INITIAL);
    fputs("  </ModelStructure>\n</fmiModelDescription>\n", f);
}

// ---- FMI 3.0 -----------------------------------------------------------------------------------

static void put_variable_3(FILE* f, const description* d, int index)
{
    const crd_model* model = d->of;
    const crd_model_variable* v = &model->variables[index];
    static const char* const names[] = {"Float64", "Float32",     "Int8",   "UInt8", "Int16",
                                        "UInt16",  "Int32",       "UInt32", "Int64", "UInt64",
                                        "Boolean", "Enumeration", "String", "Binary"};
    const bool bytes = v->type == CRD_STRING || v->type == CRD_BINARY;
    const size_t count = v->size ? v->size : 1;
    fprintf(f, "    <%s", names[v->type]);
    put_text(f, "name", v->name);
    fprintf(f, " valueReference=\"%d\"", index);
    put_common(f, v);
    put_type(f, d, index, crd_model_state_of(model, index));
    if (v->type == CRD_BINARY) { put_attribute(f, "maxSize", (double)v->capacity); }
    if (has_start(v) && !bytes) { put_start(f, v, 0, count); }
    put_flag(f, "intermediateUpdate",
             v->causality == CRD_INPUT && v->derivatives && model->max_input_derivative > 0);
    if (!v->size && !(bytes && has_start(v))) {
        fputs("/>\n", f);
        return;
    }
    fputs(">", f);
    if (v->size) { fprintf(f, "<Dimension start=\"%zu\"/>", v->size); }
    for (size_t k = 0; bytes && has_start(v) && k < count; k++) {
        fputs("<Start", f);
        put_text(f, "value", v->start_text ? v->start_text : "");
        fputs("/>", f);
    }
    fprintf(f, "</%s>\n", names[v->type]);
}

static void put_unknowns_3(FILE* f, const description* d, int list)
{
    const crd_model* model = d->of;
    static const char* const names[] = {"Output", "ContinuousStateDerivative", "InitialUnknown"};
    for (int i = 0; i < model->variable_count; i++) {
        if (!is_unknown(d, i, list)) { continue; }
        fprintf(f, "    <%s valueReference=\"%d\" dependencies=\"", names[list], i);
        const char* space = "";
        for (int k = 0; k < model->variable_count; k++) {
            if (!depends(model, i, k, list == INITIAL)) { continue; }
            fprintf(f, "%s%d", space, k);
            space = " ";
        }
        fputs("\"/>\n", f);
    }
}

static void put_exchange_3(FILE* f, const description* d)
{
    const crd_model* model = d->of;
    fputs("  <ModelExchange", f);
    put_text(f, "modelIdentifier", model->name);
    put_flag(f, "needsCompletedIntegratorStep", model->completed != NULL);
    put_abilities(f, model, 3);
    fputs("/>\n", f);
}

static void put_cosimulation_3(FILE* f, const description* d)
{
    const crd_model* model = d->of;
    const bool intermediate = model->max_input_derivative > 0;
    fputs("  <CoSimulation", f);
    put_text(f, "modelIdentifier", model->name);
    put_flag(f, "canHandleVariableCommunicationStepSize", !model->fixed_step);
    if (model->fixed_step) { put_attribute(f, "fixedInternalStepSize", model->default_step); }
    if (model->max_output_derivative > 0) {
        put_attribute(f, "maxOutputDerivativeOrder", model->max_output_derivative);
    }
    put_flag(f, "providesIntermediateUpdate", intermediate);
    put_flag(f, "mightReturnEarlyFromDoStep", model->has_events);
    put_flag(f, "hasEventMode", model->has_events);
    put_abilities(f, model, 3);
    fputs("/>\n", f);
}

static void describe_3(FILE* f, const description* d)
{
    const crd_model* model = d->of;
    put_head(f, d, 3);
    if (offers(d, FMU_EXCHANGE)) { put_exchange_3(f, d); }
    if (offers(d, FMU_COSIMULATION)) { put_cosimulation_3(f, d); }
    const int indicators = offers(d, FMU_EXCHANGE) ? model->indicator_count : 0;
    put_units(f, d);
    put_enumerations(f, d, 3);
    put_log_categories(f);
    put_experiment(f, d);
    fprintf(f,
            "  <ModelVariables>\n"
            "    <Float64 name=\"time\" valueReference=\"%d\" causality=\"independent\" "
            "variability=\"continuous\"/>\n",
            model->variable_count);
    for (int i = 0; i < model->variable_count; i++) {
        put_variable_3(f, d, i);
    }
    for (int i = 1; i <= indicators; i++) { // FMI 3.0 wants variables for them
        fprintf(f,
                "    <Float64 name=\"event_indicator_%d\" valueReference=\"%d\" "
                "causality=\"local\" variability=\"continuous\" initial=\"calculated\"/>\n",
                i, model->variable_count + i);
    }
    fputs("  </ModelVariables>\n  <ModelStructure>\n", f);
    put_unknowns_3(f, d, OUTPUTS);
    put_unknowns_3(f, d, DERIVATIVES);
    put_unknowns_3(f, d, INITIAL);
    for (int i = 1; i <= indicators; i++) {
        fprintf(f, "    <EventIndicator valueReference=\"%d\"/>\n", model->variable_count + i);
    }
    fputs("  </ModelStructure>\n</fmiModelDescription>\n", f);
}

static void build_3(FILE* f, const description* d)
{
    const crd_model* model = d->of;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
          "<fmiBuildDescription fmiVersion=\"3.0\">\n  <BuildConfiguration",
          f);
    put_text(f, "modelIdentifier", model->name);
    fputs(">\n    <SourceFileSet language=\"C11\">\n", f);
    for (int i = 0; i < d->source_count; i++) {
        fputs("      <SourceFile", f);
        put_text(f, "name", d->sources[i]);
        fputs("/>\n", f);
    }
    fputs("    </SourceFileSet>\n", f);
    for (const char* name = model->libraries ? model->libraries : ""; *name;) {
        const size_t n = strcspn(name, " ");
        fprintf(f, "    <Library name=\"%.*s\" external=\"true\"/>\n", (int)n, name);
        name += n + strspn(name + n, " ");
    }
    fputs("    <Library name=\"m\"/>\n  </BuildConfiguration>\n</fmiBuildDescription>\n", f);
}
