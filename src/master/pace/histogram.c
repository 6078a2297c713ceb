// Histograms of durations: each power of two has 16 buckets of equal width, below 16 ns each number
// has its own. Bucket 16 (e - 3) + s holds 2^e + s 2^(e-4) .. 2^e + (s + 1) 2^(e-4) - 1, e = 4
// .. 39.
#include "shared/pace.h"

#include <limits.h>
#include <math.h>

enum { SUB_BITS = 4, TOP = 40 };
_Static_assert(CRD_HISTOGRAM_SUB == 1 << SUB_BITS, "a power of two");
_Static_assert(CRD_HISTOGRAM_BUCKETS == CRD_HISTOGRAM_SUB * (TOP - SUB_BITS + 1), "up to 2^TOP");

int crd_histogram_bucket(int64_t ns)
{
    if (ns < CRD_HISTOGRAM_SUB) { return ns > 0 ? (int)ns : 0; }
    if (ns >> TOP) { return CRD_HISTOGRAM_BUCKETS - 1; }
    const int e = 63 - __builtin_clzll((unsigned long long)ns);
    return ((e - SUB_BITS) << SUB_BITS) + (int)(ns >> (e - SUB_BITS));
}

int64_t crd_histogram_edge(int bucket)
{
    if (bucket < CRD_HISTOGRAM_SUB) { return bucket > 0 ? bucket : 0; }
    if (bucket >= CRD_HISTOGRAM_BUCKETS) { return (int64_t)1 << TOP; }
    const int64_t head = CRD_HISTOGRAM_SUB + bucket % CRD_HISTOGRAM_SUB;
    return head << (bucket / CRD_HISTOGRAM_SUB - 1);
}

static int64_t sum_of(int64_t a, int64_t b) // neither negative; stays at the largest
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void crd_histogram_add(crd_histogram* h, int64_t ns)
{
    if (ns < 0) { ns = 0; }
    if (h->count == 0 || ns < h->min) { h->min = ns; }
    if (ns > h->max) { h->max = ns; }
    h->count++;
    h->sum = sum_of(h->sum, ns);
    h->buckets[crd_histogram_bucket(ns)]++;
}

void crd_histogram_merge(crd_histogram* h, const crd_histogram* other)
{
    if (other->count == 0) { return; }
    if (h->count == 0 || other->min < h->min) { h->min = other->min; }
    if (other->max > h->max) { h->max = other->max; }
    h->count += other->count;
    h->sum = sum_of(h->sum, other->sum);
    for (int i = 0; i < CRD_HISTOGRAM_BUCKETS; i++) {
        h->buckets[i] += other->buckets[i];
    }
}

int64_t crd_histogram_quantile(const crd_histogram* h, double q)
{
    if (!(q > 0)) { return h->min; } // written so that NaN is 0
    if (q >= 1) { return h->max; }
    // The product may miss a whole number by its rounding: 0.07 * 100 is more than 7.
    const double part = q * (double)h->count;
    const int64_t rank = (int64_t)ceil(part - part * 0x1p-50);
    int64_t below = 0;
    for (int i = 0; i < CRD_HISTOGRAM_BUCKETS - 1; i++) {
        below += h->buckets[i];
        if (below >= rank) {
            const int64_t last = crd_histogram_edge(i + 1) - 1;
            return last < h->max ? last : h->max;
        }
    }
    return h->max; // the last bucket has no upper edge
}
