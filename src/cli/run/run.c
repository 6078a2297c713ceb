// cardan run: a system or a single FMU, from options to the table at the end.
#include "cli/run/run.h"
#include "shared/base_interrupt.h"
#include "shared/master_cycle.h"
#include "shared/master_verdict.h"
#include "shared/system_words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct run_options {
    crdi_common common;
    crdi_overrides with;
    const char *variant, *save_weights, *save_state, *resume;
    double save_at;
    crdi_watch_options live;
    crdi_guarding guarding;
    int progress;
} run_options;

enum { PROGRESS_AUTO, PROGRESS_JSON, PROGRESS_NONE }; // not given: auto

// ---- the end by a signal -----------------------------------------------------------------------

static const volatile bool* catch_signals(void)
{
    signal(SIGXFSZ, SIG_IGN); // a file that grows too large is then an error of write
    return crdi_interrupt_catch(&(crdi_interrupt_options){.restart = true});
}

// ---- progress ----------------------------------------------------------------------------------

typedef struct progress {
    crdi_cli* cli;
    const crd_master* master;
    int64_t begin_ns;
    int mode;
} progress; // of runs on the clock, and as JSON; others are shown as any work that takes long

static void run_show_progress(void* user, double time, double start, double stop)
{
    progress* p = user;
    char line[256];
    const double elapsed = 1e-9 * (double)(crdi_now_ns() - p->begin_ns);
    const double fraction = stop > start ? (time - start) / (stop - start) : 1;
    int n = 0;
    int64_t overruns = 0;
    double lateness = 0;
    const bool paced = crd_master_glance(p->master, &overruns, &lateness);
    if (p->mode == PROGRESS_JSON) {
        n = snprintf(line, sizeof line,
                     "{\"time\": %.17g, \"start\": %.17g, \"stop\": %.17g, \"fraction\": %.6f, "
                     "\"elapsed\": %.6f",
                     time, start, stop, fraction, elapsed);
        if (paced) {
            n += snprintf(line + n, sizeof line - (size_t)n,
                          ", \"overruns\": %" PRId64 ", \"lateness\": %.9f", overruns, lateness);
        }
        n += snprintf(line + n, sizeof line - (size_t)n, "}\n");
        crdi_write_all(STDERR_FILENO, line, (size_t)n);
        return;
    }
    if (elapsed < 1) { return; }
    char late[32];
    crdi_progress_line(
        p->cli, "run: %.6g of %.6g s, %.0f %%, at most %s late, %" PRId64 " overrun%s, %.0f s left",
        time - start, stop - start, 100 * fraction, crdi_format_seconds(late, lateness), overruns,
        crdi_plural(overruns), fraction > 0 ? elapsed * (1 - fraction) / fraction : (double)NAN);
}

// A session in which nobody was asked for anything yet.
static crd_status record_nothing(const crd_system* s, const char* why)
{
    if (!s->results.session) { return CRD_OK; }
    crd_session_bench benches[64];
    int count = 0;
    for (int i = 0; i < s->unit_count && count < 64; i++) {
        if (s->units[i].source == CRD_UNIT_DCP) {
            benches[count++] = (crd_session_bench){s->units[i].name, NULL};
        }
    }
    return crd_session_write(s->ctx, s->results.session, benches, count, why);
}

// A run that was refused before it began: the record says so.
static void record_refusal(const crd_system* s)
{
    char why[512];
    snprintf(why, sizeof why, "%s", crd_error_text(s->ctx));
    if (record_nothing(s, why) < 0) {
        crdi_log_on(s->ctx, CRD_LOG_WARNING, crd_error_text(s->ctx));
    }
    (void)crdi_fail(s->ctx, CRD_E_RANGE, "%s", why);
}

// ---- the command -------------------------------------------------------------------------------

static crd_status interrupted(crd_context* ctx, const crd_master_report* r)
{
    return crdi_fail(ctx, CRD_E_STATE, "interrupted at t = %.10g s%s%s", r->time,
                     *r->results ? "; everything up to there is recorded in " : "", r->results);
}

