// cardan twin tune: values of parts and sources from measurements.
#include "cli/twin/twin.h"
#include "shared/num.h"

#include <math.h>

typedef struct tune_options {
    crdi_twin_command twin;
    int how, iterations, points;
    double tolerance, decades;
    bool fit_noise, fit_start;
    const char* output;
} tune_options;

static const char* const ways[] = {"likelihood", "passes", NULL};

static void put_values(crdi_result* out, const crdi_twin_job* j, const crd_tune_result* r)
{
    static const crdi_column columns[] = {{"unknown", "name", "%s"},
                                          {">value", "value", "%.6g"},
                                          {">sd", "sd", "%.2g"},
                                          {">95 % interval", "interval", "%s"},
                                          {0}};
    crdi_result* unknowns = crdi_array(out, "unknowns");
    for (int i = 0; i < r->unknowns; i++) {
        const bool value = i < j->spec.parameter_count;
        const double rel = value ? r->sd[i] / r->value[i] : 0;
        const double low = value ? r->value[i] * exp(-1.96 * rel) : r->value[i] - 1.96 * r->sd[i];
        const double high = value ? r->value[i] * exp(1.96 * rel) : r->value[i] + 1.96 * r->sd[i];
        crdi_put(crdi_row(unknowns), TEXT("name", r->names[i]), REAL("value", r->value[i]),
                 REAL("sd", r->sd[i]),
                 CELL("interval", crdi_worded(out, "%.6g .. %.6g", low, high)));
    }
    crdi_show_table(out, unknowns, columns, "");
    crdi_put_numbers(out, "covariance", r->covariance, (int64_t)r->unknowns * r->unknowns);
}

// Three tests, each wrong about a right model in one or two of a hundred cases: no correlation
// (Ljung-Box over 50 lags, the worst of all sensors), the size that the sensors' sd say, and no
// better explanation by another start.
static void put_judgement(crdi_result* out, const crdi_twin_job* j, const crd_tune_result* r)
{
    const double freedom = (double)(r->measurements - r->unknowns), none = NAN;
    // Of n white values Ljung-Box over m lags varies by 1 + 2 m / n more than chi-square of m.
    const double lags = 50, n = (double)r->measurements / j->spec.sensor_count;
    const double limit = crdi_num_chi2_quantile(1 - 0.01 / j->spec.sensor_count, lags);
    const double white = 1 + (limit / lags - 1) * (1 + 2 * lags / n);
    const double size = freedom > 0 ? r->squares / freedom : none;
    const double low = freedom > 0 ? crdi_num_chi2_quantile(0.005, freedom) / freedom : none;
    const double high = freedom > 0 ? crdi_num_chi2_quantile(0.995, freedom) / freedom : none;
    const double start = crdi_num_chi2_quantile(0.99, fmax(r->start_states, 1));
    const bool sized = size >= low && size <= high;
    if (isnan(r->ljung_box)) {
        crdi_say(out, "\nwhether what is left is white cannot be told from so few rows\n");
    } else {
        crdi_say(out,
                 "\nwhat is left is %s: Ljung-Box %.2f per degree of freedom (white: up to %.2f), "
                 "flatness %.2f\n",
                 r->ljung_box <= white ? "white" : "not white: the model misses something",
                 r->ljung_box, white, r->flatness);
    }
    if (freedom > 0) {
        crdi_say(out, "its variance is %.3g of what the sensors' sd say (right: %.3g to %.3g)%s\n",
                 size, low, high,
                 sized         ? ""
                 : size > high ? ": the sds are too small, or the model misses something"
                               : ": the sds are too large");
    }
    const bool tested = !isnan(r->start_squares), fits = !(r->start_squares > start);
    if (tested && fits) {
        crdi_say(out, "the start is as the netlist says: chi-square %.3g (up to %.3g)\n",
                 r->start_squares, start);
    } else if (tested) {
        crdi_say(out,
                 "the start is NOT as the netlist says: chi-square %.3g (up to %.3g); values and "
                 "intervals do not hold. --fit-start finds it, --start says when it is\n",
                 r->start_squares, start);
    }
    crdi_put(crdi_object(out, "residual"),
             isnan(r->ljung_box) ? NONE("white") : BOOL("white", r->ljung_box <= white),
             REAL("white_limit", white), REAL("variance", size), REAL("variance_low", low),
             REAL("variance_high", high), tested ? BOOL("start_fits", fits) : NONE("start_fits"),
             REAL("start_chi_square", r->start_squares), REAL("start_limit", start));
}

