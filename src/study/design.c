// Which runs there are: a grid of all lists, times a sample of all distributions, times
// repetitions.
#include "shared/circuit_formula.h"
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct crdi_points {
    crd_context* ctx;
    const crdi_study_file* f;
    crd_arena arena;
    int64_t grid, samples; // points of both
    int laws;              // factors that are drawn
    uint32_t** ranks;      // LATIN: (laws)(count)
    uint32_t (*v)[32];     // SOBOL, SALTELLI: directions of their dimensions
    double (*cuts)[2];     // (factors)
    crdi_formula** excludes;
    double* numbers; // of a point, for conditions
    double* u;       // (2 laws)
    int* order;
};

const char* const* crdi_study_names(crd_arena* arena, const crdi_study_file* f, bool kept)
{
    const int count = f->factor_count + (kept ? f->kept_count : 0);
    const char** names = crdi_arena_new(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; names && i < count; i++) {
        const char* from =
            i < f->factor_count ? f->factors[i].name : f->kept[i - f->factor_count].name;
        char* name = crdi_arena_text(arena, from, strlen(from));
        if (!name) { return NULL; }
        for (char* c = name; *c; c++) {
            const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                               (*c >= '0' && *c <= '9') || *c == '_';
            if (!plain) { *c = '_'; }
        }
        names[i] = name;
    }
    return names;
}

static int law_count(const crdi_study_file* f)
{
    int n = 0;
    for (int i = 0; i < f->factor_count; i++) {
        n += f->factors[i].law != CRDI_LAW_LIST;
    }
    return n;
}

static int64_t sample_count(const crdi_study_file* f)
{
    const int64_t laws = law_count(f), count = laws ? f->count : 1;
    return !laws                               ? 1
           : f->method == CRDI_SAMPLE_MORRIS   ? count * (laws + 1)
           : f->method == CRDI_SAMPLE_SALTELLI ? count * (laws + 2)
                                               : count;
}

static double grid_count(const crdi_study_file* f)
{
    double n = 1;
    for (int i = 0; i < f->factor_count; i++) {
        if (f->factors[i].law == CRDI_LAW_LIST) { n *= f->factors[i].count; }
    }
    return n;
}

int64_t crdi_points_count(const crdi_study_file* f)
{
    const double n = grid_count(f) * (double)sample_count(f) * f->repeat;
    return n > 1e12 ? -1 : (int64_t)n;
}

// Ranks of a Latin hypercube: a permutation per factor.
static crd_status shuffle(crdi_points* d)
{
    d->ranks = crdi_arena_new(&d->arena, (size_t)d->laws, sizeof *d->ranks);
    for (int j = 0; d->ranks && j < d->laws; j++) {
        uint32_t* rank = d->ranks[j] = crdi_arena_new(&d->arena, (size_t)d->f->count, sizeof *rank);
        if (!rank) { return CRD_E_MEMORY; }
        uint64_t state = study_mix(d->f->seed ^ study_mix((uint64_t)j + 77));
        for (uint32_t i = 0; i < (uint32_t)d->f->count; i++) {
            state = study_mix(state + i);
            const uint32_t k = (uint32_t)(((state >> 32) * (uint64_t)(i + 1)) >> 32);
            rank[i] = rank[k];
            rank[k] = i;
        }
    }
    return d->ranks ? CRD_OK : CRD_E_MEMORY;
}

static crd_status compile_excludes(crdi_points* d)
{
    crd_status st = CRD_OK;
    const crdi_study_file* f = d->f;
    const char* const* names = crdi_study_names(&d->arena, f, false);
    d->excludes = crdi_arena_new(&d->arena, (size_t)f->exclude_count, sizeof(crdi_formula*));
    if (!names || !d->excludes) { return CRD_E_MEMORY; }
    for (int i = 0; i < f->exclude_count; i++) {
        CRD_TRY(crdi_formula_create(d->ctx, f->exclude[i].text, f->file, f->exclude[i].line, names,
                                    f->factor_count, &d->excludes[i]));
    }
fail:
    return st;
}

