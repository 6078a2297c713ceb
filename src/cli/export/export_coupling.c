// cardan export coupling: an element as an FMU. Its binaries and sources are the same for all
// elements and part of this program; the element is a file of the FMU's resources.
#include "cardan/coupling.h"
#include "cardan/unit.h"
#include "cli/export/export.h"

#include <math.h>
#include <string.h>

static crd_status write_with(crd_context* ctx, const crd_text* json, int version,
                             const char* platforms, const char* label, const char* path)
{
    crd_status st = CRD_OK;
    const crd_model* model = NULL;
    CRD_TRY(json->failed || !json->data ? CRD_E_MEMORY : CRD_OK);
    CRD_TRY(crd_coupling_model_create(ctx, json->data, json->length, label, &model));
    const crdi_resource resource = {"element.json", json->data, json->length};
    CRD_TRY(crdi_write_fmu(ctx, &crdi_coupling_template, version, platforms, model, &resource, 1,
                           path));
fail:
    crd_coupling_model_destroy(model);
    return st;
}

crd_status crdi_write_coupling_fmu(crd_context* ctx, const crd_element* e, int version,
                                   const char* platforms, const char* label, const char* path)
{
    crd_text json;
    crd_text_init(&json, ctx);
    crd_status st = crd_element_write(e, &json);
    if (st >= 0) { st = write_with(ctx, &json, version, platforms, label, path); }
    crd_text_clear(&json);
    return st;
}

// ---- the command -------------------------------------------------------------------------------

// "3", or "torque,speed".
static crd_status take_signals(crd_context* ctx, crd_arena* arena, const char* text, crd_element* e)
{
    int64_t n = 0;
    if (crdi_parse_int64(text, strlen(text), &n)) {
        if (n < 1 || n > 1000) {
            return crdi_fail(ctx, CRD_E_RANGE, "--signals %s, expected 1 to 1000, or names", text);
        }
        e->signal_count = (int)n;
        e->signal_names = NULL;
        return CRD_OK;
    }
    size_t count = 1;
    for (const char* p = text; *p; p++) {
        count += *p == ',';
    }
    if (count > 1000) {
        return crdi_fail(ctx, CRD_E_RANGE, "--signals: %zu names, expected at most 1000", count);
    }
    const char** names = crdi_arena_new(arena, count, sizeof *names);
    if (!names) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < count; i++) {
        const size_t length = strcspn(text, ",");
        names[i] = crdi_arena_text(arena, text, length);
        if (!names[i]) { return CRD_E_MEMORY; }
        if (!length) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "--signals: a name is empty, expected names between commas as in "
                             "torque,speed");
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(names[i], names[k]) == 0) {
                return crdi_fail(ctx, CRD_E_RANGE, "--signals: '%.80s' is there twice", names[i]);
            }
        }
        text += length + (i + 1 < count);
    }
    e->signal_names = names;
    e->signal_count = (int)count;
    return CRD_OK;
}

crd_status crdi_export_apply(crdi_cli* cli, const crdi_export_options* o, crd_arena* arena,
                             const char* subject, crd_element* e)
{
    if (!isnan(o->step)) { e->step = o->step; }
    if (isnan(e->step)) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "%s has no macro step: say it with --step, as in --step 10ms", subject);
    }
    if (!isnan(o->latency)) {
        const bool whole = o->latency == floor(o->latency) && o->latency <= CRD_LATENCY_MAX;
        e->latency_steps = whole ? (int)o->latency : -1;
        e->latency = whole ? NAN : o->latency * e->step;
    }
    // Its outputs are those at the end of a step, when the newest sample is a macro step older.
    const int oldest = e->latency_steps < CRD_LATENCY_MAX ? e->latency_steps + 1 : CRD_LATENCY_MAX;
    if (e->options.k_max < oldest) { e->options.k_max = oldest; }
    if (o->signals) {
        const crd_status st = take_signals(cli->ctx, arena, o->signals, e);
        if (st < 0) { return st; }
    }
    if (o->name) { e->name = o->name; }
    if (!e->name || !e->name[0]) {
        const char* stem = o->output ? crdi_file_stem(arena, o->output) : "coupling";
        e->name = stem ? crdi_identifier(arena, stem) : NULL;
    }
    return e->name ? CRD_OK : CRD_E_MEMORY;
}

// One side of a pair. What it needs to know is parameters of the FMU.
static crd_status export_pair(crdi_cli* cli, const crdi_export_options* o, const char* side,
                              crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    crd_text json;
    crdi_json_writer w;
    const int version = o->fmi == 1 ? 3 : 2;
    crd_arena_init(&arena, cli->ctx);
    crd_text_init(&json, cli->ctx);
    if (isnan(o->step) || o->signals || !isnan(o->latency)) {
        CRD_TRY(crdi_fail(cli->ctx, CRD_E_RANGE,
                          "pair-%s%s, expected --step with its inner step, as in --step 1ms", side,
                          isnan(o->step) ? ""
                          : o->signals   ? " with --signals"
                                         : " with --latency"));
    }
    const char* stem = o->output ? crdi_file_stem(&arena, o->output) : "pair";
    const char* name = o->name ? o->name : stem ? crdi_identifier(&arena, stem) : NULL;
    const char* output = o->output ? o->output : crdi_arena_format(&arena, "%s.fmu", name);
    CRD_TRY(name && output ? CRD_OK : CRD_E_MEMORY);
    crdi_json_writer_init(&w, &json, CRDI_JSON_COMPACT);
    crdi_json_begin_object(&w, NULL);
    crdi_json_put(&w, TEXT("pair", side), TEXT("name", name), REAL("step", o->step));
    crdi_json_end(&w);
    CRD_TRY(write_with(cli->ctx, &json, version, o->platforms, "--name", output));
    char step[32];
    crdi_say(out, "%s: wave port of a unit that owns the %s, inner step %s, FMI %d.0\n", output,
             side, crdi_format_seconds(step, o->step), version);
fail:
    crd_text_clear(&json);
    crd_arena_clear(&arena);
    return st;
}

crd_status crdi_export_coupling(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                                crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_element* e = NULL;
    crd_arena arena;
    if (strcmp(subject, "pair-flow") == 0) { return export_pair(cli, o, "flow", out); }
    if (strcmp(subject, "pair-effort") == 0) { return export_pair(cli, o, "effort", out); }
    crd_arena_init(&arena, cli->ctx);
    const int version = o->fmi == 1 ? 3 : 2;
    CRD_TRY(crdi_load_element(cli->ctx, subject, &e));
    CRD_TRY(crdi_export_apply(cli, o, &arena, subject, e));
    const char* output = o->output ? o->output : crdi_arena_format(&arena, "%s.fmu", e->name);
    CRD_TRY(output ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(crdi_refuse_overwriting(cli->ctx, output, subject, "the FMU",
                                    "the element that it is made of"));
    CRD_TRY(crdi_write_coupling_fmu(cli->ctx, e, version, o->platforms, subject, output));
    char step[32];
    crdi_say(out, "%s: %s, %d signal%s, macro step %s, FMI %d.0\n", output, e->label,
             e->signal_count, crdi_plural(e->signal_count), crdi_format_seconds(step, e->step),
             version);
fail:
    crd_element_destroy(e);
    crd_arena_clear(&arena);
    return st;
}
