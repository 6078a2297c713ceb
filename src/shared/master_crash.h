/// Crashes of foreign code: shared inside the library, for whoever calls units without a master.
#pragma once
#include "cardan/base.h"

/// What has happened, beside the numbers of signals.
enum { CRDI_CRASH_EXIT = 1000, CRDI_CRASH_THREAD, CRDI_CRASH_HANGS };

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
