// The watcher on a thread of its own, with a third one that says things: nothing is torn, nothing
// is out of order, nobody waits. Meant for ThreadSanitizer as well.
#include "live_help.h"

#include "master/live/live.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#define STEP 0.01
enum { TICKS = 20000 };

typedef struct {
    crdi_live* l;
    crd_master* m;
    int64_t rows, shots, events, orders;
    const char* wrong; // the first thing that was
    atomic_bool quit;
} observer;

static void complain(observer* o, const char* what)
{
    if (!o->wrong) { o->wrong = what; }
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static void look_at_rows(observer* o, int64_t* cycle)
{
    for (const crdi_live_row* r; (r = crdi_live_read(o->l)) != NULL; crdi_live_release(o->l)) {
        if (r->cycle <= *cycle) { complain(o, "rows are out of order"); }
        if (fabs(r->time - STEP * (double)r->cycle) > 1e-9) { complain(o, "a row is torn"); }
        if (fabs(r->values[0] - r->time) > 1e-9) { complain(o, "a row has another's value"); }
        *cycle = r->cycle;
        o->rows++;
    }
}

static bool look_at_status(observer* o, int64_t* number)
{
    const crdi_live_status* s = crdi_live_get_status(o->l);
    if (!s || s->number == *number) { return false; }
    if (s->number < *number) { complain(o, "snapshots are out of order"); }
    if (s->units[0].steps != s->cycles || s->units[1].steps != s->cycles ||
        fabs(s->time - STEP * (double)s->cycles) > 1e-9) {
        complain(o, "a snapshot is torn");
    }
    *number = s->number;
    o->shots++;
    return s->state == CRDI_LIVE_ENDED;
}

static void look_at_events(observer* o, int64_t* heard)
{
    for (crdi_live_event e; crdi_live_get_event(o->l, *heard, &e); *heard = e.number) {
        const size_t n = strlen(e.text);
        if (e.number <= *heard) { complain(o, "events are out of order"); }
        if (n == 0 || n >= sizeof e.text) { complain(o, "an event is torn"); }
        o->events++;
    }
}

static void send_something(observer* o)
{
    static const char* const elements[] = {"eros", "foh", "zoh"};
    char text[32];
    snprintf(text, sizeof text, "%d", (int)(o->orders % 100));
    const crdi_live_command commands[] = {
        {.action = CRDI_LIVE_SET, .name = "d.m", .text = text},
        {.action = CRDI_LIVE_COUPLE, .name = "g.u", .text = elements[o->orders % 3]},
        {.action = CRDI_LIVE_FAULT,
         .name = "d.u",
         .fault = CRDI_FAULT_OFFSET,
         .value = 1,
         .duration = 5 * STEP},
        {.action = CRDI_LIVE_FAULT,
         .name = "g.u",
         .fault = CRDI_FAULT_DELAY,
         .value = 0.1,
         .duration = NAN},
        {.action = CRDI_LIVE_PAUSE},
        {.action = CRDI_LIVE_STEP, .count = 3},
        {.action = CRDI_LIVE_START},
        {.action = CRDI_LIVE_CLEAR, .name = ""},
        {.action = CRDI_LIVE_MARK, .text = "hello"},
    };
    const crd_status st =
        crdi_live_send(o->l, &commands[o->orders % (int64_t)(sizeof commands / sizeof *commands)]);
    if (st < 0 && st != CRD_E_STATE) { complain(o, crdi_live_error(o->l)); }
    o->orders++;
}

static void* observe(void* user)
{
    observer* o = user;
    int64_t cycle = -1, number = 0, heard = 0;
    for (bool ended = false; !ended;) {
        look_at_rows(o, &cycle);
        ended = look_at_status(o, &number);
        look_at_events(o, &heard);
        if (crdi_live_is_ready(o->l) && !ended) { send_something(o); }
        nap();
    }
    look_at_rows(o, &cycle);
    look_at_events(o, &heard);
    return NULL;
}

static void* talk(void* user)
{
    observer* o = user;
    for (int i = 0; !atomic_load(&o->quit); i++) {
        crdi_log(o->m->log, CRD_LOG_WARNING, "somebody says %d", i);
        if (i % 64 == 0) { nap(); }
    }
    return NULL;
}

static void a_watcher_on_its_own_thread_sees_whole_things(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = new_system(ctx, STEP, TICKS * STEP);
    const crd_coupling_spec coupling = {.element = "{\"algorithm\": \"zoh\"}", .place = {"x", 1}};
    const int c = add_unit(s, "c", &clock_model, 0), d = add_unit(s, "d", &desk_model, 0);
    const int g = add_unit(s, "g", &gain_model, 0);
    wire(s, c, "y", d, "u");
    wire(s, d, "y", g, "u")->coupling = &coupling;
    crdi_live_options o = crdi_live_defaults();
    o.row_gap = 0;
    o.status_gap = 1e-3;
    observer watcher = {0};
    pthread_t threads[2];
    check_run(crd_master_create(ctx, s, NULL, &watcher.m), ctx);
    check_run(crdi_live_create(ctx, watcher.m, &o, &watcher.l), ctx);
    check_int(pthread_create(&threads[0], NULL, observe, &watcher), 0);
    check_int(pthread_create(&threads[1], NULL, talk, &watcher), 0);
    check_run(crd_master_initialize(watcher.m), ctx);
    const struct timespec pause = {.tv_nsec = 500000};
    for (int i = 0; i < 100; i++) { // the run has to last for the watcher to come in between
        check_run(crd_master_advance(watcher.m, TICKS / 100), ctx);
        nanosleep(&pause, NULL);
    }
    check_int(crd_master_ended(watcher.m), CRD_END_STOP_TIME);
    atomic_store(&watcher.quit, true);
    pthread_join(threads[1], NULL);
    check_run(crd_master_finish(watcher.m), ctx);
    pthread_join(threads[0], NULL);
    if (watcher.wrong) { fail_msg("%s", watcher.wrong); }
    check_int(watcher.rows + crdi_live_lost(watcher.l), TICKS + 1);
    check(watcher.rows > TICKS / 100 && watcher.shots > 10 && watcher.orders > 20);
    check(watcher.events > 20);
    crdi_live_destroy(watcher.l);
    crd_master_destroy(watcher.m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
}

// ---- units with a budget -----------------------------------------------------------------------

// A desk whose step ends when the test says so. With a budget of 0 the run never waits for it, with
// one of years always.
static sem_t entered, gate;
static atomic_bool closed;

static crd_model_status gated_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    if (atomic_load(&closed)) {
        sem_post(&entered);
        while (sem_wait(&gate) != 0) {}
    }
    return desk_step(self, host, t, h, reached);
}

static void start_budgeted(watched* w, crd_model* model, double budget)
{
    *model = desk_model;
    model->step = gated_step;
    sem_init(&entered, 0, 0);
    sem_init(&gate, 0, 0);
    atomic_store(&closed, false);
    *w = (watched){.ctx = crd_context_create(NULL)};
    w->s = new_system(w->ctx, 0.1, 1000);
    const int c = add_unit(w->s, "c", &clock_model, 0), d = add_unit(w->s, "d", model, 0);
    wire(w->s, c, "y", d, "u");
    w->s->units[d].budget = budget;
    watch(w);
}

static void a_unit_on_its_own_thread_meets_faults_and_settings(void** state)
{
    (void)state;
    watched w;
    crd_model model;
    start_budgeted(&w, &model, 1e9);
    advance(&w, 3);
    fault(&w, "d.u", CRDI_FAULT_OFFSET, 5, 0.2);
    put(&w, "d.m", "80");
    advance(&w, 1);
    check_near(value(w.m, "d.u"), 5.3, 1e-12);
    check_near(value(w.m, "d.sum"), 80 + 111, 1e-12);
    advance(&w, 2);
    check_near(value(w.m, "d.u"), 0.5, 1e-12);
    check_int(crdi_live_get_status(w.l)->units[1].late, 0);
    const crdi_live_row* last = NULL;
    for (const crdi_live_row* r; (r = next_row(&w)) != NULL;) {
        last = r;
    }
    check_near(last->values[signal_named(&w, "d.sum")], 80 + 111, 1e-12); // nobody else reads it
    stop_watching(&w);
}

static void a_unit_that_is_late_is_told_when_it_is_back(void** state)
{
    (void)state;
    watched w;
    crd_model model;
    start_budgeted(&w, &model, 0);
    atomic_store(&closed, true);
    advance(&w, 1);
    while (sem_wait(&entered) != 0) {}
    put(&w, "d.m", "80");
    advance(&w, 3); // it is in its step: nobody may touch it
    check(crdi_live_get_status(w.l)->units[1].is_late);
    check(crdi_live_get_status(w.l)->units[1].late >= 3);
    check_int(w.l->postponed_count, 1);
    hear(&w, CRD_EVENT_START, "start: 2 units, step 0.1 s");
    crdi_live_event e;
    check(!next_event(&w, &e));
    atomic_store(&closed, false);
    sem_post(&gate);
    for (int i = 0; w.l->postponed_count > 0 && i < 10000; i++) {
        advance(&w, 1);
        nap();
    }
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: d.m = 80 (was 50)");
    stop_watching(&w);
}

static void* press_in_a_step(void* user)
{
    watched* w = user;
    while (sem_wait(&entered) != 0) {}
    do_it(w, CRDI_LIVE_EMERGENCY);
    return NULL;
}

// With a budget of years.
static void an_emergency_does_not_wait_for_a_unit_that_is_in_its_step(void** state)
{
    (void)state;
    watched w;
    crd_model model;
    pthread_t thread;
    start_budgeted(&w, &model, 1e9);
    advance(&w, 3);
    atomic_store(&closed, true);
    check_int(pthread_create(&thread, NULL, press_in_a_step, &w), 0);
    check_status(crd_master_advance(w.m, 1), CRD_E_STATE);
    check_contains(crd_error_text(w.ctx), "emergency stop by page 127.0.0.1 at t = ");
    pthread_join(thread, NULL);
    atomic_store(&closed, false);
    sem_post(&gate);
    stop_watching(&w);
}

// ---- benches -----------------------------------------------------------------------------------

// A bench that is conditioned for ever, and a page that watches its board and presses the button.
static crdi_board* board;
static crd_unit_ops bench_ops;
static const crd_unit_ops* plain_ops;

static const crdi_board* board_of(const crd_unit* u)
{
    (void)u;
    return board;
}

static void write_board(int i)
{
    crdi_board_state* s = crdi_board_edit(board);
    s->phase = i;
    s->weight = i;
    snprintf(s->progress, sizeof s->progress, "conditioning: %d", i);
    crdi_board_show(board);
}

static crd_status conditioned(crd_unit* u, const crd_experiment* e)
{
    for (int i = 0; !__atomic_load_n(e->emergency, __ATOMIC_RELAXED); i++) {
        write_board(i);
        if (i % 32 == 0) { nap(); }
    }
    return crdi_fail(u->ctx, CRD_E_UNIT, "given up");
}

static void* press(void* user)
{
    observer* o = user;
    crdi_board_state s;
    crdi_live_outcome outcome;
    char text[64];
    const crdi_live_command command = {.action = CRDI_LIVE_EMERGENCY, .who = "page 10.0.0.1"};
    for (bool pressed = false, ended = false; !ended; o->rows++) {
        crdi_live_read_board(o->l, 0, &s);
        snprintf(text, sizeof text, "conditioning: %d", s.phase);
        if (s.progress[0] && (strcmp(text, s.progress) != 0 || s.weight != s.phase)) {
            complain(o, "a board is torn");
        }
        if (s.phase >= 64 && !pressed) {
            pressed = true;
            if (crdi_live_send(o->l, &command) < 0) { complain(o, crdi_live_error(o->l)); }
        }
        crdi_live_get_outcome(o->l, &outcome);
        ended = outcome.state == CRDI_LIVE_ENDED;
        nap();
    }
    if (strcmp(outcome.message, "emergency stop by page 10.0.0.1 during the initialisation") != 0) {
        complain(o, "the message is wrong");
    }
    return NULL;
}

static void an_emergency_comes_from_another_thread_while_a_bench_is_conditioned(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = new_system(ctx, STEP, 1);
    observer watcher = {0};
    pthread_t thread;
    add_unit(s, "d", &desk_model, 0);
    check_ok(crdi_board_create(ctx, &board));
    check_run(crd_master_create(ctx, s, NULL, &watcher.m), ctx);
    crd_unit* u = watcher.m->plan->members[0].unit;
    plain_ops = u->ops;
    bench_ops = *plain_ops;
    static const crd_unit_remote_ops remote = {.board = board_of};
    bench_ops.remote = &remote;
    bench_ops.enter_initialization = conditioned;
    u->ops = &bench_ops;
    check_run(crdi_live_create(ctx, watcher.m, NULL, &watcher.l), ctx);
    check_int(pthread_create(&thread, NULL, press, &watcher), 0);
    check_status(crd_master_initialize(watcher.m), CRD_E_STATE);
    check_run(crd_master_finish(watcher.m), ctx);
    pthread_join(thread, NULL);
    if (watcher.wrong) { fail_msg("%s", watcher.wrong); }
    crdi_live_destroy(watcher.l);
    crd_master_destroy(watcher.m);
    crd_system_destroy(s);
    crdi_board_destroy(board);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_on_its_own_thread_meets_faults_and_settings),
        cmocka_unit_test(a_unit_that_is_late_is_told_when_it_is_back),
        cmocka_unit_test(a_watcher_on_its_own_thread_sees_whole_things),
        cmocka_unit_test(an_emergency_does_not_wait_for_a_unit_that_is_in_its_step),
        cmocka_unit_test(an_emergency_comes_from_another_thread_while_a_bench_is_conditioned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
