// cardan export circuit: a netlist as an FMU. Its binaries are part of this program; the netlist
// goes along in one piece, and they read it.
#include "cli/circuit/circuit.h"
#include "cli/export/export.h"
#include "shared/circuit_model.h"

#include <math.h>
#include <string.h>

static crd_status take_options(crd_context* ctx, const crdi_export_options* o, crd_arena* arena,
                               const char* subject, const crd_netlist* n,
                               crdi_circuit_model_options* opt)
{
    *opt = crdi_circuit_model_defaults();
    if (o->method >= 0) { opt->method = (crd_circuit_method)o->method; }
    opt->step = isnan(o->step) ? n->tran_step : o->step;
    opt->defines = o->params.items;
    opt->define_count = o->params.count;
    if (isnan(opt->step)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s has no .tran that says the step: say it with --step, as in --step "
                         "10us",
                         subject);
    }
    return crdi_export_name(ctx, o, arena, subject, NULL, &opt->name);
}

static crd_status write_circuit_fmu(crd_context* ctx, const crd_model* model,
                                    const crdi_circuit_model_options* opt, const crd_text* netlist,
                                    int version, const char* platforms, const char* output)
{
    crd_status st = CRD_OK;
    crd_text settings;
    crd_text_init(&settings, ctx);
    CRD_TRY(crdi_circuit_model_pack(ctx, opt, &settings));
    const crdi_resource resources[] = {{"circuit.cir", netlist->data, netlist->length},
                                       {"circuit.settings", settings.data, settings.length}};
    CRD_TRY(crdi_write_fmu(ctx, &crdi_circuit_template, version, platforms, model, resources, 2,
                           output));
fail:
    crd_text_clear(&settings);
    return st;
}

static int count_of(const crd_model* m, crd_causality causality)
{
    int n = 0;
    for (int i = 0; i < m->variable_count; i++) {
        n += m->variables[i].causality == causality;
    }
    return n;
}

crd_status crdi_export_circuit(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                               crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_context* ctx = cli->ctx;
    crd_netlist* n = NULL;
    const crd_model* model = NULL;
    crdi_circuit_model_options opt;
    crd_arena arena;
    crd_text flat;
    crd_arena_init(&arena, ctx);
    crd_text_init(&flat, ctx);
    const int version = o->fmi == 1 ? 3 : 2;
    const crd_netlist_options reading = {
        .defines = o->params.items, .define_count = o->params.count, .flat = &flat};
    CRD_TRY(crd_netlist_load(ctx, subject, &reading, &n)); // for messages: with its own lines
    CRD_TRY(take_options(ctx, o, &arena, subject, n, &opt));
    const char* output = o->output ? o->output : crdi_arena_format(&arena, "%s.fmu", opt.name);
    CRD_TRY(output ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(crdi_export_spares(ctx, n, subject, "the netlist that it is made of", output));
    CRD_TRY(crdi_circuit_model_create(ctx, flat.data, flat.length, subject, &opt, &model));
    CRD_TRY(crdi_export_try(ctx, model, version, subject));
    CRD_TRY(write_circuit_fmu(ctx, model, &opt, &flat, version, o->platforms, output));
    char step[32];
    const int inputs = count_of(model, CRD_INPUT), outputs = count_of(model, CRD_OUTPUT);
    const int parameters = count_of(model, CRD_PARAMETER);
    crdi_say(out,
             "%s: %d part%s, %d input%s, %d output%s, %d parameter%s, %s, steps of at most %s, FMI "
             "%d.0\n",
             output, n->part_count, crdi_plural(n->part_count), inputs, crdi_plural(inputs),
             outputs, crdi_plural(outputs), parameters, crdi_plural(parameters),
             crdi_circuit_method_text(opt.method), crdi_format_seconds(step, opt.step), version);
fail:
    crdi_circuit_model_destroy(model);
    crd_netlist_destroy(n);
    crd_text_clear(&flat);
    crd_arena_clear(&arena);
    return st;
}
