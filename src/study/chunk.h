// Some runs of a study as bytes that say all another machine has to know, and what came of them.
//
// Numbers as they lie in memory, which the mark tells; texts with their length in front.
//   chunk:  "cardan chunk 1\n", u32 mark, texts: identity, path, text, describe; u32 count,
//           of each run u32 length, point
//   rows:   "cardan rows 1\n", u32 mark, text: identity,
//           of each run u32 length, u64 check, result
// Rows are only ever appended. Who reads them stops at the first that is not whole: a writer was
// killed there, or is at it.
#pragma once
#include "study/study.h"

typedef struct study_chunk {
    study_stamp stamp;
    crdi_study_file f;
    crdi_study_run* runs;
    int count;
} study_chunk;

crd_status study_chunk_encode(crd_context* ctx, const study_stamp* stamp, const crdi_study_file* f,
                              const crdi_study_run* runs, int count, crd_text* out);
// All of it lives in `arena`; `name` is said in messages.
crd_status study_chunk_decode(crd_context* ctx, const char* name, const char* bytes, size_t length,
                              crd_arena* arena, study_chunk* out);
// Whether runs here would be those that the study began with: files and units by their SHA-256.
// Opens all units of the first point of the design; CRD_E_DIFFERENT, or why it cannot run here.
crd_status study_check_here(crd_context* ctx, const study_stamp* stamp, const crdi_study_file* f);

void study_rows_begin(crd_text* out, const char* identity);
crd_status study_rows_add(crd_context* ctx, crd_text* out, const crdi_study_file* f,
                          const crdi_study_run* r);
// Whether it begins like rows, of this study: CRD_E_FORMAT, CRD_E_DIFFERENT. `*at` is behind it;
// 0: not all of the beginning is there yet.
crd_status study_rows_open(crd_context* ctx, const char* name, const char* bytes, size_t length,
                           const char* identity, size_t* at);
// The next row into `r`, whose kept has room; false: there is no whole one at `*at`.
bool study_rows_next(const crdi_study_file* f, const char* bytes, size_t length, size_t* at,
                     crdi_study_run* r);
