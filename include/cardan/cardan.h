/// All of Cardan's public interface.
#pragma once
#include "cardan/analysis.h"
#include "cardan/base.h"
#include "cardan/coupling.h"
#include "cardan/fmi.h"
#include "cardan/master.h"
#include "cardan/model.h"
#include "cardan/num.h"
#include "cardan/results.h"
#include "cardan/ssp.h"
#include "cardan/system.h"
#include "cardan/unit.h"
