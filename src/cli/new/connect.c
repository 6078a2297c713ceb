// cardan connect: the connections of a description, without touching anything else in it.
#include "cli/new/new.h"

#include <string.h>

typedef struct connect_options {
    crdi_common common;
    bool dry_run;
    crdi_watch_options page;
} connect_options;

typedef enum verb { V_LIST, V_PROPOSE, V_ADD, V_REMOVE } verb;
static const char* const verbs[] = {"list", "propose", "add", "remove", NULL};

static crd_status list_connections(const crd_system* s, crdi_result* out)
{
    static const crdi_column columns[] = {
        {"from", "from", "%s"}, {"to", "to", "%s"}, {">line", "line", "%d"}, {0}};
    crdi_result* list = crdi_array(out, "connections");
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        crdi_put(crdi_row(list),
                 TEXT("from", crdi_worded(out, "%s.%s", s->units[c->from_unit].name, c->from)),
                 TEXT("to", crdi_worded(out, "%s.%s", s->units[c->to_unit].name, c->to)),
                 INT("line", c->place.line));
    }
    crdi_show_table(out, list, columns, "");
    return CRD_OK;
}

static crd_status propose_connections(crdi_cli* cli, const crd_system* s, crdi_result* out)
{
    static const crdi_column columns[] = {{"from", "from", "%s"},
                                          {"to", "to", "%s"},
                                          {"sure", "sure", "%s"},
                                          {"why", "why", "%s"},
                                          {0}};
    crdi_proposed p;
    const crd_status st = crdi_propose(cli->ctx, s, &p);
    if (st < 0) { return st; }
    crdi_result* list = crdi_array(out, "proposals");
    for (int i = 0; i < p.count; i++) {
        const crd_proposal* x = &p.items[i];
        crdi_put(crdi_row(list), TEXT("from", crdi_result_copy(out, crdi_port_name(&p, x->from))),
                 TEXT("to", crdi_result_copy(out, crdi_port_name(&p, x->to))),
                 TEXT("sure", crd_sureness_name(x->sure)),
                 TEXT("why", crdi_result_copy(out, x->why)));
    }
    crdi_show_table(out, list, columns, "");
    for (int i = 0; i < s->unit_count; i++) {
        if (p.ports->failures[i]) {
            crdi_log(cli->ctx, CRD_LOG_WARNING, "unit '%s' is left out: %s", s->units[i].name,
                     p.ports->failures[i]);
        }
    }
    if (p.count == 0) { crdi_say(out, "no input is free that an output would fit\n"); }
    crdi_proposed_clear(&p);
    return CRD_OK;
}

// One connection after the other; the text of each step is read again by the next.
static crd_status change(crdi_cli* cli, const char* path, verb what, const crdi_list* arguments,
                         crd_text* text)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    crd_arena_init(&arena, cli->ctx);
    for (int i = 2; i < arguments->count; i++) {
        const char *from = NULL, *to = arguments->items[i];
        if (what == V_ADD || strstr(to, "->")) {
            CRD_TRY(crd_system_arrow(&arena, arguments->items[i], &from, &to));
        }
        crd_text next;
        crd_text_init(&next, cli->ctx);
        st = what == V_ADD ? crd_system_text_connect(cli->ctx, text->data, text->length, path, from,
                                                     to, &next)
                           : crd_system_text_disconnect(cli->ctx, text->data, text->length, path,
                                                        from, to, &next);
        if (st < 0) {
            crd_text_clear(&next);
            goto fail;
        }
        crd_text_clear(text);
        *text = next;
    }
fail:
    crd_arena_clear(&arena);
    return st;
}

static crd_status edit_file(crdi_cli* cli, const connect_options* o, const char* path, verb what,
                            const crdi_list* arguments, crdi_result* out)
{
    static const crdi_file_need need = {.what = "a description", .most = 256 << 20};
    crd_status st = CRD_OK;
    crd_text text;
    crd_text_init(&text, cli->ctx);
    if (arguments->count < 3) {
        st = crdi_fail(cli->ctx, CRD_E_RANGE,
                       "%s what? Expected one or more of 'unit.output -> unit.input'", verbs[what]);
        return st;
    }
    CRD_TRY(crdi_file_read(cli->ctx, path, &need, &text));
    CRD_TRY(change(cli, path, what, arguments, &text));
    CRD_TRY(crdi_check_text(cli->ctx, &text, path)); // before the file is touched
    const int n = arguments->count - 2;
    if (!o->dry_run) { CRD_TRY(crdi_file_write(cli->ctx, path, &text)); }
    crdi_put(out, TEXT("file", path), INT(what == V_ADD ? "added" : "removed", n),
             BOOL("written", !o->dry_run));
    if (o->dry_run) {
        crdi_say(out, "%s", crdi_result_copy(out, text.data));
    } else {
        crdi_say(out, "%s: %d connection%s %s\n", path, n, crdi_plural(n),
                 what == V_ADD ? "added" : "removed");
    }
fail:
    crd_text_clear(&text);
    return st;
}

