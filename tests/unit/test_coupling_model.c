// The coupling element as a unit: it does what the library's element does, bit for bit, and tells
// micro steps from macro steps.
#include <stdio.h>
#include <unistd.h>

#include "unit_test.h"

#include "cardan/coupling.h"

enum { SAMPLES = 400, LATENCY = 6 };
static const double STEP = 0.01;

// All that can be described without weights, and a network; each with what is behind the name.
static const char* const algorithms[] = {
    "'algorithm': 'zoh'",
    "'algorithm': 'foh', 'react': 'switch', 'detect': 'spectrum'",
    "'algorithm': 'eros'",
    "'algorithm': 'eros', 'reconstruct': 'smooth'",
    "'algorithm': 'wiener', 'taps': 9",
    "'algorithm': 'ridge'",
    "'algorithm': 'rls'",
    "'algorithm': 'auto'",
    "'algorithm': 'auto', 'reconstruct': 'smooth'",
};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

// Single quotes are double ones.
static char* json_of(const char* body)
{
    static char text[4096];
    snprintf(text, sizeof text, "{'element': 1, 'name': 'link', 'step': '10 ms', %s}", body);
    for (char* p = text; *p; p++) {
        if (*p == '\'') { *p = '"'; }
    }
    return text;
}

// ---- one unit ----------------------------------------------------------------------------------

typedef struct tie {
    check_allocator memory;
    crd_context* ctx;
    const crd_model* model;
    crd_unit_spec spec;
    crd_unit* unit;
    bound u, stamp, sequence, y;
} tie;

static void open_link(tie* l, const char* body)
{
    *l = (tie){0};
    l->ctx = check_context(&l->memory);
    const char* json = json_of(body);
    if (crd_coupling_model_create(l->ctx, json, strlen(json), "link.json", &l->model) < 0) {
        fail_msg("%s: %s", json, crd_error_text(l->ctx));
    }
    l->spec = crd_unit_spec_defaults();
    l->spec.name = "link";
    l->spec.source = CRD_UNIT_NATIVE;
    l->spec.model = l->model;
    l->unit = make(l->ctx, &l->spec);
    check_ok(crd_unit_instantiate(l->unit));
    int32_t u = l->unit->ops->find(l->unit, "u"), y = l->unit->ops->find(l->unit, "y");
    if (u >= 0) {
        l->u = bind_variables(l->unit, &u, 1);
        l->y = bind_variables(l->unit, &y, 1);
    }
    l->stamp = bind_names(l->unit, "stamp");
    l->sequence = bind_names(l->unit, "sequence");
}

static crd_status try_begin(tie* l, double t0)
{
    const crd_experiment e = {.start = t0};
    const crd_status st = l->unit->ops->enter_initialization(l->unit, &e);
    return st < 0 ? st : l->unit->ops->exit_initialization(l->unit);
}

static void begin(tie* l, double t0)
{
    if (try_begin(l, t0) < 0) { fail_msg("%s", crd_error_text(l->unit->ctx)); }
}

static void close_link(tie* l)
{
    if (l->u.b) {
        unbind(&l->u);
        unbind(&l->y);
    }
    unbind(&l->stamp);
    unbind(&l->sequence);
    crd_unit_destroy(l->unit);
    crd_coupling_model_destroy(l->model);
    crd_context_destroy(l->ctx);
    check_int(l->memory.live, 0);
}

static void set_u(tie* l, double u)
{
    l->u.v.real[0] = u;
    set(&l->u);
}

static void set_stamp(tie* l, double stamp, int64_t sequence)
{
    l->stamp.v.real[0] = stamp;
    l->sequence.v.integer[0] = sequence;
    set(&l->stamp);
    set(&l->sequence);
}

static double get_y(tie* l)
{
    get(&l->y);
    return l->y.v.real[0];
}

static void check_same(double a, double b, const char* what, int n)
{
    if (memcmp(&a, &b, sizeof a) != 0) {
        fail_msg("%s, step %d: %.17g, expected %.17g", what, n, a, b);
    }
}

// ---- the element beside it ---------------------------------------------------------------------

