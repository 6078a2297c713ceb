#include "system/read.h"

#include "shared/base_findings.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

// ---- the tables: adding a key is adding a row --------------------------------------------------

const char* const crdi_predictions[] = {"auto",    "hold",    "linear",  "quadratic",
                                        "taylor1", "taylor2", "hermite", "ab2",
                                        "ab3",     "ab4",     NULL};
static const char* const feedthroughs[] = {"strict", "fresh", "program", NULL};
_Static_assert(COUNT(crdi_predictions) == CRD_PREDICTION_COUNT + 1, "a name for each prediction");
_Static_assert(COUNT(feedthroughs) == CRD_DEFECT_PROGRAM + 2, "a name for each scheme");

typedef struct file_draft {
    const crdi_node *version, *units, *connections, *bonds, *run, *results;
    const char *title, *system, *variant;
} file_draft;

// Readers and tables of keys that have more than one form, or keys of their own.
static crd_status read_threads(crdi_reader* r, const crdi_node* n, void* out);
static crd_status read_mat(crdi_reader* r, const crdi_node* n, void* out);
static const crdi_table initialization_table;

static const crdi_key file_keys[] = {
    {KEY("cardan", NODE, file_draft, version)},
    {KEY("title", TEXT, file_draft, title)},
    {KEY("system", PATH, file_draft, system)},
    {KEY("variant", TEXT, file_draft, variant)},
    {KEY("units", NODE, file_draft, units)},
    {KEY("connections", NODE, file_draft, connections)},
    {KEY("bonds", NODE, file_draft, bonds)},
    {KEY("run", NODE, file_draft, run)},
    {KEY("results", NODE, file_draft, results)},
};

static const crdi_key run_keys[] = {
    {KEY("start", TIME, crd_run_spec, start)},
    {KEY("stop", TIME, crd_run_spec, stop)},
    {KEY("step", TIME, crd_run_spec, step), .range = CRDI_POSITIVE},
    {KEY("tolerance", NUMBER, crd_run_spec, tolerance), .range = CRDI_POSITIVE},
    {.name = "scheme", .type = CRDI_KEY_OWN, .read = crdi_read_scheme},
    {KEY("predict", CHOICE, crd_run_spec, predict), .choices = crdi_predictions},
    {KEY("pace", OWN, crd_run_spec, pace), .read = crdi_read_pace},
    {KEY("control", OWN, crd_run_spec, control), .read = crdi_read_control},
    {KEY("iterate", OWN, crd_run_spec, iterate), .read = crdi_read_iterate},
    {KEY("feedthrough", CHOICE, crd_run_spec, feedthrough), .choices = feedthroughs},
    {KEY("monitor", OWN, crd_run_spec, monitor), .read = crdi_read_monitor},
    {KEY("guard", OWN, crd_run_spec, guard), .read = crdi_read_guard},
    {KEY("threads", OWN, crd_run_spec, threads), .read = read_threads},
    {KEY("isolate", CHOICE, crd_run_spec, isolate), .choices = crdi_isolations},
    {KEY("watchdog", TIME, crd_run_spec, watchdog), .range = CRDI_NOT_NEGATIVE},
    {KEY("learned", PATH, crd_run_spec, learned)},
    {.name = "initialization", .type = CRDI_KEY_TABLE, .table = &initialization_table},
};

static const crdi_key initialization_keys[] = {
    {KEY("iterations", INT, crd_run_spec, loop_iterations), .min = 1, .max = 1000000},
    {KEY("tolerance", NUMBER, crd_run_spec, loop_tolerance), .range = CRDI_POSITIVE},
};

typedef struct group_draft {
    const crdi_node *jacobi, *gauss_seidel;
} group_draft;

static const crdi_key group_keys[] = {
    {KEY("jacobi", NODE, group_draft, jacobi)},
    {KEY("gauss-seidel", NODE, group_draft, gauss_seidel)},
};

// A word, or a file.
static crd_status read_on_full(crdi_reader* r, const crdi_node* n, void* out)
{
    const char** text = out;
    const crd_status st = crdi_read_text(r, n, text);
    if (st < 0 || strcmp(*text, "stop") == 0 || strcmp(*text, "thin") == 0 ||
        strcmp(*text, "drop") == 0) {
        return st;
    }
    if (!strchr(*text, '.') && !strchr(*text, '/')) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "'%s', expected stop, thin, drop, or a file for the rest",
                              crdi_clip(*text).text);
    }
    return crdi_read_path(r, n, text);
}

typedef struct results_draft {
    crd_results_spec spec;
    crdi_texts variables;
} results_draft;

