// What the files about DCP over CAN share: the elements of the schema as tables.
//
//   description.c  makes, loads and destroys descriptions
//   rules.c        the rules, and the check of a description
//   write.c        a description becomes a document
//   can.c          frames and PDUs; SocketCAN
//   slave.c        a slave on a bus
#pragma once
#include "dcp/description/dcpx.h"

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

// An attribute of a setting and its place in crd_dcp_pdu.
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
int crdi_can_compare_id(const crd_dcp_can_message* x, const crd_dcp_can_message* y);
int crdi_can_compare_meaning(const crd_dcp_can_message* x, const crd_dcp_can_message* y);

// rules.c
extern const crdi_dcp_rules crdi_can_rules;
crd_status crdi_can_check(crd_dcp_can_description* d, crdi_dcp_findings* f);
