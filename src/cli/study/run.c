// cardan study run: all runs that are still open.
#include "cli/study/study_cli.h"
#include "shared/base_interrupt.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ASK_FROM = 1000000 }; // runs

typedef struct run_options {
    crdi_common common;
    const char *database, *executor, *submit;
    int workers, chunk, again, max_failed;
    bool yes, dry_run, watch;
    crdi_watch_options page;
} run_options;

typedef struct shown {
    crdi_cli* cli;
    crdi_result *out, *lines; // of an executor
    bool quiet;
    int most; // runs of a search; 0: all of the design
    int64_t finished, of, failed;
    double rate;
    crdi_study_watch* watch; // NULL: nobody does
} shown;

static void progress(void* user, int64_t done, int64_t of, int64_t failed, double rate)
{
    shown* s = user;
    char left[32], a[32], b[32], c[48] = "", line[240];
    s->rate = rate;
    const bool quiet = !s->cli->terminal || s->quiet;
    if (quiet && !s->watch) { return; }
    if (s->most && of < s->most) { of = s->most; }
    if (failed) { snprintf(c, sizeof c, ", %lld not good", (long long)failed); }
    snprintf(line, sizeof line, "%s of %s runs%s, %.4g a second, %s left",
             crdi_study_thousands(a, done), crdi_study_thousands(b, of), c, rate,
             crdi_study_duration(left, rate > 0 ? (double)(of - done) / rate : NAN));
    if (!quiet) { crdi_progress_line(s->cli, "%s", line); }
    crdi_study_watch_show(s->watch, line);
}

static void say(void* user, const char* line)
{
    shown* s = user;
    if (!s->lines) { s->lines = crdi_array(s->out, "commands"); }
    crdi_put(crdi_row(s->lines), TEXT("command", line));
    crdi_say(s->out, "%s\n", line);
}

// A million by mistake.
static crd_status ask(crdi_cli* cli, const run_options* o, const crdi_study_file* f,
                      const crdi_study_plan* plan)
{
    const int64_t runs = plan->runs < 0 ? plan->points : plan->runs;
    char a[32], answer[16] = "";
    if (o->yes || runs < ASK_FROM) { return CRD_OK; }
    if (isatty(STDIN_FILENO) && cli->terminal) {
        fprintf(stderr, "%s: %s runs, a file of about %.3g MB. Go on? [y/N] ", f->file,
                crdi_study_thousands(a, runs), (double)plan->bytes * 1e-6);
        fflush(stderr);
        if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y')) {
            return CRD_OK;
        }
    }
    return crdi_fail(cli->ctx, CRD_E_RANGE,
                     "%s: %s runs, a file of about %.3g MB: --yes says that this is meant", f->file,
                     crdi_study_thousands(a, runs), (double)plan->bytes * 1e-6);
}

static crd_status find_executor(crdi_cli* cli, const char* name, const crdi_study_executor** out)
{
    const char* words[16] = {0};
    for (int i = 0; crdi_study_executors[i].name && i < 15; i++) {
        words[i] = crdi_study_executors[i].name;
        if (!name || strcmp(name, words[i]) == 0) {
            *out = &crdi_study_executors[i];
            return CRD_OK;
        }
    }
    const char* near = crdi_nearest_word(name, words);
    return crdi_fail(cli->ctx, CRD_E_NOT_FOUND, "--executor '%s' is not known%s%s%s", name,
                     near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}

static crd_status check_options(crdi_cli* cli, const run_options* o, const crdi_study_executor* e,
                                bool search)
{
    if (search && (o->dry_run || strcmp(e->name, "list") == 0)) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "%s: a search has to know what came of its runs before it asks for more",
                         o->dry_run ? "--dry-run" : "--executor list");
    }
    if ((o->submit || o->dry_run) && strcmp(e->name, "slurm") != 0) {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "%s says something to --executor slurm only",
                         o->submit ? "--submit" : "--dry-run");
    }
    return CRD_OK;
}

