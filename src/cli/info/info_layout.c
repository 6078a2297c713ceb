// cardan info and cardan check on what says how messages look, the layout of datagrams or a DBC
// file: the messages and where their fields are.
#include "cli/info/info.h"
#include "shared/system.h"
#include "shared/wire_can.h"

#include <math.h>
#include <string.h>

// A key at the beginning of a line, not far from that of the file.
bool crdi_is_layout(const char* path)
{
    char head[4096];
    if (crdi_ends_with(path, ".dbc")) { return true; }
    if (!crdi_ends_with(path, ".yaml") && !crdi_ends_with(path, ".yml")) { return false; }
    const size_t n = crdi_file_head(path, head, sizeof head);
    return strlen(head) == n && (strncmp(head, "layout:", 7) == 0 || strstr(head, "\nlayout:"));
}

static const char* type_of(crdi_result* out, const crdi_wire_field* f)
{
    static const char* const names[] = {"uint", "int", "float", "float"};
    return crdi_worded(out, "%s%d%s", names[f->type], f->length,
                       f->length <= 8 ? ""
                       : f->big       ? " big"
                                      : " little");
}

// "counter mod 16", "crc16", the selector's values.
static const char* role_of(crdi_result* out, const crdi_wire_message* m, int i)
{
    const crdi_wire_field* f = &m->fields[i];
    if (i == m->counter.field) {
        return crdi_worded(out, "counter mod %llu", (unsigned long long)m->counter.modulus);
    }
    if (m->checksum.kind && i == m->checksum.field) {
        return crdi_wire_checksum_name(m->checksum.kind);
    }
    if (f->selector < 0) {
        return f->item_count ? crdi_worded(out, "%d names", f->item_count) : "";
    }
    const char* text = crdi_worded(out, "%s =", m->fields[f->selector].name);
    for (int k = 0; k < f->selected_by_count; k++) {
        const crdi_wire_range* r = &f->selected_by[k];
        text = r->first == r->last ? crdi_worded(out, "%s %lld", text, (long long)r->first)
                                   : crdi_worded(out, "%s %lld..%lld", text, (long long)r->first,
                                                 (long long)r->last);
    }
    return text;
}

// A message and its fields that fit. A DBC file says who sends it, a layout whether it is we.
static void put_message(crdi_result* list, const crdi_wire_message* m, const crdi_list* patterns)
{
    static const crdi_column columns[] = {{">bit", "bit", "%d"},
                                          {"field", "name", "%s"},
                                          {"type", "type", "%s"},
                                          {">factor", "factor", "%.10g"},
                                          {">offset", "offset", "%.10g"},
                                          {"unit", "unit", "%s"},
                                          {"", "role", "%s"},
                                          {0}};
    char cycle[32];
    crdi_result* out = crdi_row(list);
    crdi_put(out, TEXT("name", m->name),
             ONLY_IF(!*m->sender, TEXT("direction", m->sent ? "send" : "receive")),
             INT("id", m->id), INT("length", m->length),
             ONLY_IF(*m->sender, TEXT("sender", m->sender)),
             ONLY_IF(m->cycle > 0, REAL("cycle", m->cycle)));
    crdi_say(out, "\n%s: %s%s, id 0x%X%s%s, %d bytes%s%s\n", m->name,
             *m->sender ? "sent by "
             : m->sent  ? "sent"
                        : "received",
             m->sender, m->id, m->extended ? " extended" : "", m->fd ? " CAN FD" : "", m->length,
             m->cycle > 0 ? ", every " : "",
             m->cycle > 0 ? crdi_format_seconds(cycle, m->cycle) : "");
    crdi_result* fields = crdi_array(out, "fields");
    for (int i = 0; i < m->field_count; i++) {
        const crdi_wire_field* f = &m->fields[i];
        if (!crdi_match_any(patterns, f->name)) { continue; }
        crdi_put(crdi_row(fields), TEXT("name", f->name), INT("bit", f->start),
                 INT("bits", f->length), TEXT("type", type_of(out, f)), REAL("factor", f->factor),
                 REAL("offset", f->offset), TEXT("unit", f->unit),
                 TEXT("role", role_of(out, m, i)));
    }
    crdi_show_table(out, fields, columns, "  ");
}

static crd_status show_layout(crdi_cli* cli, const char* path, const crdi_list* patterns,
                              crdi_result* out)
{
    const bool dbc = crdi_ends_with(path, ".dbc");
    const char* what = dbc ? "DBC file" : "layout";
    crd_arena arena;
    crdi_wire_catalog c;
    crd_arena_init(&arena, cli->ctx);
    const crd_status st =
        dbc ? crdi_wire_dbc_read(&arena, path, &c) : crdi_layout_load(cli->ctx, path, &arena, &c);
    if (st >= 0 && patterns) {
        crdi_put(out, TEXT("kind", dbc ? "dbc" : "layout"), TEXT("file", path));
        crdi_say(out, "%s: %s of %d message%s\n", path, what, c.message_count,
                 crdi_plural(c.message_count));
        crdi_result* list = crdi_array(out, "messages");
        for (int i = 0; i < c.message_count; i++) {
            put_message(list, &c.messages[i], patterns);
        }
    } else if (st >= 0) {
        crdi_say(out, "ok: %s of %d message%s\n", what, c.message_count,
                 crdi_plural(c.message_count));
    }
    crd_arena_clear(&arena);
    return st;
}

crd_status crdi_info_layout(crdi_cli* cli, const char* path, const crdi_info_options* o,
                            crdi_result* out)
{
    return show_layout(cli, path, &o->variables, out);
}

crd_status crdi_check_layout(crdi_cli* cli, const char* path, crdi_result* out)
{
    const crd_status st = show_layout(cli, path, NULL, out);
    crdi_put_status(cli, out, st);
    return st;
}
