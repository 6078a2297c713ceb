// Runs that are saved, branched and resumed: to the last bit what an uninterrupted run computes.
#include "models.h"
#include "random_linear.h"
#include "shared/base.h"

#include "cardan/results.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- a run as numbers --------------------------------------------------------------------------

typedef struct {
    double* rows; // all columns with their times, one after the other
    size_t count;
    double last;         // of the first column
    double verdict[128]; // numbers of the report
    int verdicts;
} outcome;

static void add_number(outcome* o, double x)
{
    if (o->verdicts < 128) { o->verdict[o->verdicts++] = x; }
}

static void add_text(outcome* o, const char* text)
{
    uint32_t sum = 2166136261U;
    for (; text && *text; text++) {
        sum = (sum ^ (unsigned char)*text) * 16777619U;
    }
    add_number(o, sum);
}

// How it goes so far: what the verdict and the guard know.
static void add_verdict(outcome* o, crd_master* m)
{
    const crd_master_report* r = crd_master_get_report(m);
    add_number(o, (double)r->steps);
    add_number(o, (double)r->guard.state);
    add_number(o, r->guard.time);
    add_number(o, r->guard.growth);
    add_number(o, r->guard.loops);
    add_number(o, r->guard.mapped);
    add_text(o, r->guard.text);
    add_text(o, r->guard.note);
    add_number(o, r->worst_defect);
    add_number(o, r->worst_error);
    add_number(o, r->worst_energy);
    add_number(o, (double)r->control.rejected);
    add_number(o, (double)r->iteration.sweeps);
    for (int i = 0; i < r->flow_count && i < 8; i++) {
        add_text(o, r->flows[i].to);
        add_text(o, r->flows[i].used);
        add_number(o, r->flows[i].rms);
        add_number(o, r->flows[i].max);
        add_number(o, r->flows[i].error_rms);
        add_number(o, r->flows[i].share);
        add_number(o, (double)r->flows[i].switches);
    }
    for (int i = 0; i < r->coupling_count && i < 4; i++) {
        add_number(o, (double)r->couplings[i].lost);
        add_number(o, r->couplings[i].k_mean);
        add_number(o, r->couplings[i].taps[0].metrics.rms);
    }
    for (int i = 0; i < r->bond_count && i < 4; i++) {
        add_number(o, r->bonds[i].energy);
        add_number(o, r->bonds[i].work);
    }
    for (int i = 0; i < 2 * r->pair_count && i < 4; i++) {
        const crd_pair_side_report* p = &r->pairs[i / 2].sides[i % 2];
        add_number(o, (double)p->predicted);
        add_number(o, (double)p->lost);
        add_number(o, p->state.tank);
        add_number(o, p->state.dumped);
        add_number(o, p->state.debt);
        add_number(o, p->state.reaction);
        add_number(o, (double)p->state.limited);
    }
    for (int i = 0; i < r->unit_count; i++) {
        add_number(o, (double)r->units[i].steps);
    }
}

static outcome verdict_of(crd_master* m)
{
    outcome o = {0};
    add_verdict(&o, m);
    return o;
}

static outcome outcome_of(crd_master* m)
{
    outcome o = {0};
    const crd_table* t = crd_master_table(m);
    for (int i = 0; i < t->column_count; i++) {
        const crd_table_column* c = &t->columns[i];
        o.rows = realloc(o.rows, (o.count + 2 * (size_t)c->rows + 1) * sizeof(double));
        for (int64_t k = 0; k < c->rows; k++) {
            o.rows[o.count++] = c->time[k];
            o.rows[o.count++] = c->values ? c->values[k] : 0;
        }
    }
    o.last = t->columns[0].values[t->columns[0].rows - 1];
    add_number(&o, (double)crd_master_get_report(m)->rows);
    add_verdict(&o, m);
    return o;
}

