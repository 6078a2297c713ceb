#include "system/read.h"

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
static const char* const interpolations[] = {"hold", "linear", NULL};
static const char* const interfaces[] = {"auto", "co-simulation", "model-exchange", NULL};
static const char* const modes[] = {"auto", "nrt", "srt", "hrt", NULL};
static const char* const methods[] = {"bdf", "adams", "euler", "rk4", NULL};
static const char* const circuit_methods[] = {"bdf1",   "bdf2",   "bdf3",   "tr", "tr-carried",
                                              "trbdf2", "gauss2", "gauss4", NULL};
static const char* const circuit_forms[] = {"auto", "dae", "nodal", NULL};
static const char* const shapes[] = {"constant", "step",      "ramp",  "sine", "chirp",
                                     "prbs",     "multisine", "table", NULL};
_Static_assert(COUNT(shapes) == CRD_SIGNAL_SHAPE_COUNT + 1, "a name for each shape");
_Static_assert(sizeof(crd_signal_shape) == sizeof(int), "choices are stored as int");
_Static_assert(COUNT(crdi_predictions) == CRD_PREDICTION_COUNT + 1, "a name for each prediction");
_Static_assert(COUNT(feedthroughs) == CRD_DEFECT_PROGRAM + 2, "a name for each scheme");
_Static_assert(COUNT(interfaces) == CRD_INTERFACE_MODEL_EXCHANGE + 2, "a name for each interface");
_Static_assert(COUNT(modes) == CRD_DCP_MODE_HRT + 2, "a name for each mode");
_Static_assert(COUNT(methods) == CRD_SOLVER_RK4 + 2, "a name for each method");
_Static_assert(COUNT(circuit_methods) == CRD_NETLIST_METHOD_COUNT + 1, "a name for each method");
_Static_assert(COUNT(circuit_forms) == CRD_NETLIST_NODAL + 2, "a name for each form");

typedef struct file_draft {
    const crdi_node *version, *units, *connections, *bonds, *run, *results;
    const char *title, *system, *variant;
} file_draft;

// Readers and tables of keys that have more than one form, or keys of their own.
static crd_status read_parameters(crdi_reader* r, const crdi_node* n, void* unit);
static crd_status read_columns(crdi_reader* r, const crdi_node* n, void* unit);
static crd_status read_bench(crdi_reader* r, const crdi_node* n, void* out);
static crd_status read_names(crdi_reader* r, const crdi_node* n, void* standby);
static crd_status read_threads(crdi_reader* r, const crdi_node* n, void* out);
static crd_status read_mat(crdi_reader* r, const crdi_node* n, void* out);
static const crdi_table session_table, initialization_table;

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

typedef struct unit_draft {
    crd_unit_spec spec;
    const char *fmu, *replay, *dcp, *description, *circuit, *twin;
    const crdi_node *signal, *signals, *solver, *standby;
} unit_draft;

enum {
    U_FMU,
    U_SIGNAL,
    U_SIGNALS,
    U_REPLAY,
    U_CIRCUIT,
    U_TWIN,
    U_PARAMETERS,
    U_INTERFACE,
    U_SOLVER,
    U_INTERPOLATION,
    U_COLUMNS,
    U_TIME_OFFSET,
    U_REPEAT,
    U_LOGGING,
    U_MODEL_KEYS, // those before are also a stand-in's
    U_DCP = U_MODEL_KEYS,
    U_DESCRIPTION,
    U_SESSION,
    U_BENCH,
    U_STANDBY,
    U_STEP,
    U_PINNED,
    U_REAL,
    U_REFRESH,
    U_BUDGET,
};

#define MODEL_KEYS                                                                                 \
    [U_FMU] = {KEY("fmu", PATH, unit_draft, fmu)},                                                 \
    [U_SIGNAL] = {KEY("signal", NODE, unit_draft, signal)},                                        \
    [U_SIGNALS] = {KEY("signals", NODE, unit_draft, signals)},                                     \
    [U_REPLAY] = {KEY("replay", PATH, unit_draft, replay)},                                        \
    [U_CIRCUIT] = {KEY("circuit", PATH, unit_draft, circuit)},                                     \
    [U_TWIN] = {KEY("twin", PATH, unit_draft, twin)},                                              \
    [U_PARAMETERS] = {KEY("parameters", OWN, unit_draft, spec), .read = read_parameters},          \
    [U_INTERFACE] = {KEY("interface", CHOICE, unit_draft, spec.interface), .choices = interfaces}, \
    [U_SOLVER] = {KEY("solver", NODE, unit_draft, solver)},                                        \
    [U_INTERPOLATION] = {KEY("interpolation", CHOICE, unit_draft, spec.interpolation),             \
                         .choices = interpolations},                                               \
    [U_COLUMNS] = {KEY("columns", OWN, unit_draft, spec), .read = read_columns},                   \
    [U_TIME_OFFSET] = {KEY("time_offset", TIME, unit_draft, spec.time_offset)},                    \
    [U_REPEAT] = {KEY("repeat", BOOL, unit_draft, spec.repeat)},                                   \
    [U_LOGGING] = {KEY("logging", BOOL, unit_draft, spec.logging)}

