// The official test procedures of DCP (those that DCPTester plays as its generator makes them),
// their requests and answers as a table of our own: which state, what is sent, what has to come.
// Fields that the procedures call invalid have values here that no slave of this description takes.
// CFG_parameter comes with an empty value: its length depends on the parameter, so that state and
// value reference are judged first.
#include "rig.h"

enum { ACK = 0, NOT_HERE = 0x1003, NO_PDU = 0x4005 };
enum { NO_VR = 999, NO_TYPE = 200 };

typedef struct exchange {
    crdi_dcp_pdu q;
    uint16_t error; // ACK: acknowledged
} exchange;

// A request of a type that is wrong in every field.
static crdi_dcp_pdu invalid(uint8_t type)
{
    return (crdi_dcp_pdu){.type = type,
                          .state = 0xFE,
                          .op_mode = 9,
                          .major = 77,
                          .minor = 77,
                          .time = 1,
                          .steps = 1,
                          .id = 0xFFFF,
                          .pos = 0xFFFF,
                          .vr = NO_VR,
                          .data_type = NO_TYPE,
                          .numerator = 4294967291,
                          .denominator = 4294967279,
                          .category = 99,
                          .level = 99,
                          .mode = 99,
                          .scope = 99};
}

static void expect(rig* r, const crdi_dcp_pdu* q, uint16_t error)
{
    const crd_dcp_state before = crd_dcp_slave_state(r->slave);
    const crdi_dcp_pdu a = rig_ask(r, *q);
    const bool good =
        error == ACK ? a.type == CRDI_DCP_RSP_ACK : a.type == CRDI_DCP_RSP_NACK && a.error == error;
    if (!good) {
        fail_msg("%s in %s: 0x%02x, error 0x%04x, expected 0x%04x", crdi_dcp_type_name(q->type),
                 crd_dcp_state_name(before), a.type, a.error, error);
    }
    if (error != ACK) { check_int(crd_dcp_slave_state(r->slave), before); }
}

static void play(rig* r, const exchange* e, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        expect(r, &e[i].q, e[i].error);
    }
}

static void go_to(rig* r, crd_dcp_state state)
{
    rig_register(r, CRD_DCP_SRT);
    if (state == CRD_DCP_CONFIGURATION) { return; }
    rig_configure(r);
    rig_do(r, .type = CRDI_DCP_STC_PREPARE);
    rig_states(r, "0203");
    if (state == CRD_DCP_PREPARED) { return; }
    rig_do(r, .type = CRDI_DCP_STC_CONFIGURE);
    rig_states(r, "0405");
    if (state == CRD_DCP_CONFIGURED) { return; }
    const bool init = state == CRD_DCP_INITIALIZED;
    rig_do(r, .type = init ? CRDI_DCP_STC_INITIALIZE : CRDI_DCP_STC_RUN);
    rig_states(r, init ? "0607" : "090a");
    crd_dcp_slave_advance(r->slave, r->now); // the first step, and what it sends
    r->out_count = 0;
}

// ---- requests that a state does not allow ------------------------------------------------------

static void what_a_state_does_not_allow_is_refused_for_that_whatever_else_is_wrong(void** state)
{
    static const struct {
        crd_dcp_state in;
        uint8_t allowed[3]; // of the state changes
    } places[] = {
        {CRD_DCP_CONFIGURATION, {CRDI_DCP_STC_PREPARE, CRDI_DCP_STC_DEREGISTER}},
        {CRD_DCP_PREPARED, {CRDI_DCP_STC_CONFIGURE, CRDI_DCP_STC_STOP}},
        {CRD_DCP_CONFIGURED, {CRDI_DCP_STC_INITIALIZE, CRDI_DCP_STC_RUN, CRDI_DCP_STC_STOP}},
        {CRD_DCP_INITIALIZED, {CRDI_DCP_STC_SEND_OUTPUTS, CRDI_DCP_STC_STOP}},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        rig* r = rig_create(NULL, NULL);
        go_to(r, places[i].in);
        for (int type = CRDI_DCP_STC_REGISTER; type <= CRDI_DCP_CFG_SCOPE; type++) {
            const bool cfg = type >= CRDI_DCP_CFG_TIME_RES;
            if (!crdi_dcp_is_request((uint8_t)type) || memchr(places[i].allowed, type, 3) ||
                (cfg && places[i].in == CRD_DCP_CONFIGURATION)) {
                continue;
            }
            const crdi_dcp_pdu q = invalid((uint8_t)type);
            expect(r, &q, type == CRDI_DCP_STC_DO_STEP ? NO_PDU : NOT_HERE);
        }
        expect(r, &(crdi_dcp_pdu){.type = CRDI_DCP_INF_ERROR}, NOT_HERE);
        rig_destroy(r);
    }
}

