// Workers that share the members of a batch. A worker spins for a while between batches, because
// the next one usually comes within microseconds, and sleeps on a semaphore when it does not.
#include "master/master.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

#if defined(__x86_64__)
#define RELAX() __builtin_ia32_pause()
#else
#define RELAX() ((void)0)
#endif

enum { SPINS = 4000 };

typedef struct {
    crdi_pool* pool;
    pthread_t thread;
    sem_t wake;
    atomic_bool asleep;
    volatile int running; // member whose code runs on this worker, -1: none
} worker;

struct crdi_pool {
    crd_master* m;
    worker* workers;
    int count;
    atomic_uint generation; // one more for every batch
    atomic_bool quit;
    int first, size; // of the batch, written before the generation
    atomic_int next; // member of the batch to take
    atomic_int left; // workers that have not finished the batch
};

// Take members until none is left. The order of taking is free: members do not see each other.
static void pool_take(crdi_pool* p, volatile int* running)
{
    crd_master* m = p->m;
    for (;;) {
        const int i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (i >= p->size) { break; }
        const int member = m->plan->batch[p->first + i];
        if (!crdi_member_is_due(m, member)) { continue; }
        *running = member;
        crdi_member_run(m, &m->plan->members[member]);
        *running = -1;
    }
}

// The same, where a crash of a member ends that member only.
static void take_caught(crdi_pool* p, volatile int* running)
{
    if (!p->m->plan->opt.guard_crashes) {
        pool_take(p, running);
        return;
    }
    crdi_crash_frame frame;
    crdi_crash_enter(&frame, running);
    const int crash = sigsetjmp(frame.env, 0);
    if (crash) {
        crdi_member* member = &p->m->plan->members[*running];
        *running = -1;
        member->run->crash_signal = crash;
        member->run->status = CRD_E_CRASH;
    }
    pool_take(p, running);
    crdi_crash_leave(&frame);
}

static void wait_for_batch(worker* w, unsigned seen)
{
    crdi_pool* p = w->pool;
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&p->generation, memory_order_acquire) != seen) { return; }
        RELAX();
    }
    atomic_store(&w->asleep, true);
    while (atomic_load(&p->generation) == seen) {
        while (sem_wait(&w->wake) != 0) {}
    }
    atomic_store(&w->asleep, false);
}

static void* pool_work(void* arg)
{
    worker* w = arg;
    crdi_pool* p = w->pool;
    for (unsigned seen = 0;; seen++) {
        wait_for_batch(w, seen);
        if (atomic_load(&p->quit)) { return NULL; }
        take_caught(p, &w->running);
        atomic_fetch_sub_explicit(&p->left, 1, memory_order_release);
    }
}

static void next_generation(crdi_pool* p)
{
    atomic_fetch_add(&p->generation, 1);
    for (int i = 0; i < p->count; i++) {
        if (atomic_load(&p->workers[i].asleep)) { sem_post(&p->workers[i].wake); }
    }
}

void crdi_pool_run(crdi_pool* p, int first, int count)
{
    p->first = first;
    p->size = count;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    atomic_store_explicit(&p->left, p->count, memory_order_relaxed);
    next_generation(p);
    take_caught(p, &p->m->running);
    for (int i = 0; atomic_load_explicit(&p->left, memory_order_acquire) > 0; i++) {
        RELAX();
        if (i > SPINS) { sched_yield(); } // perhaps there is no core for the worker
    }
}

int crdi_pool_running(const crdi_pool* p)
{
    int member = -1;
    for (int i = 0; i < p->count && member < 0; i++) {
        member = p->workers[i].running;
    }
    return member;
}

crd_status crdi_pool_create(crd_master* m, int workers, crdi_pool** out)
{
    crdi_pool* p = crdi_new(m->ctx, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    p->m = m;
    p->workers = crdi_new_array(m->ctx, (size_t)workers, sizeof *p->workers);
    if (!p->workers) {
        crdi_pool_destroy(p);
        return CRD_E_MEMORY;
    }
    // Signals that end the run are for the cycle thread.
    sigset_t block, before;
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigaddset(&block, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &block, &before);
    for (int i = 0; i < workers; i++) {
        worker* w = &p->workers[p->count];
        w->pool = p;
        w->running = -1;
        sem_init(&w->wake, 0, 0);
        if (pthread_create(&w->thread, NULL, pool_work, w) != 0) {
            sem_destroy(&w->wake);
            break;
        }
        p->count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    *out = p;
    return CRD_OK;
}

// The cycle thread waits for them: at a lower priority they might never run.
void crdi_pool_set_priority(crdi_pool* p, int priority)
{
    const struct sched_param param = {.sched_priority = priority};
    for (int i = 0; i < p->count; i++) {
        (void)pthread_setschedparam(p->workers[i].thread, SCHED_FIFO, &param);
    }
}

int crdi_pool_workers(const crdi_pool* p)
{
    return p->count;
}

void crdi_pool_destroy(crdi_pool* p)
{
    if (!p) { return; }
    atomic_store(&p->quit, true);
    next_generation(p);
    for (int i = 0; i < p->count; i++) {
        pthread_join(p->workers[i].thread, NULL);
        sem_destroy(&p->workers[i].wake);
    }
    crd_context* ctx = p->m->ctx;
    crd_free(ctx, p->workers);
    crd_free(ctx, p);
}
