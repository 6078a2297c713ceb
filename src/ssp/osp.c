// OspSystemStructure.xml of the Open Simulation Platform, into a system as an SSP is.
//   Simulators   units: `source` relative to the file; `stepSize` becomes a whole number of
//   BaseStepSize
//                (0.1 s unless given), as in libcosim
//   Connections  between variables, or groups of them by their OspModelDescription; which way
//   follows
//                from the causality in the FMUs, not from the order
//   Functions    LinearTransformation is gain and offset of the connection behind it; Sum and
//   VectorSum
//                are units of their own that run after all simulators, so that they add no delay
#include "cardan/model.h"
#include "shared/base_path.h"
#include "ssp/read.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 64 << 20, MOST_TERMS = 10000, MOST_DEPTH = 32 };

typedef enum direction { OTHER, INPUT, OUTPUT } direction;

typedef struct simulator {
    const char* name;
    const char *path, *model; // of its FMU; name of its model, "" unknown
    const crdi_xml_element* xml;
    crdi_xml *description, *groups; // NULL until somebody asks
    crd_map variables;              // name -> direction
    bool described;
} simulator;

typedef struct function {
    const char* name;
    const crdi_xml_element *xml, *in; // in: Variable that feeds a LinearTransformation
    double factor, offset;
    int unit; // of sums, -1: LinearTransformation
} function;

typedef struct osp {
    crdi_ssp_reader r;
    crdi_document d;
    const char* space;
    simulator* simulators;
    function* functions;
    crd_map simulator_map, function_map;
    int simulator_count, function_count, sum_count;
} osp;

// ---- sums --------------------------------------------------------------------------------------

typedef struct sum_model {
    crd_model base; // first: what the unit knows
    size_t inputs, dimension;
} sum_model;

typedef struct sum {
    size_t inputs, dimension;
    double values[]; // inputs, one vector after the other, then the output
} sum;

static crd_model_status sum_begin(void* self, const crd_model_host* host, double t)
{
    (void)t;
    sum* s = self;
    s->inputs = ((const sum_model*)host->model)->inputs;
    s->dimension = ((const sum_model*)host->model)->dimension;
    return CRD_MODEL_OK;
}

static void sum_outputs(void* self, double t)
{
    (void)t;
    sum* s = self;
    for (size_t j = 0; j < s->dimension; j++) { // out_j = sum_i in_ij
        double total = 0;
        for (size_t i = 0; i < s->inputs; i++) {
            total += s->values[i * s->dimension + j];
        }
        s->values[s->inputs * s->dimension + j] = total;
    }
}

static crd_model_status sum_step(void* self, const crd_model_host* host, double t, double h,
                                 double* reached)
{
    (void)self, (void)host, (void)t, (void)h, (void)reached;
    return CRD_MODEL_OK;
}

static crd_status whole_number(osp* o, const crdi_xml_element* e, const char* name, int64_t* out)
{
    const char* text = crdi_xml_get(e, name);
    if (text && crdi_parse_int64(text, strlen(text), out) && *out >= 1 && *out <= MOST_TERMS) {
        return CRD_OK;
    }
    return crdi_ssp_bad(&o->r, CRD_E_RANGE, &o->d, e, "%s = '%s', expected 1 to %d", name,
                        text ? crdi_show(text).text : "", MOST_TERMS);
}

