/// Zip archives (FMU, SSP): read those of strangers, write our own.
///
/// Opening walks the whole directory of the archive and refuses names that leave the folder, links,
/// contradicting duplicates, encryption and sizes beyond the limits; reading refuses entries that
/// inflate to more than they declared. So what has been opened can be unpacked without further
/// thought.
#pragma once
#include "shared/base.h"

typedef struct crdi_archive crdi_archive;

typedef struct crdi_archive_limits {
    uint64_t max_unpacked; ///< bytes of all entries together; 0: CARDAN_MAX_UNPACKED in the
                           ///< environment, or else 1 GiB or 20 times the archive
    uint32_t max_entries;
    bool can_be_raised; ///< max_unpacked is what the environment said, or what is usual
} crdi_archive_limits;

typedef struct crdi_archive_entry {
    const char* name; ///< cleaned: '/' between parts, no "./", no trailing '/'; "" is the root
    uint64_t size;    // as declared, kept when reading
    uint32_t crc;
    bool folder;
    bool repeated; ///< an earlier entry has the same name and content: this one is not unpacked
} crdi_archive_entry;

/// CRD_E_NOT_FOUND, CRD_E_IO, or CRD_E_FORMAT with the entry's name in the text.
crd_status crdi_archive_open(crd_context* ctx, const char* path, const crdi_archive_limits* limits,
                             crdi_archive** out);
/// The bytes are borrowed until close.
crd_status crdi_archive_open_memory(crd_context* ctx, const void* bytes, size_t length,
                                    const char* name_in_messages, const crdi_archive_limits* limits,
                                    crdi_archive** out);
void crdi_archive_close(crdi_archive* a);

uint64_t crdi_archive_unpacked(const crdi_archive* a); ///< bytes of all entries together
uint64_t crdi_archive_limit(const crdi_archive* a);    ///< that was applied to them
int32_t crdi_archive_count(const crdi_archive* a);
const crdi_archive_entry* crdi_archive_at(const crdi_archive* a, int32_t index);
int32_t crdi_archive_find(const crdi_archive* a, const char* name); ///< -1 when absent

/// Read one entry piece by piece, one entry at a time; `*got` = 0 is its end.
crd_status crdi_archive_begin(crdi_archive* a, int32_t index);
crd_status crdi_archive_pull(void* archive, void* buffer, size_t room, size_t* got);
void crdi_archive_end(crdi_archive* a);

/// One entry into memory of the context with a zero behind it; CRD_E_FORMAT beyond `max_bytes`.
crd_status crdi_archive_read(crdi_archive* a, int32_t index, size_t max_bytes, char** out,
                             size_t* length);
/// Everything below an existing, empty folder. Folders get mode 0700, files 0600.
crd_status crdi_archive_unpack(crdi_archive* a, const char* folder);

/// Foreign text for a message: no control characters, at most 80 bytes.
typedef struct crdi_shown {
    char text[84];
} crdi_shown;
crdi_shown crdi_show(const char* text);

/// A new empty folder, mode 0700, below `where` (NULL: $TMPDIR or /tmp); its path is in the arena.
/// What killed processes of this user left there is removed.
crd_status crdi_scratch_make(crd_arena* arena, crd_context* ctx, const char* where,
                             const char** out);
bool crdi_scratch_remove(const char* folder); ///< with everything in it; false: not all
/// What killed processes of this user left below $TMPDIR or /tmp is removed now.
void crdi_scratch_sweep(void);
/// All that this process made, by another one: this one may not use its memory any more.
void crdi_scratch_abandon(void);

/// SHA-256 of a regular file as 64 digits; false, and "": it cannot be read to its end.
bool crdi_file_hash(const char* path, char hex[65]);

// ---- seals -------------------------------------------------------------------------------------

/// Appends the seal of what is in `t` with the user's key: $CARDAN_STATE_KEY, else
/// ~/.config/cardan/state.key, made if there is none. CRD_E_IO, CRD_E_FORMAT: no key.
crd_status crdi_seal(crd_text* t);
/// Takes the seal off: `*size` bytes are left. CRD_E_FORMAT: it does not fit.
crd_status crdi_seal_open(crd_context* ctx, const char* name, const char* data, size_t* size);

// ---- writing -----------------------------------------------------------------------------------

typedef struct crdi_archive_writer crdi_archive_writer;

/// The archive grows in a file beside `path` and takes its name in finish: no half-written archive
/// is ever seen. All entries are deflated and bear one fixed date, so equal content gives equal
/// bytes.
crd_status crdi_archive_create(crd_context* ctx, const char* path, crdi_archive_writer** out);
/// `bytes` are copied. CRD_E_RANGE if the name is there already.
crd_status crdi_archive_add(crdi_archive_writer* w, const char* name, const void* bytes,
                            size_t length);
/// A file of the disk, read when the archive is finished.
crd_status crdi_archive_add_file(crdi_archive_writer* w, const char* name, const char* path);
/// CRD_E_IO with path and reason; then there is no new archive and an old one is as it was.
crd_status crdi_archive_finish(crdi_archive_writer* w);
void crdi_archive_discard(crdi_archive_writer* w); ///< frees; also after finish; NULL is fine
