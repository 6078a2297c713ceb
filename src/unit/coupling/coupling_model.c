// The coupling element as a model: the table of its variables, made from its description.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit/coupling/coupling_model.h"

#define COUNTER(name, text)                                                                        \
    {                                                                                              \
#name, text, offsetof(crd_coupling_counts, name)                                           \
    }
const crdi_coupling_counter crdi_coupling_counters[CRDI_COUPLING_COUNTERS] = {
    COUNTER(samples, "samples that were received"),
    COUNTER(filled, "missing samples that were interpolated or held"),
    COUNTER(late, "samples that came after a newer one and were put in their place"),
    COUNTER(too_late, "samples that came too late for the history"),
    COUNTER(duplicates, "samples that were there already"),
    COUNTER(not_finite, "samples that were no numbers: the one before was held"),
    COUNTER(beyond, "estimates with a latency beyond the largest that is compensated"),
    COUNTER(jumps, "discontinuities"),
    COUNTER(restarts, "times that the signal began anew"),
    COUNTER(rollbacks, "learned networks that were given up again"),
};

static const char* const active_items[] = {"algorithm", "zoh", "foh", NULL};
static const char* const learning_items[] = {"none", "offline", "connecting", "online", NULL};

// ---- rows --------------------------------------------------------------------------------------

// The table while it is being made; a failure is remembered.
typedef struct table {
    crdi_coupling_model* m;
    crd_model_variable* rows;
    int count;
    const char* commands; // " pedal gear"
    bool failed;
} table;

static void coupling_model_add(table* t, crd_model_variable row)
{
    t->rows[t->count++] = row;
}

// "u" for one signal or an array of them, "u.torque" if they have names.
static const char* row_name(table* t, const char* base, int i)
{
    const char* const* names = t->m->element->signal_names;
    const char* name = names ? crdi_arena_format(&t->m->arena, "%s.%s", base, names[i]) : base;
    if (!name) { t->failed = true; }
    return name;
}

// A row of each signal: one for all of them as an array, or one for each. `stride` bytes lie
// between their values.
static void add_signals(table* t, crd_model_variable row, size_t stride)
{
    const crd_element* e = t->m->element;
    const char* base = row.name;
    const size_t derivatives = row.derivatives;
    const bool array = !e->signal_names && t->m->n > 1;
    row.size = array ? (size_t)t->m->n : 0;
    row.by_element = array;
    if (array) { row.derivatives = 0; }
    for (int i = 0; i < (array ? 1 : t->m->n) && !t->failed; i++) {
        row.name = row_name(t, base, i);
        if (row.causality == CRD_OUTPUT) {
            const char* u = row_name(t, "u", i);
            row.depends =
                u ? crdi_arena_format(&t->m->arena, "%s stamp sequence%s", u, t->commands) : NULL;
            if (!row.depends) { t->failed = true; }
        }
        coupling_model_add(t, row);
        row.offset += stride;
        row.derivatives = derivatives ? row.derivatives + 2 * sizeof(double) : 0;
    }
}

#define FIELD(field) .offset = offsetof(crdi_coupling_self, field)

static void coupling_model_add_inputs(table* t)
{
    const crd_element* e = t->m->element;
    const double known = e->latency_steps >= 0  ? e->latency_steps
                         : isfinite(e->latency) ? e->latency / e->step
                                                : -1;
    add_signals(t,
                (crd_model_variable){.name = "u",
                                     .causality = CRD_INPUT,
                                     .offset = t->m->at.u,
                                     .description = "newest sample that has arrived"},
                sizeof(double));
    coupling_model_add(
        t, (crd_model_variable){.name = "stamp",
                                .causality = CRD_INPUT,
                                FIELD(in.stamp),
                                .unit = "s",
                                .start = NAN,
                                .description = "time at which it was taken; NaN: not known"});
    coupling_model_add(
        t, (crd_model_variable){.name = "sequence",
                                .type = CRD_INT64,
                                .causality = CRD_INPUT,
                                .variability = CRD_DISCRETE,
                                FIELD(in.sequence),
                                .start = -1,
                                .description = "its number in macro steps; -1: not known"});
    coupling_model_add(t, (crd_model_variable){.name = "macro_step",
                                               .causality = CRD_PARAMETER,
                                               .variability = CRD_FIXED,
                                               FIELD(macro_step),
                                               .unit = "s",
                                               .start = e->step,
                                               .description = "time between two samples"});
    coupling_model_add(
        t, (crd_model_variable){.name = "latency",
                                .causality = CRD_PARAMETER,
                                .variability = CRD_FIXED,
                                FIELD(latency),
                                .start = known,
                                .min = -1,
                                .max = CRD_LATENCY_MAX,
                                .description = "known age of u in macro steps; -1: from stamp and "
                                               "sequence, and 0 until one of them is there"});
    coupling_model_add(
        t, (crd_model_variable){.name = "threshold",
                                .causality = CRD_PARAMETER,
                                .variability = CRD_FIXED,
                                FIELD(threshold),
                                .start = e->options.threshold,
                                .description = "of the detection of discontinuities; 0: its own"});
    coupling_model_add(t, (crd_model_variable){.name = "learn_server",
                                               .type = CRD_STRING,
                                               .causality = CRD_PARAMETER,
                                               .variability = CRD_FIXED,
                                               FIELD(learn_server),
                                               .capacity = CRDI_COUPLING_ADDRESS,
                                               .start_text = e->learn_server ? e->learn_server : "",
                                               .description =
                                                   "address of the learning server, unix:PATH or "
                                                   "tcp:ADDRESS:PORT; empty: none"});
}

