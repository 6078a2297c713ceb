#include "fmi/states.h"

// Columns, one bit each. INTERMEDIATE is inside fmi3DoStep: there the FMU expects nothing but
// values. ERROR is FMI 2's state "error" and FMI 3's "Terminated" when an Error led there.
enum {
    INST = 1 << CRD_FMI_INSTANTIATED,
    CONF = 1 << CRD_FMI_CONFIGURATION,
    RECO = 1 << CRD_FMI_RECONFIGURATION,
    INIT = 1 << CRD_FMI_INITIALIZATION,
    STEP = 1 << CRD_FMI_STEP,
    EVNT = 1 << CRD_FMI_EVENT,
    CONT = 1 << CRD_FMI_CONTINUOUS,
    INTM = 1 << CRD_FMI_INTERMEDIATE,
    FAIL = 1 << CRD_FMI_STEP_FAILED,
    TERM = 1 << CRD_FMI_TERMINATED,
    ERRO = 1 << CRD_FMI_ERROR,

    // FMI 2.0.4, and FMI 1.0 as far as it goes
    ALL2 = INST | INIT | STEP | FAIL | TERM | ERRO,
    GET2 = INIT | STEP | FAIL | TERM | ERRO, // after an Error for debugging only
    SET2 = INST | INIT | STEP,
    ASK2 = STEP | FAIL | TERM,
    ALLX = INST | INIT | EVNT | CONT | TERM | ERRO, // Model Exchange
    GETX = INIT | EVNT | CONT | TERM | ERRO,
    GET1 = STEP | FAIL | TERM | ERRO, // FMI 1.0 has no values before they are initialised
    GETM = EVNT | CONT | TERM | ERRO,

    // FMI 3.0.2
    ALL3 = INST | CONF | RECO | INIT | STEP | EVNT | TERM | ERRO,
    GET3 = INST | INIT | STEP | EVNT | INTM | TERM | ERRO,
    SET3 = INST | CONF | RECO | INIT | STEP | EVNT,
    DER3 = INIT | STEP | EVNT | TERM | ERRO,
    DEP3 = INST | INIT | STEP | EVNT | INTM | TERM | ERRO,
    ALLY = INST | CONF | RECO | INIT | EVNT | CONT | TERM | ERRO, // Model Exchange
    GETY = INST | INIT | EVNT | CONT | TERM | ERRO,
    SETY = INST | CONF | RECO | INIT | EVNT,
    DERY = INIT | EVNT | CONT | TERM | ERRO,
};

// In which states a function may be called, by interface.
typedef struct when {
    uint16_t cosimulation, exchange;
} when;

