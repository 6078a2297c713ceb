// What the description of a bench lists: the variables of the extension and the entries of its log.
#include "dcp/bench/bench.h"
#include "dcp/description/dcpx.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- variables ---------------------------------------------------------------------------------

typedef struct row {
    const char* name;
    uint8_t causality, type;
    size_t at; // of its index in crdi_dcp_bench_variables
    const char* description;
} row;

#define AT(field) offsetof(crdi_dcp_bench_variables, field)
static const row rows[] = {
    {"bench.extension", CRD_PARAMETER, CRD_DCP_UINT8, AT(extension),
     "1 switches the bench extension on"},
    {"bench.limits", CRD_PARAMETER, CRD_DCP_STRING, AT(limits),
     "limits of the bench, to be read only"},
    {"bench.peer_limits", CRD_PARAMETER, CRD_DCP_STRING, AT(peer_limits),
     "limits of the master's side"},
    {"bench.case", CRD_PARAMETER, CRD_DCP_STRING, AT(planned), "what the test case needs"},
    {"bench.initial", CRD_PARAMETER, CRD_DCP_STRING, AT(initial),
     "temperatures of the media at the start"},
    {"bench.sequence", CRD_INPUT, CRD_DCP_UINT32, AT(sequence),
     "number of the master's data, one more each time"},
    {"bench.echo", CRD_INPUT, CRD_DCP_UINT32, AT(echo),
     "newest bench.sequence_out that the master has got"},
    {"bench.sequence_out", CRD_OUTPUT, CRD_DCP_UINT32, AT(sequence_out),
     "number of the bench's data, one more each time"},
    {"bench.echo_out", CRD_OUTPUT, CRD_DCP_UINT32, AT(echo_out),
     "newest bench.sequence that the bench has got"},
    {"bench.status", CRD_OUTPUT, CRD_DCP_UINT8, AT(status),
     "0 idle, 1 preparation, 2 prepared, 3 conditioning, 4 conditioned, 5 run, 6 speed down, "
     "7 voltage down, 8 cool down, 9 stand down, 10 safe, 11 armed"},
    {"bench.reason", CRD_OUTPUT, CRD_DCP_UINT8, AT(reason),
     "of the last stop: 0 none, 1 master, 2 operator, 3 watchdog, 4 sequence gap, 5 trip, 6 error, "
     "7 checklist, 8 limits, 9 withdrawn, 10 slave"},
    {"bench.clamped", CRD_OUTPUT, CRD_DCP_UINT32, AT(clamped),
     "bit i: set value i is outside of its limits, bit 16 + i: it changes too fast"},
    {"bench.clamps", CRD_OUTPUT, CRD_DCP_UINT32, AT(clamps),
     "how often a set value has gone outside of its limits"},
    {"bench.refused", CRD_OUTPUT, CRD_DCP_UINT32, AT(refused), "set values that were not numbers"},
};
enum { ROWS = sizeof rows / sizeof *rows };

bool crdi_dcp_bench_find(const crd_dcp_description* d, crdi_dcp_bench_variables* out)
{
    for (int i = 0; i < ROWS; i++) {
        const int k = crdi_dcp_find_name(d, rows[i].name);
        if (k < 0 || d->variables[k].causality != rows[i].causality ||
            d->variables[k].type != rows[i].type || d->variables[k].rank != 0) {
            return false;
        }
        memcpy((char*)out + rows[i].at, &k, sizeof k);
    }
    return true;
}

// ---- log ---------------------------------------------------------------------------------------

