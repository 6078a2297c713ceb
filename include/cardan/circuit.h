/// Electric, electronic and thermal circuits: netlists, and their simulation in real time
/// (Rodriguez 2021, ch. 3).
///
/// A netlist in SPICE's words becomes a flat list of parts between nodes; a circuit is that list
/// with a method and a step. After crd_circuit_create nothing allocates, except where it is said.
#pragma once
#include "cardan/base.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- netlists ----------------------------------------------------------------------------------

/// The kinds of parts: CRD_PART_ and a name, and the row that says what it is (the list is also
/// that of src/circuit/parts/: docs/contributing/circuit-part.md).
#define CRD_PARTS(X)                                                                               \
    X(RESISTOR, resistor)        /* value, ohm or K/W; or a law (expression) */                    \
    X(CAPACITOR, capacitor)      /* value, F or J/K; ic */                                         \
    X(INDUCTOR, inductor)        /* value, H; ic */                                                \
    X(MUTUAL, mutual_inductance) /* K: refs are two inductors, value is the coupling factor */     \
    X(VOLTAGE, voltage)          /* V, fixed temperature: waveform */                              \
    X(CURRENT, current)          /* I, heat source: waveform */                                    \
    X(DIODE, diode)              /* model */                                                       \
    X(SWITCH, voltage_switch)    /* S: controlled by nodes[2] - nodes[3]; model */                 \
    X(CURRENT_SWITCH, current_switch) /* W: controlled by the current of refs[0]; model */         \
    X(VCVS, vcvs)                     /* E: value * (nodes[2] - nodes[3]) */                       \
    X(CCCS, cccs)                     /* F: value * current of refs[0] */                          \
    X(VCCS, vccs)                     /* G */                                                      \
    X(CCVS, ccvs)                     /* H */                                                      \
    X(B_VOLTAGE, b_voltage)           /* B with V=: expression */                                  \
    X(B_CURRENT, b_current)           /* B with I=: expression */

#define CRD_PART_CONSTANT(name, row) CRD_PART_##name,
typedef enum crd_part_kind { CRD_PARTS(CRD_PART_CONSTANT) } crd_part_kind;
#undef CRD_PART_CONSTANT

typedef enum crd_waveform_kind {
    CRD_WAVE_DC,
    CRD_WAVE_SIN,   ///< offset amplitude frequency delay damping phase
    CRD_WAVE_PULSE, ///< low high delay rise fall width period
    CRD_WAVE_PWL,   ///< points
    CRD_WAVE_EXP,   ///< low high delay1 tau1 delay2 tau2
    CRD_WAVE_INPUT, ///< an input of the unit
} crd_waveform_kind;

typedef struct crd_waveform {
    crd_waveform_kind kind;
    double v[7];
    const double *times, *values; ///< PWL
    int count;
    int input; ///< index
} crd_waveform;

/// Expressions are compiled once: values and exact derivatives with respect to what they use.
typedef struct crd_expression crd_expression;
typedef enum crd_use_kind {
    CRD_USE_NODE,
    CRD_USE_PAIR,
    CRD_USE_CURRENT,
    CRD_USE_INPUT
} crd_use_kind;
typedef struct crd_use { ///< what an expression uses: v(a), v(a,b), i(part), an input
    crd_use_kind kind;
    int32_t a, b;
} crd_use;
/// What it is compiled to: of use to files that `cardan export c` writes alone. Which operator has
/// which number changes from version to version.
typedef struct crd_expression_step {
    uint8_t op;
    int32_t a, b, c;
    double k;
} crd_expression_step;
struct crd_expression {
    int count, use_count;
    int constants; ///< the first steps are these
    crd_use* uses;
    crd_expression_step* steps; ///< the last one is the result
    double* table;              ///< x, y, x, y ...
};
CRD_API int crd_expression_uses(const crd_expression* e, const crd_use** uses);
/// `x` are the values of the uses; `gradient` (may be NULL) gets the derivatives.
CRD_API double crd_expression_eval(const crd_expression* e, const double* x, double t,
                                   double* gradient);

