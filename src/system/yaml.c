#include "system/yaml.h"

#include "shared/base_findings.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

typedef struct builder {
    crd_arena* arena;
    crd_context* ctx;
    crd_place place;
    const char* text;
    size_t length;
    crdi_node* stack[CRDI_YAML_DEPTH]; // open lists and mappings, outermost first
    int depth;
    const char* key; // read, its value is next
    int key_line;
    crdi_node* root;
} builder;

crdi_where crdi_place_text(crd_place place)
{
    crdi_where w = {""};
    const char* file = place.file ? place.file : "";
    if (file[0] && place.line > 0) {
        snprintf(w.text, sizeof w.text, "%.256s:%d: ", file, place.line);
    } else if (file[0]) {
        snprintf(w.text, sizeof w.text, "%.256s: ", file);
    } else if (place.line > 0) {
        snprintf(w.text, sizeof w.text, "line %d: ", place.line);
    }
    return w;
}

const crdi_node* crdi_node_get(const crdi_node* mapping, const char* key)
{
    for (const crdi_node* n = mapping->first; n; n = n->next) {
        if (n->key && strcmp(n->key, key) == 0) { return n; }
    }
    return NULL;
}

bool crdi_node_empty(const crdi_node* n)
{
    return n->kind == CRDI_SCALAR && !n->quoted &&
           (n->text[0] == 0 || strcmp(n->text, "~") == 0 || strcmp(n->text, "null") == 0);
}

static int line_of(const builder* b, yaml_mark_t mark)
{
    return b->place.line < 0 ? (int)mark.line - b->place.line : b->place.line;
}

static crdi_where where(const builder* b, yaml_mark_t mark)
{
    return crdi_place_text((crd_place){b->place.file, line_of(b, mark)});
}

static crd_status syntax_error(const builder* b, const yaml_parser_t* p)
{
    if (p->error == YAML_MEMORY_ERROR) {
        return crdi_fail(b->ctx, CRD_E_MEMORY, "out of memory while reading YAML");
    }
    const char* problem = p->problem ? p->problem : "unknown problem";
    if (p->error == YAML_READER_ERROR) {
        int line = -b->place.line;
        for (size_t i = 0; i < p->problem_offset && i < b->length; i++) {
            line += b->text[i] == '\n';
        }
        if (b->place.line >= 0) { line = b->place.line; }
        return crdi_fail(b->ctx, CRD_E_FORMAT, "%snot a YAML text: %s at byte %zu, expected UTF-8",
                         crdi_place_text((crd_place){b->place.file, line}).text, problem,
                         p->problem_offset);
    }
    // Marks count characters, which are bytes up to the first character that is not ASCII.
    const size_t at = p->problem_mark.index;
    if (at < b->length && b->text[at] == '\t') { problem = "a tab stands where YAML wants spaces"; }
    char context[120] = "";
    if (p->context && p->context_mark.line != p->problem_mark.line &&
        line_of(b, p->context_mark) > 0) { // else it is one line of something else
        snprintf(context, sizeof context, " (%s that begins in line %d)", p->context,
                 line_of(b, p->context_mark));
    }
    return crdi_fail(b->ctx, CRD_E_FORMAT, "%snot valid YAML: %s%s", where(b, p->problem_mark).text,
                     problem, context);
}

static void set_end(crdi_node* n, yaml_mark_t mark)
{
    n->at.end_line = (int)mark.line;
    n->at.end_column = (int)mark.column;
}

static crdi_node* add_node(builder* b, crdi_node_kind kind, yaml_mark_t mark)
{
    crdi_node* n = crdi_arena_new(b->arena, 1, sizeof *n);
    if (!n) { return NULL; }
    *n = (crdi_node){.kind = kind, .line = line_of(b, mark), .text = "", .key = b->key};
    n->at.line = (int)mark.line;
    n->at.column = (int)mark.column;
    if (b->key) { n->line = b->key_line; }
    b->key = NULL;
    if (b->depth == 0) {
        b->root = n;
        return n;
    }
    crdi_node* parent = b->stack[b->depth - 1];
    if (parent->last) {
        parent->last->next = n;
    } else {
        parent->first = n;
    }
    parent->last = n;
    parent->count++;
    return n;
}