// Arguments are those of the message: numbers are float64.
static const struct {
    uint8_t level;
    const char* message;
} entries[CRDI_LOG_COUNT] = {
    [CRDI_LOG_READY] = {3, "preparation: all items are met"},
    [CRDI_LOG_MISSING] = {2, "preparation: missing %string"},
    [CRDI_LOG_CONDITIONING] = {3, "conditioning: %string at %float64 %string, wanted %float64"},
    [CRDI_LOG_CONDITIONED] = {3, "conditioning: done, temperatures are held"},
    [CRDI_LOG_REFUSED] = {1, "refused: %string"},
    [CRDI_LOG_CLAMPED] =
        {2, "clamped: %string = %float64 %string, used %float64, limits %float64 to %float64"},
    [CRDI_LOG_NOT_A_NUMBER] = {2, "refused: the set value of %string is not a number"},
    [CRDI_LOG_TRIP] = {1, "fault: %string measured %float64 %string, allowed %float64 to %float64"},
    [CRDI_LOG_WATCHDOG] = {1, "fault: watchdog, no valid data for %float64 s"},
    [CRDI_LOG_GAP] = {1, "fault: sequence numbers are %float64 apart, allowed %float64"},
    [CRDI_LOG_RIG_ERROR] = {1, "fault: error %float64 in the memory of the bench"},
    [CRDI_LOG_ITEM_LOST] = {1, "fault: lost %string"},
    [CRDI_LOG_STOP] = {3, "stop: %string"},
    [CRDI_LOG_STOP_LATE] = {1, "stop: has taken %float64 s, the speed is %float64"},
    [CRDI_LOG_AVOIDED] =
        {2,
         "clamped: %string = %float64 %string, used %float64: not allowed at this operating point"},
    [CRDI_LOG_FOREIGN] = {1, "refused: %float64 data PDUs of somebody who is not the master"},
    [CRDI_LOG_UNSAFE] = {1, "not safe: %string"},
    [CRDI_LOG_SILENCE] = {1, "fault: no sign of the master for %float64 s"},
    [CRDI_LOG_CALIBRATED] = {3, "calibrated: %string"},
};

const crd_dcp_log_template* crdi_bench_template(const crd_dcp_description* d, crdi_bench_log log)
{
    for (int i = 0; i < d->template_count; i++) {
        if (strcmp(d->templates[i].message, entries[log].message) == 0) { return &d->templates[i]; }
    }
    return NULL;
}

void crdi_bench_tell(crd_dcp_bench* b, crdi_bench_log log, const char* const* text,
                     const double* real)
{
    enum { ROOM = 160, MOST = 6 }; // of a text: an entry that is stored has 256 bytes
    const crd_dcp_log_template* t = b->logs[log];
    crd_dcp_slot slots[MOST] = {{0}};
    uint8_t bytes[2][ROOM];
    uint32_t lengths[2];
    double numbers[MOST];
    int texts = 0;
    if (!t || t->argument_count > MOST) { return; }
    for (int i = 0; i < t->argument_count; i++) {
        slots[i] = (crd_dcp_slot){.type = t->arguments[i], .count = 1};
        if (crdi_dcp_is_real(slots[i].type)) {
            numbers[i] = *real++;
            slots[i].real = &numbers[i];
            continue;
        }
        const size_t n = strlen(text[texts]);
        lengths[texts] = (uint32_t)(n < ROOM ? n : ROOM);
        memcpy(bytes[texts], text[texts], lengths[texts]);
        slots[i].bytes = bytes[texts];
        slots[i].byte_count = &lengths[texts];
        slots[i].max_size = ROOM;
        texts++;
    }
    crd_dcp_slave_log(b->slave, t->id, slots, b->slave->now);
}

// ---- declare -----------------------------------------------------------------------------------

static crd_status check_free(const crd_dcp_description* d, uint64_t first_vr)
{
    if (first_vr > UINT64_MAX - ROWS) {
        return crdi_fail(d->ctx, CRD_E_RANGE, "bench: no %d value references from %llu on", ROWS,
                         (unsigned long long)first_vr);
    }
    for (int i = 0; i < d->variable_count; i++) {
        const crd_dcp_variable* v = &d->variables[i];
        if (v->vr >= first_vr && v->vr < first_vr + ROWS) {
            return crdi_fail(
                d->ctx, CRD_E_RANGE,
                "bench: variable %s has value reference %llu, expected %llu to %llu to "
                "be free",
                v->name, (unsigned long long)v->vr, (unsigned long long)first_vr,
                (unsigned long long)(first_vr + ROWS - 1));
        }
        for (int k = 0; k < ROWS; k++) {
            if (strcmp(v->name, rows[k].name) == 0) {
                return crdi_fail(d->ctx, CRD_E_RANGE,
                                 "bench: there is a variable %s already; that name is the "
                                 "extension's",
                                 v->name);
            }
        }
    }
    return CRD_OK;
}

// Which bit is whose, and its variables: "...; 0 speed (speed_ref, speed), 1 oil (-, oil_in)".
static const char* describe_bits(crd_dcp_description* d, const crd_dcp_bench_config* c,
                                 const char* what)
{
    const char* text = what;
    for (int i = 0; text && i < c->quantity_count; i++) {
        const crd_dcp_quantity* q = &c->quantities[i];
        text = crdi_arena_format(&d->arena, "%s%s%d %s (%s, %s)", text, i ? ", " : "; ", i,
                                 q->name ? q->name : "-", q->input ? q->input : "-",
                                 q->output ? q->output : "-");
    }
    return text;
}

