// Values for plots: rows that were gathered between two frames, as bytes.
#include "web/web.h"

#include <math.h>
#include <string.h>

// Column c of rows [i, j): the least and the largest value in the order in which they came.
static void extremes(const double* rows, int i, int j, int width, int c, double out[2])
{
    int least = -1, largest = -1;
    for (int r = i; r < j; r++) {
        const double x = rows[(size_t)r * (size_t)width + (size_t)c];
        if (isnan(x)) { continue; }
        if (least < 0 || x < rows[(size_t)least * (size_t)width + (size_t)c]) { least = r; }
        if (largest < 0 || x > rows[(size_t)largest * (size_t)width + (size_t)c]) { largest = r; }
    }
    if (least < 0) {
        out[0] = out[1] = NAN;
        return;
    }
    const double low = rows[(size_t)least * (size_t)width + (size_t)c];
    const double high = rows[(size_t)largest * (size_t)width + (size_t)c];
    out[0] = least <= largest ? low : high;
    out[1] = least <= largest ? high : low;
}

// Rows [i, j) become at most two at row w <= i. Column by column: what is read is behind what is
// written, and its own column is read before.
static int squeeze(double* rows, int i, int j, int width, int w)
{
    const size_t n = (size_t)width;
    if (j - i <= 2) {
        memmove(rows + (size_t)w * n, rows + (size_t)i * n, (size_t)(j - i) * n * sizeof *rows);
        return w + (j - i);
    }
    const double first = rows[(size_t)i * n], last = rows[(size_t)(j - 1) * n];
    for (int c = 1; c < width; c++) {
        double pair[2];
        extremes(rows, i, j, width, c, pair);
        rows[(size_t)w * n + (size_t)c] = pair[0];
        rows[(size_t)(w + 1) * n + (size_t)c] = pair[1];
    }
    rows[(size_t)w * n] = first;
    rows[(size_t)(w + 1) * n] = last;
    return w + 2;
}

int crdi_web_thin(double* rows, int count, int width, int buckets)
{
    if (count <= 2 * buckets) { return count; }
    const double begin = rows[0];
    const double span = rows[(size_t)(count - 1) * (size_t)width] - begin;
    const double scale = span > 0 ? buckets / span : 0;
    int w = 0, start = 0, bucket = 0;
    for (int i = 1; i <= count; i++) {
        int b = buckets; // the end closes the last one
        if (i < count) {
            const double x = (rows[(size_t)i * (size_t)width] - begin) * scale;
            b = x < buckets - 1 ? (int)(x > 0 ? x : 0) : buckets - 1; // NaN: into the last one
            if (b <= bucket) { continue; } // time that does not grow stays where it is
        }
        w = squeeze(rows, start, i, width, w);
        start = i;
        bucket = b;
    }
    return w;
}

// A frame, little endian:
//    0  u32  type = 1        16          f64  time (rows)
//    4  u32  rows            16 + 8 rows f64  values of signal 0 (rows), of signal 1, ...
//    8  u32  signals
//   12  u32  rows that were lost so far, modulo 2^32
size_t crdi_web_frame_bytes(int rows, int width)
{
    return CRDI_WEB_FRAME_HEAD + sizeof(double) * (size_t)rows * (size_t)width;
}

static uint8_t* put_u32(uint8_t* p, uint32_t x)
{
    for (int i = 0; i < 4; i++) {
        *p++ = (uint8_t)(x >> (8 * i));
    }
    return p;
}

static uint8_t* put_f64(uint8_t* p, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    p = put_u32(p, (uint32_t)bits);
    return put_u32(p, (uint32_t)(bits >> 32));
}

void crdi_web_frame(const double* rows, int count, int width, uint32_t lost, uint8_t* out)
{
    out = put_u32(out, 1);
    out = put_u32(out, (uint32_t)count);
    out = put_u32(out, (uint32_t)(width - 1));
    out = put_u32(out, lost);
    for (int c = 0; c < width; c++) {
        for (int r = 0; r < count; r++) {
            out = put_f64(out, rows[(size_t)r * (size_t)width + (size_t)c]);
        }
    }
}
