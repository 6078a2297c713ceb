// Units and systems behind a DCP slave, asked by a master that is written by hand.
#include "hand.h"
#include "shared/base.h"

// An FMU that crashed is not called again, not even to free itself: that loss is meant.
CRD_API const char* __lsan_default_suppressions(void);
const char* __lsan_default_suppressions(void)
{
    return "leak:faulty.so\nleak:crd_fmi_instantiate";
}

extern const crd_model crd_model_types, crd_model_lo_fd1, crd_model_lo_fd2;

// ---- descriptions ------------------------------------------------------------------------------

static void check_no_findings(hand* h)
{
    crd_text t;
    crd_dcp_description* again = NULL;
    const crd_dcp_finding* f = NULL;
    int count = 0;
    crd_text_init(&t, h->ctx);
    check_ok(crd_dcp_write(h->d, &t));
    check_ok(crd_dcp_parse(h->ctx, t.data, t.length, "x.dcpx", &again, &f, &count));
    if (count) { fail_msg("%s (%s)", f[0].text, f[0].code); }
    check_int(again->variable_count, h->d->variable_count);
    crd_dcp_description_destroy(again);
    crd_text_clear(&t);
}

static void every_type_is_described_without_findings(void** state)
{
    for (int version = 0; version <= 3; version++) {
        if (version == 1) { continue; }
        hand h;
        hand_unit(&h, version, "types", &crd_model_types);
        hand_open_with(&h, NULL);
        check_no_findings(&h);
        check_text(h.d->name, "types");
        check(h.d->srt && h.d->nrt && !h.d->hrt);
        const crd_dcp_variable* v = hand_variable(&h, "in_b");
        check_int(v->type, CRD_DCP_UINT8);
        check_text(v->start, "1");
        check_near(v->max, 1, 0);
        v = hand_variable(&h, "in_e");
        check_int(v->type, version == 2 ? CRD_DCP_INT32 : CRD_DCP_INT64);
        check_text(v->start, "2");
        v = hand_variable(&h, "in_f64");
        check_text(v->start, "0.1");
        check_int(v->causality, CRD_INPUT);
        check_int(v->variability, CRD_CONTINUOUS);
        v = hand_variable(&h, "par_f64");
        check_int(v->variability, CRD_TUNABLE);
        v = hand_variable(&h, "out_f64");
        check(v->has_run_dependencies);
        check_int(v->run_dependency_count, 1);
        check_int(v->run_dependencies[0].vr, hand_variable(&h, "in_f64")->vr);
        check(hand_variable(&h, "par_out_f64")->has_run_dependencies);
        check_int(hand_variable(&h, "par_out_f64")->run_dependency_count, 0);
        v = hand_variable(&h, "in_s");
        check_text(v->start, "a < b & \"c\"");
        check_int(v->max_size, 1024);
        if (version != 2) {
            v = hand_variable(&h, "in_f64s");
            check_int(v->rank, 1);
            check_int(v->dimensions[0], 3);
            check_text(v->start, "1.5 2.5 -3.5");
            check_text(hand_variable(&h, "in_bs")->start, "1 0 1");
            check_text(hand_variable(&h, "in_ss[2]")->start, "text");
            check_text(hand_variable(&h, "in_bin")->start, "00ff10");
            check_int(hand_variable(&h, "out_ss[1]")->run_dependency_count, 2);
        }
        hand_close(&h);
    }
}

static void settings_are_start_values_and_equal_fmus_have_equal_uuids(void** state)
{
    uint8_t uuid[16] = {0};
    for (int i = 0; i < 3; i++) {
        hand h;
        hand_unit(&h, 3, "types", NULL);
        const crd_place place = {"--set", 0};
        if (i == 1) {
            check_ok(crd_system_set(h.sys, 0, "in_f64", "2.5", place));
            check_ok(crd_system_set(h.sys, 0, "par_e", "blue", place));
            check_ok(crd_system_set(h.sys, 0, "par_ss", "\"a b\" c", place));
            check_ok(crd_system_set(h.sys, 0, "in_s", "hello", place));
            check_ok(crd_system_set(h.sys, 0, "in_f64s", "1 2 3", place));
        }
        crdi_serve_options opt = crdi_serve_defaults();
        if (i == 2) { opt.name = "another"; }
        hand_open_with(&h, &opt);
        check_no_findings(&h);
        check_int(h.d->uuid[6] >> 4, 8);
        if (i == 0) { memcpy(uuid, h.d->uuid, sizeof uuid); }
        check((memcmp(uuid, h.d->uuid, sizeof uuid) == 0) == (i < 2));
        if (i == 1) {
            check_text(hand_variable(&h, "in_f64")->start, "2.5");
            check_text(hand_variable(&h, "par_e")->start, "3");
            check_text(hand_variable(&h, "par_ss[1]")->start, "a b");
            check_text(hand_variable(&h, "par_ss[2]")->start, "c");
            check_text(hand_variable(&h, "in_s")->start, "hello");
            check_text(hand_variable(&h, "in_f64s")->start, "1 2 3");
        }
        hand_close(&h);
    }
}

