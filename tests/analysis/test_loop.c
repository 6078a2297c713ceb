#include "elements.h"
#include "shared/base.h"

// The two-mass oscillator (Baumann 2020): masses 100 and 1, springs 10 and dampers 0.01 everywhere.
// Coupling A: mass 1 sends position and velocity, mass 2 has the coupling spring and sends its
// force; B: the other way round.
enum { REFERENCE, ZOH, EQ12, EQ20, FOH_A, FOH_BOTH, EROS_BOTH, MOMENT, KINDS };
static const char* const names[KINDS] = {"reference", "ZOH",    "eq12",    "eq20",
                                         "FOH_a",     "FOH_aA", "EROS_aA", "moment_min_norm"};
static const double spring = 10, damper = 0.01;

static void make(element* e, int kind)
{
    static const double given[KINDS][4] = {
        [EQ12] = {2.4748, -0.6470, -0.1664, -0.6664},
        [EQ20] = {6.5103, -1.5509, -9.9296, 5.9702},
        [MOMENT] = {23.0 / 3, -31.0 / 6, -37.0 / 6, 14.0 / 3},
    };
    make_element(e,
                 kind == EROS_BOTH                   ? "EROS"
                 : kind == FOH_A || kind == FOH_BOTH ? "FOH"
                                                     : "ZOH",
                 3);
    if (given[kind][0] != 0) {
        memcpy(e->a, given[kind], sizeof given[kind]);
        e->linear.m = 4;
    }
    if (kind == FOH_A) { e->linear.A = NULL; }
}

// Transfer functions with negative feedback
typedef struct oscillator {
    element element;
    double first[3], second_num[4], second_den[3], one;
    crd_transfer transfers[2];
    const crd_linear* elements[2];
    crd_loop loop;
} oscillator;

static void make_loop(oscillator* o, int kind, char coupling)
{
    const double m1 = coupling == 'A' ? 100 : 1, m2 = coupling == 'A' ? 1 : 100;
    const double c = spring, d = damper;
    *o = (oscillator){.first = {c, d, m1}, .one = 1, .second_den = {2 * c, 2 * d, m2}};
    const double link[] = {c, d}, mass[] = {c, d, m2}; // (c + d s)(m2 s^2 + d s + c)
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            o->second_num[i + j] += link[i] * mass[j];
        }
    }
    o->transfers[0] = (crd_transfer){0, 2, &o->one, o->first};
    o->transfers[1] = (crd_transfer){3, 2, o->second_num, o->second_den};
    make(&o->element, kind);
    o->elements[0] = o->elements[1] = &o->element.linear;
    o->loop = (crd_loop){.dT = 0.001,
                         .transfer_count = 2,
                         .transfers = o->transfers,
                         .element_count = kind == REFERENCE ? 0 : 2,
                         .elements = o->elements};
}

// State space: x1 v1 x2 v2; inputs F, x1, v1; outputs x1, v1, F, "1" being the mass that sends
// its motion.
typedef struct masses {
    element element;
    double A[16], B[12], C[12], D[9];
    crd_plant_link links[3];
    crd_plant plant;
} masses;

static void make_masses(masses* m, int kind, char coupling)
{
    const double m1 = coupling == 'A' ? 100 : 1, m2 = coupling == 'A' ? 1 : 100;
    const double c = spring, d = damper;
    *m = (masses){
        .A = {0, 1, 0, 0, -c / m1, -d / m1, 0, 0, 0, 0, 0, 1, 0, 0, -2 * c / m2, -2 * d / m2},
        .B = {0, 0, 0, 1 / m1, 0, 0, 0, 0, 0, 0, c / m2, d / m2},
        .C = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, c, d},
        .D = {0, 0, 0, 0, 0, 0, 0, -c, -d},
    };
    make(&m->element, kind);
    const crd_linear* e = kind == REFERENCE ? NULL : &m->element.linear;
    m->links[0] = (crd_plant_link){.from = 2, .to = 0, .element = e};
    m->links[1] = (crd_plant_link){.from = 0, .to = 1, .element = e};
    m->links[2] = (crd_plant_link){.from = 1, .to = 2, .element = e};
    m->plant = (crd_plant){4, 3, 3, m->A, m->B, m->C, m->D, 3, m->links};
}

