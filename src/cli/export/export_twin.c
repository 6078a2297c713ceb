// cardan export twin: a digital twin as an FMU. Its binaries are part of this program; description
// and netlist go along, and they read them.
#include "cli/export/export.h"
#include "cli/twin/twin.h"

#include <math.h>
#include <string.h>

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

static crd_status write_twin_fmu(crd_context* ctx, const crd_model* model,
                                 const crd_twin_description* d, int version, const char* platforms,
                                 const char* output)
{
    crd_status st = CRD_OK;
    crd_text netlist, json;
    crd_text_init(&netlist, ctx);
    crd_text_init(&json, ctx);
    CRD_TRY(flatten(ctx, d, &netlist));
    CRD_TRY(crdi_twin_model_pack(d, model->name, &json));
    const crdi_resource resources[] = {{"circuit.cir", netlist.data, netlist.length},
                                       {"twin.json", json.data, json.length}};
    CRD_TRY(
        crdi_write_fmu(ctx, &crdi_twin_template, version, platforms, model, resources, 2, output));
fail:
    crd_text_clear(&netlist);
    crd_text_clear(&json);
    return st;
}

static crd_status export_model(crd_context* ctx, const crdi_export_options* o, const char* subject,
                               const crd_twin_description* d, const crd_model* model,
                               const char* output, crdi_result* out)
{
    const int version = o->fmi == 1 ? 3 : 2;
    crd_status st = crdi_export_spares(ctx, d->netlist, subject, "what it is made of", output);
    if (st == CRD_OK) { st = crdi_export_try(ctx, model, version, subject); }
    if (st == CRD_OK) { st = write_twin_fmu(ctx, model, d, version, o->platforms, output); }
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
    CRD_TRY(crdi_export_name(ctx, o, &arena, subject, d->name, &name));
    const char* output = o->output ? o->output : crdi_arena_format(&arena, "%s.fmu", name);
    CRD_TRY(output ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(crdi_twin_model_create(ctx, d, subject, name, &model));
    owned = NULL;
    CRD_TRY(export_model(ctx, o, subject, d, model, output, out));
fail:
    crdi_twin_model_destroy(model);
    crd_twin_description_destroy(owned);
    crd_arena_clear(&arena);
    return st;
}
