// The wave pair between random passive plants over bad networks. What docs/pairs.md guarantees is
// tested here, each sentence; the limits (2 % of the largest stored energy, medians of the errors)
// were set before the first run. With an argument: so many cases, 64 s each, of the first test.
#include "check.h"

#include <stdio.h>

#include "coupling/pair_plants.h"

static int cases = 60; // per delay and network
static double duration = 16;

#define check_below(a, limit)                                                                      \
    do {                                                                                           \
        const double is_ = (a), limit_ = (limit);                                                  \
        if (!(is_ <= limit_)) {                                                                    \
            print_error("%s:%d: %s = %g, expected at most %g\n", __FILE__, __LINE__, #a, is_,      \
                        limit_);                                                                   \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

typedef struct scenario {
    double delay;
    bool bad; // jitter, loss, duplicates
    double duration;
    double macro, step[2]; // 0: 10 ms, 1 ms
    double wrong;          // factor on the impedance, 0: 1
    bool learn, strict;
    double noise;               // of the range of the own values
    double offset, drift;       // of B's clock
    double cut_from, cut_until; // s, 0: never
    bool restart;               // B is another one when the bond comes back
    double active;              // negative damping at mass 0, part of what the plant loses there
} scenario;

typedef struct outcome {
    double error;           // RMS of A's flow against the plants joined, % of its range
    double created, stored; // J, largest
    double tail;            // error over the last quarter, %
    double residual;        // of the energy balance of the plants themselves
    double books;           // residual of the tanks' own balance
    bool diverged;
} outcome;

typedef struct bond {
    crd_pair pair[2];
    network net[2];
} bond;

static double books(const crd_pair* p)
{
    const crd_pair_state s = crd_pair_get_state(p, 0);
    const double sum = s.absorbed - s.spent + s.received - s.granted - s.dumped;
    return fabs(sum - s.tank) / (1e-30 + s.absorbed + s.spent + s.received);
}

static void bond_init(bond* l, const scenario* s, double b, rng* r)
{
    const double jitter = s->bad ? s->delay * uniform(r) : 0, loss = s->bad ? 0.2 * uniform(r) : 0;
    const double burst = between(r, 1, 10);
    memset(l, 0, sizeof *l);
    for (int i = 0; i < 2; i++) {
        l->net[i] = (network){.delay = s->delay,
                              .jitter = jitter,
                              .loss = loss,
                              .burst = burst,
                              .twice = s->bad ? 0.05 : 0};
        l->net[i].r.x = r->x + (uint64_t)i;
        crd_pair_options o = crd_pair_defaults(i ? CRD_PAIR_OWNS_EFFORT : CRD_PAIR_OWNS_FLOW);
        o.macro = s->macro > 0 ? s->macro : 0.01;
        o.step = s->step[i] > 0 ? s->step[i] : 0.001;
        o.impedance = b * (s->wrong > 0 ? s->wrong : 1);
        o.learn = s->learn;
        o.strict = s->strict;
        assert_int_equal(crd_pair_init(NULL, &l->pair[i], &o), CRD_OK);
    }
}

// B's clock
static double other(const scenario* s, double t)
{
    return s->offset + t * (1 + s->drift);
}

static void bond_exchange(bond* l, const scenario* s, double t)
{
    crd_pair_packet k;
    for (int i = 0; i < 2; i++) {
        l->net[i].cut = s->cut_from > 0 && t >= s->cut_from && t < s->cut_until;
        crd_pair_send(&l->pair[i], i ? other(s, t) : t, &k);
        network_send(&l->net[i], &k, t);
    }
    if (s->restart && fabs(t - s->cut_until) < 1e-9) {
        crd_pair_options o = l->pair[1].opt;
        o.run++;
        assert_int_equal(crd_pair_init(NULL, &l->pair[1], &o), CRD_OK);
    }
}

// Grid: the smaller of the inner steps; each side acts on its own.
static outcome run(uint64_t seed, const scenario* s)
{
    rng r = {seed * 7919 + 13};
    outcome out = {0};
    const double ha = s->step[0] > 0 ? s->step[0] : 0.001, hb = s->step[1] > 0 ? s->step[1] : 0.001;
    const double h = fmin(ha, hb), H = s->macro > 0 ? s->macro : 0.01;
    const int every[2] = {(int)lround(ha / h), (int)lround(hb / h)}, per = (int)lround(H / h);
    const int steps = (int)lround(s->duration / h);
    plants p = random_plants(&r, h);
    bond* l = malloc(sizeof *l);
    bond_init(l, s, rule_impedance(&p, 1.25 * s->delay + H), &r);
    drive d = {.size = p.ja * fmin(p.omega, 10), .lag = 0.05, .until = 0.8 * s->duration};
    d.r.x = seed;
    double drag = s->active * p.a.m[0];
    const double before = chain_energy(&p.a) + chain_energy(&p.b);
    double u[2] = {0}, sum[2] = {0}, range[2] = {0}, absorbed = 0, se = 0, tail = 0, low = 0,
           high = 0;
    double peak = 0;
    chain* side[2] = {&p.a, &p.b};
    for (int n = 0; n < steps; n++) {
        const double t = n * h;
        network_deliver(&l->net[0], &l->pair[1], t, other(s, t));
        network_deliver(&l->net[1], &l->pair[0], t, t);
        const double outside = drive_step(&d, t, h), push = drag * p.a.v[0];
        for (int i = 0; i < 2; i++) {
            if (n % every[i] == 0) {
                const double own = chain_own(side[i], u[i]) + s->noise * range[i] * normal(&r);
                u[i] = crd_pair_act(&l->pair[i], own, i ? other(s, t) : t);
                sum[i] = 0;
            }
            const double mean = chain_step(side[i], u[i], i ? 0 : outside + push);
            absorbed += (i ? -1 : 1) * u[i] * mean * h;
            sum[i] += mean / every[i];
            range[i] = fmax(range[i], fabs(mean));
            if ((n + 1) % every[i] == 0) {
                crd_pair_done(&l->pair[i], sum[i] + s->noise * range[i] * normal(&r));
            }
        }
        if ((n + 1) % per == 0) { bond_exchange(l, s, (n + 1) * h); }
        chain_step(&p.whole, 0, outside + drag * p.whole.v[0]);
        const double is = p.a.v[p.a.n - 1], ref = p.whole.v[p.a.n - 1];
        out.created = fmax(out.created, -absorbed);
        out.stored = fmax(out.stored, chain_energy(&p.a) + chain_energy(&p.b));
        low = fmin(low, ref);
        high = fmax(high, ref);
        peak = fmax(peak, fabs(is));
        se += (is - ref) * (is - ref);
        if (n >= steps * 3 / 4) { tail += (is - ref) * (is - ref); }
    }
    const double range_ref = high - low;
    out.error = 100 * sqrt(se / steps) / range_ref;
    out.tail = 100 * sqrt(4 * tail / steps) / range_ref;
    const double after = chain_energy(&p.a) + chain_energy(&p.b) + p.a.lost + p.b.lost;
    out.residual = fabs(after - before - p.a.work - p.b.work + absorbed) / out.stored;
    out.books = fmax(books(&l->pair[0]), books(&l->pair[1]));
    out.diverged = !(out.created <= out.stored) || !(peak < 1e4 * range_ref);
    free(l);
    return out;
}

// ---- many of them ------------------------------------------------------------------------------

typedef struct summary {
    int diverged;
    double median, p95, tail; // %
    double created, residual, books;
    uint64_t worst;
} summary;

static int by_value(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static summary run_many(const char* what, const scenario* s, int n, uint64_t seed)
{
    summary m = {0};
    double* error = malloc((size_t)n * sizeof *error);
    double* tail = malloc((size_t)n * sizeof *tail);
    for (int i = 0; i < n; i++) {
        const outcome o = run(seed + (uint64_t)i, s);
        error[i] = o.error;
        tail[i] = o.tail;
        m.diverged += o.diverged;
        if (o.created / o.stored > m.created) {
            m.created = o.created / o.stored;
            m.worst = seed + (uint64_t)i;
        }
        m.residual = fmax(m.residual, o.residual);
        m.books = fmax(m.books, o.books);
    }
    qsort(error, (size_t)n, sizeof *error, by_value);
    qsort(tail, (size_t)n, sizeof *tail, by_value);
    m.median = error[n / 2];
    m.p95 = error[n * 95 / 100];
    m.tail = tail[n / 2];
    print_message(
        "%s, %3.0f ms, %s: %d, diverged %d, error %.2f %% (p95 %.1f), end %.2f %%, created "
        "%.4f %% (seed %llu)\n",
        what, 1e3 * s->delay, s->bad ? "bad " : "calm", n, m.diverged, m.median, m.p95, m.tail,
        100 * m.created, (unsigned long long)m.worst);
    free(error);
    free(tail);
    return m;
}

static const double delays[] = {0, 0.01, 0.03, 0.06, 0.2};
enum { DELAYS = 5 };

static void check_passive(summary m)
{
    assert_int_equal(m.diverged, 0);
    check_below(m.created, 0.02);
    check_below(m.residual, 1e-6); // of the plants: their own energy is exact
    check_below(m.books, 1e-9);
}

// All delays and both networks, `share` of the cases.
static void check_all(const char* what, scenario s, int share)
{
    for (int k = 0; k < DELAYS; k++) {
        s.delay = delays[k];
        s.bad = true;
        s.duration = s.duration > 0 ? s.duration : duration;
        check_passive(run_many(what, &s, cases / share, 5000 * (uint64_t)k + 1));
    }
}

static void no_random_network_makes_random_passive_plants_unstable(void** state)
{
    // Medians of an earlier prototype on plants of its own, bad network: % of the range.
    static const double medians[] = {6.1, 7.6, 9.6, 11.6, 18.5};
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        for (int k = 0; k < DELAYS; k++) {
            const scenario s = {.delay = delays[k], .bad = bad, .duration = duration};
            const uint64_t seed = 5000 * (uint64_t)k + 100000 * (uint64_t)bad + 1;
            const summary m = run_many("pair", &s, cases, seed);
            check_passive(m);
            check_below(m.median, medians[k]);
        }
    }
}

static void a_unit_that_steps_once_per_macro_step_is_held_by_the_strict_form(void** state)
{
    (void)state;
    check_all("strict", (scenario){.step = {0.01, 0.01}, .strict = true}, 2);
}

static void a_learned_impedance_may_begin_ten_times_wrong(void** state)
{
    (void)state;
    check_all("learned, from b x 10", (scenario){.wrong = 10, .learn = true}, 4);
    check_all("learned, from b / 10", (scenario){.wrong = 0.1, .learn = true}, 4);
}

static void inner_steps_may_differ(void** state)
{
    (void)state;
    check_all("1 and 2 ms", (scenario){.step = {0.001, 0.002}}, 4);
    check_all("5 and 1 ms", (scenario){.step = {0.005, 0.001}}, 4);
}

static void clocks_need_not_agree(void** state)
{
    (void)state;
    for (int k = 0; k < DELAYS; k += 2) {
        scenario s = {.delay = delays[k], .bad = true, .duration = duration};
        const summary same = run_many("one clock", &s, cases / 4, 1);
        s.offset = 1.7e9;
        s.drift = 2e-4;
        const summary other_clock = run_many("offset 54 years, 200 ppm", &s, cases / 4, 1);
        check_passive(other_clock);
        check_below(other_clock.median, 1.1 * same.median + 0.1);
    }
}

int main(int argc, char** argv)
{
    if (argc > 1) {
        cases = atoi(argv[1]) / 10;
        duration = 64;
        const struct CMUnitTest one[] = {
            cmocka_unit_test(no_random_network_makes_random_passive_plants_unstable)};
        return cmocka_run_group_tests(one, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_random_network_makes_random_passive_plants_unstable),
        cmocka_unit_test(a_unit_that_steps_once_per_macro_step_is_held_by_the_strict_form),
        cmocka_unit_test(a_learned_impedance_may_begin_ten_times_wrong),
        cmocka_unit_test(inner_steps_may_differ),
        cmocka_unit_test(clocks_need_not_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
