// cardan export c: what runs on a controller as one C file and its header.
#include "cli/circuit/circuit.h"
#include "cli/export/export.h"
#include "shared/circuit_emit.h"
#include "shared/coupling.h"
#include "shared/dcp.h"
#include "shared/twin_emit.h"
#include "shared/unit.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { MOST_VARIABLES = 60000 }; // indices of 16 bits, and a controller's memory

static crd_status circuit_options(crd_context* ctx, const crdi_export_options* o,
                                  const char* subject, const crd_netlist* n,
                                  crd_circuit_options* opt)
{
    *opt = crd_circuit_defaults();
    opt->form = CRD_FORM_DAE;
    if (o->method >= 0) { opt->method = (crd_circuit_method)o->method; }
    opt->step = isnan(o->step) ? n->tran_step : o->step;
    if (o->iterations > 0) { opt->max_iterations = o->iterations; }
    if (isnan(opt->step)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s has no .tran that says the step: say it with --step, as in --step "
                         "10us",
                         subject);
    }
    return CRD_OK;
}

static crd_status write_both(crd_context* ctx, const char* path, const crd_text* source,
                             const crd_text* header)
{
    const size_t n = strlen(path); // ends with .c
    char other[4096];
    snprintf(other, sizeof other, "%.*sh", (int)(n - 1), path);
    const crd_status st = crdi_file_write(ctx, path, source);
    return st < 0 ? st : crdi_file_write(ctx, other, header);
}

// FILE.c says the name as well: the file includes NAME.h.
static crd_status output_of(crd_context* ctx, const crdi_export_options* o, crd_arena* arena,
                            const char* subject, const char* own, const char** name,
                            const char** output)
{
    crd_status st = crdi_export_name(ctx, o, arena, subject, own, name);
    if (st < 0) { return st; }
    *output = o->output ? o->output : crdi_arena_format(arena, "%s.c", *name);
    if (!*output) { return CRD_E_MEMORY; }
    if (!crdi_ends_with(*output, ".c") || strlen(*output) > 4000) {
        return crdi_fail(ctx, CRD_E_RANGE, "--output %s, expected a name that ends with .c",
                         *output);
    }
    const char* stem = crdi_file_stem(arena, *output);
    if (!stem) { return CRD_E_MEMORY; }
    if (strcmp(stem, *name) != 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--output %s and the name %s: the file includes %s.h, so it has to be "
                         "called %s.c",
                         *output, *name, *name, *name);
    }
    return CRD_OK;
}

static void say_circuit(crdi_result* out, const char* output, const crd_netlist* n,
                        const crd_circuit_options* opt, bool single, const crdi_emit_report* r)
{
    char step[32];
    crdi_say(out,
             "%s: %d part%s, %d input%s, %d output%s, %s, steps of %s, %s precision\n"
             "a step takes at most %lld sums, products and comparisons, %lld divisions and %lld "
             "functions; state %zu bytes, tables %zu\n",
             output, n->part_count, crdi_plural(n->part_count), n->input_count,
             crdi_plural(n->input_count), r->outputs, crdi_plural(r->outputs),
             crdi_circuit_method_text(opt->method), crdi_format_seconds(step, opt->step),
             single ? "single" : "double", (long long)r->cost.sums, (long long)r->cost.divisions,
             (long long)r->cost.functions, r->state, r->tables);
}

static crd_status export_netlist(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                                 crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_context* ctx = cli->ctx;
    crd_netlist* n = NULL;
    crd_circuit* c = NULL;
    crd_circuit_options opt;
    crdi_emit_report report;
    crd_arena arena;
    crd_text source, header;
    crd_arena_init(&arena, ctx);
    crd_text_init(&source, ctx);
    crd_text_init(&header, ctx);
    const char *name, *output;
    const crd_netlist_options reading = {.defines = o->params.items,
                                         .define_count = o->params.count};
    if (!isnan(o->latency)) {
        CRD_TRY(
            crdi_fail(ctx, CRD_E_RANGE, "--latency is for a coupling element, not for a netlist"));
    }
    CRD_TRY(output_of(ctx, o, &arena, subject, NULL, &name, &output));
    CRD_TRY(crd_netlist_load(ctx, subject, &reading, &n));
    CRD_TRY(crdi_export_spares(ctx, n, subject, "the netlist that it is made of", output));
    CRD_TRY(circuit_options(ctx, o, subject, n, &opt));
    CRD_TRY(crd_circuit_create(ctx, n, &opt, &c));
    if (crd_circuit_get_structure(c).variables > MOST_VARIABLES) {
        CRD_TRY(crdi_fail(ctx, CRD_E_UNSUPPORTED, "%s: %lld variables are too many, expected %d",
                          subject, (long long)crd_circuit_get_structure(c).variables,
                          MOST_VARIABLES));
    }
    CRD_TRY(crd_circuit_begin(c, 0));
    const crdi_emit_options emit = {.name = name, .origin = subject, .single = o->precision == 1};
    CRD_TRY(crdi_circuit_emit(c, &emit, &source, &header, &report));
    CRD_TRY(write_both(ctx, output, &source, &header));
    say_circuit(out, output, n, &opt, emit.single, &report);
fail:
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
    crd_text_clear(&source);
    crd_text_clear(&header);
    crd_arena_clear(&arena);
    return st;
}

