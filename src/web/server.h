// The server's thread: libwebsockets, its readers, and the pump that brings values to them.
//
// Everything here belongs to that thread but the atomics. A reader pulls: what it is told is worked
// out when its socket can take it, so one that does not read costs a block of rows and no more.
#pragma once
#include "shared/base.h"
#include "web/draw.h"
#include "web/page.h"
#include "web/view.h"
#include "web/web.h"

#include <libwebsockets.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

// An answer that waits for its socket.
typedef struct crdi_web_answer {
    struct crdi_web_answer* next;
    size_t length;
    bool binary;
    unsigned char bytes[]; // LWS_PRE and the text
} crdi_web_answer;

// One open page. Its memory is the session's of libwebsockets, zeroed.
typedef struct crdi_web_reader {
    crdi_web* web; // NULL: not a reader (yet, any more)
    struct lws* wsi;
    char who[64]; // "page 127.0.0.1"
    int64_t page; // its number, from 1
    bool greeted;
    bool closing; // it was told so, and nothing else is told to it

    char* message; // (CRDI_WEB_MESSAGE_BYTES) as far as it has come
    size_t message_length;
    int64_t second_begin; // ns; commands are counted from here
    int commands;

    crdi_web_answer *first, *last;
    size_t queued; // bytes

    int64_t event;   // number of the newest event that it has
    int64_t status;  // count of the newest status that it has
    int64_t wait;    // of "wait"
    int64_t benches; // of the benches

    int watch[CRDI_WEB_WATCHED]; // signals
    int watch_count;
    double* rows; // (CRDI_WEB_BLOCK_ROWS x (1 + watch_count))
    int row_count;
    bool frame_due;
} crdi_web_reader;

// One open page of the viewer, or of a drawn description.
enum { CRDI_WEB_DRAWN = 1 };                    // id of that protocol
enum { CRDI_WEB_VIEW_QUEUE_BYTES = 256 << 20 }; // of answers that it does not take
typedef struct crdi_view_reader {
    crdi_web* web; // NULL: not a reader (yet, any more)
    struct lws* wsi;
    char* message; // (CRDI_VIEW_MESSAGE_BYTES)
    size_t message_length;
    crdi_web_answer *first, *last;
    size_t queued; // bytes
} crdi_view_reader;

// A connection without the token. Idle ones must not keep token holders out: they have few places,
// each for a short time, and the next one takes that of the oldest which has nothing to say.
enum { CRDI_WEB_STRANGERS = 48 };
typedef struct crdi_web_stranger {
    struct lws* wsi; // NULL: the place is free
    int64_t since;   // ns, its arrival or its last whole request
} crdi_web_stranger;

struct crdi_web {
    crd_context* ctx;             // the thread's own
    crdi_live* live;              // borrowed; NULL: there is no run
    crdi_view* _Atomic view;      // borrowed; NULL: there are no results (yet)
    crdi_draw* draw;              // borrowed; NULL: no description is drawn
    struct crdi_web_sheet* sheet; // NULL: there is none
    int view_reader_count;
    crdi_web_options opt;
    crd_arena arena; // of the options
    crdi_web_access access;
    char token[CRDI_WEB_TOKEN_BYTES + 1];
    char url[512];

    struct lws_context* lws;
    struct lws_vhost* vhost;
    int listening; // -1: libwebsockets has it, or there is none
    int spare;     // a descriptor to be given up when there are none left
    lws_sorted_usec_list_t timer;
    pthread_t thread;
    sem_t woken; // posted once lws_cancel_service is done with `lws`

    _Atomic bool stopping;
    _Atomic int64_t patience; // ns on the clock, until which pages may take the end
    _Atomic int reader_count;

    crdi_web_stranger strangers[CRDI_WEB_STRANGERS];
    crdi_web_reader* readers[CRDI_WEB_READERS];
    int64_t pages;     // so far
    bool ready, final; // the run is known; it is over, and pages are told so
    crd_map signals;
    crd_text hello, status, scratch; // each with LWS_PRE bytes before it
    crd_text wait, benches, fresh;   // the newest that differ from those before; to be compared
    int64_t status_count, wait_count, bench_count, frame_count;
    int64_t tick;                   // ns
    int64_t next_frame, next_flush; // ns
    crd_arena request;              // of one message
    crdi_stream* stream;
};

// ---- web.c -------------------------------------------------------------------------------------

void crdi_web_begin(crd_text* t); // empties it but for LWS_PRE bytes
void crdi_web_hurry(crdi_web* w); // the next tick is now

// ---- listen.c ----------------------------------------------------------------------------------

void crdi_web_stranger_add(crdi_web* w, struct lws* wsi);
void crdi_web_stranger_asks(crdi_web* w, const struct lws* wsi);   // a whole request has come
void crdi_web_stranger_remove(crdi_web* w, const struct lws* wsi); // it has the token, or is gone
void crdi_web_strangers_part(crdi_web* w, int64_t now);            // from those who say nothing
crd_status crdi_web_check(crdi_web* w);  // address, TLS and token; nothing is opened yet
crd_status crdi_web_listen(crdi_web* w); // `listening` and the port in use
void crdi_web_tell(crdi_web* w);         // `url`, and warnings

// ---- sheet.c -----------------------------------------------------------------------------------

crd_status crdi_web_sheet_create(crd_context* ctx, struct crdi_web_sheet** out);
void crdi_web_sheet_destroy(struct crdi_web_sheet* s);
// The picture, or what there is to say of it as JSON; appended to `out`.
void crdi_web_sheet_tell(struct crdi_web_sheet* s, bool picture, crd_text* out);

// ---- http.c ------------------------------------------------------------------------------------

int crdi_web_http(crdi_web* w, struct lws* wsi);                          // LWS_CALLBACK_HTTP
int crdi_web_upgrade(crdi_web* w, struct lws* wsi, const char* protocol); // HTTP_CONFIRM_UPGRADE

// ---- reader.c ----------------------------------------------------------------------------------

int crdi_web_reader_open(crdi_web* w, crdi_web_reader* r, struct lws* wsi);
void crdi_web_reader_close(crdi_web_reader* r);
int crdi_web_reader_receive(crdi_web_reader* r, const char* bytes, size_t length);
int crdi_web_reader_write(crdi_web_reader* r);
void crdi_web_reader_row(crdi_web_reader* r, const crdi_live_row* row);
bool crdi_web_reader_wants(const crdi_web_reader* r); // something to be written

// ---- view_reader.c -----------------------------------------------------------------------------

int crdi_web_serve_view(struct lws* wsi, enum lws_callback_reasons why, void* session, void* in,
                        size_t length);
