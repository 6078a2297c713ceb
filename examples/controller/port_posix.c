// The five functions on Linux, to try the program before there is a board: a socket at
// udp://127.0.0.1:$DRIVE_PORT, 8080 unless it says so. With DRIVE_ONCE it ends with its session.
#define _POSIX_C_SOURCE 200809L
#include "port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int udp = -1;
static crd_dcp_address own = {0x7f000001, 8080, CRD_DCP_UDP};

static double seconds(void* user)
{
    (void)user;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool open_udp(void)
{
    if (udp >= 0) { return true; }
    const char* port = getenv("DRIVE_PORT");
    if (port) { own.port = (uint16_t)strtoul(port, NULL, 10); }
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(own.port), .sin_addr.s_addr = htonl(own.ip)};
    udp = socket(AF_INET, SOCK_DGRAM, 0);
    if (udp < 0 || bind(udp, (const struct sockaddr*)&at, sizeof at) < 0) {
        perror("udp://127.0.0.1");
        exit(1);
    }
    printf("listening at udp://127.0.0.1:%u\n", own.port);
    fflush(stdout);
    return fcntl(udp, F_SETFL, O_NONBLOCK) == 0;
}

static bool send_datagram(void* user, const crd_dcp_address* to, const uint8_t* bytes,
                          size_t length)
{
    (void)user;
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(to->port), .sin_addr.s_addr = htonl(to->ip)};
    return open_udp() &&
           sendto(udp, bytes, length, 0, (const struct sockaddr*)&at, sizeof at) == (ssize_t)length;
}

static size_t receive_datagram(void* user, crd_dcp_address* from, crd_dcp_address* at,
                               uint8_t* bytes, size_t room)
{
    (void)user;
    struct sockaddr_in sender;
    socklen_t n = sizeof sender;
    if (!open_udp()) { return 0; }
    const ssize_t length = recvfrom(udp, bytes, room, MSG_TRUNC, (struct sockaddr*)&sender, &n);
    if (length <= 0) { return 0; }
    *from = (crd_dcp_address){ntohl(sender.sin_addr.s_addr), ntohs(sender.sin_port), CRD_DCP_UDP};
    *at = own;
    return (size_t)length;
}

static void write_line(void* user, crd_level level, const char* text)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", text);
}

const crd_core_port board_port = {.time = seconds,
                                  .send = send_datagram,
                                  .receive = receive_datagram,
                                  .log = write_line}; // no interrupts: no critical section

void board_say(const char* text)
{
    puts(text);
}

bool board_goes_on(const crd_core* core, const crd_dcp_slave* slave)
{
    static bool met;
    const crd_dcp_state state = crd_dcp_slave_state(slave);
    met |= state != CRD_DCP_ALIVE;
    if (met && state == CRD_DCP_ALIVE && getenv("DRIVE_ONCE")) {
        const crd_core_state s = crd_core_get_state(core);
        printf("%zu bytes of memory, %lld refused\n", s.most, (long long)s.refused);
        return false;
    }
    poll(&(struct pollfd){.fd = udp, .events = POLLIN}, udp >= 0, 1);
    return true;
}
