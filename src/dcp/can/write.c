// A description of DCP over CAN becomes a document, in the order of the schema.
#include "dcp/can/can.h"

#include <math.h>
#include <string.h>

static void can_write_put_limit(crd_text* t, const char* name, uint8_t type, double x)
{
    char number[32];
    if (isnan(x)) { return; }
    crdi_format_double(number, x);
    if (type < CRD_DCP_FLOAT32 && fabs(x) < 1e18) { // whole, without exponent
        crdi_text_add(t, " %s=\"%lld\"", name, (long long)x);
    } else {
        crdi_text_add(t, " %s=\"%s\"", name, number);
    }
}

static void put_message(crd_text* t, const crdi_can_kind* k, const crdi_dcp_can_message* m)
{
    const bool slave = k->type >= CRDI_DCP_RSP_ACK && k->type != CRDI_DCP_DAT_PARAMETER;
    crdi_text_add(t, "    <%s canId=\"%d\"", k->element, m->can_id);
    if (slave) { crdi_text_add(t, " senderRef=\"%d\"", m->sender); }
    if (!crdi_dcp_is_data(k->type)) {
        crdi_text_add(t, "/>\n");
        return;
    }
    crdi_text_add(t, " %s=\"%d\" length=\"%d\">\n",
                  k->type == CRDI_DCP_DAT_PARAMETER ? "paramId" : "dataId", m->id, m->length);
    for (int i = 0; i < m->item_count; i++) {
        const crdi_dcp_can_item* p = &m->items[i];
        const bool text = crdi_dcp_is_bytes(p->type);
        crdi_text_add(t, "      <Payload");
        crdi_dcp_put_text(t, "name", p->name);
        crdi_text_add(t, " offset=\"%d\"", p->offset);
        if (*p->unit) { crdi_dcp_put_text(t, "unit", p->unit); }
        crdi_text_add(t, "><%s", crdi_dcp_type_elements[p->type]);
        if (text) { crdi_text_add(t, " length=\"%d\"", p->length); }
        can_write_put_limit(t, "min", p->type, p->min);
        can_write_put_limit(t, "max", p->type, p->max);
        crdi_text_add(t, "/></Payload>\n");
    }
    for (int i = 0; i < m->receiver_count; i++) {
        crdi_text_add(t, "      <Receiver dcpId=\"%d\"/>\n", m->receivers[i]);
    }
    crdi_text_add(t, "    </%s>\n", k->element);
}

static void put_uuid(crd_text* t, const char* name, const uint8_t uuid[16])
{
    char text[37];
    crdi_dcp_uuid_print(uuid, text);
    crdi_text_add(t, " %s=\"%s\"", name, text);
}

