// cardan info: what is in a file. Systems here, the others next door.
#include "cli/info.h"
#include "cardan/system.h"

#include <math.h>
#include <string.h>

// ---- systems -----------------------------------------------------------------------------------

static const char* const source_names[] = {"FMU", "signal", "replay", "native"};
static const char* const scheme_names[] = {"jacobi", "gauss-seidel", "groups"};

static void print_time(const char* name, double t)
{
    if (!isnan(t)) { printf(", %s %.10g s", name, t); }
}

static void print_system(crdi_cli* cli, const crd_system* s, const char* path)
{
    printf("%s: system of %d unit%s and %d connection%s\n", path, s->unit_count,
           crdi_plural(s->unit_count), s->connection_count, crdi_plural(s->connection_count));
    printf("%-14s%s", "run", scheme_names[s->run.scheme]);
    print_time("start", s->run.start);
    print_time("stop", s->run.stop);
    print_time("step", s->run.step);
    printf("\n%-14s%s\n\n", "results", s->results.path ? s->results.path : "not said");
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, 4, 0);
    for (int i = 0; i < s->unit_count; i++) {
        const crd_unit_spec* u = &s->units[i];
        crdi_grid_add(&g, "%s", u->name);
        crdi_grid_add(&g, "%s", source_names[u->source]);
        crdi_grid_add(&g, "%s", u->path ? u->path : "");
        if (u->parameter_count) {
            crdi_grid_add(&g, "%d start value%s", u->parameter_count,
                          crdi_plural(u->parameter_count));
        } else {
            crdi_grid_add(&g, "%s", "");
        }
    }
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
    printf("\n");
    crdi_grid_init(&g, cli->ctx, 3, 0);
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        crdi_grid_add(&g, "%s.%s", s->units[c->from_unit].name, c->from);
        crdi_grid_add(&g, "%s", "->");
        crdi_grid_add(&g, "%s.%s", s->units[c->to_unit].name, c->to);
    }
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
}

static json_t* unit_to_json(const crd_unit_spec* u)
{
    json_t* j = json_object();
    json_object_set_new(j, "name", crdi_json_text(u->name));
    json_object_set_new(j, "source", json_string(source_names[u->source]));
    json_object_set_new(j, "path", crdi_json_text(u->path));
    json_object_set_new(j, "step", u->step > 0 ? crdi_json_number(u->step) : json_null());
    json_t* parameters = json_object();
    for (int i = 0; i < u->parameter_count; i++) {
        json_object_set_new(parameters, u->parameters[i].variable,
                            crdi_json_text(u->parameters[i].text));
    }
    json_object_set_new(j, "parameters", parameters);
    json_t* signals = json_array();
    for (int i = 0; i < u->signal_count; i++) {
        json_array_append_new(signals, crdi_json_text(u->signals[i].name));
    }
    json_object_set_new(j, "signals", signals);
    return j;
}

static json_t* connection_to_json(const crd_system* s, const crd_connection_spec* c)
{
    static const char* const names[] = {"hold", "linear", "quadratic"};
    char end[1024];
    json_t* j = json_object();
    snprintf(end, sizeof end, "%s.%s", s->units[c->from_unit].name, c->from);
    json_object_set_new(j, "from", crdi_json_text(end));
    snprintf(end, sizeof end, "%s.%s", s->units[c->to_unit].name, c->to);
    json_object_set_new(j, "to", crdi_json_text(end));
    json_object_set_new(j, "gain", crdi_json_number(c->gain));
    json_object_set_new(j, "offset", crdi_json_number(c->offset));
    json_object_set_new(j, "extrapolation", json_string(names[c->extrapolation]));
    return j;
}

