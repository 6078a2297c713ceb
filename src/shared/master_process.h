/// What belongs to the whole process or thread, and foreign code may leave changed: signal mask and
/// handlers, working directory, file mode mask, locale, standard output and error.
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>

enum { CRDI_PROCESS_SIGNALS = 13, CRDI_PROCESS_LOCALE = 256 };

typedef struct crdi_process {
    sigset_t mask; // of the thread that saved it
    struct sigaction actions[CRDI_PROCESS_SIGNALS];
    struct stat folder, streams[2]; // working directory; standard output and error
    int folder_fd, stream_fds[2];   // copies of them, -1: none
    int stream_flags[2];            // a write that does not wait would be lost
    mode_t file_mode;
    char locale[CRDI_PROCESS_LOCALE];
} crdi_process;

/// As it is now. Handlers that are installed later are foreign: crdi_process_save comes last.
void crdi_process_save(crdi_process* p);
void crdi_process_clear(crdi_process* p);
/// Puts back what has changed and names it in `text` ("the working directory, the locale"), at
/// least 256 bytes. false: nothing has. On the thread that saved it; takes 3 us.
bool crdi_process_restore(const crdi_process* p, char* text);
/// The handlers alone; on any thread.
bool crdi_process_restore_handlers(const crdi_process* p);
