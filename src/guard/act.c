// Speaking to the slaves in the master's place: from its sockets, with its ids, and with its key,
// for which a secured slave gets a handshake of its own.
#include "guard/guard.h"
#include "shared/results.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const double most_rest = 60; // s until a bench that does not come to rest is said

// While benches come to rest the page is served.
static bool serve_meanwhile(void* user)
{
    char cause[GUARD_TEXT];
    (void)guard_stop_look(user, 0, cause);
    return false;
}

static crd_status make_session(guard* g, guard_session* s, const crdi_ward_message* m)
{
    crd_status st = CRD_OK;
    crd_dcp_master_options o = crd_dcp_master_defaults();
    o.patience = o.rest = most_rest;
    o.log = false;
    o.cancelled = serve_meanwhile;
    o.user = g;
    CRD_TRY(crd_dcp_net_create(g->ctx, &s->net));
    const char *keys[CRD_DCP_MOST_KEYS], *key = m->keys;
    for (int i = 0; i < m->key_count; i++, key += strlen(key) + 1) {
        keys[i] = key;
    }
    if (m->key_count > 0) {
        CRD_TRY(crdi_dcp_net_secure_files(g->ctx, keys, m->key_count, CRD_DCP_MASTER_ROLE, NULL,
                                          &s->net));
    }
    CRD_TRY(crd_dcp_master_create(g->ctx, s->net, &o, &s->master));
fail:
    return st;
}

// All that is asked of it is to stop: no variable is needed.
static crd_status add_slave(guard* g, guard_session* s, int row)
{
    static const crd_dcp_resolution usual = {.numerator = 1, .denominator = 1000};
    static crd_dcp_description any = {.name = "slave", .major = 1, .hrt = true, .srt = true};
    any.nrt = any.udp.offered = any.tcp.offered = true;
    any.resolutions = (crd_dcp_resolution*)(uintptr_t)&usual;
    any.resolution_count = 1;
    const crdi_ward_slave* w = &g->page->slaves[row];
    int index = 0;
    const crd_status st = crd_dcp_master_add(s->master,
                                             &(crd_dcp_slave_spec){.name = w->name,
                                                                   .description = &any,
                                                                   .control = w->control,
                                                                   .mode = (crd_dcp_op_mode)w->mode,
                                                                   .alive = 3},
                                             &index);
    if (st < 0) { return st; }
    s->slaves[index] = row;
    g->rows[row] = index + 1;
    return CRD_OK;
}

static crd_status take_socket(guard* g, const crdi_ward_message* m, int fd)
{
    crd_status st = CRD_OK;
    if (m->slave < 0 || m->slave >= atomic_load(&g->page->slave_count)) {
        close(fd);
        return crdi_fail(g->ctx, CRD_E_RANGE, "a message about slave %d", m->slave);
    }
    const crdi_ward_slave* w = &g->page->slaves[m->slave];
    guard_session* s = &g->sessions[w->session];
    if (!s->net) { CRD_TRY(make_session(g, s, m)); }
    CRD_TRY(crdi_dcp_net_adopt(s->net, fd, &w->control));
    fd = -1;
    if (!g->rows[m->slave]) { CRD_TRY(add_slave(g, s, m->slave)); }
    // What is there now, not what will be: beyond the limit there would be no memory at all.
    g->locked = mlockall(MCL_CURRENT) == 0;
    return CRD_OK;
fail:
    if (fd >= 0) { close(fd); }
    return st;
}

bool guard_take_message(guard* g)
{
    crdi_ward_message m;
    struct iovec part = {&m, sizeof m};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } beside;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &beside,
                             .msg_controllen = sizeof beside.room};
    const ssize_t n = recvmsg(g->ward, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) { return false; }
    if (n <= 0) { // the master is gone, or done
        close(g->ward);
        g->ward = -1;
        return false;
    }
    const struct cmsghdr* c = CMSG_FIRSTHDR(&message);
    int fd = -1;
    if (c && c->cmsg_type == SCM_RIGHTS) { memcpy(&fd, CMSG_DATA(c), sizeof fd); }
    if (n == (ssize_t)sizeof m && fd >= 0 && take_socket(g, &m, fd) < 0) {
        fprintf(stderr, "cardan guard: %s\n", crd_error_text(g->ctx));
    }
    return true;
}

bool guard_has_benches(const guard* g)
{
    for (int i = 0; i < atomic_load(&g->page->slave_count); i++) {
        if (atomic_load(&g->page->slaves[i].held)) { return true; }
    }
    return false;
}

// ---- the benches --------------------------------------------------------------------------------

static void adopt_slaves(guard* g, guard_session* s)
{
    for (int i = 0; i < crd_dcp_master_count(s->master); i++) {
        const crdi_ward_slave* w = &g->page->slaves[s->slaves[i]];
        if (!atomic_load(&w->held)) { continue; }
        crdi_dcp_master_adopt(s->master, i,
                              &(crdi_dcp_hold){.id = (uint8_t)atomic_load(&w->id),
                                               .seq = (uint16_t)atomic_load(&w->seq),
                                               .state = (crd_dcp_state)atomic_load(&w->state)});
    }
}

