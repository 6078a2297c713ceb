// How refusals of the system are worded; every fact is handed in. For realtime.c and its test.
#pragma once
#include "shared/pace.h"

#include <sched.h>

/// SCHED_FIFO with `priority` failed with `error`; the thread may have priorities up to `limit`
/// (RLIMIT_RTPRIO), any if `capable` (CAP_SYS_NICE).
void crdi_realtime_fifo_note(int priority, int error, uint64_t limit, bool capable, char* out,
                             size_t size);

/// Memory may be locked: all that is there and all that will be.
bool crdi_realtime_may_lock(uint64_t limit, bool capable);
/// `error` 0: it was not tried, as the limit (RLIMIT_MEMLOCK, bytes) would make later allocations
/// fail.
void crdi_realtime_lock_note(int error, uint64_t limit, bool capable, char* out, size_t size);

/// "0-3, 6"; too many end in dots. 32 bytes at least.
void crdi_realtime_cpu_list(const cpu_set_t* set, char* out, size_t size);
void crdi_realtime_cpu_note(int cpu, int error, const cpu_set_t* allowed, char* out, size_t size);

/// Holds the file open with a 0 in it; -1: it does not exist or may not be written.
int crdi_realtime_hold_latency(const char* path);
