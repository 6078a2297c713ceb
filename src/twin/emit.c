// A twin as C for controllers: constants, which take no memory there. What runs is the code of this
// folder, in libcardan-core, so that results are the same bits.
#include "shared/base_c.h"
#include "shared/circuit_part.h"
#include "shared/twin_emit.h"
#include "twin/twin.h"

#include <math.h>
#include <string.h>

static void put_doubles(crd_text* out, const char* name, int index, const double* v, int count)
{
    char digits[CRDI_C_NUMBER];
    crdi_text_add(out, "static const double %s_%d[] = {", name, index);
    for (int i = 0; i < count; i++) {
        crdi_text_add(out, "%s%s", i ? ", " : "", crdi_c_number(digits, v[i]));
    }
    crdi_text_add(out, "};\n");
}

// ---- the network -------------------------------------------------------------------------------

static void put_expression(crd_text* out, const char* kind, int index, const crd_expression* e)
{
    char digits[CRDI_C_NUMBER];
    const crd_use* uses;
    const int count = crd_expression_uses(e, &uses);
    int points = 0;
    crdi_text_add(out, "static const crd_use %s_uses_%d[] = {", kind, index);
    for (int i = 0; i < count; i++) {
        crdi_text_add(out, "%s{%d, %d, %d}", i ? ", " : "", uses[i].kind, (int)uses[i].a,
                      (int)uses[i].b);
    }
    crdi_text_add(out, "%s};\nstatic const crd_expression_step %s_steps_%d[] = {\n",
                  count ? "" : "{0}", kind, index);
    for (int i = 0; i < e->count; i++) {
        const crd_expression_step* s = &e->steps[i];
        crdi_text_add(out, "    {%d, %d, %d, %d, %s},\n", s->op, (int)s->a, (int)s->b, (int)s->c,
                      crdi_c_number(digits, s->k));
        const int end = crdi_step_points(s);
        points = end > points ? end : points;
    }
    crdi_text_add(out, "};\n");
    const double none = 0;
    put_doubles(out, kind, index, points ? e->table : &none, points ? points : 1);
    crdi_text_add(out,
                  "static const crd_expression %s_at_%d = {%d, %d, %d, (crd_use*)%s_uses_%d,\n"
                  "    (crd_expression_step*)%s_steps_%d, (double*)%s_%d};\n",
                  kind, index, e->count, e->use_count, e->constants, kind, index, kind, index, kind,
                  index);
}

static void put_waves(crd_text* out, const crd_netlist* n)
{
    char digits[CRDI_C_NUMBER];
    for (int i = 0; i < n->wave_count; i++) {
        if (n->waves[i].kind != CRD_WAVE_PWL) { continue; }
        put_doubles(out, "times", i, n->waves[i].times, n->waves[i].count);
        put_doubles(out, "values", i, n->waves[i].values, n->waves[i].count);
    }
    crdi_text_add(out, "static const crd_waveform waves[] = {\n");
    for (int i = 0; i < n->wave_count; i++) {
        const crd_waveform* w = &n->waves[i];
        crdi_text_add(out, "    {.kind = %d, .v = {", w->kind);
        for (int k = 0; k < 7; k++) {
            crdi_text_add(out, "%s%s", k ? ", " : "", crdi_c_number(digits, w->v[k]));
        }
        crdi_text_add(out, "}, ");
        if (w->kind == CRD_WAVE_PWL) {
            crdi_text_add(out, ".times = times_%d, .values = values_%d, .count = %d, ", i, i,
                          w->count);
        }
        crdi_text_add(out, ".input = %d},\n", w->input);
    }
    crdi_text_add(out, "    {0}};\n");
}

