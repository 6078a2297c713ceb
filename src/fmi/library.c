// The shared objects of FMUs: each is loaded with its first instance and unloaded with the last;
// who shares one shares its memory. One that remembers nothing stays for the next instance.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "fmi/instance.h"
#include "fmi/python.h"

// The library's only global: instances of one shared object are one thing, whoever made them.
// Those with instances, by their path: one list would be walked as often as there are instances.
enum { LISTS = 1024 };
static struct {
    pthread_mutex_t lock;
    crdi_fmi_library* first[LISTS];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static crdi_fmi_library** list_of(const char* path)
{
    uint32_t hash = 2166136261U; // FNV-1a: paths are not chosen by strangers
    for (; *path; path++) {
        hash = (hash ^ (unsigned char)*path) * 16777619U;
    }
    return &all.first[hash % LISTS];
}

static bool same_object(const crdi_fmi_library* l, const crd_fmi* i)
{
    return strcmp(l->path, i->library->path) == 0;
}

// ---- instances of it ---------------------------------------------------------------------------

static crd_status check_beside(const crd_fmi* i, const crd_fmi* other)
{
    if (atomic_load(&other->fatal)) {
        return crdi_fail(i->ctx, CRD_E_UNIT,
                         "%s: another instance of %s has reported a fatal error, so no new one "
                         "can be made in this process",
                         i->name, i->fmu->path);
    }
    return !i->can_be_instantiated_once
               ? CRD_OK
               : crdi_fail(i->ctx, CRD_E_UNSUPPORTED,
                           "%s: %s can be instantiated only once per process and the instance %s "
                           "is there already; 'isolate: process' gives each a process of its own",
                           i->name, crd_fmu_path(i->fmu), other->name);
}

// A fatal error closes all instances of an object, so one of each library stands for the others.
static crd_status enlist(crd_fmi* i, bool* loaded)
{
    crd_status st = CRD_OK;
    crdi_fmi_library* l = i->library;
    pthread_mutex_lock(&all.lock);
    crdi_fmi_library** list = list_of(l->path);
    for (const crdi_fmi_library* o = *list; o && st == CRD_OK; o = o->next) {
        if (same_object(o, i)) { st = check_beside(i, o->first); }
    }
    if (st == CRD_OK && !l->first) {
        l->next = *list;
        l->previous = NULL;
        if (l->next) { l->next->previous = l; }
        *list = l;
    }
    if (st == CRD_OK) {
        i->next = l->first;
        if (i->next) { i->next->previous = i; }
        l->first = i;
        i->registered = true;
    }
    *loaded = l->handle != NULL;
    pthread_mutex_unlock(&all.lock);
    return st;
}

// Its next instance finds it as if it had just been loaded. A file that is not in a folder of ours
// may change before, or be somebody else's, too.
static bool is_as_loaded(const crd_fmi* i, const crdi_fmi_library* l)
{
    return !l->stays && l->memory && i->fmu->private_folder && crdi_fmi_library_name(i)[0] != '/' &&
           crdi_fmi_memory_is_same(l->memory);
}

// Gives what is to be unloaded.
static void delist(crd_fmi* i, bool unload, crdi_fmi_library* out)
{
    crdi_fmi_library* l = i->library;
    pthread_mutex_lock(&all.lock);
    *(i->previous ? &i->previous->next : &l->first) = i->next;
    if (i->next) { i->next->previous = i->previous; }
    if (!unload) { l->stays = true; }
    if (!l->first) {
        *(l->previous ? &l->previous->next : list_of(l->path)) = l->next;
        if (l->next) { l->next->previous = l->previous; }
        if (!is_as_loaded(i, l)) {
            *out = (crdi_fmi_library){.path = l->path,
                                      .resources = l->resources,
                                      .handle = l->handle,
                                      .memory = l->memory,
                                      .stays = l->stays};
            l->path = l->resources = NULL;
            l->handle = NULL;
            l->memory = NULL;
        }
    }
    pthread_mutex_unlock(&all.lock);
    i->registered = false;
}

void crdi_fmi_library_leave(crd_fmi* i, bool unload)
{
    crdi_fmi_library old = {0};
    if (i->registered) { delist(i, unload, &old); }
    if (old.handle) {
        char* root = realpath(crd_fmu_folder(i->fmu), NULL);
        if (!old.stays) { dlclose(old.handle); }
        old.handle = NULL;
        if (crdi_fmi_is_loaded(old.path) || (root && crdi_fmi_is_loaded(root))) {
            atomic_store(&i->library->lingers, true);
        }
        free(root);
    }
    crdi_fmi_library_forget(&old);
}

void crdi_fmi_set_fatal(crd_fmi* i)
{
    i->state = CRD_FMI_FATAL;
    pthread_mutex_lock(&all.lock);
    for (const crdi_fmi_library* l = *list_of(i->library->path); l; l = l->next) {
        for (crd_fmi* o = same_object(l, i) ? l->first : NULL; o; o = o->next) {
            crdi_fmi_close_calls(o);
        }
    }
    pthread_mutex_unlock(&all.lock);
}

// ---- files -------------------------------------------------------------------------------------

const char* crdi_fmi_library_name(const crd_fmi* i)
{
    return i->exchange ? i->fmu->exchange_library : i->fmu->library;
}

static crd_status no_memory(crd_fmi* i)
{
    return crdi_fail(i->ctx, CRD_E_MEMORY, "%s: out of memory", i->name);
}

// What an FMU has for all its instances belongs to none of their contexts: it comes from the C
// library.
static char* join_path(const char* folder, const char* name)
{
    const size_t n = strlen(folder) + strlen(name) + 2;
    char* path = malloc(n);
    if (path) { snprintf(path, n, "%s/%s", folder, name); }
    return path;
}

// A path as the path of a URI (RFC 3986): what is not unreserved is percent-encoded, byte by byte.
static char* uri_of(const char* path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "-._~/";
    static const char hex[] = "0123456789ABCDEF";
    char* uri = calloc(3 * strlen(path) + sizeof "file://", 1);
    if (!uri) { return NULL; }
    memcpy(uri, "file://", 7);
    char* out = uri + 7;
    for (const unsigned char* p = (const unsigned char*)path; *p; p++) {
        if (strchr(plain, *p)) {
            *out++ = (char)*p;
        } else {
            *out++ = '%';
            *out++ = hex[*p >> 4];
            *out++ = hex[*p & 15];
        }
    }
    return uri; // zeroed memory ends it
}

static bool is_folder(const char* path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static crd_status find_resources(crd_fmi* i, char** out)
{
    char* root = realpath(crd_fmu_folder(i->fmu), NULL);
    if (!root) {
        return crdi_fail(i->ctx, CRD_E_IO, "%s: the folder %s is gone", crd_fmu_path(i->fmu),
                         crd_fmu_folder(i->fmu));
    }
    bool failed = true;
    char* path = crdi_fmi_is_one(i) ? strdup(root) : join_path(root, "resources");
    if (path && crdi_fmi_is_two(i)) { // a URI even if there is no such folder, without slash
        *out = uri_of(path);
        failed = !*out;
    } else if (path && is_folder(path)) { // a path with a slash at the end
        *out = join_path(path, "");
        failed = !*out;
    } else if (path) {
        failed = false;
    }
    free(path);
    free(root);
    return failed ? no_memory(i) : CRD_OK;
}

static crd_status find_files(crd_fmi* i)
{
    crd_status st = CRD_OK;
    crdi_fmi_library* l = i->library;
    pthread_mutex_lock(&all.lock);
    if (!l->path) {
        char* resources = NULL;
        char* path = join_path(i->fmu->folder, crdi_fmi_library_name(i));
        char* real = path ? realpath(path, NULL) : NULL;
        if (!path) {
            st = no_memory(i);
        } else if (!real) {
            st = crdi_fail(i->ctx, CRD_E_IO, "%s: %s", path, strerror(errno));
        } else {
            st = find_resources(i, &resources);
        }
        free(path);
        if (st == CRD_OK) {
            l->path = real;
            l->resources = resources;
        } else {
            free(real);
        }
    }
    pthread_mutex_unlock(&all.lock);
    return st;
}

void crdi_fmi_library_forget(crdi_fmi_library* l)
{
    if (l->handle && !l->first) { dlclose(l->handle); }
    free(l->path);
    free(l->resources);
    free(l->memory);
    l->path = l->resources = NULL;
    l->handle = NULL;
    l->memory = NULL;
}

// ---- loading -----------------------------------------------------------------------------------

// By absolute path and without changing the working directory: that belongs to the whole process
// and its threads. An FMU that loads siblings relative to the working directory needs an rpath.
static crd_status library_open(crd_fmi* i, void** out, bool* plain)
{
    const char* path = i->library->path;
    *out = crdi_fmi_library_open(path, plain);
    crdi_float_check(i);
    const char* why = *out ? NULL : dlerror();
    const bool python = crdi_python_missing(why);
    const char* interpreter = python ? crdi_python_library() : NULL;
    if (interpreter) {
        // It stays: an interpreter cannot be begun twice. Its symbols are for all, as the FMU and
        // the modules that it imports expect them from the process.
        *out =
            dlopen(interpreter, RTLD_NOW | RTLD_GLOBAL) ? crdi_fmi_library_open(path, plain) : NULL;
        why = *out ? NULL : dlerror();
    }
    if (*out) { return CRD_OK; }
    const size_t n = strlen(path); // which the reason may begin with
    if (why && strncmp(why, path, n) == 0 && why[n] == ':') { why += n + 2; }
    const bool tool = i->needs_execution_tool && !python;
    struct statvfs place;
    const bool barred = statvfs(path, &place) == 0 && (place.f_flag & ST_NOEXEC);
    return crdi_fail(i->ctx, CRD_E_UNIT, "%s: %s: the library cannot be loaded: %s%s%s%s%s%s",
                     i->fmu->path, crdi_fmi_library_name(i), why ? why : "no reason given",
                     barred ? "; it lies on a file system that is mounted noexec, set TMPDIR to a "
                              "folder on another one"
                            : "",
                     tool ? "; the FMU needs the tool that made it: " : "",
                     tool ? i->d->generation_tool : "", python && !interpreter ? "; " : "",
                     python && !interpreter ? crdi_python_advice : "");
}

static void fill_sets(const crd_fmi* i, crdi_fmi_library* l)
{
    for (int s = 0; s < CRD_FMI_STATE_COUNT; s++) {
        crdi_fmi_allowed_set(crdi_fmi_kind_of(i), (crd_fmi_state)s, l->sets[s]);
        for (int w = 0; w < CRDI_FMI_WORDS; w++) {
            l->sets[s][w] &= l->present[w];
        }
    }
}

// Outside of the lock, as its constructors are foreign code. Whoever else does the same finds the
// same functions.
static crd_status library_load(crd_fmi* i)
{
    void* handle = NULL;
    crdi_fmi_library new = {0};
    bool plain = false;
    crd_status st = library_open(i, &handle, &plain);
    if (st < 0) { return st; }
    crdi_fmi_memory* memory = plain ? crdi_fmi_memory_copy(handle) : NULL;
    const char* identifier = i->exchange ? i->d->exchange.model_identifier : i->d->model_identifier;
    st = crdi_fmi_functions_load(i->ctx, handle, crdi_fmi_library_name(i), identifier, i->version,
                                 i->exchange, &new.f, new.present);
    if (st < 0) {
        dlclose(handle);
        free(memory);
        return crdi_fail_in(i->ctx, st, "%s", i->fmu->path);
    }
    fill_sets(i, &new);
    crdi_fmi_library* l = i->library;
    pthread_mutex_lock(&all.lock);
    const bool first = !l->handle;
    if (first) {
        l->handle = handle;
        l->memory = memory;
        l->f = new.f;
        memcpy(l->present, new.present, sizeof l->present);
        memcpy(l->sets, new.sets, sizeof l->sets);
    }
    pthread_mutex_unlock(&all.lock);
    if (!first) {
        dlclose(handle);
        free(memory);
    }
    return CRD_OK;
}

crd_status crdi_fmi_library_join(crd_fmi* i)
{
    crd_status st = CRD_OK;
    bool loaded = false;
    CRD_TRY(find_files(i));
    CRD_TRY(enlist(i, &loaded));
    if (!loaded) { CRD_TRY(library_load(i)); }
fail:
    return st;
}
