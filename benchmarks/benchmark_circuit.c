// circuit: the benchmark circuits of Rodriguez 2021, ch. 3, against ngspice and against the
// thesis's own formulation; cost over size; allocations; reading. CPU time of one thread; what is
// compared takes turns and runs equally long, and of each the least counts: a busy machine slows
// both, and more so what lasts longer.
#include "benchmark.h"
#include "cardan/circuit.h"
#include "circuit/chain.h"
#include "circuit/nodal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define STEP 2.5e-3 // s, of the thesis's low precision with the trapezoidal rule
enum { STEPS = 400, REPEATS = 5 };

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- circuits ----------------------------------------------------------------------------------

// Resistors in line; behind each a branch of L and C to ground (Rodriguez 2021, 3.4.2)
static char* scalable_text(int64_t loops, const char* end)
{
    const size_t most = 200 + 100 * (size_t)loops + strlen(end);
    char* text = malloc(most);
    if (!text) { abort(); }
    size_t n = (size_t)snprintf(text, most, "scalable RLC\nV1 2 0 sin(0 100 5)\n");
    for (int64_t i = 1; i <= loops; i++) {
        const long long k = i, before = i == 1 ? 2 : 2 * k - 1;
        n += (size_t)snprintf(text + n, most - n,
                              "R%lld %lld %lld 10\nL%lld %lld %lld 0.1 ic=0\nC%lld %lld 0 0.1 "
                              "ic=0\n",
                              k, before, 2 * k + 1, k, 2 * k + 1, 2 * k + 2, k, 2 * k + 2);
    }
    snprintf(text + n, most - n, "%s.end\n", end);
    return text;
}

static crd_netlist* scalable(crd_context* ctx, int64_t loops)
{
    char* text = scalable_text(loops, ".tran 2.5m 1 uic\n");
    crd_netlist* n = NULL;
    benchmark_must(ctx, crd_netlist_parse(ctx, text, strlen(text), "scalable.cir", NULL, &n));
    free(text);
    return n;
}

static crd_netlist* load(crd_context* ctx, const char* file)
{
    char path[512];
    crd_netlist* n = NULL;
    snprintf(path, sizeof path, "%s/%s", BENCHMARK_CIRCUITS, file);
    benchmark_must(ctx, crd_netlist_load(ctx, path, NULL, &n));
    return n;
}

static crd_circuit* make(crd_context* ctx, const crd_netlist* n, const crd_circuit_options* o)
{
    crd_circuit* c = NULL;
    benchmark_must(ctx, crd_circuit_create(ctx, n, o, &c));
    return c;
}

static void go(crd_context* ctx, crd_circuit* c, int64_t steps)
{
    for (int64_t i = 0; i < steps; i++) {
        benchmark_must(ctx, crd_circuit_step(c));
    }
}

static double time_steps(crd_context* ctx, crd_circuit* c, int64_t steps, int repeats)
{
    double best = HUGE_VAL;
    for (int i = 0; i < repeats; i++) {
        benchmark_must(ctx, crd_circuit_begin(c, 0));
        const double begin = cpu();
        go(ctx, c, steps);
        best = fmin(best, cpu() - begin);
    }
    return best;
}

// Mean over as many runs as last so long together
static double time_batch(crd_context* ctx, crd_circuit* c, int64_t steps, double seconds)
{
    double sum = 0;
    int count = 0;
    while (count == 0 || sum < seconds) {
        sum += time_steps(ctx, c, steps, 1);
        count++;
    }
    return sum / count;
}

static crd_circuit_options with(crd_circuit_form form, double step, bool no_chains)
{
    crd_circuit_options o = crd_circuit_defaults();
    o.form = form;
    o.method = CRD_METHOD_TR;
    o.step = step;
    o.no_chains = no_chains;
    return o;
}

// Seconds for `steps` of the scalable circuit
static double time_scalable(int64_t loops, const crd_circuit_options* o, int64_t steps, int repeats)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = scalable(ctx, loops);
    crd_circuit* c = make(ctx, n, o);
    const double s = time_steps(ctx, c, steps, repeats);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
    return s;
}

// ---- references, and errors against them -------------------------------------------------------

typedef struct table { // columns of a CSV file or of a raw file
    double *t, *y, *z;
    int count;
} table;