// The study with all its points, made or brought up to date. One that was named itself is as it is.
static crd_status open_study(crdi_cli* cli, const run_options* o, const char* argument,
                             crdi_study** out, int64_t* added)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    const char *yaml = NULL, *path = "";
    crdi_study_file f;
    crdi_study_plan plan;
    crd_text describe;
    crd_arena_init(&arena, cli->ctx);
    crd_text_init(&describe, cli->ctx);
    CRD_TRY(crdi_study_paths(cli, argument, o->database, &arena, &yaml, &path));
    if (!yaml) {
        CRD_TRY(crdi_study_load(cli, argument, o->database, out));
        yaml = crdi_arena_format(&arena, "%s", crdi_study_get_file(*out)->file);
        crdi_study_close(*out);
        *out = NULL;
    }
    CRD_TRY(crdi_study_file_read(cli->ctx, NULL, 0, yaml, &arena, &f));
    CRD_TRY(crdi_study_try(cli, &f, &arena, false, &plan, &describe));
    CRD_TRY(ask(cli, o, &f, &plan));
    CRD_TRY(crdi_study_sync(cli->ctx, path, &f, describe.data, out, added));
fail:
    crd_text_clear(&describe);
    crd_arena_clear(&arena);
    return st;
}

static void put_counts(crdi_result* out, const crdi_study_counts* before,
                       const crdi_study_counts* c, const char* path, double seconds,
                       const char* how, bool quiet)
{
    char a[32], b[32];
    const int64_t open = c->by_state[CRDI_RUN_OPEN] + c->by_state[CRDI_RUN_CLAIMED];
    const int64_t was = before->by_state[CRDI_RUN_OPEN] + before->by_state[CRDI_RUN_CLAIMED];
    const int64_t made = (c->total - open) - (before->total - was); // a search adds rows
    crdi_put(out, TEXT("study", path), INT("runs", c->total), INT("open", open),
             REAL("seconds", seconds), INT("made", made));
    for (int i = CRDI_RUN_DONE; i < CRDI_RUN_STATES; i++) {
        crdi_put(out, INT(crdi_run_states[i], c->by_state[i]));
    }
    if (quiet) { return; }
    crdi_result* aside = crdi_aside(out);
    crdi_fact(aside, "study", "%s", path);
    crdi_fact(aside, "runs", "%s of %s done in %s, %.4g a second", crdi_study_thousands(a, made),
              crdi_study_thousands(b, c->total), crdi_study_duration((char[32]){0}, seconds),
              seconds > 0 ? (double)made / seconds : 0);
    for (int i = CRDI_RUN_LIMIT; i < CRDI_RUN_STATES; i++) {
        if (c->by_state[i]) {
            crdi_fact(aside, crdi_run_states[i], "%s", crdi_study_thousands(a, c->by_state[i]));
        }
    }
    if (open) { crdi_fact(aside, "open", "%s; %s", crdi_study_thousands(a, open), how); }
}

// A study that looks for something is not made by its design, and the other way round.
static crd_status check_kind(crdi_cli* cli, const crdi_study_file* f, bool search)
{
    if (!f->minimise == !search) { return CRD_OK; }
    return search ? crdi_fail(cli->ctx, CRD_E_RANGE,
                              "%s: nothing is looked for, as optimise: { minimise: %s }", f->file,
                              f->kept[0].name)
                  : crdi_fail(cli->ctx, CRD_E_RANGE,
                              "%s:%d: it looks for the least '%s': 'cardan study optimise' makes "
                              "its runs",
                              f->file, f->minimise_line, f->minimise);
}

static int64_t bad_of(const crdi_study_counts* c)
{
    return c->total - c->by_state[CRDI_RUN_OPEN] - c->by_state[CRDI_RUN_CLAIMED] -
           c->by_state[CRDI_RUN_DONE];
}

// Whatever else is quiet: what has no result, and why the first of it.
static void warn_of_failed(crdi_cli* cli, crdi_study* s, const crdi_study_counts* c)
{
    crdi_study_rows r;
    char where[32], a[32], b[32];
    int64_t bad = 0;
    for (int i = CRDI_RUN_FAILED; i < CRDI_RUN_STATES; i++) {
        bad += c->by_state[i];
    }
    snprintf(where, sizeof where, "state >= %d", CRDI_RUN_FAILED);
    if (!bad || crdi_study_select(s, where, NULL, 1, &r) < 0) { return; }
    if (r.count) {
        crdi_log(cli->ctx, CRD_LOG_WARNING,
                 "%s of %s runs came to no end and are left out of statistics and pictures; run "
                 "%lld %s: %s",
                 crdi_study_thousands(a, bad), crdi_study_thousands(b, c->total),
                 (long long)r.ids[0], crdi_run_states[r.states[0]], r.reasons[0]);
    }
    crdi_study_rows_clear(&r);
}