// ---- a twin
// --------------------------------------------------------------------------------------

// The description of a twin has the key sensors, that of an element has none.
static crd_status is_twin(crd_context* ctx, const char* subject, bool* twin)
{
    static const crdi_file_need need = {.what = "a description", .most = 4 << 20};
    *twin = false;
    if (subject[strspn(subject, " \t\r\n")] == '{' ||
        !(crdi_ends_with(subject, ".yaml") || crdi_ends_with(subject, ".yml") ||
          crdi_ends_with(subject, ".json"))) {
        return CRD_OK;
    }
    crd_text text;
    crd_text_init(&text, ctx);
    const crd_status st = crdi_file_read(ctx, subject, &need, &text);
    for (const char* line = st < 0 ? "" : text.data; *line && !*twin;) {
        const char* key = line + strspn(line, " {\"");
        *twin = strncmp(key, "sensors", 7) == 0 && key[7 + strspn(key + 7, "\" ")] == ':';
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    crd_text_clear(&text);
    return st;
}

static crd_status refuse_options(crd_context* ctx, const crdi_export_options* o, const char* what);

static void say_twin(crdi_result* out, const char* output, const crd_twin_description* d,
                     const crdi_twin_emit_report* r)
{
    const crd_twin_spec* s = &d->spec;
    char step[32];
    crdi_say(out,
             "%s: %d sensor%s, %d source%s and %d value%s to find, %d output%s, steps of %s, for "
             "libcardan-core\na step takes at most %lld sums, products and comparisons, and %lld "
             "divisions and roots; the filter has %d unknowns\n",
             output, s->sensor_count, crdi_plural(s->sensor_count), s->source_count,
             crdi_plural(s->source_count), s->parameter_count, crdi_plural(s->parameter_count),
             d->netlist->output_count, crdi_plural(d->netlist->output_count),
             crdi_format_seconds(step, s->step), (long long)r->sums, (long long)r->divisions,
             r->size);
    if (r->again) {
        crdi_say(out, "one in which values have moved and matrices are made anew takes %lld\n",
                 (long long)r->again);
    }
}

static crd_status export_twin(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                              crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_context* ctx = cli->ctx;
    crd_twin_description* d = NULL;
    crdi_twin_emit_report report;
    crd_arena arena;
    crd_text source, header;
    crd_arena_init(&arena, ctx);
    crd_text_init(&source, ctx);
    crd_text_init(&header, ctx);
    const char *name, *output;
    CRD_TRY(refuse_options(ctx, o,
                           "a twin's step is that of its description, its numbers are "
                           "doubles; expected"));
    CRD_TRY(crdi_twin_read(ctx, subject, &d));
    CRD_TRY(output_of(ctx, o, &arena, subject, d->name, &name, &output));
    CRD_TRY(crdi_export_spares(ctx, d->netlist, subject, "what it is made of", output));
    CRD_TRY(crdi_twin_emit(ctx, d, name, subject, &source, &header, &report));
    CRD_TRY(write_both(ctx, output, &source, &header));
    say_twin(out, output, d, &report);
fail:
    crd_twin_description_destroy(d);
    crd_text_clear(&source);
    crd_text_clear(&header);
    crd_arena_clear(&arena);
    return st;
}

// ---- a slave's description ---------------------------------------------------------------------

// `what`: the sentence before "no other options than"
static crd_status refuse_options(crd_context* ctx, const crdi_export_options* o, const char* what)
{
    if (!isnan(o->latency)) {
        return crdi_fail(ctx, CRD_E_RANGE, "--latency is for a coupling element");
    }
    const char* given = o->method >= 0        ? "--method"
                        : !isnan(o->step)     ? "--step"
                        : o->precision >= 0   ? "--precision"
                        : o->iterations > 0   ? "--iterations"
                        : o->params.count > 0 ? "--param"
                                              : NULL;
    if (!given) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "%s is for a netlist; %s no other options than --name and --output", given,
                     what);
}

