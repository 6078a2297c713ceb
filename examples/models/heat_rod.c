// A rod of 100 cells whose ends are held at 0: T_i' = D (T_{i-1} - 2 T_i + T_{i+1}). Each
// derivative depends on three states, so that the Jacobian is tridiagonal. From T_i = sin(pi i /
// 101), which is an eigenvector, every cell decays as exp(-4 D sin^2(pi / 202) t).
//
// heat_rod has the cells as variables of their own, T1 ... T100; heat_array as one array T, which
// in FMI 2.0 becomes T[1] ... T[100] and says nothing about who depends on whom.
#include "numerics.h"

enum { CELLS = 100 };

typedef struct rod {
    double T[CELLS], slope[CELLS];
    double D, middle, u;
} rod;

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    rod* r = self;
    if (!(r->D > 0)) {
        host->log(host->user, CRD_MODEL_ERROR, "expected D > 0");
        return CRD_MODEL_ERROR;
    }
    for (int i = 0; i < CELLS; i++) {
        r->T[i] = sin(3.14159265358979323846 * (i + 1) / (CELLS + 1));
    }
    return CRD_MODEL_OK;
}

static crd_model_status derivatives(void* self, double t)
{
    (void)t;
    rod* r = self;
    for (int i = 0; i < CELLS; i++) {
        const double left = i > 0 ? r->T[i - 1] : 0, right = i + 1 < CELLS ? r->T[i + 1] : r->u;
        r->slope[i] = r->D * (left - 2 * r->T[i] + right);
    }
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)t;
    rod* r = self;
    r->middle = r->T[CELLS / 2];
}

// Rows of heat_rod: the cells, their derivatives, then u, middle and D.
static double partial(const void* self, int unknown, int known)
{
    const rod* r = self;
    const int u = 2 * CELLS, middle = u + 1;
    if (unknown == middle) { return known == CELLS / 2; }
    if (unknown < CELLS) { return unknown == known; }
    const int i = unknown - CELLS;
    if (known == u) { return i == CELLS - 1 ? r->D : 0; }
    return known == i ? -2 * r->D : known == i - 1 || known == i + 1 ? r->D : 0;
}

#define CELL(n)                                                                                    \
    {                                                                                              \
        .name = "T" #n, .type = CRD_FLOAT64, .causality = CRD_LOCAL,                               \
        .offset = offsetof(rod, T) + sizeof(double) * ((n)-1), .unit = "K"                         \
    }
#define SLOPE(n, of)                                                                               \
    {                                                                                              \
        .name = "der(T" #n ")", .type = CRD_FLOAT64, .causality = CRD_LOCAL,                       \
        .offset = offsetof(rod, slope) + sizeof(double) * ((n)-1), .unit = "K/s",                  \
        .derivative_of = "T" #n, .depends = of                                                     \
    }
#define COMMON                                                                                     \
    {ROW_REAL(rod, u, "u", CRD_INPUT, "K"), .description = "temperature of the right end"},        \
        {.name = "middle",                                                                         \
         .type = CRD_FLOAT64,                                                                      \
         .causality = CRD_OUTPUT,                                                                  \
         .offset = offsetof(rod, middle),                                                          \
         .unit = "K",                                                                              \
         .depends = MIDDLE},                                                                       \
    {                                                                                              \
        ROW_PARAMETER(rod, D, "D", 1000, "1/s"), .description = "conduction between cells"         \
    }

