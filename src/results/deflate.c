#include "results/deflate.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    SYMBOLS = 286,
    END = 256,
    LONGEST = 15,  // bits of a code
    RUN_LEAST = 3, // RFC 1951
    RUN_MOST = 258,
    STORED_MOST = 65535,
    ADLER_PRIME = 65521,
    SAMPLES = 8,
    SAMPLE_BYTES = 64,
    // Of 512 equally likely bytes about 511 pairs agree, give or take 23.
    NOISE_PAIRS = 640,
};

// ---- bits --------------------------------------------------------------------------------------

static inline void put_bits(crdi_deflate* d, uint64_t bits, int count)
{
    d->bits |= bits << d->bit_count;
    d->bit_count += count;
}

// Afterwards fewer than 8 bits wait, so that 56 may follow.
static inline void drain(crdi_deflate* d)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(d->at, &d->bits, 8);
#else
    for (int i = 0; i < 8; i++) {
        d->at[i] = (uint8_t)(d->bits >> 8 * i);
    }
#endif
    d->at += d->bit_count >> 3;
    d->bits >>= d->bit_count & ~7;
    d->bit_count &= 7;
}

static void align(crdi_deflate* d)
{
    put_bits(d, 0, -d->bit_count & 7);
    drain(d);
}

// ---- checksum ----------------------------------------------------------------------------------

// Adler-32 over the next bytes (RFC 1950).
static void deflate_sum_up(crdi_deflate* d, const uint8_t* p, size_t length)
{
    uint32_t a = d->adler_a, b = d->adler_b;
    while (length > 0) {
        size_t n = length < 5536 ? length : 5536; // sums stay below 2^32
        length -= n;
#ifdef __SSE2__
        if (n >= 16) {
            const __m128i zero = _mm_setzero_si128();
            const __m128i high = _mm_set_epi16(9, 10, 11, 12, 13, 14, 15, 16);
            const __m128i low = _mm_set_epi16(1, 2, 3, 4, 5, 6, 7, 8);
            __m128i sum = _mm_cvtsi32_si128((int)a), before = zero, weighted = zero;
            size_t blocks = n / 16;
            for (size_t i = 0; i < blocks; i++, p += 16) {
                const __m128i v = _mm_loadu_si128((const __m128i*)(const void*)p);
                before = _mm_add_epi32(before, sum);
                sum = _mm_add_epi32(sum, _mm_sad_epu8(v, zero));
                weighted =
                    _mm_add_epi32(weighted, _mm_madd_epi16(_mm_unpacklo_epi8(v, zero), high));
                weighted = _mm_add_epi32(weighted, _mm_madd_epi16(_mm_unpackhi_epi8(v, zero), low));
            }
            weighted = _mm_add_epi32(weighted, _mm_slli_epi32(before, 4));
            uint32_t s[4], w[4];
            _mm_storeu_si128((__m128i*)(void*)s, sum);
            _mm_storeu_si128((__m128i*)(void*)w, weighted);
            a = s[0] + s[1] + s[2] + s[3];
            b += w[0] + w[1] + w[2] + w[3];
            n -= 16 * blocks;
        }
#endif
        while (n-- > 0) {
            a += *p++;
            b += a;
        }
        a %= ADLER_PRIME;
        b %= ADLER_PRIME;
    }
    d->adler_a = a;
    d->adler_b = b;
}

// ---- Huffman codes -----------------------------------------------------------------------------

typedef struct code {
    uint16_t bits[SYMBOLS]; // first bit lowest
    uint8_t length[SYMBOLS];
} code;

// Symbols that occur, rarest first. Counts are below 2^16.
static int sort_symbols(const uint32_t* counts, int n, uint16_t* symbols)
{
    uint16_t other[SYMBOLS];
    uint16_t starts[2][256] = {{0}};
    int used = 0;
    for (int i = 0; i < n; i++) {
        if (counts[i]) {
            other[used++] = (uint16_t)i;
            starts[0][counts[i] & 255]++;
            starts[1][counts[i] >> 8 & 255]++;
        }
    }
    for (int pass = 0; pass < 2; pass++) {
        uint16_t sum = 0;
        for (int i = 0; i < 256; i++) {
            const uint16_t here = starts[pass][i];
            starts[pass][i] = sum;
            sum = (uint16_t)(sum + here);
        }
    }
    uint16_t half[SYMBOLS];
    for (int i = 0; i < used; i++) {
        half[starts[0][counts[other[i]] & 255]++] = other[i];
    }
    for (int i = 0; i < used; i++) {
        symbols[starts[1][counts[half[i]] >> 8 & 255]++] = half[i];
    }
    return used;
}

