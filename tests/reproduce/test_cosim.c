// Simulations behind the reproduction of Glumac and Kovacic (2023) and Rodriguez Frade (2021).
// References were computed independently of this library.
#include "check.h"

#include "reproduce/benchmark.h"
#include "reproduce/rotational.h"
#include "shared/reproduce.h"

#include <math.h>
#include <stdio.h>

typedef struct fixture {
    check_allocator memory;
    crd_context* ctx;
} fixture;

static int setup(void** state)
{
    fixture* f = calloc(1, sizeof *f);
    f->ctx = check_context(&f->memory);
    *state = f;
    return 0;
}

static int teardown(void** state)
{
    fixture* f = *state;
    crd_context_destroy(f->ctx);
    const bool lost = f->memory.live != 0;
    free(f);
    return lost;
}

static crd_context* context_of(void** state)
{
    return ((fixture*)*state)->ctx;
}

// ---- rotational oscillator ---------------------------------------------------------------------

// Root mean squares in the order of the tables: output defects of tau and omega, connection defects
// of omega and tau, errors of tau and omega. Errors are differences of numbers of the order of 0.1,
// so that rounding shows below 1e-11; what is 0 in theory is below 1e-15.
static void check_rms(const char* what, const crdi_rotational_result* r, const double reference[6])
{
    const double ours[6] = {r->output[0],     r->output[1], r->connection[1],
                            r->connection[0], r->error[0],  r->error[1]};
    for (int i = 0; i < 6; i++) {
        const bool zero = reference[i] < 1e-15;
        const double tolerance = zero                   ? 1e-15
                                 : reference[i] < 1e-11 ? 2e-2 * reference[i]
                                                        : 1e-6 * reference[i] + 5e-15;
        if (!(fabs(ours[i] - (zero ? 0 : reference[i])) <= tolerance)) {
            fail_msg("%s, number %d: %.12g, expected %.12g", what, i, ours[i], reference[i]);
        }
    }
}

#define STRICT CRD_DEFECT_STRICT
#define FRESH CRD_DEFECT_FRESH
#define PROGRAM CRD_DEFECT_PROGRAM
#define ANALYTIC false
#define EULER true

