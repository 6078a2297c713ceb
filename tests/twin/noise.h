// Normal noise that other programs can reproduce: SplitMix64, pairs by Box and Muller.
#pragma once
#include <math.h>
#include <stdint.h>

typedef struct noise {
    uint64_t state;
    double spare;
    int has;
} noise;

static inline double noise_uniform(noise* n)
{
    uint64_t z = n->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) / 9007199254740992.0;
}

static inline double noise_next(noise* n) // sd 1
{
    if (n->has) {
        n->has = 0;
        return n->spare;
    }
    const double u = noise_uniform(n), v = noise_uniform(n);
    const double r = sqrt(-2 * log(u)), a = 6.283185307179586 * v;
    n->spare = r * sin(a);
    n->has = 1;
    return r * cos(a);
}
