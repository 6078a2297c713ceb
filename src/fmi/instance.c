// Making and ending an instance: the library, the callbacks, the list of all instances.
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fmi/fmu_internal.h"
#include "fmi/instance.h"

// ---- all instances of the process --------------------------------------------------------------

// The library's only global: instances that share a library share its memory, whoever made them.
static struct {
    pthread_mutex_t lock;
    crd_fmi* first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static crd_status enlist(crd_fmi* i)
{
    crd_status st = CRD_OK;
    pthread_mutex_lock(&all.lock);
    for (const crd_fmi* o = all.first; o && st == CRD_OK; o = o->next) {
        if (strcmp(o->library_path, i->library_path) != 0) { continue; }
        if (atomic_load(&o->fatal)) {
            st = crdi_fail(i->ctx, CRD_E_UNIT,
                           "%s: another instance of %s has reported a fatal error, so no new one "
                           "can be made in this process",
                           i->name, i->fmu->path);
        } else if (i->can_be_instantiated_once) {
            st = crdi_fail(i->ctx, CRD_E_UNSUPPORTED,
                           "%s: %s can be instantiated only once per process and the instance %s "
                           "is there already",
                           i->name, crd_fmu_path(i->fmu), o->name);
        }
    }
    if (st == CRD_OK) {
        i->next = all.first;
        if (all.first) { all.first->previous = i; }
        all.first = i;
        i->registered = true;
    }
    pthread_mutex_unlock(&all.lock);
    return st;
}

static void delist(crd_fmi* i)
{
    if (!i->registered) { return; }
    pthread_mutex_lock(&all.lock);
    if (i->previous) {
        i->previous->next = i->next;
    } else {
        all.first = i->next;
    }
    if (i->next) { i->next->previous = i->previous; }
    pthread_mutex_unlock(&all.lock);
    i->registered = false;
}

static void close_all_calls(crd_fmi* i)
{
    atomic_store(&i->fatal, true);
    for (int w = 0; w < CRDI_FMI_WORDS; w++) {
        atomic_store(&i->allowed[w], 0);
    }
    crdi_fmi_tell_joined(i);
}

void crdi_fmi_set_fatal(crd_fmi* i)
{
    i->state = CRD_FMI_FATAL;
    pthread_mutex_lock(&all.lock);
    for (crd_fmi* o = all.first; o; o = o->next) {
        if (strcmp(o->library_path, i->library_path) == 0) { close_all_calls(o); }
    }
    pthread_mutex_unlock(&all.lock);
}

static void allow(crd_fmi* i, crd_fmi_state state, const uint64_t set[CRDI_FMI_WORDS])
{
    i->state = (uint8_t)state;
    for (int w = 0; w < CRDI_FMI_WORDS; w++) {
        atomic_store(&i->allowed[w], set[w]);
    }
    crdi_fmi_tell_joined(i);
    // Another thread may have closed us in between: it stores the flag first and the set second,
    // we store the set first and look at the flag second, so one of us sees the other.
    if (atomic_load(&i->fatal)) { close_all_calls(i); }
}

void crdi_fmi_set_state(crd_fmi* i, crd_fmi_state state)
{
    allow(i, state, i->sets[state]);
}

void crdi_fmi_set_intermediate(crd_fmi* i, bool may_set, bool may_get)
{
    uint64_t set[CRDI_FMI_WORDS];
    for (int w = 0; w < CRDI_FMI_WORDS; w++) {
        uint64_t setters = 0;
        if (CRDI_FMI3_SetFloat32 / 64 == w) { setters |= UINT64_C(1) << CRDI_FMI3_SetFloat32 % 64; }
        if (CRDI_FMI3_SetFloat64 / 64 == w) { setters |= UINT64_C(1) << CRDI_FMI3_SetFloat64 % 64; }
        set[w] =
            i->sets[CRD_FMI_INTERMEDIATE][w] & ((may_set ? setters : 0) | (may_get ? ~setters : 0));
    }
    allow(i, CRD_FMI_INTERMEDIATE, set);
}

static void fill_sets(crd_fmi* i)
{
    for (int s = 0; s < CRD_FMI_STATE_COUNT; s++) {
        crdi_fmi_allowed_set(crdi_fmi_kind_of(i), (crd_fmi_state)s, i->sets[s]);
        for (int w = 0; w < CRDI_FMI_WORDS; w++) {
            i->sets[s][w] &= i->present[w];
        }
    }
}

// ---- files -------------------------------------------------------------------------------------

static bool is_folder(const char* path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static crd_status find_library(crd_fmi* i)
{
    char* path = crdi_format(i->ctx, "%s/%s", i->fmu->folder, i->library_name);
    if (!path) { return CRD_E_MEMORY; }
    char* real = realpath(path, NULL);
    crd_status st = CRD_OK;
    if (real) {
        i->library_path = crdi_strdup(i->ctx, real);
        if (!i->library_path) { st = CRD_E_MEMORY; }
    } else {
        st = crdi_fail(i->ctx, CRD_E_IO, "%s: %s", path, strerror(errno));
    }
    free(real);
    crd_free(i->ctx, path);
    return st;
}

// A path as the path of a URI (RFC 3986): what is not unreserved is percent-encoded, byte by byte.
static char* uri_of(crd_context* ctx, const char* path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "-._~/";
    static const char hex[] = "0123456789ABCDEF";
    char* uri = crdi_new_array(ctx, 3 * strlen(path) + sizeof "file://", 1);
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

static crd_status find_resources(crd_fmi* i)
{
    char* root = realpath(crd_fmu_folder(i->fmu), NULL);
    if (!root) {
        return crdi_fail(i->ctx, CRD_E_IO, "%s: the folder %s is gone", crd_fmu_path(i->fmu),
                         crd_fmu_folder(i->fmu));
    }
    crd_status st = CRD_E_MEMORY;
    char* path = crdi_format(i->ctx, "%s/resources", root);
    if (path && crdi_fmi_is_two(i)) { // a URI even if there is no such folder, without slash
        i->resources = uri_of(i->ctx, path);
        if (i->resources) { st = CRD_OK; }
    } else if (path && is_folder(path)) { // a path with a slash at the end
        i->resources = crdi_format(i->ctx, "%s/", path);
        if (i->resources) { st = CRD_OK; }
    } else if (path) {
        st = CRD_OK;
    }
    crd_free(i->ctx, path);
    free(root);
    return st;
}

// ---- making one --------------------------------------------------------------------------------

static void* instance_allocate(size_t count, size_t size)
{
    return calloc(count, size); // of the C library: the FMU calls it from any thread
}

static void release(void* p)
{
    free(p);
}

// By absolute path and without changing the working directory: that belongs to the whole process
// and its threads. An FMU that loads siblings relative to the working directory needs an rpath.
// Local symbols, as all FMUs export the same names.
static crd_status instance_load(crd_fmi* i)
{
    crd_status st = CRD_OK;
    CRD_TRY(find_library(i));
    CRD_TRY(find_resources(i));
    CRD_TRY(enlist(i));
    i->library = dlopen(i->library_path, RTLD_NOW | RTLD_LOCAL);
    if (!i->library) {
        const char* why = dlerror();
        const size_t path = strlen(i->library_path); // which the reason may begin with
        if (why && strncmp(why, i->library_path, path) == 0 && why[path] == ':') {
            why += path + 2;
        }
        return crdi_fail(i->ctx, CRD_E_UNIT, "%s: %s: the library cannot be loaded: %s%s%s",
                         i->fmu->path, i->library_name, why ? why : "no reason given",
                         i->needs_execution_tool ? "; the FMU needs the tool that made it: " : "",
                         i->needs_execution_tool ? i->d->generation_tool : "");
    }
    st = crdi_fmi_functions_load(i->ctx, i->library, i->library_name, i->version, i->exchange,
                                 &i->f, i->present);
    if (st < 0) { return crdi_fail_in(i->ctx, st, "%s", i->fmu->path); }
    fill_sets(i);
fail:
    return st;
}

// FMI 2.0.4, 2.1.4 and FMI 3.0.2, 2.2.5: is it the interface that we know?
static crd_status check_interface(crd_fmi* i)
{
    if (crdi_fmi_is_two(i) && i->f.two.GetTypesPlatform) {
        crdi_fmi_mark(i, CRDI_FMI2_GetTypesPlatform);
        const char* types = i->f.two.GetTypesPlatform();
        if (types && strcmp(types, "default") != 0) {
            return crdi_fail(i->ctx, CRD_E_UNSUPPORTED,
                             "%s: %s: the types platform is '%.100s', expected 'default'",
                             i->fmu->path, i->library_name, types);
        }
    }
    const char* (*get_version)(void) =
        crdi_fmi_is_two(i) ? i->f.two.GetVersion : i->f.three.GetVersion;
    if (!get_version) { return CRD_OK; }
    crdi_fmi_mark(i, crdi_fmi_is_two(i) ? (int)CRDI_FMI2_GetVersion : (int)CRDI_FMI3_GetVersion);
    const char* version = get_version();
    if (!version || version[0] != '0' + i->version || version[1] != '.') {
        crdi_log(i->ctx, CRD_LOG_WARNING, "%s: the library says FMI version '%.40s', expected %d.0",
                 i->name, version ? version : "", (int)i->version);
    }
    return CRD_OK;
}

static void* instantiate2(crd_fmi* i, const crd_fmi_options* opt)
{
    i->callbacks = (crdi_fmi2_callbacks){
        .logger = crdi_fmi2_log,
        .allocate = instance_allocate,
        .release = release,
        .environment = i,
    };
    crdi_fmi_mark(i, CRDI_FMI2_Instantiate);
    return i->f.two.Instantiate(
        i->name, i->exchange ? CRDI_FMI2_MODEL_EXCHANGE : CRDI_FMI2_CO_SIMULATION, i->d->token,
        i->resources, &i->callbacks, opt->visible, opt->logging_on);
}

static void* instantiate3(crd_fmi* i, const crd_fmi_options* opt)
{
    const bool update = i->intermediate != NULL;
    if (i->exchange) {
        crdi_fmi_mark(i, CRDI_FMI3_InstantiateModelExchange);
        return i->f.three.InstantiateModelExchange(i->name, i->d->token, i->resources, opt->visible,
                                                   opt->logging_on, i, crdi_fmi3_log);
    }
    crdi_fmi_mark(i, CRDI_FMI3_InstantiateCoSimulation);
    return i->f.three.InstantiateCoSimulation(i->name, i->d->token, i->resources, opt->visible,
                                              opt->logging_on, i->event_mode, opt->early_return,
                                              update ? opt->intermediate_inputs : NULL,
                                              update ? opt->intermediate_input_count : 0, i,
                                              crdi_fmi3_log, update ? crdi_fmi3_update : NULL);
}

static void choose_interface(crd_fmi* i, bool exchange)
{
    const crd_fmu_description* d = i->d;
    const crd_fmu_model_exchange* x = &d->exchange;
    i->exchange = exchange;
    i->library_name = exchange ? i->fmu->exchange_library : i->fmu->library;
    i->can_get_set_state = exchange ? x->can_get_set_state : d->can_get_set_state;
    i->can_serialize_state = exchange ? x->can_serialize_state : d->can_serialize_state;
    i->provides_directional_derivatives =
        exchange ? x->provides_directional_derivatives : d->provides_directional_derivatives;
    i->needs_execution_tool = exchange ? x->needs_execution_tool : d->needs_execution_tool;
    i->can_be_instantiated_once =
        exchange ? x->can_be_instantiated_once : d->can_be_instantiated_once;
}

static crd_status instance_fill(crd_fmi* i, crd_fmu* f, const crd_fmi_options* opt)
{
    i->fmu = f;
    i->d = crd_fmu_describe(f);
    i->version = (uint8_t)i->d->version;
    choose_interface(i, opt->model_exchange);
    i->state = CRD_FMI_INSTANTIATED;
    i->logger = opt->logger;
    i->logger_user = opt->logger_user;
    i->event_mode =
        !i->exchange && i->version == CRD_FMI_3 && opt->event_mode && i->d->has_event_mode;
    if (!i->exchange && i->version == CRD_FMI_3 && i->d->provides_intermediate_update) {
        i->intermediate = opt->intermediate;
        i->intermediate_user = opt->intermediate_user;
    }
    crdi_fmi_mark(i, CRDI_FMI_NO_FUNCTION);
    i->has_text_lock = pthread_mutex_init(&i->text_lock, NULL) == 0;
    if (!i->has_text_lock) { return crdi_fail(i->ctx, CRD_E_MEMORY, "out of memory for a lock"); }
    i->name = crdi_strdup(i->ctx, opt->instance_name);
    return i->name ? CRD_OK : CRD_E_MEMORY;
}

crd_status crd_fmi_instantiate(crd_context* ctx, crd_fmu* f, const crd_fmi_options* opt,
                               crd_fmi** out)
{
    if (!opt->instance_name || !opt->instance_name[0]) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: an instance needs a name", crd_fmu_path(f));
    }
    crd_status st = crd_fmu_check_interface(f, opt->model_exchange, ctx);
    if (st < 0) { return st; }
    crd_fmi* i = crdi_new(ctx, sizeof *i);
    if (!i) { return CRD_E_MEMORY; }
    i->ctx = ctx;
    CRD_TRY(instance_fill(i, f, opt));
    CRD_TRY(instance_load(i));
    CRD_TRY(check_interface(i));
    i->component = crdi_fmi_is_two(i) ? instantiate2(i, opt) : instantiate3(i, opt);
    if (!i->component) {
        char text[CRDI_FMI_TEXT];
        crdi_fmi_take_text(i, text);
        st = crdi_fail(ctx, CRD_E_UNIT, "%s: the FMU %s refused to be instantiated%s%s", i->name,
                       crd_fmu_path(f), text[0] ? "; its last message: " : " and gave no reason",
                       text);
        goto fail;
    }
    crdi_fmi_set_state(i, CRD_FMI_INSTANTIATED);
    *out = i;
    return CRD_OK;
fail:
    crd_fmi_destroy(i);
    return st;
}

// ---- ending it ---------------------------------------------------------------------------------

static void instance_forget(crd_fmi* i)
{
    delist(i);
    if (i->has_text_lock) { pthread_mutex_destroy(&i->text_lock); }
    crd_free(i->ctx, i->scratch);
    crd_free(i->ctx, i->resources);
    crd_free(i->ctx, i->library_path);
    crd_free(i->ctx, i->name);
    crd_free(i->ctx, i);
}

void crd_fmi_destroy(crd_fmi* i)
{
    if (!i) { return; }
    assert(i->state != CRD_FMI_INTERMEDIATE && "an instance cannot go inside its own step");
    if (i->component) {
        const int terminate =
            crdi_fmi_is_two(i) ? (int)CRDI_FMI2_Terminate : (int)CRDI_FMI3_Terminate;
        if (crdi_fmi_may(i, terminate)) { crd_fmi_terminate(i); } // may turn fatal
        const int function =
            crdi_fmi_is_two(i) ? (int)CRDI_FMI2_FreeInstance : (int)CRDI_FMI3_FreeInstance;
        if (crdi_fmi_may(i, function)) {
            crdi_fmi_mark(i, function);
            if (crdi_fmi_is_two(i)) {
                i->f.two.FreeInstance(i->component);
            } else {
                i->f.three.FreeInstance(i->component);
            }
        }
    }
    // Unloading runs the library's destructors, which a fatal error forbids as well.
    if (i->library && !atomic_load(&i->fatal)) { dlclose(i->library); }
    instance_forget(i);
}

void crd_fmi_abandon(crd_fmi* i)
{
    if (i) { instance_forget(i); } // the library stays loaded: its destructors are its code too
}

crd_fmi_state crd_fmi_get_state(const crd_fmi* i)
{
    return atomic_load(&i->fatal) ? CRD_FMI_FATAL : (crd_fmi_state)i->state;
}

void* crd_fmi_component(const crd_fmi* i)
{
    return i->component;
}

const char* crd_fmi_last_call(const crd_fmi* i)
{
    int call = CRDI_FMI_NO_FUNCTION;
    if (i->joined) { call = __atomic_load_n(&i->joined->call, __ATOMIC_RELAXED); }
    if (call == CRDI_FMI_NO_FUNCTION) {
        call = atomic_load_explicit(&i->last_call, memory_order_relaxed);
    }
    return crdi_fmi_function_name(i->version, call);
}
