// cardan coupling learn: the server that trains networks of running elements, and training on a
// recording.
#include "cli/analyze/learn.h"
#include "cardan/coupling.h"
#include "cardan/learn.h"
#include "cli/analyze/signals.h"
#include "shared/base_interrupt.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct learn_options {
    crdi_common common;
    const char *listen, *signal, *latency, *start, *output, *name, *neurons;
    double every, keep, clients, duration;                             // serve
    double step, from, to;                                             // train
    double epochs, batch, rate, ridge, hold_out, protect, alpha, seed; // both; NaN: the default
    int method;                                                        // -1: the default
    bool free_biases, force, plain;
    crdi_list commands;
    double command_delay;
    crdi_learn_cycle_options cycle;
    crdi_list set; // cycle
} learn_options;

static const char* const methods[] = {"adam", "ridge", NULL};
static const char* const any_start = "{algorithm: wiener, taps: 25}";

// A whole number of an option that may be missing.
static crd_status take_count(crd_context* ctx, const char* name, double value, double least,
                             double most, int64_t* out)
{
    if (isnan(value)) { return CRD_OK; }
    if (!(value >= least && value <= most && value == floor(value))) {
        return crdi_fail(ctx, CRD_E_RANGE, "--%s = %g, expected a whole number from %g to %g", name,
                         value, least, most);
    }
    *out = (int64_t)value;
    return CRD_OK;
}

static crd_status read_training(crd_context* ctx, const learn_options* o, crd_training* t)
{
    crd_status st = CRD_OK;
    int64_t epochs = t->epochs, batch = t->batch, seed = (int64_t)t->seed;
    CRD_TRY(take_count(ctx, "epochs", o->epochs, 1, 1e6, &epochs));
    CRD_TRY(take_count(ctx, "batch", o->batch, 0, 1e9, &batch));
    CRD_TRY(take_count(ctx, "seed", o->seed, 0, 1e15, &seed));
    t->epochs = (int)epochs;
    t->batch = (int)batch;
    t->seed = (uint64_t)seed;
    if (o->method >= 0) { t->method = (crd_training_method)o->method; }
    if (!isnan(o->rate)) { t->rate = o->rate; }
    if (!isnan(o->ridge)) { t->ridge = o->ridge; }
    if (!isnan(o->protect)) { t->protect = o->protect; }
    if (!isnan(o->hold_out)) { t->hold_out = o->hold_out; }
    if (!(t->hold_out > 0 && t->hold_out <= 0.9)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--hold-out = %g, expected above 0 and up to 0.9: a network is judged by "
                         "what it has not seen",
                         t->hold_out);
    }
    if (o->free_biases) { t->freeze_biases = false; }
fail:
    return st;
}

// ---- serve -------------------------------------------------------------------------------------

typedef struct teacher {
    crdi_result* out;
    int64_t counts[CRD_LEARN_LEFT + 1]; // events by kind
    int64_t sent;
} teacher;

static const char* const event_names[] = {"joined",  "trained",     "swapped", "kept",
                                          "refused", "rolled back", "left"};

// Inputs and neurons of the hidden layers.
static void put_shape(crdi_result* list, const crd_network* n)
{
    crdi_put(list, INT(NULL, n->m));
    if (n->n1 > 0) { crdi_put(list, INT(NULL, n->n1)); }
    crdi_put(list, INT(NULL, n->n2));
    for (int h = 0; h < n->more; h++) {
        crdi_put(list, INT(NULL, n->n_more[h]));
    }
}

static void put_event(crdi_result* o, const crd_learn_event* e)
{
    crdi_put(o, TEXT("event", event_names[e->kind]), TEXT("element", e->name));
    crdi_result* shape = crdi_array(o, "shape");
    put_shape(shape, e->network);
    if (e->generation) { crdi_put(o, INT("generation", e->generation)); }
    if (*e->text) { crdi_put(o, TEXT("reason", e->text)); }
    if (e->kind == CRD_LEARN_TRAINED) {
        crdi_put(o, INT("samples", e->samples), INT("jumps", e->jumps), INT("k", e->k),
                 REAL("rms_before", sqrt(e->report.held_before)),
                 REAL("rms_after", sqrt(e->report.held_after)), REAL("seconds", e->seconds),
                 BOOL("sent", e->generation > 0));
    }
}

