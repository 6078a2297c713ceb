// FMUs in worker processes: equal to those in this process, and what goes wrong in one is told.
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cardan/master.h"
#include "cardan/results.h"
#include "unit/worker/worker.h"
#include "unit_test.h"

static const char misdeed[] = TEST_BUILD_DIR "/unit_worker";

static crd_unit_spec fmu_spec(const char* path, const char* isolate)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "f";
    spec.source = CRD_UNIT_FMU;
    spec.path = path;
    spec.isolate = isolate;
    spec.limit = 20;
    return spec;
}

static const char* example(const char* name, int version)
{
    static char path[512];
    snprintf(path, sizeof path, TEST_BUILD_DIR "/fmus/fmi%d/%s.fmu", version, name);
    return path;
}

static pid_t worker_of(const crd_unit* u)
{
    check(crdi_worker_has(u));
    return ((const crdi_proxy*)u)->worker->pid;
}

// Waits for the end of a process that is nobody's child here.
static bool ends(pid_t pid)
{
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) { return true; }
    struct pollfd p = {.fd = fd, .events = POLLIN};
    const int n = poll(&p, 1, 20000);
    close(fd);
    return n == 1;
}

// ---- equal -------------------------------------------------------------------------------------

enum { STEPS = 300, MOST = 16 };
typedef struct record {
    double real[STEPS][MOST], rate[STEPS][MOST], next[STEPS];
    int64_t integer[STEPS][MOST], events[STEPS];
} record;

static int kill_every; // steps, 0: never

// Inputs on curves, outputs with derivatives, now and then a step back.
static void drive(crd_unit* u, record* r)
{
    const double h = 0.01;
    int32_t in_list[64], out_list[64];
    int32_t in_count = 0, out_count = 0;
    memset(r, 0, sizeof *r);
    start(u, 0, STEPS * h);
    for (int32_t i = 0; i < u->info.variable_count; i++) {
        const crd_variable* v = &u->info.variables[i];
        const bool number = crd_type_kind(v->type) != CRD_BYTES && v->type != CRD_CLOCK;
        if (!number || v->alias_of >= 0) { continue; }
        if (v->causality == CRD_INPUT && v->type == CRD_FLOAT64) { in_list[in_count++] = i; }
        if (v->causality == CRD_OUTPUT && out_count < 8) { out_list[out_count++] = i; }
    }
    bound in = bind_variables(u, in_list, in_count), out = bind_variables(u, out_list, out_count);
    void* saved = NULL;
    const int order = u->info.max_input_order;
    for (int n = 0; n < STEPS; n++) {
        const double t = n * h;
        double slope[2][MOST] = {{0}};
        for (int k = 0; k < in.b->real_count && k < MOST; k++) {
            in.v.real[k] = sin((3 + k) * t);
            slope[0][k] = (3 + k) * cos((3 + k) * t);
            slope[1][k] = -(3 + k) * (3 + k) * sin((3 + k) * t);
        }
        const bool back = n % 7 == 3 && (u->info.flags & CRD_UNIT_CAN_SAVE);
        for (int round = 0; round <= back; round++) {
            if (back && round == 0) { check_ok(u->ops->state->save(u, &saved)); }
            if (back && round == 1) { check_ok(u->ops->state->restore(u, saved)); }
            if (in_count) { set(&in); }
            if (in_count && order) {
                const double* const d[] = {slope[0], slope[1]};
                check_ok(u->ops->derivatives->set(u, in.b, d, order > 2 ? 2 : order));
            }
            if (kill_every && !back && n % kill_every == 10) { kill(worker_of(u), SIGKILL); }
            if (n % 2 && CRDI_UNIT_HAS(u, remote, begin)) { u->ops->remote->begin(u, t, h); }
            step(u, t, h);
            get(&out);
        }
        memcpy(r->real[n], out.v.real,
               (size_t)(out.b->real_count < MOST ? out.b->real_count : MOST) * 8);
        memcpy(r->integer[n], out.v.integer,
               (size_t)(out.b->integer_count < MOST ? out.b->integer_count : MOST) * 8);
        if (u->info.max_output_order && out.b->real_count <= MOST) {
            check_ok(u->ops->derivatives->get(u, out.b, 1, r->rate[n]));
        }
        r->events[n] = u->events;
        r->next[n] = u->next_event;
        if (u->wants_stop) { break; }
    }
    if (saved) { u->ops->state->free(u, &saved); }
    unbind(&in);
    unbind(&out);
    check_ok(u->ops->terminate(u));
}