// What the end of a run that did not fail is worth.
static crd_status run_judge(crd_context* ctx, const crd_system* s, const crd_master* m,
                            const crd_master_report* r, bool by_page, const run_options* o)
{
    if (r->end == CRD_END_INTERRUPTED && !by_page) { return interrupted(ctx, r); }
    if (r->end == CRD_END_OVERRUN) { return crdi_fail_overrun(ctx, r); }
    crd_status st = crdi_check_guard(ctx, m);
    if (st >= 0) { st = crdi_check_limits(ctx, r, &s->run.guard); }
    return st < 0 ? st : crdi_check_pace(ctx, r, o->with.max_overruns, o->with.max_lateness);
}

static bool knows_commands(const crd_coupling_report* c)
{
    bool any = false;
    for (int i = 0; i < c->tap_count; i++) {
        any = any || (c->command_count > 0 && c->taps[i].commands.count > 0);
    }
    return any;
}

// Before the run, so that it is not in vain.
static crd_status prepare_weights(crd_context* ctx, crd_master* m, const char* folder)
{
    const crd_master_report* r = crd_master_get_report(m);
    bool any = false;
    for (int i = 0; i < r->coupling_count; i++) {
        any = any || knows_commands(&r->couplings[i]);
    }
    if (!any) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--save-weights %s: no connection has an element that learns commands, "
                         "expected 'coupling: commands' at one",
                         folder);
    }
    struct stat at;
    bool good = (mkdir(folder, 0777) == 0 || errno == EEXIST) && stat(folder, &at) == 0;
    if (good && !S_ISDIR(at.st_mode)) {
        good = false;
        errno = ENOTDIR;
    }
    if (!good || access(folder, W_OK | X_OK) != 0) {
        return crdi_fail(ctx, CRD_E_IO, "--save-weights %s: %s, expected a folder to write into",
                         folder, strerror(errno));
    }
    return CRD_OK;
}

typedef struct weights_said {
    crdi_result *rows, *aside; // aside: NULL if it is to be quiet
} weights_said;

static crd_status save_weights(crdi_cli* cli, const crd_master* m, const crd_coupling_report* c,
                               int index, const char* folder, const weights_said* out)
{
    crd_status st = CRD_OK;
    crd_text text;
    crd_text_init(&text, cli->ctx);
    char* path = crdi_format(cli->ctx, "%s/%s.json", folder, c->to);
    if (!path) { CRD_TRY(CRD_E_MEMORY); }
    for (char* p = path + strlen(folder) + 1; *p; p++) {
        if (*p == '/') { *p = '_'; }
    }
    st = crd_master_describe_weights(m, index, &text);
    if (st == CRD_E_STATE) {
        if (out->aside) {
            crdi_say(out->aside, "weights of %s: not enough was learned, nothing is saved\n",
                     c->to);
        }
        st = CRD_OK;
        goto fail;
    }
    CRD_TRY(st);
    crdi_text_put(&text, "\n", 1);
    CRD_TRY(crdi_file_write(cli->ctx, path, &text));
    crdi_put(crdi_row(out->rows), TEXT("to", c->to),
             TEXT("file", crdi_result_copy(out->rows, path)));
    if (out->aside) { crdi_say(out->aside, "weights of %s: %s\n", c->to, path); }
fail:
    crd_free(cli->ctx, path);
    crd_text_clear(&text);
    return st;
}

// Of a run that came to its end or was ended by somebody.
static crd_status save_all_weights(crdi_cli* cli, const crd_master* m, const crd_master_report* r,
                                   const run_options* o, crdi_result* out)
{
    crd_status st = CRD_OK;
    const weights_said said = {crdi_array(out, "weights"),
                               o->common.quiet ? NULL : crdi_aside(out)};
    for (int i = 0; i < r->coupling_count; i++) {
        if (!knows_commands(&r->couplings[i])) { continue; }
        CRD_TRY(save_weights(cli, m, &r->couplings[i], i, o->save_weights, &said));
    }
fail:
    return st;
}

