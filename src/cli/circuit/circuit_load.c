// cardan circuit: netlist, options and inputs.
#include "cli/circuit/circuit.h"

#include <math.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

bool crdi_is_circuit(const char* path)
{
    static const char* const endings[] = {".cir", ".ckt", ".net", ".sp", ".spice"};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t k = strlen(endings[i]);
        if (n > k && strcasecmp(path + n - k, endings[i]) == 0) { return true; }
    }
    return false;
}

// ---- the netlist -------------------------------------------------------------------------------

// What the netlist passes over is of interest to who simulates it.
static crd_context* circuit_load_make_context(crdi_cli* cli, const crdi_common* common)
{
    crd_context_options opt = crd_context_defaults();
    opt.log = crdi_log_line;
    opt.log_user = cli;
    opt.level = common->log_level >= 0 ? (crd_level)common->log_level
                : common->quiet        ? CRD_LOG_WARNING
                                       : CRD_LOG_INFO;
    return crd_context_create(&opt);
}

// What is no regular file: "-" and pipes.
static crd_status parse_stream(crd_context* ctx, const char* path, const crd_netlist_options* opt,
                               crd_netlist** out)
{
    static const crdi_file_need need = {.what = "a netlist", .most = 1 << 30, .pipes = true};
    const bool standard = strcmp(path, "-") == 0;
    const char* name = standard ? "standard input" : path;
    crd_text text;
    crd_text_init(&text, ctx);
    crd_status st = standard ? crdi_file_read_from(ctx, STDIN_FILENO, name, &need, &text)
                             : crdi_file_read(ctx, path, &need, &text);
    if (st >= 0) { st = crd_netlist_parse(ctx, text.data, text.length, name, opt, out); }
    crd_text_clear(&text);
    return st;
}

static crd_status read_netlist(crdi_circuit_job* j)
{
    const crd_netlist_options opt = {.defines = j->o->params.items,
                                     .define_count = j->o->params.count,
                                     .flat = j->o->output ? &j->flat : NULL};
    struct stat info;
    const bool there = stat(j->path, &info) == 0;
    if (strcmp(j->path, "-") == 0 || (there && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))) {
        return parse_stream(j->ctx, j->path, &opt, &j->n);
    }
    return crd_netlist_load(j->ctx, j->path, &opt, &j->n);
}

// ---- --set -------------------------------------------------------------------------------------

typedef struct names {
    const crd_netlist* n;
    int i;
} names;

static const char* next_input(void* user)
{
    names* x = user;
    return x->i < x->n->input_count ? x->n->inputs[x->i++].name : NULL;
}

static int find_input(const crd_netlist* n, const char* name)
{
    for (int i = 0; i < n->input_count; i++) {
        if (strcasecmp(n->inputs[i].name, name) == 0) { return i; }
    }
    return -1;
}

static void list_inputs(const crd_netlist* n, char* out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s", n->input_count ? "inputs are " : "");
    for (int i = 0; i < n->input_count && i < 6 && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "",
                                 i == 5 ? "..." : crdi_clip(n->inputs[i].name).text);
    }
    if (!n->input_count) { snprintf(out, size, "the netlist has no .input"); }
}

static crd_status set_input(crdi_circuit_job* j, crd_circuit_input* inputs, const char* text)
{
    crd_context* ctx = j->cli->ctx;
    const char* equals = strchr(text, '=');
    if (!equals || equals == text) {
        return crdi_fail(ctx, CRD_E_RANGE, "--set '%s', expected input=value", text);
    }
    const char* name = crdi_arena_text(&j->arena, text, (size_t)(equals - text));
    if (!name) { return CRD_E_MEMORY; }
    const int i = find_input(j->n, name);
    if (i < 0) {
        char list[512];
        names x = {j->n, 0};
        const char* near = crdi_nearest(name, next_input, &x);
        if (near) {
            return crdi_fail(ctx, CRD_E_NOT_FOUND, "--set '%s': no input '%s', did you mean '%s'?",
                             text, name, near);
        }
        list_inputs(j->n, list, sizeof list);
        return crdi_fail(ctx, CRD_E_NOT_FOUND, "--set '%s': no input '%s'; %s", text, name, list);
    }
    double x = NAN;
    bool bare = false;
    crd_dimension got, want;
    const char* unit = inputs[i].unit;
    bool right = crd_quantity_parse(equals + 1, &x, &got, &bare) && isfinite(x);
    if (right && !bare) {
        right = crd_dimension_parse(unit, &want) && crd_dimension_equal(&got, &want);
        if (right) { x = (x - want.offset) / want.factor; }
    }
    if (!right) {
        return crdi_fail(ctx, CRD_E_RANGE, "--set '%s', expected a number%s%s", text,
                         *unit ? ", perhaps with a unit of the kind of " : "", unit);
    }
    inputs[i].start = x;
    return CRD_OK;
}