static crd_status export_description(crdi_cli* cli, const crdi_export_options* o,
                                     const char* subject, crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_context* ctx = cli->ctx;
    crd_dcp_description* d = NULL;
    crd_arena arena;
    crd_text source, header;
    crd_arena_init(&arena, ctx);
    crd_text_init(&source, ctx);
    crd_text_init(&header, ctx);
    const char *name, *output;
    CRD_TRY(refuse_options(ctx, o, "a description has"));
    CRD_TRY(output_of(ctx, o, &arena, subject, NULL, &name, &output));
    CRD_TRY(crdi_export_load_slave(ctx, subject, &d));
    crdi_dcp_emit(d, name, subject, &source, &header);
    CRD_TRY(write_both(ctx, output, &source, &header));
    crdi_say(out, "%s: slave %s, %d variable%s, for libcardan-core\n", output, d->name,
             d->variable_count, crdi_plural(d->variable_count));
fail:
    crd_dcp_description_destroy(d);
    crd_text_clear(&source);
    crd_text_clear(&header);
    crd_arena_clear(&arena);
    return st;
}

// ---- a coupling element ------------------------------------------------------------------------

// Braces, a file of YAML or JSON, or a word that is no file.
static bool is_element(const char* subject)
{
    const char* first = subject + strspn(subject, " \t\r\n");
    if (*first == '{' || crdi_ends_with(subject, ".yaml") || crdi_ends_with(subject, ".yml") ||
        crdi_ends_with(subject, ".json")) {
        return true;
    }
    return !strpbrk(subject, "./") && access(subject, F_OK) != 0;
}

static crd_status check_element(crd_context* ctx, const crd_element* e, const char* subject, int k)
{
    if (e->options.detection != CRD_DETECT_NONE) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "%s detects discontinuities, for which one file is too little: expected "
                         "detect: none, as in '{algorithm: eros, detect: none}', or libcardan-core "
                         "(docs/how-to/controllers.md)",
                         subject);
    }
    if (e->signal_count != 1) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "%s has %d signals, expected one: make one struct per signal", subject,
                         e->signal_count);
    }
    if (k < 0 || k > CRD_LATENCY_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: the file is made for one latency; expected --latency STEPS, 0 to %d, "
                         "as in --latency 3",
                         subject, CRD_LATENCY_MAX);
    }
    return CRD_OK;
}

static crd_status export_element(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                                 crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_context* ctx = cli->ctx;
    crd_element* e = NULL;
    crd_linear l = {0};
    crd_arena arena;
    crd_text source, header;
    crd_arena_init(&arena, ctx);
    crd_text_init(&source, ctx);
    crd_text_init(&header, ctx);
    const char *name, *output;
    int cost = 0;
    if (o->method >= 0 || o->iterations > 0 || o->params.count > 0) {
        CRD_TRY(
            crdi_fail(ctx, CRD_E_RANGE, "--method, --iterations and --param are for a netlist"));
    }
    CRD_TRY(crdi_load_element(ctx, subject, &e));
    CRD_TRY(crdi_export_apply(cli, o, &arena, subject, e));
    const int k = crd_element_latency(e, e->step);
    CRD_TRY(check_element(ctx, e, subject, k));
    CRD_TRY(output_of(ctx, o, &arena, subject, e->name, &name, &output));
    CRD_TRY(crd_element_linear(e, e->step, k, &l));
    const crdi_coupling_emit_options opt = {
        .name = name, .origin = e->label, .step = e->step, .single = o->precision == 1};
    crdi_coupling_emit(&l, e->options.reconstruction == CRD_RECONSTRUCT_HOLD, &opt, &source,
                       &header, &cost);
    CRD_TRY(write_both(ctx, output, &source, &header));
    char step[32];
    crdi_say(out,
             "%s: %s, latency %d, macro steps of %s, %s precision\nan estimate takes at most %d "
             "sums and products; state %d %s\n",
             output, e->label, k, crdi_format_seconds(step, e->step),
             opt.single ? "single" : "double", cost, l.m, opt.single ? "floats" : "doubles");
fail:
    crd_linear_clear(e ? e->ctx : ctx, &l);
    crd_element_destroy(e);
    crd_text_clear(&source);
    crd_text_clear(&header);
    crd_arena_clear(&arena);
    return st;
}

crd_status crdi_export_c(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                         crdi_result* out)
{
    if (crdi_ends_with(subject, ".dcpx") || crdi_ends_with(subject, ".dcp")) {
        return export_description(cli, o, subject, out);
    }
    bool twin;
    const crd_status st = is_twin(cli->ctx, subject, &twin);
    if (st < 0) { return st; }
    return twin ? export_twin(cli, o, subject, out)
                : (is_element(subject) ? export_element : export_netlist)(cli, o, subject, out);
}
