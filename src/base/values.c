#include "shared/base_values.h"

void crdi_json_put_values(crdi_json_writer* w, const crdi_value* v)
{
    for (; v->kind != CRDI_VALUE_END; v++) {
        if (v->kind == CRDI_VALUE_NULL) {
            crdi_json_put_null(w, v->key);
        } else if (v->kind == CRDI_VALUE_BOOL) {
            crdi_json_put_bool(w, v->key, v->truth);
        } else if (v->kind == CRDI_VALUE_INT) {
            crdi_json_put_integer(w, v->key, v->integer);
        } else if (v->kind == CRDI_VALUE_REAL) {
            crdi_json_put_number(w, v->key, v->real);
        } else if (v->kind == CRDI_VALUE_TEXT) {
            crdi_json_put_text(w, v->key, v->text);
        }
    }
}

void crdi_json_put_texts(crdi_json_writer* w, const char* key, const char* const* items, int count)
{
    crdi_json_begin_list(w, key);
    for (int i = 0; i < count; i++) {
        crdi_json_put_text(w, NULL, items[i]);
    }
    crdi_json_end(w);
}

bool crdi_json_begin_object_if(crdi_json_writer* w, const char* key, bool there)
{
    if (there) {
        crdi_json_begin_object(w, key);
    } else {
        crdi_json_put_null(w, key);
    }
    return there;
}
