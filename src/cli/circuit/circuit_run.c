// cardan circuit: the run from its first step to the table at the end.
#include "cli/circuit/circuit.h"
#include "shared/base_interrupt.h"
#include "shared/base_system.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TABLE_MOST = 40 }; // rows that are printed

typedef struct run {
    crdi_circuit_job* j;
    crd_recorder* recorder; // NULL: none
    const char* results;    // path of it
    int64_t begin_ns, shown_ns;
    double cpu, wall; // s, of all steps
    int64_t steps;    // done
    int64_t clock_ns; // of reading the clock
    int64_t step_ns;  // sum
    int64_t step_began_ns;
    double from;       // s, where the step began
    bool stepping;     // what fails now is the circuit
    int64_t worst_ns;  // of one step
    double worst_time; // simulated time at its end
    int64_t iterations;
    int worst_iterations;
    double worst_iterations_time;
    double shortest, longest; // step, s
    double first, last;       // times of which signals were taken
    int64_t next_row;         // --every: steps until the next row
    int64_t rows;
    bool stopped; // by a signal
} run;

// ---- progress ----------------------------------------------------------------------------------

static void circuit_run_show_progress(run* r, int64_t now)
{
    if (now - r->shown_ns < 100000000) { return; }
    r->shown_ns = now;
    crdi_progress(r->j->cli->ctx, "circuit", crd_circuit_time(r->j->c), r->j->stop, "s");
}

// ---- signals -----------------------------------------------------------------------------------

static void circuit_run_follow(crdi_circuit_signal* s, double y, double dt, bool first)
{
    if (first) {
        s->least = s->most = y;
    } else { // along the line from the last value to this one
        s->area += 0.5 * (s->last + y) * dt;
        s->square += (s->last * s->last + s->last * y + y * y) * dt / 3;
        s->least = fmin(s->least, y);
        s->most = fmax(s->most, y);
    }
    s->last = y;
}

// Takes the signals at the present time. CRD_E_IO: they cannot be written any more.
static crd_status circuit_run_observe(run* r)
{
    crdi_circuit_job* j = r->j;
    const double t = crd_circuit_time(j->c);
    if (t < j->from - 1e-9 * j->opt.step) { return CRD_OK; }
    const bool first = isnan(r->first);
    if (first) { r->first = t; }
    for (int i = 0; i < j->signal_count; i++) {
        crdi_circuit_signal* s = &j->signals[i];
        circuit_run_follow(s, crd_circuit_probe_value(j->c, &j->probes[i]), t - r->last, first);
    }
    r->last = t;
    if (!r->recorder || r->next_row-- > 0) { return CRD_OK; }
    r->next_row = j->o->every > 0 ? j->o->every - 1 : 0;
    crd_word* row = crd_recorder_begin(r->recorder);
    if (!row) { return CRD_E_IO; } // finish says why
    row[0].real = t;
    for (int i = 0; i < j->signal_count; i++) {
        row[1 + i].real = j->signals[i].last;
    }
    crd_recorder_end(r->recorder);
    return CRD_OK;
}

// ---- steps -------------------------------------------------------------------------------------

static void count_step(run* r, int64_t ns, double size)
{
    crd_circuit* c = r->j->c;
    const int iterations = crd_circuit_iterations(c);
    r->steps++;
    r->step_ns += ns;
    r->iterations += iterations;
    if (ns > r->worst_ns) {
        r->worst_ns = ns;
        r->worst_time = crd_circuit_time(c);
    }
    if (iterations > r->worst_iterations) {
        r->worst_iterations = iterations;
        r->worst_iterations_time = crd_circuit_time(c);
    }
    r->shortest = fmin(r->shortest, size);
    r->longest = fmax(r->longest, size);
}

static crd_status before_step(void* user, double t)
{
    run* r = user;
    const crd_status st = crdi_circuit_feed(r->j, t);
    r->from = crd_circuit_time(r->j->c);
    r->stepping = st >= 0;
    r->step_began_ns = crdi_now_ns();
    return st;
}

static crd_status after_step(void* user, crd_circuit* c)
{
    run* r = user;
    const int64_t end = crdi_now_ns(), took = end - r->step_began_ns;
    r->stepping = false;
    const double size = r->j->o->variable ? crd_circuit_time(c) - r->from : r->j->opt.step;
    count_step(r, took > r->clock_ns ? took - r->clock_ns : 0, size);
    circuit_run_show_progress(r, end);
    r->stopped = crdi_interrupted();
    return circuit_run_observe(r);
}

