// Addresses as text: "udp://127.0.0.1:8080".
#include "dcp/net/net.h"
#include "shared/base.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { MOST_HOST = 253 }; // characters of a name in DNS

int crd_dcp_address_print(const crd_dcp_address* a, char* out, size_t room)
{
    static const char* const schemes[] = {"udp", "bluetooth", "can", "usb", "tcp"};
    const char* scheme = a->transport <= CRD_DCP_TCP ? schemes[a->transport] : "?";
    if (a->transport == CRD_DCP_CAN) { // the port is a dcp id
        return snprintf(out, room, "%s://%u", scheme, a->port);
    }
    return snprintf(out, room, "%s://%u.%u.%u.%u:%u", scheme, a->ip >> 24, a->ip >> 16 & 255,
                    a->ip >> 8 & 255, a->ip & 255, a->port);
}

crdi_dcp_address_text crdi_dcp_address_text_of(const crd_dcp_address* a)
{
    crdi_dcp_address_text t;
    (void)crd_dcp_address_print(a, t.text, sizeof t.text);
    return t;
}

// Digits and dots alone must be four numbers: "10.1" is a slip, not the host 10.0.0.1.
static bool looks_numeric(const char* host)
{
    return host[strspn(host, "0123456789.")] == '\0';
}

static crd_status resolve(crd_context* ctx, const char* text, const char* host, uint32_t* ip)
{
    struct in_addr number;
    if (inet_pton(AF_INET, host, &number) == 1) {
        *ip = ntohl(number.s_addr);
        return CRD_OK;
    }
    if (looks_numeric(host)) {
        return crdi_fail(ctx, CRD_E_FORMAT,
                         "address \"%s\": %s is not an IPv4 address, expected four numbers from 0 "
                         "to 255 as in 192.168.2.6",
                         crdi_clip(text).text, crdi_clip(host).text);
    }
    if (strcasecmp(host, "localhost") == 0) { // whatever the machine's tables say
        *ip = INADDR_LOOPBACK;
        return CRD_OK;
    }
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
    struct addrinfo* found = NULL;
    const int rc = getaddrinfo(host, NULL, &hints, &found);
    if (rc == EAI_MEMORY) { return crdi_fail(ctx, CRD_E_MEMORY, "out of memory"); }
    if (rc != 0) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND,
                         "address \"%s\": the host %s has no IPv4 address: %s",
                         crdi_clip(text).text, crdi_clip(host).text,
                         rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    }
    struct sockaddr_in a;
    memcpy(&a, found->ai_addr, sizeof a);
    freeaddrinfo(found);
    *ip = ntohl(a.sin_addr.s_addr);
    return CRD_OK;
}

static crd_status fail_address(crd_context* ctx, const char* text, const char* what)
{
    return crdi_fail(ctx, CRD_E_FORMAT,
                     "address \"%s\": %s, expected udp://host:port or tcp://host:port",
                     crdi_clip(text).text, what);
}

crd_status crd_dcp_address_parse(crd_context* ctx, const char* text, crd_dcp_address* out)
{
    crd_dcp_address a = {.ip = CRDI_DCP_LOOPBACK};
    if (strncmp(text, "udp://", 6) == 0) {
        a.transport = CRD_DCP_UDP;
    } else if (strncmp(text, "tcp://", 6) == 0) {
        a.transport = CRD_DCP_TCP;
    } else {
        return fail_address(ctx, text, strstr(text, "://") ? "unknown transport" : "no transport");
    }
    const char* start = text + 6;
    if (*start == '[') { return fail_address(ctx, text, "IPv6 is not part of DCP 1.0"); }
    const char* colon = strrchr(start, ':');
    if (!colon) { return fail_address(ctx, text, "no port"); }
    uint64_t port = 0;
    if (!isdigit((unsigned char)colon[1]) ||
        !crdi_parse_uint64(colon + 1, strlen(colon + 1), &port) || port > 65535) {
        return fail_address(ctx, text, "the port is not a number from 0 to 65535");
    }
    a.port = (uint16_t)port;
    const size_t length = (size_t)(colon - start);
    if (memchr(start, ':', length)) {
        return fail_address(ctx, text, "more than one colon behind the //");
    }
    char host[MOST_HOST + 1];
    if (length > MOST_HOST) {
        return fail_address(ctx, text, "the host has more than 253 characters");
    }
    memcpy(host, start, length);
    host[length] = '\0';
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)host[i]) && !strchr(".-_", host[i])) {
            return fail_address(ctx, text, "a character that a host name cannot have");
        }
    }
    if (length > 0) {
        const crd_status st = resolve(ctx, text, host, &a.ip);
        if (st < 0) { return st; }
    }
    *out = a;
    return CRD_OK;
}
