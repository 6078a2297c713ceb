// The description of a motor on a bench: all types, an array that a structural parameter sizes,
// fixed and tunable parameters, logs.
#pragma once
#include <math.h>
#include <string.h>

#include "shared/dcp.h"

enum {
    RIG_U,
    RIG_TORQUE,
    RIG_TEXT,
    RIG_BLOB,
    RIG_MODE,
    RIG_PROFILE,
    RIG_SPEED,
    RIG_CURRENT,
    RIG_TICKS,
    RIG_STATUS,
    RIG_BLOB_OUT,
    RIG_TEMPS,
    RIG_R,
    RIG_KP,
    RIG_NAME,
    RIG_LIMIT,
    RIG_N_TEMPS,
    RIG_VARIABLES
};

#define RIG_HEAD(n, r, t, s) .name = n, .vr = r, .type = CRD_DCP_##t, .start = s
#define RIG_LIMITS(low, high, bytes) .min = low, .max = high, .max_size = bytes
#define RIG_FREE RIG_LIMITS(NAN, NAN, UINT32_MAX)
#define RIG_IN .causality = CRD_INPUT
#define RIG_OUT .causality = CRD_OUTPUT, .default_steps = 1, .min_steps = 1, .max_steps = 1000
#define RIG_PAR(v) .causality = CRD_PARAMETER, .variability = v

static const crd_dcp_variable rig_variables[RIG_VARIABLES] = {
    [RIG_U] = {RIG_HEAD("drive.u_dc", 1, FLOAT64, "0.0"), RIG_IN, RIG_LIMITS(-48, 48, 0)},
    [RIG_TORQUE] = {RIG_HEAD("load.torque", 2, FLOAT64, "0.0"), RIG_IN, RIG_FREE,
                    .has_max_missed = true, .max_missed = 5},
    [RIG_TEXT] = {RIG_HEAD("cmd.text", 3, STRING, ""), RIG_IN, RIG_LIMITS(NAN, NAN, 64)},
    [RIG_BLOB] = {RIG_HEAD("cmd.blob", 4, BINARY, "00"), RIG_IN, RIG_LIMITS(NAN, NAN, 64)},
    [RIG_MODE] = {RIG_HEAD("cmd.mode", 5, UINT8, "0"), RIG_IN, RIG_LIMITS(0, 3, 0)},
    [RIG_PROFILE] = {RIG_HEAD("cmd.profile", 6, FLOAT32, "0 0 0"), RIG_IN, RIG_FREE, .rank = 1,
                     .dimensions = {3}},
    [RIG_SPEED] = {RIG_HEAD("shaft.speed", 11, FLOAT64, "0.0"), RIG_OUT, RIG_FREE},
    [RIG_CURRENT] = {RIG_HEAD("drive.current", 12, FLOAT32, "0.0"), RIG_OUT, RIG_FREE},
    [RIG_TICKS] = {RIG_HEAD("bench.ticks", 13, UINT32, "0"), RIG_OUT, RIG_FREE},
    [RIG_STATUS] = {RIG_HEAD("bench.status", 14, STRING, NULL), RIG_OUT, RIG_LIMITS(NAN, NAN, 64)},
    [RIG_BLOB_OUT] = {RIG_HEAD("bench.blob", 15, BINARY, NULL), RIG_OUT, RIG_LIMITS(NAN, NAN, 64)},
    [RIG_TEMPS] = {RIG_HEAD("bench.temps", 16, FLOAT32, "293.15 293.15 293.15"), RIG_OUT, RIG_FREE,
                   .rank = 1, .linked = {31}, .is_linked = {true}},
    [RIG_R] = {RIG_HEAD("drive.R", 21, FLOAT64, "0.5"), RIG_PAR(CRD_FIXED),
               RIG_LIMITS(0.01, NAN, 0)},
    [RIG_KP] = {RIG_HEAD("ctrl.kp", 22, FLOAT64, "1.0"), RIG_PAR(CRD_TUNABLE), RIG_FREE},
    [RIG_NAME] = {RIG_HEAD("bench.name", 23, STRING, "bench A"), RIG_PAR(CRD_TUNABLE),
                  RIG_LIMITS(NAN, NAN, 32)},
    [RIG_LIMIT] = {RIG_HEAD("ctrl.limit", 24, INT16, "100"), RIG_PAR(CRD_TUNABLE), RIG_FREE},
    [RIG_N_TEMPS] = {RIG_HEAD("bench.nTemps", 31, UINT16, "3"),
                     .causality = CRD_STRUCTURAL_PARAMETER, .variability = CRD_FIXED, RIG_FREE},
};

static const uint8_t rig_uuid[16] = {0x6f, 0x1d, 0x2c, 0x3b, 0x4a, 0x59, 0x4e, 0x68,
                                     0x8f, 0x70, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab};

static inline crd_dcp_description rig_description(void)
{
    static const crd_dcp_resolution resolutions[] = {
        {.numerator = 1, .numerator_to = 1, .denominator = 1000, .recommended = true},
        {.numerator = 1, .numerator_to = 100, .denominator = 1000},
    };
    static const crd_dcp_ports ports[] = {{2048, 65535}};
    static const crd_dcp_log_category categories[] = {{.id = 1, .name = "BENCH"}};
    static const uint8_t two_floats[] = {CRD_DCP_FLOAT64, CRD_DCP_FLOAT64};
    static const uint8_t text[] = {CRD_DCP_STRING};
    static const crd_dcp_log_template templates[] = {
        {.id = 1,
         .category = 1,
         .level = 3,
         .message = "t = %float64 s, speed = %float64 rad/s",
         .arguments = two_floats,
         .argument_count = 2},
        {.id = 2,
         .category = 1,
         .level = 2,
         .message = "status %string",
         .arguments = text,
         .argument_count = 1},
    };
    const crd_dcp_endpoint ip = {.offered = true,
                                 .max_pdu_size = 65507,
                                 .host = "127.0.0.1",
                                 .port = 8080,
                                 .has_data = true,
                                 .has_parameter = true,
                                 .data = ports,
                                 .parameter = ports,
                                 .data_count = 1,
                                 .parameter_count = 1};
    crd_dcp_description d = {.file = "rig.dcpx",
                             .name = "MotorTestBench",
                             .major = 1,
                             .minor = 0,
                             .srt = true,
                             .nrt = true,
                             .nrt_default_steps = 1,
                             .nrt_min_steps = 1,
                             .nrt_max_steps = 100,
                             .resolutions = resolutions,
                             .resolution_count = 2,
                             .udp = ip,
                             .tcp = ip,
                             .can_accept_config = true,
                             .can_reset = true,
                             .can_vary_steps = true,
                             .can_log_on_request = true,
                             .can_log_on_notification = true,
                             .variables = rig_variables,
                             .variable_count = RIG_VARIABLES,
                             .categories = categories,
                             .category_count = 1,
                             .templates = templates,
                             .template_count = 2};
    memcpy(d.uuid, rig_uuid, sizeof d.uuid);
    return d;
}
