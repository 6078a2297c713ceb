// DCP over CAN: the file, frames and PDUs, and a slave on a bus that is a pair of sockets.
#include "dcp/can/can.h"
#include "rig.h"
#include "shared/base.h"

#include <linux/can.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct bench {
    check_allocator allocator;
    crd_context* ctx;
    char* text; // of the file
    size_t length;
    char line[256]; // of the log
    crd_dcp_can_description* d;
    const crd_dcp_finding* findings;
    int finding_count;
    int fd[2];
    crd_dcp_can* master;
    crd_dcp_can* slave_end;
    rig* r;
    crd_dcp_can_slave* slave;
} bench;

static void keep_line(void* user, crd_level level, const char* text)
{
    (void)level;
    snprintf(((bench*)user)->line, sizeof((bench*)user)->line, "%s", text);
}

static const char data_file[] = TEST_SOURCE_DIR "/dcp/data/can.xml";

static void open_context(bench* b)
{
    *b = (bench){.fd = {-1, -1}};
    b->allocator.fail_at = -1;
    crd_context_options o = crd_context_defaults();
    o.realloc = check_realloc;
    o.realloc_user = &b->allocator;
    o.log = keep_line;
    o.log_user = b;
    b->ctx = crd_context_create(&o);
    FILE* f = fopen(data_file, "rb");
    check(f);
    b->text = calloc(1, 65536);
    b->length = fread(b->text, 1, 65535, f);
    fclose(f);
}

static void close_context(bench* b)
{
    free(b->text);
    crd_dcp_can_description_destroy(b->d);
    crd_context_destroy(b->ctx);
    check_int(b->allocator.live, 0);
}

static void open_bus(bench* b)
{
    open_context(b);
    check_ok(crd_dcp_can_load(b->ctx, data_file, &b->d, &b->findings, &b->finding_count));
    check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, b->fd) == 0);
    check_ok(crd_dcp_can_create(b->ctx, b->d, b->fd[0], &b->master));
    check_ok(crd_dcp_can_create(b->ctx, b->d, b->fd[1], &b->slave_end));
}

static void close_bus(bench* b)
{
    crd_dcp_can_slave_destroy(b->slave);
    crd_dcp_can_destroy(b->master);
    crd_dcp_can_destroy(b->slave_end);
    close(b->fd[0]);
    close(b->fd[1]);
    if (b->r) { rig_destroy(b->r); }
    close_context(b);
}

// ---- the file ----------------------------------------------------------------------------------

static const crdi_dcp_can_message* message(const crd_dcp_can_description* d, int type, int sender,
                                           int id)
{
    for (int i = 0; i < d->message_count; i++) {
        const crdi_dcp_can_message* m = &d->messages[i];
        if (m->type == type && m->sender == sender && m->id == id) { return m; }
    }
    fail_msg("no message 0x%02x of %d", type, sender);
    return NULL;
}

static void look_at_file(const crd_dcp_can_description* d)
{
    check_int(d->message_count, 30);
    check_int(d->slave_count, 2);
    const crdi_dcp_can_message* m = message(d, CRDI_DCP_STC_DO_STEP, 0, 0);
    check_int(m->can_id, 262);
    check_int(m->length, 3);
    m = message(d, CRDI_DCP_RSP_NACK, 2, 0);
    check_int(m->can_id, 277);
    m = message(d, CRDI_DCP_DAT_INPUT_OUTPUT, 1, 10);
    check_int(m->item_count, 1);
    check_text(m->items[0].name, "speed");
    check_text(m->items[0].unit, "rad/s");
    check_near(m->items[0].min, -1000, 0);
    check_int(m->receiver_count, 2);
    check_int(m->receivers[1], 2);
    m = message(d, CRDI_DCP_DAT_INPUT_OUTPUT, 0, 22);
    check_int(m->items[1].type, CRD_DCP_BINARY);
    check_int(m->items[1].offset, 5);
    check_int(m->items[1].length, 3);
    check(isnan(m->items[1].min));
    m = message(d, CRDI_DCP_DAT_PARAMETER, 0, 30);
    check_int(m->length, 6);
    const crdi_dcp_can_config* c = &d->slaves[0];
    check_text(c->name, "bench");
    check(memcmp(c->uuid, rig_uuid, 16) == 0);
    check_int(c->setting_count, 31);
    check_int(c->settings[0].type, CRDI_DCP_CFG_TIME_RES);
    check_int(c->settings[0].denominator, 100);
    check_int(c->settings[5].type, CRDI_DCP_CFG_INPUT);
    check_int(c->settings[5].data_type, CRD_DCP_FLOAT32);
    check_int(c->settings[13].transport, CRD_DCP_CAN);
    check_int(c->settings[20].payload_length, 13);
    check(memcmp(c->settings[20].payload, "\x09\0\0\0bench <1>", 13) == 0);
    check(memcmp(c->settings[21].payload, "\xf9\xff", 2) == 0);
    c = &d->slaves[1];
    check_text(c->name, "");
    check(c->settings[1].vr == UINT64_MAX);
    check_int(c->settings[4].payload_length, 24);
    check_int(c->settings[4].payload[7], 255);
    check_int(c->settings[4].payload[16], 1);
    check_int(c->settings[5].payload_length, 7);
    check_int(c->settings[5].payload[6], 0xA0);
    float x[2];
    check_int(c->settings[6].payload_length, 8);
    memcpy(x, c->settings[6].payload, 8);
    check_near(x[0], 0.1f, 0);
    check_near(x[1], -3e10f, 0);
}

