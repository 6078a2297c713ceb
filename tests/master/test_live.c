// A run that is watched and steered: the watcher is the test itself, between two steps or while the
// run stands still, on a clock that the test moves.
#include "live_help.h"

#include "master/live/live.h"

#include <unistd.h>

#define STEP 0.1

// clock -> desk -> euler, which is slower, and a gain beside it that nobody connects.
static void build(watched* w, double stop)
{
    *w = (watched){.ctx = crd_context_create(NULL)};
    w->s = new_system(w->ctx, STEP, stop);
    const int c = add_unit(w->s, "c", &clock_model, 0), d = add_unit(w->s, "d", &desk_model, 0);
    const int e = add_unit(w->s, "e", &euler_model, 3 * STEP);
    add_unit(w->s, "g", &gain_model, 0);
    wire(w->s, c, "y", d, "u");
    wire(w->s, d, "y", e, "u");
}

static void start(watched* w, double stop)
{
    build(w, stop);
    watch(w);
}

// ---- what there is -----------------------------------------------------------------------------

static void the_tables_say_what_there_is(void** state)
{
    (void)state;
    watched w;
    build(&w, 1);
    w.s->title = "a title";
    watch(&w);
    const crdi_live_info* info = crdi_live_get_info(w.l);
    check_text(info->title, "a title");
    check_text(info->results, "");
    check_near(info->stop, 1, 0);
    check_near(info->step, STEP, 1e-15);
    check_near(info->factor, 0, 0);
    check_int(info->unit_count, 4);
    check_text(info->units[1].name, "d");
    check_near(info->units[2].step, 0.3, 1e-15);
    check(isnan(info->units[0].budget) && !info->units[0].remote && !info->units[0].real);
    check_int(info->signal_count, 6);
    check_int(info->signals_left_out, 0);
    check_text(info->signals[3].name, "d.seen");
    check_int(info->signals[3].type, CRD_INT32);
    check_int(info->signals[3].owner, 1);
    check_int(info->link_count, 2);
    const crdi_live_link* k = &info->links[strcmp(info->links[0].to, "d.u") == 0 ? 0 : 1];
    check_text(k->from, "c.y");
    check_int(k->from_unit, 0);
    check_int(k->to_unit, 1);
    check_int(k->coupling, -1);
    check(k->can_fault);
    check_text(info->signals[k->from_signal].name, "c.y");
    stop_watching(&w);
}

static void tunable_parameters_and_free_inputs_can_be_set(void** state)
{
    (void)state;
    static const char* const names[] = {"c.when", "c.what",  "d.force", "d.m",  "d.k[1]", "d.k[2]",
                                        "d.k[3]", "d.count", "d.mode",  "d.on", "e.a",    "e.b",
                                        "g.u",    "g.a",     "g.b",     "g.c"};
    watched w;
    start(&w, 1);
    const crdi_live_info* info = crdi_live_get_info(w.l);
    check_int(info->setting_count, 16);
    for (int i = 0; i < 16; i++) {
        check_text(info->settings[i].name, names[i]);
    }
    const crdi_live_setting* m = &info->settings[3];
    check_text(m->unit, "kg");
    check_near(m->start, 50, 0);
    check_near(m->min, 0, 0);
    check_near(m->max, 1000, 0);
    check(!m->input && info->settings[2].input);
    check_text(info->settings[2].description, "pulls");
    check_near(info->settings[7].start, 7, 0);
    check(isinf(info->settings[10].max));
    stop_watching(&w);
}

typedef struct {
    double y[1500];
} crowd;

static void crowd_outputs(void* self, double t)
{
    for (int i = 0; i < 1500; i++) {
        ((crowd*)self)->y[i] = t + i;
    }
}

static crd_model_status crowd_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    crowd_outputs(self, t);
    return CRD_MODEL_OK;
}

static void signals_beyond_the_limit_are_counted(void** state)
{
    (void)state;
    static const crd_model_variable variables[] = {{.name = "y",
                                                    .type = CRD_FLOAT64,
                                                    .causality = CRD_OUTPUT,
                                                    .variability = CRD_CONTINUOUS,
                                                    .offset = offsetof(crowd, y),
                                                    .size = 1500,
                                                    .depends = ""}};
    static const crd_model model = {.name = "crowd",
                                    .description = "many",
                                    .size = sizeof(crowd),
                                    .variables = variables,
                                    .variable_count = 1,
                                    .default_step = STEP,
                                    .default_stop = 1,
                                    .initialize = crowd_initialize,
                                    .outputs = crowd_outputs,
                                    .step = gain_step};
    watched w = {.ctx = crd_context_create(NULL)};
    w.s = new_system(w.ctx, STEP, 1);
    add_unit(w.s, "a", &model, 0);
    add_unit(w.s, "b", &model, 0);
    watch(&w);
    check_int(crdi_live_get_info(w.l)->signal_count, CRDI_LIVE_SIGNALS);
    check_int(crdi_live_get_info(w.l)->signals_left_out, 3000 - CRDI_LIVE_SIGNALS);
    advance(&w, 1);
    (void)next_row(&w);
    check_near(next_row(&w)->values[signal_named(&w, "b.y[500]")], 499 + STEP, 1e-9);
    stop_watching(&w);
}

// ---- rows --------------------------------------------------------------------------------------

static void check_row(watched* w, const crdi_live_row* r, int64_t n)
{
    static const char* const names[] = {"c.y", "d.y", "d.sum", "d.seen", "e.y", "g.y"};
    check(r != NULL);
    check_int(r->cycle, n);
    check_near(r->time, crd_master_time(w->m), 0);
    for (int i = 0; i < 6; i++) {
        check_near(r->values[signal_named(w, names[i])], value(w->m, names[i]), 0);
    }
}

static void a_row_has_the_values_of_its_time(void** state)
{
    (void)state;
    watched w;
    start(&w, 2);
    for (int n = 1; n <= 20; n++) {
        if (n == 5) { put(&w, "g.u", "3"); } // an output that no connection reads
        advance(&w, 1);
        if (n == 1) {
            const crdi_live_row* first = next_row(&w);
            check_int(first->cycle, 0);
            check_near(first->time, 0, 0);
        }
        check_row(&w, next_row(&w), n);
    }
    check(next_row(&w) == NULL);
    check_near(value(w.m, "g.y"), 3, 0);
    check_int(crdi_live_lost(w.l), 0);
    stop_watching(&w);
}

