// Pyramids of extremes over recordings, built in small portions; see results_overview.h.
//
// low(l+1, k) = min low(l, 16 k + i), i = 0..15; likewise high. A pyramid has at most 2^18 buckets
// of 2^n rows, so that what is finer than a pixel of it is 1/256 of the file for 1024 pixels.
#include "results/recording.h"
#include "shared/base_units.h"
#include "shared/results.h"
#include "shared/results_overview.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEVELS = 6,     // 16^5 > 2^18
    RATIO_BITS = 4, // of levels
    MOST_BUCKETS = 1 << 18,
    MOST_TEXTS = 256, // different ones of a signal; the others are the last one
    SAMPLED = 1024,   // places that a first picture looks at
    MOST_JOBS = 4,
    MOST_TRACKS = 256, // of a job
};
static const size_t MOST_BYTES = (size_t)512 << 20; // of all pyramids
static const int64_t FIRST_LOOK = 250000000;        // ns, of a picture that is not exact yet

// The times of a group of signals, bucket by bucket.
typedef struct lane {
    int file, group;
    int64_t rows, bucket, count; // rows; rows of a bucket, a power of two; buckets
    int64_t exact;               // times of so many buckets are known, the others are guessed
    bool sampled;                // guessed from places all over the file
    double first, last;          // times; NaN: not known
    double* time;                // (count) of the first row; NULL: nobody has asked
} lane;

typedef struct pyramid {
    crdi_track track;
    lane* lane;
    int64_t filled; // buckets from the beginning
    double *low[LEVELS], *high[LEVELS];
    size_t bytes;
    int64_t used; // when
    bool busy;    // a job fills it
    bool sampled;
    bool holds; // whole numbers: nothing is between them
    char* error;
    crd_map text_index;
    const char** texts;
    int text_count;
} pyramid;

// The reference of a difference: its samples on both sides of a time.
typedef struct feed {
    crd_cursor* cursor;
    crd_block block;
    int64_t at;
    bool any, done;
    double time, value;    // before
    double factor, offset; // into the unit of measure of the other signal
} feed;

// Rows of pyramids that share a lane.
typedef struct reader {
    crdi_overview* overview;
    lane* lane;
    crd_cursor* cursor;
    int count;
    pyramid** pyramids;
    feed* feeds;     // (count)
    double** own;    // (count) of differences and texts, NULL for others
    size_t own_rows; // room there
    const double** values;
    int64_t first, rows; // of the block
    const double* time;
} reader;

typedef struct job {
    reader reader;
    int64_t row;
} job;

struct crdi_overview {
    crd_context* ctx;
    crd_arena arena; // lanes
    crd_recording* const* files;
    int file_count;
    lane** lanes; // (files)(groups)
    pyramid** pyramids;
    size_t pyramid_count, capacity, bytes;
    int64_t clock;
    job jobs[MOST_JOBS];
    int job_count, turn;
};

static const crd_recording_info* info_of(const crdi_overview* o, int file)
{
    return crd_recording_describe(o->files[file]);
}

// ---- rows --------------------------------------------------------------------------------------

static void reader_close(reader* r)
{
    crd_context* ctx = r->overview ? r->overview->ctx : NULL;
    if (!ctx) { return; }
    crd_cursor_close(r->cursor);
    for (int i = 0; i < r->count; i++) {
        if (r->feeds) { crd_cursor_close(r->feeds[i].cursor); }
        if (r->own) { crd_free(ctx, r->own[i]); }
    }
    crd_free(ctx, r->pyramids);
    crd_free(ctx, r->feeds);
    crd_free(ctx, r->own);
    crd_free(ctx, r->values);
    *r = (reader){0};
}

static crd_status reader_open(crdi_overview* o, lane* l, pyramid* const* list, int count, reader* r)
{
    crd_status st = CRD_OK;
    const size_t n = (size_t)count;
    int* signals = crdi_new_array(o->ctx, n, sizeof *signals);
    *r = (reader){.overview = o, .lane = l, .count = count};
    r->pyramids = crdi_new_array(o->ctx, n, sizeof *r->pyramids);
    r->feeds = crdi_new_array(o->ctx, n, sizeof *r->feeds);
    r->own = crdi_new_array(o->ctx, n, sizeof *r->own);
    r->values = crdi_new_array(o->ctx, n, sizeof *r->values);
    if (!signals || !r->pyramids || !r->feeds || !r->own || !r->values) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    for (int i = 0; i < count; i++) {
        r->pyramids[i] = list[i];
        signals[i] = list[i]->track.signal;
        const crdi_track* t = &list[i]->track;
        if (t->reference < 0) { continue; }
        const crd_signal_info* s = &info_of(o, t->reference)->signals[t->reference_signal];
        feed* f = &r->feeds[i];
        (void)crdi_unit_convert(s->unit, info_of(o, t->file)->signals[t->signal].unit, &f->factor,
                                &f->offset);
        CRD_TRY(
            crd_cursor_open(o->files[t->reference], s->group, &t->reference_signal, 1, &f->cursor));
    }
    CRD_TRY(crd_cursor_open(o->files[l->file], l->group, signals, count, &r->cursor));
    crd_free(o->ctx, signals);
    return CRD_OK;
fail:
    crd_free(o->ctx, signals);
    reader_close(r);
    return st;
}

