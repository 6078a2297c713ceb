/// What the system lends beside a heap: clocks, and orders for its qsort and scandir.
#pragma once
#include "cardan/base.h"

int64_t crdi_clock_ns(int clock);                    ///< any: CLOCK_REALTIME, ...
const char* crdi_utc(int64_t seconds, char out[24]); ///< "2026-01-31T12:00:00Z"; "": no date

/// When a process began, in clock ticks since the boot; 0: unknown. With its number it is known for
/// good, also when the number is given again.
unsigned long long crdi_process_start(long pid);
bool crdi_process_is_gone(long pid, unsigned long long start);

int crdi_by_value(const void* a, const void* b); ///< of doubles
int crdi_by_text(const void* a, const void* b);  ///< of texts, by their bytes
struct dirent;
int crdi_by_entry(const struct dirent** a, const struct dirent** b); ///< by the bytes of names
