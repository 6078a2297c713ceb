// XML written: the layout of elements, and what has to be escaped.
#include "shared/xml.h"

#include <string.h>

void crdi_xml_writer_init(crdi_xml_writer* w, crd_text* out)
{
    *w = (crdi_xml_writer){.out = out};
    crdi_text_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
}

// ---- elements ----------------------------------------------------------------------------------

static bool in_line(const crdi_xml_writer* w)
{
    return w->inline_at > 0 && w->depth >= w->inline_at;
}

// The start tag of the element that is open gets its end: something comes inside.
static void close_tag(crdi_xml_writer* w)
{
    if (w->tag_open) { crdi_text_put(w->out, in_line(w) ? ">" : ">\n", in_line(w) ? 1 : 2); }
    w->tag_open = false;
}

static void indent(crdi_xml_writer* w)
{
    if (!in_line(w)) { crdi_text_add(w->out, "%*s", 2 * w->depth, ""); }
}

void crdi_xml_begin(crdi_xml_writer* w, const char* name)
{
    crdi_xml_begin_in(w, "", name);
}

void crdi_xml_begin_in(crdi_xml_writer* w, const char* prefix, const char* name)
{
    close_tag(w);
    indent(w);
    crdi_text_add(w->out, "<%s%s", prefix, name);
    if (w->depth < CRDI_XML_WRITE_DEPTH) {
        w->names[w->depth][0] = prefix;
        w->names[w->depth][1] = name;
    }
    w->depth++;
    w->tag_open = true;
}

void crdi_xml_inline(crdi_xml_writer* w)
{
    if (w->inline_at == 0) { w->inline_at = w->depth; }
}

void crdi_xml_end(crdi_xml_writer* w)
{
    const bool leaf = w->tag_open, inside = in_line(w);
    w->tag_open = false;
    w->depth--;
    if (leaf) {
        crdi_text_put(w->out, "/>", 2);
    } else if (w->depth < CRDI_XML_WRITE_DEPTH) {
        if (!inside) { indent(w); }
        crdi_text_add(w->out, "</%s%s>", w->names[w->depth][0], w->names[w->depth][1]);
    } else {
        w->out->failed = true;
    }
    if (w->depth < w->inline_at) { w->inline_at = 0; }
    if (!in_line(w)) { crdi_text_put(w->out, "\n", 1); }
}

void crdi_xml_line(crdi_xml_writer* w, const char* xml)
{
    close_tag(w);
    indent(w);
    crdi_text_add(w->out, "%s\n", xml);
}

// ---- texts -------------------------------------------------------------------------------------

// UTF-8 without the control characters that XML 1.0 has no way to write.
static bool can_hold(const char* text)
{
    for (const char* p = text; *p;) {
        const size_t n = crdi_utf8_length(p, strlen(p));
        const bool control = (unsigned char)*p < 0x20 && !strchr("\t\n\r", *p);
        const bool none = n == 3 && (memcmp(p, "\xEF\xBF\xBE", 3) == 0 || // U+FFFE, U+FFFF
                                     memcmp(p, "\xEF\xBF\xBF", 3) == 0);
        if (n == 0 || control || none) { return false; }
        p += n;
    }
    return true;
}

// Readers make blanks of white space in attributes, and of a carriage return anywhere.
static void put_escaped(crdi_xml_writer* w, const char* text, const char* special)
{
    if (!w->bad && !can_hold(text)) { w->bad = text; }
    for (const char* p = text; *p;) {
        const size_t n = strcspn(p, special);
        crdi_text_put(w->out, p, n);
        p += n;
        if (!*p) { return; }
        const char* entity = *p == '&'   ? "&amp;"
                             : *p == '<' ? "&lt;"
                             : *p == '>' ? "&gt;"
                             : *p == '"' ? "&quot;"
                                         : NULL;
        if (entity) {
            crdi_text_put(w->out, entity, strlen(entity));
        } else {
            crdi_text_add(w->out, "&#%d;", *p);
        }
        p++;
    }
}

void crdi_xml_content(crdi_xml_writer* w, const char* text)
{
    close_tag(w);
    put_escaped(w, text, "&<>\r"); // quotes may stay, so that a person can read it
}

void crdi_xml_put(crdi_xml_writer* w, const char* name, const char* value)
{
    crdi_text_add(w->out, " %s=\"", name);
    put_escaped(w, value ? value : "", "\t\n\r&<>\"");
    crdi_text_put(w->out, "\"", 1);
}

void crdi_xml_put_if(crdi_xml_writer* w, const char* name, const char* value)
{
    if (value && *value) { crdi_xml_put(w, name, value); }
}

void crdi_xml_put_int(crdi_xml_writer* w, const char* name, int64_t value)
{
    crdi_text_add(w->out, " %s=\"%lld\"", name, (long long)value);
}

void crdi_xml_put_whole(crdi_xml_writer* w, const char* name, uint64_t value)
{
    crdi_text_add(w->out, " %s=\"%llu\"", name, (unsigned long long)value);
}

void crdi_xml_put_bool(crdi_xml_writer* w, const char* name, bool value)
{
    crdi_xml_put(w, name, value ? "true" : "false");
}

void crdi_xml_put_real(crdi_xml_writer* w, const char* name, double value)
{
    crdi_text_add(w->out, " %s=\"", name);
    crdi_text_json_number(w->out, value);
    crdi_text_put(w->out, "\"", 1);
}
