// cardan circuit --realtime: how fast this machine steps this circuit, and what that holds.
#include "cardan/master.h"
#include "cli/circuit/circuit.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>

// ---- the machine -------------------------------------------------------------------------------

typedef struct machine {
    char kernel[128];
    bool realtime; // kernel
    bool locked;   // memory
} machine;

static machine look_at_machine(void)
{
    machine m = {.locked = crdi_lock_memory()};
    struct utsname u;
    if (uname(&u) == 0) {
        snprintf(m.kernel, sizeof m.kernel, "%.60s %.30s", u.sysname, u.release);
        m.realtime = strstr(u.version, "PREEMPT_RT") || strstr(u.version, "PREEMPT RT");
    }
    FILE* f = fopen("/sys/kernel/realtime", "re");
    if (f) {
        m.realtime = m.realtime || fgetc(f) == '1';
        fclose(f);
    }
    return m;
}

// ---- measuring ---------------------------------------------------------------------------------

typedef struct measured {
    crd_histogram times;
    int64_t over;        // steps that took longer than the step
    int64_t interrupted; // steps during which other work had the core
    int64_t own_most;    // ns, of the others
    int64_t least;       // ns
    long switches;       // away from us, as counted so far
    int64_t clock;       // ns, of reading the clock once
    int64_t iterations;
    int worst_iterations;
    double seconds; // wall
    machine m;
} measured;

int64_t crdi_clock_cost(void)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 200; i++) {
        const int64_t a = crdi_now_ns(), b = crdi_now_ns();
        least = b - a < least ? b - a : least;
    }
    return least;
}

static long switches_away(void)
{
    struct rusage u;
    return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nivcsw : 0;
}

// Who had the core is asked after long steps only: a step that was interrupted is one.
static void account(measured* x, int64_t took, double limit_ns)
{
    crd_histogram_add(&x->times, took);
    x->over += (double)took > limit_ns;
    x->least = took < x->least ? took : x->least;
    if (took > x->own_most && took > 4 * x->least) {
        const long switches = switches_away();
        const bool interrupted = switches != x->switches;
        x->switches = switches;
        if (interrupted) {
            x->interrupted++;
            return;
        }
    }
    x->own_most = took > x->own_most ? took : x->own_most;
}

// Steps back to back, from the start again when .tran's stop is reached.
static crd_status circuit_realtime_measure(crdi_circuit_job* j, measured* x)
{
    crd_status st = CRD_OK;
    const double limit_ns = 1e9 * j->opt.step;
    const double steps = isnan(j->stop) ? INFINITY : floor(j->stop / j->opt.step + 1e-6);
    x->least = INT64_MAX;
    x->switches = switches_away();
    const int64_t begin = crdi_now_ns();
    const int64_t end = begin + (int64_t)(1e9 * j->o->seconds);
    double done = 0;
    for (int64_t now = begin; now < end;) {
        if (!(done < steps) && done > 0) {
            CRD_TRY(crdi_circuit_begin(j));
            done = 0;
        }
        CRD_TRY(crdi_circuit_feed(j, crd_circuit_time(j->c) + j->opt.step));
        const int64_t from = crdi_now_ns();
        CRD_TRY(crd_circuit_step(j->c));
        now = crdi_now_ns();
        account(x, now - from - x->clock, limit_ns);
        const int iterations = crd_circuit_iterations(j->c);
        x->iterations += iterations;
        if (iterations > x->worst_iterations) { x->worst_iterations = iterations; }
        done++;
    }
    x->seconds = 1e-9 * (double)(crdi_now_ns() - begin);
fail:
    return st;
}

// ---- what it means -----------------------------------------------------------------------------

static double mean_of(const measured* x)
{
    return 1e-9 * (double)x->times.sum / (double)x->times.count;
}

static double circuit_realtime_worst_of(const measured* x)
{
    return 1e-9 * (double)x->times.max;
}

static double circuit_realtime_quantile(const measured* x, double q)
{
    return 1e-9 * (double)crd_histogram_quantile(&x->times, q);
}

static double own_worst(const measured* x)
{
    return 1e-9 * (double)x->own_most;
}

static bool circuit_realtime_is_held(const crdi_circuit_job* j, const measured* x)
{
    return circuit_realtime_worst_of(x) <= j->opt.step;
}

static double circuit_realtime_rate(double seconds) // rounded down to what can be said: two digits
{
    const double r = 1 / fmax(seconds, 1e-9);
    const double unit = pow(10, floor(log10(r)) - 1);
    return floor(r / unit) * unit;
}

// "12 400"
static const char* group_digits(char out[40], double x)
{
    char digits[32];
    const int n = snprintf(digits, sizeof digits, "%.0f", x);
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) { out[k++] = ' '; }
        out[k++] = digits[i];
    }
    out[k] = 0;
    return out;
}

static void circuit_realtime_put_times(crdi_result* out, const crdi_circuit_job* j,
                                       const measured* x)
{
    static const crdi_column columns[] = {{"", "name", "%s"}, {">", "time", "s"}, {0}};
    const struct {
        const char* name;
        double time;
    } rows[] = {{"p50", circuit_realtime_quantile(x, 0.5)},
                {"p99", circuit_realtime_quantile(x, 0.99)},
                {"p99.99", circuit_realtime_quantile(x, 0.9999)},
                {"worst", circuit_realtime_worst_of(x)},
                {"mean", mean_of(x)}};
    char a[32], n[40];
    crdi_say(out, "%s\n%d part%s, %d node%s; %s, %s form, step %s\n", j->path, j->n->part_count,
             crdi_plural(j->n->part_count), j->n->node_count, crdi_plural(j->n->node_count),
             crdi_circuit_method_text(j->opt.method), crd_circuit_form_name(j->c),
             crdi_format_seconds(a, j->opt.step));
    crdi_say(out, "%s steps back to back in %.3g s\n", group_digits(n, (double)x->times.count),
             x->seconds);
    crdi_result* lines = crdi_array(out, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crdi_put(crdi_row(lines), TEXT("name", rows[i].name), REAL("time", rows[i].time));
        crdi_put(out, REAL(rows[i].name, rows[i].time));
    }
    crdi_show_table(out, lines, columns, "  ");
    if (x->worst_iterations > 1) {
        crdi_say(out, "newton: %.1f iterations on average, %d at worst\n",
                 (double)x->iterations / (double)x->times.count, x->worst_iterations);
    }
}

