// A learned cycle in runs that are not the one that was learned: each way of noticing it, by what a
// user can do to a run (faults, settings and elements on the live page, another drive).
#include "live_help.h"

#include "master/live/live.h"
#include "shared/master_cycle.h"

#include <unistd.h>

#define STEP 0.01
#define STOP 8.0
enum { TICKS = 800, AT = 300 };

static double drive(double t)
{
    (void)t;
    return 0;
}

static double drag(double w)
{
    return 0.05 * w;
}
#include "shaft.h"

typedef struct {
    char text[4096];
    crdi_learned_use use;
} heard;

static void hear_log(void* user, crd_level level, const char* text)
{
    heard* h = user;
    if (level > CRD_LOG_WARNING || !strstr(text, "run.learned")) { return; }
    strncat(h->text, text, sizeof h->text - strlen(h->text) - 1);
}

typedef struct {
    crd_signal_spec drive;
    crd_coupling_spec link;
    char path[64];
    double first, best;
} rig;

static crd_system* build(crd_context* ctx, rig* r, bool late)
{
    crd_system* s = new_system(ctx, STEP, STOP);
    crd_unit_spec u = crd_unit_spec_defaults();
    int d = 0;
    u.name = "d";
    u.source = CRD_UNIT_SIGNAL;
    u.signals = &r->drive;
    u.signal_count = 1;
    check_ok(crd_system_add_unit(s, &u, &d));
    const int e = add_unit(s, "e", &engine_model, 0), x = add_unit(s, "x", &load_model, 0);
    set(s, e, "loss", "0.4");
    set(s, x, "c", "3");
    set(s, x, "d", "0.4");
    wire(s, d, "y", e, "push");
    wire(s, x, "R", e, "Mr")->coupling = late ? &r->link : NULL;
    wire(s, e, "w", x, "w")->coupling = late ? &r->link : NULL;
    crd_bond_spec bond = crd_bond_spec_defaults();
    bond.action_unit = x;
    bond.action = "R";
    bond.flow_unit = e;
    bond.flow = "w";
    bond.correct = CRD_CORRECT_NONE;
    check_ok(crd_system_add_bond(s, &bond));
    return s;
}

typedef struct {
    crd_context* ctx;
    crd_system* s;
} learner;

static crd_status run_once(void* user, crdi_repeat_pass* pass)
{
    const learner* l = user;
    crd_master* m = NULL;
    crd_master_options o = crd_master_defaults();
    o.pass = pass;
    check_run(crd_master_create(l->ctx, l->s, &o, &m), l->ctx);
    check_run(crd_master_run(m), l->ctx);
    crd_master_destroy(m);
    return CRD_OK;
}

static void learn(rig* r, double jitter, double loss)
{
    *r = (rig){.drive = crd_signal_spec_defaults(),
               .link = {.element = "{\"algorithm\": \"zoh\"}",
                        .place = {"x", 1},
                        .channel = {.step = NAN, .delay = 0.06, .burst = 1, .seed = 1},
                        .has_channel = true},
               .path = "learned_XXXXXX"};
    r->drive.name = "y";
    r->drive.shape = CRD_SIGNAL_PRBS;
    r->drive.amplitude = 10;
    r->drive.duration = 0.4;
    r->drive.order = 9;
    r->drive.seed = 5;
    r->link.channel.jitter = jitter;
    r->link.channel.loss = loss;
    learner l = {.ctx = crd_context_create(NULL)};
    l.s = build(l.ctx, r, true);
    crd_master* m = NULL;
    crdi_repeat c;
    crd_text text;
    check_run(crd_master_create(l.ctx, l.s, NULL, &m), l.ctx);
    check_run(crdi_repeat_describe(m, &c), l.ctx);
    crd_master_destroy(m);
    const crdi_repeat_options o = crdi_repeat_defaults();
    check_run(crdi_repeat_learn(l.ctx, &o, run_once, &l, &c), l.ctx);
    r->first = c.first;
    r->best = c.best;
    for (int i = 0; i < c.figure_count; i++) {
        printf("  %-24s %.4g %%, limited %d\n", c.figures[i].what, 100 * c.figures[i].error,
               (int)c.figures[i].limited);
    }
    crd_text_init(&text, l.ctx);
    crdi_repeat_write(&c, &text);
    const int fd = mkstemp(r->path);
    check(fd >= 0);
    close(fd);
    check_run(crdi_file_write(l.ctx, r->path, &text), l.ctx);
    crd_text_clear(&text);
    crd_arena_clear(&c.arena);
    crd_system_destroy(l.s);
    crd_context_destroy(l.ctx);
}

// A run on which `act` acts at tick AT; speeds go to `w`. `from`: none of what was learned is added
// from this tick on, TICKS: it is to the end.
static void run_with(rig* r, bool late, bool learned, void (*act)(watched*), heard* h, double* w,
                     int from)
{
    crd_context_options opt = crd_context_defaults();
    *h = (heard){.text = ""};
    opt.log = hear_log;
    opt.log_user = h;
    watched x = {.ctx = crd_context_create(&opt)};
    x.s = build(x.ctx, r, late);
    if (learned) { x.s->run.learned = r->path; }
    watch(&x);
    bool any = false;
    for (int n = 0; n < TICKS; n++) {
        if (n == AT && act) { act(&x); }
        advance(&x, 1);
        w[n] = value(x.m, "e.w");
        for (int i = 0; i < x.m->connections.coupled_count; i++) {
            const crdi_coupled* c = &x.m->connections.coupled[i];
            any = any || c->lead != 0;
            if (n >= from) { check_near(c->lead, 0, 0); }
        }
        while (next_row(&x)) {}
    }
    check(any == learned);
    check(crdi_learning_use(x.m, &h->use) == learned);
    stop_watching(&x);
}

