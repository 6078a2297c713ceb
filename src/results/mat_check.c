// MATLAB files before libmatio sees them. It takes what they say as it stands: gives zeros for what
// a file that was cut off does not have, and walks through cells in cells on its stack, with a copy
// of the inflater for each, or round and round where they hold each other.
#include "results/mat_read.h"

#include <fcntl.h>
#include <hdf5.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    MOST_DEPTH = 32, // cells in cells
    MOST_DIMENSIONS = 32,
    INT8 = 1, // types of elements of version 5
    INT32 = 5,
    UINT32 = 6,
    MATRIX = 14,
    COMPRESSED = 15,
    CLASS_CELL = 1, // classes of arrays: those that hold others
    CLASS_STRUCT = 2,
    CLASS_OBJECT = 3,
    CLASS_CHAR = 4,
    CLASS_SPARSE = 5,
    CLASS_UINT64 = 15,
    CLASS_FUNCTION = 16,
    CLASS_OPAQUE = 17,
    COMPLEX = 0x800, // in an array's flags
};

typedef struct walker {
    const crdi_mat* d;
    int fd;
    bool big_endian;
    uint64_t at, end;   // next byte of the file, first one behind the element
    bool packed, ended; // ended: the inflater has seen the end and its checksum
    z_stream z;
    unsigned char in[4096], waste[4096];
    size_t matrices;
} walker;

double crdi_mat_budget(const crdi_mat* d)
{
    const double any = 256.0 * 1024 * 1024;
    return 1032 * d->size > any ? 1032 * d->size : any;
}

static crd_status fail_kind(const crdi_mat* d)
{
    return crdi_fail(d->ctx, CRD_E_FORMAT, "%s: not a MATLAB file of version 4, 5 or 7.3", d->path);
}

