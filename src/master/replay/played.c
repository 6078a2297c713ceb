// A unit that is not run but played: a model whose outputs are what the recording has for this
// time, and whose inputs only exist.
#include "master/replay/replay.h"

#include <math.h>
#include <stdlib.h>

// One element of an output.
typedef struct column {
    crd_type type;
    size_t at, derivatives, row; // offsets in the instance; derivatives 0: none
    const double *time, *value;  // (count)
    const double* rates[2];      // (count), NULL: none
    const double* events;        // (count), NULL: none
    int64_t count;
    double start; // before the first row
} column;

typedef struct played {
    crd_model model;
    const column* columns;
    int column_count;
    double slack; // between times that are the same
} played;

typedef struct instance {
    const played* p;
} instance; // rows, inputs, outputs and derivatives follow

static int64_t* played_row_of(void* self, const column* c)
{
    return (int64_t*)((char*)self + c->row);
}

// The newest row at t.
static int64_t find_row(const played* p, const column* c, int64_t row, double t)
{
    while (row + 1 < c->count && c->time[row + 1] <= t + p->slack) {
        row++;
    }
    while (row > 0 && c->time[row] > t + p->slack) {
        row--;
    }
    return row;
}

static void played_put_value(const column* c, void* at, double x)
{
    if (c->type == CRD_FLOAT64) {
        *(double*)at = x;
    } else if (c->type == CRD_FLOAT32) {
        *(float*)at = (float)x;
    } else if (c->type == CRD_UINT64) {
        *(uint64_t*)at = x >= 0 && x < 0x1p64 ? (uint64_t)x : 0;
    } else {
        crd_model_set_integer(c->type, at, fabs(x) < 0x1p63 ? (int64_t)x : 0);
    }
}

static void give(void* self, double t)
{
    const played* p = ((const instance*)self)->p;
    for (int i = 0; i < p->column_count; i++) {
        const column* c = &p->columns[i];
        char* at = (char*)self;
        const int64_t row = *played_row_of(self, c) = find_row(p, c, *played_row_of(self, c), t);
        if (c->count == 0 || c->time[row] > t + p->slack) {
            played_put_value(c, at + c->at, c->start);
            continue;
        }
        played_put_value(c, at + c->at, c->value[row]);
        for (int d = 0; c->derivatives && d < 2; d++) {
            ((double*)(at + c->derivatives))[d] = c->rates[d] ? c->rates[d][row] : 0;
        }
    }
}

static crd_model_status played_begin(void* self, const crd_model_host* host, double t)
{
    ((instance*)self)->p = host->model->user;
    give(self, t);
    return CRD_MODEL_OK;
}

static bool has_event(const played* p, const column* c, int64_t row, double t, double end)
{
    row = find_row(p, c, row, t);
    while (row + 1 < c->count && c->time[row + 1] <= end + p->slack) {
        if (c->events[++row] != 0) { return true; }
    }
    return false;
}

static crd_model_status played_step(void* self, const crd_model_host* host, double t, double h,
                                    double* reached)
{
    const played* p = host->model->user;
    *reached = t + h;
    for (int i = 0; i < p->column_count; i++) {
        const column* c = &p->columns[i];
        if (c->events && has_event(p, c, *played_row_of(self, c), t, t + h)) {
            return CRD_MODEL_EVENT;
        }
    }
    return CRD_MODEL_OK;
}

static crd_model_status event(void* self, const crd_model_host* host, double t, double* next)
{
    (void)self, (void)host, (void)t;
    *next = INFINITY;
    return CRD_MODEL_OK;
}

// ---- made while the program runs ---------------------------------------------------------------

static size_t room(size_t* size, size_t bytes)
{
    const size_t at = *size;
    *size += (bytes + 7) & ~(size_t)7;
    return at;
}

// Derivatives that all outputs have whose signals are continued.
static int rates_of(const crdi_played_port* ports, int count)
{
    int order = 2;
    bool any = false;
    for (int i = 0; i < count; i++) {
        const crdi_exchange_link* k = ports[i].links[0];
        if (!ports[i].output || k->coupled || !k->curve) { continue; }
        const int own = k->rates[1] ? 2 : k->rates[0] ? 1 : 0;
        order = ports[i].array ? 0 : own < order ? own : order;
        any = true;
    }
    return any ? order : 0;
}

static bool any_event(const column* c)
{
    for (int64_t i = 1; c->events && i < c->count; i++) {
        if (c->events[i] != 0) { return true; }
    }
    return false;
}

typedef struct taken {
    double stamp, value;
} taken;

static int by_stamp(const void* a, const void* b)
{
    const taken *x = a, *y = b;
    return x->stamp < y->stamp ? -1 : x->stamp > y->stamp;
}

