/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant writes about admission (webhook configurations, policies, bindings), parsed and
 * compiled once for each revision. Every request compares what is stored with what was read, and
 * nothing else invalidates it. Internal to vapi/admission.
 *
 * All that is kept counts against a budget, also what a request in a pause keeps of a previous
 * revision. An object beyond the budget is left out: of it only the flags of its kind remain, which
 * say what happens to requests (failurePolicy), and an admin is warned by a notice. It is read once
 * more when the budget has room for it. Of the objects behind the first `most_objects`, one is left
 * out for all, unread: its flags are 0. */
#pragma once

#include "plugins.h"

#define COMPILED_EXPRESSIONS ((size_t)8 << 20) /* bytes of those of one object */

struct compiled_budget {
    size_t used, most;
    size_t most_objects; /* of a list */
};
extern const struct compiled_budget COMPILED_BUDGET;

/* The first member of what is kept of an object. */
struct compiled {
    const struct compiled_kind *kind;
    struct compiled_budget *budget;
    struct arena *arena; /* NULL: left out */
    struct str name;
    int64_t revision;
    size_t size; /* bytes of the arena; for one left out what it would take, 0: unread */
    unsigned references;
};

struct compiled_kind {
    const char *plural; /* in admissionregistration.k8s.io */
    size_t size;        /* of the struct */
    /* Sets flags in c itself, and the rest, in c->arena. */
    void (*read)(struct compiled *c, const cJSON *tree);
    void (*release)(struct compiled *c); /* what is not in the arena */
};

/* In order of names. */
struct compiled_list {
    const struct compiled_kind *kind;
    struct compiled_budget *budget;
    unsigned storage;
    struct compiled **items;
    size_t n, cap;
    size_t stored;  /* objects when they were read, and the newest of their revisions */
    int64_t newest; /* what changes either is another state */
    size_t missing; /* size of the smallest one left out; 0: none */
    bool noticed;
};

void compiled_list_init(struct compiled_list *l, struct vapi *api, const struct compiled_kind *kind,
                        struct compiled_budget *budget);
void compiled_list_fini(struct compiled_list *l);
/* Reads what changed: l->items are then those of now, until the next call. */
void compiled_refresh(struct vapi *api, struct compiled_list *l);
struct compiled *compiled_ref(struct compiled *c);
void compiled_unref(struct compiled *c);