static const crdi_key unit_keys[] = {
    MODEL_KEYS,
    [U_DCP] = {KEY("dcp", TEXT, unit_draft, dcp)},
    [U_DESCRIPTION] = {KEY("description", PATH, unit_draft, description)},
    [U_SESSION] = {KEY("session", TABLE, unit_draft, spec.session), .table = &session_table},
    [U_BENCH] = {KEY("bench", OWN, unit_draft, spec.bench), .read = read_bench},
    [U_STANDBY] = {KEY("standby", NODE, unit_draft, standby)},
    [U_STEP] = {KEY("step", TIME, unit_draft, spec.step), .range = CRDI_POSITIVE},
    [U_PINNED] = {KEY("pinned", BOOL, unit_draft, spec.pinned)},
    [U_REAL] = {KEY("real", BOOL, unit_draft, spec.real)},
    [U_REFRESH] = {KEY("refresh", OWN, unit_draft, spec.refresh), .read = crdi_read_refresh},
    [U_BUDGET] = {KEY("budget", TIME, unit_draft, spec.budget), .range = CRDI_POSITIVE},
};

#define UNIT_SOURCES                                                                               \
    (BIT(U_FMU) | BIT(U_SIGNAL) | BIT(U_SIGNALS) | BIT(U_REPLAY) | BIT(U_DCP) | BIT(U_CIRCUIT) |   \
     BIT(U_TWIN))
#define UNIT_SOURCE_NAMES "fmu, signal, signals, replay, dcp, circuit, twin"

typedef struct standby_draft {
    unit_draft unit; // first: it has the keys of a unit
    crd_standby_spec spec;
} standby_draft;

static const crdi_key standby_keys[] = {
    MODEL_KEYS,
    [U_MODEL_KEYS] = {KEY("after", TIME, standby_draft, spec.after), .range = CRDI_POSITIVE},
    {KEY("fade", TIME, standby_draft, spec.fade), .range = CRDI_POSITIVE},
    {KEY("rejoin", BOOL, standby_draft, spec.rejoin)},
    {KEY("names", OWN, standby_draft, spec), .read = read_names},
};

static const crdi_key session_keys[] = {
    {KEY("mode", CHOICE, crd_session_spec, mode), .choices = modes},
    {KEY("resolution", TIME, crd_session_spec, resolution), .range = CRDI_POSITIVE},
    {KEY("steps", INT, crd_session_spec, steps), .min = 1, .max = 1000000},
    {KEY("id", INT, crd_session_spec, id), .min = 1, .max = 255},
    {KEY("relay", BOOL, crd_session_spec, relay)},
    {KEY("one_target", BOOL, crd_session_spec, one_target)},
    {KEY("force", BOOL, crd_session_spec, force)},
    {KEY("lossy", BOOL, crd_session_spec, lossy)},
    {KEY("lead", TIME, crd_session_spec, lead), .range = CRDI_NOT_NEGATIVE},
    {KEY("contact", TIME, crd_session_spec, contact), .range = CRDI_NOT_NEGATIVE},
    {KEY("timeout", TIME, crd_session_spec, timeout), .range = CRDI_POSITIVE},
    {KEY("retries", INT, crd_session_spec, retries), .min = 1, .max = 1000},
    {KEY("patience", TIME, crd_session_spec, patience), .range = CRDI_POSITIVE},
    {KEY("heartbeat", TIME, crd_session_spec, heartbeat), .range = CRDI_POSITIVE},
    {KEY("local", TEXT, crd_session_spec, local)},
    {KEY("key", PATH, crd_session_spec, key)},
    {KEY("capture", PATH, crd_session_spec, capture)},
};

static const crdi_key bench_keys[] = {
    {KEY("limits", TEXT, crd_bench_spec, limits)},
    {KEY("case", TEXT, crd_bench_spec, plan)},
    {KEY("initial", TEXT, crd_bench_spec, initial)},
    {KEY("gap", INT, crd_bench_spec, gap), .min = 1, .max = 32767},
    {KEY("watchdog", TIME, crd_bench_spec, watchdog), .range = CRDI_POSITIVE},
};

static const crdi_key solver_keys[] = {
    {KEY("method", CHOICE, crd_solver_spec, method), .choices = methods},
    {KEY("relative", NUMBER, crd_solver_spec, relative), .range = CRDI_POSITIVE},
    {KEY("absolute", NUMBER, crd_solver_spec, absolute), .range = CRDI_POSITIVE},
    {KEY("step", TIME, crd_solver_spec, step), .range = CRDI_POSITIVE},
};

static const crdi_key circuit_keys[] = {
    {KEY("method", CHOICE, crd_netlist_spec, method), .choices = circuit_methods},
    {KEY("form", CHOICE, crd_netlist_spec, form), .choices = circuit_forms},
    {KEY("step", TIME, crd_netlist_spec, step), .range = CRDI_POSITIVE},
    {KEY("iterations", INT, crd_netlist_spec, iterations), .min = 1, .max = 10000},
    {KEY("tolerance", NUMBER, crd_netlist_spec, tolerance), .range = CRDI_POSITIVE},
    {KEY("fixed_iterations", BOOL, crd_netlist_spec, fixed_iterations)},
};

