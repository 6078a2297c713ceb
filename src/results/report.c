// The report from outside to inside: open what belongs to the runs, read every recording once,
// group the signals into plots, write the file beside its place and put it there.
#include "results/report.h"
#include "shared/base_path.h"
#include "shared/base_units.h"
#include "shared/results.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_POINTS = 4000,   // of a line, unless given
    LEAST_POINTS = 200,   // however many lines there are
    ALL_POINTS = 1000000, // about so many in the whole file: 13 to 17 MB of it
};

// ---- opening -----------------------------------------------------------------------------------

// What cannot be read is told and left out.
static crd_status parse_json(crdi_report* r, const char* file, const char* name, const char* text,
                             size_t length, const crdi_json** out)
{
    crdi_json* root = NULL;
    const crd_status st = crdi_json_parse_most(&r->arena, text, length, CRDI_JSON_RUN_BYTES,
                                               (crdi_json_source){0}, &root);
    if (st == CRD_E_MEMORY) { return st; }
    if (st == CRD_OK && root->kind == CRDI_JSON_OBJECT) {
        *out = root;
    } else {
        crdi_log(r->ctx, CRD_LOG_WARNING, "%s: %s in it is not readable: %s", file, name,
                 st == CRD_OK ? "not an object" : crd_error_text(r->ctx));
    }
    return CRD_OK;
}

// From the caller, else out of the file.
static crd_status load_json(crdi_report* r, const crdi_report_part* p, const char* given,
                            const char* name, const crdi_json** out)
{
    if (given) { return parse_json(r, p->info->path, name, given, strlen(given), out); }
    for (int i = 0; i < p->info->attachment_count; i++) {
        const crd_attachment_info* a = &p->info->attachments[i];
        if (strcmp(a->name, name) != 0 || a->size > CRDI_JSON_RUN_BYTES) { continue; }
        char* data = NULL;
        size_t length = 0;
        crd_status st = crd_recording_attachment(p->run->recording, i, &data, &length);
        if (st < 0) { return st; }
        st = parse_json(r, p->info->path, name, data, length, out);
        crd_free(r->ctx, data);
        return st;
    }
    return CRD_OK;
}

bool crdi_report_adds_up(const crdi_json* verdict)
{
    const double defect = crdi_json_get_number(verdict, "worst_defect");
    return *crdi_json_get_text(verdict, "error_note") && defect >= 0.1 * CRDI_MUCH_ERROR &&
           crdi_json_get_number(crdi_json_get_object(verdict, "guard"), "loops") > 0;
}

// A tenth of a signal or of the energy is missing, or is error by the estimate, a defect is not a
// number, or steps were left that do not fit.
static bool is_poor(const crdi_json* verdict)
{
    const double limit = CRDI_MUCH_ERROR;
    const double defect = crdi_json_get_number(verdict, "worst_defect");
    const bool known = crdi_json_count(crdi_json_get_list(verdict, "flows")) > 0 || !isnan(defect);
    return (known && !(defect < limit)) || crdi_report_adds_up(verdict) ||
           crdi_json_get_number(verdict, "worst_energy") >= limit ||
           crdi_json_get_number(verdict, "worst_error") >= limit ||
           strcmp(crdi_json_get_text(verdict, "trust"), "doubtful") == 0 ||
           crdi_json_get_number(crdi_json_get_object(verdict, "iteration"), "failed") > 0;
}

bool crdi_report_knows_nothing(const crdi_json* verdict)
{
    return crdi_json_get_number(crdi_json_get_object(verdict, "guard"), "loops") > 0 &&
           crdi_json_count(crdi_json_get_list(verdict, "flows")) == 0 &&
           crdi_json_count(crdi_json_get_list(verdict, "couplings")) == 0;
}

