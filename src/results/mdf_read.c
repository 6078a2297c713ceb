// What is in an MDF file: groups, channels, conversions, events, attachments.
//
//   HD -> DG -> CG -> CN -> CC     data group, channel group, channel, conversion
//    |     +--> data               (mdf_read_data.c)
//    +--> FH, AT, EV, MD           history, attachments, events, comment
#include "results/mdf_read.h"

#include <libdeflate.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEEPEST = 8 }; // structures in structures

typedef struct reader {
    crdi_mdf_recording* r;
    crdi_mdf_file* f;
    crd_arena* arena;
    crd_group_info* groups; // as r->groups, from the context until the end
    size_t group_capacity;
    crd_signal_info* signals; // as r->channels
    size_t signal_capacity;
} reader;

// The group that is being read.
typedef struct group {
    crdi_mdf_group g;
    const char* name;
    uint64_t block;
    uint32_t identifier; // bytes in front of a record
    bool has_time;
    uint64_t text_bytes; // outside of the records
} group;

// ---- head of the file --------------------------------------------------------------------------

// ID:  0  char[8]  "MDF     " or "UnFinMF "    28  u16  version, 410
//      8  char[8]  "4.10    "                  60  u16  what is unfinished
//     16  char[8]  program
static crd_status read_id(reader* d)
{
    crdi_mdf_file* f = d->f;
    uint8_t id[CRDI_MDF_ID_SIZE];
    crd_recording_info* info = &d->r->base.info;
    if (f->size < sizeof id + CRDI_MDF_HD_SIZE) {
        return crdi_mdf_fail(f, 0, "%llu bytes, too short for an MDF file",
                             (unsigned long long)f->size);
    }
    const crd_status st = crdi_mdf_read(f, 0, id, sizeof id);
    if (st < 0) { return st; }
    f->unfinished = memcmp(id, "UnFinMF ", 8) == 0;
    if (!f->unfinished && memcmp(id, "MDF ", 4) != 0) {
        return crdi_mdf_fail(f, 0, "not an MDF file, expected it to begin with 'MDF'");
    }
    unsigned version = crdi_mdf_u16(id + 28);
    if (version == 0 && id[8] >= '0' && id[8] <= '9') { version = 100U * (unsigned)(id[8] - '0'); }
    if (version < 400 || version > 420) {
        return crdi_fail(f->ctx, CRD_E_UNSUPPORTED,
                         "%s: MDF %u.%02u, expected 4.00 to 4.20; asammdf converts it: "
                         "MDF(\"old\").convert(\"4.10\").save(\"new.mf4\")",
                         f->path, version / 100, version % 100);
    }
    f->flags = f->unfinished ? crdi_mdf_u16(id + 60) : 0;
    // An open block claims the rest of the file, and others may lie there.
    if (f->unfinished) { f->budget *= 2; }
    info->unfinished = f->unfinished;
    info->format = crdi_arena_format(d->arena, "MDF %u.%02u", version / 100, version % 100);
    size_t n = 8;
    while (n && (id[16 + n - 1] == ' ' || id[16 + n - 1] == 0)) {
        n--;
    }
    info->program = crdi_arena_text(d->arena, (const char*)id + 16, n);
    return info->format && info->program ? CRD_OK : CRD_E_MEMORY;
}

// FH: links next, comment. The first one is of the program that made the file.
static crd_status read_history(reader* d, uint64_t offset)
{
    crdi_mdf_block b;
    const char* xml = "";
    crd_recording_info* info = &d->r->base.info;
    if (offset == 0) { return CRD_OK; }
    crd_status st = crdi_mdf_expect(d->f, offset, CRDI_MDF_TAG('F', 'H'), CRDI_MDF_FH_LINKS, 0, &b);
    if (st == CRD_OK) { st = crdi_mdf_raw_text(d->f, d->arena, b.links[1], &xml); }
    if (st < 0) { return st; }
    const char* tool = crdi_mdf_element(d->arena, xml, "tool_id");
    const char* version = crdi_mdf_element(d->arena, xml, "tool_version");
    if (!tool || !version) { return CRD_E_MEMORY; }
    if (!tool[0]) { return CRD_OK; }
    info->program = crdi_arena_format(d->arena, "%s%s%s", tool, version[0] ? " " : "", version);
    return info->program ? CRD_OK : CRD_E_MEMORY;
}

