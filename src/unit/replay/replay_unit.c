// A recording as a unit: its columns are outputs.
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cardan/results.h"
#include "shared/base.h"
#include "unit/unit.h"

// Columns that share their times. Where the time is in them is worked out when somebody asks.
typedef struct raster {
    const double* time;
    int64_t rows;
    bool linear; // a column of it is
    double at;   // time that `row` belongs to, NaN: none yet
    int64_t row; // last one at or before it, -1: before the first
} raster;

typedef struct column {
    const crd_table_column* data;
    int raster;
    bool linear;
} column;

typedef struct replay_unit {
    crdi_source source;
    crd_table* table;
    crd_variable* variables; // one per column that has rows
    column* columns;         // likewise
    raster* rasters;
    int raster_count;
    crd_map names;
    double first, last; // times that the recording covers
    double offset;
    bool repeat;
    double local;  // time in the recording
    double slack;  // what rounding may have put just before a row is at the row
    bool linear;   // a column is
    double* jumps; // times at which a linear column has two rows, ascending
    int64_t jump_count, next_jump;
} replay_unit;

// ---- time --------------------------------------------------------------------------------------

// The first of the jumps behind the time; it is near the one before.
static double seek_jump(replay_unit* u)
{
    const double late = u->local + u->slack;
    while (u->next_jump > 0 && u->jumps[u->next_jump - 1] > late) {
        u->next_jump--;
    }
    while (u->next_jump < u->jump_count && u->jumps[u->next_jump] <= late) {
        u->next_jump++;
    }
    return u->next_jump < u->jump_count ? u->jumps[u->next_jump] : INFINITY;
}

// Values jump where a linear column does and where the recording begins again, slopes where it
// begins and ends. Rows of columns that are held, and kinks at rows, are everywhere: they do not
// count.
static double find_next_event(replay_unit* u)
{
    const double t = u->source.time, period = u->last - u->first;
    const double late = t - u->offset + u->slack;
    const double lap = u->repeat && period > 0 ? fmax(0, floor((late - u->first) / period)) : 0;
    double next = seek_jump(u);
    if (u->linear && u->first > late) { next = fmin(next, u->first); }
    if (u->repeat ? period > 0 : u->linear && u->last > late) { next = fmin(next, u->last); }
    next += u->offset + lap * period;
    return next > t ? next : INFINITY;
}

// Time of the run to time in the recording. A repeated one starts again behind its last row: its
// end and its beginning are the same moment, and the beginning counts.
static void move_to(replay_unit* u, double t)
{
    const double period = u->last - u->first;
    double x = t - u->offset;
    u->slack = 8 * DBL_EPSILON * fmax(fabs(t), fabs(u->offset));
    if (u->repeat && period > 0 && x >= u->last - u->slack) {
        x -= period * floor((x - u->first + u->slack) / period);
        x = fmax(x, u->first);
    }
    u->source.time = t;
    u->local = x;
    u->source.base.next_event = find_next_event(u);
}

// Where a time occurs twice the later row counts.
static void seek(const replay_unit* u, raster* r)
{
    const double late = u->local + u->slack;
    int64_t low = r->row, high = r->rows;
    r->at = u->local;
    if (low >= r->rows || (low >= 0 && r->time[low] > late)) { low = -1; }
    for (int k = 0; k < 8; k++) { // steps are about as long as those of the recording
        if (low + 1 >= r->rows || r->time[low + 1] > late) {
            r->row = low;
            return;
        }
        low++;
    }
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        *(r->time[middle] <= late ? &low : &high) = middle;
    }
    r->row = low;
}

// Where the time lies between two rows, or twice in the same one.
typedef struct spot {
    int64_t a, b;
    double part; // of the way from a to b
    double span; // time from a to b
} spot;

static spot find_spot(replay_unit* u, int k)
{
    raster* r = &u->rasters[k];
    if (r->at != u->local) { seek(u, r); }
    spot s = {.a = r->row < 0 ? 0 : r->row};
    s.b = r->row + 1 == r->rows ? s.a : r->row + 1; // before the first row: that one
    s.span = r->time[s.b] - r->time[s.a];
    s.part = s.span > 0 ? fmax(0, (u->local - r->time[s.a]) / s.span) : 0;
    return s;
}

