// A mock FMU counts its calls, keeps their order, and does what the test told it to do.
// It is a shared object; the test finds its control block with dlsym("mock_control").
#pragma once
#include "fmi/functions.h"

enum { MOCK_FUNCTIONS = 128, MOCK_TRACE = 256, MOCK_VALUES = 8, MOCK_BYTES = 32 };

typedef struct mock_block {
    // written by the mock
    int count[MOCK_FUNCTIONS]; // calls by function number
    int calls;                 // all of them
    int trace[MOCK_TRACE];     // the first ones, in order
    int live;                  // instances
    char name[64], token[64], resources[1024];
    bool has_resources, visible, logging_on, event_mode, early_return, has_intermediate;
    bool no_rollback;
    size_t intermediate_count;
    uint32_t intermediate[4];
    double tolerance, start, stop;
    int allocated; // bytes that allocateMemory gave and that were zero

    // written by the test
    int status[MOCK_FUNCTIONS]; // what a function returns
    int log_status;             // with `format` set: status of the message each call logs
    const char* category;
    const char* format;     // logged with the arguments 7 and "seven"
    int pending_polls;      // this many Pending answers of fmi2GetStatus
    int pending_end;        // and then this status
    double last_successful; // fmi2GetRealStatus
    int terminated;         // fmi2GetBooleanStatus
    bool refuse;            // instantiate gives NULL
    bool null_strings;      // GetString gives NULL
    const char* types;      // fmi2GetTypesPlatform
    const char* version;    // GetVersion
    bool update;            // DoStep calls the intermediate update
    bool update_set, update_get, update_can_return;
    bool updated_early; // what the callback wished
    double updated_time;
    bool event_needed, terminate, early;
    double reached; // NAN: t + h
    // Model Exchange
    bool exchange; // how the last instance was made; by the mock
    bool again, nominals_changed, values_changed, has_next_event;
    double next_event;
    bool enter_event_mode, completed_terminate;
} mock_block;

// The state of an instance: every variable type has MOCK_VALUES variables, references 0 to 7.
typedef struct mock_instance {
    void* environment;
    const crdi_fmi2_callbacks* callbacks;
    crdi_fmi3_logger* logger;
    crdi_fmi3_intermediate* intermediate;
    double t;
    double reals[MOCK_VALUES];
    double derivatives[MOCK_VALUES];
    float floats[MOCK_VALUES];
    int64_t integers[MOCK_VALUES]; // of all integer types
    int64_t booleans[MOCK_VALUES];
    char strings[MOCK_VALUES][MOCK_BYTES];
    uint8_t binaries[MOCK_VALUES][MOCK_BYTES];
    size_t sizes[MOCK_VALUES];
} mock_instance;
