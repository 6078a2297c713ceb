// cardan coupling compensate: what each coupling algorithm would have done to a recorded signal.
#include "cardan/results.h"
#include "cli/analyze/signals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct compensate_options {
    crdi_common common;
    const char *signal, *latency, *loss, *duplicate, *output, *plot;
    double step, jitter, from, to, command_delay;
    int burst, seed;
    crdi_list algorithms, commands;
} compensate_options;

enum { MOST = 64, DRAWN = 3 }; // candidates; estimates in a picture beside the hold

typedef struct candidate {
    crd_element* element;
    const char* label;
    crd_replay result;
    crd_metrics metrics;
    double* estimate; // (count), NULL unless somebody wants it
} candidate;

typedef struct compensation {
    crdi_cli* cli;
    const compensate_options* o;
    const char* path;
    crd_arena arena;
    crdi_recorded recorded;
    crdi_recorded_commands commands;
    crd_replay_options channel;
    candidate all[MOST];
    int count;
    candidate hold; // what the others are compared with
    double* time;   // (samples)
} compensation;

// ---- what is asked for -------------------------------------------------------------------------

// "6" macro steps or "57.5 ms".
static crd_status parse_latency(compensation* c)
{
    crd_context* ctx = c->cli->ctx;
    const char* text = c->o->latency;
    crd_dimension dim;
    bool bare = false;
    double x = 0;
    const char* expected = "a number of macro steps such as 6, or a time such as '57.5 ms'";
    if (!text) { return crdi_fail(ctx, CRD_E_RANGE, "expected --latency with %s", expected); }
    if (!crd_quantity_parse(text, &x, &dim, &bare) ||
        (!bare && !crd_dimension_equal(&dim, &(crd_dimension){.s = 1})) || !(x >= 0) ||
        (bare && floor(x) != x)) {
        return crdi_fail(ctx, CRD_E_RANGE, "--latency = '%s', expected %s", text, expected);
    }
    c->channel.delay = bare ? x * c->channel.step : x;
    const double most = (c->channel.delay + c->channel.jitter) / c->channel.step;
    if (!(most <= CRD_LATENCY_MAX)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--latency = '%s' is up to %g macro steps of %g s, expected at most %d",
                         text, most, c->channel.step, CRD_LATENCY_MAX);
    }
    if (c->channel.jitter > c->channel.delay) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--jitter = %g s is more than the latency of %g s, expected at most that",
                         c->channel.jitter, c->channel.delay);
    }
    return CRD_OK;
}

static crd_status compensate_read_channel(compensation* c)
{
    crd_status st = CRD_OK;
    const compensate_options* o = c->o;
    c->channel = crd_replay_defaults();
    c->channel.step = c->recorded.step;
    if (!isnan(o->jitter)) { c->channel.jitter = o->jitter; }
    CRD_TRY(parse_latency(c));
    CRD_TRY(crdi_parse_part(c->cli->ctx, "loss", o->loss, &c->channel.loss));
    CRD_TRY(crdi_parse_part(c->cli->ctx, "duplicate", o->duplicate, &c->channel.duplicate));
    if (o->burst == 0) {
        return crdi_fail(c->cli->ctx, CRD_E_RANGE, "--burst = 0, expected at least 1");
    }
    if (o->burst > 0) { c->channel.burst = o->burst; }
    if (o->seed >= 0) { c->channel.seed = (uint64_t)o->seed; }
    if (!isnan(o->command_delay)) { c->channel.command_delay = o->command_delay; }
fail:
    return st;
}

// A label that none before it has.
static const char* own_label(compensation* c, const char* label)
{
    const char* own = label;
    for (int i = 0, times = 1; i < c->count && own; i++) {
        if (strcmp(c->all[i].label, own) == 0) {
            own = crdi_arena_format(&c->arena, "%s (%d)", label, ++times);
            i = -1;
        }
    }
    return own;
}

