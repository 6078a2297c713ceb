#include "reproduce/rautenberg2023.h"

#include "cardan/master.h"
#include "shared/archive.h"
#include "shared/testbench.h"
#include "shared/testbench_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char* const kinds[CRDI_DRIVE_BENCHES] = {"ice", "em"};
static const crdi_testbench_kind kind_ids[CRDI_DRIVE_BENCHES] = {CRDI_TESTBENCH_ICE,
                                                                 CRDI_TESTBENCH_EM};
// What is recorded, and so what crdi_drive_column knows.
static const char* const columns[] = {"cycle.speed",
                                      "vehicle.speed",
                                      "vehicle.heat",
                                      "vehicle.energy_gearbox",
                                      "battery.soc",
                                      "controller.torque_request",
                                      "controller.machine_torque",
                                      "controller.mode",
                                      "clutch.machine_speed_ref",
                                      "clutch.speed_ref",
                                      "clutch.pedal_ref",
                                      "ice.fuel",
                                      "ice.speed",
                                      "ice.throttle",
                                      "ice.torque_max",
                                      "em.speed",
                                      "em.torque",
                                      "em.torque_calc",
                                      "em.torque_max",
                                      "em.oil_in",
                                      "em.oil_out",
                                      "em.temperature_max",
                                      "oil.inlet",
                                      "oil.gear",
                                      "oil.sump",
                                      "oil.cooler",
                                      "oil.machine",
                                      "oil.lost",
                                      "oil.stored"};

typedef struct benches {
    const char* folder;
    pid_t pids[CRDI_DRIVE_BENCHES]; // 0: none
} benches;

// ---- the benches -------------------------------------------------------------------------------

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static bool ended(pid_t* pid)
{
    if (*pid > 0 && waitpid(*pid, NULL, WNOHANG) != 0) { *pid = 0; }
    return *pid == 0;
}

// Each in its order, or by force when it has had half a minute for it.
static void end_benches(benches* b)
{
    for (int i = 0; i < CRDI_DRIVE_BENCHES; i++) {
        for (int turn = 0; turn < 3500 && !ended(&b->pids[i]); turn++) {
            if (turn == 500) { kill(b->pids[i], SIGTERM); }
            pause_ms(10);
        }
        if (!ended(&b->pids[i])) {
            kill(b->pids[i], SIGKILL);
            waitpid(b->pids[i], NULL, 0);
            b->pids[i] = 0;
        }
    }
}

// It ends with this process, whatever becomes of that.
static pid_t spawn_bench(const char* command, const char* kind, const char* dcpx, const char* log,
                         bool clock)
{
    const char* const words[] = {command,
                                 "bench",
                                 kind,
                                 "--json",
                                 "--once",
                                 "--listen",
                                 "udp://127.0.0.1:0",
                                 "--write-description",
                                 dcpx,
                                 "--speed-up",
                                 "500",
                                 clock ? "--realtime" : NULL,
                                 NULL};
    const pid_t parent = getpid(), pid = fork();
    if (pid != 0) { return pid; }
    const int nothing = open("/dev/null", O_RDONLY),
              said = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(nothing, STDIN_FILENO) >= 0 && dup2(said, STDOUT_FILENO) >= 0) {
        (void)execvp(command, (char* const*)(uintptr_t)words);
    }
    _exit(127);
}

// One that listens has written its description and said so.
static crd_status start_benches(crdi_reproduction* r, bool clock, benches* b)
{
    char dcpx[512], log[512], head[32];
    for (int i = 0; i < CRDI_DRIVE_BENCHES; i++) {
        snprintf(dcpx, sizeof dcpx, "%s/%s.dcpx", b->folder, kinds[i]);
        snprintf(log, sizeof log, "%s/%s.json", b->folder, kinds[i]);
        b->pids[i] = spawn_bench(r->command, kinds[i], dcpx, log, clock);
        if (b->pids[i] < 0) {
            b->pids[i] = 0;
            return crdi_fail(r->ctx, CRD_E_IO, "%s bench %s: %s", r->command, kinds[i],
                             strerror(errno));
        }
        for (int turn = 0; crdi_file_head(log, head, sizeof head) == 0; turn++) {
            if (turn > 1000 || ended(&b->pids[i])) {
                return crdi_fail(r->ctx, CRD_E_IO, "%s bench %s did not begin to listen",
                                 r->command, kinds[i]);
            }
            pause_ms(10);
        }
    }
    return CRD_OK;
}

