#include <stdio.h>
#include <string.h>

#include "fmi/description_parser.h"

// ---- ModelStructure, as it comes
// -----------------------------------------------------------------

static bool kind_known(const char* s, size_t n)
{
    static const char* const kinds[] = {"dependent", "constant", "fixed", "tunable", "discrete"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i]) == n && memcmp(kinds[i], s, n) == 0) { return true; }
    }
    return false;
}

// dependenciesKind is checked and not kept: any kind is a dependency.
static crd_status check_kinds(crdi_parser* p, const char* kinds, size_t dependencies)
{
    size_t n = 0, count = 0;
    const char* rest = kinds;
    for (const char* s = crdi_next_word(&rest, &n); s; s = crdi_next_word(&rest, &n), count++) {
        if (!kind_known(s, n)) {
            return crdi_bad(p, CRD_E_FORMAT,
                            "dependenciesKind = '%s', expected dependent, constant, fixed, tunable "
                            "or discrete",
                            crdi_show(kinds).text);
        }
    }
    if (count != dependencies) {
        return crdi_bad(p, CRD_E_FORMAT, "%zu words in dependenciesKind for %zu dependencies",
                        count, dependencies);
    }
    return CRD_OK;
}

static crd_status add_known(crdi_parser* p, crdi_unknown_list* list, const char* dependencies)
{
    size_t n = 0;
    const char* rest = dependencies;
    for (const char* s = crdi_next_word(&rest, &n); s; s = crdi_next_word(&rest, &n)) {
        uint64_t value = 0;
        if (!crdi_parse_uint64(s, n, &value) || value > UINT32_MAX) {
            return crdi_bad(p, CRD_E_FORMAT, "dependencies = '%s', expected whole numbers",
                            crdi_show(dependencies).text);
        }
        uint32_t* grown = crdi_grow(p->ctx, list->known, &list->known_capacity,
                                    list->known_count + 1, sizeof *grown);
        if (!grown) { return crdi_no_memory(p); }
        list->known = grown;
        list->known[list->known_count++] = (uint32_t)value;
    }
    return CRD_OK;
}

crd_status crdi_unknown(crdi_parser* p, crdi_unknown_list* list, const char* reference,
                        const char** attributes)
{
    crd_status st = CRD_OK;
    const char* text = crdi_find(attributes, reference);
    const char* dependencies = crdi_find(attributes, "dependencies");
    const char* kinds = crdi_find(attributes, "dependenciesKind");
    if (!text) {
        return crdi_bad(p, CRD_E_FORMAT, "an unknown of ModelStructure lacks its attribute '%s'",
                        reference);
    }
    crdi_unknown_row row = {
        .line = crdi_line(p), .first = (uint32_t)list->known_count, .on_all = !dependencies};
    CRD_TRY(crdi_get_uint32(p, "ModelStructure", reference, text, &row.unknown));
    if (dependencies) {
        CRD_TRY(add_known(p, list, dependencies));
        if (kinds) { CRD_TRY(check_kinds(p, kinds, list->known_count - row.first)); }
    }
    crdi_unknown_row* grown =
        crdi_grow(p->ctx, list->rows, &list->capacity, list->count + 1, sizeof *grown);
    if (!grown) { return crdi_no_memory(p); }
    list->rows = grown;
    list->rows[list->count++] = row;
fail:
    return st;
}

// ---- value references
// ----------------------------------------------------------------------------

// All variables but FMI 3 aliases, sorted by reference (FMI 1 and 2: by base type before, and FMI 1
// by sign), then by place in the file. Sorting instead of hashing: no choice of references makes it
// slow.
typedef struct reference {
    uint64_t key;
    int32_t variable;
} reference;

typedef struct references {
    reference *list, *spare;
    size_t count;
} references;

static uint64_t reference_key(const crdi_parser* p, const crd_variable* v)
{
    if (p->d->version == CRD_FMI_3) { return v->reference; }
    const uint64_t base = v->type == CRD_ENUMERATION ? CRD_INT32 : v->type;
    return (uint64_t)v->negated << 36 | base << 32 | v->reference;
}

// Stable, byte by byte.
static void sort_references(references* r)
{
    for (int shift = 0; shift < 40; shift += 8) {
        size_t at[257] = {0};
        for (size_t i = 0; i < r->count; i++) {
            at[((r->list[i].key >> shift) & 255) + 1]++;
        }
        for (int b = 0; b < 256; b++) {
            at[b + 1] += at[b];
        }
        for (size_t i = 0; i < r->count; i++) {
            r->spare[at[(r->list[i].key >> shift) & 255]++] = r->list[i];
        }
        reference* sorted = r->spare;
        r->spare = r->list;
        r->list = sorted;
    }
}