typedef struct margins {
    int kind;
    char coupling;
    double pole1[2], pole2[2], distance;
    crd_crossing phase[2];
    int unstable;
} margins;

static const margins reference[] = {
    {REFERENCE,
     'A',
     {-7.48115613577007e-05, 0.386811474905582},
     {-0.010025188438642299, 4.477753496216755},
     0.0011692723208788882,
     {{0.2238875447901319, 179.98713995727823}, {0.38681146756258, 0.06699422482947749}},
     0},
    {ZOH,
     'A',
     {9.842950618131232e-05, 0.3868113024802824},
     {-0.009848438069177854, 4.477751886567556},
     0.0015384105983838308,
     {{0.22388754525656437, 179.89734527714265}, {0.3868114667648213, -0.08814442634416843}},
     2},
    {EQ12,
     'A',
     {-4.9765915280734507e-05, 0.38617287887753193},
     {-0.009999621658021958, 4.477699174927752},
     0.000784319495146069,
     {{0.22499851032843426, 179.9737684347767}, {0.38617286253192523, 0.044937976800584374}},
     0},
    {EQ20,
     'A',
     {-7.478696512446471e-05, 0.38681147205446925},
     {-0.01002518403683295, 4.477753462666774},
     0.001168887846740103,
     {{0.22388754646551154, 179.98712715584705}, {0.3868114646972612, 0.0669722021967421}},
     0},
    {FOH_A,
     'A',
     {-5.006273421644809e-05, 0.3868115977908096},
     {-0.00999992908503952, 4.477754956436463},
     0.0007824572335826449,
     {{0.22388747809031753, 179.97431215090774}, {0.3868115816421221, 0.04483140131469776}},
     0},
    {REFERENCE,
     'B',
     {-7.48115613577007e-05, 0.386811474905582},
     {-0.0100251884386423, 4.477753496216755},
     0.0023210398842404925,
     {{0.3868115104275006, -0.1329860162759733}, {4.477764830202742, 0.5131235804564052}},
     0},
    {ZOH,
     'B',
     {-0.00016208512872327395, 0.3868114139389891},
     {0.025054367723437502, 4.477301454060957},
     0.00502869175706361,
     {{0.38681151082938714, -0.2881246859412745}, {4.477762959780235, -1.282774642122168}},
     2},
    {EQ12,
     'B',
     {-8.7555219302464e-05, 0.38713439058773813},
     {-0.004948904762895836, 4.46695259494484},
     0.002718545028465661,
     {{0.38713443417080756, -0.155761504292295}, {4.466944105584956, 0.25510464166840513}},
     0},
    {EQ20,
     'B',
     {-7.482395219000357e-05, 0.3868114763418806},
     {-0.010024314653044005, 4.47774683643531},
     0.0023214243055284037,
     {{0.38681151187096074, -0.13300804185175058}, {4.477758183364812, 0.513082648647374}},
     0},
    {FOH_A,
     'B',
     {-8.727921225284596e-05, 0.38681140998299973},
     {-0.005010499422484339, 4.478040665640939},
     0.0027078514520456954,
     {{0.386811452957797, -0.15514871534950933}, {4.478032323955621, 0.2563768496015172}},
     0},
};
enum { REFERENCES = sizeof reference / sizeof *reference };

static void oscillator_margins_equal_the_reference(void** state)
{
    for (int i = 0; i < REFERENCES; i++) {
        const margins* r = &reference[i];
        oscillator o;
        make_loop(&o, r->kind, r->coupling);
        crd_nyquist n;
        check_ok(crd_loop_nyquist(*state, &o.loop, &n));
        check_int(n.open_unstable, 0);
        check_int(n.encirclements, r->unstable);
        check_int(n.closed_unstable, r->unstable);
        check_near(n.min_distance / r->distance, 1, 2e-5); // theirs is read on a grid
        check(n.min_distance <= r->distance);
        check_int(n.phase_count, 2);
        for (int j = 0; j < 2; j++) {
            check_near(n.phase[j].omega, r->phase[j].omega, 1e-9);
            check_near(n.phase[j].margin, r->phase[j].margin, 1e-5);
        }
        check(n.points < 20000);
        if (r->unstable) { check_near(n.delay_margin, 0, 0); }
        if (r->kind == REFERENCE) {
            check_near(n.delay_margin,
                       r->coupling == 'A' ? 0.0030228416196374053 : 0.002000037136425676, 1e-10);
        }
    }
}

