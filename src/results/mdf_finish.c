// An MF4 file whose writer was killed, or whose end the disk has lost: blocks lie one behind the
// other, and what is whole is kept. Missing are the number of records of the chunk that was being
// written, and the first words, which still say that it is unfinished; links to what is lost are
// cut.
#include "results/mdf.h"
#include "shared/base.h"
#include "shared/results.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAG(text) CRDI_MDF_TAG((text)[0], (text)[1])

enum { ID_WHY = 60, CG_COUNT = 8, CG_BYTES = 24, MOST_LINKS = 1 << 20, DEEPEST = 4 };

typedef struct unfinished {
    int fd;
    uint64_t size, end; // of the file; of what is whole
    bool writing;
    bool wrong; // not one that we write
} unfinished;

static uint64_t word_at(unfinished* f, uint64_t at, size_t bytes)
{
    uint8_t raw[8];
    uint64_t x = 0;
    f->wrong |= pread(f->fd, raw, bytes, (off_t)at) != (ssize_t)bytes;
    for (size_t i = f->wrong ? 0 : bytes; i-- > 0;) {
        x = x << 8 | raw[i];
    }
    return x;
}

static void put_word(unfinished* f, uint64_t at, uint64_t x)
{
    uint8_t raw[8];
    for (int i = 0; i < 8; i++) {
        raw[i] = (uint8_t)(x >> 8 * i);
    }
    if (!f->writing || f->wrong) { return; }
    f->wrong = pwrite(f->fd, raw, sizeof raw, (off_t)at) != (ssize_t)sizeof raw;
}

static uint64_t link_at(uint64_t block, uint64_t i)
{
    return block + CRDI_MDF_HEAD + 8 * i;
}

// ---- what is whole -----------------------------------------------------------------------------

typedef struct head {
    uint32_t tag;
    uint64_t links, behind; // where the next block begins; 0: this one is not whole
} head;

static head head_at(unfinished* f, uint64_t at)
{
    uint8_t raw[CRDI_MDF_HEAD];
    uint64_t length = 0;
    head h = {0};
    if (at >= f->size || f->size - at < sizeof raw || f->wrong ||
        pread(f->fd, raw, sizeof raw, (off_t)at) != (ssize_t)sizeof raw) {
        return h;
    }
    for (int i = 8; i-- > 0;) {
        h.tag = i < 4 ? h.tag << 8 | raw[i] : 0;
        length = length << 8 | raw[8 + i];
        h.links = h.links << 8 | raw[16 + i];
    }
    if (raw[0] == '#' && raw[1] == '#' && length <= f->size - at && h.links <= MOST_LINKS &&
        length >= CRDI_MDF_HEAD + 8 * h.links) {
        h.behind = at + ((length + 7) & ~UINT64_C(7));
    }
    return h;
}

// Links from what was written before: without them the file is one that ended earlier.
static bool may_be_cut(uint32_t tag, uint64_t i)
{
    return (tag == TAG("HD") && (i == 3 || i == 4)) || (tag == TAG("DG") && i == 2) ||
           ((tag == TAG("DL") || tag == TAG("EV") || tag == TAG("AT")) && i == 0);
}

// The first block that needs one behind the end. Other links that lead there are cut.
static uint64_t follow_links(unfinished* f)
{
    head h;
    for (uint64_t at = CRDI_MDF_ID_SIZE; at && at < f->end; at = h.behind) {
        h = head_at(f, at);
        for (uint64_t i = 0; i < h.links && !f->wrong; i++) {
            if (word_at(f, link_at(at, i), 8) < f->end) { continue; }
            if (!may_be_cut(h.tag, i)) { return at; }
            put_word(f, link_at(at, i), 0);
        }
    }
    return f->end;
}

// A chunk is three blocks, an event two: they were written together, and are lost together.
static void find_end(unfinished* f)
{
    f->end = CRDI_MDF_ID_SIZE;
    for (uint64_t next = 0; (next = head_at(f, f->end).behind) != 0;) {
        f->end = next < f->size ? next : f->size;
    }
    int deep = 0;
    for (uint64_t torn = 0; (torn = follow_links(f)) != f->end && deep < DEEPEST; deep++) {
        f->end = torn;
    }
    f->wrong |= deep == DEEPEST || f->end == CRDI_MDF_ID_SIZE; // the head is not whole
}

