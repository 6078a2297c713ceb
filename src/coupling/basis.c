#include "coupling/basis.h"

#include <math.h>
#include <string.h>

#include "shared/base.h"

enum { LAGS = 3, SLOW_UP_TO = 2, OF_PRODUCT = 2, NOBODY = -1 };
static const double basis_tau[] = {0.030, 0.100, 0.300}; // s
static const crd_real largest_command =
    CRDI_OF(1e60, 1e9); // products and their squares stay finite

static int basis_per_command(int commands)
{
    return LAGS + (commands <= SLOW_UP_TO ? 3 : 2);
}

int crd_command_weights_count(int commands)
{
    return commands * basis_per_command(commands) + OF_PRODUCT * (commands * (commands + 1) / 2);
}

crd_status crdi_basis_init(crdi_basis* b, crd_context* ctx, const crd_coupling_options* o)
{
    const int commands = o->commands;
    *b = (crdi_basis){.commands = commands,
                      .per = basis_per_command(commands),
                      .count = crd_command_weights_count(commands),
                      .rows = o->compact ? 16 : 256};
    b->all = b->count + OF_PRODUCT * commands;
    // Learning looks back by k, commands ahead, by 2 k on a link that is as late both ways.
    while (b->rows < (o->compact ? 4 : 6) * ((int64_t)o->k_max + 1)) {
        b->rows *= 2;
    }
    const size_t rows = (size_t)b->rows;
    b->psi = crdi_new_array(ctx, rows * (size_t)b->all, sizeof *b->psi);
    b->given = crdi_new_array(ctx, rows * (size_t)commands, sizeof *b->given);
    b->steps = crdi_new_array(ctx, rows, sizeof *b->steps);
    b->rates = crdi_new_array(ctx, rows * (size_t)commands, sizeof *b->rates);
    b->rated = crdi_new_array(ctx, rows, sizeof *b->rated);
    if (!b->psi || !b->given || !b->steps || !b->rates || !b->rated) { return CRD_E_MEMORY; }
    crdi_basis_reset(b, o->step);
    return CRD_OK;
}

void crdi_basis_clear(crdi_basis* b, crd_context* ctx)
{
    crd_free(ctx, b->psi);
    crd_free(ctx, b->given);
    crd_free(ctx, b->steps);
    crd_free(ctx, b->rates);
    crd_free(ctx, b->rated);
}

void crdi_basis_reset(crdi_basis* b, double step)
{
    for (int f = 0; f < 3; f++) {
        b->pull[f] = -expm1(-step / basis_tau[f]);
    }
    for (int64_t i = 0; i < b->rows; i++) {
        b->steps[i] = b->rated[i] = INT64_MIN;
    }
    memset(b->good, 0, sizeof b->good);
    for (int a = 0; a < CRD_COMMANDS_MAX; a++) {
        b->low[a] = b->rate[a] = INFINITY;
        b->high[a] = -INFINITY;
    }
    b->any = false;
    b->newest = b->ready = b->calls = b->not_finite = b->outside = 0;
}

static crd_real* basis_row(const crdi_basis* b, int64_t n)
{
    return &b->psi[(n & (b->rows - 1)) * b->all];
}

static const crd_real* basis_given(const crdi_basis* b, int64_t n)
{
    const int64_t place = n & (b->rows - 1);
    return b->steps[place] == n ? &b->given[place * b->commands] : NULL;
}

// u has acted for ever at step n; what comes after it is made anew.
static void basis_settle(crdi_basis* b, int64_t n, const crd_real* u)
{
    crd_real* psi = basis_row(b, n);
    for (int a = 0; a < b->commands; a++) {
        for (int f = 0; f < b->per; f++) {
            *psi++ = u[a];
        }
    }
    for (int a = 0; a < b->commands; a++) {
        for (int c = a; c < b->commands; c++) {
            const crd_real product = u[a] * (a == c ? fabs(u[c]) : u[c]);
            *psi++ = product;
            *psi++ = product;
        }
    }
    for (int a = 0; a < b->commands; a++) {
        *psi++ = u[a];
        *psi++ = u[a];
    }
    b->ready = n;
}

