// Faults at inputs and new coupling elements while the run goes, against numbers worked out by hand
// and against the library beside it.
#include "live_help.h"

#include "master/live/live.h"

#define STEP 0.1

// clock -> desk: the input is the time at the beginning of the step.
static void start(watched* w)
{
    *w = (watched){.ctx = crd_context_create(NULL)};
    w->s = new_system(w->ctx, STEP, 1000);
    const int c = add_unit(w->s, "c", &clock_model, 0), d = add_unit(w->s, "d", &desk_model, 0);
    wire(w->s, c, "y", d, "u");
    watch(w);
}

static double told(watched* w, const char* name)
{
    advance(w, 1);
    return value(w->m, name);
}

// What the input gets in the next steps, from the time at hand on.
static void check_told(watched* w, const char* name, const double* want, int count)
{
    for (int i = 0; i < count; i++) {
        const double got = told(w, name);
        if (!(fabs(got - want[i]) <= 1e-12)) {
            fail_msg("step %d: %s = %.17g, expected %.17g", i, name, got, want[i]);
        }
    }
}

// ---- values ------------------------------------------------------------------------------------

static void a_fault_lasts_as_long_as_it_should(void** state)
{
    (void)state;
    static const struct {
        crdi_fault_kind kind;
        double value, told[5];
    } cases[] = {
        {CRDI_FAULT_HOLD, NAN, {0.2, 0.2, 0.2, 0.6, 0.7}},
        {CRDI_FAULT_VALUE, 7, {7, 7, 7, 0.6, 0.7}},
        {CRDI_FAULT_OFFSET, 1.5, {1.8, 1.9, 2.0, 0.6, 0.7}},
        {CRDI_FAULT_GAIN, -2, {-0.6, -0.8, -1.0, 0.6, 0.7}},
        {CRDI_FAULT_NOISE, 0, {0.3, 0.4, 0.5, 0.6, 0.7}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        watched w;
        start(&w);
        check_told(&w, "d.u", (double[]){0, 0.1, 0.2}, 3);
        fault(&w, "d.u", cases[i].kind, cases[i].value, 0.3);
        check_told(&w, "d.u", cases[i].told, 1);
        check_int(link_now(&w, "d.u")->fault, cases[i].kind);
        check_near(link_now(&w, "d.u")->fault_left, 0.2, 1e-12);
        check_near(link_now(&w, "d.u")->value, cases[i].told[0], 1e-12);
        check_told(&w, "d.u", cases[i].told + 1, 4);
        check_int(link_now(&w, "d.u")->fault, CRDI_FAULT_NONE);
        check_near(link_now(&w, "d.u")->value, 0.7, 1e-12);
        check_int(w.l->disturbed, 0);
        stop_watching(&w);
    }
}

static void a_fault_without_end_is_cleared(void** state)
{
    (void)state;
    watched w;
    start(&w);
    fault(&w, "d.u", CRDI_FAULT_OFFSET, 10, NAN);
    check_told(&w, "d.u", (double[]){10, 10.1, 10.2}, 3);
    check(isnan(link_now(&w, "d.u")->fault_left));
    order(&w, (crdi_live_command){.action = CRDI_LIVE_CLEAR, .name = "d.u"});
    check_told(&w, "d.u", (double[]){0.3, 0.4}, 2);
    fault(&w, "d.u", CRDI_FAULT_VALUE, 5, NAN);
    fault(&w, "d.u", CRDI_FAULT_OFFSET, 1, NAN); // takes the place of the other
    check_told(&w, "d.u", (double[]){1.5}, 1);
    fault(&w, "d.u", CRDI_FAULT_HOLD, 0, 0.2); // at what it is, with the fault
    check_told(&w, "d.u", (double[]){1.5, 1.5, 0.8}, 3);
    fault(&w, "d.u", CRDI_FAULT_GAIN, 0, NAN);
    order(&w, (crdi_live_command){.action = CRDI_LIVE_CLEAR, .name = ""});
    check_told(&w, "d.u", (double[]){0.9}, 1);
    hear(&w, CRD_EVENT_START, "start: 2 units, step 0.1 s");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: fault at d.u: offset 10 until it is cleared");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: fault at d.u cleared");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: fault at d.u: value 5 until it is cleared");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: fault at d.u: offset 1 until it is cleared");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: fault at d.u: hold for 0.2 s");
    hear(&w, CRD_EVENT_MARK, "fault at d.u is over");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: fault at d.u: gain 0 until it is cleared");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: all faults cleared");
    stop_watching(&w);
}

