// Blocks of an MDF file: bounds, circles, texts.
#include "results/mdf_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW = 16384, MOST_NOTES = 8 };

crd_status crdi_mdf_fail(const crdi_mdf_file* f, uint64_t offset, const char* format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return crdi_fail(f->ctx, CRD_E_FORMAT, "%s: offset %llu: %s", f->path,
                     (unsigned long long)offset, text);
}

void crdi_mdf_note(crdi_mdf_file* f, const char* format, ...)
{
    if (++f->notes > MOST_NOTES) { return; }
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    crdi_log(f->ctx, CRD_LOG_WARNING, "%s: %s", f->path, text);
}

void crdi_mdf_end_notes(crdi_mdf_file* f)
{
    if (f->notes > MOST_NOTES) {
        crdi_log(f->ctx, CRD_LOG_WARNING, "%s: and %d more like these", f->path,
                 f->notes - MOST_NOTES);
    }
    f->notes = 0;
}

// ---- bytes -------------------------------------------------------------------------------------

// Read, not mapped: a file that shrinks meanwhile must not kill the process.
crd_status crdi_mdf_read(const crdi_mdf_file* f, uint64_t at, void* bytes, size_t length)
{
    uint8_t* to = bytes;
    if (at > f->size || length > f->size - at) {
        return crdi_mdf_fail(f, at, "%zu bytes are wanted, the file ends at %llu", length,
                             (unsigned long long)f->size);
    }
    while (length > 0) {
        const ssize_t n = pread(f->fd, to, length, (off_t)at);
        if (n < 0 && errno == EINTR) { continue; }
        if (n < 0) {
            return crdi_fail(f->ctx, CRD_E_IO, "%s: cannot read it: %s", f->path, strerror(errno));
        }
        if (n == 0) { return crdi_mdf_fail(f, at, "the file has become shorter"); }
        to += n;
        at += (uint64_t)n;
        length -= (size_t)n;
    }
    return CRD_OK;
}

// The same for small pieces.
static crd_status peek(crdi_mdf_file* f, uint64_t at, void* bytes, size_t length)
{
    if (length > WINDOW) { return crdi_mdf_read(f, at, bytes, length); }
    const bool inside = at >= f->window_at && at - f->window_at + length <= f->window_length;
    if (!inside && at < f->size && length <= f->size - at) {
        const uint64_t rest = f->size - at;
        f->window_length = 0;
        const size_t n = rest < WINDOW ? (size_t)rest : WINDOW;
        const crd_status st = crdi_mdf_read(f, at, f->window, n);
        if (st < 0) { return st; }
        f->window_at = at;
        f->window_length = n;
    } else if (!inside) {
        return crdi_mdf_read(f, at, bytes, length); // fails, with its words
    }
    memcpy(bytes, f->window + (at - f->window_at), length);
    return CRD_OK;
}

crd_status crdi_mdf_file_open(crdi_mdf_file* f, crd_context* ctx, const char* path, int fd)
{
    *f = (crdi_mdf_file){.ctx = ctx, .path = path, .fd = fd};
    struct stat info;
    if (fstat(fd, &info) < 0) {
        return crdi_fail(ctx, CRD_E_IO, "%s: cannot read it: %s", path, strerror(errno));
    }
    f->size = info.st_size > 0 ? (uint64_t)info.st_size : 0;
    f->budget = f->size;
    f->window = crdi_new(ctx, WINDOW);
    return f->window ? CRD_OK : CRD_E_MEMORY;
}

void crdi_mdf_file_close(crdi_mdf_file* f)
{
    if (!f->ctx) { return; }
    crd_free(f->ctx, f->window);
    crd_free(f->ctx, f->slots);
    close(f->fd);
}

// ---- blocks ------------------------------------------------------------------------------------

// Offsets come from the file: mixed, so that they do not all go the same way.
static size_t mdf_read_blocks_slot_of(const crdi_mdf_file* f, uint64_t offset)
{
    uint64_t h = offset * 0x9e3779b97f4a7c15U;
    h ^= h >> 32;
    size_t i = (size_t)h & (f->capacity - 1);
    while (f->slots[i].offset && f->slots[i].offset != offset) {
        i = (i + 1) & (f->capacity - 1);
    }
    return i;
}

