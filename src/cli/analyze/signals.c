// What the commands around signals share.
#include "cli/analyze/signals.h"

#include "cardan/system.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// ---- words -------------------------------------------------------------------------------------

static crd_status bad_latency(crd_context* ctx, const char* text)
{
    return crdi_fail(ctx, CRD_E_RANGE,
                     "--latency: '%s', expected macro steps (6), several of them (0,1,3 or 4..9, "
                     "the smaller one "
                     "first, up to %d), or a time (60 ms)",
                     text, CRD_LATENCY_MAX);
}

static bool parse_steps(const char* text, size_t length, int64_t* out)
{
    return crdi_parse_int64(text, length, out) && *out >= 0 && *out <= CRD_LATENCY_MAX;
}

// 1: a time in s; 0: no quantity with a unit; -1: another one
static int parse_time(const char* text, double* seconds)
{
    crd_dimension dim;
    bool bare;
    if (!crd_quantity_parse(text, seconds, &dim, &bare) || bare) { return 0; }
    return crd_dimension_equal(&dim, &(crd_dimension){.s = 1}) ? 1 : -1;
}

crd_status crdi_parse_latencies(crd_context* ctx, const char* text, double step,
                                int out[CRDI_LATENCIES_MAX], int* count)
{
    const char* dots = strstr(text, "..");
    int64_t first, last;
    double seconds;
    *count = 0;
    if (dots) {
        if (!parse_steps(text, (size_t)(dots - text), &first) ||
            !parse_steps(dots + 2, strlen(dots + 2), &last) || first > last) {
            return bad_latency(ctx, text);
        }
        for (int64_t k = first; k <= last; k++) {
            out[(*count)++] = (int)k;
        }
        return CRD_OK;
    }
    const int is_time = parse_time(text, &seconds);
    if (is_time) {
        out[0] = is_time > 0 ? crd_latency_steps(seconds, step) : -1;
        *count = 1;
        return out[0] < 0 ? bad_latency(ctx, text) : CRD_OK;
    }
    for (const char* at = text;; at += strcspn(at, ",") + 1) {
        const size_t length = strcspn(at, ",");
        if (!parse_steps(at, length, &last) || *count == CRDI_LATENCIES_MAX ||
            (*count > 0 && last <= out[*count - 1])) {
            return bad_latency(ctx, text);
        }
        out[(*count)++] = (int)last;
        if (!at[length]) { return CRD_OK; }
    }
}

crd_status crdi_parse_spread(crd_context* ctx, const char* text, crd_loop_options* o)
{
    int k[CRDI_LATENCIES_MAX], count = 0;
    if (!text || !strstr(text, "..")) { return crdi_parse_latency(ctx, text, o); }
    const crd_status st = crdi_parse_latencies(ctx, text, NAN, k, &count);
    if (st < 0) { return st; }
    o->spread.k_min = k[0];
    o->spread.k_max = o->latency_steps = k[count - 1];
    return CRD_OK;
}

crd_status crdi_parse_latency(crd_context* ctx, const char* text, crd_loop_options* o)
{
    int k[CRDI_LATENCIES_MAX], count = 0;
    double seconds;
    if (!text) { return CRD_OK; }
    if (parse_time(text, &seconds) > 0 && seconds >= 0) { // how many steps, the loop will say
        o->latency = seconds;
        return CRD_OK;
    }
    const crd_status st = crdi_parse_latencies(ctx, text, NAN, k, &count);
    if (st < 0) { return st; }
    if (count != 1) {
        return crdi_fail(ctx, CRD_E_RANGE, "--latency: '%s', expected one latency here", text);
    }
    o->latency_steps = k[0];
    return CRD_OK;
}

crd_status crdi_parse_part(crd_context* ctx, const char* option, const char* text, double* out)
{
    crd_dimension dim;
    bool bare = false;
    double x = 0;
    if (!text) { return CRD_OK; }
    if (!crd_quantity_parse(text, &x, &dim, &bare) ||
        !crd_dimension_equal(&dim, &(crd_dimension){.factor = 1}) || !(x >= 0 && x <= 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "--%s = '%s', expected a part such as 0.05 or '5 %%'",
                         option, text);
    }
    *out = x;
    return CRD_OK;
}

