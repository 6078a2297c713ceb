// The least of a number that is kept, by NLopt (Johnson).
//
// A search begins at each point of the design: every combination of the lists, from one or more
// places between the ends of the other factors. Searches go side by side, so that executors have
// several runs at a time, and those that are behind are given up by halves: the runs are split
// evenly over floor(log2 K) + 1 rounds, a round's evenly over the searches that are left, and the
// better half of them stays (successive halving, Jamieson and Talwalkar 2016).
//
// NLopt calls its function and waits for it. Here it is begun anew for each point: what it asks for
// is known but for the last point, at which it is stopped. That makes a search that was killed the
// same as one that was not: its runs are found by their values, and none is made twice.
#include <nlopt.h>

#include "shared/circuit_formula.h"
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const nlopt_algorithm algorithms[] = {
    [CRDI_OPTIMISER_COBYLA] = NLOPT_LN_COBYLA, [CRDI_OPTIMISER_BOBYQA] = NLOPT_LN_BOBYQA,
    [CRDI_OPTIMISER_SBPLX] = NLOPT_LN_SBPLX,   [CRDI_OPTIMISER_DIRECT] = NLOPT_GN_DIRECT_L,
    [CRDI_OPTIMISER_ISRES] = NLOPT_GN_ISRES,
};

// One condition of the limits: kept while left - right is below 0, or while `whole` is true.
typedef struct condition {
    crdi_formula *left, *right, *whole;
} condition;

// A point that a search has asked for, and what came of it.
typedef struct record {
    double value, violation; // what NLopt is told; the largest of g, not below 0
    int64_t run;             // 0: excluded
    bool good;               // the run is done, and within its limits
} record;

typedef struct search {
    struct optimise* o;
    crdi_study_value* values; // (factors) of its start; lists stay
    double* begin;            // (laws) of its start in (0, 1)
    record* records;
    double *u, *g;    // (records)(laws), (records)(conditions)
    int count, next;  // of records; that NLopt has had of them
    int tries;        // other places where it tried to begin
    double* asked;    // (laws)
    bool asks, alive; // for a point that is no record yet; not given up
    crdi_search_end end;
    nlopt_opt nlopt;
    int best; // record, -1: none
    size_t record_room, u_room, g_room;
} search;

typedef struct optimise {
    crd_context* ctx;
    const crdi_study_executor* executor;
    const crdi_study_job* job;
    crdi_study* study;
    const crdi_study_file* f;
    crd_arena arena;
    crdi_points* points;
    int laws, minimised;
    double (*cuts)[2]; // (factors)
    condition* conditions;
    int condition_count;
    double* numbers;  // (factors, kept)
    search* searches; // (count)
    int count;
    // The round: searches by how good they are, how many points each may ask for by its end.
    search** order;
    int round, rounds, left, quota;
    // Points that are asked for: by whom, which of the rows (-1: excluded), and their runs.
    search** asking;
    int* place;
    crdi_study_value* values;      // (asking)(factors)
    const crdi_study_value** rows; // (row_count) of those that are runs
    int64_t* ids;
    int asking_count, row_count;
} optimise;

// ---- limits ------------------------------------------------------------------------------------

// The place of a comparison outside of brackets, or of "&&"; NULL: there is none.
static const char* find_top(const char* text, size_t length, bool conjunction, int* width)
{
    int depth = 0;
    for (size_t i = 0; i < length; i++) {
        const char c = text[i], after = i + 1 < length ? text[i + 1] : 0;
        depth += (c == '(') - (c == ')');
        if (depth) { continue; }
        if (conjunction && c == '&' && after == '&') {
            *width = 2;
            return text + i;
        }
        if (!conjunction && (c == '<' || c == '>')) {
            *width = after == '=' ? 2 : 1;
            return text + i;
        }
    }
    return NULL;
}

static crd_status compile(optimise* o, const char* text, size_t length, int line,
                          const char* const* names, crdi_formula** out)
{
    const char* copy = crdi_arena_text(&o->arena, text, length);
    if (!copy) { return CRD_E_MEMORY; }
    return crdi_formula_create(o->ctx, copy, o->f->file, line, names,
                               o->f->factor_count + o->f->kept_count, out);
}