static crdi_state judge_run(const crdi_report_part* p)
{
    if (p->run->reference) { return CRDI_GOOD; }
    if (!p->verdict) { return p->info->unfinished ? CRDI_DOUBTFUL : CRDI_UNKNOWN; }
    const char* end = crdi_json_get_text(p->verdict, "end");
    const crdi_json* watch = crdi_json_get_object(p->verdict, "guard");
    const char* guard = crdi_json_get_text(watch, "state");
    if (strcmp(end, "failed") == 0 || strcmp(end, "guard") == 0 || strcmp(guard, "diverged") == 0 ||
        strcmp(guard, "limit") == 0 ||
        strcmp(crdi_json_get_text(p->verdict, "trust"), "spoilt") == 0) {
        return CRDI_BAD;
    }
    bool doubtful = strcmp(end, "stop time") != 0 && strcmp(end, "unit") != 0;
    doubtful = doubtful || crdi_json_get_number(p->verdict, "warnings") > 0;
    doubtful = doubtful || is_poor(p->verdict);
    doubtful = doubtful || strcmp(guard, "undecided") == 0 || strcmp(guard, "warned") == 0 ||
               strcmp(guard, "flagged") == 0;
    doubtful = doubtful || crdi_json_get_number(crdi_report_paced(p->verdict), "overrun_count") > 0;
    for (const crdi_json* loop = crdi_json_first(crdi_json_get_list(p->verdict, "loops")); loop;
         loop = loop->next) {
        doubtful = doubtful || !crdi_json_get_bool(loop, "converged", true);
    }
    for (int k = 0; k < p->info->event_count; k++) {
        const crd_event_kind kind = p->info->events[k].kind;
        if (kind == CRD_EVENT_ERROR) { return CRDI_BAD; }
        doubtful = doubtful || kind == CRD_EVENT_WARNING || kind == CRD_EVENT_OVERRUN;
    }
    const bool blind = strcmp(guard, "off") == 0 && crdi_json_get_number(watch, "loops") > 0;
    return doubtful                                         ? CRDI_DOUBTFUL
           : blind || crdi_report_knows_nothing(p->verdict) ? CRDI_UNKNOWN
                                                            : CRDI_GOOD;
}

static crd_status make_label(crdi_report* r, int i)
{
    crdi_report_part* p = &r->parts[i];
    p->label = p->run->label;
    if (!p->label || !*p->label) { p->label = p->info->path + crdi_folder_length(p->info->path); }
    for (int k = 0; k < i; k++) {
        if (strcmp(r->parts[k].label, p->label) != 0) { continue; }
        p->label = crdi_arena_format(&r->arena, "%s (%d)", p->label, i + 1);
        break;
    }
    return p->label ? CRD_OK : CRD_E_MEMORY;
}

static crd_status open_parts(crdi_report* r, const crd_report_run* runs, int count)
{
    crd_status st = CRD_OK;
    r->parts = crdi_arena_new(&r->arena, (size_t)count, sizeof *r->parts);
    if (!r->parts) { return CRD_E_MEMORY; }
    r->part_count = count;
    for (int i = 0; i < count; i++) {
        crdi_report_part* p = &r->parts[i];
        p->run = &runs[i];
        p->info = crd_recording_describe(runs[i].recording);
        p->groups = crdi_arena_new(&r->arena, (size_t)p->info->group_count, sizeof *p->groups);
        if (!p->groups) { return CRD_E_MEMORY; }
        CRD_TRY(make_label(r, i));
        CRD_TRY(load_json(r, p, runs[i].what, CRD_ATTACHMENT_RUN, &p->what));
        CRD_TRY(load_json(r, p, runs[i].verdict, CRD_ATTACHMENT_VERDICT, &p->verdict));
        p->state = judge_run(p);
    }
fail:
    return st;
}

static crd_status choose_title(crdi_report* r)
{
    r->title = r->options->title;
    for (int i = 0; i < r->part_count && (!r->title || !*r->title); i++) {
        r->title = crdi_json_get_text(crdi_json_get_object(r->parts[i].what, "system"), "title");
    }
    if (r->title && *r->title) { return CRD_OK; }
    const char* name = r->parts[0].label;
    const char* dot = strrchr(name, '.');
    const size_t length = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    r->title = crdi_arena_text(&r->arena, name, length);
    return r->title ? CRD_OK : CRD_E_MEMORY;
}

// ---- signals -----------------------------------------------------------------------------------

