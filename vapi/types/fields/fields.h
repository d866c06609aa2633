/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/types/fields)
 *
 * Shared by the files of the structured merge: steps as strings, sets under construction, the
 * shapes a value of a type may have, list items by identity. */
#pragma once

#include <sublet/fields.h>

/* No walk goes deeper; decoded trees are at most 256 deep. */
enum { FIELDS_DEPTH = 300 };

/* ---- element.c ---- */
void element_text(struct buf *b, const struct element *e);
const char *element_print(struct arena *a, const struct element *e); /* "f:spec" */
void element_sort_parts(struct element_part *parts, size_t n);
/* The way from the root to a value, for messages. */
struct element_step {
    const struct element_step *up;
    const struct element *element; /* NULL at the root */
};
void element_path(struct buf *b, const struct element_step *at); /* ".spec.containers[0]" */
/* A key of fieldsV1; one of an unknown kind is ignored. */
enum element_read { ELEMENT_READ, ELEMENT_IGNORED, ELEMENT_BAD };
enum element_read element_parse(struct arena *a, const char *key, struct element *ret);
static inline struct element element_field(const char *name)
{
    return (struct element){.kind = ELEMENT_FIELD, .name = str_c(name)};
}

/* ---- set.c: construction ---- */
/* Adds an item in any order; does nothing when it is no member and has no children. */
void set_add(struct arena *a, struct field_set **x, const struct element *e, bool member,
             struct field_set *below);
/* Sorts, and merges equal items. Must be called once before the set is used. */
struct field_set *set_finish(struct arena *a, struct field_set *x);

/* ---- type.c ---- */
/* The shapes a value of a type may have; `deduced` types allow all of them. */
enum atom_bits { ATOM_MAP = 1, ATOM_SCALAR = 2, ATOM_LIST = 4 };
struct atom {
    struct field_type type;
    unsigned bits;
    bool atomic_map, atomic_list;
    enum { SCALAR_UNTYPED, SCALAR_STRING, SCALAR_NUMBER, SCALAR_BOOL } scalar;
};
void atom_of(struct field_type t, struct atom *ret);
/* The bits that apply to value; all of them when it fits none, or is NULL or null. */
unsigned atom_deduce(const struct atom *t, const cJSON *value);
/* The one bit that is used. */
unsigned atom_choose(unsigned bits);
/* Type of a member. *declared: a field of a struct, not a key of a map. */
struct field_type type_member(const struct atom *t, const char *key, bool *declared);
struct field_type type_item(const struct atom *t);
/* A map without fields whose values are deduced. */
bool type_is_free(const struct atom *t);
const char *go_value(struct arena *a, const cJSON *value); /* "&{map[a:1]}", for messages */
/* Scalars: NULL, or the problem with value. */
const char *atom_problem(struct arena *a, const struct atom *t, const cJSON *value);

/* ---- items.c ---- */
struct item {
    struct element element;
    cJSON *value;
    uint32_t twin;  /* position of the first item with this element; itself for the first */
    uint32_t count; /* of the first: how many items share its element, */
    uint32_t rank;  /* starting here in items.order */
};
struct items {
    struct item *at;
    uint32_t n;
    uint32_t *order; /* sorted by element, then position */
};
/* The items of a set or map by identity. Error: the message about the first item that has none,
 * after `element <i>: `. list may be NULL or null. */
int items_of(struct arena *a, const struct atom *t, const cJSON *list, struct items *ret,
             struct str *ret_why) MUST_CHECK;
/* Position of the first item with an element, or -1. */
int64_t items_find(const struct items *x, const struct element *e);

/* Members by key, in linear time over all look-ups: objects mostly have the same order. */
struct lookup {
    struct arena *arena;
    cJSON *object, *next;
    void *index;
    size_t misses;
};
void lookup_open(struct lookup *l, struct arena *a, const cJSON *object);
cJSON *lookup_get(struct lookup *l, const char *key);
