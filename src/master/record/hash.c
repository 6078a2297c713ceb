// What ran, to the last bit: SHA-256 of the files that take part.
#include "master/master.h"
#include "shared/archive.h"

crd_status crdi_record_hash(crd_master* m, const char* path, const char** out)
{
    char hex[65] = "";
    *out = "";
    const int32_t known = crdi_map_find(&m->record.hashes, path);
    if (known >= 0) {
        *out = m->record.hash_texts[known];
        return CRD_OK;
    }
    const size_t count = m->record.hashes.count;
    const char** texts = crdi_grow(m->ctx, (void*)m->record.hash_texts, &m->record.hash_capacity,
                                   count + 1, sizeof *texts);
    if (!texts) { return CRD_E_MEMORY; }
    m->record.hash_texts = texts;
    (void)crdi_file_hash(path, hex); // "": it cannot be read to its end
    texts[count] = crdi_arena_format(&m->arena, "%s", hex);
    const char* key = crdi_arena_format(&m->arena, "%s", path);
    if (!texts[count] || !key) { return CRD_E_MEMORY; }
    const crd_status st = crdi_map_add(&m->record.hashes, key, (int32_t)count, NULL);
    if (st == CRD_OK) { *out = texts[count]; }
    return st;
}