// AT: links next, file name, MIME type, comment
//      0  u16  flags               8  md5          32  u64   bytes stored
//      2  u16  creator, u32 0     24  u64  size    40  bytes
static crd_status read_attachments(reader* d, uint64_t offset)
{
    crd_status st = CRD_OK;
    crdi_mdf_file* f = d->f;
    crd_recording_info* info = &d->r->base.info;
    crd_attachment_info* infos = NULL;
    crdi_mdf_attachment* places = NULL;
    size_t capacity = 0, place_capacity = 0, count = 0;
    for (crdi_mdf_block b; offset; offset = b.links[0]) {
        CRD_TRY(crdi_mdf_expect(f, offset, CRDI_MDF_TAG('A', 'T'), CRDI_MDF_AT_LINKS, 40, &b));
        crd_attachment_info a = {.size = crdi_mdf_u64(b.data + 24)};
        CRD_TRY(crdi_mdf_text(f, d->arena, b.links[1], &a.name));
        CRD_TRY(crdi_mdf_text(f, d->arena, b.links[2], &a.mime));
        const unsigned flags = crdi_mdf_u16(b.data);
        crdi_mdf_attachment p = {.block = offset,
                                 .at = b.data_at + 40,
                                 .stored = crdi_mdf_u64(b.data + 32),
                                 .size = a.size,
                                 .deflated = flags & CRDI_MDF_AT_DEFLATED};
        if (!(flags & CRDI_MDF_AT_EMBEDDED)) {
            crdi_mdf_note(f, "attachment '%s' is another file, it is left out", a.name);
            continue;
        }
        if (p.stored > b.offset + b.length - p.at || (!p.deflated && p.size != p.stored)) {
            st = crdi_mdf_fail(f, offset, "attachment '%.60s' of %llu bytes, stored in %llu",
                               a.name, (unsigned long long)p.size, (unsigned long long)p.stored);
            goto fail;
        }
        if (p.deflated) { CRD_TRY(crdi_mdf_check_inflated(f, offset, p.stored, p.size)); }
        void* more = crdi_grow(f->ctx, infos, &capacity, count + 1, sizeof *infos);
        if (more) { infos = more; }
        void* also =
            more ? crdi_grow(f->ctx, places, &place_capacity, count + 1, sizeof *places) : NULL;
        if (also) { places = also; }
        if (!also) {
            st = CRD_E_MEMORY;
            goto fail;
        }
        infos[count] = a;
        places[count++] = p;
    }
    if (count) {
        crd_attachment_info* i = crdi_arena_new(d->arena, count, sizeof *i);
        crdi_mdf_attachment* p = crdi_arena_new(d->arena, count, sizeof *p);
        if (i && p) {
            info->attachments = memcpy(i, infos, count * sizeof *i);
            d->r->attachments = memcpy(p, places, count * sizeof *p);
            info->attachment_count = (int)count;
        } else {
            st = CRD_E_MEMORY;
        }
    }
fail:
    crd_free(f->ctx, infos);
    crd_free(f->ctx, places);
    return st;
}

static crd_event_kind event_kind(const crdi_mdf_block* b, const char* name)
{
    static const char* const names[] = CRDI_MDF_EVENT_NAMES;
    const uint8_t type = b->data[0], range = b->data[2], cause = b->data[3];
    for (int i = 0; i < CRD_EVENT_KIND_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) { return (crd_event_kind)i; }
    }
    if (type == CRDI_MDF_EV_START ||
        (type == CRDI_MDF_EV_RECORDING && range == CRDI_MDF_EV_BEGIN)) {
        return CRD_EVENT_START;
    }
    if (type == CRDI_MDF_EV_STOP || (type == CRDI_MDF_EV_RECORDING && range == CRDI_MDF_EV_END)) {
        return CRD_EVENT_STOP;
    }
    return cause == 1 ? CRD_EVENT_ERROR : CRD_EVENT_MARK;
}

