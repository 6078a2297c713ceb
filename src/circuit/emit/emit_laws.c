// The laws of parts as C, in the order in which the reference form walks over them: then sums have
// the same bits. What an expression consists of comes from the table in circuit/operation.h.
#include "circuit/emit/emit.h"
#include "circuit/operation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- entries of the derivative -----------------------------------------------------------------

static void constant(crdi_emit* e)
{
    e->varying[e->entry++] = -1;
}

// sign: "-" or ""
static void varies(crdi_emit* e, const char* sign, const char* value)
{
    crdi_text_add(e->out, "    j[%d] = (real)(%s%s);\n", (int)e->moving, sign, value);
    e->varying[e->entry++] = e->moving++;
}

// v_a - v_b and i as text; their entries are constant.
typedef struct text {
    char s[96];
} text;

static text put_voltage(crdi_emit* e, const crd_part* p)
{
    text t = {""};
    constant(e);
    constant(e);
    snprintf(t.s, sizeof t.s, "x[%d] - x[%d]", (int)p->nodes[0], (int)p->nodes[1]);
    return t;
}

static text number(double x)
{
    char digits[CRDI_C_NUMBER];
    text t = {""};
    snprintf(t.s, sizeof t.s, "%s", crdi_c_number(digits, x));
    return t;
}

// ---- expressions -------------------------------------------------------------------------------

typedef struct operator_text {
    const char *value, *by[3];
} operator_text;

#define OPERATOR_TEXT(name, operands, value, da, db, dc) {#value, {#da, #db, #dc}},
static const operator_text operators[] = {CRDI_OPERATORS(OPERATOR_TEXT)};
#undef OPERATOR_TEXT

static int expression_index(const crdi_emit* e, const crd_expression* x)
{
    for (int i = 0; i < e->n->expression_count; i++) {
        if (e->n->expressions[i] == x) { return i; }
    }
    for (int i = 0; i < e->n->output_count; i++) {
        if (e->n->outputs[i].what == x) { return e->n->expression_count + i; }
    }
    return -1;
}

static bool looks_up(const crdi_step* s)
{
    return s->op == OP_TABLE || s->op == OP_PWL;
}

static void put_operands(crdi_emit* e, const crdi_step* s)
{
    const int n = crdi_op_operands((crdi_op)s->op);
    crdi_text_add(e->out, "const double a = v[%d]", (int)s->a);
    if (n > 1) { crdi_text_add(e->out, ", b = v[%d]", (int)s->b); }
    if (n > 2) { crdi_text_add(e->out, ", c = v[%d]", (int)s->c); }
    crdi_text_add(e->out, "; ");
}

static void put_use_value(crdi_emit* e, const crd_use* u)
{
    switch (u->kind) {
    case CRD_USE_NODE:
        crdi_text_add(e->out, "x[%d]", (int)u->a);
        break;
    case CRD_USE_PAIR:
        crdi_text_add(e->out, "x[%d] - x[%d]", (int)u->a, (int)u->b);
        break;
    case CRD_USE_CURRENT:
        crdi_text_add(e->out, "x[%d]", (int)e->d->part[u->a].current);
        break;
    case CRD_USE_INPUT:
        crdi_text_add(e->out, "u[%d]", (int)u->a);
        break;
    }
}

// v[0 .. count-1], forwards
static void put_values(crdi_emit* e, const crd_expression* x)
{
    char digits[CRDI_C_NUMBER];
    crdi_text_add(e->out, "    double v[%d];\n", x->count);
    for (int i = 0; i < x->count; i++) {
        const crdi_step* s = &x->steps[i];
        crdi_text_add(e->out, "    ");
        if (s->op == OP_CONST) {
            crdi_text_add(e->out, "v[%d] = %s;\n", i, crdi_c_number(digits, s->k));
        } else if (s->op == OP_USE) {
            crdi_text_add(e->out, "v[%d] = ", i);
            put_use_value(e, &x->uses[s->a]);
            crdi_text_add(e->out, ";\n");
        } else if (s->op == OP_TIME) {
            crdi_text_add(e->out, "v[%d] = t;\n", i);
        } else if (looks_up(s)) {
            crdi_text_add(e->out, "v[%d] = look_up(points_%d + %d, %d, v[%d], %d);\n", i,
                          expression_index(e, x), (int)s->b, (int)s->c, (int)s->a,
                          s->op == OP_TABLE);
        } else {
            crdi_text_add(e->out, "{ ");
            put_operands(e, s);
            crdi_text_add(e->out, "v[%d] = %s; }\n", i, operators[s->op].value);
        }
    }
}

