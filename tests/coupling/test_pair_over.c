// Commands on top of a pair: side A predicts the wave that comes back from the waves that it sent,
// over the whole round trip, and acts on that (crd_pair_predict) as long as it proves better than
// what has arrived. The tank limits what it spends as before. Stiff shafts, 60 ms each way.
#include "coupling_test.h"

#include "coupling/pair_plants.h"
#include "shared/coupling.h"

enum { CASES = 8, INNER = 10 };

static const double h = 0.001, H = 0.01, duration = 60, delay = 0.06;

static plants random_shaft(rng* r)
{
    plants p = {0};
    chain* w = &p.whole;
    w->n = 2;
    w->port = -1;
    w->m[0] = p.ja = 0.25 * log_between(r, 0.5, 2);
    w->m[1] = p.jb = 2 * log_between(r, 0.5, 2);
    p.k = 60 * log_between(r, 0.5, 4);
    w->s[0] = (spring){.left = 0, .right = 1, .k = p.k, .d = 3 * log_between(r, 0.3, 2)};
    w->s[1] = (spring){.left = 1, .right = -1, .d = 0.5};
    w->s[2] = (spring){.left = 0, .right = -1, .d = 0.02};
    w->springs = 3;
    cut_plants(&p, 0);
    chain_prepare(&p.a, h);
    chain_prepare(&p.b, h);
    chain_prepare(w, h);
    return p;
}

static void init_ports(crd_pair_port* port, double b)
{
    for (int i = 0; i < 2; i++) {
        crd_pair_options o = crd_pair_defaults(i ? CRD_PAIR_OWNS_EFFORT : CRD_PAIR_OWNS_FLOW);
        o.step = h;
        o.macro = H;
        o.impedance = b;
        check_ok(crd_pair_init(NULL, &port[i], &o));
    }
}

static void receive_a(crdi_pair_over* o, crd_pair_port* a, network* w, double t)
{
    for (int i = 0; i < w->n;) {
        if (w->air[i].at > t + 1e-9) {
            i++;
            continue;
        }
        const crd_pair_packet k = w->air[i].packet;
        w->air[i] = w->air[--w->n];
        if (crd_pair_receive(a, &k, t) == CRD_PAIR_TAKEN) { crdi_pair_over_receive(o, a, &k); }
    }
}

// Error of the speed over the second half, % of its range; *created over the largest stored.
static double run(crd_context* ctx, uint64_t seed, bool bad, bool allowed, double* created)
{
    rng r = {seed * 77 + 5};
    plants p = random_shaft(&r);
    network net[2];
    for (int i = 0; i < 2; i++) {
        net[i] = (network){.delay = delay, .burst = bad ? 3 : 1, .loss = bad ? 0.05 : 0};
        net[i].jitter = bad ? 0.02 : 0;
        net[i].r.x = seed + (uint64_t)i;
    }
    crd_pair_port port[2];
    crd_pair_packet k;
    init_ports(port, rule_impedance(&p, delay + H));
    crdi_pair_over o;
    check_ok(crdi_pair_over_init(ctx, &o, H, 0));
    drive d = {.size = 20, .lag = 0.05, .until = duration};
    d.r.x = seed;
    double f = 0, absorbed = 0, most = 0, stored = 0, sum = 0, low = 0, high = 0;
    const int steps = (int)lround(duration / h);
    for (int n = 0; n < steps; n++) {
        const double t = n * h;
        network_deliver(&net[0], &port[1], t, t);
        receive_a(&o, &port[0], &net[1], t);
        if (allowed && n % INNER == 0) { crdi_pair_over_begin(&o, &port[0], t); }
        const double outside = drive_step(&d, t, h);
        const double e = crd_pair_act(&port[0], chain_own(&p.a, 0), t);
        f = crd_pair_act(&port[1], chain_own(&p.b, f), t);
        const double fm = chain_step(&p.a, e, outside), em = chain_step(&p.b, f, 0);
        crd_pair_done(&port[0], fm);
        crd_pair_done(&port[1], em);
        absorbed += (e * fm - f * em) * h;
        most = fmax(most, -absorbed);
        stored = fmax(stored, chain_energy(&p.a) + chain_energy(&p.b));
        chain_step(&p.whole, 0, outside);
        const double ref = p.whole.v[0], error = p.a.v[0] - ref;
        low = fmin(low, ref);
        high = fmax(high, ref);
        if (2 * n >= steps) { sum += error * error; }
        if (n % INNER == INNER - 1) {
            const double end = (n + 1) * h;
            crd_pair_send(&port[0], end, &k);
            crdi_pair_over_sent(&o, &port[0], &k);
            network_send(&net[0], &k, end);
            crd_pair_send(&port[1], end, &k);
            network_send(&net[1], &k, end);
        }
    }
    crd_coupling_destroy(o.element);
    *created = isfinite(stored) ? most / stored : INFINITY;
    return 100 * sqrt(2 * sum / steps) / (high - low);
}

static void commands_on_top_halve_the_error_of_the_pair_and_create_nothing(void** state)
{
    for (int bad = 0; bad < 2; bad++) {
        double pair = 0, with = 0, created, worst = 0;
        for (uint64_t seed = 1; seed <= CASES; seed++) {
            pair += run(context_of(state), seed, bad, false, &created);
            with += run(context_of(state), seed, bad, true, &created);
            worst = fmax(worst, created);
        }
        print_message("%s: pair %.2f %%, with commands %.2f %%, created %.4f %%\n",
                      bad ? "jitter and loss" : "calm", pair / CASES, with / CASES, 100 * worst);
        assert_true(with <= 0.5 * pair);
        assert_true(worst <= 0.02);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(commands_on_top_halve_the_error_of_the_pair_and_create_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
