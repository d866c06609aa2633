/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * A copy of one collection of the host, kept by list and watch. A list that fails never means that
 * something is gone. */
#pragma once

#include <sublet/host.h>

/* One object of the host as a reflector keeps it. Borrowed: good until control returns to the loop.
 */
struct host_object {
    struct str name, uid;
    uint64_t revision; /* 0: not a number */
    struct str bytes;  /* compact JSON, reduced */
};

struct reflector;
struct reflector_options {
    struct host *host;
    struct str path;                           /* of the collection: "/api/v1/namespaces/x/pods" */
    struct str label_selector, field_selector; /* not encoded; may be empty */
    uint64_t revision;                         /* the newest one known from before; 0: none */
    bool metadata_only;                        /* requests PartialObjectMetadata */
    bool by_namespace; /* of all namespaces: the name of an object is "namespace/name" */
    bool forget;       /* bytes are dropped once changed() has seen them */
    /* Takes out of a tree what need not be kept (managedFields are gone already); may be NULL. */
    void (*reduce)(struct arena *a, cJSON *object);
    /* Added (before NULL), changed, or removed (now NULL). Must not close the reflector. */
    void (*changed)(void *ctx, const struct host_object *now, const struct host_object *before);
    /* The cache is current: a list is complete, or a watch that had ended goes on. May be NULL. */
    void (*current)(void *ctx, bool listed);
    /* The host refuses (403, 404): tried again every five minutes. Said once; may be NULL. */
    void (*refused)(void *ctx, const struct err *err);
    /* The host has nothing at this path (404), nor at `tried` others since it last had: calls
     * reflector_at(). True: that is tried at once, else after a refusal. May be NULL. */
    bool (*elsewhere)(void *ctx, size_t tried);
    /* Lists or watches failed three times in a row and more, each time; NULL: they go on. May be
     * NULL. */
    void (*failing)(void *ctx, const struct err *err);
    /* The host is at an earlier revision than it was: it was restored. Calls reflector_restart().
     */
    void (*went_back)(void *ctx);
    void *ctx;
};
struct reflector *reflector_open(const struct reflector_options *options);
struct reflector *reflector_close(struct reflector *f); /* takes NULL, returns NULL */
bool reflector_synced(const struct reflector *f);       /* false for NULL */
bool reflector_refused(const struct reflector *f);
const struct host_object *reflector_get(const struct reflector *f, struct str name);
void reflector_each(struct reflector *f, void (*each)(void *ctx, const struct host_object *o),
                    void *ctx);
size_t reflector_count(const struct reflector *f);
/* An object in an answer to us, so that the next run sees it before the watch reports it. */
void reflector_learn(struct reflector *f, struct str bytes);
/* The host is not the one of before: what is kept is compared with a new list, whatever its
 * revisions say, and reflector_synced() is false until that is complete. Takes NULL. */
void reflector_restart(struct reflector *f);
void reflector_at(struct reflector *f, struct str path); /* of the next list */
/* When the last list was begun, in ms of the host's monotonic clock. REFLECTOR_NOT_CURRENT: it is
 * not complete, or no watch goes on from it, so that absence proves nothing; current() follows. */
#define REFLECTOR_NOT_CURRENT INT64_MAX
int64_t reflector_listed_ms(const struct reflector *f);
void reflector_kick(struct reflector *f); /* tries at once what waits for its backoff */
