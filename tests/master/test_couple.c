// Connections with a coupling: against the library beside it, over channels that delay, lose and
// repeat, under all schemes, with shadows, in the record and in the report.
#include "master/master.h"
#include "models.h"

#include "cardan/learn.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#define STEP 0.01

// A source that is worth predicting: y = 3 + sin 3t + 0.3 sin(11 t + 1), or t itself.
typedef struct {
    double y, jump;
    int32_t ramp;
} wave;

static double wave_at(double t)
{
    return 3 + sin(3 * t) + 0.3 * sin(11 * t + 1);
}

static void wave_outputs(void* self, double t)
{
    wave* w = self;
    w->y = w->ramp ? t : wave_at(t) + (t >= w->jump ? 5 : 0);
}

static crd_model_status wave_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    wave_outputs(self, t);
    return CRD_MODEL_OK;
}

static crd_model_status wave_step(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    (void)self;
    (void)host;
    *reached = t + h;
    return CRD_MODEL_OK;
}

static const crd_model_variable wave_variables[] = {
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_CONTINUOUS,
     .offset = offsetof(wave, y),
     .depends = ""},
    REAL(wave, jump, CRD_PARAMETER, 1e300),
    {.name = "ramp",
     .type = CRD_INT32,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(wave, ramp)},
};
static const crd_model wave_model = {.name = "wave",
                                     .description = "sines",
                                     .size = sizeof(wave),
                                     .variables = wave_variables,
                                     .variable_count = 3,
                                     .default_step = STEP,
                                     .default_stop = 1,
                                     .initialize = wave_initialize,
                                     .outputs = wave_outputs,
                                     .step = wave_step};

// ---- builder -----------------------------------------------------------------------------------

static const crd_channel_spec quiet = {.step = NAN, .burst = 1, .seed = 1};

static crd_coupling_spec couple(const char* element)
{
    return (crd_coupling_spec){
        .element = element, .place = {"couple.yaml", 7}, .channel = quiet, .record = true};
}

static crd_coupling_spec delayed(const char* element, double delay)
{
    crd_coupling_spec c = couple(element);
    c.has_channel = true;
    c.channel.delay = delay;
    return c;
}

// wave -> gain, with a coupling between them. `c` has to outlive the system.
static crd_system* chain(crd_context* ctx, const crd_coupling_spec* c, double stop)
{
    crd_system* s = new_system(ctx, STEP, stop);
    const int w = add_unit(s, "w", &wave_model, 0), g = add_unit(s, "g", &gain_model, 0);
    wire(s, w, "y", g, "u")->coupling = c;
    return s;
}

static crd_master* begin(crd_context* ctx, const crd_system* s)
{
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    return m;
}

// The input that the unit had in the tick that now comes.
static double next_input(crd_context* ctx, crd_master* m, const char* name)
{
    check_run(crd_master_advance(m, 1), ctx);
    return value(m, name);
}

static crd_coupling* library_element(crd_context* ctx, const char* text, double step,
                                     crd_element** e)
{
    crd_coupling_options opt;
    crd_coupling* c = NULL;
    check_run(crd_element_parse(ctx, text, strlen(text), "library", 1, e), ctx);
    check_ok(crd_element_options(*e, step, &opt));
    check_ok(crd_coupling_create(ctx, &opt, &c));
    return c;
}

// What a failing create says.
static void check_refused(const crd_coupling_spec* c, crd_status want, const char* part)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = chain(ctx, c, 1);
    crd_master* m = NULL;
    check_status(crd_master_create(ctx, s, NULL, &m), want);
    check_contains(crd_error_text(ctx), part);
    check_contains(crd_error_text(ctx), "couple.yaml:7: ");
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

// ---- the same as the library -------------------------------------------------------------------

static void check_equals_library(const char* element, double delay, int k)
{
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec c = delayed(element, delay);
    crd_system* s = chain(ctx, &c, 3);
    crd_master* m = begin(ctx, s);
    crd_element* e = NULL;
    crd_coupling* own = library_element(ctx, element, STEP, &e);
    double samples[300];
    for (int n = 0; n < 300; n++) {
        const double t = n * STEP;
        samples[n] = value(m, "w.y");
        if (n >= k) { crd_coupling_push(own, samples[n - k], (n - k) * STEP, n - k); }
        // Until a sample is there, and at the start, the input is what the initialisation found.
        const double want = n < k || n == 0 ? samples[0] : crd_coupling_eval(own, t);
        const double got = next_input(ctx, m, "g.u");
        if (got != want) { fail_msg("%s, step %d: %.17g, expected %.17g", element, n, got, want); }
    }
    const crd_coupling_report* r = crd_master_get_report(m)->couplings;
    check_int(crd_master_get_report(m)->coupling_count, 1);
    check_int(r->k_max, k);
    check_near(r->k_mean, k, 0);
    check_int(r->sent, 301);
    check_int(r->taps[0].counts.samples, 301 - k);
    crd_coupling_destroy(own);
    crd_element_destroy(e);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

static void an_input_is_what_the_library_says_bit_for_bit(void** state)
{
    (void)state;
    static const char* const elements[] = {
        "{\"algorithm\": \"zoh\"}",
        "{\"algorithm\": \"foh\"}",
        "{\"algorithm\": \"eros\"}",
        "{\"algorithm\": \"eros\", \"reconstruct\": \"smooth\", \"react\": \"switch\"}",
        "{\"algorithm\": \"wiener\", \"taps\": 9, \"step\": \"10 ms\"}",
        "{\"algorithm\": \"auto\"}",
    };
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        check_equals_library(elements[i], 0.06, 6);
    }
    check_equals_library("{\"algorithm\": \"eros\"}", 0.0575, 6); // seen when the next step begins
    check_equals_library("{\"algorithm\": \"eros\"}", 0, 0);
}

