// What a run does about its own errors: run.control, run.iterate, run.monitor, and power bonds.
#include "shared/base_findings.h"
#include "system/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

// In the order of the enumerations; a test compares the names with those of quality.h.
static const char* const step_methods[] = {"pi", "h211b", NULL};
static const char* const defect_kinds[] = {"two-point", "one-sided", NULL};
static const char* const accelerations[] = {"fixed", "aitken", "iqn-ils", NULL};
static const char* const failures[] = {"explicit", "stop", NULL};
static const char* const corrections[] = {"none",  "power",   "lead", "gated",
                                          "probe", "balance", NULL};
_Static_assert(COUNT(step_methods) == CRD_STEP_H211B + 2, "a name for each method");
_Static_assert(COUNT(accelerations) == CRD_ACCEL_IQN_ILS + 2, "a name for each acceleration");
_Static_assert(COUNT(corrections) == CRD_CORRECT_BALANCE + 2, "a name for each correction");

static const char* const pairs[] = {"none", "wave", NULL};
static const char* const overs[] = {"none", "commands", NULL};

static crd_status read_reject(crdi_reader* r, const crdi_node* n, void* out);

static const crdi_key control_keys[] = {
    {KEY("tolerance", NUMBER, crd_control_spec, tolerance), .range = CRDI_POSITIVE},
    {KEY("method", CHOICE, crd_control_spec, method), .choices = step_methods},
    {KEY("absolute", BOOL, crd_control_spec, absolute)},
    {KEY("first", TIME, crd_control_spec, first), .range = CRDI_POSITIVE},
    {KEY("floor", TIME, crd_control_spec, floor), .range = CRDI_POSITIVE},
    {KEY("ceiling", TIME, crd_control_spec, ceiling), .range = CRDI_POSITIVE},
    {KEY("kp", NUMBER, crd_control_spec, kp), .range = CRDI_NOT_NEGATIVE},
    {KEY("ki", NUMBER, crd_control_spec, ki), .range = CRDI_POSITIVE},
    {KEY("growth", NUMBER, crd_control_spec, growth), .range = CRDI_POSITIVE},
    {KEY("safety", NUMBER, crd_control_spec, safety), .range = CRDI_POSITIVE},
    {KEY("reject", OWN, crd_control_spec, reject), .read = read_reject, .stored = CRDI_KEY_NUMBER},
    {KEY("defects", EITHER, crd_control_spec, one_sided), .choices = defect_kinds},
    {KEY("middle", BOOL, crd_control_spec, middle)},
};

static const crdi_key iterate_keys[] = {
    {KEY("tolerance", NUMBER, crd_iterate_spec, tolerance), .range = CRDI_POSITIVE},
    {KEY("sweeps", INT, crd_iterate_spec, sweeps), .min = 2, .max = 1000},
    {KEY("acceleration", CHOICE, crd_iterate_spec, acceleration), .choices = accelerations},
    {KEY("otherwise", EITHER, crd_iterate_spec, stop), .choices = failures},
};

typedef struct bond_draft {
    crd_bond_spec spec;
    const char *action, *flow;
    const crdi_node* channel;
} bond_draft;

enum {
    B_NAME,
    B_ACTION,
    B_FLOW,
    B_CORRECT,
    B_MU,
    B_KI,
    B_LIMITER,
    B_FORGET,
    B_FACTOR,
    B_STIFFNESS,
    B_DAMPING,
    B_PAIR,
    B_IMPEDANCE,
    B_INNER,
    B_OVER,
    B_CHANNEL
};

