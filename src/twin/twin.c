// The filter: predict, then one sensor after the other.
#include "twin/twin.h"
#include "shared/circuit_part.h"

#include <math.h>
#include <string.h>

// A gain stands still when it changes by less than this, relative to its largest entry.
#define STILL 1e-6
// So many exact repetitions of a sensor with noise are those of a broken one.
#define STUCK_REPEATS 25
// A row may miss a step that is known by this part of it; the rest is carried to the next row.
#define SLACK 0.005
// Steps in which every sensor was refused before the covariance is widened, and how often that may
// happen in a row.
#define SILENT_STEPS 10
#define MAX_RESETS 5

crd_twin_spec crd_twin_defaults(void)
{
    return (crd_twin_spec){.state_sd = 1, .gate = 0.9999, .thesis_q = 100, .frozen_after = 50};
}

// ---- create ------------------------------------------------------------------------------------

static crd_status refuse_group(crd_twin* w, const char* what, const char* name, const char* why)
{
    return crdi_fail(w->ctx, CRD_E_RANGE, "twin: %s %s: %s", what, crdi_clip(name).text, why);
}

static crd_status check_group(crd_twin* w, const char* what, const crd_twin_group* g, bool source)
{
    if (g->count < 1) { return refuse_group(w, what, g->name, "has no parts"); }
    for (int i = 0; i < g->count; i++) {
        const bool there = g->parts[i] >= 0 && g->parts[i] < w->net->part_count;
        const crd_part* p = there ? &w->net->parts[g->parts[i]] : NULL;
        const bool is_source = there && crdi_part_is_source(p);
        const bool is_value = there && !is_source && crdi_part_kind_of(p)->unit;
        if (!there) { return refuse_group(w, what, g->name, "a part of it is not in the netlist"); }
        if (source && !is_source) {
            return refuse_group(w, what, g->name, "expected V or I (temperature, heat)");
        }
        if (!source && !is_value) { return refuse_group(w, what, g->name, "expected R, C or L"); }
        if (!source && w->net->parts[g->parts[i]].index >= 0) {
            return refuse_group(w, what, g->name, "has a law; its value cannot be estimated");
        }
        if (g->factors && !(isfinite(g->factors[i]) && (source || g->factors[i] > 0))) {
            return refuse_group(w, what, g->name, "a factor is not a number > 0");
        }
    }
    return CRD_OK;
}

static crd_status check_spec(crd_twin* w)
{
    const crd_twin_spec* s = &w->spec;
    if (!(s->step > 0 && isfinite(s->step))) {
        return crdi_fail(w->ctx, CRD_E_RANGE, "twin: step = %g s, expected > 0", s->step);
    }
    if (!(s->gate > 0 && s->gate <= 1)) {
        return crdi_fail(w->ctx, CRD_E_RANGE, "twin: gate = %g, expected a probability", s->gate);
    }
    if (!(s->state_sd >= 0 && s->state_noise >= 0)) {
        return crdi_fail(w->ctx, CRD_E_RANGE,
                         "twin: state_sd = %g, state_noise = %g, expected >= 0", s->state_sd,
                         s->state_noise);
    }
    if (s->sensor_count < 1) { return crdi_fail(w->ctx, CRD_E_RANGE, "twin: there is no sensor"); }
    for (int i = 0; i < s->sensor_count; i++) {
        if (!(s->sensors[i].sd > 0 && isfinite(s->sensors[i].sd))) {
            return crdi_fail(w->ctx, CRD_E_RANGE, "twin: sensor %s: sd = %g, expected > 0",
                             crdi_clip(s->sensors[i].name).text, s->sensors[i].sd);
        }
    }
    crd_status st = CRD_OK;
    for (int i = 0; i < s->parameter_count && st == CRD_OK; i++) {
        st = check_group(w, "parameter", &s->parameters[i].group, false);
        const double start = s->parameters[i].start;
        if (st == CRD_OK && !isnan(start) && !(start > 0 && isfinite(start))) {
            st = refuse_group(w, "parameter", s->parameters[i].group.name, "its start is not > 0");
        }
    }
    for (int i = 0; i < s->source_count && st == CRD_OK; i++) {
        st = check_group(w, "source", &s->sources[i].group, true);
        if (st == CRD_OK && s->sources[i].model == CRD_SOURCE_OSCILLATOR &&
            !(s->sources[i].frequency > 0 && s->sources[i].frequency * s->step < 0.5)) {
            st = refuse_group(w, "source", s->sources[i].group.name,
                              "its frequency has to lie between 0 and half of the sampling rate");
        }
    }
    return st;
}

