// The files that the server hands out, embedded by the build (cmake/Page.cmake).
#pragma once
#include <stddef.h>

typedef struct crdi_page_file {
    const char* path; // as it is asked for: "/live.js"
    const unsigned char* data;
    size_t length;
} crdi_page_file;

extern const crdi_page_file crdi_page_files[]; // the last one has no path
