// cardan twin: description, netlist and measurements.
#include "cardan/system.h"
#include "cli/twin/twin.h"
#include "shared/base_system.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_ROWS = 10000000 }; // of an experiment that is thought of

// Rows that are no further apart than this part of a step are at one instant.
#define NEAR 0.02

crd_status crdi_twin_check_output(const crdi_twin_job* j, const char* output)
{
    const char* files[] = {j->path, j->o->measurements, j->d->circuit};
    for (size_t i = 0; output && i < sizeof files / sizeof *files; i++) {
        const crd_status st = crdi_refuse_overwriting(j->cli->ctx, output, files[i], "the result",
                                                      "what it is made of");
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// ---- options as a description ------------------------------------------------------------------

// The next item of a list with commas; those in parentheses belong to the item. NULL: the end.
static const char* next_item(crd_arena* a, const char** at)
{
    const char* begin = *at + strspn(*at, ", ");
    int depth = 0;
    const char* end = begin;
    for (; *end && (depth > 0 || *end != ','); end++) {
        depth += *end == '(' ? 1 : *end == ')' ? -1 : 0;
    }
    *at = end;
    while (end > begin && end[-1] == ' ') {
        end--;
    }
    return end > begin ? crdi_arena_text(a, begin, (size_t)(end - begin)) : NULL;
}

typedef struct item { // NAME[=WHAT][:FIELD...]
    const char *name, *what;
    const char* fields[4];
    int count;
} item;

static crd_status split_item(crdi_twin_job* j, const char* option, const char* text, item* out)
{
    char* copy = crdi_arena_text(&j->arena, text, strlen(text));
    if (!copy) { return CRD_E_MEMORY; }
    *out = (item){.name = copy};
    char* colon = strchr(copy, ':');
    while (colon) {
        *colon++ = 0;
        if (out->count == 4) {
            return crdi_fail(j->cli->ctx, CRD_E_RANGE, "--%s '%s': too many ':'", option, text);
        }
        out->fields[out->count++] = colon;
        colon = strchr(colon, ':');
    }
    char* equals = strchr(copy, '=');
    if (equals) {
        *equals = 0;
        out->what = equals + 1;
    }
    if (!out->name[0] || (out->what && !out->what[0])) {
        return crdi_fail(j->cli->ctx, CRD_E_RANGE, "--%s '%s': expected NAME=WHAT", option, text);
    }
    return CRD_OK;
}

// A number as JSON has it; SPICE's suffixes are not taken.
static crd_status twin_load_put_number(crdi_twin_job* j, const char* option, const char* key,
                                       const char* text, crd_text* out)
{
    char* end;
    const double x = strtod(text, &end);
    if (end == text || *end || !isfinite(x)) {
        return crdi_fail(j->cli->ctx, CRD_E_RANGE, "--%s: %s '%s', expected a number", option, key,
                         text);
    }
    crdi_text_add(out, ", \"%s\": ", key);
    crdi_text_json_number(out, x);
    return CRD_OK;
}

static void put_parts(const char* parts, crd_text* out)
{
    crdi_text_add(out, "\"parts\": [");
    for (const char* at = parts; *at;) {
        const size_t n = strcspn(at, "+");
        char name[200];
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        crdi_text_json(out, name);
        at += n;
        if (*at) {
            at++;
            crdi_text_add(out, ", ");
        }
    }
    crdi_text_add(out, "]");
}

static crd_status put_sensor(crdi_twin_job* j, const item* i, crd_text* out)
{
    crdi_text_add(out, "\"at\": ");
    const char* what = i->what;
    for (int k = 0; k < j->own->output_count && !what; k++) {
        if (strcasecmp(j->own->outputs[k].name, i->name) == 0) { what = j->own->outputs[k].name; }
    }
    if (!what) { what = crdi_arena_format(&j->arena, "v(%s)", i->name); }
    if (!what) { return CRD_E_MEMORY; }
    crdi_text_json(out, what);
    if (i->count) { return twin_load_put_number(j, "sensors", "sd", i->fields[0], out); }
    if (isnan(j->o->sd)) {
        return crdi_fail(j->cli->ctx, CRD_E_RANGE,
                         "--sensors '%s': how noisy is it? expected %s:SD, or --sd for all",
                         i->name, i->name);
    }
    crdi_text_add(out, ", \"sd\": ");
    crdi_text_json_number(out, j->o->sd);
    return CRD_OK;
}

static crd_status put_parameter(crdi_twin_job* j, const item* i, crd_text* out)
{
    put_parts(i->what ? i->what : i->name, out);
    return i->count ? twin_load_put_number(j, "estimate", "start", i->fields[0], out) : CRD_OK;
}

static crd_status put_source(crdi_twin_job* j, const item* i, crd_text* out)
{
    static const char* const keys[] = {NULL, "noise", "start", "sd"};
    put_parts(i->what ? i->what : i->name, out);
    const char* model = i->count ? i->fields[0] : "constant";
    const char* hz = strchr(model, '@');
    char word[40];
    snprintf(word, sizeof word, "%.*s", (int)(hz ? hz - model : (ptrdiff_t)strlen(model)), model);
    crdi_text_add(out, ", \"model\": ");
    crdi_text_json(out, word);
    crd_status st = hz ? twin_load_put_number(j, "unknown", "frequency", hz + 1, out) : CRD_OK;
    for (int k = 1; k < i->count && st == CRD_OK; k++) {
        st = twin_load_put_number(j, "unknown", keys[k], i->fields[k], out);
    }
    return st;
}

typedef crd_status (*put_item)(crdi_twin_job* j, const item* i, crd_text* out);

static crd_status put_list(crdi_twin_job* j, const char* key, const char* option,
                           const crdi_list* list, put_item put, crd_text* out)
{
    bool first = true;
    crdi_text_add(out, ", \"%s\": {", key);
    for (int i = 0; i < list->count; i++) {
        const char *at = list->items[i], *text;
        while ((text = next_item(&j->arena, &at)) != NULL) {
            item it;
            crd_status st = split_item(j, option, text, &it);
            if (st < 0) { return st; }
            crdi_text_add(out, first ? " " : ", ");
            crdi_text_json(out, it.name);
            crdi_text_add(out, ": {");
            st = put(j, &it, out);
            if (st < 0) { return st; }
            crdi_text_add(out, "}");
            first = false;
        }
    }
    crdi_text_add(out, "}");
    return CRD_OK;
}

static crd_status from_netlist(crdi_twin_job* j)
{
    crd_context* ctx = j->cli->ctx;
    const crd_netlist_options opt = {.defines = j->o->params.items,
                                     .define_count = j->o->params.count};
    crd_status st = crd_netlist_load(ctx, j->path, &opt, &j->own);
    if (st < 0) { return st; }
    if (!j->o->sensors.count) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: no --sensors: a twin needs something that is measured", j->path);
    }
    crd_text json;
    crd_text_init(&json, ctx);
    crdi_text_add(&json, "{\"twin\": 1");
    st = put_list(j, "sensors", "sensors", &j->o->sensors, put_sensor, &json);
    if (st == CRD_OK) {
        st = put_list(j, "parameters", "estimate", &j->o->estimate, put_parameter, &json);
    }
    if (st == CRD_OK) { st = put_list(j, "sources", "unknown", &j->o->unknown, put_source, &json); }
    crdi_text_add(&json, "}");
    if (st == CRD_OK && json.failed) { st = CRD_E_MEMORY; }
    if (st == CRD_OK) {
        st = crd_twin_parse(ctx, json.data, json.length, "options", 0, j->own, &j->d);
    }
    crd_text_clear(&json);
    return st;
}

static crd_status from_description(crdi_twin_job* j)
{
    crd_context* ctx = j->cli->ctx;
    const crdi_twin_command* o = j->o;
    if (o->sensors.count || o->estimate.count || o->unknown.count || o->params.count ||
        !isnan(o->sd)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s says what is measured and unknown; --sensors, --sd, --estimate, "
                         "--unknown and --param go with a netlist",
                         j->path);
    }
    return crdi_twin_read(ctx, j->path, &j->d);
}

