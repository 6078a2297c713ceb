// Units of a description: their keys, kinds and signals.
#include "shared/base_findings.h"
#include "shared/system.h"
#include "system/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- the tables: adding a key is adding a row --------------------------------------------------

static const char* const interfaces[] = {"auto", "co-simulation", "model-exchange", NULL};
static const char* const modes[] = {"auto", "nrt", "srt", "hrt", NULL};
static const char* const on_silences[] = {"rest", "stop", NULL};
const char* const crdi_solvers[] = {"bdf", "adams", "euler", "rk4", NULL};
const char* const crdi_circuit_methods[] = {"bdf1",   "bdf2",   "bdf3",   "tr", "tr-carried",
                                            "trbdf2", "gauss2", "gauss4", NULL};
const char* const crdi_circuit_forms[] = {"auto", "dae", "nodal", NULL};
_Static_assert(COUNT(interfaces) == CRD_INTERFACE_MODEL_EXCHANGE + 2, "a name for each interface");
_Static_assert(COUNT(modes) == CRD_DCP_MODE_HRT + 2, "a name for each mode");
_Static_assert(COUNT(crdi_solvers) == CRD_SOLVER_RK4 + 2, "a name for each method");
_Static_assert(COUNT(crdi_circuit_methods) == CRD_NETLIST_METHOD_COUNT + 1,
               "a name for each method");
_Static_assert(COUNT(crdi_circuit_forms) == CRD_NETLIST_NODAL + 2, "a name for each form");

// Readers of keys that have more than one form, or keys of their own.
static crd_status read_parameters(crdi_reader* r, const crdi_node* n, void* unit);
static crd_status read_columns(crdi_reader* r, const crdi_node* n, void* unit);
static crd_status read_bench(crdi_reader* r, const crdi_node* n, void* out);
static crd_status read_units_read_names(crdi_reader* r, const crdi_node* n, void* standby);

typedef struct unit_draft {
    crd_unit_spec spec;
    const crdi_node *signal, *signals, *solver, *standby, *levers;
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
    U_FRAMES,
    U_LAYOUT,
    U_LINK,
    U_CAN,
    U_DBC,
    U_SEND,
    U_RECEIVE,
    U_DRIVER,
    U_SILENCE,
    U_ON_SILENCE,
    U_DESCRIPTION,
    U_SESSION,
    U_BENCH,
    U_STANDBY,
    U_STEP,
    U_PINNED,
    U_REAL,
    U_REFRESH,
    U_ALLOW_NAN,
    U_RETRY,
    U_BUDGET,
    U_ISOLATE,
    U_LIMIT,
    U_NETWORK,
    U_RESTART,
};

#define MODEL_KEYS                                                                                 \
    [U_FMU] = {KEY("fmu", PATH, unit_draft, spec.path)},                                           \
    [U_SIGNAL] = {KEY("signal", NODE, unit_draft, signal)},                                        \
    [U_SIGNALS] = {KEY("signals", NODE, unit_draft, signals)},                                     \
    [U_REPLAY] = {KEY("replay", PATH, unit_draft, spec.path)},                                     \
    [U_CIRCUIT] = {KEY("circuit", PATH, unit_draft, spec.path)},                                   \
    [U_TWIN] = {KEY("twin", PATH, unit_draft, spec.path)},                                         \
    [U_PARAMETERS] = {KEY("parameters", OWN, unit_draft, spec), .read = read_parameters},          \
    [U_INTERFACE] = {KEY("interface", CHOICE, unit_draft, spec.interface), .choices = interfaces}, \
    [U_SOLVER] = {KEY("solver", NODE, unit_draft, solver)},                                        \
    [U_INTERPOLATION] = {KEY("interpolation", CHOICE, unit_draft, spec.interpolation),             \
                         .choices = crdi_interpolations},                                          \
    [U_COLUMNS] = {KEY("columns", OWN, unit_draft, spec), .read = read_columns},                   \
    [U_TIME_OFFSET] = {KEY("time_offset", TIME, unit_draft, spec.time_offset)},                    \
    [U_REPEAT] = {KEY("repeat", BOOL, unit_draft, spec.repeat)},                                   \
    [U_LOGGING] = {KEY("logging", BOOL, unit_draft, spec.logging)}

