// cardan dcp scan: which slaves are there, in which state, and whose description they have.
#include "cli/dcp/dcp_query.h"

#include <math.h>
#include <string.h>

typedef struct scan_options {
    crdi_common common;
    const char *key, *capture;
    double timeout;
    int ids;
    bool all;
} scan_options;

typedef struct place { // an address of an argument
    int argument, sighting;
} place;

typedef struct scanner {
    crdi_cli* cli;
    const scan_options* o;
    crd_arena arena;
    const char* const* arguments;
    int argument_count;
    crdi_dcp_sighting* sightings; // (CRDI_DCP_SCAN_MOST)
    int count;
    place* places; // (place_count)
    size_t place_count, place_room;
    crd_dcp_description** descriptions; // (argument_count)
    int description_count;
} scanner;

// ---- what is asked for -------------------------------------------------------------------------

static crd_status add_place(scanner* s, int argument, const crd_dcp_address* a,
                            const crd_dcp_description* d)
{
    int at = 0;
    while (at < s->count && !crd_dcp_address_equal(&s->sightings[at].address, a)) {
        at++;
    }
    if (at == CRDI_DCP_SCAN_MOST) {
        return crdi_fail(s->cli->ctx, CRD_E_RANGE, "more than %d addresses", CRDI_DCP_SCAN_MOST);
    }
    if (at == s->count) { s->sightings[s->count++] = (crdi_dcp_sighting){.address = *a}; }
    if (d) { s->sightings[at].description = d; }
    place* more =
        crdi_grow(s->cli->ctx, s->places, &s->place_room, s->place_count + 1, sizeof *more);
    if (!more) { return CRD_E_MEMORY; }
    s->places = more;
    s->places[s->place_count++] = (place){argument, at};
    return CRD_OK;
}

static crd_status add_range(scanner* s, int argument)
{
    crd_dcp_address* addresses = crdi_arena_new(&s->arena, CRDI_DCP_SCAN_MOST, sizeof *addresses);
    int count = 0;
    if (!addresses) { return CRD_E_MEMORY; }
    crd_status st = crdi_dcp_scan_expand(s->cli->ctx, s->arguments[argument], addresses,
                                         CRDI_DCP_SCAN_MOST, &count);
    for (int i = 0; st >= 0 && i < count; i++) {
        st = add_place(s, argument, &addresses[i], NULL);
    }
    return st;
}

// The addresses of Control that a description has. One without serves to name others.
static crd_status add_description(scanner* s, int argument)
{
    crd_context* ctx = s->cli->ctx;
    crd_dcp_description* d = NULL;
    crd_status st = crdi_query_description(ctx, s->arguments[argument], &d);
    if (st < 0) { return st; }
    s->descriptions[s->description_count++] = d;
    const crd_dcp_endpoint* endpoints[] = {&d->udp, &d->tcp};
    for (int i = 0; st >= 0 && i < 2; i++) {
        const crd_dcp_endpoint* e = endpoints[i];
        if (!e->offered || !e->port) { continue; }
        crd_dcp_address a;
        char* text =
            crdi_arena_format(&s->arena, "%s://%s:%u", i ? "tcp" : "udp", e->host, e->port);
        st = text ? crd_dcp_address_parse(ctx, text, &a) : CRD_E_MEMORY;
        if (st >= 0) { st = add_place(s, argument, &a, d); }
    }
    return st < 0 ? crdi_fail_in(ctx, st, "%s", s->arguments[argument]) : CRD_OK;
}

static crd_status read_arguments(scanner* s)
{
    crd_status st = CRD_OK;
    const size_t most = CRDI_DCP_SCAN_MOST;
    s->sightings = crdi_arena_new(&s->arena, most, sizeof *s->sightings);
    s->descriptions = crdi_arena_new(&s->arena, (size_t)s->argument_count, sizeof *s->descriptions);
    if (!s->sightings || !s->descriptions) { return CRD_E_MEMORY; }
    for (int i = 0; i < s->argument_count && st >= 0; i++) {
        st = crdi_is_dcp(s->arguments[i]) ? add_description(s, i) : add_range(s, i);
    }
    if (st >= 0 && s->count == 0) {
        st = crdi_fail(s->cli->ctx, CRD_E_RANGE,
                       "%s names no address of Control, expected one as another argument",
                       s->arguments[0]);
    }
    return st;
}

// ---- what was found ----------------------------------------------------------------------------

