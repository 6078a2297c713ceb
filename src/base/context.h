// The context's inside, for the files of base.
#pragma once
#include "cardan/base.h"

enum { CRDI_ERROR = 2048, CRDI_ERROR_SHORT = 16 }; // bytes of a sentence

struct crd_context {
    crd_context_options opt;
    char* error; // (size)
    size_t size;
    void (*progress)(void* user, const char* part, double done, double of,
                     const char* unit); // crdi_progress_sink; NULL: nobody looks
    void* progress_user;
    struct crdi_findings* findings; // NULL: the first failure is the end
    char own[];                     // what `error` is, until it needs more
};