static const crdi_key unit_keys[] = {
    MODEL_KEYS,
    [U_DCP] = {KEY("dcp", TEXT, unit_draft, spec.address)},
    [U_FRAMES] = {KEY("frames", TEXT, unit_draft, spec.address)},
    [U_LAYOUT] = {KEY("layout", PATH, unit_draft, spec.path)},
    [U_LINK] = {KEY("link", TABLE, unit_draft, spec.link), .table = &crdi_link_table},
    [U_CAN] = {KEY("can", TEXT, unit_draft, spec.address)},
    [U_DBC] = {KEY("dbc", PATH, unit_draft, spec.path)},
    [U_SEND] = {KEY("send", OWN, unit_draft, spec.send), .read = crdi_read_messages},
    [U_RECEIVE] = {KEY("receive", OWN, unit_draft, spec.receive), .read = crdi_read_messages},
    [U_DRIVER] = {KEY("driver", NODE, unit_draft, levers)},
    [U_SILENCE] = {KEY("silence", TIME, unit_draft, spec.driver.silence), .range = CRDI_POSITIVE},
    [U_ON_SILENCE] = {KEY("on_silence", EITHER, unit_draft, spec.driver.stop),
                      .choices = on_silences},
    [U_DESCRIPTION] = {KEY("description", PATH, unit_draft, spec.path)},
    [U_SESSION] = {KEY("session", TABLE, unit_draft, spec.session), .table = &crdi_session_table},
    [U_BENCH] = {KEY("bench", OWN, unit_draft, spec.bench), .read = read_bench},
    [U_STANDBY] = {KEY("standby", NODE, unit_draft, standby)},
    [U_STEP] = {KEY("step", TIME, unit_draft, spec.step), .range = CRDI_POSITIVE},
    [U_PINNED] = {KEY("pinned", BOOL, unit_draft, spec.pinned)},
    [U_REAL] = {KEY("real", BOOL, unit_draft, spec.real)},
    [U_ALLOW_NAN] = {KEY("allow_nan", BOOL, unit_draft, spec.allow_nan)},
    [U_RETRY] = {KEY("retry", BOOL, unit_draft, spec.retry)},
    [U_REFRESH] = {KEY("refresh", OWN, unit_draft, spec.refresh), .read = crdi_read_refresh},
    [U_BUDGET] = {KEY("budget", TIME, unit_draft, spec.budget), .range = CRDI_POSITIVE},
    [U_ISOLATE] = {KEY("isolate", TEXT, unit_draft, spec.isolate)},
    [U_LIMIT] = {KEY("limit", TIME, unit_draft, spec.limit), .range = CRDI_POSITIVE},
    [U_RESTART] = {KEY("restart", INT, unit_draft, spec.restart), .min = 0, .max = 1000000},
    [U_NETWORK] = {KEY("network", BOOL, unit_draft, spec.network)},
};

typedef struct standby_draft {
    unit_draft unit; // first: it has the keys of a unit
    crd_standby_spec spec;
} standby_draft;

static const crdi_key standby_keys[] = {
    MODEL_KEYS,
    [U_MODEL_KEYS] = {KEY("after", TIME, standby_draft, spec.after), .range = CRDI_POSITIVE},
    {KEY("fade", TIME, standby_draft, spec.fade), .range = CRDI_POSITIVE},
    {KEY("rejoin", BOOL, standby_draft, spec.rejoin)},
    {KEY("names", OWN, standby_draft, spec), .read = read_units_read_names},
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
    {KEY("alive", TIME, crd_session_spec, alive), .range = CRDI_POSITIVE},
    {KEY("local", TEXT, crd_session_spec, local)},
    {KEY("key", PATH, crd_session_spec, key)},
    {KEY("plain", BOOL, crd_session_spec, plain)},
    {KEY("capture", PATH, crd_session_spec, capture)},
    {KEY("matrix", PATH, crd_session_spec, matrix)},
};