typedef struct crd_diode_model { ///< I = is (exp(V / (n vt)) - 1), rs in series; cjo, tt as in
                                 ///< SPICE
    const char* name;
    double is, n, rs, cjo, vj, m, tt, bv, ibv; ///< 0: none
    double vt;                                 ///< k T / q at the netlist's temperature
    double gmin; ///< S, beside the junction: what hangs on blocking diodes is not nowhere
} crd_diode_model;

typedef struct crd_switch_model { ///< on beyond threshold + hysteresis, off below - hysteresis
    const char* name;
    double threshold, hysteresis, on, off; ///< V or A; ohm
} crd_switch_model;

typedef struct crd_part {
    uint8_t kind;     ///< crd_part_kind
    bool thermal;     ///< declared inside .thermal
    bool has_ic;      ///< of S and W: on (ic 1) or off (ic 0) at the start
    int32_t nodes[4]; ///< 0: ground; -1: none
    int32_t refs[2];  ///< indices of parts, -1
    double value, ic;
    int32_t index; ///< of its waveform, model or expression; -1: none
    int32_t name;  ///< offset in names
    int32_t file, line;
} crd_part;

typedef struct crd_circuit_output { ///< .output: a node, a pair, a current, an expression
    const char *name, *unit;
    const crd_expression* what;
} crd_circuit_output;

typedef struct crd_circuit_input { ///< .input: a source whose value is set from outside
    const char *name, *unit;
    double start;
    int32_t part; ///< -1: only expressions use it
} crd_circuit_input;

typedef struct crd_circuit_parameter { ///< .param of the netlist itself, not of a subcircuit
    const char* name;
    double value;        ///< as it counts: from outside if it was given there
    const char* written; ///< the name as the netlist spells it
    bool plain;          ///< a number stands there, no expression
} crd_circuit_parameter;

typedef struct crd_netlist {
    crd_context* ctx;
    crd_arena arena;
    const char* title;
    const char* const* files;
    const char* names;        ///< of parts: names + part.name
    const char* const* nodes; ///< names; [0] is "0"
    int32_t node_count;       ///< with ground
    crd_part* parts;
    int32_t part_count;
    const crd_waveform* waves;
    const crd_expression* const* expressions;
    const crd_diode_model* diodes;
    const crd_switch_model* switches;
    int wave_count, expression_count, diode_count, switch_count;
    const crd_circuit_input* inputs;
    const crd_circuit_output* outputs;
    int input_count, output_count;
    const crd_circuit_parameter* parameters;
    int parameter_count;
    double temperature;              ///< K
    double tran_step, tran_stop;     ///< .tran; NaN
    double tran_start, tran_largest; ///< .tran: where looking begins, longest step; 0
    bool uic;
    const double* node_ic; ///< (node_count) .ic, NaN: none
} crd_netlist;

typedef struct crd_netlist_options {
    const char* const* defines; ///< "N=100": .param values from outside
    int define_count;
    int64_t max_parts; ///< with those of subcircuits; default 1e6, or 20 for each line, at most 1e7
    crd_text* flat;    ///< gets the netlist with the included files in their places; NULL: nobody
} crd_netlist_options;

/// The first line is the title unless it begins with a dot. Names have no case; a part r1 inside
/// x1 is x1.r1, its nodes x1.n. Beyond SPICE: .input name [source=part] [unit=u] [start=x],
/// .output [name=]expression [unit=u] ..., a source's value input(name), and
///     .thermal [start=T]                                  temperatures in K above those of node 0
///     heat NAME NODE value | waveform | {expression}                              W, into the node
///     temperature NAME NODE value | waveform | {expression}                                      K
///     resistance NAME NODE NODE value | {expression}                                           K/W
///     capacity NAME NODE value [start=T]                                                       J/K
///     .endthermal
/// where expressions may say t(node) for v(node) and q(part) for i(part).
/// CRD_E_FORMAT, CRD_E_RANGE, CRD_E_UNSUPPORTED ... with file, line and token. What is not
/// supported is refused, not ignored; what does not matter here (.ac, .print, .plot, .end) is noted
/// in the log once.
CRD_API crd_status crd_netlist_load(crd_context* ctx, const char* path,
                                    const crd_netlist_options* opt, crd_netlist** out);