static crd_status feed_value(feed* f, double t, bool holds, double* out)
{
    for (;;) {
        const crd_block* b = &f->block;
        while (f->at < b->rows && b->time[f->at] <= t) {
            f->time = b->time[f->at];
            f->value = f->factor * b->values[0][f->at++] + f->offset;
            f->any = true;
        }
        if (f->at < b->rows || f->done) { break; }
        const crd_status st = crd_cursor_next(f->cursor, &f->block);
        if (st < 0) { return st; }
        f->at = 0;
        f->done = f->block.rows == 0;
    }
    *out = f->value;
    if (!f->any || (f->done && t > f->time)) {
        *out = (double)NAN;
    } else if (!f->done && t > f->time && !holds) {
        const double t1 = f->block.time[f->at];
        const double v1 = f->factor * f->block.values[0][f->at] + f->offset;
        *out = f->value + (v1 - f->value) * ((t - f->time) / (t1 - f->time));
    }
    return CRD_OK;
}

// A text as the number of its first meeting.
static crd_status text_value(crdi_overview* o, pyramid* p, const char* text, double* out)
{
    int32_t k = crdi_map_find(&p->text_index, text);
    if (k < 0 && p->text_count < MOST_TEXTS) {
        const bool last = p->text_count == MOST_TEXTS - 1;
        if (!p->texts) { p->texts = crdi_new_array(o->ctx, MOST_TEXTS, sizeof *p->texts); }
        char* copy = p->texts ? crdi_strdup(o->ctx, last ? "(others)" : text) : NULL;
        if (!copy) { return CRD_E_MEMORY; }
        k = p->text_count;
        p->texts[p->text_count++] = copy;
        const crd_status st = crdi_map_add(&p->text_index, copy, k, NULL);
        if (st < 0) { return st; }
    }
    *out = k < 0 ? MOST_TEXTS - 1 : k;
    return CRD_OK;
}

static crd_status reader_make_values(reader* r, int i, const crd_block* b)
{
    crd_status st = CRD_OK;
    pyramid* p = r->pyramids[i];
    r->values[i] = b->values[i];
    const char* const* texts = b->texts[i];
    if (!texts && !r->feeds[i].cursor) { return CRD_OK; }
    if (!r->own[i]) { r->own[i] = crdi_new_array(r->overview->ctx, r->own_rows, sizeof(double)); }
    if (!r->own[i]) { return CRD_E_MEMORY; }
    r->values[i] = r->own[i];
    for (int64_t k = 0; k < b->rows; k++) {
        double* x = &r->own[i][k];
        *x = b->values[i][k];
        if (texts) {
            CRD_TRY(text_value(r->overview, p, texts[k], x));
        } else {
            double other = 0;
            CRD_TRY(feed_value(&r->feeds[i], b->time[k], p->holds, &other));
            *x -= other;
        }
    }
fail:
    return st;
}

// 0 rows: the end.
static crd_status reader_next(reader* r)
{
    crd_block b;
    crd_status st = crd_cursor_next(r->cursor, &b);
    if (st < 0) { return st; }
    r->first = b.first;
    r->rows = b.rows;
    r->time = b.time;
    if ((size_t)b.rows > r->own_rows) {
        for (int i = 0; i < r->count; i++) {
            crd_free(r->overview->ctx, r->own[i]);
            r->own[i] = NULL;
        }
        r->own_rows = (size_t)b.rows;
    }
    for (int i = 0; i < r->count && b.rows > 0 && st == CRD_OK; i++) {
        st = reader_make_values(r, i, &b);
    }
    return st;
}

static crd_status time_at(crdi_overview* o, crd_cursor* c, int64_t row, double* out)
{
    crd_block b;
    crd_status st = crdi_cursor_seek(c, row);
    if (st == CRD_OK) { st = crd_cursor_next(c, &b); }
    if (st < 0) { return st; }
    if (b.rows == 0) { return crdi_fail(o->ctx, CRD_E_FORMAT, "the file ends early"); }
    *out = b.time[0];
    return CRD_OK;
}

// Number of the last bucket that begins at or before t, -1: none. Of equal times the last.
static int64_t bucket_at(const lane* l, int64_t count, double t)
{
    int64_t low = 0, high = count; // time[low - 1] <= t < time[high]
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (l->time[middle] <= t) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low - 1;
}

// The last row at or before t, -1: none. `c` walks through the lane.
static crd_status search_row(crdi_overview* o, lane* l, crd_cursor* c, double t, int64_t* out)
{
    crd_status st = CRD_OK;
    int64_t low = 0, high = l->rows; // time(low - 1) <= t < time(high)
    if (l->time && l->exact > 0) {
        const int64_t k = bucket_at(l, l->exact, t);
        if (k < 0) { high = 0; }
        if (k >= 0) { low = k * l->bucket + 1; }
        if (k >= 0 && k + 1 < l->exact) { high = (k + 1) * l->bucket; }
    }
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        double found = 0;
        CRD_TRY(time_at(o, c, middle, &found));
        if (found <= t) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *out = low - 1;
fail:
    return st;
}

