// The variable step: as long as defects allow, on events, rows and the end to the last bit, taken
// back where it was too long.
#include "flows.h"

// ---- models ------------------------------------------------------------------------------------

// y = x1 of x1' = x2, x2' = u - 4 x1, exactly for a held input; derivatives out.
typedef struct {
    double u, y, v, x;
    double dy[CRD_MODEL_MAX_ORDER];
} mass;

static void mass_outputs(void* self, double t)
{
    mass* m = self;
    (void)t;
    m->y = m->x;
    m->dy[0] = m->v;
    m->dy[1] = m->u - 4 * m->x;
}

static crd_model_status mass_start(void* self, const crd_model_host* host, double t)
{
    mass* m = self;
    (void)host;
    m->x = 1;
    m->v = 0;
    mass_outputs(self, t);
    return CRD_MODEL_OK;
}

static crd_model_status mass_step(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    mass* m = self;
    (void)host;
    const double c = cos(2 * h), s = sin(2 * h), e = m->x - m->u / 4;
    m->x = m->u / 4 + e * c + m->v / 2 * s;
    m->v = m->v * c - 2 * e * s;
    *reached = t + h;
    return CRD_MODEL_OK;
}

static const crd_model_variable mass_variables[] = {
    REAL(mass, u, CRD_INPUT, 0),
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(mass, y),
     .depends = "",
     .derivatives = offsetof(mass, dy)},
};
static const crd_model mass_model = {.name = "mass",
                                     .description = "on a spring",
                                     .size = sizeof(mass),
                                     .variables = mass_variables,
                                     .variable_count = 2,
                                     .default_step = 0.1,
                                     .default_stop = 1,
                                     .max_output_derivative = 2,
                                     .initialize = mass_start,
                                     .outputs = mass_outputs,
                                     .step = mass_step};
static const crd_model rigid_mass_model = {.name = "rigid_mass",
                                           .description = "on a spring",
                                           .size = sizeof(mass),
                                           .variables = mass_variables,
                                           .variable_count = 2,
                                           .default_step = 0.02,
                                           .default_stop = 1,
                                           .max_output_derivative = 2,
                                           .fixed_step = true,
                                           .initialize = mass_start,
                                           .outputs = mass_outputs,
                                           .step = mass_step};

// 0 before 0.3 s, then 1: says so beforehand, or not.
typedef struct {
    double y, t;
    bool known, beyond;
} jumper;

static const double JUMP = 0.3;

static void jumper_outputs(void* self, double t)
{
    jumper* j = self;
    (void)t;
    j->y = j->beyond;
}

static crd_model_status jumper_start(void* self, const crd_model_host* host, double t)
{
    (void)host;
    ((jumper*)self)->t = t;
    return CRD_MODEL_OK;
}

static crd_model_status jumper_step(void* self, const crd_model_host* host, double t, double h,
                                    double* reached)
{
    jumper* j = self;
    (void)host;
    const bool through = t < JUMP && t + h >= JUMP - 1e-12;
    *reached = j->t = through ? fmax(JUMP, t) : t + h;
    return through ? CRD_MODEL_EVENT : CRD_MODEL_OK;
}

static crd_model_status jumper_event(void* self, const crd_model_host* host, double t, double* next)
{
    jumper* j = self;
    (void)host;
    j->beyond = t >= JUMP;
    if (!j->beyond && j->known) { *next = JUMP; }
    return CRD_MODEL_OK;
}

static const crd_model_variable jumper_variables[] = {
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .offset = offsetof(jumper, y),
     .depends = ""},
    {.name = "known",
     .type = CRD_BOOLEAN,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(jumper, known),
     .start = 1},
};
static const crd_model jumper_model = {.name = "jumper",
                                       .description = "jumps",
                                       .size = sizeof(jumper),
                                       .variables = jumper_variables,
                                       .variable_count = 2,
                                       .default_step = 0.1,
                                       .default_stop = 1,
                                       .has_events = true,
                                       .initialize = jumper_start,
                                       .outputs = jumper_outputs,
                                       .step = jumper_step,
                                       .event = jumper_event};

static crd_system* describe_sine(crd_context* ctx, crd_prediction predict, double stop)
{
    crd_system* s = new_system(ctx, 0.1, stop);
    const int a = add_unit(s, "s", &curve_models[2], 0);
    const int b = add_unit(s, "p", &listener_models[2], 0);
    set_kind(s, a, SINE);
    wire_as(s, a, b, predict);
    use_control(s, 1e-4);
    return s;
}

// Two masses, each pulled by the other: nothing damps them.
static crd_system* describe_masses(crd_context* ctx, double stop)
{
    crd_system* s = new_system(ctx, 0.1, stop);
    const int a = add_unit(s, "a", &mass_model, 0), b = add_unit(s, "b", &mass_model, 0);
    wire_as(s, a, b, CRD_PREDICTION_HERMITE);
    wire_as(s, b, a, CRD_PREDICTION_HERMITE)->gain = -0.5;
    s->connections[1].has_transformation = true;
    use_control(s, 1e-4);
    return s;
}

// ---- the controller ----------------------------------------------------------------------------

static crd_sample sine_sample(double t)
{
    return (crd_sample){.y = {sine(0, t), sine(1, t), sine(2, t)}, .order = 2};
}

