// A DBC file becomes a catalog of messages.
//
// Sections come in any order but for signals, which follow their message; what is said about them
// (types, multiplexors, attributes, values) is put together at the end. Sections that say nothing
// about bytes on the bus (environment variables, groups, relations) are passed over.
#include "wire/dbc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_BYTES = 32 << 20,
    LONGEST = 1785,   // bytes of a message: J1939 in pieces
    STANDARD = 0x7FF, // the largest identifiers
    EXTENDED = 0x1FFFFFFF,
    FRAME = 64,       // bytes of the longest frame
    MOST_RANGES = 64, // of one signal in SG_MUL_VAL_
    MOST_MESSAGES = 16384,
};
static const int64_t extended_bit = 0x80000000;
static const int64_t no_message = 0xC0000000; // holds signals that belong to none

typedef struct dbc_field {
    crdi_wire_field f;
    bool is_selector;      // M
    bool selected;         // m<value>
    crdi_wire_range value; // of the latter
    const char* selector;  // by SG_MUL_VAL_, NULL
    int selector_line;
    double start; // GenSigStartValue, raw; NaN: not given
} dbc_field;

typedef struct dbc_message {
    crdi_wire_message m;
    int first;    // of its fields
    int format;   // VFrameFormat, -1: not given
    double cycle; // GenMsgCycleTime, ms; NaN: not given
} dbc_message;

typedef struct dbc_table {
    const char* name;
    const crdi_wire_item* items;
    int count;
} dbc_table;

// A growing list of the reader; memory of the context.
typedef struct dbc_list {
    void* items;
    size_t room;
    int count;
} dbc_list;

typedef struct dbc_reader {
    crdi_dbc_scan s;
    crd_arena* arena;
    dbc_list messages, fields, tables, items;
    crd_map ids;         // "256" and "256 Speed": messages and fields by what sections call them
    int stray;           // sections about what is not there,
    int stray_line;      // the first of them
    double cycle, start; // what attributes have by default; NaN: none
    int format;          // -1
    uint64_t fd_formats; // items of VFrameFormat that say FD
} dbc_reader;

static void* list_add(dbc_reader* r, dbc_list* l, size_t size)
{
    void* grown = crdi_grow(r->s.ctx, l->items, &l->room, (size_t)l->count + 1, size);
    if (!grown) {
        r->s.status = CRD_E_MEMORY;
        return NULL;
    }
    l->items = grown;
    return memset((char*)grown + (size_t)l->count++ * size, 0, size);
}

static dbc_message* message_at(const dbc_reader* r, int i)
{
    return (dbc_message*)r->messages.items + i;
}

static dbc_field* field_at(const dbc_reader* r, int i)
{
    return (dbc_field*)r->fields.items + i;
}

static bool same(const char* a, const char* b)
{
    return strcmp(a, b) == 0;
}

// ---- messages and signals ----------------------------------------------------------------------

// Known from now on by `key`; what has it already is said.
static void dbc_register(dbc_reader* r, const char* key, int index, int line, const char* what)
{
    bool fresh = true;
    const char* kept = crdi_arena_text(r->arena, key, strlen(key)); // the map borrows it
    if (r->s.status < 0) { return; }
    if (!kept || crdi_map_add(&r->ids, kept, index, &fresh) < 0) {
        r->s.status = CRD_E_MEMORY;
    } else if (!fresh) {
        const int other = crdi_map_find(&r->ids, key);
        const bool field = strchr(key, ' ') != NULL;
        crdi_dbc_fail(&r->s, line, "%s is there already, in line %d", what,
                      field ? field_at(r, other)->f.line : message_at(r, other)->m.line);
    }
}

// "M", "m3", "m3M" or nothing, before the colon
static void read_multiplexing(dbc_reader* r, dbc_field* f)
{
    crdi_dbc_scan* s = &r->s;
    if (s->token.kind != CRDI_DBC_WORD) { return; }
    const char* p = s->token.at;
    size_t n = s->token.length;
    if (n > 0 && p[n - 1] == 'M') {
        f->is_selector = true;
        n--;
    }
    uint64_t value = 0;
    if (n > 0) {
        if (*p != 'm' || !crdi_parse_uint64(p + 1, n - 1, &value) || value > INT64_MAX) {
            crdi_dbc_unexpected(s, "':', or M or m and a number for multiplexing");
            return;
        }
        f->selected = true;
        f->value = (crdi_wire_range){(int64_t)value, (int64_t)value};
    }
    crdi_dbc_next(s);
}