static void put_spread(crdi_emit* e, const crd_expression* x, int i)
{
    const crdi_step* s = &x->steps[i];
    const int n = crdi_op_operands((crdi_op)s->op);
    const int32_t to[3] = {s->a, s->b, s->c};
    crdi_text_add(e->out, "    if (d[%d] != 0) { ", i);
    if (s->op == OP_USE) {
        crdi_text_add(e->out, "gradient[%d] += d[%d]; }\n", (int)s->a, i);
        return;
    }
    if (looks_up(s)) {
        crdi_text_add(e->out,
                      "const double by = look_up_slope(points_%d + %d, %d, v[%d], %d); "
                      "if (by != 0) { d[%d] += d[%d] * by; } }\n",
                      expression_index(e, x), (int)s->b, (int)s->c, (int)s->a, s->op == OP_TABLE,
                      (int)s->a, i);
        return;
    }
    put_operands(e, s);
    crdi_text_add(e->out, "const double y = v[%d], g = d[%d]; (void)a; (void)y; (void)g; ", i, i);
    for (int k = 1; k < n; k++) {
        crdi_text_add(e->out, "(void)%c; ", 'a' + k);
    }
    for (int k = 0; k < n && k < 3; k++) {
        if (strcmp(operators[s->op].by[k], "0") == 0) { continue; }
        crdi_text_add(e->out, "{ const double by = %s; if (by != 0) { d[%d] += g * by; } } ",
                      operators[s->op].by[k], (int)to[k]);
    }
    crdi_text_add(e->out, "}\n");
}

// As crdi_dae_put_expression: its value into `to`, its entries times -factor.
static void put_expression(crdi_emit* e, const crd_expression* x, const char* to,
                           const char* factor)
{
    const int last = x->count - 1;
    crdi_text_add(e->out, "    double %s;\n    {\n", to);
    put_values(e, x);
    crdi_text_add(e->out, "    %s = v[%d];\n", to, last);
    if (x->use_count > 0) {
        crdi_text_add(e->out, "    double d[%d] = {0}, gradient[%d] = {0};\n    d[%d] = 1;\n",
                      x->count, x->use_count, last);
        for (int i = last; i >= x->constants; i--) {
            const int op = x->steps[i].op;
            if (op != OP_CONST && op != OP_TIME) { put_spread(e, x, i); }
        }
        for (int i = 0; i < x->use_count; i++) {
            text slope; // without a factor it is 1
            snprintf(slope.s, sizeof slope.s, "%s%sgradient[%d]", factor, factor[0] ? " * " : "",
                     i);
            const crd_use_kind kind = x->uses[i].kind;
            if (kind == CRD_USE_INPUT) { continue; }
            varies(e, "-", slope.s);
            if (kind == CRD_USE_PAIR) { varies(e, "", slope.s); }
        }
    }
    crdi_text_add(e->out, "    }\n");
}

// ---- tables ------------------------------------------------------------------------------------

static void put_points(crdi_emit* e, const crd_expression* x)
{
    int last = 0;
    for (int i = 0; x && i < x->count; i++) {
        const crdi_step* s = &x->steps[i];
        if (looks_up(s) && s->b + 2 * s->c > last) { last = s->b + 2 * s->c; }
    }
    if (last == 0) { return; }
    char name[40];
    snprintf(name, sizeof name, "points_%d", expression_index(e, x));
    crdi_emit_doubles(e->out, name, x->table, (size_t)last, false);
}

