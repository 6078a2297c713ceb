// Around foreign code: how its library is loaded, and its floating-point control put right.

#include "fmi/foreign.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fenv.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fmi/instance.h"
#include "shared/base.h"

// ---- loading -----------------------------------------------------------------------------------

// `count` things of `size` bytes at `at`, all inside the file? `at` and `count` are the file's.
static bool inside(size_t file, uint64_t at, uint64_t count, uint64_t size)
{
    return at <= file && count <= (file - at) / size;
}

static bool names_malloc(const unsigned char* file, size_t size, const ElfW(Shdr) * symbols,
                         const ElfW(Shdr) * texts)
{
    const uint64_t count = symbols->sh_size / sizeof(ElfW(Sym));
    if (!inside(size, symbols->sh_offset, count, sizeof(ElfW(Sym))) ||
        !inside(size, texts->sh_offset, texts->sh_size, 1)) {
        return false;
    }
    static const char name[] = "malloc";
    for (uint64_t k = 0; k < count; k++) {
        ElfW(Sym) s;
        memcpy(&s, file + symbols->sh_offset + k * sizeof s, sizeof s);
        if (s.st_shndx != SHN_UNDEF && inside(texts->sh_size, s.st_name, sizeof name, 1) &&
            memcmp(file + texts->sh_offset + s.st_name, name, sizeof name) == 0) {
            return true;
        }
    }
    return false;
}

static bool elf_brings_malloc(const unsigned char* file, size_t size)
{
    ElfW(Ehdr) h;
    if (size < sizeof h) { return false; }
    memcpy(&h, file, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_shentsize != sizeof(ElfW(Shdr)) ||
        !inside(size, h.e_shoff, h.e_shnum, sizeof(ElfW(Shdr)))) {
        return false;
    }
    for (int k = 0; k < h.e_shnum; k++) {
        ElfW(Shdr) s, texts;
        memcpy(&s, file + h.e_shoff + (size_t)k * sizeof s, sizeof s);
        if (s.sh_type != SHT_DYNSYM || s.sh_link >= h.e_shnum) { continue; }
        memcpy(&texts, file + h.e_shoff + s.sh_link * sizeof texts, sizeof texts);
        if (names_malloc(file, size, &s, &texts)) { return true; }
    }
    return false;
}

static bool brings_malloc(const char* path)
{
    struct stat info;
    bool found = false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) { return false; }
    if (fstat(fd, &info) == 0 && info.st_size > 0) {
        const size_t size = (size_t)info.st_size;
        void* file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            found = elf_brings_malloc(file, size);
            munmap(file, size);
        }
    }
    close(fd);
    return found;
}

static bool malloc_is_of_the_c_library(void)
{
    static _Atomic int known; // 0: not asked yet; what is loaded later does not come before it
    Dl_info a, b;
    if (known) { return known > 0; }
    void* allocate = dlsym(RTLD_DEFAULT, "malloc");
    void* other = dlsym(RTLD_DEFAULT, "gnu_get_libc_version"); // which nobody replaces
    known =
        allocate && other && dladdr(allocate, &a) && dladdr(other, &b) && a.dli_fbase == b.dli_fbase
            ? 1
            : -1;
    return known > 0;
}

void* crdi_fmi_library_open(const char* path)
{
    int flags = RTLD_NOW | RTLD_LOCAL; // local: all FMUs export the same names
#ifdef RTLD_DEEPBIND
    if (malloc_is_of_the_c_library() && !brings_malloc(path)) { flags |= RTLD_DEEPBIND; }
#endif
    return dlopen(path, flags);
}

// ---- floating point ----------------------------------------------------------------------------

const volatile double crdi_float_numbers[5] = {1, 0x1p-54, 0x1.8p-53, 0x1p-1022, 0x1.8p-1022};
unsigned crdi_float_control;
static fenv_t normal;
static unsigned normal_sse;

// Everything of MXCSR but the flags of what has happened.
static unsigned sse_control(void)
{
#if defined(__SSE__)
    return __builtin_ia32_stmxcsr() & 0xFFC0u;
#else
    return (unsigned)fegetround();
#endif
}

void crdi_float_learn(void)
{
    fegetenv(&normal);
    normal_sse = sse_control();
    crdi_float_control = crdi_float_read_control();
}

void crdi_float_check(crd_fmi* i)
{
    enum { ROUNDING = 0x6000, SUBNORMAL = 0x8040, X87_ROUNDING = 0xC00 };
    const unsigned sse = sse_control() ^ normal_sse;
    const unsigned control = crdi_float_read_control() ^ crdi_float_control;
    if (!(sse | control)) { return; }
    fesetenv(&normal);
    if (i->float_warned) { return; }
    i->float_warned = true;
    const char* what = (sse & ROUNDING) | (control & X87_ROUNDING) ? "rounding mode"
                       : sse & SUBNORMAL ? "treatment of subnormal numbers"
                                         : "floating-point control";
    crdi_log(i->ctx, CRD_LOG_WARNING,
             "%s: %s changed the %s of the processor, which would change the results of others; it "
             "is put back after every call",
             i->name, crd_fmi_last_call(i), what);
}