static void options_shape_the_description(void** state)
{
    hand h;
    const crd_dcp_address at[] = {{0x7F000001, 9000, CRD_DCP_TCP}, {0xC0A80207, 9001, CRD_DCP_UDP}};
    crdi_serve_options opt = crdi_serve_defaults();
    opt.resolution = 1.0 / 60;
    opt.heartbeat = 0.25;
    opt.hrt = true;
    opt.max_text = 40;
    opt.addresses = at;
    opt.address_count = 2;
    hand_unit(&h, 2, "lo_fd2", NULL);
    hand_open_with(&h, &opt);
    check_no_findings(&h);
    check(h.d->hrt && h.d->udp.offered && h.d->tcp.offered && h.d->can_monitor_heartbeat);
    check_text(h.d->udp.host, "192.168.2.7");
    check_int(h.d->tcp.port, 9000);
    check_int(h.d->resolutions[0].numerator, 1);
    check_int(h.d->resolutions[0].denominator, 60);
    check_int(h.d->resolution_count, 2);
    check_int(h.d->heartbeat_denominator, 4);
    check_text(hand_variable(&h, "f")->unit, "N");
    check(h.d->unit_count > 0 && h.d->units[0].has_base);
    hand_close(&h);

    hand_unit(&h, 2, "lo_fd2", NULL);
    opt.resolution = -1;
    check_status(crdi_serve_create(h.ctx, h.sys, &opt, &h.serve), CRD_E_RANGE);
    check_contains(crd_error_text(h.ctx), "resolution = -1 s, expected > 0");
    hand_close(&h);
}

static void signals_and_recordings_are_slaves_too(void** state)
{
    hand h;
    hand_context(&h);
    crd_signal_spec y = crd_signal_spec_defaults();
    y.name = "y";
    y.shape = CRD_SIGNAL_SINE;
    y.frequency = 1;
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = "sine";
    u.source = CRD_UNIT_SIGNAL;
    u.signals = &y;
    u.signal_count = 1;
    check_ok(crd_system_add_unit(h.sys, &u, NULL));
    hand_open(&h, NULL);
    check_no_findings(&h);
    hand_register(&h, CRD_DCP_NRT);
    hand_configure(&h, 1000, "", "sine.y", "");
    hand_make_ready(&h);
    hand_run(&h);
    hand_step(&h, 100);
    check_near(h.outs[0].real[0], sin(2 * 3.14159265358979 * 0.1), 1e-12);
    hand_close(&h);

    FILE* f = fopen(TEST_BUILD_DIR "/serve_replay.csv", "w");
    fputs("time,v\n0,1\n1,3\n", f);
    fclose(f);
    hand_context(&h);
    u = crd_unit_spec_defaults();
    u.name = "tape";
    u.source = CRD_UNIT_REPLAY;
    u.path = TEST_BUILD_DIR "/serve_replay.csv";
    check_ok(crd_system_add_unit(h.sys, &u, NULL));
    h.sys->single = true;
    hand_open(&h, NULL);
    hand_register(&h, CRD_DCP_NRT);
    hand_configure(&h, 1000, "", "v", "");
    hand_make_ready(&h);
    hand_run(&h);
    hand_step(&h, 500);
    check_near(h.outs[0].real[0], 2, 1e-12);
    hand_close(&h);
}

static crd_dcp_description* parse(const char* variables, crd_context* ctx)
{
    crd_dcp_description* d = NULL;
    const crd_dcp_finding* f = NULL;
    int count = 0;
    char text[4096];
    snprintf(
        text, sizeof text,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<dcpSlaveDescription dcpMajorVersion=\"1\" "
        "dcpMinorVersion=\"0\" dcpSlaveName=\"mine\" uuid=\"6f1d2c3b-4a59-4e68-8f70-0123456789ab\">"
        "<OpMode><NonRealTime fixedSteps=\"true\" "
        "defaultSteps=\"1\"/></OpMode><TimeRes><Resolution "
        "numerator=\"1\" denominator=\"100\" "
        "fixed=\"true\"/></TimeRes><TransportProtocols><UDP_IPv4>"
        "<Control host=\"127.0.0.1\" port=\"8080\"/><DAT_input_output>"
        "<AvailablePortRange from=\"1024\" "
        "to=\"65535\"/></DAT_input_output></UDP_IPv4></TransportProtocols>"
        "<CapabilityFlags canAcceptConfigPdus=\"true\" canHandleReset=\"true\"/>\n<Variables>%s"
        "</Variables></dcpSlaveDescription>",
        variables);
    check_ok(crd_dcp_parse(ctx, text, strlen(text), "mine.dcpx", &d, &f, &count));
    for (int i = 0; i < count; i++) {
        if (f[i].severity == CRD_DCP_FAULT) { fail_msg("%s", f[i].text); }
    }
    return d;
}

// ---- runs --------------------------------------------------------------------------------------

// A unit stepped by the same calls, without a slave.
typedef struct direct {
    crd_context* ctx;
    crd_unit_spec spec;
    crd_unit* u;
    crd_binding *in, *out;
    double f, y[8];
    int32_t outputs[8];
    int count;
} direct;

