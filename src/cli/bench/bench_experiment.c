// cardan bench experiment: the experiment of Baumann 2024, section 3, and its tables.
#include "cli/bench/bench_experiment.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

typedef struct experiment_options {
    crdi_common common;
    int seed;
    double latency, jitter, step;
    int plant;
    const char* output;
} experiment_options;

static const char* const plants[] = {"edges", "smooth", NULL}; // as crdi_bench_plant_kind

// ---- tables ------------------------------------------------------------------------------------

static const char* fixed(crd_arena* a, double x, int digits, const char* behind)
{
    if (!isfinite(x)) { return "-"; }
    return behind[0] ? crdi_arena_format(a, "%+.*f%s", digits, x, behind)
                     : crdi_arena_format(a, "%.*f", digits, x);
}

static crd_status bench_experiment_complete(const crdi_experiment_table* t)
{
    for (int i = 0; i < t->rows; i++) {
        for (int j = 0; j < t->columns; j++) {
            if (!t->cells[i][j]) { return CRD_E_MEMORY; }
        }
    }
    return CRD_OK;
}

static void add_row(crdi_experiment_table* t, const char* const* cells)
{
    memcpy(t->cells[t->rows++], cells, (size_t)t->columns * sizeof *cells);
}

crd_status crdi_experiment_errors(const crdi_bench_experiment* e, crd_arena* a,
                                  crdi_experiment_table* out)
{
    static const char* const heads[] = {"coupling", "100 C", "100 M", "100 P",      "against ZOH",
                                        "paper: C", "M",     "P",     "against ZOH"};
    *out = (crdi_experiment_table){
        .title = "Coupling error after Sprague and Geers: torque at the car's input against torque "
                 "as it left the bench (Table 2)",
        .columns = 9,
        .right = 0x1fe,
        .note = "M is negative where estimates are larger than the signal; the paper prints its "
                "size. Rows without numbers of the paper are ours."};
    add_row(out, heads);
    const double published = e->runs[CRDI_BENCH_ZOH].published.C;
    for (int i = CRDI_BENCH_ZOH; i < CRDI_BENCH_CASES; i++) {
        const crdi_bench_run* r = &e->runs[i];
        const crdi_bench_published* p = &r->published;
        const char* const cells[] = {r->name,
                                     fixed(a, 100 * r->metrics.C, 2, ""),
                                     fixed(a, 100 * r->metrics.M, 2, ""),
                                     fixed(a, 100 * r->metrics.P, 2, ""),
                                     fixed(a, 100 * r->change, 1, " %"),
                                     fixed(a, p->C, 2, ""),
                                     fixed(a, p->M, 2, ""),
                                     fixed(a, p->P, 2, ""),
                                     fixed(a, 100 * (p->C / published - 1), 0, " %")};
        add_row(out, cells);
    }
    return bench_experiment_complete(out);
}

crd_status crdi_experiment_behaviour(const crdi_bench_experiment* e, crd_arena* a,
                                     crdi_experiment_table* out)
{
    static const char* const heads[] = {"coupling", "first peak",  "against ZOH", "paper",
                                        "energy",   "against ZOH", "paper",       "gained"};
    *out = (crdi_experiment_table){
        .title = "Behaviour of the car: time of the first torque peak, energy from the engine "
                 "(Table 3)",
        .columns = 8,
        .right = 0xfe,
        .note = "gained: energy that came to the car, over what the engine gave on the bench."};
    add_row(out, heads);
    const crdi_bench_run* zoh = &e->runs[CRDI_BENCH_ZOH];
    for (int n = 1; n <= CRDI_BENCH_CASES; n++) {
        const crdi_bench_run* r =
            &e->runs[n % CRDI_BENCH_CASES]; // the ideal coupling at the bottom
        const char* const cells[] = {r->name,
                                     crdi_arena_format(a, "%.3f s", r->peak),
                                     fixed(a, r->peak - zoh->peak, 3, " s"),
                                     fixed(a, r->published.peak, 2, " s"),
                                     crdi_arena_format(a, "%.2f kJ", r->energy / 1e3),
                                     fixed(a, 100 * (r->energy / zoh->energy - 1), 2, " %"),
                                     fixed(a, r->published.energy, 2, " %"),
                                     fixed(a, 100 * (r->energy / r->given - 1), 2, " %")};
        add_row(out, cells);
    }
    return bench_experiment_complete(out);
}

