// What a worker does without: it makes units of FMUs from folders that the master has unpacked.
// These stand here so that the linker leaves the modules behind them out, with their libraries.
#include "shared/archive.h"
#include "shared/fmi_build.h"
#include "unit/circuit/circuit_unit.h"
#include "unit/dcp/dcp_unit.h"
#include "unit/worker/program/serve.h"
#include "unit/worker/worker.h"

static crd_status absent(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                         crd_place* place, crd_unit** out)
{
    (void)store;
    (void)place;
    (void)out;
    return crdi_fail(ctx, CRD_E_UNSUPPORTED, "'%s' is no FMU", spec->name);
}

const crdi_adapter crdi_adapter_signal = {.create = absent};
const crdi_adapter crdi_adapter_replay = {.create = absent};
const crdi_adapter crdi_adapter_native = {.create = absent};
const crdi_adapter crdi_adapter_dcp = {.create = absent};
const crdi_adapter crdi_adapter_circuit = {.create = absent};
const crdi_adapter crdi_adapter_twin = {.create = absent};
const crdi_adapter crdi_adapter_frames = {.create = absent};
const crdi_adapter crdi_adapter_can = {.create = absent};
const crdi_adapter crdi_adapter_driver = {.create = absent};
const crdi_adapter crdi_adapter_standby = {.create = absent};

// The master has found the binary, or compiled it.
const char* crdi_worker_library = "";
crd_status crdi_fmu_provide(crd_fmu* f, bool model_exchange, crd_context* ctx)
{
    (void)ctx;
    return crdi_fmu_set_library(f, model_exchange, crdi_worker_library);
}

// A folder is no archive, and nobody asks for more once opening has failed.
crd_status crdi_archive_open(crd_context* ctx, const char* path, const crdi_archive_limits* limits,
                             crdi_archive** out)
{
    (void)limits;
    (void)out;
    return crdi_fail(ctx, CRD_E_UNSUPPORTED, "%s: not a folder", path);
}

void crdi_archive_close(crdi_archive* a)
{
    (void)a;
}

int32_t crdi_archive_count(const crdi_archive* a)
{
    (void)a;
    return 0;
}

const crdi_archive_entry* crdi_archive_at(const crdi_archive* a, int32_t index)
{
    static const crdi_archive_entry none = {.name = ""};
    (void)a;
    (void)index;
    return &none;
}

int32_t crdi_archive_find(const crdi_archive* a, const char* name)
{
    (void)a;
    (void)name;
    return -1;
}

crd_status crdi_archive_begin(crdi_archive* a, int32_t index)
{
    (void)a;
    (void)index;
    return CRD_E_UNSUPPORTED;
}

crd_status crdi_archive_pull(void* archive, void* buffer, size_t room, size_t* got)
{
    (void)archive;
    (void)buffer;
    (void)room;
    (void)got;
    return CRD_E_UNSUPPORTED;
}

void crdi_archive_end(crdi_archive* a)
{
    (void)a;
}

crd_status crdi_archive_unpack(crdi_archive* a, const char* folder)
{
    (void)a;
    (void)folder;
    return CRD_E_UNSUPPORTED;
}

void crdi_session_destroy(struct crdi_session* s)
{
    (void)s;
}

crd_status crdi_circuit_linearise(crd_unit* unit, const crd_unit_port* inputs,
                                  const crd_unit_port* outputs, crd_linearised* l)
{
    (void)inputs;
    (void)outputs;
    (void)l;
    return crdi_fail(unit->ctx, CRD_E_UNSUPPORTED, "it is no FMU");
}

bool crd_unit_get_standby(const crd_unit* unit, crd_standby_stats* out)
{
    (void)unit;
    (void)out;
    return false;
}

// It has no worker itself.
bool crdi_worker_has(const crd_unit* u)
{
    (void)u;
    return false;
}

bool crdi_worker_wanted(const crd_unit_store* store, const crd_unit* u)
{
    (void)store;
    (void)u;
    return false;
}

crd_status crdi_worker_wrap(crd_context* ctx, crd_unit_store* store, crd_unit** u)
{
    (void)ctx;
    (void)store;
    (void)u;
    return CRD_E_UNSUPPORTED;
}

crd_status crdi_worker_linearise(crd_unit* u, const crd_unit_port* in, int in_count,
                                 const crd_unit_port* out, int out_count, crd_linearised* result)
{
    (void)in;
    (void)in_count;
    (void)out;
    (void)out_count;
    (void)result;
    return crdi_fail(u->ctx, CRD_E_UNSUPPORTED, "it is in no worker");
}
