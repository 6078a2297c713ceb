// Every coupling algorithm, and a wave pair, on the same samples: rows of a name, the bytes of
// memory that it took, the most instructions of a sample, and what it said, as hexadecimal bits.
#include "board.h"
#include "cardan/core.h"

#include <math.h>
#include <string.h>

static _Alignas(16) unsigned char memory[600 * 1024];
static uint32_t calls;

static double count_calls(void* user)
{
    (void)user;
    return 1e-6 * ++calls;
}

static void write_line(void* user, crd_level level, const char* text)
{
    (void)user;
    (void)level;
    board_write(text);
    board_write("\n");
}

// ---- signals, exact on every machine ------------------------------------------------------------

static uint32_t state_of_noise = 1;

static double noise(void) // in [-1, 1)
{
    state_of_noise = state_of_noise * 1664525u + 1013904223u;
    return (double)(int32_t)state_of_noise / 2147483648.0;
}

static double triangle(int n, int period)
{
    const int at = n % period, half = period / 2;
    return (double)(at < half ? at : period - at) / half;
}

// Smooth parts, a little noise, a jump
static double signal(int n)
{
    const double a = triangle(n, 140), b = triangle(n + 30, 62);
    return 3 * a * a * (3 - 2 * a) + b * b * (3 - 2 * b) + 1e-3 * noise() + (n > 400 ? 2 : 0);
}

// What comes from commands, a tenth of a second behind the first of them
static double answer;

static double with_answer(double y, double u)
{
    answer += 0.01 * (u - answer);
    return y + 4 * answer;
}

// ---- rows --------------------------------------------------------------------------------------

enum { LATENCY = 5, K_MAX = 8, SAMPLES = 700, EVERY = 20, NEURONS = 9 };

typedef struct element_row {
    const char* name;
    crd_algorithm algorithm;
    crd_method method;
    int taps, commands;
    crd_detection detection;
    bool compact;
} element_row;

static const element_row rows[] = {
    {"zoh", CRD_ALGORITHM_LINEAR, CRD_METHOD_ZOH, 0, 0, CRD_DETECT_NONE, false},
    {"foh", CRD_ALGORITHM_LINEAR, CRD_METHOD_FOH, 0, 0, CRD_DETECT_NONE, false},
    {"eros", CRD_ALGORITHM_LINEAR, CRD_METHOD_EROS, 0, 0, CRD_DETECT_NONE, false},
    {"eros+rebase", CRD_ALGORITHM_LINEAR, CRD_METHOD_EROS, 0, 0, CRD_DETECT_GUARDED, false},
    {"eros+spectrum", CRD_ALGORITHM_LINEAR, CRD_METHOD_EROS, 0, 0, CRD_DETECT_SPECTRUM, false},
    {"error-space", CRD_ALGORITHM_LINEAR, CRD_METHOD_ERROR_SPACE, 0, 0, CRD_DETECT_NONE, false},
    {"moment", CRD_ALGORITHM_LINEAR, CRD_METHOD_MOMENT, 9, 0, CRD_DETECT_NONE, false},
    {"savitzky-golay", CRD_ALGORITHM_LINEAR, CRD_METHOD_SAVITZKY_GOLAY, 9, 0, CRD_DETECT_NONE,
     false},
    {"wiener", CRD_ALGORITHM_LINEAR, CRD_METHOD_WIENER, 25, 0, CRD_DETECT_NONE, false},
    {"network", CRD_ALGORITHM_NETWORK, CRD_METHOD_EROS, 0, 0, CRD_DETECT_NONE, false},
    {"ridge", CRD_ALGORITHM_LEARNING, CRD_METHOD_EROS, 25, 0, CRD_DETECT_GUARDED, false},
    {"rls", CRD_ALGORITHM_RLS, CRD_METHOD_EROS, 9, 0, CRD_DETECT_GUARDED, false},
    {"error-curves", CRD_ALGORITHM_ERROR_CURVES, CRD_METHOD_EROS, 0, 0, CRD_DETECT_NONE, false},
    {"smith", CRD_ALGORITHM_SMITH, CRD_METHOD_EROS, 0, 1, CRD_DETECT_NONE, false},
    {"auto", CRD_ALGORITHM_AUTO, CRD_METHOD_EROS, 0, 0, CRD_DETECT_GUARDED, false},
    {"auto, 1 command", CRD_ALGORITHM_AUTO, CRD_METHOD_EROS, 0, 1, CRD_DETECT_GUARDED, false},
    {"auto, 2 commands", CRD_ALGORITHM_AUTO, CRD_METHOD_EROS, 0, 2, CRD_DETECT_GUARDED, false},
    {"auto, compact", CRD_ALGORITHM_AUTO, CRD_METHOD_EROS, 0, 0, CRD_DETECT_NONE, true},
    {"auto, compact, 1 command", CRD_ALGORITHM_AUTO, CRD_METHOD_EROS, 0, 1, CRD_DETECT_NONE, true},
    {"auto, compact, 2 commands", CRD_ALGORITHM_AUTO, CRD_METHOD_EROS, 0, 2, CRD_DETECT_NONE, true},
};