static void table_clear(table* a)
{
    free(a->t);
    free(a->y);
    free(a->z);
    *a = (table){0};
}

static void table_make(table* a, int count)
{
    *a = (table){.count = count};
    a->t = calloc((size_t)count + 1, sizeof *a->t);
    a->y = calloc((size_t)count + 1, sizeof *a->y);
    a->z = calloc((size_t)count + 1, sizeof *a->z);
    if (!a->t || !a->y || !a->z) { abort(); }
}

// Two columns of a reference solution, without what stands at t = 0
static table reference(const char* file, int y, int z)
{
    table a;
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/%s", BENCHMARK_CIRCUITS, file);
    FILE* f = fopen(path, "r");
    if (!f || !fgets(line, sizeof line, f)) {
        fprintf(stderr, "cardan-bench: %s cannot be read\n", path);
        exit(1);
    }
    table_make(&a, 10000);
    a.count = 0;
    while (a.count < 10000 && fgets(line, sizeof line, f)) {
        double v[16] = {0};
        char* at = line;
        for (int i = 0; i < 16 && *at && *at != '\n'; i++) {
            v[i] = strtod(at, &at);
            if (*at == ',') { at++; }
        }
        if (v[0] == 0) { continue; }
        a.t[a.count] = v[0];
        a.y[a.count] = v[y];
        a.z[a.count++] = v[z];
    }
    fclose(f);
    return a;
}

// The first of the four neighbours of x
static int neighbours(const table* a, double x)
{
    int k = 0;
    while (k < a->count - 4 && a->t[k + 2] < x) {
        k++;
    }
    return k;
}

// Through four points: at the steps that are taken here far more exact than the steps
static double interpolate(const double* t, const double* y, double x)
{
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        double w = 1;
        for (int j = 0; j < 4; j++) {
            if (j != i) { w *= (x - t[j]) / (t[i] - t[j]); }
        }
        sum += w * y[i];
    }
    return sum;
}

// Root mean squares. `kinks`: y has some where it changes sign, and is not judged there.
static void errors_of(const table* got, const table* want, bool kinks, double e[2])
{
    double y = 0, z = 0;
    int count = 0;
    for (int i = 0; i < want->count; i++) {
        const int k = neighbours(got, want->t[i]);
        const double* near = got->y + k;
        const double dz = interpolate(got->t + k, got->z + k, want->t[i]) - want->z[i];
        z += dz * dz;
        int above = 0;
        for (int j = k < 2 ? 0 : k - 2; j < k + 6 && j < got->count; j++) {
            above |= got->y[j] > 0 ? 1 : 2;
        }
        if (kinks && above == 3) { continue; }
        const double dy = interpolate(got->t + k, near, want->t[i]) - want->y[i];
        y += dy * dy;
        count++;
    }
    e[0] = sqrt(y / count);
    e[1] = sqrt(z / want->count);
}

typedef struct watch { // a voltage and a current
    const char *plus, *minus, *part;
} watch;

static void own_errors(crd_context* ctx, crd_circuit* c, const crd_netlist* n, int steps,
                       const watch* w, const table* want, bool kinks, double e[2])
{
    const int32_t plus = crd_netlist_node(n, w->plus), minus = crd_netlist_node(n, w->minus);
    const int32_t part = crd_netlist_part(n, w->part);
    table got;
    table_make(&got, steps + 1);
    benchmark_must(ctx, crd_circuit_begin(c, 0));
    for (int i = 0; i <= steps; i++) {
        got.t[i] = crd_circuit_time(c);
        got.y[i] = crd_circuit_voltage(c, plus) - crd_circuit_voltage(c, minus);
        got.z[i] = crd_circuit_current(c, part);
        if (i < steps) { go(ctx, c, 1); }
    }
    errors_of(&got, want, kinks, e);
    table_clear(&got);
}

// ---- ngspice -----------------------------------------------------------------------------------

