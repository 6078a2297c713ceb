// Frames: what is thinned keeps its peaks, and the bytes are what the page expects.
#include "check.h"

#include "web/web.h"

enum { WIDTH = 4 };

static uint64_t seed = 12345;

static double noise(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0 - 0.5;
}

static void few_rows_stay_as_they_are(void** state)
{
    (void)state;
    double rows[400 * 2], before[400 * 2];
    for (int i = 0; i < 800; i++) {
        rows[i] = before[i] = noise();
    }
    check_int(crdi_web_thin(rows, 400, 2, 200), 400);
    check_int(memcmp(rows, before, sizeof rows), 0);
}

// The same by looking at every row for every bucket.
static int brute(const double* rows, int n, int buckets, double* out)
{
    const double t0 = rows[0], t1 = rows[(n - 1) * WIDTH];
    int made = 0;
    for (int b = 0; b < buckets; b++) {
        int members[5000], count = 0;
        for (int i = 0; i < n; i++) {
            const double scaled = (rows[i * WIDTH] - t0) * (buckets / (t1 - t0));
            const int mine = scaled >= buckets - 1 ? buckets - 1 : (int)scaled;
            if (mine == b) { members[count++] = i; }
        }
        if (count <= 2) {
            for (int k = 0; k < count; k++) {
                memcpy(out + made++ * WIDTH, rows + members[k] * WIDTH, WIDTH * sizeof *out);
            }
            continue;
        }
        double* first = out + made++ * WIDTH;
        double* second = out + made++ * WIDTH;
        first[0] = rows[members[0] * WIDTH];
        second[0] = rows[members[count - 1] * WIDTH];
        for (int c = 1; c < WIDTH; c++) {
            double low = INFINITY, high = -INFINITY;
            int low_at = -1, high_at = -1;
            for (int k = 0; k < count; k++) {
                const double x = rows[members[k] * WIDTH + c];
                if (!isnan(x) && (x < low || low_at < 0)) { low = x, low_at = k; }
                if (!isnan(x) && (x > high || high_at < 0)) { high = x, high_at = k; }
            }
            first[c] = low_at < 0 ? NAN : low_at <= high_at ? low : high;
            second[c] = low_at < 0 ? NAN : low_at <= high_at ? high : low;
        }
    }
    return made;
}

static void thinning_agrees_with_brute_force(void** state)
{
    (void)state;
    static double rows[5000 * WIDTH], want[400 * WIDTH];
    for (int round = 0; round < 40; round++) {
        const int n = 401 + (int)((noise() + 0.5) * 4000);
        double t = round % 3 ? 100 * noise() : 0;
        for (int i = 0; i < n; i++) {
            rows[i * WIDTH] = t;
            t += round % 2 ? 1e-3 : 1e-3 * (noise() + 0.5) * (noise() > 0.45 ? 100 : 1);
            for (int c = 1; c < WIDTH; c++) {
                const double x = noise();
                rows[i * WIDTH + c] = x > 0.48 ? NAN : x < -0.49 ? INFINITY : floor(x * 50);
            }
        }
        const int expected = brute(rows, n, 200, want);
        const int got = crdi_web_thin(rows, n, WIDTH, 200);
        check_int(got, expected);
        check(got <= 400);
        for (int i = 0; i < got * WIDTH; i++) {
            if (isnan(want[i]) ? !isnan(rows[i]) : rows[i] != want[i]) {
                fail_msg("round %d, row %d, column %d: %g, expected %g", round, i / WIDTH,
                         i % WIDTH, rows[i], want[i]);
            }
        }
    }
}

static void one_peak_among_a_million_rows_stays(void** state)
{
    (void)state;
    double rows[CRDI_WEB_BLOCK_ROWS * 2];
    int n = 0;
    for (int i = 0; i < 1000000; i++) {
        if (n == CRDI_WEB_BLOCK_ROWS) { n = crdi_web_thin(rows, n, 2, CRDI_WEB_FRAME_ROWS / 2); }
        rows[2 * n] = i * 1e-6;
        rows[2 * n++ + 1] = i == 123457 ? 5 : i == 700001 ? -7 : 0;
    }
    n = crdi_web_thin(rows, n, 2, CRDI_WEB_FRAME_ROWS / 2);
    check(n <= CRDI_WEB_FRAME_ROWS);
    double low = 0, high = 0, last = -1;
    for (int i = 0; i < n; i++) {
        low = fmin(low, rows[2 * i + 1]);
        high = fmax(high, rows[2 * i + 1]);
        check(rows[2 * i] > last);
        last = rows[2 * i];
    }
    check_near(low, -7, 0);
    check_near(high, 5, 0);
    check_near(last, 0.999999, 1e-12);
}

static void times_that_stand_still_or_are_no_numbers_do_no_harm(void** state)
{
    (void)state;
    double rows[1000 * 2];
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < 1000; i++) {
            const double back = -i, torn = i % 7 ? (double)INFINITY : (double)NAN;
            rows[2 * i] = kind == 0 ? 1 : kind == 1 ? (double)NAN : kind == 2 ? back : torn;
            rows[2 * i + 1] = i;
        }
        const int n = crdi_web_thin(rows, 1000, 2, 200);
        check(n >= 1 && n <= 400);
    }
}

static uint32_t u32(const uint8_t* p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static double f64(const uint8_t* p)
{
    const uint64_t bits = u32(p) | (uint64_t)u32(p + 4) << 32;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void bytes_are_times_and_then_each_signal(void** state)
{
    (void)state;
    const double rows[] = {1, 10, 100, 2, 20, 200};
    uint8_t bytes[64];
    check_int(crdi_web_frame_bytes(2, 3), 64);
    crdi_web_frame(rows, 2, 3, 0xfffffffe, bytes);
    check_int(u32(bytes), 1);
    check_int(u32(bytes + 4), 2);
    check_int(u32(bytes + 8), 2);
    check_int(u32(bytes + 12), 0xfffffffe);
    const double want[] = {1, 2, 10, 20, 100, 200};
    for (int i = 0; i < 6; i++) {
        check_near(f64(bytes + 16 + 8 * i), want[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_rows_stay_as_they_are),
        cmocka_unit_test(thinning_agrees_with_brute_force),
        cmocka_unit_test(one_peak_among_a_million_rows_stays),
        cmocka_unit_test(times_that_stand_still_or_are_no_numbers_do_no_harm),
        cmocka_unit_test(bytes_are_times_and_then_each_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
