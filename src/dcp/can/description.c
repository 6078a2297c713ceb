// Descriptions of DCP over CAN: the tables of the schema, and the reader.
#include "dcp/can/can.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- the schema --------------------------------------------------------------------------------

#define STATE_FIXED "senderRef=0 f_type_id=H f_receiver=0 f_state_id=1"

const crdi_can_kind crdi_can_kinds[] = {
    {"STC_register", CRDI_DCP_STC_REGISTER, 3, STATE_FIXED " f_op_mode=2"},
    {"STC_deregister", CRDI_DCP_STC_DEREGISTER, 2, STATE_FIXED},
    {"STC_prepare", CRDI_DCP_STC_PREPARE, 2, STATE_FIXED},
    {"STC_configure", CRDI_DCP_STC_CONFIGURE, 2, STATE_FIXED},
    {"STC_initialize", CRDI_DCP_STC_INITIALIZE, 2, STATE_FIXED},
    {"STC_run", CRDI_DCP_STC_RUN, 2, STATE_FIXED},
    {"STC_dostep", CRDI_DCP_STC_DO_STEP, 3, STATE_FIXED " f_steps=2"},
    {"STC_send_outputs", CRDI_DCP_STC_SEND_OUTPUTS, 2, STATE_FIXED},
    {"STC_stop", CRDI_DCP_STC_STOP, 2, STATE_FIXED},
    {"STC_reset", CRDI_DCP_STC_RESET, 2, STATE_FIXED},
    {"INF_state_request", CRDI_DCP_INF_STATE, 1, "senderRef=0 f_type_id=H f_receiver=0"},
    {"INF_error_request", CRDI_DCP_INF_ERROR, 1, "senderRef=0 f_type_id=H f_receiver=0"},
    {"NTF_state_changed", CRDI_DCP_NTF_STATE_CHANGED, 1, "f_type_id=H f_sender=H f_state_id=0"},
    {"RSP_ack", CRDI_DCP_RSP_ACK, 0, "f_type_id=H f_sender=H"},
    {"RSP_nack", CRDI_DCP_RSP_NACK, 1, "f_type_id=H f_sender=H f_error_code=0"},
    {"RSP_state_ack", CRDI_DCP_RSP_STATE_ACK, 1, "f_type_id=H f_sender=H f_state_id=0"},
    {"RSP_error_ack", CRDI_DCP_RSP_ERROR_ACK, 1, "f_type_id=H f_sender=H f_error_code=0"},
    {"DAT_input_output", CRDI_DCP_DAT_INPUT_OUTPUT, -1, "f_type_id=H f_data_id=H"},
    {"DAT_parameter", CRDI_DCP_DAT_PARAMETER, -1, "senderRef=0 f_type_id=H f_param_id=H"},
};
const int crdi_can_kind_count = sizeof crdi_can_kinds / sizeof *crdi_can_kinds;

static const char matrix_fixed[] =
    "f_type_id_data_type=0 f_type_id_endianess=little f_receiver_data_type=0 "
    "f_receiver_endianess=little f_state_id_data_type=0 f_state_id_endianess=little "
    "f_op_mode_data_type=0 f_op_mode_endianess=little f_steps_data_type=2 "
    "f_steps_endianess=little f_error_code_data_type=0 f_error_code_endianess=little";

#define FIELD(name, member, most)                                                                  \
    {                                                                                              \
        name, offsetof(crdi_dcp_pdu, member), sizeof(((crdi_dcp_pdu*)0)->member), most             \
    }
#define DATA_ID FIELD("data_id", id, UINT16_MAX)
#define PARAM_ID FIELD("param_id", id, UINT16_MAX)
#define POS FIELD("pos", pos, UINT16_MAX)
#define TARGET FIELD("target_vr", vr, UINT64_MAX)
#define SOURCE_TYPE FIELD("source_data_type", data_type, CRD_DCP_DATA_TYPE_COUNT - 1)

