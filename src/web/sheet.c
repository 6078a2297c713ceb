// A picture that a program makes anew as it goes. Pages ask every second whether there is another.
#include "shared/base_values.h"
#include "web/server.h"

#include <string.h>

struct crdi_web_sheet {
    crd_context* ctx; // its own: pictures come from another thread
    pthread_mutex_t lock;
    crd_text picture, about;
    int64_t number;
    _Atomic bool wanted;
};

crd_status crdi_web_sheet_create(crd_context* ctx, struct crdi_web_sheet** out)
{
    crd_context* own = crdi_context_child(ctx);
    struct crdi_web_sheet* s = own ? crdi_new(own, sizeof *s) : NULL;
    if (!s) {
        crd_context_destroy(own);
        return CRD_E_MEMORY;
    }
    s->ctx = own;
    pthread_mutex_init(&s->lock, NULL);
    crd_text_init(&s->picture, own);
    crd_text_init(&s->about, own);
    *out = s;
    return CRD_OK;
}

void crdi_web_sheet_destroy(struct crdi_web_sheet* s)
{
    if (!s) { return; }
    crd_context* ctx = s->ctx;
    crd_text_clear(&s->picture);
    crd_text_clear(&s->about);
    pthread_mutex_destroy(&s->lock);
    crd_free(ctx, s);
    crd_context_destroy(ctx);
}

void crdi_web_sheet_tell(struct crdi_web_sheet* s, bool picture, crd_text* out)
{
    pthread_mutex_lock(&s->lock);
    const crd_text* t = picture ? &s->picture : &s->about;
    if (t->length) {
        crdi_text_put(out, t->data, t->length);
    } else {
        crdi_text_add(out,
                      picture ? "<svg xmlns=\"http://www.w3.org/2000/svg\"/>" : "{\"number\":0}");
    }
    pthread_mutex_unlock(&s->lock);
    s->wanted = true;
}

crd_status crdi_web_put_sheet(crdi_web* w, const char* title, const char* line,
                              const crd_text* picture)
{
    struct crdi_web_sheet* s = w->sheet;
    crdi_json_writer j;
    pthread_mutex_lock(&s->lock);
    s->about.length = 0;
    if (picture) {
        s->picture.length = 0;
        crdi_text_put(&s->picture, picture->data, picture->length);
        s->number++;
    }
    crdi_json_writer_init(&j, &s->about, CRDI_JSON_COMPACT);
    crdi_json_begin_object(&j, NULL);
    crdi_json_put(&j, INT("number", s->number), TEXT("title", title), TEXT("line", line));
    crdi_json_end(&j);
    const bool failed = s->picture.failed || s->about.failed;
    if (failed) {
        crd_text_clear(&s->picture);
        crd_text_clear(&s->about);
    }
    s->wanted = s->wanted && !picture;
    pthread_mutex_unlock(&s->lock);
    return failed ? CRD_E_MEMORY : CRD_OK;
}

bool crdi_web_sheet_wanted(crdi_web* w)
{
    return w->sheet->wanted;
}
