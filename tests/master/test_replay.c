// Replays: with nothing changed they are the recorded run to the last bit, open and closed, over
// bad networks and on a clock; with something changed they say how far they are from it.
#include "exchanges.h"

#include "shared/live.h"
#include "shared/pace.h"

#include <stdio.h>
#include <unistd.h>

#define FILE_OF(name) TEST_BUILD_DIR "/test_replay_" name ".mf4"
#define AGAIN FILE_OF("again")

enum { CLOSED = -1, A, B }; // what is played

// A clock that goes on by 3 us with each look at it.
static int64_t look(void* user)
{
    return *(int64_t*)user += 3000;
}

static void sleep_until(void* user, int64_t ns)
{
    if (ns > *(int64_t*)user) { *(int64_t*)user = ns; }
}

// Replays into AGAIN and compares: `out` for the links to b.u and a.u.
static void replay(crd_context* ctx, const setup* u, int played, bool paced, course* c,
                   crdi_deviation out[2])
{
    setup again = *u;
    again.exchange = AGAIN;
    const bool which[2] = {played == A, played == B};
    int64_t now = 1000;
    const crd_clock clock = {look, sleep_until, look, &now};
    crdi_replay_plan plan = {0};
    crdi_exchange* x = load(ctx, u->exchange);
    crd_system* s = pair(ctx, &again);
    check_run(crdi_replay_prepare(s, x, played == CLOSED ? NULL : which, &plan), ctx);
    check_int(plan.note_count, 0);
    s->run.pace.factor = paced ? 1 : 0;
    run_through(ctx, s, &plan, paced ? &clock : NULL, c);
    crd_system_destroy(s);
    crdi_exchange* y = load(ctx, AGAIN);
    check_int(x->link_count, 2);
    crdi_replay_compare(x, y, out);
    crdi_exchange_destroy(y);
    crdi_exchange_destroy(x);
}

// In all ways in which it can be replayed.
static void check_replays(const setup* u)
{
    crd_context* ctx = crd_context_create(NULL);
    course first, second;
    crdi_deviation d[2];
    record(ctx, u, &first);
    for (int played = CLOSED; played <= B; played++) {
        for (int paced = 0; paced < 2; paced++) {
            replay(ctx, u, played, paced, &second, d);
            check_int(second.count, first.count);
            if (played != A) { check_same_bits(second.a, first.a, first.count + 1); }
            // What b is told before its first step is the business of its initialisation.
            if (played != B) { check_same_bits(second.b + 1, first.b + 1, first.count); }
            for (int i = 0; i < 2; i++) {
                check(d[i].compared > 30);
                check(d[i].max == 0 && d[i].relative == 0 && isnan(d[i].first));
            }
        }
    }
    crd_context_destroy(ctx);
}

static void plain_connections_replay_to_the_last_bit(void** state)
{
    (void)state;
    check_replays(&(setup){.predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("plain")});
}

static void steps_of_different_length_replay_to_the_last_bit(void** state)
{
    (void)state;
    check_replays(&(setup){
        .predict = CRD_PREDICTION_HOLD, .step_a = 0.02, .step_b = 0.05, .exchange = FILE_OF("m")});
}

static void predictions_with_derivatives_replay_to_the_last_bit(void** state)
{
    (void)state;
    // Not auto: in a loop it is the loop that chooses, and one unit played alone has none.
    check_replays(&(setup){.predict = CRD_PREDICTION_TAYLOR2,
                           .a = &exact_model,
                           .b = &euler_model,
                           .exchange = FILE_OF("predicted")});
    check_replays(&(setup){.predict = CRD_PREDICTION_QUADRATIC, .exchange = FILE_OF("quadratic")});
    check_replays(&(setup){.predict = CRD_PREDICTION_AB3, .exchange = FILE_OF("means")});
}

