// The sweeps of chain_kernel.h with AVX-512.
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)
#else
#pragma GCC target("avx512f")
#endif
#define KERNELS crdi_lane_kernels_avx512
#define NATIVE 8
#include "circuit/chain_kernel.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int chain_has_no_avx512; // a file must not be empty
#endif
