// Descriptions of DCP over CAN: the tables of the schema, the reader, and the rules.
#include "dcp/can/can.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dcp/description/dcpx.h"

// ---- the schema --------------------------------------------------------------------------------

#define STATE_FIXED "senderRef=0 f_type_id=H f_receiver=0 f_state_id=1"

const crdi_can_kind crdi_can_kinds[] = {
    {"STC_register", CRD_DCP_STC_REGISTER, 3, STATE_FIXED " f_op_mode=2"},
    {"STC_deregister", CRD_DCP_STC_DEREGISTER, 2, STATE_FIXED},
    {"STC_prepare", CRD_DCP_STC_PREPARE, 2, STATE_FIXED},
    {"STC_configure", CRD_DCP_STC_CONFIGURE, 2, STATE_FIXED},
    {"STC_initialize", CRD_DCP_STC_INITIALIZE, 2, STATE_FIXED},
    {"STC_run", CRD_DCP_STC_RUN, 2, STATE_FIXED},
    {"STC_dostep", CRD_DCP_STC_DO_STEP, 3, STATE_FIXED " f_steps=2"},
    {"STC_send_outputs", CRD_DCP_STC_SEND_OUTPUTS, 2, STATE_FIXED},
    {"STC_stop", CRD_DCP_STC_STOP, 2, STATE_FIXED},
    {"STC_reset", CRD_DCP_STC_RESET, 2, STATE_FIXED},
    {"INF_state_request", CRD_DCP_INF_STATE, 1, "senderRef=0 f_type_id=H f_receiver=0"},
    {"INF_error_request", CRD_DCP_INF_ERROR, 1, "senderRef=0 f_type_id=H f_receiver=0"},
    {"NTF_state_changed", CRD_DCP_NTF_STATE_CHANGED, 1, "f_type_id=H f_sender=H f_state_id=0"},
    {"RSP_ack", CRD_DCP_RSP_ACK, 0, "f_type_id=H f_sender=H"},
    {"RSP_nack", CRD_DCP_RSP_NACK, 1, "f_type_id=H f_sender=H f_error_code=0"},
    {"RSP_state_ack", CRD_DCP_RSP_STATE_ACK, 1, "f_type_id=H f_sender=H f_state_id=0"},
    {"RSP_error_ack", CRD_DCP_RSP_ERROR_ACK, 1, "f_type_id=H f_sender=H f_error_code=0"},
    {"DAT_input_output", CRD_DCP_DAT_INPUT_OUTPUT, -1, "f_type_id=H f_data_id=H"},
    {"DAT_parameter", CRD_DCP_DAT_PARAMETER, -1, "senderRef=0 f_type_id=H f_param_id=H"},
};
const int crdi_can_kind_count = sizeof crdi_can_kinds / sizeof *crdi_can_kinds;

static const char matrix_fixed[] =
    "f_type_id_data_type=0 f_type_id_endianess=little f_receiver_data_type=0 "
    "f_receiver_endianess=little f_state_id_data_type=0 f_state_id_endianess=little "
    "f_op_mode_data_type=0 f_op_mode_endianess=little f_steps_data_type=2 "
    "f_steps_endianess=little f_error_code_data_type=0 f_error_code_endianess=little";

#define FIELD(name, member, most)                                                                  \
    {                                                                                              \
        name, offsetof(crd_dcp_pdu, member), sizeof(((crd_dcp_pdu*)0)->member), most               \
    }
#define DATA_ID FIELD("data_id", id, UINT16_MAX)
#define PARAM_ID FIELD("param_id", id, UINT16_MAX)
#define POS FIELD("pos", pos, UINT16_MAX)
#define TARGET FIELD("target_vr", vr, UINT64_MAX)
#define SOURCE_TYPE FIELD("source_data_type", data_type, CRD_DCP_DATA_TYPE_COUNT - 1)

const crdi_can_setting crdi_can_settings[] = {
    {"CFG_time_res",
     CRD_DCP_CFG_TIME_RES,
     false,
     false,
     {FIELD("numerator", numerator, UINT32_MAX), FIELD("denominator", denominator, UINT32_MAX)}},
    {"CFG_steps", CRD_DCP_CFG_STEPS, false, false, {DATA_ID, FIELD("steps", steps, UINT32_MAX)}},
    {"CFG_input", CRD_DCP_CFG_INPUT, false, false, {DATA_ID, POS, TARGET, SOURCE_TYPE}},
    {"CFG_output",
     CRD_DCP_CFG_OUTPUT,
     false,
     false,
     {DATA_ID, POS, FIELD("source_vr", vr, UINT64_MAX)}},
    {"CFG_target_network_information", CRD_DCP_CFG_TARGET_NETWORK, true, false, {DATA_ID}},
    {"CFG_source_network_information", CRD_DCP_CFG_SOURCE_NETWORK, true, false, {DATA_ID}},
    {"CFG_parameter", CRD_DCP_CFG_PARAMETER, false, true, {TARGET}},
    {"CFG_tunable_parameter",
     CRD_DCP_CFG_TUNABLE_PARAMETER,
     false,
     false,
     {PARAM_ID, POS, TARGET, SOURCE_TYPE}},
    {"CFG_param_network_information", CRD_DCP_CFG_PARAM_NETWORK, true, false, {PARAM_ID}},
    {"CFG_scope", CRD_DCP_CFG_SCOPE, false, false, {DATA_ID, FIELD("scope", scope, CRD_DCP_RUN)}},
};
const int crdi_can_setting_count = sizeof crdi_can_settings / sizeof *crdi_can_settings;