// "a < b" is a - b for the methods that walk along it; anything else is true or false.
static crd_status add_condition(optimise* o, const char* text, size_t length, int line,
                                const char* const* names)
{
    crd_status st = CRD_OK;
    int width = 0;
    condition* c = &o->conditions[o->condition_count++];
    const char* at = find_top(text, length, false, &width);
    bool plain = at && !strpbrk(text, "|?!");
    if (plain &&
        find_top(at + width, length - (size_t)(at - text) - (size_t)width, false, &width)) {
        plain = false;
    }
    if (!plain) { return compile(o, text, length, line, names, &c->whole); }
    width = at[1] == '=' ? 2 : 1;
    const size_t first = (size_t)(at - text), rest = length - first - (size_t)width;
    CRD_TRY(compile(o, text, first, line, names, *at == '<' ? &c->left : &c->right));
    CRD_TRY(compile(o, at + width, rest, line, names, *at == '<' ? &c->right : &c->left));
fail:
    return st;
}

static crd_status read_conditions(optimise* o)
{
    crd_status st = CRD_OK;
    const crdi_study_file* f = o->f;
    size_t most = 0;
    for (int i = 0; i < f->limit_count; i++) {
        most += strlen(f->limits[i].text) / 2 + 1;
    }
    const char* const* names = crdi_study_names(&o->arena, f, true);
    o->conditions = crdi_arena_new(&o->arena, most, sizeof *o->conditions);
    if (!names || !o->conditions) { return CRD_E_MEMORY; }
    for (int i = 0; i < f->limit_count; i++) {
        const char* text = f->limits[i].text;
        for (bool last = strchr(text, '|') || strchr(text, '?'), over = false; !over;) {
            int width = 0;
            const char* at = last ? NULL : find_top(text, strlen(text), true, &width);
            const size_t length = at ? (size_t)(at - text) : strlen(text);
            CRD_TRY(add_condition(o, text, length, f->limits[i].line, names));
            over = !at;
            text = at ? at + width : text;
        }
    }
fail:
    return st;
}

// Relative, so that no limit outweighs another by its unit.
static double condition_value(const optimise* o, const condition* c)
{
    if (c->whole) { return crdi_formula_value(c->whole, o->numbers) == 1 ? -1 : 1; }
    const double a = crdi_formula_value(c->left, o->numbers),
                 b = crdi_formula_value(c->right, o->numbers);
    const double size = fmax(fabs(a), fabs(b));
    return size > 0 ? (a - b) / size : 0;
}

// ---- what NLopt is told ------------------------------------------------------------------------

// The record of a point; NULL: there is none yet, and NLopt is stopped.
static const record* record_at(search* s, const double* u)
{
    const size_t bytes = (size_t)s->o->laws * sizeof *u;
    if (s->asks) { return NULL; }
    if (s->next > 0 && memcmp(s->u + (s->next - 1) * s->o->laws, u, bytes) == 0) {
        return &s->records[s->next - 1];
    }
    if (s->next < s->count) { return &s->records[s->next++]; }
    memcpy(s->asked, u, bytes);
    s->asks = true;
    nlopt_force_stop(s->nlopt);
    return NULL;
}

static double given_value(unsigned n, const double* u, double* gradient, void* user)
{
    (void)n, (void)gradient;
    const record* r = record_at(user, u);
    return r ? r->value : 0;
}

static void given_conditions(unsigned m, double* g, unsigned n, const double* u, double* gradient,
                             void* user)
{
    (void)n, (void)gradient;
    search* s = user;
    const record* r = record_at(s, u);
    for (unsigned i = 0; i < m; i++) {
        g[i] = r ? s->g[(size_t)(r - s->records) * m + i] : 0;
    }
}

