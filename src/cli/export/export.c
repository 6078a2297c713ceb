// cardan export: systems, coupling elements, slaves, circuits and twins as files that other tools
// open.
#include "cli/export/export.h"
#include "cardan/fmi.h"
#include "cardan/system.h"
#include "cli/circuit/circuit.h"

#include <math.h>
#include <string.h>

static const char* const versions[] = {"1", "2", NULL};
static const char* const fmi_versions[] = {"2", "3", NULL};
static const char* const precisions[] = {"double", "single", NULL};
static const char* const modes[] = {"nrt", "srt", NULL};

// ---- what the units look like ------------------------------------------------------------------

// One FMU, however many units it serves.
typedef struct model {
    const char* path;
    crd_fmu* fmu;
    crd_ssp_connector* connectors;
    int count;
    struct model* next;
} model;

typedef struct looker {
    crd_system* s;
    crd_arena arena;
    model* models;
} looker;

static uint64_t axis_length(const crd_fmu_description* d, const crd_fmu_axis* a)
{
    uint64_t length = a->start;
    const char* start = a->variable < 0 ? NULL : d->variables[a->variable].start;
    if (start) { (void)crdi_parse_uint64(start, strlen(start), &length); }
    return length;
}

static bool take_axes(looker* l, const crd_fmu_description* d, int32_t variable,
                      crd_ssp_connector* c)
{
    c->rank = d->variables[variable].rank;
    if (c->rank == 0) { return true; }
    uint64_t* sizes = crdi_arena_new(&l->arena, (size_t)c->rank, sizeof *sizes);
    for (int i = 0; sizes && i < c->rank; i++) {
        sizes[i] = axis_length(d, &d->axes[d->axis_first[variable] + i]);
    }
    c->sizes = sizes;
    return sizes != NULL;
}

static bool take_items(looker* l, const crd_fmu_enumeration* e, crd_ssp_connector* c)
{
    crd_ssp_item* items = crdi_arena_new(&l->arena, (size_t)e->item_count, sizeof *items);
    for (int32_t i = 0; items && i < e->item_count; i++) {
        items[i] = (crd_ssp_item){e->items[i].name, e->items[i].value};
    }
    c->enumeration = e->name;
    c->items = items;
    c->item_count = e->item_count;
    return items != NULL;
}

static bool take_variable(looker* l, const crd_fmu_description* d, int32_t index,
                          crd_ssp_connector* c)
{
    const crd_variable* v = &d->variables[index];
    *c = (crd_ssp_connector){.name = v->name,
                             .unit = v->unit,
                             .type = (crd_type)v->type,
                             .causality = (crd_causality)v->causality,
                             .enumeration = ""};
    if (v->unit_index >= 0 && d->units[v->unit_index].has_base) {
        c->has_dimension = true;
        c->dimension = d->units[v->unit_index].base;
    }
    c->relative = v->relative_quantity;
    if (v->type == CRD_ENUMERATION && v->type_index >= 0 &&
        !take_items(l, &d->enumerations[v->type_index], c)) {
        return false;
    }
    return take_axes(l, d, index, c);
}

static crd_status model_of(looker* l, const char* path, model** out)
{
    crd_status st = CRD_OK;
    for (model* m = l->models; m; m = m->next) {
        if (strcmp(m->path, path) == 0) {
            *out = m;
            return CRD_OK;
        }
    }
    model* m = crdi_arena_new(&l->arena, 1, sizeof *m);
    if (!m) { return CRD_E_MEMORY; }
    crd_fmu_options opt = crd_fmu_defaults();
    opt.description_only = true;
    CRD_TRY(crd_fmu_open(l->s->ctx, path, &opt, &m->fmu));
    m->path = path;
    m->next = l->models;
    l->models = m;
    const crd_fmu_description* d = crd_fmu_describe(m->fmu);
    m->connectors = crdi_arena_new(&l->arena, (size_t)d->variable_count, sizeof *m->connectors);
    if (!m->connectors) { return CRD_E_MEMORY; }
    for (int32_t i = 0; i < d->variable_count; i++) {
        if (!take_variable(l, d, i, &m->connectors[m->count++])) { return CRD_E_MEMORY; }
    }
    *out = m;
fail:
    return st;
}

