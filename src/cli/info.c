// cardan info: what is in a file. Systems here, the others next door.
#include "cli/info.h"
#include "cardan/system.h"

#include <math.h>
#include <string.h>

// ---- systems -----------------------------------------------------------------------------------

static const char* const source_names[] = {"FMU", "signal",  "replay", "native",
                                           "DCP", "circuit", "twin"};
static const char* const refresh_names[] = {"auto", "yes", "no"};
static const char* const scheme_names[] = {"jacobi", "gauss-seidel", "groups"};

static void print_time(const char* name, double t)
{
    if (!isnan(t)) { printf(", %s %.10g s", name, t); }
}

static const char* monitors(unsigned m)
{
    const bool defect = m & CRD_MONITOR_DEFECT, energy = m & CRD_MONITOR_ENERGY;
    return defect && energy ? "defect, energy" : defect ? "defect" : energy ? "energy" : "none";
}

static void print_given(const char* name, double x)
{
    if (!isnan(x)) { printf(", %s %.10g", name, x); }
}

static void print_pace(const crd_pace_spec* p)
{
    char a[32];
    if (!(p->factor > 0)) { return; }
    printf("\n%-14s%.10gx, overrun %s", "pace", p->factor, crd_overrun_name(p->overrun));
    if (p->slack > 0) { printf(", slack %s", crdi_format_seconds(a, p->slack)); }
    if (p->spin > 0) { printf(", spin %s", crdi_format_seconds(a, p->spin)); }
    printf(", priority %d", p->priority);
    if (p->cpu >= 0) { printf(", CPU %d", p->cpu); }
    printf("%s%s", p->lock ? "" : ", memory not locked", p->required ? ", required" : "");
}

static void print_quality(const crd_run_spec* r)
{
    printf("\n%-14s%s, feedthrough %s, monitor %s", "predict", crd_prediction_name(r->predict),
           crd_defect_scheme_name(r->feedthrough), monitors(r->monitor));
    if (r->control.on) {
        const crd_control_spec* c = &r->control;
        printf("\n%-14s%s, %s tolerance %g", "control", c->method == CRD_STEP_PI ? "pi" : "h211b",
               c->absolute ? "absolute" : "relative", c->tolerance);
        print_time("first", c->first);
        print_time("floor", c->floor);
        print_time("ceiling", c->ceiling);
        print_given("kp", c->kp);
        print_given("ki", c->ki);
        print_given("growth", c->growth);
        print_given("safety", c->safety);
        print_given("reject", c->reject);
        printf("%s%s", c->one_sided ? ", one-sided defects" : "",
               c->middle ? "" : ", no samples at mid-step");
    }
    if (r->iterate.on) {
        const crd_iterate_spec* i = &r->iterate;
        printf("\n%-14s%s, relative tolerance %g, at most %d sweeps, otherwise %s", "iterate",
               crd_accel_name(i->acceleration), i->tolerance, i->sweeps,
               i->stop ? "stop" : "explicit");
    }
}

// Only what is not as everywhere else.
static void print_connections(crdi_cli* cli, const crd_system* s)
{
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, 4, 0);
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        crdi_grid_add(&g, "%s.%s", s->units[c->from_unit].name, c->from);
        crdi_grid_add(&g, "%s", "->");
        crdi_grid_add(&g, "%s.%s", s->units[c->to_unit].name, c->to);
        crdi_grid_add(&g, "%s",
                      c->coupling                    ? "coupling"
                      : c->predict != s->run.predict ? crd_prediction_name(c->predict)
                                                     : "");
    }
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
}

static void print_bonds(crdi_cli* cli, const crd_system* s)
{
    if (s->bond_count == 0) { return; }
    printf("\n");
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, 5, 0);
    for (int i = 0; i < s->bond_count; i++) {
        const crd_bond_spec* b = &s->bonds[i];
        crdi_grid_add(&g, "bond %s", b->name);
        crdi_grid_add(&g, "%s.%s", s->units[b->action_unit].name, b->action);
        crdi_grid_add(&g, "%s", "x");
        crdi_grid_add(&g, "%s.%s", s->units[b->flow_unit].name, b->flow);
        crdi_grid_add(&g, "correct %s", crd_correction_name(b->correct));
    }
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
}

