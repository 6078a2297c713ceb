// What cardan dcp scan, link and conform share.
#pragma once
#include "cli/cli.h"
#include "shared/dcptools_query.h"

#include <signal.h>

// Rows of a command whose struct of options has `key` and `capture`.
#define CRDI_PROBE_OPTIONS(object)                                                                 \
    OPT_FILE(object, key, "key", NULL, "encrypt and authenticate with this key (cardan dcp key)"), \
        OPT_FILE(object, capture, "capture", "pcapng", "write all PDUs, for Wireshark")

typedef struct crdi_query {
    crd_dcp_net* net;
    crd_dcp_capture* capture;
} crdi_query;

// Opens the network and lets SIGINT and SIGTERM end the waiting. `key` and `capture` may be NULL.
crd_status crdi_query_open(crd_context* ctx, const char* key, const char* capture, crdi_query* out);
// CRD_E_IO: the capture is not complete.
crd_status crdi_query_close(crdi_query* p);
bool crdi_query_stopped(void* user); // by a signal
// udp:// and port 8080 unless the text says otherwise.
crd_status crdi_query_address(crd_context* ctx, const char* text, crd_dcp_address* out);
// Without faults.
crd_status crdi_query_description(crd_context* ctx, const char* path, crd_dcp_description** out);