static void direct_open(direct* x, const crd_unit_spec* spec, const char* const* outputs, int count)
{
    *x = (direct){.ctx = crd_context_create(NULL), .spec = *spec, .count = count};
    x->spec.name = "direct";
    const crd_experiment e = {.start = 0};
    if (crd_unit_create(x->ctx, &x->spec, &x->u) < 0) { fail_msg("%s", crd_error_text(x->ctx)); }
    x->u->input_order = 0;
    const int32_t f = x->u->ops->find(x->u, "f");
    check_ok(crd_binding_create(x->u, &f, 1, &x->in));
    for (int i = 0; i < count; i++) {
        x->outputs[i] = x->u->ops->find(x->u, outputs[i]);
    }
    check_ok(crd_binding_create(x->u, x->outputs, count, &x->out));
    check_ok(crd_unit_instantiate(x->u));
    check_ok(x->u->ops->enter_initialization(x->u, &e));
}

static void direct_set(direct* x, double f)
{
    x->f = f;
    check_ok(x->u->ops->set(x->u, x->in, &(crd_values){.real = &x->f}));
}

static void direct_get(direct* x)
{
    check_ok(x->u->ops->get(x->u, x->out, &(crd_values){.real = x->y}));
}

static void direct_close(direct* x)
{
    check_ok(x->u->ops->terminate(x->u));
    crd_binding_destroy(x->in);
    crd_binding_destroy(x->out);
    crd_unit_destroy(x->u);
    crd_context_destroy(x->ctx);
}

static const char* const oscillator_outputs[] = {"x2", "v2"};

static double force(int n)
{
    return sin(0.3 * n) * 5 + (n % 7 == 0 ? 0.1 : 0);
}

// 40 steps of 1, 2 and 3 resolutions, compared to the last bit.
static void compare_with_direct(hand* h)
{
    direct x;
    direct_open(&x, &h->sys->units[0], oscillator_outputs, 2);
    h->ins[0].real[0] = force(0);
    hand_inputs(h);
    hand_initialize(h);
    direct_set(&x, force(0));
    direct_get(&x);
    check(h->outs[0].real[0] == x.y[0] && h->outs[1].real[0] == x.y[1]);
    hand_run(h);
    check_ok(x.u->ops->exit_initialization(x.u));
    int64_t done = 0;
    for (int n = 0; n < 40; n++) {
        const uint32_t steps = 1 + (uint32_t)n % 3;
        const double t = (double)done * 0.001, step = steps * 0.001;
        h->ins[0].real[0] = force(n);
        hand_inputs(h);
        direct_set(&x, force(n));
        check_ok(x.u->ops->step(x.u, t, step));
        hand_step(h, steps);
        direct_get(&x);
        if (h->outs[0].real[0] != x.y[0] || h->outs[1].real[0] != x.y[1]) {
            fail_msg("step %d: x2 = %.17g, %.17g; v2 = %.17g, %.17g", n, h->outs[0].real[0], x.y[0],
                     h->outs[1].real[0], x.y[1]);
        }
        done += steps;
    }
    check(fabs(x.y[0]) > 1e-6);
    direct_close(&x);
}

static void a_run_has_the_bits_of_the_unit_stepped_directly(void** state)
{
    for (int version = 0; version <= 4; version++) { // 4: FMI 2, Model Exchange
        if (version == 1) { continue; }
        hand h;
        hand_unit(&h, version == 4 ? 2 : version, "lo_fd2", &crd_model_lo_fd2);
        if (version == 4) { h.sys->units[0].interface = CRD_INTERFACE_MODEL_EXCHANGE; }
        hand_open(&h, NULL);
        hand_register(&h, CRD_DCP_NRT);
        for (int run = 0; run < 2; run++) { // again after a reset
            hand_configure(&h, 1000, "f", "x2 v2", "");
            hand_make_ready(&h);
            compare_with_direct(&h);
            hand_change(&h, CRDI_DCP_STC_STOP, "0f10");
            hand_change(&h, CRDI_DCP_STC_RESET, "01");
        }
        hand_close(&h);
    }
}

static void steps_allocate_nothing(void** state)
{
    hand h;
    hand_unit(&h, 3, "types", NULL);
    hand_open(&h, NULL);
    hand_register(&h, CRD_DCP_NRT);
    hand_configure(&h, 100, "in_f64 in_s in_f64s in_bin in_ss[2]",
                   "out_f64 out_s out_f64s out_bin out_ss[1] out_ss[2]", "par_f64 par_s");
    hand_make_ready(&h);
    hand_initialize(&h);
    hand_run(&h);
    const int64_t before = h.allocator.allocations;
    for (int n = 0; n < 20; n++) {
        h.ins[1].byte_count = (uint32_t)(3 * n);
        memset(h.ins[1].bytes, 'a', 3 * (size_t)n);
        h.tuned[0].real[0] = n;
        hand_inputs(&h);
        hand_tune(&h);
        hand_step(&h, 1);
    }
    check_int(h.allocator.allocations, before);
    hand_close(&h);
}

