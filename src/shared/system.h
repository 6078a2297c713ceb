/// What modules share of system: YAML as it is written, kinds of units. Not for users.
#pragma once
#include "cardan/system.h"
#include "shared/base.h"

/// As a scalar of YAML, in quotes where it would be something else than this text.
void crdi_yaml_text(crd_text* t, const char* text);

/// One item of `connections`: an arrow, in quotes or braces where it has to be.
void crdi_yaml_connection(crd_text* t, const char* from, const char* to);

/// Names of crd_isolation, NULL behind the last.
extern const char* const crdi_isolations[];
/// What CARDAN_ISOLATE in the environment says, for whoever says nothing; if it says nothing, too,
/// `otherwise`.
crd_isolation crdi_isolation_default(crd_isolation otherwise);

/// A mapping in flow style, "{ a: 1, b: two }", member by member.
typedef struct crdi_flow {
    crd_text* t;
    int count; ///< members so far
} crdi_flow;

void crdi_flow_key(crdi_flow* f, const char* key); ///< its value comes behind it
void crdi_flow_text(crdi_flow* f, const char* key, const char* text);
void crdi_flow_number(crdi_flow* f, const char* key, double x);
void crdi_flow_integer(crdi_flow* f, const char* key, int64_t x);
void crdi_flow_bool(crdi_flow* f, const char* key, bool truth);
void crdi_flow_end(crdi_flow* f);

/// Parts of a description by the tables of their readers: what is not as it is without being said.
void crdi_flow_solver(crdi_flow* f, const crd_solver_spec* s);
void crdi_flow_column(crdi_flow* f, const crd_column_spec* c);
void crdi_flow_control(crdi_flow* f, const crd_control_spec* c);
void crdi_flow_iterate(crdi_flow* f, const crd_iterate_spec* i);
void crdi_flow_pace(crdi_flow* f, const crd_pace_spec* p);
void crdi_flow_guard(crdi_flow* f, const crd_guard_spec* g);
void crdi_flow_channel(crdi_flow* f, const crd_channel_spec* c);
/// Both ends as unit.variable.
/// Bonds of one name may be these: components between the same units, or a node of three.
bool crdi_bonds_join(const crd_bond_spec* a, const crd_bond_spec* b);
void crdi_flow_bond(crdi_flow* f, const crd_bond_spec* b, const char* action, const char* flow);

/// What others have to know about a kind of unit. The rows stand in system/read_units.c.
typedef struct crdi_unit_kind {
    const char* key;      ///< of the description, and of `cardan export`; NULL: only from C
    const char* what;     ///< "a circuit", for messages
    const char* exported; ///< what `cardan export` does with it, for those that cannot be packed
    bool is_file;         ///< `path` is what it is made of
    bool is_model;        ///< it has inputs, and computes in this process
    bool is_remote;       ///< reached over a network
    bool by_hand;         ///< does what somebody does, who does it once
} crdi_unit_kind;
const crdi_unit_kind* crdi_unit_kind_of(crd_unit_source source);

// ---- layouts of datagrams ----------------------------------------------------------------------

struct crdi_wire_catalog;
/// Messages out of a file in YAML (docs/reference/frames.md), prepared. All of it lives in `arena`,
/// and `path` has to live as long.
crd_status crdi_layout_load(crd_context* ctx, const char* path, crd_arena* arena,
                            struct crdi_wire_catalog* out);
crd_status crdi_layout_parse(crd_context* ctx, const char* text, size_t length, const char* file,
                             crd_arena* arena, struct crdi_wire_catalog* out);

/// Of the messages of a DBC file those that a unit sends and receives, with cycles, counters and
/// checksums as its `send` and `receive` say them.
crd_status crdi_layout_choose(crd_context* ctx, const crd_unit_spec* spec, crd_arena* arena,
                              struct crdi_wire_catalog* c);

// ---- bench files -------------------------------------------------------------------------------

enum { CRDI_BENCH_FILE_QUANTITIES = 16, CRDI_BENCH_FILE_ITEMS = 31 };

/// A quantity of a bench file: texts as they stand there, NULL or NAN: not given.
typedef struct crdi_bench_file_quantity {
    const char *name, *set, *measured, *limits, *trip;
    int role; ///< crd_dcp_role
    double conditioning, safe, cool_down;
    int line, limits_line, trip_line, set_line, measured_line;
} crdi_bench_file_quantity;

/// A file that makes a bench of a unit: `cardan dcp slave X --bench FILE`. docs/how-to/benches.md.
typedef struct crdi_bench_file {
    const char* file; ///< as it was given
    crdi_bench_file_quantity quantities[CRDI_BENCH_FILE_QUANTITIES];
    int quantity_count;
    const char* items[CRDI_BENCH_FILE_ITEMS];     ///< of the checklist
    const char* variables[CRDI_BENCH_FILE_ITEMS]; ///< that say whether they are met
    int item_lines[CRDI_BENCH_FILE_ITEMS];
    int item_count;
    const char *avoid, *initial;
    const char* calibration; ///< file with gain and offset of its sensors, NULL: none
    int avoid_line, initial_line;
    double tolerance, induced, watchdog, heartbeat, period; ///< NAN: not given
    double safe_speed, turn_speed, stop_rate, standstill, patience, cool_patience;
} crdi_bench_file;

/// Texts live in `arena`. What can be told without the unit is told here, with file and line:
/// roles twice, a stop that it cannot do, a rate without a range.
crd_status crdi_bench_file_load(crd_context* ctx, const char* path, crd_arena* arena,
                                crdi_bench_file* out);