static crd_coupling* reference(crd_context* ctx, const char* body, double start_value)
{
    crd_element* e = NULL;
    crd_coupling* c = NULL;
    crd_coupling_options opt;
    const char* json = json_of(body);
    check_ok(crd_element_parse(ctx, json, strlen(json), "x", 1, &e));
    check_ok(crd_element_options(e, STEP, &opt));
    opt.start_value = start_value;
    check_ok(crd_coupling_create(ctx, &opt, &c));
    crd_element_destroy(e);
    return c;
}

// A signal with all that detection and learning react to.
static double signal_at(int n)
{
    static uint32_t noise = 1;
    if (n <= 0) {
        noise = 1;
        return 0.5;
    }
    noise = noise * 1664525u + 1013904223u;
    const double t = n * STEP;
    return sin(9.7 * t) + 0.4 * sin(34 * t + 1) + (t > 2 ? 3 : 0) + 1e-3 * (noise / 4294967296.0);
}

static double samples[SAMPLES + 1];

static int make_samples(void** state)
{
    (void)state;
    for (int n = 0; n <= SAMPLES; n++) {
        samples[n] = signal_at(n);
    }
    return 0;
}

static double arrived(int n) // at macro step n
{
    return samples[n > LATENCY ? n - LATENCY : 0];
}

// ---- commands ----------------------------------------------------------------------------------

enum { LONG = 3000 };
static const char* const with_commands[] = {
    "'algorithm': 'commands', 'commands': ['pedal', 'bench.speed']",
    "'algorithm': 'auto', 'commands': ['pedal', 'bench.speed']",
    "'algorithm': 'commands', 'commands': ['pedal', 'bench.speed'], 'mixture': false",
};
enum { WITH_COMMANDS = sizeof with_commands / sizeof *with_commands };
static double pedal[LONG], speed[LONG], torque[LONG];

// A torque that follows pedal x (2 - speed) with a lag of 40 ms; both change in steps.
static void make_answer(void)
{
    uint32_t noise = 7;
    double lag = 0;
    for (int n = 0; n < LONG; n++) {
        noise = noise * 1664525u + 1013904223u;
        pedal[n] = n % 23 ? pedal[n ? n - 1 : 0] : (noise >> 16) % 100 / 100.0;
        speed[n] = sin(0.7 * n * STEP);
        lag += STEP / 0.04 * (100 * pedal[n] * (2 - speed[n]) - lag);
        torque[n] = lag + 0.1 * (noise / 4294967296.0);
    }
}

static void set_commands(tie* l, int n)
{
    set_one(l->unit, "pedal", pedal[n]);
    set_one(l->unit, "bench.speed", speed[n]);
}

// What `cardan coupling compensate --command` computes.
static double replayed(crd_context* ctx, const char* body, double delay, double* estimate)
{
    crd_element* e = NULL;
    crd_replay_options o = crd_replay_defaults();
    crd_replay out;
    const char* json = json_of(body);
    check_ok(crd_element_parse(ctx, json, strlen(json), "x", 1, &e));
    o.step = STEP;
    o.delay = LATENCY * STEP;
    o.commands = (const double* const[]){pedal, speed};
    o.command_count = e->options.commands;
    o.command_delay = delay;
    check_ok(crd_coupling_replay(ctx, e, &o, torque, LONG, estimate, &out));
    crd_element_destroy(e);
    return sqrt(out.score.dd / (double)out.score.count);
}

// Bit for bit the element that is told commands, then samples; and as good as in a replay, whose
// first sample comes in another way. `trials`: other commands first, whose outputs are asked for.
static void run_with_commands(const char* body, double delay, bool trials)
{
    enum { SETTLED = 500 };
    static double expected[LONG];
    tie l;
    open_link(&l, body);
    (void)replayed(l.ctx, body, delay, expected);
    set_one(l.unit, "command_delay", delay);
    set_u(&l, torque[0]);
    begin(&l, 0);
    crd_coupling* c = reference(l.ctx, body, torque[0]);
    (void)crd_coupling_eval(c, 0);
    double ours = 0, its = 0;
    for (int n = 0; n < LONG; n++) {
        const double t = n * STEP;
        const int newest = n > LATENCY ? n - LATENCY : 0;
        set_u(&l, torque[newest]);
        set_stamp(&l, newest * STEP, newest);
        if (trials) {
            set_commands(&l, LONG - 1 - n);
            (void)get_y(&l);
        }
        set_commands(&l, n);
        crd_coupling_command(c, (double[]){pedal[n], speed[n]}, t + delay);
        if (n == 0 || newest > 0) { crd_coupling_push(c, torque[newest], newest * STEP, newest); }
        const double y = get_y(&l);
        check_same(y, crd_coupling_eval(c, t), body, n);
        ours += n >= SETTLED ? (y - torque[n]) * (y - torque[n]) : 0;
        its += n >= SETTLED ? (expected[n] - torque[n]) * (expected[n] - torque[n]) : 0;
        for (int micro = 0; micro < 2; micro++) { // commands between macro steps wait for the next
            step(l.unit, t + micro * STEP / 2, STEP / 2);
            set_one(l.unit, "pedal", 77);
            (void)crd_coupling_eval(c, t + (micro + 1) * STEP / 2); // outputs at the step's end
        }
    }
    check_near(sqrt(ours / its), 1, 0.02);
    crd_coupling_destroy(c);
    close_link(&l);
}

