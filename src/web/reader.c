// One open page: what it asked for, and what it is told when its socket has room.
#include "web/server.h"

#include <stdio.h>
#include <string.h>

// ---- opening and closing -----------------------------------------------------------------------

int crdi_web_reader_open(crdi_web* w, crdi_web_reader* r, struct lws* wsi)
{
    int place = 0;
    while (place < CRDI_WEB_READERS && w->readers[place]) {
        place++;
    }
    if (place == CRDI_WEB_READERS) { return -1; }
    char peer[46] = "";
    lws_get_peer_simple(wsi, peer, sizeof peer);
    *r = (crdi_web_reader){.wsi = wsi, .page = ++w->pages};
    snprintf(r->who, sizeof r->who, "page %s", peer);
    r->message = crdi_new(w->ctx, CRDI_WEB_MESSAGE_BYTES);
    if (!r->message) { return -1; }
    r->web = w;
    w->readers[place] = r;
    w->reader_count++;
    lws_callback_on_writable(wsi);
    return 0;
}

void crdi_web_reader_close(crdi_web_reader* r)
{
    crdi_web* w = r->web;
    if (!w) { return; }
    for (int i = 0; i < CRDI_WEB_READERS; i++) {
        if (w->readers[i] == r) { w->readers[i] = NULL; }
    }
    w->reader_count--;
    crdi_live_leave(w->live, r->page);
    for (crdi_web_answer* a = r->first; a;) {
        crdi_web_answer* next = a->next;
        crd_free(w->ctx, a);
        a = next;
    }
    crd_free(w->ctx, r->message);
    crd_free(w->ctx, r->rows);
    *r = (crdi_web_reader){0};
}

// The page is told why, as far as it listens.
static int hang_up(crdi_web_reader* r, enum lws_close_status code, const char* why)
{
    unsigned char text[124]; // as long as a close frame has room
    const int n = snprintf((char*)text, sizeof text, "%s", why);
    const size_t length = n < (int)sizeof text ? (size_t)n : sizeof text - 1;
    lws_close_reason(r->wsi, code, text, length);
    r->closing = true;
    crdi_log(r->web->ctx, CRD_LOG_INFO, "web: %s closed, code = %d: %s", r->who, (int)code, why);
    return -1;
}

// ---- commands ----------------------------------------------------------------------------------

static bool queue(crdi_web_reader* r, const char* text, size_t length)
{
    crdi_web_answer* a = crdi_new(r->web->ctx, sizeof *a + LWS_PRE + length);
    if (!a) { return false; }
    a->length = length;
    memcpy(a->bytes + LWS_PRE, text, length);
    if (r->last) {
        r->last->next = a;
    } else {
        r->first = a;
    }
    r->last = a;
    r->queued += length;
    return true;
}

static crd_status reader_watch(crdi_web_reader* r, const crdi_web_request* q)
{
    crdi_web* w = r->web;
    int found[CRDI_WEB_WATCHED];
    for (int i = 0; i < q->signal_count; i++) {
        found[i] = crdi_map_find(&w->signals, q->signals[i]);
        if (found[i] < 0) {
            return crdi_fail(w->ctx, CRD_E_NOT_FOUND, "there is no signal \"%s\"",
                             crdi_clip(q->signals[i]).text);
        }
    }
    const size_t width = 1 + (size_t)q->signal_count;
    double* rows = crdi_new_array(w->ctx, CRDI_WEB_BLOCK_ROWS * width, sizeof *rows);
    if (!rows) { return CRD_E_MEMORY; }
    crd_free(w->ctx, r->rows);
    r->rows = rows;
    r->row_count = 0;
    r->watch_count = q->signal_count;
    memcpy(r->watch, found, (size_t)q->signal_count * sizeof found[0]);
    return CRD_OK;
}