static const crdi_key bond_keys[] = {
    [B_NAME] = {KEY("name", TEXT, bond_draft, spec.name)},
    [B_ACTION] = {KEY("action", TEXT, bond_draft, action), .required = true},
    [B_FLOW] = {KEY("flow", TEXT, bond_draft, flow), .required = true},
    [B_CORRECT] = {KEY("correct", CHOICE, bond_draft, spec.correct), .choices = corrections},
    [B_MU] = {KEY("mu", NUMBER, bond_draft, spec.mu), .range = CRDI_NOT_NEGATIVE},
    [B_KI] = {KEY("ki", NUMBER, bond_draft, spec.ki), .range = CRDI_NOT_NEGATIVE},
    [B_LIMITER] = {KEY("limiter", NUMBER, bond_draft, spec.limiter), .range = CRDI_POSITIVE},
    [B_FORGET] = {KEY("forget", NUMBER, bond_draft, spec.forget), .range = CRDI_POSITIVE},
    [B_FACTOR] = {KEY("factor", TEXT, bond_draft, spec.factor)},
    [B_STIFFNESS] = {KEY("stiffness", TEXT, bond_draft, spec.stiffness)},
    [B_DAMPING] = {KEY("damping", TEXT, bond_draft, spec.damping)},
    [B_PAIR] = {KEY("pair", CHOICE, bond_draft, spec.pair), .choices = pairs},
    [B_IMPEDANCE] = {KEY("impedance", TEXT, bond_draft, spec.impedance)},
    [B_INNER] = {KEY("inner", TIME, bond_draft, spec.inner), .range = CRDI_POSITIVE},
    [B_OVER] = {KEY("over", EITHER, bond_draft, spec.over), .choices = overs},
    [B_CHANNEL] = {KEY("channel", NODE, bond_draft, channel)},
};

const crdi_table crdi_control_table = {"control", control_keys, COUNT(control_keys)};
const crdi_table crdi_iterate_table = {"iterate", iterate_keys, COUNT(iterate_keys)};
const crdi_table crdi_bond_table = {"bond", bond_keys, COUNT(bond_keys)};

void crdi_flow_control(crdi_flow* f, const crd_control_spec* c)
{
    const crd_run_spec defaults = crdi_run_spec_defaults();
    crdi_flow_table(f, &crdi_control_table, c, &defaults.control);
}

void crdi_flow_iterate(crdi_flow* f, const crd_iterate_spec* i)
{
    const crd_run_spec defaults = crdi_run_spec_defaults();
    crdi_flow_table(f, &crdi_iterate_table, i, &defaults.iterate);
}

void crdi_flow_bond(crdi_flow* f, const crd_bond_spec* b, const char* action, const char* flow)
{
    const bond_draft draft = {.spec = *b, .action = action, .flow = flow};
    const bond_draft defaults = {.spec = crd_bond_spec_defaults(), .action = "", .flow = ""};
    crdi_flow_table(f, &crdi_bond_table, &draft, &defaults);
    if (b->has_channel) {
        crdi_flow inner = {.t = f->t};
        crdi_flow_key(f, "channel");
        crdi_flow_channel(&inner, &b->channel);
        crdi_flow_end(&inner);
    }
}

// ---- words -------------------------------------------------------------------------------------

// 1 and 0 for what YAML takes for true and false, -1 for anything else.
static int read_quality_truth(const crdi_node* n)
{
    static const char* const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (int i = 0; n->kind == CRDI_SCALAR && !n->quoted && i < 6; i++) {
        if (strcasecmp(n->text, words[i]) == 0) { return i % 2; }
    }
    return -1;
}

crd_status crdi_read_refresh(crdi_reader* r, const crdi_node* n, void* out)
{
    const char* const expected = "auto, yes or no";
    const crd_status st = crdi_expect_kind(r, n, CRDI_SCALAR, expected);
    if (st < 0) { return st; }
    const int yes = read_quality_truth(n);
    if (yes < 0 && strcmp(n->text, "auto") != 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s', expected %s",
                              crdi_clip(n->text).text, expected);
    }
    *(crd_refresh*)out = yes < 0 ? CRD_REFRESH_AUTO : yes ? CRD_REFRESH_YES : CRD_REFRESH_NO;
    return CRD_OK;
}

static crd_status read_monitor_word(crdi_reader* r, const crdi_node* n, unsigned* out)
{
    const char* const expected = "defect, energy, solver, a list of them, all or none";
    const crd_status st = crdi_expect_kind(r, n, CRDI_SCALAR, expected);
    if (st < 0) { return st; }
    if (strcmp(n->text, "defect") == 0) {
        *out |= CRD_MONITOR_DEFECT;
    } else if (strcmp(n->text, "energy") == 0) {
        *out |= CRD_MONITOR_ENERGY;
    } else if (strcmp(n->text, "all") == 0) {
        *out |= CRD_MONITOR_DEFECT | CRD_MONITOR_ENERGY | CRD_MONITOR_SOLVER;
    } else if (strcmp(n->text, "solver") == 0) {
        *out |= CRD_MONITOR_SOLVER | CRD_MONITOR_DEFECT; // it stands beside the defects
    } else {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s' is not known. Expected %s",
                              crdi_clip(n->text).text, expected);
    }
    return CRD_OK;
}

