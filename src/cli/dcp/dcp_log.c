// cardan dcp log: the PDUs in a capture or on an interface, one line each.
#include "cli/cli.h"
#include "shared/base_interrupt.h"
#include "shared/dcptools_log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <math.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, FRAME = 1 << 17 };

typedef struct log_options {
    crdi_common common;
    const char *interface, *write, *matrix;
    crdi_list ports, descriptions;
    int count; // -1: not given
} log_options;

typedef struct reader {
    crdi_cli* cli;
    crdi_result* out;
    const log_options* o;
    crdi_dcp_log* log;
    crd_dcp_capture* written;
    crd_dcp_can_description* matrix;
    crd_dcp_description* descriptions[MOST];
    int description_count;
    uint16_t ports[MOST];
    double first; // time of the first PDU
    int64_t seen; // PDUs
    char* line;   // one of them
    size_t line_room;
    crd_status status; // of writing
    int64_t lost;      // by the system, on an interface
} reader;

// ---- lines -------------------------------------------------------------------------------------

static bool print_into(reader* r, const crdi_dcp_seen* s)
{
    const int n = crdi_dcp_log_print(r->log, s, r->line, r->line_room);
    if ((size_t)n < r->line_room) { return true; }
    char* more = crdi_grow(r->cli->ctx, r->line, &r->line_room, (size_t)n + 1, 1);
    if (!more) { return false; }
    r->line = more;
    (void)crdi_dcp_log_print(r->log, s, r->line, r->line_room);
    return true;
}

// Names come from files and may hold anything.
static void clean(char* text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7F) { *text = '?'; }
    }
}

// A number, true or false as it is; all else as a text
static void dcp_log_put_value(crdi_result* o, const char* name, const char* text)
{
    const size_t length = strlen(text);
    crd_arena arena;
    crdi_json* j = NULL;
    crd_arena_init(&arena, crdi_result_context(o));
    const bool good = crdi_json_parse(&arena, text, length, (crdi_json_source){"", 0}, &j) >= 0;
    crd_arena_clear(&arena);
    if (good) {
        crdi_put_json(o, name, text, length);
    } else {
        crdi_put(o, TEXT(name, text));
    }
}

static crd_status print_pdu(const reader* r, const crdi_dcp_seen* s)
{
    char from[32], to[32];
    crdi_dcp_log_value v;
    crdi_result *o = r->out, *values = NULL;
    (void)crd_dcp_address_print(&s->from, from, sizeof from);
    (void)crd_dcp_address_print(&s->to, to, sizeof to);
    const char* type = crdi_dcp_type_name(s->pdu->type);
    crdi_put(o, REAL("time", s->time), TEXT("from", from), TEXT("to", to),
             TEXT("type", type ? type : "unknown"), TEXT("text", r->line),
             INT("length", s->length));
    if (s->pdu->type != CRDI_DCP_NTF_STATE_CHANGED && s->pdu->type != CRDI_DCP_NTF_LOG &&
        s->to.transport != CRD_DCP_CAN) {
        crdi_put(o, INT("seq", s->pdu->seq));
    }
    if (s->decoded == CRDI_DCP_BAD_LENGTH) { crdi_put(o, BOOL("bad_length", true)); }
    for (int next = 0; crdi_makes_json(o) && crdi_dcp_log_next(r->log, s, &next, &v);) {
        if (!values) { values = crdi_object(o, "values"); }
        dcp_log_put_value(values, crdi_result_copy(o, v.variable->name), v.text);
    }
    clean(r->line);
    crdi_say(o, "%12.6f  %s -> %s  %s\n", s->time - r->first, from, strstr(to, "://") + 3, r->line);
    return crdi_result_print(o->root);
}

static bool seen(void* user, const crdi_dcp_seen* s)
{
    reader* r = user;
    if (r->seen++ == 0) { r->first = s->time; }
    if (!print_into(r, s)) {
        r->status = CRD_E_MEMORY;
        return false;
    }
    r->status = print_pdu(r, s);
    if (r->written && r->status >= 0) {
        r->status = crd_dcp_capture_add(r->written, s->time, &s->from, &s->to, s->bytes, s->length);
    }
    return r->status >= 0 && (r->o->count <= 0 || r->seen < r->o->count);
}

