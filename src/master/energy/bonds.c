// Power bonds: two outputs f and v, each connected to an input of the other's unit, whose product
// is a power. What the exchange adds to it or takes from it is watched at the points where both
// units exchange, and taken out again by a correction of one of the two inputs (Rodriguez 2021,
// 5.5 and 5.6).
//
// Everything is in SI here: f as it arrives at the unit that gives v, v as that unit gives it.
#include "master/master.h"
#include "shared/base_findings.h"
#include "shared/base_names.h"
#include "shared/system.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the outputs of a bond ---------------------------------------------------------------------

typedef struct {
    int member;
    const char* text;          // as written
    int32_t variable, element; // element -1: all
    int count;                 // of elements
} end;

// A bond of the description, on its way to become one of the run or a part of one.
typedef struct {
    crdi_plan* plan;
    const crd_bond_spec* spec;
    const crdi_energy* energy;
    const char* name;
    end action, flow;
} cut;

static const crd_unit* unit_of(const crdi_plan* plan, int member)
{
    return plan->members[member].unit;
}

static const crd_variable* bonds_variable_of(const crdi_plan* plan, const end* e)
{
    return &unit_of(plan, e->member)->info.variables[e->variable];
}

#define COMPLAIN(c, format, ...)                                                                   \
    crdi_fail((c)->plan->ctx, CRD_E_RANGE, "%sbond '%s': " format,                                 \
              crdi_where((c)->spec->place, (char[512]){0}, 512), (c)->name, __VA_ARGS__)

// A sentence that is there already gets the place and the name.
static crd_status blame(const cut* c, crd_status st)
{
    char at[512];
    return crdi_fail_in(c->plan->ctx, st, "%sbond '%s'", crdi_where(c->spec->place, at, sizeof at),
                        c->name);
}

// The source of an input, for those who name the input.
static const crdi_connection* bonds_source_of(const crdi_plan* plan, const end* e)
{
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        if (k->to.member == e->member && k->to.variable == e->variable) { return k; }
    }
    return NULL;
}

static crd_status bonds_check_output(const cut* c, const end* e)
{
    const crdi_plan* plan = c->plan;
    const crd_variable* v = bonds_variable_of(plan, e);
    const char* unit = unit_of(plan, e->member)->name;
    if (v->causality == CRD_INPUT) {
        const crdi_connection* k = bonds_source_of(plan, e);
        if (k) {
            return COMPLAIN(c,
                            "%s.%s is an input, expected the output that it is connected to, "
                            "%s.%s",
                            unit, e->text, unit_of(plan, k->from.member)->name, k->spec->from);
        }
    }
    if (v->causality != CRD_OUTPUT && v->causality != CRD_LOCAL) {
        return COMPLAIN(c, "%s.%s is %s, expected an output", unit, e->text,
                        v->causality == CRD_INPUT         ? "an input"
                        : v->causality == CRD_INDEPENDENT ? "the time"
                                                          : "a parameter");
    }
    if (crd_type_kind(v->type) != CRD_REAL || v->variability != CRD_CONTINUOUS) {
        return COMPLAIN(c, "%s.%s is a %s%s, expected a continuous Float64", unit, e->text,
                        crd_type_kind(v->type) == CRD_REAL ? "discrete " : "",
                        crdi_type_names[v->type]);
    }
    return CRD_OK;
}

static crd_status resolve_end(const cut* c, int member, const char* text, end* out)
{
    const crd_unit* u = unit_of(c->plan, member);
    *out = (end){.member = member, .text = text};
    const crd_status st = crd_unit_resolve(u, c->plan->ctx, text, &out->variable, &out->element);
    if (st < 0) { return blame(c, st); }
    const int32_t alias = u->info.variables[out->variable].alias_of;
    if (alias >= 0) { out->variable = alias; }
    const crd_variable* v = bonds_variable_of(c->plan, out);
    out->count = out->element < 0 ? (int)v->size : 1;
    return bonds_check_output(c, out);
}

static bool same_end(const end* a, const end* b)
{
    return a->member == b->member && a->variable == b->variable &&
           (a->element == b->element || a->element < 0 || b->element < 0);
}