crd_status crdi_read_monitor(crdi_reader* r, const crdi_node* n, void* out)
{
    crd_status st = CRD_OK;
    unsigned monitors = 0;
    if (n->kind == CRDI_LIST) {
        if (n->count == 0) {
            return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                                  "an empty list, expected [defect, energy], one of them, or none");
        }
        int i = 0;
        for (const crdi_node* m = n->first; m; m = m->next) {
            const size_t inner = crdi_path_enter_item(r, i++);
            CRD_TRY(read_monitor_word(r, m, &monitors));
            crdi_path_leave(r, inner);
        }
    } else if (n->kind != CRDI_SCALAR || strcmp(n->text, "none") != 0) {
        CRD_TRY(read_monitor_word(r, n, &monitors));
    }
    *(unsigned*)out = monitors;
fail:
    return st;
}

// ---- the sentences of quality.h, with a place --------------------------------------------------

// "step control: tol = 0, expected > 0" becomes "file:line: run.control: tol = 0, expected > 0".
static crd_status placed(crdi_reader* r, crd_status st, int line)
{
    char text[500];
    const char* why = crd_error_text(r->ctx);
    const char* colon = strstr(why, ": ");
    snprintf(text, sizeof text, "%s", colon ? colon + 2 : why);
    return crdi_read_fail(r, st, line, "%s", text);
}

// Values are put in one after the other, so that the first one that is refused is the culprit.
typedef struct part {
    const char* key;
    double* to;
    double value; // NaN: as it is
} part;

static crd_status read_quality_check_steps(crdi_reader* r, const crdi_node* n,
                                           const crd_control_spec* c)
{
    crd_step_options o = crd_step_defaults();
    o.tol = 1;
    o.floor = 1e-300;
    const part parts[] = {{"kp", &o.kp, c->kp},
                          {"ki", &o.ki, c->ki},
                          {"safety", &o.safety, c->safety},
                          {"ceiling", &o.ceiling, c->ceiling},
                          {"floor", &o.floor, c->floor}};
    for (int i = 0; i < COUNT(parts); i++) {
        if (isnan(parts[i].value)) { continue; }
        *parts[i].to = parts[i].value;
        const crd_status st = crd_step_check(r->ctx, &o);
        if (st < 0) { return placed(r, st, crdi_line_of(n, parts[i].key)); }
    }
    if (c->first < o.floor || c->first > o.ceiling) { // not with NaN
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "first"),
                              "first: %g s, expected a step from the floor of %g s to the ceiling "
                              "of %g s",
                              c->first, isnan(c->floor) ? 0 : c->floor, o.ceiling);
    }
    return CRD_OK;
}

static crd_status check_control(crdi_reader* r, const crdi_node* n, const crd_control_spec* c)
{
    if (!(c->tolerance > 0)) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "the tolerance is missing, expected one such as control: 1e-4 or "
                              "control: { tolerance: 1e-4 }");
    }
    if (c->growth <= 1) { // not with NaN
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "growth"),
                              "growth: %g, expected more than 1: a step may become that many times "
                              "as long as the one before",
                              c->growth);
    }
    return read_quality_check_steps(r, n, c);
}

// reject: 2, true, or false
static crd_status read_reject(crdi_reader* r, const crdi_node* n, void* out)
{
    const int yes = read_quality_truth(n);
    if (yes >= 0) {
        *(double*)out = yes ? 1 : (double)INFINITY;
        return CRD_OK;
    }
    double x = 0;
    const crd_status st = crdi_read_number(r, n, CRDI_POSITIVE, &x);
    if (st < 0) { return st; }
    if (!(x >= 1)) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line,
                              "%g, expected 1 or more: a step with a defect above that many "
                              "tolerances is taken back",
                              x);
    }
    *(double*)out = x;
    return CRD_OK;
}

// control: 1e-4, control: { ... }, or false for what a system below has.
crd_status crdi_read_control(crdi_reader* r, const crdi_node* n, void* out)
{
    crd_status st = CRD_OK;
    crd_control_spec c = *(crd_control_spec*)out;
    const int yes = read_quality_truth(n);
    c.on = yes != 0;
    c.place = (crd_place){r->file, n->line};
    if (n->kind == CRDI_MAPPING) {
        CRD_TRY(crdi_read_mapping(r, n, &crdi_control_table, &c, NULL));
    } else if (yes < 0) {
        CRD_TRY(crdi_read_number(r, n, CRDI_POSITIVE, &c.tolerance));
    }
    if (c.on) { CRD_TRY(check_control(r, n, &c)); }
    *(crd_control_spec*)out = c;
fail:
    return st;
}

