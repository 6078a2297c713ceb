// Layouts of datagrams: messages with their fields, byte by byte, as YAML.
// docs/reference/frames.md.
#include "system/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "shared/wire_can.h"

static const char* const orders[] = {"little", "big", NULL};
static const char* const directions[] = {"receive", "send", NULL};

// Names of types; of those that end with a number it is that of their bits.
static const struct type_row {
    crdi_wire_type type;
    int bits; // 0: key `bits`
} types[] = {
    {CRDI_WIRE_UNSIGNED, 8},  {CRDI_WIRE_UNSIGNED, 16}, {CRDI_WIRE_UNSIGNED, 32},
    {CRDI_WIRE_UNSIGNED, 64}, {CRDI_WIRE_SIGNED, 8},    {CRDI_WIRE_SIGNED, 16},
    {CRDI_WIRE_SIGNED, 32},   {CRDI_WIRE_SIGNED, 64},   {CRDI_WIRE_FLOAT32, 32},
    {CRDI_WIRE_FLOAT64, 64},  {CRDI_WIRE_UNSIGNED, 0},  {CRDI_WIRE_SIGNED, 0},
};
static const char* const type_names[] = {"uint8", "uint16", "uint32", "uint64",  "int8",
                                         "int16", "int32",  "int64",  "float32", "float64",
                                         "uint",  "int",    NULL};
_Static_assert(COUNT(types) + 1 == COUNT(type_names), "a name for each type");
static const char* const checksums[] = {"none",    "sum8",  "xor8",  "crc8",
                                        "crc8-2f", "crc16", "crc32", NULL};
_Static_assert(COUNT(checksums) == CRDI_WIRE_CHECKSUMS + 1, "a name for each kind");

// ---- fields
// --------------------------------------------------------------------------------------

typedef struct field_draft {
    int type, at, bit, bits, order;
    const char *unit, *comment;
    double scale, offset, min, max, start;
    const crdi_node *values, *when;
} field_draft;

enum { F_TYPE, F_AT, F_BIT, F_BITS, F_ORDER };

static const crdi_key field_keys[] = {
    [F_TYPE] = {KEY("type", CHOICE, field_draft, type), .choices = type_names, .required = true},
    [F_AT] = {KEY("at", INT, field_draft, at), .min = 0, .max = CRDI_WIRE_LONGEST},
    [F_BIT] = {KEY("bit", INT, field_draft, bit), .min = 0, .max = 7},
    [F_BITS] = {KEY("bits", INT, field_draft, bits), .min = 1, .max = 64},
    [F_ORDER] = {KEY("byte_order", CHOICE, field_draft, order), .choices = orders},
    {KEY("scale", NUMBER, field_draft, scale)},
    {KEY("offset", NUMBER, field_draft, offset)},
    {KEY("min", NUMBER, field_draft, min)},
    {KEY("max", NUMBER, field_draft, max)},
    {KEY("start", NUMBER, field_draft, start)},
    {KEY("unit", TEXT, field_draft, unit)},
    {KEY("description", TEXT, field_draft, comment)},
    {KEY("values", NODE, field_draft, values)},
    {KEY("when", NODE, field_draft, when)},
};
TABLE(field);

// A whole number of a mapping or list that stands for itself.
static crd_status read_whole(crdi_reader* r, const crdi_node* n, const char* text, int64_t* out)
{
    if (crdi_parse_int64(text, strlen(text), out)) { return CRD_OK; }
    return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s', expected a whole number",
                          crdi_clip(text).text);
}

// { 0: off, 1: on }
static crd_status read_values(crdi_reader* r, const crdi_node* n, crdi_wire_field* f)
{
    crd_status st = CRD_OK;
    if (!n) { return CRD_OK; }
    CRD_TRY(
        crdi_expect_kind(r, n, CRDI_MAPPING, "raw values with their names, as { 0: off, 1: on }"));
    crdi_wire_item* items = crdi_arena_new(r->arena, (size_t)n->count + 1, sizeof *items);
    if (!items) { return CRD_E_MEMORY; }
    for (const crdi_node* m = n->first; m; m = m->next) {
        CRD_TRY(read_whole(r, m, m->key, &items[f->item_count].value));
        CRD_TRY(crdi_read_text(r, m, &items[f->item_count].name));
        f->item_count++;
    }
    f->items = items;
fail:
    return st;
}

