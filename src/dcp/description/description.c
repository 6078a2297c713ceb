// Descriptions: made, destroyed, and looked up in. Without files, so that an FMU can do with it.
#include "dcp/description/dcpx.h"

#include <math.h>
#include <stdlib.h>

// ---- make and destroy --------------------------------------------------------------------------

crd_status crd_dcp_description_create(crd_context* ctx, crd_dcp_description** out)
{
    crd_dcp_description* d = crdi_new(ctx, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    d->ctx = ctx;
    crd_arena_init(&d->arena, ctx);
    d->file = d->name = d->description = d->author = d->version = d->copyright = d->license =
        d->tool = d->date = "";
    d->major = 1;
    d->nrt_default_steps = d->nrt_min_steps = d->nrt_max_steps = 1;
    d->nrt_fixed_steps = true;
    d->heartbeat_numerator = d->heartbeat_denominator = 1;
    d->udp.max_pdu_size = 65507;
    d->tcp.max_pdu_size = 4294967267;
    d->udp.host = d->udp.data_host = d->udp.parameter_host = "";
    d->tcp.host = d->tcp.data_host = d->tcp.parameter_host = "";
    *out = d;
    return CRD_OK;
}

void crd_dcp_description_destroy(crd_dcp_description* d)
{
    if (!d) { return; }
    crd_context* ctx = d->ctx;
    crd_arena_clear(&d->arena);
    crd_free(ctx, d);
}

crd_dcp_variable crd_dcp_variable_defaults(void)
{
    return (crd_dcp_variable){.name = "",
                              .description = "",
                              .unit = "",
                              .display_unit = "",
                              .quantity = "",
                              .declared_type = "",
                              .mime = "",
                              .variability = CRD_CONTINUOUS,
                              .type = CRD_DCP_FLOAT64,
                              .min = (double)NAN,
                              .max = (double)NAN,
                              .gradient = (double)NAN,
                              .nominal = (double)NAN,
                              .max_size = UINT32_MAX,
                              .pre_edge = (double)NAN,
                              .post_edge = (double)NAN,
                              .default_steps = 1,
                              .min_steps = 1,
                              .max_steps = 1,
                              .fixed_steps = true};
}

// ---- value references --------------------------------------------------------------------------

static int by_reference(const void* a, const void* b)
{
    const crdi_dcp_index *x = a, *y = b;
    if (x->vr != y->vr) { return x->vr < y->vr ? -1 : 1; }
    return (x->index > y->index) - (x->index < y->index);
}

void crdi_dcp_sort(const crd_dcp_description* d, crdi_dcp_index* room)
{
    bool sorted = true;
    for (int i = 0; i < d->variable_count; i++) {
        room[i] = (crdi_dcp_index){d->variables[i].vr, i};
        sorted = sorted && (i == 0 || room[i - 1].vr <= room[i].vr);
    }
    if (!sorted) { qsort(room, (size_t)d->variable_count, sizeof *room, by_reference); }
}

int crdi_dcp_look_up(const crdi_dcp_index* by_vr, int count, uint64_t vr)
{
    int low = 0, high = count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (by_vr[middle].vr < vr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && by_vr[low].vr == vr ? by_vr[low].index : -1;
}

// Descriptions made by hand may have no index, or one from before a change: what it says is
// believed only after a look.
int crd_dcp_find_vr(const crd_dcp_description* d, uint64_t vr)
{
    if (d->by_vr) {
        const int i = crdi_dcp_look_up(d->by_vr, d->by_vr_count, vr);
        if (i >= 0 && i < d->variable_count && d->variables[i].vr == vr) { return i; }
    }
    for (int i = 0; i < d->variable_count; i++) {
        if (d->variables[i].vr == vr) { return i; }
    }
    return -1;
}