const crdi_can_setting crdi_can_settings[] = {
    {CRDI_DCP_CFG_TIME_RES,
     {FIELD("numerator", numerator, UINT32_MAX), FIELD("denominator", denominator, UINT32_MAX)}},
    {CRDI_DCP_CFG_STEPS, {DATA_ID, FIELD("steps", steps, UINT32_MAX)}},
    {CRDI_DCP_CFG_INPUT, {DATA_ID, POS, TARGET, SOURCE_TYPE}},
    {CRDI_DCP_CFG_OUTPUT, {DATA_ID, POS, FIELD("source_vr", vr, UINT64_MAX)}},
    {CRDI_DCP_CFG_TARGET_NETWORK, {DATA_ID}},
    {CRDI_DCP_CFG_SOURCE_NETWORK, {DATA_ID}},
    {CRDI_DCP_CFG_PARAMETER, {TARGET}},
    {CRDI_DCP_CFG_TUNABLE_PARAMETER, {PARAM_ID, POS, TARGET, SOURCE_TYPE}},
    {CRDI_DCP_CFG_PARAM_NETWORK, {PARAM_ID}},
    {CRDI_DCP_CFG_SCOPE, {DATA_ID, FIELD("scope", scope, CRDI_DCP_RUN)}},
};
const int crdi_can_setting_count = sizeof crdi_can_settings / sizeof *crdi_can_settings;

typedef struct reader {
    crd_context* ctx;
    crd_dcp_can_description* d;
    const char* space; // of all elements; should be ""
    crdi_dcp_findings f;
} reader;

static void* new_array(reader* r, size_t n, size_t size)
{
    void* p = crdi_arena_new(&r->d->arena, n, size);
    if (!p) { r->f.failed = true; }
    return p;
}

static const char* can_description_copy_text(reader* r, const char* text)
{
    if (!text || !*text) { return ""; }
    const char* copy = crdi_arena_text(&r->d->arena, text, strlen(text));
    if (!copy) { r->f.failed = true; }
    return copy ? copy : "";
}

// ---- attributes --------------------------------------------------------------------------------

// The value that `fixed` ("a=1 b=2") gives a name; NULL: none.
static const char* fixed_value(const char* fixed, const char* name, size_t* length)
{
    const size_t n = strlen(name);
    for (const char* at = fixed; *at;) {
        const size_t all = strcspn(at, " ");
        if (all > n && strncmp(at, name, n) == 0 && at[n] == '=') {
            *length = all - n - 1;
            return at + n + 1;
        }
        at += all;
        at += strspn(at, " ");
    }
    return NULL;
}

static bool in_list(const char* list, const char* name)
{
    const size_t n = strlen(name);
    for (const char* at = list; *at;) {
        const size_t all = strcspn(at, " ");
        if (all == n && strncmp(at, name, n) == 0) { return true; }
        at += all;
        at += strspn(at, " ");
    }
    return false;
}

// Every attribute is one of `known`, or has its fixed value.
static void look_at_attributes(reader* r, const crdi_xml_element* e, const char* known,
                               const char* fixed)
{
    for (int i = 0; i < e->attribute_count; i++) {
        const crdi_xml_attribute* a = &e->attributes[i];
        size_t n = 0;
        if (*a->space) { continue; } // of another schema, as xsi:schemaLocation
        const char* value = fixed_value(fixed, a->name, &n);
        if (value) {
            if (strlen(a->value) != n || strncmp(a->value, value, n) != 0) {
                crdi_dcp_found(&r->f, "C05", e->line,
                               "<%s> has %s = '%s', expected '%.*s', as always", e->name, a->name,
                               crdi_clip(a->value).text, (int)n, value);
            }
        } else if (!in_list(known, a->name)) {
            crdi_dcp_found(&r->f, "C02", e->line, "<%s> has an attribute '%s', which is ignored",
                           crdi_clip(e->name).text, crdi_clip(a->name).text);
        }
    }
}

static void unknown_element(reader* r, const crdi_xml_element* e)
{
    crdi_dcp_found(&r->f, "C01", e->line, "<%s> is not expected in <%s> and ignored",
                   crdi_clip(e->name).text, e->parent ? crdi_clip(e->parent->name).text : "");
}

