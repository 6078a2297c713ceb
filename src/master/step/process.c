// What foreign code may leave changed in the process.
#include "shared/master_process.h"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Those that crash, ask or end. Timers and SIGUSR1 may be a unit's own.
static const int numbers[CRDI_PROCESS_SIGNALS] = {SIGINT,  SIGTERM, SIGHUP,  SIGSEGV, SIGBUS,
                                                  SIGFPE,  SIGILL,  SIGABRT, SIGTRAP, SIGSYS,
                                                  SIGPIPE, SIGXCPU, SIGXFSZ};

static mode_t file_mode_now(void)
{
    const mode_t mode = umask(022); // there is no other way to read it
    umask(mode);
    return mode;
}

static bool same_file(const struct stat* a, const struct stat* b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_rdev == b->st_rdev;
}

void crdi_process_save(crdi_process* p)
{
    pthread_sigmask(SIG_SETMASK, NULL, &p->mask);
    for (int i = 0; i < CRDI_PROCESS_SIGNALS; i++) {
        sigaction(numbers[i], NULL, &p->actions[i]);
    }
    p->folder_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p->folder_fd >= 0 && fstat(p->folder_fd, &p->folder) < 0) { p->folder_fd = -1; }
    for (int i = 0; i < 2; i++) {
        const bool there = fstat(STDOUT_FILENO + i, &p->streams[i]) == 0;
        p->stream_fds[i] = there ? fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, 64) : -1;
        p->stream_flags[i] = there ? fcntl(STDOUT_FILENO + i, F_GETFL) : -1;
    }
    p->file_mode = file_mode_now();
    const char* locale = setlocale(LC_ALL, NULL);
    snprintf(p->locale, sizeof p->locale, "%s", locale ? locale : "C");
}

void crdi_process_clear(crdi_process* p)
{
    if (p->folder_fd >= 0) { close(p->folder_fd); }
    for (int i = 0; i < 2; i++) {
        if (p->stream_fds[i] >= 0) { close(p->stream_fds[i]); }
    }
}

bool crdi_process_restore_handlers(const crdi_process* p)
{
    bool any = false;
    for (int i = 0; i < CRDI_PROCESS_SIGNALS; i++) {
        struct sigaction now;
        if (sigaction(numbers[i], NULL, &now) < 0 ||
            now.sa_sigaction == p->actions[i].sa_sigaction) {
            continue;
        }
        sigaction(numbers[i], &p->actions[i], NULL);
        any = true;
    }
    return any;
}

static bool restore_mask(const crdi_process* p)
{
    sigset_t now;
    bool differs = false;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    for (int i = 0; i < CRDI_PROCESS_SIGNALS; i++) {
        differs = differs || sigismember(&now, numbers[i]) != sigismember(&p->mask, numbers[i]);
    }
    if (differs) { pthread_sigmask(SIG_SETMASK, &p->mask, NULL); }
    return differs;
}

static bool restore_folder(const crdi_process* p)
{
    struct stat now;
    if (p->folder_fd < 0 || (stat(".", &now) == 0 && same_file(&now, &p->folder))) { return false; }
    return fchdir(p->folder_fd) == 0;
}

// A stream that was closed is one that has changed; its copy may have been closed with it.
static bool restore_streams(const crdi_process* p)
{
    bool any = false;
    for (int i = 0; i < 2; i++) {
        struct stat now, copy;
        const int flags = fcntl(STDOUT_FILENO + i, F_GETFL);
        if (flags >= 0 && p->stream_flags[i] >= 0 && flags != p->stream_flags[i]) {
            any = fcntl(STDOUT_FILENO + i, F_SETFL, p->stream_flags[i]) == 0 || any;
        }
        if (p->stream_fds[i] < 0 ||
            (fstat(STDOUT_FILENO + i, &now) == 0 && same_file(&now, &p->streams[i])) ||
            fstat(p->stream_fds[i], &copy) < 0 || !same_file(&copy, &p->streams[i])) {
            continue;
        }
        any = dup2(p->stream_fds[i], STDOUT_FILENO + i) >= 0 || any;
    }
    return any;
}

static bool restore_file_mode(const crdi_process* p)
{
    if (file_mode_now() == p->file_mode) { return false; }
    umask(p->file_mode);
    return true;
}

static bool restore_locale(const crdi_process* p)
{
    const char* now = setlocale(LC_ALL, NULL);
    const bool global = !now || strcmp(now, p->locale) != 0;
    const bool own = uselocale((locale_t)0) != LC_GLOBAL_LOCALE;
    if (global) { setlocale(LC_ALL, p->locale); }
    if (own) { uselocale(LC_GLOBAL_LOCALE); }
    return global || own;
}

bool crdi_process_restore(const crdi_process* p, char* text)
{
    static const struct {
        bool (*restore)(const crdi_process* p);
        const char* name;
    } rows[] = {
        {restore_mask, "the signal mask"},
        {crdi_process_restore_handlers, "signal handlers"},
        {restore_folder, "the working directory"},
        {restore_file_mode, "the file mode mask"},
        {restore_locale, "the locale"},
        {restore_streams, "standard output or error"},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].restore(p)) { continue; }
        n += (size_t)snprintf(text + n, 256 - n, "%s%s", n ? ", " : "", rows[i].name);
    }
    return n > 0;
}