static bool wants_key(const builder* b)
{
    return b->depth > 0 && b->stack[b->depth - 1]->kind == CRDI_MAPPING && !b->key;
}

static crd_status on_scalar(builder* b, const yaml_event_t* e)
{
    const char* value = (const char*)e->data.scalar.value;
    const size_t length = e->data.scalar.length;
    if (memchr(value, 0, length)) {
        return crdi_fail(b->ctx, CRD_E_FORMAT, "%sa zero byte in '%s', expected text",
                         where(b, e->start_mark).text, crdi_clip(value).text);
    }
    char* text = crdi_arena_text(b->arena, value, length);
    if (!text) { return CRD_E_MEMORY; }
    if (wants_key(b)) {
        b->key = text;
        b->key_line = line_of(b, e->start_mark);
        return CRD_OK;
    }
    crdi_node* n = add_node(b, CRDI_SCALAR, e->start_mark);
    if (!n) { return CRD_E_MEMORY; }
    n->text = text;
    n->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    set_end(n, e->end_mark);
    return CRD_OK;
}

static crd_status on_open(builder* b, crdi_node_kind kind, bool flow, yaml_mark_t mark)
{
    if (wants_key(b)) {
        return crdi_fail(b->ctx, CRD_E_FORMAT, "%sa %s as a key, expected a name",
                         where(b, mark).text, kind == CRDI_LIST ? "list" : "mapping");
    }
    if (b->depth == CRDI_YAML_DEPTH) {
        return crdi_fail(b->ctx, CRD_E_FORMAT, "%snested deeper than %d levels",
                         where(b, mark).text, CRDI_YAML_DEPTH);
    }
    crdi_node* n = add_node(b, kind, mark);
    if (!n) { return CRD_E_MEMORY; }
    n->flow = flow;
    b->stack[b->depth++] = n;
    return CRD_OK;
}

static crd_status duplicate_key(const builder* b, const crdi_node* first, const crdi_node* again)
{
    char lines[48] = "";
    if (again->line != first->line) {
        snprintf(lines, sizeof lines, ", first in line %d", first->line);
    }
    return crdi_fail(b->ctx, CRD_E_FORMAT, "%sthe key '%s' is given twice%s",
                     crdi_place_text((crd_place){b->place.file, again->line}).text,
                     crdi_clip(again->key).text, lines);
}

// Of what is given twice the first counts while others are looked for.
static crd_status check_duplicates(const builder* b, crdi_node* mapping)
{
    enum { FEW = 12 };
    const bool few = mapping->count <= FEW;
    crd_status st = CRD_OK;
    crd_map map;
    crdi_map_init(&map, b->ctx);
    if (!few) { CRD_TRY(crdi_map_reserve(&map, (size_t)mapping->count)); }
    crdi_node* before = NULL;
    for (crdi_node* n = mapping->first; n; n = n->next) {
        bool fresh = few && crdi_node_get(mapping, n->key) == n;
        if (!few) { CRD_TRY(crdi_map_add(&map, n->key, 0, &fresh)); }
        if (fresh) {
            before = n;
            continue;
        }
        CRD_TRY(crdi_go_on(b->ctx, duplicate_key(b, crdi_node_get(mapping, n->key), n)));
        before->next = n->next;
        mapping->count--;
    }
    mapping->last = before;
fail:
    crdi_map_clear(&map);
    return st;
}

