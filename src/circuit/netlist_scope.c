// Names inside definitions: parameters, nodes, parts; and the copies of subcircuits.
#include "circuit/netlist.h"

#include <math.h>
#include <string.h>

crdi_scan crdi_card_scan(const crdi_parser* p, const crdi_card* card)
{
    return (crdi_scan){p->ctx,    p->sources[card->file].text, card->p,
                       card->end, p->out->files[card->file],   card->line};
}

bool crdi_key(crdi_scan* s, crdi_word* key)
{
    const crdi_scan before = *s;
    *key = crdi_scan_word(s);
    if (key->n && crdi_scan_take(s, '=') && !(s->p < s->end && *s->p == '=')) { return true; }
    *s = before;
    return false;
}

// ---- parameters --------------------------------------------------------------------------------

static crd_status expression(crdi_reading* r, bool bare, bool constant, bool always,
                             const char* why, double* value, crd_expression** e);

static crd_status param_value(crdi_parser* p, crdi_env* e, int32_t i, const crdi_scan* at,
                              double* out)
{
    const crdi_param* q = &p->scopes[e->scope].params[i];
    if (e->states[i] == 1) {
        return crdi_scan_fail(at, CRD_E_RANGE, "the parameter \"%s\" needs itself",
                              crdi_clip(q->name).text);
    }
    if (e->states[i] == 0) {
        crdi_reading r = {.p = p, .env = e, .card = &q->value, .s = crdi_card_scan(p, &q->value)};
        crd_expression* none;
        e->states[i] = 1;
        const crd_status st =
            expression(&r, true, true, false, "a parameter", &e->values[i], &none);
        e->states[i] = st < 0 ? 0 : 2;
        if (st < 0) { return st; }
    }
    *out = e->values[i];
    return CRD_OK;
}

static crd_status find_param(void* user, const crdi_scan* at, crdi_word name, double* value,
                             bool* found)
{
    const crdi_reading* r = user;
    char text[CRDI_NAME_MOST + 1];
    *found = false;
    if (!crdi_word_fold(name, text)) { return CRD_OK; }
    for (crdi_env* e = r->env; e; e = e->outer) {
        const int32_t i = crdi_map_find(&r->p->scopes[e->scope].param_map, text);
        if (i >= 0) {
            *found = true;
            return param_value(r->p, e, i, at, value);
        }
    }
    return CRD_OK;
}

static const crdi_function* find_function(void* user, crdi_word name)
{
    const crdi_reading* r = user;
    char text[CRDI_NAME_MOST + 1];
    if (!crdi_word_fold(name, text)) { return NULL; }
    for (const crdi_env* e = r->env; e; e = e->outer) {
        const crdi_scope* s = &r->p->scopes[e->scope];
        const int32_t i = crdi_map_find(&s->function_map, text);
        if (i >= 0) { return &s->functions[i]; }
    }
    return NULL;
}

