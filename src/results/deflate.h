// A zlib stream out of byte planes, for data where most bytes are noise or runs.
//
// Columns of doubles, stored byte plane by byte plane, are runs (sign, exponent, whatever seldom
// changes), noise (the lower bytes of the mantissa) and little in between. Noise is stored, runs
// and the rest get a Huffman code of their own; matches other than runs are not looked for. That is
// about ten times as fast as zlib's level 1 on such data, and as small.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum {
    CRDI_DEFLATE_PIECE = 16384, // most bytes that are looked at together
    CRDI_DEFLATE_LEAST = 1024,  // fewest, where there are so many
    CRDI_DEFLATE_TOKENS = CRDI_DEFLATE_LEAST + CRDI_DEFLATE_PIECE + 2 * CRDI_DEFLATE_LEAST,
};

/// `planes` planes of `length` bytes each, `stride` bytes apart.
typedef struct crdi_planes {
    const uint8_t* base;
    size_t planes, length, stride;
} crdi_planes;

/// Working memory of the encoder; nothing in it outlives a call.
typedef struct crdi_deflate {
    uint8_t* at;   // of the output
    uint64_t bits; // not yet written
    int bit_count;
    uint32_t adler_a, adler_b;
    size_t token_count;
    uint32_t counts[286];
    uint16_t tokens[CRDI_DEFLATE_TOKENS]; // literal, or 253 + length of a run
    uint8_t gathered[2 * CRDI_DEFLATE_LEAST];
} crdi_deflate;

/// Most bytes that crdi_deflate_planes writes.
size_t crdi_deflate_bound(size_t planes, size_t length);

/// Returns the number of bytes written.
size_t crdi_deflate_planes(crdi_deflate* d, crdi_planes p, uint8_t* out);