static uint32_t number(const walker* w, const unsigned char* b)
{
    return w->big_endian ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]
                         : (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

static crd_status fail_damaged(const walker* w, const char* what)
{
    return crdi_fail(w->d->ctx, CRD_E_FORMAT, "%s: offset %llu: %s", w->d->path,
                     (unsigned long long)w->at, what);
}

static crd_status fail_cut(const walker* w)
{
    return fail_damaged(w, "the file is cut off, it ends within a variable");
}

static bool read_file(walker* w, void* to, size_t n)
{
    const bool there = n <= w->end - w->at && pread(w->fd, to, n, (off_t)w->at) == (ssize_t)n;
    w->at += there ? n : 0;
    return there;
}

// One call of the inflater, with something to inflate.
static crd_status inflate_some(walker* w)
{
    if (!w->z.avail_in) {
        const uint64_t left = w->end - w->at;
        const size_t part = left < sizeof w->in ? (size_t)left : sizeof w->in;
        if (!part || !read_file(w, w->in, part)) { return fail_cut(w); }
        w->z.next_in = w->in;
        w->z.avail_in = (uInt)part;
    }
    const int code = inflate(&w->z, Z_NO_FLUSH);
    w->ended = code == Z_STREAM_END;
    return code == Z_OK || w->ended ? CRD_OK
                                    : fail_damaged(w, "a variable's compressed data is damaged");
}

// The next bytes of the element, inflated if it is packed.
static crd_status next_bytes(walker* w, void* to, size_t n)
{
    crd_status st = CRD_OK;
    if (!w->packed) { return read_file(w, to, n) ? CRD_OK : fail_cut(w); }
    w->z.next_out = to;
    w->z.avail_out = (uInt)n;
    while (w->z.avail_out && st == CRD_OK) {
        st = w->ended ? fail_cut(w) : inflate_some(w);
    }
    return st;
}

// What is behind the array counts for nothing, but the checksum is right: libmatio would go on with
// whatever it has.
static crd_status end_stream(walker* w)
{
    crd_status st = CRD_OK;
    while (!w->ended && st == CRD_OK) {
        w->z.next_out = w->waste;
        w->z.avail_out = sizeof w->waste;
        st = inflate_some(w);
    }
    return st;
}

static crd_status skip(walker* w, uint64_t n)
{
    if (!w->packed) {
        if (n > w->end - w->at) { return fail_cut(w); }
        w->at += n;
        return CRD_OK;
    }
    crd_status st = CRD_OK;
    while (n && st == CRD_OK) {
        const size_t part = n < sizeof w->waste ? (size_t)n : sizeof w->waste;
        st = next_bytes(w, w->waste, part);
        n -= part;
    }
    return st;
}

// Length of an element's data behind its tag; 0: it is in the tag.
static uint64_t data_length(const walker* w, const unsigned char* tag, uint32_t* type)
{
    const uint32_t word = number(w, tag);
    *type = word & 0xFFFF;
    return word >> 16 ? 0 : number(w, tag + 4);
}

typedef struct element {
    uint32_t type;
    uint64_t data;  // bytes that mean something
    uint64_t n;     // bytes behind the tag, filled up; 0: they are in it
    uint32_t first; // where they are in the tag, as a number
} element;

// Tag and data of the next element, `*left` bytes before the end of its array.
static crd_status enter_element(walker* w, uint64_t* left, element* e)
{
    unsigned char tag[8];
    if (*left < sizeof tag) { return fail_cut(w); }
    const crd_status st = next_bytes(w, tag, sizeof tag);
    if (st < 0) { return st; }
    e->data = e->n = data_length(w, tag, &e->type);
    e->first = number(w, tag + 4);
    const uint32_t within = number(w, tag) >> 16;
    if (within > 4) { return fail_damaged(w, "an element has more than 4 bytes in its tag"); }
    if (within) { e->data = within; }
    *left -= sizeof tag;
    if (e->type != MATRIX) { e->n += -e->n & 7; } // filled up
    return e->n > *left ? fail_cut(w) : CRD_OK;
}

static crd_status skip_element(walker* w, uint64_t* left, const element* e)
{
    *left -= e->n;
    return skip(w, e->n);
}

// Numbers or texts: as many as the dimensions say, twice that if they are complex.
static crd_status walk_values(walker* w, uint64_t* left, double values, bool complex)
{
    static const uint8_t sizes[] = {0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8, 0, 0, 1, 2, 4};
    crd_status st = CRD_OK;
    for (int part = 0; part < (complex ? 2 : 1) && (values > 0 || *left >= 8); part++) {
        element e;
        CRD_TRY(enter_element(w, left, &e));
        const uint32_t size = e.type < sizeof sizes ? sizes[e.type] : 0;
        if (!size) { return fail_damaged(w, "an array's values have no type"); }
        if (values * size > (double)e.data) {
            return fail_damaged(w, "an array has fewer values than its dimensions say");
        }
        CRD_TRY(skip_element(w, left, &e));
    }
fail:
    return st;
}

// What a structure has before its fields: the room for a name, and the names.
static crd_status walk_field_names(walker* w, uint64_t* left, double* fields)
{
    crd_status st = CRD_OK;
    element room, names;
    CRD_TRY(enter_element(w, left, &room));
    if (room.type != INT32 || room.data != 4 || room.n || room.first < 1 || room.first > 4096) {
        return fail_damaged(w, "the length of a structure's field names is damaged");
    }
    CRD_TRY(enter_element(w, left, &names));
    if (names.type != INT8 || names.data % room.first) {
        return fail_damaged(w, "the field names of a structure are damaged");
    }
    const uint64_t count = names.data / room.first;
    *fields = (double)count;
    CRD_TRY(skip_element(w, left, &names));
fail:
    return st;
}

static crd_status walk_matrix(walker* w, uint64_t length, int depth);

// The elements that are left, and how many arrays are among them.
static crd_status walk_children(walker* w, uint64_t* left, int depth, double* arrays)
{
    crd_status st = CRD_OK;
    while (*left >= 8) {
        element e;
        CRD_TRY(enter_element(w, left, &e));
        if (e.type == MATRIX) {
            ++*arrays;
            *left -= e.n;
            CRD_TRY(walk_matrix(w, e.n, depth + 1));
        } else {
            CRD_TRY(skip_element(w, left, &e));
        }
    }
    st = skip(w, *left);
fail:
    return st;
}

// The elements of an array of `length` bytes: flags, dimensions, name and what its class has.
static crd_status walk_matrix(walker* w, uint64_t length, int depth)
{
    crd_status st = CRD_OK;
    unsigned char head[16], dims[4 * MOST_DIMENSIONS];
    if (depth > MOST_DEPTH) {
        return crdi_fail(w->d->ctx, CRD_E_FORMAT,
                         "%s: offset %llu: cells or structures lie more than %d deep in each other",
                         w->d->path, (unsigned long long)w->at, MOST_DEPTH);
    }
    if (512.0 * (double)++w->matrices > crdi_mat_budget(w->d)) { // what libmatio takes for one
        return crdi_fail(w->d->ctx, CRD_E_FORMAT,
                         "%s: offset %llu: more than %zu cells or fields in a file of %.0f bytes",
                         w->d->path, (unsigned long long)w->at, w->matrices, w->d->size);
    }
    if (length < sizeof head) { return skip(w, length); } // an empty cell
    CRD_TRY(next_bytes(w, head, sizeof head));
    length -= sizeof head;
    if (number(w, head) != UINT32 || number(w, head + 4) != 8) {
        return fail_damaged(w, "an array's flags are damaged");
    }
    const uint32_t class = number(w, head + 8) & 0xFF;
    double fields = 1, children = 0;
    if (class == CLASS_OPAQUE) { // no dimensions
        return walk_children(w, &length, depth, &children);
    }
    element e;
    CRD_TRY(enter_element(w, &length, &e));
    if (e.type != INT32 || e.n != (e.data + 7) / 8 * 8 || e.data % 4 || e.data < 8 ||
        e.n > sizeof dims) {
        return fail_damaged(w, "an array's dimensions are damaged, or more than 32");
    }
    CRD_TRY(next_bytes(w, dims, e.n));
    length -= e.n;
    double values = 1;
    for (size_t i = 0; i < e.data; i += 4) {
        values *= number(w, dims + i);
    }
    CRD_TRY(enter_element(w, &length, &e)); // the name
    if (e.type != INT8) { return fail_damaged(w, "an array's name is damaged"); }
    CRD_TRY(skip_element(w, &length, &e));
    const bool holds = (class >= CLASS_CELL && class <= CLASS_OBJECT) || class == CLASS_FUNCTION;
    if (class == CLASS_SPARSE) { // rows, columns, values
        CRD_TRY(walk_children(w, &length, depth, &children));
        return children > 0 ? fail_damaged(w, "a sparse array holds others") : CRD_OK;
    }
    if (!holds) { // numbers and texts: there is no more in them
        if (class >= CLASS_CHAR && class <= CLASS_UINT64) {
            CRD_TRY(walk_values(w, &length, values, number(w, head + 8) & COMPLEX));
        }
        return skip(w, length);
    }
    if (class == CLASS_STRUCT) { CRD_TRY(walk_field_names(w, &length, &fields)); }
    CRD_TRY(walk_children(w, &length, depth, &children));
    if (values * fields > children && (values > 1 || class == CLASS_FUNCTION)) {
        return fail_damaged(w, "an array has fewer cells or fields than its dimensions say");
    }
fail:
    return st;
}

static crd_status walk_packed(walker* w)
{
    crd_status st = CRD_OK;
    unsigned char tag[8];
    uint32_t type = 0;
    w->z = (z_stream){0};
    if (inflateInit(&w->z) != Z_OK) { return CRD_E_MEMORY; }
    w->packed = true;
    w->ended = false;
    CRD_TRY(next_bytes(w, tag, sizeof tag));
    const uint64_t length = data_length(w, tag, &type);
    if (type != MATRIX) {
        st = fail_damaged(w, "what is packed is no variable");
    } else {
        CRD_TRY(walk_matrix(w, length, 0));
        st = end_stream(w);
    }
fail:
    inflateEnd(&w->z);
    w->packed = false;
    return st;
}

// Version 5, little or big endian: 128 bytes, then elements, the last of which ends with the file:
//    0  u32  type; or, if its upper half is not 0, length << 16 | type of what is in the next 4
//    4  u32  length             8  bytes
static crd_status check_5(walker* w, uint64_t size)
{
    crd_status st = CRD_OK;
    unsigned char head[128], tag[8];
    w->end = size;
    if (!read_file(w, head, sizeof head)) { return fail_cut(w); }
    w->big_endian = head[126] == 'M';
    while (w->at < size) {
        uint32_t type = 0;
        w->end = size;
        if (!read_file(w, tag, sizeof tag)) { return fail_cut(w); }
        const uint64_t length = data_length(w, tag, &type), start = w->at;
        if (length > size - start) {
            w->at -= sizeof tag;
            return fail_cut(w);
        }
        w->end = start + length;
        if (type != MATRIX && type != COMPRESSED) {
            return fail_damaged(w, "neither a variable nor a compressed one");
        }
        CRD_TRY(type == MATRIX ? walk_matrix(w, length, 0) : walk_packed(w));
        w->at = start + length;
    }
fail:
    return st;
}

// Version 4: matrices one behind the other. The first number tells the byte order: it is below
// 5000.
//    0  i32  1000 M + 10 P + T, M byte order, P type       12  i32  1: complex
//    4  i32  rows           8  i32  columns               16  i32  length of the name, with its
//    zero
//   20  bytes  name, then the values
static crd_status check_4(walker* w, uint64_t size)
{
    static const uint8_t sizes[] = {8, 4, 4, 2, 2, 1, 0, 0, 0, 0};
    unsigned char head[20];
    while (w->at < size) {
        const uint64_t start = w->at;
        w->end = size;
        if (!read_file(w, head, sizeof head)) { return start ? fail_cut(w) : fail_kind(w->d); }
        w->big_endian = false;
        w->big_endian = number(w, head) >= 5000;
        const uint32_t kind = number(w, head), name = number(w, head + 16);
        const uint32_t size_of = sizes[kind / 10 % 10];
        if (kind >= 5000 || kind % 10 > 2 || kind / 100 % 10 || !size_of || !name || name > 4096) {
            return start ? fail_damaged(w, "a variable's head is damaged") : fail_kind(w->d);
        }
        const double values = (double)number(w, head + 4) * number(w, head + 8);
        const double length = name + values * size_of * (number(w, head + 12) ? 2 : 1);
        if (length > (double)(size - w->at)) {
            w->at = start;
            return fail_cut(w);
        }
        w->at += (uint64_t)length;
    }
    return CRD_OK;
}

// ---- version 7.3 -------------------------------------------------------------------------------

// Structures are groups, cells are datasets of references. Both can lead back to where one was, and
// few of them to very many.
typedef struct tree {
    const crdi_mat* d;
    double visits, most; // a reference takes 8 bytes of the file, or fewer if they are packed
    int depth;
    crd_status st;
} tree;

static void visit_object(tree* t, hid_t object);

static herr_t visit_link(hid_t group, const char* name, const H5L_info_t* info, void* user)
{
    (void)info;
    tree* t = user;
    if (name[0] == '#') { return 0; } // where MATLAB puts what cells refer to
    const hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    if (object >= 0) {
        visit_object(t, object);
        H5Oclose(object);
    }
    return t->st < 0 ? -1 : 0;
}

static void visit_references(tree* t, hid_t dataset)
{
    const hid_t space = H5Dget_space(dataset);
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    H5Sclose(space);
    hobj_ref_t* references = NULL;
    if (n > 0 && (double)n <= t->most - t->visits) {
        references = crdi_new_array(t->d->ctx, (size_t)n, sizeof *references);
        t->st = references ? CRD_OK : CRD_E_MEMORY;
    } else {
        t->visits += (double)n;
    }
    if (references &&
        H5Dread(dataset, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, references) < 0) {
        t->visits = t->most; // libmatio would go where they lead
    }
    for (hssize_t i = 0; references && i < n && t->st == CRD_OK; i++) {
        const hid_t object = H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, &references[i]);
        if (object < 0) { continue; }
        visit_object(t, object);
        H5Oclose(object);
    }
    crd_free(t->d->ctx, references);
}

