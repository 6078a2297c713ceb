// A description of DCP over CAN becomes a document, in the order of the schema.
#include "dcp/can/can.h"

#include <math.h>
#include <string.h>

static void can_write_put_limit(crdi_xml_writer* w, const char* name, uint8_t type, double x)
{
    char number[32];
    if (isnan(x)) { return; }
    crdi_format_double(number, x);
    if (type < CRD_DCP_FLOAT32 && fabs(x) < 1e18) { // whole, without exponent
        crdi_xml_put_int(w, name, (int64_t)x);
    } else {
        crdi_xml_put(w, name, number);
    }
}

static void put_item(crdi_xml_writer* w, const crdi_dcp_can_item* p)
{
    crdi_xml_begin(w, "Payload");
    crdi_xml_inline(w);
    crdi_xml_put(w, "name", p->name);
    crdi_xml_put_int(w, "offset", p->offset);
    crdi_xml_put_if(w, "unit", p->unit);
    crdi_xml_begin(w, crdi_dcp_type_elements[p->type]);
    if (crdi_dcp_is_bytes(p->type)) { crdi_xml_put_int(w, "length", p->length); }
    can_write_put_limit(w, "min", p->type, p->min);
    can_write_put_limit(w, "max", p->type, p->max);
    crdi_xml_end(w);
    crdi_xml_end(w);
}

static void put_message(crdi_xml_writer* w, const crdi_can_kind* k, const crdi_dcp_can_message* m)
{
    const bool slave = k->type >= CRDI_DCP_RSP_ACK && k->type != CRDI_DCP_DAT_PARAMETER;
    const bool data = crdi_dcp_is_data(k->type);
    crdi_xml_begin(w, k->element);
    crdi_xml_put_int(w, "canId", m->can_id);
    if (slave) { crdi_xml_put_int(w, "senderRef", m->sender); }
    if (data) {
        crdi_xml_put_int(w, k->type == CRDI_DCP_DAT_PARAMETER ? "paramId" : "dataId", m->id);
        crdi_xml_put_int(w, "length", m->length);
    }
    for (int i = 0; data && i < m->item_count; i++) {
        put_item(w, &m->items[i]);
    }
    for (int i = 0; data && i < m->receiver_count; i++) {
        crdi_xml_begin(w, "Receiver");
        crdi_xml_put_int(w, "dcpId", m->receivers[i]);
        crdi_xml_end(w);
    }
    crdi_xml_end(w);
}

static void put_network(crdi_xml_writer* w, const crdi_dcp_pdu* p)
{
    const bool target = p->type == CRDI_DCP_CFG_TARGET_NETWORK;
    switch (p->transport) {
    case CRD_DCP_UDP:
    case CRD_DCP_TCP:
        crdi_xml_begin(w, p->transport == CRD_DCP_UDP ? "UDP_IPv4" : "TCP_IPv4");
        crdi_xml_put_int(w, "port", p->port);
        crdi_xml_put_int(w, "ip_address", p->address);
        break;
    case CRD_DCP_BLUETOOTH:
        crdi_xml_begin(w, "Bluetooth");
        if (target) { crdi_xml_put_whole(w, "address", p->bd_addr); }
        crdi_xml_put_int(w, "port", p->port);
        break;
    case CRD_DCP_USB:
        crdi_xml_begin(w, "USB");
        crdi_xml_put_int(w, "endpoint_address", p->endpoint);
        if (target) { crdi_dcp_put_uuid(w, "slave_uuid", p->uuid); }
        break;
    default:
        crdi_xml_begin(w, "CAN");
        break;
    }
    crdi_xml_end(w);
}

// Reads a number of the payload and writes it.
static void can_write_put_number(crd_text* t, uint8_t type, const uint8_t* bytes)
{
    char number[32];
    double real = 0;
    int64_t integer = 0;
    crdi_dcp_load_number(type, bytes, &real, &integer);
    if (crdi_dcp_is_real(type)) {
        crdi_format_double(number, real);
        crdi_text_add(t, "%s", number);
    } else if (type == CRD_DCP_UINT64) {
        crdi_text_add(t, "%llu", (unsigned long long)integer);
    } else {
        crdi_text_add(t, "%lld", (long long)integer);
    }
}