// EV: links next, parent, range, name, comment, scopes, attachments
//      0  u8  type     3  u8  cause                         16  i64  time = this
//      1  u8  sync     4  u8  flags                         24  f64  times this
//      2  u8  range    8  u32 scopes, u16 attachments, u16
static crd_status read_events(reader* d, uint64_t offset)
{
    crd_status st = CRD_OK;
    crdi_mdf_file* f = d->f;
    crd_event_info* events = NULL;
    size_t capacity = 0, count = 0;
    for (crdi_mdf_block b; offset; offset = b.links[0]) {
        CRD_TRY(crdi_mdf_expect(f, offset, CRDI_MDF_TAG('E', 'V'), CRDI_MDF_EV_LINKS, 32, &b));
        if (b.data[1] != CRDI_MDF_SYNC_TIME) { continue; } // at an angle, a distance, a record
        const char *name, *comment;
        CRD_TRY(crdi_mdf_text(f, d->arena, b.links[3], &name));
        CRD_TRY(crdi_mdf_text(f, d->arena, b.links[4], &comment));
        crd_event_info e = {.kind = event_kind(&b, name), .text = comment[0] ? comment : name};
        e.time = (double)(int64_t)crdi_mdf_u64(b.data + 16) * crdi_mdf_f64(b.data + 24);
        void* more = crdi_grow(f->ctx, events, &capacity, count + 1, sizeof *events);
        if (!more) {
            st = CRD_E_MEMORY;
            goto fail;
        }
        events = more;
        events[count++] = e;
    }
    if (count) {
        crd_event_info* kept = crdi_arena_new(d->arena, count, sizeof *kept);
        if (kept) {
            d->r->base.info.events = memcpy(kept, events, count * sizeof *kept);
            d->r->base.info.event_count = (int)count;
        } else {
            st = CRD_E_MEMORY;
        }
    }
fail:
    crd_free(f->ctx, events);
    return st;
}

// ---- conversions -------------------------------------------------------------------------------

// n values and a text for each behind them; the last text is for all others.
static crd_status read_labels(reader* d, const crdi_mdf_block* b, unsigned texts, unsigned values,
                              crdi_mdf_conversion* c)
{
    const unsigned n = values < texts ? values : texts;
    crd_label* labels = crdi_arena_new(d->arena, n, sizeof *labels);
    if (!labels) { return CRD_E_MEMORY; }
    for (unsigned i = 0; i < n; i++) {
        uint8_t value[8], link[8];
        crd_status st = crdi_mdf_read(d->f, b->data_at + 24 + 8 * (uint64_t)i, value, 8);
        if (st == CRD_OK) {
            st = crdi_mdf_read(
                d->f, b->offset + CRDI_MDF_HEAD + 8 * (CRDI_MDF_CC_LINKS + (uint64_t)i), link, 8);
        }
        if (st < 0) { return st; }
        const double x = crdi_mdf_f64(value);
        const uint64_t at = crdi_mdf_u64(link);
        crdi_mdf_block text;
        if (!at || !(fabs(x) < 9e18) || x != floor(x)) { continue; }
        st = crdi_mdf_read_block(d->f, at, false, &text);
        if (st < 0) { return st; }
        if (crdi_mdf_is(&text, 'C', 'C')) { continue; } // numbers again
        crd_label* l = &labels[c->label_count];
        st = crdi_mdf_text(d->f, d->arena, at, &l->text);
        if (st < 0) { return st; }
        l->value = (int64_t)x;
        c->label_count++;
    }
    c->labels = labels;
    return CRD_OK;
}

// CC: links name, unit, comment, inverse, then references
//      0  u8  type       2  u16  flags         6  u16  values    16  f64  range
//      1  u8  digits     4  u16  references    8  f64  range     24  f64[] values
static crd_status read_conversion(reader* d, uint64_t offset, const char* channel,
                                  const crdi_mdf_conversion** out)
{
    static const crdi_mdf_conversion none = {.unit = ""};
    crd_status st = CRD_OK;
    crdi_mdf_file* f = d->f;
    crdi_mdf_block b;
    *out = &none;
    if (offset == 0) { return CRD_OK; }
    CRD_TRY(crdi_mdf_read_block(f, offset, false, &b));
    const bool is_cc = crdi_mdf_is(&b, 'C', 'C');
    *out = crdi_mdf_recall(f, offset | CRDI_MDF_CONVERSION);
    if (is_cc && *out) { return CRD_OK; } // several channels share it
    const unsigned texts = crdi_mdf_u16(b.data + 4), values = crdi_mdf_u16(b.data + 6);
    const uint64_t size = CRDI_MDF_CC_SIZE + 8 * ((uint64_t)texts + values);
    if (!is_cc || b.link_count < CRDI_MDF_CC_LINKS + (uint64_t)texts || b.length < size) {
        return crdi_mdf_fail(f, offset, "not a conversion (CC) of %u texts and %u values", texts,
                             values);
    }
    crdi_mdf_conversion* c = crdi_arena_new(d->arena, 1, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_mdf_remember(f, offset | CRDI_MDF_CONVERSION, c));
    CRD_TRY(crdi_mdf_spend(f, offset, b.length));
    CRD_TRY(crdi_mdf_text(f, d->arena, b.links[1], &c->unit));
    const uint8_t type = b.data[0];
    const unsigned wanted = type == CRDI_MDF_CC_LINEAR ? 2 : type == CRDI_MDF_CC_RATIONAL ? 6 : 0;
    if (values < wanted) {
        return crdi_mdf_fail(f, offset, "a conversion with %u values, expected %u", values, wanted);
    }
    for (unsigned i = 0; i < wanted; i++) { // 24 + 6 * 8 bytes are in the block's data
        c->p[i] = crdi_mdf_f64(b.data + 24 + 8 * i);
    }
    if (type == CRDI_MDF_CC_LINEAR && !(c->p[0] == 0 && c->p[1] == 1)) {
        c->kind = CRDI_MDF_BY_LINE;
    } else if (type == CRDI_MDF_CC_RATIONAL) {
        c->kind = CRDI_MDF_BY_QUOTIENT;
    } else if (type == CRDI_MDF_CC_VALUE_TO_TEXT) {
        CRD_TRY(read_labels(d, &b, texts, values, c));
    } else if (type > CRDI_MDF_CC_RATIONAL) {
        crdi_mdf_note(f, "channel '%s': its conversion (type %d) is not made, these are raw values",
                      channel, type);
    }
    *out = c;
fail:
    return st;
}

