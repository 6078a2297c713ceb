// What a view is made of.
#pragma once
#include "web/view.h"

#include <stdio.h>

struct crdi_view {
    crd_context* ctx; // its own
    crd_arena arena;
    crd_recording** files;
    const char** paths;
    const char*** names; // of the signals of each file
    int file_count;
    crdi_overview* overview;
    char* layout_path;       // beside the first file
    const crdi_json* layout; // NULL: none
    const char* layout_error;
    crd_text hello;
};

// Signals that are shown, file after file.
typedef struct crdi_view_choice {
    crdi_track* tracks;
    int count;
} crdi_view_choice;

// The first message to a page; `only`: of these signals, NULL: all.
crd_status crdi_view_describe(crdi_view* v, const crdi_view_choice* only, crd_text* out);