// 0 where it is missing or bad, which is found.
static uint64_t get_number(reader* r, const crdi_xml_element* e, const char* name, uint64_t most)
{
    const char* text = crdi_xml_get(e, name);
    uint64_t x = 0;
    if (!text) {
        crdi_dcp_found(&r->f, "C03", e->line, "<%s> has no %s", e->name, name);
        return 0;
    }
    size_t n = 0;
    text = crdi_dcp_trim(text, &n);
    if (!crdi_parse_uint64(text, n, &x) || x > most) {
        crdi_dcp_found(&r->f, "C04", e->line,
                       "<%s> has %s = '%s', expected a whole number up to %llu", e->name, name,
                       crdi_clip(text).text, (unsigned long long)most);
        return 0;
    }
    return x;
}

static double get_limit(reader* r, const crdi_xml_element* e, const char* name)
{
    const char* text = crdi_xml_get(e, name);
    double x = (double)NAN;
    if (text && (!crdi_parse_double(text, strlen(text), &x) || !isfinite(x))) {
        crdi_dcp_found(&r->f, "C04", e->line, "<%s> has %s = '%s', expected a number", e->name,
                       name, crdi_clip(text).text);
        return (double)NAN;
    }
    return x;
}

static int count_children(const crdi_xml_element* e)
{
    int n = 0;
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        n++;
    }
    return n;
}

// The data type that an element is named after, -1.
static int can_description_type_of(const char* name)
{
    for (int i = 0; i < CRD_DCP_DATA_TYPE_COUNT; i++) {
        if (strcmp(crdi_dcp_type_elements[i], name) == 0) { return i; }
    }
    return -1;
}

// ---- messages ----------------------------------------------------------------------------------

static bool read_item(reader* r, const crdi_xml_element* e, crdi_dcp_can_item* out)
{
    look_at_attributes(r, e, "name offset unit", "");
    const crdi_xml_element* t = e->first;
    const int type = t ? can_description_type_of(t->name) : -1;
    if (type < 0 || t->next) {
        crdi_dcp_found(&r->f, "C03", e->line,
                       "<Payload> has no data type, expected one element as <Float32/>");
        return false;
    }
    const bool text = crdi_dcp_is_bytes(type);
    look_at_attributes(r, t, text ? "length" : "min max",
                       text ? "endianess=big" : "endianess=little");
    if (!crdi_xml_get(e, "name")) {
        crdi_dcp_found(&r->f, "C03", e->line, "<Payload> has no name");
    }
    *out = (crdi_dcp_can_item){.name = can_description_copy_text(r, crdi_xml_get(e, "name")),
                               .unit = can_description_copy_text(r, crdi_xml_get(e, "unit")),
                               .type = (uint8_t)type,
                               .offset = (uint8_t)get_number(r, e, "offset", 7),
                               .min = text ? (double)NAN : get_limit(r, t, "min"),
                               .max = text ? (double)NAN : get_limit(r, t, "max"),
                               .line = e->line};
    out->length = text ? (uint8_t)get_number(r, t, "length", CRDI_DCP_CAN_ROOM)
                       : (uint8_t)crdi_dcp_size_of((crd_dcp_data_type)type);
    return true;
}

static void read_data(reader* r, const crdi_xml_element* e, crdi_dcp_can_message* m)
{
    const size_t n = (size_t)count_children(e);
    crdi_dcp_can_item* items = new_array(r, n, sizeof *items);
    uint8_t* receivers = new_array(r, n, 1);
    if (!items || !receivers) { return; }
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        if (crdi_xml_is(k, r->space, "Payload")) {
            if (m->item_count == CRDI_CAN_ITEMS) {
                crdi_dcp_found(&r->f, "C09", k->line, "<%s> has more than 8 items", e->name);
            } else {
                m->item_count += read_item(r, k, &items[m->item_count]);
            }
        } else if (crdi_xml_is(k, r->space, "Receiver")) {
            look_at_attributes(r, k, "dcpId", "");
            if (m->receiver_count == UINT8_MAX) {
                crdi_dcp_found(&r->f, "C09", k->line, "<%s> has more than 255 receivers", e->name);
            } else {
                receivers[m->receiver_count++] = (uint8_t)get_number(r, k, "dcpId", UINT8_MAX);
            }
        } else {
            unknown_element(r, k);
        }
    }
    m->items = items;
    m->receivers = receivers;
}

