// Benches of a run that is watched: their boards, the emergency stop at any moment, and the end. A
// desk plays the bench; the watcher is the test itself, on a clock that the test moves.
#include "live_help.h"

#include "master/live/live.h"

#include <unistd.h>

#define STEP 0.1

/// A bench that does as it is told, and writes down what it was asked for.
typedef struct {
    watched* w;
    crdi_board* board;
    crd_unit_ops ops[2]; // of `d` and of `g`, which has no board
    crd_unit_remote_ops remote[2];
    const crd_unit_ops* inner[2];
    bool waits;   // in its initialisation, until somebody interrupts it
    bool refuses; // the test case
    int press_at; // the step in which the button is pressed, 0: none
    crdi_live_action pressed;
    const char* text;
    bool gives_up;     // and the step fails then, as one that was told to
    int fail_at;       // the step that fails, 0: none
    bool fails_to_end; // terminate says so
    int steps;
    char calls[32]; // h: halt, t: terminate; the unit behind it
    crdi_live_state stopping;
    crd_status refusal; // of a command that comes while it is being stopped
} bench;

static bench b;

static const crd_unit_ops* inner(const crd_unit* u)
{
    return b.inner[strcmp(u->name, "d") == 0 ? 0 : 1];
}

static void call(char what, const crd_unit* u)
{
    const size_t n = strlen(b.calls);
    if (n + 2 < sizeof b.calls) {
        b.calls[n] = what;
        b.calls[n + 1] = u->name[0];
    }
}

static const crdi_board* board_of(const crd_unit* u)
{
    (void)u;
    return b.board;
}

static crd_status give(crdi_live_action action)
{
    return crdi_live_send(
        b.w->l, &(crdi_live_command){.action = action, .text = b.text, .who = "page 127.0.0.1"});
}

static crd_status enter(crd_unit* u, const crd_experiment* e)
{
    check(e->emergency && !__atomic_load_n(e->emergency, __ATOMIC_RELAXED));
    if (b.refuses) { return crdi_fail(u->ctx, CRD_E_RANGE, "torque 300 N.m is too much"); }
    for (int i = 0; b.waits; i++) {
        crdi_board_edit(b.board)->phase = i;
        crdi_board_show(b.board);
        if (i == 3) { check_ok(give(CRDI_LIVE_EMERGENCY)); }
        if (__atomic_load_n(e->emergency, __ATOMIC_RELAXED)) {
            return crdi_fail(u->ctx, CRD_E_UNIT, "interrupted while it was conditioned");
        }
        check(i < 10);
    }
    return inner(u)->enter_initialization(u, e);
}

static crd_status step(crd_unit* u, double t, double h)
{
    b.steps++;
    if (b.steps == b.press_at) { check_ok(give(b.pressed)); }
    if (b.steps == b.fail_at || (b.gives_up && b.steps == b.press_at)) {
        return crdi_fail(u->ctx, CRD_E_UNIT, "it was told to give up");
    }
    return inner(u)->step(u, t, h);
}

static void halt(crd_unit* u)
{
    call('h', u);
}

static crd_status terminate(crd_unit* u)
{
    crdi_live_outcome o;
    crdi_board_state s;
    call('t', u);
    if (strcmp(u->name, "d") == 0) {
        crdi_live_get_outcome(b.w->l, &o);
        b.stopping = o.state;
        b.refusal = give(CRDI_LIVE_EMERGENCY);
        crdi_board_edit(b.board)->phase = 10;
        crdi_board_show(b.board);
        crdi_live_read_board(b.w->l, 0, &s);
        check_int(s.phase, 10);
    }
    const crd_status st = inner(u)->terminate(u);
    return b.fails_to_end ? crdi_fail(u->ctx, CRD_E_UNIT, "it does not come to rest") : st;
}

