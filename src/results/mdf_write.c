// MDF 4.10: rows become byte planes, planes become chunks, chunks are appended to the file.
//
//   row -> tile of rows -> planes: byte b of value v of all rows together -> DZ -> file
//
// A chunk is a DL with one DZ, written at the end of the file; then one link of 8 bytes hangs it
// on the list of its raster, and the number of records follows. Events go the same way. So
// whatever has a link is whole: a process may be killed between any two writes. A partly filled
// chunk is written when it is time to; that is why each chunk brings a list element of its own.
#include "results/mdf_write.h"
#include "results/csv.h"
#include "results/deflate.h"

#include <string.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define TAG(t) CRDI_MDF_TAG((t)[0], (t)[1])

enum {
    CHUNK_BYTES = 4 << 20, // the most that readers expect
    CHUNK_LEAST = 256 << 10,
    TILE = 64,            // rows that are turned into planes together: a cache line of each plane
    CHUNKS_TO_FLUSH = 16, // of one raster until the others are looked after
    DL_SIZE = CRDI_MDF_HEAD + 8 * 2 + 8 + 8,
    CHUNK_HEAD = CRDI_MDF_HL_SIZE + DL_SIZE + CRDI_MDF_DZ_SIZE,
};

typedef struct lane {
    crd_type type;
    int word;
    size_t byte, width; // in the record
} lane;

typedef struct group {
    lane* lanes; // time first
    int lane_count;
    size_t words; // of a row
    size_t record_bytes;
    crd_word* tile;  // (TILE)(words)
    size_t tiled;    // rows in the tile
    uint8_t* planes; // (record_bytes)(stride)
    size_t stride, capacity;
    size_t rows; // in the planes
    // in the file
    bool listed;       // there is an HL
    uint64_t link;     // where the next chunk's offset goes
    uint64_t count_at; // where the number of records goes
    uint64_t records;
} group;

typedef struct attachment {
    struct attachment* next;
    uint8_t* block;
    size_t length;
} attachment;

typedef struct mdf_sink {
    crdi_sink base;
    crd_text head; // until it is written
    uint64_t end;  // of the file
    uint64_t event_names[CRD_EVENT_KIND_COUNT];
    uint64_t event_link, attachment_link; // where the next one's offset goes
    attachment *attachments, **last_attachment;
    attachment* to_write;
    group* groups;
    int group_count;
    int chunks; // since all rasters were flushed
    crdi_deflate* deflate;
    uint8_t* chunk; // bytes of one, with its heads
} mdf_sink;

// ---- the file ----------------------------------------------------------------------------------

// At the end of the file, which grows by whole blocks only.
static bool append_block(mdf_sink* m, const void* bytes, size_t length)
{
    if (crdi_sink_write(&m->base, m->base.fd, bytes, length, (int64_t)m->end)) {
        m->end += length;
        return true;
    }
    const int cut = ftruncate(m->base.fd, (off_t)m->end);
    (void)cut; // then there are bytes behind the end that nothing points to
    return false;
}

static bool set_word(mdf_sink* m, uint64_t at, uint64_t x)
{
    uint8_t bytes[8];
    crdi_mdf_set_u64(bytes, x);
    return crdi_sink_write(&m->base, m->base.fd, bytes, sizeof bytes, (int64_t)at);
}

// ---- rows to planes ----------------------------------------------------------------------------

