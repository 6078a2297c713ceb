// The state of a run in a file, to go on from in another process.
//
// A run of the same system begins everywhere with the same bytes, but for addresses: what changes
// stands in rooms (the spans of snapshot.c) of the same sizes in the same order. So a file holds
// the words that differ from the state after the initialisation. Few of them are addresses: those
// that move in a run are named by their owners (list_moving) and written as a room and a place in
// it. Any other word that has become the address of something is refused, aloud.
//
// Whoever can write such a file can write into the memory of who reads it; so it is sealed with a
// key of the user (shared/archive.h), and nothing of it is looked at before the seal was.
//
//   0  16  "cardan state 1\n\0"      then, all little endian and text as u32 length and bytes:
//      text version, text fingerprint, f64 time, u32 end, i32 end_member, u32 wish
//      u32 rooms, u64 size of each
//      u32 units, of each 5 numbers of 8 bytes, u32 wants_stop, u64 size and bytes of its own state
//      to the end: u32 room, u32 words, of each u32 place, u32 kind, u64 value
#include "master/state.h"
#include "shared/archive.h"
#include "shared/base_bytes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char MAGIC[16] = "cardan state 1\n";
enum { MOST = 1 << 30, NAMED = 4096 };

// WORD_SAME: an address outside of the rooms, that stood at the start in this room and word.
enum { WORD_NUMBER, WORD_ROOM, WORD_SAME };

// ---- rooms -------------------------------------------------------------------------------------

typedef struct room {
    char* at;
    size_t size;
    const char* first; // its bytes at the start
} room;

typedef struct rooms {
    room* list;
    int count;
    size_t capacity;
} rooms;

static crd_status room_add(crd_context* ctx, rooms* r, room one)
{
    if (one.size == 0) { return CRD_OK; }
    room* list = crdi_grow(ctx, r->list, &r->capacity, (size_t)r->count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    r->list = list;
    list[r->count++] = one;
    return CRD_OK;
}

static crd_status rooms_at_start(crd_master* m, rooms* r)
{
    const crd_snapshot* s = m->start;
    const char* data = s->data;
    for (int i = 0; i < s->span_count; i++) {
        const crd_status st = room_add(m->ctx, r, (room){s->spans[i].at, s->spans[i].size, data});
        if (st < 0) { return st; }
        data += s->spans[i].size;
    }
    return CRD_OK;
}

static int room_find(const rooms* r, uint64_t address)
{
    for (int i = 0; i < r->count; i++) {
        if (address - (uint64_t)(uintptr_t)r->list[i].at < r->list[i].size) { return i; }
    }
    return -1;
}

static uint64_t word_at(const char* data, size_t size, size_t i)
{
    uint64_t w = 0;
    memcpy(&w, data + 8 * i, size - 8 * i < 8 ? size - 8 * i : 8);
    return w;
}

// ---- addresses ---------------------------------------------------------------------------------

typedef struct known {
    uint64_t value;
    int room;
    size_t word;
} known;

typedef struct range {
    uint64_t from, to;
} range;

// What an address can be.
typedef struct addresses {
    crd_master* m;
    rooms r;
    range* mapped; // (mapped_count) memory of this process, ascending
    size_t mapped_count, mapped_room;
    known* known; // (known_count) addresses at the start, ascending
    size_t known_count, known_room;
    const char** moving; // (moving_count) places of addresses that move
    size_t moving_count, moving_room;
    bool failed;
} addresses;

static crd_status read_mapped(addresses* a)
{
    char line[512], rights = 0;
    unsigned long from = 0, to = 0;
    FILE* f = fopen("/proc/self/maps", "re");
    if (!f) { return crdi_fail(a->m->ctx, CRD_E_IO, "/proc/self/maps cannot be read"); }
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx %c", &from, &to, &rights) < 3) { continue; }
        if (rights != 'r') { continue; }
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
        // Their shadow begins where two small numbers side by side are, too; all else is above it.
        if (to <= (unsigned long)1 << 44) { continue; }
#endif
        range* list =
            crdi_grow(a->m->ctx, a->mapped, &a->mapped_room, a->mapped_count + 1, sizeof *list);
        if (!list) {
            fclose(f);
            return CRD_E_MEMORY;
        }
        a->mapped = list;
        list[a->mapped_count++] = (range){from, to};
    }
    fclose(f);
    return CRD_OK;
}