static double apart(const double* a, const double* b, int from)
{
    double sum = 0, low = INFINITY, high = -INFINITY;
    for (int i = from; i < TICKS; i++) {
        sum += (a[i] - b[i]) * (a[i] - b[i]);
        low = fmin(low, b[i]);
        high = fmax(high, b[i]);
    }
    return sqrt(sum / (TICKS - from)) / (high - low);
}

// ---- tests -------------------------------------------------------------------------------------

static void the_learned_run_is_nearer_to_one_that_is_not_late(void** state)
{
    (void)state;
    static double truth[TICKS], plain[TICKS], with[TICKS];
    for (int noisy = 0; noisy < 2; noisy++) {
        rig r;
        heard h;
        learn(&r, noisy ? 0.01 : 0, noisy ? 0.02 : 0);
        r.link.channel.seed = 99; // other noise of the same link is the same cycle
        run_with(&r, false, false, NULL, &h, truth, 0);
        run_with(&r, true, false, NULL, &h, plain, 0);
        run_with(&r, true, true, NULL, &h, with, TICKS);
        check_text(h.text, "");
        // The figure of the learner, from another run; its noise is another.
        check_int(h.use.signals, 2);
        check_near(h.use.first, r.first, 1e-9 * r.first);
        check_near(h.use.error, r.best, noisy ? 0.3 * r.best : 1e-3 * r.first);
        check(isnan(h.use.until));
        printf("  speed %.3g %% -> %.3g %%\n", 100 * apart(plain, truth, 0),
               100 * apart(with, truth, 0));
        check(apart(with, truth, 0) <= (noisy ? 0.5 : 0.2) * apart(plain, truth, 0));
        unlink(r.path);
    }
}

static void delay_more(watched* w)
{
    fault(w, "x.w", CRDI_FAULT_DELAY, 0.01, NAN); // one sample
}

static void cut_the_link(watched* w)
{
    fault(w, "e.Mr", CRDI_FAULT_DROP, 1, NAN);
}

static void brake(watched* w)
{
    put(w, "e.loss", "2");
}

static void disturb_the_drive(watched* w)
{
    fault(w, "e.push", CRDI_FAULT_GAIN, -1, NAN);
}

static void take_another_element(watched* w)
{
    order(w, (crdi_live_command){.action = CRDI_LIVE_COUPLE, .name = "x.w", .text = "foh"});
}

static void another_run_is_noticed_while_it_goes(void** state)
{
    (void)state;
    static const struct {
        void (*act)(watched*);
        const char* says;
        int within; // samples, and 20 in which corrections fade
    } cases[] = {{delay_more, "the latency of x.w was 0.06", 200},
                 {cut_the_link, "the latency of e.Mr was", 50},
                 {brake, "this is another cycle", 150},
                 {disturb_the_drive, "this is another cycle", 150},
                 {take_another_element, "the element of x.w was replaced", 2}};
    static double with[TICKS];
    rig r;
    heard h;
    learn(&r, 0, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int gone = AT + cases[i].within + 21;
        run_with(&r, true, true, cases[i].act, &h, with, gone);
        printf("  %s\n", h.text);
        check_contains(h.text, cases[i].says);
        check(h.use.until >= AT * STEP && h.use.until <= (AT + cases[i].within + 1) * STEP);
        check_contains(h.text, "the run goes on without what was learned");
    }
    unlink(r.path);
}

// The description of a signal does not have its seed: it is noticed when it drives.
static void another_drive_is_noticed_with_its_first_difference(void** state)
{
    (void)state;
    static double plain[TICKS], with[TICKS], was[TICKS];
    rig r;
    heard h;
    learn(&r, 0, 0);
    run_with(&r, true, false, NULL, &h, was, 0);
    r.drive.seed = 6;
    run_with(&r, true, false, NULL, &h, plain, 0);
    int differs = 0;
    while (differs < TICKS && plain[differs] == was[differs]) {
        differs++;
    }
    check(differs < TICKS / 2);
    run_with(&r, true, true, NULL, &h, with, differs + 22);
    printf("  %s\n", h.text);
    check_contains(h.text, " d.y was ");
    check_contains(h.text, "this is another cycle; the run goes on without what was learned");
    unlink(r.path);
}

// A start that is not the run's would add each correction at another time.
static void a_file_with_another_start_is_not_used(void** state)
{
    (void)state;
    rig r;
    heard h = {""};
    crd_master* m = NULL;
    crd_text text;
    learn(&r, 0, 0);
    crd_context_options opt = crd_context_defaults();
    opt.log = hear_log;
    opt.log_user = &h;
    crd_context* ctx = crd_context_create(&opt);
    crd_text_init(&text, ctx);
    check_ok(crdi_file_read(
        ctx, r.path, &(crdi_file_need){.what = "a learned cycle", .most = 100000000}, &text));
    char* at = strstr(text.data, "\"start\": 0,");
    check(at != NULL);
    at[strlen("\"start\": ")] = '3';
    check_ok(crdi_file_write(ctx, r.path, &text));
    crd_system* s = build(ctx, &r, true);
    s->run.learned = r.path;
    check_ok(crd_master_create(ctx, s, NULL, &m));
    check_contains(h.text, "not those of this run; the run goes on without what was learned");
    check(m->connections.learning == NULL);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_text_clear(&text);
    crd_context_destroy(ctx);
    unlink(r.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_learned_run_is_nearer_to_one_that_is_not_late),
        cmocka_unit_test(another_run_is_noticed_while_it_goes),
        cmocka_unit_test(another_drive_is_noticed_with_its_first_difference),
        cmocka_unit_test(a_file_with_another_start_is_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