const void* crdi_mdf_recall(const crdi_mdf_file* f, uint64_t offset)
{
    return f->capacity ? f->slots[mdf_read_blocks_slot_of(f, offset)].value : NULL;
}

crd_status crdi_mdf_remember(crdi_mdf_file* f, uint64_t offset, const void* value)
{
    if (2 * (f->count + 1) > f->capacity) {
        const crdi_mdf_file old = *f;
        const size_t capacity = old.capacity ? 2 * old.capacity : 256;
        crdi_mdf_slot* slots = crdi_new_array(f->ctx, capacity, sizeof *slots);
        if (!slots) { return CRD_E_MEMORY; }
        f->slots = slots;
        f->capacity = capacity;
        for (size_t i = 0; i < old.capacity; i++) {
            if (old.slots[i].offset) {
                slots[mdf_read_blocks_slot_of(f, old.slots[i].offset)] = old.slots[i];
            }
        }
        crd_free(f->ctx, old.slots);
    }
    crdi_mdf_slot* s = &f->slots[mdf_read_blocks_slot_of(f, offset)];
    if (s->offset) {
        return crdi_mdf_fail(f, offset & ~(CRDI_MDF_TEXT | CRDI_MDF_CONVERSION),
                             "two links lead to this block, expected one");
    }
    *s = (crdi_mdf_slot){offset, value};
    f->count++;
    return CRD_OK;
}

crd_status crdi_mdf_spend(crdi_mdf_file* f, uint64_t offset, uint64_t bytes)
{
    if (bytes > f->budget) {
        return crdi_mdf_fail(f, offset,
                             "the blocks overlap: together they are longer than the file");
    }
    f->budget -= bytes;
    return CRD_OK;
}

bool crdi_mdf_is(const crdi_mdf_block* b, char first, char second)
{
    return b->tag == CRDI_MDF_TAG(first, second);
}

static void show_tag(uint32_t tag, char text[8])
{
    for (int i = 0; i < 4; i++) {
        const char c = (char)(tag >> (8 * i) & 0xff);
        text[i] = c >= 0x20 && c < 0x7f ? c : '?';
    }
    text[4] = 0;
}

crd_status crdi_mdf_read_block(crdi_mdf_file* f, uint64_t offset, bool open, crdi_mdf_block* b)
{
    uint8_t head[CRDI_MDF_HEAD], links[8 * CRDI_MDF_MOST_LINKS] = {0};
    memset(b, 0, sizeof *b);
    if (offset < CRDI_MDF_ID_SIZE || offset > f->size || f->size - offset < sizeof head) {
        return crdi_mdf_fail(f, offset, "a link leads here, the file has %llu bytes",
                             (unsigned long long)f->size);
    }
    crd_status st = peek(f, offset, head, sizeof head);
    if (st < 0) { return st; }
    b->offset = offset;
    b->tag = crdi_mdf_u32(head);
    b->length = crdi_mdf_u64(head + 8);
    b->link_count = crdi_mdf_u64(head + 16);
    if (head[0] != '#' || head[1] != '#') {
        char found[8];
        show_tag(b->tag, found);
        return crdi_mdf_fail(f, offset, "a link leads here, but no block begins with '%s'", found);
    }
    const uint64_t rest = f->size - offset;
    if (open && (b->length < sizeof head || b->length > rest)) { b->length = rest; }
    if (b->length < sizeof head || b->length > rest ||
        b->link_count > (b->length - sizeof head) / 8) {
        return crdi_mdf_fail(
            f, offset,
            "a block of %llu bytes with %llu links, and the file has %llu bytes from here: it was "
            "cut off or is damaged",
            (unsigned long long)b->length, (unsigned long long)b->link_count,
            (unsigned long long)rest);
    }
    if (offset > f->last) { f->last = offset; }
    const size_t n =
        b->link_count < CRDI_MDF_MOST_LINKS ? (size_t)b->link_count : CRDI_MDF_MOST_LINKS;
    b->data_at = offset + sizeof head + 8 * b->link_count;
    const uint64_t data = offset + b->length - b->data_at;
    if (n) { st = peek(f, offset + sizeof head, links, 8 * n); }
    for (size_t i = 0; i < n; i++) {
        b->links[i] = crdi_mdf_u64(links + 8 * i);
    }
    if (st == CRD_OK && data) {
        st = peek(f, b->data_at, b->data, data < sizeof b->data ? (size_t)data : sizeof b->data);
    }
    return st;
}

