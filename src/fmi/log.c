// What an FMU says, and what we say about it.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fmi/instance.h"
#include "shared/base.h"

// ---- messages of the FMU -----------------------------------------------------------------------

static bool same_base_type(const crd_variable* v, crd_type type)
{
    if (type == CRD_INT32) { return v->type == CRD_INT32 || v->type == CRD_ENUMERATION; }
    return v->type == type;
}

// The variable of a reference, for messages; FMI 2 counts per type: `type` Float64, Int32, Boolean
// or String there. NULL if there is none.
static const crd_variable* variable_of(const crd_fmi* i, crd_type type, uint32_t ref)
{
    for (int32_t k = 0; k < i->d->variable_count; k++) {
        const crd_variable* v = &i->d->variables[k];
        if (v->reference == ref && (!crdi_fmi_is_two(i) || same_base_type(v, type))) { return v; }
    }
    return NULL;
}

// Reads "#r12#" (FMI 2) or "#12#" (FMI 3) at `p`. Gives the variable and its length, or NULL.
static const crd_variable* referenced(const crd_fmi* i, const char* p, size_t* length)
{
    crd_type type = CRD_FLOAT64;
    const char* q = p + 1;
    if (crdi_fmi_is_two(i)) {
        switch (*q++) {
        case 'r':
            type = CRD_FLOAT64;
            break;
        case 'i':
            type = CRD_INT32;
            break;
        case 'b':
            type = CRD_BOOLEAN;
            break;
        case 's':
            type = CRD_STRING;
            break;
        default:
            return NULL;
        }
    }
    const char* digits = q;
    uint64_t ref = 0;
    while (*q >= '0' && *q <= '9' && q - digits < 10) {
        ref = 10 * ref + (uint64_t)(*q++ - '0');
    }
    if (q == digits || *q != '#' || ref > UINT32_MAX) { return NULL; }
    *length = (size_t)(q + 1 - p);
    return variable_of(i, type, (uint32_t)ref);
}

// One line: references become names, "##" becomes "#", line breaks and the like become spaces.
static void log_expand(const crd_fmi* i, const char* in, char out[CRDI_FMI_TEXT])
{
    size_t n = 0;
    while (*in && n + 1 < CRDI_FMI_TEXT) {
        size_t length = 1;
        const crd_variable* v = NULL;
        if (in[0] == '#' && in[1] == '#') {
            out[n++] = '#';
            length = 2;
        } else if (in[0] == '#' && (v = referenced(i, in, &length))) {
            n += (size_t)snprintf(out + n, CRDI_FMI_TEXT - n, "%s", v->name);
            if (n >= CRDI_FMI_TEXT) { n = CRDI_FMI_TEXT - 1; }
        } else {
            length = 1; // a reference to nothing stays as it is
            out[n++] = (unsigned char)*in < 0x20 || *in == 0x7f ? ' ' : *in;
        }
        in += length;
    }
    while (n > 0 && out[n - 1] == ' ') {
        n--;
    }
    out[n] = 0;
}

static crd_level level_of(int status)
{
    switch (status) {
    case CRDI_FMI_OK:
    case CRDI_FMI_PENDING:
        return CRD_LOG_DEBUG;
    case CRDI_FMI_WARNING:
    case CRDI_FMI_DISCARD:
        return CRD_LOG_WARNING;
    default:
        return CRD_LOG_ERROR;
    }
}

static bool in_set(const uint64_t set[CRDI_FMI_WORDS], int function)
{
    return function < 64 * CRDI_FMI_WORDS && ((set[function / 64] >> (function % 64)) & 1);
}

// An FMU may log from any of its threads. One lock for all: it is held for a copy, and messages
// that need it are rare.
static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER;

// ---- who speaks --------------------------------------------------------------------------------

_Thread_local crd_fmi* crdi_fmi_calling __attribute__((tls_model("initial-exec")));

enum { SPEAKER_LISTS = 1024 };
static struct {
    pthread_mutex_t lock;
    crd_fmi* first[SPEAKER_LISTS]; // by address
    int count;
} speakers = {.lock = PTHREAD_MUTEX_INITIALIZER};

// The link that leads to what lives at an address, or to NULL. Only those that live are looked
// into.
static crd_fmi** speaker_link(const void* address)
{
    crd_fmi** p = &speakers.first[((uintptr_t)address >> 6) % SPEAKER_LISTS];
    while (*p && *p != address) {
        p = &(*p)->beside;
    }
    return p;
}