// ---- records -----------------------------------------------------------------------------------

// Where the block's own data begin.
static uint64_t enter(unfinished* f, uint64_t at, uint32_t tag, uint64_t links)
{
    f->wrong |= word_at(f, at, 4) != tag || word_at(f, at + 16, 8) != links;
    return link_at(at, links);
}

// The next one in a list that goes on behind `at`; 0: it does not.
static uint64_t next_of(unfinished* f, uint64_t at, uint64_t i)
{
    const uint64_t next = word_at(f, link_at(at, i), 8);
    f->wrong |= next != 0 && next <= at;
    return f->wrong || next >= f->end ? 0 : next;
}

// Bytes of records behind an HL.
static uint64_t count_bytes(unfinished* f, uint64_t list, uint64_t record)
{
    uint64_t bytes = 0;
    if (!list) { return 0; }
    (void)enter(f, list, TAG("HL"), CRDI_MDF_HL_LINKS);
    for (uint64_t dl = next_of(f, list, 0); dl; dl = next_of(f, dl, 0)) {
        (void)enter(f, dl, TAG("DL"), 2);
        const uint64_t dz = enter(f, next_of(f, dl, 1), TAG("DZ"), 0);
        const uint64_t n = word_at(f, dz + 8, 8);
        f->wrong |= n % record != 0 || n > UINT32_MAX;
        bytes += n;
    }
    return bytes;
}

static void count_records(unfinished* f)
{
    (void)enter(f, CRDI_MDF_ID_SIZE, TAG("HD"), CRDI_MDF_HD_LINKS);
    for (uint64_t dg = next_of(f, CRDI_MDF_ID_SIZE, 0); dg; dg = next_of(f, dg, 0)) {
        (void)enter(f, dg, TAG("DG"), CRDI_MDF_DG_LINKS);
        const uint64_t data = enter(f, word_at(f, link_at(dg, 1), 8), TAG("CG"), CRDI_MDF_CG_LINKS);
        const uint64_t record = word_at(f, data + CG_BYTES, 4) + word_at(f, data + CG_BYTES + 4, 4);
        f->wrong |= record == 0;
        if (f->wrong) { return; }
        put_word(f, data + CG_COUNT, count_bytes(f, next_of(f, dg, 2), record) / record);
    }
}

crd_status crdi_mdf_finish(crd_context* ctx, const char* path)
{
    static const char ours[] = "UnFinMF 4.10    Cardan  ";
    char id[sizeof ours - 1] = "";
    struct stat s;
    unfinished f = {.fd = open(path, O_RDWR | O_CLOEXEC)};
    if (f.fd < 0) { return crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno)); }
    const bool read = pread(f.fd, id, sizeof id, 0) == (ssize_t)sizeof id && fstat(f.fd, &s) == 0;
    if (read && memcmp(id, "MDF ", 4) == 0) { // nothing is missing
        close(f.fd);
        return CRD_OK;
    }
    f.size = read ? (uint64_t)s.st_size : 0;
    f.wrong = !read || memcmp(id, ours, sizeof id) != 0 ||
              word_at(&f, ID_WHY, 2) != CRDI_MDF_UNFIN_CYCLES;
    if (!f.wrong) { find_end(&f); }
    for (int i = 0; i < 2 && !f.wrong; i++, f.writing = true) { // what is wrong stays as it is
        if (f.writing) { (void)follow_links(&f); }
        count_records(&f);
    }
    if (!f.wrong) { // the why first: a file that is finished has none
        f.wrong = pwrite(f.fd, "\0", 2, ID_WHY) != 2 || pwrite(f.fd, "MDF     ", 8, 0) != 8;
    }
    f.wrong |= close(f.fd) != 0;
    return f.wrong ? crdi_fail(ctx, CRD_E_FORMAT, "%s cannot be finished and stays as it is", path)
                   : CRD_OK;
}
