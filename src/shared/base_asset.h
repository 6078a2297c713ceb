/// A file that the build has put inside (cmake/embed.cmake). Not for users.
#pragma once
#include <stddef.h>

typedef struct crdi_asset {
    const unsigned char* data;
    size_t length;
} crdi_asset;
