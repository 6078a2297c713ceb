// Connections as polynomials on the step. What the source will give is predicted and becomes the
// input; when the source has come there one sees how wrong that was: the defect.
//
//   past samples -> prediction u(s) -> input (value and derivatives, or what the unit can take)
//   new sample   -> defect u - y over the finished step -> which predictor comes next
//
// A unit that takes derivatives up to order q gets the polynomial of degree q that is nearest to
// the prediction: with q = 0 that is its mean, the Adams-Bashforth hold.
#include "master/master.h"

#include <math.h>

// ---- plan --------------------------------------------------------------------------------------

static bool is_textbook(crd_prediction p)
{
    return p == CRD_PREDICTION_HOLD || p == CRD_PREDICTION_LINEAR || p == CRD_PREDICTION_QUADRATIC;
}

// The output that is held may be evaluated again because others predict inputs that act on it at
// once: what is handed on is what the unit gave before.
static bool is_refreshed_for_others(const crdi_plan* plan, const crdi_connection* k)
{
    const crdi_member* p = &plan->members[k->from.member];
    const crd_unit* u = p->unit;
    for (int i = 0; p->predicted && p->predicts && i < plan->connection_count; i++) {
        const crdi_connection* c = &plan->connections[i];
        if (c->to.member == k->from.member && c->real && !is_textbook(c->spec->predict) &&
            crd_unit_depends(u, k->from.variable, c->to.variable, false)) {
            return true;
        }
    }
    return false;
}

void crdi_connections_mark_predicted(crdi_plan* plan)
{
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* c = &plan->connections[i];
        if (c->real && !is_textbook(c->spec->predict)) {
            plan->members[c->to.member].predicted = true;
            plan->members[c->from.member].predicts = true;
        }
    }
}

bool crdi_connection_predicts(const crdi_plan* plan, const crdi_connection* k)
{
    return k->real &&
           (k->spec->predict != CRD_PREDICTION_HOLD || k->corrected || plan->controlled ||
            plan->iterated || crdi_defect_is_recorded(plan, k) || is_refreshed_for_others(plan, k));
}

int crdi_prediction_order(const crdi_plan* plan, const crdi_connection* k)
{
    if (k->probed) { return 0; }
    if (plan->iterated) { return 2; }
    switch (k->spec->predict) {
    case CRD_PREDICTION_HOLD:
    case CRD_PREDICTION_AB2:
    case CRD_PREDICTION_AB3:
    case CRD_PREDICTION_AB4:
        return 0;
    case CRD_PREDICTION_LINEAR:
    case CRD_PREDICTION_TAYLOR1:
        return 1;
    default:
        return 2;
    }
}

// What a unit integrates is the running mean of an error, in which noise cancels.
static const double SMOOTH = 0.8;

// Without derivatives, those that are made of differences of values do.
crd_select_options crdi_prediction_select_options(const crdi_prediction* f)
{
    crd_select_options o = crd_select_defaults();
    o.tol = f->select_tol;
    o.smooth = SMOOTH;
    o.hold_only = !f->slope[0];
    if (!f->rates[0] && o.hold_only) {
        o.candidates = 1u << CRD_PREDICT_HOLD | 1u << CRD_PREDICT_AB2 | 1u << CRD_PREDICT_AB3;
    } else if (!f->rates[1]) {
        o.candidates &= ~(1u << CRD_PREDICT_HERMITE);
    }
    if (f->careful) { o.candidates &= ~(1u << CRD_PREDICT_HERMITE | 1u << CRD_PREDICT_AB3); }
    return o;
}

// A controlled step becomes short where predictions fail.
void crdi_prediction_be_careful(const crdi_plan* plan, crdi_prediction* f)
{
    if (f->predict != CRD_PREDICTION_AUTO || !plan->controlled) { return; }
    f->careful = true;
}

// Almost every connection: what it is predicted from, and what it becomes, are means of values, and
// steps are equal and made once. It goes without polynomials.
static bool is_plain(const crdi_plan* plan, const crdi_prediction* f)
{
    const bool once = !plan->controlled && !plan->iterated && !plan->times.multirate;
    const bool values = !f->rates[0] && !f->slope[0] && !f->middle && !f->textbook && !f->probed;
    const bool means = f->predict == CRD_PREDICTION_AUTO || f->predict >= CRD_PREDICTION_AB2;
    return once && values && means && plan->phase_count == 1 && !f->source->async &&
           !f->target->async;
}

