/// System Structure and Parameterization, 1.0 and 2.0: packages read into a system, and written.
///
/// Nested systems become flat: the component `motor` of the subsystem `drive` is the unit
/// "drive.motor", and connections through connectors of systems become connections of units with
/// all transformations on the way. Parameters arrive as settings in order of rising precedence.
#pragma once
#include "cardan/base.h"
#include "cardan/model.h"
#include "cardan/system.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Fills a system that is empty. `path`: an .ssp, an .ssd, or the folder of an unpacked package.
/// `variant`: another .ssd at the root of the package, with or without its ending; NULL:
/// SystemStructure.ssd. An archive is unpacked into a private folder that goes with the system.
/// Run options come from DefaultExperiment and our annotation. CRD_E_FORMAT with "file:line: ..."
/// for what the schema forbids (of all such places the first; the others go to the log as errors);
/// CRD_E_NOT_FOUND for missing files and variants; CRD_E_RANGE for connections that cannot be;
/// CRD_E_UNSUPPORTED for types of components that Cardan cannot run. Indices of array connectors
/// (2.0) count from 1. A crd_system_base.
CRD_API crd_status crd_ssp_read(crd_system* s, const char* path, const char* variant,
                                crd_place place);
/// A new system from it.
CRD_API crd_status crd_ssp_load(crd_context* ctx, const char* path, const char* variant,
                                crd_system** out);

/// A parameter set (.ssv) for a system that is there, however it was made: its values win over all
/// before. `ssm`: a mapping, NULL: none. Names are those at the outermost level: unit.variable,
/// connectors of the outermost system of an SSP, and plain variables in a `single` system. Names
/// that fit nothing are noted in the log; whether values fit their variables is seen when the
/// system is run. CRD_E_NOT_FOUND, CRD_E_FORMAT with "file:line: ...". After a failure the system
/// is as before.
CRD_API crd_status crd_ssp_apply(crd_system* s, const char* ssv, const char* ssm);

typedef enum crd_ssp_kind { CRD_SSP_SSD, CRD_SSP_SSV, CRD_SSP_SSM } crd_ssp_kind;

/// What is in a package or .ssd, for listings.
typedef struct crd_ssp_component {
    const char *name, *type, *source, *implementation; ///< name with the systems around it
    int connectors, depth;
    bool system; ///< a nested system, not a component
} crd_ssp_component;

typedef struct crd_ssp_info {
    const char *path, *version, *name, *tool, *author, *date, *description, *license;
    const char* const* variants; ///< .ssd files at the root; the first is the one described
    int variant_count;
    const char* const* resources; ///< all other files of the package
    int resource_count;
    const crd_ssp_component* components;
    int component_count;
    int connections, parameter_bindings;
    const char* const* annotations; ///< types
    int annotation_count;
    bool has_start, has_stop;
    double start, stop;
    crd_arena arena;
} crd_ssp_info;

CRD_API crd_status crd_ssp_describe(crd_context* ctx, const char* path, const char* variant,
                                    crd_ssp_info** out);
CRD_API void crd_ssp_info_destroy(crd_ssp_info* i);

/// What is in a parameter set (.ssv) or a mapping (.ssm), for listings.
typedef struct crd_ssp_parameter {
    const char* name;   ///< of a mapping: the target
    const char* type;   ///< "Real"; "" of a mapping
    const char* value;  ///< elements of arrays with blanks between them; of a mapping: the source
    const char* unit;   ///< "" none
    const char* change; ///< of a mapping: "2 x + 1", "1 -> 2, 3 -> 4"; "" none
} crd_ssp_parameter;

typedef struct crd_ssp_parameters {
    const char *path, *version, *name, *description; ///< a mapping has no name: ""
    bool mapping;
    const crd_ssp_parameter* items; ///< in order of the file
    int count;
    crd_system* owner; ///< of the memory
} crd_ssp_parameters;

/// `kind`: CRD_SSP_SSV or CRD_SSP_SSM.
CRD_API crd_status crd_ssp_list(crd_context* ctx, crd_ssp_kind kind, const char* path,
                                crd_ssp_parameters** out);
CRD_API void crd_ssp_parameters_destroy(crd_ssp_parameters* p);

/// One document from memory: parser and schema checks alone, as the fuzz targets use them.
CRD_API crd_status crd_ssp_parse(crd_context* ctx, crd_ssp_kind kind, const char* text,
                                 size_t length, const char* name_in_messages);

/// What a unit's variables are, for the connectors of the package. The caller knows FMI, this
/// module does not.
typedef struct crd_ssp_connector {
    const char* name;
    const char* unit; ///< "" none
    crd_type type;
    crd_causality causality;
    const char* enumeration; ///< name of its type, "" none
    bool has_dimension;
    bool relative;                    ///< a difference: zero points of units do not count
    crd_dimension dimension;          ///< of `unit`
    const struct crd_ssp_item* items; ///< of the enumeration; none: written as an integer
    int item_count;
    const uint64_t* sizes; ///< of an array, one per dimension
    int rank;              ///< 0: a scalar
} crd_ssp_connector;

typedef struct crd_ssp_item {
    const char* name;
    int64_t value;
} crd_ssp_item;

typedef struct crd_ssp_source {
    void* user;
    /// All inputs, outputs and parameters of unit `unit`, other variables as well: these only say
    /// of what type a start value is. The array lives until the next call.
    crd_status (*connectors)(void* user, int unit, const crd_ssp_connector** out, int* count);
} crd_ssp_source;

typedef struct crd_ssp_options {
    int version;        ///< 1 or 2; default 1, which all tools read
    const char* author; ///< NULL: none
    bool only_used;     ///< connectors only for what is connected or set; default false
} crd_ssp_options;

/// Writes the system as a package: SystemStructure.ssd, the FMUs under resources/, parameters as
/// an SSV, run options and what SSP has no word for in our annotation, kept annotations as they
/// were. Units that are not FMUs become components of a type of their own, which only Cardan runs:
/// said in a warning.
CRD_API crd_status crd_ssp_write(const crd_system* s, const char* path, const crd_ssp_source* src,
                                 const crd_ssp_options* opt);

/// Our annotation stands in the SystemStructureDescription of the variant and holds what a YAML
/// with `system:` would add (see crd_system_amend), as text:
///     <ssc:Annotation type="org.cardan"><yaml xmlns="urn:org.cardan">run: { step: 1 ms }
///     </yaml></ssc:Annotation>
#define CRD_SSP_ANNOTATION "org.cardan"
#define CRD_SSP_SPACE "urn:org.cardan"

/// Types of components that are no FMUs: `units:` in the annotation says what they are.
#define CRD_SSP_SIGNAL "application/x-cardan-signal"
#define CRD_SSP_REPLAY "application/x-cardan-replay"

#ifdef __cplusplus
}
#endif