static void check_poles(crd_context* ctx, const crd_loop* loop, const margins* r)
{
    crd_complex p[8];
    int count, seen = 0;
    check_ok(crd_loop_poles(ctx, loop, 8, p, &count));
    check_int(count, 4);
    for (int j = 0; j < count; j++) {
        const double* want = fabs(p[j].im) < 1 ? r->pole1 : r->pole2;
        check_near(p[j].re, want[0], 1e-9);
        check_near(fabs(p[j].im), want[1], 1e-9);
        seen += fabs(p[j].im) < 1;
    }
    check_int(seen, 2);
}

static void oscillator_poles_equal_the_reference(void** state)
{
    for (int i = 0; i < REFERENCES; i++) {
        oscillator o;
        make_loop(&o, reference[i].kind, reference[i].coupling);
        check_poles(*state, &o.loop, &reference[i]);
    }
}

static void the_network_of_the_oscillator_says_the_same(void** state)
{
    for (int i = 0; i < REFERENCES; i++) {
        const margins* r = &reference[i];
        masses m;
        make_masses(&m, r->kind, r->coupling);
        const crd_loop loop = {.dT = 0.001, .network = &m.plant};
        crd_nyquist n;
        check_ok(crd_loop_nyquist(*state, &loop, &n));
        check_int(n.closed_unstable, r->unstable);
        check_near(n.min_distance / r->distance, 1, 2e-5);
        check(n.one_loop); // all loops pass through F
        check_int(n.phase_count, 2);
        for (int j = 0; j < 2; j++) {
            check_near(n.phase[j].omega, r->phase[j].omega, 1e-9);
            check_near(n.phase[j].margin, r->phase[j].margin, 1e-5);
        }
        if (r->unstable) { check_near(n.delay_margin, 0, 0); }
        check_poles(*state, &loop, r);
    }
}

static void integrators_are_passed_on_the_right(void** state)
{
    // gain (1 + b s) / s^2: stable for b > 0; phase margin where (gain / w^2) |1 + jbw| = 1
    const double den[] = {0, 0, 1};
    for (double b = -0.3; b < 0.5; b += 0.6) {
        const double num[] = {4, 4 * b};
        const crd_transfer t = {1, 2, num, den};
        const crd_loop loop = {.transfer_count = 1, .transfers = &t};
        crd_nyquist n;
        check_ok(crd_loop_nyquist(*state, &loop, &n));
        check_int(n.open_axis, 2);
        check_int(n.open_unstable, 0);
        check_int(n.closed_unstable, b > 0 ? 0 : 2);
        check_int(n.phase_count, 1);
        const double w2 = 0.5 * (16 * b * b + sqrt(256 * b * b * b * b + 64));
        check_near(n.phase[0].omega, sqrt(w2), 1e-9);
        check_near(n.phase[0].margin, atan(b * sqrt(w2)) * 180 / M_PI, 1e-7);
    }
    // An undamped oscillator with velocity feedback: L = d s / (s^2 + 9)
    const double oscillator_den[] = {9, 0, 1};
    for (double d = -1; d < 2; d += 2) {
        const double num[] = {0, d};
        const crd_transfer t = {1, 2, num, oscillator_den};
        const crd_loop loop = {.transfer_count = 1, .transfers = &t};
        crd_nyquist n;
        check_ok(crd_loop_nyquist(*state, &loop, &n));
        check_int(n.open_axis, 2);
        check_int(n.closed_unstable, d > 0 ? 0 : 2);
    }
}

static void a_distance_that_falls_for_good_is_that_at_the_end(void** state)
{
    const double one[] = {1}, den[] = {0, 1}; // |1 + 1 / (j w)| falls from infinity to 1
    const crd_transfer integrator = {0, 1, one, den};
    const crd_loop loop = {.transfer_count = 1, .transfers = &integrator};
    crd_nyquist n;
    check_ok(crd_loop_nyquist(*state, &loop, &n));
    check(n.min_distance >= 1 && n.min_distance < 1.01 && n.min_omega > 1);
}

