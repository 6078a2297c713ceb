// The rules for descriptions of DCP over CAN: the list of them all, and the check of those that a
// description shows.
#include "dcp/can/can.h"

#include <stdlib.h>
#include <string.h>

static const crdi_dcp_rule rules[] = {
    {"C01", CRD_DCP_NOTE, "Elements are those of the schema; others are ignored."},
    {"C02", CRD_DCP_NOTE, "Attributes are those of the schema; others are ignored."},
    {"C03", CRD_DCP_FAULT, "What is mandatory is there."},
    {"C04", CRD_DCP_FAULT, "Values are of their type and in its range."},
    {"C05", CRD_DCP_FAULT, "An attribute that has one value has no other."},
    {"C06", CRD_DCP_FAULT, "Identifiers differ."},
    {"C07", CRD_DCP_FAULT, "Messages of a sender differ in type or id."},
    {"C08", CRD_DCP_WARNING, "A slave has all its messages."},
    {"C09", CRD_DCP_FAULT, "Items do not overlap and lie within the frame."},
    {"C10", CRD_DCP_FAULT, "dcp ids are 1 to 255, each once."},
    {"C11", CRD_DCP_WARNING, "Senders and receivers are slaves of the scenario."},
    {"C12", CRD_DCP_WARNING, "Settings fit the messages."},
    {"C13", CRD_DCP_NOTE, "Identifiers are those of standard frames."},
    {"C14", CRD_DCP_WARNING, "A slave is told the network of its data."},
};
const crdi_dcp_rules crdi_can_rules = {
    .of = rules, .count = sizeof rules / sizeof *rules, .same = UINT32_MAX, .most = 500};

typedef struct checker {
    crd_dcp_can_description* d;
    crdi_dcp_findings* f;
    const crdi_dcp_can_message** sorted; // by meaning
    bool ids[256];                       // of slaves
    bool control;                        // there are messages of it
    uint8_t* networks;                   // (3 * 65536) bits of the settings 0x25, 0x26, 0x29
} checker;

static const char* element_of(uint8_t type)
{
    for (int i = 0; i < crdi_can_kind_count; i++) {
        if (crdi_can_kinds[i].type == type) { return crdi_can_kinds[i].element; }
    }
    return "?"; // no message of CAN
}

static int by_line(const crdi_dcp_can_message* x, const crdi_dcp_can_message* y)
{
    return (x->line > y->line) - (x->line < y->line);
}

static int by_can_id(const void* a, const void* b)
{
    const crdi_dcp_can_message *x = *(const crdi_dcp_can_message*const*)a,
                               *y = *(const crdi_dcp_can_message*const*)b;
    const int order = crdi_can_compare_id(x, y);
    return order ? order : by_line(x, y);
}

static int by_meaning(const void* a, const void* b)
{
    const crdi_dcp_can_message *x = *(const crdi_dcp_can_message*const*)a,
                               *y = *(const crdi_dcp_can_message*const*)b;
    const int order = crdi_can_compare_meaning(x, y);
    return order ? order : by_line(x, y);
}

