// What is in a package, for listings: nothing is unpacked, no other file is opened.
#include "shared/base_path.h"
#include "ssp/read.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_RESOURCES = 100000, MAX_FOLDERS = 64 };

typedef struct describer {
    crd_context* ctx;
    crd_ssp_info* info;
    crdi_names variants, resources, annotations;
    const char* chosen;
    char* text; // of the SSD
    size_t length;
} describer;

// ---- files -------------------------------------------------------------------------------------

static crd_status add_file(describer* d, const char* name)
{
    if (!strchr(name, '/') && crdi_ends_with(name, ".ssd")) {
        return crdi_ssp_add_name(&d->info->arena, &d->variants, name);
    }
    if (d->resources.count == MAX_RESOURCES) { return CRD_OK; }
    return crdi_ssp_add_name(&d->info->arena, &d->resources, name);
}

static crd_status list_archive(describer* d, const char* path, const char* variant)
{
    crd_status st = CRD_OK;
    crdi_archive* a = NULL;
    CRD_TRY(crdi_archive_open(d->ctx, path, &crdi_ssp_limits, &a));
    for (int32_t i = 0; i < crdi_archive_count(a); i++) {
        const crdi_archive_entry* e = crdi_archive_at(a, i);
        if (!e->folder && !e->repeated) { CRD_TRY(add_file(d, e->name)); }
    }
    crdi_ssp_sort(&d->variants);
    CRD_TRY(crdi_ssp_choose(d->ctx, path, &d->variants, variant, &d->chosen));
    CRD_TRY(crdi_archive_read(a, crdi_archive_find(a, d->chosen), (size_t)64 << 20, &d->text,
                              &d->length));
fail:
    crdi_archive_close(a);
    return st;
}

// `below` is the path inside of the package, "" or with a final slash. Links are not followed.
static crd_status list_folder_below(describer* d, const char* root, const char* below, int depth)
{
    crd_status st = CRD_OK;
    char* folder = crdi_format(d->ctx, "%s/%s", root, below);
    if (!folder) { return CRD_E_MEMORY; }
    DIR* dir = opendir(folder);
    if (!dir) {
        st = crdi_fail(d->ctx, CRD_E_IO, "%s: cannot be read: %s", folder, strerror(errno));
    }
    for (struct dirent* e = dir ? readdir(dir) : NULL; e && st >= 0; e = readdir(dir)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) { continue; }
        struct stat info;
        char* full = crdi_format(d->ctx, "%s%s", folder, e->d_name);
        char* name = crdi_format(d->ctx, "%s%s", below, e->d_name);
        char* inner = crdi_format(d->ctx, "%s%s/", below, e->d_name);
        if (!full || !name || !inner) {
            st = CRD_E_MEMORY;
        } else if (lstat(full, &info) == 0 && S_ISDIR(info.st_mode)) {
            if (depth < MAX_FOLDERS) { st = list_folder_below(d, root, inner, depth + 1); }
        } else {
            st = add_file(d, name);
        }
        crd_free(d->ctx, full);
        crd_free(d->ctx, name);
        crd_free(d->ctx, inner);
    }
    if (dir) { closedir(dir); }
    crd_free(d->ctx, folder);
    return st;
}

static crd_status read_ssd(describer* d, const char* folder, const char* name)
{
    char* path = crdi_format(d->ctx, "%s%s", folder, name);
    if (!path) { return CRD_E_MEMORY; }
    crd_text text;
    crd_text_init(&text, d->ctx);
    const crd_status st = crdi_ssp_read_file(d->ctx, path, path, &text);
    d->text = text.data;
    d->length = text.length;
    crd_free(d->ctx, path);
    return st;
}

static crd_status info_list_folder(describer* d, const char* path, const char* variant)
{
    char* folder = crdi_arena_format(&d->info->arena, "%s/", path);
    crd_status st = folder ? list_folder_below(d, path, "", 0) : CRD_E_MEMORY;
    crdi_ssp_sort(&d->variants);
    crdi_ssp_sort(&d->resources);
    if (st >= 0) { st = crdi_ssp_choose(d->ctx, path, &d->variants, variant, &d->chosen); }
    return st < 0 ? st : read_ssd(d, folder, d->chosen);
}

