// cardan run: a system or a single FMU, from options to the table at the end.
#include "cardan/master.h"
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct run_options {
    crdi_common common;
    double start_time, stop_time, step, interval, tolerance, control, max_defect, max_energy;
    const char *scheme, *output, *variant;
    crdi_input input;
    crdi_list parameters, set, variables;
    int predict, threads, progress, interface, solver, mat_version;
    bool unit_row, iterate, no_quality;
} run_options;

enum { PROGRESS_AUTO, PROGRESS_JSON, PROGRESS_NONE };

// ---- the end by a signal -----------------------------------------------------------------------

static volatile bool stop_requested;
static volatile int64_t requested_ns;

// The first signal asks, the second one ends the process. What follows at once is the same wish
// told twice: timeout(1) signals its child and then the group in which the child is.
static void request_stop(int signal_number)
{
    const int64_t now = crdi_now_ns();
    if (!stop_requested) {
        requested_ns = now;
        stop_requested = true;
    } else if (now - requested_ns > 200000000) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    stop_requested = false;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGXFSZ, SIG_IGN); // a file that grows too large is then an error of write
}

static void end_at_once(int signal_number)
{
    (void)signal_number;
    _exit(crd_status_exit_code(CRD_E_CRASH));
}

// After a crash the heap may be damaged. Everything that matters is out: try to remove the
// unpacked files, and let nothing that happens on the way be seen.
static _Noreturn void leave_after_crash(crd_master* m)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGINT};
    struct sigaction action = {.sa_handler = end_at_once, .sa_flags = SA_NODEFER};
    sigemptyset(&action.sa_mask);
    sigset_t all;
    sigemptyset(&all);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaction(signals[i], &action, NULL);
        sigaddset(&all, signals[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &all, NULL);
    fflush(NULL);
    alarm(2); // somebody may have died with a lock in his hand
    crd_master_destroy(m);
    _exit(crd_status_exit_code(CRD_E_CRASH));
}

// ---- progress ----------------------------------------------------------------------------------

typedef struct progress {
    crdi_cli* cli;
    int64_t begin_ns;
    int mode;
} progress;

static void show_progress(void* user, double time, double start, double stop)
{
    progress* p = user;
    char line[256];
    const double elapsed = 1e-9 * (double)(crdi_now_ns() - p->begin_ns);
    const double fraction = stop > start ? (time - start) / (stop - start) : 1;
    int n = 0;
    if (p->mode == PROGRESS_JSON) {
        n = snprintf(line, sizeof line,
                     "{\"time\": %.17g, \"start\": %.17g, \"stop\": %.17g, \"fraction\": %.6f, "
                     "\"elapsed\": %.6f}\n",
                     time, start, stop, fraction, elapsed);
        crdi_write_all(STDERR_FILENO, line, (size_t)n);
        return;
    }
    if (elapsed < 1) { return; }
    const double left = fraction > 0 ? elapsed * (1 - fraction) / fraction : NAN;
    n = snprintf(line, sizeof line,
                 "\rt = %.6g s of %.6g s, %.1f %%, %.3g x real time, %.0f s left", time, stop,
                 100 * fraction, (time - start) / elapsed, left);
    struct winsize size = {0};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && n > size.ws_col) {
        n = size.ws_col; // with the \r one less: a line that wraps cannot be erased
    }
    n += snprintf(line + n, sizeof line - (size_t)n, "\033[K");
    pthread_mutex_lock(&p->cli->lock);
    crdi_write_all(STDERR_FILENO, line, (size_t)n);
    p->cli->progress_shown = true;
    pthread_mutex_unlock(&p->cli->lock);
}

static void erase_progress(crdi_cli* cli)
{
    if (!cli->progress_shown) { return; }
    static const char erase[] = "\r\033[K";
    crdi_write_all(STDERR_FILENO, erase, sizeof erase - 1);
    cli->progress_shown = false;
}

// ---- options into the system -------------------------------------------------------------------

static void take(double value, double* target)
{
    if (!isnan(value)) { *target = value; }
}

static crd_status refuse_overwriting(crd_system* s, const char* what, const char* path)
{
    if (!path || !crdi_same_file(path, s->results.path)) { return CRD_OK; }
    return crdi_fail(s->ctx, CRD_E_RANGE,
                     "%s: the results would overwrite %s; choose another file with --output",
                     s->results.path, what);
}