static const crdi_key link_keys[] = {
    {KEY("local", TEXT, crd_link_spec, local)},
    {KEY("listen", BOOL, crd_link_spec, listen)},
    {KEY("contact", TIME, crd_link_spec, contact), .range = CRDI_NOT_NEGATIVE},
    {KEY("timeout", TIME, crd_link_spec, timeout), .range = CRDI_NOT_NEGATIVE},
    {KEY("plain", BOOL, crd_link_spec, plain)},
    {KEY("capture", PATH, crd_link_spec, capture)},
};

static const crdi_key bench_keys[] = {
    {KEY("limits", TEXT, crd_bench_spec, limits)},
    {KEY("case", TEXT, crd_bench_spec, plan)},
    {KEY("initial", TEXT, crd_bench_spec, initial)},
    {KEY("gap", INT, crd_bench_spec, gap), .min = 1, .max = 32767},
    {KEY("watchdog", TIME, crd_bench_spec, watchdog), .range = CRDI_POSITIVE},
};

static const crdi_key solver_keys[] = {
    {KEY("method", CHOICE, crd_solver_spec, method), .choices = crdi_solvers},
    {KEY("relative", NUMBER, crd_solver_spec, relative), .range = CRDI_POSITIVE},
    {KEY("absolute", NUMBER, crd_solver_spec, absolute), .range = CRDI_POSITIVE},
    {KEY("step", TIME, crd_solver_spec, step), .range = CRDI_POSITIVE},
};

static const crdi_key circuit_keys[] = {
    {KEY("method", CHOICE, crd_netlist_spec, method), .choices = crdi_circuit_methods},
    {KEY("form", CHOICE, crd_netlist_spec, form), .choices = crdi_circuit_forms},
    {KEY("step", TIME, crd_netlist_spec, step), .range = CRDI_POSITIVE},
    {KEY("iterations", INT, crd_netlist_spec, iterations), .min = 1, .max = 10000},
    {KEY("tolerance", NUMBER, crd_netlist_spec, tolerance), .range = CRDI_POSITIVE},
    {KEY("fixed_iterations", BOOL, crd_netlist_spec, fixed_iterations)},
};

enum { COLUMN_INTERPOLATION, COLUMN_UNIT };

static const crdi_key column_keys[] = {
    [COLUMN_INTERPOLATION] = {KEY("interpolation", CHOICE, crd_column_spec, interpolation),
                              .choices = crdi_interpolations},
    [COLUMN_UNIT] = {KEY("unit", TEXT, crd_column_spec, unit)},
};

#define PUBLIC_TABLE(name)                                                                         \
    const crdi_table crdi_##name##_table = {#name, name##_keys, COUNT(name##_keys)}
PUBLIC_TABLE(unit);
PUBLIC_TABLE(standby);
PUBLIC_TABLE(session);
PUBLIC_TABLE(link);
PUBLIC_TABLE(bench);
PUBLIC_TABLE(solver);
PUBLIC_TABLE(circuit);
PUBLIC_TABLE(column);

void crdi_flow_solver(crdi_flow* f, const crd_solver_spec* s)
{
    const crd_unit_spec defaults = crd_unit_spec_defaults();
    crdi_flow_table(f, &crdi_solver_table, s, &defaults.solver);
}

void crdi_flow_column(crdi_flow* f, const crd_column_spec* c)
{
    if (c->has_interpolation) {
        crdi_flow_text(f, "interpolation", crdi_interpolations[c->interpolation]);
    }
    if (c->unit && c->unit[0]) { crdi_flow_text(f, "unit", c->unit); }
}

// ---- kinds of units ----------------------------------------------------------------------------

