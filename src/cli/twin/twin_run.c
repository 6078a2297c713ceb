// cardan twin run: the filter over a recording.
#include "cli/twin/twin.h"
#include "shared/num.h"

#include <math.h>
#include <string.h>

typedef struct run_options {
    crdi_twin_command twin;
    crdi_list truth;
    const char* output;
    bool auto_noise, all_nodes;
} run_options;

typedef struct quantity { // one estimate: its value and its 95 % band
    crd_twin_quantity what;
    const char *name, *unit;
} quantity;

typedef struct truth { // a column that says what is true
    quantity of;
    int column;
    int64_t at; // its row
    double factor, offset;
} truth;

typedef struct run {
    crdi_twin_job j;
    const run_options* o;
    crd_twin* w;
    crd_recorder* recorder;
    quantity* q;
    int count;
    double busy; // s, in steps
    int64_t steps;
    double lb, flat; // of --noise auto
    // consistency: NIS per sensor and of all, NEES per truth and of all
    double *nis, *nees, *alone; // (rows x sensors), (rows x truths): together, each by itself
    truth* truths;
    int truth_count;
    crd_twin_quantity* whats; // (truths)
    double *values, *room;    // (truths) of the row; for crd_twin_errors
    int64_t* used;            // (sensors) before the row
    int64_t first;            // innovations that only tell where an unknown start was
} run;

static crd_status list_quantities(run* r)
{
    const crd_netlist* n = r->j.n;
    const crd_twin_spec* s = &r->j.spec;
    const bool nodes = r->o->all_nodes || !n->output_count;
    const int most = n->output_count + n->node_count + s->source_count + s->parameter_count;
    r->q = crdi_arena_new(&r->j.arena, (size_t)most + 1, sizeof *r->q);
    if (!r->q) { return CRD_E_MEMORY; }
    for (int i = 0; i < n->output_count; i++) {
        const char* unit = n->outputs[i].unit;
        r->q[r->count++] = (quantity){{CRD_TWIN_OUTPUT, i}, n->outputs[i].name, unit ? unit : ""};
    }
    for (int i = 1; i < n->node_count && nodes; i++) {
        const char* name = crdi_arena_format(&r->j.arena, "v(%s)", n->nodes[i]);
        if (!name) { return CRD_E_MEMORY; }
        r->q[r->count++] = (quantity){{CRD_TWIN_NODE, i}, name, crdi_twin_job_unit(&r->j, name)};
    }
    for (int i = 0; i < s->source_count; i++) {
        r->q[r->count++] = (quantity){{CRD_TWIN_SOURCE, i}, s->sources[i].group.name, ""};
    }
    for (int i = 0; i < s->parameter_count; i++) {
        r->q[r->count++] = (quantity){{CRD_TWIN_PARAMETER, i}, s->parameters[i].group.name, ""};
    }
    return CRD_OK;
}

// NAME, NAME.low and NAME.high per estimate, then measured and expected value per sensor
static crd_status open_recorder(run* r)
{
    crd_context* ctx = r->j.cli->ctx;
    const int sensors = r->j.spec.sensor_count, count = 3 * r->count + 2 * sensors;
    crd_column* c = crdi_arena_new(&r->j.arena, (size_t)count + 1, sizeof *c);
    bool good = c != NULL;
    for (int i = 0; i < r->count && good; i++) {
        static const char* const ends[] = {"", ".low", ".high"};
        static const char* const says[] = {"estimate", "2.5 % quantile", "97.5 % quantile"};
        for (int k = 0; k < 3; k++) {
            const char* name = crdi_arena_format(&r->j.arena, "%s%s", r->q[i].name, ends[k]);
            c[3 * i + k] = (crd_column){
                .name = name, .unit = r->q[i].unit, .description = says[k], .type = CRD_FLOAT64};
            good = good && name;
        }
    }
    for (int i = 0; i < sensors && good; i++) {
        const crd_twin_sensor* s = &r->j.spec.sensors[i];
        const char* unit = s->unit ? s->unit : crdi_twin_job_unit(&r->j, s->what);
        const char* a = crdi_arena_format(&r->j.arena, "%s.measured", s->name);
        const char* b = crdi_arena_format(&r->j.arena, "%s.innovation", s->name);
        c[3 * r->count + 2 * i] =
            (crd_column){.name = a, .unit = unit, .description = "", .type = CRD_FLOAT64};
        c[3 * r->count + 2 * i + 1] = (crd_column){
            .name = b, .unit = unit, .description = "measured - expected", .type = CRD_FLOAT64};
        good = good && a && b;
    }
    if (!good) { return CRD_E_MEMORY; }
    const crd_recorder_options opt = {
        .path = r->o->output, .columns = c, .column_count = count, .title = r->j.path};
    return crd_recorder_create(ctx, &opt, &r->recorder);
}