// Bits, so that NaN is NaN and -0 is not 0.
static void check_same(const outcome* a, const outcome* b, const char* what, uint64_t seed)
{
    if (a->count != b->count || // a verdict alone has no rows
        (a->count > 0 && memcmp(a->rows, b->rows, a->count * sizeof(double)) != 0)) {
        size_t k = 0;
        while (k < a->count && k < b->count && memcmp(&a->rows[k], &b->rows[k], 8) == 0) {
            k++;
        }
        fail_msg("seed %llu, %s: %zu and %zu numbers, the first that differ at %zu: %.17g, %.17g",
                 (unsigned long long)seed, what, a->count, b->count, k,
                 k < a->count ? a->rows[k] : NAN, k < b->count ? b->rows[k] : NAN);
    }
    for (int i = 0; i < a->verdicts; i++) {
        if (memcmp(&a->verdict[i], &b->verdict[i], 8) != 0) {
            fail_msg("seed %llu, %s: number %d of the verdict is %.17g and %.17g",
                     (unsigned long long)seed, what, i, a->verdict[i], b->verdict[i]);
        }
    }
}

static void to_end(crd_master* m, int64_t chunk)
{
    while (crd_master_ended(m) == CRD_END_NONE) {
        check_ok(crd_master_advance(m, chunk));
    }
}

static crd_master* begin(crd_context* ctx, const crd_system* s, bool snapshots)
{
    crd_master_options o = crd_master_defaults();
    crd_master* m = NULL;
    o.columns = true;
    o.snapshots = snapshots;
    check_ok(crd_master_create(ctx, s, &o, &m));
    check_ok(crd_master_initialize(m));
    return m;
}

// An uninterrupted run beside one that is saved, goes on, goes back, branches and begins again.
static void check_branches(crd_context* ctx, const crd_system* s, int64_t at, uint64_t seed)
{
    crd_master* whole = begin(ctx, s, false);
    to_end(whole, 1000);
    outcome expected = outcome_of(whole);
    crd_master_destroy(whole);

    crd_master* m = begin(ctx, s, true);
    crd_snapshot *first = NULL, *second = NULL;
    check_ok(crd_master_advance(m, at));
    check_ok(crd_master_save(m, &first));
    const outcome then = verdict_of(m);
    to_end(m, 7);
    outcome a = outcome_of(m);
    check_same(&expected, &a, "saved on its way", seed);
    check_ok(crd_master_restore(m, first));
    const outcome again =
        verdict_of(m); // of the guard, too: at the end it may be the same by chance
    check_same(&then, &again, "just restored", seed);
    check_ok(crd_master_advance(m, 1 + at / 2));
    check_ok(crd_master_save(m, &second));
    to_end(m, 100);
    outcome b = outcome_of(m);
    check_same(&expected, &b, "resumed", seed);
    check_ok(crd_master_reset(m));
    check_int(crd_master_get_report(m)->steps, 0);
    check_ok(crd_master_advance(m, at / 3));
    check_ok(crd_master_restore(m, second)); // forward: rows between are gone, the state is not
    to_end(m, 100);
    double last = NAN;
    check_ok(crd_master_value(m, crd_master_signal_name(m, 0), &last));
    check_near(last, expected.last, 0);
    check_ok(crd_master_reset(m));
    to_end(m, 1000);
    outcome d = outcome_of(m);
    check_same(&expected, &d, "reset", seed);
    crd_snapshot_destroy(first);
    crd_master_destroy(m); // and `second` with it
    free(expected.rows);
    free(a.rows);
    free(b.rows);
    free(d.rows);
}

// ---- files, and other processes ----------------------------------------------------------------

static const char* self;         // this program
static const char* resume_file;  // in a process that goes on from a file
static const char* resumed_file; // what it found goes there

static void write_outcome(crd_master* m, const char* path)
{
    FILE* f = fopen(path, "wb");
    check(f != NULL);
    const outcome o = verdict_of(m);
    const crd_table* t = crd_master_table(m);
    fwrite(&o, sizeof o, 1, f);
    for (int i = 0; i < t->column_count; i++) {
        const crd_table_column* c = &t->columns[i];
        fwrite(&c->rows, sizeof c->rows, 1, f);
        fwrite(c->time, sizeof(double), (size_t)c->rows, f);
        if (c->values) { fwrite(c->values, sizeof(double), (size_t)c->rows, f); }
    }
    check_int(fclose(f), 0);
}