// clock -> desk; the desk and a gain beside it are benches, the desk has a board.
static void build(watched* w, double stop, const crdi_live_options* opt)
{
    *w = (watched){.ctx = crd_context_create(NULL)};
    w->s = new_system(w->ctx, STEP, stop);
    const int c = add_unit(w->s, "c", &clock_model, 0), d = add_unit(w->s, "d", &desk_model, 0);
    const int g = add_unit(w->s, "g", &gain_model, 0);
    wire(w->s, c, "y", d, "u");
    b = (bench){.w = w, .pressed = CRDI_LIVE_EMERGENCY, .refusal = CRD_OK};
    check_ok(crdi_board_create(w->ctx, &b.board));
    w->clock = hand_made(&w->hand);
    w->hand.ns = 1000;
    crd_master_options o = crd_master_defaults();
    o.clock = &w->clock;
    check_run(crd_master_create(w->ctx, w->s, &o, &w->m), w->ctx);
    const int members[] = {d, g};
    for (int i = 0; i < 2; i++) {
        crd_unit* u = w->m->plan->members[members[i]].unit;
        b.inner[i] = u->ops;
        b.ops[i] = *u->ops;
        b.remote[i] = (crd_unit_remote_ops){.halt = halt};
        b.ops[i].remote = &b.remote[i];
        b.ops[i].terminate = terminate;
        u->ops = &b.ops[i];
    }
    b.remote[0].board = board_of;
    b.ops[0].enter_initialization = enter;
    b.ops[0].step = step;
    b.ops[0].lane = NULL; // no short way past `step`
    const crdi_live_options all = all_of_it();
    check_run(crdi_live_create(w->ctx, w->m, opt ? opt : &all, &w->l), w->ctx);
}

static void start(watched* w, double stop)
{
    build(w, stop, NULL);
    check_run(crd_master_initialize(w->m), w->ctx);
}

static void tear_down(watched* w)
{
    crdi_live_destroy(w->l);
    crd_master_destroy(w->m);
    crd_system_destroy(w->s);
    crdi_board_destroy(b.board);
    crd_context_destroy(w->ctx);
}

static void check_outcome(watched* w, crdi_live_state state, crd_end end, const char* message)
{
    crdi_live_outcome o;
    crdi_live_get_outcome(w->l, &o);
    check_int(o.state, state);
    check_int(o.end, end);
    check_text(o.message, message);
}

// The run has failed; it is finished and told so.
static void check_emergency(watched* w, const char* message)
{
    check_int(crd_master_ended(w->m), CRD_END_FAILED);
    check_text(crd_error_text(w->ctx), message);
    check_run(crd_master_finish(w->m), w->ctx);
    check_outcome(w, CRDI_LIVE_ENDED, CRD_END_FAILED, message);
    check_text(b.calls, "hdhgtdtg"); // all come to rest before somebody is waited for
    check_int(b.stopping, CRDI_LIVE_STOPPING);
    check_int(b.refusal, CRD_OK); // it was pressed already
    hear(w, CRD_EVENT_START, "start: 3 units, step 0.1 s");
    hear(w, CRD_EVENT_ERROR, message);
    hear(w, CRD_EVENT_STOP, "failed");
    check_text(crd_master_get_report(w->m)->end_unit, "");
}

// ---- boards ------------------------------------------------------------------------------------

static void boards_are_there_from_the_creation_to_the_end(void** state)
{
    (void)state;
    watched w;
    crdi_board_state s;
    build(&w, 1, NULL);
    check_int(crdi_live_board_count(w.l), 1);
    check_text(crdi_live_board_unit(w.l, 0), "d");
    crdi_live_read_board(w.l, 0, &s);
    check_int(s.state, -1);
    check_outcome(&w, CRDI_LIVE_STARTING, CRD_END_NONE, "");
    check_text(crdi_live_get_info(w.l)->results, "");
    check_run(crd_master_initialize(w.m), w.ctx);
    advance(&w, 5);
    crdi_board_edit(b.board)->state = 11;
    crdi_board_show(b.board);
    crdi_live_read_board(w.l, 0, &s);
    check_int(s.state, 11);
    check_outcome(&w, CRDI_LIVE_RUNNING, CRD_END_NONE, "");
    advance(&w, 100);
    check_run(crd_master_finish(w.m), w.ctx);
    check_int(b.stopping, CRDI_LIVE_STOPPING);
    check_status(b.refusal, CRD_E_STATE); // it is over already
    check_text(crdi_live_error(w.l), "the run has ended");
    crdi_live_read_board(w.l, 0, &s);
    check_int(s.phase, 10);
    check_outcome(&w, CRDI_LIVE_ENDED, CRD_END_STOP_TIME, "");
    tear_down(&w);
}

// ---- the emergency stop ------------------------------------------------------------------------

static void an_emergency_ends_the_run_before_its_next_step(void** state)
{
    (void)state;
    watched w;
    start(&w, 10);
    advance(&w, 3);
    do_it(&w, CRDI_LIVE_EMERGENCY);
    do_it(&w, CRDI_LIVE_EMERGENCY); // twice is once
    check_status(crd_master_advance(w.m, 10), CRD_E_STATE);
    check_int(b.steps, 3);
    check_emergency(&w, "emergency stop by page 127.0.0.1 at t = 0.3 s");
    check_int(crdi_live_get_status(w.l)->state, CRDI_LIVE_ENDED);
    check_int(crdi_live_get_status(w.l)->end, CRD_END_FAILED);
    refused(&w, (crdi_live_command){.action = CRDI_LIVE_MARK, .text = "x"}, CRD_E_STATE,
            "the run has ended");
    tear_down(&w);
}

