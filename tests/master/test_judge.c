// The verdict on masters that are made by hand, so that every number is known, and on real runs.
#include "json_tree.h"
#include "master/verdict/judge.h"
#include "models.h"

#include <stdio.h>

static check_allocator memory;

static int setup(void** state)
{
    *state = check_context(&memory);
    return 0;
}

static int teardown(void** state)
{
    crd_context_destroy(*state);
    return memory.live == 0 ? 0 : -1;
}

// ---- a master made by hand ---------------------------------------------------------------------

enum { UNITS = 3, MOST_FLOWS = 300 };

static const crd_variable variables[] = {
    {.name = "f", .unit = "N", .size = 1},
    {.name = "v", .unit = "m/s", .size = 1},
    {.name = "xs", .unit = "m", .size = 4, .rank = 1},
    {.name = "w", .unit = "", .size = 1},
};

static const crd_unit_ops ops = {0};
static const char* const names[UNITS] = {"first", "second", "third"};

typedef struct fake {
    crd_master m;
    crdi_plan plan;
    crd_system sys;
    crd_connection_spec spec;
    crd_unit_spec specs[UNITS];
    crd_unit units[UNITS];
    crdi_member members[UNITS];
    crdi_member_state runs[UNITS];
    crdi_prediction flows[MOST_FLOWS];
    crdi_observed watches[4];
    crdi_connection connections[MOST_FLOWS + 4];
    crdi_bond powers[3];
    char texts[MOST_FLOWS][2][32];
} fake;

// 100 steps of 5 ms.
static fake* make(crd_context* ctx)
{
    fake* k = calloc(1, sizeof *k);
    crd_arena_init(&k->m.arena, ctx);
    k->spec.scale = (double)NAN;
    k->sys.run.monitor = CRD_MONITOR_DEFECT | CRD_MONITOR_ENERGY;
    k->sys.run.control.reject = (double)NAN;
    for (int i = 0; i < UNITS; i++) {
        k->specs[i].source = CRD_UNIT_NATIVE;
        k->units[i] = (crd_unit){.ops = &ops, .name = names[i], .spec = &k->specs[i]};
        k->units[i].info.variables = variables;
        k->units[i].info.variable_count = 4;
        k->units[i].info.kind = "FMU 2.0";
        k->units[i].info.max_input_order = 2;
        k->members[i] =
            (crdi_member){.unit = &k->units[i], .step = 5e-3, .ticks = 1, .run = &k->runs[i]};
    }
    k->m.ctx = ctx;
    k->m.plan = &k->plan;
    k->plan.ctx = ctx;
    k->plan.sys = &k->sys;
    k->plan.connections = k->connections;
    k->plan.members = k->members;
    k->plan.member_count = UNITS;
    k->m.connections.predictions = k->flows;
    k->m.connections.observed = k->watches;
    k->m.energy.bonds = k->powers;
    k->plan.times.tick = 5e-3;
    k->plan.times.tick_count = 1000;
    k->m.clock.n = k->m.verdict.report.steps = 100;
    k->m.clock.time = 0.5;
    return k;
}

static void drop(fake* k)
{
    crd_arena_clear(&k->m.arena);
    free(k);
}

// A flow with this RMS in each of 100 steps, of a signal of size 1.
static crdi_prediction* add_flow(fake* k, int from, int variable, int to, crd_predictor used,
                                 double rms)
{
    const int i = k->m.connections.prediction_count++;
    crdi_prediction* f = &k->flows[i];
    snprintf(k->texts[i][0], 32, "%s.%s", names[from], variables[variable].name);
    snprintf(k->texts[i][1], 32, "%s.in%d", names[to], i);
    crdi_connection* c = &k->connections[k->plan.connection_count++];
    *c = (crdi_connection){.spec = &k->spec,
                           .from_name = k->texts[i][0],
                           .to_name = k->texts[i][1],
                           .from = {.member = from, .variable = variable},
                           .to = {.member = to, .variable = variable},
                           .gain = 1,
                           .prediction = f};
    *f = (crdi_prediction){.of = c,
                           .source = &k->members[from],
                           .target = &k->members[to],
                           .gain = 1,
                           .size = 1,
                           .square = 0.5,
                           .predict = CRD_PREDICTION_AUTO};
    static double taken;
    f->slope[0] = &taken;
    f->uses[used] = 100;
    for (int s = 1; s <= 100; s++) {
        crd_defect_add(&f->connection, 5e-3 * s, 5e-3, rms, 2 * rms);
    }
    return f;
}

