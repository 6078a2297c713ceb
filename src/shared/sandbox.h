/// A process shuts itself in before it runs foreign code: what the kernel offers an ordinary user
/// for that, which is no new privileges, limits, Landlock (files, TCP, signals) and a seccomp
/// filter (system calls).
///
/// Inside, files of the system, those named here, in $LD_LIBRARY_PATH and in $CARDAN_READABLE, and
/// /proc/self can be read, and the scratch folder can be written. Other processes can neither be
/// seen into nor signalled, there is no network and no other program, unless it is asked for. A
/// call that is not allowed fails with EPERM or EACCES, so that whoever made it gets an error and
/// can go on. Threads work; there is no way out again.
///
/// What stays possible: descriptors that are open already stay open, the environment can be read,
/// the disk below the scratch folder can be filled with files of `file_size`.
#pragma once
#include "shared/base.h"

typedef struct crdi_sandbox {
    const char* const* readable; ///< files and folders besides those of the system; have to exist
    size_t readable_count;
    const char* const*
        writable;          ///< folders that can be read and written, besides the scratch folder
    size_t writable_count; ///< those that are not there are left out
    const char*
        scratch;   ///< the folder that can be written: working folder, HOME, TMPDIR; NULL: none
    bool network;  ///< TCP and UDP over IPv4 and IPv6
    bool programs; ///< may fork, and execute what it may read: a compiler
    uint64_t cpu_seconds; ///< limits; 0: as they are. Then the process is killed (SIGXCPU)
    uint64_t memory;      ///< bytes of address space: beyond, allocations fail
    uint64_t files;       ///< open at the same time
    uint64_t
        processes; ///< and threads of this user, more than the machine has now; does not bind root
    uint64_t file_size; ///< bytes: beyond, SIGXFSZ or EFBIG
} crdi_sandbox;

/// For good, and for all that this process will start. Called with one thread, CRD_E_STATE
/// otherwise. CRD_E_IO names the path or the limit that could not be had: then the process is half
/// shut in and should end. What the kernel does not have is a warning in the log of `ctx`.
crd_status crdi_sandbox_enter(crd_context* ctx, const crdi_sandbox* s);

/// The parts that this kernel has, and what it lacks, as a phrase: "Landlock 6, seccomp, limits".
void crdi_sandbox_tell(char* text, size_t room);
/// What this kernel lacks of it, as a phrase: "no Landlock (files are not restricted)"; "" nothing.
void crdi_sandbox_missing(char* text, size_t room);
