// Test benches as pages see them: from a board to what happened to the bench, and that as JSON.
#include "web/put.h"
#include "web/web.h"

#include <math.h>

#include "cardan/dcp.h"
#include "cardan/dcp_bench.h"

// ---- what happened -----------------------------------------------------------------------------

static int place_of_state(int state)
{
    static const int places[CRD_DCP_STATE_COUNT] = {
        [CRD_DCP_ALIVE] = -1,
        [CRD_DCP_CONFIGURATION] = CRDI_WEB_REGISTERED,
        [CRD_DCP_PREPARING] = CRDI_WEB_REGISTERED,
        [CRD_DCP_PREPARED] = CRDI_WEB_PREPARED,
        [CRD_DCP_CONFIGURING] = CRDI_WEB_CONDITIONING,
        [CRD_DCP_CONFIGURED] = CRDI_WEB_CONDITIONED,
        [CRD_DCP_INITIALIZING] = CRDI_WEB_CONDITIONED,
        [CRD_DCP_INITIALIZED] = CRDI_WEB_CONDITIONED,
        [CRD_DCP_SENDING_I] = CRDI_WEB_CONDITIONED,
        [CRD_DCP_SYNCHRONIZING] = CRDI_WEB_CONDITIONED,
        [CRD_DCP_SYNCHRONIZED] = CRDI_WEB_CONDITIONED,
        [CRD_DCP_RUNNING] = CRDI_WEB_RUNNING,
        [CRD_DCP_COMPUTING] = CRDI_WEB_RUNNING,
        [CRD_DCP_COMPUTED] = CRDI_WEB_RUNNING,
        [CRD_DCP_SENDING_D] = CRDI_WEB_RUNNING,
        [CRD_DCP_STOPPING] = CRDI_WEB_STOPPING,
        [CRD_DCP_STOPPED] = CRDI_WEB_SAFE,
        [CRD_DCP_ERRORHANDLING] = CRDI_WEB_STOPPING,
        [CRD_DCP_ERRORRESOLVED] = CRDI_WEB_SAFE,
    };
    return state >= 0 && state < CRD_DCP_STATE_COUNT ? places[state] : -1;
}

static int place_of_phase(int phase)
{
    static const int places[] = {
        [CRD_DCP_BENCH_IDLE] = -1,
        [CRD_DCP_BENCH_PREPARATION] = CRDI_WEB_REGISTERED,
        [CRD_DCP_BENCH_PREPARED] = CRDI_WEB_PREPARED,
        [CRD_DCP_BENCH_CONDITIONING] = CRDI_WEB_CONDITIONING,
        [CRD_DCP_BENCH_CONDITIONED] = CRDI_WEB_CONDITIONED,
        [CRD_DCP_BENCH_RUN] = CRDI_WEB_RUNNING,
        [CRD_DCP_BENCH_SPEED_DOWN] = CRDI_WEB_STOPPING,
        [CRD_DCP_BENCH_VOLTAGE_DOWN] = CRDI_WEB_STOPPING,
        [CRD_DCP_BENCH_COOL_DOWN] = CRDI_WEB_STOPPING,
        [CRD_DCP_BENCH_STAND_DOWN] = CRDI_WEB_STOPPING,
        [CRD_DCP_BENCH_SAFE] = CRDI_WEB_SAFE,
    };
    return phase >= 0 && phase <= CRD_DCP_BENCH_SAFE ? places[phase] : -1;
}

static void begin_story(crdi_web_story* s)
{
    s->place = -1;
    s->heat_first = s->heat_now = NAN;
    for (int i = 0; i < CRDI_WEB_PLACES; i++) {
        s->entered[i] = NAN;
    }
    for (int i = 0; i < CRDI_WEB_STOP_STEPS; i++) {
        s->stop[i] = NAN;
    }
}

// Only forward: what the data say comes a little behind what the answers say.
static void enter(crdi_web_story* s, int place, double time)
{
    if (place < 0 || place <= s->place) { return; }
    s->place = place;
    s->entered[place] = time;
}

// Short phases may not be seen: a later one says that those before it are done.
static void note_stop(crdi_web_story* s, int phase, double time)
{
    const int done =
        phase == CRD_DCP_BENCH_SAFE ? CRDI_WEB_STOP_STEPS : phase - CRD_DCP_BENCH_SPEED_DOWN + 1;
    for (int i = 0; i < done; i++) {
        if (isnan(s->stop[i])) { s->stop[i] = time; }
    }
}

static void note_heat(crdi_web_story* s, double kelvin)
{
    if (isnan(s->heat_first) || kelvin > s->heat_first) { s->heat_first = kelvin; }
    s->heat_now = kelvin;
}