// clang-format off
static const crd_model_variable cells[] = {
    CELL(1), CELL(2), CELL(3), CELL(4), CELL(5), CELL(6), CELL(7), CELL(8),
    CELL(9), CELL(10), CELL(11), CELL(12), CELL(13), CELL(14), CELL(15), CELL(16),
    CELL(17), CELL(18), CELL(19), CELL(20), CELL(21), CELL(22), CELL(23), CELL(24),
    CELL(25), CELL(26), CELL(27), CELL(28), CELL(29), CELL(30), CELL(31), CELL(32),
    CELL(33), CELL(34), CELL(35), CELL(36), CELL(37), CELL(38), CELL(39), CELL(40),
    CELL(41), CELL(42), CELL(43), CELL(44), CELL(45), CELL(46), CELL(47), CELL(48),
    CELL(49), CELL(50), CELL(51), CELL(52), CELL(53), CELL(54), CELL(55), CELL(56),
    CELL(57), CELL(58), CELL(59), CELL(60), CELL(61), CELL(62), CELL(63), CELL(64),
    CELL(65), CELL(66), CELL(67), CELL(68), CELL(69), CELL(70), CELL(71), CELL(72),
    CELL(73), CELL(74), CELL(75), CELL(76), CELL(77), CELL(78), CELL(79), CELL(80),
    CELL(81), CELL(82), CELL(83), CELL(84), CELL(85), CELL(86), CELL(87), CELL(88),
    CELL(89), CELL(90), CELL(91), CELL(92), CELL(93), CELL(94), CELL(95), CELL(96),
    CELL(97), CELL(98), CELL(99), CELL(100),
    SLOPE(1, "T1 T2"), SLOPE(2, "T1 T2 T3"),
    SLOPE(3, "T2 T3 T4"), SLOPE(4, "T3 T4 T5"),
    SLOPE(5, "T4 T5 T6"), SLOPE(6, "T5 T6 T7"),
    SLOPE(7, "T6 T7 T8"), SLOPE(8, "T7 T8 T9"),
    SLOPE(9, "T8 T9 T10"), SLOPE(10, "T9 T10 T11"),
    SLOPE(11, "T10 T11 T12"), SLOPE(12, "T11 T12 T13"),
    SLOPE(13, "T12 T13 T14"), SLOPE(14, "T13 T14 T15"),
    SLOPE(15, "T14 T15 T16"), SLOPE(16, "T15 T16 T17"),
    SLOPE(17, "T16 T17 T18"), SLOPE(18, "T17 T18 T19"),
    SLOPE(19, "T18 T19 T20"), SLOPE(20, "T19 T20 T21"),
    SLOPE(21, "T20 T21 T22"), SLOPE(22, "T21 T22 T23"),
    SLOPE(23, "T22 T23 T24"), SLOPE(24, "T23 T24 T25"),
    SLOPE(25, "T24 T25 T26"), SLOPE(26, "T25 T26 T27"),
    SLOPE(27, "T26 T27 T28"), SLOPE(28, "T27 T28 T29"),
    SLOPE(29, "T28 T29 T30"), SLOPE(30, "T29 T30 T31"),
    SLOPE(31, "T30 T31 T32"), SLOPE(32, "T31 T32 T33"),
    SLOPE(33, "T32 T33 T34"), SLOPE(34, "T33 T34 T35"),
    SLOPE(35, "T34 T35 T36"), SLOPE(36, "T35 T36 T37"),
    SLOPE(37, "T36 T37 T38"), SLOPE(38, "T37 T38 T39"),
    SLOPE(39, "T38 T39 T40"), SLOPE(40, "T39 T40 T41"),
    SLOPE(41, "T40 T41 T42"), SLOPE(42, "T41 T42 T43"),
    SLOPE(43, "T42 T43 T44"), SLOPE(44, "T43 T44 T45"),
    SLOPE(45, "T44 T45 T46"), SLOPE(46, "T45 T46 T47"),
    SLOPE(47, "T46 T47 T48"), SLOPE(48, "T47 T48 T49"),
    SLOPE(49, "T48 T49 T50"), SLOPE(50, "T49 T50 T51"),
    SLOPE(51, "T50 T51 T52"), SLOPE(52, "T51 T52 T53"),
    SLOPE(53, "T52 T53 T54"), SLOPE(54, "T53 T54 T55"),
    SLOPE(55, "T54 T55 T56"), SLOPE(56, "T55 T56 T57"),
    SLOPE(57, "T56 T57 T58"), SLOPE(58, "T57 T58 T59"),
    SLOPE(59, "T58 T59 T60"), SLOPE(60, "T59 T60 T61"),
    SLOPE(61, "T60 T61 T62"), SLOPE(62, "T61 T62 T63"),
    SLOPE(63, "T62 T63 T64"), SLOPE(64, "T63 T64 T65"),
    SLOPE(65, "T64 T65 T66"), SLOPE(66, "T65 T66 T67"),
    SLOPE(67, "T66 T67 T68"), SLOPE(68, "T67 T68 T69"),
    SLOPE(69, "T68 T69 T70"), SLOPE(70, "T69 T70 T71"),
    SLOPE(71, "T70 T71 T72"), SLOPE(72, "T71 T72 T73"),
    SLOPE(73, "T72 T73 T74"), SLOPE(74, "T73 T74 T75"),
    SLOPE(75, "T74 T75 T76"), SLOPE(76, "T75 T76 T77"),
    SLOPE(77, "T76 T77 T78"), SLOPE(78, "T77 T78 T79"),
    SLOPE(79, "T78 T79 T80"), SLOPE(80, "T79 T80 T81"),
    SLOPE(81, "T80 T81 T82"), SLOPE(82, "T81 T82 T83"),
    SLOPE(83, "T82 T83 T84"), SLOPE(84, "T83 T84 T85"),
    SLOPE(85, "T84 T85 T86"), SLOPE(86, "T85 T86 T87"),
    SLOPE(87, "T86 T87 T88"), SLOPE(88, "T87 T88 T89"),
    SLOPE(89, "T88 T89 T90"), SLOPE(90, "T89 T90 T91"),
    SLOPE(91, "T90 T91 T92"), SLOPE(92, "T91 T92 T93"),
    SLOPE(93, "T92 T93 T94"), SLOPE(94, "T93 T94 T95"),
    SLOPE(95, "T94 T95 T96"), SLOPE(96, "T95 T96 T97"),
    SLOPE(97, "T96 T97 T98"), SLOPE(98, "T97 T98 T99"),
    SLOPE(99, "T98 T99 T100"), SLOPE(100, "T99 T100 u"),
#define MIDDLE "T51"
    COMMON
};
// clang-format on
#undef MIDDLE
#define MIDDLE "T"

static const crd_model_variable array[] = {
    {.name = "T",
     .type = CRD_FLOAT64,
     .causality = CRD_LOCAL,
     .offset = offsetof(rod, T),
     .size = CELLS,
     .unit = "K"},
    {.name = "der(T)",
     .type = CRD_FLOAT64,
     .causality = CRD_LOCAL,
     .offset = offsetof(rod, slope),
     .size = CELLS,
     .unit = "K/s",
     .derivative_of = "T",
     .depends = "T u"},
    COMMON,
};

// The inner step is short enough for RK4: the fastest mode is 4 D = 4000 1/s.
const crd_model crd_model_heat_rod = {
    .name = "heat_rod",
    .description = "heat conduction in 100 cells: a sparse Jacobian",
    .size = sizeof(rod),
    ROWS(cells),
    .default_step = 5e-4,
    .default_stop = 1,
    .initialize = initialize,
    .outputs = outputs,
    .derivatives = derivatives,
    .partial = partial,
};

const crd_model crd_model_heat_array = {
    .name = "heat_array",
    .description = "heat conduction in 100 cells that are one array",
    .size = sizeof(rod),
    ROWS(array),
    .default_step = 5e-4,
    .default_stop = 1,
    .initialize = initialize,
    .outputs = outputs,
    .derivatives = derivatives,
};
