// What pages say: bytes to commands. Nothing here touches the network or the run.
#include "web/web.h"

#include <math.h>
#include <string.h>

enum { MEMBERS = 4 };

typedef struct verb {
    const char* name;
    crdi_live_action action;
    const char* members[MEMBERS]; // besides id and do
    crd_status (*fill)(crd_arena* a, const crdi_json* m, crdi_web_request* out);
} verb;

static const char* kind_name(const crdi_json* v)
{
    static const char* const names[] = {
        [CRDI_JSON_NULL] = "null",       [CRDI_JSON_BOOL] = "true or false",
        [CRDI_JSON_NUMBER] = "a number", [CRDI_JSON_TEXT] = "a text",
        [CRDI_JSON_LIST] = "a list",     [CRDI_JSON_OBJECT] = "an object",
    };
    return v ? names[v->kind] : "missing";
}

static crd_status wrong(crd_arena* a, const char* key, const crdi_json* v, const char* expected)
{
    return crdi_fail(a->ctx, CRD_E_RANGE, "\"%s\" is %s, expected %s", key, kind_name(v), expected);
}

static crd_status message_text_of(crd_arena* a, const crdi_json* m, const char* key,
                                  const char** out)
{
    const crdi_json* v = crdi_json_member(m, key);
    if (!v || v->kind != CRDI_JSON_TEXT) { return wrong(a, key, v, "a text"); }
    *out = v->text;
    return CRD_OK;
}

static crd_status fill_nothing(crd_arena* a, const crdi_json* m, crdi_web_request* out)
{
    (void)a, (void)m, (void)out;
    return CRD_OK;
}

static crd_status fill_watch(crd_arena* a, const crdi_json* m, crdi_web_request* out)
{
    const crdi_json* list = crdi_json_member(m, "signals");
    if (!list || list->kind != CRDI_JSON_LIST) {
        return wrong(a, "signals", list, "a list of names");
    }
    if (list->count > CRDI_WEB_WATCHED) {
        return crdi_fail(a->ctx, CRD_E_RANGE, "%d signals are watched, expected at most %d",
                         list->count, CRDI_WEB_WATCHED);
    }
    out->signals = crdi_arena_new(a, (size_t)list->count + 1, sizeof *out->signals);
    if (!out->signals) { return CRD_E_MEMORY; }
    for (const crdi_json* v = list->first; v; v = v->next) {
        if (v->kind != CRDI_JSON_TEXT) { return wrong(a, "signals", v, "names only"); }
        out->signals[out->signal_count++] = v->text;
    }
    return CRD_OK;
}

static crd_status fill_step(crd_arena* a, const crdi_json* m, crdi_web_request* out)
{
    const crdi_json* v = crdi_json_member(m, "count");
    out->command.count = 1;
    if (!v) { return CRD_OK; }
    if (v->kind != CRDI_JSON_NUMBER || v->number != floor(v->number) || v->number < 1 ||
        v->number > 1e9) {
        return crdi_fail(a->ctx, CRD_E_RANGE,
                         "\"count\" is %.30s, expected a whole number from 1 "
                         "to 1000000000",
                         v->kind == CRDI_JSON_NUMBER ? v->text : kind_name(v));
    }
    out->command.count = (int64_t)v->number;
    return CRD_OK;
}

static crd_status fill_set(crd_arena* a, const crdi_json* m, crdi_web_request* out)
{
    const crd_status st = message_text_of(a, m, "name", &out->command.name);
    if (st < 0) { return st; }
    const crdi_json* v = crdi_json_member(m, "value");
    if (v && (v->kind == CRDI_JSON_TEXT || v->kind == CRDI_JSON_NUMBER)) {
        out->command.text = v->text;
    } else if (v && v->kind == CRDI_JSON_BOOL) {
        out->command.text = v->truth ? "true" : "false";
    } else {
        return wrong(a, "value", v, "a number, a text (\"100 g\") or true or false");
    }
    return CRD_OK;
}

static crd_status fill_couple(crd_arena* a, const crdi_json* m, crdi_web_request* out)
{
    const crd_status st = message_text_of(a, m, "to", &out->command.name);
    if (st < 0) { return st; }
    const crdi_json* v = crdi_json_member(m, "element");
    if (v && v->kind == CRDI_JSON_TEXT) {
        out->command.text = v->text;
        return CRD_OK;
    }
    if (!v || v->kind != CRDI_JSON_OBJECT) {
        return wrong(a, "element", v, "the name of an algorithm or an object");
    }
    crd_text t; // what was read as a tree, as text again, for whoever reads elements
    crd_text_init(&t, a->ctx);
    crdi_json_writer w;
    crdi_json_writer_init(&w, &t, CRDI_JSON_COMPACT);
    crdi_json_put_tree(&w, NULL, v);
    out->command.text = t.failed ? NULL : crdi_arena_text(a, t.data, t.length);
    crd_text_clear(&t);
    return out->command.text ? CRD_OK : CRD_E_MEMORY;
}

