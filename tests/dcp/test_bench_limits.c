// Limits and test cases: their texts, and which test case a bench refuses.
#include "check.h"

#include <stdio.h>

#include "shared/dcp_bench.h"

static crdi_dcp_limits parse(crd_context* ctx, const char* text)
{
    crdi_dcp_limits l;
    if (crdi_dcp_limits_parse(ctx, text, strlen(text), &l) < 0) {
        fail_msg("%s: %s", text, crd_error_text(ctx));
    }
    return l;
}

static void limits_read_back_as_what_was_printed(void** state)
{
    crd_context* ctx = *state;
    static const char* const cases[][2] = {
        {"", ""},
        {" ; ;\n", ""},
        {"speed 0..6500 1/min rate 2000 1/min/s", "speed 0..6500 1/min rate 2000 1/min/s"},
        {"speed 0..6500   rpm\n torque -210..210 N.m;", "speed 0..6500 rpm; torque -210..210 N.m"},
        {"voltage ..400 V", "voltage ..400 V"},
        {"oil 20.. degC rate 6 K/min", "oil 20.. degC rate 0.1 degC/s"},
        {"torque 0 N.m", "torque 0 N.m"},
        {"pedal 0..1 rate 2 1/s", "pedal 0..1 rate 2 1/s"},
        {"speed rate 1.5 rad/s/s", "speed rate 1.5 rad/s/s"},
        {"x 0.1..0.30000000000000004", "x 0.1..0.30000000000000004"},
        {"avoid speed 0..50 1/min with torque", "avoid speed 0..50 1/min with torque"},
        {"avoid speed 0..50 1/min with torque -3..3 N.m; speed -1..1 1/min",
         "speed -1..1 1/min; avoid speed 0..50 1/min with torque -3..3 N.m"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300];
        const crdi_dcp_limits l = parse(ctx, cases[i][0]);
        check_int(crdi_dcp_limits_print(&l, text, sizeof text), strlen(cases[i][1]));
        check_text(text, cases[i][1]);
        const crdi_dcp_limits again = parse(ctx, text);
        char second[300];
        crdi_dcp_limits_print(&again, second, sizeof second);
        check_text(second, text);
        // As snprintf where there is little room.
        char little[5] = "####";
        check_int(crdi_dcp_limits_print(&l, little, 4), strlen(text));
        check_int(little[3], strlen(text) < 3 ? little[3] : 0);
        check_int(little[4], 0);
        check_int(crdi_dcp_limits_print(&l, NULL, 0), strlen(text));
    }
}

static void a_statement_that_is_wrong_is_named(void** state)
{
    crd_context* ctx = *state;
    static const char* const cases[][2] = {
        {"speed", "expected a range"},
        {"speed fast", "expected a range"},
        {"speed ..", "expected a range"},
        {"speed nan..1", "expected a range"},
        {"speed inf..1e400", "expected a range"},
        {"speed 1e400", "expected a range"},
        {"speed 5..1 V", "ends before it begins"},
        {"speed 0..1 parsec", "unit is not known"},
        {"speed 0..1 1/min rate", "expected a rate"},
        {"speed 0..1 1/min rate -5 1/min/s", "expected a rate"},
        {"speed 0..1 1/min rate 5", "expected a rate"},
        {"speed 0..1 1/min rate 5 V/s", "not in its unit"},
        {"speed 0..1 1/min rate 5 1/min/m", "expected a rate"},
        {"speed 0..1 V; torque 0..1 N.m; speed 0..2 V", "given before"},
        {"speed 0..1 V extra", "expected ';'"},
        {"7up 0..1 V", "expected the name"},
        {"with 0..1 V", "expected the name"},
        {"a_name_that_is_longer_than_thirty_one 0..1", "expected the name"},
        {"avoid speed with torque", "expected a range"},
        {"avoid speed 0..50 1/min", "expected 'with'"},
        {"avoid speed 0..50 1/min with", "expected the name"},
        {"avoid speed 0..50 1/min with speed", "two different"},
        {"avoid speed 0..50 1/min with torque 1..2 N.m 3", "expected ';'"},
        {"speed 0..1 averyverylongunit", "longer than 15"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        crdi_dcp_limits l;
        check_status(crdi_dcp_limits_parse(ctx, cases[i][0], strlen(cases[i][0]), &l),
                     CRD_E_FORMAT);
        check_contains(crd_error_text(ctx), cases[i][1]);
    }
    char many[1024] = "";
    for (int i = 0; i < 17; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "q%d 0..1;", i);
    }
    crdi_dcp_limits l;
    check_status(crdi_dcp_limits_parse(ctx, many, strlen(many), &l), CRD_E_FORMAT);
    many[0] = 0;
    for (int i = 0; i < 9; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "avoid q%d 0..1 with b;", i);
    }
    check_status(crdi_dcp_limits_parse(ctx, many, strlen(many), &l), CRD_E_FORMAT);
    check_status(crdi_dcp_limits_parse(ctx, "a 0..\0001", 7, &l), CRD_E_FORMAT);
}