uint64_t crdi_can_field_get(const crd_dcp_pdu* p, const crdi_can_field* f)
{
    const char* at = (const char*)p + f->offset;
    uint64_t x = 0;
    uint32_t x4 = 0;
    uint16_t x2 = 0;
    switch (f->size) {
    case 1:
        return *(const uint8_t*)at;
    case 2:
        memcpy(&x2, at, sizeof x2);
        return x2;
    case 4:
        memcpy(&x4, at, sizeof x4);
        return x4;
    default:
        memcpy(&x, at, sizeof x);
        return x;
    }
}

void crdi_can_field_set(crd_dcp_pdu* p, const crdi_can_field* f, uint64_t x)
{
    char* at = (char*)p + f->offset;
    const uint32_t x4 = (uint32_t)x;
    const uint16_t x2 = (uint16_t)x;
    const uint8_t x1 = (uint8_t)x;
    memcpy(at,
           f->size == 1   ? (const void*)&x1
           : f->size == 2 ? (const void*)&x2
           : f->size == 4 ? (const void*)&x4
                          : (const void*)&x,
           f->size);
}

// ---- findings ----------------------------------------------------------------------------------

enum { MOST_FINDINGS = 500 };

typedef struct rule {
    const char* code;
    crd_dcp_severity severity;
} rule;

static const rule rules[] = {
    {"C01", CRD_DCP_NOTE},    // an element that the schema does not know
    {"C02", CRD_DCP_NOTE},    // an attribute
    {"C03", CRD_DCP_FAULT},   // something mandatory is missing
    {"C04", CRD_DCP_FAULT},   // a value that is none, or beyond its range
    {"C05", CRD_DCP_FAULT},   // an attribute that has one value has another
    {"C06", CRD_DCP_FAULT},   // an identifier twice
    {"C07", CRD_DCP_FAULT},   // a message twice
    {"C08", CRD_DCP_WARNING}, // a slave without one of its messages
    {"C09", CRD_DCP_FAULT},   // items overlap or reach beyond the frame
    {"C10", CRD_DCP_FAULT},   // dcp ids: 1 to 255, each once
    {"C11", CRD_DCP_WARNING}, // a sender or receiver that is no slave
    {"C12", CRD_DCP_WARNING}, // settings that do not fit the messages
    {"C13", CRD_DCP_NOTE},    // identifiers of extended frames
    {"C14", CRD_DCP_WARNING}, // a slave that is configured without a network for its data
};

typedef struct reader {
    crd_context* ctx;
    crd_dcp_can_description* d;
    const char* space; // of all elements; should be ""
    crd_dcp_finding* items;
    size_t count, capacity;
    bool failed; // out of memory
    // of the rules
    const crd_dcp_can_message** sorted; // by meaning
    bool ids[256];                      // of slaves
    bool control;                       // there are messages of it
    uint8_t* networks;                  // (3 * 65536) bits of the settings 0x25, 0x26, 0x29
} reader;

static void found(reader* r, const char* code, int line, const char* format, ...) CRD_PRINTF(4, 5);
static void found(reader* r, const char* code, int line, const char* format, ...)
{
    if (r->failed || r->count >= MOST_FINDINGS) { return; }
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t i = 0;
    while (strcmp(rules[i].code, code) != 0) {
        i++;
    }
    crd_dcp_finding* grown = crdi_grow(r->ctx, r->items, &r->capacity, r->count + 1, sizeof *grown);
    const char* kept = crdi_arena_text(&r->d->arena, text, strlen(text));
    if (grown) { r->items = grown; }
    if (!grown || !kept) {
        r->failed = true;
        return;
    }
    r->items[r->count++] =
        (crd_dcp_finding){.severity = rules[i].severity, .code = code, .line = line, .text = kept};
}

static int by_line(const void* a, const void* b)
{
    const crd_dcp_finding *x = a, *y = b;
    if (x->line != y->line) { return x->line < y->line ? -1 : 1; }
    const int order = strcmp(x->code, y->code);
    return order ? order : strcmp(x->text, y->text);
}

static crd_status finish(reader* r, const crd_dcp_finding** out, int* count)
{
    crd_dcp_finding* kept = crdi_arena_new(&r->d->arena, r->count, sizeof *kept);
    if (r->failed || !kept) { return CRD_E_MEMORY; }
    if (r->count > 0) {
        qsort(r->items, r->count, sizeof *r->items, by_line);
        memcpy(kept, r->items, r->count * sizeof *kept);
    }
    if (out) { *out = kept; }
    if (count) { *count = (int)r->count; }
    return CRD_OK;
}

static void* take(reader* r, size_t n, size_t size)
{
    void* p = crdi_arena_new(&r->d->arena, n, size);
    if (!p) { r->failed = true; }
    return p;
}

static const char* keep(reader* r, const char* text)
{
    if (!text || !*text) { return ""; }
    const char* kept = crdi_arena_text(&r->d->arena, text, strlen(text));
    if (!kept) { r->failed = true; }
    return kept ? kept : "";
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
                found(r, "C05", e->line, "<%s> has %s = '%s', expected '%.*s', as always", e->name,
                      a->name, crdi_clip(a->value).text, (int)n, value);
            }
        } else if (!in_list(known, a->name)) {
            found(r, "C02", e->line, "<%s> has an attribute '%s', which is ignored",
                  crdi_clip(e->name).text, crdi_clip(a->name).text);
        }
    }
}

