/// A circuit as a model of this process: what `cardan export circuit` puts into an FMU.
///
/// The model reads its netlist by itself. Its inputs and outputs are those of the netlist (.input,
/// .output), its fixed parameters the .param of the netlist that are plain numbers, and `step`, the
/// largest step inside: a communication step H is done in the fewest equal steps that are not
/// longer. Setting a parameter reads the netlist again in the initialisation.
#pragma once
#include "cardan/circuit.h"
#include "cardan/model.h"
#include "shared/base.h"

typedef struct crdi_circuit_model_options {
    const char* name;           ///< a C identifier
    crd_circuit_method method;  ///< of each step
    double step;                ///< s; > 0, or NaN: that of .tran
    const char* const* defines; ///< "N=100": start values of parameters, which then are .param
    int define_count;
} crdi_circuit_model_options;

crdi_circuit_model_options crdi_circuit_model_defaults(void);
/// "bdf1" ... "gauss4", in the order of crd_circuit_method; NULL ends the list.
const char* const* crdi_circuit_method_names(void);

/// `text` is the netlist, in one piece; `file` is for messages.
/// CRD_E_RANGE: there are no outputs, there is no step, two variables have the same name.
crd_status crdi_circuit_model_create(crd_context* ctx, const char* text, size_t length,
                                     const char* file, const crdi_circuit_model_options* opt,
                                     const crd_model** out);
void crdi_circuit_model_destroy(const crd_model* model);

/// The options as a text that crdi_circuit_model_load reads, appended to `out`.
crd_status crdi_circuit_model_pack(crd_context* ctx, const crdi_circuit_model_options* opt,
                                   crd_text* out);
/// From `folder`/circuit.cir and `folder`/circuit.settings, with a context of its own. NULL: why,
/// in `message`.
const crd_model* crdi_circuit_model_load(const char* folder, char* message, size_t room);