// In a file with rasters the slower unit has its own; in the rows it keeps its last value.
static void rows_are_the_recorded_ones(void** state)
{
    (void)state;
    const char* path = TEST_BUILD_DIR "/test_live_rows.mf4";
    watched w;
    build(&w, 3);
    w.s->results.path = path;
    watch(&w);
    double seen[31][6];
    int rows = 0;
    advance(&w, 30);
    for (const crdi_live_row* r; (r = crdi_live_read(w.l)) != NULL; crdi_live_release(w.l)) {
        memcpy(seen[rows++], r->values, sizeof seen[0]);
    }
    check_int(rows, 31);
    check_int(crd_master_ended(w.m), CRD_END_STOP_TIME);
    check_run(crd_master_finish(w.m), w.ctx);
    crd_recording* r = NULL;
    check_run(crd_recording_open(w.ctx, path, &r), w.ctx);
    const crd_recording_info* info = crd_recording_describe(r);
    int compared = 0;
    for (int g = 0; g < info->group_count; g++) {
        for (int i = 0; i < info->groups[g].signal_count; i++) {
            const int at = info->groups[g].first_signal + i;
            crd_cursor* c = NULL;
            crd_block b;
            check_ok(crd_cursor_open(r, g, &at, 1, &c));
            while (crd_cursor_next(c, &b) == CRD_OK && b.rows > 0) {
                for (int64_t k = 0; k < b.rows; k++) {
                    const int n = (int)lround(b.time[k] / STEP);
                    check_near(seen[n][signal_named(&w, info->signals[at].name)], b.values[0][k],
                               0);
                    compared++;
                }
            }
            crd_cursor_close(c);
        }
    }
    check_int(compared, 5 * 31 + 11);
    crd_recording_close(r);
    stop_watching(&w);
    unlink(path);
}

static void rows_that_find_no_room_are_counted(void** state)
{
    (void)state;
    watched w;
    build(&w, 10);
    crdi_live_options o = all_of_it();
    o.ring_rows = 16;
    watch_with(&w, &o);
    advance(&w, 40); // and the start
    check_int(crdi_live_lost(w.l), 25);
    check_int(crdi_live_get_status(w.l)->rows, 16);
    for (int n = 0; n < 16; n++) {
        check_int(next_row(&w)->cycle, n);
    }
    advance(&w, 1);
    check_int(next_row(&w)->cycle, 41);
    check_int(crdi_live_lost(w.l), 25);
    stop_watching(&w);
}

static void rows_and_snapshots_keep_their_distance_on_the_clock(void** state)
{
    (void)state;
    watched w;
    build(&w, 100);
    crdi_live_options o = crdi_live_defaults();
    o.row_gap = 1e-3;
    o.status_gap = 10e-3;
    watch_with(&w, &o);
    int rows = 0;
    int64_t shots = 0, last = 0;
    for (int n = 0; n < 1000; n++) {
        w.hand.ns += 100000; // 0.1 ms for a step
        advance(&w, 1);
        while (next_row(&w)) {
            rows++;
        }
        const int64_t number = crdi_live_get_status(w.l)->number;
        shots += number != last;
        last = number;
    }
    check(rows >= 99 && rows <= 127); // 100 ms; cycles that come a little early count as well
    check(shots >= 10 && shots <= 12);
    check_int(crdi_live_lost(w.l), 0);
    check(crdi_live_get_status(w.l)->elapsed_ns >= 90 * 1000000);
    check_near(crdi_live_get_status(w.l)->speed, 1000, 1e-6); // 0.1 s in 0.1 ms
    const crd_histogram* busy = &crdi_live_get_status(w.l)->pace.busy;
    check(!crdi_live_get_status(w.l)->pace.on);
    check(busy->count >= 900 && busy->min == 100000 && busy->max == 100000);
    stop_watching(&w);
}

// ---- events ------------------------------------------------------------------------------------

static void events_come_in_order_and_the_oldest_are_forgotten(void** state)
{
    (void)state;
    watched w;
    start(&w, 1);
    hear(&w, CRD_EVENT_START, "start: 4 units, step 0.1 s");
    crdi_live_event e;
    check(!next_event(&w, &e)); // but for warnings: two inputs are not connected
    const int64_t before = w.heard;
    check_int(before, 3);
    for (int i = 0; i < 3000; i++) {
        char text[32];
        snprintf(text, sizeof text, "event %d", i);
        crdi_live_put_event(w.l, CRD_EVENT_WARNING, i, text);
    }
    check(crdi_live_get_event(w.l, w.heard, &e));
    check_int(e.number, before + 3000 - CRDI_LIVE_EVENTS + 1);
    for (int i = 3000 - CRDI_LIVE_EVENTS; i < 3000; i++) {
        char text[32];
        snprintf(text, sizeof text, "event %d", i);
        check(crdi_live_get_event(w.l, before + i, &e));
        check_text(e.text, text);
        check_near(e.time, i, 0);
        check_int(e.number, before + i + 1);
    }
    check(!crdi_live_get_event(w.l, e.number, &e));
    stop_watching(&w);
}

static void a_long_text_is_cut_at_a_whole_character(void** state)
{
    (void)state;
    watched w;
    start(&w, 1);
    char text[400];
    memset(text, 'a', sizeof text);
    text[254] = (char)0xC3; // a character of two bytes over the edge
    text[255] = (char)0xA4;
    text[399] = 0;
    crdi_live_put_event(w.l, CRD_EVENT_MARK, 0, text);
    crdi_live_event e;
    check(next_event(&w, &e) && next_event(&w, &e));
    check_int((long long)strlen(e.text), 254);
    stop_watching(&w);
}

