// cardan doctor: the command, its lines and its JSON.
#include "cli/doctor/doctor.h"
#include "shared/base_interrupt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct doctor_options {
    crdi_common common;
    int profile, cpu, priority;
    double step, duration;
    crdi_list interfaces, ports;
    bool all;
} doctor_options;

enum { WIDTH = 100, INDENT = 8, TITLE_MOST = 24 };

// ---- ports -------------------------------------------------------------------------------------

void crdi_wish_usual_ports(crdi_wish* w)
{
    static const crdi_port usual[] = {
        {.udp = true, .tcp = true, .number = 8080, .purpose = "DCP slave"},
        {.tcp = true, .number = 8421, .purpose = "live page"},
        {.udp = true, .number = 9870, .purpose = "PlotJuggler", .served = true}};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        w->ports[w->port_count++] = usual[i];
    }
}

crd_status crdi_wish_port(crd_context* ctx, crdi_wish* w, const char* text)
{
    const bool udp = strncmp(text, "udp:", 4) == 0, tcp = strncmp(text, "tcp:", 4) == 0;
    const char* digits = udp || tcp ? text + 4 : text;
    int64_t number = 0;
    if (!crdi_parse_int64(digits, strlen(digits), &number) || number < 1 || number > 65535) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--port '%s': expected a number from 1 to 65535, with udp: or tcp: before "
                         "it for one of them",
                         crdi_clip(text).text);
    }
    if (w->port_count == CRDI_DOCTOR_PORTS) {
        return crdi_fail(ctx, CRD_E_RANGE, "--port '%s': %d ports at most", text,
                         CRDI_DOCTOR_PORTS - 3);
    }
    w->ports[w->port_count++] = (crdi_port){
        .udp = !tcp, .tcp = !udp, .number = (int)number, .purpose = "wanted", .named = true};
    return CRD_OK;
}

