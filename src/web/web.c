// The live page's server: listening, its thread, and the pump from the run to the readers.
#include "web/server.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SOCKETS = 96, // of the server at a time: readers, strangers, the rest for who asks for metrics
    AT_ONCE = 16  // who knocks is let in before others have their turn
};

crdi_web_options crdi_web_defaults(void)
{
    return (crdi_web_options){.page = true, .rate = 20, .stream_rate = 50};
}

void crdi_web_begin(crd_text* t)
{
    static const char room[LWS_PRE];
    if (t->failed) {
        crd_context* ctx = t->ctx;
        crd_text_clear(t);
        crd_text_init(t, ctx);
    }
    t->length = 0;
    crdi_text_put(t, room, sizeof room);
}

// ---- what libwebsockets has to say -------------------------------------------------------------

// It logs without saying for whom; what happens on a thread is its server's.
static _Thread_local crd_context* log_context;
static _Thread_local char last_error[160];

static void log_line(int level, const char* line)
{
    const size_t length = strcspn(line, "\n");
    if (level == LLL_ERR) { snprintf(last_error, sizeof last_error, "%.*s", (int)length, line); }
    if (log_context) {
        crdi_log(log_context, CRD_LOG_DEBUG, "web: libwebsockets: %.*s", (int)length, line);
    }
}

// ---- the pump ----------------------------------------------------------------------------------

// The run is known from now on.
static crd_status meet(crdi_web* w)
{
    const crdi_live_info* info = crdi_live_get_info(w->live);
    crd_status st = CRD_OK;
    CRD_TRY(crdi_map_reserve(&w->signals, (size_t)info->signal_count));
    for (int i = 0; i < info->signal_count; i++) {
        CRD_TRY(crdi_map_add(&w->signals, info->signals[i].name, i, NULL));
    }
    crdi_web_begin(&w->hello);
    crdi_web_hello(&w->hello, info, w->opt.read_only);
    if (w->hello.failed) { CRD_TRY(CRD_E_MEMORY); }
    if (w->stream) {
        CRD_TRY(
            crdi_stream_choose(w->stream, info, w->opt.stream_signals, w->opt.stream_signal_count));
        if (crdi_stream_signals(w->stream) == 0) {
            crdi_log(w->ctx, CRD_LOG_WARNING, "stream: no signal is sent: %s",
                     w->opt.stream_signal_count ? "no name fits the patterns" : "the run has none");
        }
    }
    w->ready = true;
    return CRD_OK;
fail: // the next tick tries it again
    crdi_map_clear(&w->signals);
    crdi_map_init(&w->signals, w->ctx);
    return st;
}

static void pump_rows(crdi_web* w)
{
    enum { MOST = 1 << 16 }; // so that a run that outpaces us leaves time for sockets
    for (int n = 0; n < MOST; n++) {
        const crdi_live_row* row = crdi_live_read(w->live);
        if (!row) { return; }
        for (int i = 0; i < CRDI_WEB_READERS; i++) {
            if (w->readers[i]) { crdi_web_reader_row(w->readers[i], row); }
        }
        if (w->stream) { crdi_stream_row(w->stream, row); }
        crdi_live_release(w->live);
    }
}

static void refresh_status(crdi_web* w)
{
    const crdi_live_status* s = crdi_live_get_status(w->live);
    if (!s || w->reader_count == 0) { return; }
    crdi_web_begin(&w->status);
    crdi_web_status(&w->status, s, crdi_live_get_info(w->live), crdi_live_lost(w->live),
                    w->reader_count);
    if (!w->status.failed) { w->status_count++; }
}

// A text that is told again only when it says something else.
static void renew(crdi_web* w, crd_text* shown, int64_t* count)
{
    const size_t length = w->fresh.length;
    if (w->fresh.failed) { return; }
    if (*count > 0 && shown->length == length && // libwebsockets writes into LWS_PRE
        memcmp(shown->data + LWS_PRE, w->fresh.data + LWS_PRE, length - LWS_PRE) == 0) {
        return;
    }
    const crd_text old = *shown;
    *shown = w->fresh;
    w->fresh = old;
    (*count)++;
}

