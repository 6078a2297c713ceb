// cardan dcp slave: an FMU or system as a slave on a network.
#include "cli/dcp/dcp_serve.h"
#include "shared/base_interrupt.h"
#include "shared/dcp.h"
#include "shared/system.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST = 8 };              // addresses, networks
static const double TURN = 0.2; // s: a signal that comes just before waiting is seen after this

typedef struct slave_options {
    crdi_served served;
    const char *description, *written, *capture, *bench, *matrix;
    crdi_list listen, allow, key;
    bool once, any_port, check_range, plain;
    int priority;
} slave_options;

typedef struct session {
    crdi_cli* cli;
    crdi_result* out;
    const slave_options* o;
    crd_system* sys;
    crd_dcp_description* given;
    crdi_serve* serve;
    crdi_bench_file bench;
    crd_dcp_net* net;
    crd_dcp_capture* capture;
    const char* bus; // of CAN, "can://can0"; NULL
    crd_dcp_can_description* matrix;
    crd_dcp_address addresses[MOST];
    int address_count;
    uint32_t allowed_ip[MOST + 1], allowed_mask[MOST + 1];
    crd_dcp_state state;
    int64_t sessions; // that have ended
} session;

// ---- bringing it up ----------------------------------------------------------------------------

// "192.168.2.0/24", "10.0.0.7"
static crd_status dcp_slave_read_network(crd_context* ctx, const char* text, uint32_t* ip,
                                         uint32_t* mask)
{
    const char* slash = strchr(text, '/');
    char host[32] = "";
    struct in_addr a = {0};
    uint64_t bits = 32;
    snprintf(host, sizeof host, "%.*s", slash ? (int)(slash - text) : (int)strlen(text), text);
    if (inet_pton(AF_INET, host, &a) != 1 ||
        (slash && (!crdi_parse_uint64(slash + 1, strlen(slash + 1), &bits) || bits > 32))) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--allow '%s', expected a network such as 192.168.2.0/24", text);
    }
    *mask = bits == 0 ? 0 : UINT32_MAX << (32 - bits);
    *ip = ntohl(a.s_addr) & *mask;
    return CRD_OK;
}

static crd_status read_allowed(session* x, crd_dcp_slave_options* opt)
{
    const crdi_list* list = &x->o->allow;
    if (list->count > MOST) {
        return crdi_fail(x->cli->ctx, CRD_E_RANGE, "%d times --allow, expected %d at most",
                         list->count, MOST);
    }
    for (int i = 0; i < list->count; i++) {
        const crd_status st = dcp_slave_read_network(x->cli->ctx, list->items[i], &x->allowed_ip[i],
                                                     &x->allowed_mask[i]);
        if (st < 0) { return st; }
    }
    if (list->count == 0) { return CRD_OK; }
    x->allowed_ip[list->count] = 0x7F000000;
    x->allowed_mask[list->count] = 0xFF000000;
    opt->allowed_ip = x->allowed_ip;
    opt->allowed_mask = x->allowed_mask;
    opt->allowed_count = list->count + 1;
    return CRD_OK;
}

static crd_status add_endpoint(session* x, const char* scheme, const crd_dcp_endpoint* e)
{
    if (!e->offered || !e->port) { return CRD_OK; }
    char* text = crdi_format(x->cli->ctx, "%s://%s:%u", scheme, e->host, e->port);
    if (!text) { return CRD_E_MEMORY; }
    const crd_status st =
        crd_dcp_address_parse(x->cli->ctx, text, &x->addresses[x->address_count++]);
    crd_free(x->cli->ctx, text);
    return st;
}

