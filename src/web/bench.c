// Test benches as pages see them: from a board to what happened to the bench, and that as JSON.
#include "web/fields.h"
#include "web/web.h"

#include <math.h>

#include "cardan/dcp.h"
#include "shared/base_values.h"
#include "shared/dcp_bench.h"

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
        [CRD_DCP_BENCH_ARMED] = CRDI_WEB_CONDITIONED,
    };
    return phase >= 0 && phase <= CRD_DCP_BENCH_ARMED ? places[phase] : -1;
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

#define QUANTITY(member) CRDI_WEB_FIELD(crdi_board_quantity, member)
#define BOARD(member) CRDI_WEB_FIELD(crdi_board_state, member)

static void bench_put_times(crdi_json_writer* w, const char* name, const double* times, int count,
                            double zero)
{
    crdi_json_begin_list(w, name);
    for (int i = 0; i < count; i++) {
        crdi_json_put_number(w, NULL, times[i] - zero);
    }
    crdi_json_end(w);
}

static void bench_put_limits(crdi_json_writer* w, const crdi_board_state* b)
{
    static const crdi_web_field fields[] = {
        QUANTITY(name), QUANTITY(unit),     QUANTITY(min), QUANTITY(max),
        QUANTITY(set),  QUANTITY(measured), {0},
    };
    crdi_json_begin_list(w, "limits");
    for (int i = 0; i < b->quantity_count && i < CRDI_BOARD_QUANTITIES; i++) {
        const crdi_board_quantity* q = &b->quantities[i];
        double distance, percent;
        const char* side = crdi_web_margin(q, &distance, &percent);
        crdi_json_begin_object(w, NULL);
        crdi_web_put_fields(w, q, fields);
        crdi_json_put(w, REAL("margin", percent), REAL("distance", distance), TEXT("side", side),
                      BOOL("clamped", q->clamped));
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

static void put_standby(crdi_json_writer* w, const crdi_board_state* b)
{
    static const char* const sources[] = {"bench", "model", "coming"};
    static const crdi_web_field fields[] = {
        BOARD(weight),
        BOARD(takeovers),
        BOARD(returns),
        CRDI_WEB_FIELD_AS(crdi_board_state, standby, "text", CRDI_WEB_CHARS),
        {0},
    };
    const bool known = b->source >= CRDI_BOARD_BENCH && b->source <= CRDI_BOARD_COMING;
    if (!crdi_json_begin_object_if(w, "standby", b->has_standby)) { return; }
    crdi_json_put_text(w, "source", known ? sources[b->source] : "");
    crdi_web_put_fields(w, b, fields);
    crdi_json_end(w);
}

static void put_story(crdi_json_writer* w, const crdi_board_state* b)
{
    crdi_web_story s;
    crdi_web_tell_story(b, &s);
    crdi_json_put_integer(w, "place", s.place);
    bench_put_times(w, "entered", s.entered, CRDI_WEB_PLACES, 0);
    if (isnan(s.stop[0])) {
        crdi_json_put_null(w, "stop");
    } else {
        bench_put_times(w, "stop", s.stop, CRDI_WEB_STOP_STEPS, s.stop[0]);
    }
    if (crdi_json_begin_object_if(w, "heat", !isnan(s.heat_first))) {
        crdi_json_put(w, REAL("first", s.heat_first), REAL("now", s.heat_now));
        crdi_json_end(w);
    }
}

void crdi_web_bench(crd_text* t, const char* unit, const crdi_board_state* b)
{
    static const crdi_web_field link[] = {
        BOARD(lost), BOARD(last_data), BOARD(clamps), BOARD(refused), {0},
    };
    static const crdi_web_field texts[] = {
        BOARD(round_trip), BOARD(round_trip_max),
        BOARD(security),   BOARD(missing),
        BOARD(progress),   BOARD(why),
        BOARD(stopping),   {0},
    };
    const bool known = b->extension;
    crdi_json_writer w;
    crdi_json_writer_init(&w, t, CRDI_JSON_COMPACT);
    crdi_json_begin_object(&w, NULL);
    crdi_json_put(
        &w, TEXT("unit", unit), REAL("now", b->now), INT("state", b->state),
        TEXT("state_name", crd_dcp_state_name(b->state)), BOOL("extension", known),
        INT("phase", known ? b->phase : -1),
        TEXT("phase_name", known ? crd_dcp_bench_phase_name(b->phase) : ""),
        INT("reason", known ? b->reason : 0),
        TEXT("reason_name", known && b->reason ? crd_dcp_bench_reason_name(b->reason) : ""));
    crdi_web_put_fields(&w, b, link);
    crdi_json_put_integer(&w, "gap", b->gap);
    crdi_web_put_fields(&w, b, texts);
    bench_put_limits(&w, b);
    crdi_json_begin_list(&w, "calibrations");
    for (int i = 0; i < b->calibrations.count; i++) {
        const crdi_calibration* c = &b->calibrations.of[i];
        crdi_json_begin_object(&w, NULL);
        crdi_json_put(&w, TEXT("name", c->name), REAL("gain", c->gain), REAL("offset", c->offset),
                      TEXT("date", c->date), TEXT("by", c->by));
        crdi_json_end(&w);
    }
    crdi_json_end(&w);
    put_standby(&w, b);
    put_story(&w, b);
    crdi_json_end(&w);
}