// Where the results go: --output, else what the system says, else <stem>.csv in this folder.
static crd_status choose_output(crd_system* s, const char* subject, const run_options* o)
{
    crd_results_spec* r = &s->results;
    if (o->output && strcmp(o->output, "none") == 0) {
        r->path = NULL;
        return CRD_OK;
    }
    if (o->output && strcmp(o->output, "-") == 0) {
        if (o->common.json) {
            return crdi_fail(s->ctx, CRD_E_RANGE,
                             "--json and --output - both write to standard output, expected "
                             "--output with a file");
        }
        r->path = "/dev/stdout";
        return CRD_OK;
    }
    if (o->output) {
        r->path = crdi_arena_text(&s->arena, o->output, strlen(o->output));
    } else if (!r->path) {
        const char* stem = crdi_file_stem(&s->arena, subject);
        r->path = stem ? crdi_arena_format(&s->arena, "%s.csv", stem) : NULL;
    }
    if (!r->path) { return CRD_E_MEMORY; }
    crd_status st = refuse_overwriting(s, "what is run", subject);
    if (st == CRD_OK) { st = refuse_overwriting(s, "the input of the run", o->input.path); }
    for (int i = 0; st == CRD_OK && i < s->unit_count; i++) {
        st = refuse_overwriting(s, "the file of a unit", s->units[i].path);
    }
    return st;
}

static crd_status apply_variables(crd_system* s, const crdi_list* patterns)
{
    if (!patterns->count) { return CRD_OK; }
    const char** copy = crdi_arena_new(&s->arena, (size_t)patterns->count, sizeof *copy);
    if (!copy) { return CRD_E_MEMORY; }
    for (int i = 0; i < patterns->count; i++) {
        copy[i] = patterns->items[i]; // arguments outlive the system
    }
    s->results.patterns = copy;
    s->results.pattern_count = patterns->count;
    return CRD_OK;
}

// A limit needs what it is a limit of.
static crd_status apply_limits(crd_system* s, const run_options* o)
{
    const bool defect = !isnan(o->max_defect), energy = !isnan(o->max_energy);
    if (o->no_quality && (defect || energy)) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "--%s needs what --no-quality switches off",
                         defect ? "max-defect" : "max-energy");
    }
    if (energy && s->bond_count == 0) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "--max-energy: the system has no power bond whose energy is known, "
                         "expected 'bonds: [[unit.force, unit.velocity]]' in its description");
    }
    if (o->no_quality) { s->run.monitor = 0; }
    if (defect) { s->run.monitor |= CRD_MONITOR_DEFECT; }
    if (energy) { s->run.monitor |= CRD_MONITOR_ENERGY; }
    return CRD_OK;
}

static crd_status apply_options(crd_system* s, const char* subject, const run_options* o)
{
    crd_status st = CRD_OK;
    take(o->start_time, &s->run.start);
    take(o->stop_time, &s->run.stop);
    take(o->step, &s->run.step);
    take(o->tolerance, &s->run.tolerance);
    take(o->interval, &s->results.interval);
    if (o->threads >= 0) { s->run.threads = o->threads; }
    if (o->unit_row) { s->results.unit_row = true; }
    if (o->mat_version >= 0) { s->results.mat_version = o->mat_version == 0 ? 5 : 73; }
    for (int i = 0; i < s->unit_count; i++) {
        crd_unit_spec* u = &s->units[i];
        if (u->source != CRD_UNIT_FMU) { continue; }
        if (o->interface >= 0) { u->interface = (crd_interface)(o->interface + 1); }
        if (o->solver >= 0) { u->solver.method = (crd_solver)o->solver; }
    }
    if (o->predict >= 0) {
        s->run.predict = (crd_prediction)o->predict;
        for (int i = 0; i < s->connection_count; i++) {
            s->connections[i].predict = s->run.predict;
        }
    }
    if (!isnan(o->control)) {
        s->run.control.on = true;
        s->run.control.tolerance = o->control;
        s->run.control.place = (crd_place){.file = "--control"};
    }
    if (o->iterate) {
        s->run.iterate.on = true;
        s->run.iterate.place = (crd_place){.file = "--iterate"};
    }
    CRD_TRY(apply_limits(s, o));
    CRD_TRY(crdi_check_times(s));
    if (o->scheme) {
        CRD_TRY(crd_system_set_scheme(s, o->scheme, (crd_place){.file = "--scheme"}));
    }
    for (int i = 0; i < o->parameters.count; i++) {
        CRD_TRY(crdi_apply_parameters(s, o->parameters.items[i]));
    }
    for (int i = 0; i < o->set.count; i++) {
        CRD_TRY(crdi_apply_set(s, o->set.items[i]));
    }
    CRD_TRY(apply_variables(s, &o->variables));
    CRD_TRY(choose_output(s, subject, o));
    CRD_TRY(crdi_connect_input(s, &o->input));
fail:
    return st;
}