// NULL: done; else what was wrong.
static const char* obey(crdi_web_reader* r, crdi_web_request* q)
{
    crdi_web* w = r->web;
    const bool prepare = !q->watching && q->command.action == CRDI_LIVE_PREPARE;
    const bool urgent = !q->watching && q->command.action == CRDI_LIVE_EMERGENCY;
    if (!w->ready && !urgent && !prepare) { return "the run is not ready yet"; }
    if (q->watching) { return reader_watch(r, q) < 0 ? crd_error_text(w->ctx) : NULL; }
    if (w->opt.read_only) { return "this page may only watch: the run was started read-only"; }
    if (w->final && !prepare) { return "the run has ended"; }
    q->command.who = r->who;
    q->command.page = r->page;
    return crdi_live_send(w->live, &q->command) < 0 ? crdi_live_error(w->live) : NULL;
}

// A whole message has come.
static int reader_take(crdi_web_reader* r)
{
    crdi_web* w = r->web;
    const int64_t now = crdi_now_ns();
    if (now - r->second_begin >= 1000000000) {
        r->second_begin = now;
        r->commands = 0;
    }
    if (++r->commands > CRDI_WEB_COMMANDS) {
        return hang_up(r, LWS_CLOSE_STATUS_POLICY_VIOLATION, "more than 200 messages in a second");
    }
    crdi_web_request q;
    const crd_status st = crdi_web_message(&w->request, r->message, r->message_length, &q);
    int n = 0;
    if (st == CRD_E_FORMAT) {
        n = hang_up(r, LWS_CLOSE_STATUS_INVALID_PAYLOAD, crd_error_text(w->ctx));
    } else {
        const char* error = st < 0 ? crd_error_text(w->ctx) : obey(r, &q);
        crd_text t;
        crd_text_init(&t, w->ctx);
        crdi_web_reply(&t, &q, error);
        if (t.failed || r->queued + t.length > CRDI_WEB_QUEUE_BYTES ||
            !queue(r, t.data, t.length)) {
            n = hang_up(r, LWS_CLOSE_STATUS_POLICY_VIOLATION, "answers are not taken");
        }
        crd_text_clear(&t);
        if (n == 0) { lws_callback_on_writable(r->wsi); }
    }
    crd_arena_clear(&w->request);
    crd_arena_init(&w->request, w->ctx);
    return n;
}

int crdi_web_reader_receive(crdi_web_reader* r, const char* bytes, size_t length)
{
    if (r->closing) { return 0; } // it does not know yet
    if (lws_frame_is_binary(r->wsi)) {
        return hang_up(r, LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE, "expected text");
    }
    if (lws_is_first_fragment(r->wsi)) { r->message_length = 0; }
    const size_t coming = lws_remaining_packet_payload(r->wsi);
    const size_t room = CRDI_WEB_MESSAGE_BYTES - r->message_length;
    if (length > room || coming > room - length) {
        return hang_up(r, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, "expected at most 16 KiB");
    }
    if (length > 0) { memcpy(r->message + r->message_length, bytes, length); }
    r->message_length += length;
    if (coming > 0 || !lws_is_final_fragment(r->wsi)) { return 0; }
    return reader_take(r);
}

// ---- values ------------------------------------------------------------------------------------

void crdi_web_reader_row(crdi_web_reader* r, const crdi_live_row* row)
{
    if (r->watch_count == 0) { return; }
    const int width = 1 + r->watch_count;
    if (r->row_count == CRDI_WEB_BLOCK_ROWS) {
        r->row_count = crdi_web_thin(r->rows, r->row_count, width, CRDI_WEB_FRAME_ROWS / 2);
    }
    double* to = r->rows + (size_t)r->row_count++ * (size_t)width;
    *to++ = row->time;
    for (int i = 0; i < r->watch_count; i++) {
        *to++ = row->values[r->watch[i]];
    }
}

// ---- telling -----------------------------------------------------------------------------------

static bool has_event(const crdi_web_reader* r)
{
    crdi_live_event e;
    return crdi_live_get_event(r->web->live, r->event, &e);
}

