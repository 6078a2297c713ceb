// Netlists: what is in them, what is refused, and that large ones are quick.
#include "cardan/circuit.h"
#include "check.h"
#include "shared/circuit_part.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define DATA TEST_SOURCE_DIR "/circuit/data/"

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

// The text has no title: one is put in front, on the same line number 1.
static crd_status parse(fixture* f, const char* text, crd_netlist** out)
{
    char* whole = malloc(strlen(text) + 8);
    sprintf(whole, "title\n%s", text);
    const crd_status st = crd_netlist_parse(f->ctx, whole, strlen(whole), "n.cir", NULL, out);
    free(whole);
    return st;
}

static crd_netlist* good(fixture* f, const char* text)
{
    crd_netlist* n = NULL;
    if (parse(f, text, &n) < 0) { fail_msg("%s\n%s", text, crd_error_text(f->ctx)); }
    return n;
}

static crd_netlist* load(fixture* f, const char* name)
{
    char path[400];
    crd_netlist* n = NULL;
    snprintf(path, sizeof path, DATA "%s", name);
    if (crd_netlist_load(f->ctx, path, NULL, &n) < 0) { fail_msg("%s", crd_error_text(f->ctx)); }
    return n;
}

static const crd_part* part(const crd_netlist* n, const char* name)
{
    const int32_t i = crd_netlist_part(n, name);
    if (i < 0) { fail_msg("there is no part %s", name); }
    return &n->parts[i];
}

static double value_of(fixture* f, const char* card)
{
    char text[400];
    snprintf(text, sizeof text, "%s\n", card);
    crd_netlist* n = good(f, text);
    const double v = n->parts[0].value;
    crd_netlist_destroy(n);
    return v;
}

// ---- what is in them ---------------------------------------------------------------------------

static void the_rlc_circuit_is_read(void** state)
{
    crd_netlist* n = load(*state, "rlc.cir");
    check_contains(n->title, "Rodriguez 2021");
    check_int(n->part_count, 5);
    check_int(n->node_count, 3);
    check_text(n->nodes[0], "0");
    const crd_part* v = part(n, "VSOURCE");
    check_int(v->kind, CRD_PART_VOLTAGE);
    check_near(crd_waveform_eval(&n->waves[v->index], 0.05, NULL), 100, 1e-12);
    check_near(crd_waveform_eval(&n->waves[v->index], 0.01, NULL), 30.901699437494742, 1e-12);
    check_near(part(n, "c1")->value, 0.4, 1e-16);
    check(part(n, "l1")->has_ic);
    check_int(part(n, "l1")->line, 6);
    check_int(part(n, "r1")->nodes[1], crd_netlist_node(n, "3"));
    check_near(n->tran_step, 2.5e-3, 1e-18);
    check_near(n->tran_stop, 10, 0);
    check(n->uic);
    check_int(n->output_count, 2);
    check_text(n->outputs[0].name, "V3");
    check_text(n->outputs[0].unit, "V");
    check_text(n->outputs[1].unit, "A");
    const crd_use* uses;
    check_int(crd_expression_uses(n->outputs[1].what, &uses), 1);
    check_int(uses[0].kind, CRD_USE_CURRENT);
    check_int(uses[0].a, crd_netlist_part(n, "l1"));
    crd_netlist_destroy(n);
}

static void parameters_from_outside_replace_those_inside(void** state)
{
    fixture* f = *state;
    const char* const defines[] = {"c=1m"};
    const crd_netlist_options opt = {.defines = defines, .define_count = 1};
    crd_netlist* n = NULL;
    check_ok(crd_netlist_load(f->ctx, DATA "rlc.cir", &opt, &n));
    check_near(part(n, "c1")->value, 2e-3, 1e-18);
    crd_netlist_destroy(n);
    const char* const wrong[] = {"nothing=1", "c", "c=x", "c=1 2"};
    const crd_status want[] = {CRD_E_NOT_FOUND, CRD_E_FORMAT, CRD_E_FORMAT, CRD_E_FORMAT};
    for (int i = 0; i < 4; i++) {
        const crd_netlist_options o = {.defines = &wrong[i], .define_count = 1};
        check_status(crd_netlist_load(f->ctx, DATA "rlc.cir", &o, &n), want[i]);
    }
}

static void subcircuits_are_flattened(void** state)
{
    crd_netlist* n = load(*state, "scrlc.cir");
    check_int(n->part_count, 7);
    check_int(n->node_count, 6);
    const crd_part* l = part(n, "x2.l");
    check_int(l->nodes[0], crd_netlist_node(n, "5"));
    check_int(l->nodes[1], crd_netlist_node(n, "x2.mid"));
    check_near(l->value, 0.1, 1e-17);
    check_text(n->outputs[0].name, "v(x2.mid)");
    crd_netlist_destroy(n);
}

static void subcircuits_have_parameters_and_definitions_of_their_own(void** state)
{
    crd_netlist* n = good(*state, ".param base=2\n"
                                  ".global vcc\n"
                                  "X1 a b outer PARAMS: k={base*5} r=1k\n"
                                  "X2 b 0 outer\n"
                                  "Vcc vcc 0 5\n"
                                  ".subckt outer p q k=3 r=100\n"
                                  ".param double={2*k}\n"
                                  ".model sw1 sw(vt={k} ron=1m)\n"
                                  "Xin p q inner g={double}\n"
                                  "S1 p 0 q 0 sw1 on\n"
                                  ".ic v(mid)={k}\n"
                                  "Rm p mid {r}\n"
                                  "Cm mid 0 1u\n"
                                  ".subckt inner a b g=1\n"
                                  "Ra a hidden {g*base}\n"
                                  "Rb hidden b {k}\n"
                                  "Rc hidden vcc {base}\n"
                                  ".ends inner\n"
                                  ".ends\n");
    check_int(n->part_count, 13);
    check_near(part(n, "x1.xin.ra")->value, 40, 0);
    check_near(part(n, "x2.xin.ra")->value, 12, 0);
    check_near(part(n, "x1.xin.rb")->value, 10, 0);
    check_near(part(n, "x1.rm")->value, 1000, 0);
    check_near(part(n, "x2.rm")->value, 100, 0);
    check_int(part(n, "x1.xin.rc")->nodes[1], crd_netlist_node(n, "vcc"));
    check_near(n->switches[part(n, "x1.s1")->index].threshold, 10, 0);
    check_near(n->switches[part(n, "x2.s1")->index].threshold, 3, 0);
    check_near(part(n, "x2.s1")->ic, 1, 0);
    check_near(n->node_ic[crd_netlist_node(n, "x1.mid")], 10, 0);
    check(isnan(n->node_ic[crd_netlist_node(n, "a")]));
    crd_netlist_destroy(n);
}