static crd_status message_number_of(crd_arena* a, const crdi_json* m, const char* key, double* out)
{
    const crdi_json* v = crdi_json_member(m, key);
    if (!v || v->kind == CRDI_JSON_NULL) { return CRD_OK; }
    if (v->kind != CRDI_JSON_NUMBER) { return wrong(a, key, v, "a number"); }
    *out = v->number;
    return CRD_OK;
}

static crd_status fill_fault(crd_arena* a, const crdi_json* m, crdi_web_request* out)
{
    crdi_live_command* c = &out->command;
    const char* kind = "";
    crd_status st = CRD_OK;
    double value = NAN;
    c->duration = NAN;
    CRD_TRY(message_text_of(a, m, "to", &c->name));
    CRD_TRY(message_text_of(a, m, "kind", &kind));
    CRD_TRY(message_number_of(a, m, "value", &value));
    CRD_TRY(message_number_of(a, m, "duration", &c->duration));
    c->fault = CRDI_FAULT_NONE;
    for (int k = CRDI_FAULT_NONE + 1; k < CRDI_FAULT_KINDS; k++) {
        if (strcmp(kind, crdi_fault_name((crdi_fault_kind)k)) == 0) {
            c->fault = (crdi_fault_kind)k;
        }
    }
    if (c->fault == CRDI_FAULT_NONE) {
        return crdi_fail(a->ctx, CRD_E_RANGE,
                         "there is no fault \"%s\", expected hold, value, "
                         "offset, gain, noise, drop or delay",
                         crdi_clip(kind).text);
    }
    if (isnan(value) && c->fault != CRDI_FAULT_HOLD) {
        return crdi_fail(a->ctx, CRD_E_RANGE, "a fault \"%s\" needs a \"value\"", kind);
    }
    c->value = isnan(value) ? 0 : value;
    if (c->duration <= 0) { // NaN: until it is cleared
        return crdi_fail(a->ctx, CRD_E_RANGE, "\"duration\" is %g s, expected > 0 or null",
                         c->duration);
    }
fail:
    return st;
}

static crd_status fill_clear(crd_arena* a, const crdi_json* m, crdi_web_request* out)
{
    return message_text_of(a, m, "to", &out->command.name);
}

static crd_status fill_mark(crd_arena* a, const crdi_json* m, crdi_web_request* out)
{
    const crd_status st = message_text_of(a, m, "text", &out->command.text);
    if (st < 0) { return st; }
    const size_t length = strlen(out->command.text);
    if (length == 0 || length > 200) {
        return crdi_fail(a->ctx, CRD_E_RANGE, "a mark of %zu bytes, expected 1 to 200", length);
    }
    for (const char* p = out->command.text; *p; p++) {
        if ((unsigned char)*p < ' ' || *p == 0x7f) {
            return crdi_fail(a->ctx, CRD_E_RANGE,
                             "a mark with a control character, expected one "
                             "line of text");
        }
    }
    return CRD_OK;
}

static crd_status fill_seat(crd_arena* a, const crdi_json* m, crdi_web_request* out)
{
    return message_text_of(a, m, "unit", &out->command.name);
}

static crd_status fill_drive(crd_arena* a, const crdi_json* m, crdi_web_request* out)
{
    const crd_status st = fill_seat(a, m, out);
    const crdi_json* list = crdi_json_member(m, "values");
    if (st < 0 || !list) { return st; }
    if (list->kind != CRDI_JSON_LIST || list->count > CRD_LEVERS_MAX) {
        return crdi_fail(
            a->ctx, CRD_E_RANGE, "\"values\" is %s, expected a list of %d numbers at most",
            list->kind == CRDI_JSON_LIST ? "a longer list" : kind_name(list), CRD_LEVERS_MAX);
    }
    double* values = crdi_arena_new(a, (size_t)list->count + 1, sizeof *values);
    if (!values) { return CRD_E_MEMORY; }
    for (const crdi_json* v = list->first; v; v = v->next) {
        if (v->kind != CRDI_JSON_NUMBER) { return wrong(a, "values", v, "numbers only"); }
        values[out->command.value_count++] = v->number;
    }
    out->command.values = values;
    return CRD_OK;
}

static crd_status fill_go(crd_arena* a, const crdi_json* m, crdi_web_request* out)
{
    crd_status st = CRD_OK;
    out->command.value = out->command.rate = NAN;
    CRD_TRY(message_text_of(a, m, "lever", &out->command.name));
    if (!crdi_json_member(m, "target")) {
        return wrong(a, "target", NULL, "a number, or null: it stays where it is");
    }
    CRD_TRY(message_number_of(a, m, "target", &out->command.value));
    CRD_TRY(message_number_of(a, m, "rate", &out->command.rate));
fail:
    return st;
}

