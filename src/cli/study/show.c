// cardan study show: what came of the runs.
#include "cli/study/study_cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct show_options {
    crdi_common common;
    const char *database, *where, *sort;
    int rows, run;
    bool failed;
} show_options;

static void put_head(crdi_study* s, const crdi_study_counts* c, crdi_result* out)
{
    const crdi_study_file* f = crdi_study_get_file(s);
    char a[32];
    crdi_put(out, TEXT("study", crdi_study_database(s)), TEXT("title", f->title),
             TEXT("system", f->system), INT("runs", c->total));
    crdi_result* states = crdi_object(out, "states");
    if (*f->title) { crdi_say(out, "%s\n", f->title); }
    crdi_fact(out, "system", "%s", f->system);
    crdi_fact(out, "runs", "%s", crdi_study_thousands(a, c->total));
    for (int i = 0; i < CRDI_RUN_STATES; i++) {
        crdi_put(states, INT(crdi_run_states[i], c->by_state[i]));
        if (c->by_state[i]) {
            crdi_fact(out, crdi_run_states[i], "%s", crdi_study_thousands(a, c->by_state[i]));
        }
    }
}

static void put_rows(const crdi_study_file* f, const crdi_study_rows* r, crdi_result* out)
{
    const int n = r->columns;
    crd_arena* arena = &out->root->arena; // as long as what is printed
    crdi_column* columns = crdi_arena_new(arena, (size_t)n + 4, sizeof *columns);
    if (!columns) { return; }
    bool reasons = false;
    columns[0] = (crdi_column){">run", "run", "%s"};
    for (int i = 0; i < n; i++) {
        const char* title =
            crdi_arena_format(arena, "%s%s%s%s%s", r->texts[i] ? "" : ">", r->names[i],
                              i < f->factor_count && *f->factors[i].unit ? " [" : "",
                              i < f->factor_count ? f->factors[i].unit : "",
                              i < f->factor_count && *f->factors[i].unit ? "]" : "");
        columns[i + 1] =
            (crdi_column){title ? title : "", crdi_result_copy(out, r->names[i]), "%.6g"};
    }
    crdi_result* list = crdi_array(out, "rows");
    for (int64_t k = 0; k < r->count; k++) {
        crdi_result* row = crdi_row(list);
        crdi_put(row, INT("run", r->ids[k]));
        for (int i = 0; i < n; i++) {
            if (r->texts[i]) {
                crdi_put(row, TEXT(columns[i + 1].key, r->texts[i][k]));
            } else {
                crdi_put(row, REAL(columns[i + 1].key, r->numbers[i][k]));
            }
        }
        crdi_put(row, TEXT("state", crdi_run_states[r->states[k]]), REAL("seconds", r->seconds[k]),
                 TEXT("reason", r->reasons[k]));
        reasons = reasons || r->reasons[k][0];
    }
    columns[n + 1] = (crdi_column){"state", "state", "%s"};
    if (reasons) { columns[n + 2] = (crdi_column){"reason", "reason", "%s"}; }
    crdi_say(out, "\n");
    crdi_show_table(out, list, columns, "");
}

static crd_status run_show(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    const show_options* o = options;
    crd_status st = CRD_OK;
    crdi_study* s = NULL;
    crdi_study_counts counts;
    crdi_study_rows rows = {0};
    char where[64] = "";
    CRD_TRY(crdi_study_load(cli, arguments->items[0], o->database, &s));
    CRD_TRY(crdi_study_count(s, &counts));
    put_head(s, &counts, out);
    if (o->failed) {
        snprintf(where, sizeof where, "state >= %d", CRDI_RUN_LIMIT);
    } else if (o->run > 0) {
        snprintf(where, sizeof where, "id = %d", o->run);
    } else {
        crdi_say(out, "\n");
        CRD_TRY(crdi_study_put_answers(cli, s, o->where, out));
    }
    if (where[0] && o->where) {
        st = crdi_fail(cli->ctx, CRD_E_RANGE, "--where goes without --failed and --run");
        goto fail;
    }
    CRD_TRY(crdi_study_select(s, where[0] ? where : o->where, o->sort, o->rows < 0 ? 10 : o->rows,
                              &rows));
    put_rows(crdi_study_get_file(s), &rows, out);
fail:
    crdi_study_rows_clear(&rows);
    crdi_study_close(s);
    return st;
}

static const crdi_option rows[] = {
    CRDI_DATABASE_OPTION(show_options),
    OPT_TEXT(
        show_options, where, "where", "CONDITION",
        "only such runs: SQL over the columns, as \"peak < 3 AND state = 2\"; names with a dot "
        "in double quotes"),
    OPT_TEXT(show_options, sort, "sort", "COLUMN", "the least first; -COLUMN: the largest"),
    OPT_INT(show_options, rows, "rows", "N", "rows that are shown, 0 for all; 10 unless given"),
    OPT_INT(show_options, run, "run", "N", "this run alone"),
    OPT_FLAG(show_options, failed, "failed", "the runs that are not good, with their reasons"),
    CRDI_JSON_OPTION("print it as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

static const show_options defaults = {.common = CRDI_COMMON_DEFAULTS, .rows = -1, .run = -1};

const crdi_command crdi_command_study_show = {
    .name = "study show",
    .arguments = "STUDY",
    .summary = "what came of a study: counts, statistics, sensitivities, rows",
    .description =
        "Shows how many runs ended how; of each number that is kept its mean and standard "
        "deviation, "
        "its quantiles, and the interval that the mean lies in with 95 % (Student); of a design by "
        "Morris or Saltelli how much each factor matters; and rows.",
    .examples = {{"cardan study show damper.yaml --sort peak --rows 5", "the five best"},
                 {"cardan study show damper.study --failed", "what went wrong"},
                 {"cardan study show damper.yaml --where 'peak < 3' --json", "for a program"}},
    OPTIONS(rows, show_options),
    .defaults = &defaults,
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "yaml|yml|study",
    .run = run_show,
};