static crd_status make_wish(crdi_cli* cli, const doctor_options* o, crdi_wish* w)
{
    *w = (crdi_wish){.profile = o->profile >= 0 ? (crdi_profile)o->profile : CRDI_SOFT,
                     .cpu = o->cpu,
                     .priority = o->priority < 0 ? 80 : o->priority,
                     .step = o->step,
                     .duration = isnan(o->duration) ? 3 : o->duration,
                     .interfaces = &o->interfaces};
    if (w->priority < 1 || w->priority > 99) {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "--priority %d, expected 1 to 99", w->priority);
    }
    if (w->cpu >= CRDI_CPUS) {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "--cpu %d, expected 0 to %d", w->cpu,
                         CRDI_CPUS - 1);
    }
    if (w->duration > 3600) {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "--duration %g s, expected an hour at most",
                         w->duration);
    }
    crdi_wish_usual_ports(w);
    for (int i = 0; i < o->ports.count; i++) {
        const crd_status st = crdi_wish_port(cli->ctx, w, o->ports.items[i]);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// Wrong calls that only the machine shows.
static crd_status check_machine(crdi_cli* cli, const crdi_wish* w, const crdi_facts* f)
{
    char list[128];
    for (int i = 0; i < f->nic_count; i++) {
        if (f->nics[i].missing) {
            return crdi_fail(cli->ctx, CRD_E_NOT_FOUND,
                             "--interface %s: there is none of this name; 'ip link' lists them",
                             crdi_clip(f->nics[i].name).text);
        }
    }
    if (w->cpu >= 0 && f->online.known && !crdi_cpus_has(&f->online, w->cpu)) {
        return crdi_fail(cli->ctx, CRD_E_NOT_FOUND, "--cpu %d: this machine has CPUs %s", w->cpu,
                         crdi_cpus_text(&f->online, list, sizeof list));
    }
    return CRD_OK;
}

typedef struct doctor {
    crdi_wish wish;
    crdi_facts facts;
    crdi_latency wakeup, trip;
    crdi_diagnoses diagnoses;
} doctor;

// ---- lines -------------------------------------------------------------------------------------

typedef struct printer {
    crdi_result* out;
    bool color;
    int column;
    int title; // width of the column of titles
} printer;

static const char* paint(const printer* p, crdi_state s)
{
    static const char* const colors[] = {"\033[32m", "\033[33m", "\033[31m", "\033[2m"};
    return p->color ? colors[s] : "";
}

// Words from the current column on, in lines of WIDTH that begin at `indent`.
static void say_words(printer* p, const char* text, int indent)
{
    bool first = true;
    while (*text) {
        const int n = (int)strcspn(text, " ");
        if (!first && p->column + 1 + n > WIDTH) {
            crdi_say(p->out, "\n%*s", indent, "");
            p->column = indent;
            first = true;
        }
        crdi_say(p->out, "%s%.*s", first ? "" : " ", n, text);
        p->column += n + !first;
        first = false;
        text += n + (text[n] == ' ');
    }
}

// Commands stand on lines of their own and are not broken, so that they can be copied.
static void say_fix(printer* p, const char* fix)
{
    while (*fix) {
        const int n = (int)strcspn(fix, "\n");
        crdi_say(p->out, "%*s%.*s\n", INDENT, "", n, fix);
        fix += n + (fix[n] == '\n');
    }
}

static void title_of(const crdi_diagnosis* x, char* out, size_t size)
{
    snprintf(out, size, "%s%s%s", x->check->title, *x->subject ? " " : "", x->subject);
}

static void say_diagnosis(printer* p, const crdi_diagnosis* x)
{
    const crdi_state s = x->state;
    char title[160], padded[200], text[CRDI_FOUND + 160];
    title_of(x, title, sizeof title);
    p->column = INDENT + snprintf(padded, sizeof padded, "%-*s  ", p->title, title);
    crdi_say(p->out, "  %s%-4s%s  %s", paint(p, s), crdi_state_names[s], p->color ? "\033[0m" : "",
             padded);
    snprintf(text, sizeof text, "%s (%s)", x->found, x->check->why);
    say_words(p, text, INDENT + p->title + 2);
    crdi_say(p->out, "\n");
    say_fix(p, x->fix);
}

static bool is_shown(const crdi_diagnosis* x, bool all)
{
    return all || x->need != CRDI_NONE;
}

static void say_areas(printer* p, const crdi_diagnoses* r, bool all)
{
    for (int i = 0; i < r->count; i++) {
        char title[160];
        title_of(&r->items[i], title, sizeof title);
        const int n = (int)strlen(title);
        if (is_shown(&r->items[i], all) && n > p->title) { p->title = n; }
    }
    if (p->title > TITLE_MOST) { p->title = TITLE_MOST; }
    for (int area = 0; area < CRDI_AREAS; area++) {
        bool titled = false;
        for (int i = 0; i < r->count; i++) {
            const crdi_diagnosis* x = &r->items[i];
            if ((int)x->check->area != area || !is_shown(x, all)) { continue; }
            if (!titled) { crdi_say(p->out, "%s\n", crdi_area_names[area]); }
            titled = true;
            say_diagnosis(p, x);
        }
    }
}

static void say_machine(const doctor* d, bool all, crdi_result* out)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    const crdi_diagnoses* r = &d->diagnoses;
    printer p = {.out = out,
                 .color = isatty(STDOUT_FILENO) == 1 && !(no_color && *no_color) && term &&
                          strcmp(term, "dumb") != 0};
    say_areas(&p, r, all);
    int counts[CRDI_NA + 1] = {0}, hidden = 0;
    for (int i = 0; i < r->count; i++) {
        counts[r->items[i].state] += is_shown(&r->items[i], all);
        hidden += !is_shown(&r->items[i], all);
    }
    crdi_say(out, "\n%s: %d ok, %d warning%s, %d failed, %d n.a.",
             crdi_profile_names[d->wish.profile], counts[CRDI_OK], counts[CRDI_WARN],
             crdi_plural(counts[CRDI_WARN]), counts[CRDI_FAIL], counts[CRDI_NA]);
    if (hidden) { crdi_say(out, "; --all shows %d more that do not matter here", hidden); }
    crdi_say(out, "\n");
    if (*d->facts.container) {
        crdi_say(out,
                 "This is a container (%s): what changes /sys, /proc or the kernel is typed on its "
                 "host.\n",
                 d->facts.container);
    }
    crdi_say(out, "%s\n",
             counts[CRDI_FAIL]   ? "This machine is not ready for this profile."
             : counts[CRDI_WARN] ? "This machine will do; the warnings say what would make it "
                                   "better."
                                 : "This machine is ready.");
}

// ---- JSON --------------------------------------------------------------------------------------

