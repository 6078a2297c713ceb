// What the files of chapter 4 share: components with their measurements.
#pragma once
#include "cardan/twin.h"
#include "reproduce/reproduce.h"
#include "shared/base.h"

enum { CRDI_CH4_ROWS = 5000 }; // 5 s
#define CRDI_CH4_STEP 1e-3     // s, between two measurements
#define CRDI_CH4_SD 0.5        // K, of every sensor

/// A netlist with what it does: node temperatures that are its outputs.
typedef struct crdi_component {
    crd_context* ctx;
    crd_arena arena;
    crd_netlist* n;
    int64_t rows;
    int outputs;
    double* truth; ///< (rows x outputs), at the end of each step
} crdi_component;

/// Simulates it; the step is exact to more digits than matter.
crd_status crdi_component_init(crdi_component* c, crd_context* ctx, const char* text, int64_t rows);
void crdi_component_clear(crdi_component* c);
/// Outputs first .. first + count - 1 with noise that is drawn row by row. They are the
/// component's.
double* crdi_component_measure(crdi_component* c, uint64_t seed, int first, int count);

/// `what` of the claim follows "subject: ".
crd_status crdi_ch4_claim(crdi_reproduction* r, const char* id, const char* subject, crdi_claim c);
/// Not judged.
crd_status crdi_ch4_show(crdi_reproduction* r, const char* id, const char* subject,
                         const char* what, double published, double ours, const char* remark);

/// Unknown parts, one per name; `parts` has room for them.
void crdi_ch4_unknown(const crd_netlist* n, const char* const* names, const double* starts,
                      double sd, int count, int32_t* parts, crd_twin_parameter* p);
crd_twin_spec crdi_ch4_spec(const crd_twin_sensor* sensors, int count);
/// Tunes with the data between two times (NaN: all); results are the arena's.
crd_status crdi_ch4_tune(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                         crd_twin_data data, crd_tune_how how, int most, crd_arena* arena,
                         crd_tune_result* out);
/// The published filter and the recommended one in turn, as two rows.
crd_status crdi_ch4_compare_cost(crdi_reproduction* r, const char* id, const char* subject,
                                 const crd_netlist* n, const crd_twin_spec* spec, const double* y,
                                 double laptop, double raspberry);

crd_status crdi_ch4_scenarios(crdi_reproduction* r); // rodriguez2021_ch4_scenarios.c
crd_status crdi_ch4_inverter(crdi_reproduction* r);  // rodriguez2021_ch4_inverter.c
crd_status crdi_ch4_junction(crdi_reproduction* r);  // rodriguez2021_ch4_junction.c
crd_status crdi_ch4_observe(crdi_reproduction* r);   // rodriguez2021_ch4_observe.c

/// The inverter of 4.4. What is 0 is as after estimation.
typedef struct crdi_inverter {
    double start;               ///< K, of all
    double starts[3];           ///< K, of the copper, upper and lower heatsink, instead of `start`
    const char *loss, *water;   ///< of a MOSFET, W; K: values or waveforms
    double feedback;            ///< W/K: the loss grows with the junction's temperature
    double die, dbc, sp, hs, w; ///< K/W
    double capacities[3];       ///< J/K, of the copper, upper and lower heatsink
    double losses[3];           ///< W, of the MOSFETs of each phase, instead of `loss`
    const char* outputs;        ///< "T7=t(7) ..."
} crdi_inverter;
enum { CRDI_INVERTER_TEXT = 4000 };
void crdi_inverter_text(const crdi_inverter* v, char text[CRDI_INVERTER_TEXT]);
/// Its eight unknowns in this order: Rdbc, Rhs, Rw, Cdbc, Chs, Cw, Rsp, Rdie.
enum { CRDI_INVERTER_UNKNOWNS = 8 };
typedef struct crdi_inverter_unknowns {
    int32_t parts[CRDI_INVERTER_UNKNOWNS][6];
    crd_twin_parameter p[CRDI_INVERTER_UNKNOWNS];
} crdi_inverter_unknowns;
extern const double crdi_inverter_truth[CRDI_INVERTER_UNKNOWNS]; ///< after estimation
void crdi_inverter_find(const crd_netlist* n, crdi_inverter_unknowns* u);