static crd_status all_steps(run* r)
{
    crdi_circuit_job* j = r->j;
    crd_circuit_control control = crd_circuit_control_defaults();
    const crdi_circuit_command* o = j->o;
    if (!isnan(o->relative)) { control.relative = o->relative; }
    if (!isnan(o->voltage)) { control.voltage = o->voltage; }
    if (!isnan(o->current)) { control.current = o->current; }
    if (!isnan(o->smallest)) { control.smallest = o->smallest; }
    control.largest = isnan(o->largest) ? j->n->tran_largest : o->largest;
    const crd_circuit_course course = {.stop = j->stop,
                                       .control = o->variable ? &control : NULL,
                                       .before = before_step,
                                       .after = after_step,
                                       .user = r,
                                       .ended = &r->stopped};
    crd_status st = circuit_run_observe(r);
    if (st >= 0) { st = crd_circuit_run(j->c, &course); }
    return st < 0 && r->stepping ? crdi_fail_in(j->cli->ctx, st, "%s", j->path) : st;
}

// ---- recording ---------------------------------------------------------------------------------

static crd_status open_results(run* r)
{
    crd_status st = CRD_OK;
    crdi_circuit_job* j = r->j;
    crd_context* ctx = j->cli->ctx;
    const crdi_circuit_command* o = j->o;
    if (!o->output) { return CRD_OK; }
    r->results = o->output;
    CRD_TRY(crdi_refuse_overwriting(ctx, r->results, j->path, "the results", "the netlist"));
    CRD_TRY(
        crdi_refuse_overwriting(ctx, r->results, o->input, "the results", "the input of the run"));
    const int n = j->signal_count;
    crd_column* columns = crdi_arena_new(&j->arena, (size_t)n, sizeof *columns);
    if (!columns) { return CRD_E_MEMORY; }
    for (int i = 0; i < n; i++) {
        columns[i] = (crd_column){.name = j->probes[i].name,
                                  .unit = j->probes[i].unit,
                                  .description = "",
                                  .type = CRD_FLOAT64};
    }
    const crd_attachment netlist = {.name = "netlist.cir",
                                    .mime = "text/plain",
                                    .data = j->flat.data,
                                    .length = j->flat.length};
    const crd_recorder_options opt = {.path = r->results,
                                      .columns = columns,
                                      .column_count = n,
                                      .unit_row = o->unit_row,
                                      .attachments = &netlist,
                                      .attachment_count = j->flat.length > 0,
                                      .mat_version = o->mat_version == 0   ? 5
                                                     : o->mat_version == 1 ? 73
                                                                           : 0,
                                      .title = *j->n->title ? j->n->title : NULL};
    st = crd_recorder_create(ctx, &opt, &r->recorder);
fail:
    return st;
}

// ---- the report --------------------------------------------------------------------------------

static double span(const run* r)
{
    return r->last - r->first;
}

static double mean_of(const run* r, const crdi_circuit_signal* s)
{
    return span(r) > 0 ? s->area / span(r) : s->last;
}

static double rms_of(const run* r, const crdi_circuit_signal* s)
{
    return span(r) > 0 ? sqrt(s->square / span(r)) : fabs(s->last);
}

static void say_steps(crdi_result* out, const run* r, const char* how)
{
    const crdi_circuit_job* j = r->j;
    char a[32], b[32];
    crdi_say(out, "time     0 s to %.10g s in %" PRId64 " step%s of ", crd_circuit_time(j->c),
             r->steps, crdi_plural(r->steps));
    if (j->o->variable && r->steps) {
        const crd_circuit_counts n = crd_circuit_get_counts(j->c);
        crdi_say(out, "%s to %s; %s\n", crdi_format_seconds(a, r->shortest),
                 crdi_format_seconds(b, r->longest), how);
        crdi_say(out,
                 "control  %" PRId64 " step%s rejected, %" PRId64 " event%s, %" PRId64
                 " factorisation%s\n",
                 n.rejected, crdi_plural(n.rejected), n.events, crdi_plural(n.events),
                 n.factorisations, crdi_plural(n.factorisations));
    } else {
        crdi_say(out, "%s; %s\n", crdi_format_seconds(a, j->opt.step), how);
    }
}