// Number of codes of each length for weights in ascending order; A. Moffat, J. Katajainen 1995, in
// place. `w` is overwritten.
static void code_lengths(uint32_t* w, int n, int* of_length)
{
    int leaf = 0, root = 0;
    for (int next = 0; next < n - 1; next++) {
        uint32_t sum = 0;
        for (int k = 0; k < 2; k++) {
            if (leaf >= n || (root < next && w[root] < w[leaf])) {
                sum += w[root];
                w[root++] = (uint32_t)next; // its parent
            } else {
                sum += w[leaf++];
            }
        }
        w[next] = sum;
    }
    w[n - 2] = 0; // depths of the inner nodes, from the root down
    for (int i = n - 3; i >= 0; i--) {
        w[i] = w[w[i]] + 1;
    }
    int open = 1, depth = 0, inner = n - 2;
    while (open > 0) {
        int used = 0;
        while (inner >= 0 && w[inner] == (uint32_t)depth) {
            used++;
            inner--;
        }
        of_length[depth < 31 ? depth : 31] += open - used;
        open = 2 * used;
        depth++;
    }
}

// No code longer than `most`: those that are move up, and shorter ones move down until all fit.
static void limit_lengths(int* of_length, int most)
{
    for (int i = 31; i > most; i--) {
        of_length[most] += of_length[i];
        of_length[i] = 0;
    }
    int64_t room = (int64_t)1 << most;
    for (int i = most; i > 0; i--) {
        room -= (int64_t)of_length[i] << (most - i);
    }
    while (room < 0) {
        of_length[most]--;
        for (int i = most - 1; i > 0; i--) {
            if (of_length[i]) {
                of_length[i]--;
                of_length[i + 1] += 2;
                break;
            }
        }
        room++;
    }
}

static uint16_t reversed(uint32_t x, int bits)
{
    x = (x & 0x5555) << 1 | (x >> 1 & 0x5555);
    x = (x & 0x3333) << 2 | (x >> 2 & 0x3333);
    x = (x & 0x0F0F) << 4 | (x >> 4 & 0x0F0F);
    x = (x & 0x00FF) << 8 | (x >> 8 & 0x00FF);
    return (uint16_t)(x >> (16 - bits));
}

// Canonical, RFC 1951 3.2.2. A code of one symbol would be incomplete; but there is always a
// literal beside the end of the block, and a zero beside the length of the only distance.
static void make_code(const uint32_t* counts, int n, int most, code* c)
{
    uint16_t symbols[SYMBOLS];
    uint32_t weights[SYMBOLS];
    const int used = sort_symbols(counts, n, symbols);
    assert(used >= 2);
    for (int i = 0; i < used; i++) {
        weights[i] = counts[symbols[i]];
    }
    int of_length[32] = {0};
    code_lengths(weights, used, of_length);
    limit_lengths(of_length, most);
    memset(c->length, 0, (size_t)n);
    for (int length = most, i = 0; length > 0; length--) {
        for (int k = 0; k < of_length[length]; k++) {
            c->length[symbols[i++]] = (uint8_t)length;
        }
    }
    uint32_t next[LONGEST + 2] = {0};
    for (int i = 1; i <= most; i++) {
        next[i + 1] = (next[i] + (uint32_t)of_length[i]) << 1;
    }
    for (int i = 0; i < n; i++) {
        if (c->length[i]) { c->bits[i] = reversed(next[c->length[i]]++, c->length[i]); }
    }
}

// ---- a coded block -----------------------------------------------------------------------------

// Symbol, extra bits and their number for a run of 3 to 258.
static void run_symbol(int length, int* symbol, int* extra, int* extra_bits)
{
    const int n = length - 3;
    if (length == RUN_MOST) {
        *symbol = 285;
        *extra_bits = 0;
    } else if (n < 8) {
        *symbol = 257 + n;
        *extra_bits = 0;
    } else {
        const int e = 29 - __builtin_clz((unsigned)n); // two bits below the leading one choose
        *symbol = 257 + 4 * e + (n >> e);
        *extra_bits = e;
    }
    *extra = n & ((1 << *extra_bits) - 1);
}

