/// XML of SSP and DCP descriptions: from strangers as a tree, and written.
///
/// Names are resolved to namespace URIs, whatever prefixes the file uses. Any DOCTYPE is refused,
/// depth, number of elements and size are bounded. Big files that are read once (modelDescription)
/// have parsers of their own.
#pragma once
#include "shared/base.h"

typedef struct crdi_xml_attribute {
    const char* space; ///< namespace URI, "" for plain attributes
    const char* name;  ///< local name
    const char* value;
} crdi_xml_attribute;

typedef struct crdi_xml_element {
    const char* space; ///< namespace URI, "" none
    const char* name;  ///< local name
    const crdi_xml_attribute* attributes;
    int attribute_count;
    const struct crdi_xml_element *parent, *first, *next; ///< first child, next sibling; NULL
    const char* text; ///< character data directly inside, joined; "" none but white space
    int line;
    size_t begin, end; ///< bytes of the source, from '<' to behind the last '>'
} crdi_xml_element;

typedef struct crdi_xml {
    crd_arena arena;
    const char* file;   ///< for messages
    const char* source; ///< a copy of the text, zero behind it
    size_t length;
    const crdi_xml_element* root;
} crdi_xml;

/// CRD_E_FORMAT with "file:line: ...": not well-formed, a DOCTYPE, too deep or too large.
crd_status crdi_xml_parse(crd_context* ctx, const char* text, size_t length, const char* file,
                          crdi_xml** out);
void crdi_xml_destroy(crdi_xml* x);

/// What a prefix stands for where a file forgets to declare it.
typedef struct crdi_xml_prefix {
    const char *prefix, *space;
} crdi_xml_prefix;
/// As above, but prefixes that are declared nowhere are forgiven with a warning: those in `known`
/// stand for their spaces, others for one that nothing is in. Latin-1 is read if it is declared.
crd_status crdi_xml_parse_lenient(crd_context* ctx, const char* text, size_t length,
                                  const char* file, const crdi_xml_prefix* known, int count,
                                  crdi_xml** out);

/// The plain attribute of this name, NULL if absent.
const char* crdi_xml_get(const crdi_xml_element* e, const char* name);
/// The first child of this name, NULL. And the next sibling of the same name as `e`.
const crdi_xml_element* crdi_xml_child(const crdi_xml_element* e, const char* space,
                                       const char* name);
const crdi_xml_element* crdi_xml_same(const crdi_xml_element* e);
bool crdi_xml_is(const crdi_xml_element* e, const char* space, const char* name);

/// The element as a document of its own: the text of the source with the namespaces that it
/// inherits declared on it. Appended to `out`.
void crdi_xml_copy(const crdi_xml* x, const crdi_xml_element* e, crd_text* out);

// ---- writing -----------------------------------------------------------------------------------

enum { CRDI_XML_WRITE_DEPTH = 128 }; ///< of elements; beyond `out` has failed

/// A document: begin, attributes, what is inside, end. Elements stand in lines of their own,
/// indented; those without anything inside become <a/>. Names of elements live until their end.
typedef struct crdi_xml_writer {
    crd_text* out;
    const char* bad; ///< the first text that XML cannot hold; NULL
    int depth;
    int inline_at; ///< from this depth on everything is in one line; 0: nothing is
    bool tag_open; ///< attributes may follow
    const char* names[CRDI_XML_WRITE_DEPTH][2];
} crdi_xml_writer;

void crdi_xml_writer_init(crdi_xml_writer* w, crd_text* out); ///< with the XML declaration
void crdi_xml_begin(crdi_xml_writer* w, const char* name);
void crdi_xml_begin_in(crdi_xml_writer* w, const char* prefix,
                       const char* name); ///< "ssc:", "Unit"
void crdi_xml_inline(crdi_xml_writer* w); ///< what is inside of the element that was begun
void crdi_xml_end(crdi_xml_writer* w);
/// XML that is there already, in a line of its own.
void crdi_xml_line(crdi_xml_writer* w, const char* xml);
void crdi_xml_content(crdi_xml_writer* w, const char* text); ///< character data
/// Attributes, of the element that was begun. NULL is "".
void crdi_xml_put(crdi_xml_writer* w, const char* name, const char* value);
void crdi_xml_put_if(crdi_xml_writer* w, const char* name,
                     const char* value); ///< neither NULL nor ""
void crdi_xml_put_int(crdi_xml_writer* w, const char* name, int64_t value);
void crdi_xml_put_whole(crdi_xml_writer* w, const char* name, uint64_t value);
void crdi_xml_put_bool(crdi_xml_writer* w, const char* name, bool value);
void crdi_xml_put_real(crdi_xml_writer* w, const char* name, double value); ///< finite
