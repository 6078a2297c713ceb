// modules: dcp base
// A stream of DCP as a stranger may send it, in pieces, over the loopback interface: what comes out
// is what a plain reader finds in the bytes.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "shared/dcp.h"

enum { MOST_PDU = 64, MOST_PIECES = 32 };

static crd_dcp_net* net;
static crd_dcp_address at = {.ip = 0x7F000001, .transport = CRD_DCP_TCP};

static void open_net(void)
{
    crd_dcp_net_limits limits = crd_dcp_net_default_limits();
    limits.max_pdu = MOST_PDU;
    static crd_context* ctx;
    ctx = crd_context_create(NULL);
    if (!ctx || crd_dcp_net_create(ctx, &net) < 0 || crd_dcp_net_set_limits(net, &limits) < 0 ||
        crd_dcp_net_listen(net, &at) < 0) {
        __builtin_trap();
    }
}

static int connect_raw(void)
{
    const struct sockaddr_in s = {
        .sin_family = AF_INET, .sin_port = htons(at.port), .sin_addr.s_addr = htonl(at.ip)};
    const struct linger reset = {.l_onoff = 1}; // so that ports do not run out
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) { __builtin_trap(); }
    while (connect(fd, (const struct sockaddr*)&s, sizeof s) != 0 && errno != EISCONN) {
        // All ports were in use a moment ago; or the fuzzer's alarm came between, and it goes on.
        const bool again = errno == EADDRNOTAVAIL || errno == EINTR || errno == EALREADY;
        if (!again) { __builtin_trap(); }
        (void)poll(NULL, 0, 10);
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    return fd;
}

// Takes what has come and holds it against the bytes.
static void take(const uint8_t* data, size_t size, size_t* done)
{
    crd_dcp_packet p;
    while (crd_dcp_net_receive(net, &p)) {
        uint8_t prefix[4] = {(uint8_t)p.length, 0, 0, 0};
        if (p.length > MOST_PDU || size - *done < 4 + p.length ||
            memcmp(data + *done, prefix, 4) != 0 ||
            memcmp(data + *done + 4, p.bytes, p.length) != 0) {
            __builtin_trap();
        }
        *done += 4 + p.length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    if (!net) { open_net(); }
    if (size < 2 || size > 4096) { return 0; }
    size_t piece = 1 + data[0]; // then the stream
    data++;
    size--;
    if (piece < size / MOST_PIECES) {
        piece = size / MOST_PIECES;
    } // each costs calls of the system
    const int64_t lost = crd_dcp_net_get_counts(net).lost;
    const int fd = connect_raw();
    size_t done = 0;
    for (size_t i = 0; i < size; i += piece) {
        (void)send(fd, data + i, piece < size - i ? piece : size - i, MSG_NOSIGNAL);
        take(data, size, &done);
    }
    (void)shutdown(fd, SHUT_WR);
    while (crd_dcp_net_get_counts(net).lost == lost) {
        crd_dcp_net_wait(net, 0.01);
        take(data, size, &done);
    }
    close(fd);
    // Nothing complete is left unless an absurd length stands before it.
    if (size - done >= 4) {
        const uint8_t* p = data + done;
        const uint32_t next =
            p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        if (next <= MOST_PDU && size - done - 4 >= next) { __builtin_trap(); }
    }
    return 0;
}
