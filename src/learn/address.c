// Addresses as text, and sockets that never block.
#define _POSIX_C_SOURCE 200809L
#include "learn/message.h"
#include "shared/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static crd_status parse_unix(crd_context* ctx, const char* text, crdi_address* out)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    const char* path = text + strlen("unix:");
    if (!*path || strlen(path) >= sizeof un.sun_path) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "learning server '%.200s': the path has %zu bytes, expected 1 to %zu",
                         text, strlen(path), sizeof un.sun_path - 1);
    }
    memcpy(un.sun_path, path, strlen(path) + 1);
    memcpy(&out->socket, &un, sizeof un);
    out->length = sizeof un;
    return CRD_OK;
}

static bool parse_host(const char* host, int port, crdi_address* out)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &in.sin_addr) == 1) {
        memcpy(&out->socket, &in, sizeof in);
        out->length = sizeof in;
        return true;
    }
    if (inet_pton(AF_INET6, host, &in6.sin6_addr) == 1) {
        memcpy(&out->socket, &in6, sizeof in6);
        out->length = sizeof in6;
        return true;
    }
    return false;
}

static crd_status parse_tcp(crd_context* ctx, const char* text, crdi_address* out)
{
    char host[64];
    int64_t port = -1;
    const char* begin = text + strlen("tcp:");
    const char* colon = strrchr(begin, ':');
    size_t length = colon ? (size_t)(colon - begin) : 0;
    if (length >= 2 && begin[0] == '[' && begin[length - 1] == ']') { // [::1]
        begin++;
        length -= 2;
    }
    if (!colon || !crdi_parse_int64(colon + 1, strlen(colon + 1), &port) || port < 0 ||
        port > 65535) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "learning server '%.200s': expected a port from 0 to 65535 at the end, as "
                         "in tcp:127.0.0.1:5400",
                         text);
    }
    if (length < sizeof host) {
        memcpy(host, begin, length);
        host[length] = 0;
        if (parse_host(host, (int)port, out)) { return CRD_OK; }
    }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "learning server '%.200s': '%.*s' is no numeric address, expected as in "
                     "tcp:127.0.0.1:5400 or tcp:[::1]:5400",
                     text, (int)(length < 100 ? length : 100), begin);
}

crd_status crdi_address_parse(crd_context* ctx, const char* text, crdi_address* out)
{
    *out = (crdi_address){0};
    if (text && strncmp(text, "unix:", 5) == 0) { return parse_unix(ctx, text, out); }
    if (text && strncmp(text, "tcp:", 4) == 0) { return parse_tcp(ctx, text, out); }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "learning server '%.200s': expected unix:PATH or tcp:ADDRESS:PORT",
                     text ? text : "");
}

bool crdi_address_is_local(const crdi_address* a)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    memcpy(&in, &a->socket, sizeof in);
    memcpy(&in6, &a->socket, sizeof in6);
    return a->socket.ss_family == AF_INET    ? ntohl(in.sin_addr.s_addr) >> 24 == 127
           : a->socket.ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr) != 0
                                             : true;
}

void crdi_socket_settle(int fd, int family)
{
    const int on = 1;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    if (family != AF_UNIX) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
}

int crdi_socket_open(int family)
{
    const int fd = socket(family, SOCK_STREAM, 0);
    if (fd >= 0) { crdi_socket_settle(fd, family); }
    return fd;
}

static bool later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

bool crdi_inbox_receive(crdi_inbox* in, int fd)
{
    uint8_t* at = NULL;
    const size_t room = crdi_inbox_room(in, &at);
    const ssize_t n = recv(fd, at, room, 0);
    if (n < 0) { return later(); }
    crdi_inbox_add(in, (size_t)n);
    return n > 0; // 0: the other side has closed
}

bool crdi_outbox_send(crdi_outbox* out, int fd)
{
    if (out->head == out->tail) { return true; }
    const ssize_t n = send(fd, out->bytes + out->head, out->tail - out->head, MSG_NOSIGNAL);
    if (n < 0) { return later(); }
    out->head += (size_t)n;
    return true;
}
