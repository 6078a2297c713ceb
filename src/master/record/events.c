// What happens besides the values: start, end, warnings, failures. They go into the record with
// their time.
#include "master/master.h"

#include <stdio.h>
#include <string.h>

crd_status crdi_events_init(crd_master* m)
{
    pthread_mutex_init(&m->events.lock, NULL);
    m->log = crdi_context_tap(m->ctx, crdi_events_from_log, m);
    return m->log ? CRD_OK : crdi_fail(m->ctx, CRD_E_MEMORY, "out of memory");
}

void crdi_events_clear(crd_master* m)
{
    crd_context_destroy(m->log);
    pthread_mutex_destroy(&m->events.lock);
}

void crdi_events_note(crd_master* m, crd_event_kind kind, const char* text)
{
    const double t = crdi_time_seen(m);
    crdi_record_event(m, kind, t, text);
    if (m->live) { crdi_live_note_event(m, kind, t, text); }
    if (m->exchange) { crdi_exchange_event(m, kind, t, text); }
}

// A unit that is busy on a thread of its own may be writing: its remark is there in a later tick.
void crdi_events_note_remarks(crd_master* m)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        crdi_member* p = &m->plan->members[i];
        const int64_t remarks = __atomic_load_n(&p->unit->remarks, __ATOMIC_ACQUIRE);
        if (remarks == p->run->remarks || p->run->crashed || crdi_async_busy(m, i)) { continue; }
        p->run->remarks = remarks;
        crdi_events_note(m, CRD_EVENT_MARK, p->unit->remark);
    }
}

// Warnings are rare: this is off the step path, and may lock.
void crdi_events_from_log(void* user, crd_level level, const char* text)
{
    crd_master* m = user;
    if (__atomic_load_n(&m->events.muted, __ATOMIC_ACQUIRE)) { return; }
    if (level == CRD_LOG_WARNING) {
        pthread_mutex_lock(&m->events.lock);
        __atomic_fetch_add(&m->events.warnings, 1, __ATOMIC_RELAXED);
        if (m->events.recording) {
            crdi_events_note(m, CRD_EVENT_WARNING, text);
        } else if (m->events.early_count < CRDI_EARLY) {
            snprintf(m->events.early[m->events.early_count++], sizeof m->events.early[0], "%s",
                     text);
        }
        pthread_mutex_unlock(&m->events.lock);
    }
    crdi_log_on(m->ctx, level, text);
}

void crdi_events_lock(crd_master* m)
{
    pthread_mutex_lock(&m->events.lock);
}

void crdi_events_unlock(crd_master* m)
{
    pthread_mutex_unlock(&m->events.lock);
}

void crdi_events_mute(crd_master* m)
{
    __atomic_store_n(&m->events.muted, true, __ATOMIC_RELEASE);
}

int64_t crdi_events_warnings(const crd_master* m)
{
    return __atomic_load_n(&m->events.warnings, __ATOMIC_RELAXED);
}

void crdi_events_start(crd_master* m)
{
    char text[128];
    if (m->events.recording) { return; }
    snprintf(text, sizeof text, "start: %d unit%s, %sstep %.10g s", m->plan->member_count,
             m->plan->member_count == 1 ? "" : "s", m->plan->controlled ? "first " : "",
             crdi_step_nominal(m));
    crdi_events_note(m, CRD_EVENT_START, text);
    crdi_events_lock(m);
    for (int i = 0; i < m->events.early_count; i++) {
        crdi_events_note(m, CRD_EVENT_WARNING, m->events.early[i]);
    }
    m->events.recording = true;
    pthread_mutex_unlock(&m->events.lock);
}

void crdi_events_stop(crd_master* m)
{
    pthread_mutex_lock(&m->events.lock);
    m->events.recording = false;
    m->events.early_count = CRDI_EARLY; // what comes now is counted only
    pthread_mutex_unlock(&m->events.lock);
}

crd_status crdi_events_note_failure(crd_master* m, crd_status st)
{
    if (st < 0 && !m->life.message[0]) {
        snprintf(m->life.message, sizeof m->life.message, "%s", crd_error_text(m->ctx));
        if (st != CRD_E_IO || !m->record.recorder) {
            crdi_events_note(m, CRD_EVENT_ERROR, m->life.message);
        }
    }
    return st;
}