static void commands_are_used_as_compensate_uses_them(void** state)
{
    (void)state;
    make_answer();
    for (int a = 0; a < WITH_COMMANDS; a++) {
        run_with_commands(with_commands[a], 0, false);
        run_with_commands(with_commands[a], 0.03, true);
    }
    check_allocator memory = {0};
    crd_context* ctx = check_context(&memory);
    const double alone = replayed(ctx, "'algorithm': 'auto'", 0, NULL);
    check(replayed(ctx, with_commands[0], 0, NULL) < 0.5 * alone); // or all this shows nothing
    crd_context_destroy(ctx);
}

static void commands_that_can_be_no_inputs_are_refused(void** state)
{
    (void)state;
    static const struct {
        const char *body, *says;
    } wrong[] = {
        {"'algorithm': 'commands'", "the algorithm commands without any"},
        {"'algorithm': 'commands', 'commands': ['stamp']", "command 'stamp'"},
        {"'algorithm': 'smith', 'commands': ['y']", "'y', expected a name that no other"},
        {"'algorithm': 'commands', 'commands': ['a b']", "command 'a b', expected names"},
        {"'algorithm': 'commands', 'commands': ['bench.']", "command 'bench.', expected names"},
    };
    check_allocator memory = {0};
    crd_context* ctx = check_context(&memory);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const crd_model* model = NULL;
        const char* json = json_of(wrong[i].body);
        check_int(crd_coupling_model_create(ctx, json, strlen(json), "link.json", &model),
                  CRD_E_RANGE);
        if (!strstr(crd_error_text(ctx), wrong[i].says)) { fail_msg("%s", crd_error_text(ctx)); }
    }
    crd_context_destroy(ctx);
    check_int(memory.live, 0);
    tie l;
    open_link(&l, "'algorithm': 'smith'"); // whose input needs no name
    check(l.unit->ops->find(l.unit, "command") >= 0);
    set_one(l.unit, "command_delay", 3);
    check(try_begin(&l, 0) < 0);
    check(strstr(crd_error_text(l.unit->ctx), "command_delay = 3 s, expected 0 to "));
    close_link(&l);
}

// ---- tests -------------------------------------------------------------------------------------

static void the_estimate_is_the_signal_at_the_initialisation(void** state)
{
    (void)state;
    for (int a = 0; a < ALGORITHMS; a++) {
        tie l;
        open_link(&l, algorithms[a]);
        const crd_experiment e = {.start = 3};
        check_ok(l.unit->ops->enter_initialization(l.unit, &e));
        check_same(get_y(&l), 0, algorithms[a], 0);
        set_u(&l, 7.25);
        check_same(get_y(&l), 7.25, algorithms[a], 0);
        check_ok(l.unit->ops->exit_initialization(l.unit));
        check_same(get_y(&l), 7.25, algorithms[a], 0);
        check_int(get_one(l.unit, "samples"), 0);
        check_int(get_one(l.unit, "active"), 1);
        check_int(get_one(l.unit, "learning"), 1);
        close_link(&l);
    }
}

