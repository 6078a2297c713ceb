// Commands on the watcher's side: checked, worded for the record, and made ready down to the last
// byte, so that the cycle thread has only to put them into effect. What it hands back is freed
// here.
#include "master/live/live.h"
#include "shared/base_system.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char* crdi_live_error(const crdi_live* l)
{
    return crd_error_text(l->ctx);
}

// ---- what comes back ---------------------------------------------------------------------------

static void free_parts(crd_coupling* element, crd_element* description, crd_learn_client* learn)
{
    crd_learn_client_destroy(learn);
    crd_coupling_destroy(element);
    crd_element_destroy(description);
}

void crdi_live_free_returned(crdi_live* l)
{
    for (const crdi_leftover* x; l->leftovers && (x = crdi_ring_read(l->leftovers)) != NULL;) {
        free_parts(x->element, x->description, x->learn);
        if (x->refused >= 0) { l->places[x->refused].known = false; }
        crdi_ring_release(l->leftovers);
    }
}

void crdi_live_discard(crdi_live* l)
{
    for (const crdi_live_order* o; l->orders && (o = crdi_ring_read(l->orders)) != NULL;) {
        free_parts(o->element, o->description, NULL);
        crdi_ring_release(l->orders);
    }
}

// ---- names -------------------------------------------------------------------------------------

typedef struct {
    const crdi_live* l;
    bool settings;
    int at;
} names;

static const char* commands_next_name(void* user)
{
    names* n = user;
    const crdi_live_info* i = &n->l->info;
    if (n->settings) { return n->at < i->setting_count ? i->settings[n->at++].name : NULL; }
    return n->at < i->link_count ? i->links[n->at++].to : NULL;
}

