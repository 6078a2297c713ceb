// The slave on a virtual clock: checks in their order, states, values, time, faults.
#include "rig.h"

// ---- refusals, in the order of the checks ------------------------------------------------------

static void what_is_not_for_it_is_dropped_without_an_answer(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_receive(r, NULL, 0);
    rig_hex(r, "00");
    rig_hex(r, "80");       // no receiver
    rig_hex(r, "800100");   // one byte short of it
    rig_hex(r, "80010000"); // nobody: 0 is the master
    rig_hex(r, "7f010001"); // no such type
    rig_hex(r, "b0010001"); // meant for a master
    rig_hex(r, "e00101");
    rig_quiet(r);
    rig_register(r, CRD_DCP_NRT);
    rig_hex(r, "80010002"); // another slave
    rig_quiet(r);
    // None of it took a sequence id.
    check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE}).state, CRD_DCP_CONFIGURATION);
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(r->slave);
    check_int(c.dropped, 9);
    check_int(c.requests, 2);
    rig_destroy(r);
}

static void a_registration_is_refused_for_the_first_thing_that_is_wrong(void** state)
{
    // Recorded with DCPLib, but for the sender and the next sequence id where DCPLib says 0 and 1.
    static const char* const cases[][2] = {
        {"80010007", "b201000700"}, // any receiver, and it is the sender of the answer
        {"0304000100", "b104000105000310"},
        {"01060001016f1d2c3b4a594e688f700123456789ab020100", "b106000107000d20"},
        {"010700010000000000000000000000000000000000020100", "b107000108001120"},
        {"01080001006f1d2c3b4a594e688f700123456789ab000100", "b108000109000820"},
        {"01080001006f1d2c3b4a594e688f700123456789ab070100", "b108000109000820"},
        {"010a0001006f1d2c3b4a594e688f700123456789ab020200", "b10a00010b000520"},
        {"010b0001006f1d2c3b4a594e688f700123456789ab020109", "b10b00010c000620"},
        {"010c0001006f1d2c3b4a594e688f700123456789ab0201", "b10c00010d000120"},
        {"070d00010001000000", "b10d00010e000310"}, // no mode yet, so not for its mode
        {"810e0001", "b10e00010f000310"},
        {"01e80301006f1d2c3b4a594e688f700123456789ab020100", "b0e80301"},
    };
    rig* r = rig_create(NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig_hex(r, cases[i][0]);
        rig_expect(r, cases[i][1]);
    }
    rig_expect(r, "e00101");
    rig_quiet(r);
    rig_destroy(r);
}

static void recorded_refusals_in_configuration_come_back_byte_for_byte(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_hex(r, "01e80301006f1d2c3b4a594e688f700123456789ab020100");
    rig_expect(r, "b0e80301");
    rig_expect(r, "e00101");
    static const struct {
        const char *request, *answer;
    } cases[] = {
        {"80ed0301", "b1ed0301e9031320"}, // a gap
        {"80e90301", "b2e9030101"},
        {"80e90301", "b1e90301ea031320"}, // a duplicate
        {"01ea0301006f1d2c3b4a594e688f700123456789ab020100", "b1ea0301eb030310"},
        {"20eb03010100000003000000", "b1eb0301ec030f20"},
        {"21ec0301881300000a00", "b0ec0301"}, // 5000 steps, of nothing yet
        {"23ed03010a0000000b00000000000000", "b1ed0301ee030e20"},
        {"24ee0301", "b0ee0301"},
        {"23ef03010a0000000b00000000000000", "b0ef0301"},
        {"21f00301000000000a00", "b1f00301f1030e20"},
        {"22f1030114000000050000000000000009", "b1f10301f2030b20"}, // float64 to uint8
        {"2bf203010a0003", "b1f20301f3030a20"},
        {"26f3030114000000040100007f", "b1f30301f4030720"},         // port 1024
        {"27f4030117000000000000000a0400000062656566", "b0f40301"}, // a string, refused by DCPLib
        {"2af50301010302", "b0f50301"},                             // on notification, likewise
        {"2af60301010901", "b1f60301f7030320"},
        {"2af70301090301", "b1f70301f8030220"},
        {"2af80301010303", "b1f80301f9030420"},
        {"2af90301010301", "b0f90301"},
        {"82fa0301010a", "b4fa0301"}, // nothing kept: an empty answer, no empty datagram
        {"82fb0301090a", "b1fb0301fc030220"},
        {"81fc0301", "b1fc0301fd030310"},
        {"03fd030105", "b1fd0301fe030d20"},
        {"24fe030100", "b1fe0301ff030120"}, // CFG_clear has 4 bytes
        {"09ff030101", "b1ff030100040310"},
        {"0600040101000000000000", "b100040101040120"}, // length comes before state
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig_hex(r, cases[i].request);
        rig_expect(r, cases[i].answer);
        rig_quiet(r);
    }
    rig_destroy(r);
}

static void each_cfg_is_refused_with_the_code_of_its_fault(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_SRT);
    const uint8_t f64 = CRD_DCP_FLOAT64;
    rig_refused(r, 0x200F, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 0, .denominator = 1);
    rig_refused(r, 0x200F, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 0);
    rig_refused(r, 0x200F, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 101, .denominator = 1000);
    rig_refused(r, 0x200F, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 30);
    rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 3, .denominator = 300);
    rig_refused(r, 0x2012, .type = CRDI_DCP_CFG_INPUT, .vr = 999, .data_type = f64);
    rig_refused(r, 0x2012, .type = CRDI_DCP_CFG_INPUT, .vr = 11, .data_type = f64);
    rig_refused(r, 0x2012, .type = CRDI_DCP_CFG_INPUT, .vr = 11, .data_type = 77);
    rig_refused(r, 0x200B, .type = CRDI_DCP_CFG_INPUT, .vr = 1, .data_type = CRD_DCP_INT64);
    rig_refused(r, 0x200B, .type = CRDI_DCP_CFG_INPUT, .vr = 1, .data_type = 12);
    rig_do(r, .type = CRDI_DCP_CFG_INPUT, .vr = 1, .data_type = CRD_DCP_INT32);
    rig_refused(r, 0x4006, .type = CRDI_DCP_CFG_INPUT, .pos = 256, .vr = 1, .data_type = f64);
    rig_refused(r, 0x2012, .type = CRDI_DCP_CFG_OUTPUT, .vr = 1);
    rig_refused(r, 0x2012, .type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .vr = 21, .data_type = f64);
    rig_refused(r, 0x2012, .type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .vr = 31, .data_type = 1);
    rig_refused(r, 0x200B, .type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .vr = 24, .data_type = f64);
    rig_refused(r, 0x2010, .type = CRDI_DCP_CFG_TARGET_NETWORK, .transport = CRD_DCP_BLUETOOTH);
    rig_refused(r, 0x2010, .type = CRDI_DCP_CFG_TARGET_NETWORK, .transport = CRD_DCP_USB);
    rig_refused(r, 0x2010, .type = CRDI_DCP_CFG_SOURCE_NETWORK, .transport = 77);
    rig_refused(r, 0x2007, .type = CRDI_DCP_CFG_SOURCE_NETWORK, .port = 0, .address = 0x7F000001);
    rig_refused(r, 0x2007, .type = CRDI_DCP_CFG_PARAM_NETWORK, .port = 80, .address = 0x7F000001);
    rig_refused(r, 0x2007, .type = CRDI_DCP_CFG_TARGET_NETWORK, .port = 0, .address = 0x7F000001);
    const uint8_t long_text[37] = {33};
    const uint8_t one[8] = {1};
    rig_refused(r, 0x2012, .type = CRDI_DCP_CFG_PARAMETER, .vr = 1, .data_type = f64,
                .payload = one, .payload_length = 8);
    rig_refused(r, 0x200B, .type = CRDI_DCP_CFG_PARAMETER, .vr = 24, .data_type = f64,
                .payload = one, .payload_length = 8);
    rig_refused(r, 0x2009, .type = CRDI_DCP_CFG_PARAMETER, .vr = 23, .data_type = CRD_DCP_STRING,
                .payload = long_text, .payload_length = 37);
    rig_refused(r, 0x2001, .type = CRDI_DCP_CFG_PARAMETER, .vr = 23, .data_type = CRD_DCP_STRING,
                .payload = long_text, .payload_length = 36);
    rig_refused(r, 0x2001, .type = CRDI_DCP_CFG_PARAMETER, .vr = 21, .data_type = f64,
                .payload = one, .payload_length = 7);
    rig_destroy(r);
}

static void what_the_description_does_not_offer_is_not_supported(void** state)
{
    crd_dcp_description d = rig_description();
    d.can_accept_config = d.can_reset = d.can_log_on_request = d.can_log_on_notification = false;
    d.tcp.offered = false;
    rig* r = rig_create(&d, NULL);
    rig_register(r, CRD_DCP_SRT);
    const uint8_t types[] = {CRDI_DCP_CFG_INPUT,          CRDI_DCP_CFG_OUTPUT,
                             CRDI_DCP_CFG_TARGET_NETWORK, CRDI_DCP_CFG_SOURCE_NETWORK,
                             CRDI_DCP_CFG_LOGGING,        CRDI_DCP_INF_LOG,
                             CRDI_DCP_STC_RESET,          CRDI_DCP_STC_DO_STEP};
    for (size_t i = 0; i < sizeof types; i++) {
        rig_refused(r, 0x4005, .type = types[i]);
    }
    rig_refused(r, 0x2010, .type = CRDI_DCP_CFG_PARAM_NETWORK, .transport = CRD_DCP_TCP,
                .port = 9000, .address = 0x7F000001);
    // Not supported comes before a wrong length, and that before a wrong state.
    rig_hex(r, "0a0a0001");
    rig_expect(r, "b10a00010b000540");
    rig_destroy(r);

    d.can_log_on_request = true;
    r = rig_create(&d, NULL);
    rig_register(r, CRD_DCP_SRT);
    rig_refused(r, 0x4001, .type = CRDI_DCP_CFG_LOGGING, .category = 9, .level = 9, .mode = 2);
    rig_refused(r, 0x2002, .type = CRDI_DCP_CFG_LOGGING, .category = 9, .level = 9, .mode = 1);
    rig_destroy(r);

    d.can_log_on_request = false;
    d.can_log_on_notification = true;
    r = rig_create(&d, NULL);
    rig_register(r, CRD_DCP_SRT);
    rig_refused(r, 0x4002, .type = CRDI_DCP_CFG_LOGGING, .category = 9, .level = 9, .mode = 1);
    rig_destroy(r);
}

static void prepare_names_the_first_thing_that_is_missing(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_SRT);
    const uint8_t f64 = CRD_DCP_FLOAT64, prepare = CRDI_DCP_STC_PREPARE;
    rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = 1, .vr = 1, .data_type = f64);
    rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .pos = 1, .vr = 11);
    rig_do(r, .type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .id = 30, .pos = 1, .vr = 22,
           .data_type = f64);
    rig_refused(r, 0x200D, .type = prepare, .state = 5);
    rig_refused(r, 0x3001, .type = prepare);
    rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = 1, .vr = 1, .data_type = f64); // again
    rig_refused(r, 0x3001, .type = prepare);
    rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = 0, .vr = 2, .data_type = f64);
    rig_refused(r, 0x3002, .type = prepare);
    rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .pos = 0, .vr = 11);
    rig_refused(r, 0x3003, .type = prepare);
    rig_do(r, .type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .id = 30, .pos = 0, .vr = 22,
           .data_type = f64);
    rig_refused(r, 0x3004, .type = prepare);
    rig_network(r, CRDI_DCP_CFG_SOURCE_NETWORK, 20, 9001);
    rig_refused(r, 0x3005, .type = prepare);
    rig_network(r, CRDI_DCP_CFG_TARGET_NETWORK, 10, 8081);
    rig_refused(r, 0x3006, .type = prepare);
    rig_network(r, CRDI_DCP_CFG_PARAM_NETWORK, 30, 9002);
    rig_refused(r, 0x3008, .type = prepare);
    rig_do(r, .type = CRDI_DCP_CFG_STEPS, .id = 10, .steps = 1);
    rig_refused(r, 0x3009, .type = prepare); // one that is recommended is not fixed
    rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
    rig_refused(r, 0x3007, .type = prepare);
    rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 10);
    rig_refused(r, 0x3007, .type = prepare);
    rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 20);
    rig_do(r, .type = prepare);
    rig_states(r, "0203");
    rig_destroy(r);
}

