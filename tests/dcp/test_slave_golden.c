// Captured sessions of DCPLib, played to our slave: it gives the same bytes, except where DCPLib
// breaks the standard. What goes to one peer keeps its order; how data and notifications to
// different peers mix is up to the threads of DCPLib, and not compared.
#include "rig.h"

typedef struct session {
    FILE* file;
    char line[1024];
    char from[16], to[16], hex[2 * RIG_BYTES + 1];
    int line_number;
} session;

static void session_open(session* f, const char* name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/dcp/golden/%s", TEST_SOURCE_DIR, name);
    *f = (session){.file = fopen(path, "r")};
    check(f->file);
}

/// The next packet; false: a comment that begins with "# ..." (then `line` has it), or the end.
static bool session_next(session* f)
{
    while (fgets(f->line, sizeof f->line, f->file)) {
        f->line_number++;
        if (strncmp(f->line, "# ...", 5) == 0) { return false; }
        if (f->line[0] == '#') { continue; }
        char route[33] = "";
        check_int(sscanf(f->line, "%32s %1024s", route, f->hex), 2);
        char* arrow = strchr(route, '>');
        check(arrow);
        *arrow = 0;
        snprintf(f->from, sizeof f->from, "%.15s", route);
        snprintf(f->to, sizeof f->to, "%.15s", arrow + 1);
        return true;
    }
    f->line[0] = 0;
    return false;
}

// "S2:60002": the port, or that of a name.
static uint16_t port_of(const char* name)
{
    const char* colon = strchr(name, ':');
    return colon ? (uint16_t)atoi(colon + 1) : name[0] == 'M' ? 8081 : 8080;
}

// The next one to the peer is this; acknowledgements may have been left out of the record.
static void expect(rig* r, const session* f, bool skip_acks)
{
    rig_packet p;
    do {
        p = rig_take(r, port_of(f->to));
    } while (skip_acks && p.bytes[0] == CRDI_DCP_RSP_ACK);
    uint8_t want[RIG_BYTES];
    const size_t length = rig_bytes(f->hex, want);
    if (p.length != length || memcmp(p.bytes, want, length) != 0) {
        char got[2 * RIG_BYTES + 1] = "";
        for (size_t i = 0; i < p.length; i++) {
            snprintf(got + 2 * i, 3, "%02x", p.bytes[i]);
        }
        fail_msg("line %d: sent %s, expected %s", f->line_number, got, f->line);
    }
}

// ---- NRT ---------------------------------------------------------------------------------------

static void rounds_that_are_left_out(rig* r)
{
    r->seq = 35;
    for (uint16_t i = 0; i < 2; i++) {
        rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 2);
        rig_states(r, "0c0d");
        rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
        check_int(rig_take(r, 0).bytes[2], CRD_DCP_SENDING_D);
        check_int(rig_take(r, 0).bytes[0], CRDI_DCP_DAT_INPUT_OUTPUT);
        rig_states(r, "0b");
    }
}

static void
an_nrt_run_with_strings_binaries_arrays_and_parameters_gives_the_recorded_bytes(void** state)
{
    rig* r = rig_create(NULL, NULL);
    session f;
    session_open(&f, "nrt_udp.txt");
    for (;;) {
        if (!session_next(&f)) {
            if (!f.line[0]) { break; }
            rounds_that_are_left_out(r);
        } else if (f.from[0] == 'M') {
            rig_quiet(r);
            rig_hex(r, f.hex);
        } else {
            expect(r, &f, false);
        }
    }
    fclose(f.file);
    rig_quiet(r);
    check(f.line_number > 120);
    check_int(r->limit, 5); // int8 -7 by CFG_parameter, then int16 5 by DAT_parameter
    check_int(r->mode, 2);
    check_near(r->profile[2], 3, 0);
    check_int(r->listening_count, 2);
    check_int(r->listening[0].port, 9001);
    check_int(r->listening[1].port, 9002);
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(r->slave);
    check_int(c.requests, 44);
    check_int(c.acks, 44);
    check_int(c.data_out, 6);
    check_int(c.steps, 8);
    rig_destroy(r);
}

// ---- SRT ---------------------------------------------------------------------------------------

// The record has parts of the configuration only.
static void configure_srt(rig* r)
{
    rig_hex(r, "01000001006f1d2c3b4a594e688f700123456789ab010100");
    rig_expect(r, "b0000001");
    rig_expect(r, "e00101");
    r->seq = 1;
    rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 20);
    rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 10);
    rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .pos = 0, .vr = 11);
    rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .pos = 1, .vr = 14);
    rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 20);
    rig_do(r, .type = CRDI_DCP_CFG_STEPS, .id = 10, .steps = 2);
    rig_network(r, CRDI_DCP_CFG_TARGET_NETWORK, 10, 8081);
    rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = 0, .vr = 1,
           .data_type = CRD_DCP_FLOAT64);
    rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = 1, .vr = 3, .data_type = CRD_DCP_STRING);
    rig_network(r, CRDI_DCP_CFG_SOURCE_NETWORK, 20, 9001);
    rig_do(r, .type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .id = 30, .vr = 22,
           .data_type = CRD_DCP_FLOAT64);
    rig_network(r, CRDI_DCP_CFG_PARAM_NETWORK, 30, 9002);
    check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE}).state, CRD_DCP_CONFIGURATION);
    rig_make_ready(r);
    check_int(r->seq, 16);
}