// From --listen, else from the description that was given, else the usual one.
static crd_status find_addresses(session* x)
{
    crd_status st = CRD_OK;
    const crdi_list* list = &x->o->listen;
    if (list->count > MOST) {
        return crdi_fail(x->cli->ctx, CRD_E_RANGE, "%d times --listen, expected %d at most",
                         list->count, MOST);
    }
    x->bus = list->count == 1 && crdi_dcp_is_bus(list->items[0]) ? list->items[0] : NULL;
    if ((x->bus != NULL) != (x->o->matrix != NULL) || (x->bus && x->o->key.count)) {
        return crdi_fail(x->cli->ctx, CRD_E_RANGE,
                         "--listen can://BUS and --matrix FILE belong together, with no other "
                         "--listen and no --key; 'cardan dcp matrix' writes the file");
    }
    if (x->bus) { // it has no addresses: the slave is told of one that stands for it
        x->addresses[x->address_count++] = crdi_dcp_bus_address;
        return crdi_dcp_can_load_good(x->cli->ctx, x->o->matrix, &x->matrix);
    }
    for (int i = 0; i < list->count; i++) {
        CRD_TRY(
            crd_dcp_address_parse(x->cli->ctx, list->items[i], &x->addresses[x->address_count++]));
    }
    if (x->address_count == 0 && x->given) {
        CRD_TRY(add_endpoint(x, "udp", &x->given->udp));
        CRD_TRY(add_endpoint(x, "tcp", &x->given->tcp));
    }
    if (x->address_count == 0) {
        x->addresses[x->address_count++] = (crd_dcp_address){0x7F000001, 8080, CRD_DCP_UDP};
    }
fail:
    return st;
}

static crd_status load_given(session* x)
{
    const crd_dcp_finding* f = NULL;
    int count = 0;
    const char* path = x->o->description;
    if (!path) { return CRD_OK; }
    const crd_status st = crd_dcp_load(x->cli->ctx, path, &x->given, &f, &count);
    if (st < 0) { return st; }
    for (int i = 0; i < count; i++) {
        if (f[i].severity == CRD_DCP_FAULT) {
            return crdi_fail(x->cli->ctx, CRD_E_FORMAT, "%s:%d: %s (%s)", path, f[i].line,
                             f[i].text, f[i].code);
        }
    }
    return CRD_OK;
}

static crd_status open_network(session* x)
{
    crd_status st = CRD_OK;
    crd_context* ctx = x->cli->ctx;
    CRD_TRY(find_addresses(x));
    if (x->o->capture) { CRD_TRY(crd_dcp_capture_open(ctx, x->o->capture, &x->capture)); }
    if (x->bus) { return CRD_OK; } // opened when it is known who the slave is
    CRD_TRY(crd_dcp_net_create(ctx, &x->net));
    if (x->o->key.count > 0) {
        CRD_TRY(crdi_dcp_net_secure_files(ctx, x->o->key.items, x->o->key.count, CRD_DCP_BENCH_ROLE,
                                          NULL, &x->net));
    }
    crd_dcp_net_capture(x->net, x->capture);
    for (int i = 0; i < x->address_count; i++) {
        CRD_TRY(crdi_dcp_check_plain(ctx, &x->addresses[i], x->o->key.count > 0, x->o->plain,
                                     CRDI_KEY_OR_PLAIN));
        CRD_TRY(crd_dcp_net_listen(x->net, &x->addresses[i]));
    }
fail:
    return st;
}

static crd_status open_bus(session* x)
{
    if (!x->bus) { return CRD_OK; }
    const crd_status st = crdi_dcp_net_can_slave(x->cli->ctx, x->bus, x->matrix,
                                                 crdi_serve_description(x->serve), 0, &x->net);
    if (st >= 0) { crd_dcp_net_capture(x->net, x->capture); }
    return st;
}

static void dcp_slave_watch(void* user, crd_dcp_state state)
{
    session* x = user;
    crdi_log(x->cli->ctx, CRD_LOG_INFO, "state %s", crd_dcp_state_name((int)state));
    if (state == CRD_DCP_ALIVE) { x->sessions++; }
    x->state = state;
}