// An .ssd on its own: only itself, or a sibling that was asked for.
static crd_status list_file(describer* d, const char* path, const char* variant)
{
    const size_t n = crdi_folder_length(path);
    const char* folder = crdi_arena_text(&d->info->arena, path, n);
    crd_status st = folder ? CRD_OK : CRD_E_MEMORY;
    DIR* dir = variant && folder ? opendir(n ? folder : ".") : NULL;
    for (struct dirent* e = dir ? readdir(dir) : NULL; e && st >= 0; e = readdir(dir)) {
        if (crdi_ends_with(e->d_name, ".ssd")) { st = add_file(d, e->d_name); }
    }
    if (dir) { closedir(dir); }
    if (!variant && st >= 0) {
        st = crdi_ssp_add_name(&d->info->arena, &d->variants, path + n);
        variant = path + n;
    }
    crdi_ssp_sort(&d->variants);
    if (st >= 0) { st = crdi_ssp_choose(d->ctx, path, &d->variants, variant, &d->chosen); }
    return st < 0 ? st : read_ssd(d, folder, d->chosen);
}

// ---- the document ------------------------------------------------------------------------------

static const char* copy_text_of(describer* d, const char* text)
{
    return text ? crdi_arena_text(&d->info->arena, text, strlen(text)) : "";
}

static int count_in(const crdi_xml_element* owner, const char* list, const char* name)
{
    const crdi_xml_element* l = crdi_xml_child(owner, CRDI_SSD, list);
    int n = 0;
    for (const crdi_xml_element* e = l ? crdi_xml_child(l, CRDI_SSD, name) : NULL; e;
         e = crdi_xml_same(e)) {
        n++;
    }
    return n;
}

static bool is_element(const crdi_xml_element* e)
{
    return crdi_xml_is(e, CRDI_SSD, "System") || crdi_xml_is(e, CRDI_SSD, "Component");
}