// The defect of one step of a sine that is predicted by taylor2, from cardan/quality.h.
static double defect_by_hand(double t, double h, bool one_sided, bool middle)
{
    const crd_sample a = sine_sample(t), b = sine_sample(t + h);
    const crd_poly u = crd_poly_taylor(&a, 2);
    const double mid = sine(0, t + h / 2);
    if (one_sided) {
        const crd_poly y = crd_poly_output(&b, 2, h);
        const double rms = crd_defect_connection(&u, &y, h, NULL);
        return middle ? crd_defect_larger(rms, crd_defect_output(&b, 2, h, mid)) : rms;
    }
    const crd_defect d = crd_defect_two_point(&u, &a, &b, h, middle ? mid : (double)NAN);
    return middle ? crd_defect_larger(d.connection, d.output) : d.connection;
}

static double output_by_hand(double t, double h, bool one_sided)
{
    const crd_sample a = sine_sample(t), b = sine_sample(t + h);
    const double mid = sine(0, t + h / 2);
    const crd_poly u = crd_poly_taylor(&a, 2);
    return one_sided ? crd_defect_output(&b, 2, h, mid)
                     : crd_defect_two_point(&u, &a, &b, h, mid).output;
}

static void steps_are_those_of_the_controller_on_the_same_defects(void** state)
{
    for (int k = 0; k < 8; k++) {
        const bool pi = k & 1, one_sided = k & 2, middle = k & 4;
        crd_system* s = describe_sine(*state, CRD_PREDICTION_TAYLOR2, 20);
        crd_control_spec* c = &s->run.control;
        c->method = pi ? CRD_STEP_PI : CRD_STEP_H211B;
        c->one_sided = one_sided;
        c->middle = middle;
        c->absolute = true;
        c->first = 1e-2;
        c->safety = 0.8;
        c->kp = 0.1;
        c->ki = 0.05;
        c->growth = 1.5;
        c->reject = INFINITY; // what was measured decides of the next step, not of this one
        crd_step_options o = crd_step_defaults();
        o.method = c->method;
        o.tol = c->tolerance;
        o.floor = 1e-12 * 20;
        o.ceiling = 20;
        o.h1 = 1e-2;
        o.safety = 0.8;
        o.kp = 0.1;
        o.ki = 0.05;
        o.theta_max = 1.5;
        check_ok(crd_step_check(*state, &o));
        crd_step by_hand;
        crd_step_init(&o, o.h1, &by_hand);
        crd_master* m = open_run(*state, s);
        double t = 0;
        for (int i = 0; i < 100; i++) {
            const double h = by_hand.h;
            check_ok(crd_master_advance(m, 1));
            check_near(m->clock.h, h, 1e-9 * h);
            const double eps = defect_by_hand(t, m->clock.h, one_sided, middle);
            check_near(m->control.worst, eps, 1e-6 * eps + 1e-12);
            if (middle) {
                const double out = output_by_hand(t, m->clock.h, one_sided);
                check_near(m->connections.predictions[0].output_rms, out, 1e-3 * out + 1e-12);
            }
            t += m->clock.h;
            check_near(m->clock.time, t, 1e-12);
            by_hand.h = m->clock.h; // rounding of defects does not add up
            crd_step_next(&o, &by_hand, m->control.worst, 3);
        }
        check(m->clock.time < 19); // the end did not cut a step
        close_run(m, s);
    }
}

static void a_relative_tolerance_counts_against_the_scale(void** state)
{
    double h[3];
    for (int k = 0; k < 3; k++) { // as it is; given, as large; ten times as large
        crd_system* s = describe_sine(*state, CRD_PREDICTION_TAYLOR2, 12);
        s->connections[0].gain = 100;
        s->connections[0].has_transformation = true;
        if (k) { s->connections[0].scale = k == 1 ? 100 : 1000; }
        s->run.control.reject = INFINITY;
        crd_master* m = open_run(*state, s);
        run_all(*state, m);
        h[k] = m->control.report.longest;
        close_run(m, s);
    }
    check_near(h[0], h[1], 0.15 * h[1]);
    check(h[2] > 1.5 * h[1]);
}

static void first_floor_and_ceiling_are_kept(void** state)
{
    crd_system* s = describe_sine(*state, CRD_PREDICTION_TAYLOR2, 2);
    s->run.control.first = 1e-3;
    s->run.control.floor = 5e-4;
    s->run.control.ceiling = 1.5e-3;
    crd_master* m = open_run(*state, s);
    check_ok(crd_master_advance(m, 1));
    check_near(m->clock.h, 1e-3, 0);
    run_all(*state, m);
    const crd_control_report* r = &crd_master_get_report(m)->control;
    check_near(r->first, 1e-3, 0);
    check_near(r->longest, 1.5e-3, 1e-15);
    check(r->shortest >= 5e-4);
    check(r->at_ceiling > 1000);
    close_run(m, s);

    s = describe_sine(*state, CRD_PREDICTION_HOLD, 0.5);
    s->run.control.tolerance = 1e-9;
    s->run.control.floor = 1e-3;
    m = open_run(*state, s);
    run_all(*state, m);
    r = &crd_master_get_report(m)->control;
    check_near(r->shortest, 1e-3, 1e-9);
    check(r->at_floor > 400);
    check(r->worst > 1e3); // and that is said
    close_run(m, s);
}