// Steps until `now`, one after the other as they are due.
static void pass(rig* r, double now)
{
    for (double t; (t = crd_dcp_slave_next(r->slave)) <= now;) {
        r->now = fmax(r->now, t);
        crd_dcp_slave_advance(r->slave, r->now);
    }
    r->now = fmax(r->now, now);
}

static void an_srt_run_with_start_time_and_heartbeat_gives_the_recorded_bytes(void** state)
{
    crd_dcp_description d = rig_description();
    d.can_monitor_heartbeat = d.has_heartbeat = true;
    d.heartbeat_numerator = 1;
    d.heartbeat_denominator = 2;
    rig* r = rig_create(&d, NULL);
    const double start = 1794712452;
    r->now = start - 0.75;
    configure_srt(r);
    // When the packets of the master arrived, seen from the start. The first three lines are part
    // of the configuration above.
    static const double times[] = {-0.7,  -0.5,  -0.3, -0.1, 0.01, 0.05, 0.28,
                                   0.281, 0.282, 0.47, 0.68, 0.69, 0.7,  0.71};
    size_t k = 0;
    session f;
    session_open(&f, "srt_udp.txt");
    for (int i = 0; i < 3; i++) {
        check(session_next(&f));
    }
    while (session_next(&f)) {
        if (f.from[0] == 'M') {
            check(k < sizeof times / sizeof *times);
            pass(r, start + times[k++]);
            rig_hex(r, f.hex);
        } else {
            if (r->out_count == 0 && k < sizeof times / sizeof *times) {
                pass(r, start + times[k]);
            }
            expect(r, &f, false);
        }
    }
    fclose(f.file);
    rig_quiet(r);
    check_int(k, sizeof times / sizeof *times);
    check_int(crd_dcp_slave_get_counts(r->slave).steps, 15); // 0 to 0.7 s
    check_int(crd_dcp_slave_get_counts(r->slave).late_steps, 0);
    rig_destroy(r);
}

// ---- slaves with recorded outputs --------------------------------------------------------------

// The float64 that a slave sent, row by row, as the record has them.
static int read_tape(const char* name, const char* from, double* tape, int width)
{
    session f;
    session_open(&f, name);
    int rows = 0;
    while (session_next(&f)) {
        uint8_t bytes[RIG_BYTES];
        if (strcmp(f.from, from) != 0 || strncmp(f.hex, "f0", 2) != 0) { continue; }
        check_int(rig_bytes(f.hex, bytes), 5 + 8 * width);
        memcpy(tape + rows++ * width, bytes + 5, (size_t)width * 8);
    }
    fclose(f.file);
    return rows;
}

static crd_dcp_description small_description(const crd_dcp_variable* variables, int count,
                                             const char* uuid)
{
    static const crd_dcp_resolution resolutions[] = {{1, 1000, 1000, false}};
    crd_dcp_description d = rig_description();
    d.variables = variables;
    d.variable_count = count;
    d.resolutions = resolutions;
    d.resolution_count = 1;
    rig_bytes(uuid, d.uuid);
    return d;
}

static double got[8];

static crd_dcp_outcome set_got(void* user, int variable, const crd_dcp_slot* v)
{
    (void)user;
    got[variable] = *v->real;
    return CRD_DCP_DONE;
}

static rig* create_small(const crd_dcp_description* d)
{
    rig* r = rig_create(d, NULL);
    crd_dcp_slave_destroy(r->slave);
    crd_dcp_plant plant = rig_plant(r);
    plant.set = set_got;
    const crd_dcp_link link = rig_link(r);
    check_ok(crd_dcp_slave_create(r->ctx, &r->d, &plant, &link, NULL, &r->slave));
    return r;
}

