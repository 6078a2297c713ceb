// A state of a run in memory (snapshot.c), and in a file (state.c).
#pragma once
#include "master/master.h"

/// Bytes that change in a run.
typedef struct crdi_span {
    void* at;
    size_t size;
} crdi_span;

/// Of a unit, beside what it saves itself.
typedef struct crdi_unit_part {
    void* state;
    int64_t events, remarks, waited;
    double next_event, made;
    bool wants_stop;
} crdi_unit_part;

struct crd_snapshot {
    crd_master* of;
    crd_snapshot *before, *after; // in the list of the master
    double time;
    crd_end end;
    int end_member;
    bool wish;
    crdi_span* spans; // (span_count)
    int span_count;
    size_t span_room;
    char* data; // (size), span after span
    size_t size, data_room;
    crdi_unit_part* units; // (members)
    void** held;           // (2 members) room for what a restored state leaves alone
    crdi_columns_mark* rows;
};

/// The sentence why this run cannot be saved; with `file`, to a file.
crd_status crdi_snapshot_check(crd_master* m, bool file);
/// As crd_master_save, though a result file is open: for who does not go back.
crd_status crdi_snapshot_take(crd_master* m, bool file, crd_snapshot** state);
/// States that units have saved for steps that are taken back stay with the run: `back` puts them
/// where they were.
void crdi_snapshot_hold(const crd_snapshot* s, bool back);
