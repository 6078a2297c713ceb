// What the files about DCP over CAN share: the elements of the schema as tables.
//
//   description.c  makes, loads and destroys descriptions
//   rules.c        the rules, and the check of a description
//   write.c        a description becomes a document
//   make.c         a description made for some slaves
//   can.c          frames and PDUs
//   net.c          a bus as the network of a master or a slave
//   master.c       what travels there, for a master
#pragma once
#include "dcp/description/dcpx.h"
#include "shared/wire_can.h"

/// A value in a data message.
typedef struct crdi_dcp_can_item {
    const char *name, *unit; ///< unit "" none
    uint8_t type;            ///< crd_dcp_data_type
    uint8_t offset;          ///< first byte
    uint8_t length;          ///< bytes; given for string and binary, else that of the type
    double min, max;         ///< NaN: not given
    int line;                ///< here and below: in the file, 0 if made by hand
} crdi_dcp_can_item;

typedef struct crdi_dcp_can_message {
    uint16_t can_id;                ///< up to 2047 a standard frame, beyond an extended one
    uint8_t type;                   ///< crdi_dcp_pdu_type
    uint8_t sender;                 ///< dcp id, 0 the master
    uint16_t id;                    ///< data_id or param_id
    uint8_t length;                 ///< bytes of the frame
    const crdi_dcp_can_item* items; ///< of data, by `pos` of CFG_output and CFG_input
    int item_count;                 ///< up to 8
    const uint8_t* receivers;       ///< dcp ids, of data
    int receiver_count;
    int line;
} crdi_dcp_can_message;

typedef struct crdi_dcp_can_config { ///< of one slave
    const char* name;                ///< "" none
    uint8_t uuid[16];
    uint8_t id;                   ///< dcp id
    const crdi_dcp_pdu* settings; ///< CFG PDUs without sequence ids; CAN needs no addresses
    const int* lines;             ///< (setting_count), NULL
    int setting_count;
    int line;
} crdi_dcp_can_config;

/// All memory is in its arena; made by crd_dcp_can_load, or by hand.
typedef struct crd_dcp_can_description {
    crd_context* ctx;
    crd_arena arena;
    const char* file;
    const crdi_dcp_can_message* messages;
    int message_count;
    const crdi_dcp_can_config* slaves;
    int slave_count;
} crd_dcp_can_description;

crd_status crdi_dcp_can_description_create(crd_context* ctx, crd_dcp_can_description** out);
/// The rules, for a description made by hand as well.
crd_status crdi_dcp_can_validate(crd_dcp_can_description* d, const crd_dcp_finding** findings,
                                 int* count);
/// As XML that the schema accepts, appended to `out`; reading it gives an equal description.
/// CRD_E_RANGE with the first fault if the rules are broken.
crd_status crdi_dcp_can_write(crd_dcp_can_description* d, crd_text* out);
/// Adds the messages of control to a description made by hand: twelve requests from `first` on,
/// then five per slave, in the order in which they should win the bus. Data come before or behind
/// them.
crd_status crdi_dcp_can_add_control(crd_dcp_can_description* d, uint16_t first);
/// By type, and by peer (answers, notifications) or id (data). Data and their payload as in a PDU.
/// `sender` of data: 0 for the master.
bool crdi_dcp_can_send(crd_dcp_can* c, const crdi_dcp_pdu* p, uint8_t sender);
/// The next PDU that is there; false: none. The payload is valid until the next call; seq is 0.
/// `*sender` (may be NULL) is the dcp id, `*time` (likewise) when it came.
bool crdi_dcp_can_receive(crd_dcp_can* c, crdi_dcp_pdu* out, uint8_t* sender, double* time);
crd_dcp_net* crdi_dcp_can_frames(const crd_dcp_can* c); ///< the bus, a net of frames
bool crdi_dcp_can_for_master(const crd_dcp_can* c, const crdi_dcp_pdu* p, uint8_t sender);
/// Over `bus`, which belongs to it from then on, also if it fails.
crd_status crdi_dcp_can_over(crd_context* ctx, const crd_dcp_can_description* d, crdi_can_bus* bus,
                             crd_dcp_can** out);
const crdi_dcp_can_config* crdi_can_config_of(const crd_dcp_can_description* file,
                                              const uint8_t uuid[16], uint8_t id);

enum {
    CRDI_CAN_FIELDS = 4,
    CRDI_CAN_ITEMS = 8,    // of a message
    CRDI_CAN_PAYLOAD = 96, // bytes of a DCP payload with 8 items: a text has 4 more than in a frame
    CRDI_CAN_STANDARD = 2047, // the largest identifier of a standard frame
};

// A message of the KMatrix.
typedef struct crdi_can_kind {
    const char* element;
    uint8_t type;
    int8_t length;     // fixed, -1: given
    const char* fixed; // attributes that have one value, "name=value ..."
} crdi_can_kind;
extern const crdi_can_kind crdi_can_kinds[]; // in the order of the schema
extern const int crdi_can_kind_count;
enum { CRDI_CAN_REQUESTS = 12 }; // the first of them

// An attribute of a setting and its place in crdi_dcp_pdu.
typedef struct crdi_can_field {
    const char* name;
    uint16_t offset;
    uint8_t size;
    uint64_t most;
} crdi_can_field;

// A setting of the ScenarioConfiguration; its element has the name of the PDU. Network information
// has a child that says where, CFG_parameter one with the value.
typedef struct crdi_can_setting {
    uint8_t type;
    crdi_can_field fields[CRDI_CAN_FIELDS];
} crdi_can_setting;
extern const crdi_can_setting crdi_can_settings[]; // in the order of the schema
extern const int crdi_can_setting_count;

// can.c: orders of messages
int crdi_can_compare_id(const crdi_dcp_can_message* x, const crdi_dcp_can_message* y);
int crdi_can_compare_meaning(const crdi_dcp_can_message* x, const crdi_dcp_can_message* y);

// rules.c
extern const crdi_dcp_rules crdi_can_rules;
crd_status crdi_can_check(crd_dcp_can_description* d, crdi_dcp_findings* f);

// master.c: the bundles of a slave, by the file
crd_status crdi_can_lay_out(const crd_dcp_can_description* d, crd_dcp_master* m, int peer);