// The defect of a held signal of size 2: its RMS over half a second.
static void add_watch(fake* k, int from, int variable, int element, int to, double rms)
{
    const int i = k->m.connections.observed_count++;
    crdi_connection* c = &k->connections[k->plan.connection_count++];
    *c = (crdi_connection){.from = {.member = from, .variable = variable, .element = element},
                           .to = {.member = to, .variable = variable, .element = element},
                           .gain = 1,
                           .observed = &k->watches[i],
                           .spec = &k->spec};
    k->watches[i] = (crdi_observed){.of = c,
                                    .gain = 1,
                                    .integral = 0.5 * rms * rms,
                                    .max = 3 * rms,
                                    .size = 2,
                                    .square = 2,
                                    .max_time = 0.25};
}

static const crd_master_report* judge(fake* k)
{
    crdi_verdict_report(&k->m);
    crdi_verdict_advise(&k->m, &k->m.verdict.report);
    return &k->m.verdict.report;
}

static bool advises(const crd_master_report* r, const char* part)
{
    for (int i = 0; i < r->advice_count; i++) {
        if (strstr(r->advice[i], part)) { return true; }
    }
    return false;
}

#define check_advises(r, part)                                                                     \
    do {                                                                                           \
        if (!advises(r, part)) {                                                                   \
            for (int check_i = 0; check_i < (r)->advice_count; check_i++) {                        \
                print_message("advice: %s\n", (r)->advice[check_i]);                               \
            }                                                                                      \
            fail_msg("%s:%d: nobody says \"%s\"", __FILE__, __LINE__, part);                       \
        }                                                                                          \
    } while (0)

// ---- reports -----------------------------------------------------------------------------------

static void connections_come_by_their_relative_defect(void** state)
{
    fake* k = make(*state);
    add_flow(k, 0, 0, 1, CRD_PREDICT_TAYLOR2, 1e-4);
    add_flow(k, 1, 1, 0, CRD_PREDICT_HERMITE, 3e-2)->uses[CRD_PREDICT_HOLD] = 25;
    add_watch(k, 2, 2, 2, 0, 4e-3);
    const crd_master_report* r = judge(k);
    check_int(r->flow_count, 3);
    check_text(r->flows[0].from, "second.v");
    check_text(r->flows[0].unit, "m/s");
    check_text(r->flows[0].used, "hermite");
    check_near(r->flows[0].share, 0.8, 1e-12);
    check_int(r->flows[0].order, crd_predictor_order(CRD_PREDICT_HERMITE));
    check_near(r->flows[0].rms, 3e-2, 1e-12);
    check_near(r->flows[0].max, 6e-2, 1e-12);
    check_near(r->flows[0].relative, 3e-2, 1e-12);
    check_near(r->flows[0].step, 5e-3, 1e-12);
    check(isnan(r->flows[0].output_rms) && isnan(r->flows[0].error_rms));
    check_text(r->flows[1].from, "third.xs[3]");
    check_text(r->flows[1].to, "first.xs[3]");
    check_text(r->flows[1].used, "hold");
    check_int(r->flows[1].order, 1);
    check_near(r->flows[1].rms, 4e-3, 1e-12);
    check_near(r->flows[1].relative, 2e-3, 1e-12);
    check_near(r->flows[1].max_time, 0.25, 0);
    check_text(r->flows[2].from, "first.f");
    check_near(r->worst_defect, 3e-2, 1e-12);
    check(isnan(r->worst_energy));
    drop(k);
}

static void the_larger_of_both_defects_counts_and_the_scale_may_be_given(void** state)
{
    fake* k = make(*state);
    crdi_prediction* f = add_flow(k, 0, 0, 1, CRD_PREDICT_TAYLOR2, 1e-3);
    crd_defect_sum output = {0};
    f->output = &output;
    f->scale_given = 10;
    crd_defect_add(f->output, 5e-3, 5e-3, 4e-3, 4e-3);
    const crd_master_report* r = judge(k);
    check_near(r->flows[0].output_rms, 4e-3, 1e-15);
    check_near(r->flows[0].relative, 4e-4, 1e-15);
    drop(k);
}

