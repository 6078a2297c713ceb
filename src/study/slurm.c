// The executor `slurm`: chunks are the tasks of a job array. Who follows them keeps nothing in its
// head: what is to be made lies in the folder, what is under way the scheduler says (by the name of
// the job, with the study's identity), what came lies in the folder. So another one goes on.
#include "study/executors.h"
#include "study/folder.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double least_wait = 0.2, most_wait = 10, call_most = 150, silence_most = 900; // s
enum { TRIES = 3 }; // of a chunk without a single result

typedef struct follow {
    bool mine;   // this process submits it if it is not there
    bool live;   // the scheduler has it
    int absent;  // times in a row that it was not live
    int tries;   // in vain
    int64_t was; // results of all its runs when it was submitted
} follow;

typedef struct slurm {
    crd_context* ctx;
    const crdi_study_job* job;
    crdi_study* study;
    study_folder d;
    char name[64]; // of the job
    follow chunks[STUDY_CHUNKS + 1];
    double wait, silent;        // s
    int64_t begin, open_before; // ns; runs when it began
    bool given_up;
} slurm;

// ---- its commands ------------------------------------------------------------------------------

static void pause_for(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};
    nanosleep(&t, NULL);
}

static crd_status read_back(crd_context* ctx, int fd, crd_text* out)
{
    const crdi_file_need need = {.what = "an answer", .most = 64u << 20, .pipes = true};
    return lseek(fd, 0, SEEK_SET) == 0
               ? crdi_file_read_from(ctx, fd, "the scheduler's answer", &need, out)
               : CRD_E_IO;
}

// Waits for the child, at most call_most; its exit code, -1: none.
static int wait_for(pid_t pid)
{
    const int64_t begin = crdi_now_ns();
    int code = 0;
    for (;;) {
        const pid_t got = waitpid(pid, &code, WNOHANG);
        if (got == pid) { return WIFEXITED(code) ? WEXITSTATUS(code) : -1; }
        if (got < 0 && errno != EINTR) { return -1; }
        if ((double)(crdi_now_ns() - begin) * 1e-9 > call_most) {
            kill(pid, SIGKILL);
            while (waitpid(pid, &code, 0) < 0 && errno == EINTR) {}
            return -1;
        }
        pause_for(0.02);
    }
}

// What a program says on standard output, if it ends well; otherwise its first words on standard
// error make the sentence.
static crd_status call(slurm* s, const char* const* words, crd_text* out)
{
    crd_status st = CRD_OK;
    posix_spawn_file_actions_t files;
    pid_t pid = 0;
    crd_text said;
    const int fd = memfd_create("out", MFD_CLOEXEC), error_fd = memfd_create("error", MFD_CLOEXEC);
    crd_text_init(&said, s->ctx);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&files, fd, 1);
    posix_spawn_file_actions_adddup2(&files, error_fd, 2);
    const int why =
        posix_spawnp(&pid, words[0], &files, NULL, (char* const*)(uintptr_t)words, environ);
    const int code = why ? -1 : wait_for(pid);
    if (why) {
        st =
            crdi_fail(s->ctx, CRD_E_NOT_FOUND,
                      "%s: %s; Slurm's commands have to be on the path of this machine; --executor "
                      "local makes the runs here, list prints them for another scheduler",
                      words[0], strerror(why));
    } else if (code != 0) {
        (void)read_back(s->ctx, error_fd, &said);
        st = crdi_fail(s->ctx, CRD_E_IO,
                       "%s: %.*s; see whether Slurm is up ('sinfo'); what is done stays, and the "
                       "same command goes on; --executor local makes the runs here",
                       words[0], (int)strcspn(said.data ? said.data : "", "\n"),
                       said.data && *said.data ? said.data : "it did not answer");
    } else if (out) {
        st = read_back(s->ctx, fd, out);
    }
    posix_spawn_file_actions_destroy(&files);
    crd_text_clear(&said);
    close(fd);
    close(error_fd);
    return st;
}

// ---- what is under way -------------------------------------------------------------------------

static crd_status look(slurm* s)
{
    crd_text out;
    char user[24];
    const char* const words[] = {"squeue", "--noheader", "--array", "--user",
                                 user,     "--format",   "%j|%K",   NULL};
    snprintf(user, sizeof user, "%ld", (long)getuid());
    crd_text_init(&out, s->ctx);
    const crd_status st = call(s, words, &out);
    const size_t n = strlen(s->name);
    if (st >= 0) {
        for (int i = 1; i <= STUDY_CHUNKS; i++) {
            s->chunks[i].live = false;
        }
    }
    for (const char* p = st >= 0 ? out.data : ""; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        if (strncmp(p, s->name, n) != 0 || p[n] != '|') { continue; }
        const long index = strtol(p + n + 1, NULL, 10);
        if (index >= 1 && index <= STUDY_CHUNKS) { s->chunks[index].live = true; }
    }
    crd_text_clear(&out);
    return st;
}

// ---- what is submitted -------------------------------------------------------------------------

