// The call-order table against lists written per state, the other way round than the table: every
// function of all versions meets every state.
#include <stdio.h>

#include "check.h"
#include "fmi/states.h"

// FMI 1.0 under the names of FMI 2.0; the modes that are ours alone are among them.
#define ANY1 " GetTypesPlatform GetVersion SetDebugLogging FreeInstance "
#define GETS1 " GetReal GetInteger GetBoolean GetString "
#define SETS1 " SetReal SetInteger SetBoolean SetString "
#define ASKS1 " GetStatus GetRealStatus GetIntegerStatus GetBooleanStatus GetStringStatus "
#define STATES1                                                                                    \
    " GetDerivatives GetEventIndicators GetContinuousStates GetNominalsOfContinuousStates "

// FMI 1.0 for Co-Simulation, the state machine
static const char* const list1[CRD_FMI_STATE_COUNT] = {
    [CRD_FMI_INSTANTIATED] = ANY1 SETS1 " Reset EnterInitializationMode ",
    [CRD_FMI_INITIALIZATION] = ANY1 SETS1 " Reset ExitInitializationMode ",
    [CRD_FMI_STEP] = ANY1 GETS1 SETS1 ASKS1
    " Reset DoStep Terminate SetRealInputDerivatives GetRealOutputDerivatives ",
    [CRD_FMI_STEP_FAILED] = ANY1 GETS1 ASKS1 " Reset Terminate GetRealOutputDerivatives ",
    [CRD_FMI_TERMINATED] = ANY1 GETS1 ASKS1 " Reset GetRealOutputDerivatives ",
    [CRD_FMI_ERROR] = ANY1 GETS1 " Reset GetRealOutputDerivatives ",
};

// FMI 1.0 for Model Exchange
static const char* const list1x[CRD_FMI_STATE_COUNT] = {
    [CRD_FMI_INSTANTIATED] = ANY1 SETS1 " EnterInitializationMode ",
    [CRD_FMI_INITIALIZATION] = ANY1 SETS1 " ExitInitializationMode ",
    [CRD_FMI_EVENT] = ANY1 GETS1 SETS1 STATES1
    " SetTime EnterEventMode NewDiscreteStates EnterContinuousTimeMode Terminate ",
    [CRD_FMI_CONTINUOUS] = ANY1 GETS1 STATES1
    " SetReal SetTime SetContinuousStates EnterEventMode CompletedIntegratorStep Terminate ",
    [CRD_FMI_TERMINATED] = ANY1 GETS1 STATES1,
    [CRD_FMI_ERROR] = ANY1 GETS1 STATES1,
};

#define STATE2                                                                                     \
    " GetFMUstate SetFMUstate FreeFMUstate SerializedFMUstateSize SerializeFMUstate"               \
    " DeSerializeFMUstate "
#define ANY2 " GetTypesPlatform GetVersion SetDebugLogging FreeInstance Reset " STATE2
#define GETS2 " GetReal GetInteger GetBoolean GetString "
#define SETS2 " SetReal SetInteger SetBoolean SetString "
#define ASKS2 " GetStatus GetRealStatus GetIntegerStatus GetBooleanStatus GetStringStatus "

// FMI 2.0.4, figure 11 and the table after it
static const char* const list2[CRD_FMI_STATE_COUNT] = {
    [CRD_FMI_INSTANTIATED] =
        ANY2 SETS2 " SetupExperiment EnterInitializationMode SetRealInputDerivatives ",
    [CRD_FMI_INITIALIZATION] = ANY2 GETS2 SETS2
    " ExitInitializationMode GetDirectionalDerivative SetRealInputDerivatives ",
    [CRD_FMI_STEP] = ANY2 GETS2 SETS2 ASKS2
    " DoStep Terminate GetDirectionalDerivative SetRealInputDerivatives GetRealOutputDerivatives ",
    [CRD_FMI_STEP_FAILED] =
        ANY2 GETS2 ASKS2 " Terminate GetDirectionalDerivative GetRealOutputDerivatives ",
    [CRD_FMI_TERMINATED] = ANY2 GETS2 ASKS2 " GetDirectionalDerivative GetRealOutputDerivatives ",
    [CRD_FMI_ERROR] = ANY2 GETS2 " GetDirectionalDerivative GetRealOutputDerivatives ",
};

