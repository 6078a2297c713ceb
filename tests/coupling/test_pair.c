// The wave pair between random passive plants over bad networks. What docs/explanation/pairs.md
// guarantees is tested here, each sentence; the limits (2 % of the largest stored energy, medians
// of the errors) were set before the first run. With an argument: so many cases, 64 s each, of the
// first test.
#include "check.h"

#include <stddef.h>
#include <stdio.h>

#include "coupling/pair_plants.h"

static int cases = 60 / CHECK_SHARE; // per delay and network
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
    double apart;           // RMS of A's flow against B's over the last quarter, % of the range
    double residual;        // of the energy balance of the plants themselves
    double books;           // residual of the tanks' own balance
    bool diverged;
} outcome;

typedef struct bond {
    crd_pair_port pair[2];
    network net[2];
} bond;

static double books(const crd_pair_port* p)
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
    double u[2] = {0}, sum[2] = {0}, range[2] = {0}, absorbed = 0, se = 0, apart = 0, low = 0,
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
        if (n >= steps * 3 / 4) { apart += (is - u[1]) * (is - u[1]); }
    }
    const double range_ref = high - low;
    out.error = 100 * sqrt(se / steps) / range_ref;
    out.apart = 100 * sqrt(4 * apart / steps) / range_ref;
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
    double median, p95, apart; // %
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
    double* apart = malloc((size_t)n * sizeof *apart);
    for (int i = 0; i < n; i++) {
        const outcome o = run(seed + (uint64_t)i, s);
        error[i] = o.error;
        apart[i] = o.apart;
        m.diverged += o.diverged;
        if (o.created / o.stored > m.created) {
            m.created = o.created / o.stored;
            m.worst = seed + (uint64_t)i;
        }
        m.residual = fmax(m.residual, o.residual);
        m.books = fmax(m.books, o.books);
    }
    qsort(error, (size_t)n, sizeof *error, by_value);
    qsort(apart, (size_t)n, sizeof *apart, by_value);
    m.median = error[n / 2];
    m.p95 = error[n * 95 / 100];
    m.apart = apart[n / 2];
    print_message(
        "%s, %3.0f ms, %s: %d, diverged %d, error %.2f %% (p95 %.1f), apart %.2f %%, created "
        "%.4f %% (seed %llu)\n",
        what, 1e3 * s->delay, s->bad ? "bad " : "calm", n, m.diverged, m.median, m.p95, m.apart,
        100 * m.created, (unsigned long long)m.worst);
    free(error);
    free(apart);
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
            if (CHECK_SHARE == 1) { check_below(m.median, medians[k]); } // of six it says little
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

// Nothing passes for a second half (forever), or for a quarter, after which B may be another one.
// Then both flows agree again as before. What was missed meanwhile is not made good: plants without
// losses, and springs that were cut off from a displacement, remember it.
static void a_dead_link_creates_nothing_and_may_come_back(void** state)
{
    (void)state;
    check_all("dead", (scenario){.cut_from = 0.5 * duration, .cut_until = 1e9}, 4);
    for (int k = 0; k < DELAYS; k += 2) {
        scenario s = {.delay = delays[k], .bad = true, .duration = duration};
        const summary whole = run_many("never cut", &s, cases / 4, 1);
        s.cut_from = 0.25 * duration;
        s.cut_until = 0.5 * duration;
        const summary back = run_many("back", &s, cases / 4, 1);
        s.restart = true;
        const summary fresh = run_many("back, another", &s, cases / 4, 1);
        check_passive(back);
        check_passive(fresh);
        if (CHECK_SHARE > 1) { continue; }
        check_below(back.apart, 1.5 * whole.apart + 1);
        check_below(fresh.apart, 1.5 * whole.apart + 1);
    }
}

static void noise_of_one_per_cent_on_all_that_is_measured_is_borne(void** state)
{
    (void)state;
    check_all("noise 1 %", (scenario){.noise = 0.01}, 4);
}

// A source with feedback at mass 0: the plants may grow, but the coupling adds nothing to it.
static void between_active_units_the_coupling_creates_nothing(void** state)
{
    (void)state;
    for (int k = 0; k < DELAYS; k++) {
        const scenario s = {.delay = delays[k], .bad = true, .duration = duration, .active = 1};
        const summary m = run_many("active", &s, cases / 4, 1);
        check_below(m.created, 0.02);
        check_below(m.residual, 1e-6);
    }
}