enum { COLUMN_INTERPOLATION, COLUMN_UNIT };

static const crdi_key column_keys[] = {
    [COLUMN_INTERPOLATION] = {KEY("interpolation", CHOICE, crd_column_spec, interpolation),
                              .choices = interpolations},
    [COLUMN_UNIT] = {KEY("unit", TEXT, crd_column_spec, unit)},
};

typedef struct signal_draft {
    crd_signal_spec spec;
    double value;
    crdi_numbers times, values;
} signal_draft;

enum {
    S_SHAPE,
    S_UNIT,
    S_VALUE,
    S_OFFSET,
    S_AMPLITUDE,
    S_START,
    S_DURATION,
    S_FREQUENCY,
    S_FREQUENCY2,
    S_PHASE,
    S_ORDER,
    S_SEED,
    S_TIMES,
    S_VALUES,
    S_INTERPOLATION,
};

static const crdi_key signal_keys[] = {
    [S_SHAPE] = {KEY("shape", CHOICE, signal_draft, spec.shape), .required = true,
                 .choices = shapes},
    [S_UNIT] = {KEY("unit", TEXT, signal_draft, spec.unit)},
    [S_VALUE] = {KEY("value", NUMBER, signal_draft, value)},
    [S_OFFSET] = {KEY("offset", NUMBER, signal_draft, spec.offset)},
    [S_AMPLITUDE] = {KEY("amplitude", NUMBER, signal_draft, spec.amplitude)},
    [S_START] = {KEY("start", TIME, signal_draft, spec.start)},
    [S_DURATION] = {KEY("duration", TIME, signal_draft, spec.duration), .range = CRDI_POSITIVE},
    [S_FREQUENCY] = {KEY("frequency", FREQUENCY, signal_draft, spec.frequency),
                     .range = CRDI_NOT_NEGATIVE},
    [S_FREQUENCY2] = {KEY("frequency2", FREQUENCY, signal_draft, spec.frequency2),
                      .range = CRDI_NOT_NEGATIVE},
    [S_PHASE] = {KEY("phase", ANGLE, signal_draft, spec.phase)},
    [S_ORDER] = {KEY("order", INT, signal_draft, spec.order), .min = 1, .max = 10000},
    [S_SEED] = {KEY("seed", SEED, signal_draft, spec.seed)},
    [S_TIMES] = {KEY("times", TIMES, signal_draft, times)},
    [S_VALUES] = {KEY("values", NUMBERS, signal_draft, values)},
    [S_INTERPOLATION] = {KEY("interpolation", CHOICE, signal_draft, spec.interpolation),
                         .choices = interpolations},
};

// Which keys a shape needs and which it may have besides `shape` and `unit`.
static const struct {
    uint64_t needs, takes;
} shape_keys[CRD_SIGNAL_SHAPE_COUNT] = {
#define LEVEL (BIT(S_OFFSET) | BIT(S_AMPLITUDE))
    [CRD_SIGNAL_CONSTANT] = {0, LEVEL | BIT(S_VALUE)},
    [CRD_SIGNAL_STEP] = {0, LEVEL | BIT(S_START)},
    [CRD_SIGNAL_RAMP] = {BIT(S_DURATION), LEVEL | BIT(S_START)},
    [CRD_SIGNAL_SINE] = {BIT(S_FREQUENCY), LEVEL | BIT(S_START) | BIT(S_PHASE)},
    [CRD_SIGNAL_CHIRP] = {BIT(S_DURATION) | BIT(S_FREQUENCY) | BIT(S_FREQUENCY2),
                          LEVEL | BIT(S_START)},
    [CRD_SIGNAL_PRBS] = {BIT(S_DURATION), LEVEL | BIT(S_START) | BIT(S_ORDER) | BIT(S_SEED)},
    [CRD_SIGNAL_MULTISINE] = {BIT(S_FREQUENCY2) | BIT(S_ORDER), LEVEL | BIT(S_START) | BIT(S_SEED)},
    [CRD_SIGNAL_TABLE] = {BIT(S_TIMES) | BIT(S_VALUES),
                          LEVEL | BIT(S_START) | BIT(S_INTERPOLATION)},
#undef LEVEL
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
    {KEY("threads", OWN, crd_run_spec, threads), .read = read_threads},
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
};

#define TABLE(name) static const crdi_table name##_table = {#name, name##_keys, COUNT(name##_keys)}
TABLE(file);
TABLE(unit);
TABLE(standby);
TABLE(session);
TABLE(bench);
TABLE(solver);
TABLE(circuit);
TABLE(column);
TABLE(signal);
TABLE(run);
TABLE(initialization);
TABLE(group);
TABLE(results);

const crdi_table* const* crdi_system_tables(int* count)
{
    static const crdi_table* const all[] = {
        &file_table,           &unit_table,         &standby_table,         &session_table,
        &bench_table,          &solver_table,       &circuit_table,         &column_table,
        &signal_table,         &crdi_bond_table,    &crdi_connection_table, &crdi_channel_table,
        &crdi_control_table,   &crdi_iterate_table, &crdi_pace_table,       &run_table,
        &initialization_table, &group_table,        &results_table};
    *count = COUNT(all);
    return all;
}

