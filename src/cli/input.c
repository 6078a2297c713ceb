// --input: a recording drives the inputs that have the names of its columns. Continuous inputs
// follow the lines between its rows, discrete ones keep the last row's value.
#include "cardan/fmi.h"
#include "cardan/results.h"
#include "cardan/system.h"
#include "cli/cli.h"

#include <math.h>
#include <string.h>

typedef struct feeder {
    crd_system* system;
    const char* path;
    crd_fmu** fmus; // descriptions of the units, opened when first asked for (unit_count)
    int unit_count; // without the recording itself
    int sources[2]; // unit index of the recording: followed by lines, held; -1: not needed yet
    int connected;
} feeder;

typedef struct inputs {
    const crd_fmu_description* d;
    int32_t i;
} inputs;

static const char* next_input(void* user)
{
    inputs* n = user;
    while (n->i < n->d->variable_count) {
        const crd_variable* v = &n->d->variables[n->i++];
        if (v->causality == CRD_INPUT) { return v->name; }
    }
    return NULL;
}

static crd_status description_of(feeder* f, int unit, const crd_fmu_description** out)
{
    *out = NULL;
    const crd_unit_spec* spec = &f->system->units[unit];
    if (spec->source != CRD_UNIT_FMU) { return CRD_OK; } // signals and recordings have no inputs
    if (!f->fmus[unit]) {
        crd_fmu_options opt = crd_fmu_defaults();
        opt.description_only = true;
        const crd_status st = crd_fmu_open(f->system->ctx, spec->path, &opt, &f->fmus[unit]);
        if (st < 0) { return st; }
    }
    *out = crd_fmu_describe(f->fmus[unit]);
    return CRD_OK;
}

// "u[2]" is an element of u unless a variable has this very name.
static const crd_variable* find_variable(const feeder* f, int unit, const char* name)
{
    const crd_fmu* fmu = f->fmus[unit];
    int32_t i = crd_fmu_find(fmu, name);
    const char* bracket = strrchr(name, '[');
    char base[512];
    if (i < 0 && bracket && (size_t)(bracket - name) < sizeof base) {
        snprintf(base, sizeof base, "%.*s", (int)(bracket - name), name);
        i = crd_fmu_find(fmu, base);
    }
    return i < 0 ? NULL : &crd_fmu_describe(fmu)->variables[i];
}

static bool is_connected(const crd_system* s, int unit, const char* variable)
{
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

static crd_status add_recording(feeder* f, bool held)
{
    if (f->sources[held] >= 0) { return CRD_OK; }
    crd_unit_spec unit = crd_unit_spec_defaults();
    char name[32] = "input";
    for (int i = 2; crd_system_find(f->system, name) >= 0; i++) {
        snprintf(name, sizeof name, "input%d", i);
    }
    unit.name = name;
    unit.source = CRD_UNIT_REPLAY;
    unit.path = f->path;
    unit.interpolation = held ? CRD_INTERPOLATE_HOLD : CRD_INTERPOLATE_LINEAR;
    unit.place = (crd_place){.file = "--input"};
    return crd_system_add_unit(f->system, &unit, &f->sources[held]);
}

// A column that is no number somewhere is a text as a whole: say where.
static crd_status not_a_number(feeder* f, const crd_table* t, const crd_table_column* c,
                               const crd_variable* v)
{
    int64_t row = 0;
    while (row + 1 < t->rows && !(isnan(c->values[row]) && c->texts[row][0])) {
        row++;
    }
    return crdi_fail(f->system->ctx, CRD_E_FORMAT,
                     "%s: column '%s' at time %.10g: '%.60s', expected a number for the input '%s'",
                     f->path, c->name, t->time[row], c->texts[row], v->name);
}

static crd_status connect_column(feeder* f, const crd_table* t, const crd_table_column* from,
                                 const char* column)
{
    crd_system* s = f->system;
    int unit = 0;
    const char* variable = column;
    const crd_place place = {.file = f->path, .line = 1};
    if (!s->single &&
        (crd_system_split(s, column, place, &unit, &variable) < 0 || unit >= f->unit_count)) {
        warn_unused(f, column, "it is not unit.variable of a unit in the system", NULL);
        return CRD_OK;
    }
    const crd_fmu_description* d = NULL;
    crd_status st = description_of(f, unit, &d);
    if (st < 0) { return st; }
    const crd_variable* v = d ? find_variable(f, unit, variable) : NULL;
    if (!v) {
        inputs n = {.d = d};
        warn_unused(f, column, "there is no input of this name",
                    d ? crdi_nearest(variable, next_input, &n) : NULL);
        return CRD_OK;
    }
    if (v->causality != CRD_INPUT) {
        warn_unused(f, column, "the variable of this name is not an input", NULL);
        return CRD_OK;
    }
    if (is_connected(s, unit, variable)) {
        warn_unused(f, column, "the input has a connection already", NULL);
        return CRD_OK;
    }
    if (from->texts && t->rows > 0 && crd_type_kind(v->type) != CRD_BYTES) {
        return not_a_number(f, t, from, v);
    }
    const bool held = v->variability != CRD_CONTINUOUS;
    st = add_recording(f, held);
    if (st < 0) { return st; }
    crd_connection_spec c = crd_connection_spec_defaults();
    c.from_unit = f->sources[held];
    c.from = column;
    c.to_unit = unit;
    c.to = variable;
    c.place = place;
    f->connected++;
    return crd_system_add_connection(s, &c);
}

static crd_status nothing_connected(feeder* f)
{
    crd_system* s = f->system;
    char list[256] = "";
    size_t used = 0;
    int count = 0;
    for (int i = 0; i < f->unit_count; i++) {
        const crd_fmu_description* d = NULL;
        const crd_status st = description_of(f, i, &d);
        if (st < 0) { return st; }
        inputs n = {.d = d};
        for (const char* name = d ? next_input(&n) : NULL; name; name = next_input(&n)) {
            const char* unit = s->single ? "" : s->units[i].name;
            if (count++ < 5 && used < sizeof list) {
                used += (size_t)snprintf(list + used, sizeof list - used, "%s%s%s%s",
                                         used ? ", " : "", unit, *unit ? "." : "", name);
            }
        }
    }
    return crdi_fail(s->ctx, CRD_E_NOT_FOUND,
                     "%s: none of its columns names an input that is free; %s%s%s", f->path,
                     count ? "inputs are " : "there are no inputs", list, count > 5 ? ", ..." : "");
}

crd_status crdi_connect_input(crd_system* s, const char* path)
{
    crd_status st = CRD_OK;
    crd_table* table = NULL;
    feeder f = {.system = s, .unit_count = s->unit_count, .sources = {-1, -1}};
    f.path = crdi_arena_text(&s->arena, path, strlen(path));
    f.fmus = crdi_arena_new(&s->arena, (size_t)s->unit_count, sizeof *f.fmus);
    if (!f.path || !f.fmus) { return CRD_E_MEMORY; }
    CRD_TRY(crd_table_read(s->ctx, path, &table));
    for (int i = 0; i < table->column_count; i++) {
        const char* column =
            crdi_arena_text(&s->arena, table->columns[i].name, strlen(table->columns[i].name));
        if (!column) {
            st = CRD_E_MEMORY;
            goto fail;
        }
        CRD_TRY(connect_column(&f, table, &table->columns[i], column));
    }
    if (!f.connected) { st = nothing_connected(&f); }
fail:
    for (int i = 0; i < f.unit_count; i++) {
        crd_fmu_close(f.fmus[i]);
    }
    crd_table_destroy(table);
    return st;
}
