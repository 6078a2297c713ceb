// cardan info, by kind of file.
#pragma once
#include "cli/cli.h"

typedef struct crdi_info_options {
    crdi_common common;
    crdi_list variables; // patterns
    bool all;
} crdi_info_options;

crd_status crdi_info_fmu(crdi_cli* cli, const char* path, const crdi_info_options* o);
