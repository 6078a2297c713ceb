// Binaries of an FMU for several machines, for the commands that write FMUs.
#pragma once
#include "cardan/base.h"

// The FMU with binaries for `platforms` ("aarch64-linux,aarch32-linux"), compiled from its sources,
// beside those it has.
crd_status crdi_add_platforms(crd_context* ctx, const char* fmu, const char* platforms,
                              const char* output);
