/// The live page and the streams: what a watched run looks like from outside.
///
/// One thread of its own (libwebsockets) serves the page, a WebSocket for every reader, Prometheus'
/// text under /metrics, and sends PlotJuggler's UDP batches. It is the watcher of a crdi_live. The
/// page is in the library; nothing is fetched from elsewhere. docs/how-to/live.md has the messages.
#pragma once
#include "cardan/system.h"
#include "shared/live.h"

typedef struct crdi_web crdi_web;   ///< opaque
typedef struct crdi_view crdi_view; ///< opaque: recordings to be looked at

/// Opens recordings for the viewer. The failure names the file.
crd_status crdi_view_create(crd_context* ctx, const char* const* paths, int count, crdi_view** out);
void crdi_view_destroy(crdi_view* v);
const char* crdi_view_error(const crdi_view* v); ///< of the last failure
/// One HTML file that shows the signals (patterns; none: those of the layout, else some) without a
/// server: `pixels` extremes of each. Complete or not at all; "-": standard output.
crd_status crdi_view_export(crdi_view* v, const char* const* patterns, int pattern_count,
                            int pixels, const char* path);

typedef struct crdi_draw crdi_draw; ///< opaque: a description whose connections are drawn

typedef struct crdi_draw_options {
    const char* path;      ///< of the description: for messages, and where it is saved
    const crd_text* text;  ///< of the description
    bool draft;            ///< it is not in the file yet, and its connections are proposals
    crd_system_base* base; ///< reads what `system:` names, NULL: refused
} crdi_draw_options;

/// Opens a description for the page of connections. A text of which nothing can be drawn fails;
/// errors that cardan check tells are shown.
crd_status crdi_draw_create(crd_context* ctx, const crdi_draw_options* o, crdi_draw** out);
void crdi_draw_destroy(crdi_draw* d);
bool crdi_draw_saved(const crdi_draw* d); ///< the file holds what is drawn; behind crdi_web_stop

typedef struct crdi_web_options {
    const char* address; ///< "127.0.0.1", "[::1]:8421", ":0"; port 0 or none: 8421, else a free one
    bool page;           ///< serve at all; false: streams only
    bool open;           ///< an address that is not loopback is meant; needs TLS or `plain`
    bool plain;          ///< ... without TLS: said aloud
    const char *cert, *key; ///< PEM files; NULL: no TLS
    const char* token;      ///< NULL: 128 random bits
    bool read_only;
    double rate;                       ///< frames per second to a page; default 20
    const char* stream;                ///< "pj://host:9870", NULL: none
    double stream_rate;                ///< flushes per second; default 50
    const char* const* stream_signals; ///< patterns; none: all
    int stream_signal_count;
    crdi_view* view; ///< results to be looked at, the thread's until crdi_web_stop; NULL: none
    crdi_draw* draw; ///< a description to be drawn instead of a run and results, as `view`
    bool sheet;      ///< a picture that is made anew as things go, instead of all of these
} crdi_web_options;

crdi_web_options crdi_web_defaults(void);
/// Listens and starts the thread. `live` may be NULL if there is a view or a drawing. CRD_E_RANGE
/// for what is forbidden (an open address without `open`), CRD_E_IO with the reason. `live`
/// outlives it.
crd_status crdi_web_start(crd_context* ctx, crdi_live* live, const crdi_web_options* opt,
                          crdi_web** out);
/// The run is over, and its results can be looked at: from now on the view belongs to the thread.
void crdi_web_show(crdi_web* w, crdi_view* view);
/// The newest picture (SVG) with a title and a line about how far it is; copied. Any thread.
crd_status crdi_web_put_sheet(crdi_web* w, const char* title, const char* line,
                              const crd_text* picture);
/// Whether a page has asked for something newer since the last one was put: else nobody looks.
bool crdi_web_sheet_wanted(crdi_web* w);
const char* crdi_web_url(const crdi_web* w); ///< with the token, to be printed; "" no page
int crdi_web_readers(const crdi_web* w);     ///< open pages now
/// Tells the pages how it ended, gives them `linger` s to take it, ends the thread.
void crdi_web_stop(crdi_web* w, double linger);
