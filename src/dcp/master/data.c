// Values on their way: what the master sends, takes and relays.
#include "dcp/master/master.h"

enum { DATA_HEAD = 5 };

// ---- bundles -----------------------------------------------------------------------------------

crd_status crdi_dcp_bundle_prepare(crd_dcp_master* m, crdi_dcp_bundle* b)
{
    if (b->kind == CRDI_DIRECT) { return CRD_OK; }
    const crdi_dcp_peer* p = &m->peers[b->slave];
    const bool out = b->kind != CRDI_WATCH;
    b->slots = crdi_arena_new(&m->layout, (size_t)b->count, sizeof *b->slots);
    b->types = crdi_arena_new(&m->layout, (size_t)b->count, sizeof *b->types);
    if (!b->slots || !b->types) { return CRD_E_MEMORY; }
    b->room = DATA_HEAD;
    for (int i = 0; i < b->count; i++) {
        b->slots[i] = p->values[b->variables[i]].slot;
        b->types[i] = b->slots[i].type;
        const size_t element = crdi_dcp_size_of(b->types[i]);
        b->room += element ? element * b->slots[i].count : 4 + (size_t)b->slots[i].max_size;
    }
    b->slot_count = crdi_dcp_join(b->slots, out ? NULL : b->types, b->count);
    if (!out) { return CRD_OK; }
    b->pdu = crdi_arena_new(&m->layout, b->room, 1);
    if (!b->pdu) { return CRD_E_MEMORY; }
    const crdi_dcp_pdu head = {.type = b->kind == CRDI_TUNE ? CRDI_DCP_DAT_PARAMETER
                                                            : CRDI_DCP_DAT_INPUT_OUTPUT,
                               .id = b->id};
    (void)crdi_dcp_encode(&head, b->pdu, b->room);
    return CRD_OK;
}

void crdi_dcp_bundle_send(crd_dcp_master* m, crdi_dcp_bundle* b)
{
    crdi_dcp_peer* p = &m->peers[b->slave];
    const size_t length =
        DATA_HEAD + crdi_dcp_put(b->slots, b->slot_count, b->pdu + DATA_HEAD, b->room - DATA_HEAD);
    b->due = false;
    if (length > b->room) { return; } // byte_count beyond max_size: the caller's doing
    crdi_store_le(b->pdu + 1, 2, b->seq++);
    if (crdi_dcp_net_send(m->net, &b->address, b->pdu, length)) { p->status.data_out++; }
}

// ---- relays ------------------------------------------------------------------------------------

static void relay_values(crd_dcp_master* m, const crdi_dcp_bundle* b)
{
    for (int i = 0; i < b->relay_count; i++) {
        crdi_dcp_slot_copy(b->relays[i].to, b->relays[i].from);
        m->bundles[b->relays[i].bundle].due = true;
    }
    for (int i = 0; i < b->relay_count; i++) {
        crdi_dcp_bundle* to = &m->bundles[b->relays[i].bundle];
        // In NRT it goes with the inputs of the next step.
        if (to->due && m->peers[to->slave].spec.mode != CRD_DCP_NRT && m->progress == CRDI_RUNS) {
            crdi_dcp_bundle_send(m, to);
        }
    }
}

// ---- data that arrive --------------------------------------------------------------------------

// Datagrams of a slave come from where it answers; a connection for data has a port of its own.
static bool is_of(const crdi_dcp_peer* p, const crd_dcp_address* from)
{
    const crd_dcp_address* c = &p->spec.control;
    const bool datagrams = from->transport != CRD_DCP_TCP && c->transport != CRD_DCP_TCP;
    return from->ip == c->ip && (!datagrams || from->port == c->port);
}

// Its place is its id unless a file has given them.
static crdi_dcp_bundle* bundle_of(crd_dcp_master* m, uint16_t id, const crd_dcp_address* from)
{
    if (from->transport != CRD_DCP_CAN) {
        return id > 0 && id <= m->bundle_count ? &m->bundles[id - 1] : NULL;
    }
    for (int i = 0; i < m->bundle_count; i++) {
        crdi_dcp_bundle* b = &m->bundles[i];
        if (b->id == id && b->kind == CRDI_WATCH && is_of(&m->peers[b->slave], from)) { return b; }
    }
    return NULL;
}

void crdi_dcp_master_take(crd_dcp_master* m, const crd_dcp_address* from, const crdi_dcp_pdu* pdu,
                          double time)
{
    crdi_dcp_bundle* b = m->progress != CRDI_PLANNED ? bundle_of(m, pdu->id, from) : NULL;
    if (!b || b->kind != CRDI_WATCH || !is_of(&m->peers[b->slave], from)) {
        crdi_dcp_count_foreign(m, b ? m->peers[b->slave].id : 0);
        return;
    }
    crdi_dcp_peer* p = &m->peers[b->slave];
    crd_dcp_slave_status* status = &p->status;
    const int gap = crdi_dcp_sequence_gap(&b->arrived, pdu->seq);
    if (gap < 0) {
        const bool repeated = crdi_dcp_sequence_repeated(&b->arrived, pdu->seq);
        status->data_old++;
        *(repeated ? &status->data_duplicates : &status->data_reordered) += 1;
        return;
    }
    // Looked at before its number counts: a damaged one must not throw later ones away.
    if (crdi_dcp_take(b->slots, b->types, b->slot_count, pdu->payload, pdu->payload_length) !=
        CRD_DCP_NONE) {
        status->data_bad++;
        return;
    }
    crdi_dcp_sequence_take(&b->arrived, pdu->seq);
    if (gap > 0) {
        status->data_missed += gap;
        crdi_dcp_notify(m, p, CRD_DCP_NOTICE_LOSS, CRD_DCP_NONE,
                        "%d data PDUs of data_id %d are missing", gap, b->id);
    }
    status->data_in++;
    status->data_time = status->last_pdu = time;
    relay_values(m, b);
    if (p->aim) { crdi_dcp_drive(m, p); }
}

static bool bundle_fresh(const crdi_dcp_bundle* b)
{
    return b->arrived.begun && (!b->has_next || (uint16_t)(b->arrived.last - b->next) <= INT16_MAX);
}

bool crdi_dcp_fresh(const crd_dcp_master* m, const crdi_dcp_peer* p)
{
    for (int i = 0; i < p->watch_count; i++) {
        if (!bundle_fresh(&m->bundles[p->watches[i]])) { return false; }
    }
    return true;
}

// What of this turn did not come and may come later counts for none.
void crdi_dcp_turn_over(crd_dcp_master* m, crdi_dcp_peer* p)
{
    for (int i = 0; i < p->watch_count; i++) {
        crdi_dcp_bundle* b = &m->bundles[p->watches[i]];
        const bool fresh = bundle_fresh(b);
        if (fresh) {
            b->next = (uint16_t)(b->arrived.last + 1);
            b->has_next = true;
        } else if (b->has_next) {
            b->next++;
        }
    }
}