static void put_numbers(crd_text* t, const bool* which)
{
    const char* comma = "";
    for (int i = 1; i <= STUDY_CHUNKS; i++) {
        if (!which[i]) { continue; }
        int last = i;
        while (last < STUDY_CHUNKS && which[last + 1]) {
            last++;
        }
        crdi_text_add(t, last > i ? "%s%d-%d" : "%s%d", comma, i, last);
        comma = ",";
        i = last;
    }
}

static crd_status make_script(slurm* s, const bool* which, crd_text* t)
{
    const int workers = s->job->workers > 0 ? s->job->workers : 1;
    const char* folder = s->d.path;
    if (strpbrk(folder, "\"\\\n")) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "%s: Slurm cannot write into a folder with such a name; --database puts "
                         "the study elsewhere",
                         folder);
    }
    crdi_text_add(t,
                  "#!/bin/sh\n#SBATCH --job-name=%s\n#SBATCH --cpus-per-task=%d\n"
                  "#SBATCH --open-mode=append\n#SBATCH --array=",
                  s->name, workers);
    put_numbers(t, which);
    crdi_text_add(t, "\n#SBATCH --output=\"");
    for (const char* c = folder; *c; c++) {
        crdi_text_add(t, *c == '%' ? "%%%%" : "%c", *c);
    }
    crdi_text_add(t, "/%%a.log\"\n");
    if (s->job->submit) { crdi_text_add(t, "#SBATCH %s\n", s->job->submit); }
    crdi_text_add(t, "cd ");
    study_put_quoted(t, folder);
    crdi_text_add(t, " || exit 1\nexec ");
    study_put_quoted(t, study_program(&s->d.arena));
    crdi_text_add(t, " study work \"$SLURM_ARRAY_TASK_ID.chunk\" --workers %d --quiet\n", workers);
    return t->failed ? CRD_E_MEMORY : CRD_OK;
}

static int64_t results_of(slurm* s, int number)
{
    int64_t bytes = 0;
    for (int i = 0; i < s->d.seen_count; i++) {
        if (strtol(s->d.seen[i].name, NULL, 10) == number) { bytes += (int64_t)s->d.seen[i].at; }
    }
    return bytes;
}

static crd_status submit(slurm* s, const bool* which)
{
    crd_status st = CRD_OK;
    crd_text script;
    const char* path = crdi_arena_format(&s->d.arena, "%s/job.sh", s->d.path);
    const char* const words[] = {"sbatch", "--parsable", path, NULL};
    crd_text_init(&script, s->ctx);
    CRD_TRY(make_script(s, which, &script));
    CRD_TRY(crdi_file_write(s->ctx, path, &script));
    st = call(s, words, NULL);
    (void)unlink(path);
    if (st < 0) { goto fail; }
    for (int i = 1; i <= STUDY_CHUNKS; i++) {
        if (!which[i]) { continue; }
        s->chunks[i].live = true;
        s->chunks[i].absent = 0;
        s->chunks[i].was = results_of(s, i);
    }
fail:
    crd_text_clear(&script);
    return st;
}

// Chunks that are there and that nobody has under way; one that ends again and again without a
// result is given up.
static crd_status submit_absent(slurm* s)
{
    bool which[STUDY_CHUNKS + 1] = {0}, any = false;
    for (int i = 1; i <= STUDY_CHUNKS; i++) {
        follow* c = &s->chunks[i];
        if (!s->d.runs[i]) {
            *c = (follow){0};
            continue;
        }
        if (!c->mine || c->live) {
            c->absent = 0;
            continue;
        }
        // Twice in a row: between two looks it may have ended, and its results be on their way.
        if (c->absent++ < 1) { continue; }
        c->tries = results_of(s, i) > c->was ? 1 : c->tries + 1;
        if (c->tries > TRIES) {
            c->mine = false;
            s->given_up = true;
            continue;
        }
        which[i] = any = true;
    }
    return any ? submit(s, which) : CRD_OK;
}

static bool has_work(const slurm* s)
{
    for (int i = 1; i <= STUDY_CHUNKS; i++) {
        if (s->d.runs[i] && (s->chunks[i].mine || s->chunks[i].live)) { return true; }
    }
    return false;
}

// ---- the loop ----------------------------------------------------------------------------------

static crd_status show(slurm* s)
{
    crdi_study_counts c;
    const crd_status st = crdi_study_count(s->study, &c);
    const double seconds = (double)(crdi_now_ns() - s->begin) * 1e-9;
    const int64_t open = c.by_state[CRDI_RUN_OPEN] + c.by_state[CRDI_RUN_CLAIMED];
    if (st < 0 || !s->job->progress) { return st; }
    s->job->progress(s->job->user, c.total - open, c.total,
                     c.total - open - c.by_state[CRDI_RUN_DONE],
                     seconds > 0 ? (double)(s->open_before - open) / seconds : 0);
    return CRD_OK;
}

// A scheduler that is silent for a while is waited for: its tasks go on without it.
static crd_status look_again(slurm* s)
{
    const crd_status st = look(s);
    if (st >= 0) {
        s->silent = 0;
    } else if (st == CRD_E_IO && s->silent < silence_most) {
        s->silent += s->wait;
        for (int i = 1; i <= STUDY_CHUNKS; i++) {
            s->chunks[i].live = s->d.runs[i] != 0;
        }
        return CRD_OK;
    }
    return st;
}

