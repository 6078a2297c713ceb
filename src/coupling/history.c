#include "coupling/history.h"
#include "shared/base.h"

#include <string.h>

crd_status crdi_history_init(crdi_history* h, crd_context* ctx, int capacity)
{
    const size_t n = (size_t)capacity;
    *h = (crdi_history){.capacity = capacity};
    h->y = crdi_new_array(ctx, 2 * n, sizeof *h->y);
    h->real = crdi_new_array(ctx, n, sizeof *h->real);
    h->spare = crdi_new_array(ctx, n, sizeof *h->spare);
    return h->y && h->real && h->spare ? CRD_OK : CRD_E_MEMORY;
}

void crdi_history_clear(crdi_history* h, crd_context* ctx)
{
    crd_free(ctx, h->y);
    crd_free(ctx, h->real);
    crd_free(ctx, h->spare);
}

static ptrdiff_t history_place_of(const crdi_history* h, ptrdiff_t age)
{
    const ptrdiff_t place = h->newest - h->y + age;
    return place < h->capacity ? place : place - h->capacity;
}

static void history_set(crdi_history* h, ptrdiff_t age, crd_real value)
{
    const ptrdiff_t place = history_place_of(h, age);
    h->y[place] = value;
    h->y[place + h->capacity] = value;
}

void crdi_history_start(crdi_history* h, crd_real value)
{
    h->newest = h->y;
    h->count = 1;
    h->marked = h->count;
    h->jump_count = 0;
    for (int i = 0; i < 2 * h->capacity; i++) {
        h->y[i] = value;
    }
    memset(h->real, 0, (size_t)h->capacity * sizeof *h->real);
    h->real[0] = true;
}

void crdi_history_mark(crdi_history* h)
{
    const int64_t n = h->count - h->marked;
    for (int64_t i = 0; i < n && i < h->capacity; i++) {
        h->real[history_place_of(h, (ptrdiff_t)i)] = true;
    }
    h->marked = h->count;
}

void crdi_history_lift(crdi_history* h, int age, crd_real height)
{
    for (ptrdiff_t i = age + 1; i < h->capacity; i++) {
        const ptrdiff_t place = history_place_of(h, i);
        h->y[place] += height;
        h->y[place + h->capacity] = h->y[place];
    }
    h->jumps[h->jump_count % CRDI_JUMPS].at = h->count - age;
    h->jumps[h->jump_count % CRDI_JUMPS].height = height;
    h->jump_count++;
}

// Sum of the jumps after the sample of that age.
static crd_real lifted(const crdi_history* h, int age)
{
    crd_real sum = 0;
    for (int64_t j = h->jump_count - 1; j >= 0 && j >= h->jump_count - CRDI_JUMPS; j--) {
        if (h->jumps[j % CRDI_JUMPS].at > h->count - age) {
            sum += h->jumps[j % CRDI_JUMPS].height;
        }
    }
    return sum;
}

// A jump is taken to be where the first sample after it is. One from the gap before that sample may
// show that it was earlier.
static void move_jump(crdi_history* h, int age, crd_real value)
{
    for (int64_t j = h->jump_count - 1; j >= 0 && j >= h->jump_count - CRDI_JUMPS; j--) {
        const int64_t after = h->count - h->jumps[j % CRDI_JUMPS].at; // its age
        int i = age - 1;
        while (i > after && !h->real[history_place_of(h, i)]) {
            i--;
        }
        if (i != after) { continue; }
        const crd_real off = value + lifted(h, age) - crdi_history_newest(h)[age];
        if (fabs(off - h->jumps[j % CRDI_JUMPS].height) < fabs(off)) {
            h->jumps[j % CRDI_JUMPS].at = h->count - age;
        }
        return;
    }
}

// Interpolate the filled samples between two that arrived, ages `from` < `to`.
static void history_fill(crdi_history* h, int from, int to)
{
    const crd_real* y = crdi_history_newest(h);
    const crd_real newer = y[from], older = y[to];
    for (int i = from + 1; i < to; i++) {
        history_set(h, i, newer + (older - newer) * (i - from) / (to - from));
    }
}

bool crdi_history_replace(crdi_history* h, int age, crd_real value)
{
    if (h->real[history_place_of(h, age)]) { return false; }
    h->real[history_place_of(h, age)] = true;
    move_jump(h, age, value);
    history_set(h, age, value + lifted(h, age));
    int newer = age - 1, older = age + 1;
    while (newer > 0 && !h->real[history_place_of(h, newer)]) {
        newer--;
    }
    if (newer >= 0) { history_fill(h, newer, age); }
    while (older < h->capacity && !h->real[history_place_of(h, older)]) {
        older++;
    }
    if (older < h->capacity) { history_fill(h, age, older); }
    return true;
}

crd_real crdi_history_at(const crdi_history* h, double age)
{
    const crd_real* y = crdi_history_newest(h);
    if (!(age < (double)(h->capacity - 1))) { return y[h->capacity - 1]; }
    const int i = (int)age;
    return y[i] + (crd_real)(age - i) * (y[i + 1] - y[i]);
}

void crdi_history_resample(crdi_history* h, double ratio)
{
    for (int i = 0; i < h->capacity; i++) {
        h->spare[i] = crdi_history_at(h, i * ratio);
    }
    const size_t bytes = (size_t)h->capacity * sizeof *h->y;
    memcpy(h->y, h->spare, bytes);
    memcpy(h->y + h->capacity, h->spare, bytes);
    h->newest = h->y;
    h->marked = h->count;
    h->jump_count = 0;
    // None of the new places may be claimed by a sample of the old grid.
    memset(h->real, 1, (size_t)h->capacity * sizeof *h->real);
}
