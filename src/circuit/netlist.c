// Reading a netlist from end to end, and what is left to do when all of it is known.
#include "circuit/netlist.h"

#include <math.h>
#include <string.h>

static crdi_mark netlist_place_of(const crd_part* part)
{
    return (crdi_mark){part->file, part->line};
}

static const char* netlist_name_of(const crdi_parser* p, const crd_part* part)
{
    return p->out->names.data + part->name;
}

// "file:line: name" in front of the sentence
static crd_status fail_part(crdi_parser* p, const crd_part* part, crd_status st, const char* what,
                            double value, const char* want)
{
    const crdi_mark at = netlist_place_of(part);
    return crdi_fail(p->ctx, st, "%s:%d: %s: %s = %g, expected %s", p->out->files[at.file], at.line,
                     crdi_clip(netlist_name_of(p, part)).text, what, value, want);
}

// ---- finishing ---------------------------------------------------------------------------------

static crd_status map_parts(crdi_parser* p)
{
    crd_status st = CRD_OK;
    crd_map* map = &p->out->part_map;
    CRD_TRY(crdi_map_reserve(map, (size_t)p->n->part_count));
    for (int32_t i = 0; i < p->n->part_count; i++) {
        const crd_part* part = &p->n->parts[i];
        bool fresh = false;
        CRD_TRY(crdi_map_add(map, netlist_name_of(p, part), i, &fresh));
        if (!fresh) {
            const crd_part* other = &p->n->parts[crdi_map_find(map, netlist_name_of(p, part))];
            return crdi_fail(p->ctx, CRD_E_FORMAT, "%s:%d: %s is there twice, first in line %d",
                             p->out->files[part->file], part->line,
                             crdi_clip(netlist_name_of(p, part)).text, other->line);
        }
    }
    for (int32_t i = 0; i < p->pending_count; i++) {
        crdi_pending* q = &p->pending[i];
        q->part = crdi_map_find(map, q->name);
        if (q->part < 0 || crdi_part_kind_of(&p->n->parts[q->part])->couples) {
            return crdi_fail(p->ctx, CRD_E_NOT_FOUND, "%s:%d: %s \"%s\"", p->out->files[q->file],
                             q->line, q->part < 0 ? "there is no part" : "there is no current in",
                             crdi_clip(q->name).text);
        }
    }
fail:
    return st;
}

static crd_status resolve_parts(crdi_parser* p)
{
    for (int32_t i = 0; i < p->n->part_count; i++) {
        crd_part* part = &p->n->parts[i];
        const bool mutual = crdi_part_kind_of(part)->couples;
        for (int k = 0; k < 2 && part->refs[k] >= 0; k++) {
            const int32_t to = p->pending[part->refs[k]].part;
            const crd_part* other = &p->n->parts[to];
            if (other->kind != (mutual ? CRD_PART_INDUCTOR : CRD_PART_VOLTAGE)) {
                return crdi_fail(p->ctx, CRD_E_RANGE, "%s:%d: %s needs %s, and %s is none",
                                 p->out->files[part->file], part->line,
                                 crdi_clip(netlist_name_of(p, part)).text,
                                 mutual ? "two inductors" : "the current of a voltage source",
                                 crdi_clip(netlist_name_of(p, other)).text);
            }
            part->refs[k] = to;
        }
    }
    return CRD_OK;
}

static void resolve_uses(crdi_parser* p, const crd_expression* e)
{
    int count;
    crd_use* uses = crdi_expression_use_list((crd_expression*)e, &count); // made by us
    for (int i = 0; i < count; i++) {
        if (uses[i].kind == CRD_USE_CURRENT) { uses[i].a = p->pending[uses[i].a].part; }
    }
}

static crd_status check_nodes(crdi_parser* p)
{
    for (int32_t i = 1; i < p->n->node_count; i++) {
        if (p->node_domain[i] == 0) {
            return crdi_fail(p->ctx, CRD_E_NOT_FOUND,
                             "%s:%d: there is no node \"%s\": no part is connected to it",
                             p->out->files[p->node_at[i].file], p->node_at[i].line,
                             crdi_clip(p->out->nodes[i]).text);
        }
    }
    return CRD_OK;
}

