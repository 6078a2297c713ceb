// What the papers' files share: rows and figures are added to a reproduction.
#pragma once
#include "shared/reproduce.h"

#include <math.h>

/// `c->ok`, `c->print` and `c->why` are worked out here. Texts are copied.
crd_status crdi_claim_add(crdi_reproduction* r, const crdi_claim* c);
/// Names and values are copied.
crd_status crdi_figure_add(crdi_reproduction* r, const crdi_figure* f);
/// The same for a row "family.last": "subject: what".
crd_status crdi_claim_row(crdi_reproduction* r, const char* family, const char* last,
                          const char* subject, const char* what, crdi_claim c);
crd_status crdi_claims_add(crdi_reproduction* r, const crdi_claim* c, size_t count);
/// `c->print` and `c->why` of a row of a paper, from ours and the table of remarks (print.c).
void crdi_claim_read_print(const char* paper, crdi_claim* c);
/// The value of a printed number, and `*unit`: one in its last digit.
double crdi_printed(const char* text, double* unit);

/// Claims by their rule; NAN: not published, not known. Other fields may follow: .remark = "".
#define CRDI_NEAR(published_, ours_, reference_, tolerance_, ...)                                  \
    ((crdi_claim){.published = (published_),                                                       \
                  .ours = (ours_),                                                                 \
                  .reference = (reference_),                                                       \
                  .tolerance = (tolerance_),                                                       \
                  __VA_ARGS__})
/// The tolerance is a part of the reference.
#define CRDI_WITHIN(published, ours, reference, tolerance, ...)                                    \
    CRDI_NEAR(published, ours, reference, tolerance, .relative = true, __VA_ARGS__)
#define CRDI_AT_MOST(published_, ours_, reference_, ...)                                           \
    ((crdi_claim){.published = (published_),                                                       \
                  .ours = (ours_),                                                                 \
                  .reference = (reference_),                                                       \
                  .rule = CRDI_CLAIM_AT_MOST,                                                      \
                  __VA_ARGS__})
#define CRDI_AT_LEAST(published_, ours_, reference_, ...)                                          \
    ((crdi_claim){.published = (published_),                                                       \
                  .ours = (ours_),                                                                 \
                  .reference = (reference_),                                                       \
                  .rule = CRDI_CLAIM_AT_LEAST,                                                     \
                  __VA_ARGS__})
#define CRDI_SHOWN(published_, ours_, ...)                                                         \
    ((crdi_claim){.published = (published_),                                                       \
                  .ours = (ours_),                                                                 \
                  .reference = (double)NAN,                                                        \
                  .rule = CRDI_CLAIM_SHOWN,                                                        \
                  __VA_ARGS__})
/// Data of a figure; other fields may follow: .log_y = true.
#define CRDI_FIGURE(id_, title_, columns_, names_, rows_, values_, ...)                            \
    ((crdi_figure){.id = (id_),                                                                    \
                   .title = (title_),                                                              \
                   .columns = (columns_),                                                          \
                   .names = (names_),                                                              \
                   .rows = (rows_),                                                                \
                   .values = (values_),                                                            \
                   __VA_ARGS__})
/// A row of a table.
#define CRDI_ROW(...)                                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
