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

void crdi_mean_map(const crdi_pairs* p, const crd_network* n, double* a)
{
    const int64_t places = (p->trained_blocks + p->held_blocks) * L;
    const int m = n->m, n1 = n->n1, n2 = n->n2;
    memset(a, 0, (size_t)m * sizeof *a);
    for (int j = 0; j < n2; j++) {
        double V[CRD_TAPS_MAX] = {0}, c = n->b2[j], slopes = 0;
        int64_t count = 0;
        for (int h = 0; h < n1; h++) {
            c += n->W2[j * n1 + h] * n->b1[h];
            for (int i = 0; i < m; i++) {
                V[i] += n->W2[j * n1 + h] * n->W1[h * m + i];
            }
        }
        for (int64_t s = 0; s < places; s++) {
            if (p->on[s] == 0 || p->kind[s] == CRDI_PAIR_JUMP) { continue; }
            const double* x = &p->x[s / L * m * L + s % L];
            double z = c;
            for (int i = 0; i < m; i++) {
                z += V[i] * x[i * L];
            }
            slopes += z >= 0 ? 1 : n->alpha;
            count++;
        }
        const double slope = count > 0 ? slopes / (double)count : 1;
        for (int i = 0; i < m; i++) {
            a[i] += slope * n->W3[j] * V[i];
        }
    }
}
