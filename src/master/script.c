// Scripts: connections that do once more what they did in a recorded run.
#include "master/master.h"

#include <string.h>

const crd_script* crdi_script_find(const crd_master* m, const char* to)
{
    for (int i = 0; i < m->opt.script_count; i++) {
        if (strcmp(m->opt.scripts[i].to, to) == 0) { return &m->opt.scripts[i]; }
    }
    return NULL;
}

void crdi_script_seed(crd_master* m)
{
    for (int i = 0; i < m->flow_count && m->opt.script_count; i++) {
        crdi_flow* f = &m->flows[i];
        const crd_script* s = crdi_script_find(m, f->to_name);
        if (!s || !s->past || s->past->count == 0) { continue; }
        crdi_flow_start(m, f, &s->past->sample[0]);
        f->past = *s->past;
    }
}
