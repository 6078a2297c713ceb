// What a run says about its quality: tables, JSON, and limits that become an exit code.
#include "cli/run/run.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    MOST_ROWS = 10, // connections in the table
    NAME_WIDTH = 32,
    UNIT_WIDTH = 6,
};

// ---- texts -------------------------------------------------------------------------------------

// The first `most` characters, ".." at the end of what is longer.
static const char* shorten(const char* text, size_t most, char* out, size_t size)
{
    size_t n = 0, cut = 0, end = 0;
    for (; text[end]; end++) {
        if (((unsigned char)text[end] & 0xC0) == 0x80) { continue; }
        if (n == most - 2) { cut = end; }
        n++;
    }
    if (n <= most && end < size) {
        memcpy(out, text, end + 1);
    } else {
        snprintf(out, size, "%.*s..", (int)(cut < size - 3 ? cut : size - 3), text);
    }
    return out;
}

// "second.v2 -> first.v2"; the input alone, which no other connection has, where that is too long.
static const char* connection_name(const crd_flow_report* f, char* out, size_t size)
{
    char whole[512];
    const int n = snprintf(whole, sizeof whole, "%s -> %s", f->from, f->to);
    if (n > NAME_WIDTH) { snprintf(whole, sizeof whole, "-> %s", f->to); }
    return shorten(whole, NAME_WIDTH, out, size);
}

// ---- steps -------------------------------------------------------------------------------------

static void say_control(crdi_result* out, const crd_control_report* c)
{
    char a[32], b[32], d[32];
    if (!c->on || !isfinite(c->shortest)) { return; }
    crdi_say(out,
             "control  tolerance %.3g, worst defect %.3g of it; steps of %s to %s, %s on average\n",
             c->tolerance, c->worst, crdi_format_seconds(a, c->shortest),
             crdi_format_seconds(b, c->longest), crdi_format_seconds(d, c->mean));
    if (c->beyond > 0) {
        crdi_say(out, "         %" PRId64 " step%s beyond the tolerance%s%s, worst over %s\n",
                 c->beyond, crdi_plural(c->beyond), *c->forward_only ? ": " : "", c->forward_only,
                 c->worst_flow);
    }
    if (c->rejected == 0 && c->at_floor == 0 && c->at_ceiling == 0 && c->events == 0) { return; }
    crdi_say(out,
             "         %" PRId64 " step%s taken back, %" PRId64 " at the floor, %" PRId64
             " at the ceiling, %" PRId64 " event%s\n",
             c->rejected, crdi_plural(c->rejected), c->at_floor, c->at_ceiling, c->events,
             crdi_plural(c->events));
}

static void say_iteration(crdi_result* out, const crd_iteration_report* i)
{
    if (!i->on || i->steps == 0) { return; }
    crdi_say(out, "iterate  %.2f sweeps per step, at most %d%s%s\n",
             (double)i->sweeps / (double)i->steps, i->most,
             i->explicit_units && *i->explicit_units ? "; stepped once: " : "",
             i->explicit_units ? i->explicit_units : "");
    if (i->failed == 0) { return; }
    crdi_say(out,
             "         %" PRId64 " step%s did not converge; residuals of the first, at %.6g s:",
             i->failed, crdi_plural(i->failed), i->failed_time);
    for (int k = 0; k < i->residual_count; k++) {
        crdi_say(out, " %.3g", i->residuals[k]);
    }
    crdi_say(out, "\n");
}

static void say_guard(crdi_result* out, const crd_guard_report* g)
{
    static const char* const marks[] = {
        "", "", "will diverge: ", "not decided: ", "warns: ", "red: ", "red: "};
    if (*g->text) {
        crdi_say_wrapped(out, "guard", "%s%s%s%s", marks[g->state], g->text, *g->help ? "; " : "",
                         g->help);
    } else if (*g->note && (g->asked || g->state == CRD_GUARD_OFF)) {
        crdi_say_wrapped(out, "guard", "%s", g->note);
    }
}

static void put_guard(crdi_result* j, const crd_guard_report* g)
{
    crdi_put(j, TEXT("state", crd_guard_state_name(g->state)), BOOL("stopped", g->stopped),
             BOOL("exploded", g->exploded), REAL("time", g->time), REAL("growth", g->growth),
             TEXT("text", g->text), TEXT("help", g->help), TEXT("note", g->note),
             INT("loops", g->loops), INT("mapped", g->mapped));
}

void crdi_say_step_quality(crdi_result* out, const crd_master_report* r)
{
    say_guard(out, &r->guard);
    say_control(out, &r->control);
    say_iteration(out, &r->iteration);
}