static void put_network(crd_text* t, const crdi_dcp_pdu* p)
{
    const bool target = p->type == CRDI_DCP_CFG_TARGET_NETWORK;
    switch (p->transport) {
    case CRD_DCP_UDP:
    case CRD_DCP_TCP:
        crdi_text_add(t, "<%s port=\"%d\" ip_address=\"%u\"/>",
                      p->transport == CRD_DCP_UDP ? "UDP_IPv4" : "TCP_IPv4", p->port, p->address);
        break;
    case CRD_DCP_BLUETOOTH:
        crdi_text_add(t, "<Bluetooth");
        if (target) { crdi_text_add(t, " address=\"%llu\"", (unsigned long long)p->bd_addr); }
        crdi_text_add(t, " port=\"%d\"/>", p->port);
        break;
    case CRD_DCP_USB:
        crdi_text_add(t, "<USB endpoint_address=\"%d\"", p->endpoint);
        if (target) { put_uuid(t, "slave_uuid", p->uuid); }
        crdi_text_add(t, "/>");
        break;
    default:
        crdi_text_add(t, "<CAN/>");
        break;
    }
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

static crd_status can_write_put_value(crd_context* ctx, crd_text* t, const crdi_dcp_pdu* p)
{
    const size_t size = crdi_dcp_size_of((crd_dcp_data_type)p->data_type);
    const size_t head = size ? 0 : 4;
    if (p->data_type >= CRD_DCP_DATA_TYPE_COUNT || !p->payload || p->payload_length < head ||
        (size && (p->payload_length == 0 || p->payload_length % size))) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "CAN: CFG_parameter of value reference %llu has no value",
                         (unsigned long long)p->vr);
    }
    crdi_text_add(t, "<%s value=\"", crdi_dcp_type_elements[p->data_type]);
    for (size_t i = 0; size && i < p->payload_length; i += size) {
        if (i) { crdi_text_add(t, " "); }
        can_write_put_number(t, p->data_type, p->payload + i);
    }
    if (p->data_type == CRD_DCP_STRING) {
        char* text = crdi_new(ctx, p->payload_length - head + 1);
        if (!text) { return CRD_E_MEMORY; }
        memcpy(text, p->payload + head, p->payload_length - head);
        crdi_text_xml(t, text);
        crd_free(ctx, text);
    }
    for (size_t i = head; p->data_type == CRD_DCP_BINARY && i < p->payload_length; i++) {
        crdi_text_add(t, "%02X", p->payload[i]);
    }
    crdi_text_add(t, "\"/>");
    return CRD_OK;
}

static crd_status put_setting(crd_context* ctx, crd_text* t, const crdi_can_setting* s,
                              const crdi_dcp_pdu* p)
{
    crd_status st = CRD_OK;
    const char* element = crdi_dcp_type_name(s->type);
    crdi_text_add(t, "      <%s", element);
    for (int i = 0; i < CRDI_CAN_FIELDS && s->fields[i].name; i++) {
        crdi_text_add(
            t, " %s=\"%llu\"", s->fields[i].name,
            (unsigned long long)crdi_dcp_member_get(p, s->fields[i].offset, s->fields[i].size));
    }
    const bool network = crdi_dcp_is_network(s->type), value = s->type == CRDI_DCP_CFG_PARAMETER;
    if (!network && !value) {
        crdi_text_add(t, "/>\n");
        return st;
    }
    crdi_text_add(t, ">");
    if (network) { put_network(t, p); }
    if (value) { st = can_write_put_value(ctx, t, p); }
    crdi_text_add(t, "</%s>\n", element);
    return st;
}

static crd_status put_slave(crd_context* ctx, crd_text* t, const crdi_dcp_can_config* c)
{
    crd_status st = CRD_OK;
    crdi_text_add(t, "    <DcpSlave");
    if (*c->name) { crdi_dcp_put_text(t, "name", c->name); }
    put_uuid(t, "uuid", c->uuid);
    crdi_text_add(t, " dcpId=\"%d\">\n", c->id);
    for (int k = 0; k < crdi_can_setting_count; k++) {
        for (int i = 0; st == CRD_OK && i < c->setting_count; i++) {
            if (c->settings[i].type == crdi_can_settings[k].type) {
                st = put_setting(ctx, t, &crdi_can_settings[k], &c->settings[i]);
            }
        }
    }
    crdi_text_add(t, "    </DcpSlave>\n");
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
    crdi_text_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<DcpOverCan>\n  <KMatrix>\n");
    for (int k = 0; k < crdi_can_kind_count; k++) {
        for (int i = 0; i < d->message_count; i++) {
            if (d->messages[i].type == crdi_can_kinds[k].type) {
                put_message(out, &crdi_can_kinds[k], &d->messages[i]);
            }
        }
    }
    crdi_text_add(out, "  </KMatrix>\n  <ScenarioConfiguration>\n");
    for (int i = 0; i < d->slave_count; i++) {
        st = put_slave(d->ctx, out, &d->slaves[i]);
        if (st < 0) { return st; }
    }
    crdi_text_add(out, "  </ScenarioConfiguration>\n</DcpOverCan>\n");
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}
