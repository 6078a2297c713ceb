// The tables of the state machine, written down a second time as the standard prints them (with the
// corrections of its state chart), against the functions.
#include "check.h"

#include "shared/dcp.h"

// Columns: states 00 .. 12. R accepted, n in NRT only.
static const struct {
    int type;
    const char* accepted;
} table[] = {
    //                             0123456789ABCDEF012
    {CRDI_DCP_STC_REGISTER, "R                  "},
    {CRDI_DCP_STC_DEREGISTER, " R              R R"},
    {CRDI_DCP_STC_PREPARE, " R                 "},
    {CRDI_DCP_STC_CONFIGURE, "   R               "},
    {CRDI_DCP_STC_INITIALIZE, "     R             "},
    {CRDI_DCP_STC_RUN, "     R    R        "},
    {CRDI_DCP_STC_DO_STEP, "         nnn       "},
    {CRDI_DCP_STC_SEND_OUTPUTS, "       R     n     "},
    {CRDI_DCP_STC_STOP, "  RRRRRRRRRRRRR    "},
    {CRDI_DCP_STC_RESET, "                R R"},
    {CRDI_DCP_INF_STATE, "RRRRRRRRRRRRRRRRRRR"},
    {CRDI_DCP_INF_ERROR, "                 RR"},
    {CRDI_DCP_INF_LOG, " RRRRRRRRRRRRRRRRRR"},
    {CRDI_DCP_CFG_TIME_RES, " R                 "},
    {CRDI_DCP_CFG_STEPS, " R                 "},
    {CRDI_DCP_CFG_INPUT, " R                 "},
    {CRDI_DCP_CFG_OUTPUT, " R                 "},
    {CRDI_DCP_CFG_CLEAR, " R                 "},
    {CRDI_DCP_CFG_TARGET_NETWORK, " R                 "},
    {CRDI_DCP_CFG_SOURCE_NETWORK, " R                 "},
    {CRDI_DCP_CFG_PARAMETER, " R                 "},
    {CRDI_DCP_CFG_TUNABLE_PARAMETER, " R                 "},
    {CRDI_DCP_CFG_PARAM_NETWORK, " R                 "},
    {CRDI_DCP_CFG_LOGGING, " R                 "},
    {CRDI_DCP_CFG_SCOPE, " R                 "},
    {CRDI_DCP_DAT_INPUT_OUTPUT, "     RRRRRRRRRR    "},
    {CRDI_DCP_DAT_PARAMETER, "     RRRRRRRRRR    "},
};

static bool expected(int state, int type, int mode)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        check_int(strlen(table[i].accepted), CRD_DCP_STATE_COUNT);
        if (table[i].type != type) { continue; }
        const char c = table[i].accepted[state];
        return c == 'R' || (c == 'n' && mode == CRD_DCP_NRT);
    }
    return false; // answers, notifications, and numbers that are no PDU
}

static void each_pdu_is_taken_in_the_states_of_the_table_and_in_no_other(void** state)
{
    for (int s = 0; s < CRD_DCP_STATE_COUNT; s++) {
        for (int type = 0; type < 256; type++) {
            for (int mode = CRD_DCP_HRT; mode <= CRD_DCP_NRT; mode++) {
                if (crdi_dcp_allowed(s, type, mode) != expected(s, type, mode)) {
                    fail_msg("state %02x, type %02x, mode %d", s, type, mode);
                }
            }
        }
    }
}