static crd_status check_once(const cut* c, const cut* earlier, int count)
{
    for (int i = 0; i < count; i++) {
        const cut* o = &earlier[i];
        if ((same_end(&c->action, &o->action) && same_end(&c->flow, &o->flow)) ||
            (same_end(&c->action, &o->flow) && same_end(&c->flow, &o->action))) {
            return COMPLAIN(c, "%s.%s and %s.%s are a bond already, in line %d",
                            unit_of(c->plan, c->action.member)->name, c->action.text,
                            unit_of(c->plan, c->flow.member)->name, c->flow.text,
                            o->spec->place.line);
        }
    }
    return CRD_OK;
}

static crd_status resolve_cut(cut* c, const cut* earlier, int count)
{
    crd_status st = CRD_OK;
    const crd_bond_spec* s = c->spec;
    const char *a = unit_of(c->plan, s->action_unit)->name,
               *b = unit_of(c->plan, s->flow_unit)->name;
    c->name = s->name && s->name[0]
                  ? s->name
                  : crdi_arena_format(c->plan->arena, "%s.%s x %s.%s", a, s->action, b, s->flow);
    if (!c->name) { return CRD_E_MEMORY; }
    if (s->action_unit == s->flow_unit) {
        return COMPLAIN(c, "both are of unit '%s', expected two units that are connected", a);
    }
    CRD_TRY(resolve_end(c, s->action_unit, s->action, &c->action));
    CRD_TRY(resolve_end(c, s->flow_unit, s->flow, &c->flow));
    if (c->action.count != c->flow.count || c->action.count < 1) {
        return COMPLAIN(c, "%s.%s has %d elements and %s.%s has %d: a bond takes pairs", a,
                        s->action, c->action.count, b, s->flow, c->flow.count);
    }
    CRD_TRY(check_once(c, earlier, count));
fail:
    return st;
}

// ---- the connections of a bond -----------------------------------------------------------------

static int element_of(const end* e, int i)
{
    return e->element < 0 ? i : e->element;
}

// To a unit, or to any (-1).
static crdi_connection* bonds_find_link(const crdi_plan* plan, const end* from, int element,
                                        int to_member)
{
    for (int i = 0; i < plan->connection_count; i++) {
        crdi_connection* k = &plan->connections[i];
        if (k->from.member != from->member || k->from.variable != from->variable ||
            k->from.element != element) {
            continue;
        }
        if (to_member < 0 || k->to.member == to_member) { return k; }
    }
    return NULL;
}

// Why there is no way from one end of the bond to the unit of the other.
static crd_status no_way(const cut* c, const end* from, const end* to, int element)
{
    const crdi_plan* plan = c->plan;
    const char *a = unit_of(plan, from->member)->name, *b = unit_of(plan, to->member)->name;
    const crdi_connection* k = bonds_find_link(plan, from, element, -1);
    if (k) {
        return COMPLAIN(c,
                        "%s.%s goes to %s.%s, not to an input of '%s', which gives %s.%s: both "
                        "outputs of a bond have to be connected to the other's unit",
                        a, from->text, unit_of(plan, k->to.member)->name, k->spec->to, b, b,
                        to->text);
    }
    return COMPLAIN(c,
                    "%s.%s is not connected to an input of '%s', which gives %s.%s: both outputs "
                    "of a bond have to be connected to the other's unit",
                    a, from->text, b, b, to->text);
}

static crd_status find_way(const cut* c, const end* from, const end* to, int i,
                           crdi_connection** out)
{
    const crdi_plan* plan = c->plan;
    crdi_connection* k = bonds_find_link(plan, from, element_of(from, i), to->member);
    if (!k) { return no_way(c, from, to, element_of(from, i)); }
    const char *a = unit_of(plan, from->member)->name, *b = unit_of(plan, to->member)->name;
    if (k->transform && k->gain == 0) {
        return COMPLAIN(c, "the connection %s.%s -> %s.%s has gain 0: no power passes", a,
                        from->text, b, k->spec->to);
    }
    *out = k;
    return CRD_OK;
}

