// cardan dcp link: how good the way to a slave or an echo is.
#include "cli/dcp_query.h"
#include "cli/design.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct link_options {
    crdi_common common;
    const char *key, *capture, *output;
    int count, payload, id; // -1: not given
    double interval, timeout, step;
    bool echo;
} link_options;

typedef struct measurement {
    crdi_cli* cli;
    const link_options* o;
    crdi_dcp_ping_options ping;
    crdi_dcp_ping_sample* samples; // (ping.count)
    crdi_dcp_ping_report r;
    int64_t begin;
} measurement;

enum { BINS = 16, BAR = 40, STEPS_SHOWN = 4 };

// ---- the echo ----------------------------------------------------------------------------------

typedef struct echo_counts {
    int64_t answered, ignored;
} echo_counts;

static void answer_all(crd_dcp_net* net, uint8_t* bytes, echo_counts* c)
{
    crd_dcp_packet p;
    while (crd_dcp_net_receive(net, &p)) {
        if (p.length) { memcpy(bytes, p.bytes, p.length); }
        if (crdi_dcp_echo(bytes, p.length, p.time, crd_dcp_net_now(net))) {
            crd_dcp_net_send_from(net, &p.at, &p.from, bytes, p.length);
            c->answered++;
        } else {
            c->ignored++;
        }
    }
}

static crd_status run_echo(crdi_cli* cli, const link_options* o, const char* text)
{
    crdi_query query = {0};
    crd_dcp_address at;
    echo_counts c = {0};
    char listening[32];
    crd_status st = CRD_OK;
    uint8_t* bytes = crdi_new(cli->ctx, crd_dcp_net_default_limits().max_pdu);
    if (!bytes) { return CRD_E_MEMORY; }
    CRD_TRY(crd_dcp_address_parse(cli->ctx, text, &at));
    CRD_TRY(crdi_query_open(cli->ctx, o->key, o->capture, &query));
    CRD_TRY(crd_dcp_net_listen(query.net, &at));
    (void)crd_dcp_address_print(&at, listening, sizeof listening);
    if (o->common.json) {
        CRD_TRY(crdi_json_print(cli, json_pack("{s:s}", "listening", listening)));
    } else {
        printf("listening at %s\n", listening);
    }
    CRD_TRY(crdi_stdout_done(cli->ctx));
    while (!crdi_query_stopped(NULL)) {
        answer_all(query.net, bytes, &c);
        crd_dcp_net_wait(query.net, 0.2);
    }
    if (o->common.json) {
        CRD_TRY(crdi_json_print(cli, json_pack("{s:I, s:I}", "answered", (json_int_t)c.answered,
                                               "ignored", (json_int_t)c.ignored)));
    } else {
        printf("%lld answered, %lld ignored\n", (long long)c.answered, (long long)c.ignored);
    }
    CRD_TRY(crdi_stdout_done(cli->ctx));
fail:
    crd_free(cli->ctx, bytes);
    {
        const crd_status closed = crdi_query_close(&query);
        return st < 0 ? st : closed;
    }
}

// ---- what comes out ----------------------------------------------------------------------------

static void print_seconds(const char* before, double seconds)
{
    char text[32];
    printf("%s%s", before, crdi_format_seconds(text, seconds));
}

