// Makes and destroys what serves, its slave, and the entries of its log.
#include "serve/serve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

crdi_serve_options crdi_serve_defaults(void)
{
    return (crdi_serve_options){.resolution = (double)NAN,
                                .heartbeat = (double)NAN,
                                .max_text = 1024,
                                .max_steps = 1000000,
                                .life = 1};
}

// ---- create ------------------------------------------------------------------------------------

static crd_status check_serve_options(crdi_serve* s)
{
    const crdi_serve_options* o = &s->opt;
    const crd_system* sys = s->sys;
    if (!isnan(o->resolution) && !(o->resolution > 0 && isfinite(o->resolution))) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "resolution = %g s, expected > 0", o->resolution);
    }
    if (o->max_steps < 1 || o->max_text < 1 || o->max_text > 65000) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "max_steps = %u, expected 1 or more; max_text = %u, expected 1 to 65000",
                         o->max_steps, o->max_text);
    }
    if (o->pair_count > CRDI_WAVES_MAX) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%d pairs, expected %d at most", o->pair_count,
                         CRDI_WAVES_MAX);
    }
    if (sys->unit_count == 0) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%s: the system has no units", sys->file);
    }
    if (sys->run.control.on) {
        return crdi_fail(s->ctx, CRD_E_UNSUPPORTED,
                         "%s: run.control chooses the steps by itself, but a slave has to make "
                         "those of its master: take it away and give 'step'",
                         sys->file);
    }
    return CRD_OK;
}

static double first_given(double a, double b)
{
    return isnan(a) || a <= 0 ? b : a;
}

// Time resolution, start and tolerance, once it is known what the units are.
static crd_status choose_times(crdi_serve* s)
{
    const crd_run_spec* run = &s->sys->run;
    const crd_unit_info* info = &s->stations[0].unit->info;
    double r = first_given(s->opt.resolution, NAN);
    s->inner = 1;
    s->start = run->start;
    s->tolerance = run->tolerance;
    for (int i = 0; i < s->unit_count; i++) { // as the master does
        const crd_unit_info* each = &s->stations[i].unit->info;
        if (isnan(s->start)) { s->start = each->start; }
        if (isnan(s->tolerance)) { s->tolerance = each->tolerance; }
    }
    if (isnan(s->start)) { s->start = 0; }
    if (s->one) {
        const double own = s->sys->units[0].step;
        r = first_given(r, first_given(own, first_given(run->step, NAN)));
        r = first_given(r, first_given(info->fixed_step, first_given(info->step, 1e-3)));
        s->varies = (info->flags & CRD_UNIT_CAN_VARY_STEP) && !(info->fixed_step > 0);
        if (info->fixed_step > 0) {
            const double n = round(r / info->fixed_step);
            if (!(n >= 1 && n <= 1e6) || fabs(n * info->fixed_step - r) > 1e-9 * r) {
                return crdi_fail(s->ctx, CRD_E_RANGE,
                                 "resolution = %g s, expected a multiple of %g s: unit '%s' makes "
                                 "no other steps",
                                 r, info->fixed_step, s->stations[0].unit->name);
            }
            s->inner = (int)n;
        }
    } else {
        r = first_given(r, first_given(run->step, crd_master_get_report(s->master)->step));
    }
    if (!crdi_serve_fraction(r, &s->numerator, &s->denominator)) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "resolution = %.17g s, expected a fraction of whole numbers below 2^32",
                         r);
    }
    s->resolution = (double)s->numerator / (double)s->denominator;
    return CRD_OK;
}

static crd_log_sink say_nothing;
static void say_nothing(void* user, crd_level level, const char* text)
{
    (void)user;
    (void)level;
    (void)text;
}

// What an FMU says beyond the interface of units: who it is, and what sizes hang on. Warnings about
// its description have been given when it was opened first.
static crd_status open_fmus(crdi_serve* s, crd_context** quiet, crd_fmu** fmus)
{
    *quiet = crdi_context_tap(s->ctx, say_nothing, NULL);
    if (!*quiet) { return crdi_fail(s->ctx, CRD_E_MEMORY, "out of memory"); }
    for (int i = 0; i < s->unit_count; i++) {
        if (s->sys->units[i].source != CRD_UNIT_FMU) { continue; }
        crd_fmu_options opt = crd_fmu_defaults();
        opt.description_only = true;
        const crd_status st = crd_fmu_open(*quiet, s->sys->units[i].path, &opt, &fmus[i]);
        if (st < 0) { return crdi_fail(s->ctx, st, "%s", crd_error_text(*quiet)); }
    }
    return CRD_OK;
}