// { mode: 3 } or { mode: [1, 2] }; the selector stands before what it selects.
static crd_status read_when(crdi_reader* r, const crdi_node* n, const crdi_wire_message* m,
                            crdi_wire_field* f)
{
    crd_status st = CRD_OK;
    if (!n) { return CRD_OK; }
    const crdi_node* by = n->first;
    CRD_TRY(crdi_expect_kind(r, n, CRDI_MAPPING, "a field with its values, as { mode: [1, 2] }"));
    f->selector = n->count == 1 ? crdi_wire_field_find(m, by->key) : -1;
    if (f->selector < 0) {
        return crdi_read_fail(r, CRD_E_NOT_FOUND, n->line,
                              "when: '%s', expected one field of the message that stands before "
                              "this one",
                              n->count ? crdi_clip(by->key).text : "");
    }
    const bool list = by->kind == CRDI_LIST;
    const crdi_node* item = list ? by->first : by;
    crdi_wire_range* ranges = crdi_arena_new(r->arena, (size_t)by->count + 1, sizeof *ranges);
    if (!ranges) { return CRD_E_MEMORY; }
    for (; item; item = list ? item->next : NULL) {
        int64_t value = 0;
        CRD_TRY(read_whole(r, item, item->text, &value));
        ranges[f->selected_by_count++] = (crdi_wire_range){value, value};
    }
    f->selected_by = ranges;
fail:
    return st;
}

typedef struct layout {
    crdi_reader* r;
    int order;
} layout;

// `*end` is the first byte behind what was read last: a field without `at` begins there.
static crd_status read_field(layout* l, const crdi_node* n, const crdi_wire_message* m, int* end,
                             crdi_wire_field* f)
{
    crd_status st = CRD_OK;
    crdi_reader* r = l->r;
    uint64_t given = 0;
    field_draft d = {.order = l->order,
                     .at = *end,
                     .unit = "",
                     .comment = "",
                     .scale = 1,
                     .min = -INFINITY,
                     .max = INFINITY};
    const size_t mark = crdi_path_enter(r, n->key ? n->key : "kind");
    CRD_TRY(crdi_read_mapping(r, n, &field_table, &d, &given));
    const struct type_row* type = &types[d.type];
    if ((type->bits == 0) != !!(given & BIT(F_BITS)) || (type->bits && given & BIT(F_BIT))) {
        return crdi_read_fail(
            r, CRD_E_FORMAT, n->line,
            "type %s %s, expected 'bits' (and 'bit') with the types uint and int, "
            "and with no other",
            type_names[d.type], type->bits ? "has its bits already" : "without 'bits'");
    }
    *f = crdi_wire_field_init();
    f->name = n->key ? crdi_arena_text(r->arena, n->key, strlen(n->key)) : "kind";
    if (!f->name) { return CRD_E_MEMORY; }
    f->line = n->line, f->unit = d.unit, f->comment = d.comment, f->type = type->type;
    f->length = type->bits ? type->bits : d.bits;
    f->big = d.order == 1;
    f->start = 8 * d.at + (given & BIT(F_BIT) ? d.bit : f->big ? 7 : 0);
    f->factor = d.scale, f->offset = d.offset, f->min = d.min, f->max = d.max, f->initial = d.start;
    const int above = f->big ? 7 - f->start % 8 : f->start % 8;
    *end = d.at + (above + f->length + 7) / 8;
    CRD_TRY(read_values(r, d.values, f));
    if (m) { CRD_TRY(read_when(r, d.when, m, f)); }
fail:
    crdi_path_leave(r, mark);
    return st;
}