static crd_status adopt(slurm* s, int64_t* runs)
{
    for (int i = 1; i <= STUDY_CHUNKS; i++) {
        if (!s->d.runs[i] || s->chunks[i].mine) { continue; }
        s->chunks[i] = (follow){.mine = true, .live = s->chunks[i].live, .absent = 1};
    }
    return study_folder_hold(&s->d, runs);
}

// All that is open into chunks, chunks to the scheduler, until everything has come back.
static crd_status follow_all(slurm* s)
{
    crd_status st = CRD_OK;
    int64_t runs = 0, open = 0;
    int size = 0;
    CRD_TRY(look(s));
    CRD_TRY(study_folder_collect(&s->d));
    CRD_TRY(adopt(s, &runs));
    CRD_TRY(study_folder_size(s->study, s->job, &open, &size));
    while (!(s->job->stop && *s->job->stop) && !s->given_up) {
        CRD_TRY(study_folder_fill(&s->d, size, &runs));
        if (runs) { CRD_TRY(adopt(s, &runs)); }
        CRD_TRY(submit_absent(s));
        if (!has_work(s)) { break; }
        CRD_TRY(show(s));
        pause_for(s->wait);
        s->wait = fmin(s->wait * 1.2, most_wait);
        CRD_TRY(look_again(s)); // before the results: what has ended by now has written them
        CRD_TRY(study_folder_collect(&s->d));
        CRD_TRY(crdi_study_put(s->study, NULL, 0)); // the lease
    }
fail:
    return st;
}

// What the log of a chunk says last.
static void last_words(slurm* s, int number, char out[400])
{
    crd_text log;
    crd_arena arena;
    const crdi_file_need need = {.what = "a log", .most = 64u << 20, .text = true};
    out[0] = 0;
    crd_arena_init(&arena, s->ctx);
    crd_text_init(&log, s->ctx);
    const char* path = crdi_arena_format(&arena, "%s/%d.log", s->d.path, number);
    if (path && crdi_file_read(s->ctx, path, &need, &log) >= 0) {
        while (log.length && log.data[log.length - 1] == '\n') {
            log.data[--log.length] = 0;
        }
        const char* line = strrchr(log.data, '\n');
        snprintf(out, 400, "%s", line ? line + 1 : log.data);
    }
    crd_text_clear(&log);
    crd_arena_clear(&arena);
}

static crd_status tell_given_up(slurm* s)
{
    char words[400] = "";
    int chunks = 0, first = 0;
    for (int i = 1; i <= STUDY_CHUNKS; i++) {
        if (!s->d.runs[i] || s->chunks[i].tries <= TRIES) { continue; }
        if (!words[0]) { last_words(s, i, words); }
        first = first ? first : i;
        chunks++;
    }
    return crdi_fail(
        s->ctx, CRD_E_UNIT,
        "%d of its tasks ended %d times without a result, the first %s/%d.chunk: %s; the "
        "others' results are kept, and the same command tries again",
        chunks, TRIES, s->d.path, first,
        words[0] ? words : "it wrote nothing; 'sacct' may know more");
}

static crd_status say_what_would_be(slurm* s)
{
    bool which[STUDY_CHUNKS + 1] = {0};
    int64_t open = 0;
    int size = 0;
    crd_text script;
    crd_text_init(&script, s->ctx);
    crd_status st = study_folder_size(s->study, s->job, &open, &size);
    for (int64_t i = 1; i <= STUDY_CHUNKS && (i - 1) * size < open; i++) {
        which[i] = true;
    }
    if (st >= 0) { st = make_script(s, which, &script); }
    if (st >= 0) {
        if (script.length) { script.data[script.length - 1] = 0; } // the last end of a line
        s->job->say(s->job->user, script.data);
    }
    crd_text_clear(&script);
    return st;
}

crd_status study_run_slurm(crd_context* ctx, const crdi_study_job* job)
{
    crd_status st = CRD_OK;
    crdi_study_counts c;
    slurm* s = crdi_new(ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    *s = (slurm){
        .ctx = ctx, .job = job, .study = job->study, .wait = least_wait, .begin = crdi_now_ns()};
    CRD_TRY(crdi_study_count(job->study, &c));
    s->open_before = c.by_state[CRDI_RUN_OPEN] + c.by_state[CRDI_RUN_CLAIMED];
    CRD_TRY(study_folder_open(ctx, job->study, &s->d));
    snprintf(s->name, sizeof s->name, "cardan-%s", s->d.stamp.identity);
    if (job->dry_run) {
        st = say_what_would_be(s);
    } else {
        st = follow_all(s);
        if (st >= 0 && s->given_up) { st = tell_given_up(s); }
        if (job->stop && *job->stop && has_work(s)) {
            crdi_log(ctx, CRD_LOG_WARNING,
                     "tasks stay in the queue, and the same command follows them; 'scancel --name "
                     "%s' ends them",
                     s->name);
        }
    }
fail:
    study_folder_close(&s->d);
    crd_free(ctx, s);
    return st;
}