static crd_status record(run* r, double t, const double* y) // NULL: it does not count
{
    crd_word* to = crd_recorder_begin(r->recorder);
    if (!to) { return CRD_E_IO; }
    const int sensors = r->j.spec.sensor_count;
    to[0].real = t;
    for (int i = 0; i < r->count; i++) {
        const crd_estimate e = crd_twin_now(r->w, r->q[i].what);
        const bool positive = r->q[i].what.kind == CRD_TWIN_PARAMETER && e.value > 0;
        const double factor = positive ? exp(1.96 * e.sd / e.value) : 0;
        to[1 + 3 * i].real = e.value;
        to[2 + 3 * i].real = positive ? e.value / factor : e.value - 1.96 * e.sd;
        to[3 + 3 * i].real = positive ? e.value * factor : e.value + 1.96 * e.sd;
    }
    for (int i = 0; i < sensors; i++) {
        to[1 + 3 * r->count + 2 * i].real = y ? y[i] : NAN;
        to[2 + 3 * r->count + 2 * i].real =
            !y || isnan(y[i]) ? NAN : crd_twin_sensor_now(r->w, i).innovation;
    }
    crd_recorder_end(r->recorder);
    return CRD_OK;
}

// ---- consistency -------------------------------------------------------------------------------

// COLUMN[=NAME], NAME an output, source, value or node
static crd_status find_truth(run* r, const char* text, truth* out)
{
    crd_context* ctx = r->j.cli->ctx;
    const char* equals = strchr(text, '=');
    const char* name = equals ? equals + 1 : text;
    const char* column =
        crdi_arena_text(&r->j.arena, text, equals ? (size_t)(equals - text) : strlen(text));
    if (!column) { return CRD_E_MEMORY; }
    out->of.name = NULL;
    for (int i = 0; i < r->count; i++) {
        if (strcmp(r->q[i].name, name) == 0) { out->of = r->q[i]; }
    }
    const int32_t node = crd_netlist_node(r->j.n, name);
    if (!out->of.name && node > 0) {
        const char* what = crdi_arena_format(&r->j.arena, "v(%s)", name);
        if (!what) { return CRD_E_MEMORY; }
        out->of = (quantity){{CRD_TWIN_NODE, node}, name, crdi_twin_job_unit(&r->j, what)};
    }
    if (!out->of.name) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND,
                         "--truth '%s': '%s' is no output, source, value to find or node of %s",
                         text, name, r->j.path);
    }
    out->column = crd_table_find(r->j.table, column);
    if (out->column < 0) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND, "--truth '%s': %s has no column '%s'", text,
                         r->j.table->path, column);
    }
    return crdi_twin_column(&r->j, &r->j.table->columns[out->column], out->of.unit, &out->factor,
                            &out->offset);
}