static void what_is_no_text_becomes_one(void** state)
{
    (void)state;
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"plain", "plain"},
        {"two\nlines\tand\x7f", "two lines and "},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xc3", "?"},
        {"\xc3(", "?("},
        {"\xc0\x80\xe0\x80\x80\xed\xa0\x80", "????????"},
        {"\xf4\x90\x80\x80\xff", "?????"},
        {"123456789012345", "123456789012345"},
        {"12345678901234\xc3\xa4", "12345678901234"},
        {"1234567890123456", "123456789012345"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[16];
        crdi_live_copy_text(out, sizeof out, cases[i].from);
        check_text(out, cases[i].to);
    }
    watched w;
    start(&w, 1);
    order(&w, (crdi_live_command){.action = CRDI_LIVE_MARK, .text = "a\nb\xff"});
    advance(&w, 1);
    hear(&w, CRD_EVENT_START, "start: 4 units, step 0.1 s");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: a b?");
    stop_watching(&w);
}

static void how_it_ends_is_heard_without_a_record(void** state)
{
    (void)state;
    watched w;
    build(&w, 1);
    set(w.s, 0, "what", "2");
    set(w.s, 0, "when", "0.5");
    watch(&w);
    check_status(crd_master_advance(w.m, 10), CRD_E_UNIT);
    check_status(crd_master_finish(w.m), CRD_OK);
    const crdi_live_status* s = crdi_live_get_status(w.l);
    check_int(s->state, CRDI_LIVE_ENDED);
    check_int(s->end, CRD_END_FAILED);
    check_contains(s->message, "unit 'c'");
    check(s->units[0].failed && !s->units[1].failed);
    hear(&w, CRD_EVENT_START, "start: 4 units, step 0.1 s");
    hear(&w, CRD_EVENT_ERROR, s->message);
    hear(&w, CRD_EVENT_STOP, "failed");
    refused(&w, (crdi_live_command){.action = CRDI_LIVE_PAUSE}, CRD_E_STATE, "the run has ended");
    stop_watching(&w);
}

// Who watches and what is exchanged hear the same, and once.
static void an_exchange_hears_its_start_and_end_once_beside_a_page(void** state)
{
    (void)state;
    watched w;
    build(&w, 1);
    w.s->results.exchange = TEST_BUILD_DIR "/test_live_exchange.mf4";
    watch(&w);
    advance(&w, 3);
    do_it(&w, CRDI_LIVE_STOP);
    advance(&w, 1);
    check_ok(crd_master_finish(w.m));
    hear(&w, CRD_EVENT_START, "start: 4 units, step 0.1 s");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: stop");
    hear(&w, CRD_EVENT_STOP, "stopped by a command");
    crd_recording* r = NULL;
    check_run(crd_recording_open(w.ctx, w.s->results.exchange, &r), w.ctx);
    const crd_recording_info* info = crd_recording_describe(r);
    int starts = 0, stops = 0;
    for (int i = 0; i < info->event_count; i++) {
        starts += info->events[i].kind == CRD_EVENT_START;
        stops += info->events[i].kind == CRD_EVENT_STOP;
    }
    check_int(starts, 1);
    check_int(stops, 1);
    check_text(info->events[info->event_count - 1].text, "stopped by a command");
    crd_recording_close(r);
    stop_watching(&w);
}

// ---- snapshots ---------------------------------------------------------------------------------

static void a_snapshot_stays_until_there_is_a_newer_one(void** state)
{
    (void)state;
    watched w;
    start(&w, 10);
    check(crdi_live_get_status(w.l) == NULL); // nothing has happened
    advance(&w, 1);
    const crdi_live_status* s = crdi_live_get_status(w.l);
    const int64_t number = s->number;
    check(number > 0);
    check_int(s->cycles, 1);
    check_int(s->state, CRDI_LIVE_RUNNING);
    check_int(crdi_live_get_status(w.l)->number, number);
    advance(&w, 7); // many snapshots that nobody looks at
    check_int(s->cycles, 1);
    s = crdi_live_get_status(w.l);
    check_int(s->cycles, 8);
    check_near(s->time, 0.8, 1e-12);
    check_int(s->units[0].steps, 8);
    check_int(s->units[2].steps, 2);
    check_near(link_now(&w, "d.u")->value, 0.7, 1e-12);
    stop_watching(&w);
}

static void the_last_snapshot_has_the_numbers_of_the_verdict(void** state)
{
    (void)state;
    watched w = {.ctx = crd_context_create(NULL)};
    w.s = new_system(w.ctx, STEP, 5);
    const int c = add_unit(w.s, "c", &clock_model, 0), a = add_unit(w.s, "a", &exact_model, 0);
    const int b = add_unit(w.s, "b", &euler_model, 0), g = add_unit(w.s, "g", &gain_model, 0);
    const crd_coupling_spec coupling = {.element = "{\"algorithm\": \"foh\"}",
                                        .place = {"x", 1},
                                        .has_channel = true,
                                        .channel = {.step = NAN,
                                                    .delay = 0.3,
                                                    .jitter = 0.1,
                                                    .loss = 0.2,
                                                    .duplicate = 0.2,
                                                    .burst = 1,
                                                    .seed = 1}};
    set(w.s, b, "b", "-1");
    wire(w.s, c, "y", b, "u");                                // watched
    wire(w.s, b, "y", a, "u")->predict = CRD_PREDICTION_AUTO; // predicted
    wire(w.s, b, "y", g, "u")->coupling = &coupling;          // coupled
    watch(&w);
    advance(&w, 50);
    check_run(crd_master_finish(w.m), w.ctx);
    const crdi_live_status* s = crdi_live_get_status(w.l);
    const crdi_live_info* info = crdi_live_get_info(w.l);
    const crd_master_report* r = crd_master_get_report(w.m);
    check_int(s->state, CRDI_LIVE_ENDED);
    check_int(s->end, CRD_END_STOP_TIME);
    check_int(s->cycles, r->steps);
    check_int(r->flow_count, 2);
    for (int i = 0; i < info->link_count; i++) {
        const crdi_live_link_state* k = &s->links[i];
        for (int f = 0; f < r->flow_count; f++) {
            if (strcmp(r->flows[f].to, info->links[i].to) != 0) { continue; }
            check_near(k->relative, r->flows[f].relative, 0);
            check_near(k->scale, r->flows[f].scale, 0);
            check(k->defect > 0);
            check_int(k->k, -1);
            check(isnan(k->age));
        }
        if (info->links[i].coupling >= 0) {
            const crd_coupling_report* p = &r->couplings[info->links[i].coupling];
            check_text(info->links[i].to, p->to);
            check_int(k->sent, p->sent);
            check_int(k->lost, p->lost);
            check(p->lost > 0 && k->duplicates > 0);
            check_int(k->duplicates, p->taps[0].counts.duplicates);
            check_int(k->late, p->taps[0].counts.late + p->taps[0].counts.too_late);
            check_text(k->algorithm, p->taps[0].label);
            check(k->k >= 2 && k->k <= p->k_max && k->age > 0.15);
            check(!isnan(k->error));
        }
    }
    check_text(link_now(&w, "b.u")->algorithm, "hold");
    stop_watching(&w);
}

