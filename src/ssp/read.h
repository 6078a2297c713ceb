/// What the files of the reader share.
///
///   schema.c      which elements and attributes there are, as one table, and the check against it
///   package.c     folders, archives, variants; what a source URI means; documents
///   values.c      units, transformations, parameter sets and mappings of a document
///   tree.c        documents become one tree of systems, components and their connectors
///   connect.c     connections of all levels become connections of units
///   parameters.c  bindings of all levels become settings of units, in order of precedence
///   read.c        all of it in order, annotations
///   apply.c       a parameter set for a system that is there already
///   info.c        what is in a package, without reading it into a system
///   list.c        what is in a parameter set or a mapping
#pragma once
#include "cardan/system.h"
#include "shared/archive.h"
#include "shared/xml.h"

#define CRDI_SSD "http://ssp-standard.org/SSP1/SystemStructureDescription"
#define CRDI_SSC "http://ssp-standard.org/SSP1/SystemStructureCommon"
#define CRDI_SSV "http://ssp-standard.org/SSP1/SystemStructureParameterValues"
#define CRDI_SSM "http://ssp-standard.org/SSP1/SystemStructureParameterMapping"
#define CRDI_SSB "http://ssp-standard.org/SSP1/SystemStructureSignalDictionary"

#define CRDI_TYPE_FMU "application/x-fmu-sharedlibrary"
#define CRDI_TYPE_SSD "application/x-ssp-definition"
#define CRDI_TYPE_SSP "application/x-ssp-package"
#define CRDI_TYPE_SSV "application/x-ssp-parameter-set"
#define CRDI_TYPE_SSM "application/x-ssp-parameter-mapping"
#define CRDI_TYPE_SSB "application/x-ssp-signal-dictionary"
#define CRDI_TYPE_SIGNAL "application/x-cardan-signal"
#define CRDI_TYPE_REPLAY "application/x-cardan-replay"
#define CRDI_TYPE_TABLE "application/table" ///< OMSimulator's: a recording

enum {
    CRDI_SSP_MAX_DEPTH = 64,      ///< systems inside systems
    CRDI_SSP_MAX_NAME = 1000,     ///< bytes of a name with the systems around it
    CRDI_SSP_MAX_THINGS = 1 << 20 ///< elements, connectors, settings: each that many in all
};

// ---- schema.c ----------------------------------------------------------------------------------

typedef enum crdi_ssp_root {
    CRDI_ROOT_SSD,
    CRDI_ROOT_SSV,
    CRDI_ROOT_SSM,
    CRDI_ROOT_SSB,
} crdi_ssp_root;

/// The first problem is the failure, CRD_E_FORMAT; all others are logged as errors.
crd_status crdi_ssp_check(crd_context* ctx, const crdi_xml* xml, crdi_ssp_root root);

// ---- the tree ----------------------------------------------------------------------------------

/// Names of a Units element. Dimensions belong to the system.
typedef struct crdi_ssp_units {
    crd_map names;
    crd_dimension* dimensions;
    struct crdi_ssp_units* next; ///< of all, to be cleared
} crdi_ssp_units;

typedef struct crdi_document {
    crdi_xml* xml;
    const char* path;   ///< on the disk; "" if it came from memory
    const char* folder; ///< where relative sources begin, with final slash or ""
    const char* shown;  ///< in messages, in memory of the system
    const char* shown_folder;
    const char* root; ///< the package that sources may not leave, NULL: a file on its own
    const crdi_ssp_units* units;
    crd_map ids; ///< of System elements -> number in `systems`
    const crdi_xml_element** systems;
    struct crdi_document* next;
} crdi_document;

typedef enum crdi_connector_kind {
    CRDI_KIND_INPUT,
    CRDI_KIND_OUTPUT,
    CRDI_KIND_PARAMETER,
    CRDI_KIND_CALCULATED,
    CRDI_KIND_STRUCTURAL,
    CRDI_KIND_CONSTANT,
    CRDI_KIND_LOCAL,
    CRDI_KIND_INOUT,
    CRDI_KIND_UNSPECIFIED,
    CRDI_KIND_COUNT
} crdi_connector_kind;

