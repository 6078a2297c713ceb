// A page of the viewer, or of a drawn description: it asks, and is answered in order. It asks again
// for what was not done.
#include "web/server.h"

#include <string.h>

static int view_queue(crdi_view_reader* r, crd_text* t, bool binary)
{
    if (t->failed) { return -1; }
    crdi_web_answer* a = crdi_new(r->web->ctx, sizeof *a + LWS_PRE + t->length);
    if (!a || r->queued > CRDI_WEB_VIEW_QUEUE_BYTES) { // it does not take what it asked for
        crd_free(r->web->ctx, a);
        return -1;
    }
    a->length = t->length;
    a->binary = binary;
    memcpy(a->bytes + LWS_PRE, t->data, t->length);
    *(r->last ? &r->last->next : &r->first) = a;
    r->last = a;
    r->queued += t->length;
    lws_callback_on_writable(r->wsi);
    return 0;
}

static int view_open(crdi_web* w, crdi_view_reader* r, struct lws* wsi)
{
    *r = (crdi_view_reader){0};
    const bool drawn = lws_get_protocol(wsi)->id == CRDI_WEB_DRAWN;
    if ((drawn ? !w->draw : !w->view) || w->view_reader_count >= CRDI_WEB_READERS) { return -1; }
    r->message = crdi_new(w->ctx, CRDI_VIEW_MESSAGE_BYTES);
    if (!r->message) { return -1; }
    r->web = w;
    r->wsi = wsi;
    w->view_reader_count++;
    w->reader_count++;
    crd_text hello = drawn ? *crdi_draw_hello(w->draw) : *crdi_view_hello(w->view);
    return view_queue(r, &hello, false);
}

static void view_close(crdi_view_reader* r)
{
    crdi_web* w = r->web;
    if (!w) { return; }
    w->view_reader_count--;
    w->reader_count--;
    for (crdi_web_answer* a = r->first; a;) {
        crdi_web_answer* next = a->next;
        crd_free(w->ctx, a);
        a = next;
    }
    crd_free(w->ctx, r->message);
    *r = (crdi_view_reader){0};
}

static void view_reply(crdi_view_reader* r, crd_text* t, bool* binary)
{
    crdi_web* w = r->web;
    crdi_view_request q;
    const crd_status st = crdi_view_message(&w->request, r->message, r->message_length, &q);
    if (st < 0) {
        crdi_view_refuse(t, q.has_id, q.id, crd_error_text(w->ctx));
    } else {
        crdi_view_answer(w->view, &q, &w->request, t, binary);
    }
}

static void draw_reply(crdi_view_reader* r, crd_text* t)
{
    crdi_web* w = r->web;
    crdi_draw_request q;
    const crd_status st = crdi_draw_message(&w->request, r->message, r->message_length, &q);
    if (st < 0) {
        crdi_view_refuse(t, q.has_id, q.id, crd_error_text(w->ctx));
    } else {
        crdi_draw_answer(w->draw, &q, t);
    }
}

// A whole message has come.
static int view_take(crdi_view_reader* r)
{
    crdi_web* w = r->web;
    crd_text t;
    bool binary = false;
    crd_text_init(&t, w->ctx);
    if (lws_get_protocol(r->wsi)->id == CRDI_WEB_DRAWN) {
        draw_reply(r, &t);
    } else {
        view_reply(r, &t, &binary);
    }
    const int n = view_queue(r, &t, binary);
    crd_text_clear(&t);
    crd_arena_clear(&w->request);
    crd_arena_init(&w->request, w->ctx);
    crdi_web_hurry(w); // there may be something to build
    return n;
}

static int view_receive(crdi_view_reader* r, const char* bytes, size_t length)
{
    if (lws_frame_is_binary(r->wsi)) { return -1; }
    if (lws_is_first_fragment(r->wsi)) { r->message_length = 0; }
    const size_t coming = lws_remaining_packet_payload(r->wsi);
    const size_t room = CRDI_VIEW_MESSAGE_BYTES - r->message_length;
    if (length > room || coming > room - length) {
        lws_close_reason(r->wsi, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, NULL, 0);
        return -1;
    }
    if (length > 0) { memcpy(r->message + r->message_length, bytes, length); }
    r->message_length += length;
    if (coming > 0 || !lws_is_final_fragment(r->wsi)) { return 0; }
    return view_take(r);
}

static int view_write(crdi_view_reader* r)
{
    crdi_web_answer* a = r->first;
    if (!a) { return 0; }
    if (lws_send_pipe_choked(r->wsi)) {
        lws_callback_on_writable(r->wsi);
        return 0;
    }
    const int n = lws_write(r->wsi, a->bytes + LWS_PRE, a->length,
                            a->binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT);
    r->first = a->next;
    if (!r->first) { r->last = NULL; }
    r->queued -= a->length;
    crd_free(r->web->ctx, a);
    if (r->first) { lws_callback_on_writable(r->wsi); }
    return n < 0 ? -1 : 0;
}

int crdi_web_serve_view(struct lws* wsi, enum lws_callback_reasons why, void* session, void* in,
                        size_t length)
{
    crdi_web* w = lws_context_user(lws_get_context(wsi));
    switch (why) {
    case LWS_CALLBACK_ESTABLISHED:
        return view_open(w, session, wsi);
    case LWS_CALLBACK_RECEIVE:
        return view_receive(session, in, length);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return view_write(session);
    case LWS_CALLBACK_CLOSED:
    case LWS_CALLBACK_WSI_DESTROY:
        crdi_web_stranger_remove(w, wsi);
        if (session) { view_close(session); }
        return 0;
    default:
        return 0;
    }
}