static void refresh_wait(crdi_web* w)
{
    crdi_live_outcome o;
    crdi_live_get_outcome(w->live, &o);
    crdi_web_begin(&w->fresh);
    crdi_web_wait(&w->fresh, crdi_live_get_info(w->live), &o, w->opt.read_only);
    renew(w, &w->wait, &w->wait_count);
}

static void refresh_benches(crdi_web* w)
{
    const int n = crdi_live_board_count(w->live);
    if (n == 0) { return; }
    crdi_web_begin(&w->fresh);
    crdi_text_add(&w->fresh, "{\"is\":\"benches\",\"benches\":[");
    for (int i = 0; i < n; i++) {
        crdi_board_state b;
        crdi_live_read_board(w->live, i, &b);
        if (i) { crdi_text_put(&w->fresh, ",", 1); }
        crdi_web_bench(&w->fresh, crdi_live_board_unit(w->live, i), &b);
    }
    crdi_text_add(&w->fresh, "]}");
    renew(w, &w->benches, &w->bench_count);
}

static void pump_readers(crdi_web* w)
{
    if (w->reader_count > 0 && (w->frame_count % 2 == 0 || w->final)) {
        refresh_benches(w);
        if (!w->ready) { refresh_wait(w); }
    }
    if (w->ready && (w->frame_count % 2 == 0 || w->final)) { refresh_status(w); }
    w->frame_count++;
    for (int i = 0; i < CRDI_WEB_READERS; i++) {
        crdi_web_reader* r = w->readers[i];
        if (!r || r->closing) { continue; }
        r->frame_due = true;
        if (crdi_web_reader_wants(r)) { lws_callback_on_writable(r->wsi); }
    }
}

// Nearer to now than to the next tick. Then it is due again a gap from now.
static bool is_due(const crdi_web* w, int64_t now, double rate, int64_t* next)
{
    if (now + w->tick / 2 < *next) { return false; }
    *next = now + (int64_t)(1e9 / rate);
    return true;
}

// What there is to do for the run: rows to readers and streams.
static void tick_run(crdi_web* w, int64_t now, bool over)
{
    if (!w->ready && crdi_live_is_ready(w->live)) { (void)meet(w); }
    if (w->ready) { pump_rows(w); }
    if (w->stream && (is_due(w, now, w->opt.stream_rate, &w->next_flush) || over)) {
        crdi_stream_flush(w->stream);
    }
    // The last status stays the last: it is made once.
    w->final = w->final || over;
    if (over || (!w->final && is_due(w, now, w->opt.rate, &w->next_frame))) { pump_readers(w); }
}

// The view works between messages: pages wait for a portion at most.
static void tick(lws_sorted_usec_list_t* timer)
{
    enum { PORTION = 12000000 }; // ns
    crdi_web* w = lws_container_of(timer, crdi_web, timer);
    const int64_t now = crdi_now_ns();
    const bool over = w->stopping && !w->final;
    crdi_web_strangers_part(w, now);
    if (w->live) { tick_run(w, now, over); }
    w->final = w->final || over;
    crdi_view* view = w->view;
    const bool busy = view && !w->final && crdi_view_work(view, PORTION);
    lws_sul_schedule(w->lws, 0, &w->timer, tick, busy ? 1 : w->tick / 1000);
}

void crdi_web_hurry(crdi_web* w)
{
    lws_sul_schedule(w->lws, 0, &w->timer, tick, 1);
}

// ---- libwebsockets' events ---------------------------------------------------------------------

static int serve(struct lws* wsi, enum lws_callback_reasons why, void* session, void* in,
                 size_t length)
{
    crdi_web* w = lws_context_user(lws_get_context(wsi));
    switch (why) {
    case LWS_CALLBACK_HTTP:
        return crdi_web_http(w, wsi);
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return crdi_web_upgrade(w, wsi, in);
    case LWS_CALLBACK_ESTABLISHED:
        return w->live ? crdi_web_reader_open(w, session, wsi) : -1;
    case LWS_CALLBACK_RECEIVE:
        return crdi_web_reader_receive(session, in, length);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return crdi_web_reader_write(session);
    case LWS_CALLBACK_CLOSED:
    case LWS_CALLBACK_WSI_DESTROY:
        crdi_web_stranger_remove(w, wsi);
        if (session) { crdi_web_reader_close(session); }
        return 0;
    // CONNECT and what is no HTTP end here, and nothing of a body is taken.
    case LWS_CALLBACK_RAW_ADOPT:
    case LWS_CALLBACK_RAW_RX:
    case LWS_CALLBACK_RAW_WRITEABLE:
    case LWS_CALLBACK_HTTP_BODY:
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
    case LWS_CALLBACK_HTTP_FILE_COMPLETION:
        return -1;
    default:
        return 0;
    }
}