static json_t* system_to_json(const crd_system* s, const char* path)
{
    json_t* j = json_object();
    json_object_set_new(j, "kind", json_string("system"));
    json_object_set_new(j, "file", crdi_json_text(path));
    json_t* units = json_array();
    for (int i = 0; i < s->unit_count; i++) {
        json_array_append_new(units, unit_to_json(&s->units[i]));
    }
    json_object_set_new(j, "units", units);
    json_t* connections = json_array();
    for (int i = 0; i < s->connection_count; i++) {
        json_array_append_new(connections, connection_to_json(s, &s->connections[i]));
    }
    json_object_set_new(j, "connections", connections);
    json_t* run = json_object();
    json_object_set_new(run, "start", crdi_json_number(s->run.start));
    json_object_set_new(run, "stop", crdi_json_number(s->run.stop));
    json_object_set_new(run, "step", crdi_json_number(s->run.step));
    json_object_set_new(run, "scheme", json_string(scheme_names[s->run.scheme]));
    json_object_set_new(j, "run", run);
    json_object_set_new(j, "results", crdi_json_text(s->results.path));
    return j;
}

static crd_status info_system(crdi_cli* cli, const char* path, const crdi_info_options* o)
{
    crd_system* s = NULL;
    crd_status st = crdi_load_system(cli->ctx, path, &s);
    if (st < 0) { return st; }
    if (o->common.json) {
        st = crdi_json_print(cli, system_to_json(s, path));
    } else {
        print_system(cli, s, path);
        st = crdi_stdout_done(cli->ctx);
    }
    crd_system_destroy(s);
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status run_info(crdi_cli* cli, const void* options, const crdi_list* arguments)
{
    const crdi_info_options* o = options;
    const char* path = arguments->items[0];
    if (strcmp(path, "-") == 0) { path = "/dev/stdin"; }
    crdi_file_kind kind;
    const crd_status st = crdi_file_detect(cli->ctx, path, &kind);
    if (st < 0) { return st; }
    switch (kind) {
    case CRDI_FILE_FMU:
        return crdi_info_fmu(cli, path, o);
    case CRDI_FILE_SYSTEM:
        return info_system(cli, path, o);
    case CRDI_FILE_SSP:
        return crdi_info_ssp(cli, path, o);
    case CRDI_FILE_SSV:
    case CRDI_FILE_SSM:
        return crdi_info_ssv(cli, path, kind == CRDI_FILE_SSM, o);
    case CRDI_FILE_RECORDING:
    case CRDI_FILE_PIPE:
        return crdi_info_recording(cli, path, o);
    case CRDI_FILE_DCP:
        return crdi_info_dcp(cli, path, o);
    }
    return CRD_OK;
}

static const crdi_option rows[] = {
    {.name = "all",
     .short_name = 'a',
     .type = CRDI_OPT_FLAG,
     .offset = offsetof(crdi_info_options, all),
     .help = "FMU: list local variables, too"},
    {.name = "variables",
     .type = CRDI_OPT_LIST,
     .metavar = "PATTERN",
     .offset = offsetof(crdi_info_options, variables),
     .help = "list only variables or signals that fit, with * and ?"},
    {.name = "variant",
     .type = CRDI_OPT_TEXT,
     .metavar = "NAME",
     .offset = offsetof(crdi_info_options, variant),
     .help = "SSP: another .ssd file at its root"},
    CRDI_JSON_OPTION("print everything as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

static const crdi_info_options defaults = {.common = CRDI_COMMON_DEFAULTS};

const crdi_command crdi_command_info = {
    .name = "info",
    .arguments = "FILE",
    .summary = "show what is in an FMU, an SSP, a system description, a result file or a DCP slave",
    .description =
        "Shows what a file holds. FMU (archive, unpacked folder or modelDescription.xml): name, "
        "version, generator, capabilities, platforms, default experiment and variables. System "
        "description: units and connections. SSP: variants, components, files. SSV and SSM: "
        "parameters and mappings. Result (CSV, MF4, MAT): "
        "time span, groups, events, attached files and the range of each signal; - reads a CSV "
        "from "
        "standard input. Description of a "
        "DCP slave (.dcpx, .dcp): operation modes, limits and variables. No code of an FMU is run.",
    .examples = {{"cardan info motor.fmu", "what is this FMU?"},
                 {"cardan info motor.fmu --json | jq '.variables[].name'", "all names"},
                 {"cardan info run.mf4", "the signals of a result"}},
    .options = rows,
    .option_count = sizeof rows / sizeof *rows,
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "fmu|yaml|yml|csv|mf4|mat|ssp|ssd|ssv|ssm|dcpx|dcp|xml",
    .size = sizeof(crdi_info_options),
    .defaults = &defaults,
    .run = run_info,
};