static void the_curve_is_the_loop_at_its_frequencies(void** state)
{
    oscillator o;
    make_loop(&o, ZOH, 'A');
    crd_nyquist n, again;
    crd_loop_point* points = NULL;
    check_ok(crd_loop_curve(*state, &o.loop, &n, &points));
    check_ok(crd_loop_nyquist(*state, &o.loop, &again));
    check(n.points > again.points); // for drawing
    check_int(n.closed_unstable, again.closed_unstable);
    check_near(n.phase[1].margin, again.phase[1].margin, 1e-9);
    double nearest = INFINITY;
    for (int i = 0; i < n.points; i++) {
        check(i == 0 || points[i].omega > points[i - 1].omega);
        nearest = fmin(nearest, hypot(1 + points[i].L.re, points[i].L.im));
        if (i % 100) { continue; }
        crd_complex L;
        check_ok(crd_loop_response(*state, &o.loop, (crd_complex){0, points[i].omega}, &L));
        check_near(points[i].L.re, L.re, 1e-12 * hypot(L.re, L.im));
        check_near(points[i].L.im, L.im, 1e-12 * hypot(L.re, L.im));
    }
    check(nearest < 1.3 * n.min_distance);
    crd_free(*state, points);
}

static void closing_direct_links_changes_no_pole(void** state)
{
    // Position and force directly, velocity through the element, and the other way round
    for (int direct = 0; direct < 3; direct++) {
        masses m;
        make_masses(&m, EQ20, 'B');
        for (int i = 0; i < 3; i++) {
            if (i == direct) { m.links[i].element = NULL; }
        }
        crd_arena arena;
        crd_arena_init(&arena, *state);
        crd_plant small;
        check_ok(crd_plant_reduce(*state, &arena, &m.plant, &small));
        check_int(small.link_count, 2);
        check_int(small.inputs, 2);
        check_int(small.outputs, 2);
        crd_complex p[8], q[8];
        int count, count_small;
        const crd_loop loop = {.dT = 0.001, .network = &m.plant};
        const crd_loop reduced = {.dT = 0.001, .network = &small};
        check_ok(crd_loop_poles(*state, &loop, 8, p, &count));
        check_ok(crd_loop_poles(*state, &reduced, 8, q, &count_small));
        check_int(count, count_small);
        for (int i = 0; i < count; i++) {
            double apart = INFINITY;
            for (int j = 0; j < count; j++) {
                apart = fmin(apart, hypot(p[i].re - q[j].re, p[i].im - q[j].im));
            }
            check(apart < 1e-9);
        }
        crd_arena_clear(&arena);
    }
}

static void the_loop_dies_at_its_delay_margin(void** state)
{
    oscillator o;
    make_loop(&o, REFERENCE, 'A');
    crd_nyquist n;
    check_ok(crd_loop_nyquist(*state, &o.loop, &n));
    const double margin = n.delay_margin;
    o.loop.delay = margin * 0.999;
    check_ok(crd_loop_nyquist(*state, &o.loop, &n));
    check_int(n.closed_unstable, 0);
    check_near(n.delay_margin, margin * 0.001, 1e-3 * margin * 0.01);
    o.loop.delay = margin * 1.001;
    check_ok(crd_loop_nyquist(*state, &o.loop, &n));
    check_int(n.closed_unstable, 2);
}

static void gain_margin_of_a_triple_lag_is_eight(void** state)
{
    const double den[] = {1, 3, 3, 1}; // (1 + s)^3: phase -180 at sqrt 3, |L| = gain / 8
    for (double gain = 4; gain < 20; gain *= 4) {
        const crd_transfer t = {0, 3, &gain, den};
        const crd_loop loop = {.transfer_count = 1, .transfers = &t};
        crd_nyquist n;
        check_ok(crd_loop_nyquist(*state, &loop, &n));
        check_int(n.closed_unstable, gain < 8 ? 0 : 2);
        check_int(n.gain_count, 1);
        check_near(n.gain[0].omega, sqrt(3), 1e-12);
        check_near(n.gain[0].margin, 8 / gain, 1e-12);
    }
}

