/// Ctrl-C as a wish: SIGINT and SIGTERM set a flag, and whoever insists ends the process at once.
///
/// One catcher per process, for commands: the library itself catches nothing.
#pragma once
#include <signal.h>
#include <stdbool.h>

typedef struct crdi_interrupt_options {
    bool restart;    ///< calls that wait go on; otherwise a signal interrupts them
    bool only_count; ///< the second signal does not end the process: the caller counts them
} crdi_interrupt_options;

/// From now on the first signal sets the flag and a second one ends the process. The flag is false
/// and stays valid; other threads may look at it.
const volatile bool* crdi_interrupt_catch(const crdi_interrupt_options* opt);
void crdi_interrupt_restore(void); ///< as it was before
bool crdi_interrupted(void);       ///< the flag
int crdi_interrupt_count(void);    ///< signals since crdi_interrupt_catch
/// Both signals come only while somebody waits with the mask `waiting` (ppoll, pselect).
void crdi_interrupt_block(sigset_t* waiting);