bool crdi_web_reader_wants(const crdi_web_reader* r)
{
    const crdi_web* w = r->web;
    if (r->first) { return true; }
    if (r->benches != w->bench_count || w->final || has_event(r)) { return true; }
    if (!w->ready) { return r->wait != w->wait_count; }
    return !r->greeted || (r->frame_due && r->row_count > 0) || r->status != w->status_count;
}

static int say(crdi_web_reader* r, crd_text* t, enum lws_write_protocol how)
{
    if (t->failed) { return hang_up(r, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, "out of memory"); }
    const size_t length = t->length - LWS_PRE;
    return lws_write(r->wsi, (unsigned char*)t->data + LWS_PRE, length, how) < 0 ? -1 : 0;
}

static int say_answer(crdi_web_reader* r)
{
    crdi_web_answer* a = r->first;
    const int n = lws_write(r->wsi, a->bytes + LWS_PRE, a->length, LWS_WRITE_TEXT);
    r->first = a->next;
    if (!r->first) { r->last = NULL; }
    r->queued -= a->length;
    crd_free(r->web->ctx, a);
    return n < 0 ? -1 : 0;
}

static int say_frame(crdi_web_reader* r)
{
    crdi_web* w = r->web;
    const int width = 1 + r->watch_count;
    if (r->row_count > CRDI_WEB_FRAME_ROWS) {
        r->row_count = crdi_web_thin(r->rows, r->row_count, width, CRDI_WEB_FRAME_ROWS / 2);
    }
    const size_t bytes = crdi_web_frame_bytes(r->row_count, width);
    unsigned char* out = crdi_new(w->ctx, LWS_PRE + bytes);
    if (!out) { return 0; } // the rows stay for the next time
    crdi_web_frame(r->rows, r->row_count, width, (uint32_t)crdi_live_lost(w->live), out + LWS_PRE);
    r->row_count = 0;
    r->frame_due = false;
    const int n = lws_write(r->wsi, out + LWS_PRE, bytes, LWS_WRITE_BINARY);
    crd_free(w->ctx, out);
    return n < 0 ? -1 : 0;
}

// One message, the most urgent; the socket has room for one.
static int say_next(crdi_web_reader* r)
{
    crdi_web* w = r->web;
    crdi_live_event e;
    if (r->first) { return say_answer(r); }
    if (!w->ready && r->wait != w->wait_count) {
        r->wait = w->wait_count;
        return say(r, &w->wait, LWS_WRITE_TEXT);
    }
    if (w->ready && !r->greeted) {
        r->greeted = true;
        return say(r, &w->hello, LWS_WRITE_TEXT);
    }
    if (crdi_live_get_event(w->live, r->event, &e)) {
        r->event = e.number;
        crdi_web_begin(&w->scratch);
        crdi_web_event(&w->scratch, &e);
        return say(r, &w->scratch, LWS_WRITE_TEXT);
    }
    if (r->benches != w->bench_count) {
        r->benches = w->bench_count;
        return say(r, &w->benches, LWS_WRITE_TEXT);
    }
    if (r->frame_due && r->row_count > 0) { return say_frame(r); }
    if (w->ready && r->status != w->status_count) {
        r->status = w->status_count;
        return say(r, &w->status, LWS_WRITE_TEXT);
    }
    return w->final ? hang_up(r, LWS_CLOSE_STATUS_NORMAL, "the run has ended") : 0;
}

int crdi_web_reader_write(crdi_web_reader* r)
{
    if (r->closing) { return 0; }
    // What went before may still be on its way: then its turn comes again.
    if (lws_send_pipe_choked(r->wsi)) {
        lws_callback_on_writable(r->wsi);
        return 0;
    }
    if (say_next(r) < 0) { return -1; }
    if (crdi_web_reader_wants(r)) { lws_callback_on_writable(r->wsi); }
    return 0;
}