static void print_system(crdi_cli* cli, const crd_system* s, const char* path)
{
    printf("%s: system of %d unit%s%s %d connection%s", path, s->unit_count,
           crdi_plural(s->unit_count), s->bond_count ? "," : " and", s->connection_count,
           crdi_plural(s->connection_count));
    if (s->bond_count) { printf(" and %d bond%s", s->bond_count, crdi_plural(s->bond_count)); }
    printf("\n");
    printf("%-14s%s", "run", scheme_names[s->run.scheme]);
    print_time("start", s->run.start);
    print_time("stop", s->run.stop);
    print_time("step", s->run.step);
    print_pace(&s->run.pace);
    print_quality(&s->run);
    printf("\n%-14s%s\n", "results", s->results.path ? s->results.path : "not said");
    if (s->results.exchange) { printf("%-14s%s\n", "exchange", s->results.exchange); }
    if (s->results.session) { printf("%-14s%s\n", "session", s->results.session); }
    printf("\n");
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, 4, 0);
    for (int i = 0; i < s->unit_count; i++) {
        const crd_unit_spec* u = &s->units[i];
        crdi_grid_add(&g, "%s", u->name);
        crdi_grid_add(&g, "%s", source_names[u->source]);
        crdi_grid_add(&g, "%s", u->address ? u->address : u->path ? u->path : "");
        char values[40] = "", budget[48] = "", a[32];
        if (u->parameter_count) {
            snprintf(values, sizeof values, "%d start value%s", u->parameter_count,
                     crdi_plural(u->parameter_count));
        }
        if (!isnan(u->budget)) {
            snprintf(budget, sizeof budget, "%sbudget %s", *values ? ", " : "",
                     crdi_format_seconds(a, u->budget));
        }
        crdi_grid_add(&g, "%s%s", values, budget);
        const crd_unit_spec* model = u->standby.model;
        if (!model) { continue; }
        crdi_grid_add(&g, "  its stand-in");
        crdi_grid_add(&g, "%s", source_names[model->source]);
        crdi_grid_add(&g, "%s", model->path ? model->path : "");
        crdi_grid_add(&g, "%s", "");
    }
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
    printf("\n");
    print_connections(cli, s);
    print_bonds(cli, s);
}

static json_t* unit_to_json(const crd_unit_spec* u)
{
    json_t* j = json_object();
    json_object_set_new(j, "name", crdi_json_text(u->name));
    json_object_set_new(j, "source", json_string(source_names[u->source]));
    json_object_set_new(j, "path", crdi_json_text(u->path));
    if (u->address) { json_object_set_new(j, "address", crdi_json_text(u->address)); }
    json_object_set_new(j, "step", u->step > 0 ? crdi_json_number(u->step) : json_null());
    json_object_set_new(j, "budget", crdi_json_number(u->budget));
    json_object_set_new(j, "real", json_boolean(u->real));
    json_object_set_new(j, "refresh", json_string(refresh_names[u->refresh]));
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
    if (u->standby.model) {
        json_object_set_new(j, "standby",
                            json_pack("{s:s,s:o}", "source", source_names[u->standby.model->source],
                                      "path", crdi_json_text(u->standby.model->path)));
    }
    return j;
}

static void put_end(json_t* j, const char* key, const crd_system* s, int unit, const char* variable)
{
    char end[1024];
    snprintf(end, sizeof end, "%s.%s", s->units[unit].name, variable);
    json_object_set_new(j, key, crdi_json_text(end));
}

static json_t* connection_to_json(const crd_system* s, const crd_connection_spec* c)
{
    json_t* j = json_object();
    put_end(j, "from", s, c->from_unit, c->from);
    put_end(j, "to", s, c->to_unit, c->to);
    json_object_set_new(j, "gain", crdi_json_number(c->gain));
    json_object_set_new(j, "offset", crdi_json_number(c->offset));
    json_object_set_new(j, "predict",
                        c->coupling ? json_null() : json_string(crd_prediction_name(c->predict)));
    json_object_set_new(j, "scale", c->scale > 0 ? crdi_json_number(c->scale) : json_null());
    json_object_set_new(j, "tolerance",
                        c->tolerance > 0 ? crdi_json_number(c->tolerance) : json_null());
    json_object_set_new(j, "coupling", json_boolean(c->coupling != NULL));
    return j;
}

static json_t* bond_to_json(const crd_system* s, const crd_bond_spec* b)
{
    json_t* j = json_object();
    json_object_set_new(j, "name", crdi_json_text(b->name));
    put_end(j, "action", s, b->action_unit, b->action);
    put_end(j, "flow", s, b->flow_unit, b->flow);
    json_object_set_new(j, "correct", json_string(crd_correction_name(b->correct)));
    json_object_set_new(j, "mu", crdi_json_number(b->mu));
    json_object_set_new(j, "ki", crdi_json_number(b->ki));
    json_object_set_new(j, "limiter", crdi_json_number(b->limiter));
    json_object_set_new(j, "forget", crdi_json_number(b->forget));
    return j;
}

static json_t* control_to_json(const crd_control_spec* c)
{
    if (!c->on) { return json_null(); }
    json_t* j = json_object();
    json_object_set_new(j, "tolerance", crdi_json_number(c->tolerance));
    json_object_set_new(j, "method", json_string(c->method == CRD_STEP_PI ? "pi" : "h211b"));
    json_object_set_new(j, "absolute", json_boolean(c->absolute));
    json_object_set_new(j, "first", crdi_json_number(c->first));
    json_object_set_new(j, "floor", crdi_json_number(c->floor));
    json_object_set_new(j, "ceiling", crdi_json_number(c->ceiling));
    json_object_set_new(j, "kp", crdi_json_number(c->kp));
    json_object_set_new(j, "ki", crdi_json_number(c->ki));
    json_object_set_new(j, "growth", crdi_json_number(c->growth));
    json_object_set_new(j, "safety", crdi_json_number(c->safety));
    json_object_set_new(j, "reject", crdi_json_number(c->reject));
    json_object_set_new(j, "defects", json_string(c->one_sided ? "one-sided" : "two-point"));
    json_object_set_new(j, "middle", json_boolean(c->middle));
    return j;
}