static void put_latency(crdi_result* out, const char* key, const crdi_latency* l)
{
    static const struct {
        double q;
        const char* name;
    } rows[] = {{0.5, "p50"}, {0.99, "p99"}, {0.999, "p99_9"}, {0.9999, "p99_99"}};
    crdi_result* o = crdi_object_if(out, key, l->done);
    const crdi_quantile best = crdi_supported_quantile(l->h.count);
    crdi_put(o, INT("samples", l->h.count), REAL("period", 1e-9 * (double)l->period),
             INT("missed", l->missed));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double s = 1e-9 * (double)crd_histogram_quantile(&l->h, rows[i].q);
        crdi_put(o, ONLY_IF(rows[i].q <= best.q, REAL(rows[i].name, s)));
    }
    crdi_put(o, ONLY_IF(l->h.count, REAL("max", 1e-9 * (double)l->h.max)),
             BOOL("fifo", l->rights.fifo), BOOL("locked", l->rights.locked),
             ONLY_IF(l->rights.pinned, INT("cpu", l->rights.cpu)));
}

static void put_checks(crdi_result* out, const crdi_diagnoses* r)
{
    crdi_result* checks = crdi_array(out, "checks");
    for (int area = 0; area < CRDI_AREAS; area++) {
        for (int i = 0; i < r->count; i++) {
            const crdi_diagnosis* x = &r->items[i];
            if ((int)x->check->area != area) { continue; }
            crdi_put(crdi_row(checks), TEXT("id", x->check->id),
                     TEXT("area", crdi_area_names[area]), TEXT_IF("subject", x->subject),
                     TEXT("state", crdi_state_names[x->state]),
                     TEXT("need", crdi_need_names[x->need]), TEXT("found", x->found),
                     TEXT("why", x->check->why), TEXT_IF("fix", x->fix));
        }
    }
}

static void put_machine(const crdi_cli* cli, const doctor* d, crdi_result* out)
{
    const crdi_wish* w = &d->wish;
    const bool ready = crdi_diagnoses_count(&d->diagnoses, CRDI_FAIL) == 0;
    const crdi_supported s = crdi_judge_latency(&d->wakeup, &d->trip, d->facts.hypervisor == 1);
    crdi_put(out, TEXT("profile", crdi_profile_names[w->profile]), BOOL("ready", ready),
             INT("exit_code", ready ? 0 : 3), ONLY_IF(w->cpu >= 0, INT("cpu", w->cpu)),
             INT("priority", w->priority), REAL("step", crdi_wished_step(w)));
    crdi_result* counts = crdi_object(out, "counts");
    for (crdi_state k = CRDI_OK; k <= CRDI_NA; k++) {
        crdi_put(counts, INT(crdi_state_names[k], crdi_diagnoses_count(&d->diagnoses, k)));
    }
    put_checks(out, &d->diagnoses);
    put_latency(out, "wake_up", &d->wakeup);
    put_latency(out, "round_trip", &d->trip);
    crdi_put(crdi_object(out, "supported"), REAL("step", s.step),
             TEXT_IF("quantile", s.quantile.name), TEXT("sentence", s.sentence));
    crdi_put_texts(out, "warnings", cli->warnings.items, cli->warnings.count);
}

// ---- the command -------------------------------------------------------------------------------

static crd_status examine(crdi_cli* cli, const char* system, doctor* d)
{
    crd_status st = CRD_OK;
    const volatile bool* stop = crdi_interrupt_catch(&(crdi_interrupt_options){0});
    crdi_doctor_look("", &d->wish, &d->facts);
    if (!d->facts.online.known) { d->facts.online = d->facts.allowed; } // no /sys: a bare container
    CRD_TRY(check_machine(cli, &d->wish, &d->facts));
    crdi_doctor_ask(&d->wish, &d->facts);
    crdi_judge_machine(&d->facts, &d->wish, &d->diagnoses);
    if (system) { CRD_TRY(crdi_doctor_models(cli, system, &d->wish, stop, &d->diagnoses)); }
    if (d->wish.duration > 0) { crdi_measure(cli, &d->wish, stop, &d->wakeup, &d->trip); }
    crdi_judge_measured(&d->facts, &d->wish, &d->wakeup, &d->trip, &d->diagnoses);
    if (d->diagnoses.failed) { return CRD_E_MEMORY; }
fail:
    return st;
}

