// The samples of a signal on the grid of its macro steps, newest first, gaps filled.
#pragma once
#include "coupling/coupling.h"

enum { CRDI_JUMPS = 8 };

typedef struct crdi_history {
    int capacity, head;
    double* y;     // (2 capacity) each sample twice, so that y[head + i], i < capacity, is of age i
    bool* real;    // (capacity) at place (head + i) % capacity: arrived, not filled
    double* spare; // (capacity)
    // Jumps to whose level older samples were lifted; a late sample has to follow them.
    struct {
        int64_t at; // count of samples when it came
        double height;
    } jumps[CRDI_JUMPS];
    int64_t count, jump_count;
} crdi_history;

crd_status crdi_history_init(crdi_history* h, crd_context* ctx, int capacity);
void crdi_history_clear(crdi_history* h, crd_context* ctx);
void crdi_history_start(crdi_history* h, double value); // as if it had always been there
void crdi_history_append(crdi_history* h, double value, bool real);
void crdi_history_lift(crdi_history* h, double height); // all but the newest
/// Put a sample of that age right; filled neighbours follow. false if it was there already.
bool crdi_history_replace(crdi_history* h, int age, double value);
/// How many of the newest n are filled; those from before the signal began do not count.
int crdi_history_filled(const crdi_history* h, int n);
/// Every `ratio`-th sample, interpolated.
void crdi_history_resample(crdi_history* h, double ratio);
/// At an age between samples; beyond the oldest, the oldest.
double crdi_history_at(const crdi_history* h, double age);

static inline const double* crdi_history_newest(const crdi_history* h)
{
    return &h->y[h->head];
}