static void feedback_that_stabilises_an_unstable_unit_is_counted(void** state)
{
    const double den[] = {-1, 1}; // gain / (s - 1): stable for gain > 1
    for (double gain = 0.5; gain < 3; gain += 1.5) {
        const crd_transfer t = {0, 1, &gain, den};
        const crd_loop loop = {.transfer_count = 1, .transfers = &t};
        crd_nyquist n;
        check_ok(crd_loop_nyquist(*state, &loop, &n));
        check_int(n.open_unstable, 1);
        check_int(n.encirclements, gain > 1 ? -1 : 0);
        check_int(n.closed_unstable, gain > 1 ? 0 : 1);
    }
}

static double draw(uint32_t* x) // in [0, 1)
{
    *x = *x * 1664525u + 1013904223u;
    return (double)*x / 4294967296.0;
}

static void multiply_by(double* p, int* degree, const double* q, int q_degree)
{
    double product[16] = {0};
    for (int i = 0; i <= *degree; i++) {
        for (int j = 0; j <= q_degree; j++) {
            product[i + j] += p[i] * q[j];
        }
    }
    *degree += q_degree;
    memcpy(p, product, sizeof product);
}

static void encirclements_agree_with_the_roots_of_random_loops(void** state)
{
    uint32_t x = 7;
    int unstable = 0, open_unstable = 0;
    for (int i = 0; i < 300; i++) {
        double den[16] = {1}, num[16] = {1};
        int den_degree = 0, num_degree = 0;
        for (int j = 0; j < 3; j++) { // pairs of poles, damping 1e-4 to 1, some of them negative
            const double w = pow(10, 2 * draw(&x) - 1), d = pow(10, -4 * draw(&x));
            const double pair[] = {w * w, (draw(&x) < 0.1 ? -2 : 2) * d * w, 1};
            multiply_by(den, &den_degree, pair, 2);
        }
        for (int j = 0; j < 2; j++) {
            const double w = pow(10, 2 * draw(&x) - 1), d = pow(10, -4 * draw(&x));
            const double pair[] = {w * w, (draw(&x) < 0.5 ? -2 : 2) * d * w, 1};
            multiply_by(num, &num_degree, pair, 2);
        }
        const double gain = pow(10, 4 * draw(&x) - 2);
        for (int j = 0; j <= num_degree; j++) {
            num[j] *= gain;
        }
        const crd_transfer t = {num_degree, den_degree, num, den};
        const crd_loop loop = {.transfer_count = 1, .transfers = &t};
        crd_nyquist n;
        crd_complex p[8];
        int count, right = 0;
        check_ok(crd_loop_nyquist(*state, &loop, &n));
        check_ok(crd_loop_poles(*state, &loop, 8, p, &count));
        check_int(count, 6);
        for (int j = 0; j < count; j++) {
            right += p[j].re > 0;
        }
        check_int(n.closed_unstable, right);
        unstable += right > 0;
        open_unstable += n.open_unstable > 0;
    }
    check(unstable > 30 && unstable < 270); // both kinds were met
    check(open_unstable > 30);
}

// Two oscillators side by side
typedef struct pair {
    masses m[2];
    double A[64], B[48], C[48], D[36];
    crd_plant_link links[6];
    crd_plant plant;
} pair;

static void make_pair(pair* p, int kind1, char coupling1, int kind2, char coupling2)
{
    *p = (pair){0};
    make_masses(&p->m[0], kind1, coupling1);
    make_masses(&p->m[1], kind2, coupling2);
    for (int b = 0; b < 2; b++) {
        const masses* m = &p->m[b];
        for (int i = 0; i < 4; i++) {
            memcpy(&p->A[(4 * b + i) * 8 + 4 * b], &m->A[4 * i], 4 * sizeof(double));
            memcpy(&p->B[(4 * b + i) * 6 + 3 * b], &m->B[3 * i], 3 * sizeof(double));
        }
        for (int i = 0; i < 3; i++) {
            memcpy(&p->C[(3 * b + i) * 8 + 4 * b], &m->C[4 * i], 4 * sizeof(double));
            memcpy(&p->D[(3 * b + i) * 6 + 3 * b], &m->D[3 * i], 3 * sizeof(double));
            p->links[3 * b + i] = m->links[i];
            p->links[3 * b + i].from += 3 * b;
            p->links[3 * b + i].to += 3 * b;
        }
    }
    p->plant = (crd_plant){8, 6, 6, p->A, p->B, p->C, p->D, 6, p->links};
}

