// What travels under which data_id where a file says so: slaves on a CAN bus, which have their
// configuration from the same file and are sent none.
#include "dcp/master/master.h"
#include "dcp/can/can.h"

#include <string.h>

// The variable of a slave that has this place in a message; -1.
static int variable_at(const crdi_dcp_peer* p, const crdi_dcp_can_config* c, uint8_t setting,
                       uint16_t id, int pos)
{
    for (int i = 0; i < c->setting_count; i++) {
        const crdi_dcp_pdu* s = &c->settings[i];
        if (s->type == setting && s->id == id && s->pos == pos) {
            return crd_dcp_find_vr(p->d, s->vr);
        }
    }
    return -1;
}

static uint32_t steps_of(const crdi_dcp_can_config* c, uint16_t id)
{
    for (int i = 0; i < c->setting_count; i++) {
        if (c->settings[i].type == CRDI_DCP_CFG_STEPS && c->settings[i].id == id) {
            return c->settings[i].steps;
        }
    }
    return 1;
}

static bool receives(const crdi_dcp_can_message* m, uint8_t id)
{
    return m->receiver_count > 0 && memchr(m->receivers, id, (size_t)m->receiver_count);
}

static crd_status pack_message(crd_dcp_master* m, crdi_dcp_peer* p, const char* file,
                               const crdi_dcp_can_config* c, const crdi_dcp_can_message* message,
                               crdi_dcp_kind kind)
{
    const uint8_t setting = kind == CRDI_WATCH  ? CRDI_DCP_CFG_OUTPUT
                            : kind == CRDI_FEED ? CRDI_DCP_CFG_INPUT
                                                : CRDI_DCP_CFG_TUNABLE_PARAMETER;
    if (kind != CRDI_WATCH && message->receiver_count > 1) {
        return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                         "%s: %s:%d: the message goes from the master to %d slaves, expected one "
                         "for each",
                         p->spec.name, file, message->line, message->receiver_count);
    }
    crdi_dcp_bundle* b =
        crdi_dcp_bundle_new(m, kind, p->index, message->item_count, steps_of(c, message->id));
    if (!b) { return CRD_E_MEMORY; }
    b->id = message->id;
    for (int i = 0; i < message->item_count; i++) {
        const int v = variable_at(p, c, setting, message->id, i);
        const uint8_t type = message->items[i].type;
        if (v < 0) {
            return crdi_fail(m->ctx, CRD_E_RANGE,
                             "%s: %s:%d: no %s of slave %d says what '%s' is, or it is not in the "
                             "slave's description",
                             p->spec.name, file, message->items[i].line,
                             crdi_dcp_type_name(setting), c->id, message->items[i].name);
        }
        if (p->values[v].slot.count != 1 || p->d->variables[v].type != type) {
            return crdi_fail(
                m->ctx, CRD_E_RANGE, "%s: %s:%d: '%s' is %s there, but %s is %s, expected the same",
                p->spec.name, file, message->items[i].line, message->items[i].name,
                crd_dcp_data_type_name(type), p->d->variables[v].name,
                p->values[v].slot.count != 1 ? "an array"
                                             : crd_dcp_data_type_name(p->d->variables[v].type));
        }
        b->variables[b->count++] = v;
    }
    for (int i = 0; kind == CRDI_TUNE && i < m->wish_count; i++) {
        const crdi_dcp_wish* w = &m->wishes[i];
        for (int k = 0; w->kind == kind && w->slave == p->index && k < w->count; k++) {
            if (w->variables[k] == b->variables[0]) { b->group = w->group; }
        }
    }
    return CRD_OK;
}

