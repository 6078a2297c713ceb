// A package on its way to the disk: what write.c, write_route.c, write_values.c and write_yaml.c
// share. Texts live in the arena.
#pragma once
#include "cardan/system.h"
#include "shared/archive.h"
#include "shared/xml.h"

enum { CRDI_PACK_DEPTH = 32 }; // systems inside systems

// A connector of a component.
typedef struct crdi_pack_port {
    crd_ssp_connector look;
    bool typed;   // its type is known
    bool used;    // connected, or a start value is set
    bool element; // of an array that the source lists
} crdi_pack_port;

// What becomes of a unit.
typedef struct crdi_pack_part {
    const char* name;   // with the systems around it: "drive.motor"
    const char* source; // URI relative to the .ssd, "" none
    int element;
    crdi_pack_port* ports;
    int port_count;
    size_t port_capacity;
    crd_map port_map;
    const crd_setting** rest; // start values that SSP has no place for, in order (rest_count)
    int rest_count;
} crdi_pack_part;

// A component or a system; lists go by index, -1 is their end.
typedef struct crdi_pack_element {
    const char* name; // without the systems around it
    const char* path; // with them; "" for the root
    int parent, depth;
    int unit; // -1: a system
    int first, last, next;
    int first_hop, last_hop, first_link, last_link;
} crdi_pack_element;

// A connector of a system that a connection passes.
typedef struct crdi_pack_hop {
    crdi_pack_port port;
    int unit; // whose variable it leads to or from
    const char* variable;
    bool output, plain; // plain: nothing has changed the value so far
    int next;
} crdi_pack_hop;

typedef struct crdi_pack_link {
    const char *start_element, *start, *end_element, *end; // elements NULL: the system itself
    const char *start_indices, *end_indices;               // of an array, NULL: the whole
    crd_transformation change;
    int next;
} crdi_pack_link;

typedef struct crdi_pack_unit {
    const char* name;
    crd_dimension dimension;
} crdi_pack_unit;

// The Units of one file.
typedef struct crdi_pack_units {
    crdi_pack_unit* items;
    int count;
    size_t capacity;
    crd_map map;
} crdi_pack_units;

typedef struct crdi_pack_enumeration {
    const char* name;
    const crd_ssp_item* items;
    int count;
} crdi_pack_enumeration;

typedef struct crdi_pack_writer {
    const crd_system* s;
    crd_context* ctx;
    crd_arena arena;
    const crd_ssp_source* src;
    crd_ssp_options opt;
    const char* path;
    const char* title;
    const char* stem;            // title as a file name
    crdi_pack_part* parts;       // (unit_count)
    crdi_pack_element* elements; // the first is the root system
    int element_count;
    size_t element_capacity;
    crd_map element_map; // paths
    crdi_pack_hop* hops;
    int hop_count;
    size_t hop_capacity;
    crd_map hop_map;
    crdi_pack_link* links;
    int link_count;
    size_t link_capacity;
    crdi_pack_units units;
    crdi_pack_enumeration* enumerations;
    int enumeration_count;
    size_t enumeration_capacity;
    crd_map enumeration_map;
    crdi_archive_writer* zip;
    const char* scratch; // folders of unpacked FMUs are zipped there; NULL: none so far
    crd_map files;       // names of resources in lower case
    crd_text ssd, ssv, yaml;
    crdi_xml_writer values_xml; // into the SSV
    int values;                 // in it
    const char* bad;            // the first text that XML cannot hold
} crdi_pack_writer;

// ---- write.c
// The connector for a variable of a unit; made if the source did not list it. NULL: no memory.
crdi_pack_port* crdi_pack_port_of(crdi_pack_writer* w, int unit, const char* variable, bool output);
crdi_pack_port* crdi_pack_find_port(crdi_pack_part* p, const char* variable); // NULL: none
// Of the connector's unit. SSP has no word for differences: their units have no zero point.
bool crdi_pack_dimension(const crdi_pack_port* p, crd_dimension* out);
// The name under which the unit stands in `units`; NULL: none, as its base units are not known.
crd_status crdi_pack_add_unit(crdi_pack_writer* w, crdi_pack_units* units, const char* name,
                              const crd_dimension* dimension, const char** out);
crd_status crdi_pack_add_port_unit(crdi_pack_writer* w, crdi_pack_units* units,
                                   const crdi_pack_port* p, const char** out);
void crdi_pack_put_units(crdi_xml_writer* x, const char* element, const crdi_pack_units* units);
void crdi_pack_put_sizes(crdi_xml_writer* x, const crd_ssp_connector* c); // of an array
// The root element of an SSD or SSV, with its namespaces, version and name.
void crdi_pack_begin(crdi_pack_writer* w, crdi_xml_writer* x, crd_text* out, const char* element,
                     const char* prefix, const char* space);
// The shortest text of a number, in the arena.
const char* crdi_pack_number_text(crdi_pack_writer* w, double x);
const char* crdi_pack_type_name(const crdi_pack_writer* w, crd_type type); // NULL: none

// ---- write_files.c
// Letters, digits, '.', '_' and '-' of a text; NULL: no memory.
char* crdi_pack_plain_name(crdi_pack_writer* w, const char* text, size_t length);
// "resources/stem.ending", free in the package.
crd_status crdi_pack_resource_name(crdi_pack_writer* w, const char* stem, const char* ending,
                                   const char** out);
// All files of the units into the archive, and the parts' `source`.
crd_status crdi_pack_files(crdi_pack_writer* w);

// ---- write_route.c
// Connections as links and hops of the systems.
crd_status crdi_pack_route(crdi_pack_writer* w);
void crdi_pack_put_link(crdi_xml_writer* x, const crdi_pack_link* l);

// ---- write_values.c
// Start values into w->ssv and the parts' `rest`.
crd_status crdi_pack_values(crdi_pack_writer* w);

// ---- write_yaml.c
// What SSP has no word for into w->yaml.
crd_status crdi_pack_yaml(crdi_pack_writer* w);