// ---- measurements ------------------------------------------------------------------------------

const char* crdi_twin_job_unit(const crdi_twin_job* j, const char* what)
{
    return crdi_twin_unit(j->n, what);
}

static int twin_load_find_column(const crdi_twin_job* j, const char* name)
{
    for (int i = 0; i < j->o->map.count; i++) {
        const char* equals = strchr(j->o->map.items[i], '=');
        if (!equals || strcmp(equals + 1, name) != 0) { continue; }
        char column[256];
        snprintf(column, sizeof column, "%.*s", (int)(equals - j->o->map.items[i]),
                 j->o->map.items[i]);
        return crd_table_find(j->table, column);
    }
    return crd_table_find(j->table, name);
}

// Factor and offset from the column's unit to that of the sensor; CRD_E_RANGE: they do not fit.
static crd_status twin_load_convert(crdi_twin_job* j, const crd_table_column* c, const char* unit,
                                    double* factor, double* offset)
{
    crd_dimension from, to;
    *factor = 1;
    *offset = 0;
    if (!c->unit[0] || !unit || !unit[0] || strcmp(c->unit, unit) == 0) { return CRD_OK; }
    if (!crd_dimension_parse(c->unit, &from) || !crd_dimension_parse(unit, &to) ||
        !crd_dimension_equal(&from, &to)) {
        return crdi_fail(j->cli->ctx, CRD_E_RANGE, "%s: column %s is in %s, expected %s",
                         j->table->path, c->name, c->unit, unit);
    }
    *factor = from.factor / to.factor;
    *offset = (from.offset - to.offset) / to.factor;
    return CRD_OK;
}