static void a_bond_shows_its_power(void** state)
{
    (void)state;
    crd_model_variable rows[2][5];
    crd_model models[2] = {euler_model, euler_model};
    for (int i = 0; i < 2; i++) {
        memcpy(rows[i], euler_variables, sizeof rows[i]);
        rows[i][0].unit = i ? "N" : "m/s";
        rows[i][1].unit = i ? "m/s" : "N";
        models[i].variables = rows[i];
    }
    watched w = {.ctx = crd_context_create(NULL)};
    w.s = new_system(w.ctx, STEP, 5);
    const int a = add_unit(w.s, "a", &models[0], 0), b = add_unit(w.s, "b", &models[1], 0);
    set(w.s, a, "x", "1");
    set(w.s, b, "a", "-1");
    wire(w.s, a, "y", b, "u");
    wire(w.s, b, "y", a, "u");
    crd_bond_spec bond = crd_bond_spec_defaults();
    bond.action_unit = a;
    bond.action = "y";
    bond.flow_unit = b;
    bond.flow = "y";
    bond.correct = CRD_CORRECT_NONE;
    check_ok(crd_system_add_bond(w.s, &bond));
    watch(&w);
    advance(&w, 20);
    const double power = value(w.m, "a.y") * value(w.m, "b.y");
    const crdi_live_status* s = crdi_live_get_status(w.l);
    const crdi_live_info* info = crdi_live_get_info(w.l);
    const crd_bond_report* r = crd_master_get_report(w.m)->bonds;
    check_int(info->bond_count, 1);
    check_text(info->bonds[0].action, "a.y");
    check_text(info->bonds[0].flow, "b.y");
    check_near(s->bonds[0].power, power, 1e-12);
    check_near(s->bonds[0].residual, w.m->energy.bonds[0].state.power, 0);
    check_near(s->bonds[0].energy, r->energy, 0);
    check_near(s->bonds[0].work, r->work, 0);
    check_near(s->bonds[0].relative, r->relative, 0);
    check(s->bonds[0].residual != 0);
    stop_watching(&w);
}

// They are kept as numbers in the loop, and worded where there is time.
static void overruns_become_events(void** state)
{
    (void)state;
    watched w;
    build(&w, 100);
    w.s->run.pace.factor = 1;
    watch(&w);
    advance(&w, 10);
    check_int(crdi_live_get_status(w.l)->pace.overruns, 0);
    w.hand.step = 60 * 1000000; // each look at the clock takes its time
    advance(&w, 3);
    w.hand.step = 0;
    advance(&w, 40);
    const int64_t overruns = crdi_live_get_status(w.l)->pace.overruns;
    check(overruns >= 3);
    hear(&w, CRD_EVENT_START, "start: 4 units, step 0.1 s");
    crdi_live_event e;
    int64_t told = 0, units = 0;
    while (next_event(&w, &e)) {
        long long more = 0;
        check_int(e.kind, CRD_EVENT_OVERRUN);
        told += sscanf(e.text, "overrun: %lld more cycles were late", &more) == 1 ? more : 1;
        if (more == 0) { check_contains(e.text, " ms late"); }
        units += strstr(e.text, "longest in unit '") != NULL;
    }
    check_int(told, overruns);
    check(units >= 3);
    check(overruns > 12); // more than are told one by one

    // Those that were told together are not told again.
    w.hand.step = 60 * 1000000;
    advance(&w, 1);
    w.hand.step = 0;
    advance(&w, 10);
    const int64_t fresh = crdi_live_get_status(w.l)->pace.overruns - overruns;
    check(fresh > 0);
    told = 0;
    while (next_event(&w, &e)) {
        long long more = 0;
        told += sscanf(e.text, "overrun: %lld more cycles were late", &more) == 1 ? more : 1;
    }
    check_int(told, fresh);
    stop_watching(&w);
}

// ---- start, pause, step, stop ------------------------------------------------------------------

typedef struct {
    watched* w;
    int64_t at;    // sleep
    int64_t steps; // that were done then
    crdi_live_action then;
    bool stop;
    volatile bool* flag;
} sleeper;

static void after_a_while(void* user)
{
    sleeper* s = user;
    if (s->w->hand.slept < s->at) { return; }
    s->at = INT64_MAX;
    s->steps = crdi_live_get_status(s->w->l)->cycles;
    if (s->flag) {
        *s->flag = true;
    } else {
        do_it(s->w, s->then);
    }
}

static void a_run_that_waits_begins_when_it_is_told(void** state)
{
    (void)state;
    watched w;
    build(&w, 10);
    crdi_live_options o = all_of_it();
    o.wait = true;
    watch_with(&w, &o);
    sleeper s = {.w = &w, .at = 20, .then = CRDI_LIVE_START};
    w.hand.asleep = after_a_while;
    w.hand.user = &s;
    check(crdi_live_get_info(w.l)->wait);
    advance(&w, 5);
    check_int(s.steps, 0);
    check_int(w.hand.slept, 20);
    check_near(crd_master_time(w.m), 0.5, 1e-12);
    check_int(crdi_live_get_status(w.l)->state, CRDI_LIVE_RUNNING);
    hear(&w, CRD_EVENT_START, "start: 4 units, step 0.1 s");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: start");
    stop_watching(&w);
}

