// Names of the protocol's numbers; those of PDUs are in pdu.c.
#include "cardan/dcp.h"

#include <stddef.h>

static const char* const states[CRD_DCP_STATE_COUNT] = {
    "ALIVE",        "CONFIGURATION", "PREPARING",     "PREPARED",      "CONFIGURING",
    "CONFIGURED",   "INITIALIZING",  "INITIALIZED",   "SENDING_I",     "SYNCHRONIZING",
    "SYNCHRONIZED", "RUNNING",       "COMPUTING",     "COMPUTED",      "SENDING_D",
    "STOPPING",     "STOPPED",       "ERRORHANDLING", "ERRORRESOLVED",
};

const char* crd_dcp_state_name(int state)
{
    return state >= 0 && state < CRD_DCP_STATE_COUNT ? states[state] : NULL;
}

static const char* const data_types[CRD_DCP_DATA_TYPE_COUNT] = {
    "uint8", "uint16", "uint32",  "uint64",  "int8",   "int16",
    "int32", "int64",  "float32", "float64", "string", "binary",
};

const char* crd_dcp_data_type_name(int type)
{
    return type >= 0 && type < CRD_DCP_DATA_TYPE_COUNT ? data_types[type] : NULL;
}

const char* crd_dcp_op_mode_name(int mode)
{
    static const char* const names[] = {"HRT", "SRT", "NRT"};
    return mode >= 0 && mode < 3 ? names[mode] : NULL;
}

typedef struct error {
    int code;
    const char *name, *text;
} error;