static void read_message(reader* r, const crdi_xml_element* e, const crdi_can_kind* kind,
                         crdi_dcp_can_message* m)
{
    const bool data = crdi_dcp_is_data(kind->type);
    const bool parameters = kind->type == CRDI_DCP_DAT_PARAMETER;
    const char* id = parameters ? "paramId" : "dataId";
    size_t n = 0;
    look_at_attributes(r, e,
                       !data        ? "canId senderRef length"
                       : parameters ? "canId senderRef length paramId"
                                    : "canId senderRef length dataId",
                       kind->fixed);
    *m = (crdi_dcp_can_message){.can_id = (uint16_t)get_number(r, e, "canId", UINT16_MAX),
                                .type = kind->type,
                                .line = e->line};
    if (!fixed_value(kind->fixed, "senderRef", &n)) {
        m->sender = (uint8_t)get_number(r, e, "senderRef", UINT8_MAX);
    }
    if (kind->length >= 0) {
        m->length = (uint8_t)kind->length;
        if (crdi_xml_get(e, "length") && get_number(r, e, "length", UINT8_MAX) != m->length) {
            crdi_dcp_found(&r->f, "C05", e->line,
                           "<%s> has length = '%s', expected '%d', as always", e->name,
                           crdi_clip(crdi_xml_get(e, "length")).text, m->length);
        }
    } else {
        m->length = (uint8_t)get_number(r, e, "length", CRDI_DCP_CAN_ROOM);
        m->id = (uint16_t)get_number(r, e, id, UINT16_MAX);
        read_data(r, e, m);
    }
}

static const crdi_can_kind* kind_of(const crdi_xml_element* e)
{
    for (int i = 0; i < crdi_can_kind_count; i++) {
        if (strcmp(crdi_can_kinds[i].element, e->name) == 0) { return &crdi_can_kinds[i]; }
    }
    return NULL;
}

static void read_matrix(reader* r, const crdi_xml_element* e)
{
    look_at_attributes(r, e, "", matrix_fixed);
    crdi_dcp_can_message* all = new_array(r, (size_t)count_children(e), sizeof *all);
    if (!all) { return; }
    int n = 0;
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        const crdi_can_kind* kind = kind_of(k);
        if (!kind) {
            unknown_element(r, k);
        } else {
            read_message(r, k, kind, &all[n++]);
        }
    }
    r->d->messages = all;
    r->d->message_count = n;
}

// ---- settings ----------------------------------------------------------------------------------

static void read_uuid(reader* r, const crdi_xml_element* e, const char* name, uint8_t out[16])
{
    const char* text = crdi_xml_get(e, name);
    if (!text) {
        crdi_dcp_found(&r->f, "C03", e->line, "<%s> has no %s", e->name, name);
    } else if (!crdi_dcp_uuid_parse(text, strlen(text), out)) {
        crdi_dcp_found(&r->f, "C04", e->line,
                       "<%s> has %s = '%s', expected as "
                       "6f1d2c3b-4a59-4e68-8f70-0123456789ab",
                       e->name, name, crdi_clip(text).text);
    }
}