// Byte b of 16 values to `out + b * stride`, for the lowest `width` bytes.
static void transpose_16_values(const crd_word* in, size_t step, uint8_t* out, size_t stride,
                                size_t width)
{
#ifdef __SSE2__
    // Interleaving four times brings byte b of value 0, 1, 2 ... together.
    __m128i a[8], b[8], c[8];
    for (size_t i = 0; i < 8; i++) {
        a[i] =
            _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i*)(const void*)(in + i * step)),
                              _mm_loadl_epi64((const __m128i*)(const void*)(in + (i + 8) * step)));
    }
    for (size_t i = 0; i < 4; i++) {
        b[i] = _mm_unpacklo_epi8(a[i], a[i + 4]);
        b[i + 4] = _mm_unpackhi_epi8(a[i], a[i + 4]);
    }
    for (size_t i = 0; i < 2; i++) { // bytes 0 1, 2 3, 4 5, 6 7
        c[i] = _mm_unpacklo_epi8(b[i], b[i + 2]);
        c[i + 2] = _mm_unpackhi_epi8(b[i], b[i + 2]);
        c[i + 4] = _mm_unpacklo_epi8(b[i + 4], b[i + 6]);
        c[i + 6] = _mm_unpackhi_epi8(b[i + 4], b[i + 6]);
    }
    for (size_t i = 0; i < width; i++) {
        const __m128i x = c[i & ~(size_t)1], y = c[i | 1];
        const __m128i v = i & 1 ? _mm_unpackhi_epi8(x, y) : _mm_unpacklo_epi8(x, y);
        _mm_storeu_si128((__m128i*)(void*)(out + i * stride), v);
    }
#else
    for (size_t k = 0; k < 16; k++) {
        const uint64_t word = (uint64_t)in[k * step].integer;
        for (size_t i = 0; i < width; i++) {
            out[i * stride + k] = (uint8_t)(word >> 8 * i);
        }
    }
#endif
}

// Types whose bytes are not the lowest of their word.
static void convert_16_values(crd_type type, const crd_word* in, size_t step, crd_word* out)
{
    for (size_t k = 0; k < 16; k++) {
        const crd_word w = in[k * step];
        if (type == CRD_FLOAT32) {
            const float x = (float)w.real;
            uint32_t bits;
            memcpy(&bits, &x, sizeof bits);
            out[k].integer = bits;
        } else {
            out[k].integer = w.integer != 0;
        }
    }
}

// Texts up to their length; the planes were zero.
static void turn_texts(group* g, const lane* l)
{
    for (size_t k = 0; k < g->tiled; k++) {
        char text[16 * (CRD_RECORD_BYTES - 1)];
        const crd_word* word = g->tile + k * g->words + l->word;
        const size_t n = l->type == CRD_STRING ? crdi_csv_copy_string(text, word)
                                               : crdi_csv_copy_binary(text, word);
        uint8_t* out = g->planes + l->byte * g->stride + g->rows + k;
        for (size_t i = 0; i < n; i++) {
            out[i * g->stride] = (uint8_t)text[i];
        }
    }
}

// The planes do not fit into the near caches, and no hardware foresees where the next one is.
static void fetch_ahead(const group* g, int i)
{
    if (i >= g->lane_count || crd_type_kind(g->lanes[i].type) == CRD_BYTES) { return; }
    const uint8_t* p = g->planes + g->lanes[i].byte * g->stride + g->rows;
    for (size_t k = 0; k < g->lanes[i].width; k++) {
        __builtin_prefetch(p + k * g->stride, 1);
    }
}

static void turn_tile(group* g)
{
    for (int i = 0; i < g->lane_count; i++) {
        const lane* l = &g->lanes[i];
        if (crd_type_kind(l->type) == CRD_BYTES) {
            turn_texts(g, l);
            continue;
        }
        fetch_ahead(g, i + 4);
        const bool plain = l->type != CRD_FLOAT32 && l->type != CRD_BOOLEAN && l->type != CRD_CLOCK;
        for (size_t k = 0; k < TILE; k += 16) { // beyond the rows there are, too: nobody looks
            const crd_word* in = g->tile + k * g->words + l->word;
            uint8_t* out = g->planes + l->byte * g->stride + g->rows + k;
            crd_word other[16];
            if (!plain) { convert_16_values(l->type, in, g->words, other); }
            transpose_16_values(plain ? in : other, plain ? g->words : 1, out, g->stride, l->width);
        }
    }
    g->rows += g->tiled;
    g->tiled = 0;
}

// ---- chunks ------------------------------------------------------------------------------------