/// A connector, an element of an array connector, or an entry of a signal dictionary.
typedef struct crdi_connector {
    const char* name;
    crdi_connector_kind kind;
    struct crdi_ssp_element* owner; ///< NULL: an entry of a dictionary
    int line;
    const char* unit; ///< "" unless it is said and known
    const crd_dimension* dimension;
    struct crdi_connector* entry; ///< of a dictionary, for which this one stands; NULL
    // who drives it, by connect.c
    struct crdi_connector* from;
    const crdi_xml_element* by; ///< the Connection
    const crdi_document* by_document;
    // elements of arrays, by connect.c
    struct crdi_connector *whole, *parts, *next_part;
    const char* index;                     ///< "[2]", "" the whole
    struct crdi_given *given, *last_given; ///< values from bindings, by parameters.c
} crdi_connector;

typedef struct crdi_dictionary {
    const char* name;
    crdi_connector* entries;
    int entry_count;
    crd_map map;
    struct crdi_dictionary* next; ///< of the same system
    struct crdi_dictionary* next_of_all;
} crdi_dictionary;

typedef enum crdi_element_kind {
    CRDI_ELEMENT_SYSTEM,
    CRDI_ELEMENT_UNIT,       ///< an FMU or a recording
    CRDI_ELEMENT_LATER,      ///< a unit that our annotation brings
    CRDI_ELEMENT_DICTIONARY, ///< SignalDictionaryReference
    CRDI_ELEMENT_EMPTY,      ///< a component without a source
} crdi_element_kind;

typedef struct crdi_ssp_element {
    crdi_element_kind kind;
    const char* name;
    const char* full; ///< with the systems around it, without the outermost
    struct crdi_ssp_element* parent;
    crdi_document* document;
    const crdi_xml_element* xml;
    crdi_document* outer_document; ///< of `outer`
    const crdi_xml_element* outer; ///< the Component that names the file of this system, NULL
    crdi_connector* connectors;
    int connector_count;
    crd_map connector_map;
    crd_map child_map; ///< name -> number in `children`
    struct crdi_ssp_element** children;
    int child_count;
    crdi_dictionary* dictionaries;
    int depth;              ///< 0: the outermost system
    int unit;               ///< index in the system
    crd_unit_source source; ///< CRDI_ELEMENT_UNIT
    crd_interface interface;
    const char* path;  ///< what it was made from, on the disk; "" nothing
    const char* shown; ///< the same for messages
    struct crdi_ssp_element* next_of_all;
} crdi_ssp_element;

/// A package on the disk: an archive and where it was unpacked.
typedef struct crdi_package {
    const char *archive, *folder;
    struct crdi_package* next;
} crdi_package;

typedef struct crdi_ssp_reader {
    crd_context* ctx;
    crd_system* s;
    crd_arena arena; ///< gone after reading
    crdi_document* documents;
    crdi_ssp_units* units;
    crdi_package* packages;
    int package_count;
    uint64_t unpacked, unpacked_limit;
    crdi_ssp_element *elements, *last_element; ///< all, parents before children
    int element_count, connector_count;
    crdi_dictionary* dictionaries;
    int dictionary_count;
    crdi_ssp_element* root;
    crdi_connector** driven; ///< in order of the Connection elements
    size_t driven_count, driven_capacity;
    struct crdi_entry* entries; ///< settings of units
    size_t entry_count, entry_capacity;
    int given_count;
    size_t spent;        ///< bytes of values and tables, see crdi_ssp_spend
    int own_connections; ///< of the system before our annotation added some
    bool no_files;       ///< nothing is looked up on the disk: a document from memory
} crdi_ssp_reader;

/// "file:line" in front of a sentence.
crd_status crdi_ssp_bad(crdi_ssp_reader* r, crd_status st, const crdi_document* d,
                        const crdi_xml_element* e, const char* format, ...) CRD_PRINTF(5, 6);

