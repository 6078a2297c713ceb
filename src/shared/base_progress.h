/// Work that takes long says how far it is; a command shows it, and nobody else is bothered.
///
/// Never in the step path: loops over files, candidates and chunks of steps call it. Without a sink
/// it costs a comparison. Threads: as many as the sink bears.
#pragma once
#include "cardan/base.h"

/// `part`: what is done, "reading run.mf4"; NULL: that part is over. `of` <= 0: nobody knows how
/// much there is. `unit`: "s" of simulated time, "B" of bytes, or what is counted ("cases").
typedef void crdi_progress_sink(void* user, const char* part, double done, double of,
                                const char* unit);

/// Of this context and of those that are made from it later.
void crdi_context_show_progress(crd_context* ctx, crdi_progress_sink* sink, void* user);
bool crdi_progress_is_shown(const crd_context* ctx);
void crdi_progress(const crd_context* ctx, const char* part, double done, double of,
                   const char* unit);
void crdi_progress_end(const crd_context* ctx);