static crdi_kind signal_kind(const crd_signal_info* s)
{
    switch (s->type) {
    case CRD_BOOLEAN:
        return CRDI_KIND_BOOLEAN;
    case CRD_STRING:
    case CRD_BINARY:
        return CRDI_KIND_TEXT;
    case CRD_FLOAT32:
    case CRD_FLOAT64:
        return s->label_count ? CRDI_KIND_ENUMERATION : CRDI_KIND_REAL;
    default:
        return s->label_count ? CRDI_KIND_ENUMERATION : CRDI_KIND_INTEGER;
    }
}

static bool wanted(const crdi_report* r, const char* name)
{
    for (int i = 0; i < r->options->pattern_count; i++) {
        if (crdi_glob(r->options->patterns[i], name)) { return true; }
    }
    return r->options->pattern_count == 0;
}

// Whether two runs call values the same; numbers alone go with any.
static bool same_words(const crd_signal_info* a, const crd_signal_info* b)
{
    bool same = a->label_count == b->label_count;
    for (int i = 0; same && i < a->label_count; i++) {
        same = a->labels[i].value == b->labels[i].value &&
               strcmp(a->labels[i].text, b->labels[i].text) == 0;
    }
    return same || !a->label_count || !b->label_count;
}

// Whether a signal of a part is drawn over what has its name: not if the part has one there
// already, and not if units of measure or names of values do not go together.
static bool joins(const crdi_report* r, int at, int part, const crd_signal_info* s,
                  crdi_report_line* line)
{
    return at < 0 ||
           (!r->signals[at].lines[part].there && same_words(s, r->signals[at].info) &&
            crdi_unit_convert(s->unit, r->signals[at].info->unit, &line->factor, &line->offset));
}

// The signal `s` of a part gets its place among the report's signals, -1: none.
static crd_status place_signal(crdi_report* r, crd_map* names, int part, const crd_signal_info* s,
                               const char* called, int* out)
{
    const crdi_report_part* p = &r->parts[part];
    crdi_report_line line = {.there = true, .group = s->group, .factor = 1};
    *out = -1;
    if (!wanted(r, called)) { return CRD_OK; }
    const char* name = called;
    int at = crdi_map_find(names, name);
    for (int twin = 1; !joins(r, at, part, s, &line); twin++) {
        const bool unit = twin == 1 && *s->unit && !r->signals[at].lines[part].there;
        name = unit ? crdi_arena_format(&r->arena, "%s [%s]", called, s->unit)
                    : crdi_arena_format(&r->arena, "%s (%d)", called, twin + 1);
        if (!name) { return CRD_E_MEMORY; }
        at = crdi_map_find(names, name);
    }
    if (at < 0) {
        if (p->run->reference) {
            r->left_out++;
            return CRD_OK;
        }
        at = r->signal_count++;
        crdi_report_line* lines = crdi_arena_new(&r->arena, (size_t)r->part_count, sizeof *lines);
        if (!lines) { return CRD_E_MEMORY; }
        r->signals[at] = (crdi_report_signal){.info = s,
                                              .name = name,
                                              .owner = "",
                                              .member = name,
                                              .kind = signal_kind(s),
                                              .lines = lines};
        const crd_status st = crdi_map_add(names, name, at, NULL);
        if (st < 0) { return st; }
    }
    const crdi_kind kind = r->signals[at].kind;
    if ((kind == CRDI_KIND_TEXT) != (signal_kind(s) == CRDI_KIND_TEXT)) { return CRD_OK; }
    r->signals[at].lines[part] = line;
    *out = at;
    return CRD_OK;
}

static crd_status check_patterns(const crdi_report* r)
{
    for (int i = 0; i < r->options->pattern_count; i++) {
        const char* pattern = r->options->patterns[i];
        bool fits = false;
        for (int k = 0; k < r->signal_count && !fits; k++) {
            fits = crdi_glob(pattern, r->signals[k].name);
        }
        if (!fits) {
            return crdi_fail(r->ctx, CRD_E_NOT_FOUND, "no signal of %s fits '%s'",
                             r->parts[0].info->path, pattern);
        }
    }
    return CRD_OK;
}

