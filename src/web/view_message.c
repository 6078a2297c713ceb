// What the viewer's page says: bytes to requests.
#include "web/view.h"

#include <math.h>
#include <string.h>

static crd_status view_wrong(crd_arena* a, const char* key, const char* expected)
{
    return crdi_fail(a->ctx, CRD_E_RANGE, "\"%s\" is missing or wrong, expected %s", key, expected);
}

bool crdi_view_number(const crdi_json* v, double low, double high, bool whole, double* out)
{
    if (!v || v->kind != CRDI_JSON_NUMBER) { return false; }
    if (!(v->number >= low && v->number <= high)) { return false; }
    if (whole && v->number != floor(v->number)) { return false; }
    *out = v->number;
    return true;
}

static crd_status read_track(crd_arena* a, const crdi_json* list, crdi_track* out)
{
    double place[4] = {-1, -1, -1, -1};
    int n = 0;
    const char* expected = "[file, signal] or [file, signal, file, signal]";
    if (list->kind != CRDI_JSON_LIST) { return view_wrong(a, "tracks", expected); }
    for (const crdi_json* v = list->first; v; v = v->next) {
        if (n == 4 || !crdi_view_number(v, 0, 1e9, true, &place[n++])) {
            return view_wrong(a, "tracks", expected);
        }
    }
    if (n != 2 && n != 4) { return view_wrong(a, "tracks", expected); }
    *out = (crdi_track){(int)place[0], (int)place[1], (int)place[2], (int)place[3]};
    return CRD_OK;
}

static crd_status read_tracks(crd_arena* a, const crdi_json* m, crdi_view_request* out)
{
    const crdi_json* list = crdi_json_get_list(m, "tracks");
    if (!list) { return view_wrong(a, "tracks", "a list"); }
    const int n = crdi_json_count(list);
    if (n > CRDI_VIEW_TRACKS) {
        return crdi_fail(a->ctx, CRD_E_RANGE, "%d tracks, expected at most %d", n,
                         CRDI_VIEW_TRACKS);
    }
    out->tracks = crdi_arena_new(a, (size_t)n + 1, sizeof *out->tracks);
    if (!out->tracks) { return CRD_E_MEMORY; }
    for (const crdi_json* v = crdi_json_first(list); v; v = v->next) {
        const crd_status st = read_track(a, v, &out->tracks[out->track_count++]);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status read_window(crd_arena* a, const crdi_json* m, crdi_view_request* out)
{
    const double most = 1e300;
    if (!crdi_view_number(crdi_json_member(m, "from"), -most, most, false, &out->from) ||
        !crdi_view_number(crdi_json_member(m, "to"), -most, most, false, &out->to) ||
        !(out->from <= out->to)) {
        return view_wrong(a, "from\" or \"to", "two times in s, the later one behind");
    }
    return CRD_OK;
}

static crd_status read_look(crd_arena* a, const crdi_json* m, crdi_view_request* out)
{
    double pixels = 0;
    if (!crdi_view_number(crdi_json_member(m, "pixels"), 1, CRDI_VIEW_PIXELS, true, &pixels)) {
        return view_wrong(a, "pixels", "1 to 16384");
    }
    out->pixels = (int)pixels;
    return read_window(a, m, out);
}

static crd_status read_rows(crd_arena* a, const crdi_json* m, crdi_view_request* out)
{
    double most = 0;
    if (!crdi_view_number(crdi_json_member(m, "most"), 1, CRDI_VIEW_ROWS, true, &most)) {
        return view_wrong(a, "most", "1 to 262144");
    }
    if (out->track_count != 1) { return view_wrong(a, "tracks", "one"); }
    out->most = (int64_t)most;
    out->thin = crdi_json_get_bool(m, "thin", false);
    return read_window(a, m, out);
}

static crd_status read_times(crd_arena* a, const crdi_json* m, crdi_view_request* out)
{
    const crdi_json* list = crdi_json_get_list(m, "times");
    for (const crdi_json* v = list ? crdi_json_first(list) : NULL; v; v = v->next) {
        if (out->time_count == 2 ||
            !crdi_view_number(v, -1e300, 1e300, false, &out->times[out->time_count++])) {
            return view_wrong(a, "times", "one or two times in s");
        }
    }
    return out->time_count ? CRD_OK : view_wrong(a, "times", "one or two times in s");
}

static crd_status read_layout(crd_arena* a, const crdi_json* m, crdi_view_request* out)
{
    out->layout = crdi_json_get_object(m, "layout");
    return out->layout ? CRD_OK : view_wrong(a, "layout", "an object");
}

static crd_status read_nothing(crd_arena* a, const crdi_json* m, crdi_view_request* out)
{
    (void)m;
    return out->track_count == 1 ? CRD_OK : view_wrong(a, "tracks", "one");
}

crd_status crdi_view_message(crd_arena* arena, const char* bytes, size_t length,
                             crdi_view_request* out)
{
    static const struct {
        const char* name;
        crd_status (*read)(crd_arena* a, const crdi_json* m, crdi_view_request* out);
        bool tracks;
    } verbs[] = {[CRDI_VIEW_LOOK] = {"look", read_look, true},
                 [CRDI_VIEW_SAMPLES] = {"rows", read_rows, true},
                 [CRDI_VIEW_AT] = {"at", read_times, true},
                 [CRDI_VIEW_TEXTS] = {"texts", read_nothing, true},
                 [CRDI_VIEW_SAVE] = {"save", read_layout, false}};
    *out = (crdi_view_request){0};
    crdi_json* m = NULL;
    crd_status st = crdi_json_parse_most(arena, bytes, length, CRDI_VIEW_MESSAGE_BYTES,
                                         (crdi_json_source){.file = "message"}, &m);
    if (st == CRD_E_MEMORY) { return st; }
    if (st < 0 || m->kind != CRDI_JSON_OBJECT) {
        return crdi_fail(arena->ctx, CRD_E_FORMAT, "the message is no JSON object");
    }
    out->has_id = crdi_view_number(crdi_json_member(m, "id"), 0, 4294967295.0, true, &out->id);
    if (!out->has_id) { return view_wrong(arena, "id", "a whole number"); }
    const char* word = crdi_json_get_text(m, "do");
    for (size_t i = 0; word && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(word, verbs[i].name) != 0) { continue; }
        out->verb = (crdi_view_verb)i;
        if (verbs[i].tracks) { st = read_tracks(arena, m, out); }
        return st < 0 ? st : verbs[i].read(arena, m, out);
    }
    return view_wrong(arena, "do", "look, rows, at, texts or save");
}
