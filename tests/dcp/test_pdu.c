// PDUs: golden vectors both ways, every length of every type, CAN frames, names.
#include "check.h"

#include "shared/dcp.h"

#include <stdio.h>

// ---- golden vectors ----------------------------------------------------------------------------

// One line of a golden file, whose format its head tells.
typedef struct vector {
    const char* file;
    int line;
    uint8_t bytes[256];
    size_t length;
    uint8_t prefix[4];
    size_t prefix_length;
    char text[700];
} vector;

static size_t read_hex(const char* text, size_t count, uint8_t* out, size_t room)
{
    check(count % 2 == 0 && count / 2 <= room);
    for (size_t i = 0; i < count / 2; i++) {
        const char digits[3] = {text[2 * i], text[2 * i + 1], 0};
        char* end;
        out[i] = (uint8_t)strtoul(digits, &end, 16);
        check(end == digits + 2);
    }
    return count / 2;
}

static bool read_vector(char* text, vector* v)
{
    text[strcspn(text, "\n")] = 0;
    if (text[0] == '#' || text[0] == 0) { return false; }
    char* hex = strstr(text, "  ");
    char* words = hex ? strstr(hex + 2, "  ; ") : NULL;
    if (!words) { fail_msg("%s:%d: not FROM>TO  HEX  ; TEXT", v->file, v->line); }
    hex += 2;
    *words = 0;
    words += 4;
    char* remark = strstr(words, " -- ");
    if (remark) { *remark = 0; }
    snprintf(v->text, sizeof v->text, "%s", words);
    char* second = strchr(hex, ' ');
    v->prefix_length = v->length = 0;
    if (second) {
        v->prefix_length = read_hex(hex, (size_t)(second - hex), v->prefix, sizeof v->prefix);
        hex = second + 1;
    }
    if (strcmp(hex, "-") != 0) {
        v->length = read_hex(hex, strlen(hex), v->bytes, sizeof v->bytes);
    }
    return true;
}

static int for_each_vector(void (*look)(const vector* v))
{
    static const char* const files[] = {"nrt_udp",   "nrt_tcp",  "srt_udp", "two_slaves",
                                        "pipelined", "negative", "computed"};
    int count = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512], text[2000];
        snprintf(path, sizeof path, "%s/dcp/golden/%s.txt", TEST_SOURCE_DIR, files[i]);
        FILE* f = fopen(path, "r");
        if (!f) { fail_msg("%s: cannot be read", path); }
        vector v = {.file = path};
        while (fgets(text, sizeof text, f)) {
            v.line++;
            if (!read_vector(text, &v)) { continue; }
            look(&v);
            count++;
        }
        fclose(f);
    }
    return count;
}

static crdi_dcp_decoded expected_outcome(const vector* v)
{
    if (v->length == 0) { return CRDI_DCP_UNKNOWN; }
    return strstr(v->text, " bad_length=") ? CRDI_DCP_BAD_LENGTH : CRDI_DCP_GOOD;
}

static void decode_vector(const vector* v, crdi_dcp_pdu* p)
{
    const crdi_dcp_decoded got = crdi_dcp_decode(v->bytes, v->length, p);
    if (got != expected_outcome(v)) {
        fail_msg("%s:%d: decoded as %d, expected %d", v->file, v->line, (int)got,
                 (int)expected_outcome(v));
    }
}

// ---- the text says what the fields are ---------------------------------------------------------

static uint64_t number_of(const char* value)
{
    for (int i = 0; i < CRD_DCP_STATE_COUNT; i++) {
        if (strcmp(value, crd_dcp_state_name(i)) == 0) { return (uint64_t)i; }
    }
    for (int i = 0; i < CRD_DCP_DATA_TYPE_COUNT; i++) {
        if (strcmp(value, crd_dcp_data_type_name(i)) == 0) { return (uint64_t)i; }
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(value, crd_dcp_op_mode_name(i)) == 0) { return (uint64_t)i; }
    }
    unsigned a, b, c, d;
    char end;
    if (sscanf(value, "%u.%u.%u.%u%c", &a, &b, &c, &d, &end) == 4) {
        return a << 24 | b << 16 | c << 8 | d;
    }
    char* rest;
    const uint64_t n = strtoull(value, &rest, 0);
    if (*rest) { fail_msg("%s is not a number", value); }
    return n;
}

