// cardan dcp link: how good the way to a slave or an echo is.
#include "cli/analyze/signals.h"
#include "cli/dcp/dcp_query.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct link_options {
    crdi_common common;
    const char *key, *capture, *output;
    int count, payload, id; // -1: not given
    double interval, timeout, step;
    bool echo, plain;
} link_options;

typedef struct measurement {
    crdi_cli* cli;
    const link_options* o;
    crdi_dcp_ping_options ping;
    crdi_dcp_ping_sample* samples; // (ping.count)
    crdi_dcp_ping_report r;
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
            crdi_dcp_net_send_from(net, &p.at, &p.from, bytes, p.length);
            c->answered++;
        } else {
            c->ignored++;
        }
    }
}

static crd_status say_listening(const crd_dcp_address* at, crdi_result* out)
{
    char listening[32];
    (void)crd_dcp_address_print(at, listening, sizeof listening);
    crdi_say(out, "listening at %s\n", listening);
    crdi_put(out, TEXT("listening", listening));
    return crdi_result_print(out->root);
}

static crd_status run_echo(crdi_cli* cli, const link_options* o, const char* text, crdi_result* out)
{
    crdi_query query = {0};
    crd_dcp_address at;
    echo_counts c = {0};
    crd_status st = CRD_OK;
    uint8_t* bytes = crdi_new(cli->ctx, crd_dcp_net_default_limits().max_pdu);
    if (!bytes) { return CRD_E_MEMORY; }
    CRD_TRY(crd_dcp_address_parse(cli->ctx, text, &at));
    CRD_TRY(crdi_dcp_check_plain(cli->ctx, &at, o->key != NULL, o->plain, "--key FILE or --plain"));
    CRD_TRY(crdi_query_open(cli->ctx, o->key, o->capture, &query));
    CRD_TRY(crd_dcp_net_listen(query.net, &at));
    CRD_TRY(say_listening(&at, out));
    while (!crdi_query_stopped(NULL)) {
        answer_all(query.net, bytes, &c);
        crd_dcp_net_wait(query.net, 0.2);
    }
    crdi_say(out, "%lld answered, %lld ignored\n", (long long)c.answered, (long long)c.ignored);
    crdi_put(out, INT("answered", c.answered), INT("ignored", c.ignored));
fail:
    crd_free(cli->ctx, bytes);
    {
        const crd_status closed = crdi_query_close(&query);
        return st < 0 ? st : closed;
    }
}

// ---- what comes out ----------------------------------------------------------------------------

// The round trip and its quantiles: a row of times, in JSON an object
static void put_trips(const crdi_dcp_ping_report* r, crdi_result* out)
{
    static const crdi_column columns[] = {{"round trip", "", ""},
                                          {">least", "least", "s"},
                                          {">median", "median", "s"},
                                          {">mean", "mean", "s"},
                                          {">90 %", "p90", "s"},
                                          {">99 %", "p99", "s"},
                                          {">99.9 %", "p999", "s"},
                                          {">most", "most", "s"},
                                          {">deviation", "deviation", "s"},
                                          {">jitter", "jitter", "s"},
                                          {0}};
    const crdi_value times[] = {REAL("least", r->least),   REAL("median", r->median),
                                REAL("mean", r->mean),     REAL("p90", r->p90),
                                REAL("p99", r->p99),       REAL("p999", r->p999),
                                REAL("most", r->most),     REAL("deviation", r->deviation),
                                REAL("jitter", r->jitter), {0}};
    crdi_result* row = crdi_array(out, NULL);
    crdi_put_values(crdi_row(row), times);
    crdi_show_table(out, row, columns, "");
    crdi_put_values(crdi_object(out, "round_trip"), times);
}

