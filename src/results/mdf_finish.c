// An MF4 file whose writer was killed. It is whole at any moment but for the number of records of
// the chunk that was being written, and its first words still say that it is unfinished.
#include "results/mdf.h"
#include "shared/base.h"
#include "shared/results.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define TAG(text) CRDI_MDF_TAG((text)[0], (text)[1])

enum { MOST_LINKS = 4, ID_WHY = 60, CG_COUNT = 8, CG_BYTES = 24 };

typedef struct unfinished {
    int fd;
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

// Where the block's own data begin; its links are in front.
static uint64_t enter(unfinished* f, uint64_t at, uint32_t tag, int links, uint64_t out[MOST_LINKS])
{
    f->wrong |= word_at(f, at, 4) != tag || word_at(f, at + 16, 8) != (uint64_t)links;
    for (int i = 0; i < links && i < MOST_LINKS; i++) {
        out[i] = word_at(f, at + CRDI_MDF_HEAD + 8 * (uint64_t)i, 8);
    }
    return at + CRDI_MDF_HEAD + 8 * (uint64_t)links;
}

// Bytes of records behind an HL. Blocks lie one behind the other in the file.
static uint64_t count_bytes(unfinished* f, uint64_t list)
{
    uint64_t l[MOST_LINKS] = {0}, bytes = 0;
    if (!list) { return 0; }
    (void)enter(f, list, TAG("HL"), CRDI_MDF_HL_LINKS, l);
    for (uint64_t dl = l[0], before = list; dl && !f->wrong; before = dl, dl = l[0]) {
        f->wrong |= dl <= before;
        (void)enter(f, dl, TAG("DL"), 2, l);
        uint64_t none[MOST_LINKS];
        bytes += word_at(f, enter(f, l[1], TAG("DZ"), 0, none) + 8, 8);
    }
    return bytes;
}

static void put_word(unfinished* f, uint64_t at, uint64_t x)
{
    uint8_t raw[8];
    for (int i = 0; i < 8; i++) {
        raw[i] = (uint8_t)(x >> 8 * i);
    }
    f->wrong |= pwrite(f->fd, raw, sizeof raw, (off_t)at) != (ssize_t)sizeof raw;
}

static void count_records(unfinished* f)
{
    uint64_t dg[MOST_LINKS] = {0}, cg[MOST_LINKS];
    (void)enter(f, CRDI_MDF_ID_SIZE, TAG("HD"), CRDI_MDF_HD_LINKS, dg);
    for (uint64_t at = dg[0], before = 0; at && !f->wrong; before = at, at = dg[0]) {
        f->wrong |= at <= before;
        (void)enter(f, at, TAG("DG"), CRDI_MDF_DG_LINKS, dg);
        const uint64_t data = enter(f, dg[1], TAG("CG"), CRDI_MDF_CG_LINKS, cg);
        const uint64_t record = word_at(f, data + CG_BYTES, 4) + word_at(f, data + CG_BYTES + 4, 4);
        const uint64_t bytes = count_bytes(f, dg[2]);
        f->wrong |= record == 0 || bytes % record != 0;
        if (!f->wrong) { put_word(f, data + CG_COUNT, bytes / record); }
    }
}

crd_status crdi_mdf_finish(crd_context* ctx, const char* path)
{
    static const char ours[] = "UnFinMF 4.10    Cardan  ";
    char id[sizeof ours - 1] = "";
    unfinished f = {.fd = open(path, O_RDWR | O_CLOEXEC)};
    if (f.fd < 0) { return crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno)); }
    const bool read = pread(f.fd, id, sizeof id, 0) == (ssize_t)sizeof id;
    if (read && memcmp(id, "MDF ", 4) == 0) { // nothing is missing
        close(f.fd);
        return CRD_OK;
    }
    f.wrong = !read || memcmp(id, ours, sizeof id) != 0 ||
              word_at(&f, ID_WHY, 2) != CRDI_MDF_UNFIN_CYCLES;
    if (!f.wrong) { count_records(&f); }
    if (!f.wrong) { // the why first: a file that is finished has none
        f.wrong = pwrite(f.fd, "\0", 2, ID_WHY) != 2 || pwrite(f.fd, "MDF     ", 8, 0) != 8;
    }
    f.wrong |= close(f.fd) != 0;
    return f.wrong ? crdi_fail(ctx, CRD_E_FORMAT, "%s cannot be finished and stays as it is", path)
                   : CRD_OK;
}
