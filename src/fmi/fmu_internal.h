// What an opened FMU is made of; const for everybody once crd_fmu_open() has returned, but for
// `libraries`.
#pragma once
#include <stdatomic.h>
#include <sys/types.h>

#include "cardan/fmi.h"
#include "fmi/functions.h"
#include "shared/base.h"

// The shared object of one interface, for all instances of the FMU.
typedef struct crdi_fmi_library {
    char* path;      // real path; equal for all that share memory. NULL: no instance
    char* resources; // URI (FMI 2) or path (FMI 3), NULL if there is no such folder; FMI 1: URI of
                     // the FMU's folder
    void* handle;    // NULL: not loaded
    struct crdi_fmi_memory* memory; // as it was loaded; NULL: not all that it remembers
    bool stays;                     // its destructors must not run: a fatal error, or a crash
    atomic_bool lingers;            // it was unloaded once and was still there
    crdi_fmi_functions f;
    uint64_t present[CRDI_FMI_WORDS];                   // functions that it has
    uint64_t sets[CRD_FMI_STATE_COUNT][CRDI_FMI_WORDS]; // what each state allows of them
    struct crd_fmi* first;                              // its instances
    struct crdi_fmi_library *next, *previous;           // process-wide
} crdi_fmi_library;

// FMI 2: what is to be compiled, as modelDescription.xml lists it; the last one first.
typedef struct crdi_source_name {
    const char* name; // not looked at yet
    int line;
    struct crdi_source_name* next;
} crdi_source_name;

struct crd_fmu {
    crd_context* ctx;
    crd_arena arena;                   // texts and tables of the description
    crd_fmu_description description;   // points into the arena and at `variables`
    crd_variable* variables;           // grown while parsing, hence not in the arena
    crd_map names;                     // variable name -> index
    const char* path;                  // as given
    const char* folder;                // absolute, no trailing slash; "" when nothing is unpacked
    const char* platforms;             // "linux64 win64"
    const char* library;               // below the folder, for this platform; "" if there is none
    const char* exchange_library;      // of Model Exchange, likewise
    const char* mime_type;             // FMI 1 Co-Simulation: what the slave is made of
    crdi_source_name* source_names[2]; // Co-Simulation, Model Exchange; NULL: not listed
    bool looked_for_python;            // once is enough
    bool has_sources;                  // there is something to compile
    bool private_folder;               // ours: goes away on close
    int8_t own[2];                     // crdi_fmu_is_own: 1 yes, -1 no, 0 nobody has asked
    pid_t owner;                       // a forked child must not remove the folder of its parent
    crdi_fmi_library libraries[2];     // Co-Simulation, Model Exchange; by library.c
};

// The name of this machine among binaries/: "linux64" before FMI 3, "x86_64-linux".
const char* crdi_fmu_platform(crd_fmi_version version);
struct crdi_platform;
const char* crdi_platform_folder(const struct crdi_platform* p, crd_fmi_version version);

void crdi_fmi_library_forget(crdi_fmi_library* l); // nobody has an instance of it any more
