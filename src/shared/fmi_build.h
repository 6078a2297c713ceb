/// Binaries for this machine out of the sources that an FMU brings.
///
/// What is compiled is foreign, and so is what it makes the compiler do: the compiler runs in the
/// sandbox, with limits, and writes into a folder that goes away. What it made is stored by a hash
/// of all that went into it ($XDG_CACHE_HOME/cardan/fmus, or ~/.cache), and used again.
#pragma once
#include <limits.h>

#include "cardan/fmi.h"
#include "shared/base.h"

/// Does the folder or archive have something to compile? Valid for every FMU that was opened.
bool crdi_fmu_has_sources(const crd_fmu* f);

/// What came of it.
typedef struct crdi_fmu_build {
    const char* library; ///< file of the binary, absolute, in the arena of the FMU
    const char* name;    ///< where it belongs in an FMU: "binaries/linux64/ball.so"
    bool cached;         ///< it was made by an earlier run
} crdi_fmu_build;

/// A machine that FMUs have binaries for.
typedef struct crdi_platform {
    const char *fmi2, *fmi3; ///< folders below binaries/
    const char* triplet;     ///< what Debian's compilers for it begin with
    int elf;                 ///< e_machine of its libraries
} crdi_platform;
/// By either name, `length` characters of it; NULL: unknown.
const crdi_platform* crdi_platform_find(const char* name, size_t length);
const crdi_platform* crdi_platform_at(int i); ///< NULL behind the last
const crdi_platform* crdi_platform_own(void); ///< NULL: none of them

/// Compile it, or find what an earlier run has made of the same sources. Not `description_only`.
/// `platform` NULL: for this machine; else by $CC_aarch64_linux and the like, or Debian's cross
/// compiler. CRD_E_UNSUPPORTED: no sources, no compiler, or they need what is not there.
/// CRD_E_FORMAT: the list of sources makes no sense. CRD_E_UNIT: the compiler refused them; the
/// text has its first errors. CRD_E_LIMIT: it took too long or too much memory.
crd_status crdi_fmu_build_library(crd_fmu* f, bool model_exchange, const crdi_platform* platform,
                                  crd_context* ctx, crdi_fmu_build* out);

/// Whoever wants to run an FMU calls this before its first instance. If it has no binary for this
/// machine but sources, they are compiled, which is said in the log, and its folder is a private
/// one from then on. If its code is Python, the interpreter is looked for, and environment
/// variables tell worker processes ($CARDAN_LIBPYTHON, $CARDAN_READABLE). Otherwise nothing is
/// done, and crd_fmu_check_interface tells what is missing.
crd_status crdi_fmu_provide(crd_fmu* f, bool model_exchange, crd_context* ctx);
/// Is its folder a copy that was unpacked for it, and goes away with it?
bool crdi_fmu_is_unpacked(const crd_fmu* f);
/// Once its users have gone: may a new one in this process find what they left in global variables?
/// Some of its code is still loaded, or was when it had been unloaded.
bool crdi_fmu_lingers(const crd_fmu* f);

/// Is the binary that would be loaded byte for byte one that this build of Cardan has made? `list`
/// has lines "<SHA-256> <bytes> <name>"; NULL, or one that cannot be read: there is none.
bool crdi_fmu_is_own(crd_fmu* f, bool model_exchange, const char* list);

/// The binary that would be loaded, below the folder of the FMU or absolute; "": none. A process
/// that only runs the FMU is given what another one has found or made.
const char* crdi_fmu_library(const crd_fmu* f, bool model_exchange);
crd_status crdi_fmu_set_library(crd_fmu* f, bool model_exchange, const char* path);

/// Where something is stored for later runs, $XDG_CACHE_HOME/cardan/NAME or below ~/.cache, made if
/// it shall be; there is room for 80 more bytes. false: there is no place for it.
bool crdi_cache_folder(const char* name, bool make, char path[PATH_MAX]);

/// Removes what was stored. How many files it was, and their size in bytes.
crd_status crdi_fmu_forget_builds(crd_context* ctx, int64_t* files, int64_t* bytes);