crd_status crdi_twin_column(crdi_twin_job* j, const crd_table_column* c, const char* unit,
                            double* factor, double* offset)
{
    if (c->texts) {
        return crdi_fail(j->cli->ctx, CRD_E_RANGE, "%s: column %s has texts, expected numbers",
                         j->table->path, c->name);
    }
    return twin_load_convert(j, c, unit, factor, offset);
}

static crd_status check_column(crdi_twin_job* j, const crd_table_column* c, const char* what)
{
    crd_context* ctx = j->cli->ctx;
    double least = INFINITY, most = -INFINITY;
    if (c->texts) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: column %s of %s has texts, expected numbers",
                         j->table->path, c->name, what);
    }
    for (int64_t i = 0; i < c->rows; i++) {
        if (i && c->time[i] == c->time[i - 1]) {
            return crdi_fail(ctx, CRD_E_RANGE, "%s: the time %.17g occurs twice, expected once",
                             j->table->path, c->time[i]);
        }
        if (isfinite(c->values[i])) {
            least = fmin(least, c->values[i]);
            most = fmax(most, c->values[i]);
        }
    }
    if (!(most >= least)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: column %s has no number", j->table->path, c->name);
    }
    if (most == least && c->rows > 2) {
        char text[300];
        snprintf(text, sizeof text, "%s: column %s is constant (%g): is the sensor alive?",
                 j->table->path, c->name, least);
        crdi_message(j->cli, CRD_LOG_WARNING, text);
    }
    return CRD_OK;
}

static const crd_table_column* sensor_column(const crdi_twin_job* j, int sensor)
{
    return &j->table->columns[j->column[sensor]];
}

// The usual distance of rows: the median of the first some thousand.
static double raster(const crd_table_column* c)
{
    double d[1000];
    const int n = c->rows > 1000 ? 999 : (int)c->rows - 1;
    for (int i = 0; i < n; i++) {
        d[i] = c->time[i + 1] - c->time[i];
    }
    qsort(d, (size_t)(n > 0 ? n : 0), sizeof *d, crdi_by_value);
    return n > 0 ? d[n / 2] : NAN;
}

// ---- the instants ------------------------------------------------------------------------------

enum { MOST_RASTERS = 64 }; // rasters of one recording

typedef struct stamps {
    const double* time;
    int64_t rows, at;
} stamps;

typedef struct all_stamps {
    stamps of[MOST_RASTERS];
    int count;
    int64_t rows;               // of all
    double first, last, raster; // s; the shortest one
} all_stamps;