static crd_status add_candidate(compensation* c, const char* text)
{
    const bool word = !strpbrk(text, "{/.");
    crd_context* ctx = c->cli->ctx;
    if (c->count == MOST) { return crdi_fail(ctx, CRD_E_RANGE, "more than %d algorithms", MOST); }
    candidate* a = &c->all[c->count];
    const crd_status st = crdi_load_element(ctx, text, &a->element);
    if (st < 0) { return st; }
    a->label = own_label(c, word ? text : a->element->label);
    c->count++; // from here on it is cleaned up
    if (!a->label) { return CRD_E_MEMORY; }
    if (!isnan(a->element->step) &&
        fabs(a->element->step - c->channel.step) > 1e-6 * c->channel.step) {
        crdi_log(ctx, CRD_LOG_WARNING,
                 "%s is made for a macro step of %g s and is tried with %g s; --step %g would be "
                 "its own",
                 a->label, a->element->step, c->channel.step, a->element->step);
    }
    const double longest = ceil((c->channel.delay + c->channel.jitter) / c->channel.step - 1e-6);
    if (a->element->options.k_max < longest) { // words have room for any latency
        if (word) {
            a->element->options.k_max = (int)longest;
        } else {
            crdi_log(ctx, CRD_LOG_WARNING,
                     "%s compensates up to %d macro steps (latency-max), the latency is %g",
                     a->label, a->element->options.k_max, longest);
        }
    }
    return CRD_OK;
}

// The methods, then what reacts to discontinuities: as published, and by re-basing.
static crd_status add_all(compensation* c)
{
    crd_status st = CRD_OK;
    for (const char* const* name = crd_element_algorithms(); *name; name++) {
        CRD_TRY(add_candidate(c, *name));
    }
    CRD_TRY(add_candidate(c, "foh+switch"));
    CRD_TRY(add_candidate(c, "eros+switch"));
    CRD_TRY(add_candidate(c, "wiener+rebase"));
    if (c->commands.count > 0) { CRD_TRY(add_candidate(c, "commands")); }
fail:
    return st;
}

// "eros,foh,{algorithm: wiener, taps: 25}": commas inside of brackets are of the element.
static crd_status add_list(compensation* c, const char* text)
{
    crd_status st = CRD_OK;
    int depth = 0;
    const char* start = text;
    for (const char* p = text;; p++) {
        depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
        if (*p && (*p != ',' || depth > 0)) { continue; }
        const char *from = start + strspn(start, " \t"), *to = p;
        while (to > from && (to[-1] == ' ' || to[-1] == '\t')) {
            to--;
        }
        const char* one = crdi_arena_text(&c->arena, from, (size_t)(to - from));
        CRD_TRY(one ? CRD_OK : CRD_E_MEMORY);
        if (!*one) {
            return crdi_fail(c->cli->ctx, CRD_E_RANGE,
                             "--algorithms = '%s', expected all, or a list such as "
                             "zoh,eros,torque.yaml",
                             text);
        }
        CRD_TRY(strcmp(one, "all") == 0 ? add_all(c) : add_candidate(c, one));
        if (!*p) { break; }
        start = p + 1;
    }
fail:
    return st;
}

static crd_status read_algorithms(compensation* c)
{
    crd_status st = CRD_OK;
    const crdi_list* list = &c->o->algorithms;
    for (int i = 0; i < list->count; i++) {
        CRD_TRY(add_list(c, list->items[i]));
    }
    if (list->count == 0) { CRD_TRY(add_all(c)); }
    CRD_TRY(crd_element_of_name(c->cli->ctx, "zoh", &c->hold.element));
    c->hold.label = "zoh";
fail:
    return st;
}

// ---- gaps --------------------------------------------------------------------------------------

