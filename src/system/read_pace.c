// How a run follows the clock: run.pace.
#include "system/read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// In the order of the enumeration.
const char* const crdi_overruns[] = {"record", "stretch", "skip", "stop", NULL};
_Static_assert(COUNT(crdi_overruns) == CRD_OVERRUN_STOP + 2, "a name for each policy");

#define FACTORS "realtime, free, or a factor such as 10x"
static const double least = 1e-6,
                    most = 1e6; // factors: a step per week, and what no clock resolves
static const double longest_spin = 1e-3;

static crd_status read_factor(crdi_reader* r, const crdi_node* n, void* out);
static crd_status read_cpu(crdi_reader* r, const crdi_node* n, void* out);

static const crdi_key pace_keys[] = {
    {KEY("factor", OWN, crd_pace_spec, factor), .read = read_factor, .stored = CRDI_KEY_NUMBER},
    {KEY("overrun", CHOICE, crd_pace_spec, overrun), .choices = crdi_overruns},
    {KEY("slack", TIME, crd_pace_spec, slack), .range = CRDI_NOT_NEGATIVE},
    {KEY("spin", TIME, crd_pace_spec, spin), .range = CRDI_NOT_NEGATIVE},
    {KEY("priority", INT, crd_pace_spec, priority), .min = 0, .max = 99},
    {KEY("cpu", OWN, crd_pace_spec, cpu), .read = read_cpu, .stored = CRDI_KEY_INT},
    {KEY("lock", BOOL, crd_pace_spec, lock)},
    {KEY("required", BOOL, crd_pace_spec, required)},
};

const crdi_table crdi_pace_table = {"pace", pace_keys, COUNT(pace_keys)};

void crdi_flow_pace(crdi_flow* f, const crd_pace_spec* p)
{
    const crd_run_spec defaults = crdi_run_spec_defaults();
    crdi_flow_table(f, &crdi_pace_table, p, &defaults.pace);
}

const char* crd_overrun_name(crd_overrun policy)
{
    return policy >= 0 && policy <= CRD_OVERRUN_STOP ? crdi_overruns[policy] : "";
}

// "10x", "0.5 x", "2": digits, and at most an x behind them.
static bool parse_factor(const char* text, double* out)
{
    const size_t digits = crdi_number_prefix(text);
    const char* rest = text + digits + strspn(text + digits, " ");
    if (digits == 0 || (strcmp(rest, "") != 0 && strcmp(rest, "x") != 0)) { return false; }
    return crdi_parse_double(text, digits, out);
}

static crd_status read_factor(crdi_reader* r, const crdi_node* n, void* out)
{
    const crd_status st = crdi_expect_kind(r, n, CRDI_SCALAR, FACTORS);
    if (st < 0) { return st; }
    const bool real = strcmp(n->text, "realtime") == 0;
    if (real || strcmp(n->text, "free") == 0) {
        *(double*)out = real ? 1 : 0;
        return CRD_OK;
    }
    double x = 0;
    if (!parse_factor(n->text, &x)) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s', expected " FACTORS,
                              crdi_clip(n->text).text);
    }
    if (!(x >= least && x <= most)) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line,
                              "'%s' is out of range, expected %g to %g simulated seconds per "
                              "second, or " FACTORS,
                              crdi_clip(n->text).text, least, most);
    }
    *(double*)out = x;
    return CRD_OK;
}

static crd_status read_cpu(crdi_reader* r, const crdi_node* n, void* out)
{
    enum { MOST = 4095 };
    if (n->kind == CRDI_SCALAR && strcmp(n->text, "none") == 0) {
        *(int*)out = -1;
        return CRD_OK;
    }
    const crd_status st = crdi_read_int(r, n, 0, MOST, out);
    return st == CRD_OK || st == CRD_E_MEMORY
               ? st
               : crdi_fail(r->ctx, st, "%s, or none", crd_error_text(r->ctx));
}

// A mapping that does not say how fast means the clock's own pace, unless a system below has one.
static crd_status read_keys(crdi_reader* r, const crdi_node* n, crd_pace_spec* p)
{
    if (!(p->factor > 0)) { p->factor = 1; }
    const crd_status st = crdi_read_mapping(r, n, &crdi_pace_table, p, NULL);
    if (st < 0) { return st; }
    if (p->spin > longest_spin) {
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "spin"),
                              "spin: %g s, expected at most 1 ms: it is the time before each "
                              "deadline in which a CPU is kept busy",
                              p->spin);
    }
    return CRD_OK;
}

crd_status crdi_read_pace(crdi_reader* r, const crdi_node* n, void* out)
{
    crd_pace_spec p = *(crd_pace_spec*)out;
    const crd_status st = n->kind == CRDI_MAPPING ? read_keys(r, n, &p)
                          : n->kind == CRDI_LIST
                              ? crdi_expect_kind(r, n, CRDI_SCALAR, FACTORS ", or a mapping")
                              : read_factor(r, n, &p.factor);
    if (st < 0) { return st; }
    p.place = (crd_place){r->file, n->line};
    *(crd_pace_spec*)out = p;
    return CRD_OK;
}
