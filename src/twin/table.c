// A twin as a model: the rows of its table, made from the description.
#include "twin/instance.h"

#include "shared/circuit_part.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// What the sources of an FMU are linked with beside libc and libm.
static const char* const libraries = "klu btf amd colamd suitesparseconfig";

const char* crdi_twin_unit(const crd_netlist* n, const char* what)
{
    for (int i = 0; i < n->output_count; i++) {
        if (strcmp(n->outputs[i].name, what) == 0) {
            return n->outputs[i].unit ? n->outputs[i].unit : "";
        }
    }
    const bool current = what[0] == 'i' || what[0] == 'q';
    bool thermal = what[0] == 't' || what[0] == 'q';
    for (int32_t i = 0; i < n->part_count && !thermal; i++) {
        thermal = n->parts[i].thermal;
    }
    return thermal ? (current ? "W" : "K") : current ? "A" : "V";
}

// ---- rows --------------------------------------------------------------------------------------

typedef struct table {
    crdi_model_table t;
    crdi_twin_model* m;
} table;

static size_t take_room(table* t, size_t doubles)
{
    return crdi_model_take(&t->t, doubles);
}

static crd_status twin_table_add_variable(table* t, const char* name, const char* end,
                                          crd_model_variable row)
{
    row.name = crdi_arena_format(t->t.arena, "%s%s", name, end);
    if (!row.name) { return CRD_E_MEMORY; }
    for (const char* p = row.name; *p; p++) {
        if ((unsigned char)*p < ' ' || *p == 0x7f) {
            return crdi_fail(t->m->ctx, CRD_E_RANGE,
                             "%s: the name '%s' has a control character, and names of variables "
                             "have none",
                             t->t.file, crdi_clip(name).text);
        }
    }
    crdi_model_add(&t->t, row);
    return CRD_OK;
}

static crd_status twin_table_add_inputs(table* t)
{
    crd_status st = CRD_OK;
    const crd_netlist* n = t->m->netlist;
    const crd_twin_spec* s = t->m->spec;
    t->m->measured = take_room(t, (size_t)s->sensor_count * CRDI_MODEL_STRIDE);
    for (int i = 0; i < s->sensor_count; i++) {
        const crd_twin_sensor* one = &s->sensors[i];
        CRD_TRY(twin_table_add_variable(
            t, one->name, ".measured",
            crdi_model_input(NULL, one->unit ? one->unit : crdi_twin_unit(n, one->what),
                             (double)NAN,
                             t->m->measured + (size_t)i * CRDI_MODEL_STRIDE * sizeof(double),
                             "what the sensor says; NaN: nothing")));
    }
    t->m->inputs = take_room(t, (size_t)n->input_count * CRDI_MODEL_STRIDE);
    for (int i = 0; i < n->input_count; i++) {
        CRD_TRY(twin_table_add_variable(
            t, n->inputs[i].name, "",
            crdi_model_input(NULL, n->inputs[i].unit, n->inputs[i].start,
                             t->m->inputs + (size_t)i * CRDI_MODEL_STRIDE * sizeof(double),
                             "of the netlist (.input)")));
    }
fail:
    return st;
}

static crd_status add_estimate(table* t, const char* name, const char* unit, const char* says)
{
    crd_model_variable row = {.causality = CRD_OUTPUT,
                              .offset = take_room(t, 1),
                              .unit = unit,
                              .description = says,
                              .depends = "",
                              .starts_with_all = true};
    const crd_status st = twin_table_add_variable(t, name, "", row);
    if (st < 0) { return st; }
    crd_dimension d;
    if (unit && crd_dimension_parse(unit, &d) && d.offset != 0) { row.unit = NULL; } // degC
    row.offset = take_room(t, 1);
    row.description = "standard deviation of the estimate";
    return twin_table_add_variable(t, name, ".sd", row);
}

static const char* part_unit(const crd_netlist* n, const crd_twin_group* g)
{
    const crd_part* p = &n->parts[g->parts[0]];
    const crdi_part_kind* k = crdi_part_kind_of(p);
    const char* unit = p->thermal ? k->thermal_unit : k->unit;
    crd_dimension d;
    return unit && crd_dimension_parse(unit, &d) ? unit : NULL;
}

