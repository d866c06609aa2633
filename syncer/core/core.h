/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * What all parts of the syncer share: its body, the kinds, keys of runs, watches that open when
 * they are first needed. Must never name a part above. */
#pragma once

#include <sublet/call.h>
#include <sublet/controller.h>
#include <sublet/host.h>
#include <sublet/object.h>
#include <sublet/reflector.h>
#include <sublet/syncer.h>
#include <sublet/translate.h>

#define SYNCER_MAGIC     0x73796e63u
#define META_CLUSTER_UID "cluster-uid" /* of RECORD_META */

/* What is synced; each but events has a controller. The rows of kinds.c are in this order. */
enum sync_id {
    SYNC_PODS,
    SYNC_CONFIG_MAPS,
    SYNC_SECRETS,
    SYNC_SERVICES,
    SYNC_CLAIMS,
    SYNC_NODES,
    SYNC_STORAGE_CLASSES,
    SYNC_PRIORITY_CLASSES,
    SYNC_EVENTS,
    N_SYNC
};

struct syncer;
struct sync_run;
struct sync_kind {
    const char *plural; /* in both worlds; also the prefix of mapping records */
    const char *group;  /* virtual API group */
    const char *root;   /* host API: "/api/v1", "/apis/storage.k8s.io/v1" */
    bool namespaced;    /* on the host: in our namespace, and watched by our label */
    bool labelled;
    bool metadata_only;
    bool maps; /* has mapping records */
};
extern const struct sync_kind SYNC_KINDS[N_SYNC]; /* kinds.c */

/* What is done for a kind. */
struct sync_handlers {
    const struct controller_def *controller;        /* NULL: none */
    void (*reduce)(struct arena *a, cJSON *object); /* what of a host object is not kept; or NULL */
    void (*changed)(struct syncer *s, const struct host_object *now,
                    const struct host_object *before);
    /* Is the host object, of another virtual uid, what this virtual object would be made into?
     * NULL: always. */
    bool (*fits_host)(struct sync_run *run);
};
/* What the parts below need of those above; set by syncer.c. */
struct sync_parts {
    const struct sync_handlers *handlers;     /* of N_SYNC kinds */
    const struct reflector_options *watching; /* of all watches: what is done when one reports */
    void (*idle)(struct syncer *s);           /* nothing is deferred any more */
    void (*rescan)(struct syncer *s);         /* everything: the host may be changed again */
    void (*barred)(struct syncer *s);         /* nothing may change the host any more */
};

struct sync_watch {
    struct syncer *syncer;
    enum sync_id id;
    struct reflector *reflector; /* NULL: not needed yet */
};

struct mapping;
struct ledger;
struct refs;
struct nodes;
struct dry_runs;
struct failed_pods;
struct events_up;
struct publisher;
struct admits;
struct streams;

struct syncer {
    unsigned magic;
    const struct sync_parts *parts;
    struct vapi *api;
    const struct config *config;
    struct store *store;
    struct host *host;
    struct arena *arena;            /* for as long as the syncer */
    struct translate_tenant tenant; /* api_ip once it is known */
    struct sync_watch watches[N_SYNC];
    struct controller *controllers[N_SYNC];
    struct refs *refs;
    struct ledger *ledger;
    struct nodes *nodes;
    struct dry_runs *dry_runs;
    struct failed_pods *failed;
    struct events_up *events;
    struct publisher *publisher;
    struct admits *admits;
    struct streams *streams;
    struct lease *lease;
    struct lacking *lacking; /* NULL: nothing is being found out */
    char *not_leading; /* why /readyz fails; NULL: this process leads, or no leader is known */
    struct uv_timer_s *defer; /* runs what must not run inside the caller */
    struct deferred_call *deferred;
    bool started, address_known, closing;
    bool undecided;            /* writes wait for the host's first answer about the Lease */
    struct departed *departed; /* removals that are not on record yet */
    bool undone;               /* records were taken back: everything is looked at again soon */
    bool asking_class;
    char *host_class; /* behind tenant.host_class */
    int64_t life;     /* see life.c */
    bool compared;    /* in this life, all pods on the host were seen */
    bool reached;     /* the host answered this cluster once, maybe before a restart */
    bool asked;       /* the first request of this start ended, answered or not */
    unsigned open_parts;
    int64_t started_ms, relabel_until_ms;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* --- core.c --- */
#define HOST_REACHED "host-reached"
int64_t syncer_mono_ms(const struct syncer *s);
struct syncer *syncer_of(struct reconcile *r);
/* Runs run(ctx) once from the loop; before its time when the syncer closes. */
void syncer_defer(struct syncer *s, void (*run)(void *ctx), void *ctx);
void syncer_defer_for(struct syncer *s, void (*run)(void *ctx), void *ctx, int64_t delay_ms);
int64_t syncer_now_s(const struct syncer *s);
void syncer_add(struct syncer *s, enum sync_id id, struct str ns, struct str name);
void syncer_hold(struct syncer *s); /* something is under way that the syncer must outlive */
void syncer_release(struct syncer *s);
void syncer_rescan(struct syncer *s, enum sync_id id); /* adds every key of the kind */
/* Can a run talk to the host, with these copies complete? Opens the watches that are missing; where
 * it returns false the key is added again once they are synced. */
bool syncer_ready(struct syncer *s, enum sync_id first, enum sync_id second, enum sync_id third);
struct reflector *syncer_watch(struct syncer *s, enum sync_id id); /* opened if need be */
const struct resource *syncer_resource(const struct syncer *s, const char *group,
                                       const char *plural);
unsigned syncer_storage(const struct syncer *s, enum sync_id id); /* of the kind's objects */
/* Is there such an object, readable or not, committed or about to be? */
bool syncer_has_virtual(struct syncer *s, enum sync_id id, struct str ns, struct str name);
/* The committed object of the virtual cluster as a tree, or NULL. */
cJSON *syncer_virtual(struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                      struct str name);
const cJSON *syncer_namespace_labels(struct syncer *s, struct arena *a, struct str ns);
/* The host answered about this cluster: remembered, over restarts too. */
void syncer_host_reached(struct syncer *s);
