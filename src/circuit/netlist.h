// Between the files that read netlists: first all cards are sorted into definitions
// (netlist_lines.c), because SPICE uses names before it defines them; then they are expanded, one
// copy of a definition after the other (netlist_scope.c, netlist_parts.c).
#pragma once
#include "cardan/circuit.h"
#include "circuit/expression.h"
#include "shared/circuit_part.h"

enum {
    CRDI_INCLUDES_MOST = 32, // of files in files
    CRDI_NESTING_MOST = 64   // of subcircuits in subcircuits
};

typedef struct crdi_card {
    const char *p, *end;
    int32_t file, line;
    int32_t next;    // of the same definition, -1
    int32_t section; // .thermal, -1
} crdi_card;

typedef struct crdi_param {
    const char* name;
    crdi_word written; // before its case was folded
    crdi_card value;   // where its expression stands
} crdi_param;

typedef struct crdi_named { // a .model card
    const char* name;
    crdi_card card; // behind the name
} crdi_named;

typedef struct crdi_scope { // the netlist, or a .subckt
    const char* name;
    int32_t parent;
    int32_t depth; // of definitions
    int32_t file, line;
    int32_t first, last; // cards
    bool active;         // is being expanded
    double expanded;     // parts and copies that it stands for, 0: not counted yet
    crdi_param* params;
    crdi_named* models;
    crdi_function* functions;
    size_t param_capacity, model_capacity, function_capacity;
    int32_t param_count, header_count, model_count, port_count; // header: of the .subckt line
    int32_t function_count;
    crd_map param_map, model_map, port_map, child_map, function_map;
} crdi_scope;

typedef struct crdi_env { // one copy of a definition
    int32_t scope;
    struct crdi_env* outer; // where it was defined
    double* values;         // of params
    uint8_t* states;        // 0 unknown, 1 being computed, 2 known
    int32_t* models;        // index in the netlist, -1
    int32_t* ports;         // nodes
} crdi_env;

typedef struct crdi_mark { // where something is mentioned
    int32_t file, line;
} crdi_mark;

typedef struct crdi_pending { // a part that was named, perhaps before it stood there
    const char* name;
    int32_t file, line;
    int32_t part; // found at the end
} crdi_pending;

typedef struct crdi_file {
    char* text;
    size_t length;
    char* path; // real, for the search of circles; NULL
} crdi_file;

typedef struct crdi_netlist { // what the caller gets, and what belongs to it
    crd_netlist n;
    crd_map node_map, part_map;
    crd_text names;
    const char** files;
    const char** nodes;
    crd_waveform* waves;
    const crd_expression** expressions;
    crd_diode_model* diodes;
    crd_switch_model* switches;
    crd_circuit_input* inputs;
    crd_circuit_output* outputs;
    size_t file_capacity, node_capacity, part_capacity, wave_capacity, expression_capacity;
    size_t diode_capacity, switch_capacity, input_capacity, output_capacity;
    int32_t file_count;
} crdi_netlist;

typedef struct crdi_parser {
    crd_context* ctx;
    crdi_netlist* out;
    crd_netlist* n; // &out->n
    crd_arena work;
    crdi_builder builder;
    crd_netlist_options opt;
    crdi_file* sources;
    crdi_card* cards;
    crdi_scope* scopes;
    crdi_card* sections;  // the words behind .thermal
    int32_t* controls;    // cards that concern the whole: .tran .temp .options .input .output
    crdi_mark* node_at;   // first mention
    uint8_t* node_domain; // 1 electric, 2 thermal, 0 only mentioned
    crdi_pending* pending;
    double* node_ic;
    size_t source_capacity, card_capacity, scope_capacity, section_capacity, control_capacity;
    size_t node_at_capacity, node_domain_capacity, pending_capacity, node_ic_capacity;
    size_t card_count, text_length;
    int32_t scope_count, section_count, control_count, pending_count;
    crd_map pending_map, global_map, noted, input_map;
    // while lines are read
    int32_t scope, section;
    int32_t including[CRDI_INCLUDES_MOST];
    int include_depth;
    bool ended;
    // while definitions are expanded
    char path[CRDI_PATH_MOST + 1];
    size_t path_length;
    int depth;
    int64_t instances;
    double nominal; // tnom, K
    double gmin;    // S
} crdi_parser;

// One card while it is read.
typedef struct crdi_reading {
    crdi_parser* p;
    crdi_env* env;
    const crdi_card* card;
    crdi_scan s;
    crdi_word name;
} crdi_reading;

