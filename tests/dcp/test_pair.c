// Pairing: what both sides get, and what somebody in the middle, or with any bytes, does not get.
#include "check.h"

#include "shared/dcp_pair.h"

#include <sodium.h>
#include <string.h>

enum { M = CRDI_PAIR_MESSAGE };

typedef struct both {
    crdi_pair a, b;
} both;

static void begin(both* x, const crd_dcp_key* old_a, const crd_dcp_key* old_b)
{
    uint8_t secret[2][32], random[2][32];
    for (int i = 0; i < 32; i++) {
        secret[0][i] = (uint8_t)i;
        secret[1][i] = (uint8_t)(0x40 + i);
        random[0][i] = (uint8_t)(0x80 + i);
        random[1][i] = (uint8_t)(0xC0 + i);
    }
    check(sodium_init() >= 0);
    crdi_pair_init(&x->a, true, CRD_DCP_MASTER_ROLE, "desk", 30, old_a, secret[0], random[0]);
    crdi_pair_init(&x->b, false, CRD_DCP_BENCH_ROLE, "hall7", 400, old_b, secret[1], random[1]);
}

// All messages up to the codes; `change` byte of message `which` is changed on its way.
static void meet(both* x, int which, size_t change)
{
    uint8_t m[M], back[M];
    size_t n = crdi_pair_begin(&x->a, m);
    crdi_pair* to = &x->b;
    for (int i = 0; i < 3 && n > 0; i++) {
        if (i == which) { m[change % n] ^= 1; }
        size_t length = 0;
        (void)crdi_pair_take(to, m, n, back, &length);
        memcpy(m, back, length);
        n = length;
        to = to == &x->a ? &x->b : &x->a;
    }
}

static bool confirm(both* x)
{
    uint8_t m[M], back[M];
    size_t length = 0;
    if (x->a.state != CRDI_PAIR_AGREED || x->b.state != CRDI_PAIR_AGREED) { return false; }
    (void)crdi_pair_take(&x->b, m, crdi_pair_confirm(&x->a, m), back, &length);
    if (x->b.state == CRDI_PAIR_FAILED) { return false; }
    (void)crdi_pair_take(&x->a, m, crdi_pair_confirm(&x->b, m), back, &length);
    return x->a.confirmed && x->b.confirmed;
}

static void both_sides_get_the_same_code_and_key(void** state)
{
    both x;
    begin(&x, NULL, NULL);
    meet(&x, -1, 0);
    char one[10], two[10];
    crdi_pair_code(&x.a, one);
    crdi_pair_code(&x.b, two);
    check_text(one, two);
    check(confirm(&x));
    crd_dcp_key a, b;
    crdi_pair_key(&x.a, 1000000000, 7, &a); // 2001-09-09
    crdi_pair_key(&x.b, 1000000000, 7, &b);
    check(memcmp(a.bytes, b.bytes, 32) == 0);
    check_int(a.role, CRD_DCP_MASTER_ROLE);
    check_int(a.peer, CRD_DCP_BENCH_ROLE);
    check_int(b.role, CRD_DCP_BENCH_ROLE);
    check_int(b.peer, CRD_DCP_MASTER_ROLE);
    check_text(a.name, "hall7");
    check_text(b.name, "desk");
    check_int(a.expires, 999993600 + 30 * 86400); // midnight of that day, the lesser of both
    check_int(b.expires, a.expires);
    // Of vectors.py, which computes it with hashlib and a ladder of its own.
    char hex[65];
    check_text(sodium_bin2hex(hex, sizeof hex, a.bytes, 32),
               "41f7f106374765477b3356b338356ce4ca54f5c1ca39ba27b140c2604cb68365");
    check_text(one, "2415 8766");
}