static void a_worker_gives_the_same_bits(void** state)
{
    (void)state;
    static const struct {
        const char* name;
        crd_interface interface;
    } cases[] = {{"events", CRD_INTERFACE_AUTO},
                 {"rot_1", CRD_INTERFACE_AUTO},
                 {"feedthrough", CRD_INTERFACE_AUTO},
                 {"bouncing_ball", CRD_INTERFACE_AUTO},
                 {"bouncing_ball", CRD_INTERFACE_MODEL_EXCHANGE},
                 {"van_der_pol", CRD_INTERFACE_MODEL_EXCHANGE},
                 {"driven_oscillator", CRD_INTERFACE_MODEL_EXCHANGE},
                 {"pwm_lag", CRD_INTERFACE_MODEL_EXCHANGE},
                 {"heat_rod", CRD_INTERFACE_MODEL_EXCHANGE}};
    static record here, there;
    crd_context* ctx = crd_context_create(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int version = 2; version <= 3; version++) {
            crd_unit_spec spec = fmu_spec(example(cases[i].name, version), "none");
            spec.interface = cases[i].interface;
            crd_unit* u = make(ctx, &spec);
            check(!crdi_worker_has(u));
            drive(u, &here);
            crd_unit_destroy(u);
            spec.isolate = "process";
            u = make(ctx, &spec);
            drive(u, &there);
            check(worker_of(u) > 0);
            crd_unit_destroy(u);
            if (memcmp(&here, &there, sizeof here) != 0) {
                fail_msg("%s as FMI %d differs", cases[i].name, version);
            }
        }
    }
    crd_context_destroy(ctx);
}

// Whose FMU can write down its state loses nothing when its worker is killed.
static void a_restart_gives_the_same_bits(void** state)
{
    (void)state;
    static const char* const names[] = {
        "events", "rot_1", "feedthrough", "bouncing_ball", "driven_oscillator", "pwm_lag"};
    static record here, there;
    crd_context* ctx = crd_context_create(NULL);
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        crd_unit_spec spec = fmu_spec(example(names[i / 2], 2 + (int)i % 2), "none");
        crd_unit* u = make(ctx, &spec);
        drive(u, &here);
        crd_unit_destroy(u);
        spec.isolate = "process";
        spec.restart = 100;
        kill_every = 41;
        u = make(ctx, &spec);
        drive(u, &there);
        kill_every = 0;
        check(u->remarks >= 4);
        check_contains(u->remark, "restarted from its state at t = ");
        crd_unit_destroy(u);
        if (memcmp(&here, &there, sizeof here) != 0) {
            fail_msg("%s as FMI %d differs", names[i / 2], 2 + (int)i % 2);
        }
    }
    crd_context_destroy(ctx);
}