static bool frequency(const char* text, size_t length, const char* unit, double* out)
{
    double factor = 1;
    if (unit[0]) {
        if (strcmp(unit, "Hz") == 0) {
            factor = 2 * M_PI;
        } else if (strcmp(unit, "kHz") == 0) {
            factor = 2000 * M_PI;
        } else if (strcmp(unit, "rad/s") != 0) {
            return false;
        }
    }
    if (!crdi_parse_double(text, length, out)) { return false; }
    *out *= factor;
    return isfinite(*out);
}

crd_status crdi_parse_interval(crd_context* ctx, const char* option, const char* text,
                               crd_interval* out)
{
    const char* dots = strstr(text, "..");
    const char* second = dots ? dots + 2 : text;
    const size_t number = crdi_number_prefix(second);
    const char* unit = second + number;
    unit += strspn(unit, " ");
    bool good = frequency(second, number, unit, &out->hi);
    out->lo = out->hi / 100;
    if (good && dots) { good = frequency(text, (size_t)(dots - text), unit, &out->lo); }
    if (good && out->lo >= 0 && out->lo < out->hi) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "%s: '%s', expected two frequencies such as 0.1..10 rad/s or 0.02..2 Hz, the "
                     "lower one first",
                     option, text);
}

crd_signal crdi_signal_of(const crdi_recorded* r)
{
    return (crd_signal){.name = r->name, .y = r->y, .count = r->count, .step = r->step};
}

// ---- commands ----------------------------------------------------------------------------------

crd_status crdi_commands_load(crd_context* ctx, const char* path, const crdi_list* names,
                              const crdi_recorded_options* o, const crdi_recorded* signal,
                              crdi_recorded_commands* out)
{
    crd_status st = CRD_OK;
    if (names->count > CRD_COMMANDS_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "--command %d times, expected at most %d", names->count,
                         CRD_COMMANDS_MAX);
    }
    for (int i = 0; i < names->count; i++) {
        crdi_recorded_options one = *o;
        crdi_recorded* r = &out->all[i];
        one.signal = names->items[i];
        one.step = signal->step;
        CRD_TRY(crdi_recorded_load(ctx, path, &one, r));
        out->count++;
        if (strcmp(r->name, signal->name) == 0) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "--command %s is the signal itself, expected something that was sent "
                             "to where it comes from",
                             r->name);
        }
        if (r->count != signal->count || r->start != signal->start) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "%s: command '%s' is there from %g s on with %lld samples, expected "
                             "as many as of '%s' (%lld from %g s on)",
                             path, r->name, r->start, (long long)r->count, signal->name,
                             (long long)signal->count, signal->start);
        }
        for (int j = 0; j < i; j++) {
            if (strcmp(r->name, out->names[j]) == 0) {
                return crdi_fail(ctx, CRD_E_RANGE, "--command %s is there twice", r->name);
            }
        }
        out->y[i] = r->y;
        out->names[i] = r->name;
    }
fail:
    return st;
}

void crdi_commands_clear(crdi_recorded_commands* c)
{
    for (int i = 0; i < c->count; i++) {
        crdi_recorded_clear(&c->all[i]);
    }
}

crd_status crdi_commands_choose(crd_context* ctx, const crdi_recorded_commands* c, crd_element* e,
                                const double** out)
{
    crd_coupling_options* o = &e->options;
    const bool asks = o->algorithm == CRD_ALGORITHM_COMMANDS || o->algorithm == CRD_ALGORITHM_SMITH;
    if (asks && c->count == 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: expected --command with the name of a command for this algorithm",
                         e->label);
    }
    if (o->algorithm == CRD_ALGORITHM_SMITH && !e->command_names && c->count != 1) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: --command %d times, expected the output of the model alone, or an "
                         "element that names it, such as '{algorithm: smith, commands: [%s]}'",
                         e->label, c->count, c->names[c->count - 1]);
    }
    if (asks && !e->command_names && (o->commands == 0 || c->count == 1)) {
        o->commands = c->count;
        e->command_names = c->names;
    }
    for (int i = 0; i < o->commands; i++) {
        int j = e->command_names ? 0 : i;
        while (e->command_names && j < c->count && strcmp(c->names[j], e->command_names[i]) != 0) {
            j++;
        }
        if (j >= c->count) {
            return crdi_fail(ctx, CRD_E_NOT_FOUND, "%s: command %d%s%s%s, expected it as --command",
                             e->label, i + 1, e->command_names ? " is '" : " is not given",
                             e->command_names ? e->command_names[i] : "",
                             e->command_names ? "'" : "");
        }
        out[i] = c->y[j];
    }
    return CRD_OK;
}