// Inputs with the names of the commands.
static void coupling_model_add_commands(table* t)
{
    const crd_element* e = t->m->element;
    crd_arena* arena = &t->m->arena;
    const int count = t->m->commands;
    for (int a = 0; a < count && !t->failed; a++) {
        const char* name = e->command_names ? crdi_arena_format(arena, "%s", e->command_names[a])
                           : count > 1      ? crdi_arena_format(arena, "command_%d", a + 1)
                                            : "command";
        t->commands = name ? crdi_arena_format(arena, "%s %s", t->commands, name) : NULL;
        if (!t->commands) {
            t->failed = true;
            return;
        }
        coupling_model_add(
            t, (crd_model_variable){.name = name,
                                    .causality = CRD_INPUT,
                                    .offset = t->m->at.u + (size_t)(t->m->n + a) * sizeof(double),
                                    .description = "command, as it is now at each macro step"});
    }
    if (count == 0) { return; }
    coupling_model_add(
        t, (crd_model_variable){.name = "command_delay",
                                .causality = CRD_PARAMETER,
                                .variability = CRD_FIXED,
                                FIELD(command_delay),
                                .unit = "s",
                                .description = "commands act so much later at the partner"});
}

static void coupling_model_add_outputs(table* t)
{
    const crdi_coupling_places* at = &t->m->at;
    const size_t n = (size_t)t->m->n;
    add_signals(t,
                (crd_model_variable){.name = "y",
                                     .causality = CRD_OUTPUT,
                                     .offset = at->y,
                                     .derivatives = at->slopes,
                                     .description = "estimate of the signal now"},
                sizeof(double));
    add_signals(t,
                (crd_model_variable){.name = "k",
                                     .type = CRD_INT32,
                                     .causality = CRD_OUTPUT,
                                     .variability = CRD_DISCRETE,
                                     .offset = at->k,
                                     .description = "latency in macro steps"},
                sizeof(int32_t));
    add_signals(t,
                (crd_model_variable){.name = "jump",
                                     .type = CRD_BOOLEAN,
                                     .causality = CRD_OUTPUT,
                                     .variability = CRD_DISCRETE,
                                     .offset = at->jump,
                                     .description = "the newest sample is discontinuous"},
                sizeof(bool));
    add_signals(t,
                (crd_model_variable){.name = "active",
                                     .type = CRD_ENUMERATION,
                                     .causality = CRD_OUTPUT,
                                     .variability = CRD_DISCRETE,
                                     .offset = at->active,
                                     .items = active_items,
                                     .description = "what makes the estimate: the element's own "
                                                    "algorithm, or a stand-in after a jump"},
                sizeof(int64_t));
    for (int j = 0; j < CRDI_COUPLING_COUNTERS; j++) {
        add_signals(t,
                    (crd_model_variable){.name = crdi_coupling_counters[j].name,
                                         .type = CRD_INT32,
                                         .causality = CRD_OUTPUT,
                                         .variability = CRD_DISCRETE,
                                         .offset = at->counters + (size_t)j * n * sizeof(int32_t),
                                         .description = crdi_coupling_counters[j].description},
                    sizeof(int32_t));
    }
    coupling_model_add(t, (crd_model_variable){.name = "learning",
                                               .type = CRD_ENUMERATION,
                                               .causality = CRD_OUTPUT,
                                               .variability = CRD_DISCRETE,
                                               FIELD(learning),
                                               .items = learning_items,
                                               .depends = "",
                                               .description = "connection to the learning server"});
    coupling_model_add(
        t, (crd_model_variable){.name = "networks",
                                .type = CRD_INT32,
                                .causality = CRD_OUTPUT,
                                .variability = CRD_DISCRETE,
                                FIELD(networks),
                                .depends = "",
                                .description = "networks that came from the learning server"});
}