static crd_status read_fields(layout* l, const crdi_node* n, crdi_wire_message* m)
{
    crd_status st = CRD_OK;
    int end = 0, longest = 0;
    const size_t mark = crdi_path_enter(l->r, "fields");
    CRD_TRY(
        crdi_expect_kind(l->r, n, CRDI_MAPPING, "a mapping of field names, each with its keys"));
    m->fields = crdi_arena_new(l->r->arena, (size_t)n->count + 1, sizeof *m->fields);
    if (!m->fields) { return CRD_E_MEMORY; }
    for (const crdi_node* f = n->first; f; f = f->next) {
        CRD_TRY(read_field(l, f, m, &end, &m->fields[m->field_count]));
        m->field_count++;
        if (end > longest) { longest = end; }
    }
    if (m->length < 0) { m->length = longest; }
    crdi_path_leave(l->r, mark);
fail:
    return st;
}

// ---- counters and checksums
// ----------------------------------------------------------------------

typedef struct check_draft {
    const char* field;
    int modulus, step, kind, from, to, data_id_bytes;
    uint64_t start, final_xor;
    bool last;
    const crdi_node* data_id;
} check_draft;

static const crdi_key counter_keys[] = {
    {KEY("field", TEXT, check_draft, field), .required = true},
    {KEY("modulus", INT, check_draft, modulus), .min = 2, .max = INT32_MAX},
    {KEY("step", INT, check_draft, step), .min = 1, .max = INT32_MAX},
};
TABLE(counter);

enum { C_START = 4, C_XOR };

static const crdi_key checksum_keys[] = {
    {KEY("field", TEXT, check_draft, field), .required = true},
    {KEY("type", CHOICE, check_draft, kind), .choices = checksums, .required = true},
    {KEY("from", INT, check_draft, from), .min = 0, .max = CRDI_WIRE_LONGEST},
    {KEY("to", INT, check_draft, to), .min = 0, .max = CRDI_WIRE_LONGEST},
    [C_START] = {KEY("start", SEED, check_draft, start)},
    [C_XOR] = {KEY("xor", SEED, check_draft, final_xor)},
    {KEY("data_id", NODE, check_draft, data_id)},
    {KEY("data_id_bytes", INT, check_draft, data_id_bytes), .min = 1, .max = 2},
    {KEY("data_id_last", BOOL, check_draft, last)},
};
TABLE(checksum);

static crd_status field_of(crdi_reader* r, const crdi_node* n, const crdi_wire_message* m,
                           const char* name, int* out)
{
    *out = crdi_wire_field_find(m, name);
    if (*out >= 0) { return CRD_OK; }
    return crdi_read_fail(r, CRD_E_NOT_FOUND, n->line, "'%s', expected a field of the message",
                          crdi_clip(name).text);
}

static crd_status read_counter(crdi_reader* r, const crdi_node* n, crdi_wire_message* m)
{
    crd_status st = CRD_OK;
    check_draft d = {.field = NULL};
    if (!n) { return CRD_OK; }
    const size_t mark = crdi_path_enter(r, "counter");
    if (n->kind == CRDI_MAPPING) {
        CRD_TRY(crdi_read_mapping(r, n, &counter_table, &d, NULL));
    } else {
        CRD_TRY(crdi_read_text(r, n, &d.field));
    }
    CRD_TRY(field_of(r, n, m, d.field, &m->counter.field));
    m->counter.line = n->line;
    m->counter.modulus = (uint64_t)d.modulus, m->counter.step = (uint64_t)d.step;
    crdi_path_leave(r, mark);
fail:
    return st;
}

static crd_status read_data_ids(crdi_reader* r, const crdi_node* n, crdi_wire_checksum* c)
{
    if (!n) { return CRD_OK; }
    const bool list = n->kind == CRDI_LIST;
    const crdi_node* item = list ? n->first : n;
    for (; item; item = list ? item->next : NULL) {
        int value = 0;
        const crd_status st = crdi_read_int(r, item, 0, UINT16_MAX, &value);
        if (st < 0) { return st; }
        if (c->data_ids == CRDI_WIRE_DATA_IDS) {
            return crdi_read_fail(r, CRD_E_RANGE, item->line, "more than %d data ids",
                                  CRDI_WIRE_DATA_IDS);
        }
        c->data_id[c->data_ids++] = (uint16_t)value;
    }
    return CRD_OK;
}