static const crdi_key results_keys[] = {
    {KEY("file", PATH, results_draft, spec.path)},
    {KEY("variables", TEXTS, results_draft, variables)},
    {KEY("interval", TIME, results_draft, spec.interval), .range = CRDI_NOT_NEGATIVE},
    {KEY("unit_row", BOOL, results_draft, spec.unit_row)},
    {KEY("mat", OWN, results_draft, spec.mat_version), .read = read_mat},
    {KEY("exchange", PATH, results_draft, spec.exchange)},
    {KEY("session", PATH, results_draft, spec.session)},
    {KEY("on_full", OWN, results_draft, spec.on_full), .read = read_on_full},
};

TABLE(file);
TABLE(run);
TABLE(initialization);
TABLE(group);
TABLE(results);

const crdi_table* const* crdi_system_tables(int* count)
{
    static const crdi_table* const all[] = {&file_table,
                                            &crdi_unit_table,
                                            &crdi_standby_table,
                                            &crdi_session_table,
                                            &crdi_link_table,
                                            &crdi_bench_table,
                                            &crdi_solver_table,
                                            &crdi_circuit_table,
                                            &crdi_column_table,
                                            &crdi_signal_table,
                                            &crdi_lever_table,
                                            &crdi_bond_table,
                                            &crdi_connection_table,
                                            &crdi_channel_table,
                                            &crdi_control_table,
                                            &crdi_iterate_table,
                                            &crdi_pace_table,
                                            &crdi_guard_table,
                                            &run_table,
                                            &initialization_table,
                                            &group_table,
                                            &results_table};
    *count = COUNT(all);
    return all;
}

// ---- run ---------------------------------------------------------------------------------------

static crd_status read_leaf(crdi_reader* r, const crdi_node* n, const crd_system* s, bool* seen,
                            crd_group* out)
{
    const int unit = crd_system_find(s, n->text);
    if (unit < 0) {
        return crdi_read_fail(r, CRD_E_NOT_FOUND, n->line, "there is no unit '%s'%s",
                              crdi_clip(n->text).text, crdi_unit_hint(s, n->text).text);
    }
    if (seen[unit]) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line,
                              "the unit '%s' is in the scheme twice, expected each unit once",
                              s->units[unit].name);
    }
    seen[unit] = true;
    *out = (crd_group){.kind = CRD_GROUP_UNIT, .unit = unit};
    return CRD_OK;
}

// Depth is bounded by that of the tree.
static crd_status system_read_group(crdi_reader* r, const crdi_node* n, const crd_system* s,
                                    bool* seen, crd_group* out)
{
    if (n->kind == CRDI_SCALAR && !crdi_node_empty(n)) { return read_leaf(r, n, s, seen, out); }
    crd_status st = CRD_OK;
    group_draft d = {0};
    CRD_TRY(crdi_read_mapping(r, n, &group_table, &d, NULL));
    if (n->count != 1) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "expected one of the keys jacobi and gauss-seidel");
    }
    const crdi_node* list = d.jacobi ? d.jacobi : d.gauss_seidel;
    const size_t mark = crdi_path_enter(r, list->key);
    CRD_TRY(crdi_expect_kind(r, list, CRDI_LIST, "a list of units and groups"));
    if (list->count == 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, list->line, "an empty group, expected units in it");
    }
    crd_group* members = crdi_arena_new(r->arena, (size_t)list->count, sizeof *members);
    if (!members) { return CRD_E_MEMORY; }
    int i = 0;
    for (const crdi_node* m = list->first; m; m = m->next, i++) {
        CRD_TRY(system_read_group(r, m, s, seen, &members[i]));
    }
    crdi_path_leave(r, mark);
    *out = (crd_group){.kind = d.jacobi ? CRD_GROUP_JACOBI : CRD_GROUP_GAUSS_SEIDEL,
                       .members = members,
                       .member_count = list->count};
fail:
    return st;
}

crd_status crdi_read_scheme(crdi_reader* r, const crdi_node* n, void* out)
{
    crd_run_spec* run = out;
    const crd_system* s = r->system;
    static const char* const expected =
        "jacobi, gauss-seidel, or a group such as { gauss-seidel: [a, { jacobi: [b, c] }] }";
    if (n->kind == CRDI_SCALAR && strcmp(n->text, "jacobi") == 0) {
        run->scheme = CRD_SCHEME_JACOBI;
        return CRD_OK;
    }
    if (n->kind == CRDI_SCALAR && strcmp(n->text, "gauss-seidel") == 0) {
        run->scheme = CRD_SCHEME_GAUSS_SEIDEL;
        return CRD_OK;
    }
    crd_status st = crdi_expect_kind(r, n, CRDI_MAPPING, expected);
    if (st < 0) { return st; }
    bool* seen = crdi_arena_new(r->scratch, (size_t)s->unit_count, sizeof *seen);
    if (!seen) { return CRD_E_MEMORY; }
    crd_group group;
    st = system_read_group(r, n, s, seen, &group);
    if (st < 0) { return st; }
    for (int i = 0; i < s->unit_count; i++) {
        if (!seen[i]) {
            return crdi_read_fail(r, CRD_E_RANGE, n->line,
                                  "the unit '%s' is not in the scheme, expected each unit once",
                                  s->units[i].name);
        }
    }
    run->scheme = CRD_SCHEME_GROUPS;
    run->group = group;
    return CRD_OK;
}

