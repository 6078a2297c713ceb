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

typedef struct crdi_fmi_look {
    bool brings_malloc;
    bool plain; // see crdi_fmi_library_open
} crdi_fmi_look;

// `count` things of `size` bytes at `at`, all inside the file? `at` and `count` are the file's.
static bool inside(size_t file, uint64_t at, uint64_t count, uint64_t size)
{
    return at <= file && count <= (file - at) / size;
}

typedef struct elf_file {
    const unsigned char* bytes;
    size_t size;
    ElfW(Ehdr) head;
} elf_file;

// `count` things in the file, and the texts that they point into.
typedef struct elf_table {
    const unsigned char *rows, *texts;
    uint64_t count, text_bytes;
} elf_table;

static void section_at(const elf_file* e, uint64_t k, ElfW(Shdr) * out)
{
    memcpy(out, e->bytes + e->head.e_shoff + k * sizeof *out, sizeof *out);
}

static bool table_of(const elf_file* e, const ElfW(Shdr) * s, size_t size, elf_table* t)
{
    ElfW(Shdr) texts;
    if (s->sh_link >= e->head.e_shnum) { return false; }
    section_at(e, s->sh_link, &texts);
    *t = (elf_table){e->bytes + s->sh_offset, e->bytes + texts.sh_offset, s->sh_size / size,
                     texts.sh_size};
    return inside(e->size, s->sh_offset, t->count, size) &&
           inside(e->size, texts.sh_offset, texts.sh_size, 1);
}

// Whether the text at `at` begins with `name`, which may have its end among its `length` bytes.
static bool text_begins(const elf_table* t, uint64_t at, const char* name, size_t length)
{
    return inside(t->text_bytes, at, length, 1) && memcmp(t->texts + at, name, length) == 0;
}

static bool look_at_symbols(const elf_file* e, const ElfW(Shdr) * s, crdi_fmi_look* look)
{
    static const char own_heap[] = "malloc", at_exit[] = "__cxa_atexit", loads[] = "dlopen";
    elf_table t;
    bool plain = true;
    if (!table_of(e, s, sizeof(ElfW(Sym)), &t)) { return false; }
    for (uint64_t k = 0; k < t.count; k++) {
        ElfW(Sym) y;
        memcpy(&y, t.rows + k * sizeof y, sizeof y);
        if (y.st_shndx != SHN_UNDEF && text_begins(&t, y.st_name, own_heap, sizeof own_heap)) {
            look->brings_malloc = true;
        }
        if (ELF64_ST_BIND(y.st_info) == STB_GNU_UNIQUE || // 32 bits: the same
            text_begins(&t, y.st_name, at_exit, sizeof at_exit) ||
            text_begins(&t, y.st_name, loads, sizeof loads)) {
            plain = false;
        }
    }
    return plain && !look->brings_malloc;
}

// What the start files of the compiler have there, and nothing more: it begins a section of few
// bytes.
static bool is_of_start_files(const elf_file* e, uint64_t address)
{
    enum { START_BYTES = 64 };
    for (uint64_t k = 0; k < e->head.e_shnum; k++) {
        ElfW(Shdr) s;
        section_at(e, k, &s);
        if (s.sh_addr == address && (s.sh_flags & SHF_EXECINSTR)) {
            return s.sh_size <= START_BYTES;
        }
    }
    return false;
}

static bool look_at_dynamic(const elf_file* e, const ElfW(Shdr) * s)
{
    static const char* const c_library[] = {"libc.so.",  "libm.so.",  "libpthread.so.",
                                            "libdl.so.", "librt.so.", "ld-linux"};
    elf_table t;
    bool plain = true, starts = false;
    if (!table_of(e, s, sizeof(ElfW(Dyn)), &t)) { return false; }
    for (uint64_t k = 0; k < t.count; k++) {
        ElfW(Dyn) d;
        bool known = false;
        memcpy(&d, t.rows + k * sizeof d, sizeof d);
        for (size_t i = 0; d.d_tag == DT_NEEDED && i < sizeof c_library / sizeof *c_library; i++) {
            known = known || text_begins(&t, d.d_un.d_val, c_library[i], strlen(c_library[i]));
        }
        plain = plain && (known || d.d_tag != DT_NEEDED);
        if (d.d_tag == DT_INIT || d.d_tag == DT_FINI) {
            starts = starts || d.d_tag == DT_INIT;
            plain = plain && is_of_start_files(e, d.d_un.d_ptr);
        }
    }
    return plain && starts;
}