void crdi_prediction_use_orders(const crdi_plan* plan, crdi_prediction* f)
{
    const crdi_connection* k = f->of;
    const crdi_member *a = f->source, *b = f->target;
    const int order = crdi_prediction_order(plan, k);
    for (int d = 0; d < 2; d++) {
        const bool given = a->rates[d] && d < k->rate_order;
        const bool taken = d < b->slope_order && d < order;
        f->rates[d] = given ? a->rates[d] + k->from.slot : NULL;
        f->slope[d] = taken ? &b->slopes[d][k->to.slot] : NULL;
    }
    f->careful = false;
    if (plan->controlled && !plan->sys->run.control.absolute) {
        f->select_tol = plan->sys->run.control.tolerance; // times scale, once that is known
    }
    f->plain = is_plain(plan, f);
}

crd_status crdi_prediction_bind(crdi_plan* plan, crdi_connection* k, crdi_prediction* f)
{
    const crdi_member *a = &plan->members[k->from.member], *b = &plan->members[k->to.member];
    const crd_prediction predict = k->probed ? CRD_PREDICTION_HOLD : k->spec->predict;
    *f = (crdi_prediction){.of = k,
                           .from = crdi_connection_from(plan, k),
                           .to = crdi_connection_to(plan, k),
                           .source = a,
                           .target = b,
                           .horizon = plan->controlled ? 0 : a->step,
                           .gain = k->gain,
                           .offset = k->offset,
                           .predict = predict,
                           .probed = k->probed,
                           .textbook = !plan->iterated && is_textbook(predict),
                           .scale_given = k->spec->scale > 0 ? k->spec->scale : 0,
                           .tolerance = k->spec->tolerance > 0 ? k->spec->tolerance : 0,
                           .stamp = -1};
    k->prediction = f;
    if (a->middles) {
        f->middle = a->middles + k->from.slot;
        f->output = crdi_arena_new(plan->arena, 1, sizeof *f->output);
        if (!f->output) { return CRD_E_MEMORY; }
    }
    crdi_prediction_use_orders(plan, f);
    f->event_count = a->async ? &a->run->jumps : &a->unit->events;
    k->from_name = crdi_end_name(plan, plan->arena, &k->from);
    k->to_name = crdi_end_name(plan, plan->arena, &k->to);
    if (!k->from_name || !k->to_name) { return CRD_E_MEMORY; }
    if (!plan->controlled && !plan->iterated) { return CRD_OK; }
    f->label = crdi_arena_format(plan->arena, "%s -> %s", k->from_name, k->to_name);
    return f->label ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_predictions_index(crdi_plan* plan, const crdi_connections* c)
{
    for (int i = 0; i < c->prediction_count; i++) {
        plan->members[c->predictions[i].of->to.member].flow_count++;
        plan->members[c->predictions[i].of->from.member].fed_count++;
    }
    for (int i = 0; i < plan->member_count; i++) {
        crdi_member* p = &plan->members[i];
        p->flows = crdi_arena_new(plan->arena, (size_t)p->flow_count, sizeof *p->flows);
        p->fed = crdi_arena_new(plan->arena, (size_t)p->fed_count, sizeof *p->fed);
        if (!p->flows || !p->fed) { return CRD_E_MEMORY; }
        p->flow_count = p->fed_count = 0;
    }
    for (int i = 0; i < c->prediction_count; i++) {
        crdi_member* p = &plan->members[c->predictions[i].of->to.member];
        p->flows[p->flow_count++] = i;
        p = &plan->members[c->predictions[i].of->from.member];
        p->fed[p->fed_count++] = i;
    }
    return CRD_OK;
}

// ---- samples -----------------------------------------------------------------------------------

// An FMU may have derivatives only from its second step on, or none where it promised them.
static void __attribute__((cold, noinline)) note_blind(crdi_prediction* f, int order)
{
    const crd_unit* u = f->source->unit;
    if (f->blind) { return; }
    f->blind = true;
    crdi_log(u->ctx, CRD_LOG_WARNING,
             "unit '%s': derivative %d of output '%s' is not finite; %s -> %s is predicted from "
             "its values where that is so",
             u->name, order, u->info.variables[f->of->from.variable].name, f->of->from_name,
             f->of->to_name);
}

crd_sample crdi_prediction_sample(crdi_prediction* f)
{
    crd_sample s = {.y = {f->gain * *f->from + f->offset}};
    if (f->probed || (f->textbook && f->predict != CRD_PREDICTION_HOLD)) { return s; }
    if (crdi_network_holds(f->network)) { return s; }
    for (int d = 0; d < 2 && f->rates[d]; d++) {
        if (__builtin_expect(!isfinite(*f->rates[d]), 0)) {
            note_blind(f, d + 1);
            break;
        }
        s.y[d + 1] = f->gain * *f->rates[d];
        s.order = d + 1;
    }
    return s;
}

void crdi_prediction_resample(crdi_prediction* f)
{
    f->end = crdi_prediction_sample(f);
}

void crdi_prediction_resume(crdi_prediction* f)
{
    f->end = f->past.sample[0];
}

double crdi_prediction_scale(const crdi_prediction* f)
{
    return f->scale_given > 0 ? f->scale_given : f->size > 0 ? f->size : 1;
}

// ---- prediction --------------------------------------------------------------------------------

static crd_predictor predictor(const crdi_prediction* f, double h)
{
    if (f->network) { return crdi_network_predictor(f, f->network->level.now); }
    switch (f->predict) {
    case CRD_PREDICTION_AUTO: {
        const crd_select_options o = crdi_prediction_select_options(f);
        return crd_select_choice(&o, &f->select, h);
    }
    case CRD_PREDICTION_HOLD:
        return CRD_PREDICT_HOLD;
    case CRD_PREDICTION_LINEAR:
        return CRD_PREDICT_TAYLOR1;
    case CRD_PREDICTION_QUADRATIC:
        return CRD_PREDICT_TAYLOR2;
    default:
        return (crd_predictor)(CRD_PREDICT_TAYLOR1 + (f->predict - CRD_PREDICTION_TAYLOR1));
    }
}

// The source is ahead (Gauss-Seidel): its step is known, and between both ends nothing is guessed.
// A hold takes the newest value; an iteration does not, whatever begins it: what it converges to
// would depend on the order of the units.
static void interpolate(const crd_master* m, crdi_prediction* f, double t)
{
    const crd_sample end = crdi_prediction_sample(f);
    const double now = crdi_time_of(m, f->source->run->stamp), h = now - f->time;
    if ((f->predict == CRD_PREDICTION_HOLD && !crdi_iteration_fits(m)) ||
        crdi_network_holds(f->network)) {
        f->u = (crd_poly){.c = {end.y[0]}};
        f->origin = t;
        return;
    }
    if (t > f->time - 1e-9 * h) {
        const crd_sample* start = &f->past.sample[0];
        // Over an event a line: what derivatives say of one side is not true of the other.
        const bool event = f->network && *f->event_count != f->events;
        f->u = event ? crd_poly_hermite(start, 1, &end, 1, h)
                     : crd_poly_hermite(start, start->order + 1, &end, end.order + 1, h);
        f->origin = f->time;
        f->between = true;
        return;
    }
    crd_history longer = f->past; // a long step of the target, over several of the source
    crd_history_push(&longer, h, &end);
    f->u = crd_predict(CRD_PREDICT_TAYLOR2, &longer, h);
    f->origin = now;
}

void crdi_prediction_apply(crdi_prediction* f, double s, double h)
{
    double value = f->u.c[0];
    if (f->u.degree > 0) {
        crd_poly p = crd_poly_shift(&f->u, s);
        if (!f->textbook) { p = crd_poly_nearest(&p, f->slope[1] ? 2 : f->slope[0] ? 1 : 0, h); }
        value = p.c[0];
        if (f->slope[0]) { *f->slope[0] = p.c[1]; }
        if (f->slope[1]) { *f->slope[1] = 2 * p.c[2]; }
    } else {
        if (f->slope[0]) { *f->slope[0] = 0; }
        if (f->slope[1]) { *f->slope[1] = 0; }
    }
    *f->to = value + f->correction;
    f->applied = f->origin + s;
}

// As crdi_prediction_apply has written it; of a step in several parts, what all of them are near
// to.
crd_poly crdi_prediction_given(const crdi_prediction* f, double h)
{
    const int degree = f->slope[1] ? 2 : f->slope[0] ? 1 : 0;
    crd_poly p = crd_poly_shift(&f->u, f->begin - f->origin);
    if (f->textbook) {
        for (; p.degree > degree; p.degree--) {
            p.c[p.degree] = 0;
        }
    } else if (p.degree > 0 && f->target->run->parts <= 1) {
        p = crd_poly_nearest(&p, degree, h);
    }
    p.c[0] += f->correction;
    return p;
}

// After a level was raised: hold + part (prediction - hold).
static void come_gently(crdi_prediction* f, bool ahead)
{
    const double part = crdi_level_part(&f->network->level);
    if (part == 1) { return; }
    const double held = ahead ? f->gain * *f->from + f->offset : f->past.sample[0].y[0];
    f->u.c[0] = held + part * (f->u.c[0] - held);
    for (int i = 1; i <= f->u.degree; i++) {
        f->u.c[i] *= part;
    }
}

// The input over the target's step from t to t + h: prediction, value and derivatives.
static void predict_begin(const crd_master* m, crdi_prediction* f, double t, double h)
{
    const crdi_member* source = f->source;
    if (m->plan->iterated && crdi_iteration_skips(m, f->target)) { return; }
    const bool ahead = source->run->stamp > f->stamp;
    f->known = ahead;
    f->between = false;
    if (f->network) { f->used = predictor(f, h); }
    if (ahead) {
        interpolate(m, f, t);
    } else if (f->guessed && crdi_iteration_guesses(m)) {
        const crd_sample* start = &f->past.sample[0];
        f->u = crd_poly_hermite(start, start->order + 1, &f->guess, f->guess.order + 1, h);
        f->origin = f->time;
        f->between = true;
    } else if (f->probed) {
        f->u = (crd_poly){.c = {f->held}};
        f->origin = f->time;
    } else {
        const double horizon = fmax(h, f->horizon);
        f->used = predictor(f, horizon);
        f->u = crd_predict(f->used, &f->past, horizon);
        f->origin = f->time;
    }
    if (ahead && f->textbook && !f->slope[0]) { // a textbook's hold takes the newest value
        const double newest = crd_poly_eval(&f->u, crdi_time_of(m, source->run->stamp) - f->origin);
        f->u = (crd_poly){.c = {newest}};
    }
    if (f->network && f->u.degree + f->used > 0) { come_gently(f, ahead); }
    f->begin = t;
    crdi_prediction_apply(f, t - f->origin, h);
}

const double* crdi_prediction_weights(crd_predictor p)
{
    static const int values[CRD_PREDICT_COUNT] = {
        [CRD_PREDICT_AB2] = 1, [CRD_PREDICT_AB3] = 2, [CRD_PREDICT_AB4] = 3};
    return crdi_even_means[values[p]];
}

// The same of a plain one, once there are samples enough.
static bool begin_plain(crdi_prediction* f, double t)
{
    if (!f->plain || f->past.count < CRD_HISTORY) { return false; }
    if (f->network) { f->used = crdi_network_predictor(f, f->network->level.now); }
    const crd_sample* y = f->past.sample;
    const double* w = crdi_prediction_weights(f->used);
    f->u.c[0] = w[0] * y[0].y[0] + w[1] * y[1].y[0] + w[2] * y[2].y[0] + w[3] * y[3].y[0];
    f->origin = f->time;
    f->begin = f->applied = t;
    if (f->network && f->used != CRD_PREDICT_HOLD) { come_gently(f, false); }
    *f->to = f->u.c[0] + f->correction;
    return true;
}

static crd_status begin_all(crd_master* m, crdi_rows rows, double t)
{
    const crdi_steady* steady = m->connections.steady;
    for (int i = rows.first; i < rows.first + rows.count; i++) {
        if (steady && steady[i].left) {
            const double *w = steady[i].weights, *y = steady[i].y;
            *steady[i].to = w[0] * y[0] + w[1] * y[1] + w[2] * y[2] + w[3] * y[3];
            continue;
        }
        crdi_prediction* f = &m->connections.predictions[i];
        if (begin_plain(f, t)) { continue; }
        predict_begin(m, f, t, m->plan->times.multirate ? f->target->step : m->clock.h);
    }
    return CRD_OK;
}

// ---- defects -----------------------------------------------------------------------------------

static int degree_of(const crdi_prediction* f)
{
    switch (f->used) {
    case CRD_PREDICT_TAYLOR1:
        return 1;
    case CRD_PREDICT_TAYLOR2:
    case CRD_PREDICT_HERMITE:
        return 2;
    default:
        return 0;
    }
}

// A unit that holds its input feels the mean only, unless it was the newest value that was held.
static bool feels_mean(const crdi_prediction* f)
{
    return !f->slope[0] && f->used != CRD_PREDICT_HOLD && (f->probed || !f->textbook);
}

// What the unit got over the piece from the newest sample on. Linear and quadratic are cut where it
// takes fewer derivatives.
static crd_poly input_since_sample(const crdi_prediction* f)
{
    crd_poly u = crd_poly_shift(&f->u, f->time - f->origin);
    if (f->textbook && f->u.degree > 0) {
        const double s = f->begin - f->origin; // where it was cut
        const int degree = f->slope[1] ? 2 : f->slope[0] ? 1 : 0;
        u = crd_poly_shift(&f->u, s);
        for (int i = degree + 1; i <= u.degree; i++) {
            u.c[i] = 0;
        }
        u.degree = u.degree < degree ? u.degree : degree;
        u = crd_poly_shift(&u, f->time - f->begin);
    }
    return u;
}

// The input is the very curve that the output is taken for, but not all of what the output did. The
// first step behind a start or a cut has no sample before it: its share comes with the next.
// Derivatives of a unit that is not shown its predicted inputs are those of what it took instead.
static void add_missed(crdi_prediction* f, const crd_poly* u, double h)
{
    const int n0 = f->past.sample[0].order + 1, n1 = f->end.order + 1;
    crd_poly y;
    if (!f->source->shown && crd_history_by_slopes(&f->past, h, &f->end, &y)) {
        f->bias = crd_poly_mean(u, 0, h) - crd_poly_mean(&y, 0, h);
        f->rms = crd_defect_connection(u, &y, h, &f->max);
        return;
    }
    const double missed = -crd_history_missed(&f->past, h, &f->end);
    f->bias += (f->past.count == 2 ? 2 : 1) * crd_defect_mid_mean(n0, n1, missed);
    f->rms = hypot(f->rms, crd_defect_mid(n0, n1, missed));
    f->max = crd_defect_larger(f->max, fabs(missed));
}

// The cubic through the last four values a, b, c, d at equal steps is, with x = s / h over the step
// from c to d,
//   y = c + p x + q x^2 + r x^3,  p = (a - 6b + 3c + 2d) / 6,  q = (b - 2c + d) / 2,
//   r = (d - a + 3b - 3c) / 6.
// Who holds c has the defect c - y, whose largest magnitude is at the end or where p + 2 q x + 3 r
// x^2 is 0.
void crdi_plain_held(const double* y, double* rms, double* max)
{
    const double a = y[3], b = y[2], c = y[1], d = y[0];
    const double p = (a - 6 * b + 3 * c + 2 * d) * (1.0 / 6), q = 0.5 * (b - 2 * c + d),
                 r = (d - a + 3 * (b - c)) * (1.0 / 6);
    *rms = sqrt(p * p / 3 + q * q / 5 + r * r / 7 + p * q / 2 + 2 * p * r / 5 + q * r / 3);
    *max = fabs(d - c);
    const double root = q * q - 3 * p * r;
    for (int side = -1; side <= 1 && root > 0; side += 2) {
        const double x = p / (-q + side * sqrt(root)); // p = 0: at the beginning, where it is 0
        if (x > 0 && x < 1) { *max = crd_defect_larger(*max, fabs(x * (p + x * (q + x * r)))); }
    }
}

// Who holds a mean feels the mean of the defect.
static bool find_defect_of_plain(crdi_prediction* f)
{
    if (!f->plain || f->past.count < CRD_HISTORY - 1) { return false; }
    const crd_sample* s = f->past.sample;
    const double y[CRD_HISTORY] = {f->end.y[0], s[0].y[0], s[1].y[0], s[2].y[0]};
    f->bias = crdi_plain_bias(f->u.c[0], y);
    f->output_rms = NAN;
    f->rms = f->max = fabs(f->bias);
    if (f->used == CRD_PREDICT_HOLD) { crdi_plain_held(y, &f->rms, &f->max); }
    return true;
}

// In Gauss-Seidel order the last of the target's steps over a long one of its source knows how that
// ended. Those before it did not: `s` is how much of the source's step they make.
static void add_guessed(crdi_prediction* f, const crd_poly* u, const crd_poly* y, double s,
                        double h)
{
    const crd_poly guess = crd_predict(f->used, &f->past, fmax(f->target->step, f->horizon));
    const crd_poly known = crd_poly_shift(u, s), rest = crd_poly_shift(y, s);
    const double first = crd_poly_mean(&guess, 0, s) - crd_poly_mean(y, 0, s),
                 last = crd_poly_mean(&known, 0, h - s) - crd_poly_mean(&rest, 0, h - s);
    double a = first, b = last, max_a = fabs(a), max_b = fabs(b);
    if (!feels_mean(f)) {
        a = crd_defect_connection(&guess, y, s, &max_a);
        b = crd_defect_connection(&known, &rest, h - s, &max_b);
    }
    f->bias = (s * first + (h - s) * last) / h;
    f->rms = sqrt((s * a * a + (h - s) * b * b) / h);
    f->max = crd_defect_larger(max_a, max_b);
}

// Against the output as it is known now; (12) of Glumac 2023 knows its end only.
static void find_defect(const crd_master* m, crdi_prediction* f, double h)
{
    const crd_sample* start = &f->past.sample[0];
    const crd_poly u = input_since_sample(f);
    const crd_poly y = crd_history_reconstruct(&f->past, h, &f->end);
    const double middle = f->middle ? f->gain * *f->middle + f->offset : (double)NAN;
    const int degree = f->slope[1] ? 2 : f->slope[0] ? 1 : 0;
    const bool guessed = f->known && f->begin > f->time + 1e-6 * h;
    f->bias = crd_poly_mean(&u, 0, h) - crd_poly_mean(&y, 0, h);
    f->shape = m->plan->iterated && degree > 0 ? -crd_poly_moment(&y, degree + 1, h) : 0;
    f->output_rms = NAN;
    if (m->plan->sys->run.control.one_sided) {
        const int n = degree_of(f) < f->end.order ? degree_of(f) : f->end.order;
        const crd_poly end = crd_poly_output(&f->end, n, h);
        f->rms = crd_defect_connection(&u, &end, h, &f->max);
        if (f->middle) { f->output_rms = crd_defect_output(&f->end, n, h, middle); }
        return;
    }
    if (guessed) {
        add_guessed(f, &u, &y, f->begin - f->time, h);
    } else if (feels_mean(f)) {
        f->rms = f->max = fabs(f->bias);
    } else {
        f->rms = crd_defect_connection(&u, &y, h, &f->max);
    }
    if (f->between && !guessed && start->order + f->end.order > 0) { add_missed(f, &u, h); }
    if (f->middle) {
        f->output_rms =
            crd_defect_mid(start->order + 1, f->end.order + 1, middle - crd_poly_eval(&y, 0.5 * h));
    }
}

// What is predicted over a long step of the target is learned from steps of that length, not from
// the shorter ones that its source makes.
static bool is_new(const crd_master* m, const crdi_prediction* f)
{
    const crdi_member *source = f->source, *target = f->target;
    if (source->run->stamp == f->stamp) { return false; }
    if (!m->plan->times.multirate || f->textbook) { return true; }
    const bool fits = target->ticks % source->ticks == 0;
    return !fits || (m->clock.n + 1) % target->ticks == 0;
}

// In Gauss-Seidel order a long step of the target is computed, and its input written, at its end
// only: what the source gave before then cannot be compared.
static bool was_applied(const crd_master* m, const crdi_prediction* f, double t)
{
    if (!m->plan->times.multirate) { return true; }
    const double step = f->target->step;
    return f->applied + step > t - 1e-6 * step;
}

static void sample_all(crd_master* m)
{
    if (m->connections.at_once) { return; } // accept_all does it
    for (int i = 0; i < m->connections.prediction_count; i++) {
        crdi_prediction* f = &m->connections.predictions[i];
        if (f->plain) {
            f->end.y[0] = f->gain * *f->from + f->offset;
        } else if (is_new(m, f)) {
            f->end = crdi_prediction_sample(f);
        }
    }
}

// The defect against the scale. What has just begun to move has no scale yet: of y = c t the defect
// of a held step is H / t of the largest value so far, whatever c is, so that steps would have to
// begin at nothing and grow by the tolerance from one to the next. In the first hundredth of the
// run, while it reaches new heights, a step is short enough that keeps the tolerance of what it
// will be at the end of that hundredth: H = 0.01 span tol^(1/k) with a predictor of order k.
static double of_scale(const crd_master* m, const crdi_prediction* f, double t, double defect)
{
    const crdi_times* times = &m->plan->times;
    const crd_step_options* o = crdi_control_options(m);
    const double now = fabs(f->end.y[0]), young = 0.01 * (times->stop - times->start);
    if (f->scale_given > 0) { return defect / f->scale_given; }
    const double part = defect / fmax(crdi_prediction_scale(f), now);
    const double enough = young * pow(o->tol, 1.0 / crd_predictor_order(f->used));
    if (t - f->rest > young || now < f->size || m->clock.h > enough) { return part; }
    return fmin(part, o->safety * o->tol * m->clock.h / enough);
}

// Of a jump in the step no shorter one would make the defect smaller: it does not count here.
static double judge_all(crd_master* m, double t)
{
    if (m->connections.at_once) { return 0; } // accept_all does it, and nobody asks
    const bool absolute = m->plan->sys->run.control.absolute;
    double worst = 0;
    bool broken = false;
    for (int i = 0; i < m->connections.prediction_count; i++) {
        crdi_prediction* f = &m->connections.predictions[i];
        if (find_defect_of_plain(f)) {
            broken |= !(f->rms < INFINITY);
            continue;
        }
        if (!is_new(m, f) || !was_applied(m, f, t)) { continue; }
        find_defect(m, f, t - f->time);
        if (*f->event_count != f->events) { continue; }
        if (!m->plan->controlled) { // nobody asks for more than whether it is a number
            broken |= !(f->rms < INFINITY);
            continue;
        }
        const double larger =
            isnan(f->output_rms) && !f->middle ? f->rms : crd_defect_larger(f->rms, f->output_rms);
        const double part = absolute ? larger : of_scale(m, f, t, larger);
        if (!(part <= worst)) { m->connections.worst = f; }
        worst = crd_defect_larger(worst, part);
    }
    return broken ? (double)NAN : worst;
}

// A choice that has been the same for long is looked at now and then, and when the signal changes
// as much as it does where it jumps.
enum { LONG = 64, NOW_AND_THEN = 16 };

static bool is_settled(crdi_prediction* f)
{
    const double change = f->end.y[0] - f->past.sample[0].y[0];
    f->same++;
    return f->same > LONG && f->same % NOW_AND_THEN != 0 && change * change <= f->usual;
}

// After a step: the predictor of the next. true: the past does not continue.
static bool __attribute__((noinline)) choose(crdi_prediction* f, double h, bool event)
{
    crd_select* s = &f->select;
    crd_select_options o = crdi_prediction_select_options(f);
    o.tol *= crdi_prediction_scale(f);
    const bool cut = crd_select_step(&o, s, &f->past, h, &f->end) || event;
    if (event) { crd_select_event(&o, s); }
    if (s->switches + s->jumps != f->switches || o.tol > 0) {
        f->switches = s->switches + s->jumps;
        f->same = 0;
    }
    f->usual = s->weight > 0 ? 16 * s->change / s->weight : 0;
    if (f->plain) { f->used = s->now; }
    return cut;
}

static void accept(const crd_master* m, crdi_prediction* f, int64_t n, double t, bool event)
{
    const double h = t - f->time;
    const bool counts = was_applied(m, f, t);
    if (counts) { crd_defect_add(&f->connection, t, h, f->rms, f->max); }
    if (counts && f->middle) { crd_defect_add(f->output, t, h, f->output_rms, f->output_rms); }
    f->uses[f->used] += counts;
    if (fabs(f->end.y[0]) > f->size) { f->size = fabs(f->end.y[0]); }
    if (f->end.y[0] < f->low) { f->low = f->end.y[0]; }
    if (f->end.y[0] > f->high) { f->high = f->end.y[0]; }
    f->square += h * f->end.y[0] * f->end.y[0];
    const double change = f->end.y[0] - f->past.sample[0].y[0];
    f->way += fabs(change);
    f->moved += change * change;
    if (f->size == 0) { f->rest = t; }
    bool cut = event;
    if (f->network) {
        cut = crdi_network_sample(f, h, event);
    } else if (f->predict == CRD_PREDICTION_AUTO && (event || !is_settled(f))) {
        cut = choose(f, h, event);
    }
    if (f->network && f->network->shadow && f->network->looks) { *f->before = f->past; }
    if (f->plain && f->past.count == CRD_HISTORY) { // no derivatives, steps are equal
        crd_sample* y = f->past.sample;
        y[3].y[0] = y[2].y[0];
        y[2].y[0] = y[1].y[0];
        y[1].y[0] = y[0].y[0];
        y[0].y[0] = f->end.y[0];
    } else {
        crd_history_push(&f->past, h, &f->end);
    }
    if (cut) { crd_history_cut(&f->past); }
    f->time = t;
    f->stamp = f->plain ? n : f->source->run->stamp;
}

// Where all are plain: the end of the step and its defect come here, and none of it before.
static void pass_at_once(const crd_master* m, crdi_prediction* f, crdi_steady* row, int64_t n,
                         double t)
{
    if (row && row->left) { crdi_steady_leave(row, f, crdi_time_of(m, n - 1), n - 1); }
    f->end.y[0] = f->gain * *f->from + f->offset;
    if (!find_defect_of_plain(f)) { find_defect(m, f, t - f->time); }
    accept(m, f, n, t, *f->event_count != f->events);
    f->events = *f->event_count;
    if (row && row->may && f->same > LONG && f->same % NOW_AND_THEN == 0 &&
        f->past.count == CRD_HISTORY) {
        crdi_steady_enter(row, f, NOW_AND_THEN);
    }
}

static void accept_all(crd_master* m, int64_t n, double t)
{
    crdi_connections* c = &m->connections;
    for (int i = crdi_steady_pass(c, 0, t, m->clock.h); i < c->prediction_count;
         i = crdi_steady_pass(c, i + 1, t, m->clock.h)) {
        crdi_prediction* f = &c->predictions[i];
        if (c->at_once) {
            pass_at_once(m, f, c->steady ? &c->steady[i] : NULL, n, t);
        } else if (f->plain || is_new(m, f)) {
            accept(m, f, n, t, *f->event_count != f->events);
            f->events = *f->event_count;
        }
    }
    crdi_networks_accept(m);
    c->jumped = false;
    const bool asked = c->has_sources || m->plan->rolls_back;
    for (int i = 0; asked && c->prediction_count && i < m->plan->member_count; i++) {
        const crdi_member* p = &m->plan->members[i];
        const bool event = crdi_member_events(p) != p->run->events;
        c->jumped = c->jumped || (event && (p->unit->info.flags & CRD_UNIT_IS_SOURCE));
        p->run->events = crdi_member_events(p);
    }
}

void crdi_predictions_start(crd_master* m)
{
    crdi_connections* c = &m->connections;
    c->at_once = !m->plan->refresh_count;
    for (int i = 0; i < c->prediction_count; i++) {
        c->at_once = c->at_once && c->predictions[i].plain;
    }
}

// The first samples, with the derivatives that are known.
void crdi_prediction_start(const crd_master* m, crdi_prediction* f, const crd_sample* first)
{
    const crd_sample s = crd_defect_scheme_initial(m->plan->sys->run.feedthrough, first);
    f->past = (crd_history){0};
    crd_history_push(&f->past, 0, &s);
    f->time = m->plan->times.start;
    f->applied = -INFINITY;
    f->stamp = 0;
    f->events = f->source->unit->events;
    f->size = fabs(s.y[0]);
    f->low = f->high = s.y[0];
    f->rest = f->size == 0 ? f->time : -INFINITY;
    if (f->network) {
        f->watch = (crdi_level_signal){.y = s.y[0], .count = 1, .size = f->size};
    } else if (f->predict == CRD_PREDICTION_AUTO) {
        const crd_select_options o = crdi_prediction_select_options(f);
        crd_select_start(&o, &f->select, &s);
    }
}

const crdi_connection_kind crdi_kind_predict = {
    .begin = begin_all, .sample = sample_all, .judge = judge_all, .accept = accept_all};