static void two_separate_loops_in_one_network_add_up(void** state)
{
    // With ideal coupling both have the same poles: they start together and must part.
    pair two;
    make_pair(&two, ZOH, 'B', EQ20, 'A');
    const crd_loop loop = {.dT = 0.001, .network = &two.plant};
    crd_nyquist n;
    check_ok(crd_loop_nyquist(*state, &loop, &n));
    check_int(n.closed_unstable, 2);
    check(!n.one_loop && isnan(n.delay_margin));
    crd_complex p[8];
    int count, growing = 0, slow = 0;
    check_ok(crd_loop_poles(*state, &loop, 8, p, &count));
    check_int(count, 8);
    for (int i = 0; i < count; i++) {
        growing += fabs(p[i].re - 0.025054367723437502) < 1e-9;
        slow += fabs(p[i].re + 7.478696512446471e-05) < 1e-9;
    }
    check_int(growing, 2);
    check_int(slow, 2);
}

static void double_poles_are_found_twice(void** state)
{
    pair two;
    make_pair(&two, EQ12, 'A', EQ12, 'A');
    const crd_loop loop = {.dT = 0.001, .network = &two.plant};
    crd_complex p[8];
    int count, slow = 0;
    check_ok(crd_loop_poles(*state, &loop, 8, p, &count));
    check_int(count, 8);
    for (int i = 0; i < count; i++) {
        slow += hypot(p[i].re + 4.9765915280734507e-05, fabs(p[i].im) - 0.38617287887753193) < 1e-6;
    }
    check_int(slow, 4);
}

// x' = M x, `steps` times, by squaring
static void power_times(int n, double* m, int64_t steps, double* x)
{
    const size_t all = (size_t)n * (size_t)n;
    double *next = malloc(all * sizeof *next), *y = malloc((size_t)n * sizeof *y);
    assert_non_null(next);
    assert_non_null(y);
    for (; steps > 0; steps /= 2) {
        if (steps % 2) {
            for (int i = 0; i < n; i++) {
                y[i] = 0;
                for (int j = 0; j < n; j++) {
                    y[i] += m[i * n + j] * x[j];
                }
            }
            memcpy(x, y, (size_t)n * sizeof *x);
        }
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                double sum = 0;
                for (int l = 0; l < n; l++) {
                    sum += m[i * n + l] * m[l * n + j];
                }
                next[i * n + j] = sum;
            }
        }
        memcpy(m, next, all * sizeof *m);
    }
    free(next);
    free(y);
}

// At 500 s from x1 = x2 = 1, the past as at 0
static double energy(const crd_monodromy* map, char coupling)
{
    double x[128] = {1, 0, 1};
    for (int i = 0; i < map->depth; i++) {
        x[4 + 3 * i] = 1; // x1; v1 and F are 0
    }
    double* m = malloc((size_t)map->size * (size_t)map->size * sizeof *m);
    assert_non_null(m);
    memcpy(m, map->matrix, (size_t)map->size * (size_t)map->size * sizeof *m);
    power_times(map->size, m, 500000, x);
    free(m);
    const double m1 = coupling == 'A' ? 100 : 1, m2 = coupling == 'A' ? 1 : 100;
    return 0.5 * (m1 * x[1] * x[1] + m2 * x[3] * x[3] + spring * (x[0] * x[0] + x[2] * x[2]) +
                  spring * (x[2] - x[0]) * (x[2] - x[0]));
}