// ---- connections and bonds ---------------------------------------------------------------------

static void put_flow(crdi_result* j, const crd_flow_report* f)
{
    char name[4 * NAME_WIDTH + 8], unit[4 * UNIT_WIDTH + 8];
    const char* used =
        f->share < 0.995 ? crdi_worded(j, "%s %.0f%%", f->used, 100 * f->share) : f->used;
    crdi_put(j, CELL("connection", connection_name(f, name, sizeof name)),
             CELL("short unit", shorten(f->unit, UNIT_WIDTH, unit, sizeof unit)));
    crdi_put(j, TEXT("from", f->from), TEXT("to", f->to), TEXT("unit", f->unit),
             TEXT("predict", crd_prediction_name(f->predict)), AS(TEXT("used", f->used), used),
             REAL("share", f->share), INT("order", f->order), BOOL("constant", f->hold_only));
    crdi_put(j, REAL("step", f->step), REAL("scale", f->scale), REAL("signal_rms", f->signal_rms),
             AS(REAL("defect_rms", f->rms), isnan(f->rms) ? "not finite" : NULL),
             REAL("defect_max", f->max), REAL("defect_max_time", f->max_time),
             REAL("output_defect_rms", f->output_rms), REAL("relative", f->relative),
             REAL("error_rms", f->error_rms), REAL("error_max", f->error_max),
             REAL("error_bound", f->error_bound), REAL("solver_rms", f->solver_rms));
    crdi_put(j, INT("jumps", f->jumps), INT("switches", f->switches));
}

static void quality_put_bond(crdi_result* j, const crd_bond_report* b)
{
    char name[4 * NAME_WIDTH + 8];
    crdi_put(j, AS(TEXT("name", b->name), shorten(b->name, NAME_WIDTH, name, sizeof name)),
             TEXT("action", b->action), TEXT("flow", b->flow),
             TEXT("correct", crd_correction_name(b->correct)));
    crdi_put(j, REAL("mu", b->mu), REAL("energy", b->energy), REAL("residual", b->residual),
             REAL("work", b->work), REAL("transferred", b->transferred),
             REAL("relative", b->relative), REAL("power_min", b->power_min),
             REAL("power_max", b->power_max));
}

// One row for each side of a pair.
static void quality_put_side(crdi_result* j, const crd_pair_report* p,
                             const crd_pair_side_report* s)
{
    const crd_pair_state* k = &s->state;
    crdi_put(j, TEXT("name", p->name), TEXT("unit", s->unit), TEXT("own", s->own),
             REAL("inner", s->inner), BOOL("strict", k->strict), REAL("impedance", k->impedance),
             REAL("reaction", k->reaction), REAL("delay", k->delay));
    crdi_put(j, REAL("tank", k->tank), REAL("absorbed", k->absorbed), REAL("spent", k->spent),
             REAL("received", k->received), REAL("granted", k->granted), REAL("dumped", k->dumped),
             REAL("debt", k->debt));
    crdi_put(j, INT("steps", k->steps), INT("limited", k->limited), INT("sent", s->sent),
             INT("lost", s->lost), INT("taken", k->taken), INT("refused", k->refused),
             INT("predicted", s->predicted));
}

static void put_pairs(crdi_result* out, crdi_result* aside, const crd_master_report* r)
{
    static const crdi_column columns[] = {{"pair", "name", "%s"},
                                          {"unit", "unit", "%s"},
                                          {">inner [s]", "inner", "%.3g"},
                                          {">impedance", "impedance", "%.3g"},
                                          {">delay [s]", "delay", "%.3g"},
                                          {">tank [J]", "tank", "%.3g"},
                                          {">granted [J]", "granted", "%.3g"},
                                          {">dumped [J]", "dumped", "%.3g"},
                                          {">limited", "limited", "%d"},
                                          {">predicted", "predicted", "%d"},
                                          {0}};
    crdi_result* rows = crdi_array(out, "pairs");
    for (int i = 0; i < 2 * r->pair_count; i++) {
        const crd_pair_report* p = &r->pairs[i / 2];
        quality_put_side(crdi_row(rows), p, &p->sides[i % 2]);
    }
    if (!r->pair_count) { return; }
    crdi_show_table(aside, rows, columns, "  ");
    for (int i = 0; i < 2 * r->pair_count; i++) {
        const crd_pair_side_report* s = &r->pairs[i / 2].sides[i % 2];
        if (!s->state.strict) { continue; }
        crdi_say_wrapped(aside, "pair",
                         "'%s' makes one step in a macro step, so its port is the strict one: "
                         "stable for slow units only",
                         s->unit);
    }
}

