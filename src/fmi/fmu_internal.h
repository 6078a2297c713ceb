// What an opened FMU is made of; const for everybody once crd_fmu_open() has returned.
#pragma once
#include <sys/types.h>

#include "cardan/fmi.h"
#include "shared/base.h"

struct crd_fmu {
    crd_context* ctx;
    crd_arena arena;                 // texts and tables of the description
    crd_fmu_description description; // points into the arena and at `variables`
    crd_variable* variables;         // grown while parsing, hence not in the arena
    crd_map names;                   // variable name -> index
    const char* path;                // as given
    const char* folder;              // absolute, no trailing slash; "" when nothing is unpacked
    const char* platforms;           // "linux64 win64"
    const char* library;             // below the folder, for this platform; "" if there is none
    const char* exchange_library;    // of Model Exchange, likewise
    bool private_folder;             // ours: goes away on close
    pid_t owner;                     // a forked child must not remove the folder of its parent
};