static void unknown_element(reader* r, const crdi_xml_element* e)
{
    found(r, "C01", e->line, "<%s> is not expected in <%s> and ignored", crdi_clip(e->name).text,
          e->parent ? crdi_clip(e->parent->name).text : "");
}

// 0 where it is missing or bad, which is found.
static uint64_t number(reader* r, const crdi_xml_element* e, const char* name, uint64_t most)
{
    const char* text = crdi_xml_get(e, name);
    uint64_t x = 0;
    if (!text) {
        found(r, "C03", e->line, "<%s> has no %s", e->name, name);
        return 0;
    }
    text += strspn(text, " \t\r\n");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r\n", text[n - 1])) {
        n--;
    }
    if (!crdi_parse_uint64(text, n, &x) || x > most) {
        found(r, "C04", e->line, "<%s> has %s = '%s', expected a whole number up to %llu", e->name,
              name, crdi_clip(text).text, (unsigned long long)most);
        return 0;
    }
    return x;
}

static double limit(reader* r, const crdi_xml_element* e, const char* name)
{
    const char* text = crdi_xml_get(e, name);
    double x = (double)NAN;
    if (text && (!crdi_parse_double(text, strlen(text), &x) || !isfinite(x))) {
        found(r, "C04", e->line, "<%s> has %s = '%s', expected a number", e->name, name,
              crdi_clip(text).text);
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
static int type_of(const char* name)
{
    for (int i = 0; i < CRD_DCP_DATA_TYPE_COUNT; i++) {
        if (strcmp(crdi_dcp_type_elements[i], name) == 0) { return i; }
    }
    return -1;
}

// ---- messages ----------------------------------------------------------------------------------

static bool read_item(reader* r, const crdi_xml_element* e, crd_dcp_can_item* out)
{
    look_at_attributes(r, e, "name offset unit", "");
    const crdi_xml_element* t = e->first;
    const int type = t ? type_of(t->name) : -1;
    if (type < 0 || t->next) {
        found(r, "C03", e->line, "<Payload> has no data type, expected one element as <Float32/>");
        return false;
    }
    const bool text = type == CRD_DCP_STRING || type == CRD_DCP_BINARY;
    look_at_attributes(r, t, text ? "length" : "min max",
                       text ? "endianess=big" : "endianess=little");
    if (!crdi_xml_get(e, "name")) { found(r, "C03", e->line, "<Payload> has no name"); }
    *out = (crd_dcp_can_item){.name = keep(r, crdi_xml_get(e, "name")),
                              .unit = keep(r, crdi_xml_get(e, "unit")),
                              .type = (uint8_t)type,
                              .offset = (uint8_t)number(r, e, "offset", 7),
                              .min = text ? (double)NAN : limit(r, t, "min"),
                              .max = text ? (double)NAN : limit(r, t, "max"),
                              .line = e->line};
    out->length = text ? (uint8_t)number(r, t, "length", CRD_DCP_CAN_ROOM)
                       : (uint8_t)crd_dcp_size_of((crd_dcp_data_type)type);
    return true;
}

static void read_data(reader* r, const crdi_xml_element* e, crd_dcp_can_message* m)
{
    const size_t n = (size_t)count_children(e);
    crd_dcp_can_item* items = take(r, n, sizeof *items);
    uint8_t* receivers = take(r, n, 1);
    if (!items || !receivers) { return; }
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        if (crdi_xml_is(k, r->space, "Payload")) {
            if (m->item_count == CRDI_CAN_ITEMS) {
                found(r, "C09", k->line, "<%s> has more than 8 items", e->name);
            } else {
                m->item_count += read_item(r, k, &items[m->item_count]);
            }
        } else if (crdi_xml_is(k, r->space, "Receiver")) {
            look_at_attributes(r, k, "dcpId", "");
            if (m->receiver_count == UINT8_MAX) {
                found(r, "C09", k->line, "<%s> has more than 255 receivers", e->name);
            } else {
                receivers[m->receiver_count++] = (uint8_t)number(r, k, "dcpId", UINT8_MAX);
            }
        } else {
            unknown_element(r, k);
        }
    }
    m->items = items;
    m->receivers = receivers;
}

static void read_message(reader* r, const crdi_xml_element* e, const crdi_can_kind* kind,
                         crd_dcp_can_message* m)
{
    const bool data = crdi_can_is_data(kind->type);
    const bool parameters = kind->type == CRD_DCP_DAT_PARAMETER;
    const char* id = parameters ? "paramId" : "dataId";
    size_t n = 0;
    look_at_attributes(r, e,
                       !data        ? "canId senderRef length"
                       : parameters ? "canId senderRef length paramId"
                                    : "canId senderRef length dataId",
                       kind->fixed);
    *m = (crd_dcp_can_message){
        .can_id = (uint16_t)number(r, e, "canId", UINT16_MAX), .type = kind->type, .line = e->line};
    if (!fixed_value(kind->fixed, "senderRef", &n)) {
        m->sender = (uint8_t)number(r, e, "senderRef", UINT8_MAX);
    }
    if (kind->length >= 0) {
        m->length = (uint8_t)kind->length;
        if (crdi_xml_get(e, "length") && number(r, e, "length", UINT8_MAX) != m->length) {
            found(r, "C05", e->line, "<%s> has length = '%s', expected '%d', as always", e->name,
                  crdi_clip(crdi_xml_get(e, "length")).text, m->length);
        }
    } else {
        m->length = (uint8_t)number(r, e, "length", CRD_DCP_CAN_ROOM);
        m->id = (uint16_t)number(r, e, id, UINT16_MAX);
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
    crd_dcp_can_message* all = take(r, (size_t)count_children(e), sizeof *all);
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

static bool parse_uuid(const char* text, uint8_t out[16])
{
    int digits = 0;
    for (int i = 0; i < 36; i++) {
        const char c = text[i], low = (char)(c | 0x20);
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (c != '-') { return false; }
            continue;
        }
        const bool is_number = c >= '0' && c <= '9', letter = low >= 'a' && low <= 'f';
        if (!is_number && !letter) { return false; } // the end of the text as well
        const int x = is_number ? c - '0' : low - 'a' + 10;
        out[digits / 2] = (uint8_t)(digits % 2 ? out[digits / 2] << 4 | x : x);
        digits++;
    }
    return text[36] == 0;
}

static void read_uuid(reader* r, const crdi_xml_element* e, const char* name, uint8_t out[16])
{
    const char* text = crdi_xml_get(e, name);
    if (!text) {
        found(r, "C03", e->line, "<%s> has no %s", e->name, name);
    } else if (!parse_uuid(text, out)) {
        memset(out, 0, 16);
        found(r, "C04", e->line,
              "<%s> has %s = '%s', expected as "
              "6f1d2c3b-4a59-4e68-8f70-0123456789ab",
              e->name, name, crdi_clip(text).text);
    }
}

static void read_network(reader* r, const crdi_xml_element* e, crd_dcp_pdu* p)
{
    static const char* const names[] = {"UDP_IPv4", "Bluetooth", "CAN", "USB", "TCP_IPv4"};
    const crdi_xml_element* k = e->first;
    int t = 0;
    while (k && t < 5 && strcmp(names[t], k->name) != 0) {
        t++;
    }
    if (!k || t == 5 || k->next) {
        found(r, "C03", e->line, "<%s> does not say where, expected one element as <CAN/>",
              e->name);
        p->transport = CRD_DCP_CAN;
        return;
    }
    const bool target = p->type == CRD_DCP_CFG_TARGET_NETWORK;
    p->transport = (uint8_t)t;
    switch (t) {
    case CRD_DCP_UDP:
    case CRD_DCP_TCP:
        look_at_attributes(r, k, "port ip_address", "");
        p->port = (uint16_t)number(r, k, "port", UINT16_MAX);
        p->address = (uint32_t)number(r, k, "ip_address", UINT32_MAX);
        break;
    case CRD_DCP_BLUETOOTH:
        look_at_attributes(r, k, target ? "address port" : "port", "");
        p->port = (uint16_t)number(r, k, "port", UINT16_MAX);
        if (target) { p->bd_addr = number(r, k, "address", UINT64_MAX); }
        break;
    case CRD_DCP_USB:
        look_at_attributes(r, k, target ? "endpoint_address slave_uuid" : "endpoint_address", "");
        p->endpoint = (uint8_t)number(r, k, "endpoint_address", UINT8_MAX);
        if (target) { read_uuid(r, k, "slave_uuid", p->uuid); }
        break;
    default:
        look_at_attributes(r, k, "", "");
        break;
    }
}

// A number of a list as its type wants it.
static bool read_number(const char* text, size_t n, uint8_t type, double* real, int64_t* integer)
{
    if (type == CRD_DCP_FLOAT32 || type == CRD_DCP_FLOAT64) {
        return crdi_parse_double(text, n, real) && isfinite(*real) &&
               (type == CRD_DCP_FLOAT64 || fabs(*real) <= 3.4028234663852886e38);
    }
    const int bits = 8 * (int)crd_dcp_size_of((crd_dcp_data_type)type);
    if (type <= CRD_DCP_UINT64) {
        uint64_t x = 0;
        if (!crdi_parse_uint64(text, n, &x) || (bits < 64 && x >> bits)) { return false; }
        memcpy(integer, &x, sizeof x);
        return true;
    }
    const int64_t most = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1;
    return crdi_parse_int64(text, n, integer) && *integer <= most && *integer >= -most - 1;
}

// Text or hex digits become count and bytes. false: no hex digits.
static bool read_bytes(const char* text, uint8_t type, uint8_t* out, uint32_t* count)
{
    const size_t n = strlen(text);
    if (type == CRD_DCP_STRING) {
        memcpy(out, text, n);
        *count = (uint32_t)n;
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        const char c = text[i], low = (char)(c | 0x20);
        const bool is_number = c >= '0' && c <= '9', letter = low >= 'a' && low <= 'f';
        if (!is_number && !letter) { return false; }
        const int x = is_number ? c - '0' : low - 'a' + 10;
        out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] << 4 | x : x);
    }
    *count = (uint32_t)(n / 2);
    return n % 2 == 0;
}