// FMI 1.0 by the functions of FMI 2.0: the state machines of the two documents, for Co-Simulation
// and for Model Exchange. Its instances know no modes; those here are ours and say what an importer
// is doing. Values can be read after fmiInitialize..., also after the end.
static const when table1[CRDI_FMI2_COUNT] = {
    [CRDI_FMI2_GetTypesPlatform] = {ALL2, ALLX},
    [CRDI_FMI2_GetVersion] = {ALL2, ALLX},
    [CRDI_FMI2_SetDebugLogging] = {ALL2, ALLX},
    [CRDI_FMI2_FreeInstance] = {ALL2, ALLX},
    [CRDI_FMI2_EnterInitializationMode] = {INST, INST},
    [CRDI_FMI2_ExitInitializationMode] = {INIT, INIT},
    [CRDI_FMI2_Terminate] = {STEP | FAIL, EVNT | CONT},
    [CRDI_FMI2_Reset] = {ALL2, 0},
    [CRDI_FMI2_GetReal] = {GET1, GETM},
    [CRDI_FMI2_GetInteger] = {GET1, GETM},
    [CRDI_FMI2_GetBoolean] = {GET1, GETM},
    [CRDI_FMI2_GetString] = {GET1, GETM},
    [CRDI_FMI2_SetReal] = {SET2, INST | INIT | EVNT | CONT},
    [CRDI_FMI2_SetInteger] = {SET2, INST | INIT | EVNT},
    [CRDI_FMI2_SetBoolean] = {SET2, INST | INIT | EVNT},
    [CRDI_FMI2_SetString] = {SET2, INST | INIT | EVNT},
    [CRDI_FMI2_SetTime] = {0, EVNT | CONT},
    [CRDI_FMI2_SetContinuousStates] = {0, CONT},
    [CRDI_FMI2_EnterEventMode] = {0, EVNT | CONT},
    [CRDI_FMI2_NewDiscreteStates] = {0, EVNT},
    [CRDI_FMI2_EnterContinuousTimeMode] = {0, EVNT},
    [CRDI_FMI2_CompletedIntegratorStep] = {0, CONT},
    [CRDI_FMI2_GetDerivatives] = {0, GETM},
    [CRDI_FMI2_GetEventIndicators] = {0, GETM},
    [CRDI_FMI2_GetContinuousStates] = {0, GETM},
    [CRDI_FMI2_GetNominalsOfContinuousStates] = {0, GETM},
    [CRDI_FMI2_SetRealInputDerivatives] = {STEP, 0},
    [CRDI_FMI2_GetRealOutputDerivatives] = {GET1, 0},
    [CRDI_FMI2_DoStep] = {STEP, 0},
    [CRDI_FMI2_GetStatus] = {ASK2, 0},
    [CRDI_FMI2_GetRealStatus] = {ASK2, 0},
    [CRDI_FMI2_GetIntegerStatus] = {ASK2, 0},
    [CRDI_FMI2_GetBooleanStatus] = {ASK2, 0},
    [CRDI_FMI2_GetStringStatus] = {ASK2, 0},
};