static crd_status needs_tran(crdi_parser* p, const crd_part* part, const char* what)
{
    return crdi_fail(p->ctx, CRD_E_FORMAT, "%s:%d: %s: %s is missing, and there is no .tran for it",
                     p->out->files[part->file], part->line,
                     crdi_clip(netlist_name_of(p, part)).text, what);
}

static void netlist_fill(double* v, double value)
{
    if (isnan(*v)) { *v = value; }
}

// What was left out (NAN), as ngspice fills it in; a rise of 0 is one of .tran's steps there.
static crd_status complete_wave(crdi_parser* p, const crd_part* part, crd_waveform* w)
{
    const double step = p->n->tran_step, stop = p->n->tran_stop;
    const bool tran = !isnan(stop);
    double* v = w->v;
    if (w->kind == CRD_WAVE_SIN) {
        netlist_fill(&v[2], 1 / stop);
        if (isnan(v[2])) { return needs_tran(p, part, "the frequency"); }
        netlist_fill(&v[3], 0);
        netlist_fill(&v[4], 0);
        netlist_fill(&v[5], 0);
    } else if (w->kind == CRD_WAVE_PULSE) {
        netlist_fill(&v[2], 0);
        for (int i = 3; i < 7; i++) {
            if (v[i] < 0) { return fail_part(p, part, CRD_E_RANGE, "a time", v[i], ">= 0"); }
            if (isnan(v[i]) || v[i] == 0) {
                v[i] = i < 5 ? (tran ? step : 0) : (tran ? stop : (double)INFINITY);
            }
        }
    } else if (w->kind == CRD_WAVE_EXP) {
        netlist_fill(&v[2], 0);
        for (int i = 3; i < 6; i++) {
            if (i != 4 && v[i] == 0) { v[i] = (double)NAN; }
            netlist_fill(&v[i], i == 4 ? v[2] + step : step);
            if (isnan(v[i])) { return needs_tran(p, part, "a time"); }
            if (i != 4 && !(v[i] > 0)) {
                return fail_part(p, part, CRD_E_RANGE, "a time constant", v[i], "> 0");
            }
        }
    }
    return CRD_OK;
}

static crd_status complete_sources(crdi_parser* p)
{
    crdi_netlist* o = p->out;
    for (int32_t i = 0; i < p->n->part_count; i++) {
        const crd_part* part = &p->n->parts[i];
        if (!crdi_part_is_source(part)) { continue; }
        crd_waveform* w = &o->waves[part->index];
        const crd_status st = complete_wave(p, part, w);
        if (st < 0) { return st; }
        if (w->kind == CRD_WAVE_INPUT && o->inputs[w->input].part < 0) {
            o->inputs[w->input].part = i;
        }
    }
    return CRD_OK;
}

// An input sets the source that it names, or that is called as it is.
static crd_status complete_inputs(crdi_parser* p)
{
    crdi_netlist* o = p->out;
    for (int i = 0; i < o->n.input_count; i++) {
        crd_circuit_input* in = &o->inputs[i];
        if (in->part >= 0) {
            in->part = p->pending[in->part].part;
        } else {
            in->part = crd_netlist_part(p->n, in->name);
            if (in->part >= 0 && !crdi_part_is_source(&p->n->parts[in->part])) { in->part = -1; }
        }
        const crd_part* part = in->part >= 0 ? &p->n->parts[in->part] : NULL;
        if (part && !crdi_part_is_source(part)) {
            return crdi_fail(p->ctx, CRD_E_RANGE, "%s:%d: .input %s: %s is no source V or I",
                             o->files[part->file], part->line, crdi_clip(in->name).text,
                             crdi_clip(netlist_name_of(p, part)).text);
        }
        if (part) {
            crd_waveform* w = &o->waves[part->index];
            if (w->kind == CRD_WAVE_INPUT && w->input != i) {
                return crdi_fail(p->ctx, CRD_E_RANGE, "%s:%d: %s has two inputs, %s and %s",
                                 o->files[part->file], part->line,
                                 crdi_clip(netlist_name_of(p, part)).text, crdi_clip(in->name).text,
                                 crdi_clip(o->inputs[w->input].name).text);
            }
            if (isnan(in->start) && w->kind == CRD_WAVE_DC) { in->start = w->v[0]; }
            *w = (crd_waveform){.kind = CRD_WAVE_INPUT, .input = i};
        }
        if (isnan(in->start)) { in->start = 0; }
    }
    return CRD_OK;
}

