// MATLAB files hold whole columns, so rows are collected first: blocks of rows, each column of a
// block together, in a file without a name beside the result. finish reads column after column from
// it and writes them with libmatio, one column in memory at a time.
//
//   time       (rows x 1) double
//   <column>   (rows x 1) of its type; Booleans logical; strings and binaries (digits) char, a row
//              of the matrix each
//   signals    (1 x columns) struct: variable, name, unit, description, labels
//   <name>     char: an attachment without its ending, as cardan_run
#include "results/csv.h"
#include "results/mat.h"
#include "results/mat_read.h"
#include "results/recorder.h"
#include "shared/base.h"
#include "shared/base_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <matio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 4 << 20,
    BLOCK_LEAST = 64, // rows
    BLOCK_MOST = 65536,
    NAME_MOST = 63,         // characters of a MATLAB name
    OTHER_BYTES = 64 << 10, // attached texts, of which some come at the end
    COLUMN_BYTES = 512,     // names, unit and description
    CELL = CRD_RECORD_BYTES,
    TEXT_MOST = 16 * (CELL - 1), // characters of a string or of a binary's digits
};

#define MAT5_MOST ((uint64_t)INT32_MAX - 4096) // bytes of a variable, with room for its head

typedef struct column {
    const char *name, *variable, *unit, *description, *labels;
    crd_type type;
    size_t word, width;
} column;

typedef struct attachment {
    struct attachment* next;
    const char* variable;
    char* text;
    size_t length;
} attachment;

typedef struct mat_sink {
    crdi_sink base;
    crd_arena arena; // names and texts
    crd_map names;
    column* columns; // time first
    int column_count;
    attachment *attachments, **last_attachment;
    int version; // 5, 73 or 0
    bool is_73;  // what the result becomes
    uint64_t most_bytes;
    int64_t most_rows; // of version 5
    const char* file;  // the result's path from the root: a unit may change the working folder
    int store;         // the file without a name
    crd_word* block;   // (words)(block_rows)
    size_t words, block_rows, filled;
    int64_t rows; // collected in all, with those in the block
    int64_t stored;
    crd_word* tail;        // finish: a block that found no room in the store, NULL: none
    int64_t result_rows;   // finish: of the result
    uint64_t result_bytes; // given to libmatio
} mat_sink;

static void fail_with(mat_sink* m, int error, const char* reason)
{
    if (m->base.error) { return; }
    m->base.error = error;
    if (reason) { snprintf(m->base.reason, sizeof m->base.reason, "%s", reason); }
}

// ---- collecting rows ---------------------------------------------------------------------------

static size_t block_bytes(const mat_sink* m)
{
    return m->words * m->block_rows * sizeof(crd_word);
}

// What is stored is needed twice: the result has to have room beside it, with names and attached
// texts.
static bool has_room(const mat_sink* m, size_t length)
{
    const uint64_t result =
        (uint64_t)(m->stored + (int64_t)m->filled) * m->words * sizeof(crd_word) + OTHER_BYTES +
        (uint64_t)m->column_count * COLUMN_BYTES;
    uint64_t free = 0;
    return !crdi_sink_free_bytes(m->store, &free) || free >= length + result;
}

static void store_block(mat_sink* m)
{
    if (m->filled == 0) { return; }
    const size_t length = block_bytes(m);
    if (!has_room(m, length)) {
        fail_with(m, ENOSPC, NULL);
        return;
    }
    const int64_t start = m->stored / (int64_t)m->block_rows * (int64_t)length;
    if (!crdi_sink_write(&m->base, m->store, m->block, length, start)) {
        const int cut = ftruncate(m->store, start); // the result may need the room
        (void)cut;
        return;
    }
    m->stored += (int64_t)m->filled;
    m->filled = 0;
}

static void put_mat_row(crdi_sink* s, int raster, const crd_word* row)
{
    (void)raster; // there is one
    mat_sink* m = (mat_sink*)s;
    if (m->version == 5 && m->rows >= m->most_rows) {
        fail_with(
            m, EFBIG,
            "a variable of a MAT file of version 5 holds at most 2 GiB, version 7.3 holds more");
        return;
    }
    for (int i = 0; i < m->column_count; i++) {
        const column* c = &m->columns[i];
        crd_word* cell = m->block + c->word * m->block_rows + m->filled * c->width;
        if (c->width == 1) {
            *cell = row[c->word];
        } else {
            memcpy(cell, row + c->word, c->width * sizeof *cell);
        }
    }
    m->rows++;
    if (++m->filled == m->block_rows) { store_block(m); }
}

