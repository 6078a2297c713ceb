// The end of a wave pair inside a DCP slave. An inner step:
//   a packet, if one has come -> the port says what the input gets -> the plant steps -> the port
//   books what was really done
// A packet leaves whenever the slave sends its outputs: the macro step is the master's business.
#include "shared/base.h"
#include "shared/dcp.h"
#include "shared/dcp_bench.h"
#include "shared/unit_wave.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- its variables -----------------------------------------------------------------------------

static const struct {
    const char *suffix, *description;
} parameters[CRDI_WAVE_FAR] = {
    [CRDI_WAVE_SIDE] = {".pair.side",
                        "wave port at this input: 0 off, 1 the unit owns the flow and "
                        "gets an effort, 2 it owns the effort and gets a flow"},
    [CRDI_WAVE_OWN_GAIN] = {".pair.own_gain", "effort or flow of the port (SI) per output; e f > 0 "
                                              "is power out of a unit that owns the flow and into "
                                              "one that owns the effort"},
    [CRDI_WAVE_IN_GAIN] = {".pair.in_gain", "input per flow or effort of the port (SI)"},
    [CRDI_WAVE_SET_IMPEDANCE] = {".pair.set_impedance",
                                 "effort per flow, the same on both sides; 0: learned"},
};

static const struct {
    const char *far, *own, *description;
} numbers[CRD_PAIR_NUMBERS] = {
    {".pair.far.run", ".pair.run", "life of the sender"},
    {".pair.far.number", ".pair.number", "packet in it, from 1 on"},
    {".pair.far.time", ".pair.time", "sender's clock at the end of its macro step, s"},
    {".pair.far.effort", ".pair.effort", "effort over the macro step, SI"},
    {".pair.far.flow", ".pair.flow", "flow over the macro step, SI"},
    {".pair.far.effort_sum", ".pair.effort_sum", "integral of the effort since the start"},
    {".pair.far.flow_sum", ".pair.flow_sum", "integral of the flow since the start"},
    {".pair.far.granted", ".pair.granted", "energy granted to the other side since the start, J"},
    {".pair.far.impedance", ".pair.impedance", "impedance in use, effort per flow"},
    {".pair.far.echo", ".pair.echo", "receiver's clock when it sent what is in use here, s"},
};

static const struct {
    const char *suffix, *description;
} accounts[] = {
    {".pair.tank", "energy in the tank of the port, J"},
    {".pair.absorbed", "energy that the unit gave to the port so far, J"},
    {".pair.spent", "energy that the unit got from the port so far, J"},
    {".pair.received", "energy granted by the other side so far, J"},
    {".pair.dumped", "energy thrown away so far, J"},
    {".pair.debt", "largest debt of the tank so far, J"},
    {".pair.limited", "inner steps whose action was cut for want of energy"},
    {".pair.inner", "inner step, s"},
    {".pair.agreement", "signs: -1 wrong to 1 right, 0 not known"},
};

const char* crdi_wave_suffix(int variable)
{
    return variable < CRDI_WAVE_FAR       ? parameters[variable].suffix
           : variable < CRDI_WAVE_OWN     ? numbers[variable - CRDI_WAVE_FAR].far
           : variable < CRDI_WAVE_ACCOUNT ? numbers[variable - CRDI_WAVE_OWN].own
                                          : accounts[variable - CRDI_WAVE_ACCOUNT].suffix;
}

static const char* wave_describe(int variable)
{
    return variable < CRDI_WAVE_FAR       ? parameters[variable].description
           : variable < CRDI_WAVE_OWN     ? numbers[variable - CRDI_WAVE_FAR].description
           : variable < CRDI_WAVE_ACCOUNT ? numbers[variable - CRDI_WAVE_OWN].description
                                          : accounts[variable - CRDI_WAVE_ACCOUNT].description;
}