static void it_is_heard_before_what_waits_in_the_queue(void** state)
{
    (void)state;
    watched w;
    start(&w, 10);
    for (int i = 0; i < CRDI_LIVE_ORDERS; i++) {
        put(&w, "d.m", "80");
    }
    do_it(&w, CRDI_LIVE_EMERGENCY); // although the queue is full
    check_status(crd_master_advance(w.m, 1), CRD_E_STATE);
    check_int(b.steps, 0);
    check_run(crd_master_finish(w.m), w.ctx);
    hear(&w, CRD_EVENT_START, "start: 3 units, step 0.1 s");
    hear(&w, CRD_EVENT_ERROR, "emergency stop by page 127.0.0.1 at t = 0 s");
    hear(&w, CRD_EVENT_ERROR, "not done, the run has ended: page 127.0.0.1: d.m = 80 (was 50)");
    tear_down(&w);
}

static void an_emergency_behind_a_failure_is_noted(void** state)
{
    (void)state;
    watched w;
    start(&w, 10);
    b.fail_at = 3;
    check_status(crd_master_advance(w.m, 10), CRD_E_UNIT);
    do_it(&w, CRDI_LIVE_EMERGENCY);
    check_run(crd_master_finish(w.m), w.ctx);
    hear(&w, CRD_EVENT_START, "start: 3 units, step 0.1 s");
    hear(&w, CRD_EVENT_ERROR, "unit 'd' at t = 0.2: it was told to give up");
    hear(&w, CRD_EVENT_MARK, "emergency stop by page 127.0.0.1");
    hear(&w, CRD_EVENT_STOP, "failed");
    check_outcome(&w, CRDI_LIVE_ENDED, CRD_END_FAILED,
                  "unit 'd' at t = 0.2: it was told to give up");
    tear_down(&w);
}

static void press(void* user)
{
    watched* w = user;
    if (w->hand.slept == 4) { do_it(w, CRDI_LIVE_EMERGENCY); }
}

static void an_emergency_ends_a_pause_and_a_wait_for_the_start(void** state)
{
    (void)state;
    for (int paused = 0; paused < 2; paused++) {
        watched w;
        crdi_live_options o = all_of_it();
        o.wait = !paused;
        build(&w, 10, &o);
        check_run(crd_master_initialize(w.m), w.ctx);
        w.hand.asleep = press;
        w.hand.user = &w;
        if (paused) {
            advance(&w, 2);
            do_it(&w, CRDI_LIVE_PAUSE);
        }
        check_status(crd_master_advance(w.m, 10), CRD_E_STATE);
        check_int(w.hand.slept, 4);
        check_contains(crd_error_text(w.ctx), paused ? "at t = 0.2 s" : "at t = 0 s");
        check_run(crd_master_finish(w.m), w.ctx);
        check_text(b.calls, "hdhgtdtg");
        tear_down(&w);
    }
}

static void an_emergency_ends_the_wait_of_an_initialisation(void** state)
{
    (void)state;
    static const char message[] = "emergency stop by page 127.0.0.1 during the initialisation";
    watched w;
    crdi_live_event e;
    build(&w, 10, NULL);
    b.waits = true;
    check_status(crd_master_initialize(w.m), CRD_E_STATE);
    check_text(crd_error_text(w.ctx), message);
    check_run(crd_master_finish(w.m), w.ctx);
    check(!crdi_live_is_ready(w.l));
    check_outcome(&w, CRDI_LIVE_ENDED, CRD_END_FAILED, message);
    check_text(b.calls, "hdhgtdtg");
    check(next_event(&w, &e));
    check_text(e.text, message);
    tear_down(&w);
}

static void an_emergency_in_a_step_is_what_the_run_failed_of(void** state)
{
    (void)state;
    watched w;
    start(&w, 10);
    b.press_at = 4;
    b.gives_up = true;
    check_status(crd_master_advance(w.m, 10), CRD_E_STATE);
    check_emergency(&w, "emergency stop by page 127.0.0.1 at t = 0.3 s");
    tear_down(&w);
}

static void an_emergency_in_the_last_step_is_not_lost(void** state)
{
    (void)state;
    watched w;
    start(&w, 1);
    b.press_at = 10;
    check_status(crd_master_advance(w.m, 100), CRD_E_STATE);
    check_int(b.steps, 10);
    check_emergency(&w, "emergency stop by page 127.0.0.1 at t = 1 s");
    tear_down(&w);
}