// All are told before one of them is waited for. Appends what became of each; false: not all are at
// rest.
static bool stop_benches(guard* g, char* said, size_t room)
{
    bool good = true;
    size_t n = 0;
    for (int i = 0; i < CRDI_WARD_SLAVES; i++) {
        guard_session* s = &g->sessions[i];
        if (!s->master) { continue; }
        adopt_slaves(g, s);
        crd_dcp_master_halt(s->master);
    }
    for (int i = 0; i < CRDI_WARD_SLAVES; i++) {
        guard_session* s = &g->sessions[i];
        const crd_status st = s->master ? crd_dcp_master_stop(s->master) : CRD_OK;
        if (st < 0 && n < room) {
            good = false;
            n += (size_t)snprintf(said + n, room - n, "; NOT STOPPED: %s", crd_error_text(g->ctx));
        }
    }
    for (int i = 0; i < atomic_load(&g->page->slave_count) && n < room; i++) {
        crdi_ward_slave* w = &g->page->slaves[i];
        const guard_session* s = &g->sessions[w->session];
        if (!atomic_load(&w->held)) { continue; }
        if (!g->rows[i]) {
            good = false;
            n += (size_t)snprintf(said + n, room - n, "; '%s' has no socket here", w->name);
            continue;
        }
        const crd_dcp_slave_status t = crd_dcp_master_status(s->master, g->rows[i] - 1);
        if (t.state == CRD_DCP_ALIVE) {
            atomic_store(&w->held, 0);
            n += (size_t)snprintf(said + n, room - n, "; '%s' is at rest", w->name);
        }
    }
    return good;
}

// ---- the record ---------------------------------------------------------------------------------

// The note that the master wrote at the start becomes the cause; the file is whole at any moment.
static void close_session_record(guard* g, const char* cause)
{
    const crdi_ward_page* p = g->page;
    crd_text old, fresh;
    if (!p->session[0]) { return; }
    crd_text_init(&old, g->ctx);
    crd_text_init(&fresh, g->ctx);
    const crd_status st = crdi_file_read(
        g->ctx, p->session, &(crdi_file_need){.what = "a session record", .most = 1 << 24}, &old);
    const char* note = st >= 0 && p->note[0] ? strstr(old.data, p->note) : NULL;
    if (note) {
        crdi_text_put(&fresh, old.data, (size_t)(note - old.data));
        crdi_text_add(&fresh, "the guard has ended it: ");
        for (const char* c = cause; *c; c++) {
            crdi_text_put(&fresh, *c == '"' || *c == '\n' ? "'" : c, 1);
        }
        crdi_text_add(&fresh, "%s", note + strlen(p->note));
        (void)crdi_file_write(g->ctx, p->session, &fresh);
    }
    crd_text_clear(&fresh);
    crd_text_clear(&old);
}

// Rows that the master had written stay. Who is stopped may wake up and finish them itself.
static const char* close_results(guard* g)
{
    const char* path = g->page->results;
    const char* dot = strrchr(path, '.');
    if (!path[0]) { return ""; }
    if (dot && strcasecmp(dot, ".mat") == 0) {
        return "; LOST, as files of this kind are written at the end: ";
    }
    if (dot && strcasecmp(dot, ".mf4") == 0 && guard_master_is_gone(g) &&
        crdi_mdf_finish(g->ctx, path) < 0) {
        return "; recorded up to there, but unfinished: ";
    }
    return "; recorded up to there: ";
}

int guard_act(guard* g, const char* cause)
{
    crdi_ward_page* p = g->page;
    char said[4 * GUARD_TEXT] = "", line[8 * GUARD_TEXT], clock[16];
    const int64_t begin = crdi_now_ns();
    struct timespec utc;
    struct tm t;
    clock_gettime(CLOCK_REALTIME, &utc);
    localtime_r(&utc.tv_sec, &t);
    strftime(clock, sizeof clock, "%H:%M:%S", &t);
    g->acting = true;
    if (cause != p->cause) { snprintf(p->cause, sizeof p->cause, "%s", cause); }
    atomic_store(&p->fence, 1);
    const bool good = stop_benches(g, said, sizeof said);
    const double seconds = 1e-9 * (double)(crdi_now_ns() - begin);
    // Looked at behind it: a large process that is killed takes its time to go.
    const bool orphaned = guard_master_is_gone(g) || guard_master_is_stopped(g);
    if (orphaned) { close_session_record(g, cause); }
    const int n = snprintf(line, sizeof line, "cardan guard: %s.%03d %s%s, after %.1f s%s%s\n",
                           clock, (int)(utc.tv_nsec / 1000000), cause, said, seconds,
                           orphaned ? close_results(g) : "", orphaned ? p->results : "");
    const ssize_t written =
        write(STDERR_FILENO, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
    (void)written; // nobody may be there to read it
    return good ? 1 : 2;
}