// The value of a parameter, as text; all bytes of it.
static void put_payload(crd_text* t, const crdi_dcp_pdu* p, size_t size, size_t head)
{
    for (size_t i = 0; size && i < p->payload_length; i += size) {
        if (i) { crdi_text_add(t, " "); }
        can_write_put_number(t, p->data_type, p->payload + i);
    }
    if (p->data_type == CRD_DCP_STRING) {
        crdi_text_put(t, (const char*)p->payload + head, p->payload_length - head);
    }
    for (size_t i = head; p->data_type == CRD_DCP_BINARY && i < p->payload_length; i++) {
        crdi_text_add(t, "%02X", p->payload[i]);
    }
}

static crd_status can_write_put_value(crd_context* ctx, crdi_xml_writer* w, const crdi_dcp_pdu* p)
{
    const size_t size = crdi_dcp_size_of((crd_dcp_data_type)p->data_type);
    const size_t head = size ? 0 : 4;
    if (p->data_type >= CRD_DCP_DATA_TYPE_COUNT || !p->payload || p->payload_length < head ||
        (size && (p->payload_length == 0 || p->payload_length % size))) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "CAN: CFG_parameter of value reference %llu has no value",
                         (unsigned long long)p->vr);
    }
    crd_text text;
    crd_text_init(&text, ctx);
    put_payload(&text, p, size, head);
    const crd_status st = text.failed ? CRD_E_MEMORY : CRD_OK;
    crdi_xml_begin(w, crdi_dcp_type_elements[p->data_type]);
    crdi_xml_put(w, "value", text.data);
    crdi_xml_end(w);
    crd_text_clear(&text);
    return st;
}

static crd_status put_setting(crd_context* ctx, crdi_xml_writer* w, const crdi_can_setting* s,
                              const crdi_dcp_pdu* p)
{
    crd_status st = CRD_OK;
    crdi_xml_begin(w, crdi_dcp_type_name(s->type));
    crdi_xml_inline(w);
    for (int i = 0; i < CRDI_CAN_FIELDS && s->fields[i].name; i++) {
        crdi_xml_put_whole(w, s->fields[i].name,
                           crdi_dcp_member_get(p, s->fields[i].offset, s->fields[i].size));
    }
    if (crdi_dcp_is_network(s->type)) { put_network(w, p); }
    if (s->type == CRDI_DCP_CFG_PARAMETER) { st = can_write_put_value(ctx, w, p); }
    crdi_xml_end(w);
    return st;
}

static crd_status put_slave(crd_context* ctx, crdi_xml_writer* w, const crdi_dcp_can_config* c)
{
    crd_status st = CRD_OK;
    crdi_xml_begin(w, "DcpSlave");
    crdi_xml_put_if(w, "name", c->name);
    crdi_dcp_put_uuid(w, "uuid", c->uuid);
    crdi_xml_put_int(w, "dcpId", c->id);
    for (int k = 0; k < crdi_can_setting_count; k++) {
        for (int i = 0; st == CRD_OK && i < c->setting_count; i++) {
            if (c->settings[i].type == crdi_can_settings[k].type) {
                st = put_setting(ctx, w, &crdi_can_settings[k], &c->settings[i]);
            }
        }
    }
    crdi_xml_end(w);
    return st;
}

crd_status crdi_dcp_can_write(crd_dcp_can_description* d, crd_text* out)
{
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    crd_status st = crdi_dcp_can_validate(d, &findings, &count);
    if (st < 0) { return st; }
    const crd_dcp_finding* fault = crdi_dcp_first_fault(findings, (size_t)count);
    if (fault) { return crdi_fail(d->ctx, CRD_E_RANGE, "CAN: %s", fault->text); }
    crdi_xml_writer w;
    crdi_xml_writer_init(&w, out);
    crdi_xml_begin(&w, "DcpOverCan");
    crdi_xml_begin(&w, "KMatrix");
    for (int k = 0; k < crdi_can_kind_count; k++) {
        for (int i = 0; i < d->message_count; i++) {
            if (d->messages[i].type == crdi_can_kinds[k].type) {
                put_message(&w, &crdi_can_kinds[k], &d->messages[i]);
            }
        }
    }
    crdi_xml_end(&w);
    crdi_xml_begin(&w, "ScenarioConfiguration");
    for (int i = 0; i < d->slave_count; i++) {
        st = put_slave(d->ctx, &w, &d->slaves[i]);
        if (st < 0) { return st; }
    }
    crdi_xml_end(&w);
    crdi_xml_end(&w);
    if (w.bad) {
        return crdi_fail(d->ctx, CRD_E_RANGE, "CAN: XML has no way to hold '%s'",
                         crdi_clip(w.bad).text);
    }
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}
