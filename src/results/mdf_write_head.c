// The head of an MDF file: what describes the data, built in memory and written at once.
//
//   ID HD FH -> DG -> CG -> CN -> CN ...        one DG, CG and time channel per raster
//                DG -> CG -> CN ...
#include "results/mdf_write.h"
#include "shared/base_system.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#define TAG(t) CRDI_MDF_TAG((t)[0], (t)[1])

enum { LABELS_MOST = 65000 }; // the counts have 16 bits

typedef struct builder {
    crd_context* ctx;
    crd_text* out;
    crd_map units; // to their index in unit_links
    uint64_t* unit_links;
    size_t unit_room;
    crd_map names;     // of a group
    uint64_t booleans; // CC, 0: not yet
    const crd_label* last_labels;
    uint64_t last_conversion;
    crd_status status;
} builder;

size_t crdi_mdf_width(crd_type type)
{
    switch (type) {
    case CRD_INT8:
    case CRD_UINT8:
    case CRD_BOOLEAN:
    case CRD_CLOCK:
        return 1;
    case CRD_INT16:
    case CRD_UINT16:
        return 2;
    case CRD_FLOAT32:
    case CRD_INT32:
    case CRD_UINT32:
        return 4;
    case CRD_STRING:
        return 8 * (CRD_RECORD_BYTES - 1);
    case CRD_BINARY: // two digits for each byte
        return 16 * (CRD_RECORD_BYTES - 1);
    default:
        return 8;
    }
}

static uint8_t data_type(crd_type type)
{
    switch (type) {
    case CRD_FLOAT64:
    case CRD_FLOAT32:
        return CRDI_MDF_REAL_LE;
    case CRD_INT8:
    case CRD_INT16:
    case CRD_INT32:
    case CRD_INT64:
    case CRD_ENUMERATION:
        return CRDI_MDF_INT_LE;
    case CRD_STRING:
    case CRD_BINARY:
        return CRDI_MDF_UTF8;
    default:
        return CRDI_MDF_UINT_LE;
    }
}

// ---- blocks ------------------------------------------------------------------------------------

// Zeros, from an offset that is a multiple of 8.
static uint64_t add_zeros(builder* b, size_t length)
{
    static const uint8_t zeros[256];
    const size_t gap = -b->out->length & 7;
    const uint64_t at = b->out->length + gap;
    for (size_t left = gap + length; left > 0;) {
        const size_t n = left < sizeof zeros ? left : sizeof zeros;
        crdi_text_put(b->out, zeros, n);
        left -= n;
    }
    return at;
}

// The place of a block's byte; somewhere harmless once memory ran out.
static uint8_t* place_block(builder* b, uint64_t at)
{
    static _Thread_local uint8_t nowhere[8];
    return b->out->failed ? nowhere : (uint8_t*)b->out->data + at;
}

static void set_u8(builder* b, uint64_t at, uint8_t x)
{
    *place_block(b, at) = x;
}

static void set_u16(builder* b, uint64_t at, uint16_t x)
{
    crdi_mdf_set_u16(place_block(b, at), x);
}

static void set_u32(builder* b, uint64_t at, uint32_t x)
{
    crdi_mdf_set_u32(place_block(b, at), x);
}

static void set_u64(builder* b, uint64_t at, uint64_t x)
{
    crdi_mdf_set_u64(place_block(b, at), x);
}

static void set_link(builder* b, uint64_t block, int link, uint64_t to)
{
    set_u64(b, block + CRDI_MDF_HEAD + 8 * (uint64_t)link, to);
}

// A block of zeros behind its head.
static uint64_t add_block(builder* b, uint32_t tag, size_t size, uint64_t links)
{
    const uint64_t at = add_zeros(b, size);
    set_u32(b, at, tag);
    set_u64(b, at + 8, size);
    set_u64(b, at + 16, links);
    return at;
}

// TX or MD; 0 for an empty text.
static uint64_t add_text(builder* b, uint32_t tag, const char* text)
{
    const size_t n = strlen(text);
    if (n == 0) { return 0; }
    const size_t size = (CRDI_MDF_HEAD + n + 1 + 7) & ~(size_t)7;
    const uint64_t at = add_block(b, tag, size, 0);
    if (!b->out->failed) { memcpy(b->out->data + at + CRDI_MDF_HEAD, text, n); }
    return at;
}

// <`element`><TX>`text`</TX>`more`</`element`>
static uint64_t add_comment(builder* b, const char* element, const char* text, const char* more)
{
    crd_text t;
    crd_text_init(&t, b->ctx);
    crdi_text_add(&t, "<%s xmlns=\"http://www.asam.net/mdf/v4\"><TX>", element);
    crdi_text_xml(&t, text);
    crdi_text_add(&t, "</TX>%s</%s>", more, element);
    uint64_t at = 0;
    if (t.failed) {
        b->status = CRD_E_MEMORY;
    } else {
        at = add_text(b, TAG("MD"), t.data);
    }
    crd_text_clear(&t);
    return at;
}