// Lengths of the codes themselves, with runs of zeros and of repetitions: 0..15, 16 repeat 3..6,
// 17 zeros 3..10, 18 zeros 11..138; the extra bits in the upper byte.
static int squeeze_lengths(const uint8_t* lengths, int n, uint16_t* out)
{
    int count = 0;
    for (int i = 0; i < n;) {
        int same = 1;
        while (i + same < n && lengths[i + same] == lengths[i]) {
            same++;
        }
        i += same;
        const int value = lengths[i - 1];
        if (value == 0) {
            while (same >= 3) {
                const int k = same < 138 ? same : 138;
                out[count++] = (uint16_t)(k < 11 ? 17 | (k - 3) << 8 : 18 | (k - 11) << 8);
                same -= k;
            }
        } else {
            out[count++] = (uint16_t)value;
            same--;
            while (same >= 3) {
                const int k = same < 6 ? same : 6;
                out[count++] = (uint16_t)(16 | (k - 3) << 8);
                same -= k;
            }
        }
        while (same-- > 0) {
            out[count++] = (uint16_t)value;
        }
    }
    return count;
}

static void put_code(crdi_deflate* d, const code* c)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    int literals = SYMBOLS;
    while (c->length[literals - 1] == 0) {
        literals--;
    }
    uint8_t lengths[SYMBOLS + 1];
    memcpy(lengths, c->length, (size_t)literals);
    lengths[literals] = 1; // the one distance, 1
    uint16_t squeezed[SYMBOLS + 1];
    const int count = squeeze_lengths(lengths, literals + 1, squeezed);
    uint32_t counts[19] = {0};
    for (int i = 0; i < count; i++) {
        counts[squeezed[i] & 255]++;
    }
    code inner;
    make_code(counts, 19, 7, &inner);
    int shown = 19;
    while (inner.length[order[shown - 1]] == 0) {
        shown--;
    }
    put_bits(d, (uint64_t)(literals - 257), 5);
    put_bits(d, 0, 5);
    put_bits(d, (uint64_t)(shown - 4), 4);
    for (int i = 0; i < shown; i++) {
        put_bits(d, inner.length[order[i]], 3);
        drain(d);
    }
    for (int i = 0; i < count; i++) {
        static const uint8_t extra[19] = {[16] = 2, [17] = 3, [18] = 7};
        const int s = squeezed[i] & 255;
        put_bits(d, inner.bits[s], inner.length[s]);
        put_bits(d, squeezed[i] >> 8, extra[s]);
        drain(d);
    }
}

// The tokens so far as one block.
static void put_coded(crdi_deflate* d)
{
    if (d->token_count == 0) { return; }
    code c;
    d->counts[END] = 1;
    make_code(d->counts, SYMBOLS, LONGEST, &c);
    put_bits(d, 2 << 1, 3); // not the last, dynamic code
    put_code(d, &c);
    const uint16_t *t = d->tokens, *end = t + d->token_count;
    while (t < end) {
        if (end - t >= 3 && t[0] < 256 && t[1] < 256 && t[2] < 256) { // at most 45 bits
            put_bits(d, c.bits[t[0]], c.length[t[0]]);
            put_bits(d, c.bits[t[1]], c.length[t[1]]);
            put_bits(d, c.bits[t[2]], c.length[t[2]]);
            t += 3;
        } else if (*t < 256) {
            put_bits(d, c.bits[*t], c.length[*t]);
            t++;
        } else {
            int symbol, extra, extra_bits;
            run_symbol(*t++ - 253, &symbol, &extra, &extra_bits);
            put_bits(d, c.bits[symbol], c.length[symbol]);
            put_bits(d, (uint64_t)extra, extra_bits + 1); // and the distance, a zero bit
        }
        drain(d);
    }
    put_bits(d, c.bits[END], c.length[END]);
    drain(d);
    d->token_count = 0;
    memset(d->counts, 0, sizeof d->counts);
}

// ---- pieces ------------------------------------------------------------------------------------

static void put_stored_head(crdi_deflate* d, size_t length, bool last)
{
    put_bits(d, last, 3);
    align(d);
    put_bits(d, (uint64_t)length, 16);
    put_bits(d, (uint64_t)(length ^ 0xFFFF), 16);
    drain(d);
}