// What the numbers at one end of a link are in. The other end tells it if this one says nothing.
static crd_status bonds_measure(const cut* c, const end* e, const crdi_connection* k, bool arriving,
                                crd_dimension* out)
{
    const crdi_plan* plan = c->plan;
    const crd_unit *source = unit_of(plan, k->from.member), *target = unit_of(plan, k->to.member);
    const bool given = crdi_unit_dimension(source, k->from.variable, out);
    crd_dimension there;
    if ((arriving || !given) && crdi_unit_dimension(target, k->to.variable, &there)) {
        if (!arriving && k->transform) { // there it is another number
            there.factor *= k->gain;
            there.offset += k->offset * there.factor / k->gain;
        }
        *out = there;
        return CRD_OK;
    }
    if (given) { return CRD_OK; }
    const crd_variable* v = bonds_variable_of(plan, e);
    return v->unit && v->unit[0]
               ? COMPLAIN(c,
                          "nobody knows the unit '%s' of %s.%s: with it, one could tell whether "
                          "the product is a power",
                          v->unit, source->name, e->text)
               : COMPLAIN(c,
                          "%s.%s has no unit, so nobody knows whether the product is a power: it "
                          "needs one in the description of '%s'",
                          source->name, e->text, source->name);
}

static crd_dimension product(const crd_dimension* a, const crd_dimension* b)
{
    return (crd_dimension){.kg = (int8_t)(a->kg + b->kg),
                           .m = (int8_t)(a->m + b->m),
                           .s = (int8_t)(a->s + b->s),
                           .A = (int8_t)(a->A + b->A),
                           .K = (int8_t)(a->K + b->K),
                           .mol = (int8_t)(a->mol + b->mol),
                           .cd = (int8_t)(a->cd + b->cd)};
}

bool crdi_bond_is_power(const crd_dimension* f, const crd_dimension* v)
{
    const crd_dimension p = product(f, v);
    return p.kg == 1 && p.m == 2 && p.s == -3 && p.A == 0 && p.K == 0 && p.mol == 0 && p.cd == 0;
}

// What is to be multiplied by `has` to make a power, "m2": radians do not count.
static const char* missing_for_power(const crd_dimension* has, char* out, size_t size)
{
    const int of[] = {1 - has->kg, 2 - has->m, -3 - has->s, -has->A, -has->K, -has->mol, -has->cd};
    static const char* const names[] = {"kg", "m", "s", "A", "K", "mol", "cd"};
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < 7; i++) {
        if (of[i] == 0 || n + 16 > size) { continue; }
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "." : "", names[i]);
        if (of[i] != 1) { n += (size_t)snprintf(out + n, size - n, "%d", of[i]); }
    }
    return out;
}

// A quantity of the description, which has read it before; 1 if there is none.
static double quantity_of(const char* text, crd_dimension* dim)
{
    double si = 1;
    bool bare;
    *dim = (crd_dimension){.factor = 1};
    if (!text || !text[0]) { return 1; }
    return crd_quantity_parse(text, &si, dim, &bare) ? si : 1;
}

// The product with its factor, or the power of a spring between both displacements.
static crd_status check_power(const cut* c, const crd_dimension* f, const crd_dimension* v,
                              double* factor)
{
    const crd_bond_spec* s = c->spec;
    const bool spring = s->stiffness && s->stiffness[0], given = s->factor && s->factor[0];
    crd_dimension k;
    *factor = quantity_of(spring ? s->stiffness : s->factor, &k);
    crd_dimension all = product(f, &k);
    all.s -= spring; // of a displacement over a time
    if (crdi_bond_is_power(&all, v)) { return CRD_OK; }
    all = product(&all, v);
    const crd_variable *a = bonds_variable_of(c->plan, &c->action),
                       *b = bonds_variable_of(c->plan, &c->flow);
    const char *first = unit_of(c->plan, c->action.member)->name,
               *second = unit_of(c->plan, c->flow.member)->name;
    const char *f_unit = a->unit ? a->unit : "", *v_unit = b->unit ? b->unit : "";
    char lacks[96];
    missing_for_power(&all, lacks, sizeof lacks);
    if (spring) {
        return COMPLAIN(
            c,
            "%s.%s is in '%s' and %s.%s in '%s': with 'stiffness: %s' both have to be "
            "displacements and it a force over one (m and N/m, rad and N.m/rad); what is "
            "missing is a quantity in %s",
            first, c->action.text, f_unit, second, c->flow.text, v_unit, s->stiffness, lacks);
    }
    return COMPLAIN(
        c,
        "%s.%s is in '%s' and %s.%s in '%s': the product%s%s is not a power (as of N "
        "and m/s, N.m and rad/s, V and A): %s %s",
        first, c->action.text, f_unit, second, c->flow.text, v_unit,
        given ? " with its factor " : "", given ? s->factor : "",
        given ? "what is missing beside it is a quantity in"
        : crd_dimension_equal(f, v)
            ? "two displacements need the 'stiffness:' of the spring between them, other "
              "pairs a 'factor:' in"
            : "what is missing is a 'factor:' in",
        lacks);
}