// Where samples are missing: none of it silent, not all of it told.
static void tell_gaps(const compensation* c)
{
    enum { NAMED = 3 };
    const crdi_recorded* r = &c->recorded;
    char text[200] = "";
    size_t at = 0;
    int gaps = 0;
    for (int64_t n = 0; r->missing > 0 && n < r->count; n++) {
        if (!isnan(r->y[n])) { continue; }
        const int64_t first = n;
        while (n + 1 < r->count && isnan(r->y[n + 1])) {
            n++;
        }
        if (gaps++ < NAMED) {
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%g s to %g s", at ? ", " : "",
                                   r->start + (double)first * r->step,
                                   r->start + (double)n * r->step);
        }
    }
    if (gaps) {
        crdi_log(c->cli->ctx, CRD_LOG_WARNING,
                 "%s: '%s' has %d gap%s (%s%s): %lld sample%s count%s as never sent", c->path,
                 r->name, gaps, crdi_plural(gaps), text, gaps > NAMED ? ", ..." : "",
                 (long long)r->missing, crdi_plural(r->missing), r->missing == 1 ? "s" : "");
    }
}

// ---- trying ------------------------------------------------------------------------------------

static crd_status try_one(compensation* c, candidate* a)
{
    crd_context* ctx = c->cli->ctx;
    const crdi_recorded* r = &c->recorded;
    if (c->o->output || c->o->plot) {
        a->estimate = crdi_new_array(ctx, (size_t)r->count, sizeof *a->estimate);
        if (!a->estimate) { return CRD_E_MEMORY; }
    }
    const double* commands[CRD_COMMANDS_MAX] = {NULL};
    crd_status st = crdi_commands_choose(ctx, &c->commands, a->element, commands);
    if (st < 0) { return st; }
    c->channel.commands = commands;
    c->channel.command_count = a->element->options.commands;
    st = crd_coupling_replay(ctx, a->element, &c->channel, r->y, r->count, a->estimate, &a->result);
    c->channel.commands = NULL;
    if (st < 0) { // some messages name the element themselves
        const bool named = strncmp(crd_error_text(ctx), a->label, strlen(a->label)) == 0;
        return named ? st : crdi_fail_in(ctx, st, "%s", a->label);
    }
    a->metrics = crd_score_metrics(&a->result.score);
    return CRD_OK;
}

static int by_error(const void* a, const void* b)
{
    const double x = ((const candidate*)a)->metrics.C, y = ((const candidate*)b)->metrics.C;
    if (isnan(x) || isnan(y)) { return isnan(x) - isnan(y); }
    return x < y ? -1 : x > y;
}

static crd_status try_all(compensation* c)
{
    crd_status st = CRD_OK;
    CRD_TRY(try_one(c, &c->hold));
    for (int i = 0; i < c->count; i++) {
        crdi_progress(c->cli->ctx, "trying", i, c->count, "algorithms");
        CRD_TRY(try_one(c, &c->all[i]));
    }
    qsort(c->all, (size_t)c->count, sizeof *c->all, by_error);
fail:
    crdi_progress_end(c->cli->ctx);
    return st;
}

// ---- what comes out ----------------------------------------------------------------------------

static void say_head(const compensation* c, crdi_result* out)
{
    const crdi_recorded* r = &c->recorded;
    const crd_replay* z = &c->hold.result;
    char step[32], delay[32], jitter[32];
    crdi_say(out, "%s: %s%s%s%s, %lld samples, one each %s, latency %s", c->path, r->name,
             r->unit[0] ? " [" : "", r->unit, r->unit[0] ? "]" : "", (long long)r->count,
             crdi_format_seconds(step, r->step), crdi_format_seconds(delay, c->channel.delay));
    if (c->channel.jitter > 0) {
        crdi_say(out, " within %s", crdi_format_seconds(jitter, c->channel.jitter));
    }
    if (z->lost > 0) { crdi_say(out, ", %lld lost", (long long)z->lost); }
    if (z->k_mean == z->k_max) {
        crdi_say(out, " (%d steps)\n\n", z->k_max);
    } else {
        crdi_say(out, " (%.4g steps on average, %d at most)\n\n", z->k_mean, z->k_max);
    }
}