static void an_emergency_behind_the_last_step_is_not_lost_either(void** state)
{
    (void)state;
    static const char message[] = "emergency stop by page 127.0.0.1 at t = 1 s";
    watched w;
    start(&w, 1);
    advance(&w, 100);
    check_int(crd_master_ended(w.m), CRD_END_STOP_TIME);
    do_it(&w, CRDI_LIVE_EMERGENCY);
    check_status(crd_master_finish(w.m), CRD_E_STATE);
    check_text(crd_error_text(w.ctx), message);
    check_outcome(&w, CRDI_LIVE_ENDED, CRD_END_FAILED, message);
    hear(&w, CRD_EVENT_START, "start: 3 units, step 0.1 s");
    hear(&w, CRD_EVENT_ERROR, message);
    hear(&w, CRD_EVENT_STOP, "failed");
    tear_down(&w);
}

static void wake(void* user)
{
    watched* w = user;
    if (w->hand.slept == 3) { do_it(w, CRDI_LIVE_EMERGENCY); }
}

// A period of ten seconds is not slept through.
static void an_emergency_wakes_a_run_on_the_clock(void** state)
{
    (void)state;
    watched w;
    build(&w, 1, NULL);
    w.s->run.pace.factor = 0.01;
    ((crdi_plan*)w.m->plan)->paced = true;
    check_run(crd_master_initialize(w.m), w.ctx);
    advance(&w, 1);
    const int64_t before = w.hand.ns;
    w.hand.slept = 0;
    w.hand.asleep = wake;
    w.hand.user = &w;
    check_status(crd_master_advance(w.m, 10), CRD_E_STATE);
    check(w.hand.ns - before < 400 * 1000000);
    check_int(b.steps, 1);
    check_emergency(&w, "emergency stop by page 127.0.0.1 at t = 0.1 s");
    tear_down(&w);
}

static void who_may_only_watch_presses_in_vain(void** state)
{
    (void)state;
    watched w;
    crdi_live_options o = all_of_it();
    o.read_only = true;
    build(&w, 1, &o);
    refused(&w, (crdi_live_command){.action = CRDI_LIVE_EMERGENCY}, CRD_E_STATE, "read-only");
    check_run(crd_master_initialize(w.m), w.ctx);
    refused(&w, (crdi_live_command){.action = CRDI_LIVE_EMERGENCY}, CRD_E_STATE, "read-only");
    advance(&w, 100);
    check_run(crd_master_finish(w.m), w.ctx);
    check_outcome(&w, CRDI_LIVE_ENDED, CRD_END_STOP_TIME, "");
    tear_down(&w);
}

static void the_record_says_who_pressed(void** state)
{
    (void)state;
    watched w;
    char path[] = TEST_BUILD_DIR "/live_bench.csv";
    build(&w, 1, NULL);
    w.s->results.path = path;
    check_run(crd_master_initialize(w.m), w.ctx);
    advance(&w, 2);
    do_it(&w, CRDI_LIVE_EMERGENCY);
    check_status(crd_master_advance(w.m, 10), CRD_E_STATE);
    crd_text verdict;
    crd_text_init(&verdict, w.ctx);
    check_ok(crd_master_describe_verdict(w.m, &verdict));
    check_contains(verdict.data, "\"end\": \"failed\"");
    check_contains(verdict.data, "emergency stop by page 127.0.0.1 at t = 0.2 s");
    crd_text_clear(&verdict);
    check_run(crd_master_finish(w.m), w.ctx);
    check_int(crd_master_get_report(w.m)->rows, 3); // all that was before it
    tear_down(&w);
    unlink(path);
}

// ---- the end -----------------------------------------------------------------------------------

static void what_comes_in_the_last_step_is_told_that_it_came_too_late(void** state)
{
    (void)state;
    watched w;
    start(&w, 1);
    advance(&w, 9);
    put(&w, "d.m", "80"); // before the last step: it takes effect
    advance(&w, 1);
    check_near(value(w.m, "d.sum"), 80 + 111, 1e-12);
    refused(&w, (crdi_live_command){.action = CRDI_LIVE_SET, .name = "d.m", .text = "90"},
            CRD_E_STATE, "the run has ended");
    check_run(crd_master_finish(w.m), w.ctx);
    hear(&w, CRD_EVENT_START, "start: 3 units, step 0.1 s");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: d.m = 80 (was 50)");
    hear(&w, CRD_EVENT_STOP, "stop time");
    tear_down(&w);
}