#define STATE3                                                                                     \
    " GetFMUState SetFMUState FreeFMUState SerializedFMUStateSize SerializeFMUState"               \
    " DeserializeFMUState "
#define ANY3 " GetVersion SetDebugLogging FreeInstance Reset " STATE3
#define GETS3                                                                                      \
    " GetFloat64 GetFloat32 GetInt8 GetUInt8 GetInt16 GetUInt16 GetInt32 GetUInt32 GetInt64"       \
    " GetUInt64 GetBoolean GetString GetBinary "
#define SETS3                                                                                      \
    " SetFloat64 SetFloat32 SetInt8 SetUInt8 SetInt16 SetUInt16 SetInt32 SetUInt32 SetInt64"       \
    " SetUInt64 SetBoolean SetString SetBinary "
#define DEPENDENCIES3 " GetNumberOfVariableDependencies GetVariableDependencies "
#define PARTIALS3 " GetDirectionalDerivative GetAdjointDerivative "

// FMI 3.0.2, 2.3 and 4.2
static const char* const list3[CRD_FMI_STATE_COUNT] = {
    [CRD_FMI_INSTANTIATED] =
        ANY3 GETS3 SETS3 DEPENDENCIES3 " EnterInitializationMode EnterConfigurationMode ",
    [CRD_FMI_CONFIGURATION] = ANY3 SETS3 " ExitConfigurationMode ",
    [CRD_FMI_RECONFIGURATION] = ANY3 SETS3 " ExitConfigurationMode Terminate ",
    [CRD_FMI_INITIALIZATION] = ANY3 GETS3 SETS3 DEPENDENCIES3 PARTIALS3
    " ExitInitializationMode GetShiftDecimal GetShiftFraction SetShiftDecimal SetShiftFraction"
    " GetIntervalDecimal GetIntervalFraction SetIntervalDecimal SetIntervalFraction ",
    [CRD_FMI_STEP] = ANY3 GETS3 SETS3 DEPENDENCIES3 PARTIALS3
    " DoStep Terminate GetOutputDerivatives EnterEventMode EnterConfigurationMode ",
    [CRD_FMI_EVENT] = ANY3 GETS3 SETS3 DEPENDENCIES3 PARTIALS3
    " GetClock SetClock GetIntervalDecimal GetIntervalFraction EvaluateDiscreteStates"
    " UpdateDiscreteStates EnterStepMode Terminate ",
    [CRD_FMI_INTERMEDIATE] =
        GETS3 DEPENDENCIES3 " GetVersion SetFloat64 SetFloat32 GetOutputDerivatives ",
    [CRD_FMI_TERMINATED] = ANY3 GETS3 DEPENDENCIES3 PARTIALS3 " GetOutputDerivatives ",
    [CRD_FMI_ERROR] = ANY3 GETS3 DEPENDENCIES3 PARTIALS3 " GetOutputDerivatives ",
};

#define DERIVATIVES2 " GetDerivatives GetEventIndicators GetContinuousStates "
#define NOMINALS " GetNominalsOfContinuousStates "

// FMI 2.0.4, the table in 3.2.3; fmi2GetDerivatives in initialization mode since 2.0.1
static const char* const list2x[CRD_FMI_STATE_COUNT] = {
    [CRD_FMI_INSTANTIATED] = ANY2 SETS2 NOMINALS " SetupExperiment EnterInitializationMode ",
    [CRD_FMI_INITIALIZATION] =
        ANY2 GETS2 SETS2 DERIVATIVES2 " ExitInitializationMode GetDirectionalDerivative ",
    [CRD_FMI_EVENT] = ANY2 GETS2 SETS2 DERIVATIVES2 NOMINALS
    " GetDirectionalDerivative SetTime EnterEventMode NewDiscreteStates EnterContinuousTimeMode"
    " Terminate ",
    [CRD_FMI_CONTINUOUS] = ANY2 GETS2 DERIVATIVES2 NOMINALS
    " SetReal GetDirectionalDerivative SetTime SetContinuousStates EnterEventMode"
    " CompletedIntegratorStep Terminate ",
    [CRD_FMI_TERMINATED] = ANY2 GETS2 DERIVATIVES2 NOMINALS " GetDirectionalDerivative ",
    [CRD_FMI_ERROR] = ANY2 GETS2 DERIVATIVES2 NOMINALS " GetDirectionalDerivative ",
};