static crd_status dcp_log_say_summary(const reader* r)
{
    const crdi_dcp_log_counts c = crdi_dcp_log_get_counts(r->log);
    crdi_result* out = r->out;
    crdi_put(out, TEXT("event", "ended"), INT("pdus", c.pdus), INT("frames", c.frames),
             INT("other", c.other), INT("truncated", c.truncated), INT("fragments", c.fragments),
             INT("gaps", c.gaps), INT("lost", r->lost), INT("can", c.can));
    if (!r->o->common.quiet) {
        crdi_say(out, "%" PRId64 " PDU%s, %" PRId64 " other packet%s", c.pdus, crdi_plural(c.pdus),
                 c.other, crdi_plural(c.other));
        if (c.can) {
            crdi_say(out,
                     " (%" PRId64 " of CAN: --matrix FILE says what they are in DCP, 'cardan "
                     "can log' shows them)",
                     c.can);
        }
        if (c.truncated) { crdi_say(out, ", %" PRId64 " cut short by the capture", c.truncated); }
        if (c.fragments) { crdi_say(out, ", %" PRId64 " fragments left out", c.fragments); }
        if (c.gaps) {
            crdi_say(out, ", %" PRId64 " gap%s in streams", c.gaps, crdi_plural(c.gaps));
        }
        if (r->lost) { crdi_say(out, ", %" PRId64 " lost by the system", r->lost); }
        crdi_say(out, "\n");
    }
    crdi_json_lines(out, true);
    return crdi_result_print(out->root);
}

// ---- an interface ------------------------------------------------------------------------------

static crd_status open_interface(reader* r, int* out)
{
    crd_context* ctx = r->cli->ctx;
    const char* name = r->o->interface;
    const unsigned index = if_nametoindex(name);
    if (index == 0) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND,
                         "--interface %s: there is none of this name; 'ip link' lists them",
                         crdi_clip(name).text);
    }
    // Without the heads of links: the system takes them off, whatever they are.
    const int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
    if (fd < 0 && (errno == EPERM || errno == EACCES)) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "--interface %s: reading along needs the capability cap_net_raw: run it "
                         "as root, or once 'sudo setcap cap_net_raw+ep $(command -v cardan)'",
                         name);
    }
    if (fd < 0) { return crdi_fail(ctx, CRD_E_IO, "--interface %s: %s", name, strerror(errno)); }
    const struct sockaddr_ll at = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};
    const int on = 1, room = 8 << 20;
    (void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (bind(fd, (const struct sockaddr*)&at, sizeof at) != 0) {
        const int code = errno;
        close(fd);
        return crdi_fail(ctx, CRD_E_IO, "--interface %s: %s", name, strerror(code));
    }
    *out = fd;
    return CRD_OK;
}

static bool is_loopback(int fd, const char* name)
{
    struct ifreq q = {0};
    snprintf(q.ifr_name, sizeof q.ifr_name, "%s", name);
    return ioctl(fd, SIOCGIFFLAGS, &q) == 0 && q.ifr_flags & IFF_LOOPBACK;
}

// What came, until there is nothing more. On loopback everything is there twice: as it leaves and
// as it comes.
static bool take_frames(reader* r, int fd, bool loopback, uint8_t* frame)
{
    for (;;) {
        struct sockaddr_ll from = {0};
        struct iovec part = {frame, FRAME};
        _Alignas(struct cmsghdr) uint8_t notes[256];
        struct msghdr m = {.msg_name = &from,
                           .msg_namelen = sizeof from,
                           .msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = notes,
                           .msg_controllen = sizeof notes};
        const ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0) { return true; }
        if (ntohs(from.sll_protocol) != ETH_P_IP ||
            (loopback && from.sll_pkttype == PACKET_OUTGOING)) {
            continue;
        }
        struct timespec t = {0};
        clock_gettime(CLOCK_REALTIME, &t);
        for (struct cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
            if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS &&
                c->cmsg_len >= CMSG_LEN(sizeof t)) {
                memcpy(&t, CMSG_DATA(c), sizeof t);
            }
        }
        const double time = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
        const size_t there = (size_t)n < FRAME ? (size_t)n : FRAME;
        if (!crdi_dcp_log_frame(r->log, CRDI_DCP_LINK_IPV4, time, frame, there, (size_t)n)) {
            return false;
        }
    }
}