static void circuit_run_say_summary(crdi_result* out, const run* r, const char* how)
{
    const crdi_circuit_job* j = r->j;
    const double t = crd_circuit_time(j->c);
    char a[32], b[32];
    crdi_say(out, "circuit  %d part%s, %d node%s; %s, %s form\n", j->n->part_count,
             crdi_plural(j->n->part_count), j->n->node_count, crdi_plural(j->n->node_count),
             crdi_circuit_method_text(j->opt.method), crd_circuit_form_name(j->c));
    if (j->chosen) {
        crdi_say(out, "chosen   %s with steps of %s for %g: error about %.2g of the range of %s\n",
                 crdi_circuit_methods[j->choice.method], crdi_format_seconds(a, j->choice.step),
                 j->o->accuracy, j->choice.error,
                 j->n->output_count ? j->n->outputs[j->choice.worst].name
                                    : j->n->nodes[j->choice.worst]);
    }
    if (j->chosen && j->choice.step >= j->longest && j->choice.error < 0.1 * j->o->accuracy) {
        crdi_say(out, "hint     no longer step than %s was tried; --step lets it try longer ones\n",
                 crdi_format_seconds(a, j->longest));
    }
    say_steps(out, r, how);
    if (r->steps) {
        const double factor = t / r->wall;
        crdi_say(out, "speed    %.*f x real time; %s of CPU time per simulated second, %s in all\n",
                 factor < 10     ? 3
                 : factor < 1000 ? 1
                                 : 0,
                 factor, crdi_format_seconds(a, r->cpu / t), crdi_format_seconds(b, r->cpu));
        crdi_say(out, "step     %s on average",
                 crdi_format_seconds(a, 1e-9 * (double)r->step_ns / (double)r->steps));
        crdi_say(out, ", %s at worst (to t = %.6g s)\n",
                 crdi_format_seconds(a, 1e-9 * (double)r->worst_ns), r->worst_time);
        if (r->worst_iterations > 1) {
            crdi_say(out, "newton   %.1f iterations on average, %d at worst (to t = %.6g s)\n",
                     (double)r->iterations / (double)r->steps, r->worst_iterations,
                     r->worst_iterations_time);
        }
    }
    if (r->recorder) {
        crdi_say(out, "results  %" PRId64 " row%s of %d signal%s in %s\n", r->rows,
                 crdi_plural(r->rows), j->signal_count, crdi_plural(j->signal_count), r->results);
    }
}

static void put_choice(crdi_result* o, const crdi_circuit_job* j)
{
    if (!j->chosen) { return; }
    crdi_put(o, REAL("accuracy", j->o->accuracy),
             TEXT("method", crdi_circuit_methods[j->choice.method]), REAL("step", j->choice.step),
             REAL("error", j->choice.error),
             TEXT("worst", j->n->output_count ? j->n->outputs[j->choice.worst].name
                                              : j->n->nodes[j->choice.worst]),
             INT("steps", j->choice.steps));
}

static void put_counts(crdi_result* o, const run* r)
{
    const double steps = r->steps ? (double)r->steps : NAN;
    crdi_put(o, INT("steps", r->steps), REAL("shortest_step", r->shortest),
             REAL("longest_step", r->longest),
             REAL("iterations_mean", (double)r->iterations / steps),
             INT("iterations_worst", r->worst_iterations),
             REAL("iterations_worst_time", r->worst_iterations_time), REAL("wall_time", r->wall),
             REAL("cpu_time", r->cpu));
    const double t = crd_circuit_time(r->j->c);
    crdi_put(o, REAL("cpu_time_per_second", r->cpu / t), REAL("real_time_factor", t / r->wall),
             REAL("step_time_mean", 1e-9 * (double)r->step_ns / steps),
             REAL("step_time_worst", 1e-9 * (double)r->worst_ns),
             REAL("step_time_worst_at", r->worst_time));
    const crd_circuit_counts n = crd_circuit_get_counts(r->j->c);
    crdi_put(o, INT("rejected", n.rejected), INT("factorisations", n.factorisations),
             INT("events", n.events));
}

static void circuit_run_put_signals(crdi_result* out, const run* r)
{
    static const crdi_column columns[] = {{"signal", "shown", "%s"},   {"", "unit", "%s"},
                                          {">final", "final", "%.6g"}, {">min", "min", "%.6g"},
                                          {">max", "max", "%.6g"},     {">mean", "mean", "%.6g"},
                                          {">rms", "rms", "%.6g"},     {0}};
    const crdi_circuit_job* j = r->j;
    crdi_result* signals = crdi_array(out, "signals");
    for (int i = 0; i < j->signal_count; i++) {
        const crdi_circuit_signal* s = &j->signals[i];
        const crd_circuit_probe* p = &j->probes[i];
        crdi_result* row = crdi_row(signals);
        crdi_put(
            row, TEXT("name", p->name), TEXT("unit", p->unit), REAL("final", s->last),
            REAL("min", s->least), REAL("max", s->most), REAL("mean", mean_of(r, s)),
            REAL("rms", rms_of(r, s)),
            CELL("shown", crdi_worded(out, "%.40s%s", p->name, strlen(p->name) > 40 ? "..." : "")));
        if (i >= TABLE_MOST) { crdi_only_json(row); }
    }
    if (r->recorder || isnan(r->first)) { return; }
    crdi_show_table(out, signals, columns, "");
    if (j->signal_count > TABLE_MOST) {
        crdi_say(out, "... and %d more; --json has them all, --output their courses\n",
                 j->signal_count - TABLE_MOST);
    }
}