typedef struct unit_kind {
    crdi_unit_kind known;     // what others ask about it
    uint64_t said_by;         // keys that say that a unit is one
    uint64_t takes;           // keys that mean something for it, but not for every kind
    const crdi_table* solver; // of its key `solver`
    size_t solver_at;         // in crd_unit_spec
    // A new one, all keys read; may be NULL.
    crd_status (*complete)(crdi_reader* r, const crdi_node* n, uint64_t given, crd_unit_spec* u);
} unit_kind;

// All slaves share one session; those with a budget take turns in it.
static crd_status complete_dcp(crdi_reader* r, const crdi_node* n, uint64_t given, crd_unit_spec* u)
{
    if (isnan(u->budget)) { u->pinned = true; }
    if (given & BIT(U_DESCRIPTION)) { return CRD_OK; }
    return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                          "the key 'description' is missing: the .dcpx of the DCP slave");
}

static crd_status complete_frames(crdi_reader* r, const crdi_node* n, uint64_t given,
                                  crd_unit_spec* u)
{
    (void)u;
    if (given & BIT(U_LAYOUT)) { return CRD_OK; }
    return crdi_read_fail(
        r, CRD_E_FORMAT, n->line,
        "the key 'layout' is missing: the file with the messages and their fields");
}

static crd_status complete_can(crdi_reader* r, const crdi_node* n, uint64_t given, crd_unit_spec* u)
{
    (void)u;
    if (given & BIT(U_DBC)) { return CRD_OK; }
    return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                          "the key 'dbc' is missing: the file with the messages of the bus");
}

static crd_status complete_driver(crdi_reader* r, const crdi_node* n, uint64_t given,
                                  crd_unit_spec* u)
{
    if (given & BIT(U_STANDBY)) {
        return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, "standby"),
                              "nobody stands in for a driver, expected no 'standby': 'rest' of its "
                              "levers says what they do without one");
    }
    (void)u;
    return CRD_OK;
}

// A kind of unit is one row here, with its key among the unit's keys above.
static const unit_kind kinds[] = {
    [CRD_UNIT_FMU] = {.known = {"fmu", "an FMU", .is_file = true, .is_model = true},
                      .said_by = BIT(U_FMU),
                      .takes = BIT(U_PARAMETERS) | BIT(U_INTERFACE) | BIT(U_SOLVER) |
                               BIT(U_LOGGING) | BIT(U_PINNED) | BIT(U_REFRESH) | BIT(U_ALLOW_NAN) |
                               BIT(U_RETRY),
                      .solver = &crdi_solver_table,
                      .solver_at = offsetof(crd_unit_spec, solver)},
    [CRD_UNIT_SIGNAL] = {.known = {.key = "signal", .what = "a signal generator"},
                         .said_by = BIT(U_SIGNAL) | BIT(U_SIGNALS)},
    [CRD_UNIT_REPLAY] = {.known = {"replay", "a recording", .is_file = true},
                         .said_by = BIT(U_REPLAY),
                         .takes = BIT(U_INTERPOLATION) | BIT(U_COLUMNS) | BIT(U_TIME_OFFSET) |
                                  BIT(U_REPEAT)},
    [CRD_UNIT_NATIVE] = {.known = {NULL, "a model inside a program", .is_model = true}},
    [CRD_UNIT_DCP] = {.known = {"dcp", "a DCP slave", "makes an FMU that stands for it",
                                .is_file = true, .is_remote = true},
                      .said_by = BIT(U_DCP),
                      .takes =
                          BIT(U_PARAMETERS) | BIT(U_DESCRIPTION) | BIT(U_SESSION) | BIT(U_BENCH),
                      .complete = complete_dcp},
    [CRD_UNIT_CIRCUIT] = {.known = {"circuit", "a circuit", "makes an FMU of it", .is_file = true,
                                    .is_model = true},
                          .said_by = BIT(U_CIRCUIT),
                          .takes = BIT(U_PARAMETERS) | BIT(U_SOLVER),
                          .solver = &crdi_circuit_table,
                          .solver_at = offsetof(crd_unit_spec, netlist)},
    [CRD_UNIT_TWIN] = {.known = {"twin", "a twin", "makes an FMU of it", .is_file = true,
                                 .is_model = true},
                       .said_by = BIT(U_TWIN),
                       .takes = BIT(U_PARAMETERS)},
    [CRD_UNIT_FRAMES] = {.known = {"frames", "a partner of datagrams", .is_file = true,
                                   .is_remote = true},
                         .said_by = BIT(U_FRAMES),
                         .takes = BIT(U_PARAMETERS) | BIT(U_LAYOUT) | BIT(U_LINK),
                         .complete = complete_frames},
    [CRD_UNIT_CAN] = {.known = {"can", "a CAN bus", .is_file = true, .is_remote = true},
                      .said_by = BIT(U_CAN),
                      .takes = BIT(U_PARAMETERS) | BIT(U_DBC) | BIT(U_SEND) | BIT(U_RECEIVE) |
                               BIT(U_LINK),
                      .complete = complete_can},
    [CRD_UNIT_DRIVER] = {.known = {.key = "driver", .what = "a driver", .by_hand = true},
                         .said_by = BIT(U_DRIVER),
                         .takes = BIT(U_SILENCE) | BIT(U_ON_SILENCE),
                         .complete = complete_driver},
};

