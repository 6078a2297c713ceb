/// What modules share of results. Not for users.
#pragma once
#include "cardan/results.h"

/// chart.js, the drawing of pages, as it is embedded.
const void* crdi_chart(size_t* length);

/// A picture in the format of the options, appended to `out`.
crd_status crdi_plot_put(crd_context* ctx, crd_text* out, const crd_plot_options* options,
                         const crd_plot_panel* panels, int panel_count);

/// What signals are called where one file has several of the same name: "name (GROUP)", if the
/// groups are called anything. `out` has room for all; texts are the recording's, or in the arena.
crd_status crdi_signal_names(crd_arena* arena, const crd_recording_info* info, const char** out);

/// The next block begins at this row; at the number of rows there is none. Text that stands outside
/// of records is in memory already; a deflated block of an MF4 file is inflated as a whole.
crd_status crdi_cursor_seek(crd_cursor* c, int64_t row);

/// A document with headings, paragraphs and tables in the style of reports: the same calls give
/// HTML or Markdown. Every text is escaped.
typedef struct crdi_doc crdi_doc;
void crdi_doc_heading(crdi_doc* d, int level, const char* id, const char* text);
void crdi_doc_paragraph(crdi_doc* d, const char* format, ...) CRD_PRINTF(2, 3);
/// A table: `titles` separated by '|', a letter l or r per column in `align`. Then cells, which
/// begin their rows by themselves.
void crdi_doc_table(crdi_doc* d, const char* caption, const char* align, const char* titles);
void crdi_doc_cell(crdi_doc* d, const char* format, ...) CRD_PRINTF(2, 3);
void crdi_doc_table_end(crdi_doc* d);
/// A picture as SVG, in HTML as it stands.
void crdi_doc_drawing(crdi_doc* d, const char* label, const crd_text* svg);

typedef struct crdi_page {
    const char *path, *title;
    crd_report_format format;
    bool good;           ///< green, else red
    const char* verdict; ///< a sentence below the title
    void (*put)(crdi_doc* d, const void* user);
    const void* user;
} crdi_page;
/// Complete or not at all.
crd_status crdi_page_write(crd_context* ctx, const crdi_page* page);

/// An MF4 file of ours whose writer was killed: its counts of records become right, and it says
/// that it is finished, so that other programs read it without a repair. CRD_E_FORMAT: it is none,
/// and is left as it is. A file that is finished stays as it is.
crd_status crdi_mdf_finish(crd_context* ctx, const char* path);
