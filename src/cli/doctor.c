// cardan doctor: the command, its lines and its JSON.
#include "cli/doctor.h"
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

// ---- lines -------------------------------------------------------------------------------------

typedef struct printer {
    FILE* f;
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
static void put_words(printer* p, const char* text, int indent)
{
    bool first = true;
    while (*text) {
        const int n = (int)strcspn(text, " ");
        if (!first && p->column + 1 + n > WIDTH) {
            fprintf(p->f, "\n%*s", indent, "");
            p->column = indent;
            first = true;
        }
        fprintf(p->f, "%s%.*s", first ? "" : " ", n, text);
        p->column += n + !first;
        first = false;
        text += n + (text[n] == ' ');
    }
}

// Commands stand on lines of their own and are not broken, so that they can be copied.
static void put_fix(printer* p, const char* fix)
{
    while (*fix) {
        const int n = (int)strcspn(fix, "\n");
        fprintf(p->f, "%*s%.*s\n", INDENT, "", n, fix);
        fix += n + (fix[n] == '\n');
    }
}

static void title_of(const crdi_diagnosis* x, char* out, size_t size)
{
    snprintf(out, size, "%s%s%s", x->check->title, *x->subject ? " " : "", x->subject);
}

static void put_result(printer* p, const crdi_diagnosis* x)
{
    const crdi_state s = x->state;
    char title[160], text[CRDI_FOUND + 160];
    title_of(x, title, sizeof title);
    fprintf(p->f, "  %s%-4s%s  ", paint(p, s), crdi_state_names[s], p->color ? "\033[0m" : "");
    p->column = INDENT + fprintf(p->f, "%-*s  ", p->title, title);
    snprintf(text, sizeof text, "%s (%s)", x->found, x->check->why);
    put_words(p, text, INDENT + p->title + 2);
    fputc('\n', p->f);
    put_fix(p, x->fix);
}

static bool is_shown(const crdi_diagnosis* x, bool all)
{
    return all || x->need != CRDI_NONE;
}

static void put_areas(printer* p, const crdi_diagnoses* r, bool all)
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
            if (!titled) { fprintf(p->f, "%s\n", crdi_area_names[area]); }
            titled = true;
            put_result(p, x);
        }
    }
}

static void put_machine(const crdi_wish* w, const crdi_facts* f, const crdi_diagnoses* r, bool all)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    printer p = {.f = stdout,
                 .color = isatty(STDOUT_FILENO) == 1 && !(no_color && *no_color) && term &&
                          strcmp(term, "dumb") != 0};
    put_areas(&p, r, all);
    int counts[CRDI_NA + 1] = {0}, hidden = 0;
    for (int i = 0; i < r->count; i++) {
        counts[r->items[i].state] += is_shown(&r->items[i], all);
        hidden += !is_shown(&r->items[i], all);
    }
    printf("\n%s: %d ok, %d warning%s, %d failed, %d n.a.", crdi_profile_names[w->profile],
           counts[CRDI_OK], counts[CRDI_WARN], crdi_plural(counts[CRDI_WARN]), counts[CRDI_FAIL],
           counts[CRDI_NA]);
    if (hidden) { printf("; --all shows %d more that do not matter here", hidden); }
    printf("\n");
    if (*f->container) {
        printf("This is a container (%s): what changes /sys, /proc or the kernel is typed on its "
               "host.\n",
               f->container);
    }
    printf("%s\n", counts[CRDI_FAIL]   ? "This machine is not ready for this profile."
                   : counts[CRDI_WARN] ? "This machine will do; the warnings say what would make "
                                         "it better."
                                       : "This machine is ready.");
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t* latency_to_json(const crdi_latency* l)
{
    if (!l->done) { return json_null(); }
    json_t* j = json_object();
    const crdi_quantile best = crdi_supported_quantile(l->h.count);
    static const struct {
        double q;
        const char* name;
    } rows[] = {{0.5, "p50"}, {0.99, "p99"}, {0.999, "p99_9"}, {0.9999, "p99_99"}};
    json_object_set_new(j, "samples", json_integer(l->h.count));
    json_object_set_new(j, "period", crdi_json_number(1e-9 * (double)l->period));
    json_object_set_new(j, "missed", json_integer(l->missed));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double s = 1e-9 * (double)crd_histogram_quantile(&l->h, rows[i].q);
        json_object_set_new(j, rows[i].name, rows[i].q <= best.q ? json_real(s) : json_null());
    }
    json_object_set_new(j, "max", l->h.count ? json_real(1e-9 * (double)l->h.max) : json_null());
    json_object_set_new(j, "fifo", json_boolean(l->rights.fifo));
    json_object_set_new(j, "locked", json_boolean(l->rights.locked));
    json_object_set_new(j, "cpu", l->rights.pinned ? json_integer(l->rights.cpu) : json_null());
    return j;
}

