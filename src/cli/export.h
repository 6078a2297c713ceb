// What the kinds of `cardan export` share.
#pragma once
#include "cli/cli.h"

typedef struct crdi_export_options {
    crdi_common common;
    const char* output;
    // ssp
    const char *variant, *author;
    crdi_list parameters, set;
    int ssp_version; // index into versions
    bool only_used;
    // coupling
    int fmi;             // index into versions of FMI
    const char* signals; // a number, or names between commas
    const char* name;
    double step, latency; // NaN: not given
} crdi_export_options;

crd_status crdi_export_coupling(crdi_cli* cli, const crdi_export_options* o, const char* element);

// An archive with the sources and binaries of the coupling FMU, embedded by the build.
typedef struct crdi_asset {
    const unsigned char* data;
    size_t length;
} crdi_asset;
extern const crdi_asset crdi_coupling_template;