crd_status crdi_env_params(crdi_parser* p, crdi_env* e)
{
    const crdi_scope* s = &p->scopes[e->scope];
    for (int32_t i = 0; i < s->param_count; i++) {
        const crdi_scan at = crdi_card_scan(p, &s->params[i].value);
        double value;
        const crd_status st = param_value(p, e, i, &at, &value);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_status crdi_env_init(crdi_parser* p, int32_t scope, crdi_env* outer, crdi_env* e)
{
    const crdi_scope* s = &p->scopes[scope];
    *e = (crdi_env){.scope = scope, .outer = outer};
    if (s->param_count) {
        e->values = crdi_new_array(p->ctx, (size_t)s->param_count, sizeof *e->values);
        e->states = crdi_new_array(p->ctx, (size_t)s->param_count, sizeof *e->states);
        if (!e->values || !e->states) { return CRD_E_MEMORY; }
    }
    if (s->model_count) {
        e->models = crdi_new_array(p->ctx, (size_t)s->model_count, sizeof *e->models);
        if (!e->models) { return CRD_E_MEMORY; }
        for (int32_t i = 0; i < s->model_count; i++) {
            e->models[i] = -1;
        }
    }
    if (s->port_count) {
        e->ports = crdi_new_array(p->ctx, (size_t)s->port_count, sizeof *e->ports);
        if (!e->ports) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

void crdi_env_clear(crdi_parser* p, crdi_env* e)
{
    crd_free(p->ctx, e->values);
    crd_free(p->ctx, e->states);
    crd_free(p->ctx, e->models);
    crd_free(p->ctx, e->ports);
}

// ---- nodes and parts by name -------------------------------------------------------------------

static crd_status netlist_scope_too_long(const crdi_reading* r, crdi_word w)
{
    return crdi_scan_fail(&r->s, CRD_E_RANGE, "the name \"%s\" is longer than %d bytes",
                          crdi_word_clip(w).text, CRDI_NAME_MOST);
}

crd_status crdi_full_name(crdi_reading* r, crdi_word w, char out[CRDI_PATH_MOST + 1], size_t* n)
{
    const crdi_parser* p = r->p;
    char text[CRDI_NAME_MOST + 1];
    if (!crdi_word_fold(w, text)) { return netlist_scope_too_long(r, w); }
    const size_t prefix = p->path_length ? p->path_length + 1 : 0;
    if (prefix + w.n > CRDI_PATH_MOST) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "the name \"%s\" in %s has more than %d bytes",
                              crdi_word_clip(w).text, crdi_clip(p->path).text, CRDI_PATH_MOST);
    }
    if (prefix) {
        memcpy(out, p->path, p->path_length);
        out[p->path_length] = '.';
    }
    memcpy(out + prefix, text, w.n + 1);
    *n = prefix + w.n;
    return CRD_OK;
}

static crd_status new_node(crdi_reading* r, const char* text, size_t n, int32_t* out)
{
    crd_status st = CRD_OK;
    crdi_parser* p = r->p;
    crdi_netlist* o = p->out;
    const size_t count = (size_t)p->n->node_count, need = count + 1;
    const char** nodes = crdi_grow(p->ctx, o->nodes, &o->node_capacity, need, sizeof *nodes);
    if (!nodes) { return CRD_E_MEMORY; }
    o->nodes = nodes;
    crdi_mark* at = crdi_grow(p->ctx, p->node_at, &p->node_at_capacity, need, sizeof *at);
    if (!at) { return CRD_E_MEMORY; }
    p->node_at = at;
    uint8_t* domain =
        crdi_grow(p->ctx, p->node_domain, &p->node_domain_capacity, need, sizeof *domain);
    if (!domain) { return CRD_E_MEMORY; }
    p->node_domain = domain;
    nodes[count] = crdi_arena_text(&p->n->arena, text, n);
    if (!nodes[count]) { return CRD_E_MEMORY; }
    if (need >= INT32_MAX) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "there are too many nodes");
    }
    CRD_TRY(crdi_map_add(&o->node_map, nodes[count], (int32_t)count, NULL));
    at[count] = (crdi_mark){r->card ? r->card->file : 0, r->s.line};
    domain[count] = 0;
    p->n->node_count++;
    *out = (int32_t)count;
fail:
    return st;
}

crd_status crdi_node(crdi_reading* r, crdi_word w, int32_t* out)
{
    crd_status st = CRD_OK;
    crdi_parser* p = r->p;
    char name[CRDI_PATH_MOST + 1];
    size_t n = w.n;
    if (!w.n) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, "\"%s\" where a node is expected",
                              crdi_word_clip(crdi_scan_look(&r->s)).text);
    }
    if (!crdi_word_fold(w, name)) { return netlist_scope_too_long(r, w); }
    if (strcmp(name, "0") == 0 || strcmp(name, "gnd") == 0) {
        *out = 0;
        return CRD_OK;
    }
    if (r->env->scope != 0) {
        const int32_t port = crdi_map_find(&p->scopes[r->env->scope].port_map, name);
        if (port >= 0) {
            *out = r->env->ports[port];
            return CRD_OK;
        }
        if (crdi_map_find(&p->global_map, name) < 0) { CRD_TRY(crdi_full_name(r, w, name, &n)); }
    }
    *out = crdi_map_find(&p->out->node_map, name);
    if (*out < 0) { CRD_TRY(new_node(r, name, n, out)); }
fail:
    return st;
}

crd_status crdi_mention(crdi_reading* r, crdi_word w, int32_t* pending)
{
    crd_status st = CRD_OK;
    crdi_parser* p = r->p;
    char name[CRDI_PATH_MOST + 1];
    size_t n;
    if (!w.n) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, "\"%s\" where the name of a part is expected",
                              crdi_word_clip(crdi_scan_look(&r->s)).text);
    }
    CRD_TRY(crdi_full_name(r, w, name, &n));
    *pending = crdi_map_find(&p->pending_map, name);
    if (*pending >= 0) { return CRD_OK; }
    crdi_pending* list = crdi_grow(p->ctx, p->pending, &p->pending_capacity,
                                   (size_t)p->pending_count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    p->pending = list;
    const char* key = crdi_arena_text(&p->work, name, n);
    if (!key) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_map_add(&p->pending_map, key, p->pending_count, NULL));
    list[p->pending_count] = (crdi_pending){key, r->card->file, r->s.line, -1};
    *pending = p->pending_count++;
