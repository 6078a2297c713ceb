#include "check.h"
#include "results/deflate.h"

#include <stdio.h>
#include <zlib.h>

static uint64_t state;

static uint32_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

// What zlib makes of our stream; exact buffers, so that the sanitizer sees one byte too many.
static size_t round_trip(const uint8_t* base, size_t planes, size_t length, size_t stride)
{
    crdi_deflate* d = malloc(sizeof *d);
    const size_t bound = crdi_deflate_bound(planes, length);
    uint8_t* out = malloc(bound);
    const size_t n = crdi_deflate_planes(d, (crdi_planes){base, planes, length, stride}, out);
    check(n <= bound);
    uint8_t* back = malloc(planes * length);
    uLongf size = planes * length;
    const int st = uncompress(back, &size, out, n);
    if (st != Z_OK) { fail_msg("zlib says %d of %zu x %zu bytes", st, planes, length); }
    check_int(size, planes * length);
    for (size_t i = 0; i < planes; i++) {
        if (memcmp(back + i * length, base + i * stride, length) != 0) {
            fail_msg("plane %zu of %zu x %zu differs", i, planes, length);
        }
    }
    free(back);
    free(out);
    free(d);
    return n;
}

enum { NOISE, CONSTANT, RUNS, TWO, SKEWED, RAMP, ALTERNATING, KINDS };

static void fill(uint8_t* p, size_t length, int kind)
{
    uint8_t value = (uint8_t)draw();
    size_t left = 0;
    for (size_t i = 0; i < length; i++) {
        switch (kind) {
        case NOISE:
            value = (uint8_t)draw();
            break;
        case RUNS:
            if (left-- == 0) {
                left = draw() % 600;
                value = (uint8_t)draw();
            }
            break;
        case TWO:
            value = draw() % 2 ? 7 : 200;
            break;
        case SKEWED:
            value = (uint8_t)__builtin_ctz(draw() | 0x10000);
            break;
        case RAMP:
            value = (uint8_t)(i / 5);
            break;
        case ALTERNATING:
            value = (uint8_t)(value ^ 1);
            break;
        default:
            break;
        }
        p[i] = value;
    }
}

static void zlib_reads_what_was_written_whatever_it_is(void** unused)
{
    (void)unused;
    state = 1;
    static const size_t lengths[] = {1,    2,    3,    5,    16,    63,    64,    511,  512,
                                     1023, 1024, 1025, 3328, 16383, 16384, 16385, 40000};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (int round = 0; round < 8; round++) {
            const size_t planes = 1 + draw() % 20, stride = lengths[l] + draw() % 70;
            uint8_t* p = malloc(planes * stride);
            memset(p, 0xEE, planes * stride);
            for (size_t i = 0; i < planes; i++) {
                fill(p + i * stride, lengths[l], round < KINDS ? round : (int)(draw() % KINDS));
            }
            round_trip(p, planes, lengths[l], stride);
            free(p);
        }
    }
}

static void every_length_of_a_run_is_right(void** unused)
{
    (void)unused;
    for (size_t run = 1; run < 800; run++) {
        uint8_t p[2048];
        memset(p, 1, sizeof p);
        memset(p + 100, 9, run);
        round_trip(p, 1, sizeof p, sizeof p);
        round_trip(p, 1, 101 + run, sizeof p);
    }
}

static void rare_bytes_do_not_make_codes_too_long(void** unused)
{
    (void)unused;
    // Counts like Fibonacci's numbers make the longest codes: 20 bits where 15 are allowed.
    uint8_t p[16384];
    size_t n = 0, a = 1, b = 1;
    for (uint8_t symbol = 0; n < sizeof p; symbol++) {
        for (size_t k = 0; k < a && n < sizeof p; k++) {
            p[n++] = symbol;
        }
        const size_t next = a + b;
        a = b;
        b = next;
    }
    state = 5;
    for (size_t i = sizeof p - 1; i > 0; i--) { // shuffled, so that there are no runs
        const size_t k = draw() % (i + 1);
        const uint8_t t = p[i];
        p[i] = p[k];
        p[k] = t;
    }
    const size_t size = round_trip(p, 1, sizeof p, sizeof p);
    check(size < sizeof p / 2);
}

static void pieces_of_different_kinds_share_a_block(void** unused)
{
    (void)unused;
    state = 3;
    for (size_t few = 0; few < 1100; few += 13) { // a few tokens, then very many others
        uint8_t planes[2][16384];
        memset(planes, 3, sizeof planes);
        fill(planes[0], few, NOISE);
        fill(planes[1], 16384, TWO);
        round_trip(planes[0], 2, 16384, 16384);
    }
}

static void noise_grows_little_and_constants_vanish(void** unused)
{
    (void)unused;
    state = 2;
    const size_t n = 4 << 20;
    uint8_t* p = malloc(n);
    fill(p, n, NOISE);
    const size_t noise = round_trip(p, 1024, n / 1024, n / 1024);
    check(noise < n + n / 1000);
    memset(p, 0, n);
    const size_t constant = round_trip(p, 1024, n / 1024, n / 1024);
    if (constant > n / 100) { fail_msg("%zu zeros became %zu bytes", n, constant); }
    fill(p, n, TWO); // one or two bits each: the end of a block has a code, too
    const size_t bits = round_trip(p, 1024, n / 1024, n / 1024);
    if (bits > n / 5) { fail_msg("%zu bytes with two values became %zu bytes", n, bits); }
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zlib_reads_what_was_written_whatever_it_is),
        cmocka_unit_test(every_length_of_a_run_is_right),
        cmocka_unit_test(rare_bytes_do_not_make_codes_too_long),
        cmocka_unit_test(pieces_of_different_kinds_share_a_block),
        cmocka_unit_test(noise_grows_little_and_constants_vanish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