// To the next point that it asks for, or to its end.
static crd_status advance(search* s)
{
    const optimise* o = s->o;
    const int n = o->laws;
    s->next = 0;
    s->asks = false;
    if (n == 0) { // lists alone: one point
        s->asks = s->count == 0;
        s->end = s->asks ? CRDI_SEARCH_BUDGET : CRDI_SEARCH_CONVERGED;
        return CRD_OK;
    }
    double* u = crdi_new_array(o->ctx, (size_t)n, sizeof *u);
    s->nlopt = nlopt_create(algorithms[o->f->optimiser], (unsigned)n);
    if (!u || !s->nlopt) {
        crd_free(o->ctx, u);
        return CRD_E_MEMORY;
    }
    memcpy(u, s->begin, (size_t)n * sizeof *u);
    double value = 0;
    bool fits = nlopt_set_lower_bounds1(s->nlopt, 0) > 0 &&
                nlopt_set_upper_bounds1(s->nlopt, 1) > 0 &&
                nlopt_set_min_objective(s->nlopt, given_value, s) > 0 &&
                nlopt_set_xtol_abs1(s->nlopt, o->f->tolerance) > 0 &&
                nlopt_set_maxeval(s->nlopt, 20 * o->f->minimise_runs + 1000) > 0;
    if (fits && o->condition_count) {
        fits = nlopt_add_inequality_mconstraint(s->nlopt, (unsigned)o->condition_count,
                                                given_conditions, s, NULL) > 0;
    }
    nlopt_srand((unsigned long)(o->f->seed + (uint64_t)(s - o->searches)));
    const nlopt_result result = fits ? nlopt_optimize(s->nlopt, u, &value) : NLOPT_INVALID_ARGS;
    nlopt_destroy(s->nlopt);
    s->nlopt = NULL;
    crd_free(o->ctx, u);
    if (result == NLOPT_OUT_OF_MEMORY) { return CRD_E_MEMORY; }
    if (result == NLOPT_INVALID_ARGS && !s->asks) {
        return crdi_fail(o->ctx, CRD_E_RANGE, "%s:%d: optimise.method: %s does not take this: %s",
                         o->f->file, o->f->minimise_line, crdi_optimisers[o->f->optimiser],
                         n == 1 ? "one factor between two ends alone" : "its factors");
    }
    if (!s->asks) { s->end = CRDI_SEARCH_CONVERGED; }
    return CRD_OK;
}

// ---- what came of points -----------------------------------------------------------------------

static void point_of(const search* s, crdi_study_value* values)
{
    const crdi_study_file* f = s->o->f;
    memcpy(values, s->values, (size_t)f->factor_count * sizeof *values);
    for (int i = 0, law = 0; i < f->factor_count; i++) {
        const crdi_study_factor* v = &f->factors[i];
        if (v->law == CRDI_LAW_LIST) { continue; }
        const double x = crdi_law_quantile(v, s->o->cuts[i], s->asked[law++]);
        values[i].x = fmin(fmax(x, v->a), v->b);
    }
}

static crd_status grow_records(search* s)
{
    crd_context* ctx = s->o->ctx;
    const size_t n = (size_t)s->count + 1, laws = (size_t)s->o->laws,
                 limits = (size_t)s->o->condition_count;
    record* records = crdi_grow(ctx, s->records, &s->record_room, n, sizeof *records);
    if (records) { s->records = records; }
    double* u = laws ? crdi_grow(ctx, s->u, &s->u_room, n * laws, sizeof *u) : s->asked;
    if (u && laws) { s->u = u; }
    double* g = limits ? crdi_grow(ctx, s->g, &s->g_room, n * limits, sizeof *g) : s->asked;
    if (g && limits) { s->g = g; }
    return records && u && g ? CRD_OK : CRD_E_MEMORY;
}

// What is no number is as bad as the worst so far, and as far again from the best.
static void tell_bad(search* s, record* r, double* g)
{
    double best = INFINITY, worst = -INFINITY;
    for (int i = 0; i < s->count; i++) {
        best = fmin(best, s->records[i].value);
        worst = fmax(worst, s->records[i].value);
    }
    r->value = s->count ? worst + (worst - best) + fabs(worst) * 1e-3 : 0;
    r->violation = 2;
    for (int i = 0; i < s->o->condition_count; i++) {
        g[i] = 1;
    }
}

static void begin_elsewhere(search* s)
{
    enum { TRIES = 8 };
    const uint64_t number = (uint64_t)(s - s->o->searches) * TRIES + (uint64_t)s->tries;
    uint64_t bits = study_mix(s->o->f->seed ^ study_mix(number));
    if (s->tries++ == TRIES || s->o->laws == 0) { s->end = CRDI_SEARCH_FAILED; }
    for (int j = 0; j < s->o->laws; j++) {
        bits = study_mix(bits);
        s->begin[j] = study_unit(bits);
    }
}

static bool is_better(const record* a, const record* b)
{
    if (a->good != b->good) { return a->good; }
    if (!a->good && a->violation != b->violation) { return a->violation < b->violation; }
    return a->value < b->value;
}

