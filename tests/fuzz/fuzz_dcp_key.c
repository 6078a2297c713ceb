// modules: dcp base
// Any text as a file with a key, and any messages in a pairing. A key file that is taken says the
// same when it is written and read again; a pairing gets to no key without the other side's secret.
#include "shared/dcp_pair.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void must(bool holds)
{
    if (!holds) { abort(); }
}

static void as_key(crd_context* ctx, const uint8_t* data, size_t size)
{
    crd_dcp_key key;
    const crd_status st = crdi_dcp_key_decode(ctx, "k", (const char*)data, size, &key);
    if (st < 0) {
        static const uint8_t zero[32];
        must(memcmp(key.bytes, zero, 32) == 0 && strlen(crd_error_text(ctx)) > 0);
        return;
    }
    must(key.role <= CRD_DCP_OBSERVER_ROLE && key.peer <= CRD_DCP_OBSERVER_ROLE);
    must((key.role == CRD_DCP_ANY_ROLE) == (key.peer == CRD_DCP_ANY_ROLE));
    must(key.role == CRD_DCP_ANY_ROLE || (key.expires != 0 && crdi_dcp_key_name_fits(key.name)));
}

// The first byte says which side, then messages: a length and bytes, where 0xFF is the right next
// one.
static void as_pairing(const uint8_t* data, size_t size)
{
    uint8_t secret[2][32], in[CRDI_PAIR_MESSAGE], out[CRDI_PAIR_MESSAGE];
    crdi_pair pair, other;
    size_t length = 0, n = 0;
    memset(secret, 7, sizeof secret);
    secret[1][0] = 9;
    const bool first = data[0] & 1;
    crdi_pair_init(&pair, first, CRD_DCP_BENCH_ROLE, "a", 1, NULL, secret[0], secret[1]);
    crdi_pair_init(&other, !first, CRD_DCP_MASTER_ROLE, "b", 1, NULL, secret[1], secret[0]);
    bool honest = true;
    n = crdi_pair_begin(&other, in);
    if (first) { (void)crdi_pair_take(&other, out, crdi_pair_begin(&pair, out), in, &n); }
    for (size_t i = 1; i < size;) {
        const size_t wanted = data[i++];
        if (wanted == 0xFF) { // what the other one would say now
            (void)crdi_pair_take(&pair, in, n, out, &length);
            if (length > 0) { (void)crdi_pair_take(&other, out, length, in, &n); }
            if (other.state == CRDI_PAIR_AGREED) { n = crdi_pair_confirm(&other, in); }
        } else {
            const size_t have = wanted < size - i ? wanted : size - i;
            uint8_t* copy = malloc(have + 1); // so that reading too far is seen
            memcpy(copy, data + i, have);
            (void)crdi_pair_take(&pair, copy, have, out, &length);
            free(copy);
            honest = false;
            i += have;
        }
        must(length == 0 || length == CRDI_PAIR_MESSAGE);
        must((pair.state == CRDI_PAIR_FAILED) == (pair.why != NULL));
        must(honest || !pair.confirmed || pair.state == CRDI_PAIR_AGREED ||
             pair.state == CRDI_PAIR_FAILED);
    }
    if (!honest && pair.confirmed) { // foreign bytes on the way: then those of the other one itself
        crd_dcp_key a, b;
        crdi_pair_key(&pair, 0, 0, &a);
        crdi_pair_key(&other, 0, 0, &b);
        must(memcmp(a.bytes, b.bytes, 32) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    static crd_context* ctx;
    if (!ctx) {
        must(sodium_init() >= 0);
        ctx = crd_context_create(NULL);
    }
    if (size == 0) { return 0; }
    if (data[0] & 0x80) {
        as_pairing(data, size);
    } else {
        as_key(ctx, data + 1, size - 1);
    }
    return 0;
}