crd_status crdi_experiment_goals(const crdi_bench_experiment* e, crd_arena* a,
                                 crdi_experiment_table* out)
{
    static const char* const heads[] = {"goal", "ours", "at most", ""};
    *out = (crdi_experiment_table){
        .title = "What the experiment has to show", .columns = 4, .right = 0x6, .note = ""};
    add_row(out, heads);
    for (int i = 0; i < e->goal_count; i++) {
        const crdi_bench_goal* g = &e->goals[i];
        const char* const cells[] = {g->what, fixed(a, g->ours, 1, ""), fixed(a, g->wanted, 1, ""),
                                     g->met ? "met" : "NOT MET"};
        add_row(out, cells);
    }
    return bench_experiment_complete(out);
}

crd_status crdi_experiment_setup(const crdi_bench_experiment* e, crd_text* out)
{
    const crdi_bench_experiment_options* o = &e->options;
    crdi_text_add(out,
                  "A hybrid car accelerates for 12 s and shifts at 3.2 s; its engine runs on a "
                  "bench (Baumann 2024, section 3).\n");
    crdi_text_add(out,
                  "The torque comes over a link of %g ms +- %g ms, one sample each %g ms: k = %d; "
                  "seed %llu.\n",
                  1e3 * o->latency, 1e3 * o->jitter, 1e3 * o->step, e->k,
                  (unsigned long long)o->seed);
    crdi_text_add(
        out,
        "The shift %s; the bench measures with %g N.m of noise at 1 kHz and filters that (Bessel, "
        "second order, %g ms). Optimal: phase 0.1 to 10 rad/s, magnitude 0.1 to 55 rad/s, r = 2, "
        "m = 9.\n",
        o->plant == CRDI_BENCH_SMOOTH ? "is smooth" : "has edges", e->noise, 1e3 * e->filter_delay);
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}

static void say_table(crdi_cli* cli, const crdi_experiment_table* t, crdi_result* out)
{
    crdi_grid g;
    crd_text text;
    crd_text_init(&text, cli->ctx);
    crdi_grid_init(&g, cli->ctx, t->columns, t->right);
    for (int i = 0; i < t->rows; i++) {
        for (int j = 0; j < t->columns; j++) {
            crdi_grid_add(&g, "%s", t->cells[i][j]);
        }
    }
    crdi_grid_write(&g, &text, "  ");
    crdi_say(out, "\n%s\n\n%s", t->title, text.data ? text.data : "");
    if (t->note[0]) { crdi_say(out, "\n%s\n", t->note); }
    crdi_grid_clear(&g);
    crd_text_clear(&text);
}

static crd_status say_all(crdi_cli* cli, const crdi_bench_experiment* e, crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_arena a;
    crd_text setup;
    crdi_experiment_table t;
    crd_arena_init(&a, cli->ctx);
    crd_text_init(&setup, cli->ctx);
    CRD_TRY(crdi_experiment_setup(e, &setup));
    crdi_say(out, "%s", setup.data);
    CRD_TRY(crdi_experiment_errors(e, &a, &t));
    say_table(cli, &t, out);
    CRD_TRY(crdi_experiment_behaviour(e, &a, &t));
    say_table(cli, &t, out);
    CRD_TRY(crdi_experiment_goals(e, &a, &t));
    say_table(cli, &t, out);
    crdi_say(out, "\nWhere it differs from the paper\n\n");
    for (int i = 0; i < e->remark_count; i++) {
        crdi_say_wrapped(out, "  -", "%s", e->remarks[i]);
    }
fail:
    crd_text_clear(&setup);
    crd_arena_clear(&a);
    return st;
}

static void bench_experiment_put_run(const crdi_bench_experiment* e, const crdi_bench_run* r,
                                     crdi_result* row)
{
    const crdi_bench_run* zoh = &e->runs[CRDI_BENCH_ZOH];
    const crdi_bench_published* p = &r->published;
    crdi_put(row, TEXT("id", r->id), TEXT("name", r->name), TEXT("element", r->element),
             REAL("C", 100 * r->metrics.C), REAL("M", 100 * r->metrics.M),
             REAL("P", 100 * r->metrics.P), REAL("change", 100 * r->change),
             REAL("rms", r->metrics.rms), REAL("worst", r->metrics.worst), REAL("peak", r->peak),
             REAL("peak_change", r->peak - zoh->peak), REAL("energy", r->energy),
             REAL("energy_change", 100 * (r->energy / zoh->energy - 1)),
             REAL("energy_given", r->given), REAL("distance", r->distance),
             REAL("jumps", (double)r->jumps), REAL("k_mean", r->k_mean), REAL("k_max", r->k_max));
    crdi_put(crdi_object(row, "paper"), REAL("C", p->C), REAL("M", p->M), REAL("P", p->P),
             REAL("peak_change", p->peak), REAL("energy_change", p->energy));
}

