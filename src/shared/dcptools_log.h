/// Reading along: from frames of a network to the PDUs of DCP in them, with the names and values of
/// variables.
///
/// Frames come from a capture file (pcapng, or the classic pcap of tcpdump) or from an interface.
/// What is DCP is found by its contents: a request, answer or notification that is right in type,
/// length and numbers makes its two ends known, CFG PDUs make the addresses of data known, and all
/// that passes between known ends is taken. Streams of TCP are put together from their segments.
/// Everything is hostile and bounded.
#pragma once
#include "shared/dcp.h"

#include <stdio.h>

typedef struct crdi_dcp_log crdi_dcp_log; ///< opaque

/// A PDU that was seen.
typedef struct crdi_dcp_seen {
    double time; ///< s since 1970
    crd_dcp_address from, to;
    const uint8_t* bytes; ///< valid during the call; of CAN those of the frame
    size_t length;
    crdi_dcp_decoded decoded; ///< BAD_LENGTH: said of known ends only
    const crdi_dcp_pdu* pdu;
} crdi_dcp_seen;

typedef struct crdi_dcp_log_options {
    /// Only packets from or to one of these ports, and all of them are taken for DCP. None: any
    /// port.
    const uint16_t* ports;
    int port_count;
    /// Of the slaves, borrowed; which one is whose is told by the uuid of STC_register. A single
    /// one is that of all slaves.
    const crd_dcp_description* const* descriptions;
    int description_count;
    /// Of DCP over CAN, borrowed: what the frames of captures are; NULL: they are not looked at.
    const crd_dcp_can_description* matrix;
    /// What passes is not DCP: every datagram, and what `framing` finds in streams, comes here.
    /// NULL: it is DCP.
    bool (*message)(void* user, const crdi_dcp_seen* s);
    crdi_dcp_framing framing;
    /// false: that is enough.
    bool (*seen)(void* user, const crdi_dcp_seen* s);
    void* user;
} crdi_dcp_log_options;

/// Counters, all exact: frames = other + truncated + fragments + those with DCP or with a part of
/// it.
typedef struct crdi_dcp_log_counts {
    int64_t frames;
    int64_t pdus;
    int64_t other;     ///< frames without IPv4, UDP, TCP or DCP
    int64_t can;       ///< of them frames of CAN, where there is no file that says what they are
    int64_t truncated; ///< frames of which the capture has a part only
    int64_t fragments; ///< of IPv4 datagrams: not put together
    int64_t gaps;      ///< places where a stream misses something
} crdi_dcp_log_counts;

/// Kinds of frames, as in captures (LINKTYPE_...).
enum {
    CRDI_DCP_LINK_LOOPBACK = 0, ///< BSD: a word with the family
    CRDI_DCP_LINK_ETHERNET = 1,
    CRDI_DCP_LINK_RAW = 101,
    CRDI_DCP_LINK_LOOP = 108,  ///< as LOOPBACK, in network order
    CRDI_DCP_LINK_LINUX = 113, ///< cooked
    CRDI_DCP_LINK_CAN = 227,   ///< as SocketCAN has them
    CRDI_DCP_LINK_IPV4 = 228,
    CRDI_DCP_LINK_LINUX_2 = 276, ///< cooked, version 2
};

/// A frame of a capture, `length` bytes of the `whole` that there were.
typedef struct crdi_captured {
    int link;
    double time; ///< s since 1970
    int64_t ns;  ///< the same, exact where the capture has ns or us
    const uint8_t* bytes;
    size_t length, whole;
} crdi_captured;
/// All frames of a capture (pcapng, pcap) to `take`, until it says false: that is enough.
/// CRD_E_FORMAT with "name: byte n: ..."; CRD_E_UNSUPPORTED: no capture.
crd_status crdi_capture_read(crd_context* ctx, FILE* f, const char* name,
                             bool (*take)(void* user, const crdi_captured* frame), void* user);

crd_status crdi_dcp_log_create(crd_context* ctx, const crdi_dcp_log_options* opt,
                               crdi_dcp_log** out);
void crdi_dcp_log_destroy(crdi_dcp_log* l);
/// A frame, `length` bytes of the `whole` that there were. false: that is enough.
bool crdi_dcp_log_frame(crdi_dcp_log* l, int link, double time, const uint8_t* bytes, size_t length,
                        size_t whole);
/// All frames of a capture, as crdi_capture_read.
crd_status crdi_dcp_log_read(crdi_dcp_log* l, FILE* f, const char* name);
/// As crdi_dcp_print; the payload of data with names and values instead of bytes where the CFG PDUs
/// that say what is in it were seen and a description has their variables.
int crdi_dcp_log_print(crdi_dcp_log* l, const crdi_dcp_seen* s, char* out, size_t room);

/// One value of a payload, as text.
typedef struct crdi_dcp_log_value {
    const crd_dcp_variable* variable;
    /// "12.5", "[1, 2]", "\"ready\"": as JSON has it, but for NaN and Infinity; binaries are hex
    /// digits in quotes. Valid until the next call.
    const char* text;
} crdi_dcp_log_value;
/// The values in a DAT PDU, one after the other: `*next` starts with 0. false: no more, or unknown.
bool crdi_dcp_log_next(crdi_dcp_log* l, const crdi_dcp_seen* s, int* next, crdi_dcp_log_value* out);
crdi_dcp_log_counts crdi_dcp_log_get_counts(const crdi_dcp_log* l);
