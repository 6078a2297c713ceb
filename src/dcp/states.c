// The state machine of a slave as tables: DCP 1.0, chapter on the slave state machine, with the
// table of allowed PDUs put right where the state chart and it disagree.
#include "shared/dcp.h"

#define BIT(state) (1u << (state))
// States first .. last as a set.
#define SPAN(first, last) ((BIT((last) + 1) - 1) & ~(BIT(first) - 1))
#define ONLY(state) SPAN(state, state)

static const uint32_t run = SPAN(CRD_DCP_SYNCHRONIZING, CRD_DCP_RUNNING);
static const uint32_t normal = SPAN(CRD_DCP_CONFIGURATION, CRD_DCP_STOPPED);

// Which state changes a request starts. The printed table of allowed PDUs lacks STC_run in
// SYNCHRONIZED and STC_do_step in SYNCHRONIZING and SYNCHRONIZED; the state chart has them.
static const struct {
    uint8_t type;
    uint32_t from;
    uint8_t to;
    bool nrt; // in NRT only
} requests[] = {
    {CRDI_DCP_STC_REGISTER, ONLY(CRD_DCP_ALIVE), CRD_DCP_CONFIGURATION, false},
    {CRDI_DCP_STC_DEREGISTER,
     ONLY(CRD_DCP_CONFIGURATION) | ONLY(CRD_DCP_STOPPED) | ONLY(CRD_DCP_ERRORRESOLVED),
     CRD_DCP_ALIVE, false},
    {CRDI_DCP_STC_PREPARE, ONLY(CRD_DCP_CONFIGURATION), CRD_DCP_PREPARING, false},
    {CRDI_DCP_STC_CONFIGURE, ONLY(CRD_DCP_PREPARED), CRD_DCP_CONFIGURING, false},
    {CRDI_DCP_STC_INITIALIZE, ONLY(CRD_DCP_CONFIGURED), CRD_DCP_INITIALIZING, false},
    {CRDI_DCP_STC_RUN, ONLY(CRD_DCP_CONFIGURED), CRD_DCP_SYNCHRONIZING, false},
    {CRDI_DCP_STC_RUN, ONLY(CRD_DCP_SYNCHRONIZED), CRD_DCP_RUNNING, false},
    {CRDI_DCP_STC_DO_STEP, SPAN(CRD_DCP_SYNCHRONIZING, CRD_DCP_RUNNING), CRD_DCP_COMPUTING, true},
    {CRDI_DCP_STC_SEND_OUTPUTS, ONLY(CRD_DCP_INITIALIZED), CRD_DCP_SENDING_I, false},
    {CRDI_DCP_STC_SEND_OUTPUTS, ONLY(CRD_DCP_COMPUTED), CRD_DCP_SENDING_D, true},
    {CRDI_DCP_STC_STOP, SPAN(CRD_DCP_PREPARING, CRD_DCP_SENDING_D), CRD_DCP_STOPPING, false},
    {CRDI_DCP_STC_RESET, ONLY(CRD_DCP_STOPPED) | ONLY(CRD_DCP_ERRORRESOLVED), CRD_DCP_CONFIGURATION,
     false},
};

// Where a transient state leads when its duty is over; SENDING_D goes back to where it came from.
static const struct {
    uint8_t from, to;
} duties[] = {
    {CRD_DCP_PREPARING, CRD_DCP_PREPARED},         {CRD_DCP_CONFIGURING, CRD_DCP_CONFIGURED},
    {CRD_DCP_INITIALIZING, CRD_DCP_INITIALIZED},   {CRD_DCP_SENDING_I, CRD_DCP_CONFIGURED},
    {CRD_DCP_SYNCHRONIZING, CRD_DCP_SYNCHRONIZED}, {CRD_DCP_COMPUTING, CRD_DCP_COMPUTED},
    {CRD_DCP_STOPPING, CRD_DCP_STOPPED},
};

int crdi_dcp_next_state(crd_dcp_state state, int type, crd_dcp_op_mode mode)
{
    if ((unsigned)state >= CRD_DCP_STATE_COUNT) { return -1; }
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        if (requests[i].type == type && (requests[i].from & BIT(state)) &&
            (!requests[i].nrt || mode == CRD_DCP_NRT)) {
            return requests[i].to;
        }
    }
    return -1;
}

static int after_duty(crd_dcp_state state, crd_dcp_state from_run)
{
    if (state == CRD_DCP_SENDING_D) {
        return from_run >= CRD_DCP_SYNCHRONIZING && from_run <= CRD_DCP_RUNNING ? (int)from_run
                                                                                : -1;
    }
    for (size_t i = 0; i < sizeof duties / sizeof *duties; i++) {
        if (duties[i].from == state) { return duties[i].to; }
    }
    return -1;
}

int crdi_dcp_next_state_event(crd_dcp_state state, crdi_dcp_event event, crd_dcp_state from_run)
{
    if ((unsigned)state >= CRD_DCP_STATE_COUNT) { return -1; }
    switch (event) {
    case CRDI_DCP_SIG_DONE:
        return after_duty(state, from_run);
    case CRDI_DCP_SIG_STOP:
        return (run & BIT(state)) ? CRD_DCP_STOPPING : -1;
    case CRDI_DCP_SIG_ERROR:
        return (normal & BIT(state)) ? CRD_DCP_ERRORHANDLING : -1;
    case CRDI_DCP_SIG_RESOLVED:
        return state == CRD_DCP_ERRORHANDLING ? CRD_DCP_ERRORRESOLVED : -1;
    }
    return -1;
}

// Where a slave takes the others. CFG_steps is meant for SRT and HRT, but masters send it in NRT,
// too. Data may arrive behind the run, and are ignored then.
static const struct {
    uint8_t first, last; // type
    uint32_t in;
} taken[] = {
    {CRDI_DCP_CFG_TIME_RES, CRDI_DCP_CFG_SCOPE, ONLY(CRD_DCP_CONFIGURATION)},
    {CRDI_DCP_INF_STATE, CRDI_DCP_INF_STATE, SPAN(CRD_DCP_ALIVE, CRD_DCP_ERRORRESOLVED)},
    {CRDI_DCP_INF_ERROR, CRDI_DCP_INF_ERROR, SPAN(CRD_DCP_ERRORHANDLING, CRD_DCP_ERRORRESOLVED)},
    {CRDI_DCP_INF_LOG, CRDI_DCP_INF_LOG, SPAN(CRD_DCP_CONFIGURATION, CRD_DCP_ERRORRESOLVED)},
    {CRDI_DCP_DAT_INPUT_OUTPUT, CRDI_DCP_DAT_PARAMETER,
     SPAN(CRD_DCP_CONFIGURED, CRD_DCP_SENDING_D)},
};

bool crdi_dcp_allowed(crd_dcp_state state, int type, crd_dcp_op_mode mode)
{
    if ((unsigned)state >= CRD_DCP_STATE_COUNT) { return false; }
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        if (type >= taken[i].first && type <= taken[i].last) { return taken[i].in & BIT(state); }
    }
    return crdi_dcp_next_state(state, type, mode) >= 0;
}