static void can_description_read_network(reader* r, const crdi_xml_element* e, crdi_dcp_pdu* p)
{
    static const char* const names[] = {"UDP_IPv4", "Bluetooth", "CAN", "USB", "TCP_IPv4"};
    const crdi_xml_element* k = e->first;
    int t = 0;
    while (k && t < 5 && strcmp(names[t], k->name) != 0) {
        t++;
    }
    if (!k || t == 5 || k->next) {
        crdi_dcp_found(&r->f, "C03", e->line,
                       "<%s> does not say where, expected one element as <CAN/>", e->name);
        p->transport = CRD_DCP_CAN;
        return;
    }
    const bool target = p->type == CRDI_DCP_CFG_TARGET_NETWORK;
    p->transport = (uint8_t)t;
    switch (t) {
    case CRD_DCP_UDP:
    case CRD_DCP_TCP:
        look_at_attributes(r, k, "port ip_address", "");
        p->port = (uint16_t)get_number(r, k, "port", UINT16_MAX);
        p->address = (uint32_t)get_number(r, k, "ip_address", UINT32_MAX);
        break;
    case CRD_DCP_BLUETOOTH:
        look_at_attributes(r, k, target ? "address port" : "port", "");
        p->port = (uint16_t)get_number(r, k, "port", UINT16_MAX);
        if (target) { p->bd_addr = get_number(r, k, "address", UINT64_MAX); }
        break;
    case CRD_DCP_USB:
        look_at_attributes(r, k, target ? "endpoint_address slave_uuid" : "endpoint_address", "");
        p->endpoint = (uint8_t)get_number(r, k, "endpoint_address", UINT8_MAX);
        if (target) { read_uuid(r, k, "slave_uuid", p->uuid); }
        break;
    default:
        look_at_attributes(r, k, "", "");
        break;
    }
}

static void can_description_read_value(reader* r, const crdi_xml_element* e, crdi_dcp_pdu* p)
{
    const crdi_xml_element* k = e->first;
    const int type = k ? can_description_type_of(k->name) : -1;
    const char* text = k ? crdi_xml_get(k, "value") : NULL;
    if (type < 0 || k->next || !text) {
        crdi_dcp_found(&r->f, "C03", e->line,
                       "<%s> has no value, expected one element as <Float64 value=\"1\"/>",
                       e->name);
        return;
    }
    look_at_attributes(r, k, "value", "");
    const size_t length = strlen(text), size = crdi_dcp_size_of((crd_dcp_data_type)type);
    const size_t words = size ? length / 2 + 1 : 1;
    double* real = new_array(r, words, sizeof *real);
    int64_t* integer = new_array(r, words, sizeof *integer);
    uint8_t* bytes = new_array(r, length + 1, 1);
    uint8_t* payload = new_array(r, words * (size ? size : length + 4), 1);
    if (r->f.failed) { return; }
    uint32_t count = 0, byte_count = 0;
    bool good = true;
    p->data_type = (uint8_t)type;
    if (size) {
        size_t n = 0;
        for (const char* w = crdi_dcp_word(&text, &n); w && good; w = crdi_dcp_word(&text, &n)) {
            good = crdi_dcp_parse_number(type, w, n, &real[count], &integer[count]);
            count++;
        }
        good = good && count > 0;
    } else {
        size_t n = length;
        if (type == CRD_DCP_STRING) {
            memcpy(bytes, text, n);
        } else {
            good = crdi_dcp_hex_parse(text, length, bytes, length, &n);
        }
        byte_count = (uint32_t)n;
    }
    if (!good) {
        crdi_dcp_found(&r->f, "C04", k->line, "<%s> has value = '%s', expected values of its type",
                       k->name, crdi_clip(crdi_xml_get(k, "value")).text);
        return;
    }
    const crd_dcp_slot slot = {.type = p->data_type,
                               .count = size ? count : 1,
                               .max_size = byte_count,
                               .real = real,
                               .integer = integer,
                               .bytes = bytes,
                               .byte_count = &byte_count};
    p->payload_length = crdi_dcp_put(&slot, 1, payload, words * (size ? size : length + 4));
    p->payload = payload;
}

static const crdi_can_setting* setting_of(const crdi_xml_element* e)
{
    for (int i = 0; i < crdi_can_setting_count; i++) {
        if (strcmp(crdi_dcp_type_name(crdi_can_settings[i].type), e->name) == 0) {
            return &crdi_can_settings[i];
        }
    }
    return NULL;
}

static void read_setting(reader* r, const crdi_xml_element* e, const crdi_can_setting* s,
                         crdi_dcp_pdu* p)
{
    char known[80] = "";
    *p = (crdi_dcp_pdu){.type = s->type};
    for (int i = 0; i < CRDI_CAN_FIELDS && s->fields[i].name; i++) {
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s ", s->fields[i].name);
        crdi_dcp_member_set(p, s->fields[i].offset, s->fields[i].size,
                            get_number(r, e, s->fields[i].name, s->fields[i].most));
    }
    look_at_attributes(r, e, known, "");
    if (crdi_dcp_is_network(s->type)) { can_description_read_network(r, e, p); }
    if (s->type == CRDI_DCP_CFG_PARAMETER) { can_description_read_value(r, e, p); }
}