static void visit_object(tree* t, hid_t object)
{
    t->visits++;
    t->depth++;
    const H5I_type_t kind = H5Iget_type(object);
    if (kind == H5I_DATASET && t->depth <= MOST_DEPTH) {
        const hid_t type = H5Dget_type(object);
        if (H5Tget_class(type) == H5T_REFERENCE) { visit_references(t, object); }
        H5Tclose(type);
    } else if (kind == H5I_GROUP && t->depth <= MOST_DEPTH) {
        H5Literate(object, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_link, t);
    }
    if (t->st == CRD_OK && t->depth > MOST_DEPTH) {
        t->st = crdi_fail(t->d->ctx, CRD_E_FORMAT,
                          "%s: cells or structures lie more than %d deep in each other", t->d->path,
                          MOST_DEPTH);
    } else if (t->st == CRD_OK && t->visits > t->most) {
        t->st = crdi_fail(t->d->ctx, CRD_E_FORMAT,
                          "%s: more than %.0f cells or fields in a file of %.0f bytes", t->d->path,
                          t->most, t->d->size);
    }
    t->depth--;
}

static crd_status check_73(const crdi_mat* d)
{
    const hid_t file = H5Fopen(d->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0) { return CRD_OK; } // libmatio says so
    tree t = {.d = d, .most = 10000 + d->size / 2, .depth = -1};
    const hid_t root = H5Gopen2(file, "/", H5P_DEFAULT);
    if (root >= 0) {
        visit_object(&t, root);
        H5Gclose(root);
    }
    H5Fclose(file);
    return t.st;
}

crd_status crdi_mat_check(const crdi_mat* d)
{
    walker w = {.d = d, .fd = open(d->path, O_RDONLY | O_CLOEXEC)};
    if (w.fd < 0) { return fail_kind(d); }
    const uint64_t size = (uint64_t)d->size;
    unsigned char head[128] = {0};
    // Two bytes of version, two that tell the byte order; HDF5 may go without that head.
    const bool read = pread(w.fd, head, sizeof head, 0) == (ssize_t)sizeof head;
    const bool big = head[126] == 'M' && head[127] == 'I',
               little = head[126] == 'I' && head[127] == 'M';
    const unsigned version = !read || (!big && !little) ? 0 : big ? head[124] : head[125];
    const crd_status st = version == 1                                      ? check_5(&w, size)
                          : version == 2 || memcmp(head, "\x89HDF", 4) == 0 ? check_73(d)
                                                                            : check_4(&w, size);
    close(w.fd);
    return st;
}