// What was learned of the cycle acts beside the elements, whose table does not know of it.
static void put_learned(crdi_result* out, crdi_result* aside, const crd_master* m)
{
    crdi_learned_use use = {0};
    const bool any = crdi_learning_use(m, &use);
    crdi_result* j = crdi_object_if(out, "learned", any);
    crdi_put(j, TEXT("file", use.path), INT("signals", use.signals), REAL("error", use.error),
             REAL("first_error", use.first), REAL("best_error", use.best),
             INT("limited", use.limited), REAL("until", use.until));
    if (!any || !aside) { return; }
    crdi_say_wrapped(
        aside, "learned",
        "%s corrects %d signal%s: coupling error %.3g %%, held %.3g %%, %.3g %% when "
        "it was learned%s%s",
        use.path, use.signals, crdi_plural(use.signals), 100 * use.error, 100 * use.first,
        100 * use.best,
        isnan(use.until) ? "" : crdi_worded(j, "; not used any more after t = %.6g s", use.until),
        use.limited ? crdi_worded(j, "; %lld corrections cut by limits", (long long)use.limited)
                    : "");
}

static crd_status run_master(crdi_cli* cli, crd_master* m, const crd_system* s,
                             const run_options* o, crdi_result* out)
{
    crdi_watch watch;
    crd_status st = crdi_watch_start(cli, m, &o->live, &watch);
    if (st < 0) { return st; }
    st = crd_master_run(m);
    const crd_master_report* r = crd_master_get_report(m);
    const bool by_page = r->end == CRD_END_INTERRUPTED && watch.live && !crdi_interrupted();
    const bool whole = st == CRD_OK && r->end != CRD_END_GUARD;
    if (st == CRD_OK) { st = run_judge(cli->ctx, s, m, r, by_page, o); }
    const crdi_run_end end = {.status = st, .by_page = by_page};
    const bool began = r->rows > 0 || r->steps > 0 || st == CRD_OK;
    crdi_put_report(out, r, &end, o->common.quiet || !began);
    put_learned(out, o->common.quiet || !began ? NULL : crdi_aside(out), m);
    if (whole && o->save_weights) {
        const crd_status saved = save_all_weights(cli, m, r, o, out);
        if (st == CRD_OK) { st = saved; }
    }
    crdi_put_status(cli, out, st);
    const crd_status printed = crdi_result_print(out->root); // before the page is left alone
    cli->printed = true;
    if (o->live.keep) { crdi_watch_linger(cli, &watch, end.status, r->results); }
    crdi_watch_stop(&watch, 1);
    if (st == CRD_E_CRASH && *r->results && r->rows > 0) { // as crdi_last_words does
        return crdi_fail(cli->ctx, st, "%s; everything up to there is recorded in %s",
                         crd_error_text(cli->ctx), r->results);
    }
    return st < 0 ? st : printed;
}

static crd_status run_system(crdi_cli* cli, const crd_system* s, const run_options* o,
                             crdi_result* out)
{
    progress p = {.cli = cli,
                  .begin_ns = crdi_now_ns(),
                  .mode = o->progress < 0 ? PROGRESS_AUTO : o->progress};
    crd_master_options opt = crd_master_defaults();
    opt.stop = catch_signals();
    opt.guard_crashes = true;
    opt.last_words = crdi_last_words;
    opt.last_words_user = cli;
    if (!isnan(s->run.guard.max_defect)) { opt.defect_goal = s->run.guard.max_defect; }
    if (!isnan(s->run.guard.max_energy)) { opt.energy_goal = s->run.guard.max_energy; }
    if (p.mode != PROGRESS_AUTO) { crdi_context_show_progress(cli->ctx, NULL, NULL); }
    const bool line = s->run.pace.factor > 0 && crdi_progress_is_shown(cli->ctx);
    opt.resume = o->resume;
    opt.save_file = o->save_state;
    if (!isnan(o->save_at)) { opt.save_at = o->save_at; }
    if (line || p.mode == PROGRESS_JSON) {
        opt.progress = run_show_progress;
        opt.progress_user = &p;
    }
    crd_master* m = NULL;
    crd_status st = crd_master_create(cli->ctx, s, &opt, &m);
    if (st < 0) {
        record_refusal(s);
    } else { // whoever is killed leaves no record of an earlier run, and one can be written
        st = record_nothing(s, crdi_unfinished_session);
    }
    if (st == CRD_OK && o->save_weights) { st = prepare_weights(cli->ctx, m, o->save_weights); }
    crdi_ward* ward = NULL;
    crdi_guarding guarding = o->guarding;
    guarding.quiet = o->common.quiet;
    if (st == CRD_OK) { st = crdi_guarding_start(cli, m, s, &guarding, &ward); }
    p.master = m; // nobody is told before it runs
    if (st == CRD_OK) { st = run_master(cli, m, s, o, out); }
    if (ward) { crdi_ward_let_go(ward); }
    crd_master_destroy(m);
    crdi_ward_destroy(ward);
    return st;
}