static bool number_field(const crdi_dcp_pdu* p, const char* key, uint64_t* out)
{
    const struct {
        const char* key;
        uint64_t value;
    } fields[] = {
        {"seq", p->seq},
        {"resp_seq", p->seq},
        {"rcv", p->peer},
        {"snd", p->peer},
        {"state_id", p->state},
        {"state", p->state},
        {"op_mode", p->op_mode},
        {"time", (uint64_t)p->time},
        {"steps", p->steps},
        {"num", p->numerator},
        {"den", p->denominator},
        {"data_id", p->id},
        {"param_id", p->id},
        {"pos", p->pos},
        {"target_vr", p->vr},
        {"source_vr", p->vr},
        {"param_vr", p->vr},
        {"src_type", p->data_type},
        {"tp", p->transport},
        {"port", p->port},
        {"ip", p->address},
        {"bd_addr", p->bd_addr},
        {"endpoint", p->endpoint},
        {"category", p->category},
        {"level", p->level},
        {"mode", p->mode},
        {"max", p->max},
        {"scope", p->scope},
        {"exp_seq", p->expected},
        {"error", p->error},
        {"template", p->template_id},
        {"bad_length", p->bad_length},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(fields[i].key, key) == 0) {
            *out = fields[i].value;
            return true;
        }
    }
    return false;
}

static void compare_field(const vector* v, const crdi_dcp_pdu* p, const char* key,
                          const char* value)
{
    uint8_t bytes[256];
    unsigned major, minor;
    uint64_t got;
    if (strcmp(key, "payload") == 0) {
        const size_t n = read_hex(value, strlen(value), bytes, sizeof bytes);
        check_int(p->payload_length, n);
        check(memcmp(p->payload, bytes, n) == 0);
    } else if (strcmp(key, "uuid") == 0) {
        check_int(read_hex(value, strlen(value), bytes, sizeof bytes), 16);
        check(memcmp(p->uuid, bytes, 16) == 0);
    } else if (strcmp(key, "ver") == 0) {
        check_int(sscanf(value, "%u.%u", &major, &minor), 2);
        check_int(p->major, major);
        check_int(p->minor, minor);
    } else if (!number_field(p, key, &got)) {
        fail_msg("%s:%d: no field is called %s", v->file, v->line, key);
    } else if (got != number_of(value)) {
        fail_msg("%s:%d: %s is %llu, expected %s", v->file, v->line, key, (unsigned long long)got,
                 value);
    }
}