static void clear_texts(group* g)
{
    for (int i = 0; i < g->lane_count; i++) {
        const lane* l = &g->lanes[i];
        if (crd_type_kind(l->type) == CRD_BYTES) {
            memset(g->planes + l->byte * g->stride, 0, l->width * g->stride);
        }
    }
}

//   HL  links DL; u16 flags; u8 method; 5 zero          in front of the first chunk only
//   DL  links next, data; u8 flags; 3 zero; u32 number of data blocks = 1; u64 offset of its bytes
//   DZ  u8[2] "DT"; u8 method; u8 0; u32 record length; u64 original size; u64 compressed size
static bool write_rows(mdf_sink* m, group* g, size_t from, size_t rows)
{
    const crdi_planes planes = {g->planes + from, g->record_bytes, rows, g->stride};
    uint8_t* p = m->chunk;
    const size_t packed = crdi_deflate_planes(m->deflate, planes, p + CHUNK_HEAD);
    const size_t skip = g->listed ? CRDI_MDF_HL_SIZE : 0;
    memset(p, 0, CHUNK_HEAD);
    const uint64_t start = m->end - skip; // of p in the file
    crdi_mdf_set_head(p, TAG("HL"), CRDI_MDF_HL_SIZE, CRDI_MDF_HL_LINKS);
    crdi_mdf_set_u64(p + CRDI_MDF_HEAD, start + CRDI_MDF_HL_SIZE);
    p[CRDI_MDF_HEAD + 10] = CRDI_MDF_TRANSPOSED;
    uint8_t* dl = p + CRDI_MDF_HL_SIZE;
    crdi_mdf_set_head(dl, TAG("DL"), DL_SIZE, 2);
    crdi_mdf_set_u64(dl + CRDI_MDF_HEAD + 8, start + CRDI_MDF_HL_SIZE + DL_SIZE);
    crdi_mdf_set_u32(dl + CRDI_MDF_HEAD + 20, 1);
    crdi_mdf_set_u64(dl + CRDI_MDF_HEAD + 24, g->records * g->record_bytes);
    uint8_t* dz = dl + DL_SIZE;
    crdi_mdf_set_head(dz, TAG("DZ"), CRDI_MDF_DZ_SIZE + packed, 0);
    memcpy(dz + CRDI_MDF_HEAD, "DT", 2);
    dz[CRDI_MDF_HEAD + 2] = CRDI_MDF_TRANSPOSED;
    crdi_mdf_set_u32(dz + CRDI_MDF_HEAD + 4, (uint32_t)g->record_bytes);
    crdi_mdf_set_u64(dz + CRDI_MDF_HEAD + 8, rows * g->record_bytes);
    crdi_mdf_set_u64(dz + CRDI_MDF_HEAD + 16, packed);
    size_t size = CHUNK_HEAD + packed;
    while (size & 7) {
        p[size++] = 0;
    }
    if (!append_block(m, p + skip, size - skip)) { return false; }
    if (!set_word(m, g->link, start + skip)) { return false; }
    g->listed = true;
    g->link = start + CRDI_MDF_HL_SIZE + CRDI_MDF_HEAD; // next of this DL
    g->records += rows;
    m->base.written += (int64_t)rows;
    return set_word(m, g->count_at, g->records);
}

// The first `done` rows leave the planes.
static void drop_rows(group* g, size_t done)
{
    const size_t left = g->rows - done;
    for (int i = 0; left && i < g->lane_count; i++) {
        const lane* l = &g->lanes[i];
        for (size_t b = 0; b < l->width; b++) {
            uint8_t* plane = g->planes + (l->byte + b) * g->stride;
            memmove(plane, plane + done, left);
            if (crd_type_kind(l->type) == CRD_BYTES) { memset(plane + left, 0, g->stride - left); }
        }
    }
    g->rows = left;
    if (!left) { clear_texts(g); }
}