static crd_status twin_table_add_outputs(table* t)
{
    crd_status st = CRD_OK;
    const crd_netlist* n = t->m->netlist;
    const crd_twin_spec* s = t->m->spec;
    t->m->estimates = t->t.used;
    for (int i = 0; i < n->output_count; i++) {
        CRD_TRY(add_estimate(t, n->outputs[i].name, n->outputs[i].unit, "estimate"));
    }
    for (int i = 0; i < s->source_count; i++) {
        const crd_twin_group* g = &s->sources[i].group;
        CRD_TRY(add_estimate(t, g->name, part_unit(n, g), "estimate of a source"));
    }
    for (int i = 0; i < s->parameter_count; i++) {
        const crd_twin_group* g = &s->parameters[i].group;
        CRD_TRY(add_estimate(t, g->name, part_unit(n, g), "estimate of a value"));
    }
    t->m->status = take_room(t, (size_t)s->sensor_count);
    for (int i = 0; i < s->sensor_count; i++) {
        CRD_TRY(twin_table_add_variable(
            t, s->sensors[i].name, ".status",
            (crd_model_variable){.type = CRD_INT32,
                                 .causality = CRD_OUTPUT,
                                 .variability = CRD_DISCRETE,
                                 .offset = t->m->status + (size_t)i * sizeof(double),
                                 .depends = "",
                                 .description = "0 good, 1 missing, 2 refused, 3 stuck, "
                                                "4 wild"}));
    }
fail:
    return st;
}