static crd_status make_variable(crd_dcp_description* d, const crdi_wave* w, int k, uint64_t vr,
                                crd_dcp_variable* v)
{
    *v = crd_dcp_variable_defaults();
    v->name = crdi_arena_format(&d->arena, "%s%s", w->name, crdi_wave_suffix(k));
    v->description = wave_describe(k);
    v->vr = vr;
    v->causality = k < CRDI_WAVE_FAR ? CRD_PARAMETER : k < CRDI_WAVE_OWN ? CRD_INPUT : CRD_OUTPUT;
    v->variability = k < CRDI_WAVE_FAR ? CRD_FIXED : CRD_CONTINUOUS;
    v->type = CRD_DCP_FLOAT64;
    v->start = k < CRDI_WAVE_FAR ? crdi_arena_format(&d->arena, "%.17g", w->usual[k]) : "0";
    if (v->causality == CRD_OUTPUT) { // as often as the values beside it
        v->fixed_steps = false;
        v->default_steps = v->min_steps = 1;
        v->max_steps = 1000000;
    }
    return v->name && v->start ? CRD_OK : CRD_E_MEMORY;
}

static bool wave_dimension(const crd_dcp_description* d, int variable, crd_dimension* out)
{
    const crd_dcp_variable* v = &d->variables[variable];
    for (int i = 0; v->unit[0] && i < d->unit_count; i++) {
        const crd_dcp_unit* u = &d->units[i];
        if (strcmp(u->name, v->unit) != 0 || !u->has_base) { continue; }
        const int8_t* e = u->exponents;
        *out =
            (crd_dimension){e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7], u->factor, u->offset};
        return true;
    }
    return v->unit[0] && crd_dimension_parse(v->unit, out);
}

// Where nobody says anything: numbers in SI, input times output is power into the unit.
static void find_usual(const crd_dcp_description* d, crdi_wave* w)
{
    crd_dimension in = {.factor = 1}, own = {.factor = 1};
    (void)wave_dimension(d, w->input, &in);
    (void)wave_dimension(d, w->own, &own);
    w->usual[CRDI_WAVE_OWN_GAIN] = own.factor;
    w->usual[CRDI_WAVE_IN_GAIN] = 1 / in.factor;
}

static crd_status find_end(const crd_dcp_description* d, const char* text, const char* name,
                           uint8_t causality, int* out)
{
    for (int i = 0; i < d->variable_count; i++) {
        const crd_dcp_variable* v = &d->variables[i];
        if (v->causality == causality && v->rank == 0 && v->type == CRD_DCP_FLOAT64 &&
            strcmp(v->name, name) == 0) {
            *out = i;
            return CRD_OK;
        }
    }
    return crdi_fail(d->ctx, CRD_E_NOT_FOUND,
                     "pair '%s': the slave has no %s '%s' of one float64, expected INPUT:OUTPUT, "
                     "such as torque:speed",
                     crdi_clip(text).text, causality == CRD_INPUT ? "input" : "output",
                     crdi_clip(name).text);
}

static crd_status find_ends(crd_dcp_description* d, const char* text, crdi_wave* w)
{
    crd_status st = CRD_OK;
    const char* colon = strchr(text, ':');
    if (!colon || colon == text || !colon[1]) {
        return crdi_fail(d->ctx, CRD_E_RANGE,
                         "pair '%s', expected INPUT:OUTPUT, such as torque:speed",
                         crdi_clip(text).text);
    }
    w->name = crdi_arena_text(&d->arena, text, (size_t)(colon - text));
    if (!w->name) { return CRD_E_MEMORY; }
    CRD_TRY(find_end(d, text, w->name, CRD_INPUT, &w->input));
    CRD_TRY(find_end(d, text, colon + 1, CRD_OUTPUT, &w->own));
    for (int i = 0; i < d->variable_count; i++) {
        const char* name = d->variables[i].name;
        const size_t n = strlen(w->name);
        if (strncmp(name, w->name, n) == 0 && strncmp(name + n, ".pair.", 6) == 0) {
            return crdi_fail(d->ctx, CRD_E_RANGE,
                             "pair '%s': there is a variable %s already, expected one port for an "
                             "input",
                             crdi_clip(text).text, name);
        }
    }
fail:
    return st;
}