static void a_file_is_read_and_written_and_read_again(void** state)
{
    (void)state;
    bench b;
    open_context(&b);
    check_ok(crd_dcp_can_load(b.ctx, data_file, &b.d, &b.findings, &b.finding_count));
    look_at_file(b.d);
    check_int(b.finding_count, 1); // the identifier of the extended frame
    check_text(b.findings[0].code, "C13");
    check_int(b.findings[0].severity, CRD_DCP_NOTE);
    check_int(b.findings[0].line, 55);
    crd_text first, second;
    crd_text_init(&first, b.ctx);
    crd_text_init(&second, b.ctx);
    check_ok(crdi_dcp_can_write(b.d, &first));
    crd_dcp_can_description* again = NULL;
    check_ok(crd_dcp_can_parse(b.ctx, first.data, first.length, "again", &again, NULL, NULL));
    look_at_file(again);
    check_ok(crdi_dcp_can_write(again, &second));
    check_text(second.data, first.data);
    crd_text_clear(&first);
    crd_text_clear(&second);
    crd_dcp_can_description_destroy(again);
    close_context(&b);
}

// The file with one piece of it changed.
static crd_status parse_changed(bench* b, const char* old, const char* fresh)
{
    char* text = calloc(1, 70000);
    const char* at = strstr(b->text, old);
    check(at);
    snprintf(text, 70000, "%.*s%s%s", (int)(at - b->text), b->text, fresh, at + strlen(old));
    crd_dcp_can_description_destroy(b->d);
    b->d = NULL;
    const crd_status st = crd_dcp_can_parse(b->ctx, text, strlen(text), "changed", &b->d,
                                            &b->findings, &b->finding_count);
    free(text);
    return st;
}

static void what_is_wrong_with_a_file_is_found_with_its_line(void** state)
{
    (void)state;
    static const struct {
        const char *old, *fresh, *code;
        int line;
        const char* text;
    } rows[] = {
        {"<KMatrix", "<Extra/><KMatrix", "C01", 4, "<Extra> is not expected in <DcpOverCan>"},
        {"<STC_run", "<STC_do_step canId=\"9\"/><STC_run", "C01", 10, "<STC_do_step>"},
        {"<CFG_time_res", "<CFG_clear/><CFG_time_res", "C01", 67, "<CFG_clear>"},
        {"numerator=\"1\"", "numerator=\"1\" color=\"red\"", "C02", 67, "an attribute 'color'"},
        {"canId=\"257\"", "", "C03", 6, "<STC_deregister> has no canId"},
        {"    <STC_prepare canId=\"258\"/>\n", "", "C03", 0, "has no <STC_prepare>"},
        {"<Uint32/>", "", "C03", 34, "<Payload> has no data type"},
        {"<Uint32/>", "<Uint32/><Uint8/>", "C03", 34, "<Payload> has no data type"},
        {" name=\"ticks\"", "", "C03", 34, "<Payload> has no name"},
        {"<Receiver dcpId=\"0\"/>\n    </DAT_input_output>\n    <DAT_parameter",
         "</DAT_input_output><DAT_parameter", "C03", 55, "has no <Receiver>"},
        {"      <Payload name=\"force\" offset=\"0\"><Float32/></Payload>\n", "", "C03", 55,
         "<DAT_input_output> has no <Payload>"},
        {"data_id=\"12\"><CAN/>", "data_id=\"12\">", "C03", 82, "does not say where"},
        {"data_id=\"12\"><CAN/>", "data_id=\"12\"><FlexRay/>", "C03", 82, "does not say where"},
        {"<Float64 value=\"0.25\"/>", "", "C03", 86, "<CFG_parameter> has no value"},
        {" uuid=\"00112233-4455-6677-8899-aabbccddeeff\"", "", "C03", 99, "has no uuid"},
        {"canId=\"257\"", "canId=\"65536\"", "C04", 6, "expected a whole number up to 65535"},
        {"canId=\"257\"", "canId=\"-1\"", "C04", 6, "canId = '-1'"},
        {"dataId=\"20\" length=\"8\"", "dataId=\"20\" length=\"9\"", "C04", 41, "up to 8"},
        {"source_data_type=\"0\"", "source_data_type=\"12\"", "C04", 73, "up to 11"},
        {"scope=\"2\"", "scope=\"3\"", "C04", 94, "up to 2"},
        {"max=\"1000\"", "max=\"much\"", "C04", 28, "max = 'much'"},
        {"-aabbccddeeff", "-aabbccddeef", "C04", 99, "6f1d2c3b-4a59"},
        {"value=\"-7\"", "value=\"40000\"", "C04", 88, "expected values of its type"},
        {"value=\"-7\"", "value=\"\"", "C04", 88, "expected values of its type"},
        {"value=\"0.1 -3e10\"", "value=\"0.1 -3e90\"", "C04", 106, "0.1 -3e90"},
        {"value=\"00FFa0\"", "value=\"00FFa\"", "C04", 105, "00FFa"},
        {"18446744073709551615 0 1", "18446744073709551616", "C04", 104, "of its type"},
        {"f_op_mode=\"2\"", "f_op_mode=\"3\"", "C05", 5, "f_op_mode = '3', expected '2'"},
        {"length=\"3\" f_type_id", "length=\"4\" f_type_id", "C05", 5,
         "length = '4', expected '3'"},
        {"f_steps_data_type=\"2\"", "f_steps_data_type=\"0\"", "C05", 4, "expected '2'"},
        {"canId=\"281\"", "canId=\"32\"", "C06", 41,
         "canId = 32, which <RSP_error_ack> in line 26 has"},
        {"canId=\"281\" senderRef=\"2\"", "canId=\"281\" senderRef=\"1\"", "C07", 26,
         "<RSP_error_ack> of sender 1 is there already in line 25"},
        {"canId=\"281\" senderRef=\"2\"", "canId=\"281\" senderRef=\"1\"", "C08", 99,
         "slave 2 has no <RSP_error_ack>"},
        {"name=\"ticks\" offset=\"0\"", "name=\"ticks\" offset=\"2\"", "C09", 34,
         "'ticks' stands at bytes 2 to 5, where there is another item"},
        {"name=\"mode\" offset=\"7\"><Uint8", "name=\"mode\" offset=\"7\"><Uint16", "C09", 47,
         "'mode' stands at bytes 7 to 8, expected within the 8"},
        {"dcpId=\"2\">", "dcpId=\"1\">", "C10", 99, "which another one has already"},
        {"dcpId=\"2\">", "dcpId=\"0\">", "C10", 99, "which is the master"},
        {"<Receiver dcpId=\"2\"/>", "<Receiver dcpId=\"9\"/>", "C11", 27, "received by 9"},
        {"senderRef=\"2\" dataId=\"40\"", "senderRef=\"7\" dataId=\"40\"", "C11", 55, "sent by 7"},
        {"<CFG_output data_id=\"12\"", "<CFG_output data_id=\"13\"", "C12", 79,
         "data_id 13 of slave 1 has no message"},
        {"data_id=\"11\" pos=\"1\"", "data_id=\"11\" pos=\"2\"", "C12", 78, "has pos = 2"},
        {"target_vr=\"1\" source_data_type=\"9\"", "target_vr=\"1\" source_data_type=\"8\"", "C12",
         71, "data_id 20 of slave 1 is read as float32, but 'u' in line 42 is float64"},
        {"<Receiver dcpId=\"2\"/>", "", "C12", 100, "slave 2 receives data_id 10, but is no"},
        {"      <CFG_param_network_information "
         "param_id=\"30\"><CAN/></CFG_param_network_information>\n",
         "", "C14", 89, "param_id 30 is; it will be CAN"},
    };
    bench b;
    open_context(&b);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_ok(parse_changed(&b, rows[i].old, rows[i].fresh));
        bool found = false;
        for (int k = 0; k < b.finding_count && !found; k++) {
            found = strcmp(b.findings[k].code, rows[i].code) == 0 &&
                    b.findings[k].line == rows[i].line && strstr(b.findings[k].text, rows[i].text);
        }
        if (!found) {
            for (int k = 0; k < b.finding_count; k++) {
                print_message("%d %s %s\n", b.findings[k].line, b.findings[k].code,
                              b.findings[k].text);
            }
            fail_msg("row %zu: %s in line %d: %s", i, rows[i].code, rows[i].line, rows[i].text);
        }
    }
    check_status(parse_changed(&b, "<DcpOverCan", "<Dcp"), CRD_E_FORMAT);
    check_status(parse_changed(&b, "</DcpOverCan>", "</DcpOverCan"), CRD_E_FORMAT);
    crd_dcp_can_description* d = NULL;
    static const char other[] = "<x/>";
    check_status(crd_dcp_can_parse(b.ctx, other, 4, "other.xml", &d, NULL, NULL), CRD_E_FORMAT);
    check_contains(crd_error_text(b.ctx), "other.xml:1: the root is <x>, expected <DcpOverCan>");
    static const char bare[] = "<DcpOverCan/>";
    check_ok(
        crd_dcp_can_parse(b.ctx, bare, sizeof bare - 1, "bare", &d, &b.findings, &b.finding_count));
    check_int(b.finding_count, 2);
    crd_dcp_can_description_destroy(d);
    check_status(crd_dcp_can_load(b.ctx, "/no/such.xml", &d, NULL, NULL), CRD_E_NOT_FOUND);
    check_status(crd_dcp_can_load(b.ctx, "/", &d, NULL, NULL), CRD_E_FORMAT);
    close_context(&b);
}