static const struct {
    int from, type, to;
} transitions[] = {
    {0x00, 0x01, 0x01}, {0x01, 0x03, 0x02}, {0x03, 0x04, 0x04}, {0x05, 0x05, 0x06},
    {0x07, 0x08, 0x08}, {0x05, 0x06, 0x09}, {0x0A, 0x06, 0x0B}, {0x09, 0x07, 0x0C},
    {0x0A, 0x07, 0x0C}, {0x0B, 0x07, 0x0C}, {0x0D, 0x08, 0x0E}, {0x10, 0x0A, 0x01},
    {0x12, 0x0A, 0x01}, {0x01, 0x02, 0x00}, {0x10, 0x02, 0x00}, {0x12, 0x02, 0x00},
    {0x02, 0x09, 0x0F}, {0x03, 0x09, 0x0F}, {0x04, 0x09, 0x0F}, {0x05, 0x09, 0x0F},
    {0x06, 0x09, 0x0F}, {0x07, 0x09, 0x0F}, {0x08, 0x09, 0x0F}, {0x09, 0x09, 0x0F},
    {0x0A, 0x09, 0x0F}, {0x0B, 0x09, 0x0F}, {0x0C, 0x09, 0x0F}, {0x0D, 0x09, 0x0F},
    {0x0E, 0x09, 0x0F},
};

static int target(int from, int type)
{
    for (size_t i = 0; i < sizeof transitions / sizeof *transitions; i++) {
        if (transitions[i].from == from && transitions[i].type == type) {
            return transitions[i].to;
        }
    }
    return -1;
}

static void each_state_change_leads_where_the_state_chart_says(void** state)
{
    for (int s = 0; s < CRD_DCP_STATE_COUNT; s++) {
        for (int type = 0; type < 256; type++) {
            check_int(crdi_dcp_next_state(s, type, CRD_DCP_NRT), target(s, type));
            for (int mode = CRD_DCP_HRT; mode <= CRD_DCP_SRT; mode++) {
                const bool nrt = type == CRDI_DCP_STC_DO_STEP || s == CRD_DCP_COMPUTED;
                const bool stop = type == CRDI_DCP_STC_STOP;
                check_int(crdi_dcp_next_state(s, type, mode), nrt && !stop ? -1 : target(s, type));
            }
        }
    }
}

// State behind each event, in the order done, stop, error, resolved; H: where STC_do_step came
// from.
static const char* const events[CRD_DCP_STATE_COUNT] = {
    "-- -- -- --", "-- -- 11 --", "03 -- 11 --", "-- -- 11 --", "05 -- 11 --",
    "-- -- 11 --", "07 -- 11 --", "-- -- 11 --", "05 -- 11 --", "0A 0F 11 --",
    "-- 0F 11 --", "-- 0F 11 --", "0D -- 11 --", "-- -- 11 --", "HH -- 11 --",
    "10 -- 11 --", "-- -- 11 --", "-- -- -- 12", "-- -- -- --",
};

static void each_internal_event_leads_where_the_state_chart_says(void** state)
{
    for (int s = 0; s < CRD_DCP_STATE_COUNT; s++) {
        for (int event = CRDI_DCP_SIG_DONE; event <= CRDI_DCP_SIG_RESOLVED; event++) {
            for (int from = 0; from < CRD_DCP_STATE_COUNT; from++) {
                const char* cell = events[s] + 3 * event;
                const bool run = from >= 0x09 && from <= 0x0B;
                const int to = cell[0] == '-'   ? -1
                               : cell[0] == 'H' ? (run ? from : -1)
                                                : (int)strtol(cell, NULL, 16);
                check_int(crdi_dcp_next_state_event(s, event, from), to);
            }
        }
    }
}

static void whatever_is_no_state_leads_nowhere(void** state)
{
    for (int s = CRD_DCP_STATE_COUNT; s < 300; s++) {
        check_int(crdi_dcp_next_state((crd_dcp_state)s, CRDI_DCP_STC_STOP, CRD_DCP_NRT), -1);
        check_int(crdi_dcp_next_state_event((crd_dcp_state)s, CRDI_DCP_SIG_ERROR, 0), -1);
        check(!crdi_dcp_allowed((crd_dcp_state)s, CRDI_DCP_INF_STATE, CRD_DCP_NRT));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pdu_is_taken_in_the_states_of_the_table_and_in_no_other),
        cmocka_unit_test(each_state_change_leads_where_the_state_chart_says),
        cmocka_unit_test(each_internal_event_leads_where_the_state_chart_says),
        cmocka_unit_test(whatever_is_no_state_leads_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
