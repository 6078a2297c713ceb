// The system as a drawing: units as boxes with the ports that are connected, in layers from left to
// right (Sugiyama, Tagawa, Toda 1981): break cycles, put every box one layer behind the last that
// feeds it, order the layers by the mean of their neighbours. Connections that lead back run below.
#include "results/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE = 17, // height of a port
    HEAD = 42, // of name and kind
    FOOT = 8,
    LETTER = 7, // width of a letter, rather too wide
    MOST_LETTERS = 26,
    MOST_PORTS = 16, // on a side; what is more shares the last
    MOST_EDGES = 2000,
    GAP_X = 54,  // between layers
    GAP_Y = 26,  // between boxes
    TRACK = 8,   // between lines that run side by side
    DETOUR = 12, // height of a line that passes a layer
    SWEEPS = 6,
};

typedef struct port {
    const char* name;
    int more; // that share it
} port;

// A box, or a place where a long connection passes a layer
typedef struct box {
    const char *name, *kind;
    port in[MOST_PORTS], out[MOST_PORTS];
    int in_count, out_count;
    bool detour;
    int layer;
    double x, y, w, h, wish;
    double sum; // of the heights of its neighbours
    int neighbours;
} box;

typedef struct edge {
    int from, to; // boxes
    int from_port, to_port;
    bool back;
    int first_detour; // box of the first layer that is passed, -1: none
    int lane, out_track, in_track;
    const crdi_json* what;
} edge;

typedef struct drawing {
    crd_context* ctx;
    crd_arena arena;
    box* boxes;
    int box_count, unit_count;
    size_t box_capacity; // in `boxes`
    edge* edges;
    int edge_count;
    int layer_count;
    int *order, *layer_begin; // boxes layer by layer; (layer_count + 1)
    double *layer_x, *layer_w;
    int *tracks_left, *tracks_right; // of connections that lead back, per layer
    int lanes;
    double width, height, top;
} drawing;

// ---- boxes and edges ---------------------------------------------------------------------------

// "unit.port": the longest name of a unit that fits
static int find_unit(const drawing* w, const char* text, const char** member)
{
    int best = -1;
    size_t length = 0;
    for (int i = 0; i < w->unit_count; i++) {
        const size_t n = strlen(w->boxes[i].name);
        if (n > 0 && n > length && strncmp(text, w->boxes[i].name, n) == 0 && text[n] == '.') {
            best = i;
            length = n;
        }
    }
    *member = text + length + 1;
    return best;
}

static int find_port(port* ports, int* count, const char* name)
{
    for (int i = 0; i < *count; i++) {
        if (strcmp(ports[i].name, name) == 0) { return i; }
    }
    if (*count == MOST_PORTS) {
        ports[MOST_PORTS - 1].more++;
        return MOST_PORTS - 1;
    }
    ports[*count].name = name;
    return (*count)++;
}

static crd_status take_units(drawing* w, const crdi_json* units)
{
    w->box_capacity = (size_t)crdi_json_count(units);
    w->boxes = crdi_new_array(w->ctx, w->box_capacity, sizeof *w->boxes);
    if (!w->boxes) { return CRD_E_MEMORY; }
    for (const crdi_json* u = crdi_json_first(units); u; u = u->next) {
        w->boxes[w->box_count++] =
            (box){.name = crdi_json_get_text(u, "name"), .kind = crdi_json_get_text(u, "kind")};
    }
    w->unit_count = w->box_count;
    return CRD_OK;
}

static crd_status take_edges(drawing* w, const crdi_json* connections)
{
    w->edges = crdi_arena_new(&w->arena, (size_t)crdi_json_count(connections), sizeof *w->edges);
    if (!w->edges) { return CRD_E_MEMORY; }
    for (const crdi_json* c = crdi_json_first(connections); c; c = c->next) {
        const char *out, *in;
        const int from = find_unit(w, crdi_json_get_text(c, "from"), &out);
        const int to = find_unit(w, crdi_json_get_text(c, "to"), &in);
        if (from < 0 || to < 0) { continue; }
        w->edges[w->edge_count++] =
            (edge){.from = from,
                   .to = to,
                   .from_port = find_port(w->boxes[from].out, &w->boxes[from].out_count, out),
                   .to_port = find_port(w->boxes[to].in, &w->boxes[to].in_count, in),
                   .first_detour = -1,
                   .what = c};
    }
    return CRD_OK;
}