static crd_coupling_options options_of(const element_row* r)
{
    crd_coupling_options o = crd_coupling_defaults();
    o.step = 1.0 / 1024;
    o.k_max = K_MAX;
    o.late = 8;
    o.algorithm = r->algorithm;
    o.design = crd_design_defaults(r->method);
    if (r->taps && r->algorithm == CRD_ALGORITHM_LINEAR) { o.design.taps = r->taps; }
    if (r->taps && r->algorithm != CRD_ALGORITHM_LINEAR) { o.learning_taps = r->taps; }
    o.detection = r->detection;
    o.reaction = r->detection == CRD_DETECT_NONE      ? CRD_REACT_NONE
                 : r->detection == CRD_DETECT_GUARDED ? CRD_REACT_REBASE
                                                      : CRD_REACT_SWITCH;
    o.commands = r->commands;
    o.compact = r->compact;
    if (r->compact) {
        o.k_max = LATENCY;
        o.late = 4;
    }
    return o;
}

static void begin_row(const char* name, size_t bytes)
{
    board_write(name);
    board_write(";");
    board_number((double)bytes);
}

static void end_row(uint32_t most)
{
    board_write(";");
    board_number((double)most * BOARD_TICK);
    board_write("\n");
}

static bool make_element(crd_core* core, const element_row* r, crd_coupling** out)
{
    crd_context* ctx = crd_core_context(core);
    crd_coupling_options o = options_of(r);
    crd_network network;
    crd_linear linear;
    const bool has = r->algorithm == CRD_ALGORITHM_NETWORK;
    if (has) {
        crd_design d = crd_design_defaults(CRD_METHOD_SAVITZKY_GOLAY);
        d.taps = NEURONS;
        if (crd_linear_make(ctx, &d, LATENCY, &linear) < 0 ||
            crd_network_morph(ctx, &linear, 0.3, &network) < 0) {
            return false;
        }
        o.network = &network;
    }
    return crd_coupling_create(ctx, &o, out) >= 0;
}

static bool run_element(const element_row* r)
{
    const char* why = NULL;
    const crd_core_port port = {.time = count_calls, .log = write_line};
    crd_core* core = crd_core_start(&port, memory, sizeof memory, &why);
    if (!core) { return false; }
    crd_coupling* c = NULL;
    const size_t before = crd_core_get_state(core).used;
    if (!make_element(core, r, &c)) {
        board_write(crd_error_text(crd_core_context(core)));
        return false;
    }
    begin_row(r->name, crd_core_get_state(core).most - before);
    crd_core_seal(core);
    const double h = 1.0 / 1024;
    uint32_t most = 0;
    state_of_noise = 1;
    answer = 0;
    for (int n = LATENCY; n < SAMPLES; n++) {
        const int taken = n - LATENCY;
        const double u[2] = {triangle(n, 90), n / 50 % 2}, alone = signal(taken);
        const double y = r->commands ? with_answer(alone, triangle(taken, 90)) : alone;
        const bool lost = taken % 97 == 96;
        const uint32_t start = board_ticks();
        if (r->commands) { crd_coupling_command(c, u, (double)n * h); }
        if (!lost) { crd_coupling_push(c, y, (double)taken * h, taken); }
        const double x = crd_coupling_eval(c, (double)n * h);
        const uint32_t ticks = (start - board_ticks()) & 0xffffff;
        most = ticks > most ? ticks : most;
        if (n % EVERY == 0) { board_number(x); }
    }
    end_row(most);
    crd_coupling_destroy(c);
    return crd_core_get_state(core).refused == 0;
}

// ---- a wave pair: a mass and a spring over a link of LATENCY steps ------------------------------

static bool run_pair(void)
{
    const double h = 1.0 / 1024;
    static crd_pair_port a, b;
    static crd_pair_packet way_there[LATENCY], way_back[LATENCY];
    const char* why = NULL;
    const crd_core_port port = {.time = count_calls, .log = write_line};
    crd_core* core = crd_core_start(&port, memory, sizeof memory, &why);
    crd_pair_options mass = crd_pair_defaults(CRD_PAIR_OWNS_FLOW);
    crd_pair_options spring = crd_pair_defaults(CRD_PAIR_OWNS_EFFORT);
    mass.step = mass.macro = spring.step = spring.macro = h;
    mass.impedance = spring.impedance = 2;
    if (!core || crd_pair_init(crd_core_context(core), &a, &mass) < 0 ||
        crd_pair_init(crd_core_context(core), &b, &spring) < 0) {
        return false;
    }
    begin_row("wave pair, both sides", 2 * sizeof a);
    double v = 1, force = 0;
    uint32_t most = 0;
    for (int n = 0; n < SAMPLES; n++) {
        const double now = (double)n * h;
        const uint32_t start = board_ticks();
        if (n >= LATENCY) {
            (void)crd_pair_receive(&a, &way_back[n % LATENCY], now);
            (void)crd_pair_receive(&b, &way_there[n % LATENCY], now);
        }
        const double effort = crd_pair_act(&a, v, now), before = v;
        v += h * -effort / 0.5;
        crd_pair_done(&a, 0.5 * (before + v));
        const double flow = crd_pair_act(&b, force, now), old = force;
        force += h * flow * 8;
        crd_pair_done(&b, 0.5 * (old + force));
        crd_pair_send(&a, now + h, &way_there[n % LATENCY]);
        crd_pair_send(&b, now + h, &way_back[n % LATENCY]);
        const uint32_t ticks = (start - board_ticks()) & 0xffffff;
        most = ticks > most ? ticks : most;
        if (n % EVERY == 0) {
            board_number(v);
            board_number(force);
        }
    }
    end_row(most);
    return true;
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!run_element(&rows[i])) {
            board_write("failed: ");
            board_write(rows[i].name);
            board_write("\n");
            return 1;
        }
    }
    return run_pair() ? 0 : 2;
}
