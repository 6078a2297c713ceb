// Any bytes as a message from a live page. What is accepted is within bounds, and the answer is
// JSON whatever was said.
//
// modules: web base
#include "fuzz.h"
#include "web/web.h"

#include <math.h>
#include <string.h>

static void must(bool holds)
{
    if (!holds) { __builtin_trap(); }
}

static void is_json(crd_arena* a, const char* text)
{
    crdi_json* tree = NULL;
    must(crdi_json_parse(a, text, strlen(text), (crdi_json_source){.file = "", .first_line = 0},
                         &tree) == CRD_OK);
}

static void look_at(const crdi_web_request* q)
{
    const crdi_live_command* c = &q->command;
    must(q->has_id && q->id == floor(q->id));
    if (q->watching) {
        must(q->signal_count >= 0 && q->signal_count <= CRDI_WEB_WATCHED);
        for (int i = 0; i < q->signal_count; i++) {
            must(strlen(q->signals[i]) <= CRDI_WEB_MESSAGE_BYTES);
        }
        return;
    }
    switch (c->action) {
    case CRDI_LIVE_STEP:
        must(c->count >= 1 && c->count <= 1000000000);
        break;
    case CRDI_LIVE_SET:
        must(c->name && c->text);
        break;
    case CRDI_LIVE_COUPLE:
        must(c->name && c->text);
        break;
    case CRDI_LIVE_FAULT:
        must(c->name && c->fault > CRDI_FAULT_NONE && c->fault < CRDI_FAULT_KINDS);
        must(isfinite(c->value) && (isnan(c->duration) || c->duration > 0));
        break;
    case CRDI_LIVE_CLEAR:
        must(c->name != NULL);
        break;
    case CRDI_LIVE_MARK:
        must(c->text && strlen(c->text) > 0 && strlen(c->text) <= 200);
        break;
    case CRDI_LIVE_EMERGENCY:
        must(!c->name && !c->text); // it takes nothing that could be wrong
        break;
    case CRDI_LIVE_TAKE:
    case CRDI_LIVE_RELEASE:
        must(c->name != NULL);
        break;
    case CRDI_LIVE_DRIVE:
        must(c->name && c->value_count >= 0 && c->value_count <= CRD_LEVERS_MAX);
        must(c->value_count == 0 || c->values);
        break;
    case CRDI_LIVE_GO:
        must(c->name != NULL);
        break;
    case CRDI_LIVE_CALIBRATE:
        must(c->name && c->text && c->values && c->value_count == 4);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return 0; }
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    crdi_web_request q;
    const crd_status st = crdi_web_message(&arena, (const char*)data, size, &q);
    must(st == CRD_OK || st == CRD_E_FORMAT || st == CRD_E_RANGE);
    must(st == CRD_OK || crd_error_text(ctx)[0]);
    crd_text answer;
    crd_text_init(&answer, ctx);
    crdi_web_reply(&answer, &q, st < 0 ? crd_error_text(ctx) : NULL);
    is_json(&arena, answer.data);
    if (st == CRD_OK) { look_at(&q); }
    crd_text_clear(&answer);
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
    return 0;
}
