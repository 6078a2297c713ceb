// A canvas over Cairo: PNG and PDF. The library is loaded when the first picture is drawn, so that
// a run does not carry it along, nor the libraries behind it.
#include "results/plot.h"

#include <cairo-pdf.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

enum { MOST_PIXELS = 30000 }; // in a row: Cairo has 16 bits for them

#define CAIRO_FUNCTIONS(X)                                                                         \
    X(cairo_create)                                                                                \
    X(cairo_destroy)                                                                               \
    X(cairo_status)                                                                                \
    X(cairo_status_to_string)                                                                      \
    X(cairo_image_surface_create)                                                                  \
    X(cairo_pdf_surface_create_for_stream)                                                         \
    X(cairo_pdf_surface_set_metadata)                                                              \
    X(cairo_surface_write_to_png_stream)                                                           \
    X(cairo_surface_finish)                                                                        \
    X(cairo_surface_destroy)                                                                       \
    X(cairo_surface_status)                                                                        \
    X(cairo_scale)                                                                                 \
    X(cairo_save)                                                                                  \
    X(cairo_restore)                                                                               \
    X(cairo_translate)                                                                             \
    X(cairo_rotate)                                                                                \
    X(cairo_rectangle)                                                                             \
    X(cairo_clip)                                                                                  \
    X(cairo_fill)                                                                                  \
    X(cairo_paint)                                                                                 \
    X(cairo_stroke)                                                                                \
    X(cairo_move_to)                                                                               \
    X(cairo_line_to)                                                                               \
    X(cairo_set_source_rgba)                                                                       \
    X(cairo_set_line_width)                                                                        \
    X(cairo_set_line_cap)                                                                          \
    X(cairo_set_line_join)                                                                         \
    X(cairo_set_dash)                                                                              \
    X(cairo_select_font_face)                                                                      \
    X(cairo_set_font_size)                                                                         \
    X(cairo_text_extents)                                                                          \
    X(cairo_show_text)

static struct {
    void* library;
#define X(name) __typeof__(&name) name;
    CAIRO_FUNCTIONS(X)
#undef X
} lib;

static void load_cairo(void)
{
    void* library = dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) { return; }
#define X(name)                                                                                    \
    *(void**)&lib.name = dlsym(library, #name);                                                    \
    if (!lib.name) { return; }
    CAIRO_FUNCTIONS(X)
#undef X
    lib.library = library;
}

const crdi_colour crdi_colours[CRDI_COLOURS] = {
    {0x00, 0x72, 0xb2}, {0xd5, 0x5e, 0x00}, {0x00, 0x9e, 0x73}, {0xcc, 0x79, 0xa7},
    {0xe6, 0x9f, 0x00}, {0x56, 0xb4, 0xe9}, {0x55, 0x55, 0x55},
};

typedef struct board {
    cairo_surface_t* surface;
    cairo_t* cairo;
    const char* font;
    bool png;
} board;

static board* board_of(const crdi_canvas* c)
{
    return c->more;
}

static void set_colour(cairo_t* to, crdi_colour k, double opacity)
{
    lib.cairo_set_source_rgba(to, k.red / 255.0, k.green / 255.0, k.blue / 255.0, opacity);
}

// The style sheet of the SVG, on white
typedef struct look {
    const char* class;
    unsigned char grey;
    double size; // of letters, else of lines
    bool bold;
} look;

static look look_of(const char* class)
{
    static const look looks[] = {{"title", 0x11, 16, true}, {"panel", 0x11, 12, true},
                                 {"num", 0x33, 12, false},  {"key", 0x22, 12, false},
                                 {"grid", 0xe4, 1, false},  {"zero", 0xb8, 1, false},
                                 {"fine", 0xf2, 1, false},  {"frame", 0x66, 1, false}};
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        if (strcmp(looks[i].class, class) == 0) { return looks[i]; }
    }
    return looks[3];
}

