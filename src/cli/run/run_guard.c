// Who guards the benches of a run from outside, from options to the process.
#include "cli/run/run.h"
#include "shared/master_crash.h"

#include <math.h>
#include <string.h>
#include <strings.h>

const char crdi_unfinished_session[] = "the run has not come to its end, or not yet";

static crdi_ward_phase pulse(void* user, int64_t* steps)
{
    const int where = crdi_master_pulse(user, steps);
    return where < 0 ? CRDI_WARD_STARTING : where == 0 ? CRDI_WARD_RUNNING : CRDI_WARD_ENDING;
}

static void fenced(void* user, const char* cause)
{
    (void)user;
    crdi_master_fence(cause);
}

crd_status crdi_guarding_start(crdi_cli* cli, crd_master* m, const crd_system* s,
                               const crdi_guarding* o, crdi_ward** out)
{
    static const double usual = 2; // s
    double period = 0;
    const double wished = isnan(o->watchdog) ? s->run.watchdog : o->watchdog;
    const char* about = o->address ? "estop-address"
                        : o->token ? "estop-token"
                        : o->input ? "estop-input"
                                   : NULL;
    const bool machines = crdi_master_has_machines(m, &period);
    const bool none = o->none || wished == 0;
    if (about && (none || !machines)) {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "--%s is about the guard of test benches, but %s",
                         about, machines ? "there is to be none" : "the run has no bench");
    }
    if (!machines) { return CRD_OK; }
    if (none) {
        crdi_log(cli->ctx, CRD_LOG_WARNING,
                 "no guard: when this process is killed or stuck, each bench has its own watchdog "
                 "and nothing else");
        return CRD_OK;
    }
    const crdi_ward_options opt = {.watchdog = isnan(wished) ? usual : wished,
                                   .period = period,
                                   .address = o->address,
                                   .token = o->token,
                                   .input = o->input,
                                   .results = s->results.path,
                                   .session = s->results.session,
                                   .note = crdi_unfinished_session,
                                   .pulse = pulse,
                                   .fenced = fenced,
                                   .user = m};
    const char* dot = s->results.path ? strrchr(s->results.path, '.') : NULL;
    if (dot && strcasecmp(dot, ".mat") == 0) {
        crdi_log(
            cli->ctx, CRD_LOG_WARNING,
            "%s is written when the run has come to its end: if this process is killed before, "
            "nothing is left of it; .mf4 and .csv are written as the run goes",
            s->results.path);
    }
    const crd_status st = crdi_ward_create(cli->ctx, &opt, out);
    if (st == CRD_OK && !o->quiet) { crdi_tell(cli, "estop", crdi_ward_url(*out)); }
    return st;
}