// A signal that is zero throughout has no relative error.
static void put_candidates(const compensation* c, crdi_result* out)
{
    static const crdi_column columns[] = {{"algorithm", "algorithm", ""},
                                          {">C [%]", "C", "%.4f"},
                                          {">M [%]", "M", "%.4f"},
                                          {">P [%]", "P", "%.4f"},
                                          {">against zoh", "change", ""},
                                          {">RMS", "rms", "%.4g"},
                                          {">worst", "worst", "%.4g"},
                                          {">overshoot", "overshoot", "%.4g"},
                                          {">% of range", "overshoot_percent", "%.1f"},
                                          {">jumps", "jumps", ""},
                                          {0}};
    say_head(c, out);
    crdi_result *list = crdi_whole_array(out), *its = NULL;
    const candidate* knows = NULL;
    for (int i = 0; i < c->count; i++) {
        const candidate* a = &c->all[i];
        const crd_replay* r = &a->result;
        const double change = a->metrics.C / c->hold.metrics.C - 1;
        crdi_result* row = crdi_row(list);
        crdi_put(row, TEXT("algorithm", a->label), REAL("C", 100 * a->metrics.C),
                 REAL("M", 100 * a->metrics.M), REAL("P", 100 * a->metrics.P),
                 AS(REAL("change", 100 * change), crdi_percent(row, change)),
                 REAL("rms", a->metrics.rms), REAL("worst", a->metrics.worst),
                 REAL("overshoot", r->overshoot),
                 REAL("overshoot_percent", 100 * r->overshoot / (r->high - r->low)),
                 INT("jumps", r->counts.jumps), INT("samples", r->score.count),
                 INT("lost", r->lost), REAL("latency_mean", r->k_mean),
                 INT("latency_max", r->k_max));
        if (!knows && r->commands.count > 0) { // the best of them stands for all
            knows = a;
            its = row;
        }
    }
    crdi_show_table(out, list, columns, "");
    if (knows) { crdi_commands_report(out, its, knows->element, &knows->result.commands); }
}

// Time, the signal, and an estimate of each algorithm.
static crd_status write_estimates(const compensation* c)
{
    crd_status st = CRD_OK;
    crd_context* ctx = c->cli->ctx;
    const crdi_recorded* r = &c->recorded;
    crd_recorder* out = NULL;
    crd_column columns[MOST + 1];
    crd_arena names;
    crd_arena_init(&names, ctx);
    for (int i = 0; i <= c->count; i++) {
        const char* name =
            i ? crdi_arena_format(&names, "%s.%s", r->name, c->all[i - 1].label) : r->name;
        CRD_TRY(name ? CRD_OK : CRD_E_MEMORY);
        columns[i] = (crd_column){.name = name,
                                  .unit = r->unit,
                                  .description = i ? "estimate" : "recorded signal",
                                  .type = CRD_FLOAT64};
    }
    const crd_recorder_options opt = {
        .path = c->o->output, .columns = columns, .column_count = c->count + 1};
    CRD_TRY(crd_recorder_create(ctx, &opt, &out));
    for (int64_t n = 0; n < r->count; n++) {
        crd_word* w = crd_recorder_begin(out);
        if (!w) { break; } // finish says why
        w[0].real = r->start + (double)n * r->step;
        w[crd_recorder_word(out, 0)].real = r->y[n];
        for (int i = 0; i < c->count; i++) {
            w[crd_recorder_word(out, i + 1)].real = c->all[i].estimate[n];
        }
        crd_recorder_end(out);
    }
    CRD_TRY(crd_recorder_finish(out));
fail:
    crd_recorder_destroy(out);
    crd_arena_clear(&names);
    return st;
}