static crd_status describe_units(crdi_serve* s)
{
    crd_status st = CRD_OK;
    crd_context* quiet = NULL;
    crd_fmu** fmus = crdi_new_array(s->ctx, (size_t)s->unit_count, sizeof *fmus);
    if (!fmus) { return CRD_E_MEMORY; }
    CRD_TRY(open_fmus(s, &quiet, fmus));
    CRD_TRY(crdi_serve_list(s));
    CRD_TRY(crdi_serve_make_description(s, fmus, &s->own));
    s->outlet_of = crdi_arena_new(&s->arena, (size_t)s->outlet_count, sizeof *s->outlet_of);
    if (!s->outlet_of) { CRD_TRY(CRD_E_MEMORY); }
    for (int i = 0; i < s->outlet_count; i++) {
        s->outlet_of[i] = i;
    }
    for (; s->wave_count < s->opt.pair_count; s->wave_count++) {
        CRD_TRY(crdi_wave_declare(s->own, s->opt.pairs[s->wave_count], s->opt.life,
                                  &s->waves[s->wave_count]));
    }
    s->d = s->own;
    crdi_serve_find_templates(s);
fail:
    for (int i = 0; i < s->unit_count; i++) {
        crd_fmu_close(fmus[i]);
    }
    crd_context_destroy(quiet);
    crd_free(s->ctx, fmus);
    return st;
}

static crd_status make_first(crdi_serve* s)
{
    crd_status st = crdi_serve_make(s);
    if (st < 0) { return crdi_fail(s->ctx, st, "%s", crd_error_text(s->log)); }
    st = choose_times(s);
    if (st < 0 || s->one) { return st; }
    const double step = s->sys->run.step;
    s->sys->run.step = s->resolution;
    if (fabs(step - s->resolution) <= 1e-12 * s->resolution) { return CRD_OK; }
    st = crdi_serve_make(s); // with the step that was found
    return st < 0 ? crdi_fail(s->ctx, st, "%s", crd_error_text(s->log)) : st;
}

