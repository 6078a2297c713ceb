// cardan study report: one HTML file that says what was asked, what ran and what came of it.
#include "cli/study/pictures.h"
#include "shared/results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct report_options {
    crdi_common common;
    const char *database, *output;
} report_options;

typedef struct report {
    crdi_cli* cli;
    crdi_study* study;
    const crdi_study_file* f;
    crdi_study_counts counts;
    crdi_pictures pictures;
    const crdi_json* answers; // as `study show --json` has them
    crd_text svg;
} report;

static void put_design(crdi_doc* d, const crdi_study_file* f)
{
    static const char* const laws[] = {"list",   "uniform",   "loguniform",
                                       "normal", "lognormal", "triangular"};
    crdi_doc_table(d, "What varies", "llrl", "factor|as|values|from, to");
    for (int i = 0; i < f->factor_count; i++) {
        const crdi_study_factor* v = &f->factors[i];
        crdi_doc_cell(d, "%s", v->name);
        crdi_doc_cell(d, "%s", laws[v->law]);
        if (v->law == CRDI_LAW_LIST) {
            crdi_doc_cell(d, "%d", v->count);
            crdi_doc_cell(d, "%s ... %s", v->texts[0], v->texts[v->count - 1]);
        } else {
            crdi_doc_cell(d, "%d", f->count);
            if (v->law == CRDI_LAW_TRIANGULAR) {
                crdi_doc_cell(d, "%g, %g, %g %s", v->a, v->b, v->c, v->unit);
            } else {
                crdi_doc_cell(d, "%g, %g %s", v->a, v->b, v->unit);
            }
        }
    }
    crdi_doc_table_end(d);
    crdi_doc_table(d, "What is kept", "ll", "name|of a run");
    for (int i = 0; i < f->kept_count; i++) {
        crdi_doc_cell(d, "%s", f->kept[i].name);
        crdi_doc_cell(d, "%s", f->kept[i].text);
    }
    crdi_doc_table_end(d);
}

static void put_number(crdi_doc* d, const crdi_json* row, const char* key)
{
    const double x = crdi_json_get_number(row, key);
    if (isnan(x)) {
        crdi_doc_cell(d, "-");
    } else {
        crdi_doc_cell(d, "%.5g", x);
    }
}

// A list of objects as a table of these members.
static void put_list(crdi_doc* d, const crdi_json* list, const char* caption, const char* align,
                     const char* titles, const char* const* keys)
{
    if (crdi_json_count(list) == 0) { return; }
    crdi_doc_table(d, caption, align, titles);
    for (const crdi_json* row = crdi_json_first(list); row; row = row->next) {
        for (int i = 0; keys[i]; i++) {
            if (align[i] == 'l') {
                crdi_doc_cell(d, "%s", crdi_json_get_text(row, keys[i]));
            } else {
                put_number(d, row, keys[i]);
            }
        }
    }
    crdi_doc_table_end(d);
}

static void put_report(crdi_doc* d, const void* user)
{
    static const char* const statistics[] = {"name",      "count",     "mean", "mean_low",
                                             "mean_high", "deviation", "min",  "q5",
                                             "median",    "q95",       "max",  NULL};
    static const char* const sobol[] = {"kept",      "factor",     "first",
                                        "first_low", "first_high", "total",
                                        "total_low", "total_high", NULL};
    static const char* const morris[] = {"kept",       "factor", "total", "total_low",
                                         "total_high", "first",  "sigma", NULL};
    const report* r = user;
    crdi_doc_heading(d, 2, "what", "What was asked");
    crdi_doc_paragraph(d, "System %s. File %s.", r->f->system, crdi_study_database(r->study));
    put_design(d, r->f);
    for (int i = 0; i < r->f->limit_count; i++) {
        crdi_doc_paragraph(d, "Limit: %s", r->f->limits[i].text);
    }
    crdi_doc_heading(d, 2, "runs", "What ran");
    crdi_doc_table(d, "Runs", "lr", "ended|runs");
    for (int i = 0; i < CRDI_RUN_STATES; i++) {
        if (!r->counts.by_state[i]) { continue; }
        crdi_doc_cell(d, "%s", crdi_run_states[i]);
        crdi_doc_cell(d, "%lld", (long long)r->counts.by_state[i]);
    }
    crdi_doc_table_end(d);
    crdi_doc_heading(d, 2, "answers", "What came of it");
    put_list(d, crdi_json_get_list(r->answers, "statistics"),
             "All runs that ended by themselves; the mean with its interval of 95 %", "lrrrrrrrrrr",
             "number|n|mean|from|to|sd|min|5 %|median|95 %|max", statistics);
    put_list(d, crdi_json_get_list(r->answers, "sobol"), "Indices of Sobol with intervals of 95 %",
             "llrrrrrr", "number|factor|first order|from|to|total|from|to", sobol);
    put_list(d, crdi_json_get_list(r->answers, "morris"), "Screening by Morris", "llrrrrr",
             "number|factor|mu*|from|to|mu|sigma", morris);
    crdi_doc_drawing(d, "Pictures of the runs", &r->svg);
}

