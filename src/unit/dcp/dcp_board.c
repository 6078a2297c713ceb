// What is known about the slave of a unit, on its board: from the notices of the session and the
// data of the run. Who has the session's baton writes.
#include "unit/dcp/dcp_unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double show_pause = 0.05; // s between two times that numbers alone are shown
static const double heat_step = 2;     // K between two moments of a temperature that comes closer

// ---- quantities --------------------------------------------------------------------------------

static int32_t find_of(const crdi_dcp_unit* u, const char* name, const char* end, uint8_t causality)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s", name, end);
    const int32_t i = crdi_map_find(&u->names, text);
    return i >= 0 && u->variables[i].causality == causality ? i : -1;
}

// A description that does not say which variables belong to a limit: speed_ref or speed is the set
// value of `speed`, speed or speed_act what is measured.
static void pair_by_name(const crdi_dcp_unit* u, const char* name, crdi_dcp_bench_pair* out)
{
    out->input = find_of(u, name, "_ref", CRD_INPUT);
    if (out->input < 0) { out->input = find_of(u, name, "", CRD_INPUT); }
    out->output = find_of(u, name, "", CRD_OUTPUT);
    if (out->output < 0) { out->output = find_of(u, name, "_act", CRD_OUTPUT); }
}

// How values of a variable become those of the limit; one that is no number, or of another kind,
// is none.
static crdi_dcp_gauge gauge_of(const crdi_dcp_unit* u, int32_t variable, const crdi_dcp_limit* l)
{
    crdi_dcp_gauge g = {.variable = -1, .scale = 1};
    if (variable < 0) { return g; }
    const crd_variable* v = &u->variables[variable];
    crd_dimension d;
    if (v->rank > 0 || crd_type_kind(v->type) == CRD_BYTES) { return g; }
    if (v->unit[0] && strcmp(v->unit, l->unit) != 0) {
        if (!crdi_dcp_unit_dimension(&u->base, variable, &d) ||
            !crd_dimension_equal(&d, &l->dimension)) {
            return g;
        }
        g.scale = d.factor / l->dimension.factor;
        g.offset = (d.offset - l->dimension.offset) / l->dimension.factor;
    }
    g.variable = variable;
    return g;
}

static double read_gauge(const crdi_dcp_unit* u, const crdi_dcp_gauge* g)
{
    if (g->variable < 0) { return NAN; }
    return crdi_dcp_slot_number(&u->values[g->variable].slot, 0) * g->scale + g->offset;
}

static void add_quantity(crdi_dcp_unit* u, const crdi_dcp_limit* l,
                         const crdi_dcp_bench_pair* pairs, int pair_count)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    if (s->quantity_count == CRDI_BOARD_QUANTITIES) { return; }
    const int k = s->quantity_count++;
    crdi_board_quantity* q = &s->quantities[k];
    *q = (crdi_board_quantity){.min = l->min, .max = l->max, .set = NAN, .measured = NAN};
    memcpy(q->name, l->name, sizeof q->name);
    memcpy(q->unit, l->unit, sizeof q->unit);
    crdi_dcp_bench_pair pair;
    pair_by_name(u, l->name, &pair);
    u->gauges[k].bit = -1;
    for (int i = 0; i < pair_count; i++) {
        if (strcmp(pairs[i].name, l->name) != 0) { continue; }
        pair = pairs[i];
        u->gauges[k].bit = i;
    }
    u->gauges[k].set = gauge_of(u, pair.input, l);
    u->gauges[k].measured = gauge_of(u, pair.output, l);
}