static crd_status measure_axis(const cut* c, const crdi_connection* there,
                               const crdi_connection* back, crdi_axis* x)
{
    crd_status st = CRD_OK;
    crd_dimension f, v, v_in;
    double factor = 1;
    CRD_TRY(bonds_measure(c, &c->action, there, true, &f));
    CRD_TRY(bonds_measure(c, &c->flow, back, false, &v));
    CRD_TRY(bonds_measure(c, &c->flow, back, true, &v_in));
    CRD_TRY(check_power(c, &f, &v, &factor));
    x->flipped = f.kg == 0 && !(c->spec->stiffness && c->spec->stiffness[0]);
    const bool shifted = !bonds_variable_of(c->plan, &c->action)->relative_quantity;
    const bool v_shifted = !bonds_variable_of(c->plan, &c->flow)->relative_quantity;
    const double gain = there->transform ? there->gain : 1;
    const double offset = there->transform ? there->offset : 0;
    x->gain = gain * f.factor * factor;
    x->offset = (offset * f.factor + (shifted ? f.offset : 0)) * factor;
    x->v_gain = v.factor;
    x->v_offset = v_shifted ? v.offset : 0;
    x->back_gain = (back->transform ? back->gain : 1) * v_in.factor / v.factor;
    x->in_unit = 1 / (f.factor * factor);
    x->back_in_unit = 1 / v_in.factor;
fail:
    return st;
}

static crd_status make_axis(const cut* c, int i, crdi_axis* x)
{
    crd_status st = CRD_OK;
    crdi_connection *there = NULL, *back = NULL;
    CRD_TRY(find_way(c, &c->action, &c->flow, i, &there));
    CRD_TRY(find_way(c, &c->flow, &c->action, i, &back));
    x->action = there;
    x->flow = back;
    CRD_TRY(measure_axis(c, there, back, x));
    if (c->spec->stiffness && c->spec->stiffness[0]) {
        st = crdi_spring_plan(c->plan, c->spec, c->name, x);
        goto fail;
    }
    x->motion = crdi_balance_displacement(c->plan, x->flipped ? there : back);
fail:
    return st;
}

// ---- what is corrected -------------------------------------------------------------------------

// The output acts through an input that comes from the other unit. It need not be the partner: a
// spring's force follows the displacement, which is the sum of the flow.
static bool feeds_through(const crdi_plan* plan, const end* e, int other)
{
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        if (k->from.member == other && k->to.member == e->member &&
            crd_unit_depends(unit_of(plan, e->member), e->variable, k->to.variable, false)) {
            return true;
        }
    }
    return false;
}

static crdi_connection* corrected_by(const crdi_bond* p, int axis)
{
    return p->corrects_flow ? p->axes[axis].flow : p->axes[axis].action;
}

crd_status crdi_bond_mark(crdi_plan* plan, const crdi_bond* p, crdi_connection* k)
{
    const cut* c = &(cut){.plan = plan, .spec = p->spec, .name = p->name};
    const char *a = unit_of(plan, k->from.member)->name, *b = unit_of(plan, k->to.member)->name;
    if (k->spec->coupling && c->spec->correct == CRD_CORRECT_PROBE) {
        return COMPLAIN(c,
                        "%s.%s -> %s.%s has a coupling element, behind which nothing answers at "
                        "once: 'correct: balance' corrects such a bond",
                        a, k->spec->from, b, k->spec->to);
    }
    if (!k->real && !(k->curve && k->spec->coupling)) {
        return COMPLAIN(c, "%s.%s cannot be corrected: it is not a continuous input", b,
                        k->spec->to);
    }
    if (k->corrected) {
        return COMPLAIN(c,
                        "%s.%s is corrected for another bond already: one of them can only watch",
                        b, k->spec->to);
    }
    k->corrected = true;
    return CRD_OK;
}