// Row `k` of `rows` is the run of what the search asked for; -1: that was excluded.
static crd_status take_result(search* s, const crdi_study_rows* rows, int64_t k)
{
    const optimise* o = s->o;
    const crdi_study_file* f = o->f;
    const crd_status st = grow_records(s);
    if (st < 0) { return st; }
    record* r = &s->records[s->count];
    double* g = s->g + (size_t)s->count * (size_t)o->condition_count;
    if (o->laws) {
        memcpy(s->u + (size_t)s->count * (size_t)o->laws, s->asked, (size_t)o->laws * sizeof *s->u);
    }
    *r = (record){.run = k < 0 ? 0 : rows->ids[k], .value = NAN};
    bool usable = k >= 0 && (rows->states[k] == CRDI_RUN_DONE || rows->states[k] == CRDI_RUN_LIMIT);
    for (int i = 0; usable && i < f->factor_count + f->kept_count; i++) {
        o->numbers[i] = rows->numbers[i][k];
    }
    if (usable) { r->value = o->numbers[f->factor_count + o->minimised]; }
    usable = usable && isfinite(r->value);
    for (int i = 0; usable && i < o->condition_count; i++) {
        g[i] = condition_value(o, &o->conditions[i]);
        usable = isfinite(g[i]);
        r->violation = fmax(r->violation, g[i]);
    }
    r->good = usable && rows->states[k] == CRDI_RUN_DONE;
    if (!usable) {
        tell_bad(s, r, g);
        if (s->count == 0) { // there is no scale to go on with
            begin_elsewhere(s);
            return CRD_OK;
        }
    }
    if (s->best < 0 || is_better(r, &s->records[s->best])) { s->best = s->count; }
    s->count++;
    return CRD_OK;
}

// ---- rounds ------------------------------------------------------------------------------------

static bool is_stopped(const optimise* o)
{
    return o->job->stop && *o->job->stop;
}

// The points that searches ask for next, at most `quota` each, become rows.
static crd_status ask_all(optimise* o)
{
    crd_status st = CRD_OK;
    int n = 0;
    o->asking_count = 0;
    for (int i = 0; i < o->count; i++) {
        search* s = &o->searches[i];
        const bool over = s->end != CRDI_SEARCH_BUDGET || s->count + s->tries >= o->quota;
        if (!s->alive || over) { continue; }
        CRD_TRY(advance(s));
        if (!s->asks) { continue; }
        const int k = o->asking_count++;
        crdi_study_value* v = o->values + (size_t)k * (size_t)o->f->factor_count;
        o->asking[k] = s;
        point_of(s, v);
        o->place[k] = crdi_points_allowed(o->points, v) ? n : -1;
        if (o->place[k] >= 0) { o->rows[n++] = v; }
    }
    o->row_count = n;
    if (n) { CRD_TRY(crdi_study_ask(o->study, o->rows, n, o->ids)); }
fail:
    return st;
}

static crd_status read_rows(optimise* o, crdi_study_rows* rows, bool* open)
{
    crd_status st = CRD_OK;
    crd_text where;
    crd_text_init(&where, o->ctx);
    for (int i = 0; i < o->row_count; i++) {
        crdi_text_add(&where, "%s%lld", i ? ", " : "id IN (", (long long)o->ids[i]);
    }
    crdi_text_add(&where, ")");
    if (where.failed) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crdi_study_select(o->study, where.data, NULL, 0, rows));
    for (int64_t k = 0; k < rows->count; k++) {
        *open = *open || rows->states[k] < CRDI_RUN_DONE;
    }
fail:
    crd_text_clear(&where);
    return st;
}

// What came of the points, once all of them are runs that have ended.
static crd_status take_all(optimise* o, bool* open)
{
    crd_status st = CRD_OK;
    crdi_study_rows rows = {0};
    *open = false;
    if (o->row_count) { CRD_TRY(read_rows(o, &rows, open)); }
    for (int i = 0; i < o->asking_count && !*open; i++) {
        int64_t k = o->place[i] < 0 ? -1 : 0;
        while (k >= 0 && k < rows.count && rows.ids[k] != o->ids[o->place[i]]) {
            k++;
        }
        CRD_TRY(take_result(o->asking[i], &rows, k < rows.count ? k : -1));
    }
    if (!*open) { o->asking_count = 0; }
fail:
    crdi_study_rows_clear(&rows);
    return st;
}

