#include "coupling_test.h"

#include "coupling/coupling.h"

static void the_spectrum_of_ramp_and_step_is_known(void** state)
{
    (void)state;
    const double ramp[8] = {7, 6, 5, 4, 3, 2, 1, 0}, step[8] = {1, 0, 0, 0, 0, 0, 0, 0};
    const double constant[8] = {3, 3, 3, 3, 3, 3, 3, 3};
    check_near(crd_spectrum_above(ramp), 2.32967804, 1e-8);
    check_near(crd_spectrum_above(step), 1.55008332, 1e-8);
    check_near(crd_spectrum_above(constant), 0, 0);
}

// D_n / D_{n-1} at a jump on a ramp of slope 1.
static double ratio_at(double jump)
{
    double before[8], after[8];
    for (int i = 0; i < 8; i++) {
        before[i] = -1 - i;
        after[i] = -i;
    }
    after[0] += jump;
    return crd_spectrum_above(after) / crd_spectrum_above(before);
}

static void the_ratio_of_spectra_is_that_of_the_reference(void** state)
{
    (void)state;
    check_near(ratio_at(6.331106), 5, 1e-5);
    check_near(ratio_at(-8.486068), 5, 1e-5);
    check_near(ratio_at(12.838217), 9.3, 1e-5);
}

// D by another implementation of eq. 38 to 42 (complex DFT in Python).
static void window_and_band_of_the_spectrum_are_free(void** state)
{
    (void)state;
    const struct {
        int window;
        double low, high, curve, step;
    } cases[] = {{8, 0, 1, 1.497677938431, 1.550083321613},
                 {8, 0.25, 1, 0.471468867666, 0.791902737180}, // "above 25 %": bins 2 to 4
                 {16, 0.25, 1, 0.578605514486, 0.891811048858},
                 {16, 0, 0.5, 3.805562906004, 1.510299856553},
                 {6, 0.4, 1, 0.283494675829, 0.624008179033},
                 {12, 0.5, 1, 0.205546034220, 0.492007070943},
                 {4, 0, 1, 0.791515879229, 1.092820323028}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int window = cases[i].window;
        crd_detector d, e;
        crd_detector_init(&d, CRD_DETECT_SPECTRUM, 0, 0);
        check(crd_detector_set_spectrum(&d, window, cases[i].low, cases[i].high));
        e = d;
        for (int n = window - 1; n >= 0; n--) {
            crd_detector_push(&d, sin(0.7 * n) + 0.1 * n * n);
            crd_detector_push(&e, n == 0);
        }
        check_near(d.spectrum, cases[i].curve, 1e-11);
        check_near(e.spectrum, cases[i].step, 1e-11);
    }
}

static void windows_and_bands_without_a_bin_are_refused(void** state)
{
    (void)state;
    const struct {
        int window;
        double low, high;
    } wrong[] = {{7, 0, 1},      {2, 0, 1},    {18, 0, 1},  {8, 0.3, 0.45}, {8, 1, 1},
                 {8, 0.5, 0.25}, {8, -0.1, 1}, {8, 0, 1.1}, {8, NAN, 1},    {8, 0, NAN}};
    crd_detector d, before;
    crd_detector_init(&d, CRD_DETECT_SPECTRUM, 0, 0);
    before = d;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check(!crd_detector_set_spectrum(&d, wrong[i].window, wrong[i].low, wrong[i].high));
        check(memcmp(&d, &before, sizeof d) == 0);
    }
}

// The oscillation of a driveline, 40 rad/s sampled each 10 ms: all bins together never see more
// than 1.72 times the spectrum before, those above 25 % of the Nyquist frequency up to 71 times.
static void bins_above_a_quarter_see_jumps_in_an_oscillation(void** state)
{
    (void)state;
    for (int above = 0; above < 2; above++) {
        crd_detector d;
        crd_detector_init(&d, CRD_DETECT_SPECTRUM, 0, 0);
        check(crd_detector_set_spectrum(&d, 8, above ? 0.25 : 0, 1));
        int jumps = 0;
        for (int n = 0; n < 2000; n++) {
            jumps += crd_detector_push(&d, sin(0.4 * n)).jump;
        }
        check(above ? jumps > 20 : jumps == 0);
    }
}

static int hits(crd_detection kind, const double* y, int count)
{
    crd_detector d;
    int n = 0;
    crd_detector_init(&d, kind, 0, 0);
    for (int i = 0; i < count; i++) {
        n += crd_detector_push(&d, y[i]).jump;
    }
    return n;
}