// ---- several bonds -----------------------------------------------------------------------------

// A mass with a spring and damper on its left (owns the effort there) and a port on its right.
static chain random_member(rng* r, double h)
{
    const double m = log_between(r, 0.2, 5), omega = log_between(r, 3, 300);
    chain c = {.n = 1, .springs = 2, .port = 0};
    c.m[0] = m;
    c.s[0] = (spring){.left = -1, .right = 0, .port = true, .k = m * omega * omega};
    c.s[0].d = uniform(r) < 0.3 ? 0 : m * omega * log_between(r, 0.01, 1);
    c.s[1] = (spring){.left = 0, .right = -1, .d = c.s[0].d > 0 ? 0.1 * m : 0};
    c.v[0] = between(r, -1, 1);
    chain_prepare(&c, h);
    return c;
}

// `n` members in a ring: the flow port of each feeds the effort port of the next. Energy that
// all bonds together have created, over the largest stored; inf if it diverged.
static double ring(uint64_t seed, int n, double delay)
{
    enum { MOST = 3 };
    rng r = {seed};
    const double h = 0.001;
    const scenario s = {.delay = delay, .bad = true};
    chain c[MOST];
    bond* l = malloc(MOST * sizeof *l);
    double effort[MOST] = {0}, flow[MOST] = {0}, absorbed = 0, created = 0, stored = 0;
    for (int i = 0; i < n; i++) {
        c[i] = random_member(&r, h);
    }
    for (int i = 0; i < n; i++) { // bond i: flow of member i, effort of member i + 1
        const chain* to = &c[(i + 1) % n];
        bond_init(&l[i], &s, sqrt(to->s[0].k * sqrt(c[i].m[0] * to->m[0])), &r);
    }
    for (int step = 0; step < (int)lround(duration / h); step++) {
        const double t = step * h;
        double f[MOST], e[MOST], energy = 0;
        for (int i = 0; i < n; i++) {
            const int to = (i + 1) % n;
            network_deliver(&l[i].net[0], &l[i].pair[1], t, t);
            network_deliver(&l[i].net[1], &l[i].pair[0], t, t);
            effort[i] = crd_pair_act(&l[i].pair[0], c[i].v[0], t);
            flow[to] = crd_pair_act(&l[i].pair[1], chain_effort(&c[to], flow[to]), t);
        }
        for (int i = 0; i < n; i++) {
            chain_advance(&c[i], effort[i], flow[i], t < 2 ? sin(5 * t + i) : 0, &f[i], &e[i]);
            energy += chain_energy(&c[i]);
        }
        for (int i = 0; i < n; i++) {
            const int to = (i + 1) % n;
            crd_pair_done(&l[i].pair[0], f[i]);
            crd_pair_done(&l[i].pair[1], e[to]);
            absorbed += (effort[i] * f[i] - flow[to] * e[to]) * h;
            if ((step + 1) % 10 == 0) { bond_exchange(&l[i], &s, (step + 1) * h); }
        }
        created = fmax(created, -absorbed);
        stored = fmax(stored, energy);
    }
    free(l);
    return isfinite(stored) ? created / stored : INFINITY;
}

static void rings_of_several_bonds_create_nothing(void** state)
{
    double worst = 0;
    (void)state;
    for (int i = 0; i < cases; i++) {
        worst = fmax(worst, ring((uint64_t)i + 1, 2 + i % 2, delays[i % DELAYS]));
    }
    print_message("rings of 2 and 3: created %.4f %%\n", 100 * worst);
    check_below(worst, 0.02);
}

// ---- the bound of the debt ---------------------------------------------------------------------