fail:
    return st;
}

// ---- values and laws ---------------------------------------------------------------------------

static crd_status find_use(void* user, const crdi_scan* at, crd_use_kind kind, crdi_word a,
                           crdi_word b, crd_use* out, bool* found)
{
    crd_status st = CRD_OK;
    crdi_reading r = *(const crdi_reading*)user;
    char text[CRDI_NAME_MOST + 1];
    r.s = *at; // for the line of messages
    *out = (crd_use){.kind = kind, .a = -1, .b = -1};
    *found = true;
    switch (kind) {
    case CRD_USE_INPUT:
        out->a = crdi_word_fold(a, text) ? crdi_map_find(&r.p->input_map, text) : -1;
        *found = out->a >= 0;
        break;
    case CRD_USE_CURRENT:
        CRD_TRY(crdi_mention(&r, a, &out->a));
        break;
    case CRD_USE_PAIR:
        CRD_TRY(crdi_node(&r, b, &out->b));
        if (out->b == 0) { *out = (crd_use){CRD_USE_NODE, -1, -1}; }
        CRD_TRY(crdi_node(&r, a, &out->a));
        break;
    case CRD_USE_NODE:
        CRD_TRY(crdi_node(&r, a, &out->a));
        break;
    }
fail:
    return st;
}

static crd_status expression(crdi_reading* r, bool bare, bool constant, bool always,
                             const char* why, double* value, crd_expression** e)
{
    crd_status st = CRD_OK;
    crdi_parser* p = r->p;
    crdi_names names = {.user = r, .parameter = find_param, .why = why};
    names.function = find_function;
    if (!constant) { names.use = find_use; }
    names.temperature = p->n->temperature;
    const char quote = crdi_scan_peek(&r->s);
    // of v={k}*v(a) the braces are but a part
    const bool quoted = (quote == '{' && !bare) || quote == '\'';
    if (!quoted && !bare) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, "\"%s\" where a value is expected",
                              crdi_word_clip(crdi_scan_look(&r->s)).text);
    }
    if (quoted) { r->s.p++; }
    CRD_TRY(crdi_expression_read(&p->builder, &r->s, &names, &p->n->arena, always, value, e));
    if (quoted && !crdi_scan_take(&r->s, quote == '{' ? '}' : '\'')) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, "\"%s\" where the expression should end (%s)",
                              crdi_word_clip(crdi_scan_look(&r->s)).text,
                              quote == '{' ? "with }" : "with '");
    }
fail:
    return st;
}

// A number or the name of a parameter.
static crd_status plain(crdi_reading* r, double* out)
{
    crd_status st = CRD_OK;
    bool found = false;
    const crdi_scan before = r->s;
    CRD_TRY(crdi_scan_number(&r->s, out, &found));
    if (found && !crdi_scan_delimited(&r->s)) {
        r->s = before;
        return crdi_scan_fail(&r->s, CRD_E_FORMAT,
                              "\"%s\" is not a number; expressions stand in { }",
                              crdi_word_clip(crdi_scan_look(&r->s)).text);
    }
    if (found) { return CRD_OK; }
    const crdi_word w = crdi_scan_word(&r->s);
    if (w.n) { CRD_TRY(find_param(r, &before, w, out, &found)); }
    if (!found) {
        r->s = before;
        return crdi_scan_fail(
            &r->s, CRD_E_FORMAT,
            "%s%s\"%s\" where a number, a parameter or an {expression} is expected",
            crdi_word_clip(r->name).text, r->name.n ? ": " : "",
            crdi_word_clip(crdi_scan_look(&r->s)).text);
    }
fail:
    return st;
}

static bool quoted_here(crdi_reading* r)
{
    const char c = crdi_scan_peek(&r->s);
    return c == '{' || c == '\'';
}

crd_status crdi_value(crdi_reading* r, bool bare, const char* why, double* out)
{
    crd_expression* none;
    if (!bare && !quoted_here(r)) { return plain(r, out); }
    return expression(r, bare, true, false, why, out, &none);
}

crd_status crdi_value_or_law(crdi_reading* r, bool bare, bool always, double* value,
                             crd_expression** e)
{
    *e = NULL;
    if (!bare && !always && !quoted_here(r)) { return plain(r, value); }
    return expression(r, bare, false, always, "", value, e);
}

