// The adapter: a DCP slave behind the functions of a unit.
#include "unit/dcp/dcp_unit.h"

#include <math.h>
#include <string.h>

enum { MOST_PARTS = 1000 }; // resolutions in a communication step

// ---- values ------------------------------------------------------------------------------------

static crd_status set_values(crd_unit* unit, const crd_binding* b, const crd_values* v)
{
    crdi_dcp_unit* u = (crdi_dcp_unit*)unit;
    for (int32_t j = 0; j < b->count; j++) {
        const int32_t i = b->variables[j];
        const crd_variable* own = &u->variables[i];
        const crd_dcp_slot* slot = &u->values[i].slot;
        if (u->configured && own->causality != CRD_INPUT) {
            return crdi_fail(unit->ctx, CRD_E_UNSUPPORTED,
                             "'%s' cannot be set any more: the slave is configured", own->name);
        }
        u->fed[i] = true;
        if (!crdi_dcp_slot_set(slot, v, b->offsets[j])) {
            return crdi_fail(unit->ctx, CRD_E_RANGE,
                             "'%s' would get %zu bytes, the slave takes %u at most (maxSize)",
                             own->name, v->bytes[b->offsets[j]].length, slot->max_size);
        }
    }
    u->dirty = true;
    return CRD_OK;
}

static crd_status dcp_set(crd_unit* unit, const crd_binding* b, const crd_values* v)
{
    crdi_dcp_unit* u = (crdi_dcp_unit*)unit;
    crdi_session_lock(u);
    const crd_status st = set_values(unit, b, v);
    crdi_session_unlock(u);
    return st;
}

static bool has_output(const crdi_dcp_unit* u, const crd_binding* b)
{
    for (int32_t j = 0; j < b->count; j++) {
        if (u->variables[b->variables[j]].causality == CRD_OUTPUT) { return true; }
    }
    return false;
}

static crd_status dcp_get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    crdi_dcp_unit* u = (crdi_dcp_unit*)unit;
    if (u->initializing && u->dirty && has_output(u, b)) {
        const crd_status st = crdi_session_initialize(u);
        if (st < 0) { return st; }
        u->dirty = false;
    }
    for (int32_t j = 0; j < b->count; j++) {
        const crd_status st =
            crdi_dcp_slot_get(unit->ctx, &u->values[b->variables[j]].slot, v, b->offsets[j]);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// A connected input has to be fed, whether it is ever set or not.
static crd_status prepare(crd_unit* unit, crd_binding* b)
{
    crdi_dcp_unit* u = (crdi_dcp_unit*)unit;
    for (int32_t j = 0; j < b->count; j++) {
        const int32_t i = b->variables[j];
        if (u->variables[i].causality != CRD_INPUT || u->fed[i]) { continue; }
        if (u->configured) {
            return crdi_fail(unit->ctx, CRD_E_STATE,
                             "'%s' cannot be connected any more: the slave is configured",
                             u->variables[i].name);
        }
        u->fed[i] = true;
    }
    return CRD_OK;
}

static void adapt_resolution(crdi_dcp_unit* u);

// ---- course ------------------------------------------------------------------------------------

static crd_status instantiate(crd_unit* unit)
{
    crdi_dcp_unit* u = (crdi_dcp_unit*)unit;
    adapt_resolution(u);
    // Before a bench is conditioned for it. Steps that are chosen while it runs are tried then.
    const crd_status st = unit->step > 0 ? crdi_session_check_step(u, unit->step) : CRD_OK;
    return st < 0 ? st : crdi_unit_send(unit, true);
}

static crd_status approach(crd_unit* unit, const crd_experiment* e)
{
    crdi_session_approach((crdi_dcp_unit*)unit, e);
    return CRD_OK;
}

static crd_status enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    crdi_dcp_unit* u = (crdi_dcp_unit*)unit;
    const crd_status st = crdi_session_configure(u, e);
    u->configured = u->initializing = u->dirty = st >= 0;
    return st;
}