static void noise_is_normal_and_comes_again(void** state)
{
    (void)state;
    enum { N = 4000 };
    static double x[2][N];
    for (int run = 0; run < 2; run++) {
        watched w;
        start(&w);
        fault(&w, "d.u", CRDI_FAULT_NOISE, 2, NAN);
        for (int i = 0; i < N; i++) {
            x[run][i] = told(&w, "d.u") - i * STEP;
            while (next_row(&w)) {}
        }
        stop_watching(&w);
    }
    double sum = 0, squares = 0, fourth = 0;
    int beyond = 0;
    for (int i = 0; i < N; i++) {
        check_near(x[0][i], x[1][i], 0);
        sum += x[0][i];
        squares += x[0][i] * x[0][i];
        fourth += pow(x[0][i] / 2, 4);
        beyond += fabs(x[0][i]) > 2;
    }
    check_near(sum / N, 0, 4 * 2 / sqrt(N));
    check_near(sqrt(squares / N), 2, 0.1);
    check_near(fourth / N, 3, 0.5);
    check_near((double)beyond / N, 0.317, 0.03); // outside of one standard deviation
}

// A value that its source does not write anew in each tick is not disturbed twice.
static void a_slower_unit_meets_a_fault_once(void** state)
{
    (void)state;
    watched w = {.ctx = crd_context_create(NULL)};
    w.s = new_system(w.ctx, STEP, 1000);
    const int c = add_unit(w.s, "c", &clock_model, 0);
    const int d = add_unit(w.s, "d", &desk_model, 3 * STEP);
    wire(w.s, c, "y", d, "u");
    watch(&w);
    advance(&w, 3);
    fault(&w, "d.u", CRDI_FAULT_GAIN, 2, 0.6);
    advance(&w, 3);
    check_near(value(w.m, "d.u"), 2 * 0.3, 1e-12);
    advance(&w, 3);
    check_near(value(w.m, "d.u"), 2 * 0.6, 1e-12);
    advance(&w, 3);
    check_near(value(w.m, "d.u"), 0.9, 1e-12);
    advance(&w, 1); // in the middle of a step of the unit
    fault(&w, "d.u", CRDI_FAULT_OFFSET, 1, NAN);
    advance(&w, 2);
    check_near(value(w.m, "d.u"), 2.2, 1e-12);
    advance(&w, 3);
    check_near(value(w.m, "d.u"), 2.5, 1e-12);
    order(&w, (crdi_live_command){.action = CRDI_LIVE_CLEAR, .name = "d.u"});
    advance(&w, 3);
    check_near(value(w.m, "d.u"), 1.8, 1e-12);
    stop_watching(&w);
}

