// The counters behind cardan circuit --realtime.
#include "check.h"
#include "cli/circuit/circuit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void* a, const void* b)
{
    const int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
    return x < y ? -1 : x > y;
}

static void quantiles_are_right_to_two_percent_and_never_above_the_worst(void** state)
{
    (void)state;
    enum { COUNT = 20000 };
    static crdi_times h;
    static int64_t ns[COUNT];
    memset(&h, 0, sizeof h);
    uint64_t seed = 1;
    for (int i = 0; i < COUNT; i++) { // from 50 ns to 50 ms
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ns[i] = (int64_t)(50 * pow(1e6, (double)(seed >> 40) / 16777216.0));
        crdi_times_add(&h, ns[i]);
    }
    qsort(ns, COUNT, sizeof *ns, by_size);
    static const double fractions[] = {0.001, 0.01, 0.5, 0.9, 0.99, 0.9999};
    for (size_t i = 0; i < sizeof fractions / sizeof *fractions; i++) {
        const double want = 1e-9 * (double)ns[(int)ceil(fractions[i] * COUNT) - 1];
        const double got = crdi_times_quantile(&h, fractions[i]);
        check(got >= want);
        check_near(got, want, 0.02 * want);
        check(got <= 1e-9 * (double)h.most);
    }
    check_near(crdi_times_quantile(&h, 1), 1e-9 * (double)ns[COUNT - 1], 0);
    check(h.count == COUNT);
}

static void every_time_has_a_counter(void** state)
{
    (void)state;
    static crdi_times h;
    memset(&h, 0, sizeof h);
    check(isnan(crdi_times_quantile(&h, 0.5)));
    crdi_times_add(&h, -5); // a clock that costs less than it seemed
    check_near(crdi_times_quantile(&h, 0.5), 0, 0);
    int64_t count = 1;
    for (int bit = 0; bit < 63; bit++) {
        memset(&h, 0, sizeof h);
        for (int64_t d = -1; d <= 1; d++) {
            const int64_t ns = (int64_t)((uint64_t)1 << bit) + d;
            if (ns < 0) { continue; }
            crdi_times_add(&h, ns);
            count++;
            check_near(crdi_times_quantile(&h, 1), 1e-9 * (double)ns, 1e-9 * (double)ns / 32);
        }
    }
    crdi_times_add(&h, INT64_MAX);
    int64_t sum = 0;
    for (int i = 0; i < CRDI_TIMES_SIZE; i++) {
        sum += h.counts[i];
    }
    check(sum == h.count);
    check(count > 180);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_right_to_two_percent_and_never_above_the_worst),
        cmocka_unit_test(every_time_has_a_counter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