static crd_status exit_initialization(crd_unit* unit)
{
    crdi_dcp_unit* u = (crdi_dcp_unit*)unit;
    crd_status st = CRD_OK;
    if (u->dirty) { st = crdi_session_initialize(u); }
    u->initializing = u->dirty = false;
    return st;
}

static void dcp_begin(crd_unit* unit, double t, double h)
{
    crdi_dcp_unit* u = (crdi_dcp_unit*)unit;
    u->failed = crdi_session_begin(u, t, h);
    u->begun = true;
}

static crd_status step(crd_unit* unit, double t, double h)
{
    crdi_dcp_unit* u = (crdi_dcp_unit*)unit;
    if (!u->begun) { dcp_begin(unit, t, h); }
    u->begun = false;
    return u->failed < 0 ? u->failed : crdi_session_end(u, t, h);
}

static bool route(crd_unit* unit, int32_t from, crd_unit* target, int32_t to)
{
    return crdi_session_route((crdi_dcp_unit*)unit, from, (crdi_dcp_unit*)target, to);
}

static bool link_stats(const crd_unit* unit, crd_link_stats* out)
{
    *out = ((const crdi_dcp_unit*)unit)->link;
    return true;
}

static void interrupt(crd_unit* unit)
{
    crdi_session_interrupt((crdi_dcp_unit*)unit);
}

static const crdi_board* board(const crd_unit* unit)
{
    return ((const crdi_dcp_unit*)unit)->board;
}

static bool acting(const crd_unit* unit, int32_t variable, double* value)
{
    const crdi_dcp_unit* u = (const crdi_dcp_unit*)unit;
    return u->bench && crdi_dcp_bench_peer_acting(u->bench, variable, value);
}

static void halt(crd_unit* unit)
{
    crdi_session_halt((crdi_dcp_unit*)unit);
}

static crd_status terminate(crd_unit* unit)
{
    return crdi_session_stop((crdi_dcp_unit*)unit);
}

static void dcp_destroy(crd_unit* unit)
{
    crdi_dcp_unit* u = (crdi_dcp_unit*)unit;
    crdi_session_leave(u);
    crdi_dcp_bench_peer_destroy(u->bench);
    crdi_board_destroy(u->board);
    crd_arena_clear(&u->memory);
    crdi_map_clear(&u->names);
    crd_arena_clear(&u->arena);
    crd_dcp_can_description_destroy(u->can);
    crd_dcp_description_destroy(u->d);
    crd_free(unit->ctx, u);
}

// ---- description -------------------------------------------------------------------------------

static int32_t dcp_find(const crd_unit* unit, const char* name)
{
    return crdi_map_find(&((const crdi_dcp_unit*)unit)->names, name);
}

static const char* last_call(const crd_unit* unit)
{
    (void)unit;
    return "the DCP session";
}

static const crd_unit_remote_ops remote_ops = {
    .approach = approach,
    .begin = dcp_begin,
    .link = link_stats,
    .board = board,
    .acting = acting,
    .halt = halt,
    .interrupt = interrupt,
    .route = route,
};
static const crd_unit_lane_ops lane_ops = {.prepare = prepare};
static const crd_unit_name_ops name_ops = {.dimension = crdi_dcp_unit_dimension,
                                           .extent = crdi_dcp_unit_extent};

static const crd_unit_ops ops = {
    .instantiate = instantiate,
    .enter_initialization = enter_initialization,
    .exit_initialization = exit_initialization,
    .set = dcp_set,
    .get = dcp_get,
    .step = step,
    .terminate = terminate,
    .destroy = dcp_destroy,
    .find = dcp_find,
    .remote = &remote_ops,
    .lane = &lane_ops,
    .names = &name_ops,
    .last_call = last_call,
};

