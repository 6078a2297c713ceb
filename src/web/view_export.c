// The viewer as one file: its page, style, scripts and the extremes of chosen signals.
#include "shared/results.h"
#include "web/page.h"
#include "web/view_object.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SIGNALS = CRDI_VIEW_TRACKS, SOME_SIGNALS = 24 };

// ---- which signals -----------------------------------------------------------------------------

static bool matches(const char* const* patterns, int count, const char* name)
{
    for (int i = 0; i < count; i++) {
        if (crdi_glob(patterns[i], name)) { return true; }
    }
    return false;
}

// A layout names signals in lists of objects with a member "name", however deep.
static bool layout_has(const crdi_json* node, const char* name)
{
    for (const crdi_json* v = node ? node->first : NULL; v; v = v->next) {
        const bool is = v->key && strcmp(v->key, "name") == 0 && v->kind == CRDI_JSON_TEXT;
        if (is ? strcmp(v->text, name) == 0 : layout_has(v, name)) { return true; }
    }
    return false;
}

static crd_status choose(crdi_view* v, const char* const* patterns, int count,
                         crdi_view_choice* out)
{
    int left_out = 0;
    const bool some = count == 0 && !v->layout;
    const int most = some ? SOME_SIGNALS : MOST_SIGNALS;
    out->tracks = crdi_arena_new(&v->arena, MOST_SIGNALS, sizeof *out->tracks);
    if (!out->tracks) { return CRD_E_MEMORY; }
    for (int f = 0; f < v->file_count; f++) {
        const crd_recording_info* info = crd_recording_describe(v->files[f]);
        for (int i = 0; i < info->signal_count; i++) {
            const char* name = v->names[f][i];
            if (!some && !(count ? matches(patterns, count, name) : layout_has(v->layout, name))) {
                continue;
            }
            if (out->count == most) {
                left_out++;
            } else {
                out->tracks[out->count++] = (crdi_track){f, i, -1, -1};
            }
        }
    }
    if (out->count == 0) {
        return crdi_fail(v->ctx, CRD_E_NOT_FOUND, "%s: no signal is called %s", v->paths[0],
                         count ? crdi_clip(patterns[0]).text : "as in the layout");
    }
    if (left_out) {
        crdi_log(v->ctx, CRD_LOG_WARNING,
                 "the page has the first %d signals, %d are left out; choose with --variables",
                 out->count, left_out);
    }
    return CRD_OK;
}

// ---- the page ----------------------------------------------------------------------------------

static const crdi_page_file* page_file(const char* path)
{
    const crdi_page_file* f = crdi_page_files;
    while (f->path && strcmp(f->path, path) != 0) {
        f++;
    }
    return f;
}

// Modules become one scope: what they import is there already, and names are not exported. Their
// names differ (a test looks).
static void put_module(crd_text* t, const char* text, size_t length)
{
    bool importing = false;
    for (size_t i = 0; i < length;) {
        const char* line = text + i;
        const char* stop = memchr(line, '\n', length - i);
        const size_t n = stop ? (size_t)(stop - line) + 1 : length - i;
        i += n;
        importing = importing || strncmp(line, "import ", n < 7 ? n : 7) == 0;
        if (importing) {
            importing = !memchr(line, ';', n);
            continue;
        }
        const bool exported = n > 7 && memcmp(line, "export ", 7) == 0;
        crdi_text_put(t, exported ? line + 7 : line, exported ? n - 7 : n);
    }
}

static void put_page_modules(crd_text* t)
{
    static const char* const modules[] = {"/dom.js",         "/numbers.js",     "/theme.js",
                                          "/ask.js",         "/view_source.js", "/view_math.js",
                                          "/view_state.js",  "/view_panel.js",  "/view_list.js",
                                          "/view_export.js", "/view_main.js"};
    size_t length = 0;
    const char* chart = crdi_chart(&length);
    put_module(t, chart, length);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        const crdi_page_file* f = page_file(modules[i]);
        put_module(t, (const char*)f->data, f->length);
    }
}

