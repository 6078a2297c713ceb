#include "cli/realtime.h"

crd_status crdi_realtime_serve(crdi_cli* cli, crd_pace_report* report)
{
    const crd_pace_spec spec = {.priority = 79, .cpu = -1};
    const crd_status st = crdi_realtime_enter(cli->ctx, &spec, report);
    for (int i = 0; i < report->note_count; i++) {
        crdi_log(cli->ctx, CRD_LOG_WARNING, "%s", report->notes[i]);
    }
    return st;
}
