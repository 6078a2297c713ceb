// What a run says about its quality: tables, JSON, and limits that become an exit code.
#include "cardan/master.h"
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    MOST_ROWS = 10, // connections in the table
    NAME_WIDTH = 32,
    UNIT_WIDTH = 6,
    LINE_WIDTH = 100,
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

void crdi_print_wrapped(FILE* f, const char* title, const char* text)
{
    enum { INDENT = 9 };
    int at = fprintf(f, "%-*s", INDENT, title);
    while (*text) {
        const size_t n = strcspn(text, " ");
        if (at > INDENT && at + 1 + (int)n > LINE_WIDTH) {
            at = fprintf(f, "\n%*s", INDENT, "") - 1;
        }
        at += fprintf(f, "%s%.*s", at > INDENT ? " " : "", (int)n, text);
        text += n + (text[n] == ' ');
    }
    fputc('\n', f);
}

static void add_number(crdi_grid* g, double x)
{
    if (isfinite(x)) {
        crdi_grid_add(g, "%.3g", x);
    } else {
        crdi_grid_add(g, "-");
    }
}

static void add_percent(crdi_grid* g, double x)
{
    if (isfinite(x)) {
        crdi_grid_add(g, "%.2g %%", 100 * x);
    } else {
        crdi_grid_add(g, "-");
    }
}

// ---- tables ------------------------------------------------------------------------------------

static void add_flow(crdi_grid* g, const crd_flow_report* f, bool errors)
{
    char name[4 * NAME_WIDTH + 8], unit[4 * UNIT_WIDTH + 8];
    crdi_grid_add(g, "%s", connection_name(f, name, sizeof name));
    if (f->share < 0.995) {
        crdi_grid_add(g, "%s %.0f%%", f->used, 100 * f->share);
    } else {
        crdi_grid_add(g, "%s", f->used);
    }
    if (isnan(f->rms)) {
        crdi_grid_add(g, "not finite");
    } else {
        add_number(g, f->rms);
    }
    add_number(g, f->max);
    crdi_grid_add(g, "%s", shorten(f->unit, UNIT_WIDTH, unit, sizeof unit));
    add_percent(g, f->relative);
    if (errors) { add_number(g, f->error_rms); }
}

