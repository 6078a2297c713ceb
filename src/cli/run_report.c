// What a run says at its end: the table on standard error, and the same as JSON.
#include "cli/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

// What was told, as words of the table and of JSON.
static const struct {
    const char *text, *word;
} ends[] = {
    [CRD_END_NONE] = {"not begun", "none"},
    [CRD_END_STOP_TIME] = {"stop time reached", "stop time"},
    [CRD_END_UNIT] = {"a unit ended the run", "unit"},
    [CRD_END_INTERRUPTED] = {"interrupted", "interrupted"},
    [CRD_END_FAILED] = {"failed", "failed"},
    [CRD_END_OVERRUN] = {"ended by a late cycle", "overrun"},
};

static double in_unit(const crd_unit_report* u)
{
    return u->time_step + u->time_get + u->time_set;
}

// What shares are parts of: the time of all threads in steps. The times of units are estimated
// from some of their steps; where these add up to more, their sum is the whole.
static double whole_time(const crd_master_report* r)
{
    double sum = 0;
    for (int i = 0; i < r->unit_count; i++) {
        sum += in_unit(&r->units[i]);
    }
    return fmax(sum, r->wall_time * r->threads);
}

static void print_units(crd_context* ctx, const crd_master_report* r, FILE* f)
{
    const double whole = whole_time(r);
    crdi_grid g;
    char a[32], b[32], c[32], d[32], e[32];
    crdi_grid_init(&g, ctx, 9, 0x1FC);
    static const char* const titles[] = {"unit",   "kind",   "steps", "step size", "in step",
                                         "in get", "in set", "share", "worst step"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    double sum = 0;
    for (int i = 0; i < r->unit_count; i++) {
        const crd_unit_report* u = &r->units[i];
        sum += in_unit(u);
        crdi_grid_add(&g, "%s", u->name);
        crdi_grid_add(&g, "%s", u->kind);
        crdi_grid_add(&g, "%" PRId64, u->steps);
        crdi_grid_add(&g, "%s", crdi_format_seconds(a, u->step_size));
        crdi_grid_add(&g, "%s", crdi_format_seconds(b, u->time_step));
        crdi_grid_add(&g, "%s", crdi_format_seconds(c, u->time_get));
        crdi_grid_add(&g, "%s", crdi_format_seconds(d, u->time_set));
        crdi_grid_add(&g, "%.0f %%", whole > 0 ? 100 * in_unit(u) / whole : 0);
        crdi_grid_add(&g, "%s", crdi_format_seconds(e, u->worst_step));
    }
    if (r->threads == 1 && whole > sum) {
        for (int i = 0; i < 9; i++) {
            if (i == 7) {
                crdi_grid_add(&g, "%.0f %%", 100 * (1 - sum / whole));
            } else {
                crdi_grid_add(&g, "%s",
                              i != 0        ? ""
                              : r->pace->on ? "(waiting, master)"
                                            : "(master, recording)");
            }
        }
    }
    crdi_grid_print(&g, f, "  ");
    crdi_grid_clear(&g);
}

static void add_score(crdi_grid* g, double x)
{
    if (isnan(x)) {
        crdi_grid_add(g, "-"); // nothing could be compared
    } else {
        crdi_grid_add(g, "%.4g", x);
    }
}

static void add_tap(crdi_grid* g, const crd_tap_report* t, bool is_shadow)
{
    crdi_grid_add(g, "%s%s", t->label, is_shadow ? " (shadow)" : "");
    add_score(g, 100 * t->metrics.C);
    add_score(g, t->metrics.rms);
    add_score(g, t->metrics.worst);
}

static void print_scores(crd_context* ctx, const crd_master_report* r, FILE* f)
{
    static const char* const titles[] = {"coupling", "algorithm", "C [%]", "rms", "worst"};
    enum { COLUMNS = sizeof titles / sizeof *titles };
    crdi_grid g;
    crdi_grid_init(&g, ctx, COLUMNS, 0x1C);
    for (int i = 0; i < COLUMNS; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    for (int i = 0; i < r->coupling_count; i++) {
        const crd_coupling_report* c = &r->couplings[i];
        crdi_grid_add(&g, "%s -> %s", c->from, c->to);
        add_tap(&g, &c->taps[0], false);
        for (int t = 1; t < c->tap_count; t++) {
            crdi_grid_add(&g, "%s", "");
            add_tap(&g, &c->taps[t], true);
        }
    }
    crdi_grid_print(&g, f, "  ");
    crdi_grid_clear(&g);
}

static void print_samples(crd_context* ctx, const crd_master_report* r, FILE* f)
{
    static const char* const titles[] = {"samples for", "k",    "max k", "sent", "lost",
                                         "filled",      "late", "twice", "jumps"};
    enum { COLUMNS = sizeof titles / sizeof *titles };
    crdi_grid g;
    crdi_grid_init(&g, ctx, COLUMNS, 0x1FE);
    for (int i = 0; i < COLUMNS; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    for (int i = 0; i < r->coupling_count; i++) {
        const crd_coupling_report* c = &r->couplings[i];
        const crd_coupling_counts* n = &c->taps[0].counts;
        crdi_grid_add(&g, "%s", c->to);
        if (isnan(c->k_mean)) {
            crdi_grid_add(&g, "-");
        } else {
            crdi_grid_add(&g, "%.2f", c->k_mean);
        }
        crdi_grid_add(&g, "%d", c->k_max);
        const int64_t counts[] = {c->sent, c->lost, n->filled, n->late, n->duplicates, n->jumps};
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            crdi_grid_add(&g, "%" PRId64, counts[k]);
        }
    }
    crdi_grid_print(&g, f, "  ");
    crdi_grid_clear(&g);
}

static void print_learning(const crd_coupling_report* c, FILE* f)
{
    for (int t = 0; t < c->tap_count; t++) {
        const crd_tap_report* p = &c->taps[t];
        if (!p->learns) { continue; }
        if (p->connects == 0) {
            fprintf(f, "learning %s, %s: the server was never reached\n", c->to, p->label);
            continue;
        }
        fprintf(f,
                "learning %s, %s: %" PRId64 " network%s from the server, %" PRId64
                " taken over, %" PRId64 " rolled back\n",
                c->to, p->label, p->networks, crdi_plural(p->networks), p->counts.swaps,
                p->counts.rollbacks);
    }
}

static void print_hint(crd_context* ctx, const crd_coupling_report* c, FILE* f)
{
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_text_add(&t, "%s -> %s: %s", c->from, c->to, c->hint);
    if (!t.failed) { crdi_print_wrapped(f, "hint", t.data); }
    crd_text_clear(&t);
}

static const char* source_name(int source) // crd_board_source
{
    return source == 0 ? "bench" : source == 1 ? "model" : "coming";
}

static void print_standby(const crd_master_report* r, FILE* f)
{
    for (int i = 0; i < r->unit_count; i++) {
        char a[32], b[32];
        const crd_standby_stats* s = r->units[i].standby;
        if (!s) { continue; }
        fprintf(f, "standby  %s: ", r->units[i].name);
        if (s->stood_in > 0) {
            fprintf(f,
                    "the stand-in was in use for %s of %s; %" PRId64 " takeover%s, %" PRId64
                    " return%s%s\n",
                    crdi_format_seconds(a, s->stood_in), crdi_format_seconds(b, r->time - r->start),
                    s->takeovers, crdi_plural(s->takeovers), s->returns, crdi_plural(s->returns),
                    s->source == 0 ? "" : "; the bench is not back");
        } else {
            fprintf(f, "the stand-in was not needed\n");
        }
    }
}

static void print_report(crdi_cli* cli, const crd_master_report* r, bool by_page, FILE* f)
{
    char a[32], b[32], c[32];
    const char* unit = r->end == CRD_END_OVERRUN ? "" : r->end_unit; // 'pace' says whose fault
    fprintf(f, "time     %.10g s to %.10g s in %" PRId64 " step%s of %s; %s%s%s\n", r->start,
            r->time, r->steps, crdi_plural(r->steps),
            r->control.on ? "variable length" : crdi_format_seconds(a, r->step),
            by_page ? "ended from the page" : ends[r->end].text, *unit ? ": " : "", unit);
    const double simulated = r->time - r->start;
    const double factor = r->wall_time > 0 ? simulated / r->wall_time : 0;
    fprintf(f, "speed    %.*f x real time: %s in steps, %s to initialise, %d thread%s\n",
            factor < 10     ? 3
            : factor < 1000 ? 1
                            : 0,
            factor, crdi_format_seconds(b, r->wall_time),
            crdi_format_seconds(c, r->initialization_time), r->threads, crdi_plural(r->threads));
    for (int i = 0; i < r->loop_count; i++) {
        const crd_loop_report* l = &r->loops[i];
        fprintf(f, "loop     %s: %d unknown%s, %d %s iteration%s, residual %.2g%s\n", l->text,
                l->size, crdi_plural(l->size), l->iterations, l->newton ? "Newton" : "fixed-point",
                crdi_plural(l->iterations), l->residual, l->converged ? "" : ", not converged");
    }
    crdi_print_step_quality(r, f);
    for (int i = 0; i < r->coupling_count; i++) {
        const crd_coupling_report* k = &r->couplings[i];
        if (*k->hint) { print_hint(cli->ctx, k, f); }
        print_learning(k, f);
    }
    if (*r->results) {
        fprintf(f, "results  %" PRId64 " row%s in %s\n", r->rows, crdi_plural(r->rows), r->results);
    } else {
        fprintf(f, "results  not recorded\n");
    }
    if (*r->exchange) {
        fprintf(f, "exchange %" PRId64 " sample%s in %s\n", r->exchanged, crdi_plural(r->exchanged),
                r->exchange);
    }
    print_standby(r, f);
    crdi_print_pace(cli->ctx, r, f);
    crdi_print_links(cli->ctx, r, f);
    print_units(cli->ctx, r, f);
    if (r->coupling_count) {
        print_scores(cli->ctx, r, f);
        print_samples(cli->ctx, r, f);
    }
    crdi_print_quality(cli->ctx, r, f);
}

// In one write, so that nothing comes in between.
void crdi_show_report(crdi_cli* cli, const crd_master_report* r, const crdi_run_end* end)
{
    char* text = NULL;
    size_t length = 0;
    FILE* f = open_memstream(&text, &length);
    if (!f) { return; }
    print_report(cli, r, end->by_page, f);
    if (fclose(f) == 0) { crdi_write_all(STDERR_FILENO, text, length); }
    free(text);
}

static json_t* standby_to_json(const crd_standby_stats* s)
{
    if (!s) { return json_null(); }
    json_t* j = json_object();
    json_object_set_new(j, "takeovers", json_integer(s->takeovers));
    json_object_set_new(j, "returns", json_integer(s->returns));
    json_object_set_new(j, "stood_in", crdi_json_number(s->stood_in));
    json_object_set_new(j, "source", json_string(source_name(s->source)));
    return j;
}

static json_t* unit_to_json(crd_context* ctx, const crd_unit_report* u, double whole)
{
    json_t* j = json_object();
    json_object_set_new(j, "name", crdi_json_text(u->name));
    json_object_set_new(j, "kind", crdi_json_text(u->kind));
    json_object_set_new(j, "steps", json_integer(u->steps));
    json_object_set_new(j, "step_size", crdi_json_number(u->step_size));
    json_object_set_new(j, "time_step", crdi_json_number(u->time_step));
    json_object_set_new(j, "time_get", crdi_json_number(u->time_get));
    json_object_set_new(j, "time_set", crdi_json_number(u->time_set));
    json_object_set_new(j, "share", crdi_json_number(in_unit(u) / whole));
    json_object_set_new(j, "worst_step", crdi_json_number(u->worst_step));
    json_object_set_new(j, "measured", json_integer(u->measured));
    json_object_set_new(j, "budget", crdi_json_number(u->budget));
    json_object_set_new(j, "late", json_integer(u->late));
    json_object_set_new(j, "link", crdi_link_json(ctx, u->link));
    json_object_set_new(j, "standby", standby_to_json(u->standby));
    return j;
}

static json_t* loop_to_json(const crd_loop_report* l)
{
    json_t* j = json_object();
    json_object_set_new(j, "loop", crdi_json_text(l->text));
    json_object_set_new(j, "size", json_integer(l->size));
    json_object_set_new(j, "iterations", json_integer(l->iterations));
    json_object_set_new(j, "residual", crdi_json_number(l->residual));
    json_object_set_new(j, "method", json_string(l->newton ? "newton" : "fixed point"));
    json_object_set_new(j, "converged", json_boolean(l->converged));
    return j;
}

// How good the estimates of an element were, into `j`.
static void tap_to_json(json_t* j, const crd_tap_report* t)
{
    json_object_set_new(j, "algorithm", crdi_json_text(t->label));
    json_object_set_new(j, "scored", json_integer(t->scored));
    json_object_set_new(j, "C", crdi_json_number(100 * t->metrics.C));
    json_object_set_new(j, "M", crdi_json_number(100 * t->metrics.M));
    json_object_set_new(j, "P", crdi_json_number(100 * t->metrics.P));
    json_object_set_new(j, "rms", crdi_json_number(t->metrics.rms));
    json_object_set_new(j, "worst", crdi_json_number(t->metrics.worst));
    json_object_set_new(j, "learns", json_boolean(t->learns));
    json_object_set_new(j, "networks", json_integer(t->networks));
    json_object_set_new(j, "connects", json_integer((json_int_t)t->connects));
    json_object_set_new(j, "swaps", json_integer(t->counts.swaps));
    json_object_set_new(j, "rollbacks", json_integer(t->counts.rollbacks));
}

static json_t* coupling_to_json(const crd_coupling_report* c)
{
    const crd_coupling_counts* n = &c->taps[0].counts;
    const struct {
        const char* name;
        int64_t value;
    } counts[] = {{"sent", c->sent},
                  {"lost", c->lost},
                  {"repeated", c->repeated},
                  {"filled", n->filled},
                  {"late", n->late},
                  {"too_late", n->too_late},
                  {"duplicates", n->duplicates},
                  {"not_finite", n->not_finite},
                  {"beyond", n->beyond},
                  {"jumps", n->jumps},
                  {"restarts", n->restarts}};
    json_t* j = json_object();
    json_object_set_new(j, "from", crdi_json_text(c->from));
    json_object_set_new(j, "to", crdi_json_text(c->to));
    json_object_set_new(j, "step", crdi_json_number(c->step));
    tap_to_json(j, &c->taps[0]);
    json_object_set_new(j, "k_mean", crdi_json_number(c->k_mean));
    json_object_set_new(j, "k_max", json_integer(c->k_max));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        json_object_set_new(j, counts[i].name, json_integer(counts[i].value));
    }
    json_t* shadows = json_array();
    for (int t = 1; t < c->tap_count; t++) {
        json_t* shadow = json_object();
        tap_to_json(shadow, &c->taps[t]);
        json_array_append_new(shadows, shadow);
    }
    json_object_set_new(j, "shadows", shadows);
    json_object_set_new(j, "hint", *c->hint ? crdi_json_text(c->hint) : json_null());
    return j;
}

static json_t* report_to_json(crd_context* ctx, const crd_master_report* r, bool by_page)
{
    json_t* j = json_object();
    json_object_set_new(j, "end", json_string(by_page ? "page" : ends[r->end].word));
    json_object_set_new(j, "end_unit", *r->end_unit ? crdi_json_text(r->end_unit) : json_null());
    json_object_set_new(j, "start", crdi_json_number(r->start));
    json_object_set_new(j, "stop", crdi_json_number(r->stop));
    json_object_set_new(j, "step", crdi_json_number(r->step));
    json_object_set_new(j, "time", crdi_json_number(r->time));
    json_object_set_new(j, "steps", json_integer(r->steps));
    json_object_set_new(j, "threads", json_integer(r->threads));
    json_object_set_new(j, "wall_time", crdi_json_number(r->wall_time));
    json_object_set_new(j, "initialization_time", crdi_json_number(r->initialization_time));
    json_object_set_new(j, "real_time_factor",
                        crdi_json_number((r->time - r->start) / r->wall_time));
    json_object_set_new(j, "rows", json_integer(r->rows));
    json_object_set_new(j, "results", *r->results ? crdi_json_text(r->results) : json_null());
    json_object_set_new(j, "exchange", *r->exchange ? crdi_json_text(r->exchange) : json_null());
    json_object_set_new(j, "exchanged", json_integer(r->exchanged));
    json_object_set_new(j, "pace", crdi_pace_json(ctx, r));
    const double whole = whole_time(r);
    json_t* units = json_array();
    for (int i = 0; i < r->unit_count; i++) {
        json_array_append_new(units, unit_to_json(ctx, &r->units[i], whole));
    }
    json_object_set_new(j, "units", units);
    json_t* loops = json_array();
    for (int i = 0; i < r->loop_count; i++) {
        json_array_append_new(loops, loop_to_json(&r->loops[i]));
    }
    json_object_set_new(j, "loops", loops);
    json_t* couplings = json_array();
    for (int i = 0; i < r->coupling_count; i++) {
        json_array_append_new(couplings, coupling_to_json(&r->couplings[i]));
    }
    json_object_set_new(j, "couplings", couplings);
    crdi_quality_to_json(r, j);
    return j;
}

crd_status crdi_report_json(crdi_cli* cli, const crd_master_report* r, const crdi_run_end* end)
{
    const crd_status st = end->status;
    json_t* j = r ? report_to_json(cli->ctx, r, end->by_page) : json_object();
    json_object_set_new(j, "status", json_string(crd_status_name(st)));
    json_object_set_new(j, "exit_code", json_integer(crd_status_exit_code(st)));
    json_object_set_new(j, "error",
                        st < 0 ? crdi_json_text(crd_error_text(cli->ctx)) : json_null());
    json_object_set_new(j, "warnings", crdi_warnings_json(cli));
    const crd_status printed = crdi_json_print(cli, j);
    return st < 0 ? st : printed;
}