static crd_status not_found(crdi_live* l, const char* name, bool settings)
{
    names n = {.l = l, .settings = settings};
    const char* near = crdi_nearest(name, commands_next_name, &n);
    return crdi_fail(
        l->ctx, CRD_E_NOT_FOUND, "%s '%s'%s%s%s",
        settings ? "nothing that can be set is called" : "no connection leads to an input",
        crdi_clip(name).text, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static crd_status commands_find_link(crdi_live* l, const char* name, int* out)
{
    for (int i = 0; i < l->info.link_count; i++) {
        if (strcmp(l->info.links[i].to, name) == 0) {
            *out = i;
            return CRD_OK;
        }
    }
    return not_found(l, name, false);
}

static crd_status find_setting(crdi_live* l, const char* name, int* out)
{
    for (int i = 0; i < l->info.setting_count; i++) {
        if (strcmp(l->info.settings[i].name, name) == 0) {
            *out = i;
            return CRD_OK;
        }
    }
    return not_found(l, name, true);
}

// ---- settings ----------------------------------------------------------------------------------

// Texts are read as in a description, but not by the unit, which is at work: this stands for it and
// knows of one variable what was found out before the run.
typedef struct {
    crd_unit base;
    const crdi_live_knob* knob;
} stand_in;

static bool stand_in_dimension(const crd_unit* u, int32_t variable, crd_dimension* out)
{
    const crdi_live_knob* k = ((const stand_in*)u)->knob;
    (void)variable;
    *out = k->dimension;
    return k->has_dimension;
}

static const char* stand_in_item_at(const crd_unit* u, int32_t variable, int32_t i, int64_t* value)
{
    const crdi_live_knob* k = ((const stand_in*)u)->knob;
    (void)variable;
    if (i >= k->item_count) { return NULL; }
    *value = k->items[i].value;
    return k->items[i].text;
}

static const crd_unit_name_ops stand_in_names = {.dimension = stand_in_dimension,
                                                 .item_at = stand_in_item_at};
static const crd_unit_ops stand_in_ops = {.names = &stand_in_names};

static void write_number(const crdi_live_knob* k, const crdi_live_setting* s, double real,
                         int64_t integer, char* out, size_t size)
{
    if (crd_type_kind(s->type) == CRD_REAL) {
        snprintf(out, size, "%.10g", real);
    } else if (s->type == CRD_BOOLEAN) {
        snprintf(out, size, "%s", integer ? "true" : "false");
    } else if (s->type == CRD_UINT64) {
        snprintf(out, size, "%llu", (unsigned long long)integer);
    } else {
        snprintf(out, size, "%lld", (long long)integer);
        for (int i = 0; i < k->item_count; i++) {
            if (k->items[i].value == integer) { snprintf(out, size, "%s", k->items[i].text); }
        }
    }
}

static crd_status commands_check_limits(crdi_live* l, const crdi_live_setting* s,
                                        const crdi_live_order* o)
{
    const double x = crd_type_kind(s->type) == CRD_REAL ? o->real
                     : s->type == CRD_UINT64            ? (double)(uint64_t)o->integer
                                                        : (double)o->integer;
    if (!isfinite(x)) {
        return crdi_fail(l->ctx, CRD_E_RANGE, "'%s' = %g, expected a finite number", s->name, x);
    }
    if (x < s->min || x > s->max) {
        return crdi_fail(l->ctx, CRD_E_RANGE,
                         "'%s' = %.10g is outside of its limits %.10g to %.10g", s->name, x, s->min,
                         s->max);
    }
    return CRD_OK;
}

static crd_status order_set(crdi_live* l, const crdi_live_command* c, const char* who,
                            crdi_live_order* o)
{
    crd_status st = CRD_OK;
    char was[64], is[64];
    CRD_TRY(find_setting(l, c->name ? c->name : "", &o->setting));
    const crdi_live_setting* s = &l->info.settings[o->setting];
    crdi_live_place* at = &l->places[o->setting];
    const crdi_live_knob* k = &l->knobs[at->knob];
    const crd_unit* u = l->m->plan->members[k->member].unit;
    stand_in unit = {
        .base = {.ops = &stand_in_ops, .ctx = l->ctx, .name = u->name, .info = u->info}, .knob = k};
    CRD_TRY(crdi_unit_parse_one(&unit.base, k->variable, c->text ? c->text : "", &o->real,
                                &o->integer));
    CRD_TRY(commands_check_limits(l, s, o));
    write_number(k, s, at->real, at->integer, was, sizeof was);
    write_number(k, s, o->real, o->integer, is, sizeof is);
    snprintf(o->text, sizeof o->text, "%s%s = %s%s%s%s", who, s->name, is,
             at->known ? " (was " : "", at->known ? was : "", at->known ? ")" : "");
    at->known = true;
    at->real = o->real;
    at->integer = o->integer;
fail:
    return st;
}

// ---- couplings ---------------------------------------------------------------------------------

static crd_status commands_check_element(crdi_live* l, const crd_element* e, const crdi_coupled* c)
{
    if (e->signal_count > 1) {
        return crdi_fail(l->ctx, CRD_E_RANGE, "the element is for %d signals, a connection has one",
                         e->signal_count);
    }
    if (e->learn_server[0]) {
        return crdi_fail(l->ctx, CRD_E_UNSUPPORTED,
                         "an element with a learning server ('%s') cannot come while the run goes",
                         crdi_clip(e->learn_server).text);
    }
    const crd_algorithm a = e->options.algorithm;
    if (a == CRD_ALGORITHM_COMMANDS || a == CRD_ALGORITHM_SMITH || e->options.commands > 0) {
        return crdi_fail(l->ctx, CRD_E_UNSUPPORTED,
                         "'%s' has to be told commands, which are chosen before the run: it cannot "
                         "come while the run goes; expected it in the description, there as a "
                         "shadow if another element is to be used first",
                         crdi_clip(e->label).text);
    }
    if (!isnan(e->step) && fabs(e->step - c->interval) > 1e-9 * c->interval) {
        return crdi_fail(l->ctx, CRD_E_RANGE,
                         "the element is made for a step of %g s, but its samples come every %g s",
                         e->step, c->interval);
    }
    return CRD_OK;
}

static crd_status read_element(crdi_live* l, const char* text, crd_element** out)
{
    const char* begin = text + strspn(text, " \t\r\n");
    return *begin == '{' ? crd_element_parse(l->ctx, begin, strlen(begin), "", 1, out)
                         : crd_element_of_name(l->ctx, begin, out);
}

static crd_status order_couple(crdi_live* l, const crdi_live_command* c, const char* who,
                               crdi_live_order* o)
{
    crd_status st = CRD_OK;
    crd_coupling_options opt;
    CRD_TRY(commands_find_link(l, c->name ? c->name : "", &o->link));
    const crdi_coupled* couple = l->wires[o->link].couple;
    const crdi_live_link* link = &l->info.links[o->link];
    if (!couple) {
        return crdi_fail(l->ctx, CRD_E_UNSUPPORTED,
                         "the connection %s -> %s has no coupling: give it one in the description, "
                         "then its element can be exchanged",
                         link->from, link->to);
    }
    CRD_TRY(read_element(l, c->text ? c->text : "", &o->description));
    CRD_TRY(commands_check_element(l, o->description, couple));
    CRD_TRY(crd_element_options(o->description, couple->interval, &opt));
    opt.start_time = l->m->plan->times.start;
    CRD_TRY(crd_coupling_create(l->ctx, &opt, &o->element));
    o->latency = o->description->latency_steps >= 0
                     ? o->description->latency_steps * couple->interval
                     : o->description->latency;
    char* label = l->wires[o->link].label;
    snprintf(o->text, sizeof o->text, "%scoupling of %s -> %s: %.39s (was %s)", who, link->from,
             link->to, o->description->label, label);
    snprintf(label, sizeof l->wires[o->link].label, "%.39s", o->description->label);
fail:
    return st;
}

// ---- faults ------------------------------------------------------------------------------------

static crd_status check_amount(crdi_live* l, const crdi_live_command* c, const char* to,
                               const crdi_coupled* couple)
{
    const char* name = crdi_fault_name(c->fault);
    if (!isnan(c->duration) && !(c->duration > 0 && isfinite(c->duration))) {
        return crdi_fail(l->ctx, CRD_E_RANGE, "fault at %s: duration = %g s, expected > 0", to,
                         c->duration);
    }
    if (c->fault == CRDI_FAULT_HOLD) { return CRD_OK; }
    if (!isfinite(c->value)) {
        return crdi_fail(l->ctx, CRD_E_RANGE, "fault '%s' at %s: value = %g, expected a number",
                         name, to, c->value);
    }
    if (c->fault == CRDI_FAULT_NOISE && c->value < 0) {
        return crdi_fail(l->ctx, CRD_E_RANGE,
                         "fault 'noise' at %s: value = %g, expected a standard deviation >= 0", to,
                         c->value);
    }
    if (c->fault == CRDI_FAULT_DROP && !(c->value >= 0 && c->value <= 1)) {
        return crdi_fail(l->ctx, CRD_E_RANGE,
                         "fault 'drop' at %s: value = %g, expected a part from 0 to 1", to,
                         c->value);
    }
    if (c->fault == CRDI_FAULT_DELAY && !(c->value >= 0 && c->value <= couple->delay_max)) {
        return crdi_fail(l->ctx, CRD_E_RANGE,
                         "fault 'delay' at %s: value = %g s, expected 0 to %g s", to, c->value,
                         couple->delay_max);
    }
    return CRD_OK;
}

static crd_status check_fault(crdi_live* l, const crdi_live_command* c, int link)
{
    const crdi_live_link* k = &l->info.links[link];
    const crdi_coupled* couple = l->wires[link].couple;
    if (c->fault <= CRDI_FAULT_NONE || c->fault >= CRDI_FAULT_KINDS) {
        return crdi_fail(l->ctx, CRD_E_RANGE,
                         "fault at %s: no such kind, expected hold, value, offset, gain, noise, "
                         "drop or delay",
                         k->to);
    }
    if (!k->can_fault) {
        return crdi_fail(l->ctx, CRD_E_UNSUPPORTED, "%s cannot have a fault: %s", k->to,
                         l->wires[link].link->routed
                             ? "its values go from slave to slave and do not pass here"
                             : "it is not a real number");
    }
    if ((c->fault == CRDI_FAULT_DROP || c->fault == CRDI_FAULT_DELAY) && !couple) {
        return crdi_fail(l->ctx, CRD_E_UNSUPPORTED,
                         "fault '%s' at %s: the connection has no coupling, so there are no "
                         "samples; expected hold, value, offset, gain or noise",
                         crdi_fault_name(c->fault), k->to);
    }
    if ((c->fault == CRDI_FAULT_DROP || c->fault == CRDI_FAULT_DELAY) && couple->script) {
        return crdi_fail(l->ctx, CRD_E_UNSUPPORTED,
                         "fault '%s' at %s: its samples come from a recording as they were",
                         crdi_fault_name(c->fault), k->to);
    }
    return check_amount(l, c, k->to, couple);
}

static crd_status order_fault(crdi_live* l, const crdi_live_command* c, const char* who,
                              crdi_live_order* o)
{
    crd_status st = CRD_OK;
    char amount[40] = "", length[48] = "until it is cleared";
    CRD_TRY(commands_find_link(l, c->name ? c->name : "", &o->link));
    CRD_TRY(check_fault(l, c, o->link));
    o->fault = c->fault;
    o->value = c->value;
    o->duration = c->duration;
    o->number = ++l->fault_number;
    if (c->fault != CRDI_FAULT_HOLD) {
        snprintf(amount, sizeof amount, " %.10g%s", c->value,
                 c->fault == CRDI_FAULT_DELAY ? " s" : "");
    }
    if (!isnan(c->duration)) { snprintf(length, sizeof length, "for %.10g s", c->duration); }
    snprintf(o->text, sizeof o->text, "%sfault at %s: %s%s %s", who, l->info.links[o->link].to,
             crdi_fault_name(c->fault), amount, length);
fail:
    return st;
}

static crd_status order_clear(crdi_live* l, const crdi_live_command* c, const char* who,
                              crdi_live_order* o)
{
    const char* name = c->name ? c->name : "";
    if (!name[0]) {
        snprintf(o->text, sizeof o->text, "%sall faults cleared", who);
        return CRD_OK;
    }
    const crd_status st = commands_find_link(l, name, &o->link);
    if (st >= 0) {
        snprintf(o->text, sizeof o->text, "%sfault at %s cleared", who, l->info.links[o->link].to);
    }
    return st;
}

// ---- seats -------------------------------------------------------------------------------------

void crdi_live_leave(crdi_live* l, int64_t page)
{
    for (int i = 0; i < l->info.seat_count; i++) {
        crdi_seat_leave(l->seats[i], page);
    }
}

static crd_status find_seat(crdi_live* l, const char* name, size_t length, crdi_seat** out)
{
    for (int i = 0; i < l->info.seat_count; i++) {
        const char* unit = l->seats[i]->name;
        if (strlen(unit) == length && memcmp(unit, name, length) == 0) {
            *out = l->seats[i];
            return CRD_OK;
        }
    }
    return crdi_fail(l->ctx, CRD_E_NOT_FOUND, "no driver is called '%.*s'",
                     length < 60 ? (int)length : 60, name);
}

static crd_status find_lever(crdi_live* l, const char* name, crdi_seat** seat, int* lever)
{
    const char* dot = strchr(name, '.');
    const crd_status st = find_seat(l, name, dot ? (size_t)(dot - name) : strlen(name), seat);
    if (st < 0) { return st; }
    const crd_driver_spec* d = (*seat)->driver;
    for (*lever = 0; dot && *lever < d->lever_count; ++*lever) {
        if (strcmp(d->levers[*lever].name, dot + 1) == 0) { return CRD_OK; }
    }
    return crdi_fail(l->ctx, CRD_E_NOT_FOUND, "'%s' is no lever of '%s', expected one as %s.%s",
                     crdi_clip(name).text, (*seat)->name, (*seat)->name, d->levers[0].name);
}

// Signs of life and pedals: too many to be marks; the levers are in the record themselves.
static crd_status drive(crdi_live* l, const crdi_live_command* c)
{
    crdi_seat* seat = NULL;
    const char* name = c->name ? c->name : "";
    const crd_status st = find_seat(l, name, strlen(name), &seat);
    return st < 0 ? st : crdi_seat_drive(seat, l->ctx, c->page, c->values, c->value_count);
}

// Seats are told at once; what was done becomes a mark of the record.
static crd_status order_seat(crdi_live* l, const crdi_live_command* c, const char* who,
                             crdi_live_order* o)
{
    crd_status st = CRD_OK;
    crdi_seat* seat = NULL;
    int lever = 0;
    const char* name = c->name ? c->name : "";
    o->action = CRDI_LIVE_MARK;
    if (c->action == CRDI_LIVE_GO) {
        CRD_TRY(find_lever(l, name, &seat, &lever));
        CRD_TRY(crdi_seat_go(seat, l->ctx, c->page, lever, c->value, c->rate));
        const crd_lever_spec* s = &seat->driver->levers[lever];
        char to[64] = "hold";
        if (!isnan(c->value)) { snprintf(to, sizeof to, "to %.10g", c->value); }
        char at[64] = "";
        if (!isnan(c->value) && !isnan(c->rate)) {
            snprintf(at, sizeof at, " at %.10g %.20s/s", c->rate, s->unit[0] ? s->unit : "1");
        }
        snprintf(o->text, sizeof o->text, "%s%s.%s %s%s%.20s%s", who, seat->name, s->name, to,
                 s->unit[0] && !isnan(c->value) ? " " : "", isnan(c->value) ? "" : s->unit, at);
        return CRD_OK;
    }
    CRD_TRY(find_seat(l, name, strlen(name), &seat));
    const bool take = c->action == CRDI_LIVE_TAKE;
    CRD_TRY(take ? crdi_seat_take(seat, l->ctx, c->page)
                 : crdi_seat_release(seat, l->ctx, c->page));
    snprintf(o->text, sizeof o->text, "%s%s %s", who, take ? "takes" : "gives back", seat->name);
fail:
    return st;
}

// ---- calibration -------------------------------------------------------------------------------

// What is known of the output: its unit, its range where it has limits, the calibration in use.
static crd_status find_sensor(crdi_live* l, const char* name, crdi_calibration* out, double* range,
                              crdi_calibration* in_use)
{
    *in_use = (crdi_calibration){.gain = 1};
    *range = NAN;
    for (int i = 0; i < l->board_count; i++) {
        const size_t n = strlen(l->board_units[i]);
        crdi_board_state b;
        if (strncmp(name, l->board_units[i], n) != 0 || name[n] != '.') { continue; }
        for (int k = 0; k < l->info.signal_count; k++) {
            const crdi_live_signal* s = &l->info.signals[k];
            if (strcmp(s->name, name) != 0 || crd_type_kind(s->type) != CRD_REAL) { continue; }
            snprintf(out->name, sizeof out->name, "%s", name + n + 1);
            snprintf(out->unit, sizeof out->unit, "%s", s->unit);
            crdi_board_read(l->boards[i], &b);
            const crdi_calibration* used = crdi_calibrations_find(&b.calibrations, out->name);
            if (used) { *in_use = *used; }
            for (int q = 0; q < b.quantity_count; q++) {
                const crdi_board_quantity* x = &b.quantities[q];
                if (strcmp(x->name, out->name) == 0) { *range = x->max - x->min; }
            }
            return CRD_OK;
        }
    }
    return crdi_fail(l->ctx, CRD_E_NOT_FOUND, "'%s' is no measured value of a bench",
                     crdi_clip(name).text);
}

// What was measured goes back through the calibration that the bench uses: the file has readings.
static crd_status order_calibrate(crdi_live* l, const crdi_live_command* c, const char* who,
                                  crdi_live_order* o)
{
    crd_status st = CRD_OK;
    double range = NAN;
    crdi_calibration made = {.gain = 1}, used;
    if (!l->opt.calibration) {
        return crdi_fail(l->ctx, CRD_E_UNSUPPORTED,
                         "there is no file for calibrations; expected cardan bench desk with "
                         "--calibration FILE");
    }
    CRD_TRY(find_sensor(l, c->name ? c->name : "", &made, &range, &used));
    for (int i = 0; i < 2; i++) {
        made.reference[i] = c->values[2 * i];
        made.reading[i] = (c->values[2 * i + 1] - used.offset) / used.gain;
    }
    crdi_live_copy_text(made.by, sizeof made.by, c->text ? c->text : "");
    crdi_utc(time(NULL), made.date);
    CRD_TRY(crdi_calibration_make(l->ctx, &made, range));
    CRD_TRY(crdi_calibrations_store(l->ctx, l->opt.calibration, &made));
    o->action = CRDI_LIVE_MARK;
    snprintf(
        o->text, sizeof o->text,
        "%.32s%.48s calibrated by %.48s: gain %.6g, offset %.6g (%.6g read %.6g, %.6g read %.6g)",
        who, c->name, made.by, made.gain, made.offset, made.reference[0], made.reading[0],
        made.reference[1], made.reading[1]);
fail:
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status order_rest(crdi_live* l, const crdi_live_command* c, const char* who,
                             crdi_live_order* o)
{
    const bool stands = c->action == CRDI_LIVE_PAUSE || c->action == CRDI_LIVE_STEP;
    if (stands && l->cannot_pause) {
        return crdi_fail(l->ctx, CRD_E_UNSUPPORTED,
                         "the run cannot stand still: unit '%s' runs in real time by itself",
                         l->restless);
    }
    if (c->action == CRDI_LIVE_STEP && c->count < 1) {
        return crdi_fail(l->ctx, CRD_E_RANGE, "steps: count = %lld, expected 1 or more",
                         (long long)c->count);
    }
    o->count = c->count;
    switch (c->action) {
    case CRDI_LIVE_START:
        snprintf(o->text, sizeof o->text, "%sstart", who);
        break;
    case CRDI_LIVE_PAUSE:
        snprintf(o->text, sizeof o->text, "%spause", who);
        break;
    case CRDI_LIVE_STEP:
        snprintf(o->text, sizeof o->text, "%s%lld step%s", who, (long long)c->count,
                 c->count == 1 ? "" : "s");
        break;
    case CRDI_LIVE_STOP:
        snprintf(o->text, sizeof o->text, "%sstop", who);
        break;
    case CRDI_LIVE_MARK:
        snprintf(o->text, sizeof o->text, "%s%.200s", who, c->text ? c->text : "");
        break;
    default:
        return crdi_fail(l->ctx, CRD_E_RANGE, "there is no command %d", (int)c->action);
    }
    return CRD_OK;
}

static crd_status check_state(crdi_live* l, const crdi_live_command* c)
{
    const crdi_live_state state =
        (crdi_live_state)atomic_load_explicit(&l->state_seen, memory_order_relaxed);
    if (l->opt.read_only) {
        return crdi_fail(l->ctx, CRD_E_STATE, "the run can be watched only: it is read-only");
    }
    if (state >= CRDI_LIVE_STOPPING || atomic_load(&l->closed)) {
        return crdi_fail(l->ctx, CRD_E_STATE, "the run has ended");
    }
    if (!crdi_live_is_ready(l) && c->action != CRDI_LIVE_STOP) {
        return crdi_fail(l->ctx, CRD_E_STATE, "the run has not been initialised yet");
    }
    return CRD_OK;
}

static crd_status make_order(crdi_live* l, const crdi_live_command* c, crdi_live_order* o)
{
    char who[80] = "";
    if (c->who && c->who[0]) { snprintf(who, sizeof who, "%.70s: ", c->who); }
    switch (c->action) {
    case CRDI_LIVE_SET:
        return order_set(l, c, who, o);
    case CRDI_LIVE_COUPLE:
        return order_couple(l, c, who, o);
    case CRDI_LIVE_FAULT:
        return order_fault(l, c, who, o);
    case CRDI_LIVE_CLEAR:
        return order_clear(l, c, who, o);
    case CRDI_LIVE_TAKE:
    case CRDI_LIVE_RELEASE:
    case CRDI_LIVE_GO:
        return order_seat(l, c, who, o);
    case CRDI_LIVE_CALIBRATE:
        return order_calibrate(l, c, who, o);
    default:
        return order_rest(l, c, who, o);
    }
}

// Before the run begins, and after its end.
static crd_status wish_to_prepare(crdi_live* l)
{
    const int state = atomic_load_explicit(&l->state_seen, memory_order_acquire);
    int wishes = atomic_load(&l->wishes);
    if (l->opt.read_only || !l->opt.ask) {
        return crdi_fail(l->ctx, CRD_E_STATE, "%s",
                         l->opt.read_only ? "the run can be watched only: it is read-only"
                                          : "this run prepares by itself");
    }
    if (state == CRDI_LIVE_ENDED) {
        atomic_store(&l->wishes, 2);
        return CRD_OK;
    }
    if (wishes == 0 && atomic_load(&l->alarm) == CRDI_CALM) {
        atomic_store(&l->wishes, 1);
        return CRD_OK;
    }
    return crdi_fail(l->ctx, CRD_E_STATE,
                     "the run has begun already; expected this before it, or "
                     "when all is at rest");
}

// Does not go the way of orders, which may be full and is looked at between two steps only.
static crd_status raise_alarm(crdi_live* l, const crdi_live_command* c)
{
    if (l->opt.read_only) {
        return crdi_fail(l->ctx, CRD_E_STATE, "the run can be watched only: it is read-only");
    }
    int was = atomic_load(&l->alarm);
    if (was == CRDI_CALM) {
        char text[sizeof l->alarmed_by];
        const bool named = c->who && c->who[0];
        snprintf(text, sizeof text, "emergency stop%s%.70s", named ? " by " : "",
                 named ? c->who : "");
        crdi_live_copy_text(l->alarmed_by, sizeof l->alarmed_by, text);
        if (atomic_compare_exchange_strong(&l->alarm, &was, CRDI_ALARMED)) {
            __atomic_store_n(&l->m->life.emergency, true, __ATOMIC_RELEASE);
            return CRD_OK;
        }
    }
    return was == CRDI_ALARMED ? CRD_OK : crdi_fail(l->ctx, CRD_E_STATE, "the run has ended");
}

crd_status crdi_live_send(crdi_live* l, const crdi_live_command* c)
{
    crd_status st = CRD_OK;
    crdi_live_order order = {
        .action = c->action, .setting = -1, .link = -1, .duration = (double)NAN};
    if (c->action == CRDI_LIVE_EMERGENCY) { return raise_alarm(l, c); }
    if (c->action == CRDI_LIVE_PREPARE) { return wish_to_prepare(l); }
    crdi_live_free_returned(l);
    CRD_TRY(check_state(l, c));
    if (c->action == CRDI_LIVE_DRIVE) { return drive(l, c); } // whatever else waits
    crdi_live_order* to = crdi_ring_write(l->orders);
    if (!to) {
        return crdi_fail(l->ctx, CRD_E_STATE, "%d commands wait already, this one is too many",
                         CRDI_LIVE_ORDERS);
    }
    CRD_TRY(make_order(l, c, &order));
    crdi_live_copy_text(to->text, sizeof to->text, order.text);
    memcpy(order.text, to->text, sizeof order.text);
    *to = order;
    crdi_ring_commit(l->orders);
    return CRD_OK;
fail:
    free_parts(order.element, order.description, NULL);
    return st;
}
