/// What the files about descriptions share.
///
///   description.c makes and destroys descriptions; value references; what they offer
///   load.c        loads descriptions; archives
///   findings.c    what is wrong with a document
///   schema.c      which elements and attributes there are, and the check of a document against it
///   read.c        a document becomes a description, with findings where it is not as it should be
///   rules.c       the rules: their list, and those that can be told from a description alone;
///                 rules_variables.c those about variables
///   write.c       a description becomes a document
///   start.c       start values; variables.c has the values of all variables
#pragma once
#include "shared/dcp.h"
#include "shared/xml.h"

#define CRDI_DCP_MIME "application/octet-stream"

enum {
    CRDI_DCP_MAX_RANK = 8,
    CRDI_DCP_MAX_BYTES = 64 << 20, ///< of a document
};

/// Data of one PDU have room for this much and no more (TCP, the largest).
#define CRDI_DCP_MAX_PAYLOAD (UINT64_C(4294967267) - 5)

// ---- findings ----------------------------------------------------------------------------------

typedef struct crdi_dcp_rule {
    const char* code;
    crd_dcp_severity severity;
    const char* text; ///< what is right
} crdi_dcp_rule;

enum { CRDI_DCP_MAX_RULES = 96 };

/// The rules for a kind of document.
typedef struct crdi_dcp_rules {
    const crdi_dcp_rule* of;
    int count;
    uint32_t same; ///< findings of one rule that are kept; the others are counted
    size_t most;   ///< findings of all; more are not kept
} crdi_dcp_rules;
extern const crdi_dcp_rules crdi_dcpx_rules;

/// Findings that are being collected. Running out of memory is remembered in `failed`.
typedef struct crdi_dcp_findings {
    crd_context* ctx;
    crd_arena* arena; ///< for texts
    const crdi_dcp_rules* rules;
    crd_dcp_finding* items;
    size_t count, capacity;
    uint32_t found[CRDI_DCP_MAX_RULES]; ///< by rule
    int faults;
    bool failed;
} crdi_dcp_findings;

void crdi_dcp_findings_init(crdi_dcp_findings* f, crd_context* ctx, crd_arena* arena,
                            const crdi_dcp_rules* rules);
void crdi_dcp_findings_clear(crdi_dcp_findings* f);
/// Whether another finding of this rule would be kept: else its text need not be made.
bool crdi_dcp_wanted(const crdi_dcp_findings* f, const char* code);
void crdi_dcp_found(crdi_dcp_findings* f, const char* code, int line, const char* format, ...)
    CRD_PRINTF(4, 5);
const crd_dcp_finding* crdi_dcp_first_fault(const crd_dcp_finding* findings, size_t count);
/// By line, in the arena.
crd_status crdi_dcp_findings_finish(crdi_dcp_findings* f, const crd_dcp_finding** out, int* count);

// ---- value references --------------------------------------------------------------------------

typedef struct crdi_dcp_index {
    uint64_t vr;
    int32_t index;
} crdi_dcp_index;

/// Ordered by value reference and then by place; `room` has one for each variable.
void crdi_dcp_sort(const crd_dcp_description* d, crdi_dcp_index* room);
int crdi_dcp_look_up(const crdi_dcp_index* by_vr, int count, uint64_t vr); ///< the first, -1

// ---- reading and checking ----------------------------------------------------------------------

/// Whether all elements and attributes are there, once, in order and known.
void crdi_dcp_check_schema(const crdi_xml_element* root, crdi_dcp_findings* f);
/// CRD_E_FORMAT: the document is no slave description. Everything else is a finding.
crd_status crdi_dcp_read(crd_dcp_description* d, const crdi_xml* xml, crdi_dcp_findings* f);
/// The rules. `*by_vr` (in the arena) is that of all variables.
crd_status crdi_dcp_check(const crd_dcp_description* d, crd_arena* arena, crdi_dcp_findings* f,
                          crdi_dcp_index** by_vr);

// ---- the schema --------------------------------------------------------------------------------