static crd_status signal_connectors(looker* l, const crd_unit_spec* u,
                                    const crd_ssp_connector** out, int* count)
{
    crd_ssp_connector* all = crdi_arena_new(&l->arena, (size_t)u->signal_count, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    for (int i = 0; i < u->signal_count; i++) {
        all[i] = (crd_ssp_connector){.name = u->signals[i].name,
                                     .unit = u->signals[i].unit,
                                     .causality = CRD_OUTPUT,
                                     .enumeration = ""};
    }
    *out = all;
    *count = u->signal_count;
    return CRD_OK;
}

static crd_status connectors(void* user, int unit, const crd_ssp_connector** out, int* count)
{
    looker* l = user;
    const crd_unit_spec* u = &l->s->units[unit];
    *out = NULL;
    *count = 0;
    if (u->source == CRD_UNIT_SIGNAL) { return signal_connectors(l, u, out, count); }
    if (u->source != CRD_UNIT_FMU) { return CRD_OK; } // a recording: those that are connected
    model* m = NULL;
    const crd_status st = model_of(l, u->path, &m);
    if (st < 0) { return st; }
    *out = m->connectors;
    *count = m->count;
    return CRD_OK;
}

// ---- names that are not there ------------------------------------------------------------------

typedef struct names {
    const model* m;
    int at;
} names;

static const char* next_name(void* user)
{
    names* n = user;
    return n->at < n->m->count ? n->m->connectors[n->at++].name : NULL;
}

// A package with connectors that its FMUs do not have would fail in the hands of another.
static crd_status need_variable(looker* l, int unit, const char* variable, crd_place place)
{
    const crd_unit_spec* u = &l->s->units[unit];
    model* m = NULL;
    if (u->source != CRD_UNIT_FMU) { return CRD_OK; }
    const crd_status st = model_of(l, u->path, &m);
    if (st < 0 || crd_fmu_find(m->fmu, variable) >= 0) { return st; }
    char array[512];
    const char* bracket = strrchr(variable, '[');
    if (bracket && (size_t)(bracket - variable) < sizeof array) {
        snprintf(array, sizeof array, "%.*s", (int)(bracket - variable), variable);
        if (crd_fmu_find(m->fmu, array) >= 0) { return CRD_OK; }
    }
    names n = {m, 0};
    const char* near = crdi_nearest(variable, next_name, &n);
    char at[400] = "";
    if (place.file && place.file[0] && place.line > 0) {
        snprintf(at, sizeof at, "%.300s:%d: ", place.file, place.line);
    } else if (place.file && place.file[0]) {
        snprintf(at, sizeof at, "%.300s: ", place.file);
    }
    return crdi_fail(l->s->ctx, CRD_E_NOT_FOUND, "%sunit '%s' has no variable '%s'%s%s%s", at,
                     u->name, variable, near ? ", did you mean '" : "", near ? near : "",
                     near ? "'?" : "");
}

static crd_status check_names(looker* l)
{
    crd_status st = CRD_OK;
    const crd_system* s = l->s;
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        CRD_TRY(need_variable(l, c->from_unit, c->from, c->place));
        CRD_TRY(need_variable(l, c->to_unit, c->to, c->place));
    }
    for (int i = 0; i < s->unit_count; i++) {
        for (int k = 0; k < s->units[i].parameter_count; k++) {
            const crd_setting* p = &s->units[i].parameters[k];
            if (!p->optional) { CRD_TRY(need_variable(l, i, p->variable, p->place)); }
        }
    }
fail:
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status export_ssp(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                             crdi_result* out)
{
    crd_status st = CRD_OK;
    looker l = {0};
    crd_arena_init(&l.arena, cli->ctx);
    CRD_TRY(crdi_load_variant(cli->ctx, subject, o->variant, &l.s));
    for (int i = 0; i < o->parameters.count; i++) {
        CRD_TRY(crdi_apply_parameters(l.s, o->parameters.items[i]));
    }
    for (int i = 0; i < o->set.count; i++) {
        CRD_TRY(crdi_apply_set(l.s, o->set.items[i]));
    }
    const char* stem = crdi_file_stem(&l.arena, subject);
    const char* output = o->output ? o->output
                         : stem    ? crdi_arena_format(&l.arena, "%s.ssp", stem)
                                   : NULL;
    if (!l.s->title[0]) { l.s->title = stem; }
    CRD_TRY(output && stem ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(
        crdi_refuse_overwriting(cli->ctx, output, subject, "the package", "what it is made of"));
    CRD_TRY(check_names(&l));
    const crd_ssp_source source = {&l, connectors};
    const crd_ssp_options opt = {
        .version = o->ssp_version == 1 ? 2 : 1, .author = o->author, .only_used = o->only_used};
    CRD_TRY(crd_ssp_write(l.s, output, &source, &opt));
    crdi_say(out, "%s: %d unit%s, %d connection%s, SSP %d.0\n", output, l.s->unit_count,
             crdi_plural(l.s->unit_count), l.s->connection_count,
             crdi_plural(l.s->connection_count), opt.version);
fail:
    for (model* m = l.models; m; m = m->next) {
        crd_fmu_close(m->fmu);
    }
    crd_system_destroy(l.s);
    crd_arena_clear(&l.arena);
    return st;
}

// ---- kinds -------------------------------------------------------------------------------------

enum { SSP = 1, COUPLING = 2, DCP = 4, CIRCUIT = 8, TWIN = 16, C = 32 };
enum { FMU = COUPLING | DCP | CIRCUIT | TWIN };

typedef struct kind {
    const char *word, *subject;
    int bit;
    crd_status (*run)(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                      crdi_result* out);
} kind;

static const kind kinds[] = {{"ssp", "SYSTEM", SSP, export_ssp},
                             {"coupling", "ELEMENT", COUPLING, crdi_export_coupling},
                             {"dcp", "SLAVE.dcpx", DCP, crdi_export_dcp},
                             {"circuit", "NETLIST", CIRCUIT, crdi_export_circuit},
                             {"twin", "TWIN.yaml", TWIN, crdi_export_twin},
                             {"c", "FILE", C, crdi_export_c}};

// An option that was given and belongs to other kinds is a mistake.
static crd_status check_foreign(crd_context* ctx, const crdi_export_options* o, int own)
{
    const struct {
        const char* name;
        bool given;
        int kinds;
    } all[] = {{"--ssp-version", o->ssp_version >= 0, SSP},
               {"--parameters", o->parameters.count > 0, SSP},
               {"--set", o->set.count > 0, SSP | DCP},
               {"--variant", o->variant != NULL, SSP},
               {"--only-used", o->only_used, SSP},
               {"--author", o->author != NULL, SSP},
               {"--fmi", o->fmi >= 0, FMU},
               {"--platforms", o->platforms != NULL, FMU},
               {"--signals", o->signals != NULL, COUPLING},
               {"--name", o->name != NULL, FMU | C},
               {"--step", !isnan(o->step), COUPLING | DCP | CIRCUIT | C},
               {"--latency", !isnan(o->latency), COUPLING | C},
               {"--mode", o->mode >= 0, DCP},
               {"--address", o->address != NULL, DCP},
               {"--method", o->method >= 0, CIRCUIT | C},
               {"--param", o->params.count > 0, CIRCUIT | C},
               {"--precision", o->precision >= 0, C},
               {"--iterations", o->iterations >= 0, C}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i].given || (all[i].kinds & own)) { continue; }
        char words[100] = "";
        int left = __builtin_popcount((unsigned)all[i].kinds);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (!(all[i].kinds & kinds[k].bit)) { continue; }
            const char* gap = !words[0] ? "" : left == 1 ? " and " : ", ";
            snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", gap,
                     kinds[k].word);
            left--;
        }
        return crdi_fail(ctx, CRD_E_RANGE, "%s is an option of cardan export %s", all[i].name,
                         words);
    }
    return CRD_OK;
}

