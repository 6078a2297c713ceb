// Executables of ours beside the command or the library: the worker, the guard.
#pragma once
#include "shared/unit.h"

#include <limits.h>
#include <sys/types.h>

// An executable: in a build tree beside the library or the command, in libexec of an installed one,
// or where the variable of the environment says. `without`: what to write to go without it.
crd_status crdi_program_find(crd_context* ctx, const char* name, const char* variable,
                             const char* without, char out[PATH_MAX]);
// Memory to be shared with it, of a size that nobody can change. The same errors as spawn.
int crdi_program_memory(const char* name, size_t bytes, int* fd, void** out);
// With nothing of ours but standard output and error and two descriptors, there 3 and 4 (-1: one
// only): a session of its own, with one argument (NULL: none), no signal blocked or ignored. 0, or
// the system's number of the error.
int crdi_program_spawn(const char* program, const char* name, const char* argument, int fd3,
                       int fd4, pid_t* pid);
