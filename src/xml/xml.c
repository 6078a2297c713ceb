#include "shared/xml.h"

#include <expat.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    MAX_BYTES = 64 << 20,
    MAX_DEPTH = 256,
    MAX_ELEMENTS = 1 << 20,
    MAX_ATTRIBUTES = 256, // of one element
    MAX_SPACES = 256,     // namespace declarations in scope
    CHUNK = 1 << 20,
};

// Between namespace and name in what expat hands out: no URI can contain it.
static const char separator = '\n';

// An element that is not closed yet.
typedef struct open_element {
    crdi_xml_element* element;
    crdi_xml_element* last; // child
    crd_text text;
} open_element;

typedef struct builder {
    crd_context* ctx;
    crdi_xml* xml;
    XML_Parser parser;
    const char* last_space; // most elements have the space of the one before
    open_element open[MAX_DEPTH];
    int depth, elements, spaces;
    size_t unbound; // byte of a tag with a prefix that is not declared, SIZE_MAX: none
    crd_status st;
} builder;

static void stop(builder* b, crd_status st)
{
    if (b->st >= 0) { b->st = st; }
    XML_StopParser(b->parser, XML_FALSE);
}

// The sentence gets file and line in front.
CRD_PRINTF(2, 3) static void refuse(builder* b, const char* format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    stop(b, crdi_fail(b->ctx, CRD_E_FORMAT, "%s:%lu: %s", b->xml->file,
                      (unsigned long)XML_GetCurrentLineNumber(b->parser), text));
}

// "space\nname" into its parts; false: out of memory.
static bool xml_split(builder* b, const char* full, const char** space, const char** name)
{
    crd_arena* arena = &b->xml->arena;
    const char* at = strrchr(full, separator);
    *space = "";
    if (at) {
        const size_t length = (size_t)(at - full);
        if (!b->last_space || strlen(b->last_space) != length ||
            memcmp(b->last_space, full, length) != 0) {
            b->last_space = crdi_arena_text(arena, full, length);
            if (!b->last_space) { return false; }
        }
        *space = b->last_space;
        full = at + 1;
    }
    *name = crdi_arena_text(arena, full, strlen(full));
    return *name != NULL;
}

static crd_status read_attributes(builder* b, crdi_xml_element* e, const char** attributes)
{
    int n = 0;
    while (attributes[2 * n]) {
        n++;
    }
    crdi_xml_attribute* a = crdi_arena_new(&b->xml->arena, (size_t)n, sizeof *a);
    if (!a) { return CRD_E_MEMORY; }
    for (int i = 0; i < n; i++) {
        const char* value = attributes[2 * i + 1];
        a[i].value = crdi_arena_text(&b->xml->arena, value, strlen(value));
        if (!a[i].value || !xml_split(b, attributes[2 * i], &a[i].space, &a[i].name)) {
            return CRD_E_MEMORY;
        }
    }
    e->attributes = a;
    e->attribute_count = n;
    return CRD_OK;
}

static void XMLCALL on_start(void* user, const char* name, const char** attributes)
{
    builder* b = user;
    if (b->st < 0) { return; }
    if (b->depth == MAX_DEPTH) {
        refuse(b, "elements are nested deeper than %d", MAX_DEPTH);
        return;
    }
    if (++b->elements > MAX_ELEMENTS) {
        refuse(b, "more than %d elements", MAX_ELEMENTS);
        return;
    }
    if (XML_GetSpecifiedAttributeCount(b->parser) > 2 * MAX_ATTRIBUTES) {
        refuse(b, "an element with more than %d attributes", MAX_ATTRIBUTES);
        return;
    }
    crdi_xml_element* e = crdi_arena_new(&b->xml->arena, 1, sizeof *e);
    if (!e || !xml_split(b, name, &e->space, &e->name) || read_attributes(b, e, attributes) < 0) {
        stop(b, CRD_E_MEMORY);
        return;
    }
    e->text = "";
    e->line = (int)XML_GetCurrentLineNumber(b->parser);
    e->begin = (size_t)XML_GetCurrentByteIndex(b->parser);
    if (b->depth == 0) {
        b->xml->root = e;
    } else {
        open_element* parent = &b->open[b->depth - 1];
        e->parent = parent->element;
        if (parent->last) {
            parent->last->next = e;
        } else {
            parent->element->first = e;
        }
        parent->last = e;
    }
    open_element* o = &b->open[b->depth++];
    o->element = e;
    o->last = NULL;
    o->text.length = 0;
}

