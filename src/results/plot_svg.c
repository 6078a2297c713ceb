// A canvas as SVG with texts that are texts, and a style for dark ground. Places are put together
// from integers, so that no locale gets into the file.
#include "results/plot.h"

#include <math.h>
#include <string.h>

static const char style[] =
    ".title{font-size:16px;font-weight:600;fill:#111}.panel{font-weight:600;fill:#111}\n"
    ".num{font-variant-numeric:tabular-nums;fill:#444}\n"
    ".ground{fill:#fff}.frame{fill:none;stroke:#777}.grid{stroke:#e4e4e4}.zero{stroke:#b8b8b8}\n"
    ".line{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}\n"
    ".dash{stroke-dasharray:6 4;stroke-linecap:butt}.dots{stroke-dasharray:2 3;"
    "stroke-linecap:butt}.points{stroke-width:7}.fine{stroke:#f2f2f2}\n"
    ".s0{stroke:#0072b2}.s1{stroke:#d55e00}.s2{stroke:#009e73}.s3{stroke:#cc79a7}\n"
    ".s4{stroke:#e69f00}.s5{stroke:#56b4e9}.s6{stroke:#555}.bar{stroke:none}\n"
    ".b0{fill:#0072b2}.b1{fill:#d55e00}.b2{fill:#009e73}.b3{fill:#cc79a7}\n"
    ".b4{fill:#e69f00}.b5{fill:#56b4e9}.b6{fill:#555}.pale{fill-opacity:.45}\n"
    "@media(prefers-color-scheme:dark){text{fill:#ccc}.title,.panel{fill:#f2f2f2}.num{fill:#aaa}\n"
    ".ground{fill:#14171c}.frame{stroke:#666}.grid{stroke:#2b3038}.zero{stroke:#4d5560}\n"
    ".fine{stroke:#20242a}\n"
    ".s0{stroke:#4aa8e8}.s1{stroke:#ff8a3d}.s2{stroke:#2cc795}.s3{stroke:#e59cc4}\n"
    ".s4{stroke:#f2b836}.s5{stroke:#9bd3f5}.s6{stroke:#bbb}\n"
    ".b0{fill:#4aa8e8}.b1{fill:#ff8a3d}.b2{fill:#2cc795}.b3{fill:#e59cc4}\n"
    ".b4{fill:#f2b836}.b5{fill:#9bd3f5}.b6{fill:#bbb}}\n"
    "</style>\n";

static void put_svg(crd_text* s, const char* text)
{
    crdi_text_put(s, text, strlen(text));
}

// A place on the sheet, in tenths of a unit
static void put_place(crd_text* s, double x)
{
    char text[32];
    const double tenths = round(fmin(fmax(x, -1e6), 1e6) * 10);
    crdi_text_put(s, text, (size_t)crdi_format_double(text, tenths == 0 ? 0 : tenths / 10));
}

static void put_attribute(crd_text* s, const char* name, double x)
{
    crdi_text_add(s, " %s=\"", name);
    put_place(s, x);
    put_svg(s, "\"");
}

static void svg_text(crdi_canvas* c, const char* class, char anchor, double x, double y,
                     bool turned, const char* text)
{
    crd_text* s = c->out;
    crdi_text_add(s, "<text class=\"%s\" text-anchor=\"%s\"", class,
                  anchor == 's'   ? "start"
                  : anchor == 'm' ? "middle"
                                  : "end");
    if (turned) {
        put_svg(s, " transform=\"translate(");
        put_place(s, x);
        put_svg(s, ",");
        put_place(s, y);
        put_svg(s, ") rotate(-90)\"");
    } else {
        put_attribute(s, "x", x);
        put_attribute(s, "y", y);
    }
    put_svg(s, ">");
    crdi_text_xml(s, text);
    put_svg(s, "</text>\n");
}

