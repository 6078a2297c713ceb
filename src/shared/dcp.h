/// What modules share of dcp. Not for users.
#pragma once
#include "cardan/dcp.h"
#include "shared/base.h"

// ---- networks ----------------------------------------------------------------------------------

enum {
    CRDI_DCP_MOST_UDP = 65507, ///< 65535 - 20 of IPv4 - 8 of UDP
    CRDI_DCP_LOOPBACK = 0x7F000001,
};

/// "udp://127.0.0.1:8080" for a message
typedef struct crdi_dcp_address_text {
    char text[32];
} crdi_dcp_address_text;
crdi_dcp_address_text crdi_dcp_address_text_of(const crd_dcp_address* a);

crd_dcp_net_limits crdi_dcp_net_get_limits(const crd_dcp_net* n);