#define DERIVATIVES3                                                                               \
    " GetContinuousStateDerivatives GetEventIndicators GetContinuousStates " NOMINALS
#define NUMBERS3 " GetNumberOfContinuousStates GetNumberOfEventIndicators "

// FMI 3.0.2, 2.3 and 3.2
static const char* const list3x[CRD_FMI_STATE_COUNT] = {
    [CRD_FMI_INSTANTIATED] =
        ANY3 GETS3 SETS3 DEPENDENCIES3 NUMBERS3 " EnterInitializationMode EnterConfigurationMode ",
    [CRD_FMI_CONFIGURATION] = ANY3 SETS3 " ExitConfigurationMode ",
    [CRD_FMI_RECONFIGURATION] = ANY3 SETS3 " ExitConfigurationMode Terminate ",
    [CRD_FMI_INITIALIZATION] = ANY3 GETS3 SETS3 DEPENDENCIES3 PARTIALS3 NUMBERS3 DERIVATIVES3
    " ExitInitializationMode GetShiftDecimal GetShiftFraction SetShiftDecimal SetShiftFraction"
    " GetIntervalDecimal GetIntervalFraction SetIntervalDecimal SetIntervalFraction ",
    [CRD_FMI_EVENT] = ANY3 GETS3 SETS3 DEPENDENCIES3 PARTIALS3 NUMBERS3 DERIVATIVES3
    " GetClock SetClock GetIntervalDecimal GetIntervalFraction EvaluateDiscreteStates"
    " UpdateDiscreteStates EnterContinuousTimeMode EnterConfigurationMode Terminate ",
    [CRD_FMI_CONTINUOUS] = ANY3 GETS3 DEPENDENCIES3 PARTIALS3 NUMBERS3 DERIVATIVES3
    " SetFloat64 SetFloat32 SetTime SetContinuousStates EnterEventMode CompletedIntegratorStep"
    " Terminate ",
    [CRD_FMI_TERMINATED] = ANY3 GETS3 DEPENDENCIES3 PARTIALS3 NUMBERS3 DERIVATIVES3,
    [CRD_FMI_ERROR] = ANY3 GETS3 DEPENDENCIES3 PARTIALS3 NUMBERS3 DERIVATIVES3,
};

static bool listed(const char* list, const char* full_name)
{
    char word[128];
    snprintf(word, sizeof word, " %s ", full_name + 4); // without "fmi2"
    return list && strstr(list, word);
}

static int words(const char* list)
{
    int n = 0;
    for (const char* p = list ? list : ""; *p; p++) {
        n += *p != ' ' && p[1] == ' ';
    }
    return n;
}

static void meet(crd_fmi_version version, bool exchange, const char* const* lists)
{
    const crdi_fmi_kind kind = {.version = version, .exchange = exchange};
    for (int s = 0; s < CRD_FMI_STATE_COUNT; s++) {
        int allowed = 0;
        uint64_t set[CRDI_FMI_WORDS];
        crdi_fmi_allowed_set(kind, (crd_fmi_state)s, set);
        for (int f = 0; f < crdi_fmi_function_count(version); f++) {
            // numbers of FMI 1 are those of FMI 2
            const char* name =
                crdi_fmi_function_name(version == CRD_FMI_1 ? CRD_FMI_2 : version, exchange, f);
            const bool want = listed(lists[s], name);
            const bool have = crdi_fmi_allowed(kind, f, (crd_fmi_state)s);
            if (want != have) {
                fail_msg("%s in state '%s': allowed %d, expected %d", name,
                         crdi_fmi_state_name((crd_fmi_state)s), have, want);
            }
            check_int((set[f / 64] >> (f % 64)) & 1, want);
            allowed += have;
        }
        check_int(allowed, words(lists[s])); // no name in the list is misspelt
    }
}

