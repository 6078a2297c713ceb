// What is recorded, and how a row is filled.
#include "master/master.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const char* full_name(crd_master* m, const crd_unit* u, const crd_variable* v,
                             uint32_t element)
{
    const char* unit = m->sys->single ? "" : u->name;
    const char* dot = m->sys->single ? "" : ".";
    if (m->sys->single && v->rank == 0) { return v->name; }
    if (v->rank == 0) { return crdi_arena_format(&m->arena, "%s%s%s", unit, dot, v->name); }
    return crdi_arena_format(&m->arena, "%s%s%s[%u]", unit, dot, v->name, element + 1);
}

// `used` marks the patterns that match.
static bool matches(const crd_master* m, const char* name, bool* used)
{
    const crd_results_spec* r = &m->sys->results;
    bool wanted = false;
    for (int i = 0; i < r->pattern_count; i++) {
        if (crdi_glob(r->patterns[i], name)) { wanted = used[i] = true; }
    }
    return wanted;
}

static bool is_wanted(const crd_master* m, const crd_variable* v, const char* name, bool* used)
{
    if (v->type == CRD_CLOCK || v->causality == CRD_INDEPENDENT) { return false; }
    if (m->sys->results.pattern_count == 0) {
        return v->causality == CRD_OUTPUT && v->alias_of < 0;
    }
    return matches(m, name, used);
}

// In a single FMU with --input, the recording that feeds it is not a result.
static bool is_hidden(const crd_master* m, int member)
{
    return m->sys->single && member > 0;
}