static void numbers_have_their_suffixes(void** state)
{
    static const struct {
        const char* card;
        double value;
    } rows[] = {{"R1 1 0 1m", 1e-3},
                {"R1 1 0 1meg", 1e6},
                {"R1 1 0 1MEGohm", 1e6},
                {"R1 1 0 1mil", 25.4e-6},
                {"R1 1 0 1T", 1e12},
                {"R1 1 0 1g", 1e9},
                {"R1 1 0 1kOhm", 1e3},
                {"R1 1 0 1u", 1e-6},
                {"R1 1 0 1\xc2\xb5H", 1e-6},
                {"R1 1 0 1n", 1e-9},
                {"R1 1 0 1p", 1e-12},
                {"R1 1 0 1f", 1e-15},
                {"R1 1 0 1a", 1e-18},
                {"R1 1 0 1e3k", 1e6},
                {"R1 1 0 .5", 0.5},
                {"R1 1 0 5.", 5},
                {"R1 1 0 -2", -2},
                {"R1 1 0 +2.5E-2", 0.025},
                {"R1 1 0 {1k*2}", 2000},
                {"R1 1 0 '3*4'", 12},
                {"R1 1 0 r=7", 7},
                {"r1 1 0 R={2^3}", 8},
                {"R1 1 0 10 m=4", 2.5},
                {"C1 1 0 2u m=3", 6e-6},
                {"L1 1 0 1m m=2", 5e-4},
                {"R1 1 gnd 10", 10},
                {"R1 1,0 10", 10},
                {"V1 1 0 5", 5},
                {"V1 1 0 DC 5 AC 1", 5},
                {"V1 1 0 AC 1 0 DC 5", 5},
                {"V1 1 0", 0},
                {"I1 1 0 dc {2*3}", 6},
                {"E1 1 0 1 0 2.5", 2.5},
                {"G1 1 0 (1,0) 2.5", 2.5},
                {"B1 1 0 V=3*7", 21},
                {"G1 1 0 value={4}", 4},
                {"V1 1 0 1e-3V ; note", 1e-3},
                {"R1 1 0 10 $ note", 10},
                {"R1 1 0 ; x\n+ 33", 33},
                {"R1\n+ 1\n* no\n\n+ 0\n+4", 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double v = value_of(*state, rows[i].card);
        if (!(fabs(v - rows[i].value) <= 1e-15 * fabs(rows[i].value))) {
            fail_msg("%s: %.17g, expected %.17g", rows[i].card, v, rows[i].value);
        }
    }
}

static void parts_of_every_letter_are_read(void** state)
{
    crd_netlist* n = good(*state, "V1 a 0 1\nL1 a b 1m\nL2 b 0 2m ic=3\nK1 L1 L2 0.5\n"
                                  "F1 b 0 V1 2\nH1 c 0 v1 3\nE1 d 0 a b 4\nG1 d 0 a b 5\n"
                                  "D1 c d dm 2\nS1 a c d 0 sm\nW1 a d v1 wm off\n"
                                  "B1 e 0 V={v(a)*i(v1)}\nB2 e f I=sin(time)*v(e,f)\n"
                                  "R1 f 0 r='1+v(e)^2'\nC1 f 0 1u ic=-1\nI1 f 0 pulse 0 1\n"
                                  ".model dm d(is=1e-15, n=1.5 rs=10m cjo=2p tt=1n bv=50)\n"
                                  ".model sm sw vt=1 vh=0.2 ron=1m roff=1meg\n"
                                  ".model wm csw(it=1m ih=1u)\n");
    check_int(n->part_count, 16);
    const crd_part* p = part(n, "k1");
    check_int(p->refs[0], crd_netlist_part(n, "l1"));
    check_int(p->refs[1], crd_netlist_part(n, "l2"));
    check_near(part(n, "l2")->ic, 3, 0);
    check_int(part(n, "f1")->refs[0], crd_netlist_part(n, "v1"));
    check_int(part(n, "h1")->kind, CRD_PART_CCVS);
    check_int(part(n, "e1")->nodes[3], crd_netlist_node(n, "b"));
    const crd_diode_model* d = &n->diodes[part(n, "d1")->index];
    check_near(d->is, 2e-15, 1e-30);
    check_near(d->rs, 5e-3, 1e-18);
    check_near(d->cjo, 4e-12, 1e-27);
    check_near(d->bv, 50, 0);
    check_near(n->switches[part(n, "s1")->index].off, 1e6, 0);
    check_near(n->switches[part(n, "w1")->index].threshold, 1e-3, 0);
    check(part(n, "w1")->has_ic && part(n, "w1")->ic == 0);
    check_int(part(n, "b1")->kind, CRD_PART_B_VOLTAGE);
    check_int(part(n, "b2")->kind, CRD_PART_B_CURRENT);
    const crd_use* uses;
    check_int(crd_expression_uses(n->expressions[part(n, "b1")->index], &uses), 2);
    check_int(uses[1].a, crd_netlist_part(n, "v1"));
    const crd_expression* law = n->expressions[part(n, "r1")->index];
    const double x = 3;
    double slope;
    check_near(crd_expression_eval(law, &x, 0, &slope), 10, 0);
    check_near(slope, 6, 0);
    check_int(part(n, "r1")->line, 15);
    crd_netlist_destroy(n);
}

static void a_diode_knows_its_temperature(void** state)
{
    crd_netlist* n = load(*state, "rectifier.cir");
    check_near(n->temperature, 300, 1e-12);
    check_near(n->diodes[0].vt, 0.025851999786, 1e-12);
    check_near(n->diodes[0].is, 1e-15, 1e-27);
    check_int(n->diode_count, 1);
    crd_netlist_destroy(n);
    n = good(*state, ".temp 77\nD1 1 0 d1\nR1 1 0 100 tc1=1m\n.model d1 d\n");
    check_near(n->temperature, 350.15, 1e-12);
    check_near(part(n, "r1")->value, 105, 1e-12);
    // 1e-14 exp((T/T0 - 1) 1.11 / vt) (T/T0)^3, computed elsewhere
    check_near(n->diodes[0].is / 7.28045000121813e-12, 1, 1e-12);
    crd_netlist_destroy(n);
}

// ---- heat --------------------------------------------------------------------------------------

static void heat_has_its_own_words(void** state)
{
    crd_netlist* n = good(*state, ".input speed unit=rad/s start=1570\n"
                                  ".thermal start=300\n"
                                  "heat loss rotor sin(100 20 1)\n"
                                  "heat extra rotor {2*speed+time}\n"
                                  "capacity c1 rotor 5000\n"
                                  "capacity c2 case 100 start=310\n"
                                  "resistance gap rotor case {1/(speed*t(rotor))}\n"
                                  "temperature water case 320\n"
                                  ".endthermal\n"
                                  "R1 a 0 {1+t(rotor)}\nV1 a 0 1\n");
    const crd_part* p = part(n, "loss");
    check_int(p->kind, CRD_PART_CURRENT);
    check(p->thermal);
    check_int(p->nodes[0], 0);
    check_int(p->nodes[1], crd_netlist_node(n, "rotor"));
    check_int(part(n, "extra")->kind, CRD_PART_B_CURRENT);
    check_int(part(n, "water")->kind, CRD_PART_VOLTAGE);
    check_near(part(n, "water")->value, 320, 0);
    check(part(n, "c1")->has_ic);
    check_near(part(n, "c1")->ic, 300, 0);
    check_near(part(n, "c2")->ic, 310, 0);
    check(!part(n, "r1")->thermal);
    check_int(n->input_count, 1);
    check_text(n->inputs[0].unit, "rad/s");
    check_near(n->inputs[0].start, 1570, 0);
    check_int(n->inputs[0].part, -1);
    crd_netlist_destroy(n);
}

static void the_air_gap_has_the_resistance_of_the_correlation(void** state)
{
    crd_netlist* n = load(*state, "pmsm.cir");
    check_int(n->part_count, 34);
    check_int(n->node_count, 17);
    const crd_expression* law = n->expressions[part(n, "airgap")->index];
    const crd_use* uses;
    check_int(crd_expression_uses(law, &uses), 3);
    // speed, temperature, resistance: the last three branches of the correlation
    const double rows[][3] = {{1570, 300, 0.2066}, {150, 300, 0.694}, {150, 360, 0.748}};
    for (int i = 0; i < 3; i++) {
        double x[3], g[3];
        for (int k = 0; k < 3; k++) {
            x[k] = uses[k].kind == CRD_USE_INPUT ? rows[i][0] : rows[i][1];
        }
        check_near(crd_expression_eval(law, x, 0, g), rows[i][2], 6e-4);
        for (int k = 0; k < 3; k++) {
            double y[3];
            memcpy(y, x, sizeof y);
            const double h = 1e-3 * x[k];
            y[k] = x[k] + h;
            const double above = crd_expression_eval(law, y, 0, NULL);
            y[k] = x[k] - h;
            const double below = crd_expression_eval(law, y, 0, NULL);
            check_near(g[k], (above - below) / (2 * h), 2e-6 * fabs(g[k]) + 1e-12);
        }
    }
    crd_netlist_destroy(n);
    n = load(*state, "pmsm_relative.cir");
    check_int(n->part_count, 33);
    check_int(n->node_count, 16);
    crd_netlist_destroy(n);
}

static void the_other_thermal_networks_are_read(void** state)
{
    crd_netlist* n = load(*state, "rc_thermal.cir");
    check_int(n->part_count, 6);
    check_near(part(n, "c1")->ic, -1, 0);
    crd_netlist_destroy(n);
    n = load(*state, "inverter.cir");
    check_int(n->part_count, 24);
    check_int(n->node_count, 14);
    check_near(part(n, "x3.dbc")->value, 30.47e-3, 1e-16);
    check_near(part(n, "x3.c_dbc")->ic, 343.15, 0);
    crd_netlist_destroy(n);
}

static void inputs_set_sources(void** state)
{
    crd_netlist* n = good(*state, ".input V1 unit=V\n.input load source=Iload start=2 unit=A\n"
                                  ".input u\n.input free\n"
                                  "V1 a 0 12\nIload a 0 sin(0 1 50)\nV2 b 0 input(u)\nR1 a b 1\n");
    check_int(n->input_count, 4);
    check_text(n->inputs[0].name, "V1");
    check_near(n->inputs[0].start, 12, 0);
    check_int(n->inputs[1].part, crd_netlist_part(n, "iload"));
    check_int(n->inputs[2].part, crd_netlist_part(n, "v2"));
    check_int(n->inputs[3].part, -1);
    const double u[] = {1, 2, 3, 4};
    check_near(crd_waveform_eval(&n->waves[part(n, "v2")->index], 0, u), 3, 0);
    check_near(crd_waveform_eval(&n->waves[part(n, "iload")->index], 0, u), 2, 0);
    crd_netlist_destroy(n);
}

static void outputs_are_expressions(void** state)
{
    crd_netlist* n = good(*state, "V1 a 0 1\nR1 a 0 1\n"
                                  ".output P={v(a)*i(v1)} unit=W v(a) half=v(a)/2 unit=\"V\"\n"
                                  ".output i(R1)\n");
    check_int(n->output_count, 4);
    check_text(n->outputs[0].name, "P");
    check_text(n->outputs[0].unit, "W");
    check_text(n->outputs[1].name, "v(a)");
    check_text(n->outputs[2].name, "half");
    check_text(n->outputs[2].unit, "V");
    check_text(n->outputs[3].name, "i(R1)");
    crd_netlist_destroy(n);
}

// ---- waveforms ---------------------------------------------------------------------------------

static const crd_waveform* first_wave(const crd_netlist* n)
{
    return &n->waves[n->parts[0].index];
}

static void pulses_repeat_and_tell_their_corners(void** state)
{
    crd_netlist* n = good(*state, "V1 1 0 pulse(-1 3 1m 2m 1m 3m 10m)\nR1 1 0 1\n");
    const crd_waveform* w = first_wave(n);
    const double at[][2] = {{0, -1},     {1e-3, -1},  {2e-3, 1},      {3e-3, 3},
                            {5.9e-3, 3}, {6.5e-3, 1}, {7e-3, -1},     {10.5e-3, -1},
                            {12e-3, 1},  {112e-3, 1}, {1013.5e-3, 3}, {-5, -1}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        check_near(crd_waveform_eval(w, at[i][0], NULL), at[i][1], 1e-10);
    }
    const double corners[] = {1e-3, 3e-3, 6e-3, 7e-3, 11e-3, 13e-3, 16e-3, 17e-3, 21e-3};
    double t = -1;
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++) {
        t = crd_waveform_next(w, t);
        check_near(t, corners[i], 1e-15);
    }
    for (int i = 0; i < 100000; i++) { // never the same corner twice, however large the time
        const double next = crd_waveform_next(w, t);
        check(next > t);
        t = next;
    }
    check_near(t, 250.021, 1e-9);
    crd_netlist_destroy(n);
}