static void print_flows(crd_context* ctx, const crd_master_report* r, FILE* f)
{
    static const char* const titles[] = {"connection", "predict",  "defect RMS", "max",
                                         "unit",       "of scale", "est. error"};
    if (r->flow_count == 0) { return; }
    const int shown = r->flow_count <= MOST_ROWS + 1 ? r->flow_count : MOST_ROWS;
    bool errors = false;
    for (int i = 0; i < shown; i++) {
        errors = errors || isfinite(r->flows[i].error_rms);
    }
    const int columns = errors ? 7 : 6;
    crdi_grid g;
    crdi_grid_init(&g, ctx, columns, 0x6C);
    for (int i = 0; i < columns; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    for (int i = 0; i < shown; i++) {
        add_flow(&g, &r->flows[i], errors);
    }
    crdi_grid_print(&g, f, "  ");
    crdi_grid_clear(&g);
    if (shown < r->flow_count) {
        fprintf(f, "  and %d more, all with smaller defects; --json and the report have them\n",
                r->flow_count - shown);
    }
    if (!errors && *r->error_note) {
        char note[512];
        snprintf(note, sizeof note, "not estimated: %s", r->error_note);
        crdi_print_wrapped(f, "errors", note);
    }
}

static void print_bonds(crd_context* ctx, const crd_master_report* r, FILE* f)
{
    static const char* const titles[] = {"power bond",    "correct",    "mu",       "put in [J]",
                                         "corrected [J]", "passed [J]", "of passed"};
    enum { COLUMNS = sizeof titles / sizeof *titles };
    if (r->bond_count == 0) { return; }
    const int shown = r->bond_count <= MOST_ROWS + 1 ? r->bond_count : MOST_ROWS;
    crdi_grid g;
    crdi_grid_init(&g, ctx, COLUMNS, 0x7C);
    for (int i = 0; i < COLUMNS; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    for (int i = 0; i < shown; i++) {
        const crd_bond_report* b = &r->bonds[i];
        char name[4 * NAME_WIDTH + 8];
        crdi_grid_add(&g, "%s", shorten(b->name, NAME_WIDTH, name, sizeof name));
        crdi_grid_add(&g, "%s", crd_correction_name(b->correct));
        add_number(&g, b->mu);
        add_number(&g, b->energy);
        add_number(&g, b->work);
        add_number(&g, b->transferred);
        add_percent(&g, b->relative);
    }
    crdi_grid_print(&g, f, "  ");
    crdi_grid_clear(&g);
    if (shown < r->bond_count) {
        fprintf(f, "  and %d more, all with smaller errors\n", r->bond_count - shown);
    }
}

static void print_control(const crd_control_report* c, FILE* f)
{
    char a[32], b[32], d[32];
    if (!c->on || !isfinite(c->shortest)) { return; }
    fprintf(f,
            "control  tolerance %.3g, worst defect %.3g of it; steps of %s to %s, %s on average\n",
            c->tolerance, c->worst, crdi_format_seconds(a, c->shortest),
            crdi_format_seconds(b, c->longest), crdi_format_seconds(d, c->mean));
    if (c->rejected == 0 && c->at_floor == 0 && c->at_ceiling == 0 && c->events == 0) { return; }
    fprintf(f,
            "         %" PRId64 " step%s taken back, %" PRId64 " at the floor, %" PRId64
            " at the ceiling, %" PRId64 " event%s\n",
            c->rejected, crdi_plural(c->rejected), c->at_floor, c->at_ceiling, c->events,
            crdi_plural(c->events));
}

static void print_iteration(const crd_iteration_report* i, FILE* f)
{
    if (!i->on || i->steps == 0) { return; }
    fprintf(f, "iterate  %.2f sweeps per step, at most %d%s%s\n",
            (double)i->sweeps / (double)i->steps, i->most,
            i->explicit_units && *i->explicit_units ? "; stepped once: " : "",
            i->explicit_units ? i->explicit_units : "");
    if (i->failed == 0) { return; }
    fprintf(f, "         %" PRId64 " step%s did not converge; residuals of the first, at %.6g s:",
            i->failed, crdi_plural(i->failed), i->failed_time);
    for (int k = 0; k < i->residual_count; k++) {
        fprintf(f, " %.3g", i->residuals[k]);
    }
    fputc('\n', f);
}

void crdi_print_step_quality(const crd_master_report* r, FILE* f)
{
    print_control(&r->control, f);
    print_iteration(&r->iteration, f);
}

void crdi_print_quality(crd_context* ctx, const crd_master_report* r, FILE* f)
{
    print_flows(ctx, r, f);
    print_bonds(ctx, r, f);
    for (int i = 0; i < r->advice_count; i++) {
        crdi_print_wrapped(f, i ? "" : "advice", r->advice[i]);
    }
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t* flow_to_json(const crd_flow_report* f)
{
    json_t* j = json_object();
    json_object_set_new(j, "from", crdi_json_text(f->from));
    json_object_set_new(j, "to", crdi_json_text(f->to));
    json_object_set_new(j, "unit", crdi_json_text(f->unit));
    json_object_set_new(j, "predict", json_string(crd_prediction_name(f->predict)));
    json_object_set_new(j, "used", json_string(f->used));
    json_object_set_new(j, "share", crdi_json_number(f->share));
    json_object_set_new(j, "order", json_integer(f->order));
    json_object_set_new(j, "constant", json_boolean(f->hold_only));
    const struct {
        const char* name;
        double value;
    } numbers[] = {{"step", f->step},
                   {"scale", f->scale},
                   {"defect_rms", f->rms},
                   {"defect_max", f->max},
                   {"defect_max_time", f->max_time},
                   {"output_defect_rms", f->output_rms},
                   {"relative", f->relative},
                   {"error_rms", f->error_rms},
                   {"error_max", f->error_max}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_object_set_new(j, numbers[i].name, crdi_json_number(numbers[i].value));
    }
    json_object_set_new(j, "jumps", json_integer(f->jumps));
    json_object_set_new(j, "switches", json_integer(f->switches));
    return j;
}

static json_t* bond_to_json(const crd_bond_report* b)
{
    json_t* j = json_object();
    json_object_set_new(j, "name", crdi_json_text(b->name));
    json_object_set_new(j, "action", crdi_json_text(b->action));
    json_object_set_new(j, "flow", crdi_json_text(b->flow));
    json_object_set_new(j, "correct", json_string(crd_correction_name(b->correct)));
    const struct {
        const char* name;
        double value;
    } numbers[] = {{"mu", b->mu},
                   {"energy", b->energy},
                   {"residual", b->residual},
                   {"work", b->work},
                   {"transferred", b->transferred},
                   {"relative", b->relative},
                   {"power_min", b->power_min},
                   {"power_max", b->power_max}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_object_set_new(j, numbers[i].name, crdi_json_number(numbers[i].value));
    }
    return j;
}

static json_t* control_to_json(const crd_control_report* c)
{
    if (!c->on) { return json_null(); }
    json_t* j = json_object();
    json_object_set_new(j, "tolerance", crdi_json_number(c->tolerance));
    json_object_set_new(j, "first", crdi_json_number(c->first));
    json_object_set_new(j, "shortest", crdi_json_number(c->shortest));
    json_object_set_new(j, "longest", crdi_json_number(c->longest));
    json_object_set_new(j, "mean", crdi_json_number(c->mean));
    json_object_set_new(j, "worst", crdi_json_number(c->worst));
    json_object_set_new(j, "rejected", json_integer(c->rejected));
    json_object_set_new(j, "at_floor", json_integer(c->at_floor));
    json_object_set_new(j, "at_ceiling", json_integer(c->at_ceiling));
    json_object_set_new(j, "events", json_integer(c->events));
    return j;
}

static json_t* iteration_to_json(const crd_iteration_report* i)
{
    if (!i->on) { return json_null(); }
    json_t* j = json_object();
    json_object_set_new(j, "steps", json_integer(i->steps));
    json_object_set_new(j, "sweeps", json_integer(i->sweeps));
    json_object_set_new(j, "most", json_integer(i->most));
    json_object_set_new(j, "failed", json_integer(i->failed));
    json_object_set_new(j, "failed_time",
                        i->failed ? crdi_json_number(i->failed_time) : json_null());
    json_object_set_new(j, "failed_connection",
                        i->failed_flow && *i->failed_flow ? crdi_json_text(i->failed_flow)
                                                          : json_null());
    json_t* residuals = json_array();
    for (int k = 0; k < i->residual_count; k++) {
        json_array_append_new(residuals, crdi_json_number(i->residuals[k]));
    }
    json_object_set_new(j, "residuals", residuals);
    json_object_set_new(j, "stepped_once",
                        crdi_json_text(i->explicit_units ? i->explicit_units : ""));
    return j;
}

void crdi_quality_to_json(const crd_master_report* r, json_t* j)
{
    json_t *flows = json_array(), *bonds = json_array(), *advice = json_array();
    for (int i = 0; i < r->flow_count; i++) {
        json_array_append_new(flows, flow_to_json(&r->flows[i]));
    }
    for (int i = 0; i < r->bond_count; i++) {
        json_array_append_new(bonds, bond_to_json(&r->bonds[i]));
    }
    for (int i = 0; i < r->advice_count; i++) {
        json_array_append_new(advice, crdi_json_text(r->advice[i]));
    }
    json_object_set_new(j, "flows", flows);
    json_object_set_new(j, "bonds", bonds);
    json_object_set_new(j, "control", control_to_json(&r->control));
    json_object_set_new(j, "iteration", iteration_to_json(&r->iteration));
    json_object_set_new(j, "worst_defect", crdi_json_number(r->worst_defect));
    json_object_set_new(j, "worst_energy", crdi_json_number(r->worst_energy));
    json_object_set_new(j, "error_note", crdi_json_text(r->error_note));
    json_object_set_new(j, "advice", advice);
}

// ---- limits ------------------------------------------------------------------------------------

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

crd_status crdi_check_limits(crd_context* ctx, const crd_master_report* r, double max_defect,
                             double max_energy)
{
    // Written so that what is not a number does not pass.
    if (!isnan(max_defect) && r->flow_count && !(r->worst_defect <= max_defect)) {
        return fail_defect(ctx, &r->flows[0], max_defect);
    }
    if (!isnan(max_energy) && r->bond_count && !(r->worst_energy <= max_energy)) {
        return fail_energy(ctx, &r->bonds[0], max_energy);
    }
    return CRD_OK;
}