static void put_style(crd_text* t, const char* path)
{
    const crdi_page_file* f = page_file(path);
    crdi_text_add(t, "<style>\n");
    crdi_text_put(t, f->data, f->length);
    crdi_text_add(t, "</style>\n");
}

// view.html with what it loads inside; its lines that load something begin with <link or <script.
static void put_page(crd_text* t, const crd_text* hello, const crd_text* data)
{
    const crdi_page_file* f = page_file("/view.html");
    const char* text = (const char*)f->data;
    for (size_t i = 0; i < f->length;) {
        const char* line = text + i;
        const char* stop = memchr(line, '\n', f->length - i);
        const size_t n = stop ? (size_t)(stop - line) + 1 : f->length - i;
        i += n;
        if (strncmp(line, "<link ", n < 6 ? n : 6) == 0) { continue; }
        if (strncmp(line, "<script ", n < 8 ? n : 8) != 0) {
            crdi_text_put(t, line, n);
            continue;
        }
        crdi_text_add(t, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                         "'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src "
                         "data: blob:\">\n");
        put_style(t, "/live.css");
        put_style(t, "/view.css");
        crdi_text_add(t, "<script type=\"application/json\" id=\"cardan-hello\">");
        for (const char* p = hello->data; *p; p++) { // no end of the script inside of it
            if (*p == '<') {
                crdi_text_add(t, "\\u003c");
            } else {
                crdi_text_put(t, p, 1);
            }
        }
        crdi_text_add(t, "</script>\n<script type=\"text/plain\" id=\"cardan-data\">");
        crdi_text_base64(t, data->data, data->length);
        crdi_text_add(t, "</script>\n<script type=\"module\">\n\"use strict\";\n");
        put_page_modules(t);
        crdi_text_add(t, "</script>\n");
    }
}

// All of it, exact: what is exported does not get better later.
static crd_status look_at_all(crdi_view* v, const crdi_view_choice* choice, int pixels,
                              crd_text* data)
{
    double first = 0, last = 0;
    crdi_view_request q = {.verb = CRDI_VIEW_LOOK,
                           .has_id = true,
                           .tracks = choice->tracks,
                           .track_count = choice->count,
                           .pixels = pixels};
    if (!crdi_overview_span(v->overview, &first, &last)) {
        return crdi_fail(v->ctx, CRD_E_FORMAT, "%s: there is no row in it", v->paths[0]);
    }
    q.from = first;
    q.to = last;
    for (int round = 0; round < 2; round++) { // the first one says what is wanted
        bool binary = false;
        crd_arena arena;
        crd_arena_init(&arena, v->ctx);
        data->length = 0;
        crdi_view_answer(v, &q, &arena, data, &binary);
        crd_arena_clear(&arena);
        if (!binary) { return crdi_fail(v->ctx, CRD_E_FORMAT, "%s", crd_error_text(v->ctx)); }
        while (crdi_overview_work(v->overview, 100000000)) {}
    }
    return data->failed ? CRD_E_MEMORY : CRD_OK;
}

crd_status crdi_view_export(crdi_view* v, const char* const* patterns, int pattern_count,
                            int pixels, const char* path)
{
    crd_status st = CRD_OK;
    crdi_view_choice choice = {0};
    crd_text hello, data, page;
    crd_text_init(&hello, v->ctx);
    crd_text_init(&data, v->ctx);
    crd_text_init(&page, v->ctx);
    if (pixels < 16 || pixels > CRDI_VIEW_PIXELS) {
        CRD_TRY(crdi_fail(v->ctx, CRD_E_RANGE, "--pixels %d, expected 16 to %d", pixels,
                          CRDI_VIEW_PIXELS));
    }
    CRD_TRY(choose(v, patterns, pattern_count, &choice));
    CRD_TRY(look_at_all(v, &choice, pixels, &data));
    CRD_TRY(crdi_view_describe(v, &choice, &hello));
    put_page(&page, &hello, &data);
    CRD_TRY(crdi_file_write(v->ctx, strcmp(path, "-") == 0 ? "/dev/stdout" : path, &page));
fail:
    crd_text_clear(&hello);
    crd_text_clear(&data);
    crd_text_clear(&page);
    return st;
}
