// Any bytes as the description of a twin of a fixed netlist: as JSON and as YAML. What is accepted
// can be written and read again as the same; a twin of it is made, stepped, saved and restored, and
// looked at; what can be observed with it is worked out.
// modules: twin circuit system num base
#include "cardan/system.h"
#include "cardan/twin.h"
#include "fuzz.h"
#include "shared/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWNS = 10, SENSORS = 8, STEPS = 3, ROWS = 20 };

static const char netlist[] =
    "twin\n.param heat=10\n.input speed start=1\n.thermal\nheat q0 1 {heat}\nheat q1 2 sin(1 1 5)\n"
    "resistance r1 1 2 1\nresistance r2 2 3 2\nresistance r3 3 air 3\n"
    "capacity c1 2 0.1 start=-1\ncapacity c2 3 0.2 start=1\ntemperature air air 5\n.endthermal\n"
    "V1 10 0 input(speed)\nR10 10 11 5\nL1 11 12 0.1\nC3 12 0 1m\n"
    ".output top=t(1) sum={t(2)+2*v(12)}\n.tran 1m 1 uic\n.end\n";

static void demand(bool good)
{
    if (!good) { __builtin_trap(); }
}

static double look(const crd_twin* w, const crd_netlist* n, const crd_twin_spec* s)
{
    double sum = crd_twin_time(w);
    for (int i = -1; i <= n->output_count; i++) {
        sum += crd_twin_output(w, i).sd;
    }
    for (int32_t i = -1; i <= n->node_count; i++) {
        sum += crd_twin_node(w, i).value;
    }
    for (int i = 0; i <= crd_twin_states(w); i++) {
        sum += crd_twin_state(w, i).sd;
    }
    for (int i = 0; i <= s->parameter_count; i++) {
        sum += crd_twin_parameter_now(w, i).value;
    }
    for (int i = 0; i <= s->source_count; i++) {
        sum += crd_twin_source_now(w, i).value;
    }
    for (int i = 0; i <= s->sensor_count; i++) {
        sum += crd_twin_sensor_now(w, i).innovation;
    }
    return sum;
}

// A value is missing here and there, and one is wild.
static crd_status steps(crd_twin* w, const crd_twin_spec* s)
{
    crd_status st = CRD_OK;
    for (int k = 0; k < STEPS && st >= 0; k++) {
        double y[SENSORS];
        for (int i = 0; i < s->sensor_count; i++) {
            y[i] = (k + i) % 4 == 3 ? (double)NAN : k == 2 && i == 1 ? 1e12 : 3 + 0.1 * k - i;
        }
        st = crd_twin_step(w, y);
    }
    return st;
}

static void run(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* s)
{
    crd_twin* w = NULL;
    if (crd_twin_create(ctx, n, s, &w) < 0) {
        demand(crd_error_text(ctx)[0] != 0);
        return;
    }
    void* kept = malloc(crd_twin_state_size(w) + 1);
    if (kept && crd_twin_begin(w, 0) >= 0 && steps(w, s) >= 0) {
        crd_twin_save(w, kept);
        const crd_status first = steps(w, s);
        const double a = crd_twin_node(w, 2).value;
        (void)look(w, n, s);
        crd_twin_restore(w, kept);
        const crd_status second = steps(w, s);
        const double b = crd_twin_node(w, 2).value;
        demand(first == second && (a == b || (isnan(a) && isnan(b))));
    }
    free(kept);
    crd_twin_destroy(w);
}

static void observe(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* s)
{
    const crd_twin_data data = {.rows = ROWS, .from = (double)NAN, .to = (double)NAN};
    crd_arena arena;
    crd_observability o;
    crd_arena_init(&arena, ctx);
    if (crd_twin_observe(ctx, n, s, &data, true, &arena, &o) >= 0) {
        demand(o.rank >= 0 && o.rank <= o.unknowns);
        for (int i = 0; i < o.unknowns; i++) {
            demand(crd_observability_name(&o, i, &arena) != NULL);
        }
    } else {
        demand(crd_error_text(ctx)[0] != 0);
    }
    crd_arena_clear(&arena);
}

static void write_again(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* s)
{
    crd_text one, two;
    crd_twin_description* again = NULL;
    crd_text_init(&one, ctx);
    crd_text_init(&two, ctx);
    demand(crd_twin_write(n, s, &one) >= 0);
    demand(crd_twin_parse(ctx, one.data, one.length, "again", 1, n, &again) >= 0);
    demand(crd_twin_write(n, &again->spec, &two) >= 0 && strcmp(one.data, two.data) == 0);
    crd_twin_description_destroy(again);
    crd_text_clear(&one);
    crd_text_clear(&two);
}

static void parse(crd_context* ctx, const crd_netlist* n, const char* text, size_t length)
{
    crd_twin_description* d = NULL;
    if (crd_twin_parse(ctx, text, length, "twin.json", 1, n, &d) < 0) {
        demand(crd_error_text(ctx)[0] != 0);
        return;
    }
    const crd_twin_spec* s = &d->spec;
    write_again(ctx, n, s);
    if (s->sensor_count <= SENSORS && s->source_count + s->parameter_count <= UNKNOWNS) {
        run(ctx, n, s);
        observe(ctx, n, s);
    }
    crd_twin_description_destroy(d);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return 0; }
    crd_netlist* n = NULL;
    demand(crd_netlist_parse(ctx, netlist, sizeof netlist - 1, "twin.cir", NULL, &n) >= 0);
    parse(ctx, n, (const char*)data, size);
    crd_text json;
    crd_text_init(&json, ctx);
    const crd_place place = {"twin.yaml", 1};
    if (crd_yaml_to_json(ctx, (const char*)data, size, place, &json) == CRD_OK) {
        parse(ctx, n, json.data, json.length);
    }
    crd_text_clear(&json);
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
    return 0;
}