static int64_t hand_over_mat(crdi_sink* s, crdi_sink* to)
{
    mat_sink *m = (mat_sink*)s, *t = (mat_sink*)to;
    const int64_t rows = (int64_t)m->filled;
    if (!t) { // every second one stays
        for (int i = 0; i < m->column_count; i++) {
            const column* c = &m->columns[i];
            crd_word* cells = m->block + c->word * m->block_rows;
            for (size_t k = 1; 2 * k < m->filled; k++) {
                memcpy(cells + k * c->width, cells + 2 * k * c->width, c->width * sizeof *cells);
            }
        }
        m->filled = (m->filled + 1) / 2;
        m->rows -= rows - (int64_t)m->filled;
        return rows - (int64_t)m->filled;
    }
    crd_word* block = t->block;
    t->block = m->block;
    t->filled = m->filled;
    t->rows = rows;
    m->block = block;
    m->rows -= rows;
    m->filled = 0;
    if (t->filled == t->block_rows) { store_block(t); } // the next row needs a place
    return 0;
}

static void nothing(crdi_sink* s)
{
    (void)s;
}

// ---- columns -----------------------------------------------------------------------------------

// Cells of a column in one block after the other; false: cannot be read.
static bool load_cells(mat_sink* m, const column* c, int64_t first, size_t count, crd_word* out)
{
    const off_t at = (off_t)(first / (int64_t)m->block_rows) * (off_t)block_bytes(m) +
                     (off_t)(c->word * m->block_rows * sizeof *out);
    const size_t length = count * c->width * sizeof *out;
    size_t done = 0;
    while (done < length) {
        const ssize_t n = pread(m->store, (char*)out + done, length - done, at + (off_t)done);
        if (n < 0 && errno == EINTR) { continue; }
        if (n <= 0) {
            fail_with(m, n < 0 ? errno : EIO, NULL);
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

typedef struct storage {
    enum matio_classes class;
    enum matio_types type;
    size_t size;
} storage;

static storage storage_of(crd_type type)
{
    switch (type) {
    case CRD_FLOAT32:
        return (storage){MAT_C_SINGLE, MAT_T_SINGLE, 4};
    case CRD_INT8:
        return (storage){MAT_C_INT8, MAT_T_INT8, 1};
    case CRD_UINT8:
    case CRD_BOOLEAN:
    case CRD_CLOCK:
        return (storage){MAT_C_UINT8, MAT_T_UINT8, 1};
    case CRD_INT16:
        return (storage){MAT_C_INT16, MAT_T_INT16, 2};
    case CRD_UINT16:
        return (storage){MAT_C_UINT16, MAT_T_UINT16, 2};
    case CRD_INT32:
        return (storage){MAT_C_INT32, MAT_T_INT32, 4};
    case CRD_UINT32:
        return (storage){MAT_C_UINT32, MAT_T_UINT32, 4};
    case CRD_INT64:
    case CRD_ENUMERATION:
        return (storage){MAT_C_INT64, MAT_T_INT64, 8};
    case CRD_UINT64:
        return (storage){MAT_C_UINT64, MAT_T_UINT64, 8};
    case CRD_STRING:
    case CRD_BINARY:
        return (storage){MAT_C_CHAR, MAT_T_UTF16, 2};
    default:
        return (storage){MAT_C_DOUBLE, MAT_T_DOUBLE, 8};
    }
}

static void pack(crd_type type, const crd_word* in, size_t count, char* out)
{
    const size_t size = storage_of(type).size;
    for (size_t i = 0; i < count; i++, out += size) {
        const int64_t n = in[i].integer;
        const float single = type == CRD_FLOAT32 ? (float)in[i].real : 0;
        const uint8_t flag = n != 0;
        const uint16_t u16 = (uint16_t)n;
        const uint32_t u32 = (uint32_t)n;
        if (type == CRD_FLOAT32) {
            memcpy(out, &single, 4);
        } else if (type == CRD_BOOLEAN || type == CRD_CLOCK) {
            *out = (char)flag;
        } else if (size == 1) {
            *out = (char)(uint8_t)n;
        } else if (size == 2) {
            memcpy(out, &u16, 2);
        } else if (size == 4) {
            memcpy(out, &u32, 4);
        } else {
            memcpy(out, &in[i], 8);
        }
    }
}

// UTF-8 as UTF-16, at most as many units as there are bytes. What is not UTF-8 becomes U+FFFD, and
// without `pairs` what takes two units, too: readers that count characters (SciPy) refuse the whole
// version 5 file.
static size_t to_utf16(const char* text, size_t length, bool pairs, uint16_t* out)
{
    const unsigned char *p = (const unsigned char*)text, *end = p + length;
    size_t n = 0;
    while (p < end) {
        uint32_t c = *p++;
        int more = c >= 0xF0 && c < 0xF5 ? 3 : c >= 0xE0 && c < 0xF0 ? 2 : c >= 0xC2 ? 1 : 0;
        if (c >= 0x80 && (more == 0 || c >= 0xF5)) {
            out[n++] = 0xFFFD;
            continue;
        }
        c &= more == 3 ? 0x07 : more == 2 ? 0x0F : more == 1 ? 0x1F : 0x7F;
        while (more > 0 && p < end && (*p & 0xC0) == 0x80) {
            c = c << 6 | (*p++ & 0x3F);
            more--;
        }
        if (more > 0 || c > 0x10FFFF || (c >= 0x10000 && !pairs)) {
            out[n++] = 0xFFFD;
        } else if (c >= 0x10000) {
            out[n++] = (uint16_t)(0xD800 + ((c - 0x10000) >> 10));
            out[n++] = (uint16_t)(0xDC00 + ((c - 0x10000) & 0x3FF));
        } else {
            out[n++] = (uint16_t)c;
        }
    }
    return n;
}

static size_t cell_text(const column* c, const crd_word* cell, bool pairs, uint16_t* out)
{
    char text[TEXT_MOST];
    const size_t n =
        c->type == CRD_STRING ? crdi_csv_copy_string(text, cell) : crdi_csv_copy_binary(text, cell);
    return to_utf16(text, n, pairs, out);
}

// Takes the variable, NULL: there was no memory for it.
static bool write_variable(mat_sink* m, mat_t* file, matvar_t* v)
{
    if (!v) {
        fail_with(m, ENOMEM, NULL);
        return false;
    }
    errno = 0;
    m->result_bytes += v->class_type == MAT_C_STRUCT ? 0 : v->nbytes;
    const bool ok = Mat_VarWrite(file, v, MAT_COMPRESSION_NONE) == 0;
    if (!ok) { fail_with(m, errno ? errno : EIO, NULL); }
    Mat_VarFree(v);
    return ok;
}

// Calls `use` for each block of a column.
typedef void block_fn(void* user, const column* c, const crd_word* cells, size_t count,
                      size_t first);

static bool for_each_block(mat_sink* m, const column* c, block_fn* use, void* user)
{
    for (int64_t first = 0; first < m->result_rows; first += (int64_t)m->block_rows) {
        const int64_t left = m->result_rows - first;
        const size_t count = left < (int64_t)m->block_rows ? (size_t)left : m->block_rows;
        const crd_word* cells = m->block;
        if (first >= m->stored) {
            cells = m->tail + c->word * m->block_rows;
        } else if (!load_cells(m, c, first, count, m->block)) {
            return false;
        }
        use(user, c, cells, count, (size_t)first);
    }
    return true;
}

static void pack_block(void* user, const column* c, const crd_word* cells, size_t count,
                       size_t first)
{
    pack(c->type, cells, count, (char*)user + first * storage_of(c->type).size);
}

typedef struct text_matrix {
    size_t rows, width;
    bool pairs;
    uint16_t* units; // (width)(rows)
} text_matrix;

static void measure_block(void* user, const column* c, const crd_word* cells, size_t count,
                          size_t first)
{
    (void)first;
    text_matrix* t = user;
    uint16_t units[TEXT_MOST];
    for (size_t i = 0; i < count; i++) {
        const size_t n = cell_text(c, cells + i * CELL, t->pairs, units);
        if (n > t->width) { t->width = n; }
    }
}

static void text_block(void* user, const column* c, const crd_word* cells, size_t count,
                       size_t first)
{
    text_matrix* t = user;
    uint16_t units[TEXT_MOST];
    for (size_t i = 0; i < count; i++) {
        const size_t n = cell_text(c, cells + i * CELL, t->pairs, units);
        for (size_t k = 0; k < t->width; k++) {
            t->units[k * t->rows + first + i] = k < n ? units[k] : ' ';
        }
    }
}

static bool write_column(mat_sink* m, mat_t* file, const column* c)
{
    const storage kind = storage_of(c->type);
    text_matrix t = {.rows = (size_t)m->result_rows, .pairs = m->is_73};
    if (c->width > 1 && !for_each_block(m, c, measure_block, &t)) { return false; }
    const size_t width = c->width > 1 ? t.width : 1;
    char* data = crdi_new_array(m->base.ctx, t.rows * width, kind.size);
    if (!data) {
        fail_with(m, ENOMEM, NULL);
        return false;
    }
    t.units = (uint16_t*)(void*)data;
    bool ok = c->width > 1 ? for_each_block(m, c, text_block, &t)
                           : for_each_block(m, c, pack_block, data);
    if (ok) {
        size_t dims[2] = {t.rows, width};
        const bool logical = c->type == CRD_BOOLEAN || c->type == CRD_CLOCK;
        ok = write_variable(m, file,
                            Mat_VarCreate(c->variable, kind.class, kind.type, 2, dims, data,
                                          MAT_F_DONT_COPY_DATA | (logical ? MAT_F_LOGICAL : 0)));
    }
    crd_free(m->base.ctx, data);
    return ok;
}

// ---- texts -------------------------------------------------------------------------------------

// A char row; NULL when out of memory. libmatio has its own copy.
static matvar_t* char_variable(mat_sink* m, const char* name, const char* text, size_t length)
{
    uint16_t* units = crdi_new_array(m->base.ctx, length + 1, sizeof *units);
    if (!units) { return NULL; }
    size_t dims[2] = {length > 0, to_utf16(text, length, m->is_73, units)};
    matvar_t* v = Mat_VarCreate(name, MAT_C_CHAR, MAT_T_UTF16, 2, dims, units, 0);
    crd_free(m->base.ctx, units);
    return v;
}

static bool write_signals(mat_sink* m, mat_t* file)
{
    static const char* fields[] = {"variable", "name", "unit", "description", "labels"};
    size_t dims[2] = {1, (size_t)m->column_count - 1};
    if (dims[1] == 0) { return true; }
    matvar_t* v = Mat_VarCreateStruct("signals", 2, dims, fields, 5);
    for (size_t i = 0; v && i < dims[1]; i++) {
        const column* c = &m->columns[i + 1];
        const char* texts[] = {c->variable, c->name, c->unit, c->description, c->labels};
        for (size_t k = 0; v && k < 5; k++) {
            matvar_t* text = char_variable(m, NULL, texts[k], strlen(texts[k]));
            if (text) {
                Mat_VarSetStructFieldByIndex(v, k, i, text);
            } else {
                Mat_VarFree(v);
                v = NULL;
            }
        }
    }
    return write_variable(m, file, v);
}

// ---- the result --------------------------------------------------------------------------------

static uint64_t largest_variable(const mat_sink* m, int64_t rows)
{
    uint64_t most = 0;
    for (int i = 0; i < m->column_count; i++) {
        const column* c = &m->columns[i];
        const uint64_t width = c->type == CRD_STRING   ? 8 * (CELL - 1)
                               : c->type == CRD_BINARY ? TEXT_MOST
                                                       : 1;
        const uint64_t bytes = width * storage_of(c->type).size * (uint64_t)rows;
        if (bytes > most) { most = bytes; }
    }
    return most;
}

static void write_variables(mat_sink* m, mat_t* file)
{
    bool ok = true;
    for (int i = 0; ok && i < m->column_count; i++) {
        ok = write_column(m, file, &m->columns[i]);
    }
    ok = ok && write_signals(m, file);
    for (const attachment* a = m->attachments; ok && a; a = a->next) {
        ok = write_variable(m, file, char_variable(m, a->variable, a->text, a->length));
    }
}

// libmatio does not look at every write of a version 5 file. Behind its head of 128 bytes are
// elements: u32 type, u32 length, so many bytes. They have to be all there, up to the end.
static bool is_whole(const mat_sink* m, int fd, int64_t size)
{
    int variables = m->column_count + (m->column_count > 1);
    for (const attachment* a = m->attachments; a; a = a->next) {
        variables++;
    }
    int64_t at = 128;
    for (uint32_t tag[2]; at < size && variables > 0; variables--) {
        if (pread(fd, tag, sizeof tag, (off_t)at) != (ssize_t)sizeof tag) { return false; }
        at += (int64_t)sizeof tag + tag[1];
    }
    if (at != size || variables > 0) { return false; }
    // Within a structure it takes what was not written for written, and sets lengths to match.
    crdi_mat d = {.ctx = crd_context_create(NULL), .path = m->file, .size = (double)size};
    const bool whole = d.ctx && crdi_mat_check(&d) == CRD_OK;
    crd_context_destroy(d.ctx);
    return whole;
}

static void check_result(mat_sink* m)
{
    struct stat info;
    const int fd = open(m->file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0) {
        fail_with(m, errno, NULL);
    } else if ((uint64_t)info.st_size < m->result_bytes ||
               (!m->is_73 && !is_whole(m, fd, info.st_size))) {
        fail_with(m, ENOSPC, NULL);
    }
    if (fd >= 0) { close(fd); }
}

static void write_result(mat_sink* m)
{
    const bool large = largest_variable(m, m->result_rows) > m->most_bytes;
    m->result_bytes = 0;
    m->is_73 = m->version == 73 || (m->version == 0 && large);
    errno = 0;
    mat_t* file = Mat_CreateVer(m->file, NULL, m->is_73 ? MAT_FT_MAT73 : MAT_FT_MAT5);
    if (!file) {
        fail_with(m, errno ? errno : EIO, NULL);
        return;
    }
    write_variables(m, file);
    if (Mat_Close(file) != 0) { fail_with(m, errno ? errno : EIO, NULL); }
    if (!m->base.error) { check_result(m); }
}

// All rows; without room for them as many as fit, found by halving.
static void write_what_fits(mat_sink* m)
{
    int64_t fits = 0, most = m->result_rows;
    for (int tries = 0; tries < 12; tries++) {
        write_result(m);
        if (!m->base.error) {
            fits = m->result_rows;
            if (fits == most) { return; }
        } else if (crdi_sink_is_full(&m->base)) {
            most = m->result_rows;
            m->base.error = 0;
        } else {
            return;
        }
        m->result_rows = fits + (most - fits) / 2;
        if (m->result_rows == fits) { break; }
    }
    m->result_rows = fits;
    write_result(m);
    if (!m->base.error) { m->base.error = ENOSPC; }
}

// The last block, or a copy of it where the store is full: the block is needed to load others.
static void store_rest(mat_sink* m)
{
    const int64_t rest = (int64_t)m->filled;
    store_block(m);
    m->result_rows = m->stored;
    if (!crdi_sink_is_full(&m->base)) { return; }
    m->tail = crdi_new_array(m->base.ctx, m->words * m->block_rows, sizeof *m->tail);
    if (!m->tail) { return; }
    memcpy(m->tail, m->block, block_bytes(m));
    m->result_rows += rest;
    m->base.error = 0;
}

// Also after the limit of version 5 was met or the disk is full: then the rows up to there are
// written.
static void finish_mat(crdi_sink* s)
{
    mat_sink* m = (mat_sink*)s;
    crdi_sink_close(s);
    const int before = s->error;
    if (!before || s->reason[0] || crdi_sink_is_full(s)) {
        s->error = 0;
        store_rest(m);
        crdi_matio_begin();
        if (!s->error) { write_what_fits(m); }
        crdi_matio_end();
        crd_free(s->ctx, m->tail);
        m->tail = NULL;
        if (!s->error || (crdi_sink_is_full(s) && m->result_rows > 0)) {
            s->written = m->result_rows;
            if (before) { s->error = before; }
            return;
        }
    }
    s->reason[0] = 0;
    const int cut = truncate(m->file, 0); // half a MAT file cannot be read
    (void)cut;
}

static crd_status attach_to_mat(crdi_sink* s, const crd_attachment* a);

static void destroy_mat_sink(crdi_sink* s)
{
    mat_sink* m = (mat_sink*)s;
    for (attachment* a = m->attachments; a;) {
        attachment* next = a->next;
        crd_free(s->ctx, a->text);
        crd_free(s->ctx, a);
        a = next;
    }
    if (m->store >= 0) { close(m->store); }
    crd_free(s->ctx, m->block);
    crd_free(s->ctx, m->columns);
    crdi_map_clear(&m->names);
    crd_arena_clear(&m->arena);
    crdi_sink_clear(s);
    crd_free(s->ctx, m);
}

static const crdi_sink_ops ops = {
    .start = nothing,
    .row = put_mat_row,
    .flush = nothing,
    .hand_over = hand_over_mat,
    .finish = finish_mat,
    .attach = attach_to_mat,
    .destroy = destroy_mat_sink,
    .naps_to_flush = 1 << 30,
    .stack_bytes = 2 << 20, // HDF5
};

// ---- create ------------------------------------------------------------------------------------

static bool is_keyword(const char* name)
{
    static const char* const words[] = {"break",  "case",   "catch",     "classdef", "continue",
                                        "else",   "elseif", "end",       "for",      "function",
                                        "global", "if",     "otherwise", "parfor",   "persistent",
                                        "return", "spmd",   "switch",    "try",      "while"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i], name) == 0) { return true; }
    }
    return false;
}