// What the bench says at its end, in its last line, and what the master knows of the link.
static crd_status read_account(crdi_reproduction* r, const char* folder, int bench,
                               const crd_link_stats* link, crdi_drive_account* out)
{
    crd_status st = CRD_OK;
    crd_text text = {.ctx = r->ctx};
    crdi_json* said = NULL;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.json", folder, kinds[bench]);
    const crdi_file_need need = {.what = "what a bench has said", .most = 1 << 26};
    CRD_TRY(crdi_file_read(r->ctx, path, &need, &text));
    while (text.length > 0 && text.data[text.length - 1] == '\n') {
        text.data[--text.length] = 0;
    }
    const char* line = strrchr(text.data, '\n');
    line = line ? line + 1 : text.data;
    CRD_TRY(
        crdi_json_parse(&r->arena, line, strlen(line), (crdi_json_source){.file = path}, &said));
    const char* const received[] = {"requests", "dropped",      "data_in",
                                    "data_old", "data_foreign", "data_dropped"};
    double sum = 0;
    for (size_t i = 0; i < sizeof received / sizeof *received; i++) {
        sum += crdi_json_get_number(said, received[i]);
    }
    const double lost = crdi_json_get_number(said, "data_lost");
    const double came = crdi_json_get_number(said, "data_in") +
                        crdi_json_get_number(said, "data_old") +
                        crdi_json_get_number(said, "data_dropped");
    out->lost = lost + (double)link->lost;
    out->unknown = fabs(crdi_json_get_number(said, "received") - sum) +
                   fmax(0, (double)link->out - came - lost);
    out->late = crdi_json_get_number(said, "late_steps");
    out->age = link->age_mean;
fail:
    crd_text_clear(&text);
    return st;
}

// ---- the system --------------------------------------------------------------------------------

static crd_status put_asset(crdi_reproduction* r, const crdi_asset* a, const char* folder,
                            const char* name, char path[512])
{
    const crd_text text = {.data = (char*)(uintptr_t)a->data, .length = a->length};
    snprintf(path, 512, "%s/%s", folder, name);
    return crdi_file_write(r->ctx, path, &text);
}

static crd_status set_number(crd_system* s, const char* unit, const char* name, double value)
{
    char text[32];
    crdi_format_double(text, value);
    return crd_system_set(s, crd_system_find(s, unit), name, text, (crd_place){"", 0});
}

// A bench as its file has it, or its machines here.
static crd_status set_bench(const crdi_drive_spec* spec, crd_system* s, int i)
{
    crd_unit_spec* u = &s->units[crd_system_find(s, kinds[i])];
    if (spec->how != CRDI_DRIVE_LOCAL) {
        u->address = NULL; // its description knows the port
        u->session.mode = spec->how == CRDI_DRIVE_STEPS ? CRD_DCP_MODE_NRT : CRD_DCP_MODE_SRT;
        u->bench.initial =
            crdi_arena_format(&s->arena, "%soil %g degC; tolerance 1 K",
                              i == CRDI_DRIVE_ICE ? "coolant 30 degC; " : "", spec->start);
        return u->bench.initial ? CRD_OK : CRD_E_MEMORY;
    }
    const crd_model* m = NULL;
    const crd_status st = crdi_testbench_model(&s->arena, kind_ids[i], &m);
    if (st < 0) { return st; }
    u->source = CRD_UNIT_NATIVE;
    u->model = m;
    u->bench.used = false;
    return set_number(s, kinds[i], "temperature", spec->start);
}

static crd_status set_units(crdi_reproduction* r, const crdi_drive_spec* spec, crd_system* s)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < s->unit_count; i++) {
        crd_unit_spec* u = &s->units[i];
        if (u->source == CRD_UNIT_REPLAY) {
            u->path = r->cycle;
            u->repeat = true;
            u->time_offset -= spec->from;
        } else if (u->source == CRD_UNIT_FMU) { // pt_NAME.fmu is in here
            char name[64];
            snprintf(name, sizeof name, "pt_%s", u->name);
            u->source = CRD_UNIT_NATIVE;
            u->model = crdi_powertrain_model(name);
        } else if (u->source == CRD_UNIT_SIGNAL) {
            for (int j = 0; j < u->signal_count; j++) {
                crd_signal_spec* g = (crd_signal_spec*)(uintptr_t)&u->signals[j];
                if (strcmp(g->name, "air") == 0) { g->amplitude = spec->air - g->offset; }
            }
        }
    }
    for (int i = 0; i < CRDI_DRIVE_BENCHES; i++) {
        CRD_TRY(set_bench(spec, s, i));
    }
    CRD_TRY(set_number(s, "oil", "t0", spec->start + 273.15));
fail:
    return st;
}

