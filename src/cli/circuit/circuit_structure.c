// What is in a netlist: for cardan circuit --structure, cardan info and cardan check.
#include "cli/circuit/circuit.h"
#include "cli/info/info.h"
#include "shared/circuit_part.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct census {
    int32_t electric[CRDI_PART_KINDS], thermal[CRDI_PART_KINDS];
} census;

static census count_parts(const crd_netlist* n)
{
    census s = {0};
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        (p->thermal ? s.thermal : s.electric)[p->kind]++;
    }
    return s;
}

// ---- what a netlist is -------------------------------------------------------------------------

// Lines "name  count  meaning" of the text. The count is a member of `o` as well if it has a key.
static const crdi_column count_columns[] = {
    {"", "name", "%s"}, {">", "count", "%d"}, {"", "meaning", "%s"}, {0}};

static void put_count(crdi_result* o, const char* key, int64_t value, crdi_result* lines,
                      const char* name, const char* meaning)
{
    if (key) { crdi_put(o, INT(key, value)); }
    if (!name) { return; }
    crdi_put(crdi_row(lines), TEXT("name", name), INT("count", value), TEXT("meaning", meaning));
}

static void put_parts(crdi_result* out, const crd_netlist* n)
{
    const census s = count_parts(n);
    crdi_result *by_kind = crdi_object(out, "parts_by_kind"), *lines = crdi_array(out, NULL);
    for (int k = 0; k < CRDI_PART_KINDS; k++) {
        const char* names[] = {crdi_part_kinds[k]->plural, crdi_part_kinds[k]->thermal};
        const int32_t counts[] = {s.electric[k], s.thermal[k]};
        for (int i = 0; i < 2; i++) {
            const char* name = names[i] ? names[i] : names[0];
            if (counts[i]) { put_count(by_kind, name, counts[i], lines, name, ""); }
        }
    }
    put_count(out, NULL, n->part_count, lines, "parts in all", "");
    put_count(out, NULL, n->node_count, lines, "nodes", "with ground");
    crdi_show_table(out, lines, count_columns, "  ");
}

static void put_equations(crdi_result* out, const crd_circuit* c)
{
    const crd_circuit_structure s = crd_circuit_get_structure(c);
    const char* form = crd_circuit_form_name(c);
    const bool nodal = strcmp(form, "nodal") == 0;
    crdi_result *o = crdi_object(out, "structure"), *lines = crdi_array(out, NULL);
    crdi_put(o, TEXT("form", form));
    put_count(o, "variables", s.variables, lines, "variables n",
              "node voltages and currents of parts");
    put_count(o, "constraints", s.constraints, lines, "constraints m",
              "Kirchhoff's laws, resistors, sources");
    put_count(o, "differential", s.differential, lines, "differential equations p",
              "capacitors and inductors");
    put_count(o, "nodal", s.nodal, lines, nodal ? "nodal unknowns" : NULL,
              "left after eliminating");
    put_count(o, "chain", s.chain, lines, nodal ? "of them in chains" : NULL,
              "solved as tridiagonal systems");
    put_count(o, "nonzeros", s.nonzeros, lines, "nonzeros of the factors", "");
    put_count(o, "ports", s.ports, lines, "nonlinear ports", "");
    crdi_say(out, "\nequations in the %s form\n", form);
    crdi_show_table(out, lines, count_columns, "  ");
}

static void put_ports(crdi_result* out, const crd_netlist* n, crdi_result* inputs,
                      crdi_result* outputs)
{
    static const crdi_column columns[] = {
        {"", "kind", "%s"}, {"", "name", "%s"}, {"", "unit", "%s"}, {"", "start", "%s"}, {0}};
    crdi_result* lines = crdi_array(out, NULL);
    for (int i = 0; i < n->input_count; i++) {
        const crd_circuit_input* in = &n->inputs[i];
        const char* sets = in->part < 0 ? NULL : n->names + n->parts[in->part].name;
        crdi_put(crdi_row(inputs), TEXT("name", in->name), TEXT("unit", in->unit),
                 REAL("start", in->start), TEXT("sets", sets));
        crdi_put(crdi_row(lines), TEXT("kind", "input"),
                 TEXT("name", crdi_worded(out, "%.60s", in->name)), TEXT("unit", in->unit),
                 TEXT("start", crdi_worded(out, "start %.6g%s%.60s", in->start,
                                           sets ? ", sets " : "", sets ? sets : "")));
    }
    for (int i = 0; i < n->output_count; i++) {
        const char *name = n->outputs[i].name, *unit = n->outputs[i].unit;
        crdi_put(crdi_row(outputs), TEXT("name", name), TEXT("unit", unit));
        crdi_put(crdi_row(lines), TEXT("kind", "output"),
                 TEXT("name", crdi_worded(out, "%.60s", name)), TEXT("unit", unit));
    }
    const bool any = n->input_count + n->output_count > 0;
    crdi_say(out, any ? "\ninputs and outputs\n" : "\nno .input and no .output\n");
    crdi_show_table(out, lines, columns, "  ");
}