static uint64_t add_unit(builder* b, const char* unit)
{
    if (!unit[0] || b->status < 0) { return 0; }
    bool fresh = false;
    const size_t count = b->units.count;
    if (crdi_map_add(&b->units, unit, (int32_t)count, &fresh) < 0) {
        b->status = CRD_E_MEMORY;
        return 0;
    }
    if (!fresh) { return b->unit_links[crdi_map_find(&b->units, unit)]; }
    uint64_t* links =
        crdi_grow(b->ctx, b->unit_links, &b->unit_room, count + 1, sizeof *b->unit_links);
    if (!links) {
        b->status = CRD_E_MEMORY;
        return 0;
    }
    b->unit_links = links;
    return links[count] = add_text(b, TAG("TX"), unit);
}

// ---- conversions -------------------------------------------------------------------------------

static int by_value(const void* a, const void* b)
{
    const crd_label *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

// Value to text; `labels` in ascending order.
static uint64_t add_table(builder* b, const crd_label* labels, int count)
{
    const size_t n = (size_t)count;
    const uint64_t links = CRDI_MDF_CC_LINKS + n + 1; // the last: of all other values, none
    const uint64_t at = add_block(b, TAG("CC"), CRDI_MDF_CC_SIZE + 8 * (n + 1) + 8 * n, links);
    const uint64_t data = at + CRDI_MDF_HEAD + 8 * links;
    set_u8(b, data, CRDI_MDF_CC_VALUE_TO_TEXT);
    set_u16(b, data + 4, (uint16_t)(n + 1));
    set_u16(b, data + 6, (uint16_t)n);
    for (int i = 0; i < count; i++) {
        crdi_mdf_set_f64(place_block(b, data + 24 + 8 * (uint64_t)i), (double)labels[i].value);
        const uint64_t text = add_text(b, TAG("TX"), labels[i].text);
        set_link(b, at, CRDI_MDF_CC_LINKS + i, text);
    }
    return at;
}

static uint64_t add_conversion(builder* b, const crd_column* c)
{
    if (c->type == CRD_BOOLEAN || c->type == CRD_CLOCK) {
        static const crd_label texts[] = {{0, "false"}, {1, "true"}};
        if (!b->booleans) { b->booleans = add_table(b, texts, 2); }
        return b->booleans;
    }
    if (c->label_count <= 0 || c->label_count > LABELS_MOST) { return 0; }
    if (c->labels == b->last_labels) { return b->last_conversion; } // elements of an array
    crd_label* sorted = crdi_new_array(b->ctx, (size_t)c->label_count, sizeof *sorted);
    if (!sorted) {
        b->status = CRD_E_MEMORY;
        return 0;
    }
    memcpy(sorted, c->labels, (size_t)c->label_count * sizeof *sorted);
    qsort(sorted, (size_t)c->label_count, sizeof *sorted, by_value);
    b->last_labels = c->labels;
    b->last_conversion = add_table(b, sorted, c->label_count);
    crd_free(b->ctx, sorted);
    return b->last_conversion;
}

// ---- channels and groups -----------------------------------------------------------------------

// "x", or "x_2" if there is an x already.
static uint64_t mdf_write_head_add_name(builder* b, crd_arena* arena, const char* name)
{
    const char* text = name;
    for (int i = 2;; i++) {
        bool fresh = false;
        if (!text || crdi_map_add(&b->names, text, 0, &fresh) < 0) {
            b->status = CRD_E_MEMORY;
            return 0;
        }
        if (fresh) { return add_text(b, TAG("TX"), text); }
        text = crdi_arena_format(arena, "%s_%d", name, i);
    }
}

static uint64_t add_channel(builder* b, const crd_column* c, uint64_t name, size_t byte)
{
    const uint64_t at = add_block(b, TAG("CN"), CRDI_MDF_CN_SIZE, CRDI_MDF_CN_LINKS);
    set_link(b, at, 2, name);
    set_link(b, at, 4, add_conversion(b, c));
    set_link(b, at, 6, add_unit(b, c->unit));
    set_link(b, at, 7, add_text(b, TAG("TX"), c->description));
    const uint64_t data = at + CRDI_MDF_HEAD + 8 * CRDI_MDF_CN_LINKS;
    set_u8(b, data + 2, data_type(c->type));
    set_u32(b, data + 4, (uint32_t)byte);
    set_u32(b, data + 8, (uint32_t)(8 * crdi_mdf_width(c->type)));
    return at;
}

static void add_channels(builder* b, const crd_recorder_options* opt, int raster, uint64_t group)
{
    static const crd_column time = {.name = "time", .unit = "s", .description = ""};
    crd_arena arena;
    crd_arena_init(&arena, b->ctx);
    crdi_map_init(&b->names, b->ctx);
    uint64_t last = add_channel(b, &time, mdf_write_head_add_name(b, &arena, time.name), 0);
    set_u8(b, last + CRDI_MDF_HEAD + 8 * CRDI_MDF_CN_LINKS, CRDI_MDF_CN_MASTER);
    set_u8(b, last + CRDI_MDF_HEAD + 8 * CRDI_MDF_CN_LINKS + 1, CRDI_MDF_SYNC_TIME);
    set_link(b, group, 1, last);
    size_t bytes = 8;
    for (int i = 0; i < opt->column_count && b->status == CRD_OK; i++) {
        const crd_column* c = &opt->columns[i];
        if (c->raster != raster) { continue; }
        const uint64_t at = add_channel(b, c, mdf_write_head_add_name(b, &arena, c->name), bytes);
        set_link(b, last, 0, at);
        last = at;
        bytes += crdi_mdf_width(c->type);
    }
    set_u32(b, group + CRDI_MDF_HEAD + 8 * CRDI_MDF_CG_LINKS + 24, (uint32_t)bytes);
    crdi_map_clear(&b->names);
    crd_arena_clear(&arena);
}

static void add_groups(builder* b, const crd_recorder_options* opt, const crdi_rows* rows,
                       crdi_mdf_group* groups)
{
    uint64_t link = CRDI_MDF_ID_SIZE + CRDI_MDF_HEAD; // first of HD, then next of DG
    for (int i = 0; i < rows->raster_count; i++) {
        const uint64_t dg = add_block(b, TAG("DG"), CRDI_MDF_DG_SIZE, CRDI_MDF_DG_LINKS);
        set_u64(b, link, dg);
        link = dg + CRDI_MDF_HEAD;
        const uint64_t cg = add_block(b, TAG("CG"), CRDI_MDF_CG_SIZE, CRDI_MDF_CG_LINKS);
        const uint64_t data = cg + CRDI_MDF_HEAD + 8 * CRDI_MDF_CG_LINKS;
        set_link(b, dg, 1, cg);
        set_link(b, cg, 2, opt->raster_count ? add_text(b, TAG("TX"), opt->rasters[i].name) : 0);
        set_u16(b, data + 18, '.'); // separates the parts of a name
        groups[i].data_link = dg + CRDI_MDF_HEAD + 8 * 2;
        groups[i].records = data + 8;
        add_channels(b, opt, i, cg);
    }
}

// ---- the head ----------------------------------------------------------------------------------

void crdi_mdf_set_id(uint8_t* p, bool finished)
{
    memset(p, 0, CRDI_MDF_ID_SIZE);
    memcpy(p, finished ? "MDF     4.10    Cardan  " : "UnFinMF 4.10    Cardan  ", 24);
    crdi_mdf_set_u16(p + 28, 410);
    if (!finished) { crdi_mdf_set_u16(p + 60, CRDI_MDF_UNFIN_CYCLES); }
}

// u64 ns since 1970, i16 minutes of the zone, i16 minutes of summer time, u8 flags = both are valid
static void set_time(builder* b, uint64_t at, int64_t ns)
{
    const time_t seconds = (time_t)(ns / 1000000000);
    struct tm local;
    int zone = 0, summer = 0;
    if (localtime_r(&seconds, &local)) {
        summer = local.tm_isdst > 0 ? 60 : 0;
        zone = (int)(local.tm_gmtoff / 60) - summer;
    }
    set_u64(b, at, (uint64_t)ns);
    set_u16(b, at + 8, (uint16_t)zone);
    set_u16(b, at + 10, (uint16_t)summer);
    set_u8(b, at + 12, 2);
}

static void add_history(builder* b, int64_t now)
{
    const uint64_t fh = add_block(b, TAG("FH"), CRDI_MDF_FH_SIZE, CRDI_MDF_FH_LINKS);
    set_link(b, CRDI_MDF_ID_SIZE, 1, fh);
    set_time(b, fh + CRDI_MDF_HEAD + 8 * CRDI_MDF_FH_LINKS, now);
    set_link(b, fh, 1,
             add_comment(b, "FHcomment", "created",
                         "<tool_id>cardan</tool_id><tool_vendor>Cardan</tool_vendor>"
                         "<tool_version>" CRD_VERSION "</tool_version>"));
}

crd_status crdi_mdf_make_head(crd_context* ctx, const crd_recorder_options* opt,
                              const crdi_rows* rows, crdi_mdf_head* head, crd_text* out)
{
    const int64_t now = crdi_clock_ns(CLOCK_REALTIME);
    builder b = {.ctx = ctx, .out = out};
    crdi_map_init(&b.units, ctx);
    add_zeros(&b, CRDI_MDF_ID_SIZE);
    if (!out->failed) { crdi_mdf_set_id((uint8_t*)out->data, false); }
    const uint64_t hd = add_block(&b, TAG("HD"), CRDI_MDF_HD_SIZE, CRDI_MDF_HD_LINKS);
    set_time(&b, hd + CRDI_MDF_HEAD + 8 * CRDI_MDF_HD_LINKS, opt->started ? opt->started : now);
    if (opt->title) { set_link(&b, hd, 5, add_comment(&b, "HDcomment", opt->title, "")); }
    add_history(&b, now);
    static const char* const names[] = CRDI_MDF_EVENT_NAMES;
    for (int i = 0; i < CRD_EVENT_KIND_COUNT; i++) {
        head->event_names[i] = add_text(&b, TAG("TX"), names[i]);
    }
    add_groups(&b, opt, rows, head->groups);
    add_zeros(&b, 0);
    crdi_map_clear(&b.units);
    crd_free(ctx, b.unit_links);
    return out->failed ? CRD_E_MEMORY : b.status;
}

// ---- attachments -------------------------------------------------------------------------------

static void* z_new(void* ctx, unsigned n, unsigned size)
{
    return crdi_new_array(ctx, n, size);
}

static void z_free(void* ctx, void* p)
{
    crd_free(ctx, p);
}

// The data deflated, at most as long as it is; 0 if that does not make it shorter.
static crd_status squeeze(crd_context* ctx, const crd_attachment* a, uint8_t* out, size_t* length)
{
    *length = 0;
    if (a->length < 64 || a->length > UINT32_MAX) { return CRD_OK; }
    z_stream z = {.zalloc = z_new, .zfree = z_free, .opaque = ctx};
    if (deflateInit(&z, Z_DEFAULT_COMPRESSION) != Z_OK) { return CRD_E_MEMORY; }
    z.next_in = (Bytef*)(uintptr_t)a->data;
    z.avail_in = (uInt)a->length;
    z.next_out = out;
    z.avail_out = (uInt)a->length;
    if (deflate(&z, Z_FINISH) == Z_STREAM_END) { *length = a->length - z.avail_out; }
    deflateEnd(&z);
    return CRD_OK;
}

// AT: links next, name, MIME type, comment; u16 flags; u16 creator; u32; 16 bytes MD5, not valid
// here; u64 size; u64 size as embedded; the bytes.
crd_status crdi_mdf_make_attachment(crd_context* ctx, const crd_attachment* a, uint8_t** out,
                                    size_t* length)
{
    const char* texts[2] = {a->name, a->mime ? a->mime : ""};
    size_t room = CRDI_MDF_AT_SIZE + ((a->length + 7) & ~(size_t)7);
    for (int i = 0; i < 2; i++) {
        room += CRDI_MDF_HEAD + ((strlen(texts[i]) + 1 + 7) & ~(size_t)7);
    }
    uint8_t* p = crdi_new(ctx, room);
    if (!p) { return CRD_E_MEMORY; }
    size_t embedded;
    const crd_status st = squeeze(ctx, a, p + CRDI_MDF_AT_SIZE, &embedded);
    if (st < 0) {
        crd_free(ctx, p);
        return st;
    }
    uint16_t flags = CRDI_MDF_AT_EMBEDDED | CRDI_MDF_AT_DEFLATED;
    if (embedded == 0) {
        flags = CRDI_MDF_AT_EMBEDDED;
        embedded = a->length;
        if (embedded) { memcpy(p + CRDI_MDF_AT_SIZE, a->data, embedded); }
    }
    const size_t size = CRDI_MDF_AT_SIZE + embedded;
    crdi_mdf_set_head(p, TAG("AT"), size, CRDI_MDF_AT_LINKS);
    uint8_t* data = p + CRDI_MDF_HEAD + 8 * CRDI_MDF_AT_LINKS;
    crdi_mdf_set_u16(data, flags);
    crdi_mdf_set_u64(data + 24, a->length);
    crdi_mdf_set_u64(data + 32, embedded);
    size_t at = (size + 7) & ~(size_t)7;
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(texts[i]);
        const size_t text = (CRDI_MDF_HEAD + n + 1 + 7) & ~(size_t)7;
        crdi_mdf_set_head(p + at, TAG("TX"), text, 0);
        memcpy(p + at + CRDI_MDF_HEAD, texts[i], n);
        crdi_mdf_set_u64(p + CRDI_MDF_HEAD + 8 + 8 * (size_t)i, at);
        at += text;
    }
    *out = p;
    *length = at;
    return CRD_OK;
}