static bool is_mapped(const addresses* a, uint64_t w)
{
    size_t low = 0, high = a->mapped_count;
    while (low < high) {
        const size_t k = (low + high) / 2;
        if (w < a->mapped[k].from) {
            high = k;
        } else if (w >= a->mapped[k].to) {
            low = k + 1;
        } else {
            return true;
        }
    }
    return false;
}

static int compare_known(const void* x, const void* y)
{
    const known *a = x, *b = y;
    if (a->value != b->value) { return a->value < b->value ? -1 : 1; }
    if (a->room != b->room) { return a->room < b->room ? -1 : 1; }
    return a->word < b->word ? -1 : a->word > b->word;
}

static crd_status list_known(addresses* a)
{
    for (int i = 0; i < a->r.count; i++) {
        const room* p = &a->r.list[i];
        for (size_t k = 0; 8 * k < p->size; k++) {
            const uint64_t w = word_at(p->first, p->size, k);
            if (!is_mapped(a, w) || room_find(&a->r, w) >= 0) { continue; }
            known* list =
                crdi_grow(a->m->ctx, a->known, &a->known_room, a->known_count + 1, sizeof *list);
            if (!list) { return CRD_E_MEMORY; }
            a->known = list;
            list[a->known_count++] = (known){w, i, k};
        }
    }
    if (a->known_count) { qsort(a->known, a->known_count, sizeof *a->known, compare_known); }
    return CRD_OK;
}

static const known* find_known(const addresses* a, uint64_t w)
{
    size_t low = 0, high = a->known_count;
    while (low < high) {
        const size_t k = (low + high) / 2;
        if (a->known[k].value < w) {
            low = k + 1;
        } else {
            high = k;
        }
    }
    return low < a->known_count && a->known[low].value == w ? &a->known[low] : NULL;
}

static void note_moving(void* user, const void* at)
{
    addresses* a = user;
    const char** list =
        crdi_grow(a->m->ctx, (void*)a->moving, &a->moving_room, a->moving_count + 1, sizeof *list);
    a->failed = a->failed || !list;
    if (!list) { return; }
    a->moving = list;
    list[a->moving_count++] = at;
}

static bool is_moving(const addresses* a, const char* at)
{
    size_t i = 0;
    while (i < a->moving_count && a->moving[i] != at) {
        i++;
    }
    return i < a->moving_count;
}

static crd_status list_moving(addresses* a)
{
    crd_master* m = a->m;
    crdi_connections_moving(m, note_moving, a);
    crdi_iteration_moving(m, note_moving, a);
    crdi_control_moving(m, note_moving, a);
    return a->failed ? CRD_E_MEMORY : CRD_OK;
}

static void addresses_clear(addresses* a)
{
    crd_free(a->m->ctx, a->r.list);
    crd_free(a->m->ctx, a->mapped);
    crd_free(a->m->ctx, a->known);
    crd_free(a->m->ctx, (void*)a->moving);
}

// ---- writing -----------------------------------------------------------------------------------

static void put_text(crd_text* t, const char* text, size_t length)
{
    crdi_put_u32(t, (uint32_t)length);
    crdi_text_put(t, text, length);
}

// Where an address that moves points to.
static crd_status word_kind(const addresses* a, uint64_t w, uint32_t* kind, uint64_t* value)
{
    const int i = room_find(&a->r, w);
    const known* same = i < 0 ? find_known(a, w) : NULL;
    if (i < 0 && !same && w) { return CRD_E_UNSUPPORTED; }
    *kind = i >= 0 ? WORD_ROOM : same ? WORD_SAME : WORD_NUMBER;
    *value = i >= 0 ? (uint64_t)i << 40 | (w - (uint64_t)(uintptr_t)a->r.list[i].at)
             : same ? (uint64_t)same->room << 40 | same->word
                    : 0;
    return CRD_OK;
}