static crd_status read_interface(reader* r)
{
    int fd = -1;
    sigset_t before;
    crd_status st = open_interface(r, &fd);
    if (st < 0) { return st; }
    uint8_t* frame = crdi_new(r->cli->ctx, FRAME);
    if (!frame) {
        close(fd);
        return CRD_E_MEMORY;
    }
    (void)crdi_interrupt_catch(&(crdi_interrupt_options){0});
    crdi_interrupt_block(&before); // signals come in waiting only
    crdi_put(r->out, TEXT("event", "listening"), TEXT("interface", r->o->interface));
    crdi_say(r->out, "listening on %s\n", r->o->interface);
    st = crdi_result_print(r->out->root);
    const bool loopback = is_loopback(fd, r->o->interface);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (st >= 0 && !crdi_interrupted() && take_frames(r, fd, loopback, frame)) {
        const struct timespec t = {.tv_sec = 1};
        (void)ppoll(&p, 1, &t, &before);
    }
    struct tpacket_stats stats = {0};
    socklen_t size = sizeof stats;
    if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) {
        r->lost = stats.tp_drops;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    crd_free(r->cli->ctx, frame);
    close(fd);
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status dcp_log_read_file(reader* r, const char* path)
{
    const bool standard = strcmp(path, "-") == 0;
    FILE* f = standard ? stdin : fopen(path, "rbe");
    if (!f) {
        return crdi_fail(r->cli->ctx, errno == ENOENT ? CRD_E_NOT_FOUND : CRD_E_IO, "%s: %s", path,
                         strerror(errno));
    }
    const crd_status st = crdi_dcp_log_read(r->log, f, standard ? "standard input" : path);
    if (!standard) { fclose(f); }
    return st;
}

static crd_status dcp_log_read_ports(reader* r, crdi_dcp_log_options* opt)
{
    const crdi_list* list = &r->o->ports;
    if (list->count > MOST) {
        return crdi_fail(r->cli->ctx, CRD_E_RANGE, "%d times --port, expected %d at most",
                         list->count, MOST);
    }
    for (int i = 0; i < list->count; i++) {
        uint64_t port = 0;
        if (!crdi_parse_uint64(list->items[i], strlen(list->items[i]), &port) || port < 1 ||
            port > 65535) {
            return crdi_fail(r->cli->ctx, CRD_E_RANGE, "--port '%s', expected 1 to 65535",
                             crdi_clip(list->items[i]).text);
        }
        r->ports[i] = (uint16_t)port;
    }
    opt->ports = r->ports;
    opt->port_count = list->count;
    return CRD_OK;
}

// One with faults is good enough to read along.
static crd_status read_descriptions(reader* r, crdi_dcp_log_options* opt)
{
    const crdi_list* list = &r->o->descriptions;
    if (list->count > MOST) {
        return crdi_fail(r->cli->ctx, CRD_E_RANGE, "%d times --description, expected %d at most",
                         list->count, MOST);
    }
    for (int i = 0; i < list->count; i++) {
        const crd_status st = crd_dcp_load(r->cli->ctx, list->items[i],
                                           &r->descriptions[r->description_count], NULL, NULL);
        if (st < 0) { return st; }
        r->description_count++;
    }
    opt->descriptions = (const crd_dcp_description* const*)r->descriptions;
    opt->description_count = r->description_count;
    return CRD_OK;
}

static crd_status run_log(crdi_cli* cli, const void* options, const crdi_list* arguments,
                          crdi_result* out)
{
    const log_options* o = options;
    reader r = {.cli = cli, .out = out, .o = o};
    crd_status st = CRD_OK;
    crdi_dcp_log_options opt = {.seen = seen, .user = &r};
    crdi_json_lines(out, o->interface != NULL);
    if ((arguments->count == 1) == (o->interface != NULL)) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "expected either a capture, cardan dcp log FILE, or --interface lo");
    }
    if (o->write && arguments->count && crdi_same_file(o->write, arguments->items[0])) {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "--write %s is what is read, expected another file",
                         o->write);
    }
    CRD_TRY(dcp_log_read_ports(&r, &opt));
    CRD_TRY(read_descriptions(&r, &opt));
    if (o->matrix) { CRD_TRY(crdi_dcp_can_load_good(cli->ctx, o->matrix, &r.matrix)); }
    opt.matrix = r.matrix;
    CRD_TRY(crdi_dcp_log_create(cli->ctx, &opt, &r.log));
    if (o->write) { CRD_TRY(crd_dcp_capture_open(cli->ctx, o->write, &r.written)); }
    st = o->interface ? read_interface(&r) : dcp_log_read_file(&r, arguments->items[0]);
    if (st >= 0) { st = r.status; }
    CRD_TRY(st);
    CRD_TRY(dcp_log_say_summary(&r));