static void say_event(crdi_result* o, const crd_learn_event* e)
{
    const crd_training_report* r = &e->report;
    char shape[80];
    crdi_say(o, "%s: ", *e->name ? e->name : "(no name)");
    switch (e->kind) {
    case CRD_LEARN_JOINED:
        crdi_say(o, "joined with a network of %s\n",
                 crd_network_shape(e->network, shape, sizeof shape));
        break;
    case CRD_LEARN_TRAINED:
        crdi_say(o,
                 "trained on %" PRId64 " samples for k = %d in %.0f ms, held out rms %.4g -> %.4g",
                 e->samples, e->k, 1e3 * e->seconds, sqrt(r->held_before), sqrt(r->held_after));
        if (e->generation) {
            crdi_say(o, ", sent as network %" PRId64 "\n", e->generation);
        } else {
            crdi_say(o, ", not sent: %s\n", e->text);
        }
        break;
    case CRD_LEARN_LEFT:
        crdi_say(o, "left: %s\n", e->text);
        break;
    default:
        crdi_say(o, "network %" PRId64 " %s\n", e->generation, event_names[e->kind]);
    }
}

static void note_event(void* user, const crd_learn_event* e)
{
    teacher* t = user;
    t->counts[e->kind]++;
    t->sent += e->kind == CRD_LEARN_TRAINED && e->generation > 0;
    put_event(t->out, e);
    say_event(t->out, e);
    (void)crdi_result_print(t->out->root); // where nobody listens any more the summary says so
}

static void put_summary(const teacher* t)
{
    const int64_t* n = t->counts;
    crdi_put(t->out, TEXT("event", "summary"), INT("elements", n[CRD_LEARN_JOINED]),
             INT("trainings", n[CRD_LEARN_TRAINED]), INT("sent", t->sent),
             INT("kept", n[CRD_LEARN_KEPT]), INT("refused", n[CRD_LEARN_REFUSED]),
             INT("rolled_back", n[CRD_LEARN_ROLLED_BACK]));
    crdi_say(t->out,
             "%" PRId64 " element%s, %" PRId64 " training%s, %" PRId64 " network%s sent: %" PRId64
             " kept, %" PRId64 " refused, %" PRId64 " rolled back\n",
             n[CRD_LEARN_JOINED], crdi_plural(n[CRD_LEARN_JOINED]), n[CRD_LEARN_TRAINED],
             crdi_plural(n[CRD_LEARN_TRAINED]), t->sent, crdi_plural(t->sent), n[CRD_LEARN_KEPT],
             n[CRD_LEARN_REFUSED], n[CRD_LEARN_ROLLED_BACK]);
}

static crd_status serve(crdi_cli* cli, const learn_options* o, crdi_result* out)
{
    crd_status st = CRD_OK;
    crd_learn_server* s = NULL;
    teacher t = {.out = out};
    crd_learn_server_options opt = crd_learn_server_defaults();
    int64_t clients = opt.clients;
    if (!o->listen) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "--listen is missing: cardan coupling learn serve --listen unix:PATH or "
                         "tcp:ADDRESS:PORT");
    }
    opt.address = o->listen;
    opt.note = note_event;
    opt.note_user = &t;
    CRD_TRY(take_count(cli->ctx, "every", o->every, 1, 5e7, &opt.every));
    CRD_TRY(take_count(cli->ctx, "keep", o->keep, 100, 5e7, &opt.keep));
    CRD_TRY(take_count(cli->ctx, "clients", o->clients, 1, 1024, &clients));
    opt.clients = (int)clients;
    opt.plain = o->plain;
    CRD_TRY(read_training(cli->ctx, o, &opt.training));
    const volatile bool* stop = crdi_interrupt_catch(&(crdi_interrupt_options){0});
    CRD_TRY(crd_learn_server_create(cli->ctx, &opt, &s));
    crdi_json_lines(out, true);
    crdi_put(out, TEXT("event", "listening"), TEXT("address", crd_learn_server_address(s)));
    crdi_say(out, "listening at %s\n", crd_learn_server_address(s));
    CRD_TRY(crdi_result_print(out->root));
    CRD_TRY(crd_learn_server_run(s, stop, o->duration));
    put_summary(&t);
