// The cases of the conformance test: procedures of DCP 1.0 as scripts, in the order of the state
// machine. Each begins and ends in ALIVE; what is tolerated beside the standard is what the
// reference implementation does.
#include "dcptools/conform/conform.h"

#define SCRIPT(...) ((const crdi_conform_step[]){__VA_ARGS__, {CRDI_END}})
#define GO(to)                                                                                     \
    {                                                                                              \
        .op = CRDI_GO, .state = CRD_DCP_##to                                                       \
    }
#define CONFIG(parts)                                                                              \
    {                                                                                              \
        .op = CRDI_CONFIG, .without = (parts)                                                      \
    }
#define REQUEST(t) .op = CRDI_ASK, .type = CRD_DCP_##t
#define OK(t)                                                                                      \
    {                                                                                              \
        REQUEST(t), .want = CRDI_ACK                                                               \
    }
#define OK_BUT(t, ...)                                                                             \
    {                                                                                              \
        REQUEST(t), .want = CRDI_ACK, __VA_ARGS__                                                  \
    }
#define NO(t, e)                                                                                   \
    {                                                                                              \
        REQUEST(t), .want = CRDI_NACK, .code = CRD_DCP_E_##e                                       \
    }
#define NO_BUT(t, e, ...)                                                                          \
    {                                                                                              \
        REQUEST(t), .want = CRDI_NACK, .code = CRD_DCP_E_##e, __VA_ARGS__                          \
    }
#define TELLS                                                                                      \
    {                                                                                              \
        .op = CRDI_ASK, .type = CRD_DCP_INF_STATE, .want = CRDI_STATE_ACK                          \
    }
#define STATE(s)                                                                                   \
    {                                                                                              \
        .op = CRDI_STATE, .state = CRD_DCP_##s                                                     \
    }
#define NOTIFY(s)                                                                                  \
    {                                                                                              \
        .op = CRDI_NOTIFY, .state = CRD_DCP_##s                                                    \
    }
#define RAW(hex)                                                                                   \
    {                                                                                              \
        .op = CRDI_RAW, .raw = hex                                                                 \
    }
#define RAW_BUT(hex, ...)                                                                          \
    {                                                                                              \
        .op = CRDI_RAW, .raw = hex, __VA_ARGS__                                                    \
    }
#define DATA(t, s)                                                                                 \
    {                                                                                              \
        .op = CRDI_DATA, .type = CRD_DCP_DAT_##t, .number = (s)                                    \
    }
#define DATA_BUT(t, s, ...)                                                                        \
    {                                                                                              \
        .op = CRDI_DATA, .type = CRD_DCP_DAT_##t, .number = (s), __VA_ARGS__                       \
    }
#define PAUSE(ms)                                                                                  \
    {                                                                                              \
        .op = CRDI_PAUSE, .number = (ms)                                                           \
    }
#define OUTPUT(n)                                                                                  \
    {                                                                                              \
        .op = CRDI_OUTPUT, .number = (n)                                                           \
    }
#define SILENT                                                                                     \
    {                                                                                              \
        .op = CRDI_SILENT                                                                          \
    }
#define BENT(what) .bent = CRDI_X_##what
#define ALSO(...) .also = {__VA_ARGS__}
#define NUMBER(n) .bent = CRDI_X_NUMBER, .number = (n)
#define ACKED CRDI_ALSO_ACK
#define REFUSED CRDI_ALSO_NACK

const char* const crdi_conform_needs[CRDI_N_COUNT] = {
    "no output that is a scalar number, or canAcceptConfigPdus is false",
    "no input that is a scalar number, or canAcceptConfigPdus is false",
    "no tunable parameter that is a scalar number",
    "no parameter that is a scalar number",
    "no fixed parameter that is a scalar number",
    "no string parameter with a maxSize up to 900",
    "no input with maxConsecMissedPdus up to 1000",
    "no way into the Error superstate: neither maxConsecMissedPdus nor a heartbeat up to 10 s",
    "no heartbeat up to 10 s",
    "canHandleReset is false",
    "canHandleReset is true",
    "no log is provided",
    "a log is provided",
    "canProvideLogOnRequest is false",
    "canProvideLogOnRequest is true",
    "canProvideLogOnNotification is false",
    "canProvideLogOnNotification is true",
    "the time resolution is fixed",
    "canHandleVariableSteps is true, or there is only one number of steps",
    "any number of steps is allowed",
    "the output may have any number of steps",
    "every port is listed",
    "canAcceptConfigPdus is false",
    "canAcceptConfigPdus is true",
    "every port for parameters is listed",
};

