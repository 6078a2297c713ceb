// What is in a netlist: for cardan circuit --structure, cardan info and cardan check.
#include "cli/circuit.h"
#include "cli/info.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { KINDS = CRD_PART_B_CURRENT + 1 };

static const struct {
    const char *electric, *thermal; // both in the plural; NULL: never inside .thermal
} kind_names[KINDS] = {
    [CRD_PART_RESISTOR] = {"resistors", "thermal resistances"},
    [CRD_PART_CAPACITOR] = {"capacitors", "heat capacities"},
    [CRD_PART_INDUCTOR] = {"inductors", NULL},
    [CRD_PART_MUTUAL] = {"mutual inductances", NULL},
    [CRD_PART_VOLTAGE] = {"voltage sources", "temperature sources"},
    [CRD_PART_CURRENT] = {"current sources", "heat sources"},
    [CRD_PART_DIODE] = {"diodes", NULL},
    [CRD_PART_SWITCH] = {"voltage-controlled switches", NULL},
    [CRD_PART_CURRENT_SWITCH] = {"current-controlled switches", NULL},
    [CRD_PART_VCVS] = {"voltage-controlled voltage sources", NULL},
    [CRD_PART_CCCS] = {"current-controlled current sources", NULL},
    [CRD_PART_VCCS] = {"voltage-controlled current sources", NULL},
    [CRD_PART_CCVS] = {"current-controlled voltage sources", NULL},
    [CRD_PART_B_VOLTAGE] = {"voltages by expression", "temperatures by expression"},
    [CRD_PART_B_CURRENT] = {"currents by expression", "heat flows by expression"},
};