fail:
    crdi_dcp_log_destroy(r.log);
    crd_dcp_can_description_destroy(r.matrix);
    for (int i = 0; i < r.description_count; i++) {
        crd_dcp_description_destroy(r.descriptions[i]);
    }
    crd_free(cli->ctx, r.line);
    {
        const crd_status closed = crd_dcp_capture_close(r.written);
        return st < 0 ? st : closed;
    }
}

static const crdi_option rows[] = {
    OPT_TEXT(log_options, interface, "interface", "NAME",
             "read along on this interface, such as lo or eth0, until SIGINT or SIGTERM; needs "
             "the capability cap_net_raw",
             .short_name = 'i'),
    OPT_LIST(log_options, ports, "port", "PORT",
             "only packets from or to this port, and all of them are taken for DCP; without, DCP "
             "is found by what is in the packets"),
    OPT_LIST(log_options, descriptions, "description", "FILE",
             "of a slave: data are shown with names and values of variables once the requests "
             "that configure them were seen",
             .extensions = "dcpx|dcp"),
    OPT_FILE(log_options, matrix, "matrix", "xml",
             "of DCP over CAN (cardan dcp matrix): what the frames of CAN in a capture are; "
             "can://0 is the master then, can://3 the slave of dcp id 3"),
    OPT_FILE(log_options, write, "write", "pcapng",
             "write the PDUs to this capture as well, for Wireshark", .short_name = 'w'),
    OPT_INT(log_options, count, "count", "N", "end after so many PDUs", .short_name = 'n'),
    CRDI_JSON_OPTION("one line of JSON for each PDU: {time, from, to, type, seq, text, values}, "
                     "and one with counters at the end"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_dcp_log = {
    .name = "dcp log",
    .arguments = "[FILE]",
    .summary = "show the PDUs in a capture or on an interface",
    .description =
        "Decodes DCP in a capture (pcapng, or pcap as tcpdump writes it; - is standard input) or "
        "on an interface, over UDP and TCP, and in captures over CAN: one line for each PDU with "
        "the time since the first, "
        "who sent it to whom, and what it says. Packets that are not DCP are left out and "
        "counted.",
    .examples = {{"cardan dcp log session.pcapng --description motor.dcpx",
                  "a session, with names and values"},
                 {"sudo cardan dcp log --interface lo --write lo.pcapng",
                  "what passes now, and into a file"},
                 {"tcpdump -i eth0 -w - udp | cardan dcp log - --json", "through a pipe, as JSON"}},
    OPTIONS(rows, log_options),
    .max_arguments = 1,
    .extensions = "pcapng|pcap",
    .run = run_log,
};