static void a_pdu_that_cannot_be_sent_is_refused_when_it_is_configured(void** state)
{
    crd_dcp_description d = rig_description();
    d.udp.max_pdu_size = 5 + 8 + 4; // speed and ticks
    for (int longer = 0; longer < 2; longer++) {
        rig* r = rig_create(&d, NULL);
        rig_register(r, CRD_DCP_NRT);
        rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
        rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .pos = 0, .vr = 11);
        rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .pos = 1, .vr = longer ? 14 : 13);
        rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 10);
        rig_network(r, CRDI_DCP_CFG_TARGET_NETWORK, 10, 8081);
        if (longer) {
            rig_refused(r, 0x4006, .type = CRDI_DCP_STC_PREPARE);
        } else { // and NRT needs no CFG_steps
            rig_do(r, .type = CRDI_DCP_STC_PREPARE);
            rig_states(r, "0203");
        }
        rig_destroy(r);
    }
}

static void a_fixed_resolution_and_fixed_steps_may_only_be_confirmed(void** state)
{
    static const crd_dcp_resolution fixed = {1, 1, 1000, false};
    crd_dcp_variable variables[RIG_VARIABLES];
    memcpy(variables, rig_variables, sizeof variables);
    variables[RIG_SPEED].fixed_steps = true;
    variables[RIG_SPEED].default_steps = 4;
    crd_dcp_description d = rig_description();
    d.variables = variables;
    d.resolutions = &fixed;
    d.resolution_count = 1;
    d.fixed_resolution = true;
    d.nrt_fixed_steps = true;
    d.nrt_default_steps = 2;
    rig* r = rig_create(&d, NULL);
    rig_register(r, CRD_DCP_NRT);
    rig_refused(r, 0x200F, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
    rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 2, .denominator = 2000);
    rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .vr = 11);
    rig_refused(r, 0x200E, .type = CRDI_DCP_CFG_STEPS, .id = 10, .steps = 1);
    rig_do(r, .type = CRDI_DCP_CFG_STEPS, .id = 10, .steps = 4);
    rig_do(r, .type = CRDI_DCP_CFG_STEPS, .id = 11, .steps = 5);
    rig_refused(r, 0x200E, .type = CRDI_DCP_CFG_OUTPUT, .id = 11, .vr = 11);
    rig_destroy(r);
}

static void steps_of_nrt_keep_to_the_description(void** state)
{
    crd_dcp_description d = rig_description();
    d.can_vary_steps = false;
    rig* r = rig_create(&d, NULL);
    rig_run(r, CRD_DCP_NRT);
    rig_refused(r, 0x200E, .type = CRDI_DCP_STC_DO_STEP, .steps = 101);
    rig_refused(r, 0x200E, .type = CRDI_DCP_STC_DO_STEP, .steps = 0);
    rig_refused(r, 0x200D, .type = CRDI_DCP_STC_DO_STEP, .steps = 0, .state = 10);
    rig_refused(r, 0x1003, .type = CRDI_DCP_STC_RUN);
    rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 100);
    rig_states(r, "0c0d");
    check_int(r->last_steps, 100);
    check_near(r->last_resolution, 0.01, 0);
    rig_refused(r, 0x1003, .type = CRDI_DCP_STC_DO_STEP, .steps = 100);
    rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
    r->out_count = 0;
    rig_refused(r, 0x4003, .type = CRDI_DCP_STC_DO_STEP, .steps = 99);
    rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 100);
    r->out_count = 0;
    rig_do(r, .type = CRDI_DCP_STC_STOP);
    rig_states(r, "0f10");
    rig_do(r, .type = CRDI_DCP_STC_RESET);
    rig_states(r, "01");
    rig_configure(r);
    rig_make_ready(r);
    rig_do(r, .type = CRDI_DCP_STC_RUN);
    rig_states(r, "090a");
    rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 99); // of another run
    rig_states(r, "0c0d");
    rig_destroy(r);
}

// ---- who may ask -------------------------------------------------------------------------------

static void from(rig* r, uint32_t ip, uint16_t port, const char* hex)
{
    uint8_t bytes[RIG_BYTES];
    const size_t n = rig_bytes(hex, bytes);
    const crd_dcp_address peer = {.ip = ip, .port = port};
    crd_dcp_slave_receive(r->slave, &peer, &rig_control, bytes, n, r->now);
}

static void another_host_may_look_at_the_state_and_nothing_else(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_NRT);
    from(r, 0x0A000001, 5000, "24010001");
    from(r, 0x0A000001, 5000, "0201000101");
    from(r, 0x0A000001, 5000, "8001000100");
    rig_quiet(r);
    from(r, 0x0A000001, 5000, "80d20401"); // whatever its sequence id
    check_int(r->out[0].to.ip, 0x0A000001);
    check_int(r->out[0].to.port, 5000);
    rig_expect(r, "b2d2040101");
    rig_do(r, .type = CRDI_DCP_CFG_CLEAR); // the master goes on counting
    check_int(crd_dcp_slave_get_counts(r->slave).dropped, 3);
    rig_destroy(r);
}

// In every state of a run, in sequence and not: nothing acts, nothing is told, all is counted.
static void other_ports_of_the_masters_host_are_strangers(void** state)
{
    static const uint8_t requests[] = {
        CRDI_DCP_STC_REGISTER,  CRDI_DCP_STC_DEREGISTER,   CRDI_DCP_STC_PREPARE,
        CRDI_DCP_STC_CONFIGURE, CRDI_DCP_STC_INITIALIZE,   CRDI_DCP_STC_RUN,
        CRDI_DCP_STC_DO_STEP,   CRDI_DCP_STC_SEND_OUTPUTS, CRDI_DCP_STC_STOP,
        CRDI_DCP_STC_RESET,     CRDI_DCP_CFG_CLEAR,        CRDI_DCP_CFG_STEPS,
        CRDI_DCP_CFG_PARAMETER, CRDI_DCP_INF_ERROR,        CRDI_DCP_INF_LOG,
    };
    const crd_dcp_address other = {.ip = 0x7F000001, .port = 5000};
    rig* r = rig_create(NULL, NULL);
    rig_run(r, CRD_DCP_NRT);
    int64_t sent = 0;
    for (size_t i = 0; i < sizeof requests; i++) {
        for (uint16_t seq = r->seq; seq != (uint16_t)(r->seq + 2); seq++) {
            uint8_t bytes[RIG_BYTES];
            const crdi_dcp_pdu p = {
                .type = requests[i], .seq = seq, .peer = 1, .state = CRD_DCP_RUNNING, .steps = 1};
            const size_t n = crdi_dcp_encode(&p, bytes, sizeof bytes);
            r->now += 20;     // however long its master is silent
            r->out_count = 0; // data
            crd_dcp_slave_receive(r->slave, &other, &rig_control, bytes, n, r->now);
            for (int k = 0; k < r->out_count; k++) {
                check(r->out[k].to.port != 5000);
            }
            check_int(crd_dcp_slave_get_counts(r->slave).foreign, ++sent);
            check_int(crd_dcp_slave_state(r->slave), CRD_DCP_RUNNING);
        }
    }
    r->out_count = 0;
    rig_do(r, .type = CRDI_DCP_STC_STOP); // the master's own, with the number that is next
    rig_destroy(r);
}

static void a_master_that_was_restarted_takes_over_what_is_at_rest(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_NRT);
    r->now += 2.9;
    from(r, 0x7F000001, 5000, "0263000101"); // the master is not silent yet
    rig_quiet(r);
    check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE}).type, CRDI_DCP_RSP_STATE_ACK);
    r->now += 2.9;
    from(r, 0x7F000001, 5000, "0263000101");
    rig_quiet(r);
    r->now += 0.2;
    from(r, 0x7F000002, 5000, "0263000101"); // another host never
    rig_quiet(r);
    from(r, 0x7F000001, 5000, "0263000101"); // learns the sequence id
    const rig_packet p = rig_take(r, 5000);
    check_int(p.bytes[0], CRDI_DCP_RSP_NACK);
    check_int(p.bytes[4], r->seq);
    char bye[32];
    snprintf(bye, sizeof bye, "02%02x000101", r->seq);
    from(r, 0x7F000001, 5000, bye);
    check_int(rig_take(r, 5000).bytes[0], CRDI_DCP_RSP_ACK);
    check_int(crd_dcp_slave_state(r->slave), CRD_DCP_ALIVE);
    rig_destroy(r);
}

static void on_request_a_master_goes_on_from_another_port(void** state)
{
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.any_port = true;
    rig* r = rig_create(NULL, &opt);
    rig_run(r, CRD_DCP_SRT);
    from(r, 0x7F000001, 5000, "80630001"); // learns the state, and disturbs nobody
    check_int(r->out[0].to.port, 5000);
    rig_expect(r, "b26300010b");
    check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE}).type, CRDI_DCP_RSP_STATE_ACK);
    from(r, 0x7F000001, 5000, "096300010b"); // and the sequence id
    const rig_packet p = rig_take(r, 5000);
    check_int(p.bytes[0], CRDI_DCP_RSP_NACK);
    check_int(p.bytes[4], r->seq);
    char look[32];
    snprintf(look, sizeof look, "80%02x0001", r->seq++); // with it, it is the master
    from(r, 0x7F000001, 5000, look);
    check_int(rig_take(r, 5000).bytes[0], CRDI_DCP_RSP_STATE_ACK);
    crd_dcp_slave_stop(r->slave, r->now);
    check_int(rig_take(r, 5000).bytes[2], CRD_DCP_STOPPING);
    check_int(rig_take(r, 5000).bytes[2], CRD_DCP_STOPPED);
    rig_destroy(r);
}

static void data_go_only_to_allowed_targets(void** state)
{
    const uint32_t ip = 0xC0A80200, mask = 0xFFFFFF00; // 192.168.2.x
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    const uint8_t target = CRDI_DCP_CFG_TARGET_NETWORK;
    for (int listed = 0; listed < 2; listed++) {
        if (listed) {
            opt.allowed_ip = &ip;
            opt.allowed_mask = &mask;
            opt.allowed_count = 1;
        }
        rig* r = rig_create(NULL, &opt);
        rig_register(r, CRD_DCP_NRT);
        const int here = listed ? 0x2007 : 0, there = listed ? 0 : 0x2007;
        check_int(
            rig_ask(r, (crdi_dcp_pdu){.type = target, .port = 9, .address = 0x7F000009}).error,
            here);
        check_int(
            rig_ask(r, (crdi_dcp_pdu){.type = target, .port = 9, .address = 0xC0A80206}).error,
            there);
        check_int(
            rig_ask(r, (crdi_dcp_pdu){.type = target, .port = 9, .address = 0xC0A80306}).error,
            0x2007);
        rig_destroy(r);
    }
}

static void garbage_gets_no_more_answers_than_allowed_in_a_second(void** state)
{
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.max_garbage = 10;
    rig* r = rig_create(NULL, &opt);
    for (int i = 0; i < 100; i++) {
        from(r, 0x0A000001, 5000, "0304000100");
    }
    check_int(r->out_count, 10);
    r->now += 0.5;
    for (int i = 0; i < 100; i++) {
        from(r, 0x0A000001, 5000, "0304000100");
    }
    check_int(r->out_count, 15);
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(r->slave);
    check_int(c.nacks, 15);
    check_int(c.muted, 185);
    check_int(c.requests, 200);
    // A master that is registered is told everything.
    r->out_count = 0;
    rig_register(r, CRD_DCP_NRT);
    for (int i = 0; i < 50; i++) {
        rig_refused(r, 0x1003, .type = CRDI_DCP_STC_RUN);
    }
    rig_destroy(r);
}

// ---- sequence ids ------------------------------------------------------------------------------