// Our own limits narrow those of the bench, or are of a quantity that it does not limit.
static void add_own(crdi_dcp_unit* u, const crdi_dcp_limit* own, const crdi_dcp_limits* bench,
                    const crdi_dcp_bench_pair* pairs, int pair_count)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    const crdi_dcp_limit* theirs = crdi_dcp_limits_find(bench, own->name);
    if (!theirs) {
        add_quantity(u, own, pairs, pair_count);
        return;
    }
    if (!crd_dimension_equal(&own->dimension, &theirs->dimension)) { return; }
    const double scale = own->dimension.factor / theirs->dimension.factor;
    const double offset =
        (own->dimension.offset - theirs->dimension.offset) / theirs->dimension.factor;
    const bool same = strcmp(own->unit, theirs->unit) == 0;
    for (int i = 0; i < s->quantity_count; i++) {
        crdi_board_quantity* q = &s->quantities[i];
        if (strcmp(q->name, own->name) != 0) { continue; }
        q->min = fmax(q->min, same ? own->min : own->min * scale + offset);
        q->max = fmin(q->max, same ? own->max : own->max * scale + offset);
    }
}

// The limits of set values in the units of their variables.
static void limit_inputs(crdi_dcp_unit* u, const crdi_dcp_limits* bench, const crdi_dcp_limits* own)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    for (int i = 0; i < s->quantity_count; i++) {
        crdi_board_quantity* q = &s->quantities[i];
        const crdi_dcp_gauge* g = &u->gauges[i].set;
        const crdi_dcp_limit *theirs = crdi_dcp_limits_find(bench, q->name),
                             *ours = crdi_dcp_limits_find(own, q->name);
        const double factor =
            ours && theirs ? ours->dimension.factor / theirs->dimension.factor : 1;
        const double rate =
            fmin(theirs ? theirs->rate : INFINITY, ours ? ours->rate * factor : INFINITY);
        q->input = g->variable;
        q->input_min = (q->min - g->offset) / g->scale;
        q->input_max = (q->max - g->offset) / g->scale;
        q->input_rate = rate / g->scale;
    }
}

crd_status crdi_dcp_board_create(crdi_dcp_unit* u)
{
    crd_context* ctx = u->base.ctx;
    crdi_dcp_limits bench = {0}, own = {0};
    crdi_dcp_bench_pair pairs[CRD_DCP_LIMITS_MAX];
    crd_status st = crdi_board_create(ctx, &u->board);
    if (st < 0) { return st; }
    crdi_board_state* s = crdi_board_edit(u->board);
    u->board_offset = u->board_shown = NAN;
    s->extension = crdi_dcp_bench_find(u->d, &u->at);
    if (!s->extension) {
        crdi_board_show(u->board);
        return CRD_OK;
    }
    // What cannot be read is no reason to refuse a slave that is not driven as a bench; one that is
    // was checked before.
    const char* text = u->d->variables[u->at.limits].start;
    const char* ours = u->base.spec->bench.used ? u->base.spec->bench.limits : NULL;
    (void)crdi_dcp_limits_parse(ctx, text ? text : "", text ? strlen(text) : 0, &bench);
    (void)crdi_dcp_limits_parse(ctx, ours ? ours : "", ours ? strlen(ours) : 0, &own);
    const int count = crdi_dcp_bench_pairs(u->d, pairs);
    for (int i = 0; i < bench.count; i++) {
        add_quantity(u, &bench.of[i], pairs, count);
    }
    for (int i = 0; i < own.count; i++) {
        add_own(u, &own.of[i], &bench, pairs, count);
    }
    limit_inputs(u, &bench, &own);
    crdi_board_show(u->board);
    return CRD_OK;
}

// ---- time --------------------------------------------------------------------------------------

// The clock of the net goes on with the monotonic one, or is a virtual one.
void crdi_dcp_board_open(crdi_dcp_unit* u, double net_now)
{
    const crdi_board_state* s = crdi_board_edit(u->board);
    const double age = 1e-9 * (double)(crdi_now_ns() - crdi_board_born(u->board));
    const double newest = s->moment_count ? s->moments[s->moment_count - 1].time : 0;
    u->board_offset = fmax(age, newest) - net_now;
    u->board_shown = -INFINITY;
}

