// Connections as polynomials on the step. A flow predicts what its source will give, tells it to
// the target, and when the source has come there finds out how wrong that was: its defect.
//
//   past samples -> prediction u(s) -> input (value and derivatives, or what the unit can take)
//   new sample   -> defect u - y over the finished step -> which predictor comes next
//
// A unit that takes derivatives up to order q gets the polynomial of degree q that is nearest to
// the prediction: with q = 0 that is its mean, the Adams-Bashforth hold.
#include "master/master.h"

#include <math.h>

// ---- plan --------------------------------------------------------------------------------------

bool crdi_link_flows(const crd_master* m, const crdi_link* k)
{
    return k->real && (k->spec->predict != CRD_PREDICTION_HOLD || k->corrected || m->controlled ||
                       m->iterated || crdi_link_records_defect(m, k));
}

bool crdi_flow_predicts(const crdi_flow* f)
{
    return !f->textbook;
}

int crdi_link_order(const crd_master* m, const crdi_link* k)
{
    if (k->probed) { return 0; }
    if (m->iterated) { return 2; }
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

static const char* end_name(crd_master* m, int member, int32_t variable, int32_t element)
{
    const crd_unit* u = m->members[member].unit;
    const crd_variable* v = &u->info.variables[variable];
    return v->rank == 0 ? crdi_arena_format(&m->arena, "%s.%s", u->name, v->name)
                        : crdi_arena_format(&m->arena, "%s.%s[%d]", u->name, v->name, element + 1);
}

// What a unit integrates is the running mean of an error, in which noise cancels.
static const double SMOOTH = 0.8;

// What `auto` chooses from. Without derivatives, those that are made of differences of values do.
static crd_select_options candidates(const crdi_flow* f)
{
    crd_select_options o = crd_select_defaults();
    o.smooth = SMOOTH;
    o.hold_only = !f->slope[0];
    if (!f->rates[0] && o.hold_only) {
        o.candidates = 1u << CRD_PREDICT_HOLD | 1u << CRD_PREDICT_AB2 | 1u << CRD_PREDICT_AB3;
    } else if (!f->rates[1]) {
        o.candidates &= ~(1u << CRD_PREDICT_HERMITE);
    }
    return o;
}

// A controlled step becomes short where predictions fail.
void crdi_flow_is_stale(const crd_master* m, crdi_flow* f)
{
    if (f->predict != CRD_PREDICTION_AUTO || m->iterated) { return; }
    if ((f->select_options.hold_only || !f->rates[0]) && !m->controlled) {
        f->predict = CRD_PREDICTION_HOLD;
    } else {
        f->select_options.candidates &= ~(1u << CRD_PREDICT_HERMITE | 1u << CRD_PREDICT_AB3);
    }
}

crd_status crdi_flow_bind(crd_master* m, const crdi_link* k, const double* from, double* to,
                          crdi_flow* f)
{
    crdi_member *a = &m->members[k->from_member], *b = &m->members[k->to_member];
    const int order = crdi_link_order(m, k);
    const crd_prediction predict = k->probed ? CRD_PREDICTION_HOLD : k->spec->predict;
    *f = (crdi_flow){.spec = k->spec,
                     .from = from,
                     .to = to,
                     .gain = k->transform ? k->gain : 1,
                     .offset = k->transform ? k->offset : 0,
                     .source = k->from_member,
                     .target = k->to_member,
                     .from_variable = k->from_variable,
                     .from_element = k->from_element,
                     .to_variable = k->to_variable,
                     .to_element = k->to_element,
                     .predict = predict,
                     .probed = k->probed,
                     .textbook = !m->iterated && (predict == CRD_PREDICTION_HOLD ||
                                                  predict == CRD_PREDICTION_LINEAR ||
                                                  predict == CRD_PREDICTION_QUADRATIC),
                     .scale_given = k->spec->scale > 0 ? k->spec->scale : 0,
                     .tolerance = k->spec->tolerance > 0 ? k->spec->tolerance : 0,
                     .stamp = -1};
    for (int d = 0; d < 2; d++) {
        if (a->rates[d] && d < k->rate_order) { f->rates[d] = a->rates[d] + k->from_slot; }
        if (d < b->slope_order && d < order) { f->slope[d] = &b->slopes[d][k->to_slot]; }
    }
    if (a->middles) { f->middle = a->middles + k->from_slot; }
    f->select_options = candidates(f);
    if (m->controlled && !m->sys->run.control.absolute) {
        f->select_options.tol = m->sys->run.control.tolerance; // times scale, once that is known
    }
    f->from_name = end_name(m, k->from_member, k->from_variable, k->from_element);
    f->to_name = end_name(m, k->to_member, k->to_variable, k->to_element);
    if (!f->from_name || !f->to_name) { return CRD_E_MEMORY; }
    f->label = crdi_arena_format(&m->arena, "%s -> %s", f->from_name, f->to_name);
    return f->label ? CRD_OK : CRD_E_MEMORY;
}

// Which flows lead into a member and out of it, for steps in parts and fresh inputs.
crd_status crdi_master_index_flows(crd_master* m)
{
    for (int i = 0; i < m->flow_count; i++) {
        m->members[m->flows[i].target].flow_count++;
        m->members[m->flows[i].source].fed_count++;
    }
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        p->flows = crdi_arena_new(&m->arena, (size_t)p->flow_count, sizeof *p->flows);
        p->fed = crdi_arena_new(&m->arena, (size_t)p->fed_count, sizeof *p->fed);
        if (!p->flows || !p->fed) { return CRD_E_MEMORY; }
        p->flow_count = p->fed_count = 0;
    }
    for (int i = 0; i < m->flow_count; i++) {
        crdi_member* p = &m->members[m->flows[i].target];
        p->flows[p->flow_count++] = i;
        p = &m->members[m->flows[i].source];
        p->fed[p->fed_count++] = i;
    }
    return CRD_OK;
}