static crd_status rows_between(crdi_overview* o, lane* l, double from, double to, int64_t* first,
                               int64_t* last)
{
    crd_status st = CRD_OK;
    crd_cursor* c = NULL;
    CRD_TRY(crd_cursor_open(o->files[l->file], l->group, NULL, 0, &c));
    CRD_TRY(search_row(o, l, c, from, first));
    CRD_TRY(search_row(o, l, c, to, last));
fail:
    crd_cursor_close(c);
    return st;
}

static crd_status row_at(crdi_overview* o, lane* l, double t, int64_t* out)
{
    int64_t same = 0;
    return rows_between(o, l, t, t, out, &same);
}

static lane* lane_of(const crdi_overview* o, int file, int signal)
{
    return &o->lanes[file][info_of(o, file)->signals[signal].group];
}

// The next block begins at this row; references follow.
static crd_status reader_seek(reader* r, int64_t row)
{
    crd_status st = CRD_OK;
    crdi_overview* o = r->overview;
    CRD_TRY(crdi_cursor_seek(r->cursor, row));
    for (int i = 0; i < r->count; i++) {
        feed* f = &r->feeds[i];
        if (!f->cursor) { continue; }
        double t = 0;
        int64_t at = -1;
        const crdi_track* k = &r->pyramids[i]->track;
        if (row < r->lane->rows) {
            crd_cursor* look = NULL;
            CRD_TRY(crd_cursor_open(o->files[r->lane->file], r->lane->group, NULL, 0, &look));
            st = time_at(o, look, row, &t);
            crd_cursor_close(look);
            CRD_TRY(st);
            CRD_TRY(row_at(o, lane_of(o, k->reference, k->reference_signal), t, &at));
        }
        *f = (feed){.cursor = f->cursor, .factor = f->factor, .offset = f->offset};
        CRD_TRY(crdi_cursor_seek(f->cursor, at < 0 ? 0 : at));
    }
fail:
    return st;
}

// ---- pyramids ----------------------------------------------------------------------------------

// low > high: nothing is known; NaN: there is no number.
static void merge(double* low, double* high, double a, double b)
{
    if (a > b) { return; }
    if (isnan(a)) {
        if (*low > *high) { *low = *high = (double)NAN; }
        return;
    }
    if (isnan(*low) || a < *low) { *low = a; }
    if (isnan(*high) || b > *high) { *high = b; }
}

static void put_bucket(pyramid* p, int64_t k, double low, double high)
{
    p->low[0][k] = low;
    p->high[0][k] = high;
    for (int l = 1; l < LEVELS && p->low[l]; l++) {
        k >>= RATIO_BITS;
        merge(&p->low[l][k], &p->high[l][k], low, high);
    }
}

static void range_of(const double* x, int64_t n, double* low, double* high)
{
    double least = INFINITY, largest = -INFINITY;
    for (int64_t i = 0; i < n; i++) { // infinite values are gaps
        if (x[i] < least && x[i] > -INFINITY) { least = x[i]; }
        if (x[i] > largest && x[i] < INFINITY) { largest = x[i]; }
    }
    *low = least <= largest ? least : (double)NAN;
    *high = least <= largest ? largest : (double)NAN;
}

static size_t lane_levels(const lane* l, int64_t counts[LEVELS])
{
    size_t sum = 0;
    for (int i = 0; i < LEVELS; i++) {
        const int64_t above = (l->count - 1) >> (RATIO_BITS * i);
        counts[i] = i > 0 && above < 16 ? 0 : above + 1;
        sum += (size_t)counts[i];
    }
    return sum;
}

static void pyramid_destroy(crdi_overview* o, pyramid* p)
{
    if (!p) { return; }
    for (int i = 0; i < p->text_count; i++) {
        crd_free(o->ctx, (void*)p->texts[i]);
    }
    crd_free(o->ctx, p->texts);
    crdi_map_clear(&p->text_index);
    crd_free(o->ctx, p->low[0]);
    crd_free(o->ctx, p->error);
    o->bytes -= p->bytes;
    crd_free(o->ctx, p);
}

static crd_status lane_times(crdi_overview* o, lane* l)
{
    if (l->time) { return CRD_OK; }
    l->time = crdi_new_array(o->ctx, (size_t)l->count + 1, sizeof *l->time);
    for (int64_t k = 0; l->time && k < l->count; k++) { // until it is known better
        const double x = l->count > 1 ? (double)k / (double)l->count : 0;
        l->time[k] = l->first + x * (l->last - l->first);
    }
    return l->time ? CRD_OK : CRD_E_MEMORY;
}