static const char* command_note(crdi_result* row, const crd_coupling_commands* s, int a,
                                const char* const* names)
{
    enum { FEW = 5 };
    if (s->given > 0 && s->too_late == s->given) { return "never told in time"; }
    if (s->changes[a] == 0 && !(s->part[a] > 0)) { return "constant: says nothing"; }
    if (s->copy_of[a] >= 0) {
        return names ? crdi_worded(row, "moves in step with %s", names[s->copy_of[a]])
                     : crdi_worded(row, "moves in step with command %d", s->copy_of[a] + 1);
    }
    return s->changes[a] < FEW ? "few changes: hardly anything to learn from" : "";
}

const char* crdi_commands_trouble(crdi_result* out, const crd_coupling_commands* s)
{
    const char* text = "";
    if (s->not_finite > 0) {
        text =
            crdi_worded(out, "%" PRId64 " value%s of commands no number: the last good one stood",
                        s->not_finite, s->not_finite == 1 ? "" : "s");
    }
    if (s->too_late > 0) {
        text = crdi_worded(out, "%s%s%" PRId64 " told too late or too far ahead: left out", text,
                           *text ? "; " : "", s->too_late);
    }
    return text;
}

void crdi_commands_report(crdi_result* out, crdi_result* into, const crd_element* e,
                          const crd_coupling_commands* s)
{
    static const crdi_column columns[] = {{"command", "name", ""},
                                          {">accounts for", "part", ""},
                                          {">changes", "changes", ""},
                                          {"note", "note", ""},
                                          {0}};
    double known = 0;
    crdi_result* list = crdi_array(into, "commands");
    for (int a = 0; a < s->count; a++) {
        crdi_result* row = crdi_row(list);
        known += s->part[a];
        crdi_put(row,
                 TEXT("name", e->command_names ? e->command_names[a]
                                               : crdi_worded(row, "command %d", a + 1)),
                 AS(REAL("part", s->part[a]), crdi_worded(row, "%.1f %%", 100 * s->part[a])),
                 INT("changes", s->changes[a]),
                 CELL("note", command_note(row, s, a, e->command_names)));
    }
    crdi_say(out,
             "\nof the (squared) changes of the signal over its latency, commands account for %.1f "
             "%%; the last estimate believed them by %.0f %%\n\n",
             100 * fmin(1, known), known > 0 ? 100 * s->share : 0);
    crdi_show_table(out, list, columns, "");
    const char* trouble = crdi_commands_trouble(out, s);
    if (*trouble) { crdi_say(out, "\n%s\n", trouble); }
}

// ---- loops -------------------------------------------------------------------------------------

static crd_status load_element(void* user, const char* text, crd_element** out)
{
    return crdi_load_element(user, text, out);
}

// Is this a loop, or the description of a system?
static crd_status is_loop(crd_context* ctx, const char* path, const crd_text* json, bool* out)
{
    crd_arena arena;
    crdi_json* root = NULL;
    crd_arena_init(&arena, ctx);
    crd_status st =
        crdi_json_parse(&arena, json->data, json->length, (crdi_json_source){path, 1}, &root);
    *out = false;
    if (st >= 0 && root->kind != CRDI_JSON_OBJECT) {
        st =
            crdi_fail(ctx, CRD_E_FORMAT, "%s:1: expected a mapping that begins with loop: 1", path);
    }
    for (const crdi_json* m = st < 0 ? NULL : root->first; m; m = m->next) {
        *out = *out || strcmp(m->key, "loop") == 0;
    }
    crd_arena_clear(&arena);
    return st;
}