static void compare_fields(const vector* v)
{
    crdi_dcp_pdu p;
    decode_vector(v, &p);
    if (v->length == 0) { return; }
    char text[sizeof v->text], *rest = NULL;
    snprintf(text, sizeof text, "%s", v->text);
    const char* word = strtok_r(text, " ", &rest);
    check_text(crdi_dcp_type_name(p.type), word);
    for (word = strtok_r(NULL, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char* value = strchr(word, '=');
        check(value);
        *value = 0;
        compare_field(v, &p, word, value + 1);
    }
}

static void golden_pdus_decode_to_the_fields_of_their_text(void** state)
{
    check_int(for_each_vector(compare_fields), 407);
}

static void compare_print(const vector* v)
{
    crdi_dcp_pdu p;
    char text[sizeof v->text];
    decode_vector(v, &p);
    if (v->length == 0) { return; }
    const int length = crdi_dcp_print(&p, text, sizeof text);
    if (strcmp(text, v->text) != 0) {
        fail_msg("%s:%d: printed as\n%s, expected\n%s", v->file, v->line, text, v->text);
    }
    check_int(length, strlen(text));
}

static void golden_pdus_print_as_their_text(void** state)
{
    for_each_vector(compare_print);
}

static void compare_bytes(const vector* v)
{
    crdi_dcp_pdu p;
    uint8_t bytes[sizeof v->bytes];
    decode_vector(v, &p);
    if (v->prefix_length) {
        check_int(v->prefix[0] | v->prefix[1] << 8 | v->prefix[2] << 16, v->length);
    }
    if (expected_outcome(v) != CRDI_DCP_GOOD) { return; }
    const size_t length = crdi_dcp_encode(&p, bytes, sizeof bytes);
    if (length != v->length || memcmp(bytes, v->bytes, length) != 0) {
        fail_msg("%s:%d: does not encode to its bytes: %s", v->file, v->line, v->text);
    }
    check_int(crdi_dcp_encode(&p, NULL, 0), length);
}

static void golden_pdus_encode_to_their_bytes(void** state)
{
    for_each_vector(compare_bytes);
}

static bool met[256];

static void meet(const vector* v)
{
    if (expected_outcome(v) == CRDI_DCP_GOOD) { met[v->bytes[0]] = true; }
}

static void golden_pdus_are_of_every_type(void** state)
{
    for_each_vector(meet);
    int count = 0;
    for (int type = 0; type < 256; type++) {
        if (crdi_dcp_type_name(type) && !met[type]) {
            fail_msg("no golden %s", crdi_dcp_type_name(type));
        }
        count += met[type];
    }
    check_int(count, 34);
}

// ---- every length of every type ----------------------------------------------------------------

// Bytes of a PDU by the standard's tables, and of the part that answers need.
static const struct {
    uint8_t type, transport;
    size_t head, fixed;
    bool open; // more may follow
} sizes[] = {
    {0x01, 0, 4, 24, false}, {0x02, 0, 4, 5, false},  {0x03, 0, 4, 5, false},
    {0x04, 0, 4, 5, false},  {0x05, 0, 4, 5, false},  {0x06, 0, 4, 13, false},
    {0x07, 0, 4, 9, false},  {0x08, 0, 4, 5, false},  {0x09, 0, 4, 5, false},
    {0x0A, 0, 4, 5, false},  {0x20, 0, 4, 12, false}, {0x21, 0, 4, 10, false},
    {0x22, 0, 4, 17, false}, {0x23, 0, 4, 16, false}, {0x24, 0, 4, 4, false},
    {0x25, 0, 4, 13, false}, {0x25, 1, 4, 16, false}, {0x25, 2, 4, 7, true},
    {0x25, 3, 4, 24, false}, {0x25, 4, 4, 13, false}, {0x25, 5, 4, 7, true},
    {0x26, 0, 4, 13, false}, {0x26, 1, 4, 16, false}, {0x26, 2, 4, 7, true},
    {0x26, 3, 4, 8, false},  {0x26, 4, 4, 13, false}, {0x26, 255, 4, 7, true},
    {0x29, 0, 4, 13, false}, {0x29, 1, 4, 13, false}, {0x29, 2, 4, 7, true},
    {0x29, 3, 4, 8, false},  {0x29, 4, 4, 13, false}, {0x29, 77, 4, 7, true},
    {0x27, 0, 4, 13, true},  {0x28, 0, 4, 17, false}, {0x2A, 0, 4, 7, false},
    {0x2B, 0, 4, 7, false},  {0x80, 0, 4, 4, false},  {0x81, 0, 4, 4, false},
    {0x82, 0, 4, 6, false},  {0xB0, 0, 4, 4, false},  {0xB1, 0, 4, 8, false},
    {0xB2, 0, 4, 5, false},  {0xB3, 0, 4, 6, false},  {0xB4, 0, 4, 4, true},
    {0xE0, 0, 2, 3, false},  {0xE1, 0, 2, 11, true},  {0xF0, 0, 5, 5, true},
    {0xF1, 0, 5, 5, true},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

// Exactly `length` bytes of a PDU of row `i`, on the heap: a read behind them is noticed.
static uint8_t* bytes_of(int i, size_t length)
{
    uint8_t* bytes = malloc(length ? length : 1);
    check(bytes);
    for (size_t k = 0; k < length; k++) {
        bytes[k] = (uint8_t)(0x31 + 7 * k);
    }
    if (length > 0) { bytes[0] = sizes[i].type; }
    if (length > 6 && (sizes[i].type == 0x25 || sizes[i].type == 0x26 || sizes[i].type == 0x29)) {
        bytes[6] = sizes[i].transport;
    }
    return bytes;
}

static crdi_dcp_decoded outcome_of(int i, size_t length)
{
    if (length < sizes[i].head) { return CRDI_DCP_UNKNOWN; }
    if (length < sizes[i].fixed) { return CRDI_DCP_BAD_LENGTH; }
    return length == sizes[i].fixed || sizes[i].open ? CRDI_DCP_GOOD : CRDI_DCP_BAD_LENGTH;
}

static void every_length_of_every_type_is_judged(void** state)
{
    for (int i = 0; i < SIZES; i++) {
        for (size_t length = 0; length <= sizes[i].fixed + 8; length++) {
            uint8_t *bytes = bytes_of(i, length), again[64];
            crdi_dcp_pdu p;
            const crdi_dcp_decoded got = crdi_dcp_decode(bytes, length, &p);
            if (got != outcome_of(i, length)) {
                fail_msg("type 0x%02X, transport %d, %zu bytes: decoded as %d, expected %d",
                         (unsigned)sizes[i].type, sizes[i].transport, length, (int)got,
                         (int)outcome_of(i, length));
            }
            if (got == CRDI_DCP_GOOD) {
                check_int(crdi_dcp_encode(&p, again, sizeof again), length);
                check(memcmp(again, bytes, length) == 0);
                check_int(p.bad_length, 0);
            } else {
                check_int(p.bad_length, got == CRDI_DCP_BAD_LENGTH ? length : 0);
                check(!p.payload && !p.payload_length);
            }
            free(bytes);
        }
    }
}

static void every_type_has_a_row_in_this_test(void** state)
{
    for (int type = 0; type < 256; type++) {
        bool here = false;
        for (int i = 0; i < SIZES; i++) {
            here = here || sizes[i].type == type;
        }
        check_int(crdi_dcp_type_name(type) != NULL, here);
    }
}

static void of_a_bad_length_the_head_is_known_and_nothing_else(void** state)
{
    const uint8_t run[] = {0x06, 0x34, 0x12, 7, 11, 1, 2, 3, 4, 5, 6, 7};
    crdi_dcp_pdu p;
    for (size_t length = 4; length <= sizeof run; length++) {
        check_int(crdi_dcp_decode(run, length, &p), CRDI_DCP_BAD_LENGTH);
        const crdi_dcp_pdu want = {.type = 0x06,
                                   .seq = 0x1234,
                                   .peer = 7,
                                   .state = length > 4 ? 11 : 0,
                                   .bad_length = length};
        check_int(p.type, want.type);
        check_int(p.seq, want.seq);
        check_int(p.peer, want.peer);
        check_int(p.state, want.state);
        check_int(p.time, 0);
        check_int(p.bad_length, want.bad_length);
    }
    char text[80];
    crdi_dcp_decode(run, 4, &p);
    crdi_dcp_print(&p, text, sizeof text);
    check_text(text, "STC_run seq=4660 rcv=7 bad_length=4");
    const uint8_t changed[] = {0xE0, 3, 5, 0};
    crdi_dcp_decode(changed, sizeof changed, &p);
    crdi_dcp_print(&p, text, sizeof text);
    check_text(text, "NTF_state_changed snd=3 state=CONFIGURED bad_length=4");
}

static void a_type_that_does_not_exist_is_dropped(void** state)
{
    uint8_t bytes[32] = {0};
    crdi_dcp_pdu p;
    char text[40];
    int unknown = 0;
    for (int type = 0; type < 256; type++) {
        if (crdi_dcp_type_name(type)) { continue; }
        bytes[0] = (uint8_t)type;
        for (size_t length = 1; length <= sizeof bytes; length++) {
            check_int(crdi_dcp_decode(bytes, length, &p), CRDI_DCP_UNKNOWN);
        }
        p.type = (uint8_t)type;
        check_int(crdi_dcp_encode(&p, bytes, sizeof bytes), 0);
        unknown++;
    }
    check_int(unknown, 256 - 34);
    check_int(crdi_dcp_decode(NULL, 0, &p), CRDI_DCP_UNKNOWN);
    p.type = 0x0B;
    crdi_dcp_print(&p, text, sizeof text);
    check_text(text, "unknown type 0x0B");
}

// ---- encode ------------------------------------------------------------------------------------

static void encode_writes_nothing_where_room_is_short(void** state)
{
    for (int i = 0; i < SIZES; i++) {
        const size_t length = sizes[i].fixed + (sizes[i].open ? 5 : 0);
        uint8_t *bytes = bytes_of(i, length), out[64];
        crdi_dcp_pdu p;
        check_int(crdi_dcp_decode(bytes, length, &p), CRDI_DCP_GOOD);
        for (size_t room = 0; room < length; room++) {
            memset(out, 0xA5, sizeof out);
            check_int(crdi_dcp_encode(&p, out, room), length);
            for (size_t k = 0; k < sizeof out; k++) {
                check_int(out[k], 0xA5);
            }
        }
        memset(out, 0xA5, sizeof out);
        check_int(crdi_dcp_encode(&p, out, length), length);
        check(memcmp(out, bytes, length) == 0 && out[length] == 0xA5);
        free(bytes);
    }
}

static void a_payload_may_stand_in_the_buffer_already(void** state)
{
    const uint8_t want[] = {0xF0, 9, 0, 7, 0, 1, 2, 3, 4};
    for (int at = 0; at <= 12; at++) {
        uint8_t buffer[16] = {0};
        memcpy(buffer + at, want + 5, 4);
        const crdi_dcp_pdu p = {.type = CRDI_DCP_DAT_INPUT_OUTPUT,
                                .seq = 9,
                                .id = 7,
                                .payload = buffer + at,
                                .payload_length = 4};
        check_int(crdi_dcp_encode(&p, buffer, sizeof buffer), sizeof want);
        check(memcmp(buffer, want, sizeof want) == 0);
    }
}

static void a_value_that_its_field_cannot_hold_is_not_cut(void** state)
{
    uint8_t out[32];
    crdi_dcp_pdu p = {.type = CRDI_DCP_CFG_TARGET_NETWORK, .transport = CRD_DCP_BLUETOOTH};
    p.port = 255;
    check_int(crdi_dcp_encode(&p, out, sizeof out), 16);
    p.port = 256;
    check_int(crdi_dcp_encode(&p, out, sizeof out), 0);
    p.type = CRDI_DCP_CFG_PARAM_NETWORK;
    p.bd_addr = UINT32_MAX;
    check_int(crdi_dcp_encode(&p, out, sizeof out), 13);
    p.bd_addr++;
    check_int(crdi_dcp_encode(&p, out, sizeof out), 0);
}

static void print_cuts_like_snprintf(void** state)
{
    const uint8_t bytes[] = {0xF0, 1, 0, 2, 0, 0xAB, 0xCD};
    const char* want = "DAT_input_output seq=1 data_id=2 payload=abcd";
    crdi_dcp_pdu p;
    char text[64];
    crdi_dcp_decode(bytes, sizeof bytes, &p);
    check_int(crdi_dcp_print(&p, NULL, 0), strlen(want));
    for (size_t room = 1; room < sizeof text; room++) {
        memset(text, '#', sizeof text);
        check_int(crdi_dcp_print(&p, text, room), strlen(want));
        const size_t kept = room - 1 < strlen(want) ? room - 1 : strlen(want);
        check_int(strlen(text), kept);
        check(strncmp(text, want, kept) == 0 && text[room] == '#');
    }
}

// ---- CAN ---------------------------------------------------------------------------------------

static void can_frames_carry_what_their_identifier_does_not(void** state)
{
    static const uint8_t values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const struct {
        crdi_dcp_pdu p;
        int length;
        uint8_t bytes[8];
    } rows[] = {
        {{.type = CRDI_DCP_STC_REGISTER, .peer = 7, .op_mode = CRD_DCP_NRT}, 3, {7, 0, 2}},
        {{.type = CRDI_DCP_STC_DEREGISTER, .peer = 7, .state = 16}, 2, {7, 16}},
        {{.type = CRDI_DCP_STC_PREPARE, .peer = 7, .state = 1}, 2, {7, 1}},
        {{.type = CRDI_DCP_STC_CONFIGURE, .peer = 7, .state = 3}, 2, {7, 3}},
        {{.type = CRDI_DCP_STC_INITIALIZE, .peer = 7, .state = 5}, 2, {7, 5}},
        {{.type = CRDI_DCP_STC_RUN, .peer = 7, .state = 5}, 2, {7, 5}},
        {{.type = CRDI_DCP_STC_DO_STEP, .peer = 7, .state = 11, .steps = 255}, 3, {7, 11, 255}},
        {{.type = CRDI_DCP_STC_SEND_OUTPUTS, .peer = 7, .state = 13}, 2, {7, 13}},
        {{.type = CRDI_DCP_STC_STOP, .peer = 7, .state = 11}, 2, {7, 11}},
        {{.type = CRDI_DCP_STC_RESET, .peer = 7, .state = 16}, 2, {7, 16}},
        {{.type = CRDI_DCP_INF_STATE, .peer = 7}, 1, {7}},
        {{.type = CRDI_DCP_INF_ERROR, .peer = 7}, 1, {7}},
        {{.type = CRDI_DCP_RSP_ACK, .peer = 7}, 0, {0}},
        {{.type = CRDI_DCP_RSP_NACK, .peer = 7, .error = 0x2011}, 1, {0x51}},
        {{.type = CRDI_DCP_RSP_STATE_ACK, .peer = 7, .state = 11}, 1, {11}},
        {{.type = CRDI_DCP_RSP_ERROR_ACK, .peer = 7, .error = 0x1002}, 1, {0x22}},
        {{.type = CRDI_DCP_NTF_STATE_CHANGED, .peer = 7, .state = 11}, 1, {11}},
        {{.type = CRDI_DCP_DAT_INPUT_OUTPUT, .id = 300, .payload = values, .payload_length = 8},
         8,
         {1, 2, 3, 4, 5, 6, 7, 8}},
        {{.type = CRDI_DCP_DAT_PARAMETER, .id = 30, .payload = values, .payload_length = 3},
         3,
         {1, 2, 3}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const crdi_dcp_pdu* want = &rows[i].p;
        uint8_t out[CRDI_DCP_CAN_ROOM];
        check_int(crdi_dcp_can_encode(want, out), rows[i].length);
        check(memcmp(out, rows[i].bytes, (size_t)rows[i].length) == 0);
        for (size_t length = 0; length <= 9; length++) {
            const uint8_t frame[9] = {7, 11, 2, 4};
            crdi_dcp_pdu p = {.type = want->type, .id = want->id, .peer = 7, .seq = 99};
            const crdi_dcp_decoded got = crdi_dcp_can_decode(frame, length, &p);
            const bool right = length == (size_t)rows[i].length || (want->payload && length < 9);
            check_int(got, length > 8 ? CRDI_DCP_UNKNOWN
                           : right    ? CRDI_DCP_GOOD
                                      : CRDI_DCP_BAD_LENGTH);
        }
        crdi_dcp_pdu p = {.type = want->type, .id = want->id, .peer = want->peer};
        check_int(crdi_dcp_can_decode(out, (size_t)rows[i].length, &p), CRDI_DCP_GOOD);
        check_int(p.peer, want->peer);
        check_int(p.state, want->state);
        check_int(p.op_mode, want->op_mode);
        check_int(p.steps, want->steps);
        check_int(p.error, want->error);
        check_int(p.id, want->id);
        check_int(p.payload_length, want->payload_length);
    }
}

static void every_error_code_comes_through_a_can_frame(void** state)
{
    int count = 0;
    for (int code = 0; code < 0x10000; code++) {
        crdi_dcp_pdu p = {.type = CRDI_DCP_RSP_NACK, .error = (uint16_t)code};
        uint8_t out[CRDI_DCP_CAN_ROOM];
        check_int(crdi_dcp_can_encode(&p, out), 1);
        p.error = 0;
        check_int(crdi_dcp_can_decode(out, 1, &p), CRDI_DCP_GOOD);
        if (!crd_dcp_error_name(code)) {
            check(p.error == code || p.error == CRD_DCP_E_GENERIC);
            continue;
        }
        check_int(p.error, code);
        count++;
    }
    check_int(count, 41);
}

static void what_can_has_not_is_refused(void** state)
{
    uint8_t out[CRDI_DCP_CAN_ROOM], payload[9] = {0};
    int count = 0;
    for (int type = 0; type < 256; type++) {
        crdi_dcp_pdu p = {.type = (uint8_t)type};
        if (crdi_dcp_can_encode(&p, out) >= 0) { count++; }
    }
    check_int(count, 19);
    crdi_dcp_pdu p = {.type = CRDI_DCP_CFG_CLEAR};
    check_int(crdi_dcp_can_encode(&p, out), -1);
    check_int(crdi_dcp_can_decode(payload, 1, &p), CRDI_DCP_UNKNOWN);
    p = (crdi_dcp_pdu){.type = CRDI_DCP_STC_DO_STEP, .steps = 256};
    check_int(crdi_dcp_can_encode(&p, out), -1);
    p = (crdi_dcp_pdu){
        .type = CRDI_DCP_DAT_PARAMETER, .payload = payload, .payload_length = sizeof payload};
    check_int(crdi_dcp_can_encode(&p, out), -1);
}

// ---- names -------------------------------------------------------------------------------------

static void names_are_those_of_the_standard(void** state)
{
    check_text(crdi_dcp_type_name(0x25), "CFG_target_network_information");
    check(!crdi_dcp_type_name(0) && !crdi_dcp_type_name(-1) && !crdi_dcp_type_name(256));
    check_text(crd_dcp_error_name(0), "NONE");
    check_text(crd_dcp_error_name(0x2011), "INVALID_UUID");
    check_text(crd_dcp_error_name(0x3004), "INCOMPLETE_CONFIG_NW_INFO_INPUT");
    check_text(crd_dcp_error_name(0x4006), "NOT_SUPPORTED_PDU_SIZE");
    check(!crd_dcp_error_name(0x2014) && !crd_dcp_error_name(-1));
    check_text(crd_dcp_error_text(0x200C), "the start time has passed");
    check_contains(crd_dcp_error_text(0x7777), "does not have");
    check_text(crd_dcp_state_name(CRD_DCP_ERRORRESOLVED), "ERRORRESOLVED");
    check(!crd_dcp_state_name(CRD_DCP_STATE_COUNT) && !crd_dcp_state_name(-1));
    check_text(crd_dcp_op_mode_name(CRD_DCP_SRT), "SRT");
    check(!crd_dcp_op_mode_name(3) && !crd_dcp_op_mode_name(-1));
    for (int code = 0; code < 0x10000; code++) {
        const char* name = crd_dcp_error_name(code);
        if (!name) { continue; }
        check(strlen(name) > 3 && strlen(crd_dcp_error_text(code)) > 10);
        check(code == 0 || (code >> 12 >= 1 && code >> 12 <= 4));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_pdus_decode_to_the_fields_of_their_text),
        cmocka_unit_test(golden_pdus_print_as_their_text),
        cmocka_unit_test(golden_pdus_encode_to_their_bytes),
        cmocka_unit_test(golden_pdus_are_of_every_type),
        cmocka_unit_test(every_length_of_every_type_is_judged),
        cmocka_unit_test(every_type_has_a_row_in_this_test),
        cmocka_unit_test(of_a_bad_length_the_head_is_known_and_nothing_else),
        cmocka_unit_test(a_type_that_does_not_exist_is_dropped),
        cmocka_unit_test(encode_writes_nothing_where_room_is_short),
        cmocka_unit_test(a_payload_may_stand_in_the_buffer_already),
        cmocka_unit_test(a_value_that_its_field_cannot_hold_is_not_cut),
        cmocka_unit_test(print_cuts_like_snprintf),
        cmocka_unit_test(can_frames_carry_what_their_identifier_does_not),
        cmocka_unit_test(every_error_code_comes_through_a_can_frame),
        cmocka_unit_test(what_can_has_not_is_refused),
        cmocka_unit_test(names_are_those_of_the_standard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
