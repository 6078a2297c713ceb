// What the worker process knows. Not trusted by the master, which does not trust it either.
#pragma once
#include "unit/worker/channel.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CRDI_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CRDI_SANITIZED
#endif
#endif

typedef struct crdi_served crdi_served;

typedef struct crdi_server {
    crd_context* ctx;
    crd_unit_store* store;
    char* memory;
    crdi_control* control;
    crdi_served** units;
    size_t capacity;
    int32_t count;
    crd_unit* running; // whose code is called, for who asks after a crash
} crdi_server;

extern const char* crdi_worker_library; // of the unit that is made, as the master says

// Carries out requests until the process is ended from outside. Returns when it cannot begin.
int crdi_serve(crdi_server* s);