static void every_fmi1_function_is_allowed_in_the_states_of_the_standard(void** state)
{
    meet(CRD_FMI_1, false, list1);
    meet(CRD_FMI_1, true, list1x);
}

static void every_fmi2_function_is_allowed_in_the_states_of_the_standard(void** state)
{
    meet(CRD_FMI_2, false, list2);
    meet(CRD_FMI_2, true, list2x);
}

static void every_fmi3_function_is_allowed_in_the_states_of_the_standard(void** state)
{
    meet(CRD_FMI_3, false, list3);
    meet(CRD_FMI_3, true, list3x);
}

static void nothing_is_allowed_after_a_fatal_error(void** state)
{
    for (int v = 1; v <= 3; v++) {
        for (int f = 0; f < crdi_fmi_function_count((crd_fmi_version)v); f++) {
            check(!crdi_fmi_allowed((crdi_fmi_kind){.version = v}, f, CRD_FMI_FATAL));
            check(!crdi_fmi_allowed((crdi_fmi_kind){.version = v, .exchange = true}, f,
                                    CRD_FMI_FATAL));
        }
    }
}

static void all_functions_have_distinct_names(void** state)
{
    check_int(crdi_fmi_function_count(CRD_FMI_2), 44); // as many as the standards declare
    check_int(crdi_fmi_function_count(CRD_FMI_3), 75);
    for (int v = 2; v <= 3; v++) {
        const crd_fmi_version version = (crd_fmi_version)v;
        for (int f = 0; f < crdi_fmi_function_count(version); f++) {
            const char* name = crdi_fmi_function_name(version, false, f);
            check(strncmp(name, v == 2 ? "fmi2" : "fmi3", 4) == 0);
            for (int g = 0; g < f; g++) {
                check(strcmp(name, crdi_fmi_function_name(version, false, g)) != 0);
            }
        }
        check_text(crdi_fmi_function_name(version, false, CRDI_FMI_NO_FUNCTION), "");
    }
}

static void fmi1_has_names_of_its_own_for_each_interface(void** state)
{
    int functions[2] = {0};
    check_int(crdi_fmi_function_count(CRD_FMI_1), crdi_fmi_function_count(CRD_FMI_2));
    for (int exchange = 0; exchange <= 1; exchange++) {
        for (int f = 0; f < crdi_fmi_function_count(CRD_FMI_1); f++) {
            const char* name = crdi_fmi_function_name(CRD_FMI_1, exchange, f);
            functions[exchange] += strncmp(name, "fmi", 3) == 0 && strncmp(name, "fmi2", 4) != 0;
            for (int g = 0; g < f; g++) {
                check(strcmp(name, crdi_fmi_function_name(CRD_FMI_1, exchange, g)) != 0);
            }
        }
    }
    check_int(functions[0], 25); // as many as the standard declares
    check_int(functions[1], 23); // and without fmiGetStateValueReferences
    check_text(crdi_fmi_function_name(CRD_FMI_1, false, CRDI_FMI2_Instantiate),
               "fmiInstantiateSlave");
    check_text(crdi_fmi_function_name(CRD_FMI_1, true, CRDI_FMI2_Instantiate),
               "fmiInstantiateModel");
    check_text(crdi_fmi_function_name(CRD_FMI_1, true, CRDI_FMI2_NewDiscreteStates),
               "fmiEventUpdate");
}

// Where calls lead; whatever is not here stays where it is. Kinds of instances:
enum { COSIMULATION, WITH_EVENTS, EXCHANGE, KINDS };

