// cardan twin check, cardan twin place: what can be found before anything is measured.
#include "cli/twin/twin.h"

#include <math.h>

typedef struct check_options {
    crdi_twin_command twin;
    double stop, sensor_sd;
    bool states;
    int count;
    crdi_list at;
} check_options;

static const char* twin_check_judge(const crd_observability* o, int i)
{
    return i >= o->rank       ? "not at all"
           : o->sigma[i] < 1  ? "hardly"
           : o->sigma[i] < 10 ? "roughly"
                              : "well";
}

static void put_observability(crdi_result* out, const crdi_twin_job* j, const crd_observability* o,
                              crd_arena* arena)
{
    static const crdi_column unknown_columns[] = {{"unknown", "name", "%s"},
                                                  {">sd after / before", "posterior", "%.2g"},
                                                  {" ", "remark", "%s"},
                                                  {0}};
    static const crdi_column direction_columns[] = {{">signal/noise", "signal", "%.3g"},
                                                    {"seen", "seen", "%s"},
                                                    {"combination", "shown", "%s"},
                                                    {0}};
    crdi_put(out, INT("rank", o->rank), INT("structural_nulls", o->structural));
    crdi_say(out, "experiment: %lld measurements every %g s, %d sensor%s\n",
             (long long)j->data.rows, j->spec.step, j->spec.sensor_count,
             crdi_plural(j->spec.sensor_count));
    crdi_say(out, "rank %d of %d\n\n", o->rank, o->unknowns);
    crdi_result *all = crdi_array(out, "unknowns"), *directions = crdi_array(out, "directions");
    for (int i = 0; i < o->unknowns; i++) {
        const double p = o->posterior[i];
        const char* name = crd_observability_name(o, i, arena);
        crdi_put(crdi_row(all), TEXT("name", o->names[i]), REAL("posterior", p),
                 CELL("remark", p > 0.99  ? "nothing is learnt"
                                : p > 0.5 ? "little is learnt"
                                          : ""));
        crdi_result* row = crdi_row(directions);
        crdi_put(row, REAL("sigma", o->sigma[i]), TEXT("seen", twin_check_judge(o, i)),
                 TEXT("name", name ? name : ""), CELL("shown", name ? name : "?"),
                 CELL("signal", crdi_worded(out, "%.3g", i >= o->rank ? 0.0 : o->sigma[i])));
        crdi_put_numbers(row, "vector", o->directions + i * o->unknowns, o->unknowns);
    }
    crdi_show_table(out, all, unknown_columns, "");
    crdi_say(out, "\n");
    crdi_show_table(out, directions, direction_columns, "");
}

static crd_status run_check(crdi_cli* cli, const void* options, const crdi_list* arguments,
                            crdi_result* out)
{
    const check_options* o = options;
    crdi_twin_job j;
    crd_arena arena;
    crd_observability seen = {0};
    crd_arena_init(&arena, cli->ctx);
    crd_status st =
        crdi_twin_load(&j, cli, &o->twin, arguments->items[0], isnan(o->stop) ? 0 : o->stop);
    if (st == CRD_OK && j.spec.parameter_count + j.spec.source_count == 0 && !o->states) {
        st = crdi_fail(cli->ctx, CRD_E_RANGE,
                       "%s: nothing to find; expected --estimate, --unknown or --states", j.path);
    }
    if (st == CRD_OK) {
        st = crd_twin_observe(cli->ctx, j.n, &j.spec, &j.data, o->states, &arena, &seen);
    }
    if (st == CRD_OK) { put_observability(out, &j, &seen, &arena); }
    if (st == CRD_OK && seen.structural) {
        st = crd_twin_require_observable(cli->ctx, j.n, &j.spec, &j.data, o->states);
    }
    crdi_twin_clear(&j);
    crd_arena_clear(&arena);
    return st;
}

static crd_status candidates(crdi_twin_job* j, const crdi_list* names, int32_t** out)
{
    *out = NULL;
    if (!names->count) { return CRD_OK; }
    *out = crdi_arena_new(&j->arena, (size_t)names->count, sizeof **out);
    if (!*out) { return CRD_E_MEMORY; }
    for (int i = 0; i < names->count; i++) {
        (*out)[i] = crd_netlist_node(j->n, names->items[i]);
        if ((*out)[i] < 0) {
            return crdi_fail(j->cli->ctx, CRD_E_NOT_FOUND, "--at: there is no node '%s' in %s",
                             names->items[i], j->path);
        }
    }
    return CRD_OK;
}