static crd_status make_all(crdi_cli* cli, const run_options* o, const crdi_list* arguments,
                           bool search, crdi_result* out)
{
    crd_status st = CRD_OK;
    crdi_study* s = NULL;
    crdi_optimum best = {0};
    const crdi_study_executor* e = NULL;
    crdi_study_counts before, after;
    int64_t added = 0, again = 0;
    shown show = {.cli = cli, .out = out, .quiet = o->common.quiet};
    const volatile bool* stop = NULL;
    bool ours = true;
    signal(SIGXFSZ, SIG_IGN); // a file that grows too large is then an error of write
    if (!o->watch && (o->page.address || o->page.token || o->page.open || o->page.cert ||
                      o->page.key || o->page.plain)) {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "--ui-... is about the page, expected --watch too");
    }
    CRD_TRY(find_executor(cli, o->executor, &e));
    CRD_TRY(check_options(cli, o, e, search));
    if (e->begin) { CRD_TRY(e->begin(cli->ctx, &ours)); }
    if (!ours) { return CRD_OK; } // a rank that has worked
    CRD_TRY(open_study(cli, o, arguments->items[0], &s, &added));
    CRD_TRY(crdi_study_collect(cli->ctx, s));
    CRD_TRY(check_kind(cli, crdi_study_get_file(s), search));
    show.most = search ? crdi_study_get_file(s)->minimise_runs : 0;
    if (o->again >= 0) {
        CRD_TRY(crdi_study_reopen(s, (crdi_run_state)(o->again + CRDI_RUN_LIMIT), &again));
    }
    CRD_TRY(crdi_study_count(s, &before));
    if (o->watch) { CRD_TRY(crdi_study_watch_start(cli, &o->page, s, &show.watch)); }
    stop = crdi_interrupt_catch(&(crdi_interrupt_options){.restart = false});
    const crdi_study_job job = {.study = s,
                                .workers = o->workers > 0 ? o->workers : 0,
                                .chunk = o->chunk > 0 ? o->chunk : 0,
                                .stop = stop,
                                .progress = progress,
                                .say = say,
                                .user = &show,
                                .submit = o->submit,
                                .dry_run = o->dry_run};
    const int64_t begin = crdi_now_ns();
    st = search ? crdi_study_optimise(cli->ctx, e, &job, &best)
                : crdi_study_run_all(cli->ctx, e, &job);
    crdi_progress_erase(cli);
    char why[1024], line[240] = "";
    snprintf(why, sizeof why, "%s", st < 0 ? crd_error_text(cli->ctx) : "");
    (void)crdi_study_release(s);
    if (crdi_study_count(s, &after) >= 0) {
        if (o->common.quiet) { crdi_only_json(out); }
        snprintf(line, sizeof line, "%lld of %lld runs done, %lld not good; this is the end",
                 (long long)after.by_state[CRDI_RUN_DONE], (long long)after.total,
                 (long long)bad_of(&after));
        put_counts(
            out, &before, &after, crdi_study_database(s), (double)(crdi_now_ns() - begin) * 1e-9,
            show.lines && !o->dry_run ? "'cardan study merge' takes in what the commands make"
                                      : "the same command goes on",
            o->common.quiet);
        warn_of_failed(cli, s, &after);
        if (search && st >= 0) { st = crdi_study_put_optimum(cli, s, &best, out); }
        const int64_t bad = bad_of(&after);
        if (st >= 0 && o->max_failed >= 0 && bad > o->max_failed) {
            st = crdi_fail(cli->ctx, CRD_E_LIMIT, "%lld runs are not good, --max-failed allows %d",
                           (long long)bad, o->max_failed);
        } else if (st >= 0 && stop && *stop) {
            st = crdi_fail(cli->ctx, CRD_E_STATE, "interrupted; the same command goes on");
        }
    }
    if (st < 0 && why[0]) { crdi_fail(cli->ctx, st, "%s", why); }
    crdi_study_watch_stop(show.watch, line);
    show.watch = NULL;
