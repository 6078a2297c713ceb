// What the command says when its memory may be damaged: no malloc, no locks, only write(2).
#include "cardan/master.h"
#include "cli/cli.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "shared/archive.h"

// Appends a JSON string, cut where `size` ends it.
static size_t put_quoted(char* out, size_t n, size_t size, const char* text)
{
    out[n++] = '"';
    for (; *text && n + 8 < size; text++) {
        if (*text == '"' || *text == '\\') { out[n++] = '\\'; }
        out[n++] = (unsigned char)*text < 0x20 ? ' ' : *text;
    }
    out[n++] = '"';
    return n;
}

void crdi_last_words(void* user, const crd_last_words* w)
{
    static crdi_cli nobody;
    crdi_cli* cli = user ? user : &nobody;
    char text[4096], json[2048];
    snprintf(text, sizeof text, "%s%s%s", w->sentence,
             w->results[0] ? "; everything up to there is recorded in " : "", w->results);
    crdi_message(cli, CRD_LOG_ERROR, text);
    if (cli->collect && !cli->printed) {
        size_t n = (size_t)snprintf(
            json, sizeof json,
            "{\"status\": \"%s\", \"exit_code\": %d, \"end\": \"failed\", \"time\": %.17g, "
            "\"rows\": %" PRId64 ", \"end_unit\": ",
            crd_status_name(CRD_E_CRASH), crd_status_exit_code(CRD_E_CRASH), w->time, w->rows);
        n = put_quoted(json, n, 512, w->unit);
        n += (size_t)snprintf(json + n, sizeof json - n, ", \"error\": ");
        n = put_quoted(json, n, sizeof json - 8, w->sentence);
        n += (size_t)snprintf(json + n, sizeof json - n, "}\n");
        crdi_write_all(STDOUT_FILENO, json, n);
    }
    crdi_scratch_abandon();
}
