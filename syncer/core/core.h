/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * What all parts of the syncer share: struct syncer, keys of reconciles, host watches that open on
 * first use. Must never name a part above it. */
#pragma once

#include "core/kinds.h"
#include "core/phase.h"

#include <sys/queue.h>

#include <sublet/call.h>
#include <sublet/controller.h>
#include <sublet/object.h>
#include <sublet/store_identity.h>
#include <sublet/syncer.h>

#define SYNCER_MAGIC     0x73796e63u
#define META_CLUSTER_UID "cluster-uid" /* of RECORD_META */

/* Callbacks from the parts below into those above; set by syncer.c. */
struct sync_parts {
    const struct reflector_options *watching; /* callbacks of all watches */
    void (*idle)(struct syncer *s);           /* no deferred call is left */
    void (*rescan)(struct syncer *s);         /* all keys: the host may be changed again */
    void (*another_host)(struct syncer *s);   /* or another state of it: watches begin anew */
    void (*barred)(struct syncer *s);         /* the Lease is lost: the host must not be changed */
};

struct sync_watch {
    struct syncer *syncer;
    enum sync_id id;
    struct reflector *reflector; /* NULL: not open yet */
    int64_t current_ms;          /* syncer_mono_ms() when it became current last */
    bool is_awaited;             /* keys are added again when the cache is current */
};

struct ledger;
struct refs;
struct nodes;
struct dry_runs;
struct failed_pods;
struct last_statuses;
struct events_up;
struct kubeconfigs;
struct admits;

struct syncer {
    unsigned magic;
    enum sync_phase phase;
    const struct sync_parts *parts;
    struct vapi *api;
    const struct config *config; /* its pools and bindings change: grants/README.md */
    struct store *store;
    struct host *host;
    struct arena *arena;            /* lives as long as the syncer */
    struct translate_tenant tenant; /* its api_ip is set once address_known */
    struct sync_kind *kinds;        /* n_kinds, as are watches and controllers: by enum sync_id */
    size_t n_kinds, cap_kinds;
    struct sync_watch *watches;
    struct controller **controllers;
    struct refs *refs;
    struct ledger *ledger;
    struct grants *grants; /* NULL: only what the configuration file binds */
    struct reclaims *reclaims;
    struct queued *queued;
    struct gangs *gangs; /* pods/gangs.h */
    struct nodes *nodes;
    struct dry_runs *dry_runs;
    struct failed_pods *failed;
    struct last_statuses *last;
    struct fights *fights;
    struct events_up *events;
    struct kubeconfigs *kubeconfigs;
    bool accounts_due;          /* kubeconfig_accounts.c is called again */
    struct demand *demand;      /* NULL: the fleet grants nothing */
    LIST_HEAD(, fetch) fetches; /* of metrics, under way; see streams/metrics.c */
    struct admits *admits;
    struct streams *streams;
    struct devices *devices;
    struct rejections *rejections;
    struct sync_webhooks *webhooks;
    struct sync_extensions *extensions;
    struct mirrors *mirrors; /* NULL: nothing of the host is shown by sync.fromHost */
    struct aliases *aliases; /* NULL: no Service has a further name on the host */
    struct lease *lease;
    struct lacking *lacking;               /* NULL: no comparison with another life is running */
    struct store_predecessor overtaken_by; /* --force: the life after which this data goes on */
    void (*new_life)(void *ctx, const struct store_predecessor *after);
    void *new_life_ctx;
    char later_epoch[STORE_EPOCH_LEN + 1]; /* the latest on host objects, after ours; "": none */
    char *not_leading;        /* why /readyz fails; NULL: we lead, or no leader is known */
    struct uv_timer_s *defer; /* for deferred calls */
    STAILQ_HEAD(, deferred_call) deferred;
    bool address_known;
    bool writes_held;               /* until the host answers who holds the Lease, or DECIDE_MS */
    LIST_HEAD(, departed) departed; /* removals on the host whose record is not committed yet */
    bool rescan_due, shown_due;     /* a transaction failed, a quarantine ended: all keys again */
    bool probing_class;             /* a dry run for the default StorageClass is in flight */
    char *host_class;               /* owns tenant.host_class */
    int64_t life;                   /* see life.c */
    bool compared;                  /* the first list of host pods in this life is complete */
    bool pools_known;               /* else pods wait for the first list of GPUBindings */
    bool reached;                   /* the host has answered once, perhaps before a restart */
    bool host_tried;                /* the first request of this start ended, answered or not */
    unsigned open_parts;
    int64_t started_s, started_ms, relabel_until_ms; /* wall; monotonic */
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* --- core.c --- */
#define HOST_REACHED "host-reached"
int64_t syncer_mono_ms(const struct syncer *s);
struct syncer *syncer_of(struct reconcile *r);
enum sync_id sync_id_of(struct reconcile *r);
/* Calls run(ctx) once from the loop; early when the syncer closes. */
void syncer_defer(struct syncer *s, void (*run)(void *ctx), void *ctx);
void syncer_defer_for(struct syncer *s, void (*run)(void *ctx), void *ctx, int64_t delay_ms);
int64_t syncer_now_s(const struct syncer *s);
int64_t syncer_age_s(const struct syncer *s);    /* since its start */
int64_t syncer_steady_s(const struct syncer *s); /* wall time at its start and what passed since */
void syncer_add(struct syncer *s, enum sync_id id, struct str ns, struct str name);
void syncer_hold(struct syncer *s); /* defers closing until syncer_release() */
void syncer_release(struct syncer *s);
void syncer_rescan(struct syncer *s, enum sync_id id); /* adds every key of the kind */
void syncer_rescan_kinds(struct syncer *s);            /* ... of all kinds */
/* Are these kinds' caches synced, and may this process change the host? Opens watches that are
 * missing. After false the key is added again as soon as that changes. */
bool syncer_ready(struct syncer *s, enum sync_id first, enum sync_id second, enum sync_id third);
/* A stored object is hidden no more: what runs left alone because of it is due. */
void syncer_quarantine_over(struct syncer *s);
struct reflector *syncer_watch(struct syncer *s, enum sync_id id); /* opens it on first use */
const struct resource *syncer_resource(const struct syncer *s, const char *group,
                                       const char *plural);
unsigned syncer_storage(const struct syncer *s, enum sync_id id); /* the store's resource number */
/* Does the virtual object exist: readable or quarantined, committed or in a pending transaction? */
bool syncer_has_virtual(struct syncer *s, enum sync_id id, struct str ns, struct str name);
/* The committed object of the virtual cluster as a tree, or NULL. */
cJSON *syncer_virtual(struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                      struct str name);
/* All of the virtual cluster, committed. NULL: err is set. */
const struct translate_namespaces *syncer_namespaces(struct syncer *s, struct arena *a,
                                                     struct err *err);
const cJSON *syncer_namespace_labels(struct syncer *s, struct arena *a, struct str ns);
/* The binding whose pool a host pod's label names; NULL: it has no such label, or none is bound. */
const struct config_binding *sync_binding_of(const struct syncer *s, const cJSON *host_pod);
/* Sets `reached`, durably. */
void syncer_host_reached(struct syncer *s);