static crd_status prepare_consistency(run* r)
{
    crd_status st = CRD_OK;
    const crdi_list* list = &r->o->truth;
    const size_t count = (size_t)list->count, n = (size_t)crd_twin_size(r->w);
    const size_t sensors = (size_t)r->j.spec.sensor_count, rows = (size_t)r->j.data.rows;
    r->nis = crdi_arena_new(&r->j.arena, rows * sensors, sizeof *r->nis);
    r->nees = crdi_arena_new(&r->j.arena, 2 * rows * count + 1, sizeof *r->nees);
    r->alone = r->nees + rows * count;
    r->truths = crdi_arena_new(&r->j.arena, count + 1, sizeof *r->truths);
    r->values = crdi_arena_new(&r->j.arena, count + 1, sizeof *r->values);
    r->room = crdi_arena_new(&r->j.arena, count * (n + 2) + 2 * n + 1, sizeof *r->room);
    r->used = crdi_arena_new(&r->j.arena, sensors, sizeof *r->used);
    r->whats = crdi_arena_new(&r->j.arena, count + 1, sizeof *r->whats);
    CRD_TRY(r->nis && r->nees && r->truths && r->whats && r->values && r->room && r->used
                ? CRD_OK
                : CRD_E_MEMORY);
    for (int i = 0; i < list->count; i++) {
        CRD_TRY(find_truth(r, list->items[i], &r->truths[i]));
        r->whats[i] = r->truths[i].of.what;
    }
    r->truth_count = list->count;
    // As in diffuse filters: the first innovations say where it began, not how good the filter is.
    r->first = r->j.data.start_unknown ? crd_twin_states(r->w) : 0;
fail:
    return st;
}

// Sensors are taken one after the other, each given those before it: their innovations are
// independent, and the sum of nu^2 / s is nu' S^-1 nu of all. (The published filter takes them
// together; of theirs the mean is right, and the bounds of all sensors are a little narrow.)
static void add_innovations(run* r, int64_t row)
{
    const int sensors = r->j.spec.sensor_count;
    for (int i = 0; i < sensors; i++) {
        const crd_twin_sensor_state s = crd_twin_sensor_now(r->w, i);
        const bool taken = s.used > r->used[i] && s.sd > 0;
        const bool counts = taken && r->first == 0;
        r->used[i] = s.used;
        if (taken && r->first > 0) { r->first--; }
        r->nis[row * sensors + i] = counts ? s.innovation / s.sd : NAN;
    }
}

static void add_errors(run* r, int64_t row)
{
    const int count = r->truth_count;
    for (int i = 0; i < count; i++) {
        truth* k = &r->truths[i];
        const crd_table_column* c = &r->j.table->columns[k->column];
        r->values[i] = k->factor * crdi_twin_cell(&r->j, c, row, &k->at) + k->offset;
        crd_twin_errors(r->w, &r->whats[i], &r->values[i], 1, &r->alone[row * count + i], r->room);
    }
    crd_twin_errors(r->w, r->whats, r->values, count, &r->nees[row * count], r->room);
}

static crd_status follow_recording(run* r)
{
    const crd_twin_data* d = &r->j.data;
    const int sensors = r->j.spec.sensor_count;
    crd_status st = crd_twin_begin(r->w, d->start);
    for (int64_t row = 0; row < d->rows && st == CRD_OK; row++) {
        const int64_t before = crdi_now_ns();
        st = crd_twin_follow(r->w, d, row);
        r->busy += 1e-9 * (double)(crdi_now_ns() - before);
        const bool counts = !(d->times[row] < d->from || d->times[row] > d->to);
        if (st == CRD_OK && r->recorder) {
            st = record(r, d->times[row], counts ? d->measurements + row * sensors : NULL);
        }
        if (st == CRD_OK) {
            add_innovations(r, row);
            add_errors(r, row);
        }
        r->steps += st == CRD_OK;
        if (row % 1000 == 0) {
            crdi_progress(r->j.cli->ctx, "estimating", (double)row, (double)d->rows, "rows");
        }
    }
    crdi_progress_end(r->j.cli->ctx);
    return st;
}