// FMI 2.0.4, the tables in 4.2.4 for Co-Simulation and in 3.2.3 for Model Exchange, where in
// continuous-time mode only continuous inputs may be set, hence only reals. No row: Instantiate
// makes a new instance, CancelStep needs a step in progress.
static const when table2[CRDI_FMI2_COUNT] = {
    [CRDI_FMI2_GetTypesPlatform] = {ALL2, ALLX},                                       // 2.1.4
    [CRDI_FMI2_GetVersion] = {ALL2, ALLX},                                             // 2.1.4
    [CRDI_FMI2_SetDebugLogging] = {ALL2, ALLX},                                        // 2.1.5
    [CRDI_FMI2_FreeInstance] = {ALL2, ALLX},                                           // 2.1.5
    [CRDI_FMI2_SetupExperiment] = {INST, INST},                                        // 2.1.6
    [CRDI_FMI2_EnterInitializationMode] = {INST, INST},                                // 2.1.6
    [CRDI_FMI2_ExitInitializationMode] = {INIT, INIT},                                 // 2.1.6
    [CRDI_FMI2_Terminate] = {STEP | FAIL, EVNT | CONT},                                // 2.1.6
    [CRDI_FMI2_Reset] = {ALL2, ALLX},                                                  // 2.1.6
    [CRDI_FMI2_GetReal] = {GET2, GETX},                                                // 2.1.7
    [CRDI_FMI2_GetInteger] = {GET2, GETX},                                             // 2.1.7
    [CRDI_FMI2_GetBoolean] = {GET2, GETX},                                             // 2.1.7
    [CRDI_FMI2_GetString] = {GET2, GETX},                                              // 2.1.7
    [CRDI_FMI2_SetReal] = {SET2, INST | INIT | EVNT | CONT},                           // 2.1.7
    [CRDI_FMI2_SetInteger] = {SET2, INST | INIT | EVNT},                               // 2.1.7
    [CRDI_FMI2_SetBoolean] = {SET2, INST | INIT | EVNT},                               // 2.1.7
    [CRDI_FMI2_SetString] = {SET2, INST | INIT | EVNT},                                // 2.1.7
    [CRDI_FMI2_GetFMUstate] = {ALL2, ALLX},                                            // 2.1.8
    [CRDI_FMI2_SetFMUstate] = {ALL2, ALLX},                                            // 2.1.8
    [CRDI_FMI2_FreeFMUstate] = {ALL2, ALLX},                                           // 2.1.8
    [CRDI_FMI2_SerializedFMUstateSize] = {ALL2, ALLX},                                 // 2.1.8
    [CRDI_FMI2_SerializeFMUstate] = {ALL2, ALLX},                                      // 2.1.8
    [CRDI_FMI2_DeSerializeFMUstate] = {ALL2, ALLX},                                    // 2.1.8
    [CRDI_FMI2_GetDirectionalDerivative] = {GET2, GETX},                               // 2.1.9
    [CRDI_FMI2_SetTime] = {0, EVNT | CONT},                                            // 3.2.1
    [CRDI_FMI2_SetContinuousStates] = {0, CONT},                                       // 3.2.1
    [CRDI_FMI2_EnterEventMode] = {0, EVNT | CONT},                                     // 3.2.2
    [CRDI_FMI2_NewDiscreteStates] = {0, EVNT},                                         // 3.2.2
    [CRDI_FMI2_EnterContinuousTimeMode] = {0, EVNT},                                   // 3.2.2
    [CRDI_FMI2_CompletedIntegratorStep] = {0, CONT},                                   // 3.2.2
    [CRDI_FMI2_GetDerivatives] = {0, GETX},                                            // 3.2.2
    [CRDI_FMI2_GetEventIndicators] = {0, GETX},                                        // 3.2.2
    [CRDI_FMI2_GetContinuousStates] = {0, GETX},                                       // 3.2.2
    [CRDI_FMI2_GetNominalsOfContinuousStates] = {0, INST | EVNT | CONT | TERM | ERRO}, // 3.2.2
    [CRDI_FMI2_SetRealInputDerivatives] = {SET2, 0},                                   // 4.2.1
    [CRDI_FMI2_GetRealOutputDerivatives] = {STEP | FAIL | TERM | ERRO, 0},             // 4.2.1
    [CRDI_FMI2_DoStep] = {STEP, 0},                                                    // 4.2.2
    [CRDI_FMI2_GetStatus] = {ASK2, 0},                                                 // 4.2.3
    [CRDI_FMI2_GetRealStatus] = {ASK2, 0},                                             // 4.2.3
    [CRDI_FMI2_GetIntegerStatus] = {ASK2, 0},                                          // 4.2.3
    [CRDI_FMI2_GetBooleanStatus] = {ASK2, 0},                                          // 4.2.3
    [CRDI_FMI2_GetStringStatus] = {ASK2, 0},                                           // 4.2.3
};