static void a_state_is_lost_with_its_worker(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec = fmu_spec(example("rot_1", 2), "process");
    void *before = NULL, *after = NULL;
    spec.restart = 1;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    check_ok(u->ops->state->save(u, &before));
    kill(worker_of(u), SIGKILL);
    step(u, 0, 0.1);
    check_ok(u->ops->state->save(u, &after));
    check_ok(u->ops->state->restore(u, after));
    check_status(u->ops->state->restore(u, before), CRD_E_STATE);
    check_contains(crd_error_text(u->ctx), "is lost with the worker process that had it");
    u->ops->state->free(u, &before);
    u->ops->state->free(u, &after);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void texts_pass(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = fmu_spec(misdeed, "process");
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    bound in = bind_names(u, "note u"), out = bind_names(u, "text echo steps y");
    for (int n = 0; n < 5; n++) {
        char note[32];
        snprintf(note, sizeof note, "note %d \xc3\xa4", n);
        check_ok(crd_bytes_set(u->ctx, &in.v.bytes[0], note, strlen(note)));
        in.v.real[0] = n;
        set(&in);
        step(u, n * 0.1, 0.1);
        get(&out);
        check_text((const char*)out.v.bytes[1].data, note);
        check_int(out.v.integer[0], n + 1);
        char expected[32];
        snprintf(expected, sizeof expected, "%d steps", n + 1);
        check_text((const char*)out.v.bytes[0].data, expected);
    }
    check_near(out.v.real[0], 1.0, 1e-12); // 0.1 * (0 + 1 + 2 + 3 + 4)
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// ---- what goes wrong ---------------------------------------------------------------------------

static void count_line(void* user, crd_level level, const char* text)
{
    (void)level;
    char* log = user;
    if (strlen(log) + strlen(text) < 3000) { strcat(strcat(log, text), "\n"); }
}

// From create to destroy; the first sentence about a failure, and what is logged behind it.
static void live(const crd_unit_spec* spec, char* sentence, size_t room)
{
    crd_context_options opt = crd_context_defaults();
    char log[4096] = "";
    opt.log = count_line;
    opt.log_user = log;
    crd_context* ctx = crd_context_create(&opt);
    crd_unit* u = make(ctx, spec);
    const crd_experiment e = {.stop = 1, .has_stop = true};
    crd_status st = crd_unit_instantiate(u);
    if (st >= 0) { st = u->ops->enter_initialization(u, &e); }
    if (st >= 0) { st = u->ops->exit_initialization(u); }
    if (st >= 0) {
        bound in = bind_names(u, "u"), out = bind_names(u, "y");
        for (int n = 0; n < 5 && st >= 0; n++) {
            st = u->ops->set(u, in.b, &in.v);
            if (st >= 0) { st = u->ops->step(u, 0.1 * n, 0.1); }
            if (st >= 0) { st = u->ops->get(u, out.b, &out.v); }
        }
        if (st >= 0) { st = u->ops->terminate(u); }
        snprintf(sentence, room, "%s", st < 0 ? crd_error_text(u->ctx) : "");
        unbind(&in);
        unbind(&out);
    }
    snprintf(sentence, room, "%s", st < 0 ? crd_error_text(u->ctx) : "");
    crd_unit_destroy(u); // not called again
    if (!sentence[0]) { snprintf(sentence, room, "%s", log); }
    crd_context_destroy(ctx);
}

static void misdeeds_are_told_with_the_call(void** state)
{
    (void)state;
    static const char* const calls[] = {"Instantiate",
                                        "SetupExperiment",
                                        "EnterInitializationMode",
                                        "ExitInitializationMode",
                                        "SetReal",
                                        "DoStep",
                                        "GetReal",
                                        "Terminate",
                                        "FreeInstance"};
    static const struct {
        const char *kind, *says;
        bool named; // by a handler: the call is known for sure
    } kinds[] = {{"segv", "crashed in %s (Segmentation fault)", true},
                 {"abort", "crashed in %s (Aborted)", true},
                 {"fpe", "crashed in %s (Floating point exception)", true},
                 {"trap", "crashed in %s (Trace/breakpoint trap)", true},
                 {"exit", "ended its process with exit() in %s, code 3", true},
                 {"thread", "crashed in %s (Segmentation fault)", true},
                 {"_exit", "code 4", false},
                 {"kill", "lost its process in", false},
                 {"stop", "was stopped by a signal (Stopped (signal))", false},
#ifndef __SANITIZE_ADDRESS__ // which does not know a main thread that ends
                 {"leave", "code 0", false},
#endif
                 {"scribble", "lost its process in", false},
                 {"fork", "code 97", false}};
    const crd_unit_spec spec = fmu_spec(misdeed, "process");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
            char deed[64], call[64], expected[128], sentence[4096] = "";
            snprintf(deed, sizeof deed, "%s:%s", kinds[k].kind, calls[c]);
            setenv("CARDAN_TEST_MISDEED", deed, 1);
            live(&spec, sentence, sizeof sentence);
            snprintf(call, sizeof call, "fmi2%s", calls[c]);
            snprintf(expected, sizeof expected, kinds[k].says, call);
            if (!strstr(sentence, expected)) {
                fail_msg("%s: \"%s\" does not contain \"%s\"", deed, sentence, expected);
            }
        }
    }
    unsetenv("CARDAN_TEST_MISDEED");
}

// An FMU that would start its tool cannot do so in a worker: the sentence says what to write.
static void who_needs_a_tool_is_told_the_option(void** state)
{
    (void)state;
    char sentence[4096] = "";
    check_int(system("cd " TEST_BUILD_DIR " && rm -rf unit_worker_tool && "
                     "cp -r unit_worker unit_worker_tool && "
                     "sed -i 's/<CoSimulation /&needsExecutionTool=\"true\" /; "
                     "s/guid=/generationTool=\"The Tool 7\" &/' "
                     "unit_worker_tool/modelDescription.xml"),
              0);
    const crd_unit_spec spec = fmu_spec(TEST_BUILD_DIR "/unit_worker_tool", "process");
    setenv("CARDAN_TEST_MISDEED", "exit:Instantiate", 1);
    live(&spec, sentence, sizeof sentence);
    check_contains(sentence, "exit() in fmi2Instantiate");
    check_contains(sentence, "needs its tool (The Tool 7)");
    check_contains(sentence, "choose 'isolate: none' for the unit, or --isolate none");
    setenv("CARDAN_TEST_MISDEED", "exit:DoStep", 1); // it did start
    live(&spec, sentence, sizeof sentence);
    check(!strstr(sentence, "The Tool 7"));
    unsetenv("CARDAN_TEST_MISDEED");
}

// The sandbox: files of the user are neither read nor written.
static void files_of_others_are_out_of_reach(void** state)
{
    (void)state;
    const crd_unit_spec spec = fmu_spec(misdeed, "process");
    char path[] = "/tmp/cardan_worker_XXXXXX";
    const int fd = mkstemp(path);
    check(fd >= 0);
    setenv("CARDAN_TEST_FILE", path, 1);
    for (int k = 0; k < 2; k++) {
        char sentence[4096] = "";
        setenv("CARDAN_TEST_MISDEED", k ? "write:DoStep" : "read:DoStep", 1);
        live(&spec, sentence, sizeof sentence);
        check_contains(sentence, "code 97");
    }
    unsetenv("CARDAN_TEST_MISDEED");
    close(fd);
    unlink(path);
}

