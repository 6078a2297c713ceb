// The words of `keep`:
//   motor.w                     at the end; also "final motor.w"
//   min | max | mean | rms motor.w      over the run; mean and rms by the trapezoidal rule over
//   time motor.w at 2 s              between two steps on the line between them first motor.w > 10
//   the time when it crosses, likewise; never: no number defect | energy | error     the worst of
//   the run, relative (docs/explanation/quality.md) C motor.M [against zoh]     the coupling's cost
//   (Baumann 2024), by that of one of its shadows steps | time                how many, and where
//   the run ended; work: steps with those that were made again; load: seconds that they took, of
//   one second simulated (measured) = a / b     of names of factors and what is kept above
#include "study/keep.h"
#include "shared/master_verdict.h"

#include "shared/circuit_formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef enum verb {
    FINAL,
    LEAST,
    MOST,
    MEAN,
    RMS,
    AT,
    FIRST,
    DEFECT,
    ENERGY,
    ERROR,
    COST,
    STEPS,
    TIME,
    WORK,
    LOAD,
    FORMULA,
} verb;

typedef struct kept {
    verb what;
    int signal;  // FINAL .. FIRST
    double mark; // AT: time; FIRST: level
    bool below;  // FIRST
    const char *input, *against;
    crdi_formula* formula;
    double value, previous, sum;
} kept;

typedef struct signal {
    const char* name;
    const double* at; // NULL: ask
    int handle, count, index;
    double now, before;
} signal;

struct study_keep {
    crd_context* ctx;
    crd_arena arena;
    const crdi_study_file* f;
    kept* list;
    signal* signals;
    int signal_count;
    double time, start;
    int64_t begun; // ns
    bool watches;
    crdi_formula** limits;
    double* numbers; // factors, then what is kept
};

static const struct {
    const char* word;
    verb what;
} prefixes[] = {{"final", FINAL}, {"min", LEAST},   {"max", MOST}, {"mean", MEAN},
                {"rms", RMS},     {"first", FIRST}, {"C", COST}},
  alone[] = {{"defect", DEFECT}, {"energy", ENERGY}, {"error", ERROR}, {"steps", STEPS},
             {"time", TIME},     {"work", WORK},     {"load", LOAD}};

static int signal_of(study_keep* k, const char* name, size_t length)
{
    for (int i = 0; i < k->signal_count; i++) {
        if (strlen(k->signals[i].name) == length && memcmp(k->signals[i].name, name, length) == 0) {
            return i;
        }
    }
    k->signals[k->signal_count].name = crdi_arena_text(&k->arena, name, length);
    return k->signal_count++;
}

static crd_status bad(study_keep* k, const crdi_study_text* t, const char* expected)
{
    return crdi_fail(k->ctx, CRD_E_FORMAT, "%s:%d: keep.%s: '%s', expected %s", k->f->file, t->line,
                     t->name, crdi_clip(t->text).text, expected);
}

// What follows the name of a signal in AT and FIRST.
static crd_status read_mark(study_keep* k, const crdi_study_text* t, const char* text, bool is_time,
                            double* out)
{
    const char* unit = "";
    crd_dimension d;
    bool bare;
    text += strspn(text, " ");
    if (is_time && crd_quantity_parse(text, out, &d, &bare) &&
        (bare || (d.s == 1 && !d.kg && !d.m && !d.A))) {
        return CRD_OK;
    }
    if (!is_time && crdi_study_number(text, out, &unit) && !*unit) { return CRD_OK; }
    return bad(k, t,
               is_time ? "a time behind 'at', as motor.w at 2 s"
                       : "a number in the unit of the signal, as first motor.w > 10");
}

static crd_status keep_read(study_keep* k, const crdi_study_text* t, int index)
{
    kept* p = &k->list[index];
    const char* text = t->text;
    const size_t word = strcspn(text, " ");
    if (text[0] == '=') {
        const char* const* names = crdi_study_names(&k->arena, k->f, true);
        if (!names) { return CRD_E_MEMORY; }
        p->what = FORMULA;
        return crdi_formula_create(k->ctx, text + 1, k->f->file, t->line, names,
                                   k->f->factor_count + index, &p->formula);
    }
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        if (strcmp(text, alone[i].word) == 0) {
            p->what = alone[i].what;
            return CRD_OK;
        }
    }
    p->what = FINAL;
    for (size_t i = 0; text[word] && i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strlen(prefixes[i].word) == word && memcmp(prefixes[i].word, text, word) == 0) {
            p->what = prefixes[i].what;
            text += word;
            text += strspn(text, " ");
        }
    }
    const size_t length = strcspn(text, " ");
    const char* rest = text + length + strspn(text + length, " ");
    if (p->what == COST) {
        p->input = crdi_arena_text(&k->arena, text, length);
        if (strncmp(rest, "against ", 8) == 0) {
            p->against = rest + 8;
        } else if (*rest) {
            return bad(k, t, "C of an input, as C motor.M against zoh");
        }
        return CRD_OK;
    }
    p->signal = signal_of(k, text, length);
    k->watches = k->watches || p->what != FINAL || *rest;
    if (p->what == FIRST) {
        if (*rest != '>' && *rest != '<') { return bad(k, t, "first SIGNAL > NUMBER or < NUMBER"); }
        p->below = *rest == '<';
        return read_mark(k, t, rest + 1, false, &p->mark);
    }
    if (!*rest) { return length ? CRD_OK : bad(k, t, "the name of a signal"); }
    if (p->what == FINAL && strncmp(rest, "at ", 3) == 0) {
        p->what = AT;
        return read_mark(k, t, rest + 3, true, &p->mark);
    }
    return bad(
        k, t,
        "SIGNAL, min, max, mean, rms or final SIGNAL, SIGNAL at TIME, first SIGNAL > NUMBER, "
        "defect, energy, error, steps, time, work, load, C INPUT, or = EXPRESSION");
}