static void strings_binaries_and_arrays_pass(void** state)
{
    hand h;
    hand_unit(&h, 3, "types", NULL);
    hand_open(&h, NULL);
    hand_register(&h, CRD_DCP_NRT);
    hand_configure(&h, 100, "in_s in_bin in_f64s in_bs in_ss[2] in_e in_u64 in_i8",
                   "out_s out_bin out_f64s out_bs out_ss[1] out_ss[2] out_e out_u64 out_i8 "
                   "par_out_s par_out_f64 par_out_ss[1] par_out_ss[2]",
                   "par_f64 par_ss[1]");
    mirror p;
    hand_mirror(&h, &p, "par_s");
    p.byte_count = 5;
    memcpy(p.bytes, "\xc3\xa9t\xc3\xa9", 5);
    hand_parameter(&h, &p);
    hand_make_ready(&h);
    hand_run(&h);
    mirror* in = h.ins;
    memcpy(in[0].bytes, "words & <more>", in[0].byte_count = 14);
    memcpy(in[1].bytes, "\0\1\xff\0", in[1].byte_count = 4);
    memcpy(in[2].real, (double[]){0.5, -1e300, 3}, 3 * sizeof(double));
    memcpy(in[3].integer, (int64_t[]){1, 0, 7}, 3 * sizeof(int64_t)); // 7 is true
    memcpy(in[4].bytes, "second", in[4].byte_count = 6);
    in[5].integer[0] = 3;
    in[6].integer[0] = -1; // 2^64 - 1
    in[7].integer[0] = -128;
    hand_inputs(&h);
    h.tuned[0].real[0] = 42.5;
    memcpy(h.tuned[1].bytes, "tuned", h.tuned[1].byte_count = 5);
    hand_tune(&h);
    hand_step(&h, 1);
    mirror* out = h.outs;
    check_int(out[0].byte_count, 14);
    check(memcmp(out[0].bytes, "words & <more>", 14) == 0);
    check_int(out[1].byte_count, 4);
    check(memcmp(out[1].bytes, "\0\1\xff\0", 4) == 0);
    check(out[2].real[1] == -1e300 && out[2].real[2] == 3);
    check_int(out[3].integer[0], 1);
    check_int(out[3].integer[1], 0);
    check_int(out[3].integer[2], 1);
    check(out[4].byte_count == 4 && memcmp(out[4].bytes, "text", 4) == 0);
    check(out[5].byte_count == 6 && memcmp(out[5].bytes, "second", 6) == 0);
    check_int(out[6].integer[0], 3);
    check_int(out[7].integer[0], -1);
    check_int(out[8].integer[0], -128);
    check(out[9].byte_count == 5 && memcmp(out[9].bytes, "\xc3\xa9t\xc3\xa9", 5) == 0);
    check_near(out[10].real[0], 42.5, 0);
    check(out[11].byte_count == 5 && memcmp(out[11].bytes, "tuned", 5) == 0);
    check(out[12].byte_count == 4 && memcmp(out[12].bytes, "text", 4) == 0);
    hand_close(&h);
}

static void structural_parameters_size_the_arrays(void** state)
{
    hand h;
    hand_context(&h);
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = "library";
    u.source = CRD_UNIT_FMU;
    u.path = TEST_BUILD_DIR "/unit_fmu3";
    check_ok(crd_system_add_unit(h.sys, &u, NULL));
    h.sys->single = true;
    hand_open_with(&h, NULL);
    check_no_findings(&h);
    const crd_dcp_variable* m = hand_variable(&h, "m");
    check_int(m->rank, 2);
    check(m->is_linked[0] && !m->is_linked[1]);
    check_int(m->linked[0], hand_variable(&h, "n")->vr);
    check_int(m->dimensions[1], 3);
    check_int(hand_variable(&h, "sum")->initial_dependency_count, 2);
    check_int(hand_variable(&h, "n")->causality, CRD_STRUCTURAL_PARAMETER);
    // This library cannot tell the values of all its inputs.
    crd_dcp_description* d = parse(
        "<Variable name=\"a\" valueReference=\"1\"><Input><Float64 start=\"0 0\"/><Dimensions>"
        "<Dimension linkedVR=\"3\"/></Dimensions></Input></Variable>"
        "<Variable name=\"sum\" valueReference=\"2\"><Output fixedSteps=\"true\"><Float64 "
        "start=\"0\"/></Output></Variable>"
        "<Variable name=\"n\" valueReference=\"3\" variability=\"fixed\"><StructuralParameter>"
        "<Uint64 start=\"2\"/></StructuralParameter></Variable>",
        h.ctx);
    check_ok(crdi_serve_use(h.serve, d));
    h.d = d;
    hand_start(&h);
    hand_register(&h, CRD_DCP_NRT);
    for (int n = 4; n >= 1; n -= 3) { // 4, then 1 after a reset
        mirror p;
        hand_mirror(&h, &p, "n");
        p.integer[0] = n;
        hand_parameter(&h, &p);
        hand_configure(&h, 100, "a", "sum", "");
        h.ins[0].slot.count = (uint32_t)n;
        hand_make_ready(&h);
        hand_run(&h);
        for (int i = 0; i < n; i++) {
            h.ins[0].real[i] = i + 1;
        }
        hand_inputs(&h);
        hand_step(&h, 1);
        check_near(h.outs[0].real[0], n * (n + 1) / 2, 0);
        hand_change(&h, CRDI_DCP_STC_STOP, "0f10");
        hand_change(&h, CRDI_DCP_STC_RESET, "01");
    }
    hand_configure(&h, 100, "a", "sum", ""); // as described: two elements
    hand_make_ready(&h);
    hand_run(&h);
    h.ins[0].real[0] = h.ins[0].real[1] = 10;
    hand_inputs(&h);
    hand_step(&h, 1);
    check_near(h.outs[0].real[0], 20, 0);
    crdi_serve_destroy(h.serve);
    h.serve = NULL;
    crd_dcp_description_destroy(d);
    hand_close(&h);
}