// A unit without physics, made to rob the port: it shows any own value, and in each step its mean
// goes as far as it may in the direction that costs most, or anywhere. Packets say anything.
// Returns the debt over 3 h (largest action) (largest surprise); *tank is the lowest.
static double rob(uint64_t seed, double given, double* tank)
{
    rng r = {seed};
    crd_pair_port p;
    crd_pair_options o = crd_pair_defaults(seed & 1 ? CRD_PAIR_OWNS_EFFORT : CRD_PAIR_OWNS_FLOW);
    o.step = 0.001;
    o.macro = 0.01;
    o.impedance = log_between(&r, 0.01, 100);
    o.learn = seed & 2;
    o.strict = seed & 4;
    o.surprise = given;
    assert_int_equal(crd_pair_init(NULL, &p, &o), CRD_OK);
    const double greed = uniform(&r), growth = between(&r, 1.5, 4), sign = seed & 1 ? 1 : -1;
    const bool grants = uniform(&r) < 0.5;
    double range = 1e-6, action_max = 0, surprise = 0, granted = 0;
    *tank = 0;
    for (int n = 0; n < 4000; n++) {
        const bool strikes = uniform(&r) < 0.005;
        range *= strikes ? growth : 1;
        const double own = 10 * range * between(&r, -1, 1);
        const double last = p.action, action = crd_pair_act(&p, own, n * o.step);
        const double r_used = p.learned;
        const double most = copysign(uniform(&r) < greed ? 1 : between(&r, -1, 1), sign * action);
        const double d = (given > 0 ? given : range) * most * (strikes ? 1 : 0.6);
        crd_pair_done(&p, own + sign * r_used * (action - last) + d);
        action_max = fmax(action_max, fabs(action));
        surprise = fmax(surprise, fabs(d));
        *tank = fmin(*tank, p.tank);
        if (n % 10 == 9) {
            crd_pair_packet k;
            crd_pair_send(&p, n * o.step, &k);
            granted += grants ? range * uniform(&r) : 0;
            k.granted = granted;
            k.effort = between(&r, -50, 50);
            k.flow = between(&r, -50, 50);
            k.impedance = log_between(&r, 0.01, 100);
            crd_pair_receive(&p, &k, n * o.step);
        }
    }
    return p.count.debt / (3 * o.step * action_max * surprise);
}

static void no_unit_and_no_network_drive_the_tank_below_the_bound(void** state)
{
    double worst = 0, lowest = 0, tank;
    (void)state;
    for (uint64_t seed = 1; seed <= 2000 / CHECK_SHARE; seed++) {
        worst = fmax(worst, rob(seed, 0, &tank));
        (void)rob(seed, 0.5, &tank);
        lowest = fmin(lowest, tank);
    }
    print_message("debt %.3g of the bound; lowest tank with the surprise given %.3g J\n", worst,
                  lowest);
    assert_true(worst > 0); // robbers do get something
    check_below(worst, 1);
    check_below(-lowest, 1e-12);
}

// ---- bad input ---------------------------------------------------------------------------------

static crd_pair_options options(crd_pair_side side)
{
    crd_pair_options o = crd_pair_defaults(side);
    o.step = 0.001;
    o.macro = 0.01;
    o.impedance = 6;
    return o;
}

static void options_without_sense_are_refused_by_name(void** state)
{
    check_allocator memory = {0};
    crd_context* ctx = check_context(&memory);
    crd_pair_port p;
    (void)state;
    const struct {
        size_t at;
        double value;
        const char* text;
    } bad[] = {{offsetof(crd_pair_options, impedance), -1, "impedance = -1"},
               {offsetof(crd_pair_options, impedance), NAN, "impedance = "},
               {offsetof(crd_pair_options, impedance), INFINITY, "impedance = inf"},
               {offsetof(crd_pair_options, surprise), -1, "surprise = -1"},
               {offsetof(crd_pair_options, step), 0, "inner step = 0"},
               {offsetof(crd_pair_options, step), 0.02, "macro step = 0.01"},
               {offsetof(crd_pair_options, macro), NAN, "macro step = "},
               {offsetof(crd_pair_options, reaction), -1, "reaction = -1"},
               {offsetof(crd_pair_options, power_max), NAN, "power_max = "}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        crd_pair_options o = options(CRD_PAIR_OWNS_FLOW);
        memcpy((char*)&o + bad[i].at, &bad[i].value, sizeof(double));
        check_status(crd_pair_init(ctx, &p, &o), CRD_E_RANGE);
        check_contains(crd_error_text(ctx), bad[i].text);
    }
    crd_context_destroy(ctx);
}

static double strange(rng* r)
{
    static const double values[] = {NAN,  INFINITY, -INFINITY, 1e308, -1e308,
                                    1e99, -1e99,    0,         -1,    1e-300};
    const int i = (int)(14 * uniform(r));
    return i < 10 ? values[i] : 10 * normal(r);
}