// Capacitors and inductors begin with what the simulation has found.
static void put_parts(crd_text* out, const crd_twin* w)
{
    const crd_netlist* n = w->net;
    crdi_text_add(out, "static const char names[] =");
    int at = 0;
    crdi_text_add(out, "\n    ");
    for (int32_t i = 0; i < n->part_count; i++) {
        crdi_c_string(out, n->names + n->parts[i].name);
        crdi_text_add(out, " \"\\0\"%s", i % 4 == 3 ? "\n    " : " ");
    }
    crdi_text_add(out, "\"\";\nstatic const crd_part parts[] = {\n");
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        double ic = p->ic;
        for (int s = 0; s < w->p; s++) {
            if (w->m->state_part[s] == i) { ic = crdi_twin_start_value(w, s); }
        }
        crdi_text_add(out, "    {.kind = %d, .thermal = %d, .has_ic = %d, .nodes = {%d, %d, %d, ",
                      p->kind, p->thermal, p->has_ic, (int)p->nodes[0], (int)p->nodes[1],
                      (int)p->nodes[2]);
        crdi_text_add(out, "%d}, .refs = {%d, %d},\n     ", (int)p->nodes[3], (int)p->refs[0],
                      (int)p->refs[1]);
        crdi_c_number_field(out, "value", p->value);
        crdi_c_number_field(out, "ic", ic);
        crdi_text_add(out, ".index = %d, .name = %d},\n", (int)p->index, at);
        at += (int)strlen(n->names + p->name) + 1;
    }
    crdi_text_add(out, "};\n");
}

static void put_network(crd_text* out, const crd_twin* w)
{
    const crd_netlist* n = w->net;
    put_waves(out, n);
    put_parts(out, w);
    for (int i = 0; i < n->expression_count; i++) {
        put_expression(out, "law", i, n->expressions[i]);
    }
    for (int i = 0; i < n->output_count; i++) {
        put_expression(out, "output", i, n->outputs[i].what);
    }
    crdi_text_add(out, "static const crd_expression* const laws[] = {");
    for (int i = 0; i < n->expression_count; i++) {
        crdi_text_add(out, "&law_at_%d, ", i);
    }
    crdi_text_add(out, "0};\nstatic const crd_circuit_output outputs[] = {\n");
    for (int i = 0; i < n->output_count; i++) {
        crdi_text_add(out, "    {");
        crdi_c_string_field(out, "name", n->outputs[i].name);
        crdi_c_string_field(out, "unit", n->outputs[i].unit);
        crdi_text_add(out, ".what = &output_at_%d},\n", i);
    }
    crdi_text_add(out, "    {0}};\nstatic const crd_circuit_input inputs[] = {\n");
    for (int i = 0; i < n->input_count; i++) {
        crdi_text_add(out, "    {");
        crdi_c_string_field(out, "name", n->inputs[i].name);
        crdi_c_string_field(out, "unit", n->inputs[i].unit);
        crdi_c_number_field(out, "start", n->inputs[i].start);
        crdi_text_add(out, ".part = %d},\n", (int)n->inputs[i].part);
    }
    crdi_text_add(out, "    {0}};\nstatic const char* const nodes[] = {\n");
    for (int32_t i = 0; i < n->node_count; i++) {
        crdi_text_add(out, "    ");
        crdi_c_string(out, n->nodes[i]);
        crdi_text_add(out, ",\n");
    }
    crdi_text_add(out,
                  "};\nstatic const crd_netlist network = {\n    .title = \"\", .names = names, "
                  ".nodes = nodes, .node_count = %d,\n    .parts = (crd_part*)parts, .part_count = "
                  "%d, .waves = waves, .expressions = laws,\n    .wave_count = %d, "
                  ".expression_count = %d, .inputs = inputs, .outputs = outputs,\n    "
                  ".input_count = %d, .output_count = %d, ",
                  (int)n->node_count, (int)n->part_count, n->wave_count, n->expression_count,
                  n->input_count, n->output_count);
    crdi_c_number_field(out, "temperature", n->temperature);
    crdi_text_add(out, "};\n");
}

// ---- what is not known -------------------------------------------------------------------------

