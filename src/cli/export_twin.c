// cardan export twin: a digital twin as an FMU. Its binaries are part of this program; description
// and netlist go along, and they read them.
#include "cli/export.h"
#include "cli/twin.h"

#include <math.h>
#include <string.h>

enum { MOST_VARIABLES_2 = 65536 }; // of an FMU of FMI 2.0

static void host_log(void* user, crd_model_status status, const char* text)
{
    crd_context* ctx = user;
    if (status >= CRD_MODEL_DISCARD) {
        (void)crdi_fail(ctx, CRD_E_RANGE, "%s", text);
    } else {
        crdi_log(ctx, status == CRD_MODEL_WARNING ? CRD_LOG_WARNING : CRD_LOG_DEBUG, "%s", text);
    }
}

// A twin that does not begin is not worth an FMU.
static crd_status try_out(crd_context* ctx, const crd_model* model)
{
    void* self = crdi_new(ctx, model->size);
    if (!self) { return CRD_E_MEMORY; }
    const crd_model_host host = {.user = ctx, .log = host_log, .resources = "", .model = model};
    crd_model_reset(model, self);
    const bool good = model->initialize(self, &host, 0) == CRD_MODEL_OK;
    model->clear(self);
    crd_free(ctx, self);
    return good ? CRD_OK : CRD_E_RANGE;
}

static crd_status choose_name(crd_context* ctx, const crdi_export_options* o, crd_arena* arena,
                              const char* subject, const char* own, const char** out)
{
    const char* stem = o->name     ? o->name
                       : own       ? own
                       : o->output ? crdi_file_stem(arena, o->output)
                                   : crdi_file_stem(arena, subject);
    *out = stem ? crdi_identifier(arena, stem) : NULL;
    if (!*out) { return CRD_E_MEMORY; }
    if (o->name && strcmp(o->name, *out) != 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--name %s, expected letters, digits and '_' as in a name of C", o->name);
    }
    return CRD_OK;
}

static crd_status check_output(crd_context* ctx, const char* subject, const crd_netlist* n,
                               const char* output)
{
    bool same = crdi_same_file(output, subject) || crdi_same_file(output, n->files[0]);
    for (int i = 0; i < n->part_count && !same; i++) {
        if (i > 0 && n->parts[i].file == n->parts[i - 1].file) { continue; }
        same = crdi_same_file(output, n->files[n->parts[i].file]);
    }
    return same ? crdi_fail(ctx, CRD_E_RANGE,
                            "%s: the FMU would overwrite what it is made of; choose another file "
                            "with --output",
                            output)
                : CRD_OK;
}

// The netlist in one piece.
static crd_status flatten(crd_context* ctx, const crd_twin_description* d, crd_text* out)
{
    crd_netlist* n = NULL;
    const crd_netlist_options opt = {
        .defines = d->defines, .define_count = d->define_count, .flat = out};
    const crd_status st = crd_netlist_load(ctx, d->circuit, &opt, &n);
    crd_netlist_destroy(n);
    return st;
}

static crd_status write_fmu(crd_context* ctx, const crd_model* model, const crd_twin_description* d,
                            int version, const char* output)
{
    crd_status st = CRD_OK;
    crd_text netlist, json;
    crd_text_init(&netlist, ctx);
    crd_text_init(&json, ctx);
    CRD_TRY(flatten(ctx, d, &netlist));
    CRD_TRY(crdi_twin_model_pack(d, model->name, &json));
    const crdi_resource resources[] = {{"circuit.cir", netlist.data, netlist.length},
                                       {"twin.json", json.data, json.length}};
    CRD_TRY(crdi_write_fmu(ctx, &crdi_twin_template, version, model, resources, 2, output));
fail:
    crd_text_clear(&netlist);
    crd_text_clear(&json);
    return st;
}

static crd_status export(crd_context* ctx, const crdi_export_options* o, const char* subject,
                         const crd_twin_description* d, const crd_model* model, const char* output,
                         crdi_result* out)
{
    const int version = o->fmi == 1 ? 3 : 2;
    crd_status st = check_output(ctx, subject, d->netlist, output);
    if (st == CRD_OK && version == 2 && model->variable_count > MOST_VARIABLES_2) {
        st = crdi_fail(ctx, CRD_E_UNSUPPORTED,
                       "%s: %d variables; an FMU of FMI 2.0 has room for %d, choose FMI 3.0 with "
                       "--fmi 3",
                       subject, model->variable_count, MOST_VARIABLES_2);
    }
    if (st == CRD_OK) { st = try_out(ctx, model); }
    if (st == CRD_OK) { st = write_fmu(ctx, model, d, version, output); }
    if (st < 0) { return st; }
    const crd_twin_spec* s = &d->spec;
    char step[32];
    crdi_say(out,
             "%s: %d sensor%s, %d source%s and %d value%s to find, %d output%s, steps of %s, FMI "
             "%d.0\n",
             output, s->sensor_count, crdi_plural(s->sensor_count), s->source_count,
             crdi_plural(s->source_count), s->parameter_count, crdi_plural(s->parameter_count),
             d->netlist->output_count, crdi_plural(d->netlist->output_count),
             crdi_format_seconds(step, s->step), version);
    return CRD_OK;
}

crd_status crdi_export_twin(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                            crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_context* ctx = cli->ctx;
    crd_twin_description *d = NULL, *owned = NULL;
    const crd_model* model = NULL;
    const char* name;
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    CRD_TRY(crdi_twin_read(ctx, subject, &owned));
    d = owned;
    CRD_TRY(choose_name(ctx, o, &arena, subject, d->name, &name));
    const char* output = o->output ? o->output : crdi_arena_format(&arena, "%s.fmu", name);
    CRD_TRY(output ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(crdi_twin_model_create(ctx, d, subject, name, &model));
    owned = NULL;
    CRD_TRY(export(ctx, o, subject, d, model, output, out));
fail:
    crdi_twin_model_destroy(model);
    crd_twin_description_destroy(owned);
    crd_arena_clear(&arena);
    return st;
}