// CRD_E_LIMIT with the names of what failed.
static crd_status verdict(crdi_cli* cli, const crdi_diagnoses* r)
{
    char list[256] = "";
    size_t used = 0;
    for (int i = 0; i < r->count && used < sizeof list; i++) {
        const crdi_diagnosis* x = &r->items[i];
        if (x->state != CRDI_FAIL) { continue; }
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s%s%s", used ? ", " : "",
                                 x->check->id, *x->subject ? " " : "", x->subject);
    }
    if (!used) { return CRD_OK; }
    return crdi_fail(cli->ctx, CRD_E_LIMIT, "the profile '%s' needs what failed: %s",
                     crdi_profile_names[r->profile], list);
}

static crd_status run_doctor(crdi_cli* cli, const void* options, const crdi_list* arguments,
                             crdi_result* out)
{
    const doctor_options* o = options;
    crd_status st = CRD_OK;
    doctor* d = crdi_new(cli->ctx, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    CRD_TRY(make_wish(cli, o, &d->wish));
    crdi_diagnoses_init(&d->diagnoses, cli->ctx, d->wish.profile);
    CRD_TRY(examine(cli, arguments->count ? arguments->items[0] : NULL, d));
    say_machine(d, o->all, out);
    put_machine(cli, d, out);
    st = verdict(cli, &d->diagnoses);
fail:
    crdi_interrupt_restore();
    if (d->diagnoses.ctx) { crdi_diagnoses_clear(&d->diagnoses); }
    crd_free(cli->ctx, d);
    return st;
}

static const crdi_option rows[] = {
    OPT_CHOICE(
        doctor_options, profile, "profile", crdi_profile_names,
        "desk: as fast as possible, and watching; soft: 1 kHz, and rare overruns do no harm; "
        "hard: hardware is at stake; soft unless given",
        .short_name = 'p'),
    OPT_INT(doctor_options, cpu, "cpu", "N",
            "CPU that the cycle thread will stay on; any unless given"),
    OPT_INT(doctor_options, priority, "priority", "N",
            "of SCHED_FIFO that it will ask for, 1 to 99; 80 unless given"),
    OPT_TIME(doctor_options, step, "step", CRDI_POSITIVE,
             "communication step that the measurements are judged by; that of SYSTEM, else 10 ms "
             "for desk and 1 ms for the others unless given"),
    OPT_TIME(doctor_options, duration, "duration", CRDI_NOT_NEGATIVE,
             "of each measurement and of the dry run, 0 for none; 3 s unless given"),
    OPT_LIST(doctor_options, interfaces, "interface", "NAME",
             "network card to look at; all that are up unless given"),
    OPT_LIST(doctor_options, ports, "port", "[udp:|tcp:]N",
             "port that has to be free, beside those that Cardan uses anyway"),
    OPT_FLAG(doctor_options, all, "all", "show the checks that do not matter to the profile, too"),
    CRDI_UNPACKED_OPTION,
    CRDI_ISOLATE_OPTION,
    CRDI_JSON_OPTION("print everything as JSON on standard output"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_doctor = {
    .name = "doctor",
    .arguments = "[SYSTEM]",
    .summary = "say whether this machine can run in real time, and what would help",
    .description =
        "Looks at kernel, rights, scheduler, CPU, memory, network, time, ports and sandbox, "
        "measures for some seconds how late a thread like the cycle thread wakes up and how long a "
        "datagram to another thread and back takes, and says down to which step this machine is "
        "good. One line per check: ok, warn, fail or n.a. (not known), what was found, why it "
        "matters; below it what to type, where that would help. Nothing is changed. With a SYSTEM "
        "its FMUs are looked at and run for as long as a measurement, unless DCP slaves "
        "take part. Exit code 3 if a check fails that the profile needs, else 0.",
    .examples = {{"cardan doctor", "is this machine good for 1 kHz?"},
                 {"cardan doctor --profile hard --cpu 3 --step 0.5ms --duration 60s",
                  "before hardware is connected, under the load that it will have"},
                 {"cardan doctor car.yaml --profile desk", "can these models keep real time here?"},
                 {"cardan doctor --json | jq '.checks[] | select(.state == \"fail\")'",
                  "the same for programs"}},
    OPTIONS(rows, doctor_options),
    .max_arguments = 1,
    .extensions = "fmu|yaml|yml|ssp|ssd",
    .run = run_doctor,
};