// `targets` is per part: for each of its signals the place among the report's.
static crd_status place_signals(crdi_report* r, int** targets)
{
    crd_status st = CRD_OK;
    size_t total = 0;
    crd_map names;
    crdi_map_init(&names, r->ctx);
    for (int i = 0; i < r->part_count; i++) {
        total += (size_t)r->parts[i].info->signal_count;
    }
    r->signals = crdi_arena_new(&r->arena, total, sizeof *r->signals);
    if (!r->signals) { return CRD_E_MEMORY; }
    for (int reference = 0; reference < 2; reference++) { // references last
        for (int i = 0; i < r->part_count; i++) {
            const crdi_report_part* p = &r->parts[i];
            if (p->run->reference != (reference == 1)) { continue; }
            targets[i] = crdi_arena_new(&r->arena, (size_t)p->info->signal_count, sizeof(int));
            if (!targets[i]) {
                st = CRD_E_MEMORY;
                goto fail;
            }
            const char** called =
                crdi_arena_new(&r->arena, (size_t)p->info->signal_count + 1, sizeof *called);
            CRD_TRY(called ? crdi_signal_names(&r->arena, p->info, called) : CRD_E_MEMORY);
            for (int k = 0; k < p->info->signal_count; k++) {
                CRD_TRY(
                    place_signal(r, &names, i, &p->info->signals[k], called[k], &targets[i][k]));
            }
        }
    }
    CRD_TRY(check_patterns(r));
fail:
    crdi_map_clear(&names);
    return st;
}

// ---- reading -----------------------------------------------------------------------------------

static void note_times(crdi_report_group* g, const double* time, int64_t rows)
{
    int64_t i = 0;
    if (g->rows == 0) {
        g->t0 = time[0];
        g->regular = true;
        i = 1;
    }
    for (; i < rows && g->regular; i++) {
        const int64_t k = g->rows + i;
        if (k == 1) { g->dt = time[i] - g->t0; }
        g->regular = g->dt > 0 && k < UINT32_MAX &&
                     fabs(time[i] - (g->t0 + (double)k * g->dt)) <= 1e-6 * g->dt;
    }
    g->rows += rows;
    g->last = time[rows - 1];
}

// Bytes of a text that are kept: all, or as many as make whole characters.
static size_t kept_length(const char* text)
{
    size_t length = strnlen(text, CRDI_MOST_TEXT + 1);
    if (length <= CRDI_MOST_TEXT) { return length; }
    do {
        length--;
    } while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80);
    return length;
}

static crd_status note_texts(crdi_report* r, crdi_report_line* line, const double* time,
                             const char* const* texts, int64_t rows)
{
    line->trace.samples += rows;
    for (int64_t i = 0; i < rows; i++) {
        const char* text = texts[i] ? texts[i] : "";
        const size_t length = kept_length(text);
        if (line->change_count && strncmp(line->latest, text, length) == 0 &&
            !line->latest[length]) {
            continue;
        }
        memcpy(line->latest, text, length);
        line->latest[length] = 0;
        const int64_t n = line->change_count++;
        if (n >= CRDI_MOST_CHANGES) { continue; }
        char* copy = crdi_arena_text(&r->arena, text, length);
        if (!copy) { return CRD_E_MEMORY; }
        line->changes[n] = (crdi_text_change){time[i], copy};
    }
    return CRD_OK;
}

static crd_status prepare_line(crdi_report* r, const crdi_report_part* p, int part, int signal)
{
    crdi_report_signal* s = &r->signals[signal];
    crdi_report_line* line = &s->lines[part];
    if (s->kind == CRDI_KIND_TEXT) {
        line->changes = crdi_arena_new(&r->arena, CRDI_MOST_CHANGES, sizeof *line->changes);
        line->latest = crdi_arena_new(&r->arena, CRDI_MOST_TEXT + 1, 1);
        return line->changes && line->latest ? CRD_OK : CRD_E_MEMORY;
    }
    const int64_t rows = p->info->groups[line->group].rows;
    const crd_status st = crdi_trace_init(&line->trace, &r->arena, rows, r->points);
    const int64_t most = crdi_trace_most(&line->trace);
    if (most > r->scratch_most) { r->scratch_most = most; }
    return st;
}

