// dcp/payload: DAT_input_output with 100 float64, encoded and decoded again, against a memcpy of
// its payload. As the 100 outputs of one slave stand behind each other in memory they are joined
// into one slot; as scalars that are spread over memory they cannot be.
#include "benchmark.h"
#include "shared/dcp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 100, HEAD = 5, BYTES = 8 * VALUES, TIMES = 2000, REPEATS = 40 };

typedef struct payload {
    crd_dcp_slot out[VALUES], in[VALUES];
    uint8_t types[VALUES];
    int count;
    double sent[2 * VALUES], received[2 * VALUES];
    uint8_t pdu[HEAD + BYTES];
} payload;

// `apart`: doubles between two values.
static void lay_out(payload* p, int apart)
{
    *p = (payload){.count = VALUES};
    for (int i = 0; i < VALUES; i++) {
        p->sent[apart * i] = sin(i);
        p->out[i] =
            (crd_dcp_slot){.type = CRD_DCP_FLOAT64, .count = 1, .real = &p->sent[apart * i]};
        p->in[i] =
            (crd_dcp_slot){.type = CRD_DCP_FLOAT64, .count = 1, .real = &p->received[apart * i]};
        p->types[i] = CRD_DCP_FLOAT64;
    }
    crdi_dcp_join(p->out, NULL, p->count);
    p->count = crdi_dcp_join(p->in, p->types, p->count);
}

static double time_payload(payload* p)
{
    const int64_t begin = crdi_now_ns();
    for (int i = 0; i < TIMES; i++) {
        p->sent[0] = i;
        const crdi_dcp_pdu sent = {.type = CRDI_DCP_DAT_INPUT_OUTPUT,
                                   .seq = (uint16_t)i,
                                   .id = 7,
                                   .payload = p->pdu + HEAD,
                                   .payload_length =
                                       crdi_dcp_put(p->out, p->count, p->pdu + HEAD, BYTES)};
        const size_t length = crdi_dcp_encode(&sent, p->pdu, sizeof p->pdu);
        crdi_dcp_pdu got;
        if (crdi_dcp_decode(p->pdu, length, &got) != CRDI_DCP_GOOD || got.seq != sent.seq ||
            crdi_dcp_take(p->in, p->types, p->count, got.payload, got.payload_length) !=
                CRD_DCP_NONE ||
            p->received[0] != i) {
            abort();
        }
    }
    return (double)(crdi_now_ns() - begin) / TIMES;
}

static double time_copy(payload* p)
{
    void* (*volatile copy)(void*, const void*, size_t) = memcpy; // a call, as it is in the library
    const int64_t begin = crdi_now_ns();
    for (int i = 0; i < TIMES; i++) {
        p->sent[0] = i;
        copy(p->pdu + HEAD, p->sent, BYTES);
    }
    return (double)(crdi_now_ns() - begin) / TIMES;
}

static void payload_case(benchmark* b)
{
    static payload together, apart;
    lay_out(&together, 1);
    lay_out(&apart, 2);
    double floor = INFINITY, one = INFINITY, many = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        floor = fmin(floor, time_copy(&together));
        one = fmin(one, time_payload(&together));
        many = fmin(many, time_payload(&apart));
    }
    benchmark_report(b, "dcp/payload", one, "ns", floor, 6,
                     "%d float64 both ways: %.0f ns, memcpy %.1f ns", VALUES, one, floor);
    benchmark_report(b, "dcp/payload/apart", many, "ns", floor, 0,
                     "%d variables that cannot be joined: %.0f ns", VALUES, many);
}

const benchmark_case benchmark_dcp_cases[] = {{"dcp/payload", payload_case}, {NULL, NULL}};