static crd_status run_export(crdi_cli* cli, const void* options, const crdi_list* arguments,
                             crdi_result* out)
{
    const crdi_export_options* o = options;
    const char* word = arguments->items[0];
    const kind* k = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(word, kinds[i].word) == 0) { k = &kinds[i]; }
    }
    if (!k) {
        return crdi_fail(
            cli->ctx, CRD_E_RANGE,
            "'%s' is nothing that can be exported, expected: cardan export ssp SYSTEM, "
            "cardan export coupling ELEMENT, cardan export dcp SLAVE.dcpx, cardan export "
            "circuit NETLIST, cardan export twin TWIN.yaml, or cardan export c "
            "NETLIST|ELEMENT|TWIN.yaml|SLAVE.dcpx",
            word);
    }
    if (arguments->count < 2) {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "%s is missing: cardan export %s %s", k->subject,
                         k->word, k->subject);
    }
    const crd_status st = check_foreign(cli->ctx, o, k->bit);
    return st < 0 ? st : k->run(cli, o, arguments->items[1], out);
}

static const crdi_option rows[] = {
    OPT_FILE(crdi_export_options, output, "output", "ssp|fmu|c",
             "the package, FMU or C file; the name of SYSTEM with .ssp, or that of the element, "
             "slave, netlist or twin with .fmu or .c, in this folder unless given",
             .short_name = 'o'),
    OPT_CHOICE(crdi_export_options, ssp_version, "ssp-version", versions,
               "version of the standard; 1 unless given, which all tools read"),
    CRDI_PARAMETERS_OPTION(crdi_export_options, parameters),
    OPT_LIST(crdi_export_options, set, "set", "UNIT.VAR=VALUE",
             "start value or parameter as for run; for a single FMU VAR=VALUE; dcp: a structural "
             "parameter, NAME=VALUE"),
    CRDI_VARIANT_OPTION(crdi_export_options),
    OPT_FLAG(crdi_export_options, only_used, "only-used",
             "connectors only for variables that are connected or set, not for all inputs, outputs "
             "and parameters"),
    OPT_TEXT(crdi_export_options, author, "author", "NAME",
             "who made it, for the description in the package"),
    OPT_CHOICE(crdi_export_options, fmi, "fmi", fmi_versions,
               "coupling, dcp, circuit, twin: version of the standard; 2 unless given, which most "
               "tools read"),
    OPT_TEXT(crdi_export_options, platforms, "platforms", "NAMES",
             "coupling, dcp, circuit, twin: with binaries for these machines, too, as in "
             "aarch64-linux,aarch32-linux; compiled as cardan build does"),
    OPT_TIME(crdi_export_options, step, "step", CRDI_POSITIVE,
             "coupling: macro step, the time between two samples; the element's own unless given. "
             "dcp: communication step, for which the slave has to offer a time resolution. "
             "circuit: largest step inside the FMU; that of .tran unless given. The FMU's "
             "parameter step changes it. c: the step; that of .tran unless given"),
    OPT_NUMBER(
        crdi_export_options, latency, "latency", "STEPS", CRDI_NOT_NEGATIVE,
        "coupling, c: known age of the samples in macro steps; measured by their time stamps "
        "unless the element says it, but c needs one"),
    OPT_TEXT(
        crdi_export_options, signals, "signals", "N|NAMES",
        "coupling: how many signals, which become arrays, or their names between commas, which "
        "become variables such as u.torque; 1 unless the element says it"),
    OPT_TEXT(crdi_export_options, name, "name", "NAME",
             "coupling, dcp, circuit, twin, c: name of the model; that of the element or slave, or "
             "of the file, unless given"),
    OPT_CHOICE(crdi_export_options, method, "method", crdi_circuit_methods,
               "circuit, c: method of integration; tr unless given"),
    OPT_LIST(
        crdi_export_options, params, "param", "NAME=VALUE",
        "circuit, c: value of a .param of the netlist, as in N=10 or R=4.7k; the FMU begins with "
        "it. Those that are plain numbers in the netlist are parameters of the FMU"),
    OPT_CHOICE(crdi_export_options, mode, "mode", modes,
               "dcp: nrt, as fast as the slave computes, or srt, along with the wall clock; nrt "
               "unless given, if the slave offers it. The FMU's parameter dcp.mode changes it"),
    OPT_TEXT(crdi_export_options, address, "address", "URL",
             "dcp: where the slave is, as in udp://10.0.0.7:8080 or tcp://bench:8080; what its "
             "description says unless given. The FMU's parameter dcp.address changes it"),
    OPT_CHOICE(crdi_export_options, precision, "precision", precisions,
               "c: of matrices, factors and solutions; states and sums are double in both. double "
               "unless given"),
    OPT_COUNT(crdi_export_options, iterations, "iterations", "N",
              "c: of Newton's method in a step at most; 50 unless given. What does not converge in "
              "so many is an error of the step"),
    CRDI_UNPACKED_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_export = {
    .name = "export",
    .arguments = "ssp SYSTEM | coupling ELEMENT | dcp SLAVE.dcpx | circuit NETLIST | "
                 "twin TWIN.yaml | c NETLIST|ELEMENT|TWIN.yaml|SLAVE.dcpx",
    .summary = "write FMUs of elements, circuits, twins, slaves; SSPs; C sources",
    .description =
        "Writes a system description, an SSP or a single FMU as an SSP package: the structure, the "
        "FMUs and recordings, start values, and in an annotation what SSP has no word for, so that "
        "Cardan runs the package as it runs the system. Units that are signals or recordings are "
        "run by Cardan alone, which is said in a warning.\n"
        "export coupling writes a coupling element (a word such as eros, a YAML or JSON file, or "
        "YAML "
        "in braces) as an FMU for Co-Simulation: history, latency, detection of discontinuities, "
        "algorithm, learning client and reconstruction in one unit, with its sources. Its inputs "
        "are "
        "the newest sample u, its time stamp and number and the commands of an element that knows "
        "some, its outputs the estimate y, the latency "
        "k, "
        "jump, active and counters. The words pair-flow and pair-effort write one side of a wave "
        "pair (docs/explanation/pairs.md) instead: two such FMUs hold a power bond, each beside "
        "the unit that "
        "owns the flow or the effort; --step is the inner step then.\n"
        "export dcp writes an FMU for Co-Simulation behind which a DCP slave somewhere on the "
        "network computes, for tools that have no DCP: its inputs, outputs and parameters are "
        "those of the slave's description (.dcpx or .dcp), its parameters dcp.address and dcp.mode "
        "say where the slave is and how it runs.\n"
        "export circuit writes a netlist as an FMU for Co-Simulation that needs no library: its "
        "inputs and outputs are the .input and .output of the netlist, its parameters the .param "
        "that are plain numbers, and step. Included files go along. It offers output derivatives, "
        "takes derivatives of inputs, and its state can be saved, restored and serialised.\n"
        "export twin writes the description of a digital twin with its netlist as an FMU for "
        "Co-Simulation that needs no library: measurements (NAME.measured; NaN, with which they "
        "begin, is none) and the .input of the netlist in, estimates with their standard "
        "deviations "
        "(NAME, NAME.sd) and the state of each sensor (NAME.status) out. Its communication steps "
        "are multiples of the twin's step.\n"
        "export c writes a netlist as one C17 file and its header for a controller: a fixed step, "
        "all memory in one struct, <math.h> and <string.h> and nothing else. The file says how "
        "many operations a step takes at most, counted in what it computes. Of a linear coupling "
        "element "
        "(a word such as eros, a YAML or JSON file, or YAML in braces) it writes the weights for "
        "one "
        "latency and the sums over its history, of a twin or a slave description "
        "it writes constants for libcardan-core (docs/how-to/controllers.md), and the index of "
        "each variable by its name.",
    .examples =
        {{"cardan export ssp oscillator.yaml", "writes oscillator.ssp"},
         {"cardan export ssp car.ssp --variant winter --set body.m=1800 -o winter.ssp",
          "a variant with another mass as a package of its own"},
         {"cardan export coupling eros --step 10ms -o torque.fmu",
          "the coupling element of error-space extrapolation as an FMU"},
         {"cardan export coupling auto --step 1ms --signals torque,speed --fmi 3 -o link.fmu",
          "two signals in one FMU of FMI 3.0"},
         {"cardan export dcp engine.dcpx --address udp://10.0.0.7:8080 -o engine.fmu",
          "an FMU that runs the DCP slave at that address"},
         {"cardan export circuit boost.cir --step 2us --fmi 3 -o boost.fmu",
          "a circuit as an FMU of FMI 3.0 with steps of at most 2 us inside"},
         {"cardan export twin inverter.yaml -o inverter.fmu",
          "a digital twin as an FMU: measurements in, estimates out"},
         {"cardan export c inverter.yaml -o inverter.c", "the same for a controller"}},
    OPTIONS(rows, crdi_export_options),
    .min_arguments = 1,
    .max_arguments = 2,
    .extensions = "yaml|yml|ssp|ssd|fmu|json|dcpx|dcp|cir|ckt|net|sp|spice",
    .run = run_export,
};
