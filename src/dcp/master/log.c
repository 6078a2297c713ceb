// Log entries of slaves become notices, put into the words of their templates.
#include "dcp/master/master.h"

#include <stdio.h>
#include <string.h>

typedef struct reader {
    const uint8_t* at;
    size_t left;
    bool cut; // there was less than said
} reader;

static const uint8_t* read_bytes(reader* r, size_t count)
{
    const uint8_t* at = r->at;
    if (count) { r->at += count; } // NULL of an entry without arguments stays
    r->left -= count;
    return at;
}

// One line it is, whatever the slave says.
static void add_text(crdi_dcp_line* l, const char* bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        crdi_dcp_line_put(l, c < 32 || c == 127 ? " " : &bytes[i], 1);
    }
}

// A string or binary, as far as it is there.
static void add_bytes(crdi_dcp_line* l, reader* r, bool binary)
{
    if (r->left < 4) {
        r->cut = true;
        read_bytes(r, r->left);
        return;
    }
    uint64_t n = crdi_load_le(read_bytes(r, 4), 4);
    if (n > r->left) {
        n = r->left;
        r->cut = true;
    }
    const uint8_t* bytes = read_bytes(r, (size_t)n);
    if (binary) {
        crdi_dcp_line_hex(l, bytes, (size_t)n);
    } else {
        add_text(l, (const char*)bytes, (size_t)n);
    }
}

static void add_argument(crdi_dcp_line* l, reader* r, uint8_t type)
{
    const size_t size = crdi_dcp_size_of(type);
    double real = 0;
    int64_t integer = 0;
    if (size == 0) {
        add_bytes(l, r, type == CRD_DCP_BINARY);
        return;
    }
    if (r->left < size) {
        if (!r->cut) { crdi_dcp_line_put(l, "...", 3); }
        r->cut = true;
        read_bytes(r, r->left);
        return;
    }
    crdi_dcp_load_number(type, read_bytes(r, size), &real, &integer);
    if (crdi_dcp_is_real(type)) {
        crdi_dcp_line_add(l, "%.*g", type == CRD_DCP_FLOAT64 ? 10 : 7, real);
    } else if (type <= CRD_DCP_UINT64) {
        crdi_dcp_line_add(l, "%llu", (unsigned long long)integer);
    } else {
        crdi_dcp_line_add(l, "%lld", (long long)integer);
    }
}

// The words of a template with its arguments in place of %float64 and the like.
static void word_entry(const crd_dcp_log_template* t, reader* r, crdi_dcp_line* l)
{
    int argument = 0;
    for (const char* c = t->message; *c;) {
        if (c[0] != '%') {
            add_text(l, c++, 1);
            continue;
        }
        if (c[1] == '%') {
            add_text(l, c, 1);
            c += 2;
            continue;
        }
        const char* name =
            argument < t->argument_count ? crd_dcp_data_type_name(t->arguments[argument]) : NULL;
        const size_t length = name ? strlen(name) : 0;
        if (!name || strncmp(c + 1, name, length) != 0) {
            add_text(l, c++, 1);
            continue;
        }
        add_argument(l, r, t->arguments[argument++]);
        c += 1 + length;
    }
}

static bool log_entry(crd_dcp_master* m, crdi_dcp_peer* p, reader* r, uint8_t id)
{
    const crd_dcp_log_template* t = crdi_dcp_find_template(p->d, id);
    if (!t) { return false; } // how long its arguments are is not known
    char text[CRDI_DCP_REASON] = "";
    crdi_dcp_line l = {.out = text, .room = sizeof text};
    word_entry(t, r, &l);
    const crd_dcp_notice n = {.kind = CRD_DCP_NOTICE_LOG,
                              .slave = p->index,
                              .time = m->now,
                              .state = p->status.state,
                              .level = t->level,
                              .text = text};
    if (t->level <= 1) { // fatal, error
        snprintf(p->logged, sizeof p->logged, "%.*s", (int)sizeof p->logged - 1, text);
    }
    if (m->opt.notice) { m->opt.notice(m->opt.user, &n); }
    return !r->cut;
}

// RSP_log_ack:  entries of  0 time:i64  8 log_template_id:u8  9 arguments
void crdi_dcp_master_log(crd_dcp_master* m, crdi_dcp_peer* p, const crdi_dcp_pdu* pdu)
{
    reader r = {.at = pdu->payload, .left = pdu->payload_length};
    if (pdu->type == CRDI_DCP_NTF_LOG) {
        (void)log_entry(m, p, &r, pdu->template_id);
        return;
    }
    while (r.left >= 9) {
        const uint8_t* head = read_bytes(&r, 9); // with whole seconds of a clock that is not ours
        if (!log_entry(m, p, &r, head[8])) { return; }
    }
}