static void put_estimates(crdi_result* out, const run* r)
{
    enum { MOST_ROWS = 40 };
    static const crdi_column columns[] = {{"estimate at the end", "name", "%s"},
                                          {" ", "unit", "%s"},
                                          {">value", "value", "%.6g"},
                                          {">sd", "sd", "%.2g"},
                                          {0}};
    crdi_result* all = crdi_array(out, "estimates");
    for (int i = 0; i < r->count; i++) {
        const crd_estimate e = crd_twin_now(r->w, r->q[i].what);
        crdi_result* row = crdi_row(all);
        crdi_put(row, TEXT("name", r->q[i].name), TEXT("unit", r->q[i].unit),
                 REAL("value", e.value), REAL("sd", e.sd));
        if (i >= MOST_ROWS) { crdi_only_json(row); }
    }
    crdi_show_table(out, all, columns, "");
}

static void put_sensors(crdi_result* out, const run* r)
{
    static const crdi_column columns[] = {
        {"sensor", "name", "%s"},      {">used", "used", "%d"}, {">missing", "missing", "%d"},
        {">refused", "refused", "%d"}, {" ", "remark", "%s"},   {0}};
    crdi_result* sensors = crdi_array(out, "sensors");
    for (int i = 0; i < r->j.spec.sensor_count; i++) {
        const crd_twin_sensor_state s = crd_twin_sensor_now(r->w, i);
        crdi_put(crdi_row(sensors), TEXT("name", r->j.spec.sensors[i].name), INT("used", s.used),
                 INT("missing", s.missing), INT("refused", s.gated), BOOL("stuck", s.stuck),
                 BOOL("wild", s.wild),
                 CELL("remark", s.stuck  ? "stuck"
                                : s.wild ? "wild"
                                         : ""));
    }
    crdi_show_table(out, sensors, columns, "");
}

// More refused than the gate refuses of right ones: P(X >= k) of Poisson's distribution below 1e-3
static bool too_many_refused(const run* r, crd_twin_sensor_state s)
{
    const double expected = (1 - r->j.spec.gate) * (double)(s.used + s.gated);
    return s.gated > 0 && crdi_num_chi2(2 * expected, 2 * (double)s.gated) < 1e-3;
}

static crdi_result* put_judged(crdi_result* row, crdi_result* out, const char* name,
                               const char* test, crd_consistency c, const char* more)
{
    crdi_put(row, TEXT("name", name), AS(TEXT("test", test), test), REAL("mean", c.mean),
             REAL("low", c.low), REAL("high", c.high), REAL("inside", c.inside),
             INT("rows", c.count), TEXT("verdict", crd_verdict_text(c.verdict)),
             CELL("right", c.count ? crdi_worded(out, "%.3g .. %.3g", c.low, c.high) : ""),
             CELL("said", crdi_worded(out, "%s%s", crd_verdict_text(c.verdict), more)));
    return row;
}