static void a_description_made_by_hand_is_checked_and_written(void** state)
{
    (void)state;
    bench b;
    open_context(&b);
    check_ok(crdi_dcp_can_description_create(b.ctx, &b.d));
    crdi_dcp_can_item item = {
        .name = "speed", .unit = "", .type = CRD_DCP_FLOAT32, .length = 4, .min = NAN, .max = NAN};
    const uint8_t receivers[] = {0};
    crdi_dcp_can_message data = {.can_id = 1,
                                 .type = CRDI_DCP_DAT_INPUT_OUTPUT,
                                 .sender = 5,
                                 .id = 10,
                                 .length = 4,
                                 .items = &item,
                                 .item_count = 1,
                                 .receivers = receivers,
                                 .receiver_count = 1};
    crdi_dcp_pdu settings[2] = {
        {.type = CRDI_DCP_CFG_OUTPUT, .id = 10, .vr = 11},
        {.type = CRDI_DCP_CFG_TARGET_NETWORK, .id = 10, .transport = CRD_DCP_CAN}};
    crdi_dcp_can_config slaves[2] = {
        {.name = "a", .id = 5, .settings = settings, .setting_count = 2}, {.name = "", .id = 6}};
    b.d->messages = &data;
    b.d->message_count = 1;
    b.d->slaves = slaves;
    b.d->slave_count = 2;
    check_ok(crdi_dcp_can_add_control(b.d, 256));
    check_int(b.d->message_count, 1 + 12 + 10);
    check_int(message(b.d, CRDI_DCP_RSP_ERROR_ACK, 6, 0)->can_id, 256 + 21);
    check_ok(crdi_dcp_can_validate(b.d, &b.findings, &b.finding_count));
    check_int(b.finding_count, 0);
    crd_text t;
    crd_text_init(&t, b.ctx);
    check_ok(crdi_dcp_can_write(b.d, &t));
    crd_dcp_can_description* again = NULL;
    check_ok(
        crd_dcp_can_parse(b.ctx, t.data, t.length, "again", &again, &b.findings, &b.finding_count));
    check_int(b.finding_count, 0);
    check_int(again->message_count, 23);
    crd_dcp_can_description_destroy(again);
    // What would be no file, or not the same.
    check_status(crdi_dcp_can_add_control(b.d, 65520), CRD_E_RANGE);
    check_contains(crd_error_text(b.ctx), "control needs 22 identifiers from 65520 on");
    item.length = 9;
    check_status(crdi_dcp_can_write(b.d, &t), CRD_E_RANGE);
    item.type = 99;
    check_status(crdi_dcp_can_write(b.d, &t), CRD_E_RANGE);
    item = (crdi_dcp_can_item){.name = "x",
                               .unit = "",
                               .type = CRD_DCP_STRING,
                               .length = 200,
                               .offset = 100,
                               .min = NAN,
                               .max = NAN};
    check_status(crdi_dcp_can_write(b.d, &t), CRD_E_RANGE);
    item.offset = 0;
    item.length = 4;
    check_ok(crdi_dcp_can_write(b.d, &t));
    settings[1].type = CRDI_DCP_CFG_LOGGING;
    check_status(crdi_dcp_can_write(b.d, &t), CRD_E_RANGE);
    check_contains(crd_error_text(b.ctx), "PDU 0x2a of slave 5 is no setting of CAN");
    settings[1].type = CRDI_DCP_CFG_PARAMETER;
    check_status(crdi_dcp_can_write(b.d, &t), CRD_E_RANGE);
    check_contains(crd_error_text(b.ctx), "has no value");
    // Other networks than the bus.
    static const uint8_t transports[] = {CRD_DCP_UDP, CRD_DCP_TCP, CRD_DCP_BLUETOOTH, CRD_DCP_USB};
    for (size_t i = 0; i < sizeof transports; i++) {
        settings[1] = (crdi_dcp_pdu){.type = CRDI_DCP_CFG_TARGET_NETWORK,
                                     .id = 10,
                                     .transport = transports[i],
                                     .port = 1234,
                                     .address = 0x7F000001,
                                     .bd_addr = 77,
                                     .endpoint = 9};
        crd_text_clear(&t);
        check_ok(crdi_dcp_can_write(b.d, &t));
        check_ok(crd_dcp_can_parse(b.ctx, t.data, t.length, "again", &again, &b.findings,
                                   &b.finding_count));
        check_int(b.finding_count, 0);
        const crdi_dcp_pdu* p = &again->slaves[0].settings[1];
        check_int(p->transport, transports[i]);
        check_int(p->port, transports[i] == CRD_DCP_USB ? 0 : 1234);
        check_int(p->bd_addr, transports[i] == CRD_DCP_BLUETOOTH ? 77 : 0);
        check_int(p->endpoint, transports[i] == CRD_DCP_USB ? 9 : 0);
        crd_dcp_can_description_destroy(again);
    }
    crd_text_clear(&t);
    close_context(&b);
}