void crdi_flow_solver(crdi_flow* f, const crd_solver_spec* s)
{
    const crd_unit_spec defaults = crd_unit_spec_defaults();
    crdi_flow_table(f, &solver_table, s, &defaults.solver);
}

void crdi_flow_column(crdi_flow* f, const crd_column_spec* c)
{
    if (c->has_interpolation) {
        crdi_flow_text(f, "interpolation", interpolations[c->interpolation]);
    }
    if (c->unit && c->unit[0]) { crdi_flow_text(f, "unit", c->unit); }
}

// ---- signals -----------------------------------------------------------------------------------

int crdi_line_of(const crdi_node* mapping, const char* key)
{
    const crdi_node* n = crdi_node_get(mapping, key);
    return n ? n->line : mapping->line;
}

static crd_status check_shape_keys(crdi_reader* r, const crdi_node* n, crd_signal_shape shape,
                                   uint64_t given)
{
    const uint64_t needs = shape_keys[shape].needs;
    const uint64_t takes = needs | shape_keys[shape].takes | BIT(S_SHAPE) | BIT(S_UNIT);
    for (int i = 0; i < signal_table.count; i++) {
        const char* key = signal_keys[i].name;
        if ((needs & ~given) & BIT(i)) {
            return crdi_read_fail(r, CRD_E_FORMAT, n->line, "the shape %s needs the key '%s'",
                                  shapes[shape], key);
        }
        if ((given & ~takes) & BIT(i)) {
            char list[200] = "";
            size_t at = 0;
            for (int j = 0; j < signal_table.count; j++) {
                if (takes & BIT(j)) {
                    at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "",
                                           signal_keys[j].name);
                }
            }
            return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, key),
                                  "the shape %s has no use for '%s'. Allowed here: %s",
                                  shapes[shape], key, list);
        }
    }
    return CRD_OK;
}

static crd_status check_table(crdi_reader* r, const crdi_node* n, signal_draft* d)
{
    if (d->times.count != d->values.count) {
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "values"),
                              "%d times but %d values, expected as many", d->times.count,
                              d->values.count);
    }
    for (int i = 1; i < d->times.count; i++) {
        if (!(d->times.items[i] > d->times.items[i - 1])) {
            return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "times"),
                                  "times[%d] = %g after %g, expected ascending times", i + 1,
                                  d->times.items[i], d->times.items[i - 1]);
        }
    }
    d->spec.times = d->times.items;
    d->spec.values = d->values.items;
    d->spec.table_count = d->times.count;
    return CRD_OK;
}

static crd_status check_signal(crdi_reader* r, const crdi_node* n, signal_draft* d, uint64_t given)
{
    crd_signal_spec* s = &d->spec;
    crd_dimension dim;
    if (!crd_dimension_parse(s->unit, &dim)) {
        return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, "unit"),
                              "unit: '%s' is not known, expected a unit such as N.m or rad/s",
                              crdi_clip(s->unit).text);
    }
    switch (s->shape) {
    case CRD_SIGNAL_CONSTANT:
        if (!(given & BIT(S_VALUE))) { return CRD_OK; }
        if (given & (BIT(S_OFFSET) | BIT(S_AMPLITUDE))) {
            return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, "value"),
                                  "value and offset or amplitude, expected value alone");
        }
        s->offset = d->value;
        s->amplitude = 0;
        return CRD_OK;
    case CRD_SIGNAL_SINE:
        if (s->frequency > 0) { return CRD_OK; }
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "frequency"),
                              "frequency: %g Hz, expected more than 0", s->frequency);
    case CRD_SIGNAL_CHIRP:
        if (s->frequency > 0 || s->frequency2 > 0) { return CRD_OK; }
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "frequency2"),
                              "frequency and frequency2 are both 0, expected a sweep such as from "
                              "0.1 Hz to 10 Hz");
    case CRD_SIGNAL_PRBS:
        if (s->order >= 3 && s->order <= 31) { return CRD_OK; }
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "order"),
                              "order: %d, expected a register of 3 to 31 bits", s->order);
    case CRD_SIGNAL_MULTISINE:
        if (s->frequency2 > 0) { return CRD_OK; }
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "frequency2"),
                              "frequency2: %g Hz, expected more than 0", s->frequency2);
    case CRD_SIGNAL_TABLE:
        return check_table(r, n, d);
    default:
        return CRD_OK;
    }
}

static crd_status read_signal(crdi_reader* r, const crdi_node* n, const char* name,
                              crd_signal_spec* out)
{
    signal_draft d = {.spec = crd_signal_spec_defaults()};
    d.spec.name = name;
    d.spec.place = (crd_place){r->file, n->line};
    uint64_t given = 0;
    crd_status st = CRD_OK;
    CRD_TRY(crdi_read_mapping(r, n, &signal_table, &d, &given));
    CRD_TRY(check_shape_keys(r, n, d.spec.shape, given));
    CRD_TRY(check_signal(r, n, &d, given));
    *out = d.spec;
fail:
    return st;
}

// ---- units -------------------------------------------------------------------------------------