const crdi_conform_case crdi_conform_cases[] = {
    // ---- ALIVE and registration
    {"alive.state", "INF_state in ALIVE", "RSP_state_ack, sender = receiver of the request",
     .steps = SCRIPT(TELLS)},
    {"alive.receiver", "INF_state to another id in ALIVE",
     "answered: a slave has no id before STC_register",
     .steps = SCRIPT({REQUEST(INF_STATE), .want = CRDI_STATE_ACK, BENT(RECEIVER)})},
    {"alive.requests", "every request but STC_register and INF_state in ALIVE",
     "PDU_NOT_ALLOWED_IN_THIS_STATE", .steps = SCRIPT({.op = CRDI_SWEEP})},
    {"register.state", "STC_register with state_id CONFIGURATION", "INVALID_STATE_ID",
     .steps = SCRIPT(NO_BUT(STC_REGISTER, INVALID_STATE_ID, BENT(STATE)))},
    {"register.uuid", "STC_register with another uuid", "INVALID_UUID",
     .steps = SCRIPT(NO_BUT(STC_REGISTER, INVALID_UUID, BENT(UUID)))},
    {"register.mode", "STC_register in op_mode 255", "INVALID_OP_MODE",
     .steps = SCRIPT(NO_BUT(STC_REGISTER, INVALID_OP_MODE, BENT(OP_MODE)))},
    {"register.major", "STC_register with another major version", "INVALID_MAJOR_VERSION",
     .steps = SCRIPT(NO_BUT(STC_REGISTER, INVALID_MAJOR_VERSION, BENT(MAJOR)))},
    {"register.minor", "STC_register with another minor version", "INVALID_MINOR_VERSION",
     .steps = SCRIPT(NO_BUT(STC_REGISTER, INVALID_MINOR_VERSION, BENT(MINOR)))},
    {"register.order", "STC_register with several things wrong",
     "state_id is checked before uuid, op_mode, major and minor version",
     .steps = SCRIPT(
         NO_BUT(STC_REGISTER, INVALID_STATE_ID,
                .bent = CRDI_X_STATE | CRDI_X_UUID | CRDI_X_OP_MODE | CRDI_X_MAJOR | CRDI_X_MINOR),
         NO_BUT(STC_REGISTER, INVALID_UUID,
                .bent = CRDI_X_UUID | CRDI_X_OP_MODE | CRDI_X_MAJOR | CRDI_X_MINOR),
         NO_BUT(STC_REGISTER, INVALID_OP_MODE,
                .bent = CRDI_X_OP_MODE | CRDI_X_MAJOR | CRDI_X_MINOR),
         NO_BUT(STC_REGISTER, INVALID_MAJOR_VERSION, .bent = CRDI_X_MAJOR | CRDI_X_MINOR))},
    {"register.length", "STC_register one byte short, one byte long", "INVALID_LENGTH",
     .steps = SCRIPT(NO_BUT(STC_REGISTER, INVALID_LENGTH, BENT(SHORTER)),
                     NO_BUT(STC_REGISTER, INVALID_LENGTH, BENT(LONGER)))},
    {"register.ok", "STC_register, INF_state", "RSP_ack, then NTF CONFIGURATION",
     .steps = SCRIPT(OK(STC_REGISTER), TELLS)},
    {"register.twice", "STC_register in CONFIGURATION", "PDU_NOT_ALLOWED_IN_THIS_STATE",
     .steps = SCRIPT(GO(CONFIGURATION), NO(STC_REGISTER, NOT_ALLOWED_IN_THIS_STATE))},
    {"deregister.ok", "STC_deregister in CONFIGURATION, registration anew",
     "RSP_ack, NTF ALIVE; then any id and sequence id again",
     .steps = SCRIPT(GO(CONFIGURATION), OK(STC_DEREGISTER),
                     {REQUEST(INF_STATE), .want = CRDI_STATE_ACK, BENT(RECEIVER)},
                     {.op = CRDI_SEQ, .number = 700}, GO(CONFIGURATION), TELLS)},

    // ---- sequence ids
    {"seq.start", "STC_register with sequence id 1000, INF_state with 1001",
     "STC_register sets where counting begins",
     .steps = SCRIPT({.op = CRDI_SEQ, .number = 1000}, OK(STC_REGISTER), TELLS)},
    {"seq.gap", "INF_state with a sequence id four ahead, then the right one",
     "INVALID_SEQUENCE_ID with the id expected; nothing is counted",
     .steps =
         SCRIPT(GO(CONFIGURATION),
                NO_BUT(INF_STATE, INVALID_SEQUENCE_ID, .bent = CRDI_X_SEQ, .number = 4), TELLS)},
    {"seq.repeated", "the same INF_state again", "INVALID_SEQUENCE_ID with the id of the next one",
     .steps = SCRIPT(GO(CONFIGURATION), TELLS,
                     NO_BUT(INF_STATE, INVALID_SEQUENCE_ID, BENT(REPEATED)), TELLS)},
    {"seq.wrap", "requests across 65535", "0 follows 65535",
     .steps = SCRIPT({.op = CRDI_SEQ, .number = 65534}, OK(STC_REGISTER), TELLS, TELLS, TELLS)},
    {"seq.refused", "a request that is refused, then the next one",
     "a request that is refused for another reason has its id counted",
     .steps = SCRIPT(GO(CONFIGURATION), NO(STC_STOP, NOT_ALLOWED_IN_THIS_STATE), TELLS)},
    {"seq.clear", "CFG_clear, then a request", "counting goes on",
     .steps = SCRIPT(GO(CONFIGURATION), TELLS, OK(CFG_CLEAR), TELLS, {.op = CRDI_COUNTED})},
    {"seq.reset", "STC_reset, then a request", "counting goes on", .needs = CRDI_N_RESET,
     .steps = SCRIPT(GO(STOPPED), OK(STC_RESET), TELLS, {.op = CRDI_COUNTED})},
    {"seq.receiver", "requests to another id", "dropped, nothing is counted",
     .steps = SCRIPT(GO(CONFIGURATION), {REQUEST(CFG_CLEAR), .want = CRDI_DROPPED, BENT(RECEIVER)},
                     {REQUEST(STC_DEREGISTER), .want = CRDI_DROPPED, BENT(RECEIVER)}, TELLS)},

    // ---- what is no request
    {"garbage.empty", "an empty PDU", "dropped",
     .steps = SCRIPT(GO(CONFIGURATION), RAW_BUT("", ALSO(REFUSED)), STATE(CONFIGURATION))},
    {"garbage.short", "one, two and three bytes of a request", "dropped",
     .steps =
         SCRIPT(GO(CONFIGURATION), RAW_BUT("80", ALSO(REFUSED)), RAW_BUT("0210", ALSO(REFUSED)),
                RAW_BUT("240100", ALSO(REFUSED)), STATE(CONFIGURATION))},
    {"garbage.types", "PDUs of types that do not exist", "dropped", .risky = true,
     .steps = SCRIPT(GO(CONFIGURATION), RAW("0001000100"), RAW("0b01000101"), RAW("2c01000101"),
                     RAW("83010001"), RAW("ff0100010203040506070809"), STATE(CONFIGURATION))},
    {"garbage.master", "responses and notifications", "dropped: they are for masters",
     .risky = true,
     .steps = SCRIPT(GO(CONFIGURATION), RAW("b0010001"), RAW("b101000102001320"), RAW("b201000100"),
                     RAW("e00100"), STATE(CONFIGURATION))},
    {"garbage.data", "data in CONFIGURATION, of an id that nobody configured", "dropped",
     .steps = SCRIPT(GO(CONFIGURATION), RAW("f0000014000000000000000000"), RAW("f100001e0000"),
                     RAW("f0"), STATE(CONFIGURATION))},

    // ---- lengths and the order of checks
    {"length.all", "every request one byte too long, and one too short", "INVALID_LENGTH",
     .steps = SCRIPT(GO(CONFIGURATION), {.op = CRDI_LENGTHS}, TELLS)},
    {"order.sequence", "a wrong sequence id and a wrong length", "INVALID_SEQUENCE_ID comes first",
     .steps = SCRIPT(
         GO(CONFIGURATION),
         NO_BUT(STC_PREPARE, INVALID_SEQUENCE_ID, .bent = CRDI_X_SEQ | CRDI_X_LONGER, .number = 9),
         TELLS)},
    {"order.length", "a wrong length in a state that does not allow the request",
     "INVALID_LENGTH comes first",
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(STC_CONFIGURE, INVALID_LENGTH, BENT(LONGER)))},
    {"order.state", "a wrong state_id and content in a state that does not allow the request",
     "PDU_NOT_ALLOWED_IN_THIS_STATE comes first",
     .steps =
         SCRIPT(GO(PREPARED), NO_BUT(CFG_TIME_RES, NOT_ALLOWED_IN_THIS_STATE, BENT(RESOLUTION)),
                NO_BUT(STC_INITIALIZE, NOT_ALLOWED_IN_THIS_STATE, BENT(STATE)))},

    // ---- configuration
    {"cfg.resolution", "CFG_time_res with what the description offers", "RSP_ack",
     .steps = SCRIPT(GO(CONFIGURATION), OK(CFG_TIME_RES))},
    {"cfg.resolution.wrong", "CFG_time_res with what it does not offer", "INVALID_TIME_RESOLUTION",
     .steps = SCRIPT(GO(CONFIGURATION),
                     NO_BUT(CFG_TIME_RES, INVALID_TIME_RESOLUTION, BENT(RESOLUTION)))},
    {"cfg.output", "CFG_output, _steps, _scope and _target_network_information", "RSP_ack each",
     .needs = CRDI_N_OUTPUT,
     .steps = SCRIPT(GO(CONFIGURATION), OK(CFG_OUTPUT), OK(CFG_STEPS), OK(CFG_SCOPE),
                     OK(CFG_TARGET_NETWORK))},
    {"cfg.output.vr", "CFG_output of a variable that does not exist, and of an input",
     "INVALID_VALUE_REFERENCE", .needs = CRDI_N_CONFIG,
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_OUTPUT, INVALID_VALUE_REFERENCE, BENT(VR)),
                     NO_BUT(CFG_OUTPUT, INVALID_VALUE_REFERENCE, BENT(CAUSALITY)))},
    {"cfg.steps.zero", "CFG_steps with 0 steps", "INVALID_STEPS", .needs = CRDI_N_OUTPUT,
     .risky = true,
     .steps =
         SCRIPT(GO(CONFIGURATION), OK(CFG_OUTPUT), NO_BUT(CFG_STEPS, INVALID_STEPS, NUMBER(0)))},
    {"cfg.steps.wrong", "CFG_output behind CFG_steps with steps that it does not allow",
     "INVALID_STEPS", .needs = CRDI_N_OUTPUT | CRDI_N_OUTPUT_STEPS, .risky = true,
     .steps = SCRIPT(GO(CONFIGURATION), OK_BUT(CFG_STEPS, NUMBER(4000000000)),
                     NO(CFG_OUTPUT, INVALID_STEPS))},
    {"cfg.scope.wrong", "CFG_scope 3", "INVALID_SCOPE", .needs = CRDI_N_OUTPUT, .risky = true,
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_SCOPE, INVALID_SCOPE, NUMBER(3)))},
    {"cfg.input", "CFG_input, CFG_scope and _source_network_information", "RSP_ack each",
     .needs = CRDI_N_INPUT,
     .steps = SCRIPT(GO(CONFIGURATION), OK(CFG_INPUT), OK_BUT(CFG_SCOPE, .id = CRDI_CONFORM_IN),
                     OK(CFG_SOURCE_NETWORK))},
    {"cfg.input.vr", "CFG_input of a variable that does not exist, and of an output",
     "INVALID_VALUE_REFERENCE", .needs = CRDI_N_CONFIG,
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_INPUT, INVALID_VALUE_REFERENCE, BENT(VR)),
                     NO_BUT(CFG_INPUT, INVALID_VALUE_REFERENCE, BENT(CAUSALITY)))},
    {"cfg.input.type", "CFG_input with a source data type that does not convert",
     "INVALID_SOURCE_DATA_TYPE, behind the value reference", .needs = CRDI_N_INPUT,
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_INPUT, INVALID_SOURCE_DATA_TYPE, BENT(TYPE)),
                     NO_BUT(CFG_INPUT, INVALID_VALUE_REFERENCE, .bent = CRDI_X_TYPE | CRDI_X_VR))},
    {"cfg.parameter", "CFG_parameter with the start value", "RSP_ack", .needs = CRDI_N_PARAMETER,
     .steps = SCRIPT(GO(CONFIGURATION), OK(CFG_PARAMETER))},
    {"cfg.parameter.vr", "CFG_parameter of a variable that does not exist",
     "INVALID_VALUE_REFERENCE", .needs = CRDI_N_PARAMETER,
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_PARAMETER, INVALID_VALUE_REFERENCE, BENT(VR)))},
    {"cfg.parameter.type", "CFG_parameter with a source data type that does not convert",
     "INVALID_SOURCE_DATA_TYPE", .needs = CRDI_N_PARAMETER,
     .steps =
         SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_PARAMETER, INVALID_SOURCE_DATA_TYPE, BENT(TYPE)))},
    {"cfg.parameter.length", "CFG_parameter with a byte too many", "INVALID_LENGTH",
     .needs = CRDI_N_PARAMETER,
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_PARAMETER, INVALID_LENGTH, BENT(LONGER)))},
    {"cfg.parameter.text", "CFG_parameter with a string beyond its maxSize", "INVALID_PAYLOAD",
     .needs = CRDI_N_TEXT,
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_PARAMETER, INVALID_PAYLOAD, BENT(LONG_TEXT),
                                               ALSO(CRD_DCP_E_INVALID_LENGTH, ACKED)))},
    {"cfg.tunable", "CFG_tunable_parameter, CFG_param_network_information", "RSP_ack each",
     .needs = CRDI_N_TUNABLE,
     .steps = SCRIPT(GO(CONFIGURATION), OK(CFG_TUNABLE_PARAMETER), OK(CFG_PARAM_NETWORK))},
    {"cfg.tunable.vr", "CFG_tunable_parameter of a variable that does not exist",
     "INVALID_VALUE_REFERENCE",
     .steps = SCRIPT(GO(CONFIGURATION),
                     NO_BUT(CFG_TUNABLE_PARAMETER, INVALID_VALUE_REFERENCE, BENT(VR)))},
    {"cfg.tunable.fixed", "CFG_tunable_parameter of a fixed parameter", "INVALID_VALUE_REFERENCE",
     .needs = CRDI_N_FIXED,
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_TUNABLE_PARAMETER, INVALID_VALUE_REFERENCE,
                                               BENT(FIXED), ALSO(ACKED)))},
    {"cfg.tunable.type", "CFG_tunable_parameter with a source data type that does not convert",
     "INVALID_SOURCE_DATA_TYPE", .needs = CRDI_N_TUNABLE,
     .steps = SCRIPT(GO(CONFIGURATION),
                     NO_BUT(CFG_TUNABLE_PARAMETER, INVALID_SOURCE_DATA_TYPE, BENT(TYPE)))},
    {"cfg.network.transport", "network information of a transport that is not offered",
     "INVALID_TRANSPORT_PROTOCOL", .needs = CRDI_N_CONFIG,
     .steps = SCRIPT(GO(CONFIGURATION),
                     NO_BUT(CFG_TARGET_NETWORK, INVALID_TRANSPORT_PROTOCOL, BENT(TRANSPORT),
                            ALSO(CRD_DCP_E_TRANSPORT_NOT_SUPPORTED, CRD_DCP_E_INVALID_LENGTH)),
                     NO_BUT(CFG_SOURCE_NETWORK, INVALID_TRANSPORT_PROTOCOL, BENT(TRANSPORT),
                            ALSO(CRD_DCP_E_TRANSPORT_NOT_SUPPORTED, CRD_DCP_E_INVALID_LENGTH)))},
    {"cfg.network.port", "CFG_source_network_information with a port that is not listed",
     "INVALID_NETWORK_INFORMATION", .needs = CRDI_N_CONFIG | CRDI_N_OTHER_PORT,
     .steps = SCRIPT(GO(CONFIGURATION),
                     NO_BUT(CFG_SOURCE_NETWORK, INVALID_NETWORK_INFORMATION, BENT(PORT)))},
    {"cfg.network.parameter-port", "CFG_param_network_information with a port that is not listed",
     "INVALID_NETWORK_INFORMATION", .needs = CRDI_N_PARAMETER_PORT,
     .steps = SCRIPT(GO(CONFIGURATION),
                     NO_BUT(CFG_PARAM_NETWORK, INVALID_NETWORK_INFORMATION, BENT(PORT)))},
    {"cfg.unsupported", "CFG_input, _output, _target and _source_network_information",
     "NOT_SUPPORTED_PDU", .needs = CRDI_N_NO_CONFIG,
     .steps = SCRIPT(GO(CONFIGURATION), NO(CFG_INPUT, PDU_NOT_SUPPORTED),
                     NO(CFG_OUTPUT, PDU_NOT_SUPPORTED), NO(CFG_TARGET_NETWORK, PDU_NOT_SUPPORTED),
                     NO(CFG_SOURCE_NETWORK, PDU_NOT_SUPPORTED))},
    {"cfg.clear", "an input without network, CFG_clear, then the usual configuration",
     "everything is forgotten: it can be prepared", .needs = CRDI_N_INPUT,
     .steps = SCRIPT(GO(CONFIGURATION), OK_BUT(CFG_INPUT, .id = 77), OK(CFG_CLEAR), CONFIG(0),
                     OK(STC_PREPARE))},

    // ---- logs
    {"log.unsupported", "CFG_logging and INF_log where there is no log", "NOT_SUPPORTED_PDU",
     .needs = CRDI_N_NO_LOG,
     .steps = SCRIPT(GO(CONFIGURATION), NO(CFG_LOGGING, PDU_NOT_SUPPORTED),
                     NO(INF_LOG, PDU_NOT_SUPPORTED))},
    {"log.level", "CFG_logging with level 9", "INVALID_LOG_LEVEL", .needs = CRDI_N_LOG_REQUEST,
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_LOGGING, INVALID_LOG_LEVEL, NUMBER(0x0901)))},
    {"log.category", "CFG_logging and INF_log with a category that is not declared",
     "INVALID_LOG_CATEGORY", .needs = CRDI_N_LOG_REQUEST,
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_LOGGING, INVALID_LOG_CATEGORY, BENT(CATEGORY)),
                     NO_BUT(INF_LOG, INVALID_LOG_CATEGORY, BENT(CATEGORY)))},
    {"log.mode", "CFG_logging with mode 3", "INVALID_LOG_MODE", .needs = CRDI_N_LOG, .risky = true,
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_LOGGING, INVALID_LOG_MODE, NUMBER(0x0303)))},
    {"log.no-request", "CFG_logging on request where that is not provided",
     "NOT_SUPPORTED_LOG_ON_REQUEST", .needs = CRDI_N_LOG | CRDI_N_NO_LOG_REQUEST,
     .steps = SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_LOGGING, NO_LOG_ON_REQUEST, NUMBER(0x0301)))},
    {"log.no-notification", "CFG_logging on notification where that is not provided",
     "NOT_SUPPORTED_LOG_ON_NOTIFICATION", .needs = CRDI_N_LOG | CRDI_N_NO_LOG_NOTIFICATION,
     .risky = true,
     .steps =
         SCRIPT(GO(CONFIGURATION), NO_BUT(CFG_LOGGING, NO_LOG_ON_NOTIFICATION, NUMBER(0x0302)))},
    {"log.notification", "CFG_logging on notification of all categories and levels", "RSP_ack",
     .needs = CRDI_N_LOG_NOTIFICATION, .risky = true,
     .steps = SCRIPT(GO(CONFIGURATION), OK_BUT(CFG_LOGGING, NUMBER(0x0002)),
                     OK_BUT(CFG_LOGGING, NUMBER(0x0402)))},
    {"log.request", "CFG_logging on request, a run, INF_log", "RSP_log_ack with whole entries",
     .needs = CRDI_N_LOG_REQUEST,
     .steps = SCRIPT(GO(CONFIGURATION), OK_BUT(CFG_LOGGING, NUMBER(0x0301)),
                     OK_BUT(CFG_LOGGING, NUMBER(0x0201)), GO(RUNNING),
                     {REQUEST(INF_LOG), .want = CRDI_LOG_ACK})},

    // ---- configurations that are not complete
    {"prepare.gap-input", "a gap in the positions of an input group",
     "INCOMPLETE_CONFIG_GAP_INPUT_POS", .needs = CRDI_N_INPUT,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(0), OK_BUT(CFG_INPUT, BENT(POS)),
                     NO(STC_PREPARE, GAP_INPUT_POS))},
    {"prepare.gap-output", "a gap in the positions of an output group",
     "INCOMPLETE_CONFIG_GAP_OUTPUT_POS", .needs = CRDI_N_OUTPUT,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(0), OK_BUT(CFG_OUTPUT, BENT(POS)),
                     NO(STC_PREPARE, GAP_OUTPUT_POS))},
    {"prepare.gap-tunable", "a gap in the positions of a parameter group",
     "INCOMPLETE_CONFIG_GAP_TUNABLE_POS", .needs = CRDI_N_TUNABLE,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(0), OK_BUT(CFG_TUNABLE_PARAMETER, BENT(POS)),
                     NO(STC_PREPARE, GAP_TUNABLE_POS))},
    {"prepare.no-source", "an input group without network information",
     "INCOMPLETE_CONFIG_NW_INFO_INPUT", .needs = CRDI_N_INPUT,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(CRDI_P_SOURCE), NO(STC_PREPARE, NO_NETWORK_INPUT))},
    {"prepare.no-target", "an output group without network information",
     "INCOMPLETE_CONFIG_NW_INFO_OUTPUT", .needs = CRDI_N_OUTPUT,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(CRDI_P_TARGET), NO(STC_PREPARE, NO_NETWORK_OUTPUT))},
    {"prepare.no-tunable-source", "a parameter group without network information",
     "INCOMPLETE_CONFIG_NW_INFO_TUNABLE", .needs = CRDI_N_TUNABLE,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(CRDI_P_TUNABLE_SOURCE),
                     NO(STC_PREPARE, NO_NETWORK_TUNABLE))},
    {"prepare.no-steps", "an output group without steps", "INCOMPLETE_CONFIG_STEPS",
     .needs = CRDI_N_OUTPUT, .modes = CRDI_IN_REAL_TIME,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(CRDI_P_STEPS), NO(STC_PREPARE, NO_STEPS))},
    {"prepare.no-resolution", "no time resolution", "INCOMPLETE_CONFIG_TIME_RESOLUTION",
     .needs = CRDI_N_FREE_RESOLUTION,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(CRDI_P_RESOLUTION),
                     NO_BUT(STC_PREPARE, NO_TIME_RESOLUTION, ALSO(ACKED)))},
    {"prepare.no-scope", "an input group without scope", "INCOMPLETE_CONFIG_SCOPE",
     .needs = CRDI_N_INPUT,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(CRDI_P_INPUT_SCOPE), NO(STC_PREPARE, NO_SCOPE))},
    {"prepare.order", "gap, missing network and missing scope together",
     "gaps come first, then networks, then scopes", .needs = CRDI_N_INPUT | CRDI_N_OUTPUT,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(CRDI_P_TARGET | CRDI_P_INPUT_SCOPE),
                     NO(STC_PREPARE, NO_NETWORK_OUTPUT), OK_BUT(CFG_INPUT, BENT(POS)),
                     NO(STC_PREPARE, GAP_INPUT_POS),
                     NO_BUT(STC_PREPARE, INVALID_STATE_ID, BENT(STATE)))},

    // ---- every request in every state that can be stayed in
    {"state.CONFIGURATION", "what this state does not allow; state changes with another state_id",
     "PDU_NOT_ALLOWED_IN_THIS_STATE; INVALID_STATE_ID",
     .steps = SCRIPT(GO(CONFIGURATION), {.op = CRDI_SWEEP}, TELLS)},
    {"state.PREPARED", "what this state does not allow; state changes with another state_id",
     "PDU_NOT_ALLOWED_IN_THIS_STATE; INVALID_STATE_ID",
     .steps = SCRIPT(GO(PREPARED), {.op = CRDI_SWEEP}, TELLS)},
    {"state.CONFIGURED", "what this state does not allow; state changes with another state_id",
     "PDU_NOT_ALLOWED_IN_THIS_STATE; INVALID_STATE_ID",
     .steps = SCRIPT(GO(CONFIGURED), {.op = CRDI_SWEEP}, TELLS)},
    {"state.INITIALIZED", "what this state does not allow; state changes with another state_id",
     "PDU_NOT_ALLOWED_IN_THIS_STATE; INVALID_STATE_ID",
     .steps = SCRIPT(GO(INITIALIZED), {.op = CRDI_SWEEP}, TELLS)},
    {"state.SYNCHRONIZED", "what this state does not allow; state changes with another state_id",
     "PDU_NOT_ALLOWED_IN_THIS_STATE; INVALID_STATE_ID",
     .steps = SCRIPT(GO(SYNCHRONIZED), {.op = CRDI_SWEEP}, TELLS)},
    {"state.RUNNING", "what this state does not allow; state changes with another state_id",
     "PDU_NOT_ALLOWED_IN_THIS_STATE; INVALID_STATE_ID",
     .steps = SCRIPT(GO(RUNNING), {.op = CRDI_SWEEP}, TELLS)},
    {"state.COMPUTED", "what this state does not allow; state changes with another state_id",
     "PDU_NOT_ALLOWED_IN_THIS_STATE; INVALID_STATE_ID", .modes = CRDI_IN_NRT,
     .steps = SCRIPT(GO(COMPUTED), {.op = CRDI_SWEEP}, TELLS)},
    {"state.STOPPED", "what this state does not allow; state changes with another state_id",
     "PDU_NOT_ALLOWED_IN_THIS_STATE; INVALID_STATE_ID",
     .steps = SCRIPT(GO(STOPPED), {.op = CRDI_SWEEP}, TELLS)},
    {"state.ERRORRESOLVED", "what this state does not allow; state changes with another state_id",
     "PDU_NOT_ALLOWED_IN_THIS_STATE; INVALID_STATE_ID", .needs = CRDI_N_ERROR,
     .steps = SCRIPT(GO(ERRORRESOLVED), {.op = CRDI_SWEEP}, TELLS)},

    // ---- STC_stop
    {"stop.PREPARED", "STC_stop", "RSP_ack, NTF STOPPING, NTF STOPPED",
     .steps = SCRIPT(GO(PREPARED), OK(STC_STOP), TELLS)},
    {"stop.CONFIGURED", "STC_stop", "RSP_ack, NTF STOPPING, NTF STOPPED",
     .steps = SCRIPT(GO(CONFIGURED), OK(STC_STOP), TELLS)},
    {"stop.INITIALIZED", "STC_stop", "RSP_ack, NTF STOPPING, NTF STOPPED",
     .steps = SCRIPT(GO(INITIALIZED), OK(STC_STOP), TELLS)},
    {"stop.SYNCHRONIZED", "STC_stop", "RSP_ack, NTF STOPPING, NTF STOPPED",
     .steps = SCRIPT(GO(SYNCHRONIZED), OK(STC_STOP), TELLS)},
    {"stop.RUNNING", "STC_stop", "RSP_ack, NTF STOPPING, NTF STOPPED",
     .steps = SCRIPT(GO(RUNNING), OK(STC_STOP), TELLS)},
    {"stop.COMPUTED", "STC_stop", "RSP_ack, NTF STOPPING, NTF STOPPED", .modes = CRDI_IN_NRT,
     .steps = SCRIPT(GO(COMPUTED), OK(STC_STOP), TELLS)},

    // ---- initialisation
    {"init.loop", "STC_initialize and STC_send_outputs, twice",
     "INITIALIZING, INITIALIZED, SENDING_I with data, CONFIGURED", .needs = CRDI_N_OUTPUT,
     .steps = SCRIPT(GO(CONFIGURED), OK(STC_INITIALIZE), OK(STC_SEND_OUTPUTS), OUTPUT(1),
                     OK(STC_INITIALIZE), OK(STC_SEND_OUTPUTS), OUTPUT(1), TELLS)},
    {"scope.initialization", "a group whose scope is Initialization, in NRT",
     "data in SENDING_I, none in SENDING_D", .needs = CRDI_N_OUTPUT, .modes = CRDI_IN_NRT,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(CRDI_P_OUTPUT_SCOPE), OK_BUT(CFG_SCOPE, NUMBER(1)),
                     GO(INITIALIZED), OK(STC_SEND_OUTPUTS), OUTPUT(1), GO(COMPUTED),
                     OK(STC_SEND_OUTPUTS), SILENT)},
    {"scope.run", "a group whose scope is Run, in NRT", "none in SENDING_I, data in SENDING_D",
     .needs = CRDI_N_OUTPUT, .modes = CRDI_IN_NRT,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(CRDI_P_OUTPUT_SCOPE), OK_BUT(CFG_SCOPE, NUMBER(2)),
                     GO(INITIALIZED), OK(STC_SEND_OUTPUTS), SILENT, GO(COMPUTED),
                     OK(STC_SEND_OUTPUTS), OUTPUT(1))},
    {"scope.real-time", "a group whose scope is Initialization, in SRT or HRT",
     "no data while it runs", .needs = CRDI_N_OUTPUT, .modes = CRDI_IN_REAL_TIME,
     .steps = SCRIPT(GO(CONFIGURATION), CONFIG(CRDI_P_OUTPUT_SCOPE), OK_BUT(CFG_SCOPE, NUMBER(1)),
                     GO(RUNNING), PAUSE(100), SILENT)},

    // ---- non-real-time
    {"nrt.steps", "three times STC_do_step and STC_send_outputs",
     "COMPUTING, COMPUTED, SENDING_D with data, RUNNING", .modes = CRDI_IN_NRT,
     .steps = SCRIPT(GO(RUNNING), OK(STC_DO_STEP), OK(STC_SEND_OUTPUTS), OK(STC_DO_STEP),
                     OK(STC_SEND_OUTPUTS), OK(STC_DO_STEP), OK(STC_SEND_OUTPUTS), TELLS)},
    {"nrt.outputs", "data of a step", "one PDU, its sequence ids one by one",
     .needs = CRDI_N_OUTPUT, .modes = CRDI_IN_NRT,
     .steps = SCRIPT(GO(COMPUTED), OK(STC_SEND_OUTPUTS), OUTPUT(1), OK(STC_DO_STEP),
                     OK(STC_SEND_OUTPUTS), OUTPUT(1))},
    {"nrt.synchronized", "STC_do_step in SYNCHRONIZED", "back to SYNCHRONIZED behind SENDING_D",
     .modes = CRDI_IN_NRT,
     .steps = SCRIPT(GO(SYNCHRONIZED), OK(STC_DO_STEP), OK(STC_SEND_OUTPUTS), STATE(SYNCHRONIZED))},
    {"nrt.steps.zero", "STC_do_step with 0 steps", "INVALID_STEPS", .modes = CRDI_IN_NRT,
     .steps = SCRIPT(GO(RUNNING), NO_BUT(STC_DO_STEP, INVALID_STEPS, NUMBER(0)), STATE(RUNNING))},
    {"nrt.steps.wrong", "STC_do_step with more steps than maxSteps", "INVALID_STEPS",
     .needs = CRDI_N_MOST_STEPS, .modes = CRDI_IN_NRT,
     .steps = SCRIPT(GO(RUNNING), NO_BUT(STC_DO_STEP, INVALID_STEPS, NUMBER(UINT32_MAX)))},
    {"nrt.steps.vary", "STC_do_step with other steps than before", "NOT_SUPPORTED_VARIABLE_STEPS",
     .needs = CRDI_N_FIXED_STEPS, .modes = CRDI_IN_NRT,
     .steps = SCRIPT(GO(COMPUTED), OK(STC_SEND_OUTPUTS),
                     NO_BUT(STC_DO_STEP, NO_VARIABLE_STEPS, NUMBER(UINT32_MAX - 1)))},
    {"nrt.start-time", "STC_run with a start time of 1970", "RSP_ack: NRT ignores it",
     .modes = CRDI_IN_NRT, .steps = SCRIPT(GO(CONFIGURED), OK_BUT(STC_RUN, BENT(PAST)))},

    // ---- real time
    {"rt.run", "a run by the clock", "data come by themselves, their sequence ids one by one",
     .needs = CRDI_N_OUTPUT, .modes = CRDI_IN_REAL_TIME,
     .steps = SCRIPT(GO(RUNNING), OUTPUT(3), OK(STC_STOP))},
    {"rt.past", "STC_run with a start time in the past", "INVALID_START_TIME",
     .modes = CRDI_IN_REAL_TIME,
     .steps =
         SCRIPT(GO(CONFIGURED), NO_BUT(STC_RUN, INVALID_START_TIME, BENT(PAST)), STATE(CONFIGURED),
                GO(SYNCHRONIZED), NO_BUT(STC_RUN, INVALID_START_TIME, BENT(PAST)))},
    {"rt.future", "STC_run with a start time in two seconds",
     "SYNCHRONIZING at once, SYNCHRONIZED by itself", .modes = CRDI_IN_REAL_TIME,
     .steps = SCRIPT(GO(CONFIGURED), OK_BUT(STC_RUN, BENT(FUTURE)), STATE(SYNCHRONIZED))},
    {"rt.do-step", "STC_do_step outside of NRT", "NOT_SUPPORTED_PDU", .modes = CRDI_IN_REAL_TIME,
     .steps = SCRIPT(GO(RUNNING), NO_BUT(STC_DO_STEP, PDU_NOT_SUPPORTED,
                                         ALSO(CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE)))},

    // ---- data
    {"data.input", "inputs in CONFIGURED, INITIALIZED and RUNNING", "taken without a word",
     .needs = CRDI_N_INPUT,
     .steps = SCRIPT(GO(CONFIGURED), DATA(INPUT_OUTPUT, 0), GO(INITIALIZED), DATA(INPUT_OUTPUT, 1),
                     GO(RUNNING), DATA(INPUT_OUTPUT, 2), PAUSE(50), STATE(RUNNING))},
    {"data.first", "inputs whose sequence ids begin anywhere and go on across 65535",
     "the first one counts, 0 follows 65535", .needs = CRDI_N_INPUT,
     .steps = SCRIPT(GO(RUNNING), DATA(INPUT_OUTPUT, 65534), DATA(INPUT_OUTPUT, 65535),
                     DATA(INPUT_OUTPUT, 0), DATA(INPUT_OUTPUT, 1), PAUSE(50), STATE(RUNNING))},
    {"data.old", "inputs with an old and a repeated sequence id", "dropped", .needs = CRDI_N_INPUT,
     .steps =
         SCRIPT(GO(RUNNING), DATA(INPUT_OUTPUT, 7), DATA(INPUT_OUTPUT, 7), DATA(INPUT_OUTPUT, 3),
                PAUSE(50), {.op = CRDI_STATE, .state = CRD_DCP_RUNNING, ALSO(ACKED)})},
    {"data.length", "inputs with a byte too many and one too few, then whole ones", "dropped",
     .needs = CRDI_N_INPUT,
     .steps = SCRIPT(GO(RUNNING), DATA_BUT(INPUT_OUTPUT, 0, BENT(LONGER)),
                     DATA_BUT(INPUT_OUTPUT, 0, BENT(SHORTER)), DATA(INPUT_OUTPUT, 0), PAUSE(50),
                     STATE(RUNNING))},
    {"data.unknown", "data of an id that nobody configured", "dropped",
     .steps = SCRIPT(GO(RUNNING), DATA_BUT(INPUT_OUTPUT, 0, .id = 999),
                     DATA_BUT(PARAMETER, 0, .id = 999), PAUSE(50), STATE(RUNNING))},
    {"data.stopped", "inputs in STOPPED", "ignored", .needs = CRDI_N_INPUT,
     .steps = SCRIPT(GO(RUNNING), OK(STC_STOP), DATA(INPUT_OUTPUT, 0), PAUSE(50), STATE(STOPPED))},
    {"data.parameter", "a tunable parameter in RUNNING", "taken without a word",
     .needs = CRDI_N_TUNABLE,
     .steps =
         SCRIPT(GO(RUNNING), DATA(PARAMETER, 0), DATA(PARAMETER, 1), PAUSE(50), STATE(RUNNING))},
    {"data.missed.few", "as many PDUs missed as maxConsecMissedPdus allows", "no error",
     .needs = CRDI_N_MISSED,
     .steps =
         SCRIPT(GO(RUNNING), DATA(INPUT_OUTPUT, 100), DATA_BUT(INPUT_OUTPUT, 101, BENT(NUMBER)),
                PAUSE(50), {.op = CRDI_STATE, .state = CRD_DCP_RUNNING, ALSO(ACKED)})},
    {"data.missed.many", "one more than maxConsecMissedPdus missed",
     "ERRORHANDLING, ERRORRESOLVED, INF_error tells PROPERTY_VIOLATED", .needs = CRDI_N_MISSED,
     .steps = SCRIPT(GO(RUNNING), DATA(INPUT_OUTPUT, 100),
                     DATA_BUT(INPUT_OUTPUT, 102, BENT(NUMBER)), NOTIFY(ERRORRESOLVED),
                     {REQUEST(INF_ERROR), .want = CRDI_ERROR_ACK,
                      .code = CRD_DCP_E_PROPERTY_VIOLATED, ALSO(ACKED)},
                     OK(STC_DEREGISTER))},

    // ---- heartbeat, error, reset
    {"heartbeat.kept", "INF_state often enough", "no error", .needs = CRDI_N_HEARTBEAT,
     .steps = SCRIPT(GO(CONFIGURATION), PAUSE(0), STATE(CONFIGURATION))},
    {"heartbeat.missed", "no INF_state for longer than the heartbeat",
     "ERRORHANDLING, ERRORRESOLVED, INF_error tells HEARTBEAT_MISSED", .needs = CRDI_N_HEARTBEAT,
     .steps =
         SCRIPT(GO(CONFIGURATION), {.op = CRDI_PAUSE, .without = 1}, NOTIFY(ERRORRESOLVED),
                {REQUEST(INF_ERROR), .want = CRDI_ERROR_ACK, .code = CRD_DCP_E_HEARTBEAT_MISSED},
                OK(STC_DEREGISTER))},
    {"error.reset", "STC_reset in ERRORRESOLVED, then a whole run",
     "CONFIGURATION, and everything works again", .needs = CRDI_N_ERROR | CRDI_N_RESET,
     .steps = SCRIPT(GO(ERRORRESOLVED), OK(STC_RESET), GO(RUNNING), OK(STC_STOP), TELLS)},
    {"error.deregister", "STC_deregister in ERRORRESOLVED", "RSP_ack, NTF ALIVE",
     .needs = CRDI_N_ERROR, .steps = SCRIPT(GO(ERRORRESOLVED), OK(STC_DEREGISTER), TELLS)},
    {"reset.stopped", "STC_reset in STOPPED, then a whole run",
     "CONFIGURATION with nothing configured, and everything works again", .needs = CRDI_N_RESET,
     .steps = SCRIPT(GO(STOPPED), OK(STC_RESET), GO(RUNNING), OK(STC_STOP), TELLS)},
    {"reset.forgets", "STC_reset, then STC_prepare with an input group and nothing else",
     "the network information of before is forgotten", .needs = CRDI_N_RESET | CRDI_N_INPUT,
     .steps = SCRIPT(GO(STOPPED), OK(STC_RESET), OK(CFG_TIME_RES), OK(CFG_INPUT),
                     NO(STC_PREPARE, NO_NETWORK_INPUT))},
    {"reset.unsupported", "STC_reset without canHandleReset", "NOT_SUPPORTED_PDU",
     .needs = CRDI_N_NO_RESET,
     .steps = SCRIPT(GO(STOPPED), NO_BUT(STC_RESET, PDU_NOT_SUPPORTED,
                                         ALSO(CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE, ACKED)))},
    {"deregister.stopped", "STC_deregister in STOPPED, then a whole run",
     "RSP_ack, NTF ALIVE, and everything works again",
     .steps = SCRIPT(GO(STOPPED), OK(STC_DEREGISTER), GO(RUNNING), OK(STC_STOP), OK(STC_DEREGISTER),
                     TELLS)},
};

const int crdi_conform_case_count = (int)(sizeof crdi_conform_cases / sizeof *crdi_conform_cases);