// ---- channels ----------------------------------------------------------------------------------

static bool mdf_read_is_text(const crdi_mdf_channel* c)
{
    return c->data_type >= CRDI_MDF_LATIN1 && c->data_type <= CRDI_MDF_UTF16_BE;
}

// Why a channel cannot be read, NULL if it can.
static const char* unreadable(const crdi_mdf_channel* c, uint8_t type, uint64_t composition)
{
    if (type == CRDI_MDF_CN_SYNC) { return "it belongs to an attached stream"; }
    if (type == CRDI_MDF_CN_MLSD) { return "its values have lengths of their own"; }
    if (type > CRDI_MDF_CN_VIRTUAL) { return "it is of an unknown kind"; }
    if (composition) { return "arrays are not read"; }
    if (c->by_index) { return NULL; }
    if (c->data_type > CRDI_MDF_UTF16_BE) { return "it is neither a number nor a text"; }
    if (c->vlsd) {
        return mdf_read_is_text(c) ? NULL : "values of varying length are read as texts only";
    }
    if (mdf_read_is_text(c)) {
        return c->shift || c->bits % 8 || !c->bits ? "it is part of a byte" : NULL;
    }
    if (c->data_type >= CRDI_MDF_REAL_LE) {
        return c->shift || (c->bits != 16 && c->bits != 32 && c->bits != 64)
                   ? "a real number of 16, 32 or 64 bits was expected"
                   : NULL;
    }
    return c->bits == 0 || c->bits > 64 ? "an integer of 1 to 64 bits was expected" : NULL;
}

static bool is_boolean(const crdi_mdf_conversion* c)
{
    if (c->label_count != 2) { return false; }
    const crd_label* l = c->labels;
    const bool up = l[0].value == 0 && l[1].value == 1, down = l[0].value == 1 && l[1].value == 0;
    return (up && strcmp(l[0].text, "false") == 0 && strcmp(l[1].text, "true") == 0) ||
           (down && strcmp(l[1].text, "false") == 0 && strcmp(l[0].text, "true") == 0);
}

static crd_type mdf_read_type_of(const crdi_mdf_channel* c)
{
    static const crd_type integers[2][4] = {{CRD_UINT8, CRD_UINT16, CRD_UINT32, CRD_UINT64},
                                            {CRD_INT8, CRD_INT16, CRD_INT32, CRD_INT64}};
    if (c->by_index) { return CRD_FLOAT64; }
    if (mdf_read_is_text(c)) { return CRD_STRING; }
    if (c->conversion->kind != CRDI_MDF_AS_IT_IS) { return CRD_FLOAT64; }
    if (is_boolean(c->conversion)) { return CRD_BOOLEAN; }
    if (c->conversion->label_count) { return CRD_ENUMERATION; }
    if (c->data_type >= CRDI_MDF_REAL_LE) { return c->bits == 64 ? CRD_FLOAT64 : CRD_FLOAT32; }
    return integers[c->data_type >= CRDI_MDF_INT_LE][c->bits <= 8    ? 0
                                                     : c->bits <= 16 ? 1
                                                     : c->bits <= 32 ? 2
                                                                     : 3];
}