const crdi_unit_kind* crdi_unit_kind_of(crd_unit_source source)
{
    return &kinds[source].known;
}

static uint64_t kind_keys(void)
{
    uint64_t all = 0;
    for (int i = 0; i < COUNT(kinds); i++) {
        all |= kinds[i].said_by;
    }
    return all;
}

typedef struct name_text {
    char text[200];
} name_text;

// Those of the keys that say what a unit is, separated by commas.
static name_text kind_names(uint64_t among)
{
    name_text t = {""};
    size_t at = 0;
    for (int i = 0; i < COUNT(kinds); i++) {
        for (int k = 0; k < crdi_unit_table.count; k++) {
            if (!(kinds[i].said_by & among & BIT(k))) { continue; }
            at += (size_t)snprintf(t.text + at, sizeof t.text - at, "%s%s", at ? ", " : "",
                                   unit_keys[k].name);
        }
    }
    return t;
}

static crd_unit_source read_units_source_of(uint64_t given)
{
    int source = 0;
    while (source + 1 < COUNT(kinds) && !(kinds[source].said_by & given)) {
        source++;
    }
    return (crd_unit_source)source;
}

// What a unit is, out of the keys that say it.
static crd_status check_source(crdi_reader* r, const crdi_node* n, uint64_t given)
{
    const uint64_t is = given & kind_keys();
    if (is && !(is & (is - 1))) { return CRD_OK; }
    const name_text names = kind_names(~UINT64_C(0));
    if (is == 0 && r->base_units > 0) {
        return crdi_read_fail(r, CRD_E_NOT_FOUND, n->line,
                              "there is no such unit%s A new one needs one of the keys %s",
                              r->hint.text[0] ? r->hint.text : ".", names.text);
    }
    if (is == 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "nothing says what the unit is, expected one of the keys %s",
                              names.text);
    }
    return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                          "more than one of the keys %s, expected one of them", names.text);
}

// A unit that is there already stays of its kind; which FMU, recording ... it is may change.
static crd_status check_same_source(crdi_reader* r, const crdi_node* n, uint64_t given,
                                    const crd_unit_spec* old)
{
    const uint64_t is = given & kind_keys();
    const unit_kind* kind = &kinds[old->source];
    if (is & (is - 1)) { return check_source(r, n, given); }
    if (is == 0 || (is & kind->said_by)) { return CRD_OK; }
    int k = 0;
    while (!(is & BIT(k))) {
        k++;
    }
    const crdi_where where = crdi_place_text(old->place);
    const int length = (int)strlen(where.text);
    return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, unit_keys[k].name),
                          "'%s': the unit is there already%s%.*s, expected keys that change "
                          "how it runs, not what it is",
                          unit_keys[k].name, length > 2 ? ", in " : "", length > 2 ? length - 2 : 0,
                          where.text);
}

