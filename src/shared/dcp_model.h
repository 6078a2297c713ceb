/// A DCP slave somewhere on the network as a model of this process: what `cardan export dcp` puts
/// into an FMU, for tools that have no DCP.
///
/// The model is made from a table of bytes (crdi_dcp_model_pack) and not from a dcpx, so that an
/// FMU needs no XML and no archives. Its parameters dcp.address and dcp.mode say where the slave is
/// and how it runs. Initialising the model brings a session up: configured once, and one turn of
/// SENDING_I for each change of the inputs. A step is STC_do_step in NRT; in SRT the inputs are
/// sent and the outputs are those at the time when the wall clock has reached the end of the step.
/// Structural parameters are fixed in the table.
#pragma once
#include "cardan/dcp.h"
#include "shared/base.h"

enum { CRDI_DCP_MODEL_ADDRESS = 256 }; ///< bytes of dcp.address

typedef struct crdi_dcp_model_options {
    const char* name;     ///< a C identifier
    const char* address;  ///< "udp://127.0.0.1:8080"; "" none: has to be set before the run
    crd_dcp_op_mode mode; ///< NRT or SRT, which the slave offers
    uint32_t numerator, denominator; ///< time resolution; 0: the recommended or first one
    double step;                     ///< of the default experiment, 0: that of the slave
} crdi_dcp_model_options;

/// The table of `d` (without faults, structural parameters with their final start values), appended
/// to `out`. CRD_E_RANGE: an option that the slave does not offer, names that cannot be exported.
crd_status crdi_dcp_model_pack(const crd_dcp_description* d, const crdi_dcp_model_options* opt,
                               crd_text* out);
/// `file` is for messages. CRD_E_FORMAT: the bytes are no such table.
crd_status crdi_dcp_model_create(crd_context* ctx, const void* bytes, size_t length,
                                 const char* file, const crd_model** out);
void crdi_dcp_model_destroy(const crd_model* model);
/// From `folder`/slave.table, with a context of its own. NULL: why, in `message`.
const crd_model* crdi_dcp_model_load(const char* folder, char* message, size_t room);
