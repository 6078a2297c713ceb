// web_run [--wait] [--read-only] [--fast] [--address A] [--token T] [--stop S] [--stream PJ]
//         [--cert FILE --key FILE] [--open] [--plain] [--units N]
// A small run with its page, for the tests that talk to it. Prints the address, then runs at real
// time (or --fast) until its stop time or until it is told to stop, then says how it ended.
#include "run_help.h"

#include <stdio.h>

static void print_line(void* user, crd_level level, const char* text)
{
    (void)user, (void)level;
    fprintf(stderr, "%s\n", text);
}

int main(int argc, char** argv)
{
    crdi_web_options wo = crdi_web_defaults();
    bool wait = false, fast = false, live_read_only = false;
    double stop = 1e6;
    int units = 1;
    const char* signals[] = {"clock.*", "int.y"};
    wo.stream_signals = signals;
    wo.stream_signal_count = 2;
    for (int i = 1; i < argc; i++) {
        const char* next = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--wait") == 0) {
            wait = true;
        } else if (strcmp(argv[i], "--fast") == 0) {
            fast = true;
        } else if (strcmp(argv[i], "--read-only") == 0) {
            wo.read_only = live_read_only = true;
        } else if (strcmp(argv[i], "--open") == 0) {
            wo.open = true;
        } else if (strcmp(argv[i], "--plain") == 0) {
            wo.plain = true;
        } else if (strcmp(argv[i], "--no-page") == 0) {
            wo.page = false;
        } else {
            i++;
            if (strcmp(argv[i - 1], "--address") == 0) {
                wo.address = next;
            } else if (strcmp(argv[i - 1], "--token") == 0) {
                wo.token = next;
            } else if (strcmp(argv[i - 1], "--stream") == 0) {
                wo.stream = next;
            } else if (strcmp(argv[i - 1], "--cert") == 0) {
                wo.cert = next;
            } else if (strcmp(argv[i - 1], "--key") == 0) {
                wo.key = next;
            } else if (strcmp(argv[i - 1], "--units") == 0) {
                units = atoi(next);
            } else if (strcmp(argv[i - 1], "--stop") == 0) {
                stop = strtod(next, NULL);
            } else {
                fprintf(stderr, "web_run: what is %s?\n", argv[i - 1]);
                return 2;
            }
        }
    }
    crd_context_options co = crd_context_defaults();
    co.log = print_line;
    crd_context* ctx = crd_context_create(&co);
    small_run r;
    open_run(&r, ctx, units, 0.001, stop, fast ? 0 : 1, wait, live_read_only);
    crdi_web* w = NULL;
    int code = 0;
    if (crdi_web_start(ctx, r.l, &wo, &w) < 0) {
        fprintf(stderr, "web_run: %s\n", crd_error_text(ctx));
        code = 1;
    } else {
        printf("%s\n", crdi_web_url(w));
        fflush(stdout);
        const crd_status st = crd_master_run(r.m);
        const double end = crd_master_time(r.m);
        crdi_web_stop(w, 1);
        printf("ended %d at %g lost %lld\n", (int)st, end, (long long)crdi_live_lost(r.l));
    }
    close_run(&r);
    crd_context_destroy(ctx);
    return code;
}
