// What the page of connections says: bytes to requests.
#include "web/draw.h"
#include "web/view.h"

#include <string.h>

static crd_status draw_wrong(crd_arena* a, const char* key, const char* expected)
{
    return crdi_fail(a->ctx, CRD_E_RANGE, "\"%s\" is missing or wrong, expected %s", key, expected);
}

// What comes into the text of a description stays in its line.
static bool is_word(const char* text)
{
    if (!text || !text[0] || strlen(text) > CRDI_DRAW_TEXT_BYTES) { return false; }
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) { return false; }
    }
    return true;
}

static crd_status read_ends(crd_arena* a, const crdi_json* m, crdi_draw_request* out)
{
    out->from = crdi_json_get_text(m, "from");
    out->to = crdi_json_get_text(m, "to");
    if (!is_word(out->from)) { return draw_wrong(a, "from", "unit.output"); }
    return is_word(out->to) ? CRD_OK : draw_wrong(a, "to", "unit.input");
}

static crd_status read_setting(crd_arena* a, const crdi_json* m, crdi_draw_request* out)
{
    static const char* const keys[][2] = {
        {"step", "run.step"}, {"stop", "run.stop"}, {"results", "results"}};
    const char* key = crdi_json_get_text(m, "key");
    for (size_t i = 0; key && i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(key, keys[i][0]) == 0) { out->key = keys[i][1]; }
    }
    out->value = crdi_json_get_text(m, "value");
    if (!out->key) { return draw_wrong(a, "key", "step, stop or results"); }
    return is_word(out->value) ? CRD_OK : draw_wrong(a, "value", "a text in one line");
}

static crd_status read_save(crd_arena* a, const crdi_json* m, crdi_draw_request* out)
{
    (void)a;
    out->overwrite = crdi_json_get_bool(m, "overwrite", false);
    return CRD_OK;
}

crd_status crdi_draw_message(crd_arena* arena, const char* bytes, size_t length,
                             crdi_draw_request* out)
{
    static const struct {
        const char* name;
        crd_status (*read)(crd_arena* a, const crdi_json* m, crdi_draw_request* out);
        bool any; // the version does not matter
    } verbs[] = {[CRDI_DRAW_STATE] = {"state", NULL, true},
                 [CRDI_DRAW_CONNECT] = {"connect", read_ends, false},
                 [CRDI_DRAW_DISCONNECT] = {"disconnect", read_ends, false},
                 [CRDI_DRAW_SET] = {"set", read_setting, false},
                 [CRDI_DRAW_UNDO] = {"undo", NULL, false},
                 [CRDI_DRAW_REDO] = {"redo", NULL, false},
                 [CRDI_DRAW_TEXT] = {"text", NULL, true},
                 [CRDI_DRAW_SAVE] = {"save", read_save, false}};
    *out = (crdi_draw_request){0};
    crdi_json* m = NULL;
    const crd_status st = crdi_json_parse_most(arena, bytes, length, CRDI_VIEW_MESSAGE_BYTES,
                                               (crdi_json_source){.file = "message"}, &m);
    if (st == CRD_E_MEMORY) { return st; }
    if (st < 0 || m->kind != CRDI_JSON_OBJECT) {
        return crdi_fail(arena->ctx, CRD_E_FORMAT, "the message is no JSON object");
    }
    const double most = 4294967295.0;
    out->has_id = crdi_view_number(crdi_json_member(m, "id"), 0, most, true, &out->id);
    if (!out->has_id) { return draw_wrong(arena, "id", "a whole number"); }
    const char* word = crdi_json_get_text(m, "do");
    for (size_t i = 0; word && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(word, verbs[i].name) != 0) { continue; }
        out->verb = (crdi_draw_verb)i;
        if (!verbs[i].any &&
            !crdi_view_number(crdi_json_member(m, "version"), 0, 1e15, true, &out->version)) {
            return draw_wrong(arena, "version", "that of the newest state");
        }
        return verbs[i].read ? verbs[i].read(arena, m, out) : CRD_OK;
    }
    return draw_wrong(arena, "do", "state, connect, disconnect, set, undo, redo, text or save");
}
