// Writes modelDescription.xml of a model for FMI 2.0 or 3.0, and buildDescription.xml for the
// latter. A program of the build host: compiled together with the model, run once, never shipped.
//
//   describe 2|3 FOLDER SOURCE...     the sources are named in the descriptions
#include "describe.h"

#define model fmu_model

/// `variable` NULL: the model itself
static _Noreturn void refuse(const char* variable, const char* what)
{
    fprintf(stderr, "describe: model %s%s%s: %s\n", model->name, variable ? ", variable " : "",
            variable ? variable : "", what);
    exit(1);
}

// ---- checks ------------------------------------------------------------------------------------

static int find_variable(const char* name, size_t length)
{
    for (int i = 0; i < model->variable_count; i++) {
        const char* other = model->variables[i].name;
        if (strlen(other) == length && memcmp(other, name, length) == 0) { return i; }
    }
    return -1;
}

static _Noreturn void refuse_unit(const crd_model_variable* v)
{
    char text[200];
    snprintf(text, sizeof text, "the unit %.100s is not known, expected factors as in N.m/s2",
             v->unit);
    refuse(v->name, text);
}

/// XML has no place for control characters.
static bool printable(const char* text)
{
    for (; text && *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c < ' ' || c == 0x7f) { return false; }
    }
    return true;
}

static void check_limits(const crd_model_variable* v)
{
    if (v->min == 0 && v->max == 0) { return; }
    if (!(v->min <= v->max)) {
        refuse(v->name, "min is above max; INFINITY and -INFINITY stand for no limit");
    }
    const bool number = v->type < CRD_BOOLEAN || v->type == CRD_ENUMERATION;
    for (size_t k = 0; number && has_start(v) && k < (v->size ? v->size : 1); k++) {
        const double x = v->starts ? v->starts[k] : v->start;
        if (x < v->min || x > v->max) {
            refuse(v->name, "the start value is not within min to max");
        }
    }
}

static void check_variable(int index, int version)
{
    const crd_model_variable* v = &model->variables[index];
    const size_t bytes = crd_model_stride(v) * (v->size ? v->size : 1);
    crd_dimension u;
    if (!*v->name || !printable(v->name) || !printable(v->description)) {
        refuse(v->name, "name and description have no control characters, and a "
                        "name is not empty");
    }
    if (find_variable(v->name, strlen(v->name)) != index) { refuse(v->name, "the name is twice"); }
    if (v->offset + bytes > model->size) { refuse(v->name, "the field is outside of the struct"); }
    if (v->type == CRD_CLOCK) { refuse(v->name, "clocks cannot be exported"); }
    if ((v->type == CRD_STRING || v->type == CRD_BINARY) && v->capacity == 0) {
        refuse(v->name, "strings and binaries need a capacity");
    }
    if (v->type == CRD_ENUMERATION && !v->items) { refuse(v->name, "the items are missing"); }
    if (v->type > CRD_FLOAT32 && v->variability == CRD_CONTINUOUS) {
        refuse(v->name, "only Float64 and Float32 can be continuous");
    }
    if (v->causality == CRD_PARAMETER && v->variability != CRD_FIXED &&
        v->variability != CRD_TUNABLE) {
        refuse(v->name, "a parameter is fixed or tunable");
    }
    if (v->unit && !crd_dimension_parse(v->unit, &u)) { refuse_unit(v); }
    check_limits(v);
    if (v->derivatives && (v->type != CRD_FLOAT64 || v->size)) {
        refuse(v->name, "only scalar Float64 variables have derivatives");
    }
    if (version == 2 && (v->size > 0xffff || index > 0xffff)) {
        refuse(v->name, "FMI 2.0 export has room for 65536 variables and elements");
    }
    for (const char* d = v->depends ? v->depends : ""; *d;) {
        const size_t n = strcspn(d, " ");
        const int k = find_variable(d, n);
        if (k < 0 || (model->variables[k].causality != CRD_INPUT && !is_state(model, k))) {
            refuse(v->name, "depends on something that is no input and no state");
        }
        d += n + strspn(d + n, " ");
    }
}