static void the_order_of_gauss_seidel_is_kept(void** state)
{
    (void)state;
    check_replays(&(setup){.predict = CRD_PREDICTION_HOLD,
                           .scheme = CRD_SCHEME_GAUSS_SEIDEL,
                           .b = &gain_model,
                           .exchange = FILE_OF("seidel")});
    check_replays(&(setup){.predict = CRD_PREDICTION_HOLD,
                           .scheme = CRD_SCHEME_GAUSS_SEIDEL,
                           .a = &euler_model,
                           .exchange = FILE_OF("seidel2")});
    check_replays(&(setup){.predict = CRD_PREDICTION_HOLD,
                           .scheme = CRD_SCHEME_GAUSS_SEIDEL,
                           .step_b = 0.05,
                           .exchange = FILE_OF("seidel3")});
}

static void jitter_loss_and_duplicates_replay_to_the_last_bit(void** state)
{
    (void)state;
    static const char* const elements[] = {"{\"algorithm\": \"zoh\"}", "{\"algorithm\": \"foh\"}",
                                           "{\"algorithm\": \"eros\", \"latency\": 3}"};
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        const crd_coupling_spec there = coupling_over_a_bad_network(elements[i], 3),
                                back = coupling_over_a_bad_network("{\"algorithm\": \"foh\"}", 8);
        check_replays(&(setup){.there = &there,
                               .back = &back,
                               .predict = CRD_PREDICTION_HOLD,
                               .exchange = FILE_OF("bad")});
        check_replays(&(setup){.there = &there,
                               .predict = CRD_PREDICTION_HOLD,
                               .step_a = 0.02,
                               .exchange = FILE_OF("one")});
    }
    // What was lost on the way there, and what was on its way at the end, are commands, too.
    const crd_coupling_spec there = coupling_over_a_bad_network("{\"algorithm\": \"zoh\"}", 3),
                            back = coupling_over_a_bad_network("{\"algorithm\": \"commands\"}", 8);
    check_replays(&(setup){.there = &there,
                           .back = &back,
                           .predict = CRD_PREDICTION_HOLD,
                           .exchange = FILE_OF("commands")});
    const crd_coupling_spec direct = coupling_of("{\"algorithm\": \"foh\", \"latency\": 1}");
    check_replays(
        &(setup){.back = &direct, .predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("direct")});
}

// Integers, Booleans and arrays; one output that feeds two inputs in different ways.
static void all_kinds_of_values_are_played(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    double last[2][6];
    for (int again = 0; again < 2; again++) {
        crd_system* s = one_of_each(ctx, again ? NULL : FILE_OF("each"));
        const int g = add_unit(s, "g", &gain_model, 0);
        crd_connection_spec* c = wire(s, 0, "y[2]", g, "u");
        c->gain = -3;
        c->has_transformation = true;
        wire(s, 0, "n", g, "a");
        crdi_exchange* x = again ? load(ctx, FILE_OF("each")) : NULL;
        crdi_replay_plan plan = {0};
        if (again) {
            check_run(crdi_replay_prepare(s, x, (const bool[]){true, false, false}, &plan), ctx);
            check_int(plan.note_count, 1);
            check_contains(plan.notes[0], "texts are not recorded: v.text keeps its start value");
        }
        crd_master_options opt = crd_master_defaults();
        opt.scripts = plan.scripts;
        opt.script_count = plan.script_count;
        crd_master* m = NULL;
        check_run(crd_master_create(ctx, s, &opt, &m), ctx);
        check_run(crd_master_initialize(m), ctx);
        check_run(crd_master_advance(m, 8), ctx);
        static const char* const names[] = {"v.y[1]", "v.y[3]", "v.n", "v.flag", "g.u", "g.a"};
        for (int i = 0; i < 6; i++) {
            last[again][i] = value(m, names[i]);
        }
        crd_master_destroy(m);
        crd_system_destroy(s);
        crdi_exchange_destroy(x);
    }
    check_near(last[0][1], 2 * 2.7, 1e-12);
    check_near(last[0][4], -3 * 1.7, 1e-12);
    check_near(last[0][5], 7, 0);
    check_same_bits(last[1], last[0], 6);
    crd_context_destroy(ctx);
}