// A start that is wrong beyond doubt (once in ten thousand right ones, where the text says it once
// in a hundred) is no success: the values are those of another model.
static crd_status check_start(crd_context* ctx, const crd_tune_result* r)
{
    const double most = crdi_num_chi2_quantile(1 - 1e-4, fmax(r->start_states, 1));
    if (!(r->start_squares > most)) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_LIMIT,
                     "the start is not as the netlist says, or the model misses something: "
                     "chi-square %.3g, up to %.3g is chance; the values found do not hold. "
                     "--fit-start finds the start, --start says when it is",
                     r->start_squares, most);
}

static void put_tuning(crdi_result* out, const crdi_twin_job* j, const crd_tune_result* r,
                       bool passes)
{
    static const crdi_column columns[] = {{"sensor", "name", "%s"},
                                          {">sd", "sd", "%.4g"},
                                          {">rms of what is left", "rms", "%.4g"},
                                          {0}};
    crdi_put(out, BOOL("converged", r->converged), INT("iterations", r->iterations));
    crdi_say(out, "%lld measurements every %g s", (long long)j->data.rows, j->spec.step);
    if (j->missing) { crdi_say(out, ", %lld values missing", (long long)j->missing); }
    crdi_say(out, "; %s after %d %s\n", r->converged ? "converged" : "NOT CONVERGED", r->iterations,
             passes ? "passes" : "iterations");
    crdi_twin_put_time(out, j);
    crdi_say(out, "\n");
    put_values(out, j, r);
    crdi_say(out, "\n");
    crdi_result* sensors = crdi_array(out, "sensors");
    for (int i = 0; i < j->spec.sensor_count; i++) {
        crdi_put(crdi_row(sensors), TEXT("name", j->spec.sensors[i].name),
                 REAL("sd", r->sensor_sd[i]), REAL("rms", r->residual_rms[i]));
    }
    crdi_show_table(out, sensors, columns, "");
    crdi_put(out, REAL("ljung_box", r->ljung_box), REAL("flatness", r->flatness),
             REAL("log_likelihood", r->likelihood));
    if (!passes) { put_judgement(out, j, r); }
}

// The description with what was found as start values.
static crd_status write_description(crdi_twin_job* j, const crd_tune_result* r, const char* path)
{
    crd_context* ctx = j->cli->ctx;
    crd_twin_spec s = j->spec;
    s.state_sd = j->d->spec.state_sd; // of a recording whose start is known
    crd_twin_parameter* p = crdi_arena_new(&j->arena, (size_t)s.parameter_count + 1, sizeof *p);
    crd_twin_source* u = crdi_arena_new(&j->arena, (size_t)s.source_count + 1, sizeof *u);
    crd_twin_sensor* sensors =
        crdi_arena_new(&j->arena, (size_t)s.sensor_count + 1, sizeof *sensors);
    if (!p || !u || !sensors) { return CRD_E_MEMORY; }
    for (int i = 0; i < s.parameter_count; i++) {
        p[i] = s.parameters[i];
        p[i].start = r->value[i];
        p[i].sd = fmin(p[i].sd, fmax(r->sd[i] / r->value[i], 1e-6));
    }
    for (int i = 0; i < s.source_count; i++) {
        u[i] = s.sources[i];
        u[i].start = r->value[s.parameter_count + i];
    }
    for (int i = 0; i < s.sensor_count; i++) {
        sensors[i] = s.sensors[i];
        sensors[i].sd = r->sensor_sd[i];
    }
    s.parameters = p;
    s.sources = u;
    s.sensors = sensors;
    crd_text body, text;
    crd_text_init(&body, ctx);
    crd_text_init(&text, ctx);
    crd_status st = crd_twin_write(j->n, &s, &body);
    // JSON is YAML; the circuit as it is called from here
    const char* circuit = j->own ? j->path : j->d->circuit;
    crdi_text_add(&text, "{ \"circuit\": ");
    crdi_text_json(&text, circuit ? circuit : "");
    crdi_text_add(&text, ",\n  %s", body.data ? body.data + 2 : "}");
    if (st == CRD_OK) { st = crdi_file_write(ctx, path, &text); }
    crd_text_clear(&body);
    crd_text_clear(&text);
    return st;
}