static crd_status run_run(crdi_cli* cli, const void* options, const crdi_list* arguments,
                          crdi_result* out)
{
    const run_options* o = options;
    crd_system* s = NULL;
    crd_status st = crdi_load_variant(cli->ctx, arguments->items[0], o->variant, &s);
    if (st == CRD_OK) { st = crdi_live_check(cli->ctx, &o->live); }
    if (st == CRD_OK && !isnan(o->save_at) && !o->save_state) {
        st = crdi_fail(cli->ctx, CRD_E_RANGE,
                       "--at says when the state is saved, expected --save-state FILE too");
    }
    if (st == CRD_OK) { st = crdi_apply_overrides(s, arguments->items[0], &o->with); }
    for (int i = 0; st == CRD_OK && i < s->unit_count; i++) {
        if (o->live.ui || s->units[i].source != CRD_UNIT_DRIVER) { continue; }
        crdi_log(cli->ctx, CRD_LOG_WARNING,
                 "unit '%s' is driven by hand and nobody can: it stays at rest; expected --ui",
                 s->units[i].name);
    }
    if (st == CRD_OK) { st = run_system(cli, s, o, out); }
    if (st < 0 && !out->root->printed) { crdi_put_status(cli, out, st); }
    crd_system_destroy(s);
    return st;
}

static const char* const progresses[] = {"auto", "json", "none", NULL};

