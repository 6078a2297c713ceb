// The two halves that the kernel offers: which files, and which system calls.
#pragma once
#include "shared/sandbox.h"

/// Version of Landlock that the kernel has, 0: none.
int crdi_landlock_version(void);
crd_status crdi_landlock_enter(crd_context* ctx, const crdi_sandbox* s, int version);

bool crdi_seccomp_there(void);
/// `landlock`: its version, as it decides about some calls better than a filter can.
crd_status crdi_seccomp_enter(crd_context* ctx, const crdi_sandbox* s, int landlock);