static void a_first_step_is_found_from_the_derivatives(void** state)
{
    crd_system* s = describe_sine(*state, CRD_PREDICTION_TAYLOR2, 10);
    s->run.control.absolute = true;
    crd_master* m = open_run(*state, s);
    crd_step_options o = m->control.options;
    const crd_sample y = sine_sample(0);
    check_near(m->control.report.first, crd_step_first(&o, 1, &y, 3, 10), 1e-12);
    check_ok(crd_master_advance(m, 1));
    check(m->control.worst < 1e-4);
    close_run(m, s);
}

static void a_first_step_is_found_relative_to_the_scale(void** state)
{
    double first[2];
    for (int k = 0; k < 2; k++) {
        crd_system* s = describe_sine(*state, CRD_PREDICTION_TAYLOR1, 100);
        set_kind(s, 0, CUBIC); // 1 at the start
        s->connections[0].gain = k ? 1000 : 1;
        s->connections[0].has_transformation = true;
        crd_master* m = open_run(*state, s);
        first[k] = m->control.report.first;
        close_run(m, s);
    }
    check_near(first[1], first[0], 1e-12 * first[0]);
    check(first[0] < 0.1); // not that of the span
}

// In Gauss-Seidel order the known side has no order of its own.
static void an_interpolated_connection_does_not_change_the_order(void** state)
{
    double steps[2];
    for (int k = 0; k < 2; k++) {
        crd_system* s = describe_masses(*state, 20);
        if (k) { check_ok(crd_system_set_scheme(s, "gauss-seidel: [a, b]", (crd_place){"", 0})); }
        crd_master* m = open_run(*state, s);
        check_ok(crd_master_advance(m, 30));
        bool one_known = false;
        for (int i = 0; i < 2; i++) {
            one_known = one_known || m->connections.predictions[i].known;
        }
        check_int(one_known, k);
        run_all(*state, m);
        steps[k] = (double)m->clock.n;
        check(crd_master_get_report(m)->control.worst < 20);
        close_run(m, s);
    }
    check(steps[1] < 1.2 * steps[0]);
}

// ---- where steps end ---------------------------------------------------------------------------

static void the_stop_time_is_reached_to_the_last_bit(void** state)
{
    static const double stops[] = {1, 0.7, 1.0 / 3, 2.345678};
    for (int k = 0; k < 4; k++) {
        crd_system* s = describe_sine(*state, CRD_PREDICTION_AUTO, stops[k]);
        crd_master* m = open_run(*state, s);
        run_all(*state, m);
        check(crd_master_time(m) == stops[k]);
        check_int(crd_master_ended(m), CRD_END_STOP_TIME);
        // Nothing of the time was left out or done twice.
        double t = 0;
        for (int i = 0; i < said_count; i++) {
            check_near(said[i].t, t, 1e-12);
            t = said[i].t + said[i].h;
        }
        check_near(t, stops[k], 1e-12);
        close_run(m, s);
    }
}

static void rows_come_at_their_times_to_the_last_bit(void** state)
{
    crd_system* s = describe_sine(*state, CRD_PREDICTION_AUTO, 1);
    s->results.path = TEST_BUILD_DIR "/test_control_rows.csv";
    s->results.interval = 0.1;
    crd_master* m = open_run(*state, s);
    run_all(*state, m);
    check_int(crd_master_get_report(m)->rows, 11);
    check(m->clock.n > 20);
    check_ok(crd_master_finish(m));
    close_run(m, s);
    FILE* f = fopen(TEST_BUILD_DIR "/test_control_rows.csv", "r");
    check(f != NULL);
    char line[256];
    check(fgets(line, sizeof line, f));
    int k = 0;
    for (double t, y; fscanf(f, "%lf,%lf%*[^\n]", &t, &y) == 2; k++) {
        check(t == (k == 10 ? 1 : 0.1 * k));
        check_near(y, sine(0, t), 1e-12);
    }
    fclose(f);
    check_int(k, 11);
}

static void a_row_may_lie_anywhere_and_the_last_is_the_end(void** state)
{
    static const double intervals[] = {1.0 / 3, 0.07, 0.013, 0.3};
    for (int k = 0; k < 4; k++) {
        crd_system* s = describe_sine(*state, CRD_PREDICTION_AUTO, 1);
        s->run.start = -0.7;
        s->results.path = TEST_BUILD_DIR "/test_control_rows.csv";
        s->results.interval = intervals[k];
        crd_master* m = open_run(*state, s);
        int rows = 1;
        while (crd_master_ended(m) == CRD_END_NONE) {
            const double next = -0.7 + intervals[k] * rows;
            const double before = m->clock.time;
            check_ok(crd_master_advance(m, 1));
            check(before < next && (m->clock.time <= next || m->clock.time == 1));
            rows += m->clock.time == next || m->clock.time == 1;
        }
        check_int(crd_master_get_report(m)->rows, rows);
        check_near(rows, floor(1.7 / intervals[k] + 1e-9) + 2, 0);
        close_run(m, s);
    }
}