static const struct {
    crd_defect_scheme scheme;
    bool euler;
    int order;
    double step;
    int64_t steps;
    double rms[6];
} fixed_rows[] = {
    // clang-format off
    {STRICT, ANALYTIC, 0, 0.001, 1000,
     {1.1311271e-05, 2.6448524e-05, 4.5810552e-05, 7.2093683e-05, 5.3315081e-05, 3.1711983e-05}},
    {STRICT, ANALYTIC, 0, 0.01, 100,
     {1.1388601e-04, 2.6502327e-04, 4.5907090e-04, 7.1995606e-04, 5.3581416e-04, 3.1702866e-04}},
    {STRICT, ANALYTIC, 0, 0.1, 10,
     {1.2190562e-03, 2.7019909e-03, 4.6842826e-03, 7.0823449e-03, 5.6224920e-03, 3.1591482e-03}},
    {STRICT, ANALYTIC, 1, 0.001, 1000,
     {9.0064586e-10, 1.9460797e-09, 2.5113344e-09, 1.8250117e-08, 2.9431970e-09, 1.4900732e-09}},
    {STRICT, ANALYTIC, 1, 0.01, 100,
     {8.9871470e-08, 1.9533076e-07, 2.5114669e-07, 1.8147945e-06, 2.9390901e-07, 1.5053516e-07}},
    {STRICT, ANALYTIC, 1, 0.1, 10,
     {8.7797480e-06, 2.0203104e-05, 2.5240544e-05, 1.7222651e-04, 2.9455177e-05, 1.6479981e-05}},
    {STRICT, ANALYTIC, 2, 0.001, 1000,
     {8.4284066e-13, 7.6619835e-14, 1.1069094e-13, 2.6283051e-12, 9.8511719e-13, 1.4978298e-13}},
    {STRICT, ANALYTIC, 2, 0.01, 100,
     {8.4059151e-10, 7.6973993e-11, 1.0821593e-10, 2.6058594e-09, 9.7494489e-10, 1.5030006e-10}},
    {STRICT, ANALYTIC, 2, 0.1, 10,
     {8.1872026e-07, 7.9974157e-08, 9.9320612e-08, 2.4624063e-06, 9.4980840e-07, 1.3650716e-07}},
    {STRICT, EULER, 0, 0.001, 1000,
     {1.1299421e-05, 2.6449355e-05, 4.5811627e-05, 7.2109076e-05, 4.7504867e-05, 3.2093918e-05}},
    {STRICT, EULER, 0, 0.01, 100,
     {1.1270098e-04, 2.6510734e-04, 4.5917939e-04, 7.2148780e-04, 4.7716337e-04, 3.2093644e-04}},
    {STRICT, EULER, 0, 0.1, 10,
     {1.1008358e-03, 2.7112768e-03, 4.6960692e-03, 7.2272417e-03, 4.9804292e-03, 3.2068574e-03}},
    {STRICT, EULER, 1, 0.001, 1000,
     {6.9212189e-17, 1.6179382e-17, 5.0200591e-09, 2.7420857e-08, 6.4908567e-06, 2.5698780e-06}},
    {STRICT, EULER, 1, 0.01, 100,
     {7.0550502e-17, 1.5252945e-17, 4.9965161e-07, 2.7147013e-06, 6.5143274e-05, 2.5571499e-05}},
    {STRICT, EULER, 1, 0.1, 10,
     {6.9333406e-17, 7.8504623e-18, 4.7542825e-05, 2.4222029e-04, 6.8205618e-04, 2.4482061e-04}},
    {STRICT, EULER, 2, 0.001, 1000,
     {1.1660598e-16, 2.6869101e-17, 5.0203778e-09, 2.7430603e-08, 6.4908578e-06, 2.5698785e-06}},
    {STRICT, EULER, 2, 0.01, 100,
     {1.0851076e-16, 2.6787058e-17, 4.9997177e-07, 2.7245302e-06, 6.5144423e-05, 2.5572011e-05}},
    {STRICT, EULER, 2, 0.1, 10,
     {9.2412789e-17, 1.8766194e-17, 4.7882631e-05, 2.5304649e-04, 6.8324419e-04, 2.4536154e-04}},
    {FRESH, ANALYTIC, 0, 0.001, 1000,
     {1.1312476e-05, 2.6444274e-05, 4.5803190e-05, 1.9586589e-05, 6.1256976e-05, 2.8000731e-05}},
    {FRESH, ANALYTIC, 0, 0.01, 100,
     {1.1400404e-04, 2.6460019e-04, 4.5833764e-04, 1.9674252e-04, 6.1348869e-04, 2.8008950e-04}},
    {FRESH, ANALYTIC, 0, 0.1, 10,
     {1.2284231e-03, 2.6617149e-03, 4.6140844e-03, 2.0570730e-03, 6.2276578e-03, 2.8090566e-03}},
    {FRESH, ANALYTIC, 1, 0.001, 1000,
     {9.0064580e-10, 1.9456912e-09, 2.5113335e-09, 1.1630034e-09, 4.1116324e-09, 1.8508843e-09}},
    {FRESH, ANALYTIC, 1, 0.01, 100,
     {8.9870860e-08, 1.9494752e-07, 2.5113755e-07, 1.1630799e-07, 4.1027123e-07, 1.8549928e-07}},
    {FRESH, ANALYTIC, 1, 0.1, 10,
     {8.7674280e-06, 1.9868289e-05, 2.5154047e-05, 1.1695846e-05, 4.0263807e-05, 1.8956866e-05}},
    {FRESH, ANALYTIC, 2, 0.001, 1000,
     {8.4283745e-13, 7.6606950e-14, 1.1081985e-13, 1.2217831e-12, 8.8599724e-13, 9.1971470e-14}},
    {FRESH, ANALYTIC, 2, 0.01, 100,
     {8.4059034e-10, 7.6824627e-11, 1.0941047e-10, 1.2224083e-09, 8.7886062e-10, 9.3490401e-11}},
    {FRESH, ANALYTIC, 2, 0.1, 10,
     {8.1862692e-07, 7.8766351e-08, 1.0181835e-07, 1.2275660e-06, 8.6645544e-07, 9.3901813e-08}},
    {FRESH, EULER, 0, 0.001, 1000,
     {1.1300626e-05, 2.6445104e-05, 4.5804264e-05, 1.9573258e-05, 5.4692928e-05, 2.8350849e-05}},
    {FRESH, EULER, 0, 0.01, 100,
     {1.1281957e-04, 2.6468338e-04, 4.5844506e-04, 1.9540922e-04, 5.4741890e-04, 2.8362908e-04}},
    {FRESH, EULER, 0, 0.1, 10,
     {1.1106307e-03, 2.6701453e-03, 4.6248274e-03, 1.9236688e-03, 5.5242378e-03, 2.8483266e-03}},
    {FRESH, EULER, 1, 0.001, 1000,
     {6.9578251e-17, 1.6179382e-17, 5.0200586e-09, 2.3230085e-09, 6.4927061e-06, 2.5707224e-06}},
    {FRESH, EULER, 1, 0.01, 100,
     {7.0178259e-17, 1.3540625e-17, 4.9964573e-07, 2.2962657e-07, 6.5323870e-05, 2.5654036e-05}},
    {FRESH, EULER, 1, 0.1, 10,
     {4.9065389e-17, 1.2412671e-17, 4.7466540e-05, 2.0614229e-05, 6.9547770e-04, 2.5109153e-04}},
    {FRESH, EULER, 2, 0.001, 1000,
     {1.1760871e-16, 2.7348147e-17, 5.0203773e-09, 2.3233959e-09, 6.4927061e-06, 2.5707224e-06}},
    {FRESH, EULER, 2, 0.01, 100,
     {1.1862291e-16, 2.2887834e-17, 4.9996585e-07, 2.3001818e-07, 6.5323868e-05, 2.5654036e-05}},
    {FRESH, EULER, 2, 0.1, 10,
     {8.3990513e-17, 2.0981243e-17, 4.7802431e-05, 2.1046293e-05, 6.9544764e-04, 2.5109153e-04}},
    {PROGRAM, ANALYTIC, 0, 0.001, 1000,
     {1.1312476e-05, 2.6444274e-05, 4.5803190e-05, 1.9586589e-05, 6.1256976e-05, 2.8000731e-05}},
    {PROGRAM, ANALYTIC, 0, 0.01, 100,
     {1.1400404e-04, 2.6460019e-04, 4.5833764e-04, 1.9674252e-04, 6.1348869e-04, 2.8008950e-04}},
    {PROGRAM, ANALYTIC, 0, 0.1, 10,
     {1.2284231e-03, 2.6617149e-03, 4.6140844e-03, 2.0570730e-03, 6.2276578e-03, 2.8090566e-03}},
    {PROGRAM, ANALYTIC, 1, 0.001, 1000,
     {9.1551637e-10, 1.9448681e-09, 9.1287440e-07, 3.6526026e-07, 1.8257865e-06, 5.2518425e-09}},
    {PROGRAM, ANALYTIC, 1, 0.01, 100,
     {1.0384571e-07, 1.9411837e-07, 2.8868652e-05, 1.1583795e-05, 5.7749056e-05, 5.2393451e-07}},
    {PROGRAM, ANALYTIC, 1, 0.1, 10,
     {1.8763590e-05, 1.8978645e-05, 9.1335921e-04, 3.8100477e-04, 1.8299622e-03, 5.1014079e-05}},
    {PROGRAM, ANALYTIC, 2, 0.001, 1000,
     {8.4177670e-13, 7.6979769e-14, 9.1287094e-07, 3.6531347e-07, 1.8258416e-06, 3.7698092e-09}},
    {PROGRAM, ANALYTIC, 2, 0.01, 100,
     {8.2993913e-10, 8.0523687e-11, 2.8867547e-05, 1.1601415e-05, 5.7766428e-05, 3.7602325e-07}},
    {PROGRAM, ANALYTIC, 2, 0.1, 10,
     {7.1598192e-07, 1.1203650e-07, 9.1296928e-04, 3.8873436e-04, 1.8352835e-03, 3.6539046e-05}},
    {PROGRAM, EULER, 0, 0.001, 1000,
     {1.1300626e-05, 2.6445104e-05, 4.5804264e-05, 1.9573258e-05, 5.4692928e-05, 2.8350849e-05}},
    {PROGRAM, EULER, 0, 0.01, 100,
     {1.1281957e-04, 2.6468338e-04, 4.5844506e-04, 1.9540922e-04, 5.4741890e-04, 2.8362908e-04}},
    {PROGRAM, EULER, 0, 0.1, 10,
     {1.1106307e-03, 2.6701453e-03, 4.6248274e-03, 1.9236688e-03, 5.5242378e-03, 2.8483266e-03}},
    {PROGRAM, EULER, 1, 0.001, 1000,
     {6.9578251e-17, 1.6179382e-17, 9.1288473e-07, 3.6515576e-07, 6.7445027e-06, 2.5707224e-06}},
    {PROGRAM, EULER, 1, 0.01, 100,
     {7.0178259e-17, 1.3540625e-17, 2.8871837e-05, 1.1549288e-05, 8.7166659e-05, 2.5654036e-05}},
    {PROGRAM, EULER, 1, 0.1, 10,
     {4.9065389e-17, 1.2412671e-17, 9.1410416e-04, 3.6572979e-04, 1.9469337e-03, 2.5109153e-04}},
    {PROGRAM, EULER, 2, 0.001, 1000,
     {1.1760871e-16, 2.7348147e-17, 9.1288473e-07, 3.6515576e-07, 6.7445027e-06, 2.5707224e-06}},
    {PROGRAM, EULER, 2, 0.01, 100,
     {1.1862291e-16, 2.2887834e-17, 2.8871837e-05, 1.1549288e-05, 8.7166659e-05, 2.5654036e-05}},
    {PROGRAM, EULER, 2, 0.1, 10,
     {8.2935645e-17, 2.0981243e-17, 9.1410416e-04, 3.6572979e-04, 1.9469337e-03, 2.5109153e-04}},
    // clang-format on
};