crd_status crdi_wave_declare(crd_dcp_description* d, const char* text, uint32_t run, crdi_wave* w)
{
    crd_status st = CRD_OK;
    crdi_wave made = {.ctx = d->ctx, .first = d->variable_count, .run = run};
    const size_t count = (size_t)d->variable_count;
    uint64_t vr = 1;
    CRD_TRY(find_ends(d, text, &made));
    find_usual(d, &made);
    crd_dcp_variable* all =
        crdi_arena_new(&d->arena, count + CRDI_WAVE_VARIABLES, sizeof *d->variables);
    CRD_TRY(all ? CRD_OK : CRD_E_MEMORY);
    memcpy(all, d->variables, count * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        if (all[i].vr >= vr) { vr = all[i].vr + 1; }
    }
    for (int k = 0; k < CRDI_WAVE_VARIABLES; k++) {
        CRD_TRY(make_variable(d, &made, k, vr + (uint64_t)k, &all[count + (size_t)k]));
    }
    d->variables = all;
    d->variable_count += CRDI_WAVE_VARIABLES;
    d->uuid[15] ^= 0x5A; // another slave than the one without it
    const crd_dcp_finding* findings = NULL;
    int found = 0;
    CRD_TRY(crd_dcp_validate(d, &findings, &found));
    memcpy(made.given, made.usual, sizeof made.given);
    *w = made;
fail:
    return st;
}

// ---- its life ----------------------------------------------------------------------------------

// The first inner step shows how long it is; the port goes with the master's macro step.
static crd_status begin_life(crdi_wave* w)
{
    const double side = w->given[CRDI_WAVE_SIDE];
    w->far = w->packet = (crd_pair_packet){0};
    w->plain = NAN;
    w->time = 0;
    w->unsent = 0;
    w->acting = w->first_packet = false;
    w->answer = (crdi_pair_answer){0};
    w->on = side != 0;
    if (!w->on) { return CRD_OK; }
    for (int k = CRDI_WAVE_OWN_GAIN; k <= CRDI_WAVE_IN_GAIN; k++) {
        if (isfinite(w->given[k]) && w->given[k] != 0) { continue; }
        return crdi_fail(w->ctx, CRD_E_RANGE, "%s%s = %g, expected a number other than 0", w->name,
                         parameters[k].suffix, w->given[k]);
    }
    if (side != 1 && side != 2) {
        return crdi_fail(w->ctx, CRD_E_RANGE, "%s.pair.side = %g, expected 0, 1 or 2", w->name,
                         side);
    }
    crd_pair_options o = crd_pair_defaults(side == 1 ? CRD_PAIR_OWNS_FLOW : CRD_PAIR_OWNS_EFFORT);
    o.impedance = w->given[CRDI_WAVE_SET_IMPEDANCE];
    o.step = o.macro = 1e-3; // until the first one
    o.run = w->run++;
    const crd_status st = crd_pair_init(w->ctx, &w->pair, &o);
    return st < 0 ? crdi_fail_in(w->ctx, st, "%s", w->name) : st;
}

static crd_dcp_outcome wave_enter(void* user, crd_dcp_state state, double now)
{
    crdi_wave* w = user;
    if (state == CRD_DCP_CONFIGURATION) { memcpy(w->given, w->usual, sizeof w->given); }
    if (state == CRD_DCP_PREPARING && begin_life(w) < 0) {
        crdi_log(w->ctx, CRD_LOG_ERROR, "%s", crd_error_text(w->ctx));
        w->on = false;
        return CRD_DCP_FAILED;
    }
    return w->inner.enter ? w->inner.enter(w->inner.user, state, now) : CRD_DCP_DONE;
}

