// The models of the hybrid powertrain by their names.
#include "shared/testbench.h"

#include <string.h>

extern const crd_model crd_model_pt_driver, crd_model_pt_controller, crd_model_pt_engine,
    crd_model_pt_clutch, crd_model_pt_machine, crd_model_pt_battery, crd_model_pt_vehicle,
    crd_model_pt_testbed, crd_model_pt_accelerate;

const crd_model* crdi_powertrain_model(const char* name)
{
    static const crd_model* const all[] = {
        &crd_model_pt_driver,  &crd_model_pt_controller, &crd_model_pt_engine,
        &crd_model_pt_clutch,  &crd_model_pt_machine,    &crd_model_pt_battery,
        &crd_model_pt_vehicle, &crd_model_pt_testbed,    &crd_model_pt_accelerate,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!strcmp(all[i]->name, name)) { return all[i]; }
    }
    return NULL;
}