static void a_step_is_seen_from_its_corner_on(void** state)
{
    crd_netlist* n = good(*state, "V1 1 0 pulse(0 1 0 0 0 0.3m 0.7m)\nR1 1 0 1\n");
    const crd_waveform* w = first_wave(n);
    double t = -1;
    for (int i = 0; i < 2000; i++) {
        t = crd_waveform_next(w, t);
        check_near(crd_waveform_eval(w, t, NULL), i % 2 == 0, 0);
    }
    crd_netlist_destroy(n);
}

static void what_is_left_out_comes_from_tran(void** state)
{
    crd_netlist* n = good(*state, "V1 1 0 pulse(0 1)\nV2 2 0 sin(0 1)\nV3 3 0 exp(0 1)\n"
                                  "R1 1 2 1\nR2 2 3 1\n.tran 1m 2 uic\n");
    check_near(n->waves[0].v[3], 1e-3, 0);
    check_near(n->waves[0].v[6], 2, 0);
    check_near(n->waves[1].v[2], 0.5, 0);
    check_near(n->waves[2].v[5], 1e-3, 0);
    crd_netlist_destroy(n);
}

static void the_other_waveforms_have_their_values(void** state)
{
    crd_netlist* n = good(*state, "V1 1 0 sin(1 2 50 10m 5 90)\nV2 2 0 exp(1 5 1 2 4 3)\n"
                                  "V3 3 0 pwl(0 0, 1 10 1 20 3,0)\nV4 4 0 pwl 1 5\n"
                                  "R1 1 2 1\nR2 2 3 1\nR3 3 4 1\n");
    const crd_waveform* w = n->waves;
    check_near(crd_waveform_eval(&w[0], 0, NULL), 3, 1e-15);
    // 1 + 2 exp(-0.02*5) sin(2 pi 50 0.02 + pi/2), and 0.003 later
    check_near(crd_waveform_eval(&w[0], 0.03, NULL), 1 + 2 * 0.90483741803595957, 1e-13);
    check_near(crd_waveform_eval(&w[0], 0.033, NULL), 2.047863747562492, 1e-12);
    check_near(crd_waveform_next(&w[0], 0), 0.01, 0);
    check(isinf(crd_waveform_next(&w[0], 0.01)));
    check_near(crd_waveform_eval(&w[1], 1, NULL), 1, 0);
    check_near(crd_waveform_eval(&w[1], 3, NULL), 1 + 4 * 0.63212055882855767, 1e-14);
    check_near(crd_waveform_eval(&w[1], 7, NULL),
               1 + 4 * 0.95021293163213605 - 4 * 0.63212055882855767, 1e-14);
    check_near(crd_waveform_next(&w[1], 1), 4, 0);
    check_near(crd_waveform_eval(&w[2], 0.5, NULL), 5, 0);
    check_near(crd_waveform_eval(&w[2], 1, NULL), 20, 0);
    check_near(crd_waveform_eval(&w[2], 2, NULL), 10, 0);
    check_near(crd_waveform_eval(&w[2], 9, NULL), 0, 0);
    check_near(crd_waveform_next(&w[2], 1), 3, 0);
    check_near(crd_waveform_eval(&w[3], 0, NULL), 5, 0);
    crd_netlist_destroy(n);
}