// time and two signals of a raw file; `minus` is taken from the first of three
static void read_raw(const char* path, bool minus, table* out)
{
    FILE* f = fopen(path, "rb");
    char line[256];
    int columns = 0, rows = 0;
    while (f && fgets(line, sizeof line, f) && strcmp(line, "Binary:\n") != 0) {
        (void)sscanf(line, "No. Variables: %d", &columns);
        (void)sscanf(line, "No. Points: %d", &rows);
    }
    if (!f || columns != (minus ? 4 : 3) || rows < 4) {
        fprintf(stderr, "cardan-bench: ngspice wrote nothing of use into %s\n", path);
        exit(1);
    }
    table_make(out, rows);
    for (int i = 0; i < rows; i++) {
        double v[4];
        if (fread(v, sizeof *v, (size_t)columns, f) != (size_t)columns) { abort(); }
        out->t[i] = v[0];
        out->y[i] = minus ? v[1] - v[2] : v[1];
        out->z[i] = v[columns - 1];
    }
    fclose(f);
}

// The netlist twice: with its transient analysis, and with one that is over at once
static void give_ngspice(const char* netlist, const char* tran, const char* none)
{
    for (int i = 0; i < 2; i++) {
        const char* path = i ? BENCHMARK_SCRATCH "/ngspice0.cir" : BENCHMARK_SCRATCH "/ngspice.cir";
        FILE* f = fopen(path, "w");
        if (!f || fprintf(f, "%s%s\n.end\n", netlist, i ? none : tran) < 0 || fclose(f) != 0) {
            perror(path);
            exit(1);
        }
    }
}

