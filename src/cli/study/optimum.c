// What a search has come to, as tables.
#include "cli/study/study_cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_value(crdi_result* row, const char* name, const crdi_study_rows* r, int column,
                      int64_t k)
{
    if (r->texts[column]) {
        crdi_put(row, TEXT(name, r->texts[column][k]));
    } else {
        crdi_put(row, REAL(name, r->numbers[column][k]));
    }
}

// The row that has everything the run was made of and gave.
static void put_best(const crdi_study_file* f, const crdi_study_rows* r, int64_t k,
                     crdi_result* out)
{
    char number[32];
    crdi_result* best = crdi_object(out, "best");
    crdi_put(best, INT("run", r->ids[k]));
    crdi_fact(out, "best", "run %lld", (long long)r->ids[k]);
    for (int i = 0; i < r->columns; i++) {
        const char* unit = i < f->factor_count ? f->factors[i].unit : "";
        put_value(best, crdi_result_copy(out, r->names[i]), r, i, k); // printed when they are gone
        if (!r->texts[i]) { snprintf(number, sizeof number, "%.6g", r->numbers[i][k]); }
        crdi_fact(out, r->names[i], "%s%s%s", r->texts[i] ? r->texts[i][k] : number,
                  *unit ? " " : "", unit);
    }
}

static int64_t find_row(const crdi_study_rows* r, int64_t run)
{
    for (int64_t k = 0; k < r->count; k++) {
        if (r->ids[k] == run) { return k; }
    }
    return -1;
}

typedef struct place {
    const crdi_search* s;
    int64_t row;
} place;

static int by_value(const void* a, const void* b)
{
    const crdi_search *x = ((const place*)a)->s, *y = ((const place*)b)->s;
    if (x->good != y->good) { return x->good ? -1 : 1; }
    return x->value < y->value ? -1 : x->value > y->value;
}

// The best of each search, the best of all first.
static crd_status put_searches(const crdi_study_file* f, const crdi_optimum* best,
                               const crdi_study_rows* r, crdi_result* out)
{
    crd_arena* arena = &out->root->arena; // as long as what is printed
    crdi_column* columns = crdi_arena_new(arena, (size_t)f->factor_count + 6, sizeof *columns);
    place* order = crdi_arena_new(arena, (size_t)best->count, sizeof *order);
    if (!columns || !order) { return CRD_E_MEMORY; }
    int n = 0;
    columns[n++] = (crdi_column){">run", "run", "%s"};
    for (int i = 0; i < f->factor_count; i++) {
        const bool words = r->texts[i] != NULL;
        const char* unit = f->factors[i].unit;
        const char* title = crdi_arena_format(arena, "%s%s%s%s%s", words ? "" : ">", r->names[i],
                                              *unit ? " [" : "", unit, *unit ? "]" : "");
        columns[n++] = (crdi_column){title, crdi_result_copy(out, r->names[i]), "%.5g"};
    }
    columns[n++] = (crdi_column){crdi_arena_format(arena, ">%s", f->minimise),
                                 crdi_result_copy(out, f->minimise), "%.5g"};
    columns[n++] = (crdi_column){">points", "points", "%s"};
    columns[n++] = (crdi_column){"ended", "ended", "%s"};
    for (int i = 0; i < best->count; i++) {
        order[i] = (place){&best->searches[i], find_row(r, best->searches[i].run)};
    }
    qsort(order, (size_t)best->count, sizeof *order, by_value);
    crdi_result* list = crdi_array(out, "searches");
    for (int i = 0; i < best->count; i++) {
        const crdi_search* s = order[i].s;
        crdi_result* row = crdi_row(list);
        crdi_put(row, s->run ? INT("run", s->run) : AS(NONE("run"), "-"));
        for (int k = 0; k < f->factor_count && order[i].row >= 0; k++) {
            put_value(row, columns[k + 1].key, r, k, order[i].row);
        }
        crdi_put(row, REAL(columns[f->factor_count + 1].key, s->good ? s->value : (double)NAN),
                 INT("points", s->points), BOOL("within_limits", s->good),
                 TEXT("ended", crdi_search_ends[s->end]));
    }
    crdi_say(out, "\n");
    crdi_show_table(out, list, columns, "");
    return CRD_OK;
}

crd_status crdi_study_put_optimum(crdi_cli* cli, crdi_study* s, const crdi_optimum* best,
                                  crdi_result* out)
{
    crd_status st = CRD_OK;
    crdi_study_rows r = {0};
    crd_text where;
    const crdi_study_file* f = crdi_study_get_file(s);
    crd_text_init(&where, cli->ctx);
    crdi_text_add(&where, "id IN (0");
    for (int i = 0; i < best->count; i++) {
        crdi_text_add(&where, ", %lld", (long long)best->searches[i].run);
    }
    crdi_text_add(&where, ")");
    if (where.failed) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crdi_study_select(s, where.data, NULL, 0, &r));
    crdi_put(out, INT("points", best->points), REAL("least", best->value));
    const int64_t k = best->run ? find_row(&r, best->run) : -1;
    if (k >= 0) { put_best(f, &r, k, out); }
    CRD_TRY(put_searches(f, best, &r, out));
    if (k < 0) { st = crdi_fail(cli->ctx, CRD_E_LIMIT, "%s: no run keeps all limits", f->file); }
fail:
    crdi_study_rows_clear(&r);
    crd_text_clear(&where);
    return st;
}
