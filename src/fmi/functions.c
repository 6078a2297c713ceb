#include "fmi/functions.h"
#include "shared/base.h"

#include <dlfcn.h>
#include <string.h>

typedef struct row {
    const char* name;
    size_t offset; // of the pointer in the version's table
    int need;      // one bit per interface
} row;

enum { OPTIONAL = 0, CS = 1, ME = 2, REQUIRED = CS | ME };
#define ROW2(name, need, result, arguments)                                                        \
    {"fmi2" #name, offsetof(crdi_fmi2_functions, name), need},
#define ROW3(name, need, result, arguments)                                                        \
    {"fmi3" #name, offsetof(crdi_fmi3_functions, name), need},

static const row rows2[CRDI_FMI2_COUNT] = {CRDI_FMI2_LIST(ROW2)};
static const row rows3[CRDI_FMI3_COUNT] = {CRDI_FMI3_LIST(ROW3)};

int crdi_fmi_function_count(crd_fmi_version version)
{
    return version == CRD_FMI_2 ? (int)CRDI_FMI2_COUNT : (int)CRDI_FMI3_COUNT;
}

const char* crdi_fmi_function_name(crd_fmi_version version, int function)
{
    if (function == CRDI_FMI_LOADING) { return "the loading of its library"; }
    if (function == CRDI_FMI_UNLOADING) { return "the unloading of its library"; }
    if (function < 0 || function >= crdi_fmi_function_count(version)) { return ""; }
    return version == CRD_FMI_2 ? rows2[function].name : rows3[function].name;
}

crd_status crdi_fmi_functions_load(crd_context* ctx, void* library, const char* path,
                                   crd_fmi_version version, bool exchange, crdi_fmi_functions* out,
                                   uint64_t present[CRDI_FMI_WORDS])
{
    const row* rows = version == CRD_FMI_2 ? rows2 : rows3;
    const int count = crdi_fmi_function_count(version);
    memset(out, 0, sizeof *out);
    memset(present, 0, sizeof(uint64_t) * CRDI_FMI_WORDS);
    for (int f = 0; f < count; f++) {
        void* symbol = dlsym(library, rows[f].name);
        if (!symbol && (rows[f].need & (exchange ? ME : CS))) {
            return crdi_fail(
                ctx, CRD_E_FORMAT, "%s: the library has no function %s, which FMI %d.0 %s demands",
                path, rows[f].name, (int)version, exchange ? "Model Exchange" : "Co-Simulation");
        }
        if (!symbol) { continue; }
        // POSIX: a pointer from dlsym may become a pointer to a function, through its bytes
        memcpy((char*)out + rows[f].offset, &symbol, sizeof symbol);
        present[f / 64] |= UINT64_C(1) << (f % 64);
    }
    return CRD_OK;
}
