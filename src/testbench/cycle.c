// Drive cycles: the NEDC from its definition, others from recordings.
#include "shared/base.h"
#include "shared/testbench.h"

#include "cardan/results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// UN ECE R83, annex 4a: the elementary urban cycle (195 s, driven four times) and the extra-urban
// cycle (400 s). Each operation lasts so long and ends at this speed; its change is steady.
typedef struct operation {
    uint8_t duration; // s
    uint8_t speed;    // km/h at its end
} operation;

static const operation urban[] = {
    {11, 0},  {4, 15}, {8, 15},  {2, 10}, {3, 0},  {21, 0}, {5, 15}, {2, 15}, {5, 32},
    {24, 32}, {8, 10}, {3, 0},   {21, 0}, {5, 15}, {2, 15}, {9, 35}, {2, 35}, {8, 50},
    {12, 50}, {8, 35}, {13, 35}, {2, 32}, {7, 10}, {3, 0},  {7, 0},
};
static const operation extra_urban[] = {
    {20, 0},   {5, 15},   {2, 15},   {9, 35},  {2, 35},  {8, 50},  {2, 50},
    {13, 70},  {50, 70},  {8, 50},   {69, 50}, {13, 70}, {50, 70}, {35, 100},
    {30, 100}, {20, 120}, {10, 120}, {16, 80}, {8, 50},  {10, 0},  {20, 0},
};
#define URBAN (sizeof urban / sizeof *urban)
#define EXTRA_URBAN (sizeof extra_urban / sizeof *extra_urban)

typedef struct points {
    crdi_cycle cycle; // first: what the caller holds
    double *time, *speed;
    char* name;
} points;

static points* make_points(crd_context* ctx, const char* name, size_t count)
{
    points* p = crdi_new(ctx, sizeof *p);
    if (!p) { return NULL; }
    const size_t length = strlen(name) + 1;
    p->time = crdi_new_array(ctx, count, sizeof *p->time);
    p->speed = crdi_new_array(ctx, count, sizeof *p->speed);
    p->name = crdi_new(ctx, length);
    if (!p->time || !p->speed || !p->name) {
        crdi_cycle_destroy(ctx, &p->cycle);
        return NULL;
    }
    memcpy(p->name, name, length);
    p->cycle = (crdi_cycle){p->name, (int64_t)count, p->time, p->speed};
    return p;
}

void crdi_cycle_destroy(crd_context* ctx, const crdi_cycle* c)
{
    if (!c) { return; }
    points* p = (points*)(uintptr_t)c;
    crd_free(ctx, p->time);
    crd_free(ctx, p->speed);
    crd_free(ctx, p->name);
    crd_free(ctx, p);
}

static size_t cycle_append(points* p, size_t at, const operation* o, size_t count)
{
    for (size_t i = 0; i < count; i++, at++) {
        p->time[at] = p->time[at - 1] + o[i].duration;
        p->speed[at] = o[i].speed / 3.6;
    }
    return at;
}

static crd_status make_nedc(crd_context* ctx, const crdi_cycle** out)
{
    points* p = make_points(ctx, "nedc", 1 + 4 * URBAN + EXTRA_URBAN);
    if (!p) { return CRD_E_MEMORY; }
    size_t at = 1; // the first point is standstill at time 0
    for (int i = 0; i < 4; i++) {
        at = cycle_append(p, at, urban, URBAN);
    }
    cycle_append(p, at, extra_urban, EXTRA_URBAN);
    *out = &p->cycle;
    return CRD_OK;
}

// ---- recordings --------------------------------------------------------------------------------

static crd_status cycle_find_column(crd_context* ctx, const crdi_cycle_source* s,
                                    const crd_table* t, int* column)
{
    static const char* const usual[] = {"speed", "v", "velocity"};
    *column = s->column ? crd_table_find(t, s->column) : -1;
    for (size_t i = 0; !s->column && *column < 0 && i < sizeof usual / sizeof *usual; i++) {
        *column = crd_table_find(t, usual[i]);
    }
    if (!s->column && *column < 0 && t->column_count == 1) { *column = 0; }
    if (*column >= 0) { return CRD_OK; }
    if (s->column) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: there is no column '%s'", s->name, s->column);
    }
    return crdi_fail(ctx, CRD_E_NOT_FOUND,
                     "%s: none of its %d columns is called speed, v or velocity; say which it is",
                     s->name, t->column_count);
}

static crd_status find_unit(crd_context* ctx, const crdi_cycle_source* s,
                            const crd_table_column* column, crd_dimension* unit)
{
    const char* name = s->unit ? s->unit : column->unit[0] ? column->unit : "km/h";
    crd_dimension speed;
    crd_dimension_parse("m/s", &speed);
    if (crd_dimension_parse(name, unit) && crd_dimension_equal(unit, &speed)) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE, "%s: '%s' is in '%s', expected a speed such as km/h",
                     s->name, column->name, name);
}

static crd_status check_points(crd_context* ctx, const crdi_cycle* c)
{
    for (int64_t i = 0; i < c->count; i++) {
        if (!isfinite(c->time[i]) || !(c->speed[i] >= 0) || !isfinite(c->speed[i])) {
            return crdi_fail(ctx, CRD_E_FORMAT,
                             "%s: the speed at row %lld (%g s) is %g m/s, expected at least 0",
                             c->name, (long long)i + 1, c->time[i], c->speed[i]);
        }
    }
    if (c->time[c->count - 1] > c->time[0]) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_FORMAT, "%s: all rows are at %g s", c->name, c->time[0]);
}

static crd_status from_table(crd_context* ctx, const crdi_cycle_source* s, const crd_table* t,
                             const crdi_cycle** out)
{
    crd_status st = CRD_OK;
    points* p = NULL;
    int column = -1;
    crd_dimension unit;
    CRD_TRY(cycle_find_column(ctx, s, t, &column));
    const crd_table_column* c = &t->columns[column];
    CRD_TRY(find_unit(ctx, s, c, &unit));
    if (c->rows < 2) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s: '%s' has %lld rows, expected at least 2", s->name,
                         c->name, (long long)c->rows);
    }
    p = make_points(ctx, s->name, (size_t)c->rows);
    if (!p) { return CRD_E_MEMORY; }
    for (int64_t i = 0; i < c->rows; i++) {
        p->time[i] = c->time[i];
        p->speed[i] = unit.factor * c->values[i] + unit.offset;
    }
    CRD_TRY(check_points(ctx, &p->cycle));
    *out = &p->cycle;
    return CRD_OK;
fail:
    if (p) { crdi_cycle_destroy(ctx, &p->cycle); }
    return st;
}

crd_status crdi_cycle_create(crd_context* ctx, const crdi_cycle_source* source,
                             const crdi_cycle** out)
{
    if (!strcmp(source->name, "nedc")) { return make_nedc(ctx, out); }
    crd_table* t = NULL;
    crd_status st = crd_table_read(ctx, source->name, &t);
    if (st >= 0) { st = from_table(ctx, source, t, out); }
    crd_table_destroy(t);
    return st;
}

// ---- use ---------------------------------------------------------------------------------------

double crdi_cycle_speed(const crdi_cycle* c, double t)
{
    if (!(t > c->time[0])) { return c->speed[0]; }
    int64_t low = 0, high = c->count; // time[low] <= t < time[high]
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (c->time[middle] <= t) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if (high == c->count) { return c->speed[c->count - 1]; }
    const double part = (t - c->time[low]) / (c->time[high] - c->time[low]);
    return c->speed[low] + part * (c->speed[high] - c->speed[low]);
}