static void sines_zeros_and_constants_are_no_jumps(void** state)
{
    (void)state;
    static double y[2000];
    const crd_detection kinds[] = {CRD_DETECT_SPECTRUM, CRD_DETECT_GUARDED};
    for (int kind = 0; kind < 2; kind++) {
        for (double w = 0.01; w < 3.1; w *= 1.5) {
            for (int i = 0; i < 2000; i++) {
                y[i] = sin(w * i + 0.4);
            }
            check_int(hits(kinds[kind], y, 2000), 0);
        }
        for (double level = 0; level < 20; level += 7) {
            for (int i = 0; i < 2000; i++) {
                y[i] = level;
            }
            check_int(hits(kinds[kind], y, 2000), 0);
        }
    }
}

typedef struct quality {
    double false_per_1000, missed;
} quality;

// A sine of amplitude 1 with noise and jumps up and down, at least 60 samples apart.
static quality try_detector(crd_detection kind, double f, double jump, double snr_db)
{
    const double pi = acos(-1), sigma = sqrt(0.5) * pow(10, -snr_db / 20);
    uint32_t seed = 99;
    crd_detector d;
    crd_detector_init(&d, kind, 0, 0);
    double level = 0;
    int wrong = 0, found = 0, jumps = 0, next = 100;
    for (int n = 0; n < 20000; n++) {
        const bool here = n == next;
        if (here) {
            level += next_uniform(&seed) < 0.5 ? -jump : jump;
            next += 60 + (int)(80 * next_uniform(&seed));
        }
        const double y = sin(pi * f * n) + level + sigma * next_normal(&seed);
        const bool hit = crd_detector_push(&d, y).jump;
        jumps += here;
        found += here && hit;
        wrong += !here && hit;
    }
    return (quality){1000.0 * wrong / 20000, 1 - (double)found / jumps};
}

#define check_between(x, low, high)                                                                \
    do {                                                                                           \
        const double check_x = (x);                                                                \
        if (!(check_x >= (low) && check_x <= (high))) {                                            \
            fail_msg("%s:%d: %s = %g, expected %g .. %g", __FILE__, __LINE__, #x, check_x,         \
                     (double)(low), (double)(high));                                               \
        }                                                                                          \
    } while (0)

static void the_guarded_detector_finds_what_the_published_one_misses(void** state)
{
    (void)state;
    const struct {
        double f, jump, snr;
        double paper_low, paper_high, guarded_high; // missed
    } cases[] = {{0.01, 0.25, 60, 0.02, 0.2, 0.005}, {0.01, 0.25, 30, 0.45, 0.75, 0.35},
                 {0.01, 1, 20, 0.05, 0.25, 0.03},    {0.05, 1, 60, 0.12, 0.4, 0.005},
                 {0.05, 1, 20, 0.35, 0.7, 0.25},     {0.15, 1, 40, 0.97, 1, 0.005},
                 {0.15, 3, 20, 0.2, 0.5, 0.005}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const quality p =
            try_detector(CRD_DETECT_SPECTRUM, cases[i].f, cases[i].jump, cases[i].snr);
        const quality g = try_detector(CRD_DETECT_GUARDED, cases[i].f, cases[i].jump, cases[i].snr);
        check_between(p.missed, cases[i].paper_low, cases[i].paper_high);
        check_between(g.missed, 0, cases[i].guarded_high);
        check_between(p.false_per_1000, 0, 1.5);
        check_between(g.false_per_1000, 0, 0.5);
    }
}

static void the_end_of_a_spike_takes_back_what_its_beginning_has_lifted(void** state)
{
    (void)state;
    uint32_t seed = 8;
    crd_detector d;
    crd_detector_init(&d, CRD_DETECT_GUARDED, 0, 0);
    double lifted = 0;
    int rebased = 0;
    for (int n = 0; n < 400; n++) { // spikes of one and two samples, some soon after another
        const bool spike = n == 100 || n == 103 || n == 200 || n == 201 || n == 300;
        const crd_detected found = crd_detector_push(&d, 5 * spike + 0.01 * next_normal(&seed));
        lifted += found.rebase ? found.height : 0;
        rebased += found.rebase;
    }
    check_int(rebased, 8);
    check_near(lifted, 0, 0.5);
}

