// Signals of generators: shapes and their keys.
#include "system/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char* const crdi_shapes[] = {"constant", "step",      "ramp",  "sine", "chirp",
                                   "prbs",     "multisine", "table", NULL};
const char* const crdi_interpolations[] = {"hold", "linear", NULL};
_Static_assert(COUNT(crdi_shapes) == CRD_SIGNAL_SHAPE_COUNT + 1, "a name for each shape");
_Static_assert(sizeof(crd_signal_shape) == sizeof(int), "choices are stored as int");

typedef struct signal_draft {
    crd_signal_spec spec;
    double value;
    crdi_numbers times, values;
} signal_draft;

enum {
    S_SHAPE,
    S_UNIT,
    S_VALUE,
    S_OFFSET,
    S_AMPLITUDE,
    S_START,
    S_DURATION,
    S_FREQUENCY,
    S_FREQUENCY2,
    S_PHASE,
    S_ORDER,
    S_SEED,
    S_TIMES,
    S_VALUES,
    S_INTERPOLATION,
};

static const crdi_key signal_keys[] = {
    [S_SHAPE] = {KEY("shape", CHOICE, signal_draft, spec.shape), .required = true,
                 .choices = crdi_shapes},
    [S_UNIT] = {KEY("unit", TEXT, signal_draft, spec.unit)},
    [S_VALUE] = {KEY("value", NUMBER, signal_draft, value)},
    [S_OFFSET] = {KEY("offset", NUMBER, signal_draft, spec.offset)},
    [S_AMPLITUDE] = {KEY("amplitude", NUMBER, signal_draft, spec.amplitude)},
    [S_START] = {KEY("start", TIME, signal_draft, spec.start)},
    [S_DURATION] = {KEY("duration", TIME, signal_draft, spec.duration), .range = CRDI_POSITIVE},
    [S_FREQUENCY] = {KEY("frequency", FREQUENCY, signal_draft, spec.frequency),
                     .range = CRDI_NOT_NEGATIVE},
    [S_FREQUENCY2] = {KEY("frequency2", FREQUENCY, signal_draft, spec.frequency2),
                      .range = CRDI_NOT_NEGATIVE},
    [S_PHASE] = {KEY("phase", ANGLE, signal_draft, spec.phase)},
    [S_ORDER] = {KEY("order", INT, signal_draft, spec.order), .min = 1, .max = 10000},
    [S_SEED] = {KEY("seed", SEED, signal_draft, spec.seed)},
    [S_TIMES] = {KEY("times", TIMES, signal_draft, times)},
    [S_VALUES] = {KEY("values", NUMBERS, signal_draft, values)},
    [S_INTERPOLATION] = {KEY("interpolation", CHOICE, signal_draft, spec.interpolation),
                         .choices = crdi_interpolations},
};

// Which keys a shape needs and which it may have besides `shape` and `unit`.
static const struct {
    uint64_t needs, takes;
} shape_keys[CRD_SIGNAL_SHAPE_COUNT] = {
#define LEVEL (BIT(S_OFFSET) | BIT(S_AMPLITUDE))
    [CRD_SIGNAL_CONSTANT] = {0, LEVEL | BIT(S_VALUE)},
    [CRD_SIGNAL_STEP] = {0, LEVEL | BIT(S_START)},
    [CRD_SIGNAL_RAMP] = {BIT(S_DURATION), LEVEL | BIT(S_START)},
    [CRD_SIGNAL_SINE] = {BIT(S_FREQUENCY), LEVEL | BIT(S_START) | BIT(S_PHASE)},
    [CRD_SIGNAL_CHIRP] = {BIT(S_DURATION) | BIT(S_FREQUENCY) | BIT(S_FREQUENCY2),
                          LEVEL | BIT(S_START)},
    [CRD_SIGNAL_PRBS] = {BIT(S_DURATION), LEVEL | BIT(S_START) | BIT(S_ORDER) | BIT(S_SEED)},
    [CRD_SIGNAL_MULTISINE] = {BIT(S_FREQUENCY2) | BIT(S_ORDER), LEVEL | BIT(S_START) | BIT(S_SEED)},
    [CRD_SIGNAL_TABLE] = {BIT(S_TIMES) | BIT(S_VALUES),
                          LEVEL | BIT(S_START) | BIT(S_INTERPOLATION)},
#undef LEVEL
};

const crdi_table crdi_signal_table = {"signal", signal_keys, COUNT(signal_keys)};