// The signal, the hold and the best few: over all, and where the best of them is worst.
static crd_status draw_estimates(compensation* c)
{
    const crdi_recorded* r = &c->recorded;
    crd_plot_series lines[DRAWN + 2];
    c->time = crdi_new_array(c->cli->ctx, (size_t)r->count, sizeof *c->time);
    if (!c->time) { return CRD_E_MEMORY; }
    for (int64_t n = 0; n < r->count; n++) {
        c->time[n] = r->start + (double)n * r->step;
    }
    int count = 0;
    lines[count++] = (crd_plot_series){.label = r->name, .y = r->y};
    for (int i = 0; i < c->count && count < DRAWN + 1; i++) {
        if (strcmp(c->all[i].label, "zoh") == 0) { continue; }
        lines[count++] = (crd_plot_series){.label = c->all[i].label, .y = c->all[i].estimate};
    }
    lines[count++] = (crd_plot_series){.label = "zoh", .y = c->hold.estimate, .dashed = true};
    for (int i = 0; i < count; i++) {
        lines[i].x = c->time;
        lines[i].count = r->count;
    }
    const int64_t worst = c->all[0].result.worst_at, around = 4 * c->hold.result.k_max + 20;
    const int64_t first = worst > around ? worst - around : 0;
    const int64_t last = worst + around < r->count ? worst + around : r->count - 1;
    crd_plot_series near[DRAWN + 2];
    for (int i = 0; i < count; i++) {
        near[i] = lines[i];
        near[i].x += first;
        near[i].y += first;
        near[i].count = last - first + 1;
    }
    char title[120];
    snprintf(title, sizeof title, "around the largest error of %.60s", c->all[0].label);
    const crd_plot_panel panels[2] = {
        {.title = r->name, .y_label = r->unit, .series = lines, .series_count = count},
        {.title = title, .y_label = r->unit, .series = near, .series_count = count}};
    const crd_plot_scale scales[2] = {{0}, {.own_x = true, .x_label = "time [s]"}};
    const crd_plot_options opt = {.title = r->name, .x_label = "time [s]", .scales = scales};
    return crdi_picture_write(c->cli, c->o->plot, &opt, panels, 2);
}

// ---- the command -------------------------------------------------------------------------------

// What cannot be written is said before the work is done.
static crd_status compensate_check_outputs(const compensation* c)
{
    crd_context* ctx = c->cli->ctx;
    crd_status st = CRD_OK;
    CRD_TRY(crdi_check_output(ctx, c->o->output, c->path));
    CRD_TRY(crdi_check_output(ctx, c->o->plot, c->path));
    CRD_TRY(crdi_picture_check(c->cli, c->o->plot, &c->o->common));
    if (c->o->output) { CRD_TRY(crd_recorder_check_path(ctx, c->o->output)); }
fail:
    return st;
}

static void clear_candidate(crd_context* ctx, candidate* a)
{
    crd_element_destroy(a->element);
    crd_free(ctx, a->estimate);
}