// netlist_lines.c
crd_status crdi_netlist_lines(crdi_parser* p, const char* text, size_t length, const char* file);
crd_status crdi_netlist_read_file(crd_context* ctx, const char* path, crd_text* out);
void crdi_netlist_note(crdi_parser* p, const crdi_scan* s, const char* word, const char* why);

// netlist_scope.c
crdi_scan crdi_card_scan(const crdi_parser* p, const crdi_card* card);
crd_status crdi_env_init(crdi_parser* p, int32_t scope, crdi_env* outer, crdi_env* e);
void crdi_env_clear(crdi_parser* p, crdi_env* e);
crd_status crdi_env_params(crdi_parser* p, crdi_env* e); // compute those that are not yet known
crd_status crdi_scope_check(crdi_parser* p); ///< CRD_E_RANGE: it would expand to too much
crd_status crdi_scope_expand(crdi_parser* p, crdi_env* e);
crd_status crdi_node(crdi_reading* r, crdi_word w, int32_t* out);
crd_status crdi_mention(crdi_reading* r, crdi_word w, int32_t* pending);
// A number, {expression}, 'expression' or the name of a parameter. `bare`: an expression without
// braces too.
crd_status crdi_value(crdi_reading* r, bool bare, const char* why, double* out);
// The same, and what changes while the circuit runs: then `*e` is not NULL.
crd_status crdi_value_or_law(crdi_reading* r, bool bare, bool always, double* value,
                             crd_expression** e);
crd_status crdi_expression_add(crdi_reading* r, const crd_expression* e, int32_t* index);
crd_status crdi_full_name(crdi_reading* r, crdi_word w, char out[CRDI_PATH_MOST + 1], size_t* n);
// A word that is followed by '='; then both are taken.
bool crdi_key(crdi_scan* s, crdi_word* key);

// netlist_parts.c
crd_status crdi_part_card(crdi_reading* r); // an element, electric or thermal; .ic
// For those who read one (parts/): a part of this card, its nodes from the line, into the netlist.
crd_part crdi_part_start(const crdi_reading* r, crd_part_kind kind);
crd_status crdi_part_nodes(crdi_reading* r, crd_part* part, int count);
crd_status crdi_part_add(crdi_reading* r, crd_part* part);
crd_status crdi_part_end(crdi_reading* r); // nothing follows
crd_status crdi_part_expected(const crdi_reading* r, const char* what);
crd_status crdi_part_unknown_key(const crdi_reading* r, crdi_word key);
// The value behind the nodes, or behind `key`=; what changes while the circuit runs: `*e`
crd_status crdi_part_amount(crdi_reading* r, const char* key, double* value, crd_expression** e);
crd_status crdi_part_constant(const crdi_reading* r, const crd_expression* e); // it is none
typedef struct crdi_factors { // name=value behind the value
    double tc1, tc2, m, ic;
    bool has_ic;
} crdi_factors;
crd_status crdi_part_factors(crdi_reading* r, bool ic, bool tc, crdi_factors* f);
crd_status crdi_part_storage(crdi_reading* r, crd_part* part, const char* key, double* m);
// Above 0, or a warning: what 0 is taken as. Of heat everything else is refused.
crd_status crdi_part_positive(const crdi_reading* r, const crd_part* part, const char* unit,
                              const char* at_zero);
crd_status crdi_part_wave(crdi_reading* r, crd_part* part, bool laws); // with a law it becomes a B
// V=..., I=... or value=..., behind the '='
crd_status crdi_part_behaviour(crdi_reading* r, crd_part* part, bool voltage);
crd_status crdi_part_start_temperature(crdi_reading* r, double* out); // NAN: none is said
crd_status crdi_part_check_kelvin(const crdi_reading* r, double kelvin);
// netlist_sources.c
crd_status crdi_source(crdi_reading* r, crd_waveform* wave, bool* law, crd_expression** e);
// netlist_models.c
crd_status crdi_model_find(crdi_reading* r, crdi_word name, const crdi_part_kind* kind,
                           int32_t* index);
typedef struct crdi_model_entry {
    const char* key;
    double* to; // NULL: noted
} crdi_model_entry;
crd_status crdi_model_entries(crdi_reading* r, const crdi_model_entry* list, int count);
crd_status crdi_model_range(const crdi_reading* r, const char* key, double value, const char* want);
// netlist_controls.c
crd_status crdi_controls_early(crdi_parser* p, crdi_env* root); // .temp .options .tran .input
crd_status crdi_controls_late(crdi_parser* p, crdi_env* root);  // .output