/// What an attribute's value is, in the file and in the struct of its element.
typedef enum crdi_dcpx_kind {
    CRDI_DCPX_OTHER, ///< read and written by hand
    CRDI_DCPX_TEXT,  ///< const char*; "" is not written unless it is mandatory
    CRDI_DCPX_DATE,  ///< const char*, "" unless it is one
    CRDI_DCPX_UUID,  ///< uint8_t[16]
    CRDI_DCPX_WORD,  ///< uint8_t or bool, one of `words`
    CRDI_DCPX_BOOL,
    CRDI_DCPX_WHOLE, ///< unsigned, of `size` bytes
    CRDI_DCPX_I8,
    CRDI_DCPX_REAL,  ///< double; NaN is not written
    CRDI_DCPX_LIMIT, ///< the same, of a crd_dcp_variable: in the spelling of its type
} crdi_dcpx_kind;

typedef struct crdi_dcpx_word {
    const char* text;
    uint8_t value;
} crdi_dcpx_word;

typedef struct crdi_dcpx_attribute {
    const char* name; ///< NULL: end of the list
    bool mandatory;
    uint8_t kind;
    uint16_t offset; ///< in the struct of its element
    uint8_t size;    ///< there
    uint16_t flag;   ///< offset of a bool that says whether it is there, 0: none
    bool sparse;     ///< a number is not written if it is `unless`
    double unless;
    const crdi_dcpx_word* words; ///< up to one without a text
} crdi_dcpx_attribute;

/// Elements whose attributes reader and writer take from the table.
typedef enum crdi_dcpx_element {
    CRDI_DCPX_ROOT,
    CRDI_DCPX_BASE_UNIT,
    CRDI_DCPX_UNIT,
    CRDI_DCPX_DISPLAY_UNIT,
    CRDI_DCPX_INTERVAL,
    CRDI_DCPX_IPV4,
    CRDI_DCPX_CONTROL,
    CRDI_DCPX_PORT_RANGE,
    CRDI_DCPX_PORT,
    CRDI_DCPX_FLAGS,
    CRDI_DCPX_VARIABLE,
    CRDI_DCPX_OUTPUT,
    CRDI_DCPX_INTEGER,
    CRDI_DCPX_FLOAT,
    CRDI_DCPX_STRING,
    CRDI_DCPX_BINARY,
    CRDI_DCPX_DEPENDENCY,
    CRDI_DCPX_CATEGORY,
    CRDI_DCPX_TEMPLATE,
    CRDI_DCPX_TABLED, // how many
} crdi_dcpx_element;
const crdi_dcpx_attribute* crdi_dcpx_attributes(crdi_dcpx_element element);
crdi_dcpx_element crdi_dcpx_type_element(uint8_t data_type); ///< INTEGER, FLOAT, STRING, BINARY

// ---- pieces ------------------------------------------------------------------------------------

/// "Uint8" ... by crd_dcp_data_type.
extern const char* const crdi_dcp_type_elements[CRD_DCP_DATA_TYPE_COUNT];
/// Without white space at its ends.
const char* crdi_dcp_trim(const char* text, size_t* length);
/// The next word of a list separated by white space; NULL at the end.
const char* crdi_dcp_word(const char** text, size_t* length);
bool crdi_dcp_is_date(const char* text); ///< 2026-01-31T12:00:00Z, as xs:dateTime

typedef enum crdi_dcp_piece {
    CRDI_DCP_END,
    CRDI_DCP_ARGUMENT,
    CRDI_DCP_LONE, ///< a % that is neither a placeholder nor doubled
} crdi_dcp_piece;
void crdi_dcp_put_uuid(crdi_xml_writer* w, const char* name, const uint8_t uuid[16]);
/// The next placeholder of a log message; `*at` is behind it afterwards.
crdi_dcp_piece crdi_dcp_placeholder(const char** at, uint8_t* type);
/// The arguments of a template are those of its message. CRD_E_MEMORY.
crd_status crdi_dcp_read_arguments(crd_arena* arena, crd_dcp_log_template* t);