static void one_master_after_the_other_finds_a_fresh_unit(void** state)
{
    hand h;
    hand_unit(&h, 3, "lo_fd2", NULL);
    hand_open(&h, NULL);
    double first = 0;
    for (int i = 0; i < 3; i++) {
        hand_register(&h, CRD_DCP_NRT);
        hand_configure(&h, 100, "f", "x2", "");
        if (i == 1) { // a session that ends before it has begun
            hand_do(&h, .type = CRDI_DCP_STC_DEREGISTER);
            continue;
        }
        hand_make_ready(&h);
        hand_run(&h);
        h.ins[0].real[0] = 10;
        hand_inputs(&h);
        hand_step(&h, 7);
        if (i == 0) { first = h.outs[0].real[0]; }
        check(h.outs[0].real[0] == first);
        hand_change(&h, CRDI_DCP_STC_STOP, "0f10");
        hand_do(&h, .type = CRDI_DCP_STC_DEREGISTER);
        check_text(h.states, "00");
    }
    hand_close(&h);
}

static void an_error_before_anything_ran_leaves_the_unit_as_it_was(void** state)
{
    hand h;
    crdi_serve_options opt = crdi_serve_defaults();
    opt.heartbeat = 1;
    hand_unit(&h, 2, "lo_fd2", NULL);
    hand_open(&h, &opt);
    hand_register(&h, CRD_DCP_NRT);
    h.states[0] = 0;
    h.now += 2;
    crd_dcp_slave_advance(crdi_serve_slave(h.serve), h.now);
    hand_look(&h);
    check_text(h.states, "1112");
    hand_do(&h, .type = CRDI_DCP_STC_DEREGISTER);
    hand_register(&h, CRD_DCP_NRT);
    hand_configure(&h, 100, "f", "x2", "");
    hand_make_ready(&h);
    hand_run(&h);
    hand_step(&h, 1);
    check_text(crdi_serve_failure(h.serve), "");
    crdi_serve_leave(h.serve, h.now); // in the middle of it: the master hears of it
    h.states[0] = 0;
    hand_look(&h);
    check_text(h.states, "0f10");
    hand_close(&h);
}

static void in_soft_real_time_the_clock_makes_the_steps(void** state)
{
    hand h;
    hand_unit(&h, 0, "", &crd_model_lo_fd2);
    hand_open(&h, NULL);
    hand_register(&h, CRD_DCP_SRT);
    hand_configure(&h, 100, "f", "x2 v2", "");
    hand_make_ready(&h);
    hand_run(&h);
    direct x;
    direct_open(&x, &h.sys->units[0], oscillator_outputs, 2);
    check_ok(x.u->ops->exit_initialization(x.u));
    const int first = (int)crd_dcp_slave_get_counts(crdi_serve_slave(h.serve)).steps;
    for (int n = 0; n < first; n++) { // until it was told to run
        check_ok(x.u->ops->step(x.u, n * 0.01, 0.01));
    }
    for (int n = first; n < 30; n++) {
        h.ins[0].real[0] = force(n);
        hand_inputs(&h);
        const double due = crd_dcp_slave_next(crdi_serve_slave(h.serve));
        h.now = due > h.now ? due : h.now;
        crd_dcp_slave_advance(crdi_serve_slave(h.serve), h.now);
        hand_look(&h);
        direct_set(&x, force(n));
        check_ok(x.u->ops->step(x.u, n * 0.01, 0.01));
        direct_get(&x);
        check(h.outs[0].real[0] == x.y[0] && h.outs[1].real[0] == x.y[1]);
    }
    direct_close(&x);
    check_int(crd_dcp_slave_get_counts(crdi_serve_slave(h.serve)).steps, 30);
    hand_close(&h);
}

// ---- systems -----------------------------------------------------------------------------------

static void add_oscillator(crd_system* s)
{
    crd_unit_spec u = crd_unit_spec_defaults();
    u.source = CRD_UNIT_NATIVE;
    u.name = "first";
    u.model = &crd_model_lo_fd1;
    check_ok(crd_system_add_unit(s, &u, NULL));
    u.name = "second";
    u.model = &crd_model_lo_fd2;
    check_ok(crd_system_add_unit(s, &u, NULL));
    crd_connection_spec c = crd_connection_spec_defaults();
    c.from_unit = 1;
    c.to_unit = 0;
    c.from = c.to = "x2";
    check_ok(crd_system_add_connection(s, &c));
    c.from = c.to = "v2";
    check_ok(crd_system_add_connection(s, &c));
    s->run.step = 0.001;
}

