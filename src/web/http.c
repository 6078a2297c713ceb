// What is asked for over HTTP: the page's files, metrics, and the way to a WebSocket.
#include "shared/results.h"
#include "web/server.h"

#include "cardan/results.h"

#include <stdio.h>
#include <string.h>

// ---- answers -----------------------------------------------------------------------------------

static const char* status_text(int status)
{
    switch (status) {
    case 200:
        return "200 OK";
    case 403:
        return "403 Forbidden";
    case 404:
        return "404 Not Found";
    case 405:
        return "405 Method Not Allowed";
    case 503:
        return "503 Service Unavailable";
    default:
        return "500 Internal Server Error";
    }
}

static int answer(crdi_web* w, struct lws* wsi, int status, const char* type, const void* body,
                  size_t length, bool head)
{
    crd_text* t = &w->scratch;
    crdi_web_begin(t);
    crdi_text_add(
        t,
        "HTTP/1.1 %s\r\n"
        "Content-Type: %s\r\n"
        "Content-Length: %zu\r\n"
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src "
        "'self'; connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action "
        "'none'; frame-ancestors 'none'\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Referrer-Policy: no-referrer\r\n"
        "Cache-Control: no-store\r\n"
        "%s\r\n",
        status_text(status), type, length,
        status == 405   ? "Allow: GET, HEAD\r\nConnection: close\r\n"
        : status == 503 ? "Retry-After: 5\r\n"
                        : "");
    if (!head) { crdi_text_put(t, body, length); }
    if (t->failed) {
        crd_text_clear(t); // out of memory now is not out of memory for ever
        return -1;
    }
    const size_t bytes = t->length - LWS_PRE;
    // What the socket does not take now is kept and sent by libwebsockets.
    const int n = lws_write(wsi, (unsigned char*)t->data + LWS_PRE, bytes, LWS_WRITE_HTTP);
    return n < 0 || (size_t)n != bytes ? -1 : 0;
}

static int http_refuse(crdi_web* w, struct lws* wsi, int status, const char* why)
{
    char body[200];
    const int n = snprintf(body, sizeof body, "%s: %s\n", status_text(status), why);
    return answer(w, wsi, status, "text/plain; charset=utf-8", body, (size_t)n, false);
}

// ---- checks ------------------------------------------------------------------------------------

// The text of a header; NULL: it is missing. One that is too long is as good as wrong: "".
static const char* header(struct lws* wsi, enum lws_token_indexes which, char* room, int size)
{
    if (lws_hdr_total_length(wsi, which) <= 0) { return NULL; }
    if (lws_hdr_copy(wsi, room, size, which) < 0) { room[0] = 0; }
    return room;
}

// Whoever has it is no stranger from here on.
static bool has_token(crdi_web* w, struct lws* wsi)
{
    char room[CRDI_WEB_TOKEN_BYTES + 16];
    const char* given = lws_get_urlarg_by_name(wsi, "token=", room, sizeof room);
    if (!given) {
        given = header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, room, sizeof room);
        given = given && strncasecmp(given, "Bearer ", 7) == 0 ? given + 7 : NULL;
    }
    const bool has = crdi_web_token_equal(w->token, given ? given : "");
    if (has) { crdi_web_stranger_remove(w, wsi); }
    return has;
}

static bool http_is_ours(const crdi_web* w, struct lws* wsi)
{
    char host_room[300], origin_room[320];
    const char* host = header(wsi, WSI_TOKEN_HOST, host_room, sizeof host_room);
    const char* origin = header(wsi, WSI_TOKEN_ORIGIN, origin_room, sizeof origin_room);
    return crdi_web_host_allowed(&w->access, host) &&
           crdi_web_origin_allowed(&w->access, host, origin);
}

// ---- files -------------------------------------------------------------------------------------

typedef struct file {
    const void* data;
    size_t length;
} file;

// By the ending of the name.
static const char* media_type(const char* path)
{
    static const char* const types[][2] = {{".css", "text/css; charset=utf-8"},
                                           {".js", "text/javascript; charset=utf-8"},
                                           {".svg", "image/svg+xml"}};
    const char* ending = strrchr(path, '.');
    for (size_t i = 0; ending && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i][0], ending) == 0) { return types[i][1]; }
    }
    return "text/html; charset=utf-8";
}

static bool find_file(const crdi_web* w, const char* path, file* out)
{
    if (!w->live && strcmp(path, "/") == 0) {
        path = w->sheet ? "/sheet.html" : w->draw ? "/draw.html" : "/view.html";
    }
    for (const crdi_page_file* f = crdi_page_files; f->path; f++) {
        if (strcmp(f->path, path) == 0) {
            *out = (file){f->data, f->length};
            return true;
        }
    }
    if (strcmp(path, "/chart.js") == 0) {
        out->data = crdi_chart(&out->length);
        return true;
    }
    return false;
}