static void sequence_ids_wrap_and_only_the_next_one_counts(void** state)
{
    rig* r = rig_create(NULL, NULL);
    r->seq = 65534;
    rig_register(r, CRD_DCP_NRT);
    for (int i = 0; i < 70000; i++) {
        check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE}).type,
                  CRDI_DCP_RSP_STATE_ACK);
    }
    r->seq--; // again the same
    const crdi_dcp_pdu a = rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_CLEAR});
    check_int(a.type, CRDI_DCP_RSP_NACK);
    check_int(a.error, CRD_DCP_E_INVALID_SEQUENCE_ID);
    check_int(a.expected, r->seq);
    rig_destroy(r);
}

static void behind_clear_and_reset_both_ways_of_counting_are_right_once(void** state)
{
    for (int way = 0; way < 4; way++) {
        rig* r = rig_create(NULL, NULL);
        r->seq = 500;
        rig_register(r, CRD_DCP_SRT);
        rig_configure(r);
        if (way < 2) {
            rig_do(r, .type = CRDI_DCP_CFG_CLEAR);
        } else {
            rig_make_ready(r);
            rig_do(r, .type = CRDI_DCP_STC_STOP);
            rig_states(r, "0f10");
            rig_do(r, .type = CRDI_DCP_STC_RESET);
            rig_states(r, "01");
        }
        const uint16_t next = r->seq;
        r->seq = 777;
        const crdi_dcp_pdu a = rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE});
        check_int(a.error, CRD_DCP_E_INVALID_SEQUENCE_ID);
        check_int(a.expected, next);
        r->seq = way % 2 ? 501 : next;
        check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE}).type,
                  CRDI_DCP_RSP_STATE_ACK);
        const uint16_t other = way % 2 ? next : 501;
        const uint16_t mine = r->seq;
        r->seq = other;
        check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE}).error,
                  CRD_DCP_E_INVALID_SEQUENCE_ID);
        r->seq = mine;
        rig_configure(r); // nothing of the first one is left in the way
        rig_destroy(r);
    }
}

// ---- data --------------------------------------------------------------------------------------

static void meddle_look(rig* r)
{
    check_int(r->left, 2); // RSP_ack and COMPUTING
}

static void what_is_sent_leaves_together_but_not_behind_the_plant(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_run(r, CRD_DCP_NRT);
    r->out_count = 0;
    r->meddle = meddle_look;
    const int steps = r->step_count;
    rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 1);
    check_int(r->step_count, steps + 1);
    check(!r->held);
    r->out_count = r->left = 0;
    rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
    check(!r->held);
    check(r->left >= 4); // RSP_ack, SENDING_D, data, RUNNING
    rig_destroy(r);
}

// Groups in the order of the description are copied as one, others value by value.
static void the_order_of_a_group_does_not_matter_to_its_values(void** state)
{
    for (int turned = 0; turned < 2; turned++) {
        rig* r = rig_create(NULL, NULL);
        rig_register(r, CRD_DCP_NRT);
        const uint16_t first = (uint16_t)turned, second = (uint16_t)!turned;
        rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
        rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = first, .vr = 1, .data_type = 9);
        rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = second, .vr = 2, .data_type = 9);
        rig_network(r, CRDI_DCP_CFG_SOURCE_NETWORK, 20, 9001);
        rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 20);
        rig_make_ready(r);
        rig_do(r, .type = CRDI_DCP_STC_RUN);
        r->out_count = 0;
        rig_inputs(r, 0, turned ? 0.5 : 12, turned ? 12 : 0.5);
        rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 1);
        check_near(r->u, 12, 0);
        check_near(r->torque, 0.5, 0);
        rig_destroy(r);
    }
}

static void in_nrt_inputs_count_from_the_next_step_and_the_newest_wins(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_run(r, CRD_DCP_NRT);
    rig_inputs(r, 0, 1, 0);
    rig_inputs(r, 1, 2, 0.5);
    rig_tune(r, 9, 4);
    check_int(r->set_count, 0);
    rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 1);
    rig_states(r, "0c0d");
    check_int(r->set_count, 3);
    check_near(r->u, 2, 0);
    check_near(r->torque, 0.5, 0);
    check_near(r->kp, 4, 0);
    rig_inputs(r, 2, 3, 0);
    check_near(r->u, 2, 0); // COMPUTED: waits
    rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
    r->out_count = 0;
    check_near(r->u, 2, 0);
    rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 1);
    r->out_count = 0;
    check_near(r->u, 3, 0);
    check_int(r->set_count, 5); // what did not come anew is not set anew
    rig_destroy(r);
}

static void in_srt_inputs_and_parameters_count_at_once(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_run(r, CRD_DCP_SRT);
    rig_inputs(r, 0, 1, 0);
    check_near(r->u, 1, 0);
    rig_tune(r, 0, 4);
    check_near(r->kp, 4, 0);
    // A step that is under way keeps its values.
    r->steps = CRD_DCP_LATER;
    r->now = r->start;
    crd_dcp_slave_advance(r->slave, r->now);
    check_int(r->step_count, 1);
    rig_inputs(r, 1, 2, 0);
    check_near(r->u, 1, 0);
    crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now);
    r->now += 0.01;
    crd_dcp_slave_advance(r->slave, r->now);
    check_near(r->u, 2, 0);
    rig_destroy(r);
}

static void initialisation_takes_the_newest_inputs_and_may_be_repeated(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_NRT);
    rig_configure(r);
    rig_make_ready(r);
    for (uint16_t i = 0; i < 3; i++) {
        rig_inputs(r, i, 12 + i, 0);
        check_near(r->u, i ? 11 + i : 0, 0);
        rig_do(r, .type = CRDI_DCP_STC_INITIALIZE);
        rig_states(r, "0607");
        check_near(r->u, 12 + i, 0);
        rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
        check_int(rig_take(r, 0).bytes[2], CRD_DCP_SENDING_I);
        const rig_packet p = rig_take(r, 0);
        check_int(p.bytes[0], CRDI_DCP_DAT_INPUT_OUTPUT);
        check_int(p.bytes[1], i);
        rig_states(r, "05");
    }
    rig_destroy(r);
}

static void a_scope_says_where_data_are_sent_and_taken(void** state)
{
    for (uint8_t scope = 0; scope < 3; scope++) {
        rig* r = rig_create(NULL, NULL);
        rig_register(r, CRD_DCP_NRT);
        rig_configure(r);
        rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 10, .scope = scope);
        rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 20, .scope = scope);
        rig_make_ready(r);
        rig_inputs(r, 0, 1, 0);
        rig_do(r, .type = CRDI_DCP_STC_INITIALIZE);
        rig_states(r, "0607");
        check_near(r->u, scope == CRDI_DCP_RUN ? 0 : 1, 0);
        rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
        check_int(r->out_count, scope == CRDI_DCP_RUN ? 2 : 3);
        r->out_count = 0;
        rig_do(r, .type = CRDI_DCP_STC_RUN);
        rig_states(r, "090a");
        rig_inputs(r, 1, 2, 0);
        rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 1);
        rig_states(r, "0c0d");
        check_near(r->u, scope == CRDI_DCP_INITIALIZATION ? 1 : 2, 0);
        rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
        check_int(r->out_count, scope == CRDI_DCP_INITIALIZATION ? 2 : 3);
        r->out_count = 0;
        check_int(crd_dcp_slave_get_counts(r->slave).data_dropped, scope != 0);
        rig_destroy(r);
    }
}

static void in_real_time_a_scope_of_initialisation_is_not_sent(void** state)
{
    for (uint8_t scope = 0; scope < 3; scope++) {
        rig* r = rig_create(NULL, NULL);
        rig_register(r, CRD_DCP_SRT);
        rig_configure(r);
        rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 10, .scope = scope);
        rig_make_ready(r);
        rig_do(r, .type = CRDI_DCP_STC_RUN);
        rig_states(r, "090a");
        crd_dcp_slave_advance(r->slave, r->now);
        check_int(r->step_count, 1);
        check_int(r->out_count, scope != CRDI_DCP_INITIALIZATION);
        rig_destroy(r);
    }
}

static void one_group_goes_to_all_its_targets_with_one_sequence_id(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_NRT);
    rig_configure(r);
    rig_network(r, CRDI_DCP_CFG_TARGET_NETWORK, 10, 7001);
    rig_network(r, CRDI_DCP_CFG_TARGET_NETWORK, 10, 7002);
    rig_network(r, CRDI_DCP_CFG_TARGET_NETWORK, 10, 7001); // said twice, sent once
    rig_make_ready(r);
    rig_do(r, .type = CRDI_DCP_STC_RUN);
    r->out_count = 0;
    for (uint8_t i = 0; i < 2; i++) {
        rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 1);
        r->out_count = 0;
        rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
        check_int(r->out_count, 5);
        check_int(rig_take(r, 7001).bytes[1], i);
        check_int(rig_take(r, 7002).bytes[1], i);
        r->out_count = 0;
    }
    check_int(crd_dcp_slave_get_counts(r->slave).data_out, 6);
    rig_destroy(r);
}

static void old_and_doubled_data_are_dropped_and_gaps_are_counted_across_the_wrap(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_run(r, CRD_DCP_SRT);
    rig_inputs(r, 65533, 1, 0); // the first is right
    rig_inputs(r, 65533, 2, 0);
    check_near(r->u, 1, 0);
    rig_inputs(r, 2, 3, 0); // 65534, 65535, 0 and 1 are missing: 4
    check_near(r->u, 3, 0);
    rig_inputs(r, 65535, 4, 0);
    rig_inputs(r, 1, 5, 0);
    rig_inputs(r, 32770, 5, 0); // half a round ahead, or behind
    check_near(r->u, 3, 0);
    rig_inputs(r, 8, 6, 0); // 5 are missing, which is allowed
    check_near(r->u, 6, 0);
    crd_dcp_slave_counts c = crd_dcp_slave_get_counts(r->slave);
    check_int(c.data_in, 3);
    check_int(c.data_old, 4);
    check_int(c.data_duplicates, 1); // 65533 twice; 32770 is behind
    check_int(c.data_reordered, 3);
    check_int(c.data_missed, 9);
    check_int(crd_dcp_slave_state(r->slave), CRD_DCP_RUNNING);
    rig_quiet(r);
    rig_inputs(r, 15, 7, 0); // 6 are not
    rig_states(r, "1112");
    check_near(r->u, 6, 0);
    const crdi_dcp_pdu a = rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_ERROR});
    check_int(a.type, CRDI_DCP_RSP_ERROR_ACK);
    check_int(a.error, CRD_DCP_E_PROPERTY_VIOLATED);
    check_int(crd_dcp_slave_error(r->slave), CRD_DCP_E_PROPERTY_VIOLATED);
    rig_refused(r, 0x1003, .type = CRDI_DCP_STC_STOP);
    rig_do(r, .type = CRDI_DCP_STC_RESET);
    rig_states(r, "01");
    check_int(crd_dcp_slave_error(r->slave), CRD_DCP_NONE);
    rig_destroy(r);
}

static void the_least_limit_of_a_group_counts_and_0_is_one(void** state)
{
    crd_dcp_variable variables[RIG_VARIABLES];
    memcpy(variables, rig_variables, sizeof variables);
    variables[RIG_U].has_max_missed = true;
    crd_dcp_description d = rig_description();
    d.variables = variables;
    for (uint16_t limit = 0; limit < 8; limit++) {
        variables[RIG_U].max_missed = limit;
        const uint16_t least = limit < 5 ? limit : 5;
        for (uint16_t missing = 0; missing < 10; missing++) {
            rig* r = rig_create(&d, NULL);
            rig_run(r, CRD_DCP_NRT);
            rig_inputs(r, 65530, 1, 0);
            rig_inputs(r, (uint16_t)(65530 + 1 + missing), 2, 0);
            rig_states(r, missing > least ? "1112" : "");
            rig_destroy(r);
        }
    }
}

static void data_in_order_miss_nothing_however_often_the_ids_wrap(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_run(r, CRD_DCP_SRT);
    for (uint32_t i = 0; i < 200000; i++) {
        rig_inputs(r, (uint16_t)i, (double)(i % 40), 0);
    }
    check_int(crd_dcp_slave_get_counts(r->slave).data_in, 200000);
    check_int(crd_dcp_slave_get_counts(r->slave).data_missed, 0);
    check_int(crd_dcp_slave_state(r->slave), CRD_DCP_RUNNING);
    rig_destroy(r);
}