static int addresses_of(const scanner* s, int argument, bool answered)
{
    int n = 0;
    for (size_t i = 0; i < s->place_count; i++) {
        const place* p = &s->places[i];
        n += p->argument == argument && (!answered || s->sightings[p->sighting].answered);
    }
    return n;
}

// Of ranges only those who answer; of a host both transports, unless one of them answers.
static bool is_shown(const scanner* s, int sighting)
{
    if (s->o->all || s->sightings[sighting].answered) { return true; }
    for (size_t i = 0; i < s->place_count; i++) {
        const place* p = &s->places[i];
        if (p->sighting == sighting && addresses_of(s, p->argument, false) <= 2 &&
            addresses_of(s, p->argument, true) == 0) {
            return true;
        }
    }
    return false;
}

static const char* note_of(scanner* s, const crdi_dcp_sighting* g)
{
    const bool tcp = g->address.transport == CRD_DCP_TCP;
    const char* error = crd_dcp_error_name((int)g->error);
    if (!g->answered) {
        return !tcp ? "no answer" : g->connected ? "connected, but no answer" : "no connection";
    }
    if (g->registered) { return "accepted a registration in op_mode 255; deregistered again"; }
    if (g->state < 0) {
        const char* text = crdi_arena_format(
            &s->arena, "registered, tells its state to its master only (%s)", error ? error : "?");
        return text ? text : "";
    }
    if (g->state != CRD_DCP_ALIVE) { return "registered with a master"; }
    if (g->tried == 0 || g->match) { return ""; }
    const char* text = g->description ? crdi_arena_format(&s->arena, "its uuid is not that of %s",
                                                          g->description->file)
                                      : "its uuid is of none of the descriptions";
    return text ? text : "";
}

static void put_sighting(scanner* s, const crdi_dcp_sighting* f, crdi_result* row)
{
    char text[32], trip[32];
    (void)crd_dcp_address_print(&f->address, text, sizeof text);
    const char* state = f->answered ? crd_dcp_state_name(f->state) : NULL;
    const bool has_id = f->answered && f->state != CRD_DCP_ALIVE; // then it answers to any
    crdi_put(row, TEXT("address", text), BOOL("answers", f->answered),
             AS(TEXT("state", state), !f->answered ? "-"
                                      : state      ? NULL
                                                   : "?"),
             AS(ONLY_IF(f->answered, INT("id", f->id)), has_id ? NULL : "-"),
             AS(REAL("round_trip", f->round_trip),
                f->answered ? crdi_format_seconds(trip, f->round_trip) : "-"),
             TEXT("name", f->match ? f->match->name : NULL),
             TEXT("file", f->match ? f->match->file : NULL),
             ONLY_IF(f->tried > 0, BOOL("uuid_fits", f->match != NULL)),
             TEXT("note", note_of(s, f)));
}

static void put_sightings(scanner* s, int answered, crdi_result* out)
{
    static const crdi_column columns[] = {{"address", "address", ""},
                                          {"state", "state", ""},
                                          {">id", "id", ""},
                                          {">round trip", "round_trip", ""},
                                          {"slave", "name", ""},
                                          {"notes", "note", ""},
                                          {0}};
    bool any = false;
    crdi_result* list = crdi_array(out, "slaves");
    for (int i = 0; i < s->count; i++) {
        if (!is_shown(s, i)) { continue; }
        put_sighting(s, &s->sightings[i], crdi_row(list));
        any = true;
    }
    crdi_put(out, INT("answered", answered), INT("addresses", s->count));
    crdi_show_table(out, list, columns, "");
    crdi_say(out, "%s%d slave%s at %d address%s\n", any ? "\n" : "", answered,
             crdi_plural(answered), s->count, s->count == 1 ? "" : "es");
}

// ---- the command -------------------------------------------------------------------------------

// Where answers arrive: from others than this machine only if one of the addresses is elsewhere.
static crd_status listen_for_answers(scanner* s, crd_dcp_net* net)
{
    crd_dcp_address at = {.ip = 0x7F000001, .transport = CRD_DCP_UDP};
    for (int i = 0; i < s->count; i++) {
        if (s->sightings[i].address.ip >> 24 != 127) { at.ip = 0; }
    }
    return crd_dcp_net_listen(net, &at);
}

