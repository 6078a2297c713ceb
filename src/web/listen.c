// Where the server listens, and what has to be said before others than this machine reach it.
#include "web/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

// ---- what was wished ---------------------------------------------------------------------------

crd_status crdi_web_check(crdi_web* w)
{
    const crdi_web_options* o = &w->opt;
    crdi_web_access* g = &w->access;
    crd_status st = CRD_OK;
    CRD_TRY(crdi_web_address_parse(w->ctx, o->address, &g->bound));
    if (!o->cert != !o->key) {
        return crdi_fail(w->ctx, CRD_E_RANGE,
                         "page: a certificate and its key belong together, %s is missing",
                         o->cert ? "the key" : "the certificate");
    }
    g->tls = o->cert != NULL;
    const char* files[] = {o->cert, o->key};
    for (int i = 0; i < 2 && g->tls; i++) {
        if (access(files[i], R_OK) < 0) {
            return crdi_fail(w->ctx, CRD_E_IO, "page: '%s': %s", crdi_clip(files[i]).text,
                             strerror(errno));
        }
    }
    if (!g->bound.loopback && !o->open) {
        return crdi_fail(w->ctx, CRD_E_RANGE,
                         "page at %s: others than this machine would reach it; that has to be said "
                         "explicitly",
                         g->bound.host);
    }
    if (!g->bound.loopback && !g->tls && !o->plain) {
        return crdi_fail(w->ctx, CRD_E_RANGE,
                         "page at %s: expected a certificate and its key, as others would read the "
                         "token; or that it is meant without TLS",
                         g->bound.host);
    }
    if (gethostname(g->machine, sizeof g->machine - 1) < 0) { g->machine[0] = 0; }
    if (o->token) {
        CRD_TRY(crdi_web_token_check(w->ctx, o->token, g->bound.loopback));
        snprintf(w->token, sizeof w->token, "%s", o->token);
    } else {
        CRD_TRY(crdi_web_token_make(w->ctx, w->token));
    }
fail:
    return st;
}

// ---- the socket --------------------------------------------------------------------------------

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} any_address;

static int bind_to(int fd, const crdi_web_address* a, int port)
{
    any_address where = {.v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)}};
    if (a->v6) {
        (void)inet_pton(AF_INET6, a->host, &where.v6.sin6_addr);
        return bind(fd, &where.any, sizeof where.v6);
    }
    where.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    (void)inet_pton(AF_INET, a->host, &where.v4.sin_addr);
    return bind(fd, &where.any, sizeof where.v4);
}

static int bound_port(int fd)
{
    any_address where = {.v6 = {0}};
    socklen_t length = sizeof where;
    if (getsockname(fd, &where.any, &length) < 0) { return 0; }
    return ntohs(where.any.sa_family == AF_INET6 ? where.v6.sin6_port : where.v4.sin_port);
}

static crd_status cannot_listen(crdi_web* w, int error)
{
    const crdi_web_address* a = &w->access.bound;
    const char* hint = error == EADDRINUSE ? ": another program listens there; without a port a "
                                             "free one is taken"
                       : error == EADDRNOTAVAIL ? ": the address is none of this machine"
                       : error == EACCES        ? ": ports below 1024 are the administrator's"
                                                : "";
    return crdi_fail(w->ctx, CRD_E_IO, a->v6 ? "page at [%s]:%d: %s%s" : "page at %s:%d: %s%s",
                     a->host, a->port, strerror(error), hint);
}

crd_status crdi_web_listen(crdi_web* w)
{
    crdi_web_address* a = &w->access.bound;
    const int fd =
        socket(a->v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) { return cannot_listen(w, errno); }
    w->listening = fd;
    const int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->v6) { (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on); }
    int bad = bind_to(fd, a, a->port) < 0 || listen(fd, SOMAXCONN) < 0;
    if (bad && errno == EADDRINUSE && !a->given) {
        // The socket may be bound although it could not listen: a fresh one.
        close(fd);
        w->listening =
            socket(a->v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (w->listening < 0) { return cannot_listen(w, errno); }
        // Pages of this one must not keep the next server from its port.
        (void)setsockopt(w->listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (a->v6) { (void)setsockopt(w->listening, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on); }
        bad = bind_to(w->listening, a, 0) < 0 || listen(w->listening, SOMAXCONN) < 0;
    }
    if (bad) { return cannot_listen(w, errno); }
    a->port = bound_port(w->listening);
    w->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return CRD_OK;
}

// ---- strangers ---------------------------------------------------------------------------------

static crdi_web_stranger* find_stranger(crdi_web* w, const struct lws* wsi)
{
    for (int i = 0; i < CRDI_WEB_STRANGERS; i++) {
        if (w->strangers[i].wsi == wsi) { return &w->strangers[i]; }
    }
    return NULL;
}

static void part_from(crdi_web_stranger* s)
{
    struct lws* wsi = s->wsi;
    s->wsi = NULL;
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_SYNC);
}

