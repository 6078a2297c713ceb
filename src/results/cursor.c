// Cursors of any format; what they do is the format's business.
#include "results/recording.h"
#include "shared/results.h"

#include <assert.h>

crd_status crd_cursor_open(crd_recording* r, int group, const int* signals, int count,
                           crd_cursor** out)
{
    const crd_recording_info* info = &r->info;
    assert(group >= 0 && group < info->group_count && count >= 0);
    for (int i = 0; i < count; i++) {
        if (signals[i] < 0 || signals[i] >= info->signal_count ||
            info->signals[signals[i]].group != group) {
            return crdi_fail(r->ctx, CRD_E_RANGE,
                             "%s: signal %d is not in group %d, a cursor walks through one group",
                             info->path, signals[i], group);
        }
    }
    return r->ops->cursor_open(r, group, signals, count, out);
}

crd_status crd_cursor_next(crd_cursor* c, crd_block* out)
{
    return c->recording->ops->cursor_next(c, out);
}

crd_status crdi_cursor_seek(crd_cursor* c, int64_t row)
{
    assert(row >= 0);
    return c->recording->ops->cursor_seek(c, row);
}

void crd_cursor_close(crd_cursor* c)
{
    if (c) { c->recording->ops->cursor_close(c); }
}