crd_status crdi_serve_create(crd_context* ctx, crd_system* sys, const crdi_serve_options* opt,
                             crdi_serve** out)
{
    crd_status st = CRD_OK;
    crdi_serve* s = crdi_new(ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->ctx = ctx;
    s->sys = sys;
    s->opt = opt ? *opt : crdi_serve_defaults();
    s->running = -1;
    crd_arena_init(&s->arena, ctx);
    crd_arena_init(&s->live, ctx);
    pthread_mutex_init(&s->lines_lock, NULL);
    crdi_crash_install();
    CRD_TRY(check_serve_options(s));
    s->log = crdi_context_tap(ctx, crdi_serve_take_line, s);
    if (!s->log) { CRD_TRY(crdi_fail(ctx, CRD_E_MEMORY, "out of memory")); }
    s->one = sys->unit_count == 1 && sys->connection_count == 0 && sys->bond_count == 0;
    sys->results.path = sys->results.session = NULL;
    if (!isnan(s->opt.resolution)) { sys->run.step = s->opt.resolution; }
    s->stations = crdi_arena_new(&s->arena, (size_t)sys->unit_count, sizeof *s->stations);
    if (!s->stations) { CRD_TRY(CRD_E_MEMORY); }
    s->unit_count = sys->unit_count;
    for (int i = 0; i < s->unit_count; i++) {
        s->stations[i].parameters = sys->units[i].parameters;
        s->stations[i].parameter_count = sys->units[i].parameter_count;
    }
    CRD_TRY(make_first(s));
    CRD_TRY(describe_units(s));
    *out = s;
    return CRD_OK;
fail:
    crdi_serve_destroy(s);
    return st;
}

void crdi_serve_destroy(crdi_serve* s)
{
    if (!s) { return; }
    crd_context* ctx = s->ctx;
    crd_dcp_slave_destroy(s->slave);
    s->slave = NULL;
    crdi_serve_bench_close(s->bench);
    crdi_serve_close(s);
    crd_unit_store_destroy(s->store);
    crd_context_destroy(s->log);
    crd_dcp_description_destroy(s->own);
    crdi_crash_remove();
    pthread_mutex_destroy(&s->lines_lock);
    crd_free(ctx, s->outlets);
    crd_arena_clear(&s->live);
    crd_arena_clear(&s->arena);
    crd_free(ctx, s);
}

const crd_dcp_description* crdi_serve_description(const crdi_serve* s)
{
    return s->d;
}

crd_status crdi_serve_describe(crd_context* ctx, crd_system* sys, const crdi_serve_options* opt,
                               crd_dcp_description** out)
{
    crdi_serve* s = NULL;
    const crd_status st = crdi_serve_create(ctx, sys, opt, &s);
    if (st < 0) { return st; }
    *out = s->own;
    s->own = NULL;
    crdi_serve_destroy(s);
    return CRD_OK;
}

const char* crdi_serve_failure(const crdi_serve* s)
{
    return s->failure;
}

// ---- the slave ---------------------------------------------------------------------------------

static bool pass_send(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    crdi_serve* s = user;
    if (s->watch && length == 3 && bytes[0] == CRDI_DCP_NTF_STATE_CHANGED) {
        s->watch(s->watch_user, (crd_dcp_state)bytes[2]);
    }
    return s->link.send(s->link.user, to, bytes, length);
}

static bool pass_listen(void* user, const crd_dcp_address* at)
{
    crdi_serve* s = user;
    return s->link.listen(s->link.user, at);
}

static bool pass_connect(void* user, const crd_dcp_address* to)
{
    crdi_serve* s = user;
    return s->link.connect(s->link.user, to);
}

static void pass_close(void* user)
{
    crdi_serve* s = user;
    s->link.close(s->link.user);
}

static void pass_hold(void* user, bool on)
{
    crdi_serve* s = user;
    s->link.hold(s->link.user, on);
}

crd_status crdi_serve_start(crdi_serve* s, const crd_dcp_link* link,
                            const crd_dcp_slave_options* opt, crdi_serve_watch* watch, void* user)
{
    if (s->slave) { return crdi_fail(s->ctx, CRD_E_STATE, "crdi_serve_start was called twice"); }
    crd_dcp_slave_options o = opt ? *opt : crd_dcp_slave_defaults();
    const int room = 64 + s->d->variable_count / 32; // masters keep PDUs short
    if (o.max_groups < room) { o.max_groups = room < 65536 ? room : 65536; }
    if (o.max_text < s->opt.max_text) { o.max_text = s->opt.max_text; }
    s->link = *link;
    s->watch = watch;
    s->watch_user = user;
    crd_dcp_plant plant = s->bench ? crdi_serve_bench_plant(s->bench) : crdi_serve_plant(s);
    for (int i = 0; i < s->wave_count; i++) {
        plant = crdi_wave_plant(&s->waves[i], &plant, s->bench != NULL);
    }
    const crd_dcp_link through = {.user = s,
                                  .send = pass_send,
                                  .listen = link->listen ? pass_listen : NULL,
                                  .connect = link->connect ? pass_connect : NULL,
                                  .close = link->close ? pass_close : NULL,
                                  .hold = link->hold ? pass_hold : NULL};
    const crd_status st = crd_dcp_slave_create(s->ctx, s->d, &plant, &through, &o, &s->slave);
    if (st == CRD_OK && s->bench) { crdi_serve_bench_attach(s->bench, s->slave); }
    return st;
}

crd_dcp_slave* crdi_serve_slave(crdi_serve* s)
{
    return s->slave;
}

enum { PACKETS_AT_ONCE = 256 }; // a flood of them does not keep waiting what is due

// Packets count from when they arrived: a heartbeat that came during a long step came in time.
void crdi_serve_turn(crdi_serve* s, crd_dcp_net* net, double most)
{
    crd_dcp_packet p;
    int n = 0;
    for (; n < PACKETS_AT_ONCE && crd_dcp_net_receive(net, &p); n++) {
        const double now = crd_dcp_net_now(net);
        crd_dcp_slave_receive(s->slave, &p.from, &p.at, p.bytes, p.length, fmin(p.time, now));
    }
    crd_dcp_slave_advance(s->slave, crd_dcp_net_now(net));
    const double next = crd_dcp_slave_next(s->slave) - crd_dcp_net_now(net);
    if (n < PACKETS_AT_ONCE && next > 0) { crd_dcp_net_wait(net, fmin(next, most)); }
}

void crdi_serve_leave(crdi_serve* s, double now)
{
    if (!s->slave || crd_dcp_slave_state(s->slave) == CRD_DCP_ALIVE) { return; }
    if (s->bench) {
        crdi_serve_bench_stop(s->bench, now);
        return;
    }
    crd_dcp_slave_stop(s->slave, now);
    const crd_dcp_state state = crd_dcp_slave_state(s->slave);
    if (state != CRD_DCP_STOPPING && state < CRD_DCP_STOPPED) {
        crdi_serve_note(s, 0, "the slave is being ended");
        crd_dcp_slave_fault(s->slave, CRD_DCP_E_GENERIC, now);
    }
}

// ---- the log -----------------------------------------------------------------------------------

// The entries that a description has for one text, by level.
void crdi_serve_find_templates(crdi_serve* s)
{
    memset(s->templated, 0, sizeof s->templated);
    for (int i = 0; i < s->d->template_count; i++) {
        const crd_dcp_log_template* t = &s->d->templates[i];
        if (t->level < CRDI_SERVE_LEVELS && !s->templated[t->level] && t->argument_count == 1 &&
            t->arguments[0] == CRD_DCP_STRING) {
            s->templated[t->level] = true;
            s->templates[t->level] = t->id;
        }
    }
}

// No more than `room` bytes, and no part of a character.
static uint32_t cut_text(const char* text, size_t room)
{
    size_t n = strlen(text);
    if (n <= room) { return (uint32_t)n; }
    n = room;
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) {
        n--;
    }
    return (uint32_t)n;
}

