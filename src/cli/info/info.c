// cardan info: what is in a file. Systems here, the others next door.
#include "cli/info/info.h"
#include "cardan/system.h"

#include <math.h>
#include <string.h>

// ---- systems -----------------------------------------------------------------------------------

static const char* const source_names[] = {"FMU",     "signal", "replay", "native", "DCP",
                                           "circuit", "twin",   "frames", "CAN"};
static const char* const refresh_names[] = {"auto", "yes", "no"};
static const char* const scheme_names[] = {"jacobi", "gauss-seidel", "groups"};

static void say_time(crdi_result* out, const char* name, double t)
{
    if (!isnan(t)) { crdi_say(out, ", %s %.10g s", name, t); }
}

static const char* monitors(unsigned m)
{
    const bool defect = m & CRD_MONITOR_DEFECT, energy = m & CRD_MONITOR_ENERGY;
    const bool solver = m & CRD_MONITOR_SOLVER;
    return solver && energy   ? "defect, energy, solver"
           : solver           ? "defect, solver"
           : defect && energy ? "defect, energy"
           : defect           ? "defect"
           : energy           ? "energy"
                              : "none";
}

static void say_given(crdi_result* out, const char* name, double x)
{
    if (!isnan(x)) { crdi_say(out, ", %s %.10g", name, x); }
}

static void say_pace(crdi_result* out, const crd_pace_spec* p)
{
    char a[32];
    if (!(p->factor > 0)) { return; }
    crdi_say(out, "\n%-14s%.10gx, overrun %s", "pace", p->factor, crd_overrun_name(p->overrun));
    if (p->slack > 0) { crdi_say(out, ", slack %s", crdi_format_seconds(a, p->slack)); }
    if (p->spin > 0) { crdi_say(out, ", spin %s", crdi_format_seconds(a, p->spin)); }
    crdi_say(out, ", priority %d", p->priority);
    if (p->cpu >= 0) { crdi_say(out, ", CPU %d", p->cpu); }
    crdi_say(out, "%s%s", p->lock ? "" : ", memory not locked", p->required ? ", required" : "");
}

static void say_quality(crdi_result* out, const crd_run_spec* r)
{
    crdi_say(out, "\n%-14s%s, feedthrough %s, monitor %s", "predict",
             crd_prediction_name(r->predict), crd_defect_scheme_name(r->feedthrough),
             monitors(r->monitor));
    if (r->control.on) {
        const crd_control_spec* c = &r->control;
        crdi_say(out, "\n%-14s%s, %s tolerance %g", "control",
                 c->method == CRD_STEP_PI ? "pi" : "h211b", c->absolute ? "absolute" : "relative",
                 c->tolerance);
        say_time(out, "first", c->first);
        say_time(out, "floor", c->floor);
        say_time(out, "ceiling", c->ceiling);
        say_given(out, "kp", c->kp);
        say_given(out, "ki", c->ki);
        say_given(out, "growth", c->growth);
        say_given(out, "safety", c->safety);
        if (!isinf(c->reject)) { say_given(out, "reject", c->reject); }
        crdi_say(out, "%s%s%s", isinf(c->reject) ? ", no step is taken back" : "",
                 c->one_sided ? ", one-sided defects" : "",
                 c->middle ? "" : ", no samples at mid-step");
    }
    if (r->iterate.on) {
        const crd_iterate_spec* i = &r->iterate;
        crdi_say(out, "\n%-14s%s, relative tolerance %g, at most %d sweeps, otherwise %s",
                 "iterate", crd_accel_name(i->acceleration), i->tolerance, i->sweeps,
                 i->stop ? "stop" : "explicit");
    }
}

// The end of a connection or bond: unit.variable.
static const char* end_of(crdi_result* out, const crd_system* s, int unit, const char* variable)
{
    return crdi_worded(out, "%s.%s", s->units[unit].name, variable);
}

