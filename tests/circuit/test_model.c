// A circuit as a model: its rows, its steps, its parameters, its states.
#include "check.h"
#include "circuit/model.h"
#include "shared/circuit_model.h"

#include <stdio.h>
#include <sys/stat.h>

#define DATA TEST_SOURCE_DIR "/circuit/data/"

static const char ladder[] = "low-pass\n"
                             ".param r=100 c={1u} twice={2*r}\n"
                             ".input U unit=V start=1\n"
                             "Vin in 0 input(U)\n"
                             "R1 in mid {r}\nC1 mid 0 {c} ic=0.5\n"
                             "R2 mid out {twice}\nC2 out 0 {c} ic=0.25\n"
                             ".tran 10u 10m uic\n"
                             ".output v(out) power={v(in)*i(R1)} unit=W sum={v(out)+U} unit=kV\n";

typedef struct fixture {
    check_allocator memory;
    crd_context* ctx;
} fixture;

static int set_up(void** state)
{
    static fixture f;
    f.ctx = check_context(&f.memory);
    *state = &f;
    return 0;
}

static int tear_down(void** state)
{
    fixture* f = *state;
    crd_context_destroy(f->ctx);
    check_int(f->memory.live, 0);
    return 0;
}

static const crd_model* make_with(fixture* f, const char* text, crdi_circuit_model_options opt)
{
    const crd_model* m = NULL;
    if (crdi_circuit_model_create(f->ctx, text, strlen(text), "n.cir", &opt, &m) < 0) {
        fail_msg("%s", crd_error_text(f->ctx));
    }
    return m;
}

static const crd_model* make(fixture* f, const char* text)
{
    return make_with(f, text, crdi_circuit_model_defaults());
}

// ---- an instance, as an FMU has one
// --------------------------------------------------------------

typedef struct instance {
    const crd_model* m;
    char* self;
    char said[512];
    crd_model_host host;
    double time;
} instance;

static void host_log(void* user, crd_model_status status, const char* text)
{
    instance* i = user;
    (void)status;
    snprintf(i->said, sizeof i->said, "%s", text);
}

static void start(instance* i, const crd_model* m)
{
    *i = (instance){.m = m, .self = calloc(1, m->size)};
    i->host = (crd_model_host){.user = i, .log = host_log, .resources = "", .model = m};
    crd_model_reset(m, i->self);
}

static void end(instance* i)
{
    i->m->clear(i->self);
    free(i->self);
}

static const crd_model_variable* row(const crd_model* m, const char* name)
{
    for (int k = 0; k < m->variable_count; k++) {
        if (strcmp(m->variables[k].name, name) == 0) { return &m->variables[k]; }
    }
    fail_msg("no variable %s", name);
    return NULL;
}

static double* value(instance* i, const char* name)
{
    return (double*)(void*)(i->self + row(i->m, name)->offset);
}

static double* slopes(instance* i, const char* name)
{
    return (double*)(void*)(i->self + row(i->m, name)->derivatives);
}

static void initialize(instance* i, double t)
{
    if (i->m->initialize(i->self, &i->host, t) != CRD_MODEL_OK) { fail_msg("%s", i->said); }
    i->m->outputs(i->self, t);
    i->time = t;
}

static crd_model_status try_step(instance* i, double h)
{
    double reached = i->time + h;
    const crd_model_status st = i->m->step(i->self, &i->host, i->time, h, &reached);
    if (st != CRD_MODEL_OK) { return st; }
    for (int k = 0; k < i->m->variable_count; k++) {
        const crd_model_variable* v = &i->m->variables[k];
        if (v->causality == CRD_INPUT) { crd_model_advance(v, i->self, h); }
    }
    i->time = reached;
    i->m->outputs(i->self, reached);
    return CRD_MODEL_OK;
}

static void step(instance* i, double h)
{
    if (try_step(i, h) != CRD_MODEL_OK) { fail_msg("%s", i->said); }
}

// ---- rows
// ------------------------------------------------------------------------------------------

