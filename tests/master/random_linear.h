// Random linear systems with exact solutions, run by the real master.
//
//   unit k:   x' = A x + B u + E w,  y = C x + D u,   w = (sin omega t, cos omega t, constant)
//   coupling: every u is one y of another unit; feedthrough never closes a loop
//
// Units integrate exactly (matrix exponential, inputs as polynomials up to degree 2). The coupled
// system has the exact solution that the exponential of its own matrix gives, jumps included. None
// of it uses the library's numerics.
//
//   random_traits traits = random_traits_of(seed);   // everything drawn; change what is wanted
//   random_linear* s = random_linear_create(seed, &traits);
//   random_result r = random_linear_run(s, &(random_run){.predict = CRD_PREDICTION_HOLD});
//   random_linear_destroy(s);
#pragma once
#include "cardan/master.h"

enum {
    RANDOM_UNITS = 4,
    RANDOM_STATES = 4, // of a unit
    RANDOM_PORTS = 2,  // inputs and outputs of a unit, each
    RANDOM_OUTPUTS = RANDOM_UNITS * RANDOM_PORTS
};

/// What a system is like. Equal seeds and traits give equal bits.
typedef struct random_traits {
    int units;         ///< 2 .. 4
    bool gauss_seidel; ///< else Jacobi
    bool multirate;    ///< some units step every second or fourth tick
    bool feedthrough;  ///< some units have D != 0
    int output_order;  ///< derivatives that outputs have: 0 .. 2
    int input_order;   ///< degree of inputs: 0 .. 2
    bool refresh;      ///< units may be asked again between steps
    bool save;         ///< units can go back
    bool linear;       ///< units can be linearised
    double noise;      ///< of what outputs show, relative to their RMS: 0.01 is 1 %
    bool jump;         ///< one, of a state or of the forcing, inside a step
    bool unannounced;  ///< ... which the unit keeps to itself: no event
    bool forced;       ///< w acts; else the response to the initial states only
    double c;          ///< H times the fastest |lambda| of the coupled system and of its units
    double gain;       ///< of the coupling, about: 1 is strong
    double stiffness;  ///< ratio of the fastest to the slowest |lambda|, about
    double growth;     ///< ln of what the plant grows by over the run (0: marginal); NaN: stable
    int steps;         ///< ticks of the run
} random_traits;

random_traits random_traits_of(uint64_t seed);

typedef struct random_linear random_linear; // opaque

/// NULL: out of memory. A seed whose coupled system is not stable is drawn again inside.
random_linear* random_linear_create(uint64_t seed, const random_traits* traits);
void random_linear_destroy(random_linear* s);
const random_traits* random_linear_traits(const random_linear* s);
double random_linear_step(const random_linear* s); ///< the tick H, s
int random_linear_outputs(const random_linear* s); ///< of all units
/// Output i (unit by unit) at tick n, exactly and without noise; its RMS over the run.
double random_linear_exact(const random_linear* s, int n, int i);
double random_linear_rms(const random_linear* s, int i);
const char* random_linear_name(const random_linear* s, int i); ///< "b.y1"
/// ln of the spectral radius of the exact solution over one tick, forcing left out.
double random_linear_growth(const random_linear* s);

typedef struct random_run {
    crd_prediction predict; ///< of all connections
    bool black_box;         ///< what could be linearised cannot
    /// Last changes of the system before the master is made. NULL: none.
    void (*change)(void* user, crd_system* system);
    /// After every tick, and after the last (with the report). NULL: nobody looks.
    void (*tick)(void* user, crd_master* m, int64_t n);
    void (*end)(void* user, crd_master* m, const crd_master_report* report);
    void* user;
} random_run;

/// Errors are those of y without its noise, at the communication points of its unit.
typedef struct random_result {
    crd_status status; ///< of the run
    crd_end ended;
    int64_t ticks;                  ///< done
    double error[RANDOM_OUTPUTS];   ///< RMS error / RMS of the exact output
    double largest[RANDOM_OUTPUTS]; ///< |y| / RMS of the exact output
    double total;                   ///< root of the mean square of `error`; INFINITY: it broke
    double size;                    ///< the largest of `largest`
    double worst_defect;            ///< of the report
} random_result;

random_result random_linear_run(random_linear* s, const random_run* run);