// The text up to the next of `ends`, which is skipped with the blanks behind it. false: too long,
// empty, or no end.
static bool next_pair_word(const char** at, const char* ends, char* out, size_t room)
{
    const size_t n = strcspn(*at, ends);
    if (n == 0 || n >= room || !(*at)[n]) { return false; }
    memcpy(out, *at, n);
    out[n] = 0;
    *at += n + 1;
    *at += strspn(*at, " ");
    return true;
}

static int bench_describe_find_variable(const crd_dcp_description* d, const char* name,
                                        uint8_t causality)
{
    const int i = crdi_dcp_find_name(d, name);
    return i >= 0 && d->variables[i].causality == causality ? i : -1;
}

int crdi_dcp_bench_pairs(const crd_dcp_description* d, crdi_dcp_bench_pair* out)
{
    crdi_dcp_bench_variables v;
    const char* text = crdi_dcp_bench_find(d, &v) ? d->variables[v.clamped].description : NULL;
    const char* at = text ? strchr(text, ';') : NULL;
    int count = 0;
    for (at = at ? at + 1 + strspn(at + 1, " ") : ""; *at && count < CRD_DCP_LIMITS_MAX; count++) {
        crdi_dcp_bench_pair* p = &out[count];
        char bit[8], input[128], output[128];
        if (!next_pair_word(&at, " ", bit, sizeof bit) || strtol(bit, NULL, 10) != count ||
            !next_pair_word(&at, " ", p->name, sizeof p->name) || *at++ != '(' ||
            !next_pair_word(&at, ",", input, sizeof input) ||
            !next_pair_word(&at, ")", output, sizeof output)) {
            return count;
        }
        p->input = bench_describe_find_variable(d, input, CRD_INPUT);
        p->output = bench_describe_find_variable(d, output, CRD_OUTPUT);
        at += strspn(at, ", ");
    }
    return count;
}

static crd_dcp_variable make_variable(const row* r, uint64_t vr, const char* start,
                                      const char* description)
{
    crd_dcp_variable v = crd_dcp_variable_defaults();
    v.name = r->name;
    v.description = description;
    v.vr = vr;
    v.causality = r->causality;
    v.type = r->type;
    v.variability = r->causality == CRD_PARAMETER ? CRD_FIXED : CRD_DISCRETE;
    v.start = start;
    if (r->type == CRD_DCP_STRING) { v.max_size = CRDI_DCP_LIMITS_TEXT; }
    if (r->causality == CRD_OUTPUT) { // as often as the measured values beside it
        v.fixed_steps = false;
        v.default_steps = v.min_steps = 1;
        v.max_steps = 1000000;
    }
    return v;
}