static void put_experiment(const crdi_bench_experiment* e, crdi_result* out)
{
    const crdi_bench_experiment_options* o = &e->options;
    crdi_put(out, INT("seed", o->seed), REAL("latency", o->latency), REAL("jitter", o->jitter),
             REAL("step", o->step), INT("k", e->k), REAL("filter_delay", e->filter_delay),
             TEXT("plant", plants[o->plant]));
    crdi_result* runs = crdi_array(out, "runs");
    for (int i = 0; i < CRDI_BENCH_CASES; i++) {
        bench_experiment_put_run(e, &e->runs[i], crdi_row(runs));
    }
    crdi_result* goals = crdi_array(out, "goals");
    for (int i = 0; i < e->goal_count; i++) {
        const crdi_bench_goal* g = &e->goals[i];
        crdi_put(crdi_row(goals), TEXT("what", g->what), REAL("ours", g->ours),
                 REAL("wanted", g->wanted), BOOL("met", g->met));
    }
    crdi_put_texts(out, "remarks", e->remarks, e->remark_count);
}

// ---- the command -------------------------------------------------------------------------------

static crd_status run_experiment(crdi_cli* cli, const void* options, const crdi_list* arguments,
                                 crdi_result* out)
{
    (void)arguments;
    const experiment_options* o = options;
    crd_status st = CRD_OK;
    crdi_bench_experiment* e = NULL;
    crdi_bench_experiment_options with = crdi_bench_experiment_defaults();
    if (o->seed >= 0) { with.seed = (uint64_t)o->seed; }
    if (!isnan(o->latency)) { with.latency = o->latency; }
    if (!isnan(o->jitter)) { with.jitter = o->jitter; }
    if (!isnan(o->step)) { with.step = o->step; }
    if (o->plant >= 0) { with.plant = (crdi_bench_plant_kind)o->plant; }
    with.folder = o->output;
    if (o->output && mkdir(o->output, 0777) != 0 && errno != EEXIST) {
        return crdi_fail(cli->ctx, CRD_E_IO, "--output %s: %s", o->output, strerror(errno));
    }
    st = crdi_bench_experiment_run(cli->ctx, &with, &e);
    crdi_progress_end(cli->ctx);
    CRD_TRY(st);
    CRD_TRY(say_all(cli, e, out));
    put_experiment(e, out);
    if (o->output) {
        CRD_TRY(crdi_experiment_write(e, o->output));
        crdi_say(out, "\n%s/report.html: tables and drawings; recordings of all runs beside it\n",
                 o->output);
    }
fail:
    crdi_bench_experiment_destroy(e);
    return st;
}

static const crdi_option rows[] = {
    OPT_FILE(experiment_options, output, "output", NULL,
             "write report.html, drawings (SVG) and the recording of each run (MF4, and CSV at the "
             "macro time points) there",
             .short_name = 'o', .metavar = "FOLDER"),
    OPT_INT(experiment_options, seed, "seed", "NUMBER",
            "of noise, driver and link; equal seeds give equal bits; 1 unless given"),
    OPT_TIME(experiment_options, latency, "latency", CRDI_POSITIVE,
             "of the link; 57.5 ms unless given"),
    OPT_TIME(experiment_options, jitter, "jitter", CRDI_NOT_NEGATIVE,
             "each sample takes so much more or less at most; 0.5 ms unless given"),
    OPT_TIME(experiment_options, step, "step", CRDI_POSITIVE,
             "macro step, whole milliseconds; 10 ms unless given"),
    OPT_CHOICE(experiment_options, plant, "plant", plants,
               "edges: a gearbox that shifts as fast as the paper's torque shows; smooth: one that "
               "takes 0.6 s, and more noise; edges unless given"),
    CRDI_JSON_OPTION(
        "print {plant, runs: [{id, C, M, P, change, peak, energy, paper, ...}], goals, "
        "remarks}"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_bench_experiment = {
    .name = "bench experiment",
    .arguments = "",
    .summary = "the experiment of Baumann 2024: latency in a hybrid car",
    .description =
        "A hybrid car accelerates for 12 s and shifts at 3.2 s. The torque of its engine, which "
        "runs on a test bench, arrives 57.5 ms late. The closed loop runs with ideal coupling, "
        "ZOH, FOH and EROS with and without switching, the optimal algorithm, networks that were "
        "trained by a previous run, and auto; all on models, in a few seconds. Shown are the "
        "coupling errors and what they do to the car, with the paper's numbers beside ours, and "
        "sentences where an order differs.",
    .examples = {{"cardan bench experiment", "the tables"},
                 {"cardan bench experiment -o experiment", "with drawings, recordings and report"},
                 {"cardan bench experiment --plant smooth", "a gearbox without edges"},
                 {"cardan bench experiment --latency 80ms --seed 7", "a slower link"}},
    OPTIONS(rows, experiment_options),
    .run = run_experiment,
};