static void read_value(reader* r, const crdi_xml_element* e, crd_dcp_pdu* p)
{
    const crdi_xml_element* k = e->first;
    const int type = k ? type_of(k->name) : -1;
    const char* text = k ? crdi_xml_get(k, "value") : NULL;
    if (type < 0 || k->next || !text) {
        found(r, "C03", e->line,
              "<%s> has no value, expected one element as <Float64 value=\"1\"/>", e->name);
        return;
    }
    look_at_attributes(r, k, "value", "");
    const size_t length = strlen(text), size = crd_dcp_size_of((crd_dcp_data_type)type);
    const size_t words = size ? length / 2 + 1 : 1;
    double* real = take(r, words, sizeof *real);
    int64_t* integer = take(r, words, sizeof *integer);
    uint8_t* bytes = take(r, length + 1, 1);
    uint8_t* payload = take(r, words * (size ? size : length + 4), 1);
    if (r->failed) { return; }
    uint32_t count = 0, byte_count = 0;
    bool good = true;
    p->data_type = (uint8_t)type;
    if (size) {
        size_t n = 0;
        for (const char* w = crdi_dcp_word(&text, &n); w && good; w = crdi_dcp_word(&text, &n)) {
            good = read_number(w, n, p->data_type, &real[count], &integer[count]);
            count++;
        }
        good = good && count > 0;
    } else {
        good = read_bytes(text, p->data_type, bytes, &byte_count);
    }
    if (!good) {
        found(r, "C04", k->line, "<%s> has value = '%s', expected values of its type", k->name,
              crdi_clip(crdi_xml_get(k, "value")).text);
        return;
    }
    const bool floats = type == CRD_DCP_FLOAT32 || type == CRD_DCP_FLOAT64;
    const crd_dcp_slot slot = {.type = p->data_type,
                               .count = size ? count : 1,
                               .max_size = byte_count,
                               .real = floats ? real : NULL,
                               .integer = floats ? NULL : integer,
                               .bytes = bytes,
                               .byte_count = &byte_count};
    p->payload_length = crd_dcp_put(&slot, 1, payload, words * (size ? size : length + 4));
    p->payload = payload;
}

