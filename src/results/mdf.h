// MDF 4: tags, sizes and codes that the writer and the reader share.
//
// All integers are little endian. Every block except the first starts with the same head:
//    0  char[4]  tag, "##DG"         8  u64  length of the block with this head
//    4  u32      0                  16  u64  number of links
//   24  u64[]    links: offsets in the file, 0 = none; behind them the block's own data
#pragma once
#include <stdint.h>

#define CRDI_MDF_TAG(a, b)                                                                         \
    ((uint32_t)'#' | (uint32_t)'#' << 8 | (uint32_t)(a) << 16 | (uint32_t)(b) << 24)

enum {
    CRDI_MDF_HEAD = 24,
    CRDI_MDF_ID_SIZE = 64, // no head; HD follows it at once
    // Whole blocks: head, links, data
    CRDI_MDF_HD_LINKS = 6,
    CRDI_MDF_HD_SIZE = 104,
    CRDI_MDF_FH_LINKS = 2,
    CRDI_MDF_FH_SIZE = 56,
    CRDI_MDF_DG_LINKS = 4,
    CRDI_MDF_DG_SIZE = 64,
    CRDI_MDF_CG_LINKS = 6,
    CRDI_MDF_CG_SIZE = 104,
    CRDI_MDF_CN_LINKS = 8,
    CRDI_MDF_CN_SIZE = 160,
    CRDI_MDF_SI_LINKS = 3,
    CRDI_MDF_SI_SIZE = 56,
    CRDI_MDF_CC_LINKS = 4, // then its references
    CRDI_MDF_CC_SIZE = 80, // without references and values, 8 bytes each
    CRDI_MDF_AT_LINKS = 4,
    CRDI_MDF_AT_SIZE = 96, // then the bytes
    CRDI_MDF_EV_LINKS = 5, // then scopes and attachments
    CRDI_MDF_EV_SIZE = 96, // without them
    CRDI_MDF_HL_LINKS = 1,
    CRDI_MDF_HL_SIZE = 40,
    CRDI_MDF_DZ_SIZE = 48, // then the zlib stream
};

// ID: why a file is unfinished
enum {
    CRDI_MDF_UNFIN_CYCLES = 0x01, // record counts
    CRDI_MDF_UNFIN_DT = 0x04,     // length of the last DT
    CRDI_MDF_UNFIN_DL = 0x10,     // the last DL
};

// CN
enum {
    CRDI_MDF_CN_VALUE = 0,
    CRDI_MDF_CN_VLSD = 1,
    CRDI_MDF_CN_MASTER = 2,
    CRDI_MDF_CN_VIRTUAL_MASTER = 3,
    CRDI_MDF_CN_SYNC = 4,
    CRDI_MDF_CN_MLSD = 5,
    CRDI_MDF_CN_VIRTUAL = 6
};
enum { CRDI_MDF_SYNC_NONE = 0, CRDI_MDF_SYNC_TIME = 1 };
enum {
    CRDI_MDF_UINT_LE = 0,
    CRDI_MDF_UINT_BE = 1,
    CRDI_MDF_INT_LE = 2,
    CRDI_MDF_INT_BE = 3,
    CRDI_MDF_REAL_LE = 4,
    CRDI_MDF_REAL_BE = 5,
    CRDI_MDF_LATIN1 = 6,
    CRDI_MDF_UTF8 = 7,
    CRDI_MDF_UTF16_LE = 8,
    CRDI_MDF_UTF16_BE = 9,
    CRDI_MDF_BYTES = 10
};
enum { CRDI_MDF_CN_ALL_INVALID = 0x01, CRDI_MDF_CN_HAS_INVALID = 0x02 };

// CC
enum {
    CRDI_MDF_CC_IDENTITY = 0,
    CRDI_MDF_CC_LINEAR = 1,
    CRDI_MDF_CC_RATIONAL = 2,
    CRDI_MDF_CC_VALUE_TO_TEXT = 7
};

// AT
enum { CRDI_MDF_AT_EMBEDDED = 0x01, CRDI_MDF_AT_DEFLATED = 0x02, CRDI_MDF_AT_MD5 = 0x04 };

// EV: types, and what `sync` and `range` say
enum {
    CRDI_MDF_EV_RECORDING = 0,
    CRDI_MDF_EV_INTERRUPT = 1,
    CRDI_MDF_EV_ACQUISITION = 2,
    CRDI_MDF_EV_START = 3,
    CRDI_MDF_EV_STOP = 4,
    CRDI_MDF_EV_TRIGGER = 5,
    CRDI_MDF_EV_MARKER = 6
};
enum { CRDI_MDF_EV_POINT = 0, CRDI_MDF_EV_BEGIN = 1, CRDI_MDF_EV_END = 2 };

// The name of an event says its kind; what happened is its comment. In the order of crd_event_kind.
#define CRDI_MDF_EVENT_NAMES                                                                       \
    {                                                                                              \
        "start", "stop", "warning", "overrun", "error", "mark"                                     \
    }

// DZ
enum { CRDI_MDF_DEFLATE = 0, CRDI_MDF_TRANSPOSED = 1 };

// DL
enum { CRDI_MDF_DL_EQUAL = 0x01 };