static void circuit_run_put_run(crdi_result* o, const run* r, crd_status st)
{
    const crdi_circuit_job* j = r->j;
    crdi_put(o, TEXT("file", j->path), TEXT("title", j->n->title), INT("parts", j->n->part_count),
             INT("nodes", j->n->node_count), TEXT("method", crdi_circuit_methods[j->opt.method]),
             TEXT("form", crd_circuit_form_name(j->c)));
    put_choice(crdi_object_if(o, "chosen", j->chosen), j);
    crdi_put(o, BOOL("variable", j->o->variable), REAL("step", j->opt.step), REAL("stop", j->stop),
             REAL("time", crd_circuit_time(j->c)),
             TEXT("end", r->stopped ? "interrupted"
                         : st < 0   ? "failed"
                                    : "stop time"));
    put_counts(o, r);
    crdi_put(o, INT("rows", r->rows), TEXT("results", r->recorder ? r->results : NULL));
    circuit_run_put_signals(o, r);
}

// ---- from begin to end -------------------------------------------------------------------------

// Among .tran's step (or --step) and parts of it: that is the grid on which results are wanted.
static crd_status circuit_run_choose(crdi_circuit_job* j)
{
    if (isnan(j->o->accuracy)) { return CRD_OK; }
    if (isnan(j->opt.step)) { j->opt.step = 1e-3 * j->stop; }
    j->longest = j->opt.step;
    const crd_status st =
        crd_circuit_choose(j->cli->ctx, j->n, &j->opt, j->o->accuracy, j->stop, &j->choice);
    if (st < 0) { return crdi_fail_in(j->cli->ctx, st, "%s: --accuracy", j->path); }
    j->chosen = true;
    j->opt.method = j->choice.method;
    j->opt.step = j->choice.step;
    return CRD_OK;
}

static crd_status circuit_run_check_times(crdi_circuit_job* j)
{
    crd_context* ctx = j->cli->ctx;
    if (isnan(j->stop)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: there is no .tran; expected --stop with the end",
                         j->path);
    }
    if (!j->o->variable && isnan(j->o->accuracy) && j->opt.step > j->stop * (1 + 1e-9)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: step %g s, expected no more than stop, %g s",
                         j->path, j->opt.step, j->stop);
    }
    if (j->stop / j->opt.step > 1e15) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: %g s in steps of %g s, expected at most 1e15 steps",
                         j->path, j->stop, j->opt.step);
    }
    if (j->from >= j->stop) {
        return crdi_fail(ctx, CRD_E_RANGE, "--from = %g s, expected less than stop, %g s", j->from,
                         j->stop);
    }
    return CRD_OK;
}

static crd_status circuit_run_finish(run* r, crd_status st)
{
    crdi_circuit_job* j = r->j;
    crd_context* ctx = j->cli->ctx;
    crdi_progress_end(ctx);
    if (r->recorder) {
        char before[1024];
        snprintf(before, sizeof before, "%s", crd_error_text(ctx));
        const crd_status written = crd_recorder_finish(r->recorder);
        r->rows = crd_recorder_rows(r->recorder);
        if (written < 0) {
            st = written;
        } else if (st < 0) {
            st = crdi_fail(ctx, st, "%s", before);
        }
    }
    if (st == CRD_OK && r->stopped) {
        st = crdi_fail(ctx, CRD_E_STATE, "interrupted at t = %.10g s%s%s", crd_circuit_time(j->c),
                       r->recorder ? "; everything up to there is recorded in " : "",
                       r->recorder ? r->results : "");
    }
    return st;
}

static void report(run* r, crd_status st)
{
    crdi_circuit_job* j = r->j;
    circuit_run_put_run(j->out, r, st);
    crdi_put_status(j->cli, j->out, st);
    if (j->o->common.quiet || j->o->common.json) { return; }
    crdi_result* aside = crdi_aside(j->out);
    circuit_run_say_summary(aside, r,
                            r->stopped ? "interrupted"
                            : st < 0   ? "failed"
                                       : "stop time reached");
    if (!r->recorder && !isnan(r->first)) { crdi_say(aside, "\n"); }
}