static void put_group_parts(crd_text* out, const char* kind, int index, const crd_twin_group* g)
{
    crdi_text_add(out, "static const int32_t %s_parts_%d[] = {", kind, index);
    for (int i = 0; i < g->count; i++) {
        crdi_text_add(out, "%s%d", i ? ", " : "", (int)g->parts[i]);
    }
    crdi_text_add(out, "};\n");
    if (g->factors) { put_doubles(out, kind, index, g->factors, g->count); }
}

static void put_group(crd_text* out, const char* kind, int index, const crd_twin_group* g)
{
    crdi_text_add(out, "    {.group = {");
    crdi_c_string_field(out, "name", g->name);
    crdi_text_add(out, ".parts = %s_parts_%d, .count = %d, ", kind, index, g->count);
    if (g->factors) { crdi_text_add(out, ".factors = %s_%d", kind, index); }
    crdi_text_add(out, "},\n     ");
}

static void put_spec(crd_text* out, const crd_twin_spec* s, const char* name)
{
    for (int i = 0; i < s->source_count; i++) {
        put_group_parts(out, "source", i, &s->sources[i].group);
    }
    for (int i = 0; i < s->parameter_count; i++) {
        put_group_parts(out, "value", i, &s->parameters[i].group);
    }
    crdi_text_add(out, "static const crd_twin_sensor sensors[] = {\n");
    for (int i = 0; i < s->sensor_count; i++) {
        crdi_text_add(out, "    {");
        crdi_c_string_field(out, "name", s->sensors[i].name);
        crdi_c_string_field(out, "what", s->sensors[i].what);
        crdi_c_string_field(out, "unit", s->sensors[i].unit);
        crdi_c_number_field(out, "sd", s->sensors[i].sd);
        crdi_text_add(out, "},\n");
    }
    crdi_text_add(out, "};\nstatic const crd_twin_source sources[] = {\n");
    for (int i = 0; i < s->source_count; i++) {
        const crd_twin_source* x = &s->sources[i];
        put_group(out, "source", i, &x->group);
        crdi_text_add(out, ".model = %d, ", x->model);
        crdi_c_number_field(out, "noise", x->noise);
        crdi_c_number_field(out, "frequency", x->frequency);
        crdi_c_number_field(out, "start", x->start);
        crdi_c_number_field(out, "sd", x->sd);
        crdi_text_add(out, "},\n");
    }
    crdi_text_add(out, "    {.noise = 0}};\nstatic const crd_twin_parameter values[] = {\n");
    for (int i = 0; i < s->parameter_count; i++) {
        const crd_twin_parameter* x = &s->parameters[i];
        put_group(out, "value", i, &x->group);
        crdi_c_number_field(out, "start", x->start);
        crdi_c_number_field(out, "sd", x->sd);
        crdi_c_number_field(out, "drift", x->drift);
        crdi_text_add(out, "},\n");
    }
    crdi_text_add(out,
                  "    {.start = 0}};\nstatic const crd_twin_spec spec = {\n    .sensors = "
                  "sensors, .sources = sources, .parameters = values, .sensor_count = %d,\n    "
                  ".source_count = %d, .parameter_count = %d, .filter = %d, .frozen_after = %d, ",
                  s->sensor_count, s->source_count, s->parameter_count, s->filter, s->frozen_after);
    crdi_c_number_field(out, "step", s->step);
    crdi_text_add(out, "\n    ");
    crdi_c_number_field(out, "state_noise", s->state_noise);
    crdi_c_number_field(out, "state_sd", s->state_sd);
    crdi_c_number_field(out, "thesis_q", s->thesis_q);
    crdi_c_number_field(out, "gate", s->gate);
    crdi_text_add(out,
                  "};\n\ncrd_status %s_create(crd_context* ctx, crd_twin** out)\n{\n"
                  "    return crd_twin_create(ctx, &network, &spec, out);\n}\n",
                  name);
}

// ---- what a step costs -------------------------------------------------------------------------