static void monodromy_of_the_oscillator_equals_the_reference(void** state)
{
    FILE* f = open_table("oscillator_poles.csv");
    char line[512], name[32], coupling, sampling[8];
    double re1, im1, re2, im2, e500;
    int rows = 0;
    while (next_row(f, line, sizeof line)) {
        check_int(sscanf(line, "%31[^,],%c,%7[^,],%lf,%lf,%lf,%lf,%lf", name, &coupling, sampling,
                         &re1, &im1, &re2, &im2, &e500),
                  8);
        if (strcmp(name, "reference") == 0) { continue; }
        int kind = 0;
        while (kind < KINDS && strcmp(names[kind], name) != 0) {
            kind++;
        }
        check(kind < KINDS);
        masses m;
        make_masses(&m, kind, coupling);
        crd_monodromy map;
        check_ok(crd_plant_monodromy(
            *state, &m.plant, 0.001,
            strcmp(sampling, "plus") == 0 ? CRD_SAMPLE_AFTER : CRD_SAMPLE_BEFORE, &map));
        crd_complex modes[4];
        check_ok(crd_monodromy_modes(*state, &map, 0.001, 4, modes));
        for (int i = 0; i < 4; i++) {
            const bool slow = fabs(modes[i].im) < 1;
            check_near(modes[i].re, slow ? re1 : re2, 1e-9);
            check_near(fabs(modes[i].im), slow ? im1 : im2, 1e-9);
        }
        check_near(energy(&map, coupling) / e500, 1, 1e-5);
        crd_monodromy_clear(*state, &map);
        rows++;
    }
    fclose(f);
    check_int(rows, 28);
}

static void an_algebraic_loop_without_latency_is_solved(void** state)
{
    // y = x + u/2, u = y at once: u = 2x, x' = -3x + u = -x only as long as u is held
    const double A = -3, B = 1, C = 1, D = 0.5, one = 1;
    const crd_linear hold = {1, 0, &one, NULL, 0};
    const crd_plant_link link = {.element = &hold};
    const crd_plant p = {1, 1, 1, &A, &B, &C, &D, 1, &link};
    crd_monodromy map;
    check_ok(crd_plant_monodromy(*state, &p, 0.1, CRD_SAMPLE_AFTER, &map));
    const double decay = exp(-0.3);
    check_near(map.matrix[0], decay + 2 * (1 - decay) / 3, 1e-15);
    crd_monodromy_clear(*state, &map);
    const crd_loop loop = {.dT = 0.1, .network = &p};
    crd_complex pole;
    int count;
    check_ok(crd_loop_poles(*state, &loop, 1, &pole, &count));
    check_int(count, 1);
    check(pole.re < -0.5 && pole.re > -3 && fabs(pole.im) < 1e-9);
}