static void a_pause_holds_the_run_until_it_goes_on(void** state)
{
    (void)state;
    watched w;
    start(&w, 10);
    sleeper s = {.w = &w, .at = 7, .then = CRDI_LIVE_START};
    w.hand.asleep = after_a_while;
    w.hand.user = &s;
    advance(&w, 3);
    check_int(w.hand.slept, 0);
    do_it(&w, CRDI_LIVE_PAUSE);
    advance(&w, 3);
    check_int(s.steps, 3);
    check_int(w.hand.slept, 7);
    check_int(crdi_live_get_status(w.l)->cycles, 6);
    stop_watching(&w);
}

static void steps_are_counted_and_then_it_stands_again(void** state)
{
    (void)state;
    watched w;
    start(&w, 10);
    do_it(&w, CRDI_LIVE_PAUSE);
    order(&w, (crdi_live_command){.action = CRDI_LIVE_STEP, .count = 4});
    sleeper s = {.w = &w, .at = 3, .then = CRDI_LIVE_STEP};
    w.hand.asleep = after_a_while;
    w.hand.user = &s;
    advance(&w, 4);
    check_int(w.hand.slept, 0);
    advance(&w, 1); // stands, until one more step is asked for
    check_int(s.steps, 4);
    check_int(w.hand.slept, 3);
    check_int(crdi_live_get_status(w.l)->cycles, 5);
    hear(&w, CRD_EVENT_START, "start: 4 units, step 0.1 s");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: pause");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: 4 steps");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: 1 step");
    stop_watching(&w);
}

static void a_stop_ends_the_run_cleanly_also_in_a_pause(void** state)
{
    (void)state;
    for (int paused = 0; paused < 2; paused++) {
        watched w;
        start(&w, 10);
        advance(&w, 2);
        sleeper s = {.w = &w, .at = 4, .then = CRDI_LIVE_STOP};
        w.hand.asleep = after_a_while;
        w.hand.user = &s;
        do_it(&w, paused ? CRDI_LIVE_PAUSE : CRDI_LIVE_STOP);
        advance(&w, 100);
        check_int(crd_master_ended(w.m), CRD_END_INTERRUPTED);
        check(w.m->life.stopped_by_page);
        check_near(crd_master_time(w.m), 0.2, 1e-12);
        check_run(crd_master_finish(w.m), w.ctx);
        check_int(crdi_live_get_status(w.l)->state, CRDI_LIVE_ENDED);
        check_int(crdi_live_get_status(w.l)->end, CRD_END_INTERRUPTED);
        hear(&w, CRD_EVENT_START, "start: 4 units, step 0.1 s");
        if (paused) { hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: pause"); }
        hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: stop");
        hear(&w, CRD_EVENT_STOP, "stopped by a command");
        stop_watching(&w);
    }
}

static void the_stop_flag_ends_a_pause(void** state)
{
    (void)state;
    watched w;
    volatile bool flag = false;
    build(&w, 10);
    w.clock = hand_made(&w.hand);
    crd_master_options o = crd_master_defaults();
    o.clock = &w.clock;
    o.stop = &flag;
    check_run(crd_master_create(w.ctx, w.s, &o, &w.m), w.ctx);
    check_run(crdi_live_create(w.ctx, w.m, NULL, &w.l), w.ctx);
    check_run(crd_master_initialize(w.m), w.ctx);
    sleeper s = {.w = &w, .at = 9, .flag = &flag};
    w.hand.asleep = after_a_while;
    w.hand.user = &s;
    do_it(&w, CRDI_LIVE_PAUSE);
    advance(&w, 3);
    check_int(crd_master_ended(w.m), CRD_END_INTERRUPTED);
    check(!w.m->life.stopped_by_page);
    check_int(w.hand.slept, 9);
    stop_watching(&w);
}

// What a pause takes is not made up for: the grid moves.
static void a_pause_moves_the_grid_of_a_paced_run(void** state)
{
    (void)state;
    watched w;
    build(&w, 10);
    w.s->run.pace.factor = 1;
    watch(&w);
    advance(&w, 5);
    const int64_t before = w.hand.ns;
    sleeper s = {.w = &w, .at = w.hand.slept + 20, .then = CRDI_LIVE_START};
    w.hand.asleep = after_a_while;
    w.hand.user = &s;
    do_it(&w, CRDI_LIVE_PAUSE);
    advance(&w, 5);
    const crdi_live_status* status = crdi_live_get_status(w.l);
    check(status->pace.on);
    check_int(status->pace.overruns, 0);
    check(status->pace.paused_ns >= 75 * 1000000); // 20 looks, 5 ms apart
    check(w.hand.ns - before >= 500 * 1000000 + 75 * 1000000 - 100 * 1000000);
    check_int(w.m->pace.pacer.report.drift_ns, 0);
    stop_watching(&w);
}

static void a_unit_in_real_time_cannot_stand_still(void** state)
{
    (void)state;
    watched w;
    build(&w, 10);
    w.clock = hand_made(&w.hand);
    crd_master_options o = crd_master_defaults();
    o.clock = &w.clock;
    check_run(crd_master_create(w.ctx, w.s, &o, &w.m), w.ctx);
    check_run(crdi_live_create(w.ctx, w.m, NULL, &w.l), w.ctx);
    w.m->plan->members[2].unit->info.flags |= CRD_UNIT_IN_REAL_TIME;
    check_run(crd_master_initialize(w.m), w.ctx);
    refused(&w, (crdi_live_command){.action = CRDI_LIVE_PAUSE}, CRD_E_UNSUPPORTED,
            "unit 'e' runs in real time by itself");
    refused(&w, (crdi_live_command){.action = CRDI_LIVE_STEP, .count = 1}, CRD_E_UNSUPPORTED,
            "cannot stand still");
    do_it(&w, CRDI_LIVE_STOP);
    stop_watching(&w);
}

// ---- settings ----------------------------------------------------------------------------------

static void a_setting_takes_effect_before_the_next_step(void** state)
{
    (void)state;
    watched w;
    start(&w, 10);
    advance(&w, 1);
    check_near(value(w.m, "d.sum"), 50 + 111, 1e-12);
    put(&w, "d.m", "100000 g");
    put(&w, "d.k[2]", "5");
    put(&w, "d.force", "1 kN");
    put(&w, "d.count", "-3");
    put(&w, "d.mode", "fast");
    put(&w, "d.on", "true");
    check_near(value(w.m, "d.sum"), 50 + 111, 1e-12); // between two steps nothing has happened
    advance(&w, 1);
    check_near(value(w.m, "d.sum"), 100 + 1 + 50 + 100 + 1000, 1e-12);
    check_near(value(w.m, "d.seen"), 1000 + 300 - 3, 0);
    put(&w, "d.m", "12.5");
    put(&w, "d.mode", "2");
    advance(&w, 1);
    check_near(value(w.m, "d.m"), 12.5, 0);
    hear(&w, CRD_EVENT_START, "start: 4 units, step 0.1 s");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: d.m = 100 (was 50)");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: d.k[2] = 5 (was 1)");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: d.force = 1000 (was 0)");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: d.count = -3 (was 7)");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: d.mode = fast (was off)");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: d.on = true (was false)");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: d.m = 12.5 (was 100)");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: d.mode = slow (was fast)");
    stop_watching(&w);
}