// ---- frames ------------------------------------------------------------------------------------

static crdi_dcp_pdu pass_on(bench* b, crd_dcp_can* from, crd_dcp_can* to, crdi_dcp_pdu p,
                            uint8_t sender)
{
    crdi_dcp_pdu got;
    uint8_t who = 99;
    (void)b;
    check(crdi_dcp_can_send(from, &p, sender));
    check(crdi_dcp_can_receive(to, &got, &who, NULL));
    check_int(got.type, p.type);
    check_int(who, sender);
    check(!crdi_dcp_can_receive(to, &got, &who, NULL));
    return got;
}

static void every_message_travels_both_ways(void** state)
{
    (void)state;
    bench b;
    open_bus(&b);
    for (int type = CRDI_DCP_STC_REGISTER; type <= CRDI_DCP_STC_RESET; type++) {
        crdi_dcp_pdu p = {.type = (uint8_t)type, .peer = 2, .state = 7};
        if (type == CRDI_DCP_STC_REGISTER) { p.op_mode = CRD_DCP_NRT; }
        if (type == CRDI_DCP_STC_DO_STEP) { p.steps = 255; }
        const crdi_dcp_pdu got = pass_on(&b, b.master, b.slave_end, p, 0);
        check_int(got.peer, 2);
        check_int(got.state, 7);
        check_int(got.op_mode, p.op_mode);
        check_int(got.steps, p.steps);
    }
    for (int type = CRDI_DCP_INF_STATE; type <= CRDI_DCP_INF_ERROR; type++) {
        check_int(
            pass_on(&b, b.master, b.slave_end, (crdi_dcp_pdu){.type = (uint8_t)type, .peer = 1}, 0)
                .peer,
            1);
    }
    static const uint8_t answers[] = {CRDI_DCP_RSP_ACK, CRDI_DCP_RSP_NACK, CRDI_DCP_RSP_STATE_ACK,
                                      CRDI_DCP_RSP_ERROR_ACK, CRDI_DCP_NTF_STATE_CHANGED};
    for (size_t i = 0; i < sizeof answers; i++) {
        const bool error = answers[i] == CRDI_DCP_RSP_NACK || answers[i] == CRDI_DCP_RSP_ERROR_ACK;
        const bool tells =
            answers[i] == CRDI_DCP_RSP_STATE_ACK || answers[i] == CRDI_DCP_NTF_STATE_CHANGED;
        const crdi_dcp_pdu got =
            pass_on(&b, b.slave_end, b.master,
                    (crdi_dcp_pdu){.type = answers[i],
                                   .peer = 2,
                                   .state = tells ? CRD_DCP_RUNNING : 0,
                                   .error = error ? CRD_DCP_E_INVALID_STEPS : 0},
                    2);
        check_int(got.peer, 2);
        check_int(got.state, tells ? CRD_DCP_RUNNING : 0);
        check_int(got.error, error ? CRD_DCP_E_INVALID_STEPS : 0);
    }
    // Items stand where the file says, in the payload by their pos.
    const uint8_t two[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct can_frame f;
    check(crdi_dcp_can_send(
        b.slave_end,
        &(crdi_dcp_pdu){
            .type = CRDI_DCP_DAT_INPUT_OUTPUT, .id = 11, .payload = two, .payload_length = 8},
        1));
    check_int(read(b.fd[0], &f, sizeof f), sizeof f);
    check_int(f.can_id, 17);
    check_int(f.can_dlc, 8);
    check(memcmp(f.data, "\5\6\7\10\1\2\3\4", 8) == 0);
    crdi_dcp_pdu got = pass_on(
        &b, b.slave_end, b.master,
        (crdi_dcp_pdu){
            .type = CRDI_DCP_DAT_INPUT_OUTPUT, .id = 11, .payload = two, .payload_length = 8},
        1);
    check(got.id == 11 && got.payload_length == 8 && memcmp(got.payload, two, 8) == 0);
    // With a gap; with a text that is shorter than its place.
    got = pass_on(
        &b, b.master, b.slave_end,
        (crdi_dcp_pdu){
            .type = CRDI_DCP_DAT_INPUT_OUTPUT, .id = 21, .payload = two, .payload_length = 5},
        0);
    check(got.payload_length == 5 && memcmp(got.payload, two, 5) == 0);
    static const uint8_t texts[] = {3, 0, 0, 0, 'a', 'b', 'c', 3, 0, 0, 0, 0, 9, 0};
    got = pass_on(&b, b.master, b.slave_end,
                  (crdi_dcp_pdu){.type = CRDI_DCP_DAT_INPUT_OUTPUT,
                                 .id = 22,
                                 .payload = texts,
                                 .payload_length = sizeof texts},
                  0);
    check(got.payload_length == sizeof texts && memcmp(got.payload, texts, sizeof texts) == 0);
    got =
        pass_on(&b, b.master, b.slave_end,
                (crdi_dcp_pdu){
                    .type = CRDI_DCP_DAT_PARAMETER, .id = 30, .payload = two, .payload_length = 6},
                0);
    check(got.id == 30 && got.payload_length == 6);
    // An extended frame
    check(crdi_dcp_can_send(
        b.slave_end,
        &(crdi_dcp_pdu){
            .type = CRDI_DCP_DAT_INPUT_OUTPUT, .id = 40, .payload = two, .payload_length = 4},
        2));
    check_int(read(b.fd[0], &f, sizeof f), sizeof f);
    check_int(f.can_id, 4000 | CAN_EFF_FLAG);
    check(write(b.fd[1], &f, sizeof f) == (ssize_t)sizeof f);
    uint8_t sender = 0;
    check(crdi_dcp_can_receive(b.master, &got, &sender, NULL));
    check_int(got.id, 40);
    check_int(sender, 2);
    check_int(crd_dcp_can_get_counts(b.master).unknown, 0);
    check_int(crd_dcp_can_get_counts(b.master).dropped, 0);
    close_bus(&b);
}

static void what_has_no_message_or_does_not_fit_is_not_sent(void** state)
{
    (void)state;
    bench b;
    open_bus(&b);
    static const uint8_t long_text[] = {6,   0, 0, 0, 'a', 'b', 'c', 'd', 'e',
                                        'f', 3, 0, 0, 0,   1,   2,   3};
    static const uint8_t short_blob[] = {0, 0, 0, 0, 2, 0, 0, 0, 1, 2};
    static const uint8_t huge[] = {255, 255, 255, 255, 1};
    const struct {
        crdi_dcp_pdu p;
        uint8_t sender;
    } rows[] = {
        {{.type = CRDI_DCP_CFG_CLEAR, .peer = 1}, 0},
        {{.type = CRDI_DCP_INF_LOG, .peer = 1}, 0},
        {{.type = CRDI_DCP_NTF_LOG, .peer = 1}, 1},
        {{.type = CRDI_DCP_RSP_ACK, .peer = 3}, 3},
        {{.type = CRDI_DCP_STC_DO_STEP, .peer = 1, .steps = 256}, 0},
        {{.type = CRDI_DCP_DAT_INPUT_OUTPUT, .id = 10, .payload = huge, .payload_length = 4}, 2},
        {{.type = CRDI_DCP_DAT_INPUT_OUTPUT, .id = 99, .payload = huge, .payload_length = 4}, 1},
        {{.type = CRDI_DCP_DAT_INPUT_OUTPUT, .id = 10, .payload = long_text, .payload_length = 7},
         1},
        {{.type = CRDI_DCP_DAT_INPUT_OUTPUT, .id = 10, .payload = long_text, .payload_length = 9},
         1},
        {{.type = CRDI_DCP_DAT_INPUT_OUTPUT, .id = 10}, 1},
        {{.type = CRDI_DCP_DAT_INPUT_OUTPUT,
          .id = 22,
          .payload = long_text,
          .payload_length = sizeof long_text},
         0},
        {{.type = CRDI_DCP_DAT_INPUT_OUTPUT,
          .id = 22,
          .payload = short_blob,
          .payload_length = sizeof short_blob},
         0},
        {{.type = CRDI_DCP_DAT_INPUT_OUTPUT, .id = 22, .payload = huge, .payload_length = 5}, 0},
        {{.type = CRDI_DCP_DAT_INPUT_OUTPUT, .id = 22, .payload = huge, .payload_length = 3}, 0},
        {{.type = CRDI_DCP_DAT_PARAMETER, .id = 10, .payload = huge, .payload_length = 4}, 0},
    };
    const int n = sizeof rows / sizeof *rows;
    for (int i = 0; i < n; i++) {
        if (crdi_dcp_can_send(b.master, &rows[i].p, rows[i].sender)) { fail_msg("row %d", i); }
    }
    check_int(crd_dcp_can_get_counts(b.master).dropped, n);
    check_int(crd_dcp_can_get_counts(b.master).sent, 0);
    close(b.fd[1]); // nobody is there any more
    b.fd[1] = dup(b.fd[0]);
    close_bus(&b);
}

static void frames_of_unknown_identifiers_and_wrong_lengths_are_dropped(void** state)
{
    (void)state;
    bench b;
    open_bus(&b);
    const struct {
        uint32_t id;
        uint8_t length;
        bool bad; // length, else unknown
    } rows[] = {
        {5, 8, false},
        {256 | CAN_RTR_FLAG, 3, false},
        {256 | CAN_ERR_FLAG, 3, false},
        {256 | CAN_EFF_FLAG, 3, false}, // it is a standard frame
        {4000 & CAN_SFF_MASK, 4, false},
        {0x1FFFFFFF | CAN_EFF_FLAG, 4, false},
        {256, 9, false}, // more than there can be
        {256, 2, true},
        {256, 4, true},
        {274, 1, true},
        {16, 7, true},
        {16, 0, true},
        {4000 | CAN_EFF_FLAG, 5, true},
    };
    int unknown = 0, bad = 0;
    crdi_dcp_pdu got;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct can_frame f = {.can_id = rows[i].id, .can_dlc = rows[i].length};
        check(write(b.fd[0], &f, sizeof f) == (ssize_t)sizeof f);
        bad += rows[i].bad;
        unknown += !rows[i].bad;
    }
    check(write(b.fd[0], "short", 5) == 5);
    unknown++;
    check(!crdi_dcp_can_receive(b.slave_end, &got, NULL, NULL));
    check_int(crd_dcp_can_get_counts(b.slave_end).unknown, unknown);
    check_int(crd_dcp_can_get_counts(b.slave_end).bad_length, bad);
    check_int(crd_dcp_can_get_counts(b.slave_end).received, 0);
    crd_dcp_can_wait(b.slave_end, 0);
    check(crdi_dcp_can_send(b.master, &(crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE, .peer = 1}, 0));
    crd_dcp_can_wait(b.slave_end, 20);
    check(crdi_dcp_can_receive(b.slave_end, &got, NULL, NULL));
    close_bus(&b);
}