// ---- what is refused ---------------------------------------------------------------------------

static const struct {
    const char* text; // behind the title, so that it begins in line 2
    crd_status status;
    const char* part; // of the message
} bad[] = {
    {"", CRD_E_FORMAT, "no parts"},
    {"R1 1", CRD_E_FORMAT, "n.cir:2: \"the end of the line\" where a node"},
    {"R1 1 0", CRD_E_FORMAT, "the end of the line"},
    {"R1 1 0 abc", CRD_E_FORMAT, "\"abc\""},
    {"R1 1 0 1 2", CRD_E_FORMAT, "R1: \"2\" is not understood"},
    {"R1 1 0 5-3", CRD_E_FORMAT, "\"5-3\""},
    {"R1 1 0 {1", CRD_E_FORMAT, "with }"},
    {"R1 1 0 {1/0}", CRD_E_RANGE, "divides 1 by 0"},
    {"R1 1 0 {x}", CRD_E_NOT_FOUND, "\"x\""},
    {"R1 1 0 rm\n.model rm r", CRD_E_UNSUPPORTED, "models of R, L and C"},
    {"R1 1 0 5 noise=1", CRD_E_UNSUPPORTED, "noise="},
    {"C1 1 0 {v(1)}", CRD_E_UNSUPPORTED, "has to be a constant"},
    {"V1 1 0 1\nR1 1 0 1\nv1 1 0 2", CRD_E_FORMAT, "n.cir:4: v1 is there twice, first in line 2"},
    {"V1 1 0 foo(1 2)", CRD_E_UNSUPPORTED, "foo"},
    {"V1 1 0 sffm(0 1 2)", CRD_E_UNSUPPORTED, "sffm"},
    {"V1 1 0 sin(0)", CRD_E_FORMAT, "at least 2"},
    {"V1 1 0 sin(0 1 2 3 4 5 6)", CRD_E_UNSUPPORTED, "at most 6"},
    {"V1 1 0 sin(0 1 2", CRD_E_FORMAT, "')'"},
    {"V1 1 0 sin(0 1)\nR1 1 0 1", CRD_E_FORMAT, "the frequency is missing"},
    {"V1 1 0 pulse(0 1 0 -1)", CRD_E_RANGE, "a time = -1"},
    {"V1 1 0 exp(0 1 0 -1 2 1)", CRD_E_RANGE, "time constant = -1"},
    {"V1 1 0 pwl(0 1 2)", CRD_E_FORMAT, "without a value"},
    {"V1 1 0 pwl(1 1 0 2)", CRD_E_RANGE, "goes back"},
    {"V1 1 0 pwl()", CRD_E_FORMAT, "no points"},
    {"V1 1 0 pwl(0 0 1 1) r=0", CRD_E_UNSUPPORTED, "r="},
    {"V1 1 0 {v(1)}", CRD_E_RANGE, "cannot use v()"},
    {"V1 1 0 input(u)", CRD_E_NOT_FOUND, ".input \"u\""},
    {"V1 1 0 1 2", CRD_E_UNSUPPORTED, "\"2\""},
    {"K1 L1 L2 1", CRD_E_NOT_FOUND, "\"l1\""},
    {"L1 1 0 1\nR2 1 0 1\nK1 L1 R2 1", CRD_E_RANGE, "two inductors, and r2 is none"},
    {"L1 1 0 1\nL2 1 0 1\nK1 L1 L2 1.5", CRD_E_RANGE, "K1 = 1.5"},
    {"L1 1 0 1\nK1 L1 L1 0.5", CRD_E_RANGE, "itself"},
    {"R1 1 0 1\nF1 1 0 R1 2", CRD_E_RANGE, "voltage source"},
    {"F1 1 0 V9 2", CRD_E_NOT_FOUND, "n.cir:2: there is no part \"v9\""},
    {"E1 1 0 poly(1) 2 0 1", CRD_E_UNSUPPORTED, "poly"},
    {"D1 1 0 dm", CRD_E_NOT_FOUND, "model \"dm\""},
    {"D1 1 0 dm\n.model dm sw", CRD_E_FORMAT, "type \"sw\""},
    {"D1 1 0 dm\n.model dm d(is=0)", CRD_E_RANGE, "is = 0"},
    {"D1 1 0 dm\n.model dm d(ikf=1)", CRD_E_UNSUPPORTED, "n.cir:3: the model dm"},
    {"D1 1 0 dm\n.model dm d(level=3)", CRD_E_RANGE, "level = 3"},
    {"D1 1 0 dm -1\n.model dm d", CRD_E_RANGE, "the area is -1"},
    {"S1 1 0 2 0 sm\n.model sm sw(ron=0)", CRD_E_RANGE, "ron = 0"},
    {"S1 1 0 2 0 sm maybe\n.model sm sw", CRD_E_FORMAT, "on or off"},
    {"B1 1 0 W=1", CRD_E_UNSUPPORTED, "W="},
    {"B1 1 0 5", CRD_E_FORMAT, "V= or I="},
    {"B1 1 0 V=v(nowhere)", CRD_E_NOT_FOUND, "no node \"nowhere\""},
    {"B1 1 0 V=i(nobody)", CRD_E_NOT_FOUND, "no part \"nobody\""},
    {"B1 1 0 V=v(1) v(2)", CRD_E_FORMAT, "B1: \"v\""},
    {"Q1 1 2 3 qm", CRD_E_UNSUPPORTED, "bipolar transistors are not supported"},
    {"M1 1 2 3 4 mm", CRD_E_UNSUPPORTED, "MOSFETs"},
    {"%1 1 0 1", CRD_E_UNSUPPORTED, "%1"},
    {"(1 2)", CRD_E_UNSUPPORTED, "no part begins"},
    {"X1 1 0 sub", CRD_E_NOT_FOUND, "subcircuit \"sub\""},
    {"X1", CRD_E_FORMAT, "names no subcircuit"},
    {".subckt s a\nR1 a 0 1\n.ends\nX1 1 2 s", CRD_E_FORMAT,
     "X1 has 2 nodes, the subcircuit s has 1"},
    {".subckt s a\nR1 a 0 1\n.ends\nX1 1 s k=2", CRD_E_NOT_FOUND, "no parameter \"k\""},
    {".subckt s a k=1\nR1 a 0 1\n.ends\nX1 1 s k=2 k=3", CRD_E_FORMAT, "twice"},
    {".subckt s a\nX1 a s\n.ends\nX1 1 s", CRD_E_FORMAT, "s contains itself"},
    {".subckt s a\nX1 a t\n.ends\n.subckt t a\nX1 a s\n.ends\nX1 1 s", CRD_E_FORMAT,
     "contains itself"},
    {".subckt s a\nR1 a 0 1", CRD_E_FORMAT, "n.cir:2: .subckt s without .ends"},
    {".subckt s a a\n.ends", CRD_E_FORMAT, "twice"},
    {".subckt s 0\n.ends", CRD_E_FORMAT, "ground"},
    {".subckt s a\n.ends t", CRD_E_FORMAT, ".ends t"},
    {".subckt s a\n.ends\n.subckt S b\n.ends", CRD_E_FORMAT, "twice"},
    {".ends", CRD_E_FORMAT, ".ends without .subckt"},
    {".param a", CRD_E_FORMAT, "the name of a parameter"},
    {".param a=", CRD_E_FORMAT, "a number or a name"},
    {".param a={b} b={a}\nR1 1 0 1", CRD_E_RANGE, "needs itself"},
    {".param a=1 a=2", CRD_E_FORMAT, "twice"},
    {".param 1a=1", CRD_E_FORMAT, "1a"},
    {".param a={v(1)}\nR1 1 0 1", CRD_E_RANGE, "a parameter is a constant"},
    {".func f(x) {x", CRD_E_FORMAT, "'}'"},
    {".func f x", CRD_E_FORMAT, "'('"},
    {".func f(x) {f(x)+1}\n.param a={f(1)}\nR1 1 0 1", CRD_E_RANGE, "too deep"},
    {".lib x", CRD_E_UNSUPPORTED, "\".lib\" is not supported"},
    {".parm a=1", CRD_E_UNSUPPORTED, "meant to be .param"},
    {".include", CRD_E_FORMAT, "name of a file"},
    {".include \"no/such/file\"", CRD_E_NOT_FOUND, "n.cir:2: .include"},
    {".include /dev/zero", CRD_E_FORMAT, "not a regular file"},
    {".include /tmp", CRD_E_FORMAT, "a folder, expected a netlist"},
    {"+ 1 2", CRD_E_FORMAT, "continues no other"},
    {".tran uic\nR1 1 0 1", CRD_E_FORMAT, "step and stop"},
    {".tran 0 0\nR1 1 0 1", CRD_E_RANGE, "step 0 s"},
    {".tran -1 1\nR1 1 0 1", CRD_E_RANGE, "step -1 s"},
    {".tran 1m 1\n.tran 1m 1\nR1 1 0 1", CRD_E_FORMAT, "twice"},
    {".tran 1m 1 uic 5\nR1 1 0 1", CRD_E_FORMAT, "\"5\""},
    {".temp -300\nR1 1 0 1", CRD_E_RANGE, "-300"},
    {".ic v(1)\nR1 1 0 1", CRD_E_FORMAT, "'='"},
    {".ic v(9)=1\nR1 1 0 1", CRD_E_NOT_FOUND, "no node \"9\""},
    {".ic v(0)=1\nR1 1 0 1", CRD_E_RANGE, "ground"},
    {".output\nR1 1 0 1", CRD_E_FORMAT, "name=expression"},
    {".output v(7)\nR1 1 0 1", CRD_E_NOT_FOUND, "no node \"7\""},
    {".output v(1) v(1)\nR1 1 0 1", CRD_E_FORMAT, "twice"},
    {".output a=v(1) unit=furlong\nR1 1 0 1", CRD_E_RANGE, "no unit \"furlong\""},
    {".input a\n.input A\nR1 1 0 1", CRD_E_FORMAT, "twice"},
    {".input a b=1\nR1 1 0 1", CRD_E_FORMAT, "source, unit and start"},
    {".input a source=r1\nR1 1 0 1", CRD_E_RANGE, "no source"},
    {".input a source=r9\nR1 1 0 1", CRD_E_NOT_FOUND, "r9"},
    {".input a source=v1\n.input b source=v1\nV1 1 0 1", CRD_E_RANGE, "two inputs"},
    {".param a=1\n.input a\nR1 1 0 1", CRD_E_FORMAT, "parameter of this name"},
    {".subckt s a\n.tran 1 2\n.ends", CRD_E_FORMAT, "whole netlist"},
    {".thermal\nR1 1 0 1\n.endthermal", CRD_E_UNSUPPORTED, "heat, resistance, capacity"},
    {".thermal\nheat q 1 5", CRD_E_FORMAT, "n.cir:2: .thermal without"},
    {".endthermal", CRD_E_FORMAT, "without .thermal"},
    {".thermal\n.thermal", CRD_E_FORMAT, "inside"},
    {".thermal\n.subckt a b", CRD_E_FORMAT, "end the section"},
    {".thermal stop=1", CRD_E_FORMAT, "start="},
    {".thermal\nheat\n.endthermal", CRD_E_FORMAT, "a name"},
    {".thermal\nresistance a 1 0 -1\n.endthermal", CRD_E_RANGE, "-1 K/W"},
    {".thermal\ncapacity a 1 0\n.endthermal", CRD_E_RANGE, "0 J/K"},
    {".thermal\ntemperature a 1 300K\n.endthermal", CRD_E_RANGE, "means a thousand"},
    {".thermal\ncapacity a 1 5 start=300K\n.endthermal", CRD_E_RANGE, "means a thousand"},
    {".thermal\nheat q 1 sin(0 1 1) {t(1)}\n.endthermal", CRD_E_FORMAT, "one of them is enough"},
    {"R1 1 0 1\n.thermal\nheat q 1 5\n.endthermal", CRD_E_FORMAT,
     "the node 1 (line 2) is electric"},
    {"R1 1 \x01 1", CRD_E_FORMAT, "n.cir:2: a byte 1"},
};

