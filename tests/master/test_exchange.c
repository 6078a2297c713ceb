// Every exchanged sample in a file: what it holds, with which times, and what it says of itself.
#include "exchanges.h"

#include "shared/pace.h"

#include <stdio.h>
#include <unistd.h>

#define FILE_OF(name) TEST_BUILD_DIR "/test_exchange_" name ".mf4"

static const crdi_exchange_link* link_to(const crdi_exchange* x, const char* to)
{
    for (int i = 0; i < x->link_count; i++) {
        if (strcmp(x->links[i].to, to) == 0) { return &x->links[i]; }
    }
    fail_msg("no link to %s", to);
    return NULL;
}

static void plain_connections_have_the_source_at_each_point_of_the_target(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const setup u = {.predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("plain")};
    course c;
    record(ctx, &u, &c);
    crdi_exchange* x = load(ctx, u.exchange);
    check_int(x->link_count, 2);
    const crdi_exchange_link* k = link_to(x, "b.u");
    check_text(k->from, "a.y");
    check(!k->coupled && k->curve && !k->transform);
    check_int(k->count, 201);
    check_int(c.count, 200); // the last tick is the last of both
    for (int i = 0; i <= 200; i++) {
        check_near(k->arrival[i], 0.01 * i, 1e-12);
        check(k->stamp[i] == k->arrival[i]);
        check_near(k->sequence[i], i, 0);
    }
    check_same_bits(k->value, c.a, 201);
    check_near(x->end, 2, 1e-12);
    check(!x->unfinished);
    check_near(x->tick, 0.01, 0);
    crdi_exchange_destroy(x);
    crd_context_destroy(ctx);
}

static void a_target_with_a_long_step_has_a_sample_at_each_of_its_own(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const setup u = {
        .predict = CRD_PREDICTION_HOLD, .step_b = 0.05, .exchange = FILE_OF("multirate")};
    course c;
    record(ctx, &u, &c);
    crdi_exchange* x = load(ctx, u.exchange);
    check_int(link_to(x, "b.u")->count, 41);
    check_int(link_to(x, "a.u")->count, 201);
    check_near(link_to(x, "b.u")->arrival[3], 0.15, 1e-12);
    crdi_exchange_destroy(x);
    crd_context_destroy(ctx);
}