// [A-Za-z_][A-Za-z0-9_-]*, so that unit.variable, patterns and schemes are unambiguous
static crd_status check_name(crdi_reader* r, const crdi_node* n, const char* what)
{
    enum { LONGEST = 100 };
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char others[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789-";
    const size_t length = strlen(n->key);
    if (length == 0 || !strchr(letters, n->key[0]) || strspn(n->key, others) != length) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "'%s' is no name for %s, expected a letter or _ and then letters, "
                              "digits, _ or -",
                              crdi_clip(n->key).text, what);
    }
    if (length > LONGEST) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "the name '%s' has %zu characters, expected at most %d",
                              crdi_clip(n->key).text, length, LONGEST);
    }
    return CRD_OK;
}

// Units of an SSP bear the names that it gives them: dots, blanks, anything that can be read.
static crd_status check_foreign_name(crdi_reader* r, const crdi_node* n)
{
    enum { LONGEST = 255 };
    bool fine = n->key[0] != 0 && strlen(n->key) <= LONGEST;
    for (const char* c = n->key; *c; c++) {
        fine = fine && (unsigned char)*c >= 0x20 && *c != 0x7f;
    }
    if (fine) { return CRD_OK; }
    return crdi_read_fail(
        r, CRD_E_FORMAT, n->line,
        "'%s' is no name for a unit, expected 1 to %d characters that can be seen",
        crdi_clip(n->key).text, LONGEST);
}

static crd_status read_signals(crdi_reader* r, const unit_draft* u, crd_unit_spec* out)
{
    crd_status st = CRD_OK;
    size_t mark = crdi_path_enter(r, u->signal ? "signal" : "signals");
    if (!u->signal) {
        CRD_TRY(crdi_expect_kind(r, u->signals, CRDI_MAPPING,
                                 "a mapping of output names, each with a signal"));
        if (u->signals->count == 0) {
            return crdi_read_fail(r, CRD_E_FORMAT, u->signals->line,
                                  "no signal at all, expected at least one");
        }
    }
    const int count = u->signal ? 1 : u->signals->count;
    crd_signal_spec* signals = crdi_arena_new(r->arena, (size_t)count, sizeof *signals);
    if (!signals) { return CRD_E_MEMORY; }
    if (u->signal) {
        CRD_TRY(read_signal(r, u->signal, "y", &signals[0]));
    } else {
        int i = 0;
        for (const crdi_node* n = u->signals->first; n; n = n->next, i++) {
            CRD_TRY(check_name(r, n, "an output"));
            const char* name = crdi_arena_text(r->arena, n->key, strlen(n->key));
            if (!name) { return CRD_E_MEMORY; }
            const size_t inner = crdi_path_enter(r, n->key);
            CRD_TRY(read_signal(r, n, name, &signals[i]));
            crdi_path_leave(r, inner);
        }
    }
    crdi_path_leave(r, mark);
    out->signals = signals;
    out->signal_count = count;
fail:
    return st;
}

static bool needs_quotes(const crdi_node* n)
{
    return n->text[0] == 0 || strpbrk(n->text, " \t\r\n\"\\");
}

// The elements of a list, blank between, into `out` unless NULL. The length without final zero.
static size_t list_text(const crdi_node* n, char* out)
{
    size_t at = 0;
    for (const crdi_node* item = n->first; item; item = item->next) {
        if (item != n->first) {
            if (out) { out[at] = ' '; }
            at++;
        }
        if (item->kind == CRDI_LIST) {
            at += list_text(item, out ? out + at : NULL);
            continue;
        }
        const bool quotes = needs_quotes(item);
        if (quotes && out) { out[at] = '"'; }
        at += quotes;
        for (const char* c = item->text; *c; c++) {
            if (*c == '"' || *c == '\\') {
                if (out) { out[at] = '\\'; }
                at++;
            }
            if (out) { out[at] = *c; }
            at++;
        }
        if (quotes && out) { out[at] = '"'; }
        at += quotes;
    }
    return at;
}

static crd_status check_list(crdi_reader* r, const crdi_node* n)
{
    if (n->count == 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "an empty list, expected elements");
    }
    for (const crdi_node* item = n->first; item; item = item->next) {
        crd_status st = CRD_OK;
        if (item->kind == CRDI_LIST) {
            st = check_list(r, item);
        } else {
            st = crdi_expect_kind(r, item, CRDI_SCALAR, "a value in the list");
        }
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status read_setting(crdi_reader* r, const crdi_node* n, crd_setting* out)
{
    if (n->key[0] == 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "a parameter without a name");
    }
    crd_status st = CRD_OK;
    const size_t mark = crdi_path_enter(r, n->key);
    char* text = NULL;
    if (n->kind == CRDI_LIST) {
        CRD_TRY(check_list(r, n));
        text = crdi_arena_new(r->arena, list_text(n, NULL) + 1, 1);
        if (text) { (void)list_text(n, text); }
    } else {
        CRD_TRY(crdi_expect_kind(r, n, CRDI_SCALAR, "a value or a list of values"));
        text = crdi_arena_text(r->arena, n->text, strlen(n->text));
    }
    const char* variable = text ? crdi_arena_text(r->arena, n->key, strlen(n->key)) : NULL;
    if (!variable) { return CRD_E_MEMORY; }
    *out = (crd_setting){.variable = variable, .text = text, .place = {r->file, n->line}};
    crdi_path_leave(r, mark);
fail:
    return st;
}