// The rest in two equal steps rather than in a long one and a tiny one.
static void the_last_two_steps_share_the_rest(void** state)
{
    crd_system* s = describe_sine(*state, CRD_PREDICTION_TAYLOR2, 0.25);
    use_control(s, 1);
    s->run.control.first = s->run.control.ceiling = 0.1;
    crd_master* m = open_run(*state, s);
    static const double lengths[] = {0.1, 0.075, 0.075};
    for (int i = 0; i < 3; i++) {
        check_ok(crd_master_advance(m, 1));
        check_near(m->clock.h, lengths[i], 1e-12);
    }
    check_int(crd_master_ended(m), CRD_END_STOP_TIME);
    close_run(m, s);
}

// Rows that cut steps do not make them short: what was cut tells of the whole.
static void a_step_that_was_cut_a_little_tells_what_the_whole_would_have_been(void** state)
{
    crd_system* s = describe_sine(*state, CRD_PREDICTION_TAYLOR2, 10);
    s->run.control.absolute = true;
    s->results.path = TEST_BUILD_DIR "/test_control_rows.csv";
    s->results.interval = 0.11;
    s->run.control.reject = INFINITY;
    crd_master* m = open_run(*state, s);
    int little = 0, much = 0;
    while (crd_master_ended(m) == CRD_END_NONE) {
        crd_step by_hand = m->control.step;
        check_ok(crd_master_advance(m, 1));
        const double cut = by_hand.h / m->clock.h;
        if (cut > 1 && cut < 3) {
            crd_step_next(&m->control.options, &by_hand, m->control.worst * cut * cut * cut, 3);
            little += cut > 1.01;
        } else {
            crd_step_next_after(&m->control.options, &by_hand, m->clock.h, m->control.worst, 3);
            much++;
        }
        check_near(m->control.step.h, by_hand.h, 1e-9 * by_hand.h);
    }
    if (little < 20 || much < 1) { fail_msg("%d and %d", little, much); }
    close_run(m, s);
}

static void without_an_interval_every_step_is_a_row(void** state)
{
    crd_system* s = describe_sine(*state, CRD_PREDICTION_AUTO, 1);
    s->results.path = TEST_BUILD_DIR "/test_control_all.csv";
    crd_master* m = open_run(*state, s);
    run_all(*state, m);
    check_int(crd_master_get_report(m)->rows, m->clock.n + 1);
    close_run(m, s);
}

static int add_signal(crd_system* s, const crd_signal_spec* signal)
{
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = "g";
    u.source = CRD_UNIT_SIGNAL;
    u.signals = signal;
    u.signal_count = 1;
    int index = -1;
    check_ok(crd_system_add_unit(s, &u, &index));
    return index;
}

// A step, and a ramp, of a generator beside a sine.
static void a_step_ends_at_an_event_that_is_known_and_begins_small_behind_it(void** state)
{
    static const crd_signal_shape shapes[] = {CRD_SIGNAL_STEP, CRD_SIGNAL_RAMP};
    for (int k = 0; k < 4; k++) {
        crd_signal_spec g = crd_signal_spec_defaults();
        g.shape = shapes[k % 2];
        g.start = JUMP;
        g.duration = 10;
        crd_system* s = describe_sine(*state, CRD_PREDICTION_AUTO, 1);
        s->run.control.first = 1e-3;
        if (k / 2) { s->run.control.reject = 2; }
        const int from = add_signal(s, &g), to = add_unit(s, "q", &listener_models[2], 0);
        wire_as(s, from, to, CRD_PREDICTION_AUTO);
        crd_master* m = open_run(*state, s);
        check_int(m->connections.prediction_count, k % 2 ? 2 : 1); // a step is discrete
        while (m->clock.time < JUMP) {
            check_ok(crd_master_advance(m, 1));
        }
        check(m->clock.time == JUMP);
        check_near(m->control.step.h, 1e-3, 0);
        check_int(m->control.report.events, 1);
        for (int i = 0; i < m->connections.prediction_count; i++) {
            check_int(m->connections.predictions[i].past.count == 1,
                      m->connections.predictions[i].of->from.member == from);
        }
        check_ok(crd_master_advance(m, 1));
        check_near(m->clock.h, 1e-3, 1e-15);
        run_all(*state, m);
        check_int(m->control.report.events, 1);
        close_run(m, s);
    }
}

static crd_system* describe_jump(crd_context* ctx, const char* known)
{
    crd_system* s = describe_sine(ctx, CRD_PREDICTION_TAYLOR1, 1);
    const int from = add_unit(s, "j", &jumper_model, 0);
    const int to = add_unit(s, "q", &listener_models[0], 0);
    set(s, from, "known", known);
    wire_as(s, from, to, CRD_PREDICTION_TAYLOR1);
    s->run.control.first = 1e-3;
    s->run.control.ceiling = 0.05;
    return s;
}

static const crdi_prediction* flow_to(const crd_master* m, const char* input)
{
    for (int i = 0; i < m->connections.prediction_count; i++) {
        if (strcmp(m->connections.predictions[i].of->to_name, input) == 0) {
            return &m->connections.predictions[i];
        }
    }
    fail_msg("no flow to %s", input);
    return NULL;
}

