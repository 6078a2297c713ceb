// A digital twin as a unit: its model, run as a model in C is.
#include "shared/twin_model.h"
#include "unit/native/native.h"

#include <math.h>

static const crdi_file_need twin_file = {
    .what = "the description of a twin", .most = 4 << 20, .pipes = true};

crd_status crdi_twin_read(crd_context* ctx, const char* path, crd_twin_description** out)
{
    crd_status st = CRD_OK;
    crd_text yaml, json;
    crd_text_init(&yaml, ctx);
    crd_text_init(&json, ctx);
    CRD_TRY(crdi_file_read(ctx, path, &twin_file, &yaml));
    CRD_TRY(crd_yaml_to_json(ctx, yaml.data, yaml.length, (crd_place){path, 1}, &json));
    CRD_TRY(crd_twin_parse(ctx, json.data, json.length, path, 1, NULL, out));
fail:
    crd_text_clear(&yaml);
    crd_text_clear(&json);
    return st;
}

static crd_status check_step(crd_context* ctx, const crd_unit_spec* spec, double own)
{
    const double times = round(spec->step / own);
    if (!(spec->step > 0) || (times >= 1 && fabs(spec->step - times * own) <= 1e-6 * own)) {
        return CRD_OK;
    }
    return crdi_fail(ctx, CRD_E_RANGE, "its step is %g s, expected a multiple of the %g s of %s",
                     spec->step, own, spec->path);
}

static crd_status twin_create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                              crd_place* place, crd_unit** out)
{
    (void)store;
    (void)place;
    crd_status st = CRD_OK;
    crd_twin_description* d = NULL;
    const crd_model* model = NULL;
    CRD_TRY(crdi_twin_read(ctx, spec->path, &d));
    const double step = d->spec.step;
    CRD_TRY(crdi_twin_model_create(ctx, d, spec->path, "twin", &model));
    d = NULL;
    CRD_TRY(check_step(ctx, spec, step));
    CRD_TRY(crdi_native_create(ctx, spec, model, "twin", crdi_twin_model_destroy, out));
    crd_unit_info* info = &(*out)->info;
    info->flags &= ~(uint32_t)CRD_UNIT_CAN_VARY_STEP;
    info->step_unit = step;
    return CRD_OK;
fail:
    crd_twin_description_destroy(d);
    crdi_twin_model_destroy(model);
    return st;
}

const crdi_adapter crdi_adapter_twin = {.create = twin_create};
