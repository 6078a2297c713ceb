// cardan export dcp: a DCP slave somewhere on the network as an FMU. Its binaries are part of this
// program; the slave's description goes along as a table that they read, and as a dcpx for people.
#include "cli/export/export.h"
#include "shared/dcp.h"
#include "shared/dcp_model.h"

#include <math.h>
#include <string.h>

enum {
    LONGEST_NAME = 240,   // of a variable, with the index of an element behind it
    MOST_STEPS = 1000000, // resolutions in a communication step
};

crd_status crdi_export_load_slave(crd_context* ctx, const char* path, crd_dcp_description** out)
{
    const crd_dcp_finding* findings = NULL;
    int count = 0, faults = 0, first = 0;
    const crd_status st = crd_dcp_load(ctx, path, out, &findings, &count);
    if (st < 0) { return st; }
    for (int i = count - 1; i >= 0; i--) {
        if (findings[i].severity != CRD_DCP_FAULT) { continue; }
        first = i;
        faults++;
    }
    if (faults == 0) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_FORMAT, "%s:%d: %s (%s)%s; 'cardan check' lists everything", path,
                     findings[first].line, findings[first].text, findings[first].code,
                     faults > 1 ? ", and more" : "");
}

// ---- what is fixed now -------------------------------------------------------------------------

typedef struct names {
    const crd_dcp_description* d;
    int at;
} names;

static const char* next_structural(void* user)
{
    names* n = user;
    while (n->at < n->d->variable_count) {
        const crd_dcp_variable* v = &n->d->variables[n->at++];
        if (v->causality == CRD_STRUCTURAL_PARAMETER) { return v->name; }
    }
    return NULL;
}

static crd_status fail_set(crd_context* ctx, const crd_dcp_description* d, const char* name,
                           bool exists)
{
    names n = {d, 0};
    const char* near = exists ? NULL : crdi_nearest(name, next_structural, &n);
    return crdi_fail(ctx, CRD_E_NOT_FOUND,
                     exists ? "--set %s: it is no structural parameter; others are set in the FMU"
                            : "--set %s: the slave has no structural parameter of this name%s%s%s",
                     name, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

// NAME=VALUE of a structural parameter becomes its start value.
static crd_status fix(crd_context* ctx, crd_dcp_description* d, const char* setting)
{
    const char* equals = strchr(setting, '=');
    if (!equals || equals == setting) {
        return crdi_fail(ctx, CRD_E_RANGE, "--set %s, expected NAME=VALUE as in n=8", setting);
    }
    char* name = crdi_arena_text(&d->arena, setting, (size_t)(equals - setting));
    char* value = crdi_arena_text(&d->arena, equals + 1, strlen(equals + 1));
    if (!name || !value) { return CRD_E_MEMORY; }
    bool exists = false;
    for (int i = 0; i < d->variable_count; i++) {
        crd_dcp_variable* v = (crd_dcp_variable*)&d->variables[i]; // the description is ours
        if (strcmp(v->name, name) != 0) { continue; }
        exists = true;
        if (v->causality != CRD_STRUCTURAL_PARAMETER) { continue; }
        uint64_t x = 0;
        if (!crdi_parse_uint64(value, strlen(value), &x) || (double)x < v->min ||
            (double)x > v->max) {
            return crdi_fail(ctx, CRD_E_RANGE, "--set %s: '%s', expected a whole number%s", name,
                             value, v->min > 0 || v->max < INFINITY ? " within min and max" : "");
        }
        v->start = value;
        return CRD_OK;
    }
    return fail_set(ctx, d, name, exists);
}

// The communication step decides on the time resolution where there is a choice: the step itself if
// that is offered, else the coarsest that fits into it.
static crd_status choose_resolution(crd_context* ctx, const crd_dcp_description* d, double step,
                                    crdi_dcp_model_options* opt)
{
    opt->step = step;
    if (crdi_dcp_divide_step(d, step, MOST_STEPS, &opt->numerator, &opt->denominator)) {
        return CRD_OK;
    }
    const crd_dcp_resolution* r = &d->resolutions[0];
    return crdi_fail(ctx, CRD_E_RANGE,
                     "--step %.10g: the slave has no time resolution of which this is a multiple, "
                     "expected one of what its description has under TimeRes, such as %u/%u s",
                     step, r->numerator, r->denominator);
}

// What the description says of its place, "" nothing.
static const char* own_address(crd_dcp_description* d)
{
    for (int tcp = 0; tcp < 2; tcp++) {
        const crd_dcp_endpoint* e = tcp ? &d->tcp : &d->udp;
        if (e->offered && e->host[0] && e->port) {
            return crdi_arena_format(&d->arena, "%s://%s:%u", tcp ? "tcp" : "udp", e->host,
                                     (unsigned)e->port);
        }
    }
    return "";
}

static crd_status take_options(crd_context* ctx, const crdi_export_options* o,
                               crd_dcp_description* d, crdi_dcp_model_options* opt)
{
    crd_status st = CRD_OK;
    opt->mode = o->mode == 1 || (o->mode < 0 && !d->nrt) ? CRD_DCP_SRT : CRD_DCP_NRT;
    opt->address = o->address ? o->address : own_address(d);
    opt->name = crdi_identifier(&d->arena, o->name ? o->name : d->name);
    CRD_TRY(opt->address && opt->name ? CRD_OK : CRD_E_MEMORY);
    if (o->name && strcmp(o->name, opt->name) != 0) {
        CRD_TRY(crdi_fail(ctx, CRD_E_RANGE,
                          "--name %s, expected letters, digits and '_' as in a name of C",
                          o->name));
    }
    if (o->address) {
        crd_dcp_address a;
        st = crd_dcp_address_parse(ctx, o->address, &a);
        if (st == CRD_E_NOT_FOUND) { // another machine may know the host
            crdi_log(ctx, CRD_LOG_WARNING, "%s", crd_error_text(ctx));
            st = CRD_OK;
        }
        CRD_TRY(st);
    }
    for (int i = 0; i < o->set.count; i++) {
        CRD_TRY(fix(ctx, d, o->set.items[i]));
    }
    if (!isnan(o->step)) { CRD_TRY(choose_resolution(ctx, d, o->step, opt)); }
fail:
    return st;
}

// ---- what the version of FMI cannot say --------------------------------------------------------

static crd_status check_rows(crd_context* ctx, const char* path, const crd_model* model,
                             int version)
{
    for (int i = 0; i < model->variable_count; i++) {
        const crd_model_variable* v = &model->variables[i];
        if (strlen(v->name) > LONGEST_NAME) {
            return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                             "%s: the name '%.60s...' has more than %d bytes, which an FMU of "
                             "Cardan has no room for",
                             path, v->name, LONGEST_NAME);
        }
        if (version == 3) { continue; }
        if (v->type == CRD_BINARY) {
            return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                             "%s: variable '%s' is a binary, which FMI 2.0 does not have; choose "
                             "FMI 3.0 with --fmi 3",
                             path, v->name);
        }
        if (v->size > 0xffff || i > 0xffff) {
            return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                             "%s: variable '%s': an FMU of FMI 2.0 has room for 65536 variables, "
                             "and for 65535 elements of each; choose FMI 3.0 with --fmi 3",
                             path, v->name);
        }
    }
    return CRD_OK;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status write_fmu(crd_context* ctx, const char* subject, const crd_dcp_description* d,
                            const crdi_dcp_model_options* opt, int version, const char* platforms,
                            const char* output)
{
    crd_status st = CRD_OK;
    const crd_model* model = NULL;
    crd_text table, xml;
    crd_text_init(&table, ctx);
    crd_text_init(&xml, ctx);
    CRD_TRY(crdi_dcp_model_pack(d, opt, &table));
    CRD_TRY(crdi_dcp_model_create(ctx, table.data, table.length, subject, &model));
    CRD_TRY(check_rows(ctx, subject, model, version));
    st = crd_dcp_write(d, &xml);
    if (st == CRD_E_UNSUPPORTED) { st = CRD_OK; } // Bluetooth: the table is enough
    CRD_TRY(st);
    const crdi_resource resources[] = {{"slave.table", table.data, table.length},
                                       {"slave.dcpx", xml.data, xml.length}};
    CRD_TRY(crdi_write_fmu(ctx, &crdi_dcp_template, version, platforms, model, resources,
                           xml.data ? 2 : 1, output));
fail:
    crdi_dcp_model_destroy(model);
    crd_text_clear(&table);
    crd_text_clear(&xml);
    return st;
}

