#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fmi/description.h"
#include "fmi/fmu_internal.h"
#include "shared/archive.h"
#include "shared/base_system.h"
#include "shared/fmi_build.h"

crd_fmu_options crd_fmu_defaults(void)
{
    return (crd_fmu_options){.max_entries = 100000};
}

// ---- lists of folders --------------------------------------------------------------------------

// Names found below binaries/ or extra/, in the arena; sorted and made unique at the end.
typedef struct name_list {
    const char** names;
    size_t count, capacity;
} name_list;

static crd_status fmu_add_name(crd_fmu* f, name_list* list, const char* name, size_t length)
{
    const char** grown =
        crdi_grow(f->ctx, list->names, &list->capacity, list->count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    list->names = grown;
    list->names[list->count] = crdi_arena_text(&f->arena, name, length);
    if (!list->names[list->count]) { return CRD_E_MEMORY; }
    list->count++;
    return CRD_OK;
}

static void sort_unique(name_list* list)
{
    if (list->count == 0) { return; }
    qsort(list->names, list->count, sizeof *list->names, crdi_by_text);
    size_t kept = 1;
    for (size_t i = 1; i < list->count; i++) {
        if (strcmp(list->names[i], list->names[kept - 1]) != 0) {
            list->names[kept++] = list->names[i];
        }
    }
    list->count = kept;
}

static bool is_library(const char* file)
{
    static const char* const endings[] = {".so", ".dll", ".dylib"};
    const char* dot = strrchr(file, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++) {
        if (strcmp(dot, endings[i]) == 0) { return true; }
    }
    return false;
}

static bool is_manifest(const char* file)
{
    return strcmp(file, "fmi-ls-manifest.xml") == 0;
}

// For "<top>/<folder>/<file>" with a file that `wanted` likes: the folder's name.
static crd_status list_archive(crd_fmu* f, const crdi_archive* a, const char* top,
                               bool (*wanted)(const char*), name_list* out)
{
    const size_t top_length = strlen(top);
    for (int32_t i = 0; i < crdi_archive_count(a); i++) {
        const crdi_archive_entry* e = crdi_archive_at(a, i);
        if (e->folder || strncmp(e->name, top, top_length) != 0 || e->name[top_length] != '/') {
            continue;
        }
        const char* folder = e->name + top_length + 1;
        const char* slash = strchr(folder, '/');
        if (!slash || strchr(slash + 1, '/') || !wanted(slash + 1)) { continue; }
        const crd_status st = fmu_add_name(f, out, folder, (size_t)(slash - folder));
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static bool folder_has(const char* path, bool (*wanted)(const char*))
{
    DIR* dir = opendir(path);
    bool found = false;
    for (struct dirent* e = dir ? readdir(dir) : NULL; e && !found; e = readdir(dir)) {
        found = wanted(e->d_name);
    }
    if (dir) { closedir(dir); }
    return found;
}

static crd_status fmu_list_folder(crd_fmu* f, const char* top, bool (*wanted)(const char*),
                                  name_list* out)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", f->folder, top) >= sizeof path) {
        return CRD_OK;
    }
    DIR* dir = opendir(path);
    if (!dir) { return CRD_OK; }
    crd_status st = CRD_OK;
    for (struct dirent* e = readdir(dir); e && st == CRD_OK; e = readdir(dir)) {
        const int n = snprintf(path, sizeof path, "%s/%s/%s", f->folder, top, e->d_name);
        if (e->d_name[0] == '.' || (size_t)n >= sizeof path) { continue; }
        if (folder_has(path, wanted)) { st = fmu_add_name(f, out, e->d_name, strlen(e->d_name)); }
    }
    closedir(dir);
    return st;
}

// FMI 2.0.4 also knows the names of FMI 3.
static const crdi_platform known_platforms[] = {
    {"linux64", "x86_64-linux", "x86_64-linux-gnu", EM_X86_64},
    {"aarch64-linux", "aarch64-linux", "aarch64-linux-gnu", EM_AARCH64},
    {"aarch32-linux", "aarch32-linux", "arm-linux-gnueabihf", EM_ARM},
    {"linux32", "x86-linux", "i686-linux-gnu", EM_386},
};
#if defined(__linux__) && defined(__x86_64__)
#define OWN_PLATFORM 0
#elif defined(__linux__) && defined(__aarch64__)
#define OWN_PLATFORM 1
#elif defined(__linux__) && defined(__arm__)
#define OWN_PLATFORM 2
#elif defined(__linux__) && defined(__i386__)
#define OWN_PLATFORM 3
#else
#define OWN_PLATFORM -1
#endif

const crdi_platform* crdi_platform_at(int i)
{
    return i >= 0 && (size_t)i < sizeof known_platforms / sizeof *known_platforms
               ? &known_platforms[i]
               : NULL;
}

const crdi_platform* crdi_platform_own(void)
{
    return crdi_platform_at(OWN_PLATFORM);
}

const crdi_platform* crdi_platform_find(const char* name, size_t length)
{
    const crdi_platform* p;
    for (int i = 0; (p = crdi_platform_at(i)); i++) {
        if ((strlen(p->fmi2) == length && strncmp(p->fmi2, name, length) == 0) ||
            (strlen(p->fmi3) == length && strncmp(p->fmi3, name, length) == 0)) {
            return p;
        }
    }
    return NULL;
}

const char* crdi_platform_folder(const crdi_platform* p, crd_fmi_version version)
{
    return !p ? "" : version < CRD_FMI_3 ? p->fmi2 : p->fmi3;
}

const char* crdi_fmu_platform(crd_fmi_version version)
{
    return crdi_platform_folder(crdi_platform_own(), version);
}

static bool has_file(const crd_fmu* f, const crdi_archive* a, const char* name)
{
    if (a) {
        const int32_t i = crdi_archive_find(a, name);
        return i >= 0 && !crdi_archive_at(a, i)->folder;
    }
    char path[PATH_MAX];
    struct stat s;
    return (size_t)snprintf(path, sizeof path, "%s/%s", f->folder, name) < sizeof path &&
           stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

static bool is_shared_object(const char* name)
{
    const size_t n = strlen(name);
    return n > 3 && !strchr(name, '/') && strcmp(name + n - 3, ".so") == 0;
}

// All libraries that lie in a folder "binaries/<platform>/" themselves.
static crd_status list_shared_objects(crd_fmu* f, const crdi_archive* a, const char* folder,
                                      name_list* out)
{
    crd_status st = CRD_OK;
    const size_t n = strlen(folder);
    for (int32_t i = 0; a && i < crdi_archive_count(a) && st == CRD_OK; i++) {
        const crdi_archive_entry* e = crdi_archive_at(a, i);
        if (e->folder || strncmp(e->name, folder, n) != 0) { continue; }
        if (is_shared_object(e->name + n)) { st = fmu_add_name(f, out, e->name, strlen(e->name)); }
    }
    char path[PATH_MAX];
    const bool fits = (size_t)snprintf(path, sizeof path, "%s/%s", f->folder, folder) < sizeof path;
    DIR* dir = a || !fits ? NULL : opendir(path);
    for (struct dirent* e = dir ? readdir(dir) : NULL; e && st == CRD_OK; e = readdir(dir)) {
        if (!is_shared_object(e->d_name)) { continue; }
        const int length = snprintf(path, sizeof path, "%s%s", folder, e->d_name);
        st = fmu_add_name(f, out, path, (size_t)length);
    }
    if (dir) { closedir(dir); }
    return st;
}

// Tools and people rename files: the only library of a platform has to be the one.
static crd_status find_misnamed(crd_fmu* f, const crdi_archive* a, const char* platform,
                                const char* identifier, const char** library)
{
    name_list list = {0};
    char folder[64];
    snprintf(folder, sizeof folder, "binaries/%s/", platform);
    const crd_status st = list_shared_objects(f, a, folder, &list);
    if (st == CRD_OK && list.count == 1) {
        *library = list.names[0];
        crdi_log(f->ctx, CRD_LOG_WARNING,
                 "%s: no %s%s.so, as modelIdentifier says; the only library there is taken: %s",
                 f->path, folder, identifier, *library);
    }
    crd_free(f->ctx, list.names);
    return st;
}

// The library for this platform: under the name that the version prefers, else under the other.
static crd_status find_library(crd_fmu* f, const crdi_archive* a, const char* identifier,
                               const char** library)
{
    const crd_fmi_version version = f->description.version;
    const char* const folders[2] = {crdi_fmu_platform(version),
                                    crdi_fmu_platform(version < CRD_FMI_3 ? CRD_FMI_3 : CRD_FMI_2)};
    for (int k = 0; k < 2 && identifier[0] && !(*library)[0]; k++) {
        const char* name =
            crdi_arena_format(&f->arena, "binaries/%s/%s.so", folders[k], identifier);
        if (!name) { return CRD_E_MEMORY; }
        if (has_file(f, a, name)) { *library = name; }
    }
    for (int k = 0; k < 2 && identifier[0] && !(*library)[0]; k++) {
        const crd_status st = find_misnamed(f, a, folders[k], identifier, library);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static bool is_source(const char* file)
{
    const char* dot = strrchr(file, '.');
    return dot && (strcmp(dot, ".c") == 0 || strcmp(dot, ".cpp") == 0 || strcmp(dot, ".cc") == 0 ||
                   strcmp(file, "buildDescription.xml") == 0);
}

static bool has_sources(const crd_fmu* f, const crdi_archive* a)
{
    static const char top[] = "sources/";
    for (int32_t i = 0; a && i < crdi_archive_count(a); i++) {
        const char* name = crdi_archive_at(a, i)->name;
        if (strncmp(name, top, strlen(top)) == 0 && is_source(name + strlen(top))) { return true; }
    }
    char path[PATH_MAX];
    return !a && (size_t)snprintf(path, sizeof path, "%s/%s", f->folder, top) < sizeof path &&
           folder_has(path, is_source);
}

// What lies around the description. `a` NULL: look into the folder.
static crd_status list_contents(crd_fmu* f, const crdi_archive* a)
{
    crd_status st = CRD_OK;
    name_list platforms = {0}, standards = {0};
    CRD_TRY(a ? list_archive(f, a, "binaries", is_library, &platforms)
              : fmu_list_folder(f, "binaries", is_library, &platforms));
    CRD_TRY(a ? list_archive(f, a, "extra", is_manifest, &standards)
              : fmu_list_folder(f, "extra", is_manifest, &standards));
    CRD_TRY(find_library(f, a, f->description.model_identifier, &f->library));
    CRD_TRY(find_library(f, a, f->description.exchange.model_identifier, &f->exchange_library));
    f->has_sources = has_sources(f, a);
    sort_unique(&platforms);
    sort_unique(&standards);
    size_t length = 0;
    for (size_t i = 0; i < platforms.count; i++) {
        length += strlen(platforms.names[i]) + 1;
    }
    char* text = crdi_arena_new(&f->arena, length + 1, 1);
    const char** list = crdi_arena_new(&f->arena, standards.count, sizeof *list);
    if (!text || !list) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    f->platforms = text;
    for (size_t i = 0; i < platforms.count; i++) {
        text = stpcpy(stpcpy(text, i ? " " : ""), platforms.names[i]);
    }
    for (size_t i = 0; i < standards.count; i++) {
        list[i] = standards.names[i];
    }
    f->description.layered_standards = list;
    f->description.layered_standard_count = (int32_t)standards.count;
fail:
    crd_free(f->ctx, platforms.names);
    crd_free(f->ctx, standards.names);
    return st;
}

// ---- the private directory ---------------------------------------------------------------------

static crd_status make_private_folder(crd_fmu* f, const char* where)
{
    const crd_status st = crdi_scratch_make(&f->arena, f->ctx, where, &f->folder);
    if (st < 0) { return crdi_fail_in(f->ctx, st, "%s", f->path); }
    f->private_folder = true;
    f->owner = getpid();
    return CRD_OK;
}

static void remove_private_folder(crd_fmu* f)
{
    if (!f->private_folder || f->owner != getpid()) { return; }
    if (!crdi_scratch_remove(f->folder)) {
        crdi_log(f->ctx, CRD_LOG_WARNING, "%s: the folder %s could not be removed", f->path,
                 f->folder);
    }
}

// ---- opening -----------------------------------------------------------------------------------

static crd_status new_fmu(crd_context* ctx, const char* path, crd_fmu** out)
{
    crd_fmu* f = crdi_new(ctx, sizeof *f);
    if (!f) { return CRD_E_MEMORY; }
    f->ctx = ctx;
    f->folder = f->platforms = f->library = f->exchange_library = "";
    f->mime_type = "application/x-fmu-sharedlibrary";
    crd_arena_init(&f->arena, ctx);
    crdi_map_init(&f->names, ctx);
    f->path = crdi_arena_text(&f->arena, path, strlen(path));
    if (!f->path) {
        crd_fmu_close(f);
        return CRD_E_MEMORY;
    }
    *out = f;
    return CRD_OK;
}

typedef struct file_source {
    crd_context* ctx;
    const char* path;
    int fd;
} file_source;

static crd_status pull_file(void* user, void* buffer, size_t room, size_t* got)
{
    const file_source* s = user;
    ssize_t n = 0;
    do {
        n = read(s->fd, buffer, room);
    } while (n < 0 && errno == EINTR);
    if (n < 0) { return crdi_fail(s->ctx, CRD_E_IO, "%s: %s", s->path, strerror(errno)); }
    *got = (size_t)n;
    return CRD_OK;
}

static crd_status fmu_read_file(crd_fmu* f, const char* path)
{
    file_source s = {.ctx = f->ctx, .path = path};
    s.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a FIFO must not hold us up
    struct stat info;
    if (s.fd < 0 && errno == ENOENT) {
        return crdi_fail(f->ctx, CRD_E_FORMAT, "%s: no modelDescription.xml in this folder",
                         f->path);
    }
    if (s.fd < 0) { return crdi_fail(f->ctx, CRD_E_IO, "%s: %s", path, strerror(errno)); }
    const crd_status st = fstat(s.fd, &info) == 0 && S_ISREG(info.st_mode)
                              ? crdi_description_read(f, path, pull_file, &s)
                              : crdi_fail(f->ctx, CRD_E_FORMAT, "%s: not a regular file", path);
    close(s.fd);
    return st;
}

static crd_status open_folder(crd_fmu* f)
{
    char folder[PATH_MAX];
    if (!realpath(f->path, folder)) {
        return crdi_fail(f->ctx, CRD_E_IO, "%s: %s", f->path, strerror(errno));
    }
    f->folder = crdi_arena_text(&f->arena, folder, strlen(folder));
    const char* xml = crdi_arena_format(&f->arena, "%s/modelDescription.xml", f->path);
    if (!f->folder || !xml) { return CRD_E_MEMORY; }
    const crd_status st = fmu_read_file(f, xml);
    return st < 0 ? st : list_contents(f, NULL);
}

static crd_status fail_no_description(crd_fmu* f, const crdi_archive* a)
{
    for (int32_t i = 0; i < crdi_archive_count(a); i++) {
        const char* name = crdi_archive_at(a, i)->name;
        const char* slash = strrchr(name, '/');
        if (slash && strcmp(slash + 1, "modelDescription.xml") == 0) {
            return crdi_fail(f->ctx, CRD_E_FORMAT,
                             "%s: modelDescription.xml is not at the top of the archive but at "
                             "'%s': pack the content of the folder, not the folder",
                             f->path, crdi_show(name).text);
        }
    }
    return crdi_fail(f->ctx, CRD_E_FORMAT, "%s: no modelDescription.xml in this archive", f->path);
}

static crd_status open_archive(crd_fmu* f, const crd_fmu_options* opt)
{
    crd_status st = CRD_OK;
    crdi_archive* a = NULL;
    const crdi_archive_limits limits = {.max_unpacked = opt->max_unpacked,
                                        .max_entries = opt->max_entries};
    CRD_TRY(crdi_archive_open(f->ctx, f->path, &limits, &a));
    const int32_t xml = crdi_archive_find(a, "modelDescription.xml");
    if (xml < 0 || crdi_archive_at(a, xml)->folder) {
        st = fail_no_description(f, a);
        goto fail;
    }
    const char* name = crdi_arena_format(&f->arena, "%s/modelDescription.xml", f->path);
    if (!name) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    // The description first: what it refuses is not worth unpacking.
    CRD_TRY(crdi_archive_begin(a, xml));
    CRD_TRY(crdi_description_read(f, name, crdi_archive_pull, a));
    crdi_archive_end(a);
    CRD_TRY(list_contents(f, a));
    if (!opt->description_only) {
        CRD_TRY(make_private_folder(f, opt->unpack_to));
        CRD_TRY(crdi_archive_unpack(a, f->folder));
    }
fail:
    crdi_archive_close(a);
    return st;
}

crd_status crd_fmu_open(crd_context* ctx, const char* path, const crd_fmu_options* opt,
                        crd_fmu** out)
{
    const crd_fmu_options defaults = crd_fmu_defaults();
    if (!opt) { opt = &defaults; }
    struct stat info;
    if (stat(path, &info) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: no such file", path);
        }
        return crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno));
    }
    crd_fmu* f = NULL;
    crd_status st = new_fmu(ctx, path, &f);
    if (st < 0) { return st; }
    if (S_ISDIR(info.st_mode)) {
        st = open_folder(f);
    } else if (!S_ISREG(info.st_mode)) {
        st = crdi_fail(ctx, CRD_E_FORMAT, "%s: neither a file nor a folder", path);
    } else if (opt->description_only && crdi_ends_with(path, ".xml")) {
        st = fmu_read_file(f, f->path);
    } else {
        st = open_archive(f, opt);
    }
    if (st < 0) {
        crd_fmu_close(f);
        return st;
    }
    *out = f;
    return CRD_OK;
}

typedef struct memory_source {
    const char* bytes;
    size_t left;
} memory_source;

static crd_status pull_memory(void* user, void* buffer, size_t room, size_t* got)
{
    memory_source* s = user;
    *got = s->left < room ? s->left : room;
    if (*got) { memcpy(buffer, s->bytes, *got); }
    s->bytes += *got;
    s->left -= *got;
    return CRD_OK;
}

crd_status crd_fmu_parse(crd_context* ctx, const char* xml, size_t length,
                         const char* name_in_messages, crd_fmu** out)
{
    crd_fmu* f = NULL;
    crd_status st = new_fmu(ctx, name_in_messages, &f);
    if (st < 0) { return st; }
    memory_source s = {.bytes = xml, .left = length};
    st = crdi_description_read(f, f->path, pull_memory, &s);
    if (st < 0) {
        crd_fmu_close(f);
        return st;
    }
    *out = f;
    return CRD_OK;
}

void crd_fmu_close(crd_fmu* f)
{
    if (!f) { return; }
    crdi_fmi_library_forget(&f->libraries[0]);
    crdi_fmi_library_forget(&f->libraries[1]);
    remove_private_folder(f);
    crd_free(f->ctx, f->variables);
    crdi_map_clear(&f->names);
    crd_arena_clear(&f->arena);
    crd_free(f->ctx, f);
}

// ---- looking -----------------------------------------------------------------------------------

const crd_fmu_description* crd_fmu_describe(const crd_fmu* f)
{
    return &f->description;
}

const char* crd_fmu_path(const crd_fmu* f)
{
    return f->path;
}

bool crdi_fmu_is_unpacked(const crd_fmu* f)
{
    return f->private_folder;
}

bool crdi_fmu_lingers(const crd_fmu* f)
{
    bool any = false;
    for (int k = 0; k < 2; k++) {
        any = any || f->libraries[k].first || atomic_load(&f->libraries[k].lingers);
    }
    return any;
}

const char* crd_fmu_folder(const crd_fmu* f)
{
    return f->folder;
}

int32_t crd_fmu_find(const crd_fmu* f, const char* name)
{
    return crdi_map_find(&f->names, name);
}

const char* crd_fmu_platforms(const crd_fmu* f)
{
    return f->platforms;
}

// What belongs to a clock changes when it ticks, and that never happens here. An output clock that
// nothing belongs to does no harm: its ticks are not looked at.
static crd_status check_clocks(const crd_fmu* f, crd_context* ctx)
{
    const crd_fmu_description* d = &f->description;
    if (!d->input_clock && !d->clocked) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                     "%s: clocks of FMI 3 do not tick here, so that the results would be wrong: "
                     "'%s' %s; let its tool export it without clocks, or for FMI 2.0, which has "
                     "none",
                     f->path, d->input_clock ? d->input_clock : d->clocked,
                     d->input_clock ? "is an input clock" : "changes with a clock");
}