static void info_put_unit(crdi_result* j, const crd_unit_spec* u)
{
    crdi_put(j, TEXT("name", u->name), TEXT("source", source_names[u->source]),
             TEXT("path", u->path));
    if (u->address) { crdi_put(j, TEXT("address", u->address)); }
    crdi_put(j, ONLY_IF(u->step > 0, REAL("step", u->step)), REAL("budget", u->budget),
             BOOL("real", u->real), TEXT("refresh", refresh_names[u->refresh]));
    crdi_result* parameters = crdi_object(j, "parameters");
    for (int i = 0; i < u->parameter_count; i++) {
        crdi_put(parameters,
                 TEXT(crdi_result_copy(j, u->parameters[i].variable), u->parameters[i].text));
    }
    crdi_result* signals = crdi_array(j, "signals");
    for (int i = 0; i < u->signal_count; i++) {
        crdi_add(signals, TEXT(NULL, u->signals[i].name));
    }
    const crd_unit_spec* model = u->standby.model;
    if (model) {
        crdi_put(crdi_object(j, "standby"), TEXT("source", source_names[model->source]),
                 TEXT("path", model->path));
    }
}

// In text a unit and its stand-in are lines of their own.
static void show_unit(crdi_result* lines, const crd_unit_spec* u)
{
    char values[40] = "", budget[48] = "", a[32];
    if (u->parameter_count) {
        snprintf(values, sizeof values, "%d start value%s", u->parameter_count,
                 crdi_plural(u->parameter_count));
    }
    if (!isnan(u->budget)) {
        snprintf(budget, sizeof budget, "%sbudget %s", *values ? ", " : "",
                 crdi_format_seconds(a, u->budget));
    }
    crdi_put(crdi_row(lines), TEXT("name", u->name), TEXT("source", source_names[u->source]),
             TEXT("path", u->address ? u->address : u->path),
             TEXT("remark", crdi_worded(lines, "%s%s", values, budget)));
    const crd_unit_spec* model = u->standby.model;
    if (!model) { return; }
    crdi_put(crdi_row(lines), TEXT("name", "  its stand-in"),
             TEXT("source", source_names[model->source]), TEXT("path", model->path));
}

static void put_connection(crdi_result* j, const crd_system* s, const crd_connection_spec* c)
{
    const char* predict = crd_prediction_name(c->predict);
    crdi_put(j, TEXT("from", end_of(j, s, c->from_unit, c->from)), CELL("arrow", "->"),
             TEXT("to", end_of(j, s, c->to_unit, c->to)), REAL("gain", c->gain),
             REAL("offset", c->offset), TEXT("predict", c->coupling ? NULL : predict),
             ONLY_IF(c->scale > 0, REAL("scale", c->scale)),
             ONLY_IF(c->tolerance > 0, REAL("tolerance", c->tolerance)),
             BOOL("coupling", c->coupling != NULL),
             CELL("remark", c->coupling                    ? "coupling"
                            : c->predict != s->run.predict ? predict // not as everywhere else
                                                           : ""));
}

static void info_put_bond(crdi_result* j, const crd_system* s, const crd_bond_spec* b)
{
    const char* correct = crd_correction_name(b->correct);
    crdi_put(j, AS(TEXT("name", b->name), crdi_worded(j, "bond %s", b->name)),
             TEXT("action", end_of(j, s, b->action_unit, b->action)), CELL("times", "x"),
             TEXT("flow", end_of(j, s, b->flow_unit, b->flow)),
             AS(TEXT("correct", correct), crdi_worded(j, "correct %s", correct)), REAL("mu", b->mu),
             REAL("ki", b->ki), REAL("limiter", b->limiter), REAL("forget", b->forget));
}

static void info_put_control(crdi_result* j, const crd_control_spec* c)
{
    crdi_put(j, REAL("tolerance", c->tolerance),
             TEXT("method", c->method == CRD_STEP_PI ? "pi" : "h211b"),
             BOOL("absolute", c->absolute), REAL("first", c->first), REAL("floor", c->floor),
             REAL("ceiling", c->ceiling), REAL("kp", c->kp), REAL("ki", c->ki),
             REAL("growth", c->growth), REAL("safety", c->safety), REAL("reject", c->reject),
             TEXT("defects", c->one_sided ? "one-sided" : "two-point"), BOOL("middle", c->middle));
}