// The output with feedthrough is the action of the equations, the other one is its flow; so a bond
// may be the other way round than it was written. The action's input is corrected, where a model
// takes it; an input of hardware is left alone.
static crd_status choose_side(const cut* c, crdi_bond* p)
{
    crdi_plan* plan = c->plan;
    const bool f_feeds = feeds_through(plan, &c->action, c->flow.member);
    p->swapped = !f_feeds && feeds_through(plan, &c->flow, c->action.member);
    p->feeds = f_feeds || p->swapped;
    p->corrects_flow = p->swapped;
    if (c->spec->correct == CRD_CORRECT_NONE) { return CRD_OK; }
    if (p->axes[0].spring) {
        return COMPLAIN(
            c, "a bond of two displacements is watched, not corrected: remove 'correct: %s'",
            crd_correction_name(c->spec->correct));
    }
    if (c->spec->correct == CRD_CORRECT_PROBE) {
        crdi_connection *there = p->axes[0].action, *back = p->axes[0].flow;
        return crdi_probing_plan(plan, c->energy, p, p->swapped ? back : there,
                                 p->swapped ? there : back);
    }
    const bool a_real = plan->sys->units[c->action.member].real;
    const bool b_real = plan->sys->units[c->flow.member].real;
    if (a_real && b_real) {
        return COMPLAIN(c,
                        "'%s' and '%s' are both real, and hardware cannot be corrected: remove "
                        "'correct: %s'",
                        unit_of(plan, c->action.member)->name, unit_of(plan, c->flow.member)->name,
                        crd_correction_name(c->spec->correct));
    }
    if (a_real || b_real) { p->corrects_flow = b_real; }
    for (int i = 0; i < p->axis_count; i++) {
        crdi_axis* x = &p->axes[i];
        const crd_status st = crdi_bond_mark(plan, p, corrected_by(p, i));
        if (st < 0) { return st; }
        // A force that follows the displacement does not see a velocity.
        const bool there = x->motion && p->corrects_flow != x->flipped && !x->motion->corrected &&
                           (x->motion->real || x->motion->spec->coupling);
        if (there && crdi_bond_mark(plan, p, x->motion) >= 0) { p->bond.moves = x->moves = true; }
    }
    return CRD_OK;
}

// ---- resolve -----------------------------------------------------------------------------------