void crdi_fmi_speaker_add(crd_fmi* i)
{
    pthread_mutex_lock(&speakers.lock);
    if (speakers.count++ == 0) { crdi_float_learn(); }
    *speaker_link(i) = i;
    pthread_mutex_unlock(&speakers.lock);
}

void crdi_fmi_speaker_remove(crd_fmi* i)
{
    enum { PATIENCE = 1000 };
    pthread_mutex_lock(&speakers.lock);
    crd_fmi** p = speaker_link(i);
    if (*p) {
        *p = i->beside;
        speakers.count--;
    }
    for (int k = 0; i->speaking > 0 && k < PATIENCE; k++) { // on a thread of the FMU
        pthread_mutex_unlock(&speakers.lock);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        pthread_mutex_lock(&speakers.lock);
    }
    pthread_mutex_unlock(&speakers.lock);
    if (crdi_fmi_calling == i) { crdi_fmi_calling = NULL; }
}

crd_fmi* crdi_fmi_speaker(void* environment)
{
    pthread_mutex_lock(&speakers.lock);
    crd_fmi* i = *speaker_link(environment);
    if (!i) { i = *speaker_link(crdi_fmi_calling); }
    if (i) { i->speaking++; }
    pthread_mutex_unlock(&speakers.lock);
    return i;
}

// FMI 1 has no environment: the instance that this thread called, unless the FMU's own handle says
// that it is another one. During fmiInstantiate... it may be anything.
static crd_fmi* speaker_of(const void* component)
{
    pthread_mutex_lock(&speakers.lock);
    crd_fmi* i = *speaker_link(crdi_fmi_calling);
    const bool other = component && (!i || (i->component && i->component != component));
    for (int k = 0; other && k < SPEAKER_LISTS; k++) { // on a thread of the FMU
        for (crd_fmi* o = speakers.first[k]; o; o = o->beside) {
            if (crdi_fmi_is_one(o) && o->component == component) { i = o; }
        }
    }
    if (i) { i->speaking++; }
    pthread_mutex_unlock(&speakers.lock);
    return i;
}

void crdi_fmi_speaker_done(crd_fmi* i)
{
    pthread_mutex_lock(&speakers.lock);
    i->speaking--;
    pthread_mutex_unlock(&speakers.lock);
}

// `raw` is finished but not expanded.
// An FMU may warn in every step, with other numbers each time: each wording is told once, as many
// as there is room for. Where the call stands does not count, so that it is the same however units
// are stepped. Under lock.
static bool was_said(crdi_fmi_said* s, int status, const char* text, bool* full)
{
    uint64_t hash = UINT64_C(14695981039346656037) + (uint64_t)status;
    for (const char* p = text; *p; p++) {
        const bool digit = *p >= '0' && *p <= '9';
        const bool part = *p == '.' || *p == '-' || *p == '+' ||
                          ((*p == 'e' || *p == 'E') && p > text && p[-1] >= '0' && p[-1] <= '9');
        if (digit || part) { continue; }
        hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
    }
    for (int k = 0; k < s->wording_count; k++) {
        if (s->wordings[k] == hash) { return true; }
    }
    *full = s->wording_count == CRDI_FMI_WORDINGS && !s->full;
    s->full |= *full;
    if (s->wording_count == CRDI_FMI_WORDINGS) { return true; }
    s->wordings[s->wording_count++] = hash;
    return false;
}

static void deliver(crd_fmi* i, int status, const char* category, const char* raw)
{
    if (!category) { category = ""; }
    if (status < CRDI_FMI_OK || status > CRDI_FMI_PENDING) { status = CRDI_FMI_ERROR; }
    crd_level level = level_of(status);
    const bool notable = level <= CRD_LOG_WARNING;
    if (!i->logger && !notable && crd_log_level(i->ctx) < level) { return; }
    char text[CRDI_FMI_TEXT];
    bool full = false;
    log_expand(i, raw, text);
    if (notable) {
        pthread_mutex_lock(&text_lock);
        if (!i->said) { i->said = calloc(1, sizeof *i->said); } // few have something to say
        if (i->said && status >= i->text_status) { // an Error is not hidden by a later Warning
            i->text_status = status;
            memcpy(i->said->text, text, sizeof text);
        }
        if (i->asked ||
            (i->said && level == CRD_LOG_WARNING && was_said(i->said, status, text, &full))) {
            level = CRD_LOG_DEBUG; // a refusal is an answer
        }
        pthread_mutex_unlock(&text_lock);
    }
    if (i->logger) {
        i->logger(i->logger_user, status, category, text);
    } else if (full) {
        crdi_log(i->ctx, CRD_LOG_WARNING,
                 "%s: %s; this and all other warnings that are new: with --log-level debug",
                 i->name, text);
    } else if (category[0]) {
        crdi_log(i->ctx, level, "%s: %s: %s", i->name, category, text);
    } else {
        crdi_log(i->ctx, level, "%s: %s", i->name, text);
    }
}

