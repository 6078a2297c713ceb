// A recording of any format: described, walked through, read into a table, compared with itself.
#pragma once
#include "cardan/results.h"
#include "fuzz.h"
#include "shared/base.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 20000, MOST_VALUES = 200000 };

static volatile double sum;

static void look_at(const crd_recording_info* info)
{
    sum = (double)(strlen(info->format) + strlen(info->program) + strlen(info->comment));
    int next = 0;
    for (int i = 0; i < info->group_count; i++) {
        const crd_group_info* g = &info->groups[i];
        if (g->first_signal != next || g->rows < 0) { abort(); }
        next += g->signal_count;
        sum = sum + (double)strlen(g->name);
    }
    if (next != info->signal_count) { abort(); }
    for (int i = 0; i < info->signal_count; i++) {
        const crd_signal_info* s = &info->signals[i];
        sum = sum + (double)(strlen(s->name) + strlen(s->unit) + strlen(s->description));
        for (int k = 0; k < s->label_count; k++) {
            sum = sum + (double)strlen(s->labels[k].text);
        }
    }
    for (int i = 0; i < info->event_count; i++) {
        sum = sum + info->events[i].time + (double)strlen(info->events[i].text);
    }
}

static void walk(crd_context* ctx, crd_recording* r, int group)
{
    const crd_group_info* g = &crd_recording_describe(r)->groups[group];
    int* signals = calloc((size_t)g->signal_count + 1, sizeof *signals);
    for (int i = 0; i < g->signal_count; i++) {
        signals[i] = g->first_signal + i;
    }
    crd_cursor* c = NULL;
    crd_status st = crd_cursor_open(r, group, signals, g->signal_count, &c);
    int64_t rows = 0;
    while (st == CRD_OK && rows < MOST_ROWS) {
        crd_block b;
        st = crd_cursor_next(c, &b);
        if (st < 0 || b.rows == 0) { break; }
        if (b.first != rows || b.rows > g->rows - rows) { abort(); }
        rows += b.rows;
        for (int64_t k = 1; k < b.rows; k++) {
            if (!(b.time[k - 1] <= b.time[k])) { abort(); }
        }
        for (int i = 0; i < g->signal_count; i++) {
            sum = sum + b.values[i][0] + b.values[i][b.rows - 1];
            for (int64_t k = 0; b.texts[i] && k < b.rows; k++) {
                sum = sum + (double)strlen(b.texts[i][k]);
            }
        }
    }
    if (st < 0 && !crd_error_text(ctx)[0]) { abort(); }
    crd_cursor_close(c);
    free(signals);
}

static void look_inside(crd_context* ctx, crd_recording* r, const char* path)
{
    const crd_recording_info* info = crd_recording_describe(r);
    look_at(info);
    double values = 0;
    for (int i = 0; i < info->group_count; i++) {
        walk(ctx, r, i);
        values += (double)info->groups[i].rows * (1 + info->groups[i].signal_count);
    }
    for (int i = 0; i < info->attachment_count; i++) {
        char* data = NULL;
        size_t length = 0;
        if (crd_recording_attachment(r, i, &data, &length) == CRD_OK) {
            if (data[length]) { abort(); }
            crd_free(ctx, data);
        }
    }
    crd_table* t = NULL;
    if (values > MOST_VALUES || crd_table_read(ctx, path, &t) < 0) { return; }
    crd_comparison* c = NULL;
    const crd_compare_options exact = {.relative = 0, .absolute = 0};
    if (crd_compare(ctx, t, t, &exact, &c) == CRD_OK) {
        if (c->different_count) { abort(); } // everything equals itself
        crd_comparison_destroy(c);
    }
    crd_table_destroy(t);
}