static void put_places(crdi_result* out, const crdi_twin_job* j, const crd_placement* p, int count)
{
    static const crdi_column columns[] = {{"sensor at node", "node", "%s"},
                                          {">rank", "rank", "%d"},
                                          {">weakest signal/noise", "smallest", "%.3g"},
                                          {">information", "log_det", "%.4g"},
                                          {0}};
    crdi_result* places = crdi_array(out, "places");
    for (int i = 0; i < count; i++) {
        const char* node = j->n->nodes[p[i].node];
        crdi_put(crdi_row(places),
                 AS(TEXT("node", node), crdi_worded(out, "%s%s", i ? "then " : "", node)),
                 INT("rank", p[i].rank), REAL("smallest", p[i].smallest),
                 REAL("log_det", p[i].log_det));
    }
    crdi_show_table(out, places, columns, "");
}

static crd_status run_place(crdi_cli* cli, const void* options, const crdi_list* arguments,
                            crdi_result* out)
{
    const check_options* o = options;
    crdi_twin_job j;
    crd_arena arena;
    crd_observability now;
    int32_t* nodes = NULL;
    int count = 0;
    crd_arena_init(&arena, cli->ctx);
    const int wanted = o->count > 0 ? o->count : 2;
    crd_placement* places = crdi_arena_new(&arena, (size_t)wanted, sizeof *places);
    crd_status st =
        crdi_twin_load(&j, cli, &o->twin, arguments->items[0], isnan(o->stop) ? 0 : o->stop);
    if (st == CRD_OK && !places) { st = CRD_E_MEMORY; }
    if (st == CRD_OK) { st = candidates(&j, &o->at, &nodes); }
    if (st == CRD_OK) {
        st = crd_twin_observe(cli->ctx, j.n, &j.spec, &j.data, false, &arena, &now);
    }
    const double sd = !isnan(o->sensor_sd)                  ? o->sensor_sd
                      : st == CRD_OK && j.spec.sensor_count ? j.spec.sensors[0].sd
                                                            : NAN;
    if (st == CRD_OK) {
        st = crd_twin_place(cli->ctx, j.n, &j.spec, &j.data, sd, nodes, o->at.count, wanted, &arena,
                            places, &count);
    }
    if (st == CRD_OK) {
        crdi_say(out, "now rank %d of %d, weakest signal/noise %.3g\n", now.rank, now.unknowns,
                 now.unknowns ? now.sigma[now.unknowns - 1] : 0);
        put_places(out, &j, places, count);
    }
    crdi_twin_clear(&j);
    crd_arena_clear(&arena);
    return st;
}

#define EXPERIMENT                                                                                 \
    {                                                                                              \
        .name = "stop", .type = CRDI_OPT_QUANTITY, .metavar = "TIME", .unit = "s",                 \
        .range = CRDI_POSITIVE, .offset = offsetof(check_options, stop),                           \
        .help = "how long the experiment takes; that of .tran unless given, or that of "           \
                "--measurements, whose inputs are used then"                                       \
    }

static const crdi_option check_rows[] = {
    CRDI_TWIN_OPTIONS(check_options, twin),
    EXPERIMENT,
    OPT_FLAG(check_options, states, "states", "the states at the start are unknown too"),
    CRDI_JSON_OPTION("print rank, posterior and directions as JSON"),
    CRDI_COMMON_OPTIONS,
};

static const crdi_option place_rows[] = {
    CRDI_TWIN_OPTIONS(check_options, twin),
    EXPERIMENT,
    OPT_COUNT(check_options, count, "count", "N", "how many sensors to add; 2 unless given"),
    OPT_LIST(check_options, at, "at", "NODE",
             "where a sensor could be put; every node unless given"),
    OPT_NUMBER(check_options, sensor_sd, "sensor-sd", NULL, CRDI_POSITIVE,
               "noise of a new sensor; that of the first one unless given"),
    CRDI_JSON_OPTION("print the places as JSON"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_twin_check = {
    .name = "twin check",
    .arguments = "FILE",
    .summary = "what can be found with these sensors and this experiment",
    .description =
        "Computes how every measurement would depend on every unknown, scaled by the noise of the "
        "sensors and by what is known beforehand (one e-fold of a value, the sd of a source), and "
        "says which unknowns can be found, which only in combination, and which not at all. "
        "Nothing has to be measured for that: the experiment is .tran's. FILE is a netlist with "
        "--sensors, or the description of a twin. Exit code 2 if something cannot be found at all.",
    .examples = {{"cardan twin check rc.cir --sensors '2,3' --sd 0.5 --estimate r1,r2,r3",
                  "r1 does not show at nodes 2 and 3"},
                 {"cardan twin check inverter.yaml --stop '1 s'", "a short experiment"}},
    OPTIONS(check_rows, check_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "cir|yaml|yml|json",
    .run = run_check,
};

const crdi_command crdi_command_twin_place = {
    .name = "twin place",
    .arguments = "FILE",
    .summary = "where one more sensor would tell most",
    .description =
        "Tries a further sensor at every node (or those of --at) and takes the one with which most "
        "can be told, then the next one beside it, and so on.",
    .examples = {{"cardan twin place inverter.yaml --count 2", "the two best nodes"}},
    OPTIONS(place_rows, check_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "cir|yaml|yml|json",
    .run = run_place,
};