static void what_broke_is_the_worst(void** state)
{
    fake* k = make(*state);
    add_flow(k, 0, 0, 1, CRD_PREDICT_TAYLOR2, 0.5);
    crdi_prediction* f = add_flow(k, 1, 1, 0, CRD_PREDICT_TAYLOR2, 1e-9);
    crd_defect_add(&f->connection, 1, 5e-3, (double)NAN, (double)NAN);
    add_watch(k, 2, 1, 0, 0, 1);
    k->watches[0].integral = (double)NAN;
    const crd_master_report* r = judge(k);
    check(isnan(r->flows[0].relative) && isnan(r->flows[0].max));
    check(isnan(r->flows[1].relative) && isnan(r->flows[1].max));
    check_near(r->flows[2].relative, 0.5, 1e-12);
    check(isnan(r->worst_defect));
    check_contains(r->advice[0], "second.v -> first.in1 is not a number");
    check_advises(r, "first.f -> second.in0"); // of the others it is still the worst
    drop(k);
}

static void hundreds_are_sorted_without_memory(void** state)
{
    fake* k = make(*state);
    uint32_t x = 1;
    for (int i = 0; i < MOST_FLOWS; i++) {
        x = x * 1664525u + 1013904223u;
        add_flow(k, 0, 3, 1, CRD_PREDICT_TAYLOR2, 1e-6 * (x >> 24)); // some are equal
    }
    (void)judge(k);
    k->flows[7].size = 1e-3; // now others come first
    k->flows[200].size = 1e-4;
    const int64_t before = memory.allocations;
    k->members[1].run->crashed = true;
    const crd_master_report* r = judge(k);
    check_int(memory.allocations, before);
    check_int(r->flow_count, MOST_FLOWS);
    bool seen[MOST_FLOWS] = {0};
    for (int i = 0; i < MOST_FLOWS; i++) {
        check(i == 0 || r->flows[i - 1].relative >= r->flows[i].relative);
        seen[atoi(strstr(r->flows[i].to, "in") + 2)] = true;
    }
    for (int i = 0; i < MOST_FLOWS; i++) {
        check(seen[i]);
    }
    drop(k);
}

static void after_a_crash_it_is_too_late_for_room(void** state)
{
    fake* k = make(*state);
    add_flow(k, 0, 0, 1, CRD_PREDICT_TAYLOR2, 1e-3);
    k->members[0].run->crashed = true;
    const int64_t before = memory.allocations;
    const crd_master_report* r = judge(k);
    check_int(memory.allocations, before);
    check_int(r->flow_count, 0);
    check(isnan(r->worst_defect));
    drop(k);
}

static void without_memory_there_is_no_verdict_and_no_harm(void** state)
{
    (void)state;
    bool done = false;
    int64_t n = 0;
    for (; !done; n++) {
        check(n < 100);
        check_allocator failing;
        crd_context* ctx = check_context(&failing);
        fake* k = make(ctx);
        add_flow(k, 0, 0, 1, CRD_PREDICT_TAYLOR2, 1e-3);
        add_watch(k, 1, 1, 0, 0, 1e-3);
        failing.fail_at = failing.allocations + n;
        const crd_master_report* r = judge(k);
        done = r->flow_count == 2;
        check(done || r->flow_count == 0);
        drop(k);
        crd_context_destroy(ctx);
        check_int(failing.live, 0);
    }
    check(n > 3);
}

static void what_is_not_monitored_is_not_reported(void** state)
{
    fake* k = make(*state);
    add_flow(k, 0, 0, 1, CRD_PREDICT_TAYLOR2, 0.1);
    k->m.energy.bond_count = 1;
    k->sys.run.monitor = 0;
    const crd_master_report* r = judge(k);
    check_int(r->flow_count, 0);
    check_int(r->bond_count, 0);
    check_int(r->advice_count, 0);
    drop(k);
}

static void add_power(fake* k, const char* name, double error, double work, double scale)
{
    crdi_bond* p = &k->powers[k->m.energy.bond_count++];
    *p = (crdi_bond){.name = name, .action_name = "first.f", .flow_name = "second.v"};
    p->bond.mu = 0.5;
    p->created = error + work; // the balance of what acted, with the corrections
    p->worked = work;
    p->state = (crd_bond_state){
        .error = error, .energy = 2 * error, .work = work, .scale = scale, .power_max = 7};
}

