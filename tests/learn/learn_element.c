// An element with its client as a process of its own, for the end-to-end tests:
//     learn_element ADDRESS
// reads "step N" lines, does so many macro steps as fast as it can (the client's clock is simulated
// time) and answers each with one line of JSON.
#include "cardan/learn.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 6 };
static const double dT = 0.01;

static double signal_at(int64_t n)
{
    const double t = dT * (double)n;
    return sin(6.7 * t) + 0.6 * sin(9.7 * t + 2) + 0.15 * sin(34 * t + 0.3);
}

static crd_coupling* make_element(crd_context* ctx)
{
    crd_design design = crd_design_defaults(CRD_METHOD_WIENER);
    crd_linear l = {0};
    crd_network n = {0};
    crd_coupling* c = NULL;
    crd_coupling_options opt = crd_coupling_defaults();
    design.taps = 12;
    if (crd_linear_make(ctx, &design, K, &l) < 0 || crd_network_morph(ctx, &l, 0.01, &n) < 0) {
        return NULL;
    }
    opt.step = dT;
    opt.algorithm = CRD_ALGORITHM_NETWORK;
    opt.network = &n;
    (void)crd_coupling_create(ctx, &opt, &c);
    crd_network_clear(ctx, &n);
    crd_linear_clear(ctx, &l);
    return c;
}

int main(int argc, char** argv)
{
    static const char* const links[] = {"offline", "connecting", "online"};
    crd_context* ctx = crd_context_create(NULL);
    crd_coupling* element = make_element(ctx);
    crd_learn_client* client = NULL;
    if (argc != 2 || !element ||
        crd_learn_client_create(ctx, argv[1], "e2e.torque", dT, element, &client) < 0) {
        fprintf(stderr, "learn_element: %s\n", crd_error_text(ctx));
        return 1;
    }
    char line[64];
    int64_t n = 0;
    bool finite = true;
    while (fgets(line, sizeof line, stdin) && strncmp(line, "step ", 5) == 0) {
        const int64_t until = n + strtol(line + 5, NULL, 10);
        double sum = 0;
        const int64_t begin = n;
        for (; n < until; n++) {
            const double t = dT * (double)n, stamp = dT * (double)(n - K);
            crd_coupling_push(element, signal_at(n - K), stamp, -1);
            const double error = crd_coupling_eval(element, t) - signal_at(n);
            crd_learn_client_step(client, signal_at(n - K), stamp, t);
            finite = finite && isfinite(error);
            sum += error * error;
        }
        const crd_learn_client_counts c = crd_learn_client_get_counts(client);
        const crd_coupling_counts e = crd_coupling_get_counts(element);
        printf("{\"n\": %" PRId64 ", \"rms\": %.17g, \"finite\": %s, \"link\": \"%s\", "
               "\"sent\": %" PRId64 ", \"dropped\": %" PRId64 ", \"networks\": %" PRId64
               ", \"refused\": %" PRId64 ", \"connects\": %" PRId64 ", \"malformed\": %" PRId64
               ", \"swaps\": %" PRId64 ", \"rollbacks\": %" PRId64 "}\n",
               n, sqrt(sum / (double)(n > begin ? n - begin : 1)), finite ? "true" : "false",
               links[crd_learn_client_link(client)], c.sent, c.dropped, c.networks, c.refused,
               c.connects, c.malformed, e.swaps, e.rollbacks);
        fflush(stdout);
    }
    crd_learn_client_destroy(client);
    crd_coupling_destroy(element);
    crd_context_destroy(ctx);
    return 0;
}
