// Rows as CSV. The buffer holds whole rows only; a file that could not take all of it is cut behind
// the last whole one.
#include "results/csv.h"
#include "results/recorder.h"
#include "shared/base.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 << 10 }; // written when this much has come together

typedef struct csv_sink {
    crdi_sink base;
    const crdi_rows* rows;
    char* buffer;
    size_t used;      // bytes in the buffer
    int64_t buffered; // rows in the buffer
    off_t size;       // bytes of the file, whole rows
} csv_sink;

// What made it to the file ends in the middle of a row: go back to the last whole one. The rest
// stays in the buffer.
static void give_up(csv_sink* c, int error, size_t done)
{
    int64_t rows;
    const size_t whole = crdi_csv_whole_rows(c->buffer, done, &rows);
    const off_t end = c->size + (off_t)whole;
    const int cut = ftruncate(c->base.fd, end); // fails on a pipe or device, nothing can be done
    (void)cut;
    c->size = end;
    c->base.written += rows;
    c->used -= whole;
    c->buffered -= rows;
    memmove(c->buffer, c->buffer + whole, c->used);
    c->base.error = error;
}

static int64_t hand_over_csv(crdi_sink* s, crdi_sink* to)
{
    csv_sink *c = (csv_sink*)s, *t = (csv_sink*)to;
    if (t) { // which has written its header and nothing else
        memcpy(t->buffer, c->buffer, c->used);
        t->used = c->used;
        t->buffered = c->buffered;
    }
    c->used = 0;
    c->buffered = 0;
    return 0;
}

static void write_buffer(crdi_sink* s)
{
    csv_sink* c = (csv_sink*)s;
    size_t done = 0;
    while (done < c->used) { // write, not pwrite: the file may be a pipe
        const ssize_t n = write(s->fd, c->buffer + done, c->used - done);
        if (n < 0 && errno == EINTR) { continue; }
        if (n <= 0) {
            give_up(c, n < 0 ? errno : EIO, done);
            return;
        }
        done += (size_t)n;
    }
    c->size += (off_t)done;
    s->written += c->buffered;
    c->used = 0;
    c->buffered = 0;
    s->naps = 0;
}

static void put_csv_row(crdi_sink* s, int raster, const crd_word* row)
{
    (void)raster; // there is one
    csv_sink* c = (csv_sink*)s;
    char* at = c->buffer + c->used;
    at += crdi_format_double(at, row[0].real);
    const crdi_field* fields = c->rows->fields;
    for (int i = 0; i < c->rows->field_count; i++) {
        *at++ = ',';
        at = crdi_csv_value(at, fields[i].type, row + fields[i].word);
    }
    *at++ = '\n';
    c->used = (size_t)(at - c->buffer);
    c->buffered++;
    if (c->used >= BUFFER_BYTES) { write_buffer(s); }
}

static void finish_csv(crdi_sink* s)
{
    if (!s->error) { write_buffer(s); }
    crdi_sink_check(s);
    crdi_sink_close(s);
}

static void destroy_csv_sink(crdi_sink* s)
{
    csv_sink* c = (csv_sink*)s;
    crd_free(s->ctx, c->buffer);
    crdi_sink_clear(s);
    crd_free(s->ctx, c);
}

static const crdi_sink_ops ops = {
    .start = write_buffer,
    .row = put_csv_row,
    .flush = write_buffer,
    .hand_over = hand_over_csv,
    .finish = finish_csv,
    .destroy = destroy_csv_sink,
    .naps_to_flush = 200,
    .stack_bytes = 256 << 10,
};

// ---- create ------------------------------------------------------------------------------------

static size_t header_room(const crd_recorder_options* opt)
{
    size_t n = 64;
    for (int i = 0; i < opt->column_count; i++) {
        n += CRDI_CSV_TEXT_ROOM(strlen(opt->columns[i].name)) + 1;
        if (opt->unit_row) { n += CRDI_CSV_TEXT_ROOM(strlen(opt->columns[i].unit)) + 3; }
    }
    return n;
}

static char* csv_write_put_unit(char* at, const char* unit)
{
    char text[256];
    const size_t n = strlen(unit);
    if (n == 0 || n > sizeof text - 2) { return at; } // no real unit is that long
    text[0] = '[';
    memcpy(text + 1, unit, n);
    text[n + 1] = ']';
    return crdi_csv_text(at, text, n + 2);
}

static void format_header(csv_sink* c, const crd_recorder_options* opt)
{
    char* at = c->buffer;
    memcpy(at, "time", 4);
    at += 4;
    for (int i = 0; i < opt->column_count; i++) {
        *at++ = ',';
        at = crdi_csv_text(at, opt->columns[i].name, strlen(opt->columns[i].name));
    }
    *at++ = '\n';
    if (opt->unit_row) {
        at = csv_write_put_unit(at, "s");
        for (int i = 0; i < opt->column_count; i++) {
            *at++ = ',';
            at = csv_write_put_unit(at, opt->columns[i].unit);
        }
        *at++ = '\n';
    }
    c->used = (size_t)(at - c->buffer);
}

crd_status crdi_csv_sink(crd_context* ctx, const crd_recorder_options* opt, const crdi_rows* rows,
                         crdi_sink** out)
{
    csv_sink* c = crdi_new(ctx, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->rows = rows;
    crd_status st = crdi_sink_init(&c->base, &ops, ctx, opt->path);
    size_t room = crdi_csv_room(CRD_FLOAT64); // of a row
    for (int i = 0; i < opt->column_count; i++) {
        room += crdi_csv_room(opt->columns[i].type);
    }
    const size_t header = header_room(opt), buffer = BUFFER_BYTES + room;
    if (st == CRD_OK) {
        c->buffer = crdi_new_array(ctx, buffer > header ? buffer : header, 1);
        if (!c->buffer) { st = CRD_E_MEMORY; }
    }
    if (st < 0) {
        destroy_csv_sink(&c->base);
        return st;
    }
    format_header(c, opt);
    *out = &c->base;
    return CRD_OK;
}