// ---- values ------------------------------------------------------------------------------------

static crd_dcp_outcome wave_set(void* user, int variable, const crd_dcp_slot* value)
{
    crdi_wave* w = user;
    const int k = variable - w->first;
    if (k < 0 || k >= CRDI_WAVE_VARIABLES) {
        if (variable == w->input && w->on) { // the port's from here on
            w->plain = *value->real;
            return CRD_DCP_DONE;
        }
        return w->inner.set(w->inner.user, variable, value);
    }
    if (k < CRDI_WAVE_FAR) {
        w->given[k] = *value->real;
    } else if (k < CRDI_WAVE_OWN) {
        ((double*)&w->far)[k - CRDI_WAVE_FAR] = *value->real;
    }
    return CRD_DCP_DONE;
}

static double account_of(const crdi_wave* w, int k)
{
    const crd_pair_state s = crd_pair_get_state(&w->pair, w->time);
    const crdi_wave_account a = {.tank = s.tank,
                                 .absorbed = s.absorbed,
                                 .spent = s.spent,
                                 .received = s.received,
                                 .dumped = s.dumped,
                                 .debt = s.debt,
                                 .limited = (double)s.limited,
                                 .inner = w->pair.opt.step,
                                 .agreement = crdi_pair_answer_of(&w->answer)};
    return ((const double*)&a)[k];
}

// The first value of a packet that is asked for ends the macro step.
static void make_packet(crdi_wave* w)
{
    if (w->unsent == 0) { return; }
    w->pair.opt.macro = (double)w->unsent * w->pair.opt.step;
    w->unsent = 0;
    crd_pair_send(&w->pair, w->time, &w->packet);
}

static crd_dcp_outcome wave_get(void* user, int variable, crd_dcp_slot* value)
{
    crdi_wave* w = user;
    const int k = variable - w->first;
    if (k < CRDI_WAVE_OWN || k >= CRDI_WAVE_VARIABLES) {
        return w->inner.get(w->inner.user, variable, value);
    }
    if (!w->on) {
        *value->real = 0;
    } else if (k < CRDI_WAVE_ACCOUNT) {
        make_packet(w);
        *value->real = ((const double*)&w->packet)[k - CRDI_WAVE_OWN];
    } else {
        *value->real = account_of(w, k - CRDI_WAVE_ACCOUNT);
    }
    return CRD_DCP_DONE;
}

// ---- inner steps -------------------------------------------------------------------------------

// Of several that have come since the last inner step the newest is there, which has all in it.
static bool take_packet(crdi_wave* w)
{
    if (!(w->far.number >= 1)) { return false; } // nothing yet
    if (w->far.number == w->pair.far_number && w->far.run == w->pair.far_run) { return false; }
    const bool taken = crd_pair_receive(&w->pair, &w->far, w->time) == CRD_PAIR_TAKEN;
    if (taken && !w->first_packet) {
        w->first_packet = true;
        crd_pair_predict(&w->pair, NAN, NAN);
    }
    return taken;
}

// Until a packet has come, the other side goes on as the plain values of the start say.
static void assume_far(crdi_wave* w, double own)
{
    if (w->first_packet || w->time > 0 || isnan(w->plain)) { return; }
    const double far = w->plain / w->given[CRDI_WAVE_IN_GAIN];
    const bool flow = w->pair.opt.side == CRD_PAIR_OWNS_FLOW;
    crd_pair_predict(&w->pair, flow ? far : own, flow ? own : far);
}

// What the input gets over an inner step of `h` that begins with this output.
static double act(crdi_wave* w, double output, double h)
{
    const double own = w->given[CRDI_WAVE_OWN_GAIN] * output;
    w->pair.opt.step = h;
    if (w->pair.opt.macro < h) { w->pair.opt.macro = h; }
    assume_far(w, own);
    w->begin = output;
    w->acting = true;
    const double input = w->given[CRDI_WAVE_IN_GAIN] * crd_pair_act(&w->pair, own, w->time);
    return isfinite(input) ? input : 0; // of gains that are no physics
}