// How many bytes equal the three before them: that is where runs pay.
static size_t count_repeats(const uint8_t* p, size_t length)
{
    size_t n = 0, i = 3;
#ifdef __SSE2__
    const __m128i zero = _mm_setzero_si128();
    while (i + 16 <= length) { // where all agree there is -1; 255 of them fit
        __m128i equal = zero;
        for (int k = 0; k < 255 && i + 16 <= length; k++, i += 16) {
            const __m128i a = _mm_loadu_si128((const __m128i*)(const void*)(p + i));
            const __m128i b = _mm_loadu_si128((const __m128i*)(const void*)(p + i - 1));
            const __m128i c = _mm_loadu_si128((const __m128i*)(const void*)(p + i - 2));
            const __m128i e = _mm_loadu_si128((const __m128i*)(const void*)(p + i - 3));
            const __m128i ab = _mm_cmpeq_epi8(a, b), ce = _mm_cmpeq_epi8(c, e);
            equal = _mm_sub_epi8(equal, _mm_and_si128(_mm_and_si128(ab, ce), _mm_cmpeq_epi8(b, c)));
        }
        uint64_t halves[2];
        _mm_storeu_si128((__m128i*)(void*)halves, _mm_sad_epu8(equal, zero));
        n += (size_t)(halves[0] + halves[1]);
    }
#endif
    for (; i < length; i++) {
        n += p[i] == p[i - 1] && p[i] == p[i - 2] && p[i] == p[i - 3];
    }
    return n;
}

// From a sample: could a code save anything?
static bool looks_like_noise(const uint8_t* p, size_t length)
{
    if (length < SAMPLES * SAMPLE_BYTES) { return false; }
    uint16_t seen[256] = {0};
    uint32_t pairs = 0;
    const size_t step = (length - SAMPLE_BYTES) / (SAMPLES - 1);
    for (size_t s = 0; s < SAMPLES; s++) {
        for (size_t i = 0; i < SAMPLE_BYTES; i++) {
            pairs += seen[p[s * step + i]]++;
        }
    }
    return pairs < NOISE_PAIRS;
}

static size_t run_length(const uint8_t* p, size_t most, uint8_t value)
{
    size_t n = 0;
    uint64_t pattern = value * UINT64_C(0x0101010101010101), word;
    while (n + 8 <= most) {
        memcpy(&word, p + n, 8);
        if (word != pattern) { break; }
        n += 8;
    }
    while (n < most && p[n] == value) {
        n++;
    }
    return n;
}

// Literals only, where there are hardly any runs: much faster.
static void take_literals(crdi_deflate* d, const uint8_t* p, size_t length, uint32_t* counts)
{
    uint16_t* t = d->tokens + d->token_count;
    uint32_t others[256] = {0}; // equal neighbours do not wait for each other
    size_t i = 0;
    for (; i + 2 <= length; i += 2) {
        t[i] = p[i];
        t[i + 1] = p[i + 1];
        counts[p[i]]++;
        others[p[i + 1]]++;
    }
    for (; i < length; i++) {
        t[i] = p[i];
        counts[p[i]]++;
    }
    for (int k = 0; k < 256; k++) {
        counts[k] += others[k];
    }
    d->token_count += length;
}

// Literals and runs, behind the tokens that are there.
static void tokenize(crdi_deflate* d, const uint8_t* p, size_t length, uint32_t* counts)
{
    uint16_t* t = d->tokens + d->token_count;
    size_t i = 0;
    while (i < length) {
        const uint8_t value = p[i++];
        *t++ = value;
        counts[value]++;
        if (i >= length || p[i] != value) { continue; }
        size_t run = run_length(p + i, length - i, value);
        i += run;
        while (run >= RUN_LEAST) {
            const size_t n = run < RUN_MOST ? run : RUN_MOST;
            int symbol, extra, extra_bits;
            run_symbol((int)n, &symbol, &extra, &extra_bits);
            *t++ = (uint16_t)(253 + n);
            counts[symbol]++;
            run -= n;
        }
        counts[value] += (uint32_t)run;
        while (run-- > 0) {
            *t++ = value;
        }
    }
    d->token_count = (size_t)(t - d->tokens);
}