// Those of a unit that was there already stay in front: the later ones win.
static crd_status read_parameters(crdi_reader* r, const crdi_node* n, void* unit)
{
    crd_status st = CRD_OK;
    crd_unit_spec* out = unit;
    CRD_TRY(crdi_expect_kind(r, n, CRDI_MAPPING, "a mapping of variables and their values"));
    const int before = out->parameter_count;
    crd_setting* settings =
        crdi_arena_new(r->arena, (size_t)before + (size_t)n->count, sizeof *settings);
    if (!settings) { return CRD_E_MEMORY; }
    if (before) { memcpy(settings, out->parameters, (size_t)before * sizeof *settings); }
    int i = before;
    for (const crdi_node* m = n->first; m; m = m->next) {
        CRD_TRY(read_setting(r, m, &settings[i++]));
    }
    out->parameters = settings;
    out->parameter_count = i;
fail:
    return st;
}

static crd_status read_solver(crdi_reader* r, const crdi_node* n, crd_unit_spec* out)
{
    const bool circuit = out->source == CRD_UNIT_CIRCUIT;
    const size_t mark = crdi_path_enter(r, "solver");
    const crd_status st = crdi_read_mapping(r, n, circuit ? &circuit_table : &solver_table,
                                            circuit ? (void*)&out->netlist : &out->solver, NULL);
    crdi_path_leave(r, mark);
    return st;
}

static crd_status read_bench(crdi_reader* r, const crdi_node* n, void* out)
{
    crd_bench_spec* bench = out;
    bench->used = true;
    return crdi_read_mapping(r, n, &bench_table, bench, NULL);
}

static crd_status read_column(crdi_reader* r, const crdi_node* n, crd_column_spec* out)
{
    crd_status st = CRD_OK;
    uint64_t given = 0;
    if (n->key[0] == 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "a column without a name");
    }
    const size_t mark = crdi_path_enter(r, n->key);
    *out = (crd_column_spec){.unit = ""};
    CRD_TRY(crdi_read_mapping(r, n, &column_table, out, &given));
    out->has_interpolation = (given & BIT(COLUMN_INTERPOLATION)) != 0;
    crd_dimension dim;
    if (!crd_dimension_parse(out->unit, &dim)) {
        return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, "unit"),
                              "unit: '%s' is not known, expected a unit such as km/h or degC",
                              crdi_clip(out->unit).text);
    }
    out->name = crdi_arena_text(r->arena, n->key, strlen(n->key));
    if (!out->name) { return CRD_E_MEMORY; }
    crdi_path_leave(r, mark);
fail:
    return st;
}

// The first that fits counts, so new ones come in front of those that are there.
static crd_status read_columns(crdi_reader* r, const crdi_node* n, void* unit)
{
    crd_status st = CRD_OK;
    crd_unit_spec* out = unit;
    CRD_TRY(crdi_expect_kind(r, n, CRDI_MAPPING,
                             "a mapping of column names, each with interpolation or unit"));
    const int before = out->column_count;
    crd_column_spec* columns =
        crdi_arena_new(r->arena, (size_t)before + (size_t)n->count, sizeof *columns);
    if (!columns) { return CRD_E_MEMORY; }
    int i = 0;
    for (const crdi_node* m = n->first; m; m = m->next) {
        CRD_TRY(read_column(r, m, &columns[i++]));
    }
    if (before) { memcpy(columns + i, out->columns, (size_t)before * sizeof *columns); }
    out->columns = columns;
    out->column_count = i + before;
fail:
    return st;
}

static crd_unit_source source_of(const unit_draft* u)
{
    return u->fmu       ? CRD_UNIT_FMU
           : u->replay  ? CRD_UNIT_REPLAY
           : u->dcp     ? CRD_UNIT_DCP
           : u->circuit ? CRD_UNIT_CIRCUIT
           : u->twin    ? CRD_UNIT_TWIN
                        : CRD_UNIT_SIGNAL;
}

// What a unit is, out of the keys that say it.
static crd_status check_source(crdi_reader* r, const crdi_node* n, uint64_t given)
{
    const uint64_t is = given & UNIT_SOURCES;
    if (is == 0 && r->base_units > 0) {
        return crdi_read_fail(
            r, CRD_E_NOT_FOUND, n->line,
            "there is no such unit%s A new one needs one of the keys " UNIT_SOURCE_NAMES,
            r->hint.text[0] ? r->hint.text : ".");
    }
    if (is == 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "nothing says what the unit is, expected one of the "
                              "keys " UNIT_SOURCE_NAMES);
    }
    if (is & (is - 1)) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "more than one of the keys " UNIT_SOURCE_NAMES ", expected "
                              "one of them");
    }
    return CRD_OK;
}