static void bonds_come_by_what_is_left_of_their_energy(void** state)
{
    fake* k = make(*state);
    add_power(k, "a", 5, -4.9, 10);
    add_power(k, "b", -3, 0, 10);
    add_power(k, "rests", 1e-10, 0, 0); // rounding beside what passes the others
    k->connections[0].spec = &k->spec;
    const crd_master_report* r = judge(k);
    check_int(r->bond_count, 3);
    check_text(r->bonds[0].name, "b");
    check_near(r->bonds[0].relative, -0.3, 1e-12);
    check_near(r->bonds[0].residual, -6, 1e-12);
    check_near(r->bonds[1].relative, 0.01, 1e-12);
    check_near(r->bonds[2].relative, 0, 0);
    check_near(r->worst_energy, 0.3, 1e-12);
    check_advises(r, "bond 'b': the exchange took 3 J out of the system, 30 % of what passed");
    check_advises(r, "'correct: lead'");
    check(!advises(r, "all defects"));
    k->powers[2].created = 0.5;
    r = judge(k);
    check_text(r->bonds[0].name, "rests");
    check_advises(r, "bond 'rests': the exchange put 0.5 J into the system, more than all of what");
    drop(k);
}

// ---- advice ------------------------------------------------------------------------------------

static void a_smaller_step_is_advised_with_its_number(void** state)
{
    fake* k = make(*state);
    add_flow(k, 1, 1, 0, CRD_PREDICT_TAYLOR1, 4e-3);
    add_flow(k, 0, 3, 1, CRD_PREDICT_TAYLOR1, 1e-3);
    const crd_master_report* r = judge(k);
    check_advises(r, "second.v -> first.in0 dominates: its defect is 0.4 % of the signal's scale, "
                     "94 % of the sum of squares");
    // 5 ms (0.09 / 0.4)^(1/2) = 2.4 ms, in round numbers 2 ms; (2/5)^2 0.4 % = 0.064 %
    check_advises(r, "H = 2 ms instead of 5 ms would bring first.in0 to about 0.064 %");
    k->plan.opt.defect_goal = 1e-2;
    r = judge(k);
    check_int(r->advice_count, 1);
    check_text(r->advice[0], "all defects are below 1 % of the signals");
    drop(k);
}

// Errors of a loop that nobody can look into: at worst every defect pushes with the motion.
static void defects_of_an_unknown_loop_add_up(void** state)
{
    fake* k = make(*state);
    crdi_prediction* f = add_flow(k, 0, 0, 1, CRD_PREDICT_TAYLOR2, 3e-3);
    add_flow(k, 1, 1, 0, CRD_PREDICT_TAYLOR2, 1e-4);
    f->way = 4 * 5; // five periods: 0.3 % may have become 0.3 % * 16
    const crd_master_report* r = judge(k);
    check_near(r->worst_part, 3e-3 * 0.785 * 20, 1e-9);
    check_int(r->trust, CRD_TRUST_GOOD);
    f->way = 4 * 6;
    r = judge(k);
    check_int(r->trust, CRD_TRUST_DOUBTFUL);
    check_text(r->worst_part_of, "first.f");
    check_advises(r, "at worst the defects of first.f have added up to 5.7 % of its RMS");
    // it has died away: its RMS is a tenth of its largest value, and so is the way that counts
    f->square = 0.005;
    f->way = 4 * 1;
    r = judge(k);
    check_near(r->worst_part, 3e-2 * 0.785 * 4, 1e-9);
    drop(k);
    k = make(*state); // about an offset: by half of its range
    f = add_flow(k, 0, 0, 1, CRD_PREDICT_TAYLOR2, 3e-3);
    add_flow(k, 1, 1, 0, CRD_PREDICT_TAYLOR2, 1e-4);
    f->way = 4;
    f->low = 0.8;
    f->high = 1;
    r = judge(k);
    check_near(r->worst_part, 3e-3 * 0.785 * 40, 1e-9);
    drop(k);
    k = make(*state); // outside of loops they do not
    add_flow(k, 0, 0, 1, CRD_PREDICT_TAYLOR2, 3e-3)->way = 4 * 1000;
    r = judge(k);
    check_near(r->worst_part, 3e-3, 1e-9);
    check_int(r->trust, CRD_TRUST_GOOD);
    drop(k);
}