// ---- layers ------------------------------------------------------------------------------------

// Depth first; an edge to a box that is still being visited leads back. Units are few, so the stack
// is no danger.
static void visit(drawing* w, int at, char* seen)
{
    seen[at] = 1;
    for (int i = 0; i < w->edge_count; i++) {
        edge* e = &w->edges[i];
        if (e->from != at) { continue; }
        if (seen[e->to] == 1) {
            e->back = true;
        } else if (seen[e->to] == 0) {
            visit(w, e->to, seen);
        }
    }
    seen[at] = 2;
}

static void find_layers(drawing* w)
{
    char seen[CRDI_MOST_BOXES] = {0};
    for (int pass = 0; pass < 2; pass++) { // sources first, then what only cycles reach
        for (int i = 0; i < w->unit_count; i++) {
            if (!seen[i] && (pass == 1 || w->boxes[i].in_count == 0)) { visit(w, i, seen); }
        }
    }
    for (int pass = 0; pass < w->unit_count; pass++) { // longest way from a source
        for (int i = 0; i < w->edge_count; i++) {
            const edge* e = &w->edges[i];
            const int next = w->boxes[e->from].layer + 1;
            if (!e->back && w->boxes[e->to].layer < next) { w->boxes[e->to].layer = next; }
        }
    }
    for (int i = 0; i < w->unit_count; i++) {
        if (w->boxes[i].layer >= w->layer_count) { w->layer_count = w->boxes[i].layer + 1; }
    }
}

// A box without body in every layer that an edge passes, so that the order keeps room for it.
static crd_status add_detours(drawing* w)
{
    for (int i = 0; i < w->edge_count; i++) {
        edge* e = &w->edges[i];
        const int begin = w->boxes[e->from].layer + 1, end = w->boxes[e->to].layer;
        if (e->back || begin >= end) { continue; }
        box* grown = crdi_grow(w->ctx, w->boxes, &w->box_capacity,
                               (size_t)(w->box_count + end - begin), sizeof *grown);
        if (!grown) { return CRD_E_MEMORY; }
        w->boxes = grown;
        e->first_detour = w->box_count;
        for (int layer = begin; layer < end; layer++) {
            w->boxes[w->box_count++] = (box){.detour = true, .layer = layer};
        }
    }
    return CRD_OK;
}

// ---- sizes and places --------------------------------------------------------------------------