// It is over: `output` at its end, `input` that was really there on the mean.
static void done(crdi_wave* w, double output, double input, double h)
{
    const double mean = w->given[CRDI_WAVE_OWN_GAIN] * 0.5 * (w->begin + output);
    crd_pair_done_as(&w->pair, input / w->given[CRDI_WAVE_IN_GAIN], mean);
    crdi_pair_answer_note(&w->answer, &w->pair, mean);
    w->time += h;
    w->unsent++;
}

static crd_dcp_outcome output_of(crdi_wave* w, double* out)
{
    crd_dcp_slot slot = {.type = CRD_DCP_FLOAT64, .count = 1, .real = out};
    *out = NAN;
    return w->inner.get(w->inner.user, w->own, &slot);
}

static crd_dcp_outcome make_inner_step(crdi_wave* w, int64_t steps_done, double h)
{
    crd_dcp_outcome outcome;
    double output = NAN;
    (void)take_packet(w);
    if ((outcome = output_of(w, &output)) != CRD_DCP_DONE) { return outcome; }
    double input = act(w, output, h);
    const crd_dcp_slot slot = {.type = CRD_DCP_FLOAT64, .count = 1, .real = &input};
    if ((outcome = w->inner.set(w->inner.user, w->input, &slot)) != CRD_DCP_DONE) {
        return outcome;
    }
    // An output that follows the input at once: its jump belongs to the mean.
    if ((outcome = output_of(w, &w->begin)) != CRD_DCP_DONE) { return outcome; }
    if ((outcome = w->inner.step(w->inner.user, steps_done, 1, h)) != CRD_DCP_DONE) {
        return outcome;
    }
    if ((outcome = output_of(w, &output)) != CRD_DCP_DONE) { return outcome; }
    done(w, output, input, h);
    w->time = (double)(steps_done + 1) * h; // from the count: a sum would drift
    return CRD_DCP_DONE;
}

static crd_dcp_outcome wave_step(void* user, int64_t steps_done, uint32_t steps, double resolution)
{
    crdi_wave* w = user;
    if (!w->on || w->at_bench) {
        return w->inner.step(w->inner.user, steps_done, steps, resolution);
    }
    crd_dcp_outcome outcome = CRD_DCP_DONE;
    for (uint32_t i = 0; i < steps && outcome == CRD_DCP_DONE; i++) {
        outcome = make_inner_step(w, steps_done + i, resolution);
    }
    return outcome;
}

void crdi_wave_turn(crdi_wave* w, crd_dcp_bench* bench, int quantity, double seconds, double own,
                    double acted)
{
    if (!w->on) { return; }
    const bool runs = crd_dcp_bench_get_state(bench).phase == CRD_DCP_BENCH_RUN;
    if (w->acting) { done(w, own, 0.5 * (w->acted + acted), seconds); }
    const bool data = take_packet(w);
    w->acted = acted;
    w->acting = false;
    crdi_bench_follow(bench, quantity, runs ? act(w, own, seconds) : NAN, data);
}

// ---- as a plant --------------------------------------------------------------------------------

static double wave_next(void* user)
{
    crdi_wave* w = user;
    return w->inner.next(w->inner.user);
}

static void wave_advance(void* user, double now)
{
    crdi_wave* w = user;
    w->inner.advance(w->inner.user, now);
}

crd_dcp_plant crdi_wave_plant(crdi_wave* w, const crd_dcp_plant* inner, bool at_bench)
{
    w->inner = *inner;
    w->at_bench = at_bench;
    return (crd_dcp_plant){.user = w,
                           .enter = wave_enter,
                           .step = wave_step,
                           .set = wave_set,
                           .get = wave_get,
                           .next = inner->next ? wave_next : NULL,
                           .advance = inner->advance ? wave_advance : NULL};
}
