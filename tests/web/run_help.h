// A small run that is watched: a clock, an integrator behind it, and gains that stay loose.
#pragma once
#include "../master/models.h"

#include <stdio.h>

#include "shared/live.h"
#include "shared/web.h"

typedef struct small_run {
    crd_context* ctx;
    crd_system* s;
    crd_master* m;
    crdi_live* l;
    char names[1000][16];
} small_run;

static inline void open_run(small_run* r, crd_context* ctx, int loose, double step, double stop,
                            double pace, bool wait, bool read_only)
{
    *r = (small_run){.ctx = ctx};
    r->s = new_system(ctx, step, stop);
    r->s->run.pace.factor = pace;
    r->s->title = "a \"small\" run";
    const int c = add_unit(r->s, "clock", &clock_model, 0);
    const int e = add_unit(r->s, "int", &euler_model, 0);
    for (int i = 0; i < loose; i++) {
        snprintf(r->names[i], sizeof r->names[i], i ? "loose%d" : "loose", i);
        add_unit(r->s, r->names[i], &gain_model, 0);
    }
    wire(r->s, c, "y", e, "u");
    const crd_master_options mo = crd_master_defaults();
    check_run(crd_master_create(ctx, r->s, &mo, &r->m), ctx);
    crdi_live_options lo = crdi_live_defaults();
    lo.wait = wait;
    lo.read_only = read_only;
    check_run(crdi_live_create(ctx, r->m, &lo, &r->l), ctx);
}

static inline void close_run(small_run* r)
{
    crdi_live_destroy(r->l);
    crd_master_destroy(r->m);
    crd_system_destroy(r->s);
}