// Samples of a coupling, which reach the others by a script, in the order in which they were taken:
// as far as it is known, what the unit gave.
static crd_status sort_samples(crd_arena* arena, const crdi_exchange_link* k, column* c)
{
    const size_t n = (size_t)k->count;
    taken* all = crdi_arena_new(arena, n, sizeof *all);
    double* columns = crdi_arena_new(arena, 2 * n, sizeof *columns);
    if (!all || !columns) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < n; i++) {
        all[i] = (taken){k->stamp[i], k->value[i]};
    }
    if (n) { qsort(all, n, sizeof *all, by_stamp); }
    for (size_t i = 0; i < n; i++) {
        columns[i] = all[i].stamp;
        columns[n + i] = all[i].value;
    }
    c->time = columns;
    c->value = columns + n;
    c->start = k->input_count ? k->input[0] : 0;
    return CRD_OK;
}

static crd_status fill_column(crd_arena* arena, const crdi_exchange_link* k, column* c)
{
    c->count = k->count;
    if (k->coupled && k->sent) { // those that were lost, too
        c->time = k->input_time;
        c->value = k->sent;
        c->count = k->input_count;
        c->start = k->input_count ? k->sent[0] : 0;
        return CRD_OK;
    }
    if (k->coupled) { return sort_samples(arena, k, c); }
    c->time = k->arrival;
    c->value = k->value;
    c->events = k->events;
    c->rates[0] = k->rates[0];
    c->rates[1] = k->rates[1];
    c->start = k->count ? k->value[0] : 0;
    return CRD_OK;
}

// A model on its way.
typedef struct maker {
    crd_arena* arena;
    played* p;
    column* columns;
    size_t size;
    int order;
    bool events;
} maker;

static crd_status played_add_variable(maker* m, const crdi_played_port* q, crd_model_variable* v)
{
    const crdi_exchange_link* first = q->links[0];
    *v = (crd_model_variable){
        .name = q->name,
        .type = first->type,
        .causality = q->output ? CRD_OUTPUT : CRD_INPUT,
        // An input that is not continued tells nothing about the outputs' derivatives.
        .variability = q->output && first->curve ? CRD_CONTINUOUS : CRD_DISCRETE,
        .size = q->array ? (size_t)q->count : 0,
        .unit = first->unit,
        .depends = q->output ? "" : NULL,
    };
    const size_t stride = crd_model_stride(v);
    v->offset = room(&m->size, stride * (size_t)q->count);
    if (!q->output) { return CRD_OK; }
    if (m->order && first->curve && !first->coupled && !q->array) {
        v->derivatives = room(&m->size, CRD_MODEL_MAX_ORDER * sizeof(double));
    }
    for (int e = 0; e < q->count; e++) {
        column* c = &m->columns[m->p->column_count++];
        *c = (column){.type = first->type,
                      .at = v->offset + (size_t)e * stride,
                      .derivatives = v->derivatives,
                      .row = room(&m->size, sizeof(int64_t))};
        const crd_status st = fill_column(m->arena, q->links[e], c);
        if (st < 0) { return st; }
        m->events = m->events || any_event(c);
    }
    return CRD_OK;
}

crd_status crdi_played_create(crd_arena* arena, const crdi_played_port* ports, int count,
                              double tick, const crd_model** out)
{
    size_t columns = 0;
    for (int i = 0; i < count; i++) {
        columns += ports[i].output ? (size_t)ports[i].count : 0;
    }
    maker m = {.arena = arena,
               .p = crdi_arena_new(arena, 1, sizeof *m.p),
               .columns = crdi_arena_new(arena, columns, sizeof *m.columns),
               .size = sizeof(instance),
               .order = rates_of(ports, count)};
    crd_model_variable* v = crdi_arena_new(arena, (size_t)count, sizeof *v);
    if (!m.p || !m.columns || !v) { return CRD_E_MEMORY; }
    for (int i = 0; i < count; i++) {
        const crd_status st = played_add_variable(&m, &ports[i], &v[i]);
        if (st < 0) { return st; }
    }
    m.p->columns = m.columns;
    m.p->slack = 1e-3 * tick;
    m.p->model = (crd_model){.name = "played",
                             .description = "what was recorded",
                             .size = m.size,
                             .variables = v,
                             .variable_count = count,
                             .max_output_derivative = m.order,
                             .has_events = m.events,
                             .initialize = played_begin,
                             .outputs = give,
                             .step = played_step,
                             .event = m.events ? event : NULL,
                             .user = m.p,
                             .pinned = true};
    *out = &m.p->model;
    return CRD_OK;
}
