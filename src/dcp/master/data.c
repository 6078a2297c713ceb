// Values on their way: what the master sends, takes and relays, and the logs of slaves.
#include "dcp/master/master.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DATA_HEAD = 5 };

// ---- bundles -----------------------------------------------------------------------------------

crd_status crdi_dcp_bundle_prepare(crd_dcp_master* m, crdi_dcp_bundle* b)
{
    if (b->kind == CRDI_DIRECT) { return CRD_OK; }
    const crdi_dcp_peer* p = &m->peers[b->slave];
    const bool out = b->kind != CRDI_WATCH;
    b->slots = crdi_arena_new(&m->layout, (size_t)b->count, sizeof *b->slots);
    b->types = crdi_arena_new(&m->layout, (size_t)b->count, sizeof *b->types);
    if (!b->slots || !b->types) { return CRD_E_MEMORY; }
    b->room = DATA_HEAD;
    for (int i = 0; i < b->count; i++) {
        b->slots[i] = p->cells[b->variables[i]].slot;
        b->types[i] = b->slots[i].type;
        const size_t element = crd_dcp_size_of(b->types[i]);
        b->room += element ? element * b->slots[i].count : 4 + (size_t)b->slots[i].max_size;
    }
    b->slot_count = crd_dcp_join(b->slots, out ? NULL : b->types, b->count);
    if (!out) { return CRD_OK; }
    b->pdu = crdi_arena_new(&m->layout, b->room, 1);
    if (!b->pdu) { return CRD_E_MEMORY; }
    const crd_dcp_pdu head = {.type = b->kind == CRDI_TUNE ? CRD_DCP_DAT_PARAMETER
                                                           : CRD_DCP_DAT_INPUT_OUTPUT,
                              .id = (uint16_t)(b - m->bundles + 1)};
    (void)crd_dcp_encode(&head, b->pdu, b->room);
    return CRD_OK;
}

void crdi_dcp_bundle_send(crd_dcp_master* m, crdi_dcp_bundle* b)
{
    crdi_dcp_peer* p = &m->peers[b->slave];
    const size_t length =
        DATA_HEAD + crd_dcp_put(b->slots, b->slot_count, b->pdu + DATA_HEAD, b->room - DATA_HEAD);
    b->due = false;
    if (length > b->room) { return; } // byte_count beyond max_size: the caller's doing
    b->pdu[1] = (uint8_t)b->seq;
    b->pdu[2] = (uint8_t)(b->seq >> 8);
    b->seq++;
    if (crd_dcp_net_send(m->net, &b->address, b->pdu, length)) { p->status.data_out++; }
}

// ---- relays ------------------------------------------------------------------------------------

static double number_of(const crd_dcp_slot* s, uint32_t i)
{
    return s->real                     ? s->real[i]
           : s->type == CRD_DCP_UINT64 ? (double)(uint64_t)s->integer[i]
                                       : (double)s->integer[i];
}

// The nearest integer that the type has; NaN becomes 0.
static int64_t integer_of(double x, uint8_t type)
{
    static const double least[] = {0, 0, 0, 0, -128.0, -32768.0, -2147483648.0, -0x1p63};
    static const double most[] = {255, 65535, 4294967295.0, 0x1p64, 127, 32767, 2147483647, 0x1p63};
    if (isnan(x)) { return 0; }
    x = round(x);
    if (x <= least[type]) { return type == CRD_DCP_INT64 ? INT64_MIN : (int64_t)least[type]; }
    if (type == CRD_DCP_UINT64) { return (int64_t)(x >= most[type] ? UINT64_MAX : (uint64_t)x); }
    if (x >= most[type]) { return type == CRD_DCP_INT64 ? INT64_MAX : (int64_t)most[type]; }
    return (int64_t)x;
}

static bool fits_type(int64_t x, uint8_t from, uint8_t to)
{
    return from == to || crd_dcp_converts(from, to) || (x >= 0 && x <= 127);
}

static void copy_value(const crd_dcp_slot* to, const crd_dcp_slot* from)
{
    if (to->byte_count) {
        const uint32_t n = *from->byte_count < to->max_size ? *from->byte_count : to->max_size;
        *to->byte_count = n;
        if (n) { memcpy(to->bytes, from->bytes, n); }
        return;
    }
    for (uint32_t i = 0; i < to->count && i < from->count; i++) {
        if (to->real) {
            to->real[i] = number_of(from, i);
        } else if (from->integer && fits_type(from->integer[i], from->type, to->type)) {
            to->integer[i] = from->integer[i];
        } else {
            to->integer[i] = integer_of(number_of(from, i), to->type);
        }
    }
}