// The rates of a step are those of when it was first made: what is told late changes none.
static const crd_real* basis_rate(const crdi_basis* b, int64_t n)
{
    const int64_t place = n & (b->rows - 1);
    crd_real* rate = &b->rates[place * b->commands];
    if (b->rated[place] != n) { memcpy(rate, b->rate, (size_t)b->commands * sizeof *rate); }
    b->rated[place] = n;
    return rate;
}

// Features of step n from those of n - 1.
static void basis_advance(crdi_basis* b, int64_t n)
{
    const crd_real *before = basis_row(b, n - 1), *u = basis_given(b, n);
    crd_real* psi = basis_row(b, n);
    crd_real acted[CRD_COMMANDS_MAX] = {0};
    const int per = b->per;
    for (int a = 0; a < b->commands; a++, before += per, psi += per) {
        acted[a] = before[0];
        psi[0] = u ? u[a] : before[0];
        psi[1] = before[0];
        psi[2] = before[1];
        for (int f = LAGS; f < per; f++) {
            psi[f] = before[f] + b->pull[f - LAGS] * (before[0] - before[f]);
        }
    }
    for (int a = 0; a < b->commands; a++) {
        for (int c = a; c < b->commands; c++, before += OF_PRODUCT, psi += OF_PRODUCT) {
            const crd_real product = acted[a] * (a == c ? fabs(acted[c]) : acted[c]);
            psi[0] = before[0] + b->pull[0] * (product - before[0]);
            psi[1] = before[1] + b->pull[1] * (product - before[1]);
        }
    }
    const crd_real* rate = basis_rate(b, n);
    for (int a = 0; a < b->commands; a++, before += OF_PRODUCT, psi += OF_PRODUCT) {
        psi[0] = before[0] + crdi_clamp(acted[a] - before[0], -rate[a], rate[a]);
        psi[1] = before[1] + b->pull[0] * (before[0] - before[1]);
    }
    b->ready = n;
}

const crd_real* crdi_basis_at(crdi_basis* b, int64_t n)
{
    while (b->ready < n) {
        basis_advance(b, b->ready + 1);
    }
    return basis_row(b, n);
}

static bool basis_covers(const crdi_basis* b, int64_t n)
{
    return n > b->newest - b->rows / 2 && n < b->newest + b->rows / 2;
}

void crdi_basis_move(crdi_basis* b, int64_t newest)
{
    const bool near = newest >= b->newest && newest - b->newest < b->rows / 4;
    b->newest = newest;
    if (near || !b->any) { return; }
    const int64_t first = newest - b->rows / 2 + 1;
    const crd_real* u = b->good;
    for (int64_t n = newest + b->rows / 2 - 1; n >= first; n--) {
        if (basis_given(b, n)) { u = basis_given(b, n); }
    }
    basis_settle(b, first, u);
}

void crdi_basis_set_rate(crdi_basis* b, crd_real part, int64_t n)
{
    const crd_real* u = crdi_basis_at(b, n);
    for (int a = 0; a < b->commands; a++, u += b->per) {
        b->low[a] = fmin(b->low[a], *u);
        b->high[a] = fmax(b->high[a], *u);
        b->rate[a] = b->high[a] > b->low[a] ? part * (b->high[a] - b->low[a]) : INFINITY;
    }
}

void crdi_basis_tell(crdi_basis* b, const double* u, int64_t n)
{
    b->calls++;
    for (int a = 0; a < b->commands; a++) {
        const bool fine = fabs(u[a]) <= largest_command; // false for NaN
        b->not_finite += !fine;
        if (fine) { b->good[a] = u[a]; }
    }
    if (!b->any) {
        b->any = true;
        basis_settle(b, b->newest - b->rows / 2 + 1, b->good);
    }
    if (!basis_covers(b, n)) {
        b->outside++;
        return;
    }
    const int64_t place = n & (b->rows - 1);
    bool same = n <= b->ready;
    for (int a = 0; a < b->commands; a++) {
        b->given[place * b->commands + a] = b->good[a];
        same = same && basis_row(b, n)[a * b->per] == b->good[a];
    }
    b->steps[place] = n;
    if (n <= b->ready && !same) { b->ready = n - 1; }
}
