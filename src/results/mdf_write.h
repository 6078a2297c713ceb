// Writing MDF 4.10: what the parts of the writer share.
#pragma once
#include "results/mdf.h"
#include "results/recorder.h"
#include "shared/base.h"

static inline void crdi_mdf_set_u16(uint8_t* p, uint16_t x)
{
    p[0] = (uint8_t)x;
    p[1] = (uint8_t)(x >> 8);
}

static inline void crdi_mdf_set_u32(uint8_t* p, uint32_t x)
{
    crdi_mdf_set_u16(p, (uint16_t)x);
    crdi_mdf_set_u16(p + 2, (uint16_t)(x >> 16));
}

static inline void crdi_mdf_set_u64(uint8_t* p, uint64_t x)
{
    crdi_mdf_set_u32(p, (uint32_t)x);
    crdi_mdf_set_u32(p + 4, (uint32_t)(x >> 32));
}

static inline void crdi_mdf_set_f64(uint8_t* p, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    crdi_mdf_set_u64(p, bits);
}

static inline void crdi_mdf_set_head(uint8_t* p, uint32_t tag, uint64_t length, uint64_t links)
{
    crdi_mdf_set_u32(p, tag);
    crdi_mdf_set_u32(p + 4, 0);
    crdi_mdf_set_u64(p + 8, length);
    crdi_mdf_set_u64(p + 16, links);
}

/// Bytes of a value in a record.
size_t crdi_mdf_width(crd_type type);

/// Where in the file things are that change while it is written.
typedef struct crdi_mdf_group {
    uint64_t data_link; ///< of the DG
    uint64_t records;   ///< of the CG, how many there are
} crdi_mdf_group;

typedef struct crdi_mdf_head {
    uint64_t event_names[CRD_EVENT_KIND_COUNT]; ///< TX
    crdi_mdf_group* groups;                     ///< (rasters), the caller's
} crdi_mdf_head;

/// Everything that stands in front of the data, as an unfinished file. `out` is an empty text.
crd_status crdi_mdf_make_head(crd_context* ctx, const crd_recorder_options* opt,
                              const crdi_rows* rows, crdi_mdf_head* head, crd_text* out);
/// The first 64 bytes.
void crdi_mdf_set_id(uint8_t* p, bool finished);
/// AT with its texts, links still relative to its own offset. From the context.
crd_status crdi_mdf_make_attachment(crd_context* ctx, const crd_attachment* a, uint8_t** out,
                                    size_t* length);