static void who_hangs_is_ended_after_its_limit(void** state)
{
    (void)state;
    static const char* const deeds[] = {"hang:DoStep", "spin:DoStep", "hang:Instantiate",
                                        "spin:constructor", "hang:FreeInstance"};
    crd_unit_spec spec = fmu_spec(misdeed, "process");
    spec.limit = 0.2;
    for (size_t k = 0; k < sizeof deeds / sizeof *deeds; k++) {
        char sentence[4096] = "";
        setenv("CARDAN_TEST_MISDEED", deeds[k], 1);
        live(&spec, sentence, sizeof sentence);
        check_contains(sentence, "did not come back within 0.2 s in ");
    }
    unsetenv("CARDAN_TEST_MISDEED");
}

static void an_interrupted_run_does_not_wait_for_who_hangs(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = fmu_spec(misdeed, "process");
    crd_unit* u = make(ctx, &spec);
    static volatile bool stop = true;
    const crd_experiment e = {.stop = 1, .has_stop = true, .interrupted = &stop};
    setenv("CARDAN_TEST_MISDEED", "hang:DoStep", 1);
    check_ok(crd_unit_instantiate(u));
    check_ok(u->ops->enter_initialization(u, &e));
    check_ok(u->ops->exit_initialization(u));
    check_status(u->ops->step(u, 0, 0.1), CRD_E_CRASH);
    check_contains(crd_error_text(u->ctx),
                   "did not come back when the run was interrupted in fmi2DoStep");
    check_ok(u->ops->terminate(u));
    unsetenv("CARDAN_TEST_MISDEED");
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void an_error_of_what_was_set_comes_with_the_step(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec = fmu_spec(misdeed, NULL);
    char here[512];
    for (int round = 0; round < 2; round++) {
        spec.isolate = round ? "process" : "none";
        crd_unit* u = make(ctx, &spec);
        start(u, 0, 1);
        bound in = bind_names(u, "u");
        in.v.real[0] = 666;
        crd_status st = u->ops->set(u, in.b, &in.v);
        if (st >= 0) { st = u->ops->step(u, 0, 0.1); }
        check_status(st, CRD_E_UNIT);
        if (round == 0) { snprintf(here, sizeof here, "%s", crd_error_text(u->ctx)); }
        check_text(crd_error_text(u->ctx), here);
        check_contains(here, "not this number");
        unbind(&in);
        crd_unit_destroy(u);
    }
    crd_context_destroy(ctx);
}

// Of two units in one worker one crashes: the other says whose fault it is.
static void units_of_a_group_share_a_worker_and_its_end(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_store* store = NULL;
    check_ok(crd_unit_store_create(ctx, &store));
    crd_unit_spec spec = fmu_spec(misdeed, "both");
    crd_unit *a = NULL, *b = NULL, *c = NULL;
    spec.name = "a";
    check_ok(crd_unit_create_shared(ctx, store, &spec, &a));
    crd_unit_spec other = spec, apart = spec;
    other.name = "b";
    apart.name = "c";
    apart.isolate = "process";
    check_ok(crd_unit_create_shared(ctx, store, &other, &b));
    check_ok(crd_unit_create_shared(ctx, store, &apart, &c));
    start(a, 0, 1);
    start(b, 0, 1);
    start(c, 0, 1);
    check_int(worker_of(a), worker_of(b));
    check(worker_of(a) != worker_of(c));
    step(a, 0, 0.1);
    kill(worker_of(a), SIGKILL);
    check(ends(worker_of(a)));
    a->ops->remote->begin(a, 0.1, 0.1);
    check_status(b->ops->step(b, 0, 0.1), CRD_E_CRASH);
    check_contains(crd_error_text(b->ctx), "lost its process in");
    check_status(a->ops->step(a, 0.1, 0.1), CRD_E_CRASH);
    step(c, 0, 0.1); // lives on
    crd_unit_destroy(a);
    crd_unit_destroy(b);
    crd_unit_destroy(c);
    crd_unit_store_destroy(store);
    crd_context_destroy(ctx);
}

// More than a worker takes folders: those of one FMU are one.
static void thousands_of_units_share_a_worker(void** state)
{
    (void)state;
    enum { UNITS = 5000 };
    static crd_unit* units[UNITS];
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_store* store = NULL;
    check_ok(crd_unit_store_create(ctx, &store));
    const crd_unit_spec spec = fmu_spec(misdeed, "all");
    for (int i = 0; i < UNITS; i++) {
        check_ok(crd_unit_create_shared(ctx, store, &spec, &units[i]));
    }
    start(units[0], 0, 1);
    start(units[UNITS - 1], 0, 1);
    check_int(worker_of(units[0]), worker_of(units[UNITS - 1]));
    step(units[UNITS - 1], 0, 0.1);
    for (int i = 0; i < UNITS; i++) {
        crd_unit_destroy(units[i]);
    }
    crd_unit_store_destroy(store);
    crd_context_destroy(ctx);
}

static void many_log_lines_arrive(void** state)
{
    (void)state;
    crd_context_options opt = crd_context_defaults();
    char log[4096] = "";
    opt.log = count_line;
    opt.log_user = log;
    opt.level = CRD_LOG_DEBUG;
    crd_context* ctx = crd_context_create(&opt);
    const crd_unit_spec spec = fmu_spec(misdeed, "process");
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    setenv("CARDAN_TEST_MISDEED", "log:DoStep", 1);
    crd_unit_destroy(u);
    u = make(ctx, &spec);
    start(u, 0, 1);
    step(u, 0, 0.1);
    unsetenv("CARDAN_TEST_MISDEED");
    check_contains(log, "line 0 of many");
    check_contains(log, "line 20 of many");
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// ---- runs --------------------------------------------------------------------------------------

static void a_crash_in_a_run_leaves_the_record_whole(void** state)
{
    (void)state;
    const char* const file = TEST_BUILD_DIR "/worker_run.csv";
    crd_context* ctx = crd_context_create(NULL);
    for (int threads = 1; threads <= 2; threads++) {
        crd_system* s = NULL;
        crd_master* m = NULL;
        check_ok(crd_system_create(ctx, &s));
        for (int i = 0; i < 3; i++) {
            crd_unit_spec spec = fmu_spec(misdeed, NULL);
            spec.name = i == 0 ? "good" : i == 1 ? "bad" : "third";
            if (i == 2) { spec.isolate = "process"; }
            check_ok(crd_system_add_unit(s, &spec, NULL));
        }
        s->run.step = 0.1;
        s->run.stop = 1;
        s->run.threads = threads;
        s->run.isolate = CRD_ISOLATE_ALL;
        s->results.path = file;
        setenv("CARDAN_TEST_MISDEED", "segv:DoStep:bad", 1);
        const crd_master_options opt = crd_master_defaults();
        check_ok(crd_master_create(ctx, s, &opt, &m));
        check_status(crd_master_run(m), CRD_E_CRASH);
        check_contains(crd_error_text(ctx), "at t = 0.3: ");
        check_contains(crd_error_text(ctx), "crashed in fmi2DoStep (Segmentation fault)");
        check_contains(crd_error_text(ctx), "'bad'");
        check_ok(crd_master_finish(m));
        crd_master_destroy(m);
        unsetenv("CARDAN_TEST_MISDEED");
        crd_table* t = NULL;
        check_ok(crd_table_read(ctx, file, &t));
        check_int(t->rows, 4); // 0, 0.1, 0.2, 0.3
        crd_table_destroy(t);
        crd_system_destroy(s);
    }
    crd_context_destroy(ctx);
}

// One run: nine units in a chain, with a ball that bounces among them. How the units are grouped is
// up to `place`; what comes out, the end and its sentence, is not.
typedef struct outcome {
    char* text; // the record
    char sentence[400];
    crd_status status;
} outcome;

static char* read_text(const char* path)
{
    FILE* f = fopen(path, "rb");
    check(f != NULL);
    char* text = calloc(1, 1 << 22);
    check(fread(text, 1, (1 << 22) - 1, f) > 100);
    fclose(f);
    return text;
}

static outcome run_row(const char* place, const char* predict, int mode, int threads)
{
    const char* const file = TEST_BUILD_DIR "/worker_row.csv";
    static const char* const fmus[] = {"feedthrough", "rot_1",  "faulty",
                                       "feedthrough", "events", "faulty",
                                       "feedthrough", "rot_1",  "feedthrough"};
    char yaml[8192];
    int n = snprintf(yaml, sizeof yaml, "cardan: 1\nunits:\n");
    for (int i = 0; i < 9; i++) {
        char group[32];
        snprintf(group, sizeof group, place, i % 3); // next to each other are never in one
        n += snprintf(yaml + n, sizeof yaml - (size_t)n, "  u%d: { fmu: %s, isolate: %s", i,
                      example(fmus[i], i % 2 ? 3 : 2), group);
        n += snprintf(yaml + n, sizeof yaml - (size_t)n,
                      i == 5 ? ", parameters: { mode: %d } }\n" : " }\n", mode);
    }
    snprintf(yaml + n, sizeof yaml - (size_t)n,
             "connections:\n  - u2.y -> u0.u\n  - u0.y -> u3.u\n  - u3.y -> u6.u\n"
             "  - u4.height -> u8.u\n  - u5.y -> u2.u\n"
             "run: { step: 1 ms, stop: 0.9, threads: %d, predict: %s }\n",
             threads, predict);
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = NULL;
    crd_master* m = NULL;
    check_ok(crd_system_parse(ctx, yaml, strlen(yaml), "row.yaml", &s));
    s->results.path = file;
    const crd_master_options opt = crd_master_defaults();
    check_ok(crd_master_create(ctx, s, &opt, &m));
    outcome o = {.status = crd_master_run(m)};
    snprintf(o.sentence, sizeof o.sentence, "%s", o.status < 0 ? crd_error_text(ctx) : "");
    check_ok(crd_master_finish(m));
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(ctx);
    o.text = read_text(file);
    return o;
}

static void rows_give_the_same_bits_in_any_grouping(void** state)
{
    (void)state;
    static const char* const places[] = {"together", "process", "g%d"};
    static const int modes[] = {0, 1, 2,
                                3, 5, 6}; // faulty: well, warning, discard, error, NaN, stop
    static const char* const predictions[] = {"hold", "auto"};
    for (size_t k = 0; k < 2 * sizeof modes / sizeof *modes; k++) {
        const int mode = modes[k / 2];
        const outcome here = run_row("none", predictions[k % 2], mode, 1);
        check((here.status < 0) == (mode == 2 || mode == 3 || mode == 5));
        for (size_t i = 0; i < 3; i++) {
            const outcome there = run_row(places[i], predictions[k % 2], mode, i == 2 ? 2 : 1);
            check_int(there.status, here.status);
            check_text(there.sentence, here.sentence);
            check_text(there.text, here.text);
            free(there.text);
        }
        free(here.text);
    }
}

// Nonsense in all that a worker writes, at any time: its units may fail, and say so in a sentence;
// nothing else happens.
static uint64_t noise(uint64_t* seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 20;
}

static void scribble(crdi_proxy* const* units, int count, uint64_t* seed)
{
    crdi_control* c = units[0]->worker->control;
    for (int i = 0; i < 4; i++) {
        crdi_proxy* u = units[noise(seed) % (uint64_t)count];
        crdi_answer* a = noise(seed) % 2 ? &c->row : u->answer;
        const uint64_t x = noise(seed) % 3 ? noise(seed) : noise(seed) % 8;
        uint32_t* const words[] = {(uint32_t*)&a->status, &a->flags, &a->log, &a->length};
        _Atomic uint32_t* const others[] = {&c->unit,   &c->taken, &c->log_written,
                                            &c->asleep, &c->bell,  &a->waited};
        switch (noise(seed) % 5) {
        case 0:
            *words[noise(seed) % 4] = (uint32_t)x;
            break;
        case 1:
            atomic_store(others[noise(seed) % 6], (uint32_t)x);
            break;
        case 2:
            a->events = (int64_t)x, a->result = a->step_ns = ~x;
            break;
        case 3:
            memset(u->text, (int)x, CRDI_CHANNEL_TEXT);
            break;
        default:
            memset(c->log + x % CRDI_CHANNEL_LOG, (int)x, CRDI_CHANNEL_LOG - x % CRDI_CHANNEL_LOG);
        }
    }
}

static void what_a_worker_says_is_not_trusted(void** state)
{
    (void)state;
    enum { UNITS = 3 };
    uint64_t seed = 1;
    int failed = 0;
    for (int k = 0; k < 40; k++) {
        crd_context* ctx = crd_context_create(NULL);
        crd_unit_store* store = NULL;
        check_ok(crd_unit_store_create(ctx, &store));
        _Alignas(64) crd_lane lanes[UNITS];
        crd_unit* units[UNITS];
        bound in[UNITS], out[UNITS];
        crd_advance* advance = NULL;
        crd_unit_spec spec = fmu_spec(example("feedthrough", 2), "all");
        spec.limit = 1;
        for (int i = 0; i < UNITS; i++) {
            check_ok(crd_unit_create_shared(ctx, store, &spec, &units[i]));
        }
        for (int i = 0; i < UNITS; i++) {
            start(units[i], 0, 1);
            in[i] = bind_names(units[i], "u");
            out[i] = bind_names(units[i], "y");
        }
        for (int i = 0; i < UNITS; i++) {
            advance = units[i]->ops->lane->join(units[i], i, in[i].b, &in[i].v, out[i].b, &out[i].v,
                                                &lanes[i]);
            check(advance != NULL);
        }
        crd_status st = CRD_OK;
        volatile int at = 0;
        for (int n = 0; n < 20 && st >= 0; n++) {
            units[0]->ops->remote->begin_row(lanes, UNITS, 0.01 * n, 0.01);
            const crdi_worker* w = ((crdi_proxy*)units[0])->worker;
            while (n % 2 && atomic_load(&w->control->row.number) != w->row.number) {
                sched_yield(); // behind its answer, or while it is at work
            }
            scribble((crdi_proxy* const*)units, UNITS, &seed);
            st = advance(lanes, UNITS, 0.01 * n, 0.01, &at);
            check(at >= 0 && at < UNITS);
            if (st >= 0) {
                st = units[n % UNITS]->ops->get(units[n % UNITS], out[n % UNITS].b,
                                                &out[n % UNITS].v);
            }
        }
        failed += st < 0;
        for (int i = 0; i < UNITS; i++) {
            unbind(&in[i]);
            unbind(&out[i]);
            crd_unit_destroy(units[i]);
        }
        crd_unit_store_destroy(store);
        crd_context_destroy(ctx);
    }
    check(failed > 0); // it has met the master
}

// Units that are fast share a worker, those that take long are apart while there are cores; who is
// not known may take long. Where there are no more workers the least busy one is taken.
static void long_steps_get_workers_of_their_own(void** state)
{
    (void)state;
    enum { UNITS = 12, WORKERS = 4 };
    static const int64_t costs[][UNITS] = {
        {500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500},
        {500, 90000, 500, 500, 200000, 500, 500, 500, 500, 500, 500, 500},
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {15000, 15000, 15000, 15000, 15000, 15000, 15000, 15000, 15000, 15000, 15000, 15000},
    };
    static const int workers[] = {1, 3, 4, 4}, with_others[] = {12, 10, 3, 3};
    for (int k = 0; k < 4; k++) {
        int64_t loads[WORKERS] = {0};
        int units[WORKERS] = {0}, count = 0, most = 0;
        for (int i = 0; i < UNITS; i++) {
            const int at = crdi_worker_choose(loads, count, WORKERS, costs[k][i]);
            check(at < count && count + (at < 0) <= WORKERS);
            const int w = at < 0 ? count++ : at;
            loads[w] += costs[k][i] ? costs[k][i] : 20000;
            most = ++units[w] > most ? units[w] : most;
        }
        check_int(count, workers[k]);
        check_int(most, with_others[k]);
    }
    check_int(crdi_worker_choose((const int64_t[]){500000}, 1, 1, 90000), 0); // two cores
}

// What a step costs is known to the next run.
static void the_cost_of_a_step_is_remembered(void** state)
{
    (void)state;
    char folder[] = "/tmp/cardan_cost_XXXXXX";
    check(mkdtemp(folder) != NULL);
    setenv("XDG_CACHE_HOME", folder, 1);
    for (int k = 0; k < 2; k++) {
        crd_context* ctx = crd_context_create(NULL);
        const crd_unit_spec spec = fmu_spec(misdeed, "process");
        crd_unit* u = make(ctx, &spec);
        check((((crdi_proxy*)u)->cost > 0) == (k == 1));
        start(u, 0, 1);
        for (int n = 0; n < 5; n++) {
            step(u, 0.1 * n, 0.1);
        }
        crd_unit_destroy(u);
        crd_context_destroy(ctx);
    }
    unsetenv("XDG_CACHE_HOME");
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    check_int(system(command), 0);
}

// The unit that did it is named, wherever it stands in its row.
static void a_crash_in_a_row_names_the_unit(void** state)
{
    (void)state;
    static const int modes[] = {7, 12};
    static const char* const sentences[] = {"unit 'u5' at t = 0.5: crashed in",
                                            "unit 'u5' at t = 0.5: ended its process with exit()"};
    const outcome here = run_row("none", "hold", 3, 1);
    for (int k = 0; k < 2; k++) {
        const outcome there = run_row("together", "hold", modes[k], 1);
        check_status(there.status, CRD_E_CRASH);
        check_contains(there.sentence, sentences[k]);
        check_text(there.text, here.text); // the record ends where it does without a worker
        free(there.text);
    }
    free(here.text);
}

static void a_stand_in_takes_over_from_a_worker_that_ended(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec model = fmu_spec(misdeed, "none");
    crd_unit_spec spec = fmu_spec(misdeed, "process");
    spec.standby.model = &model;
    spec.standby.rejoin = false;
    setenv("CARDAN_TEST_MISDEED", "segv:DoStep:f", 1);
    crd_unit* u = make(ctx, &spec);
    bound in = bind_names(u, "u"), out = bind_names(u, "y");
    start(u, 0, 1);
    for (int n = 0; n < 10; n++) {
        in.v.real[0] = 1;
        set(&in);
        step(u, 0.1 * n, 0.1);
        get(&out);
        check_near(out.v.real[0], 0.1 * (n + 1), 1e-12); // both say the same
    }
    crd_standby_stats stats;
    check(crd_unit_get_standby(u, &stats));
    check_int(stats.takeovers, 1);
    unsetenv("CARDAN_TEST_MISDEED");
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

// ---- processes ---------------------------------------------------------------------------------

static void no_worker_outlives_its_master(void** state)
{
    (void)state;
    int pipes[2];
    check(pipe(pipes) == 0);
    const pid_t master = fork();
    if (master == 0) {
        crd_context* ctx = crd_context_create(NULL);
        const crd_unit_spec spec = fmu_spec(misdeed, "process");
        crd_unit* u = NULL;
        if (crd_unit_create(ctx, &spec, &u) < 0 || crd_unit_instantiate(u) < 0) { _exit(1); }
        const pid_t worker = worker_of(u);
        if (write(pipes[1], &worker, sizeof worker) < 0) { _exit(1); }
        for (;;) {
            pause();
        }
    }
    pid_t worker = 0;
    close(pipes[1]);
    check(read(pipes[0], &worker, sizeof worker) == sizeof worker);
    close(pipes[0]);
    check(kill(worker, 0) == 0);
    kill(master, SIGKILL);
    check(waitpid(master, NULL, 0) == master);
    check(ends(worker));
}

static void destroy_ends_the_worker(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = fmu_spec(misdeed, "process");
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    const pid_t worker = worker_of(u);
    crd_unit_destroy(u);
    check(kill(worker, 0) != 0);
    crd_context_destroy(ctx);
}

static void a_missing_executable_is_said(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = fmu_spec(misdeed, "process");
    crd_unit* u = make(ctx, &spec);
    setenv("CARDAN_WORKER", "/nowhere/cardan-worker", 1);
    check_status(crd_unit_instantiate(u), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(u->ctx), "CARDAN_WORKER is '/nowhere/cardan-worker'");
    unsetenv("CARDAN_WORKER");
    start(u, 0, 1); // once it is there
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void a_unit_can_be_instantiated_again_after_a_crash(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    const crd_unit_spec spec = fmu_spec(misdeed, "process");
    crd_unit* u = make(ctx, &spec);
    bound out = bind_names(u, "steps");
    for (int round = 0; round < 3; round++) {
        start(u, 0, 1);
        step(u, 0, 0.1);
        step(u, 0.1, 0.1);
        get(&out);
        check_int(out.v.integer[0], 2);
        kill(worker_of(u), SIGKILL);
        check_status(u->ops->step(u, 0.2, 0.1), CRD_E_CRASH);
    }
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void a_unit_goes_on_in_another_worker_when_it_may(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    crd_unit_spec spec = fmu_spec(misdeed, "process");
    spec.restart = 2;
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 1);
    bound in = bind_names(u, "u"), out = bind_names(u, "y steps");
    for (int n = 0; n < 6; n++) {
        if (n == 2 || n == 4) { kill(worker_of(u), SIGKILL); }
        in.v.real[0] = 1 + n;
        set(&in);
        step(u, n * 0.1, 0.1);
        get(&out);
        check_int(u->remarks, n < 2 ? 0 : n < 4 ? 1 : 2);
        check_int(out.v.integer[0], n < 2 ? n + 1 : n < 4 ? n - 1 : n - 3);
    }
    check_near(out.v.real[0], 0.1 * (5 + 6), 1e-12); // since the second restart
    check_contains(u->remark, "restarted from its start values (2 of 2): it");
    kill(worker_of(u), SIGKILL);
    check_status(u->ops->step(u, 0.6, 0.1), CRD_E_CRASH);
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
}

static void steps_do_not_allocate(void** state)
{
    (void)state;
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_unit_spec spec = fmu_spec(misdeed, "process");
    crd_unit* u = make(ctx, &spec);
    start(u, 0, 10);
    bound in = bind_names(u, "u"), out = bind_names(u, "y");
    for (int n = 0; n < 100; n++) {
        if (n == 3) { a.allocations = 0; }
        set(&in);
        step(u, 0.1 * n, 0.1);
        get(&out);
    }
    check_int(a.allocations, 0);
    unbind(&in);
    unbind(&out);
    crd_unit_destroy(u);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_gives_the_same_bits),
        cmocka_unit_test(a_restart_gives_the_same_bits),
        cmocka_unit_test(a_state_is_lost_with_its_worker),
        cmocka_unit_test(texts_pass),
        cmocka_unit_test(misdeeds_are_told_with_the_call),
        cmocka_unit_test(who_needs_a_tool_is_told_the_option),
        cmocka_unit_test(files_of_others_are_out_of_reach),
        cmocka_unit_test(who_hangs_is_ended_after_its_limit),
        cmocka_unit_test(a_crash_in_a_run_leaves_the_record_whole),
        cmocka_unit_test(rows_give_the_same_bits_in_any_grouping),
        cmocka_unit_test(what_a_worker_says_is_not_trusted),
        cmocka_unit_test(long_steps_get_workers_of_their_own),
        cmocka_unit_test(the_cost_of_a_step_is_remembered),
        cmocka_unit_test(a_crash_in_a_row_names_the_unit),
        cmocka_unit_test(a_stand_in_takes_over_from_a_worker_that_ended),
        cmocka_unit_test(an_interrupted_run_does_not_wait_for_who_hangs),
        cmocka_unit_test(an_error_of_what_was_set_comes_with_the_step),
        cmocka_unit_test(units_of_a_group_share_a_worker_and_its_end),
        cmocka_unit_test(thousands_of_units_share_a_worker),
        cmocka_unit_test(many_log_lines_arrive),
        cmocka_unit_test(no_worker_outlives_its_master),
        cmocka_unit_test(destroy_ends_the_worker),
        cmocka_unit_test(a_missing_executable_is_said),
        cmocka_unit_test(a_unit_can_be_instantiated_again_after_a_crash),
        cmocka_unit_test(a_unit_goes_on_in_another_worker_when_it_may),
        cmocka_unit_test(steps_do_not_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