// ---- the report --------------------------------------------------------------------------------

static const char* end_text(crd_end end)
{
    static const char* const texts[] = {"not begun", "stop time reached", "a unit ended the run",
                                        "interrupted", "failed"};
    return texts[end];
}

static double in_unit(const crd_unit_report* u)
{
    return u->time_step + u->time_get + u->time_set;
}

// What shares are parts of: the time of all threads in steps. The times of units are estimated
// from some of their steps; where these add up to more, their sum is the whole.
static double whole_time(const crd_master_report* r)
{
    double sum = 0;
    for (int i = 0; i < r->unit_count; i++) {
        sum += in_unit(&r->units[i]);
    }
    return fmax(sum, r->wall_time * r->threads);
}

static void print_units(crd_context* ctx, const crd_master_report* r, FILE* f)
{
    const double whole = whole_time(r);
    crdi_grid g;
    char a[32], b[32], c[32], d[32], e[32];
    crdi_grid_init(&g, ctx, 9, 0x1FC);
    static const char* const titles[] = {"unit",   "kind",   "steps", "step size", "in step",
                                         "in get", "in set", "share", "worst step"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    double sum = 0;
    for (int i = 0; i < r->unit_count; i++) {
        const crd_unit_report* u = &r->units[i];
        sum += in_unit(u);
        crdi_grid_add(&g, "%s", u->name);
        crdi_grid_add(&g, "%s", u->kind);
        crdi_grid_add(&g, "%" PRId64, u->steps);
        crdi_grid_add(&g, "%s", crdi_format_seconds(a, u->step_size));
        crdi_grid_add(&g, "%s", crdi_format_seconds(b, u->time_step));
        crdi_grid_add(&g, "%s", crdi_format_seconds(c, u->time_get));
        crdi_grid_add(&g, "%s", crdi_format_seconds(d, u->time_set));
        crdi_grid_add(&g, "%.0f %%", whole > 0 ? 100 * in_unit(u) / whole : 0);
        crdi_grid_add(&g, "%s", crdi_format_seconds(e, u->worst_step));
    }
    if (r->threads == 1 && whole > sum) {
        for (int i = 0; i < 9; i++) {
            if (i == 7) {
                crdi_grid_add(&g, "%.0f %%", 100 * (1 - sum / whole));
            } else {
                crdi_grid_add(&g, "%s", i == 0 ? "(master, recording)" : "");
            }
        }
    }
    crdi_grid_print(&g, f, "  ");
    crdi_grid_clear(&g);
}

static void add_score(crdi_grid* g, double x)
{
    if (isnan(x)) {
        crdi_grid_add(g, "-"); // nothing could be compared
    } else {
        crdi_grid_add(g, "%.4g", x);
    }
}

static void add_tap(crdi_grid* g, const crd_tap_report* t, bool is_shadow)
{
    crdi_grid_add(g, "%s%s", t->label, is_shadow ? " (shadow)" : "");
    add_score(g, 100 * t->metrics.C);
    add_score(g, t->metrics.rms);
    add_score(g, t->metrics.worst);
}

static void print_couplings(crd_context* ctx, const crd_master_report* r, FILE* f)
{
    static const char* const titles[] = {"coupling", "algorithm", "C [%]", "rms",  "worst",
                                         "k",        "max k",     "sent",  "lost", "filled",
                                         "late",     "twice",     "jumps"};
    enum { COLUMNS = sizeof titles / sizeof *titles, SCORES = 5 };
    crdi_grid g;
    crdi_grid_init(&g, ctx, COLUMNS, 0x1FFC);
    for (int i = 0; i < COLUMNS; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    for (int i = 0; i < r->coupling_count; i++) {
        const crd_coupling_report* c = &r->couplings[i];
        const crd_coupling_counts* n = &c->taps[0].counts;
        crdi_grid_add(&g, "%s -> %s", c->from, c->to);
        add_tap(&g, &c->taps[0], false);
        if (isnan(c->k_mean)) {
            crdi_grid_add(&g, "-");
        } else {
            crdi_grid_add(&g, "%.2f", c->k_mean);
        }
        crdi_grid_add(&g, "%d", c->k_max);
        const int64_t counts[] = {c->sent, c->lost, n->filled, n->late, n->duplicates, n->jumps};
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            crdi_grid_add(&g, "%" PRId64, counts[k]);
        }
        for (int t = 1; t < c->tap_count; t++) {
            crdi_grid_add(&g, "%s", "");
            add_tap(&g, &c->taps[t], true);
            for (int k = SCORES; k < COLUMNS; k++) {
                crdi_grid_add(&g, "%s", "");
            }
        }
    }
    crdi_grid_print(&g, f, "  ");
    crdi_grid_clear(&g);
}

static void print_learning(const crd_coupling_report* c, FILE* f)
{
    for (int t = 0; t < c->tap_count; t++) {
        const crd_tap_report* p = &c->taps[t];
        if (!p->learns) { continue; }
        if (p->connects == 0) {
            fprintf(f, "learning %s, %s: the server was never reached\n", c->to, p->label);
            continue;
        }
        fprintf(f,
                "learning %s, %s: %" PRId64 " network%s from the server, %" PRId64
                " taken over, %" PRId64 " rolled back\n",
                c->to, p->label, p->networks, crdi_plural(p->networks), p->counts.swaps,
                p->counts.rollbacks);
    }
}

static void print_report(crdi_cli* cli, const crd_master_report* r, FILE* f)
{
    char a[32], b[32], c[32];
    fprintf(f, "time     %.10g s to %.10g s in %" PRId64 " step%s of %s; %s%s%s\n", r->start,
            r->time, r->steps, crdi_plural(r->steps),
            r->control.on ? "variable length" : crdi_format_seconds(a, r->step), end_text(r->end),
            *r->end_unit ? ": " : "", r->end_unit);
    const double simulated = r->time - r->start;
    const double factor = r->wall_time > 0 ? simulated / r->wall_time : 0;
    fprintf(f, "speed    %.*f x real time: %s in steps, %s to initialise, %d thread%s\n",
            factor < 10     ? 3
            : factor < 1000 ? 1
                            : 0,
            factor, crdi_format_seconds(b, r->wall_time),
            crdi_format_seconds(c, r->initialization_time), r->threads, crdi_plural(r->threads));
    for (int i = 0; i < r->loop_count; i++) {
        const crd_loop_report* l = &r->loops[i];
        fprintf(f, "loop     %s: %d unknown%s, %d %s iteration%s, residual %.2g%s\n", l->text,
                l->size, crdi_plural(l->size), l->iterations, l->newton ? "Newton" : "fixed-point",
                crdi_plural(l->iterations), l->residual, l->converged ? "" : ", not converged");
    }
    crdi_print_step_quality(r, f);
    for (int i = 0; i < r->coupling_count; i++) {
        const crd_coupling_report* k = &r->couplings[i];
        if (*k->hint) { fprintf(f, "hint     %s -> %s: %s\n", k->from, k->to, k->hint); }
        print_learning(k, f);
    }
    if (*r->results) {
        fprintf(f, "results  %" PRId64 " row%s in %s\n", r->rows, crdi_plural(r->rows), r->results);
    } else {
        fprintf(f, "results  not recorded\n");
    }
    print_units(cli->ctx, r, f);
    if (r->coupling_count) { print_couplings(cli->ctx, r, f); }
    crdi_print_quality(cli->ctx, r, f);
}

// In one write, so that nothing comes in between.
static void show_report(crdi_cli* cli, const crd_master_report* r)
{
    char* text = NULL;
    size_t length = 0;
    FILE* f = open_memstream(&text, &length);
    if (!f) { return; }
    print_report(cli, r, f);
    if (fclose(f) == 0) { crdi_write_all(STDERR_FILENO, text, length); }
    free(text);
}

static json_t* unit_to_json(const crd_unit_report* u, double whole)
{
    json_t* j = json_object();
    json_object_set_new(j, "name", crdi_json_text(u->name));
    json_object_set_new(j, "kind", crdi_json_text(u->kind));
    json_object_set_new(j, "steps", json_integer(u->steps));
    json_object_set_new(j, "step_size", crdi_json_number(u->step_size));
    json_object_set_new(j, "time_step", crdi_json_number(u->time_step));
    json_object_set_new(j, "time_get", crdi_json_number(u->time_get));
    json_object_set_new(j, "time_set", crdi_json_number(u->time_set));
    json_object_set_new(j, "share", crdi_json_number(in_unit(u) / whole));
    json_object_set_new(j, "worst_step", crdi_json_number(u->worst_step));
    json_object_set_new(j, "measured", json_integer(u->measured));
    return j;
}

static json_t* loop_to_json(const crd_loop_report* l)
{
    json_t* j = json_object();
    json_object_set_new(j, "loop", crdi_json_text(l->text));
    json_object_set_new(j, "size", json_integer(l->size));
    json_object_set_new(j, "iterations", json_integer(l->iterations));
    json_object_set_new(j, "residual", crdi_json_number(l->residual));
    json_object_set_new(j, "method", json_string(l->newton ? "newton" : "fixed point"));
    json_object_set_new(j, "converged", json_boolean(l->converged));
    return j;
}

// How good the estimates of an element were, into `j`.
static void tap_to_json(json_t* j, const crd_tap_report* t)
{
    json_object_set_new(j, "algorithm", crdi_json_text(t->label));
    json_object_set_new(j, "scored", json_integer(t->scored));
    json_object_set_new(j, "C", crdi_json_number(100 * t->metrics.C));
    json_object_set_new(j, "M", crdi_json_number(100 * t->metrics.M));
    json_object_set_new(j, "P", crdi_json_number(100 * t->metrics.P));
    json_object_set_new(j, "rms", crdi_json_number(t->metrics.rms));
    json_object_set_new(j, "worst", crdi_json_number(t->metrics.worst));
    json_object_set_new(j, "learns", json_boolean(t->learns));
    json_object_set_new(j, "networks", json_integer(t->networks));
    json_object_set_new(j, "connects", json_integer((json_int_t)t->connects));
    json_object_set_new(j, "swaps", json_integer(t->counts.swaps));
    json_object_set_new(j, "rollbacks", json_integer(t->counts.rollbacks));
}

static json_t* coupling_to_json(const crd_coupling_report* c)
{
    const crd_coupling_counts* n = &c->taps[0].counts;
    const struct {
        const char* name;
        int64_t value;
    } counts[] = {{"sent", c->sent},
                  {"lost", c->lost},
                  {"repeated", c->repeated},
                  {"filled", n->filled},
                  {"late", n->late},
                  {"too_late", n->too_late},
                  {"duplicates", n->duplicates},
                  {"not_finite", n->not_finite},
                  {"beyond", n->beyond},
                  {"jumps", n->jumps},
                  {"restarts", n->restarts}};
    json_t* j = json_object();
    json_object_set_new(j, "from", crdi_json_text(c->from));
    json_object_set_new(j, "to", crdi_json_text(c->to));
    json_object_set_new(j, "step", crdi_json_number(c->step));
    tap_to_json(j, &c->taps[0]);
    json_object_set_new(j, "k_mean", crdi_json_number(c->k_mean));
    json_object_set_new(j, "k_max", json_integer(c->k_max));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        json_object_set_new(j, counts[i].name, json_integer(counts[i].value));
    }
    json_t* shadows = json_array();
    for (int t = 1; t < c->tap_count; t++) {
        json_t* shadow = json_object();
        tap_to_json(shadow, &c->taps[t]);
        json_array_append_new(shadows, shadow);
    }
    json_object_set_new(j, "shadows", shadows);
    json_object_set_new(j, "hint", *c->hint ? crdi_json_text(c->hint) : json_null());
    return j;
}

