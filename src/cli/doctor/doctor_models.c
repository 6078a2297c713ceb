// The models of a system: have they a binary for this machine, and are their steps short enough?
#include "cardan/fmi.h"
#include "cardan/master.h"
#include "cli/doctor/doctor.h"
#include "shared/archive.h"
#include "shared/fmi_build.h"
#include "shared/system.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool doctor_models_stopped(const volatile bool* stop)
{
    return stop && __atomic_load_n(stop, __ATOMIC_RELAXED);
}

// ---- what an FMU says of itself ----------------------------------------------------------------

static void check_fmu(crd_context* ctx, const crd_unit_spec* u, bool* runnable, crdi_diagnoses* r)
{
    crd_fmu* f = NULL;
    crd_status st = crd_fmu_open(ctx, u->path, NULL, &f);
    bool exchange = false;
    if (st == CRD_OK) {
        exchange = u->interface == CRD_INTERFACE_MODEL_EXCHANGE ||
                   (u->interface == CRD_INTERFACE_AUTO && !crd_fmu_describe(f)->has_cosimulation);
        st = crdi_fmu_provide(f, exchange, ctx);
        if (st == CRD_OK) { st = crd_fmu_check_interface(f, exchange, ctx); }
    }
    if (st < 0) {
        *runnable = false;
        crdi_diagnosis* x =
            crdi_diagnose(r, "fmu-binary", u->name, CRDI_BAD, "%s", crd_error_text(ctx));
        crdi_diagnosis_fix(x, "%s",
                           st == CRD_E_NOT_FOUND
                               ? "put the FMU there, or correct its path in the system"
                               : "export the FMU for this platform; 'cardan info' tells what "
                                 "it has");
        crd_fmu_close(f);
        return;
    }
    const crd_fmu_description* d = crd_fmu_describe(f);
    const bool tool = exchange ? d->exchange.needs_execution_tool : d->needs_execution_tool;
    crdi_diagnose(r, "fmu-binary", u->name, CRDI_GOOD, "FMI %s for %s", d->fmi_version_text,
                  crd_fmu_platforms(f));
    crdi_diagnosis* x = crdi_diagnose(
        r, "fmu-tool", u->name, tool ? CRDI_BAD : CRDI_GOOD, "%s%s", tool ? "needs " : "needs none",
        tool ? *d->generation_tool ? d->generation_tool : "its tool" : "");
    crdi_diagnosis_fix(x, "export it with its code inside, so that no other program is needed");
    crd_fmu_close(f);
}

// ---- the dry run -------------------------------------------------------------------------------

// One per unit, through a pipe from the process of the dry run; then the end.
typedef struct message {
    int unit; // -1: the end
    crd_status st;
    double worst, period, wall, simulated; // s
    int64_t steps, measured;
    char text[400];
} message;

static void send_message(int fd, const message* m)
{
    crdi_write_all(fd, (const char*)m, sizeof *m); // up to PIPE_BUF: whole
}

// A model has crashed: its sentence, and this process ends.
static void tell_crash(void* user, const crd_last_words* w)
{
    message bad = {.unit = -1, .st = CRD_E_CRASH};
    snprintf(bad.text, sizeof bad.text, "%.399s", w->sentence);
    send_message(*(const int*)user, &bad);
    crdi_scratch_abandon();
}