// Columns of sensors share times; each list is looked at once.
static crd_status gather_stamps(crdi_twin_job* j, all_stamps* all)
{
    crd_context* ctx = j->cli->ctx;
    *all = (all_stamps){.first = INFINITY, .last = -INFINITY, .raster = NAN};
    for (int i = 0; i < j->spec.sensor_count; i++) {
        const crd_table_column* c = sensor_column(j, i);
        bool known = false;
        for (int k = 0; k < all->count; k++) {
            known = known || all->of[k].time == c->time;
        }
        if (known) { continue; }
        if (all->count == MOST_RASTERS) {
            return crdi_fail(ctx, CRD_E_UNSUPPORTED, "%s: more than %d rasters", j->table->path,
                             MOST_RASTERS);
        }
        for (int64_t row = 0; row < c->rows; row++) {
            if (!isfinite(c->time[row]) || (row && !(c->time[row] > c->time[row - 1]))) {
                return crdi_fail(ctx, CRD_E_RANGE,
                                 "%s: the time of row %lld of column %s is %.17g s, expected one "
                                 "that is later than %.17g s",
                                 j->table->path, (long long)row + 1, c->name, c->time[row],
                                 row ? c->time[row - 1] : -INFINITY);
            }
        }
        all->of[all->count++] = (stamps){.time = c->time, .rows = c->rows};
        all->rows += c->rows;
        all->first = c->rows ? fmin(all->first, c->time[0]) : all->first;
        all->last = c->rows ? fmax(all->last, c->time[c->rows - 1]) : all->last;
        all->raster = fmin(all->raster, raster(c)); // not with NaN
    }
    if (all->rows < 3) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: %lld row%s, expected three or more", j->table->path,
                         (long long)all->rows, all->rows == 1 ? "" : "s");
    }
    return CRD_OK;
}

// The usual mistake is a power of 1000: milliseconds that are called seconds, or the reverse.
static bool thousandfold(double ratio)
{
    const double power = log(ratio) / log(1000);
    return isfinite(power) && fabs(power) > 0.5 && fabs(power - round(power)) < 0.01;
}

static crd_status find_step(crdi_twin_job* j, const all_stamps* all)
{
    const double said = j->spec.step > 0 ? j->spec.step : j->n->tran_step;
    char text[400];
    if (isnan(j->o->step) && said > 0 && thousandfold(all->raster / said)) {
        snprintf(text, sizeof text,
                 "%s: rows are %g s apart, but %s %g s: is the time in seconds? (--step '%g s' "
                 "says that it is)",
                 j->table->path, all->raster,
                 j->spec.step > 0 ? "the twin's step is" : ".tran says", said, all->raster);
        if (j->spec.step > 0) { return crdi_fail(j->cli->ctx, CRD_E_RANGE, "%s", text); }
        crdi_message(j->cli, CRD_LOG_WARNING, text);
    }
    if (!(j->spec.step > 0)) { j->spec.step = all->raster; }
    if (!isnan(j->o->step)) { j->spec.step = j->o->step; }
    return CRD_OK;
}

// The netlist's state is that at 0 (or --start). A recording that does not begin there begins in a
// state that nobody said: it is found, from a guess that is as good as what was measured is large.
static void find_start(crdi_twin_job* j, const all_stamps* all)
{
    const double step = j->spec.step;
    double largest = 0;
    j->data.start = isnan(j->o->start) ? 0 : j->o->start;
    if (!isnan(j->o->start) || (all->first >= -NEAR * step && all->first <= 1.5 * step)) { return; }
    for (int i = 0; i < j->spec.sensor_count; i++) {
        const crd_table_column* c = sensor_column(j, i);
        for (int64_t row = 0; row < c->rows; row++) {
            const double y = fabs(j->factor[i] * c->values[row] + j->offset[i]);
            if (isfinite(y)) { largest = fmax(largest, y); }
        }
    }
    j->data.start = all->first - step; // so that the first row counts
    j->data.start_unknown = true;
    j->spec.state_sd = fmax(j->spec.state_sd, 3 * largest);
}