// The bytes of a value lie in the data bytes of the record, its invalidation bit behind them.
static crd_status mdf_read_check_place(const reader* d, const group* g, crdi_mdf_channel* c,
                                       const char* name)
{
    const uint64_t bytes = c->by_index ? 0 : ((uint64_t)c->shift + c->bits + 7) / 8;
    if (c->shift > 7 || g->identifier + (uint64_t)c->byte + bytes > g->g.data_bytes ||
        (c->vlsd && (c->bits != 64 || c->shift))) {
        return crdi_mdf_fail(d->f, c->block,
                             "channel '%.60s' has %u bits at byte %u, bit %u of a record with %u "
                             "bytes",
                             name, c->bits, c->byte, c->shift, g->g.data_bytes - g->identifier);
    }
    if (c->can_be_invalid && c->invalid_bit / 8 >= g->g.record - g->g.data_bytes) {
        return crdi_mdf_fail(d->f, c->block,
                             "channel '%.60s' has invalidation bit %u, the record has %u bytes "
                             "for such",
                             name, c->invalid_bit, g->g.record - g->g.data_bytes);
    }
    c->byte += g->identifier;
    return CRD_OK;
}

static crd_status mdf_read_add_signal(reader* d, const crdi_mdf_channel* c,
                                      const crd_signal_info* s)
{
    crdi_mdf_recording* r = d->r;
    const size_t n = (size_t)r->channel_count;
    if (n + 1 >= INT32_MAX) { return crdi_mdf_fail(d->f, c->block, "too many channels"); }
    void* signals =
        crdi_grow(d->f->ctx, d->signals, &d->signal_capacity, n + 1, sizeof *d->signals);
    if (!signals) { return CRD_E_MEMORY; }
    d->signals = signals;
    void* channels =
        crdi_grow(d->f->ctx, r->channels, &r->channel_capacity, n + 1, sizeof *r->channels);
    if (!channels) { return CRD_E_MEMORY; }
    r->channels = channels;
    r->channels[n] = *c;
    d->signals[n] = *s;
    r->channel_count++;
    return CRD_OK;
}

// CN: links next, composition, name, source, conversion, data, unit, comment
//      0  u8  type         3  u8   bit offset      12  u32  flags
//      1  u8  sync         4  u32  byte offset     16  u32  invalidation bit
//      2  u8  data type    8  u32  bits
static crd_status mdf_read_channel(reader* d, group* g, const crdi_mdf_block* b,
                                   uint64_t composition)
{
    crd_status st = CRD_OK;
    crdi_mdf_file* f = d->f;
    const uint8_t type = b->data[0];
    const uint32_t flags = crdi_mdf_u32(b->data + 12);
    crdi_mdf_channel c = {.block = b->offset,
                          .data_type = b->data[2],
                          .shift = b->data[3],
                          .byte = crdi_mdf_u32(b->data + 4),
                          .bits = crdi_mdf_u32(b->data + 8),
                          .vlsd = type == CRDI_MDF_CN_VLSD,
                          .by_index =
                              type == CRDI_MDF_CN_VIRTUAL_MASTER || type == CRDI_MDF_CN_VIRTUAL,
                          .all_invalid = flags & CRDI_MDF_CN_ALL_INVALID,
                          .can_be_invalid = flags & CRDI_MDF_CN_HAS_INVALID,
                          .invalid_bit = crdi_mdf_u32(b->data + 16)};
    crd_signal_info s = {.group = d->r->group_count};
    CRD_TRY(crdi_mdf_text(f, d->arena, b->links[2], &s.name));
    const bool master = type == CRDI_MDF_CN_MASTER || type == CRDI_MDF_CN_VIRTUAL_MASTER;
    const char* why = unreadable(&c, type, composition);
    if (why) {
        if (!master) { crdi_mdf_note(f, "channel '%s' is left out: %s", s.name, why); }
        return CRD_OK;
    }
    CRD_TRY(mdf_read_check_place(d, g, &c, s.name));
    CRD_TRY(read_conversion(d, b->links[4], s.name, &c.conversion));
    if (master) {
        if (b->data[1] == CRDI_MDF_SYNC_TIME && !mdf_read_is_text(&c) && !g->has_time) {
            g->g.time = c;
            g->has_time = true;
        }
        return CRD_OK;
    }
    CRD_TRY(crdi_mdf_text(f, d->arena, b->links[6], &s.unit));
    CRD_TRY(crdi_mdf_text(f, d->arena, b->links[7], &s.description));
    if (!s.unit[0]) { s.unit = c.conversion->unit; }
    if (c.vlsd) { CRD_TRY(crdi_mdf_data_find(f, b->links[5], &c.texts)); }
    if (c.texts.size > CRDI_MDF_MOST_TEXT - g->text_bytes) {
        crdi_mdf_note(f, "channel '%s' is left out: its texts have %llu bytes", s.name,
                      (unsigned long long)c.texts.size);
        crdi_mdf_data_clear(f, &c.texts);
        return CRD_OK;
    }
    g->text_bytes += c.texts.size;
    s.type = mdf_read_type_of(&c);
    if (s.type != CRD_STRING) {
        s.labels = c.conversion->labels;
        s.label_count = c.conversion->label_count;
    }
    CRD_TRY(mdf_read_add_signal(d, &c, &s));
    return CRD_OK;
fail:
    crdi_mdf_data_clear(f, &c.texts);
    return st;
}