static int shown_letters(const char* text)
{
    int n = 0;
    for (; *text; text++) {
        n += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return n < MOST_LETTERS ? n : MOST_LETTERS;
}

static int widest(const port* ports, int count)
{
    int most = 0;
    for (int i = 0; i < count; i++) {
        const int n = shown_letters(ports[i].name) + (ports[i].more ? 8 : 0);
        most = n > most ? n : most;
    }
    return most;
}

static void measure_box(box* b)
{
    if (b->detour) {
        b->h = DETOUR;
        return;
    }
    const int rows = b->in_count > b->out_count ? b->in_count : b->out_count;
    const double head = 24 + LETTER * 1.12 * shown_letters(b->name),
                 kind = 24 + LETTER * shown_letters(b->kind);
    const double ports =
        34 + 0.9 * LETTER * (widest(b->in, b->in_count) + widest(b->out, b->out_count));
    b->w = fmax(fmax(head, kind), fmax(ports, 110));
    b->h = HEAD + (rows ? rows * LINE + FOOT : 0);
}

static double port_y(const box* b, int at)
{
    return b->detour ? b->y + b->h / 2 : b->y + HEAD + at * LINE + LINE * 0.5;
}

static void stack_layers(drawing* w)
{
    double most = 0;
    for (int pass = 0; pass < 2; pass++) { // heights, then places in the middle of the highest
        for (int l = 0; l < w->layer_count; l++) {
            double height = 0;
            for (int k = w->layer_begin[l]; k < w->layer_begin[l + 1]; k++) {
                box* b = &w->boxes[w->order[k]];
                if (k > w->layer_begin[l]) {
                    height += b->detour && w->boxes[w->order[k - 1]].detour ? 0 : GAP_Y;
                }
                if (pass == 1) { b->y = b->wish + height; }
                height += b->h;
            }
            most = fmax(most, height);
            for (int k = w->layer_begin[l]; pass == 0 && k < w->layer_begin[l + 1]; k++) {
                w->boxes[w->order[k]].wish = height; // for now: of its layer
            }
        }
        for (int i = 0; i < w->box_count && pass == 0; i++) {
            w->boxes[i].wish = (most - w->boxes[i].wish) / 2 + 12;
        }
    }
    w->top = most + 24;
}

// The boxes that edge e touches: 0 is its source, the last its target.
static int stop_count(const drawing* w, const edge* e)
{
    return w->boxes[e->to].layer - w->boxes[e->from].layer + 1;
}

static box* edge_stop(const drawing* w, const edge* e, int i)
{
    const int last = stop_count(w, e) - 1;
    return &w->boxes[i == 0 ? e->from : i == last ? e->to : e->first_detour + i - 1];
}

static double stop_y(const drawing* w, const edge* e, int i)
{
    const box* b = edge_stop(w, e, i);
    return port_y(b, i == 0 ? e->from_port : e->to_port);
}

static void sort_layer(drawing* w, int layer)
{
    int* order = w->order;
    for (int i = w->layer_begin[layer] + 1; i < w->layer_begin[layer + 1]; i++) {
        const int moved = order[i];
        int k = i;
        for (; k > w->layer_begin[layer]; k--) {
            if (w->boxes[order[k - 1]].wish <= w->boxes[moved].wish) { break; }
            order[k] = order[k - 1];
        }
        order[k] = moved;
    }
}

// One sweep: every box wishes to stand at the mean height of its neighbours before or behind it.
static void sweep(drawing* w, bool forward)
{
    for (int i = 0; i < w->box_count; i++) {
        w->boxes[i].sum = 0;
        w->boxes[i].neighbours = 0;
    }
    for (int i = 0; i < w->edge_count; i++) {
        const edge* e = &w->edges[i];
        if (e->back) { continue; }
        for (int k = 0; k + 1 < stop_count(w, e); k++) {
            box* b = edge_stop(w, e, forward ? k + 1 : k);
            b->sum += stop_y(w, e, forward ? k : k + 1);
            b->neighbours++;
        }
    }
    for (int i = 0; i < w->box_count; i++) {
        box* b = &w->boxes[i];
        b->wish = b->neighbours ? b->sum / b->neighbours : b->y + b->h / 2;
    }
    for (int l = 0; l < w->layer_count; l++) {
        sort_layer(w, l);
    }
    stack_layers(w);
}

static crd_status order_layers(drawing* w)
{
    w->order = crdi_arena_new(&w->arena, (size_t)w->box_count, sizeof *w->order);
    w->layer_begin = crdi_arena_new(&w->arena, (size_t)w->layer_count + 1, sizeof(int));
    if (!w->order || !w->layer_begin) { return CRD_E_MEMORY; }
    int n = 0;
    for (int l = 0; l < w->layer_count; l++) {
        w->layer_begin[l] = n;
        for (int i = 0; i < w->box_count; i++) {
            if (w->boxes[i].layer == l) { w->order[n++] = i; }
        }
    }
    w->layer_begin[w->layer_count] = n;
    for (int i = 0; i < w->box_count; i++) {
        measure_box(&w->boxes[i]);
    }
    stack_layers(w);
    for (int i = 0; i < SWEEPS; i++) {
        sweep(w, i % 2 == 0);
    }
    return CRD_OK;
}

// Lanes and tracks of what leads back, then the layers side by side with room for them.
static crd_status place_layers(drawing* w)
{
    const size_t n = (size_t)w->layer_count;
    w->layer_x = crdi_arena_new(&w->arena, n, sizeof(double));
    w->layer_w = crdi_arena_new(&w->arena, n, sizeof(double));
    w->tracks_left = crdi_arena_new(&w->arena, n, sizeof(int));
    w->tracks_right = crdi_arena_new(&w->arena, n, sizeof(int));
    if (!w->layer_x || !w->layer_w || !w->tracks_left || !w->tracks_right) { return CRD_E_MEMORY; }
    for (int span = 0; span < w->layer_count; span++) { // the shortest way back is the innermost
        for (int i = w->edge_count - 1; i >= 0; i--) {
            edge* e = &w->edges[i];
            const int from = w->boxes[e->from].layer, to = w->boxes[e->to].layer;
            if (!e->back || from - to != span) { continue; }
            e->lane = w->lanes++;
            e->out_track = w->tracks_right[from]++;
            e->in_track = w->tracks_left[to]++;
        }
    }
    double x = 14;
    for (int l = 0; l < w->layer_count; l++) {
        for (int k = w->layer_begin[l]; k < w->layer_begin[l + 1]; k++) {
            w->layer_w[l] = fmax(w->layer_w[l], w->boxes[w->order[k]].w);
        }
        x += w->tracks_left[l] ? 12 + TRACK * w->tracks_left[l] : 0;
        w->layer_x[l] = x;
        x += w->layer_w[l] + (w->tracks_right[l] ? 12 + TRACK * w->tracks_right[l] : 0);
        x += l + 1 < w->layer_count ? GAP_X : 14;
    }
    for (int i = 0; i < w->box_count; i++) {
        box* b = &w->boxes[i];
        b->x = w->layer_x[b->layer] + (b->detour ? 0 : (w->layer_w[b->layer] - b->w) / 2);
        if (b->detour) { b->w = w->layer_w[b->layer]; }
    }
    w->width = x;
    w->height = w->top + (w->lanes ? 6 + TRACK * w->lanes : 0);
    return CRD_OK;
}

// ---- SVG ---------------------------------------------------------------------------------------

static void put_place(crd_text* t, double x)
{
    const long tenths = lround(x * 10);
    crdi_text_add(t, "%ld.%ld ", tenths / 10, labs(tenths % 10));
}

static void put_step(crd_text* t, char command, double x, double y)
{
    crdi_text_put(t, &command, 1);
    put_place(t, x);
    put_place(t, y);
}

// A corner at (x, y) that comes from (x0, y0) and leaves towards (x1, y1), rounded.
static void put_corner(crd_text* t, double x0, double y0, double x, double y, double x1, double y1)
{
    const double in = fmax(fabs(x - x0), fabs(y - y0)), out = fmax(fabs(x1 - x), fabs(y1 - y));
    const double radius = fmin(7, fmin(in, out) / 2);
    const double u = in > 0 ? radius / in : 0, v = out > 0 ? radius / out : 0;
    put_step(t, 'L', x + (x0 - x) * u, y + (y0 - y) * u);
    put_step(t, 'Q', x, y);
    put_place(t, x + (x1 - x) * v);
    put_place(t, y + (y1 - y) * v);
}

static void put_back(crd_text* t, const drawing* w, const edge* e)
{
    const box *a = &w->boxes[e->from], *b = &w->boxes[e->to];
    const double x0 = a->x + a->w, y0 = port_y(a, e->from_port);
    const double x1 = w->layer_x[a->layer] + w->layer_w[a->layer] + 12 + TRACK * e->out_track;
    const double lane = w->top + TRACK * e->lane;
    const double x2 = w->layer_x[b->layer] - 16 - TRACK * e->in_track;
    const double x3 = b->x - 1, y3 = port_y(b, e->to_port);
    put_step(t, 'M', x0, y0);
    put_corner(t, x0, y0, x1, y0, x1, lane);
    put_corner(t, x1, y0, x1, lane, x2, lane);
    put_corner(t, x1, lane, x2, lane, x2, y3);
    put_corner(t, x2, lane, x2, y3, x3, y3);
    put_step(t, 'L', x3, y3);
}

static void put_forward(crd_text* t, const drawing* w, const edge* e)
{
    const int n = stop_count(w, e);
    for (int k = 0; k + 1 < n; k++) {
        const box *a = edge_stop(w, e, k), *b = edge_stop(w, e, k + 1);
        const double x0 = a->x + a->w, y0 = stop_y(w, e, k);
        const double x1 = b->x - (k + 2 == n), y1 = stop_y(w, e, k + 1);
        const double middle = (x0 + x1) / 2;
        if (k == 0) { put_step(t, 'M', x0, y0); }
        if (k > 0) { put_step(t, 'L', x0, y0); }
        put_step(t, 'C', middle, y0);
        put_place(t, middle);
        put_place(t, y1);
        put_place(t, x1);
        put_place(t, y1);
    }
}

static void put_edge(crd_text* t, const drawing* w, const edge* e)
{
    const char* unit = crdi_json_get_text(e->what, "unit");
    crdi_text_add(t, "<path class=\"wire%s\" marker-end=\"url(#tip%s)\" d=\"",
                  e->back ? " back" : "", e->back ? "-back" : "");
    if (e->back) {
        put_back(t, w, e);
    } else {
        put_forward(t, w, e);
    }
    crdi_text_add(t, "\"><title>");
    crdi_text_xml(t, crdi_json_get_text(e->what, "from"));
    crdi_text_add(t, " \u2192 ");
    crdi_text_xml(t, crdi_json_get_text(e->what, "to"));
    if (*unit) {
        crdi_text_add(t, " [");
        crdi_text_xml(t, unit);
        crdi_text_add(t, "]");
    }
    crdi_text_add(t, "</title></path>\n");
}

static void put_label(crd_text* t, const char* class, const char* anchor, double x, double y,
                      const char* text, int more)
{
    crdi_text_add(t, "<text class=\"%s\" text-anchor=\"%s\" x=\"", class, anchor);
    put_place(t, x);
    crdi_text_add(t, "\" y=\"");
    put_place(t, y);
    crdi_text_add(t, "\">");
    char brief[4 * MOST_LETTERS + 8];
    crdi_svg_clip(brief, text, MOST_LETTERS);
    crdi_text_xml(t, brief);
    if (more) { crdi_text_add(t, " +%d", more); }
    crdi_text_add(t, "</text>\n");
}

static void put_box(crd_text* t, const box* b)
{
    crdi_text_add(t, "<g><title>");
    crdi_text_xml(t, b->name);
    crdi_text_add(t, "</title><rect class=\"box\" rx=\"6\" x=\"");
    put_place(t, b->x);
    crdi_text_add(t, "\" y=\"");
    put_place(t, b->y);
    crdi_text_add(t, "\" width=\"");
    put_place(t, b->w);
    crdi_text_add(t, "\" height=\"");
    put_place(t, b->h);
    crdi_text_add(t, "\"/>\n");
    put_label(t, "name", "middle", b->x + b->w / 2, b->y + 18, b->name, 0);
    put_label(t, "kind", "middle", b->x + b->w / 2, b->y + 33, b->kind, 0);
    for (int i = 0; i < b->in_count; i++) {
        put_label(t, "port", "start", b->x + 10, port_y(b, i) + 4, b->in[i].name, b->in[i].more);
    }
    for (int i = 0; i < b->out_count; i++) {
        put_label(t, "port", "end", b->x + b->w - 10, port_y(b, i) + 4, b->out[i].name,
                  b->out[i].more);
    }
    crdi_text_add(t, "</g>\n");
}

// Colours come from the page that holds the drawing, or are those of the drawing itself.
static const char style[] =
    "<style>.topology{--tb:var(--panel,#f6f8fa);--tl:var(--edge,#8c959f);--tt:var(--text,#1f2328);"
    "--tm:var(--muted,#59636e);--ta:var(--accent,#0969da);--tr:var(--return,#bc4c00)}\n"
    ".topology text{" CRDI_SVG_FONT "}.topology .name{font-size:13.5px;font-weight:600}"
    ".topology .kind{font-size:11px;fill:var(--tm)}.topology .port{font-size:11.5px}\n"
    ".topology .box{fill:var(--tb);stroke:var(--tl)}"
    ".topology .wire{fill:none;stroke:var(--ta);stroke-width:1.5}"
    ".topology .wire:hover{stroke-width:3}.topology .back{stroke:var(--tr)}"
    ".topology .tip{fill:var(--ta)}.topology .tip-back{fill:var(--tr)}\n";
static const char dark_style[] =
    "@media(prefers-color-scheme:dark){.topology{--tb:#1c2128;--tl:#6e7681;--tt:#e6edf3;"
    "--tm:#9198a1;--ta:#4ea1ff;--tr:#f0883e}}\n";

static void put_drawing(crd_text* t, const drawing* w, bool alone)
{
    const int width = (int)ceil(w->width), height = (int)ceil(w->height);
    char label[48];
    snprintf(label, sizeof label, "%d units and their connections", w->unit_count);
    crdi_svg_begin(t, "topology", label, width, height);
    crdi_text_put(t, style, sizeof style - 1);
    if (alone) { crdi_text_put(t, dark_style, sizeof dark_style - 1); }
    crdi_text_add(t, "</style>\n<defs>");
    static const char* const tips[] = {"tip", "tip-back"};
    for (int i = 0; i < 2; i++) {
        crdi_text_add(t,
                      "<marker id=\"%s\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" "
                      "markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" "
                      "orient=\"auto\"><path class=\"%s\" d=\"M0 .5 8 4 0 7.5Z\"/></marker>",
                      tips[i], tips[i]);
    }
    crdi_text_add(t, "</defs>\n");
    for (int i = 0; i < w->edge_count; i++) {
        put_edge(t, w, &w->edges[i]);
    }
    for (int i = 0; i < w->unit_count; i++) {
        put_box(t, &w->boxes[i]);
    }
    crdi_text_add(t, "</svg>\n");
}

crd_status crdi_report_drawing(crd_context* ctx, const crdi_json* what, bool alone, crd_text* out)
{
    const crdi_json* units = crdi_json_get_list(what, "units");
    const crdi_json* connections = crdi_json_get_list(what, "connections");
    const int n = crdi_json_count(units);
    if (n < 2 || n > CRDI_MOST_BOXES || crdi_json_count(connections) == 0 ||
        crdi_json_count(connections) > MOST_EDGES) {
        return CRD_OK;
    }
    crd_status st = CRD_OK;
    drawing w = {.ctx = ctx};
    crd_arena_init(&w.arena, ctx);
    CRD_TRY(take_units(&w, units));
    CRD_TRY(take_edges(&w, connections));
    find_layers(&w);
    CRD_TRY(add_detours(&w));
    CRD_TRY(order_layers(&w));
    CRD_TRY(place_layers(&w));
    put_drawing(out, &w, alone);
    if (out->failed) { st = CRD_E_MEMORY; }
fail:
    crd_free(ctx, w.boxes);
    crd_arena_clear(&w.arena);
    return st;
}

crd_status crd_report_drawing(crd_context* ctx, const char* what, size_t length, crd_text* out)
{
    crd_arena room;
    crdi_json* read = NULL;
    crd_arena_init(&room, ctx);
    crd_status st = crdi_json_parse_most(&room, what, length, CRDI_JSON_RUN_BYTES,
                                         (crdi_json_source){.file = CRD_ATTACHMENT_RUN}, &read);
    if (st == CRD_OK) { st = crdi_report_drawing(ctx, read, true, out); }
    crd_arena_clear(&room);
    return st;
}