static void print_trips(const measurement* m)
{
    const crdi_dcp_ping_report* r = &m->r;
    const char* const heads[] = {"round trip", "least",  "median", "mean",      "90 %",
                                 "99 %",       "99.9 %", "most",   "deviation", "jitter"};
    const double values[] = {r->least, r->median, r->mean,      r->p90,   r->p99,
                             r->p999,  r->most,   r->deviation, r->jitter};
    crdi_grid g;
    char text[32];
    crdi_grid_init(&g, m->cli->ctx, 10, 0x3fe);
    for (int i = 0; i < 10; i++) {
        crdi_grid_add(&g, "%s", heads[i]);
    }
    crdi_grid_add(&g, "%s", "");
    for (int i = 0; i < 9; i++) {
        crdi_grid_add(&g, "%s", crdi_format_seconds(text, values[i]));
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
}

// Equal bins from the least round trip to the 99 % one, and one for the rest.
static void print_histogram(const measurement* m)
{
    const crdi_dcp_ping_report* r = &m->r;
    const double width = (r->p99 - r->least) / (BINS - 1);
    int count[BINS] = {0}, most = 1;
    for (int i = 0; i < r->sent; i++) {
        const double trip = m->samples[i].round_trip;
        if (isnan(trip)) { continue; }
        const double bin = width > 0 ? floor((trip - r->least) / width) : 0;
        count[bin < BINS - 1 ? (int)bin : BINS - 1]++;
    }
    for (int i = 0; i < BINS; i++) {
        most = count[i] > most ? count[i] : most;
    }
    crdi_grid g;
    crdi_grid_init(&g, m->cli->ctx, 3, 0x3);
    for (int i = 0; i < BINS; i++) {
        char text[32], bar[BAR + 1] = "";
        if (width <= 0 && i > 0) { break; }
        memset(bar, '#', (size_t)((int64_t)BAR * count[i] / most));
        crdi_grid_add(&g, "%s%s", i == BINS - 1 ? ">= " : "",
                      crdi_format_seconds(text, r->least + i * width));
        crdi_grid_add(&g, "%d", count[i]);
        crdi_grid_add(&g, "%s", count[i] && !bar[0] ? "." : bar);
    }
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
}

static void print_clocks(const measurement* m)
{
    const crdi_dcp_ping_report* r = &m->r;
    print_seconds("one way: ", r->way_median);
    print_seconds(" (", r->way_least);
    print_seconds(" .. ", r->way_p999);
    printf(" for 99.9 %%), %s\n",
           r->echo ? "the slower direction" : "half of the round trip: only an echo tells more");
    if (!r->echo) { return; }
    print_seconds("clocks: the echo's is ", fabs(r->offset));
    printf(" %s ours", r->offset < 0 ? "behind" : "ahead of");
    print_seconds(", +- ", r->offset_error);
    if (!isnan(r->drift)) {
        printf("; drift %.3g ppm, +- %.2g ppm", 1e6 * r->drift, 1e6 * r->drift_error);
    }
    printf("\n");
}

static void print_advice(const measurement* m)
{
    crdi_dcp_ping_advice a = crdi_dcp_ping_advise(&m->r, m->o->step);
    crdi_grid g;
    char text[32];
    crdi_grid_init(&g, m->cli->ctx, 3, 0x7);
    crdi_grid_add(&g, "macro step");
    crdi_grid_add(&g, "k");
    crdi_grid_add(&g, "up to");
    double step = a.step;
    for (int i = 0; i < STEPS_SHOWN; i++) {
        const crdi_dcp_ping_advice row = crdi_dcp_ping_advise(&m->r, step);
        crdi_grid_add(&g, "%s%s", i == 0 ? "* " : "", crdi_format_seconds(text, step));
        crdi_grid_add(&g, "%d", row.k);
        crdi_grid_add(&g, "%d", row.k_most);
        const double digit = step / pow(10, floor(log10(step) + 1e-9));
        step *= digit > 1.9 && digit < 2.1 ? 2.5 : 2;
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
    printf("\nelement: {algorithm: auto, step: %s, latency-max: %d}\n",
           crdi_format_seconds(text, a.step), a.k_most + CRDI_LATENCY_SPARE);
}

static void print_report(const measurement* m, const char* address)
{
    const crdi_dcp_ping_report* r = &m->r;
    char interval[32], late[32];
    const char* state = crd_dcp_state_name(r->state);
    printf("%s: %s, %d packets%s, one each %s, up to %s late\n", address,
           r->echo ? "an echo"
           : state ? state
                   : "a slave that is registered",
           r->sent, r->echo ? "" : " (INF_state)", crdi_format_seconds(interval, m->ping.interval),
           crdi_format_seconds(late, r->late));
    printf("%d answered, %d lost (%.3g %%), %d double, %d out of order\n\n", r->answered, r->lost,
           100.0 * r->lost / r->sent, r->duplicates, r->reordered);
    print_trips(m);
    printf("\n");
    print_histogram(m);
    printf("\n");
    print_clocks(m);
    printf("\n");
    print_advice(m);
}

static crd_status print_json(const measurement* m, const char* address)
{
    const crdi_dcp_ping_report* r = &m->r;
    const crdi_dcp_ping_advice a = crdi_dcp_ping_advise(r, m->o->step);
    const char* state = crd_dcp_state_name(r->state);
    json_t* trip = json_object();
    const struct {
        const char* name;
        double value;
    } values[] = {
        {"least", r->least},  {"median", r->median}, {"mean", r->mean}, {"p90", r->p90},
        {"p99", r->p99},      {"p999", r->p999},     {"most", r->most}, {"deviation", r->deviation},
        {"jitter", r->jitter}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        json_object_set_new(trip, values[i].name, crdi_json_number(values[i].value));
    }
    json_t* j = json_pack("{s:s, s:b, s:i, s:i, s:i, s:i, s:i, s:o, s:o}", "address", address,
                          "echo", r->echo, "sent", r->sent, "answered", r->answered, "lost",
                          r->lost, "duplicates", r->duplicates, "reordered", r->reordered, "late",
                          crdi_json_number(r->late), "round_trip", trip);
    json_object_set_new(j, "state", state && !r->echo ? json_string(state) : json_null());
    json_object_set_new(j, "clock",
                        json_pack("{s:o, s:o, s:o, s:o}", "offset", crdi_json_number(r->offset),
                                  "error", crdi_json_number(r->offset_error), "drift",
                                  crdi_json_number(r->drift), "drift_error",
                                  crdi_json_number(r->drift_error)));
    json_object_set_new(j, "one_way",
                        json_pack("{s:o, s:o, s:o}", "least", crdi_json_number(r->way_least),
                                  "median", crdi_json_number(r->way_median), "p999",
                                  crdi_json_number(r->way_p999)));
    json_object_set_new(j, "advice",
                        json_pack("{s:o, s:i, s:i}", "step", crdi_json_number(a.step), "k", a.k,
                                  "k_max", a.k_most));
    return crdi_json_print(m->cli, j);
}

// The recording that cardan link design --link and cardan dcp emulate --trace read.
static crd_status write_trace(const measurement* m)
{
    crd_text t;
    crd_text_init(&t, m->cli->ctx);
    crdi_text_add(&t, "time [s],latency [s]\n");
    for (int i = 0; i < m->r.sent; i++) {
        const crdi_dcp_ping_sample* s = &m->samples[i];
        const double way = m->r.echo ? s->there : 0.5 * s->round_trip;
        if (isnan(way)) {
            crdi_text_add(&t, "%.9g,NaN\n", s->sent);
        } else {
            crdi_text_add(&t, "%.9g,%.9g\n", s->sent, way);
        }
    }
    const crd_status st = crdi_file_write(m->cli->ctx, m->o->output, &t);
    crd_text_clear(&t);
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static void show_progress(void* user, int sent)
{
    measurement* m = user;
    crdi_show_progress(m->cli, m->begin, sent, m->ping.count, "packets");
}

static crd_status listen_for_answers(crd_dcp_net* net, const crd_dcp_address* to)
{
    crd_dcp_address at = {.ip = crd_dcp_net_source_ip(net, to), .transport = CRD_DCP_UDP};
    return to->transport == CRD_DCP_UDP ? crd_dcp_net_listen(net, &at) : CRD_OK;
}

static crd_status measure(measurement* m, const char* text)
{
    const link_options* o = m->o;
    crdi_query query = {0};
    crd_status st = CRD_OK;
    char address[32];
    m->ping = crdi_dcp_ping_defaults();
    CRD_TRY(crdi_query_address(m->cli->ctx, text, &m->ping.to));
    if (o->count >= 0) { m->ping.count = o->count; }
    if (o->id == 0 || o->id > 255) {
        return crdi_fail(m->cli->ctx, CRD_E_RANGE, "--id = %d, expected 1 to 255", o->id);
    }
    if (o->id > 0) { m->ping.id = (uint8_t)o->id; }
    if (o->payload >= 0) { m->ping.size = (uint32_t)o->payload; }
    if (!isnan(o->interval)) { m->ping.interval = o->interval; }
    if (!isnan(o->timeout)) {
        m->ping.timeout = o->timeout;
        m->ping.contact = 3 * o->timeout;
    }
    m->ping.cancelled = crdi_query_stopped;
    m->ping.progress = show_progress;
    m->ping.user = m;
    m->samples = crdi_new_array(m->cli->ctx, (size_t)m->ping.count, sizeof *m->samples);
    if (!m->samples) { return CRD_E_MEMORY; }
    (void)crd_dcp_address_print(&m->ping.to, address, sizeof address);
    CRD_TRY(crdi_query_open(m->cli->ctx, o->key, o->capture, &query));
    CRD_TRY(listen_for_answers(query.net, &m->ping.to));
    m->begin = crdi_now_ns();
    st = crdi_dcp_ping(m->cli->ctx, query.net, &m->ping, m->samples, &m->r);
    crdi_show_progress(m->cli, m->begin, -1, 0, "");
    CRD_TRY(st);
    if (o->common.json) {
        CRD_TRY(print_json(m, address));
    } else {
        print_report(m, address);
    }
    CRD_TRY(crdi_stdout_done(m->cli->ctx));
    if (o->output) { CRD_TRY(write_trace(m)); } // its failure leaves the numbers above
fail : {
    const crd_status closed = crdi_query_close(&query);
    return st < 0 ? st : closed;
}
}

static crd_status run_link(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    (void)out;
    const link_options* o = options;
    measurement m = {.cli = cli, .o = o};
    if (o->echo) { return run_echo(cli, o, arguments->items[0]); }
    const crd_status st = measure(&m, arguments->items[0]);
    crd_free(cli->ctx, m.samples);
    return st;
}

static const crdi_option rows[] = {
    OPT_FLAG(link_options, echo, "echo",
             "be the other end: listen at the address and send questions back with the times at "
             "which they came and went; SIGINT and SIGTERM end it"),
    OPT_INT(link_options, count, "count", "N", "packets; 1000 unless given"),
    OPT_TIME(link_options, interval, "interval", CRDI_POSITIVE,
             "from one to the next; 10 ms unless given. A slave that is registered answers others "
             "than its master about 100 times per second"),
    OPT_INT(link_options, payload, "payload", "BYTES",
            "size of a packet to an echo, 44 at least; 80 unless given. To a slave it is 4"),
    OPT_INT(link_options, id, "id", "N",
            "of a slave that is registered with a master; 1 unless given"),
    OPT_TIME(link_options, timeout, "timeout", CRDI_POSITIVE,
             "an answer that comes later counts as lost, and so does a peer that is silent for "
             "three times as long; 1 s unless given"),
    OPT_TIME(link_options, step, "step", CRDI_POSITIVE,
             "macro step of the coupling; one that fits the link unless given"),
    OPT_FILE(link_options, output, "output", "csv",
             "recording of the one-way latency of each packet, for cardan link design --link and "
             "cardan dcp emulate --trace; NaN for those that were lost",
             .short_name = 'o'),
    CRDI_PROBE_OPTIONS(link_options),
    CRDI_JSON_OPTION("print {address, echo, sent, answered, lost, duplicates, reordered, "
                     "round_trip, clock, one_way, advice: {step, k, k_max}}"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_dcp_link = {
    .name = "dcp link",
    .arguments = "ADDRESS",
    .summary = "measure the way to a slave or an echo",
    .description =
        "Sends packets on a grid of times and looks at what comes back: round trips, losses, "
        "packets that come twice or out of order. From an echo (cardan dcp link --echo on the "
        "other machine), which says when a packet came and went, the difference of the clocks and "
        "the two directions follow; of a slave, which is asked for its state, half of the round "
        "trip is taken for one way. From that the latency in macro steps is estimated that a "
        "coupling over this link has: k = ceil(latency / step) for the median, and for 99.9 % of "
        "the packets, with two more if some are lost. The macro step proposed is the shortest of "
        "1, 2, 5, 10 ... ms that holds the jitter in one step and the latency in eight.",
    .examples = {{"cardan dcp link udp://192.168.2.7:8080", "to a slave"},
                 {"cardan dcp link --echo udp://0.0.0.0:9000", "the other end, on all interfaces"},
                 {"cardan dcp link udp://192.168.2.7:9000 --count 10000 --interval '2 ms' -o "
                  "link.csv",
                  "to an echo, and a recording"},
                 {"cardan link design bench.mf4 --signal torque --link link.csv -o torque.yaml",
                  "an element for this link"}},
    OPTIONS(rows, link_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_link,
};