// Bytes that are true or false with bytes behind them that belong to nobody, in which an old
// address may stand: these are the same at the start.
static bool is_padded(uint64_t w, uint64_t first)
{
    uint64_t flags = 0;
    for (int n = 0; n < 7 && (w >> 8 * n & 0xff) < 2 && (first >> 8 * n & 0xff) < 2; n++) {
        flags = flags << 8 | 0xff;
    }
    return ((w ^ first) & ~flags) == 0;
}

static bool is_held(const crd_master* m, const char* at)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        if (at == (const char*)&m->plan->members[i].run->state ||
            at == (const char*)crdi_solvers_state(m, i)) {
            return true;
        }
    }
    return false;
}

static crd_status put_words(const addresses* a, int i, crd_text* out)
{
    const room* p = &a->r.list[i];
    const size_t head = out->length;
    uint32_t count = 0;
    crdi_put_u32(out, (uint32_t)i);
    crdi_put_u32(out, 0);
    for (size_t k = 0; 8 * k < p->size; k++) {
        uint32_t kind = WORD_NUMBER;
        uint64_t value = 0;
        const uint64_t w = word_at(p->at, p->size, k);
        if (w == word_at(p->first, p->size, k) || is_held(a->m, p->at + 8 * k)) { continue; }
        const bool moves = is_moving(a, p->at + 8 * k);
        const bool odd = !moves && is_mapped(a, w) && !is_padded(w, word_at(p->first, p->size, k));
        if (odd || (moves && word_kind(a, w, &kind, &value) < 0)) {
            return crdi_fail(a->m->ctx, CRD_E_UNSUPPORTED,
                             "the run cannot be saved to a file: something in it (room %d, word "
                             "%zu) is the address of memory that is none of the run's",
                             i, k);
        }
        if (!moves) { value = w; }
        crdi_put_u32(out, (uint32_t)k);
        crdi_put_u32(out, kind);
        crdi_put_u64(out, value);
        count++;
    }
    if (!out->failed) { memcpy(out->data + head + 4, &count, sizeof count); }
    return CRD_OK;
}

static crd_status put_units(crd_master* m, const crd_snapshot* s, crd_text* out)
{
    crdi_put_u32(out, (uint32_t)m->plan->member_count);
    for (int i = 0; i < m->plan->member_count; i++) {
        crd_unit* u = m->plan->members[i].unit;
        const crdi_unit_part* p = &s->units[i];
        crdi_text_put(out, &p->events, 8);
        crdi_text_put(out, &p->remarks, 8);
        crdi_text_put(out, &p->waited, 8);
        crdi_text_put(out, &p->next_event, 8);
        crdi_text_put(out, &p->made, 8);
        crdi_put_u32(out, p->wants_stop);
        const size_t at = out->length;
        crdi_put_u64(out, 0);
        m->running = i;
        const crd_status st =
            u->ops->state->write ? u->ops->state->write(u, out) : CRD_E_UNSUPPORTED;
        m->running = -1;
        if (st == CRD_E_UNSUPPORTED) {
            return crdi_fail(m->ctx, st, "the run cannot be saved to a file: unit '%s' (%s): %s",
                             u->name, u->info.kind,
                             strncmp(u->info.kind, "FMU", 3) == 0
                                 ? "its model description does not say canSerializeFMUstate (FMI "
                                   "3.0: canSerializeFMUState)"
                                 : "its state cannot be written down");
        }
        if (st < 0) { return crdi_member_left(m, i, st); }
        const uint64_t size = out->failed ? 0 : out->length - at - 8;
        if (!out->failed) { memcpy(out->data + at, &size, sizeof size); }
    }
    return CRD_OK;
}

typedef struct {
    crd_master* m;
    const crd_snapshot* s;
    crd_text* out;
    crd_status st;
} writing;

static void write_units(void* with)
{
    writing* w = with;
    w->st = put_units(w->m, w->s, w->out);
}