// ---- fields that are wrong ---------------------------------------------------------------------

static void a_wrong_state_id_is_refused_in_every_state(void** state)
{
    static const struct {
        crd_dcp_state in;
        uint8_t type;
    } rows[] = {
        {CRD_DCP_CONFIGURATION, CRDI_DCP_STC_PREPARE},
        {CRD_DCP_CONFIGURATION, CRDI_DCP_STC_DEREGISTER},
        {CRD_DCP_PREPARED, CRDI_DCP_STC_CONFIGURE},
        {CRD_DCP_PREPARED, CRDI_DCP_STC_STOP},
        {CRD_DCP_CONFIGURED, CRDI_DCP_STC_INITIALIZE},
        {CRD_DCP_CONFIGURED, CRDI_DCP_STC_RUN},
        {CRD_DCP_CONFIGURED, CRDI_DCP_STC_STOP},
        {CRD_DCP_INITIALIZED, CRDI_DCP_STC_SEND_OUTPUTS},
        {CRD_DCP_INITIALIZED, CRDI_DCP_STC_STOP},
        {CRD_DCP_SYNCHRONIZED, CRDI_DCP_STC_STOP},
        {CRD_DCP_SYNCHRONIZED, CRDI_DCP_STC_RUN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig* r = rig_create(NULL, NULL);
        go_to(r, rows[i].in);
        for (uint8_t id = 1; id < 40; id++) {
            if (id == (uint8_t)rows[i].in) { continue; }
            expect(r, &(crdi_dcp_pdu){.type = rows[i].type, .state = id, .time = 1}, 0x200D);
        }
        rig_destroy(r);
    }
}

static void a_registration_is_refused_for_its_first_wrong_field(void** state)
{
    rig* r = rig_create(NULL, NULL);
    crdi_dcp_pdu good = {.type = CRDI_DCP_STC_REGISTER, .op_mode = CRD_DCP_SRT, .major = 1};
    memcpy(good.uuid, rig_uuid, sizeof good.uuid);
    for (uint8_t id = 1; id < 25; id++) {
        crdi_dcp_pdu q = good;
        q.state = id;
        expect(r, &q, 0x200D);
    }
    crdi_dcp_pdu q = good;
    q.op_mode = CRD_DCP_HRT;
    expect(r, &q, 0x2008);
    q = good;
    q.uuid[3] ^= 1;
    expect(r, &q, 0x2011);
    q = good;
    q.major = 2;
    expect(r, &q, 0x2005);
    q = good;
    q.minor = 3;
    expect(r, &q, 0x2006);
    expect(r, &good, ACK);
    rig_states(r, "01");
    rig_destroy(r);
}

#define IP .address = 0x7F000001
static void wrong_and_incomplete_configurations_are_refused_in_the_prescribed_order(void** state)
{
    static const exchange rows[] = {
        {{.type = CRDI_DCP_CFG_TIME_RES, .numerator = 0, .denominator = 100}, 0x200F},
        {{.type = CRDI_DCP_CFG_TIME_RES, .numerator = 1, .denominator = 0}, 0x200F},
        {{.type = CRDI_DCP_CFG_TIME_RES, .numerator = 7, .denominator = 9}, 0x200F},
        {{.type = CRDI_DCP_CFG_CLEAR}, ACK},
        {{.type = CRDI_DCP_CFG_INPUT, .pos = 1, .vr = NO_VR, .data_type = NO_TYPE}, 0x2012},
        {{.type = CRDI_DCP_CFG_OUTPUT, .pos = 1, .vr = NO_VR}, 0x2012},
        {{.type = CRDI_DCP_CFG_PARAMETER, .vr = NO_VR, .data_type = NO_TYPE}, 0x2012},
        {{.type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .vr = NO_VR, .data_type = NO_TYPE}, 0x2012},
        // an empty value of a parameter that exists: its type, then its length
        {{.type = CRDI_DCP_CFG_PARAMETER, .vr = 22, .data_type = NO_TYPE}, 0x200B},
        {{.type = CRDI_DCP_CFG_PARAMETER, .vr = 22, .data_type = CRD_DCP_FLOAT64}, 0x2001},
        {{.type = CRDI_DCP_CFG_PARAMETER, .vr = 23, .data_type = CRD_DCP_STRING}, 0x2001},
        {{.type = CRDI_DCP_CFG_PARAMETER, .vr = 31, .data_type = CRD_DCP_UINT16}, 0x2001},
        {{.type = CRDI_DCP_CFG_CLEAR}, ACK},
        // an output
        {{.type = CRDI_DCP_CFG_OUTPUT, .pos = 0, .vr = 11}, ACK},
        {{.type = CRDI_DCP_CFG_OUTPUT, .pos = 2, .vr = 11}, ACK},
        {{.type = CRDI_DCP_STC_PREPARE}, 0x3002},
        {{.type = CRDI_DCP_CFG_OUTPUT, .pos = 1, .vr = 11}, ACK},
        {{.type = CRDI_DCP_STC_PREPARE}, 0x3005},
        {{.type = CRDI_DCP_CFG_TARGET_NETWORK, .port = 8081, IP}, ACK},
        {{.type = CRDI_DCP_STC_PREPARE}, 0x3008},
        {{.type = CRDI_DCP_CFG_STEPS, .steps = 1}, ACK},
        {{.type = CRDI_DCP_CFG_TIME_RES, .numerator = 10, .denominator = 1000}, ACK},
        {{.type = CRDI_DCP_STC_PREPARE}, 0x3007},
        {{.type = CRDI_DCP_CFG_CLEAR}, ACK},
        // an input
        {{.type = CRDI_DCP_CFG_INPUT, .pos = 0, .vr = 1, .data_type = CRD_DCP_FLOAT64}, ACK},
        {{.type = CRDI_DCP_CFG_INPUT, .pos = 2, .vr = 2, .data_type = CRD_DCP_FLOAT64}, ACK},
        {{.type = CRDI_DCP_STC_PREPARE}, 0x3001},
        {{.type = CRDI_DCP_CFG_INPUT, .pos = 1, .vr = 1, .data_type = CRD_DCP_FLOAT64}, ACK},
        {{.type = CRDI_DCP_STC_PREPARE}, 0x3004},
        {{.type = CRDI_DCP_CFG_CLEAR}, ACK},
        // a parameter that is tuned
        {{.type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .pos = 0, .vr = 22, .data_type = CRD_DCP_FLOAT64},
         ACK},
        {{.type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .pos = 2, .vr = 22, .data_type = CRD_DCP_FLOAT64},
         ACK},
        {{.type = CRDI_DCP_STC_PREPARE}, 0x3003},
        {{.type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .pos = 1, .vr = 22, .data_type = CRD_DCP_FLOAT64},
         ACK},
        {{.type = CRDI_DCP_STC_PREPARE}, 0x3006},
        {{.type = CRDI_DCP_CFG_CLEAR}, ACK},
        // types
        {{.type = CRDI_DCP_CFG_INPUT, .vr = 1, .data_type = NO_TYPE}, 0x200B},
        {{.type = CRDI_DCP_CFG_TUNABLE_PARAMETER, .vr = 22, .data_type = NO_TYPE}, 0x200B},
        {{.type = CRDI_DCP_CFG_CLEAR}, ACK},
    };
    rig* r = rig_create(NULL, NULL);
    go_to(r, CRD_DCP_CONFIGURATION);
    play(r, rows, sizeof rows / sizeof *rows);
    rig_configure(r); // and then everything is as it should be
    rig_make_ready(r);
    rig_destroy(r);
}

// ---- what is right -----------------------------------------------------------------------------

static void the_positive_procedures_come_to_their_end(void** state)
{
    rig* r = rig_create(NULL, NULL);
    for (int round = 0; round < 2; round++) { // stop, deregister, register anew
        go_to(r, CRD_DCP_CONFIGURED);
        for (int i = 0; i < 2; i++) {
            rig_do(r, .type = CRDI_DCP_STC_INITIALIZE);
            rig_states(r, "0607");
            rig_do(r, .type = CRDI_DCP_STC_SEND_OUTPUTS);
            check_int(rig_take(r, 0).bytes[2], CRD_DCP_SENDING_I);
            check_int(rig_take(r, 0).bytes[0], CRDI_DCP_DAT_INPUT_OUTPUT);
            rig_states(r, "05");
        }
        rig_do(r, .type = CRDI_DCP_STC_STOP);
        rig_states(r, "0f10");
        rig_do(r, .type = CRDI_DCP_STC_DEREGISTER);
        rig_states(r, "00");
    }
    rig_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_state_does_not_allow_is_refused_for_that_whatever_else_is_wrong),
        cmocka_unit_test(a_wrong_state_id_is_refused_in_every_state),
        cmocka_unit_test(a_registration_is_refused_for_its_first_wrong_field),
        cmocka_unit_test(wrong_and_incomplete_configurations_are_refused_in_the_prescribed_order),
        cmocka_unit_test(the_positive_procedures_come_to_their_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