static crd_status replay_enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    replay_unit* u = (replay_unit*)unit;
    const double first = u->first + u->offset, last = u->last + u->offset;
    const double slack = 1e-9 * (fabs(first) + fabs(last));
    if (e->start < first - slack) {
        crdi_log(unit->ctx, CRD_LOG_WARNING,
                 "unit '%s': %s begins at %g, after the run's start at %g: its first values stay "
                 "until then",
                 unit->name, u->table->path, first, e->start);
    }
    if (e->has_stop && e->stop > last + slack && !(u->repeat && last > first)) {
        crdi_log(unit->ctx, CRD_LOG_WARNING,
                 "unit '%s': %s ends at %g, before the run's end at %g: its last values stay",
                 unit->name, u->table->path, last, e->stop);
    }
    for (int i = 0; i < u->raster_count; i++) {
        u->rasters[i].at = NAN;
        u->rasters[i].row = -1;
    }
    move_to(u, e->start);
    return CRD_OK;
}

// What the type can hold; a recording does not fail in a step.
static int64_t to_integer(double x, crd_type type)
{
    int64_t low, high;
    if (isnan(x)) { return 0; }
    x = nearbyint(x);
    if (type == CRD_UINT64) {
        return x <= 0 ? 0 : x >= 18446744073709551616.0 ? -1 : (int64_t)(uint64_t)x;
    }
    crdi_unit_integer_range(type, &low, &high);
    return x <= (double)low ? low : x >= (double)high ? high : (int64_t)x;
}

static crd_status replay_get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    replay_unit* u = (replay_unit*)unit;
    int known = -1;
    spot s = {0};
    for (int32_t j = 0; j < b->count; j++) {
        const column* c = &u->columns[b->variables[j]];
        const crd_type type = (crd_type)u->variables[b->variables[j]].type;
        const int32_t at = b->offsets[j];
        if (c->raster != known) { s = find_spot(u, known = c->raster); }
        if (type == CRD_STRING) {
            const char* text = c->data->texts[s.a] ? c->data->texts[s.a] : "";
            const crd_status st = crd_bytes_set(unit->ctx, &v->bytes[at], text, strlen(text));
            if (st < 0) { return st; }
        } else if (crd_type_kind(type) == CRD_INTEGER) {
            v->integer[at] = to_integer(c->data->values[s.a], type);
        } else {
            const double y = c->data->values[s.a];
            v->real[at] = c->linear && s.part != 0 ? y + (c->data->values[s.b] - y) * s.part : y;
        }
    }
    return CRD_OK;
}

// Slope to the right.
static crd_status replay_get_derivatives(crd_unit* unit, const crd_binding* b, int order, double* d)
{
    replay_unit* u = (replay_unit*)unit;
    for (int32_t j = 0; j < b->count; j++) {
        const column* c = &u->columns[b->variables[j]];
        if (crd_type_kind((crd_type)u->variables[b->variables[j]].type) != CRD_REAL) { continue; }
        const spot s = find_spot(u, c->raster);
        const double* y = c->data->values;
        d[b->offsets[j]] = order == 1 && c->linear && s.span > 0 ? (y[s.b] - y[s.a]) / s.span : 0;
    }
    return CRD_OK;
}

static crd_status replay_step(crd_unit* unit, double t, double h)
{
    const double jump = unit->next_event;
    move_to((replay_unit*)unit, t + h);
    unit->events += unit->next_event != jump; // the next is another one: this is behind us
    return CRD_OK;
}

static crd_status replay_restore(crd_unit* unit, void* state)
{
    move_to((replay_unit*)unit, *(const double*)state);
    return CRD_OK;
}

static void replay_destroy(crd_unit* unit)
{
    replay_unit* u = (replay_unit*)unit;
    crdi_map_clear(&u->names);
    crd_free(unit->ctx, u->variables);
    crd_free(unit->ctx, u->columns);
    crd_free(unit->ctx, u->rasters);
    crd_free(unit->ctx, u->jumps);
    crd_table_destroy(u->table);
    crd_free(unit->ctx, u);
}

static int32_t replay_find(const crd_unit* unit, const char* name)
{
    return crdi_map_find(&((const replay_unit*)unit)->names, name);
}

static const crd_unit_state_ops state_ops = {
    crdi_source_save, replay_restore, crdi_source_free_state, crdi_source_write, crdi_source_read};
static const crd_unit_derivative_ops derivative_ops = {.get = replay_get_derivatives};