// Equal bins from the least round trip to the 99 % one, and one for the rest.
static void say_histogram(const measurement* m, crdi_result* out)
{
    static const crdi_column columns[] = {
        {">", "from", ""}, {">", "count", ""}, {"", "bar", ""}, {0}};
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
    crdi_result* list = crdi_array(out, NULL);
    for (int i = 0; i < BINS && (width > 0 || i == 0); i++) {
        char text[32], bar[BAR + 1] = "";
        crdi_result* row = crdi_row(list);
        memset(bar, '#', (size_t)((int64_t)BAR * count[i] / most));
        crdi_put(row,
                 CELL("from", crdi_worded(row, "%s%s", i == BINS - 1 ? ">= " : "",
                                          crdi_format_seconds(text, r->least + i * width))),
                 INT("count", count[i]), CELL("bar", count[i] && !bar[0] ? "." : bar));
    }
    crdi_show_table(out, list, columns, "  ");
}

static void say_clocks(const crdi_dcp_ping_report* r, crdi_result* out)
{
    char a[32], b[32], c[32];
    crdi_say(out, "one way: %s (%s .. %s for 99.9 %%), %s\n", crdi_format_seconds(a, r->way_median),
             crdi_format_seconds(b, r->way_least), crdi_format_seconds(c, r->way_p999),
             r->echo ? "the slower direction" : "half of the round trip: only an echo tells more");
    if (!r->echo) { return; }
    crdi_say(out, "clocks: the echo's is %s %s ours, +- %s",
             crdi_format_seconds(a, fabs(r->offset)), r->offset < 0 ? "behind" : "ahead of",
             crdi_format_seconds(b, r->offset_error));
    if (!isnan(r->drift)) {
        crdi_say(out, "; drift %.3g ppm, +- %.2g ppm", 1e6 * r->drift, 1e6 * r->drift_error);
    }
    crdi_say(out, "\n");
}

static void say_advice(const measurement* m, const crdi_dcp_ping_advice* a, crdi_result* out)
{
    static const crdi_column columns[] = {
        {">macro step", "step", ""}, {">k", "k", ""}, {">up to", "most", ""}, {0}};
    char text[32];
    double step = a->step;
    crdi_result* list = crdi_array(out, NULL);
    for (int i = 0; i < STEPS_SHOWN; i++) {
        const crdi_dcp_ping_advice at = crdi_dcp_ping_advise(&m->r, step);
        crdi_result* row = crdi_row(list);
        crdi_put(row,
                 CELL("step", crdi_worded(row, "%s%s", i == 0 ? "* " : "",
                                          crdi_format_seconds(text, step))),
                 INT("k", at.k), INT("most", at.k_most));
        const double digit = step / pow(10, floor(log10(step) + 1e-9));
        step *= digit > 1.9 && digit < 2.1 ? 2.5 : 2;
    }
    crdi_show_table(out, list, columns, "");
    crdi_say(out, "\nelement: {algorithm: auto, step: %s, latency-max: %d}\n",
             crdi_format_seconds(text, a->step), a->k_most + CRD_LATENCY_SPARE);
}

static void dcp_link_put_report(const measurement* m, const char* address, crdi_result* out)
{
    const crdi_dcp_ping_report* r = &m->r;
    const crdi_dcp_ping_advice a = crdi_dcp_ping_advise(r, m->o->step);
    char interval[32], late[32];
    const char* state = crd_dcp_state_name(r->state);
    crdi_say(out, "%s: %s, %d packets%s, one each %s, up to %s late\n", address,
             r->echo ? "an echo"
             : state ? state
                     : "a slave that is registered",
             r->sent, r->echo ? "" : " (INF_state)",
             crdi_format_seconds(interval, m->ping.interval), crdi_format_seconds(late, r->late));
    crdi_say(out, "%d answered, %d lost (%.3g %%), %d double, %d out of order\n\n", r->answered,
             r->lost, 100.0 * r->lost / r->sent, r->duplicates, r->reordered);
    crdi_put(out, TEXT("address", address), BOOL("echo", r->echo), INT("sent", r->sent),
             INT("answered", r->answered), INT("lost", r->lost), INT("duplicates", r->duplicates),
             INT("reordered", r->reordered), REAL("late", r->late));
    put_trips(r, out);
    crdi_say(out, "\n");
    say_histogram(m, out);
    crdi_say(out, "\n");
    say_clocks(r, out);
    crdi_say(out, "\n");
    say_advice(m, &a, out);
    crdi_put(out, TEXT("state", r->echo ? NULL : state));
    crdi_put(crdi_object(out, "clock"), REAL("offset", r->offset), REAL("error", r->offset_error),
             REAL("drift", r->drift), REAL("drift_error", r->drift_error));
    crdi_put(crdi_object(out, "one_way"), REAL("least", r->way_least),
             REAL("median", r->way_median), REAL("p999", r->way_p999));
    crdi_put(crdi_object(out, "advice"), REAL("step", a.step), INT("k", a.k),
             INT("k_max", a.k_most));
}