// The two-sided quantile of the normal distribution, by Newton.
static double quantile(double probability)
{
    if (probability >= 1) { return (double)INFINITY; }
    double x = 1;
    for (int i = 0; i < 60; i++) {
        const double miss = erfc(x / 1.41421356237309515) - (1 - probability);
        const double slope = -0.79788456080286541 * exp(-x * x / 2);
        const double next = x - miss / slope;
        x = next > 8.5 ? 8.5 : next < x / 2 ? x / 2 : next;
    }
    return x;
}

static void* many(crd_twin* w, size_t n, size_t size)
{
    return crdi_arena_new(&w->arena, n + 1, size);
}

static bool twin_make_room(crd_twin* w)
{
    const size_t n = (size_t)w->n, p = (size_t)w->p, r = (size_t)w->r, k = (size_t)w->k;
    const size_t variables = (size_t)w->m->variables, d = sizeof(double);
    size_t uses = 1;
    for (int i = 0; i < w->net->output_count + w->net->expression_count; i++) {
        const crd_use* list;
        const crd_expression* e = i < w->net->output_count
                                      ? w->net->outputs[i].what
                                      : w->net->expressions[i - w->net->output_count];
        const size_t count = (size_t)crd_expression_uses(e, &list);
        uses = count > uses ? count : uses;
    }
    const size_t groups = k * sizeof(crd_twin_group) / d + 1;
    const size_t room = crdi_ud_room(w->n) + (size_t)w->law_count + r;
    return (w->inputs = many(w, (size_t)w->net->input_count, d)) && (w->v0 = many(w, r, d)) &&
           (w->v1 = many(w, r, d)) && (w->q = many(w, n, d)) && (w->q_before = many(w, n, d)) &&
           (w->theta0 = many(w, k, d)) && (w->p_now.u = many(w, n * n, d)) &&
           (w->p_now.d = many(w, n, d)) && (w->p_before.u = many(w, n * n, d)) &&
           (w->p_before.d = many(w, n, d)) && (w->f = many(w, p * p, d)) &&
           (w->d0 = many(w, p * r, d)) && (w->d1 = many(w, p * r, d)) &&
           (w->df = many(w, k * p * p, d)) && (w->dd0 = many(w, k * p * r, d)) &&
           (w->dd1 = many(w, k * p * r, d)) &&
           (w->work = many(w, crd_reduction_work_size(w->reduction, w->k), d)) &&
           (w->dt = many(w, k * variables * p, d)) && (w->db = many(w, k * variables * r, d)) &&
           (w->phi = many(w, n * n, d)) && (w->steady = many(w, p, d)) &&
           (w->room = many(w, room > groups ? room : groups, d)) &&
           (w->vector = many(w, 2 * r + 2 * n, d)) && (w->slope = many(w, n, d)) &&
           (w->values = many(w, 4 * uses, d)) &&
           (w->nothing = many(w, (size_t)w->spec.sensor_count, d)) &&
           (w->scratch.at = many(w, 2 * uses, sizeof(int32_t))) &&
           (w->scratch.factor = many(w, 2 * uses, d)) && (w->moving = many(w, r, sizeof(int32_t)));
}

static bool twin_lay_out(crd_twin* w)
{
    const crd_twin_spec* s = &w->spec;
    w->sources = many(w, (size_t)s->source_count, sizeof *w->sources);
    w->sensors = many(w, (size_t)s->sensor_count, sizeof *w->sensors);
    w->select = many(w, (size_t)w->r * (size_t)s->source_count, sizeof *w->select);
    w->law_parts = many(w, (size_t)w->net->part_count, sizeof *w->law_parts);
    w->law_values = many(w, (size_t)w->net->part_count, sizeof *w->law_values);
    if (!w->sources || !w->sensors || !w->select || !w->law_parts || !w->law_values) {
        return false;
    }
    for (int i = 0; i < s->source_count; i++) {
        const crd_twin_group* g = &s->sources[i].group;
        w->sources[i] = (crdi_source){w->p + w->s, crdi_twin_source_size(s->sources[i].model)};
        w->s += w->sources[i].size;
        for (int a = 0; a < g->count; a++) {
            for (int j = 0; j < w->r; j++) {
                if (w->m->input_part[j] == g->parts[a]) {
                    w->select[(ptrdiff_t)j * s->source_count + i] = g->factors ? g->factors[a] : 1;
                }
            }
        }
    }
    for (int32_t i = 0; i < w->net->part_count; i++) {
        const crd_part* p = &w->net->parts[i];
        if (crdi_part_law(w->net, p)) { w->law_parts[w->law_count++] = i; }
    }
    w->n = w->p + w->s + w->k;
    w->p_now.n = w->p_before.n = w->n;
    w->constant = w->k == 0 && w->law_count == 0;
    return true;
}

