// What cardan dcp scan, link and conform share: the network, signals, addresses, descriptions.
#include "cli/dcp/dcp_query.h"
#include "shared/base_interrupt.h"

#include <string.h>

bool crdi_query_stopped(void* user)
{
    (void)user;
    return crdi_interrupted();
}

crd_status crdi_query_open(crd_context* ctx, const char* key, const char* capture, crdi_query* out)
{
    crd_status st = CRD_OK;
    *out = (crdi_query){0};
    CRD_TRY(crd_dcp_net_create(ctx, &out->net));
    crd_dcp_secure_options opt = crd_dcp_secure_defaults();
    opt.max_peers = 4096; // what scan asks at once
    if (key) {
        CRD_TRY(crdi_dcp_net_secure_files(ctx, &key, 1, CRD_DCP_ANY_ROLE, &opt, &out->net));
    }
    if (capture) {
        CRD_TRY(crd_dcp_capture_open(ctx, capture, &out->capture));
        crd_dcp_net_capture(out->net, out->capture);
    }
    (void)crdi_interrupt_catch(&(crdi_interrupt_options){0}); // waiting is interrupted
    return CRD_OK;
fail:
    (void)crdi_query_close(out);
    return st;
}

crd_status crdi_query_close(crdi_query* p)
{
    crd_dcp_net_destroy(p->net);
    const crd_status st = crd_dcp_capture_close(p->capture);
    *p = (crdi_query){0};
    return st;
}

crd_status crdi_query_address(crd_context* ctx, const char* text, crd_dcp_address* out)
{
    const char* scheme = strstr(text, "://");
    const char* host = scheme ? scheme + 3 : text;
    char* whole =
        crdi_format(ctx, "%s%s%s", scheme ? "" : "udp://", text, strchr(host, ':') ? "" : ":8080");
    if (!whole) { return CRD_E_MEMORY; }
    const crd_status st = crd_dcp_address_parse(ctx, whole, out);
    crd_free(ctx, whole);
    if (st >= 0 && out->port == 0) {
        return crdi_fail(ctx, CRD_E_RANGE, "address \"%s\": port 0, expected 1 to 65535",
                         crdi_clip(text).text);
    }
    return st;
}

crd_status crdi_query_description(crd_context* ctx, const char* path, crd_dcp_description** out)
{
    const crd_dcp_finding* f = NULL;
    int count = 0;
    const crd_status st = crd_dcp_load(ctx, path, out, &f, &count);
    for (int i = 0; st >= 0 && i < count; i++) {
        if (f[i].severity != CRD_DCP_FAULT) { continue; }
        const crd_status wrong =
            crdi_fail(ctx, CRD_E_FORMAT, "%s:%d: %s (%s)", path, f[i].line, f[i].text, f[i].code);
        crd_dcp_description_destroy(*out);
        *out = NULL;
        return wrong;
    }
    return st;
}