// The oldest, rather one that has not sent anything that waits to be read.
static crdi_web_stranger* expendable(crdi_web* w)
{
    crdi_web_stranger *oldest = NULL, *idle = NULL;
    for (int i = 0; i < CRDI_WEB_STRANGERS; i++) {
        crdi_web_stranger* s = &w->strangers[i];
        int bytes = 0;
        (void)ioctl(lws_get_socket_fd(s->wsi), FIONREAD, &bytes);
        if (!oldest || s->since < oldest->since) { oldest = s; }
        if (bytes == 0 && (!idle || s->since < idle->since)) { idle = s; }
    }
    return idle ? idle : oldest;
}

void crdi_web_stranger_add(crdi_web* w, struct lws* wsi)
{
    crdi_web_stranger* s = find_stranger(w, NULL);
    if (!s) {
        s = expendable(w);
        part_from(s);
    }
    *s = (crdi_web_stranger){wsi, crdi_now_ns()};
}

void crdi_web_stranger_asks(crdi_web* w, const struct lws* wsi)
{
    crdi_web_stranger* s = find_stranger(w, wsi);
    if (s) { s->since = crdi_now_ns(); }
}

void crdi_web_stranger_remove(crdi_web* w, const struct lws* wsi)
{
    crdi_web_stranger* s = find_stranger(w, wsi);
    if (s) { s->wsi = NULL; }
}

void crdi_web_strangers_part(crdi_web* w, int64_t now)
{
    static const int64_t most = INT64_C(2000000000);
    for (int i = 0; i < CRDI_WEB_STRANGERS; i++) {
        crdi_web_stranger* s = &w->strangers[i];
        if (s->wsi && now - s->since > most) { part_from(s); }
    }
}

// ---- what is told about it ---------------------------------------------------------------------

static void list_addresses(int family, char* out, size_t room)
{
    struct ifaddrs* all = NULL;
    size_t used = 0;
    out[0] = 0;
    if (getifaddrs(&all) < 0) { return; }
    for (const struct ifaddrs* a = all; a; a = a->ifa_next) {
        char text[INET6_ADDRSTRLEN] = "";
        if (!a->ifa_addr || a->ifa_addr->sa_family != family) { continue; }
        const void* number = family == AF_INET6
                                 ? (void*)&((struct sockaddr_in6*)a->ifa_addr)->sin6_addr
                                 : (void*)&((struct sockaddr_in*)a->ifa_addr)->sin_addr;
        (void)inet_ntop(family, number, text, sizeof text);
        const int n =
            snprintf(out + used, room - used, "%s%s %s", used ? ", " : "", a->ifa_name, text);
        if (n < 0 || used + (size_t)n >= room) { break; }
        used += (size_t)n;
    }
    freeifaddrs(all);
}

static void warn_open(crdi_web* w)
{
    char where[400];
    const crdi_web_address* a = &w->access.bound;
    list_addresses(a->v6 ? AF_INET6 : AF_INET, where, sizeof where);
    crdi_log(w->ctx, CRD_LOG_WARNING,
             "page: others than this machine reach port %d at %s%s%s: who knows the token can %s",
             a->port, a->any ? "all its addresses (" : "", a->any ? where : a->host,
             a->any ? ")" : "", w->opt.read_only ? "watch the run" : "watch and steer the run");
    if (!w->access.tls) {
        crdi_log(w->ctx, CRD_LOG_WARNING,
                 "page: without TLS everybody on the way can read the token and all values, and "
                 "change them");
    }
}

void crdi_web_tell(crdi_web* w)
{
    const crdi_web_address* a = &w->access.bound;
    const bool name = a->any && w->access.machine[0];
    const char* host = name ? w->access.machine : a->host;
    snprintf(w->url, sizeof w->url,
             a->v6 && !name ? "%s://[%s]:%d/?token=%s" : "%s://%s:%d/?token=%s",
             w->access.tls ? "https" : "http", host, a->port, w->token);
    if (!a->loopback) { warn_open(w); }
}