/// What a small file could multiply (values, maps, units that are read once more for every instance
/// of a system) is counted: CRD_E_FORMAT beyond 256 MB.
crd_status crdi_ssp_spend(crdi_ssp_reader* r, size_t bytes);

// ---- package.c ---------------------------------------------------------------------------------

/// `path` as the user gave it, or a nested package: where its SSD is. `*root` NULL: no package.
/// `shown`: how messages call the SSD.
typedef struct crdi_ssp_place {
    const char *path, *root, *shown;
} crdi_ssp_place;

crd_status crdi_ssp_locate(crdi_ssp_reader* r, const char* path, const char* shown,
                           const char* variant, crdi_ssp_place* out);

typedef struct crdi_ssp_uri {
    const char* path;     ///< on the disk; "" the document itself
    const char* shown;    ///< in messages
    const char* fragment; ///< behind '#', "" none
} crdi_ssp_uri;

/// CRD_E_UNSUPPORTED for schemes other than file, CRD_E_FORMAT for sources that leave the package.
crd_status crdi_ssp_resolve(crdi_ssp_reader* r, const crdi_document* d, const crdi_xml_element* e,
                            const char* source, crdi_ssp_uri* out);
/// The file has to be there; `what` names who wants it: "component 'a'".
crd_status crdi_ssp_need(crdi_ssp_reader* r, const crdi_document* d, const crdi_xml_element* e,
                         const char* what, const crdi_ssp_uri* uri);
/// Parsed and checked once per path.
crd_status crdi_ssp_open(crdi_ssp_reader* r, const char* path, const char* shown, const char* root,
                         crdi_ssp_root kind, crdi_document** out);
/// A file inside of an FMU. CRD_E_NOT_FOUND
crd_status crdi_ssp_open_inside(crdi_ssp_reader* r, const char* archive, const char* entry,
                                const char* shown, crdi_ssp_root kind, crdi_document** out);
crd_status crdi_ssp_add_text(crdi_ssp_reader* r, const char* text, size_t length, const char* path,
                             const char* shown, const char* root, crdi_ssp_root kind,
                             crdi_document** out);

/// The names of the .ssd files at the root of a package, sorted, SystemStructure.ssd first.
typedef struct crdi_names {
    const char** items;
    int count;
    size_t capacity;
} crdi_names;
/// The one that `variant` (may be NULL) means; CRD_E_NOT_FOUND lists those there are.
crd_status crdi_ssp_choose(crd_context* ctx, const char* package, const crdi_names* names,
                           const char* variant, const char** out);
void crdi_ssp_sort(crdi_names* names);
crd_status crdi_ssp_add_name(crd_arena* a, crdi_names* names, const char* name);
crd_status crdi_ssp_read_file(crd_context* ctx, const char* path, const char* shown, crd_text* out);
bool crdi_ssp_is_folder(const char* path);
extern const crdi_archive_limits crdi_ssp_limits;
/// A step for a unit that wants `hint`: a whole number of the common ones, if there is one (not
/// NaN).
double crdi_ssp_multiple(double base, double hint);
/// Title and files of the system, where it has none yet.
crd_status crdi_ssp_names(crdi_ssp_reader* r, const char* title, const char* path);
/// An OspSystemStructure.xml, or a folder with one and no SystemStructure.ssd; `file` is where it
/// is.
bool crdi_osp_find(const char* path, char file[]);
crd_status crdi_osp_read(crd_system* s, const char* path);
/// With the prefixes of SSP, where a file forgets to declare them.
crd_status crdi_ssp_parse_xml(crd_context* ctx, const char* text, size_t length, const char* file,
                              crdi_xml** out);

// ---- values.c ----------------------------------------------------------------------------------

const char* crdi_ssp_keep(crdi_ssp_reader* r, const char* text); ///< in the system; NULL: memory
crd_status crdi_ssp_read_units(crdi_ssp_reader* r, const crdi_xml_element* root,
                               const crdi_ssp_units** out);
