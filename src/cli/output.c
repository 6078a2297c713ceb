// What the command says beside its result: messages and progress; and the grids of tables.
#include "cli/cli.h"
#include "cli/printable.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void crdi_write_all(int fd, const char* text, size_t length)
{
    while (length > 0) {
        const ssize_t n = write(fd, text, length);
        if (n < 0 && errno == EINTR) { continue; }
        if (n <= 0) { return; } // nobody is left to be told
        text += n;
        length -= (size_t)n;
    }
}

void crdi_progress_line(crdi_cli* cli, const char* format, ...)
{
    char line[256] = "\r";
    struct winsize size = {0};
    va_list args;
    va_start(args, format);
    int n = 1 + vsnprintf(line + 1, sizeof line - 8, format, args);
    va_end(args);
    if (n > (int)sizeof line - 8) { n = (int)sizeof line - 8; }
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && n > size.ws_col) {
        n = size.ws_col; // with the \r one less: a line that wraps cannot be erased
    }
    n += snprintf(line + n, sizeof line - (size_t)n, "\033[K");
    pthread_mutex_lock(&cli->lock); // a thread of its own may show the progress of a run
    crdi_write_all(STDERR_FILENO, line, (size_t)n);
    cli->progress_shown = true;
    pthread_mutex_unlock(&cli->lock);
}

void crdi_progress_erase(crdi_cli* cli)
{
    static const char erase[] = "\r\033[K";
    pthread_mutex_lock(&cli->lock); // the page's thread may have something to say
    if (cli->progress_shown) { crdi_write_all(STDERR_FILENO, erase, sizeof erase - 1); }
    cli->progress_shown = false;
    pthread_mutex_unlock(&cli->lock);
}

// "1.2 of 4.6 GB", "3.2 of 10 s", "12 of 60 cases", and how fast it goes.
static void word_amounts(double done, double of, const char* unit, double rate, char* amount,
                         char* speed, size_t size)
{
    static const char* const bytes[] = {"B", "kB", "MB", "GB", "TB"};
    const bool data = strcmp(unit, "B") == 0, time = strcmp(unit, "s") == 0;
    const char* name = unit;
    double scale = 1;
    for (int i = 0; data && i < 4 && fmax(done, of) >= 1000 * scale; i++) {
        scale *= 1000;
        name = bytes[i + 1];
    }
    if (of > 0) {
        snprintf(amount, size, data ? "%.3g of %.3g %s" : "%.6g of %.6g %s", done / scale,
                 of / scale, name);
    } else {
        snprintf(amount, size, data ? "%.3g %s" : "%.6g %s", done / scale, name);
    }
    if (!(rate > 0)) {
        speed[0] = 0;
    } else if (data) {
        snprintf(speed, size, ", %.0f MB/s", 1e-6 * rate);
    } else if (time) {
        snprintf(speed, size, ", %.3g x real time", rate);
    } else if (rate < 1) {
        snprintf(speed, size, ", %.3g s each", 1 / rate);
    } else {
        snprintf(speed, size, ", %.3g/s", rate);
    }
}

// "2 min 05 s left"
static void word_rest(double rest, char* out, size_t size)
{
    if (!(rest >= 0) || rest > 1e7) {
        out[0] = 0;
    } else if (rest < 120) {
        snprintf(out, size, ", %.0f s left", rest);
    } else if (rest < 7200) {
        snprintf(out, size, ", %d min %02d s left", (int)rest / 60, (int)rest % 60);
    } else {
        snprintf(out, size, ", %d h %02d min left", (int)rest / 3600, (int)rest % 3600 / 60);
    }
}

// Not before the command has taken a second, and ten times a second at most.
void crdi_show_progress(void* user, const char* part, double done, double of, const char* unit)
{
    enum { PATIENCE_NS = 1000000000, PAUSE_NS = 100000000 };
    crdi_cli* cli = user;
    char name[sizeof cli->part.name], amount[96], speed[96], rest[64], portion[32] = "";
    if (!part) {
        crdi_progress_erase(cli);
        return;
    }
    const int64_t now = crdi_now_ns();
    snprintf(name, sizeof name, "%s", part);
    pthread_mutex_lock(&cli->lock); // several threads may work
    struct crdi_progress_part* p = &cli->part;
    if (strcmp(p->name, name) != 0 || done < p->first) {
        *p = (struct crdi_progress_part){.first = done, .begin_ns = now, .shown_ns = p->shown_ns};
        memcpy(p->name, name, sizeof name);
    }
    const bool due = now - cli->begin_ns >= PATIENCE_NS && now - p->shown_ns >= PAUSE_NS;
    if (due) { p->shown_ns = now; }
    const double elapsed = 1e-9 * (double)(now - p->begin_ns);
    const double rate = elapsed > 0 ? (done - p->first) / elapsed : 0;
    pthread_mutex_unlock(&cli->lock);
    if (!due) { return; }
    word_amounts(done, of, unit, rate, amount, speed, sizeof amount);
    word_rest(of > 0 && rate > 0 ? (of - done) / rate : (double)NAN, rest, sizeof rest);
    if (of > 0) { snprintf(portion, sizeof portion, ", %.0f %%", 100 * done / of); }
    crdi_progress_line(cli, "%s: %s%s%s%s", name, amount, portion, speed, rest);
}

size_t crdi_printable(char* text, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length;) {
        const unsigned char* c = (const unsigned char*)text + i;
        const size_t bytes = crdi_utf8_length(text + i, length - i);
        // U+0080 to U+009F are controls, U+FFFE and U+FFFF no characters
        const bool no = bytes == 0 || (bytes == 1 && (*c < 0x20 || *c == 0x7f)) ||
                        (bytes == 2 && *c == 0xC2 && c[1] < 0xA0) ||
                        (bytes == 3 && *c == 0xEF && c[1] == 0xBF && c[2] >= 0xBE);
        if (no) {
            text[n++] = (char)(*c == '\n' || *c == '\r' || *c == '\t' ? ' ' : '?');
        } else {
            memmove(text + n, text + i, bytes);
            n += bytes;
        }
        i += bytes ? bytes : 1;
    }
    return n;
}

