// What drawings share: axes, and a canvas that is SVG or Cairo.
//
// A sheet is measured in units of which a letter of the usual size has 12, so that all distances go
// with the font. Classes are the words of the style sheet in the SVG; Cairo has them in a table.
#pragma once
#include "cardan/results.h"
#include "shared/base.h"

#include <string.h>

enum { CRDI_COLOURS = 7, CRDI_MOST_MARKS = 128 };

typedef struct crdi_axis {
    double low, high;    // ends of the axis
    int64_t first, last; // ticks at (first .. last) * mantissa * 10^exponent
    int mantissa;        // 1, 2 or 5
    int exponent;
    int64_t base;             // labels count from this tick
    int shift;                // and are divided by 10^shift
    bool log;                 // low and high are logarithms of base 10
    const char* const* names; // of 0 .. last, NULL: numbers
} crdi_axis;

// One line of the grid with its number, "" for none
typedef struct crdi_mark {
    double at; // as the axis counts: the logarithm of a logarithmic one
    const char* class;
    char text[48];
} crdi_mark;

// Ticks at 1, 2 or 5 times a power of ten, about `count` of them. `tight`: the axis ends with the
// data, else with the next tick.
crdi_axis crdi_axis_make(double low, double high, int count, bool tight);
// Of what the panels show; `right`: of the series at the right axis. `count`: about so many ticks.
crdi_axis crdi_axis_x(const crd_plot_panel* panels, const crd_plot_scale* scales, int panel_count,
                      bool log, int count);
crdi_axis crdi_axis_own_x(const crd_plot_panel* panel, const crd_plot_scale* scale, int count);
crdi_axis crdi_axis_y(const crd_plot_panel* panel, const crd_plot_scale* scale, bool right,
                      int count);
int crdi_axis_marks(const crdi_axis* a, crdi_mark* out); // room for CRDI_MOST_MARKS
void crdi_axis_factor(const crdi_axis* a, char out[64]); // "×10⁶ +1700000000", or ""
double crdi_axis_value(const crdi_axis* a, double v);
bool crdi_axis_shows(const crdi_axis* a, double v); // can it be drawn?
bool crdi_has_range(double low, double high);
bool crdi_panel_has_right(const crd_plot_panel* p);

typedef struct crdi_pen {
    int colour; // 0 ...; behind CRDI_COLOURS they begin again and are dotted
    bool dashed, points;
    int clip; // number of the frame at which lines end, -1: none
} crdi_pen;

typedef struct crdi_canvas crdi_canvas;
typedef struct crdi_canvas_ops {
    // anchor: 's'tart, 'm'iddle, 'e'nd; turned: from below to above
    void (*text)(crdi_canvas* c, const char* class, char anchor, double x, double y, bool turned,
                 const char* text);
    void (*line)(crdi_canvas* c, const char* class, double x1, double y1, double x2, double y2);
    void (*frame)(crdi_canvas* c, double x, double y, double width, double height, int clip);
    void (*bar)(crdi_canvas* c, int colour, double x, double y, double width, double height);
    void (*begin)(crdi_canvas* c, const crdi_pen* pen); // a curve
    void (*point)(crdi_canvas* c, double x, double y, bool first);
    void (*dot)(crdi_canvas* c, double x, double y);
    void (*end)(crdi_canvas* c);
    crd_status (*finish)(crdi_canvas* c); // what is drawn is in `out`; nothing else works behind it
} crdi_canvas_ops;

struct crdi_canvas {
    const crdi_canvas_ops* ops;
    crd_context* ctx;
    crd_text* out;
    void* more;                       // of Cairo
    double boxes[CRDI_MOST_MARKS][4]; // of frames at which lines end; more are not cut
};

// width and height in units; `unit` is the length of one in points, 1/72 inch.
crd_status crdi_canvas_svg(crdi_canvas* c, const crd_plot_options* o, double width, double height,
                           double unit);
crd_status crdi_canvas_cairo(crdi_canvas* c, const crd_plot_options* o, double width, double height,
                             double unit);
// The panels as lines of text.
void crdi_plot_terminal(crd_text* out, const crd_plot_options* o, const crd_plot_panel* panels,
                        int panel_count);

// Bytes of the character that a text begins with, 0: none that can be shown
static inline size_t crdi_letter_length(const char* text)
{
    return (unsigned char)*text < ' '    ? 0
           : (unsigned char)*text < 0x80 ? 1
                                         : crdi_utf8_length(text, strnlen(text, 4));
}

typedef struct crdi_colour {
    unsigned char red, green, blue;
} crdi_colour;
extern const crdi_colour crdi_colours[CRDI_COLOURS];
