// What the files of the coupling module share.
#pragma once
#include <math.h>

#include "cardan/coupling.h"

// Not part of the shortest way of a sample: kept out of it, so that it saves no registers for them.
#ifdef __GNUC__
#define CRDI_APART __attribute__((noinline))
#define CRDI_SELDOM __attribute__((noinline, cold))
#define CRDI_USUALLY(x) __builtin_expect(!!(x), 1)
#else
#define CRDI_USUALLY(x) (x)
#define CRDI_APART
#define CRDI_SELDOM
#endif

// With crd_real = float <math.h> is that of its arguments, and what designs need in double
// precision (wiener.c, polynomial.c) is compiled twice.
#ifdef CARDAN_CORE_SINGLE
#define CRDI_OF(in_double, in_single) in_single
#define CRDI_FLOAT_OR_DOUBLE(x, name) _Generic((x), float : name##f, default : name)
#define acos(x) CRDI_FLOAT_OR_DOUBLE(x, acos)(x)
#define ceil(x) CRDI_FLOAT_OR_DOUBLE(x, ceil)(x)
#define copysign(x, y) CRDI_FLOAT_OR_DOUBLE((x) + (y), copysign)(x, y)
#define cos(x) CRDI_FLOAT_OR_DOUBLE(x, cos)(x)
#define exp(x) CRDI_FLOAT_OR_DOUBLE(x, exp)(x)
#define fabs(x) CRDI_FLOAT_OR_DOUBLE(x, fabs)(x)
#define fmax(x, y) CRDI_FLOAT_OR_DOUBLE((x) + (y), fmax)(x, y)
#define fmin(x, y) CRDI_FLOAT_OR_DOUBLE((x) + (y), fmin)(x, y)
#define rint(x) CRDI_FLOAT_OR_DOUBLE(x, rint)(x)
#define sin(x) CRDI_FLOAT_OR_DOUBLE(x, sin)(x)
#define sqrt(x) CRDI_FLOAT_OR_DOUBLE(x, sqrt)(x)
#define crdi_cholesky crdi_cholesky_single
#define crdi_cholesky_panel crdi_cholesky_panel_single
#define crdi_cholesky_solve crdi_cholesky_solve_single
#define crdi_cholesky_forward crdi_cholesky_forward_single
#define crdi_cholesky_back crdi_cholesky_back_single
#define crdi_dot_tail crdi_dot_tail_single
#else
#define CRDI_OF(in_double, in_single) in_double
#endif

/// A = U^T U in place, upper triangle, n x n by rows. false if A is not positive definite.
bool crdi_cholesky(int n, crd_real* a);
/// A part of it: rows p .. p + CRDI_CHOLESKY_PANEL - 1, after those before; p a multiple of that.
enum { CRDI_CHOLESKY_PANEL = 4 };
bool crdi_cholesky_panel(int n, crd_real* a, int p);
/// x := A^-1 x with the factor of crdi_cholesky.
void crdi_cholesky_solve(int n, const crd_real* u, crd_real* x);
/// The two halves of it: x := U^-T x and x := U^-1 x. The first numbers of x and the upper left
/// corner of U, whose rows are `stride` apart, are those of the smaller system.
void crdi_cholesky_forward(int n, const crd_real* u, crd_real* x);
void crdi_cholesky_back(int n, int stride, const crd_real* u, crd_real* x);

/// What is wrong with a network.
crd_status crdi_network_check(crd_context* ctx, const crd_network* n);
/// An owned copy of it with room for at least so many weights.
crd_status crdi_network_copy(crd_context* ctx, const crd_network* from, size_t room,
                             crd_network* out);
void crdi_network_set(crd_network* to, const crd_network* from); // a copy that has room
bool crdi_network_is_sane(const crd_network* n);                 // all numbers are finite

/// `real`: it has arrived. Else it keeps the place of one that has not, and is no jump.
crd_detected crdi_detector_push(crd_detector* d, crd_real sample, bool real);
/// A sample that it has seen was another one.
void crdi_detector_correct(crd_detector* d, int age, crd_real change);
/// The sample of that age has arrived and was corrected by `change`, 0 if its level is known to be
/// right. There may be a jump that shows only now.
crd_detected crdi_detector_arrive(crd_detector* d, int age, crd_real change);

/// The curve across a gap: a polynomial through samples on both sides, or on the older side alone
/// if there is a jump.
typedef struct crdi_bridge {
    int n;
    crd_real age[CRD_DETECT_ORDERS + 1], y[CRD_DETECT_ORDERS + 1];
    // What it is without curvature (slope, behind a jump), and how far it may leave that.
    crd_real first, slope, steps, most;
    bool ends; // it has one end only
} crdi_bridge;
/// From the newest sample, `before`, to one that comes `steps` after it. Guarded detection only.
crdi_bridge crdi_detector_bridge(const crd_detector* d, crd_real before, crd_real sample,
                                 int64_t steps);
/// At so many steps before the sample behind the gap.
crd_real crdi_bridge_at(const crdi_bridge* b, crd_real age);

crd_status crdi_detection_check(crd_context* ctx, int window, double low, double high);
crd_status crdi_coupling_check_number(crd_context* ctx, const char* name, double x, bool ok,
                                      const char* expected);
crd_status crdi_options_check(crd_context* ctx, const crd_coupling_options* o);
/// Weights for k = 0 .. k_max.
crd_status crdi_table_make(crd_context* ctx, const crd_coupling_options* o, crd_linear** out);
void crdi_table_free(crd_context* ctx, crd_linear* table, int k_max);
int crdi_table_taps(const crd_linear* table, int k_max); // most of all
/// Is there an A that is used and not zero?
bool crdi_table_sloped(const crd_linear* table, const crd_coupling_options* o);
bool crdi_table_has_constant(const crd_linear* table, int k_max); // is a b not 0?
/// Are the weights so small that no prediction is too large?
bool crdi_table_moderate(const crd_linear* table, int k_max);

/// Larger samples are no measurement; without them sums and differences of samples stay finite.
static inline bool crdi_usable(double sample)
{
    return fabs(sample) <= CRDI_OF(1e250, 1e30); // false for NaN
}

static inline bool crdi_is_prediction(crd_real p0, crd_real p1)
{
    return fabs(p0) + fabs(p1) < CRDI_OF(1e300, 1e36);
}

/// fmin and fmax without a call. NaN becomes low.
static inline crd_real crdi_clamp(crd_real x, crd_real low, crd_real high)
{
    return !(x > low) ? low : x > high ? high : x;
}

/// Sums run over the newest samples one by one and, from the one that crdi_dot_head gives, in fours
/// that do not wait for each other. Not all in fours: what was written a moment ago is read slowly
/// unless it is read as it was written. Where there is an A, too, both sums run one by one. Banks
/// have the same order and so the same bits.
enum { CRDI_DOT_SHORT = 16 };
static inline int crdi_dot_head(int n)
{
    return n < CRDI_DOT_SHORT ? n : 4 + n % 4;
}
crd_real crdi_dot_tail(int n, const crd_real* a, const crd_real* y); // n % 4 = 0

static inline crd_real crdi_dot_in_order(int n, const crd_real* a, const crd_real* y)
{
    crd_real sum = 0;
    for (int i = 0; i < n; i++) {
        sum += a[i] * y[i];
    }
    return sum;
}

static inline crd_real crdi_dot(int n, const crd_real* a, const crd_real* y)
{
    const int head = crdi_dot_head(n);
    const crd_real sum = crdi_dot_in_order(head, a, y);
    return head < n ? sum + crdi_dot_tail(n - head, a + head, y + head) : sum;
}
