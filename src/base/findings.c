#include "shared/base_findings.h"

#include "base/context.h"
#include "shared/base.h"

#include <string.h>

const char crdi_unread_unit[] = "";

void crdi_findings_collect(crd_context* ctx, crdi_findings* f)
{
    ctx->findings = f;
}

bool crdi_findings_wanted(const crd_context* ctx)
{
    return ctx->findings;
}

crd_status crdi_go_on(crd_context* ctx, crd_status st)
{
    crdi_findings* f = ctx->findings;
    if (st >= 0 || st == CRD_E_MEMORY || !f) { return st; }
    for (int i = 0; i < f->count; i++) { // others may have put a place in front of it
        if (strstr(ctx->error, f->texts[i])) { return CRD_OK; }
    }
    const char** grown =
        crdi_grow(f->arena.ctx, f->texts, &f->capacity, (size_t)f->count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    f->texts = grown;
    const char* text = crdi_arena_text(&f->arena, ctx->error, strlen(ctx->error));
    if (!text) { return CRD_E_MEMORY; }
    if (f->count == 0) { f->first = st; }
    f->texts[f->count++] = text;
    return CRD_OK;
}

crd_status crdi_findings_status(crd_context* ctx)
{
    const crdi_findings* f = ctx->findings;
    return f && f->count ? crdi_fail(ctx, f->first, "%s", f->texts[0]) : CRD_OK;
}

void crdi_findings_clear(crdi_findings* f)
{
    crd_free(f->arena.ctx, f->texts);
    crd_arena_clear(&f->arena);
}