static crd_status write_state(crd_master* m, const crd_snapshot* s, crd_text* out)
{
    addresses a = {.m = m};
    crd_status st = CRD_OK;
    crd_text print;
    crd_text_init(&print, m->ctx);
    CRD_TRY(rooms_at_start(m, &a.r));
    CRD_TRY(read_mapped(&a));
    CRD_TRY(list_known(&a));
    CRD_TRY(list_moving(&a));
    CRD_TRY(crdi_describe_fingerprint(m, &print));
    crdi_text_put(out, MAGIC, sizeof MAGIC);
    put_text(out, crd_version(), strlen(crd_version()));
    put_text(out, print.data, print.length);
    crdi_text_put(out, &s->time, 8);
    crdi_put_u32(out, (uint32_t)s->end);
    crdi_put_u32(out, (uint32_t)s->end_member);
    crdi_put_u32(out, s->wish);
    crdi_put_u32(out, (uint32_t)a.r.count);
    for (int i = 0; i < a.r.count; i++) {
        crdi_put_u64(out, a.r.list[i].size);
    }
    writing w = {m, s, out, CRD_OK};
    const int crash = crdi_life_catch(m, write_units, &w);
    CRD_TRY(crash ? crdi_member_crashed(m, m->running, crash) : w.st);
    for (int i = 0; i < a.r.count; i++) {
        CRD_TRY(put_words(&a, i, out));
    }
    if (out->failed) { CRD_TRY(crdi_fail(m->ctx, CRD_E_MEMORY, "out of memory")); }
fail:
    addresses_clear(&a);
    crd_text_clear(&print);
    return st;
}

crd_status crd_master_save_file(crd_master* m, const char* path)
{
    crd_status st = CRD_OK;
    crd_snapshot* s = NULL;
    crd_text out;
    crd_text_init(&out, m->ctx);
    CRD_TRY(crdi_snapshot_take(m, true, &s));
    CRD_TRY(write_state(m, s, &out));
    CRD_TRY(crdi_seal(&out));
    CRD_TRY(crdi_file_write(m->ctx, path, &out));
fail:
    if (s) { crd_snapshot_destroy(s); }
    crd_text_clear(&out);
    return st;
}

// ---- reading -----------------------------------------------------------------------------------

static crdi_state_text take_text(crdi_bytes* r)
{
    const uint32_t length = crdi_take_u32(r);
    const char* p = crdi_take(r, length);
    return (crdi_state_text){p ? p : "", p ? length : 0};
}

static bool word_is_sane(const crdi_state_file* f, uint32_t kind, uint64_t value)
{
    const uint64_t where = value >> 40, offset = value & 0xffffffffff;
    if (kind == WORD_NUMBER) { return true; }
    if (kind > WORD_SAME || where >= f->rooms) { return false; }
    return (kind == WORD_SAME ? 8 : 1) * offset < crdi_state_room(f, (uint32_t)where);
}

static bool words_are_sane(const crdi_state_file* f)
{
    crdi_bytes r = {f->words, f->words_size, false};
    while (r.left && !r.failed) {
        const uint32_t i = crdi_take_u32(&r), count = crdi_take_u32(&r);
        const char* p = crdi_take(&r, 16 * (uint64_t)count);
        if (!p || i >= f->rooms) { return false; }
        const uint64_t size = crdi_state_room(f, i);
        for (uint32_t k = 0; k < count; k++, p += 16) {
            uint32_t place, kind;
            uint64_t value;
            memcpy(&place, p, 4);
            memcpy(&kind, p + 4, 4);
            memcpy(&value, p + 8, 8);
            const uint64_t left = 8 * (uint64_t)place < size ? size - 8 * (uint64_t)place : 0;
            if (!left || (left < 8 && kind != WORD_NUMBER) || !word_is_sane(f, kind, value)) {
                return false;
            }
        }
    }
    return !r.failed;
}

uint64_t crdi_state_room(const crdi_state_file* f, uint32_t i)
{
    uint64_t size;
    memcpy(&size, f->sizes + 8 * (size_t)i, sizeof size);
    return size;
}