static void check_derivative(int index)
{
    const crd_model_variable* v = &model->variables[index];
    if (v->nominal < 0 || !isfinite(v->nominal)) { refuse(v->name, "nominal has to be > 0"); }
    if (!v->derivative_of) { return; }
    const int state = crd_model_state_of(model, index);
    if (state < 0) { refuse(v->name, "derivative of something that does not exist"); }
    const crd_model_variable* x = &model->variables[state];
    if (!model->derivatives) { refuse(v->name, "derivative_of without derivatives()"); }
    for (int i = 0; i < 2; i++) {
        const crd_model_variable* w = i ? x : v;
        if (w->type != CRD_FLOAT64 || w->variability != CRD_CONTINUOUS ||
            (w->causality != CRD_LOCAL && w->causality != CRD_OUTPUT)) {
            refuse(w->name, "states and derivatives are continuous Float64, local or output");
        }
    }
    if (v->size != x->size) { refuse(v->name, "the state has another size"); }
    if (v->exact) { refuse(v->name, "a derivative is worked out, it cannot be exact"); }
    if (v->size && model->partial) { refuse(v->name, "partial() is for scalars only"); }
    for (int i = 0; i < index; i++) {
        if (crd_model_state_of(model, i) == state) {
            refuse(v->name, "the state has a derivative already");
        }
    }
}

static void check_equations(void)
{
    const bool ode = model->derivatives != NULL;
    if (!ode && fmu_offers(model, FMU_EXCHANGE)) {
        refuse(NULL, "Model Exchange needs derivatives()");
    }
    if (!ode && (model->indicators || model->completed)) {
        refuse(NULL, "indicators and completed belong to models with derivatives()");
    }
    if ((model->indicator_count > 0) != (model->indicators != NULL) || model->indicator_count < 0) {
        refuse(NULL, "indicator_count and indicators() do not fit");
    }
    if ((model->indicators || model->completed) && !model->has_events) {
        refuse(NULL, "indicators and completed need has_events");
    }
    for (int i = 0; i < model->variable_count; i++) {
        check_derivative(i);
        if (model->indicator_count &&
            strncmp(model->variables[i].name, "event_indicator_", 16) == 0) {
            refuse(model->variables[i].name, "FMI 3.0 has the event indicators under such names");
        }
    }
}

/// The library is called after the target, and looked for under the name of the model.
static void check_name(const char* source)
{
    char file[300];
    snprintf(file, sizeof file, "fmu_%s.c", model->name);
    if (strncmp(source, "fmu_", 4) == 0 && strcmp(source, file) != 0) {
        refuse(NULL, "this name and that of cardan_add_fmu have to be the same");
    }
}

static void check_model(int version)
{
    for (int i = 0; i < model->variable_count; i++) {
        // Names are compared below.
        if (!model->variables[i].name) { refuse("", "the name is missing"); }
    }
    for (int i = 0; i < model->variable_count; i++) {
        check_variable(i, version);
    }
    if (model->has_events && !model->event) { refuse(NULL, "has_events without event()"); }
    if (!model->initialize || !model->outputs || (!model->step && !model->derivatives)) {
        refuse(NULL, "initialize, outputs, and step or derivatives have to be there");
    }
    if (!(model->default_step > 0) || !(model->default_stop > 0)) {
        refuse(NULL, "default_step and default_stop have to be > 0");
    }
    check_equations();
}

// ---- files -------------------------------------------------------------------------------------

static FILE* open_file(const char* folder, const char* name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE* f = fopen(path, "w");
    if (!f) {
        perror(path);
        exit(1);
    }
    return f;
}

static void close_file(FILE* f)
{
    if (ferror(f) || fclose(f) != 0) {
        perror("describe");
        exit(1);
    }
}

int main(int argc, char** argv)
{
    if (argc < 3 || (strcmp(argv[1], "2") != 0 && strcmp(argv[1], "3") != 0)) {
        fprintf(stderr, "usage: describe 2|3 FOLDER SOURCE...\n");
        return 2;
    }
    const int version = argv[1][0] - '0';
    const description d = {.of = model,
                           .interfaces = fmu_interfaces,
                           .version = CRD_VERSION,
                           .source_count = argc - 3,
                           .sources = (const char* const*)argv + 3};
    check_model(version);
    if (argc > 3) { check_name(argv[3]); }
    FILE* f = open_file(argv[2], "modelDescription.xml");
    if (version == 2) {
        describe_2(f, &d);
    } else {
        describe_3(f, &d);
    }
    close_file(f);
    if (version == 3) {
        f = open_file(argv[2], "sources/buildDescription.xml");
        build_3(f, &d);
        close_file(f);
    }
    return 0;
}