// What is late on the way is late behind it, too.
static void defects_of_an_unknown_chain_add_up(void** state)
{
    fake* k = make(*state);
    add_flow(k, 0, 0, 1, CRD_PREDICT_HOLD, 0.02);
    add_flow(k, 1, 0, 2, CRD_PREDICT_HOLD, 0.025);
    const crd_master_report* r = judge(k);
    check_near(r->worst_part, 0.045, 1e-9);
    check_text(r->worst_part_of, "second.f");
    check_int(r->trust, CRD_TRUST_GOOD);
    drop(k);
    k = make(*state);
    add_flow(k, 1, 0, 2, CRD_PREDICT_HOLD, 0.05);
    add_flow(k, 0, 1, 2, CRD_PREDICT_HOLD, 0.03); // the longest way counts, in any order
    add_flow(k, 0, 0, 1, CRD_PREDICT_HOLD, 0.06);
    r = judge(k);
    check_near(r->worst_part, 0.11, 1e-9);
    check_int(r->trust, CRD_TRUST_DOUBTFUL);
    drop(k);
    k = make(*state); // a loop, and what it gives to others
    add_flow(k, 0, 0, 1, CRD_PREDICT_HOLD, 1e-3)->way = 4 * 20;
    add_flow(k, 1, 1, 0, CRD_PREDICT_HOLD, 1e-4);
    add_flow(k, 1, 0, 2, CRD_PREDICT_HOLD, 0.04);
    r = judge(k);
    check_near(r->worst_part, 1e-3 * 0.785 * 80 + 0.04, 1e-9);
    check_int(r->trust, CRD_TRUST_DOUBTFUL);
    check_advises(r, "at worst the defects of second.f have added up to 10 % of its RMS");
    drop(k);
}

static void the_slower_unit_is_the_one_to_change(void** state)
{
    fake* k = make(*state);
    k->plan.times.multirate = true;
    k->members[1].step = 50e-3;
    crdi_prediction* f = add_flow(k, 1, 1, 0, CRD_PREDICT_TAYLOR1, 0);
    f->connection = (crd_defect_sum){0};
    crd_defect_add(&f->connection, 50e-3, 50e-3, 0.1, 0.1);
    const crd_master_report* r = judge(k);
    check_advises(r, "'step: 4 ms' for unit 'second' instead of 50 ms would bring first.in0 to");
    drop(k);
}

static void a_controlled_run_gets_another_tolerance(void** state)
{
    fake* k = make(*state);
    k->plan.controlled = true;
    k->m.clock.time = 0.5;
    k->sys.run.control.tolerance = 1e-2;
    k->m.verdict.report.control = (crd_control_report){
        .on = true, .worst = 7, .worst_flow = "a.y -> b.u", .forward_only = "unit 'a' cannot"};
    k->m.control.step.at_floor = 30;
    k->m.control.options.floor = 1e-6;
    add_flow(k, 1, 1, 0, CRD_PREDICT_TAYLOR1, 4e-3);
    const crd_master_report* r = judge(k);
    check_advises(r,
                  "'control: { tolerance: 0.002 }' instead of 0.01 would bring first.in0 to about "
                  "0.08 %");
    check_advises(r, "30 of 100 steps were as short as 'floor' allows (1 us)");
    check_advises(r, "a defect of 7 tolerances over a.y -> b.u: a smaller tolerance leaves room");
    for (int i = 0; i < UNITS; i++) {
        k->units[i].info.flags = CRD_UNIT_CAN_SAVE;
    }
    check_advises(judge(k), "without 'reject: no', in a run that does not keep the clock");
    k->m.verdict.report.control.forward_only = "";
    check_advises(judge(k), "which no shorter one made better: noise, a jump, or a signal");
    drop(k);
}

static void held_signals_that_change_little_are_to_be_predicted(void** state)
{
    fake* k = make(*state);
    add_watch(k, 1, 1, 0, 0, 0.04);
    const crd_master_report* r = judge(k);
    check_advises(r,
                  "second.v is held though it changes little in a step of 5 ms: 'predict: auto'");
    k->watches[0].integral = 0.5 * 0.5 * 0.5; // a quarter of the signal in a step
    r = judge(k);
    check(!advises(r, "predict: auto"));
    drop(k);
}

static void what_auto_holds_cannot_be_predicted(void** state)
{
    fake* k = make(*state);
    crdi_prediction* f = add_flow(k, 1, 1, 0, CRD_PREDICT_HOLD, 0.05);
    const crd_master_report* r = judge(k);
    check_advises(r, "second.v was held because no prediction was better");
    check(!advises(r, "H = "));
    f->select.jumps = 20;
    check_advises(judge(k), "second.v jumps (20 times)");
    drop(k);
}

