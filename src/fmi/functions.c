#include "fmi/functions.h"
#include "shared/base.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef struct row {
    const char* name; // "": the interface has no such function
    size_t offset;    // of the pointer in the version's table
    int need;         // one bit per interface
} row;

enum { OPTIONAL = 0, CS = 1, ME = 2, REQUIRED = CS | ME, MODE = 4 };
#define ROW1_CS(name, need, slave, model)                                                          \
    [CRDI_FMI2_##name] = {slave, offsetof(crdi_fmi2_functions, name), need},
#define ROW1_ME(name, need, slave, model)                                                          \
    [CRDI_FMI2_##name] = {model, offsetof(crdi_fmi2_functions, name), need},
#define ROW2(name, need, result, arguments)                                                        \
    {"fmi2" #name, offsetof(crdi_fmi2_functions, name), need},
#define ROW3(name, need, result, arguments)                                                        \
    {"fmi3" #name, offsetof(crdi_fmi3_functions, name), need},

static const row rows1_slave[CRDI_FMI2_COUNT] = {CRDI_FMI1_LIST(ROW1_CS)};
static const row rows1_model[CRDI_FMI2_COUNT] = {CRDI_FMI1_LIST(ROW1_ME)};
static const row rows2[CRDI_FMI2_COUNT] = {CRDI_FMI2_LIST(ROW2)};
static const row rows3[CRDI_FMI3_COUNT] = {CRDI_FMI3_LIST(ROW3)};

static const row* rows_of(crd_fmi_version version, bool exchange)
{
    if (version == CRD_FMI_1) { return exchange ? rows1_model : rows1_slave; }
    return version == CRD_FMI_2 ? rows2 : rows3;
}

int crdi_fmi_function_count(crd_fmi_version version)
{
    return version == CRD_FMI_3 ? (int)CRDI_FMI3_COUNT : (int)CRDI_FMI2_COUNT;
}

const char* crdi_fmi_function_name(crd_fmi_version version, bool exchange, int function)
{
    if (function == CRDI_FMI_LOADING) { return "the loading of its library"; }
    if (function == CRDI_FMI_UNLOADING) { return "the unloading of its library"; }
    if (function < 0 || function >= crdi_fmi_function_count(version)) { return ""; }
    const char* name = rows_of(version, exchange)[function].name;
    return name && name[0] ? name : rows2[function].name; // what FMI 1 does not have
}

static void* look_up(void* library, const row* r, const char* identifier, crd_fmi_version version)
{
    char symbol[512];
    if (version != CRD_FMI_1) { return dlsym(library, r->name); }
    const int n = snprintf(symbol, sizeof symbol, "%s_%s", identifier, r->name);
    return n > 0 && (size_t)n < sizeof symbol ? dlsym(library, symbol) : NULL;
}

crd_status crdi_fmi_functions_load(crd_context* ctx, void* library, const char* path,
                                   const char* identifier, crd_fmi_version version, bool exchange,
                                   crdi_fmi_functions* out, uint64_t present[CRDI_FMI_WORDS])
{
    const row* rows = rows_of(version, exchange);
    const int count = crdi_fmi_function_count(version);
    memset(out, 0, sizeof *out);
    memset(present, 0, sizeof(uint64_t) * CRDI_FMI_WORDS);
    for (int f = 0; f < count; f++) {
        if (!rows[f].name || !rows[f].name[0]) { continue; }
        void* symbol =
            rows[f].need == MODE ? NULL : look_up(library, &rows[f], identifier, version);
        if (!symbol && (rows[f].need & (exchange ? ME : CS))) {
            return crdi_fail(ctx, CRD_E_FORMAT,
                             "%s: the library has no function %s%s%s, which FMI %d.0 %s demands",
                             path, version == CRD_FMI_1 ? identifier : "",
                             version == CRD_FMI_1 ? "_" : "", rows[f].name, (int)version,
                             exchange ? "Model Exchange" : "Co-Simulation");
        }
        if (!symbol && rows[f].need != MODE) { continue; }
        // POSIX: a pointer from dlsym may become a pointer to a function, through its bytes
        memcpy((char*)out + rows[f].offset, &symbol, sizeof symbol);
        present[f / 64] |= UINT64_C(1) << (f % 64);
    }
    return CRD_OK;
}
