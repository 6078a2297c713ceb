// modules: dcptools dcp wire base
// A capture as somebody may send it: frames, streams and PDUs in it. What is seen can be printed
// and decodes to what was said, and every frame is counted once.
#include <string.h>

#include "fuzz.h"
#include "shared/dcp.h"
#include "shared/dcptools_log.h"

static crdi_dcp_log* current;

static bool see(void* user, const crdi_dcp_seen* s)
{
    char line[4096];
    crdi_dcp_pdu again;
    int* count = user;
    const int n = crdi_dcp_log_print(current, s, line, sizeof line);
    if (n < 0 || ((size_t)n < sizeof line && strlen(line) != (size_t)n)) { __builtin_trap(); }
    if (s->to.transport != CRD_DCP_CAN &&
        (crdi_dcp_decode(s->bytes, s->length, &again) != s->decoded ||
         again.type != s->pdu->type)) {
        __builtin_trap();
    }
    return ++*count < 1000;
}

// Of a stream that is not DCP: the first byte is the length of a message.
static size_t message_length(const void* user, const uint8_t* bytes, size_t there)
{
    (void)user, (void)there;
    return bytes[0] == 255 ? SIZE_MAX : bytes[0];
}

static bool see_message(void* user, const crdi_dcp_seen* s)
{
    int* count = user;
    uint8_t sum = 0;
    for (size_t i = 0; i < s->length; i++) {
        sum ^= s->bytes[i];
    }
    return ++*count < 1000 + (sum & 1);
}

// Some messages of a bus: control of slave 1, an output and an input.
static const char matrix[] =
    "<DcpOverCan><KMatrix><STC_run canId=\"5\"/><RSP_nack canId=\"6\" senderRef=\"1\"/>"
    "<DAT_input_output canId=\"7\" senderRef=\"1\" dataId=\"1\" length=\"8\">"
    "<Payload name=\"x\" offset=\"0\"><Float64/></Payload><Receiver dcpId=\"0\"/>"
    "</DAT_input_output></KMatrix><ScenarioConfiguration>"
    "<DcpSlave uuid=\"00000000-0000-0000-0000-000000000000\" dcpId=\"1\">"
    "<CFG_output data_id=\"1\" pos=\"0\" source_vr=\"1\"/></DcpSlave>"
    "</ScenarioConfiguration></DcpOverCan>";

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    static crd_context* ctx;
    static crd_dcp_description* d;
    static crd_dcp_can_description* can;
    if (!ctx) {
        ctx = crd_context_create(NULL);
        if (crd_dcp_can_parse(ctx, matrix, sizeof matrix - 1, "x", &can, NULL, NULL) < 0) {
            __builtin_trap();
        }
        static crd_dcp_variable v[4];
        for (int i = 0; i < 4; i++) {
            v[i] = crd_dcp_variable_defaults();
            v[i].name = "x";
            v[i].vr = (uint64_t)i + 1;
        }
        v[0].type = CRD_DCP_FLOAT64;
        v[1].type = CRD_DCP_STRING;
        v[2].type = CRD_DCP_INT16;
        v[2].rank = 1;
        v[2].is_linked[0] = true;
        v[2].linked[0] = 4;
        v[3].causality = CRD_STRUCTURAL_PARAMETER;
        v[3].start = "2";
        if (crd_dcp_description_create(ctx, &d) < 0) { __builtin_trap(); }
        d->variables = v;
        d->variable_count = 4;
    }
    if (size < 2 || size > 65536) { return 0; }
    int count = 0;
    const uint16_t port = 40002;
    const crd_dcp_description* list[] = {d};
    const crdi_dcp_log_options opt = {.ports = &port,
                                      .port_count = data[0] & 1,
                                      .descriptions = list,
                                      .description_count = 1,
                                      .matrix = can,
                                      .seen = see,
                                      .message = data[0] & 2 ? see_message : NULL,
                                      .framing = {message_length, NULL},
                                      .user = &count};
    if (crdi_dcp_log_create(ctx, &opt, &current) < 0) { return 0; }
    FILE* f = fmemopen((void*)(uintptr_t)(data + 1), size - 1, "rb");
    if (f) {
        (void)crdi_dcp_log_read(current, f, "x");
        fclose(f);
    }
    const crdi_dcp_log_counts c = crdi_dcp_log_get_counts(current);
    if (c.pdus != count || c.other + c.truncated + c.fragments > c.frames) { __builtin_trap(); }
    crdi_dcp_log_destroy(current);
    return 0;
}