// Bits that these tokens take with a code of their own, about.
static double coded_bits(const uint32_t* counts, size_t tokens)
{
    float sum = 0;
    int used = 0;
    for (int i = 0; i < SYMBOLS; i++) {
        if (counts[i]) {
            const float n = (float)counts[i];
            sum -= n * log2f(n);
            used++;
            if (i > 256) { sum += n * (float)(1 + (i >= 265 && i < 285 ? (i - 261) / 4 : 0)); }
        }
    }
    const float n = (float)tokens;
    return (double)(sum + n * log2f(n)) + 100 + 3.5 * used; // with the code itself
}

// Into the tokens if that is smaller, else false.
static bool take_coded(crdi_deflate* d, const uint8_t* p, size_t length)
{
    const size_t repeats = count_repeats(p, length);
    if (repeats < length / 32 && looks_like_noise(p, length)) { return false; }
    uint32_t counts[SYMBOLS] = {0};
    const size_t before = d->token_count;
    (repeats < length / 6 ? take_literals : tokenize)(d, p, length, counts);
    if (coded_bits(counts, d->token_count - before) > 7.8 * (double)length) {
        d->token_count = before;
        return false;
    }
    for (int i = 0; i < SYMBOLS; i++) {
        d->counts[i] += counts[i];
    }
    return true;
}

// A stored block that grows; its length is known when something else follows.
typedef struct stored {
    uint8_t* head; // where the length belongs, NULL: there is none
    size_t length;
} stored;

static void close_stored(stored* s)
{
    if (!s->head) { return; }
    const size_t n = s->length, inverse = n ^ 0xFFFF;
    s->head[0] = (uint8_t)n;
    s->head[1] = (uint8_t)(n >> 8);
    s->head[2] = (uint8_t)inverse;
    s->head[3] = (uint8_t)(inverse >> 8);
    s->head = NULL;
}

static void put_stored(crdi_deflate* d, stored* s, const uint8_t* p, size_t length)
{
    if (s->head && s->length + length > STORED_MOST) { close_stored(s); }
    if (!s->head) {
        put_coded(d);
        put_stored_head(d, 0, false);
        *s = (stored){.head = d->at - 4};
    }
    memcpy(d->at, p, length);
    d->at += length;
    s->length += length;
}

static void put_piece(crdi_deflate* d, stored* s, const uint8_t* p, size_t length)
{
    deflate_sum_up(d, p, length);
    if (take_coded(d, p, length)) {
        close_stored(s);
        if (d->token_count >= CRDI_DEFLATE_LEAST) { put_coded(d); }
    } else {
        put_stored(d, s, p, length);
    }
}

size_t crdi_deflate_bound(size_t planes, size_t length)
{
    // A piece is coded only where that looks smaller than storing it, but shares its code with
    // others: at most 15 bits a byte. A stored block has a head of 5 bytes.
    return 2 * planes * length + 16 * planes * (1 + length / CRDI_DEFLATE_PIECE) + 64;
}

size_t crdi_deflate_planes(crdi_deflate* d, crdi_planes p, uint8_t* out)
{
    memset(d->counts, 0, sizeof d->counts);
    d->at = out;
    d->bits = 0;
    d->bit_count = 0;
    d->token_count = 0;
    d->adler_a = 1;
    d->adler_b = 0;
    put_bits(d, 0x0178, 16); // zlib: 32 kB window, fastest
    drain(d);
    stored s = {.head = NULL};
    // Short planes are looked at several at a time.
    const size_t together = p.length < CRDI_DEFLATE_LEAST ? CRDI_DEFLATE_LEAST / p.length + 1 : 1;
    for (size_t i = 0; i < p.planes; i += together) {
        const uint8_t* plane = p.base + i * p.stride;
        if (together > 1) {
            size_t n = 0;
            for (size_t k = i; k < p.planes && k < i + together; k++, n += p.length) {
                memcpy(d->gathered + n, p.base + k * p.stride, p.length);
            }
            put_piece(d, &s, d->gathered, n);
            continue;
        }
        for (size_t at = 0; at < p.length; at += CRDI_DEFLATE_PIECE) {
            const size_t left = p.length - at;
            put_piece(d, &s, plane + at, left < CRDI_DEFLATE_PIECE ? left : CRDI_DEFLATE_PIECE);
        }
    }
    put_coded(d);
    close_stored(&s);
    put_stored_head(d, 0, true); // an empty last block
    const uint32_t adler = d->adler_b << 16 | d->adler_a;
    for (int i = 0; i < 4; i++) {
        *d->at++ = (uint8_t)(adler >> (24 - 8 * i));
    }
    return (size_t)(d->at - out);
}