CRD_API crd_status crd_netlist_parse(crd_context* ctx, const char* text, size_t length,
                                     const char* file, const crd_netlist_options* opt,
                                     crd_netlist** out);
CRD_API void crd_netlist_destroy(crd_netlist* n);
CRD_API int32_t crd_netlist_node(const crd_netlist* n, const char* name); ///< -1
CRD_API int32_t crd_netlist_part(const crd_netlist* n, const char* name); ///< -1
CRD_API double crd_waveform_eval(const crd_waveform* w, double t, const double* inputs);
/// The next time after t at which it or its slope jumps; INFINITY.
CRD_API double crd_waveform_next(const crd_waveform* w, double t);

// ---- circuits ----------------------------------------------------------------------------------

typedef enum crd_circuit_method {
    CRD_METHOD_BDF1,
    CRD_METHOD_BDF2,
    CRD_METHOD_BDF3,
    CRD_METHOD_TR,         ///< A (x1 - x0) 2/h + b1 + b0 = 0: derivatives are not carried
    CRD_METHOD_TR_CARRIED, ///< as the thesis writes it: x' is carried, and drifts without
                           ///< projection
    CRD_METHOD_TRBDF2,
    CRD_METHOD_GAUSS2, ///< 2 stages, order 4
    CRD_METHOD_GAUSS4, ///< 4 stages, order 8
} crd_circuit_method;

typedef enum crd_circuit_start {
    CRD_START_TR,       ///< the first steps of BDF-k: k steps of TR
    CRD_START_MINIMUM,  ///< k - 1 of them
    CRD_START_CONSTANT, ///< a constant history, as in tables 3.7 to 3.11
} crd_circuit_start;

typedef enum crd_circuit_form {
    CRD_FORM_AUTO,
    CRD_FORM_DAE,   ///< Rodriguez 2021: node voltages, all currents, constraints
    CRD_FORM_NODAL, ///< what is left after eliminating; sparse
} crd_circuit_form;

typedef struct crd_circuit_options {
    crd_circuit_method method; ///< default TR
    crd_circuit_start start;
    crd_circuit_form form;
    double step;           ///< s, fixed
    int max_iterations;    ///< of Newton per step; default 50
    double tolerance;      ///< of Newton, relative; default 1e-10
    bool fixed_iterations; ///< exactly max_iterations: real time
    double projection;     ///< TR_CARRIED: 0 none, INFINITY exact, else the penalty alpha
    bool no_chains;        ///< NODAL: do not look for chains
    int refactor; ///< DAE: factor this often in every iteration, as if no tangent were constant
} crd_circuit_options;

typedef struct crd_circuit_structure { ///< the thesis's counts, and what the fast form is left with
    int64_t variables, constraints, differential; ///< n, m, p
    int64_t nodal;                                ///< unknowns of the nodal matrix
    int64_t nonzeros;                             ///< of its factors
    int64_t chain;                                ///< of them in chains
    int64_t ports;                                ///< nonlinear
} crd_circuit_structure;

typedef struct crd_circuit crd_circuit; ///< opaque
CRD_API crd_circuit_options crd_circuit_defaults(void);
/// `n` is borrowed. CRD_E_RANGE: floating nodes, loops of voltage sources, cutsets of current
/// sources, by name.
CRD_API crd_status crd_circuit_create(crd_context* ctx, const crd_netlist* n,
                                      const crd_circuit_options* opt, crd_circuit** out);