static const crdi_can_setting* setting_of(const crdi_xml_element* e)
{
    for (int i = 0; i < crdi_can_setting_count; i++) {
        if (strcmp(crdi_can_settings[i].element, e->name) == 0) { return &crdi_can_settings[i]; }
    }
    return NULL;
}

static void read_setting(reader* r, const crdi_xml_element* e, const crdi_can_setting* s,
                         crd_dcp_pdu* p)
{
    char known[80] = "";
    *p = (crd_dcp_pdu){.type = s->type};
    for (int i = 0; i < CRDI_CAN_FIELDS && s->fields[i].name; i++) {
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s ", s->fields[i].name);
        crdi_can_field_set(p, &s->fields[i], number(r, e, s->fields[i].name, s->fields[i].most));
    }
    look_at_attributes(r, e, known, "");
    if (s->network) { read_network(r, e, p); }
    if (s->value) { read_value(r, e, p); }
}

static void read_slave(reader* r, const crdi_xml_element* e, crd_dcp_can_config* out)
{
    look_at_attributes(r, e, "name uuid dcpId", "");
    *out = (crd_dcp_can_config){.name = keep(r, crdi_xml_get(e, "name")),
                                .id = (uint8_t)number(r, e, "dcpId", UINT8_MAX),
                                .line = e->line};
    read_uuid(r, e, "uuid", out->uuid);
    const size_t n = (size_t)count_children(e);
    crd_dcp_pdu* all = take(r, n, sizeof *all);
    int* lines = take(r, n, sizeof *lines);
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
    crd_dcp_can_config* all = take(r, (size_t)count_children(e), sizeof *all);
    if (!all) { return; }
    int n = 0;
    for (const crdi_xml_element* k = e->first; k; k = k->next) {
        if (crdi_xml_is(k, r->space, "DcpSlave")) {
            read_slave(r, k, &all[n++]);
        } else {
            unknown_element(r, k);
        }
    }
    if (n == 0) { found(r, "C03", e->line, "<ScenarioConfiguration> has no <DcpSlave>"); }
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
    if (!matrix) { found(r, "C03", e->line, "<DcpOverCan> has no <KMatrix>"); }
    if (!scenario) { found(r, "C03", e->line, "<DcpOverCan> has no <ScenarioConfiguration>"); }
    return r->failed ? CRD_E_MEMORY : CRD_OK;
}

// ---- rules -------------------------------------------------------------------------------------

static const char* element_of(uint8_t type)
{
    for (int i = 0; i < crdi_can_kind_count; i++) {
        if (crdi_can_kinds[i].type == type) { return crdi_can_kinds[i].element; }
    }
    return "?";
}

static int by_can_id(const void* a, const void* b)
{
    const crd_dcp_can_message *x = *(const crd_dcp_can_message*const*)a,
                              *y = *(const crd_dcp_can_message*const*)b;
    if (x->can_id != y->can_id) { return x->can_id < y->can_id ? -1 : 1; }
    return (x->line > y->line) - (x->line < y->line);
}

static int by_meaning(const void* a, const void* b)
{
    const crd_dcp_can_message *x = *(const crd_dcp_can_message*const*)a,
                              *y = *(const crd_dcp_can_message*const*)b;
    if (x->type != y->type) { return x->type < y->type ? -1 : 1; }
    if (x->id != y->id) { return x->id < y->id ? -1 : 1; }
    if (x->sender != y->sender) { return x->sender < y->sender ? -1 : 1; }
    return (x->line > y->line) - (x->line < y->line);
}

static bool same_meaning(const crd_dcp_can_message* a, const crd_dcp_can_message* b)
{
    return a->type == b->type && a->sender == b->sender && a->id == b->id;
}

