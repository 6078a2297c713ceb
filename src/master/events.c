// What happens besides the values: start, end, warnings, failures. They go into the record with
// their time.
#include "master/master.h"

#include <stdio.h>
#include <string.h>

// Times of events come from the count, as those of rows; before the first step it is the start.
double crdi_master_time_seen(const crd_master* m)
{
    double t = 0;
    __atomic_load(&m->time, &t, __ATOMIC_RELAXED);
    return m->controlled ? t : crdi_master_time_of(m, __atomic_load_n(&m->n, __ATOMIC_RELAXED));
}

void crdi_master_event(crd_master* m, crd_event_kind kind, const char* text)
{
    const double t = crdi_master_time_seen(m);
    if (m->recorder) { crd_recorder_event(m->recorder, kind, t, text); }
    if (m->live) { crdi_live_note_event(m, kind, t, text); }
    if (m->exchange) { crdi_exchange_event(m, kind, t, text); }
}

// A unit that is busy on a thread of its own may be writing: its remark is there in a later tick.
void crdi_master_heed(crd_master* m)
{
    for (int i = 0; i < m->member_count; i++) {
        crdi_member* p = &m->members[i];
        const int64_t remarks = __atomic_load_n(&p->unit->remarks, __ATOMIC_ACQUIRE);
        if (remarks == p->remarks || p->crashed || crdi_async_busy(m, i)) { continue; }
        p->remarks = remarks;
        crdi_master_event(m, CRD_EVENT_MARK, p->unit->remark);
    }
}

// Warnings are rare: this is off the step path, and may lock.
void crdi_master_hear(void* user, crd_level level, const char* text)
{
    crd_master* m = user;
    if (__atomic_load_n(&m->deaf, __ATOMIC_ACQUIRE)) { return; }
    if (level == CRD_LOG_WARNING) {
        pthread_mutex_lock(&m->ear);
        __atomic_fetch_add(&m->warnings, 1, __ATOMIC_RELAXED);
        if (m->hears) {
            crdi_master_event(m, CRD_EVENT_WARNING, text);
        } else if (m->early_count < CRDI_EARLY) {
            snprintf(m->early[m->early_count++], sizeof m->early[0], "%s", text);
        }
        pthread_mutex_unlock(&m->ear);
    }
    crdi_log_on(m->ctx, level, text);
}

void crdi_master_start_hearing(crd_master* m)
{
    char text[128];
    snprintf(text, sizeof text, "start: %d unit%s, %sstep %.10g s", m->member_count,
             m->member_count == 1 ? "" : "s", m->controlled ? "first " : "",
             m->controlled ? m->step.h : m->tick);
    crdi_master_event(m, CRD_EVENT_START, text);
    pthread_mutex_lock(&m->ear);
    for (int i = 0; i < m->early_count; i++) {
        crdi_master_event(m, CRD_EVENT_WARNING, m->early[i]);
    }
    m->hears = true;
    pthread_mutex_unlock(&m->ear);
}

void crdi_master_stop_hearing(crd_master* m)
{
    pthread_mutex_lock(&m->ear);
    m->hears = false;
    m->early_count = CRDI_EARLY; // what comes now is counted only
    pthread_mutex_unlock(&m->ear);
}

crd_status crdi_master_note_failure(crd_master* m, crd_status st)
{
    if (st < 0 && !m->message[0]) {
        snprintf(m->message, sizeof m->message, "%s", crd_error_text(m->ctx));
        if (st != CRD_E_IO || !m->recorder) { crdi_master_event(m, CRD_EVENT_ERROR, m->message); }
    }
    return st;
}