// A unit that is there already stays what it is; generators and recordings may be exchanged.
static crd_status check_same_source(crdi_reader* r, const crdi_node* n, uint64_t given,
                                    const crd_unit_spec* old)
{
    const uint64_t is = given & UNIT_SOURCES;
    if (is & (is - 1)) { return check_source(r, n, given); }
    const bool same = is == 0 ||
                      (old->source == CRD_UNIT_SIGNAL && (is & (BIT(U_SIGNAL) | BIT(U_SIGNALS)))) ||
                      (old->source == CRD_UNIT_REPLAY && is == BIT(U_REPLAY)) ||
                      (old->source == CRD_UNIT_DCP && is == BIT(U_DCP));
    if (same) { return CRD_OK; }
    for (int i = 0; i < unit_table.count; i++) {
        if (is & BIT(i)) {
            const crdi_where where = crdi_place_text(old->place);
            const int length = (int)strlen(where.text);
            return crdi_read_fail(
                r, CRD_E_RANGE, crdi_line_of(n, unit_keys[i].name),
                "'%s': the unit is there already%s%.*s, expected keys that change "
                "how it runs, not what it is",
                unit_keys[i].name, length > 2 ? ", in " : "", length > 2 ? length - 2 : 0,
                where.text);
        }
    }
    return CRD_OK;
}

// Keys that mean something for some sources only.
static crd_status check_unit_keys(crdi_reader* r, const crdi_node* n, uint64_t given,
                                  crd_unit_source source)
{
    const uint64_t fmu_only = BIT(U_INTERFACE) | BIT(U_LOGGING) | BIT(U_PINNED) | BIT(U_REFRESH);
    const bool model = source == CRD_UNIT_FMU || source == CRD_UNIT_CIRCUIT;
    const uint64_t dcp_only = BIT(U_DESCRIPTION) | BIT(U_SESSION) | BIT(U_BENCH);
    const uint64_t replay_only =
        BIT(U_INTERPOLATION) | BIT(U_COLUMNS) | BIT(U_TIME_OFFSET) | BIT(U_REPEAT);
    uint64_t wrong = 0;
    if (source != CRD_UNIT_FMU) { wrong |= given & fmu_only; }
    if (!model) { wrong |= given & BIT(U_SOLVER); }
    if (!model && source != CRD_UNIT_DCP && source != CRD_UNIT_TWIN) {
        wrong |= given & BIT(U_PARAMETERS);
    }
    if (source != CRD_UNIT_DCP) { wrong |= given & dcp_only; }
    if (source != CRD_UNIT_REPLAY) { wrong |= given & replay_only; }
    for (int i = 0; i < unit_table.count; i++) {
        if (wrong & BIT(i)) {
            return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, unit_keys[i].name),
                                  "'%s' is for units with the key '%s' only", unit_keys[i].name,
                                  BIT(i) & replay_only ? "replay"
                                  : BIT(i) & dcp_only  ? "dcp"
                                  : i == U_PARAMETERS  ? "fmu', 'dcp', 'circuit' or 'twin"
                                  : i == U_SOLVER      ? "fmu' or 'circuit"
                                                       : "fmu");
        }
    }
    return CRD_OK;
}

static crd_status read_names(crdi_reader* r, const crdi_node* n, void* standby)
{
    crd_status st = CRD_OK;
    crd_standby_spec* out = standby;
    CRD_TRY(crdi_expect_kind(r, n, CRDI_MAPPING,
                             "a mapping of variables of the unit, each with that of the stand-in"));
    crd_name_pair* pairs = crdi_arena_new(r->arena, (size_t)n->count, sizeof *pairs);
    if (!pairs) { return CRD_E_MEMORY; }
    int i = 0;
    for (const crdi_node* m = n->first; m; m = m->next, i++) {
        const size_t inner = crdi_path_enter(r, m->key);
        CRD_TRY(crdi_read_text(r, m, &pairs[i].model));
        pairs[i].name = crdi_arena_text(r->arena, m->key, strlen(m->key));
        if (!pairs[i].name) { return CRD_E_MEMORY; }
        crdi_path_leave(r, inner);
    }
    out->names = pairs;
    out->name_count = i;
fail:
    return st;
}

static crd_status read_unit_parts(crdi_reader* r, unit_draft* u);
static crd_status check_unit_keys(crdi_reader* r, const crdi_node* n, uint64_t given,
                                  crd_unit_source source);

// A unit inside of a unit, which has no stand-in itself. It takes the place of one that was there.
static crd_status read_standby(crdi_reader* r, const crdi_node* n, crd_unit_spec* out)
{
    crd_status st = CRD_OK;
    standby_draft d = {.unit.spec = crd_unit_spec_defaults()};
    uint64_t given = 0;
    d.spec = d.unit.spec.standby;
    const size_t mark = crdi_path_enter(r, "standby");
    CRD_TRY(crdi_read_mapping(r, n, &standby_table, &d, &given));
    const uint64_t is = given & UNIT_SOURCES & (BIT(U_MODEL_KEYS) - 1);
    if (is == 0 || (is & (is - 1))) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "%s says what the stand-in is, expected one of the keys fmu, signal, "
                              "signals, replay, circuit, twin",
                              is ? "more than one key" : "nothing");
    }
    d.unit.spec.source = source_of(&d.unit);
    d.unit.spec.place = (crd_place){r->file, n->line};
    CRD_TRY(check_unit_keys(r, n, given & (BIT(U_MODEL_KEYS) - 1), d.unit.spec.source));
    CRD_TRY(read_unit_parts(r, &d.unit));
    crd_unit_spec* model = crdi_arena_new(r->arena, 1, sizeof *model);
    if (!model) { return CRD_E_MEMORY; }
    *model = d.unit.spec;
    d.spec.model = model;
    out->standby = d.spec;
    crdi_path_leave(r, mark);
