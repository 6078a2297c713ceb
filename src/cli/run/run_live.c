// Who watches a run: the page and the stream, from options to their end.
#include "cli/run/run.h"
#include "shared/base_interrupt.h"
#include "shared/live.h"
#include "shared/web.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

crd_status crdi_live_check(crd_context* ctx, const crdi_watch_options* o)
{
    const struct {
        const char* name;
        bool given;
    } of_page[] = {
        {"ui-address", o->address}, {"ui-token", o->token},         {"ui-wait", o->wait},
        {"ui-keep", o->keep},       {"ui-open", o->open},           {"ui-plain", o->plain},
        {"ui-cert", o->cert},       {"ui-read-only", o->read_only}, {"ui-key", o->key}};
    for (size_t i = 0; i < sizeof of_page / sizeof *of_page; i++) {
        if (of_page[i].given && !o->ui) {
            return crdi_fail(ctx, CRD_E_RANGE, "--%s is about the page, expected --ui too",
                             of_page[i].name);
        }
    }
    if (o->wait && o->read_only) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--ui-wait and --ui-read-only: nobody could press Start, expected one of "
                         "them");
    }
    if (!o->cert != !o->key) {
        return crdi_fail(ctx, CRD_E_RANGE, "--ui-%s needs --ui-%s too", o->cert ? "cert" : "key",
                         o->cert ? "key" : "cert");
    }
    if (o->stream_signals.count && !o->stream) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--stream-signals says what is streamed, expected --stream pj://HOST:PORT "
                         "too");
    }
    return CRD_OK;
}

void crdi_tell(crdi_cli* cli, const char* what, const char* value)
{
    char line[1200];
    const int n = snprintf(line, sizeof line, "%-8s %s\n", what, value);
    pthread_mutex_lock(&cli->lock);
    crdi_write_all(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
    pthread_mutex_unlock(&cli->lock);
}

// The library knows what is missing, not what the options are called.
crd_status crdi_name_page_option(crd_context* ctx, crd_status st, const crdi_watch_options* o)
{
    const char* said = crd_error_text(ctx);
    if (st != CRD_E_RANGE || !strstr(said, "others")) { return st; }
    return crdi_fail(ctx, st, "%s (%s)", said,
                     o->open ? "--ui-cert and --ui-key, or --ui-plain" : "--ui-open");
}

crdi_web_options crdi_page_web_options(const crdi_watch_options* o)
{
    crdi_web_options web = crdi_web_defaults();
    if (o->address) { web.address = o->address; }
    web.open = o->open;
    web.plain = o->plain;
    web.cert = o->cert;
    web.key = o->key;
    web.token = o->token;
    return web;
}

crd_status crdi_page_serve(crdi_cli* cli, const crdi_watch_options* o, crdi_view* view,
                           crdi_draw* draw)
{
    crdi_web* web = NULL;
    crdi_web_options opt = crdi_page_web_options(o);
    opt.view = view;
    opt.draw = draw;
    crdi_interrupt_catch(&(crdi_interrupt_options){0});
    const crd_status st = crdi_web_start(cli->ctx, NULL, &opt, &web);
    if (st < 0) { return crdi_name_page_option(cli->ctx, st, o); }
    crdi_tell(cli, draw ? "draw" : "view", crdi_web_url(web));
    crdi_tell(cli, "", "until Ctrl-C");
    const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
    while (!crdi_interrupted()) {
        nanosleep(&pause, NULL); // a signal ends it early
    }
    crdi_web_stop(web, 0);
    return CRD_OK;
}

crd_status crdi_watch_start(crdi_cli* cli, crd_master* m, const crdi_watch_options* o,
                            crdi_watch* out)
{
    crd_status st = CRD_OK;
    *out = (crdi_watch){0};
    if (!o->ui && !o->stream) { return CRD_OK; }
    crdi_live_options live = crdi_live_defaults();
    live.wait = o->wait;
    live.ask = o->ask;
    live.calibration = o->calibration;
    live.read_only = o->read_only || !o->ui;
    CRD_TRY(crdi_live_create(cli->ctx, m, &live, &out->live));
    crdi_web_options web = crdi_page_web_options(o);
    web.page = o->ui;
    web.read_only = live.read_only;
    web.stream = o->stream;
    web.stream_signals = o->stream_signals.items;
    web.stream_signal_count = o->stream_signals.count;
    st = crdi_web_start(cli->ctx, out->live, &web, &out->web);
    if (st < 0) {
        st = crdi_name_page_option(cli->ctx, st, o);
        goto fail;
    }
    if (o->ui) { crdi_tell(cli, "live", crdi_web_url(out->web)); }
    return CRD_OK;
fail:
    crdi_watch_stop(out, 0);
    return st;
}

// What cannot be looked at (a pipe, a run without rows) is no failure of the run.
static void offer_view(crdi_cli* cli, crdi_watch* w, const char* results)
{
    struct stat file;
    if (!*results || stat(results, &file) < 0 || !S_ISREG(file.st_mode)) { return; }
    crd_context* ctx = crdi_context_child(cli->ctx); // the failure of the run stays
    if (ctx && crdi_view_create(ctx, &results, 1, &w->view) == CRD_OK) {
        crdi_web_show(w->web, w->view);
    }
    crd_context_destroy(ctx);
}

void crdi_watch_linger(crdi_cli* cli, crdi_watch* w, crd_status st, const char* results)
{
    if (!w->web || crdi_interrupted()) { return; }
    if (st < 0) {
        crdi_tell(cli, "failed", crd_error_text(cli->ctx));
    } // the command ends with it, later
    offer_view(cli, w, results);
    crdi_tell(cli, "live", "the page stays until Ctrl-C");
    const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
    while (!crdi_interrupted()) {
        nanosleep(&pause, NULL); // a signal ends it early
    }
}

void crdi_watch_stop(crdi_watch* w, double linger)
{
    if (w->web) { crdi_web_stop(w->web, crdi_web_readers(w->web) > 0 ? linger : 0); }
    crdi_view_destroy(w->view);
    crdi_live_destroy(w->live);
    *w = (crdi_watch){0};
}