typedef struct census {
    int32_t electric[KINDS], thermal[KINDS];
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

// ---- text --------------------------------------------------------------------------------------

static void add_line(crdi_grid* g, const char* name, int64_t value, const char* meaning)
{
    crdi_grid_add(g, "%s", name);
    crdi_grid_add(g, "%" PRId64, value);
    crdi_grid_add(g, "%s", meaning);
}

static void print_parts(crdi_circuit_job* j)
{
    const census s = count_parts(j->n);
    crdi_grid g;
    crdi_grid_init(&g, j->cli->ctx, 3, 2);
    for (int k = 0; k < KINDS; k++) {
        const char* names[] = {kind_names[k].electric, kind_names[k].thermal};
        const int32_t counts[] = {s.electric[k], s.thermal[k]};
        for (int i = 0; i < 2; i++) {
            const char* name = names[i] ? names[i] : names[0];
            if (counts[i]) { add_line(&g, name, counts[i], ""); }
        }
    }
    add_line(&g, "parts in all", j->n->part_count, "");
    add_line(&g, "nodes", j->n->node_count, "with ground");
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
}

static void print_equations(crdi_circuit_job* j)
{
    const crd_circuit_structure s = crd_circuit_get_structure(j->c);
    const bool nodal = strcmp(crd_circuit_form_name(j->c), "nodal") == 0;
    crdi_grid g;
    crdi_grid_init(&g, j->cli->ctx, 3, 2);
    add_line(&g, "variables n", s.variables, "node voltages and currents of parts");
    add_line(&g, "constraints m", s.constraints, "Kirchhoff's laws, resistors, sources");
    add_line(&g, "differential equations p", s.differential, "capacitors and inductors");
    if (nodal) {
        add_line(&g, "nodal unknowns", s.nodal, "left after eliminating");
        add_line(&g, "of them in chains", s.chain, "solved as tridiagonal systems");
    }
    add_line(&g, "nonzeros of the factors", s.nonzeros, "");
    add_line(&g, "nonlinear ports", s.ports, "");
    printf("\nequations in the %s form\n", crd_circuit_form_name(j->c));
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
}

static void print_ports(crdi_circuit_job* j)
{
    const crd_netlist* n = j->n;
    crdi_grid g;
    crdi_grid_init(&g, j->cli->ctx, 4, 0);
    for (int i = 0; i < n->input_count; i++) {
        const crd_circuit_input* in = &n->inputs[i];
        crdi_grid_add(&g, "input");
        crdi_grid_add(&g, "%.60s", in->name);
        crdi_grid_add(&g, "%s", in->unit);
        if (in->part >= 0) {
            crdi_grid_add(&g, "start %.6g, sets %.60s", in->start,
                          n->names + n->parts[in->part].name);
        } else {
            crdi_grid_add(&g, "start %.6g", in->start);
        }
    }
    for (int i = 0; i < n->output_count; i++) {
        crdi_grid_add(&g, "output");
        crdi_grid_add(&g, "%.60s", n->outputs[i].name);
        crdi_grid_add(&g, "%s", n->outputs[i].unit);
        crdi_grid_add(&g, "%s", "");
    }
    if (g.count) { printf("\ninputs and outputs\n"); }
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
    if (n->input_count + n->output_count == 0) { printf("\nno .input and no .output\n"); }
}

static void print_parameters(const crdi_circuit_job* j)
{
    const crd_netlist* n = j->n;
    int column = 0;
    if (n->parameter_count) { printf("\nparameters\n"); }
    for (int i = 0; i < n->parameter_count; i++) {
        char text[300];
        const int width = snprintf(text, sizeof text, "%.200s=%.6g", n->parameters[i].written,
                                   n->parameters[i].value);
        if (column && column + width + 2 > 96) {
            printf("\n");
            column = 0;
        }
        column += printf("%s%s", "  ", text);
    }
    if (n->parameter_count) { printf("\n"); }
}

static void print_structure(crdi_circuit_job* j)
{
    const crd_netlist* n = j->n;
    char step[32];
    printf("%s: netlist\n", j->path);
    if (*n->title) { printf("%.90s%s\n", n->title, strlen(n->title) > 90 ? "..." : ""); }
    if (!isnan(n->tran_stop)) {
        printf("run: 0 s to %.10g s in steps of %s%s\n", n->tran_stop,
               crdi_format_seconds(step, n->tran_step), n->uic ? ", from initial conditions" : "");
    }
    print_parts(j);
    if (j->c) { print_equations(j); }
    print_parameters(j);
    print_ports(j);
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t* parts_to_json(const crd_netlist* n)
{
    const census s = count_parts(n);
    json_t* o = json_object();
    for (int k = 0; k < KINDS; k++) {
        if (s.electric[k]) {
            json_object_set_new(o, kind_names[k].electric, json_integer(s.electric[k]));
        }
        if (s.thermal[k]) {
            json_object_set_new(
                o, kind_names[k].thermal ? kind_names[k].thermal : kind_names[k].electric,
                json_integer(s.thermal[k]));
        }
    }
    return o;
}

static json_t* ports_to_json(const crd_netlist* n, bool inputs)
{
    json_t* list = json_array();
    for (int i = 0; i < (inputs ? n->input_count : n->output_count); i++) {
        json_t* o = json_object();
        json_object_set_new(o, "name",
                            crdi_json_text(inputs ? n->inputs[i].name : n->outputs[i].name));
        json_object_set_new(o, "unit",
                            crdi_json_text(inputs ? n->inputs[i].unit : n->outputs[i].unit));
        if (inputs) {
            const int32_t part = n->inputs[i].part;
            json_object_set_new(o, "start", crdi_json_number(n->inputs[i].start));
            json_object_set_new(o, "sets",
                                crdi_json_text(part < 0 ? NULL : n->names + n->parts[part].name));
        }
        json_array_append_new(list, o);
    }
    return list;
}

static json_t* structure_to_json(const crdi_circuit_job* j)
{
    const crd_netlist* n = j->n;
    json_t* o = json_object();
    json_object_set_new(o, "file", crdi_json_text(j->path));
    json_object_set_new(o, "kind", json_string("netlist"));
    json_object_set_new(o, "title", crdi_json_text(n->title));
    json_object_set_new(o, "parts", json_integer(n->part_count));
    json_object_set_new(o, "nodes", json_integer(n->node_count));
    json_object_set_new(o, "parts_by_kind", parts_to_json(n));
    json_object_set_new(o, "step", crdi_json_number(n->tran_step));
    json_object_set_new(o, "stop", crdi_json_number(n->tran_stop));
    json_object_set_new(o, "inputs", ports_to_json(n, true));
    json_object_set_new(o, "outputs", ports_to_json(n, false));
    json_t* parameters = json_object();
    for (int i = 0; i < n->parameter_count; i++) {
        json_object_set_new(parameters, n->parameters[i].name,
                            crdi_json_number(n->parameters[i].value));
    }
    json_object_set_new(o, "parameters", parameters);
    if (j->c) {
        const crd_circuit_structure s = crd_circuit_get_structure(j->c);
        const struct {
            const char* name;
            int64_t value;
        } counts[] = {{"variables", s.variables},
                      {"constraints", s.constraints},
                      {"differential", s.differential},
                      {"nodal", s.nodal},
                      {"chain", s.chain},
                      {"nonzeros", s.nonzeros},
                      {"ports", s.ports}};
        json_t* x = json_object();
        json_object_set_new(x, "form", json_string(crd_circuit_form_name(j->c)));
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            json_object_set_new(x, counts[i].name, json_integer(counts[i].value));
        }
        json_object_set_new(o, "structure", x);
    }
    return o;
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
    if (j->o->common.json) {
        st = crdi_circuit_print_json(j, structure_to_json(j), st);
    } else {
        print_structure(j);
        st = crdi_stdout_done(j->cli->ctx);
    }
fail:
    return st;
}

crd_status crdi_info_circuit(crdi_cli* cli, const char* path, const crdi_info_options* o)
{
    crdi_circuit_command command = crdi_circuit_command_defaults;
    command.common = o->common;
    crdi_circuit_job j;
    crd_status st = crdi_circuit_load(&j, cli, &command, path);
    if (st == CRD_OK) { st = crdi_circuit_show_structure(&j); }
    crdi_circuit_clear(&j);
    return st;
}

static void print_ok(const crdi_circuit_job* j)
{
    const crd_netlist* n = j->n;
    char step[32];
    printf("ok: %d part%s, %d node%s, %d input%s, %d output%s", n->part_count,
           crdi_plural(n->part_count), n->node_count, crdi_plural(n->node_count), n->input_count,
           crdi_plural(n->input_count), n->output_count, crdi_plural(n->output_count));
    if (isnan(n->tran_stop)) {
        printf("; no .tran\n");
    } else {
        printf(", 0 s to %.10g s in steps of %s\n", n->tran_stop,
               crdi_format_seconds(step, n->tran_step));
    }
}

crd_status crdi_check_circuit(crdi_cli* cli, const char* path, bool json)
{
    crd_status st = CRD_OK;
    crdi_circuit_command command = crdi_circuit_command_defaults;
    command.common.json = json;
    crdi_circuit_job j;
    CRD_TRY(crdi_circuit_load(&j, cli, &command, path));
    CRD_TRY(crdi_circuit_prepare(&j, any_step));
    CRD_TRY(crd_circuit_create(cli->ctx, j.n, &j.opt, &j.c));
    CRD_TRY(crdi_circuit_begin(&j));
fail:
    if (json) {
        json_t* o = j.c && st == CRD_OK ? structure_to_json(&j) : json_object();
        json_object_set_new(o, "ok", json_boolean(st == CRD_OK));
        st = crdi_circuit_print_json(&j, o, st);
    } else if (st == CRD_OK) {
        print_ok(&j);
        st = crdi_stdout_done(cli->ctx);
    }
    crdi_circuit_clear(&j);
    return st;
}
