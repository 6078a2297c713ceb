// How a run follows the clock: run.pace.
#include "system/read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// In the order of the enumeration.
static const char* const overruns[] = {"record", "stretch", "skip", "stop", NULL};
_Static_assert(COUNT(overruns) == CRD_OVERRUN_STOP + 2, "a name for each policy");

#define FACTORS "realtime, free, or a factor such as 10x"
static const double least = 1e-6,
                    most = 1e6; // factors: a step per week, and what no clock resolves
static const double longest_spin = 1e-3;

typedef struct pace_draft {
    crd_pace_spec spec;
    const crdi_node *factor, *cpu;
} pace_draft;

static const crdi_key pace_keys[] = {
    {KEY("factor", NODE, pace_draft, factor)},
    {KEY("overrun", CHOICE, pace_draft, spec.overrun), .choices = overruns},
    {KEY("slack", TIME, pace_draft, spec.slack), .range = CRDI_NOT_NEGATIVE},
    {KEY("spin", TIME, pace_draft, spec.spin), .range = CRDI_NOT_NEGATIVE},
    {KEY("priority", INT, pace_draft, spec.priority), .min = 0, .max = 99},
    {KEY("cpu", NODE, pace_draft, cpu)},
    {KEY("lock", BOOL, pace_draft, spec.lock)},
    {KEY("required", BOOL, pace_draft, spec.required)},
};

const crdi_table crdi_pace_table = {"pace", pace_keys, COUNT(pace_keys)};

const char* crd_overrun_name(crd_overrun policy)
{
    return policy >= 0 && policy <= CRD_OVERRUN_STOP ? overruns[policy] : "";
}

// "10x", "0.5 x", "2": digits, and at most an x behind them.
static bool parse_factor(const char* text, double* out)
{
    const size_t digits = crdi_number_prefix(text);
    const char* rest = text + digits + strspn(text + digits, " ");
    if (digits == 0 || (strcmp(rest, "") != 0 && strcmp(rest, "x") != 0)) { return false; }
    return crdi_parse_double(text, digits, out);
}

static crd_status read_factor(crdi_reader* r, const crdi_node* n, double* out)
{
    const crd_status st = crdi_expect_kind(r, n, CRDI_SCALAR, FACTORS);
    if (st < 0) { return st; }
    const bool real = strcmp(n->text, "realtime") == 0;
    if (real || strcmp(n->text, "free") == 0) {
        *out = real ? 1 : 0;
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
    *out = x;
    return CRD_OK;
}

static crd_status read_cpu(crdi_reader* r, const crdi_node* n, int* out)
{
    enum { MOST = 4095 };
    const size_t mark = crdi_path_enter(r, "cpu");
    if (n->kind == CRDI_SCALAR && strcmp(n->text, "none") == 0) {
        *out = -1;
    } else {
        const crd_status st = crdi_read_int(r, n, 0, MOST, out);
        if (st < 0) {
            return st == CRD_E_MEMORY
                       ? st
                       : crdi_fail(r->ctx, st, "%s, or none", crd_error_text(r->ctx));
        }
    }
    crdi_path_leave(r, mark);
    return CRD_OK;
}

// A mapping that does not say how fast means the clock's own pace, unless a system below has one.
static crd_status read_keys(crdi_reader* r, const crdi_node* n, crd_pace_spec* p)
{
    crd_status st = CRD_OK;
    pace_draft d = {.spec = *p};
    if (!(d.spec.factor > 0)) { d.spec.factor = 1; }
    CRD_TRY(crdi_read_mapping(r, n, &crdi_pace_table, &d, NULL));
    if (d.factor) {
        const size_t mark = crdi_path_enter(r, "factor");
        CRD_TRY(read_factor(r, d.factor, &d.spec.factor));
        crdi_path_leave(r, mark);
    }
    if (d.cpu) { CRD_TRY(read_cpu(r, d.cpu, &d.spec.cpu)); }
    if (d.spec.spin > longest_spin) {
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "spin"),
                              "spin: %g s, expected at most 1 ms: it is the time before each "
                              "deadline in which a CPU is kept busy",
                              d.spec.spin);
    }
    *p = d.spec;
fail:
    return st;
}

crd_status crdi_read_pace(crdi_reader* r, const crdi_node* n, crd_pace_spec* out)
{
    crd_pace_spec p = *out;
    const crd_status st = n->kind == CRDI_MAPPING ? read_keys(r, n, &p)
                          : n->kind == CRDI_LIST
                              ? crdi_expect_kind(r, n, CRDI_SCALAR, FACTORS ", or a mapping")
                              : read_factor(r, n, &p.factor);
    if (st < 0) { return st; }
    p.place = (crd_place){r->file, n->line};
    *out = p;
    return CRD_OK;
}
