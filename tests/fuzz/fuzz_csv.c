// Any bytes as a CSV file: read, looked at, compared with itself.
#include "cardan/results.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void look_at(const crd_table* t)
{
    volatile double sum = 0;
    for (int i = 0; i < t->column_count; i++) {
        const crd_table_column* c = &t->columns[i];
        sum = sum + (double)strlen(c->name) + (double)strlen(c->unit);
        if (crd_table_find(t, c->name) != i) { abort(); }
        for (int64_t k = 0; k < t->rows; k++) {
            sum = sum + c->values[k] + (c->texts ? (double)strlen(c->texts[k]) : 0);
        }
        int64_t hint = 0;
        sum = sum + crd_table_value(t, i, 0.5, true, &hint);
    }
    for (int64_t k = 1; k < t->rows; k++) {
        if (!(t->time[k - 1] <= t->time[k])) { abort(); }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_table* t = NULL;
    if (crd_table_parse(ctx, (const char*)data, size, "fuzz.csv", &t) == CRD_OK) {
        look_at(t);
        crd_comparison* c = NULL;
        const crd_compare_options exact = {.relative = 0, .absolute = 0};
        if (crd_compare(ctx, t, t, &exact, &c) == CRD_OK) {
            if (c->different_count) { abort(); } // everything equals itself
            crd_comparison_destroy(c);
        }
        crd_table_destroy(t);
    } else if (!crd_error_text(ctx)[0]) {
        abort(); // refused without a word
    }
    crd_context_destroy(ctx);
    return 0;
}