// ---- something is changed ----------------------------------------------------------------------

// Delays that are recorded, and another algorithm: as if the channel had been there.
static void another_algorithm_gets_the_recorded_delays(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec zoh = coupling_over_a_bad_network("{\"algorithm\": \"zoh\"}", 3),
                            foh = coupling_over_a_bad_network("{\"algorithm\": \"foh\"}", 3),
                            bare = coupling_of("{\"algorithm\": \"foh\"}");
    const setup u = {.there = &zoh, .predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("zoh")};
    setup other = u, direct = u;
    other.there = &foh;
    other.exchange = FILE_OF("foh");
    direct.there = &bare; // the channel is in the recording
    course first, real, second;
    crdi_deviation d[2];
    record(ctx, &other, &real);
    record(ctx, &u, &first);
    replay(ctx, &direct, CLOSED, false, &second, d);
    check_same_bits(second.a, real.a, real.count + 1);
    check_same_bits(second.b + 1, real.b + 1, real.count);
    check(d[0].max > 0 && d[0].relative > 0);
    crd_context_destroy(ctx);
}

static void a_played_unit_that_would_have_seen_something_else_is_told(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec zoh = coupling_over_a_bad_network("{\"algorithm\": \"zoh\"}", 3),
                            foh = coupling_over_a_bad_network("{\"algorithm\": \"foh\"}", 3);
    setup u = {.there = &zoh, .predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("open")};
    course first, second;
    crdi_deviation d[2];
    record(ctx, &u, &first);
    u.there = &foh;
    replay(ctx, &u, A, false, &second, d);
    // b sees what a has sent another way; a would have seen another b.
    check(d[0].relative > 0.001);
    check(d[1].relative > 0.001 && d[1].compared == 201);
    check(d[1].max_time > 0 && d[1].rms <= d[1].max);
    double sum = 0, size = 0;
    crdi_exchange *x = load(ctx, u.exchange), *y = load(ctx, AGAIN);
    double first_time = NAN;
    for (int i = 0; i < 201; i++) {
        size += x->links[1].value[i] * x->links[1].value[i];
    }
    for (int i = 0; i < 201; i++) {
        const double e = y->links[1].value[i] - x->links[1].value[i];
        sum += e * e;
        if (isnan(first_time) && fabs(e) > 0.01 * sqrt(size / 201)) {
            first_time = x->links[1].arrival[i];
        }
    }
    check_near(d[1].relative, sqrt(sum / size), 1e-12);
    check_near(d[1].first, first_time, 1e-12);
    crdi_exchange_destroy(x);
    crdi_exchange_destroy(y);
    crd_context_destroy(ctx);
}

// A fault that somebody made while the run went is in the recording, as a mark and as what it did
// to the samples.
static void samples_that_a_fault_took_away_are_lost_again(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec foh = coupling_of("{\"algorithm\": \"foh\"}");
    setup u = {.there = &foh, .predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("fault")};
    course first = {0}, second;
    crd_system* s = pair(ctx, &u);
    crd_master* m = NULL;
    crdi_live* live = NULL;
    const crdi_live_options lo = crdi_live_defaults();
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crdi_live_create(ctx, m, &lo, &live), ctx);
    check_run(crd_master_initialize(m), ctx);
    for (; crd_master_ended(m) == CRD_END_NONE; first.count++) {
        first.a[first.count] = value(m, "a.y");
        first.b[first.count] = value(m, "b.u");
        if (first.count == 50) {
            check_ok(crdi_live_send(live, &(crdi_live_command){.action = CRDI_LIVE_FAULT,
                                                               .name = "b.u",
                                                               .fault = CRDI_FAULT_DROP,
                                                               .value = 0.5,
                                                               .duration = 0.4}));
        }
        check_run(crd_master_advance(m, 1), ctx);
    }
    check_run(crd_master_finish(m), ctx);
    crdi_live_destroy(live);
    crd_master_destroy(m);
    crd_system_destroy(s);

    crdi_exchange* x = load(ctx, u.exchange);
    check(x->changes >= 1);
    check(x->links[0].count > 170 && x->links[0].count < 195);
    crdi_replay_plan plan = {0};
    u.exchange = NULL;
    s = pair(ctx, &u);
    check_run(crdi_replay_prepare(s, x, NULL, &plan), ctx);
    check_int(plan.note_count, 1);
    check_contains(plan.notes[0], "somebody changed or marked something");
    run_through(ctx, s, &plan, NULL, &second);
    check_same_bits(second.a, first.a, first.count);
    check_same_bits(second.b, first.b, first.count);
    crd_system_destroy(s);
    crdi_exchange_destroy(x);
    crd_context_destroy(ctx);
}

