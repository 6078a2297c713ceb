#include "check.h"
#include "shared/pace.h"

// splitmix64 (Steele, Lea, Flood 2014)
static uint64_t draw(uint64_t* seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static double uniform(uint64_t* seed) // 0 .. 1, neither
{
    return ((double)(draw(seed) >> 11) + 0.5) * 0x1p-53;
}

static int by_size(const void* a, const void* b)
{
    const int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
    return (x > y) - (x < y);
}

static void buckets_follow_each_other_and_are_a_sixteenth_wide(void** state)
{
    (void)state;
    check_int(crd_histogram_edge(0), 0);
    check_int(crd_histogram_edge(CRD_HISTOGRAM_BUCKETS), (int64_t)1 << 40);
    for (int i = 0; i < CRD_HISTOGRAM_BUCKETS; i++) {
        const int64_t low = crd_histogram_edge(i), next = crd_histogram_edge(i + 1);
        check(next > low);
        check((next - low) * CRD_HISTOGRAM_SUB <= (low > 16 ? low : 16));
        check_int(crd_histogram_bucket(low), i);
        check_int(crd_histogram_bucket(next - 1), i);
        check_int(crd_histogram_bucket(low + (next - low) / 2), i);
    }
}

static void numbers_outside_of_the_range_count_at_its_ends(void** state)
{
    (void)state;
    const int last = CRD_HISTOGRAM_BUCKETS - 1;
    check_int(crd_histogram_bucket(-1), 0);
    check_int(crd_histogram_bucket(INT64_MIN), 0);
    check_int(crd_histogram_bucket((int64_t)1 << 40), last);
    check_int(crd_histogram_bucket(INT64_MAX), last);
    check_int(crd_histogram_edge(-5), 0);
    check_int(crd_histogram_edge(100000), (int64_t)1 << 40);
    static crd_histogram h;
    crd_histogram_add(&h, -7);
    check_int(h.count, 1);
    check_int(h.min, 0);
    check_int(h.max, 0);
    check_int(h.buckets[0], 1);
    crd_histogram_add(&h, INT64_MAX);
    crd_histogram_add(&h, INT64_MAX);
    check_int(h.count, 3);
    check_int(h.max, INT64_MAX);
    check_int(h.sum, INT64_MAX); // and not an overflow
    check_int(h.buckets[last], 2);
    check_int(crd_histogram_quantile(&h, 0.3), 0);
    check_int(crd_histogram_quantile(&h, 0.5), INT64_MAX);
}

static void an_empty_one_says_zero(void** state)
{
    (void)state;
    static const crd_histogram h;
    for (int i = 0; i <= 4; i++) {
        check_int(crd_histogram_quantile(&h, 0.25 * i), 0);
    }
}

static void a_single_duration_is_every_quantile(void** state)
{
    (void)state;
    static const int64_t samples[] = {0, 1, 15, 16, 17, 31, 33, 999999, 1000000, 86400000000000};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        crd_histogram h = {0};
        crd_histogram_add(&h, samples[i]);
        check_int(h.min, samples[i]);
        check_int(h.max, samples[i]);
        check_int(h.sum, samples[i]);
        check_int(crd_histogram_quantile(&h, 0), samples[i]);
        check_int(crd_histogram_quantile(&h, 0.5), samples[i]);
        check_int(crd_histogram_quantile(&h, 1), samples[i]);
        check_int(crd_histogram_quantile(&h, NAN), samples[i]);
    }
}

static void ranks_of_round_parts_are_whole(void** state)
{
    (void)state;
    // 1 .. 16 once each: the k-th of 16, and of q = k/100 the k-th of a hundred, to the last bit.
    crd_histogram h = {0};
    for (int i = 0; i < 16; i++) {
        crd_histogram_add(&h, i);
    }
    for (int k = 1; k <= 16; k++) {
        check_int(crd_histogram_quantile(&h, k / 16.0), k - 1);
    }
    for (int k = 1; k < 100; k++) {
        crd_histogram a = {0};
        for (int i = 1; i <= 100; i++) {
            crd_histogram_add(&a, i <= k ? 5 : 9);
        }
        check_int(crd_histogram_quantile(&a, k / 100.0), 5);
        check_int(crd_histogram_quantile(&a, (k + 0.01) / 100.0), 9);
    }
}