static int by_best(const void* a, const void* b)
{
    const search *x = *(search*const*)a, *y = *(search*const*)b;
    const record *p = x->best < 0 ? NULL : &x->records[x->best],
                 *q = y->best < 0 ? NULL : &y->records[y->best];
    if (p && q && is_better(p, q)) { return -1; }
    if (p && q && is_better(q, p)) { return 1; }
    if (!p != !q) { return p ? -1 : 1; }
    return x < y ? -1 : x > y;
}

// The better half of what is left goes on. `round` is `rounds` behind the last one.
static void next_round(optimise* o)
{
    const bool last = o->round + 1 >= o->rounds;
    if (o->quota) {
        qsort((void*)o->order, (size_t)o->left, sizeof(search*), by_best);
        const int stay = (o->left + 1) / 2;
        for (int i = stay; i < o->left && !last; i++) {
            o->order[i]->alive = false;
            if (o->order[i]->end == CRDI_SEARCH_BUDGET) { o->order[i]->end = CRDI_SEARCH_BEHIND; }
        }
        o->left = stay;
        o->round++;
    }
    const int share = o->f->minimise_runs / o->rounds / o->left;
    o->quota += share > 1 ? share : 1;
}

// To the next runs that have to be made. Executors ask for it when nothing is left to do.
static crd_status go_on(void* user, bool* open)
{
    crd_status st = CRD_OK;
    optimise* o = user;
    for (*open = false; !is_stopped(o);) {
        if (o->asking_count) { CRD_TRY(take_all(o, open)); }
        if (*open || o->round == o->rounds) { break; }
        CRD_TRY(ask_all(o));
        if (o->asking_count == 0) { next_round(o); }
    }
fail:
    return st;
}

static crd_status go_rounds(optimise* o)
{
    crd_status st = CRD_OK;
    crdi_study_job job = *o->job;
    bool open = false;
    job.more = go_on;
    job.more_user = o;
    o->rounds = (int)floor(log2(o->count)) + 1;
    next_round(o);
    CRD_TRY(go_on(o, &open));
    while (open && !is_stopped(o)) {
        CRD_TRY(o->executor->run(o->ctx, &job));
        CRD_TRY(go_on(o, &open));
        if (open) { // somebody else has them
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        }
    }
fail:
    return st;
}

// ---- from the beginning to the end -------------------------------------------------------------

static crd_status make_searches(optimise* o)
{
    crd_status st = CRD_OK;
    const crdi_study_file* f = o->f;
    const int64_t all = crdi_points_count(f);
    if (all > f->minimise_runs) {
        return crdi_fail(o->ctx, CRD_E_RANGE,
                         "%s:%d: optimise.runs: %d, and there are %lld points to begin from "
                         "(combinations of lists times sample.count); expected some runs for each",
                         f->file, f->minimise_line, f->minimise_runs, (long long)all);
    }
    o->searches = crdi_arena_new(&o->arena, (size_t)all, sizeof *o->searches);
    if (!o->searches) { return CRD_E_MEMORY; }
    for (int64_t i = 0; i < all; i++) {
        uint64_t key = 0;
        search* s = &o->searches[o->count];
        *s = (search){.o = o, .alive = true, .best = -1};
        s->values = crdi_arena_new(&o->arena, (size_t)f->factor_count, sizeof *s->values);
        s->begin = crdi_arena_new(&o->arena, 2 * (size_t)o->laws + 1, sizeof *s->begin);
        s->asked = crdi_arena_new(&o->arena, (size_t)o->laws + 1, sizeof *s->asked);
        CRD_TRY(crdi_arena_status(&o->arena));
        if (!crdi_points_point(o->points, i, s->values, &key)) { continue; }
        if (o->laws) { crdi_points_unit(o->points, i, s->begin); }
        o->count++;
    }
    if (o->count == 0) {
        return crdi_fail(o->ctx, CRD_E_RANGE, "%s: exclude: no point is left to begin from",
                         f->file);
    }
    const size_t n = (size_t)o->count;
    o->order = crdi_arena_new(&o->arena, n, sizeof(search*));
    o->asking = crdi_arena_new(&o->arena, n, sizeof(search*));
    o->place = crdi_arena_new(&o->arena, n, sizeof *o->place);
    o->values = crdi_arena_new(&o->arena, n * (size_t)f->factor_count, sizeof *o->values);
    o->rows = crdi_arena_new(&o->arena, n, sizeof *o->rows);
    o->ids = crdi_arena_new(&o->arena, n, sizeof *o->ids);
    CRD_TRY(crdi_arena_status(&o->arena));
    for (int i = 0; i < o->count; i++) {
        o->order[i] = &o->searches[i];
    }
    o->left = o->count;
fail:
    return st;
}