static void a_rebased_jump_has_the_height_of_the_level_shift(void** state)
{
    (void)state;
    crd_detector d;
    crd_detector_init(&d, CRD_DETECT_GUARDED, 0, 0);
    for (int n = 0; n < 200; n++) {
        const crd_detected x = crd_detector_push(&d, sin(0.05 * n) - 3.0 * (n >= 120));
        check_int(x.jump, n == 120);
        if (x.jump) {
            check(x.rebase);
            check_near(x.height, -3, 1e-2);
        }
    }
}

static void rounding_noise_on_a_constant_is_no_jump_for_the_guarded_detector(void** state)
{
    (void)state;
    static double y[4000];
    uint32_t seed = 5;
    for (int i = 0; i < 4000; i++) {
        y[i] = 1000 + (next_uniform(&seed) > 0.98 ? 1e-13 : 0);
    }
    check_int(hits(CRD_DETECT_GUARDED, y, 4000), 0);
    check(hits(CRD_DETECT_SPECTRUM, y, 4000) > 0); // as published
}

static void steps_of_the_resolution_are_no_jumps(void** state)
{
    (void)state;
    crd_detector d;
    crd_detector_init(&d, CRD_DETECT_GUARDED, 0, 0.01);
    for (int n = 0; n < 3000; n++) {
        check(!crd_detector_push(&d, 0.01 * floor(100 * sin(0.001 * n))).jump);
    }
    check(crd_detector_push(&d, 5).jump);
}

// The guarded criterion word for word: medians by sorting at every sample.
typedef struct plain_detector {
    double y[8], scale, hit;
    double kept[3][48];
    int count, kept_count, since, skip;
} plain_detector;

static int by_size(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static bool plain_push(plain_detector* d, double sample)
{
    for (int i = 7; i > 0; i--) {
        d->y[i] = d->count ? d->y[i - 1] : sample;
    }
    d->y[0] = sample;
    d->count++;
    d->scale = fmax(d->scale, fabs(sample));
    d->since++;
    const double* y = d->y;
    const double difference[3] = {y[0] - y[1], y[0] - 2 * y[1] + y[2],
                                  y[0] - 3 * y[1] + 3 * y[2] - y[3]};
    const int n = d->kept_count < 48 ? d->kept_count : 48;
    double smallest = INFINITY, height = 0;
    for (int o = 0; o < 3; o++) {
        double sorted[48];
        memcpy(sorted, d->kept[o], sizeof sorted);
        qsort(sorted, (size_t)n, sizeof *sorted, by_size);
        const double median = n ? 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]) : 0;
        if (median < smallest) {
            smallest = median;
            height = difference[o];
        }
        if (d->count > 3) { d->kept[o][d->kept_count % 48] = fabs(difference[o]); }
    }
    d->kept_count += d->count > 3;
    const bool again = d->since <= 4;
    const bool large = n >= 12 && fabs(height) > 8 * fmax(smallest, 1e-9 * d->scale) &&
                       (!again || fabs(height) > 0.25 * fabs(d->hit));
    const bool jump = large && d->skip == 0;
    d->skip -= d->skip > 0;
    if (jump) {
        const bool back = again && fabs(height + d->hit) < 0.5 * fabs(d->hit); // end of a spike
        d->since = back ? 1 << 20 : 0;
        d->hit = height;
        d->skip = again && !back ? 3 : 0;
        for (int i = 1; i < 8 && (!again || back); i++) {
            d->y[i] += height;
        }
    }
    return jump;
}

static void the_guarded_detector_has_exact_medians(void** state)
{
    (void)state;
    int jumps = 0;
    for (uint32_t seed = 1; seed <= 60; seed++) {
        uint32_t x = seed;
        crd_detector d;
        plain_detector p = {.since = 1 << 20};
        crd_detector_init(&d, CRD_DETECT_GUARDED, 0, 0);
        const double w = 2 * next_uniform(&x) * next_uniform(&x);
        double level = 0, size = 1, before = 0;
        for (int n = 0; n < 2000; n++) { // jumps, changes of amplitude and of noise, held, rounded
            if (next_uniform(&x) < 0.01) { level += 4 * next_uniform(&x) - 2; }
            if (next_uniform(&x) < 0.003) { size = pow(10, 4 * next_uniform(&x) - 3); }
            double y = level + size * (sin(w * n) + 0.02 * (seed % 5) * next_normal(&x));
            if (seed % 3 == 1) { y = floor(16 * y) / 16; }
            if (seed % 4 == 1 && n % 3) { y = before; }
            const bool jump = plain_push(&p, y);
            check_int(crd_detector_push(&d, y).jump, jump);
            jumps += jump;
            before = y;
        }
    }
    check(jumps > 500);
}