static void loops_that_can_go_back_may_be_iterated(void** state)
{
    fake* k = make(*state);
    add_flow(k, 1, 3, 0, CRD_PREDICT_TAYLOR1, 4e-3);
    add_flow(k, 0, 3, 1, CRD_PREDICT_TAYLOR1, 1e-3);
    add_flow(k, 1, 3, 2, CRD_PREDICT_TAYLOR1, 1e-3);
    k->units[0].info.flags = k->units[1].info.flags = CRD_UNIT_CAN_SAVE;
    const crd_master_report* r = judge(k);
    check_advises(r, "can all go back (first, second): 'iterate: true'");
    k->plan.iterated = true;
    check(!advises(judge(k), "iterate: true"));
    drop(k);
    k = make(*state); // the third is not in a loop, and one of the others cannot go back
    k->units[0].info.flags = k->units[2].info.flags = CRD_UNIT_CAN_SAVE;
    add_flow(k, 1, 3, 0, CRD_PREDICT_TAYLOR1, 4e-3);
    add_flow(k, 0, 3, 1, CRD_PREDICT_TAYLOR1, 1e-3);
    add_flow(k, 1, 3, 2, CRD_PREDICT_TAYLOR1, 5e-3);
    check(!advises(judge(k), "iterate: true"));
    drop(k);
}

static void a_power_that_nobody_watches_is_named(void** state)
{
    fake* k = make(*state);
    add_flow(k, 1, 1, 0, CRD_PREDICT_TAYLOR1, 4e-3);
    add_flow(k, 0, 0, 1, CRD_PREDICT_TAYLOR1, 1e-3);
    check_advises(judge(k),
                  "first.f and second.v form a power bond: 'bonds: [[first.f, second.v]]'");
    drop(k);
    k = make(*state); // one way only
    add_flow(k, 1, 1, 0, CRD_PREDICT_TAYLOR1, 4e-3);
    add_flow(k, 0, 0, 2, CRD_PREDICT_TAYLOR1, 1e-3);
    check(!advises(judge(k), "power bond"));
    drop(k);
    k = make(*state); // there is a bond
    crd_bond_spec bond = {.action_unit = 0, .flow_unit = 1, .action = "f", .flow = "v"};
    k->sys.bonds = &bond;
    k->sys.bond_count = 1;
    add_flow(k, 1, 1, 0, CRD_PREDICT_TAYLOR1, 4e-3);
    add_flow(k, 0, 0, 1, CRD_PREDICT_TAYLOR1, 1e-3);
    check(!advises(judge(k), "power bond"));
    drop(k);
}

static void a_defect_that_grows_in_a_loop_is_told(void** state)
{
    fake* k = make(*state);
    crdi_prediction* f = add_flow(k, 1, 3, 0, CRD_PREDICT_TAYLOR1, 4e-3);
    add_flow(k, 0, 3, 1, CRD_PREDICT_TAYLOR1, 1e-3);
    f->connection.max = 0.032;
    f->connection.max_time = 0.49;
    const crd_master_report* r = judge(k);
    check_advises(r, "the defect of second.w has grown to 8 times its RMS at the end of the run");
    check_int(r->trust, CRD_TRUST_DOUBTFUL);
    f->connection.max_time = 0.2; // long ago
    check(!advises(judge(k), "has grown"));
    f->connection.max_time = 0.49;
    k->connections[1].to.member = 2; // no loop
    k->m.verdict.judge = NULL;
    check(!advises(judge(k), "has grown"));
    drop(k);
}

static void units_that_take_constants_are_named(void** state)
{
    fake* k = make(*state);
    k->specs[0].source = CRD_UNIT_FMU;
    k->units[0].info.max_input_order = 0;
    add_flow(k, 1, 1, 0, CRD_PREDICT_AB2, 4e-3)->slope[0] = NULL;
    check_advises(judge(k), "'first' (FMU 2.0) takes constants only: as Model Exchange");
    drop(k);
}

static void before_the_first_step_nothing_is_advised(void** state)
{
    fake* k = make(*state);
    add_flow(k, 1, 1, 0, CRD_PREDICT_TAYLOR1, 0)->connection = (crd_defect_sum){0};
    k->m.clock.n = k->m.verdict.report.steps = 0;
    const crd_master_report* r = judge(k);
    check_int(r->advice_count, 0);
    check_near(r->flows[0].relative, 0, 0);
    drop(k);
}