static void a_jump_is_no_reason_to_take_steps_back(void** state)
{
    for (int k = 0; k < 2; k++) {
        crd_system* s = describe_jump(*state, k ? "1" : "0");
        s->run.control.reject = 2;
        crd_master* m = open_run(*state, s);
        while (m->clock.time < JUMP) {
            check_ok(crd_master_advance(m, 1));
        }
        if (k) { check(m->clock.time == JUMP); }
        check_int(flow_to(m, "q.u")->past.count, 1);
        check_near(m->control.step.h, 1e-3, 0);
        run_all(*state, m);
        check_int(m->control.report.events, 1);
        check(m->control.report.rejected < 5);
        check(m->control.report.shortest > 1e-6);
        check_near(value(m, "q.y"), 0.7, 0.05);
        close_run(m, s);
    }
}

// ---- units with steps of their own -------------------------------------------------------------

static void units_with_their_own_step_make_several_of_them(void** state)
{
    crd_system* s = describe_sine(*state, CRD_PREDICTION_TAYLOR2, 1.2);
    s->units[1].step = 0.03;
    const int c = add_unit(s, "r", &rigid_mass_model, 0); // 0.02, and cannot do else
    wire_as(s, 0, c, CRD_PREDICTION_TAYLOR2);
    s->run.control.tolerance = 1e-3;
    s->run.control.reject = INFINITY; // calls are counted
    crd_master* m = open_run(*state, s);
    check_near(m->control.quantum, 0.06, 1e-12);
    while (crd_master_ended(m) == CRD_END_NONE) {
        check_ok(crd_master_advance(m, 1));
        check_near(m->clock.h / 0.06, round(m->clock.h / 0.06), 1e-9);
    }
    check(crd_master_time(m) == 1.2);
    check_int(said_count, 40);
    for (int i = 0; i < said_count; i++) {
        check_near(said[i].t, 0.03 * i, 1e-12);
        check_near(said[i].h, 0.03, 1e-12);
    }
    check(m->control.report.longest > 0.07); // it did vary
    close_run(m, s);
}

static void a_stop_time_between_the_steps_of_units_is_cut(void** state)
{
    crd_system* s = describe_sine(*state, CRD_PREDICTION_TAYLOR2, 0.65);
    s->units[1].step = 0.03;
    crd_master* m = open_run(*state, s);
    run_all(*state, m);
    check_near(crd_master_time(m), 0.63, 1e-12);
    check_int(crd_master_ended(m), CRD_END_STOP_TIME);
    check_near(said[said_count - 1].t + said[said_count - 1].h, 0.63, 1e-12);
    close_run(m, s);
}

// Samples in the middle need an even number of parts.
static void a_unit_with_its_own_step_has_no_middle(void** state)
{
    crd_system* s = describe_sine(*state, CRD_PREDICTION_TAYLOR2, 1.2);
    s->units[0].step = 0.02;
    s->run.control.tolerance = 1e-3;
    crd_master* m = open_run(*state, s);
    check(!m->connections.predictions[0].middle);
    bool odd = false;
    while (crd_master_ended(m) == CRD_END_NONE) {
        const double t = m->clock.time;
        check_ok(crd_master_advance(m, 1));
        const double eps = defect_by_hand(t, m->clock.h, false, false);
        check_near(m->connections.predictions[0].rms, eps, 1e-6 * eps + 1e-12);
        odd = odd || m->plan->members[0].run->parts % 2;
    }
    check(odd);
    close_run(m, s);
}

// ---- steps that are taken back -----------------------------------------------------------------

static void a_step_that_was_taken_back_leaves_no_trace(void** state)
{
    double a[2], b[2], h = 0;
    for (int k = 0; k < 2; k++) {
        crd_system* s = describe_masses(*state, 10);
        s->run.control.reject = 1;
        s->run.control.first = k ? h : 1;
        crd_master* m = open_run(*state, s);
        check_ok(crd_master_advance(m, 1));
        if (k) {
            check_near(m->clock.h, h, 0);
            check_int(m->control.report.rejected, 0);
        } else {
            check(m->control.report.rejected > 0);
            check(m->control.worst <= m->control.options.tol);
            h = m->clock.h;
            check(h < 0.9);
        }
        double* x = k ? b : a;
        x[0] = value(m, "a.y");
        x[1] = value(m, "b.y");
        for (int i = 0; i < 2; i++) {
            check_int(m->connections.predictions[i].past.count, 2);
            check_int(m->connections.predictions[i].connection.steps, 1);
            check_near(m->connections.predictions[i].past.h[0], h, 0);
        }
        close_run(m, s);
    }
    check(memcmp(a, b, sizeof a) == 0);
}

// An event of a step that was taken back has not happened.
static void an_event_of_a_step_that_was_taken_back_cuts_nothing(void** state)
{
    crd_system* s = describe_jump(*state, "0");
    s->run.control.reject = 1;
    s->run.control.first = 0.5;
    s->run.control.ceiling = 1;
    crd_master* m = open_run(*state, s);
    check_ok(crd_master_advance(m, 1));
    check(m->control.report.rejected > 0);
    check(m->clock.time < JUMP);
    check_int(m->control.report.events, 0);
    check_int(flow_to(m, "q.u")->past.count, 2);
    close_run(m, s);
}

