// Least squares on differences: y_s - y_{s-k} = sum_i c_i (y_{s-k-i} - y_{s-k-i-1}).
#include <math.h>
#include <string.h>

#include "learn/train.h"
#include "shared/base.h"
#include "shared/num.h"

enum { L = CRDI_LANES, SWEEPS = 4000 };

// The weight of difference i in sum_j a_j y_j = y_0 + sum_i c_i (y_i - y_{i+1}), if sum a = 1.
static void to_differences(int m, const double* a, double* c)
{
    double rest = 0;
    for (int i = m - 2; i >= 0; i--) {
        rest += a[i + 1];
        c[i] = -rest;
    }
}

static void from_differences(int m, const double* c, double* a)
{
    a[0] = 1;
    for (int i = 0; i < m - 1; i++) {
        a[i] += c[i];
        a[i + 1] = -c[i];
    }
}

// The normal equations (n x n, n) over the smooth pairs that are trained on.
static void normal_equations(const crdi_pairs* p, double* d, double* matrix, double* right)
{
    const int n = p->m - 1;
    for (int64_t b = 0; b < p->trained_blocks; b++) {
        const double* x = &p->x[b * p->m * L];
        double target[L];
        for (int l = 0; l < L; l++) {
            const bool use = p->on[b * L + l] != 0 && p->kind[b * L + l] == CRDI_PAIR_SMOOTH;
            target[l] = use ? p->y[b * L + l] - x[l] : 0;
            for (int i = 0; i < n; i++) {
                d[i * L + l] = use ? x[i * L + l] - x[(i + 1) * L + l] : 0;
            }
        }
        for (int i = 0; i < n; i++) {
            for (int j = 0; j <= i; j++) {
                for (int l = 0; l < L; l++) {
                    matrix[i * n + j] += d[i * L + l] * d[j * L + l];
                }
            }
            for (int l = 0; l < L; l++) {
                right[i] += d[i * L + l] * target[l];
            }
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) {
            matrix[j * n + i] = matrix[i * n + j];
        }
    }
}

// The minimum of c^T M c / 2 - r^T c over c >= 0, one number after the other until nothing moves.
static void solve_positive(int n, const double* matrix, const double* right, double* c)
{
    for (int i = 0; i < n; i++) {
        c[i] = fmax(c[i], 0);
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double moved = 0, size = 0;
        for (int i = 0; i < n; i++) {
            double g = right[i];
            for (int j = 0; j < n; j++) {
                g -= matrix[i * n + j] * c[j];
            }
            const double next = fmax(0, c[i] + g / matrix[i * n + i]);
            moved = fmax(moved, fabs(next - c[i]));
            size = fmax(size, next);
            c[i] = next;
        }
        if (moved <= 1e-12 * size) { return; }
    }
}

crd_status crdi_ridge(crd_context* ctx, const crdi_pairs* p, const double* to, double ridge,
                      bool positive, double* a)
{
    const int n = p->m - 1;
    crd_status st = CRD_OK;
    const size_t count = (size_t)n;
    double* matrix = crdi_new_array(ctx, count * count + 2 * count + count * L, sizeof *matrix);
    int32_t* pivots = crdi_new_array(ctx, count, sizeof *pivots);
    if (!matrix || !pivots) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    double *right = matrix + n * n, *c = right + n, *d = c + n, trace = 0;
    normal_equations(p, d, matrix, right);
    to_differences(p->m, to, c);
    for (int i = 0; i < n; i++) {
        trace += matrix[i * n + i];
    }
    const double pull = ridge * trace / fmax(n, 1);
    if (pull > 1e-280) { // else nothing has moved: the weights stay
        for (int i = 0; i < n; i++) {
            matrix[i * n + i] += pull;
            right[i] += pull * c[i];
        }
        if (positive) {
            solve_positive(n, matrix, right, c);
        } else if (crdi_num_solve(n, matrix, right, pivots) >= 0) {
            memcpy(c, right, count * sizeof *c);
        }
    }
    from_differences(p->m, c, a);
fail:
    crd_free(ctx, matrix);
    crd_free(ctx, pivots);
    return st;
}

// a (m) += the derivatives of the network by its inputs x, which are CRDI_LANES apart.
static void add_slopes(const crd_network* n, const double* x, double* a)
{
    const int widths[] = {n->n1, n->n2, n->n_more[0], n->n_more[1]};
    const double* const W[] = {n->W1, n->W2, n->W_more[0], n->W_more[1]};
    const double* const b[] = {n->b1, n->b2, n->b_more[0], n->b_more[1]};
    double u[CRD_TAPS_MAX], slope[CRD_NETWORK_LAYERS][CRD_NETWORK_NEURONS], back[CRD_TAPS_MAX];
    const int first = n->n1 == 0, last = 1 + n->more;
    int before = n->m;
    for (int i = 0; i < n->m; i++) {
        u[i] = x[i * L];
    }
    for (int h = first; h <= last; before = widths[h], h++) {
        double z[CRD_NETWORK_NEURONS];
        for (int j = 0; j < widths[h]; j++) {
            z[j] = b[h][j];
            for (int i = 0; i < before; i++) {
                z[j] += W[h][j * before + i] * u[i];
            }
            slope[h][j] = h == 0 || z[j] >= 0 ? 1 : n->alpha;
        }
        for (int j = 0; j < widths[h]; j++) {
            u[j] = slope[h][j] * z[j];
        }
    }
    memcpy(back, n->W3, (size_t)before * sizeof *back);
    for (int h = last; h >= first; h--) {
        double next[CRD_TAPS_MAX] = {0};
        before = h == first ? n->m : widths[h - 1];
        for (int j = 0; j < widths[h]; j++) {
            for (int i = 0; i < before; i++) {
                next[i] += back[j] * slope[h][j] * W[h][j * before + i];
            }
        }
        memcpy(back, next, (size_t)before * sizeof *back);
    }
    for (int i = 0; i < n->m; i++) {
        a[i] += back[i];
    }
}

void crdi_mean_map(const crdi_pairs* p, const crd_network* n, double* a)
{
    static const double zeros[CRD_TAPS_MAX * L] = {0};
    const int64_t places = (p->trained_blocks + p->held_blocks) * L;
    int64_t count = 0;
    memset(a, 0, (size_t)n->m * sizeof *a);
    for (int64_t s = 0; s < places; s++) {
        if (p->on[s] == 0 || p->kind[s] == CRDI_PAIR_JUMP) { continue; }
        add_slopes(n, &p->x[s / L * n->m * L + s % L], a);
        count++;
    }
    if (count == 0) { // as it is around zero
        add_slopes(n, zeros, a);
        count = 1;
    }
    for (int i = 0; i < n->m; i++) {
        a[i] /= (double)count;
    }
}