static void losses_are_counted_as_in_the_recorded_run(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec bad = coupling_over_a_bad_network("{\"algorithm\": \"zoh\"}", 3);
    const setup u = {.there = &bad, .predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("lost")};
    crd_coupling_report r[2];
    int64_t scored[2];
    double score[2];
    crdi_exchange* x = NULL;
    for (int i = 0; i < 2; i++) {
        setup now = u;
        now.exchange = i ? NULL : u.exchange;
        crd_system* s = pair(ctx, &now);
        if (i) { x = load(ctx, u.exchange); }
        crdi_replay_plan plan = {0};
        if (i) { check_run(crdi_replay_prepare(s, x, NULL, &plan), ctx); }
        crd_master_options opt = crd_master_defaults();
        opt.scripts = plan.scripts;
        opt.script_count = plan.script_count;
        crd_master* m = NULL;
        check_run(crd_master_create(ctx, s, &opt, &m), ctx);
        check_run(crd_master_run(m), ctx);
        r[i] = crd_master_get_report(m)->couplings[0];
        scored[i] = r[i].taps[0].scored;
        score[i] = r[i].taps[0].metrics.C;
        crd_master_destroy(m);
        crd_system_destroy(s);
    }
    check(scored[0] > 100);
    check_int(scored[1], scored[0]);
    check(score[0] > 0 && score[1] == score[0]);
    check_int(r[1].sent, r[0].sent);
    check(r[0].lost > 5 && r[0].repeated > 10);
    // Those that were on their way at the end are not known to be lost.
    const crdi_exchange_link* k = &x->links[0];
    static int seen[201];
    int newest = 0, gone = 0, twice = 0;
    for (int64_t i = 0; i < k->count; i++) {
        const int n = (int)k->sequence[i];
        newest = n > newest ? n : newest;
        twice += seen[n]++ > 0;
    }
    for (int n = 0; n < newest; n++) {
        gone += seen[n] == 0;
    }
    check(newest > 190);
    check_int(r[1].lost, gone);
    check_int(r[1].repeated, twice);
    crdi_exchange_destroy(x);
    crd_context_destroy(ctx);
}

// ---- what does not fit -------------------------------------------------------------------------

static void check_refused(crd_context* ctx, crd_system* s, const char* path, const bool* played,
                          crd_status want, const char* part)
{
    crdi_exchange* x = load(ctx, path);
    crdi_replay_plan plan = {0};
    crd_status st = crdi_replay_prepare(s, x, played, &plan);
    if (st == CRD_OK) {
        crd_master_options opt = crd_master_defaults();
        crd_master* m = NULL;
        opt.scripts = plan.scripts;
        opt.script_count = plan.script_count;
        st = crd_master_create(ctx, s, &opt, &m);
        crd_master_destroy(m);
    }
    check_status(st, want);
    check_contains(crd_error_text(ctx), part);
    crd_system_destroy(s);
    crdi_exchange_destroy(x);
}