fail:
    crd_learn_server_destroy(s);
    return st;
}

// ---- train -------------------------------------------------------------------------------------

typedef struct trainer {
    crdi_cli* cli;
    const learn_options* o;
    const char* path;
    crd_element* element; // where it starts; then what it has become
    crdi_recorded recorded;
    double step;
    crd_training training;
    crd_network start, result; // start is its own only if `morphed`
    bool morphed, written;
    crd_training_report report;
    double seconds;
} trainer;

static crd_status load_training(trainer* t)
{
    crd_context* ctx = t->cli->ctx;
    const learn_options* o = t->o;
    crd_status st = CRD_OK;
    int latencies[CRDI_LATENCIES_MAX], count = 0;
    if (!o->latency) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--latency is missing: for how old a signal is the network trained?");
    }
    CRD_TRY(crdi_load_element(ctx, o->start ? o->start : any_start, &t->element));
    const crdi_recorded_options r = {.signal = o->signal,
                                     .step = isnan(o->step) ? t->element->step : o->step,
                                     .from = o->from,
                                     .to = o->to};
    CRD_TRY(crdi_recorded_load(ctx, t->path, &r, &t->recorded));
    t->step = t->recorded.step;
    CRD_TRY(crdi_parse_latencies(ctx, o->latency, t->step, latencies, &count));
    if (count != 1) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--latency = '%s', expected one latency: a network is trained for one",
                         o->latency);
    }
    t->training = crd_training_defaults();
    CRD_TRY(read_training(ctx, o, &t->training));
    t->training.k = latencies[0];
fail:
    return st;
}

static bool read_neurons(const char* text, int neurons[CRD_NETWORK_LAYERS], int* layers)
{
    for (*layers = 0; *layers < CRD_NETWORK_LAYERS;) {
        int read = 0;
        if (sscanf(text, "%d%n", &neurons[*layers], &read) != 1) { return false; }
        ++*layers;
        text += read;
        if (*text == 0) { return true; }
        if (*text++ != ',') { return false; }
    }
    return false;
}

// The network that the element has, or one that does what the element does.
static crd_status make_start(trainer* t)
{
    crd_context* ctx = t->cli->ctx;
    const crd_coupling_options* e = &t->element->options;
    int neurons[CRD_NETWORK_LAYERS] = {CRD_NETWORK_N1, CRD_NETWORK_N2}, layers = 2;
    if (t->o->neurons && !read_neurons(t->o->neurons, neurons, &layers)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--neurons %s, expected 1 to %d hidden layers such as 4,2", t->o->neurons,
                         CRD_NETWORK_LAYERS);
    }
    if (e->algorithm == CRD_ALGORITHM_NETWORK) {
        char shape[80], wanted[80];
        const crd_network* n = e->network;
        snprintf(wanted, sizeof wanted, "%d", n->m);
        for (int h = 0; t->o->neurons && h < layers; h++) {
            snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "-%d", neurons[h]);
        }
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "-1");
        crd_network_shape(n, shape, sizeof shape);
        if (t->o->neurons && strcmp(shape, wanted) != 0) {
            return crdi_fail(ctx, CRD_E_RANGE, "--neurons %s: --start is a network of %s already",
                             t->o->neurons, shape);
        }
        t->start = *e->network;
        return CRD_OK;
    }
    crd_linear l = {0};
    crd_status st = crd_element_linear(t->element, t->step, t->training.k, &l);
    if (st == CRD_E_UNSUPPORTED) {
        return crdi_fail(ctx, st,
                         "--start %s adapts itself and is no network, expected a network or a "
                         "linear algorithm such as eros or %s",
                         t->element->label, any_start);
    }
    if (st < 0) { return st; }
    st = crd_network_morph_to(ctx, &l, isnan(t->o->alpha) ? 0.01 : t->o->alpha, neurons, layers,
                              &t->start);
    crd_linear_clear(ctx, &l);
    t->morphed = st == CRD_OK;
    return st;
}

