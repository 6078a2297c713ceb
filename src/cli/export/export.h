// What the kinds of `cardan export` share.
#pragma once
#include "cardan/dcp.h"
#include "cardan/model.h"
#include "cli/cli.h"
#include "shared/base_asset.h"

typedef struct crdi_export_options {
    crdi_common common;
    const char* output;
    // ssp
    const char *variant, *author;
    crdi_list parameters, set;
    int ssp_version; // index into versions
    bool only_used;
    // coupling
    int fmi;               // index into versions of FMI
    const char* platforms; // to compile for, besides this machine; NULL: none
    const char* signals;   // a number, or names between commas
    const char* name;
    double step, latency; // NaN: not given
    // dcp
    int mode; // index into modes
    const char* address;
    // circuit
    int method; // crd_circuit_method, -1: not given
    crdi_list params;
    // c
    int precision; // index into precisions
    int iterations;
} crdi_export_options;

crd_status crdi_export_coupling(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                                crdi_result* out);
crd_status crdi_export_dcp(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                           crdi_result* out);
crd_status crdi_export_circuit(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                               crdi_result* out);
crd_status crdi_export_twin(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                            crdi_result* out);
crd_status crdi_export_c(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                         crdi_result* out);

// --step, --latency, --signals and --name for an element, which has a step and a name then.
struct crd_element;
crd_status crdi_export_apply(crdi_cli* cli, const crdi_export_options* o, crd_arena* arena,
                             const char* subject, struct crd_element* e);
// A description without faults. CRD_E_FORMAT: the first of them.
crd_status crdi_export_load_slave(crd_context* ctx, const char* path, crd_dcp_description** out);

// Archives with the sources and binaries of FMUs, embedded by the build.
extern const crdi_asset crdi_coupling_template;
extern const crdi_asset crdi_dcp_template;
extern const crdi_asset crdi_circuit_template;
extern const crdi_asset crdi_twin_template;

// A file below resources/ of an FMU.
typedef struct crdi_resource {
    const char* name;
    const void* data;
    size_t length;
} crdi_resource;

// `platforms` NULL: with the binary of the template alone.
crd_status crdi_write_fmu(crd_context* ctx, const crdi_asset* template, int version,
                          const char* platforms, const crd_model* model,
                          const crdi_resource* resources, int resource_count, const char* path);
// A name of C out of any text, NULL: out of memory.
const char* crdi_identifier(crd_arena* arena, const char* text);
// Of the model: --name, else its own (or NULL), else that of the output or of the subject.
crd_status crdi_export_name(crd_context* ctx, const crdi_export_options* o, crd_arena* arena,
                            const char* subject, const char* own, const char** out);
// CRD_E_RANGE: the output is one of the files that are read.
struct crd_netlist;
crd_status crdi_export_spares(crd_context* ctx, const struct crd_netlist* n, const char* subject,
                              const char* what, const char* output);
// What does not begin is not worth an FMU, and one of FMI 2.0 has limited room.
crd_status crdi_export_try(crd_context* ctx, const crd_model* model, int version,
                           const char* subject);