crd_status study_keep_create(crd_context* ctx, const crdi_study_file* f, study_keep** out)
{
    crd_status st = CRD_OK;
    study_keep* k = crdi_new(ctx, sizeof *k);
    if (!k) { return CRD_E_MEMORY; }
    *k = (study_keep){.ctx = ctx, .f = f};
    crd_arena_init(&k->arena, ctx);
    k->list = crdi_arena_new(&k->arena, (size_t)f->kept_count, sizeof *k->list);
    k->signals = crdi_arena_new(&k->arena, (size_t)f->kept_count, sizeof *k->signals);
    k->limits = crdi_arena_new(&k->arena, (size_t)f->limit_count, sizeof(crdi_formula*));
    k->numbers = crdi_arena_new(&k->arena, (size_t)f->factor_count + (size_t)f->kept_count,
                                sizeof *k->numbers);
    const char* const* names = crdi_study_names(&k->arena, f, true);
    if (!names) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crdi_arena_status(&k->arena));
    for (int i = 0; i < f->kept_count; i++) {
        CRD_TRY(keep_read(k, &f->kept[i], i));
    }
    for (int i = 0; i < f->limit_count; i++) {
        CRD_TRY(crdi_formula_create(ctx, f->limits[i].text, f->file, f->limits[i].line, names,
                                    f->factor_count + f->kept_count, &k->limits[i]));
    }
    CRD_TRY(crdi_arena_status(&k->arena));
    *out = k;
    return CRD_OK;
fail:
    study_keep_destroy(k);
    return st;
}

void study_keep_destroy(study_keep* k)
{
    if (!k) { return; }
    for (int i = 0; k->list && i < k->f->kept_count; i++) {
        crdi_formula_destroy(k->list[i].formula);
    }
    for (int i = 0; k->limits && i < k->f->limit_count; i++) {
        crdi_formula_destroy(k->limits[i]);
    }
    crd_arena_clear(&k->arena);
    crd_free(k->ctx, k);
}

bool study_keep_watches(const study_keep* k)
{
    return k->watches;
}

static crd_status look(study_keep* k, crd_master* m)
{
    for (int i = 0; i < k->signal_count; i++) {
        signal* s = &k->signals[i];
        s->before = s->now;
        if (s->at) {
            s->now = *s->at;
            continue;
        }
        const crd_status st = crd_master_get(m, s->handle, &s->now);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status check_cost(study_keep* k, crd_master* m, int index)
{
    const crd_master_report* r = crdi_master_get_numbers(m);
    const crdi_study_text* t = &k->f->kept[index];
    const kept* p = &k->list[index];
    const crd_coupling_report* c = NULL;
    for (int i = 0; i < r->coupling_count && !c; i++) {
        if (strcmp(r->couplings[i].to, p->input) == 0) { c = &r->couplings[i]; }
    }
    if (!c) { return bad(k, t, "an input that a connection with coupling leads to"); }
    bool known = !p->against;
    for (int i = 1; i < c->tap_count && !known; i++) {
        known = strcmp(c->taps[i].label, p->against) == 0;
    }
    return known ? CRD_OK : bad(k, t, "one of its elements in shadow behind 'against'");
}

crd_status study_keep_check(study_keep* k, crd_master* m)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < k->f->kept_count && st >= 0; i++) {
        const kept* p = &k->list[i];
        if (p->what == COST) { st = check_cost(k, m, i); }
        if (p->what > FIRST) { continue; }
        int handle = 0;
        st = crd_master_find(m, k->signals[p->signal].name, &handle);
        if (st < 0) {
            char text[400];
            snprintf(text, sizeof text, "%s", crd_error_text(k->ctx));
            st = crdi_fail(k->ctx, st, "%s:%d: keep.%s: %s", k->f->file, k->f->kept[i].line,
                           k->f->kept[i].name, text);
        }
    }
    return st;
}