CRD_API void crd_circuit_destroy(crd_circuit* c);
CRD_API crd_circuit_structure crd_circuit_get_structure(const crd_circuit* c);
CRD_API const char* crd_circuit_form_name(const crd_circuit* c); ///< "dae", "nodal": the one chosen
/// Consistent at `t`: capacitors and inductors from their ic (or 0; without any and without uic the
/// operating point, while which capacitors between nodes of .ic are held), the rest least squares
/// (3.23 .. 3.25).
CRD_API crd_status crd_circuit_begin(crd_circuit* c, double t);
CRD_API crd_status crd_circuit_set_input(crd_circuit* c, int input, double value);
/// One step of options.step. CRD_E_CONVERGENCE names device and time; the state is then that
/// before the step.
CRD_API crd_status crd_circuit_step(crd_circuit* c);
CRD_API double crd_circuit_time(const crd_circuit* c);
CRD_API double crd_circuit_voltage(const crd_circuit* c, int32_t node);
/// Positive from nodes[0] through the part to nodes[1], sources too. NaN: there is no such part.
CRD_API double crd_circuit_current(const crd_circuit* c, int32_t part);
CRD_API double crd_circuit_get_output(crd_circuit* c, int output);
CRD_API int crd_circuit_iterations(const crd_circuit* c); ///< of the last step
/// Of TR_CARRIED: x' of a node as it is carried, and |Phi_x x' + Phi_t|. NaN: another method.
CRD_API double crd_circuit_carried(const crd_circuit* c, int32_t node);
CRD_API double crd_circuit_drift(crd_circuit* c);
/// Per second, from the last steps: of the order of the method, also where steps were unequal. 0
/// before the first step. Outputs are recorded from the first call on (which may come before any
/// step): who never asks does not pay.
CRD_API double crd_circuit_get_output_derivative(crd_circuit* c, int output);

/// Steps as large as the accuracy allows (offline). The local error of every capacitor voltage and
/// inductor current is kept below relative * its largest magnitude so far + voltage or current.
typedef struct crd_circuit_control {
    double relative;          ///< default 1e-4
    double voltage, current;  ///< V or K, A or W; default 1e-6, 1e-9
    double smallest, largest; ///< s; default 0 (1e-9 of the first step) and 0 (no limit)
} crd_circuit_control;

typedef struct crd_circuit_counts { ///< since begin
    int64_t steps, rejected, iterations, factorisations, events;
} crd_circuit_counts;

CRD_API crd_circuit_control crd_circuit_control_defaults(void);
/// One accepted step, at most to t_stop; c's time says how far. The first one tries options.step.
/// Corners of sources and switching of S and W are stepped onto; after them, and after inputs have
/// changed, the method begins anew with two steps of BDF1, which damp what jumped. The first call
/// allocates, and factors may. CRD_E_UNSUPPORTED: a Gauss method
/// or TR_CARRIED. CRD_E_CONVERGENCE: even the smallest step failed; names device and time.
CRD_API crd_status crd_circuit_advance(crd_circuit* c, double t_stop,
                                       const crd_circuit_control* control);
/// Fixed steps of this size from now on (factors anew; may allocate).
CRD_API crd_status crd_circuit_set_step(crd_circuit* c, double step);
CRD_API crd_circuit_counts crd_circuit_get_counts(const crd_circuit* c);

/// The cheapest fixed step and method that keep the root mean square error of every output
/// (without outputs: of every node) over [0, stop] below `accuracy` times its range, found by
/// trial against a reference of varying steps, itself checked by one with a sharper tolerance.
/// options.step is the grid on which outputs are looked at; steps are 1, 1/2, 1/4, 1/5, 1/10 ... of
/// it. The methods are BDF1, BDF2, BDF3, TR, and TRBDF2 where something is nonlinear or switches;
/// the cost of one is the number of its solutions. options.method does not matter.
typedef struct crd_circuit_choice {
    crd_circuit_method method;
    double step;
    double error;  ///< estimated, of the worst output, over its range
    int worst;     ///< output (or node)
    int64_t steps; ///< for [0, stop]
} crd_circuit_choice;
/// CRD_E_CONVERGENCE: no reference was found, or no step that is that accurate.
CRD_API crd_status crd_circuit_choose(crd_context* ctx, const crd_netlist* n,
                                      const crd_circuit_options* opt, double accuracy, double stop,
                                      crd_circuit_choice* out);