static void svg_line(crdi_canvas* c, const char* class, double x1, double y1, double x2, double y2)
{
    crdi_text_add(c->out, "<line class=\"%s\"", class);
    put_attribute(c->out, "x1", x1);
    put_attribute(c->out, "y1", y1);
    put_attribute(c->out, "x2", x2);
    put_attribute(c->out, "y2", y2);
    put_svg(c->out, "/>\n");
}

static void put_box(crd_text* s, double x, double y, double width, double height)
{
    put_attribute(s, "x", x);
    put_attribute(s, "y", y);
    put_attribute(s, "width", width);
    put_attribute(s, "height", height);
    put_svg(s, "/>");
}

static void svg_frame(crdi_canvas* c, double x, double y, double width, double height, int clip)
{
    put_svg(c->out, "<rect class=\"frame\"");
    put_box(c->out, x, y, width, height);
    put_svg(c->out, "\n");
    if (clip >= 0) {
        crdi_text_add(c->out, "<clipPath id=\"frame%d\"><rect", clip);
        put_box(c->out, x, y, width, height);
        put_svg(c->out, "</clipPath>\n");
    }
}

static void svg_bar(crdi_canvas* c, int colour, double x, double y, double width, double height)
{
    crdi_text_add(c->out, "<rect class=\"bar b%d%s\"", colour % CRDI_COLOURS,
                  colour >= CRDI_COLOURS ? " pale" : "");
    put_box(c->out, x, y, width, height);
    put_svg(c->out, "\n");
}

static void svg_begin(crdi_canvas* c, const crdi_pen* pen)
{
    crdi_text_add(c->out, "<path class=\"line s%d%s\"", pen->colour % CRDI_COLOURS,
                  pen->points                   ? " points"
                  : pen->dashed                 ? " dash"
                  : pen->colour >= CRDI_COLOURS ? " dots"
                                                : "");
    if (pen->clip >= 0) { crdi_text_add(c->out, " clip-path=\"url(#frame%d)\"", pen->clip); }
    put_svg(c->out, " d=\"");
}

static void svg_point(crdi_canvas* c, double x, double y, bool first)
{
    put_svg(c->out, first ? "M" : " ");
    put_place(c->out, x);
    put_svg(c->out, ",");
    put_place(c->out, y);
}

// A stroke without length and with round ends is a dot.
static void svg_dot(crdi_canvas* c, double x, double y)
{
    svg_point(c, x, y, true);
    put_svg(c->out, "h0");
}

static void svg_end(crdi_canvas* c)
{
    put_svg(c->out, "\"/>\n");
}

static crd_status svg_finish(crdi_canvas* c)
{
    put_svg(c->out, "</svg>\n");
    return CRD_OK;
}

static const crdi_canvas_ops ops = {svg_text,  svg_line, svg_frame, svg_bar,   svg_begin,
                                    svg_point, svg_dot,  svg_end,   svg_finish};

crd_status crdi_canvas_svg(crdi_canvas* c, const crd_plot_options* o, double width, double height,
                           double unit)
{
    c->ops = &ops;
    const double px = unit * 96 / 72;
    crd_text* s = c->out;
    put_svg(s, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"");
    put_attribute(s, "width", width * px);
    put_attribute(s, "height", height * px);
    put_svg(s, " viewBox=\"0 0 ");
    put_place(s, width);
    put_svg(s, " ");
    put_place(s, height);
    put_svg(s, "\">\n<title>");
    crdi_text_xml(s, o->title ? o->title : "");
    put_svg(s, "</title>\n<style>\ntext{font:12px ");
    for (const char* f = o->font ? o->font : ""; *f; f++) { // a name, and nothing else
        if (!strchr("{}<>&;\"\\\n", *f)) { crdi_text_put(s, f, 1); }
    }
    put_svg(s, o->font ? "," : "");
    put_svg(s, "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#333}\n");
    put_svg(s, style);
    put_svg(s, "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n");
    return CRD_OK;
}