// Cairo gives up on the whole picture for one byte that is not UTF-8, and control characters have
// no shape.
static void put_clean(char* out, size_t room, const char* text)
{
    size_t n = 0;
    while (*text && n + 8 < room) {
        const size_t length = crdi_letter_length(text);
        if (length == 0) {
            out[n++] = '?';
            text++;
            continue;
        }
        memcpy(out + n, text, length);
        n += length;
        text += length;
    }
    out[n] = 0;
}

static void cairo_text(crdi_canvas* c, const char* class, char anchor, double x, double y,
                       bool turned, const char* text)
{
    const board* b = board_of(c);
    const look l = look_of(class);
    cairo_text_extents_t e;
    lib.cairo_save(b->cairo);
    lib.cairo_translate(b->cairo, x, y);
    if (turned) { lib.cairo_rotate(b->cairo, -M_PI / 2); }
    lib.cairo_select_font_face(b->cairo, b->font, CAIRO_FONT_SLANT_NORMAL,
                               l.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    lib.cairo_set_font_size(b->cairo, l.size);
    set_colour(b->cairo, (crdi_colour){l.grey, l.grey, l.grey}, 1);
    char clean[512];
    put_clean(clean, sizeof clean, text);
    lib.cairo_text_extents(b->cairo, clean, &e);
    lib.cairo_move_to(b->cairo,
                      anchor == 's'   ? 0
                      : anchor == 'm' ? -e.x_advance / 2
                                      : -e.x_advance,
                      0);
    lib.cairo_show_text(b->cairo, clean);
    lib.cairo_restore(b->cairo);
}

static void stroke(const board* b, const look* l)
{
    lib.cairo_set_dash(b->cairo, NULL, 0, 0);
    lib.cairo_set_line_cap(b->cairo, CAIRO_LINE_CAP_BUTT);
    lib.cairo_set_line_width(b->cairo, 0.8 * l->size);
    set_colour(b->cairo, (crdi_colour){l->grey, l->grey, l->grey}, 1);
    lib.cairo_stroke(b->cairo);
}

static void cairo_rule(crdi_canvas* c, const char* class, double x1, double y1, double x2,
                       double y2)
{
    const look l = look_of(class);
    lib.cairo_move_to(board_of(c)->cairo, x1, y1);
    lib.cairo_line_to(board_of(c)->cairo, x2, y2);
    stroke(board_of(c), &l);
}

static void cairo_frame(crdi_canvas* c, double x, double y, double width, double height, int clip)
{
    const look l = look_of("frame");
    lib.cairo_rectangle(board_of(c)->cairo, x, y, width, height);
    stroke(board_of(c), &l);
    if (clip >= 0 && clip < CRDI_MOST_MARKS) {
        memcpy(c->boxes[clip], (double[]){x, y, width, height}, sizeof c->boxes[clip]);
    }
}

static void cairo_bar(crdi_canvas* c, int colour, double x, double y, double width, double height)
{
    lib.cairo_rectangle(board_of(c)->cairo, x, y, width, height);
    set_colour(board_of(c)->cairo, crdi_colours[colour % CRDI_COLOURS],
               colour >= CRDI_COLOURS ? 0.45 : 1);
    lib.cairo_fill(board_of(c)->cairo);
}

static void cairo_begin(crdi_canvas* c, const crdi_pen* pen)
{
    cairo_t* to = board_of(c)->cairo;
    const bool dots = pen->colour >= CRDI_COLOURS;
    lib.cairo_save(to);
    if (pen->clip >= 0 && pen->clip < CRDI_MOST_MARKS && c->boxes[pen->clip][2] > 0) {
        const double* b = c->boxes[pen->clip];
        lib.cairo_rectangle(to, b[0], b[1], b[2], b[3]);
        lib.cairo_clip(to);
    }
    set_colour(to, crdi_colours[pen->colour % CRDI_COLOURS], 1);
    lib.cairo_set_line_width(to, pen->points ? 6 : 1.3);
    lib.cairo_set_line_join(to, CAIRO_LINE_JOIN_ROUND);
    const bool broken = !pen->points && (pen->dashed || dots);
    lib.cairo_set_line_cap(to, broken ? CAIRO_LINE_CAP_BUTT : CAIRO_LINE_CAP_ROUND);
    if (broken) {
        lib.cairo_set_dash(to, pen->dashed ? (double[]){6, 3} : (double[]){2, 2}, 2, 0);
    } else {
        lib.cairo_set_dash(to, NULL, 0, 0);
    }
}

static void cairo_point(crdi_canvas* c, double x, double y, bool first)
{
    (first ? lib.cairo_move_to : lib.cairo_line_to)(board_of(c)->cairo, x, y);
}

static void cairo_dot(crdi_canvas* c, double x, double y)
{
    lib.cairo_move_to(board_of(c)->cairo, x, y);
    lib.cairo_line_to(board_of(c)->cairo, x, y);
}

static void cairo_end(crdi_canvas* c)
{
    lib.cairo_stroke(board_of(c)->cairo);
    lib.cairo_restore(board_of(c)->cairo);
}

static cairo_status_t put_bytes(void* out, const unsigned char* data, unsigned int length)
{
    crdi_text_put(out, (const char*)data, length);
    return CAIRO_STATUS_SUCCESS;
}

static crd_status cairo_finish(crdi_canvas* c)
{
    board* b = board_of(c);
    cairo_status_t why = lib.cairo_status(b->cairo);
    lib.cairo_destroy(b->cairo);
    if (b->png && why == CAIRO_STATUS_SUCCESS) {
        why = lib.cairo_surface_write_to_png_stream(b->surface, put_bytes, c->out);
    }
    lib.cairo_surface_finish(b->surface);
    if (why == CAIRO_STATUS_SUCCESS) { why = lib.cairo_surface_status(b->surface); }
    lib.cairo_surface_destroy(b->surface);
    crd_free(c->ctx, b);
    return why == CAIRO_STATUS_SUCCESS ? CRD_OK
           : why == CAIRO_STATUS_NO_MEMORY
               ? CRD_E_MEMORY
               : crdi_fail(c->ctx, CRD_E_UNSUPPORTED, "the picture cannot be drawn: %s",
                           lib.cairo_status_to_string(why));
}

static const crdi_canvas_ops ops = {cairo_text,  cairo_rule, cairo_frame, cairo_bar,   cairo_begin,
                                    cairo_point, cairo_dot,  cairo_end,   cairo_finish};

crd_status crdi_canvas_cairo(crdi_canvas* c, const crd_plot_options* o, double width, double height,
                             double unit)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_cairo);
    if (!lib.library) {
        return crdi_fail(c->ctx, CRD_E_UNSUPPORTED,
                         "PNG and PDF are drawn by Cairo, and libcairo.so.2 cannot be loaded; "
                         "expected the package libcairo2, or a picture as .svg");
    }
    const bool png = o->format == CRD_PLOT_PNG;
    const double scale = png ? unit * (o->dpi > 0 ? o->dpi : 300) / 72 : unit;
    const double across = ceil(width * scale), down = ceil(height * scale);
    if (png && !(across >= 1 && across <= MOST_PIXELS && down >= 1 && down <= MOST_PIXELS)) {
        return crdi_fail(c->ctx, CRD_E_RANGE,
                         "a picture of %.0f x %.0f pixels, expected 1 to %d; choose another size "
                         "or resolution",
                         across, down, MOST_PIXELS);
    }
    board* b = crdi_new(c->ctx, sizeof *b);
    if (!b) { return CRD_E_MEMORY; }
    b->png = png;
    b->font = o->font ? o->font : "sans-serif";
    b->surface = png ? lib.cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)across, (int)down)
                     : lib.cairo_pdf_surface_create_for_stream(put_bytes, c->out, width * scale,
                                                               height * scale);
    if (!png && o->title && o->title[0]) {
        lib.cairo_pdf_surface_set_metadata(b->surface, CAIRO_PDF_METADATA_TITLE, o->title);
    }
    b->cairo = lib.cairo_create(b->surface);
    if (png) {
        set_colour(b->cairo, (crdi_colour){255, 255, 255}, 1);
        lib.cairo_paint(b->cairo);
    }
    lib.cairo_scale(b->cairo, scale, scale);
    c->more = b;
    c->ops = &ops;
    return CRD_OK;
}