static crdi_fmi_kind kind_of(int version, int kind)
{
    return (crdi_fmi_kind){
        .version = version, .exchange = kind == EXCHANGE, .event_mode = kind == WITH_EVENTS};
}

typedef struct arrow {
    crd_fmi_version version;
    int kind;
    crd_fmi_state from;
    int function;
    crd_fmi_state to;
} arrow;

static const arrow arrows[] = {
    {1, 0, CRD_FMI_INSTANTIATED, CRDI_FMI2_EnterInitializationMode, CRD_FMI_INITIALIZATION},
    {1, 0, CRD_FMI_INITIALIZATION, CRDI_FMI2_ExitInitializationMode, CRD_FMI_STEP},
    {1, 0, CRD_FMI_STEP, CRDI_FMI2_Terminate, CRD_FMI_TERMINATED},
    {1, 0, CRD_FMI_STEP_FAILED, CRDI_FMI2_Terminate, CRD_FMI_TERMINATED},
    {1, 0, CRD_FMI_INITIALIZATION, CRDI_FMI2_Reset, CRD_FMI_INSTANTIATED},
    {1, 0, CRD_FMI_STEP, CRDI_FMI2_Reset, CRD_FMI_INSTANTIATED},
    {1, 0, CRD_FMI_STEP_FAILED, CRDI_FMI2_Reset, CRD_FMI_INSTANTIATED},
    {1, 0, CRD_FMI_TERMINATED, CRDI_FMI2_Reset, CRD_FMI_INSTANTIATED},
    {1, 0, CRD_FMI_ERROR, CRDI_FMI2_Reset, CRD_FMI_INSTANTIATED},
    {1, 2, CRD_FMI_INITIALIZATION, CRDI_FMI2_ExitInitializationMode, CRD_FMI_EVENT},
    {1, 2, CRD_FMI_EVENT, CRDI_FMI2_EnterContinuousTimeMode, CRD_FMI_CONTINUOUS},
    {1, 2, CRD_FMI_CONTINUOUS, CRDI_FMI2_EnterEventMode, CRD_FMI_EVENT},
    {1, 2, CRD_FMI_EVENT, CRDI_FMI2_Terminate, CRD_FMI_TERMINATED},
    {1, 2, CRD_FMI_CONTINUOUS, CRDI_FMI2_Terminate, CRD_FMI_TERMINATED},
    {2, 0, CRD_FMI_INSTANTIATED, CRDI_FMI2_EnterInitializationMode, CRD_FMI_INITIALIZATION},
    {2, 0, CRD_FMI_INITIALIZATION, CRDI_FMI2_ExitInitializationMode, CRD_FMI_STEP},
    {2, 0, CRD_FMI_STEP, CRDI_FMI2_Terminate, CRD_FMI_TERMINATED},
    {2, 0, CRD_FMI_STEP_FAILED, CRDI_FMI2_Terminate, CRD_FMI_TERMINATED},
    {2, 0, CRD_FMI_INITIALIZATION, CRDI_FMI2_Reset, CRD_FMI_INSTANTIATED},
    {2, 0, CRD_FMI_STEP, CRDI_FMI2_Reset, CRD_FMI_INSTANTIATED},
    {2, 0, CRD_FMI_STEP_FAILED, CRDI_FMI2_Reset, CRD_FMI_INSTANTIATED},
    {2, 0, CRD_FMI_TERMINATED, CRDI_FMI2_Reset, CRD_FMI_INSTANTIATED},
    {2, 0, CRD_FMI_ERROR, CRDI_FMI2_Reset, CRD_FMI_INSTANTIATED},
    {2, 2, CRD_FMI_INITIALIZATION, CRDI_FMI2_ExitInitializationMode, CRD_FMI_EVENT},
    {2, 2, CRD_FMI_EVENT, CRDI_FMI2_EnterContinuousTimeMode, CRD_FMI_CONTINUOUS},
    {2, 2, CRD_FMI_CONTINUOUS, CRDI_FMI2_EnterEventMode, CRD_FMI_EVENT},
    {2, 2, CRD_FMI_EVENT, CRDI_FMI2_Terminate, CRD_FMI_TERMINATED},
    {2, 2, CRD_FMI_CONTINUOUS, CRDI_FMI2_Terminate, CRD_FMI_TERMINATED},
    {2, 2, CRD_FMI_EVENT, CRDI_FMI2_Reset, CRD_FMI_INSTANTIATED},
    {2, 2, CRD_FMI_CONTINUOUS, CRDI_FMI2_Reset, CRD_FMI_INSTANTIATED},
    {3, 0, CRD_FMI_INSTANTIATED, CRDI_FMI3_EnterInitializationMode, CRD_FMI_INITIALIZATION},
    {3, 0, CRD_FMI_INITIALIZATION, CRDI_FMI3_ExitInitializationMode, CRD_FMI_STEP},
    {3, 0, CRD_FMI_INSTANTIATED, CRDI_FMI3_EnterConfigurationMode, CRD_FMI_CONFIGURATION},
    {3, 0, CRD_FMI_CONFIGURATION, CRDI_FMI3_ExitConfigurationMode, CRD_FMI_INSTANTIATED},
    {3, 0, CRD_FMI_STEP, CRDI_FMI3_EnterConfigurationMode, CRD_FMI_RECONFIGURATION},
    {3, 0, CRD_FMI_RECONFIGURATION, CRDI_FMI3_ExitConfigurationMode, CRD_FMI_STEP},
    {3, 0, CRD_FMI_RECONFIGURATION, CRDI_FMI3_Terminate, CRD_FMI_TERMINATED},
    {3, 0, CRD_FMI_STEP, CRDI_FMI3_Terminate, CRD_FMI_TERMINATED},
    {3, 0, CRD_FMI_INITIALIZATION, CRDI_FMI3_Reset, CRD_FMI_INSTANTIATED},
    {3, 0, CRD_FMI_CONFIGURATION, CRDI_FMI3_Reset, CRD_FMI_INSTANTIATED},
    {3, 0, CRD_FMI_RECONFIGURATION, CRDI_FMI3_Reset, CRD_FMI_INSTANTIATED},
    {3, 0, CRD_FMI_STEP, CRDI_FMI3_Reset, CRD_FMI_INSTANTIATED},
    {3, 0, CRD_FMI_TERMINATED, CRDI_FMI3_Reset, CRD_FMI_INSTANTIATED},
    {3, 0, CRD_FMI_ERROR, CRDI_FMI3_Reset, CRD_FMI_INSTANTIATED},
    {3, 1, CRD_FMI_INITIALIZATION, CRDI_FMI3_ExitInitializationMode, CRD_FMI_EVENT},
    {3, 1, CRD_FMI_EVENT, CRDI_FMI3_EnterStepMode, CRD_FMI_STEP},
    {3, 1, CRD_FMI_STEP, CRDI_FMI3_EnterEventMode, CRD_FMI_EVENT},
    {3, 1, CRD_FMI_EVENT, CRDI_FMI3_Terminate, CRD_FMI_TERMINATED},
    {3, 1, CRD_FMI_EVENT, CRDI_FMI3_Reset, CRD_FMI_INSTANTIATED},
    {3, 2, CRD_FMI_INITIALIZATION, CRDI_FMI3_ExitInitializationMode, CRD_FMI_EVENT},
    {3, 2, CRD_FMI_EVENT, CRDI_FMI3_EnterContinuousTimeMode, CRD_FMI_CONTINUOUS},
    {3, 2, CRD_FMI_CONTINUOUS, CRDI_FMI3_EnterEventMode, CRD_FMI_EVENT},
    {3, 2, CRD_FMI_EVENT, CRDI_FMI3_EnterConfigurationMode, CRD_FMI_RECONFIGURATION},
    {3, 2, CRD_FMI_RECONFIGURATION, CRDI_FMI3_ExitConfigurationMode, CRD_FMI_EVENT},
    {3, 2, CRD_FMI_EVENT, CRDI_FMI3_Terminate, CRD_FMI_TERMINATED},
    {3, 2, CRD_FMI_CONTINUOUS, CRDI_FMI3_Terminate, CRD_FMI_TERMINATED},
    {3, 2, CRD_FMI_EVENT, CRDI_FMI3_Reset, CRD_FMI_INSTANTIATED},
    {3, 2, CRD_FMI_CONTINUOUS, CRDI_FMI3_Reset, CRD_FMI_INSTANTIATED},
};
enum { ARROWS = sizeof arrows / sizeof arrows[0] };