static void long_names_are_cut_at_whole_characters(void** state)
{
    fake* k = make(*state);
    char name[2000];
    for (size_t i = 0; i + 2 < sizeof name; i += 2) {
        memcpy(name + i, "\u00E4", 3);
    }
    add_flow(k, 1, 1, 0, CRD_PREDICT_TAYLOR1, 4e-3);
    k->connections[0].from_name = name;
    const crd_master_report* r = judge(k);
    check(r->advice_count > 0);
    for (int i = 0; i < r->advice_count; i++) {
        check(strlen(r->advice[i]) < CRDI_SENTENCE);
        for (const char* c = r->advice[i]; *c;) { // UTF-8
            const size_t n = crdi_utf8_length(c, strlen(c));
            check(n > 0);
            c += n;
        }
    }
    drop(k);
}

// ---- real runs ---------------------------------------------------------------------------------

// a: y' = 1, held or predicted at the input of b.
static const crd_master_report* run_ramp(crd_context* ctx, crd_prediction predict, crd_system** s,
                                         crd_master** m)
{
    *s = new_system(ctx, 0.1, 2);
    add_unit(*s, "a", &euler_model, 0);
    add_unit(*s, "b", &euler_model, 0);
    set(*s, 0, "u", "1");
    wire(*s, 0, "y", 1, "u")->predict = predict;
    check_run(crd_master_create(ctx, *s, NULL, m), ctx);
    check_run(crd_master_run(*m), ctx);
    return crd_master_get_report(*m);
}

static void the_defect_of_a_held_ramp_is_its_rise(void** state)
{
    crd_system* s = NULL;
    crd_master* m = NULL;
    const crd_master_report* r = run_ramp(*state, CRD_PREDICTION_HOLD, &s, &m);
    check_int(r->flow_count, 1);
    check_text(r->flows[0].from, "a.y");
    check_text(r->flows[0].to, "b.u");
    check_near(r->flows[0].rms, 0.1 / sqrt(3), 1e-12); // of s over the step, from 0 to H
    check_near(r->flows[0].max, 0.1, 1e-12);
    check_near(r->flows[0].scale, 2, 1e-12);
    check_near(r->worst_defect, 0.05 / sqrt(3), 1e-12);
    check_advises(r, "a.y is held though it changes little in a step of 100 ms");
    // Asked again it is the same, and takes no memory.
    const int64_t before = memory.allocations;
    check(crd_master_get_report(m) == r);
    check_int(memory.allocations, before);
    check_near(r->flows[0].rms, 0.1 / sqrt(3), 1e-12);
    crd_master_destroy(m);
    crd_system_destroy(s);
    r = run_ramp(*state, CRD_PREDICTION_LINEAR, &s, &m);
    check_text(r->flows[0].used, "linear");
    check_near(r->flows[0].rms, 0.1 / sqrt(3), 1e-12); // b takes constants: as if it were held
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// y = sin t, which needs nothing
typedef struct {
    double y;
} wave;

static void wave_outputs(void* self, double t)
{
    ((wave*)self)->y = sin(t);
}

static crd_model_status wave_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    wave_outputs(self, t);
    return CRD_MODEL_OK;
}

static const crd_model_variable wave_variables[] = {
    {.name = "y", .type = CRD_FLOAT64, .causality = CRD_OUTPUT, .offset = offsetof(wave, y)},
};
static const crd_model wave_model = {.name = "wave",
                                     .description = "y = sin t",
                                     .size = sizeof(wave),
                                     .variables = wave_variables,
                                     .variable_count = 1,
                                     .default_step = 0.1,
                                     .default_stop = 1,
                                     .initialize = wave_initialize,
                                     .outputs = wave_outputs,
                                     .step = gain_step};