// Where the disk has no room for a chunk, it has room for a smaller one: nothing that fits is lost.
static void write_chunk(mdf_sink* m, group* g)
{
    if (g->tiled) { turn_tile(g); }
    if (g->rows == 0 || m->base.error) { return; }
    size_t done = 0, n = g->rows;
    while (done < g->rows) {
        if (n > g->rows - done) { n = g->rows - done; }
        if (write_rows(m, g, done, n)) {
            done += n;
            continue;
        }
        if (n == 1 || !crdi_sink_is_full(&m->base)) { break; }
        m->base.error = 0;
        n /= 2;
    }
    drop_rows(g, done);
}

// Both have the same groups: the planes change places.
static int64_t hand_over_mdf(crdi_sink* s, crdi_sink* to)
{
    mdf_sink *m = (mdf_sink*)s, *t = (mdf_sink*)to;
    for (int i = 0; i < m->group_count; i++) {
        group* g = &m->groups[i];
        if (t) {
            group* h = &t->groups[i];
            uint8_t* planes = h->planes;
            crd_word* tile = h->tile;
            h->planes = g->planes;
            h->tile = g->tile;
            h->rows = g->rows;
            h->tiled = g->tiled;
            g->planes = planes;
            g->tile = tile;
        }
        g->tiled = 0;
        g->rows = 0;
        if (!t) { clear_texts(g); }
    }
    return 0;
}

static void flush_mdf(crdi_sink* s)
{
    mdf_sink* m = (mdf_sink*)s;
    for (int i = 0; i < m->group_count; i++) {
        write_chunk(m, &m->groups[i]);
    }
    m->chunks = 0;
}

static void put_mdf_row(crdi_sink* s, int raster, const crd_word* row)
{
    mdf_sink* m = (mdf_sink*)s;
    group* g = &m->groups[raster];
    memcpy(g->tile + g->tiled * g->words, row, g->words * sizeof *row);
    if (++g->tiled < TILE) { return; }
    turn_tile(g);
    if (g->rows < g->capacity) { return; }
    write_chunk(m, g);
    if (++m->chunks >= CHUNKS_TO_FLUSH) { flush_mdf(s); }
}

// ---- events and attachments --------------------------------------------------------------------

// EV: links next, parent, range, name, comment; u8 type; u8 sync; u8 range; u8 cause; u8 flags;
// 3 zero; u32 scopes; u16 attachments; u16 creator; i64 base, f64 factor: their product is the
// time.
static void put_event(crdi_sink* s, const crdi_event* e)
{
    mdf_sink* m = (mdf_sink*)s;
    enum { TEXT = (CRDI_MDF_HEAD + CRDI_EVENT_TEXT + 7) & ~7, TOOL = 2, ERROR = 1 };
    uint8_t block[CRDI_MDF_EV_SIZE + TEXT] = {0};
    const size_t text = (CRDI_MDF_HEAD + strlen(e->text) + 1 + 7) & ~(size_t)7;
    crdi_mdf_set_head(block, TAG("EV"), CRDI_MDF_EV_SIZE, CRDI_MDF_EV_LINKS);
    crdi_mdf_set_u64(block + CRDI_MDF_HEAD + 8 * 3, m->event_names[e->kind]);
    crdi_mdf_set_u64(block + CRDI_MDF_HEAD + 8 * 4, e->text[0] ? m->end + CRDI_MDF_EV_SIZE : 0);
    uint8_t* data = block + CRDI_MDF_HEAD + 8 * CRDI_MDF_EV_LINKS;
    data[0] = e->kind == CRD_EVENT_START  ? CRDI_MDF_EV_START
              : e->kind == CRD_EVENT_STOP ? CRDI_MDF_EV_STOP
                                          : CRDI_MDF_EV_MARKER;
    data[1] = CRDI_MDF_SYNC_TIME;
    data[2] = CRDI_MDF_EV_POINT;
    data[3] = e->kind == CRD_EVENT_ERROR ? ERROR : TOOL;
    crdi_mdf_set_u64(data + 16, 1);
    crdi_mdf_set_f64(data + 24, e->time);
    crdi_mdf_set_head(block + CRDI_MDF_EV_SIZE, TAG("TX"), text, 0);
    memcpy(block + CRDI_MDF_EV_SIZE + CRDI_MDF_HEAD, e->text, strlen(e->text));
    const uint64_t at = m->end;
    if (append_block(m, block, CRDI_MDF_EV_SIZE + (e->text[0] ? text : 0))) {
        set_word(m, m->event_link, at);
        m->event_link = at + CRDI_MDF_HEAD;
    }
}