// No descriptor is left for whoever knocks: the spare one lets it in and out again, since a socket
// that stays in the queue would wake us without end.
static void web_turn_away(crdi_web* w, int listening)
{
    close(w->spare);
    const int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        close(fd);
    } else {
        usleep(10000); // somebody else was faster
    }
    w->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int knock(struct lws* wsi, enum lws_callback_reasons why, void* session, void* in,
                 size_t length)
{
    (void)session, (void)in, (void)length;
    // No WebSocket is spoken here.
    if (why == LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION) { return -1; }
    if (why != LWS_CALLBACK_RAW_RX_FILE) { return 0; }
    crdi_web* w = lws_context_user(lws_get_context(wsi));
    const int listening = lws_get_socket_fd(wsi);
    for (int i = 0; i < AT_ONCE; i++) {
        const int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) { web_turn_away(w, listening); }
            return 0;
        }
        const int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct lws* guest = lws_adopt_socket_vhost(w->vhost, fd); // closes it if that fails
        if (guest) { crdi_web_stranger_add(w, guest); }
    }
    return 0;
}

static const struct lws_protocols protocols[] = {
    {"cardan.live.1", serve, sizeof(crdi_web_reader), 4096, 0, NULL, 64 << 10},
    {"cardan.view.1", crdi_web_serve_view, sizeof(crdi_view_reader), 65536, 0, NULL, 256 << 10},
    {"cardan.draw.1", crdi_web_serve_view, sizeof(crdi_view_reader), 65536, CRDI_WEB_DRAWN, NULL,
     256 << 10},
    {"knock", knock, 0, 0, 0, NULL, 0},
    {NULL, NULL, 0, 0, 0, NULL, 0},
};

// A page that neither reads nor answers is gone.
static const lws_retry_bo_t patience = {.secs_since_valid_ping = 20, .secs_since_valid_hangup = 40};

static crd_status web_make_context(crdi_web* w)
{
    // libwebsockets ignores SIGPIPE for the whole process; that is the program's business, and our
    // thread has all signals blocked.
    struct sigaction pipe_action;
    (void)sigaction(SIGPIPE, NULL, &pipe_action);
    lws_set_log_level(LLL_ERR | LLL_WARN, log_line);
    log_context = w->ctx;
    last_error[0] = 0;
    struct lws_context_creation_info info = {0};
    const bool tls = w->access.tls;
    info.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_VALIDATE_UTF8 |
                   (tls ? (uint64_t)LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT : 0);
    info.user = w;
    info.fd_limit_per_thread = SOCKETS;
    info.max_http_header_data = 4096;
    info.timeout_secs = 10;
    info.gid = info.uid = (gid_t)-1;
    w->lws = lws_create_context(&info);
    if (w->lws) {
        info.options |= LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS;
        info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
        info.vhost_name = "cardan";
        info.protocols = protocols;
        info.alpn = "http/1.1";
        info.keepalive_timeout = 15;
        info.retry_and_idle_policy = &patience;
        info.ssl_cert_filepath = tls ? w->opt.cert : NULL;
        info.ssl_private_key_filepath = tls ? w->opt.key : NULL;
        info.ssl_options_set = (long)(SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1);
        w->vhost = lws_create_vhost(w->lws, &info);
    }
    (void)sigaction(SIGPIPE, &pipe_action, NULL);
    log_context = NULL;
    if (w->vhost) { return CRD_OK; }
    if (tls && w->lws) {
        return crdi_fail(w->ctx, CRD_E_IO, "page: no TLS with certificate '%s' and key '%s': %s",
                         w->opt.cert, w->opt.key, last_error[0] ? last_error : "not usable");
    }
    return crdi_fail(w->ctx, CRD_E_IO, "page: libwebsockets does not start: %s",
                     last_error[0] ? last_error : "out of memory");
}