static void rows_are_inputs_outputs_and_plain_parameters(void** state)
{
    const crd_model* m = make(*state, ladder);
    check_int(m->variable_count, 7); // not `twice`, which follows from r
    check_text(m->description, "low-pass");
    check_near(m->default_step, 1e-5, 1e-20);
    check_near(m->default_stop, 1e-2, 1e-17);
    const crd_model_variable* u = row(m, "U");
    check_int(u->causality, CRD_INPUT);
    check_text(u->unit, "V");
    check_near(u->start, 1, 0);
    check_int(row(m, "v(out)")->causality, CRD_OUTPUT);
    check_text(row(m, "v(out)")->unit, "V");
    check_text(row(m, "v(out)")->depends, ""); // seen by the next step only
    check_text(row(m, "sum")->depends, "U");
    check(row(m, "power")->starts_with_all);
    check_int(row(m, "r")->causality, CRD_PARAMETER);
    check_int(row(m, "r")->variability, CRD_FIXED);
    check_near(row(m, "c")->start, 1e-6, 0);
    check_near(row(m, "step")->start, m->default_step, 0);
    bool kilovolt = false;
    for (int i = 0; i < m->unit_count; i++) {
        if (strcmp(m->units[i].name, "kV") != 0) { continue; }
        kilovolt = m->units[i].factor == 1000 && m->units[i].exponents[0] == 1;
    }
    check(kilovolt);
    check(m->max_input_derivative == 2 && m->max_output_derivative == 1);
    check(!m->pinned && !m->stateless);
    crdi_circuit_model_destroy(m);
}

static void numbers_in_any_dress_are_parameters_and_expressions_are_not(void** state)
{
    const crd_model* m =
        make(*state, "t\n.param a = 1 , b=-2k Cap={ 3 } d='4' e=1+1 f={a} g = 5 ; not h=6\n"
                     "+ i=7u j=2 * a k=-a l=8\n.subckt s x\n.param inner=1\nR1 x 0 {inner}\n.ends\n"
                     "X1 n s\nV1 n 0 1\n.tran 1 10\n.output v(n)\n");
    static const struct {
        const char* name;
        double start;
    } rows[] = {{"v(n)", 0}, {"a", 1},    {"b", -2000}, {"Cap", 3}, {"d", 4},
                {"g", 5},    {"i", 7e-6}, {"l", 8},     {"step", 1}};
    check_int(m->variable_count, sizeof rows / sizeof *rows);
    for (int i = 0; i < m->variable_count; i++) {
        check_text(m->variables[i].name, rows[i].name);
        check_near(m->variables[i].start, rows[i].start, 1e-20);
    }
    instance i;
    start(&i, m);
    *value(&i, "Cap") = 9; // which the reader knows by its small letters
    initialize(&i, 0);
    end(&i);
    crdi_circuit_model_destroy(m);
}

static void names_in_the_way_and_texts_for_xml_are_dealt_with(void** state)
{
    const crd_model* m = make(*state, "t\xfftle \x80\n.param step=3\nV1 a 0 1\nR1 a 0 {step}\n"
                                      ".tran 1 10\n.output v(a)\n");
    check_text(m->description, "t?tle ?");
    check_near(row(m, "step")->start, 3, 0);
    check_near(row(m, "circuit.step")->start, 1, 0);
    crdi_circuit_model_destroy(m);
}

