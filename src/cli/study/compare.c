// cardan study compare: the runs of two studies that have the same values, number by number.
#include "cli/study/study_cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct compare_options {
    crdi_common common;
    double relative, absolute;
} compare_options;

typedef struct keyed {
    uint64_t key;
    int64_t row;
} keyed;

static int by_key(const void* a, const void* b)
{
    const uint64_t x = ((const keyed*)a)->key, y = ((const keyed*)b)->key;
    return x < y ? -1 : x > y;
}

// What a number did from one study to the other, over the runs that both have.
typedef struct change {
    int64_t common, differ, only_one; // runs; only_one: a number in one of both alone
    double largest;
    int64_t at; // run of A
    crdi_study_summary of;
} change;

typedef struct pairing {
    const crdi_study_rows *a, *b;
    int64_t (*rows)[2];
    int64_t count, states; // states: pairs that ended differently
} pairing;

static crd_status pair_up(crd_arena* arena, const crdi_study_rows* a, const crdi_study_rows* b,
                          pairing* out)
{
    keyed* known = crdi_arena_new(arena, (size_t)b->count, sizeof *known);
    *out = (pairing){.a = a, .b = b};
    out->rows = crdi_arena_new(arena, (size_t)a->count, sizeof *out->rows);
    if (!known || !out->rows) { return CRD_E_MEMORY; }
    for (int64_t i = 0; i < b->count; i++) {
        known[i] = (keyed){b->seeds[i], i};
    }
    qsort(known, (size_t)b->count, sizeof *known, by_key);
    for (int64_t i = 0; i < a->count; i++) {
        const keyed key = {a->seeds[i], 0};
        const keyed* k = bsearch(&key, known, (size_t)b->count, sizeof *known, by_key);
        if (!k) { continue; }
        out->rows[out->count][0] = i;
        out->rows[out->count++][1] = k->row;
        out->states += a->states[i] != b->states[k->row];
    }
    return CRD_OK;
}

static crd_status compare_column(crd_context* ctx, const pairing* p, int of_a, int of_b,
                                 const compare_options* o, double* room, change* c)
{
    const double relative = isnan(o->relative) ? 0 : o->relative;
    const double absolute = isnan(o->absolute) ? 0 : o->absolute;
    *c = (change){.largest = 0, .at = 0};
    for (int64_t i = 0; i < p->count; i++) {
        const double x = p->a->numbers[of_a][p->rows[i][0]], y = p->b->numbers[of_b][p->rows[i][1]];
        room[i] = y - x;
        if (isnan(x) && isnan(y)) { continue; }
        c->common++;
        if (isnan(x) != isnan(y)) {
            c->only_one++;
            c->differ++;
            continue;
        }
        const double d = fabs(y - x);
        c->differ += d > absolute + relative * fmax(fabs(x), fabs(y));
        if (d > c->largest) {
            c->largest = d;
            c->at = p->a->ids[p->rows[i][0]];
        }
    }
    return crdi_study_summarise(ctx, room, p->count, &c->of);
}

