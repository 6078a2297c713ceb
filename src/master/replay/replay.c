// A system made ready for a replay: scripts for its couplings, units that are played instead of
// run, the times of the recorded run.
#include "master/replay/replay.h"
#include "shared/system.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct planner {
    crd_system* s;
    const crdi_exchange* x;
    const bool* played; // (unit_count), NULL: none
    crd_map inputs;     // crdi_exchange_link.to -> index
    crd_script* scripts;
    const char** notes;
    crdi_replay_plan plan;
} planner;

static bool is_played(const planner* p, int unit)
{
    return p->played && p->played[unit];
}

static crd_status __attribute__((format(printf, 2, 3))) note(planner* p, const char* format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char** notes =
        crdi_arena_new(&p->s->arena, (size_t)p->plan.note_count + 1, sizeof *notes);
    char* copy = crdi_arena_text(&p->s->arena, text, strlen(text));
    if (!notes || !copy) { return CRD_E_MEMORY; }
    if (p->plan.note_count) { memcpy(notes, p->notes, (size_t)p->plan.note_count * sizeof *notes); }
    notes[p->plan.note_count++] = copy;
    p->plan.notes = p->notes = notes;
    return CRD_OK;
}

// ---- connections and what is recorded of them --------------------------------------------------

static char* end_name(planner* p, int unit, const char* variable, int element)
{
    const char* name = p->s->units[unit].name;
    return element < 0 ? crdi_arena_format(&p->s->arena, "%s.%s", name, variable)
                       : crdi_arena_format(&p->s->arena, "%s.%s[%d]", name, variable, element + 1);
}

// The recorded link of a connection, or of one element of it; NULL in `*out`: there is none.
static crd_status replay_find_link(planner* p, const crd_connection_spec* c, int element,
                                   const crdi_exchange_link** out)
{
    *out = NULL;
    const char* from = end_name(p, c->from_unit, c->from, element);
    const char* to = end_name(p, c->to_unit, c->to, element);
    if (!from || !to) { return CRD_E_MEMORY; }
    const int i = crdi_map_find(&p->inputs, to);
    if (i >= 0 && strcmp(p->x->links[i].from, from) == 0) { *out = &p->x->links[i]; }
    return CRD_OK;
}

typedef struct found {
    const crdi_exchange_link** links;
    int count;
    bool array;
} found;

static crd_status find_links(planner* p, const crd_connection_spec* c, found* out)
{
    *out = (found){0};
    crd_status st = CRD_OK;
    const crdi_exchange_link* one = NULL;
    CRD_TRY(replay_find_link(p, c, -1, &one));
    if (!one) {
        do {
            CRD_TRY(replay_find_link(p, c, out->count, &one));
            out->count += one != NULL;
        } while (one);
        out->array = out->count > 0;
    } else {
        out->count = 1;
    }
    out->links = crdi_arena_new(&p->s->arena, (size_t)out->count + 1, sizeof *out->links);
    if (!out->links) { return CRD_E_MEMORY; }
    for (int i = 0; i < out->count; i++) {
        CRD_TRY(replay_find_link(p, c, out->array ? i : -1, &out->links[i]));
    }
fail:
    return st;
}

static bool replay_is_text(const planner* p, const crd_connection_spec* c)
{
    char name[512];
    snprintf(name, sizeof name, "%s.%s -> %s.%s", p->s->units[c->from_unit].name, c->from,
             p->s->units[c->to_unit].name, c->to);
    for (int i = 0; i < p->x->text_count; i++) {
        if (strcmp(p->x->texts[i], name) == 0) { return true; }
    }
    return false;
}

// What the unit gives goes through a coupling to one that runs.
static bool is_late(const planner* p, int unit)
{
    for (int i = 0; i < p->s->connection_count; i++) {
        const crd_connection_spec* c = &p->s->connections[i];
        if (c->from_unit == unit && c->coupling && !is_played(p, c->to_unit)) { return true; }
    }
    return false;
}

static crd_status missing(const planner* p, const crd_connection_spec* c)
{
    char list[400] = "", at[300] = "";
    size_t used = 0;
    for (int i = 0; i < p->x->link_count && used < sizeof list - 100; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.90s -> %.90s", i ? ", " : "",
                                 p->x->links[i].from, p->x->links[i].to);
        used = used < sizeof list ? used : sizeof list - 1;
        if (i == 4 && p->x->link_count > 5) {
            snprintf(list + used, sizeof list - used, " and %d more", p->x->link_count - 5);
            break;
        }
    }
    if (c->place.file && c->place.file[0]) {
        snprintf(at, sizeof at, "%.250s:%d: ", c->place.file, c->place.line);
    }
    return crdi_fail(p->s->ctx, CRD_E_NOT_FOUND,
                     "%s%s has no samples of the connection %s.%s -> %s.%s; it has %s", at,
                     p->x->path, p->s->units[c->from_unit].name, c->from,
                     p->s->units[c->to_unit].name, c->to, list);
}