crd_status crdi_expression_add(crdi_reading* r, const crd_expression* e, int32_t* index)
{
    crdi_netlist* o = r->p->out;
    const size_t count = (size_t)o->n.expression_count;
    const crd_expression** list =
        crdi_grow(r->p->ctx, o->expressions, &o->expression_capacity, count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    o->expressions = list;
    list[count] = e;
    o->n.expression_count++;
    *index = (int32_t)count;
    return CRD_OK;
}

// ---- copies of subcircuits ---------------------------------------------------------------------

// Nodes and the name, up to the parameters: how many words, and the last one.
static crd_status count_words(crdi_reading* r, int32_t* count, crdi_word* last)
{
    crdi_scan s = r->s;
    crdi_word w;
    *count = 0;
    while (!crdi_scan_end(&s) && !crdi_key(&s, &w)) {
        w = crdi_scan_word(&s);
        if (!w.n) {
            return crdi_scan_fail(&s, CRD_E_FORMAT, "\"%s\" where a node is expected",
                                  crdi_word_clip(crdi_scan_look(&s)).text);
        }
        if (crdi_word_is(w, "params:")) { break; }
        *last = w;
        (*count)++;
    }
    if (*count == 0) {
        return crdi_scan_fail(&s, CRD_E_FORMAT, "%s names no subcircuit",
                              crdi_word_clip(r->name).text);
    }
    return CRD_OK;
}

// Parts and copies that a definition expands to, by its lines alone: few of them can be very many.
// Definitions are found where they stand, as find_scope finds them. What contains itself, or lies
// too deep, counts as nothing here: it is refused when it is expanded.
static double expanded_size(crdi_parser* p, int32_t index, int depth)
{
    crdi_scope* scope = &p->scopes[index];
    if (scope->active || depth > CRDI_NESTING_MOST) { return 0; }
    if (scope->expanded > 0) { return scope->expanded; }
    double total = 1;
    scope->active = true;
    for (int32_t i = scope->first; i >= 0; i = p->cards[i].next) {
        crdi_scan s = crdi_card_scan(p, &p->cards[i]);
        const crdi_word name = crdi_scan_word(&s);
        total += 1;
        if (!name.n || (*name.p != 'x' && *name.p != 'X')) { continue; }
        crdi_word last = name, key, w;
        while (!crdi_scan_end(&s) && !crdi_key(&s, &key) && (w = crdi_scan_word(&s)).n &&
               !crdi_word_is(w, "params:")) {
            last = w;
        }
        char text[CRDI_NAME_MOST + 1];
        int32_t found = -1;
        for (int32_t at = crdi_word_fold(last, text) ? index : -1; at >= 0 && found < 0;
             at = p->scopes[at].parent) {
            found = crdi_map_find(&p->scopes[at].child_map, text);
        }
        if (found >= 0) { total += expanded_size(p, found, depth + 1); }
    }
    scope->active = false;
    scope->expanded = total;
    return total;
}

crd_status crdi_scope_check(crdi_parser* p)
{
    enum { FEWEST = 1000000, MOST = 10000000, EACH = 20 };
    if (p->opt.max_parts <= 0 || p->opt.max_parts > MOST) {
        p->opt.max_parts = p->card_count < FEWEST / EACH ? FEWEST
                           : p->card_count < MOST / EACH ? EACH * (int64_t)p->card_count
                                                         : MOST;
    }
    const double total = expanded_size(p, 0, 0);
    if (total <= 2.0 * (double)p->opt.max_parts) { return CRD_OK; } // as many parts, as many copies
    return crdi_fail(
        p->ctx, CRD_E_RANGE,
        "%s: its subcircuits expand to %.3g parts and copies, more than the limit of %lld each "
        "for %zu lines",
        p->out->files[0], total, (long long)p->opt.max_parts, p->card_count);
}

static int32_t find_scope(crdi_reading* r, crdi_word name, crdi_env** outer)
{
    char text[CRDI_NAME_MOST + 1];
    if (!crdi_word_fold(name, text)) { return -1; }
    for (crdi_env* e = r->env; e; e = e->outer) {
        const int32_t i = crdi_map_find(&r->p->scopes[e->scope].child_map, text);
        if (i >= 0) {
            *outer = e;
            return i;
        }
    }
    return -1;
}

// name=value ... into the copy
static crd_status set_params(crdi_reading* r, crdi_env* inner)
{
    crd_status st = CRD_OK;
    const crdi_scope* s = &r->p->scopes[inner->scope];
    char text[CRDI_NAME_MOST + 1];
    while (!crdi_scan_end(&r->s)) {
        crdi_word key;
        if (!crdi_key(&r->s, &key)) {
            return crdi_scan_fail(&r->s, CRD_E_FORMAT, "\"%s\" where name=value is expected",
                                  crdi_word_clip(crdi_scan_look(&r->s)).text);
        }
        const int32_t i = crdi_word_fold(key, text) ? crdi_map_find(&s->param_map, text) : -1;
        if (i < 0 || i >= s->header_count) {
            return crdi_scan_fail(&r->s, CRD_E_NOT_FOUND,
                                  "the subcircuit %s has no parameter \"%s\"; those that can be "
                                  "given stand in its .subckt line, as name=default",
                                  crdi_clip(s->name).text, crdi_word_clip(key).text);
        }
        if (inner->states[i] == 2) {
            return crdi_scan_fail(&r->s, CRD_E_FORMAT, "\"%s\" is given twice",
                                  crdi_word_clip(key).text);
        }
        CRD_TRY(crdi_value(r, true, "a parameter", &inner->values[i]));
        inner->states[i] = 2;
    }
fail:
    return st;
}

static crd_status netlist_scope_enter(crdi_reading* r, crdi_env* inner, int32_t words)
{
    crd_status st = CRD_OK;
    crdi_parser* p = r->p;
    for (int32_t i = 0; i < words - 1; i++) {
        CRD_TRY(crdi_node(r, crdi_scan_word(&r->s), &inner->ports[i]));
    }
    const int32_t ground = crdi_map_find(&p->scopes[inner->scope].port_map, "gnd");
    if (ground >= 0 && inner->ports[ground] != 0) {
        return crdi_scan_fail(
            &r->s, CRD_E_RANGE, "%s hands in the node %s as gnd, and gnd is ground everywhere",
            crdi_word_clip(r->name).text, crdi_clip(p->out->nodes[inner->ports[ground]]).text);
    }
    (void)crdi_scan_word(&r->s); // its name
    crdi_scan ahead = r->s;
    if (crdi_word_is(crdi_scan_word(&ahead), "params:")) { r->s = ahead; }
    CRD_TRY(set_params(r, inner));
    const size_t before = p->path_length;
    char path[CRDI_PATH_MOST + 1];
    size_t n;
    CRD_TRY(crdi_full_name(r, r->name, path, &n));
    memcpy(p->path, path, n + 1);
    p->path_length = n;
    p->depth++;
    st = crdi_env_params(p, inner);
    if (st == CRD_OK) { st = crdi_scope_expand(p, inner); }
    p->depth--;
    p->path_length = before;
    p->path[before] = 0;
fail:
    return st;
}

static crd_status instance(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crdi_parser* p = r->p;
    crdi_env* outer = NULL;
    crdi_word name;
    int32_t words;
    CRD_TRY(count_words(r, &words, &name));
    const int32_t scope = find_scope(r, name, &outer);
    if (scope < 0) {
        return crdi_scan_fail(&r->s, CRD_E_NOT_FOUND, "%s: there is no subcircuit \"%s\"",
                              crdi_word_clip(r->name).text, crdi_word_clip(name).text);
    }
    crdi_scope* def = &p->scopes[scope];
    if (def->active) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, "the subcircuit %s contains itself",
                              crdi_clip(def->name).text);
    }
    if (words - 1 != def->port_count) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s has %d nodes, the subcircuit %s has %d",
                              crdi_word_clip(r->name).text, words - 1, crdi_clip(def->name).text,
                              def->port_count);
    }
    if (p->depth >= CRDI_NESTING_MOST) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "subcircuits are nested more than %d deep",
                              CRDI_NESTING_MOST);
    }
    if (++p->instances > p->opt.max_parts) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "there are more than %lld subcircuits",
                              (long long)p->opt.max_parts);
    }
    crdi_env inner;
    st = crdi_env_init(p, scope, outer, &inner);
    if (st == CRD_OK) { st = netlist_scope_enter(r, &inner, words); }
    crdi_env_clear(p, &inner);
fail:
    return st;
}

crd_status crdi_scope_expand(crdi_parser* p, crdi_env* e)
{
    crd_status st = CRD_OK;
    crdi_scope* scope = &p->scopes[e->scope];
    scope->active = true;
    for (int32_t i = scope->first; i >= 0; i = p->cards[i].next) {
        const crdi_card* card = &p->cards[i];
        crdi_reading r = {.p = p, .env = e, .card = card, .s = crdi_card_scan(p, card)};
        r.name = crdi_scan_word(&r.s);
        const bool copy = r.name.n && (*r.name.p == 'x' || *r.name.p == 'X');
        CRD_TRY(copy ? instance(&r) : crdi_part_card(&r));
    }
fail:
    scope->active = false;
    return st;
}