static crd_fmi_state led_to(crd_fmi_version version, int kind, crd_fmi_state from, int f)
{
    crd_fmi_state to = from;
    for (int k = 0; k < ARROWS; k++) {
        const arrow* a = &arrows[k];
        if (a->version != version || a->from != from || a->function != f) { continue; }
        if (a->kind == kind) { return a->to; }
        // a row without events serves all, unless there is one of their own
        if (a->kind == COSIMULATION || kind == COSIMULATION) { to = a->to; }
    }
    return to;
}

static void allowed_calls_lead_along_the_arrows_and_nowhere_else(void** state)
{
    int moved = 0;
    for (int v = 1; v <= 3; v++) {
        for (int k = 0; k < KINDS; k++) {
            const crdi_fmi_kind kind = kind_of(v, k);
            if (v <= 2 && k == WITH_EVENTS) { continue; }
            for (int s = 0; s < CRD_FMI_STATE_COUNT; s++) {
                for (int f = 0; f < crdi_fmi_function_count(kind.version); f++) {
                    if (!crdi_fmi_allowed(kind, f, (crd_fmi_state)s)) { continue; }
                    const crd_fmi_state want = led_to(kind.version, k, (crd_fmi_state)s, f);
                    for (int status = CRDI_FMI_OK; status <= CRDI_FMI_WARNING; status++) {
                        check_int(crdi_fmi_next(kind, (crd_fmi_state)s, f, (crdi_fmi_status)status),
                                  want);
                    }
                    moved += (int)want != s;
                }
            }
        }
    }
    check(moved >= ARROWS);
}