static void what_the_system_lacks_is_named(void** state)
{
    (void)state;
    bench b;
    open_context(&b);
    crd_dcp_can* c = NULL;
    check_ok(crd_dcp_can_load(b.ctx, data_file, &b.d, NULL, NULL));
    const crd_status st = crd_dcp_can_open(b.ctx, b.d, "nosuchcan9", &c);
    check(st == CRD_E_UNSUPPORTED || st == CRD_E_NOT_FOUND || st == CRD_E_IO);
    if (st == CRD_E_UNSUPPORTED) { check_contains(crd_error_text(b.ctx), "modprobe can_raw"); }
    if (st == CRD_E_NOT_FOUND) {
        check_contains(crd_error_text(b.ctx), "no interface 'nosuchcan9'");
    }
    check(c == NULL);
    check_status(crd_dcp_can_open(b.ctx, b.d, "", &c), CRD_E_RANGE);
    check_status(crd_dcp_can_open(b.ctx, b.d, "a_name_that_is_too_long", &c), CRD_E_RANGE);
    check_status(crd_dcp_can_create(b.ctx, b.d, -1, &c), CRD_E_IO);
    close_context(&b);
}

static void pdus_pass_on_a_bus_of_this_host(void** state)
{
#ifdef TEST_EMULATED
    skip(); // qemu-user knows no IP_MULTICAST_IF
#endif
    (void)state;
    bench b;
    open_context(&b);
    static const char bus[] = "udp://239.74.163.4:43119";
    check_ok(crd_dcp_can_load(b.ctx, data_file, &b.d, NULL, NULL));
    check_ok(crd_dcp_can_open(b.ctx, b.d, bus, &b.master));
    check_ok(crd_dcp_can_open(b.ctx, b.d, bus, &b.slave_end));
    const crdi_dcp_pdu ack = {.type = CRDI_DCP_RSP_ACK, .peer = 1};
    crdi_dcp_pdu got = {0};
    check(crdi_dcp_can_send(b.slave_end, &ack, 0));
    for (int i = 0; i < 50 && got.type == 0; i++) {
        crd_dcp_can_wait(b.master, 0.1);
        (void)crdi_dcp_can_receive(b.master, &got, NULL, NULL);
    }
    check(got.type == CRDI_DCP_RSP_ACK && got.peer == 1);
    check(!crdi_dcp_can_receive(b.slave_end, &got, NULL, NULL)); // nothing of its own
    crd_dcp_can_destroy(b.master);
    crd_dcp_can_destroy(b.slave_end);
    close_context(&b);
}