/// Known by the list, else by its name: then `*dimension` is NULL. "" if it is not known.
crd_status crdi_ssp_find_unit(crdi_ssp_reader* r, const crdi_ssp_units* units, const char* name,
                              const char** unit, const crd_dimension** dimension);
/// The transformation that stands in `e`, which may be none; suppressUnitConversion of `e`.
crd_status crdi_ssp_transformation(crdi_ssp_reader* r, const crdi_xml_element* e,
                                   crd_transformation* out);

/// One Parameter. The texts of its elements, one of a scalar.
typedef struct crdi_ssp_value {
    const char* name; ///< with the prefix of the binding
    const char* type; ///< name of the element: "Real"
    const char** items;
    int count;
    const char* unit; ///< may be one that is not known
    const crd_dimension* dimension;
    crd_place place;
} crdi_ssp_value;

crd_status crdi_ssp_read_set(crdi_ssp_reader* r, const crdi_document* d,
                             const crdi_xml_element* set, const char* prefix, crdi_ssp_value** out,
                             int* count);
/// The elements as one text of a crd_setting.
const char* crdi_ssp_join(crdi_ssp_reader* r, const crdi_ssp_value* v);
/// One stage on the way of a value: into a unit ("" stays), then the transformation.
crd_status crdi_ssp_convert(crdi_ssp_reader* r, crdi_ssp_value* v, const crd_transformation* t);
bool crdi_ssp_is_real(const char* type);
/// Both ways a unit is known.
bool crdi_ssp_dimension(const char* unit, const crd_dimension* given, crd_dimension* out);

// ---- tree.c, connect.c, parameters.c -----------------------------------------------------------

crd_status crdi_ssp_build(crdi_ssp_reader* r, crdi_document* d);
void crdi_ssp_clear_tree(crdi_ssp_reader* r);

crd_status crdi_ssp_connect(crdi_ssp_reader* r); ///< fills `from` of all connectors
/// Connections whose units are there; `later`: those that had to wait for our annotation.
crd_status crdi_ssp_add_connections(crdi_ssp_reader* r, bool later);
/// One step back from a connector towards its source: the connector that drives it, NULL. An
/// element of an array follows the whole.
crdi_connector* crdi_ssp_driver(const crdi_connector* c, const crdi_xml_element** by,
                                const crdi_document** document);

/// A value for a connector of a system, with the transformation of its mapping.
typedef struct crdi_given {
    const crdi_ssp_value* value;
    crd_transformation mapping;
    int depth, order;
    bool used;
    struct crdi_given* next;
} crdi_given;

/// One setting of a unit before it is sorted.
typedef struct crdi_entry {
    int unit, depth, distance, order;
    crd_setting setting;
} crdi_entry;

crd_status crdi_ssp_bind(crdi_ssp_reader* r); ///< fills `entries`, sorted, and ports of the system
/// Values for names of `self`: settings of units, or `given` of its connectors. `mapping` may be
/// NULL, `d` is its document.
crd_status crdi_ssp_assign(crdi_ssp_reader* r, crdi_ssp_element* self, const crdi_ssp_value* values,
                           int count, const crdi_document* d, const crdi_xml_element* mapping);
/// All values of a connector to the variable of a unit.
crd_status crdi_ssp_pass_down(crdi_ssp_reader* r, const crd_port* port, crdi_given* given);
void crdi_ssp_sort_entries(crdi_ssp_reader* r); ///< says as well what reached nothing
/// The settings of one unit out of sorted entries, in the system behind `count` that are there;
/// `*at` moves on. NULL: memory
const crd_setting* crdi_ssp_take_settings(crdi_ssp_reader* r, int unit, size_t* at,
                                          const crd_setting* before, int* count);

void crdi_ssp_clear(crdi_ssp_reader* r); ///< everything but the system
/// A document from memory, no files: for tests and fuzzing.
crd_status crdi_ssp_read_text(crd_system* s, const char* text, size_t length, const char* shown);
