/// Pairing of two hosts: the messages, without sockets, clocks or chance.
///
/// The first one begins; both hand over what comes (crdi_pair_take) and send what it gives back,
/// until they have agreed. Then two people compare the codes, each side sends its confirmation, and
/// the key counts when that of the other has come.
#pragma once
#include "shared/dcp.h"

enum { CRDI_PAIR_MESSAGE = 102 }; // bytes of the longest

typedef enum crdi_pair_state {
    CRDI_PAIR_WAITING, // for a commitment
    CRDI_PAIR_OFFERED,
    CRDI_PAIR_AGREED, // there is a code
    CRDI_PAIR_FAILED, // for good; `why`
} crdi_pair_state;

typedef struct crdi_pair {
    bool first, renews, confirmed; // by the other side
    crdi_pair_state state;
    const char* why;
    crd_dcp_key old; // that is renewed
    uint8_t secret[32], commitment[32], root[32];
    uint8_t opening[CRDI_PAIR_MESSAGE], offer[CRDI_PAIR_MESSAGE];
} crdi_pair;

/// `name` fits (crdi_dcp_key_name_fits), `days` is 1 to 65535; `old`: the key that is renewed,
/// NULL. `secret` and `random` come from the random numbers of the system.
void crdi_pair_init(crdi_pair* p, bool first, crd_dcp_key_role role, const char* name, int days,
                    const crd_dcp_key* old, const uint8_t secret[32], const uint8_t random[32]);
void crdi_pair_clear(crdi_pair* p); ///< wipes it
/// The first message of the first one; its length.
size_t crdi_pair_begin(const crdi_pair* p, uint8_t out[CRDI_PAIR_MESSAGE]);
/// One message of the other side, whatever it is; `out` is sent back if it has a length.
crdi_pair_state crdi_pair_take(crdi_pair* p, const uint8_t* bytes, size_t length,
                               uint8_t out[CRDI_PAIR_MESSAGE], size_t* out_length);
/// AGREED: "1234 5678".
void crdi_pair_code(const crdi_pair* p, char out[10]);
size_t crdi_pair_confirm(const crdi_pair* p, uint8_t out[CRDI_PAIR_MESSAGE]);
/// AGREED and confirmed: the key of this side. `now` in s since 1970; a key that was renewed is
/// taken for `overlap` days more.
void crdi_pair_key(const crdi_pair* p, int64_t now, int overlap, crd_dcp_key* out);
