// An FMU out of a template: binaries and sources that are the same for all, a description, and
// files that say what it is.
#include "cardan/circuit.h"
#include "cardan/fmi.h"
#include "cli/build/build.h"
#include "cli/export/export.h"
#include "shared/archive.h"

#include <ctype.h>
#include <string.h>

enum { LARGEST = 64 << 20, MOST_FILES = 256 };

typedef struct package {
    crd_context* ctx;
    crdi_archive* from;
    crdi_archive_writer* to;
    int version; // 2 or 3
    const char* name;
} package;

static bool starts_with(const char* text, const char* with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

// The name in the FMU of a file of the template; NULL: it is of the other version. `buffer` serves.
static const char* name_in_fmu(const package* p, const char* name, char buffer[256])
{
    const char* const other = p->version == 2 ? "sources/fmi3" : "sources/fmi2";
    const char* const own = p->version == 2 ? "fmi2/" : "fmi3/";
    if (starts_with(name, "sources/")) { return starts_with(name, other) ? NULL : name; }
    if (strcmp(name, "LICENSE") == 0) { return "documentation/licenses/license.txt"; }
    if (starts_with(name, "licenses/")) {
        snprintf(buffer, 256, "documentation/%.200s", name);
        return buffer;
    }
    if (!starts_with(name, own)) { return NULL; }
    const char* file = strrchr(name, '/') + 1; // fmi2/binaries/linux64/coupling.so
    const char* ending = strrchr(file, '.');
    snprintf(buffer, 256, "%.*s%s%s", (int)(file - name - 5), name + 5, p->name,
             ending ? ending : "");
    return buffer;
}

// What has to be compiled, as named below sources/.
static int list_sources(const package* p, const char** sources)
{
    int count = 0;
    char buffer[256];
    for (int32_t i = 0; i < crdi_archive_count(p->from) && count < MOST_FILES; i++) {
        const crdi_archive_entry* e = crdi_archive_at(p->from, i);
        const size_t n = strlen(e->name);
        if (!e->folder && starts_with(e->name, "sources/") && n > 2 &&
            strcmp(e->name + n - 2, ".c") == 0 && name_in_fmu(p, e->name, buffer)) {
            sources[count++] = e->name + strlen("sources/");
        }
    }
    return count;
}

static crd_status copy_files(package* p)
{
    crd_status st = CRD_OK;
    char* bytes = NULL;
    size_t length = 0;
    char buffer[256];
    for (int32_t i = 0; i < crdi_archive_count(p->from); i++) {
        const crdi_archive_entry* e = crdi_archive_at(p->from, i);
        const char* name = e->folder ? NULL : name_in_fmu(p, e->name, buffer);
        if (!name) { continue; }
        CRD_TRY(crdi_archive_read(p->from, i, LARGEST, &bytes, &length));
        CRD_TRY(crdi_archive_add(p->to, name, bytes, length));
        crd_free(p->ctx, bytes);
        bytes = NULL;
    }
fail:
    crd_free(p->ctx, bytes);
    return st;
}

crd_status crdi_write_fmu(crd_context* ctx, const crdi_asset* template, int version,
                          const char* platforms, const crd_model* model,
                          const crdi_resource* resources, int resource_count, const char* path)
{
    crd_status st = CRD_OK;
    package p = {.ctx = ctx, .version = version, .name = model->name};
    const crdi_archive_limits limits = {.max_unpacked = LARGEST, .max_entries = MOST_FILES};
    const char* sources[MOST_FILES];
    crd_text description, build;
    crd_arena arena;
    const char *scratch = NULL, *first = path;
    crd_text_init(&description, ctx);
    crd_text_init(&build, ctx);
    crd_arena_init(&arena, ctx);
    if (platforms) { // the whole of it, or none
        CRD_TRY(crdi_scratch_make(&arena, ctx, NULL, &scratch));
        first = crdi_arena_format(&arena, "%s/%s.fmu", scratch, model->name);
        CRD_TRY(first ? CRD_OK : CRD_E_MEMORY);
    }
    CRD_TRY(crdi_archive_open_memory(ctx, template->data, template->length, "FMU template", &limits,
                                     &p.from));
    const int count = list_sources(&p, sources);
    CRD_TRY(crd_fmu_describe_model(ctx, model, version, sources, count, &description, &build));
    CRD_TRY(crdi_archive_create(ctx, first, &p.to));
    CRD_TRY(crdi_archive_add(p.to, "modelDescription.xml", description.data, description.length));
    for (int i = 0; i < resource_count; i++) {
        char name[128];
        snprintf(name, sizeof name, "resources/%s", resources[i].name);
        CRD_TRY(crdi_archive_add(p.to, name, resources[i].data, resources[i].length));
    }
    if (build.length) {
        CRD_TRY(crdi_archive_add(p.to, "sources/buildDescription.xml", build.data, build.length));
    }
    CRD_TRY(copy_files(&p));
    CRD_TRY(crdi_archive_finish(p.to));
    if (platforms) { CRD_TRY(crdi_add_platforms(ctx, first, platforms, path)); }
fail:
    crdi_archive_discard(p.to);
    crdi_archive_close(p.from);
    if (scratch) { (void)crdi_scratch_remove(scratch); }
    crd_arena_clear(&arena);
    crd_text_clear(&description);
    crd_text_clear(&build);
    return st;
}

// A name of C out of any text.
const char* crdi_identifier(crd_arena* arena, const char* text)
{
    char* name = crdi_arena_format(arena, "%s%.99s", isdigit((unsigned char)text[0]) ? "_" : "",
                                   text[0] ? text : "model");
    for (char* p = name; p && *p; p++) {
        if (!isalnum((unsigned char)*p) || (unsigned char)*p > 127) { *p = '_'; }
    }
    return name;
}

// ---- models of netlists and twins --------------------------------------------------------------

crd_status crdi_export_name(crd_context* ctx, const crdi_export_options* o, crd_arena* arena,
                            const char* subject, const char* own, const char** out)
{
    const char* stem = o->name     ? o->name
                       : own       ? own
                       : o->output ? crdi_file_stem(arena, o->output)
                                   : crdi_file_stem(arena, subject);
    *out = stem ? crdi_identifier(arena, stem) : NULL;
    if (!*out) { return CRD_E_MEMORY; }
    if (o->name && strcmp(o->name, *out) != 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--name %s, expected letters, digits and '_' as in a name of C", o->name);
    }
    return CRD_OK;
}

crd_status crdi_export_spares(crd_context* ctx, const struct crd_netlist* n, const char* subject,
                              const char* what, const char* output)
{
    crd_status st = crdi_refuse_overwriting(ctx, output, subject, "the FMU", what);
    if (st == CRD_OK) { st = crdi_refuse_overwriting(ctx, output, n->files[0], "the FMU", what); }
    for (int i = 0; i < n->part_count && st == CRD_OK; i++) {
        if (i > 0 && n->parts[i].file == n->parts[i - 1].file) { continue; }
        st = crdi_refuse_overwriting(ctx, output, n->files[n->parts[i].file], "the FMU", what);
    }
    return st;
}

static void host_log(void* user, crd_model_status status, const char* text)
{
    crd_context* ctx = user;
    if (status >= CRD_MODEL_DISCARD) {
        (void)crdi_fail(ctx, CRD_E_RANGE, "%s", text);
    } else {
        crdi_log(ctx, status == CRD_MODEL_WARNING ? CRD_LOG_WARNING : CRD_LOG_DEBUG, "%s", text);
    }
}

crd_status crdi_export_try(crd_context* ctx, const crd_model* model, int version,
                           const char* subject)
{
    enum { MOST_VARIABLES_2 = 65536 }; // of an FMU of FMI 2.0
    if (version == 2 && model->variable_count > MOST_VARIABLES_2) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "%s: %d variables; an FMU of FMI 2.0 has room for %d, choose FMI 3.0 with "
                         "--fmi 3",
                         subject, model->variable_count, MOST_VARIABLES_2);
    }
    void* self = crdi_new(ctx, model->size);
    if (!self) { return CRD_E_MEMORY; }
    const crd_model_host host = {.user = ctx, .log = host_log, .resources = "", .model = model};
    crd_model_reset(model, self);
    const bool good = model->initialize(self, &host, 0) == CRD_MODEL_OK;
    model->clear(self);
    crd_free(ctx, self);
    return good ? CRD_OK : CRD_E_RANGE;
}