// x' = u: what the unit integrates shows value and slope of its input.
static void a_fault_changes_slopes_with_the_value(void** state)
{
    (void)state;
    static const struct {
        crdi_fault_kind kind;
        double value;
    } cases[] = {
        {CRDI_FAULT_HOLD, 0}, {CRDI_FAULT_VALUE, 2}, {CRDI_FAULT_OFFSET, 2}, {CRDI_FAULT_GAIN, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        watched w = {.ctx = crd_context_create(NULL)};
        w.s = new_system(w.ctx, STEP, 1000);
        const int c = add_unit(w.s, "c", &clock_model, 0), e = add_unit(w.s, "e", &exact_model, 0);
        wire(w.s, c, "y", e, "u")->predict = CRD_PREDICTION_LINEAR;
        watch(&w);
        advance(&w, 10); // t = 1, u = t and its slope 1
        const double x = value(w.m, "e.x"), t = crd_master_time(w.m);
        const double clean = STEP * t + STEP * STEP / 2;
        fault(&w, "e.u", cases[i].kind, cases[i].value, STEP);
        advance(&w, 1);
        const double grown = value(w.m, "e.x") - x;
        const double want = cases[i].kind == CRDI_FAULT_HOLD     ? STEP * (t - STEP)
                            : cases[i].kind == CRDI_FAULT_VALUE  ? STEP * cases[i].value
                            : cases[i].kind == CRDI_FAULT_OFFSET ? clean + STEP * cases[i].value
                                                                 : clean * cases[i].value;
        check_near(grown, want, 1e-12);
        advance(&w, 1);
        check_near(value(w.m, "e.x") - x - grown, STEP * (t + STEP) + STEP * STEP / 2, 1e-12);
        stop_watching(&w);
    }
}

// Outputs that are evaluated again with fresh inputs, predicted ones, repeated and variable steps,
// threads, and the short way of a step all pass the same door.
static void check_every_way(crd_prediction predict, bool iterate, bool control, int threads,
                            bool statistics)
{
    watched w = {.ctx = crd_context_create(NULL)};
    w.s = new_system(w.ctx, STEP, 100);
    w.s->run.threads = threads;
    w.s->run.iterate.on = iterate;
    w.s->run.control.on = control;
    w.s->run.control.tolerance = 1e-3;
    const int c = add_unit(w.s, "c", &clock_model, 0), g = add_unit(w.s, "g", &gain_model, 0);
    const int e = add_unit(w.s, "e", &exact_model, 0), d = add_unit(w.s, "d", &desk_model, 0);
    wire(w.s, c, "y", g, "u")->predict = predict;
    wire(w.s, g, "y", e, "u")->predict = predict;
    wire(w.s, e, "y", d, "u")->predict = predict;
    w.clock = hand_made(&w.hand);
    crd_master_options o = crd_master_defaults();
    o.clock = &w.clock;
    o.no_statistics = !statistics;
    const crdi_live_options all = all_of_it();
    check_run(crd_master_create(w.ctx, w.s, &o, &w.m), w.ctx);
    check_run(crdi_live_create(w.ctx, w.m, &all, &w.l), w.ctx);
    check_run(crd_master_initialize(w.m), w.ctx);
    advance(&w, 40);
    fault(&w, "g.u", CRDI_FAULT_VALUE, 1000, NAN);
    for (int i = 0; i < 5; i++) {
        advance(&w, 1);
        check_near(value(w.m, "g.u"), 1000, 0);
        check_near(value(w.m, "g.y"), 1000, 0);
    }
    order(&w, (crdi_live_command){.action = CRDI_LIVE_CLEAR, .name = ""});
    advance(&w, 2);
    check_near(value(w.m, "g.y"), crd_master_time(w.m), 2 * STEP);
    stop_watching(&w);
}

static void every_way_into_a_unit_is_met(void** state)
{
    (void)state;
    check_every_way(CRD_PREDICTION_HOLD, false, false, 1, true);
    check_every_way(CRD_PREDICTION_HOLD, false, false, 1, false); // the short way
    check_every_way(CRD_PREDICTION_HOLD, false, false, 3, true);
    check_every_way(CRD_PREDICTION_AUTO, false, false, 1, true);
    check_every_way(CRD_PREDICTION_QUADRATIC, false, false, 1, true);
    check_every_way(CRD_PREDICTION_AUTO, true, false, 1, true);
    check_every_way(CRD_PREDICTION_AUTO, false, true, 1, true);
}

static void faults_at_one_unit_do_not_mix(void** state)
{
    (void)state;
    watched w = {.ctx = crd_context_create(NULL)};
    w.s = new_system(w.ctx, STEP, 1000);
    const int c = add_unit(w.s, "c", &clock_model, 0), d = add_unit(w.s, "d", &desk_model, 0);
    wire(w.s, c, "y", d, "u");
    wire(w.s, c, "y", d, "force");
    watch(&w);
    fault(&w, "d.u", CRDI_FAULT_OFFSET, 1, NAN);
    fault(&w, "d.force", CRDI_FAULT_OFFSET, 2, 0.2);
    advance(&w, 1);
    check_near(value(w.m, "d.u"), 1, 1e-12);
    check_near(value(w.m, "d.force"), 2, 1e-12);
    order(&w, (crdi_live_command){.action = CRDI_LIVE_CLEAR, .name = "d.u"});
    advance(&w, 1);
    check_near(value(w.m, "d.u"), 0.1, 1e-12);
    check_near(value(w.m, "d.force"), 2.1, 1e-12);
    fault(&w, "d.u", CRDI_FAULT_GAIN, 3, NAN);
    advance(&w, 1); // the other is over
    check_near(value(w.m, "d.u"), 0.6, 1e-12);
    check_near(value(w.m, "d.force"), 0.2, 1e-12);
    stop_watching(&w);
}

static void values_that_do_not_pass_here_have_no_faults(void** state)
{
    (void)state;
    watched w = {.ctx = crd_context_create(NULL)};
    w.s = new_system(w.ctx, STEP, 1000);
    const int c = add_unit(w.s, "c", &clock_model, 0), d = add_unit(w.s, "d", &desk_model, 0);
    wire(w.s, c, "y", d, "u");
    w.clock = hand_made(&w.hand);
    crd_master_options o = crd_master_defaults();
    o.clock = &w.clock;
    check_run(crd_master_create(w.ctx, w.s, &o, &w.m), w.ctx);
    check_run(crdi_live_create(w.ctx, w.m, NULL, &w.l), w.ctx);
    w.m->plan->connections[0].routed = true;
    check_run(crd_master_initialize(w.m), w.ctx);
    check(!crdi_live_get_info(w.l)->links[0].can_fault);
    refused(
        &w,
        (crdi_live_command){
            .action = CRDI_LIVE_FAULT, .name = "d.u", .fault = CRDI_FAULT_HOLD, .duration = NAN},
        CRD_E_UNSUPPORTED, "go from slave to slave");
    stop_watching(&w);
}

// ---- samples of a coupling ---------------------------------------------------------------------

static const crd_channel_spec quiet = {.step = NAN, .burst = 1, .seed = 1};

static void start_coupled(watched* w, const crd_coupling_spec* coupling, double target_step)
{
    *w = (watched){.ctx = crd_context_create(NULL)};
    w->s = new_system(w->ctx, STEP, 1000);
    const int c = add_unit(w->s, "c", &clock_model, 0);
    const int d = add_unit(w->s, "d", &desk_model, target_step);
    wire(w->s, c, "y", d, "u")->coupling = coupling;
    watch(w);
}

static void a_fault_behind_a_coupling_is_met_once(void** state)
{
    (void)state;
    const crd_coupling_spec zoh = {
        .element = "{\"algorithm\": \"zoh\"}", .place = {"x", 1}, .channel = quiet};
    watched w;
    start_coupled(&w, &zoh, 2 * STEP);
    advance(&w, 4);
    fault(&w, "d.u", CRDI_FAULT_OFFSET, 1, 0.4);
    advance(&w, 2);
    check_near(value(w.m, "d.u"), 1.4, 1e-12);
    advance(&w, 2);
    check_near(value(w.m, "d.u"), 1.6, 1e-12);
    advance(&w, 2);
    check_near(value(w.m, "d.u"), 0.8, 1e-12);
    stop_watching(&w);
}

static void samples_that_are_dropped_do_not_arrive(void** state)
{
    (void)state;
    const crd_coupling_spec zoh = {
        .element = "{\"algorithm\": \"zoh\"}", .place = {"x", 1}, .channel = quiet};
    watched w;
    start_coupled(&w, &zoh, 0);
    check_told(&w, "d.u", (double[]){0, 0.1, 0.2}, 3);
    fault(&w, "d.u", CRDI_FAULT_DROP, 1, 0.3);
    // The sample of 0.3 is there already; those of 0.4, 0.5 and 0.6 are lost.
    check_told(&w, "d.u", (double[]){0.3, 0.3, 0.3, 0.3, 0.7, 0.8}, 6);
    check_int(link_now(&w, "d.u")->lost, 3);
    check_int(link_now(&w, "d.u")->sent, 10);
    check_int(crd_master_get_report(w.m)->couplings[0].lost, 3);
    fault(&w, "d.u", CRDI_FAULT_DROP, 0.25, NAN);
    advance(&w, 1000);
    check_near((double)link_now(&w, "d.u")->lost, 253, 60);
    check_int(link_now(&w, "d.u")->fault, CRDI_FAULT_DROP);
    stop_watching(&w);
}

static void samples_that_are_delayed_come_later(void** state)
{
    (void)state;
    crd_coupling_spec zoh = {
        .element = "{\"algorithm\": \"zoh\"}", .place = {"x", 1}, .channel = quiet};
    for (int channel = 0; channel < 2; channel++) {
        zoh.has_channel = channel;
        zoh.channel.delay = 0.1; // adds up
        const double late = channel ? 0.1 : 0;
        watched w;
        start_coupled(&w, &zoh, 0);
        advance(&w, 10);
        check_near(value(w.m, "d.u"), 0.9 - late, 1e-12);
        fault(&w, "d.u", CRDI_FAULT_DELAY, 0.2, 1);
        // From the sample of 1.1 on: it comes at 1.3.
        const double want[] = {1.0 - late,          channel ? 1.0 : 1.0, channel ? 1.0 : 1.0,
                               channel ? 1.0 : 1.1, channel ? 1.1 : 1.2, channel ? 1.2 : 1.3};
        check_told(&w, "d.u", want, 6);
        check_int(link_now(&w, "d.u")->k, channel ? 3 : 2);
        check_near(link_now(&w, "d.u")->age, channel ? 0.3 : 0.2, 1e-9);
        advance(&w, 10);
        check_near(told(&w, "d.u"), crd_master_time(w.m) - STEP - late, 1e-9);
        check_int(link_now(&w, "d.u")->lost, 0);
        refused(&w,
                (crdi_live_command){.action = CRDI_LIVE_FAULT,
                                    .name = "d.u",
                                    .fault = CRDI_FAULT_DELAY,
                                    .value = 1.5,
                                    .duration = NAN},
                CRD_E_RANGE, "value = 1.5 s, expected 0 to 1 s");
        stop_watching(&w);
    }
}

static void there_is_room_for_a_second_of_delay(void** state)
{
    (void)state;
    crd_coupling_spec zoh = {
        .element = "{\"algorithm\": \"zoh\"}", .place = {"x", 1}, .channel = quiet};
    zoh.has_channel = true;
    zoh.channel.duplicate = 1;
    zoh.channel.delay = 0.5;
    watched w;
    start_coupled(&w, &zoh, 0);
    advance(&w, 20);
    fault(&w, "d.u", CRDI_FAULT_DELAY, 1, NAN);
    advance(&w, 100);
    check_near(told(&w, "d.u"), crd_master_time(w.m) - STEP - 1.5, 1e-9); // none found no room
    check_int(link_now(&w, "d.u")->duplicates, link_now(&w, "d.u")->sent - 15);
    stop_watching(&w);
}

// ---- another element ---------------------------------------------------------------------------

typedef struct {
    double y;
} wave;

static void wave_outputs(void* self, double t)
{
    ((wave*)self)->y = 3 + sin(3 * t) + 0.3 * sin(11 * t + 1);
}

static crd_model_status wave_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    wave_outputs(self, t);
    return CRD_MODEL_OK;
}