// ---- scripts -----------------------------------------------------------------------------------

// What a played unit has answered to is what was sent to it then, whatever is sent to it now.
static crd_script with_commands(const crdi_exchange_link* k, bool played, crd_script s)
{
    if (!played || !k->acted) { return s; }
    s.times = k->coupled ? k->input_time : k->arrival;
    s.time_count = k->coupled ? k->input_count : k->count;
    s.sent = k->sent;
    s.acted = s.time_count > 0 ? k->acted : NULL;
    return s;
}

static crd_status add_script(planner* p, const crd_connection_spec* c, const crdi_exchange_link* k)
{
    if (p->plan.script_count == p->x->link_count) { return CRD_OK; } // an input with two sources
    crd_script* out = &p->scripts[p->plan.script_count++];
    const bool to = is_played(p, c->to_unit);
    if (!c->coupling) {
        const crd_history* past = !k->coupled && k->past.count ? &k->past : NULL;
        *out = with_commands(k, to, (crd_script){.to = k->to, .past = past});
        return CRD_OK;
    }
    crd_script_sample* samples = crdi_arena_new(&p->s->arena, (size_t)k->count, sizeof *samples);
    if (!samples) { return CRD_E_MEMORY; }
    for (int64_t i = 0; i < k->count; i++) {
        const double n = k->sequence[i];
        samples[i] = (crd_script_sample){.arrival = k->arrival[i],
                                         .stamp = k->stamp[i],
                                         .value = k->value[i],
                                         .sequence = n >= 0 && n < 0x1p53 ? (int64_t)n : -1};
    }
    *out = with_commands(k, to,
                         (crd_script){.to = k->to,
                                      .samples = samples,
                                      .count = k->count,
                                      .values = is_played(p, c->from_unit),
                                      .start = k->input_count ? k->input[0] : 0});
    return CRD_OK;
}

static crd_status script_connection(planner* p, const crd_connection_spec* c, const found* f)
{
    for (int i = 0; i < f->count; i++) {
        const crdi_exchange_link* k = f->links[i];
        const bool answered = is_played(p, c->to_unit) && k->acted;
        if (!c->coupling && !answered && (k->coupled || k->past.count == 0)) { continue; }
        if (c->coupling && !k->coupled) {
            return crdi_fail(p->s->ctx, CRD_E_RANGE,
                             "%s: %s -> %s had no coupling in the recorded run, but has one in %s",
                             p->x->path, k->from, k->to, p->s->file);
        }
        const crd_status st = add_script(p, c, k);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// ---- units that are played ---------------------------------------------------------------------

// The connection passes what the recording has, as it is.
static void pass_as_recorded(crd_connection_spec* c, const crdi_exchange_link* k)
{
    c->convert_units = false;
    c->has_transformation = false;
    c->gain = 1;
    c->offset = 0;
    c->map_count = c->via_count = 0;
    if (!c->coupling) { c->predict = k->predict; }
}

// The connection converts as it did, whatever is known of the unit of the input now.
static void convert_as_recorded(crd_connection_spec* c, const crdi_exchange_link* k)
{
    if (k->mapped) { return; }
    c->convert_units = false;
    c->has_transformation = k->transform;
    c->gain = k->gain;
    c->offset = k->offset;
    c->via_count = 0;
}

static bool is_taken(const crdi_played_port* ports, int count, const char* name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(ports[i].name, name) == 0) { return true; }
    }
    return false;
}

// An output that feeds several inputs becomes one for each: they may be in different units.
static const char* free_name(planner* p, const crdi_played_port* ports, int count,
                             const char* wanted)
{
    const char* name = wanted;
    for (int i = 2; name && is_taken(ports, count, name); i++) {
        name = crdi_arena_format(&p->s->arena, "%s#%d", wanted, i);
    }
    return name;
}

static crd_status replace_unit(planner* p, int unit, const found* of)
{
    crd_status st = CRD_OK;
    crd_system* s = p->s;
    int count = 0;
    crdi_played_port* ports = crdi_arena_new(&s->arena, (size_t)s->connection_count, sizeof *ports);
    if (!ports) { return CRD_E_MEMORY; }
    for (int i = 0; i < s->connection_count; i++) {
        crd_connection_spec* c = &s->connections[i];
        if (c->from_unit != unit && c->to_unit != unit) { continue; }
        const bool output = c->from_unit == unit;
        const char* name = free_name(p, ports, count, output ? c->from : c->to);
        if (!name) { return CRD_E_MEMORY; }
        ports[count++] = (crdi_played_port){.name = name,
                                            .output = output,
                                            .array = of[i].array,
                                            .count = of[i].count,
                                            .links = of[i].links};
        if (output) {
            pass_as_recorded(c, of[i].links[0]);
            c->from = name;
        } else if (!is_played(p, c->from_unit)) {
            convert_as_recorded(c, of[i].links[0]);
        }
    }
    const crd_model* model = NULL;
    CRD_TRY(crdi_played_create(&s->arena, ports, count, p->x->tick, &model));
    crd_unit_spec* u = &s->units[unit];
    crd_unit_spec played = crd_unit_spec_defaults();
    played.name = u->name;
    played.step = u->step;
    played.place = u->place;
    played.source = CRD_UNIT_NATIVE;
    played.model = model;
    *u = played;
fail:
    return st;
}