// Every time at which a sensor says something, and between rows that lie apart one per step
static crd_status merge_stamps(crdi_twin_job* j, all_stamps* all, double* to, int64_t most)
{
    const double step = j->spec.step;
    const stamps* of_last = NULL;
    double last = j->data.start, longest = 0, shortest = INFINITY;
    int64_t count = 0;
    for (;;) {
        stamps* next = NULL;
        for (int k = 0; k < all->count; k++) {
            stamps* c = &all->of[k];
            if (c->at < c->rows && (!next || c->time[c->at] < next->time[next->at])) { next = c; }
        }
        if (!next) { break; }
        const double t = next->time[next->at++];
        if (t <= last + NEAR * step) {
            j->before += t < j->data.start - NEAR * step;
            j->crowded += next == of_last; // else it is another sensor at the same instant
            continue;
        }
        const double from = last;
        for (int64_t k = 1; t - last > 1.5 * step && count < most; k++) {
            to[count++] = last = from + (double)k * step;
            j->gaps++;
        }
        if (count >= most) {
            return crdi_fail(j->cli->ctx, CRD_E_RANGE,
                             "%s: %lld rows over %g steps of %g s (%g s to %g s): is the time in "
                             "seconds, and the step right? (--start, --step)",
                             j->table->path, (long long)all->rows,
                             (all->last - j->data.start) / step, step, j->data.start, all->last);
        }
        longest = fmax(longest, t - last);
        shortest = fmin(shortest, t - last);
        to[count++] = last = t;
        of_last = next;
    }
    if (!count) {
        return crdi_fail(j->cli->ctx, CRD_E_RANGE,
                         "%s: %g to %g s has no row after the start at %g s (--start)",
                         j->table->path, all->first, all->last, j->data.start);
    }
    j->data.rows = count;
    j->data.times = to;
    j->irregular = longest > (1 + NEAR) * step || shortest < (1 - NEAR) * step;
    return CRD_OK;
}

static crd_status find_instants(crdi_twin_job* j)
{
    all_stamps all;
    crd_status st = gather_stamps(j, &all);
    if (st == CRD_OK) { st = find_step(j, &all); }
    if (st < 0) { return st; }
    find_start(j, &all);
    const double least = (all.last - j->data.start) / j->spec.step + (double)all.rows + 1;
    const double limit = 1e6 + 100 * (double)all.rows;
    const int64_t most = (int64_t)(least < limit ? (least > 1 ? least : 1) : limit);
    double* to = crdi_arena_new(&j->arena, (size_t)most + 1, sizeof *to);
    return to ? merge_stamps(j, &all, to, most) : CRD_E_MEMORY;
}

double crdi_twin_cell(const crdi_twin_job* j, const crd_table_column* c, int64_t row, int64_t* at)
{
    const double t = j->data.times[row];
    while (*at + 1 < c->rows && fabs(c->time[*at + 1] - t) <= fabs(c->time[*at] - t)) {
        ++*at;
    }
    return fabs(c->time[*at] - t) <= NEAR * j->spec.step ? c->values[*at] : NAN;
}

static void fill_sensor(crdi_twin_job* j, int sensor, double* to)
{
    const crd_table_column* c = sensor_column(j, sensor);
    int64_t at = 0;
    for (int64_t i = 0; i < j->data.rows; i++) {
        const double x = crdi_twin_cell(j, c, i, &at);
        const double y = isfinite(x) ? j->factor[sensor] * x + j->offset[sensor] : NAN;
        to[i * j->spec.sensor_count + sensor] = y;
        j->missing += isnan(y);
    }
}

static crd_status no_column(crdi_twin_job* j, const char* sensor)
{
    char list[300] = "";
    for (int i = 0; i < j->table->column_count && strlen(list) < 200; i++) {
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "",
                 crdi_clip(j->table->columns[i].name).text);
    }
    return crdi_fail(j->cli->ctx, CRD_E_NOT_FOUND,
                     "%s: no column for sensor %s; there are %s (--map COLUMN=%s)", j->table->path,
                     sensor, list, sensor);
}