static crd_status check_unique(checker* r)
{
    const crd_dcp_can_description* d = r->d;
    const int n = d->message_count;
    const crdi_dcp_can_message** all = crdi_arena_new(&r->d->arena, (size_t)n, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    for (int i = 0; i < n; i++) {
        all[i] = &d->messages[i];
    }
    if (n) { qsort(all, (size_t)n, sizeof *all, by_can_id); }
    for (int i = 1; i < n; i++) {
        if (all[i]->can_id == all[i - 1]->can_id) {
            crdi_dcp_found(r->f, "C06", all[i]->line,
                           "<%s> has canId = %d, which <%s> in line %d has already",
                           element_of(all[i]->type), all[i]->can_id, element_of(all[i - 1]->type),
                           all[i - 1]->line);
        }
    }
    if (n) { qsort(all, (size_t)n, sizeof *all, by_meaning); }
    for (int i = 1; i < n; i++) {
        if (crdi_can_compare_meaning(all[i], all[i - 1]) == 0) {
            crdi_dcp_found(r->f, "C07", all[i]->line,
                           "<%s> of sender %d is there already in line %d",
                           element_of(all[i]->type), all[i]->sender, all[i - 1]->line);
        }
    }
    r->sorted = all;
    return CRD_OK;
}

// The place of the first message of this meaning or behind it.
static int lower_bound(const checker* r, uint8_t type, uint8_t sender, uint16_t id)
{
    const crdi_dcp_can_message key = {.type = type, .sender = sender, .id = id, .line = INT32_MIN};
    const crdi_dcp_can_message* k = &key;
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

static const crdi_dcp_can_message* find_message(const checker* r, uint8_t type, uint8_t sender,
                                                uint16_t id)
{
    const int i = lower_bound(r, type, sender, id);
    if (i == r->d->message_count) { return NULL; }
    const crdi_dcp_can_message* m = r->sorted[i];
    return m->type == type && m->sender == sender && m->id == id ? m : NULL;
}

static bool receives(const crdi_dcp_can_message* m, uint8_t id)
{
    return m->receiver_count > 0 && memchr(m->receivers, id, (size_t)m->receiver_count);
}

// The message that carries a data_id to a slave; if there is none, one that has this data_id.
static const crdi_dcp_can_message* find_incoming(const checker* r, uint8_t type, uint16_t id,
                                                 uint8_t receiver)
{
    const int first = lower_bound(r, type, 0, id);
    const crdi_dcp_can_message* any = NULL;
    for (int i = first; i < r->d->message_count && i < first + 256; i++) {
        const crdi_dcp_can_message* m = r->sorted[i];
        if (m->type != type || m->id != id) { break; }
        if (receives(m, receiver)) { return m; }
        any = m;
    }
    return any;
}

static void check_items(checker* r, const crdi_dcp_can_message* m)
{
    unsigned used = 0;
    if (m->item_count == 0) {
        crdi_dcp_found(r->f, "C03", m->line, "<%s> has no <Payload>", element_of(m->type));
    }
    if (m->item_count > CRDI_CAN_ITEMS) {
        crdi_dcp_found(r->f, "C09", m->line, "<%s> has more than 8 items", element_of(m->type));
    }
    for (int i = 0; i < m->item_count && i < CRDI_CAN_ITEMS; i++) {
        const crdi_dcp_can_item* t = &m->items[i];
        const size_t size = crdi_dcp_size_of((crd_dcp_data_type)t->type);
        if (t->type >= CRD_DCP_DATA_TYPE_COUNT || (size && t->length != size)) {
            crdi_dcp_found(r->f, "C04", t->line, "'%s' has data type %d and %d bytes",
                           crdi_clip(t->name).text, t->type, t->length);
            continue;
        }
        const unsigned mine =
            t->length > CRDI_DCP_CAN_ROOM ? 0 : ((1U << t->length) - 1) << (t->offset & 7);
        if (t->length == 0 || t->offset + t->length > m->length) {
            crdi_dcp_found(r->f, "C09", t->line,
                           "'%s' stands at bytes %d to %d, expected within the %d of the "
                           "message",
                           crdi_clip(t->name).text, t->offset, t->offset + t->length - 1,
                           m->length);
        } else if (used & mine) {
            crdi_dcp_found(r->f, "C09", t->line,
                           "'%s' stands at bytes %d to %d, where there is another item",
                           crdi_clip(t->name).text, t->offset, t->offset + t->length - 1);
        }
        used |= mine;
    }
}

static void check_message(checker* r, const crdi_dcp_can_message* m)
{
    const char* element = element_of(m->type);
    if (element[0] == '?') {
        crdi_dcp_found(r->f, "C04", m->line, "type 0x%02x is no message of CAN", m->type);
        return;
    }
    if (m->length > CRDI_DCP_CAN_ROOM) {
        crdi_dcp_found(r->f, "C04", m->line, "<%s> has length = %d, expected at most 8", element,
                       m->length);
    }
    if (m->sender != 0 && !r->ids[m->sender]) {
        crdi_dcp_found(r->f, "C11", m->line,
                       "<%s> is sent by %d, which is no slave of the scenario", element, m->sender);
    }
    if (m->can_id > CRDI_CAN_STANDARD) {
        crdi_dcp_found(r->f, "C13", m->line,
                       "<%s> has canId = %d, beyond 2047: these are extended frames here", element,
                       m->can_id);
    }
    if (!crdi_dcp_is_data(m->type)) { return; }
    if (m->length <= CRDI_DCP_CAN_ROOM) { check_items(r, m); }
    for (int i = 0; i < m->receiver_count; i++) {
        if (m->receivers[i] != 0 && !r->ids[m->receivers[i]]) {
            crdi_dcp_found(r->f, "C11", m->line,
                           "<%s> is received by %d, which is no slave of the scenario", element,
                           m->receivers[i]);
        }
    }
    if (m->receiver_count == 0) {
        crdi_dcp_found(r->f, "C03", m->line, "<%s> has no <Receiver>", element);
    }
}

static void rules_check_place(checker* r, const crdi_dcp_can_config* c, const crdi_dcp_pdu* p,
                              int line, const crdi_dcp_can_message* m)
{
    const bool out = p->type == CRDI_DCP_CFG_OUTPUT;
    const char* what = p->type == CRDI_DCP_CFG_TUNABLE_PARAMETER ? "param_id" : "data_id";
    if (!m) {
        crdi_dcp_found(r->f, "C12", line, "%s %d of slave %d has no message in the KMatrix", what,
                       p->id, c->id);
        return;
    }
    if (!out && !receives(m, c->id)) {
        crdi_dcp_found(r->f, "C12", line,
                       "slave %d receives %s %d, but is no <Receiver> of its message in line "
                       "%d",
                       c->id, what, p->id, m->line);
    }
    if (p->pos >= m->item_count) {
        crdi_dcp_found(r->f, "C12", line,
                       "%s %d of slave %d has pos = %d, but its message in line %d has %d "
                       "item%s",
                       what, p->id, c->id, p->pos, m->line, m->item_count,
                       m->item_count == 1 ? "" : "s");
    } else if (!out && m->items[p->pos].type != p->data_type) {
        crdi_dcp_found(r->f, "C12", line,
                       "%s %d of slave %d is read as %s, but '%s' in line %d is %s", what, p->id,
                       c->id, crd_dcp_data_type_name(p->data_type),
                       crdi_clip(m->items[p->pos].name).text, m->items[p->pos].line,
                       crd_dcp_data_type_name(m->items[p->pos].type));
    }
}

static size_t network_bit(uint8_t type, uint16_t id)
{
    const size_t kind = type == CRDI_DCP_CFG_TARGET_NETWORK   ? 0
                        : type == CRDI_DCP_CFG_SOURCE_NETWORK ? 1
                                                              : 2;
    return kind << 16 | id;
}

static void look_for_networks(checker* r, const crdi_dcp_can_config* c)
{
    memset(r->networks, 0, 3 * 65536 / 8);
    for (int i = 0; i < c->setting_count; i++) {
        const crdi_dcp_pdu* p = &c->settings[i];
        if (crdi_dcp_is_network(p->type)) {
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

static void check_setting(checker* r, const crdi_dcp_can_config* c, int index)
{
    const crdi_dcp_pdu* p = &c->settings[index];
    const int line = c->lines ? c->lines[index] : 0;
    const crdi_dcp_can_message* m = NULL;
    uint8_t network = 0;
    switch (p->type) {
    case CRDI_DCP_CFG_OUTPUT:
        m = find_message(r, CRDI_DCP_DAT_INPUT_OUTPUT, c->id, p->id);
        network = CRDI_DCP_CFG_TARGET_NETWORK;
        break;
    case CRDI_DCP_CFG_INPUT:
        m = find_incoming(r, CRDI_DCP_DAT_INPUT_OUTPUT, p->id, c->id);
        network = CRDI_DCP_CFG_SOURCE_NETWORK;
        break;
    case CRDI_DCP_CFG_TUNABLE_PARAMETER:
        m = find_incoming(r, CRDI_DCP_DAT_PARAMETER, p->id, c->id);
        network = CRDI_DCP_CFG_PARAM_NETWORK;
        break;
    default:
        if (!is_setting(p->type)) {
            crdi_dcp_found(r->f, "C04", line, "PDU 0x%02x of slave %d is no setting of CAN",
                           p->type, c->id);
        }
        return;
    }
    rules_check_place(r, c, p, line, m);
    const size_t bit = network_bit(network, p->id);
    if (p->pos == 0 && !(r->networks[bit / 8] >> bit % 8 & 1)) {
        crdi_dcp_found(r->f, "C14", line,
                       "slave %d is not told on which network %s %d is; it will be CAN", c->id,
                       network == CRDI_DCP_CFG_PARAM_NETWORK ? "param_id" : "data_id", p->id);
    }
}

static void check_slave(checker* r, const crdi_dcp_can_config* c)
{
    for (int i = CRDI_CAN_REQUESTS; r->control && i < crdi_can_kind_count; i++) {
        const crdi_can_kind* k = &crdi_can_kinds[i];
        if (!crdi_dcp_is_data(k->type) && !find_message(r, k->type, c->id, 0)) {
            crdi_dcp_found(r->f, "C08", c->line,
                           "slave %d has no <%s> in the KMatrix and cannot say it", c->id,
                           k->element);
        }
    }
    look_for_networks(r, c);
    for (int i = 0; i < c->setting_count; i++) {
        check_setting(r, c, i);
    }
}

static crd_status check_all(checker* r)
{
    const crd_dcp_can_description* d = r->d;
    const crd_status st = check_unique(r);
    r->networks = crdi_arena_new(&r->d->arena, 3 * 65536 / 8, 1);
    if (st < 0 || !r->networks) { return CRD_E_MEMORY; }
    for (int i = 0; i < d->message_count; i++) {
        r->control = r->control || !crdi_dcp_is_data(d->messages[i].type);
    }
    for (int i = 0; i < d->slave_count; i++) {
        const crdi_dcp_can_config* c = &d->slaves[i];
        if (c->id != 0 && !r->ids[c->id]) {
            r->ids[c->id] = true;
            check_slave(r, c);
            continue;
        }
        crdi_dcp_found(r->f, "C10", c->line, "<DcpSlave> has dcpId = %d, %s", c->id,
                       c->id == 0 ? "which is the master, expected 1 to 255"
                                  : "which another one has already");
    }
    for (int i = 0; i < d->message_count; i++) {
        check_message(r, &d->messages[i]);
    }
    for (int i = 0; r->control && i < CRDI_CAN_REQUESTS; i++) {
        if (!find_message(r, crdi_can_kinds[i].type, 0, 0)) {
            crdi_dcp_found(r->f, "C03", 0, "<KMatrix> has no <%s>, expected all requests or none",
                           crdi_can_kinds[i].element);
        }
    }
    return r->f->failed ? CRD_E_MEMORY : CRD_OK;
}

crd_status crdi_can_check(crd_dcp_can_description* d, crdi_dcp_findings* f)
{
    checker r = {.d = d, .f = f};
    return check_all(&r);
}