static void bad_netlists_are_refused_with_file_line_and_word(void** state)
{
    fixture* f = *state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        crd_netlist* n = NULL;
        const crd_status st = parse(f, bad[i].text, &n);
        if (st != bad[i].status || n || !strstr(crd_error_text(f->ctx), bad[i].part) ||
            strncmp(crd_error_text(f->ctx), "n.cir:", 6) != 0) {
            fail_msg("%s\ngave %s (%s)\nexpected %s (%s)", bad[i].text, crd_status_name(st),
                     crd_error_text(f->ctx), crd_status_name(bad[i].status), bad[i].part);
        }
    }
    crd_netlist* n = NULL;
    check_status(crd_netlist_parse(f->ctx, "t\nR1 1\0 0", 9, "n.cir", NULL, &n), CRD_E_FORMAT);
    check_contains(crd_error_text(f->ctx), "a byte 0");
    check_status(crd_netlist_load(f->ctx, "/no/such.cir", NULL, &n), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(f->ctx), "/no/such.cir");
}

static void write_file(const char* path, const char* text)
{
    FILE* out = fopen(path, "w");
    check(out != NULL);
    fputs(text, out);
    fclose(out);
}

#define FOLDER TEST_BUILD_DIR "/netlist_includes"

static void files_include_files_but_not_themselves(void** state)
{
    fixture* f = *state;
    crd_netlist* n = NULL;
    mkdir(FOLDER, 0755);
    write_file(FOLDER "/main.cir", "title\n.include sub.inc\nR1 1 0 {r}\n.end\nnonsense\n");
    write_file(FOLDER "/sub.inc", ".param r=5\n.inc 'deep er.inc'\n.end\nnonsense\n");
    write_file(FOLDER "/deep er.inc", "C1 1 0 1u\n");
    check_ok(crd_netlist_load(f->ctx, FOLDER "/main.cir", NULL, &n));
    check_int(n->part_count, 2);
    check_text(n->files[part(n, "c1")->file], FOLDER "/deep er.inc");
    check_int(part(n, "c1")->line, 1);
    crd_netlist_destroy(n);
    n = NULL;
    write_file(FOLDER "/a.cir", "title\n.include b.cir\n");
    write_file(FOLDER "/b.cir", "* here\n.include ./a.cir\n");
    check_status(crd_netlist_load(f->ctx, FOLDER "/a.cir", NULL, &n), CRD_E_FORMAT);
    check_contains(crd_error_text(f->ctx), "b.cir:2: ");
    check_contains(crd_error_text(f->ctx), "includes itself");
}

