#include "base/context.h"
#include "shared/base_progress.h"

void crdi_context_show_progress(crd_context* ctx, crdi_progress_sink* sink, void* user)
{
    ctx->progress = sink;
    ctx->progress_user = user;
}

bool crdi_progress_is_shown(const crd_context* ctx)
{
    return ctx->progress;
}

void crdi_progress(const crd_context* ctx, const char* part, double done, double of,
                   const char* unit)
{
    if (ctx->progress) { ctx->progress(ctx->progress_user, part, done, of, unit); }
}

void crdi_progress_end(const crd_context* ctx)
{
    crdi_progress(ctx, NULL, 0, 0, NULL);
}