static void put_diodes(crdi_emit* e)
{
    crdi_text_add(e->out, "static const diode diodes[%d] = {\n", e->n->diode_count);
    for (int i = 0; i < e->n->diode_count; i++) {
        const crd_diode_model* m = &e->n->diodes[i];
        const double nvt = m->n * m->vt;
        const double all[11] = {
            m->is,  nvt,   m->gmin, m->bv, m->ibv > 0 ? m->ibv : m->is,       m->rs,
            m->cjo, m->vj, m->m,    m->tt, nvt * log(nvt / (sqrt(2) * m->is))};
        crdi_text_add(e->out, "    {");
        for (int k = 0; k < 11; k++) {
            crdi_text_add(e->out, "%s%s", k ? ", " : "", number(all[k]).s);
        }
        crdi_text_add(e->out, "},\n");
    }
    crdi_text_add(e->out, "};\n\n");
}

void crdi_emit_tables(crdi_emit* e)
{
    const crd_netlist* n = e->n;
    bool timed = false;
    for (int i = 0; i < n->wave_count; i++) {
        const crd_waveform* w = &n->waves[i];
        char name[40];
        timed = timed || (w->kind != CRD_WAVE_DC && w->kind != CRD_WAVE_INPUT);
        if (w->kind == CRD_WAVE_PWL) {
            snprintf(name, sizeof name, "times_%d", i);
            crdi_emit_doubles(e->out, name, w->times, (size_t)w->count, false);
            snprintf(name, sizeof name, "values_%d", i);
            crdi_emit_doubles(e->out, name, w->values, (size_t)w->count, false);
        } else if (w->kind != CRD_WAVE_DC && w->kind != CRD_WAVE_INPUT) {
            snprintf(name, sizeof name, "wave_%d", i);
            crdi_emit_doubles(e->out, name, w->v, 7, false);
        }
    }
    if (timed) { crdi_text_add(e->out, "%s", crdi_emit_waves); }
    for (int i = 0; i < n->expression_count; i++) {
        put_points(e, n->expressions[i]);
    }
    for (int i = 0; i < n->output_count; i++) {
        put_points(e, n->outputs[i].what);
    }
    if (n->expression_count + n->output_count > 0) {
        crdi_text_add(e->out, "%s", crdi_emit_operators);
    }
    if (e->d->diodes > 0) {
        crdi_text_add(e->out, "%s", crdi_emit_diode);
        put_diodes(e);
    }
}

static text wave(const crdi_emit* e, const crd_part* p)
{
    const crd_waveform* w = &e->n->waves[p->index];
    const int i = p->index;
    text t = {""};
    switch (w->kind) {
    case CRD_WAVE_DC:
        return number(w->v[0]);
    case CRD_WAVE_INPUT:
        snprintf(t.s, sizeof t.s, "u[%d]", w->input);
        return t;
    case CRD_WAVE_PWL:
        snprintf(t.s, sizeof t.s, "wave_points(times_%d, values_%d, %d, t)", i, i, w->count);
        return t;
    default:
        snprintf(t.s, sizeof t.s, "wave_%s(wave_%d, t)",
                 w->kind == CRD_WAVE_SIN     ? "sine"
                 : w->kind == CRD_WAVE_PULSE ? "pulse"
                                             : "exponential",
                 i);
        return t;
    }
}

// ---- laws --------------------------------------------------------------------------------------

typedef void law(crdi_emit* e, int32_t part);

static void put_resistance(crdi_emit* e, int32_t part, const char* r, bool moves)
{
    const crdi_dae_part* q = &e->d->part[part];
    const text v = put_voltage(e, &e->n->parts[part]);
    crdi_text_add(e->out, "    f[%d] = %s - %s * x[%d];\n", (int)q->row, v.s, r, (int)q->current);
    if (moves) {
        varies(e, "-", r);
    } else {
        constant(e);
    }
}