// "fmu', 'dcp' or 'twin": the kinds that take a key.
static name_text kinds_with(int key)
{
    name_text t = {""};
    size_t at = 0;
    int left = 0;
    for (int i = 0; i < COUNT(kinds); i++) {
        left += (kinds[i].takes & BIT(key)) != 0;
    }
    for (int i = 0; i < COUNT(kinds); i++) {
        if (!(kinds[i].takes & BIT(key))) { continue; }
        const char* between = at == 0 ? "" : left == 1 ? "' or '" : "', '";
        at +=
            (size_t)snprintf(t.text + at, sizeof t.text - at, "%s%s", between, kinds[i].known.key);
        left--;
    }
    return t;
}

// Keys that mean something for some kinds only.
static crd_status check_unit_keys(crdi_reader* r, const crdi_node* n, uint64_t given,
                                  crd_unit_source source)
{
    uint64_t special = 0;
    for (int i = 0; i < COUNT(kinds); i++) {
        special |= kinds[i].takes;
    }
    const uint64_t wrong = given & special & ~kinds[source].takes;
    for (int i = 0; i < crdi_unit_table.count; i++) {
        if (wrong & BIT(i)) {
            return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, unit_keys[i].name),
                                  "'%s' is for units with the key '%s' only", unit_keys[i].name,
                                  kinds_with(i).text);
        }
    }
    return CRD_OK;
}

static crd_status read_solver(crdi_reader* r, const crdi_node* n, crd_unit_spec* out)
{
    const unit_kind* kind = &kinds[out->source];
    const size_t mark = crdi_path_enter(r, "solver");
    const crd_status st = crdi_read_mapping(r, n, kind->solver, (char*)out + kind->solver_at, NULL);
    crdi_path_leave(r, mark);
    return st;
}

// ---- units -------------------------------------------------------------------------------------

