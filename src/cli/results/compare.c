// cardan compare: which signals of two results differ, where first, by how much.
#include "cli/results/compare.h"
#include "shared/base_units.h"

#include <math.h>
#include <string.h>

enum { FILES = CRD_RICHARDSON_RUNS };

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
        crd_free(cli->ctx, (char*)pairs[i].a);
    }
    crd_free(cli->ctx, pairs);
}

static void put_difference(crdi_result* row, const crd_difference* d, bool all)
{
    const bool both = !d->only_in_a && !d->only_in_b;
    const char* in = both ? "both" : d->only_in_a ? "a" : "b";
    crdi_put(row, TEXT("name", d->name), TEXT("in", in), BOOL("differs", d->differs || !both));
    if (both) {
        crdi_put(row,
                 AS(ONLY_IF(d->differs, REAL("first_time", d->first_time)),
                    d->differs ? NULL : "nowhere"),
                 REAL("max_error", d->max_error), REAL("max_error_time", d->max_error_time),
                 REAL("value_a", d->value_a), REAL("value_b", d->value_b),
                 REAL("rms_error", d->rms_error), REAL("tolerance", d->tolerance));
    } else {
        crdi_put(row, CELL("first_time", d->only_in_a ? "only in A" : "only in B"));
    }
    if (both && !d->differs && !all) { crdi_only_json(row); }
}

static void put_comparison(crdi_result* out, const char* a, const char* b, const crd_comparison* c,
                           bool all)
{
    static const crdi_column columns[] = {{"signal", "name", "%s"},
                                          {">differs at", "first_time", "%.10g"},
                                          {">largest", "max_error", "%.4g"},
                                          {">at", "max_error_time", "%.10g"},
                                          {">A", "value_a", "%.10g"},
                                          {">B", "value_b", "%.10g"},
                                          {">rms", "rms_error", "%.4g"},
                                          {">tolerance", "tolerance", "%.4g"},
                                          {0}};
    crdi_put(out, TEXT("a", a), TEXT("b", b), BOOL("equal", c->different_count == 0),
             INT("different", c->different_count), REAL("start", c->start), REAL("stop", c->stop));
    crdi_result* signals = crdi_array(out, "signals");
    for (int i = 0; i < c->signal_count; i++) {
        put_difference(crdi_row(signals), &c->signals[i], all);
    }
    crdi_show_table(out, signals, columns, "");
    crdi_say(out, "%d of %d signal%s differ%s between %s and %s over %.10g s to %.10g s\n",
             c->different_count, c->signal_count, crdi_plural(c->signal_count),
             c->signal_count == 1 ? "s" : "", a, b, c->start, c->stop);
}

crd_status crdi_compare_units(crdi_cli* cli, crd_table* const* tables, int count,
                              const crdi_compare* o, const crd_pair* pairs)
{
    const crd_table* a = tables[0];
    const int names = o->pairs.count ? o->pairs.count : a->column_count;
    for (int k = 1; k < count; k++) {
        const crd_table* b = tables[k];
        for (int i = 0; i < names; i++) {
            const char* name = o->pairs.count ? pairs[i].a : a->columns[i].name;
            const int in_a = crd_table_find(a, name);
            const int in_b = crd_table_find(b, o->pairs.count ? pairs[i].b : name);
            if (in_a < 0 || in_b < 0 || !crdi_match_any(&o->variables, name)) { continue; }
            const char *x = a->columns[in_a].unit, *y = b->columns[in_b].unit;
            double factor, offset;
            if (!x[0] || !y[0] || strcmp(x, y) == 0) { continue; }
            if (a->columns[in_a].texts || b->columns[in_b].texts) { continue; }
            if (o->richardson) {
                return crdi_fail(cli->ctx, CRD_E_RANGE,
                                 "%s is in '%s' in %s and in '%s' in %s, expected runs of one "
                                 "system",
                                 name, x, a->path, y, b->path);
            }
            crdi_log(cli->ctx, CRD_LOG_WARNING, "%s is in '%s' in %s and in '%s' in %s; %s", name,
                     x, a->path, y, b->path,
                     crdi_unit_convert(y, x, &factor, &offset)
                         ? "the latter is converted"
                         : "that cannot be compared and counts as different");
        }
    }
    return CRD_OK;
}

static crd_status compare_two(crdi_cli* cli, const crdi_compare* o, crd_table* const* tables,
                              const crd_pair* pairs, crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_comparison* c = NULL;
    crd_compare_options opt = crd_compare_defaults();
    if (!isnan(o->relative)) { opt.relative = o->relative; }
    if (!isnan(o->absolute)) { opt.absolute = o->absolute; }
    opt.patterns = o->variables.items;
    opt.pattern_count = o->variables.count;
    opt.pairs = pairs;
    opt.pair_count = o->pairs.count;
    CRD_TRY(crd_compare(cli->ctx, tables[0], tables[1], &opt, &c));
    CRD_TRY(crdi_compare_units(cli, tables, 2, o, pairs));
    put_comparison(out, tables[0]->path, tables[1]->path, c, o->all);
    if (c->different_count) { st = crdi_fail(cli->ctx, CRD_E_DIFFERENT, "%s", ""); }
fail:
    crd_comparison_destroy(c);
    return st;
}