static void read_slave(reader* r, const crdi_xml_element* e, crdi_dcp_can_config* out)
{
    look_at_attributes(r, e, "name uuid dcpId", "");
    *out = (crdi_dcp_can_config){.name = can_description_copy_text(r, crdi_xml_get(e, "name")),
                                 .id = (uint8_t)get_number(r, e, "dcpId", UINT8_MAX),
                                 .line = e->line};
    read_uuid(r, e, "uuid", out->uuid);
    const size_t n = (size_t)count_children(e);
    crdi_dcp_pdu* all = new_array(r, n, sizeof *all);
    int* lines = new_array(r, n, sizeof *lines);
    if (!all || !lines) { return; }
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        const crdi_can_setting* s = setting_of(k);
        if (!s) {
            unknown_element(r, k);
            continue;
        }
        lines[out->setting_count] = k->line;
        read_setting(r, k, s, &all[out->setting_count++]);
    }
    out->settings = all;
    out->lines = lines;
}

static void read_scenario(reader* r, const crdi_xml_element* e)
{
    look_at_attributes(r, e, "", "");
    crdi_dcp_can_config* all = new_array(r, (size_t)count_children(e), sizeof *all);
    if (!all) { return; }
    int n = 0;
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        if (crdi_xml_is(k, r->space, "DcpSlave")) {
            read_slave(r, k, &all[n++]);
        } else {
            unknown_element(r, k);
        }
    }
    if (n == 0) {
        crdi_dcp_found(&r->f, "C03", e->line, "<ScenarioConfiguration> has no <DcpSlave>");
    }
    r->d->slaves = all;
    r->d->slave_count = n;
}

static crd_status read_root(reader* r, const crdi_xml* xml)
{
    const crdi_xml_element* e = xml->root;
    if (strcmp(e->name, "DcpOverCan") != 0) {
        return crdi_fail(r->ctx, CRD_E_FORMAT,
                         "%s:%d: the root is <%s>, expected <DcpOverCan> of DCP over CAN",
                         xml->file, e->line, crdi_clip(e->name).text);
    }
    r->space = e->space;
    bool matrix = false, scenario = false;
    look_at_attributes(r, e, "", "");
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        if (!matrix && crdi_xml_is(k, r->space, "KMatrix")) {
            matrix = true;
            read_matrix(r, k);
        } else if (!scenario && crdi_xml_is(k, r->space, "ScenarioConfiguration")) {
            scenario = true;
            read_scenario(r, k);
        } else {
            unknown_element(r, k);
        }
    }
    if (!matrix) { crdi_dcp_found(&r->f, "C03", e->line, "<DcpOverCan> has no <KMatrix>"); }
    if (!scenario) {
        crdi_dcp_found(&r->f, "C03", e->line, "<DcpOverCan> has no <ScenarioConfiguration>");
    }
    return r->f.failed ? CRD_E_MEMORY : CRD_OK;
}

// ---- all of it ---------------------------------------------------------------------------------