static void note_moment(crdi_dcp_unit* u, crdi_board_what what, double value, double net_time)
{
    crdi_board_note_at(u->board, what, value, net_time + u->board_offset);
}

// ---- states and phases -------------------------------------------------------------------------

static void set_phase(crdi_dcp_unit* u, int phase, double time)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    if (!s->extension || phase == s->phase) { return; }
    s->phase = phase;
    note_moment(u, CRDI_BOARD_PHASE, phase, time);
}

static void set_heat(crdi_dcp_unit* u, double heat, double time)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    crdi_board_moment* last = NULL;
    for (int i = s->moment_count; i > 0 && !last; i--) {
        if (s->moments[i - 1].what == CRDI_BOARD_HEAT) { last = &s->moments[i - 1]; }
    }
    const bool first = !last || last->value == 0;
    if (first ? heat == 0 : heat != 0 && fabs(heat - last->value) < heat_step) { return; }
    note_moment(u, CRDI_BOARD_HEAT, heat, time);
}

// A new registration: what was said of the one before counts no more.
static void forget_registration(crdi_dcp_unit* u)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    s->reason = CRD_DCP_BENCH_NO_REASON;
    s->clamps = s->refused = 0;
    s->missing[0] = s->progress[0] = s->why[0] = s->stopping[0] = 0;
    s->calibrations.count = 0;
    u->medium_count = 0;
}

// What the state alone says about the phase; data and log say more.
static int phase_in(crd_dcp_state state, int phase)
{
    switch (state) {
    case CRD_DCP_ALIVE:
    case CRD_DCP_CONFIGURATION:
        return CRD_DCP_BENCH_IDLE;
    case CRD_DCP_PREPARING:
        return CRD_DCP_BENCH_PREPARATION;
    case CRD_DCP_PREPARED:
        return CRD_DCP_BENCH_PREPARED;
    case CRD_DCP_CONFIGURING:
        return CRD_DCP_BENCH_CONDITIONING;
    case CRD_DCP_CONFIGURED:
        return phase < CRD_DCP_BENCH_CONDITIONED ? CRD_DCP_BENCH_CONDITIONED : phase;
    case CRD_DCP_STOPPING:
    case CRD_DCP_ERRORHANDLING:
        return phase < CRD_DCP_BENCH_SPEED_DOWN || phase == CRD_DCP_BENCH_ARMED
                   ? CRD_DCP_BENCH_SPEED_DOWN
                   : phase;
    case CRD_DCP_STOPPED:
    case CRD_DCP_ERRORRESOLVED:
        return CRD_DCP_BENCH_SAFE;
    default:
        return state >= CRD_DCP_SYNCHRONIZING && phase < CRD_DCP_BENCH_RUN ? CRD_DCP_BENCH_ARMED
                                                                           : phase;
    }
}

static void set_state(crdi_dcp_unit* u, crd_dcp_state state, double time)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    if ((int)state == s->state) { return; }
    if (state == CRD_DCP_CONFIGURATION) { forget_registration(u); }
    s->state = (int)state;
    note_moment(u, CRDI_BOARD_STATE, state, time);
    set_phase(u, phase_in(state, s->phase), time);
    if (state != CRD_DCP_CONFIGURING) { set_heat(u, 0, time); }
    if (s->reason != CRD_DCP_BENCH_NO_REASON) { return; }
    if (state == CRD_DCP_STOPPING) { s->reason = CRD_DCP_BENCH_BY_MASTER; }
    if (state == CRD_DCP_ERRORHANDLING) { s->reason = CRD_DCP_BENCH_SLAVE; }
}

// ---- entries of the log ------------------------------------------------------------------------

static void set_board_text(char* to, size_t room, const char* text)
{
    snprintf(to, room, "%s", text);
}