static crd_status make_system(crdi_reproduction* r, const crdi_drive_spec* spec, const char* folder,
                              crd_system** out)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    char path[512], oil[512];
    const bool clock = spec->how == CRDI_DRIVE_CLOCK;
    CRD_TRY(put_asset(r, &crdi_rautenberg_oil, folder, "oil_circuit.cir", oil));
    CRD_TRY(put_asset(r, &crdi_rautenberg_system, folder, "wltc.yaml", path));
    CRD_TRY(crd_system_load(r->ctx, path, &s));
    CRD_TRY(set_units(r, spec, s));
    CRD_TRY(crd_system_set_pace(s, clock ? "realtime" : "free", (crd_place){"", 0}));
    s->run.stop = spec->seconds;
    s->results.path = crdi_arena_format(&s->arena, "%s/run.mf4", folder);
    s->results.session = spec->how == CRDI_DRIVE_LOCAL
                             ? NULL
                             : crdi_arena_format(&s->arena, "%s/session.csv", folder);
    s->results.interval = spec->interval;
    s->results.patterns = columns;
    s->results.pattern_count = (int)(sizeof columns / sizeof *columns);
    if (!s->results.path) { CRD_TRY(CRD_E_MEMORY); }
    *out = s;
    return CRD_OK;
fail:
    crd_system_destroy(s);
    return st;
}

// ---- the run -----------------------------------------------------------------------------------

// What the account of the pace says: an overrun began late though the one before it was in time, so
// that the thread was woken late; or it is behind another one; or else nobody can say whether its
// work, a lock or the host took so long.
static void read_pace(const crd_master_report* report, crdi_drive* d)
{
    const crd_pace_report* p = report->pace;
    const int64_t period = (int64_t)(1e9 * p->period);
    d->overruns = p->overruns;
    for (int i = 0; i < p->kept_count; i++) {
        const crd_overrun_info* o = &p->kept[i];
        const bool began_late = o->late_ns + period - o->busy_ns > o->busy_ns;
        d->woken += began_late && o->behind == 0;
        d->behind += began_late && o->behind > 0;
    }
    if (p->overruns > 0) { d->worst = 1e-9 * (double)p->worst.late_ns; }
    d->busiest = 1e-9 * (double)p->busy.max;
}

static crd_status drive(crdi_reproduction* r, const crdi_drive_spec* spec, const crd_system* s,
                        const char* folder, benches* b, crdi_drive* d)
{
    crd_status st = CRD_OK;
    crd_master* m = NULL;
    crd_master_options opt = crd_master_defaults();
    opt.stop = r->stop;
    CRD_TRY(crd_master_create(r->ctx, s, &opt, &m));
    st = crd_master_run(m);
    if (st >= 0 && crd_master_ended(m) == CRD_END_INTERRUPTED) {
        st = crdi_fail(r->ctx, CRD_E_STATE, "interrupted");
    }
    CRD_TRY(st);
    const crd_master_report* report = crd_master_get_report(m);
    const crd_guard_report* g = &report->guard;
    d->guard = g->state;
    d->guard_text = crdi_arena_format(&r->arena, "%s%s%s, %d of %d loops with a map",
                                      crd_guard_state_name(g->state), *g->text ? ": " : "", g->text,
                                      g->mapped, g->loops);
    if (!d->guard_text) { CRD_TRY(CRD_E_MEMORY); }
    read_pace(report, d);
    if (spec->how == CRDI_DRIVE_LOCAL) { goto fail; }
    end_benches(b);
    for (int i = 0; i < CRDI_DRIVE_BENCHES; i++) {
        const crd_unit_report* u = &report->units[crd_system_find(s, kinds[i])];
        CRD_TRY(read_account(r, folder, i, u->link, &d->benches[i]));
    }
fail:
    crd_master_destroy(m);
    return st;
}

crd_status crdi_drive_run(crdi_reproduction* r, const crdi_drive_spec* spec, crdi_drive* out)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    const char* folder = NULL;
    benches b = {0};
    crdi_drive d = {.ctx = r->ctx};
    CRD_TRY(crdi_scratch_make(&r->arena, r->ctx, NULL, &folder));
    b.folder = folder;
    if (spec->how != CRDI_DRIVE_LOCAL) {
        CRD_TRY(start_benches(r, spec->how == CRDI_DRIVE_CLOCK, &b));
    }
    CRD_TRY(make_system(r, spec, folder, &s));
    CRD_TRY(drive(r, spec, s, folder, &b, &d));
    CRD_TRY(crd_table_read(r->ctx, s->results.path, &d.run));
    d.rows = d.run->rows;
    if (s->results.session) { CRD_TRY(crd_table_read(r->ctx, s->results.session, &d.session)); }
    *out = d;
    d = (crdi_drive){0};
fail:
    end_benches(&b);
    crd_system_destroy(s);
    crdi_drive_clear(&d);
    if (folder) { (void)crdi_scratch_remove(folder); }
    return st;
}

void crdi_drive_clear(crdi_drive* d)
{
    crd_table_destroy(d->run);
    crd_table_destroy(d->session);
    *d = (crdi_drive){0};
}

const double* crdi_drive_column(const crdi_drive* d, const char* name)
{
    return d->run->columns[crd_table_find(d->run, name)].values;
}
