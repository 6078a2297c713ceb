// The sweeps of chain_kernel.h with AVX2.
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#define KERNELS crdi_lane_kernels_avx2
#define NATIVE 4
#include "circuit/chain_kernel.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int chain_has_no_avx2; // a file must not be empty
#endif