crd_status crdi_read_iterate(crdi_reader* r, const crdi_node* n, void* out)
{
    crd_status st = CRD_OK;
    crd_iterate_spec i = *(crd_iterate_spec*)out;
    const int yes = read_quality_truth(n);
    if (yes < 0 && n->kind != CRDI_MAPPING) {
        CRD_TRY(crdi_expect_kind(r, n, CRDI_MAPPING,
                                 "true, false, or a mapping with the keys tolerance, sweeps, "
                                 "acceleration, otherwise"));
    }
    if (yes < 0) { CRD_TRY(crdi_read_mapping(r, n, &crdi_iterate_table, &i, NULL)); }
    i.on = yes != 0;
    i.place = (crd_place){r->file, n->line};
    *(crd_iterate_spec*)out = i;
fail:
    return st;
}

// ---- bonds -------------------------------------------------------------------------------------

// "0.0012 m2": a number that is not 0, with a unit.
static crd_status check_quantity(crd_context* ctx, const char* key, const char* text, bool positive,
                                 const char* example)
{
    double si = 0;
    crd_dimension dim;
    bool bare = false;
    if (!text || !text[0]) { return CRD_OK; }
    if (!crd_quantity_parse(text, &si, &dim, &bare) || !isfinite(si) || si == 0 ||
        (positive && si < 0)) {
        return crdi_fail(
            ctx, CRD_E_RANGE, "%s = '%s', expected a number %s and its unit, such as %s", key,
            crdi_clip(text).text, positive ? "greater than 0" : "that is not 0", example);
    }
    return CRD_OK;
}

static crd_status check_quantities(crd_context* ctx, const crd_bond_spec* b, const char** key)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_quantity(ctx, *key = "factor", b->factor, false, "0.0012 m2"));
    CRD_TRY(check_quantity(ctx, *key = "stiffness", b->stiffness, true, "100 N/m"));
    CRD_TRY(check_quantity(ctx, *key = "damping", b->damping, true, "0.1 N.s/m"));
    if (b->impedance && strcmp(b->impedance, "learned") != 0) {
        CRD_TRY(check_quantity(ctx, *key = "impedance", b->impedance, true,
                               "6 N.m.s/rad (or the word learned)"));
    }
    *key = "damping";
    if (b->damping && b->damping[0] && !(b->stiffness && b->stiffness[0])) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "damping without stiffness, expected both, of a spring between two "
                         "displacements");
    }
    *key = "factor";
    if (b->factor && b->factor[0] && b->stiffness && b->stiffness[0]) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "factor and stiffness, expected one of them, as a spring needs no factor");
    }
fail:
    return st;
}

// A pair takes the place of what else may be done about a bond, and only it has what belongs to it.
static crd_status check_pair(crd_context* ctx, const crd_bond_spec* b, const char** key)
{
    if (b->pair == CRD_PAIR_NONE) {
        const bool given[] = {b->impedance && b->impedance[0], (!isnan(b->inner) && b->inner != 0),
                              b->over, b->has_channel};
        static const char* const names[] = {"impedance", "inner", "over", "channel"};
        for (int i = 0; i < COUNT(names); i++) {
            if (!given[i]) { continue; }
            return crdi_fail(ctx, CRD_E_RANGE,
                             "%s belongs to a pair, expected 'pair: wave' beside it",
                             *key = names[i]);
        }
        return CRD_OK;
    }
    *key = "correct";
    if (b->correct != CRD_CORRECT_NONE) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "pair and 'correct: %s', expected one of them: a pair creates no energy "
                         "that would be taken out again",
                         crd_correction_name(b->correct));
    }
    *key = "stiffness";
    if (b->stiffness && b->stiffness[0]) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "pair and stiffness, expected an effort and a flow: two displacements "
                         "are no pair");
    }
    *key = "channel";
    if (b->has_channel && !isnan(b->channel.step)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "the channel of a pair has a step, expected none: a packet goes at the "
                         "end of each macro step");
    }
    return CRD_OK;
}

