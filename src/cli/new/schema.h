// docs/schema/cardan.schema.json, put inside by the build.
#pragma once
#include "shared/base_asset.h"

extern const crdi_asset crdi_schema;