static void bad_loops_are_named(void** state)
{
    const double num[] = {1, 2, 3}, den[] = {1, 1}, zero[] = {1, 0}, integrator[] = {0, 1};
    const double one = 1, minus = -1;
    crd_transfer t = {2, 1, num, den};
    crd_loop loop = {.transfer_count = 1, .transfers = &t};
    crd_nyquist n;
    crd_complex z;
    int count;
    check_status(crd_loop_nyquist(*state, &loop, &n), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "have degree 2 over 1 together, expected a proper one");
    t = (crd_transfer){0, 1, num, zero};
    check_status(crd_loop_poles(*state, &loop, 1, &z, &count), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the highest coefficient of its denominator is 0");
    t = (crd_transfer){0, 1, num, integrator};
    check_status(crd_loop_response(*state, &loop, (crd_complex){0, 0}, &z), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the loop has a pole at 0");
    t = (crd_transfer){1, 1, num, den};
    check_status(crd_loop_nyquist(*state, &loop, &n), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(*state), "the loop does not roll off");
    // u = y, y = u: no solution
    const double A = -1, B = 1;
    const crd_plant_link direct = {.gain = 1};
    const crd_plant algebraic = {1, 1, 1, &A, &B, &minus, &one, 1, &direct};
    crd_arena arena;
    crd_arena_init(&arena, *state);
    crd_plant reduced;
    check_status(crd_plant_reduce(*state, &arena, &algebraic, &reduced), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "an algebraic loop without solution");
    crd_arena_clear(&arena);
    loop.delay = -1;
    check_status(crd_loop_nyquist(*state, &loop, &n), CRD_E_RANGE);
    loop = (crd_loop){0};
    check_status(crd_loop_nyquist(*state, &loop, &n), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the loop has no transfer function");
    masses m;
    make_masses(&m, ZOH, 'A');
    loop = (crd_loop){.dT = 0, .network = &m.plant};
    check_status(crd_loop_nyquist(*state, &loop, &n), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the macro step is 0 s");
    loop.dT = 0.001;
    m.links[1].to = 3;
    check_status(crd_loop_nyquist(*state, &loop, &n), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "link 2 goes from output 0 to input 3");
    m.links[1].to = 1;
    m.A[5] = NAN;
    check_status(crd_loop_poles(*state, &loop, 1, &z, &count), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "matrix A: number 6 is nan");
    make_masses(&m, REFERENCE, 'A');
    crd_monodromy map;
    check_status(crd_plant_monodromy(*state, &m.plant, 0.001, CRD_SAMPLE_AFTER, &map),
                 CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(*state), "link 1 has no element");
    make_masses(&m, ZOH, 'A');
    check_ok(crd_plant_monodromy(*state, &m.plant, 0.001, CRD_SAMPLE_AFTER, &map));
    check_status(crd_monodromy_modes(*state, &map, 0.001, 1000, &z), CRD_E_RANGE);
    crd_monodromy_clear(*state, &map);
}

static crd_status everything(crd_context* ctx)
{
    masses m;
    make_masses(&m, ZOH, 'A');
    oscillator o;
    make_loop(&o, ZOH, 'A');
    const crd_loop loop = {.dT = 0.001, .network = &m.plant};
    crd_nyquist n;
    crd_complex z[8];
    int count;
    crd_monodromy map = {0};
    crd_status st = crd_loop_poles(ctx, &loop, 8, z, &count);
    if (st >= 0) { st = crd_loop_poles(ctx, &o.loop, 8, z, &count); }
    if (st >= 0) { st = crd_loop_nyquist(ctx, &o.loop, &n); }
    crd_loop_point* points = NULL;
    if (st >= 0) { st = crd_loop_curve(ctx, &loop, &n, &points); }
    crd_free(ctx, points);
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    crd_plant reduced;
    if (st >= 0) { st = crd_plant_reduce(ctx, &arena, &m.plant, &reduced); }
    crd_arena_clear(&arena);
    if (st >= 0) { st = crd_plant_monodromy(ctx, &m.plant, 0.001, CRD_SAMPLE_BEFORE, &map); }
    if (st >= 0) { st = crd_monodromy_modes(ctx, &map, 0.001, 4, z); }
    crd_monodromy_clear(ctx, &map);
    return st;
}

static void every_failing_allocation_is_reported_and_leaves_nothing(void** state)
{
    (void)state;
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        const int64_t live = a.live;
        a.fail_at = a.allocations + fail_at;
        const crd_status st = everything(ctx);
        check_int(a.live, live);
        a.fail_at = -1;
        crd_context_destroy(ctx);
        if (st == CRD_OK) {
            check(fail_at >= 5);
            break;
        }
        check_status(st, CRD_E_MEMORY);
    }
}

int main(void)
{
    crd_context* ctx = crd_context_create(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(oscillator_margins_equal_the_reference, ctx),
        cmocka_unit_test_prestate(oscillator_poles_equal_the_reference, ctx),
        cmocka_unit_test_prestate(the_network_of_the_oscillator_says_the_same, ctx),
        cmocka_unit_test_prestate(integrators_are_passed_on_the_right, ctx),
        cmocka_unit_test_prestate(a_distance_that_falls_for_good_is_that_at_the_end, ctx),
        cmocka_unit_test_prestate(the_curve_is_the_loop_at_its_frequencies, ctx),
        cmocka_unit_test_prestate(closing_direct_links_changes_no_pole, ctx),
        cmocka_unit_test_prestate(the_loop_dies_at_its_delay_margin, ctx),
        cmocka_unit_test_prestate(gain_margin_of_a_triple_lag_is_eight, ctx),
        cmocka_unit_test_prestate(feedback_that_stabilises_an_unstable_unit_is_counted, ctx),
        cmocka_unit_test_prestate(encirclements_agree_with_the_roots_of_random_loops, ctx),
        cmocka_unit_test_prestate(two_separate_loops_in_one_network_add_up, ctx),
        cmocka_unit_test_prestate(double_poles_are_found_twice, ctx),
        cmocka_unit_test_prestate(monodromy_of_the_oscillator_equals_the_reference, ctx),
        cmocka_unit_test_prestate(an_algebraic_loop_without_latency_is_solved, ctx),
        cmocka_unit_test_prestate(bad_loops_are_named, ctx),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaves_nothing),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    crd_context_destroy(ctx);
    return failed;
}