static void put_iterate(crdi_result* j, const crd_iterate_spec* i)
{
    crdi_put(j, REAL("tolerance", i->tolerance), INT("sweeps", i->sweeps),
             TEXT("acceleration", crd_accel_name(i->acceleration)),
             TEXT("otherwise", i->stop ? "stop" : "explicit"));
}

static void info_put_pace(crdi_result* j, const crd_pace_spec* p)
{
    crdi_put(j, REAL("factor", p->factor), TEXT("overrun", crd_overrun_name(p->overrun)),
             REAL("slack", p->slack), REAL("spin", p->spin), INT("priority", p->priority),
             ONLY_IF(p->cpu >= 0, INT("cpu", p->cpu)), BOOL("lock", p->lock),
             BOOL("required", p->required));
}

static void info_put_run(crdi_result* j, const crd_run_spec* r)
{
    crdi_put(j, REAL("start", r->start), REAL("stop", r->stop), REAL("step", r->step),
             TEXT("scheme", scheme_names[r->scheme]),
             TEXT("predict", crd_prediction_name(r->predict)));
    info_put_pace(crdi_object_if(j, "pace", r->pace.factor > 0), &r->pace);
    info_put_control(crdi_object_if(j, "control", r->control.on), &r->control);
    put_iterate(crdi_object_if(j, "iterate", r->iterate.on), &r->iterate);
    crdi_put(j, TEXT("feedthrough", crd_defect_scheme_name(r->feedthrough)));
    crdi_result* list = crdi_array(j, "monitor");
    if (r->monitor & CRD_MONITOR_DEFECT) { crdi_add(list, TEXT(NULL, "defect")); }
    if (r->monitor & CRD_MONITOR_ENERGY) { crdi_add(list, TEXT(NULL, "energy")); }
    if (r->monitor & CRD_MONITOR_SOLVER) { crdi_add(list, TEXT(NULL, "solver")); }
}

static void say_system(crdi_result* out, const crd_system* s, const char* path)
{
    crdi_say(out, "%s: system of %d unit%s%s %d connection%s", path, s->unit_count,
             crdi_plural(s->unit_count), s->bond_count ? "," : " and", s->connection_count,
             crdi_plural(s->connection_count));
    if (s->bond_count) {
        crdi_say(out, " and %d bond%s", s->bond_count, crdi_plural(s->bond_count));
    }
    crdi_say(out, "\n%-14s%s", "run", scheme_names[s->run.scheme]);
    say_time(out, "start", s->run.start);
    say_time(out, "stop", s->run.stop);
    say_time(out, "step", s->run.step);
    say_pace(out, &s->run.pace);
    say_quality(out, &s->run);
    crdi_say(out, "\n");
    crdi_fact(out, "results", "%s", s->results.path ? s->results.path : "not said");
    crdi_fact_if(out, "exchange", s->results.exchange);
    crdi_fact_if(out, "session", s->results.session);
    crdi_say(out, "\n");
}

static void put_lists(crdi_result* out, const crd_system* s)
{
    static const crdi_column unit_columns[] = {
        {"", "name", "%s"}, {"", "source", "%s"}, {"", "path", "%s"}, {"", "remark", "%s"}, {0}};
    static const crdi_column connection_columns[] = {
        {"", "from", "%s"}, {"", "arrow", "%s"}, {"", "to", "%s"}, {"", "remark", "%s"}, {0}};
    static const crdi_column bond_columns[] = {{"", "name", "%s"},    {"", "action", "%s"},
                                               {"", "times", "%s"},   {"", "flow", "%s"},
                                               {"", "correct", "%s"}, {0}};
    crdi_result *units = crdi_array(out, "units"), *lines = crdi_array(out, NULL);
    for (int i = 0; i < s->unit_count; i++) {
        info_put_unit(crdi_row(units), &s->units[i]);
        show_unit(lines, &s->units[i]);
    }
    crdi_show_table(out, lines, unit_columns, "  ");
    crdi_say(out, "\n");
    crdi_result* connections = crdi_array(out, "connections");
    for (int i = 0; i < s->connection_count; i++) {
        put_connection(crdi_row(connections), s, &s->connections[i]);
    }
    crdi_show_table(out, connections, connection_columns, "  ");
    crdi_result* bonds = crdi_array(out, "bonds");
    for (int i = 0; i < s->bond_count; i++) {
        info_put_bond(crdi_row(bonds), s, &s->bonds[i]);
    }
    if (s->bond_count) { crdi_say(out, "\n"); }
    crdi_show_table(out, bonds, bond_columns, "  ");
}