static void defects_and_errors_with_fixed_steps_are_the_known_ones(void** state)
{
    for (size_t i = 0; i < sizeof fixed_rows / sizeof *fixed_rows; i++) {
        char what[96];
        crdi_rotational_result r;
        crdi_rotational_run(&(crdi_rotational_options){.scheme = fixed_rows[i].scheme,
                                                       .euler = fixed_rows[i].euler,
                                                       .m = fixed_rows[i].order,
                                                       .n = fixed_rows[i].order,
                                                       .step = fixed_rows[i].step,
                                                       .until = 1},
                            &r);
        snprintf(what, sizeof what, "%s %s, order %d, H = %g",
                 crd_defect_scheme_name(fixed_rows[i].scheme),
                 fixed_rows[i].euler ? "Euler" : "analytic", fixed_rows[i].order,
                 fixed_rows[i].step);
        check_int(r.steps, fixed_rows[i].steps);
        check_rms(what, &r, fixed_rows[i].rms);
    }
}

static const struct {
    crd_defect_scheme scheme;
    bool euler;
    int order;
    double until, tolerance;
    int64_t steps;
    double control[4]; // end, mean step, largest step, largest eps over tol
    double rms[6];
} variable_rows[] = {
    // clang-format off
    {STRICT, ANALYTIC, 0, 1, 0.001, 108, {1.0148619, 0.0093968698, 0.015125196, 9.3348095e-01},
     {0.00013997892, 0.00031526307, 0.00054612758, 0.00084570248, 0.00064094964, 0.00037484147}},
    {STRICT, ANALYTIC, 0, 1, 0.01, 40, {1.0461458, 0.026153645, 0.079021839, 4.6939288e-01},
     {0.00065871195, 0.0013920272, 0.0024131156, 0.0034919737, 0.0028888845, 0.0016246234}},
    {STRICT, ANALYTIC, 1, 1, 0.001, 24, {1.1011229, 0.045880123, 0.13513561, 3.2333328e-01},
     {1.4152582e-05, 2.3393632e-05, 2.9079484e-05, 0.00019036931, 3.5752514e-05, 1.922422e-05}},
    {STRICT, ANALYTIC, 1, 1, 0.01, 19, {1.1473809, 0.060388466, 0.22422635, 8.1254985e-02},
     {4.0814234e-05, 6.5117499e-05, 7.9917274e-05, 0.00047199693, 0.00010004544, 5.5628183e-05}},
    {STRICT, ANALYTIC, 2, 1, 0.001, 17, {1.117152, 0.065714825, 0.27297609, 1.9455549e-02},
     {6.0434503e-06, 1.9369027e-07, 5.4268488e-07, 1.2924263e-05, 6.8266059e-06, 3.3102278e-07}},
    {STRICT, ANALYTIC, 2, 1, 0.01, 16, {1.3701196, 0.085632477, 0.4051452, 4.5820028e-03},
     {1.5565534e-05, 9.8379681e-07, 2.9270721e-06, 3.2379875e-05, 1.9090343e-05, 8.6680996e-07}},
    {STRICT, EULER, 0, 1, 0.001, 108, {1.0124955, 0.0093749586, 0.015060984, 9.3417523e-01},
     {0.0001375739, 0.00031458926, 0.00054488458, 0.0008461827, 0.00056441977, 0.00037858351}},
    {STRICT, EULER, 0, 1, 0.01, 40, {1.0402096, 0.026005241, 0.078132053, 4.7617362e-01},
     {0.00060876237, 0.0013846945, 0.0023983613, 0.0035240396, 0.0025178322, 0.0016346265}},
    {STRICT, EULER, 1, 1, 0.001, 26, {1.0865747, 0.041791336, 0.12297422, 4.1305899e-01},
     {4.0768924e-17, 1.7201981e-17, 4.6435011e-05, 0.00023643903, 0.00059656207, 0.00019544779}},
    {STRICT, EULER, 1, 1, 0.01, 20, {1.0155018, 0.050775088, 0.20088492, 8.2909274e-02},
     {8.3785033e-17, 1.3555645e-17, 0.00010938906, 0.00046560262, 0.00087533974, 0.000263416}},
    {STRICT, EULER, 2, 1, 0.001, 24, {1.0676795, 0.044486647, 0.12217749, 4.0490153e-01},
     {1.1350628e-16, 2.6830115e-17, 4.5688647e-05, 0.0002314674, 0.00057871389, 0.0001903556}},
    {STRICT, EULER, 2, 1, 0.01, 19, {1.1944074, 0.06286355, 0.22064075, 1.0930197e-01},
     {1.3429164e-16, 3.014071e-17, 0.00013525622, 0.00061151456, 0.0011847699, 0.00034478258}},
    {STRICT, ANALYTIC, 0, 50, 0.001, 585, {50.488033, 0.08630433, 0.84536947, 1.5326133e+00},
     {0.00090204948, 0.00036070147, 0.00062394502, 0.00045256414, 0.00090101017, 0.00057574347}},
    {STRICT, ANALYTIC, 0, 50, 0.01, 120, {51.487617, 0.42906348, 2.9021475, 1.0881097e+00},
     {0.00550759, 0.0020863285, 0.0036534199, 0.0029413592, 0.0052081696, 0.0033501745}},
    {STRICT, ANALYTIC, 1, 50, 0.001, 122, {50.433207, 0.41338695, 1.3534578, 1.4654815e+00},
     {0.00028065587, 0.00010217482, 0.00012441247, 0.00085202273, 0.0004594916, 0.00014727884}},
    {STRICT, ANALYTIC, 1, 50, 0.01, 62, {52.134285, 0.84087557, 2.8814483, 1.7067197e+00},
     {0.0018244806, 0.00058669215, 0.0010526433, 0.0071592759, 0.0035959906, 0.0011110613}},
    {STRICT, ANALYTIC, 2, 50, 0.001, 65, {50.102989, 0.77081522, 1.3653699, 2.1916318e+00},
     {0.000150244, 4.5492624e-05, 0.00011296304, 0.00095985184, 0.00037643539, 0.00015732722}},
    {STRICT, ANALYTIC, 2, 50, 0.01, 49, {50.366021, 1.027878, 2.0411501, 2.5667385e+00},
     {0.00061081288, 0.00017249296, 0.0015414915, 0.011865746, 0.0056913485, 0.0013606228}},
    {STRICT, EULER, 0, 50, 0.001, 603, {50.556322, 0.08384133, 0.67141871, 1.5821746e+00},
     {0.00094048861, 0.0003815868, 0.00066092772, 0.00047414508, 0.0012510257, 0.0014446033}},
    {STRICT, EULER, 0, 50, 0.01, 133, {50.92501, 0.38289481, 1.4874867, 1.2407006e+00},
     {0.0077445393, 0.0031217381, 0.0054070089, 0.0042683618, 0.009544846, 0.010689009}},
    {STRICT, EULER, 1, 50, 0.001, 136, {50.5447, 0.3716522, 1.0162694, 2.1161483e+00},
     {3.108805e-17, 6.3781065e-18, 0.00036176681, 0.0010506463, 0.0040940963, 0.0063925566}},
    {STRICT, EULER, 1, 50, 0.01, 72, {51.275718, 0.71216275, 1.85732, 2.6535651e+00},
     {3.4874841e-17, 6.5952088e-18, 0.003499194, 0.011072046, 0.011984632, 0.019936429}},
    {STRICT, EULER, 2, 50, 0.001, 134, {50.433906, 0.37637244, 1.0233797, 2.1407908e+00},
     {4.68623e-17, 1.1324448e-17, 0.00036236955, 0.0010517378, 0.0040981499, 0.0063980651}},
    {STRICT, EULER, 2, 50, 0.01, 70, {51.05634, 0.72937628, 1.9319244, 2.8580323e+00},
     {6.660017e-17, 1.2812339e-17, 0.0035295725, 0.011051715, 0.011993943, 0.019984011}},
    {FRESH, ANALYTIC, 0, 1, 0.001, 84, {1.0145726, 0.012078245, 0.022080178, 9.1264766e-01},
     {0.00020144754, 0.00044747935, 0.00077521893, 0.00034643955, 0.0010427846, 0.00047207151}},
    {FRESH, ANALYTIC, 0, 1, 0.01, 37, {1.0349846, 0.027972556, 0.092570998, 3.8574737e-01},
     {0.0007732716, 0.0015968696, 0.0027685279, 0.001303383, 0.0037530926, 0.0016759712}},
    {FRESH, ANALYTIC, 1, 1, 0.001, 20, {1.0806521, 0.054032604, 0.19703861, 1.0130689e-01},
     {2.8971604e-05, 4.7984108e-05, 6.0087113e-05, 3.8236684e-05, 9.8700399e-05, 4.6219212e-05}},
    {FRESH, ANALYTIC, 1, 1, 0.01, 17, {1.1352422, 0.066778955, 0.28774949, 2.1791772e-02},
     {6.643632e-05, 0.00010662513, 0.00013225644, 8.7591348e-05, 0.00021597096, 0.000102947}},
    {FRESH, ANALYTIC, 2, 1, 0.001, 17, {1.2682223, 0.074601309, 0.31346479, 2.1375425e-02},
     {8.0279878e-06, 3.747336e-07, 8.9049066e-07, 1.3227384e-05, 8.9095607e-06, 3.4517119e-07}},
    {FRESH, ANALYTIC, 2, 1, 0.01, 15, {1.0583575, 0.070557169, 0.33885314, 3.4436999e-03},
     {1.2967728e-05, 4.09396e-07, 7.5598e-07, 2.145629e-05, 1.393425e-05, 5.4225031e-07}},
    {FRESH, EULER, 0, 1, 0.001, 84, {1.0143023, 0.012075027, 0.022065535, 9.1293100e-01},
     {0.00019728646, 0.00044765288, 0.00077535753, 0.00034171017, 0.00092764042, 0.00047836147}},
    {FRESH, EULER, 0, 1, 0.01, 37, {1.0345067, 0.027959642, 0.09246104, 3.8671508e-01},
     {0.00071305413, 0.0016007728, 0.0027726198, 0.001235046, 0.003331438, 0.001700041}},
    {FRESH, EULER, 1, 1, 0.001, 23, {1.1134865, 0.048412458, 0.1810755, 1.5379683e-01},
     {1.0530677e-16, 2.0189426e-17, 8.9834773e-05, 4.1205863e-05, 0.00087613464, 0.00026995653}},
    {FRESH, EULER, 1, 1, 0.01, 19, {1.0891622, 0.057324325, 0.26306609, 2.9344001e-02},
     {6.5822213e-17, 6.1209884e-18, 0.00017464042, 5.6656756e-05, 0.0012657044, 0.00036073664}},
    {FRESH, EULER, 2, 1, 0.001, 21, {1.1168075, 0.053181307, 0.18142056, 1.5443733e-01},
     {9.4267856e-17, 2.081187e-17, 9.0225277e-05, 4.1622689e-05, 0.00088155962, 0.0002714667}},
    {FRESH, EULER, 2, 1, 0.01, 17, {1.0333067, 0.060782747, 0.25342701, 2.7008401e-02},
     {1.2974701e-16, 3.1994032e-17, 0.00016104043, 4.5240663e-05, 0.0011410772, 0.00032871987}},
    {FRESH, ANALYTIC, 0, 50, 0.001, 779, {50.014648, 0.064203656, 0.73820235, 1.7334428e+00},
     {0.00059105086, 0.00025671975, 0.00044310336, 0.0010083588, 0.00089434649, 0.00022895625}},
    {FRESH, ANALYTIC, 0, 50, 0.01, 135, {50.891547, 0.37697442, 2.1425295, 1.3801899e+00},
     {0.004220849, 0.0016351104, 0.0028445018, 0.0070266139, 0.0057236067, 0.0013844529}},
    {FRESH, ANALYTIC, 1, 50, 0.001, 83, {50.435174, 0.6076527, 2.1404129, 1.1651603e+00},
     {0.00066212781, 0.00021644387, 0.00028178245, 0.00075227219, 0.00079172233, 0.00024357632}},
    {FRESH, ANALYTIC, 1, 50, 0.01, 48, {51.996657, 1.0832637, 4.1705225, 6.9936002e-01},
     {0.0037737891, 0.00098615323, 0.0014517669, 0.0042920592, 0.0042938901, 0.0011305264}},
    {FRESH, ANALYTIC, 2, 50, 0.001, 49, {50.015831, 1.0207312, 3.0394428, 7.1214313e-01},
     {0.00041823216, 0.00012135727, 0.00019680024, 0.00047879248, 0.00046880994, 0.00014084175}},
    {FRESH, ANALYTIC, 2, 50, 0.01, 37, {51.756648, 1.3988283, 4.6576268, 6.7051416e-01},
     {0.0015220146, 0.00044714521, 0.0014812077, 0.0032996219, 0.0029204164, 0.00077817494}},
    {FRESH, EULER, 0, 50, 0.001, 801, {50.452738, 0.062987188, 0.6423456, 1.7853150e+00},
     {0.00060357269, 0.00026343283, 0.00045627904, 0.0010454186, 0.001045992, 0.00094476767}},
    {FRESH, EULER, 0, 50, 0.01, 147, {50.037325, 0.34038997, 1.6151009, 1.5183878e+00},
     {0.0051939875, 0.0020771286, 0.0035976923, 0.0089962502, 0.0089767782, 0.0070217858}},
    {FRESH, EULER, 1, 50, 0.001, 116, {50.820681, 0.43810932, 1.7866889, 2.2302854e+00},
     {3.1346442e-17, 6.4327452e-18, 0.00043479075, 0.0011157271, 0.0049655421, 0.0081598089}},
    {FRESH, EULER, 1, 50, 0.01, 64, {50.196893, 0.78432645, 2.2229446, 2.2412989e+00},
     {4.4204572e-17, 1.0151862e-17, 0.0044198582, 0.011345702, 0.013086723, 0.032244521}},
    {FRESH, EULER, 2, 50, 0.001, 114, {50.372077, 0.44186033, 1.3524246, 1.7485627e+00},
     {5.4172067e-17, 1.0727822e-17, 0.0004223078, 0.0010836038, 0.0049770418, 0.0081265363}},
    {FRESH, EULER, 2, 50, 0.01, 63, {50.571563, 0.80272322, 1.9263242, 2.0981950e+00},
     {7.8872977e-17, 1.4859744e-17, 0.0040573566, 0.01045527, 0.012502104, 0.029981639}},
    {PROGRAM, ANALYTIC, 0, 1, 0.001, 84, {1.0145726, 0.012078245, 0.022080178, 9.1264766e-01},
     {0.00020144754, 0.00044747935, 0.00077521893, 0.00034643955, 0.0010427846, 0.00047207151}},
    {PROGRAM, ANALYTIC, 0, 1, 0.01, 37, {1.0349846, 0.027972556, 0.092570998, 3.8574737e-01},
     {0.0007732716, 0.0015968696, 0.0027685279, 0.001303383, 0.0037530926, 0.0016759712}},
    {PROGRAM, ANALYTIC, 1, 1, 0.001, 20, {1.0806521, 0.054032604, 0.19703861, 1.0130689e-01},
     {2.8971604e-05, 4.7984108e-05, 6.008712e-05, 3.8236686e-05, 9.8700405e-05, 4.6219234e-05}},
    {PROGRAM, ANALYTIC, 1, 1, 0.01, 17, {1.1352422, 0.066778955, 0.28774949, 2.1791772e-02},
     {6.643632e-05, 0.00010662513, 0.00013225644, 8.7591349e-05, 0.00021597096, 0.00010294702}},
    {PROGRAM, ANALYTIC, 2, 1, 0.001, 17, {1.2682222, 0.074601309, 0.31346479, 2.1375425e-02},
     {8.0279878e-06, 3.7473359e-07, 8.9085952e-07, 1.3227388e-05, 8.9097148e-06, 3.4515694e-07}},
    {PROGRAM, ANALYTIC, 2, 1, 0.01, 15, {1.0583575, 0.070557169, 0.33885314, 3.4436999e-03},
     {1.2967728e-05, 4.0939599e-07, 7.5650059e-07, 2.1456293e-05, 1.3934373e-05, 5.4222402e-07}},
    {PROGRAM, EULER, 0, 1, 0.001, 84, {1.0143023, 0.012075027, 0.022065535, 9.1293100e-01},
     {0.00019728646, 0.00044765288, 0.00077535753, 0.00034171017, 0.00092764042, 0.00047836147}},
    {PROGRAM, EULER, 0, 1, 0.01, 37, {1.0345067, 0.027959642, 0.09246104, 3.8671508e-01},
     {0.00071305413, 0.0016007728, 0.0027726198, 0.001235046, 0.003331438, 0.001700041}},
    {PROGRAM, EULER, 1, 1, 0.001, 21, {1.1168075, 0.053181307, 0.18142056, 1.5443733e-01},
     {5.790845e-17, 1.5569752e-17, 9.0225281e-05, 4.1622691e-05, 0.00088155963, 0.0002714667}},
    {PROGRAM, EULER, 1, 1, 0.01, 17, {1.0333067, 0.060782747, 0.25342701, 2.7008401e-02},
     {7.6759365e-17, 1.8927925e-17, 0.00016104043, 4.5240665e-05, 0.0011410772, 0.00032871987}},
    {PROGRAM, EULER, 2, 1, 0.001, 21, {1.1168075, 0.053181307, 0.18142056, 1.5443733e-01},
     {9.7883146e-17, 2.6317684e-17, 9.0225281e-05, 4.1622691e-05, 0.00088155963, 0.0002714667}},
    {PROGRAM, EULER, 2, 1, 0.01, 17, {1.0333067, 0.060782747, 0.25342701, 2.7008401e-02},
     {1.2974701e-16, 3.1994032e-17, 0.00016104043, 4.5240665e-05, 0.0011410772, 0.00032871987}},
    {PROGRAM, ANALYTIC, 0, 50, 0.001, 779, {50.014648, 0.064203656, 0.73820235, 1.7334428e+00},
     {0.00059105086, 0.00025671975, 0.00044310336, 0.0010083588, 0.00089434649, 0.00022895625}},
    {PROGRAM, ANALYTIC, 0, 50, 0.01, 135, {50.891547, 0.37697442, 2.1425295, 1.3801899e+00},
     {0.004220849, 0.0016351104, 0.0028445018, 0.0070266139, 0.0057236067, 0.0013844529}},
    {PROGRAM, ANALYTIC, 1, 50, 0.001, 83, {50.435174, 0.6076527, 2.1404129, 1.1651603e+00},
     {0.00066212781, 0.00021644387, 0.00028178245, 0.00075227219, 0.0007917223, 0.00024357632}},
    {PROGRAM, ANALYTIC, 1, 50, 0.01, 48, {51.996657, 1.0832637, 4.1705225, 6.9936002e-01},
     {0.0037737891, 0.00098615323, 0.0014517669, 0.0042920592, 0.0042938901, 0.0011305264}},
    {PROGRAM, ANALYTIC, 2, 50, 0.001, 49, {50.015831, 1.0207312, 3.0394428, 7.1214313e-01},
     {0.00041823216, 0.00012135727, 0.00019680024, 0.00047879248, 0.00046880995, 0.00014084175}},
    {PROGRAM, ANALYTIC, 2, 50, 0.01, 37, {51.756648, 1.3988283, 4.6576268, 6.7051416e-01},
     {0.0015220146, 0.00044714521, 0.0014812077, 0.0032996219, 0.0029204164, 0.00077817494}},
    {PROGRAM, EULER, 0, 50, 0.001, 801, {50.452738, 0.062987188, 0.6423456, 1.7853150e+00},
     {0.00060357269, 0.00026343283, 0.00045627904, 0.0010454186, 0.001045992, 0.00094476767}},
    {PROGRAM, EULER, 0, 50, 0.01, 147, {50.037325, 0.34038997, 1.6151009, 1.5183878e+00},
     {0.0051939875, 0.0020771286, 0.0035976923, 0.0089962502, 0.0089767782, 0.0070217858}},
    {PROGRAM, EULER, 1, 50, 0.001, 114, {50.372077, 0.44186033, 1.3524246, 1.7485627e+00},
     {3.3799951e-17, 7.1969422e-18, 0.0004223078, 0.0010836038, 0.0049770418, 0.0081265363}},
    {PROGRAM, EULER, 1, 50, 0.01, 63, {50.571563, 0.80272322, 1.9263242, 2.0981950e+00},
     {4.6661883e-17, 8.7911432e-18, 0.0040573566, 0.01045527, 0.012502104, 0.029981639}},
    {PROGRAM, EULER, 2, 50, 0.001, 114, {50.372077, 0.44186033, 1.3524246, 1.7485627e+00},
     {5.7132345e-17, 1.2165053e-17, 0.0004223078, 0.0010836038, 0.0049770418, 0.0081265363}},
    {PROGRAM, EULER, 2, 50, 0.01, 63, {50.571563, 0.80272322, 1.9263242, 2.0981950e+00},
     {7.8872977e-17, 1.4859744e-17, 0.0040573566, 0.01045527, 0.012502104, 0.029981639}},
    // clang-format on
};