// A message of nobody is lost: there is no run that it belongs to.
static void speak(crd_fmi* i, int status, const char* category, const char* raw)
{
    if (!i) { return; }
    deliver(i, status, category, raw);
    crdi_fmi_speaker_done(i);
}

// A foreign format with "%n" made "%p": the argument is taken and nothing is written through it. A
// "%s" whose argument is no text cannot be seen. false: no room.
static bool log_copy_format(const char* format, char out[CRDI_FMI_TEXT])
{
    size_t n = 0;
    bool inside = false;
    for (; *format && n + 1 < CRDI_FMI_TEXT; format++) {
        char c = *format;
        if (c == '%') {
            inside = !inside;
        } else if (inside && !strchr("0123456789#-+ '.*$hlLqjzt", c)) {
            inside = false;
            if (c == 'n') {
                while (strchr("hlLqjzt", out[n - 1])) { // "%lp" is nothing
                    n--;
                }
                c = 'p';
            }
        }
        out[n++] = c;
    }
    out[n] = 0;
    return !*format;
}

static void speak_formatted(crd_fmi* i, int status, const char* category, const char* format,
                            va_list arguments)
{
    char raw[CRDI_FMI_TEXT] = "", safe[CRDI_FMI_TEXT];
    if (format && log_copy_format(format, safe)) {
        if (vsnprintf(raw, sizeof raw, safe, arguments) < 0) {
            snprintf(raw, sizeof raw, "%s", format);
        }
    } else if (format) { // too long: as it is
        snprintf(raw, sizeof raw, "%s", format);
    }
    speak(i, status, category, raw);
}

// The name of the instance is ours, and ours is not freed under our hands.
void crdi_fmi2_log(void* environment, const char* instance_name, crdi_fmi_status status,
                   const char* category, const char* format, ...)
{
    (void)instance_name;
    va_list arguments;
    va_start(arguments, format);
    speak_formatted(crdi_fmi_speaker(environment), (int)status, category, format, arguments);
    va_end(arguments);
}

void crdi_fmi1_log(void* component, const char* instance_name, crdi_fmi_status status,
                   const char* category, const char* format, ...)
{
    (void)instance_name;
    va_list arguments;
    va_start(arguments, format);
    speak_formatted(speaker_of(component), (int)status, category, format, arguments);
    va_end(arguments);
}

void crdi_fmi3_log(void* environment, crdi_fmi_status status, const char* category,
                   const char* text)
{
    speak(crdi_fmi_speaker(environment), (int)status, category, text ? text : "");
}

void crdi_fmi_take_text(crd_fmi* i, char out[CRDI_FMI_TEXT])
{
    pthread_mutex_lock(&text_lock);
    if (i->text_status && i->said) {
        memcpy(out, i->said->text, CRDI_FMI_TEXT);
    } else {
        out[0] = 0;
    }
    i->text_status = 0;
    pthread_mutex_unlock(&text_lock);
}

// ---- messages about the FMU --------------------------------------------------------------------

static const char* log_name_of(const crd_fmi* i, int function)
{
    return crdi_fmi_function_name(i->version, i->exchange, function);
}

static const char* status_name(crdi_fmi_status status)
{
    static const char* const names[] = {"OK", "Warning", "Discard", "Error", "Fatal", "Pending"};
    return (unsigned)status < 6 ? names[status] : "a number that is no status";
}