// A name that MATLAB takes and that no other variable has. NULL when out of memory.
static const char* mat_write_variable_name(mat_sink* m, const char* name, size_t length)
{
    char text[NAME_MOST + 1];
    size_t n = 0;
    if (length && name[length - 1] == ']') { length--; } // x[1] is x_1
    const unsigned first = length ? (unsigned)name[0] | 32 : 0;
    if (first < 'a' || first > 'z') { text[n++] = 'x'; }
    for (size_t i = 0; i < length && n < NAME_MOST; i++) {
        const char c = name[i];
        const bool fine = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
        text[n++] = fine ? c : '_';
    }
    text[n] = 0;
    if (is_keyword(text)) { text[0] = (char)(text[0] & ~32); }
    const char* unique = crdi_arena_text(&m->arena, text, n);
    for (int i = 2; unique; i++) {
        bool fresh = false;
        if (crdi_map_add(&m->names, unique, 0, &fresh) < 0) { return NULL; }
        if (fresh) { return unique; }
        unique = crdi_arena_format(&m->arena, "%.56s_%d", text, i);
    }
    return NULL;
}

static crd_status attach_to_mat(crdi_sink* s, const crd_attachment* a)
{
    mat_sink* m = (mat_sink*)s;
    const char* dot = strrchr(a->name, '.');
    attachment* n = crdi_new(s->ctx, sizeof *n);
    if (!n) { return CRD_E_MEMORY; }
    n->variable =
        mat_write_variable_name(m, a->name, dot ? (size_t)(dot - a->name) : strlen(a->name));
    n->text = crdi_new_array(s->ctx, a->length, 1);
    if (!n->variable || !n->text) {
        crd_free(s->ctx, n->text);
        crd_free(s->ctx, n);
        return CRD_E_MEMORY;
    }
    if (a->length) { memcpy(n->text, a->data, a->length); }
    n->length = a->length;
    *m->last_attachment = n;
    m->last_attachment = &n->next;
    return CRD_OK;
}