static crd_status write_element(trainer* t)
{
    crd_context* ctx = t->cli->ctx;
    crd_status st = CRD_OK;
    crd_element* e = t->element;
    crd_text text;
    crd_text_init(&text, ctx);
    if (t->o->name) {
        e->name = t->o->name;
    } else if (!*e->name) {
        e->name = t->recorded.name;
    }
    e->step = t->step;
    CRD_TRY(crd_element_write(e, &text));
    if (text.failed) { CRD_TRY(CRD_E_MEMORY); }
    if (text.length && text.data[text.length - 1] != '\n') { crdi_text_put(&text, "\n", 1); }
    if (text.failed) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crdi_file_write(ctx, t->o->output, &text));
    t->written = true;
fail:
    crd_text_clear(&text);
    return st;
}

static void put_change(crdi_result* out, crdi_result* rows, const char* key, const char* title,
                       double before, double after)
{
    crdi_put(crdi_object(out, key), REAL("before", sqrt(before)), REAL("after", sqrt(after)));
    if (!title) { return; }
    crdi_result* row = crdi_row(rows);
    crdi_put(row, CELL("what", title), CELL("before", crdi_worded(row, "%.6g", sqrt(before))),
             CELL("after", crdi_worded(row, "%.6g", sqrt(after))),
             CELL("change", before > 0
                                ? crdi_worded(row, "%+.1f %%", 100 * (sqrt(after / before) - 1))
                                : " "));
}

static void learn_put_report(const trainer* t, crdi_result* out)
{
    static const crdi_column columns[] = {{"error (rms)", "what", ""},
                                          {">before", "before", ""},
                                          {">after", "after", ""},
                                          {">change", "change", ""},
                                          {0}};
    const crd_training_report* r = &t->report;
    char step[32];
    crdi_say(out, "%s: '%s', %" PRId64 " samples every %s, k = %d\n", t->path, t->recorded.name,
             t->recorded.count, crdi_format_seconds(step, t->step), t->training.k);
    char text[80];
    crdi_say(out, "network %s from %s, %s", crd_network_shape(&t->start, text, sizeof text),
             t->element->label, methods[t->training.method]);
    if (t->training.method == CRD_TRAIN_ADAM) { crdi_say(out, ", %d epochs", r->epochs); }
    crdi_say(out, ", %.0f ms\n\n", 1e3 * t->seconds);
    crdi_put(out, TEXT("recording", t->path), TEXT("signal", t->recorded.name),
             REAL("step", t->step), INT("k", t->training.k), INT("samples", t->recorded.count),
             TEXT("method", methods[t->training.method]));
    crdi_result* shape = crdi_array(out, "shape");
    put_shape(shape, &t->start);
    crdi_put(out, INT("epochs", r->epochs), INT("pairs", r->pairs), INT("dropped", r->dropped),
             INT("jumps", r->jumps), BOOL("better", r->better), BOOL("guarded", r->guarded));
    crdi_result* rows = crdi_array(out, NULL);
    put_change(out, rows, "trained", "trained on", r->loss_before, r->loss_after);
    put_change(out, rows, "held_out", "held out", r->held_before, r->held_after);
    put_change(out, rows, "smooth", NULL, r->smooth_before, r->smooth_after);
    crdi_show_table(out, rows, columns, "");
    crdi_put(out, REAL("seconds", t->seconds), TEXT("written", t->written ? t->o->output : NULL));
    crdi_say(out,
             "trained on %" PRId64 " pairs of past and present, %" PRId64
             " left out because of jumps or gaps\n",
             r->pairs, r->dropped);
    if (r->guarded) {
        crdi_say(out, "the network limits what it expects, so that jumps do not overshoot\n");
    }
    if (t->written) { crdi_say(out, "%s: written\n", t->o->output); }
}