// Into the unit of measure of the first run that has the signal.
static crd_status convert_block(crdi_report* r, const crdi_report_line* line, int64_t rows,
                                const double** values)
{
    double* own =
        crdi_grow(r->ctx, r->converted, &r->converted_rows, (size_t)rows, sizeof *r->converted);
    if (!own) { return CRD_E_MEMORY; }
    for (int64_t i = 0; i < rows; i++) {
        own[i] = line->factor * (*values)[i] + line->offset;
    }
    r->converted = own;
    *values = own;
    return CRD_OK;
}

static crd_status take_block(crdi_report* r, int part, const crd_block* b, const int* targets,
                             const int* chosen, int count)
{
    for (int k = 0; k < count; k++) {
        crdi_report_signal* s = &r->signals[targets[chosen[k]]];
        crdi_report_line* line = &s->lines[part];
        const char* const* texts = b->texts ? b->texts[k] : NULL;
        if (s->kind != CRDI_KIND_TEXT) {
            crd_status st = CRD_OK;
            const double* values = b->values[k];
            if (line->factor != 1 || line->offset != 0) {
                st = convert_block(r, line, b->rows, &values);
                if (st < 0) { return st; }
            }
            crdi_trace_add(&line->trace, b->time, values, b->rows);
        } else if (texts) {
            const crd_status st = note_texts(r, line, b->time, texts, b->rows);
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}

static crd_status results_report_read_group(crdi_report* r, int part, int group, const int* targets)
{
    crdi_report_part* p = &r->parts[part];
    const crd_group_info* g = &p->info->groups[group];
    crd_status st = CRD_OK;
    crd_cursor* cursor = NULL;
    int count = 0;
    int* chosen = crdi_new_array(r->ctx, (size_t)g->signal_count, sizeof *chosen);
    if (!chosen) { return CRD_E_MEMORY; }
    for (int k = g->first_signal; k < g->first_signal + g->signal_count; k++) {
        if (targets[k] < 0) { continue; }
        CRD_TRY(prepare_line(r, p, part, targets[k]));
        chosen[count++] = k;
    }
    if (count) {
        CRD_TRY(crd_cursor_open(p->run->recording, group, chosen, count, &cursor));
        for (crd_block b;;) {
            CRD_TRY(crd_cursor_next(cursor, &b));
            if (b.rows == 0) { break; }
            note_times(&p->groups[group], b.time, b.rows);
            CRD_TRY(take_block(r, part, &b, targets, chosen, count));
        }
    }
fail:
    crd_cursor_close(cursor);
    crd_free(r->ctx, chosen);
    return st;
}

static int points_per_line(const crdi_report* r)
{
    if (r->options->points > 0) { return r->options->points; }
    const int64_t lines = (int64_t)r->signal_count * r->part_count;
    const int64_t share = lines > 0 ? ALL_POINTS / lines : MOST_POINTS;
    return share > MOST_POINTS ? MOST_POINTS : share < LEAST_POINTS ? LEAST_POINTS : (int)share;
}

static crd_status results_report_read_all(crdi_report* r)
{
    crd_status st = CRD_OK;
    int** targets = crdi_arena_new(&r->arena, (size_t)r->part_count, sizeof *targets);
    if (!targets) { return CRD_E_MEMORY; }
    CRD_TRY(place_signals(r, targets));
    r->points = points_per_line(r);
    r->start = (double)NAN;
    r->stop = (double)NAN;
    for (int i = 0; i < r->part_count; i++) {
        for (int g = 0; g < r->parts[i].info->group_count; g++) {
            CRD_TRY(results_report_read_group(r, i, g, targets[i]));
            const crdi_report_group* group = &r->parts[i].groups[g];
            if (group->rows == 0) { continue; }
            r->start = fmin(r->start, group->t0); // fmin prefers the number to NaN
            r->stop = fmax(r->stop, group->last);
        }
    }
    r->scratch = crdi_arena_new(&r->arena, (size_t)r->scratch_most, sizeof *r->scratch);
    if (!r->scratch) { st = CRD_E_MEMORY; }
fail:
    return st;
}

// ---- the file ----------------------------------------------------------------------------------

static crd_status results_report_check_place(const crdi_report* r)
{
    struct stat out, in;
    if (stat(r->path, &out) != 0) { return CRD_OK; }
    for (int i = 0; i < r->part_count; i++) {
        if (stat(r->parts[i].info->path, &in) == 0 && in.st_dev == out.st_dev &&
            in.st_ino == out.st_ino) {
            return crdi_fail(r->ctx, CRD_E_RANGE,
                             "%s: the report would overwrite a result; choose another file",
                             r->path);
        }
    }
    return CRD_OK;
}

typedef crd_status put_document(crdi_doc* d, void* user);

// Complete or not at all: written beside its place, then renamed. What is not a file (a pipe, a
// terminal) is written to as it is.
static crd_status write_document(crd_context* ctx, const char* path, crd_report_format format,
                                 put_document* put, void* user)
{
    crd_status st = CRD_OK;
    struct stat info;
    const bool standard = strcmp(path, "-") == 0;
    const bool direct = standard || (stat(path, &info) == 0 && !S_ISREG(info.st_mode));
    char* part =
        direct ? crdi_strdup(ctx, path) : crdi_format(ctx, "%s.%ld.part", path, (long)getpid());
    if (!part) { return CRD_E_MEMORY; }
    const int flags = direct ? O_WRONLY : O_WRONLY | O_CREAT | O_TRUNC;
    crdi_doc d = {.ctx = ctx, .path = path, .html = format == CRD_REPORT_HTML};
    crd_text_init(&d.text, ctx);
    d.fd =
        standard ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : open(part, flags | O_CLOEXEC, 0666);
    if (d.fd < 0) {
        st = crdi_fail(ctx, CRD_E_IO, "%s: cannot write the report: %s", path, strerror(errno));
        goto done;
    }
    st = put(&d, user);
    crdi_doc_flush(&d);
    if (st == CRD_OK) { st = d.st; }
    if ((close(d.fd) != 0 || (st == CRD_OK && !direct && rename(part, path) != 0)) &&
        st == CRD_OK) {
        st = crdi_fail(ctx, CRD_E_IO, "%s: cannot write the report: %s", path, strerror(errno));
    }
    if (st < 0 && !direct) { unlink(part); }
done:
    crd_text_clear(&d.text);
    crd_free(ctx, part);
    return st;
}

static crd_status put_report(crdi_doc* d, void* user)
{
    return d->html ? crdi_report_html(user, d) : crdi_report_markdown(user, d);
}

static crd_status put_page(crdi_doc* d, void* user)
{
    const crdi_page* p = user;
    const crdi_state state = p->good ? CRDI_GOOD : CRDI_BAD;
    if (d->html) {
        crdi_report_html_head(d, p->title, state);
    } else {
        crdi_doc_heading(d, 1, "", p->title);
    }
    crdi_doc_verdict(d, state);
    crdi_doc_text(d, p->verdict);
    crdi_doc_verdict_end(d);
    crdi_doc_put(d, d->html ? "</header>\n<main>\n" : "");
    p->put(d, p->user);
    crdi_doc_put(d, d->html ? "</main>\n<footer>" : "");
    crdi_doc_paragraph(d, "Made by Cardan " CRD_VERSION ".");
    crdi_doc_put(d, d->html ? "</footer>\n</body>\n</html>\n" : "");
    return CRD_OK;
}

crd_status crdi_page_write(crd_context* ctx, const crdi_page* page)
{
    crdi_page p = *page;
    return write_document(ctx, p.path, p.format, put_page, &p);
}

crd_status crd_report_write(crd_context* ctx, const char* path, const crd_report_run* runs,
                            int run_count, const crd_report_options* opt)
{
    if (run_count < 1) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: a report needs at least one result", path);
    }
    crd_status st = CRD_OK;
    crdi_report r = {.ctx = ctx, .path = path, .options = opt};
    crd_arena_init(&r.arena, ctx);
    CRD_TRY(open_parts(&r, runs, run_count));
    CRD_TRY(results_report_check_place(&r));
    CRD_TRY(choose_title(&r));
    CRD_TRY(results_report_read_all(&r));
    CRD_TRY(crdi_report_group_signals(&r));
    CRD_TRY(write_document(ctx, path, opt->format, put_report, &r));
fail:
    crd_free(ctx, r.converted);
    crd_arena_clear(&r.arena);
    return st;
}