static void what_makes_no_model_is_refused(void** state)
{
    fixture* f = *state;
    const struct {
        const char *text, *says;
    } wrong[] = {
        {"t\nV1 in 0 1\nR1 in 0 1\n.tran 1 1\n", ".output v(in)"},
        {"t\nV1 in 0 1\nR1 in 0 1\n.output v(in)\n", "step = nan s, expected > 0, or a line .tran"},
        {"t\n.param x=1\nV1 in 0 1\nR1 in 0 {x}\n.tran 1 1\n.output x=v(in)\n", "called 'x'"},
        {"t\nV1 in 0 1\nR1 in 0 1\n.tran 1 1\n.output time=v(in)\n", "FMI calls the time"},
        {"t\nV1 in 0 1\nR1 in 0\n.tran 1 1\n.output v(in)\n", "n.cir:3"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const crd_model* m = NULL;
        const crdi_circuit_model_options opt = crdi_circuit_model_defaults();
        check(crdi_circuit_model_create(f->ctx, wrong[i].text, strlen(wrong[i].text), "n.cir", &opt,
                                        &m) < 0);
        check(!m);
        check_contains(crd_error_text(f->ctx), wrong[i].says);
    }
}

// ---- steps
// -----------------------------------------------------------------------------------------

static void communication_steps_are_steps_of_the_circuit(void** state)
{
    fixture* f = *state;
    for (int method = 0; method <= CRD_METHOD_GAUSS4; method++) {
        crdi_circuit_model_options opt = crdi_circuit_model_defaults();
        opt.method = (crd_circuit_method)method;
        const crd_model* m = make_with(f, ladder, opt);
        crd_netlist* n = NULL;
        crd_circuit* c = NULL;
        crd_circuit_options o = crd_circuit_defaults();
        o.method = opt.method;
        o.step = m->default_step;
        check_ok(crd_netlist_parse(f->ctx, ladder, strlen(ladder), "n.cir", NULL, &n));
        check_ok(crd_circuit_create(f->ctx, n, &o, &c));
        check_ok(crd_circuit_begin(c, 0));
        (void)crd_circuit_get_output_derivative(c, 0); // as the model does
        instance i;
        start(&i, m);
        initialize(&i, 0);
        for (int k = 0; k < 50; k++) {
            for (int s = 0; s < 4; s++) {
                check_ok(crd_circuit_step(c));
            }
            step(&i, (k + 1) * 4e-5 - i.time); // a difference, with the bits that it loses
            check_near(*value(&i, "v(out)"), crd_circuit_get_output(c, 0), 0);
            check_near(*value(&i, "power"), crd_circuit_get_output(c, 1), 0);
            check_near(*slopes(&i, "v(out)"), crd_circuit_get_output_derivative(c, 0), 0);
        }
        end(&i);
        crd_circuit_destroy(c);
        crd_netlist_destroy(n);
        crdi_circuit_model_destroy(m);
    }
}

// A capacitor behind a resistor: v = 1 - exp(-t / RC), with steps of 1/50 RC at most.
static const char rc[] = "rc\n.param r=1 c=1\n.input u start=1\nV1 a 0 input(u)\nR1 a b {r}\n"
                         "C1 b 0 {c} ic=0\n.tran 0.02 10 uic\n.output v(b)\n";

static void communication_steps_of_any_length_end_where_they_should(void** state)
{
    const crd_model* m = make(*state, rc);
    static const double lengths[] = {0.02, 0.013, 0.05, 0.02, 0.031, 1e-3, 0.2, 0.0199999, 0.02001};
    instance i;
    start(&i, m);
    initialize(&i, 0);
    for (int k = 0; k < 90; k++) {
        step(&i, lengths[k % 9]);
        check_near(*value(&i, "v(b)"), 1 - exp(-i.time), 2e-5);
        check_near(*slopes(&i, "v(b)"), exp(-i.time), k ? 2e-3 : 0.02);
    }
    end(&i);
    crdi_circuit_model_destroy(m);
}

static void inputs_follow_their_derivatives_within_a_step(void** state)
{
    const crd_model* m = make(*state, rc);
    instance wide, fine;
    start(&wide, m);
    start(&fine, m);
    initialize(&wide, 0);
    initialize(&fine, 0);
    slopes(&wide, "u")[0] = 0.5;
    slopes(&wide, "u")[1] = -0.25;
    for (int k = 0; k < 10; k++) {
        step(&wide, 0.2);
        for (int s = 0; s < 10; s++) {
            const double t = fine.time + 0.02;
            *value(&fine, "u") = 1 + 0.5 * t - 0.125 * t * t;
            step(&fine, 0.02);
        }
        check_near(*value(&wide, "u"), *value(&fine, "u"), 1e-12);
        check_near(*value(&wide, "v(b)"), *value(&fine, "v(b)"), 1e-12);
    }
    check(fabs(*value(&wide, "v(b)") - (1 - exp(-wide.time))) > 0.01); // they matter
    end(&wide);
    end(&fine);
    crdi_circuit_model_destroy(m);
}

static void parameters_read_the_netlist_again(void** state)
{
    fixture* f = *state;
    const char* const defines[] = {"r=250", "c=2u"};
    crdi_circuit_model_options opt = crdi_circuit_model_defaults();
    opt.defines = defines;
    opt.define_count = 2;
    const crd_model *plain = make(f, ladder), *defined = make_with(f, ladder, opt);
    check_near(row(defined, "r")->start, 250, 0);
    instance a, b;
    start(&a, plain);
    start(&b, defined);
    initialize(&a, 0); // once as it is, and then anew
    const double before = *value(&a, "power");
    *value(&a, "r") = 250;
    *value(&a, "c") = 2e-6;
    initialize(&a, 0);
    initialize(&b, 0);
    check(*value(&a, "power") != before);
    for (int k = 0; k < 100; k++) {
        step(&a, 1e-5);
        step(&b, 1e-5);
        check_near(*value(&a, "v(out)"), *value(&b, "v(out)"), 0);
    }
    *value(&a, "step") = 0;
    check(a.m->initialize(a.self, &a.host, 0) == CRD_MODEL_ERROR);
    check_contains(a.said, "step = 0 s");
    *value(&a, "step") = 1e-5;
    *value(&a, "r") = NAN;
    check(a.m->initialize(a.self, &a.host, 0) == CRD_MODEL_ERROR);
    check_contains(a.said, "r = nan");
    a.m->outputs(a.self, 0); // nothing to look at, and nothing breaks
    *value(&a, "r") = 250;
    initialize(&a, 0);
    *value(&a, "U") = INFINITY;
    check(a.m->initialize(a.self, &a.host, 0) == CRD_MODEL_ERROR);
    check_contains(a.said, "U = inf");
    end(&a);
    end(&b);
    crdi_circuit_model_destroy(plain);
    crdi_circuit_model_destroy(defined);
}

static void a_step_that_fails_leaves_everything_as_it_was(void** state)
{
    // From 0.5 s on there is no such voltage.
    const crd_model* m = make(*state, "t\nB1 a 0 V={1+1m*ln(0.495-time)}\nR1 a b 1\n"
                                      "C1 b 0 1 ic=0\n.tran 0.01 1 uic\n.output v(b)\n");
    instance a, b;
    start(&a, m);
    start(&b, m);
    initialize(&a, 0);
    initialize(&b, 0);
    for (int k = 0; k < 4; k++) {
        step(&a, 0.1);
        step(&b, 0.1);
    }
    const double v = *value(&a, "v(b)");
    check_int(try_step(&a, 0.2), CRD_MODEL_DISCARD);
    check_contains(a.said, "t = 0.5 s");
    a.m->outputs(a.self, a.time);
    check_near(*value(&a, "v(b)"), v, 0);
    check_int(try_step(&a, 0.133), CRD_MODEL_DISCARD); // in steps of another length
    step(&a, 0.05);
    step(&b, 0.05);
    check_near(*value(&a, "v(b)"), *value(&b, "v(b)"), 1e-13);
    end(&a);
    end(&b);
    crdi_circuit_model_destroy(m);
}

// ---- states
// ----------------------------------------------------------------------------------------

typedef struct copy {
    char *self, *outside;
    size_t size;
    double time;
} copy;

static copy save(const instance* i)
{
    copy c = {malloc(i->m->size), NULL, i->m->outside(i->self), i->time};
    memcpy(c.self, i->self, i->m->size);
    c.outside = malloc(c.size + 1);
    if (c.size) { i->m->save(i->self, c.outside); }
    return c;
}

static crd_model_status restore(instance* i, const copy* c)
{
    const size_t kept = i->m->kept;
    memcpy(i->self + kept, c->self + kept, i->m->size - kept);
    i->time = c->time;
    return i->m->restore(i->self, &i->host, c->outside, c->size);
}

static void drop(copy* c)
{
    free(c->self);
    free(c->outside);
}

static const char chain[] = "chain\n.param n=3 twist=0.1\n.subckt cell a b\nR1 a b 10\n"
                            "D1 b 0 dd\nC1 b 0 1u ic=0\n.ends\n.model dd d(is=1e-14)\n"
                            "V1 in 0 sin(0 2 {1000*n})\nX1 in a cell\nX2 a b cell\n"
                            ".tran 2u 1m uic\n.output v(b) v(a)\n";

static void a_restored_state_goes_on_as_before(void** state)
{
    for (int method = 0; method <= CRD_METHOD_GAUSS4; method++) {
        crdi_circuit_model_options opt = crdi_circuit_model_defaults();
        opt.method = (crd_circuit_method)method;
        const crd_model* m = make_with(*state, chain, opt);
        instance a, b;
        start(&a, m);
        start(&b, m);
        copy early = save(&a);
        initialize(&a, 0);
        for (int k = 0; k < 20; k++) {
            step(&a, k % 3 ? 1e-5 : 7e-6); // steps of several lengths
        }
        copy middle = save(&a);
        double first[30], slope[30];
        for (int pass = 0; pass < 3; pass++) { // the same, once more, and in another instance
            instance* i = pass < 2 ? &a : &b;
            if (pass == 2) { *value(&b, "n") = 7; } // which had other parameters
            if (pass == 2) { initialize(&b, 0); }
            if (pass > 0) { check_int(restore(i, &middle), CRD_MODEL_OK); }
            for (int k = 0; k < 30; k++) {
                step(i, k % 4 ? 1e-5 : 3e-6);
                if (pass == 0) {
                    first[k] = *value(i, "v(b)");
                    slope[k] = *slopes(i, "v(b)");
                }
                check_near(*value(i, "v(b)"), first[k], 0);
                check_near(*slopes(i, "v(b)"), slope[k], 0);
            }
        }
        check_int(restore(&a, &early), CRD_MODEL_OK); // there was no circuit yet
        check_int(m->outside(a.self), 0);
        initialize(&a, 0);
        drop(&early);
        drop(&middle);
        end(&a);
        end(&b);
        crdi_circuit_model_destroy(m);
    }
}

static void a_state_that_is_none_is_refused(void** state)
{
    const crd_model* m = make(*state, chain);
    instance a;
    start(&a, m);
    initialize(&a, 0);
    step(&a, 1e-5);
    copy c = save(&a);
    for (size_t at = 0; at < c.size; at += 8) {
        c.outside[at] ^= 1;
        check_int(restore(&a, &c), CRD_MODEL_ERROR);
        c.outside[at] ^= 1;
    }
    c.size -= 8;
    check_int(restore(&a, &c), CRD_MODEL_ERROR);
    check_contains(a.said, "no state of this circuit");
    c.size = 4;
    check_int(restore(&a, &c), CRD_MODEL_ERROR);
    drop(&c);
    end(&a);
    crdi_circuit_model_destroy(m);
}

// ---- files
// -----------------------------------------------------------------------------------------

static void settings_are_read_as_they_were_written(void** state)
{
    fixture* f = *state;
    const char* const defines[] = {"n=10", "R=4.7k"};
    const crdi_circuit_model_options opt = {
        .name = "x", .method = CRD_METHOD_BDF2, .step = 1e-5 / 3, defines, 2};
    crdi_circuit_model_options found;
    crd_text t;
    crd_arena arena;
    crd_text_init(&t, f->ctx);
    crd_arena_init(&arena, f->ctx);
    check_ok(crdi_circuit_model_pack(f->ctx, &opt, &t));
    check_ok(crdi_circuit_settings(f->ctx, t.data, t.length, "s", &arena, &found));
    check_text(found.name, "x");
    check_int(found.method, CRD_METHOD_BDF2);
    check_near(found.step, 1e-5 / 3, 0);
    check_int(found.define_count, 2);
    check_text(found.defines[1], "R=4.7k");
    const char* const wrong[] = {"",
                                 "Cardan circuit 2",
                                 "Cardan circuit 1\nmethod euler",
                                 "Cardan circuit 1\nstep x",
                                 "Cardan circuit 1\n\n\nname",
                                 "Cardan circuit 1\nmagic 3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_status(crdi_circuit_settings(f->ctx, wrong[i], strlen(wrong[i]), "s", &arena, &found),
                     CRD_E_FORMAT);
        check_contains(crd_error_text(f->ctx), "s:");
    }
    crd_text_clear(&t);
    crd_arena_clear(&arena);
}