// ---- a slave on the bus ------------------------------------------------------------------------

static void start_slave(bench* b)
{
    open_bus(b);
    b->r = rig_create(NULL, NULL);
    const crd_dcp_plant plant = rig_plant(b->r);
    check_ok(
        crd_dcp_can_slave_create(b->ctx, b->slave_end, b->d, &b->r->d, &plant, 0, NULL, &b->slave));
}

// A request to slave 1, and everything that comes back as text: "ack 02 03".
static const char* ask(bench* b, crdi_dcp_pdu p)
{
    static char text[256];
    crdi_dcp_pdu got;
    size_t n = 0;
    if (p.peer == 0) { p.peer = 1; }
    if (p.type <= CRDI_DCP_STC_RESET && p.state == 0) {
        p.state = (uint8_t)crd_dcp_slave_state(crd_dcp_can_slave_engine(b->slave));
    }
    check(crdi_dcp_can_send(b->master, &p, 0));
    crd_dcp_can_slave_poll(b->slave, b->r->now);
    text[0] = 0;
    while (crdi_dcp_can_receive(b->master, &got, NULL, NULL)) {
        const char* space = n ? " " : "";
        n = strlen(text);
        switch (got.type) {
        case CRDI_DCP_RSP_ACK:
            snprintf(text + n, sizeof text - n, "%sack", space);
            break;
        case CRDI_DCP_RSP_NACK:
            snprintf(text + n, sizeof text - n, "%snack %04x", space, got.error);
            break;
        case CRDI_DCP_RSP_ERROR_ACK:
            snprintf(text + n, sizeof text - n, "%serror %04x", space, got.error);
            break;
        case CRDI_DCP_RSP_STATE_ACK:
            snprintf(text + n, sizeof text - n, "%sin %02x", space, got.state);
            break;
        case CRDI_DCP_NTF_STATE_CHANGED:
            snprintf(text + n, sizeof text - n, "%s%02x", space, got.state);
            break;
        default:
            snprintf(text + n, sizeof text - n, "%sdata %d", space, got.id);
            break;
        }
        check(got.peer == (crdi_dcp_type_name(got.type)[0] == 'D' ? 0 : 1));
        n = strlen(text);
    }
    return text;
}