static void data_of_a_wrong_length_id_or_state_change_nothing(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_inputs(r, 0, 1, 0); // ALIVE
    rig_register(r, CRD_DCP_SRT);
    rig_configure(r);
    rig_inputs(r, 0, 1, 0); // CONFIGURATION
    rig_make_ready(r);
    rig_hex(r, "f000001400");                                     // nothing
    rig_hex(r, "f0000014000000000000002840");                     // one of two
    rig_hex(r, "f000001400000000000000284000000000000028400000"); // too long
    rig_hex(r, "f0000015000000000000002840");                     // no such group
    rig_hex(r, "f000000a000000000000002840");                     // an output
    rig_hex(r, "f100001400000000000000284000000000000028");       // no such parameters
    rig_hex(r, "f00000");
    rig_quiet(r);
    check_int(crd_dcp_slave_get_counts(r->slave).data_dropped, 8);
    check_int(crd_dcp_slave_get_counts(r->slave).dropped, 1);
    check_int(crd_dcp_slave_get_counts(r->slave).data_in, 0);
    rig_do(r, .type = CRDI_DCP_STC_INITIALIZE);
    check_int(r->set_count, 0);
    rig_states(r, "0607");
    rig_do(r, .type = CRDI_DCP_STC_STOP);
    rig_states(r, "0f10");
    rig_inputs(r, 0, 1, 0); // STOPPED
    check_int(crd_dcp_slave_get_counts(r->slave).data_dropped, 9);
    rig_destroy(r);
}

static void values_of_other_types_are_converted(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_SRT);
    rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
    rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 20, .vr = 1, .data_type = CRD_DCP_INT8);
    rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 20, .pos = 1, .vr = 6, .data_type = CRD_DCP_UINT16);
    rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 20);
    rig_network(r, CRDI_DCP_CFG_SOURCE_NETWORK, 20, 9001);
    rig_make_ready(r);
    rig_hex(r, "f000001400f9010002000003");
    rig_do(r, .type = CRDI_DCP_STC_INITIALIZE);
    check_near(r->u, -7, 0);
    check_near(r->profile[0], 1, 0);
    check_near(r->profile[1], 2, 0);
    check_near(r->profile[2], 768, 0);
    r->out_count = 0;
    rig_destroy(r);
}

static void an_array_may_be_fed_with_a_type_of_which_more_fit_into_a_pdu(void** state)
{
    crd_dcp_variable variables[RIG_VARIABLES];
    memcpy(variables, rig_variables, sizeof variables);
    variables[RIG_U].rank = 1;
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.max_pdu = 64;
    for (uint64_t n = 50; n <= 70; n += 20) {
        variables[RIG_U].dimensions[0] = n; // float64
        crd_dcp_description d = rig_description();
        d.variables = variables;
        rig* r = rig_create(&d, &opt);
        rig_register(r, CRD_DCP_NRT);
        rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
        rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 20, .vr = 1, .data_type = CRD_DCP_UINT8);
        rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 20);
        rig_network(r, CRDI_DCP_CFG_SOURCE_NETWORK, 20, 9001);
        rig_do(r, .type = CRDI_DCP_CFG_INPUT, .id = 21, .vr = 2, .data_type = CRD_DCP_UINT8);
        rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 21);
        rig_network(r, CRDI_DCP_CFG_SOURCE_NETWORK, 21, 9001);
        if (n > 64) {
            rig_refused(r, 0x4006, .type = CRDI_DCP_STC_PREPARE);
        } else {
            rig_make_ready(r);
            rig_hex(r, "f00000150003");
            uint8_t bytes[55] = {CRDI_DCP_DAT_INPUT_OUTPUT, 0, 0, 20, 0};
            memset(bytes + 5, 7, 50);
            rig_receive(r, bytes, sizeof bytes);
            rig_do(r, .type = CRDI_DCP_STC_INITIALIZE);
            rig_states(r, "0607");
            check_near(r->u, 7, 0);
            check_near(r->torque, 3, 0); // its memory lies behind that of the array
        }
        rig_destroy(r);
    }
}

static void values_out_of_range_are_counted_or_on_request_an_error(void** state)
{
    const double negative = -1;
    uint8_t bytes[8];
    memcpy(bytes, &negative, 8);
    for (int strict = 0; strict < 2; strict++) {
        crd_dcp_slave_options opt = crd_dcp_slave_defaults();
        opt.check_range = strict;
        rig* r = rig_create(NULL, &opt);
        rig_register(r, CRD_DCP_SRT);
        const crdi_dcp_pdu a = rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_PARAMETER,
                                                         .vr = 21,
                                                         .data_type = CRD_DCP_FLOAT64,
                                                         .payload = bytes,
                                                         .payload_length = 8});
        check_int(a.error, strict ? CRD_DCP_E_PROPERTY_VIOLATED : CRD_DCP_NONE);
        rig_configure(r);
        rig_make_ready(r);
        check_near(r->r, strict ? 0.5 : -1, 0);
        rig_do(r, .type = CRDI_DCP_STC_RUN, .time = (int64_t)r->now + 1);
        rig_states(r, "09");
        rig_inputs(r, 0, 48, 0);
        check_near(r->u, 48, 0);
        rig_inputs(r, 1, 48.5, 0);
        check_near(r->u, strict ? 48 : 48.5, 0);
        rig_states(r, strict ? "1112" : "");
        if (!strict) {
            rig_inputs(r, 2, NAN, 0);
            check_int(crd_dcp_slave_get_counts(r->slave).out_of_range, 3);
        }
        rig_destroy(r);
    }
}

// ---- parameters --------------------------------------------------------------------------------

static void parameters_of_all_kinds_reach_the_plant_before_it_is_prepared(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_NRT);
    rig_configure(r);
    rig_do(r, .type = CRDI_DCP_CFG_PARAMETER, .vr = 23, .data_type = CRD_DCP_STRING,
           .payload = (const uint8_t*)"\3\0\0\0xyz", .payload_length = 7);
    rig_do(r, .type = CRDI_DCP_CFG_PARAMETER, .vr = 24, .data_type = CRD_DCP_UINT8,
           .payload = (const uint8_t*)"\377", .payload_length = 1);
    check_int(r->set_count, 0);
    rig_make_ready(r);
    check_int(r->set_count, 2);
    check_int(r->name_bytes, 3);
    check(memcmp(r->name, "xyz", 3) == 0);
    check_int(r->limit, 255);
    rig_destroy(r);
}

static void a_reset_gives_the_plant_its_start_values_again(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_NRT);
    rig_configure(r);
    rig_do(r, .type = CRDI_DCP_CFG_PARAMETER, .vr = 23, .data_type = CRD_DCP_STRING,
           .payload = (const uint8_t*)"\3\0\0\0xyz", .payload_length = 7);
    rig_make_ready(r);
    rig_do(r, .type = CRDI_DCP_STC_STOP);
    r->out_count = 0;
    rig_do(r, .type = CRDI_DCP_STC_RESET);
    rig_states(r, "01");
    check_int(r->entered[r->entered_count - 1], CRD_DCP_CONFIGURATION);
    check_int(r->closed, 1);
    rig_configure(r);
    rig_make_ready(r);
    check_int(r->name_bytes, 7);
    check(memcmp(r->name, "bench A", 7) == 0);
    // Deregistered and registered again: the same.
    rig_do(r, .type = CRDI_DCP_STC_STOP);
    r->out_count = 0;
    rig_do(r, .type = CRDI_DCP_STC_DEREGISTER);
    rig_states(r, "00");
    check_int(r->closed, 2);
    r->seq = 7;
    const int before = r->entered_count;
    rig_register(r, CRD_DCP_SRT);
    check_int(r->entered_count, before + 1);
    check_int(r->entered[before], CRD_DCP_CONFIGURATION);
    // Not used in between: it is at its start already.
    rig_do(r, .type = CRDI_DCP_STC_DEREGISTER);
    rig_states(r, "00");
    rig_register(r, CRD_DCP_SRT);
    check_int(r->entered_count, before + 1);
    rig_destroy(r);
}

static void set_u16(rig* r, uint64_t vr, uint16_t value, int error)
{
    const uint8_t bytes[2] = {(uint8_t)value, (uint8_t)(value >> 8)};
    check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_PARAMETER,
                                        .vr = vr,
                                        .data_type = CRD_DCP_UINT16,
                                        .payload = bytes,
                                        .payload_length = 2})
                  .error,
              error);
}

static void structural_parameters_size_arrays_in_configuration(void** state)
{
    for (int n = 1; n <= 20; n += 19) {
        rig* r = rig_create(NULL, NULL);
        rig_register(r, CRD_DCP_NRT);
        set_u16(r, 31, 0, CRD_DCP_E_INVALID_PAYLOAD);
        set_u16(r, 31, 1025, CRD_DCP_E_INVALID_PAYLOAD); // beyond max_elements
        set_u16(r, 31, (uint16_t)n, CRD_DCP_NONE);
        rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
        rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .vr = 16);
        rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 10);
        rig_network(r, CRDI_DCP_CFG_TARGET_NETWORK, 10, 8081);
        rig_make_ready(r);
        check_near(r->temperatures, n, 0);
        rig_do(r, .type = CRDI_DCP_STC_INITIALIZE);
        r->out_count = 0;
        rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
        rig_take(r, 0);
        check_int(rig_take(r, 0).length, 5 + 4 * n);
        rig_states(r, "05");
        rig_refused(r, 0x1003, .type = CRDI_DCP_CFG_PARAMETER, .vr = 31, .data_type = 1,
                    .payload = (const uint8_t*)"\1", .payload_length = 2);
        // CFG_clear and reset go back to the start value.
        rig_do(r, .type = CRDI_DCP_STC_STOP);
        r->out_count = 0;
        rig_do(r, .type = CRDI_DCP_STC_RESET);
        rig_states(r, "01");
        rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
        rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .vr = 16);
        rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 10);
        rig_network(r, CRDI_DCP_CFG_TARGET_NETWORK, 10, 8081);
        rig_make_ready(r);
        check_near(r->temperatures, 3, 0);
        rig_do(r, .type = CRDI_DCP_STC_INITIALIZE);
        r->out_count = 0;
        rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
        rig_take(r, 0);
        check_int(rig_take(r, 0).length, 5 + 4 * 3);
        r->out_count = 0;
        rig_destroy(r);
    }
}

static void a_structural_parameter_goes_up_to_its_max_and_arrays_of_parameters_follow(void** state)
{
    crd_dcp_variable variables[RIG_VARIABLES];
    memcpy(variables, rig_variables, sizeof variables);
    variables[RIG_N_TEMPS].max = 5;
    variables[RIG_KP].rank = 2; // 2 x n
    variables[RIG_KP].dimensions[0] = 2;
    variables[RIG_KP].linked[1] = 31;
    variables[RIG_KP].is_linked[1] = true;
    crd_dcp_description d = rig_description();
    d.variables = variables;
    rig* r = rig_create(&d, NULL);
    rig_register(r, CRD_DCP_NRT);
    set_u16(r, 31, 6, CRD_DCP_E_INVALID_PAYLOAD);
    set_u16(r, 31, 5, CRD_DCP_NONE);
    const uint8_t values[80] = {0};
    rig_refused(r, 0x2001, .type = CRDI_DCP_CFG_PARAMETER, .vr = 22, .data_type = CRD_DCP_FLOAT64,
                .payload = values, .payload_length = 48);
    rig_do(r, .type = CRDI_DCP_CFG_PARAMETER, .vr = 22, .data_type = CRD_DCP_FLOAT64,
           .payload = values, .payload_length = 80);
    rig_do(r, .type = CRDI_DCP_CFG_CLEAR);
    rig_do(r, .type = CRDI_DCP_CFG_PARAMETER, .vr = 22, .data_type = CRD_DCP_FLOAT64,
           .payload = values, .payload_length = 48);
    rig_destroy(r);
}

// ---- time --------------------------------------------------------------------------------------