static crd_status run_compare(crdi_cli* cli, const void* options, const crdi_list* arguments,
                              crdi_result* out)
{
    static const crdi_column columns[] = {{"number", "name", "%s"},
                                          {">runs", "common", "%s"},
                                          {">differ", "differ", "%s"},
                                          {">largest", "largest", "%.4g"},
                                          {">at run", "run", "%s"},
                                          {">B - A, mean", "mean", "%.4g"},
                                          {">95 %: from", "mean_low", "%.4g"},
                                          {">to", "mean_high", "%.4g"},
                                          {0}};
    const compare_options* o = options;
    crd_status st = CRD_OK;
    crdi_study *a = NULL, *b = NULL;
    crdi_study_rows x = {0}, y = {0};
    crd_arena arena;
    pairing p;
    int shared = 0;
    int64_t differ = 0;
    crd_arena_init(&arena, cli->ctx);
    CRD_TRY(crdi_study_load(cli, arguments->items[0], NULL, &a));
    CRD_TRY(crdi_study_load(cli, arguments->items[1], NULL, &b));
    CRD_TRY(crdi_study_select(a, "state > 1", NULL, 0, &x));
    CRD_TRY(crdi_study_select(b, "state > 1", NULL, 0, &y));
    CRD_TRY(pair_up(&arena, &x, &y, &p));
    if (p.count == 0) {
        st = crdi_fail(cli->ctx, CRD_E_RANGE,
                       "%s and %s have no run in common: the same values of the same factors, with "
                       "the same seed",
                       arguments->items[0], arguments->items[1]);
        goto fail;
    }
    double* room = crdi_arena_new(&arena, (size_t)p.count, sizeof *room);
    if (!room) { CRD_TRY(CRD_E_MEMORY); }
    crdi_put(out, TEXT("a", crdi_study_database(a)), TEXT("b", crdi_study_database(b)),
             INT("common", p.count), INT("only_a", x.count - p.count),
             INT("only_b", y.count - p.count), INT("states_differ", p.states));
    crdi_result* list = crdi_array(out, "numbers");
    for (int i = crdi_study_get_file(a)->factor_count; i < x.columns; i++) {
        const int k = crdi_study_find_column(&y, x.names[i]);
        change c;
        if (k < 0 || y.texts[k]) { continue; }
        CRD_TRY(compare_column(cli->ctx, &p, i, k, o, room, &c));
        crdi_put(crdi_row(list), TEXT("name", x.names[i]), INT("common", c.common),
                 INT("differ", c.differ), INT("only_one", c.only_one), REAL("largest", c.largest),
                 c.at ? INT("run", c.at) : AS(NONE("run"), "-"), REAL("mean", c.of.mean),
                 REAL("mean_low", c.of.mean_low), REAL("mean_high", c.of.mean_high));
        differ += c.differ;
        shared++;
    }
    crdi_fact(out, "runs", "%lld in both, %lld in %s only, %lld in %s only", (long long)p.count,
              (long long)(x.count - p.count), arguments->items[0], (long long)(y.count - p.count),
              arguments->items[1]);
    if (p.states) { crdi_fact(out, "ended", "%lld otherwise", (long long)p.states); }
    crdi_say(out, "\n");
    crdi_show_table(out, list, columns, "");
    if (shared == 0) {
        st = crdi_fail(cli->ctx, CRD_E_RANGE, "%s and %s keep no number of the same name",
                       arguments->items[0], arguments->items[1]);
    } else if (differ || p.states) {
        st = crdi_fail(cli->ctx, CRD_E_DIFFERENT, "%s", "");
    }
fail:
    crdi_study_rows_clear(&x);
    crdi_study_rows_clear(&y);
    crdi_study_close(a);
    crdi_study_close(b);
    crd_arena_clear(&arena);
    return st;
}

static const crdi_option rows[] = {
    OPT_NUMBER(compare_options, relative, "tolerance", "REL", CRDI_NOT_NEGATIVE,
               "relative to the larger of both numbers; 0 unless given"),
    OPT_NUMBER(compare_options, absolute, "absolute", "ABS", CRDI_NOT_NEGATIVE,
               "added to it; 0 unless given"),
    CRDI_JSON_OPTION("print the comparison as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

static const compare_options defaults = {
    .common = CRDI_COMMON_DEFAULTS, .relative = NAN, .absolute = NAN};

const crdi_command crdi_command_study_compare = {
    .name = "study compare",
    .arguments = "A B",
    .summary = "what has changed from one study to another, run by run",
    .description =
        "Compares the runs of two studies that have the same values of the same factors: how many "
        "numbers differ by more than ABS + REL times themselves, by how much at most and where, "
        "and "
        "the mean of the change with the interval that it lies in with 95 %. Exit code 1 if "
        "something differs.",
    .examples = {{"cardan study compare before.study after.study --tolerance 1e-9",
                  "did the change of a model matter?"}},
    OPTIONS(rows, compare_options),
    .defaults = &defaults,
    .min_arguments = 2,
    .max_arguments = 2,
    .extensions = "yaml|yml|study",
    .run = run_compare,
};
