// A recording as a unit: its columns are outputs.
#include <float.h>
#include <math.h>
#include <string.h>

#include "cardan/results.h"
#include "unit/unit.h"

typedef struct replay_unit {
    crdi_source source;
    crd_table* table;
    crd_variable* variables; // one per column
    crdi_map names;
    bool linear;
    int64_t row; // last one at or before the time, -1: before the first
} replay_unit;

// Moves to time t. Where a time occurs twice the later row counts.
static void seek(replay_unit* u, double t)
{
    const double* time = u->table->time;
    const int64_t rows = u->table->rows;
    // Times come as sums: what rounding put just before a row is at the row.
    const double late = t + 8 * DBL_EPSILON * fabs(t);
    int64_t low = u->row, high = rows;
    u->source.time = t;
    if (low >= rows || (low >= 0 && time[low] > late)) { low = -1; }
    for (int k = 0; k < 8; k++) { // steps are about as long as those of the recording
        if (low + 1 >= rows || time[low + 1] > late) {
            u->row = low;
            return;
        }
        low++;
    }
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        *(time[middle] <= late ? &low : &high) = middle;
    }
    u->row = low;
}

static crd_status enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    replay_unit* u = (replay_unit*)unit;
    const crd_table* t = u->table;
    const double first = t->time[0], last = t->time[t->rows - 1];
    const double slack = 1e-9 * (fabs(first) + fabs(last));
    if (e->start < first - slack) {
        crdi_log(unit->ctx, CRD_LOG_WARNING,
                 "unit '%s': %s begins at %g, after the run's start at %g: its first values stay "
                 "until then",
                 unit->name, t->path, first, e->start);
    }
    if (e->has_stop && e->stop > last + slack) {
        crdi_log(unit->ctx, CRD_LOG_WARNING,
                 "unit '%s': %s ends at %g, before the run's end at %g: its last values stay",
                 unit->name, t->path, last, e->stop);
    }
    u->row = -1;
    seek(u, e->start);
    return CRD_OK;
}

// Rows between which the time lies, or twice the same one.
static void rows_around(const replay_unit* u, int64_t* a, int64_t* b)
{
    *a = u->row < 0 ? 0 : u->row;
    *b = u->row < 0 || u->row + 1 == u->table->rows ? *a : u->row + 1;
}

static crd_status get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    replay_unit* u = (replay_unit*)unit;
    int64_t k, next;
    rows_around(u, &k, &next);
    const double* time = u->table->time;
    const double part =
        u->linear && next > k ? (u->source.time - time[k]) / (time[next] - time[k]) : 0;
    for (int32_t j = 0; j < b->count; j++) {
        const crd_table_column* c = &u->table->columns[b->variables[j]];
        const int32_t at = b->offsets[j];
        if (c->texts) {
            const char* text = c->texts[k] ? c->texts[k] : "";
            const crd_status st = crd_bytes_set(unit->ctx, &v->bytes[at], text, strlen(text));
            if (st < 0) { return st; }
        } else {
            const double y = c->values[k];
            v->real[at] = part != 0 ? y + (c->values[next] - y) * part : y;
        }
    }
    return CRD_OK;
}

// Slope to the right.
static crd_status get_derivatives(crd_unit* unit, const crd_binding* b, int order, double* d)
{
    replay_unit* u = (replay_unit*)unit;
    int64_t k, next;
    rows_around(u, &k, &next);
    const double* time = u->table->time;
    for (int32_t j = 0; j < b->count; j++) {
        const crd_table_column* c = &u->table->columns[b->variables[j]];
        if (c->texts) { continue; }
        d[b->offsets[j]] = order == 1 && u->linear && next > k
                               ? (c->values[next] - c->values[k]) / (time[next] - time[k])
                               : 0;
    }
    return CRD_OK;
}

static crd_status step(crd_unit* unit, double t, double h)
{
    seek((replay_unit*)unit, t + h);
    return CRD_OK;
}

static crd_status restore(crd_unit* unit, void* state)
{
    seek((replay_unit*)unit, *(const double*)state);
    return CRD_OK;
}

static void destroy(crd_unit* unit)
{
    replay_unit* u = (replay_unit*)unit;
    crdi_map_clear(&u->names);
    crdi_free(unit->ctx, u->variables);
    crd_table_destroy(u->table);
    crdi_free(unit->ctx, u);
}

static int32_t find(const crd_unit* unit, const char* name)
{
    return crdi_map_find(&((const replay_unit*)unit)->names, name);
}

static const crd_unit_ops ops = {
    CRDI_SOURCE_OPS,
    .enter_initialization = enter_initialization,
    .get = get,
    .step = step,
    .get_derivatives = get_derivatives,
    .restore = restore,
    .destroy = destroy,
    .find = find,
};