static void quality_put_control(crdi_result* j, const crd_control_report* c)
{
    crdi_put(j, REAL("tolerance", c->tolerance), REAL("first", c->first),
             REAL("shortest", c->shortest), REAL("longest", c->longest), REAL("mean", c->mean),
             REAL("worst", c->worst), TEXT_IF("worst_connection", c->worst_flow),
             INT("beyond", c->beyond), BOOL("takes_back", !*c->forward_only),
             TEXT_IF("forward_only", c->forward_only));
    crdi_put(j, INT("rejected", c->rejected), INT("at_floor", c->at_floor),
             INT("at_ceiling", c->at_ceiling), INT("events", c->events));
}

static void quality_put_iteration(crdi_result* j, const crd_iteration_report* i)
{
    if (!i->on) { return; }
    crdi_put(j, INT("steps", i->steps), INT("sweeps", i->sweeps), INT("most", i->most),
             INT("failed", i->failed), ONLY_IF(i->failed, REAL("failed_time", i->failed_time)),
             TEXT_IF("failed_connection", i->failed_flow));
    crdi_result* residuals = crdi_array(j, "residuals");
    for (int k = 0; k < i->residual_count; k++) {
        crdi_add(residuals, REAL(NULL, i->residuals[k]));
    }
    crdi_put(j, TEXT("stepped_once", i->explicit_units ? i->explicit_units : ""));
}

// So many rows of a table; one more would be no shorter than the line that says how many are left.
static int rows_shown(int count)
{
    return count <= MOST_ROWS + 1 ? count : MOST_ROWS;
}

// clang-format off
#define FLOW {"connection", "connection", "%s"}, {"predict", "used", "%s"}, \
    {">defect RMS", "defect_rms", "%.3g"}, {">max", "defect_max", "%.3g"}, \
    {"unit", "short unit", "%s"}, {">of scale", "relative", "100*%.2g %%"}
#define ERROR {">est. error", "error_rms", "%.3g"}
// clang-format on

static void show_flows(crdi_result* aside, const crd_master_report* r, const crdi_result* flows)
{
    static const crdi_column without[] = {FLOW, {0}}, with_errors[] = {FLOW, ERROR, {0}},
                             with_solvers[] = {FLOW, {">solver", "solver_rms", "%.3g"}, ERROR, {0}};
    const int shown = rows_shown(r->flow_count);
    bool errors = false, solvers = false;
    for (int i = 0; i < shown; i++) {
        errors = errors || isfinite(r->flows[i].error_rms);
        solvers = solvers || isfinite(r->flows[i].solver_rms);
    }
    crdi_show_table(aside, flows, solvers ? with_solvers : errors ? with_errors : without, "  ");
    if (shown < r->flow_count) {
        crdi_say(aside,
                 "  and %d more, all with smaller defects; --json and the report have them\n",
                 r->flow_count - shown);
    }
    if (!errors && *r->error_note) {
        crdi_say_wrapped(aside, "errors", "not estimated: %s", r->error_note);
    }
}

static void show_bonds(crdi_result* aside, const crd_master_report* r, const crdi_result* bonds)
{
    static const crdi_column columns[] = {{"power bond", "name", "%s"},
                                          {"correct", "correct", "%s"},
                                          {">mu", "mu", "%.3g"},
                                          {">put in [J]", "energy", "%.3g"},
                                          {">corrected [J]", "work", "%.3g"},
                                          {">passed [J]", "transferred", "%.3g"},
                                          {">of passed", "relative", "100*%.2g %%"},
                                          {0}};
    const int shown = rows_shown(r->bond_count);
    crdi_show_table(aside, bonds, columns, "  ");
    if (shown < r->bond_count) {
        crdi_say(aside, "  and %d more, all with smaller errors\n", r->bond_count - shown);
    }
}