static void steps_are_due_on_a_grid_from_the_start_time_on(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_SRT);
    rig_configure(r);
    rig_do(r, .type = CRDI_DCP_CFG_STEPS, .id = 10, .steps = 3);
    rig_make_ready(r);
    const int64_t start = (int64_t)r->now + 5;
    rig_refused(r, 0x200C, .type = CRDI_DCP_STC_RUN, .time = (int64_t)r->now);
    rig_refused(r, 0x200C, .type = CRDI_DCP_STC_RUN, .time = -1);
    rig_do(r, .type = CRDI_DCP_STC_RUN, .time = start);
    rig_states(r, "09");
    check_near(crd_dcp_slave_next(r->slave), (double)start, 0);
    rig_refused(r, 0x1005, .type = CRDI_DCP_STC_RUN);
    crd_dcp_slave_advance(r->slave, (double)start - 1e-3);
    check_int(r->step_count, 0);
    crd_dcp_slave_advance(r->slave, (double)start);
    rig_states(r, "0a");
    check_int(r->step_count, 1);
    for (int i = 1; i < 1000; i++) {
        const double due = (double)start + i * 0.01;
        check_near(crd_dcp_slave_next(r->slave), due, 1e-9);
        crd_dcp_slave_advance(r->slave, due);
        check_int(r->step_count, i + 1);
        check_int(r->out_count, (i + 1) / 3 - i / 3); // after every third
        r->out_count = 0;
    }
    // The second STC_run moves the grid to its time; nothing is done until then.
    r->now = (double)start + 9.995;
    rig_do(r, .type = CRDI_DCP_STC_RUN, .time = start + 12);
    rig_states(r, "0b");
    check_near(crd_dcp_slave_next(r->slave), (double)start + 12, 0);
    crd_dcp_slave_advance(r->slave, (double)start + 11.9);
    check_int(r->step_count, 1000);
    crd_dcp_slave_advance(r->slave, (double)start + 12);
    check_int(r->step_count, 1001);
    rig_quiet(r);
    crd_dcp_slave_advance(r->slave, (double)start + 12.01);
    rig_quiet(r);
    crd_dcp_slave_advance(r->slave, (double)start + 12.02); // every third, from there
    check_int(r->out_count, 1);
    check_int(crd_dcp_slave_get_counts(r->slave).late_steps, 0);
    rig_destroy(r);
}

static void late_steps_are_counted_in_srt_and_an_error_in_hrt(void** state)
{
    crd_dcp_description d = rig_description();
    d.hrt = true;
    for (int mode = CRD_DCP_HRT; mode <= CRD_DCP_SRT; mode++) {
        rig* r = rig_create(&d, NULL);
        rig_run(r, mode);
        r->now = r->start;
        crd_dcp_slave_advance(r->slave, r->now);
        crd_dcp_slave_advance(r->slave, r->now + 0.02); // one in time, one just in time
        check_int(r->step_count, 3);
        check_int(crd_dcp_slave_get_counts(r->slave).late_steps, 0);
        r->out_count = 0;
        crd_dcp_slave_advance(r->slave, r->now + 0.0501); // due at 0.03, 0.04 and 0.05
        check_int(crd_dcp_slave_get_counts(r->slave).late_steps, mode == CRD_DCP_HRT ? 1 : 2);
        if (mode == CRD_DCP_HRT) {
            rig_states(r, "1112");
            check_int(crd_dcp_slave_error(r->slave), CRD_DCP_E_GENERIC);
            check_int(r->step_count, 3);
        } else {
            check_int(r->step_count, 6);
            check_near(crd_dcp_slave_next(r->slave), r->now + 0.06, 1e-6); // the old grid
        }
        rig_destroy(r);
    }
}

static void a_jump_of_time_is_caught_up_in_portions(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_SRT);
    rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 1000);
    rig_make_ready(r);
    rig_do(r, .type = CRDI_DCP_STC_RUN);
    rig_states(r, "090a");
    r->now += 1e6;
    crd_dcp_slave_advance(r->slave, r->now);
    check_int(r->step_count, 1000);
    check(crd_dcp_slave_next(r->slave) < r->now);
    rig_do(r, .type = CRDI_DCP_STC_STOP); // it can be stopped all the same
    rig_states(r, "0f10");
    check(isinf(crd_dcp_slave_next(r->slave)));
    rig_destroy(r);
}

static void a_step_that_takes_long_holds_up_the_next_ones(void** state)
{
    crd_dcp_description d = rig_description();
    d.hrt = true;
    for (int mode = CRD_DCP_HRT; mode <= CRD_DCP_SRT; mode++) {
        rig* r = rig_create(&d, NULL);
        rig_run(r, mode);
        r->steps = CRD_DCP_LATER;
        const double start = r->start;
        crd_dcp_slave_advance(r->slave, start);
        crd_dcp_slave_advance(r->slave, start + 0.0199);
        check_int(r->step_count, 1);
        rig_quiet(r);
        crd_dcp_slave_done(r->slave, CRD_DCP_DONE, start + 0.0199);
        check_int(rig_take(r, 0).bytes[0], CRDI_DCP_DAT_INPUT_OUTPUT);
        check_int(r->step_count, 2); // at 0.01, not late by more than a resolution
        check_int(crd_dcp_slave_get_counts(r->slave).late_steps, 0);
        if (mode == CRD_DCP_SRT) {
            check(isinf(crd_dcp_slave_next(r->slave)));
        } else {
            check_near(crd_dcp_slave_next(r->slave), start + 0.03, 2e-6);
        }
        crd_dcp_slave_advance(r->slave, start + 0.0301);
        rig_states(r, mode == CRD_DCP_HRT ? "1112" : "");
        rig_destroy(r);
    }
}

static crd_dcp_description with_heartbeat(void)
{
    crd_dcp_description d = rig_description();
    d.can_monitor_heartbeat = d.has_heartbeat = true;
    d.heartbeat_numerator = 1;
    d.heartbeat_denominator = 2;
    return d;
}

static void what_was_due_before_a_heartbeat_was_missed_is_done_before(void** state)
{
    const crd_dcp_description d = with_heartbeat();
    rig* r = rig_create(&d, NULL);
    rig_register(r, CRD_DCP_SRT);
    rig_configure(r);
    rig_make_ready(r);
    rig_do(r, .type = CRDI_DCP_STC_RUN);
    rig_states(r, "090a");
    crd_dcp_slave_advance(r->slave, r->now + 10);
    check_int(r->step_count, 51); // at 0, 0.01 ... 0.5 s
    check_int(crd_dcp_slave_error(r->slave), CRD_DCP_E_HEARTBEAT_MISSED);
    // In ALIVE a request is not refused for the mode of an earlier registration.
    r->out_count = 0;
    rig_do(r, .type = CRDI_DCP_STC_DEREGISTER);
    rig_states(r, "00");
    rig_refused(r, 0x1003, .type = CRDI_DCP_STC_DO_STEP, .steps = 1);
    rig_destroy(r);
}

static void a_missed_heartbeat_is_an_error_in_every_state_of_normal_operation(void** state)
{
    const crd_dcp_description d = with_heartbeat();
    for (int in_run = 0; in_run < 2; in_run++) {
        rig* r = rig_create(&d, NULL);
        check(isinf(crd_dcp_slave_next(r->slave)));
        if (in_run) {
            rig_run(r, CRD_DCP_NRT);
        } else {
            rig_register(r, CRD_DCP_NRT);
        }
        for (int i = 0; i < 10; i++) {
            r->now += 0.5; // exactly in time
            check(crd_dcp_slave_next(r->slave) > r->now);
            check(crd_dcp_slave_next(r->slave) < r->now + 1e-6);
            crd_dcp_slave_advance(r->slave, r->now);
            check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE}).type,
                      CRDI_DCP_RSP_STATE_ACK);
        }
        r->now += 0.4;
        from(r, 0x0A000001, 5000, "80000001"); // somebody else's is none
        r->out_count = 0;
        rig_refused(r, 0x1003, .type = CRDI_DCP_STC_REGISTER); // nor is another request
        crd_dcp_slave_advance(r->slave, r->now + 0.1);
        rig_quiet(r);
        crd_dcp_slave_advance(r->slave, crd_dcp_slave_next(r->slave));
        rig_states(r, "1112");
        check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_ERROR}).error,
                  CRD_DCP_E_HEARTBEAT_MISSED);
        check(isinf(crd_dcp_slave_next(r->slave)));
        r->now += 100;
        rig_do(r, .type = CRDI_DCP_STC_RESET); // it begins anew
        rig_states(r, "01");
        crd_dcp_slave_advance(r->slave, r->now + 0.6);
        rig_states(r, "1112");
        rig_do(r, .type = CRDI_DCP_STC_DEREGISTER);
        rig_states(r, "00");
        check(isinf(crd_dcp_slave_next(r->slave)));
        rig_destroy(r);
    }
}

// ---- duties ------------------------------------------------------------------------------------

// Brings a slave to a state, as far as possible by requests.
static void bring_to(rig* r, crd_dcp_state state)
{
    static const uint8_t way[][2] = {
        {CRDI_DCP_STC_PREPARE, CRD_DCP_PREPARED},
        {CRDI_DCP_STC_CONFIGURE, CRD_DCP_CONFIGURED},
        {CRDI_DCP_STC_INITIALIZE, CRD_DCP_INITIALIZED},
        {CRDI_DCP_STC_SEND_OUTPUTS, CRD_DCP_SENDING_I},
        {CRDI_DCP_STC_RUN, CRD_DCP_SYNCHRONIZED},
        {CRDI_DCP_STC_RUN, CRD_DCP_RUNNING},
        {CRDI_DCP_STC_DO_STEP, CRD_DCP_COMPUTED},
        {CRDI_DCP_STC_SEND_OUTPUTS, CRD_DCP_SENDING_D},
        {CRDI_DCP_STC_STOP, CRD_DCP_STOPPED},
    };
    for (int i = 0; i < CRD_DCP_STATE_COUNT; i++) {
        r->enters[i] = i == (int)state ? CRD_DCP_LATER : CRD_DCP_DONE;
    }
    r->steps = state == CRD_DCP_COMPUTING ? CRD_DCP_LATER : CRD_DCP_DONE;
    rig_register(r, CRD_DCP_NRT);
    if (state == CRD_DCP_CONFIGURATION) { return; }
    rig_configure(r);
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        rig_do(r, .type = way[i][0], .steps = 1);
        r->out_count = 0;
        if (crd_dcp_slave_state(r->slave) == state) { return; }
    }
    fail_msg("state %02x was not reached", state);
}

static void a_duty_that_is_not_done_holds_the_state_and_refuses_the_next(void** state)
{
    rig* r = rig_create(NULL, NULL);
    for (int i = 0; i < CRD_DCP_STATE_COUNT; i++) {
        r->enters[i] = CRD_DCP_LATER;
    }
    rig_register(r, CRD_DCP_NRT);
    rig_configure(r);
    rig_do(r, .type = CRDI_DCP_STC_PREPARE);
    rig_states(r, "02");
    rig_refused(r, 0x1005, .type = CRDI_DCP_STC_CONFIGURE);
    rig_refused(r, 0x1005, .type = CRDI_DCP_STC_PREPARE);
    rig_refused(r, 0x1003, .type = CRDI_DCP_CFG_CLEAR);
    check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE}).state, CRD_DCP_PREPARING);
    crd_dcp_slave_done(r->slave, CRD_DCP_LATER, r->now);
    rig_quiet(r);
    crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now);
    rig_states(r, "03");
    crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now); // nothing to be done
    rig_quiet(r);
    rig_do(r, .type = CRDI_DCP_STC_CONFIGURE);
    rig_states(r, "04");
    crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now);
    rig_states(r, "05");
    rig_do(r, .type = CRDI_DCP_STC_INITIALIZE);
    rig_states(r, "06");
    rig_refused(r, 0x1005, .type = CRDI_DCP_STC_SEND_OUTPUTS);
    crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now);
    rig_states(r, "07");
    rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
    r->out_count = 0;
    rig_do(r, .type = CRDI_DCP_STC_RUN);
    rig_states(r, "09");
    rig_refused(r, 0x1005, .type = CRDI_DCP_STC_RUN);
    // Steps are possible before it is synchronized, and lead back there.
    r->steps = CRD_DCP_LATER;
    rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 2);
    rig_states(r, "0c");
    rig_refused(r, 0x1005, .type = CRDI_DCP_STC_SEND_OUTPUTS);
    crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now); // the step
    rig_states(r, "0d");
    crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now); // and now it is synchronized
    rig_quiet(r);
    rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
    check_int(rig_take(r, 0).bytes[2], CRD_DCP_SENDING_D);
    rig_take(r, 0);
    rig_states(r, "090a");
    rig_do(r, .type = CRDI_DCP_STC_STOP);
    rig_states(r, "0f");
    rig_refused(r, 0x1005, .type = CRDI_DCP_STC_RESET);
    crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now);
    rig_states(r, "10");
    rig_do(r, .type = CRDI_DCP_STC_RESET);
    rig_states(r, "01");
    rig_refused(r, 0x1005, .type = CRDI_DCP_STC_PREPARE); // the plant is not back yet
    rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
    crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now);
    rig_quiet(r);
    rig_do(r, .type = CRDI_DCP_STC_PREPARE);
    rig_states(r, "02");
    crd_dcp_slave_done(r->slave, CRD_DCP_FAILED, r->now);
    rig_states(r, "11");
    rig_refused(r, 0x1005, .type = CRDI_DCP_STC_RESET);
    crd_dcp_slave_done(r->slave, CRD_DCP_FAILED, r->now); // not safe: it stays
    rig_quiet(r);
    crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now);
    rig_states(r, "12");
    rig_destroy(r);
}

