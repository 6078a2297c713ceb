// What is needed of MPI, as a table that a library of its own fills in: cardan-mpi.so is built
// where there is an MPI, and is loaded when the executor `mpi` is asked for. So neither libcardan
// nor the command depends on one.
#pragma once

enum { STUDY_MPI_FORMAT = 1 };

// Numbers that are returned: 0 is success.
typedef struct study_mpi {
    int format;
    int (*begin)(void);
    int (*rank)(void);
    int (*size)(void);
    int (*send)(const void* bytes, int length, int to, int tag);
    // 1: a message is there, of `*length` bytes; -1: failure
    int (*peek)(int* from, int* tag, int* length);
    int (*receive)(void* bytes, int length, int from, int tag);
    void (*end)(void);
} study_mpi;
