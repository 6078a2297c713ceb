// cardan compare: which signals of two results differ, where first, by how much.
#include "cardan/results.h"
#include "cli/cli.h"

#include <math.h>
#include <string.h>

typedef struct compare_options {
    crdi_common common;
    double relative, absolute;
    crdi_list variables, pairs;
    bool all;
} compare_options;

// "x2=second.x2": the name in A and the name in B.
static crd_status read_pairs(crdi_cli* cli, const crdi_list* given, crd_pair** out)
{
    crd_pair* pairs = crdi_new_array(cli->ctx, (size_t)given->count, sizeof *pairs);
    *out = pairs;
    if (!pairs) { return CRD_E_MEMORY; }
    for (int i = 0; i < given->count; i++) {
        const char* text = given->items[i];
        const char* equals = strchr(text, '=');
        if (!equals || equals == text || !equals[1]) {
            return crdi_fail(cli->ctx, CRD_E_RANGE,
                             "--pair '%s': expected the name in A, '=', the name in B", text);
        }
        char* name = crdi_strdup(cli->ctx, text);
        if (!name) { return CRD_E_MEMORY; }
        name[equals - text] = 0;
        pairs[i] = (crd_pair){.a = name, .b = name + (equals - text) + 1};
    }
    return CRD_OK;
}

static void free_pairs(crdi_cli* cli, crd_pair* pairs, int count)
{
    for (int i = 0; pairs && i < count; i++) {
        crdi_free(cli->ctx, (char*)pairs[i].a);
    }
    crdi_free(cli->ctx, pairs);
}

static json_t* difference_to_json(const crd_difference* d)
{
    json_t* j = json_object();
    const bool both = !d->only_in_a && !d->only_in_b;
    json_object_set_new(j, "name", crdi_json_text(d->name));
    json_object_set_new(j, "in", json_string(both ? "both" : d->only_in_a ? "a" : "b"));
    json_object_set_new(j, "differs", json_boolean(d->differs || !both));
    if (both) {
        json_object_set_new(j, "first_time",
                            d->differs ? crdi_json_number(d->first_time) : json_null());
        json_object_set_new(j, "max_error", crdi_json_number(d->max_error));
        json_object_set_new(j, "max_error_time", crdi_json_number(d->max_error_time));
        json_object_set_new(j, "value_a", crdi_json_number(d->value_a));
        json_object_set_new(j, "value_b", crdi_json_number(d->value_b));
        json_object_set_new(j, "rms_error", crdi_json_number(d->rms_error));
        json_object_set_new(j, "tolerance", crdi_json_number(d->tolerance));
    }
    return j;
}

static crd_status print_json(crdi_cli* cli, const char* a, const char* b, const crd_comparison* c)
{
    json_t* j = json_object();
    json_object_set_new(j, "a", crdi_json_text(a));
    json_object_set_new(j, "b", crdi_json_text(b));
    json_object_set_new(j, "equal", json_boolean(c->different_count == 0));
    json_object_set_new(j, "different", json_integer(c->different_count));
    json_object_set_new(j, "start", crdi_json_number(c->start));
    json_object_set_new(j, "stop", crdi_json_number(c->stop));
    json_t* signals = json_array();
    for (int i = 0; i < c->signal_count; i++) {
        json_array_append_new(signals, difference_to_json(&c->signals[i]));
    }
    json_object_set_new(j, "signals", signals);
    return crdi_json_print(cli, j);
}

static void add_row(crdi_grid* g, const crd_difference* d)
{
    crdi_grid_add(g, "%s", d->name);
    if (d->only_in_a || d->only_in_b) {
        crdi_grid_add(g, "only in %s", d->only_in_a ? "A" : "B");
        for (int i = 2; i < 8; i++) {
            crdi_grid_add(g, "%s", "");
        }
        return;
    }
    if (d->differs) {
        crdi_grid_add(g, "%.10g", d->first_time);
    } else {
        crdi_grid_add(g, "%s", "nowhere");
    }
    crdi_grid_add(g, "%.4g", d->max_error);
    crdi_grid_add(g, "%.10g", d->max_error_time);
    crdi_grid_add(g, "%.10g", d->value_a);
    crdi_grid_add(g, "%.10g", d->value_b);
    crdi_grid_add(g, "%.4g", d->rms_error);
    crdi_grid_add(g, "%.4g", d->tolerance);
}

static void print_text(crdi_cli* cli, const char* a, const char* b, const crd_comparison* c,
                       bool all)
{
    if (c->different_count || all) {
        static const char* const titles[] = {"signal", "differs at", "largest", "at",
                                             "A",      "B",          "rms",     "tolerance"};
        crdi_grid g;
        crdi_grid_init(&g, cli->ctx, 8, 0xFE);
        for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
            crdi_grid_add(&g, "%s", titles[i]);
        }
        for (int i = 0; i < c->signal_count; i++) {
            const crd_difference* d = &c->signals[i];
            if (all || d->differs || d->only_in_a || d->only_in_b) { add_row(&g, d); }
        }
        crdi_grid_print(&g, stdout, "");
        crdi_grid_clear(&g);
    }
    printf("%d of %d signal%s differ%s between %s and %s over %.10g s to %.10g s\n",
           c->different_count, c->signal_count, crdi_plural(c->signal_count),
           c->signal_count == 1 ? "s" : "", a, b, c->start, c->stop);
}

