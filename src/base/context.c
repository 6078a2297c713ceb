#include "base/context.h"
#include "shared/base.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const struct {
    crd_status status;
    int exit_code;
    const char *name, *text;
} statuses[] = {
#define ROW(name, value, exit_code, text) {name, exit_code, #name, text},
    CRD_STATUS_LIST(ROW)
#undef ROW
};

static size_t status_row(crd_status st)
{
    // Codes are 0, -1, -2 ...: the row is the code without its sign.
    const size_t row = (size_t)(-(int)st);
    return row < sizeof statuses / sizeof *statuses ? row : 0;
}

const char* crd_status_name(crd_status st)
{
    return statuses[status_row(st)].name;
}

const char* crd_status_text(crd_status st)
{
    return statuses[status_row(st)].text;
}

int crd_status_exit_code(crd_status st)
{
    return statuses[status_row(st)].exit_code;
}

const char* crd_version(void)
{
    return CRD_VERSION;
}

// Long sentences of contexts with little room of their own. So that a step that fails and is done
// again allocates nothing, and lack of memory can be told, some are there from the beginning.
static struct {
    atomic_bool taken;
    char text[CRDI_ERROR];
} rooms[CRDI_ERROR_ROOMS];

static void take_room(crd_context* ctx)
{
    char* more = NULL;
    for (int i = 0; i < CRDI_ERROR_ROOMS && !more; i++) {
        if (!atomic_exchange(&rooms[i].taken, true)) { more = rooms[i].text; }
    }
    if (!more) { more = ctx->opt.realloc(ctx->opt.realloc_user, NULL, CRDI_ERROR); }
    if (!more) { return; }
    ctx->error = more;
    ctx->size = CRDI_ERROR;
}

static void give_room_back(crd_context* ctx)
{
    for (int i = 0; i < CRDI_ERROR_ROOMS; i++) {
        if (ctx->error != rooms[i].text) { continue; }
        atomic_store(&rooms[i].taken, false);
        return;
    }
    ctx->opt.realloc(ctx->opt.realloc_user, ctx->error, 0);
}

static crd_context* context_create(const crd_context_options* o, size_t size)
{
    crd_context* ctx = o->realloc(o->realloc_user, NULL, sizeof *ctx + size);
    if (!ctx) { return NULL; }
    ctx->opt = *o;
    ctx->error = ctx->own;
    ctx->findings = NULL;
    ctx->reads = NULL;
    ctx->progress = NULL;
    ctx->progress_user = NULL;
    ctx->size = size;
    ctx->error[0] = 0;
    return ctx;
}

crd_context* crdi_context_make(const crd_context_options* o)
{
    return context_create(o, CRDI_ERROR);
}

static void inherit(crd_context* child, const crd_context* ctx)
{
    child->findings = ctx->findings;
    child->progress = ctx->progress;
    child->progress_user = ctx->progress_user;
}

// Each unit has one: there may be 100 000, and few have a long sentence to say.
crd_context* crdi_context_child(const crd_context* ctx)
{
    crd_context* child = context_create(&ctx->opt, CRDI_ERROR_SHORT);
    if (child) { inherit(child, ctx); }
    return child;
}

crd_context* crdi_context_tap(const crd_context* ctx, crd_log_sink* sink, void* user)
{
    crd_context_options opt = ctx->opt;
    opt.log = sink;
    opt.log_user = user;
    if (opt.level < CRD_LOG_WARNING) { opt.level = CRD_LOG_WARNING; }
    crd_context* tap = crdi_context_make(&opt);
    if (tap) { inherit(tap, ctx); }
    return tap;
}

void crdi_log_on(const crd_context* ctx, crd_level level, const char* text)
{
    if (ctx->opt.log && level <= ctx->opt.level) { ctx->opt.log(ctx->opt.log_user, level, text); }
}

void crd_context_destroy(crd_context* ctx)
{
    if (!ctx) { return; }
    if (ctx->error != ctx->own) { give_room_back(ctx); }
    ctx->opt.realloc(ctx->opt.realloc_user, ctx, 0);
}

const char* crd_error_text(const crd_context* ctx)
{
    return ctx->error;
}

crd_level crd_log_level(const crd_context* ctx)
{
    return ctx->opt.level;
}

// `text` is not in ctx->error: arguments may have pointed into the old sentence.
static void set_error(crd_context* ctx, const char* text)
{
    if (strlen(text) >= ctx->size) { take_room(ctx); }
    snprintf(ctx->error, ctx->size, "%s", text); // without memory a long one is cut
}

crd_status crdi_fail(crd_context* ctx, crd_status st, const char* format, ...)
{
    char text[CRDI_ERROR];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    set_error(ctx, text);
    return st;
}

crd_status crdi_fail_in(crd_context* ctx, crd_status st, const char* format, ...)
{
    char prefix[CRDI_ERROR / 4], text[CRDI_ERROR + sizeof prefix + 2];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    snprintf(text, sizeof text, "%s: %s", prefix, ctx->error);
    text[CRDI_ERROR - 1] = 0;
    set_error(ctx, text);
    return st;
}

void crdi_log(crd_context* ctx, crd_level level, const char* format, ...)
{
    if (!ctx->opt.log || level > ctx->opt.level) { return; }
    char text[CRDI_ERROR];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ctx->opt.log(ctx->opt.log_user, level, text);
}
