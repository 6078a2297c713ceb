#include "shared/archive.h"

#include <errno.h>
#include <string.h>
#include <zip.h>

// libzip writes to a temporary file beside the archive and renames it when it is closed.
struct crdi_archive_writer {
    crd_context* ctx;
    crd_arena arena; // what entries are made of, until the archive is closed
    char* path;
    zip_t* zip;
};

crd_status crdi_archive_create(crd_context* ctx, const char* path, crdi_archive_writer** out)
{
    crdi_archive_writer* w = crdi_new(ctx, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    w->ctx = ctx;
    crd_arena_init(&w->arena, ctx);
    w->path = crdi_strdup(ctx, path);
    if (!w->path) {
        crdi_archive_discard(w);
        return CRD_E_MEMORY;
    }
    int code = 0;
    w->zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (!w->zip) {
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        const crd_status st =
            crdi_fail(ctx, code == ZIP_ER_MEMORY ? CRD_E_MEMORY : CRD_E_IO,
                      "%s: cannot be written: %s", path, zip_error_strerror(&error));
        zip_error_fini(&error);
        crdi_archive_discard(w);
        return st;
    }
    *out = w;
    return CRD_OK;
}

// Takes the source, also on failure.
static crd_status add_source(crdi_archive_writer* w, const char* name, zip_source_t* source)
{
    const zip_int64_t index = source ? zip_file_add(w->zip, name, source, ZIP_FL_ENC_UTF_8) : -1;
    if (index < 0) {
        zip_source_free(source);
        zip_error_t* error = zip_get_error(w->zip);
        const int code = zip_error_code_zip(error);
        return crdi_fail(w->ctx,
                         code == ZIP_ER_MEMORY   ? CRD_E_MEMORY
                         : code == ZIP_ER_EXISTS ? CRD_E_RANGE
                                                 : CRD_E_IO,
                         "%s: '%s' cannot be added: %s", w->path, name, zip_error_strerror(error));
    }
    // 1 January 1980, the first day that zip knows
    zip_file_set_dostime(w->zip, (zip_uint64_t)index, 0, 1 << 5 | 1, 0);
    zip_set_file_compression(w->zip, (zip_uint64_t)index, ZIP_CM_DEFLATE, 6);
    // and the rights of any file, not those of the one that was packed
    zip_file_set_external_attributes(w->zip, (zip_uint64_t)index, 0, ZIP_OPSYS_UNIX,
                                     (zip_uint32_t)0100644 << 16);
    return CRD_OK;
}

crd_status crdi_archive_add(crdi_archive_writer* w, const char* name, const void* bytes,
                            size_t length)
{
    void* copy = crdi_arena_new(&w->arena, length + 1, 1);
    if (!copy) { return CRD_E_MEMORY; }
    if (length) { memcpy(copy, bytes, length); }
    return add_source(w, name, zip_source_buffer(w->zip, copy, length, 0));
}

crd_status crdi_archive_add_file(crdi_archive_writer* w, const char* name, const char* path)
{
    return add_source(w, name, zip_source_file(w->zip, path, 0, -1));
}

crd_status crdi_archive_finish(crdi_archive_writer* w)
{
    if (zip_close(w->zip) < 0) {
        return crdi_fail(w->ctx, CRD_E_IO, "%s: cannot be written: %s", w->path,
                         zip_error_strerror(zip_get_error(w->zip)));
    }
    w->zip = NULL;
    return CRD_OK;
}

void crdi_archive_discard(crdi_archive_writer* w)
{
    if (!w) { return; }
    if (w->zip) { zip_discard(w->zip); }
    crd_arena_clear(&w->arena);
    crd_free(w->ctx, w->path);
    crd_free(w->ctx, w);
}