// Numbers are compared as they stand in the files.
static void warn_units(crdi_cli* cli, const char* const paths[2], crd_table* const tables[2],
                       const compare_options* o, const crd_pair* pairs)
{
    const crd_table *a = tables[0], *b = tables[1];
    const int count = o->pairs.count ? o->pairs.count : a->column_count;
    for (int i = 0; i < count; i++) {
        const char* name = o->pairs.count ? pairs[i].a : a->columns[i].name;
        const int in_a = crd_table_find(a, name);
        const int in_b = crd_table_find(b, o->pairs.count ? pairs[i].b : name);
        if (in_a < 0 || in_b < 0 || !crdi_match_any(&o->variables, name)) { continue; }
        const char *x = a->columns[in_a].unit, *y = b->columns[in_b].unit;
        if (!x[0] || !y[0] || strcmp(x, y) == 0) { continue; }
        crdi_log(cli->ctx, CRD_LOG_WARNING,
                 "%s is in '%s' in %s and in '%s' in %s; the numbers are compared as they are",
                 name, x, paths[0], y, paths[1]);
    }
}

static crd_status run_compare(crdi_cli* cli, const void* options, const crdi_list* arguments)
{
    const compare_options* o = options;
    const char *a = arguments->items[0], *b = arguments->items[1];
    crd_status st = CRD_OK;
    crd_table* tables[2] = {NULL, NULL};
    crd_comparison* c = NULL;
    crd_pair* pairs = NULL;
    CRD_TRY(read_pairs(cli, &o->pairs, &pairs));
    CRD_TRY(crd_table_read(cli->ctx, a, &tables[0]));
    CRD_TRY(crd_table_read(cli->ctx, b, &tables[1]));
    CRD_TRY(crdi_check_patterns(cli->ctx, &o->variables, tables, 2));
    crd_compare_options opt = crd_compare_defaults();
    if (!isnan(o->relative)) { opt.relative = o->relative; }
    if (!isnan(o->absolute)) { opt.absolute = o->absolute; }
    opt.patterns = o->variables.items;
    opt.pattern_count = o->variables.count;
    opt.pairs = pairs;
    opt.pair_count = o->pairs.count;
    CRD_TRY(crd_compare(cli->ctx, tables[0], tables[1], &opt, &c));
    warn_units(cli, (const char* const[]){a, b}, tables, o, pairs);
    if (o->common.json) {
        CRD_TRY(print_json(cli, a, b, c));
    } else {
        print_text(cli, a, b, c, o->all);
        CRD_TRY(crdi_stdout_done(cli->ctx));
    }
    if (c->different_count) { st = crdi_fail(cli->ctx, CRD_E_DIFFERENT, "%s", ""); }
fail:
    crd_comparison_destroy(c);
    crd_table_destroy(tables[0]);
    crd_table_destroy(tables[1]);
    free_pairs(cli, pairs, o->pairs.count);
    return st;
}

static const crdi_option rows[] = {
    {.name = "tolerance",
     .type = CRDI_OPT_NUMBER,
     .metavar = "REL",
     .range = CRDI_NOT_NEGATIVE,
     .offset = offsetof(compare_options, relative),
     .help = "relative to the range of the signal in A; 1e-9 unless given"},
    {.name = "absolute",
     .type = CRDI_OPT_NUMBER,
     .metavar = "ABS",
     .range = CRDI_NOT_NEGATIVE,
     .offset = offsetof(compare_options, absolute),
     .help = "added to it, in the signal's own unit; 1e-12 unless given"},
    {.name = "variables",
     .type = CRDI_OPT_LIST,
     .metavar = "PATTERN",
     .offset = offsetof(compare_options, variables),
     .help = "only signals that fit, with * and ?"},
    {.name = "pair",
     .type = CRDI_OPT_LIST,
     .metavar = "A=B",
     .offset = offsetof(compare_options, pairs),
     .help = "compare signal A of the first with signal B of the second, and nothing else"},
    {.name = "all",
     .type = CRDI_OPT_FLAG,
     .offset = offsetof(compare_options, all),
     .help = "list the signals that agree, too"},
    CRDI_JSON_OPTION("print the comparison as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

static const compare_options defaults = {
    .common = CRDI_COMMON_DEFAULTS, .relative = NAN, .absolute = NAN};

const crdi_command crdi_command_compare = {
    .name = "compare",
    .arguments = "A B",
    .summary = "say which signals of two results differ, where first, by how much",
    .description =
        "Compares two result files (CSV, MF4, MAT, in any combination) over the time that both "
        "cover; B is interpolated at the times of A. A signal differs where |A - B| exceeds ABS + "
        "REL times the range of the signal in A; a "
        "signal that only one file has differs, too. Exit code 0 if nothing differs, 1 if "
        "something "
        "does.",
    .examples = {{"cardan compare before.csv after.csv --tolerance 1e-6", "did the change matter?"},
                 {"cardan compare a.csv b.csv --variables 'motor.*' --all", "the motor only"},
                 {"cardan compare whole.csv coupled.csv --pair x2=second.x2",
                  "the same thing under two names"}},
    .options = rows,
    .option_count = sizeof rows / sizeof *rows,
    .min_arguments = 2,
    .max_arguments = 2,
    .extensions = "csv|mf4|mat",
    .size = sizeof(compare_options),
    .defaults = &defaults,
    .run = run_compare,
};
