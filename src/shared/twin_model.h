/// A twin as a model of this process: what `twin:` in a system runs and what `cardan export twin`
/// puts into an FMU.
///
/// Inputs: NAME.measured per sensor (NaN, which is its start value: not measured), and those of the
/// netlist. Outputs: NAME and NAME.sd per .output, unknown source and unknown value, NAME.status
/// per sensor (crdi_twin_status) for the last measurement. A communication step has to be a
/// multiple of the twin's own step; what is measured counts at its end, the twin's steps before
/// that one have no measurement.
#pragma once
#include "cardan/model.h"
#include "cardan/twin.h"
#include "shared/base.h"

typedef enum crdi_twin_status {
    CRDI_TWIN_GOOD,
    CRDI_TWIN_MISSING, ///< there was no measurement
    CRDI_TWIN_REFUSED, ///< too far from what is expected
    CRDI_TWIN_STUCK,   ///< it repeats itself, and is refused
    CRDI_TWIN_WILD,    ///< refused too often
} crdi_twin_status;

/// `file` is for messages, `name` a C identifier. On CRD_OK the description belongs to the model.
/// CRD_E_RANGE: there is no step, two variables have the same name; what crd_twin_create says.
crd_status crdi_twin_model_create(crd_context* ctx, crd_twin_description* d, const char* file,
                                  const char* name, const crd_model** out);
void crdi_twin_model_destroy(const crd_model* model);
/// The description for crdi_twin_model_load, appended to `out`; its netlist is circuit.cir.
crd_status crdi_twin_model_pack(const crd_twin_description* d, const char* name, crd_text* out);
/// From `folder`/twin.json and `folder`/circuit.cir, with a context of its own. NULL: why, in
/// `message`.
const crd_model* crdi_twin_model_load(const char* folder, char* message, size_t room);
/// Unit of what a sensor measures: that of an output, else by its first letter K, W, V or A.
const char* crdi_twin_unit(const crd_netlist* n, const char* what);