fail:
    return st;
}

// What hangs below the keys, into the unit.
static crd_status read_unit_parts(crdi_reader* r, unit_draft* u)
{
    crd_status st = CRD_OK;
    if (u->fmu) { u->spec.path = u->fmu; }
    if (u->replay) { u->spec.path = u->replay; }
    if (u->circuit) { u->spec.path = u->circuit; }
    if (u->twin) { u->spec.path = u->twin; }
    if (u->dcp) { u->spec.address = u->dcp; }
    if (u->description) { u->spec.path = u->description; }
    if (u->signal || u->signals) { CRD_TRY(read_signals(r, u, &u->spec)); }
    if (u->solver) { CRD_TRY(read_solver(r, u->solver, &u->spec)); }
    if (u->standby) { CRD_TRY(read_standby(r, u->standby, &u->spec)); }
fail:
    return st;
}

static crd_status read_new_unit(crdi_reader* r, const crdi_node* n, crd_system* s)
{
    crd_status st = CRD_OK;
    unit_draft u = {.spec = crd_unit_spec_defaults()};
    uint64_t given = 0;
    CRD_TRY(r->foreign_names ? check_foreign_name(r, n) : check_name(r, n, "a unit"));
    const size_t mark = crdi_path_enter(r, n->key);
    CRD_TRY(crdi_read_mapping(r, n, &unit_table, &u, &given));
    if (r->base_units > 0) { r->hint = crdi_unit_hint(s, n->key); }
    CRD_TRY(check_source(r, n, given));
    u.spec.source = source_of(&u);
    // All slaves share one session; those with a budget take turns in it.
    if (u.dcp && isnan(u.spec.budget)) { u.spec.pinned = true; }
    CRD_TRY(check_unit_keys(r, n, given, u.spec.source));
    if (u.dcp && !u.description) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "the key 'description' is missing: the .dcpx of the DCP slave");
    }
    u.spec.place = (crd_place){r->file, n->line};
    CRD_TRY(read_unit_parts(r, &u));
    u.spec.name = crdi_arena_text(r->arena, n->key, strlen(n->key));
    if (!u.spec.name) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_add_unit(s, &u.spec));
    crdi_path_leave(r, mark);
fail:
    return st;
}

static crd_status read_unit(crdi_reader* r, const crdi_node* n, crd_system* s)
{
    const int index = r->base_units > 0 ? crd_system_find(s, n->key) : -1;
    if (index < 0 || index >= r->base_units) { return read_new_unit(r, n, s); }
    crd_status st = CRD_OK;
    crd_unit_spec* old = &s->units[index];
    unit_draft u = {.spec = *old};
    uint64_t given = 0;
    const size_t mark = crdi_path_enter(r, n->key);
    CRD_TRY(crdi_read_mapping(r, n, &unit_table, &u, &given));
    CRD_TRY(check_same_source(r, n, given, old));
    CRD_TRY(check_unit_keys(r, n, given, old->source));
    CRD_TRY(read_unit_parts(r, &u));
    *old = u.spec;
    crdi_path_leave(r, mark);
fail:
    return st;
}

static crd_status read_units(crdi_reader* r, const crdi_node* n, crd_system* s)
{
    crd_status st = CRD_OK;
    const size_t mark = crdi_path_enter(r, "units");
    CRD_TRY(crdi_expect_kind(r, n, CRDI_MAPPING, "a mapping of unit names, each with its keys"));
    if (n->count == 0 && r->base_units == 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "no unit at all, expected at least one");
    }
    for (const crdi_node* m = n->first; m; m = m->next) {
        CRD_TRY(read_unit(r, m, s));
    }
    crdi_path_leave(r, mark);
fail:
    return st;
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
static crd_status read_group(crdi_reader* r, const crdi_node* n, const crd_system* s, bool* seen,
                             crd_group* out)
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
        CRD_TRY(read_group(r, m, s, seen, &members[i]));
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
    st = read_group(r, n, s, seen, &group);
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
    if (d->units) { CRD_TRY(read_units(r, d->units, s)); }
    if (d->run) { CRD_TRY(read_run(r, d->run, s)); }
    if (s->run.scheme == CRD_SCHEME_GROUPS && s->run.group.members == groups &&
        s->unit_count > r->base_units) {
        CRD_TRY(check_groups(r, root, s));
    }
    if (d->connections) { CRD_TRY(crdi_read_connections(r, d->connections, s)); }
    if (d->bonds) { CRD_TRY(crdi_read_bonds(r, d->bonds, s)); }
    if (d->results) { CRD_TRY(read_results(r, d->results, s)); }
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
    CRD_TRY(crdi_read_mapping(r, root, &file_table, &d, NULL));
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
