// cardan coupling learn cycle: the run of a system, again and again, until what is late is
// corrected.
#include "cli/analyze/learn.h"
#include "cli/run/run.h"
#include "shared/base_interrupt.h"
#include "shared/master_cycle.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct cycle_learner {
    crdi_cli* cli;
    crd_system* s;
    const volatile bool* stop;
} cycle_learner;

// What the end of a run says about the loop.
static crd_status judge(crd_context* ctx, const crd_master_report* r, int number)
{
    if (r->end == CRD_END_INTERRUPTED) {
        return crdi_fail(ctx, CRD_E_STATE, "interrupted in run %d at t = %.10g s", number, r->time);
    }
    if (r->end == CRD_END_OVERRUN) { return crdi_fail_overrun(ctx, r); }
    if (r->end == CRD_END_GUARD || r->guard.state == CRD_GUARD_DIVERGED) {
        return crdi_fail(ctx, CRD_E_CONVERGENCE,
                         "run %d: %s. A cycle is learned where the loop is stable without it: a "
                         "shorter latency or another element may make it so; 'pair: wave' on the "
                         "bond does for any latency, but its signals cannot be learned "
                         "(docs/explanation/pairs.md)",
                         number, r->guard.text);
    }
    if (r->end != CRD_END_STOP_TIME) {
        return crdi_fail(ctx, CRD_E_STATE,
                         "run %d ended at t = %.10g s, before the cycle was over: a cycle is "
                         "learned from whole runs",
                         number, r->time);
    }
    return CRD_OK;
}

static crd_status run_once(void* user, crdi_repeat_pass* pass)
{
    const cycle_learner* l = user;
    crd_status st = CRD_OK;
    crd_master* m = NULL;
    crdi_ward* ward = NULL;
    crd_master_options opt = crd_master_defaults();
    opt.stop = l->stop;
    opt.guard_crashes = true;
    opt.last_words = crdi_last_words;
    opt.last_words_user = l->cli;
    opt.pass = pass;
    CRD_TRY(crd_master_create(l->cli->ctx, l->s, &opt, &m));
    CRD_TRY(crdi_guarding_start(l->cli, m, l->s,
                                &(crdi_guarding){.watchdog = (double)NAN, .quiet = true}, &ward));
    CRD_TRY(crd_master_run(m));
    st = judge(l->cli->ctx, crd_master_get_report(m), pass->number);
fail:
    if (ward) { crdi_ward_let_go(ward); }
    crd_master_destroy(m);
    crdi_ward_destroy(ward);
    return st;
}

static void note_run(void* user, const crdi_repeat_figure* f, int number)
{
    const cycle_learner* l = user;
    crdi_log(l->cli->ctx, CRD_LOG_INFO, "run %d, %s: coupling error %.4g %%%s", number, f->what,
             100 * f->error, f->kept ? "" : ", not kept");
}

static void put_cycle(crdi_result* out, const crdi_repeat* c, const char* path)
{
    static const crdi_column columns[] = {{">run", "shown", ""},
                                          {"what", "what", ""},
                                          {">coupling error", "error", "100*%.3g %%"},
                                          {">of the first", "part", "100*%.3g %%"},
                                          {">gain", "gain", "%.2g"},
                                          {">limited", "limited", ""},
                                          {"", "verdict", ""},
                                          {0}};
    int number = 0;
    crdi_say(out, "%d samples every %g s, %d late signal%s of power bonds, learned together\n\n",
             c->count, c->step, c->signal_count, crdi_plural(c->signal_count));
    crdi_put(out, INT("samples", c->count), REAL("step", c->step), REAL("first_error", c->first),
             REAL("error", c->best), TEXT("written", path));
    crdi_result* signals = crdi_array(out, "signals");
    for (int i = 0; i < c->signal_count; i++) {
        const crdi_repeat_signal* s = &c->signals[i];
        crdi_put(crdi_row(signals), TEXT("from", s->from), TEXT("to", s->to), TEXT("unit", s->unit),
                 REAL("range", s->scale), REAL("latency", s->latency * c->step));
    }
    crdi_result* rows = crdi_array(out, "runs");
    for (int i = 0; i < c->figure_count; i++) {
        const crdi_repeat_figure* f = &c->figures[i];
        const bool identifies = strncmp(f->what, "identify", 8) == 0;
        crdi_result* row = crdi_row(rows);
        number += !identifies;
        crdi_put(row, CELL("shown", identifies ? " " : crdi_worded(row, "%d", number)),
                 TEXT("what", f->what), REAL("error", f->error), REAL("part", f->error / c->first),
                 REAL("gain", f->gain), INT("limited", f->limited), BOOL("kept", f->kept),
                 CELL("verdict", identifies || f->kept ? " " : "undone"));
        crdi_put_numbers(row, "signals", f->signals, c->signal_count);
    }
    crdi_show_table(out, rows, columns, "");
    crdi_say(out, "coupling error %.3g %% instead of %.3g %%\n", 100 * c->best, 100 * c->first);
    if (path) { crdi_say(out, "%s: written; 'run: { learned: FILE }' uses it\n", path); }
}