static void a_master_that_does_not_wait_gets_all_answers_in_order_and_data_loop_back(void** state)
{
    static const crd_dcp_variable variables[] = {
        {RIG_HEAD("y", 1, FLOAT64, "0"), RIG_OUT, RIG_FREE},
        {RIG_HEAD("u", 2, FLOAT64, "0"), RIG_IN, RIG_FREE},
    };
    const crd_dcp_description d =
        small_description(variables, 2, "b5279485720d45429f29bee4d9a75ef9");
    double tape[8];
    check_int(read_tape("pipelined.txt", "S", tape, 1), 3);
    rig* r = create_small(&d);
    r->tape = tape;
    r->tape_width = 1;
    const double start = 1794710141;
    r->now = start - 1;
    session f;
    session_open(&f, "pipelined.txt");
    bool started = false;
    while (session_next(&f)) {
        if (f.from[0] == 'M') {
            started = started || strncmp(f.hex, "060a", 4) == 0;
            if (strncmp(f.hex, "060b", 4) == 0) { r->now = start + 0.025; }
            rig_hex(r, f.hex);
        } else {
            if (started && r->now < start + 0.02) { pass(r, start + 0.02); }
            expect(r, &f, false);
            // What goes to our own port comes in there.
            if (strncmp(f.hex, "f0", 2) == 0) { rig_hex(r, f.hex); }
        }
    }
    fclose(f.file);
    rig_quiet(r);
    check_int(r->listening_count, 0); // it shares the socket of the requests
    check_near(got[1], tape[2], 0);
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(r->slave);
    check_int(c.data_out, 3);
    check_int(c.data_in, 3);
    rig_destroy(r);
}

static void two_slaves_exchange_data_directly_as_recorded(void** state)
{
    static const crd_dcp_variable first[] = {
        {RIG_HEAD("x", 1, FLOAT64, "0"), RIG_OUT, RIG_FREE},
        {RIG_HEAD("v", 2, FLOAT64, "0"), RIG_OUT, RIG_FREE},
        {RIG_HEAD("F", 3, FLOAT64, "0"), RIG_IN, RIG_FREE},
    };
    static const crd_dcp_variable second[] = {
        {RIG_HEAD("F", 5, FLOAT64, "0"), RIG_OUT, RIG_FREE},
        {RIG_HEAD("x", 3, FLOAT64, "0"), RIG_IN, RIG_FREE},
        {RIG_HEAD("v", 4, FLOAT64, "0"), RIG_IN, RIG_FREE},
    };
    const crd_dcp_description d[2] = {
        small_description(first, 3, "bcb912fe5e5911ecbf630242ac130002"),
        small_description(second, 3, "b3663a745e5911ecbf630242ac130003")};
    double tapes[2][16];
    check_int(read_tape("two_slaves.txt", "S1", tapes[0], 2), 2);
    check_int(read_tape("two_slaves.txt", "S2", tapes[1], 1), 2);
    rig* r[2];
    const double start = 1794710214;
    for (int i = 0; i < 2; i++) {
        r[i] = create_small(&d[i]);
        r[i]->tape = tapes[i];
        r[i]->tape_width = 2 - i;
        r[i]->now = start - 1;
    }
    memset(got, 0, sizeof got);
    session f;
    session_open(&f, "two_slaves.txt");
    double now = start - 1;
    while (session_next(&f)) {
        const int i = (f.from[0] == 'M' ? f.to[1] : f.from[1]) - '1';
        if (strncmp(f.hex, "060d", 4) == 0) { now = start + 0.05; } // steps are 0.1 s
        if (strncmp(f.hex, "090e", 4) == 0) { now = start + 1.05; }
        if (f.from[0] == 'M') {
            r[i]->now = now;
            rig_hex(r[i], f.hex);
            continue;
        }
        // Both clocks go on before the first packet that needs it.
        if (strncmp(f.hex, "e0020a", 6) == 0) { now = start; }
        if (strncmp(f.hex, "f0010001", 8) == 0) { now = start + 1; }
        pass(r[0], now);
        pass(r[1], now);
        expect(r[i], &f, true);
        if (strncmp(f.hex, "f0", 2) == 0) { rig_hex(r[1 - i], f.hex); }
    }
    fclose(f.file);
    for (int i = 0; i < 2; i++) {
        while (r[i]->out_count) { // the last acknowledgement
            check_int(rig_take(r[i], 0).bytes[0], CRDI_DCP_RSP_ACK);
        }
        const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(r[i]->slave);
        check_int(c.data_in, 2);
        check_int(c.data_out, 2);
        check_int(c.data_missed + c.data_old + c.data_dropped, 0);
        check_int(crd_dcp_slave_state(r[i]->slave), CRD_DCP_ALIVE);
    }
    check_near(got[1], tapes[0][2], 0); // x of the second slave: what the first one sent last
    rig_destroy(r[0]);
    rig_destroy(r[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            an_nrt_run_with_strings_binaries_arrays_and_parameters_gives_the_recorded_bytes),
        cmocka_unit_test(an_srt_run_with_start_time_and_heartbeat_gives_the_recorded_bytes),
        cmocka_unit_test(a_master_that_does_not_wait_gets_all_answers_in_order_and_data_loop_back),
        cmocka_unit_test(two_slaves_exchange_data_directly_as_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
