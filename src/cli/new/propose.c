// Proposals for the free inputs of a system, for several commands.
#include "cardan/master.h"
#include "cli/new/new.h"

#include <string.h>

// Recordings and models are read now, and what is odd about a file decides what it is good for.
static void pass_on(void* user, crd_level level, const char* text)
{
    crdi_log_on(user, level, text);
}

crd_status crdi_propose(crd_context* ctx, const crd_system* s, crdi_proposed* out)
{
    crd_status st = CRD_OK;
    *out = (crdi_proposed){0};
    crd_context_options opt = crd_context_defaults();
    opt.log = pass_on;
    opt.log_user = ctx;
    out->quiet = crd_context_create(&opt);
    if (!out->quiet) { return CRD_E_MEMORY; }
    st = crd_ports_create(out->quiet, s, &out->ports);
    if (st >= 0) {
        crd_ports* p = out->ports;
        st = crd_propose(&p->arena, p->units, p->unit_count, p->ports, p->port_count, &out->items,
                         &out->count);
    }
    if (st < 0) {
        (void)crdi_fail(ctx, st, "%s", crd_error_text(out->quiet));
        crdi_proposed_clear(out);
    }
    return st;
}

void crdi_proposed_clear(crdi_proposed* p)
{
    crd_ports_destroy(p->ports);
    crd_context_destroy(p->quiet);
    *p = (crdi_proposed){0};
}

const char* crdi_port_name(const crdi_proposed* p, int port)
{
    const crd_endpoint* x = &p->ports->ports[port];
    const char* name =
        crdi_arena_format(&p->ports->arena, "%s.%s", p->ports->units[x->unit].name, x->name);
    return name ? name : "";
}

crd_status crdi_check_text(crd_context* ctx, const crd_text* text, const char* path)
{
    crd_context_options opt = crd_context_defaults();
    opt.level = CRD_LOG_ERROR; // inputs that are free now are no news
    crd_context* quiet = crd_context_create(&opt);
    if (!quiet) { return CRD_E_MEMORY; }
    crd_system* s = NULL;
    crd_master* m = NULL;
    crd_status st = crd_system_load_on(quiet, text->data, text->length, path, crd_ssp_read, &s);
    if (st >= 0) { st = crd_master_create(quiet, s, NULL, &m); }
    if (st < 0) { (void)crdi_fail(ctx, st, "%s", crd_error_text(quiet)); }
    crd_master_destroy(m);
    crd_system_destroy(s);
    crd_context_destroy(quiet);
    return st;
}
