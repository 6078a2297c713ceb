// The folder of chunks beside a study, DATABASE.chunks: what is to be made elsewhere, and what
// came.
//   7.chunk              runs, see chunk.h; removed when all of them have results in the study
//   7.HOST-PID-TIME.rows what one process made of chunk 7; no two processes write into one file
//   7.log                what a task of a scheduler said
// The study itself is opened by one process on one machine: a network's file system will do for the
// folder, and is nothing for SQLite.
#pragma once
#include "study/chunk.h"

enum {
    STUDY_CHUNKS = 1000
}; // at once: Slurm's job arrays end at 1001 unless it was told otherwise

typedef struct study_seen { // a file of rows and how much of it is in the study
    char name[256];
    size_t at;
} study_seen;

typedef struct study_folder {
    crd_context* ctx;
    crdi_study* study;
    crd_arena arena;
    const char* path; // absolute
    study_stamp stamp;
    study_seen* seen;
    size_t seen_room;
    int seen_count;
    int runs[STUDY_CHUNKS + 1];   // of each chunk that is there; 0: there is none
    bool fresh[STUDY_CHUNKS + 1]; // it may be finished, which nobody has looked at
} study_folder;

// It is made if it is not there.
crd_status study_folder_open(crd_context* ctx, crdi_study* s, study_folder* out);
// An empty one is removed.
void study_folder_close(study_folder* d);
// What chunks are there, and all rows that are new into the study. A chunk that is finished goes.
crd_status study_folder_collect(study_folder* d);
// A chunk that is there.
crd_status study_folder_read(study_folder* d, int number, crd_arena* arena, study_chunk* out);
// A new one; `*number` 0: there are STUDY_CHUNKS already.
crd_status study_folder_write(study_folder* d, const crdi_study_run* runs, int count, int* number);
// The runs of all chunks that are there become this owner's; `*held` of them.
crd_status study_folder_hold(study_folder* d, int64_t* held);
// Open runs into chunks of `size`, as many as there is room for.
crd_status study_folder_fill(study_folder* d, int size, int64_t* runs);
// So many runs that a task pays: a minute's, or a hundredth of all.
crd_status study_folder_size(crdi_study* s, const crdi_study_job* job, int64_t* open, int* size);

// How this program is called, and texts as a shell reads them.
const char* study_program(crd_arena* arena);
void study_put_quoted(crd_text* t, const char* text);