static void a_system_has_its_free_inputs_and_runs_as_the_master_runs_it(void** state)
{
    hand h;
    hand_context(&h);
    add_oscillator(h.sys);
    hand_open(&h, NULL);
    check_no_findings(&h);
    for (int i = 0; i < h.d->variable_count; i++) {
        check(strcmp(h.d->variables[i].name, "first.x2") != 0); // it is connected
    }
    check_int(hand_variable(&h, "second.f")->causality, CRD_INPUT);
    check_int(hand_variable(&h, "first.kc")->causality, CRD_PARAMETER);
    check(h.d->fixed_resolution);
    check_int(h.d->resolutions[0].denominator, 1000);
    hand_register(&h, CRD_DCP_NRT);
    double found[2] = {0};
    for (int run = 0; run < 2; run++) {
        hand_configure(&h, 0, "second.f", "first.f second.x2 second.v2", "");
        mirror p;
        hand_mirror(&h, &p, "first.kc");
        p.real[0] = 3;
        hand_parameter(&h, &p);
        hand_make_ready(&h);
        h.ins[0].real[0] = 2.5;
        hand_inputs(&h);
        hand_initialize(&h);
        hand_initialize(&h); // once more: the loop of a master
        hand_run(&h);
        for (int n = 0; n < 25; n++) {
            hand_inputs(&h);
            hand_step(&h, 4);
        }
        // The same by the master alone, with the input as a start value.
        crd_system* s = NULL;
        crd_master* m = NULL;
        check_ok(crd_system_create(h.ctx, &s));
        add_oscillator(s);
        s->run.stop = 0.1;
        const crd_place nowhere = {"", 0};
        check_ok(crd_system_set(s, 1, "f", "2.5", nowhere));
        check_ok(crd_system_set(s, 0, "kc", "3", nowhere));
        check_ok(crd_master_create(h.ctx, s, NULL, &m));
        check_ok(crd_master_run(m));
        const char* const names[] = {"first.f", "second.x2", "second.v2"};
        for (int i = 0; i < 3; i++) {
            check_ok(crd_master_value(m, names[i], &found[0]));
            if (found[0] != h.outs[i].real[0]) {
                fail_msg("%s = %.17g, expected %.17g", names[i], h.outs[i].real[0], found[0]);
            }
        }
        check(fabs(found[0]) > 1e-3);
        crd_master_destroy(m);
        crd_system_destroy(s);
        hand_change(&h, CRDI_DCP_STC_STOP, "0f10");
        hand_change(&h, CRDI_DCP_STC_RESET, "01");
    }
    hand_close(&h);
}

static void connectors_of_a_package_name_what_they_lead_to(void** state)
{
    hand h;
    hand_context(&h);
    add_oscillator(h.sys);
    const crd_transformation plain[2] = {{.unit = "N", .gain = 1, .convert_units = true},
                                         {.unit = "", .gain = 1, .convert_units = true}};
    const crd_transformation doubled[2] = {{.unit = "", .gain = 1}, {.unit = "", .gain = 2}};
    const crd_port stiff = {
        .name = "stiffness", .unit = 0, .variable = "kc", .stages = doubled, .stage_count = 2};
    const crd_port push = {.name = "push",
                           .unit = 1,
                           .variable = "f",
                           .stages = plain,
                           .stage_count = 2,
                           .next = &stiff};
    h.sys->ports = &push;
    hand_open(&h, NULL);
    check_no_findings(&h);
    check_int(hand_variable(&h, "push")->causality, CRD_INPUT);
    check_int(hand_variable(&h, "first.kc")->causality, CRD_PARAMETER); // not what goes in there
    hand_register(&h, CRD_DCP_NRT);
    hand_configure(&h, 0, "push", "second.x2", "");
    hand_make_ready(&h);
    hand_run(&h);
    h.ins[0].real[0] = 1;
    hand_inputs(&h);
    hand_step(&h, 10);
    h.sys->ports = NULL;
    hand_close(&h);
}

static void a_system_with_steps_of_its_own_is_refused(void** state)
{
    hand h;
    hand_context(&h);
    add_oscillator(h.sys);
    h.sys->run.control.on = true;
    check_status(crdi_serve_create(h.ctx, h.sys, NULL, &h.serve), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(h.ctx), "run.control");
    hand_close(&h);
}

// ---- failures ----------------------------------------------------------------------------------

static void faulty_run(hand* h, int mode, double when)
{
    mirror p;
    hand_mirror(h, &p, "mode");
    p.integer[0] = mode;
    hand_parameter(h, &p);
    hand_mirror(h, &p, "when");
    p.real[0] = when;
    hand_parameter(h, &p);
    hand_log(h);
    hand_configure(h, 100, "u", "y", "");
    hand_make_ready(h);
    hand_run(h);
    hand_step(h, 1);
    check_near(h->outs[0].real[0], 0.01, 1e-15);
}