static void parameters_and_inputs_of_an_fmu_change_while_it_runs(void** state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        char path[512];
        snprintf(path, sizeof path, "%s/fmus/fmi%d/drive_motor.fmu", TEST_BUILD_DIR, version);
        watched w = {.ctx = crd_context_create(NULL)};
        w.s = new_system(w.ctx, 1e-3, 10);
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = "motor";
        u.path = path;
        check_ok(crd_system_add_unit(w.s, &u, NULL));
        watch(&w);
        put(&w, "motor.demand", "10");
        put(&w, "motor.speed", "60 rpm");
        put(&w, "motor.loss", "0.5");
        advance(&w, 2000);
        const double torque = value(w.m, "motor.torque");
        check_near(torque, 10, 1e-3); // its lag is over
        check_near(value(w.m, "motor.power"), torque * 2 * M_PI + 0.5 * torque * torque, 1e-9);
        put(&w, "motor.loss", "0.25");
        advance(&w, 1);
        check_near(value(w.m, "motor.power"), torque * 2 * M_PI + 0.25 * torque * torque, 1e-4);
        stop_watching(&w);
    }
}

static void a_change_is_an_event_of_the_record(void** state)
{
    (void)state;
    const char* path = TEST_BUILD_DIR "/test_live_events.mf4";
    watched w;
    build(&w, 1);
    w.s->results.path = path;
    watch(&w);
    advance(&w, 3);
    put(&w, "d.m", "100");
    order(&w, (crdi_live_command){.action = CRDI_LIVE_MARK, .text = "look here"});
    advance(&w, 7);
    check_run(crd_master_finish(w.m), w.ctx);
    crd_recording* r = NULL;
    check_run(crd_recording_open(w.ctx, path, &r), w.ctx);
    const crd_recording_info* info = crd_recording_describe(r);
    check_int(info->event_count, 6); // with start, stop and two warnings
    check_text(info->events[3].text, "page 127.0.0.1: d.m = 100 (was 50)");
    check_near(info->events[3].time, 0.3, 1e-12);
    check_text(info->events[4].text, "page 127.0.0.1: look here");
    crd_recording_close(r);
    stop_watching(&w);
    unlink(path);
}

static crd_status refuse_all(crd_unit* u, const crd_binding* b, const crd_values* v)
{
    (void)b;
    (void)v;
    return crdi_fail(u->ctx, CRD_E_UNIT, "not today");
}

static void what_a_unit_refuses_becomes_an_event(void** state)
{
    (void)state;
    watched w;
    start(&w, 10);
    crd_unit* g = crd_master_get_unit(w.m, 3); // without connections: only we set it
    const crd_unit_ops* own = g->ops;
    crd_unit_ops stubborn = *own;
    stubborn.set = refuse_all;
    advance(&w, 1);
    g->ops = &stubborn;
    put(&w, "g.a", "5");
    advance(&w, 1);
    g->ops = own;
    check_near(value(w.m, "g.a"), 1, 0);
    put(&w, "g.a", "6");
    advance(&w, 1);
    check_near(value(w.m, "g.a"), 6, 0);
    hear(&w, CRD_EVENT_START, "start: 4 units, step 0.1 s");
    hear(&w, CRD_EVENT_ERROR, "g.a: refused by unit 'g': not today");
    hear(&w, CRD_EVENT_MARK, "page 127.0.0.1: g.a = 6"); // what it was before is not known
    stop_watching(&w);
}

// ---- refusals ----------------------------------------------------------------------------------