static crd_status read_threads(crdi_reader* r, const crdi_node* n, void* out)
{
    enum { MOST = 1024 };
    if (n->kind == CRDI_SCALAR && strcmp(n->text, "auto") == 0) {
        *(int*)out = 0;
        return CRD_OK;
    }
    const crd_status st = crdi_read_int(r, n, 1, MOST, out);
    return st == CRD_OK || st == CRD_E_MEMORY
               ? st
               : crdi_fail(r->ctx, st, "%s, or auto", crd_error_text(r->ctx));
}

static crd_status read_run(crdi_reader* r, const crdi_node* n, crd_system* s)
{
    crd_status st = CRD_OK;
    crd_run_spec run = s->run;
    const size_t mark = crdi_path_enter(r, "run");
    CRD_TRY(crdi_read_mapping(r, n, &run_table, &run, NULL));
    if (run.stop < run.start) { // not with NaN
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "stop"),
                              "stop = %g s is before start = %g s, expected it after", run.stop,
                              run.start);
    }
    for (int i = 0; i < s->connection_count; i++) { // of the system below, and said nothing else
        crd_prediction* of = &s->connections[i].predict;
        if (*of == s->run.predict) { *of = run.predict; }
    }
    s->run = run;
    crdi_path_leave(r, mark);
fail:
    return st;
}

// ---- results, and the whole --------------------------------------------------------------------

static crd_status read_mat(crdi_reader* r, const crdi_node* n, void* out)
{
    const bool five = n->kind == CRDI_SCALAR && strcmp(n->text, "5") == 0;
    if (five || (n->kind == CRDI_SCALAR && strcmp(n->text, "7.3") == 0)) {
        *(int*)out = five ? 5 : 73;
        return CRD_OK;
    }
    return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s', expected 5 or 7.3",
                          crdi_clip(n->text).text);
}

// A second file has its own format, and is never the result file.
static crd_status check_second_file(crdi_reader* r, const crdi_node* n, const char* key,
                                    const char* file, const char* ending, const char* results)
{
    if (!file) { return CRD_OK; }
    if (!crdi_ends_with(file, ending)) {
        return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, key),
                              "%s: '%s', expected a file whose name ends in %s", key,
                              crdi_clip(file).text, ending);
    }
    if (results && strcmp(results, file) == 0) {
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, key),
                              "%s: '%s' is the result file too, expected another one", key,
                              crdi_clip(file).text);
    }
    return CRD_OK;
}

static crd_status read_results(crdi_reader* r, const crdi_node* n, crd_system* s)
{
    crd_status st = CRD_OK;
    results_draft d = {.spec = s->results,
                       .variables = {s->results.patterns, s->results.pattern_count}};
    // `results: run.csv` is short for `results: { file: run.csv }`
    crdi_node file = *n, mapping = {.kind = CRDI_MAPPING, .line = n->line, .first = &file};
    if (n->kind == CRDI_SCALAR && !crdi_node_empty(n)) {
        file.key = "file";
        file.next = NULL;
        n = &mapping;
    }
    const size_t mark = crdi_path_enter(r, "results");
    CRD_TRY(crdi_read_mapping(r, n, &results_table, &d, NULL));
    d.spec.patterns = d.variables.items;
    d.spec.pattern_count = d.variables.count;
    CRD_TRY(check_second_file(r, n, "exchange", d.spec.exchange, ".mf4", d.spec.path));
    CRD_TRY(check_second_file(r, n, "session", d.spec.session, ".csv", d.spec.path));
    s->results = d.spec;
    crdi_path_leave(r, mark);
fail:
    return st;
}

