// Connections of a description drawn on a page: what the page asks for and is told. Knows no
// socket. docs/how-to/new.md has the messages.
#pragma once
#include "shared/base.h"
#include "shared/web.h"

enum { CRDI_DRAW_TEXT_BYTES = 4096 }; // of a name or a value in a message

typedef enum crdi_draw_verb {
    CRDI_DRAW_STATE,
    CRDI_DRAW_CONNECT,
    CRDI_DRAW_DISCONNECT,
    CRDI_DRAW_SET, // step, stop or results
    CRDI_DRAW_UNDO,
    CRDI_DRAW_REDO,
    CRDI_DRAW_TEXT, // the description as it would be saved
    CRDI_DRAW_SAVE,
} crdi_draw_verb;

typedef struct crdi_draw_request {
    bool has_id;
    double id; // a whole number below 2^32
    crdi_draw_verb verb;
    double version; // of the text that the page has seen
    const char *from, *to, *key, *value;
    bool overwrite;
} crdi_draw_request;

// As crdi_view_message: CRD_E_FORMAT: no JSON; CRD_E_RANGE: it makes no sense.
crd_status crdi_draw_message(crd_arena* arena, const char* bytes, size_t length,
                             crdi_draw_request* out);
// Appended to `out`. A failure is an answer, too.
void crdi_draw_answer(crdi_draw* d, const crdi_draw_request* q, crd_text* out);
const crd_text* crdi_draw_hello(const crdi_draw* d);