typedef int64_t distribution(uint64_t* seed);

static int64_t even(uint64_t* seed)
{
    return (int64_t)(draw(seed) % 2000000);
}

static int64_t exponential(uint64_t* seed)
{
    return (int64_t)(-50e3 * log(uniform(seed)));
}

static int64_t heavy_tail(uint64_t* seed) // Pareto, up to minutes
{
    const double x = 2e3 * pow(uniform(seed), -1 / 0.7);
    return x < 1e12 ? (int64_t)x : 1000000000000;
}

static int64_t two_humps(uint64_t* seed)
{
    return draw(seed) % 1000 == 0 ? 5000000 + (int64_t)(draw(seed) % 1000)
                                  : 3000 + (int64_t)(draw(seed) % 500);
}

static int64_t tiny(uint64_t* seed)
{
    return (int64_t)(draw(seed) % 40);
}

static void quantiles_are_those_of_the_sorted_samples_within_a_sixteenth(void** state)
{
    (void)state;
    static distribution* const all[] = {even, exponential, heavy_tail, two_humps, tiny};
    static const double parts[] = {1e-6, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999};
    enum { N = 20000 };
    int64_t* x = malloc(N * sizeof *x);
    check(x != NULL);
    for (size_t d = 0; d < sizeof all / sizeof *all; d++) {
        crd_histogram h = {0};
        uint64_t seed = 40 + d;
        int64_t sum = 0;
        for (int i = 0; i < N; i++) {
            x[i] = all[d](&seed);
            sum += x[i];
            crd_histogram_add(&h, x[i]);
        }
        qsort(x, N, sizeof *x, by_size);
        check_int(h.count, N);
        check_int(h.sum, sum);
        check_int(h.min, x[0]);
        check_int(h.max, x[N - 1]);
        check_int(crd_histogram_quantile(&h, 0), x[0]);
        check_int(crd_histogram_quantile(&h, 1), x[N - 1]);
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            int rank = 1;
            while (rank < parts[k] * N - 1e-6) {
                rank++;
            }
            const int64_t want = x[rank - 1], got = crd_histogram_quantile(&h, parts[k]);
            check(got >= want);
            check_near((double)got, (double)want, (double)want / CRD_HISTOGRAM_SUB);
        }
    }
    free(x);
}

static void adding_up_is_as_if_all_had_gone_into_one(void** state)
{
    (void)state;
    crd_histogram part[3] = {0}, all = {0}, sum = {0}, empty = {0};
    uint64_t seed = 7;
    for (int i = 0; i < 3000; i++) {
        const int64_t x = 1 + (i % 3 == 0 ? even : i % 3 == 1 ? heavy_tail : tiny)(&seed);
        crd_histogram_add(&part[i % 3], x);
        crd_histogram_add(&all, x);
    }
    crd_histogram_merge(&sum, &empty);
    check(memcmp(&sum, &empty, sizeof sum) == 0);
    for (int i = 0; i < 3; i++) {
        crd_histogram_merge(&sum, &part[i]);
        crd_histogram_merge(&sum, &empty);
    }
    check(memcmp(&sum, &all, sizeof all) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_follow_each_other_and_are_a_sixteenth_wide),
        cmocka_unit_test(numbers_outside_of_the_range_count_at_its_ends),
        cmocka_unit_test(an_empty_one_says_zero),
        cmocka_unit_test(a_single_duration_is_every_quantile),
        cmocka_unit_test(ranks_of_round_parts_are_whole),
        cmocka_unit_test(quantiles_are_those_of_the_sorted_samples_within_a_sixteenth),
        cmocka_unit_test(adding_up_is_as_if_all_had_gone_into_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
