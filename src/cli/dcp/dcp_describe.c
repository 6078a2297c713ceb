// cardan dcp describe: the slave description of an FMU or system.
#include "cli/dcp/dcp_serve.h"
#include "shared/dcp.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { MOST_ADDRESSES = 8 };

typedef struct describe_options {
    crdi_served served;
    const char* output;
    crdi_list addresses;
} describe_options;

crd_status crdi_served_load(crd_context* ctx, const crdi_served* o, const char* path,
                            crd_system** out)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    CRD_TRY(crdi_load_variant(ctx, path, o->variant, &s));
    for (int i = 0; i < o->parameters.count; i++) {
        CRD_TRY(crdi_apply_parameters(s, o->parameters.items[i]));
    }
    for (int i = 0; i < o->set.count; i++) {
        CRD_TRY(crdi_apply_set(s, o->set.items[i]));
    }
    *out = s;
    return CRD_OK;
fail:
    crd_system_destroy(s);
    return st;
}

crd_status crdi_served_options(crd_context* ctx, const crdi_served* o, crdi_serve_options* out)
{
    *out = crdi_serve_defaults();
    out->name = o->name;
    out->resolution = o->resolution;
    out->heartbeat = o->heartbeat;
    out->hrt = o->hrt;
    out->pairs = o->pairs.items;
    out->pair_count = o->pairs.count;
    out->life = (uint32_t)time(NULL);
    if (o->max_size == 0 || o->max_size > 65000) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--max-size %d, expected 1 to 65000: it has to fit into one PDU",
                         o->max_size);
    }
    if (o->max_size > 0) { out->max_text = (uint32_t)o->max_size; }
    return CRD_OK;
}

static crd_status write_text(crd_context* ctx, const crd_text* t, FILE* f, const char* path)
{
    const bool good = fwrite(t->data, 1, t->length, f) == t->length;
    if (!good || fflush(f) != 0) {
        return crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno));
    }
    return CRD_OK;
}

crd_status crdi_check_description(crd_context* ctx, const char* option, const char* path)
{
    return !path || crdi_is_dcp(path)
               ? CRD_OK
               : crdi_fail(ctx, CRD_E_RANGE, "%s %s, expected a name that ends with .dcpx or .dcp",
                           option, path);
}

crd_status crdi_write_description(crd_context* ctx, const crd_dcp_description* d, const char* path)
{
    const char* dot = strrchr(path, '.');
    if (dot && strcasecmp(dot, ".dcp") == 0) { return crd_dcp_write_archive(d, path); }
    crd_text t;
    crd_text_init(&t, ctx);
    crd_status st = crd_dcp_write(d, &t);
    if (st >= 0) { st = crdi_file_write(ctx, path, &t); }
    crd_text_clear(&t);
    return st;
}

static crd_status print_description(crdi_cli* cli, const crd_dcp_description* d)
{
    crd_text t;
    crd_text_init(&t, cli->ctx);
    crd_status st = crd_dcp_write(d, &t);
    if (st >= 0) { st = write_text(cli->ctx, &t, stdout, "standard output"); }
    crd_text_clear(&t);
    return st;
}

static crd_status run_describe(crdi_cli* cli, const void* options, const crdi_list* arguments,
                               crdi_result* out)
{
    const describe_options* o = options;
    crd_status st = CRD_OK;
    crd_system* sys = NULL;
    crd_dcp_description* d = NULL;
    crd_dcp_address addresses[MOST_ADDRESSES];
    crdi_serve_options opt;
    CRD_TRY(crdi_served_options(cli->ctx, &o->served, &opt));
    if (o->addresses.count > MOST_ADDRESSES) {
        CRD_TRY(crdi_fail(cli->ctx, CRD_E_RANGE, "%d times --address, expected %d at most",
                          o->addresses.count, MOST_ADDRESSES));
    }
    for (int i = 0; i < o->addresses.count; i++) {
        addresses[i] = (crd_dcp_address){.transport = CRD_DCP_CAN}; // which has none
        if (crdi_dcp_is_bus(o->addresses.items[i])) { continue; }
        CRD_TRY(crd_dcp_address_parse(cli->ctx, o->addresses.items[i], &addresses[i]));
    }
    opt.addresses = addresses;
    opt.address_count = o->addresses.count;
    const char* output = o->served.common.to_stdout ? NULL : o->output;
    CRD_TRY(crdi_check_description(cli->ctx, "-o", output));
    CRD_TRY(crdi_served_load(cli->ctx, &o->served, arguments->items[0], &sys));
    CRD_TRY(crdi_serve_describe(cli->ctx, sys, &opt, &d));
    if (!output) {
        st = print_description(cli, d);
    } else {
        CRD_TRY(crdi_write_description(cli->ctx, d, output));
        crdi_say(out, "%s: slave '%s' with %d variable%s\n", output, d->name, d->variable_count,
                 crdi_plural(d->variable_count));
    }
fail:
    crd_dcp_description_destroy(d);
    crd_system_destroy(sys);
    return st;
}

static const crdi_option rows[] = {
    OPT_FILE(describe_options, output, "output", "dcpx|dcp",
             "description (.dcpx) or archive with it (.dcp) to write; standard output unless "
             "given",
             .short_name = 'o'),
    OPT_LIST(describe_options, addresses, "address", "ADDRESS",
             "where the slave will listen, such as udp://192.168.2.7:8080, tcp://bench:8080 or "
             "can://can0; "
             "udp://127.0.0.1:8080 unless given"),
    CRDI_SERVED_OPTIONS,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_dcp_describe = {
    .name = "dcp describe",
    .arguments = "FMU|SYSTEM",
    .summary = "write the DCP slave description of an FMU or system",
    .description =
        "Makes the description (dcpx) with which 'cardan dcp slave' offers an FMU, a system or an "
        "SSP as a slave of the Distributed Co-Simulation Protocol: variables with their types, "
        "units, start values, limits and dependencies, operating modes, time resolutions, "
        "addresses and log entries. Of a system, the inputs without a connection, the outputs and "
        "the parameters are described, as unit.variable. Booleans become uint8, enumerations "
        "int32 (FMI 2) or int64, arrays of strings one variable for each element. The same FMU "
        "gives the same uuid; another interface another one. 'cardan check' finds nothing wrong "
        "with the result.",
    .examples = {{"cardan dcp describe motor.fmu -o motor.dcpx", "a description for a master"},
                 {"cardan dcp describe car.yaml --address tcp://192.168.2.7:8080 -o car.dcp",
                  "an archive, with the address that the slave will have"}},
    OPTIONS(rows, describe_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "fmu|yaml|yml|ssp|ssd|cir|ckt|net|sp|spice",
    .run = run_describe,
};