// Variables are in[0], in[1] ... and out, of vectors in[0][0] ... and out[0] ...
static crd_status add_sum(osp* o, function* f, bool vector)
{
    crd_status st = CRD_OK;
    int64_t inputs = 1, dimension = 1;
    CRD_TRY(whole_number(o, f->xml, "inputCount", &inputs));
    if (vector) { CRD_TRY(whole_number(o, f->xml, "dimension", &dimension)); }
    const size_t n = (size_t)(inputs * dimension), all = n + (size_t)dimension;
    crd_arena* arena = &o->r.s->arena;
    if (all > 100 * MOST_TERMS) {
        return crdi_ssp_bad(&o->r, CRD_E_RANGE, &o->d, f->xml, "%zu terms are too many", all);
    }
    sum_model* m = crdi_arena_new(arena, 1, sizeof *m);
    crd_model_variable* rows = crdi_arena_new(arena, all, sizeof *rows);
    if (!m || !rows) { return CRD_E_MEMORY; }
    for (size_t k = 0; k < all; k++) {
        const size_t i = k / (size_t)dimension, j = k % (size_t)dimension;
        const char* name = k < n && vector ? crdi_arena_format(arena, "in[%zu][%zu]", i, j)
                           : k < n         ? crdi_arena_format(arena, "in[%zu]", i)
                           : vector        ? crdi_arena_format(arena, "out[%zu]", j)
                                           : "out";
        if (!name) { return CRD_E_MEMORY; }
        rows[k] = (crd_model_variable){.name = name,
                                       .type = CRD_FLOAT64,
                                       .causality = k < n ? CRD_INPUT : CRD_OUTPUT,
                                       .variability = CRD_CONTINUOUS,
                                       .offset = offsetof(sum, values) + k * sizeof(double)};
    }
    *m = (sum_model){.base = {.name = "sum",
                              .size = sizeof(sum) + all * sizeof(double),
                              .variables = rows,
                              .variable_count = (int)all,
                              .initialize = sum_begin,
                              .outputs = sum_outputs,
                              .step = sum_step},
                     .inputs = (size_t)inputs,
                     .dimension = (size_t)dimension};
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = f->name;
    u.source = CRD_UNIT_NATIVE;
    u.model = &m->base;
    u.place = (crd_place){o->d.shown, f->xml->line};
    CRD_TRY(crd_system_add_unit(o->r.s, &u, &f->unit));
    o->sum_count++;
fail:
    return st;
}

// ---- what the FMUs and their OSP descriptions say ----------------------------------------------

static crd_status parse_file(osp* o, const char* path, const char* entry, crdi_xml** out)
{
    crd_status st = CRD_OK;
    crdi_archive* a = NULL;
    char* text = NULL;
    size_t length = 0;
    crd_text file;
    crd_text_init(&file, o->r.ctx);
    if (!entry) {
        CRD_TRY(crdi_ssp_read_file(o->r.ctx, path, path, &file));
        CRD_TRY(crdi_xml_parse_lenient(o->r.ctx, file.data, file.length, path, NULL, 0, out));
        goto fail;
    }
    const crdi_archive_limits limits = {.max_unpacked = UINT64_MAX, .max_entries = 100000};
    CRD_TRY(crdi_archive_open(o->r.ctx, path, &limits, &a));
    const int32_t i = crdi_archive_find(a, entry);
    if (i < 0) { goto fail; } // *out stays NULL
    CRD_TRY(crdi_archive_read(a, i, MOST_BYTES, &text, &length));
    CRD_TRY(crdi_xml_parse_lenient(o->r.ctx, text, length, path, NULL, 0, out));
fail:
    crd_text_clear(&file);
    crd_free(o->r.ctx, text);
    crdi_archive_close(a);
    return st;
}

static crd_status read_variables(osp* o, simulator* s)
{
    crd_status st = CRD_OK;
    if (s->described) { return CRD_OK; }
    s->described = true;
    const bool folder = crdi_ssp_is_folder(s->path);
    const char* xml =
        folder ? crdi_arena_format(&o->r.arena, "%s/modelDescription.xml", s->path) : s->path;
    if (!xml) { return CRD_E_MEMORY; }
    CRD_TRY(parse_file(o, xml, folder ? NULL : "modelDescription.xml", &s->description));
    if (!s->description) {
        return crdi_ssp_bad(&o->r, CRD_E_FORMAT, &o->d, s->xml,
                            "%s is no FMU: no modelDescription.xml", crdi_show(s->path).text);
    }
    const char* model = crdi_xml_get(s->description->root, "modelName");
    s->model = model ? model : "";
    const crdi_xml_element* list = crdi_xml_child(s->description->root, "", "ModelVariables");
    for (const crdi_xml_element* e = list ? list->first : NULL; e; e = e->next) {
        const char *name = crdi_xml_get(e, "name"), *causality = crdi_xml_get(e, "causality");
        if (!name || !causality) { continue; }
        const direction way =
            strcmp(causality, "output") == 0 || strcmp(causality, "calculatedParameter") == 0
                ? OUTPUT
            : strcmp(causality, "input") == 0 ? INPUT
                                              : OTHER;
        CRD_TRY(crdi_map_add(&s->variables, name, way, NULL));
    }
fail:
    return st;
}

