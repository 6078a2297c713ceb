// Descriptions: loaded from files and archives.
#include "dcp/description/dcpx.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shared/archive.h"

static const char entry_name[] = "v1.0/dcpSlaveDescription.dcpx";

// ---- rules -------------------------------------------------------------------------------------

static crd_status check_description(crd_dcp_description* d, crdi_dcp_findings* f)
{
    crdi_dcp_index* index = NULL;
    const crd_status st = crdi_dcp_check(d, &d->arena, f, &index);
    if (st < 0) { return st; }
    d->by_vr = index;
    d->by_vr_count = d->variable_count;
    return CRD_OK;
}

crd_status crd_dcp_validate(crd_dcp_description* d, const crd_dcp_finding** findings, int* count)
{
    crd_status st = CRD_OK;
    crdi_dcp_findings f;
    crdi_dcp_findings_init(&f, d->ctx, &d->arena, &crdi_dcpx_rules);
    CRD_TRY(check_description(d, &f));
    CRD_TRY(crdi_dcp_findings_finish(&f, findings, count));
fail:
    crdi_dcp_findings_clear(&f);
    return st;
}

// ---- texts, files and archives -----------------------------------------------------------------

// What else there is in the archive, in case somebody expected it to be read.
static void look_around(const crdi_archive* a, crdi_dcp_findings* f)
{
    for (int32_t i = 0; i < crdi_archive_count(a); i++) {
        const crdi_archive_entry* e = crdi_archive_at(a, i);
        if (e->folder || e->repeated || strcmp(e->name, entry_name) == 0) { continue; }
        if (crdi_ends_with(e->name, ".dcpx")) {
            crdi_dcp_found(f, "A01", 0, "'%s' is a second description and not read: only %s counts",
                           crdi_clip(e->name).text, entry_name);
        } else if (strncmp(e->name, "v1.0/", 5) != 0) {
            crdi_dcp_found(f, "A02", 0, "'%s' lies outside of v1.0/ and is ignored",
                           crdi_clip(e->name).text);
        }
    }
}

// `archive` is where the text comes from, or NULL.
static crd_status parse_description(crd_context* ctx, const char* text, size_t length,
                                    const char* file, const crdi_archive* archive,
                                    crd_dcp_description** out, const crd_dcp_finding** findings,
                                    int* count)
{
    crd_status st = CRD_OK;
    crdi_xml* xml = NULL;
    crd_dcp_description* d = NULL;
    crdi_dcp_findings f = {0};
    CRD_TRY(crd_dcp_description_create(ctx, &d));
    crdi_dcp_findings_init(&f, ctx, &d->arena, &crdi_dcpx_rules);
    d->file = crdi_arena_text(&d->arena, file, strlen(file));
    if (!d->file) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crdi_xml_parse(ctx, text, length, file, &xml));
    if (archive) { look_around(archive, &f); }
    CRD_TRY(crdi_dcp_read(d, xml, &f));
    CRD_TRY(check_description(d, &f));
    CRD_TRY(crdi_dcp_findings_finish(&f, findings, count));
    *out = d;
    d = NULL;
fail:
    crdi_dcp_findings_clear(&f);
    crdi_xml_destroy(xml);
    crd_dcp_description_destroy(d);
    return st;
}

crd_status crd_dcp_parse(crd_context* ctx, const char* text, size_t length, const char* file,
                         crd_dcp_description** out, const crd_dcp_finding** findings, int* count)
{
    return parse_description(ctx, text, length, file, NULL, out, findings, count);
}

// There is a description elsewhere, or none at all.
static crd_status fail_entry(crd_context* ctx, const crdi_archive* a, const char* path)
{
    for (int32_t i = 0; i < crdi_archive_count(a); i++) {
        const crdi_archive_entry* e = crdi_archive_at(a, i);
        if (!e->folder && crdi_ends_with(e->name, ".dcpx")) {
            return crdi_fail(ctx, CRD_E_FORMAT,
                             "%s: the description lies at '%s', expected it at %s", path,
                             crdi_clip(e->name).text, entry_name);
        }
    }
    return crdi_fail(ctx, CRD_E_FORMAT, "%s: it has no %s, expected the archive of a DCP slave",
                     path, entry_name);
}

static crd_status load_archive(crd_context* ctx, const char* path, crd_dcp_description** out,
                               const crd_dcp_finding** findings, int* count)
{
    const crdi_archive_limits limits = {.max_unpacked = UINT64_MAX, .max_entries = 100000};
    crd_status st = CRD_OK;
    crdi_archive* a = NULL;
    char *text = NULL, *shown = NULL;
    size_t length = 0;
    CRD_TRY(crdi_archive_open(ctx, path, &limits, &a));
    const int32_t index = crdi_archive_find(a, entry_name);
    if (index < 0 || crdi_archive_at(a, index)->folder) { CRD_TRY(fail_entry(ctx, a, path)); }
    CRD_TRY(crdi_archive_read(a, index, CRDI_DCP_MAX_BYTES, &text, &length));
    shown = crdi_format(ctx, "%s/%s", path, entry_name);
    if (!shown) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(parse_description(ctx, text, length, shown, a, out, findings, count));
fail:
    crd_free(ctx, shown);
    crd_free(ctx, text);
    crdi_archive_close(a);
    return st;
}

static bool is_archive(const char* path)
{
    char head[5];
    struct stat info;
    if (crdi_ends_with(path, ".dcp")) { return stat(path, &info) == 0 && S_ISREG(info.st_mode); }
    return crdi_file_head(path, head, sizeof head) == 4 && memcmp(head, "PK\3\4", 4) == 0;
}

crd_status crd_dcp_load(crd_context* ctx, const char* path, crd_dcp_description** out,
                        const crd_dcp_finding** findings, int* count)
{
    if (is_archive(path)) { return load_archive(ctx, path, out, findings, count); }
    crd_text text;
    crd_text_init(&text, ctx);
    crd_status st = crdi_file_read(
        ctx, path, &(crdi_file_need){.what = "a slave's description", .most = CRDI_DCP_MAX_BYTES},
        &text);
    if (st >= 0) { st = crd_dcp_parse(ctx, text.data, text.length, path, out, findings, count); }
    crd_text_clear(&text);
    return st;
}

crd_status crd_dcp_write_archive(const crd_dcp_description* d, const char* path)
{
    crd_status st = CRD_OK;
    crdi_archive_writer* w = NULL;
    crd_text text;
    crd_text_init(&text, d->ctx);
    CRD_TRY(crd_dcp_write(d, &text));
    CRD_TRY(crdi_archive_create(d->ctx, path, &w));
    CRD_TRY(crdi_archive_add(w, entry_name, text.data, text.length));
    CRD_TRY(crdi_archive_finish(w));
fail:
    crdi_archive_discard(w);
    crd_text_clear(&text);
    return st;
}