// libwebsockets watches the listening socket, we let people in: at the address that was meant and
// at no other, with descriptors that no child process inherits.
static crd_status open_door(crdi_web* w)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_web_listen(w));
    CRD_TRY(web_make_context(w));
    const lws_sock_file_fd_type door = {.filefd = w->listening};
    w->listening = -1; // it belongs to libwebsockets, also if this fails
    if (!lws_adopt_descriptor_vhost(w->vhost, LWS_ADOPT_RAW_FILE_DESC, door, "knock", NULL)) {
        return crdi_fail(w->ctx, CRD_E_IO, "page: libwebsockets does not take the socket");
    }
fail:
    return st;
}

// ---- options -----------------------------------------------------------------------------------

static crd_status web_keep_text(crd_arena* a, const char** text)
{
    if (!*text) { return CRD_OK; }
    *text = crdi_arena_text(a, *text, strlen(*text));
    return *text ? CRD_OK : CRD_E_MEMORY;
}

static crd_status keep_options(crdi_web* w, const crdi_web_options* opt)
{
    crd_status st = CRD_OK;
    w->opt = *opt;
    crdi_web_options* o = &w->opt;
    if (!(o->rate >= 0.1 && o->rate <= 100) || !(o->stream_rate >= 0.1 && o->stream_rate <= 1000)) {
        return crdi_fail(w->ctx, CRD_E_RANGE,
                         "page: %g frames and %g flushes a second, expected 0.1 to 100 and 0.1 to "
                         "1000",
                         o->rate, o->stream_rate);
    }
    CRD_TRY(web_keep_text(&w->arena, &o->address));
    CRD_TRY(web_keep_text(&w->arena, &o->cert));
    CRD_TRY(web_keep_text(&w->arena, &o->key));
    o->stream_signals = NULL;
    const char** patterns =
        crdi_arena_new(&w->arena, (size_t)o->stream_signal_count + 1, sizeof *patterns);
    if (!patterns) { return CRD_E_MEMORY; }
    for (int i = 0; i < o->stream_signal_count; i++) {
        patterns[i] = opt->stream_signals[i];
        CRD_TRY(web_keep_text(&w->arena, &patterns[i]));
    }
    o->stream_signals = patterns;
fail:
    return st;
}

// ---- life --------------------------------------------------------------------------------------

static void* web_run(void* user)
{
    crdi_web* w = user;
    log_context = w->ctx;
    lws_sul_schedule(w->lws, 0, &w->timer, tick, 1);
    for (;;) {
        if (w->stopping && !w->final) { tick(&w->timer); } // at once
        if (w->final && (w->reader_count == 0 || crdi_now_ns() >= w->patience)) { break; }
        if (lws_service(w->lws, 0) < 0) {
            crdi_log(w->ctx, CRD_LOG_WARNING, "page: libwebsockets gave up; the run goes on");
            break;
        }
    }
    lws_sul_cancel(&w->timer);
    while (sem_wait(&w->woken) < 0) {} // who stops us does not need it any more
    lws_context_destroy(w->lws);
    w->lws = NULL;
    log_context = NULL;
    return NULL;
}

// Small, as its stack may be locked into memory, and of no importance, whoever starts it.
static int make_thread(crdi_web* w)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error) { return error; }
    (void)pthread_attr_setstacksize(&attributes, 1 << 20);
    (void)pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    (void)pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
    error = pthread_create(&w->thread, &attributes, web_run, w);
    pthread_attr_destroy(&attributes);
    return error;
}

static crd_status web_start_thread(crdi_web* w)
{
    // Signals are for the run's own thread, but for those of a thread's own mistakes.
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all, before;
    sem_init(&w->woken, 0, 0);
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        sigdelset(&all, own[i]);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = make_thread(w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        sem_destroy(&w->woken);
        return crdi_fail(w->ctx, CRD_E_IO, "page: no thread for it: %s", strerror(error));
    }
    (void)pthread_setname_np(w->thread, "cardan-web");
    return CRD_OK;
}

