// cardan info: what is in a file. Systems and recordings here, FMUs next door.
#include "cli/info.h"
#include "cardan/results.h"
#include "cardan/system.h"

#include <inttypes.h>
#include <math.h>

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
    crd_status st = crd_system_load(cli->ctx, path, &s);
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

// ---- recordings --------------------------------------------------------------------------------

typedef struct extent {
    double min, max;
    int64_t not_finite;
} extent;

static extent extent_of(const crd_table* t, const crd_table_column* column)
{
    extent e = {NAN, NAN, 0};
    for (int64_t i = 0; i < t->rows && !column->texts; i++) {
        const double x = column->values[i];
        if (!isfinite(x)) {
            e.not_finite++;
            continue;
        }
        e.min = fmin(e.min, x); // of NaN and a number it is the number
        e.max = fmax(e.max, x);
    }
    return e;
}

static void print_table(crdi_cli* cli, const crd_table* t, const crdi_info_options* o)
{
    static const char* const titles[] = {"signal", "unit", "min", "max", ""};
    printf("%s: recording of %d signal%s, %" PRId64 " row%s", t->path, t->column_count,
           crdi_plural(t->column_count), t->rows, crdi_plural(t->rows));
    if (t->rows) { printf(" from %.10g s to %.10g s", t->time[0], t->time[t->rows - 1]); }
    printf("\n\n");
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, 5, 0xC);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    for (int i = 0; i < t->column_count; i++) {
        const crd_table_column* c = &t->columns[i];
        if (!crdi_match_any(&o->variables, c->name)) { continue; }
        const extent e = extent_of(t, c);
        crdi_grid_add(&g, "%s", c->name);
        crdi_grid_add(&g, "%s", c->unit);
        if (c->texts) {
            crdi_grid_add(&g, "%s", "");
            crdi_grid_add(&g, "%s", "");
            crdi_grid_add(&g, "%s", "text");
        } else {
            crdi_grid_add(&g, "%.10g", e.min);
            crdi_grid_add(&g, "%.10g", e.max);
            if (e.not_finite) {
                crdi_grid_add(&g, "%" PRId64 " not finite", e.not_finite);
            } else {
                crdi_grid_add(&g, "%s", "");
            }
        }
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
}

static json_t* table_to_json(const crd_table* t, const crdi_info_options* o)
{
    json_t* j = json_object();
    json_object_set_new(j, "kind", json_string("recording"));
    json_object_set_new(j, "file", crdi_json_text(t->path));
    json_object_set_new(j, "rows", json_integer(t->rows));
    json_object_set_new(j, "start", t->rows ? crdi_json_number(t->time[0]) : json_null());
    json_object_set_new(j, "stop", t->rows ? crdi_json_number(t->time[t->rows - 1]) : json_null());
    json_t* signals = json_array();
    for (int i = 0; i < t->column_count; i++) {
        const crd_table_column* c = &t->columns[i];
        if (!crdi_match_any(&o->variables, c->name)) { continue; }
        const extent e = extent_of(t, c);
        json_t* s = json_object();
        json_object_set_new(s, "name", crdi_json_text(c->name));
        json_object_set_new(s, "unit", crdi_json_text(c->unit));
        json_object_set_new(s, "text", json_boolean(c->texts != NULL));
        json_object_set_new(s, "min", crdi_json_number(e.min));
        json_object_set_new(s, "max", crdi_json_number(e.max));
        json_object_set_new(s, "not_finite", json_integer(e.not_finite));
        json_array_append_new(signals, s);
    }
    json_object_set_new(j, "signals", signals);
    return j;
}

static crd_status info_table(crdi_cli* cli, const char* path, const crdi_info_options* o)
{
    crd_table* t = NULL;
    crd_status st = crd_table_read(cli->ctx, path, &t);
    if (st < 0) { return st; }
    st = crdi_check_patterns(cli->ctx, &o->variables, &t, 1);
    if (st == CRD_OK && o->common.json) {
        st = crdi_json_print(cli, table_to_json(t, o));
    } else if (st == CRD_OK) {
        print_table(cli, t, o);
        st = crdi_stdout_done(cli->ctx);
    }
    crd_table_destroy(t);
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status run_info(crdi_cli* cli, const void* options, const crdi_list* arguments)
{
    const crdi_info_options* o = options;
    const char* path = arguments->items[0];
    crdi_file_kind kind;
    const crd_status st = crdi_file_detect(cli->ctx, path, &kind);
    if (st < 0) { return st; }
    switch (kind) {
    case CRDI_FILE_FMU:
        return crdi_info_fmu(cli, path, o);
    case CRDI_FILE_SYSTEM:
        return info_system(cli, path, o);
    case CRDI_FILE_TABLE:
        return info_table(cli, path, o);
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
    CRDI_JSON_OPTION("print everything as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

static const crdi_info_options defaults = {.common = CRDI_COMMON_DEFAULTS};

const crdi_command crdi_command_info = {
    .name = "info",
    .arguments = "FILE",
    .summary = "show what is in an FMU, a system description or a result file",
    .description =
        "Shows what a file holds. FMU (archive, unpacked folder or modelDescription.xml): name, "
        "version, generator, capabilities, platforms, default experiment and variables. System "
        "description: units and connections. Result (CSV): time span and the range of each signal. "
        "No code of an FMU is run.",
    .examples = {{"cardan info motor.fmu", "what is this FMU?"},
                 {"cardan info motor.fmu --json | jq '.variables[].name'", "all names"},
                 {"cardan info run.csv", "the signals of a result"}},
    .options = rows,
    .option_count = sizeof rows / sizeof *rows,
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "fmu|yaml|yml|csv|xml",
    .size = sizeof(crdi_info_options),
    .defaults = &defaults,
    .run = run_info,
};