static crd_status draw_connections(crdi_cli* cli, const connect_options* o, const char* path,
                                   crdi_result* out)
{
    static const crdi_file_need need = {.what = "a description", .most = 256 << 20, .text = true};
    crd_text text;
    crd_text_init(&text, cli->ctx);
    crdi_file_kind kind = CRDI_FILE_SYSTEM;
    crd_status st = crdi_file_detect(cli->ctx, path, &kind);
    if (st >= 0 && kind != CRDI_FILE_SYSTEM) {
        st = crdi_fail(cli->ctx, CRD_E_UNSUPPORTED,
                       "%s: no description, whose text could be changed; 'cardan new %s --ui' "
                       "makes one that stands on it",
                       path, path);
    }
    if (st >= 0) { st = crdi_file_read(cli->ctx, path, &need, &text); }
    if (st >= 0) { st = crdi_draw_serve(cli, &o->page, &text, path, false, out); }
    crd_text_clear(&text);
    return st;
}

static crd_status run_connect(crdi_cli* cli, const void* options, const crdi_list* arguments,
                              crdi_result* out)
{
    const connect_options* o = options;
    const char* path = arguments->items[0];
    const char* word = arguments->count > 1 ? arguments->items[1] : "list";
    int what = V_LIST;
    while (verbs[what] && strcmp(verbs[what], word) != 0) {
        what++;
    }
    if (!verbs[what]) {
        const char* near = crdi_nearest_word(word, verbs);
        return crdi_fail(cli->ctx, CRD_E_RANGE, "'%s'%s%s%s expected list, propose, add or remove",
                         crdi_clip(word).text, near ? ", did you mean '" : ",", near ? near : "",
                         near ? "'?" : "");
    }
    if (o->page.ui) {
        if (arguments->count == 1) { return draw_connections(cli, o, path, out); }
        return crdi_fail(cli->ctx, CRD_E_RANGE, "--ui shows a system, expected nothing behind '%s'",
                         path);
    }
    const crd_status fine = crdi_live_check(cli->ctx, &o->page);
    if (fine < 0) { return fine; }
    if (what >= V_ADD) { return edit_file(cli, o, path, (verb)what, arguments, out); }
    crd_system* s = NULL;
    crd_status st = crdi_load_system(cli->ctx, path, &s);
    if (st >= 0) {
        st = what == V_LIST ? list_connections(s, out) : propose_connections(cli, s, out);
    }
    crd_system_destroy(s);
    return st;
}

static const crdi_option rows[] = {
    OPT_FLAG(connect_options, page.ui, "ui",
             "open a page on which the connections are drawn, added, removed and saved: its "
             "address is printed on standard error"),
    CRDI_PAGE_OPTIONS(connect_options, page),
    OPT_FLAG(connect_options, dry_run, "dry-run", "print the changed description, write nothing"),
    CRDI_UNPACKED_OPTION,
    CRDI_JSON_OPTION("print the connections as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_connect = {
    .name = "connect",
    .arguments = "SYSTEM [list|propose|add|remove] [CONNECTION...]",
    .summary = "list, propose, add or remove connections of a description",
    .description =
        "Lists the connections of a system, proposes some for its free inputs (by names and units "
        "of measure, with how sure each is), or adds and removes them in its file. Comments and "
        "layout stay as they are: only the lines of the connection come and go, and a line that "
        "'cardan new' left as a comment is put to use. What comes out is checked as 'cardan check' "
        "does before the file is replaced. CONNECTION is 'unit.output -> unit.input'; for remove "
        "the input alone is enough.",
    .examples = {{"cardan connect system.yaml", "what is connected?"},
                 {"cardan connect system.yaml propose", "what could be?"},
                 {"cardan connect system.yaml --ui", "drawn in a browser"},
                 {"cardan connect system.yaml add 'motor.torque -> shaft.tau'", "one more"},
                 {"cardan connect system.yaml remove shaft.tau", "one less"}},
    OPTIONS(rows, connect_options),
    .min_arguments = 1,
    .max_arguments = -1,
    .extensions = "yaml|yml|ssp|ssd",
    .run = run_connect,
};
