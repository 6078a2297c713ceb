// The viewer of results: what its page asks for and is told. Knows no socket.
#pragma once
#include "shared/base.h"
#include "shared/results_overview.h"
#include "shared/web.h"

enum {
    CRDI_VIEW_MESSAGE_BYTES = 1 << 20, // of a message from a page
    CRDI_VIEW_TRACKS = 512,            // of a request
    CRDI_VIEW_PIXELS = 16384,
    CRDI_VIEW_ROWS = 1 << 18, // samples of a request
};

typedef enum crdi_view_verb {
    CRDI_VIEW_LOOK,    // the extremes of pixels
    CRDI_VIEW_SAMPLES, // rows
    CRDI_VIEW_AT,      // values at times
    CRDI_VIEW_TEXTS,   // of a signal of texts
    CRDI_VIEW_SAVE,    // the layout
} crdi_view_verb;

typedef struct crdi_view_request {
    bool has_id;
    double id; // a whole number below 2^32
    crdi_view_verb verb;
    crdi_track* tracks;
    int track_count;
    double from, to;
    int pixels;
    int64_t most;
    bool thin;
    double times[2];
    int time_count;
    const crdi_json* layout;
} crdi_view_request;

// Whether there is a number between these two.
bool crdi_view_number(const crdi_json* v, double low, double high, bool whole, double* out);
// As crdi_web_message: CRD_E_FORMAT: no JSON; CRD_E_RANGE: it makes no sense.
crd_status crdi_view_message(crd_arena* arena, const char* bytes, size_t length,
                             crdi_view_request* out);
// Appended to `out`; `*binary`: not JSON. A failure is an answer, too: {"id", "error"}.
void crdi_view_answer(crdi_view* v, const crdi_view_request* q, crd_arena* arena, crd_text* out,
                      bool* binary);
void crdi_view_refuse(crd_text* out, bool has_id, double id, const char* why); // NULL: it is done
const crd_text* crdi_view_hello(const crdi_view* v);
bool crdi_view_work(crdi_view* v, int64_t budget); // false: nothing is left to do
