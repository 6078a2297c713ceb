// The five functions on Arm's MPS2 boards as qemu has them: SysTick, and the LAN9118 with as much
// of ARP, IPv4 and UDP as a slave needs. qemu's user network has the board at 10.0.2.15 and its
// host at 10.0.2.2, which is the host's loopback: what is known as 127.0.0.1 outside.
#include "board.h"
#include "port.h"

#include <string.h>

#ifdef __ARM_ARCH_7EM__
#ifndef LAN9118
#define LAN9118 0x40200000u
#endif
#endif

enum { LOOPBACK = 0x7f000001, BOARD = 0x0a00020f, HOST = 0x0a000202, FRAME = 1536, ETHERNET = 14 };
enum { RX_DATA = 0x00, TX_DATA = 0x20, RX_STATUS = 0x40, TX_CFG = 0x70, HW_CFG = 0x74 };
enum { RX_INFO = 0x7c, MAC_COMMAND = 0xa4, MAC_DATA = 0xa8, MAC_CONTROL = 1, MAC_HIGH = 2 };

static uint8_t own_mac[6], host_mac[6];
static uint8_t frame[FRAME] __attribute__((aligned(4)));
static const crd_dcp_address own = {LOOPBACK, DRIVE_PORT, CRD_DCP_UDP};

// ---- the chip ----------------------------------------------------------------------------------

static volatile uint32_t* lan(uint32_t offset)
{
    return (volatile uint32_t*)(LAN9118 + offset);
}

static uint32_t read_mac(uint32_t index)
{
    *lan(MAC_COMMAND) = 0xc0000000u | index; // busy, read
    while (*lan(MAC_COMMAND) >> 31) {}
    return *lan(MAC_DATA);
}

static void start_lan(void)
{
    static bool started;
    if (started) { return; }
    started = true;
    *lan(HW_CFG) = 0x00050000u;
    *lan(TX_CFG) = 2;             // on
    *lan(MAC_DATA) = 0x0000000cu; // transmitter and receiver
    *lan(MAC_COMMAND) = 0x80000000u | MAC_CONTROL;
    const uint32_t high = read_mac(MAC_HIGH), low = read_mac(MAC_HIGH + 1);
    for (int i = 0; i < 6; i++) {
        own_mac[i] = (uint8_t)(i < 4 ? low >> 8 * i : high >> 8 * (i - 4));
    }
}

static void send_frame(size_t length)
{
    const uint32_t n = (uint32_t)(length < 60 ? 60 : length);
    *lan(TX_DATA) = 0x3000u | n; // one segment
    *lan(TX_DATA) = n;
    for (uint32_t i = 0; i < n; i += 4) {
        uint32_t word;
        memcpy(&word, frame + i, 4);
        *lan(TX_DATA) = word;
    }
}

static size_t take_frame(void)
{
    if ((*lan(RX_INFO) >> 16 & 0xff) == 0) { return 0; }
    const uint32_t length = *lan(RX_STATUS) >> 16 & 0x3fff;
    for (uint32_t i = 0; i < length; i += 4) {
        const uint32_t word = *lan(RX_DATA);
        if (i + 4 <= FRAME) { memcpy(frame + i, &word, 4); }
    }
    return length > 4 && length <= FRAME ? length - 4 : 0; // without its checksum
}

// ---- ARP, IPv4, UDP ----------------------------------------------------------------------------

static uint32_t big(const uint8_t* p, int n)
{
    uint32_t x = 0;
    for (int i = 0; i < n; i++) {
        x = x << 8 | p[i];
    }
    return x;
}

static void put_big(uint8_t* p, int n, uint32_t x)
{
    for (int i = n - 1; i >= 0; i--, x >>= 8) {
        p[i] = (uint8_t)x;
    }
}

static void put_ethernet(const uint8_t to[6], uint32_t type)
{
    memmove(frame, to, 6);
    memcpy(frame + 6, own_mac, 6);
    put_big(frame + 12, 2, type);
}

// Who has the board's address? We do.
static void answer_arp(size_t length)
{
    uint8_t* p = frame + ETHERNET;
    if (length < ETHERNET + 28 || big(p + 6, 2) != 1 || big(p + 24, 4) != BOARD) { return; }
    memcpy(host_mac, p + 8, 6);
    memmove(p + 18, p + 8, 10); // the one who asks is the target
    put_big(p + 6, 2, 2);
    memcpy(p + 8, own_mac, 6);
    put_big(p + 14, 4, BOARD);
    put_ethernet(host_mac, 0x0806);
    send_frame(ETHERNET + 28);
}