static json_t* result_to_json(const crdi_diagnosis* x)
{
    json_t* j = json_object();
    json_object_set_new(j, "id", json_string(x->check->id));
    json_object_set_new(j, "area", json_string(crdi_area_names[x->check->area]));
    json_object_set_new(j, "subject", *x->subject ? crdi_json_text(x->subject) : json_null());
    json_object_set_new(j, "state", json_string(crdi_state_names[x->state]));
    json_object_set_new(j, "need", json_string(crdi_need_names[x->need]));
    json_object_set_new(j, "found", crdi_json_text(x->found));
    json_object_set_new(j, "why", json_string(x->check->why));
    json_object_set_new(j, "fix", *x->fix ? crdi_json_text(x->fix) : json_null());
    return j;
}

static json_t* to_json(crdi_cli* cli, const crdi_wish* w, const crdi_facts* f,
                       const crdi_latency* wakeup, const crdi_latency* trip,
                       const crdi_diagnoses* r)
{
    json_t* j = json_object();
    const bool ready = crdi_diagnoses_count(r, CRDI_FAIL) == 0;
    const crdi_supported s = crdi_judge_latency(wakeup, trip, f->hypervisor == 1);
    json_object_set_new(j, "profile", json_string(crdi_profile_names[w->profile]));
    json_object_set_new(j, "ready", json_boolean(ready));
    json_object_set_new(j, "exit_code", json_integer(ready ? 0 : 3));
    json_object_set_new(j, "cpu", w->cpu >= 0 ? json_integer(w->cpu) : json_null());
    json_object_set_new(j, "priority", json_integer(w->priority));
    json_object_set_new(j, "step", crdi_json_number(crdi_wished_step(w)));
    json_t* counts = json_object();
    for (crdi_state k = CRDI_OK; k <= CRDI_NA; k++) {
        json_object_set_new(counts, crdi_state_names[k], json_integer(crdi_diagnoses_count(r, k)));
    }
    json_object_set_new(j, "counts", counts);
    json_t* checks = json_array();
    for (int area = 0; area < CRDI_AREAS; area++) {
        for (int i = 0; i < r->count; i++) {
            if ((int)r->items[i].check->area == area) {
                json_array_append_new(checks, result_to_json(&r->items[i]));
            }
        }
    }
    json_object_set_new(j, "checks", checks);
    json_object_set_new(j, "wake_up", latency_to_json(wakeup));
    json_object_set_new(j, "round_trip", latency_to_json(trip));
    json_t* supported = json_object();
    json_object_set_new(supported, "step", crdi_json_number(s.step));
    json_object_set_new(supported, "quantile",
                        *s.quantile.name ? json_string(s.quantile.name) : json_null());
    json_object_set_new(supported, "sentence", json_string(s.sentence));
    json_object_set_new(j, "supported", supported);
    json_object_set_new(j, "warnings", crdi_warnings_json(cli));
    return j;
}

// ---- the command -------------------------------------------------------------------------------

typedef struct doctor {
    crdi_wish wish;
    crdi_facts facts;
    crdi_latency wakeup, trip;
    crdi_diagnoses results;
} doctor;

static crd_status examine(crdi_cli* cli, const char* system, doctor* d)
{
    const volatile bool* stop = crdi_interrupt_catch(&(crdi_interrupt_options){0});
    crd_status st = CRD_OK;
    crdi_doctor_look("", &d->wish, &d->facts);
    if (!d->facts.online.known) { d->facts.online = d->facts.allowed; } // no /sys: a bare container
    CRD_TRY(check_machine(cli, &d->wish, &d->facts));
    crdi_doctor_ask(&d->wish, &d->facts);
    crdi_judge_machine(&d->facts, &d->wish, &d->results);
    if (system) { CRD_TRY(crdi_doctor_models(cli, system, &d->wish, stop, &d->results)); }
    if (d->wish.duration > 0) { crdi_measure(cli, &d->wish, stop, &d->wakeup, &d->trip); }
    crdi_judge_measured(&d->facts, &d->wish, &d->wakeup, &d->trip, &d->results);
    if (d->results.failed) { return CRD_E_MEMORY; }
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
    (void)out;
    const doctor_options* o = options;
    crd_status st = CRD_OK;
    doctor* d = crdi_new(cli->ctx, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    CRD_TRY(make_wish(cli, o, &d->wish));
    crdi_diagnoses_init(&d->results, cli->ctx, d->wish.profile);
    CRD_TRY(examine(cli, arguments->count ? arguments->items[0] : NULL, d));
    if (o->common.json) {
        CRD_TRY(crdi_json_print(
            cli, to_json(cli, &d->wish, &d->facts, &d->wakeup, &d->trip, &d->results)));
    } else {
        put_machine(&d->wish, &d->facts, &d->results, o->all);
        CRD_TRY(crdi_stdout_done(cli->ctx));
    }
    st = verdict(cli, &d->results);
fail:
    crdi_interrupt_restore();
    if (d->results.ctx) { crdi_diagnoses_clear(&d->results); }
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
    CRDI_JSON_OPTION("print everything as JSON on standard output"),
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
