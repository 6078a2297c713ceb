/// What the files about descriptions share.
///
///   description.c makes and destroys descriptions; value references
///   dcpx.c        loads descriptions; archives; findings
///   dcpx_schema.c which elements and attributes there are, and the check of a document against it
///   dcpx_read.c   a document becomes a description, with findings where it is not as it should be
///   dcpx_rules.c  the rules: their list, and those that can be told from a description alone
///   dcpx_write.c  a description becomes a document
#pragma once
#include "cardan/dcp.h"
#include "shared/base.h"
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

enum {
    CRDI_DCP_MAX_RULES = 96,
    CRDI_DCP_SAME = 20, ///< findings of one rule that are kept; the others are counted
};

const crdi_dcp_rule* crdi_dcp_rules(int* count);

/// Findings that are being collected. Running out of memory is remembered in `failed`.
typedef struct crdi_dcp_findings {
    crd_context* ctx;
    crd_arena* arena; ///< for texts
    crd_dcp_finding* items;
    size_t count, capacity;
    uint32_t found[CRDI_DCP_MAX_RULES]; ///< by rule
    int faults;
    bool failed;
} crdi_dcp_findings;

void crdi_dcp_findings_init(crdi_dcp_findings* f, crd_context* ctx, crd_arena* arena);
void crdi_dcp_findings_clear(crdi_dcp_findings* f);
/// Whether another finding of this rule would be kept: else its text need not be made.
bool crdi_dcp_wanted(const crdi_dcp_findings* f, const char* code);
void crdi_dcp_found(crdi_dcp_findings* f, const char* code, int line, const char* format, ...)
    CRD_PRINTF(4, 5);
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
void crdi_dcp_hold(const crdi_xml_element* root, crdi_dcp_findings* f);
/// CRD_E_FORMAT: the document is no slave description. Everything else is a finding.
crd_status crdi_dcp_read(crd_dcp_description* d, const crdi_xml* xml, crdi_dcp_findings* f);
/// `by_vr` is that of all variables.
void crdi_dcp_check(const crd_dcp_description* d, const crdi_dcp_index* by_vr,
                    crdi_dcp_findings* f);

// ---- pieces ------------------------------------------------------------------------------------

/// "Uint8" ... by crd_dcp_data_type.
extern const char* const crdi_dcp_type_elements[CRD_DCP_DATA_TYPE_COUNT];
/// The next word of a list separated by white space; NULL at the end.
const char* crdi_dcp_word(const char** text, size_t* length);
bool crdi_dcp_is_date(const char* text); ///< 2026-01-31T12:00:00Z, as xs:dateTime

typedef enum crdi_dcp_piece {
    CRDI_DCP_END,
    CRDI_DCP_ARGUMENT,
    CRDI_DCP_LONE, ///< a % that is neither a placeholder nor doubled
} crdi_dcp_piece;
/// The next placeholder of a log message; `*at` is behind it afterwards.
crdi_dcp_piece crdi_dcp_placeholder(const char** at, uint8_t* type);
