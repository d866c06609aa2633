/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * A built-in kind: its resource, and everything its file in vapi/kinds decides about it. */
#pragma once

#include <sublet/resource.h>

/* One row of a Table as its cells are printed; now in seconds. */
struct row {
    struct arena *a;
    const cJSON *object;
    int64_t now;
    cJSON *cells;
};

/* What of a kind is stored and served but does nothing yet. */
struct no_effect {
    bool (*applies)(const cJSON *object); /* NULL: to every object */
    const char *what, *instead;           /* "NetworkPolicy", what happens without it */
};

/* Rows of vapi/kinds/rules. */
struct rules {
    const struct rule *rows;
    size_t n;
};
struct default_rules {
    const struct default_rule *rows;
    size_t n;
};

/* Everything a built-in kind decides beyond its schema; one per version that is served. NULL means:
 * nothing special. Objects are trees in the request's arena, changed in place. */
struct kind {
    struct resource resource; /* a template: registry_new() completes its copies */
    struct default_rules default_rules;
    void (*defaults)(struct arena *a, cJSON *object); /* after default_rules */
    const char *new_status;                           /* JSON: the status of a created object */
    void (*prepare_create)(struct arena *a, cJSON *object); /* after generic metadata, new_status */
    void (*prepare_update)(struct arena *a, cJSON *object, const cJSON *old);
    /* old NULL: create. What validate_first finds wrong, before metadata, is reported alone. */
    void (*validate_first)(struct field_errors *e, const cJSON *object, const cJSON *old);
    struct rules rules, status_rules; /* of a create or update, and of one of status */
    void (*validate)(struct field_errors *e, const cJSON *object,
                     const cJSON *old); /* after rules */
    void (*validate_status)(struct field_errors *e, const cJSON *object, const cJSON *old);
    void (*warnings)(struct arena *a, const cJSON *object, void (*warn)(void *, struct str),
                     void *ctx);
    const char *(*check_name)(struct str name); /* NULL: DNS-1123 subdomain */
    void (*prepare_status)(struct arena *a, cJSON *object, const cJSON *old); /* spec is old's */
    /* The first cell of a Table row, instead of the name. */
    struct str (*first_cell)(const struct row *r);
    /* The first delete of a kind that never leaves at once: adds what holds the object until its
     * controller has done its part. The deletionTimestamp is set already. */
    void (*prepare_delete)(struct arena *a, cJSON *object, int64_t now);
    /* What prepare_create is about to hide. */
    void (*warnings_before_create)(struct arena *a, const cJSON *object,
                                   void (*warn)(void *, struct str), void *ctx);
    const struct no_effect *no_effect; /* ended by what == NULL */
    /* Of a version that is not stored: a tree of the storage version rewritten as this version, and
     * back. */
    void (*from_storage)(struct arena *a, cJSON *object);
    void (*to_storage)(struct arena *a, cJSON *object);
    /* Paths of what a write to its own endpoint does not change, and so does not own, NULL-ended;
     * NULL: the status if that is written separately. Source: GetResetFields of the strategies. */
    const char *const *reset;
    /* Why upstream's conversion could not read a body, in its words; NULL: it could. */
    const char *(*unreadable)(struct arena *a, const cJSON *body);
};
