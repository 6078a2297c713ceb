// Who may talk to the server: addresses, tokens, hosts and origins.
#include "web/web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

// ---- address -----------------------------------------------------------------------------------

static bool parse_port(const char* text, int* out)
{
    int64_t port = 0;
    if (!crdi_parse_int64(text, strlen(text), &port) || port < 0 || port > 65535) { return false; }
    *out = (int)port;
    return true;
}

// "host", "host:port", "[v6]:port", "[v6]", "v6", ":port", "port"
static bool access_split(const char* text, char* host, size_t room, const char** port)
{
    *port = NULL;
    const char* begin = text;
    const char* stop = text + strlen(text);
    const char* colon = strrchr(text, ':');
    if (*text == '[') {
        begin = text + 1;
        stop = strchr(text, ']');
        if (!stop || (stop[1] && stop[1] != ':')) { return false; }
        if (stop[1]) { *port = stop + 2; }
    } else if (colon && strchr(text, ':') == colon) {
        stop = colon;
        *port = colon + 1;
    } else if (!colon && *text && text[strspn(text, "0123456789")] == 0) {
        stop = text;
        *port = text;
    }
    if ((size_t)(stop - begin) >= room) { return false; }
    memcpy(host, begin, (size_t)(stop - begin));
    host[stop - begin] = 0;
    return true;
}

static bool classify(crdi_web_address* a)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, a->host, &v4) == 1) {
        a->loopback = ntohl(v4.s_addr) >> 24 == 127;
        a->any = v4.s_addr == htonl(INADDR_ANY);
        return true;
    }
    if (inet_pton(AF_INET6, a->host, &v6) == 1) {
        a->v6 = true;
        a->loopback = IN6_IS_ADDR_LOOPBACK(&v6);
        a->any = IN6_IS_ADDR_UNSPECIFIED(&v6);
        // as everybody else writes it
        return inet_ntop(AF_INET6, &v6, a->host, sizeof a->host) != NULL;
    }
    return false;
}

crd_status crdi_web_address_parse(crd_context* ctx, const char* text, crdi_web_address* out)
{
    *out = (crdi_web_address){.port = CRDI_WEB_PORT};
    const char* port = NULL;
    if (!access_split(text ? text : "", out->host, sizeof out->host, &port) ||
        (port && !parse_port(port, &out->port))) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "page at '%s': expected ADDRESS:PORT with a port from 0 to 65535, as in "
                         "127.0.0.1:8421 or [::1]:8421",
                         crdi_clip(text).text);
    }
    out->given = port && out->port != 0;
    if (out->port == 0) { out->port = CRDI_WEB_PORT; }
    if (!out->host[0] || strcasecmp(out->host, "localhost") == 0) {
        snprintf(out->host, sizeof out->host, "127.0.0.1");
    }
    if (!classify(out)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "page at '%s': '%s' is no numeric address, expected as in 127.0.0.1:8421 "
                         "or [::1]:8421",
                         crdi_clip(text).text, out->host);
    }
    return CRD_OK;
}

// ---- token -------------------------------------------------------------------------------------

crd_status crdi_web_token_check(crd_context* ctx, const char* token, bool loopback)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    const size_t length = strlen(token), least = loopback ? 8 : 16;
    if (length < least || length > CRDI_WEB_TOKEN_BYTES) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "the page's token has %zu characters, expected %zu to %d%s", length, least,
                         CRDI_WEB_TOKEN_BYTES, loopback ? "" : " at an address that others reach");
    }
    const size_t good = strspn(token, letters);
    if (good != length) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "the page's token has byte 0x%02x at place %zu, expected "
                         "letters, digits, - . _ ~ only",
                         (unsigned char)token[good], good + 1);
    }
    return CRD_OK;
}

crd_status crdi_web_token_make(crd_context* ctx, char out[33])
{
    unsigned char bits[16];
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits) {
        return crdi_fail(ctx, CRD_E_IO, "the system has no random numbers for the page's token: %s",
                         strerror(errno));
    }
    for (size_t i = 0; i < sizeof bits; i++) {
        snprintf(out + 2 * i, 3, "%02x", bits[i]);
    }
    return CRD_OK;
}

// Every byte of the secret is looked at whatever was sent, so that time tells nothing.
bool crdi_web_token_equal(const char* a, const char* b)
{
    const size_t length = strlen(a), other = strlen(b);
    unsigned different = length != other;
    for (size_t i = 0; i < length; i++) {
        different |= (unsigned)((unsigned char)a[i] ^ (unsigned char)b[i < other ? i : 0]);
    }
    return different == 0;
}

// ---- host and origin ---------------------------------------------------------------------------

static bool is_numeric(const char* host)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

bool crdi_web_host_allowed(const crdi_web_access* g, const char* host)
{
    char name[256];
    const char* port_text = NULL;
    int port = g->tls ? 443 : 80;
    if (!host || !*host || !access_split(host, name, sizeof name, &port_text)) { return false; }
    if (port_text && !parse_port(port_text, &port)) { return false; }
    if (port != g->bound.port) { return false; }
    if (strcasecmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0 ||
        strcmp(name, "::1") == 0 || strcasecmp(name, g->bound.host) == 0) {
        return true;
    }
    if (g->bound.loopback) { return false; }
    // Others reach us under names that we do not know. With TLS the certificate says which are
    // ours; without, a number cannot be pointed at us by somebody else's DNS.
    return g->tls || (g->bound.any && is_numeric(name)) ||
           (g->machine[0] && strcasecmp(name, g->machine) == 0);
}

bool crdi_web_origin_allowed(const crdi_web_access* g, const char* host, const char* origin)
{
    if (!origin) { return true; }
    const char* scheme = g->tls ? "https://" : "http://";
    const size_t length = strlen(scheme);
    return host && strncasecmp(origin, scheme, length) == 0 &&
           strcasecmp(origin + length, host) == 0;
}