// Cells without a value, as where recordings of several rasters share a file: a line between their
// neighbours, or the value before. Both are what the column says without these rows. A column
// without any value stays as it is.
static bool bridge(const double* time, double* y, int64_t rows, bool linear, int64_t* first_gap)
{
    bool gaps = false;
    int64_t known = -1; // last row with a value
    for (int64_t k = 0; k < rows; k++) {
        if (isnan(y[k])) {
            if (!gaps) { *first_gap = k; }
            gaps = true;
            if (known >= 0) { y[k] = y[known]; } // until a next value is found
            continue;
        }
        for (int64_t i = known + 1; i < k; i++) {
            if (known < 0) {
                y[i] = y[k];
            } else if (linear && time[i] > time[known]) {
                const double part = (time[i] - time[known]) / (time[k] - time[known]);
                y[i] = y[known] + (y[k] - y[known]) * part;
            }
        }
        known = k;
    }
    return gaps;
}

static void bridge_gaps(replay_unit* u)
{
    const crd_table* t = u->table;
    int gaps = 0, first = 0;
    int64_t row = 0, at = 0;
    for (int i = 0; i < t->column_count; i++) {
        const crd_table_column* c = &t->columns[i];
        // The table is this unit's alone.
        if (c->texts || !bridge(t->time, (double*)c->values, t->rows, u->linear, &row)) {
            continue;
        }
        if (gaps++ == 0) {
            first = i;
            at = row;
        }
    }
    if (gaps) {
        crdi_log(u->source.base.ctx, CRD_LOG_WARNING,
                 "unit '%s': %s: %d column%s without a value in some rows, first '%s' at %g: %s",
                 u->source.base.name, t->path, gaps, gaps == 1 ? " is" : "s are",
                 t->columns[first].name, t->time[at],
                 u->linear ? "a line joins the neighbours" : "the one before stays");
    }
}

static crd_status describe(replay_unit* u)
{
    crd_context* ctx = u->source.base.ctx;
    const crd_table* t = u->table;
    if (t->rows < 1) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s: the recording has no rows", t->path);
    }
    u->variables = crdi_new_array(ctx, (size_t)t->column_count, sizeof *u->variables);
    if (!u->variables) { return CRD_E_MEMORY; }
    for (int i = 0; i < t->column_count; i++) {
        const crd_table_column* c = &t->columns[i];
        u->variables[i] = (crd_variable){
            .name = c->name,
            .description = "",
            .unit = c->unit,
            .reference = (uint32_t)i,
            .size = 1,
            .unit_index = -1,
            .type_index = -1,
            .alias_of = -1,
            .type = c->texts ? CRD_STRING : CRD_FLOAT64,
            .causality = CRD_OUTPUT,
            .variability = c->texts || !u->linear ? CRD_DISCRETE : CRD_CONTINUOUS,
            .initial = CRD_CALCULATED,
            .nominal = 1,
            .min = -INFINITY,
            .max = INFINITY,
        };
        bool fresh = true;
        const crd_status st = crdi_map_add(&u->names, c->name, i, &fresh);
        if (st < 0) { return st; }
        if (!fresh) {
            crdi_log(ctx, CRD_LOG_WARNING,
                     "unit '%s': %s has two columns '%s', the first one counts",
                     u->source.base.name, t->path, c->name);
        }
    }
    u->source.base.info.variables = u->variables;
    u->source.base.info.variable_count = t->column_count;
    return CRD_OK;
}

static crd_status create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                         crd_place* place, crd_unit** out)
{
    (void)store;
    (void)place;
    crd_status st = CRD_OK;
    replay_unit* u = crdi_new(ctx, sizeof *u);
    if (!u) { return CRD_E_MEMORY; }
    u->source.base = (crd_unit){.ops = &ops, .ctx = ctx, .name = spec->name, .spec = spec};
    u->linear = spec->interpolation == CRD_INTERPOLATE_LINEAR;
    u->source.base.info = (crd_unit_info){
        .flags = CRD_UNIT_CAN_SAVE | CRD_UNIT_CAN_VARY_STEP | CRD_UNIT_IS_SOURCE,
        .max_output_order = u->linear ? 1 : 0,
        .start = NAN,
        .stop = NAN,
        .step = NAN,
        .tolerance = NAN,
        .kind = "recording",
    };
    u->row = -1;
    crdi_map_init(&u->names, ctx);
    CRD_TRY(crd_table_read(ctx, spec->path, &u->table));
    CRD_TRY(describe(u));
    bridge_gaps(u);
    *out = &u->source.base;
    return CRD_OK;
fail:
    destroy(&u->source.base);
    return st;
}

const crdi_adapter crdi_adapter_replay = {.create = create};