// ---- gaps --------------------------------------------------------------------------------------

static void what_keeps_the_place_of_a_lost_sample_is_not_looked_at(void** state)
{
    (void)state;
    uint32_t x = 3;
    int jumps = 0;
    crd_detector d, wild;
    crd_detector_init(&d, CRD_DETECT_GUARDED, 0, 0);
    crd_detector_init(&wild, CRD_DETECT_GUARDED, 0, 0);
    for (int n = 0; n < 5000; n++) {
        const double y = sin(0.03 * n) + (n / 500) % 2 + 1e-3 * next_normal(&x);
        const bool real = next_uniform(&x) >= 0.2;
        const crd_detected a = crdi_detector_push(&d, real ? y : 0, real);
        const crd_detected b = crdi_detector_push(&wild, real ? y : 1e6 * next_normal(&x), real);
        check_int(a.jump, b.jump);
        check_near(a.height, b.height, 0);
        jumps += a.jump;
    }
    check_int(jumps, 9);
}

static void a_signal_of_which_every_second_sample_is_lost_has_its_jumps(void** state)
{
    (void)state;
    crd_detector d;
    crd_detector_init(&d, CRD_DETECT_GUARDED, 0, 0);
    for (int n = 0; n < 1000; n++) {
        const double y = sin(0.05 * n) + 2 * (n >= 600);
        const crd_detected found = crdi_detector_push(&d, n % 2 ? 0 : y, n % 2 == 0);
        check_int(found.jump, n == 600);
        if (found.jump) { check_near(found.height, 2, 0.01); }
    }
}

static void across_a_gap_a_jump_is_as_high_as_without(void** state)
{
    (void)state;
    for (int lost = 0; lost <= 6; lost++) {
        crd_detector d;
        crd_detector_init(&d, CRD_DETECT_GUARDED, 0, 0);
        int jumps = 0;
        for (int n = 0; n < 400; n++) {
            const bool real = n < 300 - lost || n >= 300;
            const crd_detected found = crdi_detector_push(&d, sin(0.05 * n) - 3 * (n >= 300), real);
            jumps += found.jump;
            if (found.jump) {
                check_int(n, 300);
                check(found.rebase);
                // what a parabola misses in so many steps, a constant in one
                check_near(found.height, -3, 0.05);
            }
        }
        check_int(jumps, 1);
    }
}

static void a_gap_longer_than_the_memory_is_no_jump(void** state)
{
    (void)state;
    crd_detector d;
    crd_detector_init(&d, CRD_DETECT_GUARDED, 0, 0);
    for (int n = 0; n < 400; n++) {
        const bool real = n < 300 || n >= 300 + CRD_DETECT_SPAN;
        check(!crdi_detector_push(&d, sin(0.05 * n) - 3 * (n >= 300), real).jump);
    }
    check(crd_detector_push(&d, 9).jump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_spectrum_of_ramp_and_step_is_known),
        cmocka_unit_test(the_ratio_of_spectra_is_that_of_the_reference),
        cmocka_unit_test(window_and_band_of_the_spectrum_are_free),
        cmocka_unit_test(windows_and_bands_without_a_bin_are_refused),
        cmocka_unit_test(bins_above_a_quarter_see_jumps_in_an_oscillation),
        cmocka_unit_test(sines_zeros_and_constants_are_no_jumps),
        cmocka_unit_test(the_guarded_detector_finds_what_the_published_one_misses),
        cmocka_unit_test(the_guarded_detector_has_exact_medians),
        cmocka_unit_test(the_end_of_a_spike_takes_back_what_its_beginning_has_lifted),
        cmocka_unit_test(a_rebased_jump_has_the_height_of_the_level_shift),
        cmocka_unit_test(rounding_noise_on_a_constant_is_no_jump_for_the_guarded_detector),
        cmocka_unit_test(steps_of_the_resolution_are_no_jumps),
        cmocka_unit_test(what_keeps_the_place_of_a_lost_sample_is_not_looked_at),
        cmocka_unit_test(a_signal_of_which_every_second_sample_is_lost_has_its_jumps),
        cmocka_unit_test(across_a_gap_a_jump_is_as_high_as_without),
        cmocka_unit_test(a_gap_longer_than_the_memory_is_no_jump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