static void web_destroy(crdi_web* w)
{
    if (w->lws) { lws_context_destroy(w->lws); }
    if (w->listening >= 0) { close(w->listening); }
    if (w->spare >= 0) { close(w->spare); }
    crdi_stream_close(w->stream);
    crdi_web_sheet_destroy(w->sheet);
    crdi_map_clear(&w->signals);
    crd_text_clear(&w->hello);
    crd_text_clear(&w->status);
    crd_text_clear(&w->scratch);
    crd_text_clear(&w->wait);
    crd_text_clear(&w->benches);
    crd_text_clear(&w->fresh);
    crd_arena_clear(&w->request);
    crd_arena_clear(&w->arena);
    crd_context* ctx = w->ctx;
    crd_free(ctx, w);
    crd_context_destroy(ctx);
}

crd_status crdi_web_start(crd_context* ctx, crdi_live* live, const crdi_web_options* opt,
                          crdi_web** out)
{
    crd_status st = CRD_OK;
    crd_context* own = crdi_context_child(ctx);
    crdi_web* w = own ? crdi_new(own, sizeof *w) : NULL;
    if (!w) {
        crd_context_destroy(own);
        return crdi_fail(ctx, CRD_E_MEMORY, "page: out of memory");
    }
    w->ctx = own;
    w->live = live;
    w->view = opt->view;
    w->draw = opt->draw;
    w->listening = w->spare = -1;
    crd_arena_init(&w->arena, own);
    crd_arena_init(&w->request, own);
    crdi_map_init(&w->signals, own);
    crd_text_init(&w->hello, own);
    crd_text_init(&w->status, own);
    crd_text_init(&w->scratch, own);
    crd_text_init(&w->wait, own);
    crd_text_init(&w->benches, own);
    crd_text_init(&w->fresh, own);
    CRD_TRY(keep_options(w, opt));
    if (opt->sheet) { CRD_TRY(crdi_web_sheet_create(ctx, &w->sheet)); }
    if (opt->stream) { CRD_TRY(crdi_stream_open(own, opt->stream, &w->stream)); }
    if (opt->page) {
        CRD_TRY(crdi_web_check(w));
        CRD_TRY(open_door(w));
        crdi_web_tell(w);
    } else if (w->stream) {
        CRD_TRY(web_make_context(w)); // for its timer
    } else {
        CRD_TRY(crdi_fail(own, CRD_E_RANGE, "page: neither a page nor a stream is wished"));
    }
    w->tick = (int64_t)(1e9 / fmax(opt->page ? opt->rate : 0, w->stream ? opt->stream_rate : 0));
    w->opt.token = w->opt.stream = NULL; // the caller's
    CRD_TRY(web_start_thread(w));
    *out = w;
    return CRD_OK;
fail:
    crdi_fail(ctx, st, "%s", crd_error_text(own));
    web_destroy(w);
    return st;
}

void crdi_web_show(crdi_web* w, crdi_view* view)
{
    w->view = view;
}

const char* crdi_web_url(const crdi_web* w)
{
    return w->url;
}

int crdi_web_readers(const crdi_web* w)
{
    return w->reader_count;
}

void crdi_web_stop(crdi_web* w, double linger)
{
    if (!w) { return; }
    const double most = 3600;
    const double wait = linger > 0 ? fmin(linger, most) : 0;
    w->patience = crdi_now_ns() + (int64_t)(wait * 1e9);
    w->stopping = true;
    lws_cancel_service(w->lws);
    sem_post(&w->woken);
    pthread_join(w->thread, NULL);
    sem_destroy(&w->woken);
    const crdi_stream_counts* c = w->stream ? crdi_stream_get_counts(w->stream) : NULL;
    if (c && (c->dropped > 0 || c->left_out > 0)) {
        crdi_log(w->ctx, CRD_LOG_INFO,
                 "stream: datagrams = %lld, dropped = %lld, rows = %lld, rows left out = %lld",
                 (long long)c->datagrams, (long long)c->dropped, (long long)c->rows,
                 (long long)c->left_out);
    }
    web_destroy(w);
}