static crd_model_status wave_step(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    (void)self;
    (void)host;
    *reached = t + h;
    return CRD_MODEL_OK;
}

static const crd_model_variable wave_variables[] = {
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_CONTINUOUS,
     .offset = offsetof(wave, y),
     .depends = ""},
};
static const crd_model wave_model = {.name = "wave",
                                     .description = "sines",
                                     .size = sizeof(wave),
                                     .variables = wave_variables,
                                     .variable_count = 1,
                                     .default_step = 0.01,
                                     .default_stop = 1,
                                     .initialize = wave_initialize,
                                     .outputs = wave_outputs,
                                     .step = wave_step};

#define DT 0.01
enum { K = 6, AT = 150 };

static crd_coupling* library_element(crd_context* ctx, const char* text, crd_element** e)
{
    crd_coupling_options opt;
    crd_coupling* c = NULL;
    check_run(text[0] == '{' ? crd_element_parse(ctx, text, strlen(text), "library", 1, e)
                             : crd_element_of_name(ctx, text, e),
              ctx);
    check_ok(crd_element_options(*e, DT, &opt));
    check_ok(crd_coupling_create(ctx, &opt, &c));
    return c;
}

// Both elements in the library beside the run; the new one gets the samples that the run keeps.
static void check_exchange(const char* before, const char* after, const char* label)
{
    watched w = {.ctx = crd_context_create(NULL)};
    char first[64];
    snprintf(first, sizeof first, "{\"algorithm\": \"%s\"}", before);
    crd_coupling_spec c = {.element = first, .place = {"x", 1}, .channel = quiet, .record = true};
    c.has_channel = true;
    c.channel.delay = K * DT;
    w.s = new_system(w.ctx, DT, 100);
    const int a = add_unit(w.s, "w", &wave_model, 0), g = add_unit(w.s, "g", &gain_model, 0);
    wire(w.s, a, "y", g, "u")->coupling = &c;
    watch(&w);
    crd_element *e_old = NULL, *e_new = NULL;
    crd_coupling* old = library_element(w.ctx, first, &e_old);
    crd_coupling* new = library_element(w.ctx, after, &e_new);
    double y[400], fade = 0, last = NAN, clean = NAN, clean_last = NAN;
    for (int n = 0; n < 300; n++) {
        const double t = n * DT;
        y[n] = value(w.m, "w.y");
        if (n >= K) {
            crd_coupling_push(old, y[n - K], (n - K) * DT, n - K);
            if (n > AT) { crd_coupling_push(new, y[n - K], (n - K) * DT, n - K); }
        }
        double want = n < K || n == 0 ? y[0] : crd_coupling_eval(old, t);
        if (n == AT) { // the input of this step is told already
            for (int i = n - K - CRDI_COUPLED_PAST + 1; i <= n - K; i++) {
                crd_coupling_push(new, y[i], i * DT, i);
            }
            clean = crd_coupling_eval(new, t);
            fade = want - clean;
            order(&w,
                  (crdi_live_command){.action = CRDI_LIVE_COUPLE, .name = "g.u", .text = after});
        }
        if (n > AT) {
            clean = crd_coupling_eval(new, t);
            const double rest = 1 - (double)(n - AT) / (2 + K);
            want = rest > 1e-9 ? clean + fade * rest : clean;
        }
        advance(&w, 1);
        const double got = value(w.m, "g.u");
        if (!(fabs(got - want) <= (n > AT && n <= AT + 2 + K ? 1e-12 : 0))) {
            fail_msg("%s -> %s, step %d: %.17g, expected %.17g", before, after, n, got, want);
        }
        // The input moves as the new estimate does, and by the share of the difference.
        if (n > AT) { check_near(got - last, clean - clean_last, fabs(fade) / (2 + K) + 1e-12); }
        last = got;
        clean_last = clean;
    }
    check(fabs(fade) > 1e-3);
    check_text(link_now(&w, "g.u")->algorithm, e_new->label);
    const crd_tap_report* r = crd_master_get_report(w.m)->couplings[0].taps;
    check_text(r->label, label);
    check(r->scored > 300 - AT - 2 * K && r->scored <= 300 - AT);
    check_int(r->counts.samples, 300 - AT + CRDI_COUPLED_PAST);
    crd_coupling_destroy(old);
    crd_coupling_destroy(new);
    crd_element_destroy(e_old);
    crd_element_destroy(e_new);
    stop_watching(&w);
}

