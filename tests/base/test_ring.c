#include "check.h"
#include "shared/base.h"

#include <pthread.h>

static void a_ring_is_empty_full_and_in_order(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crdi_ring* r = NULL;
    check_ok(crdi_ring_create(ctx, sizeof(int), 5, &r)); // rounded up to 8
    check(crdi_ring_read(r) == NULL);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 8; i++) {
            int* p = crdi_ring_write(r);
            check(p != NULL);
            *p = 10 * turn + i;
            crdi_ring_commit(r);
        }
        check(crdi_ring_write(r) == NULL);
        check_int(crdi_ring_count(r), 8);
        for (int i = 0; i < 8; i++) {
            check_int(*(const int*)crdi_ring_read(r), 10 * turn + i);
            crdi_ring_release(r);
        }
        check(crdi_ring_read(r) == NULL);
    }
    crdi_ring_destroy(r);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

enum { BLOCKS = 200000 };

static void* produce(void* arg)
{
    for (int64_t i = 0; i < BLOCKS;) {
        int64_t* p = crdi_ring_write(arg);
        if (!p) { continue; }
        p[0] = i;
        p[1] = -i;
        crdi_ring_commit(arg);
        i++;
    }
    return NULL;
}

static void two_threads_lose_and_invent_nothing(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crdi_ring* r = NULL;
    check_ok(crdi_ring_create(ctx, 2 * sizeof(int64_t), 64, &r));
    pthread_t producer;
    check_int(pthread_create(&producer, NULL, produce, r), 0);
    for (int64_t i = 0; i < BLOCKS;) {
        const int64_t* p = crdi_ring_read(r);
        if (!p) { continue; }
        check_int(p[0], i);
        check_int(p[1], -i);
        crdi_ring_release(r);
        i++;
    }
    pthread_join(producer, NULL);
    crdi_ring_destroy(r);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_is_empty_full_and_in_order),
        cmocka_unit_test(two_threads_lose_and_invent_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
