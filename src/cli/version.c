// cardan --version: what a bug report needs to say.
#include "cardan/base.h"
#include "cli/cli.h"
#include "cli/commit.h" // made by cmake/commit.cmake

#include <dlfcn.h>
#include <stdio.h>
#include <sys/utsname.h>

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BUILT ", with sanitizers"
#elif defined(NDEBUG)
#define BUILT ", optimised"
#else
#define BUILT ", with assertions"
#endif
#if defined(__x86_64__)
#define BUILT_FOR "x86_64"
#elif defined(__aarch64__)
#define BUILT_FOR "aarch64"
#elif defined(__arm__)
#define BUILT_FOR "arm"
#else
#define BUILT_FOR "another architecture"
#endif

// What chains of circuits choose their kernels by
static const char* vectors(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") ? " with AVX-512"
           : __builtin_cpu_supports("avx2")  ? " with AVX2"
                                             : "";
#else
    return "";
#endif
}

void crdi_print_version(void)
{
    struct utsname os = {0};
    (void)uname(&os); // what it does not know stays empty
    void* cairo = dlopen("libcairo.so.2", RTLD_LAZY | RTLD_LOCAL);
    printf("cardan %s\n"
           "commit    %s\n"
           "compiler  %s%s\n"
           "machine   built for %s, runs on %s %s%s\n"
           "features  FMI 1.0 2.0 3.0, SSP, DCP 1.0, CAN, CSV, MDF 4, MATLAB 5, SVG%s\n",
           crd_version(), CRDI_COMMIT, COMPILER, BUILT, BUILT_FOR, os.sysname, os.machine,
           vectors(), cairo ? ", PNG, PDF" : "; no PNG and PDF (libcairo.so.2 is not here)");
    if (cairo) { dlclose(cairo); }
}
