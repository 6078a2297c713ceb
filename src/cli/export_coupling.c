// cardan export coupling: an element as an FMU. Its binaries and sources are the same for all
// elements and part of this program; the element is a file of the FMU's resources.
#include "cardan/archive.h"
#include "cardan/coupling.h"
#include "cardan/fmi.h"
#include "cardan/unit.h"
#include "cli/export.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { LARGEST = 64 << 20, MOST_FILES = 256 };

// ---- the archive -------------------------------------------------------------------------------

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
        crdi_free(p->ctx, bytes);
        bytes = NULL;
    }
fail:
    crdi_free(p->ctx, bytes);
    return st;
}

static crd_status write_package(package* p, const char* path, const crd_model* model,
                                const crdi_text* json)
{
    crd_status st = CRD_OK;
    const crdi_archive_limits limits = {.max_unpacked = LARGEST, .max_entries = MOST_FILES};
    const char* sources[MOST_FILES];
    crdi_text description, build;
    crdi_text_init(&description, p->ctx);
    crdi_text_init(&build, p->ctx);
    CRD_TRY(crdi_archive_open_memory(p->ctx, crdi_coupling_template.data,
                                     crdi_coupling_template.length, "coupling FMU", &limits,
                                     &p->from));
    const int count = list_sources(p, sources);
    CRD_TRY(
        crd_fmu_describe_model(p->ctx, model, p->version, sources, count, &description, &build));
    CRD_TRY(crdi_archive_create(p->ctx, path, &p->to));
    CRD_TRY(crdi_archive_add(p->to, "modelDescription.xml", description.data, description.length));
    CRD_TRY(crdi_archive_add(p->to, "resources/element.json", json->data, json->length));
    if (p->version == 3) {
        CRD_TRY(crdi_archive_add(p->to, "sources/buildDescription.xml", build.data, build.length));
    }
    CRD_TRY(copy_files(p));
    CRD_TRY(crdi_archive_finish(p->to));
fail:
    crdi_archive_discard(p->to);
    crdi_archive_close(p->from);
    crdi_text_clear(&description);
    crdi_text_clear(&build);
    return st;
}

crd_status crdi_write_coupling_fmu(crd_context* ctx, const crd_element* e, int version,
                                   const char* label, const char* path)
{
    crd_status st = CRD_OK;
    const crd_model* model = NULL;
    crdi_text json;
    crdi_text_init(&json, ctx);
    CRD_TRY(crd_element_write(e, &json));
    CRD_TRY(json.failed || !json.data ? CRD_E_MEMORY : CRD_OK);
    CRD_TRY(crd_coupling_model_create(ctx, json.data, json.length, label, &model));
    package p = {.ctx = ctx, .version = version, .name = model->name};
    CRD_TRY(write_package(&p, path, model, &json));
fail:
    crd_coupling_model_destroy(model);
    crdi_text_clear(&json);
    return st;
}

// ---- the command -------------------------------------------------------------------------------

// "3", or "torque,speed".
static crd_status take_signals(crd_context* ctx, crdi_arena* arena, const char* text,
                               crd_element* e)
{
    int64_t n = 0;
    if (crdi_parse_int64(text, strlen(text), &n)) {
        if (n < 1 || n > 1000) {
            return crdi_fail(ctx, CRD_E_RANGE, "--signals %s, expected 1 to 1000, or names", text);
        }
        e->signal_count = (int)n;
        e->signal_names = NULL;
        return CRD_OK;
    }
    size_t count = 1;
    for (const char* p = text; *p; p++) {
        count += *p == ',';
    }
    if (count > 1000) {
        return crdi_fail(ctx, CRD_E_RANGE, "--signals: %zu names, expected at most 1000", count);
    }
    const char** names = crdi_arena_new(arena, count, sizeof *names);
    if (!names) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < count; i++) {
        const size_t length = strcspn(text, ",");
        names[i] = crdi_arena_text(arena, text, length);
        if (!names[i]) { return CRD_E_MEMORY; }
        if (!length) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "--signals: a name is empty, expected names between commas as in "
                             "torque,speed");
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(names[i], names[k]) == 0) {
                return crdi_fail(ctx, CRD_E_RANGE, "--signals: '%.80s' is there twice", names[i]);
            }
        }
        text += length + (i + 1 < count);
    }
    e->signal_names = names;
    e->signal_count = (int)count;
    return CRD_OK;
}

// A name of C out of any text.
static const char* identifier_of(crdi_arena* arena, const char* text)
{
    char* name = crdi_arena_format(arena, "%s%.99s", isdigit((unsigned char)text[0]) ? "_" : "",
                                   text[0] ? text : "coupling");
    for (char* p = name; p && *p; p++) {
        if (!isalnum((unsigned char)*p) || (unsigned char)*p > 127) { *p = '_'; }
    }
    return name;
}

static crd_status apply(crdi_cli* cli, const crdi_export_options* o, crdi_arena* arena,
                        const char* subject, crd_element* e)
{
    if (!isnan(o->step)) { e->step = o->step; }
    if (isnan(e->step)) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "%s has no macro step: say it with --step, as in --step 10ms", subject);
    }
    if (!isnan(o->latency)) {
        const bool whole = o->latency == floor(o->latency) && o->latency <= CRD_LATENCY_MAX;
        e->latency_steps = whole ? (int)o->latency : -1;
        e->latency = whole ? NAN : o->latency * e->step;
    }
    // Its outputs are those at the end of a step, when the newest sample is a macro step older.
    const int oldest = e->latency_steps < CRD_LATENCY_MAX ? e->latency_steps + 1 : CRD_LATENCY_MAX;
    if (e->options.k_max < oldest) { e->options.k_max = oldest; }
    if (o->signals) {
        const crd_status st = take_signals(cli->ctx, arena, o->signals, e);
        if (st < 0) { return st; }
    }
    if (o->name) { e->name = o->name; }
    if (!e->name || !e->name[0]) {
        const char* stem = o->output ? crdi_file_stem(arena, o->output) : "coupling";
        e->name = stem ? identifier_of(arena, stem) : NULL;
    }
    return e->name ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_export_coupling(crdi_cli* cli, const crdi_export_options* o, const char* subject)
{
    crd_status st = CRD_OK;
    crd_element* e = NULL;
    crdi_arena arena;
    crdi_arena_init(&arena, cli->ctx);
    const int version = o->fmi == 1 ? 3 : 2;
    CRD_TRY(crdi_load_element(cli->ctx, subject, &e));
    CRD_TRY(apply(cli, o, &arena, subject, e));
    const char* output = o->output ? o->output : crdi_arena_format(&arena, "%s.fmu", e->name);
    CRD_TRY(output ? CRD_OK : CRD_E_MEMORY);
    if (crdi_same_file(output, subject)) {
        CRD_TRY(crdi_fail(cli->ctx, CRD_E_RANGE,
                          "%s: the FMU would overwrite the element that it is made of; choose "
                          "another file with --output",
                          output));
    }
    CRD_TRY(crdi_write_coupling_fmu(cli->ctx, e, version, subject, output));
    char step[32];
    printf("%s: %s, %d signal%s, macro step %s, FMI %d.0\n", output, e->label, e->signal_count,
           crdi_plural(e->signal_count), crdi_format_seconds(step, e->step), version);
    st = crdi_stdout_done(cli->ctx);
fail:
    crd_element_destroy(e);
    crdi_arena_clear(&arena);
    return st;
}
