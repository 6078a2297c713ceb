/// YAML as a tree that knows its lines. Bounded: depth, size, no anchors, aliases, tags, one
/// document.
#pragma once
#include "cardan/system.h"
#include "shared/base.h"

typedef enum crdi_node_kind { CRDI_SCALAR, CRDI_LIST, CRDI_MAPPING } crdi_node_kind;

typedef struct crdi_node {
    crdi_node_kind kind;
    bool quoted; ///< scalar in quotes or as a block: it is text, whatever it looks like
    int line;    ///< of the key if there is one, from 1; 0: unknown
    /// Of the value, both from 0: lines of the text and characters in them. The end of a list or
    /// mapping in block style is where the next thing begins.
    struct crdi_span {
        int line, column, end_line, end_column;
    } at;
    bool flow;        ///< list or mapping in [] or {}
    const char* key;  ///< of a mapping's member, else NULL
    const char* text; ///< scalar; "" otherwise
    struct crdi_node *first, *last, *next;
    int count; ///< members
} crdi_node;

enum { CRDI_YAML_DEPTH = 32, CRDI_YAML_BYTES = 256 << 20 };

/// All nodes and texts live in `arena`. `place.file` starts each message. place.line -n: lines are
/// counted, the first is n; otherwise the text is part of something else and every node bears that
/// line.
crd_status crdi_yaml_parse(crd_arena* arena, const char* text, size_t length, crd_place place,
                           crdi_node** root);

/// The member with this key, NULL.
const crdi_node* crdi_node_get(const crdi_node* mapping, const char* key);
/// `key:` with nothing behind it, or ~, or null.
bool crdi_node_empty(const crdi_node* n);

/// "file:line: ", "file: " or "" in front of a message.
typedef struct crdi_where {
    char text[300];
} crdi_where;
crdi_where crdi_place_text(crd_place place);