static void stopping_gives_up_the_duty_that_is_under_way(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_run(r, CRD_DCP_NRT);
    r->steps = CRD_DCP_LATER;
    rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 1);
    rig_states(r, "0c");
    rig_do(r, .type = CRDI_DCP_STC_STOP);
    rig_states(r, "0f10");
    crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now);
    rig_quiet(r);
    check_int(crd_dcp_slave_get_counts(r->slave).steps, 0);
    rig_destroy(r);

    r = rig_create(NULL, NULL);
    bring_to(r, CRD_DCP_SYNCHRONIZING);
    rig_do(r, .type = CRDI_DCP_STC_STOP);
    rig_states(r, "0f10");
    crd_dcp_slave_done(r->slave, CRD_DCP_FAILED, r->now);
    rig_quiet(r);
    rig_destroy(r);
}

static void the_slave_may_stop_by_itself_while_it_runs(void** state)
{
    rig* r = rig_create(NULL, NULL);
    crd_dcp_slave_stop(r->slave, r->now);
    rig_register(r, CRD_DCP_SRT);
    crd_dcp_slave_stop(r->slave, r->now);
    rig_configure(r);
    rig_make_ready(r);
    crd_dcp_slave_stop(r->slave, r->now);
    rig_do(r, .type = CRDI_DCP_STC_RUN);
    rig_states(r, "090a");
    crd_dcp_slave_stop(r->slave, r->now);
    rig_states(r, "0f10");
    crd_dcp_slave_stop(r->slave, r->now);
    rig_quiet(r);
    rig_destroy(r);
}

static void a_real_time_slave_steps_while_it_synchronizes(void** state)
{
    for (int fails = 0; fails < 2; fails++) {
        rig* r = rig_create(NULL, NULL);
        rig_register(r, CRD_DCP_SRT);
        rig_configure(r);
        rig_make_ready(r);
        r->enters[CRD_DCP_SYNCHRONIZING] = CRD_DCP_LATER;
        const int64_t start = (int64_t)r->now + 1;
        rig_do(r, .type = CRDI_DCP_STC_RUN, .time = start);
        rig_states(r, "09");
        crd_dcp_slave_advance(r->slave, (double)start + 0.015);
        check_int(r->step_count, 2);
        check_int(r->out_count, 2);
        r->out_count = 0;
        check_int(crd_dcp_slave_state(r->slave), CRD_DCP_SYNCHRONIZING);
        crd_dcp_slave_done(r->slave, fails ? CRD_DCP_FAILED : CRD_DCP_DONE, (double)start + 0.018);
        rig_states(r, fails ? "1112" : "0a");
        rig_destroy(r);
    }
    // Done before the start time: synchronized at the start time.
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_SRT);
    rig_configure(r);
    rig_make_ready(r);
    r->enters[CRD_DCP_SYNCHRONIZING] = CRD_DCP_LATER;
    const int64_t start = (int64_t)r->now + 1;
    rig_do(r, .type = CRDI_DCP_STC_RUN, .time = start);
    rig_states(r, "09");
    crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now);
    rig_quiet(r);
    crd_dcp_slave_advance(r->slave, (double)start);
    check_int(rig_take(r, 0).bytes[2], CRD_DCP_SYNCHRONIZED);
    check_int(rig_take(r, 0).bytes[0], CRDI_DCP_DAT_INPUT_OUTPUT);
    rig_quiet(r);
    rig_destroy(r);
}

static void meddle_fault(rig* r)
{
    crd_dcp_slave_fault(r->slave, CRD_DCP_E_PROPERTY_VIOLATED, r->now);
}

static void meddle_stop(rig* r)
{
    crd_dcp_slave_stop(r->slave, r->now);
}

static void a_plant_may_stop_the_slave_or_report_a_fault_in_the_middle_of_a_step(void** state)
{
    for (int fault = 0; fault < 2; fault++) {
        for (int mode = CRD_DCP_SRT; mode <= CRD_DCP_NRT; mode++) {
            rig* r = rig_create(NULL, NULL);
            rig_run(r, mode);
            r->meddle = fault ? meddle_fault : meddle_stop;
            r->now = r->start;
            if (mode == CRD_DCP_NRT) {
                rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 1);
                // The slave's own wish to stop exists in the Run states only.
                rig_states(r, fault ? "0c1112" : "0c0d");
            } else {
                crd_dcp_slave_advance(r->slave, r->now);
                rig_states(r, fault ? "1112" : "0f10");
            }
            check_int(r->step_count, 1);
            rig_destroy(r);
        }
    }
}

static void a_real_time_step_that_fails_is_an_error(void** state)
{
    for (int later = 0; later < 2; later++) {
        rig* r = rig_create(NULL, NULL);
        rig_run(r, CRD_DCP_SRT);
        r->steps = later ? CRD_DCP_LATER : CRD_DCP_FAILED;
        crd_dcp_slave_advance(r->slave, r->start);
        if (later) { crd_dcp_slave_done(r->slave, CRD_DCP_FAILED, r->start); }
        rig_states(r, "1112");
        check_int(crd_dcp_slave_get_counts(r->slave).steps, 1); // the one of rig_run
        rig_destroy(r);
    }
}

// ---- faults ------------------------------------------------------------------------------------

static void a_fault_in_any_state_of_normal_operation_leads_to_the_error_states(void** state)
{
    for (int s = CRD_DCP_CONFIGURATION; s <= CRD_DCP_STOPPED; s++) {
        if (s == CRD_DCP_SENDING_I || s == CRD_DCP_SENDING_D) { continue; } // nobody sees them
        rig* r = rig_create(NULL, NULL);
        bring_to(r, (crd_dcp_state)s);
        crd_dcp_slave_fault(r->slave, CRD_DCP_E_PROPERTY_VIOLATED, r->now);
        rig_states(r, "1112");
        check_int(r->entered[r->entered_count - 1], CRD_DCP_ERRORHANDLING);
        crd_dcp_slave_fault(r->slave, CRD_DCP_E_GENERIC, r->now); // the first one counts
        rig_quiet(r);
        check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_ERROR}).error,
                  CRD_DCP_E_PROPERTY_VIOLATED);
        crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now);
        rig_quiet(r);
        rig_do(r, .type = CRDI_DCP_STC_DEREGISTER);
        rig_states(r, "00");
        crd_dcp_slave_fault(r->slave, CRD_DCP_E_GENERIC, r->now); // not in ALIVE
        rig_quiet(r);
        rig_destroy(r);
    }
}

static void a_plant_that_fails_leads_to_the_error_states(void** state)
{
    static const uint8_t duties[] = {CRD_DCP_PREPARING, CRD_DCP_CONFIGURING, CRD_DCP_INITIALIZING,
                                     CRD_DCP_SYNCHRONIZING, CRD_DCP_STOPPING};
    for (size_t i = 0; i < sizeof duties; i++) {
        rig* r = rig_create(NULL, NULL);
        bring_to(r, duties[i]);
        crd_dcp_slave_done(r->slave, CRD_DCP_FAILED, r->now);
        rig_states(r, "1112");
        rig_destroy(r);
    }
    for (int what = 0; what < 3; what++) {
        rig* r = rig_create(NULL, NULL);
        rig_run(r, CRD_DCP_NRT);
        rig_inputs(r, 0, 1, 1);
        if (what == 0) { r->sets = CRD_DCP_FAILED; }
        if (what == 1) { r->steps = CRD_DCP_FAILED; }
        if (what == 2) { r->gets = CRD_DCP_LATER; } // a value that is not there
        rig_do(r, .type = CRDI_DCP_STC_DO_STEP, .steps = 1);
        rig_states(r, what == 2 ? "0c0d" : "0c1112");
        check_int(r->step_count, what > 0);
        check_int(r->set_count, what ? 2 : 1);
        if (what == 2) {
            rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
            rig_states(r, "0e1112");
        }
        check_int(crd_dcp_slave_error(r->slave), CRD_DCP_E_GENERIC);
        rig_destroy(r);
    }
}

static void ports_that_cannot_be_opened_are_an_error(void** state)
{
    for (int tcp = 0; tcp < 2; tcp++) {
        rig* r = rig_create(NULL, NULL);
        rig_register(r, CRD_DCP_NRT);
        rig_configure(r);
        if (tcp) {
            rig_do(r, .type = CRDI_DCP_CFG_TARGET_NETWORK, .transport = CRD_DCP_TCP, .id = 10,
                   .port = 9005, .address = 0x7F000001);
            r->connected_count = 8;
        } else {
            r->listening_count = 8;
        }
        rig_do(r, .type = CRDI_DCP_STC_PREPARE);
        if (tcp) {
            rig_states(r, "0203");
            rig_do(r, .type = CRDI_DCP_STC_CONFIGURE);
        }
        rig_states(r, tcp ? "041112" : "021112");
        check_int(crd_dcp_slave_error(r->slave), CRD_DCP_E_INVALID_NETWORK_INFORMATION);
        rig_destroy(r);
    }
}

static void streams_are_connected_while_configuring(void** state)
{
    rig* r = rig_create(NULL, NULL);
    rig_register(r, CRD_DCP_NRT);
    rig_configure(r);
    rig_do(r, .type = CRDI_DCP_CFG_TARGET_NETWORK, .transport = CRD_DCP_TCP, .id = 10, .port = 9005,
           .address = 0x7F000001);
    rig_do(r, .type = CRDI_DCP_STC_PREPARE);
    check_int(r->connected_count, 0);
    r->out_count = 0;
    rig_do(r, .type = CRDI_DCP_STC_CONFIGURE);
    check_int(r->connected_count, 1);
    check_int(r->connected[0].port, 9005);
    rig_states(r, "0405");
    rig_destroy(r);
}

// ---- logs --------------------------------------------------------------------------------------

static void log_speed(rig* r, double t, double speed)
{
    const crd_dcp_slot arguments[] = {
        {.type = CRD_DCP_FLOAT64, .count = 1, .real = &t},
        {.type = CRD_DCP_FLOAT64, .count = 1, .real = &speed},
    };
    crd_dcp_slave_log(r->slave, 1, arguments, r->now);
}

static void log_text(rig* r, const char* text)
{
    uint32_t n = (uint32_t)strlen(text);
    const crd_dcp_slot argument = {.type = CRD_DCP_STRING,
                                   .count = 1,
                                   .max_size = n,
                                   .bytes = (uint8_t*)(uintptr_t)text,
                                   .byte_count = &n};
    crd_dcp_slave_log(r->slave, 2, &argument, r->now);
}