static crd_status add_signal(crd_master* m, size_t* capacity, crdi_signal signal)
{
    crdi_signal* s =
        crdi_grow(m->ctx, m->signals, capacity, (size_t)m->signal_count + 1, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    m->signals = s;
    s[m->signal_count++] = signal;
    return CRD_OK;
}

// The elements of one variable that are wanted. The name of an array stands for all of them.
static crd_status select_variable(crd_master* m, int member, int32_t variable, size_t* capacity,
                                  bool* used)
{
    const crd_unit* u = m->members[member].unit;
    const crd_variable* v = &u->info.variables[variable];
    if (m->sys->results.pattern_count == 0 && v->causality != CRD_OUTPUT) { return CRD_OK; }
    const char* whole = full_name(m, u, &(crd_variable){.name = v->name}, 0);
    if (!whole) { return CRD_E_MEMORY; }
    const bool all = is_wanted(m, v, whole, used);
    for (uint32_t e = 0; e < v->size; e++) {
        const char* name = v->rank == 0 ? whole : full_name(m, u, v, e);
        if (!name) { return CRD_E_MEMORY; }
        const bool element = v->rank > 0 && is_wanted(m, v, name, used);
        if (!all && !element) { continue; }
        const crd_status st = add_signal(
            m, capacity,
            (crdi_signal){
                .name = name, .member = member, .variable = variable, .element = (int32_t)e});
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status select_offered(crd_master* m, int member, const crdi_coupled* x, int count,
                                 size_t* capacity, bool* used)
{
    for (int i = 0; i < count; i++, x++) {
        if (m->sys->results.pattern_count && !matches(m, x->name, used)) { continue; }
        const crd_status st =
            add_signal(m, capacity, (crdi_signal){.name = x->name, .member = member, .coupled = x});
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// What couplings and connections at the inputs of a member and power bonds with its flow offer.
static crd_status select_coupled(crd_master* m, int member, size_t* capacity, bool* used)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < m->couple_count; i++) {
        const crdi_couple* c = &m->couples[i];
        if (c->target != member) { continue; }
        CRD_TRY(select_offered(m, member, c->signals, c->signal_count, capacity, used));
    }
    for (int i = 0; i < m->power_count; i++) {
        const crdi_power* p = &m->powers[i];
        if (p->flow_member != member) { continue; }
        CRD_TRY(select_offered(m, member, p->signals, p->signal_count, capacity, used));
    }
    for (int i = 0; i < m->members[member].flow_count; i++) {
        const crdi_coupled* x = NULL;
        CRD_TRY(crdi_flow_offer(m, &m->flows[m->members[member].flows[i]], &x));
        if (x) { CRD_TRY(select_offered(m, member, x, 1, capacity, used)); }
    }
fail:
    return st;
}

// The account of the clock is recorded with the rows of the member that steps most often.
static int fastest_member(const crd_master* m)
{
    int best = 0;
    for (int i = 1; i < m->member_count; i++) {
        if (m->members[i].ticks < m->members[best].ticks) { best = i; }
    }
    return best;
}

// All names of all variables and of what couplings and bonds offer, for a suggestion.
typedef struct {
    crd_master* m;
    int member;
    int32_t variable;
    int couple, power, signal;
} names;

static const char* next_name(void* user)
{
    names* n = user;
    for (; n->member < n->m->member_count; n->member++, n->variable = 0) {
        const crd_unit* u = n->m->members[n->member].unit;
        if (n->variable < u->info.variable_count) {
            const char* name = u->info.variables[n->variable++].name;
            return n->m->sys->single ? name
                                     : crdi_arena_format(&n->m->arena, "%s.%s", u->name, name);
        }
    }
    for (; n->couple < n->m->couple_count; n->couple++, n->signal = 0) {
        const crdi_couple* c = &n->m->couples[n->couple];
        if (n->signal < c->signal_count) { return c->signals[n->signal++].name; }
    }
    for (; n->power < n->m->power_count; n->power++, n->signal = 0) {
        const crdi_power* p = &n->m->powers[n->power];
        if (n->signal < p->signal_count) { return p->signals[n->signal++].name; }
    }
    return NULL;
}

// A record of the time alone is not what anybody meant.
static crd_status fail_no_signal(crd_master* m)
{
    const char* pattern = m->sys->results.patterns[0];
    names n = {.m = m};
    const char* near = crdi_nearest(pattern, next_name, &n);
    return crdi_fail(m->ctx, CRD_E_NOT_FOUND, "no variable matches '%s'%s%s%s", pattern,
                     near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

// ---- rasters -----------------------------------------------------------------------------------

// "10 ms"
static const char* interval_name(crd_master* m, double s)
{
    static const struct {
        double unit;
        const char* name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    size_t k = 0;
    while (k < 3 && s < units[k].unit * (1 - 1e-9)) {
        k++;
    }
    return crdi_arena_format(&m->arena, "%.6g %s", s / units[k].unit, units[k].name);
}

static crd_status add_raster(crd_master* m, int64_t ticks, bool at_end, int* index)
{
    crdi_raster* r = &m->rasters[m->raster_count];
    *r = (crdi_raster){.ticks = ticks, .at_end = at_end, .read = -1};
    r->name = interval_name(m, (double)ticks * m->tick);
    if (!r->name) { return CRD_E_MEMORY; }
    *index = m->raster_count++;
    return CRD_OK;
}

// Where the file has room for several rasters, a unit that steps more seldom than rows come is
// recorded at its own communication points. All others share the first raster.
static crd_status plan_rasters(crd_master* m)
{
    const bool several = m->sys->results.path && crd_recorder_has_rasters(m->sys->results.path);
    int base = -1;
    m->rasters = crdi_arena_new(&m->arena, (size_t)m->member_count + 1, sizeof *m->rasters);
    if (!m->rasters) { return CRD_E_MEMORY; }
    crd_status st = CRD_OK;
    for (int pass = 0; pass < 2; pass++) { // the shared one comes first
        for (int i = 0; i < m->signal_count; i++) {
            crdi_member* p = &m->members[m->signals[i].member];
            const bool own = several && p->ticks > m->row_every;
            if (own != (pass == 1) || (i && m->signals[i - 1].member == m->signals[i].member)) {
                continue;
            }
            if (!own) {
                if (base < 0) { CRD_TRY(add_raster(m, m->row_every, true, &base)); }
                p->raster = base;
                continue;
            }
            int k = base + 1;
            while (k < m->raster_count && m->rasters[k].ticks != p->ticks) {
                k++;
            }
            if (k == m->raster_count) { CRD_TRY(add_raster(m, p->ticks, false, &k)); }
            p->raster = k;
        }
    }
    if (m->raster_count == 0) { CRD_TRY(add_raster(m, m->row_every, true, &base)); }
fail:
    return st;
}

// ---- signals -----------------------------------------------------------------------------------

crd_status crdi_master_select_signals(crd_master* m)
{
    crd_status st = CRD_OK;
    const crd_results_spec* r = &m->sys->results;
    size_t capacity = 0;
    bool* used = crdi_new_array(m->ctx, (size_t)r->pattern_count, sizeof *used);
    if (!used) { return CRD_E_MEMORY; }
    const int fastest = fastest_member(m);
    for (int i = 0; i < m->member_count; i++) {
        const int32_t n = is_hidden(m, i) ? 0 : m->members[i].unit->info.variable_count;
        for (int32_t v = 0; v < n; v++) {
            CRD_TRY(select_variable(m, i, v, &capacity, used));
        }
        if (!is_hidden(m, i)) { CRD_TRY(select_coupled(m, i, &capacity, used)); }
        if (i == fastest) {
            CRD_TRY(select_offered(m, i, m->pace_signals, m->pace_signal_count, &capacity, used));
        }
    }
    if (r->pattern_count && !m->signal_count) {
        st = fail_no_signal(m);
        goto fail;
    }
    for (int i = 0; i < r->pattern_count; i++) {
        if (!used[i]) {
            crdi_log(m->log, CRD_LOG_WARNING,
                     "no variable matches '%s': nothing is recorded for it", r->patterns[i]);
        }
    }
    CRD_TRY(plan_rasters(m));
fail:
    crd_free(m->ctx, used);
    return st;
}

// The variable that is really read: aliases share their value.
static int32_t read_variable(const crd_unit* u, int32_t v)
{
    return u->info.variables[v].alias_of >= 0 ? u->info.variables[v].alias_of : v;
}

// Signals that no connection reads get a binding of their own, which is read for rows only. The
// member's signals are `first` and the next `signals`.
static crd_status bind_extras(crd_master* m, int member, int first, int signals, int32_t* position,
                              int32_t* list)
{
    crd_status st = CRD_OK;
    crdi_member* p = &m->members[member];
    const int32_t n = p->unit->info.variable_count;
    for (int32_t i = 0; i < n; i++) {
        position[i] = -1;
    }
    for (int32_t i = 0; p->out && i < p->out->count; i++) {
        position[p->out->variables[i]] = i;
    }
    int32_t count = 0;
    for (int i = first; i < first + signals; i++) {
        if (m->signals[i].coupled) { continue; }
        const int32_t v = read_variable(p->unit, m->signals[i].variable);
        if (position[v] == -1) {
            position[v] = -2;
            list[count++] = v;
        }
    }
    if (count) {
        CRD_TRY(crd_binding_create(p->unit, list, count, &p->extra));
        CRD_TRY(crdi_values_create(m, p->extra, &p->extras));
    }
    for (int32_t i = 0; p->extra && i < p->extra->count; i++) {
        position[p->extra->variables[i]] = -3 - i;
    }
fail:
    return st < 0 ? crdi_member_refused(m, p, st) : CRD_OK;
}

static const void* probe_source(const crdi_member* p, int32_t position, int32_t element,
                                crd_kind kind)
{
    return position >= 0 ? crdi_slot(&p->outputs, kind, p->out->offsets[position] + element)
                         : crdi_slot(&p->extras, kind, p->extra->offsets[-3 - position] + element);
}

// Members and probes in the order of the rasters.
static crd_status sort_by_raster(crd_master* m, crdi_probe* unsorted)
{
    m->probes = crdi_arena_new(&m->arena, (size_t)m->signal_count, sizeof *m->probes);
    m->readers = crdi_arena_new(&m->arena, (size_t)m->member_count, sizeof *m->readers);
    if (!m->probes || !m->readers) { return CRD_E_MEMORY; }
    int probes = 0, members = 0;
    for (int k = 0; k < m->raster_count; k++) {
        crdi_raster* r = &m->rasters[k];
        r->probe_first = probes;
        r->member_first = members;
        for (int i = 0; i < m->signal_count; i++) {
            if (m->members[m->signals[i].member].raster == k) { m->probes[probes++] = unsorted[i]; }
        }
        for (int i = 0; i < m->member_count; i++) {
            const crdi_member* p = &m->members[i];
            if (p->extra && p->raster == k) { m->readers[members++] = i; }
        }
        r->probe_count = probes - r->probe_first;
        r->member_count = members - r->member_first;
    }
    return CRD_OK;
}

static crd_status bind_probes(crd_master* m)
{
    crd_status st = CRD_OK;
    int32_t most = 0;
    for (int i = 0; i < m->member_count; i++) {
        const int32_t n = m->members[i].unit->info.variable_count;
        most = n > most ? n : most;
    }
    int32_t* position = crdi_new_array(m->ctx, (size_t)most, sizeof *position);
    int32_t* list = crdi_new_array(m->ctx, (size_t)most, sizeof *list);
    crdi_probe* probes = crdi_new_array(m->ctx, (size_t)m->signal_count, sizeof *probes);
    if (!position || !list || !probes) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    for (int member = 0, i = 0, end = 0; member < m->member_count; member++) {
        while (end < m->signal_count && m->signals[end].member == member) { // sorted by member
            end++;
        }
        CRD_TRY(bind_extras(m, member, i, end - i, position, list));
        for (; i < end; i++) {
            const crdi_member* p = &m->members[member];
            const crdi_coupled* x = m->signals[i].coupled;
            if (x) {
                probes[i] =
                    (crdi_probe){.from = x->from, .signal = i, .kind = crd_type_kind(x->type)};
                continue;
            }
            const int32_t v = read_variable(p->unit, m->signals[i].variable);
            const crd_kind kind = crd_type_kind(p->unit->info.variables[v].type);
            probes[i] = (crdi_probe){
                .from = probe_source(p, position[v], m->signals[i].element, kind),
                .signal = i,
                .kind = kind,
                .watched = kind == CRD_REAL && position[v] < 0 &&
                           p->unit->info.variables[v].causality == CRD_OUTPUT,
            };
        }
    }
    CRD_TRY(sort_by_raster(m, probes));
fail:
    crd_free(m->ctx, position);
    crd_free(m->ctx, list);
    crd_free(m->ctx, probes);
    return st;
}

// ---- the file ----------------------------------------------------------------------------------

// Names of the values of an enumeration, in `room`. None are no failure.
static crd_status find_labels(crd_arena* room, const crd_unit* u, int32_t variable,
                              crd_column* column)
{
    int64_t value = 0;
    int count = 0;
    if (u->info.variables[variable].type != CRD_ENUMERATION || !CRDI_UNIT_HAS(u, names, item_at)) {
        return CRD_OK;
    }
    while (crdi_unit_item_at(u, variable, count, &value)) {
        count++;
    }
    crd_label* labels = crdi_arena_new(room, (size_t)count, sizeof *labels);
    if (!labels) { return CRD_E_MEMORY; }
    for (int i = 0; i < count; i++) {
        labels[i].text = crdi_unit_item_at(u, variable, i, &labels[i].value);
    }
    column->labels = labels;
    column->label_count = count;
    return CRD_OK;
}

static crd_status make_columns(crd_master* m, crd_arena* room, crd_recorder_options* opt)
{
    crd_column* columns = crdi_arena_new(room, (size_t)m->signal_count, sizeof *columns);
    crd_raster* rasters = crdi_arena_new(room, (size_t)m->raster_count, sizeof *rasters);
    if (!columns || !rasters) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->signal_count; i++) {
        const crdi_signal* s = &m->signals[i];
        const crdi_member* p = &m->members[s->member];
        const crdi_coupled* x = s->coupled;
        if (x) {
            columns[i] = (crd_column){.name = x->name,
                                      .unit = x->unit,
                                      .description = x->description,
                                      .type = x->type,
                                      .raster = p->raster,
                                      .labels = x->labels,
                                      .label_count = x->label_count};
            continue;
        }
        const crd_variable* v = &p->unit->info.variables[s->variable];
        columns[i] = (crd_column){.name = s->name,
                                  .unit = v->unit,
                                  .description = v->description,
                                  .type = (crd_type)v->type,
                                  .raster = p->raster};
        if (i > 0 && s[-1].member == s->member && s[-1].variable == s->variable && !s[-1].coupled) {
            columns[i].labels = columns[i - 1].labels; // the next element of an array
            columns[i].label_count = columns[i - 1].label_count;
            continue;
        }
        const crd_status st = find_labels(room, p->unit, s->variable, &columns[i]);
        if (st < 0) { return st; }
    }
    for (int i = 0; i < m->raster_count; i++) {
        rasters[i] = (crd_raster){.name = m->rasters[i].name,
                                  .interval = (double)m->rasters[i].ticks * m->tick};
    }
    opt->columns = columns;
    opt->column_count = m->signal_count;
    opt->rasters = rasters;
    opt->raster_count = m->raster_count;
    return CRD_OK;
}

static bool ends_in(const char* text, const char* end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcasecmp(text + n - k, end) == 0;
}

enum { MOST_BYTES = 16 * 1024 * 1024 }; // of a description that is attached

// The description as it was read. A package or an FMU is no text, and what cannot be read is left
// out: the run does not depend on it. `bytes` belongs to the caller.
crd_status crdi_master_read_description(crd_master* m, crd_attachment* out, char** bytes)
{
    const char* path = m->sys->file;
    const bool xml = ends_in(path, ".ssd");
    struct stat info;
    if (!xml && !ends_in(path, ".yaml") && !ends_in(path, ".yml")) { return CRD_OK; }
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) { return CRD_OK; }
    crd_status st = CRD_OK;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= MOST_BYTES) {
        const size_t size = (size_t)info.st_size;
        *bytes = crdi_new_array(m->ctx, size, 1);
        if (!*bytes) {
            st = CRD_E_MEMORY;
        } else if (read(fd, *bytes, size) == (ssize_t)size) {
            const char* slash = strrchr(path, '/');
            *out = (crd_attachment){.name = slash ? slash + 1 : path,
                                    .mime = xml ? "application/xml" : "application/yaml",
                                    .data = *bytes,
                                    .length = size};
        }
    }
    close(fd);
    return st;
}

// CSV has no room for anything but rows; then nothing is read, hashed or written down.
static bool takes_attachments(const char* path)
{
    return ends_in(path, ".mf4") || ends_in(path, ".mat");
}

static crd_status create_recorder(crd_master* m, crd_arena* room, crd_text* what)
{
    crd_status st = CRD_OK;
    const crd_results_spec* r = &m->sys->results;
    crd_attachment files[2] = {{.name = CRD_ATTACHMENT_RUN, .mime = "application/json"}};
    char* description = NULL;
    crd_recorder_options opt = {
        .path = r->path,
        .unit_row = r->unit_row,
        .mat_version = r->mat_version,
        .started = m->wall_start,
        .title = m->sys->title && m->sys->title[0] ? m->sys->title : NULL,
        .attachments = files,
    };
    CRD_TRY(make_columns(m, room, &opt));
    if (takes_attachments(r->path)) {
        CRD_TRY(crdi_master_reserve_verdict(m));
        CRD_TRY(crd_master_describe_run(m, what));
        CRD_TRY(crdi_master_read_description(m, &files[1], &description));
        files[0].data = what->data;
        files[0].length = what->length;
        opt.attachment_count = files[1].name ? 2 : 1;
    }
    CRD_TRY(crdi_master_open_spare(m));
    st = crd_recorder_create(m->record_ctx, &opt, &m->recorder);
    if (st < 0) {
        st = crdi_fail(m->ctx, st, "%s", crd_error_text(m->record_ctx));
        goto fail;
    }
    for (int i = 0; i < m->signal_count; i++) {
        m->probes[i].word = crd_recorder_word(m->recorder, m->probes[i].signal);
    }
    crdi_master_start_hearing(m);
fail:
    crd_free(m->ctx, description);
    return st;
}

crd_status crdi_master_open_results(crd_master* m)
{
    if (!m->sys->results.path) { return m->live ? bind_probes(m) : CRD_OK; }
    crd_arena room;
    crd_text what;
    crd_arena_init(&room, m->ctx);
    crd_text_init(&what, m->ctx);
    crd_status st = bind_probes(m);
    if (st == CRD_OK) { st = create_recorder(m, &room, &what); }
    crd_text_clear(&what);
    crd_arena_clear(&room);
    return st;
}

void crdi_master_end_text(const crd_master* m, char text[CRDI_HEARD])
{
    const char* said = "";
    switch (m->end) {
    case CRD_END_STOP_TIME:
        said = "stop time";
        break;
    case CRD_END_UNIT:
        snprintf(text, CRDI_HEARD, "unit '%s' wished the end",
                 m->members[m->end_member].unit->name);
        return;
    case CRD_END_FAILED:
        said = "failed";
        break;
    case CRD_END_OVERRUN:
        said = "a cycle was late";
        break;
    case CRD_END_NONE:
    case CRD_END_INTERRUPTED:
        said = m->stopped_by_page ? "stopped by a command" : "interrupted";
        break;
    }
    snprintf(text, CRDI_HEARD, "%s", said);
}

// Whoever watches hears it when the units are at rest, and whether one of them failed in that.
static void note_end(crd_master* m)
{
    char text[CRDI_HEARD];
    const double t = crdi_master_time_seen(m);
    crdi_master_end_text(m, text);
    if (m->recorder) { crd_recorder_event(m->recorder, CRD_EVENT_STOP, t, text); }
    if (m->exchange) { crdi_exchange_event(m, CRD_EVENT_STOP, t, text); }
}

// May come after a crash in the middle of anything: nothing here takes memory from the heap then.
crd_status crdi_master_close_results(crd_master* m)
{
    if (!m->recorder) {
        if (m->exchange) { note_end(m); }
        return CRD_OK;
    }
    for (int i = 0; i < m->member_count; i++) {
        m->heap_lost = m->heap_lost || m->members[i].crashed;
    }
    note_end(m);
    crdi_master_stop_hearing(m);
    if (takes_attachments(m->sys->results.path) &&
        crd_master_describe_verdict(m, &m->verdict) == CRD_OK) {
        // Without a verdict the rows are still worth it.
        (void)crd_recorder_attach(m->recorder, &(crd_attachment){.name = CRD_ATTACHMENT_VERDICT,
                                                                 .mime = "application/json",
                                                                 .data = m->verdict.data,
                                                                 .length = m->verdict.length});
    }
    const crd_status st = crd_recorder_finish(m->recorder);
    m->heap_lost = false; // the record is safe
    if (st == CRD_OK) { return CRD_OK; }
    snprintf(m->message, sizeof m->message, "%s", crd_error_text(m->record_ctx));
    return crdi_fail(m->ctx, st, "%s", m->message);
}

// ---- rows --------------------------------------------------------------------------------------

static crd_status read_extras(crd_master* m, crdi_raster* r)
{
    r->read = m->n;
    for (int k = 0; k < r->member_count; k++) {
        const int i = m->readers[r->member_first + k];
        crdi_member* p = &m->members[i];
        if (p->async && m->n > 0) { continue; } // they came with its step
        m->running = i;
        const crd_status st = p->unit->ops->get(p->unit, p->extra, &p->extras);
        m->running = -1;
        if (st < 0) { return crdi_member_failed(m, i, st); }
    }
    return CRD_OK;
}

// What fails here fails in the step as well, and is told there.
void crdi_master_read_extras(crd_master* m)
{
    for (int i = 0; i < m->raster_count; i++) {
        crdi_raster* r = &m->rasters[i];
        if (r->member_count == 0 || r->read == m->n) { continue; }
        r->read = m->n;
        for (int k = 0; k < r->member_count; k++) {
            const int at = m->readers[r->member_first + k];
            crdi_member* p = &m->members[at];
            if ((p->async && m->n > 0) || (!m->controlled && m->n % p->ticks != 0)) { continue; }
            m->running = at;
            (void)p->unit->ops->get(p->unit, p->extra, &p->extras);
            m->running = -1;
        }
    }
}

static crd_status __attribute__((cold, noinline)) fail_nan(crd_master* m, int signal)
{
    const crdi_signal* s = &m->signals[signal];
    const crd_unit* u = m->members[s->member].unit;
    (void)crdi_fail(u->ctx, CRD_E_UNIT, "output '%s' is not a number (NaN)%s",
                    u->info.variables[s->variable].name, m->n ? " after the step" : "");
    return crdi_member_failed(m, s->member, CRD_E_UNIT);
}

static crd_status record_raster(crd_master* m, int index)
{
    crdi_raster* r = &m->rasters[index];
    const crd_status st = read_extras(m, r);
    if (st < 0) { return st; }
    crd_word* row = crd_recorder_begin_raster(m->recorder, index);
    if (!row) {
        m->end = CRD_END_FAILED; // finish says why
        return crdi_fail(m->ctx, CRD_E_IO, "%s: writing the results failed", m->sys->results.path);
    }
    int nan = -1;
    row[0].real = crd_master_time(m);
    const crdi_probe* probes = m->probes + r->probe_first;
    for (int i = 0; i < r->probe_count; i++) {
        const crdi_probe* p = &probes[i];
        if (p->kind == CRD_REAL) {
            const double x = *(const double*)p->from;
            row[p->word].real = x;
            if (__builtin_expect(x != x, 0) && p->watched && nan < 0) { nan = p->signal; }
        } else if (p->kind == CRD_INTEGER) {
            row[p->word].integer = *(const int64_t*)p->from;
        } else {
            const crd_bytes* b = p->from;
            crd_word_set_bytes(&row[p->word], b->data, b->length);
        }
    }
    crd_recorder_end_raster(m->recorder, index);
    return nan < 0 ? CRD_OK : fail_nan(m, nan);
}

// Without a grid steps end at the rows' times, or where units do not allow that, the first step
// that reaches one makes the row.
static bool is_due(crd_master* m, const crdi_raster* r)
{
    if (!m->controlled) { return m->n % r->ticks == 0 || (r->at_end && m->n == m->tick_count); }
    const double interval = m->sys->results.interval;
    const double slack = 1e-9 * interval;
    if (m->time < m->next_row - slack && m->time < m->stop) { return false; }
    if (interval > 0) {
        m->next_row = m->start + interval * (floor((m->time + slack - m->start) / interval) + 1);
    }
    return true;
}

crd_status crdi_master_record(crd_master* m)
{
    for (int i = 0; i < m->raster_count; i++) {
        const crdi_raster* r = &m->rasters[i];
        if (!is_due(m, r)) { continue; }
        const crd_status st = record_raster(m, i);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}
