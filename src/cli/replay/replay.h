// cardan replay: what the running of a replay and its showing share.
#pragma once
#include "cli/cli.h"
#include "shared/master_replay.h"

/// One element of a coupling: the one in use, or a shadow.
typedef struct crdi_replay_tap {
    const char *from, *to, *label;
    bool in_use;
    double C, rms, worst; // NaN: nothing could be compared
    int64_t scored, sent, lost, repeated;
} crdi_replay_tap;

/// One replay and how it went. Texts are the arena's.
typedef struct crdi_replay_result {
    bool open;
    double time, wall_time;         // where it got to; s it took
    const char *results, *exchange; // files, "" none
    crdi_replay_tap* taps;
    int tap_count;
    crdi_deviation* deviations; // (link_count of the recording)
    bool* asked;                // (link_count): the input counts for what the replay is worth
    const char** unit_of;       // (link_count): whose input it is
    const char* const* notes;
    int note_count;
    const char* verdict; // a sentence
    bool equal;          // to the recorded run, but for rounding
} crdi_replay_result;

/// All of it.
typedef struct crdi_replay {
    crdi_cli* cli;
    crd_arena arena;
    crdi_exchange* recorded;
    const char* system; // file, "": the one in the recording
    const crdi_list* played;
    crdi_replay_result results[2]; // open, then closed
    int result_count;
} crdi_replay;

// replay_show.c
/// Puts the sentence together.
crd_status crdi_replay_judge(crdi_replay* r, crdi_replay_result* x);
void crdi_replay_put(const crdi_replay* r, crdi_result* out);
