// cardan study check: how many runs, how long, how large.
#include "cli/study/study_cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct check_options {
    crdi_common common;
} check_options;

static void put_factor(crdi_result* list, const crdi_study_factor* f)
{
    static const char* const laws[] = {"list",   "uniform",   "loguniform",
                                       "normal", "lognormal", "triangular"};
    char text[160], number[3][32];
    crdi_format_double(number[0], f->a);
    crdi_format_double(number[1], f->b);
    crdi_format_double(number[2], f->c);
    if (f->law == CRDI_LAW_LIST) {
        snprintf(text, sizeof text, "%.60s%s%.60s", crdi_clip(f->texts[0]).text,
                 f->count > 2   ? " ... "
                 : f->count > 1 ? ", "
                                : "",
                 f->count > 1 ? crdi_clip(f->texts[f->count - 1]).text : "");
    } else {
        snprintf(text, sizeof text, "%s, %s%s%s %s", number[0], number[1],
                 f->law == CRDI_LAW_TRIANGULAR ? ", " : "",
                 f->law == CRDI_LAW_TRIANGULAR ? number[2] : "", f->unit);
    }
    crdi_result* row = crdi_row(list);
    crdi_put(row, TEXT("name", f->name), TEXT("kind", laws[f->law]),
             f->law == CRDI_LAW_LIST ? INT("count", f->count) : AS(NONE("count"), ""),
             TEXT("values", text));
}

static crd_status run_check(crdi_cli* cli, const void* options, const crdi_list* arguments,
                            crdi_result* out)
{
    (void)options;
    static const crdi_column factor_columns[] = {{"varies", "name", "%s"},
                                                 {"as", "kind", "%s"},
                                                 {">values", "count", "%s"},
                                                 {"", "values", "%s"},
                                                 {0}};
    static const crdi_column kept_columns[] = {
        {"keeps", "name", "%s"}, {"of a run", "what", "%s"}, {">here", "value", "%.6g"}, {0}};
    crd_status st = CRD_OK;
    crd_arena arena;
    crdi_study_file f;
    crdi_study_plan plan;
    crd_text describe;
    char a[32], b[32];
    crd_arena_init(&arena, cli->ctx);
    crd_text_init(&describe, cli->ctx);
    CRD_TRY(crdi_study_file_read(cli->ctx, NULL, 0, arguments->items[0], &arena, &f));
    CRD_TRY(crdi_study_try(cli, &f, &arena, true, &plan, &describe));
    crdi_result* factors = crdi_array(out, "factors");
    for (int i = 0; i < f.factor_count; i++) {
        put_factor(factors, &f.factors[i]);
    }
    crdi_show_table(out, factors, factor_columns, "");
    crdi_result* kept = crdi_array(out, "keep");
    for (int i = 0; i < f.kept_count; i++) {
        crdi_put(crdi_row(kept), TEXT("name", f.kept[i].name), TEXT("what", f.kept[i].text),
                 REAL("value", plan.run.kept[i]));
    }
    crdi_say(out, "\n");
    crdi_show_table(out, kept, kept_columns, "");
    const int64_t runs = plan.runs < 0 ? plan.points : plan.runs;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const double time = plan.seconds * (double)runs / (double)(cores > 0 ? cores : 1);
    crdi_put(out, INT("points", plan.points), ONLY_IF(plan.runs >= 0, INT("runs", plan.runs)),
             REAL("seconds_each", plan.seconds), REAL("seconds", time), INT("bytes", plan.bytes),
             TEXT("first_run", crdi_run_states[plan.run.state]),
             TEXT_IF("reason", plan.run.reason));
    crdi_say(out, "\n");
    crdi_fact(out, "runs", "%s%s", plan.runs < 0 ? "at most " : "", crdi_study_thousands(a, runs));
    if (plan.runs >= 0 && plan.runs < plan.points) {
        crdi_fact(out, "", "of %s points, the others are excluded",
                  crdi_study_thousands(a, plan.points));
    }
    crdi_fact(out, "time", "%s on %ld cores, %s each", crdi_study_duration(a, time), cores,
              crdi_format_seconds(b, plan.seconds));
    crdi_fact(out, "file", "%.3g MB", (double)plan.bytes * 1e-6);
    crdi_fact(out, "first run", "%s%s%s", crdi_run_states[plan.run.state],
              plan.run.reason[0] ? ": " : "", plan.run.reason);
    if (plan.run.state >= CRDI_RUN_FAILED) {
        st = crdi_fail(cli->ctx, CRD_E_UNIT, "%s: the first run %s: %s", f.file,
                       crdi_run_states[plan.run.state], plan.run.reason);
    }
fail:
    crd_text_clear(&describe);
    crd_arena_clear(&arena);
    return st;
}

static const crdi_option rows[] = {
    CRDI_JSON_OPTION("print what there is as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_study_check = {
    .name = "study check",
    .arguments = "STUDY.yaml",
    .summary = "say how many runs a study has and how long they take",
    .description =
        "Reads a study, makes its first run, and says what varies, what is kept, how many "
        "runs there are, about how long they take on this machine and how large the file "
        "becomes. Nothing is written.",
    .examples = {{"cardan study check damper.yaml", "before it is run"}},
    OPTIONS(rows, check_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "yaml|yml",
    .run = run_check,
};