static crd_status check_arguments(scanner* s)
{
    int silent = 0;
    const char* first = NULL;
    for (int i = 0; i < s->argument_count; i++) {
        if (addresses_of(s, i, false) == 0 || addresses_of(s, i, true) > 0) { continue; }
        silent++;
        first = first ? first : s->arguments[i];
    }
    if (silent == 0) { return CRD_OK; }
    return crdi_fail(s->cli->ctx, CRD_E_DIFFERENT, "no slave answers at %s%s",
                     crdi_clip(first).text, silent > 1 ? " and others" : "");
}

static crd_status run_scan(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    static const char* const usual[] = {"127.0.0.1:8080-8089"};
    const scan_options* o = options;
    scanner s = {.cli = cli, .o = o, .arguments = usual, .argument_count = 1};
    crdi_query query = {0};
    crd_status st = CRD_OK;
    if (arguments->count > 0) {
        s.arguments = arguments->items;
        s.argument_count = arguments->count;
    }
    crd_arena_init(&s.arena, cli->ctx);
    CRD_TRY(read_arguments(&s));
    CRD_TRY(crdi_query_open(cli->ctx, o->key, o->capture, &query));
    CRD_TRY(listen_for_answers(&s, query.net));
    crdi_dcp_scan_options scan = crdi_dcp_scan_defaults();
    if (!isnan(o->timeout)) { scan.timeout = o->timeout; }
    if (o->ids >= 0) { scan.most_ids = o->ids; }
    scan.descriptions = (const crd_dcp_description* const*)s.descriptions;
    scan.description_count = s.description_count;
    scan.cancelled = crdi_query_stopped;
    CRD_TRY(crdi_dcp_scan(cli->ctx, query.net, &scan, s.sightings, s.count));
    int answered = 0;
    for (int i = 0; i < s.count; i++) {
        answered += s.sightings[i].answered;
    }
    put_sightings(&s, answered, out);
    st = crdi_query_stopped(NULL) ? crdi_fail(cli->ctx, CRD_E_DIFFERENT, "interrupted")
                                  : check_arguments(&s);
fail : {
    const crd_status closed = crdi_query_close(&query);
    for (int i = 0; i < s.description_count; i++) {
        crd_dcp_description_destroy(s.descriptions[i]);
    }
    crd_free(cli->ctx, s.places);
    crd_arena_clear(&s.arena);
    return st < 0 ? st : closed;
}
}

static const crdi_option rows[] = {
    OPT_TIME(scan_options, timeout, "timeout", CRDI_POSITIVE,
             "wait this long for answers, twice; 0.5 s unless given"),
    OPT_INT(scan_options, ids, "ids", "N",
            "ask for slaves that are registered under ids up to this; 255 unless given, and 8 at "
            "more than 64 addresses"),
    OPT_FLAG(scan_options, all, "all", "show the addresses of ranges where nobody answers, too"),
    CRDI_PROBE_OPTIONS(scan_options),
    CRDI_JSON_OPTION("print {slaves: [{address, answers, state, id, round_trip, name, file, "
                     "uuid_fits, note}], answered, addresses}"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_dcp_scan = {
    .name = "dcp scan",
    .arguments = "[ADDRESS|HOST[:PORTS]|X.dcpx ...]",
    .summary = "find DCP slaves, their states and descriptions",
    .description =
        "Asks all addresses at the same time for a slave and its state, without disturbing it: "
        "anybody may ask INF_state. An argument is an address (udp://bench-7:8080, "
        "tcp://bench-7:8080), a host (UDP and TCP, port 8080 unless given), a range of addresses "
        "and ports (192.168.2.0/28:8080-8090; 4096 at most), or the description of a slave, which "
        "says where it should be. Of a slave in ALIVE the uuid is compared with those of the "
        "descriptions: by an STC_register in an operating mode that does not exist, which a slave "
        "refuses for the uuid if that is wrong, too. Without arguments it looks at "
        "127.0.0.1:8080-8089. The exit code is 1 if nobody answers at one of the arguments.",
    .examples = {{"cardan dcp scan bench.dcpx", "is the slave of this description there?"},
                 {"cardan dcp scan 192.168.2.0/28:8080-8083", "who is in this network?"},
                 {"cardan dcp scan 192.168.2.7 a.dcpx b.dcpx --json", "which of them is it?"}},
    OPTIONS(rows, scan_options),
    .max_arguments = -1,
    .extensions = "dcpx|dcp",
    .run = run_scan,
};