// Loops of ud.c, twin.c, model.c and rows.c, each at its longest.
static void count_step(const crd_twin* w, crdi_twin_emit_report* r)
{
    const int64_t n = w->n, p = w->p, in = w->r, k = w->k, sources = w->spec.source_count;
    const int64_t wide = (n + w->noises + 7) / 8 * 8, moving = w->moving_count;
    const int64_t linear = 2 * p + in * (4 + 2 * sources), ahead = 2 * p + 4 * in + 3;
    int64_t sums = n * n * (n + 3) + n * 3 * wide + n * (n - 1) / 2 * (4 * wide + 2) + 4 * n;
    sums += w->constant ? 2 * n * n + 4 * p * moving
                        : p * (ahead + k * ahead) + 2 * (n - p) * (n - p) + sources * (12 + 4 * in);
    if (!w->constant) { // the transition
        sums += p * k * (2 * ahead) + sources * (12 + 4 * in + p * (4 * in + 10)) + 3 * k;
    }
    r->divisions = n;
    for (int i = 0; i < w->spec.sensor_count; i++) {
        const int64_t row = w->sensors[i].row.count;
        sums += w->constant ? 2 * n + 2 * moving : 2 * row * (linear + k * (linear + 3));
        sums += n * (n + 4) + n * 7 + 2 * n * (n - 1) + 7 * n + 30;
        r->divisions += n + 6;
    }
    r->sums = sums;
}

// A step in which matrices are made anew: reduce.c, once for each part that moves, and discretise.c
static void count_matrices(const crd_twin* w, crdi_twin_emit_report* r)
{
    const crd_netlist* net = w->net;
    int64_t m = net->node_count, stores = 0, sets = 0, size = 0;
    const int64_t p = w->p, in = w->r, k = w->k, all = w->m->variables;
    for (int32_t i = 0; i < net->part_count; i++) {
        const crdi_part_kind* kind = crdi_part_kind_of(&net->parts[i]);
        m += kind->fixes == CRDI_FIXES_VOLTAGE || kind->stores;
        stores += kind->stores != CRDI_STORES_NOTHING;
    }
    for (int g = 0; g < k; g++) {
        sets += w->spec.parameters[g].group.count;
    }
    sets += w->law_count > 0;
    const int64_t d = stores - p, wide = p + in + d;
    const int64_t solve = 2 * m * m * wide + 2 * p * p * wide;
    const int64_t rest = 2 * d * (wide * wide + p * p + 2 * all * wide) + 4 * all * wide +
                         stores * stores + 2 * net->part_count;
    const int64_t renew = m * m * m + p * p * p + solve + rest;
    // Halvings until |Fc h| <= 1/2, and ten more: time constants may become a thousandth
    for (int64_t i = 0; i < p; i++) {
        double sum = 0;
        for (int64_t j = 0; j < p; j++) {
            sum += fabs(w->m->fc[i * p + j]) * w->h;
        }
        int halvings = 0;
        for (; sum > 0.5 && halvings < 40; sum /= 2) {
            halvings++;
        }
        size = halvings > size ? halvings : size;
    }
    const int64_t cube = 2 * p * p * p, pass = (k + 1) * (2 * cube + 4 * p * p);
    const int64_t discretise =
        18 * pass + 3 * pass + (size + 10) * 3 * pass + (k + 1) * 12 * p * p * in;
    r->again = r->sums + sets * renew + 2 * k * (2 * m * m + solve + 2 * rest) + discretise;
}

// Longer ones need 64 KB of stack while they are computed.
static crd_status check_expressions(crd_context* ctx, const crd_netlist* n, const char* origin)
{
    enum { MOST = 64 };
    for (int i = 0; i < n->expression_count + n->output_count; i++) {
        const bool law = i < n->expression_count;
        const crd_expression* e =
            law ? n->expressions[i] : n->outputs[i - n->expression_count].what;
        if (e->count <= MOST) { continue; }
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "%s: %s%s has %d operations, expected %d at most: a controller has little "
                         "stack",
                         origin, law ? "a law" : "the output ",
                         law ? "" : n->outputs[i - n->expression_count].name, e->count, MOST);
    }
    return CRD_OK;
}