// [0|0] says that there are no limits.
static void read_limits(dbc_reader* r, crdi_wire_field* f)
{
    crdi_dbc_scan* s = &r->s;
    crdi_dbc_expect(s, '[');
    const double min = crdi_dbc_real(s, "the smallest value, a number");
    crdi_dbc_expect(s, '|');
    const double max = crdi_dbc_real(s, "the largest value, a number");
    crdi_dbc_expect(s, ']');
    if (min != max) {
        f->min = min;
        f->max = max;
    }
}

static bool at_section(const crdi_dbc_scan* s);

// SG_ name M : start|length@order sign (factor,offset) [min|max] "unit" receivers
static void read_signal(dbc_reader* r, int64_t id)
{
    crdi_dbc_scan* s = &r->s;
    char key[200], what[200];
    dbc_field f = {.f = crdi_wire_field_init(), .start = NAN};
    f.f.line = s->token.line;
    crdi_dbc_next(s);
    f.f.name = crdi_dbc_word(s, r->arena, "the name of a signal");
    read_multiplexing(r, &f);
    crdi_dbc_expect(s, ':');
    f.f.start = (int)crdi_dbc_integer(s, 0, 8 * LONGEST - 1, "the start bit, 0 to 14279");
    crdi_dbc_expect(s, '|');
    f.f.length = (int)crdi_dbc_integer(s, 1, 64, "the length in bits, 1 to 64");
    crdi_dbc_expect(s, '@');
    f.f.big = crdi_dbc_integer(s, 0, 1, "the byte order, 1 (little endian) or 0 (big endian)") == 0;
    f.f.type = crdi_dbc_accept(s, '-') ? CRDI_WIRE_SIGNED : CRDI_WIRE_UNSIGNED;
    if (f.f.type == CRDI_WIRE_UNSIGNED) { crdi_dbc_expect(s, '+'); }
    crdi_dbc_expect(s, '(');
    f.f.factor = crdi_dbc_real(s, "the factor, a number");
    crdi_dbc_expect(s, ',');
    f.f.offset = crdi_dbc_real(s, "the offset, a number");
    crdi_dbc_expect(s, ')');
    read_limits(r, &f.f);
    f.f.unit = crdi_dbc_text(s, r->arena);
    bool more = s->token.kind == CRDI_DBC_WORD && !at_section(s); // receivers
    while (more) {
        (void)crdi_dbc_word(s, r->arena, "a node that receives the signal");
        more = crdi_dbc_accept(s, ',');
    }
    if (s->status < 0 || id == no_message) { return; }
    snprintf(key, sizeof key, "%lld %s", (long long)id, f.f.name);
    snprintf(what, sizeof what, "signal '%s' of message %lld", f.f.name, (long long)id);
    dbc_field* new = list_add(r, &r->fields, sizeof f);
    if (new) { *new = f; }
    dbc_register(r, key, r->fields.count - 1, f.f.line, what);
}

// BO_ id name: length sender, and its signals
static void read_message(dbc_reader* r)
{
    crdi_dbc_scan* s = &r->s;
    char key[32], what[64];
    dbc_message m = {.m = crdi_wire_message_init(), .format = -1, .cycle = NAN};
    m.m.line = s->token.line;
    crdi_dbc_next(s);
    const int64_t id = crdi_dbc_integer(s, 0, UINT32_MAX, "the identifier of a message");
    m.m.extended = id & extended_bit;
    m.m.id = (uint32_t)(id & ~extended_bit);
    if (id != no_message && m.m.id > (m.m.extended ? EXTENDED : STANDARD)) {
        crdi_dbc_fail(s, m.m.line,
                      "the identifier %lld is none of CAN, expected 0 to 2047, or with bit 31 set "
                      "0 to 536870911",
                      (long long)id);
    }
    m.m.name = crdi_dbc_word(s, r->arena, "the name of a message");
    crdi_dbc_expect(s, ':');
    m.m.length = (int)crdi_dbc_integer(s, 0, LONGEST, "the length in bytes, 0 to 1785");
    m.m.sender = crdi_dbc_word(s, r->arena, "the node that sends the message");
    m.first = r->fields.count;
    while (crdi_dbc_is(s, "SG_")) {
        read_signal(r, id);
    }
    if (r->messages.count == MOST_MESSAGES) {
        crdi_dbc_fail(s, m.m.line, "more than %d messages", MOST_MESSAGES);
    }
    if (s->status < 0 || id == no_message) { return; }
    m.m.field_count = r->fields.count - m.first;
    snprintf(key, sizeof key, "%lld", (long long)id);
    snprintf(what, sizeof what, "a message with the identifier %lld", (long long)id);
    if (same(m.m.sender, "Vector__XXX")) { m.m.sender = ""; }
    dbc_message* new = list_add(r, &r->messages, sizeof m);
    if (new) { *new = m; }
    dbc_register(r, key, r->messages.count - 1, m.m.line, what);
}