// FMI 3.0.2, the lists of allowed functions in 2.3.1 (all states), 2.3.2 Instantiated, 2.3.3
// Initialization Mode, 2.3.4 Initialized, 2.3.5 Event Mode, 2.3.6 and 2.3.7 Configuration and
// Reconfiguration Mode, 2.3.8 Terminated, 3.2.1 Continuous-Time Mode, 4.2.1 Step Mode, 4.2.2
// Intermediate Update Mode. No row: the instantiate functions and Scheduled Execution. In 4.2.2
// and 3.2.1 only continuous inputs may be set, hence only the two floats.
static const when table3[CRDI_FMI3_COUNT] = {
    [CRDI_FMI3_GetVersion] = {ALL3 | INTM, ALLY},                     // 2.2.5
    [CRDI_FMI3_SetDebugLogging] = {ALL3, ALLY},                       // 2.3.1
    [CRDI_FMI3_FreeInstance] = {ALL3, ALLY},                          // 2.3.1
    [CRDI_FMI3_Reset] = {ALL3, ALLY},                                 // 2.3.1
    [CRDI_FMI3_GetFMUState] = {ALL3, ALLY},                           // 2.3.1
    [CRDI_FMI3_SetFMUState] = {ALL3, ALLY},                           // 2.3.1
    [CRDI_FMI3_FreeFMUState] = {ALL3, ALLY},                          // 2.3.1
    [CRDI_FMI3_SerializedFMUStateSize] = {ALL3, ALLY},                // 2.3.1
    [CRDI_FMI3_SerializeFMUState] = {ALL3, ALLY},                     // 2.3.1
    [CRDI_FMI3_DeserializeFMUState] = {ALL3, ALLY},                   // 2.3.1
    [CRDI_FMI3_EnterInitializationMode] = {INST, INST},               // 2.3.2
    [CRDI_FMI3_ExitInitializationMode] = {INIT, INIT},                // 2.3.3
    [CRDI_FMI3_Terminate] = {STEP | EVNT | RECO, CONT | EVNT | RECO}, // 2.3.4
    [CRDI_FMI3_GetFloat32] = {GET3, GETY}, // 2.3.2, 2.3.3, 2.3.5, 2.3.8, 4.2.1, 4.2.2, 3.2.1
    [CRDI_FMI3_GetFloat64] = {GET3, GETY},
    [CRDI_FMI3_GetInt8] = {GET3, GETY},
    [CRDI_FMI3_GetUInt8] = {GET3, GETY},
    [CRDI_FMI3_GetInt16] = {GET3, GETY},
    [CRDI_FMI3_GetUInt16] = {GET3, GETY},
    [CRDI_FMI3_GetInt32] = {GET3, GETY},
    [CRDI_FMI3_GetUInt32] = {GET3, GETY},
    [CRDI_FMI3_GetInt64] = {GET3, GETY},
    [CRDI_FMI3_GetUInt64] = {GET3, GETY},
    [CRDI_FMI3_GetBoolean] = {GET3, GETY},
    [CRDI_FMI3_GetString] = {GET3, GETY},
    [CRDI_FMI3_GetBinary] = {GET3, GETY},
    [CRDI_FMI3_SetFloat32] = {SET3 | INTM,
                              SETY | CONT}, // 2.3.2, 2.3.3, 2.3.5 to 2.3.7, 4.2.1, 4.2.2, 3.2.1
    [CRDI_FMI3_SetFloat64] = {SET3 | INTM, SETY | CONT},
    [CRDI_FMI3_SetInt8] = {SET3, SETY},
    [CRDI_FMI3_SetUInt8] = {SET3, SETY},
    [CRDI_FMI3_SetInt16] = {SET3, SETY},
    [CRDI_FMI3_SetUInt16] = {SET3, SETY},
    [CRDI_FMI3_SetInt32] = {SET3, SETY},
    [CRDI_FMI3_SetUInt32] = {SET3, SETY},
    [CRDI_FMI3_SetInt64] = {SET3, SETY},
    [CRDI_FMI3_SetUInt64] = {SET3, SETY},
    [CRDI_FMI3_SetBoolean] = {SET3, SETY},
    [CRDI_FMI3_SetString] = {SET3, SETY},
    [CRDI_FMI3_SetBinary] = {SET3, SETY},
    [CRDI_FMI3_GetClock] = {EVNT, EVNT},                        // 2.3.5
    [CRDI_FMI3_SetClock] = {EVNT, EVNT},                        // 2.3.5
    [CRDI_FMI3_GetNumberOfVariableDependencies] = {DEP3, GETY}, // 2.2.10
    [CRDI_FMI3_GetVariableDependencies] = {DEP3, GETY},         // 2.2.10
    [CRDI_FMI3_GetDirectionalDerivative] = {DER3, DERY},        // 2.3.3, 2.3.5, 2.3.8, 4.2.1, 3.2.1
    [CRDI_FMI3_GetAdjointDerivative] = {DER3, DERY},
    [CRDI_FMI3_EnterConfigurationMode] = {INST | STEP, INST | EVNT}, // 2.3.2, 4.2.1, 2.3.5
    [CRDI_FMI3_ExitConfigurationMode] = {CONF | RECO, CONF | RECO},  // 2.3.6, 2.3.7
    [CRDI_FMI3_GetIntervalDecimal] = {INIT | EVNT, INIT | EVNT},     // 2.3.3, 2.3.5
    [CRDI_FMI3_GetIntervalFraction] = {INIT | EVNT, INIT | EVNT},
    [CRDI_FMI3_GetShiftDecimal] = {INIT, INIT}, // 2.3.3
    [CRDI_FMI3_GetShiftFraction] = {INIT, INIT},
    [CRDI_FMI3_SetIntervalDecimal] = {INIT, INIT}, // 2.3.3
    [CRDI_FMI3_SetIntervalFraction] = {INIT, INIT},
    [CRDI_FMI3_SetShiftDecimal] = {INIT, INIT},
    [CRDI_FMI3_SetShiftFraction] = {INIT, INIT},
    [CRDI_FMI3_EvaluateDiscreteStates] = {EVNT, EVNT}, // 2.3.5
    [CRDI_FMI3_UpdateDiscreteStates] = {EVNT, EVNT},   // 2.3.5
    [CRDI_FMI3_EnterContinuousTimeMode] = {0, EVNT},   // 2.3.5
    [CRDI_FMI3_EnterStepMode] = {EVNT, 0},             // 2.3.5
    [CRDI_FMI3_EnterEventMode] = {STEP, CONT},         // 4.2.1, 3.2.1
    [CRDI_FMI3_SetTime] = {0, CONT},                   // 3.2.1
    [CRDI_FMI3_SetContinuousStates] = {0, CONT},       // 3.2.1
    [CRDI_FMI3_CompletedIntegratorStep] = {0, CONT},   // 3.2.1
    [CRDI_FMI3_GetContinuousStates] = {0, DERY},       // 2.3.3, 2.3.5, 2.3.8, 3.2.1
    [CRDI_FMI3_GetContinuousStateDerivatives] = {0, DERY},
    [CRDI_FMI3_GetEventIndicators] = {0, DERY},
    [CRDI_FMI3_GetNominalsOfContinuousStates] = {0, DERY},
    [CRDI_FMI3_GetNumberOfContinuousStates] = {0, GETY}, // 2.3.2, 2.3.3, 2.3.5, 2.3.8, 3.2.1
    [CRDI_FMI3_GetNumberOfEventIndicators] = {0, GETY},
    [CRDI_FMI3_DoStep] = {STEP, 0},                                    // 4.2.1
    [CRDI_FMI3_GetOutputDerivatives] = {STEP | INTM | TERM | ERRO, 0}, // 4.2.1, 4.2.2, 2.3.8
};