// Steps of the importer are `micro` to a macro step; the outputs are read before each step too, or
// not.
static void run_beside_the_element(const char* body, int micro, bool read_before)
{
    tie l;
    open_link(&l, body);
    set_one(l.unit, "latency", LATENCY);
    set_u(&l, samples[0]);
    begin(&l, 0);
    crd_coupling* c = reference(l.ctx, body, samples[0]);
    (void)crd_coupling_eval(c, 0);
    const int64_t allocations = l.memory.allocations;
    double t = 0;
    const double h = STEP / micro;
    for (int n = 0; n < SAMPLES * micro; n++, t += h) {
        const double u = arrived(n / micro);
        set_u(&l, u);
        if (n % micro == 0) { crd_coupling_push(c, u, t - LATENCY * STEP, -1); }
        const double now = crd_coupling_eval(c, t);
        if (read_before) { check_same(get_y(&l), now, body, n); }
        step(l.unit, t, h);
        check_same(get_y(&l), crd_coupling_eval(c, t + h), body, n);
    }
    check_int(l.memory.allocations, allocations);
    const crd_coupling_counts counts = crd_coupling_get_counts(c);
    check_int(counts.samples, SAMPLES);
    check_int(get_one(l.unit, "samples"), counts.samples);
    check_int(get_one(l.unit, "jumps"), counts.jumps);
    check_int(get_one(l.unit, "k"), LATENCY + 1); // at the end of the step, before the next sample
    crd_coupling_destroy(c);
    close_link(&l);
}

static void it_gives_what_the_element_gives(void** state)
{
    (void)state;
    for (int a = 0; a < ALGORITHMS; a++) {
        run_beside_the_element(algorithms[a], 1, true);
        run_beside_the_element(algorithms[a], 1, false);
    }
}

static void micro_steps_only_evaluate(void** state)
{
    (void)state;
    for (int a = 0; a < ALGORITHMS; a++) {
        run_beside_the_element(algorithms[a], 7, true);
        run_beside_the_element(algorithms[a], 10, false);
    }
}

static void stamps_and_numbers_say_what_is_new_and_how_old(void** state)
{
    (void)state;
    // Arrivals per micro step of 5 ms: nothing, late, twice, lost, out of order.
    static const int arrives[] = {-1, -1, 0, -1, 1,  1, -1, 2,  4, -1,
                                  3,  -1, 5, 9,  -1, 8, -1, 10, 11};
    enum { COUNT = sizeof arrives / sizeof *arrives };
    for (int a = 0; a < ALGORITHMS; a++) {
        for (int kind = 0; kind < 3; kind++) { // stamps, numbers, both
            tie l;
            open_link(&l, algorithms[a]);
            set_u(&l, samples[0]);
            begin(&l, 0);
            crd_coupling* c = reference(l.ctx, algorithms[a], samples[0]);
            (void)crd_coupling_eval(c, 0);
            int newest = -1;
            double t = 0.03;
            for (int n = 0; n < COUNT; n++, t += STEP / 2) {
                if (n == 0) { step(l.unit, 0, 0.03); }
                if (arrives[n] >= 0) {
                    const double stamp = kind != 1 ? arrives[n] * STEP + 1e-4 : NAN;
                    const int64_t sequence = kind != 0 ? arrives[n] : -1;
                    set_u(&l, samples[arrives[n]]);
                    set_stamp(&l, stamp, sequence);
                    if (arrives[n] != newest) {
                        crd_coupling_push(c, samples[arrives[n]], stamp, sequence);
                    }
                    newest = arrives[n];
                    check_same(get_y(&l), crd_coupling_eval(c, t), algorithms[a], n);
                    check_int(get_one(l.unit, "k"), crd_coupling_get_state(c).k);
                }
                step(l.unit, t, STEP / 2);
                if (newest < 0) { // u is all that is known
                    check_near(get_y(&l), samples[0], 1e-12);
                } else {
                    check_same(get_y(&l), crd_coupling_eval(c, t + STEP / 2), algorithms[a], n);
                }
            }
            const crd_coupling_counts counts = crd_coupling_get_counts(c);
            check(counts.filled > 0 && counts.late > 0);
            check_int(get_one(l.unit, "samples"), counts.samples);
            check_int(get_one(l.unit, "filled"), counts.filled);
            check_int(get_one(l.unit, "late"), counts.late);
            crd_coupling_destroy(c);
            close_link(&l);
        }
    }
}