// All that it remembers is its own memory: nothing of its own runs when it is loaded or unloaded,
// it has no variables of threads, and it brings or loads nothing but the C library.
static bool look_at_sections(const elf_file* e, crdi_fmi_look* look)
{
    bool plain = true, dynamic = false;
    for (uint64_t k = 0; k < e->head.e_shnum; k++) {
        ElfW(Shdr) s;
        section_at(e, k, &s);
        const bool starts = s.sh_type == SHT_INIT_ARRAY || s.sh_type == SHT_FINI_ARRAY;
        // One is that of the start files.
        plain = plain && !(s.sh_flags & SHF_TLS) && !(starts && s.sh_size > sizeof(void*)) &&
                s.sh_type != SHT_PREINIT_ARRAY;
        if (s.sh_type == SHT_DYNSYM) { plain = look_at_symbols(e, &s, look) && plain; }
        if (s.sh_type == SHT_DYNAMIC) { dynamic = look_at_dynamic(e, &s); }
    }
    return plain && dynamic;
}

static void look_at_file(const char* path, crdi_fmi_look* look)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) { return; }
    elf_file e = {.size = fstat(fd, &info) == 0 && info.st_size > 0 ? (size_t)info.st_size : 0};
    void* file =
        e.size >= sizeof e.head ? mmap(NULL, e.size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (file == MAP_FAILED) { return; }
    e.bytes = file;
    memcpy(&e.head, file, sizeof e.head);
    if (memcmp(e.head.e_ident, ELFMAG, SELFMAG) == 0 && e.head.e_shentsize == sizeof(ElfW(Shdr)) &&
        inside(e.size, e.head.e_shoff, e.head.e_shnum, sizeof(ElfW(Shdr)))) {
        look->plain = look_at_sections(&e, look);
    }
    munmap(file, e.size);
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

void* crdi_fmi_library_open(const char* path, bool* plain)
{
    int flags = RTLD_NOW | RTLD_LOCAL; // local: all FMUs export the same names
    crdi_fmi_look look = {0};
    look_at_file(path, &look);
    *plain = look.plain;
#ifdef RTLD_DEEPBIND
    if (malloc_is_of_the_c_library() && !look.brings_malloc) { flags |= RTLD_DEEPBIND; }
#endif
    return dlopen(path, flags);
}

// ---- what it remembers -------------------------------------------------------------------------

enum { MOST_REMEMBERED = 1 << 20, MOST_PARTS = 8 };

struct crdi_fmi_memory {
    struct {
        const char* at;
        size_t size;
    } parts[MOST_PARTS];
    int count;
    char* bytes; // of all parts
};

typedef struct loaded {
    const struct link_map* map;
    crdi_fmi_memory found;
    size_t size;
    bool good;
} loaded;

static int find_parts(struct dl_phdr_info* info, size_t size, void* user)
{
    loaded* l = user;
    (void)size;
    if (info->dlpi_addr != l->map->l_addr || strcmp(info->dlpi_name, l->map->l_name) != 0) {
        return 0;
    }
    l->good = true;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr)* p = &info->dlpi_phdr[k];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_W)) { continue; }
        l->good = l->good && l->found.count < MOST_PARTS && p->p_memsz <= MOST_REMEMBERED - l->size;
        if (!l->good) { break; }
        const int n = l->found.count++;
        // An address of the loader's.
        l->found.parts[n].at = (const char*)(info->dlpi_addr + p->p_vaddr); // NOLINT
        l->found.parts[n].size = p->p_memsz;
        l->size += p->p_memsz;
    }
    return 1;
}

crdi_fmi_memory* crdi_fmi_memory_copy(void* handle)
{
    loaded l = {0};
    struct link_map* map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) { return NULL; }
    l.map = map;
    dl_iterate_phdr(find_parts, &l);
    crdi_fmi_memory* m = l.good ? malloc(sizeof *m + l.size) : NULL;
    if (!m) { return NULL; }
    *m = l.found;
    char* to = m->bytes = (char*)(m + 1);
    for (int k = 0; k < m->count; k++) {
        memcpy(to, m->parts[k].at, m->parts[k].size);
        to += m->parts[k].size;
    }
    return m;
}

bool crdi_fmi_memory_is_same(const crdi_fmi_memory* m)
{
    const char* was = m->bytes;
    for (int k = 0; k < m->count; k++) {
        if (memcmp(was, m->parts[k].at, m->parts[k].size) != 0) { return false; }
        was += m->parts[k].size;
    }
    return true;
}

typedef struct lookout {
    const char* path;
    bool found;
} lookout;

static int look_below(struct dl_phdr_info* info, size_t size, void* user)
{
    lookout* l = user;
    const size_t n = strlen(l->path);
    (void)size;
    l->found = strncmp(info->dlpi_name, l->path, n) == 0 &&
               (info->dlpi_name[n] == '/' || info->dlpi_name[n] == 0);
    return l->found;
}

bool crdi_fmi_is_loaded(const char* path)
{
    lookout l = {.path = path};
    dl_iterate_phdr(look_below, &l);
    return l.found;
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