// Its own time as a discrete number: not predicted, but copied.
static const crd_model_variable discrete_variables[] = {
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(curve, y),
     .depends = ""},
    {.name = "kind",
     .type = CRD_INT32,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(curve, kind),
     .start = LINE},
};
static const crd_model discrete_model = {.name = "discrete",
                                         .description = "y = 2 t",
                                         .size = sizeof(curve),
                                         .variables = discrete_variables,
                                         .variable_count = 2,
                                         .default_step = 0.1,
                                         .default_stop = 1,
                                         .initialize = curve_start,
                                         .outputs = curve_outputs,
                                         .step = curve_step};

static void what_is_copied_comes_back_with_the_step(void** state)
{
    crd_system* s = describe_masses(*state, 10);
    const int d = add_unit(s, "d", &discrete_model, 0);
    const int p = add_unit(s, "p", &listener_models[0], 0);
    wire_as(s, d, p, CRD_PREDICTION_AUTO);
    s->run.control.reject = 1;
    s->run.control.first = 1;
    crd_master* m = open_run(*state, s);
    check_int(m->connections.prediction_count, 2);
    check_ok(crd_master_advance(m, 1));
    check(m->control.report.rejected > 0);
    check(said_count > 1);
    m->control.step.h = 1; // once more
    const int64_t before = m->control.report.rejected;
    check_ok(crd_master_advance(m, 1));
    check(m->control.report.rejected > before);
    for (int i = 0; i < said_count; i++) { // what it was when the step began, each time
        check_near(said[i].u, 2 * said[i].t, 1e-15);
    }
    close_run(m, s);
}

static void with_rejection_no_step_is_beyond_its_limit(void** state)
{
    crd_system* s = describe_masses(*state, 10);
    s->run.control.reject = 1.5;
    s->run.control.first = 1;
    crd_master* m = open_run(*state, s);
    run_all(*state, m);
    const crd_control_report* r = &crd_master_get_report(m)->control;
    check(r->rejected > 0);
    check(r->worst <= 1.5);
    close_run(m, s);
}

static void steps_beyond_the_tolerance_are_taken_back_unasked(void** state)
{
    static const double tolerances[] = {1e-2, 1e-4, 1e-6};
    for (int k = 0; k < 6; k++) {
        crd_system* s = describe_masses(*state, 10);
        s->run.control.tolerance = tolerances[k / 2];
        s->run.control.first = k % 2 ? 1 : (double)NAN;
        crd_master* m = open_run(*state, s);
        run_all(*state, m);
        const crd_control_report* r = &crd_master_get_report(m)->control;
        check(r->worst <= 1);
        check_int(r->beyond, 0);
        check_text(r->forward_only, "");
        check(k % 2 ? r->rejected > 0 : r->rejected < r->events + 20);
        close_run(m, s);
    }
}

static char warned[1024];

static void keep_warning(void* user, crd_level level, const char* text)
{
    (void)user;
    if (level == CRD_LOG_WARNING) { snprintf(warned, sizeof warned, "%s", text); }
}

// Who cannot go back is named before the run, and the steps that it cost are counted after it.
static void what_cannot_be_kept_is_said(void** state)
{
    (void)state;
    crd_context_options o = crd_context_defaults();
    o.log = keep_warning;
    crd_context* ctx = crd_context_create(&o);
    for (int k = 0; k < 3; k++) {
        warned[0] = 0;
        crd_system* s = describe_masses(ctx, 10);
        s->run.control.first = 1;
        if (k == 0) { add_unit(s, "rigid", &listener_models[0], 0); }
        if (k == 1) { s->run.pace.factor = 1e6; }
        if (k == 2) { s->run.control.reject = INFINITY; }
        crd_master* m = open_run(ctx, s);
        if (k == 0) { check_contains(warned, "unit 'rigid' (native) cannot restore its state"); }
        if (k == 1) { check_contains(warned, "cannot keep the tolerance in every step: the run"); }
        if (k == 2) { check_text(warned, ""); } // as it was asked for
        run_all(ctx, m);
        const crd_control_report* r = &crd_master_get_report(m)->control;
        check(*r->forward_only);
        check_int(r->rejected, 0);
        check(r->beyond > 0 && r->worst > 1);
        check_contains(r->worst_flow, " -> ");
        close_run(m, s);
    }
    crd_context_destroy(ctx);
}

// A signal that was zero has no scale: what it begins with is no reason to go on in tiny steps.
static void a_signal_that_begins_from_rest_is_no_reason_for_tiny_steps(void** state)
{
    crd_system* s = describe_sine(*state, CRD_PREDICTION_HOLD, 1);
    s->run.control.tolerance = 1e-2;
    crd_master* m = open_run(*state, s);
    run_all(*state, m);
    const crd_control_report* r = &crd_master_get_report(m)->control;
    check(r->shortest > 1e-9 && r->worst <= 1);
    check_int(r->beyond, 0);
    close_run(m, s);
}

// What no shorter step would make better is accepted at the floor.
static void at_the_floor_nothing_is_taken_back(void** state)
{
    crd_system* s = describe_sine(*state, CRD_PREDICTION_HOLD, 0.1);
    s->run.control.tolerance = 1e-9;
    s->run.control.floor = s->run.control.first = 1e-3;
    s->run.control.reject = 1;
    crd_master* m = open_run(*state, s);
    run_all(*state, m);
    check_near((double)m->clock.n, 100, 1);
    check_int(m->control.report.rejected, 0);
    close_run(m, s);
}