// The rows of a resumed run are the last ones of the whole run, and its verdict is the same. There
// are none if the run had come to its end (`over`) before it was saved.
static void check_resumed(crd_master* whole, bool over, const char* path, uint64_t seed)
{
    FILE* f = fopen(path, "rb");
    check(f != NULL);
    outcome o;
    const outcome expected = verdict_of(whole);
    check_int(fread(&o, sizeof o, 1, f), 1);
    o.rows = NULL;
    check_same(&expected, &o, "resumed in another process", seed);
    const crd_table* t = crd_master_table(whole);
    for (int i = 0; i < t->column_count; i++) {
        const crd_table_column* c = &t->columns[i];
        int64_t rows = 0;
        check_int(fread(&rows, sizeof rows, 1, f), 1);
        check((over ? rows == 0 : rows > 0) && rows < c->rows);
        double* x = malloc((size_t)rows * sizeof *x);
        for (int k = 0; k < (c->values ? 2 : 1); k++) {
            check_int(fread(x, sizeof *x, (size_t)rows, f), rows);
            const double* y = (k ? c->values : c->time) + (c->rows - rows);
            for (int64_t n = 0; n < rows; n++) {
                if (memcmp(&x[n], &y[n], sizeof *x) != 0) {
                    fail_msg("seed %llu, column %s, row %lld behind the state: %.17g and %.17g",
                             (unsigned long long)seed, c->name, (long long)n, x[n], y[n]);
                }
            }
        }
        free(x);
    }
    fclose(f);
}

static void go_on_from_file(crd_context* ctx, const crd_system* s)
{
    crd_master_options o = crd_master_defaults();
    crd_master* m = NULL;
    o.columns = true;
    o.resume = resume_file;
    check_ok(crd_master_create(ctx, s, &o, &m));
    check_ok(crd_master_initialize(m));
    to_end(m, 13);
    write_outcome(m, resumed_file);
    crd_master_destroy(m);
}

// `what`: arguments of this program that make the same system and call go_on_from_file.
static void check_file(crd_context* ctx, const crd_system* s, int64_t at, const char* what,
                       uint64_t seed)
{
    char state[64], found[64], line[512];
    snprintf(state, sizeof state, "/tmp/crd_state_%ld", (long)getpid());
    snprintf(found, sizeof found, "/tmp/crd_resumed_%ld", (long)getpid());
    crd_master* m = begin(ctx, s, true);
    check_ok(crd_master_advance(m, at));
    if (crd_master_save_file(m, state) < 0) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, crd_error_text(ctx));
    }
    const bool over = crd_master_ended(m) != CRD_END_NONE;
    to_end(m, 1000);
    snprintf(line, sizeof line, "%s %s %s %s > /dev/null", self, what, state, found);
    if (system(line) != 0) { fail_msg("seed %llu: %s failed", (unsigned long long)seed, line); }
    check_resumed(m, over, found, seed);
    crd_master_destroy(m);
    unlink(state);
    unlink(found);
}

// ---- random systems ----------------------------------------------------------------------------

typedef struct {
    uint64_t seed;
    int64_t steps;
    bool multirate;
} drawn;