// <model>_OspModelDescription.xml or <fmu>_..., beside the structure or the FMU; or in the FMU.
static crd_status read_groups(osp* o, simulator* s, const crdi_xml_element* e)
{
    crd_status st = CRD_OK;
    CRD_TRY(read_variables(o, s));
    const int folder = (int)crdi_folder_length(s->path);
    const char* file = s->path + folder;
    const int stem = (int)(crdi_ends_with(file, ".fmu") ? strlen(file) - 4 : strlen(file));
    for (int k = 0; k < 4 && !s->groups; k++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%.*s%.*s_OspModelDescription.xml",
                 k % 2 ? folder : (int)strlen(o->d.folder), k % 2 ? s->path : o->d.folder,
                 k < 2 ? (int)strlen(s->model) : stem, k < 2 ? s->model : file);
        struct stat info;
        if (stat(path, &info) == 0) { CRD_TRY(parse_file(o, path, NULL, &s->groups)); }
    }
    static const char* const inside[] = {"OspModelDescription.xml",
                                         "resources/OspModelDescription.xml"};
    for (int k = 0; k < 2 && !s->groups && !crdi_ssp_is_folder(s->path); k++) {
        CRD_TRY(parse_file(o, s->path, inside[k], &s->groups));
    }
    if (!s->groups) {
        return crdi_ssp_bad(
            &o->r, CRD_E_NOT_FOUND, &o->d, e,
            "simulator '%s' has no groups of variables, expected %s_OspModelDescription.xml "
            "beside this file or its FMU",
            crdi_show(s->name).text, crdi_show(s->model).text);
    }
fail:
    return st;
}

// Also among the groups of groups.
static const crdi_xml_element* find_group(const crdi_xml_element* list, const char* name, int depth)
{
    const crdi_xml_element* found = NULL;
    for (const crdi_xml_element* e = list->first; e && !found && depth < MOST_DEPTH; e = e->next) {
        const char* is = crdi_xml_get(e, "name");
        found = is && strcmp(is, name) == 0 && strcmp(e->name, "Variable") != 0
                    ? e
                    : find_group(e, name, depth + 1);
    }
    return found;
}

// ---- connections -------------------------------------------------------------------------------

static crd_status find_simulator(osp* o, const crdi_xml_element* e, simulator** out)
{
    const char* name = crdi_xml_get(e, "simulator");
    const int32_t i = name ? crdi_map_find(&o->simulator_map, name) : -1;
    if (i < 0 || !crdi_xml_get(e, "name")) {
        return crdi_ssp_bad(&o->r, CRD_E_NOT_FOUND, &o->d, e,
                            "simulator '%s', expected the name of a Simulator and of a variable",
                            name ? crdi_show(name).text : "");
    }
    *out = &o->simulators[i];
    return CRD_OK;
}

// Elements of arrays (FMI 3) have the direction of their array.
static direction way_of(const simulator* s, const char* name)
{
    int32_t way = crdi_map_find(&s->variables, name);
    const char* open = strrchr(name, '[');
    char array[512];
    if (way < 0 && open &&
        (size_t)snprintf(array, sizeof array, "%.*s", (int)(open - name), name) < sizeof array) {
        way = crdi_map_find(&s->variables, array);
    }
    return way < 0 ? OTHER : (direction)way;
}

static crd_status add_connection(osp* o, const crdi_xml_element* e, int from_unit, const char* from,
                                 int to_unit, const char* to, const function* scaled)
{
    crd_connection_spec c = crd_connection_spec_defaults();
    c.from_unit = from_unit, c.to_unit = to_unit;
    c.from = from, c.to = to;
    c.place = (crd_place){o->d.shown, e->line};
    if (scaled) {
        c.gain = scaled->factor, c.offset = scaled->offset;
        c.has_transformation = true;
    }
    return crd_system_add_connection(o->r.s, &c);
}

static int unit_of(const osp* o, const simulator* s)
{
    return (int)(s - o->simulators); // units are added in this order, before all others
}