static void XMLCALL on_end(void* user, const char* name)
{
    (void)name;
    builder* b = user;
    if (b->st < 0) { return; }
    open_element* o = &b->open[--b->depth];
    o->element->end =
        (size_t)XML_GetCurrentByteIndex(b->parser) + (size_t)XML_GetCurrentByteCount(b->parser);
    const char* text = o->text.length ? o->text.data : "";
    if (text[strspn(text, " \t\r\n")]) { // white space between elements is not worth keeping
        o->element->text = crdi_arena_text(&b->xml->arena, text, o->text.length);
        if (!o->element->text) { stop(b, CRD_E_MEMORY); }
    }
}

static void XMLCALL on_text(void* user, const char* text, int length)
{
    builder* b = user;
    if (b->st < 0 || b->depth == 0) { return; }
    crd_text* t = &b->open[b->depth - 1].text;
    crdi_text_put(t, text, (size_t)length);
    if (t->failed) { stop(b, CRD_E_MEMORY); }
}

static void XMLCALL on_doctype(void* user, const char* name, const char* system_id,
                               const char* public_id, int has_internal)
{
    (void)name, (void)system_id, (void)public_id, (void)has_internal;
    builder* b = user;
    if (b->st < 0) { return; }
    refuse(b, "a DOCTYPE, which is refused: it could make the text grow without bound");
}

static void XMLCALL on_declaration(void* user, const char* version, const char* encoding,
                                   int standalone)
{
    (void)version, (void)standalone;
    builder* b = user;
    if (b->st < 0 || !encoding || strcasecmp(encoding, "UTF-8") == 0 ||
        strcasecmp(encoding, "US-ASCII") == 0 || strcasecmp(encoding, "ASCII") == 0) {
        return;
    }
    refuse(b, "encoding '%.40s', expected UTF-8", encoding);
}

static void XMLCALL on_space(void* user, const char* prefix, const char* uri)
{
    (void)prefix, (void)uri;
    builder* b = user;
    if (b->st < 0) { return; }
    if (++b->spaces > MAX_SPACES) {
        refuse(b, "more than %d namespaces are declared at once", MAX_SPACES);
    }
}

static void XMLCALL on_space_end(void* user, const char* prefix)
{
    (void)prefix;
    ((builder*)user)->spaces--;
}

static crd_status parse_all(builder* b)
{
    crdi_xml* x = b->xml;
    XML_SetUserData(b->parser, b);
    XML_SetElementHandler(b->parser, on_start, on_end);
    XML_SetCharacterDataHandler(b->parser, on_text);
    XML_SetStartDoctypeDeclHandler(b->parser, on_doctype);
    XML_SetXmlDeclHandler(b->parser, on_declaration);
    XML_SetNamespaceDeclHandler(b->parser, on_space, on_space_end);
    enum XML_Status parsed = XML_STATUS_OK;
    for (size_t at = 0; parsed == XML_STATUS_OK && b->st >= 0;) {
        const size_t left = x->length - at;
        const size_t n = left < CHUNK ? left : CHUNK;
        parsed = XML_Parse(b->parser, x->source + at, (int)n, n == left);
        at += n;
        if (at == x->length) { break; }
    }
    if (b->st < 0) { return b->st; }
    if (parsed != XML_STATUS_OK) {
        const enum XML_Error code = XML_GetErrorCode(b->parser);
        if (code == XML_ERROR_NO_MEMORY) {
            return crdi_fail(b->ctx, CRD_E_MEMORY, "%s", crd_status_text(CRD_E_MEMORY));
        }
        if (code == XML_ERROR_UNBOUND_PREFIX) {
            b->unbound = (size_t)XML_GetCurrentByteIndex(b->parser);
        }
        return crdi_fail(b->ctx, CRD_E_FORMAT, "%s:%lu: not well-formed XML: %s", x->file,
                         (unsigned long)XML_GetCurrentLineNumber(b->parser), XML_ErrorString(code));
    }
    return CRD_OK;
}

static crd_status parse_once(crd_context* ctx, const char* text, size_t length, const char* file,
                             size_t* unbound, crdi_xml** out)
{
    if (length > MAX_BYTES) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s: %zu bytes, expected at most %d", file, length,
                         MAX_BYTES);
    }
    if (length >= 2 && (!text[0] || !text[1] || memcmp(text, "\xFE\xFF", 2) == 0 ||
                        memcmp(text, "\xFF\xFE", 2) == 0)) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s:1: encoded as UTF-16, expected UTF-8", file);
    }
    crd_status st = CRD_E_MEMORY;
    builder* b = NULL;
    crdi_xml* x = crdi_new(ctx, sizeof *x);
    if (!x) { return CRD_E_MEMORY; }
    crd_arena_init(&x->arena, ctx);
    x->file = crdi_arena_text(&x->arena, file, strlen(file));
    x->source = crdi_arena_text(&x->arena, text, length);
    x->length = length;
    b = crdi_new(ctx, sizeof *b);
    if (!x->file || !x->source || !b) { goto fail; }
    b->ctx = ctx;
    b->xml = x;
    b->unbound = SIZE_MAX;
    for (int i = 0; i < MAX_DEPTH; i++) {
        crd_text_init(&b->open[i].text, ctx);
    }
    b->parser = XML_ParserCreateNS("UTF-8", separator);
    if (!b->parser) { CRD_TRY(crdi_fail(ctx, CRD_E_MEMORY, "%s", crd_status_text(CRD_E_MEMORY))); }
    CRD_TRY(parse_all(b));
    *out = x;
    x = NULL;