static void other_values_before_a_step_replace_each_other(void** state)
{
    (void)state;
    for (int a = 0; a < ALGORITHMS; a++) {
        tie l, quiet;
        open_link(&l, algorithms[a]);
        open_link(&quiet, algorithms[a]);
        begin(&l, 0);
        begin(&quiet, 0);
        double t = 0;
        for (int n = 0; n < SAMPLES; n++, t += STEP) {
            const double wrong = samples[n] + 40 * sin(n);
            set_u(&l, wrong);
            const double y = get_y(&l);
            set_u(&l, -wrong);
            const bool smooth = strstr(algorithms[a], "smooth") != NULL; // begins where it was
            if (n > 20 && !smooth && get_y(&l) == y) { fail_msg("%s, step %d", algorithms[a], n); }
            set_u(&l, wrong);
            check_same(get_y(&l), y, algorithms[a], n);
            set_u(&l, samples[n]);
            if (n % 2) { (void)get_y(&l); }
            set_u(&quiet, samples[n]);
            step(l.unit, t, STEP);
            step(quiet.unit, t, STEP);
            check_same(get_y(&l), get_y(&quiet), algorithms[a], n);
        }
        close_link(&l);
        close_link(&quiet);
    }
}

static void a_restored_state_goes_on_as_before(void** state)
{
    (void)state;
    for (int a = 0; a < ALGORITHMS; a++) {
        tie l;
        void* saved = NULL;
        double y[60];
        open_link(&l, algorithms[a]);
        begin(&l, 0);
        double t = 0, t200 = 0;
        for (int again = 0; again < 3; again++, t = t200) {
            for (int n = again ? 200 : 0; n < 260; n++, t += STEP) {
                if (n == 200) { t200 = t; }
                set_u(&l, samples[n]);
                if (n == 200 && !again) { check_ok(l.unit->ops->state->save(l.unit, &saved)); }
                if (n == 230) { (void)get_y(&l); } // a sample that is only tried at the restore
                step(l.unit, t, STEP);
                if (n >= 200 && !again) { y[n - 200] = get_y(&l); }
                if (n >= 200) { check_same(get_y(&l), y[n - 200], algorithms[a], n); }
            }
            set_u(&l, 1e6);
            (void)get_y(&l);
            check_ok(l.unit->ops->state->restore(l.unit, saved));
        }
        l.unit->ops->state->free(l.unit, &saved);
        close_link(&l);
    }
}

static void samples_that_are_no_numbers_are_held_and_counted(void** state)
{
    (void)state;
    tie l;
    open_link(&l, "'algorithm': 'eros'");
    set_u(&l, 1e300);
    begin(&l, 0);
    check_same(get_y(&l), 0, "eros", 0);
    for (int n = 0; n < 40; n++) {
        set_u(&l, n == 20 ? INFINITY : n == 21 ? NAN : 3);
        step(l.unit, n * STEP, STEP);
        check_near(get_y(&l), 3, 1e-12);
    }
    check_int(get_one(l.unit, "not_finite"), 2);
    close_link(&l);
}

static void a_jump_is_flagged_and_the_stand_ins_are_named(void** state)
{
    (void)state;
    tie l;
    open_link(&l, "'algorithm': 'eros', 'detect': 'spectrum', 'react': 'switch', 'latency': 3");
    set_one(l.unit, "threshold", 5);
    begin(&l, 0);
    int zoh = 0, foh = 0, jumps = 0;
    for (int n = 0; n < 60; n++) {
        set_u(&l, 0.01 * n + (n >= 30 ? 5 : 0));
        (void)get_y(&l);
        const int active = (int)get_one(l.unit, "active");
        zoh += active == 2;
        foh += active == 3;
        jumps += get_one(l.unit, "jump") != 0;
        check_int(get_one(l.unit, "k"), 3);
        step(l.unit, n * STEP, STEP);
    }
    check_int(jumps, 1);
    check_int(zoh, 1);
    check_int(foh, 4); // Baumann 2024, Fig. 6: k + 1
    check_int(get_one(l.unit, "jumps"), 1);
    close_link(&l);
}