static double given(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

static crd_status set_bond(const cut* c, crdi_bond* p)
{
    const crd_bond_spec* s = c->spec;
    const crd_bond d = crd_bond_defaults();
    p->bond = (crd_bond){.correction = s->correct,
                         .mu = given(s->mu, 0), // found when the schedule is known
                         .ki = given(s->ki, d.ki),
                         .limiter = given(s->limiter, d.limiter),
                         .forget = given(s->forget, d.forget)};
    const crd_status st = crd_bond_check(c->plan->ctx, &p->bond);
    return st < 0 ? blame(c, st) : CRD_OK;
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_name(const cut* a, const cut* b)
{
    return a->spec->name && a->spec->name[0] && b->spec->name &&
           strcmp(a->spec->name, b->spec->name) == 0;
}

// Bonds with the same name are components of one.
static crd_status check_together(const cut* first, const cut* c)
{
    const crd_bond_spec *a = first->spec, *b = c->spec;
    if (!crdi_bonds_join(a, b)) {
        return COMPLAIN(c,
                        "the bond of this name in line %d has other units: bonds with the same "
                        "name are components of one, or share the unit of a node",
                        a->place.line);
    }
    const bool node = a->action_unit != b->action_unit || a->flow_unit != b->flow_unit;
    if (node && b->correct != CRD_CORRECT_NONE) {
        return COMPLAIN(
            c,
            "a node of several units is watched, not corrected: remove 'correct: %s', or "
            "give this bond a name of its own",
            crd_correction_name(b->correct));
    }
    if (a->correct != b->correct || a->pair != b->pair || !same_number(a->mu, b->mu) ||
        !same_number(a->ki, b->ki) || !same_number(a->limiter, b->limiter) ||
        !same_number(a->forget, b->forget)) {
        return COMPLAIN(
            c,
            "correct, pair, mu, ki, limiter or forget differ from the bond of this name in "
            "line %d: bonds with the same name are components of one",
            a->place.line);
    }
    return CRD_OK;
}

// "first.fx, first.fy"
static const char* list_names(crdi_plan* plan, const cut* cuts, int count, int first, bool flow)
{
    const char* list = "";
    for (int i = first; i < count && list; i++) {
        if (i != first && !same_name(&cuts[first], &cuts[i])) { continue; }
        const end* e = flow ? &cuts[i].flow : &cuts[i].action;
        list = crdi_arena_format(plan->arena, "%s%s%s.%s", list, i == first ? "" : ", ",
                                 unit_of(plan, e->member)->name, e->text);
    }
    return list;
}

static crd_status make_power(crdi_plan* plan, const cut* cuts, int count, int first, crdi_bond* p)
{
    crd_status st = CRD_OK;
    int axes = 0;
    for (int i = first; i < count; i++) {
        if (i == first || same_name(&cuts[first], &cuts[i])) { axes += cuts[i].action.count; }
    }
    *p = (crdi_bond){.spec = cuts[first].spec,
                     .name = cuts[first].name,
                     .action_name = list_names(plan, cuts, count, first, false),
                     .flow_name = list_names(plan, cuts, count, first, true),
                     .action_member = cuts[first].action.member,
                     .flow_member = cuts[first].flow.member};
    p->axes = crdi_arena_new(plan->arena, (size_t)axes, sizeof *p->axes);
    p->parts = crdi_arena_new(plan->arena, (size_t)axes, sizeof *p->parts);
    if (!p->axes || !p->parts || !p->action_name || !p->flow_name) { return CRD_E_MEMORY; }
    for (int i = first; i < count; i++) {
        if (i != first && !same_name(&cuts[first], &cuts[i])) { continue; }
        CRD_TRY(check_together(&cuts[first], &cuts[i]));
        for (int k = 0; k < cuts[i].action.count; k++) {
            CRD_TRY(make_axis(&cuts[i], k, &p->axes[p->axis_count++]));
        }
    }
    CRD_TRY(set_bond(&cuts[first], p));
    CRD_TRY(choose_side(&cuts[first], p));
fail:
    return st;
}

crd_status crdi_bonds_plan(crdi_plan* plan, crdi_energy* energy)
{
    crd_status st = CRD_OK;
    const int count = plan->sys->bond_count;
    cut* cuts = crdi_arena_new(plan->arena, (size_t)count, sizeof *cuts);
    energy->bonds = crdi_arena_new(plan->arena, (size_t)count, sizeof *energy->bonds);
    energy->paired = crdi_arena_new(plan->arena, (size_t)count, sizeof *energy->paired);
    if (!cuts || !energy->bonds || !energy->paired) { return CRD_E_MEMORY; }
    for (int i = 0; i < count; i++) {
        cuts[i] = (cut){.plan = plan, .energy = energy, .spec = &plan->sys->bonds[i]};
        CRD_TRY(crdi_go_on(plan->ctx, resolve_cut(&cuts[i], cuts, i)));
    }
    CRD_TRY(crdi_findings_status(plan->ctx));
    for (int i = 0; i < count; i++) {
        int first = 0;
        while (first < i && !same_name(&cuts[first], &cuts[i])) {
            first++;
        }
        if (first < i) { continue; }
        crdi_bond* p = &energy->bonds[energy->bond_count];
        CRD_TRY(make_power(plan, cuts, count, i, p));
        if (p->spec->pair != CRD_PAIR_NONE) {
            crdi_bond* own = crdi_arena_new(plan->arena, 1, sizeof *own);
            if (!own) { return CRD_E_MEMORY; }
            *own = *p;
            energy->paired[energy->paired_count++] = own;
        } else if (p->bond.correction != CRD_CORRECT_NONE ||
                   plan->sys->run.monitor & CRD_MONITOR_ENERGY) {
            energy->bond_count++;
        }
    }
fail:
    return st;
}

// ---- for the record ----------------------------------------------------------------------------

static crd_status offer(crdi_bond* p, const char* name, crdi_offer value)
{
    if (!name) { return CRD_E_MEMORY; }
    value.name = name;
    value.type = CRD_FLOAT64;
    p->signals[p->signal_count++] = value;
    return CRD_OK;
}

// "first.f.bond"; an output may be in several bonds
static const char* column_name(crdi_plan* plan, const crdi_energy* energy, const crdi_bond* p)
{
    int same = 1;
    for (const crdi_bond* o = energy->bonds; o < p; o++) {
        same +=
            o->action_member == p->action_member && strcmp(o->spec->action, p->spec->action) == 0;
    }
    const char* unit = unit_of(plan, p->action_member)->name;
    return same == 1 ? crdi_arena_format(plan->arena, "%s.%s.bond", unit, p->spec->action)
                     : crdi_arena_format(plan->arena, "%s.%s.bond%d", unit, p->spec->action, same);
}

static crd_status offer_correction(crdi_plan* plan, crdi_bond* p, const crdi_connection* k,
                                   const double* from)
{
    const char* unit = unit_of(plan, k->to.member)->info.variables[k->to.variable].unit;
    return offer(p, crdi_arena_format(plan->arena, "%s.correction", k->to_name),
                 (crdi_offer){.from = from,
                              .unit = unit ? unit : "",
                              .description = "that acts until the next exchange"});
}

static crd_status offer_signals(crdi_plan* plan, const crdi_energy* energy, crdi_bond* p)
{
    crd_status st = CRD_OK;
    const char* name = column_name(plan, energy, p);
    const size_t most = 2 * (size_t)p->axis_count + 2 + (p->probing ? CRD_PROBE_INPUTS : 0);
    p->signals = crdi_arena_new(plan->arena, most, sizeof *p->signals);
    if (!name || !p->signals) { return CRD_E_MEMORY; }
    CRD_TRY(offer(p, crdi_arena_format(plan->arena, "%s.power", name),
                  (crdi_offer){.from = &p->state.power,
                               .unit = "W",
                               .description = "residual power of the last exchange"}));
    CRD_TRY(offer(p, crdi_arena_format(plan->arena, "%s.energy", name),
                  (crdi_offer){.from = &p->created,
                               .unit = "J",
                               .description = "energy that the bond has created so far"}));
    for (int i = 0; i < p->axis_count; i++) {
        const crdi_axis* x = &p->axes[i];
        if (x->target) {
            CRD_TRY(offer_correction(plan, p, x->target, crdi_connection_corrects(x->target)));
        }
        if (x->moves) {
            CRD_TRY(offer_correction(plan, p, x->motion, crdi_connection_corrects(x->motion)));
        }
    }
    const crdi_probing* q = p->probing;
    if (q) { CRD_TRY(offer_correction(plan, p, q->action->of, &q->lead)); }
    for (int i = 0; q && i < q->probe.inputs; i++) {
        CRD_TRY(offer_correction(plan, p, q->inputs[i]->of, &q->inputs[i]->correction));
    }
fail:
    return st;
}

// ---- run ---------------------------------------------------------------------------------------

crd_status crdi_bonds_bind(crdi_plan* plan, crdi_energy* energy)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < energy->bond_count; i++) {
        crdi_bond* p = &energy->bonds[i];
        for (int k = 0; k < p->axis_count; k++) {
            crdi_axis* x = &p->axes[k];
            x->f = crdi_connection_from(plan, x->action);
            x->v = crdi_connection_from(plan, x->flow);
            crdi_connection* corrected = corrected_by(p, k);
            if (corrected->corrected && !p->probing) {
                x->target = corrected;
                x->corrected = corrected->prediction;
            }
            crdi_balance_bind(plan, x);
            CRD_TRY(crdi_balance_make_room(plan, x));
            if (x->spring) { CRD_TRY(crdi_spring_bind(plan, p, x)); }
        }
        if (p->probing) { CRD_TRY(crdi_probing_bind(plan, p)); }
        crdi_bond_find_mu(plan, p);
        CRD_TRY(offer_signals(plan, energy, p));
    }
fail:
    return st;
}