static void resistor(crdi_emit* e, int32_t part)
{
    const crd_part* p = &e->n->parts[part];
    if (p->index < 0) {
        put_resistance(e, part, number(p->value).s, false);
        return;
    }
    char current[32];
    snprintf(current, sizeof current, "x[%d]", (int)e->d->part[part].current);
    crdi_text_add(e->out, "    {\n");
    put_expression(e, e->n->expressions[p->index], "r", current);
    put_resistance(e, part, "r", true);
    crdi_text_add(e->out, "    }\n");
}

static void switched(crdi_emit* e, int32_t part)
{
    const crd_switch_model* m = &e->n->switches[e->n->parts[part].index];
    crdi_text_add(e->out, "    {\n    const double r = closed[%d] != 0 ? %s : %s;\n",
                  (int)e->d->part[part].device, number(m->on).s, number(m->off).s);
    put_resistance(e, part, "r", true);
    crdi_text_add(e->out, "    }\n");
}

static void capacitor(crdi_emit* e, int32_t part)
{
    const crdi_dae_part* q = &e->d->part[part];
    crdi_text_add(e->out, "    f[%d] = -x[%d];\n", (int)q->row, (int)q->current);
    constant(e);
}

static void inductor(crdi_emit* e, int32_t part)
{
    const crd_part* p = &e->n->parts[part];
    crdi_text_add(e->out, "    f[%d] = x[%d] - x[%d];\n", (int)e->d->part[part].row,
                  (int)p->nodes[1], (int)p->nodes[0]);
    constant(e);
    constant(e);
}

static text left_of(crdi_emit* e, int32_t part, bool voltage)
{
    if (voltage) { return put_voltage(e, &e->n->parts[part]); }
    text t = {""};
    constant(e);
    snprintf(t.s, sizeof t.s, "x[%d]", (int)e->d->part[part].current);
    return t;
}

static void source(crdi_emit* e, int32_t part)
{
    const crd_part* p = &e->n->parts[part];
    const text left = left_of(e, part, p->kind == CRD_PART_VOLTAGE);
    crdi_text_add(e->out, "    f[%d] = %s - %s;\n", (int)e->d->part[part].row, left.s,
                  wave(e, p).s);
}

static void controlled(crdi_emit* e, int32_t part)
{
    const crd_part* p = &e->n->parts[part];
    const crdi_part_kind* k = crdi_part_kind_of(p);
    const text left = left_of(e, part, k->fixes == CRDI_FIXES_VOLTAGE);
    constant(e);
    if (k->control == CRDI_CONTROL_VOLTAGE) {
        constant(e);
        crdi_text_add(e->out, "    f[%d] = %s - %s * (x[%d] - x[%d]);\n", (int)e->d->part[part].row,
                      left.s, number(p->value).s, (int)p->nodes[2], (int)p->nodes[3]);
    } else {
        crdi_text_add(e->out, "    f[%d] = %s - %s * x[%d];\n", (int)e->d->part[part].row, left.s,
                      number(p->value).s, (int)e->d->part[p->refs[0]].current);
    }
}

static void behaviour(crdi_emit* e, int32_t part)
{
    const crd_part* p = &e->n->parts[part];
    const text left = left_of(e, part, p->kind == CRD_PART_B_VOLTAGE);
    crdi_text_add(e->out, "    {\n");
    put_expression(e, e->n->expressions[p->index], "r", "");
    crdi_text_add(e->out, "    f[%d] = %s - r;\n    }\n", (int)e->d->part[part].row, left.s);
}

