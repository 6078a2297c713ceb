// --input: a recording drives the inputs that have the names of its columns. Continuous inputs
// follow the lines between its rows, discrete ones keep the last row's value.
#include "cardan/fmi.h"
#include "cardan/results.h"
#include "cardan/system.h"
#include "cardan/unit.h"
#include "cli/cli.h"
#include "shared/system.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

typedef struct feeder {
    crd_system* system;
    const crdi_input* in;
    const char* path;
    crd_fmu** fmus;      // descriptions of the units, opened when first asked for (unit_count)
    crd_unit** circuits; // the same of units with netlists, and twins
    crd_context* quiet;  // theirs: what they warn of will be said when they run
    int unit_count;      // without the recording itself
    crd_connection_spec* connections; // that will be made (one per column at most)
    crd_column_spec* columns;         // of the recording, in step with them
    int count;
} feeder;

typedef struct variables {
    const crd_variable* all;
    int32_t count;
} variables;

typedef struct inputs {
    variables d;
    int32_t i;
} inputs;

// Tunable parameters are set between steps, in event mode where the FMU has one.
static bool is_driven(const crd_variable* v)
{
    return v->causality == CRD_INPUT ||
           (v->causality == CRD_PARAMETER && v->variability == CRD_TUNABLE);
}

static const char* next_input(void* user)
{
    inputs* n = user;
    while (n->i < n->d.count) {
        const crd_variable* v = &n->d.all[n->i++];
        if (is_driven(v)) { return v->name; }
    }
    return NULL;
}

static crd_status open_circuit(feeder* f, int unit, variables* out)
{
    crd_context* ctx = f->system->ctx;
    if (!f->quiet) {
        crd_context_options opt = crd_context_defaults();
        opt.level = CRD_LOG_ERROR;
        f->quiet = crd_context_create(&opt);
        if (!f->quiet) { return CRD_E_MEMORY; }
    }
    if (!f->circuits[unit]) {
        const crd_unit_spec* spec = &f->system->units[unit];
        const crd_status st = crd_unit_create(f->quiet, spec, &f->circuits[unit]);
        if (st < 0) { return crdi_fail(ctx, st, "%s", crd_error_text(f->quiet)); }
    }
    const crd_unit_info* info = &f->circuits[unit]->info;
    *out = (variables){info->variables, info->variable_count};
    return CRD_OK;
}

static crd_status description_of(feeder* f, int unit, variables* out)
{
    *out = (variables){0};
    const crd_unit_spec* spec = &f->system->units[unit];
    if (!crdi_unit_kind_of(spec->source)->is_model) { return CRD_OK; }
    if (spec->source != CRD_UNIT_FMU) { return open_circuit(f, unit, out); }
    if (!f->fmus[unit]) {
        crd_fmu_options opt = crd_fmu_defaults();
        opt.description_only = true;
        const crd_status st = crd_fmu_open(f->system->ctx, spec->path, &opt, &f->fmus[unit]);
        if (st < 0) { return st; }
    }
    const crd_fmu_description* d = crd_fmu_describe(f->fmus[unit]);
    *out = (variables){d->variables, d->variable_count};
    return CRD_OK;
}

// "u[2]" is an element of u unless a variable has this very name.
static const crd_variable* input_find_variable(const feeder* f, int unit, const char* name)
{
    const crd_fmu* fmu = f->fmus[unit];
    if (!fmu) {
        const crd_unit* u = f->circuits[unit];
        const int32_t i = u->ops->find(u, name);
        return i < 0 ? NULL : &u->info.variables[i];
    }
    int32_t i = crd_fmu_find(fmu, name);
    const char* bracket = strrchr(name, '[');
    char base[512];
    if (i < 0 && bracket && (size_t)(bracket - name) < sizeof base) {
        snprintf(base, sizeof base, "%.*s", (int)(bracket - name), name);
        i = crd_fmu_find(fmu, base);
    }
    return i < 0 ? NULL : &crd_fmu_describe(fmu)->variables[i];
}