// "0 = off; 1 = on"
static const char* labels_text(mat_sink* m, const crd_column* c)
{
    crd_text t;
    crd_text_init(&t, m->base.ctx);
    crdi_text_put(&t, "", 0);
    for (int i = 0; i < c->label_count; i++) {
        crdi_text_add(&t, "%s%lld = %s", i ? "; " : "", (long long)c->labels[i].value,
                      c->labels[i].text);
    }
    const char* text = t.failed ? NULL : crdi_arena_text(&m->arena, t.data ? t.data : "", t.length);
    crd_text_clear(&t);
    return text;
}

static crd_status make_mat_columns(mat_sink* m, const crd_recorder_options* opt,
                                   const crdi_rows* rows)
{
    m->columns = crdi_new_array(m->base.ctx, (size_t)opt->column_count + 1, sizeof *m->columns);
    if (!m->columns) { return CRD_E_MEMORY; }
    m->column_count = opt->column_count + 1;
    m->columns[0] = (column){.variable = mat_write_variable_name(m, "time", 4), .width = 1};
    if (!m->columns[0].variable || !mat_write_variable_name(m, "signals", 7)) {
        return CRD_E_MEMORY;
    }
    for (int i = 0; i < opt->column_count; i++) {
        const crd_column* c = &opt->columns[i];
        column* k = &m->columns[i + 1];
        k->type = c->type;
        k->word = (size_t)rows->fields[i].word;
        k->width = crd_type_kind(c->type) == CRD_BYTES ? CELL : 1;
        k->name = crdi_arena_text(&m->arena, c->name, strlen(c->name));
        k->unit = crdi_arena_text(&m->arena, c->unit, strlen(c->unit));
        k->description = crdi_arena_text(&m->arena, c->description, strlen(c->description));
        k->labels = labels_text(m, c);
        k->variable = mat_write_variable_name(m, c->name, strlen(c->name));
        if (!k->name || !k->unit || !k->description || !k->labels || !k->variable) {
            return CRD_E_MEMORY;
        }
    }
    return CRD_OK;
}