static void entries_are_kept_on_request_and_gone_once_delivered(void** state)
{
    rig* r = rig_create(NULL, NULL);
    r->now = 1794710000;
    log_speed(r, 0, 0); // ALIVE
    r->seq = 8;
    rig_register(r, CRD_DCP_NRT);
    log_speed(r, 0, 0); // nobody wants it
    rig_do(r, .type = CRDI_DCP_CFG_LOGGING, .category = 0, .level = 3, .mode = 1);
    log_text(r, "cold"); // level 2
    rig_do(r, .type = CRDI_DCP_CFG_LOGGING, .category = 1, .level = 2, .mode = 1);
    log_speed(r, 0.05, 1.5);
    r->now += 1.75;
    log_text(r, "hot");
    crd_dcp_slave_log(r->slave, 77, NULL, r->now);
    const crd_dcp_slot wrong[2] = {{.type = CRD_DCP_FLOAT64}, {.type = CRD_DCP_INT8}};
    crd_dcp_slave_log(r->slave, 1, wrong, r->now);
    rig_quiet(r);
    // The computed record of the layouts, but for the sequence id.
    rig_hex(r, "820b0001010a");
    rig_expect(r, "b40b0001f019f96a00000000019a9999999999a93f000000000000f83f"
                  "f119f96a000000000203000000686f74");
    rig_hex(r, "820c0001000a");
    rig_expect(r, "b40c0001");
    r->seq = 13;
    for (int i = 0; i < 100; i++) {
        log_speed(r, i, 0);
    }
    check_int(crd_dcp_slave_get_counts(r->slave).logs_lost, 36); // the oldest
    crdi_dcp_pdu a = rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_LOG, .max = 1});
    check_int(a.payload_length, 25);
    double t;
    memcpy(&t, a.payload + 9, 8);
    check_near(t, 36, 0);
    check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_LOG, .max = 0}).payload_length, 0);
    for (int i = 0; i < 3; i++) {
        a = rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_LOG, .category = 1, .max = 20});
        check_int(a.payload_length, 20 * 25);
    }
    a = rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_LOG, .category = 1, .max = 255});
    check_int(a.payload_length, 3 * 25);
    char text[300];
    memset(text, 'x', sizeof text);
    text[299] = 0;
    log_text(r, text); // more than log_bytes
    check_int(crd_dcp_slave_get_counts(r->slave).logs_lost, 37);
    log_speed(r, 1, 1); // nobody but this master may have it
    rig_do(r, .type = CRDI_DCP_STC_DEREGISTER);
    rig_states(r, "00");
    rig_register(r, CRD_DCP_NRT);
    check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_LOG, .max = 9}).payload_length, 0);
    rig_destroy(r);
}

static void entries_are_notified_at_once_and_not_kept(void** state)
{
    rig* r = rig_create(NULL, NULL);
    r->now = 1794710000;
    r->seq = 8;
    rig_register(r, CRD_DCP_NRT);
    rig_hex(r, "2a090001000202"); // all categories, warnings, on notification
    rig_expect(r, "b0090001");
    rig_hex(r, "2a0a0001010302");
    rig_expect(r, "b00a0001");
    log_speed(r, 0.05, 1.5);
    rig_expect(r, "e101f019f96a00000000019a9999999999a93f000000000000f83f");
    log_text(r, "hot");
    rig_expect(r, "e101f019f96a000000000203000000686f74");
    r->seq = 11;
    check_int(rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_LOG, .max = 9}).payload_length, 0);
    rig_do(r, .type = CRDI_DCP_CFG_LOGGING, .category = 0, .level = 2, .mode = 0);
    log_text(r, "hot");
    rig_quiet(r);
    rig_destroy(r);
}

static void entries_of_one_category_are_taken_out_of_the_others(void** state)
{
    static const crd_dcp_log_category categories[] = {{.id = 1, .name = "A"},
                                                      {.id = 2, .name = "B"}};
    static const uint8_t text[] = {CRD_DCP_STRING};
    static const crd_dcp_log_template templates[] = {
        {.id = 1, .category = 1, .level = 0, .message = "bare"},
        {.id = 2, .category = 2, .level = 4, .arguments = text, .argument_count = 1},
    };
    crd_dcp_description d = rig_description();
    d.categories = categories;
    d.category_count = 2;
    d.templates = templates;
    rig* r = rig_create(&d, NULL);
    rig_register(r, CRD_DCP_NRT);
    rig_do(r, .type = CRDI_DCP_CFG_LOGGING, .category = 1, .level = 0, .mode = 1);
    rig_do(r, .type = CRDI_DCP_CFG_LOGGING, .category = 2, .level = 4, .mode = 1);
    for (int i = 0; i < 3; i++) {
        crd_dcp_slave_log(r->slave, 1, NULL, r->now);
        log_text(r, i == 0 ? "a" : i == 1 ? "b" : "c");
    }
    crdi_dcp_pdu a = rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_LOG, .category = 2, .max = 2});
    check_int(a.payload_length, 2 * (9 + 5));
    check_int(a.payload[13], 'a');
    check_int(a.payload[27], 'b');
    a = rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_LOG, .category = 1, .max = 9});
    check_int(a.payload_length, 3 * 9);
    a = rig_ask(r, (crdi_dcp_pdu){.type = CRDI_DCP_INF_LOG, .category = 0, .max = 9});
    check_int(a.payload_length, 9 + 5);
    check_int(a.payload[13], 'c');
    rig_destroy(r);
}

static void what_does_not_fit_into_a_pdu_is_not_sent(void** state)
{
    crd_dcp_variable variables[RIG_VARIABLES];
    memcpy(variables, rig_variables, sizeof variables);
    variables[RIG_STATUS].max_size = variables[RIG_TEXT].max_size = UINT32_MAX;
    crd_dcp_description d = rig_description();
    d.variables = variables;
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.max_pdu = 64;
    opt.log_bytes = 300;
    rig* r = rig_create(&d, &opt);
    rig_register(r, CRD_DCP_NRT);
    rig_do(r, .type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 100);
    rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 10, .vr = 14);
    rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 10);
    rig_do(r, .type = CRDI_DCP_CFG_LOGGING, .level = 2, .mode = 2);
    rig_network(r, CRDI_DCP_CFG_TARGET_NETWORK, 10, 8081);
    rig_make_ready(r);
    r->text_bytes = 64; // and 9 before it
    rig_do(r, .type = CRDI_DCP_STC_INITIALIZE);
    rig_states(r, "0607");
    rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
    rig_states(r, "0805");
    check_int(crd_dcp_slave_get_counts(r->slave).send_failed, 1);
    check_int(crd_dcp_slave_get_counts(r->slave).data_out, 0);
    log_text(r, "123456789012345678901234567890123456789012345678901234567890");
    rig_quiet(r);
    check_int(crd_dcp_slave_get_counts(r->slave).logs_lost, 1);
    uint8_t bytes[65] = {CRDI_DCP_CFG_PARAMETER}; // nor taken
    rig_receive(r, bytes, sizeof bytes);
    rig_quiet(r);
    check_int(crd_dcp_slave_get_counts(r->slave).dropped, 1);
    rig_destroy(r);
}

// ---- memory ------------------------------------------------------------------------------------

static void out_of_memory_while_creating_leaves_nothing_behind(void** state)
{
    const crd_dcp_description d = rig_description();
    rig* r = calloc(1, sizeof *r);
    const crd_dcp_plant plant = rig_plant(r);
    const crd_dcp_link link = rig_link(r);
    const uint32_t ip = 1, mask = 2;
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.allowed_ip = &ip;
    opt.allowed_mask = &mask;
    opt.allowed_count = 1;
    for (int once = 0; once < 2; once++) {
        bool done = false;
        for (int64_t fail_at = 0; !done && fail_at < 1000; fail_at++) {
            check_allocator a;
            crd_context* ctx = check_context(&a);
            const int64_t before = a.live;
            a.once = once;
            a.fail_at = a.allocations + fail_at;
            crd_dcp_slave* s = NULL;
            const crd_status st = crd_dcp_slave_create(ctx, &d, &plant, &link, &opt, &s);
            done = st == CRD_OK;
            if (!done) {
                check_status(st, CRD_E_MEMORY);
                check(!s);
            }
            crd_dcp_slave_destroy(s);
            check_int(a.live, before);
            crd_context_destroy(ctx);
        }
        check(done);
    }
    free(r);
}

static void options_and_descriptions_that_make_no_sense_are_refused_with_a_sentence(void** state)
{
    rig* r = rig_create(NULL, NULL);
    const crd_dcp_plant plant = rig_plant(r);
    const crd_dcp_link link = rig_link(r);
    crd_dcp_slave* s = NULL;
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.max_groups = 0;
    check_status(crd_dcp_slave_create(r->ctx, &r->d, &plant, &link, &opt, &s), CRD_E_RANGE);
    check_contains(crd_error_text(r->ctx), "max_groups = 0");
    opt = crd_dcp_slave_defaults();
    opt.max_pdu = 10;
    check_status(crd_dcp_slave_create(r->ctx, &r->d, &plant, &link, &opt, &s), CRD_E_RANGE);
    check_contains(crd_error_text(r->ctx), "max_pdu = 10");
    crd_dcp_variable v = {RIG_HEAD("n", 1, STRING, ""), RIG_FREE,
                          .causality = CRD_STRUCTURAL_PARAMETER};
    crd_dcp_description d = rig_description();
    d.variables = &v;
    d.variable_count = 1;
    check_status(crd_dcp_slave_create(r->ctx, &d, &plant, &link, NULL, &s), CRD_E_RANGE);
    check_contains(crd_error_text(r->ctx), "variable n");
    d = with_heartbeat();
    d.heartbeat_denominator = 0;
    check_status(crd_dcp_slave_create(r->ctx, &d, &plant, &link, NULL, &s), CRD_E_RANGE);
    check_contains(crd_error_text(r->ctx), "heartbeat");
    rig_destroy(r);
}

static void more_groups_than_there_is_room_for_are_refused(void** state)
{
    crd_dcp_slave_options opt = crd_dcp_slave_defaults();
    opt.max_groups = 2;
    opt.max_targets = 1;
    rig* r = rig_create(NULL, &opt);
    rig_register(r, CRD_DCP_NRT);
    rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 1);
    rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 2);
    rig_do(r, .type = CRDI_DCP_CFG_OUTPUT, .id = 2, .vr = 11);
    rig_refused(r, 0x1001, .type = CRDI_DCP_CFG_SCOPE, .id = 3);
    rig_refused(r, 0x1001, .type = CRDI_DCP_CFG_OUTPUT, .id = 3, .vr = 11);
    rig_refused(r, 0x1001, .type = CRDI_DCP_CFG_STEPS, .id = 3, .steps = 1);
    rig_refused(r, 0x1001, .type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .id = 2, .vr = 22,
                .data_type = CRD_DCP_FLOAT64);
    rig_network(r, CRDI_DCP_CFG_TARGET_NETWORK, 2, 1);
    rig_refused(r, 0x2007, .type = CRDI_DCP_CFG_TARGET_NETWORK, .id = 2, .port = 2,
                .address = 0x7F000001);
    rig_do(r, .type = CRDI_DCP_CFG_CLEAR);
    rig_do(r, .type = CRDI_DCP_CFG_SCOPE, .id = 3);
    rig_destroy(r);
}

// ---- whatever comes ----------------------------------------------------------------------------

static uint32_t dice(uint64_t* x, uint32_t sides)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return (uint32_t)(*x >> 32) % sides;
}