// Ten units that hand on what they get, each a step late: the last one is off by 10 H of a turn.
// Every defect is small, nothing is a loop, and nobody can look into the units.
static void what_is_late_all_along_a_chain_is_not_green(void** state)
{
    enum { CHAIN = 10 };
    const double H = 0.02;
    crd_system* s = new_system(*state, H, 20);
    crd_master* m = NULL;
    add_unit(s, "wave", &wave_model, 0);
    for (int i = 1; i <= CHAIN; i++) {
        char name[8];
        snprintf(name, sizeof name, "g%d", i);
        add_unit(s, name, &plain_gain_model, 0);
        wire(s, i - 1, "y", i, "u");
    }
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_run(m), *state);
    const crd_master_report* r = crd_master_get_report(m);
    check_near(value(m, "g10.y"), sin(20 - CHAIN * H), 1e-9);
    check(r->worst_defect < 0.02);
    check(r->worst_part >= CHAIN * H && r->worst_part <= 2 * CHAIN * H); // at worst
    check_int(r->trust, CRD_TRUST_DOUBTFUL);
    check_advises(r, "errors are not known: at worst the defects of g9.y have added up");
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void the_verdict_is_json_with_all_its_keys(void** state)
{
    static const char* const keys[] = {"flows",       "bonds",       "control",      "iteration",
                                       "defect_goal", "energy_goal", "worst_defect", "worst_energy",
                                       "error_note",  "advice",      "warnings"};
    crd_system* s = NULL;
    crd_master* m = NULL;
    (void)run_ramp(*state, CRD_PREDICTION_HOLD, &s, &m);
    crd_text t;
    crd_text_init(&t, *state);
    check_ok(crd_master_describe_verdict(m, &t));
    const crdi_json* j = json_tree(t.data, t.length);
    check(j != NULL);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!crdi_json_member(j, keys[i])) { fail_msg("no key %s", keys[i]); }
    }
    const crdi_json* flow = crdi_json_item(crdi_json_member(j, "flows"), 0);
    check_near(crdi_json_value(crdi_json_member(flow, "defect_rms")), 0.1 / sqrt(3), 1e-12);
    check(json_is(crdi_json_member(flow, "output_defect_rms"), CRDI_JSON_NULL));
    check(json_is(crdi_json_member(j, "control"), CRDI_JSON_NULL));
    crd_text_clear(&t);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

// However long the sentences of the end are, room for them was made at the start.
static void the_verdict_fits_into_the_room_that_was_reserved(void** state)
{
    crd_system* s = NULL;
    crd_master* m = NULL;
    s = new_system(*state, 0.1, 2);
    add_unit(s, "a", &euler_model, 0);
    add_unit(s, "b", &euler_model, 0);
    set(s, 0, "u", "1");
    wire(s, 0, "y", 1, "u");
    wire(s, 1, "y", 0, "u");
    check_run(crd_master_create(*state, s, NULL, &m), *state);
    check_run(crd_master_initialize(m), *state);
    check_ok(crdi_record_reserve_verdict(m));
    const size_t room = m->record.verdict.capacity;
    check_run(crd_master_advance(m, 20), *state);
    memset(m->life.message, 1, sizeof m->life.message - 1); // six bytes each
    const int64_t before = memory.allocations;
    check_ok(crd_master_describe_verdict(m, &m->record.verdict));
    check_int(memory.allocations, before);
    check_int(m->record.verdict.capacity, room);
    m->life.message[0] = 0;
    crd_master_destroy(m);
    crd_system_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_come_by_their_relative_defect),
        cmocka_unit_test(the_larger_of_both_defects_counts_and_the_scale_may_be_given),
        cmocka_unit_test(what_broke_is_the_worst),
        cmocka_unit_test(hundreds_are_sorted_without_memory),
        cmocka_unit_test(after_a_crash_it_is_too_late_for_room),
        cmocka_unit_test(without_memory_there_is_no_verdict_and_no_harm),
        cmocka_unit_test(what_is_not_monitored_is_not_reported),
        cmocka_unit_test(bonds_come_by_what_is_left_of_their_energy),
        cmocka_unit_test(a_smaller_step_is_advised_with_its_number),
        cmocka_unit_test(defects_of_an_unknown_loop_add_up),
        cmocka_unit_test(defects_of_an_unknown_chain_add_up),
        cmocka_unit_test(the_slower_unit_is_the_one_to_change),
        cmocka_unit_test(a_controlled_run_gets_another_tolerance),
        cmocka_unit_test(held_signals_that_change_little_are_to_be_predicted),
        cmocka_unit_test(what_auto_holds_cannot_be_predicted),
        cmocka_unit_test(loops_that_can_go_back_may_be_iterated),
        cmocka_unit_test(a_power_that_nobody_watches_is_named),
        cmocka_unit_test(a_defect_that_grows_in_a_loop_is_told),
        cmocka_unit_test(units_that_take_constants_are_named),
        cmocka_unit_test(before_the_first_step_nothing_is_advised),
        cmocka_unit_test(long_names_are_cut_at_whole_characters),
        cmocka_unit_test(the_defect_of_a_held_ramp_is_its_rise),
        cmocka_unit_test(what_is_late_all_along_a_chain_is_not_green),
        cmocka_unit_test(the_verdict_is_json_with_all_its_keys),
        cmocka_unit_test(the_verdict_fits_into_the_room_that_was_reserved),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