// The seed of a connection has the names of unit and input in it.
static uint64_t with_name(const char* text, uint64_t h)
{
    for (; *text; text++) {
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return h;
}

// Samples that overtake each other, come twice or never: two programs, one channel.
static void a_channel_is_that_of_a_replayed_recording(void** state)
{
    (void)state;
    enum { N = 2000 };
    static const char element[] = "{\"algorithm\": \"foh\", \"detect\": \"none\"}";
    static double y[N], want[N];
    crd_context* ctx = crd_context_create(NULL);
    for (int i = 0; i < 3; i++) {
        crd_coupling_spec c = delayed(element, 0.09);
        c.channel.jitter = 0.09;
        c.channel.loss = i == 1 ? 0.2 : 0;
        c.channel.burst = 3;
        c.channel.duplicate = i == 2 ? 1 : 0.1;
        crd_system* s = chain(ctx, &c, N * STEP);
        crd_master* m = begin(ctx, s);
        crd_element* e = NULL;
        crd_replay r;
        crd_replay_options o = crd_replay_defaults();
        o.step = STEP;
        o.delay = c.channel.delay;
        o.jitter = c.channel.jitter;
        o.loss = c.channel.loss;
        o.burst = c.channel.burst;
        o.duplicate = c.channel.duplicate;
        o.seed = with_name("u", with_name("g", c.channel.seed));
        for (int n = 0; n < N; n++) {
            y[n] = wave_at(n * STEP);
        }
        check_ok(crd_element_parse(ctx, element, sizeof element - 1, "", 0, &e));
        check_ok(crd_coupling_replay(ctx, e, &o, y, N, want, &r));
        for (int n = 0; n < N; n++) {
            const double got = next_input(ctx, m, "g.u");
            if (fabs(got - want[n]) > 1e-9) {
                fail_msg("case %d, step %d: %.17g, expected %.17g", i, n, got, want[n]);
            }
        }
        check(r.counts.late > 100 && r.k_max > 5);
        check_int(r.lost > 100, i == 1);
        check(i != 2 || r.repeated == N);
        crd_element_destroy(e);
        crd_master_destroy(m);
        crd_system_destroy(s);
    }
    crd_context_destroy(ctx);
}

static void a_known_latency_stands_in_for_time_stamps(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec c[2] = {delayed("{\"algorithm\": \"eros\"}", 0.06),
                                    delayed("{\"algorithm\": \"eros\", \"latency\": 6}", 0.06)};
    crd_system* s[2];
    crd_master* m[2];
    for (int i = 0; i < 2; i++) {
        s[i] = chain(ctx, &c[i], 2);
        m[i] = begin(ctx, s[i]);
    }
    for (int n = 0; n < 200; n++) {
        const double a = next_input(ctx, m[0], "g.u"), b = next_input(ctx, m[1], "g.u");
        check_near(a, b, 1e-10);
    }
    check_int(crd_master_get_report(m[1])->couplings[0].k_max, 6);
    check_near(crd_master_get_report(m[1])->couplings[0].taps[0].metrics.C,
               crd_master_get_report(m[0])->couplings[0].taps[0].metrics.C, 1e-9);
    for (int i = 0; i < 2; i++) {
        crd_master_destroy(m[i]);
        crd_system_destroy(s[i]);
    }
    crd_context_destroy(ctx);
}

// Without a channel the source itself is late: estimates are ahead of it, and their error against
// it is no error.
static void a_known_latency_without_a_channel_looks_ahead_of_the_source(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec c = couple("{\"algorithm\": \"foh\", \"latency\": \"60 ms\"}");
    crd_system* s = chain(ctx, &c, 1);
    set(s, 0, "ramp", "1");
    crd_master* m = begin(ctx, s);
    for (int n = 0; n < 100; n++) {
        const double u = next_input(ctx, m, "g.u");
        if (n > 1) { check_near(u, n * STEP + 0.06, 1e-12); }
    }
    for (int i = 0; i < crd_master_signal_count(m); i++) {
        check(!strstr(crd_master_signal_name(m, i), "error"));
    }
    const crd_tap_report* t = &crd_master_get_report(m)->couplings[0].taps[0];
    check(t->scored > 90); // each sample tells how good the estimate of 60 ms before was
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

static void gain_and_offset_come_before_the_element(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec c = delayed("{\"algorithm\": \"foh\"}", 0.03);
    crd_system* s = chain(ctx, &c, 1);
    crd_connection_spec* k = &s->connections[0];
    k->has_transformation = true;
    k->gain = -2;
    k->offset = 7;
    set(s, 0, "ramp", "1");
    crd_master* m = begin(ctx, s);
    for (int n = 0; n < 100; n++) {
        const double u = next_input(ctx, m, "g.u");
        check_near(u, n < 4 ? 7 : 7 - 2 * n * STEP, 1e-12);
    }
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

// ---- channels ----------------------------------------------------------------------------------

static crd_coupling_report run_channel(crd_context* ctx, const crd_coupling_spec* c, double stop,
                                       double* last)
{
    crd_system* s = chain(ctx, c, stop);
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    crd_coupling_report r = crd_master_get_report(m)->couplings[0];
    static crd_tap_report taps[8];
    memcpy(taps, r.taps, (size_t)r.tap_count * sizeof *taps);
    r.taps = taps;
    *last = value(m, "g.u");
    crd_master_destroy(m);
    crd_system_destroy(s);
    return r;
}

static void a_channel_loses_as_many_samples_as_it_is_told(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int burst = 1; burst <= 5; burst += 2) {
        crd_coupling_spec c = delayed("{\"algorithm\": \"foh\"}", 0.03);
        c.channel.loss = 0.1;
        c.channel.burst = burst;
        double last = 0;
        const crd_coupling_report r = run_channel(ctx, &c, 200, &last);
        check_int(r.sent, 20001);
        // Four times the deviation of as many bursts as there are.
        check_near((double)r.lost / 20001, 0.1, 4 * sqrt(0.1 * 0.9 * burst / 20001.0));
        // Gaps were filled, or the history was too short for the last one.
        check(r.taps[0].counts.filled >= r.lost - burst - 4);
        check_int(r.taps[0].counts.samples, 20001 - r.lost - 3); // three are still on their way
        check(r.k_max >= 3 + burst);
    }
    crd_context_destroy(ctx);
}

// As a bench on a network: three steps late, with nothing new in one step and two in the next.
static void a_number_that_a_source_leaves_out_is_filled_and_not_lost(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec c = couple("{\"algorithm\": \"zoh\"}");
    crd_system* s = chain(ctx, &c, 1);
    crd_master* m = begin(ctx, s);
    m->connections.coupled[0].dated = true;
    for (int i = 1; i <= 20; i++) {
        m->plan->members[0].unit->made = i == 1 ? (double)NAN : STEP * (i - 3 - (i == 10));
        check_run(crd_master_advance(m, 1), ctx);
    }
    const crd_coupling_report r = crd_master_get_report(m)->couplings[0];
    check_int(r.sent, 17); // the start, and from the fourth step on all but one
    check_int(r.taps[0].counts.samples, 17);
    check_int(r.taps[0].counts.filled, 1);
    check_int(r.lost, 0);
    check_int(r.k_max, 4);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

static void the_same_seed_gives_the_same_run_and_another_one_another(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_coupling_report r[3];
    double last[3];
    crd_coupling_spec c = delayed("{\"algorithm\": \"eros\"}", 0.0575);
    c.channel.jitter = 0.02;
    c.channel.loss = 0.05;
    c.channel.duplicate = 0.03;
    crd_tap_report taps[3];
    for (int i = 0; i < 3; i++) {
        c.channel.seed = i == 2 ? 9 : 4;
        r[i] = run_channel(ctx, &c, 100, &last[i]);
        taps[i] = r[i].taps[0];
    }
    check(memcmp(&taps[0].counts, &taps[1].counts, sizeof taps[0].counts) == 0);
    check(taps[0].metrics.C == taps[1].metrics.C && last[0] == last[1]);
    check(taps[0].metrics.C != taps[2].metrics.C);
    check(r[0].lost != r[2].lost || r[0].repeated != r[2].repeated);
    // Jitter above the step makes samples overtake each other; what comes twice is told apart.
    check(taps[0].counts.late > 10);
    check(r[0].repeated > 200 && r[0].repeated < 400);
    check(taps[0].counts.duplicates > r[0].repeated / 2);
    check_int(taps[0].counts.too_late + taps[0].counts.backwards + taps[0].counts.restarts, 0);
    check(r[0].k_max >= 7 && r[0].k_mean > 5 && r[0].k_mean < 7);
    crd_context_destroy(ctx);
}

static void constants_pass_any_channel_unchanged(void** state)
{
    (void)state;
    static const char* const elements[] = {"{\"algorithm\": \"foh\"}", "{\"algorithm\": \"eros\"}",
                                           "{\"algorithm\": \"auto\"}"};
    for (int i = 0; i < 3; i++) {
        crd_context* ctx = crd_context_create(NULL);
        crd_coupling_spec c = delayed(elements[i], 0.05);
        c.channel.jitter = 0.03;
        c.channel.loss = 0.2;
        c.channel.burst = 3;
        c.channel.duplicate = 0.1;
        crd_system* s = new_system(ctx, STEP, 5);
        const int p = add_unit(s, "p", &gain_model, 0), g = add_unit(s, "g", &gain_model, 0);
        set(s, p, "b", "0.7");
        wire(s, p, "y", g, "u")->coupling = &c;
        crd_master* m = begin(ctx, s);
        for (int n = 0; n < 500; n++) {
            check_near(next_input(ctx, m, "g.u"), 0.7, 1e-12);
        }
        crd_master_destroy(m);
        crd_system_destroy(s);
        crd_context_destroy(ctx);
    }
}

static void a_channel_samples_at_its_own_step(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_coupling_spec c = delayed("{\"algorithm\": \"foh\"}", 0.1);
    c.channel.step = 0.05; // every fifth tick
    crd_system* s = chain(ctx, &c, 2);
    set(s, 0, "ramp", "1");
    crd_master* m = begin(ctx, s);
    for (int n = 0; n < 200; n++) { // FOH follows the ramp between the samples, too
        const double u = next_input(ctx, m, "g.u");
        if (n >= 15) { check_near(u, n * STEP, 1e-12); }
    }
    const crd_coupling_report* r = crd_master_get_report(m)->couplings;
    check_int(r->sent, 41);
    check_int(r->k_max, 2);
    check_near(r->step, 0.05, 1e-15);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

// ---- schemes and rates -------------------------------------------------------------------------

// Two integrators around each other, both ways through couplings, and a third one beside them.
static double run_circle(crd_context* ctx, const char* scheme, int threads)
{
    crd_coupling_spec c[2] = {delayed("{\"algorithm\": \"eros\"}", 0.03),
                              delayed("{\"algorithm\": \"foh\"}", 0.02)};
    c[0].channel.loss = c[1].channel.loss = 0.05;
    crd_system* s = new_system(ctx, STEP, 10);
    const int a = add_unit(s, "a", &exact_model, 0), b = add_unit(s, "b", &euler_model, 0);
    const int e = add_unit(s, "e", &euler_model, 0);
    wire(s, a, "y", b, "u")->coupling = &c[0];
    wire(s, b, "y", a, "u")->coupling = &c[1];
    set(s, a, "x", "1");
    set(s, b, "a", "-1");
    set(s, e, "x", "1");
    set(s, e, "b", "-1");
    s->run.threads = threads;
    check_run(crd_system_set_scheme(s, scheme, (crd_place){"", 0}), ctx);
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    const double x = value(m, "a.y");
    crd_master_destroy(m);
    crd_system_destroy(s);
    return x;
}

// What arrives was sent before the step began, so the order of units makes no difference.
static void schemes_and_threads_do_not_change_a_bit(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const double jacobi = run_circle(ctx, "jacobi", 1);
    check(isfinite(jacobi) && jacobi != 0);
    check_near(jacobi, cos(10), 0.1); // Euler on one side
    check(run_circle(ctx, "jacobi", 2) == jacobi);
    check(run_circle(ctx, "gauss-seidel", 1) == jacobi);
    check(run_circle(ctx, "gauss-seidel: [b, {jacobi: [a, e]}]", 2) == jacobi);
    crd_context_destroy(ctx);
}

// x' = u exactly for inputs that are lines: with the slope of FOH, the integral of a ramp is exact.
static double integrate_ramp(crd_context* ctx, const char* element, const crd_model* model,
                             double step)
{
    crd_coupling_spec c = delayed(element, 0.03);
    crd_system* s = new_system(ctx, STEP, 1);
    const int w = add_unit(s, "w", &wave_model, STEP), x = add_unit(s, "x", model, step);
    set(s, w, "ramp", "1");
    wire(s, w, "y", x, "u")->coupling = &c;
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    const double y = value(m, "x.y");
    crd_master_destroy(m);
    crd_system_destroy(s);
    return y;
}

static void units_that_take_derivatives_get_the_slope_of_the_curve(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const double own = integrate_ramp(ctx, "{\"algorithm\": \"foh\"}", &exact_model, 0);
    const double hold =
        integrate_ramp(ctx, "{\"algorithm\": \"foh\", \"reconstruct\": \"hold\"}", &exact_model, 0);
    const double smooth = integrate_ramp(
        ctx, "{\"algorithm\": \"foh\", \"reconstruct\": \"smooth\"}", &exact_model, 0);
    // The ramp is known from t = 0.04 on: what came before is a constant 0 and a jump to the line.
    const double late = 0.5 * 0.04 * 0.04;
    check_near(own, 0.5 - late, 1e-12);
    check_near(hold, own - 0.5 * STEP * 0.96, 1e-12);   // half a step of each step is missing
    check_near(smooth, own - 0.5 * STEP * 0.04, 1e-12); // that jump is spread over a step
    // Finer steps of a unit that takes values only: the missing half becomes small.
    const double fine = integrate_ramp(ctx, "{\"algorithm\": \"foh\"}", &euler_model, STEP / 16);
    check_near(fine, own - 0.5 * STEP / 16 * 0.96, 1e-12);
    crd_context_destroy(ctx);
}

static void a_target_with_a_longer_step_is_estimated_for_its_own_times(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    for (int gauss_seidel = 0; gauss_seidel < 2; gauss_seidel++) {
        crd_coupling_spec c = delayed("{\"algorithm\": \"foh\"}", 0.03);
        crd_system* s = new_system(ctx, STEP, 2);
        const int w = add_unit(s, "w", &wave_model, STEP),
                  g = add_unit(s, "g", &gain_model, 5 * STEP);
        set(s, w, "ramp", "1");
        wire(s, w, "y", g, "u")->coupling = &c;
        if (gauss_seidel) {
            check_ok(crd_system_set_scheme(s, "gauss-seidel", (crd_place){"", 0}));
        }
        crd_master* m = begin(ctx, s);
        for (int n = 1; n <= 200; n++) {
            const double u = next_input(ctx, m, "g.u");
            if (n % 5 == 0 && n > 10) { check_near(u, (n - 5) * STEP, 1e-12); }
        }
        check_int(crd_master_get_report(m)->couplings[0].sent, 201); // all samples count
        crd_master_destroy(m);
        crd_system_destroy(s);
    }
    crd_context_destroy(ctx);
}

// ---- the start ---------------------------------------------------------------------------------

static void loops_at_the_start_are_solved_as_without_coupling(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_coupling_spec c = delayed("{\"algorithm\": \"eros\"}", 0.03);
    crd_system* s = new_system(ctx, STEP, 1);
    const int p = add_unit(s, "p", &gain_model, 0), q = add_unit(s, "q", &plain_gain_model, 0);
    set(s, p, "a", "0.5");
    set(s, p, "b", "1");
    wire(s, p, "y", q, "u")->coupling = &c;
    wire(s, q, "y", p, "u");
    crd_master* m = begin(ctx, s);
    check_int(crd_master_get_report(m)->loop_count, 1);
    check_near(value(m, "q.u"), 2, 1e-9);
    const double start = value(m, "p.y");
    check(next_input(ctx, m, "q.u") == start); // to the last bit, whatever the weights
    for (int n = 1; n < 100; n++) {
        check_near(next_input(ctx, m, "q.u"), 2, 1e-9);
    }
    // The element saw one sample per step, none of the trials.
    check_int(crd_master_get_report(m)->couplings[0].taps[0].counts.samples, 101 - 3);
    check_int(crd_master_get_report(m)->couplings[0].taps[0].counts.jumps, 0);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

// ---- record ------------------------------------------------------------------------------------

static bool has_signal(const crd_master* m, const char* name)
{
    for (int i = 0; i < crd_master_signal_count(m); i++) {
        if (strcmp(crd_master_signal_name(m, i), name) == 0) { return true; }
    }
    return false;
}

static const char* const shadows[] = {"{\"algorithm\": \"zoh\"}", "{\"algorithm\": \"eros\"}",
                                      "{\"algorithm\": \"eros\"}"};
static const crd_place shadow_places[] = {
    {"couple.yaml", 7}, {"couple.yaml", 7}, {"couple.yaml", 7}};

static void error_latency_jumps_and_shadows_are_signals_of_the_record(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    static const char* const names[] = {"w.y",
                                        "g.y",
                                        "g.u.coupling.error",
                                        "g.u.coupling.k",
                                        "g.u.coupling.jump",
                                        "g.u.coupling.active",
                                        "g.u.coupling.zoh.error",
                                        "g.u.coupling.eros.error",
                                        "g.u.coupling.eros_2.error"};
    static const char* const patterns[] = {"*.coupling.*error", "g.y"};
    for (int i = 0; i < 3; i++) {
        crd_coupling_spec c = delayed("{\"algorithm\": \"foh\"}", 0.06);
        c.shadows = shadows;
        c.shadow_places = shadow_places;
        c.shadow_count = 3;
        c.record = i != 1;
        crd_system* s = chain(ctx, &c, 1);
        if (i == 2) {
            s->results.patterns = patterns;
            s->results.pattern_count = 2;
        }
        crd_master* m = NULL;
        check_run(crd_master_create(ctx, s, NULL, &m), ctx);
        check_int(crd_master_signal_count(m), i == 0 ? 9 : i == 1 ? 2 : 5);
        for (int k = 0; i == 0 && k < 9; k++) {
            check_text(crd_master_signal_name(m, k), names[k]);
        }
        check(has_signal(m, "g.u.coupling.zoh.error") == (i != 1));
        crd_master_destroy(m);
        crd_system_destroy(s);
    }
    crd_context_destroy(ctx);
}

static void no_two_shadows_have_the_same_name(void** state)
{
    (void)state;
    static const char* const alike[] = {"{\"algorithm\": \"zoh\"}",
                                        "{\"algorithm\": \"eros\", \"name\": \"zoh_2\"}",
                                        "{\"algorithm\": \"zoh\"}"};
    crd_context* ctx = crd_context_create(NULL);
    crd_coupling_spec c = delayed("{\"algorithm\": \"foh\"}", 0.06);
    c.shadows = alike;
    c.shadow_places = shadow_places;
    c.shadow_count = 3;
    crd_system* s = chain(ctx, &c, 1);
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_int(crd_master_signal_count(m), 9);
    check_text(crd_master_signal_name(m, 6), "g.u.coupling.zoh.error");
    check_text(crd_master_signal_name(m, 7), "g.u.coupling.zoh_2.error");
    check_text(crd_master_signal_name(m, 8), "g.u.coupling.zoh_3.error");
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

static void nobody_is_told_to_change_to_what_is_worse(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_coupling_spec c = delayed("{\"algorithm\": \"foh\"}", 0.06);
    static const char* const worse[] = {"{\"algorithm\": \"zoh\"}"};
    c.shadows = worse;
    c.shadow_places = shadow_places;
    c.shadow_count = 1;
    crd_system* s = chain(ctx, &c, 10);
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    check_text(crd_master_get_report(m)->couplings[0].hint, "");
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

// The rows of a CSV with numbers only, `columns` each; returns their number.
static int read_rows(const char* path, int columns, double rows[][8], int most)
{
    FILE* f = fopen(path, "r");
    char line[1024];
    int n = 0;
    check(f != NULL && fgets(line, sizeof line, f));
    for (; n < most && fgets(line, sizeof line, f); n++) {
        char* at = line;
        for (int k = 0; k < columns; k++) {
            rows[n][k] = strtod(at, &at);
            at += *at == ',';
        }
    }
    fclose(f);
    return n;
}

static void the_recorded_error_is_the_estimate_minus_the_undelayed_value(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    static const char* const patterns[] = {"g.y", "g.u.coupling.*"};
    crd_coupling_spec c = delayed("{\"algorithm\": \"foh\", \"react\": \"switch\"}", 0.06);
    c.shadows = shadows;
    c.shadow_places = shadow_places;
    c.shadow_count = 1;
    crd_system* s = chain(ctx, &c, 2);
    set(s, 0, "jump", "0.995");
    s->results.path = TEST_BUILD_DIR "/test_couple.csv";
    s->results.patterns = patterns;
    s->results.pattern_count = 2;
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    static double row[256][8];
    check_int(read_rows(s->results.path, 7, row, 256), 201);
    int jumps = 0;
    for (int n = 0; n < 201; n++) {
        // time, g.y, error, k, jump, active, error of ZOH; g.y in row n + 1 is the estimate of row
        // n
        const double t = n * STEP, y = wave_at(t) + (t >= 0.995 ? 5 : 0);
        if (n < 200) { check_near(row[n][2], row[n + 1][1] - y, 1e-12); }
        check_int((int)row[n][3], n < 6 ? 0 : 6);
        const double old = n < 6 ? wave_at(0) : wave_at(t - 0.06) + (t - 0.06 >= 0.995 ? 5 : 0);
        check_near(row[n][6], old - y, 1e-9);
        jumps += row[n][4] != 0;
        if (row[n][4] != 0) {
            check_int(n, 106); // the first sample behind the jump has come
            check_int((int)row[n][5], CRD_ACTIVE_ZOH);
        }
    }
    check_int(jumps, 1);
    check_int(crd_master_get_report(m)->couplings[0].taps[0].counts.jumps, 1);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

// Two ramps in an array, through a gain.
typedef struct {
    double in[2], out[2];
} pair;

static void pair_outputs(void* self, double t)
{
    pair* p = self;
    p->out[0] = t;
    p->out[1] = 10 - 2 * t;
}

static crd_model_status pair_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    pair_outputs(self, t);
    return CRD_MODEL_OK;
}

static const crd_model_variable pair_variables[] = {
    {.name = "in",
     .type = CRD_FLOAT64,
     .causality = CRD_INPUT,
     .offset = offsetof(pair, in),
     .size = 2},
    {.name = "out",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(pair, out),
     .size = 2,
     .depends = ""},
};
static const crd_model pair_model = {.name = "pair",
                                     .description = "two ramps",
                                     .size = sizeof(pair),
                                     .variables = pair_variables,
                                     .variable_count = 2,
                                     .default_step = STEP,
                                     .default_stop = 1,
                                     .initialize = pair_initialize,
                                     .outputs = pair_outputs,
                                     .step = wave_step};

static void each_element_of_an_array_has_a_coupling_of_its_own(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_coupling_spec c = delayed("{\"algorithm\": \"foh\"}", 0.03);
    c.channel.loss = 0.2;
    crd_system* s = new_system(ctx, STEP, 1);
    const int a = add_unit(s, "a", &pair_model, 0), b = add_unit(s, "b", &pair_model, 0);
    wire(s, a, "out", b, "in")->coupling = &c;
    wire(s, b, "out[2]", a, "in[1]")->coupling = &c;
    crd_master* m = begin(ctx, s);
    check(has_signal(m, "b.in[1].coupling.error") && has_signal(m, "b.in[2].coupling.error"));
    check(has_signal(m, "a.in[1].coupling.error") && !has_signal(m, "a.in[2].coupling.error"));
    for (int n = 0; n < 100; n++) {
        check_run(crd_master_advance(m, 1), ctx);
        if (n < 20) { continue; }
        check_near(value(m, "b.in[1]"), n * STEP, 1e-9);
        check_near(value(m, "b.in[2]"), 10 - 2 * n * STEP, 1e-9);
        check_near(value(m, "a.in[1]"), 10 - 2 * n * STEP, 1e-9);
    }
    const crd_coupling_report* r = crd_master_get_report(m)->couplings;
    check_int(crd_master_get_report(m)->coupling_count, 3);
    check_text(r[1].to, "b.in[2]"); // in the order of writing
    check_text(r[2].from, "b.out[2]");
    check(r[0].lost > 0 && r[0].lost == r[1].lost); // they travel together
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

// ---- report ------------------------------------------------------------------------------------

static void shadows_are_scored_and_a_better_one_is_named(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_coupling_spec c = delayed("{\"algorithm\": \"zoh\"}", 0.06);
    static const char* const better[] = {"{\"algorithm\": \"foh\", \"name\": \"line\"}"};
    c.shadows = better;
    c.shadow_places = shadow_places;
    c.shadow_count = 1;
    crd_system* s = chain(ctx, &c, 10);
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    const crd_coupling_report* r = &crd_master_get_report(m)->couplings[0];
    check_text(r->from, "w.y");
    check_text(r->to, "g.u");
    check_int(r->tap_count, 2);
    check_text(r->taps[1].label, "line");
    check_int(r->taps[0].scored, 1001 - 6); // the last six are still on their way
    check_int(r->taps[1].scored, 1001 - 6);
    // The same sums by hand.
    crd_score sums[2] = {{0}};
    for (int n = 0; n < 1001 - 6; n++) {
        const double y = wave_at(n * STEP);
        const double newest = n < 6 ? wave_at(0) : wave_at((n - 6) * STEP);
        const double before = n < 7 ? wave_at(0) : wave_at((n - 7) * STEP);
        crd_score_add(&sums[0], y, newest);
        crd_score_add(&sums[1], y, 7 * newest - 6 * before);
    }
    for (int i = 0; i < 2; i++) {
        const crd_metrics want = crd_score_metrics(&sums[i]);
        check_near(r->taps[i].metrics.C, want.C, 1e-9);
        check_near(r->taps[i].metrics.rms, want.rms, 1e-9);
        check_near(r->taps[i].metrics.worst, want.worst, 1e-9);
    }
    check_contains(r->hint, "'line' would have been ");
    check_contains(r->hint, "better than 'zoh'");
    crd_text t;
    crd_text_init(&t, ctx);
    check_ok(crd_master_describe_verdict(m, &t));
    check_contains(t.data, "\"couplings\": [\n  {\"from\": \"w.y\", \"to\": \"g.u\"");
    check_contains(t.data, "\"shadows\": [{\"algorithm\": \"line\"");
    t.length = 0;
    check_ok(crd_master_describe_run(m, &t));
    check_contains(t.data, "\"coupling\": {\"algorithm\": \"zoh\", \"step\": 0.01");
    check_contains(t.data, "\"channel\": {\"delay\": 0.06");
    crd_text_clear(&t);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

typedef struct {
    char text[2048];
} heard;

static void hear(void* user, crd_level level, const char* text)
{
    heard* h = user;
    if (level != CRD_LOG_WARNING) { return; }
    strncat(h->text, text, sizeof h->text - strlen(h->text) - 1);
    strncat(h->text, "\n", sizeof h->text - strlen(h->text) - 1);
}

static void run_and_hear(const crd_coupling_spec* c, double factor, heard* h)
{
    crd_context_options opt = crd_context_defaults();
    *h = (heard){""};
    opt.log = hear;
    opt.log_user = h;
    crd_context* ctx = crd_context_create(&opt);
    crd_system* s = chain(ctx, c, 1);
    s->connections[0].has_transformation = true;
    s->connections[0].gain = factor;
    set(s, 0, "ramp", "1");
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

static void what_was_not_as_it_should_be_is_a_warning_at_the_end(void** state)
{
    (void)state;
    heard h;
    crd_coupling_spec c = delayed("{\"algorithm\": \"foh\"}", 0.03);
    run_and_hear(&c, 1, &h);
    check_text(h.text, "");
    run_and_hear(&c, 1e260, &h);
    check_contains(
        h.text,
        "coupling of w.y -> g.u: samples that were not finite: 97, the one before was held");
    c = delayed("{\"algorithm\": \"foh\", \"latency-max\": 2}", 0.06);
    run_and_hear(&c, 1, &h);
    check_contains(h.text, "estimates with a latency above latency-max = 2: 95,");
    check_contains(h.text, "the latency went up to 6");
    c = delayed("{\"algorithm\": \"foh\"}", 0.03);
    c.channel.loss = 1;
    run_and_hear(&c, 1, &h);
    check_contains(h.text, "no sample arrived, the input kept its start value");
    c = couple("{\"algorithm\": \"foh\", \"step\": \"20 ms\"}");
    c.has_channel = true;
    c.channel.step = 0.01;
    run_and_hear(&c, 1, &h);
    check_contains(h.text, "made for a step of 0.02 s, but its samples come every 0.01 s");
}

// ---- what is refused ---------------------------------------------------------------------------

static void nonsense_is_refused_with_its_place(void** state)
{
    (void)state;
    crd_coupling_spec c = delayed("{\"algorithm\": \"foh\"}", -1);
    check_refused(&c, CRD_E_RANGE, "coupling of w.y -> g.u: delay = -1 s, expected >= 0");
    c = delayed("{\"algorithm\": \"foh\"}", NAN);
    check_refused(&c, CRD_E_RANGE, "delay = nan s");
    c = delayed("{\"algorithm\": \"foh\"}", 0);
    c.channel.jitter = -0.5;
    check_refused(&c, CRD_E_RANGE, "jitter = -0.5 s, expected >= 0");
    c.channel.jitter = 0;
    c.channel.loss = 1.5;
    check_refused(&c, CRD_E_RANGE, "loss = 1.5, expected 0 to 1");
    c.channel.loss = 0;
    c.channel.duplicate = NAN;
    check_refused(&c, CRD_E_RANGE, "duplicate = nan, expected 0 to 1");
    c.channel.duplicate = 0;
    c.channel.burst = 0;
    check_refused(&c, CRD_E_RANGE, "burst = 0, expected >= 1");
    c.channel.burst = 1;
    c.channel.step = 0.015;
    check_refused(&c, CRD_E_RANGE,
                  "its step of 0.015 s is not a multiple of the run's tick of 0.01 s");
    c.channel.step = -1;
    check_refused(&c, CRD_E_RANGE, "its step of -1 s is not a multiple");
    c.channel.step = 1e-30;
    check_refused(&c, CRD_E_RANGE, "is not a multiple");
    c.channel.step = NAN;
    c.channel.delay = 1e9;
    check_refused(&c, CRD_E_RANGE, "1e+11 samples would be on their way at once");
    c = delayed("{\"algorithm\": \"fohh\"}", 0);
    check_refused(&c, CRD_E_FORMAT, "fohh");
    c = delayed("{\"algorithm\": ", 0);
    check_refused(&c, CRD_E_FORMAT, "couple.yaml:7");
    c = delayed("{\"algorithm\": \"foh\", \"signals\": 3}", 0);
    check_refused(&c, CRD_E_RANGE, "the element is for 3 signals, a connection has one");
    c = delayed("{\"algorithm\": \"foh\"}", 0);
    static const char* const wrong[] = {"{\"algorithm\": \"foh\"}", "{\"taps\": \"many\"}"};
    c.shadows = wrong;
    c.shadow_places = shadow_places;
    c.shadow_count = 2;
    check_refused(&c, CRD_E_FORMAT, "taps");
}

static void only_real_numbers_are_coupled(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec c = couple("{\"algorithm\": \"foh\"}");
    crd_system* s = new_system(ctx, STEP, 1);
    const int w = add_unit(s, "w", &wave_model, 0), g = add_unit(s, "g", &gain_model, 0);
    wire(s, w, "ramp", g, "u")->coupling = &c;
    crd_master* m = NULL;
    check_status(crd_master_create(ctx, s, NULL, &m), CRD_E_RANGE);
    check_text(crd_error_text(ctx), "couple.yaml:7: coupling of w.ramp -> g.u: 'ramp' is Int32, "
                                    "expected a real number");
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

// ---- learning ----------------------------------------------------------------------------------

#define NETWORK "{\"algorithm\": \"network\", \"start\": \"moment\", \"latency\": 6"

static void a_learning_element_without_a_server_is_the_element_itself(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec c[2] = {
        delayed(NETWORK "}", 0.06),
        delayed(NETWORK ", \"learn\": \"unix:" TEST_BUILD_DIR "/nobody.socket\"}", 0.06)};
    double last[2];
    for (int i = 0; i < 2; i++) {
        const crd_coupling_report r = run_channel(ctx, &c[i], 5, &last[i]);
        check_int(r.taps[0].learns, i);
        check_int(r.taps[0].networks, 0);
        check_int(r.taps[0].counts.swaps, 0);
    }
    check(last[0] == last[1]);
    const crd_coupling_spec wrong = delayed(NETWORK ", \"learn\": \"tcp:somewhere:80\"}", 0.06);
    check_refused(&wrong, CRD_E_RANGE, "somewhere");
    crd_context_destroy(ctx);
}

typedef struct {
    crd_context* ctx;
    crd_learn_server* server;
    volatile bool stop;
} school;

static void* teach(void* user)
{
    school* s = user;
    (void)crd_learn_server_run(s->server, &s->stop, 60);
    return NULL;
}

// The shadow learns, the element in use stays as it is: then a user may change.
static void a_shadow_learns_from_a_server_while_the_system_runs(void** state)
{
    (void)state;
    char element[512];
    school s = {.ctx = crd_context_create(NULL)};
    crd_learn_server_options opt = crd_learn_server_defaults();
    opt.address = "unix:" TEST_BUILD_DIR "/test_couple.socket";
    opt.every = 1000;
    opt.training.epochs = 100;
    (void)unlink(TEST_BUILD_DIR "/test_couple.socket");
    check_run(crd_learn_server_create(s.ctx, &opt, &s.server), s.ctx);
    pthread_t thread;
    check_int(pthread_create(&thread, NULL, teach, &s), 0);

    crd_context* ctx = crd_context_create(NULL);
    crd_coupling_spec c = delayed("{\"algorithm\": \"zoh\"}", 0.06);
    snprintf(element, sizeof element, NETWORK ", \"name\": \"pupil\", \"learn\": \"%s\"}",
             crd_learn_server_address(s.server));
    const char* const pupils[] = {element};
    c.shadows = pupils;
    c.shadow_places = shadow_places;
    c.shadow_count = 1;
    crd_system* sys = chain(ctx, &c, 1e6);
    crd_master* m = begin(ctx, sys);
    const crd_tap_report* pupil = NULL;
    const int64_t give_up = crdi_now_ns() + INT64_C(30000000000);
    do { // in the pace of the server, as a bench would
        check_run(crd_master_advance(m, 20), ctx);
        pupil = &crd_master_get_report(m)->couplings[0].taps[1];
        (void)sched_yield();
    } while (pupil->counts.swaps == 0 && crdi_now_ns() < give_up);
    __atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL); // before anything may fail
    check(pupil->counts.swaps > 0);
    check(pupil->learns && pupil->networks > 0);
    check_text(pupil->label, "pupil");
    check_int(crd_master_get_report(m)->couplings[0].taps[0].learns, 0);
    crd_master_destroy(m);
    crd_system_destroy(sys);
    crd_context_destroy(ctx);
    crd_learn_server_destroy(s.server);
    crd_context_destroy(s.ctx);
}

// ---- memory ------------------------------------------------------------------------------------

static crd_coupling_spec with_all(void)
{
    crd_coupling_spec c = delayed("{\"algorithm\": \"wiener\"}", 0.06);
    c.channel.jitter = 0.02;
    c.channel.loss = 0.1;
    c.channel.duplicate = 0.1;
    static const char* const many[] = {"{\"algorithm\": \"zoh\"}", "{\"algorithm\": \"auto\"}",
                                       NETWORK ", \"learn\": \"unix:" TEST_BUILD_DIR
                                               "/nobody.socket\"}"};
    c.shadows = many;
    c.shadow_places = shadow_places;
    c.shadow_count = 3;
    return c;
}

static void steps_do_not_allocate(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_coupling_spec c = with_all();
    crd_system* s = chain(ctx, &c, 10);
    crd_master* m = begin(ctx, s);
    const int64_t before = a.allocations;
    check_ok(crd_master_advance(m, 500));
    check_int(a.allocations - before, 0);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static crd_status try_all(crd_context* ctx, const crd_coupling_spec* c, crd_system** s,
                          crd_master** m)
{
    crd_status st = CRD_OK;
    static const char* const names[] = {"w", "g"};
    const crd_model* const models[] = {&wave_model, &gain_model};
    CRD_TRY(crd_system_create(ctx, s));
    (*s)->run.stop = 0.2;
    (*s)->run.step = STEP;
    (*s)->results.path = TEST_BUILD_DIR "/test_couple_memory.mf4";
    for (int i = 0; i < 2; i++) {
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = names[i];
        u.source = CRD_UNIT_NATIVE;
        u.model = models[i];
        CRD_TRY(crd_system_add_unit(*s, &u, NULL));
    }
    crd_connection_spec k = crd_connection_spec_defaults();
    k.to_unit = 1;
    k.from = "y";
    k.to = "u";
    k.coupling = c;
    CRD_TRY(crd_system_add_connection(*s, &k));
    CRD_TRY(crd_master_create(ctx, *s, NULL, m));
    CRD_TRY(crd_master_run(*m));
fail:
    return st;
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    const crd_coupling_spec c = with_all();
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        a.fail_at = a.allocations + fail_at;
        crd_system* s = NULL;
        crd_master* m = NULL;
        const crd_status st = try_all(ctx, &c, &s, &m);
        if (st < 0 && st != CRD_E_MEMORY) {
            fail_msg("allocation %d: %s", (int)fail_at, crd_error_text(ctx));
        }
        const bool done = st == CRD_OK && a.allocations < a.fail_at;
        crd_master_destroy(m);
        crd_system_destroy(s);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (done) {
            check(fail_at > 80); // otherwise nothing was tried
            return;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_input_is_what_the_library_says_bit_for_bit),
        cmocka_unit_test(a_channel_is_that_of_a_replayed_recording),
        cmocka_unit_test(a_known_latency_stands_in_for_time_stamps),
        cmocka_unit_test(a_known_latency_without_a_channel_looks_ahead_of_the_source),
        cmocka_unit_test(gain_and_offset_come_before_the_element),
        cmocka_unit_test(a_channel_loses_as_many_samples_as_it_is_told),
        cmocka_unit_test(a_number_that_a_source_leaves_out_is_filled_and_not_lost),
        cmocka_unit_test(the_same_seed_gives_the_same_run_and_another_one_another),
        cmocka_unit_test(constants_pass_any_channel_unchanged),
        cmocka_unit_test(a_channel_samples_at_its_own_step),
        cmocka_unit_test(schemes_and_threads_do_not_change_a_bit),
        cmocka_unit_test(units_that_take_derivatives_get_the_slope_of_the_curve),
        cmocka_unit_test(a_target_with_a_longer_step_is_estimated_for_its_own_times),
        cmocka_unit_test(loops_at_the_start_are_solved_as_without_coupling),
        cmocka_unit_test(error_latency_jumps_and_shadows_are_signals_of_the_record),
        cmocka_unit_test(no_two_shadows_have_the_same_name),
        cmocka_unit_test(nobody_is_told_to_change_to_what_is_worse),
        cmocka_unit_test(the_recorded_error_is_the_estimate_minus_the_undelayed_value),
        cmocka_unit_test(each_element_of_an_array_has_a_coupling_of_its_own),
        cmocka_unit_test(shadows_are_scored_and_a_better_one_is_named),
        cmocka_unit_test(what_was_not_as_it_should_be_is_a_warning_at_the_end),
        cmocka_unit_test(nonsense_is_refused_with_its_place),
        cmocka_unit_test(only_real_numbers_are_coupled),
        cmocka_unit_test(a_learning_element_without_a_server_is_the_element_itself),
        cmocka_unit_test(a_shadow_learns_from_a_server_while_the_system_runs),
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