static crd_status load_description(crdi_dcp_unit* u)
{
    const crd_unit_spec* spec = u->base.spec;
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    const crd_status st = crd_dcp_load(u->base.ctx, spec->path, &u->d, &findings, &count);
    if (st < 0) { return st; }
    int faults = 0;
    const crd_dcp_finding* first = NULL;
    for (int i = 0; i < count; i++) {
        if (findings[i].severity != CRD_DCP_FAULT) { continue; }
        if (faults++ == 0) { first = &findings[i]; }
    }
    if (faults == 0) { return CRD_OK; }
    return crdi_fail(u->base.ctx, CRD_E_FORMAT, "%s:%d: %s (%s)%s; 'cardan check' lists everything",
                     spec->path, first->line, first->text, first->code,
                     faults > 1 ? ", and more" : "");
}

static crd_status choose_mode(crdi_dcp_unit* u)
{
    static const char* const names[] = {"hrt", "srt", "nrt"};
    const bool offered[] = {u->d->hrt, u->d->srt, u->d->nrt};
    switch (u->base.spec->session.mode) {
    case CRD_DCP_MODE_NRT:
        u->mode = CRD_DCP_NRT;
        break;
    case CRD_DCP_MODE_SRT:
        u->mode = CRD_DCP_SRT;
        break;
    case CRD_DCP_MODE_HRT:
        u->mode = CRD_DCP_HRT;
        break;
    default:
        u->mode = u->d->nrt ? CRD_DCP_NRT : u->d->srt ? CRD_DCP_SRT : CRD_DCP_HRT;
    }
    if (offered[u->mode]) { return CRD_OK; }
    return crdi_fail(u->base.ctx, CRD_E_RANGE,
                     "session.mode: the slave does not offer %s, expected %s%s%s", names[u->mode],
                     u->d->nrt ? "nrt" : "", u->d->srt ? (u->d->nrt ? " or srt" : "srt") : "",
                     u->d->hrt ? (u->d->nrt || u->d->srt ? " or hrt" : "hrt") : "");
}

// numerator / denominator = s within rounding, with a denominator that the slave knows.
static crd_status dcp_choose_resolution(crdi_dcp_unit* u)
{
    const double wanted = u->base.spec->session.resolution;
    const crd_dcp_resolution* usual = crdi_dcp_usual_resolution(u->d);
    if (isnan(wanted) && usual) {
        u->numerator = usual->numerator;
        u->denominator = usual->denominator;
    } else if (!crdi_dcp_divide_step(u->d, wanted, 1, &u->numerator, &u->denominator)) {
        const crd_dcp_resolution* r = &u->d->resolutions[0];
        return crdi_fail(u->base.ctx, CRD_E_RANGE,
                         "session.resolution: the slave does not offer %.10g s; expected what its "
                         "description has under TimeRes, such as %u/%u s",
                         wanted, r->numerator, r->denominator);
    }
    u->resolution = (double)u->numerator / u->denominator;
    return CRD_OK;
}

// A resolution of its own for a communication step that is no multiple of the one that the
// description proposes: the longest that divides the step and that the slave offers.
static void adapt_resolution(crdi_dcp_unit* u)
{
    const double h = u->base.step;
    if (u->can || !isnan(u->base.spec->session.resolution) || h <= 0) { return; }
    const double steps = round(h / u->resolution);
    if (steps >= 1 && fabs(steps * u->resolution - h) <= 1e-6 * u->resolution) { return; }
    if (crdi_dcp_divide_step(u->d, h, MOST_PARTS, &u->numerator, &u->denominator)) {
        u->resolution = (double)u->numerator / u->denominator;
    }
}