static crd_status choose_signals(crdi_circuit_job* j)
{
    crd_context* ctx = j->cli->ctx;
    crd_circuit_probes found = {0};
    crd_status st = crd_circuit_find_probes(ctx, j->n, j->o->signals.items, j->o->signals.count,
                                            &j->arena, &found);
    if (st < 0) {
        char text[700];
        snprintf(text, sizeof text, "%s", crd_error_text(ctx));
        return crdi_fail(ctx, st, "--%s", text);
    }
    j->probes = found.all;
    j->signal_count = found.count;
    j->left_out = found.left_out;
    if (found.left_out) {
        crdi_log(j->ctx, CRD_LOG_INFO,
                 "the first %d of %d nodes are shown; choose with --signals or .output",
                 found.count, found.count + found.left_out);
    }
    j->signals = crdi_arena_new(&j->arena, (size_t)found.count, sizeof *j->signals);
    return j->signals ? CRD_OK : CRD_E_MEMORY;
}

// The run as such. `*begun`: steps were made, so there is something to report.
static crd_status attempt(run* r, bool* begun)
{
    crdi_circuit_job* j = r->j;
    crd_status st = CRD_OK;
    *begun = false;
    CRD_TRY(crd_circuit_create(j->cli->ctx, j->n, &j->opt, &j->c));
    CRD_TRY(crdi_circuit_begin(j));
    // Before there is a file to look at.
    (void)crdi_interrupt_catch(&(crdi_interrupt_options){.restart = true});
    signal(SIGXFSZ, SIG_IGN); // a file that grows too large is then an error of write
    CRD_TRY(open_results(r));
    *begun = true;
    r->clock_ns = crdi_clock_cost();
    r->begin_ns = r->shown_ns = crdi_now_ns();
    const int64_t cpu = crdi_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    st = all_steps(r);
    r->cpu = 1e-9 * (double)(crdi_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    r->wall = 1e-9 * (double)(crdi_now_ns() - r->begin_ns);
fail:
    return st;
}

static run fresh(crdi_circuit_job* j)
{
    for (int i = 0; i < j->signal_count; i++) {
        crdi_circuit_signal* s = &j->signals[i];
        s->last = s->least = s->most = s->area = s->square = 0;
    }
    return (run){.j = j,
                 .worst_time = NAN,
                 .worst_iterations_time = NAN,
                 .first = NAN,
                 .last = NAN,
                 .shortest = INFINITY};
}

// What the nodal form cannot do (an inductor that only blocking diodes hold, with tiny steps) the
// other one may: who asked for no form gets it. Not where Newton was kept short, which is no
// failure of the form, and not behind rows that standard output has already.
static bool other_form(run* r, crd_status st)
{
    crdi_circuit_job* j = r->j;
    const crdi_circuit_command* o = j->o;
    if (o->iterations > 0 || o->fixed_iterations > 0) { return false; }
    if (o->common.to_stdout && r->steps > 0) { return false; }
    if (st != CRD_E_CONVERGENCE || j->opt.form != CRD_FORM_AUTO || !j->c ||
        strcmp(crd_circuit_form_name(j->c), "nodal") != 0) {
        return false;
    }
    char text[700];
    snprintf(text, sizeof text, "%s; trying the dae form", crd_error_text(j->cli->ctx));
    crdi_message(j->cli, CRD_LOG_WARNING, text);
    crd_recorder_destroy(r->recorder);
    crd_circuit_destroy(j->c);
    j->c = NULL;
    j->opt.form = CRD_FORM_DAE;
    *r = fresh(j);
    return true;
}

crd_status crdi_circuit_run(crdi_circuit_job* j)
{
    crd_status st = CRD_OK;
    bool begun = false;
    run r = {.j = j};
    CRD_TRY(crdi_circuit_prepare(j, NAN));
    CRD_TRY(circuit_run_check_times(j));
    CRD_TRY(choose_signals(j));
    CRD_TRY(crdi_circuit_load_input(j));
    if (j->o->output) { CRD_TRY(crd_recorder_check_path(j->cli->ctx, j->o->output)); }
    CRD_TRY(circuit_run_choose(j));
    r = fresh(j);
    st = attempt(&r, &begun);
    if (other_form(&r, st)) { st = attempt(&r, &begun); }
    if (!begun) { goto fail; }
    st = circuit_run_finish(&r, st);
    report(&r, st);
fail:
    crd_recorder_destroy(r.recorder);
    return st;
}
