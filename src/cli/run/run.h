// cardan run in parts: what it does (run.c), what it says at the end (run_report.c), how it kept
// the clock (run_pace.c), and who may watch (run_live.c).
#pragma once
#include "cardan/master.h"
#include "cli/cli.h"
#include "shared/pace.h"
#include "shared/unit_ward.h"
#include "shared/web.h"

// ---- overrides.c
// What the command line says instead of the description.
typedef struct crdi_overrides {
    double start_time, stop_time, step, interval, tolerance, control;
    double max_defect, max_energy, max_error, max_lateness;
    const char *guard, *scheme, *output, *pace, *exchange, *session, *on_full;
    crdi_input input;
    crdi_list parameters, set, variables;
    int predict, threads, interface, solver, mat_version, overrun, max_overruns;
    bool unit_row, iterate, no_quality, allow_nan;
} crdi_overrides;
extern const char* const crdi_schemes[];
extern const char* const crdi_interfaces[];
extern const char* const crdi_paces[];
extern const char* const crdi_on_fulls[];
extern const char* const crdi_mat_versions[];
// `subject`: the argument of the command. A context that notes failures gets them all.
crd_status crdi_apply_overrides(struct crd_system* s, const char* subject, const crdi_overrides* o);

// ---- run_report.c
typedef struct crdi_run_end {
    crd_status status;
    bool by_page; // somebody pressed Stop
} crdi_run_end;
// Values into `out`, the report for people beside it unless `quiet`; a run that did not begin has
// no report.
void crdi_put_report(crdi_result* out, const crd_master_report* r, const crdi_run_end* end,
                     bool quiet);

// ---- run_pace.c
void crdi_say_pace(crdi_result* out, const crd_master_report* r);
void crdi_show_links(crdi_result* out, const crd_master_report* r);
void crdi_put_pace(crdi_result* out, const crd_master_report* r);
void crdi_put_link(crdi_result* out, const struct crd_link_stats* l);
// CRD_E_LIMIT with a sentence; -1, NaN: no limit.
crd_status crdi_check_pace(crd_context* ctx, const crd_master_report* r, int max_overruns,
                           double max_lateness);
// The sentence of a run that a late cycle ended: CRD_E_LIMIT.
crd_status crdi_fail_overrun(crd_context* ctx, const crd_master_report* r);

// ---- quality.c
void crdi_say_step_quality(crdi_result* out, const crd_master_report* r);
// Values into `out`, tables into `aside`.
void crdi_put_quality(crdi_result* out, crdi_result* aside, const crd_master_report* r);
// CRD_E_LIMIT with the worst connection or bond.
crd_status crdi_check_limits(crd_context* ctx, const crd_master_report* r,
                             const crd_guard_spec* limits);

// ---- run_live.c
typedef struct crdi_watch_options {
    bool ui, wait, read_only, keep, open, plain;
    bool ask;                // by the command: nothing begins before the page says so
    const char* calibration; // by the command: the file for calibrations
    const char *address, *token, *cert, *key, *stream;
    crdi_list stream_signals;
} crdi_watch_options;

// The rows of a command whose struct of options has a crdi_watch_options at `field`: where the page
// is served, and to whom.
#define CRDI_PAGE_OPTIONS(object, field)                                                           \
    OPT_TEXT(object, field.address, "ui-address", "ADDRESS[:PORT]",                                \
             "where the page is served; 127.0.0.1:8421 unless given, and a free port if that "     \
             "one is taken"),                                                                      \
        OPT_TEXT(object, field.token, "ui-token", "TOKEN",                                         \
                 "that the address of the page has to bear; random unless given"),                 \
        OPT_FLAG(object, field.open, "ui-open",                                                    \
                 "an address that others can reach is meant; needs --ui-cert and --ui-key, or "    \
                 "--ui-plain"),                                                                    \
        OPT_FILE(object, field.cert, "ui-cert", "pem|crt",                                         \
                 "certificate (PEM): the page is served by https"),                                \
        OPT_FILE(object, field.key, "ui-key", "pem|key", "private key of the certificate (PEM)"),  \
        OPT_FLAG(object, field.plain, "ui-plain",                                                  \
                 "no encryption although others can reach the page: who listens can read the "     \
                 "token")