static const crd_unit_ops ops = {
    CRDI_SOURCE_OPS,           .enter_initialization = replay_enter_initialization,
    .get = replay_get,         .step = replay_step,
    .destroy = replay_destroy, .find = replay_find,
    .state = &state_ops,       .derivatives = &derivative_ops,
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
    int gaps = 0, first = 0;
    int64_t row = 0, at = 0;
    for (int i = 0; i < u->source.base.info.variable_count; i++) {
        const column* c = &u->columns[i];
        const raster* r = &u->rasters[c->raster];
        // The table is this unit's alone.
        if (c->data->texts ||
            !bridge(r->time, (double*)c->data->values, r->rows, c->linear, &row)) {
            continue;
        }
        if (gaps++ == 0) {
            first = i;
            at = row;
        }
    }
    if (gaps) {
        const column* c = &u->columns[first];
        crdi_log(u->source.base.ctx, CRD_LOG_WARNING,
                 "unit '%s': %s: %d column%s without a value in some rows, first '%s' at %g: %s",
                 u->source.base.name, u->table->path, gaps, gaps == 1 ? " is" : "s are",
                 c->data->name, u->rasters[c->raster].time[at],
                 c->linear ? "a line joins the neighbours" : "the one before stays");
    }
}

// ---- what the recording has --------------------------------------------------------------------

// The raster of a column; a new one if its times are not known yet.
static int raster_of(replay_unit* u, const double* time, int64_t rows)
{
    int k = 0;
    while (k < u->raster_count && u->rasters[k].time != time) {
        k++;
    }
    if (k == u->raster_count) {
        u->rasters[u->raster_count++] = (raster){.time = time, .rows = rows, .at = NAN, .row = -1};
        u->first = fmin(u->first, time[0]);
        u->last = fmax(u->last, time[rows - 1]);
    }
    return k;
}

static const crd_column_spec* spec_of(const replay_unit* u, const char* name)
{
    const crd_unit_spec* spec = u->source.base.spec;
    for (int i = 0; i < spec->column_count; i++) {
        if (strcmp(spec->columns[i].name, name) == 0 || crdi_glob(spec->columns[i].name, name)) {
            return &spec->columns[i];
        }
    }
    return NULL;
}

static void replay_add_column(replay_unit* u, const crd_table_column* c)
{
    const crd_table* t = u->table;
    const crd_column_spec* spec = spec_of(u, c->name);
    const int i = u->source.base.info.variable_count++;
    const crd_type type = c->texts                              ? CRD_STRING
                          : crd_type_kind(c->type) == CRD_BYTES ? CRD_FLOAT64
                                                                : c->type;
    const crd_interpolation how =
        spec && spec->has_interpolation ? spec->interpolation : u->source.base.spec->interpolation;
    column* own = &u->columns[i];
    *own = (column){.data = c,
                    .raster =
                        c->time ? raster_of(u, c->time, c->rows) : raster_of(u, t->time, t->rows),
                    .linear = how == CRD_INTERPOLATE_LINEAR && crd_type_kind(type) == CRD_REAL};
    if (own->linear) {
        u->source.base.info.max_output_order = 1;
        u->linear = u->rasters[own->raster].linear = true;
    }
    u->variables[i] = (crd_variable){
        .name = c->name,
        .description = "",
        .unit = spec && spec->unit && spec->unit[0] ? spec->unit : c->unit,
        .reference = (uint32_t)i,
        .size = 1,
        .unit_index = -1,
        .type_index = -1,
        .alias_of = -1,
        .type = (uint8_t)type,
        .causality = CRD_OUTPUT,
        .variability = own->linear ? CRD_CONTINUOUS : CRD_DISCRETE,
        .initial = CRD_CALCULATED,
        .nominal = 1,
        .min = -INFINITY,
        .max = INFINITY,
    };
}

static int by_time(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

// A time with two rows is a jump.
static crd_status find_jumps(replay_unit* u)
{
    int64_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (int k = 0; k < u->raster_count; k++) {
            const raster* r = &u->rasters[k];
            for (int64_t i = 1; i < r->rows && r->linear; i++) {
                if (r->time[i] > r->time[i - 1]) { continue; }
                if (pass == 1) { u->jumps[count] = r->time[i]; }
                count++;
            }
        }
        if (!count) { break; }
        if (pass == 0) {
            u->jumps = crdi_new_array(u->source.base.ctx, (size_t)count, sizeof *u->jumps);
            if (!u->jumps) { return CRD_E_MEMORY; }
        }
    }
    if (count) { qsort(u->jumps, (size_t)count, sizeof *u->jumps, by_time); }
    u->jump_count = count;
    return CRD_OK;
}

static crd_status index_names(replay_unit* u)
{
    const crd_unit* unit = &u->source.base;
    const char* twice = NULL;
    int count = 0;
    for (int i = 0; i < unit->info.variable_count; i++) {
        bool fresh = true;
        const crd_status st = crdi_map_add(&u->names, u->variables[i].name, i, &fresh);
        if (st < 0) { return st; }
        if (!fresh && count++ == 0) { twice = u->variables[i].name; }
    }
    if (count == 1) {
        crdi_log(unit->ctx, CRD_LOG_WARNING,
                 "unit '%s': %s has two columns '%s', the first one counts", unit->name,
                 u->table->path, twice);
    } else if (count > 1) {
        crdi_log(unit->ctx, CRD_LOG_WARNING,
                 "unit '%s': %s has %d columns with names that occur before, first '%s': the first "
                 "one of each name counts",
                 unit->name, u->table->path, count, twice);
    }
    return CRD_OK;
}