// ---- the files ---------------------------------------------------------------------------------

static const char* sensor_name(const void* user, int i)
{
    return ((const crd_twin*)user)->spec.sensors[i].name;
}

static const char* input_name(const void* user, int i)
{
    return ((const crd_twin*)user)->net->inputs[i].name;
}

static const char* output_name(const void* user, int i)
{
    return ((const crd_twin*)user)->net->outputs[i].name;
}

static const char* source_name(const void* user, int i)
{
    return ((const crd_twin*)user)->spec.sources[i].group.name;
}

static const char* value_name(const void* user, int i)
{
    return ((const crd_twin*)user)->spec.parameters[i].group.name;
}

static void put_header(crd_text* out, const crd_twin* w, const char* name, const char* origin,
                       const crdi_twin_emit_report* r)
{
    char step[CRDI_C_NUMBER];
    crdi_text_add(out,
                  "// The digital twin %s for libcardan-core, by cardan export c. A step takes at "
                  "most %lld\n// sums, products and comparisons and %lld divisions and roots",
                  crdi_clip(origin).text, (long long)r->sums, (long long)r->divisions);
    if (r->again) {
        crdi_text_add(out,
                      ", and %lld when values have moved\n// so far that its matrices are "
                      "made anew",
                      (long long)r->again);
    }
    crdi_text_add(out,
                  ".\n#pragma once\n#include \"cardan/twin.h\"\n\n"
                  "#define %s_STEP %s // s, from one measurement to the next\n\n"
                  "// Indices for crd_twin_step (sensors), crd_twin_set_input (inputs), "
                  "crd_twin_output, crd_twin_source_now,\n// crd_twin_parameter_now (values)\n"
                  "enum {\n",
                  name, crdi_c_number(step, w->spec.step));
    crdi_c_indices(out, name, "sensor", sensor_name, w, w->spec.sensor_count);
    crdi_c_indices(out, name, "input", input_name, w, w->net->input_count);
    crdi_c_indices(out, name, "output", output_name, w, w->net->output_count);
    crdi_c_indices(out, name, "source", source_name, w, w->spec.source_count);
    crdi_c_indices(out, name, "value", value_name, w, w->spec.parameter_count);
    crdi_text_add(out,
                  "};\n\n// Takes memory of the context, steps do not. Then crd_twin_begin, and "
                  "crd_twin_step each %s_STEP\n// with what is measured (NAN: nothing).\n"
                  "crd_status %s_create(crd_context* ctx, crd_twin** out);\n",
                  name, name);
}

crd_status crdi_twin_emit(crd_context* ctx, const crd_twin_description* d, const char* name,
                          const char* origin, crd_text* source, crd_text* header,
                          crdi_twin_emit_report* report)
{
    crd_status st;
    crd_twin* w = NULL;
    *report = (crdi_twin_emit_report){0};
    if (d->spec.filter == CRD_TWIN_THESIS) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "%s: the published filter is there to compare with, not for controllers; "
                         "expected filter: auto",
                         origin);
    }
    CRD_TRY(check_expressions(ctx, d->netlist, origin));
    CRD_TRY(crd_twin_create(ctx, d->netlist, &d->spec, &w));
    CRD_TRY(crd_twin_begin(w, 0));
    count_step(w, report);
    if (!w->constant) { count_matrices(w, report); }
    report->size = w->n;
    put_header(header, w, name, origin, report);
    crdi_text_add(
        source,
        "// The digital twin %s for libcardan-core, by cardan export c: %s.h says what it "
        "is.\n#include \"%s.h\"\n\n#include <math.h>\n\n",
        crdi_clip(origin).text, name, name);
    put_network(source, w);
    put_spec(source, &w->spec, name);
fail:
    crd_twin_destroy(w);
    return st;
}