typedef struct lines {
    int count;
    char text[1000];
} lines;

static void keep_lines(void* user, crd_level level, const char* text)
{
    (void)level;
    lines* l = user;
    l->count++;
    const size_t n = strlen(l->text);
    snprintf(l->text + n, sizeof l->text - n, "%s\n", text);
}

static void what_does_not_matter_is_noted_once(void** state)
{
    lines l = {0};
    crd_context_options opt = crd_context_defaults();
    opt.log = keep_lines;
    opt.log_user = &l;
    opt.level = CRD_LOG_INFO;
    fixture f = {.ctx = crd_context_create(&opt)};
    crd_netlist* n = good(&f, "V1 1 0 5 AC 1\nV2 2 0 5 AC 1\nR1 1 2 5\n.print v(1)\n.print v(2)\n"
                              ".options reltol=1e-4 method=gear reltol=1\n"
                              ".control\nrun\nplot v(1)\n.endc\n.end\n");
    check_int(l.count, 5);
    check_contains(l.text, "ac of a source");
    check_contains(l.text, "n.cir:5: .print");
    check_contains(l.text, "method");
    crd_netlist_destroy(n);
    l = (lines){0};
    n = NULL;
    const char* text = "R1 1 2 5\nR2 1 2 5\n";
    check_ok(crd_netlist_parse(f.ctx, text, strlen(text), "t.cir", NULL, &n));
    check_int(n->part_count, 1);
    check_contains(l.text, "looks like an element");
    crd_netlist_destroy(n);
    crd_context_destroy(f.ctx);
}