static void refused_commands_say_why(void** state)
{
    (void)state;
    watched w;
    start(&w, 10);
    static const struct {
        crdi_live_command c;
        crd_status st;
        const char* text;
    } cases[] = {
        {{.action = CRDI_LIVE_SET, .name = "d.mm", .text = "1"},
         CRD_E_NOT_FOUND,
         "nothing that can be set is called 'd.mm', did you mean 'd.m'?"},
        {{.action = CRDI_LIVE_SET, .name = "d.u", .text = "1"}, CRD_E_NOT_FOUND, "'d.u'"},
        {{.action = CRDI_LIVE_SET, .name = "d.last", .text = "1"}, CRD_E_NOT_FOUND, "'d.last'"},
        {{.action = CRDI_LIVE_SET, .name = "d.m", .text = "3 m"},
         CRD_E_RANGE,
         "'m' = '3 m': 'm' cannot be converted into its unit 'kg'"},
        {{.action = CRDI_LIVE_SET, .name = "d.m", .text = "-1"},
         CRD_E_RANGE,
         "'d.m' = -1 is outside of its limits 0 to 1000"},
        {{.action = CRDI_LIVE_SET, .name = "d.m", .text = "nan"}, CRD_E_RANGE, "'m' = 'nan'"},
        {{.action = CRDI_LIVE_SET, .name = "e.a", .text = "inf"},
         CRD_E_RANGE,
         "expected a finite number"},
        {{.action = CRDI_LIVE_SET, .name = "d.m", .text = ""}, CRD_E_RANGE, "expected a number"},
        {{.action = CRDI_LIVE_SET, .name = "d.m"}, CRD_E_RANGE, "expected a number"},
        {{.action = CRDI_LIVE_SET}, CRD_E_NOT_FOUND, "''"},
        {{.action = CRDI_LIVE_SET, .name = "d.count", .text = "1.5"},
         CRD_E_RANGE,
         "expected a whole number"},
        {{.action = CRDI_LIVE_SET, .name = "d.mode", .text = "faster"},
         CRD_E_RANGE,
         "expected one of off, slow, fast"},
        {{.action = CRDI_LIVE_SET, .name = "d.on", .text = "perhaps"},
         CRD_E_RANGE,
         "expected true, false"},
        {{.action = CRDI_LIVE_COUPLE, .name = "d.u", .text = "eros"},
         CRD_E_UNSUPPORTED,
         "c.y -> d.u has no coupling"},
        {{.action = CRDI_LIVE_COUPLE, .name = "d.v", .text = "eros"},
         CRD_E_NOT_FOUND,
         "no connection leads to an input 'd.v', did you mean 'd.u'?"},
        {{.action = CRDI_LIVE_FAULT, .name = "d.v", .fault = CRDI_FAULT_HOLD},
         CRD_E_NOT_FOUND,
         "'d.v'"},
        {{.action = CRDI_LIVE_FAULT, .name = "d.u", .fault = CRDI_FAULT_NONE},
         CRD_E_RANGE,
         "no such kind"},
        {{.action = CRDI_LIVE_FAULT, .name = "d.u", .fault = CRDI_FAULT_KINDS},
         CRD_E_RANGE,
         "no such kind"},
        {{.action = CRDI_LIVE_FAULT,
          .name = "d.u",
          .fault = CRDI_FAULT_DROP,
          .value = 0.5,
          .duration = 1},
         CRD_E_UNSUPPORTED,
         "has no coupling"},
        {{.action = CRDI_LIVE_FAULT,
          .name = "d.u",
          .fault = CRDI_FAULT_NOISE,
          .value = -1,
          .duration = 1},
         CRD_E_RANGE,
         "standard deviation >= 0"},
        {{.action = CRDI_LIVE_FAULT,
          .name = "d.u",
          .fault = CRDI_FAULT_OFFSET,
          .value = NAN,
          .duration = 1},
         CRD_E_RANGE,
         "value = nan"},
        {{.action = CRDI_LIVE_FAULT, .name = "d.u", .fault = CRDI_FAULT_HOLD, .duration = 0},
         CRD_E_RANGE,
         "duration = 0 s, expected > 0"},
        {{.action = CRDI_LIVE_CLEAR, .name = "d.v"}, CRD_E_NOT_FOUND, "'d.v'"},
        {{.action = CRDI_LIVE_STEP, .count = 0}, CRD_E_RANGE, "count = 0"},
        {{.action = (crdi_live_action)77}, CRD_E_RANGE, "no command 77"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refused(&w, cases[i].c, cases[i].st, cases[i].text);
    }
    advance(&w, 3);
    hear(&w, CRD_EVENT_START, "start: 4 units, step 0.1 s");
    crdi_live_event e;
    check(!next_event(&w, &e)); // none of them did anything
    stop_watching(&w);
}

static void who_may_only_watch_commands_nothing(void** state)
{
    (void)state;
    watched w;
    build(&w, 1);
    crdi_live_options o = all_of_it();
    o.read_only = true;
    watch_with(&w, &o);
    check(crdi_live_get_info(w.l)->read_only);
    for (int a = CRDI_LIVE_START; a <= CRDI_LIVE_MARK; a++) {
        refused(&w, (crdi_live_command){.action = (crdi_live_action)a, .name = "d.m", .text = "1"},
                CRD_E_STATE, "read-only");
    }
    stop_watching(&w);
}

static void too_many_commands_are_refused(void** state)
{
    (void)state;
    watched w;
    start(&w, 10);
    for (int i = 0; i < CRDI_LIVE_ORDERS; i++) {
        put(&w, "d.m", "1");
    }
    refused(&w, (crdi_live_command){.action = CRDI_LIVE_SET, .name = "d.m", .text = "2"},
            CRD_E_STATE, "64 commands wait already");
    advance(&w, 1);
    put(&w, "d.m", "3");
    advance(&w, 1);
    check_near(value(w.m, "d.m"), 3, 0);
    stop_watching(&w);
}

static void a_live_is_made_once_and_in_time(void** state)
{
    (void)state;
    watched w;
    start(&w, 1);
    crdi_live* other = NULL;
    check_status(crdi_live_create(w.ctx, w.m, NULL, &other), CRD_E_STATE);
    check_contains(crd_error_text(w.ctx), "once");
    stop_watching(&w);
    crdi_live_destroy(NULL);
}

// ---- memory ------------------------------------------------------------------------------------

static void the_cycle_thread_takes_no_memory(void** state)
{
    (void)state;
    check_allocator a;
    watched w = {.ctx = check_context(&a)};
    w.s = new_system(w.ctx, STEP, 100);
    const crd_coupling_spec coupling = {.element = "{\"algorithm\": \"zoh\"}", .place = {"x", 1}};
    const int c = add_unit(w.s, "c", &clock_model, 0), d = add_unit(w.s, "d", &desk_model, 0);
    const int g = add_unit(w.s, "g", &gain_model, 0);
    wire(w.s, c, "y", d, "u");
    wire(w.s, d, "y", g, "u")->coupling = &coupling;
    watch(&w);
    advance(&w, 20);
    const char* const untold[] = {"{\"algorithm\": \"commands\"}",
                                  "{\"algorithm\": \"commands\", \"commands\": [\"d.u\"]}",
                                  "{\"algorithm\": \"smith\"}"}; // nobody would tell them
    for (int i = 0; i < 3; i++) {
        refused(&w,
                (crdi_live_command){.action = CRDI_LIVE_COUPLE, .name = "g.u", .text = untold[i]},
                CRD_E_UNSUPPORTED, "has to be told commands, which are chosen before the run");
    }
    for (int i = 0; i < 40; i++) {
        switch (i % 5) {
        case 0:
            put(&w, "d.m", "7");
            break;
        case 1:
            fault(&w, "d.u", CRDI_FAULT_NOISE, 1, 0.5);
            break;
        case 2:
            order(&w,
                  (crdi_live_command){.action = CRDI_LIVE_COUPLE, .name = "g.u", .text = "eros"});
            break;
        case 3:
            fault(&w, "g.u", CRDI_FAULT_DELAY, 0.3, 0.4);
            break;
        default:
            order(&w, (crdi_live_command){.action = CRDI_LIVE_CLEAR, .name = ""});
            break;
        }
        const int64_t before = a.allocations;
        advance(&w, 3);
        check_int(a.allocations, before);
        check(crdi_live_get_status(w.l) != NULL); // and what came back is freed
    }
    stop_watching(&w);
    check_int(a.live, 0);
}

static crd_system* try_build(crd_context* ctx, const crd_coupling_spec* coupling)
{
    crd_system* s = NULL;
    crd_status st = crd_system_create(ctx, &s);
    if (st < 0) { return NULL; }
    s->run.start = 0;
    s->run.step = STEP;
    s->run.stop = 0.5;
    s->run.threads = 1;
    const crd_model* const models[] = {&clock_model, &desk_model, &gain_model};
    static const char* const unit_names[] = {"c", "d", "g"};
    for (int i = 0; i < 3 && st >= 0; i++) {
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = unit_names[i];
        u.source = CRD_UNIT_NATIVE;
        u.model = models[i];
        st = crd_system_add_unit(s, &u, NULL);
    }
    for (int i = 0; i < 2 && st >= 0; i++) {
        crd_connection_spec c = crd_connection_spec_defaults();
        c.from_unit = i;
        c.from = "y";
        c.to_unit = i + 1;
        c.to = "u";
        c.predict = CRD_PREDICTION_HOLD;
        if (i == 1) { c.coupling = coupling; }
        st = crd_system_add_connection(s, &c);
    }
    if (st >= 0) { return s; }
    crd_system_destroy(s);
    return NULL;
}

// A command that finds no memory leaves the run as it was.
static crd_status try_to_watch(crd_context* ctx, crd_system* s, crd_master** m, crdi_live** l)
{
    crd_status st = CRD_OK;
    CRD_TRY(crd_master_create(ctx, s, NULL, m));
    CRD_TRY(crdi_live_create(ctx, *m, NULL, l));
    CRD_TRY(crd_master_initialize(*m));
    CRD_TRY(crdi_live_send(
        *l, &(crdi_live_command){.action = CRDI_LIVE_COUPLE, .name = "g.u", .text = "eros"}));
    CRD_TRY(crdi_live_send(
        *l, &(crdi_live_command){.action = CRDI_LIVE_SET, .name = "d.m", .text = "1"}));
    CRD_TRY(crd_master_advance(*m, 10));
    CRD_TRY(crd_master_finish(*m));
fail:
    return st;
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    const crd_coupling_spec coupling = {.element = "{\"algorithm\": \"zoh\"}", .place = {"x", 1}};
    for (int once = 0; once < 2; once++) {
        for (int64_t fail_at = 0;; fail_at++) {
            check_allocator a;
            crd_context* ctx = check_context(&a);
            crd_master* m = NULL;
            crdi_live* l = NULL;
            a.once = once;
            a.fail_at = a.allocations + fail_at;
            crd_system* s = try_build(ctx, &coupling);
            const crd_status st = s ? try_to_watch(ctx, s, &m, &l) : CRD_E_MEMORY;
            if (st == CRD_OK) {
                check(a.fail_at >= 0); // otherwise a failure was overlooked
                check_near(crdi_live_get_status(l)->links[0].fault, 0, 0);
            } else if (st != CRD_E_MEMORY) {
                fail_msg("allocation %d: %s", (int)fail_at, crd_error_text(ctx));
            }
            crdi_live_destroy(l);
            crd_master_destroy(m);
            crd_system_destroy(s);
            crd_context_destroy(ctx);
            check_int(a.live, 0);
            if (st == CRD_OK) {
                check(fail_at > 60);
                break;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_say_what_there_is),
        cmocka_unit_test(tunable_parameters_and_free_inputs_can_be_set),
        cmocka_unit_test(signals_beyond_the_limit_are_counted),
        cmocka_unit_test(a_row_has_the_values_of_its_time),
        cmocka_unit_test(rows_are_the_recorded_ones),
        cmocka_unit_test(rows_that_find_no_room_are_counted),
        cmocka_unit_test(rows_and_snapshots_keep_their_distance_on_the_clock),
        cmocka_unit_test(events_come_in_order_and_the_oldest_are_forgotten),
        cmocka_unit_test(a_long_text_is_cut_at_a_whole_character),
        cmocka_unit_test(what_is_no_text_becomes_one),
        cmocka_unit_test(how_it_ends_is_heard_without_a_record),
        cmocka_unit_test(an_exchange_hears_its_start_and_end_once_beside_a_page),
        cmocka_unit_test(a_snapshot_stays_until_there_is_a_newer_one),
        cmocka_unit_test(the_last_snapshot_has_the_numbers_of_the_verdict),
        cmocka_unit_test(a_bond_shows_its_power),
        cmocka_unit_test(overruns_become_events),
        cmocka_unit_test(a_run_that_waits_begins_when_it_is_told),
        cmocka_unit_test(a_pause_holds_the_run_until_it_goes_on),
        cmocka_unit_test(steps_are_counted_and_then_it_stands_again),
        cmocka_unit_test(a_stop_ends_the_run_cleanly_also_in_a_pause),
        cmocka_unit_test(the_stop_flag_ends_a_pause),
        cmocka_unit_test(a_pause_moves_the_grid_of_a_paced_run),
        cmocka_unit_test(a_unit_in_real_time_cannot_stand_still),
        cmocka_unit_test(a_setting_takes_effect_before_the_next_step),
        cmocka_unit_test(parameters_and_inputs_of_an_fmu_change_while_it_runs),
        cmocka_unit_test(a_change_is_an_event_of_the_record),
        cmocka_unit_test(what_a_unit_refuses_becomes_an_event),
        cmocka_unit_test(refused_commands_say_why),
        cmocka_unit_test(who_may_only_watch_commands_nothing),
        cmocka_unit_test(too_many_commands_are_refused),
        cmocka_unit_test(a_live_is_made_once_and_in_time),
        cmocka_unit_test(the_cycle_thread_takes_no_memory),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
