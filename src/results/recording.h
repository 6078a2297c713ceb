// What stands behind crd_recording and crd_cursor: one set of functions per format.
#pragma once
#include "cardan/results.h"
#include "shared/base.h"

typedef struct crdi_recording_ops {
    crd_status (*attachment)(crd_recording* r, int i, char** data, size_t* length);
    /// Has checked that the signals are of this group.
    crd_status (*cursor_open)(crd_recording* r, int group, const int* signals, int count,
                              crd_cursor** out);
    crd_status (*cursor_next)(crd_cursor* c, crd_block* out);
    crd_status (*cursor_seek)(crd_cursor* c, int64_t row);
    void (*cursor_close)(crd_cursor* c);
    void (*close)(crd_recording* r); ///< takes what is half open
} crdi_recording_ops;

/// Each format's own struct begins with this one.
struct crd_recording {
    const crdi_recording_ops* ops;
    crd_context* ctx;
    crd_arena arena; ///< of what `info` points to
    crd_recording_info info;
};

struct crd_cursor {
    crd_recording* recording;
};

typedef enum crdi_file_kind { CRDI_FILE_CSV, CRDI_FILE_MDF, CRDI_FILE_MAT } crdi_file_kind;

/// Opens the file and looks at its first bytes.
crd_status crdi_recording_sniff(crd_context* ctx, const char* path, int* fd, crdi_file_kind* kind);

/// Takes over `fd`, also on failure.
crd_status crdi_mdf_open(crd_context* ctx, const char* path, int fd, crd_recording** out);
crd_status crdi_mat_open(crd_context* ctx, const char* path, crd_recording** out);

/// A recording that is in memory: signal i is column i of the table, groups are columns that share
/// their times. Owns the table.
typedef struct crdi_memory_recording {
    crd_recording base;
    crd_table* table;
    const crd_attachment* attachments; ///< (info.attachment_count), in the arena
} crdi_memory_recording;

crd_status crdi_memory_recording_create(crd_context* ctx, const char* path, const char* format,
                                        crdi_memory_recording** out);
/// Once the table is there: groups and signals out of its columns. Descriptions and labels may be
/// added afterwards.
crd_status crdi_memory_recording_describe(crdi_memory_recording* m);