static crd_status read_channels(reader* d, group* g, uint64_t offset, int depth)
{
    crd_status st = CRD_OK;
    if (depth > DEEPEST) {
        return crdi_mdf_fail(d->f, offset, "structures in structures, more than %d deep", DEEPEST);
    }
    for (crdi_mdf_block b; offset; offset = b.links[0]) {
        CRD_TRY(crdi_mdf_expect(d->f, offset, CRDI_MDF_TAG('C', 'N'), CRDI_MDF_CN_LINKS, 72, &b));
        crdi_mdf_block inner = {0};
        if (b.links[1]) { CRD_TRY(crdi_mdf_read_block(d->f, b.links[1], false, &inner)); }
        if (crdi_mdf_is(&inner, 'C', 'N')) { // its members are all that it has
            CRD_TRY(read_channels(d, g, b.links[1], depth + 1));
        } else {
            CRD_TRY(mdf_read_channel(d, g, &b, b.links[1]));
        }
    }
fail:
    return st;
}

// ---- groups ------------------------------------------------------------------------------------

static void drop_signals(reader* d, int first)
{
    crdi_mdf_recording* r = d->r;
    while (r->channel_count > first) {
        crdi_mdf_data_clear(d->f, &r->channels[--r->channel_count].texts);
    }
}

static crd_status add_group(reader* d, const group* g, int first)
{
    crdi_mdf_recording* r = d->r;
    const size_t n = (size_t)r->group_count;
    void* infos = crdi_grow(d->f->ctx, d->groups, &d->group_capacity, n + 1, sizeof *d->groups);
    if (!infos) { return CRD_E_MEMORY; }
    d->groups = infos;
    void* groups = crdi_grow(d->f->ctx, r->groups, &r->group_capacity, n + 1, sizeof *r->groups);
    if (!groups) { return CRD_E_MEMORY; }
    r->groups = groups;
    r->groups[n] = g->g;
    d->groups[n] = (crd_group_info){
        .name = g->name, .first_signal = first, .signal_count = r->channel_count - first};
    r->group_count++;
    return CRD_OK;
}

// SI: links name, path, comment
static crd_status source_name(reader* d, uint64_t offset, const char** name)
{
    crdi_mdf_block b;
    if (offset == 0) { return CRD_OK; }
    const crd_status st = crdi_mdf_read_block(d->f, offset, false, &b);
    return st < 0 ? st : crdi_mdf_text(d->f, d->arena, b.links[0], name);
}

// CG: links next, first CN, acquisition, source, reductions, comment (master)
//      0  u64  record id      16  u16  flags             24  u32  data bytes
//      8  u64  records        18  u16  path separator    28  u32  invalidation bytes
static crd_status mdf_read_group(reader* d, const crdi_mdf_block* b, uint8_t identifier,
                                 uint64_t data)
{
    crd_status st = CRD_OK;
    crdi_mdf_file* f = d->f;
    const unsigned flags = crdi_mdf_u16(b->data + 16);
    const uint64_t data_bytes = crdi_mdf_u32(b->data + 24), more = crdi_mdf_u32(b->data + 28);
    const uint64_t record = identifier + data_bytes + more;
    group g = {.block = b->offset, .identifier = identifier};
    const int first = d->r->channel_count;
    CRD_TRY(crdi_mdf_text(f, d->arena, b->links[2], &g.name));
    if (!g.name[0]) { CRD_TRY(source_name(d, b->links[3], &g.name)); }
    if (!g.name[0]) { CRD_TRY(crdi_mdf_text(f, d->arena, b->links[5], &g.name)); }
    if (flags & 0x08) {
        crdi_mdf_note(f,
                      "group '%s' is left out: its times are in another group; save the file as "
                      "MDF 4.11",
                      g.name);
        return CRD_OK;
    }
    if (record > CRDI_MDF_MOST_RECORD) {
        return crdi_mdf_fail(f, b->offset, "records of %llu bytes, expected at most %d",
                             (unsigned long long)record, CRDI_MDF_MOST_RECORD);
    }
    g.g = (crdi_mdf_group){.record = (uint32_t)record,
                           .data_bytes = (uint32_t)(identifier + data_bytes),
                           .cycles = crdi_mdf_u64(b->data + 8),
                           .data_block = data};
    CRD_TRY(read_channels(d, &g, b->links[1], 0));
    if (!g.has_time || record == 0) {
        if (d->r->channel_count > first || record) {
            crdi_mdf_note(f, "group '%s' is left out: it has no channel of times (master)", g.name);
        }
        drop_signals(d, first);
        return CRD_OK;
    }
    CRD_TRY(crdi_mdf_data_find(f, data, &g.g.data));
    CRD_TRY(add_group(d, &g, first));
    return CRD_OK;
fail:
    crdi_mdf_data_clear(f, &g.g.data);
    return st;
}