static void write_attachments(mdf_sink* m)
{
    for (; m->to_write && !m->base.error; m->to_write = m->to_write->next) {
        uint8_t* p = m->to_write->block;
        const uint64_t at = m->end;
        for (size_t i = 1; i <= 2; i++) { // name and MIME type, relative so far
            uint64_t relative = 0;
            for (size_t k = 8; k-- > 0;) {
                relative = relative << 8 | p[CRDI_MDF_HEAD + 8 * i + k];
            }
            crdi_mdf_set_u64(p + CRDI_MDF_HEAD + 8 * i, at + relative);
        }
        if (append_block(m, p, m->to_write->length)) {
            set_word(m, m->attachment_link, at);
            m->attachment_link = at + CRDI_MDF_HEAD;
        }
    }
}

static crd_status attach_to_mdf(crdi_sink* s, const crd_attachment* a)
{
    mdf_sink* m = (mdf_sink*)s;
    attachment* n = crdi_new(s->ctx, sizeof *n);
    if (!n) { return CRD_E_MEMORY; }
    const crd_status st = crdi_mdf_make_attachment(s->ctx, a, &n->block, &n->length);
    if (st < 0) {
        crd_free(s->ctx, n);
        return st;
    }
    *m->last_attachment = n;
    m->last_attachment = &n->next;
    if (!m->to_write) { m->to_write = n; }
    return CRD_OK;
}

// ---- from the first block to the last ----------------------------------------------------------

static void start_mdf(crdi_sink* s)
{
    mdf_sink* m = (mdf_sink*)s;
    if (append_block(m, m->head.data, m->head.length)) { write_attachments(m); }
}

// After a failure, too: what has links is whole, so the file is finished without the rest.
static void finish_mdf(crdi_sink* s)
{
    mdf_sink* m = (mdf_sink*)s;
    if (!s->error) { flush_mdf(s); }
    if (!s->error) { write_attachments(m); }
    if (m->end > 0) {
        uint8_t id[CRDI_MDF_ID_SIZE];
        crdi_mdf_set_id(id, true);
        crdi_sink_write(s, s->fd, id, sizeof id, 0);
    }
    crdi_sink_check(s);
    crdi_sink_close(s);
}

static void destroy_mdf_sink(crdi_sink* s)
{
    mdf_sink* m = (mdf_sink*)s;
    for (attachment* a = m->attachments; a;) {
        attachment* next = a->next;
        crd_free(s->ctx, a->block);
        crd_free(s->ctx, a);
        a = next;
    }
    for (int i = 0; m->groups && i < m->group_count; i++) {
        crd_free(s->ctx, m->groups[i].lanes);
        crd_free(s->ctx, m->groups[i].tile);
        crd_free(s->ctx, m->groups[i].planes);
    }
    crd_free(s->ctx, m->groups);
    crd_free(s->ctx, m->deflate);
    crd_free(s->ctx, m->chunk);
    crd_text_clear(&m->head);
    crdi_sink_clear(s);
    crd_free(s->ctx, m);
}

static const crdi_sink_ops ops = {
    .start = start_mdf,
    .row = put_mdf_row,
    .flush = flush_mdf,
    .event = put_event,
    .hand_over = hand_over_mdf,
    .finish = finish_mdf,
    .attach = attach_to_mdf,
    .destroy = destroy_mdf_sink,
    .naps_to_flush = 200,
    .stack_bytes = 256 << 10,
};

// ---- create ------------------------------------------------------------------------------------

