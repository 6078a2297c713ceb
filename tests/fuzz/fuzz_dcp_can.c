// modules: dcp archive xml base
//
// Any bytes as the description of DCP over CAN: parser and rules; what breaks no rule is written,
// read again, and written to the same bytes, and its messages carry frames.
#include <linux/can.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dcp/can/can.h"
#include "fuzz.h"
#include "shared/base.h"
#include "shared/dcp.h"

static int faults(const crd_dcp_finding* findings, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (!findings[i].text[0] || findings[i].line < 0) { __builtin_trap(); }
        n += findings[i].severity == CRD_DCP_FAULT;
    }
    return n;
}

static void round_trip(crd_context* ctx, crd_dcp_can_description* d)
{
    crd_text first, second;
    crd_dcp_can_description* back = NULL;
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    crd_text_init(&first, ctx);
    crd_text_init(&second, ctx);
    if (crdi_dcp_can_write(d, &first) < 0 ||
        crd_dcp_can_parse(ctx, first.data, first.length, "back", &back, &findings, &count) < 0 ||
        faults(findings, count) || back->message_count != d->message_count ||
        back->slave_count != d->slave_count || crdi_dcp_can_write(back, &second) < 0 ||
        first.length != second.length || memcmp(first.data, second.data, first.length) != 0) {
        __builtin_trap();
    }
    crd_dcp_can_description_destroy(back);
    crd_text_clear(&first);
    crd_text_clear(&second);
}

// Each message as a frame; what comes out as a PDU goes in again and gives the same frame, but for
// bytes that belong to no item.
static void frames(crd_context* ctx, const crd_dcp_can_description* d)
{
    static int fd[2] = {-1, -1};
    crd_dcp_can* c = NULL;
    if (fd[0] < 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd) != 0) { abort(); }
    if (crd_dcp_can_create(ctx, d, fd[1], &c) != CRD_OK) { abort(); }
    for (int i = 0; i < d->message_count && i < 64; i++) {
        const crdi_dcp_can_message* m = &d->messages[i];
        struct can_frame f = {.can_id = m->can_id, .can_dlc = m->length}, back;
        crdi_dcp_pdu p;
        uint8_t sender = 0;
        if (m->can_id > 2047) { f.can_id |= CAN_EFF_FLAG; }
        for (int k = 0; k < m->item_count; k++) {
            memset(f.data + m->items[k].offset, 7 + k, m->items[k].length);
        }
        if (write(fd[0], &f, sizeof f) != (ssize_t)sizeof f) { abort(); }
        if (!crdi_dcp_can_receive(c, &p, &sender, NULL) || p.type != m->type ||
            sender != m->sender) {
            abort();
        }
        if (m->item_count == 0) { continue; }
        if (!crdi_dcp_can_send(c, &p, sender) ||
            read(fd[0], &back, sizeof back) != (ssize_t)sizeof back ||
            memcmp(&back, &f, sizeof f) != 0) {
            abort();
        }
    }
    crd_dcp_can_destroy(c);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_can_description* d = NULL;
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    if (ctx &&
        crd_dcp_can_parse(ctx, (const char*)data, size, "t.xml", &d, &findings, &count) == CRD_OK &&
        faults(findings, count) == 0) {
        round_trip(ctx, d);
        frames(ctx, d);
    }
    crd_dcp_can_description_destroy(d);
    crd_context_destroy(ctx);
    return 0;
}