bool crdi_fmi_allowed(crdi_fmi_kind kind, int function, crd_fmi_state state)
{
    const when* w = kind.version == CRD_FMI_1   ? &table1[function]
                    : kind.version == CRD_FMI_2 ? &table2[function]
                                                : &table3[function];
    return ((kind.exchange ? w->exchange : w->cosimulation) >> state) & 1;
}

void crdi_fmi_allowed_set(crdi_fmi_kind kind, crd_fmi_state state, uint64_t set[CRDI_FMI_WORDS])
{
    for (int w = 0; w < CRDI_FMI_WORDS; w++) {
        set[w] = 0;
    }
    for (int f = 0; f < crdi_fmi_function_count(kind.version); f++) {
        set[f / 64] |= (uint64_t)crdi_fmi_allowed(kind, f, state) << (f % 64);
    }
}

static crd_fmi_state next2(crdi_fmi_kind kind, crd_fmi_state state, int function)
{
    switch (function) {
    case CRDI_FMI2_EnterInitializationMode:
        return CRD_FMI_INITIALIZATION;
    case CRDI_FMI2_ExitInitializationMode:
        return kind.exchange ? CRD_FMI_EVENT : CRD_FMI_STEP;
    case CRDI_FMI2_EnterEventMode:
        return CRD_FMI_EVENT;
    case CRDI_FMI2_EnterContinuousTimeMode:
        return CRD_FMI_CONTINUOUS;
    case CRDI_FMI2_Terminate:
        return CRD_FMI_TERMINATED;
    case CRDI_FMI2_Reset:
        return CRD_FMI_INSTANTIATED;
    default:
        return state;
    }
}