// The start values of inputs are then what --set says, for everybody who looks at the netlist.
static crd_status apply_set(crdi_circuit_job* j)
{
    const crdi_list* set = &j->o->set;
    if (set->count == 0) { return CRD_OK; }
    const size_t count = (size_t)j->n->input_count;
    crd_circuit_input* inputs = crdi_arena_new(&j->arena, count, sizeof *inputs);
    if (!inputs) { return CRD_E_MEMORY; }
    if (count) { memcpy(inputs, j->n->inputs, count * sizeof *inputs); }
    for (int i = 0; i < set->count; i++) {
        const crd_status st = set_input(j, inputs, set->items[i]);
        if (st < 0) { return st; }
    }
    j->n->inputs = inputs;
    return CRD_OK;
}

crd_status crdi_circuit_load(crdi_circuit_job* j, crdi_cli* cli, const crdi_circuit_command* o,
                             const char* path, crdi_result* out)
{
    *j = (crdi_circuit_job){.cli = cli, .out = out, .o = o, .path = path, .stop = NAN, .from = NAN};
    crd_arena_init(&j->arena, cli->ctx);
    j->ctx = circuit_load_make_context(cli, &o->common);
    if (!j->ctx) { return CRD_E_MEMORY; }
    crd_text_init(&j->flat, j->ctx);
    const crd_status st = read_netlist(j);
    if (st < 0) { return crdi_fail(cli->ctx, st, "%s", crd_error_text(j->ctx)); }
    return apply_set(j);
}

void crdi_circuit_clear(crdi_circuit_job* j)
{
    crd_circuit_destroy(j->c);
    crd_table_destroy(j->stimulus);
    crd_netlist_destroy(j->n);
    crd_arena_clear(&j->arena);
    if (j->ctx) { crd_text_clear(&j->flat); }
    crd_context_destroy(j->ctx);
}

// ---- options -----------------------------------------------------------------------------------

static crd_status projection_of(crdi_circuit_job* j)
{
    const char* text = j->o->projection;
    if (!text) { return CRD_OK; }
    if (j->opt.method != CRD_METHOD_TR_CARRIED) {
        return crdi_fail(
            j->cli->ctx, CRD_E_RANGE,
            "--projection is for --method tr-carried, which alone carries derivatives");
    }
    if (strcmp(text, "none") == 0) {
        j->opt.projection = 0;
    } else if (strcmp(text, "exact") == 0) {
        j->opt.projection = INFINITY;
    } else if (!crdi_parse_double(text, strlen(text), &j->opt.projection) ||
               !(j->opt.projection > 0 && isfinite(j->opt.projection))) {
        return crdi_fail(j->cli->ctx, CRD_E_RANGE,
                         "--projection = '%s', expected none, exact or a penalty > 0 such as 1e9",
                         text);
    }
    return CRD_OK;
}

static crd_status newton_of(crdi_circuit_job* j)
{
    const crdi_circuit_command* o = j->o;
    crd_context* ctx = j->cli->ctx;
    if (o->iterations == 0 || o->fixed_iterations == 0) {
        return crdi_fail(ctx, CRD_E_RANGE, "--%s = '0', expected at least 1",
                         o->iterations == 0 ? "iterations" : "fixed-iterations");
    }
    if (o->iterations > 0 && o->fixed_iterations > 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--iterations and --fixed-iterations exclude each other");
    }
    if (o->iterations > 0) { j->opt.max_iterations = o->iterations; }
    if (o->fixed_iterations > 0) {
        j->opt.max_iterations = o->fixed_iterations;
        j->opt.fixed_iterations = true;
    }
    if (!isnan(o->tolerance)) {
        if (!(o->tolerance < 1)) {
            return crdi_fail(ctx, CRD_E_RANGE, "--tolerance = '%g', expected a number below 1",
                             o->tolerance);
        }
        j->opt.tolerance = o->tolerance;
    }
    return CRD_OK;
}