static crd_status read_checksum(crdi_reader* r, const crdi_node* n, crdi_wire_message* m)
{
    crd_status st = CRD_OK;
    check_draft d = {.to = m->length - 1, .data_id_bytes = 2};
    uint64_t given = 0;
    if (!n) { return CRD_OK; }
    const size_t mark = crdi_path_enter(r, "checksum");
    crdi_wire_checksum* c = &m->checksum;
    CRD_TRY(crdi_read_mapping(r, n, &checksum_table, &d, &given));
    crdi_wire_checksum_init(c, (crdi_wire_checksum_kind)d.kind);
    if (d.kind == CRDI_WIRE_NO_CHECKSUM) { goto fail; }
    c->line = n->line;
    CRD_TRY(field_of(r, n, m, d.field, &c->field));
    if (d.to < d.from || d.to >= m->length) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line,
                              "from byte %d to byte %d, expected bytes of the message, 0 to %d",
                              d.from, d.to, m->length - 1);
    }
    c->first = d.from, c->count = d.to - d.from + 1;
    if (given & BIT(C_START)) { c->start = (uint32_t)d.start; }
    if (given & BIT(C_XOR)) { c->final_xor = (uint32_t)d.final_xor; }
    c->data_id_bytes = d.data_id_bytes, c->data_id_last = d.last;
    CRD_TRY(read_data_ids(r, d.data_id, c));
fail:
    crdi_path_leave(r, mark);
    return st;
}

// ---- messages
// ------------------------------------------------------------------------------------

typedef struct message_draft {
    int direction, length;
    uint64_t id;
    double cycle;
    const char* comment;
    const crdi_node *counter, *checksum, *fields;
} message_draft;

enum { M_ID = 3 };

static const crdi_key message_keys[] = {
    {KEY("direction", CHOICE, message_draft, direction), .choices = directions, .required = true},
    {KEY("cycle", TIME, message_draft, cycle), .range = CRDI_POSITIVE},
    {KEY("length", INT, message_draft, length), .min = 1, .max = CRDI_WIRE_LONGEST},
    [M_ID] = {KEY("id", SEED, message_draft, id)},
    {KEY("description", TEXT, message_draft, comment)},
    {KEY("counter", NODE, message_draft, counter)},
    {KEY("checksum", NODE, message_draft, checksum)},
    {KEY("fields", NODE, message_draft, fields), .required = true},
};
TABLE(message);

static crd_status read_message(layout* l, const crdi_node* n, bool has_kind, crdi_wire_message* m)
{
    crd_status st = CRD_OK;
    crdi_reader* r = l->r;
    uint64_t given = 0;
    message_draft d = {.length = -1, .comment = ""};
    const size_t mark = crdi_path_enter(r, n->key);
    CRD_TRY(crdi_read_mapping(r, n, &message_table, &d, &given));
    if (has_kind != !!(given & BIT(M_ID)) || d.id > UINT32_MAX) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "%s",
                              has_kind ? "expected 'id', at most 0xFFFFFFFF: the value of the "
                                         "layout's 'kind' in this message"
                                       : "'id' means nothing in a layout without 'kind', expected "
                                         "the field that has it, as kind: { at: 0, type: uint8 }");
    }
    *m = crdi_wire_message_init();
    m->name = crdi_arena_text(r->arena, n->key, strlen(n->key));
    if (!m->name) { return CRD_E_MEMORY; }
    m->line = n->line, m->comment = d.comment, m->sent = d.direction == 1, m->id = (uint32_t)d.id;
    m->length = d.length, m->cycle = d.cycle;
    CRD_TRY(read_fields(l, d.fields, m));
    CRD_TRY(read_counter(r, d.counter, m));
    CRD_TRY(read_checksum(r, d.checksum, m));
    crdi_path_leave(r, mark);
fail:
    return st;
}

// Without a kind there is nothing to tell two messages apart by that come; those that leave are
// numbered so that each is somebody.
static crd_status number_messages(crdi_reader* r, crdi_wire_catalog* c)
{
    const crdi_wire_message* first = NULL;
    for (int i = 0; i < c->message_count; i++) {
        crdi_wire_message* m = &c->messages[i];
        m->id = (uint32_t)i;
        if (m->sent) { continue; }
        if (first) {
            return crdi_read_fail(r, CRD_E_FORMAT, m->line,
                                  "%s and %s (line %d) are received and cannot be told apart, "
                                  "expected 'kind' in the layout, as kind: { at: 0, type: uint8 }, "
                                  "and 'id' in its messages",
                                  m->name, first->name, first->line);
        }
        first = m;
    }
    return CRD_OK;
}