// A request that often makes sense: the next sequence id, the state it is in, known numbers.
static crdi_dcp_pdu likely(rig* r, uint64_t* x)
{
    static const uint8_t types[] = {1,    2,    3,    4,    5,    6,    7,    8,    9,
                                    10,   0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27,
                                    0x28, 0x29, 0x2A, 0x2B, 0x80, 0x81, 0x82, 0xF0, 0xF1};
    static const uint8_t vrs[] = {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16, 21, 22, 23, 24, 31, 99};
    static const uint8_t bytes[64] = {1, 0, 0, 0, 2};
    const crd_dcp_state state = crd_dcp_slave_state(r->slave);
    crdi_dcp_pdu p = {.type = types[dice(x, sizeof types)],
                      .seq = r->seq,
                      .peer = dice(x, 50) ? 1 : 2,
                      .state = dice(x, 20) ? (uint8_t)state : (uint8_t)dice(x, 20),
                      .op_mode = (uint8_t)dice(x, 3),
                      .major = 1,
                      .steps = dice(x, 4),
                      .numerator = 1,
                      .denominator = dice(x, 8) ? 100 : dice(x, 1000),
                      .id = (uint16_t)dice(x, 3),
                      .pos = (uint16_t)dice(x, 2),
                      .vr = vrs[dice(x, sizeof vrs)],
                      .data_type = (uint8_t)(dice(x, 3) ? CRD_DCP_FLOAT64 : dice(x, 13)),
                      .transport = dice(x, 9) ? 0 : (uint8_t)dice(x, 6),
                      .port = dice(x, 9) ? 9001 : (uint16_t)dice(x, 65536),
                      .address = 0x7F000001,
                      .category = (uint8_t)dice(x, 3),
                      .level = (uint8_t)dice(x, 6),
                      .mode = (uint8_t)dice(x, 4),
                      .max = (uint8_t)dice(x, 9),
                      .scope = (uint8_t)dice(x, 4)};
    if (p.type == CRDI_DCP_STC_RUN && dice(x, 4) == 0) {
        p.time = (int64_t)r->now + dice(x, 4) - 1;
    }
    if (p.type == CRDI_DCP_CFG_CLEAR && dice(x, 8)) { p.type = CRDI_DCP_INF_STATE; }
    if (p.type >= CRDI_DCP_DAT_INPUT_OUTPUT) { p.seq = (uint16_t)dice(x, 50); }
    if (p.type == CRDI_DCP_CFG_PARAMETER || p.type >= CRDI_DCP_DAT_INPUT_OUTPUT) {
        p.payload = bytes;
        p.payload_length = dice(x, 3) ? 8 : 1 + dice(x, 60);
    }
    memcpy(p.uuid, rig_uuid, sizeof p.uuid);
    return p;
}

// Every state that was entered follows from the one before by the tables.
static void follow(rig* r, crd_dcp_state* at, crd_dcp_state* from_run, crd_dcp_op_mode mode)
{
    for (int i = 0; i < r->out_count; i++) {
        const rig_packet* p = &r->out[i];
        if (p->bytes[0] != CRDI_DCP_NTF_STATE_CHANGED) { continue; }
        const crd_dcp_state to = p->bytes[2];
        bool possible = false;
        for (int type = CRDI_DCP_STC_REGISTER; type <= CRDI_DCP_STC_RESET; type++) {
            possible = possible || crdi_dcp_next_state(*at, type, mode) == (int)to;
        }
        for (int event = CRDI_DCP_SIG_DONE; event <= CRDI_DCP_SIG_RESOLVED; event++) {
            possible = possible || crdi_dcp_next_state_event(*at, event, *from_run) == (int)to;
        }
        if (!possible) { fail_msg("from state %02x to %02x", *at, to); }
        if (to == CRD_DCP_COMPUTING) { *from_run = *at; }
        *at = to;
    }
    check_int(*at, crd_dcp_slave_state(r->slave));
}

static void whatever_comes_the_invariants_hold(void** state)
{
    crd_dcp_description d = with_heartbeat();
    d.hrt = true;
    d.heartbeat_denominator = 1;
    d.heartbeat_numerator = 20;
    int visits[CRD_DCP_STATE_COUNT] = {0};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint64_t x = seed * 0x9E3779B97F4A7C15u;
        rig* r = rig_create(&d, NULL);
        const int64_t allocations = r->allocator.allocations;
        crd_dcp_state at = CRD_DCP_ALIVE, from_run = CRD_DCP_ALIVE;
        crd_dcp_op_mode mode = CRD_DCP_NRT;
        for (int i = 0; i < 3000; i++) {
            const bool was_alive = crd_dcp_slave_state(r->slave) == CRD_DCP_ALIVE;
            const crd_dcp_slave_counts before = crd_dcp_slave_get_counts(r->slave);
            for (int k = 0; k < CRD_DCP_STATE_COUNT; k++) {
                r->enters[k] =
                    dice(&x, 200) ? (dice(&x, 8) ? CRD_DCP_DONE : CRD_DCP_LATER) : CRD_DCP_FAILED;
            }
            r->steps = dice(&x, 8) ? CRD_DCP_DONE : CRD_DCP_LATER;
            crdi_dcp_pdu p = likely(r, &x);
            uint8_t bytes[RIG_BYTES];
            size_t n = crdi_dcp_encode(&p, bytes, sizeof bytes);
            if (dice(&x, 40) == 0) { n = dice(&x, (uint32_t)n + 1); }
            if (dice(&x, 40) == 0 && n) { bytes[dice(&x, (uint32_t)n)] = (uint8_t)dice(&x, 256); }
            if (dice(&x, 10) == 0) { crd_dcp_slave_done(r->slave, CRD_DCP_DONE, r->now); }
            if (dice(&x, 5) == 0) { crd_dcp_slave_advance(r->slave, r->now); }
            if (dice(&x, 300) == 0) { crd_dcp_slave_stop(r->slave, r->now); }
            if (dice(&x, 100) == 0) { r->now += dice(&x, 100) * 0.01; }
            rig_receive(r, bytes, n);

            // One answer to each request that was not dropped.
            const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(r->slave);
            check_int(c.requests, c.acks + c.nacks + c.muted);
            check(c.requests - before.requests <= 1);
            int answers = 0;
            for (int k = 0; k < r->out_count; k++) {
                const uint8_t type = r->out[k].bytes[0];
                answers += type >= CRDI_DCP_RSP_ACK && type <= CRDI_DCP_RSP_LOG_ACK;
                crdi_dcp_pdu out;
                check_int(crdi_dcp_decode(r->out[k].bytes, r->out[k].length, &out), CRDI_DCP_GOOD);
                if (type == CRDI_DCP_RSP_NACK) { r->seq = out.expected; }
                if (type == CRDI_DCP_RSP_ACK && was_alive) { mode = p.op_mode; }
            }
            check_int(answers, c.requests - before.requests - (c.muted - before.muted));
            if (c.acks > before.acks) { r->seq = (uint16_t)(p.seq + 1); }
            follow(r, &at, &from_run, mode);
            visits[at]++;
            r->out_count = 0;
            r->listening_count = r->connected_count = r->entered_count = 0;
            if (at == CRD_DCP_CONFIGURATION) { r->ticks = 0; }
            if (at >= CRD_DCP_STOPPED && dice(&x, 4)) {
                // Otherwise it would stay there for long.
                p = (crdi_dcp_pdu){.type = at == CRD_DCP_STOPPED && dice(&x, 2)
                                               ? CRDI_DCP_STC_RESET
                                               : CRDI_DCP_STC_DEREGISTER,
                                   .seq = r->seq++,
                                   .peer = 1,
                                   .state = (uint8_t)at};
                rig_tell(r, &p);
                follow(r, &at, &from_run, mode);
                r->out_count = 0;
                r->entered_count = 0;
                r->ticks = 0;
            }
        }
        check_int(r->allocator.allocations, allocations);
        rig_destroy(r);
    }
    for (int s = 0; s < CRD_DCP_STATE_COUNT; s++) { // it was not all refusals
        if (s == CRD_DCP_SENDING_I || s == CRD_DCP_SENDING_D) { continue; }
        if (visits[s] == 0) { fail_msg("state %02x was never met", s); }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_for_it_is_dropped_without_an_answer),
        cmocka_unit_test(a_registration_is_refused_for_the_first_thing_that_is_wrong),
        cmocka_unit_test(recorded_refusals_in_configuration_come_back_byte_for_byte),
        cmocka_unit_test(each_cfg_is_refused_with_the_code_of_its_fault),
        cmocka_unit_test(what_the_description_does_not_offer_is_not_supported),
        cmocka_unit_test(prepare_names_the_first_thing_that_is_missing),
        cmocka_unit_test(a_pdu_that_cannot_be_sent_is_refused_when_it_is_configured),
        cmocka_unit_test(a_fixed_resolution_and_fixed_steps_may_only_be_confirmed),
        cmocka_unit_test(steps_of_nrt_keep_to_the_description),
        cmocka_unit_test(another_host_may_look_at_the_state_and_nothing_else),
        cmocka_unit_test(other_ports_of_the_masters_host_are_strangers),
        cmocka_unit_test(a_master_that_was_restarted_takes_over_what_is_at_rest),
        cmocka_unit_test(on_request_a_master_goes_on_from_another_port),
        cmocka_unit_test(data_go_only_to_allowed_targets),
        cmocka_unit_test(garbage_gets_no_more_answers_than_allowed_in_a_second),
        cmocka_unit_test(sequence_ids_wrap_and_only_the_next_one_counts),
        cmocka_unit_test(behind_clear_and_reset_both_ways_of_counting_are_right_once),
        cmocka_unit_test(what_is_sent_leaves_together_but_not_behind_the_plant),
        cmocka_unit_test(the_order_of_a_group_does_not_matter_to_its_values),
        cmocka_unit_test(in_nrt_inputs_count_from_the_next_step_and_the_newest_wins),
        cmocka_unit_test(in_srt_inputs_and_parameters_count_at_once),
        cmocka_unit_test(initialisation_takes_the_newest_inputs_and_may_be_repeated),
        cmocka_unit_test(a_scope_says_where_data_are_sent_and_taken),
        cmocka_unit_test(in_real_time_a_scope_of_initialisation_is_not_sent),
        cmocka_unit_test(one_group_goes_to_all_its_targets_with_one_sequence_id),
        cmocka_unit_test(old_and_doubled_data_are_dropped_and_gaps_are_counted_across_the_wrap),
        cmocka_unit_test(the_least_limit_of_a_group_counts_and_0_is_one),
        cmocka_unit_test(data_in_order_miss_nothing_however_often_the_ids_wrap),
        cmocka_unit_test(data_of_a_wrong_length_id_or_state_change_nothing),
        cmocka_unit_test(values_of_other_types_are_converted),
        cmocka_unit_test(an_array_may_be_fed_with_a_type_of_which_more_fit_into_a_pdu),
        cmocka_unit_test(values_out_of_range_are_counted_or_on_request_an_error),
        cmocka_unit_test(parameters_of_all_kinds_reach_the_plant_before_it_is_prepared),
        cmocka_unit_test(a_reset_gives_the_plant_its_start_values_again),
        cmocka_unit_test(structural_parameters_size_arrays_in_configuration),
        cmocka_unit_test(a_structural_parameter_goes_up_to_its_max_and_arrays_of_parameters_follow),
        cmocka_unit_test(steps_are_due_on_a_grid_from_the_start_time_on),
        cmocka_unit_test(late_steps_are_counted_in_srt_and_an_error_in_hrt),
        cmocka_unit_test(a_jump_of_time_is_caught_up_in_portions),
        cmocka_unit_test(a_step_that_takes_long_holds_up_the_next_ones),
        cmocka_unit_test(what_was_due_before_a_heartbeat_was_missed_is_done_before),
        cmocka_unit_test(a_missed_heartbeat_is_an_error_in_every_state_of_normal_operation),
        cmocka_unit_test(a_duty_that_is_not_done_holds_the_state_and_refuses_the_next),
        cmocka_unit_test(stopping_gives_up_the_duty_that_is_under_way),
        cmocka_unit_test(the_slave_may_stop_by_itself_while_it_runs),
        cmocka_unit_test(a_real_time_slave_steps_while_it_synchronizes),
        cmocka_unit_test(a_plant_may_stop_the_slave_or_report_a_fault_in_the_middle_of_a_step),
        cmocka_unit_test(a_real_time_step_that_fails_is_an_error),
        cmocka_unit_test(a_fault_in_any_state_of_normal_operation_leads_to_the_error_states),
        cmocka_unit_test(a_plant_that_fails_leads_to_the_error_states),
        cmocka_unit_test(ports_that_cannot_be_opened_are_an_error),
        cmocka_unit_test(streams_are_connected_while_configuring),
        cmocka_unit_test(entries_are_kept_on_request_and_gone_once_delivered),
        cmocka_unit_test(entries_are_notified_at_once_and_not_kept),
        cmocka_unit_test(entries_of_one_category_are_taken_out_of_the_others),
        cmocka_unit_test(what_does_not_fit_into_a_pdu_is_not_sent),
        cmocka_unit_test(out_of_memory_while_creating_leaves_nothing_behind),
        cmocka_unit_test(options_and_descriptions_that_make_no_sense_are_refused_with_a_sentence),
        cmocka_unit_test(more_groups_than_there_is_room_for_are_refused),
        cmocka_unit_test(whatever_comes_the_invariants_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