static crd_status twin_table_build(crdi_twin_model* m)
{
    crd_status st = CRD_OK;
    const crd_twin_spec* s = m->spec;
    const crd_netlist* n = m->netlist;
    const int most = 2 * s->sensor_count + n->input_count +
                     2 * (n->output_count + s->source_count + s->parameter_count);
    table t = {.m = m,
               .t = {.ctx = m->ctx,
                     .arena = &m->arena,
                     .file = m->base.description,
                     .used = sizeof(crdi_twin_self)}};
    t.t.rows = crdi_arena_new(&m->arena, (size_t)most + 1, sizeof *t.t.rows);
    CRD_TRY(t.t.rows ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(twin_table_add_inputs(&t));
    CRD_TRY(twin_table_add_outputs(&t));
    CRD_TRY(crdi_model_check_names(&t.t, "which is the name of the time",
                                   "; sources, values to find, .input and .output need names of "
                                   "their own"));
    CRD_TRY(crdi_model_units(&t.t, true, &m->base));
    m->base.variables = t.t.rows;
    m->base.variable_count = t.t.count;
    m->base.size = t.t.used;
    m->base.default_step = s->step;
    m->base.default_stop = n->tran_stop > 0 ? n->tran_stop : 1000 * s->step;
fail:
    return st;
}

// ---- create and destroy ------------------------------------------------------------------------

static void twin_table_destroy(crdi_twin_model* m)
{
    crd_context* ctx = m->ctx;
    const bool owns = m->owns_context;
    crd_twin_description_destroy(m->d);
    crd_arena_clear(&m->arena);
    crd_free(ctx, m);
    if (owns) { crd_context_destroy(ctx); }
}

// A twin that cannot be made is not worth a model.
static crd_status try_out(crdi_twin_model* m)
{
    crd_twin* w = NULL;
    const crd_status st = crd_twin_create(m->ctx, m->netlist, m->spec, &w);
    crd_twin_destroy(w);
    return st;
}

crd_status crdi_twin_model_create(crd_context* ctx, crd_twin_description* d, const char* file,
                                  const char* name, const crd_model** out)
{
    crd_status st = CRD_OK;
    if (!(d->spec.step > 0)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: step is missing: how often the twin gets measurements, as in step: "
                         "1 ms",
                         file);
    }
    crdi_twin_model* m = crdi_new(ctx, sizeof *m);
    if (!m) { return CRD_E_MEMORY; }
    *m = (crdi_twin_model){.base = {.initialize = crdi_twin_model_initialize,
                                    .outputs = crdi_twin_model_outputs,
                                    .step = crdi_twin_model_step,
                                    .clear = crdi_twin_model_clear,
                                    .outside = crdi_twin_model_outside,
                                    .save = crdi_twin_model_save,
                                    .restore = crdi_twin_model_restore,
                                    .max_input_derivative = CRD_MODEL_MAX_ORDER,
                                    .libraries = libraries,
                                    .user = m,
                                    .kept = sizeof(crdi_twin_self)},
                           .ctx = ctx,
                           .netlist = d->netlist,
                           .spec = &d->spec};
    crd_arena_init(&m->arena, ctx);
    m->base.name = crdi_arena_text(&m->arena, name, strlen(name));
    m->base.description = crdi_arena_text(&m->arena, file, strlen(file));
    CRD_TRY(m->base.name && m->base.description ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(twin_table_build(m));
    CRD_TRY(try_out(m));
    m->base.description = crdi_arena_format(&m->arena, "twin of %s", m->base.name);
    CRD_TRY(m->base.description ? CRD_OK : CRD_E_MEMORY);
    m->d = d;
    *out = &m->base;
    return CRD_OK;
fail:
    twin_table_destroy(m);
    return st;
}

void crdi_twin_model_destroy(const crd_model* model)
{
    if (model) { twin_table_destroy((crdi_twin_model*)model->user); } // made by us
}

// ---- files -------------------------------------------------------------------------------------

crd_status crdi_twin_model_pack(const crd_twin_description* d, const char* name, crd_text* out)
{
    crd_text rest;
    crd_text_init(&rest, d->ctx);
    const crd_status st = crd_twin_write(d->netlist, &d->spec, &rest);
    if (st == CRD_OK) {
        crdi_text_add(out, "{ \"name\": ");
        crdi_text_json(out, name);
        crdi_text_add(out, ", \"circuit\": \"circuit.cir\",\n  \"values\": {");
        for (int i = 0; i < d->define_count; i++) {
            const char* equals = strchr(d->defines[i], '=');
            crd_text key;
            crd_text_init(&key, d->ctx);
            crdi_text_put(&key, d->defines[i], (size_t)(equals - d->defines[i]));
            crdi_text_add(out, i ? ", " : " ");
            crdi_text_json(out, key.data ? key.data : "");
            out->failed = out->failed || key.failed;
            crd_text_clear(&key);
            crdi_text_add(out, ": %s", equals + 1);
        }
        crdi_text_add(out, " },\n ");
        crdi_text_put(out, rest.data + 1, rest.length - 1); // without its brace
    }
    crd_text_clear(&rest);
    return st == CRD_OK && out->failed ? CRD_E_MEMORY : st;
}

const crd_model* crdi_twin_model_load(const char* folder, char* message, size_t room)
{
    crd_status st = CRD_OK;
    const crd_model* model = NULL;
    crd_twin_description* d = NULL;
    crd_text json;
    crd_arena arena;
    snprintf(message, room, "out of memory");
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return NULL; }
    crd_text_init(&json, ctx);
    crd_arena_init(&arena, ctx);
    const char* path = crdi_arena_format(&arena, "%s/twin.json", folder);
    CRD_TRY(path ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(crdi_file_read(
        ctx, path, &(crdi_file_need){.what = "the table of a twin", .most = 64 << 20}, &json));
    CRD_TRY(crd_twin_parse(ctx, json.data ? json.data : "", json.length, path, 1, NULL, &d));
    CRD_TRY(
        crdi_twin_model_create(ctx, d, "resources/twin.json", d->name ? d->name : "twin", &model));
    d = NULL;
    ((crdi_twin_model*)model->user)->owns_context = true;
fail:
    if (st < 0) { snprintf(message, room, "%s", crd_error_text(ctx)); }
    crd_twin_description_destroy(d);
    crd_text_clear(&json);
    crd_arena_clear(&arena);
    if (st < 0) { crd_context_destroy(ctx); }
    return model;
}
