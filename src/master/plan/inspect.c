// What a run consists of, for those who analyse it.
#include "master/master.h"

#include <math.h>

crd_unit* crd_master_get_unit(crd_master* m, int unit)
{
    return m->plan->members[unit].unit;
}

int crd_master_link_count(const crd_master* m)
{
    return m->plan->connection_count;
}

crd_master_link crd_master_get_link(const crd_master* m, int link)
{
    const crdi_connection* l = &m->plan->connections[link];
    crd_master_link out = {.from_unit = l->from.member,
                           .to_unit = l->to.member,
                           .from_variable = l->from.variable,
                           .from_element = l->from.element,
                           .to_variable = l->to.variable,
                           .to_element = l->to.element,
                           .gain = l->paired    ? 0
                                   : l->mapping ? NAN
                                                : l->gain, // pairs: cut
                           .spec = l->spec,
                           .step = m->plan->members[l->from.member].step};
    if (l->spec->coupling) {
        const crdi_coupled* c = &m->connections.coupled[l->couple];
        out.element = c->estimators[0].description;
        out.step = c->interval;
    }
    return out;
}
