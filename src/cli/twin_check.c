// cardan twin check, cardan twin place: what can be found before anything is measured.
#include "cli/twin.h"

#include <math.h>

typedef struct check_options {
    crdi_twin_command twin;
    double stop, sensor_sd;
    bool states;
    int count;
    crdi_list at;
} check_options;

static const char* judge(const crd_observability* o, int i)
{
    return i >= o->rank       ? "not at all"
           : o->sigma[i] < 1  ? "hardly"
           : o->sigma[i] < 10 ? "roughly"
                              : "well";
}

static void print_observability(const crdi_twin_job* j, const crd_observability* o,
                                crd_arena* arena)
{
    crdi_grid g;
    printf("experiment: %lld measurements every %g s, %d sensor%s\n", (long long)j->data.rows,
           j->spec.step, j->spec.sensor_count, crdi_plural(j->spec.sensor_count));
    printf("rank %d of %d\n\n", o->rank, o->unknowns);
    crdi_grid_init(&g, j->cli->ctx, 3, 2);
    crdi_grid_add(&g, "unknown");
    crdi_grid_add(&g, "sd after / before");
    crdi_grid_add(&g, " ");
    for (int i = 0; i < o->unknowns; i++) {
        const double p = o->posterior[i];
        crdi_grid_add(&g, "%s", o->names[i]);
        crdi_grid_add(&g, "%.2g", p);
        crdi_grid_add(&g, "%s", p > 0.99 ? "nothing is learnt" : p > 0.5 ? "little is learnt" : "");
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
    printf("\n");
    crdi_grid_init(&g, j->cli->ctx, 3, 1);
    crdi_grid_add(&g, "signal/noise");
    crdi_grid_add(&g, "seen");
    crdi_grid_add(&g, "combination");
    for (int i = 0; i < o->unknowns; i++) {
        const char* name = crd_observability_name(o, i, arena);
        crdi_grid_add(&g, "%.3g", i >= o->rank ? 0.0 : o->sigma[i]);
        crdi_grid_add(&g, "%s", judge(o, i));
        crdi_grid_add(&g, "%s", name ? name : "?");
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
}

static json_t* json_of(const crd_observability* o, crd_arena* arena)
{
    json_t *all = json_array(), *directions = json_array();
    for (int i = 0; i < o->unknowns; i++) {
        json_array_append_new(all, json_pack("{s:s, s:o}", "name", o->names[i], "posterior",
                                             crdi_json_number(o->posterior[i])));
        json_t* v = json_array();
        for (int k = 0; k < o->unknowns; k++) {
            json_array_append_new(v, crdi_json_number(o->directions[i * o->unknowns + k]));
        }
        const char* name = crd_observability_name(o, i, arena);
        json_array_append_new(
            directions, json_pack("{s:o, s:s, s:s, s:o}", "sigma", crdi_json_number(o->sigma[i]),
                                  "seen", judge(o, i), "name", name ? name : "", "vector", v));
    }
    return json_pack("{s:i, s:i, s:o, s:o}", "rank", o->rank, "structural_nulls", o->structural,
                     "unknowns", all, "directions", directions);
}

static crd_status run_check(crdi_cli* cli, const void* options, const crdi_list* arguments,
                            crdi_result* out)
{
    (void)out;
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
    if (st == CRD_OK && o->twin.common.json) {
        st = crdi_json_print(cli, json_of(&seen, &arena));
    } else if (st == CRD_OK) {
        print_observability(&j, &seen, &arena);
        st = crdi_stdout_done(cli->ctx);
    }
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

static crd_status print_places(crdi_twin_job* j, const crd_placement* p, int count, bool json)
{
    if (json) {
        json_t* all = json_array();
        for (int i = 0; i < count; i++) {
            json_array_append_new(all, json_pack("{s:s, s:i, s:o, s:o}", "node",
                                                 j->n->nodes[p[i].node], "rank", p[i].rank,
                                                 "smallest", crdi_json_number(p[i].smallest),
                                                 "log_det", crdi_json_number(p[i].log_det)));
        }
        return crdi_json_print(j->cli, json_pack("{s:o}", "places", all));
    }
    crdi_grid g;
    crdi_grid_init(&g, j->cli->ctx, 4, 14);
    crdi_grid_add(&g, "sensor at node");
    crdi_grid_add(&g, "rank");
    crdi_grid_add(&g, "weakest signal/noise");
    crdi_grid_add(&g, "information");
    for (int i = 0; i < count; i++) {
        crdi_grid_add(&g, "%s%s", i ? "then " : "", j->n->nodes[p[i].node]);
        crdi_grid_add(&g, "%d", p[i].rank);
        crdi_grid_add(&g, "%.3g", p[i].smallest);
        crdi_grid_add(&g, "%.4g", p[i].log_det);
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
    return crdi_stdout_done(j->cli->ctx);
}

static crd_status run_place(crdi_cli* cli, const void* options, const crdi_list* arguments,
                            crdi_result* out)
{
    (void)out;
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
    if (st == CRD_OK && !o->twin.common.json) {
        printf("now rank %d of %d, weakest signal/noise %.3g\n", now.rank, now.unknowns,
               now.unknowns ? now.sigma[now.unknowns - 1] : 0);
    }
    if (st == CRD_OK) { st = print_places(&j, places, count, o->twin.common.json); }
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

static const check_options defaults = {
    .twin = CRDI_TWIN_DEFAULTS, .stop = NAN, .sensor_sd = NAN, .count = -1};

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
    .defaults = &defaults,
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
