// Discontinuities in the newest sample of a signal.
#include "coupling/coupling.h"

#include <math.h>
#include <string.h>

enum { N = CRD_DETECT_WINDOW, MEDIAN = CRD_DETECT_MEDIAN, ORDERS = CRD_DETECT_ORDERS };

void crd_detector_init(crd_detector* d, crd_detection kind, double threshold, double resolution)
{
    *d = (crd_detector){.kind = kind,
                        .threshold = threshold > 0                 ? threshold
                                     : kind == CRD_DETECT_SPECTRUM ? 5
                                                                   : 8,
                        .resolution = resolution,
                        .since_hit = 1 << 20};
}

// cos(pi n / 8) for n = 0 .. 15
#define C1 0.92387953251128675613
#define C2 0.70710678118654752440
#define C3 0.38268343236508977173
static const double cosine[16] = {1,  C1,  C2,  C3,  0, -C3, -C2, -C1,
                                  -1, -C1, -C2, -C3, 0, C3,  C2,  C1};

double crd_spectrum_above(const double y[CRD_DETECT_WINDOW])
{
    // Half-Hann window (eq. 40) over the segment, shifted so that its newest value is zero.
    double s[N + 1];
    for (int n = 1; n <= N; n++) {
        s[n] = 0.5 * (1 - cosine[n]) * (y[N - n] - y[0]);
    }
    double sum = 0;
    for (int q = 1; q <= N / 2; q++) {
        double re = 0, im = 0;
        for (int n = 1; n <= N; n++) {
            const int angle = 2 * q * n % 16;
            re += s[n] * cosine[angle];
            im += s[n] * cosine[(angle + 4) % 16];
        }
        sum += sqrt(re * re + im * im);
    }
    const double A_w = 16.0 / 9; // eq. 41: 8 over the window's sum, 4.5
    return A_w * (2.0 / N) * sum;
}

static void remember(crd_detector* d, double sample)
{
    if (d->count == 0) {
        for (int i = 0; i < N; i++) {
            d->last[i] = sample;
        }
    }
    memmove(&d->last[1], &d->last[0], (N - 1) * sizeof d->last[0]);
    d->last[0] = sample;
    d->count++;
}

// The slope before the jump is taken to go on after it.
static double bend(const double* y)
{
    return y[0] - 2 * y[1] + y[2];
}

static crd_detected push_spectrum(crd_detector* d, double sample, double threshold)
{
    const double before = d->spectrum;
    remember(d, sample);
    d->spectrum = crd_spectrum_above(d->last);
    // both segments have to be of samples only: the first samples of a signal are no jump
    const bool jump = d->count > N && d->spectrum > threshold * before;
    return (crd_detected){.jump = jump, .rebase = jump, .height = jump ? bend(d->last) : 0};
}

// Replace the oldest of the differences by x; `place` is the oldest one's in the ring.
static void median_push(double* ring, double* sorted, int filled, int place, double x)
{
    int n = filled;
    if (filled == MEDIAN) {
        int i = 0;
        while (sorted[i] < ring[place]) {
            i++;
        }
        memmove(&sorted[i], &sorted[i + 1], (size_t)(MEDIAN - 1 - i) * sizeof *sorted);
        n--;
    }
    int i = n;
    while (i > 0 && sorted[i - 1] > x) {
        sorted[i] = sorted[i - 1];
        i--;
    }
    sorted[i] = x;
    ring[place] = x;
}

// Differences of a smooth signal fall with their order until noise takes over; the order with the
// smallest median sees a jump best. A jump is a difference far above its usual size. The median
// keeps the outliers, too: without them a signal that became rougher would be a jump for ever.
static crd_detected push_guarded(crd_detector* d, double sample, double threshold, bool certain)
{
    crd_detected found = {0};
    remember(d, sample);
    const double* y = d->last;
    const double difference[ORDERS] = {y[0] - y[1], bend(y), y[0] - 3 * y[1] + 3 * y[2] - y[3]};
    const int filled = d->kept < MEDIAN ? (int)d->kept : MEDIAN;
    int best = 0;
    double median = 0;
    for (int o = 0; o < ORDERS && filled > 0; o++) {
        const double* s = d->sorted[o];
        const double m = 0.5 * (s[(filled - 1) / 2] + s[filled / 2]);
        if (o == 0 || m < median) {
            median = m;
            best = o;
        }
    }
    d->scale = fmax(d->scale, fabs(sample));
    d->since_hit = d->since_hit < (1 << 20) ? d->since_hit + 1 : d->since_hit;
    const double floor_ = fmax(1e-9 * d->scale, d->resolution);
    const double height = difference[best];
    const bool again = d->since_hit <= 4;
    const bool large = fabs(height) > threshold * fmax(median, floor_) &&
                       (!again || fabs(height) > 0.25 * fabs(d->hit));
    if (d->skip > 0) {
        d->skip--;
    } else if (large && filled >= MEDIAN / 4) {
        found = (crd_detected){.jump = true, .rebase = !again, .height = height};
        d->since_hit = 0;
        d->hit = height;
        if (again) { d->skip = 3; }
    }
    if (certain && d->count > ORDERS) {
        for (int o = 0; o < ORDERS; o++) {
            median_push(d->ring[o], d->sorted[o], filled, (int)(d->kept % MEDIAN),
                        fabs(difference[o]));
        }
        d->kept++;
    }
    if (found.rebase) {
        for (int i = 1; i < N; i++) {
            d->last[i] += height;
        }
    }
    return found;
}

// Differences over interpolated samples are of another size: they do not enter the median, and it
// takes more for a jump, as what a smooth signal does over a gap grows with the square of its
// length.
crd_detected crdi_detector_push(crd_detector* d, double sample, int filled)
{
    const double threshold = d->threshold * (1 + filled) * (1 + filled);
    switch (d->kind) {
    case CRD_DETECT_SPECTRUM:
        return push_spectrum(d, sample, threshold);
    case CRD_DETECT_GUARDED:
        return push_guarded(d, sample, threshold, filled == 0);
    case CRD_DETECT_NONE:
        break;
    }
    return (crd_detected){0};
}

crd_detected crd_detector_push(crd_detector* d, double sample)
{
    return crdi_detector_push(d, sample, 0);
}
