// Parts of the live page's server that know neither sockets nor threads.
#pragma once
#include "shared/base.h"
#include "shared/web.h"

// ---- what a page says: message.c ---------------------------------------------------------------

enum {
    CRDI_WEB_MESSAGE_BYTES = 16 << 10, // of a message from a page
    CRDI_WEB_WATCHED = 64,             // signals at a time, per reader
    CRDI_WEB_COMMANDS = 200,           // messages a second, per reader
    CRDI_WEB_READERS = 16,
    CRDI_WEB_QUEUE_BYTES = 1 << 20, // of answers that a reader does not take
};

typedef struct crdi_web_request {
    bool has_id;
    double id;     // a whole number
    bool watching; // `signals` instead of `command`
    const char** signals;
    int signal_count;
    crdi_live_command command; // without `who`
} crdi_web_request;

// All that `out` points at lives in the arena. CRD_E_FORMAT: this is no JSON; CRD_E_RANGE: it is,
// and makes no sense; the sentence is in the arena's context. `out->id` is valid then too, if
// has_id.
crd_status crdi_web_message(crd_arena* arena, const char* bytes, size_t length,
                            crdi_web_request* out);

// ---- what a page is told: show.c ---------------------------------------------------------------

void crdi_web_hello(crd_text* t, const crdi_live_info* info, bool read_only);
// Instead of hello, until the run is ready; of `info` what is known from the creation on.
void crdi_web_wait(crd_text* t, const crdi_live_info* info, const crdi_live_outcome* o,
                   bool read_only);
void crdi_web_status(crd_text* t, const crdi_live_status* s, const crdi_live_info* info,
                     int64_t lost_rows, int readers);
void crdi_web_event(crd_text* t, const crdi_live_event* e);
void crdi_web_reply(crd_text* t, const crdi_web_request* r, const char* error); // NULL: done
const char* crdi_web_state_name(crdi_live_state state);
const char* crdi_web_end_name(crd_end end);

// ---- benches: bench.c --------------------------------------------------------------------------

// Where a bench is, as on its way through a session.
enum {
    CRDI_WEB_REGISTERED,
    CRDI_WEB_PREPARED,
    CRDI_WEB_CONDITIONING,
    CRDI_WEB_CONDITIONED,
    CRDI_WEB_RUNNING,
    CRDI_WEB_STOPPING,
    CRDI_WEB_SAFE,
    CRDI_WEB_PLACES,
};
enum { CRDI_WEB_STOP_STEPS = 6 }; // torque, speed, voltage, cool down, stand down, safe

// What a board's moments tell. Times in s since the board was made, NaN: it did not happen.
typedef struct crdi_web_story {
    int place;                        // -1: nowhere yet
    double entered[CRDI_WEB_PLACES];  // since its newest registration
    double stop[CRDI_WEB_STOP_STEPS]; // when a step of the stop was done
    double heat_first, heat_now;      // K, of the conditioning
} crdi_web_story;

void crdi_web_tell_story(const crdi_board_state* b, crdi_web_story* out);
// How far a quantity is from the nearer limit, in its unit and in % of its range (NaN: it has no
// range); negative beyond it. `side`: "min", "max", "": no limit is near or far.
const char* crdi_web_margin(const crdi_board_quantity* q, double* distance, double* percent);
// One of the list in {"is":"benches","benches":[...]}
void crdi_web_bench(crd_text* t, const char* unit, const crdi_board_state* b);

// ---- values: frame.c ---------------------------------------------------------------------------

enum {
    CRDI_WEB_FRAME_ROWS = 400,  // most of a frame
    CRDI_WEB_BLOCK_ROWS = 1024, // most that are gathered before they are thinned
    CRDI_WEB_FRAME_HEAD = 16,
};

// Rows of time and values, (rows x width), row by row; width = 1 + signals. Thinned in place to at
// most 2 * buckets rows: the span of time is cut into equal buckets, and a bucket with more than
// two rows keeps each signal's least and largest value in the order in which they came, at the
// times of its first and last row. NaN is left out where there is something else. Returns the rows.
int crdi_web_thin(double* rows, int count, int width, int buckets);
size_t crdi_web_frame_bytes(int rows, int width);
void crdi_web_frame(const double* rows, int count, int width, uint32_t lost, uint8_t* out);

// ---- Prometheus: metrics.c ---------------------------------------------------------------------

// `info` and `s` may be NULL: the run is not ready yet.
void crdi_web_metrics(crd_text* t, const crdi_live_info* info, const crdi_live_status* s,
                      int64_t lost_rows, int readers);

// ---- PlotJuggler: stream.c ---------------------------------------------------------------------

enum { CRDI_STREAM_BYTES = 1399, CRDI_STREAM_PORT = 9870, CRDI_STREAM_VALUES = 20000 };

typedef struct crdi_stream crdi_stream;

typedef struct crdi_stream_counts {
    int64_t rows, left_out; // given; of those not sent as they were too many
    int64_t datagrams;      // sent
    int64_t dropped;        // the socket did not take
} crdi_stream_counts;

// "pj://host:port", the port may be missing. CRD_E_RANGE, CRD_E_NOT_FOUND (no such host), CRD_E_IO.
crd_status crdi_stream_open(crd_context* ctx, const char* target, crdi_stream** out);
void crdi_stream_close(crdi_stream* s);
// Which signals go out, by name; once, when they are known. No patterns: all.
crd_status crdi_stream_choose(crdi_stream* s, const crdi_live_info* info,
                              const char* const* patterns, int pattern_count);
int crdi_stream_signals(const crdi_stream* s);
void crdi_stream_row(crdi_stream* s, const crdi_live_row* row);
void crdi_stream_flush(crdi_stream* s); // sends what is begun; the next rows are the next flush
const crdi_stream_counts* crdi_stream_get_counts(const crdi_stream* s);

// ---- who may: access.c --------------------------------------------------------------------------

enum { CRDI_WEB_PORT = 8421, CRDI_WEB_TOKEN_BYTES = 128 };

// Where the server listens.
typedef struct crdi_web_address {
    char host[64]; // numeric, without brackets
    int port;
    bool given; // the port was named
    bool v6, loopback, any;
} crdi_web_address;

crd_status crdi_web_address_parse(crd_context* ctx, const char* text, crdi_web_address* out);
// CRD_E_RANGE: too short, or with characters that an address line has no room for.
crd_status crdi_web_token_check(crd_context* ctx, const char* token, bool loopback);
crd_status crdi_web_token_make(crd_context* ctx, char out[33]); // 128 random bits
bool crdi_web_token_equal(const char* a, const char* b);        // in a time that depends on a alone

typedef struct crdi_web_access {
    crdi_web_address bound; // with the port in use
    bool tls;
    char machine[256]; // its own name, "" unknown
} crdi_web_access;

// A name that leads to us in somebody else's DNS is not ours: pages of others must not reach the
// run through it. `host` NULL: the request had none.
bool crdi_web_host_allowed(const crdi_web_access* g, const char* host);
// `origin` NULL: no browser, or a plain visit.
bool crdi_web_origin_allowed(const crdi_web_access* g, const char* host, const char* origin);