static json_t* report_to_json(const crd_master_report* r)
{
    static const char* const ends[] = {"none", "stop time", "unit", "interrupted", "failed"};
    json_t* j = json_object();
    json_object_set_new(j, "end", json_string(ends[r->end]));
    json_object_set_new(j, "end_unit", *r->end_unit ? crdi_json_text(r->end_unit) : json_null());
    json_object_set_new(j, "start", crdi_json_number(r->start));
    json_object_set_new(j, "stop", crdi_json_number(r->stop));
    json_object_set_new(j, "step", crdi_json_number(r->step));
    json_object_set_new(j, "time", crdi_json_number(r->time));
    json_object_set_new(j, "steps", json_integer(r->steps));
    json_object_set_new(j, "threads", json_integer(r->threads));
    json_object_set_new(j, "wall_time", crdi_json_number(r->wall_time));
    json_object_set_new(j, "initialization_time", crdi_json_number(r->initialization_time));
    json_object_set_new(j, "real_time_factor",
                        crdi_json_number((r->time - r->start) / r->wall_time));
    json_object_set_new(j, "rows", json_integer(r->rows));
    json_object_set_new(j, "results", *r->results ? crdi_json_text(r->results) : json_null());
    const double whole = whole_time(r);
    json_t* units = json_array();
    for (int i = 0; i < r->unit_count; i++) {
        json_array_append_new(units, unit_to_json(&r->units[i], whole));
    }
    json_object_set_new(j, "units", units);
    json_t* loops = json_array();
    for (int i = 0; i < r->loop_count; i++) {
        json_array_append_new(loops, loop_to_json(&r->loops[i]));
    }
    json_object_set_new(j, "loops", loops);
    json_t* couplings = json_array();
    for (int i = 0; i < r->coupling_count; i++) {
        json_array_append_new(couplings, coupling_to_json(&r->couplings[i]));
    }
    json_object_set_new(j, "couplings", couplings);
    crdi_quality_to_json(r, j);
    return j;
}

