// cardan study export: rows as CSV or Parquet, or one run as a recording.
#include "cli/study/study_cli.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// In the name of the output: signals of each run that is chosen.
static const char number_mark[] = "{run}";

typedef struct export_options {
    crdi_common common;
    const char *database, *output, *where, *sort;
    crdi_list variables;
    int run;
} export_options;

static void put_field(crd_text* t, const char* text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        crdi_text_add(t, "%s", text);
        return;
    }
    crdi_text_add(t, "\"");
    for (const char* c = text; *c; c++) {
        crdi_text_add(t, *c == '"' ? "\"\"" : "%c", *c);
    }
    crdi_text_add(t, "\"");
}

static void put_number(crd_text* t, double x)
{
    char number[32];
    if (isnan(x)) { return; } // an empty field: there is none
    crdi_text_put(t, number, (size_t)crdi_format_double(number, x));
}

static void put_csv(const crdi_study_rows* r, crd_text* t)
{
    crdi_text_add(t, "run,state");
    for (int i = 0; i < r->columns; i++) {
        crdi_text_add(t, ",");
        put_field(t, r->names[i]);
    }
    crdi_text_add(t, ",seconds,reason\n");
    for (int64_t k = 0; k < r->count; k++) {
        crdi_text_add(t, "%lld,%s", (long long)r->ids[k], crdi_run_states[r->states[k]]);
        for (int i = 0; i < r->columns; i++) {
            crdi_text_put(t, ",", 1);
            if (r->texts[i]) {
                put_field(t, r->texts[i][k]);
            } else {
                put_number(t, r->numbers[i][k]);
            }
        }
        crdi_text_put(t, ",", 1);
        put_number(t, r->seconds[k]);
        crdi_text_put(t, ",", 1);
        put_field(t, r->reasons[k]);
        crdi_text_put(t, "\n", 1);
    }
}

// By pyarrow, where Python has it.
static crd_status write_parquet(crdi_cli* cli, const char* csv, const char* path)
{
    static char program[] = "import sys\n"
                            "try:\n"
                            "    import pyarrow.csv as c, pyarrow.parquet as p\n"
                            "except ImportError:\n"
                            "    sys.exit(3)\n"
                            "p.write_table(c.read_csv(sys.argv[1]), sys.argv[2])\n";
    char name[] = "python3", option[] = "-c";
    char* arguments[] = {name, option, program, (char*)csv, (char*)path, NULL};
    pid_t pid = 0;
    int code = 0;
    if (posix_spawnp(&pid, name, NULL, NULL, arguments, environ) != 0) {
        return crdi_fail(cli->ctx, CRD_E_UNSUPPORTED,
                         "%s: Parquet is written by Python with pyarrow, and there is no python3; "
                         "CSV needs nothing",
                         path);
    }
    while (waitpid(pid, &code, 0) < 0 && errno == EINTR) {}
    if (WIFEXITED(code) && WEXITSTATUS(code) == 3) {
        return crdi_fail(
            cli->ctx, CRD_E_UNSUPPORTED,
            "%s: Parquet is written by Python with pyarrow, which this python3 does not "
            "have ('python3 -m pip install pyarrow'); CSV needs nothing",
            path);
    }
    return WIFEXITED(code) && WEXITSTATUS(code) == 0
               ? CRD_OK
               : crdi_fail(cli->ctx, CRD_E_IO, "%s: could not be written", path);
}

static crd_status export_rows(crdi_cli* cli, const export_options* o, crdi_study* s,
                              crdi_result* out)
{
    crd_status st = CRD_OK;
    crdi_study_rows r = {0};
    crd_text t;
    const bool parquet = crdi_ends_with(o->output, ".parquet");
    crd_text_init(&t, cli->ctx);
    CRD_TRY(crdi_study_select(s, o->where, o->sort, 0, &r));
    put_csv(&r, &t);
    if (t.failed) { CRD_TRY(CRD_E_MEMORY); }
    if (parquet) {
        char csv[4096];
        snprintf(csv, sizeof csv, "%s.csv.tmp", o->output);
        CRD_TRY(crdi_file_write(cli->ctx, csv, &t));
        st = write_parquet(cli, csv, o->output);
        unlink(csv);
    } else {
        CRD_TRY(crdi_file_write(cli->ctx, o->output, &t));
    }
    if (st >= 0) {
        crdi_put(out, TEXT("file", o->output), INT("rows", r.count));
        crdi_say(out, "%s: %lld rows\n", o->output, (long long)r.count);
    }
fail:
    crd_text_clear(&t);
    crdi_study_rows_clear(&r);
    return st;
}

