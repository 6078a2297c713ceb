// The samples of a signal on the grid of its macro steps, newest first, gaps filled.
#pragma once
#include "coupling/coupling.h"

enum { CRDI_JUMPS = 8 };

typedef struct crdi_history {
    crd_real* newest; // in the first half of y; newest[i], i < capacity, is of age i
    ptrdiff_t capacity;
    crd_real* y; // (2 capacity) each sample twice
    int64_t count;
    int64_t marked;  // `real` is right up to this count, what came since has arrived
    bool* real;      // (capacity) at place (newest - y + i) % capacity: arrived, not filled
    crd_real* spare; // (capacity)
    // Jumps to whose level older samples were lifted; a late sample has to follow them.
    struct {
        int64_t at; // count of samples when it came
        crd_real height;
    } jumps[CRDI_JUMPS];
    int64_t jump_count;
} crdi_history;

crd_status crdi_history_init(crdi_history* h, crd_context* ctx, int capacity);
void crdi_history_clear(crdi_history* h, crd_context* ctx);
void crdi_history_start(crdi_history* h, crd_real value);          // as if it had always been there
void crdi_history_lift(crdi_history* h, int age, crd_real height); // all that are older
/// Put a sample of that age right; filled neighbours follow. false if it was there already.
bool crdi_history_replace(crdi_history* h, int age, crd_real value);
/// Every `ratio`-th sample, interpolated.
void crdi_history_resample(crdi_history* h, double ratio);
/// At an age between samples; beyond the oldest, the oldest.
crd_real crdi_history_at(const crdi_history* h, double age);

/// A sample that arrived, in the fewest steps; crdi_history_mark comes before anything else then.
static inline void crdi_history_append_unmarked(crdi_history* h, crd_real value)
{
    crd_real* newest = (CRDI_USUALLY(h->newest > h->y) ? h->newest : h->newest + h->capacity) - 1;
    h->newest = newest;
    newest[0] = value;
    newest[h->capacity] = value;
    h->count++;
}
void crdi_history_mark(crdi_history* h);

static inline void crdi_history_append(crdi_history* h, crd_real value, bool real)
{
    crdi_history_append_unmarked(h, value);
    h->real[h->newest - h->y] = real;
    h->marked = h->count;
}

static inline bool crdi_history_is_real(const crdi_history* h, int age)
{
    const ptrdiff_t place = h->newest - h->y + age;
    return h->real[place < h->capacity ? place : place - h->capacity];
}

static inline const crd_real* crdi_history_newest(const crdi_history* h)
{
    return h->newest;
}