// What YAML could do and a system description does not use.
static crd_status refuse_feature(const builder* b, const yaml_event_t* e)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (e->type) {
    case YAML_ALIAS_EVENT:
        return crdi_fail(b->ctx, CRD_E_FORMAT,
                         "%salias '*%s': aliases are not read here, write the value itself",
                         where(b, e->start_mark).text,
                         crdi_clip((const char*)e->data.alias.anchor).text);
    case YAML_SCALAR_EVENT:
        anchor = e->data.scalar.anchor;
        tag = e->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = e->data.sequence_start.anchor;
        tag = e->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = e->data.mapping_start.anchor;
        tag = e->data.mapping_start.tag;
        break;
    default:
        break;
    }
    if (anchor) {
        return crdi_fail(b->ctx, CRD_E_FORMAT,
                         "%sanchor '&%s': anchors are not read here, write each value itself",
                         where(b, e->start_mark).text, crdi_clip((const char*)anchor).text);
    }
    if (tag) {
        return crdi_fail(b->ctx, CRD_E_FORMAT, "%stag '%s': tags are not read here, leave it out",
                         where(b, e->start_mark).text, crdi_clip((const char*)tag).text);
    }
    if (e->type == YAML_DOCUMENT_START_EVENT && b->root) {
        return crdi_fail(b->ctx, CRD_E_FORMAT, "%sa second document, expected one in the file",
                         where(b, e->start_mark).text);
    }
    return CRD_OK;
}

static crd_status on_event(builder* b, const yaml_event_t* e)
{
    const crd_status st = refuse_feature(b, e);
    if (st < 0) { return st; }
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(b, e);
    case YAML_SEQUENCE_START_EVENT:
        return on_open(b, CRDI_LIST, e->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE,
                       e->start_mark);
    case YAML_MAPPING_START_EVENT:
        return on_open(b, CRDI_MAPPING, e->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE,
                       e->start_mark);
    case YAML_SEQUENCE_END_EVENT:
        set_end(b->stack[--b->depth], e->end_mark);
        return CRD_OK;
    case YAML_MAPPING_END_EVENT:
        set_end(b->stack[b->depth - 1], e->end_mark);
        return check_duplicates(b, b->stack[--b->depth]);
    default:
        return CRD_OK;
    }
}

// %TAG is of no use here, and libyaml compares each with all before: a megabyte of them takes
// hours.
static crd_status refuse_tag_directives(const builder* b)
{
    // the last bytes of all that may end a line in YAML, and of a byte order mark
    static const char breaks[] = "\n\r\x85\xa8\xa9\xbf";
    int line = -b->place.line;
    for (size_t i = 0; i + 4 < b->length; i++) {
        const bool first = i == 0 || memchr(breaks, b->text[i - 1], sizeof breaks - 1);
        if (first && memcmp(b->text + i, "%TAG", 4) == 0) {
            const crd_place place = {b->place.file, b->place.line < 0 ? line : b->place.line};
            return crdi_fail(b->ctx, CRD_E_FORMAT, "%s%%TAG: tags are not read here, leave it out",
                             crdi_place_text(place).text);
        }
        line += b->text[i] == '\n';
    }
    return CRD_OK;
}

crd_status crdi_yaml_parse(crd_arena* arena, const char* text, size_t length, crd_place place,
                           crdi_node** root)
{
    builder b = {.arena = arena, .ctx = arena->ctx, .place = place, .text = text, .length = length};
    if (length > CRDI_YAML_BYTES) {
        return crdi_fail(b.ctx, CRD_E_FORMAT, "%s%zu bytes, expected at most %d",
                         crdi_place_text(place).text, length, CRDI_YAML_BYTES);
    }
    crd_status st = refuse_tag_directives(&b);
    if (st < 0) { return st; }
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        return crdi_fail(b.ctx, CRD_E_MEMORY, "out of memory while reading YAML");
    }
    // libyaml would count a byte order mark as a column once the encoding is given
    const size_t mark = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    yaml_parser_set_input_string(&parser, (const unsigned char*)text + mark, length - mark);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    for (bool more = true; more && st >= 0;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            st = syntax_error(&b, &parser);
            break;
        }
        more = event.type != YAML_STREAM_END_EVENT;
        st = on_event(&b, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    if (st >= 0 && !b.root) {
        st = crdi_fail(b.ctx, CRD_E_FORMAT, "%sthe text is empty", crdi_place_text(place).text);
    }
    if (st >= 0) { *root = b.root; }
    return st;
}
