#include "study/plugin/mpi.h"

#include <mpi.h>

static int begin(void)
{
    int there = 0;
    MPI_Initialized(&there);
    if (!there && MPI_Init(NULL, NULL) != MPI_SUCCESS) { return -1; }
    return MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static int rank(void)
{
    int n = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &n);
    return n;
}

static int size(void)
{
    int n = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    return n;
}

static int send(const void* bytes, int length, int to, int tag)
{
    return MPI_Send(bytes, length, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

static int peek(int* from, int* tag, int* length)
{
    MPI_Status s;
    int there = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &s) != MPI_SUCCESS) {
        return -1;
    }
    if (!there) { return 0; }
    *from = s.MPI_SOURCE;
    *tag = s.MPI_TAG;
    MPI_Get_count(&s, MPI_BYTE, length);
    return 1;
}

static int receive(void* bytes, int length, int from, int tag)
{
    return MPI_Recv(bytes, length, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void end(void)
{
    MPI_Finalize();
}

__attribute__((visibility("default")))
const study_mpi cardan_mpi = {STUDY_MPI_FORMAT, begin, rank, size, send, peek, receive, end};