// ---- create ------------------------------------------------------------------------------------

bool crdi_coupling_is_identifier(const char* name)
{
    const char* letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    const size_t n =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    return name[0] && strchr(letters, name[0]) && !name[n] && n <= 100;
}

static crd_status check_names(crd_context* ctx, const crd_element* e, const char* file)
{
    if (!crdi_coupling_is_identifier(e->name)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: name = '%.100s', expected letters, digits and '_' as in a name of C",
                         file, e->name);
    }
    if (e->signal_count < 1 || e->signal_count > CRDI_COUPLING_SIGNALS) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: signals = %d, expected 1 to %d", file,
                         e->signal_count, CRDI_COUPLING_SIGNALS);
    }
    for (int i = 0; e->signal_names && i < e->signal_count; i++) {
        if (!crdi_coupling_is_identifier(e->signal_names[i])) {
            return crdi_fail(
                ctx, CRD_E_RANGE,
                "%s: signal '%.100s', expected letters, digits and '_' as in a name of C", file,
                e->signal_names[i]);
        }
        for (int k = 0; k < i; k++) {
            if (strcmp(e->signal_names[i], e->signal_names[k]) == 0) {
                return crdi_fail(ctx, CRD_E_RANGE, "%s: two signals are called '%s'", file,
                                 e->signal_names[i]);
            }
        }
    }
    if (e->learn_server && strlen(e->learn_server) >= CRDI_COUPLING_ADDRESS) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: the learning server's address is longer than %d",
                         file, CRDI_COUPLING_ADDRESS - 1);
    }
    return CRD_OK;
}

// "pedal", or "bench.pedal" after the unit that it is sent to.
static bool is_path(const char* name)
{
    char part[102];
    for (;; name++) {
        const size_t n = strcspn(name, ".");
        snprintf(part, sizeof part, "%.*s", n < sizeof part ? (int)n : (int)sizeof part - 1, name);
        if (!crdi_coupling_is_identifier(part)) { return false; }
        name += n;
        if (!*name) { return true; }
    }
}

static crd_status coupling_model_check_commands(const crdi_coupling_model* m, const char* file)
{
    const crd_element* e = m->element;
    if (e->options.algorithm == CRD_ALGORITHM_COMMANDS && m->commands == 0) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s: the algorithm commands without any, expected their names, as in "
                         "commands: [pedal, gear]",
                         file);
    }
    for (int a = 0; e->command_names && a < m->commands; a++) {
        const char* name = e->command_names[a];
        if (strlen(name) > 100 || !is_path(name)) {
            return crdi_fail(m->ctx, CRD_E_RANGE,
                             "%s: command '%.100s', expected names of letters, digits and '_' with "
                             "'.' between them: they become inputs",
                             file, name);
        }
    }
    return CRD_OK;
}

// Names of commands are the user's, all others are ours.
static crd_status coupling_model_check_table(const crdi_coupling_model* m, const char* file,
                                             const table* t)
{
    for (int i = 0; i < t->count; i++) {
        for (int k = 0; k < i; k++) {
            if (strcmp(t->rows[i].name, t->rows[k].name) == 0) {
                return crdi_fail(m->ctx, CRD_E_RANGE,
                                 "%s: command '%s', expected a name that no other variable has",
                                 file, t->rows[i].name);
            }
        }
    }
    return CRD_OK;
}

static size_t take_room(size_t* used, size_t bytes)
{
    const size_t at = *used;
    *used = (at + bytes + 15) / 16 * 16;
    return at;
}

