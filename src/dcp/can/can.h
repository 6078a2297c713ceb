// What the files about DCP over CAN share: the elements of the schema as tables.
//
//   can_description.c  makes, loads, checks and destroys descriptions
//   can_write.c        a description becomes a document
//   can.c              frames and PDUs; SocketCAN
//   can_slave.c        a slave on a bus
#pragma once
#include "cardan/dcp.h"

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

// A setting of the ScenarioConfiguration.
typedef struct crdi_can_setting {
    const char* element;
    uint8_t type;
    bool network, value; // has a child that says where, or a value
    crdi_can_field fields[CRDI_CAN_FIELDS];
} crdi_can_setting;
extern const crdi_can_setting crdi_can_settings[]; // in the order of the schema
extern const int crdi_can_setting_count;

uint64_t crdi_can_field_get(const crd_dcp_pdu* p, const crdi_can_field* f);
void crdi_can_field_set(crd_dcp_pdu* p, const crdi_can_field* f, uint64_t x);
static inline bool crdi_can_is_data(uint8_t type)
{
    return type == CRD_DCP_DAT_INPUT_OUTPUT || type == CRD_DCP_DAT_PARAMETER;
}