static void diode(crdi_emit* e, int32_t part)
{
    const crd_part* p = &e->n->parts[part];
    const crdi_dae_part* q = &e->d->part[part];
    const int b = (int)p->nodes[1], inner = (int)q->inner;
    crdi_text_add(e->out,
                  "    {\n"
                  "    const double at = limit[%d], v = x[%d] - x[%d];\n"
                  "    const value_slope g = current_at(&diodes[%d], at);\n"
                  "    f[%d] = x[%d] - (g.value + g.slope * (v - at));\n",
                  (int)q->device, inner, b, (int)p->index, (int)q->row, (int)q->inner_current);
    constant(e);
    varies(e, "-", "g.slope");
    varies(e, "", "g.slope");
    if (q->series_row >= 0) {
        crdi_text_add(e->out, "    f[%d] = x[%d] - x[%d] - %s * x[%d];\n", (int)q->series_row,
                      (int)p->nodes[0], inner, number(e->n->diodes[p->index].rs).s,
                      (int)q->current);
        constant(e);
        constant(e);
        constant(e);
    }
    if (q->charge >= 0) {
        crdi_text_add(e->out,
                      "    const value_slope s = charge_at(&diodes[%d], at, g);\n"
                      "    f[%d] = x[%d] - (s.value + s.slope * (v - at));\n"
                      "    f[%d] = -x[%d];\n",
                      (int)p->index, (int)q->charge_row, (int)q->charge, (int)q->charging_row,
                      (int)q->charging);
        constant(e);
        varies(e, "-", "s.slope");
        varies(e, "", "s.slope");
        constant(e);
    }
    crdi_text_add(e->out, "    }\n");
}

static law* const laws[CRDI_PART_KINDS] = {
    [CRD_PART_RESISTOR] = resistor,   [CRD_PART_CAPACITOR] = capacitor,
    [CRD_PART_INDUCTOR] = inductor,   [CRD_PART_VOLTAGE] = source,
    [CRD_PART_CURRENT] = source,      [CRD_PART_DIODE] = diode,
    [CRD_PART_SWITCH] = switched,     [CRD_PART_CURRENT_SWITCH] = switched,
    [CRD_PART_VCVS] = controlled,     [CRD_PART_CCCS] = controlled,
    [CRD_PART_VCCS] = controlled,     [CRD_PART_CCVS] = controlled,
    [CRD_PART_B_VOLTAGE] = behaviour, [CRD_PART_B_CURRENT] = behaviour,
};

static void put_flow(crdi_emit* e, int32_t a, int32_t b, int32_t column)
{
    if (a > 0) {
        crdi_text_add(e->out, "    f[%d] += x[%d];\n", (int)a, (int)column);
        constant(e);
    }
    if (b > 0) {
        crdi_text_add(e->out, "    f[%d] -= x[%d];\n", (int)b, (int)column);
        constant(e);
    }
}

// The order of crdi_dae_eval.
void crdi_emit_laws(crdi_emit* e)
{
    e->entry = 0;
    e->moving = 0;
    crdi_text_add(e->out, "    f[0] = x[0];\n");
    constant(e);
    for (int32_t i = 0; i < e->n->part_count; i++) {
        const crd_part* p = &e->n->parts[i];
        const crdi_dae_part* q = &e->d->part[i];
        if (q->current < 0) { continue; }
        laws[p->kind](e, i);
        const bool inside = q->inner_current >= 0 && q->inner_current != q->current;
        put_flow(e, p->nodes[0], inside ? q->inner : p->nodes[1], q->current);
        if (inside) { put_flow(e, q->inner, p->nodes[1], q->inner_current); }
        if (q->charging >= 0) { put_flow(e, q->inner, p->nodes[1], q->charging); }
    }
}

void crdi_emit_rates(crdi_emit* e)
{
    const int m = (int)e->d->m;
    for (int32_t i = 0; i < e->n->part_count; i++) {
        const crd_part* p = &e->n->parts[i];
        const crdi_dae_part* q = &e->d->part[i];
        if (p->kind == CRD_PART_CAPACITOR) {
            crdi_text_add(e->out, "    s->history[%d] += -x[%d];\n", (int)q->row - m,
                          (int)q->current);
        } else if (p->kind == CRD_PART_INDUCTOR) {
            crdi_text_add(e->out, "    s->history[%d] += x[%d] - x[%d];\n", (int)q->row - m,
                          (int)p->nodes[1], (int)p->nodes[0]);
        } else if (q->charging >= 0) {
            crdi_text_add(e->out, "    s->history[%d] += -x[%d];\n", (int)q->charging_row - m,
                          (int)q->charging);
        }
    }
}