static crd_status write_cycle(crdi_cli* cli, const crdi_repeat* c, const char* path)
{
    crd_text text;
    crd_text_init(&text, cli->ctx);
    crdi_repeat_write(c, &text);
    const crd_status st = crdi_file_write(cli->ctx, path, &text);
    crd_text_clear(&text);
    return st;
}

// What is run and what is written: nothing but the learned file, and nothing that was learned
// before.
static crd_status prepare(cycle_learner* l, const crdi_learn_cycle_options* o, const char* subject,
                          const char** path)
{
    crd_system* s = l->s;
    *path = o->output ? o->output : s->run.learned;
    if (!*path) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "--output is missing: where does what is learned go? 'run: { learned: "
                         "FILE }' in %s says it, too",
                         subject);
    }
    s->run.learned = NULL;
    if (s->run.guard.action == CRD_GUARD_LADDER) { // with other elements it is another cycle
        s->run.guard.action = CRD_GUARD_STOP;
    }
    s->results.path = s->results.exchange = s->results.session = NULL;
    if (!isnan(o->stop_time)) { s->run.stop = o->stop_time; }
    crd_status st = CRD_OK;
    if (o->pace) { st = crd_system_set_pace(s, o->pace, (crd_place){.file = "--pace"}); }
    for (int i = 0; st == CRD_OK && i < o->set->count; i++) {
        st = crdi_apply_set(s, o->set->items[i]);
    }
    if (st == CRD_OK) { st = crdi_check_times(s); }
    return st == CRD_OK
               ? crdi_refuse_overwriting(s->ctx, *path, subject, "what is learned", "what is run")
               : st;
}

static crd_status describe(const cycle_learner* l, crdi_repeat* c)
{
    crd_master* m = NULL;
    crd_status st = crd_master_create(l->cli->ctx, l->s, NULL, &m);
    if (st == CRD_OK) { st = crdi_repeat_describe(m, c); }
    crd_master_destroy(m);
    return st;
}

crd_status crdi_learn_cycle(crdi_cli* cli, const crdi_learn_cycle_options* o, const char* subject,
                            crdi_result* out)
{
    crd_status st = CRD_OK;
    const char* path = NULL;
    crdi_repeat c = {0};
    cycle_learner l = {.cli = cli};
    crdi_repeat_options opt = crdi_repeat_defaults();
    opt.note = note_run;
    opt.runs = isnan(o->runs) ? opt.runs : (int)o->runs;
    if (!isnan(o->gain)) { opt.gain = o->gain; }
    if (!isnan(o->disturbance)) { opt.disturbance = o->disturbance; }
    opt.band = o->band;
    if (!(opt.runs >= 2 && opt.runs <= 1000) || !(opt.gain <= 1) || !(opt.disturbance <= 0.5)) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "--runs = %d, --gain = %g, --disturbance = %g, expected 2 to 1000 runs, a "
                         "gain up to 1 and a disturbance up to 0.5 of the range",
                         opt.runs, opt.gain, opt.disturbance);
    }
    l.stop = crdi_interrupt_catch(&(crdi_interrupt_options){.restart = true});
    CRD_TRY(crdi_load_variant(cli->ctx, subject, NULL, &l.s));
    CRD_TRY(prepare(&l, o, subject, &path));
    CRD_TRY(describe(&l, &c));
    CRD_TRY(crdi_repeat_learn(cli->ctx, &opt, run_once, &l, &c));
    const bool better = c.best < c.first;
    if (better) { CRD_TRY(write_cycle(cli, &c, path)); }
    put_cycle(out, &c, better ? path : NULL);
    if (!better) {
        st = crdi_fail(cli->ctx, CRD_E_CONVERGENCE,
                       "no run was better than the first (coupling error %.3g %%), %s is not "
                       "written",
                       100 * c.first, path);
    }
fail:
    if (c.arena.ctx) { crd_arena_clear(&c.arena); }
    crd_system_destroy(l.s);
    return st;
}