static void failures_lead_to_error_fatal_or_step_failed(void** state)
{
    for (int v = 1; v <= 3; v++) {
        for (int k = 0; k < KINDS; k++) {
            const crdi_fmi_kind kind = kind_of(v, k);
            const crd_fmi_state s = k == EXCHANGE ? CRD_FMI_CONTINUOUS : CRD_FMI_STEP;
            for (int f = 0; f < crdi_fmi_function_count(kind.version); f++) {
                check_int(crdi_fmi_next(kind, s, f, CRDI_FMI_ERROR), CRD_FMI_ERROR);
                check_int(crdi_fmi_next(kind, s, f, CRDI_FMI_FATAL), CRD_FMI_FATAL);
                check_int(crdi_fmi_next(kind, s, f, CRDI_FMI_PENDING), s);
                check_int(crdi_fmi_next(kind, s, f, (crdi_fmi_status)77), CRD_FMI_ERROR);
                const bool part = kind.version <= CRD_FMI_2 && f == CRDI_FMI2_DoStep;
                check_int(crdi_fmi_next(kind, s, f, CRDI_FMI_DISCARD),
                          part ? CRD_FMI_STEP_FAILED : s);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fmi1_function_is_allowed_in_the_states_of_the_standard),
        cmocka_unit_test(every_fmi2_function_is_allowed_in_the_states_of_the_standard),
        cmocka_unit_test(every_fmi3_function_is_allowed_in_the_states_of_the_standard),
        cmocka_unit_test(nothing_is_allowed_after_a_fatal_error),
        cmocka_unit_test(all_functions_have_distinct_names),
        cmocka_unit_test(fmi1_has_names_of_its_own_for_each_interface),
        cmocka_unit_test(allowed_calls_lead_along_the_arrows_and_nowhere_else),
        cmocka_unit_test(failures_lead_to_error_fatal_or_step_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
