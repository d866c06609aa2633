/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the normalising walk: its position and the problems it found. */
#pragma once

#include <sublet/schema.h>

enum frame_kind { FRAME_FIELD, FRAME_KEY, FRAME_INDEX };

/* One step of the path from the root, on the C stack of the walk. */
struct frame {
    const struct frame *up;
    enum frame_kind kind;
    uint32_t node; /* FRAME_FIELD: the object that has the field */
    struct str name;
    size_t index;
};

struct walk {
    struct arena *arena;
    const struct schema *schema;
    struct strict_errors *strict; /* may be NULL */
    struct err *err;
    bool converting; /* the result of a strategic patch, which upstream converts instead of decoding
                      */
    bool decoded; /* from protobuf: members of maps may repeat, strings may be changed in place */
    bool mismatched; /* a type error was found; like Go, the walk keeps the first one and
                      * continues */
    struct str mismatch;
};

/* The message of upstream's converter about such a value. */
struct str convert_text(struct walk *w, uint32_t node, const cJSON *value);
const char *go_scalar(uint8_t kind); /* "int32"; NULL for a type that is not scalar */
/* Go's name of a type: "int32", "[]v1.Container", "map[string]string", "v1.PodSpec". */
struct str go_type(struct arena *a, const struct schema *s, uint32_t node);
/* A value that its type cannot hold: `json: cannot unmarshal <value> into Go struct field T.a.b of
 * type <type>`. 0 when the walk continues, -1 when it ends here. */
int walk_mismatch(struct walk *w, const struct frame *at, uint32_t node,
                  const cJSON *value) MUST_CHECK;
/* Records it for a type that has no node. numeric: a number is shown as "number 1.5". */
void walk_note_mismatch(struct walk *w, const struct frame *at, const cJSON *value, bool numeric,
                        struct str type);
/* The same, as returned by a type's own decoder: it ends the walk. Returns -1. */
int walk_mismatch_now(struct walk *w, const struct frame *at, const cJSON *value,
                      const char *type) MUST_CHECK;
/* Records any other error; like a mismatch it is reported when the walk is over. */
void walk_note(struct walk *w, struct str text);
int walk_fail(struct walk *w, struct str text) MUST_CHECK; /* ends the walk: -1 */
/* `spec.containers[0].name` */
struct str walk_path(struct walk *w, const struct frame *at, struct str last);

/* Checks a leaf and rewrites it in canonical form. 0, or -1 when the walk ends here. */
int walk_scalar(struct walk *w, uint32_t node, cJSON *value, const struct frame *at) MUST_CHECK;