// In a process of its own: a model that crashes or hangs takes nothing else with it.
// The system stays the parent's, with everything that it has unpacked.
static _Noreturn void dry_run(crd_context* ctx, const crd_system* s, double duration,
                              const volatile bool* stop, int fd)
{
    crd_status st = CRD_OK;
    crd_master* m = NULL;
    crd_master_options opt = crd_master_defaults();
    opt.guard_crashes = true;
    opt.last_words = tell_crash;
    opt.last_words_user = &fd;
    opt.stop = stop;
    const int64_t limit = (int64_t)(duration * 1e9);
    CRD_TRY(crd_master_create(ctx, s, &opt, &m));
    CRD_TRY(crd_master_initialize(m));
    const int64_t begin = crdi_now_ns();
    while (crd_master_ended(m) == CRD_END_NONE && crdi_now_ns() - begin < limit) {
        CRD_TRY(crd_master_advance(m, 16));
    }
    const crd_master_report* r = crd_master_get_report(m);
    for (int i = 0; i < r->unit_count; i++) {
        const crd_unit_report* u = &r->units[i];
        const message x = {.unit = i,
                           .worst = u->worst_step,
                           .period = u->step_size,
                           .steps = u->steps,
                           .measured = u->measured};
        send_message(fd, &x);
    }
    const message all = {.unit = -1,
                         .period = r->step,
                         .wall = 1e-9 * (double)(crdi_now_ns() - begin),
                         .simulated = r->time - r->start,
                         .steps = r->steps};
    crd_master_finish(m);
    crd_master_destroy(m);
    send_message(fd, &all);
    _exit(0);
fail:;
    message bad = {.unit = -1, .st = st};
    snprintf(bad.text, sizeof bad.text, "%.399s", crd_error_text(ctx));
    send_message(fd, &bad);
    alarm(2); // after a crash the heap may be damaged
    crd_master_destroy(m);
    _exit(1);
}

typedef struct listener {
    pid_t child;
    int fd;
    int64_t deadline;
    const volatile bool* stop;
    bool asked; // the child that the user has enough
} listener;

// One message; false at the end and at the deadline, which is near once the user has enough.
static bool receive_message(listener* l, message* m)
{
    enum { SOON = 2000000000 };
    size_t got = 0;
    while (got < sizeof *m) {
        struct pollfd p = {.fd = l->fd, .events = POLLIN};
        const int64_t now = crdi_now_ns();
        if (doctor_models_stopped(l->stop) && !l->asked) {
            l->asked = true;
            kill(l->child, SIGTERM);
            if (l->deadline > now + SOON) { l->deadline = now + SOON; }
        }
        if (now > l->deadline) { return false; }
        const int ready = poll(&p, 1, 100);
        if (ready < 0 && errno != EINTR) { return false; }
        if (ready <= 0) { continue; }
        const ssize_t n = read(l->fd, (char*)m + got, sizeof *m - got);
        if (n < 0 && errno == EINTR) { continue; }
        if (n <= 0) { return false; }
        got += (size_t)n;
    }
    return true;
}

static void judge_unit(const crd_system* s, const message* m, crdi_diagnoses* r)
{
    char a[32], b[32];
    if (m->unit < 0 || m->unit >= s->unit_count) { return; }
    const char* name = s->units[m->unit].name;
    if (!(m->period > 0) || m->measured <= 0) {
        crdi_diagnose(r, "step-time", name, CRDI_OPEN, "no step was measured");
        return;
    }
    const double share = m->worst / m->period;
    crdi_diagnosis* x =
        crdi_diagnose(r, "step-time", name,
                      share > 1     ? CRDI_BAD
                      : share > 0.5 ? CRDI_POOR
                                    : CRDI_GOOD,
                      "%s of its %s, the worst of %lld", crdi_format_seconds(a, m->worst),
                      crdi_format_seconds(b, m->period), (long long)m->measured);
    crdi_diagnosis_fix(x,
                       "a longer step, a simpler model, or 'budget:' for the unit in the system");
}

static void judge_end(const message* m, crdi_diagnoses* r)
{
    char a[32], b[32];
    if (m->st < 0) {
        crdi_diagnosis* x = crdi_diagnose(r, "dry-run", "", CRDI_BAD, "%.240s", m->text);
        crdi_diagnosis_fix(x, "cardan check and cardan run tell more");
        return;
    }
    const double load = m->simulated > 0 ? m->wall / m->simulated : 0;
    crdi_diagnosis* x = crdi_diagnose(r, "dry-run", "",
                                      load > 1     ? CRDI_BAD
                                      : load > 0.5 ? CRDI_POOR
                                                   : CRDI_GOOD,
                                      "%lld steps of %s took %s: %.2g %% of real time",
                                      (long long)m->steps, crdi_format_seconds(a, m->period),
                                      crdi_format_seconds(b, m->wall), 100 * load);
    crdi_diagnosis_fix(x, "a longer step, or simpler models: half of the time should be left");
}