static void relay(crd_dcp_master* m, const crdi_dcp_bundle* b)
{
    for (int i = 0; i < b->relay_count; i++) {
        copy_value(b->relays[i].to, b->relays[i].from);
        m->bundles[b->relays[i].bundle].due = true;
    }
    for (int i = 0; i < b->relay_count; i++) {
        crdi_dcp_bundle* to = &m->bundles[b->relays[i].bundle];
        // In NRT it goes with the inputs of the next step.
        if (to->due && m->peers[to->slave].spec.mode != CRD_DCP_NRT && m->progress == CRDI_RUNS) {
            crdi_dcp_bundle_send(m, to);
        }
    }
}

// ---- data that arrive --------------------------------------------------------------------------

// An old one came before, or was overtaken. Older than the window are those whose sender is far
// behind: nobody sends one again so late.
static void count_old(crdi_dcp_peer* p, crdi_dcp_bundle* b, uint16_t behind)
{
    const uint64_t bit = behind < 64 ? UINT64_C(1) << behind : 0;
    p->status.data_old++;
    if (b->window & bit) {
        p->status.data_duplicates++;
    } else {
        p->status.data_reordered++;
    }
    b->window |= bit;
}

// false: it is the last one again, or older.
static bool in_order(crd_dcp_master* m, crdi_dcp_peer* p, crdi_dcp_bundle* b, uint16_t seq)
{
    const uint16_t ahead = (uint16_t)(seq - b->seq);
    if (!b->has_seq) {
        b->window = 1;
        return true;
    }
    if (ahead == 0 || ahead > INT16_MAX) {
        count_old(p, b, (uint16_t)(b->seq - seq));
        return false;
    }
    b->window = (ahead < 64 ? b->window << ahead : 0) | 1;
    if (ahead > 1) {
        p->status.data_missed += ahead - 1;
        crdi_dcp_tell(m, p, CRD_DCP_NOTICE_LOSS, CRD_DCP_NONE,
                      "%d data PDUs of data_id %d are missing", ahead - 1,
                      (int)(b - m->bundles + 1));
    }
    return true;
}

void crdi_dcp_master_take(crd_dcp_master* m, const crd_dcp_address* from, const crd_dcp_pdu* pdu,
                          double time)
{
    if (pdu->id == 0 || pdu->id > m->bundle_count || m->progress == CRDI_PLANNED) { return; }
    crdi_dcp_bundle* b = &m->bundles[pdu->id - 1];
    crdi_dcp_peer* p = &m->peers[b->slave];
    if (b->kind != CRDI_WATCH || from->ip != p->spec.control.ip) { return; }
    // Looked at before its number counts: a damaged one must not throw later ones away.
    const uint16_t ahead = (uint16_t)(pdu->seq - b->seq);
    if (!b->has_seq || (ahead != 0 && ahead <= INT16_MAX)) {
        if (crd_dcp_take(b->slots, b->types, b->slot_count, pdu->payload, pdu->payload_length) !=
            CRD_DCP_NONE) {
            p->status.data_bad++;
            return;
        }
    }
    if (!in_order(m, p, b, pdu->seq)) { return; }
    b->seq = pdu->seq;
    b->has_seq = true;
    p->status.data_in++;
    p->status.data_time = p->status.heard = time;
    relay(m, b);
    if (p->aim) { crdi_dcp_drive(m, p); }
}

static bool bundle_fresh(const crdi_dcp_bundle* b)
{
    return b->has_seq && (!b->has_next || (uint16_t)(b->seq - b->next) <= INT16_MAX);
}

bool crdi_dcp_fresh(const crd_dcp_master* m, const crdi_dcp_peer* p)
{
    for (int i = 0; i < p->watch_count; i++) {
        if (!bundle_fresh(&m->bundles[p->watches[i]])) { return false; }
    }
    return true;
}

// What of this turn did not come and may come later counts for none.
void crdi_dcp_turn_over(crd_dcp_master* m, crdi_dcp_peer* p)
{
    for (int i = 0; i < p->watch_count; i++) {
        crdi_dcp_bundle* b = &m->bundles[p->watches[i]];
        const bool fresh = bundle_fresh(b);
        if (fresh) {
            b->next = (uint16_t)(b->seq + 1);
            b->has_next = true;
        } else if (b->has_next) {
            b->next++;
        }
    }
}

// ---- logs --------------------------------------------------------------------------------------

typedef struct reader {
    const uint8_t* at;
    size_t left;
    bool cut; // there was less than said
} reader;

static uint64_t read_integer(reader* r, size_t bytes)
{
    uint64_t x = 0;
    if (r->left < bytes) {
        r->cut = true;
        bytes = r->left;
    }
    for (size_t i = 0; i < bytes; i++) {
        x |= (uint64_t)r->at[i] << (8 * i);
    }
    r->at += bytes;
    r->left -= bytes;
    return x;
}

