// A unit may crash in the middle of malloc: then nobody should ask the heap for anything before the
// record is safe. The recorder's context takes its memory from the run's, and from a reserve once a
// unit has crashed.
#include "master/master.h"

enum { DEFLATE_BYTES = 400 * 1024 }; // what packing the verdict may take

static bool is_spare(const crd_master* m, const void* p)
{
    return m->record.spare && (const char*)p >= m->record.spare &&
           (const char*)p < m->record.spare + m->record.spare_size;
}

static void* spare_take(void* user, void* p, size_t size)
{
    crd_master* m = user;
    if (is_spare(m, p)) { return NULL; } // it goes with the master
    if (size == 0) {
        crd_free(m->ctx, p);
        return NULL;
    }
    if (!m->record.heap_lost) {
        size_t capacity = p ? 0 : size; // as much as that, to begin with
        return crdi_grow(m->ctx, p, &capacity, size, 1);
    }
    const size_t at = (m->record.spare_used + 15) & ~(size_t)15;
    if (p || !m->record.spare || size > m->record.spare_size || at > m->record.spare_size - size) {
        return NULL;
    }
    m->record.spare_used = at + size;
    return m->record.spare + at;
}

static void log_to_run(void* user, crd_level level, const char* text)
{
    crdi_log_on(((crd_master*)user)->ctx, level, text);
}

crd_status crdi_record_open_spare(crd_master* m)
{
    const crd_context_options opt = {.realloc = spare_take,
                                     .realloc_user = m,
                                     .log = log_to_run,
                                     .log_user = m,
                                     .level = crd_log_level(m->ctx)};
    m->record.ctx = crd_context_create(&opt);
    if (!m->record.ctx) { return crdi_fail(m->ctx, CRD_E_MEMORY, "out of memory"); }
    if (!m->plan->opt.guard_crashes) { return CRD_OK; } // a crash ends everything
    m->record.spare_size = DEFLATE_BYTES + 2 * m->record.verdict.capacity;
    m->record.spare = crdi_new(m->ctx, m->record.spare_size);
    return m->record.spare ? CRD_OK : CRD_E_MEMORY;
}

void crdi_record_close_spare(crd_master* m)
{
    crd_context_destroy(m->record.ctx);
    crd_free(m->ctx, m->record.spare);
}