static void a_step_that_was_cut_is_taken_back_from_where_it_was_cut(void** state)
{
    crd_system* s = describe_masses(*state, 10);
    s->results.path = TEST_BUILD_DIR "/test_control_rows.csv";
    s->results.interval = 0.2;
    s->run.control.reject = 1;
    s->run.control.first = 5;
    s->run.control.tolerance = 1e-5;
    crd_master* m = open_run(*state, s);
    check_ok(crd_master_advance(m, 1));
    check(m->clock.h < 0.19);
    check(m->control.worst <= 1e-5);
    close_run(m, s);
}

// A step that units do not allow to be shorter is not counted as taken back.
static void what_cannot_be_shorter_is_not_taken_back(void** state)
{
    crd_system* s = describe_sine(*state, CRD_PREDICTION_TAYLOR2, 1);
    s->units[1].step = 0.1;
    s->run.control.tolerance = 1e-7;
    s->run.control.reject = 1;
    crd_master* m = open_run(*state, s);
    run_all(*state, m);
    check_int(m->clock.n, 10);
    check_int(m->control.report.rejected, 0);
    close_run(m, s);
}

// What a unit wishes in a step that is taken back was never wished.
static void a_wish_of_a_step_that_was_taken_back_is_forgotten(void** state)
{
    crd_system* s = describe_masses(*state, 1);
    const int c = add_unit(s, "c", &clock_model, 0);
    set(s, c, "when", "0.5");
    set(s, c, "what", "1");
    s->run.control.reject = 1;
    s->run.control.first = 0.9;
    crd_master* m = open_run(*state, s);
    check_ok(crd_master_advance(m, 1));
    check(m->control.report.rejected > 0);
    check(m->clock.time < 0.5);
    check_int(crd_master_ended(m), CRD_END_NONE);
    run_all(*state, m);
    check_int(crd_master_ended(m), CRD_END_UNIT);
    check(m->clock.time >= 0.5 && m->clock.time < 0.9);
    check_text(crd_master_get_report(m)->end_unit, "c");
    close_run(m, s);
}

// ---- what breaks -------------------------------------------------------------------------------

static void without_a_derivative_that_is_a_number_the_step_is_controlled(void** state)
{
    for (int k = 0; k < 4; k++) {
        crd_system* s = describe_sine(*state, CRD_PREDICTION_AUTO, 1);
        set_kind(s, 0, k % 2 ? BAD_CURVE : BAD_RATE);
        if (k / 2) { s->run.control.reject = 2; }
        crd_master* m = open_run(*state, s);
        check_ok(crd_master_advance(m, 100000));
        check(m->connections.predictions[0].blind);
        check(isfinite(m->connections.predictions[0].rms));
        check_int(crd_master_ended(m), CRD_END_STOP_TIME);
        close_run(m, s);
    }
}

static void an_interrupted_run_ends_between_two_steps(void** state)
{
    volatile bool stop = false;
    crd_system* s = describe_masses(*state, 10);
    crd_master_options opt = crd_master_defaults();
    opt.stop = &stop;
    crd_master* m = NULL;
    check_ok(crd_master_create(*state, s, &opt, &m));
    check_ok(crd_master_initialize(m));
    check_ok(crd_master_advance(m, 10));
    stop = true;
    check_ok(crd_master_advance(m, 1000));
    check_int(crd_master_ended(m), CRD_END_INTERRUPTED);
    check_int(m->clock.n, 11);
    check_ok(crd_master_finish(m));
    close_run(m, s);
}

static void a_unit_may_end_a_controlled_run(void** state)
{
    crd_system* s = describe_masses(*state, 10);
    const int c = add_unit(s, "c", &clock_model, 0);
    set(s, c, "when", "0.5");
    set(s, c, "what", "1");
    crd_master* m = open_run(*state, s);
    run_all(*state, m);
    check_int(crd_master_ended(m), CRD_END_UNIT);
    check(crd_master_time(m) >= 0.5 && crd_master_time(m) < 1);
    close_run(m, s);
}

static void check_refused(crd_context* ctx, crd_system* s, crd_status want, const char* a,
                          const char* b)
{
    crd_master* m = NULL;
    check_status(crd_master_create(ctx, s, NULL, &m), want);
    check_contains(crd_error_text(ctx), a);
    check_contains(crd_error_text(ctx), b);
    crd_master_destroy(m);
    crd_system_destroy(s);
}