// With the addresses where it listens, whatever a description that was given says.
static crd_status write_description(session* x)
{
    crd_dcp_description d = *crdi_serve_description(x->serve);
    char hosts[MOST][16];
    if (x->bus) {
        d.udp.offered = false;
        d.can = true;
        return crdi_write_description(x->cli->ctx, &d, x->o->written);
    }
    for (int i = x->address_count - 1; i >= 0; i--) { // the first of a transport counts
        const crd_dcp_address* a = &x->addresses[i];
        crd_dcp_endpoint* e = a->transport == CRD_DCP_TCP ? &d.tcp : &d.udp;
        if (!e->offered || a->ip == 0) { continue; }
        snprintf(hosts[i], sizeof hosts[i], "%u.%u.%u.%u", a->ip >> 24, a->ip >> 16 & 255,
                 a->ip >> 8 & 255, a->ip & 255);
        e->host = hosts[i];
        e->port = a->port;
    }
    return crdi_write_description(x->cli->ctx, &d, x->o->written);
}

static crd_status open_slave(session* x)
{
    crd_status st = CRD_OK;
    crdi_serve_options opt;
    crd_dcp_slave_options limits = crd_dcp_slave_defaults();
    limits.any_port = x->o->any_port;
    limits.check_range = x->o->check_range;
    CRD_TRY(crdi_served_options(x->cli->ctx, &x->o->served, &opt));
    CRD_TRY(read_allowed(x, &limits));
    opt.addresses = x->addresses;
    opt.address_count = x->address_count;
    opt.last_words = crdi_last_words;
    opt.last_words_user = x->cli;
    CRD_TRY(crdi_serve_create(x->cli->ctx, x->sys, &opt, &x->serve));
    if (!x->o->bench && isnan(x->o->served.heartbeat)) {
        crdi_log(x->cli->ctx, CRD_LOG_WARNING,
                 "no heartbeat: a master that dies is not noticed, and the last set values go on; "
                 "--heartbeat 3s notices it, --bench FILE brings a machine to rest");
    }
    if (x->given && x->bus) { crdi_dcp_can_stand_for(x->given); }
    if (x->given) { CRD_TRY(crdi_serve_use(x->serve, x->given)); }
    if (x->o->bench) {
        CRD_TRY(crdi_bench_file_load(x->cli->ctx, x->o->bench, &x->sys->arena, &x->bench));
        CRD_TRY(crdi_serve_as_bench(x->serve, &x->bench));
    }
    if (x->o->written) { CRD_TRY(write_description(x)); }
    CRD_TRY(open_bus(x));
    const crd_dcp_link link = crd_dcp_net_link(x->net);
    CRD_TRY(crdi_serve_start(x->serve, &link, &limits, dcp_slave_watch, x));
    if (x->bus) { crdi_dcp_net_can_bind(x->net, crdi_serve_slave(x->serve)); }
fail:
    return st;
}

static crd_status go_real_time(session* x)
{
    if (x->o->priority < 0) { return CRD_OK; }
    if (x->o->priority < 1 || x->o->priority > 99) {
        return crdi_fail(x->cli->ctx, CRD_E_RANGE, "--real-time %d, expected 1 to 99",
                         x->o->priority);
    }
    const struct sched_param p = {.sched_priority = x->o->priority};
    if (!crdi_lock_memory() || sched_setscheduler(0, SCHED_FIFO, &p) != 0) {
        return crdi_fail(x->cli->ctx, CRD_E_UNSUPPORTED,
                         "--real-time %d: %s; it takes the right to lock memory and to have a "
                         "priority, see setcap(8): cap_sys_nice,cap_ipc_lock",
                         x->o->priority, strerror(errno));
    }
    return CRD_OK;
}

// ---- what it says ------------------------------------------------------------------------------

static crd_status dcp_slave_say_ready(session* x)
{
    const crd_dcp_description* d = crdi_serve_description(x->serve);
    crdi_put(x->out, TEXT("event", "listening"), TEXT("slave", d->name));
    crdi_result* list = crdi_array(x->out, "addresses");
    for (int i = 0; i < x->address_count; i++) {
        char text[32];
        crd_dcp_address_print(&x->addresses[i], text, sizeof text);
        crdi_add(list, TEXT(NULL, x->bus ? x->bus : text));
        crdi_say(x->out, "listening at %s\n", x->bus ? x->bus : text);
    }
    crdi_put(x->out, INT("variables", d->variable_count));
    return crdi_result_print(x->out->root);
}