static bool is_connected(const feeder* f, int unit, const char* variable)
{
    const crd_system* s = f->system;
    for (int i = 0; i < f->count; i++) {
        if (f->connections[i].to_unit == unit && strcmp(f->connections[i].to, variable) == 0) {
            return true;
        }
    }
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        if (c->to_unit == unit && strcmp(c->to, variable) == 0) { return true; }
    }
    return false;
}

static void warn_unused(feeder* f, const char* column, const char* why, const char* near)
{
    crdi_log(f->system->ctx, CRD_LOG_WARNING, "%s: column '%s' is not used: %s%s%s%s", f->path,
             column, why, near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}

// What "NAME=REST" of a list says about `name`, which patterns may fit; NULL.
static const char* find_pair(const crdi_list* list, const char* name)
{
    for (int i = 0; i < list->count; i++) {
        const char* equals = strrchr(list->items[i], '=');
        char pattern[512];
        if (!equals) { continue; }
        snprintf(pattern, sizeof pattern, "%.*s", (int)(equals - list->items[i]), list->items[i]);
        if (crdi_glob(pattern, name)) { return equals + 1; }
    }
    return NULL;
}

static bool input_fits(const crdi_list* patterns, const char* name)
{
    return patterns->count > 0 && crdi_match_any(patterns, name);
}

static crd_column_spec column_options(const feeder* f, const char* name, bool continuous)
{
    const bool hold = input_fits(&f->in->hold, name), linear = input_fits(&f->in->linear, name);
    const char* unit = find_pair(&f->in->units, name);
    return (crd_column_spec){.name = name,
                             .interpolation = hold || (!continuous && !linear)
                                                  ? CRD_INTERPOLATE_HOLD
                                                  : CRD_INTERPOLATE_LINEAR,
                             .has_interpolation = true,
                             .unit = unit ? unit : ""};
}

// A column that is no number somewhere is a text as a whole: say where.
static crd_status not_a_number(feeder* f, const crd_table_column* c, const crd_variable* v)
{
    int64_t row = 0;
    while (row + 1 < c->rows && !(isnan(c->values[row]) && c->texts[row][0])) {
        row++;
    }
    return crdi_fail(f->system->ctx, CRD_E_FORMAT,
                     "%s: column '%s' at time %.10g: '%.60s', expected a number for the input '%s'",
                     f->path, c->name, c->time[row], c->texts[row], v->name);
}

// "v [kmh]" for an input in m/s: nothing is converted, which should not go unnoticed.
static void warn_unit(feeder* f, const crd_table_column* c, const crd_variable* v)
{
    crd_dimension d;
    const char* unit = v->unit ? v->unit : "";
    if (!c->unit[0] || find_pair(&f->in->units, c->name) || strcmp(c->unit, unit) == 0 ||
        crd_dimension_parse(c->unit, &d)) {
        return;
    }
    crdi_log(f->system->ctx, CRD_LOG_WARNING,
             "%s: column '%s': no unit '%s' is known, its numbers are taken as they are%s%s; "
             "--input-unit %s=UNIT says which one it is",
             f->path, c->name, c->unit, *unit ? ", for an input in " : "", unit, c->name);
}

static crd_status connect_column(feeder* f, const crd_table_column* from, const char* column)
{
    crd_system* s = f->system;
    int unit = 0;
    const char* mapped = find_pair(&f->in->map, column);
    const char* target = mapped ? mapped : column;
    const char* variable = target;
    const crd_place place = {.file = f->path, .line = 1};
    if (!s->single &&
        (crd_system_split(s, target, place, &unit, &variable) < 0 || unit >= f->unit_count)) {
        if (mapped) { return crdi_fail_in(s->ctx, CRD_E_NOT_FOUND, "--input-map %s", column); }
        warn_unused(f, column, "it is not unit.variable of a unit in the system", NULL);
        return CRD_OK;
    }
    variables d;
    crd_status st = description_of(f, unit, &d);
    if (st < 0) { return st; }
    const crd_variable* v = d.all ? input_find_variable(f, unit, variable) : NULL;
    if (!v) {
        inputs n = {.d = d};
        const char* near = crdi_nearest(variable, next_input, &n);
        if (mapped) {
            return crdi_fail(s->ctx, CRD_E_NOT_FOUND, "--input-map %s=%s: no such input%s%s%s",
                             column, mapped, near ? ", did you mean " : "", near ? near : "",
                             near ? "?" : "");
        }
        warn_unused(f, column, "there is no input of this name", near);
        return CRD_OK;
    }
    if (!is_driven(v)) {
        warn_unused(f, column,
                    "the variable of this name is neither an input nor a tunable parameter", NULL);
        return CRD_OK;
    }
    if (is_connected(f, unit, variable)) {
        warn_unused(f, column, "the input has a connection already", NULL);
        return CRD_OK;
    }
    if (from->texts && from->rows > 0 && crd_type_kind(v->type) != CRD_BYTES) {
        return not_a_number(f, from, v);
    }
    warn_unit(f, from, v);
    if (input_fits(&f->in->hold, column) && input_fits(&f->in->linear, column)) {
        return crdi_fail(
            s->ctx, CRD_E_RANGE,
            "--input-hold and --input-linear both fit column '%s', expected one of them", column);
    }
    crd_connection_spec* c = &f->connections[f->count];
    *c = crd_connection_spec_defaults();
    c->predict = v->causality == CRD_INPUT ? s->run.predict : CRD_PREDICTION_HOLD;
    c->from = column;
    c->to_unit = unit;
    c->to = variable;
    c->place = place;
    f->columns[f->count++] = column_options(f, column, v->variability == CRD_CONTINUOUS);
    return CRD_OK;
}

// The recording as a unit, and what was found as its connections.
static crd_status add_recording(feeder* f)
{
    crd_unit_spec unit = crd_unit_spec_defaults();
    char name[32] = "input";
    for (int i = 2; crd_system_find(f->system, name) >= 0; i++) {
        snprintf(name, sizeof name, "input%d", i);
    }
    unit.name = name;
    unit.source = CRD_UNIT_REPLAY;
    unit.path = f->path;
    unit.columns = f->columns;
    unit.column_count = f->count;
    unit.time_offset = isnan(f->in->offset) ? 0 : f->in->offset;
    unit.repeat = f->in->repeat;
    unit.place = (crd_place){.file = "--input"};
    int index = 0;
    crd_status st = crd_system_add_unit(f->system, &unit, &index);
    for (int i = 0; st == CRD_OK && i < f->count; i++) {
        f->connections[i].from_unit = index;
        st = crd_system_add_connection(f->system, &f->connections[i]);
    }
    return st;
}

// Options about columns that are not there are mistakes.
static crd_status check_columns(const feeder* f, const crd_table* t, const char* option,
                                const crdi_list* list, bool pairs)
{
    for (int i = 0; i < list->count; i++) {
        char pattern[512];
        const char* equals = pairs ? strrchr(list->items[i], '=') : NULL;
        if (pairs && (!equals || equals == list->items[i] || !equals[1])) {
            return crdi_fail(f->system->ctx, CRD_E_RANGE, "--%s '%s', expected COLUMN=%s", option,
                             list->items[i], strcmp(option, "input-map") == 0 ? "INPUT" : "UNIT");
        }
        snprintf(pattern, sizeof pattern, "%.*s",
                 pairs ? (int)(equals - list->items[i]) : (int)strlen(list->items[i]),
                 list->items[i]);
        crd_dimension d;
        if (pairs && strcmp(option, "input-unit") == 0 && !crd_dimension_parse(equals + 1, &d)) {
            return crdi_fail(f->system->ctx, CRD_E_RANGE, "--%s '%s': no unit '%s' is known",
                             option, list->items[i], equals + 1);
        }
        bool found = false;
        for (int k = 0; k < t->column_count && !found; k++) {
            found = crdi_glob(pattern, t->columns[k].name);
        }
        if (!found) {
            return crdi_fail(f->system->ctx, CRD_E_NOT_FOUND, "--%s '%s' fits no column of %s",
                             option, pattern, f->path);
        }
    }
    return CRD_OK;
}

static crd_status nothing_connected(feeder* f)
{
    crd_system* s = f->system;
    char list[256] = "";
    size_t used = 0;
    int count = 0;
    for (int i = 0; i < f->unit_count; i++) {
        variables d;
        const crd_status st = description_of(f, i, &d);
        if (st < 0) { return st; }
        inputs n = {.d = d};
        for (const char* name = next_input(&n); name; name = next_input(&n)) {
            const char* unit = s->single ? "" : s->units[i].name;
            if (count++ < 5 && used < sizeof list) {
                used += (size_t)snprintf(list + used, sizeof list - used, "%s%s%s%s",
                                         used ? ", " : "", unit, *unit ? "." : "", name);
            }
        }
    }
    return crdi_fail(s->ctx, CRD_E_NOT_FOUND,
                     "%s: none of its columns names an input that is free; %s%s%s%s", f->path,
                     count ? "inputs are " : "there are no inputs", list, count > 5 ? ", ..." : "",
                     count ? "; --input-map COLUMN=INPUT connects columns of other names" : "");
}

// The unit that replays the recording reads it again, and warns then.
static crd_status read_quietly(crd_context* ctx, const char* path, crd_context** quiet,
                               crd_table** out)
{
    crd_context_options opt = crd_context_defaults();
    opt.level = CRD_LOG_ERROR;
    *quiet = crd_context_create(&opt);
    if (!*quiet) { return CRD_E_MEMORY; }
    const crd_status st = crd_table_read(*quiet, path, out);
    return st < 0 ? crdi_fail(ctx, st, "%s", crd_error_text(*quiet)) : st;
}

crd_status crdi_connect_input(crd_system* s, const crdi_input* in)
{
    if (!in->path) {
        const char* alone = in->map.count       ? "map"
                            : in->units.count   ? "unit"
                            : in->hold.count    ? "hold"
                            : in->linear.count  ? "linear"
                            : in->repeat        ? "repeat"
                            : isnan(in->offset) ? NULL
                                                : "offset";
        if (!alone) { return CRD_OK; }
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "--input-%s says how a file is used, but there is no "
                         "--input FILE",
                         alone);
    }
    crd_status st = CRD_OK;
    crd_table* table = NULL;
    crd_context* quiet = NULL; // of the table
    feeder f = {.system = s, .in = in, .unit_count = s->unit_count};
    f.path = crdi_arena_text(&s->arena, in->path, strlen(in->path));
    f.fmus = crdi_arena_new(&s->arena, (size_t)s->unit_count, sizeof *f.fmus);
    f.circuits = crdi_arena_new(&s->arena, (size_t)s->unit_count, sizeof *f.circuits);
    if (!f.path || !f.fmus || !f.circuits) { return CRD_E_MEMORY; }
    struct stat info;
    if (stat(in->path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        st = crdi_fail(s->ctx, CRD_E_UNSUPPORTED,
                       "--input %s: not a regular file, but it has to be read twice; copy it into "
                       "a file",
                       in->path);
        goto fail;
    }
    CRD_TRY(read_quietly(s->ctx, in->path, &quiet, &table));
    CRD_TRY(check_columns(&f, table, "input-map", &in->map, true));
    CRD_TRY(check_columns(&f, table, "input-unit", &in->units, true));
    CRD_TRY(check_columns(&f, table, "input-hold", &in->hold, false));
    CRD_TRY(check_columns(&f, table, "input-linear", &in->linear, false));
    const size_t n = (size_t)table->column_count;
    f.connections = crdi_arena_new(&s->arena, n, sizeof *f.connections);
    f.columns = crdi_arena_new(&s->arena, n, sizeof *f.columns);
    for (int i = 0; i < table->column_count; i++) {
        const char* name = table->columns[i].name;
        const char* column = crdi_arena_text(&s->arena, name, strlen(name));
        if (!column || !f.connections || !f.columns) {
            st = CRD_E_MEMORY;
            goto fail;
        }
        CRD_TRY(connect_column(&f, &table->columns[i], column));
    }
    st = f.count ? add_recording(&f) : nothing_connected(&f);
fail:
    for (int i = 0; i < f.unit_count; i++) {
        crd_fmu_close(f.fmus[i]);
        crd_unit_destroy(f.circuits[i]);
    }
    crd_context_destroy(f.quiet);
    crd_table_destroy(table);
    crd_context_destroy(quiet);
    return st;
}