static void say_parameters(crdi_result* out, const crd_netlist* n)
{
    int column = 0;
    if (n->parameter_count) { crdi_say(out, "\nparameters\n"); }
    for (int i = 0; i < n->parameter_count; i++) {
        char text[300];
        const int width = snprintf(text, sizeof text, "  %.200s=%.6g", n->parameters[i].written,
                                   n->parameters[i].value);
        const bool full = column && column + width > 96;
        crdi_say(out, "%s%s", full ? "\n" : "", text);
        column = full ? width : column + width;
    }
    if (n->parameter_count) { crdi_say(out, "\n"); }
}

static void put_structure(crdi_result* out, const crdi_circuit_job* j)
{
    const crd_netlist* n = j->n;
    char step[32];
    crdi_put(out, TEXT("file", j->path), TEXT("kind", "netlist"), TEXT("title", n->title),
             INT("parts", n->part_count), INT("nodes", n->node_count));
    crdi_say(out, "%s: netlist\n", j->path);
    if (*n->title) { crdi_say(out, "%.90s%s\n", n->title, strlen(n->title) > 90 ? "..." : ""); }
    if (!isnan(n->tran_stop)) {
        crdi_say(out, "run: 0 s to %.10g s in steps of %s%s\n", n->tran_stop,
                 crdi_format_seconds(step, n->tran_step),
                 n->uic ? ", from initial conditions" : "");
    }
    put_parts(out, n);
    crdi_put(out, REAL("step", n->tran_step), REAL("stop", n->tran_stop));
    crdi_result *inputs = crdi_array(out, "inputs"), *outputs = crdi_array(out, "outputs");
    crdi_result* parameters = crdi_object(out, "parameters");
    for (int i = 0; i < n->parameter_count; i++) {
        crdi_put(parameters,
                 REAL(crdi_result_copy(out, n->parameters[i].name), n->parameters[i].value));
    }
    if (j->c) { put_equations(out, j->c); }
    say_parameters(out, n);
    put_ports(out, n, inputs, outputs);
}

// ---- the three who ask -------------------------------------------------------------------------

static const double any_step = 1e-6; // nothing is stepped

crd_status crdi_circuit_show_structure(crdi_circuit_job* j)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_circuit_prepare(j, any_step));
    CRD_TRY(crd_circuit_create(j->cli->ctx, j->n, &j->opt, &j->c));
    // Factors are counted, so they have to be there; whether a step can be made is not asked here.
    if (crd_circuit_begin(j->c, 0) == CRD_OK) { (void)crd_circuit_step(j->c); }
    put_structure(j->out, j);
    crdi_put_status(j->cli, j->out, st);
fail:
    return st;
}

crd_status crdi_info_circuit(crdi_cli* cli, const char* path, const crdi_info_options* o,
                             crdi_result* out)
{
    crdi_circuit_command command;
    crdi_options_defaults(&crdi_command_circuit, &command);
    command.common = o->common;
    crdi_circuit_job j;
    crd_status st = crdi_circuit_load(&j, cli, &command, path, out);
    if (st == CRD_OK) { st = crdi_circuit_show_structure(&j); }
    crdi_circuit_clear(&j);
    return st;
}

static void say_ok(crdi_result* out, const crd_netlist* n)
{
    char step[32];
    crdi_say(out, "ok: %d part%s, %d node%s, %d input%s, %d output%s", n->part_count,
             crdi_plural(n->part_count), n->node_count, crdi_plural(n->node_count), n->input_count,
             crdi_plural(n->input_count), n->output_count, crdi_plural(n->output_count));
    if (isnan(n->tran_stop)) {
        crdi_say(out, "; no .tran\n");
    } else {
        crdi_say(out, ", 0 s to %.10g s in steps of %s\n", n->tran_stop,
                 crdi_format_seconds(step, n->tran_step));
    }
}

crd_status crdi_check_circuit(crdi_cli* cli, const char* path, crdi_result* out)
{
    crd_status st = CRD_OK;
    crdi_circuit_command command;
    crdi_circuit_job j;
    crdi_options_defaults(&crdi_command_circuit, &command);
    CRD_TRY(crdi_circuit_load(&j, cli, &command, path, out));
    CRD_TRY(crdi_circuit_prepare(&j, any_step));
    CRD_TRY(crd_circuit_create(cli->ctx, j.n, &j.opt, &j.c));
    CRD_TRY(crdi_circuit_begin(&j));
    if (out->root->json) { put_structure(out, &j); }
    say_ok(out, j.n);
fail:
    crdi_put(out, BOOL("ok", st == CRD_OK));
    crdi_put_status(cli, out, st);
    crdi_circuit_clear(&j);
    return st;
}
