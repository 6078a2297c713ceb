// The sweeps of chain_kernel.h with what every processor of this kind has.
#define KERNELS crdi_lane_kernels_base
#define NATIVE 2
#include "circuit/chain_kernel.h"