static crd_status dcp_slave_say_summary(session* x)
{
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(crdi_serve_slave(x->serve));
    const crd_dcp_net_counts n = crd_dcp_net_get_counts(x->net);
    const int64_t dropped = c.dropped + c.data_dropped + c.data_foreign;
    crdi_put(
        x->out, TEXT("event", "ended"), INT("sessions", x->sessions), INT("steps", c.steps),
        INT("late_steps", c.late_steps), INT("received", n.received), INT("sent", n.sent),
        INT("requests", c.requests), INT("refused", c.nacks), INT("foreign", c.foreign),
        INT("data_in", c.data_in), INT("data_out", c.data_out), INT("dropped", dropped),
        INT("data_old", c.data_old), INT("data_foreign", c.data_foreign),
        INT("data_missed", c.data_missed), INT("out_of_range", c.out_of_range),
        INT("logs_lost", c.logs_lost), INT("send_failed", c.send_failed),
        TEXT("state", crd_dcp_state_name((int)crd_dcp_slave_state(crdi_serve_slave(x->serve)))),
        TEXT("failure", crdi_serve_failure(x->serve)));
    if (!x->o->served.common.quiet) {
        crdi_say(x->out,
                 "%" PRId64 " session%s, %" PRId64 " step%s, %" PRId64 " late; %" PRId64
                 " PDUs received, %" PRId64 " sent, %" PRId64 " dropped\n",
                 x->sessions, crdi_plural(x->sessions), c.steps, crdi_plural(c.steps), c.late_steps,
                 n.received, n.sent, dropped);
    }
    return crdi_result_print(x->out->root);
}

// ---- the command -------------------------------------------------------------------------------

static void close_session(session* x)
{
    crdi_serve_destroy(x->serve);
    if (x->net && x->capture) { crd_dcp_net_capture(x->net, NULL); }
    crd_dcp_net_destroy(x->net);
    crd_dcp_can_description_destroy(x->matrix);
    crd_dcp_description_destroy(x->given);
    crd_system_destroy(x->sys);
}

// A master that is there learns that the slave ends, and why, and deregisters it.
static void take_leave(session* x)
{
    static const double patience = 1; // s
    double until = crd_dcp_net_now(x->net) + patience;
    const int before = crdi_interrupt_count();
    crdi_serve_leave(x->serve, crd_dcp_net_now(x->net));
    while (crd_dcp_slave_state(crdi_serve_slave(x->serve)) != CRD_DCP_ALIVE &&
           crd_dcp_net_now(x->net) < until && crdi_interrupt_count() <= before) {
        crdi_serve_turn(x->serve, x->net, 0.01);
        if (!crdi_serve_at_rest(x->serve)) { until = crd_dcp_net_now(x->net) + patience; }
    }
}

static crd_status run_slave(crdi_cli* cli, const void* options, const crdi_list* arguments,
                            crdi_result* out)
{
    const slave_options* o = options;
    session x = {.cli = cli, .out = out, .o = o};
    crd_status st = CRD_OK;
    crdi_json_lines(out, true);
    CRD_TRY(crdi_check_description(cli->ctx, "--write-description", o->written));
    (void)crdi_interrupt_catch(&(crdi_interrupt_options){0}); // waiting is interrupted
    CRD_TRY(crdi_served_load(cli->ctx, &o->served, arguments->items[0], &x.sys));
    CRD_TRY(load_given(&x));
    CRD_TRY(open_network(&x));
    CRD_TRY(open_slave(&x));
    CRD_TRY(go_real_time(&x));
    CRD_TRY(dcp_slave_say_ready(&x));
    while (!crdi_interrupted() && !(o->once && x.sessions > 0)) {
        crdi_serve_turn(x.serve, x.net, TURN);
    }
    take_leave(&x);
    CRD_TRY(dcp_slave_say_summary(&x));
    if (o->once && crdi_serve_failure(x.serve)[0]) {
        st = crdi_fail(cli->ctx, CRD_E_UNIT, "%s", crdi_serve_failure(x.serve));
    }
fail:
    close_session(&x);
    {
        const crd_status closed = crd_dcp_capture_close(x.capture);
        return st < 0 ? st : closed;
    }
}