static crd_status info_system(crdi_cli* cli, const char* path, crdi_result* out)
{
    crd_system* s = NULL;
    const crd_status st = crdi_load_system(cli->ctx, path, &s);
    if (st < 0) { return st; }
    say_system(out, s, path);
    crdi_put(out, TEXT("kind", "system"), TEXT("file", path));
    put_lists(out, s);
    info_put_run(crdi_object(out, "run"), &s->run);
    crdi_put(out, TEXT("results", s->results.path), TEXT("exchange", s->results.exchange),
             TEXT("session", s->results.session));
    crd_system_destroy(s);
    return CRD_OK;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status run_info(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    const crdi_info_options* o = options;
    const char* path = arguments->items[0];
    if (strcmp(path, "-") == 0) { path = "/dev/stdin"; }
    crdi_file_kind kind;
    if (crdi_is_layout(path)) { return crdi_info_layout(cli, path, o, out); }
    const crd_status st = crdi_file_detect(cli->ctx, path, &kind);
    if (st < 0) { return st; }
    switch (kind) {
    case CRDI_FILE_FMU:
        return crdi_info_fmu(cli, path, o, out);
    case CRDI_FILE_SYSTEM:
    case CRDI_FILE_OSP:
        return info_system(cli, path, out);
    case CRDI_FILE_SSP:
        return crdi_info_ssp(cli, path, o, out);
    case CRDI_FILE_SSV:
    case CRDI_FILE_SSM:
        return crdi_info_ssv(cli, path, kind == CRDI_FILE_SSM, o, out);
    case CRDI_FILE_RECORDING:
    case CRDI_FILE_PIPE:
        return crdi_info_recording(cli, path, o, out);
    case CRDI_FILE_DCP:
        return crdi_info_dcp(cli, path, o, out);
    case CRDI_FILE_CIRCUIT:
        return crdi_info_circuit(cli, path, o, out);
    }
    return CRD_OK;
}

static const crdi_option rows[] = {
    OPT_FLAG(crdi_info_options, all, "all", "FMU: list local variables, too", .short_name = 'a'),
    OPT_LIST(crdi_info_options, variables, "variables", "PATTERN",
             "list only variables or signals that fit, with * and ?"),
    OPT_TEXT(crdi_info_options, variant, "variant", "NAME", "SSP: another .ssd file at its root"),
    CRDI_UNPACKED_OPTION,
    CRDI_JSON_OPTION("print everything as JSON on standard output"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_info = {
    .name = "info",
    .arguments = "FILE",
    .summary = "show what is in a file: FMU, SSP, system, result, netlist, DCP slave",
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
        ".sp, .spice): parts, equations, inputs and outputs. Layout of datagrams (.yaml), DBC file "
        "(.dbc): messages and their fields. No code of an FMU is run.",
    .examples = {{"cardan info motor.fmu", "what is this FMU?"},
                 {"cardan info motor.fmu --json | jq '.variables[].name'", "all names"},
                 {"cardan info run.mf4", "the signals of a result"}},
    OPTIONS(rows, crdi_info_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "fmu|yaml|yml|csv|mf4|mat|ssp|ssd|ssv|ssm|dcpx|dcp|xml|cir|ckt|net|sp|spice|dbc",
    .run = run_info,
};