// Of what passes between two units that are played only commands of couplings are of use.
static void drop_connections(planner* p, found* of)
{
    crd_system* s = p->s;
    int n = 0;
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        const bool from = is_played(p, c->from_unit), to = is_played(p, c->to_unit);
        if ((from || to) && of[i].count == 0) { continue; }
        of[n] = of[i];
        s->connections[n++] = *c;
    }
    s->connection_count = n;
}

static crd_status drop_bonds(planner* p)
{
    crd_system* s = p->s;
    int n = 0;
    for (int i = 0; i < s->bond_count; i++) {
        const crd_bond_spec b = s->bonds[i];
        const int unit = is_played(p, b.action_unit) ? b.action_unit : b.flow_unit;
        if (!is_played(p, unit)) {
            s->bonds[n++] = b;
            continue;
        }
        const crd_status st =
            note(p, "the power bond of %s and %s is left out, as '%s' is played%s", b.action,
                 b.flow, s->units[unit].name,
                 b.correct != CRD_CORRECT_NONE ? ": its correction is missing" : "");
        if (st < 0) { return st; }
    }
    s->bond_count = n;
    return CRD_OK;
}

// What a unit that is played depends on is not known any more: the order stays as it was.
static crd_status keep_order(planner* p)
{
    crd_system* s = p->s;
    const size_t n = (size_t)s->unit_count;
    if (s->run.scheme != CRD_SCHEME_GAUSS_SEIDEL) { return CRD_OK; }
    crd_group* leaves = crdi_arena_new(&s->arena, n, sizeof *leaves);
    if (!leaves) { return CRD_E_MEMORY; }
    int count = 0;
    for (int i = 0; i < p->x->order_count && count < s->unit_count; i++) {
        const int unit = crd_system_find(s, p->x->order[i]);
        if (unit >= 0) { leaves[count++] = (crd_group){.kind = CRD_GROUP_UNIT, .unit = unit}; }
    }
    if (count != s->unit_count) {
        return note(p, "the order of the units in the recorded run is not known for all of them");
    }
    s->run.scheme = CRD_SCHEME_GROUPS;
    s->run.group = (crd_group){
        .kind = CRD_GROUP_GAUSS_SEIDEL, .members = leaves, .member_count = s->unit_count};
    return CRD_OK;
}

static crd_status play_units(planner* p, found* of)
{
    crd_status st = CRD_OK;
    crd_system* s = p->s;
    drop_connections(p, of);
    for (int i = 0; i < s->unit_count; i++) {
        if (p->played[i]) { CRD_TRY(replace_unit(p, i, of)); }
    }
    CRD_TRY(drop_bonds(p));
    CRD_TRY(keep_order(p));
    s->results.patterns = NULL; // they may name what is played
    s->results.pattern_count = 0;
fail:
    return st;
}

// ---- checks ------------------------------------------------------------------------------------

static crd_status replay_check_units(const planner* p)
{
    int running = 0;
    for (int i = 0; i < p->s->unit_count; i++) {
        const crd_unit_spec* u = &p->s->units[i];
        if (is_played(p, i)) { continue; }
        running++;
        const crdi_unit_kind* kind = crdi_unit_kind_of(u->source);
        if (kind->is_remote || kind->by_hand) {
            return crdi_fail(p->s->ctx, CRD_E_RANGE,
                             "unit '%s' is %s and is not run again; --play %s plays what it %s",
                             u->name, kind->by_hand ? "driven by hand" : "reached over a network",
                             u->name, kind->by_hand ? "did" : "sent");
        }
    }
    return running ? CRD_OK
                   : crdi_fail(p->s->ctx, CRD_E_RANGE,
                               "all units are played: there is nothing left to run");
}