// ---- what is said about them -------------------------------------------------------------------

// The number of a message, and of a signal its name: where it stands in its list. -1: not there,
// which is a mistake if it `matters`, and otherwise counted.
static int find_subject(dbc_reader* r, bool signal, bool matters)
{
    crdi_dbc_scan* s = &r->s;
    char key[200];
    const int line = s->token.line;
    const int64_t id = crdi_dbc_integer(s, 0, UINT32_MAX, "the identifier of a message");
    const char* name = signal ? crdi_dbc_word(s, r->arena, "the name of a signal") : "";
    snprintf(key, sizeof key, "%lld%s%s", (long long)id, signal ? " " : "", name);
    const int found = s->status < 0 ? -1 : crdi_map_find(&r->ids, key);
    if (found >= 0 || s->status < 0 || id == no_message) { return found; }
    if (matters) {
        crdi_dbc_fail(s, line, "there is no signal '%s' in a message %lld", name, (long long)id);
    } else if (r->stray++ == 0) {
        r->stray_line = line;
    }
    return -1;
}

// CM_ [BU_ node | BO_ id | SG_ id signal | EV_ name] "comment" ;
static void read_comment(dbc_reader* r)
{
    crdi_dbc_scan* s = &r->s;
    crdi_dbc_next(s);
    const char** where = NULL;
    if (crdi_dbc_is(s, "BO_") || crdi_dbc_is(s, "SG_")) {
        const bool signal = crdi_dbc_is(s, "SG_");
        crdi_dbc_next(s);
        const int i = find_subject(r, signal, false);
        if (i >= 0) { where = signal ? &field_at(r, i)->f.comment : &message_at(r, i)->m.comment; }
    } else if (s->token.kind == CRDI_DBC_WORD) {
        crdi_dbc_next(s);
        (void)crdi_dbc_word(s, r->arena, "a name");
    }
    const char* text = crdi_dbc_text(s, r->arena);
    if (where) { *where = text; }
    crdi_dbc_expect(s, ';');
}

// value "name" value "name" ... ;
static const crdi_wire_item* read_items(dbc_reader* r, int* count)
{
    crdi_dbc_scan* s = &r->s;
    r->items.count = 0;
    while (s->status >= 0 && !crdi_dbc_accept(s, ';')) {
        crdi_wire_item* item = list_add(r, &r->items, sizeof *item);
        if (!item) { break; }
        item->value = crdi_dbc_integer(s, INT64_MIN, INT64_MAX, "';' or a value, a whole number");
        item->name = crdi_dbc_text(s, r->arena);
    }
    crdi_wire_item* kept = crdi_arena_new(r->arena, (size_t)r->items.count, sizeof *kept);
    *count = kept ? r->items.count : 0;
    if (*count) { memcpy(kept, r->items.items, (size_t)*count * sizeof *kept); }
    return kept;
}

static void read_table(dbc_reader* r)
{
    crdi_dbc_next(&r->s);
    dbc_table t = {.name = crdi_dbc_word(&r->s, r->arena, "the name of a value table")};
    t.items = read_items(r, &t.count);
    dbc_table* new = list_add(r, &r->tables, sizeof t);
    if (new) { *new = t; }
}