crd_status study_keep_begin(study_keep* k, crd_master* m)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < k->signal_count; i++) {
        signal* s = &k->signals[i];
        CRD_TRY(crd_master_find(m, s->name, &s->handle));
        const crd_handle_info* info = crd_master_handle(m, s->handle);
        if (info->count != 1) {
            return crdi_fail(k->ctx, CRD_E_UNSUPPORTED,
                             "%s: keep: '%s' is an array of %d numbers, expected one of them, as "
                             "%s[1]",
                             k->f->file, s->name, info->count, s->name);
        }
        s->at = info->at;
    }
    k->start = k->time = crd_master_time(m);
    k->begun = crdi_now_ns();
    CRD_TRY(look(k, m));
    for (int i = 0; i < k->f->kept_count; i++) {
        kept* p = &k->list[i];
        const double y = p->what <= FIRST && k->signal_count ? k->signals[p->signal].now : 0;
        p->sum = 0;
        const bool there = p->what == FIRST && (p->below ? y < p->mark : y > p->mark);
        const double past = k->time - p->mark;
        if (p->what == AT && past > 1e-9 * fmax(1, fabs(k->time))) {
            return bad(k, &k->f->kept[i], "a time that the run comes to: it begins behind it");
        }
        p->value = p->what == AT      ? (past >= 0 ? y : NAN)
                   : p->what == FIRST ? (there ? k->time : NAN)
                                      : y;
    }
fail:
    return st;
}

crd_status study_keep_step(study_keep* k, crd_master* m)
{
    const crd_status st = look(k, m);
    if (st < 0) { return st; }
    const double before = k->time, now = crd_master_time(m), h = now - before;
    k->time = now;
    for (int i = 0; i < k->f->kept_count; i++) {
        kept* p = &k->list[i];
        if (p->what > FIRST) { continue; }
        const double a = k->signals[p->signal].before, y = k->signals[p->signal].now;
        switch (p->what) {
        case LEAST:
            p->value = y < p->value || isnan(y) ? y : p->value;
            break;
        case MOST:
            p->value = y > p->value || isnan(y) ? y : p->value;
            break;
        case MEAN:
            p->sum += 0.5 * h * (a + y);
            break;
        case RMS: // of the line between both
            p->sum += h / 3 * (a * a + a * y + y * y);
            break;
        case AT:
            if (isnan(p->value) && now >= p->mark && p->mark >= before) {
                p->value = h > 0 ? a + (y - a) * (p->mark - before) / h : y;
            }
            break;
        case FIRST:
            if (isnan(p->value) && (p->below ? y < p->mark : y > p->mark)) {
                p->value = before + h * (p->mark - a) / (y - a);
            }
            break;
        default:
            break;
        }
    }
    return CRD_OK;
}

static double cost(const kept* p, const crd_master_report* r)
{
    for (int i = 0; i < r->coupling_count; i++) {
        const crd_coupling_report* c = &r->couplings[i];
        if (strcmp(c->to, p->input) != 0 || c->tap_count == 0) { continue; }
        if (!p->against) { return c->taps[0].metrics.C; }
        for (int t = 1; t < c->tap_count; t++) {
            if (strcmp(c->taps[t].label, p->against) == 0) {
                return c->taps[0].metrics.C / c->taps[t].metrics.C;
            }
        }
    }
    return NAN;
}

void study_keep_end(study_keep* k, crd_master* m, crdi_study_run* r)
{
    const crd_master_report* report = crdi_master_get_numbers(m);
    const double span = k->time - k->start;
    const int factors = k->f->factor_count;
    for (int i = 0; i < factors; i++) {
        k->numbers[i] = r->values[i].x;
    }
    for (int i = 0; i < k->f->kept_count; i++) {
        const kept* p = &k->list[i];
        double y = p->value;
        switch (p->what) {
        case FINAL:
            y = k->signals[p->signal].now;
            break;
        case MEAN:
            y = span > 0 ? p->sum / span : k->signals[p->signal].now;
            break;
        case RMS:
            y = span > 0 ? sqrt(p->sum / span) : fabs(k->signals[p->signal].now);
            break;
        case DEFECT:
            y = report->worst_defect;
            break;
        case ENERGY:
            y = report->worst_energy;
            break;
        case ERROR:
            y = report->worst_error;
            break;
        case COST:
            y = cost(p, report);
            break;
        case STEPS:
            y = (double)report->steps;
            break;
        case TIME:
            y = report->time;
            break;
        case WORK: // an iterated step is as much as its sweeps
            y = (double)(report->steps + report->iteration.sweeps - report->iteration.steps +
                         report->control.rejected);
            break;
        case LOAD:
            y = 1e-9 * (double)(crdi_now_ns() - k->begun) / (report->time - k->start);
            break;
        case FORMULA:
            y = crdi_formula_value(p->formula, k->numbers);
            break;
        default:
            break;
        }
        r->kept[i] = k->numbers[factors + i] = y;
        if (p->what <= RMS && !isfinite(y) && r->state == CRDI_RUN_DONE) {
            r->state = CRDI_RUN_DIVERGED;
            snprintf(r->reason, sizeof r->reason, "%s is %g", k->f->kept[i].name, y);
        }
    }
    for (int i = 0; i < k->f->limit_count && r->state == CRDI_RUN_DONE; i++) {
        if (crdi_formula_value(k->limits[i], k->numbers) == 1) { continue; } // NaN is not kept
        r->state = CRDI_RUN_LIMIT;
        snprintf(r->reason, sizeof r->reason, "not kept: %s", k->f->limits[i].text);
    }
}