static void find_moving(crd_twin* w)
{
    for (int j = 0; j < w->r; j++) {
        const crd_part* p = &w->net->parts[w->m->input_part[j]];
        bool known = p->index >= 0 && w->net->waves[p->index].kind != CRD_WAVE_DC;
        for (int i = 0; i < w->spec.source_count; i++) {
            known = known && w->select[(ptrdiff_t)j * w->spec.source_count + i] == 0;
        }
        if (known) { w->moving[w->moving_count++] = j; }
    }
}

static crd_status make_sensors(crd_twin* w)
{
    for (int i = 0; i < w->spec.sensor_count; i++) {
        crdi_sensor* s = &w->sensors[i];
        s->h = many(w, (size_t)w->n, sizeof(double));
        s->known = many(w, (size_t)w->r, sizeof(double));
        s->gain = many(w, (size_t)w->n, sizeof(double));
        if (!s->h || !s->known || !s->gain) { return CRD_E_MEMORY; }
        const crd_status st = crdi_twin_sensor_row(w, i);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_status crd_twin_create(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                           crd_twin** out)
{
    crd_status st;
    crd_twin* w = crdi_new(ctx, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    *w = (crd_twin){.ctx = ctx, .net = n, .spec = *spec, .k = spec->parameter_count};
    crd_arena_init(&w->arena, ctx);
    CRD_TRY(check_spec(w));
    CRD_TRY(crd_reduction_create(ctx, n, &w->reduction));
    w->m = crd_reduction_get(w->reduction);
    w->p = w->m->states;
    w->r = w->m->inputs;
    CRD_TRY(crdi_twin_start_create(w));
    CRD_TRY(twin_lay_out(w) && twin_make_room(w) ? CRD_OK : CRD_E_MEMORY);
    for (int i = 0; i < n->input_count; i++) {
        w->inputs[i] = n->inputs[i].start;
    }
    for (int i = 0; i < spec->sensor_count; i++) {
        w->nothing[i] = (double)NAN;
    }
    find_moving(w);
    w->gate = quantile(spec->gate);
    CRD_TRY(make_sensors(w));
    CRD_TRY(crdi_twin_noise_room(w));
    if (spec->filter == CRD_TWIN_THESIS) { CRD_TRY(crdi_thesis_create(w)); }
    *out = w;
    return CRD_OK;
fail:
    crd_twin_destroy(w);
    return st;
}

void crd_twin_destroy(crd_twin* w)
{
    if (!w) { return; }
    if (w->thesis) { crdi_thesis_destroy(w); }
    crdi_twin_start_destroy(w);
    crd_reduction_destroy(w->reduction);
    crd_arena_clear(&w->arena);
    crd_free(w->ctx, w);
}

// ---- begin -------------------------------------------------------------------------------------

static void start_vector(crd_twin* w)
{
    double* variance = w->slope;
    const double sd = w->spec.state_sd;
    for (int i = 0; i < w->p; i++) {
        w->q[i] = crdi_twin_start_value(w, i);
        variance[i] = sd * sd;
    }
    for (int i = 0; i < w->spec.source_count; i++) {
        const crd_twin_source* s = &w->spec.sources[i];
        double* q = w->q + w->sources[i].at;
        double* v = variance + w->sources[i].at;
        for (int c = 0; c < w->sources[i].size; c++) {
            q[c] = 0;
            v[c] = s->sd * s->sd;
        }
        q[0] = s->start;
        if (s->model == CRD_SOURCE_OSCILLATOR) { q[1] = s->start; }
    }
    for (int g = 0; g < w->k; g++) {
        const crd_twin_parameter* p = &w->spec.parameters[g];
        const double netlist =
            w->net->parts[p->group.parts[0]].value / (p->group.factors ? p->group.factors[0] : 1);
        w->q[w->p + w->s + g] = log(isnan(p->start) ? netlist : p->start);
        variance[w->p + w->s + g] = p->sd * p->sd;
    }
    crdi_ud_diagonal(&w->p_now, variance);
}

// What does not change from step to step, if the model does not: rows of sensors, and the parts of
// all sums that come from sources which stand still.
static void constant_rows(crd_twin* w)
{
    bool* moves = (bool*)w->room;
    memset(moves, 0, (size_t)w->r * sizeof *moves);
    for (int i = 0; i < w->moving_count; i++) {
        moves[w->moving[i]] = true;
    }
    for (int i = 0; i < w->p; i++) {
        w->steady[i] = 0;
        for (int j = 0; j < w->r; j++) {
            const ptrdiff_t at = (ptrdiff_t)i * w->r + j;
            if (!moves[j]) { w->steady[i] += (w->d0[at] + w->d1[at]) * w->v1[j]; }
        }
    }
    for (int i = 0; i < w->spec.sensor_count; i++) {
        crdi_sensor* s = &w->sensors[i];
        crdi_twin_row_slope(w, &s->row, s->h);
        memset(s->known, 0, (size_t)w->r * sizeof *s->known);
        for (int c = 0; c < s->row.count; c++) {
            for (int j = 0; j < w->r; j++) {
                s->known[j] += s->row.factor[c] * w->m->b[(ptrdiff_t)s->row.at[c] * w->r + j];
            }
        }
        s->steady = s->row.offset;
        for (int j = 0; j < w->r; j++) {
            if (!moves[j]) { s->steady += s->known[j] * w->v1[j]; }
        }
    }
}

void crdi_twin_remade(crd_twin* w)
{
    crdi_twin_noise(w);
    crdi_twin_transition(w);
    constant_rows(w);
}

crd_status crd_twin_begin(crd_twin* w, double t)
{
    w->begun = w->frozen = w->linearised = false;
    w->steps = 0;
    w->still = w->silent = w->resets = 0;
    w->t0 = t;
    w->h = w->spec.step;
    crd_status st = crdi_twin_start_begin(w, t);
    if (st < 0) { return st; }
    start_vector(w);
    crdi_twin_known(w, t, w->v1);
    memcpy(w->v0, w->v1, (size_t)w->r * sizeof *w->v0);
    st = crdi_twin_linearise(w);
    if (st < 0) { return st; }
    crdi_twin_remade(w);
    for (int i = 0; i < w->spec.sensor_count; i++) {
        crdi_sensor* s = &w->sensors[i];
        s->now = (crd_twin_sensor_state){0};
        s->last = (double)NAN;
        s->refused = s->jitter = 0;
        s->repeats = 0;
        memset(s->gain, 0, (size_t)w->n * sizeof *s->gain);
    }
    if (w->thesis) { st = crdi_thesis_begin(w); }
    w->begun = st == CRD_OK;
    return st;
}

void crd_twin_set_input(crd_twin* w, int input, double value)
{
    if (input >= 0 && input < w->net->input_count) { w->inputs[input] = value; }
}

// ---- time --------------------------------------------------------------------------------------

double crd_twin_time(const crd_twin* w)
{
    return w->t0 + (double)w->steps * w->spec.step;
}

double crdi_twin_row_time(const crd_twin* w, const crd_twin_data* d, int64_t row)
{
    return d->times ? d->times[row] : d->start + (double)(row + 1) * w->spec.step;
}

void crdi_twin_count_step(crd_twin* w)
{
    w->steps++;
    if (w->h != w->spec.step) { w->t0 += w->h - w->spec.step; }
}

static crd_status aim_by(crd_twin* w, double h)
{
    if (h == w->h) { return CRD_OK; }
    if (w->thesis) {
        return crdi_fail(w->ctx, CRD_E_UNSUPPORTED,
                         "twin: a row %g s after %g s, but the published filter has one step, %g s",
                         h, crd_twin_time(w), w->spec.step);
    }
    w->h = h;
    w->frozen = false;
    w->still = 0;
    const crd_status st = crdi_twin_matrices(w);
    if (st == CRD_OK) { crdi_twin_remade(w); }
    return st;
}

crd_status crdi_twin_aim(crd_twin* w, double t)
{
    const double step = w->spec.step, h = t - crd_twin_time(w);
    if (!(h > 0 && isfinite(h))) {
        return crdi_fail(w->ctx, CRD_E_RANGE, "twin: a row at %.10g s, expected after %.10g s", t,
                         crd_twin_time(w));
    }
    return aim_by(w, fabs(h - step) <= SLACK * step   ? step
                     : fabs(h - w->h) <= SLACK * w->h ? w->h
                                                      : h);
}

// ---- step --------------------------------------------------------------------------------------

static double twin_expected(const crd_twin* w, const crdi_sensor* s)
{
    if (!w->constant) { return crdi_twin_row_value(w, &s->row); }
    double sum = s->steady;
    for (int i = 0; i < w->n; i++) {
        sum += s->h[i] * w->q[i];
    }
    for (int j = 0; j < w->moving_count; j++) {
        sum += s->known[w->moving[j]] * w->v1[w->moving[j]];
    }
    return sum;
}

// A sensor that was noisy and now says the same again and again.
static void twin_watch(crdi_sensor* s, double measured, double sd)
{
    if (measured == s->last) {
        s->repeats++;
        s->now.stuck = s->repeats >= STUCK_REPEATS && s->jitter > 0.1 * sd * sd;
    } else {
        const double change = measured - s->last;
        if (isfinite(change)) {
            const double square = change * change, most = 4 * sd * sd;
            s->jitter += ((square < most ? square : most) - s->jitter) / 50;
        }
        s->repeats = 0;
        s->now.stuck = false;
    }
    s->last = measured;
}

static void count_refused(const crd_twin* w, crdi_sensor* s, bool refused)
{
    s->refused += ((refused ? 1 : 0) - s->refused) / 100;
    s->now.wild = s->refused > 0.05 + 10 * (1 - w->spec.gate);
    if (refused) {
        s->now.gated++;
    } else {
        s->now.used++;
    }
}

// False: refused.
static bool update_by_sensor(crd_twin* w, crdi_sensor* s, double sd, double measured, double* moved)
{
    const double model = twin_expected(w, s);
    double* v = w->room;
    if (!w->frozen) {
        if (!w->constant) { crdi_twin_row_slope(w, &s->row, s->h); }
        s->variance = crdi_ud_variance(&w->p_now, s->h, v) + sd * sd;
    }
    s->now.innovation = measured - model;
    if (!w->frozen) { s->now.sd = sqrt(s->variance); }
    twin_watch(s, measured, sd);
    if (s->now.stuck || !(fabs(s->now.innovation) <= w->gate * s->now.sd)) { return false; }
    if (!w->frozen) {
        double* gain = w->slope;
        double largest = 0, change = 0;
        crdi_ud_update(&w->p_now, sd * sd, v, gain);
        for (int i = 0; i < w->n; i++) {
            const double size = fabs(gain[i]), by = fabs(gain[i] - s->gain[i]);
            largest = size > largest ? size : largest;
            change = by > change ? by : change;
            s->gain[i] = gain[i];
        }
        if (change > *moved * largest) { *moved = change / largest; }
    }
    for (int i = 0; i < w->n; i++) {
        w->q[i] += s->gain[i] * s->now.innovation;
    }
    return true;
}

static crd_status diverged(crd_twin* w, const char* what)
{
    return crdi_fail(w->ctx, CRD_E_CONVERGENCE, "twin: the filter diverged at t = %g s: %s",
                     crd_twin_time(w) + w->h, what);
}

static crd_status check_health(crd_twin* w, int refused, int present)
{
    for (int i = 0; i < w->n; i++) {
        if (!isfinite(w->q[i]) || !(w->p_now.d[i] >= 0) || !isfinite(w->p_now.d[i])) {
            return diverged(
                w, "an estimate is not finite any more; start closer, or allow less noise");
        }
    }
    w->silent = present && refused == present ? w->silent + 1 : 0;
    if (present && refused < present) { w->resets = 0; }
    if (w->silent >= SILENT_STEPS) {
        if (++w->resets > MAX_RESETS) {
            return diverged(w, "every sensor contradicts the model; the model, its inputs or the "
                               "sensors' sd are wrong");
        }
        for (int i = 0; i < w->n; i++) { // doubt everything
            w->p_now.d[i] *= 100;
        }
        w->silent = 0;
        w->still = 0;
        w->frozen = false;
    }
    return CRD_OK;
}

// The covariance of a frozen filter within a step: predicted, and updated by the sensors before.
static void thaw(crd_twin* w, int sensors)
{
    if (!w->frozen) { return; }
    w->frozen = false;
    w->still = 0;
    crdi_ud_predict(&w->p_now, w->phi, w->noises, w->noise_g, w->noise_q, w->room);
    for (int i = 0; i < sensors; i++) {
        const double sd = w->spec.sensors[i].sd;
        crdi_ud_variance(&w->p_now, w->sensors[i].h, w->room);
        crdi_ud_update(&w->p_now, sd * sd, w->room, w->slope);
    }
}

static crd_status twin_measure(crd_twin* w, const double* measurements)
{
    int refused = 0, present = 0;
    double moved = 0;
    for (int i = 0; i < w->spec.sensor_count; i++) {
        crdi_sensor* s = &w->sensors[i];
        if (isnan(measurements[i])) {
            thaw(w, i);
            s->now.missing++;
            continue;
        }
        present++;
        const bool taken = update_by_sensor(w, s, w->spec.sensors[i].sd, measurements[i], &moved);
        count_refused(w, s, !taken);
        if (!taken) {
            thaw(w, i);
            refused++;
        }
    }
    if (w->frozen) { return CRD_OK; }
    const bool all = present == w->spec.sensor_count && !refused;
    w->still = moved < STILL && all ? w->still + 1 : 0;
    const crd_status st = check_health(w, refused, present);
    w->frozen =
        st == CRD_OK && w->constant && w->spec.frozen_after > 0 && w->still >= w->spec.frozen_after;
    return st;
}

static crd_status step_filter(crd_twin* w, const double* measurements)
{
    if (!w->constant) {
        const crd_status st = crdi_twin_linearise(w);
        if (st < 0) { return st; }
        crdi_twin_transition(w);
    }
    crdi_twin_predict_mean(w);
    if (!w->frozen) {
        crdi_ud_predict(&w->p_now, w->phi, w->noises, w->noise_g, w->noise_q, w->room);
    }
    return twin_measure(w, measurements);
}

static void copy_ud(const crdi_ud* from, crdi_ud* to)
{
    memcpy(to->u, from->u, (size_t)from->n * (size_t)from->n * sizeof *to->u);
    memcpy(to->d, from->d, (size_t)from->n * sizeof *to->d);
}

// Over h
static crd_status step_on(crd_twin* w, const double* measurements)
{
    memcpy(w->q_before, w->q, (size_t)w->n * sizeof *w->q);
    if (!w->frozen) { copy_ud(&w->p_now, &w->p_before); }
    const double t =
        w->h == w->spec.step ? w->t0 + (double)(w->steps + 1) * w->h : crd_twin_time(w) + w->h;
    for (int i = 0; i < w->moving_count; i++) {
        const int j = w->moving[i];
        const crd_part* p = &w->net->parts[w->m->input_part[j]];
        w->v0[j] = w->v1[j];
        w->v1[j] = crd_waveform_eval(&w->net->waves[p->index], t, w->inputs);
    }
    const crd_status st =
        w->thesis ? crdi_thesis_step(w, measurements) : step_filter(w, measurements);
    if (st < 0) {
        memcpy(w->q, w->q_before, (size_t)w->n * sizeof *w->q);
        copy_ud(&w->p_before, &w->p_now);
        for (int i = 0; i < w->moving_count; i++) {
            w->v1[w->moving[i]] = w->v0[w->moving[i]];
        }
        return st;
    }
    crdi_twin_count_step(w);
    return CRD_OK;
}

static crd_status twin_begun(crd_twin* w)
{
    return w->begun ? CRD_OK : crdi_fail(w->ctx, CRD_E_STATE, "twin: a step before crd_twin_begin");
}

crd_status crd_twin_step(crd_twin* w, const double* measurements)
{
    crd_status st = twin_begun(w);
    if (st == CRD_OK) { st = aim_by(w, w->spec.step); }
    return st < 0 ? st : step_on(w, measurements);
}

crd_status crd_twin_step_to(crd_twin* w, double t, const double* measurements)
{
    crd_status st = twin_begun(w);
    if (st == CRD_OK) { st = crdi_twin_aim(w, t); }
    return st < 0 ? st : step_on(w, measurements);
}

crd_status crd_twin_follow(crd_twin* w, const crd_twin_data* data, int64_t row)
{
    const int count = w->net->input_count;
    const double t = crdi_twin_row_time(w, data, row);
    const bool counts = data->measurements && !(t < data->from || t > data->to); // NaN: all
    for (int i = 0; i < count && data->inputs; i++) {
        crd_twin_set_input(w, i, data->inputs[row * count + i]);
    }
    if (row == 0) { crdi_twin_known(w, w->t0, w->v1); } // before the first row: as there
    return crd_twin_step_to(w, t,
                            counts ? data->measurements + row * w->spec.sensor_count : w->nothing);
}

// ---- estimates ---------------------------------------------------------------------------------

int crd_twin_states(const crd_twin* w)
{
    return w->p;
}

double crdi_twin_variance(const crd_twin* w, const double* h)
{
    return w->thesis ? crdi_thesis_variance(w, h) : crdi_ud_variance(&w->p_now, h, w->room);
}

static double sd_of(const crd_twin* w, const double* h)
{
    const double variance = crdi_twin_variance(w, h);
    return variance > 0 ? sqrt(variance) : 0;
}

double crdi_twin_quantity(const crd_twin* w, crd_twin_quantity q, double* h)
{
    const double nothing = (double)NAN;
    const int i = q.index;
    int at = -1;
    crdi_row row = w->scratch;
    double value = nothing;
    if (i < 0) { return nothing; }
    if (q.kind == CRD_TWIN_OUTPUT && i < w->net->output_count) {
        value = crdi_twin_expression(w, w->net->outputs[i].what, &row);
    } else if (q.kind == CRD_TWIN_NODE && i < w->net->node_count) {
        row.count = 1;
        row.at[0] = i;
        row.factor[0] = 1;
        value = crdi_twin_variable(w, i);
    } else if (q.kind == CRD_TWIN_STATE && i < w->p) {
        at = i;
    } else if (q.kind == CRD_TWIN_SOURCE && i < w->spec.source_count) {
        at = w->sources[i].at;
    } else if (q.kind == CRD_TWIN_PARAMETER && i < w->k) {
        at = w->p + w->s + i;
    } else {
        return nothing;
    }
    if (at < 0) {
        crdi_twin_row_slope(w, &row, h);
        return value;
    }
    memset(h, 0, (size_t)w->n * sizeof *h);
    h[at] = 1;
    return w->q[at];
}

crd_estimate crd_twin_now(const crd_twin* w, crd_twin_quantity q)
{
    const double value = crdi_twin_quantity(w, q, w->slope);
    const double sd = isnan(value) ? value : sd_of(w, w->slope);
    const bool logarithm = q.kind == CRD_TWIN_PARAMETER;
    return logarithm ? (crd_estimate){exp(value), exp(value) * sd} : (crd_estimate){value, sd};
}

crd_estimate crd_twin_output(const crd_twin* w, int output)
{
    return crd_twin_now(w, (crd_twin_quantity){CRD_TWIN_OUTPUT, output});
}

crd_estimate crd_twin_node(const crd_twin* w, int32_t node)
{
    return crd_twin_now(w, (crd_twin_quantity){CRD_TWIN_NODE, node});
}

crd_estimate crd_twin_parameter_now(const crd_twin* w, int parameter)
{
    return crd_twin_now(w, (crd_twin_quantity){CRD_TWIN_PARAMETER, parameter});
}

crd_estimate crd_twin_source_now(const crd_twin* w, int source)
{
    return crd_twin_now(w, (crd_twin_quantity){CRD_TWIN_SOURCE, source});
}

crd_estimate crd_twin_state(const crd_twin* w, int state)
{
    return crd_twin_now(w, (crd_twin_quantity){CRD_TWIN_STATE, state});
}

crd_twin_sensor_state crd_twin_sensor_now(const crd_twin* w, int sensor)
{
    return sensor < 0 || sensor >= w->spec.sensor_count ? (crd_twin_sensor_state){0}
                                                        : w->sensors[sensor].now;
}