static void a_failing_or_crashing_fmu_ends_in_error_and_a_reset_makes_a_new_one(void** state)
{
    // error, fatal, segmentation fault, exit
    static const int modes[] = {3, 4, 7, 12};
    static const char* const says[] = {"this step fails, as asked for", "fmi", "crashed in fmi",
                                       "process with exit()"};
    hand h;
    hand_unit(&h, 2, "faulty", NULL);
    hand_open(&h, NULL);
    hand_register(&h, CRD_DCP_NRT);
    for (int i = 0; i < 4; i++) {
        h.logs[0] = 0;
        faulty_run(&h, modes[i], 0.005);
        hand_do(&h, .type = CRDI_DCP_STC_DO_STEP, .steps = 1);
        check_text(h.states, "0c1112");
        check_contains(h.logs, "1:");
        check_contains(h.logs, says[i]);
        check_contains(crdi_serve_failure(h.serve), says[i]);
        const crdi_dcp_pdu a = hand_ask(&h, (crdi_dcp_pdu){.type = CRDI_DCP_INF_ERROR});
        check_int(a.error, CRD_DCP_E_GENERIC);
        hand_change(&h, CRDI_DCP_STC_RESET, "01");
        faulty_run(&h, 0, 0);
        hand_change(&h, CRDI_DCP_STC_STOP, "0f10");
        hand_change(&h, CRDI_DCP_STC_RESET, "01");
    }
    hand_close(&h);
}

static void messages_of_a_unit_become_log_entries(void** state)
{
    hand h;
    hand_unit(&h, 3, "faulty", NULL);
    hand_open(&h, NULL);
    hand_register(&h, CRD_DCP_NRT);
    faulty_run(&h, 1, 0.005); // warnings
    h.logs[0] = 0;
    hand_step(&h, 1);
    check_contains(h.logs, "3:");
    check_contains(h.logs, "gives a warning, as asked for");
    hand_close(&h);
}

static void a_bad_start_and_a_wish_to_stop_are_told(void** state)
{
    hand h;
    hand_unit(&h, 2, "faulty", NULL);
    hand_open(&h, NULL);
    hand_register(&h, CRD_DCP_NRT);
    mirror p;
    hand_mirror(&h, &p, "mode");
    p.integer[0] = 9; // the initialisation fails
    hand_parameter(&h, &p);
    hand_configure(&h, 100, "u", "y", "");
    hand_make_ready(&h);
    hand_do(&h, .type = CRDI_DCP_STC_RUN);
    check_text(h.states, "091112");
    check_contains(crdi_serve_failure(h.serve), "initialisation fails");
    hand_change(&h, CRDI_DCP_STC_RESET, "01");
    faulty_run(&h, 6, 0.005); // wants the end
    hand_step(&h, 1);
    hand_do(&h, .type = CRDI_DCP_STC_DO_STEP, .steps = 1);
    check_text(h.states, "0c1112");
    check_contains(crdi_serve_failure(h.serve), "has ended the run at t = 0.02 s");
    hand_close(&h);
}

// ---- descriptions that are given ---------------------------------------------------------------

static void a_description_that_fits_is_used_with_its_start_values(void** state)
{
    hand h;
    hand_unit(&h, 3, "types", NULL);
    hand_open_with(&h, NULL);
    crd_dcp_description* d = parse(
        "<Variable name=\"in_f64\" valueReference=\"7\" variability=\"continuous\"><Input><Float64 "
        "start=\"4.5\"/></Input></Variable>"
        "<Variable name=\"in_ss[2]\" valueReference=\"8\" variability=\"discrete\"><Input><String "
        "maxSize=\"20\" start=\"other\"/></Input></Variable>"
        "<Variable name=\"out_f64\" valueReference=\"9\" variability=\"continuous\"><Output "
        "fixedSteps=\"true\"><Float64 start=\"0\"/></Output></Variable>"
        "<Variable name=\"out_ss[2]\" valueReference=\"10\" variability=\"discrete\"><Output "
        "fixedSteps=\"true\"><String maxSize=\"20\" start=\"\"/></Output></Variable>",
        h.ctx);
    check_ok(crdi_serve_use(h.serve, d));
    h.d = crdi_serve_description(h.serve);
    check_text(h.d->name, "mine");
    hand_start(&h);
    hand_register(&h, CRD_DCP_NRT);
    hand_configure(&h, 100, "", "out_f64 out_ss[2]", "");
    hand_make_ready(&h);
    hand_run(&h);
    hand_step(&h, 1);
    check_near(h.outs[0].real[0], 4.5, 0);
    check(h.outs[1].byte_count == 5 && memcmp(h.outs[1].bytes, "other", 5) == 0);
    crdi_serve_destroy(h.serve);
    h.serve = NULL;
    crd_dcp_description_destroy(d);
    hand_close(&h);
}