static void folders_without_a_circuit_say_so(void** state)
{
    char message[200];
    check(!crdi_circuit_model_load(TEST_BUILD_DIR "/nowhere", message, sizeof message));
    check_contains(message, "circuit.settings");
}

static void put(const char* name, const char* text)
{
    char path[400];
    snprintf(path, sizeof path, TEST_BUILD_DIR "/flat_netlist/%s", name);
    FILE* out = fopen(path, "w");
    check(out);
    fputs(text, out);
    fclose(out);
}

static void the_flat_netlist_has_all_files_in_it(void** state)
{
    fixture* f = *state;
    mkdir(TEST_BUILD_DIR "/flat_netlist", 0777);
    crd_netlist *n = NULL, *again = NULL;
    crd_text flat;
    crd_text_init(&flat, f->ctx);
    const crd_netlist_options o = {.flat = &flat};
    put("half.inc",
        "X1 in 0 half\n.subckt half a b\n* of it\n.include rest.inc\n.ends\n.end\nR9 a");
    put("rest.inc", "R1 a m {r}\n\n* here\n+\n.param r=\n+ 5\nR2 m b 2\n.control\n.include none");
    put("main.cir", "title\r\nV1 in 0 1 ; a source\n  .inc\n+ \"half.inc\"\nR3 in 0 3\n"
                    ".output v(in)\n.end\n.include none");
    check_ok(crd_netlist_load(f->ctx, TEST_BUILD_DIR "/flat_netlist/main.cir", &o, &n));
    check_ok(crd_netlist_parse(f->ctx, flat.data, flat.length, "flat", NULL, &again));
    check_text(again->title, "title");
    check_int(n->part_count, 4);
    check_int(again->part_count, n->part_count);
    for (int i = 0; i < n->part_count; i++) {
        check_text(again->names + again->parts[i].name, n->names + n->parts[i].name);
        check_near(again->parts[i].value, n->parts[i].value, 0);
        check(memcmp(again->parts[i].nodes, n->parts[i].nodes, sizeof n->parts[i].nodes) == 0);
    }
    check_int(again->output_count, 1);
    crd_netlist_destroy(n);
    crd_netlist_destroy(again);
    crd_text_clear(&flat);
}