static crd_status fill_calibrate(crd_arena* a, const crdi_json* m, crdi_web_request* out)
{
    crd_status st = CRD_OK;
    CRD_TRY(message_text_of(a, m, "name", &out->command.name));
    CRD_TRY(message_text_of(a, m, "by", &out->command.text));
    double* values = crdi_arena_new(a, 4, sizeof *values);
    if (!values) { return CRD_E_MEMORY; }
    int n = 0;
    const crdi_json* points = crdi_json_member(m, "points");
    for (const crdi_json* p = crdi_json_first(points); p; p = p->next) {
        const crdi_json *reference = crdi_json_first(p),
                        *measured = reference ? reference->next : NULL;
        if (n == 4 || p->kind != CRDI_JSON_LIST || !measured || measured->next ||
            reference->kind != CRDI_JSON_NUMBER || measured->kind != CRDI_JSON_NUMBER) {
            n = 0;
            break;
        }
        values[n++] = reference->number;
        values[n++] = measured->number;
    }
    if (n != 4) {
        return crdi_fail(a->ctx, CRD_E_RANGE,
                         "\"points\", expected two of reference and measured value: "
                         "[[0, 0.3], [50, 50.9]]");
    }
    out->command.values = values;
    out->command.value_count = n;
fail:
    return st;
}

static const verb verbs[] = {
    {"watch", CRDI_LIVE_START, {"signals"}, fill_watch}, // the action does not count
    {"start", CRDI_LIVE_START, {NULL}, fill_nothing},
    {"pause", CRDI_LIVE_PAUSE, {NULL}, fill_nothing},
    {"step", CRDI_LIVE_STEP, {"count"}, fill_step},
    {"stop", CRDI_LIVE_STOP, {NULL}, fill_nothing},
    {"set", CRDI_LIVE_SET, {"name", "value"}, fill_set},
    {"couple", CRDI_LIVE_COUPLE, {"to", "element"}, fill_couple},
    {"fault", CRDI_LIVE_FAULT, {"to", "kind", "value", "duration"}, fill_fault},
    {"clear", CRDI_LIVE_CLEAR, {"to"}, fill_clear},
    {"mark", CRDI_LIVE_MARK, {"text"}, fill_mark},
    {"emergency", CRDI_LIVE_EMERGENCY, {NULL}, fill_nothing},
    {"take", CRDI_LIVE_TAKE, {"unit"}, fill_seat},
    {"release", CRDI_LIVE_RELEASE, {"unit"}, fill_seat},
    {"drive", CRDI_LIVE_DRIVE, {"unit", "values"}, fill_drive},
    {"go", CRDI_LIVE_GO, {"lever", "target", "rate"}, fill_go},
    {"prepare", CRDI_LIVE_PREPARE, {NULL}, fill_nothing},
    {"calibrate", CRDI_LIVE_CALIBRATE, {"name", "points", "by"}, fill_calibrate},
};

static crd_status check_members(crd_arena* a, const crdi_json* root, const verb* v)
{
    for (const crdi_json* m = root->first; m; m = m->next) {
        bool known = strcmp(m->key, "id") == 0 || strcmp(m->key, "do") == 0;
        for (int i = 0; i < MEMBERS && v->members[i]; i++) {
            known = known || strcmp(m->key, v->members[i]) == 0;
        }
        if (!known) {
            return crdi_fail(a->ctx, CRD_E_RANGE, "\"%s\" has no member \"%s\"", v->name,
                             crdi_clip(m->key).text);
        }
    }
    return CRD_OK;
}

static crd_status read_id(crd_arena* a, const crdi_json* root, crdi_web_request* out)
{
    const crdi_json* id = crdi_json_member(root, "id");
    if (!id || id->kind != CRDI_JSON_NUMBER || id->number != floor(id->number) ||
        fabs(id->number) > 9007199254740992.0) {
        return wrong(a, "id", id, "a whole number up to 2^53");
    }
    out->has_id = true;
    out->id = id->number;
    return CRD_OK;
}

crd_status crdi_web_message(crd_arena* arena, const char* bytes, size_t length,
                            crdi_web_request* out)
{
    *out = (crdi_web_request){0};
    out->command.value = 0;
    out->command.duration = NAN;
    crdi_json* root = NULL;
    crd_status st = CRD_OK;
    if (length > CRDI_WEB_MESSAGE_BYTES) {
        return crdi_fail(arena->ctx, CRD_E_FORMAT, "a message of %zu bytes, expected at most %d",
                         length, CRDI_WEB_MESSAGE_BYTES);
    }
    CRD_TRY(crdi_json_parse(arena, bytes, length, (crdi_json_source){.file = "", .first_line = 0},
                            &root));
    if (root->kind != CRDI_JSON_OBJECT) {
        return crdi_fail(arena->ctx, CRD_E_RANGE, "the message is %s, expected an object",
                         kind_name(root));
    }
    const char* name = "";
    CRD_TRY(read_id(arena, root, out));
    CRD_TRY(message_text_of(arena, root, "do", &name));
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(name, verbs[i].name) != 0) { continue; }
        CRD_TRY(check_members(arena, root, &verbs[i]));
        out->watching = i == 0;
        out->command.action = verbs[i].action;
        return verbs[i].fill(arena, root, out);
    }
    return crdi_fail(arena->ctx, CRD_E_RANGE,
                     "nobody knows how to do \"%s\", expected watch, start, "
                     "pause, step, stop, set, couple, fault, clear, mark, emergency, "
                     "take, release, drive, go, prepare or calibrate",
                     crdi_clip(name).text);
fail:
    return st;
}