static crd_status connect_pair(osp* o, const crdi_xml_element* e, simulator* a, const char* x,
                               simulator* b, const char* y)
{
    crd_status st = CRD_OK;
    CRD_TRY(read_variables(o, a));
    CRD_TRY(read_variables(o, b));
    const direction of_x = way_of(a, x), of_y = way_of(b, y);
    if (of_x == OUTPUT && of_y != OUTPUT) {
        return add_connection(o, e, unit_of(o, a), x, unit_of(o, b), y, NULL);
    }
    if (of_y == OUTPUT && of_x != OUTPUT) {
        return add_connection(o, e, unit_of(o, b), y, unit_of(o, a), x, NULL);
    }
    return crdi_ssp_bad(
        &o->r, CRD_E_FORMAT, &o->d, e, "%s.%s and %s.%s are %s, expected an output and an input",
        crdi_show(a->name).text, crdi_show(x).text, crdi_show(b->name).text, crdi_show(y).text,
        of_x == OUTPUT ? "both outputs" : "no output of their FMUs");
fail:
    return st;
}

static const char* name_of(const crdi_xml_element* e)
{
    const char* name = crdi_xml_get(e, "name");
    return name ? name : e->name;
}

static const crdi_xml_element* next_variable(const crdi_xml_element* e)
{
    while (e && strcmp(e->name, "Variable") != 0) {
        e = e->next;
    }
    return e;
}

static const crdi_xml_element* next_inner(const crdi_xml_element* e)
{
    while (e && strcmp(e->name, "Variable") == 0) {
        e = e->next;
    }
    return e;
}

// Variables one by one, and groups inside of them one by one.
static crd_status connect_groups(osp* o, const crdi_xml_element* e, simulator* a,
                                 const crdi_xml_element* x, simulator* b, const crdi_xml_element* y,
                                 int depth)
{
    crd_status st = CRD_OK;
    const crdi_xml_element *p = next_variable(x->first), *q = next_variable(y->first);
    for (; p && q; p = next_variable(p->next), q = next_variable(q->next)) {
        const char *from = crdi_xml_get(p, "ref"), *to = crdi_xml_get(q, "ref");
        if (!from || !to) { break; }
        CRD_TRY(connect_pair(o, e, a, from, b, to));
    }
    const crdi_xml_element *m = next_inner(x->first), *n = next_inner(y->first);
    for (; m && n && depth < MOST_DEPTH; m = next_inner(m->next), n = next_inner(n->next)) {
        CRD_TRY(connect_groups(o, e, a, m, b, n, depth + 1));
    }
    if (p || q || m || n) {
        return crdi_ssp_bad(
            &o->r, CRD_E_FORMAT, &o->d, e,
            "groups of %s and %s ('%s' and '%s') have different numbers of variables", a->name,
            b->name, name_of(x), name_of(y));
    }
fail:
    return st;
}

static crd_status group_of(osp* o, const crdi_xml_element* end, simulator** s,
                           const crdi_xml_element** group)
{
    crd_status st = CRD_OK;
    CRD_TRY(find_simulator(o, end, s));
    CRD_TRY(read_groups(o, *s, end));
    *group = find_group((*s)->groups->root, crdi_xml_get(end, "name"), 0);
    if (!*group) {
        return crdi_ssp_bad(&o->r, CRD_E_NOT_FOUND, &o->d, end, "%s has no group of variables '%s'",
                            crdi_show((*s)->name).text, crdi_show(crdi_xml_get(end, "name")).text);
    }
fail:
    return st;
}

static crd_status find_function(osp* o, const crdi_xml_element* signal, function** out)
{
    const char* name = crdi_xml_get(signal, "function");
    const int32_t i = name ? crdi_map_find(&o->function_map, name) : -1;
    const char* port = crdi_xml_get(signal, "name");
    if (i < 0 || !port || (strncmp(port, "in", 2) != 0 && strncmp(port, "out", 3) != 0)) {
        return crdi_ssp_bad(
            &o->r, CRD_E_NOT_FOUND, &o->d, signal,
            "signal '%s' of function '%s', expected in, in[0] ... or out of one that is "
            "there",
            port ? crdi_show(port).text : "", name ? crdi_show(name).text : "");
    }
    *out = &o->functions[i];
    return CRD_OK;
}

