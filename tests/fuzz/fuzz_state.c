// Any bytes as the saved state of a run, without its seal: what is read can be relied on.
//
// modules: master
#include "fuzz.h"
#include "master/state.h"

#include <string.h>

static void must(bool holds)
{
    if (!holds) { __builtin_trap(); }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crdi_state_file f;
    if (!crdi_state_read((const char*)data, size, &f)) { return 0; }
    const char *from = (const char*)data, *to = from + size;
    must(f.version.at >= from && f.version.at + f.version.length <= to);
    must(f.print.at >= from && f.print.at + f.print.length <= to);
    must(f.words >= f.units && f.words + f.words_size == to);
    for (uint32_t i = 0; i < f.rooms; i++) {
        must(crdi_state_room(&f, i) <= 1 << 30);
    }
    for (const char* p = f.words; p < to;) {
        uint32_t room, count;
        memcpy(&room, p, 4);
        memcpy(&count, p + 4, 4);
        must(room < f.rooms);
        for (p += 8; count > 0; count--, p += 16) {
            uint32_t place;
            memcpy(&place, p, 4);
            must(p + 16 <= to && 8 * (uint64_t)place < crdi_state_room(&f, room));
        }
    }
    return 0;
}