static int count_of(const crd_dcp_description* d, crd_causality causality)
{
    int n = 0;
    for (int i = 0; i < d->variable_count; i++) {
        n += d->variables[i].causality == causality;
    }
    return n;
}

crd_status crdi_export_dcp(crdi_cli* cli, const crdi_export_options* o, const char* subject,
                           crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_context* ctx = cli->ctx;
    crd_dcp_description* d = NULL;
    crdi_dcp_model_options opt = {0};
    const int version = o->fmi == 1 ? 3 : 2;
    CRD_TRY(crdi_export_load_slave(ctx, subject, &d));
    CRD_TRY(take_options(ctx, o, d, &opt));
    const char* output = o->output ? o->output : crdi_arena_format(&d->arena, "%s.fmu", opt.name);
    CRD_TRY(output ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(crdi_refuse_overwriting(cli->ctx, output, subject, "the FMU",
                                    "the description that it is made of"));
    CRD_TRY(write_fmu(ctx, subject, d, &opt, version, o->platforms, output));
    if (!opt.address[0]) {
        crdi_log(ctx, CRD_LOG_WARNING,
                 "%s: neither the description nor --address says where the slave is: the "
                 "parameter dcp.address of the FMU has to be set",
                 output);
    }
    crd_dcp_address at;
    if (opt.address[0] && crd_dcp_address_parse(ctx, opt.address, &at) == CRD_OK &&
        at.ip >> 24 != 127) {
        crdi_log(
            ctx, CRD_LOG_WARNING,
            "%s speaks to %s in plain: FMUs have no keys, and everybody on the way can read and "
            "forge it; two 'cardan dcp emulate' with a key are a tunnel for it",
            output, opt.address);
    }
    const int inputs = count_of(d, CRD_INPUT), outputs = count_of(d, CRD_OUTPUT);
    crdi_say(out, "%s: slave %s at %s, %s, %d input%s, %d output%s, FMI %d.0\n", output, d->name,
             opt.address[0] ? opt.address : "an address to be set", crd_dcp_op_mode_name(opt.mode),
             inputs, crdi_plural(inputs), outputs, crdi_plural(outputs), version);
fail:
    crd_dcp_description_destroy(d);
    return st;
}