static crd_status run_training(trainer* t)
{
    const int64_t begin = crdi_now_ns();
    const crd_status st =
        crd_learn_train(t->cli->ctx, &t->training, t->recorded.y, t->recorded.count, &t->start,
                        &t->result, &t->report, NULL);
    t->seconds = 1e-9 * (double)(crdi_now_ns() - begin);
    return st < 0 ? crdi_fail_in(t->cli->ctx, st, "%s: '%s'", t->path, t->recorded.name) : st;
}

static crd_status train_recording(crdi_cli* cli, const learn_options* o, const char* path,
                                  crdi_result* out)
{
    crd_status st = CRD_OK;
    trainer t = {.cli = cli, .o = o, .path = path};
    CRD_TRY(load_training(&t));
    CRD_TRY(make_start(&t));
    CRD_TRY(run_training(&t));
    t.element->options.algorithm = CRD_ALGORITHM_NETWORK;
    t.element->options.network = &t.result;
    if (o->output && (t.report.better || o->force)) { CRD_TRY(write_element(&t)); }
    learn_put_report(&t, out);
    if (!t.report.better && !o->force) {
        st = crdi_fail(cli->ctx, CRD_E_CONVERGENCE,
                       "training has made nothing better of '%s' on what was held out (rms %g, "
                       "before %g)%s%s%s",
                       t.recorded.name, sqrt(t.report.held_after), sqrt(t.report.held_before),
                       o->output ? "; " : "", o->output ? o->output : "",
                       o->output ? " is not written, --force would write it" : "");
    }
fail:
    crd_network_clear(cli->ctx, &t.result);
    if (t.morphed) { crd_network_clear(cli->ctx, &t.start); }
    crdi_recorded_clear(&t.recorded);
    crd_element_destroy(t.element);
    return st;
}

// ---- train, with commands ----------------------------------------------------------------------

// An element for the recorded commands and what is left of the error at the end of the recording:
// of its own, of the hold and of the signal alone.
static crd_status replay_commands(trainer* t, crdi_recorded_commands* c, crd_replay* own,
                                  double rms[3])
{
    static const char* const others[] = {"zoh", "auto"};
    crd_context* ctx = t->cli->ctx;
    const learn_options* o = t->o;
    const double* y[CRD_COMMANDS_MAX] = {NULL};
    crd_status st = CRD_OK;
    crd_element* other = NULL;
    crd_replay r;
    crd_replay_options channel = crd_replay_defaults();
    channel.step = t->step;
    channel.delay = t->training.k * t->step;
    channel.first = (int64_t)((1 - t->training.hold_out) * (double)t->recorded.count);
    if (!isnan(o->command_delay)) { channel.command_delay = o->command_delay; }
    for (int i = 0; i < 2; i++) {
        CRD_TRY(crd_element_of_name(ctx, others[i], &other));
        other->options.k_max = t->training.k;
        CRD_TRY(
            crd_coupling_replay(ctx, other, &channel, t->recorded.y, t->recorded.count, NULL, &r));
        rms[i] = crd_score_metrics(&r.score).rms;
        crd_element_destroy(other);
        other = NULL;
    }
    CRD_TRY(crdi_commands_choose(ctx, c, t->element, y));
    if (t->element->options.k_max < t->training.k) { t->element->options.k_max = t->training.k; }
    channel.commands = y;
    channel.command_count = t->element->options.commands;
    CRD_TRY(crd_coupling_replay(ctx, t->element, &channel, t->recorded.y, t->recorded.count, NULL,
                                own));
    rms[2] = crd_score_metrics(&own->score).rms;
fail:
    crd_element_destroy(other);
    return st;
}

static crd_status judge_commands(trainer* t, const crd_replay* own, const double rms[3])
{
    const bool better = own->weight_count > 0 && rms[2] < rms[1];
    const crd_command_weights w = {CRD_COMMAND_BASIS, t->step,      t->element->options.commands,
                                   own->weight_count, own->weights, own->low,
                                   own->high};
    if (own->weight_count > 0) { t->element->options.command_weights = &w; }
    crd_status st = CRD_OK;
    if (t->o->output && (better || t->o->force)) { st = write_element(t); }
    t->element->options.command_weights = NULL;
    if (st < 0 || better || t->o->force) { return st; }
    return crdi_fail(t->cli->ctx, CRD_E_CONVERGENCE,
                     "the commands make nothing better of '%s' at the end of the recording (rms "
                     "%g, without them %g)%s",
                     t->recorded.name, rms[2], rms[1],
                     t->o->output ? "; nothing is written, --force would write it" : "");
}