static const error errors[] = {
    {CRD_DCP_NONE, "NONE", "there is no error"},
    {CRD_DCP_E_GENERIC, "PROTOCOL_ERROR_GENERIC", "something went wrong that has no code"},
    {CRD_DCP_E_HEARTBEAT_MISSED, "PROTOCOL_ERROR_HEARTBEAT_MISSED",
     "the master did not ask for the state within the longest interval of the description"},
    {CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE, "PROTOCOL_ERROR_PDU_NOT_ALLOWED_IN_THIS_STATE",
     "the request is not allowed in the slave's present state"},
    {CRD_DCP_E_PROPERTY_VIOLATED, "PROTOCOL_ERROR_PROPERTY_VIOLATED",
     "a variable left its limits, or more data were missed than it allows"},
    {CRD_DCP_E_TRANSITION_IN_PROGRESS, "PROTOCOL_ERROR_STATE_TRANSITION_IN_PROGRESS",
     "the slave has not finished the change of state before"},
    {CRD_DCP_E_INVALID_LENGTH, "INVALID_LENGTH", "the PDU is longer or shorter than its type"},
    {CRD_DCP_E_INVALID_LOG_CATEGORY, "INVALID_LOG_CATEGORY",
     "the slave's description has no such log category"},
    {CRD_DCP_E_INVALID_LOG_LEVEL, "INVALID_LOG_LEVEL", "log levels are 0 to 4"},
    {CRD_DCP_E_INVALID_LOG_MODE, "INVALID_LOG_MODE", "log modes are 0 to 2"},
    {CRD_DCP_E_INVALID_MAJOR_VERSION, "INVALID_MAJOR_VERSION",
     "the slave speaks another major version of DCP"},
    {CRD_DCP_E_INVALID_MINOR_VERSION, "INVALID_MINOR_VERSION",
     "the slave speaks another minor version of DCP"},
    {CRD_DCP_E_INVALID_NETWORK_INFORMATION, "INVALID_NETWORK_INFORMATION",
     "the slave does not accept this address or port"},
    {CRD_DCP_E_INVALID_OP_MODE, "INVALID_OP_MODE", "the slave does not offer this operating mode"},
    {CRD_DCP_E_INVALID_PAYLOAD, "INVALID_PAYLOAD", "a string or binary is longer than its maxSize"},
    {CRD_DCP_E_INVALID_SCOPE, "INVALID_SCOPE", "scopes are 0 to 2"},
    {CRD_DCP_E_INVALID_SOURCE_DATA_TYPE, "INVALID_SOURCE_DATA_TYPE",
     "values of this type cannot be converted to the type of the variable"},
    {CRD_DCP_E_INVALID_START_TIME, "INVALID_START_TIME", "the start time has passed"},
    {CRD_DCP_E_INVALID_STATE_ID, "INVALID_STATE_ID",
     "the slave is in another state than the master thinks"},
    {CRD_DCP_E_INVALID_STEPS, "INVALID_STEPS", "this number of steps is not allowed"},
    {CRD_DCP_E_INVALID_TIME_RESOLUTION, "INVALID_TIME_RESOLUTION",
     "the slave does not offer this time resolution"},
    {CRD_DCP_E_INVALID_TRANSPORT_PROTOCOL, "INVALID_TRANSPORT_PROTOCOL",
     "the slave does not offer this transport"},
    {CRD_DCP_E_INVALID_UUID, "INVALID_UUID",
     "the slave has another uuid: it is not the one of the description"},
    {CRD_DCP_E_INVALID_VALUE_REFERENCE, "INVALID_VALUE_REFERENCE",
     "the slave has no such variable, or one of another kind"},
    {CRD_DCP_E_INVALID_SEQUENCE_ID, "INVALID_SEQUENCE_ID",
     "the slave expected another sequence id: a request was lost or came twice"},
    {CRD_DCP_E_GAP_INPUT_POS, "INCOMPLETE_CONFIG_GAP_INPUT_POS",
     "a position between the inputs of a data_id is empty"},
    {CRD_DCP_E_GAP_OUTPUT_POS, "INCOMPLETE_CONFIG_GAP_OUTPUT_POS",
     "a position between the outputs of a data_id is empty"},
    {CRD_DCP_E_GAP_TUNABLE_POS, "INCOMPLETE_CONFIG_GAP_TUNABLE_POS",
     "a position between the parameters of a param_id is empty"},
    {CRD_DCP_E_NO_NETWORK_INPUT, "INCOMPLETE_CONFIG_NW_INFO_INPUT",
     "a data_id with inputs has no source network information"},
    {CRD_DCP_E_NO_NETWORK_OUTPUT, "INCOMPLETE_CONFIG_NW_INFO_OUTPUT",
     "a data_id with outputs has no target network information"},
    {CRD_DCP_E_NO_NETWORK_TUNABLE, "INCOMPLETE_CONFIG_NW_INFO_TUNABLE",
     "a param_id has no network information"},
    {CRD_DCP_E_NO_SCOPE, "INCOMPLETE_CONFIG_SCOPE", "a data_id has no scope"},
    {CRD_DCP_E_NO_STEPS, "INCOMPLETE_CONFIG_STEPS", "a data_id with outputs has no steps"},
    {CRD_DCP_E_NO_TIME_RESOLUTION, "INCOMPLETE_CONFIG_TIME_RESOLUTION",
     "the time resolution is neither fixed nor configured"},
    {CRD_DCP_E_INCOMPLETE, "INCOMPLETE_CONFIGURATION", "the configuration is incomplete"},
    {CRD_DCP_E_NO_LOG_ON_NOTIFICATION, "NOT_SUPPORTED_LOG_ON_NOTIFICATION",
     "the slave does not send log entries by itself"},
    {CRD_DCP_E_NO_LOG_ON_REQUEST, "NOT_SUPPORTED_LOG_ON_REQUEST",
     "the slave does not keep log entries"},
    {CRD_DCP_E_NO_VARIABLE_STEPS, "NOT_SUPPORTED_VARIABLE_STEPS",
     "the slave does not change the number of steps during a run"},
    {CRD_DCP_E_TRANSPORT_NOT_SUPPORTED, "NOT_SUPPORTED_TRANSPORT_PROTOCOL",
     "the slave does not support this transport"},
    {CRD_DCP_E_PDU_NOT_SUPPORTED, "NOT_SUPPORTED_PDU",
     "the slave does not support this request, or not in this operating mode"},
    {CRD_DCP_E_PDU_SIZE, "NOT_SUPPORTED_PDU_SIZE",
     "the data of a data_id or param_id are larger than the slave's largest PDU"},
};

static const error* find_error(int code)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (errors[i].code == code) { return &errors[i]; }
    }
    return NULL;
}

const char* crd_dcp_error_name(int code)
{
    const error* e = find_error(code);
    return e ? e->name : NULL;
}

const char* crd_dcp_error_text(int code)
{
    const error* e = find_error(code);
    return e ? e->text : "a code that DCP 1.0 does not have";
}