// ---- size --------------------------------------------------------------------------------------

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// A ladder of `loops` loops, 3 parts each.
static char* ladder(int loops, size_t* length)
{
    char* text = malloc((size_t)loops * 90 + 100);
    char* p = text + sprintf(text, "ladder\nV1 n0 0 sin(0 100 5)\n");
    for (int i = 1; i <= loops; i++) {
        p += sprintf(p, "R%d n%d n%d 10\nL%d n%d m%d 100m ic=0\nC%d m%d 0 100m ic=0\n", i, i - 1, i,
                     i, i, i, i, i);
    }
    *length = (size_t)(p - text);
    return text;
}

static void a_large_netlist_is_read_in_time_that_grows_with_its_size(void** state)
{
    fixture* f = *state;
    double took[2];
    for (int k = 0; k < 2; k++) {
        size_t length;
        char* text = ladder(k ? 40000 : 5000, &length);
        crd_netlist* n = NULL;
        const double start = seconds();
        check_ok(crd_netlist_parse(f->ctx, text, length, "n.cir", NULL, &n));
        took[k] = seconds() - start;
        check_int(n->part_count, k ? 120001 : 15001);
        check_near(part(n, k ? "c40000" : "c5000")->value, 0.1, 0);
        crd_netlist_destroy(n);
        free(text);
    }
    // Eight times as many parts: far from the 64 times of a list that is searched.
    check(took[1] < 30 * took[0] + 0.05);
}

static char* long_line(const char* head, const char* unit, size_t bytes, const char* tail,
                       size_t* length)
{
    const size_t u = strlen(unit), h = strlen(head), n = bytes / u;
    char* text = malloc(h + n * u + strlen(tail) + 1);
    memcpy(text, head, h);
    for (size_t i = 0; i < n; i++) {
        memcpy(text + h + i * u, unit, u);
    }
    strcpy(text + h + n * u, tail);
    *length = h + n * u + strlen(tail);
    return text;
}