// Forged packets of any contents between true ones. The action stays finite, and what the side
// has spent is at most what it absorbed and what power_max allows.
static void forged_packets_do_not_poison_a_side(void** state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200 / CHECK_SHARE; seed++) {
        rng r = {seed};
        crd_pair_options o = options(seed & 1 ? CRD_PAIR_OWNS_FLOW : CRD_PAIR_OWNS_EFFORT);
        o.power_max = 50;
        o.action_max = 20;
        o.learn = seed & 2;
        crd_pair_port p;
        assert_int_equal(crd_pair_init(NULL, &p, &o), CRD_OK);
        crd_pair_packet good = {.run = 1, .impedance = 6}, out;
        double received = 0;
        for (int n = 0; n < 2000; n++) {
            const double t = 0.001 * n;
            crd_pair_packet k = good;
            if (uniform(&r) < 0.3) {
                for (int i = 0; i < CRD_PAIR_NUMBERS; i++) {
                    if (uniform(&r) < 0.4) { ((double*)&k)[i] = strange(&r); }
                }
                crd_pair_receive(&p, &k, uniform(&r) < 0.02 ? strange(&r) : t);
            }
            const double own = uniform(&r) < 0.01 ? strange(&r) : sin(10 * t);
            const double action = crd_pair_act(&p, own, uniform(&r) < 0.01 ? NAN : t);
            assert_true(isfinite(action) && fabs(action) <= 20);
            crd_pair_done(&p, uniform(&r) < 0.01 ? strange(&r) : sin(10 * t) + 0.001 * action);
            if (n % 10 == 9) {
                good.number++;
                good.time = t;
                good.flow = cos(10 * t);
                crd_pair_receive(&p, &good, t);
                crd_pair_send(&p, t, &out);
                for (int i = 0; i < CRD_PAIR_NUMBERS; i++) {
                    assert_true(isfinite(((double*)&out)[i]));
                }
            }
            received = crd_pair_get_state(&p, t).received;
            assert_true(isfinite(crd_pair_get_state(&p, t).tank));
        }
        check_below(received, 50 * (2 + 2000 * 0.01)); // a macro step's worth per packet at most
    }
}

// A forged number far ahead is refused; and packets of a former life do not count.
static void numbers_and_lives_are_kept_in_order(void** state)
{
    crd_pair_port p;
    const crd_pair_options o = options(CRD_PAIR_OWNS_FLOW);
    (void)state;
    check_ok(crd_pair_init(NULL, &p, &o));
    crd_pair_packet k = {.run = 3, .number = 1, .granted = 5, .impedance = 6};
    check_int(crd_pair_receive(&p, &k, 0.01), CRD_PAIR_TAKEN);
    check_near(p.tank, 0, 0); // what was granted before may be spent already
    k.number = 2, k.granted = 7;
    check_int(crd_pair_receive(&p, &k, 0.02), CRD_PAIR_TAKEN);
    check_int(crd_pair_receive(&p, &k, 0.03), CRD_PAIR_OLD);
    check_near(p.tank, 2, 1e-12);
    k.number = 1e12, k.granted = 8;
    check_int(crd_pair_receive(&p, &k, 0.03), CRD_PAIR_REFUSED);
    k.number = 3, k.granted = 6;
    check_int(crd_pair_receive(&p, &k, 0.03), CRD_PAIR_REFUSED);
    k.run = 2, k.number = 9, k.granted = 100;
    check_int(crd_pair_receive(&p, &k, 0.04), CRD_PAIR_OLD);
    k.run = 4, k.number = 1, k.granted = 1;
    check_int(crd_pair_receive(&p, &k, 0.05), CRD_PAIR_TAKEN);
    check_near(p.tank, 2, 1e-12);
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
        cmocka_unit_test(a_dead_link_creates_nothing_and_may_come_back),
        cmocka_unit_test(noise_of_one_per_cent_on_all_that_is_measured_is_borne),
        cmocka_unit_test(between_active_units_the_coupling_creates_nothing),
        cmocka_unit_test(rings_of_several_bonds_create_nothing),
        cmocka_unit_test(no_unit_and_no_network_drive_the_tank_below_the_bound),
        cmocka_unit_test(options_without_sense_are_refused_by_name),
        cmocka_unit_test(forged_packets_do_not_poison_a_side),
        cmocka_unit_test(numbers_and_lives_are_kept_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