static void take_preparation_entry(crdi_dcp_unit* u, const char* text, double time)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    const char* missing = strncmp(text, "missing ", 8) == 0 ? text + 8 : "";
    set_board_text(s->missing, sizeof s->missing, missing);
    set_phase(u, *missing ? CRD_DCP_BENCH_PREPARATION : CRD_DCP_BENCH_PREPARED, time);
}

// "oil at 43.1 degC, wanted 80"
static bool read_medium(const char* text, crdi_dcp_medium* out)
{
    const char* at = strstr(text, " at ");
    char *behind = NULL, unit[16];
    crd_dimension d;
    if (!at || at == text || (size_t)(at - text) >= sizeof out->name) { return false; }
    *out = (crdi_dcp_medium){.measured = strtod(at + 4, &behind)};
    memcpy(out->name, text, (size_t)(at - text));
    const char* comma = strstr(behind, ", wanted ");
    if (behind == at + 4 || *behind != ' ' || !comma || (size_t)(comma - behind) > sizeof unit) {
        return false;
    }
    snprintf(unit, sizeof unit, "%.*s", (int)(comma - behind - 1), behind + 1);
    set_board_text(out->unit, sizeof out->unit, unit);
    out->wanted = strtod(comma + 9, NULL);
    const double factor = crd_dimension_parse(unit, &d) ? d.factor : 1;
    out->heat = fabs(out->measured - out->wanted) * factor;
    return isfinite(out->heat);
}

// A report has an entry for each medium that is not there yet, one behind the other.
static void take_conditioning_entry(crdi_dcp_unit* u, const char* entry, const char* text,
                                    double time)
{
    enum { MOST = sizeof u->media / sizeof *u->media };
    crdi_board_state* s = crdi_board_edit(u->board);
    crdi_dcp_medium m;
    if (!read_medium(text, &m)) {
        set_board_text(s->progress, sizeof s->progress, entry);
        if (strncmp(text, "done", 4) == 0) {
            set_phase(u, CRD_DCP_BENCH_CONDITIONED, time);
            set_heat(u, 0, time);
        }
        return;
    }
    for (int i = 0; i < u->medium_count; i++) {
        if (strcmp(u->media[i].name, m.name) == 0) { u->medium_count = 0; } // the next report
    }
    if (u->medium_count == MOST) { u->medium_count = 0; }
    u->media[u->medium_count++] = m;
    double heat = 0;
    size_t n = (size_t)snprintf(s->progress, sizeof s->progress, "conditioning: ");
    for (int i = 0; i < u->medium_count; i++) {
        const crdi_dcp_medium* of = &u->media[i];
        heat = fmax(heat, of->heat);
        const int more = snprintf(s->progress + n, sizeof s->progress - n, "%s%s %.4g %s of %.4g",
                                  i ? ", " : "", of->name, of->measured, of->unit, of->wanted);
        n = n + (size_t)more < sizeof s->progress ? n + (size_t)more : sizeof s->progress - 1;
    }
    set_phase(u, CRD_DCP_BENCH_CONDITIONING, time);
    crdi_board_moment* last = s->moment_count ? &s->moments[s->moment_count - 1] : NULL;
    if (u->medium_count > 1 && last && last->what == CRDI_BOARD_HEAT && last->value != 0) {
        last->value = heat; // of the same report
    } else {
        set_heat(u, heat, time);
    }
}

static void take_stop_entry(crdi_dcp_unit* u, const char* entry, const char* text, double time)
{
    static const struct {
        const char* text;
        uint8_t phase;
    } steps[] = {
        {"torque 0", CRD_DCP_BENCH_SPEED_DOWN}, {"speed is safe", CRD_DCP_BENCH_VOLTAGE_DOWN},
        {"cool down", CRD_DCP_BENCH_COOL_DOWN}, {"to standstill", CRD_DCP_BENCH_STAND_DOWN},
        {"safe", CRD_DCP_BENCH_SAFE},
    };
    crdi_board_state* s = crdi_board_edit(u->board);
    set_board_text(s->stopping, sizeof s->stopping, entry);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (strncmp(text, steps[i].text, strlen(steps[i].text)) == 0) {
            set_phase(u, steps[i].phase, time);
        }
    }
}

