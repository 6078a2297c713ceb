// What a run consists of, for those who analyse it.
#include "master/master.h"

#include <math.h>

crd_unit* crd_master_get_unit(crd_master* m, int unit)
{
    return m->members[unit].unit;
}

int crd_master_link_count(const crd_master* m)
{
    return m->link_count;
}

crd_master_link crd_master_get_link(const crd_master* m, int link)
{
    const crdi_link* l = &m->links[link];
    crd_master_link out = {.from_unit = l->from_member,
                           .to_unit = l->to_member,
                           .from_variable = l->from_variable,
                           .from_element = l->from_element,
                           .to_variable = l->to_variable,
                           .to_element = l->to_element,
                           .gain = l->chain ? NAN : l->gain,
                           .spec = l->spec,
                           .step = m->members[l->from_member].step};
    if (l->spec->coupling) {
        const crdi_couple* c = &m->couples[l->couple];
        out.element = c->taps[0].description;
        out.step = c->interval;
    }
    return out;
}