static void a_new_element_takes_over_without_a_step(void** state)
{
    (void)state;
    check_exchange("zoh", "eros", "eros, from t = 1.5 s");
    check_exchange("foh", "{\"algorithm\": \"wiener\", \"taps\": 9}", "wiener, from t = 1.5 s");
    check_exchange("eros", "zoh", "zoh, from t = 1.5 s");
    check_exchange("eros", "{\"algorithm\": \"auto\", \"name\": \"mine\"}", "mine, from t = 1.5 s");
}

static void elements_can_be_exchanged_again_and_again(void** state)
{
    (void)state;
    static const char* const names[] = {"foh", "eros", "zoh", "auto"};
    crd_coupling_spec c = {
        .element = "{\"algorithm\": \"zoh\"}", .place = {"x", 1}, .channel = quiet, .record = true};
    watched w;
    start_coupled(&w, &c, 0);
    for (int i = 0; i < 100; i++) {
        order(&w,
              (crdi_live_command){.action = CRDI_LIVE_COUPLE, .name = "d.u", .text = names[i % 4]});
        if (i % 3) { advance(&w, i % 5); } // also several in one step, and some that nobody obeys
        check_near(value(w.m, "d.u"), crd_master_time(w.m) - STEP, 0.5);
        (void)crdi_live_get_status(w.l);
        if (i == 3) {
            hear(&w, CRD_EVENT_START, "start: 2 units, step 0.1 s");
            hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: coupling of c.y -> d.u: foh (was zoh)");
            hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: coupling of c.y -> d.u: eros (was foh)");
        }
    }
    stop_watching(&w);
}

