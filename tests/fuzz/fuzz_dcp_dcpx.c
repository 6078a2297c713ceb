// modules: dcp archive xml base
//
// Any bytes as the description of a DCP slave: parser and rules; what breaks no rule is written,
// read again, and written to the same bytes.
#include "fuzz.h"
#include "shared/base.h"
#include "shared/dcp_bench.h"

#include <string.h>

static int faults(const crd_dcp_finding* findings, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (!findings[i].text[0] || findings[i].line < 0) { __builtin_trap(); }
        n += findings[i].severity == CRD_DCP_FAULT;
    }
    return n;
}

static void round_trip(crd_context* ctx, const crd_dcp_description* d)
{
    crd_text first, second;
    crd_text_init(&first, ctx);
    crd_text_init(&second, ctx);
    const crd_status st = crd_dcp_write(d, &first);
    if (st == CRD_OK) {
        crd_dcp_description* back = NULL;
        const crd_dcp_finding* findings = NULL;
        int count = 0;
        if (crd_dcp_parse(ctx, first.data, first.length, "back", &back, &findings, &count) < 0 ||
            faults(findings, count) || back->variable_count != d->variable_count ||
            crd_dcp_write(back, &second) < 0 || first.length != second.length ||
            memcmp(first.data, second.data, first.length) != 0) {
            __builtin_trap();
        }
        crd_dcp_description_destroy(back);
    } else if (st != CRD_E_UNSUPPORTED || !d->bluetooth) {
        __builtin_trap();
    }
    crd_text_clear(&first);
    crd_text_clear(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_dcp_description* d = NULL;
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    if (ctx &&
        crd_dcp_parse(ctx, (const char*)data, size, "t.dcpx", &d, &findings, &count) == CRD_OK) {
        for (int i = 0; i < d->variable_count; i++) {
            const int k = crd_dcp_find_vr(d, d->variables[i].vr);
            if (k < 0 || k > i || d->variables[k].vr != d->variables[i].vr) { __builtin_trap(); }
        }
        crdi_dcp_bench_pair pairs[CRD_DCP_LIMITS_MAX];
        const int n = crdi_dcp_bench_pairs(d, pairs);
        for (int i = 0; i < n; i++) {
            if (pairs[i].input >= d->variable_count || pairs[i].output >= d->variable_count) {
                __builtin_trap();
            }
        }
        if (faults(findings, count) == 0) { round_trip(ctx, d); }
    }
    crd_dcp_description_destroy(d);
    crd_context_destroy(ctx);
    return 0;
}
