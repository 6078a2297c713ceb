/// CAN: messages out of DBC files, frames, buses, and frames as text. Not for users.
#pragma once
#include "shared/wire.h"

/// The messages of a DBC file, ready for use: crdi_wire_prepare() has been over them. All memory is
/// the arena's. A message that is longer than a frame can be (J1939 sends those in pieces) is there
/// and cannot be used on a bus. CRD_E_FORMAT: file, line, value, and what would be right.
crd_status crdi_wire_dbc_read(crd_arena* arena, const char* path, crdi_wire_catalog* out);
/// The same of a text; `file` is what messages call it.
crd_status crdi_wire_dbc_parse(crd_arena* arena, const char* file, const char* text, size_t length,
                               crdi_wire_catalog* out);

// ---- frames ------------------------------------------------------------------------------------

enum { CRDI_CAN_LONGEST = 64 };

typedef struct crdi_can_frame {
    uint32_t id;   ///< of an error frame what has happened, as the kernel says it
    bool extended; ///< 29 bits
    bool remote;   ///< asks for data; `length` of them
    bool error;    ///< none of the bus: what the controller says about it
    bool fd;       ///< CAN FD
    uint8_t flags; ///< of CAN FD: 1 the data were faster (BRS), 2 its sender is passive (ESI)
    uint8_t length;
    uint8_t data[CRDI_CAN_LONGEST + CRDI_WIRE_PAD];
    int64_t time; ///< ns since 1970 when the kernel had it; 0: not known
} crdi_can_frame;

/// The next length that CAN or CAN FD has: up to 8, 12, 16, 20, 24, 32, 48, 64; 0 for more.
int crdi_can_round_length(int length);
/// What an error frame says, "bus off"
const char* crdi_can_error_name(const crdi_can_frame* f);
/// Which message of a catalog a frame is, -1: none.
int crdi_can_recognise(const crdi_wire_catalog* c, const crdi_can_frame* f);
/// A message as a frame without data. CRD_E_RANGE: it is longer than frames are.
crd_status crdi_can_frame_for(crd_context* ctx, const crdi_wire_message* m, crdi_can_frame* out);

/// As candump writes them, and others read: `(1436509052.249713) can0 123#DEADBEEF`; also as it
/// shows them, `can0  123   [4]  DE AD BE EF`. The interface (borrowed from the line, `*length`
/// bytes) and the time may be missing. false: `*why` says what would be right.
bool crdi_can_parse_line(const char* line, size_t size, crdi_can_frame* out, const char** interface,
                         size_t* length, const char** why);
/// `123#DEADBEEF`, `123##1DEADBEEF` of CAN FD, `123#R4`
bool crdi_can_parse_frame(const char* text, size_t size, crdi_can_frame* out, const char** why);
enum { CRDI_CAN_TEXT = 160 };
int crdi_can_print_frame(const crdi_can_frame* f, char out[CRDI_CAN_TEXT]);

/// As captures have them (LINKTYPE_CAN_SOCKETCAN): id and flags of SocketCAN, big endian; length;
/// flags of CAN FD; two bytes 0; data.
enum { CRDI_CAN_PACKED = 8 + CRDI_CAN_LONGEST };
size_t crdi_can_pack(const crdi_can_frame* f, uint8_t out[CRDI_CAN_PACKED]);
/// false: it is none. What is behind the data is padding.
bool crdi_can_unpack(const uint8_t* bytes, size_t length, crdi_can_frame* out);

// ---- buses -------------------------------------------------------------------------------------

/// One end of a bus: an interface of SocketCAN by its name, "can0", or a bus of this host that
/// needs no driver, "udp://239.74.163.2:43113": packets of cannelloni to a multicast group that do
/// not leave the host. What an end sends comes to all others and not to itself. Nothing blocks.
typedef struct crdi_can_bus crdi_can_bus; ///< opaque

typedef struct crdi_can_counts {
    int64_t sent, received; ///< frames
    int64_t dropped;        ///< could not be sent: the queue was full, the interface down
    int64_t overrun;        ///< received by the kernel, which had no room for them
    int64_t errors;         ///< error frames
    int64_t bad;            ///< packets that hold no frames
    int64_t downs;          ///< times that the interface was down or gone
} crdi_can_counts;

/// CRD_E_RANGE, CRD_E_NOT_FOUND, CRD_E_UNSUPPORTED, CRD_E_IO: what is wrong with the interface, and
/// what would help.
crd_status crdi_can_bus_open(crd_context* ctx, const char* interface, crdi_can_bus** out);
/// Over a descriptor (the caller's) that carries frames as SocketCAN does, one for each message.
crd_status crdi_can_bus_over(crd_context* ctx, int fd, crdi_can_bus** out);
void crdi_can_bus_close(crdi_can_bus* b);
/// false: it was not sent, and counted.
bool crdi_can_bus_send(crdi_can_bus* b, const crdi_can_frame* f);
/// The next frame that is there. false: none is, or there is trouble.
bool crdi_can_bus_receive(crdi_can_bus* b, crdi_can_frame* out);
/// Until something can be received, or so many seconds have passed.
void crdi_can_bus_wait(crdi_can_bus* b, double seconds);
/// For poll(2); -1: none while there is trouble.
int crdi_can_bus_descriptor(const crdi_can_bus* b);
/// "" or what is wrong with the interface: it is down, or gone.
const char* crdi_can_bus_trouble(const crdi_can_bus* b);
/// Looks whether the interface is there again, and goes on with it. Not in a step's hurry.
bool crdi_can_bus_rejoin(crdi_can_bus* b);
crdi_can_counts crdi_can_bus_counts(const crdi_can_bus* b);