static void lines_of_ten_megabytes_do_no_harm(void** state)
{
    fixture* f = *state;
    static const struct {
        const char *head, *unit, *tail;
        crd_status status;
    } cases[] = {
        {"t\nR1 1 0 ", "1", "\n", CRD_E_FORMAT},    {"t\nR1 1 0 {", "1+", "1}\n", CRD_OK},
        {"t\n", "R", " 1 0 5\n", CRD_E_RANGE},      {"t\nR1 ", "n", " 0 5\n", CRD_E_RANGE},
        {"t\nX1 ", "a ", "s\n", CRD_E_NOT_FOUND},   {"t\n.subckt s ", "a ", "\n", CRD_E_FORMAT},
        {"t\nR1 1 0 5 ;", "x", "\n", CRD_OK},       {"t\n", "+\n", "\n", CRD_E_FORMAT},
        {"t\nR1 1 0", "\n+", " 5\n", CRD_OK},       {"t\nR1 1 0", "\n*", "\n+ 5\n", CRD_OK},
        {"t\nR1 1 0 {", "(", "\n", CRD_E_RANGE},    {"t\n", "R1 1 0 5;", "\n", CRD_OK},
        {"", "t", "\nR1 1 0 5\n", CRD_OK},          {"t\nV1 1 0 pwl(0 1", " 5 7", ")\n", CRD_OK},
        {"t\n.param ", "a=1 ", "\n", CRD_E_FORMAT}, {"t\n.include \"", "/", "\"\n", CRD_E_RANGE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length;
        char* text = long_line(cases[i].head, cases[i].unit, 10 << 20, cases[i].tail, &length);
        crd_netlist* n = NULL;
        const crd_status st = crd_netlist_parse(f->ctx, text, length, "n.cir", NULL, &n);
        free(text);
        crd_netlist_destroy(n);
        if (st != cases[i].status) {
            fail_msg("%s%s... gave %s (%s)", cases[i].head, cases[i].unit, crd_status_name(st),
                     crd_error_text(f->ctx));
        }
        check(strlen(crd_error_text(f->ctx)) < 1000);
    }
}

static void subcircuits_that_multiply_end_at_the_limit(void** state)
{
    fixture* f = *state;
    char text[8000], *p = text + sprintf(text, "t\nX1 1 s0\n");
    for (int i = 0; i < 40; i++) {
        p += sprintf(p, ".subckt s%d a\nX1 a s%d\nX2 a s%d\n.ends\n", i, i + 1, i + 1);
    }
    sprintf(p, ".subckt s40 a\n.ends\n");
    const crd_netlist_options opt = {.max_parts = 10000};
    crd_netlist* n = NULL;
    check_status(crd_netlist_parse(f->ctx, text, strlen(text), "n.cir", &opt, &n), CRD_E_RANGE);
    check_contains(crd_error_text(f->ctx), "parts and copies, more than the limit of 10000 each");
}

static void functions_that_multiply_end_at_the_limit(void** state)
{
    fixture* f = *state;
    char text[8000], *p = text + sprintf(text, "t\nB1 1 0 V={f40(v(1))}\n.func f0(x) {x}\n");
    for (int i = 1; i <= 40; i++) {
        p += sprintf(p, ".func f%d(x) {f%d(f%d(x))}\n", i, i - 1, i - 1);
    }
    crd_netlist* n = NULL;
    check_status(crd_netlist_parse(f->ctx, text, strlen(text), "n.cir", NULL, &n), CRD_E_RANGE);
    check_contains(crd_error_text(f->ctx), "the functions of an expression");
}

static void every_kind_of_part_has_a_whole_row(void** state)
{
    for (int i = 0; i < CRDI_PART_KINDS; i++) {
        const crdi_part_kind* k = crdi_part_kinds[i];
        assert_non_null(k);
        assert_true(k->article && k->plural);
        assert_true((k->letter != 0) == (k->read != NULL)); // a letter is read
        assert_true(!k->letter || (k->usage && (k->usage[0] | 0x20) == k->letter));
        assert_true((k->word != NULL) == (k->read_thermal != NULL));
        assert_true((k->model_type != NULL) == (k->read_model != NULL));
        assert_true(k->couples || k->law); // an equation
        assert_true(!k->stores || (k->mass && k->drop));
        assert_true(k->role[CRDI_NETWORK_STEPS] != CRDI_ROLE_DEVICE || k->device);
        assert_true(!k->inside || k->charge);
        for (int j = 0; j < i; j++) {
            assert_true(!k->letter || k->letter != crdi_part_kinds[j]->letter);
        }
    }
}

static void every_allocation_may_fail(void** state)
{
    static const char* const files[] = {DATA "pmsm.cir", DATA "inverter.cir", DATA "rectifier.cir",
                                        DATA "rlc.cir"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        for (int64_t k = 2;; k++) { // for good, and only once
            const int64_t fail_at = k / 2;
            check_allocator memory;
            crd_context* ctx = check_context(&memory);
            crd_netlist* n = NULL;
            memory.fail_at = fail_at;
            memory.once = k % 2;
            const crd_status st = crd_netlist_load(ctx, files[i], NULL, &n);
            crd_netlist_destroy(n);
            crd_context_destroy(ctx);
            check_int(memory.live, 0);
            if (st == CRD_OK) {
                check(fail_at > 20);
                break;
            }
            check_status(st, CRD_E_MEMORY);
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_rlc_circuit_is_read),
        TEST(parameters_from_outside_replace_those_inside),
        TEST(subcircuits_are_flattened),
        TEST(subcircuits_have_parameters_and_definitions_of_their_own),
        TEST(numbers_have_their_suffixes),
        TEST(parts_of_every_letter_are_read),
        TEST(a_diode_knows_its_temperature),
        TEST(heat_has_its_own_words),
        TEST(the_air_gap_has_the_resistance_of_the_correlation),
        TEST(the_other_thermal_networks_are_read),
        TEST(inputs_set_sources),
        TEST(outputs_are_expressions),
        TEST(pulses_repeat_and_tell_their_corners),
        TEST(a_step_is_seen_from_its_corner_on),
        TEST(what_is_left_out_comes_from_tran),
        TEST(the_other_waveforms_have_their_values),
        TEST(bad_netlists_are_refused_with_file_line_and_word),
        TEST(files_include_files_but_not_themselves),
        cmocka_unit_test(what_does_not_matter_is_noted_once),
        TEST(a_large_netlist_is_read_in_time_that_grows_with_its_size),
        TEST(lines_of_ten_megabytes_do_no_harm),
        TEST(subcircuits_that_multiply_end_at_the_limit),
        TEST(functions_that_multiply_end_at_the_limit),
        cmocka_unit_test(every_kind_of_part_has_a_whole_row),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
