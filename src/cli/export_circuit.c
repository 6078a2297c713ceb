// cardan export circuit: a netlist as an FMU. Its binaries are part of this program; the netlist
// goes along in one piece, and they read it.
#include "cli/circuit.h"
#include "cli/export.h"
#include "shared/circuit_model.h"

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

// A circuit that does not begin is not worth an FMU.
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
    const char* stem = o->name     ? o->name
                       : o->output ? crdi_file_stem(arena, o->output)
                                   : crdi_file_stem(arena, subject);
    opt->name = stem ? crdi_identifier(arena, stem) : NULL;
    if (!opt->name) { return CRD_E_MEMORY; }
    if (o->name && strcmp(o->name, opt->name) != 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--name %s, expected letters, digits and '_' as in a name of C", o->name);
    }
    return CRD_OK;
}

static crd_status write_fmu(crd_context* ctx, const crd_model* model,
                            const crdi_circuit_model_options* opt, const crd_text* netlist,
                            int version, const char* output)
{
    crd_status st = CRD_OK;
    crd_text settings;
    crd_text_init(&settings, ctx);
    CRD_TRY(crdi_circuit_model_pack(ctx, opt, &settings));
    const crdi_resource resources[] = {{"circuit.cir", netlist->data, netlist->length},
                                       {"circuit.settings", settings.data, settings.length}};
    CRD_TRY(crdi_write_fmu(ctx, &crdi_circuit_template, version, model, resources, 2, output));
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

static crd_status check_output(crd_context* ctx, const crd_netlist* n, const char* output)
{
    for (int i = -1; i < n->part_count; i++) {
        const char* file = n->files[i < 0 ? 0 : n->parts[i].file];
        if (i > 0 && n->parts[i].file == n->parts[i - 1].file) { continue; }
        if (crdi_same_file(output, file)) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "%s: the FMU would overwrite the netlist that it is made of; choose "
                             "another file with --output",
                             output);
        }
    }
    return CRD_OK;
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
    CRD_TRY(check_output(ctx, n, output));
    CRD_TRY(crdi_circuit_model_create(ctx, flat.data, flat.length, subject, &opt, &model));
    if (version == 2 && model->variable_count > MOST_VARIABLES_2) {
        CRD_TRY(crdi_fail(ctx, CRD_E_UNSUPPORTED,
                          "%s: %d variables; an FMU of FMI 2.0 has room for %d, choose FMI 3.0 "
                          "with --fmi 3",
                          subject, model->variable_count, MOST_VARIABLES_2));
    }
    CRD_TRY(try_out(ctx, model));
    CRD_TRY(write_fmu(ctx, model, &opt, &flat, version, output));
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