// The recording that cardan coupling link design --link and cardan dcp emulate --trace read.
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

static void dcp_link_show_progress(void* user, int sent)
{
    measurement* m = user;
    crdi_progress(m->cli->ctx, "measuring", sent, m->ping.count, "packets");
}

static crd_status listen_for_answers(crd_dcp_net* net, const crd_dcp_address* to)
{
    crd_dcp_address at = {.ip = crdi_dcp_net_source_ip(net, to), .transport = CRD_DCP_UDP};
    return to->transport == CRD_DCP_UDP ? crd_dcp_net_listen(net, &at) : CRD_OK;
}

static crd_status measure_link(measurement* m, const char* text, crdi_result* out)
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
    m->ping.progress = dcp_link_show_progress;
    m->ping.user = m;
    m->samples = crdi_new_array(m->cli->ctx, (size_t)m->ping.count, sizeof *m->samples);
    if (!m->samples) { return CRD_E_MEMORY; }
    (void)crd_dcp_address_print(&m->ping.to, address, sizeof address);
    CRD_TRY(crdi_query_open(m->cli->ctx, o->key, o->capture, &query));
    CRD_TRY(listen_for_answers(query.net, &m->ping.to));
    st = crdi_dcp_ping(m->cli->ctx, query.net, &m->ping, m->samples, &m->r);
    crdi_progress_end(m->cli->ctx);
    CRD_TRY(st);
    dcp_link_put_report(m, address, out);
    if (o->output) { CRD_TRY(write_trace(m)); } // its failure leaves the numbers above
fail : {
    const crd_status closed = crdi_query_close(&query);
    return st < 0 ? st : closed;
}
}

static crd_status run_link(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    const link_options* o = options;
    measurement m = {.cli = cli, .o = o};
    if (o->echo) { return run_echo(cli, o, arguments->items[0], out); }
    const crd_status st = measure_link(&m, arguments->items[0], out);
    crd_free(cli->ctx, m.samples);
    return st;
}

static const crdi_option rows[] = {
    OPT_FLAG(link_options, echo, "echo",
             "be the other end: listen at the address and send questions back with the times at "
             "which they came and went; SIGINT and SIGTERM end it"),
    OPT_FLAG(link_options, plain, "plain",
             "with --echo: answer everybody who reaches it, without a key, beyond this host, too"),
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
             "recording of the one-way latency of each packet, for cardan coupling link design "
             "--link and "
             "cardan dcp emulate --trace; NaN for those that were lost",
             .short_name = 'o'),
    CRDI_PROBE_OPTIONS(link_options),
    CRDI_JSON_OPTION("print {address, echo, sent, answered, lost, duplicates, reordered, "
                     "round_trip, clock, one_way, advice: {step, k, k_max}}"),
    CRDI_QUIET_OPTION,
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
    .examples =
        {{"cardan dcp link udp://192.168.2.7:8080", "to a slave"},
         {"cardan dcp link --echo udp://0.0.0.0:9000 --plain", "the other end, on all interfaces"},
         {"cardan dcp link udp://192.168.2.7:9000 --count 10000 --interval '2 ms' -o "
          "link.csv",
          "to an echo, and a recording"},
         {"cardan coupling link design bench.mf4 --signal torque --link link.csv -o torque.yaml",
          "an element for this link"}},
    OPTIONS(rows, link_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_link,
};