crd_status crdi_mdf_expect(crdi_mdf_file* f, uint64_t offset, uint32_t tag, uint64_t links,
                           uint64_t data, crdi_mdf_block* b)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_mdf_read_block(f, offset, false, b));
    char wanted[8], found[8];
    show_tag(tag, wanted);
    show_tag(b->tag, found);
    if (b->tag != tag) {
        return crdi_mdf_fail(f, offset, "a block '%s', expected '%s'", found, wanted);
    }
    if (b->link_count < links || b->length - CRDI_MDF_HEAD - 8 * b->link_count < data) {
        return crdi_mdf_fail(f, offset,
                             "a block '%s' of %llu bytes with %llu links, expected %llu links "
                             "and %llu bytes behind them",
                             found, (unsigned long long)b->length,
                             (unsigned long long)b->link_count, (unsigned long long)links,
                             (unsigned long long)data);
    }
    CRD_TRY(crdi_mdf_remember(f, offset, f));
    CRD_TRY(crdi_mdf_spend(f, offset, b->length));
fail:
    return st;
}

// ---- texts -------------------------------------------------------------------------------------

crd_status crdi_mdf_raw_text(crdi_mdf_file* f, crd_arena* arena, uint64_t offset, const char** text)
{
    *text = "";
    if (offset == 0) { return CRD_OK; }
    crdi_mdf_block b;
    crd_status st = crdi_mdf_read_block(f, offset, false, &b);
    if (st < 0) { return st; }
    if (!crdi_mdf_is(&b, 'T', 'X') && !crdi_mdf_is(&b, 'M', 'D')) {
        char found[8];
        show_tag(b.tag, found);
        return crdi_mdf_fail(f, offset, "a block '%s', expected a text", found);
    }
    const uint64_t length = b.offset + b.length - b.data_at;
    st = crdi_mdf_spend(f, offset, length);
    if (st < 0) { return st; }
    char* bytes = crdi_arena_new(arena, (size_t)length + 1, 1);
    if (!bytes) { return CRD_E_MEMORY; }
    st = length ? peek(f, b.data_at, bytes, (size_t)length) : CRD_OK;
    *text = bytes;
    return st;
}

crd_status crdi_mdf_text(crdi_mdf_file* f, crd_arena* arena, uint64_t offset, const char** text)
{
    *text = offset ? crdi_mdf_recall(f, offset | CRDI_MDF_TEXT) : "";
    if (*text) { return CRD_OK; }
    const char* raw = "";
    crd_status st = crdi_mdf_raw_text(f, arena, offset, &raw);
    if (st < 0) { return st; }
    // What looks like XML is XML, whatever the block is called. A name may begin with '<' as well.
    const bool xml = raw[0] == '<' && strstr(raw, "<TX");
    *text = xml ? crdi_mdf_element(arena, raw, "TX") : raw;
    if (!*text) { return CRD_E_MEMORY; }
    return crdi_mdf_remember(f, offset | CRDI_MDF_TEXT, *text);
}

static size_t decode_entity(const char* p, char* out)
{
    static const struct {
        const char* name;
        char c;
    } entities[] = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        const size_t n = strlen(entities[i].name);
        if (strncmp(p, entities[i].name, n) == 0) {
            *out = entities[i].c;
            return n;
        }
    }
    *out = *p;
    return 1;
}

const char* crdi_mdf_element(crd_arena* arena, const char* xml, const char* name)
{
    const size_t n = strlen(name);
    for (const char* p = strchr(xml, '<'); p; p = strchr(p + 1, '<')) {
        if (strncmp(p + 1, name, n) != 0 || !strchr(" \t\r\n>", p[1 + n]) || !p[1 + n]) {
            continue;
        }
        const char* from = strchr(p, '>');
        if (!from || from[-1] == '/') { return ""; }
        from++;
        char* text = crdi_arena_text(arena, from, strcspn(from, "<"));
        if (!text) { return NULL; }
        char* to = text;
        for (const char* at = text; *at;) {
            at += decode_entity(at, to++);
        }
        *to = 0;
        return text;
    }
    return "";
}
