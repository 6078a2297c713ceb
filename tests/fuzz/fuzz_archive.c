// modules: archive base
#include <string.h>

#include "fuzz.h"
#include "shared/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    const crdi_archive_limits limits = {.max_unpacked = 1 << 20, .max_entries = 100};
    crd_context* ctx = crd_context_create(NULL);
    crdi_archive* a = NULL;
    if (crdi_archive_open_memory(ctx, data, size, "fuzz.fmu", &limits, &a) == CRD_OK) {
        uint64_t total = 0;
        for (int32_t i = 0; i < crdi_archive_count(a); i++) {
            const crdi_archive_entry* e = crdi_archive_at(a, i);
            // No name leads out of the folder.
            if (e->name[0] == '/' || strcmp(e->name, "..") == 0 || strstr(e->name, "/../") ||
                strncmp(e->name, "../", 3) == 0 || strchr(e->name, '\\')) {
                __builtin_trap();
            }
            char* text = NULL;
            size_t length = 0;
            if (!e->folder && crdi_archive_read(a, i, 1 << 20, &text, &length) == CRD_OK) {
                total += length;
                crd_free(ctx, text);
            }
        }
        if (total > limits.max_unpacked) { __builtin_trap(); }
    }
    crdi_archive_close(a);
    crd_context_destroy(ctx);
    return 0;
}