// The slave has its configuration from the same file, so its resolution and its id are there.
static void use_settings(crdi_dcp_unit* u, uint8_t id)
{
    crdi_dcp_pdu p;
    uint8_t other = 0;
    const uint8_t* uuid = NULL;
    u->address = (crd_dcp_address){.port = id, .transport = CRD_DCP_CAN};
    for (int k = 0; crdi_dcp_can_slave_of(u->can, k, &other, &uuid); k++) {
        for (int i = 0; other == id && crdi_dcp_can_setting(u->can, k, i, &p); i++) {
            if (p.type != CRDI_DCP_CFG_TIME_RES || p.denominator == 0 ||
                !isnan(u->base.spec->session.resolution)) {
                continue;
            }
            u->numerator = p.numerator;
            u->denominator = p.denominator;
            u->resolution = (double)p.numerator / p.denominator;
        }
    }
}

static crd_status find_bus(crdi_dcp_unit* u)
{
    crd_context* ctx = u->base.ctx;
    const crd_unit_spec* spec = u->base.spec;
    const crd_session_spec* session = &spec->session;
    if (!session->matrix) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "dcp: '%s' needs session: { matrix: FILE }, which says what the frames "
                         "are; 'cardan dcp matrix' writes one",
                         spec->address);
    }
    if (session->key || session->local || spec->bench.used) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s means nothing on a CAN bus: it has no room for it%s",
                         session->key     ? "session.key"
                         : session->local ? "session.local"
                                          : "bench",
                         spec->bench.used ? "; a bench is reached over UDP or TCP" : "");
    }
    if (!u->d->can) {
        return crdi_fail(ctx, CRD_E_RANGE, "dcp: '%s', but the slave does not offer CAN",
                         spec->address);
    }
    const crd_status st = crdi_dcp_can_load_good(ctx, session->matrix, &u->can);
    if (st < 0) { return st; }
    const uint8_t id = crdi_dcp_can_find(u->can, u->d->uuid, (uint8_t)session->id);
    if (id == 0) {
        return crdi_fail(ctx, CRD_E_NOT_FOUND,
                         "session.matrix: %s has no <DcpSlave> with the uuid of %s%s",
                         session->matrix, spec->path, session->id ? " and this id" : "");
    }
    use_settings(u, id);
    return CRD_OK;
}

static crd_status find_address(crdi_dcp_unit* u)
{
    if (crdi_dcp_is_bus(u->base.spec->address)) { return find_bus(u); }
    if (u->base.spec->session.matrix) {
        return crdi_fail(u->base.ctx, CRD_E_RANGE,
                         "session.matrix is for slaves on a CAN bus, expected dcp: can://can0");
    }
    const char* text = u->base.spec->address;
    const crd_dcp_endpoint* e = u->d->udp.offered ? &u->d->udp : &u->d->tcp;
    if (!text && (!e->offered || !e->host[0] || !e->port)) {
        return crdi_fail(u->base.ctx, CRD_E_RANGE,
                         "dcp: no address, and the description has no host and port of Control");
    }
    if (!text) {
        text = crdi_arena_format(&u->arena, "%s://%s:%u", e == &u->d->udp ? "udp" : "tcp", e->host,
                                 (unsigned)e->port);
        if (!text) { return CRD_E_MEMORY; }
    }
    const crd_status st = crd_dcp_address_parse(u->base.ctx, text, &u->address);
    if (st < 0) { return st; }
    const bool tcp = u->address.transport == CRD_DCP_TCP;
    if (tcp ? u->d->tcp.offered : u->d->udp.offered) { return CRD_OK; }
    return crdi_fail(u->base.ctx, CRD_E_RANGE, "dcp: '%s', but the slave does not offer %s", text,
                     tcp ? "TCP_IPv4" : "UDP_IPv4");
}

// A key that cannot be read is better told before the run.
static crd_status try_key(crdi_dcp_unit* u)
{
    crd_dcp_key key;
    u->link.security = u->security;
    if (!u->base.spec->session.key) {
        crdi_dcp_security_print(&u->address, NULL, u->security);
        return CRD_OK;
    }
    const char* path = u->base.spec->session.key;
    crd_status st = crd_dcp_key_load(u->base.ctx, path, &key);
    if (st == CRD_OK) {
        st = crdi_dcp_key_check_role(u->base.ctx, path, &key, CRD_DCP_MASTER_ROLE);
    }
    if (st == CRD_OK) { crdi_dcp_security_print(&u->address, &key, u->security); }
    crd_dcp_key_clear(&key);
    return st;
}