typedef struct column_names {
    const crd_table* table;
    int next;
} column_names;

static const char* replay_next_column(void* user)
{
    column_names* n = user;
    return n->next < n->table->column_count ? n->table->columns[n->next++].name : NULL;
}

// What the description says about columns must mean something.
static crd_status check_columns(const replay_unit* u)
{
    const crd_unit* unit = &u->source.base;
    const crd_table* t = u->table;
    for (int i = 0; i < unit->spec->column_count; i++) {
        const crd_column_spec* c = &unit->spec->columns[i];
        bool found = false;
        for (int k = 0; k < t->column_count && !found; k++) {
            found =
                strcmp(c->name, t->columns[k].name) == 0 || crdi_glob(c->name, t->columns[k].name);
        }
        if (!found) {
            const char* near =
                crdi_nearest(c->name, replay_next_column, &(column_names){.table = t});
            return crdi_fail(unit->ctx, CRD_E_NOT_FOUND, "%s has no column '%s'%s%s%s", t->path,
                             c->name, near ? ", did you mean '" : "", near ? near : "",
                             near ? "'?" : "");
        }
        crd_dimension d;
        if (c->unit && c->unit[0] && !crd_dimension_parse(c->unit, &d)) {
            return crdi_fail(unit->ctx, CRD_E_RANGE, "column '%s': unknown unit '%s'", c->name,
                             c->unit);
        }
    }
    if (!isfinite(unit->spec->time_offset)) {
        return crdi_fail(unit->ctx, CRD_E_RANGE, "the time offset is %g, expected a number",
                         unit->spec->time_offset);
    }
    return CRD_OK;
}

static crd_status replay_describe(replay_unit* u)
{
    crd_unit* unit = &u->source.base;
    const crd_table* t = u->table;
    const size_t n = (size_t)t->column_count;
    u->variables = crdi_new_array(unit->ctx, n, sizeof *u->variables);
    u->columns = crdi_new_array(unit->ctx, n, sizeof *u->columns);
    u->rasters = crdi_new_array(unit->ctx, n + 1, sizeof *u->rasters);
    if (!u->variables || !u->columns || !u->rasters) { return CRD_E_MEMORY; }
    const crd_status st = check_columns(u);
    if (st < 0) { return st; }
    for (int i = 0; i < t->column_count; i++) {
        const crd_table_column* c = &t->columns[i];
        if ((c->time ? c->rows : t->rows) > 0) { replay_add_column(u, c); }
    }
    if (t->column_count == 0 && t->rows > 0) { (void)raster_of(u, t->time, t->rows); }
    if (u->raster_count == 0) {
        return crdi_fail(unit->ctx, CRD_E_FORMAT, "%s: the recording has no rows", t->path);
    }
    unit->info.variables = u->variables;
    return index_names(u);
}

static crd_status replay_create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                                crd_place* place, crd_unit** out)
{
    (void)store;
    (void)place;
    crd_status st = CRD_OK;
    replay_unit* u = crdi_new(ctx, sizeof *u);
    if (!u) { return CRD_E_MEMORY; }
    u->source.base = (crd_unit){.ops = &ops, .ctx = ctx, .name = spec->name, .spec = spec};
    u->source.base.info = (crd_unit_info){
        .flags =
            CRD_UNIT_CAN_SAVE | CRD_UNIT_CAN_VARY_STEP | CRD_UNIT_IS_SOURCE | CRD_UNIT_CAN_REFRESH,
        .start = NAN,
        .stop = NAN,
        .step = NAN,
        .tolerance = NAN,
        .kind = "recording",
    };
    u->first = INFINITY;
    u->last = -INFINITY;
    u->offset = spec->time_offset;
    u->repeat = spec->repeat;
    crdi_map_init(&u->names, ctx);
    CRD_TRY(crd_table_read(ctx, spec->path, &u->table));
    CRD_TRY(replay_describe(u));
    bridge_gaps(u);
    CRD_TRY(find_jumps(u));
    *out = &u->source.base;
    return CRD_OK;
fail:
    replay_destroy(&u->source.base);
    return st;
}

const crdi_adapter crdi_adapter_replay = {.create = replay_create};