static void a_pause_before_the_last_step_can_be_left(void** state)
{
    (void)state;
    watched w;
    start(&w, 1);
    advance(&w, 9);
    w.hand.asleep = press; // the pause lasts
    w.hand.user = &w;
    do_it(&w, CRDI_LIVE_PAUSE);
    check_status(crd_master_advance(w.m, 1), CRD_E_STATE);
    check_int(b.steps, 9);
    check_run(crd_master_finish(w.m), w.ctx);
    tear_down(&w);
}

// Nobody can know that a step is the last one if it fails.
static void what_was_taken_and_never_came_to_pass_becomes_an_event(void** state)
{
    (void)state;
    for (int mark = 0; mark < 2; mark++) {
        watched w;
        start(&w, 10);
        b.press_at = b.fail_at = 3;
        b.pressed = mark ? CRDI_LIVE_MARK : CRDI_LIVE_PAUSE;
        b.text = "here";
        check_status(crd_master_advance(w.m, 10), CRD_E_UNIT);
        check_run(crd_master_finish(w.m), w.ctx);
        hear(&w, CRD_EVENT_START, "start: 3 units, step 0.1 s");
        hear(&w, CRD_EVENT_ERROR, "unit 'd' at t = 0.2: it was told to give up");
        hear(&w, mark ? CRD_EVENT_MARK : CRD_EVENT_ERROR,
             mark ? "page 127.0.0.1: here" : "not done, the run has ended: page 127.0.0.1: pause");
        hear(&w, CRD_EVENT_STOP, "failed");
        tear_down(&w);
    }
}

static void a_run_whose_bench_does_not_come_to_rest_has_failed(void** state)
{
    (void)state;
    watched w;
    start(&w, 1);
    b.fails_to_end = true;
    advance(&w, 100);
    check_status(crd_master_finish(w.m), CRD_E_UNIT);
    crdi_live_outcome o;
    crdi_live_get_outcome(w.l, &o);
    check_int(o.end, CRD_END_FAILED);
    check_contains(o.message, "it does not come to rest");
    check_int(crdi_live_get_status(w.l)->end, CRD_END_FAILED);
    hear(&w, CRD_EVENT_START, "start: 3 units, step 0.1 s");
    hear(&w, CRD_EVENT_ERROR, o.message);
    hear(&w, CRD_EVENT_STOP, "failed"); // and not "stop time"
    tear_down(&w);
}

static void a_run_that_fails_before_it_is_ready_says_why(void** state)
{
    (void)state;
    watched w;
    build(&w, 1, NULL);
    b.refuses = true;
    check_status(crd_master_initialize(w.m), CRD_E_RANGE);
    check_outcome(&w, CRDI_LIVE_STARTING, CRD_END_NONE, ""); // its units are still up
    check_run(crd_master_finish(w.m), w.ctx);
    crdi_live_outcome o;
    crdi_live_get_outcome(w.l, &o);
    check_int(o.state, CRDI_LIVE_ENDED);
    check_int(o.end, CRD_END_FAILED);
    check_contains(o.message, "unit 'd'");
    check_contains(o.message, "torque 300 N.m is too much");
    check(crdi_live_get_status(w.l) == NULL);
    crdi_live_event e;
    check(next_event(&w, &e));
    check_text(e.text, o.message);
    tear_down(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boards_are_there_from_the_creation_to_the_end),
        cmocka_unit_test(an_emergency_ends_the_run_before_its_next_step),
        cmocka_unit_test(it_is_heard_before_what_waits_in_the_queue),
        cmocka_unit_test(an_emergency_behind_a_failure_is_noted),
        cmocka_unit_test(an_emergency_ends_a_pause_and_a_wait_for_the_start),
        cmocka_unit_test(an_emergency_ends_the_wait_of_an_initialisation),
        cmocka_unit_test(an_emergency_in_a_step_is_what_the_run_failed_of),
        cmocka_unit_test(an_emergency_in_the_last_step_is_not_lost),
        cmocka_unit_test(an_emergency_behind_the_last_step_is_not_lost_either),
        cmocka_unit_test(an_emergency_wakes_a_run_on_the_clock),
        cmocka_unit_test(who_may_only_watch_presses_in_vain),
        cmocka_unit_test(the_record_says_who_pressed),
        cmocka_unit_test(what_comes_in_the_last_step_is_told_that_it_came_too_late),
        cmocka_unit_test(a_pause_before_the_last_step_can_be_left),
        cmocka_unit_test(what_was_taken_and_never_came_to_pass_becomes_an_event),
        cmocka_unit_test(a_run_whose_bench_does_not_come_to_rest_has_failed),
        cmocka_unit_test(a_run_that_fails_before_it_is_ready_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