// One end is a variable, the other a signal of a function.
static crd_status connect_signal(osp* o, const crdi_xml_element* e,
                                 const crdi_xml_element* variable, const crdi_xml_element* signal)
{
    crd_status st = CRD_OK;
    simulator *s = NULL, *source = NULL;
    function* f = NULL;
    CRD_TRY(find_simulator(o, variable, &s));
    CRD_TRY(find_function(o, signal, &f));
    const char *name = crdi_xml_get(variable, "name"), *port = crdi_xml_get(signal, "name");
    const bool in = strncmp(port, "in", 2) == 0;
    if (f->unit >= 0) {
        return in ? add_connection(o, e, unit_of(o, s), name, f->unit, port, NULL)
                  : add_connection(o, e, f->unit, port, unit_of(o, s), name, NULL);
    }
    if (in) { return CRD_OK; } // found before
    if (!f->in) {
        return crdi_ssp_bad(&o->r, CRD_E_FORMAT, &o->d, f->xml, "function '%s' has no input",
                            crdi_show(f->name).text);
    }
    CRD_TRY(find_simulator(o, f->in, &source));
    return add_connection(o, e, unit_of(o, source), crdi_xml_get(f->in, "name"), unit_of(o, s),
                          name, f);
fail:
    return st;
}

// in[1] and a group: in[1][0], in[1][1] ... and its variables.
static crd_status connect_signal_group(osp* o, const crdi_xml_element* e,
                                       const crdi_xml_element* end, const crdi_xml_element* signal)
{
    crd_status st = CRD_OK;
    simulator* s = NULL;
    function* f = NULL;
    const crdi_xml_element* group = NULL;
    CRD_TRY(group_of(o, end, &s, &group));
    CRD_TRY(find_function(o, signal, &f));
    if (f->unit < 0) {
        return crdi_ssp_bad(&o->r, CRD_E_FORMAT, &o->d, signal, "function '%s' is no VectorSum",
                            crdi_show(f->name).text);
    }
    const char* port = crdi_xml_get(signal, "name");
    int j = 0;
    for (const crdi_xml_element* v = next_variable(group->first); v; v = next_variable(v->next)) {
        const char* name = crdi_xml_get(v, "ref");
        const char* at = crdi_arena_format(&o->r.s->arena, "%s[%d]", port, j++);
        if (!name || !at) { return at ? CRD_E_FORMAT : CRD_E_MEMORY; }
        CRD_TRY(strncmp(port, "in", 2) == 0
                    ? add_connection(o, e, unit_of(o, s), name, f->unit, at, NULL)
                    : add_connection(o, e, f->unit, at, unit_of(o, s), name, NULL));
    }
fail:
    return st;
}

static crd_status connect(osp* o, const crdi_xml_element* e)
{
    crd_status st = CRD_OK;
    const crdi_xml_element* a = e->first;
    const crdi_xml_element* b = a ? a->next : NULL;
    simulator *s = NULL, *t = NULL;
    const crdi_xml_element *x = NULL, *y = NULL;
    if (!a || !b) {
        return crdi_ssp_bad(&o->r, CRD_E_FORMAT, &o->d, e, "%s without two ends", e->name);
    }
    const bool first = strncmp(a->name, "Signal", 6) == 0;
    if (strcmp(e->name, "VariableConnection") == 0) {
        CRD_TRY(find_simulator(o, a, &s));
        CRD_TRY(find_simulator(o, b, &t));
        return connect_pair(o, e, s, crdi_xml_get(a, "name"), t, crdi_xml_get(b, "name"));
    }
    if (strcmp(e->name, "VariableGroupConnection") == 0) {
        CRD_TRY(group_of(o, a, &s, &x));
        CRD_TRY(group_of(o, b, &t, &y));
        return connect_groups(o, e, s, x, t, y, 0);
    }
    if (strcmp(e->name, "SignalConnection") == 0) {
        return connect_signal(o, e, first ? b : a, first ? a : b);
    }
    if (strcmp(e->name, "SignalGroupConnection") == 0) {
        return connect_signal_group(o, e, first ? b : a, first ? a : b);
    }
    return crdi_ssp_bad(&o->r, CRD_E_FORMAT, &o->d, e, "%s is no connection that is known",
                        crdi_show(e->name).text);
fail:
    return st;
}