fail:
    for (int i = 0; b && i < MAX_DEPTH; i++) {
        crd_text_clear(&b->open[i].text);
    }
    if (b && b->parser) { XML_ParserFree(b->parser); }
    if (b) { *unbound = b->unbound; }
    crd_free(ctx, b);
    crdi_xml_destroy(x);
    return st;
}

crd_status crdi_xml_parse(crd_context* ctx, const char* text, size_t length, const char* file,
                          crdi_xml** out)
{
    size_t unbound;
    return parse_once(ctx, text, length, file, &unbound, out);
}

// ---- prefixes that nobody declared -------------------------------------------------------------

// Behind the name of the root element; NULL: there is none.
static const char* behind_root(const char* p)
{
    while (p && (p = strchr(p, '<')) && (p[1] == '?' || p[1] == '!')) {
        p = p[1] == '?' ? strstr(p, "?>") : strstr(p, "-->");
    }
    return p ? p + 1 + strcspn(p + 1, " \t\r\n/>") : NULL;
}

// The first prefix in the tag at `tag` that is declared nowhere in the text; length 0: there is
// none.
static const char* undeclared(const char* text, const char* tag, size_t* length)
{
    for (const char* p = tag + 1; *p && *p != '>' && *p != '/';) {
        const size_t name = strcspn(p, " \t\r\n=/>");
        const size_t prefix = strcspn(p, ": \t\r\n=/>");
        char declared[64];
        snprintf(declared, sizeof declared, "xmlns:%.*s=", (int)prefix, p);
        if (prefix < name && prefix < 40 && strncmp(p, "xml", 3) != 0 && !strstr(text, declared)) {
            *length = prefix;
            return p;
        }
        p += name;
        p += strcspn(p, "\"'>");
        if (*p == '>' || !*p) { break; }
        const char* end = strchr(p + 1, *p);
        if (!end) { break; }
        p = end + 1 + strspn(end + 1, " \t\r\n");
    }
    *length = 0;
    return "";
}

// The text; where it says that it is Latin-1, in UTF-8 and with blanks for what said so.
static void put_as_utf8(crd_text* out, const char* text, size_t length)
{
    const char* end = length > 5 && strncmp(text, "<?xml", 5) == 0 ? strstr(text, "?>") : NULL;
    const char* latin = end ? strstr(text, "8859-1") : NULL;
    if (!latin || latin > end || latin[6] == '5') { // -15 is another one
        crdi_text_put(out, text, length);
        return;
    }
    for (const char* p = text; p < text + length; p++) {
        const unsigned char c = (unsigned char)*p;
        const char two[2] = {(char)(0xC0 | c >> 6), (char)(0x80 | (c & 0x3F))};
        if (p < end + 2) {
            crdi_text_put(out, c == '\n' ? "\n" : " ", 1);
        } else if (c < 0x80) {
            crdi_text_put(out, p, 1);
        } else {
            crdi_text_put(out, two, 2);
        }
    }
}

crd_status crdi_xml_parse_lenient(crd_context* ctx, const char* text, size_t length,
                                  const char* file, const crdi_xml_prefix* known, int count,
                                  crdi_xml** out)
{
    enum { MOST = 16 };
    crd_text now, next;
    crd_text_init(&now, ctx);
    crd_text_init(&next, ctx);
    crdi_text_put(&next, text, length); // with a zero behind it
    if (next.data) { put_as_utf8(&now, next.data, next.length); }
    now.failed |= next.failed;
    crd_status st = now.failed ? CRD_E_MEMORY : CRD_OK;
    for (int i = 0; st >= 0 && i <= MOST; i++) {
        size_t unbound = SIZE_MAX, prefix = 0;
        st = parse_once(ctx, now.data ? now.data : "", now.length, file, &unbound, out);
        if (st >= 0 || unbound >= now.length || i == MOST) { break; }
        const char* root = behind_root(now.data);
        const char* name = undeclared(now.data, now.data + unbound, &prefix);
        if (!root || !prefix) { break; }
        const char* space = NULL;
        for (int k = 0; k < count && !space; k++) {
            const bool same =
                strlen(known[k].prefix) == prefix && strncmp(known[k].prefix, name, prefix) == 0;
            if (same) { space = known[k].space; }
        }
        crdi_log(ctx, CRD_LOG_WARNING, "%s: the prefix '%.*s' is not declared, %s%s", file,
                 (int)prefix, name, space ? "taken for that of " : "what has it counts as unknown",
                 space ? space : "");
        next.length = 0;
        crdi_text_put(&next, now.data, (size_t)(root - now.data));
        crdi_text_add(&next, " xmlns:%.*s=\"%s\"", (int)prefix, name,
                      space ? space : "urn:org.cardan:undeclared");
        crdi_text_put(&next, root, now.length - (size_t)(root - now.data));
        const crd_text swap = now;
        now = next;
        next = swap;
        st = now.failed ? CRD_E_MEMORY : CRD_OK;
    }
    crd_text_clear(&now);
    crd_text_clear(&next);
    return st;
}