static crd_status collect_references(crdi_parser* p, references* r)
{
    r->list = crdi_new_array(p->ctx, p->variable_count, sizeof *r->list);
    if (!r->list) { return CRD_E_MEMORY; }
    bool sorted = true;
    for (size_t i = 0; i < p->variable_count; i++) {
        const crd_variable* v = &p->fmu->variables[i];
        if (v->alias_of >= 0) { continue; }
        r->list[r->count] = (reference){reference_key(p, v), (int32_t)i};
        sorted = sorted && (r->count == 0 || r->list[r->count - 1].key <= r->list[r->count].key);
        r->count++;
    }
    if (sorted) { return CRD_OK; }
    r->spare = crdi_new_array(p->ctx, r->count, sizeof *r->spare);
    if (!r->spare) { return CRD_E_MEMORY; }
    sort_references(r);
    return CRD_OK;
}

// FMI 3: the variable with this reference, or -1.
static int32_t find_reference(const references* r, uint32_t wanted)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (r->list[middle].key < wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < r->count && r->list[low].key == wanted ? r->list[low].variable : -1;
}

// Equal references: aliases in FMI 1 and 2, a mistake in FMI 3. Inputs, outputs and parameters may
// be aliases of locals: what the FMU shows stands for what it does not.
static crd_status resolve_aliases(crdi_parser* p, const references* r)
{
    crd_variable* variables = p->fmu->variables;
    size_t first = 0;
    for (size_t i = 1; i < r->count; i++) {
        if (r->list[i].key != r->list[first].key) {
            first = i;
            continue;
        }
        crd_variable* v = &variables[r->list[i].variable];
        crd_variable* same = &variables[r->list[first].variable];
        if (p->d->version != CRD_FMI_3 && same->causality == CRD_LOCAL &&
            v->causality != CRD_LOCAL) {
            for (size_t k = first; k < i; k++) {
                variables[r->list[k].variable].alias_of = r->list[i].variable;
            }
            first = i; // those that follow belong to it
            continue;
        }
        if (p->d->version == CRD_FMI_3) {
            return crdi_bad_at(p, v->line, CRD_E_FORMAT,
                               "variable '%s': valueReference = %u belongs to '%s' in line %u "
                               "already",
                               crdi_show(v->name).text, v->reference, crdi_show(same->name).text,
                               same->line);
        }
        v->alias_of = r->list[first].variable;
    }
    return CRD_OK;
}

// ---- arrays
// --------------------------------------------------------------------------------------

static crd_status resolve_axis(crdi_parser* p, const references* r, const crdi_axis_row* row,
                               const crd_variable* owner, crd_fmu_axis* out, uint64_t* length)
{
    *out = (crd_fmu_axis){.start = row->start, .variable = -1};
    *length = row->start;
    if (!row->by_reference) { return CRD_OK; }
    out->variable = find_reference(r, row->reference);
    if (out->variable < 0) {
        return crdi_bad_at(p, row->line, CRD_E_FORMAT,
                           "variable '%s': <Dimension> refers to valueReference %u, which no "
                           "variable has",
                           crdi_show(owner->name).text, row->reference);
    }
    const crd_variable* v = &p->fmu->variables[out->variable];
    const bool may = v->causality == CRD_STRUCTURAL_PARAMETER || v->variability == CRD_CONSTANT;
    if (v->type != CRD_UINT64 || v->rank != 0 || !may || !v->start) {
        return crdi_bad_at(p, row->line, CRD_E_FORMAT,
                           "variable '%s': <Dimension> refers to '%s', expected a structural "
                           "parameter of type UInt64 with a start value",
                           crdi_show(owner->name).text, crdi_show(v->name).text);
    }
    size_t n = 0;
    const char* s = crdi_trim(v->start, &n);
    (void)crdi_parse_uint64(s, n, length); // checked when the parameter was read
    return CRD_OK;
}

static crd_status check_start_count(crdi_parser* p, const crd_variable* v, size_t count)
{
    if (count == v->size || count == 1) { return CRD_OK; }
    return crdi_bad_at(p, v->line, CRD_E_FORMAT,
                       "variable '%s': %zu start values, expected %u (or one for all)",
                       crdi_show(v->name).text, count, v->size);
}