crd_status crdi_loop_read(crd_context* ctx, const char* path, const crd_loop_options* options,
                          double at, crd_loop_model* out)
{
    static const crdi_file_need need = {.what = "a loop", .most = 4 << 20, .pipes = true};
    crd_status st = CRD_OK;
    crd_loop_options o = *options;
    crd_text file, json;
    bool loop = false;
    crd_text_init(&file, ctx);
    crd_text_init(&json, ctx);
    o.load = load_element;
    o.load_user = ctx;
    if (crdi_ends_with(path, ".yaml") || crdi_ends_with(path, ".yml") ||
        crdi_ends_with(path, ".json")) {
        CRD_TRY(crdi_file_read(ctx, path, &need, &file));
        CRD_TRY(crd_yaml_to_json(ctx, file.data, file.length, (crd_place){path, 1}, &json));
        CRD_TRY(is_loop(ctx, path, &json, &loop));
    }
    CRD_TRY(loop ? crd_loop_parse(ctx, json.data, json.length, path, &o, out)
                 : crdi_loop_of_system(ctx, path, &o, at, out));
fail:
    crd_text_clear(&json);
    crd_text_clear(&file);
    return st;
}

crd_status crdi_loop_margins(crd_context* ctx, const char* path, const char* text, int k,
                             crd_margins* out)
{
    crd_status st = CRD_OK;
    crd_element* element = NULL;
    crd_loop_model m = {0};
    crd_loop_options o = crd_loop_defaults();
    CRD_TRY(crdi_load_element(ctx, text, &element));
    o.element = element;
    o.latency_steps = k;
    CRD_TRY(crdi_loop_read(ctx, path, &o, NAN, &m));
    st = crd_analysis_margins(&m, out);
    if (st < 0) { st = crdi_fail_in(ctx, st, "%s", path); }
fail:
    crd_loop_model_clear(&m);
    crd_element_destroy(element);
    return st;
}

void crdi_put_margins(crdi_result* row, const crd_margins* m)
{
    char delay[32];
    crdi_result* o = crdi_object_if(row, "margins", m->known);
    crdi_put(o, BOOL("stable", m->stable), REAL("phase_deg", m->phase), REAL("delay", m->delay),
             REAL("nearest", m->nearest));
    crdi_put(
        row,
        CELL("loop", !m->known   ? "not linear"
                     : m->stable ? "stable"
                                 : "UNSTABLE"),
        CELL("phase", !m->known || isnan(m->phase) ? "-" : crdi_worded(row, "%.4g deg", m->phase)),
        CELL("delay", m->known && isfinite(m->delay) ? crdi_format_seconds(delay, m->delay) : "-"),
        CELL("nearest", m->known ? crdi_worded(row, "%.4g", m->nearest) : "-"));
}

// "+1.2 %", "-" unless finite
const char* crdi_percent(crdi_result* row, double part)
{
    return isfinite(part) ? crdi_worded(row, "%s%.1f %%", part >= 0 ? "+" : "", 100 * part) : "-";
}

// ---- files -------------------------------------------------------------------------------------

crd_status crdi_check_output(crd_context* ctx, const char* output, const char* recording)
{
    return output && crdi_same_file(output, recording)
               ? crdi_fail(ctx, CRD_E_RANGE,
                           "%s: this would overwrite the recording, expected another file", output)
               : CRD_OK;
}

crd_status crdi_write_columns(crd_context* ctx, const char* path, const char* const* names,
                              const double* const* columns, int column_count, int rows)
{
    crd_text t;
    char number[32];
    crd_text_init(&t, ctx);
    for (int c = 0; c < column_count; c++) {
        const bool quote = strpbrk(names[c], ",\"\n") != NULL;
        crdi_text_add(&t, "%s%s%s%s", c ? "," : "", quote ? "\"" : "", names[c], quote ? "\"" : "");
    }
    crdi_text_put(&t, "\n", 1);
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < column_count; c++) {
            if (c) { crdi_text_put(&t, ",", 1); }
            crdi_text_put(&t, number, (size_t)crdi_format_double(number, columns[c][r]));
        }
        crdi_text_put(&t, "\n", 1);
    }
    const crd_status st = crdi_file_write(ctx, path, &t);
    crd_text_clear(&t);
    return st;
}