static crd_status fill_inputs(crdi_twin_job* j)
{
    const int count = j->n->input_count;
    if (!count) { return CRD_OK; }
    double* to = crdi_arena_new(&j->arena, (size_t)(count * j->data.rows) + 1, sizeof *to);
    if (!to) { return CRD_E_MEMORY; }
    for (int k = 0; k < count; k++) {
        const crd_circuit_input* in = &j->n->inputs[k];
        const int column = j->table ? twin_load_find_column(j, in->name) : -1;
        double factor = 1, offset = 0;
        int64_t hint = 0;
        if (column >= 0) {
            const crd_table_column* c = &j->table->columns[column];
            crd_status st = check_column(j, c, in->name);
            if (st == CRD_OK) { st = twin_load_convert(j, c, in->unit, &factor, &offset); }
            if (st < 0) { return st; }
        }
        for (int64_t i = 0; i < j->data.rows; i++) {
            const double t =
                j->data.times ? j->data.times[i] : j->data.start + (double)(i + 1) * j->spec.step;
            double* x = &to[i * count + k];
            *x = column < 0 ? in->start
                            : factor * crd_table_value(j->table, column, t, true, &hint) + offset;
            if (!isfinite(*x) && column < 0) {
                return crdi_fail(j->cli->ctx, CRD_E_RANGE,
                                 "input %s: start = %g and no column has it; an input has to be "
                                 "known",
                                 in->name, *x);
            }
            if (column >= 0 && !isfinite(*x)) {
                return crdi_fail(j->cli->ctx, CRD_E_RANGE,
                                 "%s: column %s has no number at %g s; an input has to be known",
                                 j->table->path, j->table->columns[column].name, t);
            }
        }
    }
    j->data.inputs = to;
    return CRD_OK;
}

static crd_status load_measurements(crdi_twin_job* j)
{
    crd_context* ctx = j->cli->ctx;
    crd_status st = CRD_OK;
    const size_t sensors = (size_t)j->spec.sensor_count;
    j->column = crdi_arena_new(&j->arena, sensors + 1, sizeof *j->column);
    j->factor = crdi_arena_new(&j->arena, 2 * sensors + 1, sizeof *j->factor);
    CRD_TRY(j->column && j->factor ? CRD_OK : CRD_E_MEMORY);
    j->offset = j->factor + sensors;
    CRD_TRY(crd_table_read(ctx, j->o->measurements, &j->table));
    for (int i = 0; i < j->spec.sensor_count; i++) {
        const crd_twin_sensor* s = &j->spec.sensors[i];
        j->column[i] = twin_load_find_column(j, s->name);
        if (j->column[i] < 0) { return no_column(j, s->name); }
        CRD_TRY(check_column(j, sensor_column(j, i), s->name));
        CRD_TRY(twin_load_convert(j, sensor_column(j, i),
                                  s->unit ? s->unit : crdi_twin_job_unit(j, s->what), &j->factor[i],
                                  &j->offset[i]));
    }
    CRD_TRY(find_instants(j));
    double* y = crdi_arena_new(&j->arena, (size_t)j->data.rows * sensors + 1, sizeof *y);
    CRD_TRY(y ? CRD_OK : CRD_E_MEMORY);
    for (int i = 0; i < j->spec.sensor_count; i++) {
        fill_sensor(j, i, y);
    }
    j->data.measurements = y;
    if (j->missing == j->data.rows * j->spec.sensor_count) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: no sensor says a number after %g s", j->table->path,
                         j->data.start);
    }
fail:
    return st;
}

// Every --map has to mean something.
static crd_status check_maps(crdi_twin_job* j)
{
    for (int i = 0; i < j->o->map.count; i++) {
        const char *text = j->o->map.items[i], *equals = strchr(text, '=');
        bool known = false;
        for (int k = 0; equals && k < j->spec.sensor_count; k++) {
            known = known || strcmp(j->spec.sensors[k].name, equals + 1) == 0;
        }
        for (int k = 0; equals && k < j->n->input_count; k++) {
            known = known || strcmp(j->n->inputs[k].name, equals + 1) == 0;
        }
        if (!equals || equals == text) {
            return crdi_fail(j->cli->ctx, CRD_E_RANGE, "--map '%s', expected COLUMN=NAME", text);
        }
        if (!known) {
            return crdi_fail(j->cli->ctx, CRD_E_NOT_FOUND,
                             "--map '%s': '%s' is neither a sensor nor an .input of the netlist",
                             text, equals + 1);
        }
    }
    return CRD_OK;
}