static crd_fmi_state next3(crdi_fmi_kind kind, crd_fmi_state state, int function)
{
    switch (function) {
    case CRDI_FMI3_EnterInitializationMode:
        return CRD_FMI_INITIALIZATION;
    case CRDI_FMI3_ExitInitializationMode:
        return kind.exchange || kind.event_mode ? CRD_FMI_EVENT : CRD_FMI_STEP;
    case CRDI_FMI3_EnterEventMode:
        return CRD_FMI_EVENT;
    case CRDI_FMI3_EnterStepMode:
        return CRD_FMI_STEP;
    case CRDI_FMI3_EnterContinuousTimeMode:
        return CRD_FMI_CONTINUOUS;
    case CRDI_FMI3_EnterConfigurationMode:
        return state == CRD_FMI_INSTANTIATED ? CRD_FMI_CONFIGURATION : CRD_FMI_RECONFIGURATION;
    case CRDI_FMI3_ExitConfigurationMode:
        return state == CRD_FMI_CONFIGURATION ? CRD_FMI_INSTANTIATED
               : kind.exchange                ? CRD_FMI_EVENT
                                              : CRD_FMI_STEP;
    case CRDI_FMI3_Terminate:
        return CRD_FMI_TERMINATED;
    case CRDI_FMI3_Reset:
        return CRD_FMI_INSTANTIATED;
    default:
        return state;
    }
}

crd_fmi_state crdi_fmi_next(crdi_fmi_kind kind, crd_fmi_state state, int function,
                            crdi_fmi_status status)
{
    switch (status) {
    case CRDI_FMI_OK:
    case CRDI_FMI_WARNING:
        return kind.version == CRD_FMI_3 ? next3(kind, state, function)
                                         : next2(kind, state, function);
    case CRDI_FMI_DISCARD:
        // FMI 1, and FMI 2.0.4, 4.2.2: part of the step may be done; FMI 3.0.2, 4.2.1: nothing
        // changed
        return kind.version != CRD_FMI_3 && function == CRDI_FMI2_DoStep ? CRD_FMI_STEP_FAILED
                                                                         : state;
    case CRDI_FMI_PENDING:
        return state;
    case CRDI_FMI_FATAL:
        return CRD_FMI_FATAL;
    case CRDI_FMI_ERROR:
        break;
    }
    return CRD_FMI_ERROR; // also for a number that is no status
}

const char* crdi_fmi_state_name(crd_fmi_state state)
{
    static const char* const names[CRD_FMI_STATE_COUNT] = {
        [CRD_FMI_INSTANTIATED] = "instantiated",
        [CRD_FMI_CONFIGURATION] = "configuration mode",
        [CRD_FMI_RECONFIGURATION] = "reconfiguration mode",
        [CRD_FMI_INITIALIZATION] = "initialization mode",
        [CRD_FMI_STEP] = "step mode",
        [CRD_FMI_EVENT] = "event mode",
        [CRD_FMI_CONTINUOUS] = "continuous-time mode",
        [CRD_FMI_INTERMEDIATE] = "intermediate update mode",
        [CRD_FMI_STEP_FAILED] = "step failed",
        [CRD_FMI_TERMINATED] = "terminated",
        [CRD_FMI_ERROR] = "error",
        [CRD_FMI_FATAL] = "fatal",
    };
    return names[state];
}