// Against the counts that the run itself reports, and the rules of the channel.
static void couplings_have_each_arrival_with_its_stamp_and_number(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec bad = coupling_over_a_bad_network("{\"algorithm\": \"foh\"}", 3);
    const setup u = {.there = &bad, .predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("coupled")};
    crd_system* s = pair(ctx, &u);
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    const crd_master_report* r = crd_master_get_report(m);
    check_text(r->exchange, u.exchange);
    crdi_exchange* x = load(ctx, u.exchange);
    const crdi_exchange_link* k = link_to(x, "b.u");
    check(k->coupled);
    check_near(k->step, 0.01, 0);
    int64_t late = 0, twice = 0;
    static int seen[400];
    for (int64_t i = 0; i < k->count; i++) {
        const int n = (int)k->sequence[i];
        check_near(k->stamp[i], 0.01 * n, 1e-12);
        check(k->arrival[i] >= k->stamp[i] + 0.007 - 1e-12);
        check(k->arrival[i] <= k->stamp[i] + 0.041 + 1e-12);
        check(i == 0 || k->arrival[i] >= k->arrival[i - 1]);
        late += i > 0 && k->sequence[i] < k->sequence[i - 1];
        twice += seen[n]++ > 0;
    }
    int64_t gone = 0;
    for (int n = 0; n < 195; n++) {
        gone += seen[n] == 0;
    }
    const crd_coupling_report* c = &r->couplings[0];
    check_int(c->sent, 201);
    check(late > 0);
    check(gone > 5 && gone <= c->lost);
    check(twice > 10 && twice <= c->repeated);
    check_int(r->exchanged, k->count + link_to(x, "a.u")->count);
    check_int(k->input_count, 201); // what the element made of it
    crdi_exchange_destroy(x);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

static void the_input_of_a_coupling_is_what_the_unit_was_told(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec bad = coupling_over_a_bad_network("{\"algorithm\": \"zoh\"}", 3);
    const setup u = {.there = &bad, .predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("told")};
    course c;
    record(ctx, &u, &c);
    crdi_exchange* x = load(ctx, u.exchange);
    const crdi_exchange_link* k = link_to(x, "b.u");
    // crd_master_value tells what the unit had in the tick that has ended.
    check_same_bits(k->input, c.b + 1, 200);
    crdi_exchange_destroy(x);
    crd_context_destroy(ctx);
}

static void arrays_and_integers_are_recorded_and_texts_are_named(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = one_of_each(ctx, FILE_OF("each"));
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_run(m), ctx);
    crd_master_destroy(m);
    crdi_exchange* x = load(ctx, FILE_OF("each"));
    check_int(x->link_count, 5);
    const crdi_exchange_link* k = link_to(x, "v.y[3]");
    check_text(k->from, "w.y[3]");
    check_text(k->unit, "m");
    check_near(k->value[4], 2 * (0.4 + 2), 1e-12);
    check(k->transform && k->gain == 2);
    k = link_to(x, "v.n");
    check_int(k->type, CRD_INT32);
    check_near(k->value[7], 7, 0);
    check_int(link_to(x, "v.flag")->type, CRD_BOOLEAN);
    check_near(link_to(x, "v.flag")->value[7], 1, 0);
    check_int(x->text_count, 1);
    check_text(x->texts[0], "w.text -> v.text");
    crdi_exchange_destroy(x);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

static void the_file_has_rasters_events_and_attachments(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec bad = coupling_over_a_bad_network("{\"algorithm\": \"zoh\"}", 3);
    const setup u = {.there = &bad, .predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("file")};
    course c;
    record(ctx, &u, &c);
    crd_recording* r = NULL;
    check_run(crd_recording_open(ctx, u.exchange, &r), ctx);
    const crd_recording_info* info = crd_recording_describe(r);
    check_int(info->group_count, 3);
    check_text(info->groups[0].name, "a.y -> b.u");
    check_text(info->groups[1].name, "a.y -> b.u: input");
    check_text(info->groups[2].name, "b.y -> a.u");
    check_text(info->signals[info->groups[0].first_signal].name, "value");
    check_text(info->signals[info->groups[0].first_signal + 1].name, "stamp");
    check_text(info->signals[info->groups[0].first_signal + 2].name, "sequence");
    check_int(info->groups[0].signal_count, 3); // no clock
    check_int(info->attachment_count, 2);
    check_text(info->attachments[0].name, CRD_ATTACHMENT_EXCHANGE);
    check_text(info->attachments[1].name, CRD_ATTACHMENT_RUN);
    check_int(info->event_count, 2);
    check_int(info->events[0].kind, CRD_EVENT_START);
    check_int(info->events[1].kind, CRD_EVENT_STOP);
    check_text(info->events[1].text, "stop time");
    crd_recording_close(r);
    crd_context_destroy(ctx);
}

// ---- the clock ---------------------------------------------------------------------------------

// A clock that goes on by 3 us with each look at it.
typedef struct ticking {
    int64_t now;
} ticking;

static int64_t look(void* user)
{
    return ((ticking*)user)->now += 3000;
}

static void sleep_until(void* user, int64_t ns)
{
    ticking* t = user;
    if (ns > t->now) { t->now = ns; }
}

static int64_t look_on_the_wall(void* user)
{
    return ((ticking*)user)->now + 1000000000;
}

static void a_run_on_the_clock_says_when_samples_came(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_coupling_spec bad = coupling_over_a_bad_network("{\"algorithm\": \"zoh\"}", 3);
    const setup u = {.there = &bad, .predict = CRD_PREDICTION_HOLD, .exchange = FILE_OF("clock")};
    ticking t = {.now = 5000000000};
    const crd_clock clock = {look, sleep_until, look_on_the_wall, &t};
    course c;
    crd_system* s = pair(ctx, &u);
    s->run.pace.factor = 2;
    run_through(ctx, s, NULL, &clock, &c);
    crd_recording* r = NULL;
    check_run(crd_recording_open(ctx, u.exchange, &r), ctx);
    const crd_recording_info* info = crd_recording_describe(r);
    check_int(info->groups[0].signal_count, 4);
    const int arrived = info->groups[0].first_signal + 3;
    check_text(info->signals[arrived].name, "arrived");
    crd_cursor* cursor = NULL;
    crd_block b;
    check_run(crd_cursor_open(r, 0, &arrived, 1, &cursor), ctx);
    check_run(crd_cursor_next(cursor, &b), ctx);
    check(b.rows > 150);
    for (int64_t i = 0; i < b.rows; i++) {
        const double tick = ceil(b.time[i] / 0.01 - 1e-6); // at whose end it was seen
        check(b.values[0][i] >= 0.005 * (tick - 1));       // that cycle began then
        check(b.values[0][i] < 0.005 * tick);
    }
    crd_cursor_close(cursor);
    crd_recording_close(r);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

// A ring that is full now and then.
static int full_every; // 0: never
static int64_t asked_for, refused;
crd_word* __real_crd_recorder_try_raster(crd_recorder* r, int raster);
crd_word* __wrap_crd_recorder_try_raster(crd_recorder* r, int raster);
crd_word* __wrap_crd_recorder_try_raster(crd_recorder* r, int raster)
{
    asked_for++;
    if (full_every && asked_for % full_every == 0) {
        refused++;
        return NULL;
    }
    return __real_crd_recorder_try_raster(r, raster);
}

typedef struct said {
    long long rows;
    int lines;
} said;

static void listen(void* user, crd_level level, const char* text)
{
    said* s = user;
    const char* number = strstr(text, ".mf4: ");
    if (level == CRD_LOG_WARNING && strstr(text, "rows are not in the file")) {
        s->rows = atoll(number + 6);
        s->lines++;
    }
}

static void rows_that_find_no_room_are_counted(void** state)
{
    (void)state;
    said heard = {0};
    crd_context_options opt = crd_context_defaults();
    opt.log = listen;
    opt.log_user = &heard;
    crd_context* ctx = crd_context_create(&opt);
    const setup u = {.predict = CRD_PREDICTION_HOLD, .stop = 6, .exchange = FILE_OF("full")};
    ticking t = {.now = 5000000000};
    const crd_clock clock = {look, sleep_until, look_on_the_wall, &t};
    crd_system* s = pair(ctx, &u);
    set(s, 1, "a", "-1");
    s->run.pace.factor = 1;
    crd_master_options mo = crd_master_defaults();
    mo.clock = &clock;
    crd_master* m = NULL;
    full_every = 7;
    asked_for = refused = 0;
    check_run(crd_master_create(ctx, s, &mo, &m), ctx);
    check_run(crd_master_run(m), ctx);
    full_every = 0;
    check_int(crd_master_get_report(m)->exchanged, 2 * 601 - refused);
    crd_master_destroy(m);
    crd_recording* r = NULL;
    check_run(crd_recording_open(ctx, u.exchange, &r), ctx);
    const crd_recording_info* info = crd_recording_describe(r);
    check_int(asked_for, 2 * 601);
    check_int(heard.rows, refused);
    check(refused > 100);
    check_int(info->groups[0].rows + info->groups[1].rows + refused, 2 * 601);
    check_int(heard.lines, 1);
    crd_recording_close(r);
    crdi_exchange* x = load(ctx, u.exchange);
    check(x->gaps);
    crdi_exchange_destroy(x);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

static void a_recorded_cycle_takes_no_memory(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_coupling_spec bad = coupling_over_a_bad_network("{\"algorithm\": \"eros\"}", 3);
    const setup u = {.there = &bad, .predict = CRD_PREDICTION_AUTO, .exchange = FILE_OF("cycle")};
    crd_system* s = pair(ctx, &u);
    crd_master* m = NULL;
    check_run(crd_master_create(ctx, s, NULL, &m), ctx);
    check_run(crd_master_initialize(m), ctx);
    const int64_t before = a.allocations;
    check_run(crd_master_advance(m, 150), ctx);
    check_int(a.allocations, before);
    check_run(crd_master_finish(m), ctx);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

// ---- bad things --------------------------------------------------------------------------------

static void names_that_are_no_mf4_and_folders_that_are_not_there_are_refused(void** state)
{
    (void)state;
    static const struct {
        const char *path, *part;
        crd_status want;
    } cases[] = {{TEST_BUILD_DIR "/exchange.csv", "should end in .mf4", CRD_E_RANGE},
                 {TEST_BUILD_DIR "/nowhere/x.mf4", "the folder has to be there", CRD_E_IO}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        crd_context* ctx = crd_context_create(NULL);
        const setup u = {.predict = CRD_PREDICTION_HOLD, .exchange = cases[i].path};
        crd_system* s = pair(ctx, &u);
        crd_master* m = NULL;
        check_run(crd_master_create(ctx, s, NULL, &m), ctx);
        check_status(crd_master_run(m), cases[i].want);
        check_contains(crd_error_text(ctx), cases[i].part);
        crd_master_destroy(m);
        crd_system_destroy(s);
        crd_context_destroy(ctx);
    }
}

static void every_allocation_of_a_recorded_run_may_fail(void** state)
{
    (void)state;
    for (int64_t fail_at = 0, first = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_system* s = one_of_each(ctx, FILE_OF("memory"));
        crd_master* m = NULL;
        check_run(crd_master_create(ctx, s, NULL, &m), ctx);
        first = a.allocations;
        a.fail_at = first + fail_at;
        const crd_status st = crd_master_run(m);
        a.fail_at = -1;
        if (st != CRD_OK) { check_status(st, CRD_E_MEMORY); }
        crd_master_destroy(m);
        crd_system_destroy(s);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) {
            check(fail_at > 20);
            return;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_connections_have_the_source_at_each_point_of_the_target),
        cmocka_unit_test(a_target_with_a_long_step_has_a_sample_at_each_of_its_own),
        cmocka_unit_test(couplings_have_each_arrival_with_its_stamp_and_number),
        cmocka_unit_test(the_input_of_a_coupling_is_what_the_unit_was_told),
        cmocka_unit_test(arrays_and_integers_are_recorded_and_texts_are_named),
        cmocka_unit_test(the_file_has_rasters_events_and_attachments),
        cmocka_unit_test(a_run_on_the_clock_says_when_samples_came),
        cmocka_unit_test(rows_that_find_no_room_are_counted),
        cmocka_unit_test(a_recorded_cycle_takes_no_memory),
        cmocka_unit_test(names_that_are_no_mf4_and_folders_that_are_not_there_are_refused),
        cmocka_unit_test(every_allocation_of_a_recorded_run_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