int crdi_line_of(const crdi_node* mapping, const char* key)
{
    const crdi_node* n = crdi_node_get(mapping, key);
    return n ? n->line : mapping->line;
}

static crd_status check_shape_keys(crdi_reader* r, const crdi_node* n, crd_signal_shape shape,
                                   uint64_t given)
{
    const uint64_t needs = shape_keys[shape].needs;
    const uint64_t takes = needs | shape_keys[shape].takes | BIT(S_SHAPE) | BIT(S_UNIT);
    for (int i = 0; i < crdi_signal_table.count; i++) {
        const char* key = signal_keys[i].name;
        if ((needs & ~given) & BIT(i)) {
            return crdi_read_fail(r, CRD_E_FORMAT, n->line, "the shape %s needs the key '%s'",
                                  crdi_shapes[shape], key);
        }
        if ((given & ~takes) & BIT(i)) {
            char list[200] = "";
            size_t at = 0;
            for (int j = 0; j < crdi_signal_table.count; j++) {
                if (takes & BIT(j)) {
                    at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "",
                                           signal_keys[j].name);
                }
            }
            return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, key),
                                  "the shape %s has no use for '%s'. Allowed here: %s",
                                  crdi_shapes[shape], key, list);
        }
    }
    return CRD_OK;
}

static crd_status check_table(crdi_reader* r, const crdi_node* n, signal_draft* d)
{
    if (d->times.count != d->values.count) {
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "values"),
                              "%d times but %d values, expected as many", d->times.count,
                              d->values.count);
    }
    for (int i = 1; i < d->times.count; i++) {
        if (!(d->times.items[i] > d->times.items[i - 1])) {
            return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "times"),
                                  "times[%d] = %g after %g, expected ascending times", i + 1,
                                  d->times.items[i], d->times.items[i - 1]);
        }
    }
    d->spec.times = d->times.items;
    d->spec.values = d->values.items;
    d->spec.table_count = d->times.count;
    return CRD_OK;
}

static crd_status check_signal(crdi_reader* r, const crdi_node* n, signal_draft* d, uint64_t given)
{
    crd_signal_spec* s = &d->spec;
    crd_dimension dim;
    if (!crd_dimension_parse(s->unit, &dim)) {
        return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, "unit"),
                              "unit: '%s' is not known, expected a unit such as N.m or rad/s",
                              crdi_clip(s->unit).text);
    }
    switch (s->shape) {
    case CRD_SIGNAL_CONSTANT:
        if (!(given & BIT(S_VALUE))) { return CRD_OK; }
        if (given & (BIT(S_OFFSET) | BIT(S_AMPLITUDE))) {
            return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, "value"),
                                  "value and offset or amplitude, expected value alone");
        }
        s->offset = d->value;
        s->amplitude = 0;
        return CRD_OK;
    case CRD_SIGNAL_SINE:
        if (s->frequency > 0) { return CRD_OK; }
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "frequency"),
                              "frequency: %g Hz, expected more than 0", s->frequency);
    case CRD_SIGNAL_CHIRP:
        if (s->frequency > 0 || s->frequency2 > 0) { return CRD_OK; }
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "frequency2"),
                              "frequency and frequency2 are both 0, expected a sweep such as from "
                              "0.1 Hz to 10 Hz");
    case CRD_SIGNAL_PRBS:
        if (s->order >= 3 && s->order <= 31) { return CRD_OK; }
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "order"),
                              "order: %d, expected a register of 3 to 31 bits", s->order);
    case CRD_SIGNAL_MULTISINE:
        if (s->frequency2 > 0) { return CRD_OK; }
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "frequency2"),
                              "frequency2: %g Hz, expected more than 0", s->frequency2);
    case CRD_SIGNAL_TABLE:
        return check_table(r, n, d);
    default:
        return CRD_OK;
    }
}

crd_status crdi_read_signal(crdi_reader* r, const crdi_node* n, const char* name,
                            crd_signal_spec* out)
{
    signal_draft d = {.spec = crd_signal_spec_defaults()};
    d.spec.name = name;
    d.spec.place = (crd_place){r->file, n->line};
    uint64_t given = 0;
    crd_status st = CRD_OK;
    CRD_TRY(crdi_read_mapping(r, n, &crdi_signal_table, &d, &given));
    CRD_TRY(check_shape_keys(r, n, d.spec.shape, given));
    CRD_TRY(check_signal(r, n, &d, given));
    *out = d.spec;
fail:
    return st;
}