// [A-Za-z_][A-Za-z0-9_-]*, so that unit.variable, patterns and schemes are unambiguous
crd_status crdi_read_check_name(crdi_reader* r, const crdi_node* n, const char* what)
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
        CRD_TRY(crdi_read_signal(r, u->signal, "y", &signals[0]));
    } else {
        int i = 0;
        for (const crdi_node* n = u->signals->first; n; n = n->next, i++) {
            CRD_TRY(crdi_read_check_name(r, n, "an output"));
            const char* name = crdi_arena_text(r->arena, n->key, strlen(n->key));
            if (!name) { return CRD_E_MEMORY; }
            const size_t inner = crdi_path_enter(r, n->key);
            CRD_TRY(crdi_read_signal(r, n, name, &signals[i]));
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

static crd_status read_bench(crdi_reader* r, const crdi_node* n, void* out)
{
    crd_bench_spec* bench = out;
    bench->used = true;
    return crdi_read_mapping(r, n, &crdi_bench_table, bench, NULL);
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
    CRD_TRY(crdi_read_mapping(r, n, &crdi_column_table, out, &given));
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

static crd_status read_units_read_names(crdi_reader* r, const crdi_node* n, void* standby)
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

// A unit inside of a unit, which has no stand-in itself. It takes the place of one that was there.
static crd_status read_standby(crdi_reader* r, const crdi_node* n, crd_unit_spec* out)
{
    crd_status st = CRD_OK;
    standby_draft d = {.unit.spec = crd_unit_spec_defaults()};
    uint64_t given = 0;
    d.spec = d.unit.spec.standby;
    const size_t mark = crdi_path_enter(r, "standby");
    CRD_TRY(crdi_read_mapping(r, n, &crdi_standby_table, &d, &given));
    const uint64_t models = BIT(U_MODEL_KEYS) - 1, is = given & kind_keys() & models;
    if (is == 0 || (is & (is - 1))) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "%s says what the stand-in is, expected one of the keys %s",
                              is ? "more than one key" : "nothing", kind_names(models).text);
    }
    d.unit.spec.source = read_units_source_of(given & models);
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
    if (u->signal || u->signals) { CRD_TRY(read_signals(r, u, &u->spec)); }
    if (u->levers) { CRD_TRY(crdi_read_levers(r, u->levers, &u->spec.driver)); }
    CRD_TRY(crdi_read_silence(r, u->spec.place.line, u->spec.driver.silence));
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
    CRD_TRY(r->foreign_names ? check_foreign_name(r, n) : crdi_read_check_name(r, n, "a unit"));
    const size_t mark = crdi_path_enter(r, n->key);
    const crd_status keys = crdi_read_mapping(r, n, &crdi_unit_table, &u, &given);
    // Whoever notes what is wrong wants the variables of an FMU looked at, too.
    if (keys < 0 && (!(given & BIT(U_FMU)) || !u.spec.path)) { return keys; }
    CRD_TRY(crdi_go_on(r->ctx, keys));
    if (r->base_units > 0) { r->hint = crdi_unit_hint(s, n->key); }
    CRD_TRY(check_source(r, n, given));
    u.spec.source = read_units_source_of(given);
    CRD_TRY(check_unit_keys(r, n, given, u.spec.source));
    if (kinds[u.spec.source].complete) {
        CRD_TRY(kinds[u.spec.source].complete(r, n, given, &u.spec));
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

static crd_status read_units_read_unit(crdi_reader* r, const crdi_node* n, crd_system* s)
{
    const int index = r->base_units > 0 ? crd_system_find(s, n->key) : -1;
    if (index < 0 || index >= r->base_units) { return read_new_unit(r, n, s); }
    crd_status st = CRD_OK;
    crd_unit_spec* old = &s->units[index];
    unit_draft u = {.spec = *old};
    uint64_t given = 0;
    const size_t mark = crdi_path_enter(r, n->key);
    CRD_TRY(crdi_read_mapping(r, n, &crdi_unit_table, &u, &given));
    CRD_TRY(check_same_source(r, n, given, old));
    CRD_TRY(check_unit_keys(r, n, given, old->source));
    if (given & kind_keys()) { u.spec.shown = NULL; } // the name of what it was
    CRD_TRY(read_unit_parts(r, &u));
    *old = u.spec;
    crdi_path_leave(r, mark);
fail:
    return st;
}

// One that could not be read is still there for those who name it.
static crd_status add_unread_unit(crdi_reader* r, const crdi_node* n, crd_system* s)
{
    if (crd_system_find(s, n->key) >= 0) { return CRD_OK; }
    crd_unit_spec u = crd_unit_spec_defaults();
    u.name = crdi_arena_text(r->arena, n->key, strlen(n->key));
    u.path = crdi_unread_unit;
    u.place = (crd_place){r->file, n->line};
    return u.name ? crdi_add_unit(s, &u) : CRD_E_MEMORY;
}

crd_status crdi_read_units(crdi_reader* r, const crdi_node* n, crd_system* s)
{
    crd_status st = CRD_OK;
    const size_t mark = crdi_path_enter(r, "units");
    CRD_TRY(crdi_expect_kind(r, n, CRDI_MAPPING, "a mapping of unit names, each with its keys"));
    if (n->count == 0 && r->base_units == 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "no unit at all, expected at least one");
    }
    for (const crdi_node* m = n->first; m; m = m->next) {
        const size_t inner = r->path_length;
        const crd_status one = read_units_read_unit(r, m, s);
        CRD_TRY(crdi_go_on(r->ctx, one));
        crdi_path_leave(r, inner);
        if (one < 0) { CRD_TRY(add_unread_unit(r, m, s)); }
    }
    crdi_path_leave(r, mark);
fail:
    return st;
}
