/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The table of synced kinds: a fixed part, then one row for each kind that goes down by
 * configuration. Built once, before anything is watched. A row has one watch on the host; what
 * sync.fromHost shows comes from several and has records of another kind, see objects/mirror.h. */
#pragma once

#include <sublet/host.h>
#include <sublet/reflector.h>
#include <sublet/translate.h>

/* What is always synced; each but events and quotas has a controller. The rows of kinds.c are in
 * this order, and those of configured kinds follow: loops go to syncer.n_kinds. */
enum sync_id {
    SYNC_NONE = -1,
    SYNC_PODS,
    SYNC_CONFIG_MAPS,
    SYNC_SECRETS,
    SYNC_SERVICES,
    SYNC_CLAIMS,
    SYNC_NODES,
    SYNC_STORAGE_CLASSES,
    SYNC_PRIORITY_CLASSES,
    SYNC_EVENTS,
    SYNC_QUOTAS, /* of the host namespace; opened with sync.nodes perPool */
    N_SYNC_FIXED
};

struct controller_def;
struct syncer;
struct sync_run;
struct sync_rules; /* of the part that added the row */

/* The functions of a kind. */
struct sync_handlers {
    const struct controller_def *controller;        /* NULL: none */
    void (*reduce)(struct arena *a, cJSON *object); /* strips a host object to be cached; or NULL */
    void (*changed)(struct syncer *s, enum sync_id id, const struct host_object *now,
                    const struct host_object *before);
    /* Does the host object, which carries another virtual uid, match the translation of this
     * virtual object? NULL: always. */
    bool (*fits_host)(struct sync_run *run);
    /* ConfigMaps, Secrets, claims and accounts that must be on the host for this virtual object; or
     * NULL. False: there may be more, since an object that decides it is hidden. */
    bool (*refs)(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object,
                 translate_ref_cb each, void *ctx);
    /* The host has nothing at this root, nor at `tried` others: sets that of another version.
     * False: it serves none. NULL: there is one version. */
    bool (*elsewhere)(struct syncer *s, enum sync_id id, size_t tried);
    /* Both, where objects have mapping records: must the host have this virtual object, and the
     * patch that the syncer would send to the host object; NULL: none. */
    bool (*wants_host)(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object);
    cJSON *(*difference)(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object,
                         const cJSON *host);
};

struct sync_kind {
    const char *plural; /* in both worlds */
    const char *group;  /* virtual API group */
    const char *root;   /* host API: "/api/v1", "/apis/storage.k8s.io/v1" */
    bool namespaced;    /* on the host: in our namespace, and watched by our label */
    bool labelled;
    bool metadata_only;
    bool maps;          /* has mapping records */
    const char *record; /* prefix of its records, unique: "pods", "ingresses.networking.k8s.io" */
    struct sync_rules *rules; /* of configured kinds */
    const struct sync_handlers *handlers;
};

/* --- kinds.c --- */
/* Sets s->kinds to the fixed rows; handlers: of N_SYNC_FIXED kinds. In s->arena. */
void sync_kinds_init(struct syncer *s, const struct sync_handlers *handlers);
/* Copies the row. Only before the syncer starts. */
enum sync_id sync_kind_add(struct syncer *s, const struct sync_kind *kind);
/* SYNC_NONE: it is not synced (any more). */
enum sync_id sync_kind_of_record(const struct syncer *s, struct str record);
enum sync_id sync_kind_of_ref(const struct syncer *s, enum translate_ref_kind kind);