static void the_estimate_comes_with_its_slope(void** state)
{
    (void)state;
    static const char* const bodies[] = {"'algorithm': 'foh', 'latency': 3",
                                         "'algorithm': 'foh', 'latency': 3, 'signals': ['a']",
                                         "'algorithm': 'foh', 'latency': 3, 'reconstruct': 'hold'",
                                         "'algorithm': 'foh', 'latency': 3, 'signals': 2"};
    for (int a = 0; a < 4; a++) {
        tie l;
        open_link(&l, bodies[a]);
        check_int(l.unit->info.max_output_order, a < 3 ? 1 : 0); // arrays have none
        bound u = bind_names(l.unit, a == 1 ? "u.a" : "u"),
              y = bind_names(l.unit, a == 1 ? "y.a" : "y");
        begin(&l, 0);
        double slope = NAN, t = 0;
        for (int n = 0; n < 20; n++, t += STEP) {
            u.v.real[0] = 5 * (t - 3 * STEP);
            set(&u);
            step(l.unit, t, STEP);
        }
        if (a < 3) {
            get(&y);
            check_near(y.v.real[0], 5 * t, 1e-9);
            check_ok(l.unit->ops->derivatives->get(l.unit, y.b, 1, &slope));
            check_near(slope, a < 2 ? 5 : 0, 1e-9);
        }
        unbind(&u);
        unbind(&y);
        close_link(&l);
    }
}

static void arrays_and_named_signals_are_as_many_elements(void** state)
{
    (void)state;
    for (int a = 0; a < ALGORITHMS; a++) {
        tie array, named, one;
        char body[512];
        snprintf(body, sizeof body, "%s, 'signals': 3, 'latency': 2", algorithms[a]);
        open_link(&array, body);
        snprintf(body, sizeof body, "%s, 'signals': ['x', 'v', 'F'], 'latency': 2", algorithms[a]);
        open_link(&named, body);
        snprintf(body, sizeof body, "%s, 'latency': 2", algorithms[a]);
        open_link(&one, body);
        check_int(array.u.b->real_count, 3);
        check(named.unit->ops->find(named.unit, "u.v") >= 0);
        check(named.unit->ops->find(named.unit, "u") < 0);
        bound u = bind_names(named.unit, "u.x u.v u.F"), y = bind_names(named.unit, "y.x y.v y.F");
        begin(&array, 0);
        begin(&named, 0);
        begin(&one, 0);
        double t = 0;
        for (int n = 0; n < 150; n++, t += STEP) {
            for (int i = 0; i < 3; i++) {
                array.u.v.real[i] = u.v.real[i] = samples[n + i] * (i - 1);
            }
            set(&array.u);
            set(&u);
            set_u(&one, u.v.real[2]);
            if (n % 3) { get(&y); }
            step(array.unit, t, STEP);
            step(named.unit, t, STEP);
            step(one.unit, t, STEP);
            get(&array.y);
            get(&y);
            check(memcmp(array.y.v.real, y.v.real, 3 * sizeof(double)) == 0);
            check_same(y.v.real[2], get_y(&one), algorithms[a], n);
        }
        unbind(&u);
        unbind(&y);
        close_link(&array);
        close_link(&named);
        close_link(&one);
    }
}

static void outputs_depend_on_the_inputs_of_their_signal(void** state)
{
    (void)state;
    tie l;
    open_link(&l, "'algorithm': 'eros', 'signals': ['x', 'F']");
    const crd_unit_ops* ops = l.unit->ops;
    const int32_t y = ops->find(l.unit, "y.x");
    check(crd_unit_depends(l.unit, y, ops->find(l.unit, "u.x"), false));
    check(crd_unit_depends(l.unit, y, ops->find(l.unit, "stamp"), false));
    check(!crd_unit_depends(l.unit, y, ops->find(l.unit, "u.F"), false));
    close_link(&l);
}

// ---- what is refused ---------------------------------------------------------------------------

static void set_text(crd_unit* u, const char* name, const char* text)
{
    const int32_t v = u->ops->find(u, name);
    check_ok(crd_unit_set_text(u, v, text, NO_PLACE));
}