void crdi_put_quality(crdi_result* out, crdi_result* aside, const crd_master_report* r)
{
    crdi_result *flows = crdi_array(out, "flows"), *bonds = crdi_array(out, "bonds");
    const bool json = crdi_makes_json(out); // else rows that are not shown are for nobody
    for (int i = 0; i < (json ? r->flow_count : rows_shown(r->flow_count)); i++) {
        crdi_result* row = crdi_row(flows);
        put_flow(row, &r->flows[i]);
        if (i >= rows_shown(r->flow_count)) { crdi_only_json(row); }
    }
    for (int i = 0; i < (json ? r->bond_count : rows_shown(r->bond_count)); i++) {
        crdi_result* row = crdi_row(bonds);
        quality_put_bond(row, &r->bonds[i]);
        if (i >= rows_shown(r->bond_count)) { crdi_only_json(row); }
    }
    quality_put_control(crdi_object_if(out, "control", r->control.on), &r->control);
    quality_put_iteration(crdi_object_if(out, "iteration", r->iteration.on), &r->iteration);
    put_guard(crdi_object(out, "guard"), &r->guard);
    crdi_put(out, REAL("worst_defect", r->worst_defect), REAL("worst_energy", r->worst_energy),
             REAL("worst_error", r->worst_error), REAL("worst_part", r->worst_part),
             TEXT("trust", crd_trust_name(r->trust)), TEXT("error_note", r->error_note));
    crdi_put_texts(out, "advice", r->advice, r->advice_count);
    show_flows(aside, r, flows);
    show_bonds(aside, r, bonds);
    put_pairs(out, aside, r);
    for (int i = 0; i < r->advice_count; i++) {
        crdi_say_wrapped(aside, i ? "" : "advice", "%s", r->advice[i]);
    }
}

// ---- limits ------------------------------------------------------------------------------------

// A connection with an element, as one that has none.
static crd_flow_report flow_of(const crd_coupling_report* c)
{
    return (crd_flow_report){.from = c->from,
                             .to = c->to,
                             .unit = "",
                             .scale = c->scale,
                             .relative = c->relative,
                             .error_rms = c->error_rms};
}

static crd_status fail_defect(crd_context* ctx, const crd_flow_report* f, double limit)
{
    if (isnan(f->relative)) {
        return crdi_fail(ctx, CRD_E_LIMIT,
                         "the defect of %s -> %s is not a number, so --max-defect = %.3g %% is not "
                         "kept",
                         f->from, f->to, 100 * limit);
    }
    return crdi_fail(ctx, CRD_E_LIMIT,
                     "the defect of %s -> %s is %.3g %% of its scale %.3g%s%s, more than "
                     "--max-defect = %.3g %%",
                     f->from, f->to, 100 * f->relative, f->scale, *f->unit ? " " : "", f->unit,
                     100 * limit);
}

static crd_status fail_energy(crd_context* ctx, const crd_bond_report* b, double limit)
{
    if (isnan(b->relative)) {
        return crdi_fail(ctx, CRD_E_LIMIT,
                         "the energy of bond '%s' is not a number, so --max-energy = %.3g %% is "
                         "not kept",
                         b->name, 100 * limit);
    }
    return crdi_fail(ctx, CRD_E_LIMIT,
                     "bond '%s' %s %.3g %% of the energy that passed it (%.3g J), more than "
                     "--max-energy = %.3g %%",
                     b->name, b->relative < 0 ? "lost" : "put in", 100 * fabs(b->relative),
                     fabs(b->energy + b->work), 100 * limit);
}

static crd_status fail_error(crd_context* ctx, const crd_flow_report* f, double limit)
{
    return crdi_fail(ctx, CRD_E_LIMIT,
                     "the estimated error of %s is %.3g %% of its scale %.3g%s%s, more than "
                     "--max-error = %.3g %%",
                     f->from, 100 * f->error_rms / f->scale, f->scale, *f->unit ? " " : "", f->unit,
                     100 * limit);
}

crd_status crdi_check_limits(crd_context* ctx, const crd_master_report* r,
                             const crd_guard_spec* limits)
{
    const double max_defect = limits->max_defect, max_energy = limits->max_energy;
    // Written so that what is not a number does not pass.
    if (!isnan(max_defect) && r->flow_count && !(r->flows[0].relative <= max_defect)) {
        return fail_defect(ctx, &r->flows[0], max_defect);
    }
    for (int i = 0; i < r->coupling_count; i++) {
        const crd_flow_report f = flow_of(&r->couplings[i]);
        if (!isnan(max_defect) && f.scale > 0 && !(f.relative <= max_defect)) {
            return fail_defect(ctx, &f, max_defect);
        }
        if (f.error_rms > limits->max_error * f.scale) { // never above NaN
            return fail_error(ctx, &f, limits->max_error);
        }
    }
    if (!isnan(max_energy) && r->bond_count && !(r->worst_energy <= max_energy)) {
        return fail_energy(ctx, &r->bonds[0], max_energy);
    }
    for (int i = 0; !isnan(limits->max_error) && i < r->flow_count; i++) {
        const crd_flow_report* f = &r->flows[i];
        if (f->error_rms > limits->max_error * f->scale) {
            return fail_error(ctx, f, limits->max_error);
        }
    }
    return CRD_OK;
}