static void the_controller_makes_the_known_steps(void** state)
{
    for (size_t i = 0; i < sizeof variable_rows / sizeof *variable_rows; i++) {
        char what[96];
        crdi_rotational_result r;
        crdi_rotational_run(&(crdi_rotational_options){.scheme = variable_rows[i].scheme,
                                                       .euler = variable_rows[i].euler,
                                                       .m = variable_rows[i].order,
                                                       .n = variable_rows[i].order,
                                                       .step = 1e-4,
                                                       .tolerance = variable_rows[i].tolerance,
                                                       .until = variable_rows[i].until},
                            &r);
        snprintf(what, sizeof what, "%s %s, order %d, tol = %g, %g s",
                 crd_defect_scheme_name(variable_rows[i].scheme),
                 variable_rows[i].euler ? "Euler" : "analytic", variable_rows[i].order,
                 variable_rows[i].tolerance, variable_rows[i].until);
        check_int(r.steps, variable_rows[i].steps);
        const double ours[4] = {r.end, r.mean_step, r.max_step, r.worst};
        for (int j = 0; j < 4; j++) { // 8 digits are given
            check_near(ours[j], variable_rows[i].control[j], 1e-7 * variable_rows[i].control[j]);
        }
        check_rms(what, &r, variable_rows[i].rms);
    }
}