typedef struct layout_root {
    int version, order;
    const crdi_node *kind, *messages;
} layout_root;

static const crdi_key layout_keys[] = {
    {KEY("layout", INT, layout_root, version), .min = 1, .max = 1, .required = true},
    {KEY("byte_order", CHOICE, layout_root, order), .choices = orders},
    {KEY("kind", NODE, layout_root, kind)},
    {KEY("messages", NODE, layout_root, messages), .required = true},
};
TABLE(layout);

static crd_status read_layout(crdi_reader* r, const crdi_node* n, crdi_wire_catalog* c)
{
    crd_status st = CRD_OK;
    layout_root root = {0};
    CRD_TRY(crdi_read_mapping(r, n, &layout_table, &root, NULL));
    layout l = {r, root.order};
    int end = 0;
    if (root.kind) { CRD_TRY(read_field(&l, root.kind, NULL, &end, &c->kind)); }
    const size_t mark = crdi_path_enter(r, "messages");
    CRD_TRY(crdi_expect_kind(r, root.messages, CRDI_MAPPING,
                             "a mapping of message names, each with its keys"));
    if (root.messages->count == 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, root.messages->line,
                              "no message at all, expected at least one");
    }
    c->messages = crdi_arena_new(r->arena, (size_t)root.messages->count, sizeof *c->messages);
    if (!c->messages) { return CRD_E_MEMORY; }
    for (const crdi_node* m = root.messages->first; m; m = m->next) {
        CRD_TRY(read_message(&l, m, root.kind != NULL, &c->messages[c->message_count]));
        c->message_count++;
    }
    crdi_path_leave(r, mark);
    if (!root.kind) { CRD_TRY(number_messages(r, c)); }
    CRD_TRY(crdi_wire_prepare(r->ctx, c));
fail:
    return st;
}

crd_status crdi_layout_parse(crd_context* ctx, const char* text, size_t length, const char* file,
                             crd_arena* arena, crdi_wire_catalog* out)
{
    crd_status st = CRD_OK;
    crdi_node* tree = NULL;
    *out = (crdi_wire_catalog){.file = file};
    CRD_TRY(crdi_yaml_parse(arena, text, length, (crd_place){file, -1}, &tree));
    crdi_reader r = {.ctx = ctx, .arena = arena, .scratch = arena, .file = file};
    CRD_TRY(read_layout(&r, tree, out));
fail:
    return st;
}

crd_status crdi_layout_load(crd_context* ctx, const char* path, crd_arena* arena,
                            crdi_wire_catalog* out)
{
    crd_text bytes;
    crd_text_init(&bytes, ctx);
    crd_status st = crdi_read_file(ctx, path, &bytes);
    if (st >= 0) { st = crdi_layout_parse(ctx, bytes.data, bytes.length, path, arena, out); }
    crd_text_clear(&bytes);
    return st;
}

// ---- messages of a DBC file
// ----------------------------------------------------------------------

crd_status crdi_read_messages(crdi_reader* r, const crdi_node* n, void* out)
{
    static const char* const none[] = {NULL};
    crd_message_list* list = out;
    crd_text text;
    crd_text_init(&text, r->ctx);
    crdi_node_json(n, n->line, none, &text);
    list->place = (crd_place){r->file, n->line};
    list->text = text.failed ? NULL : crdi_arena_text(r->arena, text.data, text.length);
    crd_text_clear(&text);
    return list->text ? CRD_OK : CRD_E_MEMORY;
}

static const crdi_key chosen_keys[] = {
    {KEY("cycle", TIME, message_draft, cycle), .range = CRDI_POSITIVE},
    {KEY("counter", NODE, message_draft, counter)},
    {KEY("checksum", NODE, message_draft, checksum)},
};
TABLE(chosen);

typedef struct choice {
    crdi_reader r;
    crdi_wire_catalog* c;
    int* lines; // where each message was named; 0: nowhere
    bool sent;
} choice;