crd_status crd_fmu_check_interface(const crd_fmu* f, bool model_exchange, crd_context* ctx)
{
    const crd_fmu_description* d = &f->description;
    const char* library = model_exchange ? f->exchange_library : f->library;
    if (!(model_exchange ? d->has_model_exchange : d->has_cosimulation)) {
        const bool other = model_exchange ? d->has_cosimulation : d->has_model_exchange;
        return crdi_fail(ctx, CRD_E_UNSUPPORTED, "%s: the FMU has no %s interface, only %s",
                         f->path, model_exchange ? "Model Exchange" : "Co-Simulation",
                         other ? model_exchange ? "Co-Simulation" : "Model Exchange"
                               : "Scheduled Execution");
    }
    const crd_status st = check_clocks(f, ctx);
    if (st < 0) { return st; }
    if (!library[0] && (f->platforms[0] || f->folder[0])) {
        const char* tool = d->generation_tool;
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "%s: no binaries/%s/%s.so for this platform; the FMU has %s%s. This "
                         "machine is %s: let %s export it for Linux, or with its sources, which "
                         "are compiled here",
                         f->path, crdi_fmu_platform(d->version),
                         model_exchange ? d->exchange.model_identifier : d->model_identifier,
                         f->platforms[0] ? "binaries for: " : "no binaries", f->platforms,
                         crdi_fmu_platform(CRD_FMI_3),
                         tool && *tool ? crdi_show(tool).text : "the tool that made it");
    }
    if (!f->folder[0]) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "%s: only the description was opened, nothing is there to run", f->path);
    }
    return CRD_OK;
}

crd_status crd_fmu_check_runnable(const crd_fmu* f, crd_context* ctx)
{
    const crd_fmu_description* d = &f->description;
    if (!d->has_cosimulation && !d->has_model_exchange) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "%s: the FMU has neither a Co-Simulation nor a Model Exchange interface%s",
                         f->path, d->has_scheduled_execution ? ", only Scheduled Execution" : "");
    }
    return crd_fmu_check_interface(f, !d->has_cosimulation, ctx);
}

const char* crdi_fmu_library(const crd_fmu* f, bool model_exchange)
{
    return model_exchange ? f->exchange_library : f->library;
}

crd_status crdi_fmu_set_library(crd_fmu* f, bool model_exchange, const char* path)
{
    const char* copy = crdi_arena_text(&f->arena, path, strlen(path));
    if (!copy) { return CRD_E_MEMORY; }
    *(model_exchange ? &f->exchange_library : &f->library) = copy;
    return CRD_OK;
}