// Any bytes are refused or read; nothing is read behind them.
static void any_bytes_are_read_or_refused(void** state)
{
    static const char* const pieces[] = {"speed", " ",     "0",     "..",   "-1e9",   "1/min",
                                         "rate",  ";",     "avoid", "with", "torque", "\n",
                                         ".",     "N.m/s", "degC",  "\xff", "1"};
    uint64_t seed = 1;
    for (int k = 0; k < 20000; k++) {
        char text[160];
        size_t n = 0;
        const int count = 1 + k % 12;
        for (int i = 0; i < count; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const char* piece = pieces[(seed >> 33) % (sizeof pieces / sizeof *pieces)];
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", piece, seed >> 63 ? " " : "");
        }
        char* exact = malloc(n);
        memcpy(exact, text, n);
        crdi_dcp_limits l;
        if (crdi_dcp_limits_parse(*state, exact, n, &l) == CRD_OK) {
            char printed[2000];
            check(crdi_dcp_limits_print(&l, printed, sizeof printed) < 2000);
            parse(*state, printed);
        }
        free(exact);
    }
}

static const char bench[] = "speed 0..6500 1/min rate 2000 1/min/s; torque -210..210 N.m; "
                            "voltage 0..400 V; oil 20..90 degC; "
                            "avoid speed 0..50 1/min with torque; "
                            "avoid speed 5000..6500 1/min with torque 150..210 N.m";

static void a_test_case_is_held_against_each_limit(void** state)
{
    crd_context* ctx = *state;
    static const char* const cases[][2] = {
        {"", NULL},
        {"speed 50.001..5e3 1/min rate 2000 1/min/s; torque -210..149 N.m; oil 20..90 degC", NULL},
        {"speed 100..600 rad/s; torque 0..10 N.m", NULL}, // another unit of the same
        {"speed 100..4000 1/min rate 33 rpm/s", NULL},
        {"speed -1..100 1/min", "limit speed min"},
        {"speed 0..6501 1/min", "limit speed max: the test case needs speed 0..6501 1/min, the "
                                "bench allows speed 0..6500 1/min"},
        {"speed 0..700 rad/s", "limit speed max"},
        {"speed 0..100 1/min rate 2001 1/min/s", "limit speed rate"},
        {"speed 0.. 1/min", "limit speed max"},
        {"speed rate 100 1/min/s", NULL},
        {"speed rate 1e6 1/min/s", "limit speed rate"},
        {"voltage ..1 V", "limit voltage min"},
        {"speed 0..100 V", "in 'V'"},
        {"oil 293..364 K", "limit oil min"},
        {"oil 293.15..363.15 K", NULL},
        {"spede 0..100 1/min", "did you mean speed?"},
        {"speed 0..100 1/min; torque -5..5 N.m", "avoid speed 0..50 1/min with torque"},
        {"speed 0..100 1/min; torque 0 N.m", NULL},
        {"speed 0..100 1/min", NULL}, // says nothing about torque
        {"speed 0..100 1/min; torque -5..5 N.m; avoid speed 0..50 1/min with torque", NULL},
        {"speed 10..100 1/min; torque -5..5 N.m; avoid speed 10..60 1/min with torque", NULL},
        {"speed 0..100 1/min; torque -5..5 N.m; avoid speed 0..49 1/min with torque",
         "avoid speed 0..50"},
        {"speed 0..100 1/min; torque -5..5 N.m; avoid speed 0..50 1/min with torque -5..5 N.m",
         NULL},
        {"speed 0..100 1/min; torque -5..5 N.m; avoid speed 0..50 1/min with torque 0..5 N.m",
         "avoid speed 0..50"},
        {"speed 60..6000 1/min; torque 0..180 N.m",
         "avoid speed 5000..6500 1/min with torque 150..210 N.m"},
        {"speed 60..6000 1/min; torque 0..180 N.m; avoid speed 4000..6500 1/min with torque "
         "150..180 N.m",
         NULL},
    };
    const crdi_dcp_limits limits = parse(ctx, bench), none = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const crdi_dcp_limits planned = parse(ctx, cases[i][0]);
        const crd_status st = crdi_dcp_limits_agree(ctx, &planned, &limits, &none);
        if (!cases[i][1]) {
            if (st < 0) { fail_msg("%s: %s", cases[i][0], crd_error_text(ctx)); }
            continue;
        }
        if (st != CRD_E_RANGE) { fail_msg("%s was not refused", cases[i][0]); }
        check_contains(crd_error_text(ctx), cases[i][1]);
    }
}