// ---- runs --------------------------------------------------------------------------------------

typedef enum crd_probe_kind {
    CRD_PROBE_OUTPUT,  ///< a: .output
    CRD_PROBE_NODE,    ///< a: node
    CRD_PROBE_PAIR,    ///< a, b: nodes
    CRD_PROBE_CURRENT, ///< a: part
} crd_probe_kind;

typedef struct crd_circuit_probe { ///< something to look at
    crd_probe_kind kind;
    int32_t a, b;
    const char *name, *unit;
} crd_circuit_probe;

typedef struct crd_circuit_probes {
    crd_circuit_probe* all;
    int count;
    int left_out; ///< nodes that nobody has asked for, beyond the first 200
} crd_circuit_probes;

/// What lists such as "v(3), i(L1), i(R*)" name: v(node), v(a,b), i(part), t() and q() of thermal
/// circuits, outputs by name; with * and ?. Without any list: all outputs, or where there are none
/// the first 200 nodes. All memory is the arena's; names may be those of the netlist.
/// CRD_E_NOT_FOUND and CRD_E_RANGE say which item, and what was meant.
CRD_API crd_status crd_circuit_find_probes(crd_context* ctx, const crd_netlist* n,
                                           const char* const* lists, int list_count,
                                           crd_arena* arena, crd_circuit_probes* out);
CRD_API double crd_circuit_probe_value(crd_circuit* c, const crd_circuit_probe* p);

/// From where a circuit is to a time. Zeroed but for `stop` it makes fixed steps to there.
typedef struct crd_circuit_course {
    double stop;                        ///< s; fixed steps do not pass it
    const crd_circuit_control* control; ///< NULL: fixed steps
    int64_t most;                       ///< steps of this call; 0: all
    /// Inputs for the step to `t`, and what there is to do after it; either may be NULL. A negative
    /// status ends the run with it.
    crd_status (*before)(void* user, double t);
    crd_status (*after)(void* user, crd_circuit* c);
    void* user;
    const bool* ended; ///< ends the run after a step where it is true; NULL: nobody does
} crd_circuit_course;
CRD_API crd_status crd_circuit_run(crd_circuit* c, const crd_circuit_course* course);

/// A run into memory. Zero it, and set what is above the line.
typedef struct crd_circuit_record {
    const crd_circuit_probe* probes;
    int probe_count;
    double from;          ///< s, where rows begin
    int every;            ///< steps per row; 0: 1
    const double* inputs; ///< (steps x inputs) of the netlist at the ends of all fixed steps; NULL
    int64_t input_rows;   ///< steps that there are inputs for; the last ones stay
    // ----
    int64_t rows, steps; ///< rows; steps of all calls
    size_t capacity;
    double* values; ///< (rows x (1 + probes)) time first, from the circuit's context
} crd_circuit_record;
/// As crd_circuit_run, whose `before` and `after` are not called; the first call has the present
/// state as its first row. What was recorded stays after a failure.
CRD_API crd_status crd_circuit_run_recorded(crd_circuit* c, const crd_circuit_course* course,
                                            crd_circuit_record* r);

CRD_API size_t crd_circuit_state_size(const crd_circuit* c);
CRD_API void crd_circuit_save(const crd_circuit* c, void* state);
CRD_API void crd_circuit_restore(crd_circuit* c, const void* state);

#ifdef __cplusplus
}
#endif