// In the order of the file; called once to count and once to fill.
static crd_status list_elements(describer* d, const crdi_xml_element* system, const char* around,
                                int depth, crd_ssp_component* out, int* count)
{
    d->info->connections += out ? count_in(system, "Connections", "Connection") : 0;
    d->info->parameter_bindings +=
        out ? count_in(system, "ParameterBindings", "ParameterBinding") : 0;
    const crdi_xml_element* list = crdi_xml_child(system, CRDI_SSD, "Elements");
    for (const crdi_xml_element* e = list ? list->first : NULL; e; e = e->next) {
        if (!is_element(e)) { continue; }
        const bool inner = strcmp(e->name, "System") == 0;
        const char* name = crdi_xml_get(e, "name");
        if (out) {
            crd_ssp_component* c = &out[*count];
            *c = (crd_ssp_component){
                .connectors = count_in(e, "Connectors", "Connector"),
                .depth = depth,
                .system = inner,
                .type = inner ? "" : copy_text_of(d, crdi_xml_get(e, "type")),
                .source = inner ? "" : copy_text_of(d, crdi_xml_get(e, "source")),
                .implementation = inner ? "" : copy_text_of(d, crdi_xml_get(e, "implementation"))};
            c->name = strlen(around) + strlen(name) > CRDI_SSP_MAX_NAME
                          ? name
                          : crdi_arena_format(&d->info->arena, "%s%s%s", around,
                                              around[0] ? "." : "", name);
            if (c->name == name) { c->name = copy_text_of(d, name); }
            if (!c->name || !c->type || !c->source || !c->implementation) { return CRD_E_MEMORY; }
            if (!inner && !c->type[0]) { c->type = CRDI_TYPE_FMU; }
            if (!inner && !c->implementation[0]) { c->implementation = "any"; }
            d->info->parameter_bindings +=
                inner ? 0 : count_in(e, "ParameterBindings", "ParameterBinding");
        }
        const int at = (*count)++;
        if (inner) {
            const crd_status st =
                list_elements(d, e, out ? out[at].name : "", depth + 1, out, count);
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}

// The types of all annotations, each once. Depth: bounded by the parser.
static crd_status list_annotations(describer* d, const crdi_xml_element* e)
{
    enum { MOST = 1000 };
    if (crdi_xml_is(e, CRDI_SSC, "Annotation")) {
        const char* type = crdi_xml_get(e, "type");
        for (int i = 0; i < d->annotations.count; i++) {
            if (strcmp(d->annotations.items[i], type) == 0) { return CRD_OK; }
        }
        if (d->annotations.count == MOST) { return CRD_OK; }
        return crdi_ssp_add_name(&d->info->arena, &d->annotations, type);
    }
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        const crd_status st = list_annotations(d, k);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static bool info_read_time(const crdi_xml_element* e, const char* name, double* out)
{
    const char* text = e ? crdi_xml_get(e, name) : NULL;
    if (!text) { return false; }
    text += strspn(text, " \t\r\n+");
    return crdi_parse_double(text, strcspn(text, " \t\r\n"), out);
}

static crd_status describe_document(describer* d, const crdi_xml* x)
{
    crd_ssp_info* i = d->info;
    const crdi_xml_element* root = x->root;
    const crdi_xml_element* system = crdi_xml_child(root, CRDI_SSD, "System");
    const crdi_xml_element* experiment = crdi_xml_child(root, CRDI_SSD, "DefaultExperiment");
    i->version = copy_text_of(d, crdi_xml_get(root, "version"));
    i->name = copy_text_of(d, crdi_xml_get(root, "name"));
    i->tool = copy_text_of(d, crdi_xml_get(root, "generationTool"));
    i->author = copy_text_of(d, crdi_xml_get(root, "author"));
    i->date = copy_text_of(d, crdi_xml_get(root, "generationDateAndTime"));
    i->description = copy_text_of(d, crdi_xml_get(root, "description"));
    i->license = copy_text_of(d, crdi_xml_get(root, "license"));
    if (!i->version || !i->name || !i->tool || !i->author || !i->date || !i->description ||
        !i->license) {
        return CRD_E_MEMORY;
    }
    i->has_start = info_read_time(experiment, "startTime", &i->start);
    i->has_stop = info_read_time(experiment, "stopTime", &i->stop);
    int count = 0;
    (void)list_elements(d, system, "", 0, NULL, &count);
    crd_ssp_component* all = crdi_arena_new(&i->arena, (size_t)count, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    i->components = all;
    crd_status st = list_elements(d, system, "", 0, all, &i->component_count);
    if (st >= 0) { st = list_annotations(d, root); }
    return st;
}

static crd_status list_files(describer* d, const char* path, const char* variant)
{
    struct stat info;
    if (stat(path, &info) != 0) { return crdi_file_fail(d->ctx, path, errno); }
    if (S_ISDIR(info.st_mode)) { return info_list_folder(d, path, variant); }
    return crdi_ends_with(path, ".ssd") ? list_file(d, path, variant)
                                        : list_archive(d, path, variant);
}

// The one described comes first.
static void sort_variants(describer* d)
{
    const char** v = d->variants.items;
    int at = 0;
    while (at < d->variants.count - 1 && v[at] != d->chosen) {
        at++;
    }
    memmove(v + 1, v, (size_t)at * sizeof *v);
    v[0] = d->chosen;
}

crd_status crd_ssp_describe(crd_context* ctx, const char* path, const char* variant,
                            crd_ssp_info** out)
{
    crd_status st = CRD_OK;
    crdi_xml* x = NULL;
    char* shown = NULL;
    describer d = {.ctx = ctx, .info = crdi_new(ctx, sizeof(crd_ssp_info))};
    if (!d.info) { return CRD_E_MEMORY; }
    crd_arena_init(&d.info->arena, ctx);
    d.info->path = copy_text_of(&d, path);
    if (!d.info->path) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(list_files(&d, path, variant));
    sort_variants(&d);
    shown = crdi_ends_with(path, ".ssd") && !variant ? crdi_strdup(ctx, path)
                                                     : crdi_format(ctx, "%s/%s", path, d.chosen);
    if (!shown) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crdi_ssp_parse_xml(ctx, d.text, d.length, shown, &x));
    CRD_TRY(crdi_ssp_check(ctx, x, CRDI_ROOT_SSD));
    CRD_TRY(describe_document(&d, x));
    d.info->variants = d.variants.items;
    d.info->variant_count = d.variants.count;
    d.info->resources = d.resources.items;
    d.info->resource_count = d.resources.count;
    d.info->annotations = d.annotations.items;
    d.info->annotation_count = d.annotations.count;
    *out = d.info;
    d.info = NULL;
fail:
    crd_free(ctx, shown);
    crd_free(ctx, d.text);
    crdi_xml_destroy(x);
    crd_ssp_info_destroy(d.info);
    return st;
}

void crd_ssp_info_destroy(crd_ssp_info* i)
{
    if (!i) { return; }
    crd_arena arena = i->arena;
    crd_arena_clear(&arena);
    crd_free(arena.ctx, i);
}