void crdi_xml_destroy(crdi_xml* x)
{
    if (!x) { return; }
    crd_arena arena = x->arena;
    crd_context* ctx = arena.ctx;
    crd_arena_clear(&arena);
    crd_free(ctx, x);
}

// ---- looking at it -----------------------------------------------------------------------------

const char* crdi_xml_get(const crdi_xml_element* e, const char* name)
{
    for (int i = 0; i < e->attribute_count; i++) {
        if (!e->attributes[i].space[0] && strcmp(e->attributes[i].name, name) == 0) {
            return e->attributes[i].value;
        }
    }
    return NULL;
}

bool crdi_xml_is(const crdi_xml_element* e, const char* space, const char* name)
{
    return strcmp(e->name, name) == 0 && strcmp(e->space, space) == 0;
}

static const crdi_xml_element* find_from(const crdi_xml_element* e, const char* space,
                                         const char* name)
{
    while (e && !crdi_xml_is(e, space, name)) {
        e = e->next;
    }
    return e;
}

const crdi_xml_element* crdi_xml_child(const crdi_xml_element* e, const char* space,
                                       const char* name)
{
    return find_from(e->first, space, name);
}

const crdi_xml_element* crdi_xml_same(const crdi_xml_element* e)
{
    return find_from(e->next, e->space, e->name);
}

// ---- copying -----------------------------------------------------------------------------------

// One declaration xmlns="..." or xmlns:prefix="..." as it stands in the source.
typedef struct declaration {
    const char *name, *text; // of the attribute; from its name to behind its closing quote
    size_t name_length, length;
} declaration;

// The next declaration of a start tag; `*p` is behind the last one. The parser has accepted the
// text, so quotes come in pairs and every attribute has a value.
static bool next_declaration(const char** p, declaration* out)
{
    for (;;) {
        const char* name = *p + strspn(*p, " \t\r\n");
        if (*name == '>' || *name == '/' || !*name) { return false; }
        const size_t length = strcspn(name, " \t\r\n=");
        const char* quote = name + strcspn(name, "\"'");
        const char* end = *quote ? strchr(quote + 1, *quote) : NULL;
        if (!end) { return false; }
        *p = end + 1;
        if (strncmp(name, "xmlns", 5) == 0 && (length == 5 || name[5] == ':')) {
            *out = (declaration){name, name, length, (size_t)(end + 1 - name)};
            return true;
        }
    }
}

static const char* behind_name(const crdi_xml* x, const crdi_xml_element* e)
{
    const char* p = x->source + e->begin + 1;
    return p + strcspn(p, " \t\r\n/>");
}

void crdi_xml_copy(const crdi_xml* x, const crdi_xml_element* e, crd_text* out)
{
    declaration seen[MAX_SPACES + 1];
    int count = 0;
    const char* head = behind_name(x, e);
    const char* p = head;
    while (count < MAX_SPACES && next_declaration(&p, &seen[count])) {
        count++;
    }
    const char* begin = x->source + e->begin;
    crdi_text_put(out, begin, (size_t)(head - begin));
    for (const crdi_xml_element* up = e->parent; up; up = up->parent) {
        p = behind_name(x, up);
        declaration d;
        while (count < MAX_SPACES && next_declaration(&p, &d)) {
            bool known = false;
            for (int i = 0; i < count && !known; i++) {
                known = seen[i].name_length == d.name_length &&
                        memcmp(seen[i].name, d.name, d.name_length) == 0;
            }
            if (known) { continue; }
            seen[count++] = d;
            crdi_text_put(out, " ", 1);
            crdi_text_put(out, d.text, d.length);
        }
    }
    crdi_text_put(out, head, (size_t)(x->source + e->end - head));
}