typedef struct name_walk {
    const crdi_wire_catalog* c;
    int next;
} name_walk;

static const char* next_message(void* user)
{
    name_walk* w = user;
    return w->next < w->c->message_count ? w->c->messages[w->next++].name : NULL;
}

// A name, or with keys the value of one.
static crd_status choose_message(choice* h, const crdi_node* n)
{
    crd_status st = CRD_OK;
    crdi_reader* r = &h->r;
    crdi_can_frame frame;
    const char* name = n->key;
    message_draft d = {0};
    if (!name) { CRD_TRY(crdi_read_text(r, n, &name)); }
    const int i = crdi_wire_message_find(h->c, name);
    if (i < 0) {
        return crdi_read_fail(r, CRD_E_NOT_FOUND, n->line, "'%s', expected a message of %s%s",
                              crdi_clip(name).text, h->c->file,
                              crdi_hint_from(name, next_message, &(name_walk){h->c, 0}).text);
    }
    crdi_wire_message* m = &h->c->messages[i];
    if (h->lines[i]) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "%s is %s already (line %d), expected each message once", name,
                              m->sent ? "sent" : "received", h->lines[i]);
    }
    if (crdi_can_frame_for(r->ctx, m, &frame) < 0) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line,
                              "%s has %d bytes, expected a message that is one frame: at most 8 "
                              "bytes, of CAN FD 12, 16, 20, 24, 32, 48 or 64",
                              name, m->length);
    }
    h->lines[i] = n->line;
    m->sent = h->sent;
    if (!n->key || crdi_node_empty(n)) { return CRD_OK; }
    const size_t mark = crdi_path_enter(r, name);
    CRD_TRY(crdi_read_mapping(r, n, &chosen_table, &d, NULL));
    if (d.cycle > 0) { m->cycle = d.cycle; }
    CRD_TRY(read_counter(r, d.counter, m));
    CRD_TRY(read_checksum(r, d.checksum, m));
    crdi_path_leave(r, mark);
fail:
    return st;
}

static crd_status choose_list(choice* h, const crd_message_list* list, bool sent)
{
    crd_status st = CRD_OK;
    crdi_node* n = NULL;
    if (!list->text) { return CRD_OK; }
    h->r.file = list->place.file;
    h->sent = sent;
    CRD_TRY(crdi_yaml_parse(h->r.arena, list->text, strlen(list->text),
                            (crd_place){list->place.file, -list->place.line}, &n));
    const size_t mark = crdi_path_enter(&h->r, sent ? "send" : "receive");
    if (n->kind == CRDI_SCALAR) { return choose_message(h, n); }
    for (const crdi_node* m = n->first; m; m = m->next) {
        CRD_TRY(choose_message(h, m));
    }
    crdi_path_leave(&h->r, mark);
fail:
    return st;
}

crd_status crdi_layout_choose(crd_context* ctx, const crd_unit_spec* spec, crd_arena* arena,
                              crdi_wire_catalog* c)
{
    crd_status st = CRD_OK;
    choice h = {.r = {.ctx = ctx, .arena = arena, .scratch = arena}, .c = c};
    const char* dbc = c->file;
    int count = 0;
    h.lines = crdi_arena_new(arena, (size_t)c->message_count + 1, sizeof *h.lines);
    if (!h.lines) { return CRD_E_MEMORY; }
    (void)crdi_path_enter(&h.r, "units");
    (void)crdi_path_enter(&h.r, spec->name);
    CRD_TRY(choose_list(&h, &spec->send, true));
    CRD_TRY(choose_list(&h, &spec->receive, false));
    for (int i = 0; i < c->message_count; i++) {
        crdi_can_frame frame;
        const bool other =
            !spec->receive.text && crdi_can_frame_for(ctx, &c->messages[i], &frame) >= 0;
        if (h.lines[i] || other) { c->messages[count++] = c->messages[i]; }
    }
    c->message_count = count;
    if (count == 0) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s has no message to send or receive", dbc);
    }
    // What is wrong now is a counter or a checksum, which the description has and not the DBC file.
    c->file = h.r.file ? h.r.file : dbc;
    CRD_TRY(crdi_wire_prepare(ctx, c));
    c->file = dbc;
fail:
    return st;
}