static crd_status pyramid_create(crdi_overview* o, const crdi_track* t, pyramid** out)
{
    lane* l = lane_of(o, t->file, t->signal);
    crd_status st = lane_times(o, l);
    if (st < 0) { return st; }
    pyramid* p = crdi_new(o->ctx, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    p->track = *t;
    p->lane = l;
    const crd_type type = info_of(o, t->file)->signals[t->signal].type;
    p->holds = type != CRD_FLOAT64 && type != CRD_FLOAT32;
    crdi_map_init(&p->text_index, o->ctx);
    int64_t counts[LEVELS];
    const size_t values = lane_levels(l, counts);
    double* room = crdi_new_array(o->ctx, 2 * values, sizeof *room);
    if (!room) {
        pyramid_destroy(o, p);
        return CRD_E_MEMORY;
    }
    p->low[0] = room;
    for (int i = 0; i < LEVELS && counts[i]; i++) {
        p->low[i] = room;
        p->high[i] = room + counts[i];
        room += 2 * counts[i];
        for (int64_t k = 0; k < counts[i]; k++) {
            p->low[i][k] = INFINITY;
            p->high[i][k] = -INFINITY;
        }
    }
    p->bytes = 2 * values * sizeof(double);
    o->bytes += p->bytes;
    *out = p;
    return CRD_OK;
}

// Those that nobody has asked for lately make room.
static void give_up(crdi_overview* o)
{
    while (o->bytes > MOST_BYTES) {
        size_t oldest = o->pyramid_count;
        for (size_t i = 0; i < o->pyramid_count; i++) {
            const pyramid* p = o->pyramids[i];
            if (p->busy || p->used == o->clock) { continue; }
            if (oldest == o->pyramid_count || p->used < o->pyramids[oldest]->used) { oldest = i; }
        }
        if (oldest == o->pyramid_count) { return; }
        pyramid_destroy(o, o->pyramids[oldest]);
        o->pyramids[oldest] = o->pyramids[--o->pyramid_count];
    }
}

static bool same_track(const crdi_track* a, const crdi_track* b)
{
    return a->file == b->file && a->signal == b->signal && a->reference == b->reference &&
           (a->reference < 0 || a->reference_signal == b->reference_signal);
}

static crd_status check_track(crdi_overview* o, const crdi_track* t)
{
    const bool there = t->file >= 0 && t->file < o->file_count && t->signal >= 0 &&
                       t->signal < info_of(o, t->file)->signal_count;
    const bool other =
        t->reference == -1 ||
        (t->reference >= 0 && t->reference < o->file_count && t->reference_signal >= 0 &&
         t->reference_signal < info_of(o, t->reference)->signal_count);
    if (there && other) { return CRD_OK; }
    return crdi_fail(o->ctx, CRD_E_RANGE, "there is no signal %d of file %d", t->signal, t->file);
}

static crd_status pyramid_of(crdi_overview* o, const crdi_track* t, pyramid** out)
{
    for (size_t i = 0; i < o->pyramid_count; i++) {
        if (same_track(&o->pyramids[i]->track, t)) {
            *out = o->pyramids[i];
            (*out)->used = o->clock;
            return CRD_OK;
        }
    }
    crd_status st = check_track(o, t);
    if (st < 0) { return st; }
    pyramid** list =
        crdi_grow(o->ctx, o->pyramids, &o->capacity, o->pyramid_count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    o->pyramids = list;
    st = pyramid_create(o, t, out);
    if (st < 0) { return st; }
    list[o->pyramid_count++] = *out;
    (*out)->used = o->clock;
    give_up(o);
    return CRD_OK;
}

static void spoil(crdi_overview* o, pyramid* p)
{
    crd_free(o->ctx, p->error);
    p->error = crdi_strdup(o->ctx, crd_error_text(o->ctx));
    p->filled = p->lane->count;
}

// ---- a first look ------------------------------------------------------------------------------

// Times of buckets that were not looked at lie between those that were.
static void guess_times(lane* l, const int64_t* known, int count)
{
    for (int i = 0; i + 1 < count; i++) {
        const int64_t a = known[i], b = known[i + 1];
        for (int64_t k = a + 1; k < b; k++) {
            if (k < l->exact) { continue; }
            l->time[k] = l->time[a] + (l->time[b] - l->time[a]) * (double)(k - a) / (double)(b - a);
        }
    }
    const int64_t a = known[count - 1];
    for (int64_t k = a + 1; k < l->count; k++) {
        if (k < l->exact) { continue; }
        l->time[k] = l->time[a] + (l->last - l->time[a]) * (double)(k - a) / (double)(l->count - a);
    }
}

static crd_status look_into(reader* r, int64_t k)
{
    const lane* l = r->lane;
    crd_status st = reader_seek(r, k * l->bucket);
    int64_t left = l->rows - k * l->bucket < l->bucket ? l->rows - k * l->bucket : l->bucket;
    bool begun = false;
    while (left > 0 && st == CRD_OK) {
        st = reader_next(r);
        if (st < 0 || r->rows == 0) { break; }
        const int64_t n = r->rows < left ? r->rows : left;
        for (int i = 0; i < r->count; i++) {
            double low, high;
            range_of(r->values[i], n, &low, &high);
            if (begun) {
                merge(&low, &high, r->pyramids[i]->low[0][k], r->pyramids[i]->high[0][k]);
            }
            put_bucket(r->pyramids[i], k, low, high);
        }
        if (!begun) { l->time[k] = r->time[0]; }
        begun = true;
        left -= n;
    }
    return st;
}

static int compare_places(const void* a, const void* b)
{
    const int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
    return (x > y) - (x < y);
}

// Buckets all over the file, in an order that covers it evenly whenever the time is over.
static crd_status first_look(crdi_overview* o, lane* l, pyramid* const* list, int count)
{
    reader r;
    crd_status st = reader_open(o, l, list, count, &r);
    if (st < 0) { return st; }
    int64_t known[SAMPLED];
    int n = 0;
    const int64_t until = crdi_now_ns() + FIRST_LOOK;
    for (unsigned i = 0; i < SAMPLED && st == CRD_OK && (n < 2 || crdi_now_ns() < until); i++) {
        unsigned turned = 0; // the bits of i, last one first
        for (unsigned b = 0; b < 10; b++) {
            turned |= (i >> b & 1) << (9 - b);
        }
        known[n] = l->count * turned / SAMPLED;
        st = look_into(&r, known[n++]);
    }
    reader_close(&r);
    if (st < 0) { return st; }
    qsort(known, (size_t)n, sizeof *known, compare_places);
    guess_times(l, known, n);
    for (int i = 0; i < count; i++) {
        list[i]->sampled = true;
    }
    return CRD_OK;
}

// ---- building ----------------------------------------------------------------------------------

static void job_end(crdi_overview* o, int i)
{
    reader* r = &o->jobs[i].reader;
    for (int k = 0; k < r->count; k++) {
        r->pyramids[k]->busy = false;
    }
    reader_close(r);
    o->jobs[i] = o->jobs[--o->job_count];
}

// A block of rows. Blocks do not end where buckets do: what a bucket has is merged.
static void job_put(job* j)
{
    reader* r = &j->reader;
    lane* l = r->lane;
    for (int64_t i = 0; i < r->rows;) {
        const int64_t row = r->first + i, k = row / l->bucket, begin = row % l->bucket;
        int64_t n = l->bucket - begin;
        if (n > r->rows - i) { n = r->rows - i; }
        if (begin == 0 && k >= l->exact) {
            l->time[k] = r->time[i];
            l->exact = k + 1;
        }
        for (int s = 0; s < r->count; s++) {
            pyramid* p = r->pyramids[s];
            double low, high;
            range_of(r->values[s] + i, n, &low, &high);
            if (begin) { merge(&low, &high, p->low[0][k], p->high[0][k]); }
            put_bucket(p, k, low, high);
            p->filled = begin + n == l->bucket || row + n == l->rows ? k + 1 : k;
        }
        i += n;
    }
    j->row = r->first + r->rows;
}

static void job_step(crdi_overview* o, int i)
{
    job* j = &o->jobs[i];
    const crd_status st = reader_next(&j->reader);
    if (st == CRD_OK && j->reader.rows > 0) {
        job_put(j);
        return;
    }
    for (int k = 0; k < j->reader.count; k++) {
        if (st < 0) { spoil(o, j->reader.pyramids[k]); }
        j->reader.pyramids[k]->filled = j->reader.lane->count; // an unfinished file may be shorter
    }
    job_end(o, i);
}

// All that wait for the same rows are one job.
static void begin_job(crdi_overview* o)
{
    pyramid* list[MOST_TRACKS];
    int count = 0;
    lane* l = NULL;
    for (size_t i = o->pyramid_count; i-- > 0 && count < MOST_TRACKS;) {
        pyramid* p = o->pyramids[i];
        if (p->busy || p->filled >= p->lane->count || (l && p->lane != l)) { continue; }
        l = p->lane;
        list[count++] = p;
    }
    if (!l) { return; }
    job* j = &o->jobs[o->job_count];
    *j = (job){0};
    if (reader_open(o, l, list, count, &j->reader) < 0) {
        for (int i = 0; i < count; i++) {
            spoil(o, list[i]);
        }
        return;
    }
    for (int i = 0; i < count; i++) {
        list[i]->busy = true;
    }
    o->job_count++;
}

bool crdi_overview_work(crdi_overview* o, int64_t budget)
{
    const int64_t until = crdi_now_ns() + budget;
    do {
        if (o->job_count < MOST_JOBS) { begin_job(o); }
        if (o->job_count == 0) { return false; }
        o->turn = (o->turn + 1) % o->job_count;
        job_step(o, o->turn);
    } while (crdi_now_ns() < until);
    return true;
}

// ---- looking -----------------------------------------------------------------------------------

static crd_status strip_make(crd_arena* a, int64_t room, crdi_strip* s)
{
    s->time = crdi_arena_new(a, (size_t)room, sizeof(double));
    s->low = crdi_arena_new(a, (size_t)room, sizeof(double));
    s->high = crdi_arena_new(a, (size_t)room, sizeof(double));
    return crdi_arena_status(a);
}

// Into its pixel; a gap begins a place of its own.
typedef struct columns {
    crdi_strip* strip;
    double from, scale; // pixels per s
    int64_t pixel;
    int64_t room;
} columns;

static void columns_add(columns* c, double t, double low, double high)
{
    crdi_strip* s = c->strip;
    if (low > high) { return; } // not known
    double x = floor((t - c->from) * c->scale);
    x = x < -1 ? -1 : x > (double)c->room ? (double)c->room : x;
    if (s->count > 0 && (int64_t)x == c->pixel) {
        merge(&s->low[s->count - 1], &s->high[s->count - 1], low, high);
        if (x < 0) { // before the window only the last one counts
            s->time[s->count - 1] = t;
            s->low[s->count - 1] = low;
            s->high[s->count - 1] = high;
        }
        return;
    }
    if (s->count == c->room) { return; }
    c->pixel = (int64_t)x;
    s->time[s->count] = t;
    s->low[s->count] = low;
    s->high[s->count++] = high;
}

typedef struct window {
    double from, to;
    int pixels;
} window;

static columns columns_begin(const window* w, crdi_strip* s)
{
    return (columns){.strip = s,
                     .from = w->from,
                     .scale = w->to > w->from ? w->pixels / (w->to - w->from) : 0,
                     .pixel = -2,
                     .room = w->pixels + 3};
}

// Buckets from a to b.
static crd_status look_at_buckets(pyramid* p, const window* w, int64_t a, int64_t b,
                                  crd_arena* arena, crdi_strip* s)
{
    const lane* l = p->lane;
    const int64_t n = b - a + 1;
    s->samples = l->bucket == 1 && n <= 2 * (int64_t)w->pixels && p->filled >= l->count;
    const crd_status st = strip_make(arena, s->samples ? n : w->pixels + 3, s);
    if (st < 0) { return st; }
    if (s->samples) {
        s->count = n;
        memcpy(s->time, l->time + a, (size_t)n * sizeof(double));
        memcpy(s->low, p->low[0] + a, (size_t)n * sizeof(double));
        memcpy(s->high, p->high[0] + a, (size_t)n * sizeof(double));
        return CRD_OK;
    }
    int level = 0;
    while (level + 1 < LEVELS && p->low[level + 1] &&
           n >> (RATIO_BITS * (level + 1)) >=
               4 * (int64_t)w->pixels) { // else pixels beat with them
        level++;
    }
    columns c = columns_begin(w, s);
    const int shift = RATIO_BITS * level;
    for (int64_t k = a >> shift; k <= b >> shift; k++) {
        columns_add(&c, l->time[k << shift], p->low[level][k], p->high[level][k]);
    }
    return CRD_OK;
}

typedef struct wish {
    pyramid* pyramid;
    crdi_strip* strip;
} wish;

// What is finer than buckets: rows from the file, for all tracks of a lane at once.
static crd_status look_at_rows(crdi_overview* o, lane* l, const wish* wishes, int count,
                               const window* w, crd_arena* arena)
{
    crd_status st = CRD_OK;
    pyramid* list[MOST_TRACKS];
    columns pixels[MOST_TRACKS];
    reader r = {0};
    int64_t first = 0, last = 0;
    CRD_TRY(rows_between(o, l, w->from, w->to, &first, &last));
    if (first < 0) { first = 0; }
    last = last + 1 < l->rows ? last + 1 : l->rows - 1;
    const int64_t n = last - first + 1;
    const bool samples = n <= 2 * (int64_t)w->pixels;
    for (int i = 0; i < count; i++) {
        list[i] = wishes[i].pyramid;
        wishes[i].strip->part = 1;
        wishes[i].strip->samples = samples;
        CRD_TRY(strip_make(arena, samples ? n : w->pixels + 3, wishes[i].strip));
        pixels[i] = columns_begin(w, wishes[i].strip);
    }
    CRD_TRY(reader_open(o, l, list, count, &r));
    CRD_TRY(reader_seek(&r, first));
    for (int64_t row = first; row <= last;) {
        CRD_TRY(reader_next(&r));
        if (r.rows == 0) { break; }
        for (int i = 0; i < count; i++) {
            crdi_strip* s = wishes[i].strip;
            for (int64_t k = 0; k < r.rows && row + k <= last; k++) {
                double x = r.values[i][k];
                if (!isfinite(x)) { x = (double)NAN; }
                if (samples) {
                    s->time[s->count] = r.time[k];
                    s->low[s->count] = s->high[s->count] = x;
                    s->count++;
                } else {
                    columns_add(&pixels[i], r.time[k], x, x);
                }
            }
        }
        row += r.rows;
    }
fail:
    reader_close(&r);
    return st;
}

static void strip_fail(crdi_overview* o, const wish* wishes, int count)
{
    for (int i = 0; i < count; i++) {
        spoil(o, wishes[i].pyramid);
        *wishes[i].strip = (crdi_strip){.part = 1, .error = wishes[i].pyramid->error};
    }
}

// Tracks of one lane: what pyramids have, or rows.
static crd_status look_at_lane(crdi_overview* o, lane* l, const wish* wishes, int count,
                               const window* w, crd_arena* arena)
{
    pyramid* fresh[MOST_TRACKS];
    wish failed[MOST_TRACKS];
    int fresh_count = 0;
    for (int i = 0; i < count; i++) {
        pyramid* p = wishes[i].pyramid;
        if (p->filled < l->count && !p->sampled && l->count > 1) {
            failed[fresh_count] = wishes[i];
            fresh[fresh_count++] = p;
        }
    }
    if (fresh_count && first_look(o, l, fresh, fresh_count) < 0) {
        strip_fail(o, failed, fresh_count);
    }
    int64_t a = bucket_at(l, l->count, w->from), b = bucket_at(l, l->count, w->to) + 1;
    if (a < 0) { a = 0; }
    if (b > l->count - 1) { b = l->count - 1; }
    wish fine[MOST_TRACKS];
    int fine_count = 0;
    for (int i = 0; i < count; i++) {
        pyramid* p = wishes[i].pyramid;
        if (p->error) {
            *wishes[i].strip = (crdi_strip){.part = 1, .error = p->error};
            continue;
        }
        if (l->bucket > 1 && b - a + 1 < w->pixels) {
            fine[fine_count++] = wishes[i];
            continue;
        }
        wishes[i].strip->part = (double)p->filled / (double)l->count;
        const crd_status st = look_at_buckets(p, w, a, b, arena, wishes[i].strip);
        if (st < 0) { return st; }
    }
    if (fine_count && look_at_rows(o, l, fine, fine_count, w, arena) < 0) {
        strip_fail(o, fine, fine_count);
    }
    return CRD_OK;
}

crd_status crdi_overview_look(crdi_overview* o, const crdi_track* tracks, int count, double from,
                              double to, int pixels, crd_arena* arena, crdi_strip* out)
{
    enum { AT_ONCE = 40000000 }; // ns: short recordings are exact from the first picture on
    crd_status st = CRD_OK;
    const window w = {from, to, pixels < 1 ? 1 : pixels};
    wish* wishes = crdi_arena_new(arena, (size_t)count + 1, sizeof *wishes);
    if (!wishes) { return CRD_E_MEMORY; }
    o->clock++;
    bool fresh = false;
    for (int i = 0; i < count; i++) {
        out[i] = (crdi_strip){.part = 1};
        wishes[i].strip = &out[i];
        CRD_TRY(check_track(o, &tracks[i]));
        if (lane_of(o, tracks[i].file, tracks[i].signal)->rows == 0) { continue; }
        CRD_TRY(pyramid_of(o, &tracks[i], &wishes[i].pyramid));
        fresh = fresh || (wishes[i].pyramid->filled < wishes[i].pyramid->lane->count &&
                          !wishes[i].pyramid->sampled);
    }
    if (fresh) { crdi_overview_work(o, AT_ONCE); }
    for (int i = 0; i < count; i++) {
        if (!wishes[i].pyramid) { continue; }
        lane* l = wishes[i].pyramid->lane;
        wish same[MOST_TRACKS];
        int n = 0;
        for (int k = i; k < count && n < MOST_TRACKS; k++) {
            if (!wishes[k].pyramid || wishes[k].pyramid->lane != l) { continue; }
            same[n++] = wishes[k];
            wishes[k].pyramid = NULL; // done
        }
        CRD_TRY(look_at_lane(o, l, same, n, &w, arena));
    }
fail:
    return st;
}

crd_status crdi_overview_rows(crdi_overview* o, const crdi_track* track, double from, double to,
                              int64_t most, bool thin, crd_arena* arena, crdi_strip* out,
                              int64_t* all)
{
    enum { SEEK = 4096 }; // rows that are rather read than left out
    crd_status st = check_track(o, track);
    if (st < 0) { return st; }
    *out = (crdi_strip){.part = 1, .samples = true};
    *all = 0;
    lane* l = lane_of(o, track->file, track->signal);
    if (l->rows == 0) { return CRD_OK; }
    pyramid* p = NULL;
    reader r = {0};
    int64_t first = 0, last = 0;
    o->clock++;
    CRD_TRY(pyramid_of(o, track, &p));
    CRD_TRY(rows_between(o, l, from, to, &first, &last));
    if (first < 0) { first = 0; }
    *all = last - first + 1;
    if (*all <= 0) { return CRD_OK; }
    int64_t step = 1, n = *all;
    if (n > most && thin) { step = (n + most - 1) / most; }
    if (n > most && !thin) {
        first += (n - most) / 2;
        last = first + most - 1;
    }
    CRD_TRY(strip_make(arena, n < most ? n : most, out));
    out->high = out->low;
    CRD_TRY(reader_open(o, l, &p, 1, &r));
    CRD_TRY(reader_seek(&r, first));
    for (int64_t row = first; row <= last && out->count < most;) {
        CRD_TRY(reader_next(&r));
        if (r.rows == 0) { break; }
        for (; row < r.first + r.rows && row <= last && out->count < most; row += step) {
            out->time[out->count] = r.time[row - r.first];
            out->low[out->count++] = r.values[0][row - r.first];
        }
        if (row - r.first - r.rows > SEEK && row <= last) { CRD_TRY(reader_seek(&r, row)); }
    }
fail:
    reader_close(&r);
    return st;
}

crd_status crdi_overview_at(crdi_overview* o, const crdi_track* track, double time, double times[2],
                            double values[2])
{
    times[0] = times[1] = values[0] = values[1] = (double)NAN;
    crd_status st = check_track(o, track);
    if (st < 0) { return st; }
    lane* l = lane_of(o, track->file, track->signal);
    if (l->rows == 0) { return CRD_OK; }
    pyramid* p = NULL;
    reader r = {0};
    int64_t row = -1;
    o->clock++;
    CRD_TRY(pyramid_of(o, track, &p));
    CRD_TRY(row_at(o, l, time, &row));
    CRD_TRY(reader_open(o, l, &p, 1, &r));
    CRD_TRY(reader_seek(&r, row < 0 ? 0 : row));
    for (int64_t k = row < 0 ? 0 : row; k <= row + 1 && k < l->rows;) {
        CRD_TRY(reader_next(&r));
        if (r.rows == 0) { break; }
        for (; k <= row + 1 && k < r.first + r.rows; k++) {
            times[k - row] = r.time[k - r.first];
            values[k - row] = r.values[0][k - r.first];
        }
    }
fail:
    reader_close(&r);
    return st;
}

const char* const* crdi_overview_texts(crdi_overview* o, const crdi_track* track, int* count)
{
    pyramid* p = NULL;
    *count = 0;
    if (check_track(o, track) < 0 || lane_of(o, track->file, track->signal)->rows == 0 ||
        pyramid_of(o, track, &p) < 0) {
        return NULL;
    }
    *count = p->text_count;
    return p->texts;
}

// ---- life --------------------------------------------------------------------------------------

static crd_status lane_begin(crdi_overview* o, lane* l)
{
    crd_status st = CRD_OK;
    crd_cursor* c = NULL;
    l->first = l->last = (double)NAN;
    l->bucket = 1;
    while (l->rows / l->bucket >= MOST_BUCKETS) {
        l->bucket *= 2;
    }
    l->count = (l->rows + l->bucket - 1) / l->bucket;
    if (l->rows == 0) { return CRD_OK; }
    CRD_TRY(crd_cursor_open(o->files[l->file], l->group, NULL, 0, &c));
    CRD_TRY(time_at(o, c, 0, &l->first));
    CRD_TRY(time_at(o, c, l->rows - 1, &l->last));
fail:
    crd_cursor_close(c);
    return st;
}

crd_status crdi_overview_create(crd_context* ctx, crd_recording* const* files, int count,
                                crdi_overview** out)
{
    crdi_overview* o = crdi_new(ctx, sizeof *o);
    if (!o) { return CRD_E_MEMORY; }
    o->ctx = ctx;
    o->files = files;
    o->file_count = count;
    crd_arena_init(&o->arena, ctx);
    o->lanes = crdi_arena_new(&o->arena, (size_t)count + 1, sizeof *o->lanes);
    for (int i = 0; i < count && o->lanes; i++) {
        const crd_recording_info* info = info_of(o, i);
        o->lanes[i] = crdi_arena_new(&o->arena, (size_t)info->group_count + 1, sizeof(lane));
        for (int g = 0; g < info->group_count && o->lanes[i]; g++) {
            lane* l = &o->lanes[i][g];
            *l = (lane){.file = i, .group = g, .rows = info->groups[g].rows};
            (void)lane_begin(o, l); // what cannot be read is told when somebody looks at it
        }
    }
    if (o->arena.failed) {
        crdi_overview_destroy(o);
        return CRD_E_MEMORY;
    }
    *out = o;
    return CRD_OK;
}

void crdi_overview_destroy(crdi_overview* o)
{
    if (!o) { return; }
    while (o->job_count) {
        job_end(o, 0);
    }
    for (size_t i = 0; i < o->pyramid_count; i++) {
        pyramid_destroy(o, o->pyramids[i]);
    }
    crd_free(o->ctx, o->pyramids);
    for (int i = 0; i < o->file_count && o->lanes; i++) {
        for (int g = 0; o->lanes[i] && g < info_of(o, i)->group_count; g++) {
            crd_free(o->ctx, o->lanes[i][g].time);
        }
    }
    crd_arena_clear(&o->arena);
    crd_free(o->ctx, o);
}

bool crdi_overview_span(crdi_overview* o, double* first, double* last)
{
    *first = INFINITY;
    *last = -INFINITY;
    for (int i = 0; i < o->file_count; i++) {
        for (int g = 0; g < info_of(o, i)->group_count; g++) {
            const lane* l = &o->lanes[i][g];
            if (l->first < *first) { *first = l->first; }
            if (l->last > *last) { *last = l->last; }
        }
    }
    return *first <= *last;
}