// ---- the parts of the file ---------------------------------------------------------------------

static int count_children(const crdi_xml_element* e)
{
    int n = 0;
    for (const crdi_xml_element* c = e ? e->first : NULL; c; c = c->next) {
        n++;
    }
    return n;
}

static crd_status read_number(osp* o, const crdi_xml_element* e, const char* text, double* out)
{
    text += strspn(text, " \t\r\n+");
    if (crdi_parse_double(text, strcspn(text, " \t\r\n"), out) && isfinite(*out)) { return CRD_OK; }
    return crdi_ssp_bad(&o->r, CRD_E_RANGE, &o->d, e, "%s = '%s', expected a number", e->name,
                        crdi_show(text).text);
}

static crd_status read_times(osp* o)
{
    crd_status st = CRD_OK;
    crd_run_spec* run = &o->r.s->run;
    const crdi_xml_element* root = o->d.xml->root;
    const crdi_xml_element* start = crdi_xml_child(root, o->space, "StartTime");
    const crdi_xml_element* end = crdi_xml_child(root, o->space, "EndTime");
    const crdi_xml_element* step = crdi_xml_child(root, o->space, "BaseStepSize");
    const crdi_xml_element* algorithm = crdi_xml_child(root, o->space, "Algorithm");
    if (start) { CRD_TRY(read_number(o, start, start->text, &run->start)); }
    if (end) { CRD_TRY(read_number(o, end, end->text, &run->stop)); }
    run->step = 0.1;
    if (step) { CRD_TRY(read_number(o, step, step->text, &run->step)); }
    if (!(run->step > 0)) {
        return crdi_ssp_bad(&o->r, CRD_E_RANGE, &o->d, step, "BaseStepSize = %g, expected > 0",
                            run->step);
    }
    if (end && run->stop < (start ? run->start : 0)) {
        return crdi_ssp_bad(&o->r, CRD_E_RANGE, &o->d, end, "EndTime = %g comes before StartTime",
                            run->stop);
    }
    const char* name =
        algorithm ? algorithm->text + strspn(algorithm->text, " \t\r\n") : "fixedStep";
    if (strncmp(name, "fixedStep", 9) != 0) {
        crdi_log(o->r.ctx, CRD_LOG_WARNING,
                 "%s:%d: the algorithm '%s' is not known here: steps have the fixed length of %g s",
                 o->d.shown, algorithm->line, crdi_show(name).text, run->step);
    }
fail:
    return st;
}