static void a_description_that_does_not_fit_is_refused_with_the_reason(void** state)
{
    static const struct {
        const char *xml, *says;
    } rows[] = {
        {"<Variable name=\"in_f6\" valueReference=\"7\"><Input><Float64 start=\"4.5\"/></Input>"
         "</Variable>",
         "mine.dcpx:3: there is no variable 'in_f6' to be served, did you mean in_f64?"},
        {"<Variable name=\"in_f64\" valueReference=\"7\"><Input><Float32 start=\"4.5\"/></Input>"
         "</Variable>",
         "'in_f64' is float32, expected float64"},
        {"<Variable name=\"in_f64\" valueReference=\"7\"><Output fixedSteps=\"true\"><Float64 "
         "start=\"4.5\"/></Output></Variable>",
         "'in_f64' is an output, expected an input"},
        {"<Variable name=\"in_f64s\" valueReference=\"7\"><Input><Float64 start=\"4 5\"/>"
         "<Dimensions><Dimension constant=\"2\"/></Dimensions></Input></Variable>",
         "'in_f64s' has other dimensions"},
    };
    hand h;
    hand_unit(&h, 3, "types", NULL);
    hand_open_with(&h, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crd_dcp_description* d = parse(rows[i].xml, h.ctx);
        check(crdi_serve_use(h.serve, d) < 0);
        check_contains(crd_error_text(h.ctx), rows[i].says);
        check(crdi_serve_description(h.serve) == h.d);
        crd_dcp_description_destroy(d);
    }
    hand_close(&h);
}

// ---- memory ------------------------------------------------------------------------------------

static void create_survives_every_failing_allocation(void** state)
{
    for (int what = 0; what < 2; what++) { // one unit, a system
        hand h;
        if (what == 0) {
            hand_unit(&h, 0, "", &crd_model_types);
        } else {
            hand_context(&h);
            add_oscillator(h.sys);
        }
        const int64_t idle = h.allocator.live;
        const crd_dcp_link link = {.user = &h, .send = hand_send};
        int64_t n = 0;
        for (;; n++) {
            h.allocator.fail_at = h.allocator.allocations + n;
            crd_status st = crdi_serve_create(h.ctx, h.sys, NULL, &h.serve);
            if (st == CRD_OK) { st = crdi_serve_start(h.serve, &link, NULL, NULL, NULL); }
            h.allocator.fail_at = -1;
            if (st == CRD_OK) { break; }
            check_status(st, CRD_E_MEMORY);
            crdi_serve_destroy(h.serve);
            h.serve = NULL;
            check_int(h.allocator.live, idle);
        }
        check(n > 20);
        hand_close(&h);
    }
}

static void preparing_survives_every_failing_allocation(void** state)
{
    hand h;
    hand_unit(&h, 0, "", &crd_model_types);
    hand_open(&h, NULL);
    hand_register(&h, CRD_DCP_NRT);
    for (int64_t n = 0;; n++) {
        hand_configure(&h, 100, "in_f64 in_s", "out_f64 out_s", "par_s");
        h.allocator.fail_at = h.allocator.allocations + n;
        hand_do(&h, .type = CRDI_DCP_STC_PREPARE);
        h.allocator.fail_at = -1;
        if (strcmp(h.states, "0203") == 0) { break; }
        check_text(h.states, "021112");
        check_contains(crdi_serve_failure(h.serve), "memory");
        hand_change(&h, CRDI_DCP_STC_RESET, "01");
        check(n < 10000);
    }
    hand_change(&h, CRDI_DCP_STC_CONFIGURE, "0405");
    hand_run(&h);
    hand_step(&h, 1);
    hand_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_described_without_findings),
        cmocka_unit_test(settings_are_start_values_and_equal_fmus_have_equal_uuids),
        cmocka_unit_test(options_shape_the_description),
        cmocka_unit_test(signals_and_recordings_are_slaves_too),
        cmocka_unit_test(a_run_has_the_bits_of_the_unit_stepped_directly),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(strings_binaries_and_arrays_pass),
        cmocka_unit_test(structural_parameters_size_the_arrays),
        cmocka_unit_test(one_master_after_the_other_finds_a_fresh_unit),
        cmocka_unit_test(an_error_before_anything_ran_leaves_the_unit_as_it_was),
        cmocka_unit_test(in_soft_real_time_the_clock_makes_the_steps),
        cmocka_unit_test(a_system_has_its_free_inputs_and_runs_as_the_master_runs_it),
        cmocka_unit_test(connectors_of_a_package_name_what_they_lead_to),
        cmocka_unit_test(a_system_with_steps_of_its_own_is_refused),
        cmocka_unit_test(a_failing_or_crashing_fmu_ends_in_error_and_a_reset_makes_a_new_one),
        cmocka_unit_test(messages_of_a_unit_become_log_entries),
        cmocka_unit_test(a_bad_start_and_a_wish_to_stop_are_told),
        cmocka_unit_test(a_description_that_fits_is_used_with_its_start_values),
        cmocka_unit_test(a_description_that_does_not_fit_is_refused_with_the_reason),
        cmocka_unit_test(create_survives_every_failing_allocation),
        cmocka_unit_test(preparing_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