fail:
    crdi_study_watch_stop(show.watch, "");
    if (ours && e && e->end) { e->end(); }
    if (stop) { crdi_interrupt_restore(); }
    crdi_optimum_clear(&best);
    crdi_study_close(s);
    return st;
}

static crd_status run_run(crdi_cli* cli, const void* options, const crdi_list* arguments,
                          crdi_result* out)
{
    return make_all(cli, options, arguments, false, out);
}

static crd_status run_optimise(crdi_cli* cli, const void* options, const crdi_list* arguments,
                               crdi_result* out)
{
    return make_all(cli, options, arguments, true, out);
}

static const char* const bad_states[] = {"limit", "failed", "diverged", "crashed", "hung", NULL};

static const crdi_option rows[] = {
    CRDI_DATABASE_OPTION(run_options),
    OPT_TEXT(run_options, executor, "executor", "NAME",
             "who makes the runs: local (worker processes on this machine), mpi (the ranks of "
             "mpirun), slurm (tasks of a job array), list (prints a command for each chunk)"),
    OPT_COUNT(run_options, workers, "workers", "N|auto",
              "worker processes; as many as cores unless given"),
    OPT_INT(run_options, chunk, "chunk", "N",
            "runs that a worker is given at once, or that one task makes; by their time unless "
            "given"),
    OPT_TEXT(run_options, submit, "submit", "OPTIONS",
             "options of sbatch for the tasks, as '--partition=long --time=2:00:00'"),
    OPT_FLAG(run_options, dry_run, "dry-run", "slurm: print the script, submit nothing"),
    OPT_CHOICE(run_options, again, "again", bad_states, "make the runs again that ended like this"),
    OPT_INT(run_options, max_failed, "max-failed", "N",
            "exit code 3 if more runs than this are not good"),
    OPT_FLAG(run_options, yes, "yes", "do not ask before a million runs"),
    OPT_FLAG(run_options, watch, "watch",
             "a page in the browser with the scatter plots as they fill up; the address is printed "
             "on standard error"),
    CRDI_PAGE_OPTIONS(run_options, page),
    CRDI_JSON_OPTION("print the counts as JSON on standard output"),
    OPT_FLAG(crdi_common, quiet, "quiet", "no summary, no progress line", .short_name = 'q'),
    CRDI_COMMON_OPTIONS,
};

static const run_options defaults = {
    .common = CRDI_COMMON_DEFAULTS, .workers = -1, .chunk = -1, .again = -1, .max_failed = -1};

const crdi_command crdi_command_study_run = {
    .name = "study run",
    .arguments = "STUDY",
    .summary = "make all runs of a study that are not made yet",
    .description =
        "Makes the runs of a study and keeps what it says of each in one SQLite file. Killed or "
        "interrupted at any moment it goes on with the same command: nothing is lost or made "
        "twice. "
        "Points that were added to the description since are made as well; a study whose system "
        "has "
        "changed is refused. Several commands may work at one study. A run that crashes, hangs or "
        "diverges is a row with its reason, and the others go on.",
    .examples = {{"cardan study run damper.yaml", "on all cores, into damper.study"},
                 {"cardan study run damper.yaml --again failed --max-failed 0",
                  "what failed once more; exit code 3 if something still does"},
                 {"mpirun -n 65 cardan study run damper.yaml --executor mpi",
                  "64 ranks make runs, the first hands them out"},
                 {"cardan study run damper.yaml --executor list | parallel",
                  "as commands for others; 'cardan study merge damper.yaml' collects"}},
    OPTIONS(rows, run_options),
    .defaults = &defaults,
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "yaml|yml|study",
    .run = run_run,
};

const crdi_command crdi_command_study_optimise = {
    .name = "study optimise",
    .arguments = "STUDY",
    .summary = "find the values that make a number least, within limits",
    .description =
        "Looks for the values of the factors with the least of a number that is kept, where the "
        "limits of the study hold: optimise: { minimise: NAME, runs: 200, method: cobyla }. "
        "A search begins at every combination of the lists; those that are behind are given up by "
        "halves. Its runs are rows of the study like all others: killed or interrupted it goes on "
        "with the same command, and no run is made twice.",
    .examples = {{"cardan study optimise setting.yaml",
                  "element, step and scheme with the least error"}},
    OPTIONS(rows, run_options),
    .defaults = &defaults,
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "yaml|yml|study",
    .run = run_optimise,
};