// VAL_ id signal value "name" ... ; or VAL_ id signal table ; or of an environment variable
static void read_values(dbc_reader* r)
{
    crdi_dbc_scan* s = &r->s;
    crdi_dbc_next(s);
    int i = -1, count = 0;
    if (s->token.kind == CRDI_DBC_WORD) {
        crdi_dbc_next(s);
    } else {
        i = find_subject(r, true, false);
    }
    const crdi_wire_item* items = NULL;
    if (s->token.kind == CRDI_DBC_WORD) {
        const int line = s->token.line;
        const char* name = crdi_dbc_word(s, r->arena, "a value table");
        for (int k = 0; k < r->tables.count; k++) {
            const dbc_table* t = (const dbc_table*)r->tables.items + k;
            if (!same(t->name, name)) { continue; }
            items = t->items;
            count = t->count;
        }
        if (!items) { crdi_dbc_fail(s, line, "there is no VAL_TABLE_ '%s'", name); }
        crdi_dbc_expect(s, ';');
    } else {
        items = read_items(r, &count);
    }
    if (i < 0 || s->status < 0) { return; }
    field_at(r, i)->f.items = items;
    field_at(r, i)->f.item_count = count;
}

// SIG_VALTYPE_ id signal : 0 | 1 | 2 ; integer, float, double
static void read_value_type(dbc_reader* r)
{
    crdi_dbc_scan* s = &r->s;
    crdi_dbc_next(s);
    const int line = s->token.line;
    const int i = find_subject(r, true, true);
    (void)crdi_dbc_accept(s, ':');
    const int type =
        (int)crdi_dbc_integer(s, 0, 2, "the type, 0 (integer), 1 (float) or 2 (double)");
    crdi_dbc_expect(s, ';');
    if (i < 0 || type == 0 || s->status < 0) { return; }
    crdi_wire_field* f = &field_at(r, i)->f;
    f->type = type == 1 ? CRDI_WIRE_FLOAT32 : CRDI_WIRE_FLOAT64;
    if (f->length != 32 * type) {
        crdi_dbc_fail(s, line, "signal '%s' of line %d has %d bits, a %s has %d", f->name, f->line,
                      f->length, type == 1 ? "float" : "double", 32 * type);
    }
}

// SG_MUL_VAL_ id signal selector first-last, first-last ... ;
static void read_ranges(dbc_reader* r)
{
    crdi_dbc_scan* s = &r->s;
    crdi_wire_range ranges[MOST_RANGES];
    int n = 0;
    crdi_dbc_next(s);
    const int line = s->token.line;
    const int i = find_subject(r, true, true);
    const char* selector = crdi_dbc_word(s, r->arena, "the signal that selects");
    do {
        if (n == MOST_RANGES) {
            crdi_dbc_fail(s, line, "more than %d ranges of a multiplexor", MOST_RANGES);
            return;
        }
        const int64_t first = crdi_dbc_integer(s, 0, UINT32_MAX, "a range as 1-3");
        crdi_dbc_expect(s, '-');
        const int64_t last = crdi_dbc_integer(s, 0, UINT32_MAX, "a range as 1-3");
        if (last < first) {
            crdi_dbc_fail(s, line, "the range %lld-%lld is empty, expected the smaller one first",
                          (long long)first, (long long)last);
        }
        ranges[n++] = (crdi_wire_range){first, last};
    } while (crdi_dbc_accept(s, ','));
    crdi_dbc_expect(s, ';');
    crdi_wire_range* kept = crdi_arena_new(r->arena, (size_t)n, sizeof *kept);
    if (i < 0 || !kept || s->status < 0) { return; }
    memcpy(kept, ranges, (size_t)n * sizeof *kept);
    dbc_field* f = field_at(r, i);
    f->selector = selector;
    f->selector_line = line;
    f->f.selected_by = kept;
    f->f.selected_by_count = n;
}

// ---- attributes --------------------------------------------------------------------------------

// To behind the ';', texts as a whole
static void skip_section(dbc_reader* r)
{
    while (r->s.token.kind != CRDI_DBC_END && !crdi_dbc_accept(&r->s, ';')) {
        crdi_dbc_next(&r->s);
    }
}

// BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN", ... ; : which of them are CAN FD
static void read_definition(dbc_reader* r)
{
    crdi_dbc_scan* s = &r->s;
    crdi_dbc_next(s);
    if (s->token.kind == CRDI_DBC_WORD) { crdi_dbc_next(s); }
    if (!same(crdi_dbc_text(s, r->arena), "VFrameFormat") || !crdi_dbc_is(s, "ENUM")) {
        skip_section(r);
        return;
    }
    crdi_dbc_next(s);
    r->fd_formats = 0;
    for (int i = 0; s->token.kind == CRDI_DBC_TEXT; i++) {
        const char* item = crdi_dbc_text(s, r->arena);
        if (i < 64 && strstr(item, "FD")) { r->fd_formats |= UINT64_C(1) << i; }
        (void)crdi_dbc_accept(s, ',');
    }
    crdi_dbc_expect(s, ';');
}

// What VFrameFormat has, a number or the name of an item: 14 and 15 are FD everywhere.
static int read_format(dbc_reader* r)
{
    if (r->s.token.kind != CRDI_DBC_TEXT) {
        return (int)crdi_dbc_integer(&r->s, 0, 63, "an item of VFrameFormat, 0 to 63");
    }
    return strstr(crdi_dbc_text(&r->s, r->arena), "FD") ? 14 : 0;
}

static double read_cycle(dbc_reader* r)
{
    const int line = r->s.token.line;
    const double ms = crdi_dbc_real(&r->s, "the cycle time in ms, a number");
    if (!(ms >= 0 && ms <= 1e9)) {
        crdi_dbc_fail(&r->s, line, "a cycle time of %g ms, expected 0 to 1e9", ms);
    }
    return ms;
}

// A start value may be in quotes where it is larger than what FLOAT attributes hold.
static double read_start(dbc_reader* r)
{
    if (r->s.token.kind == CRDI_DBC_TEXT) {
        const char* text = crdi_dbc_text(&r->s, r->arena);
        double x = NAN;
        return crdi_parse_double(text, strlen(text), &x) && isfinite(x) ? x : NAN;
    }
    return crdi_dbc_real(&r->s, "a start value, a number");
}

static void read_default(dbc_reader* r)
{
    crdi_dbc_scan* s = &r->s;
    crdi_dbc_next(s);
    const char* name = crdi_dbc_text(s, r->arena);
    if (same(name, "GenMsgCycleTime")) { r->cycle = read_cycle(r); }
    if (same(name, "GenSigStartValue")) { r->start = read_start(r); }
    if (same(name, "VFrameFormat")) { r->format = read_format(r); }
    skip_section(r);
}

// BA_ "name" [BO_ id | SG_ id signal | ...] value ; long names are those that did not fit into the
// 32 characters of older tools
static void read_attribute(dbc_reader* r)
{
    crdi_dbc_scan* s = &r->s;
    crdi_dbc_next(s);
    const char* name = crdi_dbc_text(s, r->arena);
    const bool message = crdi_dbc_is(s, "BO_"), signal = crdi_dbc_is(s, "SG_");
    if (message || signal) {
        crdi_dbc_next(s);
        const int i = find_subject(r, signal, false);
        dbc_message* m = message && i >= 0 ? message_at(r, i) : NULL;
        dbc_field* f = signal && i >= 0 ? field_at(r, i) : NULL;
        if (m && same(name, "GenMsgCycleTime")) { m->cycle = read_cycle(r); }
        if (m && same(name, "VFrameFormat")) { m->format = read_format(r); }
        if (m && same(name, "SystemMessageLongSymbol")) { m->m.name = crdi_dbc_text(s, r->arena); }
        if (f && same(name, "SystemSignalLongSymbol")) { f->f.name = crdi_dbc_text(s, r->arena); }
        if (f && same(name, "GenSigStartValue")) { f->start = read_start(r); }
    }
    skip_section(r);
}

// ---- sections ----------------------------------------------------------------------------------

// NS_ : names of sections, which are none themselves: the last word before something else is one.
static void read_symbols(dbc_reader* r)
{
    crdi_dbc_scan* s = &r->s;
    crdi_dbc_next(s);
    crdi_dbc_expect(s, ':');
    while (s->token.kind == CRDI_DBC_WORD) {
        const crdi_dbc_scan before = *s;
        crdi_dbc_next(s);
        if (s->token.kind != CRDI_DBC_WORD) {
            if (s->status >= 0) { *s = before; }
            return;
        }
    }
}