static crd_status read_settings(osp* o, const crdi_xml_element* e, crd_unit_spec* u)
{
    const crdi_xml_element* list = crdi_xml_child(e, o->space, "InitialValues");
    crd_setting* all = crdi_arena_new(&o->r.s->arena, (size_t)count_children(list), sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    u->parameters = all;
    for (const crdi_xml_element* v = list ? list->first : NULL; v; v = v->next) {
        const char* name = crdi_xml_get(v, "variable");
        const char* value = v->first ? crdi_xml_get(v->first, "value") : NULL;
        if (!name || !value) {
            return crdi_ssp_bad(&o->r, CRD_E_FORMAT, &o->d, v,
                                "an InitialValue without variable or value, expected <InitialValue "
                                "variable=\"x\"><Real value=\"1\"/></InitialValue>");
        }
        all[u->parameter_count++] = (crd_setting){.variable = crdi_ssp_keep(&o->r, name),
                                                  .text = crdi_ssp_keep(&o->r, value),
                                                  .place = {o->d.shown, v->line}};
        if (!all[u->parameter_count - 1].variable || !all[u->parameter_count - 1].text) {
            return CRD_E_MEMORY;
        }
    }
    return CRD_OK;
}

static crd_status add_simulator(osp* o, const crdi_xml_element* e)
{
    crd_status st = CRD_OK;
    const char *name = crdi_xml_get(e, "name"), *source = crdi_xml_get(e, "source");
    const char* step = crdi_xml_get(e, "stepSize");
    crdi_ssp_uri uri;
    if (!name || !source) {
        return crdi_ssp_bad(&o->r, CRD_E_FORMAT, &o->d, e, "a Simulator without name or source");
    }
    CRD_TRY(crdi_ssp_resolve(&o->r, &o->d, e, source, &uri));
    CRD_TRY(crdi_ssp_need(&o->r, &o->d, e, name, &uri));
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = crdi_ssp_keep(&o->r, name);
    u.path = crdi_ssp_keep(&o->r, uri.path);
    u.shown = crdi_ssp_keep(&o->r, uri.shown);
    if (!u.name || !u.path || !u.shown) { return CRD_E_MEMORY; }
    u.place = (crd_place){o->d.shown, e->line};
    if (step) {
        CRD_TRY(read_number(o, e, step, &u.step));
        if (u.step > 0) { u.step = crdi_ssp_multiple(o->r.s->run.step, u.step); }
    }
    CRD_TRY(read_settings(o, e, &u));
    CRD_TRY(crd_system_add_unit(o->r.s, &u, NULL));
    CRD_TRY(crdi_map_add(&o->simulator_map, u.name, o->simulator_count, NULL));
    simulator* s = &o->simulators[o->simulator_count++];
    s->name = u.name;
    s->path = uri.path;
    s->model = "";
    s->xml = e;
fail:
    return st;
}

static crd_status add_function(osp* o, const crdi_xml_element* e)
{
    crd_status st = CRD_OK;
    function* f = &o->functions[o->function_count];
    *f = (function){.xml = e, .factor = 1, .offset = 0, .unit = -1};
    f->name = crdi_ssp_keep(&o->r, crdi_xml_get(e, "name") ? crdi_xml_get(e, "name") : "");
    if (!f->name) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_map_add(&o->function_map, f->name, o->function_count++, NULL));
    const bool vector = strcmp(e->name, "VectorSum") == 0;
    if (vector || strcmp(e->name, "Sum") == 0) { return add_sum(o, f, vector); }
    if (strcmp(e->name, "LinearTransformation") != 0) {
        return crdi_ssp_bad(&o->r, CRD_E_UNSUPPORTED, &o->d, e,
                            "function %s, expected LinearTransformation, Sum or VectorSum",
                            crdi_show(e->name).text);
    }
    const char *factor = crdi_xml_get(e, "factor"), *offset = crdi_xml_get(e, "offset");
    if (factor) { CRD_TRY(read_number(o, e, factor, &f->factor)); }
    if (offset) { CRD_TRY(read_number(o, e, offset, &f->offset)); }
fail:
    return st;
}

// Who feeds a LinearTransformation, wherever its connection stands.
static crd_status find_inputs(osp* o, const crdi_xml_element* list)
{
    for (const crdi_xml_element* e = list ? list->first : NULL; e; e = e->next) {
        const crdi_xml_element* a = strcmp(e->name, "SignalConnection") == 0 ? e->first : NULL;
        if (!a || !a->next) { continue; }
        const bool first = strcmp(a->name, "Signal") == 0;
        function* f = NULL;
        const crdi_xml_element* signal = first ? a : a->next;
        const crd_status st = find_function(o, signal, &f);
        if (st < 0) { return st; }
        if (strcmp(crdi_xml_get(signal, "name"), "in") == 0) { f->in = first ? a->next : a; }
    }
    return CRD_OK;
}

// All simulators side by side, then the sums: they see the new outputs.
static crd_status sums_last(osp* o)
{
    crd_arena* arena = &o->r.s->arena;
    const int n = o->simulator_count;
    crd_group* leaves = crdi_arena_new(arena, (size_t)n, sizeof *leaves);
    crd_group* outer = crdi_arena_new(arena, (size_t)o->sum_count + 1, sizeof *outer);
    if (!leaves || !outer) { return CRD_E_MEMORY; }
    for (int i = 0; i < n; i++) {
        leaves[i] = (crd_group){.kind = CRD_GROUP_UNIT, .unit = i};
    }
    outer[0] = (crd_group){.kind = CRD_GROUP_JACOBI, .members = leaves, .member_count = n};
    for (int i = 0; i < o->sum_count; i++) {
        outer[1 + i] = (crd_group){.kind = CRD_GROUP_UNIT, .unit = n + i};
    }
    o->r.s->run.scheme = CRD_SCHEME_GROUPS;
    o->r.s->run.group = (crd_group){
        .kind = CRD_GROUP_GAUSS_SEIDEL, .members = outer, .member_count = o->sum_count + 1};
    return CRD_OK;
}

