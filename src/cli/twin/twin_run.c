// cardan twin run: the filter over a recording.
#include "cli/twin/twin.h"

#include <math.h>
#include <string.h>

typedef struct run_options {
    crdi_twin_command twin;
    const char* output;
    bool auto_noise, all_nodes;
} run_options;

typedef enum quantity_kind { OUTPUT, NODE, SOURCE, PARAMETER, SENSOR } quantity_kind;

typedef struct quantity { // one estimate: its value and its 95 % band
    quantity_kind kind;
    int index;
    const char *name, *unit;
} quantity;

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
} run;

static crd_estimate estimate_of(const run* r, const quantity* q)
{
    switch (q->kind) {
    case OUTPUT:
        return crd_twin_output(r->w, q->index);
    case NODE:
        return crd_twin_node(r->w, q->index);
    case SOURCE:
        return crd_twin_source_now(r->w, q->index);
    case PARAMETER:
        return crd_twin_parameter_now(r->w, q->index);
    default:
        return (crd_estimate){NAN, NAN};
    }
}

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
        r->q[r->count++] = (quantity){OUTPUT, i, n->outputs[i].name, unit ? unit : ""};
    }
    for (int i = 1; i < n->node_count && nodes; i++) {
        const char* name = crdi_arena_format(&r->j.arena, "v(%s)", n->nodes[i]);
        if (!name) { return CRD_E_MEMORY; }
        r->q[r->count++] = (quantity){NODE, i, name, crdi_twin_job_unit(&r->j, name)};
    }
    for (int i = 0; i < s->source_count; i++) {
        r->q[r->count++] = (quantity){SOURCE, i, s->sources[i].group.name, ""};
    }
    for (int i = 0; i < s->parameter_count; i++) {
        r->q[r->count++] = (quantity){PARAMETER, i, s->parameters[i].group.name, ""};
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
        const crd_estimate e = estimate_of(r, &r->q[i]);
        const bool positive = r->q[i].kind == PARAMETER && e.value > 0;
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

static crd_status follow_recording(run* r)
{
    const crd_twin_data* d = &r->j.data;
    const int sensors = r->j.spec.sensor_count;
    const int64_t begin = crdi_now_ns();
    crd_status st = crd_twin_begin(r->w, d->start);
    for (int64_t row = 0; row < d->rows && st == CRD_OK; row++) {
        const int64_t before = crdi_now_ns();
        st = crd_twin_follow(r->w, d, row);
        r->busy += 1e-9 * (double)(crdi_now_ns() - before);
        const bool counts = !(d->times[row] < d->from || d->times[row] > d->to);
        if (st == CRD_OK && r->recorder) {
            st = record(r, d->times[row], counts ? d->measurements + row * sensors : NULL);
        }
        r->steps += st == CRD_OK;
        if (row % 1000 == 0) {
            crdi_show_progress(r->j.cli, begin, (int)(row / 1000), (int)(d->rows / 1000), "steps");
        }
    }
    crdi_show_progress(r->j.cli, begin, -1, 0, "");
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
        const crd_estimate e = estimate_of(r, &r->q[i]);
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
    OPT_FLAG(run_options, all_nodes, "all-nodes",
             "estimates of every node, not of the outputs alone"),
    OPT_FILE(run_options, output, "output", "csv|mf4|mat",
             "result file: every estimate with its 95 % band, every sensor with its innovation",
             .short_name = 'o'),
    CRDI_JSON_OPTION("print the estimates at the end as JSON"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_twin_run = {
    .name = "twin run",
    .arguments = "FILE",
    .summary = "estimate what no sensor measures, along a recording",
    .description =
        "Follows the network along a recording: outputs, unknown sources and values with their "
        "standard deviations. A sensor that drops out widens them; one that is stuck or wild is "
        "refused and reported. FILE is the description of a twin, or a netlist with --sensors.",
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