static uint64_t draw(uint64_t* s)
{
    uint64_t z = *s += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

#define FOLDER "CRD_SNAPSHOT_FOLDER" // of this test and of processes that go on from its files

static double between(uint64_t* r, double low, double high)
{
    return low + (high - low) * (double)(draw(r) >> 11) * 0x1p-53;
}

__attribute__((format(printf, 2, 3))) static void write_file(const char* path, const char* format,
                                                             ...)
{
    va_list arguments;
    FILE* f = fopen(path, "w");
    check(f != NULL);
    va_start(arguments, format);
    vfprintf(f, format, arguments);
    va_end(arguments);
    check_int(fclose(f), 0);
}

// A nonlinear circuit that some unit drives, and a twin that watches it and tunes a part.
static void add_circuit_and_twin(crd_system* s, uint64_t seed)
{
    uint64_t r = ~seed;
    char net[256], twin[256], text[1024];
    const double H = s->run.step, resistance = between(&r, 0.3, 3);
    const crd_connection_spec* c = &s->connections[0];
    snprintf(net, sizeof net, "%s/net.cir", getenv(FOLDER));
    snprintf(twin, sizeof twin, "%s/twin.yaml", getenv(FOLDER));
    write_file(net,
               "a circuit\n.input u source=V1 start=0\nV1 in 0 dc 0\nR1 in a %.17g\nC1 a 0 %.17g\n"
               "R2 a b {1+0.5*v(a)*v(a)}\nC2 b 0 %.17g ic=%.17g\n.output x=v(a) y=v(b)\n"
               ".tran %.17g 1 uic\n.end\n",
               resistance, H * between(&r, 2, 20), H * between(&r, 2, 20), between(&r, -1, 1), H);
    write_file(twin,
               "twin: 1\ncircuit: net.cir\nstep: %.17g s\nsensors: { y: { sd: 0.1 } }\n"
               "parameters: { r: { parts: [R1], start: %.17g } }\n",
               H, resistance * between(&r, 0.5, 2));
    const char *from = s->units[c->from_unit].name, *name = c->from;
    const int n = snprintf(text, sizeof text,
                           "units: { net: { circuit: %s }, twin: { twin: %s } }\nconnections:\n"
                           "  - { from: %s.%s, to: net.u }\n  - { from: %s.%s, to: twin.u }\n"
                           "  - { from: net.y, to: twin.y.measured }\n",
                           net, twin, from, name, from, name);
    check_ok(crd_system_amend(s, text, (size_t)n, "random", 1));
}

// Couplings with emulated channels on some connections, how steps are made, other kinds of units.
static void change(void* user, crd_system* s)
{
    static const char* const algorithms[] = {"auto", "zoh", "foh", "eros", "rls", "wiener"};
    const drawn* d = user;
    uint64_t r = d->seed;
    char text[4096];
    int n = snprintf(text, sizeof text, "connections:\n");
    const int coupled = draw(&r) % 2 ? s->connection_count : 0;
    bool any = false;
    for (int i = 0; i < coupled; i++) {
        const crd_connection_spec* c = &s->connections[i];
        if (draw(&r) % 2) { continue; }
        any = true;
        const double H = s->run.step;
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "  - { from: %s.%s, to: %s.%s, coupling: { algorithm: %s, channel: { delay: "
                      "%.17g s, jitter: %.17g s, loss: %s } } }\n",
                      s->units[c->from_unit].name, c->from, s->units[c->to_unit].name, c->to,
                      algorithms[draw(&r) % 6], 1.5 * H, draw(&r) % 2 ? 0.5 * H : 0,
                      draw(&r) % 2 ? "5 %" : "0 %");
    }
    if (any) { check_ok(crd_system_amend(s, text, (size_t)n, "random", 1)); }
    const uint64_t how = draw(&r) % 6;
    const char* run = how == 0 && !d->multirate && !any   ? "run: { control: 1e-3 }"
                      : how == 1 && !d->multirate && !any ? "run: { iterate: true }"
                      : how == 2 ? "run: { monitor: [defect, energy, solver] }"
                                 : NULL;
    if (run) { check_ok(crd_system_amend(s, run, strlen(run), "random", 1)); }
    if ((how > 1 || !run) && d->seed % 3 == 0) { add_circuit_and_twin(s, d->seed); }
    crd_context* ctx = crd_context_create(NULL);
    const int64_t at = 1 + (int64_t)(draw(&r) % (uint64_t)(d->steps / 2));
    if (resume_file) {
        go_on_from_file(ctx, s);
    } else {
        char what[64];
        snprintf(what, sizeof what, "--random %llu", (unsigned long long)d->seed);
        check_branches(ctx, s, at, d->seed);
        check_file(ctx, s, at, what, d->seed);
    }
    crd_context_destroy(ctx);
}

static int from_seed = 1, seeds = 200 / CHECK_SHARE;

static void a_resumed_run_is_the_uninterrupted_one_to_the_last_bit(void** state)
{
    (void)state;
    for (int i = from_seed; i < from_seed + seeds; i++) {
        random_traits t = random_traits_of((uint64_t)i);
        t.save = true;
        t.steps = 60;
        t.growth = i % 4 == 0 ? 3 : NAN; // some grow, which the guard has to see in time
        drawn d = {.seed = (uint64_t)i, .steps = t.steps, .multirate = t.multirate};
        random_linear* s = random_linear_create((uint64_t)i, &t);
        (void)random_linear_run(s, &(random_run){.change = change, .user = &d});
        random_linear_destroy(s);
    }
}

// ---- systems of the examples: FMUs, circuits, twins, pairs, bonds ------------------------------