// The test case is held against the limits of both sides here, before anybody is contacted.
static crd_status plan_bench(crdi_dcp_unit* u)
{
    const crd_bench_spec* b = &u->base.spec->bench;
    if (!b->used) { return CRD_OK; }
    crdi_dcp_bench_plan plan = crdi_dcp_bench_plan_defaults();
    plan.name = u->base.name;
    plan.limits = b->limits;
    plan.planned = b->plan;
    plan.initial = b->initial;
    if (b->gap > 0) { plan.gap_limit = (uint32_t)b->gap; }
    if (!isnan(b->watchdog)) { plan.watchdog = b->watchdog; }
    const crd_status st = crdi_dcp_bench_peer_create(u->base.ctx, u->d, &plan, &u->bench);
    const char* text = crd_error_text(u->base.ctx);
    const size_t n = strlen(u->base.name); // which the place of the unit says already
    if (st < 0 && strncmp(text, u->base.name, n) == 0 && strncmp(text + n, ": ", 2) == 0) {
        crdi_fail(u->base.ctx, st, "%s", text + n + 2);
    }
    return st;
}

static crd_unit_info info_of(const crdi_dcp_unit* u)
{
    static const char* const kinds[] = {"DCP HRT", "DCP SRT", "DCP NRT"};
    const crd_dcp_description* d = u->d;
    const bool nrt = u->mode == CRD_DCP_NRT;
    const double step = u->resolution * (nrt ? d->nrt_default_steps : 1);
    return (crd_unit_info){
        .start = NAN,
        .stop = NAN,
        .step = step,
        .tolerance = NAN,
        .fixed_step = nrt && d->nrt_fixed_steps ? step : 0,
        .flags = (nrt ? 0u : CRD_UNIT_IN_REAL_TIME) | (u->bench ? CRD_UNIT_DATES_OUTPUTS : 0u),
        .kind = kinds[u->mode],
    };
}

static crd_status dcp_create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                             crd_place* place, crd_unit** out)
{
    (void)place;
    crd_status st = CRD_OK;
    crdi_dcp_unit* u = crdi_new(ctx, sizeof *u);
    if (!u) { return CRD_E_MEMORY; }
    u->base = (crd_unit){.ops = &ops, .ctx = ctx, .name = spec->name, .spec = spec};
    u->link = (crd_link_stats){.age = NAN,
                               .age_mean = NAN,
                               .age_max = NAN,
                               .round_trip = NAN,
                               .round_trip_max = NAN,
                               .state = -1,
                               .state_name = ""};
    crd_arena_init(&u->arena, ctx);
    crd_arena_init(&u->memory, ctx);
    crdi_map_init(&u->names, ctx);
    CRD_TRY(load_description(u));
    CRD_TRY(choose_mode(u));
    CRD_TRY(dcp_choose_resolution(u));
    CRD_TRY(find_address(u));
    CRD_TRY(try_key(u));
    CRD_TRY(plan_bench(u));
    u->base.info = info_of(u);
    CRD_TRY(crdi_dcp_unit_describe(u));
    CRD_TRY(crdi_dcp_board_create(u));
    memcpy(crdi_board_edit(u->board)->security, u->security, sizeof u->security);
    crdi_board_show(u->board);
    CRD_TRY(crdi_session_join(store, u));
    *out = &u->base;
    return CRD_OK;
fail:
    dcp_destroy(&u->base);
    return st;
}

const crdi_adapter crdi_adapter_dcp = {.create = dcp_create, .resize = crdi_dcp_unit_resize};