crd_status crdi_bond_check(crd_context* ctx, const crd_bond_spec* b, const char** key)
{
    crd_bond o = crd_bond_defaults();
    const part parts[] = {{"mu", &o.mu, b->mu},
                          {"ki", &o.ki, b->ki},
                          {"limiter", &o.limiter, b->limiter},
                          {"forget", &o.forget, b->forget}};
    for (int i = 0; i < COUNT(parts); i++) {
        if (isnan(parts[i].value)) { continue; }
        *parts[i].to = parts[i].value;
        *key = parts[i].key;
        const crd_status st = crd_bond_check(ctx, &o);
        if (st < 0) { return st; }
    }
    const crd_status st = check_pair(ctx, b, key);
    return st < 0 ? st : check_quantities(ctx, b, key);
}

// [motor.torque, mass1.v]
static crd_status read_pair(crdi_reader* r, const crdi_node* n, bond_draft* d)
{
    crd_status st = CRD_OK;
    const crdi_node* m = n->first;
    if (n->count != 2) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "a list of %d, expected two outputs, action and flow, such as "
                              "[motor.torque, shaft.speed]",
                              n->count);
    }
    CRD_TRY(crdi_read_text(r, m, &d->action));
    CRD_TRY(crdi_read_text(r, m->next, &d->flow));
fail:
    return st;
}

static crd_status read_end(crdi_reader* r, const crd_system* s, const char* key, int line,
                           const char* text, int* unit, const char** variable)
{
    const size_t mark = crdi_path_enter(r, key);
    const crd_status st = crd_system_split(s, text, (crd_place){"", 0}, unit, variable);
    if (st < 0 && st != CRD_E_MEMORY) {
        char why[500];
        snprintf(why, sizeof why, "%s", crd_error_text(r->ctx));
        return crdi_read_fail(r, st, line, "%s", why);
    }
    crdi_path_leave(r, mark);
    return st;
}

// A bond of the system below gets what was given here.
static void amend_bond(crd_bond_spec* old, const crd_bond_spec* b, uint64_t given)
{
    if (given & BIT(B_NAME)) { old->name = b->name; }
    if (given & BIT(B_CORRECT)) { old->correct = b->correct; }
    if (given & BIT(B_MU)) { old->mu = b->mu; }
    if (given & BIT(B_KI)) { old->ki = b->ki; }
    if (given & BIT(B_LIMITER)) { old->limiter = b->limiter; }
    if (given & BIT(B_FORGET)) { old->forget = b->forget; }
    if (given & BIT(B_FACTOR)) { old->factor = b->factor; }
    if (given & BIT(B_STIFFNESS)) { old->stiffness = b->stiffness; }
    if (given & BIT(B_DAMPING)) { old->damping = b->damping; }
    if (given & BIT(B_PAIR)) {
        old->pair = b->pair;
        old->impedance = b->impedance;
        old->inner = b->inner;
        old->over = b->over;
        old->channel = b->channel;
        old->has_channel = b->has_channel;
        if (!(given & BIT(B_CORRECT))) { old->correct = CRD_CORRECT_NONE; }
    }
    old->place = b->place;
}

static crd_status second_bond(crdi_reader* r, const crdi_node* n, const bond_draft* d,
                              const crd_bond_spec* first)
{
    char where[40] = "";
    if (first->place.line > 0) {
        snprintf(where, sizeof where, ", first in line %d", first->place.line);
    }
    return crdi_read_fail(r, CRD_E_RANGE, n->line, "the bond of '%s' and '%s' is there twice%s",
                          crdi_clip(d->action).text, crdi_clip(d->flow).text, where);
}

// What names a bond: both ends as the description would write them.
static const char* bond_ends(crdi_reader* r, const crd_system* s, const crd_bond_spec* b)
{
    return crdi_arena_format(r->scratch, "%s.%s\n%s.%s", s->units[b->action_unit].name, b->action,
                             s->units[b->flow_unit].name, b->flow);
}

