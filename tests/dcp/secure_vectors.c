// secure_vectors: what two partners with the key 00 01 .. 1f send each other, as hex, with the
// secret of the first one, for vectors.py.
#include "shared/dcp.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "dcp/net/secure.h"
#include "testnet/testnet.h"

static void show(const char* name, const uint8_t* bytes, size_t length)
{
    printf("%s ", name);
    for (size_t i = 0; i < length; i++) {
        printf("%02x", bytes[i]);
    }
    printf("\n");
}

// Between a secured net and the network.
typedef struct tap {
    crd_dcp_net base;
    const char* names[2];
    int count;
} tap;

static bool tap_send(crd_dcp_net* n, const crd_dcp_address* to, const uint8_t* bytes, size_t length,
                     crd_dcp_address* from)
{
    tap* t = (tap*)n;
    if (t->count < 2) { show(t->names[t->count++], bytes, length); }
    return n->inner->ops->send(n->inner, to, bytes, length, from);
}
static bool tap_receive(crd_dcp_net* n, crd_dcp_packet* out)
{
    return crd_dcp_net_receive(n->inner, out);
}
static void tap_wait(crd_dcp_net* n, double seconds)
{
    crd_dcp_net_wait(n->inner, seconds);
}
static void tap_destroy(crd_dcp_net* n)
{
    crd_dcp_net_destroy(n->inner);
}
static const crdi_dcp_net_ops ops = {
    .destroy = tap_destroy, .send = tap_send, .receive = tap_receive, .wait = tap_wait};

int main(void)
{
    static tap taps[2] = {{.names = {"greeting", "there"}}, {.names = {"answer", "back"}}};
    const testnet_faults clean = {.delay = 0.001, .start = 1000};
    crd_context* ctx = crd_context_create(NULL);
    testnet* t = NULL;
    crd_dcp_net* net[2] = {0};
    crd_dcp_address at[2];
    crd_dcp_key key = {0};
    crd_dcp_packet k;
    crd_status st = CRD_OK;
    for (int i = 0; i < 32; i++) {
        key.bytes[i] = (uint8_t)i;
    }
    CRD_TRY(testnet_create(ctx, &clean, &t));
    for (int i = 0; i < 2; i++) {
        crdi_dcp_net_init(&taps[i].base, ctx, &ops);
        CRD_TRY(testnet_join(t, 0x0A000001 + (uint32_t)i, &taps[i].base.inner));
        CRD_TRY(crd_dcp_net_secure(ctx, &taps[i].base, &key, NULL, &net[i]));
        at[i] = (crd_dcp_address){0x0A000001 + (uint32_t)i, 8080, CRD_DCP_UDP};
        CRD_TRY(crd_dcp_net_listen(net[i], &at[i]));
    }
    (void)crdi_dcp_net_send(net[0], &at[1], (const uint8_t*)"question", 8);
    show("secret", ((crdi_secure_net*)net[0])->peers[0].secret, 32);
    for (int i = 0; i < 10; i++) {
        (void)testnet_advance(t, 1000 + 0.01 * (i + 1));
        for (int n = 0; n < 2; n++) {
            while (crd_dcp_net_receive(net[n], &k)) {
                if (n == 1) {
                    (void)crdi_dcp_net_send(net[1], &k.from, (const uint8_t*)"answer", 6);
                }
            }
        }
    }
fail:
    crd_dcp_net_destroy(net[0]);
    crd_dcp_net_destroy(net[1]);
    testnet_destroy(t);
    crd_context_destroy(ctx);
    return st < 0 || taps[0].count + taps[1].count != 4;
}