static crd_status complete_starts(crdi_parser* p)
{
    const size_t count = (size_t)p->n->node_count;
    double* ic = crdi_arena_new(&p->n->arena, count, sizeof *ic);
    if (!ic) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < count; i++) {
        ic[i] = p->node_ic && i < p->node_ic_capacity ? p->node_ic[i] : (double)NAN;
    }
    p->n->node_ic = ic;
    return CRD_OK;
}

static crd_status netlist_finish(crdi_parser* p)
{
    crd_status st = CRD_OK;
    crdi_netlist* o = p->out;
    if (p->n->part_count == 0) {
        return crdi_fail(p->ctx, CRD_E_FORMAT, "%s:1: the netlist has no parts", o->files[0]);
    }
    CRD_TRY(map_parts(p));
    CRD_TRY(resolve_parts(p));
    for (int i = 0; i < o->n.expression_count; i++) {
        resolve_uses(p, o->expressions[i]);
    }
    for (int i = 0; i < o->n.output_count; i++) {
        resolve_uses(p, o->outputs[i].what);
    }
    CRD_TRY(check_nodes(p));
    o->n.names = o->names.data;
    CRD_TRY(complete_inputs(p));
    CRD_TRY(complete_sources(p));
    CRD_TRY(complete_starts(p));
    o->n.files = o->files;
    o->n.nodes = o->nodes;
    o->n.waves = o->waves;
    o->n.expressions = o->expressions;
    o->n.diodes = o->diodes;
    o->n.switches = o->switches;
    o->n.inputs = o->inputs;
    o->n.outputs = o->outputs;
fail:
    return st;
}

// ---- reading -----------------------------------------------------------------------------------

// "N=100": values from outside take the place of the netlist's own
static crd_status apply_defines(crdi_parser* p, crdi_env* root)
{
    for (int i = 0; i < p->opt.define_count; i++) {
        const char* text = p->opt.defines[i];
        const char* equals = strchr(text, '=');
        char name[CRDI_NAME_MOST + 1];
        double value = 0;
        bool found = false;
        if (!equals || !crdi_word_fold((crdi_word){text, (size_t)(equals - text)}, name)) {
            return crdi_fail(p->ctx, CRD_E_FORMAT, "\"%s\": expected name=number",
                             crdi_clip(text).text);
        }
        const int32_t k = crdi_map_find(&p->scopes[0].param_map, name);
        if (k < 0) {
            return crdi_fail(p->ctx, CRD_E_NOT_FOUND, "%s: there is no .param \"%s\" to be set",
                             p->out->files[0], crdi_clip(name).text);
        }
        crdi_scan s = {p->ctx, equals + 1, equals + 1, text + strlen(text), text, 1};
        const crd_status st = crdi_scan_number(&s, &value, &found);
        if (st == CRD_E_MEMORY) { return st; }
        if (st < 0 || !found || !crdi_scan_end(&s)) {
            return crdi_fail(p->ctx, CRD_E_FORMAT, "\"%s\": expected name=number",
                             crdi_clip(text).text);
        }
        root->values[k] = value;
        root->states[k] = 2;
    }
    return CRD_OK;
}