// Whether there are results to look at: the page of a run asks when it is over.
static int send_view(crdi_web* w, struct lws* wsi, bool head)
{
    const char* text = w->view ? "{\"ready\":true}" : "{\"ready\":false}";
    return answer(w, wsi, 200, "application/json", text, strlen(text), head);
}

static int send_sheet(crdi_web* w, struct lws* wsi, bool picture, bool head)
{
    crd_text t;
    crd_text_init(&t, w->ctx);
    crdi_web_sheet_tell(w->sheet, picture, &t);
    const char* type = picture ? "image/svg+xml" : "application/json";
    const int n = t.failed ? -1 : answer(w, wsi, 200, type, t.data, t.length, head);
    crd_text_clear(&t);
    return n;
}

static int send_metrics(crdi_web* w, struct lws* wsi, bool head)
{
    const crdi_live_info* info = w->ready ? crdi_live_get_info(w->live) : NULL;
    const crdi_live_status* s = w->ready ? crdi_live_get_status(w->live) : NULL;
    crd_text t;
    crd_text_init(&t, w->ctx);
    crdi_web_metrics(&t, info, s, crdi_live_lost(w->live), w->reader_count);
    const int n = t.failed ? -1
                           : answer(w, wsi, 200, "text/plain; version=0.0.4; charset=utf-8", t.data,
                                    t.length, head);
    crd_text_clear(&t);
    return n;
}

// ---- requests ----------------------------------------------------------------------------------

// GET or HEAD; `path` gets what was asked for, "" if that is too long for us.
static bool is_reading(struct lws* wsi, char* path, size_t room, bool* head)
{
    char* uri = NULL;
    int length = 0;
    const bool known = lws_http_get_uri_and_method(wsi, &uri, &length) >= 0;
    path[0] = 0;
    if (known && uri && length > 0 && (size_t)length < room) {
        memcpy(path, uri, (size_t)length);
        path[length] = 0;
    }
    *head = lws_hdr_total_length(wsi, WSI_TOKEN_HEAD_URI) > 0;
    return *head || lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) > 0;
}

static int respond(crdi_web* w, struct lws* wsi, const char* path, bool head)
{
    file f;
    if (!http_is_ours(w, wsi)) {
        return http_refuse(w, wsi, 403, "this host or origin is not the page's own");
    }
    if (find_file(w, path, &f)) {
        return answer(w, wsi, 200, media_type(path), f.data, f.length, head);
    }
    const bool metrics = w->live && strcmp(path, "/metrics") == 0;
    const bool view = strcmp(path, "/view.json") == 0;
    const bool picture = w->sheet && strcmp(path, "/sheet.svg") == 0;
    const bool sheet = picture || (w->sheet && strcmp(path, "/sheet.json") == 0);
    if (!metrics && !view && !sheet && strcmp(path, "/ws") != 0) {
        return http_refuse(w, wsi, 404, "there is nothing here");
    }
    if (!has_token(w, wsi)) {
        return http_refuse(
            w, wsi, 403,
            "the token is missing or wrong; it is in the address that the run printed");
    }
    return metrics ? send_metrics(w, wsi, head)
           : view  ? send_view(w, wsi, head)
           : sheet ? send_sheet(w, wsi, picture, head)
                   : http_refuse(w, wsi, 404, "this is a WebSocket, expected an upgrade");
}

int crdi_web_http(crdi_web* w, struct lws* wsi)
{
    char path[64];
    bool head = false;
    crdi_web_stranger_asks(w, wsi);
    if (!is_reading(wsi, path, sizeof path, &head)) {
        (void)http_refuse(w, wsi, 405, "there is only GET and HEAD");
        return -1; // a body that nobody reads may follow
    }
    const int n = respond(w, wsi, path, head);
    return n < 0 || lws_http_transaction_completed(wsi) ? -1 : 0;
}

int crdi_web_upgrade(crdi_web* w, struct lws* wsi, const char* protocol)
{
    char path[64];
    bool head = false;
    if (!is_reading(wsi, path, sizeof path, &head)) { return -1; }
    int n = 0;
    if (strcasecmp(protocol, "h2c") == 0) { // nobody has to follow that wish
        return respond(w, wsi, path, head) < 0 ? -1 : 1;
    }
    if (head || strcasecmp(protocol, "websocket") != 0) { return -1; }
    if (!http_is_ours(w, wsi)) {
        n = http_refuse(w, wsi, 403, "this host or origin is not the page's own");
    } else if (strcmp(path, "/ws") != 0) {
        n = http_refuse(w, wsi, 404, "there is no WebSocket here, expected /ws");
    } else if (!has_token(w, wsi)) {
        n = http_refuse(w, wsi, 403, "the token is missing or wrong");
    } else if (w->reader_count >= CRDI_WEB_READERS || w->final) {
        n = http_refuse(w, wsi, 503,
                        w->final ? "the run has ended" : "there are 16 readers already");
    } else {
        return 0;
    }
    return n < 0 ? -1 : 1; // answered
}
