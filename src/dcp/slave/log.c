// Log entries of a slave: stored until they are asked for, or sent at once.
#include "dcp/slave/slave.h"

#include <math.h>
#include <string.h>

crd_status crdi_dcp_logs_create(crd_dcp_slave* s)
{
    const size_t count = (size_t)s->opt.log_entries;
    s->logs = crdi_arena_new(&s->arena, count, sizeof *s->logs);
    s->log_order = crdi_arena_new(&s->arena, count, sizeof *s->log_order);
    uint8_t* bytes = crdi_arena_new(&s->arena, count, s->opt.log_bytes);
    if (!s->logs || !s->log_order || !bytes) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < count; i++) {
        s->log_order[i] = (int)i;
        s->logs[i].bytes = bytes + i * s->opt.log_bytes;
    }
    return CRD_OK;
}

// Takes the i-th of those stored out and puts it to the free ones.
static void forget_log(crd_dcp_slave* s, int i)
{
    const int entry = s->log_order[i];
    s->log_count--;
    memmove(&s->log_order[i], &s->log_order[i + 1],
            (size_t)(s->log_count - i) * sizeof *s->log_order);
    s->log_order[s->log_count] = entry;
}

static int64_t whole_seconds(double now)
{
    return now > -9e18 && now < 9e18 ? (int64_t)floor(now) : 0;
}

static void store_log(crd_dcp_slave* s, const crd_dcp_log_template* t,
                      const crd_dcp_slot* arguments)
{
    const size_t length = crdi_dcp_put(arguments, t->argument_count, NULL, 0);
    if (s->opt.log_entries == 0 || length > s->opt.log_bytes) {
        s->counts.logs_lost++;
        return;
    }
    if (s->log_count == s->opt.log_entries) {
        forget_log(s, 0);
        s->counts.logs_lost++;
    }
    crdi_dcp_log_slot* log = &s->logs[s->log_order[s->log_count++]];
    crdi_dcp_put(arguments, t->argument_count, log->bytes, s->opt.log_bytes);
    log->time = whole_seconds(s->now);
    log->template_id = t->id;
    log->category = t->category;
    log->length = (uint32_t)length;
}

static void notify_log(crd_dcp_slave* s, const crd_dcp_log_template* t,
                       const crd_dcp_slot* arguments)
{
    const crdi_dcp_pdu head = {.type = CRDI_DCP_NTF_LOG,
                               .peer = s->id,
                               .time = whole_seconds(s->now),
                               .template_id = t->id};
    const size_t room = crdi_dcp_max_pdu(s, s->master.transport);
    const size_t at = crdi_dcp_encode(&head, s->pdu, room);
    const size_t length = at + crdi_dcp_put(arguments, t->argument_count, s->pdu + at, room - at);
    if (length > room) {
        s->counts.logs_lost++;
        return;
    }
    crdi_dcp_slave_send(s, &s->master, length);
}

void crd_dcp_slave_log(crd_dcp_slave* s, uint8_t template_id, const crd_dcp_slot* arguments,
                       double now)
{
    crdi_dcp_slave_clock(s, now);
    const crd_dcp_log_template* t = crdi_dcp_find_template(s->d, template_id);
    if (!t || t->level >= CRDI_DCP_LEVELS || s->state == CRD_DCP_ALIVE) { return; }
    for (int i = 0; i < t->argument_count; i++) {
        if (arguments[i].type != t->arguments[i]) { return; }
    }
    const uint8_t mode = s->log_modes[t->category][t->level];
    if (mode == 1) {
        store_log(s, t, arguments);
    } else if (mode == 2) {
        notify_log(s, t, arguments);
    }
}

// An entry of RSP_log_ack:  0 time:i64  8 log_template_id:u8  9 arguments
enum { LOG_HEAD = 9 };

static void write_log(const crdi_dcp_log_slot* log, uint8_t* out)
{
    crdi_store_le(out, 8, (uint64_t)log->time);
    out[8] = log->template_id;
    memcpy(out + LOG_HEAD, log->bytes, log->length);
}

size_t crdi_dcp_take_logs(crd_dcp_slave* s, const crdi_dcp_pdu* request, size_t room)
{
    const crdi_dcp_pdu head = {.type = CRDI_DCP_RSP_LOG_ACK, .seq = request->seq, .peer = s->id};
    size_t at = crdi_dcp_encode(&head, s->pdu, room);
    int taken = 0, i = 0;
    while (i < s->log_count && taken < request->max) {
        const crdi_dcp_log_slot* log = &s->logs[s->log_order[i]];
        if (request->category != 0 && log->category != request->category) {
            i++;
            continue;
        }
        if (log->length + LOG_HEAD > room - at) { break; }
        write_log(log, s->pdu + at);
        at += LOG_HEAD + log->length;
        forget_log(s, i);
        taken++;
    }
    return at;
}