// VERSION "text", BS_: 500 : 1,2 and BU_: nodes: up to the next section
static void read_head(dbc_reader* r)
{
    do {
        crdi_dbc_next(&r->s);
    } while (r->s.token.kind != CRDI_DBC_END && !at_section(&r->s));
}

static const struct {
    const char* word;
    void (*read)(dbc_reader* r);
} sections[] = {
    {"VERSION", read_head},
    {"NS_", read_symbols},
    {"BS_", read_head},
    {"BU_", read_head},
    {"BO_", read_message},
    {"CM_", read_comment},
    {"VAL_TABLE_", read_table},
    {"VAL_", read_values},
    {"SIG_VALTYPE_", read_value_type},
    {"SG_MUL_VAL_", read_ranges},
    {"BA_DEF_", read_definition},
    {"BA_DEF_DEF_", read_default},
    {"BA_", read_attribute},
    {"SG_", NULL},
    {"BO_TX_BU_", skip_section},
    {"EV_", skip_section},
    {"ENVVAR_DATA_", skip_section},
    {"EV_DATA_", skip_section},
    {"SGTYPE_", skip_section},
    {"SGTYPE_VAL_", skip_section},
    {"SIG_TYPE_REF_", skip_section},
    {"SIG_GROUP_", skip_section},
    {"SIGTYPE_VALTYPE_", skip_section},
    {"BA_DEF_SGTYPE_", skip_section},
    {"BA_SGTYPE_", skip_section},
    {"BA_DEF_REL_", skip_section},
    {"BA_REL_", skip_section},
    {"BA_DEF_DEF_REL_", skip_section},
    {"BU_SG_REL_", skip_section},
    {"BU_EV_REL_", skip_section},
    {"BU_BO_REL_", skip_section},
    {"CAT_DEF_", skip_section},
    {"CAT_", skip_section},
    {"FILTER", skip_section},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static bool at_section(const crdi_dbc_scan* s)
{
    for (int i = 0; i < SECTIONS; i++) {
        if (crdi_dbc_is(s, sections[i].word)) { return true; }
    }
    return false;
}

static void read_sections(dbc_reader* r)
{
    crdi_dbc_scan* s = &r->s;
    crdi_dbc_next(s);
    while (s->status >= 0 && s->token.kind != CRDI_DBC_END) {
        int i = 0;
        while (i < SECTIONS && !crdi_dbc_is(s, sections[i].word)) {
            i++;
        }
        if (i < SECTIONS && sections[i].read) {
            sections[i].read(r);
        } else {
            crdi_dbc_unexpected(s, i < SECTIONS ? "a message (BO_) before its signals"
                                                : "a section, as BO_, VAL_ or BA_");
        }
    }
}

// ---- together ----------------------------------------------------------------------------------

// Which field of its message selects this one: by SG_MUL_VAL_, else the only one with M.
static void resolve_selector(dbc_reader* r, const dbc_message* m, dbc_field* f)
{
    const dbc_field* fields = field_at(r, m->first);
    int root = -1;
    for (int i = 0; i < m->m.field_count; i++) {
        const dbc_field* other = &fields[i];
        if (f->selector ? same(other->f.name, f->selector)
                        : other->is_selector && !other->selected) {
            if (root >= 0) {
                crdi_dbc_fail(&r->s, other->f.line,
                              "message '%s' has two multiplexors M, '%s' and '%s', and no "
                              "SG_MUL_VAL_ says which of them selects '%s'",
                              m->m.name, fields[root].f.name, other->f.name, f->f.name);
                return;
            }
            root = i;
        }
    }
    if (root < 0 && f->selector) {
        crdi_dbc_fail(&r->s, f->selector_line,
                      "message '%s' has no signal '%s' that could select '%s'", m->m.name,
                      f->selector, f->f.name);
    } else if (root < 0) {
        crdi_dbc_fail(&r->s, f->f.line,
                      "signal '%s' is there for the value m%lld of a multiplexor, and message "
                      "'%s' has no signal with M",
                      f->f.name, (long long)f->value.first, m->m.name);
    }
    f->f.selector = root;
}

static void finish_field(dbc_reader* r, const dbc_message* m, dbc_field* f)
{
    const double raw = isnan(f->start) ? r->start : f->start;
    if (f->selected || f->selector) { resolve_selector(r, m, f); }
    if (f->selected && !f->selector) {
        crdi_wire_range* value = crdi_arena_new(r->arena, 1, sizeof *value);
        if (!value) { return; }
        *value = f->value;
        f->f.selected_by = value;
        f->f.selected_by_count = 1;
    }
    if (!isnan(raw)) { f->f.initial = raw * f->f.factor + f->f.offset; }
}

static void finish_message(dbc_reader* r, dbc_message* m, crdi_wire_message* out)
{
    const double ms = isnan(m->cycle) ? r->cycle : m->cycle;
    const int format = m->format < 0 ? r->format : m->format;
    m->m.fields = crdi_arena_new(r->arena, (size_t)m->m.field_count, sizeof *m->m.fields);
    if (!m->m.fields) { return; }
    for (int i = 0; i < m->m.field_count && r->s.status >= 0; i++) {
        finish_field(r, m, field_at(r, m->first + i));
        m->m.fields[i] = field_at(r, m->first + i)->f;
    }
    m->m.cycle = isnan(ms) ? 0 : ms / 1e3;
    m->m.fd =
        (m->m.length > 8 && m->m.length <= FRAME) || (format >= 0 && (r->fd_formats >> format & 1));
    *out = m->m;
}

static crd_status finish_catalog(dbc_reader* r, crdi_wire_catalog* out)
{
    crd_context* ctx = r->s.ctx;
    const int n = r->messages.count;
    crdi_wire_catalog c = {.file = crdi_arena_text(r->arena, r->s.file, strlen(r->s.file)),
                           .message_count = n};
    c.messages = crdi_arena_new(r->arena, (size_t)n, sizeof *c.messages);
    for (int i = 0; c.messages && i < n && r->s.status >= 0; i++) {
        finish_message(r, message_at(r, i), &c.messages[i]);
    }
    if (r->arena->failed) { return CRD_E_MEMORY; } // then names are empty and mistakes are none
    if (r->s.status < 0) { return r->s.status; }
    if (n == 0) {
        return crdi_json_fail(ctx, r->s.file, 0, CRD_E_FORMAT,
                              "there is no message in it, expected at least one BO_");
    }
    if (r->stray) {
        crdi_log(ctx, CRD_LOG_WARNING,
                 "%s:%d: attributes, comments or values of a message or signal that is not there "
                 "(%d such lines)",
                 r->s.file, r->stray_line, r->stray);
    }
    const crd_status st = crdi_wire_prepare(ctx, &c);
    if (st == CRD_OK) { *out = c; }
    return st;
}

crd_status crdi_wire_dbc_parse(crd_arena* arena, const char* file, const char* text, size_t length,
                               crdi_wire_catalog* out)
{
    crd_context* ctx = arena->ctx;
    dbc_reader r = {.s = {.ctx = ctx, .file = file, .at = text, .end = text + length, .line = 1},
                    .arena = arena,
                    .cycle = NAN,
                    .start = NAN,
                    .format = -1,
                    .fd_formats = 3 << 14};
    crdi_map_init(&r.ids, ctx);
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) { r.s.at += 3; }
    read_sections(&r);
    const crd_status st = finish_catalog(&r, out);
    crdi_map_clear(&r.ids);
    crd_free(ctx, r.messages.items);
    crd_free(ctx, r.fields.items);
    crd_free(ctx, r.tables.items);
    crd_free(ctx, r.items.items);
    return st;
}

crd_status crdi_wire_dbc_read(crd_arena* arena, const char* path, crdi_wire_catalog* out)
{
    crd_text text;
    crd_text_init(&text, arena->ctx);
    const crdi_file_need need = {.what = "a DBC file", .most = MOST_BYTES};
    crd_status st = crdi_file_read(arena->ctx, path, &need, &text);
    if (st == CRD_OK) { st = crdi_wire_dbc_parse(arena, path, text.data, text.length, out); }
    crd_text_clear(&text);
    return st;
}