static void bad_input_is_refused_with_names(void** state)
{
    crd_system* s = NULL;
    static const double wrong[] = {0, -1, (double)NAN, (double)INFINITY};
    for (int i = 0; i < 4; i++) {
        s = describe_sine(*state, CRD_PREDICTION_AUTO, 1);
        s->run.control.tolerance = wrong[i];
        check_refused(*state, s, CRD_E_RANGE, "tol", "expected");
    }
    s = describe_sine(*state, CRD_PREDICTION_AUTO, 1);
    s->run.control.floor = 0.1;
    s->run.control.ceiling = 0.01;
    check_refused(*state, s, CRD_E_RANGE, "floor", "ceiling");

    s = describe_sine(*state, CRD_PREDICTION_AUTO, 1);
    add_unit(s, "rigid", &listener_models[0], 0);
    s->run.control.reject = 2;
    check_refused(*state, s, CRD_E_UNSUPPORTED, "test:7: run.control.reject",
                  "unit 'rigid' (native) cannot restore its state");

    s = describe_sine(*state, CRD_PREDICTION_AUTO, 1e6 + 1);
    s->run.start = 1e6;
    s->run.control.floor = 1e-10;
    check_refused(*state, s, CRD_E_RANGE, "test:7: run.control.floor is 1e-10 s", "too short");
    s = describe_sine(*state, CRD_PREDICTION_AUTO, 1e6 + 1);
    s->run.start = 1e6;
    crd_master* m = open_run(*state, s);
    check(1e6 + m->control.options.floor > 1e6); // time goes on
    run_all(*state, m);
    close_run(m, s);

    const crd_coupling_spec coupling = {.element = "{\"algorithm\": \"foh\"}", .record = true};
    s = describe_sine(*state, CRD_PREDICTION_AUTO, 1);
    s->connections[0].coupling = &coupling;
    s->connections[0].place = (crd_place){"test", 5};
    check_refused(*state, s, CRD_E_UNSUPPORTED, "test:5: ", "equal distances");

    s = new_system(*state, 0.1, 1);
    add_unit(s, "c", &clock_model, 0);
    use_control(s, 1e-3);
    check_refused(*state, s, CRD_E_RANGE, "test:7: run.control", "there is none");

    s = describe_sine(*state, CRD_PREDICTION_AUTO, 1);
    s->units[0].step = 1;
    s->units[1].step = 0.7;
    check_refused(*state, s, CRD_E_RANGE, "multiple of 7 s", "longer than the run");

    s = describe_sine(*state, CRD_PREDICTION_AUTO, 1);
    s->units[0].step = 0.1;
    s->units[1].step = 0.1 * sqrt(2);
    check_refused(*state, s, CRD_E_RANGE, "unit 'p'", "no common multiple");
}

static crd_status forbid(crd_unit* u)
{
    if (strcmp(u->name, "p") == 0) { u->info.flags &= ~(uint32_t)CRD_UNIT_CAN_VARY_STEP; }
    return CRD_OK;
}

static void a_unit_that_forbids_variable_steps_is_named_with_what_to_do(void** state)
{
    altered = forbid;
    check_refused(*state, describe_sine(*state, CRD_PREDICTION_AUTO, 1), CRD_E_RANGE,
                  "test:7: unit 'p' cannot vary its step", "give it a 'step' of its own");
    crd_system* s = describe_sine(*state, CRD_PREDICTION_AUTO, 1);
    s->units[1].step = 0.01; // as it says
    crd_master* m = open_run(*state, s);
    run_all(*state, m);
    check_int(said_count, 100);
    close_run(m, s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(steps_are_those_of_the_controller_on_the_same_defects),
        TEST(a_relative_tolerance_counts_against_the_scale),
        TEST(first_floor_and_ceiling_are_kept),
        TEST(a_first_step_is_found_from_the_derivatives),
        TEST(a_first_step_is_found_relative_to_the_scale),
        TEST(an_interpolated_connection_does_not_change_the_order),
        TEST(the_stop_time_is_reached_to_the_last_bit),
        TEST(rows_come_at_their_times_to_the_last_bit),
        TEST(a_row_may_lie_anywhere_and_the_last_is_the_end),
        TEST(the_last_two_steps_share_the_rest),
        TEST(a_step_that_was_cut_a_little_tells_what_the_whole_would_have_been),
        TEST(without_an_interval_every_step_is_a_row),
        TEST(a_step_ends_at_an_event_that_is_known_and_begins_small_behind_it),
        TEST(a_jump_is_no_reason_to_take_steps_back),
        TEST(units_with_their_own_step_make_several_of_them),
        TEST(a_stop_time_between_the_steps_of_units_is_cut),
        TEST(a_unit_with_its_own_step_has_no_middle),
        TEST(a_step_that_was_taken_back_leaves_no_trace),
        TEST(an_event_of_a_step_that_was_taken_back_cuts_nothing),
        TEST(what_is_copied_comes_back_with_the_step),
        TEST(with_rejection_no_step_is_beyond_its_limit),
        TEST(steps_beyond_the_tolerance_are_taken_back_unasked),
        TEST(what_cannot_be_kept_is_said),
        TEST(a_signal_that_begins_from_rest_is_no_reason_for_tiny_steps),
        TEST(a_step_that_was_cut_is_taken_back_from_where_it_was_cut),
        TEST(at_the_floor_nothing_is_taken_back),
        TEST(what_cannot_be_shorter_is_not_taken_back),
        TEST(a_wish_of_a_step_that_was_taken_back_is_forgotten),
        TEST(without_a_derivative_that_is_a_number_the_step_is_controlled),
        TEST(an_interrupted_run_ends_between_two_steps),
        TEST(a_unit_may_end_a_controlled_run),
        TEST(bad_input_is_refused_with_names),
        TEST(a_unit_that_forbids_variable_steps_is_named_with_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