static bool kind_is_known(uint8_t type)
{
    for (int i = 0; i < crdi_can_kind_count; i++) {
        if (crdi_can_kinds[i].type == type) { return true; }
    }
    return false;
}

static crd_status check_unique(reader* r)
{
    const crd_dcp_can_description* d = r->d;
    const int n = d->message_count;
    const crd_dcp_can_message** all = take(r, (size_t)n, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    for (int i = 0; i < n; i++) {
        all[i] = &d->messages[i];
    }
    if (n) { qsort(all, (size_t)n, sizeof *all, by_can_id); }
    for (int i = 1; i < n; i++) {
        if (all[i]->can_id == all[i - 1]->can_id) {
            found(r, "C06", all[i]->line, "<%s> has canId = %d, which <%s> in line %d has already",
                  element_of(all[i]->type), all[i]->can_id, element_of(all[i - 1]->type),
                  all[i - 1]->line);
        }
    }
    if (n) { qsort(all, (size_t)n, sizeof *all, by_meaning); }
    for (int i = 1; i < n; i++) {
        if (same_meaning(all[i], all[i - 1])) {
            found(r, "C07", all[i]->line, "<%s> of sender %d is there already in line %d",
                  element_of(all[i]->type), all[i]->sender, all[i - 1]->line);
        }
    }
    r->sorted = all;
    return CRD_OK;
}

// The place of the first message of this meaning or behind it.
static int lower_bound(const reader* r, uint8_t type, uint8_t sender, uint16_t id)
{
    const crd_dcp_can_message key = {.type = type, .sender = sender, .id = id, .line = INT32_MIN};
    const crd_dcp_can_message* k = &key;
    int low = 0, high = r->d->message_count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (by_meaning(&r->sorted[middle], &k) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static const crd_dcp_can_message* find_message(const reader* r, uint8_t type, uint8_t sender,
                                               uint16_t id)
{
    const int i = lower_bound(r, type, sender, id);
    if (i == r->d->message_count) { return NULL; }
    const crd_dcp_can_message* m = r->sorted[i];
    return m->type == type && m->sender == sender && m->id == id ? m : NULL;
}

static bool receives(const crd_dcp_can_message* m, uint8_t id)
{
    return m->receiver_count > 0 && memchr(m->receivers, id, (size_t)m->receiver_count);
}

// The message that carries a data_id to a slave; if there is none, one that has this data_id.
static const crd_dcp_can_message* find_incoming(const reader* r, uint8_t type, uint16_t id,
                                                uint8_t receiver)
{
    const int first = lower_bound(r, type, 0, id);
    const crd_dcp_can_message* any = NULL;
    for (int i = first; i < r->d->message_count && i < first + 256; i++) {
        const crd_dcp_can_message* m = r->sorted[i];
        if (m->type != type || m->id != id) { break; }
        if (receives(m, receiver)) { return m; }
        any = m;
    }
    return any;
}

static void check_items(reader* r, const crd_dcp_can_message* m)
{
    unsigned used = 0;
    if (m->item_count == 0) {
        found(r, "C03", m->line, "<%s> has no <Payload>", element_of(m->type));
    }
    if (m->item_count > CRDI_CAN_ITEMS) {
        found(r, "C09", m->line, "<%s> has more than 8 items", element_of(m->type));
    }
    for (int i = 0; i < m->item_count && i < CRDI_CAN_ITEMS; i++) {
        const crd_dcp_can_item* t = &m->items[i];
        const size_t size = crd_dcp_size_of((crd_dcp_data_type)t->type);
        if (t->type >= CRD_DCP_DATA_TYPE_COUNT || (size && t->length != size)) {
            found(r, "C04", t->line, "'%s' has data type %d and %d bytes", crdi_clip(t->name).text,
                  t->type, t->length);
            continue;
        }
        const unsigned mine =
            t->length > CRD_DCP_CAN_ROOM ? 0 : ((1U << t->length) - 1) << (t->offset & 7);
        if (t->length == 0 || t->offset + t->length > m->length) {
            found(r, "C09", t->line,
                  "'%s' stands at bytes %d to %d, expected within the %d of the "
                  "message",
                  crdi_clip(t->name).text, t->offset, t->offset + t->length - 1, m->length);
        } else if (used & mine) {
            found(r, "C09", t->line, "'%s' stands at bytes %d to %d, where there is another item",
                  crdi_clip(t->name).text, t->offset, t->offset + t->length - 1);
        }
        used |= mine;
    }
}

static void check_message(reader* r, const crd_dcp_can_message* m)
{
    if (!kind_is_known(m->type)) {
        found(r, "C04", m->line, "type 0x%02x is no message of CAN", m->type);
        return;
    }
    const char* element = element_of(m->type);
    if (m->length > CRD_DCP_CAN_ROOM) {
        found(r, "C04", m->line, "<%s> has length = %d, expected at most 8", element, m->length);
    }
    if (m->sender != 0 && !r->ids[m->sender]) {
        found(r, "C11", m->line, "<%s> is sent by %d, which is no slave of the scenario", element,
              m->sender);
    }
    if (m->can_id > CRDI_CAN_STANDARD) {
        found(r, "C13", m->line, "<%s> has canId = %d, beyond 2047: these are extended frames here",
              element, m->can_id);
    }
    if (!crdi_can_is_data(m->type)) { return; }
    if (m->length <= CRD_DCP_CAN_ROOM) { check_items(r, m); }
    for (int i = 0; i < m->receiver_count; i++) {
        if (m->receivers[i] != 0 && !r->ids[m->receivers[i]]) {
            found(r, "C11", m->line, "<%s> is received by %d, which is no slave of the scenario",
                  element, m->receivers[i]);
        }
    }
    if (m->receiver_count == 0) { found(r, "C03", m->line, "<%s> has no <Receiver>", element); }
}

static void check_place(reader* r, const crd_dcp_can_config* c, const crd_dcp_pdu* p, int line,
                        const crd_dcp_can_message* m)
{
    const bool out = p->type == CRD_DCP_CFG_OUTPUT;
    const char* what = p->type == CRD_DCP_CFG_TUNABLE_PARAMETER ? "param_id" : "data_id";
    if (!m) {
        found(r, "C12", line, "%s %d of slave %d has no message in the KMatrix", what, p->id,
              c->id);
        return;
    }
    if (!out && !receives(m, c->id)) {
        found(r, "C12", line,
              "slave %d receives %s %d, but is no <Receiver> of its message in line "
              "%d",
              c->id, what, p->id, m->line);
    }
    if (p->pos >= m->item_count) {
        found(r, "C12", line,
              "%s %d of slave %d has pos = %d, but its message in line %d has %d "
              "item%s",
              what, p->id, c->id, p->pos, m->line, m->item_count, m->item_count == 1 ? "" : "s");
    } else if (!out && m->items[p->pos].type != p->data_type) {
        found(r, "C12", line, "%s %d of slave %d is read as %s, but '%s' in line %d is %s", what,
              p->id, c->id, crd_dcp_data_type_name(p->data_type),
              crdi_clip(m->items[p->pos].name).text, m->items[p->pos].line,
              crd_dcp_data_type_name(m->items[p->pos].type));
    }
}

static size_t network_bit(uint8_t type, uint16_t id)
{
    const size_t kind = type == CRD_DCP_CFG_TARGET_NETWORK   ? 0
                        : type == CRD_DCP_CFG_SOURCE_NETWORK ? 1
                                                             : 2;
    return kind << 16 | id;
}

static void look_for_networks(reader* r, const crd_dcp_can_config* c)
{
    memset(r->networks, 0, 3 * 65536 / 8);
    for (int i = 0; i < c->setting_count; i++) {
        const crd_dcp_pdu* p = &c->settings[i];
        if (p->type == CRD_DCP_CFG_TARGET_NETWORK || p->type == CRD_DCP_CFG_SOURCE_NETWORK ||
            p->type == CRD_DCP_CFG_PARAM_NETWORK) {
            const size_t bit = network_bit(p->type, p->id);
            r->networks[bit / 8] |= (uint8_t)(1 << bit % 8);
        }
    }
}

static bool is_setting(uint8_t type)
{
    for (int i = 0; i < crdi_can_setting_count; i++) {
        if (crdi_can_settings[i].type == type) { return true; }
    }
    return false;
}

static void check_setting(reader* r, const crd_dcp_can_config* c, int index)
{
    const crd_dcp_pdu* p = &c->settings[index];
    const int line = c->lines ? c->lines[index] : 0;
    const crd_dcp_can_message* m = NULL;
    uint8_t network = 0;
    switch (p->type) {
    case CRD_DCP_CFG_OUTPUT:
        m = find_message(r, CRD_DCP_DAT_INPUT_OUTPUT, c->id, p->id);
        network = CRD_DCP_CFG_TARGET_NETWORK;
        break;
    case CRD_DCP_CFG_INPUT:
        m = find_incoming(r, CRD_DCP_DAT_INPUT_OUTPUT, p->id, c->id);
        network = CRD_DCP_CFG_SOURCE_NETWORK;
        break;
    case CRD_DCP_CFG_TUNABLE_PARAMETER:
        m = find_incoming(r, CRD_DCP_DAT_PARAMETER, p->id, c->id);
        network = CRD_DCP_CFG_PARAM_NETWORK;
        break;
    default:
        if (!is_setting(p->type)) {
            found(r, "C04", line, "PDU 0x%02x of slave %d is no setting of CAN", p->type, c->id);
        }
        return;
    }
    check_place(r, c, p, line, m);
    const size_t bit = network_bit(network, p->id);
    if (p->pos == 0 && !(r->networks[bit / 8] >> bit % 8 & 1)) {
        found(r, "C14", line, "slave %d is not told on which network %s %d is; it will be CAN",
              c->id, network == CRD_DCP_CFG_PARAM_NETWORK ? "param_id" : "data_id", p->id);
    }
}

static void check_slave(reader* r, const crd_dcp_can_config* c)
{
    for (int i = CRDI_CAN_REQUESTS; r->control && i < crdi_can_kind_count; i++) {
        const crdi_can_kind* k = &crdi_can_kinds[i];
        if (!crdi_can_is_data(k->type) && !find_message(r, k->type, c->id, 0)) {
            found(r, "C08", c->line, "slave %d has no <%s> in the KMatrix and cannot say it", c->id,
                  k->element);
        }
    }
    look_for_networks(r, c);
    for (int i = 0; i < c->setting_count; i++) {
        check_setting(r, c, i);
    }
}

static crd_status check(reader* r)
{
    const crd_dcp_can_description* d = r->d;
    const crd_status st = check_unique(r);
    r->networks = take(r, 3 * 65536 / 8, 1);
    if (st < 0 || !r->networks) { return CRD_E_MEMORY; }
    for (int i = 0; i < d->message_count; i++) {
        r->control = r->control || !crdi_can_is_data(d->messages[i].type);
    }
    for (int i = 0; i < d->slave_count; i++) {
        const crd_dcp_can_config* c = &d->slaves[i];
        if (c->id != 0 && !r->ids[c->id]) {
            r->ids[c->id] = true;
            check_slave(r, c);
            continue;
        }
        found(r, "C10", c->line, "<DcpSlave> has dcpId = %d, %s", c->id,
              c->id == 0 ? "which is the master, expected 1 to 255"
                         : "which another one has already");
    }
    for (int i = 0; i < d->message_count; i++) {
        check_message(r, &d->messages[i]);
    }
    for (int i = 0; r->control && i < CRDI_CAN_REQUESTS; i++) {
        if (!find_message(r, crdi_can_kinds[i].type, 0, 0)) {
            found(r, "C03", 0, "<KMatrix> has no <%s>, expected all requests or none",
                  crdi_can_kinds[i].element);
        }
    }
    return r->failed ? CRD_E_MEMORY : CRD_OK;
}

// ---- all of it ---------------------------------------------------------------------------------

crd_status crd_dcp_can_description_create(crd_context* ctx, crd_dcp_can_description** out)
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

crd_status crd_dcp_can_validate(crd_dcp_can_description* d, const crd_dcp_finding** findings,
                                int* count)
{
    crd_status st = CRD_OK;
    reader r = {.ctx = d->ctx, .d = d};
    CRD_TRY(check(&r));
    CRD_TRY(finish(&r, findings, count));
fail:
    crd_free(d->ctx, r.items);
    return st;
}

crd_status crd_dcp_can_parse(crd_context* ctx, const char* text, size_t length, const char* file,
                             crd_dcp_can_description** out, const crd_dcp_finding** findings,
                             int* count)
{
    crd_status st = CRD_OK;
    crdi_xml* xml = NULL;
    reader r = {.ctx = ctx};
    CRD_TRY(crd_dcp_can_description_create(ctx, &r.d));
    r.d->file = crdi_arena_text(&r.d->arena, file, strlen(file));
    if (!r.d->file) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crdi_xml_parse(ctx, text, length, file, &xml));
    CRD_TRY(read_root(&r, xml));
    CRD_TRY(check(&r));
    CRD_TRY(finish(&r, findings, count));
    *out = r.d;
    r.d = NULL;
fail:
    crd_free(ctx, r.items);
    crdi_xml_destroy(xml);
    crd_dcp_can_description_destroy(r.d);
    return st;
}

crd_status crd_dcp_can_load(crd_context* ctx, const char* path, crd_dcp_can_description** out,
                            const crd_dcp_finding** findings, int* count)
{
    struct stat info = {0};
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) { // opening a pipe would wait
        return crdi_fail(ctx, CRD_E_IO, "%s: not a file", path);
    }
    FILE* file = fopen(path, "rbe");
    if (!file) {
        const int why = errno;
        return crdi_fail(ctx, why == ENOENT || why == ENOTDIR ? CRD_E_NOT_FOUND : CRD_E_IO,
                         "%s: cannot be opened: %s", path, strerror(why));
    }
    crd_status st = CRD_OK;
    char* text = NULL;
    if (info.st_size > CRDI_DCP_MAX_BYTES) {
        CRD_TRY(crdi_fail(ctx, CRD_E_FORMAT, "%s: %lld bytes, expected at most %d", path,
                          (long long)info.st_size, CRDI_DCP_MAX_BYTES));
    }
    text = crdi_new(ctx, (size_t)info.st_size + 1);
    if (!text) { CRD_TRY(CRD_E_MEMORY); }
    const size_t length = fread(text, 1, (size_t)info.st_size, file);
    if (ferror(file)) {
        CRD_TRY(crdi_fail(ctx, CRD_E_IO, "%s: cannot be read: %s", path, strerror(errno)));
    }
    CRD_TRY(crd_dcp_can_parse(ctx, text, length, path, out, findings, count));
fail:
    crd_free(ctx, text);
    fclose(file);
    return st;
}

crd_status crd_dcp_can_add_control(crd_dcp_can_description* d, uint16_t first)
{
    const int fresh = CRDI_CAN_REQUESTS + 5 * d->slave_count;
    const int n = d->message_count + fresh;
    if (first + fresh - 1 > UINT16_MAX) {
        return crdi_fail(d->ctx, CRD_E_RANGE,
                         "CAN: control needs %d identifiers from %d on, the last one is 65535",
                         fresh, first);
    }
    crd_dcp_can_message* all = crdi_arena_new(&d->arena, (size_t)n, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    if (d->message_count) { memcpy(all, d->messages, (size_t)d->message_count * sizeof *all); }
    crd_dcp_can_message* m = all + d->message_count;
    for (int i = 0; i < crdi_can_kind_count; i++) {
        const crdi_can_kind* k = &crdi_can_kinds[i];
        if (crdi_can_is_data(k->type)) { continue; }
        const int senders = i < CRDI_CAN_REQUESTS ? 1 : d->slave_count;
        for (int s = 0; s < senders; s++) {
            *m++ = (crd_dcp_can_message){.can_id = first++,
                                         .type = k->type,
                                         .sender = i < CRDI_CAN_REQUESTS ? 0 : d->slaves[s].id,
                                         .length = (uint8_t)k->length};
        }
    }
    d->messages = all;
    d->message_count = n;
    return CRD_OK;
}