static crd_status read_bond(crdi_reader* r, const crdi_node* n, crd_system* s, crd_map* known,
                            bool* amended)
{
    crd_status st = CRD_OK;
    bond_draft d = {.spec = crd_bond_spec_defaults()};
    crd_bond_spec* b = &d.spec;
    const char* key = "";
    uint64_t given = 0;
    b->place = (crd_place){r->file, n->line};
    if (n->kind == CRDI_LIST) {
        CRD_TRY(read_pair(r, n, &d));
    } else {
        CRD_TRY(crdi_read_mapping(r, n, &crdi_bond_table, &d, &given));
    }
    if (d.channel) {
        CRD_TRY(crdi_read_channel(r, d.channel, &b->channel));
        b->has_channel = true;
    }
    CRD_TRY(
        read_end(r, s, "action", crdi_line_of(n, "action"), d.action, &b->action_unit, &b->action));
    CRD_TRY(read_end(r, s, "flow", crdi_line_of(n, "flow"), d.flow, &b->flow_unit, &b->flow));
    st = crdi_bond_check(r->ctx, b, &key);
    if (st < 0) { return placed(r, st, crdi_line_of(n, key)); }
    const char* ends = bond_ends(r, s, b);
    bool fresh = false;
    CRD_TRY(ends ? crdi_map_add(known, ends, s->bond_count, &fresh) : CRD_E_MEMORY);
    if (fresh) {
        s->bonds[s->bond_count++] = *b; // room for all was made before
        return CRD_OK;
    }
    const int index = crdi_map_find(known, ends);
    if (index >= r->base_bonds || amended[index]) {
        return second_bond(r, n, &d, &s->bonds[index]);
    }
    amended[index] = true;
    amend_bond(&s->bonds[index], b, given);
fail:
    return st;
}

// Names of bonds are those of columns and rows. A name that is there twice makes one bond with
// several components (fx and vx, fy and vy) between the same two units, or a node: one unit with
// several others.
bool crdi_bonds_join(const crd_bond_spec* a, const crd_bond_spec* b)
{
    const bool same = a->action_unit == b->action_unit && a->flow_unit == b->flow_unit;
    const int shared = (b->action_unit == a->action_unit || b->action_unit == a->flow_unit) +
                       (b->flow_unit == a->action_unit || b->flow_unit == a->flow_unit);
    return same || shared == 1;
}

static crd_status check_bond_names(crdi_reader* r, const crd_system* s)
{
    crd_status st = CRD_OK;
    crd_map names;
    crdi_map_init(&names, r->ctx);
    for (int i = 0; i < s->bond_count && st >= 0; i++) {
        const crd_bond_spec* b = &s->bonds[i];
        bool fresh = true;
        if (b->name[0]) { st = crdi_map_add(&names, b->name, i, &fresh); }
        if (st < 0 || fresh) { continue; }
        const crd_bond_spec* first = &s->bonds[crdi_map_find(&names, b->name)];
        if (!crdi_bonds_join(first, b)) {
            st = crdi_fail(r->ctx, CRD_E_RANGE,
                           "%sbonds: the name '%s' is there twice, expected one of its own for "
                           "each bond between other units",
                           crdi_place_text(b->place).text, crdi_clip(b->name).text);
        }
    }
    crdi_map_clear(&names);
    return st;
}

crd_status crdi_read_bonds(crdi_reader* r, const crdi_node* n, crd_system* s)
{
    crd_status st = CRD_OK;
    crd_map known;
    crdi_map_init(&known, r->ctx);
    const size_t mark = crdi_path_enter(r, "bonds");
    CRD_TRY(crdi_expect_kind(r, n, CRDI_LIST,
                             "a list of pairs such as [motor.torque, shaft.speed] or of mappings "
                             "with action and flow"));
    CRD_TRY(crdi_map_reserve(&known, (size_t)s->bond_count + (size_t)n->count));
    for (int i = 0; i < s->bond_count; i++) {
        const char* ends = bond_ends(r, s, &s->bonds[i]);
        CRD_TRY(ends ? crdi_map_add(&known, ends, i, NULL) : CRD_E_MEMORY);
    }
    bool* amended = crdi_arena_new(r->scratch, (size_t)r->base_bonds, sizeof *amended);
    crd_bond_spec* grown = crdi_grow(s->ctx, s->bonds, &s->bond_capacity,
                                     (size_t)s->bond_count + (size_t)n->count, sizeof *grown);
    if (grown) { s->bonds = grown; }
    CRD_TRY(amended && grown ? CRD_OK : CRD_E_MEMORY);
    int i = 0;
    for (const crdi_node* m = n->first; m; m = m->next) {
        const size_t inner = crdi_path_enter_item(r, i++);
        CRD_TRY(crdi_go_on(r->ctx, read_bond(r, m, s, &known, amended)));
        crdi_path_leave(r, inner);
    }
    CRD_TRY(check_bond_names(r, s));
    crdi_path_leave(r, mark);
fail:
    crdi_map_clear(&known);
    return st;
}