void crdi_serve_take_line(void* user, crd_level level, const char* text)
{
    crdi_serve* s = user;
    crdi_log_on(s->ctx, level, text);
    if (!s->slave) { return; }
    pthread_mutex_lock(&s->lines_lock);
    if (s->line_count == CRDI_SERVE_LINES) { // the oldest goes
        s->line_first = (s->line_first + 1) % CRDI_SERVE_LINES;
        s->line_count--;
    }
    crdi_serve_line* l = &s->lines[(s->line_first + s->line_count++) % CRDI_SERVE_LINES];
    l->level = (uint8_t)(level + 1);
    l->length = cut_text(text, sizeof l->text);
    memcpy(l->text, text, l->length);
    __atomic_store_n(&s->has_lines, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&s->lines_lock);
}

static void serve_put_entry(crdi_serve* s, uint8_t level, const char* text, uint32_t length)
{
    if (!s->templated[level] || !s->slave) { return; }
    uint8_t bytes[CRDI_SERVE_LINE];
    uint32_t count = length;
    memcpy(bytes, text, length);
    const crd_dcp_slot slot = {.type = CRD_DCP_STRING,
                               .count = 1,
                               .max_size = sizeof bytes,
                               .bytes = bytes,
                               .byte_count = &count};
    crd_dcp_slave_log(s->slave, s->templates[level], &slot, 0); // at the slave's own time
}

void crdi_serve_send_lines(crdi_serve* s)
{
    for (;;) {
        crdi_serve_line line;
        pthread_mutex_lock(&s->lines_lock);
        const bool some = s->line_count > 0;
        if (some) {
            line = s->lines[s->line_first];
            s->line_first = (s->line_first + 1) % CRDI_SERVE_LINES;
            s->line_count--;
        }
        if (!some) { __atomic_store_n(&s->has_lines, false, __ATOMIC_RELEASE); }
        pthread_mutex_unlock(&s->lines_lock);
        if (!some) { return; }
        serve_put_entry(s, line.level, line.text, line.length);
    }
}

void crdi_serve_note(crdi_serve* s, uint8_t level, const char* text)
{
    serve_put_entry(s, level, text, cut_text(text, CRDI_SERVE_LINE));
}
