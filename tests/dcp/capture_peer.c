// Writes the PDUs of golden files as a capture, for tools that read captures:
// capture_peer OUT.pcapng udp|tcp GOLDEN.txt ... The text of each PDU goes to stdout, in their
// order.
#include "shared/dcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t read_hex(const char* text, size_t count, uint8_t* out, size_t room)
{
    size_t n = 0;
    for (; 2 * n + 1 < count && n < room; n++) {
        const char digits[3] = {text[2 * n], text[2 * n + 1], 0};
        out[n] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return n;
}

// FROM>TO  [PREFIX ]HEX  ; TEXT[ -- REMARK]
static int add_line(crd_dcp_capture* c, char* line, uint8_t transport, double time)
{
    line[strcspn(line, "\n")] = 0;
    char* hex = strstr(line, "  ");
    char* text = hex ? strstr(hex + 2, "  ; ") : NULL;
    if (line[0] == '#' || !text) { return 0; }
    *text = 0;
    text += 4;
    char* remark = strstr(text, " -- ");
    if (remark) { *remark = 0; }
    char* last = strrchr(hex, ' ') + 1;
    static uint8_t bytes[1 << 17];
    const size_t length = *last == '-' ? 0 : read_hex(last, strlen(last), bytes, sizeof bytes);
    const crd_dcp_address master = {0x7F000001, 40001, transport};
    const crd_dcp_address slave = {0x7F000001, 40002, transport};
    const bool from_master = line[0] == 'M';
    printf("%s\n", text);
    return crd_dcp_capture_add(c, time, from_master ? &master : &slave,
                               from_master ? &slave : &master, bytes, length) == CRD_OK
               ? 1
               : -1;
}

int main(int argc, char** argv)
{
    if (argc < 4) { return 2; }
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_capture* c = NULL;
    const uint8_t transport = strcmp(argv[2], "tcp") == 0 ? CRD_DCP_TCP : CRD_DCP_UDP;
    int bad = crd_dcp_capture_open(ctx, argv[1], &c) != CRD_OK;
    double time = 1794710000;
    for (int i = 3; !bad && i < argc; i++) {
        FILE* f = fopen(argv[i], "r");
        bad = !f;
        static char line[1 << 20];
        while (!bad && fgets(line, sizeof line, f)) {
            bad = add_line(c, line, transport, time += 0.001) < 0;
        }
        if (f) { fclose(f); }
    }
    bad |= crd_dcp_capture_close(c) != CRD_OK;
    if (bad) { fprintf(stderr, "capture_peer: %s\n", crd_error_text(ctx)); }
    crd_context_destroy(ctx);
    return bad;
}