// ---- samples -----------------------------------------------------------------------------------

crd_sample crdi_flow_sample(const crdi_flow* f)
{
    crd_sample s = {.y = {f->gain * *f->from + f->offset}};
    if (f->probed || (f->textbook && f->predict != CRD_PREDICTION_HOLD)) { return s; }
    for (int d = 0; d < 2 && f->rates[d]; d++) {
        s.y[d + 1] = f->gain * *f->rates[d];
        s.order = d + 1;
    }
    return s;
}

double crdi_flow_scale(const crdi_flow* f)
{
    return f->scale_given > 0 ? f->scale_given : f->size > 0 ? f->size : 1;
}

// ---- prediction --------------------------------------------------------------------------------

static crd_predictor predictor(const crdi_flow* f, double h)
{
    switch (f->predict) {
    case CRD_PREDICTION_AUTO:
        return crd_select_choice(&f->select_options, &f->select, h);
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
static void interpolate(const crd_master* m, crdi_flow* f, double t)
{
    const crd_sample end = crdi_flow_sample(f);
    const double now = crdi_master_time_of(m, m->members[f->source].stamp), h = now - f->time;
    if (f->predict == CRD_PREDICTION_HOLD) {
        f->u = (crd_poly){.c = {end.y[0]}};
        f->origin = t;
        return;
    }
    if (t > f->time - 1e-9 * h) {
        const crd_sample* start = &f->past.sample[0];
        f->u = crd_poly_hermite(start, start->order + 1, &end, end.order + 1, h);
        f->origin = f->time;
        return;
    }
    crd_history longer = f->past; // a long step of the target, over several of the source
    crd_history_push(&longer, h, &end);
    f->u = crd_predict(CRD_PREDICT_TAYLOR2, &longer, h);
    f->origin = now;
}

void crdi_flow_at(crdi_flow* f, double s, double h)
{
    double value = f->u.c[0];
    if (f->u.degree > 0) {
        crd_poly p = crd_poly_shift(&f->u, s);
        if (crdi_flow_predicts(f)) {
            p = crd_poly_nearest(&p, f->slope[1] ? 2 : f->slope[0] ? 1 : 0, h);
        }
        value = p.c[0];
        if (f->slope[0]) { *f->slope[0] = p.c[1]; }
        if (f->slope[1]) { *f->slope[1] = 2 * p.c[2]; }
    } else {
        if (f->slope[0]) { *f->slope[0] = 0; }
        if (f->slope[1]) { *f->slope[1] = 0; }
    }
    *f->to = value + f->correction;
    f->told = f->origin + s;
}

void crdi_flow_begin(crd_master* m, crdi_flow* f, double t, double h)
{
    const crdi_member* source = &m->members[f->source];
    if (m->iterated && crdi_iteration_skips(m, &m->members[f->target])) { return; }
    const bool ahead = source->stamp > f->stamp;
    f->known = ahead;
    if (ahead) {
        interpolate(m, f, t);
    } else if (f->guessed && crdi_iteration_guesses(m)) {
        const crd_sample* start = &f->past.sample[0];
        f->u = crd_poly_hermite(start, start->order + 1, &f->guess, f->guess.order + 1, h);
        f->origin = f->time;
    } else if (f->probed) {
        f->u = (crd_poly){.c = {f->held}};
        f->origin = f->time;
    } else {
        const double horizon = fmax(h, m->controlled ? 0 : source->step);
        f->used = predictor(f, horizon);
        f->u = crd_predict(f->used, &f->past, horizon);
        f->origin = f->time;
    }
    if (ahead && f->textbook && !f->slope[0]) { // a textbook's hold takes the newest value
        const double newest =
            crd_poly_eval(&f->u, crdi_master_time_of(m, source->stamp) - f->origin);
        f->u = (crd_poly){.c = {newest}};
    }
    f->begin = t;
    crdi_flow_at(f, t - f->origin, h);
}

// ---- defects -----------------------------------------------------------------------------------

static int degree_of(const crdi_flow* f)
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
static bool feels_mean(const crdi_flow* f)
{
    return !f->slope[0] && f->used != CRD_PREDICT_HOLD && (f->probed || crdi_flow_predicts(f));
}

// What the unit got over the piece from the newest sample on. Linear and quadratic are cut where it
// takes fewer derivatives.
static crd_poly told(const crdi_flow* f)
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

// Against the output as it is known now; (12) of Glumac 2023 knows its end only.
static void find_defect(const crd_master* m, crdi_flow* f, double h)
{
    const crd_sample* start = &f->past.sample[0];
    const crd_poly u = told(f);
    const crd_poly y = crd_history_reconstruct(&f->past, h, &f->end);
    const double middle = f->middle ? f->gain * *f->middle + f->offset : (double)NAN;
    f->bias = crd_poly_mean(&u, 0, h) - crd_poly_mean(&y, 0, h);
    f->output_rms = NAN;
    if (m->sys->run.control.one_sided) {
        const int n = degree_of(f) < f->end.order ? degree_of(f) : f->end.order;
        const crd_poly end = crd_poly_output(&f->end, n, h);
        f->rms = crd_defect_connection(&u, &end, h, &f->max);
        if (f->middle) { f->output_rms = crd_defect_output(&f->end, n, h, middle); }
        return;
    }
    if (feels_mean(f)) {
        f->rms = f->max = fabs(f->bias);
    } else {
        f->rms = crd_defect_connection(&u, &y, h, &f->max);
    }
    if (f->middle) {
        f->output_rms =
            crd_defect_mid(start->order + 1, f->end.order + 1, middle - crd_poly_eval(&y, 0.5 * h));
    }
}

// What is predicted over a long step of the target is learned from steps of that length, not from
// the shorter ones that its source makes.
static bool is_new(const crd_master* m, const crdi_flow* f)
{
    const crdi_member *source = &m->members[f->source], *target = &m->members[f->target];
    if (source->stamp == f->stamp) { return false; }
    const bool fits = target->ticks % source->ticks == 0;
    return !m->multirate || f->textbook || !fits || (m->n + 1) % target->ticks == 0;
}

// In Gauss-Seidel order a long step of the target is computed, and its input told, at its end only:
// what the source gave before then cannot be compared.
static bool was_told(const crd_master* m, const crdi_flow* f, double t)
{
    const double step = m->members[f->target].step;
    return !m->multirate || f->told + step > t - 1e-6 * step;
}

void crdi_master_sample(crd_master* m)
{
    for (int i = 0; i < m->flow_count; i++) {
        crdi_flow* f = &m->flows[i];
        if (is_new(m, f)) { f->end = crdi_flow_sample(f); }
    }
}

static bool had_event(const crdi_member* p)
{
    return crdi_member_events(p) != p->events;
}

// Of a jump in the step no shorter one would make the defect smaller: it does not count here.
double crdi_master_judge(crd_master* m, double t)
{
    const bool absolute = m->sys->run.control.absolute;
    double worst = 0;
    for (int i = 0; i < m->flow_count; i++) {
        crdi_flow* f = &m->flows[i];
        if (!is_new(m, f)) { continue; }
        if (!was_told(m, f, t)) { continue; }
        find_defect(m, f, t - f->time);
        if (crdi_member_events(&m->members[f->source]) != f->events) { continue; }
        const double larger =
            isnan(f->output_rms) && !f->middle ? f->rms : crd_defect_larger(f->rms, f->output_rms);
        const double size = fmax(crdi_flow_scale(f), f->scale_given > 0 ? 0 : fabs(f->end.y[0]));
        worst = crd_defect_larger(worst, absolute ? larger : larger / size);
    }
    return worst;
}

static void accept(const crd_master* m, crdi_flow* f, double t, bool event)
{
    const double h = t - f->time;
    const bool counts = was_told(m, f, t);
    if (counts) { crd_defect_add(&f->connection, t, h, f->rms, f->max); }
    if (counts && f->middle) { crd_defect_add(&f->output, t, h, f->output_rms, f->output_rms); }
    f->uses[f->used] += counts;
    f->size = fmax(f->size, fabs(f->end.y[0]));
    bool cut = event;
    if (f->predict == CRD_PREDICTION_AUTO) {
        crd_select_options o = f->select_options;
        o.tol *= crdi_flow_scale(f);
        cut = crd_select_step(&o, &f->select, &f->past, h, &f->end) || event;
        if (event) { crd_select_event(&o, &f->select); }
    }
    crd_history_push(&f->past, h, &f->end);
    if (cut) { crd_history_cut(&f->past); }
    f->time = t;
    f->stamp = m->members[f->source].stamp;
}

// u is what was told over the last piece, y a line between its samples: the mean square of a line
// from a to b is (a^2 + a b + b^2) / 3.
static void look(crdi_watch* w, double t, double h)
{
    const double y = w->gain * *w->from + w->offset;
    const double a = *w->to - w->last, b = *w->to - y;
    w->integral += h * (a * a + a * b + b * b) * (1.0 / 3);
    w->bias = 0.5 * (a + b);
    const double larger = fmax(fabs(a), fabs(b));
    if (larger > w->max) {
        w->max = larger;
        w->max_time = t;
    }
    w->size = fmax(w->size, fabs(y));
    w->last = y;
}

void crdi_master_accept(crd_master* m, double t)
{
    for (int i = 0; i < m->flow_count; i++) {
        crdi_flow* f = &m->flows[i];
        const crdi_member* p = &m->members[f->source];
        if (!is_new(m, f)) { continue; }
        accept(m, f, t, crdi_member_events(p) != f->events);
        f->events = crdi_member_events(p);
    }
    for (int i = 0; i < m->watch_count; i++) {
        const int64_t every = m->members[m->watched[i]->from_member].ticks;
        if (!m->multirate) {
            look(&m->watches[i], t, m->h);
        } else if ((m->n + 1) % every == 0) {
            look(&m->watches[i], t, (double)every * m->tick);
        }
    }
    m->jumped = false;
    for (int i = 0; m->flow_count && i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        const crd_unit* u = p->unit;
        m->jumped = m->jumped || (had_event(p) && (u->info.flags & CRD_UNIT_IS_SOURCE));
        p->events = crdi_member_events(p);
    }
}

// The first samples, with the derivatives that are known.
void crdi_flow_start(const crd_master* m, crdi_flow* f, const crd_sample* first)
{
    const crd_sample s = crd_defect_scheme_initial(m->sys->run.feedthrough, first);
    f->past = (crd_history){0};
    crd_history_push(&f->past, 0, &s);
    f->time = m->start;
    f->told = -INFINITY;
    f->stamp = 0;
    f->events = m->members[f->source].unit->events;
    f->size = fabs(s.y[0]);
    if (f->predict == CRD_PREDICTION_AUTO) { crd_select_start(&f->select_options, &f->select, &s); }
}

void crdi_master_start_watches(crd_master* m)
{
    for (int i = 0; i < m->member_count; i++) {
        m->members[i].events = m->members[i].unit->events;
    }
    for (int i = 0; i < m->watch_count; i++) {
        crdi_watch* w = &m->watches[i];
        w->last = w->gain * *w->from + w->offset;
        w->size = fabs(w->last);
    }
}
