// What the forms of a circuit share. A form is a table of functions: src/circuit/dae*.c has the
// reference form (Rodriguez 2021), src/circuit/nodal*.c the fast one.
#pragma once
#include "cardan/circuit.h"

typedef struct crdi_form crdi_form;

#define CRDI_PAST 4 // points behind a derivative at most

typedef struct crdi_past { // outputs after the last steps, for their derivatives
    bool on;               // from the first time that a derivative is asked for
    double* row; // CRDI_PAST rows of time and outputs, newest first; then the two numbers below
    double* count;
    double* cut; // 1: something jumped, the next step starts it again
} crdi_past;

struct crd_circuit {
    crd_context* ctx;
    crd_arena arena; // of inputs, uses and past
    const crd_netlist* n;
    crd_circuit_options opt;
    const crdi_form* form;
    void* self;     // of the form
    double* inputs; // (input_count) as set from outside, .start before; in a step that looks inside
                    // itself, at the time that it looks at
    double *ends, *rates; // (input_count) of inputs that move evenly through the step, 1/s
    double ends_at;       // s
    bool moving;
    double* uses;   // room for the values that one expression uses
    double t0;      // of begin
    int64_t steps;  // since t0
    int64_t since;  // steps since begin or restart: what the start of a method counts
    int iterations; // of the last step
    bool warned;    // of initial values that contradict
    bool begun;
    bool hold; // a step leaves switches where they are: crd_circuit_advance looks for the moment
    crd_circuit_counts counts;    // the form counts factorisations, circuit.c the rest
    crdi_past past;               // of outputs
    struct crdi_control* control; // of crd_circuit_advance; NULL before its first call
    void* rescue;                 // room for a state, made when a step fails for the first time
};

// Currents are positive from nodes[0] through the part to nodes[1], sources included (as in SPICE).
// The form reads c->n, c->opt, c->inputs, c->t0, c->steps, c->since, c->hold; circuit.c keeps them.
// c->opt.method and c->opt.start may change from step to step among BDF1 to BDF3, TR and TRBDF2:
// crd_circuit_advance begins with BDF1 after a jump, whatever the method.
struct crdi_form {
    const char* name;
    // Why it cannot do this netlist with these options (one sentence in the context, status
    // CRD_E_UNSUPPORTED), or what create returns. On failure create leaves nothing behind.
    crd_status (*create)(crd_circuit* c, void** self);
    void (*destroy)(crd_circuit* c, void* self);                         // self may be NULL
    void (*structure)(const crd_circuit* c, crd_circuit_structure* out); // zeroed before
    crd_status (*begin)(crd_circuit* c, double t);
    // From crdi_circuit_time(c, 0) to crdi_circuit_time(c, 1); sets c->iterations. On failure the
    // state is what it was.
    crd_status (*step)(crd_circuit* c);
    double (*voltage)(const crd_circuit* c, int32_t node);
    double (*current)(const crd_circuit* c, int32_t part);
    // Capacitor voltages and inductor currents in the order of their parts: what the local error is
    // judged by. state_count is that of capacitors and inductors in the netlist.
    void (*states)(const crd_circuit* c, double* out);
    // Steps of this size from now on. The formulas of a multistep method go through its history at
    // the times at which it was (by interpolation to the new step, or by coefficients for unequal
    // steps). May allocate. c->opt.step is the old step during the call.
    crd_status (*restep)(crd_circuit* c, double step);
    // Something jumped: forget the history; what the method's start says comes again (c->since is 0
    // after the call). Switches move to where the present values want them.
    void (*restart)(crd_circuit* c);
    // A state may be restored under another step than that under which it was saved.
    size_t (*state_size)(const crd_circuit* c); // bytes, multiple of 8
    void (*save)(const crd_circuit* c, void* state);
    void (*restore)(crd_circuit* c, const void* state);
};

extern const crdi_form crdi_form_dae;
extern const crdi_form crdi_form_nodal;

// Inputs as they are at t, of a step under way.
void crdi_circuit_move_inputs(crd_circuit* c, double t);

// Time of the step after `ahead` more steps; from the count, a sum would drift.
static inline double crdi_circuit_time(const crd_circuit* c, int ahead)
{
    return c->t0 + (double)(c->steps + ahead) * c->opt.step;
}
static inline const char* crdi_part_name(const crd_netlist* n, int32_t part)
{
    return n->names + n->parts[part].name;
}

// past.c
crd_status crdi_past_init(crd_circuit* c);
size_t crdi_past_size(const crd_circuit* c); // numbers in row
void crdi_past_begin(crd_circuit* c);
void crdi_past_push(crd_circuit* c); // after a step

// circuit.c: as crd_circuit_set_step, and after a jump, without checks; one step that is not
// counted as one.
crd_status crdi_circuit_restep(crd_circuit* c, double step);
void crdi_circuit_restart(crd_circuit* c);
crd_status crdi_circuit_try(crd_circuit* c);
void crdi_circuit_return(crd_circuit* c,
                         const void* state); // restores; crd_circuit_advance goes on

// advance.c
void crdi_control_destroy(crd_circuit* c);
void crdi_control_reset(crd_circuit* c, double step); // begun anew, restored, or another step

// method.c: weights of BDF for points that were h + age ago, leading ones for equal steps, steps of
// TR before BDF begins, TR and BDF2 in one step
extern const double crdi_bdf_lead[4];
void crdi_bdf_weights(int order, double h, const double age[2], double w[4]);
int crdi_start_steps(const crd_circuit_options* o, int order);
typedef struct crdi_trbdf2 {
    double g, w;          // TR to g h, weight of the new value in both
    double middle, first; // weights of BDF2
} crdi_trbdf2;
crdi_trbdf2 crdi_trbdf2_of(double h);

// waveform.c: its slope, to the right of a corner
double crdi_waveform_slope(const crd_waveform* w, double t);

// topology.c: "file:line" of a part; "circuit" where nobody knows
typedef struct crdi_place {
    char text[320];
} crdi_place;
crdi_place crdi_part_place(const crd_netlist* n, int32_t part);

// topology.c: values, references, floating nodes, loops of voltage sources, cutsets of current
// sources.
crd_status crdi_circuit_check(crd_context* ctx, const crd_netlist* n);
// CRD_E_UNSUPPORTED: what Gauss methods cannot do. They ask for solutions that are smooth within a
// step, and take currents from polynomials where only derivatives determine them.
crd_status crdi_circuit_smooth(crd_context* ctx, const crd_netlist* n);