typedef struct path {
    double time, total, worst;
    int64_t steps;
} path;

static void see_path(void* user, double t, double step, const double y[2], const double exact[2])
{
    path* p = user;
    check(t > p->time && step > 0);
    p->time = t;
    p->total += step;
    p->steps++;
    p->worst = fmax(p->worst, fmax(fabs(y[0] - exact[0]), fabs(y[1] - exact[1])));
}

static void what_is_seen_is_the_run(void** state)
{
    for (int variable = 0; variable < 2; variable++) {
        path p = {0};
        crdi_rotational_result r;
        crdi_rotational_run(&(crdi_rotational_options){.scheme = CRD_DEFECT_FRESH,
                                                       .m = 2,
                                                       .n = 2,
                                                       .step = variable ? 1e-4 : 0.05,
                                                       .tolerance = variable ? 1e-4 : 0,
                                                       .until = 50,
                                                       .see = see_path,
                                                       .user = &p},
                            &r);
        check_int(p.steps, r.steps);
        check_near(p.time, r.end, 0);
        check_near(p.total, r.end, 1e-12 * r.end);
        check(p.time >= 50);
        check(p.worst > 0 && p.worst < 1e-3); // outputs are up to 0.3
    }
}

// ---- benchmark systems -------------------------------------------------------------------------