static crd_status find_file(mat_sink* m)
{
    char whole[PATH_MAX];
    const char* path = realpath(m->base.path, whole) ? whole : m->base.path;
    m->file = crdi_arena_text(&m->arena, path, strlen(path));
    return m->file ? CRD_OK : CRD_E_MEMORY;
}

// A file without a name in the folder of the result; so it is gone whatever happens.
static crd_status open_store(mat_sink* m)
{
    crd_context* ctx = m->base.ctx;
    const int length = (int)crdi_folder_length(m->base.path);
    char* folder = crdi_format(ctx, "%.*s.", length, m->base.path);
    if (!folder) { return CRD_E_MEMORY; }
    m->store = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    crd_free(ctx, folder);
    if (m->store >= 0) { return CRD_OK; }
    char* name = crdi_format(ctx, "%s.XXXXXX", m->base.path); // file systems that cannot do it
    if (!name) { return CRD_E_MEMORY; }
    m->store = mkostemp(name, O_CLOEXEC);
    const int error = errno;
    if (m->store >= 0) { unlink(name); }
    crd_free(ctx, name);
    if (m->store >= 0) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_IO, "%s: no place beside it to collect its rows: %s", m->base.path,
                     strerror(error));
}

static crd_status check_version(crd_context* ctx, const crd_recorder_options* opt)
{
    if (opt->mat_version == 0 || opt->mat_version == 5 || opt->mat_version == 73) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE, "%s: version %d of MAT files, expected 5 or 73", opt->path,
                     opt->mat_version);
}