static int reason_of_fault(const char* text)
{
    static const struct {
        const char* text;
        uint8_t reason;
    } reasons[] = {
        {"watchdog", CRD_DCP_BENCH_WATCHDOG},
        {"sequence numbers", CRD_DCP_BENCH_GAP},
        {"error ", CRD_DCP_BENCH_RIG_ERROR},
        {"lost ", CRD_DCP_BENCH_ITEM_LOST},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (strncmp(text, reasons[i].text, strlen(reasons[i].text)) == 0) {
            return reasons[i].reason;
        }
    }
    return CRD_DCP_BENCH_TRIP;
}

// "torque = 50 N.m, used 0, ...": in a region that is forbidden, perhaps, not beyond its limits.
static void take_clamp_entry(crdi_dcp_unit* u, const char* entry, const char* text)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    if (strncmp(s->why, "fault: ", 7) != 0) { set_board_text(s->why, sizeof s->why, entry); }
    for (int i = 0; i < s->quantity_count; i++) {
        const size_t n = strlen(s->quantities[i].name);
        if (u->gauges[i].bit < 0 && strncmp(text, s->quantities[i].name, n) == 0 &&
            strncmp(text + n, " = ", 3) == 0) {
            s->quantities[i].clamped = true;
        }
    }
}

static void take_calibration_entry(crdi_board_state* s, const char* text)
{
    crdi_calibrations* all = &s->calibrations;
    crdi_calibration c;
    if (!crdi_calibration_scan(text, &c)) { return; }
    int at = 0;
    while (at < all->count && strcmp(all->of[at].name, c.name) != 0) {
        at++;
    }
    if (at == CRDI_CALIBRATIONS_MAX) { return; }
    all->of[at] = c;
    all->count += at == all->count;
}

static void take_entry(crdi_dcp_unit* u, const crd_dcp_notice* n)
{
    const char *entry = NULL, *text = NULL;
    crdi_board_state* s = crdi_board_edit(u->board);
    if (!s->extension) { return; }
    switch (crdi_bench_find_entry(n->text, &entry, &text)) {
    case CRDI_BENCH_PREPARATION:
        take_preparation_entry(u, text, n->time);
        break;
    case CRDI_BENCH_CONDITIONING:
        take_conditioning_entry(u, entry, text, n->time);
        break;
    case CRDI_BENCH_REFUSED:
        set_board_text(s->why, sizeof s->why, entry);
        if (s->state < CRD_DCP_SYNCHRONIZING) { s->reason = CRD_DCP_BENCH_LIMITS; }
        break;
    case CRDI_BENCH_CLAMPED:
        take_clamp_entry(u, entry, text);
        break;
    case CRDI_BENCH_FAULT:
        set_board_text(s->why, sizeof s->why, entry);
        s->reason = reason_of_fault(text);
        break;
    case CRDI_BENCH_STOP:
        take_stop_entry(u, entry, text, n->time);
        break;
    case CRDI_BENCH_CALIBRATED:
        take_calibration_entry(s, text);
        break;
    case CRDI_BENCH_NO_ENTRY:
        break;
    }
}

// ---- from outside ------------------------------------------------------------------------------

static void take_link(crdi_dcp_unit* u, const crd_dcp_slave_status* t, double now)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    const double last = fmax(t->last_pdu, t->data_time);
    if (s->lost != t->lost && s->state >= 0) {
        note_moment(u, CRDI_BOARD_STATE, t->lost ? -1 : s->state, now);
    }
    s->lost = t->lost;
    if (isfinite(last)) { s->last_data = last + u->board_offset; }
    if (t->requests > 0) {
        s->round_trip = t->round_trip;
        s->round_trip_max = t->round_trip_max;
    }
    if (!u->bench) { return; }
    const crdi_dcp_bench_view v = crdi_dcp_bench_peer_view(u->bench);
    s->gap = v.gap;
    if (v.round_trip.count > 0) {
        s->round_trip = v.round_trip.last;
        s->round_trip_max = v.round_trip.most;
    }
}