crd_status crdi_fmi_refuse(crd_fmi* i, int function)
{
    if (i->state == CRD_FMI_FATAL || atomic_load(&i->fatal)) {
        return crdi_fail(i->ctx, CRD_E_STATE,
                         "%s: %s is not called: the FMU has reported a fatal error", i->name,
                         log_name_of(i, function));
    }
    if (!in_set(i->library->present, function)) {
        return crdi_fail(i->ctx, CRD_E_UNSUPPORTED, "%s: the library of %s has no function %s",
                         i->name, crd_fmu_path(i->fmu), log_name_of(i, function));
    }
    char states[256] = "";
    size_t n = 0;
    for (int s = 0; s < CRD_FMI_STATE_COUNT && n < sizeof states; s++) {
        if (!crdi_fmi_allowed(crdi_fmi_kind_of(i), function, (crd_fmi_state)s)) { continue; }
        n += (size_t)snprintf(states + n, sizeof states - n, "%s%s", n ? ", " : "",
                              crdi_fmi_state_name((crd_fmi_state)s));
    }
    return crdi_fail(i->ctx, CRD_E_STATE,
                     "%s: %s is not allowed now, in state '%s'; allowed in: %s", i->name,
                     log_name_of(i, function), crdi_fmi_state_name(i->state), states);
}

// The type whose references an FMI 2 function takes.
static crd_type log_type_of(int function)
{
    switch (function) {
    case CRDI_FMI2_GetInteger:
    case CRDI_FMI2_SetInteger:
        return CRD_INT32;
    case CRDI_FMI2_GetBoolean:
    case CRDI_FMI2_SetBoolean:
        return CRD_BOOLEAN;
    case CRDI_FMI2_GetString:
    case CRDI_FMI2_SetString:
        return CRD_STRING;
    default:
        return CRD_FLOAT64;
    }
}

// " at t = 0.1", or " of a, b and 7 more"
static void word_place(const crd_fmi* i, int function, const crdi_fmi_place* place, char* out,
                       size_t size)
{
    enum { SHOWN = 4 };
    out[0] = 0;
    if (place && place->time) { snprintf(out, size, " at t = %.10g", *place->time); }
    if (!place || !place->refs) { return; }
    size_t n = 0;
    for (size_t k = 0; k < place->n && k < SHOWN && n < size; k++) {
        const crd_variable* v = variable_of(i, log_type_of(function), place->refs[k]);
        const char* before = k ? ", " : " of ";
        n += v ? (size_t)snprintf(out + n, size - n, "%s%.100s", before, v->name)
               : (size_t)snprintf(out + n, size - n, "%sreference %u", before, place->refs[k]);
    }
    if (place->n > SHOWN && n < size) {
        snprintf(out + n, size - n, " and %zu more", place->n - SHOWN);
    }
}

// Once as a warning, then for debugging: an FMU may warn in every step.
static crd_level warning_level(crd_fmi* i, int function)
{
    pthread_mutex_lock(&text_lock);
    if (!i->said) { i->said = calloc(1, sizeof *i->said); }
    const bool before = i->said && in_set(i->said->warned, function);
    if (before) { i->text_status = 0; } // not the reason of anything that follows
    if (i->said) { i->said->warned[function / 64] |= UINT64_C(1) << (function % 64); }
    pthread_mutex_unlock(&text_lock);
    return before ? CRD_LOG_DEBUG : CRD_LOG_WARNING;
}

crd_status crdi_fmi_judge(crd_fmi* i, int function, crdi_fmi_status status,
                          const crdi_fmi_place* place)
{
    crd_level level = CRD_LOG_ERROR;
    if (status == CRDI_FMI_WARNING) {
        level = warning_level(i, function);
        if (level > crd_log_level(i->ctx)) { return CRD_OK; }
    }
    char where[512], text[CRDI_FMI_TEXT];
    word_place(i, function, place, where, sizeof where);
    crdi_fmi_take_text(i, text);
    if (status == CRDI_FMI_WARNING) {
        // What the FMU said stands in the log already, unless it went to the caller's logger.
        const bool repeat = i->logger && text[0];
        crdi_log(i->ctx, level, "%s: %s%s returned Warning%s%s", i->name, log_name_of(i, function),
                 where, repeat ? ": " : "", repeat ? text : "");
        return CRD_OK;
    }
    const crd_fmi_state next = crdi_fmi_next(crdi_fmi_kind_of(i), i->state, function, status);
    if (next == CRD_FMI_FATAL) {
        crdi_fmi_set_fatal(i);
    } else {
        crdi_fmi_set_state(i, next);
    }
    return crdi_fail(i->ctx, CRD_E_UNIT, "%s: %s%s returned %s%s%s", i->name,
                     log_name_of(i, function), where, status_name(status),
                     text[0] ? "; its last message: " : "", text);
}