static void put_commands_report(const trainer* t, const crd_replay* own, const double rms[3],
                                crdi_result* out)
{
    crdi_say(out, "%s: '%s', %" PRId64 " samples, k = %d; at its end rms %.4g with the commands, ",
             t->path, t->recorded.name, t->recorded.count, t->training.k, rms[2]);
    crdi_say(out, "%.4g without (auto), %.4g held (zoh)\n", rms[1], rms[0]);
    crdi_put(out, TEXT("recording", t->path), TEXT("signal", t->recorded.name),
             REAL("step", t->step), INT("k", t->training.k), INT("samples", t->recorded.count),
             REAL("rms_zoh", rms[0]), REAL("rms_auto", rms[1]), REAL("rms_commands", rms[2]),
             REAL("share", own->commands.share), INT("updates", own->commands.updates),
             TEXT("written", t->written ? t->o->output : NULL));
    crdi_commands_report(out, out, t->element, &own->commands);
    if (t->written) { crdi_say(out, "%s: written\n", t->o->output); }
}

static crd_status train_commands(crdi_cli* cli, const learn_options* o, const char* path,
                                 crdi_result* out)
{
    crd_status st = CRD_OK;
    learn_options with = *o;
    trainer t = {.cli = cli, .o = &with, .path = path};
    crdi_recorded_commands c = {0};
    crd_replay own = {0};
    double rms[3];
    if (!with.start) { with.start = "commands"; }
    CRD_TRY(load_training(&t));
    if (t.element->options.algorithm != CRD_ALGORITHM_COMMANDS) {
        CRD_TRY(crdi_fail(cli->ctx, CRD_E_RANGE,
                          "--start %s with --command, expected an element with algorithm: commands",
                          t.element->label));
    }
    const crdi_recorded_options r = {o->signal, t.step, o->from, o->to};
    CRD_TRY(crdi_commands_load(cli->ctx, path, &o->commands, &r, &t.recorded, &c));
    CRD_TRY(replay_commands(&t, &c, &own, rms));
    st = judge_commands(&t, &own, rms);
    put_commands_report(&t, &own, rms, out);
fail:
    crdi_commands_clear(&c);
    crdi_recorded_clear(&t.recorded);
    crd_element_destroy(t.element);
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static const char* const words[] = {"serve", "train", "cycle", NULL};

static crd_status run_learn(crdi_cli* cli, const void* options, const crdi_list* arguments,
                            crdi_result* out)
{
    const char* what = arguments->items[0];
    if (strcmp(what, "serve") == 0) {
        if (arguments->count > 1) {
            return crdi_fail(
                cli->ctx, CRD_E_RANGE,
                "unexpected argument '%s': cardan coupling learn serve --listen ADDRESS",
                arguments->items[1]);
        }
        return serve(cli, options, out);
    }
    if (strcmp(what, "train") == 0) {
        if (arguments->count < 2) {
            return crdi_fail(
                cli->ctx, CRD_E_RANGE,
                "RECORDING is missing: cardan coupling learn train RECORDING --signal NAME "
                "--latency K");
        }
        const learn_options* o = options;
        return (o->commands.count > 0 ? train_commands : train_recording)(cli, o,
                                                                          arguments->items[1], out);
    }
    if (strcmp(what, "cycle") == 0) {
        if (arguments->count < 2) {
            return crdi_fail(cli->ctx, CRD_E_RANGE,
                             "SYSTEM is missing: cardan coupling learn cycle SYSTEM --output FILE");
        }
        const learn_options* o = options;
        crdi_learn_cycle_options cycle = o->cycle;
        cycle.output = o->output;
        cycle.set = &o->set;
        return crdi_learn_cycle(cli, &cycle, arguments->items[1], out);
    }
    const char* near = crdi_nearest_word(what, words);
    return crdi_fail(cli->ctx, CRD_E_RANGE, "'%s', expected serve, train or cycle%s%s%s", what,
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

#define NUMBER(n, m, r, field, text)                                                               \
    {                                                                                              \
        .name = (n), .type = CRDI_OPT_NUMBER, .metavar = (m), .range = (r),                        \
        .offset = offsetof(learn_options, field), .help = (text)                                   \
    }

static const crdi_option rows[] = {
    OPT_TEXT(learn_options, listen, "listen", "ADDRESS",
             "serve: unix:PATH, or tcp:ADDRESS:PORT with a numeric address (port 0: any). Nobody "
             "is asked who he is: choose an address that only your machines reach"),
    NUMBER("every", "N", CRDI_POSITIVE, every,
           "serve: new samples before an element is trained again; 5000 unless given"),
    NUMBER("keep", "N", CRDI_POSITIVE, keep,
           "serve: samples kept and trained on per element; 20000 unless given"),
    NUMBER("clients", "N", CRDI_POSITIVE, clients,
           "serve: elements at the same time at most; 64 unless given"),
    OPT_TIME(learn_options, duration, "duration", CRDI_POSITIVE,
             "serve: end after this time; until Ctrl-C or SIGTERM unless given"),
    OPT_TEXT(learn_options, signal, "signal", "NAME",
             "train: signal of the recording; needed if it has more than one"),
    OPT_TEXT(learn_options, latency, "latency", "K",
             "train: latency in macro steps, or as a time (60 ms)"),
    OPT_FILE(learn_options, start, "start", "yaml|yml|json",
             "train: element that training begins with: a network, or a linear one that becomes a "
             "network; a word (eros), a file or inline YAML; {algorithm: wiener, taps: 25} unless "
             "given",
             .metavar = "ELEMENT"),
    OPT_LIST(learn_options, commands, "command", "NAME",
             "train: a signal of the recording that is a command to what the signal comes from; "
             "several times for several. Then not a network is trained but what the signal makes "
             "of the commands, for an element with algorithm: commands"),
    OPT_TIME(learn_options, command_delay, "command-delay", CRDI_NOT_NEGATIVE,
             "train: the commands were recorded when they were sent and act so much later; 0 "
             "unless given"),
    OPT_TEXT(learn_options, neurons, "neurons", "N,...",
             "train: neurons of the 1 to 4 hidden layers of the network that a linear --start "
             "becomes: of several the first is linear, the others are leaky ReLUs, an even "
             "number each; 4,2 unless given"),
    OPT_TIME(learn_options, step, "step", CRDI_POSITIVE,
             "train: macro step; that of the element, else of the recording unless given"),
    OPT_TIME(learn_options, from, "from", CRDI_ANY,
             "train: begin of what is used of the recording"),
    OPT_TIME(learn_options, to, "to", CRDI_ANY, "train: its end"),
    OPT_FILE(
        learn_options, output, "output", "yaml|yml|json",
        "train: the trained element; written only if it is better on what was held out. cycle: "
        "what was learned; run.learned of the system unless given",
        .short_name = 'o'),
    OPT_TEXT(learn_options, name, "name", "NAME",
             "train: name of the element; that of --start, else of the signal unless given"),
    OPT_FLAG(learn_options, plain, "plain",
             "serve: listen beyond this host, although nothing is encrypted or authenticated: who "
             "reaches it can send samples, and be an element"),
    OPT_FLAG(learn_options, force, "force", "train: write it also if it is not better"),
    OPT_CHOICE(learn_options, method, "method", methods,
               "gradient descent, or least squares written into the network; adam unless given"),
    NUMBER("epochs", "N", CRDI_POSITIVE, epochs,
           "adam: passes over all samples; 1000 unless given"),
    NUMBER("batch", "N", CRDI_NOT_NEGATIVE, batch,
           "adam: samples of one step; 0, all of them, unless given"),
    NUMBER("rate", "X", CRDI_POSITIVE, rate, "adam: first learning rate; 0.01 unless given"),
    NUMBER("seed", "N", CRDI_NOT_NEGATIVE, seed,
           "adam: of the order of samples in batches; 1 unless given"),
    NUMBER("ridge", "X", CRDI_POSITIVE, ridge,
           "pull of least squares towards the start; 0.001 unless given"),
    NUMBER("hold-out", "PART", CRDI_POSITIVE, hold_out,
           "part of the samples at the end that judges the result; 0.2 unless given"),
    NUMBER("protect", "X", CRDI_NOT_NEGATIVE, protect,
           "adam: the error where the signal is smooth may become so many times as large and no "
           "larger, 0: however large; 1.5 unless given"),
    NUMBER("alpha", "X", CRDI_ANY, alpha,
           "train: slope of the leaky ReLUs of a network that is made of a linear element, 1: "
           "the network stays linear; 0.01 unless given"),
    OPT_FLAG(learn_options, free_biases, "free-biases",
             "adam: train the biases, too; constants may then come out changed"),
    NUMBER(
        "runs", "N", CRDI_POSITIVE, cycle.runs,
        "cycle: runs at most, beside one for each late signal that identifies it; 6 unless given"),
    NUMBER("gain", "X", CRDI_POSITIVE, cycle.gain,
           "cycle: part of what is left that a run takes away; 1 unless given"),
    NUMBER("disturbance", "PART", CRDI_POSITIVE, cycle.disturbance,
           "cycle: of the identification, largest value of a signal's range; 0.05 unless given"),
    NUMBER("band", "HZ", CRDI_POSITIVE, cycle.band,
           "cycle: what is faster is not learned; half the sampling rate unless given"),
    OPT_TEXT(learn_options, cycle.pace, "pace", "PACE",
             "cycle: realtime, free or a factor such as 10x; what the system says unless given"),
    OPT_TIME(learn_options, cycle.stop_time, "stop-time", CRDI_ANY,
             "cycle: end of the run; what the system says unless given"),
    OPT_LIST(learn_options, set, "set", "UNIT.VARIABLE=VALUE",
             "cycle: a start value or parameter, as of cardan run"),
    CRDI_JSON_OPTION("train, cycle: the report as JSON; serve: a line of JSON for each event"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_learn = {
    .name = "coupling learn",
    .arguments = "serve|train|cycle [RECORDING|SYSTEM]",
    .summary = "train networks, or learn a cycle from run to run",
    .description =
        "`learn serve` is the server that elements with a network talk to while they run: it "
        "collects their samples, trains their networks, and sends back those that are better on "
        "samples that training has not seen. The elements try a network beside the old one before "
        "they keep it. They never wait for the server: if it dies they go on, and find it again. "
        "`learn train` does the same once, with a recording. `learn cycle` runs a system again and "
        "again and learns corrections of the late signals of its power bonds: they belong to this "
        "cycle over this link, and `run: { learned: FILE }` uses them.",
    .examples =
        {{"cardan coupling learn serve --listen unix:/run/user/1000/learn.sock",
          "serve elements on this machine"},
         {"cardan coupling learn serve --listen tcp:192.168.7.2:5400 --plain --every 2000 --method "
          "ridge",
          "serve a bench network, train after 2000 samples by least squares"},
         {"cardan coupling learn train bench.mf4 --signal torque --latency 6 -o torque.yaml",
          "an element from a recording"},
         {"cardan coupling learn train bench.csv --signal torque --command pedal --command gear "
          "--latency 6 -o torque.json",
          "an element that knows the commands, with what it has learned of them"},
         {"cardan coupling learn train bench.csv --signal F --latency '60 ms' --step '10 ms' "
          "--start eros --method ridge --json",
          "what least squares would make of EROS"},
         {"cardan coupling learn cycle rig.yaml --runs 6 -o rig.cycle.json",
          "what repeats in the run of a system"}},
    OPTIONS(rows, learn_options),
    .min_arguments = 1,
    .max_arguments = 2,
    .words = words,
    .run = run_learn,
};