static crd_status check_version(crdi_reader* r, const crdi_node* root, bool needed)
{
    const crdi_node* n = root->kind == CRDI_MAPPING ? crdi_node_get(root, "cardan") : NULL;
    if (needed && !n) {
        const bool twin = root->kind == CRDI_MAPPING && crdi_node_get(root, "sensors");
        return crdi_read_fail(r, CRD_E_FORMAT, root->line,
                              "not a system description, expected the key 'cardan: 1', then "
                              "units, connections, run, results%s",
                              twin ? "; the description of a twin is for 'cardan twin', or for a "
                                     "unit with the key 'twin'"
                                   : "");
    }
    if (n && (n->kind != CRDI_SCALAR || n->quoted || strcmp(n->text, "1") != 0)) {
        return crdi_read_fail(r, CRD_E_UNSUPPORTED, n->line,
                              "cardan: version '%s' of the description, expected 1",
                              crdi_clip(n->text).text);
    }
    return CRD_OK;
}

// Groups of the system below do not know units that came later.
static crd_status check_groups(crdi_reader* r, const crdi_node* root, const crd_system* s)
{
    return crdi_read_fail(
        r, CRD_E_RANGE, crdi_line_of(root, "units"),
        "the unit '%s' is new and not in the scheme of the system below, expected "
        "run.scheme with each unit once",
        s->units[r->base_units].name);
}

// From the outermost level.
static crd_status go_on(crdi_reader* r, crd_status st)
{
    const crd_status next = crdi_go_on(r->ctx, st);
    if (next >= 0) { r->path_length = 0; }
    return next;
}

// Everything but `system`, over what the system has.
static crd_status read_parts(crdi_reader* r, const crdi_node* root, const file_draft* d,
                             crd_system* s)
{
    crd_status st = CRD_OK;
    r->base_units = s->unit_count;
    r->base_connections = s->connection_count;
    r->base_bonds = s->bond_count;
    const crd_group* groups = s->run.group.members;
    if (d->title) { s->title = d->title; }
    if (d->units) { CRD_TRY(crdi_read_units(r, d->units, s)); }
    if (d->run) { CRD_TRY(go_on(r, read_run(r, d->run, s))); }
    if (s->run.scheme == CRD_SCHEME_GROUPS && s->run.group.members == groups &&
        s->unit_count > r->base_units) {
        CRD_TRY(check_groups(r, root, s));
    }
    if (d->connections) { CRD_TRY(go_on(r, crdi_read_connections(r, d->connections, s))); }
    if (d->bonds) { CRD_TRY(go_on(r, crdi_read_bonds(r, d->bonds, s))); }
    if (d->results) { CRD_TRY(go_on(r, read_results(r, d->results, s))); }
fail:
    return st;
}

static crd_status read_base(crdi_reader* r, const crdi_node* root, const file_draft* d,
                            crd_system* s, crd_system_base* base)
{
    const crd_place place = {r->file, crdi_line_of(root, "system")};
    if (!base) {
        return crdi_read_fail(r, CRD_E_UNSUPPORTED, place.line,
                              "system: '%s' cannot be read here, expected the keys units and "
                              "connections",
                              crdi_clip(d->system).text);
    }
    const char* file = s->file;
    const crd_status st = base(s, d->system, d->variant, place);
    s->file = file;
    s->base = d->system;
    return st;
}

crd_status crdi_read_system(crdi_reader* r, const crdi_node* root, crd_system* s,
                            crd_system_base* base)
{
    crd_status st = CRD_OK;
    file_draft d = {0};
    CRD_TRY(check_version(r, root, true)); // first: a later version may have other keys
    const crd_status keys = crdi_read_mapping(r, root, &file_table, &d, NULL);
    CRD_TRY(go_on(r, keys));
    if (keys < 0 && !d.units && !d.system) { return keys; } // units by another name
    if (d.variant && !d.system) {
        return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(root, "variant"),
                              "variant: '%s' of what? Expected the key system with an SSP too",
                              crdi_clip(d.variant).text);
    }
    if (d.system) {
        CRD_TRY(read_base(r, root, &d, s, base));
    } else if (!d.units) {
        return crdi_read_fail(r, CRD_E_FORMAT, root->line, "the key 'units' is missing");
    }
    CRD_TRY(read_parts(r, root, &d, s));
fail:
    return st;
}

crd_status crdi_read_amendment(crdi_reader* r, const crdi_node* root, crd_system* s)
{
    crd_status st = CRD_OK;
    file_draft d = {0};
    r->foreign_names = true;
    CRD_TRY(check_version(r, root, false));
    CRD_TRY(crdi_read_mapping(r, root, &file_table, &d, NULL));
    if (d.system || d.variant) {
        const char* key = d.system ? "system" : "variant";
        return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(root, key),
                              "'%s' has no place in what is added to a system", key);
    }
    CRD_TRY(read_parts(r, root, &d, s));
fail:
    return st;
}