// ---- between iterations, between steps ---------------------------------------------------------

void crdi_emit_limits(crdi_emit* e)
{
    bool known = true; // how far off everything is that is not linear
    crdi_text_add(e->out, "static int limit_diodes(const double* x, double* limit)\n{\n"
                          "    int limited = 0;\n");
    for (int32_t i = 0; i < e->n->part_count; i++) {
        const crd_part* p = &e->n->parts[i];
        const crdi_part_kind* k = crdi_part_kind_of(p);
        known = known && (crdi_part_is_linear(p) || k->switches || k->off);
        if (!k->limit) { continue; }
        const crdi_dae_part* q = &e->d->part[i];
        crdi_text_add(e->out,
                      "    limited |= diode_limit(&diodes[%d], x[%d] - x[%d], &limit[%d], "
                      "TOLERANCE);\n",
                      (int)p->index, (int)q->inner, (int)p->nodes[1], (int)q->device);
    }
    crdi_text_add(e->out, "    return limited;\n}\n\n"
                          "static int at_rounding(const double* x, const double* limit)\n{\n");
    if (!known) {
        crdi_text_add(e->out, "    (void)x;\n    (void)limit;\n    return 0;\n}\n\n");
        return;
    }
    crdi_text_add(e->out, "    double largest = 1, off = 0;\n");
    for (int32_t i = 0; i < e->n->part_count; i++) {
        const crd_part* p = &e->n->parts[i];
        const crdi_dae_part* q = &e->d->part[i];
        if (q->current < 0) { continue; }
        crdi_text_add(e->out, "    largest = fmax(largest, fabs(x[%d]));\n", (int)q->current);
        if (!crdi_part_kind_of(p)->off) { continue; }
        crdi_text_add(e->out,
                      "    off = fmax(off, diode_off(&diodes[%d], x[%d] - x[%d], limit[%d]));\n",
                      (int)p->index, (int)q->inner, (int)p->nodes[1], (int)q->device);
    }
    crdi_text_add(e->out, "    return off <= 1e-12 * largest;\n}\n\n");
}

void crdi_emit_switches(crdi_emit* e)
{
    crdi_text_add(e->out, "static int move_switches(const double* x, double* closed)\n{\n"
                          "    int moved = 0;\n    double u, is;\n");
    for (int32_t i = 0; i < e->n->part_count; i++) {
        const crd_part* p = &e->n->parts[i];
        if (!crdi_part_kind_of(p)->switches) { continue; }
        const crd_switch_model* m = &e->n->switches[p->index];
        const double reach = fabs(m->hysteresis);
        const int at = (int)e->d->part[i].device;
        if (p->kind == CRD_PART_SWITCH) {
            crdi_text_add(e->out, "    u = x[%d] - x[%d];\n", (int)p->nodes[2], (int)p->nodes[3]);
        } else {
            crdi_text_add(e->out, "    u = x[%d];\n", (int)e->d->part[p->refs[0]].current);
        }
        crdi_text_add(e->out,
                      "    is = u > %s ? 1 : u < %s ? 0 : closed[%d];\n"
                      "    moved |= is != closed[%d];\n    closed[%d] = is;\n",
                      number(m->threshold + reach).s, number(m->threshold - reach).s, at, at, at);
    }
    crdi_text_add(e->out, "    return moved;\n}\n\n");
}

void crdi_emit_outputs(crdi_emit* e)
{
    for (int i = 0; i < e->n->output_count; i++) {
        const crd_expression* x = e->n->outputs[i].what;
        crdi_text_add(e->out, "    {\n");
        put_values(e, x);
        crdi_text_add(e->out, "    y[%d] = v[%d];\n    }\n", i, x->count - 1);
    }
    for (int32_t i = 1; i < e->n->node_count && e->n->output_count == 0; i++) {
        crdi_text_add(e->out, "    y[%d] = x[%d];\n", (int)i - 1, (int)i);
    }
}