static crd_status resolve_sizes(crdi_parser* p, const references* r)
{
    crd_fmu_axis* axes = crdi_arena_new(p->arena, p->axis_count, sizeof *axes);
    int32_t* first = crdi_arena_new(p->arena, p->variable_count, sizeof *first);
    if (!axes || !first) { return CRD_E_MEMORY; }
    p->d->axes = axes;
    p->d->axis_first = first;
    int32_t next = 0;
    for (size_t i = 0; i < p->variable_count; i++) {
        crd_variable* v = &p->fmu->variables[i];
        first[i] = -1;
        if (v->rank == 0) { continue; }
        if (v->alias_of >= 0) { // behind its variable, which is done
            first[i] = first[v->alias_of];
            v->size = p->fmu->variables[v->alias_of].size;
            continue;
        }
        first[i] = next;
        uint64_t size = 1;
        for (int k = 0; k < v->rank; k++, next++) {
            uint64_t length = 0;
            const crd_status st = resolve_axis(p, r, &p->axes[next], v, &axes[next], &length);
            if (st < 0) { return st; }
            if (length > CRDI_MAX_ELEMENTS || size * length > CRDI_MAX_ELEMENTS) {
                return crdi_bad_at(p, v->line, CRD_E_FORMAT,
                                   "variable '%s' has more than the limit of %d elements",
                                   crdi_show(v->name).text, CRDI_MAX_ELEMENTS);
            }
            size *= length;
        }
        v->size = (uint32_t)size;
        if (!v->start || crd_type_kind((crd_type)v->type) == CRD_BYTES) { continue; }
        size_t words = 0, n = 0;
        const char* rest = v->start;
        while (crdi_next_word(&rest, &n)) {
            words++;
        }
        const crd_status st = check_start_count(p, v, words);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// Starts of string and binary arrays get as many texts as there are elements.
static crd_status resolve_text_starts(crdi_parser* p)
{
    for (size_t i = 0; i < p->text_start_count; i++) {
        const crdi_text_start* t = &p->text_starts[i];
        crd_variable* v = &p->fmu->variables[t->variable];
        const crd_status st = check_start_count(p, v, t->count);
        if (st < 0) { return st; }
        if (t->count == v->size || v->size == 0) { continue; }
        if (v->size > CRDI_XML_MAX_TAG / t->length) {
            return crdi_bad_at(p, v->line, CRD_E_FORMAT,
                               "variable '%s': its start values have more than the limit of %d "
                               "bytes",
                               crdi_show(v->name).text, CRDI_XML_MAX_TAG);
        }
        char* all = crdi_arena_new(p->arena, v->size, t->length);
        if (!all) { return CRD_E_MEMORY; }
        for (size_t k = 0; k < v->size; k++) {
            memcpy(all + k * t->length, v->start, t->length);
        }
        v->start = all;
        for (size_t k = (size_t)t->variable + 1;
             k < p->variable_count && p->fmu->variables[k].alias_of == t->variable; k++) {
            p->fmu->variables[k].start = all;
        }
    }
    return CRD_OK;
}

// ---- dependencies
// --------------------------------------------------------------------------------

static crd_status resolve_unknown(crdi_parser* p, const references* r, uint32_t line,
                                  const char* what, uint32_t number, int32_t* out)
{
    if (p->d->version == CRD_FMI_3) {
        *out = find_reference(r, number);
        return *out >= 0 ? CRD_OK
                         : crdi_bad_at(p, line, CRD_E_FORMAT,
                                       "ModelStructure: %s %u is not the valueReference of a "
                                       "variable",
                                       what, number);
    }
    if (number < 1 || number > p->variable_count) {
        return crdi_bad_at(p, line, CRD_E_FORMAT,
                           "ModelStructure: %s %u is out of range, there are the variables 1 to "
                           "%zu",
                           what, number, p->variable_count);
    }
    *out = (int32_t)number - 1;
    return CRD_OK;
}

static crd_status resolve_unknowns(crdi_parser* p, const references* r,
                                   const crdi_unknown_list* list, crd_dependencies* out)
{
    crd_status st = CRD_OK;
    int32_t* unknown = crdi_arena_new(p->arena, list->count, sizeof *unknown);
    int32_t* first = crdi_arena_new(p->arena, list->count + 1, sizeof *first);
    int32_t* known = crdi_arena_new(p->arena, list->known_count, sizeof *known);
    bool* on_all = crdi_arena_new(p->arena, list->count, sizeof *on_all);
    if (!unknown || !first || !known || !on_all) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < list->count; i++) {
        const crdi_unknown_row* row = &list->rows[i];
        const size_t end = i + 1 < list->count ? list->rows[i + 1].first : list->known_count;
        CRD_TRY(resolve_unknown(p, r, row->line, "unknown", row->unknown, &unknown[i]));
        for (size_t k = row->first; k < end; k++) {
            CRD_TRY(resolve_unknown(p, r, row->line, "dependency", list->known[k], &known[k]));
        }
        first[i] = (int32_t)row->first;
        on_all[i] = row->on_all;
    }
    first[list->count] = (int32_t)list->known_count;
    *out = (crd_dependencies){.count = (int32_t)list->count,
                              .unknown = unknown,
                              .first = first,
                              .known = known,
                              .on_all = on_all};
fail:
    return st;
}

// ---- Model Exchange
// -------------------------------------------------------------------------------

// The row of a variable's `derivative` attribute; rows are in the order of the variables.
static const crdi_derivative_row* derivative_row(const crdi_parser* p, int32_t variable)
{
    size_t low = 0, high = p->derivative_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (p->derivative_rows[middle].variable < variable) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const bool found = low < p->derivative_count && p->derivative_rows[low].variable == variable;
    return found ? &p->derivative_rows[low] : NULL;
}

static crd_status not_a_real(crdi_parser* p, uint32_t line, const char* what, const crd_variable* v)
{
    return crdi_bad_at(p, line, CRD_E_FORMAT, "ModelStructure: '%s' is %s and not of type %s",
                       crdi_show(v->name).text, what,
                       p->d->version == CRD_FMI_3 ? "Float64" : "Real");
}

// States in the order of their derivatives in ModelStructure.
static crd_status resolve_states(crdi_parser* p, const references* r)
{
    crd_status st = CRD_OK;
    crd_fmu_model_exchange* x = &p->d->exchange;
    CRD_TRY(resolve_unknowns(p, r, &p->derivatives, &x->derivatives));
    int32_t* states = crdi_arena_new(p->arena, p->derivatives.count, sizeof *states);
    if (!states) { return CRD_E_MEMORY; }
    x->states = states;
    for (int32_t i = 0; i < x->derivatives.count; i++) {
        const uint32_t line = p->derivatives.rows[i].line;
        const int32_t derivative = x->derivatives.unknown[i];
        const crd_variable* v = &p->fmu->variables[derivative];
        const crdi_derivative_row* row = derivative_row(p, derivative);
        states[i] = -1;
        if (v->type != CRD_FLOAT64) { return not_a_real(p, line, "a state derivative", v); }
        if (!row) { continue; }
        CRD_TRY(resolve_unknown(p, r, row->line, "derivative", row->state, &states[i]));
        const crd_variable* s = &p->fmu->variables[states[i]];
        if (s->type != CRD_FLOAT64) { return not_a_real(p, line, "a continuous state", s); }
        if (s->size != v->size) {
            return crdi_bad_at(p, line, CRD_E_FORMAT,
                               "ModelStructure: state '%s' has %u elements and its derivative '%s' "
                               "has %u",
                               crdi_show(s->name).text, s->size, crdi_show(v->name).text, v->size);
        }
    }
    uint64_t count = 0;
    for (int32_t i = 0; i < x->derivatives.count; i++) {
        count += p->fmu->variables[x->derivatives.unknown[i]].size;
    }
    if (p->d->version != CRD_FMI_1) {
        x->state_count = count < CRDI_MAX_ELEMENTS ? (uint32_t)count : CRDI_MAX_ELEMENTS;
    }
fail:
    return st;
}

static crd_status resolve_indicators(crdi_parser* p, const references* r)
{
    crd_status st = CRD_OK;
    crd_fmu_model_exchange* x = &p->d->exchange;
    crd_dependencies d = {0};
    if (p->d->version != CRD_FMI_3) { return CRD_OK; }
    CRD_TRY(resolve_unknowns(p, r, &p->indicators, &d));
    x->indicators = d.unknown;
    x->indicator_variable_count = d.count;
    uint64_t count = 0;
    for (int32_t i = 0; i < d.count; i++) {
        const crd_variable* v = &p->fmu->variables[d.unknown[i]];
        if (v->type != CRD_FLOAT64) {
            return not_a_real(p, p->indicators.rows[i].line, "an event indicator", v);
        }
        count += v->size;
    }
    if (count > CRDI_MAX_ELEMENTS) {
        return crdi_bad_at(p, p->indicators.rows[0].line, CRD_E_FORMAT,
                           "ModelStructure: more than the limit of %d event indicators",
                           CRDI_MAX_ELEMENTS);
    }
    x->indicator_count = (uint32_t)count;
fail:
    return st;
}

// ---- FMI 1
// ----------------------------------------------------------------------------------------

// Which interface it has, and dependencies by the numbers of FMI 2. A name that no variable has may
// stand for any input.
static void finish1(crdi_parser* p)
{
    crd_fmu_description* d = p->d;
    crdi_unknown_list* list = &p->outputs;
    d->has_model_exchange = !d->has_cosimulation;
    *(d->has_cosimulation ? &d->model_identifier : &d->exchange.model_identifier) = p->identifier;
    d->exchange.needs_completed_step = d->has_model_exchange;
    for (size_t i = 0; i < list->count; i++) {
        const size_t end = i + 1 < list->count ? list->rows[i + 1].first : list->known_count;
        for (size_t k = list->rows[i].first; k < end; k++) {
            const int32_t known = crdi_map_find(&p->fmu->names, p->dependencies[list->known[k]]);
            const int32_t unknown = (int32_t)list->rows[i].unknown - 1;
            if (known < 0 && p->odd_dependency.count++ == 0) { p->odd_dependency.first = unknown; }
            list->rows[i].on_all = list->rows[i].on_all || known < 0;
            list->known[k] = (uint32_t)(known < 0 ? unknown : known) + 1;
        }
    }
}

// ---- the end
// -------------------------------------------------------------------------------------

static crd_status copy_tables(crdi_parser* p)
{
    crd_fmu_description* d = p->d;
    crd_fmu_unit* units = crdi_arena_new(p->arena, p->unit_count, sizeof *units);
    crd_fmu_enumeration* enumerations =
        crdi_arena_new(p->arena, p->enumeration_count, sizeof *enumerations);
    crd_fmu_item* items = crdi_arena_new(p->arena, p->item_count, sizeof *items);
    const char** categories = crdi_arena_new(p->arena, p->category_count, sizeof *categories);
    if (!units || !enumerations || !items || !categories) { return CRD_E_MEMORY; }
    if (p->unit_count) { memcpy(units, p->units, p->unit_count * sizeof *units); }
    if (p->item_count) { memcpy(items, p->items, p->item_count * sizeof *items); }
    for (size_t i = 0; i < p->category_count; i++) {
        categories[i] = p->categories[i];
    }
    for (size_t i = 0; i < p->enumeration_count; i++) {
        const crdi_enumeration_row* e = &p->enumerations[i];
        enumerations[i] = (crd_fmu_enumeration){
            .name = e->name, .items = items + e->first, .item_count = e->count};
    }
    d->units = units;
    d->unit_count = (int32_t)p->unit_count;
    d->enumerations = enumerations;
    d->enumeration_count = (int32_t)p->enumeration_count;
    d->log_categories = categories;
    d->log_category_count = (int32_t)p->category_count;
    d->variables = p->fmu->variables;
    d->variable_count = (int32_t)p->variable_count;
    return CRD_OK;
}

static void warn(const crdi_parser* p, const crdi_oddity* o, const char* what)
{
    if (o->count == 0) { return; }
    const crd_variable* v = &p->fmu->variables[o->first];
    char more[40] = "";
    if (o->count > 1) { snprintf(more, sizeof more, " (and %d more)", o->count - 1); }
    crdi_log(p->ctx, CRD_LOG_WARNING, "%s:%u: variable '%s' %s%s", p->name, v->line,
             crdi_show(v->name).text, what, more);
}

crd_status crdi_finish(crdi_parser* p)
{
    crd_status st = CRD_OK;
    references r = {0};
    CRD_TRY(collect_references(p, &r));
    CRD_TRY(resolve_aliases(p, &r));
    CRD_TRY(resolve_sizes(p, &r));
    CRD_TRY(resolve_text_starts(p));
    if (p->d->version == CRD_FMI_1) { finish1(p); }
    CRD_TRY(resolve_unknowns(p, &r, &p->outputs, &p->d->outputs));
    CRD_TRY(resolve_unknowns(p, &r, &p->initial_unknowns, &p->d->initial_unknowns));
    if (p->d->has_model_exchange) { // Co-Simulation does not look at it
        CRD_TRY(resolve_states(p, &r));
        CRD_TRY(resolve_indicators(p, &r));
    }
    CRD_TRY(copy_tables(p));
    warn(p, &p->bad_combination, "has a causality and a variability that do not go together");
    warn(p, &p->odd_dependency,
         "has a DirectDependency on what is no variable, so that it may depend on every input");
    warn(p, &p->repeated, "is called so here, as there is another one of its name, which counts");
    warn(p, &p->missing_start, "lacks the start value that its causality asks for");
fail:
    crd_free(p->ctx, r.list);
    crd_free(p->ctx, r.spare);
    return st;
}