// ---- memory
// ----------------------------------------------------------------------------------------

static void every_allocation_may_fail(void** state)
{
    for (int once = 0; once < 2; once++) {
        bool good = false;
        for (int fail_at = 0; !good; fail_at++) {
            check(fail_at < 5000);
            check_allocator a;
            crd_context* ctx = check_context(&a);
            const int64_t before = a.live;
            a.allocations = 0;
            a.fail_at = fail_at;
            a.once = once;
            const crd_model* m = NULL;
            const crdi_circuit_model_options opt = crdi_circuit_model_defaults();
            const crd_status st = crdi_circuit_model_create(ctx, rc, strlen(rc), "rc", &opt, &m);
            check(st == CRD_OK || st == CRD_E_MEMORY);
            if (m) {
                instance i;
                start(&i, m);
                *value(&i, "r") = 2; // the netlist once more
                good = m->initialize(i.self, &i.host, 0) == CRD_MODEL_OK;
                check(good || strstr(i.said, "memory"));
                m->outputs(i.self, 0);
                end(&i);
            }
            crdi_circuit_model_destroy(m);
            check_int(a.live, before);
            crd_context_destroy(ctx);
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(rows_are_inputs_outputs_and_plain_parameters),
        TEST(numbers_in_any_dress_are_parameters_and_expressions_are_not),
        TEST(names_in_the_way_and_texts_for_xml_are_dealt_with),
        TEST(what_makes_no_model_is_refused),
        TEST(communication_steps_are_steps_of_the_circuit),
        TEST(communication_steps_of_any_length_end_where_they_should),
        TEST(inputs_follow_their_derivatives_within_a_step),
        TEST(parameters_read_the_netlist_again),
        TEST(a_step_that_fails_leaves_everything_as_it_was),
        TEST(a_restored_state_goes_on_as_before),
        TEST(a_state_that_is_none_is_refused),
        TEST(settings_are_read_as_they_were_written),
        TEST(folders_without_a_circuit_say_so),
        TEST(the_flat_netlist_has_all_files_in_it),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