static void recordings_that_do_not_fit_say_why(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec bad = coupling_over_a_bad_network("{\"algorithm\": \"zoh\"}", 3);
    crd_coupling_spec slow = bad;
    slow.channel.step = 0.02;
    setup u = {.there = &bad, .predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("fit")};
    course c;
    record(ctx, &u, &c);

    crd_system* s = pair(ctx, &u);
    s->connections[1].from = "x"; // another variable
    check_refused(ctx, s, u.exchange, (const bool[]){true, false}, CRD_E_NOT_FOUND,
                  "has no samples of the connection b.x -> a.u; it has a.y -> b.u, b.y -> a.u");
    s = pair(ctx, &u);
    s->run.step = 0.02;
    check_refused(ctx, s, u.exchange, NULL, CRD_E_RANGE,
                  "was recorded with a step of 0.01 s, but  has a step of 0.02 s");
    s = pair(ctx, &u);
    check_refused(ctx, s, u.exchange, (const bool[]){true, true}, CRD_E_RANGE,
                  "all units are played");
    s = pair(ctx, &u);
    s->units[1].source = CRD_UNIT_DCP;
    check_refused(ctx, s, u.exchange, (const bool[]){true, false}, CRD_E_RANGE,
                  "unit 'b' is reached over a network and is not run again; --play b");
    s = pair(ctx, &u);
    s->run.control.on = true;
    check_refused(ctx, s, u.exchange, NULL, CRD_E_UNSUPPORTED, "variable step");
    s = pair(ctx, &u);
    s->connections[0].coupling = &slow;
    check_refused(ctx, s, u.exchange, NULL, CRD_E_RANGE, "the step has to be the recorded one");
    s = pair(ctx, &u);
    s->connections[1].coupling = &bad;
    check_refused(ctx, s, u.exchange, NULL, CRD_E_RANGE,
                  "b.y -> a.u had no coupling in the recorded run");
    crd_context_destroy(ctx);
}