static double cpu_of(const char* command)
{
    struct rusage before, after;
    getrusage(RUSAGE_CHILDREN, &before);
    if (system(command) != 0) {
        fprintf(stderr, "cardan-bench: '%s' failed\n", command);
        exit(1);
    }
    getrusage(RUSAGE_CHILDREN, &after);
    return (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
           (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
           1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
           1e-6 * (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
}

#define NGSPICE "OMP_NUM_THREADS=1 ngspice -n -b -r " BENCHMARK_SCRATCH

// Both in turn, ours as often as fits into the time of theirs. Of ngspice counts what its transient
// analysis adds to reading and setting up.
static void race(crd_context* ctx, crd_circuit* c, int64_t steps, double* own, double* peer)
{
    double whole = HUGE_VAL, start = HUGE_VAL;
    *own = HUGE_VAL;
    for (int i = 0; i < REPEATS; i++) {
        const double s =
            cpu_of(NGSPICE "/ngspice.raw " BENCHMARK_SCRATCH "/ngspice.cir >/dev/null 2>&1");
        whole = fmin(whole, s);
        start = fmin(start, cpu_of(NGSPICE "/ngspice0.raw " BENCHMARK_SCRATCH
                                           "/ngspice0.cir >/dev/null 2>&1"));
        *own = fmin(*own, time_batch(ctx, c, steps, s));
    }
    *peer = whole - start;
}

static bool have_ngspice(void)
{
    if (system("ngspice --version >/dev/null 2>&1") == 0) { return true; }
    printf("circuit: no ngspice (Debian: apt install ngspice), left out\n");
    return false;
}

static void report_errors(benchmark* b, const char* name, const double own[2], const double peer[2])
{
    char full[64];
    for (int i = 0; i < 2; i++) {
        snprintf(full, sizeof full, "%s error %s", name, i ? "I" : "V");
        benchmark_report(b, full, own[i], i ? "A" : "V", peer[i], 1,
                         "cardan %.4f, ngspice %.4f %s, root mean square", 1e3 * own[i],
                         1e3 * peer[i], i ? "mA" : "mV");
    }
}

static void report_race(benchmark* b, const char* name, const char* what, double own, double peer,
                        double least)
{
    benchmark_report(b, name, own, "s", peer, 1 / least,
                     "%s: %.2f ms, ngspice %.1f ms: %.0f x (>= %.0f)", what, 1e3 * own, 1e3 * peer,
                     peer / own, least);
}

// The same chain with the instructions of smaller processors; results have the same bits.
static void report_sets(benchmark* b, crd_context* ctx, crd_circuit* c, double peer)
{
    for (int set = crdi_chain_best() - 1; set >= 0; set--) {
        char name[64];
        double s = HUGE_VAL;
        if (!crdi_circuit_use(c, set)) { abort(); }
        for (int i = 0; i < REPEATS; i++) {
            s = fmin(s, time_batch(ctx, c, STEPS, 0.1));
        }
        snprintf(name, sizeof name, "circuit/rlc chain, %s", crdi_chain_set_name(set));
        report_race(b, name, "N = 5000, 1 s", s, peer, set ? 300 : 150);
    }
    (void)crdi_circuit_use(c, crdi_chain_best());
}

// At least as exact as ngspice, which is given a slightly larger step for that. Its control of the
// step is made harmless: it collapses on loops without a signal.
static void run_scalable(benchmark* b)
{
    enum { LOOPS = 5000 };
    static const watch first = {"4", "0", "l1"};
    if (!have_ngspice()) { return; }
    char* text = scalable_text(LOOPS, ".options trtol=1e4 chgtol=1e-3 abstol=1e-6 vntol=1e-4\n"
                                      ".save v(4) i(l1)\n");
    table want = reference("scrlc_N100_reference.csv", 3, 4), got; // no signal reaches loop 100
    text[strlen(text) - strlen(".end\n")] = 0;
    give_ngspice(text, ".tran 10m 1 0 2.6m uic", ".tran 1u 2u uic");
    free(text);
    for (int chains = 0; chains < 2; chains++) {
        const char* name = chains ? "circuit/rlc chain" : "circuit/rlc general";
        const crd_circuit_options o = with(CRD_FORM_AUTO, STEP, !chains);
        crd_context* ctx = crd_context_create(NULL);
        crd_netlist* n = scalable(ctx, LOOPS);
        crd_circuit* c = make(ctx, n, &o);
        double s, peer, theirs[2], own[2];
        race(ctx, c, STEPS, &s, &peer);
        char what[64] = "N = 5000, 1 s";
        if (chains) { // says with which instructions
            snprintf(what, sizeof what, "N = 5000, 1 s, %s",
                     crdi_chain_set_name(crdi_chain_best()));
        }
        report_race(b, name, what, s, peer, chains ? 300 : 30);
        if (chains) { report_sets(b, ctx, c, peer); }
        read_raw(BENCHMARK_SCRATCH "/ngspice.raw", false, &got);
        errors_of(&got, &want, false, theirs);
        own_errors(ctx, c, n, STEPS, &first, &want, false, own);
        report_errors(b, name, own, theirs);
        table_clear(&got);
        crd_circuit_destroy(c);
        crd_netlist_destroy(n);
        crd_context_destroy(ctx);
    }
    table_clear(&want);
}

// ngspice needs a junction capacitance to get past the zero of the current. It runs for 10 s, so
// that its start is a small part.
static void run_rectifier(benchmark* b)
{
    static const watch monitored = {"2", "3", "l1"};
    if (!have_ngspice()) { return; }
    give_ngspice(
        "rectifier\n.options temp=26.85 tnom=26.85 trtol=7 reltol=1e-3 abstol=1e-9 "
        "vntol=1e-6\n.model dm d(is=1e-15 n=1.5 rs=1m cjo=100p)\nV1 2 0 sin(0 100 5)\nD1 2 3 dm\n"
        "D2 0 3 dm\nD3 5 2 dm\nD4 5 0 dm\nR1 3 4 10\nL1 4 5 100m ic=0\n.save v(2) v(3) i(l1)\n",
        ".tran 0.5m 10 0 0.425m uic", ".tran 1u 2u uic");
    table want = reference("rectifier_reference.csv", 1, 2), got;
    const crd_circuit_options o = with(CRD_FORM_AUTO, 0.5e-3, false);
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = load(ctx, "rectifier.cir");
    crd_circuit* c = make(ctx, n, &o);
    double s, peer, theirs[2], own[2];
    race(ctx, c, 20000, &s, &peer);
    report_race(b, "circuit/rectifier", "1 s, low precision", s / 10, peer / 10, 25);
    read_raw(BENCHMARK_SCRATCH "/ngspice.raw", true, &got);
    errors_of(&got, &want, true, theirs);
    own_errors(ctx, c, n, 2000, &monitored, &want, true, own);
    report_errors(b, "circuit/rectifier", own, theirs);
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
    table_clear(&want);
    table_clear(&got);
}

// ---- the thesis's own formulation --------------------------------------------------------------

// Two iterations and a new tangent in each of them
static crd_circuit_options thesis(double step)
{
    crd_circuit_options o = with(CRD_FORM_DAE, step, false);
    o.fixed_iterations = true;
    o.max_iterations = 2;
    o.refactor = 1;
    return o;
}

static void run_motor(benchmark* b)
{
    static const watch monitored = {"rotor", "0", "water"};
    const double step = 0.5;
    const crd_circuit_options fast = with(CRD_FORM_AUTO, step, false), slow = thesis(step);
    table want = reference("pmsm_reference.csv", 2, 10);
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = load(ctx, "pmsm.cir");
    crd_circuit *c = make(ctx, n, &fast), *d = make(ctx, n, &slow);
    double s = HUGE_VAL, t = HUGE_VAL, e[2], f[2];
    for (int i = 0; i < REPEATS; i++) {
        const double once = time_steps(ctx, d, 10000, 1);
        t = fmin(t, once);
        s = fmin(s, time_batch(ctx, c, 10000, once));
    }
    own_errors(ctx, c, n, 10000, &monitored, &want, false, e);
    own_errors(ctx, d, n, 10000, &monitored, &want, false, f);
    benchmark_report(b, "circuit/motor", s, "s", t, 1.0 / 50,
                     "5000 s: %.2f ms, thesis's form %.1f ms: %.0f x (>= 50)", 1e3 * s, 1e3 * t,
                     t / s);
    benchmark_report(b, "circuit/motor error T", e[0], "K", f[0], 1.01,
                     "%.3g K, thesis's form %.3g K", e[0], f[0]);
    benchmark_report(b, "circuit/motor error Q", e[1], "W", f[1], 1.01,
                     "%.3g W, thesis's form %.3g W", e[1], f[1]);
    crd_circuit_destroy(c);
    crd_circuit_destroy(d);
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
    table_clear(&want);
}

// ---- size --------------------------------------------------------------------------------------

// The exponent of cost over size; every size takes about the same number of loops times steps.
static void run_growth(benchmark* b)
{
    enum { SIZES = 4 };
    for (int chains = 0; chains < 2; chains++) {
        const crd_circuit_options o = with(CRD_FORM_AUTO, STEP, !chains);
        double s[SIZES];
        int64_t loops = 100;
        for (int i = 0; i < SIZES; i++, loops *= 10) {
            const int64_t steps = loops > 10000 ? 100 : loops > 1000 ? 400 : 4000;
            s[i] = time_scalable(loops, &o, steps, REPEATS) / (double)steps;
        }
        const double exponent = log10(s[SIZES - 1] / s[0]) / (SIZES - 1);
        benchmark_report(b, chains ? "circuit/growth chain" : "circuit/growth general", exponent,
                         "", 1, 1.1,
                         "us per step at N = 100, 1000, 10 000, 100 000: %.2f %.1f %.0f %.0f",
                         1e6 * s[0], 1e6 * s[1], 1e6 * s[2], 1e6 * s[3]);
    }
}

// A ladder of a thousand sections, with each set of instructions
static void run_thousand(benchmark* b)
{
    const crd_circuit_options o = with(CRD_FORM_AUTO, STEP, false);
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = scalable(ctx, 1000);
    crd_circuit* c = make(ctx, n, &o);
    for (int set = crdi_chain_best(); set >= 0; set--) {
        char name[64];
        if (!crdi_circuit_use(c, set)) { abort(); }
        const double s = time_steps(ctx, c, 4000, 3 * REPEATS) / 4000;
        snprintf(name, sizeof name, "circuit/thousand, %s", crdi_chain_set_name(set));
        benchmark_report(b, name, s, "s", set ? 1e-6 : 2e-6, 1, "%.2f us per step of 1000 sections",
                         1e6 * s);
    }
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

// The largest size that was seen to take at most one second per second
static double largest(const crd_circuit_options* o, double loops, int64_t steps)
{
    const double share = (double)STEPS / (double)steps;
    double found = 0, next = loops;
    for (int i = 0; i < 4; i++) {
        const double s = share * time_scalable((int64_t)next, o, steps, 2);
        if (s <= 1 && next > found) { found = next; }
        next = fmin(next * (s <= 1 ? 0.995 : 0.97) / s, 3.3e6); // a netlist has at most 1e7 parts
        if (s <= 1 && s > 0.97) { break; }
    }
    return found;
}

static void run_real_time(benchmark* b)
{
    const crd_circuit_options general = with(CRD_FORM_AUTO, STEP, true);
    const crd_circuit_options chain = with(CRD_FORM_AUTO, STEP, false);
    const crd_circuit_options slow = thesis(STEP);
    const double t = largest(&slow, 2000, 100);
    const double g = largest(&general, 140000, 200);
    const double c = largest(&chain, 450000, 200);
    benchmark_report(b, "circuit/real time general", 140000, "loops", g, 1,
                     "N = %.0f in real time (>= 140 000)", g);
    benchmark_report(b, "circuit/real time chain", 450000, "loops", c, 1,
                     "N = %.0f in real time (>= 450 000)", c);
    benchmark_report(b, "circuit/real time thesis", 1, "loops", t, 0,
                     "N = %.0f in the thesis's form (published 2053)", t);
}

// ---- allocations, reading ----------------------------------------------------------------------

static void* count_allocations(void* user, void* old, size_t size)
{
    if (size) { ++*(int64_t*)user; }
    if (!size) {
        free(old);
        return NULL;
    }
    return realloc(old, size);
}

static void run_allocations(benchmark* b)
{
    static const char* const files[] = {"rlc.cir", "scrlc.cir", "rectifier.cir", "pmsm.cir"};
    static const double steps[] = {STEP, STEP, 0.5e-3, 0.5};
    int64_t count = 0, in_steps = 0;
    crd_context_options co = crd_context_defaults();
    co.realloc = count_allocations;
    co.realloc_user = &count;
    crd_context* ctx = crd_context_create(&co);
    for (int i = 0; i < 8; i++) {
        const crd_circuit_options o =
            with(i < 4 ? CRD_FORM_AUTO : CRD_FORM_DAE, steps[i % 4], false);
        crd_netlist* n = load(ctx, files[i % 4]);
        crd_circuit* c = make(ctx, n, &o);
        benchmark_must(ctx, crd_circuit_begin(c, 0));
        const int64_t before = count;
        go(ctx, c, 1000);
        in_steps += count - before;
        crd_circuit_destroy(c);
        crd_netlist_destroy(n);
    }
    crd_context_destroy(ctx);
    benchmark_report(b, "circuit/allocations", (double)in_steps, "", 1, 0.5,
                     "%lld in 8000 steps of four circuits in both forms", (long long)in_steps);
}

static double count_words(const char* text, size_t length) // as wc does
{
    size_t lines = 0, words = 0;
    bool inside = false;
    const double begin = cpu();
    for (size_t i = 0; i < length; i++) {
        const char c = text[i];
        const bool space = c == ' ' || c == '\n' || c == '\t';
        lines += c == '\n';
        words += !space && !inside;
        inside = !space;
    }
    return lines + words == 1 ? 0 : cpu() - begin;
}

static void run_reading(benchmark* b)
{
    enum { LOOPS = 333333 };
    char* text = scalable_text(LOOPS, ".tran 2.5m 1 uic\n");
    const size_t length = strlen(text);
    double best = HUGE_VAL, floor = HUGE_VAL;
    for (int i = 0; i < 3; i++) {
        crd_context* ctx = crd_context_create(NULL);
        crd_netlist* n = NULL;
        const double begin = cpu();
        benchmark_must(ctx, crd_netlist_parse(ctx, text, length, "large.cir", NULL, &n));
        best = fmin(best, cpu() - begin);
        floor = fmin(floor, count_words(text, length));
        crd_netlist_destroy(n);
        crd_context_destroy(ctx);
    }
    free(text);
    benchmark_report(b, "circuit/read", best, "s", floor, 40,
                     "a million parts, %.0f MB: %.2f s; counting its words %.3f s",
                     1e-6 * (double)length, best, floor);
    benchmark_report(b, "circuit/read 5 s", best, "s", 5, 1, "%.2f s of 5 s", best);
}

const benchmark_case benchmark_circuit_cases[] = {{"circuit/rlc", run_scalable},
                                                  {"circuit/rectifier", run_rectifier},
                                                  {"circuit/motor", run_motor},
                                                  {"circuit/growth", run_growth},
                                                  {"circuit/thousand", run_thousand},
                                                  {"circuit/real time", run_real_time},
                                                  {"circuit/allocations", run_allocations},
                                                  {"circuit/read", run_reading},
                                                  {0}};
