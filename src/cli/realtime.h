// What commands that serve others do so that they are in time: SCHED_FIFO, if it is allowed.
#pragma once
#include "cli/cli.h"
#include "shared/pace.h"

// Below the cycle of a master. What the system refuses is said as a warning, and all goes on.
crd_status crdi_realtime_serve(crdi_cli* cli, crd_pace_report* report);

#define CRDI_REALTIME_OPTION(options, field)                                                       \
    OPT_FLAG(options, field, "realtime",                                                           \
             "with SCHED_FIFO, so that it is in time while others load the machine")