static void feed(bench* b, uint8_t type, uint16_t id, const void* payload, size_t length)
{
    check(crdi_dcp_can_send(
        b->master,
        &(crdi_dcp_pdu){.type = type, .id = id, .payload = payload, .payload_length = length}, 0));
}

static void a_whole_session_without_real_time_runs_on_a_bus(void** state)
{
    (void)state;
    bench b;
    start_slave(&b);
    const crd_dcp_slave* engine = crd_dcp_can_slave_engine(b.slave);
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE}), "in 00");
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_INF_STATE, .peer = 2}), ""); // not for us
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_REGISTER, .peer = 2}), "");
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_PREPARE}), "nack 1003");
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_REGISTER, .op_mode = CRD_DCP_HRT}),
               "nack 2008");
    for (int turn = 0; turn < 2;
         turn++) { // the second one behind a reset, the third registers anew
        if (turn == 0) {
            check_text(
                ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_REGISTER, .op_mode = CRD_DCP_NRT}),
                "ack 01");
        } else {
            check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RESET}), "ack 01");
        }
        check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RESET}), "nack 1003");
        check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_PREPARE}), "ack 02 03");
        check_near(b.r->r, 0.25, 0); // of the file
        check_int(b.r->limit, -7);
        check_int(b.r->name_bytes, 9);
        check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_CONFIGURE}), "ack 04 05");
        const double u = 2;
        feed(&b, CRDI_DCP_DAT_INPUT_OUTPUT, 20, &u, 8);
        check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_INITIALIZE}), "ack 06 07");
        check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_SEND_OUTPUTS}),
                   "ack 08 data 10 data 11 05"); // 12 is for Run only
        check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RUN}), "ack 09 0a");
        check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RUN}), "ack 0b");
        b.r->ticks = 0;
        for (int i = 0; i < 20; i++) {
            const double v = 0.5 * i;
            const float torque = 0.25f * (float)i;
            uint8_t both[5] = {0, 0, 0, 0, (uint8_t)(i % 4)};
            memcpy(both, &torque, 4);
            uint8_t texts[] = {2, 0, 0, 0, 'o', 'k', 3, 0, 0, 0, 1, 2, (uint8_t)i};
            feed(&b, CRDI_DCP_DAT_INPUT_OUTPUT, 20, &v, 8);
            feed(&b, CRDI_DCP_DAT_INPUT_OUTPUT, 21, both, 5);
            feed(&b, CRDI_DCP_DAT_INPUT_OUTPUT, 22, texts, sizeof texts);
            check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_DO_STEP, .steps = 2}),
                       "ack 0c 0d");
            check_near(b.r->u, v, 0);
            check_near(b.r->torque, (double)torque, 0);
            check_int(b.r->mode, i % 4);
            check_int(b.r->text_bytes, 2);
            check_int(b.r->blob[2], i);
            check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_SEND_OUTPUTS}),
                       "ack 0e data 10 data 11 data 12 0b");
        }
        check_int(b.r->ticks, 40);
        const uint8_t tuned[6] = {0, 0, 0x40, 0x40, 0x2C, 0x01}; // 3.0f, 300
        feed(&b, CRDI_DCP_DAT_PARAMETER, 30, tuned, 6);
        check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_DO_STEP, .steps = 1}), "ack 0c 0d");
        check_near(b.r->kp, 3, 0);
        check_int(b.r->limit, 300);
        check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_SEND_OUTPUTS, .state = 3}),
                   "nack 200d");
        check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_STOP}), "ack 0f 10");
    }
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_DEREGISTER}), "ack 00");
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_REGISTER, .op_mode = CRD_DCP_NRT}),
               "ack 01");
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_PREPARE}), "ack 02 03");
    const crd_dcp_slave_counts c = crd_dcp_slave_get_counts(engine);
    check_int(c.data_missed, 0);
    check_int(c.data_dropped, 0);
    check_int(c.data_old, 0);
    check_text(b.line, "");
    close_bus(&b);
}

static void a_session_in_real_time_runs_on_a_bus(void** state)
{
    (void)state;
    bench b;
    start_slave(&b);
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_REGISTER, .op_mode = CRD_DCP_SRT}),
               "ack 01");
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_PREPARE}), "ack 02 03");
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_CONFIGURE}), "ack 04 05");
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RUN}), "ack 09 0a data 10");
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_RUN}), "ack 0b");
    crdi_dcp_pdu got;
    int of[13] = {0};
    const double start = b.r->now;
    for (int i = 1; i <= 100; i++) {
        b.r->now = start + 0.01 * i + 1e-4;
        crd_dcp_can_slave_poll(b.slave, b.r->now);
        while (crdi_dcp_can_receive(b.master, &got, NULL, NULL)) {
            check_int(got.type, CRDI_DCP_DAT_INPUT_OUTPUT);
            of[got.id]++;
        }
    }
    check_int(of[10], 100);
    check_int(of[11], 10);
    check_int(of[12], 10);
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_STC_STOP}), "ack 0f 10");
    crd_dcp_slave_fault(crd_dcp_can_slave_engine(b.slave), CRD_DCP_E_GENERIC, b.r->now);
    check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_INF_ERROR}), "11 12 error 1001");
    close_bus(&b);
}