// What shall travel is in some message.
static crd_status check_wish(crd_dcp_master* m, const crdi_dcp_peer* p, const char* file,
                             const crdi_dcp_wish* w)
{
    static const char* const words[] = {[CRDI_FEED] = "an input from the master",
                                        [CRDI_WATCH] = "an output to the master",
                                        [CRDI_TUNE] = "a parameter from the master"};
    for (int i = 0; w->slave == p->index && i < w->count; i++) {
        if (crdi_dcp_bundled(m, w->kind, p->index, w->variables[i], NULL)) { continue; }
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s: %s is in no message of %s as %s; 'cardan dcp matrix' writes a file "
                         "with all of them",
                         p->spec.name, p->d->variables[w->variables[i]].name, file, words[w->kind]);
    }
    return CRD_OK;
}

static bool is_there(const crdi_dcp_can_config* c, const crdi_dcp_peer* p, int variable)
{
    const crd_dcp_slot* slot = &p->values[variable].slot;
    for (int i = 0; i < c->setting_count; i++) {
        const crdi_dcp_pdu* s = &c->settings[i];
        uint8_t value[64];
        if (s->type != CRDI_DCP_CFG_PARAMETER || s->vr != p->d->variables[variable].vr ||
            s->payload_length > sizeof value) {
            continue;
        }
        return s->data_type == slot->type &&
               crdi_dcp_put(slot, 1, value, sizeof value) == s->payload_length &&
               memcmp(value, s->payload, s->payload_length) == 0;
    }
    return false;
}

// The slave has its parameters and its resolution from the file: they must be those of the session.
static crd_status check_session(crd_dcp_master* m, const crdi_dcp_peer* p, const char* file,
                                const crdi_dcp_can_config* c)
{
    for (int i = 0; i < p->d->variable_count; i++) {
        if (!p->is_set[i] || is_there(c, p, i)) { continue; }
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s: the parameter %s is set here, but not to the same in %s: on CAN a "
                         "slave has its parameters from there (<CFG_parameter>)",
                         p->spec.name, p->d->variables[i].name, file);
    }
    for (int i = 0; i < c->setting_count; i++) {
        const crdi_dcp_pdu* s = &c->settings[i];
        if (s->type != CRDI_DCP_CFG_TIME_RES || (uint64_t)s->numerator * p->spec.denominator ==
                                                    (uint64_t)s->denominator * p->spec.numerator) {
            continue;
        }
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s: %s:%d: the time resolution is %u/%u s there and %u/%u s here, "
                         "expected the same (session.resolution, or 'cardan dcp matrix "
                         "--resolution')",
                         p->spec.name, file, c->lines ? c->lines[i] : 0, s->numerator,
                         s->denominator, p->spec.numerator, p->spec.denominator);
    }
    return CRD_OK;
}

crd_status crdi_can_lay_out(const crd_dcp_can_description* d, crd_dcp_master* m, int peer)
{
    crd_status st = CRD_OK;
    const char* file = d->file;
    crdi_dcp_peer* p = &m->peers[peer];
    const crdi_dcp_can_config* c = crdi_can_config_of(d, p->d->uuid, p->own_id);
    if (!c) {
        return crdi_fail(m->ctx, CRD_E_NOT_FOUND,
                         "%s: %s has no <DcpSlave> with its uuid and dcpId %d", p->spec.name, file,
                         p->own_id);
    }
    for (int i = 0; i < d->message_count; i++) {
        const crdi_dcp_can_message* message = &d->messages[i];
        const bool data = message->type == CRDI_DCP_DAT_INPUT_OUTPUT;
        if (data && message->sender == c->id && receives(message, 0)) {
            CRD_TRY(pack_message(m, p, file, c, message, CRDI_WATCH));
        }
        if (crdi_dcp_is_data(message->type) && message->sender == 0 && receives(message, c->id)) {
            CRD_TRY(pack_message(m, p, file, c, message, data ? CRDI_FEED : CRDI_TUNE));
        }
    }
    for (int i = 0; i < m->wish_count; i++) {
        CRD_TRY(check_wish(m, p, file, &m->wishes[i]));
    }
    CRD_TRY(check_session(m, p, file, c));
fail:
    return st;
}