// A number stands there, in braces or without, and behind it the next parameter or nothing.
static bool netlist_is_number(crdi_parser* p, const crdi_card* value)
{
    crdi_scan s = crdi_card_scan(p, value);
    crdi_word key;
    double x;
    bool found = false;
    const bool braced = crdi_scan_take(&s, '{'), quoted = !braced && crdi_scan_take(&s, '\'');
    if (crdi_scan_number(&s, &x, &found) < 0 || !found) { return false; }
    if ((braced && !crdi_scan_take(&s, '}')) || (quoted && !crdi_scan_take(&s, '\''))) {
        return false;
    }
    return crdi_scan_end(&s) || crdi_scan_take(&s, ',') || crdi_key(&s, &key);
}

static crd_status keep_parameters(crdi_parser* p, const crdi_env* root)
{
    const crdi_scope* s = &p->scopes[0];
    crd_circuit_parameter* list =
        crdi_arena_new(&p->n->arena, (size_t)s->param_count, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    for (int32_t i = 0; i < s->param_count; i++) {
        list[i].name = crdi_arena_text(&p->n->arena, s->params[i].name, strlen(s->params[i].name));
        if (!list[i].name) { return CRD_E_MEMORY; }
        list[i].value = root->values[i];
        const crdi_param* q = &s->params[i];
        list[i].written = crdi_arena_text(&p->n->arena, q->written.p, q->written.n);
        if (!list[i].written) { return CRD_E_MEMORY; }
        list[i].plain = netlist_is_number(p, &q->value);
    }
    p->n->parameters = list;
    p->n->parameter_count = s->param_count;
    return CRD_OK;
}

static crd_status netlist_expand(crdi_parser* p)
{
    crd_status st = CRD_OK;
    crdi_env root = {0};
    CRD_TRY(crdi_env_init(p, 0, NULL, &root));
    CRD_TRY(apply_defines(p, &root));
    CRD_TRY(crdi_controls_early(p, &root));
    CRD_TRY(crdi_scope_check(p));
    CRD_TRY(crdi_scope_expand(p, &root));
    CRD_TRY(crdi_controls_late(p, &root));
    CRD_TRY(netlist_finish(p));
    CRD_TRY(keep_parameters(p, &root));
fail:
    crdi_env_clear(p, &root);
    return st;
}

static void clear_parser(crdi_parser* p)
{
    crd_context* ctx = p->ctx;
    for (int32_t i = 0; i < p->scope_count; i++) {
        crdi_scope* s = &p->scopes[i];
        crd_free(ctx, s->params);
        crd_free(ctx, s->models);
        crd_free(ctx, s->functions);
        crdi_map_clear(&s->param_map);
        crdi_map_clear(&s->model_map);
        crdi_map_clear(&s->port_map);
        crdi_map_clear(&s->child_map);
        crdi_map_clear(&s->function_map);
    }
    for (int32_t i = 0; p->out && i < p->out->file_count; i++) {
        crd_free(ctx, p->sources[i].text);
        crd_free(ctx, p->sources[i].path);
    }
    void* const blocks[] = {p->sources, p->cards,       p->scopes,  p->sections, p->controls,
                            p->node_at, p->node_domain, p->pending, p->node_ic};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        crd_free(ctx, blocks[i]);
    }
    crdi_map_clear(&p->pending_map);
    crdi_map_clear(&p->global_map);
    crdi_map_clear(&p->noted);
    crdi_map_clear(&p->input_map);
    crdi_builder_clear(&p->builder);
    crd_arena_clear(&p->work);
    crd_free(ctx, p);
}

// Ground is there before everything else.
static crd_status add_ground(crdi_parser* p)
{
    crdi_netlist* o = p->out;
    o->nodes = crdi_grow(p->ctx, NULL, &o->node_capacity, 1, sizeof *o->nodes);
    p->node_at = crdi_grow(p->ctx, NULL, &p->node_at_capacity, 1, sizeof *p->node_at);
    p->node_domain = crdi_grow(p->ctx, NULL, &p->node_domain_capacity, 1, sizeof *p->node_domain);
    if (!o->nodes || !p->node_at || !p->node_domain) { return CRD_E_MEMORY; }
    o->nodes[0] = "0";
    p->node_at[0] = (crdi_mark){0, 0};
    p->node_domain[0] = 0;
    o->n.node_count = 1;
    return crdi_map_add(&o->node_map, "0", 0, NULL);
}

