// The context's inside, for the files of base.
#pragma once
#include "cardan/base.h"

#ifdef CRDI_SMALL // controllers: sentences are cut there
enum { CRDI_ERROR = 240, CRDI_ERROR_SHORT = 16, CRDI_ERROR_ROOMS = 1 };
#else
enum { CRDI_ERROR = 2048, CRDI_ERROR_SHORT = 16, CRDI_ERROR_ROOMS = 32 }; // bytes of a sentence
#endif

struct crd_context {
    crd_context_options opt;
    char* error; // (size)
    size_t size;
    void (*progress)(void* user, const char* part, double done, double of,
                     const char* unit); // crdi_progress_sink; NULL: nobody looks
    void* progress_user;
    struct crdi_findings* findings; // NULL: the first failure is the end
    struct crd_text* reads;         // crdi_file_note_reads; NULL: nobody asks
    char own[];                     // what `error` is, until it needs more
};