typedef struct line {
    char text[CRDI_DCP_REASON];
    size_t length;
} line;

static void add(line* l, const char* bytes, size_t n)
{
    const size_t room = sizeof l->text - 1 - l->length;
    if (n > room) { n = room; }
    for (size_t i = 0; i < n; i++) { // one line it is
        const unsigned char c = (unsigned char)bytes[i];
        l->text[l->length + i] = c < 32 || c == 127 ? ' ' : bytes[i];
    }
    l->length += n;
    l->text[l->length] = 0;
}

static void add_bytes(line* l, reader* r, bool binary)
{
    uint64_t n = read_integer(r, 4);
    if (n > r->left) {
        n = r->left;
        r->cut = true;
    }
    for (uint64_t i = 0; i < n && binary; i++) {
        char digits[3];
        snprintf(digits, sizeof digits, "%02x", r->at[i]);
        add(l, digits, 2);
    }
    if (!binary) { add(l, (const char*)r->at, (size_t)n); }
    r->at += n;
    r->left -= (size_t)n;
}

static void add_argument(line* l, reader* r, uint8_t type)
{
    char text[40] = "";
    const size_t size = crd_dcp_size_of(type);
    if (size == 0) {
        add_bytes(l, r, type == CRD_DCP_BINARY);
        return;
    }
    const bool cut = r->cut;
    const uint64_t x = read_integer(r, size);
    if (r->cut && !cut) {
        add(l, "...", 3);
        return;
    }
    if (type == CRD_DCP_FLOAT64) {
        double d;
        memcpy(&d, &x, sizeof d);
        snprintf(text, sizeof text, "%.10g", d);
    } else if (type == CRD_DCP_FLOAT32) {
        float f;
        const uint32_t bits = (uint32_t)x;
        memcpy(&f, &bits, sizeof f);
        snprintf(text, sizeof text, "%.7g", (double)f);
    } else if (type <= CRD_DCP_UINT64) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)x);
    } else {
        const int unused = 64 - 8 * (int)size; // sign bits
        snprintf(text, sizeof text, "%lld", (long long)((int64_t)(x << unused) >> unused));
    }
    add(l, text, strlen(text));
}

// The words of a template with its arguments in place of %float64 and the like.
static void word_entry(const crd_dcp_log_template* t, reader* r, line* l)
{
    int argument = 0;
    for (const char* c = t->message; *c;) {
        if (c[0] != '%') {
            add(l, c++, 1);
            continue;
        }
        if (c[1] == '%') {
            add(l, c, 1);
            c += 2;
            continue;
        }
        const char* name =
            argument < t->argument_count ? crd_dcp_data_type_name(t->arguments[argument]) : NULL;
        const size_t length = name ? strlen(name) : 0;
        if (!name || strncmp(c + 1, name, length) != 0) {
            add(l, c++, 1);
            continue;
        }
        add_argument(l, r, t->arguments[argument++]);
        c += 1 + length;
    }
}

static bool log_entry(crd_dcp_master* m, crdi_dcp_peer* p, reader* r, uint8_t id)
{
    const crd_dcp_log_template* t = NULL;
    for (int i = 0; i < p->d->template_count && !t; i++) {
        if (p->d->templates[i].id == id) { t = &p->d->templates[i]; }
    }
    if (!t) { return false; } // how long its arguments are is not known
    line l = {.length = 0};
    word_entry(t, r, &l);
    const crd_dcp_notice n = {.kind = CRD_DCP_NOTICE_LOG,
                              .slave = p->index,
                              .time = m->now,
                              .state = p->status.state,
                              .level = t->level,
                              .text = l.text};
    if (t->level <= 1) { // fatal, error
        snprintf(p->logged, sizeof p->logged, "%.*s", (int)sizeof p->logged - 1, l.text);
    }
    if (m->opt.notice) { m->opt.notice(m->opt.user, &n); }
    return !r->cut;
}

// RSP_log_ack:  entries of  0 time:i64  8 log_template_id:u8  9 arguments
void crdi_dcp_master_log(crd_dcp_master* m, crdi_dcp_peer* p, const crd_dcp_pdu* pdu)
{
    reader r = {.at = pdu->payload, .left = pdu->payload_length};
    if (pdu->type == CRD_DCP_NTF_LOG) {
        (void)log_entry(m, p, &r, pdu->template_id);
        return;
    }
    while (r.left >= 9) {
        (void)read_integer(&r, 8); // whole seconds of a clock that is not ours
        const uint8_t id = (uint8_t)read_integer(&r, 1);
        if (!log_entry(m, p, &r, id)) { return; }
    }
}