crd_status crdi_circuit_prepare(crdi_circuit_job* j, double otherwise)
{
    crd_status st = CRD_OK;
    const crdi_circuit_command* o = j->o;
    crd_context* ctx = j->cli->ctx;
    j->opt = crd_circuit_defaults();
    if (o->method >= 0) { j->opt.method = (crd_circuit_method)o->method; }
    if (o->form >= 0) { j->opt.form = (crd_circuit_form)o->form; }
    if (o->start >= 0) { j->opt.start = (crd_circuit_start)o->start; }
    CRD_TRY(projection_of(j));
    CRD_TRY(newton_of(j));
    j->stop = isnan(o->stop) ? j->n->tran_stop : o->stop;
    j->from = !isnan(o->from) ? o->from : j->n->tran_start < j->stop ? j->n->tran_start : 0;
    j->opt.step = isnan(o->step) ? j->n->tran_step : o->step;
    if (isnan(j->opt.step)) { j->opt.step = otherwise; }
    if (isnan(j->opt.step) && isnan(o->accuracy)) {
        st = crdi_fail(ctx, CRD_E_RANGE, "%s: there is no .tran; expected --step with the step",
                       j->path);
    }
fail:
    return st;
}

// ---- --input -----------------------------------------------------------------------------------

crd_status crdi_circuit_load_input(crdi_circuit_job* j)
{
    crd_status st = CRD_OK;
    crd_context* ctx = j->cli->ctx;
    const crd_netlist* n = j->n;
    int count = 0;
    if (!j->o->input) { return CRD_OK; }
    CRD_TRY(crd_table_read(ctx, j->o->input, &j->stimulus));
    j->columns = crdi_arena_new(&j->arena, (size_t)n->input_count, sizeof *j->columns);
    j->hints = crdi_arena_new(&j->arena, (size_t)n->input_count, sizeof *j->hints);
    if (!j->columns || !j->hints) { return CRD_E_MEMORY; }
    for (int i = 0; i < n->input_count; i++) {
        j->columns[i] = -1;
        for (int k = j->stimulus->column_count - 1; k >= 0; k--) {
            const crd_table_column* column = &j->stimulus->columns[k];
            if (strcasecmp(column->name, n->inputs[i].name) != 0) { continue; }
            if (column->texts || column->rows == 0) {
                return crdi_fail(ctx, CRD_E_RANGE, "%s: '%s' has no numbers, expected the input %s",
                                 j->o->input, column->name, n->inputs[i].name);
            }
            j->columns[i] = k;
        }
        count += j->columns[i] >= 0;
    }
    if (count == 0) {
        char list[512];
        list_inputs(n, list, sizeof list);
        st = crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: none of its columns names an input of %s; %s",
                       j->o->input, j->path, list);
    }
fail:
    return st;
}

crd_status crdi_circuit_feed(crdi_circuit_job* j, double t)
{
    for (int i = 0; j->stimulus && i < j->n->input_count; i++) {
        if (j->columns[i] < 0) { continue; }
        const double x = crd_table_value(j->stimulus, j->columns[i], t, true, &j->hints[i]);
        if (!isfinite(x)) {
            return crdi_fail(j->cli->ctx, CRD_E_RANGE, "%s: %s = %g at t = %g s, expected a number",
                             j->o->input, j->stimulus->columns[j->columns[i]].name, x, t);
        }
        const crd_status st = crd_circuit_set_input(j->c, i, x);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_status crdi_circuit_begin(crdi_circuit_job* j)
{
    crd_status st = crdi_circuit_feed(j, 0);
    if (st < 0) { return st; }
    st = crd_circuit_begin(j->c, 0);
    return st < 0 ? crdi_fail_in(j->cli->ctx, st, "%s", j->path) : st;
}