static void show_board(crdi_dcp_unit* u, double now)
{
    u->board_shown = now;
    crdi_board_show(u->board);
}

void crdi_dcp_board_refresh(crdi_dcp_unit* u, const crd_dcp_slave_status* t, double now)
{
    if (!(now - u->board_shown >= show_pause)) { return; }
    take_link(u, t, now);
    show_board(u, now);
}

void crdi_dcp_board_notice(crdi_dcp_unit* u, const crd_dcp_notice* n, const crd_dcp_slave_status* t)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    const int before = s->moment_count + (int)s->moments_left_out;
    const bool known =
        n->kind == CRD_DCP_NOTICE_STATE || (n->kind == CRD_DCP_NOTICE_ERROR && s->state >= 0);
    if (isnan(u->board_offset)) { return; }
    if (known) { set_state(u, n->state, n->time); }
    if (n->kind == CRD_DCP_NOTICE_LOG && n->text) { take_entry(u, n); }
    if (n->kind == CRD_DCP_NOTICE_ERROR && !s->why[0]) {
        set_board_text(s->why, sizeof s->why, n->text);
    }
    const bool news = before != s->moment_count + (int)s->moments_left_out;
    if (news || n->kind == CRD_DCP_NOTICE_ERROR) {
        take_link(u, t, n->time);
        show_board(u, n->time);
    } else {
        crdi_dcp_board_refresh(u, t, n->time);
    }
}

static int64_t integer_of(const crdi_dcp_unit* u, int variable)
{
    return *u->values[variable].slot.integer;
}

static void take_values(crdi_dcp_unit* u)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    uint32_t clamped = (uint32_t)integer_of(u, u->at.clamped);
    s->clamps = integer_of(u, u->at.clamps);
    if (u->bench) { // with what is kept to its limits here
        const crdi_dcp_bench_view v = crdi_dcp_bench_peer_view(u->bench);
        clamped = v.clamped;
        s->clamps = v.clamps;
        if (!s->why[0] && v.clamps > 0) { set_board_text(s->why, sizeof s->why, v.why); }
    }
    s->refused = integer_of(u, u->at.refused);
    for (int i = 0; i < s->quantity_count; i++) {
        crdi_board_quantity* q = &s->quantities[i];
        const crdi_dcp_gauges* g = &u->gauges[i];
        q->set =
            g->set.variable >= 0 && u->fed[g->set.variable] ? read_gauge(u, &g->set) : (double)NAN;
        q->measured = read_gauge(u, &g->measured);
        if (g->bit >= 0) {
            q->clamped = clamped & (0x10001u << g->bit);
        } else { // which bit it is, is not known
            q->clamped = clamped && (q->clamped || q->set < q->min || q->set > q->max);
        }
    }
}

void crdi_dcp_board_data(crdi_dcp_unit* u, const crd_dcp_slave_status* t, double now)
{
    crdi_board_state* s = crdi_board_edit(u->board);
    bool news = false;
    if (isnan(u->board_offset)) { return; }
    if (s->extension) {
        const int phase = (int)integer_of(u, u->at.status);
        const int reason = (int)integer_of(u, u->at.reason);
        news = phase != s->phase || (reason != s->reason && reason != CRD_DCP_BENCH_NO_REASON);
        set_phase(u, phase, now);
        if (reason != CRD_DCP_BENCH_NO_REASON) { s->reason = reason; }
    }
    if (!news && !(now - u->board_shown >= show_pause)) { return; }
    if (s->extension) { take_values(u); }
    take_link(u, t, now);
    show_board(u, now);
}