static crd_system* load_example(crd_context* ctx, const char* file, double stop)
{
    char path[512];
    crd_system* s = NULL;
    const int length = (int)strcspn(file, "+");
    snprintf(path, sizeof path, "%s/%s/%.*s", TEST_SOURCE_DIR,
             strstr(file, "twin") ? "master" : "../examples", length, file);
    check_ok(crd_system_load(ctx, path, &s));
    if (file[length]) { // +over: commands on top of the pair
        s->bonds[0].over = true;
        s->bonds[0].channel.jitter = 0.01;
    }
    s->results.path = s->results.exchange = NULL;
    s->run.stop = stop;
    s->run.isolate = CRD_ISOLATE_NONE;
    return s;
}

static void check_resume_fails(crd_context* ctx, const crd_system* s, const char* path,
                               const char* text)
{
    crd_master_options o = crd_master_defaults();
    crd_master* m = NULL;
    o.columns = true;
    o.resume = path;
    check_ok(crd_master_create(ctx, s, &o, &m));
    check(crd_master_initialize(m) < 0);
    check_contains(crd_error_text(ctx), text);
    crd_master_destroy(m);
}

// Of another system, with any bit changed, cut off, or no state at all.
static void what_does_not_fit_is_refused(void** state)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/crd_refused_%ld", (long)getpid());
    crd_system* s = load_example(*state, "oscillator/oscillator.yaml", 0.1);
    crd_master* m = begin(*state, s, true);
    check_ok(crd_master_advance(m, 5));
    check_ok(crd_master_save_file(m, path));
    crd_master_destroy(m);
    check_ok(crd_system_set(s, 0, "v1", "3", (crd_place){"", 0}));
    check_resume_fails(*state, s, path, "another system");
    crd_system_destroy(s);
    s = load_example(*state, "oscillator/oscillator.yaml", 0.1);
    crd_text bytes;
    crd_text_init(&bytes, *state);
    const crdi_file_need need = {.what = "a state", .most = 1 << 24};
    check_ok(crdi_file_read(*state, path, &need, &bytes));
    for (size_t i = 0; i < 5; i++) {
        bytes.data[20 + i * (bytes.length - 21) / 4] ^= 1;
        check_ok(crdi_file_write(*state, path, &bytes));
        check_resume_fails(*state, s, path, "was changed");
        bytes.data[20 + i * (bytes.length - 21) / 4] ^= 1;
    }
    bytes.length /= 2;
    check_ok(crdi_file_write(*state, path, &bytes));
    check_resume_fails(*state, s, path, "cut off");
    bytes.length = 3;
    check_ok(crdi_file_write(*state, path, &bytes));
    check_resume_fails(*state, s, path, "no saved state");
    check_resume_fails(*state, s, "/nowhere/state", "/nowhere/state");
    crd_text_clear(&bytes);
    unlink(path);
    crd_system_destroy(s);
}

static void examples_resume_to_the_last_bit(void** state)
{
    static const struct {
        const char* file;
        double stop;
        int64_t at;
    } of[] = {
        {"oscillator/oscillator.yaml", 0.4, 17},
        {"systems/oscillator_coupled.yaml", 0.4, 17},
        {"systems/oscillator_multirate.yaml", 0.4, 17},
        {"systems/shaft_pair.yaml", 0.5, 17},
        {"systems/shaft_pair.yaml+over", 8, 570},
        {"systems/loudspeaker.yaml", 0.05, 17},
        {"systems/cooling.yaml", 60, 17},
        {"systems/stop.yaml", 0.5, 17},
        {"systems/ecar.yaml", 5, 17},
        {"twin.yaml", 60, 17},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char what[256];
        crd_system* s = load_example(*state, of[i].file, of[i].stop);
        check_branches(*state, s, of[i].at, i);
        snprintf(what, sizeof what, "--example %s %.17g", of[i].file, of[i].stop);
        check_file(*state, s, of[i].at, what, i);
        crd_system_destroy(s);
    }
}

// ---- what is said ------------------------------------------------------------------------------