static crd_status draw(report* r)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < r->f->kept_count && r->f->factor_count > 1 && st >= 0 && i < 4; i++) {
        st = crdi_picture_tornado(&r->pictures, r->f->kept[i].name);
        if (st == CRD_E_RANGE) { st = CRD_OK; } // words alone vary
    }
    CRD_TRY(st);
    CRD_TRY(crdi_pictures_scatters(&r->pictures));
    CRD_TRY(crdi_pictures_usual(&r->pictures));
    CRD_TRY(crdi_pictures_svg(&r->pictures, &r->svg));
fail:
    return st;
}

static crd_status ask_answers(report* r, crd_arena* arena, crd_text* text)
{
    crdi_root root;
    crdi_json* tree = NULL;
    crdi_result_init(&root, r->cli->ctx, true);
    crd_status st = crdi_study_put_answers(r->cli, r->study, NULL, &root.result);
    if (st >= 0) { st = crdi_result_write(&root, text); }
    if (st >= 0) {
        st = crdi_json_parse(arena, text->data, text->length, (crdi_json_source){"answers", 0},
                             &tree);
    }
    r->answers = tree;
    crdi_result_clear(&root);
    return st;
}

static crd_status run_report(crdi_cli* cli, const void* options, const crdi_list* arguments,
                             crdi_result* out)
{
    const report_options* o = options;
    crd_status st = CRD_OK;
    report r = {.cli = cli};
    crd_arena arena;
    crd_text text;
    char verdict[256], a[32], b[32];
    crd_arena_init(&arena, cli->ctx);
    crd_text_init(&text, cli->ctx);
    crd_text_init(&r.svg, cli->ctx);
    CRD_TRY(crdi_study_load(cli, arguments->items[0], o->database, &r.study));
    r.f = crdi_study_get_file(r.study);
    CRD_TRY(crdi_study_count(r.study, &r.counts));
    CRD_TRY(crdi_pictures_init(&r.pictures, cli, r.study, NULL));
    const char* path = o->output;
    if (!path) { path = crdi_arena_format(&arena, "%s.html", crdi_study_database(r.study)); }
    if (!path) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(ask_answers(&r, &arena, &text));
    CRD_TRY(draw(&r));
    const int64_t open = r.counts.by_state[CRDI_RUN_OPEN] + r.counts.by_state[CRDI_RUN_CLAIMED];
    const int64_t bad = r.counts.total - open - r.counts.by_state[CRDI_RUN_DONE];
    snprintf(verdict, sizeof verdict, "%s runs, %s of them not good%s",
             crdi_study_thousands(a, r.counts.total), crdi_study_thousands(b, bad),
             open ? ", some still open" : "");
    const crdi_page page = {.path = path,
                            .title = *r.f->title ? r.f->title : "Study",
                            .format =
                                crdi_ends_with(path, ".md") ? CRD_REPORT_MARKDOWN : CRD_REPORT_HTML,
                            .good = bad == 0 && open == 0,
                            .verdict = verdict,
                            .put = put_report,
                            .user = &r};
    CRD_TRY(crdi_page_write(cli->ctx, &page));
    crdi_put(out, TEXT("file", path), INT("runs", r.counts.total));
    crdi_say(out, "%s: %s\n", path, verdict);
fail:
    crdi_pictures_clear(&r.pictures);
    crdi_study_close(r.study);
    crd_text_clear(&r.svg);
    crd_text_clear(&text);
    crd_arena_clear(&arena);
    return st;
}

static const crdi_option rows[] = {
    CRDI_DATABASE_OPTION(report_options),
    OPT_FILE(report_options, output, "output", "html", "the report; STUDY.html unless given",
             .short_name = 'o'),
    CRDI_JSON_OPTION("print what was written as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_study_report = {
    .name = "study report",
    .arguments = "STUDY",
    .summary = "one HTML file: what was asked, what ran, what came of it",
    .description = "Writes a report of a study as one HTML file that needs nothing else: what "
                   "varies, what is kept, how runs ended, statistics, sensitivities, pictures.",
    .examples = {{"cardan study report spring.yaml -o spring.html", "to hand on"}},
    OPTIONS(rows, report_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "yaml|yml|study",
    .run = run_report,
};
