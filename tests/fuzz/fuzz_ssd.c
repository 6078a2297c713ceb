// Any bytes as a system structure description: parser, schema, and what becomes of the system.
// modules: ssp system archive xml base
#include "cardan/system.h"
#include "fuzz.h"
#include "ssp/read.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = NULL;
    if (ctx && crd_system_create(ctx, &s) == CRD_OK &&
        crdi_ssp_read_text(s, (const char*)data, size, "folder/t.ssd") == CRD_OK) {
        for (int i = 0; i < s->connection_count; i++) { // ends that exist
            const crd_connection_spec* c = &s->connections[i];
            if (c->from_unit < 0 || c->from_unit >= s->unit_count || c->to_unit < 0 ||
                c->to_unit >= s->unit_count || !c->from[0] || !c->to[0]) {
                __builtin_trap();
            }
        }
        for (int i = 0; i < s->note_count; i++) { // documents of their own
            crdi_xml* x = NULL;
            const char* xml = s->notes[i].xml;
            if (crdi_xml_parse(ctx, xml, strlen(xml), "note", &x) < 0 ||
                !crdi_xml_is(x->root, CRDI_SSC, "Annotation")) {
                __builtin_trap();
            }
            crdi_xml_destroy(x);
        }
    }
    crd_system_destroy(s);
    crd_context_destroy(ctx);
    return 0;
}