static void both_sides_come_to_the_same_verdict(void** state)
{
    crd_context* ctx = *state;
    const crdi_dcp_limits b = parse(ctx, bench),
                          peer = parse(ctx, "power ..80 kW; speed ..5000 1/min");
    static const struct {
        const char *text, *says;
    } cases[] = {{"speed 60..5000 1/min; power 0..80 kW", NULL},
                 {"speed 60..5001 1/min", "limit speed max: the test case needs speed 60..5001 "
                                          "1/min, its peer allows speed ..5000 1/min"},
                 {"power 0..81000 W", "limit power max"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const crdi_dcp_limits planned = parse(ctx, cases[i].text);
        const crd_status st = crdi_dcp_limits_agree(ctx, &planned, &b, &peer);
        check_int(st, cases[i].says ? CRD_E_RANGE : CRD_OK);
        if (cases[i].says) { check_contains(crd_error_text(ctx), cases[i].says); }
    }
}

static void initial_temperatures_have_a_tolerance(void** state)
{
    crd_context* ctx = *state;
    crdi_dcp_limits l;
    double tolerance = 0;
    const char text[] = "oil 80 degC; coolant 333.15 K; tolerance 0.5 K";
    check_ok(crdi_dcp_initial_parse(ctx, text, strlen(text), &l, &tolerance));
    check_int(l.count, 2);
    check_near(tolerance, 0.5, 0);
    check_near(l.of[0].min, 80, 0);
    check_ok(crdi_dcp_initial_parse(ctx, "oil 80 degC", 11, &l, &tolerance));
    check_near(tolerance, 1, 0);
    static const char* const wrong[] = {"oil 80..90 degC", "oil 80 V", "oil 80",
                                        "oil 80 degC; avoid a 0..1 with b", "oil degC"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_status(crdi_dcp_initial_parse(ctx, wrong[i], strlen(wrong[i]), &l, &tolerance),
                     CRD_E_FORMAT);
    }
    check_status(crdi_dcp_initial_parse(ctx, "tolerance 0 K", 13, &l, &tolerance), CRD_E_RANGE);
    check_status(crdi_dcp_initial_parse(ctx, "tolerance -1 K", 14, &l, &tolerance), CRD_E_RANGE);
}

static void states_of_a_master_have_the_numbers_of_table_7(void** state)
{
    static const char* const names[] = {"REGISTER", "CONFIGURE", "APPLY", "INITIALIZE", "SEND_I",
                                        "RUN",      "SEND_D",    "STOP",  "STOPPED"};
    for (int i = 0; i < 9; i++) {
        check_text(crdi_dcp_master_state_name(i), names[i]);
    }
    check(!crdi_dcp_master_state_name(9) && !crdi_dcp_master_state_name(-1));
    const crd_dcp_state waiting[] = {CRD_DCP_CONFIGURED, CRD_DCP_CONFIGURING};
    check_int(crdi_dcp_master_state_of(waiting, 2, true), CRDI_DCP_MASTER_APPLY);
    const crd_dcp_state warm[] = {CRD_DCP_CONFIGURED, CRD_DCP_CONFIGURED};
    check_int(crdi_dcp_master_state_of(warm, 2, false), CRDI_DCP_MASTER_APPLY);
    check_int(crdi_dcp_master_state_of(warm, 2, true), CRDI_DCP_MASTER_INITIALIZE);
    const crd_dcp_state broken[] = {CRD_DCP_RUNNING, CRD_DCP_ERRORHANDLING};
    check_int(crdi_dcp_master_state_of(broken, 2, true), CRDI_DCP_MASTER_STOP);
    const crd_dcp_state over[] = {CRD_DCP_STOPPED, CRD_DCP_STOPPED};
    check_int(crdi_dcp_master_state_of(over, 2, true), CRDI_DCP_MASTER_STOPPED);
    for (int i = 0; i <= CRD_DCP_BENCH_SAFE; i++) {
        check(crd_dcp_bench_phase_name(i) && crd_dcp_bench_reason_name(i));
    }
    check(!crd_dcp_bench_phase_name(12) && !crd_dcp_bench_reason_name(11));
    check(!crd_dcp_bench_phase_name(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_read_back_as_what_was_printed),
        cmocka_unit_test(a_statement_that_is_wrong_is_named),
        cmocka_unit_test(any_bytes_are_read_or_refused),
        cmocka_unit_test(a_test_case_is_held_against_each_limit),
        cmocka_unit_test(both_sides_come_to_the_same_verdict),
        cmocka_unit_test(initial_temperatures_have_a_tolerance),
        cmocka_unit_test(states_of_a_master_have_the_numbers_of_table_7),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