bool crdi_state_read(const char* data, size_t size, crdi_state_file* f)
{
    crdi_bytes r = {data, size, false};
    *f = (crdi_state_file){0};
    const char* magic = crdi_take(&r, sizeof MAGIC);
    if (!magic || memcmp(magic, MAGIC, sizeof MAGIC) != 0) { return false; }
    f->version = take_text(&r);
    f->print = take_text(&r);
    const uint64_t time = crdi_take_u64(&r);
    memcpy(&f->time, &time, sizeof f->time);
    f->end = crdi_take_u32(&r);
    f->end_member = (int32_t)crdi_take_u32(&r);
    f->wish = crdi_take_u32(&r) != 0;
    f->rooms = crdi_take_u32(&r);
    f->sizes = crdi_take(&r, 8 * (uint64_t)f->rooms);
    if (!f->sizes || f->rooms > INT32_MAX) { return false; }
    for (uint32_t i = 0, all = 0; i < f->rooms; i++) {
        const uint64_t one = crdi_state_room(f, i);
        if (one > MOST - all) { return false; }
        all += (uint32_t)one;
    }
    f->units = r.at;
    f->unit_count = crdi_take_u32(&r);
    for (uint32_t i = 0; i < f->unit_count && !r.failed; i++) {
        (void)crdi_take(&r, 44);
        (void)crdi_take(&r, crdi_take_u64(&r));
    }
    f->words = r.at;
    f->words_size = r.left;
    return !r.failed && f->end <= CRD_END_GUARD && words_are_sane(f);
}

// ---- going on ----------------------------------------------------------------------------------

// The first line in which two systems differ.
static crd_status refuse_system(crd_master* m, const char* path, crdi_state_text theirs,
                                const crd_text* ours)
{
    size_t i = 0, line = 0;
    while (i < theirs.length && i < ours->length && theirs.at[i] == ours->data[i]) {
        line = theirs.at[i++] == '\n' ? i : line;
    }
    char a[160] = "", b[160] = "";
    for (size_t k = 0; k < sizeof a - 1 && line + k < theirs.length && theirs.at[line + k] != '\n';
         k++) {
        a[k] = theirs.at[line + k];
    }
    for (size_t k = 0; k < sizeof b - 1 && line + k < ours->length && ours->data[line + k] != '\n';
         k++) {
        b[k] = ours->data[line + k];
    }
    const char *x = a + strspn(a, " "), *y = b + strspn(b, " ");
    return crdi_fail(m->ctx, CRD_E_STATE,
                     "%s is a state of another system: there it says %s, and here %s", path,
                     *x ? x : "nothing", *y ? y : "nothing");
}

static crd_status check_fit(crd_master* m, const char* path, const crdi_state_file* f,
                            const rooms* r)
{
    crd_text print;
    crd_text_init(&print, m->ctx);
    crd_status st = CRD_OK;
    const crdi_state_text v = f->version;
    if (v.length != strlen(crd_version()) || memcmp(v.at, crd_version(), v.length) != 0) {
        CRD_TRY(crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                          "%s was written by version %.*s, and this is %s: states go on in the "
                          "version that saved them",
                          path, (int)(v.length < 40 ? v.length : 40), v.at, crd_version()));
    }
    CRD_TRY(crdi_describe_fingerprint(m, &print));
    if (f->print.length != print.length || memcmp(f->print.at, print.data, print.length) != 0) {
        CRD_TRY(refuse_system(m, path, f->print, &print));
    }
    bool same = f->unit_count == (uint32_t)m->plan->member_count && f->rooms == (uint32_t)r->count;
    for (int i = 0; same && i < r->count; i++) {
        same = crdi_state_room(f, (uint32_t)i) == r->list[i].size;
    }
    if (!same) {
        CRD_TRY(crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                          "%s does not fit: it is the state of another system, of other options, "
                          "or of another build of version %s",
                          path, crd_version()));
    }
fail:
    crd_text_clear(&print);
    return st;
}

static uint64_t word_here(const addresses* a, uint32_t kind, uint64_t value)
{
    const uint64_t where = value >> 40, offset = value & 0xffffffffff;
    if (kind == WORD_NUMBER) { return value; }
    const room* p = &a->r.list[where];
    return kind == WORD_ROOM ? (uint64_t)(uintptr_t)p->at + offset
                             : word_at(p->first, p->size, (size_t)offset);
}