static void judge_dead(pid_t child, bool ended, const volatile bool* stop, crdi_diagnoses* r)
{
    int status = 0;
    if (!ended) { kill(child, SIGKILL); }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (doctor_models_stopped(stop)) {
        crdi_diagnose(r, "dry-run", "", CRDI_OPEN, "interrupted");
        return;
    }
    crdi_diagnosis* x =
        crdi_diagnose(r, "dry-run", "", CRDI_BAD, "a model %s%s%s",
                      ended ? "ended the process" : "does not come back",
                      ended && WIFSIGNALED(status) ? ": " : "",
                      ended && WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "");
    crdi_diagnosis_fix(x, "cardan run tells which one");
}

static crd_status run_dry(crdi_cli* cli, const crd_system* s, crdi_wish* w,
                          const volatile bool* stop, crdi_diagnoses* r)
{
    enum { GRACE = 60 }; // s to load and initialise
    int ends[2];
    if (pipe(ends) != 0) {
        return crdi_fail(cli->ctx, CRD_E_IO, "no pipe for the dry run: %s", strerror(errno));
    }
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        dry_run(cli->ctx, s, w->duration, stop, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return crdi_fail(cli->ctx, CRD_E_IO, "no process for the dry run: %s", strerror(errno));
    }
    listener l = {.child = child,
                  .fd = ends[0],
                  .deadline = crdi_now_ns() + (int64_t)((w->duration + GRACE) * 1e9),
                  .stop = stop};
    message m = {.unit = 0};
    bool arrived = true;
    while (arrived && m.unit >= 0) {
        arrived = receive_message(&l, &m);
        if (arrived && m.unit >= 0) { judge_unit(s, &m, r); }
    }
    if (arrived) {
        judge_end(&m, r);
        if (isnan(w->step) && m.period > 0) { w->step = m.period; }
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    } else {
        judge_dead(child, crdi_now_ns() <= l.deadline, stop, r);
    }
    close(ends[0]);
    return CRD_OK;
}

crd_status crdi_doctor_models(crdi_cli* cli, const char* path, crdi_wish* w,
                              const volatile bool* stop, crdi_diagnoses* r)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    bool runnable = true, remote = false;
    CRD_TRY(crdi_load_system(cli->ctx, path, &s));
    CRD_TRY(crdi_check_times(s));
    if (isnan(w->step) && s->run.step > 0) { w->step = s->run.step; }
    for (int i = 0; i < s->unit_count && !doctor_models_stopped(stop); i++) {
        const crd_unit_spec* u = &s->units[i];
        if (u->source == CRD_UNIT_FMU) { check_fmu(cli->ctx, u, &runnable, r); }
        remote = remote || crdi_unit_kind_of(u->source)->is_remote;
    }
    if (remote) {
        crdi_diagnose(r, "dry-run", "", CRDI_OPEN,
                      "it would move what DCP slaves and other partners drive");
    } else if (w->duration <= 0 || !runnable) {
        crdi_diagnose(r, "dry-run", "", CRDI_OPEN, "not made");
    } else if (!doctor_models_stopped(stop)) {
        s->results.path = NULL; // nothing is recorded, nothing waits
        s->results.exchange = s->results.session = NULL;
        s->run.pace.factor = 0;
        for (int i = 0; i < s->unit_count; i++) {
            s->units[i].budget = NAN;
        }
        CRD_TRY(run_dry(cli, s, w, stop, r));
    }
fail:
    crd_system_destroy(s);
    return st;
}
