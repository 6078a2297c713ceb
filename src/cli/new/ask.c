// cardan new --interactive: one question for each connection that is not sure.
#include "cli/new/new.h"

#include <stdio.h>
#include <string.h>

// A line without its end and blanks around it; false: there is none.
static bool read_answer(char* out, size_t size)
{
    if (!fgets(out, (int)size, stdin)) { return false; }
    size_t n = strlen(out), from = strspn(out, " \t");
    while (n > from && strchr(" \t\r\n", out[n - 1])) {
        n--;
    }
    memmove(out, out + from, n - from);
    out[n - from] = 0;
    return true;
}

static void put_question(const crdi_draft* d, const crdi_draft_line* l)
{
    const char* to = crdi_port_name(d->p, l->to);
    const char* measure = d->p->ports->ports[l->to].measure;
    if (l->from < 0) {
        fprintf(stderr, "%s%s%s%s gets its value from: unit.output, or nothing [nothing] ", to,
                *measure ? " [" : "", measure, *measure ? "]" : "");
    } else {
        fprintf(stderr, "%s -> %s (%s: %s): yes, no, or another unit.output [%s] ",
                crdi_port_name(d->p, l->from), to, crd_sureness_name(l->sure), l->why,
                l->used ? "yes" : "no");
    }
    (void)fflush(stderr);
}

// false: nobody answers any more.
static bool ask(crd_context* ctx, crdi_draft* d, int line)
{
    char answer[512];
    for (;;) {
        crdi_draft_line* l = &d->lines[line];
        put_question(d, l);
        if (!read_answer(answer, sizeof answer)) { return false; }
        if (!answer[0]) { return true; }
        const bool yes = strcmp(answer, "yes") == 0 || strcmp(answer, "y") == 0;
        const bool no = strcmp(answer, "no") == 0 || strcmp(answer, "n") == 0;
        if ((yes || no) && l->from >= 0) {
            l->used = yes;
            return true;
        }
        if (no) { return true; }
        if (crdi_draft_choose(ctx, d, line, answer) >= 0) { return true; }
        fprintf(stderr, "%s\n", crd_error_text(ctx));
    }
}

void crdi_draft_ask(crd_context* ctx, crdi_draft* d)
{
    bool more = true;
    for (int i = 0; i < d->count && more; i++) {
        if (d->lines[i].sure == CRD_SURE && d->lines[i].from >= 0) { continue; }
        more = ask(ctx, d, i);
    }
    if (!more) { fprintf(stderr, "\n"); }
}
