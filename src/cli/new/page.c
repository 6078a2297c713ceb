// cardan new --ui and cardan connect --ui: connections drawn in a browser.
#include "cli/new/new.h"
#include "shared/web.h"

crd_status crdi_draw_serve(crdi_cli* cli, const crdi_watch_options* o, const crd_text* text,
                           const char* path, bool draft, crdi_result* out)
{
    crdi_draw* d = NULL;
    const crdi_draw_options opt = {
        .path = path, .text = text, .draft = draft, .base = crd_ssp_read};
    crd_status st = crdi_draw_create(cli->ctx, &opt, &d);
    if (st < 0) { return st; }
    st = crdi_page_serve(cli, o, NULL, d);
    const bool saved = crdi_draw_saved(d);
    crdi_draw_destroy(d);
    if (st < 0) { return st; }
    crdi_put(out, TEXT("file", path), BOOL("saved", saved));
    crdi_say(out, saved ? "%s: saved\n" : "%s: not saved, what was drawn last is gone\n", path);
    if (saved) { crdi_say(out, "go on with:\n  cardan check %s\n  cardan run %s\n", path, path); }
    return CRD_OK;
}