static void put_consistency(crdi_result* out, const run* r)
{
    static const crdi_column columns[] = {{"consistency", "name", "%s"},
                                          {" ", "test", "%s"},
                                          {">mean", "mean", "%.3g"},
                                          {">right", "right", "%s"},
                                          {">in 95 %", "inside", "100*%.1f %%"},
                                          {" ", "said", "%s"},
                                          {0}};
    const int sensors = r->j.spec.sensor_count, truths = r->truth_count;
    const int64_t rows = r->j.data.rows;
    crdi_result* all = crdi_array(out, "consistency");
    bool refused = false;
    for (int i = 0; i < sensors; i++) {
        const crd_twin_sensor_state s = crd_twin_sensor_now(r->w, i);
        const bool many = too_many_refused(r, s);
        const char* more = many ? crdi_worded(out, ", but %.2g %% refused",
                                              100.0 * (double)s.gated / (double)(s.used + s.gated))
                                : "";
        refused = refused || many;
        put_judged(crdi_row(all), out, r->j.spec.sensors[i].name, "NIS",
                   crd_consistency_judge(r->nis + i, 1, sensors, rows, false), more);
    }
    crd_consistency c = crd_consistency_judge(r->nis, sensors, sensors, rows, false);
    put_judged(crdi_row(all), out, "all sensors", "NIS", c, "");
    crd_verdict verdict = c.verdict;
    for (int i = 0; i < r->truth_count; i++) {
        put_judged(crdi_row(all), out, r->truths[i].of.name, "NEES",
                   crd_consistency_judge(r->alone + i, 1, truths, rows, true), "");
    }
    if (r->truth_count) {
        c = crd_consistency_judge(r->nees, truths, truths, rows, true);
        put_judged(crdi_row(all), out, "all truths", "NEES", c, "");
        if (c.verdict == CRD_VERDICT_CONFIDENT || verdict != CRD_VERDICT_CONFIDENT) {
            verdict = c.verdict > CRD_VERDICT_CONSISTENT ? c.verdict : verdict;
        }
    }
    crdi_show_table(out, all, columns, "");
    crdi_put(out, TEXT("verdict", crd_verdict_text(verdict)), BOOL("too_many_refused", refused));
    crdi_say(out, "\nthe twin is %s%s\n",
             verdict == CRD_VERDICT_CONFIDENT  ? "TOO CONFIDENT: errors are larger than its bands "
                                                 "say; more noise of sensors, states or sources, or "
                                                 "a better model"
             : verdict == CRD_VERDICT_CAUTIOUS ? "too cautious: errors are smaller than its bands "
                                                 "say; less noise"
             : verdict == CRD_VERDICT_NONE     ? "not judged: nothing was measured"
                                               : "consistent: its bands are as wide as its errors",
             refused ? ", in what it used; more measurements were refused than chance explains"
                     : "");
}

static void put_twin_run(crdi_result* out, const run* r)
{
    const crdi_twin_job* j = &r->j;
    char each[32];
    crdi_put(out, REAL("end", crd_twin_time(r->w)), INT("steps", r->steps));
    crdi_say(out, "twin     %d states, %d sensor%s, %d source%s and %d value%s to find\n",
             crd_twin_states(r->w), j->spec.sensor_count, crdi_plural(j->spec.sensor_count),
             j->spec.source_count, crdi_plural(j->spec.source_count), j->spec.parameter_count,
             crdi_plural(j->spec.parameter_count));
    crdi_say(out, "time     %g s to %g s in %lld steps of %g s\n", j->data.start,
             crd_twin_time(r->w), (long long)r->steps, j->spec.step);
    crdi_twin_put_time(out, j);
    crdi_say(out, "speed    %s per step\n",
             crdi_format_seconds(each, r->steps ? r->busy / (double)r->steps : 0));
    if (r->o->output) {
        crdi_say(out, "results  %lld rows in %s\n", (long long)r->steps, r->o->output);
    }
    crdi_say(out, "\n");
    put_estimates(out, r);
    crdi_say(out, "\n");
    put_sensors(out, r);
    crdi_say(out, "\n");
    put_consistency(out, r);
}