static crdi_benchmark_result bench(crd_context* ctx, const crdi_benchmark_options* o)
{
    crdi_benchmark_result r;
    check_ok(crdi_benchmark_run(ctx, o, &r));
    return r;
}

static void references_keep_their_energy_where_nothing_dissipates(void** state)
{
    const struct {
        const char* system;
        double start, tolerance;
    } rows[] = {{"LO1", 10000, 1e-12}, {"NLO1", 10000, 1e-7}, {"PEN", NAN, 1e-10}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const crdi_benchmark_options o = crdi_benchmark_defaults(rows[i].system, 1e-3);
        const crdi_benchmark_result r = bench(context_of(state), &o);
        if (isfinite(rows[i].start)) { check_near(r.start, rows[i].start, 1e-9); }
        check_near(r.exact, r.start, rows[i].tolerance * fabs(r.start));
    }
}

// Without feedthrough a single rate only splits what the integrator does anyway.
static void a_single_rate_without_feedthrough_is_the_system_without_a_cut(void** state)
{
    for (int damped = 0; damped < 2; damped++) {
        crdi_benchmark_options o = crdi_benchmark_defaults(damped ? "LO2" : "LO1", 5e-3);
        o.fresh = true;
        const crdi_benchmark_result whole = bench(context_of(state), &o);
        o.fresh = false;
        for (int cut = CRDI_CUT_MOTION_MOTION; cut <= CRDI_CUT_FORCE_FORCE; cut++) {
            o.cut = (crdi_benchmark_cut)cut;
            const crdi_benchmark_result r = bench(context_of(state), &o);
            check_near(r.error[0], whole.error[0], 1e-9);
            check_near(r.error[1], whole.error[1], 1e-9);
            check_near(r.energy, whole.energy, 1e-9 * whole.energy);
        }
        check(whole.worst_energy < 0.1);
    }
}