static void elements_that_do_not_fit_are_refused(void** state)
{
    (void)state;
    static const struct {
        const char *element, *text;
        crd_status st;
    } cases[] = {
        {"erros", "eros", CRD_E_NOT_FOUND},
        {"{\"algorithm\": \"foh\", \"step\": \"1 s\"}", "samples come every 0.1 s", CRD_E_RANGE},
        {"{\"algorithm\": \"foh\", \"signals\": 2}", "2 signals", CRD_E_RANGE},
        {"{\"algorithm\": \"foh\", \"tapps\": 2}", "tapps", CRD_E_FORMAT},
        {"{", "", CRD_E_FORMAT},
        {"", "", CRD_E_NOT_FOUND},
    };
    crd_coupling_spec c = {
        .element = "{\"algorithm\": \"zoh\"}", .place = {"x", 1}, .channel = quiet};
    watched w;
    start_coupled(&w, &c, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refused(&w,
                (crdi_live_command){
                    .action = CRDI_LIVE_COUPLE, .name = "d.u", .text = cases[i].element},
                cases[i].st, cases[i].text);
    }
    stop_watching(&w);
}

static void faults_have_names(void** state)
{
    (void)state;
    check_text(crdi_fault_name(CRDI_FAULT_HOLD), "hold");
    check_text(crdi_fault_name(CRDI_FAULT_DELAY), "delay");
    check_text(crdi_fault_name(CRDI_FAULT_KINDS), "");
    for (int i = 0; i < CRDI_FAULT_KINDS; i++) {
        check(crdi_fault_name((crdi_fault_kind)i)[0] != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_have_names),
        cmocka_unit_test(a_fault_lasts_as_long_as_it_should),
        cmocka_unit_test(a_fault_without_end_is_cleared),
        cmocka_unit_test(noise_is_normal_and_comes_again),
        cmocka_unit_test(a_slower_unit_meets_a_fault_once),
        cmocka_unit_test(a_fault_changes_slopes_with_the_value),
        cmocka_unit_test(every_way_into_a_unit_is_met),
        cmocka_unit_test(faults_at_one_unit_do_not_mix),
        cmocka_unit_test(values_that_do_not_pass_here_have_no_faults),
        cmocka_unit_test(a_fault_behind_a_coupling_is_met_once),
        cmocka_unit_test(samples_that_are_dropped_do_not_arrive),
        cmocka_unit_test(samples_that_are_delayed_come_later),
        cmocka_unit_test(there_is_room_for_a_second_of_delay),
        cmocka_unit_test(a_new_element_takes_over_without_a_step),
        cmocka_unit_test(elements_can_be_exchanged_again_and_again),
        cmocka_unit_test(elements_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
