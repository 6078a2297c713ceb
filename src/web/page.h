// The files that the server hands out, embedded by the build (cmake/Page.cmake).
#pragma once
#include <stddef.h>

typedef struct crdi_asset {
    const unsigned char* data;
    size_t length;
} crdi_asset;

extern const crdi_asset crdi_live_html, crdi_live_css, crdi_live_js, crdi_live_benches,
    crdi_live_icon;
