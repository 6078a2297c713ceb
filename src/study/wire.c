// Runs on their way between processes of one machine or one kind of machine: numbers as they lie in
// memory, texts with their length.
//   point:  i64 id, u64 seed, of each factor f64 x and, unless it is numeric, u16 length, text
//   result: i64 id, u8 state, f64 seconds, f64 of each kept, u16 length, reason
#include "shared/base_bytes.h"
#include "study/study.h"

#include <string.h>

typedef struct sink {
    char* p;
    size_t at, room;
    bool failed;
} sink;

static void put(sink* b, const void* from, size_t n)
{
    b->failed = b->failed || n > b->room - b->at;
    if (b->failed) { return; }
    memcpy(b->p + b->at, from, n);
    b->at += n;
}

static void put_text(sink* b, const char* text)
{
    const size_t n = strlen(text);
    const uint16_t length = n > UINT16_MAX ? UINT16_MAX : (uint16_t)n;
    b->failed = b->failed || n > UINT16_MAX;
    put(b, &length, sizeof length);
    put(b, text, length);
    put(b, "", 1);
}

static const char* take_text(crdi_bytes* s)
{
    uint16_t length = 0;
    crdi_take_to(s, &length, sizeof length);
    const char* text = s->at;
    if (s->failed || s->left < (size_t)length + 1 || text[length] != 0 || memchr(text, 0, length)) {
        s->failed = true;
        return "";
    }
    s->at += length + 1;
    s->left -= (size_t)length + 1;
    return text;
}

size_t crdi_study_encode_point(const crdi_study_file* f, const crdi_study_run* r, char* bytes,
                               size_t room)
{
    sink b = {.p = bytes, .room = room};
    put(&b, &r->id, sizeof r->id);
    put(&b, &r->seed, sizeof r->seed);
    for (int i = 0; i < f->factor_count; i++) {
        put(&b, &r->values[i].x, sizeof r->values[i].x);
        if (!f->factors[i].numeric) { put_text(&b, r->values[i].text); }
    }
    return b.failed ? 0 : b.at;
}

bool crdi_study_decode_point(const crdi_study_file* f, crdi_study_run* r, const char* bytes,
                             size_t length)
{
    crdi_bytes s = {bytes, length, false};
    crdi_take_to(&s, &r->id, sizeof r->id);
    crdi_take_to(&s, &r->seed, sizeof r->seed);
    for (int i = 0; i < f->factor_count; i++) {
        crdi_take_to(&s, &r->values[i].x, sizeof r->values[i].x);
        r->values[i].text = f->factors[i].numeric ? NULL : take_text(&s);
    }
    return !s.failed && s.left == 0;
}

size_t crdi_study_encode_result(const crdi_study_file* f, const crdi_study_run* r, char* bytes,
                                size_t room)
{
    sink b = {.p = bytes, .room = room};
    const uint8_t state = (uint8_t)r->state;
    put(&b, &r->id, sizeof r->id);
    put(&b, &state, 1);
    put(&b, &r->seconds, sizeof r->seconds);
    put(&b, r->kept, (size_t)f->kept_count * sizeof *r->kept);
    put_text(&b, r->reason);
    return b.failed ? 0 : b.at;
}

bool crdi_study_decode_result(const crdi_study_file* f, crdi_study_run* r, const char* bytes,
                              size_t length)
{
    crdi_bytes s = {bytes, length, false};
    uint8_t state = 0;
    crdi_take_to(&s, &r->id, sizeof r->id);
    crdi_take_to(&s, &state, 1);
    crdi_take_to(&s, &r->seconds, sizeof r->seconds);
    crdi_take_to(&s, r->kept, (size_t)f->kept_count * sizeof *r->kept);
    const char* reason = take_text(&s);
    const size_t n = strlen(reason);
    if (s.failed || s.left || state < CRDI_RUN_DONE || state >= CRDI_RUN_STATES || r->id < 1 ||
        n >= sizeof r->reason) {
        return false;
    }
    r->state = (crdi_run_state)state;
    memcpy(r->reason, reason, n + 1);
    return true;
}