crd_status crdi_points_create(crd_context* ctx, const crdi_study_file* f, crdi_points** out)
{
    crd_status st = CRD_OK;
    crdi_points* d = crdi_new(ctx, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    *d = (crdi_points){.ctx = ctx, .f = f, .laws = law_count(f)};
    crd_arena_init(&d->arena, ctx);
    const int need = f->method == CRDI_SAMPLE_SALTELLI ? 2 * d->laws : d->laws;
    const bool sobol = f->method == CRDI_SAMPLE_SOBOL || f->method == CRDI_SAMPLE_SALTELLI;
    if (sobol && need > CRDI_SOBOL_MOST) {
        st =
            crdi_fail(ctx, CRD_E_RANGE,
                      "%s: sample.method: %s with %d distributions, expected %d at most; latin and "
                      "random take any number",
                      f->file, crdi_samplings[f->method], d->laws,
                      f->method == CRDI_SAMPLE_SOBOL ? CRDI_SOBOL_MOST : CRDI_SOBOL_MOST / 2);
        goto fail;
    }
    if (crdi_points_count(f) < 0) {
        st = crdi_fail(ctx, CRD_E_RANGE, "%s: more than 10^12 runs", f->file);
        goto fail;
    }
    d->grid = (int64_t)grid_count(f);
    d->samples = sample_count(f);
    d->numbers = crdi_arena_new(&d->arena, (size_t)f->factor_count, sizeof(double));
    d->u = crdi_arena_new(&d->arena, 2 * (size_t)d->laws, sizeof(double));
    d->order = crdi_arena_new(&d->arena, (size_t)d->laws, sizeof(int));
    d->cuts = crdi_arena_new(&d->arena, (size_t)f->factor_count, sizeof *d->cuts);
    d->v = crdi_arena_new(&d->arena, sobol ? (size_t)need : 0, sizeof *d->v);
    CRD_TRY(crdi_arena_status(&d->arena));
    for (int j = 0; sobol && j < need; j++) {
        crdi_sobol_directions(j, d->v[j]);
    }
    for (int i = 0; i < f->factor_count; i++) {
        crdi_law_cut(&f->factors[i], d->cuts[i]);
        const char* wrong = study_law_wrong(&f->factors[i], d->cuts[i]);
        if (wrong) {
            st = crdi_fail(ctx, CRD_E_RANGE, "%s:%d: vary.%s: %s", f->file, f->factors[i].line,
                           f->factors[i].name, wrong);
            goto fail;
        }
    }
    if (f->method == CRDI_SAMPLE_LATIN && d->laws) { CRD_TRY(shuffle(d)); }
    CRD_TRY(compile_excludes(d));
    *out = d;
    return CRD_OK;
fail:
    crdi_points_destroy(d);
    return st;
}

void crdi_points_destroy(crdi_points* d)
{
    if (!d) { return; }
    for (int i = 0; d->excludes && i < d->f->exclude_count; i++) {
        crdi_formula_destroy(d->excludes[i]);
    }
    crd_arena_clear(&d->arena);
    crd_free(d->ctx, d);
}

static uint64_t bits_of(const crdi_points* d, int64_t sample, int factor)
{
    return study_mix(study_mix(d->f->seed + 0x51ed27u * (uint64_t)(factor + 1)) ^ (uint64_t)sample);
}

// A trajectory of Morris (1991): from a random point of the grid of p levels each factor moves once
// by p / (2 (p - 1)), in random order. Levels are the middles of p equal parts, so that
// distributions without end have all of them.
static void morris_point(crdi_points* d, int64_t sample, double* u)
{
    const int k = d->laws, p = d->f->levels;
    const int64_t trajectory = sample / (k + 1);
    const int steps = (int)(sample % (k + 1)), jump = p / 2;
    for (int j = 0; j < k; j++) {
        d->order[j] = j;
    }
    for (int j = k - 1; j > 0; j--) {
        const int other = (int)(bits_of(d, trajectory, 1000 + j) % (uint64_t)(j + 1));
        const int t = d->order[j];
        d->order[j] = d->order[other];
        d->order[other] = t;
    }
    for (int j = 0; j < k; j++) {
        int level = (int)(bits_of(d, trajectory, j) % (uint64_t)p);
        for (int i = 0; i < steps; i++) {
            if (d->order[i] == j) { level += level < p - jump ? jump : -jump; }
        }
        u[j] = (level + 0.5) / p;
    }
}

static uint32_t shift_of(const crdi_points* d, int dimension)
{
    return (uint32_t)(study_mix(d->f->seed ^ study_mix((uint64_t)dimension + 501)) >> 32);
}

void crdi_points_unit(crdi_points* d, int64_t index, double* u)
{
    const int64_t sample = index / d->grid % d->samples;
    const int k = d->laws;
    switch (d->f->method) {
    case CRDI_SAMPLE_RANDOM:
        for (int j = 0; j < k; j++) {
            u[j] = study_unit(bits_of(d, sample, j));
        }
        break;
    case CRDI_SAMPLE_LATIN:
        for (int j = 0; j < k; j++) {
            u[j] = (d->ranks[j][sample] + study_unit(bits_of(d, sample, j))) / d->f->count;
        }
        break;
    case CRDI_SAMPLE_SOBOL:
        for (int j = 0; j < k; j++) {
            u[j] = crdi_sobol(d->v[j], (uint32_t)sample, shift_of(d, j));
        }
        break;
    case CRDI_SAMPLE_MORRIS:
        morris_point(d, sample, u);
        break;
    case CRDI_SAMPLE_SALTELLI: { // A, B, then A with column j of B (Saltelli 2010)
        const uint32_t row = (uint32_t)(sample / (k + 2));
        const int which = (int)(sample % (k + 2));
        for (int j = 0; j < k; j++) {
            const int from = which == 1 || which == j + 2 ? k + j : j;
            u[j] = crdi_sobol(d->v[from], row, shift_of(d, from));
        }
        break;
    }
    }
}

static uint64_t hash_bytes(uint64_t h, const void* bytes, size_t length)
{
    const unsigned char* p = bytes;
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = p[i]; // NOLINT(clang-analyzer-core.uninitialized.Assign)
        h = (h ^ byte) * 0x100000001b3u;
    }
    return study_mix(h);
}