static void values_pass_by_handle(void** state)
{
    crd_system* s = NULL;
    crd_unit_spec u = crd_unit_spec_defaults();
    check_ok(crd_system_create(*state, &s));
    u.source = CRD_UNIT_NATIVE;
    u.name = "a";
    u.model = &euler_model;
    check_ok(crd_system_add_unit(s, &u, NULL));
    u.name = "b";
    u.model = &gain_model;
    check_ok(crd_system_add_unit(s, &u, NULL));
    crd_connection_spec c = crd_connection_spec_defaults();
    c.from_unit = 0, c.from = "y", c.to_unit = 1, c.to = "u";
    check_ok(crd_system_add_connection(s, &c));
    s->run.step = 0.1;
    s->run.stop = 10;
    crd_master_options o = crd_master_defaults();
    o.columns = o.snapshots = true;
    crd_master* m = NULL;
    check_ok(crd_master_create(*state, s, &o, &m));
    int in = -1, again = -1, out = -1, fed = -1, k = -1, none = -1;
    check_ok(crd_master_find(m, "a.u", &in));
    check_ok(crd_master_find(m, "a.u", &again));
    check_int(in, again);
    check_ok(crd_master_find(m, "a.y", &out));
    check_ok(crd_master_find(m, "b.u", &fed));
    check_ok(crd_master_find(m, "b.a", &k));
    check_int(crd_master_find(m, "b.nothing", &none), CRD_E_NOT_FOUND);
    double x = 3, y = 0;
    check_int(crd_master_get(m, out, &y), CRD_E_STATE);
    check_ok(crd_master_initialize(m));
    check_int(crd_master_set(m, fed, &x), CRD_E_STATE); // connected
    check_int(crd_master_set(m, out, &x), CRD_E_UNSUPPORTED);
    check_int(crd_master_set(m, in, &(double){NAN}), CRD_E_RANGE);
    check_int(crd_master_set(m, 99, &x), CRD_E_RANGE);
    check_ok(crd_master_set(m, in, &x)); // y' = 3
    check_ok(crd_master_advance(m, 10));
    check_ok(crd_master_get(m, out, &y));
    check_near(y, 3.0, 1e-12);
    check_near(*crd_master_handle(m, out)->at, y, 0);
    x = 2;
    check_ok(crd_master_set(m, k, &x)); // tunable: b.y = 2 b.u
    check_ok(crd_master_advance(m, 1));
    check_ok(crd_master_get(m, fed, &x));
    check_ok(crd_master_value(m, "b.y", &y));
    check_near(y, 2 * x, 1e-12);
    crd_master_cancel(m);
    check_ok(crd_master_advance(m, 5));
    check_int(crd_master_ended(m), CRD_END_INTERRUPTED);
    check_ok(crd_master_reset(m)); // what was set is as it was
    check_ok(crd_master_get(m, in, &x));
    check_near(x, 0, 0);
    check_ok(crd_master_advance(m, 10));
    check_ok(crd_master_get(m, out, &y));
    check_near(y, 0, 0);
    check_int(crd_master_table(m)->rows, 11);
    check_ok(crd_master_finish(m));
    check_int(crd_master_reset(m), CRD_E_STATE);
    check_int(crd_master_set(m, in, &x), CRD_E_STATE);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void a_unit_that_cannot_be_saved_is_named(void** state)
{
    crd_system* s = NULL;
    crd_unit_spec u = crd_unit_spec_defaults();
    crd_model lost = euler_model;
    lost.stateless = true;
    check_ok(crd_system_create(*state, &s));
    u.source = CRD_UNIT_NATIVE;
    u.name = "lost";
    u.model = &lost;
    check_ok(crd_system_add_unit(s, &u, NULL));
    crd_master_options o = crd_master_defaults();
    crd_master* m = NULL;
    crd_snapshot* p = NULL;
    o.snapshots = true;
    check_ok(crd_master_create(*state, s, &o, &m));
    check_int(crd_master_save(m, &p), CRD_E_STATE);
    check_ok(crd_master_initialize(m));
    check_int(crd_master_save(m, &p), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(*state), "unit 'lost'");
    check_int(crd_master_reset(m), CRD_E_UNSUPPORTED);
    assert_null(p);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// x' = u from 0: each of three runs goes its own way, the one that fails says so and the others go
// on.
static void a_batch_is_its_runs_one_by_one(void** state)
{
    crd_master* runs[3];
    crd_system* systems[3];
    int in = -1, out = -1;
    for (int i = 0; i < 3; i++) {
        crd_unit_spec u = crd_unit_spec_defaults();
        check_ok(crd_system_create(*state, &systems[i]));
        u.source = CRD_UNIT_NATIVE;
        u.name = "a";
        u.model = &euler_model;
        check_ok(crd_system_add_unit(systems[i], &u, NULL));
        systems[i]->run.step = 0.1;
        systems[i]->run.stop = i == 2 ? 0.5 : 10;
        crd_master_options o = crd_master_defaults();
        o.snapshots = true;
        check_ok(crd_master_create(*state, systems[i], &o, &runs[i]));
        check_ok(crd_master_initialize(runs[i]));
        check_ok(crd_master_find(runs[i], "a.u", &in));
        check_ok(crd_master_find(runs[i], "a.y", &out));
    }
    double u[3] = {1, 2, 3}, y[3] = {9, 9, 9};
    int32_t ends[3] = {0};
    bool skip[3] = {false, true, false};
    const crd_batch b = {.runs = runs,
                         .count = 3,
                         .set = &in,
                         .set_count = 1,
                         .get = &out,
                         .get_count = 1,
                         .ticks = 10,
                         .skip = skip,
                         .values = u,
                         .out = y,
                         .ends = ends};
    check_int(crd_master_advance_batch(&b), 0);
    check_near(y[0], 1, 1e-12);
    check_near(y[1], 9, 0); // left alone
    check_near(y[2], 1.5, 1e-12);
    check_int(ends[0], CRD_END_NONE);
    check_int(ends[2], CRD_END_STOP_TIME);
    skip[1] = false;
    u[0] = NAN;
    check_int(crd_master_advance_batch(&b), 1);
    check_int(ends[0], CRD_E_RANGE);
    check_near(y[1], 2, 1e-12);
    check_near(y[2], 1.5, 1e-12); // it has ended
    check_ok(crd_master_reset(runs[2]));
    crd_batch look = b;
    look.ticks = 0;
    check_int(crd_master_advance_batch(&look), 0);
    check_near(y[0], 1, 1e-12);
    check_near(y[2], 0, 0);
    check_int(ends[2], CRD_END_NONE);
    look.get = (int[]){77};
    check_int(crd_master_advance_batch(&look), 3);
    for (int i = 0; i < 3; i++) {
        crd_master_destroy(runs[i]);
        crd_system_destroy(systems[i]);
    }
}

int main(int argc, char** argv)
{
    self = argv[0];
    if (argc == 5 && strcmp(argv[1], "--random") == 0) {
        from_seed = atoi(argv[2]);
        seeds = 1;
        resume_file = argv[3], resumed_file = argv[4];
        a_resumed_run_is_the_uninterrupted_one_to_the_last_bit(NULL);
        return 0;
    }
    if (argc == 6 && strcmp(argv[1], "--example") == 0) {
        crd_context* ctx = crd_context_create(NULL);
        crd_system* s = load_example(ctx, argv[2], atof(argv[3]));
        resume_file = argv[4], resumed_file = argv[5];
        go_on_from_file(ctx, s);
        crd_system_destroy(s);
        crd_context_destroy(ctx);
        return 0;
    }
    char folder[] = "/tmp/crd_snapshot_XXXXXX", file[64];
    if (!mkdtemp(folder)) { return 1; }
    setenv(FOLDER, folder, 1);
    snprintf(file, sizeof file, "%s/key", folder); // not that of who tests
    setenv("CARDAN_STATE_KEY", file, 1);
    if (argc > 2) {
        from_seed = atoi(argv[1]);
        seeds = atoi(argv[2]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_pass_by_handle, check_set_up, check_tear_down),
        cmocka_unit_test_setup_teardown(a_batch_is_its_runs_one_by_one, check_set_up,
                                        check_tear_down),
        cmocka_unit_test_setup_teardown(a_unit_that_cannot_be_saved_is_named, check_set_up,
                                        check_tear_down),
        cmocka_unit_test_setup_teardown(a_resumed_run_is_the_uninterrupted_one_to_the_last_bit,
                                        check_set_up, check_tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, check_set_up,
                                        check_tear_down),
        cmocka_unit_test_setup_teardown(examples_resume_to_the_last_bit, check_set_up,
                                        check_tear_down),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    static const char* const made[] = {"key", "net.cir", "twin.yaml"};
    for (int i = 0; i < 3; i++) {
        snprintf(file, sizeof file, "%s/%s", folder, made[i]);
        unlink(file);
    }
    rmdir(folder);
    return failed;
}