static void apply_words(const addresses* a, const crdi_state_file* f)
{
    for (int i = 0; i < a->r.count; i++) { // what the file does not name is as at the start
        memcpy(a->r.list[i].at, a->r.list[i].first, a->r.list[i].size);
    }
    crdi_bytes r = {f->words, f->words_size, false};
    while (r.left) {
        const room* p = &a->r.list[crdi_take_u32(&r)];
        for (uint32_t n = crdi_take_u32(&r); n > 0; n--) {
            const size_t at = 8 * (size_t)crdi_take_u32(&r);
            const uint32_t kind = crdi_take_u32(&r);
            const uint64_t w = word_here(a, kind, crdi_take_u64(&r));
            memcpy(p->at + at, &w, p->size - at < 8 ? p->size - at : 8);
        }
    }
}

static crd_status apply_units(crd_master* m, const crdi_state_file* f)
{
    crdi_bytes r = {f->units, (size_t)(f->words - f->units), false};
    for (uint32_t i = 0, n = crdi_take_u32(&r); i < n; i++) {
        crd_unit* u = m->plan->members[i].unit;
        const char* p = crdi_take(&r, 40);
        const bool wants_stop = crdi_take_u32(&r) != 0;
        const uint64_t size = crdi_take_u64(&r);
        const char* own = crdi_take(&r, size);
        m->running = (int)i;
        const crd_status st =
            u->ops->state->read ? u->ops->state->read(u, own, (size_t)size)
                                : crdi_fail(u->ctx, CRD_E_UNSUPPORTED, "its state cannot be read");
        m->running = -1;
        if (st < 0) { return crdi_member_left(m, (int)i, st); }
        memcpy(&u->events, p, 8);
        memcpy(&u->remarks, p + 8, 8);
        memcpy(&u->waited, p + 16, 8);
        memcpy(&u->next_event, p + 24, 8);
        memcpy(&u->made, p + 32, 8);
        u->wants_stop = wants_stop;
    }
    return CRD_OK;
}

static crd_status go_on(crd_master* m, const char* path, const crdi_state_file* f)
{
    addresses a = {.m = m};
    crd_status st = CRD_OK;
    CRD_TRY(rooms_at_start(m, &a.r));
    CRD_TRY(check_fit(m, path, f, &a.r));
    crdi_snapshot_hold(m->start, false);
    apply_words(&a, f);
    crdi_snapshot_hold(m->start, true);
    CRD_TRY(apply_units(m, f));
    crdi_columns_restore(m, NULL);
    crdi_tuning_restart(m);
    m->life.end = f->end == CRD_END_STOP_TIME ? CRD_END_NONE : (crd_end)f->end;
    m->life.end_member = f->end_member;
    m->life.wish = f->wish;
fail:
    addresses_clear(&a);
    return st;
}

crd_status crdi_state_resume(crd_master* m, const char* path)
{
    const crdi_file_need need = {.what = "the saved state of a run", .most = MOST};
    crdi_state_file f;
    crd_status st = CRD_OK;
    crd_text bytes;
    crd_text_init(&bytes, m->ctx);
    CRD_TRY(crdi_snapshot_check(m, true));
    CRD_TRY(crdi_file_read(m->ctx, path, &need, &bytes));
    if (bytes.length < sizeof MAGIC || memcmp(bytes.data, MAGIC, 13) != 0) {
        CRD_TRY(crdi_fail(m->ctx, CRD_E_FORMAT,
                          "%s is no saved state of a run, expected a file of 'cardan run "
                          "--save-state' or Run.save",
                          path));
    }
    CRD_TRY(crdi_seal_open(m->ctx, path, bytes.data, &bytes.length));
    if (!crdi_state_read(bytes.data, bytes.length, &f)) {
        CRD_TRY(crdi_fail(m->ctx, CRD_E_FORMAT, "%s is damaged, or of a newer format", path));
    }
    CRD_TRY(go_on(m, path, &f));
fail:
    crd_text_clear(&bytes);
    return st;
}