static const char* circuit_realtime_percent(char out[40], double part)
{
    const double x = 100 * part;
    if (x < 100) {
        snprintf(out, 40, "%.2g", x);
        return out;
    }
    return group_digits(out, x);
}

static void say_verdict(crdi_result* out, const crdi_circuit_job* j, const measured* x)
{
    char a[32], b[40], c[40];
    crdi_say(out, "holds %s steps/s: %s at worst; on average %s steps/s\n",
             group_digits(b, circuit_realtime_rate(circuit_realtime_worst_of(x))),
             crdi_format_seconds(a, circuit_realtime_worst_of(x)),
             group_digits(c, circuit_realtime_rate(mean_of(x))));
    if (x->interrupted) {
        crdi_say(out, "other work took the core away: without it %s at worst, %s steps/s\n",
                 crdi_format_seconds(a, own_worst(x)),
                 group_digits(b, circuit_realtime_rate(own_worst(x))));
    }
    crdi_say(out, "at %s it needs %s %% of a core", crdi_format_seconds(a, j->opt.step),
             circuit_realtime_percent(b, mean_of(x) / j->opt.step));
    crdi_say(out, ", its worst step %s %% of the time; ",
             circuit_realtime_percent(b, circuit_realtime_worst_of(x) / j->opt.step));
    crdi_say(out, "%s step%s took longer\n", x->over ? group_digits(b, (double)x->over) : "no",
             crdi_plural(x->over));
    if (!x->m.realtime) {
        crdi_say(
            out,
            "%s is no real-time kernel: a step may be interrupted for longer than was seen here\n",
            x->m.kernel);
    }
    if (!x->m.locked) {
        crdi_say(out, "memory is not locked (ulimit -l): a step may wait for a page\n");
    }
}

static void put_measured(crdi_result* o, const crdi_circuit_job* j, const measured* x)
{
    crdi_put(o, TEXT("file", j->path), INT("parts", j->n->part_count),
             INT("nodes", j->n->node_count), TEXT("method", crdi_circuit_methods[j->opt.method]),
             TEXT("form", crd_circuit_form_name(j->c)), REAL("step", j->opt.step),
             REAL("seconds", x->seconds), INT("steps", x->times.count));
    circuit_realtime_put_times(o, j, x);
    crdi_put(o, REAL("worst_uninterrupted", own_worst(x)), BOOL("interrupted", x->interrupted > 0),
             INT("longer_than_step", x->over), REAL("load", mean_of(x) / j->opt.step),
             REAL("worst_load", circuit_realtime_worst_of(x) / j->opt.step),
             REAL("steps_per_second_worst", 1 / circuit_realtime_worst_of(x)),
             REAL("steps_per_second_mean", 1 / mean_of(x)),
             REAL("iterations_mean", (double)x->iterations / (double)x->times.count),
             INT("iterations_worst", x->worst_iterations), REAL("clock", 1e-9 * (double)x->clock),
             BOOL("realtime_kernel", x->m.realtime), BOOL("memory_locked", x->m.locked),
             TEXT("kernel", x->m.kernel), BOOL("held", circuit_realtime_is_held(j, x)));
}

static crd_status verdict(const crdi_circuit_job* j, const measured* x)
{
    if (circuit_realtime_is_held(j, x)) { return CRD_OK; }
    char a[32], b[32], c[40], d[40];
    return crdi_fail(j->cli->ctx, CRD_E_LIMIT,
                     "%s: a step of %s is not held: %s of %s steps took longer, %s at worst; %s",
                     j->path, crdi_format_seconds(a, j->opt.step), group_digits(c, (double)x->over),
                     group_digits(d, (double)x->times.count),
                     crdi_format_seconds(b, circuit_realtime_worst_of(x)),
                     mean_of(x) > j->opt.step
                         ? "expected a longer step, a smaller circuit or a faster machine"
                         : "on average it is, so a quieter machine or a real-time kernel may do");
}

crd_status crdi_circuit_realtime(crdi_circuit_job* j)
{
    crd_status st = CRD_OK;
    measured* x = crdi_arena_new(&j->arena, 1, sizeof *x);
    if (!x) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_circuit_prepare(j, NAN));
    CRD_TRY(crdi_circuit_load_input(j));
    CRD_TRY(crd_circuit_create(j->cli->ctx, j->n, &j->opt, &j->c));
    CRD_TRY(crdi_circuit_begin(j));
    x->m = look_at_machine();
    x->clock = crdi_clock_cost();
    st = circuit_realtime_measure(j, x);
    if (x->m.locked) { (void)munlockall(); } // what comes now may need memory beyond the limit
    if (st < 0) { return st; }
    st = verdict(j, x);
    put_measured(j->out, j, x);
    say_verdict(j->out, j, x);
    crdi_put_status(j->cli, j->out, st);
fail:
    return st;
}