void crdi_message(crdi_cli* cli, crd_level level, const char* text)
{
    static const char* const words[] = {"", "warning: ", "info: ", "debug: "};
    static const char* const colors[] = {"\033[31m", "\033[33m", "", "\033[2m"};
    char line[4096 + 64];
    const bool color = cli->color && *colors[level];
    const int n =
        snprintf(line, sizeof line - 1, "%s%scardan: %s%s", cli->progress_shown ? "\r\033[K" : "",
                 color ? colors[level] : "", words[level], color ? "\033[0m" : "");
    const size_t room = sizeof line - 1 - (size_t)n, wide = strlen(text);
    size_t length = wide < room ? wide : room; // one message, one line, whoever worded it
    memcpy(line + n, text, length);
    length = (size_t)n + crdi_printable(line + n, length);
    line[length++] = '\n';
    crdi_write_all(STDERR_FILENO, line, length);
}

void crdi_log_line(void* user, crd_level level, const char* text)
{
    crdi_cli* cli = user;
    pthread_mutex_lock(&cli->lock);
    if (!cli->silent || level == CRD_LOG_ERROR) { crdi_message(cli, level, text); }
    if (cli->collect && level == CRD_LOG_WARNING) {
        const char* copy = crdi_strdup(cli->ctx, text);
        if (copy && crdi_list_add(cli->ctx, &cli->warnings, copy) < 0) {
            crd_free(cli->ctx, (char*)copy);
        }
    }
    pthread_mutex_unlock(&cli->lock);
}

void crdi_drop_warnings(crdi_cli* cli)
{
    for (int i = 0; i < cli->warnings.count; i++) {
        crd_free(cli->ctx, (char*)cli->warnings.items[i]);
    }
    crd_free(cli->ctx, cli->warnings.items);
    cli->warnings = (crdi_list){0};
    cli->collect = false;
}

const char* crdi_format_seconds(char out[32], double seconds)
{
    static const struct {
        double factor;
        const char* name;
    } units[] = {{1, "s"}, {1e3, "ms"}, {1e6, "us"}, {1e9, "ns"}};
    int i = 0;
    while (i < 3 && seconds != 0 && fabs(seconds) * units[i].factor < 0.9999) {
        i++;
    }
    snprintf(out, 32, "%.4g %s", seconds * units[i].factor, units[i].name);
    return out;
}

const char* crdi_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

// ---- grids -------------------------------------------------------------------------------------

void crdi_grid_init(crdi_grid* g, crd_context* ctx, int columns, uint32_t right)
{
    *g = (crdi_grid){.columns = columns, .right = right};
    crd_arena_init(&g->arena, ctx);
}

void crdi_grid_add(crdi_grid* g, const char* format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text[crdi_printable(text, strlen(text))] = 0; // texts of FMUs may hold anything
    const char** cells =
        crdi_grow(g->arena.ctx, g->cells, &g->capacity, g->count + 1, sizeof *cells);
    if (!cells) { return; }
    g->cells = cells;
    g->cells[g->count++] = crdi_arena_text(&g->arena, text, strlen(text));
}

// Characters, not bytes: continuation bytes of UTF-8 do not count.
static size_t width_of(const char* text)
{
    size_t n = 0;
    for (; *text; text++) {
        n += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return n;
}

static const char* cell(const crdi_grid* g, size_t i)
{
    return g->cells[i] ? g->cells[i] : "";
}

void crdi_grid_write(const crdi_grid* g, crd_text* out, const char* indent)
{
    size_t width[32] = {0};
    const size_t columns = (size_t)g->columns;
    for (size_t i = 0; i < g->count; i++) {
        const size_t w = width_of(cell(g, i));
        if (w > width[i % columns]) { width[i % columns] = w; }
    }
    for (size_t row = 0; row + columns <= g->count; row += columns) {
        size_t last = columns; // nothing but spaces stands behind it
        while (last > 1 && !*cell(g, row + last - 1)) {
            last--;
        }
        crdi_text_add(out, "%s", indent);
        for (size_t k = 0; k < last; k++) {
            const char* text = cell(g, row + k);
            const bool right = g->right >> k & 1;
            const int pad = (int)(width[k] - width_of(text));
            if (k) { crdi_text_add(out, "  "); }
            if (right) { crdi_text_add(out, "%*s", pad, ""); }
            crdi_text_add(out, "%s", text);
            if (!right && k + 1 < last) { crdi_text_add(out, "%*s", pad, ""); }
        }
        crdi_text_add(out, "\n");
    }
}

void crdi_grid_clear(crdi_grid* g)
{
    crd_free(g->arena.ctx, g->cells);
    crd_arena_clear(&g->arena);
}

// ---- the end of a command ----------------------------------------------------------------------

void crdi_put_status(crdi_cli* cli, crdi_result* out, crd_status st)
{
    crdi_put(out, TEXT("status", crd_status_name(st)), INT("exit_code", crd_status_exit_code(st)),
             TEXT("error", st < 0 ? crd_error_text(cli->ctx) : NULL));
    crdi_put_texts(out, "warnings", cli->warnings.items, cli->warnings.count);
}

crd_status crdi_stdout_done(crd_context* ctx)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return crdi_fail(ctx, CRD_E_IO, "standard output: %s", strerror(errno));
    }
    return CRD_OK;
}