#define CRDI_LIVE_OPTIONS(object, field)                                                           \
    OPT_FLAG(object, field.ui, "ui",                                                               \
             "watch and steer the run in a browser: the address of the page is printed on "        \
             "standard error before the run begins"),                                              \
        CRDI_PAGE_OPTIONS(object, field),                                                          \
        OPT_FLAG(object, field.wait, "ui-wait",                                                    \
                 "stand still before the first step until Start is pressed on the page"),          \
        OPT_FLAG(object, field.keep, "ui-keep",                                                    \
                 "serve the page after the end of the run, too, until Ctrl-C"),                    \
        OPT_FLAG(object, field.read_only, "ui-read-only",                                          \
                 "the page shows the run and cannot change it"),                                   \
        OPT_TEXT(object, field.stream, "stream", "pj://HOST:PORT",                                 \
                 "send the signals to PlotJuggler while the run goes (UDP, JSON); its port is "    \
                 "9870 unless changed there"),                                                     \
        OPT_LIST(object, field.stream_signals, "stream-signals", "PATTERN",                        \
                 "signals that are streamed, with * and ?; all unless given")

// The process that guards the benches of a run.
typedef struct crdi_guarding {
    double watchdog;  // s, NaN: what the system says
    bool none, quiet; // quiet: by the command, its address is not printed
    const char *address, *token, *input;
} crdi_guarding;

#define CRDI_GUARD_OPTIONS(object, field)                                                          \
    OPT_TIME(object, field.watchdog, "watchdog", CRDI_POSITIVE,                                    \
             "of runs with test benches: a process of its own stops them in order when the run "   \
             "is killed, stopped or stuck for this long; what the system says, else 2 s"),         \
        OPT_FLAG(object, field.none, "no-watchdog",                                                \
                 "no such process: nobody outside of the run watches its benches"),                \
        OPT_TEXT(object, field.address, "estop-address", "ADDRESS[:PORT]",                         \
                 "where that process serves the emergency stop; 127.0.0.1:8422 unless given, and " \
                 "a free port if that one is taken"),                                              \
        OPT_TEXT(object, field.token, "estop-token", "TOKEN",                                      \
                 "that the address of the emergency stop has to bear; random unless given"),       \
        OPT_TEXT(object, field.input, "estop-input", "key:DEVICE[:CODE]|gpio:FILE",                \
                 "a key or button of this machine as emergency stop: key:/dev/input/event3 "       \
                 "(any key, or the one with this code), or gpio:FILE, where any change of the "    \
                 "value counts, as does a device that vanishes")

// The page of results or of a drawn description, until Ctrl-C.
crd_status crdi_page_serve(crdi_cli* cli, const crdi_watch_options* o, struct crdi_view* view,
                           struct crdi_draw* draw);
// Where the page is served as the library takes it; and a failure of it with the options' names.
crdi_web_options crdi_page_web_options(const crdi_watch_options* o);
crd_status crdi_name_page_option(crd_context* ctx, crd_status st, const crdi_watch_options* o);
void crdi_tell(crdi_cli* cli, const char* what, const char* value); // a line on standard error
crd_status crdi_guarding_start(crdi_cli* cli, crd_master* m, const struct crd_system* s,
                               const crdi_guarding* o, crdi_ward** out);
extern const char crdi_unfinished_session[]; // what a session record says until the end

typedef struct crdi_watch {
    struct crdi_live* live;
    struct crdi_web* web;
    crdi_view* view; // of the results, behind the end
} crdi_watch;

// CRD_E_RANGE for options that make no sense together.
crd_status crdi_live_check(crd_context* ctx, const crdi_watch_options* o);
// Nothing if neither a page nor a stream is wished. Tells where the page is. Between creation and
// initialisation of the master; after a failure there is nothing to stop.
crd_status crdi_watch_start(crdi_cli* cli, crd_master* m, const crdi_watch_options* o,
                            crdi_watch* out);
// Serves on until Ctrl-C, and the results ("": none) to be looked at.
void crdi_watch_linger(crdi_cli* cli, crdi_watch* w, crd_status st, const char* results);
void crdi_watch_stop(crdi_watch* w, double linger); // before the master is destroyed