// The run once more, recorded. It has to give what it gave.
static crd_status export_run(crdi_cli* cli, const export_options* o, crdi_study* s, int64_t id,
                             const char* path, crdi_result* out)
{
    crd_status st = CRD_OK;
    const crdi_study_file* f = crdi_study_get_file(s);
    crdi_study_worker* w = NULL;
    crdi_study_rows r = {0};
    crdi_study_run run = {.id = id};
    crd_arena arena;
    char where[64];
    crd_arena_init(&arena, cli->ctx);
    snprintf(where, sizeof where, "id = %lld", (long long)id);
    CRD_TRY(crdi_study_select(s, where, NULL, 0, &r));
    if (r.count == 0) {
        st = crdi_fail(cli->ctx, CRD_E_NOT_FOUND, "%s has no run %lld", crdi_study_database(s),
                       (long long)id);
        goto fail;
    }
    run.values = crdi_arena_new(&arena, (size_t)f->factor_count, sizeof *run.values);
    run.kept = crdi_arena_new(&arena, (size_t)f->kept_count, sizeof *run.kept);
    CRD_TRY(crdi_arena_status(&arena));
    for (int i = 0; i < f->factor_count; i++) {
        run.values[i] = (crdi_study_value){r.numbers[i][0], r.texts[i] ? r.texts[i][0] : NULL};
    }
    run.seed = r.seeds[0];
    CRD_TRY(crdi_study_worker_create(cli->ctx, f, &w));
    st = crdi_study_worker_record(w, &run, path, o->variables.items, o->variables.count);
    if (st < 0) { goto fail; }
    for (int i = 0; i < f->kept_count; i++) {
        const double was = r.numbers[f->factor_count + i][0];
        if (r.states[0] >= CRDI_RUN_DONE && was != run.kept[i] &&
            !(isnan(was) && isnan(run.kept[i]))) {
            st =
                crdi_fail(cli->ctx, CRD_E_DIFFERENT,
                          "%s: run %lld gives %s = %.17g now and %.17g in the study: something has "
                          "changed since",
                          crdi_study_database(s), (long long)id, f->kept[i].name, run.kept[i], was);
            goto fail;
        }
    }
    crdi_put(out, TEXT("file", path), INT("run", id));
    crdi_say(out, "%s: run %lld, recorded anew, with the same results\n", path, (long long)id);
fail:
    crdi_study_worker_destroy(w);
    crdi_study_rows_clear(&r);
    crd_arena_clear(&arena);
    return st;
}

// Each of the runs that are chosen into a file with its number in its name.
static crd_status export_each(crdi_cli* cli, const export_options* o, crdi_study* s,
                              const char* mark, crdi_result* out)
{
    crd_status st = CRD_OK;
    crdi_study_rows r = {0};
    crdi_result* list = crdi_array(out, "files");
    CRD_TRY(crdi_study_select(s, o->where, o->sort, 0, &r));
    for (int64_t k = 0; k < r.count; k++) {
        char path[4096];
        const int n = snprintf(path, sizeof path, "%.*s%lld%s", (int)(mark - o->output), o->output,
                               (long long)r.ids[k], mark + strlen(number_mark));
        if (n >= (int)sizeof path) {
            st = crdi_fail(cli->ctx, CRD_E_RANGE, "--output: the name is too long");
            goto fail;
        }
        CRD_TRY(export_run(cli, o, s, r.ids[k], path, crdi_row(list)));
    }
fail:
    crdi_study_rows_clear(&r);
    return st;
}

static crd_status run_export(crdi_cli* cli, const void* options, const crdi_list* arguments,
                             crdi_result* out)
{
    const export_options* o = options;
    crdi_study* s = NULL;
    crd_status st = CRD_OK;
    if (!o->output) {
        return crdi_fail(
            cli->ctx, CRD_E_RANGE,
            "--output says where to: .csv or .parquet for rows, with --run N .mf4, .csv "
            "or .mat for the signals of a run, and with {run} in its name for those of each run "
            "that --where chooses");
    }
    CRD_TRY(crdi_refuse_overwriting(cli->ctx, o->output, arguments->items[0], "the export",
                                    "the study"));
    CRD_TRY(crdi_study_load(cli, arguments->items[0], o->database, &s));
    const char* mark = strstr(o->output, number_mark);
    CRD_TRY(o->run > 0 ? export_run(cli, o, s, o->run, o->output, out)
            : mark     ? export_each(cli, o, s, mark, out)
                       : export_rows(cli, o, s, out));
fail:
    crdi_study_close(s);
    return st;
}

static const crdi_option rows[] = {
    CRDI_DATABASE_OPTION(export_options),
    OPT_FILE(export_options, output, "output", "csv|parquet|mf4|mat", "the file that is written",
             .short_name = 'o'),
    OPT_TEXT(export_options, where, "where", "CONDITION", "only such runs, as for study show"),
    OPT_TEXT(export_options, sort, "sort", "COLUMN", "the least first; -COLUMN: the largest"),
    OPT_INT(export_options, run, "run", "N", "the signals of this run, which is made again"),
    CRDI_SIGNALS_OPTION(export_options),
    CRDI_JSON_OPTION("print what was written as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

static const export_options defaults = {.common = CRDI_COMMON_DEFAULTS, .run = -1};

const crdi_command crdi_command_study_export = {
    .name = "study export",
    .arguments = "STUDY",
    .summary = "write rows as CSV or Parquet, or signals of one run",
    .description =
        "Writes the runs of a study as a table: CSV, or Parquet where Python has pyarrow. "
        "With --run N that run is made again, recorded as MF4, CSV or MAT, and compared "
        "with what it gave: a run is all in its row, so its signals need not be kept. With "
        "{run} in the output's name that is done of each run that --where chooses.",
    .examples = {{"cardan study export damper.yaml -o runs.csv", "all rows"},
                 {"cardan study export damper.yaml --run 17 -o run17.mf4", "the signals of a run"},
                 {"cardan study export damper.yaml --where 'peak > 3' --variables 'body.*' -o "
                  "'high-{run}.mf4'",
                  "some signals of some runs"}},
    OPTIONS(rows, export_options),
    .defaults = &defaults,
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "yaml|yml|study",
    .run = run_export,
};