// Also for runs that did not begin: `r` may be NULL.
static crd_status report_json(crdi_cli* cli, const crd_master_report* r, crd_status st)
{
    json_t* j = r ? report_to_json(r) : json_object();
    json_object_set_new(j, "status", json_string(crd_status_name(st)));
    json_object_set_new(j, "exit_code", json_integer(crd_status_exit_code(st)));
    json_object_set_new(j, "error",
                        st < 0 ? crdi_json_text(crd_error_text(cli->ctx)) : json_null());
    json_object_set(j, "warnings", cli->warnings);
    const crd_status printed = crdi_json_print(cli, j);
    return st < 0 ? st : printed;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status interrupted(crd_context* ctx, const crd_master_report* r)
{
    return crdi_fail(ctx, CRD_E_STATE, "interrupted at t = %.10g s%s%s", r->time,
                     *r->results ? "; everything up to there is recorded in " : "", r->results);
}

static crd_status run_system(crdi_cli* cli, const crd_system* s, const run_options* o)
{
    progress p = {.cli = cli, .begin_ns = crdi_now_ns(), .mode = o->progress};
    crd_master_options opt = crd_master_defaults();
    opt.stop = &stop_requested;
    opt.guard_crashes = true;
    take(o->max_defect, &opt.defect_goal);
    take(o->max_energy, &opt.energy_goal);
    const bool line = p.mode == PROGRESS_AUTO && cli->terminal && !o->common.quiet;
    if (line || p.mode == PROGRESS_JSON) {
        opt.progress = show_progress;
        opt.progress_user = &p;
    }
    crd_master* m = NULL;
    catch_signals();
    crd_status st = crd_master_create(cli->ctx, s, &opt, &m);
    if (st < 0) { return o->common.json ? report_json(cli, NULL, st) : st; }
    st = crd_master_run(m);
    erase_progress(cli);
    const crd_master_report* r = crd_master_get_report(m);
    if (st == CRD_OK && r->end == CRD_END_INTERRUPTED) { st = interrupted(cli->ctx, r); }
    if (st == CRD_OK) { st = crdi_check_limits(cli->ctx, r, o->max_defect, o->max_energy); }
    const bool began = r->rows > 0 || r->steps > 0 || st == CRD_OK;
    if (!o->common.quiet && began) { show_report(cli, r); }
    const crd_status run_status = st;
    if (o->common.json) { st = report_json(cli, r, st); }
    if (run_status == CRD_E_CRASH) {
        crdi_message(cli, CRD_LOG_ERROR, crd_error_text(cli->ctx));
        leave_after_crash(m);
    }
    crd_master_destroy(m);
    return st;
}

static crd_status run_run(crdi_cli* cli, const void* options, const crdi_list* arguments)
{
    const run_options* o = options;
    crd_system* s = NULL;
    crd_status st = crdi_load_variant(cli->ctx, arguments->items[0], o->variant, &s);
    if (st == CRD_OK) { st = apply_options(s, arguments->items[0], o); }
    if (st == CRD_OK) {
        st = run_system(cli, s, o);
    } else if (o->common.json) {
        st = report_json(cli, NULL, st);
    }
    crd_system_destroy(s);
    return st;
}

#define AT(field) .offset = offsetof(run_options, field)
static const char* const schemes[] = {"jacobi", "gauss-seidel", NULL};
static const char* const predictions[] = {"auto",    "hold",    "linear",  "quadratic",
                                          "taylor1", "taylor2", "hermite", "ab2",
                                          "ab3",     "ab4",     NULL};
_Static_assert(sizeof predictions / sizeof *predictions == CRD_PREDICTION_COUNT + 1,
               "a name for each prediction");
static const char* const interfaces[] = {"co-simulation", "model-exchange", NULL};
static const char* const solvers[] = {"bdf", "adams", "euler", "rk4", NULL};
static const char* const mat_versions[] = {"5", "7.3", NULL};
static const char* const progresses[] = {"auto", "json", "none", NULL};

static const crdi_option rows[] = {
    {.name = "start-time",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "TIME",
     .unit = "s",
     AT(start_time),
     .help = "where the run begins; what the units say, else 0"},
    {.name = "stop-time",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "TIME",
     .unit = "s",
     AT(stop_time),
     .help = "where the run ends; what the units say, else 1 s"},
    {.name = "step",
     .alias = "step-size",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "TIME",
     .unit = "s",
     .range = CRDI_POSITIVE,
     AT(step),
     .help = "macro step, the time between two exchanges; what the units say, else a thousandth "
             "of the run"},
    {.name = "scheme",
     .type = CRDI_OPT_TEXT,
     .metavar = "SCHEME",
     .choices = schemes,
     AT(scheme),
     .help = "jacobi, gauss-seidel (order from the dependencies) or a nested form as in "
             "'gauss-seidel: [a, jacobi: [b, c]]'"},
    {.name = "predict",
     .type = CRDI_OPT_CHOICE,
     .choices = predictions,
     AT(predict),
     .help = "how all connections continue their signal over a step; auto: as would have been best "
             "so far"},
    {.name = "control",
     .type = CRDI_OPT_NUMBER,
     .metavar = "TOL",
     .range = CRDI_POSITIVE,
     AT(control),
     .help = "variable steps: as long as the defects of connections stay near TOL times the size "
             "of their signal"},
    {.name = "iterate",
     .type = CRDI_OPT_FLAG,
     AT(iterate),
     .help = "repeat each step until inputs and outputs fit together, with the units that can go "
             "back"},
    {.name = "tolerance",
     .type = CRDI_OPT_NUMBER,
     .metavar = "REL",
     .range = CRDI_POSITIVE,
     AT(tolerance),
     .help = "relative tolerance that the units are told"},
    CRDI_PARAMETERS_OPTION(run_options, parameters),
    {.name = "set",
     .type = CRDI_OPT_LIST,
     .metavar = "UNIT.VAR=VALUE",
     AT(set),
     .help = "start value or parameter, with its unit if it has one ('mass.m=100 g'); for a "
             "single FMU VAR=VALUE"},
    CRDI_INPUT_OPTIONS(run_options, input),
    {.name = "output",
     .alias = "output-file",
     .short_name = 'o',
     .type = CRDI_OPT_FILE,
     .metavar = "FILE",
     .extensions = "csv|mf4|mat",
     AT(output),
     .help = "result file: .csv, .mf4 (MDF 4.10) or .mat; - for CSV on standard output, or none; "
             "what the system says, else the name of SYSTEM with .csv in the current folder"},
    {.name = "variables",
     .type = CRDI_OPT_LIST,
     .metavar = "PATTERN",
     AT(variables),
     .help = "variables to record, with * and ?; all outputs unless given"},
    {.name = "interval",
     .alias = "output-interval",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "TIME",
     .unit = "s",
     .range = CRDI_NOT_NEGATIVE,
     AT(interval),
     .help = "time between two rows; every macro step unless given"},
    {.name = "unit-row",
     .type = CRDI_OPT_FLAG,
     AT(unit_row),
     .help = "write the physical units as second line of the CSV"},
    {.name = "mat-version",
     .type = CRDI_OPT_CHOICE,
     .choices = mat_versions,
     AT(mat_version),
     .help = "of a .mat file: 5, which everything reads, or 7.3 (HDF5), which has no limit of "
             "size; 5 unless the results are too large for it"},
    {.name = "variant",
     .type = CRDI_OPT_TEXT,
     .metavar = "NAME",
     AT(variant),
     .help = "of an SSP: another .ssd file at its root"},
    {.name = "interface-type",
     .type = CRDI_OPT_CHOICE,
     .choices = interfaces,
     AT(interface),
     .help = "how FMUs are run that offer both; co-simulation unless given"},
    {.name = "solver",
     .type = CRDI_OPT_CHOICE,
     .choices = solvers,
     AT(solver),
     .help = "for Model Exchange: bdf and adams control their error (CVODE), euler and rk4 have "
             "fixed steps; bdf unless given"},
    {.name = "max-defect",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "FRACTION",
     .unit = "",
     .range = CRDI_POSITIVE,
     AT(max_defect),
     .help = "exit code 3 if the defect of a connection is more than this part of its signal's "
             "scale: 0.01 or '1 %'"},
    {.name = "max-energy",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "FRACTION",
     .unit = "",
     .range = CRDI_POSITIVE,
     AT(max_energy),
     .help = "exit code 3 if the exchange over a power bond puts in or takes out more than this "
             "part of the energy that passes it"},
    {.name = "no-quality",
     .type = CRDI_OPT_FLAG,
     AT(no_quality),
     .help = "watch neither defects nor energy; the results stay the same"},
    {.name = "threads",
     .type = CRDI_OPT_COUNT,
     .metavar = "N|auto",
     AT(threads),
     .help = "threads that step the units; auto measures at the start; the results do not depend "
             "on it"},
    {.name = "progress",
     .type = CRDI_OPT_CHOICE,
     .choices = progresses,
     AT(progress),
     .help = "on standard error: auto is a line on a terminal, json a line of JSON about ten "
             "times a second"},
    CRDI_JSON_OPTION("print the report at the end as JSON on standard output"),
    {.name = "quiet",
     .short_name = 'q',
     .type = CRDI_OPT_FLAG,
     .offset = offsetof(crdi_common, quiet),
     .help = "no report, no progress line, only errors on standard error"},
    CRDI_COMMON_OPTIONS,
};

static const run_options defaults = {
    .common = CRDI_COMMON_DEFAULTS,
    .start_time = NAN,
    .stop_time = NAN,
    .step = NAN,
    .interval = NAN,
    .tolerance = NAN,
    .input = CRDI_INPUT_DEFAULTS,
    .predict = -1,
    .control = NAN,
    .max_defect = NAN,
    .max_energy = NAN,
    .interface = -1,
    .solver = -1,
    .mat_version = -1,
    .threads = -1,
    .progress = PROGRESS_AUTO,
};

const crdi_command crdi_command_run = {
    .name = "run",
    .arguments = "SYSTEM|SSP|FMU|NETLIST",
    .summary = "run a system description (YAML), an SSP, a single FMU or netlist",
    .description =
        "Runs a system of units from a description in YAML or from an SSP, or a single FMU or "
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
        "so far and exit code 1; a second Ctrl-C ends it at once.",
    .examples = {{"cardan run oscillator.yaml --stop-time 10 -o run.csv", "run a system for 10 s"},
                 {"cardan run motor.fmu --step '1 ms' --set J=0.02 --input torque.csv",
                  "drive one FMU with a recording"},
                 {"cardan run car.ssp --variant winter -o winter.mf4",
                  "a variant of a package, recorded as MDF"},
                 {"cardan run system.yaml --scheme gauss-seidel --variables 'motor.*' --json",
                  "record the motor only; the report as JSON"},
                 {"cardan run system.yaml --max-defect '0.1 %'",
                  "exit code 3 if the coupling error of a connection is larger"}},
    .options = rows,
    .option_count = sizeof rows / sizeof *rows,
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "fmu|yaml|yml|ssp|ssd|cir|ckt|net|sp|spice",
    .size = sizeof(run_options),
    .defaults = &defaults,
    .run = run_run,
};