static void whatever_is_changed_on_the_way_nobody_gets_a_key(void** state)
{
    for (int which = 0; which < 3; which++) {
        for (size_t i = 0; i < M; i++) {
            both x;
            begin(&x, NULL, NULL);
            meet(&x, which, i);
            check(!confirm(&x)); // refused at once, or the confirmations do not fit
            char one[10] = "", two[10] = "";
            if (x.a.state == CRDI_PAIR_AGREED) { crdi_pair_code(&x.a, one); }
            if (x.b.state == CRDI_PAIR_AGREED) { crdi_pair_code(&x.b, two); }
            check(strcmp(one, two) != 0 || !*one);
        }
    }
}

// With keys of its own towards both: other codes, and the first side cannot be had to wait for
// another key of the attacker's than the one it has committed itself to.
static void somebody_in_the_middle_shows_other_codes(void** state)
{
    int equal = 0;
    for (int i = 0; i < 1000; i++) {
        both x, y; // a with the attacker, the attacker with b
        uint8_t secret[32], random[32];
        begin(&x, NULL, NULL);
        begin(&y, NULL, NULL);
        randombytes_buf(secret, 32);
        randombytes_buf(random, 32);
        crdi_pair_init(&x.b, false, CRD_DCP_BENCH_ROLE, "hall7", 400, NULL, secret, random);
        crdi_pair_init(&y.a, true, CRD_DCP_MASTER_ROLE, "desk", 30, NULL, secret, random);
        meet(&x, -1, 0);
        meet(&y, -1, 0);
        char one[10], two[10];
        crdi_pair_code(&x.a, one);
        crdi_pair_code(&y.b, two);
        equal += strcmp(one, two) == 0;
    }
    check_int(equal, 0); // by chance: once in 100,000 runs of this test
    // An opening that is not what was committed to.
    both x;
    uint8_t m[M], back[M];
    size_t n = 0;
    begin(&x, NULL, NULL);
    (void)crdi_pair_take(&x.b, m, crdi_pair_begin(&x.a, m), back, &n);
    memcpy(m, x.a.opening, M);
    m[70]++;
    check_int(crdi_pair_take(&x.b, m, M, back, &n), CRDI_PAIR_FAILED);
    check_contains(x.b.why, "committed");
    check_int(crdi_pair_take(&x.b, x.a.opening, M, back, &n), CRDI_PAIR_FAILED); // for good
}

static void a_key_is_renewed_by_who_has_it(void** state)
{
    crd_dcp_key old = {.bytes = {1, 2, 3}}, wrong = {.bytes = {1, 2, 4}}, made;
    const crd_dcp_key* pairs[][2] = {{&old, &old}, {&old, &wrong}, {&old, NULL}, {NULL, &old}};
    for (int i = 0; i < 4; i++) {
        both x;
        begin(&x, pairs[i][0], pairs[i][1]);
        meet(&x, -1, 0);
        check_int(confirm(&x), i == 0);
        if (i > 0) { continue; }
        crdi_pair_key(&x.a, 1000000000, 7, &made);
        check(memcmp(made.previous, old.bytes, 32) == 0);
        check_int(made.previous_until, 999993600 + 7 * 86400);
        check(memcmp(made.bytes, old.bytes, 32) != 0);
    }
}

static void two_masters_do_not_pair(void** state)
{
    both x;
    uint8_t zero[32] = {1};
    begin(&x, NULL, NULL);
    crdi_pair_init(&x.b, false, CRD_DCP_OBSERVER_ROLE, "eye", 1, NULL, zero, zero);
    meet(&x, -1, 0);
    check_int(x.a.state, CRDI_PAIR_FAILED);
    check_contains(x.a.why, "neither side is a bench");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_get_the_same_code_and_key),
        cmocka_unit_test(whatever_is_changed_on_the_way_nobody_gets_a_key),
        cmocka_unit_test(somebody_in_the_middle_shows_other_codes),
        cmocka_unit_test(a_key_is_renewed_by_who_has_it),
        cmocka_unit_test(two_masters_do_not_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