// Whatever is in it, nothing breaks.
static void try_it(crd_context* ctx, const setup* u, const crdi_exchange* x)
{
    setup again = *u;
    again.exchange = NULL;
    crd_system* s = pair(ctx, &again);
    crdi_replay_plan plan = {0};
    crd_master* m = NULL;
    if (crdi_replay_prepare(s, x, (const bool[]){true, false}, &plan) == CRD_OK) {
        crd_master_options opt = crd_master_defaults();
        opt.scripts = plan.scripts;
        opt.script_count = plan.script_count;
        if (crd_master_create(ctx, s, &opt, &m) == CRD_OK && crd_master_initialize(m) == CRD_OK) {
            (void)crd_master_advance(m, 20);
        }
    }
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void foreign_and_damaged_files_are_refused(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec bad = coupling_over_a_bad_network("{\"algorithm\": \"foh\"}", 3);
    const setup u = {.there = &bad, .predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("whole")};
    course c;
    crdi_exchange* x = NULL;
    record(ctx, &u, &c);
    crd_system* s = pair(ctx, &u);
    s->results.exchange = NULL;
    s->results.path = FILE_OF("results");
    run_through(ctx, s, NULL, NULL, &c);
    crd_system_destroy(s);
    check_status(crdi_exchange_load(ctx, FILE_OF("results"), &x), CRD_E_FORMAT);
    check_contains(crd_error_text(ctx), "no recording of exchanged samples");
    check_status(crdi_exchange_load(ctx, FILE_OF("not there"), &x), CRD_E_NOT_FOUND);

    FILE* f = fopen(u.exchange, "rb");
    static char bytes[1 << 20];
    const size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    check(size > 4000 && size < sizeof bytes);
    const size_t stride = size / 150 + 1;
    int refused = 0;
    for (size_t cut = 1; cut < size; cut += stride) { // cut off anywhere, or a byte is wrong
        for (int flip = 0; flip < 2; flip++) {
            f = fopen(FILE_OF("damaged"), "wb");
            char* at = &bytes[cut];
            *at = (char)(*at ^ (flip ? 0x55 : 0));
            fwrite(bytes, 1, flip ? size : cut, f);
            *at = (char)(*at ^ (flip ? 0x55 : 0));
            fclose(f);
            const crd_status st = crdi_exchange_load(ctx, FILE_OF("damaged"), &x);
            if (st == CRD_OK) {
                try_it(ctx, &u, x);
                crdi_exchange_destroy(x);
            } else {
                check(crd_error_text(ctx)[0] != 0);
                refused++;
            }
        }
    }
    check(refused > 100);
    crd_context_destroy(ctx);
}

static void every_allocation_of_a_replay_may_fail(void** state)
{
    (void)state;
    crd_context* plain = crd_context_create(NULL);
    const crd_coupling_spec bad = coupling_over_a_bad_network("{\"algorithm\": \"zoh\"}", 3);
    const setup u = {
        .there = &bad, .predict = CRD_PREDICTION_HOLD, .stop = 0.3, .exchange = FILE_OF("memory")};
    course c;
    record(plain, &u, &c);
    crd_context_destroy(plain);
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        setup again = u;
        again.exchange = NULL;
        crd_system* s = pair(ctx, &again);
        crdi_exchange* x = NULL;
        crdi_replay_plan plan = {0};
        a.fail_at = a.allocations + fail_at;
        crd_status st = crdi_exchange_load(ctx, u.exchange, &x);
        if (st == CRD_OK) { st = crdi_replay_prepare(s, x, (const bool[]){true, false}, &plan); }
        a.fail_at = -1;
        if (st != CRD_OK) { check_status(st, CRD_E_MEMORY); }
        crd_system_destroy(s);
        crdi_exchange_destroy(x);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) {
            check(fail_at > 20);
            return;
        }
    }
}

// What is no number is the largest difference, whatever comes before and after it.
static void a_difference_that_is_no_number_is_the_largest(void** state)
{
    (void)state;
    double time[4] = {0, 1, 2, 3}, a[4] = {1, 1, 1, 1}, b[4] = {1, 6, NAN, 1.5};
    crdi_exchange_link was = {.to = "b.u", .count = 4, .arrival = time, .value = a}, is = was;
    is.value = b;
    const crdi_exchange x = {.tick = 1, .end = 3, .links = &was, .link_count = 1};
    const crdi_exchange y = {.tick = 1, .end = 3, .links = &is, .link_count = 1};
    crdi_deviation d;
    crdi_replay_compare(&x, &y, &d);
    check_int(d.compared, 4);
    check(isnan(d.max) && isnan(d.rms) && isnan(d.relative));
    check_near(d.max_time, 2, 0);
    check_near(d.first, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_difference_that_is_no_number_is_the_largest),
        cmocka_unit_test(plain_connections_replay_to_the_last_bit),
        cmocka_unit_test(steps_of_different_length_replay_to_the_last_bit),
        cmocka_unit_test(predictions_with_derivatives_replay_to_the_last_bit),
        cmocka_unit_test(the_order_of_gauss_seidel_is_kept),
        cmocka_unit_test(jitter_loss_and_duplicates_replay_to_the_last_bit),
        cmocka_unit_test(all_kinds_of_values_are_played),
        cmocka_unit_test(another_algorithm_gets_the_recorded_delays),
        cmocka_unit_test(a_played_unit_that_would_have_seen_something_else_is_told),
        cmocka_unit_test(samples_that_a_fault_took_away_are_lost_again),
        cmocka_unit_test(losses_are_counted_as_in_the_recorded_run),
        cmocka_unit_test(recordings_that_do_not_fit_say_why),
        cmocka_unit_test(foreign_and_damaged_files_are_refused),
        cmocka_unit_test(every_allocation_of_a_replay_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
