// A short run of a new system, in a process of its own: whatever its units do, it is over soon.
#include "cardan/master.h"
#include "cli/new/new.h"
#include "shared/archive.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIAL_LIMIT_MS = 4000 };

static crd_status try_out(crd_context* ctx, const crd_text* text, const char* path, double step,
                          double stop, crdi_trial* t)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    crd_master* m = NULL;
    CRD_TRY(crd_system_load_on(ctx, text->data, text->length, path, crd_ssp_read, &s));
    s->run.step = step;
    s->run.stop = stop;
    s->results = (crd_results_spec){0};
    CRD_TRY(crd_master_create(ctx, s, NULL, &m));
    CRD_TRY(crd_master_run(m));
fail:
    if (st < 0) {
        snprintf(t->text, sizeof t->text, "%s", crd_error_text(ctx));
    } else {
        const crd_master_report* r = crd_master_get_report(m);
        t->error = r->worst_error;
        t->defect = r->worst_defect;
        t->step = r->step;
        t->time = r->time - r->start;
    }
    t->status = st;
    crd_master_destroy(m);
    crd_system_destroy(s);
    return st;
}

// Its units may print what they like.
static void be_silent(void)
{
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; nothing >= 0 && fd < 3; fd++) {
        (void)dup2(nothing, fd);
    }
}

static void child(int out, const crd_text* text, const char* path, double step, double stop,
                  const char* folder)
{
    crdi_trial t = {.error = NAN, .defect = NAN};
    (void)setpgid(0, 0);
    (void)setenv("TMPDIR", folder, 1); // what it unpacks goes when it is killed
    be_silent();
    crd_context_options opt = crd_context_defaults();
    crd_context* ctx = crd_context_create(&opt);
    if (!ctx) { _exit(1); }
    (void)try_out(ctx, text, path, step, stop, &t);
    _exit(write(out, &t, sizeof t) == (ssize_t)sizeof t ? 0 : 1);
}

void crdi_trial_run(crd_context* ctx, const crd_text* text, const char* path, double step,
                    double stop, crdi_trial* out)
{
    int ends[2];
    const char* folder = NULL;
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    *out = (crdi_trial){.status = CRD_E_IO, .error = NAN, .defect = NAN};
    snprintf(out->text, sizeof out->text, "no process could be started");
    if (crdi_scratch_make(&arena, ctx, NULL, &folder) < 0 || pipe2(ends, O_CLOEXEC) != 0) {
        crd_arena_clear(&arena);
        return;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(ends[1], text, path, step, stop, folder);
    }
    close(ends[1]);
    if (pid > 0) {
        (void)setpgid(pid, pid);
        struct pollfd wait = {.fd = ends[0], .events = POLLIN};
        const int ready = poll(&wait, 1, TRIAL_LIMIT_MS);
        if (ready == 0) {
            out->timed_out = true;
            snprintf(out->text, sizeof out->text, "not done after %d s", TRIAL_LIMIT_MS / 1000);
        } else if (read(ends[0], out, sizeof *out) != (ssize_t)sizeof *out) {
            out->status = CRD_E_UNIT;
            snprintf(out->text, sizeof out->text, "its process ended before it was done");
        }
        (void)kill(-pid, SIGKILL); // with its workers
        (void)waitpid(pid, NULL, 0);
    }
    close(ends[0]);
    (void)crdi_scratch_remove(folder);
    crd_arena_clear(&arena);
}
