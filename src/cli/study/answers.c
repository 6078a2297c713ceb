// What all runs say together, as tables.
#include "cli/study/study_cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static crd_status put_summary(crdi_cli* cli, const crdi_study_file* f, const crdi_study_rows* r,
                              crdi_result* out)
{
    static const crdi_column columns[] = {
        {"of all runs", "name", "%s"}, {">n", "count", "%s"},
        {">mean", "mean", "%.5g"},     {">95 %: from", "mean_low", "%.5g"},
        {">to", "mean_high", "%.5g"},  {">sd", "deviation", "%.3g"},
        {">min", "min", "%.5g"},       {">5 %", "q5", "%.5g"},
        {">median", "median", "%.5g"}, {">95 %", "q95", "%.5g"},
        {">max", "max", "%.5g"},       {0}};
    crdi_result* list = crdi_array(out, "statistics");
    for (int i = 0; i < f->kept_count; i++) {
        crdi_study_summary s;
        const crd_status st =
            crdi_study_summarise(cli->ctx, r->numbers[f->factor_count + i], r->count, &s);
        if (st < 0) { return st; }
        crdi_put(crdi_row(list), TEXT("name", f->kept[i].name), INT("count", s.count),
                 REAL("mean", s.mean), REAL("mean_low", s.mean_low), REAL("mean_high", s.mean_high),
                 REAL("deviation", s.deviation), REAL("min", s.min), REAL("q5", s.quantiles[0]),
                 REAL("q25", s.quantiles[1]), REAL("median", s.quantiles[2]),
                 REAL("median_low", s.median_low), REAL("median_high", s.median_high),
                 REAL("q75", s.quantiles[3]), REAL("q95", s.quantiles[4]), REAL("max", s.max));
    }
    crdi_show_table(out, list, columns, "");
    return CRD_OK;
}

// The rows of a design in its order: those that are not there are no numbers.
static crd_status put_sensitivity(crdi_cli* cli, const crdi_study_file* f, const crdi_study_rows* r,
                                  crdi_result* out)
{
    static const crdi_column sobol[] = {{"Sobol", "kept", "%s"},
                                        {"factor", "factor", "%s"},
                                        {">first order", "first", "%.4f"},
                                        {">95 %: from", "first_low", "%.4f"},
                                        {">to", "first_high", "%.4f"},
                                        {">total", "total", "%.4f"},
                                        {">95 %: from", "total_low", "%.4f"},
                                        {">to", "total_high", "%.4f"},
                                        {0}};
    static const crdi_column morris[] = {
        {"Morris", "kept", "%s"},      {"factor", "factor", "%s"},
        {">mu*", "total", "%.4g"},     {">95 %: from", "total_low", "%.4g"},
        {">to", "total_high", "%.4g"}, {">mu", "first", "%.4g"},
        {">sigma", "sigma", "%.4g"},   {0}};
    const bool saltelli = f->method == CRDI_SAMPLE_SALTELLI;
    if (!saltelli && f->method != CRDI_SAMPLE_MORRIS) { return CRD_OK; }
    crd_status st = CRD_OK;
    crdi_points* d = NULL;
    crd_arena arena;
    crd_arena_init(&arena, cli->ctx);
    const int k = f->factor_count, width = saltelli ? k + 2 : k + 1;
    const int64_t samples = f->count, all = samples * width;
    double* y = crdi_arena_new(&arena, (size_t)all, sizeof *y);
    double** u = crdi_arena_new(&arena, (size_t)k, sizeof *u);
    double* point = crdi_arena_new(&arena, 2 * (size_t)k, sizeof *point);
    crdi_study_effect* e = crdi_arena_new(&arena, (size_t)k, sizeof *e);
    CRD_TRY(crdi_arena_status(&arena));
    CRD_TRY(crdi_points_create(cli->ctx, f, &d));
    for (int j = 0; j < k; j++) {
        u[j] = crdi_arena_new(&arena, (size_t)all, sizeof **u);
    }
    CRD_TRY(crdi_arena_status(&arena));
    for (int64_t i = 0; i < all && !saltelli; i++) {
        crdi_points_unit(d, i, point);
        for (int j = 0; j < k; j++) {
            u[j][i] = point[j];
        }
    }
    crdi_result* list = crdi_array(out, saltelli ? "sobol" : "morris");
    for (int c = 0; c < f->kept_count; c++) {
        for (int64_t i = 0; i < all; i++) {
            y[i] = NAN;
        }
        for (int64_t i = 0; i < r->count; i++) {
            if (r->ids[i] <= all) { y[r->ids[i] - 1] = r->numbers[k + c][i]; }
        }
        CRD_TRY(saltelli ? crdi_study_sobol(cli->ctx, y, samples, k, f->seed, e)
                         : crdi_study_morris(cli->ctx, y, (const double* const*)u, samples, k, e));
        for (int j = 0; j < k; j++) {
            crdi_put(crdi_row(list), TEXT("kept", f->kept[c].name),
                     TEXT("factor", f->factors[j].name), REAL("first", e[j].first),
                     REAL("first_low", e[j].first_low), REAL("first_high", e[j].first_high),
                     REAL("total", e[j].total), REAL("total_low", e[j].total_low),
                     REAL("total_high", e[j].total_high),
                     ONLY_IF(!saltelli, REAL("sigma", e[j].sigma)));
        }
    }
    crdi_say(out, "\n");
    crdi_show_table(out, list, saltelli ? sobol : morris, "");
fail:
    crdi_points_destroy(d);
    crd_arena_clear(&arena);
    return st;
}

crd_status crdi_study_put_answers(crdi_cli* cli, crdi_study* s, const char* where, crdi_result* out)
{
    crd_status st = CRD_OK;
    crdi_study_rows r;
    const crdi_study_file* f = crdi_study_get_file(s);
    crd_text all;
    crd_text_init(&all, cli->ctx);
    // What ended by itself: the others have no numbers.
    crdi_text_add(&all, "state IN (%d, %d)%s%s%s", CRDI_RUN_DONE, CRDI_RUN_LIMIT,
                  where ? " AND (" : "", where ? where : "", where ? ")" : "");
    st = all.failed ? CRD_E_MEMORY : crdi_study_select(s, all.data, NULL, 0, &r);
    crd_text_clear(&all);
    if (st < 0) { return st; }
    if (r.count) {
        CRD_TRY(put_summary(cli, f, &r, out));
        if (!where) { CRD_TRY(put_sensitivity(cli, f, &r, out)); }
    }
fail:
    crdi_study_rows_clear(&r);
    return st;
}
