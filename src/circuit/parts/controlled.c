// Controlled sources, linear:
//     E: v = k v_c     G: i = k v_c     v_c = v(nodes[2]) - v(nodes[3])
//     H: v = k i_c     F: i = k i_c     i_c: current of refs[0]
//
// Reference form, a row of Phi (Rodriguez 2021, Eq. 3.6): v_a - v_b - k c = 0 or i - k c = 0.
// Fast form: E and H have an unknown current and that row; F and G are entries of Kirchhoff's law.
#include "circuit/dae.h"
#include "circuit/netlist.h"

// E and G: gain times a voltage, or an expression
static crd_status read_by_voltage(crdi_reading* r, bool voltage)
{
    crd_status st = CRD_OK;
    crd_part part = crdi_part_start(r, voltage ? CRD_PART_VCVS : CRD_PART_VCCS);
    crdi_word key;
    CRD_TRY(crdi_part_nodes(r, &part, 2));
    if (crdi_key(&r->s, &key)) {
        if (!crdi_word_is(key, voltage ? "vol" : "cur") && !crdi_word_is(key, "value")) {
            return crdi_part_unknown_key(r, key);
        }
        return crdi_part_behaviour(r, &part, voltage);
    }
    crdi_scan ahead = r->s;
    const crdi_word w = crdi_scan_word(&ahead);
    if (crdi_word_is(w, "poly") || crdi_word_is(w, "table") || crdi_word_is(w, "laplace")) {
        return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED,
                              "%s: %s is not supported; a B source with an expression is",
                              crdi_word_clip(r->name).text, crdi_word_clip(w).text);
    }
    const bool bracket = crdi_scan_take(&r->s, '('); // E1 a b (c,d) 2
    for (int i = 2; i < 4; i++) {
        CRD_TRY(crdi_node(r, crdi_scan_word(&r->s), &part.nodes[i]));
        (void)crdi_scan_take(&r->s, ',');
    }
    if (bracket && !crdi_scan_take(&r->s, ')')) { return crdi_part_expected(r, "')'"); }
    CRD_TRY(crdi_value(r, false, "a gain", &part.value));
    CRD_TRY(crdi_part_end(r));
    CRD_TRY(crdi_part_add(r, &part));
fail:
    return st;
}

// F and H: gain times the current of a voltage source
static crd_status read_by_current(crdi_reading* r, bool voltage)
{
    crd_status st = CRD_OK;
    crd_part part = crdi_part_start(r, voltage ? CRD_PART_CCVS : CRD_PART_CCCS);
    CRD_TRY(crdi_part_nodes(r, &part, 2));
    crdi_scan ahead = r->s;
    if (crdi_word_is(crdi_scan_word(&ahead), "poly")) {
        return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED,
                              "%s: poly is not supported; a B source with an expression is",
                              crdi_word_clip(r->name).text);
    }
    CRD_TRY(crdi_mention(r, crdi_scan_word(&r->s), &part.refs[0]));
    CRD_TRY(crdi_value(r, false, "a gain", &part.value));
    CRD_TRY(crdi_part_end(r));
    CRD_TRY(crdi_part_add(r, &part));
fail:
    return st;
}

static crd_status read_e(crdi_reading* r)
{
    return read_by_voltage(r, true);
}

static crd_status read_g(crdi_reading* r)
{
    return read_by_voltage(r, false);
}

static crd_status read_h(crdi_reading* r)
{
    return read_by_current(r, true);
}

static crd_status read_f(crdi_reading* r)
{
    return read_by_current(r, false);
}

static void controlled_law(crdi_dae* d, int32_t part, const crdi_dae_point* at)
{
    const crd_part* p = &d->c->n->parts[part];
    const crdi_part_kind* k = crdi_part_kind_of(p);
    const int32_t row = d->part[part].row;
    const double left = k->fixes == CRDI_FIXES_VOLTAGE ? crdi_dae_put_voltage(d, part, at->x)
                                                       : crdi_dae_put_current(d, part, at->x);
    if (k->control == CRDI_CONTROL_VOLTAGE) {
        at->f[row] = left - p->value * (at->x[p->nodes[2]] - at->x[p->nodes[3]]);
        crdi_dae_put(&d->j, row, p->nodes[2], -p->value);
        crdi_dae_put(&d->j, row, p->nodes[3], p->value);
    } else {
        const int32_t c = d->part[p->refs[0]].current;
        at->f[row] = left - p->value * at->x[c];
        crdi_dae_put(&d->j, row, c, -p->value);
    }
}

#define AS_ROW                                                                                     \
    {                                                                                              \
        CRDI_ROLE_ROW, CRDI_ROLE_ROW, CRDI_ROLE_ROW                                                \
    }
#define AS_GAIN                                                                                    \
    {                                                                                              \
        CRDI_ROLE_GAIN, CRDI_ROLE_GAIN, CRDI_ROLE_GAIN                                             \
    }

const crdi_part_kind crdi_part_vcvs = {
    .article = "a controlled source",
    .plural = "voltage-controlled voltage sources",
    .fixes = CRDI_FIXES_VOLTAGE,
    .control = CRDI_CONTROL_VOLTAGE,
    .linear = true,
    .has_value = true,
    .letter = 'e',
    .usage = "Ename n+ n- c+ c- gain | vol={expression}",
    .read = read_e,
    .law = controlled_law,
    .role = AS_ROW,
};

const crdi_part_kind crdi_part_cccs = {
    .article = "a controlled source",
    .plural = "current-controlled current sources",
    .fixes = CRDI_FIXES_CURRENT,
    .control = CRDI_CONTROL_CURRENT,
    .linear = true,
    .has_value = true,
    .letter = 'f',
    .usage = "Fname n+ n- Vname gain",
    .read = read_f,
    .law = controlled_law,
    .role = AS_GAIN,
};

const crdi_part_kind crdi_part_vccs = {
    .article = "a controlled source",
    .plural = "voltage-controlled current sources",
    .fixes = CRDI_FIXES_CURRENT,
    .control = CRDI_CONTROL_VOLTAGE,
    .linear = true,
    .has_value = true,
    .letter = 'g',
    .usage = "Gname n+ n- c+ c- gain | cur={expression}",
    .read = read_g,
    .law = controlled_law,
    .role = AS_GAIN,
};

const crdi_part_kind crdi_part_ccvs = {
    .article = "a controlled source",
    .plural = "current-controlled voltage sources",
    .fixes = CRDI_FIXES_VOLTAGE,
    .control = CRDI_CONTROL_CURRENT,
    .linear = true,
    .has_value = true,
    .letter = 'h',
    .usage = "Hname n+ n- Vname gain",
    .read = read_h,
    .law = controlled_law,
    .role = AS_ROW,
};