static void a_setting_that_the_slave_refuses_is_an_error_that_is_named(void** state)
{
    (void)state;
    bench b;
    open_context(&b);
    check_ok(parse_changed(&b, "source_vr=\"12\"", "source_vr=\"99\""));
    check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, b.fd) == 0);
    check_ok(crd_dcp_can_create(b.ctx, b.d, b.fd[0], &b.master));
    check_ok(crd_dcp_can_create(b.ctx, b.d, b.fd[1], &b.slave_end));
    b.r = rig_create(NULL, NULL);
    const crd_dcp_plant plant = rig_plant(b.r);
    check_ok(crd_dcp_can_slave_create(b.ctx, b.slave_end, b.d, &b.r->d, &plant, 1, NULL, &b.slave));
    for (int i = 0; i < 2; i++) {
        check_text(
            ask(&b, i ? (crdi_dcp_pdu){.type = CRDI_DCP_STC_RESET}
                      : (crdi_dcp_pdu){.type = CRDI_DCP_STC_REGISTER, .op_mode = CRD_DCP_NRT}),
            "ack 01 11 12");
        check_text(b.line,
                   "CAN: slave 1: CFG_output in line 77 is refused: INVALID_VALUE_REFERENCE");
        check_text(ask(&b, (crdi_dcp_pdu){.type = CRDI_DCP_INF_ERROR}), "error 2012");
    }
    // A slave that is in no file, and one on another network.
    crd_dcp_description other = b.r->d;
    crd_dcp_can_slave* none = NULL;
    other.uuid[0]++;
    check_status(crd_dcp_can_slave_create(b.ctx, b.slave_end, b.d, &other, &plant, 0, NULL, &none),
                 CRD_E_NOT_FOUND);
    check_contains(crd_error_text(b.ctx), "no <DcpSlave> with the uuid of MotorTestBench");
    check_status(crd_dcp_can_slave_create(b.ctx, b.slave_end, b.d, &b.r->d, &plant, 2, NULL, &none),
                 CRD_E_NOT_FOUND);
    crd_dcp_can_slave_destroy(b.slave);
    b.slave = NULL;
    check_ok(parse_changed(&b, "data_id=\"12\"><CAN/>",
                           "data_id=\"12\"><UDP_IPv4 port=\"1\" ip_address=\"1\"/>"));
    check_status(crd_dcp_can_slave_create(b.ctx, b.slave_end, b.d, &b.r->d, &plant, 0, NULL, &none),
                 CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(b.ctx), "in line 82 names another network, expected <CAN/>");
    close_bus(&b);
}

// ---- memory ------------------------------------------------------------------------------------

static crd_status everything(bench* b, int fd)
{
    crd_status st = CRD_OK;
    crd_dcp_can_description *d = NULL, *again = NULL;
    crd_dcp_can* c = NULL;
    crd_dcp_can_slave* s = NULL;
    crd_text t;
    const crd_dcp_description rigged = rig_description();
    const crd_dcp_plant plant = {0};
    const crd_dcp_finding* f = NULL;
    int count = 0;
    crd_text_init(&t, b->ctx);
    CRD_TRY(crd_dcp_can_load(b->ctx, data_file, &d, &f, &count));
    CRD_TRY(crdi_dcp_can_write(d, &t));
    CRD_TRY(crd_dcp_can_parse(b->ctx, t.data, t.length, "t", &again, &f, &count));
    CRD_TRY(crdi_dcp_can_add_control(again, 1000));
    CRD_TRY(crd_dcp_can_create(b->ctx, d, fd, &c));
    CRD_TRY(crd_dcp_can_slave_create(b->ctx, c, d, &rigged, &plant, 0, NULL, &s));
fail:
    crd_dcp_can_slave_destroy(s);
    crd_dcp_can_destroy(c);
    crd_dcp_can_description_destroy(d);
    crd_dcp_can_description_destroy(again);
    crd_text_clear(&t);
    return st;
}

static void every_allocation_that_fails_is_reported(void** state)
{
    (void)state;
    int fd[2];
    check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd) == 0);
    for (int once = 0; once < 2; once++) {
        for (int64_t at = 0;; at++) {
            bench b;
            open_context(&b);
            b.allocator.once = once;
            b.allocator.fail_at = b.allocator.allocations + at;
            const crd_status st = everything(&b, fd[0]);
            const bool reached = b.allocator.fail_at != -1 || !once;
            b.allocator.fail_at = -1;
            close_context(&b);
            if (st == CRD_OK) {
                check(at > 10);
                break;
            }
            check(reached || once);
            check_int(st, CRD_E_MEMORY);
        }
    }
    close(fd[0]);
    close(fd[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_and_written_and_read_again),
        cmocka_unit_test(what_is_wrong_with_a_file_is_found_with_its_line),
        cmocka_unit_test(a_description_made_by_hand_is_checked_and_written),
        cmocka_unit_test(every_message_travels_both_ways),
        cmocka_unit_test(what_has_no_message_or_does_not_fit_is_not_sent),
        cmocka_unit_test(frames_of_unknown_identifiers_and_wrong_lengths_are_dropped),
        cmocka_unit_test(what_the_system_lacks_is_named),
        cmocka_unit_test(pdus_pass_on_a_bus_of_this_host),
        cmocka_unit_test(a_whole_session_without_real_time_runs_on_a_bus),
        cmocka_unit_test(a_session_in_real_time_runs_on_a_bus),
        cmocka_unit_test(a_setting_that_the_slave_refuses_is_an_error_that_is_named),
        cmocka_unit_test(every_allocation_that_fails_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