// The coupling of LO acts as a damper of -kc tau: -0.1 Ns/m at 1 ms, -0.5 at 5 ms, against 0.2.
static void the_damped_oscillator_is_stable_as_long_as_its_damping_beats_the_delay(void** state)
{
    const double mu1 = crd_bond_mu(1e-3, 1e-3, 0), mu5 = crd_bond_mu(5e-3, 5e-3, 0);
    check(100 * 2 * mu1 * 1e-3 < 0.2);
    check(100 * 2 * mu5 * 5e-3 > 0.2);
    crdi_benchmark_options o = crdi_benchmark_defaults("LO2", 1e-3);
    crdi_benchmark_result r = bench(context_of(state), &o);
    check(r.energy < r.start);
    o = crdi_benchmark_defaults("LO2", 5e-3);
    r = bench(context_of(state), &o);
    check(r.energy > 5 * r.start);
}

static void corrections_take_most_of_the_energy_error_away(void** state)
{
    const struct {
        const char* system;
        double ki;
    } rows[] = {{"LO1", 0}, {"LO2", 0}, {"NLO1", 0.25}, {"NLO2", 0}, {"PEN", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crdi_benchmark_options o = crdi_benchmark_defaults(rows[i].system, 1e-3);
        const crdi_benchmark_result without = bench(context_of(state), &o);
        check(without.gain > 0.05);
        o.bond.ki = rows[i].ki;
        for (int c = CRD_CORRECT_POWER; c <= CRD_CORRECT_LEAD; c++) {
            o.bond.correction = (crd_correction)c;
            const crdi_benchmark_result r = bench(context_of(state), &o);
            check(fabs(r.gain) < 0.25 * without.gain);
        }
    }
}

// The mean of a prediction by ABn makes the error fall with H^n; the first steps, where the past is
// short, cost some of it.
static void means_of_predictions_converge_with_their_order(void** state)
{
    const crd_predictor predictors[3] = {CRD_PREDICT_HOLD, CRD_PREDICT_AB2, CRD_PREDICT_AB3};
    const double least[3] = {0.9, 1.9, 1.9}, most[3] = {1.6, 2.1, 3.1};
    for (int i = 0; i < 3; i++) {
        double rms[2];
        for (int j = 0; j < 2; j++) {
            crdi_benchmark_options o = crdi_benchmark_defaults("PEN", j == 0 ? 5e-3 : 2.5e-3);
            o.accurate = o.fresh = true;
            o.predictor = predictors[i];
            const crdi_benchmark_result r = bench(context_of(state), &o);
            rms[j] = hypot(r.rms[0], r.rms[1]);
        }
        const double order = log2(rms[0] / rms[1]);
        if (!(order > least[i] && order < most[i])) { fail_msg("%d: order %g", i, order); }
    }
}

static void runs_allocate_nothing(void** state)
{
    fixture* f = *state;
    const int64_t before = f->memory.allocations;
    crdi_benchmark_options o = crdi_benchmark_defaults("HC", 0.01);
    o.step1 = 0.25e-3;
    o.until = 0.5;
    bench(f->ctx, &o);
    check_int(f->memory.allocations, before);
}

// Of the longer paper only some of the failures, to save time.
static void allocations_of_a_reproduction_may_fail(void** state)
{
    fixture* f = *state;
    const struct {
        const char* paper;
        int every;
    } papers[] = {{"glumac2023", 2}, {"rodriguez2021-ch5", 8}};
    for (size_t i = 0; i < sizeof papers / sizeof *papers; i++) {
        for (int64_t fail_at = 0;; fail_at += papers[i].every) {
            check(fail_at < 200);
            crdi_reproduction* r = NULL;
            f->memory.allocations = 0;
            f->memory.fail_at = fail_at;
            const crd_status st = crdi_reproduce(f->ctx, papers[i].paper, &r);
            f->memory.fail_at = -1;
            if (st == CRD_OK) {
                crdi_reproduction_destroy(r);
                break;
            }
            check_int(st, CRD_E_MEMORY);
            check(r == NULL);
            check_int(f->memory.live, 1); // the context
        }
    }
}

static void runs_that_make_no_sense_are_refused(void** state)
{
    crd_context* ctx = context_of(state);
    crdi_benchmark_result r;
    crdi_benchmark_options o = crdi_benchmark_defaults("XO1", 1e-3);
    check_status(crdi_benchmark_run(ctx, &o, &r), CRD_E_NOT_FOUND);
    o = crdi_benchmark_defaults("LO1", 1e-3);
    const double steps[] = {0, -1e-3, NAN, INFINITY, 0.7e-3, 1e-12};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        o.step2 = steps[i];
        check_status(crdi_benchmark_run(ctx, &o, &r), CRD_E_RANGE);
        check_contains(crd_error_text(ctx), "a multiple of the smaller");
    }
    o.step2 = 1e-3;
    o.until = NAN;
    check_status(crdi_benchmark_run(ctx, &o, &r), CRD_E_RANGE);
    o = crdi_benchmark_defaults("PEN", 1e-3);
    o.cut = CRDI_CUT_FORCE_FORCE;
    check_status(crdi_benchmark_run(ctx, &o, &r), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "PEN is cut between force and motion only");
    o.cut = CRDI_CUT_FORCE_MOTION;
    o.accurate = true;
    o.step2 = 1e-4;
    check_status(crdi_benchmark_run(ctx, &o, &r), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "single rate");
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(defects_and_errors_with_fixed_steps_are_the_known_ones),
        test(the_controller_makes_the_known_steps),
        test(what_is_seen_is_the_run),
        test(references_keep_their_energy_where_nothing_dissipates),
        test(a_single_rate_without_feedthrough_is_the_system_without_a_cut),
        test(the_damped_oscillator_is_stable_as_long_as_its_damping_beats_the_delay),
        test(corrections_take_most_of_the_energy_error_away),
        test(means_of_predictions_converge_with_their_order),
        test(runs_allocate_nothing),
        test(allocations_of_a_reproduction_may_fail),
        test(runs_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