static void wrong_parameters_are_refused_at_the_initialisation(void** state)
{
    (void)state;
    static const struct {
        const char* name;
        double value;
        const char* says;
    } wrong[] = {
        {"macro_step", 0, "macro_step = 0, expected > 0"},
        {"macro_step", NAN, "macro_step = nan, expected > 0"},
        {"macro_step", -1, "expected > 0"},
        {"latency", -2, "latency = -2, expected 0 to 120 macro steps, or -1"},
        {"latency", 1e9, "latency = 1e+09, expected"},
        {"latency", NAN, "latency = nan"},
        {"latency", 17, "expected at most 16, which is latency-max"},
        {"threshold", -1, "threshold"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tie l;
        open_link(&l, "'algorithm': 'eros'");
        set_one(l.unit, wrong[i].name, wrong[i].value);
        check_status(try_begin(&l, 0), CRD_E_UNIT);
        check_contains(crd_error_text(l.unit->ctx), wrong[i].says);
        close_link(&l);
    }
}

static void wrong_descriptions_are_refused(void** state)
{
    (void)state;
    static const struct {
        const char *json, *says;
        crd_status st;
    } wrong[] = {
        {"{\"element\": 1, \"step\": 1, \"algorithm\": \"eros\", \"name\": \"two words\"}",
         "name = 'two words', expected letters", CRD_E_RANGE},
        {"{\"element\": 1, \"step\": 1, \"algorithm\": \"eros\"}", "name = ''", CRD_E_RANGE},
        {"{\"element\": 1, \"name\": \"x\", \"algorithm\": \"eros\"}", "the macro step is missing",
         CRD_E_RANGE},
        {"{\"element\": 1, \"name\": \"x\", \"step\": 1, \"algorithm\": \"eros\", \"signals\": "
         "2000}",
         "signals", CRD_E_RANGE},
        {"{\"element\": 1, \"name\": \"x\", \"step\": 1, \"algorithm\": \"eros\", \"signals\": "
         "[\"a\", \"b c\"]}",
         "'b c'", CRD_E_RANGE},
        {"{\"element\": 1, \"name\": \"x\", \"step\": 1, \"algorithm\": \"eros\", \"signals\": "
         "[\"a\", \"a\"]}",
         "'a'", CRD_E_RANGE},
        {"[]", "link.json:1:", CRD_E_FORMAT},
        {"", "link.json", CRD_E_FORMAT},
    };
    check_allocator memory;
    crd_context* ctx = check_context(&memory);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const crd_model* m = NULL;
        const crd_status st =
            crd_coupling_model_create(ctx, wrong[i].json, strlen(wrong[i].json), "link.json", &m);
        if (st != wrong[i].st) {
            fail_msg("%s: %s: %s", wrong[i].json, crd_status_name(st), crd_error_text(ctx));
        }
        check_contains(crd_error_text(ctx), wrong[i].says);
        check(!m);
        check_int(memory.live, 1); // the context
    }
    crd_context_destroy(ctx);
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    for (int a = 0; a < ALGORITHMS; a++) {
        check_allocator memory;
        crd_context* ctx = check_context(&memory);
        const char* json = json_of(algorithms[a]);
        const crd_model* m = NULL;
        int64_t n = 0;
        for (;; n++) {
            memory.allocations = 0;
            memory.fail_at = n;
            const crd_status st = crd_coupling_model_create(ctx, json, strlen(json), "x", &m);
            memory.fail_at = -1;
            if (st == CRD_OK) { break; }
            check_status(st, CRD_E_MEMORY);
            check_int(memory.live, 1);
        }
        check(n > 5);
        crd_coupling_model_destroy(m);
        check_int(memory.live, 1);
        crd_context_destroy(ctx);
    }
}

// ---- learning ----------------------------------------------------------------------------------

static const char network[] =
    "'algorithm': 'network', 'latency': 3, 'network': {'alpha': 0.01, 'W1': [[2, -1]], "
    "'W2': [[1], [-1]], 'W3': [0.9900990099009901, -0.9900990099009901]}";

static void without_a_server_a_network_runs_on(void** state)
{
    (void)state;
    tie l, alone;
    open_link(&l, network);
    open_link(&alone, network);
    set_text(l.unit, "learn_server", "unix:" TEST_BUILD_DIR "/nobody_listens_here");
    begin(&l, 0);
    begin(&alone, 0);
    check_int(get_one(l.unit, "learning"), 2);
    const int64_t allocations = l.memory.allocations;
    for (int n = 0; n < SAMPLES; n++) {
        set_u(&l, samples[n]);
        set_u(&alone, samples[n]);
        step(l.unit, n * STEP, STEP);
        step(alone.unit, n * STEP, STEP);
        check_same(get_y(&l), get_y(&alone), "network", n);
    }
    check_int(l.memory.allocations, allocations);
    check_int(get_one(l.unit, "networks"), 0);
    check_int(get_one(l.unit, "learning"), 2); // offline
    close_link(&l);
    close_link(&alone);
}

