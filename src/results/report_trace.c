// Thinning of a signal to what a picture can show, in one pass: of each bin of neighbouring rows
// the first, the lowest, the highest and the last value stay, each with its own time. So no spike
// is lost and no point is made up.
#include "results/report.h"

#include <math.h>

crd_status crdi_trace_init(crdi_trace* t, crd_arena* a, int64_t rows, int points)
{
    const int64_t few = points / 4 > 4 ? points / 4 : 4;
    const bool all = rows <= points;
    *t = (crdi_trace){.min = (double)NAN, .max = (double)NAN, .last = (double)NAN};
    t->bin_most = all ? (rows > few ? rows : few) : few;
    t->bin_most += t->bin_most & 1; // merging takes pairs
    t->width = all ? 1 : rows / few + (rows % few != 0);
    t->bins = crdi_arena_new(a, (size_t)t->bin_most, sizeof *t->bins);
    return t->bins ? CRD_OK : CRD_E_MEMORY;
}

static void merge(crdi_bin* into, const crdi_bin* b)
{
    if (into->first.row < 0) { into->first = b->first; }
    if (into->gap.row < 0) { into->gap = b->gap; }
    if (b->last.row < 0) { return; }
    if (into->low.row < 0 || b->low.value < into->low.value) { into->low = b->low; }
    if (into->high.row < 0 || b->high.value > into->high.value) { into->high = b->high; }
    into->last = b->last;
}

static void merge_pairs(crdi_trace* t)
{
    for (int64_t i = 0; i < t->bin_count / 2; i++) {
        t->bins[i] = t->bins[2 * i];
        merge(&t->bins[i], &t->bins[2 * i + 1]);
    }
    t->bin_count /= 2;
    t->width *= 2;
}

// Some rows that belong into one bin
static void add_to_bin(crdi_trace* t, crdi_bin* b, const double* time, const double* v, int64_t n)
{
    const int64_t row = t->samples;
    int64_t low = -1, high = -1, first = -1, last = -1;
    double least = (double)INFINITY, most = -(double)INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) {
            if (b->gap.row < 0) { b->gap = (crdi_point){row + i, time[i], (double)NAN}; }
            t->bad++;
            continue;
        }
        if (v[i] < least) {
            least = v[i];
            low = i;
        }
        if (v[i] > most) {
            most = v[i];
            high = i;
        }
        if (first < 0) { first = i; }
        last = i;
        sum += v[i];
    }
    t->samples += n;
    if (last < 0) { return; }
    crdi_bin piece = {.first = {row + first, time[first], v[first]},
                      .low = {row + low, time[low], least},
                      .high = {row + high, time[high], most},
                      .last = {row + last, time[last], v[last]},
                      .gap = {.row = -1}};
    merge(b, &piece);
    t->sum += sum;
    t->last = v[last];
    if (!(t->min <= least)) { t->min = least; }
    if (!(t->max >= most)) { t->max = most; }
}

void crdi_trace_add(crdi_trace* t, const double* time, const double* values, int64_t rows)
{
    while (rows > 0) {
        if (t->bin_count == 0 || t->filled == t->width) {
            if (t->bin_count == t->bin_most) { merge_pairs(t); }
            const crdi_point none = {.row = -1};
            t->bins[t->bin_count++] = (crdi_bin){none, none, none, none, none};
            t->filled = 0;
        }
        int64_t n = t->width - t->filled;
        if (n > rows) { n = rows; }
        add_to_bin(t, &t->bins[t->bin_count - 1], time, values, n);
        t->filled += n;
        time += n;
        values += n;
        rows -= n;
    }
}

int64_t crdi_trace_most(const crdi_trace* t)
{
    return t->bin_most * CRDI_BIN_POINTS;
}

int64_t crdi_trace_points(const crdi_trace* t, crdi_point* out)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->bin_count; i++) {
        const crdi_bin* b = &t->bins[i];
        const crdi_point all[CRDI_BIN_POINTS] = {b->first, b->low, b->high, b->last, b->gap};
        const int64_t begin = n;
        for (int k = 0; k < CRDI_BIN_POINTS; k++) { // sorted by row, each row once
            if (all[k].row < 0) { continue; }
            int64_t at = n;
            while (at > begin && out[at - 1].row > all[k].row) {
                at--;
            }
            if (at > begin && out[at - 1].row == all[k].row) { continue; }
            for (int64_t j = n; j > at; j--) {
                out[j] = out[j - 1];
            }
            out[at] = all[k];
            n++;
        }
    }
    return n;
}
