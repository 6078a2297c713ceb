// Many runs of one system, each a step on: what a learner does all day, without a call for each
// value.
#include "master/master.h"

static int numbers_of(const crd_batch* b, const int* handles, int count)
{
    int n = 0;
    for (int i = 0; i < count && b->count > 0; i++) {
        const crd_handle_info* h = crd_master_handle(b->runs[0], handles[i]);
        n += h ? h->count : 1; // whoever sets or gets it says that it is none
    }
    return n;
}

static crd_status batch_set(const crd_batch* b, crd_master* m, const double* values)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < b->set_count && st >= 0; i++) {
        st = crd_master_set(m, b->set[i], values);
        if (st >= 0) { values += crd_master_handle(m, b->set[i])->count; }
    }
    return st;
}

static crd_status batch_get(const crd_batch* b, crd_master* m, double* values)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < b->get_count && st >= 0; i++) {
        st = crd_master_get(m, b->get[i], values);
        if (st >= 0) { st = crdi_handles_check(m, b->get[i], values); }
        if (st >= 0) { values += crd_master_handle(m, b->get[i])->count; }
    }
    return st;
}

int crd_master_advance_batch(const crd_batch* b)
{
    const int set = numbers_of(b, b->set, b->set_count);
    const int get = numbers_of(b, b->get, b->get_count);
    int failed = 0;
    for (int i = 0; i < b->count; i++) {
        crd_master* m = b->runs[i];
        if (!m || (b->skip && b->skip[i])) { continue; }
        crd_status st = CRD_OK;
        if (b->ticks > 0) {
            st =
                crd_master_ended(m) == CRD_END_NONE ? batch_set(b, m, b->values + i * set) : CRD_OK;
            if (st >= 0) { st = crd_master_advance(m, b->ticks); }
        }
        if (st >= 0) { st = batch_get(b, m, b->out + i * get); }
        b->ends[i] = st < 0 ? (int32_t)st : (int32_t)crd_master_ended(m);
        failed += st < 0;
    }
    return failed;
}