static json_t* iterate_to_json(const crd_iterate_spec* i)
{
    if (!i->on) { return json_null(); }
    json_t* j = json_object();
    json_object_set_new(j, "tolerance", crdi_json_number(i->tolerance));
    json_object_set_new(j, "sweeps", json_integer(i->sweeps));
    json_object_set_new(j, "acceleration", json_string(crd_accel_name(i->acceleration)));
    json_object_set_new(j, "otherwise", json_string(i->stop ? "stop" : "explicit"));
    return j;
}

static json_t* pace_to_json(const crd_pace_spec* p)
{
    if (!(p->factor > 0)) { return json_null(); }
    json_t* j = json_object();
    json_object_set_new(j, "factor", crdi_json_number(p->factor));
    json_object_set_new(j, "overrun", json_string(crd_overrun_name(p->overrun)));
    json_object_set_new(j, "slack", crdi_json_number(p->slack));
    json_object_set_new(j, "spin", crdi_json_number(p->spin));
    json_object_set_new(j, "priority", json_integer(p->priority));
    json_object_set_new(j, "cpu", p->cpu >= 0 ? json_integer(p->cpu) : json_null());
    json_object_set_new(j, "lock", json_boolean(p->lock));
    json_object_set_new(j, "required", json_boolean(p->required));
    return j;
}

static json_t* run_to_json(const crd_run_spec* r)
{
    json_t* j = json_object();
    json_object_set_new(j, "start", crdi_json_number(r->start));
    json_object_set_new(j, "stop", crdi_json_number(r->stop));
    json_object_set_new(j, "step", crdi_json_number(r->step));
    json_object_set_new(j, "scheme", json_string(scheme_names[r->scheme]));
    json_object_set_new(j, "predict", json_string(crd_prediction_name(r->predict)));
    json_object_set_new(j, "pace", pace_to_json(&r->pace));
    json_object_set_new(j, "control", control_to_json(&r->control));
    json_object_set_new(j, "iterate", iterate_to_json(&r->iterate));
    json_object_set_new(j, "feedthrough", json_string(crd_defect_scheme_name(r->feedthrough)));
    json_t* list = json_array();
    if (r->monitor & CRD_MONITOR_DEFECT) { json_array_append_new(list, json_string("defect")); }
    if (r->monitor & CRD_MONITOR_ENERGY) { json_array_append_new(list, json_string("energy")); }
    json_object_set_new(j, "monitor", list);
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
    json_t* bonds = json_array();
    for (int i = 0; i < s->bond_count; i++) {
        json_array_append_new(bonds, bond_to_json(s, &s->bonds[i]));
    }
    json_object_set_new(j, "bonds", bonds);
    json_object_set_new(j, "run", run_to_json(&s->run));
    json_object_set_new(j, "results", crdi_json_text(s->results.path));
    json_object_set_new(j, "exchange", crdi_json_text(s->results.exchange));
    json_object_set_new(j, "session", crdi_json_text(s->results.session));
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

static crd_status run_info(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    (void)out;
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
    case CRDI_FILE_CIRCUIT:
        return crdi_info_circuit(cli, path, o);
    }
    return CRD_OK;
}

static const crdi_option rows[] = {
    OPT_FLAG(crdi_info_options, all, "all", "FMU: list local variables, too", .short_name = 'a'),
    OPT_LIST(crdi_info_options, variables, "variables", "PATTERN",
             "list only variables or signals that fit, with * and ?"),
    OPT_TEXT(crdi_info_options, variant, "variant", "NAME", "SSP: another .ssd file at its root"),
    CRDI_JSON_OPTION("print everything as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_info = {
    .name = "info",
    .arguments = "FILE",
    .summary = "show what is in an FMU, SSP, system description, result, netlist or DCP slave",
    .description =
        "Shows what a file holds. FMU (archive, unpacked folder or modelDescription.xml): name, "
        "version, generator, capabilities, platforms, default experiment and variables. System "
        "description: units and connections. SSP: variants, components, files. SSV and SSM: "
        "parameters and mappings. Result (CSV, MF4, MAT): "
        "time span, groups, events, attached files and the range of each signal; - reads a CSV "
        "from "
        "standard input. Description of a "
        "DCP slave (.dcpx, .dcp): operation modes, limits and variables. Netlist (.cir, .ckt, "
        ".net, "
        ".sp, .spice): parts, equations, inputs and outputs. No code of an FMU is run.",
    .examples = {{"cardan info motor.fmu", "what is this FMU?"},
                 {"cardan info motor.fmu --json | jq '.variables[].name'", "all names"},
                 {"cardan info run.mf4", "the signals of a result"}},
    OPTIONS(rows, crdi_info_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "fmu|yaml|yml|csv|mf4|mat|ssp|ssd|ssv|ssm|dcpx|dcp|xml|cir|ckt|net|sp|spice",
    .run = run_info,
};