static crd_status make_group(mdf_sink* m, const crdi_rows* rows, int raster)
{
    crd_context* ctx = m->base.ctx;
    group* g = &m->groups[raster];
    g->words = rows->words[raster];
    g->lane_count = 1;
    for (int i = 0; i < rows->field_count; i++) {
        g->lane_count += rows->fields[i].raster == raster;
    }
    g->lanes = crdi_new_array(ctx, (size_t)g->lane_count, sizeof *g->lanes);
    if (!g->lanes) { return CRD_E_MEMORY; }
    g->lanes[0] = (lane){.type = CRD_FLOAT64, .width = 8};
    g->record_bytes = 8;
    for (int i = 0, n = 1; i < rows->field_count; i++) {
        const crdi_field* f = &rows->fields[i];
        if (f->raster != raster) { continue; }
        const size_t width = crdi_mdf_width(f->type);
        g->lanes[n++] =
            (lane){.type = f->type, .word = f->word, .byte = g->record_bytes, .width = width};
        g->record_bytes += width;
    }
    size_t bytes = CHUNK_BYTES / (size_t)rows->raster_count;
    if (bytes < CHUNK_LEAST) { bytes = CHUNK_LEAST; }
    g->capacity = bytes / g->record_bytes / TILE * TILE;
    if (g->capacity == 0) { g->capacity = TILE; }
    g->stride = g->capacity + (g->capacity % (2 * TILE) ? 0 : TILE); // spread over the cache
    g->tile = crdi_new_array(ctx, TILE * g->words, sizeof *g->tile);
    g->planes = crdi_new_array(ctx, g->record_bytes, g->stride);
    return g->tile && g->planes ? CRD_OK : CRD_E_MEMORY;
}

static crd_status make_groups(mdf_sink* m, const crdi_rows* rows)
{
    m->groups = crdi_new_array(m->base.ctx, (size_t)rows->raster_count, sizeof *m->groups);
    if (!m->groups) { return CRD_E_MEMORY; }
    m->group_count = rows->raster_count;
    size_t most = 0;
    for (int i = 0; i < m->group_count; i++) {
        const crd_status st = make_group(m, rows, i);
        if (st < 0) { return st; }
        const size_t bound = crdi_deflate_bound(m->groups[i].record_bytes, m->groups[i].capacity);
        if (bound > most) { most = bound; }
    }
    m->deflate = crdi_new(m->base.ctx, sizeof *m->deflate);
    m->chunk = crdi_new(m->base.ctx, CHUNK_HEAD + most + 8);
    return m->deflate && m->chunk ? CRD_OK : CRD_E_MEMORY;
}

static crd_status make_head(mdf_sink* m, const crd_recorder_options* opt, const crdi_rows* rows)
{
    crd_context* ctx = m->base.ctx;
    crdi_mdf_head head = {.groups =
                              crdi_new_array(ctx, (size_t)rows->raster_count, sizeof *head.groups)};
    if (!head.groups) { return CRD_E_MEMORY; }
    const crd_status st = crdi_mdf_make_head(ctx, opt, rows, &head, &m->head);
    for (int i = 0; i < m->group_count; i++) {
        m->groups[i].link = head.groups[i].data_link;
        m->groups[i].count_at = head.groups[i].records;
    }
    memcpy(m->event_names, head.event_names, sizeof m->event_names);
    m->attachment_link = CRDI_MDF_ID_SIZE + CRDI_MDF_HEAD + 8 * 3;
    m->event_link = CRDI_MDF_ID_SIZE + CRDI_MDF_HEAD + 8 * 4;
    crd_free(ctx, head.groups);
    return st;
}

crd_status crdi_mdf_sink(crd_context* ctx, const crd_recorder_options* opt, const crdi_rows* rows,
                         crdi_sink** out)
{
    crd_status st = CRD_OK;
    mdf_sink* m = crdi_new(ctx, sizeof *m);
    if (!m) { return CRD_E_MEMORY; }
    m->last_attachment = &m->attachments;
    crd_text_init(&m->head, ctx);
    CRD_TRY(crdi_sink_init(&m->base, &ops, ctx, opt->path));
    CRD_TRY(make_groups(m, rows));
    CRD_TRY(make_head(m, opt, rows));
    *out = &m->base;
    return CRD_OK;
fail:
    destroy_mdf_sink(&m->base);
    return st;
}