static crd_status bench_describe_add_variables(crd_dcp_description* d,
                                               const crd_dcp_bench_config* c, const char* limits,
                                               uint64_t first_vr)
{
    const size_t count = (size_t)d->variable_count;
    crd_dcp_variable* all = crdi_arena_new(&d->arena, count + ROWS, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    if (count) { memcpy(all, d->variables, count * sizeof *all); }
    for (int i = 0; i < ROWS; i++) {
        const char* start = rows[i].at == AT(limits)         ? limits
                            : rows[i].type == CRD_DCP_STRING ? ""
                                                             : "0";
        const char* what = rows[i].at == AT(clamped) ? describe_bits(d, c, rows[i].description)
                                                     : rows[i].description;
        if (!what) { return CRD_E_MEMORY; }
        all[count + (size_t)i] = make_variable(&rows[i], first_vr + (uint64_t)i, start, what);
    }
    d->variables = all;
    d->variable_count += ROWS;
    d->by_vr = NULL; // of fewer; crd_dcp_validate makes it again
    d->by_vr_count = 0;
    return CRD_OK;
}

static int free_category(const crd_dcp_description* d)
{
    int id = 1;
    for (int i = 0; i < d->category_count; i++) {
        if (d->categories[i].id >= id) { id = d->categories[i].id + 1; }
    }
    return id;
}

static crd_status add_log(crd_dcp_description* d)
{
    const int category = free_category(d);
    int id = 1;
    for (int i = 0; i < d->template_count; i++) {
        if (d->templates[i].id >= id) { id = d->templates[i].id + 1; }
    }
    if (category > UINT8_MAX || id + CRDI_LOG_COUNT - 1 > UINT8_MAX) {
        return crdi_fail(d->ctx, CRD_E_RANGE,
                         "bench: ids of log entries up to %d, expected room for a category and %d "
                         "templates up to 255",
                         id - 1, CRDI_LOG_COUNT);
    }
    const size_t nc = (size_t)d->category_count, nt = (size_t)d->template_count;
    crd_dcp_log_category* c = crdi_arena_new(&d->arena, nc + 1, sizeof *c);
    crd_dcp_log_template* t = crdi_arena_new(&d->arena, nt + CRDI_LOG_COUNT, sizeof *t);
    if (!c || !t) { return CRD_E_MEMORY; }
    if (nc) { memcpy(c, d->categories, nc * sizeof *c); }
    if (nt) { memcpy(t, d->templates, nt * sizeof *t); }
    c[nc] = (crd_dcp_log_category){.id = (uint8_t)category, .name = "bench extension"};
    for (int i = 0; i < CRDI_LOG_COUNT; i++) {
        crd_dcp_log_template* x = &t[nt + (size_t)i];
        *x = (crd_dcp_log_template){.id = (uint8_t)(id + i),
                                    .category = (uint8_t)category,
                                    .level = entries[i].level,
                                    .message = entries[i].message};
        if (crdi_dcp_read_arguments(&d->arena, x) < 0) { return CRD_E_MEMORY; }
    }
    d->categories = c;
    d->category_count++;
    d->templates = t;
    d->template_count += CRDI_LOG_COUNT;
    d->can_log_on_request = d->can_log_on_notification = true;
    return CRD_OK;
}

crd_status crd_dcp_bench_declare(crd_dcp_description* d, const crd_dcp_bench_config* c,
                                 uint64_t first_vr)
{
    crd_status st = CRD_OK;
    crdi_dcp_limits l;
    char text[CRDI_DCP_LIMITS_TEXT + 1];
    const char* limits = c->limits ? c->limits : "";
    CRD_TRY(crdi_dcp_limits_parse(d->ctx, limits, strlen(limits), &l));
    const int length = crdi_dcp_limits_print(&l, text, sizeof text); // as one line
    if (length > CRDI_DCP_LIMITS_TEXT) {
        return crdi_fail(d->ctx, CRD_E_RANGE, "bench: limits of %d bytes, expected up to %d",
                         length, CRDI_DCP_LIMITS_TEXT);
    }
    CRD_TRY(check_free(d, first_vr));
    const char* start = crdi_arena_text(&d->arena, text, (size_t)length);
    CRD_TRY(start ? CRD_OK : CRD_E_MEMORY);
    const int variables = d->variable_count;
    CRD_TRY(bench_describe_add_variables(d, c, start, first_vr));
    st = add_log(d);
    if (st < 0) { d->variable_count = variables; } // all or nothing
    CRD_TRY(st);
    d->can_reset = true;
    if (c->heartbeat > 0 && !(d->can_monitor_heartbeat && d->has_heartbeat)) {
        d->can_monitor_heartbeat = d->has_heartbeat = true; // outside of runs it is the deadman
        d->heartbeat_numerator = (uint32_t)fmin(fmax(1, nearbyint(c->heartbeat * 1000)), 1e9);
        d->heartbeat_denominator = 1000;
    }
fail:
    return st;
}

// ---- names -------------------------------------------------------------------------------------

const char* const crdi_bench_words[3] = {"limits of the peer", "test case", "initial temperatures"};

static const char* name_in_list(const char* const* names, size_t count, int i)
{
    return i >= 0 && (size_t)i < count ? names[i] : NULL;
}

const char* crd_dcp_bench_phase_name(int phase)
{
    static const char* const names[] = {"idle",        "preparation", "prepared",   "conditioning",
                                        "conditioned", "run",         "speed down", "voltage down",
                                        "cool down",   "stand down",  "safe",       "armed"};
    return name_in_list(names, sizeof names / sizeof *names, phase);
}

const char* crd_dcp_bench_reason_name(int reason)
{
    static const char* const names[] = {"none",     "master",    "operator", "watchdog",
                                        "sequence", "trip",      "error",    "checklist",
                                        "limits",   "withdrawn", "slave"};
    return name_in_list(names, sizeof names / sizeof *names, reason);
}