static void lines_to_the_server_outlive_restored_states_and_resets(void** state)
{
    (void)state;
    tie l;
    void* early = NULL;
    open_link(&l, network);
    check_ok(l.unit->ops->state->save(l.unit, &early)); // there is no line yet
    set_text(l.unit, "learn_server", "unix:" TEST_BUILD_DIR "/nobody_listens_here");
    begin(&l, 0);
    step(l.unit, 0, STEP);
    check_ok(l.unit->ops->state->restore(l.unit, early));
    begin(&l, 0);
    step(l.unit, 0, STEP);
    check_ok(crd_unit_instantiate(l.unit));
    begin(&l, 0);
    l.unit->ops->state->free(l.unit, &early);
    close_link(&l); // sees that nothing is left
}

static void a_server_that_cannot_be_is_refused(void** state)
{
    (void)state;
    tie l;
    open_link(&l, network);
    set_text(l.unit, "learn_server", "carrier pigeon");
    check_status(try_begin(&l, 0), CRD_E_UNIT);
    check_contains(crd_error_text(l.unit->ctx), "learn_server: ");
    close_link(&l);
    open_link(&l, "'algorithm': 'eros'"); // has nothing that learns
    set_text(l.unit, "learn_server", "unix:/tmp/x");
    check_status(try_begin(&l, 0), CRD_E_UNIT);
    check_contains(crd_error_text(l.unit->ctx), "learn_server: ");
    close_link(&l);
}

// ---- resources ---------------------------------------------------------------------------------

static void the_model_of_a_folder_says_what_is_wrong_with_it(void** state)
{
    (void)state;
    char message[300];
    check(!crd_coupling_model_load(TEST_BUILD_DIR "/no_such_folder", message, sizeof message));
    check_contains(message, "no_such_folder/element.json: no such file");
    FILE* f = fopen(TEST_BUILD_DIR "/element.json", "w");
    check(f != NULL);
    fputs("{\"element\": 1, \"algorithm\": \"heroes\"}", f);
    fclose(f);
    check(!crd_coupling_model_load(TEST_BUILD_DIR, message, sizeof message));
    check_contains(message, "eros");
    f = fopen(TEST_BUILD_DIR "/element.json", "w");
    fputs(json_of("'algorithm': 'eros'"), f);
    fclose(f);
    const crd_model* m = crd_coupling_model_load(TEST_BUILD_DIR, message, sizeof message);
    check(m != NULL);
    check_text(m->name, "link");
    crd_coupling_model_destroy(m);
    unlink(TEST_BUILD_DIR "/element.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_estimate_is_the_signal_at_the_initialisation),
        cmocka_unit_test(it_gives_what_the_element_gives),
        cmocka_unit_test(commands_are_used_as_compensate_uses_them),
        cmocka_unit_test(commands_that_can_be_no_inputs_are_refused),
        cmocka_unit_test(micro_steps_only_evaluate),
        cmocka_unit_test(stamps_and_numbers_say_what_is_new_and_how_old),
        cmocka_unit_test(other_values_before_a_step_replace_each_other),
        cmocka_unit_test(a_restored_state_goes_on_as_before),
        cmocka_unit_test(samples_that_are_no_numbers_are_held_and_counted),
        cmocka_unit_test(a_jump_is_flagged_and_the_stand_ins_are_named),
        cmocka_unit_test(the_estimate_comes_with_its_slope),
        cmocka_unit_test(arrays_and_named_signals_are_as_many_elements),
        cmocka_unit_test(outputs_depend_on_the_inputs_of_their_signal),
        cmocka_unit_test(wrong_parameters_are_refused_at_the_initialisation),
        cmocka_unit_test(wrong_descriptions_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(without_a_server_a_network_runs_on),
        cmocka_unit_test(lines_to_the_server_outlive_restored_states_and_resets),
        cmocka_unit_test(a_server_that_cannot_be_is_refused),
        cmocka_unit_test(the_model_of_a_folder_says_what_is_wrong_with_it),
    };
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
