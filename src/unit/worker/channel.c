// Messages between a master and a worker, and how they wait for each other.
#include "unit/worker/channel.h"

#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// ---- messages ----------------------------------------------------------------------------------

static void* mail_take(crdi_mail* m, size_t length)
{
    const size_t whole = (length + 7) & ~(size_t)7; // what follows stays aligned
    if (m->failed || length > m->left || whole > m->left) {
        m->failed = true;
        return NULL;
    }
    void* at = m->at;
    m->at += whole;
    m->left -= whole;
    return at;
}

void crdi_mail_put(crdi_mail* m, const void* bytes, size_t length)
{
    void* to = mail_take(m, length);
    if (to && length) { memcpy(to, bytes, length); }
}

const void* crdi_mail_get(crdi_mail* m, size_t length)
{
    return mail_take(m, length);
}

void crdi_mail_put_u64(crdi_mail* m, uint64_t x)
{
    crdi_mail_put(m, &x, sizeof x);
}

uint64_t crdi_mail_get_u64(crdi_mail* m)
{
    const uint64_t* from = mail_take(m, sizeof *from);
    return from ? __atomic_load_n(from, __ATOMIC_RELAXED) : 0; // once: the other side may change it
}

void crdi_mail_put_number(crdi_mail* m, double x)
{
    crdi_mail_put(m, &x, sizeof x);
}

double crdi_mail_get_number(crdi_mail* m)
{
    double x = 0;
    const void* from = mail_take(m, sizeof x);
    if (from) { memcpy(&x, from, sizeof x); }
    return x;
}

void crdi_mail_put_text(crdi_mail* m, const char* text)
{
    const size_t length = text ? strlen(text) : 0;
    crdi_mail_put_u64(m, length);
    char* to = mail_take(m, length + 1);
    if (!to) { return; }
    if (length) { memcpy(to, text, length); }
    to[length] = 0;
}

const char* crdi_mail_get_text(crdi_mail* m)
{
    const uint64_t length = crdi_mail_get_u64(m);
    const char* text = length < SIZE_MAX ? mail_take(m, (size_t)length + 1) : NULL;
    if (!text || text[length]) {
        m->failed = true;
        return "";
    }
    return text;
}

void crdi_mail_put_bytes(crdi_mail* m, const crd_bytes* values, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        crdi_mail_put_u64(m, values[i].length);
        crdi_mail_put(m, values[i].data, values[i].length);
    }
}

crd_status crdi_mail_get_bytes(crdi_mail* m, crd_context* ctx, crd_bytes* values, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const uint64_t length = crdi_mail_get_u64(m);
        const void* data = mail_take(m, (size_t)length);
        if (!data) { return crdi_fail(ctx, CRD_E_UNIT, "its worker's answer is too short"); }
        const crd_status st = crd_bytes_set(ctx, &values[i], data, (size_t)length);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// ---- waiting -----------------------------------------------------------------------------------

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// The line of the first values comes along.
static inline bool is_there(const crdi_channel_look* l)
{
    __builtin_prefetch(l->values);
    return atomic_load_explicit(l->number, memory_order_acquire) == l->wanted ||
           atomic_load_explicit(l->other, memory_order_acquire) == l->wanted;
}

bool crdi_channel_spin(const crdi_channel_look* l, uint32_t* vain)
{
    enum {
        LOOKS = 32,
        AGAIN = 64
    }; // looks between two at the clock; waits until it is tried again
    if (crdi_channel_is_cold(*vain) && ++*vain % AGAIN) { return is_there(l); }
    for (int64_t end = 0;;) {
        for (int i = 0; i < LOOKS; i++) {
            if (is_there(l)) {
                *vain = 0;
                return true;
            }
            relax();
        }
        if (crdi_channel_is_crowded(l->most)) { sched_yield(); }
        const int64_t now = crdi_now_ns();
        if (!end) { end = now + l->most; }
        if (now >= end) { break; }
    }
    ++*vain;
    return false;
}

void crdi_channel_sleep(const crdi_channel_look* l, const crdi_channel_bed* b, int64_t ns)
{
    const uint32_t seen = atomic_load(b->word);
    atomic_exchange(b->asleep, 1);
    if (is_there(l)) { return; }
    const struct timespec limit = {ns / 1000000000, ns % 1000000000};
    syscall(SYS_futex, b->word, FUTEX_WAIT, seen, &limit, NULL, 0); // shared: not FUTEX_PRIVATE
}

void crdi_channel_wake(_Atomic uint32_t* word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}