uint64_t crdi_points_seed(const crdi_study_file* f, uint64_t key)
{
    // Where points are compared with one another, all have the same.
    const uint64_t own = f->minimise ? 0 : key;
    return study_mix(own ^ study_mix(f->seed + 0x5eed)) >> 12; // whole as a double, too
}

uint64_t crdi_points_key(const crdi_study_file* f, const crdi_study_value* values, int64_t sample,
                         int64_t again)
{
    const int64_t place[2] = {sample, again};
    uint64_t h = hash_bytes(0xcbf29ce484222325u, place, sizeof place);
    for (int i = 0; i < f->factor_count; i++) {
        const crdi_study_factor* v = &f->factors[i];
        h = hash_bytes(h, v->name, strlen(v->name));
        h = v->numeric ? hash_bytes(h, &values[i].x, sizeof values[i].x)
                       : hash_bytes(h, values[i].text, strlen(values[i].text));
    }
    return h;
}

bool crdi_points_allowed(crdi_points* d, const crdi_study_value* values)
{
    for (int i = 0; i < d->f->factor_count; i++) {
        d->numbers[i] = values[i].x;
    }
    for (int i = 0; i < d->f->exclude_count; i++) {
        if (crdi_formula_value(d->excludes[i], d->numbers) != 0) { return false; }
    }
    return true;
}

bool crdi_points_point(crdi_points* d, int64_t index, crdi_study_value* values, uint64_t* key)
{
    const crdi_study_file* f = d->f;
    const int64_t sample = index / d->grid % d->samples, again = index / d->grid / d->samples;
    int64_t rest = index % d->grid;
    int law = 0;
    memset(values, 0, (size_t)f->factor_count * sizeof *values);
    if (d->laws) { crdi_points_unit(d, index, d->u); }
    for (int i = f->factor_count - 1; i >= 0; i--) {
        if (f->factors[i].law == CRDI_LAW_LIST) {
            const char* unit;
            values[i] = (crdi_study_value){.text = f->factors[i].texts[rest % f->factors[i].count]};
            if (!crdi_study_number(values[i].text, &values[i].x, &unit)) { values[i].x = NAN; }
            rest /= f->factors[i].count;
        }
    }
    for (int i = 0; i < f->factor_count; i++) {
        if (f->factors[i].law != CRDI_LAW_LIST) {
            values[i].x = crdi_law_quantile(&f->factors[i], d->cuts[i], d->u[law++]);
        }
    }
    // Where an optimiser looks again, a point is its values alone.
    *key = crdi_points_key(f, values, d->laws && !f->minimise ? sample : 0, again);
    return crdi_points_allowed(d, values);
}