static crd_status check_window(const crdi_twin_job* j)
{
    const crd_twin_data* d = &j->data;
    const double end = d->times ? d->times[d->rows - 1] : d->start + (double)d->rows * j->spec.step;
    if (d->from > d->to || d->from > end || d->to < d->start) { // not with NaN
        return crdi_fail(j->cli->ctx, CRD_E_RANGE, "--from and --to leave nothing of %g s to %g s",
                         d->start, end);
    }
    return CRD_OK;
}

static crd_status load_data(crdi_twin_job* j, double stop)
{
    crd_context* ctx = j->cli->ctx;
    crd_status st = CRD_OK;
    j->data.from = j->o->from;
    j->data.to = j->o->to;
    if (j->o->measurements) {
        st = check_maps(j);
        if (st == CRD_OK) { st = load_measurements(j); }
    } else if (isnan(stop)) {
        st = crdi_fail(ctx, CRD_E_RANGE, "%s: no --measurements", j->path);
    } else {
        if (!isnan(j->o->step)) { j->spec.step = j->o->step; }
        if (!(j->spec.step > 0)) { j->spec.step = j->n->tran_step; }
        if (!(j->spec.step > 0)) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "%s: how often is measured? expected --step, or .tran in the netlist",
                             j->path);
        }
        j->data.start = isnan(j->o->start) ? 0 : j->o->start;
        const double rows = floor(stop / j->spec.step + 1e-6);
        if (!(rows >= 1 && rows <= MOST_ROWS)) {
            return crdi_fail(ctx, CRD_E_RANGE, "%g s has %g steps of %g s, expected 1 to %d", stop,
                             rows, j->spec.step, MOST_ROWS);
        }
        j->data.rows = (int64_t)rows;
    }
    if (st == CRD_OK) { st = check_window(j); }
    return st == CRD_OK ? fill_inputs(j) : st;
}

crd_status crdi_twin_load(crdi_twin_job* j, crdi_cli* cli, const crdi_twin_command* o,
                          const char* path, double stop)
{
    *j = (crdi_twin_job){.cli = cli, .o = o, .path = path};
    crd_arena_init(&j->arena, cli->ctx);
    crd_status st = crdi_is_circuit(path) ? from_netlist(j) : from_description(j);
    if (st < 0) { return st; }
    j->n = j->d->netlist;
    j->spec = j->d->spec;
    if (!isnan(stop) && stop == 0) { stop = isnan(j->n->tran_stop) ? NAN : j->n->tran_stop; }
    return load_data(j, stop);
}

void crdi_twin_clear(crdi_twin_job* j)
{
    crd_table_destroy(j->table);
    crd_twin_description_destroy(j->d);
    crd_netlist_destroy(j->own);
    crd_arena_clear(&j->arena);
}

void crdi_twin_put_time(crdi_result* out, const crdi_twin_job* j)
{
    const crd_twin_data* d = &j->data;
    if (!j->table) { return; }
    crdi_put(crdi_object(out, "time"), REAL("start", d->start),
             BOOL("start_known", !d->start_unknown), BOOL("irregular", j->irregular),
             INT("gaps", j->gaps), INT("rows_crowded", j->crowded),
             INT("rows_before_start", j->before));
    if (d->start_unknown) {
        crdi_say(out,
                 "start    not known: the recording begins at %g s, not at 0; the state before "
                 "its first row is found, too (--start: when it is the netlist's)\n",
                 d->times[0]);
    }
    if (j->irregular) {
        crdi_say(out, "stamps   irregular: each row counts at its time, with a step of its own\n");
    }
    if (j->gaps) {
        crdi_say(out, "gaps     %lld steps without a row, which the model goes alone\n",
                 (long long)j->gaps);
    }
    if (j->crowded) {
        crdi_say(out,
                 "crowded  %lld rows less than %g of a step behind another are not used (--step)\n",
                 (long long)j->crowded, NEAR);
    }
    if (j->before) {
        crdi_say(out, "before   %lld rows before the start at %g s are not used\n",
                 (long long)j->before, d->start);
    }
}