static void coupling_model_lay_out(crdi_coupling_model* m, size_t room)
{
    const size_t n = (size_t)m->n;
    size_t used = (sizeof(crdi_coupling_self) + 15) / 16 * 16;
    m->at = (crdi_coupling_places){
        .u = take_room(&used, (n + (size_t)m->commands) * sizeof(double)),
        .y = take_room(&used, n * sizeof(double)),
        .slopes = take_room(&used, n * 2 * sizeof(double)),
        .k = take_room(&used, n * sizeof(int32_t)),
        .jump = take_room(&used, n * sizeof(bool)),
        .active = take_room(&used, n * sizeof(int64_t)),
        .counters = take_room(&used, n * CRDI_COUPLING_COUNTERS * sizeof(int32_t)),
        .tried_u = take_room(&used, (n + (size_t)m->commands) * sizeof(double)),
        .live = take_room(&used, n * room),
        .backup = take_room(&used, n * room),
        .room = room,
    };
    m->base.size = used;
}

static crd_status coupling_model_build(crdi_coupling_model* m, const char* file)
{
    const crd_element* e = m->element;
    crd_coupling_options opt;
    size_t room = 0;
    crd_status st = check_names(m->ctx, e, file);
    if (st < 0) { return st; }
    if (!(e->step > 0)) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: the macro step is missing, as in step: 10 ms",
                         file);
    }
    m->n = e->signal_count;
    m->commands = e->options.commands;
    CRD_TRY(coupling_model_check_commands(m, file));
    CRD_TRY(crd_element_options(e, e->step, &opt));
    CRD_TRY(crdi_place_measure(m->ctx, &opt, &room));
    coupling_model_lay_out(m, room);
    const size_t most = (size_t)m->n * (5 + CRDI_COUPLING_COUNTERS) + 9 + CRD_COMMANDS_MAX;
    table t = {.m = m, .commands = "", .rows = crdi_arena_new(&m->arena, most, sizeof *t.rows)};
    const char* name = crdi_arena_text(&m->arena, e->name, strlen(e->name));
    const char* description = crdi_arena_format(&m->arena,
                                                "coupling element %s: makes a late "
                                                "signal usable as if it came at once",
                                                e->label);
    if (!t.rows || !name || !description) { return CRD_E_MEMORY; }
    coupling_model_add_inputs(&t);
    coupling_model_add_commands(&t);
    coupling_model_add_outputs(&t);
    if (t.failed) { return CRD_E_MEMORY; }
    if (m->commands > 0) { CRD_TRY(coupling_model_check_table(m, file, &t)); }
    m->base.name = name;
    m->base.description = description;
    m->base.variables = t.rows;
    m->base.variable_count = t.count;
    m->base.default_step = e->step;
    m->base.max_output_derivative = m->n == 1 || e->signal_names ? 1 : 0; // arrays have none
fail:
    return st;
}

enum { PAIR_TEXT = 1024 }; // bytes: a side of a pair has no more to say

crd_status crd_coupling_model_create(crd_context* ctx, const char* json, size_t length,
                                     const char* file, const crd_model** out)
{
    crd_status st = CRD_OK;
    crdi_coupling_model* m = crdi_new(ctx, sizeof *m);
    if (!m) { return CRD_E_MEMORY; }
    *m = (crdi_coupling_model){.base = {.default_stop = 10,
                                        .initialize = crdi_coupling_initialize,
                                        .outputs = crdi_coupling_outputs,
                                        .step = crdi_coupling_step,
                                        .user = m,
                                        .pinned = true,
                                        .kept = offsetof(crdi_coupling_self, model),
                                        .clear = crdi_coupling_clear},
                               .ctx = ctx};
    crd_arena_init(&m->arena, ctx);
    crdi_json* root = NULL; // what is no JSON is the element's to complain about
    if (length < PAIR_TEXT &&
        crdi_json_parse(&m->arena, json, length, (crdi_json_source){.file = file}, &root) ==
            CRD_OK &&
        crdi_json_member(root, "pair")) {
        CRD_TRY(crdi_pair_model_build(m, root, file));
    } else {
        CRD_TRY(crd_element_parse(ctx, json, length, file, 1, &m->element));
        CRD_TRY(coupling_model_build(m, file));
    }
    *out = &m->base;
    return CRD_OK;
fail:
    crd_coupling_model_destroy(&m->base);
    return st;
}

void crd_coupling_model_destroy(const crd_model* model)
{
    if (!model) { return; }
    crdi_coupling_model* m = (crdi_coupling_model*)model->user;
    crd_context* ctx = m->ctx;
    const bool owns = m->owns_context;
    crd_element_destroy(m->element);
    crd_arena_clear(&m->arena);
    crd_free(ctx, m);
    if (owns) { crd_context_destroy(ctx); }
}
