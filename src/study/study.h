// What the files of the module share.
#pragma once
#include "shared/study.h"

static inline uint64_t study_mix(uint64_t z) // splitmix64
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// In (0, 1).
static inline double study_unit(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}
