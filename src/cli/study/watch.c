// The page of a study that is being made: the pictures of `study plot`, again and again.
#include "cli/study/pictures.h"
#include "shared/web.h"

#include <time.h>

struct crdi_study_watch {
    crdi_cli* cli;
    crdi_study* study;
    crdi_web* web;
    int64_t next; // ns: no picture before
};

crd_status crdi_study_watch_start(crdi_cli* cli, const crdi_watch_options* o, crdi_study* s,
                                  crdi_study_watch** out)
{
    crdi_study_watch* w = crdi_new(cli->ctx, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    *w = (crdi_study_watch){.cli = cli, .study = s};
    crdi_web_options web = crdi_page_web_options(o);
    web.page = web.sheet = true;
    const crd_status st = crdi_web_start(cli->ctx, NULL, &web, &w->web);
    if (st < 0) {
        crd_free(cli->ctx, w);
        return crdi_name_page_option(cli->ctx, st, o);
    }
    crdi_tell(cli, "watch", crdi_web_url(w->web));
    *out = w;
    return CRD_OK;
}

static const char* title_of(const crdi_study_watch* w)
{
    const crdi_study_file* f = crdi_study_get_file(w->study);
    return *f->title ? f->title : f->file;
}

// At most a twentieth of the time goes into pictures.
static void put_picture(crdi_study_watch* w, const char* line)
{
    crdi_pictures p = {0};
    crd_text svg;
    const int64_t begin = crdi_now_ns();
    crd_text_init(&svg, w->cli->ctx);
    crd_status st = crdi_pictures_init(&p, w->cli, w->study, NULL);
    if (st >= 0) { st = crdi_pictures_scatters(&p); }
    if (st >= 0 && p.count == 0) { st = crdi_pictures_usual(&p); } // words alone vary
    if (st >= 0) { st = crdi_pictures_svg(&p, &svg); }
    (void)crdi_web_put_sheet(w->web, title_of(w), line, st >= 0 && !svg.failed ? &svg : NULL);
    crdi_pictures_clear(&p);
    crd_text_clear(&svg);
    const int64_t end = crdi_now_ns();
    w->next = end + 20 * (end - begin) + 500000000;
}

void crdi_study_watch_show(crdi_study_watch* w, const char* line)
{
    if (!w || !crdi_web_sheet_wanted(w->web)) { return; }
    if (crdi_now_ns() < w->next) {
        (void)crdi_web_put_sheet(w->web, title_of(w), line, NULL);
    } else {
        put_picture(w, line);
    }
}

void crdi_study_watch_stop(crdi_study_watch* w, const char* line)
{
    enum { PATIENCE = 30 }; // tenths of a second
    if (!w) { return; }
    if (crdi_web_sheet_wanted(w->web)) {
        put_picture(w, line);
        for (int i = 0; i < PATIENCE && !crdi_web_sheet_wanted(w->web); i++) {
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        }
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL); // the picture itself
    }
    crdi_web_stop(w->web, 0);
    crd_free(w->cli->ctx, w);
}