static size_t take_udp(size_t length, crd_dcp_address* from, uint8_t* bytes, size_t room)
{
    const uint8_t* ip = frame + ETHERNET;
    const size_t head = 4u * (ip[0] & 15);
    if (length < ETHERNET + head + 8 || ip[0] >> 4 != 4 || head < 20 || ip[9] != 17 ||
        big(ip + 16, 4) != BOARD || (big(ip + 6, 2) & 0x3fff) != 0) { // no fragments
        return 0;
    }
    const uint8_t* udp = ip + head;
    const size_t n = big(udp + 4, 2);
    if (big(udp + 2, 2) != DRIVE_PORT || n <= 8 || ETHERNET + head + n > length) { return 0; }
    memcpy(host_mac, frame + 6, 6);
    const uint32_t sender = big(ip + 12, 4);
    *from =
        (crd_dcp_address){sender == HOST ? LOOPBACK : sender, (uint16_t)big(udp, 2), CRD_DCP_UDP};
    if (n - 8 <= room) { memcpy(bytes, udp + 8, n - 8); }
    return n - 8;
}

static void put_checksum(uint8_t* head)
{
    uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2) {
        sum += big(head + i, 2);
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    put_big(head + 10, 2, ~sum);
}

static bool send_datagram(void* user, const crd_dcp_address* to, const uint8_t* bytes,
                          size_t length)
{
    (void)user;
    uint8_t *ip = frame + ETHERNET, *udp = ip + 20;
    if (length + ETHERNET + 28 > FRAME) { return false; }
    put_ethernet(host_mac, 0x0800);
    memset(ip, 0, 28);
    ip[0] = 0x45;
    put_big(ip + 2, 2, (uint32_t)length + 28);
    ip[8] = 64;
    ip[9] = 17;
    put_big(ip + 12, 4, BOARD);
    put_big(ip + 16, 4, to->ip == LOOPBACK ? HOST : to->ip);
    put_checksum(ip);
    put_big(udp, 2, DRIVE_PORT);
    put_big(udp + 2, 2, to->port);
    put_big(udp + 4, 2, (uint32_t)length + 8);
    memcpy(udp + 8, bytes, length);
    send_frame(ETHERNET + 28 + length);
    return true;
}

static size_t receive_datagram(void* user, crd_dcp_address* from, crd_dcp_address* at,
                               uint8_t* bytes, size_t room)
{
    (void)user;
    start_lan();
    *at = own;
    for (size_t length = take_frame(); length > 0; length = take_frame()) {
        const uint32_t type = length >= ETHERNET ? big(frame + 12, 2) : 0;
        if (type == 0x0806) { answer_arp(length); }
        const size_t n = type == 0x0800 ? take_udp(length, from, bytes, room) : 0;
        if (n > 0) { return n; }
    }
    return 0;
}

// ---- time, interrupts, text --------------------------------------------------------------------

static double seconds(void* user)
{
    static uint32_t before;
    static uint64_t ticks;
    (void)user;
    const uint32_t now = board_ticks(); // falls
    ticks += (before - now) & 0xffffff;
    before = now;
    return (double)ticks * (BOARD_TICK * 1e-9);
}

static void mask_interrupts(void* user, bool enter)
{
    (void)user;
    if (enter) {
        __asm__ volatile("cpsid i" ::: "memory");
    } else {
        __asm__ volatile("cpsie i" ::: "memory");
    }
}

static void write_line(void* user, crd_level level, const char* text)
{
    (void)user;
    (void)level;
    board_say(text);
}

const crd_core_port board_port = {.time = seconds,
                                  .send = send_datagram,
                                  .receive = receive_datagram,
                                  .critical = mask_interrupts,
                                  .log = write_line};

void board_say(const char* text)
{
    board_write(text);
    board_write("\n");
}

// Ends with the session, and says what it took.
bool board_goes_on(const crd_core* core, const crd_dcp_slave* slave)
{
    static bool met;
    static uint32_t before, most;
    const uint32_t now = board_ticks(), ticks = (before - now) & 0xffffff;
    before = board_ticks();
    const crd_dcp_state state = crd_dcp_slave_state(slave);
    if (state == CRD_DCP_COMPUTED && ticks > most) { most = ticks; }
    if (!met) {
        if (state == CRD_DCP_ALIVE) { return true; }
        met = true;
    }
    if (state != CRD_DCP_ALIVE) { return true; }
    const crd_core_state s = crd_core_get_state(core);
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(slave);
    board_number((double)s.most);
    board_number((double)s.refused);
    board_number((double)board_stack());
    board_number((double)most * BOARD_TICK);
    board_number((double)c.steps);
    board_write("\n");
    return false;
}
