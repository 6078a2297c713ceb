// Scripts: connections that do once more what they did in a recorded run.
#include "master/master.h"

#include <string.h>

const crd_script* crdi_script_find(const crdi_plan* plan, const char* to)
{
    for (int i = 0; i < plan->opt.script_count; i++) {
        if (strcmp(plan->opt.scripts[i].to, to) == 0) { return &plan->opt.scripts[i]; }
    }
    return NULL;
}

void crdi_script_start(crd_master* m)
{
    for (int i = 0; i < m->connections.prediction_count && m->plan->opt.script_count; i++) {
        crdi_prediction* f = &m->connections.predictions[i];
        const crd_script* s = crdi_script_find(m->plan, f->of->to_name);
        if (!s || !s->past || s->past->count == 0) { continue; }
        crdi_prediction_start(m, f, &s->past->sample[0]);
        f->past = *s->past;
    }
}