// What makes sense for an estimate only.
static crd_status check_mode(crdi_cli* cli, const crdi_compare* o, int files)
{
    if (o->richardson) { return CRD_OK; }
    const char* alone = !isnan(o->order)       ? "--order"
                        : !isnan(o->ratio)     ? "--ratio"
                        : !isnan(o->max_error) ? "--max-error"
                                               : NULL;
    if (alone) { return crdi_fail(cli->ctx, CRD_E_RANGE, "%s needs --richardson", alone); }
    if (files > 2) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "%d files, expected 2; --richardson takes a third one", files);
    }
    return CRD_OK;
}

static crd_status run_compare(crdi_cli* cli, const void* options, const crdi_list* arguments,
                              crdi_result* out)
{
    const crdi_compare* o = options;
    crd_status st = CRD_OK;
    crd_table* tables[FILES] = {NULL};
    crd_pair* pairs = NULL;
    CRD_TRY(check_mode(cli, o, arguments->count));
    CRD_TRY(read_pairs(cli, &o->pairs, &pairs));
    for (int i = 0; i < arguments->count; i++) {
        CRD_TRY(crd_table_read(cli->ctx, arguments->items[i], &tables[i]));
    }
    CRD_TRY(crdi_check_patterns(cli->ctx, &o->variables, tables, arguments->count));
    CRD_TRY(o->richardson ? crdi_compare_richardson(cli, o, tables, arguments->count, pairs, out)
                          : compare_two(cli, o, tables, pairs, out));
fail:
    for (int i = 0; i < FILES; i++) {
        crd_table_destroy(tables[i]);
    }
    free_pairs(cli, pairs, o->pairs.count);
    return st;
}

static const crdi_option rows[] = {
    OPT_NUMBER(crdi_compare, relative, "tolerance", "REL", CRDI_NOT_NEGATIVE,
               "relative to the range of the signal in A; 1e-9 unless given"),
    OPT_NUMBER(crdi_compare, absolute, "absolute", "ABS", CRDI_NOT_NEGATIVE,
               "added to it, in the signal's own unit; 1e-12 unless given"),
    CRDI_SIGNALS_OPTION(crdi_compare),
    OPT_LIST(crdi_compare, pairs, "pair", "A=B",
             "compare signal A of the first with signal B of the second, and nothing else"),
    OPT_FLAG(crdi_compare, all, "all", "list the signals that agree, too"),
    OPT_FLAG(crdi_compare, richardson, "richardson",
             "A, B and perhaps C are runs of one system with smaller and smaller steps: estimate "
             "their errors"),
    OPT_NUMBER(
        crdi_compare, order, "order", "P", CRDI_POSITIVE,
        "the errors go with the P-th power of the step; as observed in three runs, 1 for two "
        "unless given"),
    OPT_NUMBER(
        crdi_compare, ratio, "ratio", "R", CRDI_POSITIVE,
        "step of A by step of B (and of B by C); from what the files say about their runs, or "
        "from the distance of their rows unless given"),
    OPT_NUMBER(
        crdi_compare, max_error, "max-error", "FRACTION", CRDI_NOT_NEGATIVE,
        "exit code 3 if the largest estimated error of the finest run is more than this part "
        "of the signal's largest magnitude, or unknown"),
    CRDI_JSON_OPTION("print the comparison as JSON on standard output"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_compare = {
    .name = "compare",
    .arguments = "A B [C]",
    .summary = "say which signals of two results differ, where first, by how much",
    .description =
        "Compares two result files (CSV, MF4, MAT, in any combination) over the time that both "
        "cover; B is interpolated at the times of A. A signal differs where |A - B| exceeds ABS + "
        "REL times the range of the signal in A; a "
        "signal that only one file has differs, too, and one whose units of measure cannot be "
        "converted into those of A. Exit code 0 if nothing differs, 1 if "
        "something does. With --richardson the files are runs of one system whose steps differ, "
        "the coarsest first, and the errors of the runs are estimated from their differences at "
        "the "
        "times that all have; a third run shows the order. There, differences up to ABS (0) + REL "
        "(1e-12) times the signal's largest magnitude are rounding.",
    .examples = {{"cardan compare before.csv after.csv --tolerance 1e-6", "did the change matter?"},
                 {"cardan compare a.csv b.csv --variables 'motor.*' --all", "the motor only"},
                 {"cardan compare whole.csv coupled.csv --pair x2=second.x2",
                  "the same thing under two names"},
                 {"cardan compare run.mf4 half.mf4 --richardson --max-error 1e-3",
                  "is a run with half the step right to 0.1 %?"}},
    OPTIONS(rows, crdi_compare),
    .min_arguments = 2,
    .max_arguments = FILES,
    .extensions = "csv|mf4|mat",
    .run = run_compare,
};