static crd_status run_compensate(crdi_cli* cli, const void* options, const crdi_list* arguments,
                                 crdi_result* out)
{
    crd_status st = CRD_OK;
    compensation* c = crdi_new(cli->ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->cli = cli;
    c->o = options;
    c->path = arguments->items[0];
    crd_arena_init(&c->arena, cli->ctx);
    const crdi_recorded_options r = {c->o->signal, c->o->step, c->o->from, c->o->to};
    CRD_TRY(compensate_check_outputs(c));
    CRD_TRY(crdi_recorded_load(cli->ctx, c->path, &r, &c->recorded));
    CRD_TRY(crdi_commands_load(cli->ctx, c->path, &c->o->commands, &r, &c->recorded, &c->commands));
    CRD_TRY(compensate_read_channel(c));
    CRD_TRY(read_algorithms(c));
    tell_gaps(c);
    CRD_TRY(try_all(c));
    if (c->o->output) { CRD_TRY(write_estimates(c)); }
    if (c->o->plot) { CRD_TRY(draw_estimates(c)); }
    put_candidates(c, out);
fail:
    for (int i = 0; i < c->count; i++) {
        clear_candidate(cli->ctx, &c->all[i]);
    }
    clear_candidate(cli->ctx, &c->hold);
    crd_free(cli->ctx, c->time);
    crdi_recorded_clear(&c->recorded);
    crdi_commands_clear(&c->commands);
    crd_arena_clear(&c->arena);
    crd_free(cli->ctx, c);
    return st;
}

static const crdi_option rows[] = {
    CRDI_RECORDED_OPTIONS(compensate_options),
    OPT_TEXT(compensate_options, latency, "latency", "STEPS|TIME",
             "age of a sample when it arrives: macro steps (6) or a time ('57.5 ms')"),
    OPT_LIST(compensate_options, algorithms, "algorithms", "all|LIST",
             "what is tried, with commas between: algorithms (eros, "
             "eros+switch), element files, or {algorithm: wiener, taps: 25}; all unless given"),
    OPT_LIST(compensate_options, commands, "command", "NAME",
             "a signal of the recording that is a command to what the signal comes from (pedal, "
             "gear, set value); several times for several. What it acts on later is learned: see "
             "the algorithm commands"),
    OPT_TIME(compensate_options, command_delay, "command-delay", CRDI_NOT_NEGATIVE,
             "the commands were recorded when they were sent and act so much later; 0 unless "
             "given: recorded as they act"),
    OPT_TIME(compensate_options, jitter, "jitter", CRDI_NOT_NEGATIVE,
             "each latency lies evenly within latency - jitter and latency + jitter"),
    OPT_TEXT(compensate_options, loss, "loss", "PART",
             "part of the samples that never arrive: 0.05 or '5 %'"),
    OPT_INT(compensate_options, burst, "burst", "N",
            "samples that are lost in a row; 1 unless given"),
    OPT_TEXT(compensate_options, duplicate, "duplicate", "PART",
             "part of the samples that arrive twice"),
    OPT_INT(compensate_options, seed, "seed", "N",
            "of the random numbers for jitter and loss; 1 unless given"),
    OPT_FILE(compensate_options, output, "output", "csv|mf4|mat",
             "write the signal and all estimates", .short_name = 'o'),
    OPT_FILE(compensate_options, plot, "plot", CRDI_PICTURE_ENDINGS,
             "draw the signal and the best estimates, over all and around the largest "
             "error" CRDI_PICTURE_HELP),
    CRDI_JSON_OPTION("print a list of objects with algorithm, C, M, P and change (per cent), rms, "
                     "worst, overshoot, jumps"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_compensate = {
    .name = "coupling compensate",
    .arguments = "RECORDING",
    .summary = "what each algorithm would have done to a recorded signal",
    .description =
        "Hands a recorded signal to coupling elements as if it came late over a network, and "
        "compares what they make of it with what the signal was: magnitude error M, phase error P "
        "and both together, C, after Sprague and Geers; the root of the mean squared error; the "
        "largest error; and the overshoot, which is how far an estimate leaves the range that the "
        "signal itself has from the oldest sample in use (and 8 more) to 3 samples ahead. The best "
        "algorithm stands first. The name of a fixed algorithm (foh, eros, wiener) is the method "
        "as published; with +switch or +rebase behind it, it reacts to discontinuities, as ridge, "
        "rls and auto always do. Gaps of the recording count as samples that were never sent.",
    .examples =
        {{"cardan coupling compensate bench.mf4 --signal torque --latency 6",
          "all algorithms, six macro steps late"},
         {"cardan coupling compensate bench.csv --signal torque --step 10ms --latency '57.5 ms' "
          "--jitter 5ms --loss 5%",
          "over a network that jitters and loses samples"},
         {"cardan coupling compensate bench.csv --signal torque --command pedal --command gear "
          "--latency 6",
          "with what is known beside the signal: the commands"},
         {"cardan coupling compensate bench.csv --latency 6 --algorithms "
          "'zoh,eros,{algorithm: wiener, taps: 25},torque.yaml' --plot torque.svg",
          "some algorithms and an element file, with a picture"}},
    OPTIONS(rows, compensate_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "csv|mf4|mat",
    .run = run_compensate,
};
