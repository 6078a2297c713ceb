/// Crashes of foreign code: shared inside the library, for whoever calls units without a master.
#pragma once
#include "cardan/master.h"

/// What has happened, beside the numbers of signals.
enum { CRDI_CRASH_EXIT = 1000, CRDI_CRASH_THREAD, CRDI_CRASH_HANGS, CRDI_CRASH_FENCE };

/// Calls f(with). A signal (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPIPE,
/// SIGXCPU, SIGXFSZ) while `*running` >= 0, which says that a unit's code runs, ends the call with
/// its number, exit() with CRDI_CRASH_EXIT. 0: f came to its end. The code that crashed must not be
/// called again: crd_unit_ops.abandon.
int crdi_crash_catch(volatile int* running, void (*f)(void* with), void* with);
/// The handlers, counted; remove puts back what was there before.
void crdi_crash_install(void);
void crdi_crash_remove(void);
/// At the end of main: after a run whose process may end (crd_master_options.last_words) it ends
/// here, with all streams written. A library that stayed loaded after a fatal error is not called
/// by exit().
void crdi_crash_leave_process(int code);

// ---- a run that is guarded by another process ---------------------------------------------------

/// Some unit is a test bench or goes with the clock by itself. `*period`: s on the clock of a step
/// that keeps it, 0: steps take as long as they take.
bool crdi_master_has_machines(const crd_master* m, double* period);
/// Steps so far, and where the run is: -1 not begun, 0 goes on, 1 comes to rest. Any thread.
int crdi_master_pulse(const crd_master* m, int64_t* steps);
/// The benches are somebody else's now: the record is finished, the last words are said, and the
/// process ends without a word to the benches. From any thread; nothing happens outside of a run
/// with last words.
void crdi_master_fence(const char* cause);