static crd_status read_structure(osp* o)
{
    crd_status st = CRD_OK;
    const crdi_xml_element* root = o->d.xml->root;
    o->space = root->space;
    if (strcmp(root->name, "OspSystemStructure") != 0) {
        return crdi_ssp_bad(&o->r, CRD_E_FORMAT, &o->d, root, "%s, expected an OspSystemStructure",
                            crdi_show(root->name).text);
    }
    const crdi_xml_element* simulators = crdi_xml_child(root, o->space, "Simulators");
    const crdi_xml_element* functions = crdi_xml_child(root, o->space, "Functions");
    const crdi_xml_element* connections = crdi_xml_child(root, o->space, "Connections");
    const size_t n = (size_t)count_children(simulators);
    o->simulators = crdi_arena_new(&o->r.arena, n, sizeof *o->simulators);
    o->functions =
        crdi_arena_new(&o->r.arena, (size_t)count_children(functions), sizeof *o->functions);
    if (!o->simulators || !o->functions) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < n; i++) {
        crdi_map_init(&o->simulators[i].variables, o->r.ctx);
    }
    CRD_TRY(read_times(o));
    for (const crdi_xml_element* e = simulators ? simulators->first : NULL; e; e = e->next) {
        CRD_TRY(add_simulator(o, e));
    }
    for (const crdi_xml_element* e = functions ? functions->first : NULL; e; e = e->next) {
        CRD_TRY(add_function(o, e));
    }
    CRD_TRY(find_inputs(o, connections));
    for (const crdi_xml_element* e = connections ? connections->first : NULL; e; e = e->next) {
        CRD_TRY(connect(o, e));
    }
    if (o->sum_count) { CRD_TRY(sums_last(o)); }
fail:
    return st;
}

bool crdi_osp_find(const char* path, char file[])
{
    struct stat info;
    const bool folder = crdi_ssp_is_folder(path);
    snprintf(file, PATH_MAX, folder ? "%s/SystemStructure.ssd" : "%s", path);
    if (folder && stat(file, &info) == 0) { return false; }
    if (folder) { snprintf(file, PATH_MAX, "%s/OspSystemStructure.xml", path); }
    return crdi_ends_with(file, ".xml") && stat(file, &info) == 0;
}

crd_status crdi_osp_read(crd_system* s, const char* path)
{
    crd_status st = CRD_OK;
    osp o = {.r = {.ctx = s->ctx, .s = s}};
    crd_text text;
    crd_text_init(&text, s->ctx);
    crd_arena_init(&o.r.arena, s->ctx);
    crdi_map_init(&o.simulator_map, s->ctx);
    crdi_map_init(&o.function_map, s->ctx);
    o.d.path = path;
    o.d.folder = o.d.shown_folder = crdi_arena_text(&o.r.arena, path, crdi_folder_length(path));
    o.d.shown = crdi_ssp_keep(&o.r, path);
    if (!o.d.folder || !o.d.shown) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crdi_ssp_read_file(s->ctx, path, path, &text));
    CRD_TRY(crdi_xml_parse(s->ctx, text.data ? text.data : "", text.length, path, &o.d.xml));
    CRD_TRY(crdi_ssp_names(&o.r, "", path));
    CRD_TRY(read_structure(&o));
fail:
    for (int i = 0; i < o.simulator_count; i++) {
        crdi_map_clear(&o.simulators[i].variables);
        crdi_xml_destroy(o.simulators[i].description);
        crdi_xml_destroy(o.simulators[i].groups);
    }
    crdi_map_clear(&o.simulator_map);
    crdi_map_clear(&o.function_map);
    crdi_xml_destroy(o.d.xml);
    crd_text_clear(&text);
    crd_arena_clear(&o.r.arena);
    return st;
}