void crdi_web_tell_story(const crdi_board_state* b, crdi_web_story* out)
{
    begin_story(out);
    for (int i = 0; i < b->moment_count; i++) {
        const crdi_board_moment* m = &b->moments[i];
        const int what = m->value >= -1 && m->value < 100 ? (int)m->value : -1;
        if (m->what == CRDI_BOARD_STATE) {
            // Registered once more: a new session.
            if (what == CRD_DCP_CONFIGURATION && out->place > CRDI_WEB_REGISTERED) {
                begin_story(out);
            }
            enter(out, place_of_state(what), m->time);
        } else if (m->what == CRDI_BOARD_PHASE) {
            enter(out, place_of_phase(what), m->time);
            if (what >= CRD_DCP_BENCH_SPEED_DOWN && what <= CRD_DCP_BENCH_SAFE) {
                note_stop(out, what, m->time);
            }
        } else if (m->what == CRDI_BOARD_HEAT) {
            note_heat(out, m->value);
        }
    }
}

// ---- limits ------------------------------------------------------------------------------------

const char* crdi_web_margin(const crdi_board_quantity* q, double* distance, double* percent)
{
    const double x = isnan(q->measured) ? q->set : q->measured, range = q->max - q->min;
    double up = q->max - x, down = x - q->min;
    *distance = *percent = NAN;
    if (isnan(x) || (isinf(up) && isinf(down))) { return ""; }
    // Zero is where machines rest: it is no limit to be near to, only one to be beyond.
    if (q->min == 0 && isfinite(up) && down > -0.01 * range) { down = INFINITY; }
    if (q->max == 0 && isfinite(down) && up > -0.01 * range) { up = INFINITY; }
    *distance = fmin(up, down);
    if (isfinite(range) && range > 0) { *percent = 100 * *distance / range; }
    return up <= down ? "max" : "min";
}

// ---- as JSON -----------------------------------------------------------------------------------

static void put_times(crd_text* t, const char* name, const double* times, int count, double zero)
{
    begin(t, name, "[");
    for (int i = 0; i < count; i++) {
        if (i) { crdi_text_put(t, ",", 1); }
        crdi_text_json_number(t, times[i] - zero);
    }
    finish(t, "]");
}

static void put_limits(crd_text* t, const crdi_board_state* b)
{
    begin(t, "limits", "[");
    for (int i = 0; i < b->quantity_count && i < CRDI_BOARD_QUANTITIES; i++) {
        const crdi_board_quantity* q = &b->quantities[i];
        double distance, percent;
        const char* side = crdi_web_margin(q, &distance, &percent);
        item(t, i);
        text(t, "name", q->name);
        text(t, "unit", q->unit);
        number(t, "min", q->min);
        number(t, "max", q->max);
        number(t, "set", q->set);
        number(t, "measured", q->measured);
        number(t, "margin", percent);
        number(t, "distance", distance);
        text(t, "side", side);
        truth(t, "clamped", q->clamped);
        finish(t, "}");
    }
    finish(t, "]");
}

static void put_standby(crd_text* t, const crdi_board_state* b)
{
    static const char* const sources[] = {"bench", "model", "coming"};
    const bool known = b->source >= CRDI_BOARD_BENCH && b->source <= CRDI_BOARD_COMING;
    if (!b->has_standby) {
        begin(t, "standby", "null");
        return;
    }
    begin(t, "standby", "{");
    text(t, "source", known ? sources[b->source] : "");
    number(t, "weight", b->weight);
    integer(t, "takeovers", b->takeovers);
    integer(t, "returns", b->returns);
    text(t, "text", b->standby);
    finish(t, "}");
}

static void put_story(crd_text* t, const crdi_board_state* b)
{
    crdi_web_story s;
    crdi_web_tell_story(b, &s);
    integer(t, "place", s.place);
    put_times(t, "entered", s.entered, CRDI_WEB_PLACES, 0);
    if (isnan(s.stop[0])) {
        begin(t, "stop", "null");
    } else {
        put_times(t, "stop", s.stop, CRDI_WEB_STOP_STEPS, s.stop[0]);
    }
    if (isnan(s.heat_first)) {
        begin(t, "heat", "null");
    } else {
        begin(t, "heat", "{");
        number(t, "first", s.heat_first);
        number(t, "now", s.heat_now);
        finish(t, "}");
    }
}

void crdi_web_bench(crd_text* t, const char* unit, const crdi_board_state* b)
{
    crdi_text_add(t, "{");
    text(t, "unit", unit);
    number(t, "now", b->now);
    integer(t, "state", b->state);
    text(t, "state_name", crd_dcp_state_name(b->state));
    truth(t, "extension", b->extension);
    integer(t, "phase", b->extension ? b->phase : -1);
    text(t, "phase_name", b->extension ? crd_dcp_bench_phase_name(b->phase) : "");
    integer(t, "reason", b->extension ? b->reason : 0);
    text(t, "reason_name", b->extension && b->reason ? crd_dcp_bench_reason_name(b->reason) : "");
    truth(t, "lost", b->lost);
    number(t, "heard", b->heard);
    integer(t, "clamps", b->clamps);
    integer(t, "refused", b->refused);
    integer(t, "gap", b->gap);
    number(t, "round_trip", b->round_trip);
    number(t, "round_trip_max", b->round_trip_max);
    text(t, "missing", b->missing);
    text(t, "progress", b->progress);
    text(t, "why", b->why);
    text(t, "stopping", b->stopping);
    put_limits(t, b);
    put_standby(t, b);
    put_story(t, b);
    finish(t, "}");
}