static crd_status replay_check_times(planner* p)
{
    crd_run_spec* run = &p->s->run;
    const crdi_exchange* x = p->x;
    if (x->controlled || run->control.on) {
        return crdi_fail(p->s->ctx, CRD_E_UNSUPPORTED,
                         "%s: a run with a variable step cannot be replayed; record one with a "
                         "fixed step",
                         x->controlled ? x->path : p->s->file);
    }
    if (!isnan(run->step) && !isnan(x->step) && fabs(run->step - x->step) > 1e-9 * x->step) {
        return crdi_fail(p->s->ctx, CRD_E_RANGE,
                         "%s was recorded with a step of %g s, but %s has a step of %g s; --step "
                         "%g replays it as it was",
                         x->path, x->step, p->s->file, run->step, x->step);
    }
    if (isnan(run->step)) { run->step = x->step; }
    run->start = x->start;
    run->stop = x->end;
    return CRD_OK;
}

static crd_status note_differences(planner* p)
{
    crd_status st = CRD_OK;
    const crdi_exchange* x = p->x;
    if (x->unfinished) {
        CRD_TRY(note(p,
                     "%s: the recorded run was cut off; it is replayed up to t = %.10g s of "
                     "%.10g s",
                     x->path, x->end, x->stop));
    }
    if (x->gaps) {
        CRD_TRY(note(p,
                     "%s is not whole, as writing it could not keep up with the run: samples "
                     "that are missing count as lost",
                     x->path));
    }
    if (x->changes) {
        CRD_TRY(note(p,
                     "somebody changed or marked something while the recorded run went (%lld "
                     "event%s); the replay does not repeat that",
                     (long long)x->changes, x->changes == 1 ? "" : "s"));
    }
fail:
    return st;
}

static crd_status note_twice(planner* p, const crd_connection_spec* c)
{
    return note(p,
                "'%s' ran before '%s' in each step, and its %s was evaluated again afterwards; "
                "the replay has only that: it differs from the recorded run even if nothing was "
                "changed",
                p->s->units[c->from_unit].name, p->s->units[c->to_unit].name, c->from);
}

static crd_status note_no_coupling(planner* p, const crdi_exchange_link* k)
{
    return note(p,
                "%s -> %s had a coupling in the recorded run and has none in %s: its samples "
                "arrive at once",
                k->from, k->to, p->s->file);
}

// ---- all of it ---------------------------------------------------------------------------------

static crd_status plan(planner* p)
{
    crd_status st = CRD_OK;
    crd_system* s = p->s;
    CRD_TRY(crdi_map_reserve(&p->inputs, (size_t)p->x->link_count));
    for (int i = 0; i < p->x->link_count; i++) {
        CRD_TRY(crdi_map_add(&p->inputs, p->x->links[i].to, i, NULL));
    }
    CRD_TRY(replay_check_units(p));
    CRD_TRY(replay_check_times(p));
    CRD_TRY(note_differences(p));
    found* of = crdi_arena_new(&s->arena, (size_t)s->connection_count, sizeof *of);
    p->scripts = crdi_arena_new(&s->arena, (size_t)p->x->link_count, sizeof *p->scripts);
    if (!of || !p->scripts) { return CRD_E_MEMORY; }
    bool known = p->x->link_count == 0;
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        const bool from = is_played(p, c->from_unit), to = is_played(p, c->to_unit);
        if (from && to) {
            known = true;
            if (!is_late(p, c->to_unit)) { continue; }
        }
        CRD_TRY(find_links(p, c, &of[i]));
        known = known || of[i].count > 0;
        if (of[i].count > 0 && of[i].links[0]->coupled && !c->coupling) {
            CRD_TRY(note_no_coupling(p, of[i].links[0]));
        }
        if (of[i].count == 0 && replay_is_text(p, c)) {
            if (from) {
                CRD_TRY(note(p, "texts are not recorded: %s.%s keeps its start value",
                             s->units[c->to_unit].name, c->to));
            }
            continue;
        }
        if (of[i].count == 0 && from && to) { continue; }
        if (of[i].count == 0 && (from || to || c->coupling)) { CRD_TRY(missing(p, c)); }
        if (c->coupling || from || to) { CRD_TRY(script_connection(p, c, &of[i])); }
        if (from && !to && of[i].links[0]->twice) { CRD_TRY(note_twice(p, c)); }
    }
    if (!known) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "%s is of another system: %s has no connection like %s -> %s or another "
                         "one of its %d",
                         p->x->path, s->file, p->x->links[0].from, p->x->links[0].to,
                         p->x->link_count);
    }
    p->plan.scripts = p->scripts;
    if (p->played) { CRD_TRY(play_units(p, of)); }
fail:
    return st;
}

crd_status crdi_replay_prepare(crd_system* s, const crdi_exchange* x, const bool* played,
                               crdi_replay_plan* out)
{
    planner p = {.s = s, .x = x, .played = played};
    crdi_map_init(&p.inputs, s->ctx);
    const crd_status st = plan(&p);
    crdi_map_clear(&p.inputs);
    if (st == CRD_OK) { *out = p.plan; }
    return st;
}