static const crdi_option rows[] = {
    OPT_LIST(slave_options, listen, "listen", "ADDRESS",
             "where masters reach it, such as udp://192.168.2.7:8080 or tcp://0.0.0.0:8080 "
             "(UDP and TCP at once are fine); port 0 chooses one; udp://127.0.0.1:8080 unless "
             "given. On a CAN bus can://can0, or can://239.74.163.2:43113 for one of this host"),
    OPT_FILE(slave_options, matrix, "matrix", "xml",
             "on a CAN bus: which frames are what, and how the slave is configured (cardan dcp "
             "matrix)"),
    OPT_FILE(slave_options, description, "description", "dcpx|dcp",
             "description to use instead of the one that would be made; has to fit"),
    OPT_FILE(slave_options, bench, "bench", "yaml",
             "a bench: roles, limits, checklist and stop of this file, with the safety core "
             "between master and unit (docs/how-to/benches.md)"),
    OPT_FILE(slave_options, written, "write-description", "dcpx|dcp",
             "write the description that is used, with the addresses"),
    OPT_LIST(slave_options, allow, "allow", "NETWORK",
             "data are sent to this network (192.168.2.0/24) and to loopback only; to the "
             "master's address and loopback unless given"),
    OPT_FLAG(slave_options, any_port, "any-port",
             "take requests from every port of the host that has registered, and so from every "
             "process there; for masters that change their port"),
    OPT_FLAG(slave_options, check_range, "check-range",
             "values outside of min and max are an error; else they are counted"),
    OPT_LIST(slave_options, key, "key", "FILE",
             "encrypt and authenticate with this key (cardan key pair), one for each partner"),
    OPT_FLAG(slave_options, plain, "plain", CRDI_PLAIN_HELP),
    OPT_FILE(slave_options, capture, "capture", "pcapng", "write all PDUs, for Wireshark"),
    OPT_FLAG(slave_options, once, "once",
             "end after the first session; its failure is the exit code then"),
    OPT_INT(slave_options, priority, "real-time", "PRIORITY",
            "lock memory and run with this priority (SCHED_FIFO, 1 to 99)"),
    CRDI_SERVED_OPTIONS,
    CRDI_UNPACKED_OPTION,
    CRDI_ISOLATE_OPTION,
    CRDI_JSON_OPTION("one line of JSON when it listens and one when it ends"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_dcp_slave = {
    .name = "dcp slave",
    .arguments = "FMU|SYSTEM",
    .summary = "offer an FMU or system as a DCP slave",
    .description =
        "Listens for a master of the Distributed Co-Simulation Protocol and does what it asks: "
        "non-real-time in its steps, soft real time by the clock. An FMU that steps by any length "
        "makes one step for each STC_do_step; a system makes its macro steps. STC_reset makes new "
        "instances. A unit that fails or crashes brings the slave to ERRORHANDLING, with the "
        "reason in its log and on standard error, and it lives on. Messages of units become log "
        "entries (category 1), reasons of failures are in category 2. SIGINT and SIGTERM end it.",
    .examples = {{"cardan dcp slave motor.fmu", "at udp://127.0.0.1:8080"},
                 {"cardan dcp slave car.yaml --listen udp://:8080 --listen tcp://:8080 "
                  "--write-description car.dcpx",
                  "UDP and TCP, and the description for the master"},
                 {"cardan dcp slave motor.fmu --listen can://can0 --matrix bus.xml",
                  "on a CAN bus"},
                 {"cardan dcp slave motor.fmu --once --capture session.pcapng --log-level info",
                  "one session, recorded, with its states"}},
    OPTIONS(rows, slave_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "fmu|yaml|yml|ssp|ssd|cir|ckt|net|sp|spice",
    .run = run_slave,
};
