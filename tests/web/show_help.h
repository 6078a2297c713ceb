// A run as it could look, without one: every table has something in it.
#pragma once
#include "check.h"

#include <stdio.h>

#include "cardan/results.h"
#include "web/web.h"

typedef struct sample {
    crdi_live_unit units[2];
    crdi_live_signal signals[3];
    crdi_live_setting settings[1];
    crdi_live_link links[2];
    crdi_live_bond bonds[1];
    crdi_live_port ports[2];
    crdi_live_info info;
    crdi_live_unit_state unit_states[2];
    crdi_live_link_state link_states[2];
    crdi_live_bond_state bond_states[1];
    crdi_live_port_state port_states[2];
    crdi_live_status status;
} sample;

static inline void make_sample(sample* s)
{
    *s = (sample){
        .units = {{"mass1", "fmu", false, false, 1e-3, NAN},
                  {"motor", "dcp", true, true, 1e-3, 5e-4}},
        .signals = {{"mass1.v", "m/s", "speed", 0, CRD_FLOAT64},
                    {"mass1.on", "", "", 0, CRD_BOOLEAN},
                    {"motor.a.b", "", NULL, 1, CRD_INT32}},
        .settings = {{"mass1.m", "kg", "", 0, CRD_FLOAT64, 100, -INFINITY, INFINITY, false}},
        .links = {{"motor.t", "mass1.F", "N", 1, 0, 0, true, -1},
                  {"mass1.v", "motor.\"n\\\n\"", "", 0, 1, -1, true, 0}},
        .bonds = {{"shaft", "motor.t", "mass1.v"}},
        .ports = {{"axle", "mass1.v"}, {"axle", "motor.t"}},
        .unit_states = {{.steps = 5, .ns_last = 1000, .ns_worst = 2500},
                        {.steps = 4,
                         .late = 1,
                         .is_late = true,
                         .has_link = true,
                         .link = {.in = 9,
                                  .lost = 2,
                                  .age = 0.001,
                                  .round_trip = NAN,
                                  .state_name = "RUNNING"}}},
        .link_states = {{.value = 1.5,
                         .defect = 0.25,
                         .relative = 0.01,
                         .age = 0.002,
                         .k = 2,
                         .error = NAN,
                         .lost = 3,
                         .algorithm = "eros",
                         .fault = CRDI_FAULT_OFFSET,
                         .fault_left = NAN},
                        {.value = NAN,
                         .defect = NAN,
                         .relative = NAN,
                         .age = NAN,
                         .k = -1,
                         .fault_left = NAN}},
        .bond_states = {{1, 2, 3, 4, 5}},
        .port_states = {{0.5, 2, 12}, {-0.25, 0, NAN}},
        .status = {.number = 8,
                   .state = CRDI_LIVE_RUNNING,
                   .time = 0.5,
                   .h = 1e-3,
                   .cycles = 500,
                   .elapsed_ns = 500000000,
                   .speed = 1,
                   .rows = 500,
                   .message = "it \"said\""},
    };
    s->info = (crdi_live_info){.title = "a title",
                               .file = "a.yaml",
                               .stop = INFINITY,
                               .step = 1e-3,
                               .factor = 1,
                               .units = s->units,
                               .unit_count = 2,
                               .signals = s->signals,
                               .signal_count = 3,
                               .settings = s->settings,
                               .setting_count = 1,
                               .links = s->links,
                               .link_count = 2,
                               .bonds = s->bonds,
                               .bond_count = 1,
                               .ports = s->ports,
                               .port_count = 2};
    s->status.units = s->unit_states;
    s->status.links = s->link_states;
    s->status.bonds = s->bond_states;
    s->status.ports = s->port_states;
    crd_pace_report* p = &s->status.pace;
    p->on = true;
    p->factor = 1;
    for (int i = 1; i <= 100; i++) {
        crd_histogram_add(&p->lateness, i * 1000);
        crd_histogram_add(&p->busy, i * 2000);
    }
    p->overruns = 30;
    for (int i = 0; i < 30; i++) {
        p->kept[p->kept_count++] = (crd_overrun_info){i, i * 0.1, 1000, 2000, i % 2, 0};
    }
    snprintf(p->notes[p->note_count++], CRD_PACE_NOTE_BYTES, "no SCHED_FIFO");
}
