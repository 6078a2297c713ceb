// cardan info and cardan check, by kind of file.
#pragma once
#include "cli/cli.h"

typedef struct crdi_info_options {
    crdi_common common;
    crdi_list variables; // patterns
    bool all;
    const char* variant; // of an SSP
} crdi_info_options;

crd_status crdi_info_fmu(crdi_cli* cli, const char* path, const crdi_info_options* o,
                         crdi_result* out);
crd_status crdi_info_ssp(crdi_cli* cli, const char* path, const crdi_info_options* o,
                         crdi_result* out);
crd_status crdi_info_ssv(crdi_cli* cli, const char* path, bool mapping, const crdi_info_options* o,
                         crdi_result* out);
crd_status crdi_info_recording(crdi_cli* cli, const char* path, const crdi_info_options* o,
                               crdi_result* out);
crd_status crdi_info_circuit(crdi_cli* cli, const char* path, const crdi_info_options* o,
                             crdi_result* out);
crd_status crdi_info_dcp(crdi_cli* cli, const char* path, const crdi_info_options* o,
                         crdi_result* out);

bool crdi_is_layout(const char* path); // or a DBC file
crd_status crdi_info_layout(crdi_cli* cli, const char* path, const crdi_info_options* o,
                            crdi_result* out);
crd_status crdi_check_layout(crdi_cli* cli, const char* path, crdi_result* out);

crd_status crdi_check_dcp(crdi_cli* cli, const char* path, crdi_result* out);
bool crdi_is_can(const char* path); // an .xml with DcpOverCan in it
crd_status crdi_check_can(crdi_cli* cli, const char* path, crdi_result* out);
crd_status crdi_check_circuit(crdi_cli* cli, const char* path, crdi_result* out);