static const crdi_option rows[] = {
    OPT_TIME(run_options, with.start_time, "start-time", CRDI_ANY,
             "where the run begins; what the units say, else 0"),
    OPT_TIME(run_options, with.stop_time, "stop-time", CRDI_ANY,
             "where the run ends; what the units say, else 1 s"),
    OPT_TIME(run_options, with.step, "step", CRDI_POSITIVE,
             "macro step, the time between two exchanges; what the units say, else a thousandth "
             "of the run",
             .alias = "step-size"),
    OPT_TEXT(run_options, with.scheme, "scheme", "SCHEME",
             "jacobi, gauss-seidel (order from the dependencies) or a nested form as in "
             "'gauss-seidel: [a, jacobi: [b, c]]'",
             .choices = crdi_schemes),
    OPT_CHOICE(
        run_options, with.predict, "predict", crdi_predictions,
        "how all connections continue their signal over a step; auto: as would have been best "
        "so far"),
    OPT_NUMBER(run_options, with.control, "control", "TOL", CRDI_POSITIVE,
               "variable steps: as long as the defects of connections stay near TOL times the size "
               "of their signal"),
    OPT_FLAG(run_options, with.iterate, "iterate",
             "repeat each step until inputs and outputs fit together, with the units that can go "
             "back"),
    OPT_TEXT(
        run_options, with.pace, "pace", "PACE",
        "keep the clock: realtime, a factor such as 10x or 0.5x, or free (as fast as possible); "
        "more as in '{factor: realtime, cpu: 1, spin: 50 us}'",
        .choices = crdi_paces),
    OPT_CHOICE(run_options, with.overrun, "overrun", crdi_overruns,
               "with --pace, when a cycle is not done in time: record it and catch up, stretch the "
               "time, skip deadlines, or stop; record unless given"),
    OPT_NUMBER(run_options, with.tolerance, "tolerance", "REL", CRDI_POSITIVE,
               "relative tolerance that the units are told"),
    CRDI_PARAMETERS_OPTION(run_options, with.parameters),
    OPT_LIST(run_options, with.set, "set", "UNIT.VAR=VALUE",
             "start value or parameter, with its unit if it has one ('mass.m=100 g'); for a "
             "single FMU VAR=VALUE"),
    CRDI_INPUT_OPTIONS(run_options, with.input),
    OPT_FILE(run_options, with.output, "output", "csv|mf4|mat",
             "result file: .csv, .mf4 (MDF 4.10) or .mat; - for CSV on standard output, or none; "
             "what the system says, else the name of SYSTEM with .csv in the current folder",
             .short_name = 'o', .alias = "output-file"),
    OPT_TEXT(
        run_options, with.on_full, "on-full", "stop|thin|drop|FILE",
        "when the disk is full: stop the run, thin the rows out, drop them and go on, or go on "
        "in another file; stop unless given, drop on the clock with hardware",
        .choices = crdi_on_fulls),
    OPT_FILE(run_options, with.exchange, "exchange", "mf4",
             "record every exchanged sample with its time stamps, for cardan replay (.mf4); none: "
             "not, whatever the system says"),
    OPT_FILE(run_options, with.session, "session-record", "csv",
             "record the states of master and test benches, however the run ends, for cardan bench "
             "session (.csv); none: not, whatever the system says"),
    OPT_TEXT(run_options, save_weights, "save-weights", "FOLDER",
             "at the end, what elements that know the commands have learned, one file for each "
             "connection: FOLDER/UNIT.INPUT.json, for 'weights' of an element; nothing of a run "
             "that fails"),
    OPT_FILE(run_options, save_state, "save-state", "",
             "write the state of the whole run to this file, at the end or --at TIME; the run goes "
             "on. Files are sealed with a key of the user (~/.config/cardan/state.key)"),
    OPT_TIME(run_options, save_at, "at", CRDI_POSITIVE,
             "with --save-state: when, in simulated time"),
    OPT_FILE(run_options, resume, "resume", "",
             "go on from a saved state of the same system, to the last bit; rows begin behind it"),
    OPT_LIST(run_options, with.variables, "variables", "PATTERN",
             "variables to record, with * and ?; all outputs unless given"),
    OPT_TIME(run_options, with.interval, "interval", CRDI_NOT_NEGATIVE,
             "time between two rows; every macro step unless given", .alias = "output-interval"),
    CRDI_UNIT_ROW_OPTION(run_options, with.unit_row),
    OPT_CHOICE(run_options, with.mat_version, "mat-version", crdi_mat_versions,
               "of a .mat file: 5, which everything reads, or 7.3 (HDF5), which has no limit of "
               "size; 5 unless the results are too large for it"),
    CRDI_VARIANT_OPTION(run_options),
    OPT_CHOICE(run_options, with.interface, "interface-type", crdi_interfaces,
               "how FMUs are run that offer both; co-simulation unless given"),
    OPT_CHOICE(run_options, with.solver, "solver", crdi_solvers,
               "for Model Exchange: bdf and adams control their error (CVODE), euler and rk4 have "
               "fixed steps; bdf unless given"),
    OPT_TEXT(run_options, with.guard, "guard", "ACTION",
             "what to do about a loop that diverges by its coupling: auto stops what is proven and "
             "warns of the rest, stop, warn, ladder (of links with hardware: a calmer element, the "
             "stand-in, then the end), off; limits as in '{max_defect: 1 %}'; auto unless given",
             .choices = crdi_guard_actions),
    OPT_QUANTITY(
        run_options, with.max_defect, "max-defect", "FRACTION", "", CRDI_POSITIVE,
        "end with exit code 3 when the defect of a connection is more than this part of its "
        "signal's scale: 0.01 or '1 %'"),
    OPT_QUANTITY(
        run_options, with.max_energy, "max-energy", "FRACTION", "", CRDI_POSITIVE,
        "end with exit code 3 when the exchange over a power bond puts in or takes out more than "
        "this part of the energy that passes it"),
    OPT_QUANTITY(
        run_options, with.max_error, "max-error", "FRACTION", "", CRDI_POSITIVE,
        "end with exit code 3 when the estimated error of an output is more than this part "
        "of its scale"),
    OPT_INT(run_options, with.max_overruns, "max-overruns", "N",
            "with --pace: exit code 3 if more than N cycles were not done in time"),
    OPT_TIME(run_options, with.max_lateness, "max-lateness", CRDI_POSITIVE,
             "with --pace: exit code 3 if a cycle began more than TIME after its deadline"),
    CRDI_LIVE_OPTIONS(run_options, live),
    CRDI_GUARD_OPTIONS(run_options, guarding),
    OPT_FLAG(run_options, with.allow_nan, "allow-nan",
             "outputs of FMUs that are not a number (NaN) pass to inputs and results instead of "
             "ending the run; their connections hold, and their defects are not known"),
    OPT_FLAG(run_options, with.no_quality, "no-quality",
             "watch neither defects nor energy; the results stay the same"),
    OPT_COUNT(run_options, with.threads, "threads", "N|auto",
              "threads that step the units; auto measures at the start; the results do not depend "
              "on it"),
    CRDI_ISOLATE_OPTION,
    OPT_CHOICE(run_options, progress, "progress", progresses,
               "on standard error: auto is a line on a terminal, json a line of JSON about ten "
               "times a second"),
    CRDI_UNPACKED_OPTION,
    CRDI_JSON_OPTION("print the report at the end as JSON on standard output"),
    OPT_FLAG(crdi_common, quiet, "quiet",
             "no report and no progress line, only warnings and errors on standard error",
             .short_name = 'q'),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_run = {
    .name = "run",
    .arguments = "SYSTEM|SSP|FMU|NETLIST",
    .summary = "run a system description (YAML), an SSP, a single FMU or netlist",
    .description =
        "Runs a system of units from a description in YAML, an SSP or an OspSystemStructure.xml, "
        "or a "
        "single FMU or "
        "netlist (.cir, .ckt, .net, .sp, .spice) without "
        "any description: initialises with algebraic loops solved, steps to the stop time, "
        "records. "
        "The result is a CSV, MF4 or MAT file with the time and signals named "
        "unit.variable, or as in the FMU or netlist itself if it is alone. FMUs without "
        "Co-Simulation are "
        "integrated. A SYSTEM of - is read from standard input.\n"
        "At the end standard error shows what was done: steps, speed, loops, the file, the "
        "time spent in each unit, how far each input missed its output, and what would help. "
        "Ctrl-C ends the run between two steps with everything recorded "
        "so far and exit code 1; a second Ctrl-C ends it at once.\n"
        "With --pace the run keeps the clock: each cycle begins at its deadline on a grid that "
        "never "
        "drifts, as a real-time task with locked memory as far as the system allows it, which is "
        "said at the start. The end then tells how late cycles began, how long they took, which "
        "were not done in time and why. With --ui a page in the browser shows the run "
        "while it goes, and can pause, change and stop it; a run that was stopped there ends with "
        "exit code 0. 'cardan doctor' says what a machine is good for.",
    .examples = {{"cardan run oscillator.yaml --stop-time 10 -o run.csv", "run a system for 10 s"},
                 {"cardan run motor.fmu --step '1 ms' --set J=0.02 --input torque.csv",
                  "drive one FMU with a recording"},
                 {"cardan run car.ssp --variant winter -o winter.mf4",
                  "a variant of a package, recorded as MDF"},
                 {"cardan run system.yaml --scheme gauss-seidel --variables 'motor.*' --json",
                  "record the motor only; the report as JSON"},
                 {"cardan run system.yaml --max-defect '0.1 %'",
                  "exit code 3 if the coupling error of a connection is larger"},
                 {"cardan run bench.yaml --pace realtime --max-overruns 0 -o run.mf4",
                  "in real time; exit code 3 if a cycle was late"},
                 {"cardan run bench.yaml --pace realtime --ui --ui-wait",
                  "begin when Start is pressed in the browser"}},
    OPTIONS(rows, run_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "fmu|yaml|yml|ssp|ssd|cir|ckt|net|sp|spice",
    .run = run_run,
};