static crd_status choose_noise(run* r, crdi_result* out)
{
    crd_context* ctx = r->j.cli->ctx;
    crd_twin_spec* s = &r->j.spec;
    crd_twin_source* sources =
        crdi_arena_new(&r->j.arena, (size_t)s->source_count + 1, sizeof *sources);
    if (!sources) { return CRD_E_MEMORY; }
    if (s->source_count) { memcpy(sources, s->sources, (size_t)s->source_count * sizeof *sources); }
    const crd_status st = crd_twin_whiten(ctx, r->j.n, s, sources, &r->j.data, &r->lb, &r->flat);
    char text[200];
    if (st == CRD_E_LIMIT) {
        snprintf(text, sizeof text,
                 "no noise makes the innovations white (Ljung-Box %.2f at best): the model misses "
                 "something",
                 r->lb);
        crdi_message(r->j.cli, CRD_LOG_WARNING, text);
        return CRD_OK;
    }
    if (st == CRD_OK) {
        if (s->source_count) {
            crdi_say(out, "noise    %.3g of %s per step: Ljung-Box %.2f, flatness %.2f\n",
                     sources[0].noise, sources[0].group.name, r->lb, r->flat);
        } else {
            crdi_say(out, "noise    %.3g of the states per step: Ljung-Box %.2f, flatness %.2f\n",
                     s->state_noise, r->lb, r->flat);
        }
    }
    return st;
}

static crd_status run_twin(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    run r = {.o = options};
    crd_status st = crdi_twin_load(&r.j, cli, &r.o->twin, arguments->items[0], NAN);
    if (st == CRD_OK) { st = crdi_twin_check_output(&r.j, r.o->output); }
    if (st == CRD_OK) {
        st = crd_twin_require_observable(cli->ctx, r.j.n, &r.j.spec, &r.j.data, false);
    }
    if (st == CRD_OK && r.o->auto_noise) { st = choose_noise(&r, out); }
    if (st == CRD_OK) { st = crd_twin_create(cli->ctx, r.j.n, &r.j.spec, &r.w); }
    if (st == CRD_OK) { st = list_quantities(&r); }
    if (st == CRD_OK) { st = prepare_consistency(&r); }
    if (st == CRD_OK && r.o->output) { st = open_recorder(&r); }
    if (st == CRD_OK) { st = follow_recording(&r); }
    if (r.recorder) {
        const crd_status end = crd_recorder_finish(r.recorder);
        if (st == CRD_OK) { st = end; }
    }
    if (st == CRD_OK) { put_twin_run(out, &r); }
    crd_recorder_destroy(r.recorder);
    crd_twin_destroy(r.w);
    crdi_twin_clear(&r.j);
    return st;
}

static const crdi_option rows[] = {
    CRDI_TWIN_OPTIONS(run_options, twin),
    OPT_FLAG(run_options, auto_noise, "auto-noise",
             "choose the noise of sources (without sources: of the states) by the whiteness of the "
             "innovations"),
    OPT_LIST(run_options, truth, "truth", "COLUMN[=NAME]",
             "a column of the recording with the true value of an output, source, value to find or "
             "node: the errors of the estimates are judged by it (NEES); may be given several "
             "times"),
    OPT_FLAG(run_options, all_nodes, "all-nodes",
             "estimates of every node, not of the outputs alone"),
    OPT_FILE(run_options, output, "output", "csv|mf4|mat",
             "result file: every estimate with its 95 % band, every sensor with its innovation",
             .short_name = 'o'),
    CRDI_JSON_OPTION("print the estimates at the end and the consistency as JSON"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_twin_run = {
    .name = "twin run",
    .arguments = "FILE",
    .summary = "estimate what no sensor measures, along a recording",
    .description =
        "Follows the network along a recording: outputs, unknown sources and values with their "
        "standard deviations. A sensor that drops out widens them; one that is stuck or wild is "
        "refused and reported. At the end it says whether the bands were as wide as the errors: by "
        "the innovations always (NIS), by the errors where the truth is known (--truth, NEES). "
        "FILE is the description of a twin, or a netlist with --sensors.",
    .examples = {{"cardan twin run inverter.yaml -m drive.mf4 -o twin.mf4",
                  "junction temperatures with their bands"},
                 {"cardan twin run rc.cir --sensors '2,3' --sd 0.5 --unknown q0:walk:1:10:3 -m "
                  "test.csv",
                  "an unknown heat source"}},
    OPTIONS(rows, run_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "cir|yaml|yml|json",
    .run = run_twin,
};