static crd_status prepare_optimise(optimise* o)
{
    crd_status st = CRD_OK;
    const crdi_study_file* f = o->f;
    if (!f->minimise) {
        return crdi_fail(o->ctx, CRD_E_RANGE,
                         "%s: it does not say what is looked for, as optimise: { minimise: NAME "
                         "}, one of what is kept",
                         f->file);
    }
    o->numbers = crdi_arena_new(&o->arena, (size_t)f->factor_count + (size_t)f->kept_count,
                                sizeof *o->numbers);
    o->cuts = crdi_arena_new(&o->arena, (size_t)f->factor_count, sizeof *o->cuts);
    CRD_TRY(crdi_arena_status(&o->arena));
    for (int i = 0; i < f->factor_count; i++) {
        o->laws += f->factors[i].law != CRDI_LAW_LIST;
        crdi_law_cut(&f->factors[i], o->cuts[i]);
    }
    for (int i = 0; i < f->kept_count; i++) {
        if (strcmp(f->kept[i].name, f->minimise) == 0) { o->minimised = i; }
    }
    CRD_TRY(read_conditions(o));
    CRD_TRY(crdi_points_create(o->ctx, f, &o->points));
    CRD_TRY(make_searches(o));
fail:
    return st;
}

static crd_status tell_optimum(const optimise* o, crdi_optimum* out)
{
    *out = (crdi_optimum){.value = NAN};
    crd_arena_init(&out->arena, o->ctx);
    crdi_search* list = crdi_arena_new(&out->arena, (size_t)o->count, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    const record* best = NULL;
    for (int i = 0; i < o->count; i++) {
        const search* s = &o->searches[i];
        const record* r = s->best < 0 ? NULL : &s->records[s->best];
        list[i] = (crdi_search){.points = s->count + s->tries, .end = s->end, .value = NAN};
        out->points += s->count + s->tries;
        if (!r) { continue; }
        list[i].run = r->run;
        list[i].good = r->good;
        list[i].value = r->value;
        if (r->good && (!best || is_better(r, best))) {
            best = r;
            out->search = i;
        }
    }
    out->run = best ? best->run : 0;
    out->value = best ? best->value : NAN;
    out->searches = list;
    out->count = o->count;
    return CRD_OK;
}

const char* const crdi_search_ends[] = {"runs used up", "converged", "behind", "no start", NULL};

crd_status crdi_study_optimise(crd_context* ctx, const crdi_study_executor* executor,
                               const crdi_study_job* job, crdi_optimum* out)
{
    crd_status st = CRD_OK;
    optimise o = {.ctx = ctx,
                  .executor = executor,
                  .job = job,
                  .study = job->study,
                  .f = crdi_study_get_file(job->study)};
    crd_arena_init(&o.arena, ctx);
    *out = (crdi_optimum){0};
    CRD_TRY(prepare_optimise(&o));
    CRD_TRY(go_rounds(&o));
    CRD_TRY(tell_optimum(&o, out));
fail:
    for (int i = 0; i < o.count; i++) {
        crd_free(ctx, o.searches[i].records);
        crd_free(ctx, o.searches[i].u);
        crd_free(ctx, o.searches[i].g);
    }
    for (int i = 0; i < o.condition_count; i++) {
        crdi_formula_destroy(o.conditions[i].left);
        crdi_formula_destroy(o.conditions[i].right);
        crdi_formula_destroy(o.conditions[i].whole);
    }
    crdi_points_destroy(o.points);
    crd_arena_clear(&o.arena);
    return st;
}

void crdi_optimum_clear(crdi_optimum* o)
{
    if (o->arena.ctx) { crd_arena_clear(&o->arena); }
    *o = (crdi_optimum){0};
}