crd_status crdi_mat_sink(crd_context* ctx, const crd_recorder_options* opt, const crdi_rows* rows,
                         uint64_t most_bytes, crdi_sink** out)
{
    crd_status st = check_version(ctx, opt);
    if (st < 0) { return st; }
    mat_sink* m = crdi_new(ctx, sizeof *m);
    if (!m) { return CRD_E_MEMORY; }
    m->store = -1;
    m->last_attachment = &m->attachments;
    crd_arena_init(&m->arena, ctx);
    crdi_map_init(&m->names, ctx);
    CRD_TRY(crdi_sink_init(&m->base, &ops, ctx, opt->path));
    CRD_TRY(find_file(m));
    CRD_TRY(make_mat_columns(m, opt, rows));
    CRD_TRY(open_store(m));
    m->version = opt->mat_version;
    m->most_bytes = most_bytes ? most_bytes : MAT5_MOST;
    m->most_rows = (int64_t)(m->most_bytes / largest_variable(m, 1));
    m->words = rows->words[0];
    m->block_rows = BLOCK_BYTES / sizeof(crd_word) / m->words;
    if (m->block_rows < BLOCK_LEAST) { m->block_rows = BLOCK_LEAST; }
    if (m->block_rows > BLOCK_MOST) { m->block_rows = BLOCK_MOST; }
    m->block = crdi_new_array(ctx, m->words * m->block_rows, sizeof *m->block);
    if (!m->block) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    *out = &m->base;
    return CRD_OK;
fail:
    destroy_mat_sink(&m->base);
    return st;
}