static crd_status run_tune(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    const tune_options* o = options;
    crdi_twin_job j;
    crd_tune_result r;
    crd_tune_options t = crd_tune_defaults();
    if (o->how >= 0) { t.how = (crd_tune_how)o->how; }
    if (o->iterations > 0) { t.max_iterations = o->iterations; }
    if (o->points >= 0) { t.points = o->points; }
    if (!isnan(o->tolerance)) { t.tolerance = o->tolerance; }
    if (!isnan(o->decades)) { t.decades = o->decades; }
    t.fit_noise = o->fit_noise;
    t.fit_start = o->fit_start;
    crd_status st = crdi_twin_load(&j, cli, &o->twin, arguments->items[0], NAN);
    if (st == CRD_OK) { st = crdi_twin_check_output(&j, o->output); }
    if (st == CRD_OK && j.spec.parameter_count + j.spec.source_count == 0 && !t.fit_start) {
        st = crdi_fail(cli->ctx, CRD_E_RANGE,
                       "%s: nothing to find; expected --estimate or --unknown", j.path);
    }
    if (st == CRD_OK) { st = crd_twin_tune(cli->ctx, j.n, &j.spec, &j.data, &t, &j.arena, &r); }
    if (st == CRD_OK && o->output) { st = write_description(&j, &r, o->output); }
    if (st == CRD_OK) { put_tuning(out, &j, &r, t.how == CRD_TUNE_PASSES); }
    if (st == CRD_OK && !r.converged) {
        st = crdi_fail(cli->ctx, CRD_E_CONVERGENCE,
                       "the values had not come to rest after %d %s; --iterations allows more",
                       r.iterations, t.how == CRD_TUNE_PASSES ? "passes" : "iterations");
    }
    if (st == CRD_OK && t.how != CRD_TUNE_PASSES) { st = check_start(cli->ctx, &r); }
    crdi_twin_clear(&j);
    return st;
}

static const crdi_option rows[] = {
    CRDI_TWIN_OPTIONS(tune_options, twin),
    OPT_CHOICE(
        tune_options, how, "how", ways,
        "likelihood: all measurements at once; passes: the filter again and again (Rodriguez "
        "2021); likelihood unless given"),
    OPT_FLAG(tune_options, fit_noise, "fit-noise", "find the noise of the sensors, too"),
    OPT_FLAG(tune_options, fit_start, "fit-start", "find the states at the start, too"),
    OPT_INT(tune_options, points, "points", "N",
            "of a logarithmic grid around the start values; 7 unless given, 0: begin with them"),
    OPT_NUMBER(tune_options, decades, "decades", NULL, CRDI_POSITIVE,
               "half the width of that grid; 3 unless given"),
    OPT_COUNT(tune_options, iterations, "iterations", "N", "at most; 100 unless given"),
    OPT_NUMBER(tune_options, tolerance, "tolerance", NULL, CRDI_POSITIVE,
               "change that ends it: relative, of passes absolute; 1e-10 unless given"),
    OPT_FILE(tune_options, output, "output", "yaml|json",
             "description of the twin with the values that were found, for cardan twin run",
             .short_name = 'o'),
    CRDI_JSON_OPTION("print values, covariance and residuals as JSON"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_twin_tune = {
    .name = "twin tune",
    .arguments = "FILE",
    .summary = "find values of parts and sources from measurements",
    .description =
        "Finds resistances, capacities, inductances and constant sources of a linear network from "
        "what sensors measured, by maximum likelihood, with standard deviations. Refuses what the "
        "sensors cannot tell. FILE is a netlist with --sensors and --estimate, or the description "
        "of a twin.",
    .examples = {{"cardan twin tune rc.cir --sensors '2,3' --sd 0.5 --estimate r2,r3 -m test.csv",
                  "two resistances from two thermometers"},
                 {"cardan twin tune inverter.yaml -m bench.mf4 --from 4s -o tuned.yaml",
                  "from the steady state at the end; the result is a description"}},
    OPTIONS(rows, tune_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "cir|yaml|yml|json",
    .run = run_tune,
};
