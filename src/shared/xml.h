/// XML from strangers as a tree: SSP and DCP descriptions.
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