static crdi_netlist* new_netlist(crd_context* ctx)
{
    crdi_netlist* o = crdi_new(ctx, sizeof *o);
    if (!o) { return NULL; }
    o->n.ctx = ctx;
    o->n.title = "";
    o->n.temperature = 300.15; // 27 degrees Celsius
    o->n.tran_step = o->n.tran_stop = (double)NAN;
    crd_arena_init(&o->n.arena, ctx);
    crdi_map_init(&o->node_map, ctx);
    crdi_map_init(&o->part_map, ctx);
    crd_text_init(&o->names, ctx);
    return o;
}

crd_status crd_netlist_parse(crd_context* ctx, const char* text, size_t length, const char* file,
                             const crd_netlist_options* opt, crd_netlist** out)
{
    crd_status st = CRD_OK;
    crdi_parser* p = crdi_new(ctx, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    p->ctx = ctx;
    p->section = -1;
    p->nominal = 300.15;
    p->gmin = 1e-12;
    if (opt) { p->opt = *opt; }
    crd_arena_init(&p->work, ctx);
    crdi_builder_init(&p->builder, ctx);
    crdi_map_init(&p->pending_map, ctx);
    crdi_map_init(&p->global_map, ctx);
    crdi_map_init(&p->noted, ctx);
    crdi_map_init(&p->input_map, ctx);
    p->out = new_netlist(ctx);
    if (!p->out) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    p->n = &p->out->n;
    CRD_TRY(add_ground(p));
    CRD_TRY(crdi_netlist_lines(p, text, length, file));
    CRD_TRY(netlist_expand(p));
    crdi_netlist* made = p->out;
    clear_parser(p);
    *out = &made->n;
    return CRD_OK;
fail : {
    crdi_netlist* half = p->out;
    clear_parser(p);
    crd_netlist_destroy(half ? &half->n : NULL);
    return st;
}
}

crd_status crd_netlist_load(crd_context* ctx, const char* path, const crd_netlist_options* opt,
                            crd_netlist** out)
{
    crd_text text;
    crd_text_init(&text, ctx);
    crd_status st = crdi_netlist_read_file(ctx, path, &text);
    if (st == CRD_OK) {
        st = crd_netlist_parse(ctx, text.data ? text.data : "", text.length, path, opt, out);
    }
    crd_text_clear(&text);
    return st;
}

void crd_netlist_destroy(crd_netlist* n)
{
    if (!n) { return; }
    crdi_netlist* o = (crdi_netlist*)n; // its first member
    crd_context* ctx = n->ctx;
    void* const blocks[] = {(void*)o->files, (void*)o->nodes,       n->parts,  o->waves,  o->diodes,
                            o->switches,     (void*)o->expressions, o->inputs, o->outputs};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        crd_free(ctx, blocks[i]);
    }
    crdi_map_clear(&o->node_map);
    crdi_map_clear(&o->part_map);
    crd_text_clear(&o->names);
    crd_arena_clear(&n->arena);
    crd_free(ctx, o);
}

static int32_t netlist_find(const crd_map* map, const char* name)
{
    char text[CRDI_PATH_MOST + 1];
    const size_t n = strlen(name);
    if (n > CRDI_PATH_MOST) { return -1; }
    for (size_t i = 0; i <= n; i++) {
        const char c = name[i];
        text[i] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
    }
    return crdi_map_find(map, text);
}

int32_t crd_netlist_node(const crd_netlist* n, const char* name)
{
    const int32_t node = netlist_find(&((const crdi_netlist*)n)->node_map, name);
    return node < 0 && crdi_word_is((crdi_word){name, strlen(name)}, "gnd") ? 0 : node;
}

int32_t crd_netlist_part(const crd_netlist* n, const char* name)
{
    return netlist_find(&((const crdi_netlist*)n)->part_map, name);
}