// DG: links next, first CG, data, comment;  0  u8  bytes of a record identifier
static crd_status read_groups(reader* d, uint64_t offset)
{
    crd_status st = CRD_OK;
    crdi_mdf_file* f = d->f;
    for (crdi_mdf_block b; offset; offset = b.links[0]) {
        CRD_TRY(crdi_mdf_expect(f, offset, CRDI_MDF_TAG('D', 'G'), CRDI_MDF_DG_LINKS, 8, &b));
        if (b.links[1] == 0) { continue; }
        crdi_mdf_block cg;
        CRD_TRY(crdi_mdf_expect(f, b.links[1], CRDI_MDF_TAG('C', 'G'), CRDI_MDF_CG_LINKS, 32, &cg));
        const uint8_t id = b.data[0];
        if (cg.links[0]) {
            return crdi_fail(f->ctx, CRD_E_UNSUPPORTED,
                             "%s: offset %llu: the file is not sorted (records of several groups "
                             "in one block); asammdf sorts it: "
                             "MDF(\"old.mf4\").save(\"sorted.mf4\")",
                             f->path, (unsigned long long)offset);
        }
        if (id != 0 && id != 1 && id != 2 && id != 4 && id != 8) {
            return crdi_mdf_fail(f, offset, "record identifiers of %d bytes, expected 0 to 8", id);
        }
        CRD_TRY(mdf_read_group(d, &cg, id, b.links[2]));
    }
fail:
    return st;
}

// ---- rows --------------------------------------------------------------------------------------

// The last DT of an unfinished file reaches to its end, whatever its head says.
static void extend_last(crdi_mdf_recording* r)
{
    const crdi_mdf_file* f = &r->file;
    for (int i = 0; i < r->group_count; i++) {
        crdi_mdf_data* data = &r->groups[i].data;
        crdi_mdf_piece* p = data->count ? &data->pieces[data->count - 1] : NULL;
        if (p && !p->deflated && p->block == f->last && p->size == 0) {
            p->size = p->stored = f->size - p->at;
            data->size += p->size;
        }
    }
}

static crd_status count_rows(reader* d)
{
    crdi_mdf_recording* r = d->r;
    if (r->file.unfinished && (r->file.flags & CRDI_MDF_UNFIN_DT)) { extend_last(r); }
    for (int i = 0; i < r->group_count; i++) {
        const crdi_mdf_group* g = &r->groups[i];
        uint64_t rows = g->data.size / g->record;
        if (!r->file.unfinished) {
            if (g->cycles > rows) {
                return crdi_mdf_fail(&r->file, g->data_block,
                                     "group '%.60s' says it has %llu records of %u bytes, there "
                                     "are %llu",
                                     d->groups[i].name, (unsigned long long)g->cycles, g->record,
                                     (unsigned long long)rows);
            }
            rows = g->cycles;
        }
        d->groups[i].rows = (int64_t)rows;
        if (g->data.cut) {
            crdi_mdf_note(&r->file, "group '%s' ends after %llu records: the file is unfinished",
                          d->groups[i].name, (unsigned long long)rows);
        }
    }
    return CRD_OK;
}

// ---- open and close ----------------------------------------------------------------------------

static crd_status keep_info(reader* d)
{
    crdi_mdf_recording* r = d->r;
    crd_recording_info* info = &r->base.info;
    const size_t groups = (size_t)r->group_count, signals = (size_t)r->channel_count;
    crd_group_info* g = crdi_arena_new(d->arena, groups, sizeof *g);
    crd_signal_info* s = crdi_arena_new(d->arena, signals, sizeof *s);
    if (!g || !s) { return CRD_E_MEMORY; }
    if (groups) { memcpy(g, d->groups, groups * sizeof *g); }
    if (signals) { memcpy(s, d->signals, signals * sizeof *s); }
    info->groups = g;
    info->signals = s;
    info->group_count = r->group_count;
    info->signal_count = r->channel_count;
    return CRD_OK;
}

