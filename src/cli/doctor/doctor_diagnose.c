// From checks to diagnoses: what a machine is read for, row by row, and what is said of it.
#include "cli/doctor/doctor.h"

#include <string.h>

const char* const crdi_profile_names[] = {"desk", "soft", "hard", NULL};
const char* const crdi_area_names[CRDI_AREAS] = {"kernel",  "rights",      "scheduling", "CPU",
                                                 "memory",  "network",     "time",       "ports",
                                                 "sandbox", "measurement", "models"};
const char* const crdi_need_names[] = {"none", "wished", "needed"};
const char* const crdi_state_names[] = {"ok", "warn", "fail", "n.a."};

// ---- diagnoses ---------------------------------------------------------------------------------

crdi_state crdi_state_of(crdi_finding f, crdi_need n)
{
    if (f == CRDI_GOOD) { return CRDI_OK; }
    if (f == CRDI_OPEN || n == CRDI_NONE) { return CRDI_NA; }
    return f == CRDI_BAD && n == CRDI_NEEDED ? CRDI_FAIL : CRDI_WARN;
}

void crdi_diagnoses_init(crdi_diagnoses* r, crd_context* ctx, crdi_profile profile)
{
    *r = (crdi_diagnoses){.ctx = ctx, .profile = profile};
}

void crdi_diagnoses_clear(crdi_diagnoses* r)
{
    crd_free(r->ctx, r->items);
    *r = (crdi_diagnoses){.ctx = r->ctx};
}

int crdi_diagnoses_count(const crdi_diagnoses* r, crdi_state s)
{
    int n = 0;
    for (int i = 0; i < r->count; i++) {
        n += r->items[i].state == s;
    }
    return n;
}

// Nothing is known yet.
static crdi_diagnosis* new_diagnosis(crdi_diagnoses* r, const crdi_check* check,
                                     const char* subject)
{
    crdi_diagnosis* items =
        check ? crdi_grow(r->ctx, r->items, &r->capacity, (size_t)r->count + 1, sizeof *items)
              : NULL;
    if (!items) {
        r->failed = true;
        return NULL;
    }
    r->items = items;
    crdi_diagnosis* x = &items[r->count++];
    *x = (crdi_diagnosis){.check = check,
                          .need = check->need[r->profile],
                          .finding = CRDI_OPEN,
                          .state = CRDI_NA,
                          .found = "not known"};
    snprintf(x->subject, sizeof x->subject, "%s", subject);
    return x;
}

static void set_found(crdi_diagnosis* x, crdi_finding f, const char* format, va_list args)
{
    x->finding = f;
    x->state = crdi_state_of(f, x->need);
    vsnprintf(x->found, sizeof x->found, format, args);
}

void crdi_diagnosis_found(crdi_diagnosis* x, crdi_finding f, const char* format, ...)
{
    va_list args;
    va_start(args, format);
    set_found(x, f, format, args);
    va_end(args);
}

crdi_diagnosis* crdi_diagnose(crdi_diagnoses* r, const char* id, const char* subject,
                              crdi_finding f, const char* format, ...)
{
    crdi_diagnosis* x = new_diagnosis(r, crdi_find_check(id), subject);
    if (!x) { return NULL; }
    va_list args;
    va_start(args, format);
    set_found(x, f, format, args);
    va_end(args);
    return x;
}

void crdi_diagnosis_fix(crdi_diagnosis* x, const char* format, ...)
{
    if (!x || (x->state != CRDI_WARN && x->state != CRDI_FAIL)) { return; }
    const size_t used = strlen(x->fix);
    va_list args;
    va_start(args, format);
    if (used && used + 2 < sizeof x->fix) { strcat(x->fix, "\n"); }
    vsnprintf(x->fix + strlen(x->fix), sizeof x->fix - strlen(x->fix), format, args);
    va_end(args);
}

// ---- all checks --------------------------------------------------------------------------------

const crdi_check* crdi_find_check(const char* id)
{
    for (int i = 0; i < crdi_check_count; i++) {
        if (strcmp(crdi_checks[i].id, id) == 0) { return &crdi_checks[i]; }
    }
    return NULL;
}

void crdi_doctor_look(const char* root, const crdi_wish* w, crdi_facts* f)
{
    crdi_looking l = {.root = root, .w = w, .f = f};
    crdi_facts_init(f);
    crdi_root_line(root, l.cmdline, sizeof l.cmdline, "/proc/cmdline");
    for (int i = 0; i < crdi_check_count; i++) {
        if (crdi_checks[i].read) { crdi_checks[i].read(&l); }
    }
}

static void judge_flag(const crdi_case* c, crdi_diagnosis* x)
{
    const crdi_check* k = x->check;
    const char* base = k->per == CRDI_PER_NIC ? (const char*)c->nic : (const char*)c->f;
    int64_t fact = CRDI_UNKNOWN;
    if (base) { memcpy(&fact, base + k->fact, sizeof fact); } // no card is up
    if (fact == CRDI_UNKNOWN) { return; }
    crdi_diagnosis_found(x, (fact != 0) == k->good ? CRDI_GOOD : CRDI_POOR, "%s",
                         fact ? k->yes : k->no);
}

static void judge_one(const crdi_check* k, const crdi_case* c, crdi_diagnoses* r)
{
    char subject[32] = "";
    if (c->nic) { snprintf(subject, sizeof subject, "%s", c->nic->name); }
    if (c->port) {
        const crdi_port* p = c->port;
        snprintf(subject, sizeof subject, "%s %d",
                 p->udp && p->tcp ? "udp+tcp"
                 : p->udp         ? "udp"
                                  : "tcp",
                 p->number);
    }
    crdi_diagnosis* x = new_diagnosis(r, k, subject);
    if (!x) { return; }
    (k->flag ? judge_flag : k->judge)(c, x);
    if (!k->fix || *x->fix) { return; }
    const char* at = strchr(k->fix, '@');
    crdi_diagnosis_fix(x, "%.*s%s%s", at ? (int)(at - k->fix) : (int)strlen(k->fix), k->fix,
                       at ? subject : "", at ? at + 1 : "");
}

// Rows [first, last) for one subject after the other.
static void judge_rows(int first, int last, crdi_case c, crdi_diagnoses* r)
{
    const crdi_per per = crdi_checks[first].per;
    const int count = per == CRDI_PER_NIC    ? c.f->nic_count
                      : per == CRDI_PER_PORT ? c.w->port_count
                                             : 1;
    for (int s = 0; s < count; s++) {
        if (per == CRDI_PER_NIC) { c.nic = &c.f->nics[s]; }
        if (per == CRDI_PER_PORT) { c.port = &c.w->ports[s]; }
        for (int i = first; i < last; i++) {
            judge_one(&crdi_checks[i], &c, r);
        }
    }
    if (per == CRDI_PER_NIC && count == 0) { judge_one(&crdi_checks[first], &c, r); }
}

void crdi_judge_machine(const crdi_facts* f, const crdi_wish* w, crdi_diagnoses* r)
{
    const crdi_case c = {.f = f, .w = w};
    for (int i = 0, next; i < crdi_check_count; i = next) {
        for (next = i + 1;
             next < crdi_check_count && crdi_checks[next].per == crdi_checks[i].per;) {
            next++;
        }
        if (crdi_checks[i].per != CRDI_PER_OTHER) { judge_rows(i, next, c, r); }
    }
}
