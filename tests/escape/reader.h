/* SPDX-License-Identifier: Apache-2.0
 *
 * A JSON reader of the checker's own. Why: what the checker reads must not pass through the reader
 * and the tree of the product, or one defect would hide the other. Strict: duplicate keys, invalid
 * escapes, leading zeros and trailing bytes are errors. Memory is the arena's. */
#pragma once

#include <sublet/mem.h>

enum node_type { NODE_NULL, NODE_BOOL, NODE_NUMBER, NODE_STRING, NODE_LIST, NODE_OBJECT };

struct node {
    enum node_type type;
    struct str key;  /* of a member */
    struct str text; /* a string unescaped; the words of other scalars */
    struct node *first, *last, *next;
};

/* NULL: *ret_why has the problem. */
struct node *node_read(struct arena *a, struct str json, const char **ret_why);
/* NULL where there is none, or where object is none. */
struct node *node_get(const struct node *object, const char *key);
struct node *node_get_str(const struct node *object, struct str key);
/* `spec.containers[0].env[1].name`; a key with dots stands in quotes: `labels.'a.b/c'`. With make,
 * missing objects on the way are made. NULL when there is none. */
struct node *node_at(struct arena *a, struct node *root, struct str path, bool make);
/* Takes the node at path away. */
bool node_remove(struct node *root, struct str path);
bool node_equal(const struct node *a, const struct node *b);
struct str node_text(const struct node *n); /* of a string; empty for anything else */
struct node *node_copy(struct arena *a, const struct node *n);

#define node_each(item, parent)                                                                    \
    for (const struct node *item = (parent) ? (parent)->first : NULL; item; item = item->next)