crd_status crdi_dcp_can_description_create(crd_context* ctx, crd_dcp_can_description** out)
{
    crd_dcp_can_description* d = crdi_new(ctx, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    d->ctx = ctx;
    d->file = "";
    crd_arena_init(&d->arena, ctx);
    *out = d;
    return CRD_OK;
}

void crd_dcp_can_description_destroy(crd_dcp_can_description* d)
{
    if (!d) { return; }
    crd_context* ctx = d->ctx;
    crd_arena_clear(&d->arena);
    crd_free(ctx, d);
}

int crd_dcp_can_message_count(const crd_dcp_can_description* d)
{
    return d->message_count;
}

crd_status crdi_dcp_can_validate(crd_dcp_can_description* d, const crd_dcp_finding** findings,
                                 int* count)
{
    crd_status st = CRD_OK;
    crdi_dcp_findings f;
    crdi_dcp_findings_init(&f, d->ctx, &d->arena, &crdi_can_rules);
    CRD_TRY(crdi_can_check(d, &f));
    CRD_TRY(crdi_dcp_findings_finish(&f, findings, count));
fail:
    crdi_dcp_findings_clear(&f);
    return st;
}

crd_status crd_dcp_can_parse(crd_context* ctx, const char* text, size_t length, const char* file,
                             crd_dcp_can_description** out, const crd_dcp_finding** findings,
                             int* count)
{
    crd_status st = CRD_OK;
    crdi_xml* xml = NULL;
    reader r = {.ctx = ctx};
    CRD_TRY(crdi_dcp_can_description_create(ctx, &r.d));
    crdi_dcp_findings_init(&r.f, ctx, &r.d->arena, &crdi_can_rules);
    r.d->file = crdi_arena_text(&r.d->arena, file, strlen(file));
    if (!r.d->file) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crdi_xml_parse(ctx, text, length, file, &xml));
    CRD_TRY(read_root(&r, xml));
    CRD_TRY(crdi_can_check(r.d, &r.f));
    CRD_TRY(crdi_dcp_findings_finish(&r.f, findings, count));
    *out = r.d;
    r.d = NULL;
fail:
    crdi_dcp_findings_clear(&r.f);
    crdi_xml_destroy(xml);
    crd_dcp_can_description_destroy(r.d);
    return st;
}

crd_status crd_dcp_can_load(crd_context* ctx, const char* path, crd_dcp_can_description** out,
                            const crd_dcp_finding** findings, int* count)
{
    crd_text text;
    crd_text_init(&text, ctx);
    crd_status st = crdi_file_read(
        ctx, path,
        &(crdi_file_need){.what = "a description of DCP over CAN", .most = CRDI_DCP_MAX_BYTES},
        &text);
    if (st >= 0) {
        st = crd_dcp_can_parse(ctx, text.data, text.length, path, out, findings, count);
    }
    crd_text_clear(&text);
    return st;
}

crd_status crdi_dcp_can_load_good(crd_context* ctx, const char* path, crd_dcp_can_description** out)
{
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    const crd_status st = crd_dcp_can_load(ctx, path, out, &findings, &count);
    if (st < 0) { return st; }
    const crd_dcp_finding* fault = crdi_dcp_first_fault(findings, (size_t)count);
    if (!fault) { return CRD_OK; }
    crdi_fail(ctx, CRD_E_FORMAT, "%s:%d: %s (%s); 'cardan check' lists everything", path,
              fault->line, fault->text, fault->code);
    crd_dcp_can_description_destroy(*out);
    *out = NULL;
    return CRD_E_FORMAT;
}

crd_status crdi_dcp_can_add_control(crd_dcp_can_description* d, uint16_t first)
{
    const int fresh = CRDI_CAN_REQUESTS + 5 * d->slave_count;
    const int n = d->message_count + fresh;
    if (first + fresh - 1 > UINT16_MAX) {
        return crdi_fail(d->ctx, CRD_E_RANGE,
                         "CAN: control needs %d identifiers from %d on, the last one is 65535",
                         fresh, first);
    }
    crdi_dcp_can_message* all = crdi_arena_new(&d->arena, (size_t)n, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    if (d->message_count) { memcpy(all, d->messages, (size_t)d->message_count * sizeof *all); }
    crdi_dcp_can_message* m = all + d->message_count;
    for (int i = 0; i < crdi_can_kind_count; i++) {
        const crdi_can_kind* k = &crdi_can_kinds[i];
        if (crdi_dcp_is_data(k->type)) { continue; }
        const int senders = i < CRDI_CAN_REQUESTS ? 1 : d->slave_count;
        for (int s = 0; s < senders; s++) {
            *m++ = (crdi_dcp_can_message){.can_id = first++,
                                          .type = k->type,
                                          .sender = i < CRDI_CAN_REQUESTS ? 0 : d->slaves[s].id,
                                          .length = (uint8_t)k->length};
        }
    }
    d->messages = all;
    d->message_count = n;
    return CRD_OK;
}