static crd_status mdf_read_file(reader* d)
{
    crd_status st = CRD_OK;
    crdi_mdf_block hd;
    CRD_TRY(read_id(d));
    CRD_TRY(crdi_mdf_expect(d->f, CRDI_MDF_ID_SIZE, CRDI_MDF_TAG('H', 'D'), CRDI_MDF_HD_LINKS, 32,
                            &hd));
    d->r->base.info.started = (int64_t)(crdi_mdf_u64(hd.data) & INT64_MAX);
    CRD_TRY(crdi_mdf_text(d->f, d->arena, hd.links[5], &d->r->base.info.comment));
    CRD_TRY(read_history(d, hd.links[1]));
    CRD_TRY(read_groups(d, hd.links[0]));
    CRD_TRY(read_attachments(d, hd.links[3]));
    CRD_TRY(read_events(d, hd.links[4]));
    CRD_TRY(count_rows(d));
    CRD_TRY(keep_info(d));
    crdi_mdf_end_notes(d->f);
fail:
    return st;
}

static crd_status attachment(crd_recording* base, int i, char** data, size_t* length)
{
    crd_status st = CRD_OK;
    crdi_mdf_recording* r = (crdi_mdf_recording*)base;
    const crdi_mdf_attachment* a = &r->attachments[i];
    struct libdeflate_decompressor* inflater = NULL;
    char* stored = NULL;
    char* bytes = crdi_new_array(base->ctx, (size_t)a->size + 1, 1);
    if (!bytes) { return CRD_E_MEMORY; }
    if (!a->deflated) {
        CRD_TRY(crdi_mdf_read(&r->file, a->at, bytes, (size_t)a->size));
    } else {
        stored = crdi_new_array(base->ctx, (size_t)a->stored, 1);
        inflater = stored ? libdeflate_alloc_decompressor() : NULL;
        if (!inflater) {
            st = crdi_fail(base->ctx, CRD_E_MEMORY, "out of memory");
            goto fail;
        }
        CRD_TRY(crdi_mdf_read(&r->file, a->at, stored, (size_t)a->stored));
        CRD_TRY(crdi_mdf_inflate(&r->file, a->block, inflater, stored, (size_t)a->stored, bytes,
                                 (size_t)a->size));
    }
    *data = bytes;
    *length = (size_t)a->size;
    bytes = NULL;
fail:
    libdeflate_free_decompressor(inflater);
    crd_free(base->ctx, stored);
    crd_free(base->ctx, bytes);
    return st;
}

static void close_recording(crd_recording* base)
{
    crdi_mdf_recording* r = (crdi_mdf_recording*)base;
    for (int i = 0; i < r->channel_count; i++) {
        crdi_mdf_data_clear(&r->file, &r->channels[i].texts);
    }
    for (int i = 0; i < r->group_count; i++) {
        crdi_mdf_data_clear(&r->file, &r->groups[i].data);
    }
    crd_free(base->ctx, r->channels);
    crd_free(base->ctx, r->groups);
    crdi_mdf_file_close(&r->file);
    crd_arena_clear(&base->arena);
    crd_free(base->ctx, r);
}

static const crdi_recording_ops ops = {
    .attachment = attachment,
    .cursor_open = crdi_mdf_cursor_open,
    .cursor_next = crdi_mdf_cursor_next,
    .cursor_seek = crdi_mdf_cursor_seek,
    .cursor_close = crdi_mdf_cursor_close,
    .close = close_recording,
};

crd_status crdi_mdf_open(crd_context* ctx, const char* path, int fd, crd_recording** out)
{
    crd_status st = CRD_OK;
    crdi_mdf_recording* r = crdi_new(ctx, sizeof *r);
    if (!r) {
        close(fd);
        return CRD_E_MEMORY;
    }
    r->base.ops = &ops;
    r->base.ctx = ctx;
    crd_arena_init(&r->base.arena, ctx);
    reader d = {.r = r, .f = &r->file, .arena = &r->base.arena};
    CRD_TRY(crdi_mdf_file_open(&r->file, ctx, path, fd));
    r->base.info = (crd_recording_info){
        .path = crdi_arena_text(d.arena, path, strlen(path)), .program = "", .comment = ""};
    if (!r->base.info.path) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    r->file.path = r->base.info.path;
    CRD_TRY(mdf_read_file(&d));
    *out = &r->base;
fail:
    crd_free(ctx, d.groups);
    crd_free(ctx, d.signals);
    if (st < 0) { close_recording(&r->base); }
    return st;
}
