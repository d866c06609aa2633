/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * What the files of this room share: the syncer's body, its watches on the host, the memory of what
 * is where (mappings), and the steps every kind takes. One controller per kind drives one key at a
 * time and does at most one thing to the host in a run: what follows is found by the next run,
 * which reads the world again. Must never be included outside this room and its tests. */
#pragma once

#include <sublet/call.h>
#include <sublet/controller.h>
#include <sublet/host.h>
#include <sublet/host_trouble.h>
#include <sublet/reflector.h>
#include <sublet/syncer.h>
#include <sublet/translate.h>

#include "lease.h"
#include "map.h"

#define SYNCER_MAGIC     0x73796e63u
#define META_CLUSTER_UID "cluster-uid" /* of RECORD_META */

/* What is synced, and (but for events) has a controller. The order is that of the table in kinds.c.
 */
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
};
extern const struct sync_handlers SYNC_HANDLERS[N_SYNC]; /* changes.c */

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
    const struct sync_handlers *handlers;     /* of N_SYNC kinds */
    const struct reflector_options *watching; /* of all watches: what is done when one reports */
    void (*idle)(struct syncer *s);           /* nothing is deferred any more */
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
    bool asked;       /* the first question of this start came back, answered or not */
    unsigned open_parts;
    int64_t started_ms, relabel_until_ms;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* --- core.c, syncer.c --- */
#define HOST_REACHED "host-reached"
int64_t syncer_mono_ms(const struct syncer *s);
/* With a host of the caller's own (tests); the syncer owns it from here on. */
int syncer_new_with(struct vapi *api, const struct config *config, struct host *host,
                    struct syncer **ret, struct err *err) MUST_CHECK;
struct syncer *syncer_of(struct reconcile *r);
/* Runs run(ctx) once from the loop; before its time when the syncer closes. */
void syncer_defer(struct syncer *s, void (*run)(void *ctx), void *ctx);
void syncer_defer_for(struct syncer *s, void (*run)(void *ctx), void *ctx, int64_t delay_ms);
int64_t syncer_now_s(const struct syncer *s);
void syncer_add(struct syncer *s, enum sync_id id, struct str ns, struct str name);
/* Something is under way that the syncer must outlive. */
void syncer_hold(struct syncer *s);
void syncer_release(struct syncer *s);
/* Adds every key the kind may have something to do for. */
void syncer_rescan(struct syncer *s, enum sync_id id);
/* Everything: the host is back, or may be changed again. */
void syncer_rescan_all(struct syncer *s);
/* May this run talk to the host, with these copies complete? Opens what is not watched yet. When
 * not, the run has nothing to do: its key comes again when it can. */
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

/* --- revisions.c: the newest host object on record, of each kind --- */
uint64_t revision_on_record(struct syncer *s, enum sync_id id); /* 0: none in this life */
/* With the record that says that the object is there. */
void revision_note(struct syncer *s, enum sync_id id, const cJSON *host_object);
void revisions_forget(struct syncer *s);

/* --- life.c: one history of our records and the host's objects --- */
#define LIFE_FIRST 1
void life_open(struct syncer *s); /* at start, before anything else reads records */
bool life_is_first(const struct syncer *s);
/* The host was restored to an earlier state, or is another one. */
void life_host_changed(struct syncer *s, const char *why);
void life_keep(struct syncer *s);      /* a failed transaction may have taken its beginning back */
void life_watch_all(struct syncer *s); /* what is on the host is not known to be what we made */
void life_listed(struct syncer *s, enum sync_id id); /* the first list of a kind is complete */
enum life_absence {
    ABSENCE_PROVEN,         /* the host object was there and was deleted */
    ABSENCE_OPEN,           /* not known yet: the keys come again when it is */
    ABSENCE_OF_ANOTHER_LIFE /* what is recorded was never on this host, or may not have been */
};
/* What does it prove that the host object of m, which has a host_uid, is missing? */
enum life_absence life_absence(struct syncer *s, enum sync_id id, const struct mapping *m);
/* False: a later epoch of this virtual cluster has it. */
bool life_owns(const struct syncer *s, const cJSON *host_object);
/* Does it carry our epoch? What becomes of an object before it does may have been requested before
 * the restore, which took that back: it proves nothing. */
bool life_has_taken_up(const struct syncer *s, const cJSON *host_object);

/* --- quarantine.c: host objects that no record proves ours --- */
/* Enters it, or ends its quarantine, by what the records say now. */
void quarantine_judge(struct syncer *s, enum sync_id id, const cJSON *host);
void quarantine_end(struct syncer *s, enum sync_id id, struct str host_name);
bool quarantine_has(struct syncer *s, enum sync_id id, struct str host_name);
size_t quarantine_count(struct syncer *s, enum sync_id id);
void quarantine_compare(struct syncer *s, enum sync_id id); /* all that the watch shows */
void quarantine_start(struct syncer *s); /* reports what is on record, and watches it */

/* --- mapping.c: which host object is whose, in the tenant's own store --- */
enum { MAPPING_OLD = 6 };
struct mapping {
    bool exists;
    bool tried;                  /* a create was sent and its outcome is not known */
    int64_t gone_s;              /* since when a tried one is without its virtual object; 0: not */
    struct str uid;              /* of the virtual object */
    struct str host_uid;         /* empty: not known to have been on the host */
    int64_t life;                /* in which that was last seen */
    struct str given;            /* what the host allocated to it, "a,b"; of Services */
    bool headless;               /* a Service that takes no address of the host's */
    struct str old[MAPPING_OLD]; /* virtual uids before, whose host objects may linger */
    size_t n_old;
};
struct mapping mapping_get(struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                           struct str name);
/* Without what departed.c knows and no record does. */
struct mapping mapping_on_record(struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                                 struct str name);
void mapping_put(struct syncer *s, enum sync_id id, struct str ns, struct str name,
                 const struct mapping *m);
void mapping_remove(struct syncer *s, enum sync_id id, struct str ns, struct str name);
/* Makes uid the current one (what was goes to the old; the oldest is lost when mapping_is_full());
 * false when it is already. */
bool mapping_begin(struct mapping *m, struct str uid);
bool mapping_is_full(const struct mapping *m);
/* The host object of m was there in this life. False: m says so already. */
bool mapping_set_host(const struct syncer *s, struct mapping *m, struct str host_uid);
/* A host object of ours came. It may have left before a run looks, or a restart may come first:
 * that it was there must be known all the same. */
void mapping_note_host(struct syncer *s, enum sync_id id, struct str ns, struct str name,
                       struct str uid, const cJSON *host_object);
/* How many other Services are, or may be, on the host: with an address there, or headless. */
size_t mapping_count_services(struct syncer *s, bool headless, struct str but_ns,
                              struct str but_name);
/* Is it recorded that the host object carrying uid was made for a virtual object of this key? The
 * proof before a deletion. Of claims, whose data cannot be made again, the record must be of this
 * life. */
bool mapping_proves(const struct syncer *s, enum sync_id id, const struct mapping *m,
                    struct str uid);
/* Was uid ever the uid of a virtual object under this key? */
bool mapping_knows(const struct mapping *m, struct str uid);

/* --- exchange.c: one run's talk with the host --- */
/* Everything a run for one namespaced key looks at. */
struct sync_run {
    struct syncer *syncer;
    struct reconcile *reconcile;
    struct arena *arena;
    enum sync_id id;
    struct str ns, name;
    char host_name[64];
    struct mapping mapping;
    cJSON *virtual_;      /* committed; NULL: gone */
    cJSON *host;          /* as watched; NULL: none, or not watched */
    struct str uid;       /* of virtual_ */
    struct str host_uid;  /* metadata.uid of host */
    struct str owner_uid; /* virtual uid the host object carries */
    bool was_tried;       /* an attempt before this run's own has no certain end yet */
    /* What to do when the host refuses a create for good; NULL: the refusal is reported. True: it
     * was dealt with. */
    bool (*on_refusal)(struct sync_run *run, const struct err *err);
};
/* False when there is nothing to look at: the key is not "ns/name", or its object or a successor of
 * it is not committed yet (the key comes back). */
bool sync_run_init(struct sync_run *run, struct reconcile *r, enum sync_id id);

typedef void (*sync_then)(struct sync_run *run, const struct host_answer *answer,
                          const struct err *err);
/* The run stays open until the answer came and then() ran. */
void sync_ask(struct sync_run *run, const struct host_request *q, sync_then then);
struct str sync_path(struct arena *a, const struct syncer *s, enum sync_id id, struct str host_name,
                     const char *tail);
/* Creates the host object: notes the attempt, learns the answer. What exists already is adopted
 * when it carries this virtual object's uid, removed when it carries another one of ours, and else
 * said. */
void sync_create(struct sync_run *run, const cJSON *object);
/* The record is the virtual object's from here on. */
void sync_take_mapping(struct sync_run *run);
/* Around any create under this key: notes it first, and its end when the answer says for certain
 * what became of it. What is not certain keeps the record for as long as it may still happen. */
void sync_attempt(struct sync_run *run);
void sync_attempt_over(struct sync_run *run, const struct err *err);
/* No answer, or one that does not say whether it was done. */
bool sync_is_uncertain(const struct err *err);
/* Nothing of the virtual uids before is on the host any more: their GPUs are free. */
void sync_forget_old(struct sync_run *run);
/* With the uid of what we saw; grace -1: the object's own. */
void sync_delete(struct sync_run *run, int64_t grace_s);
/* A merge patch (or type) of the host object, refused when it is another one by now. */
void sync_patch(struct sync_run *run, cJSON *patch, const char *type, const char *subresource);
/* What the host refused, told on the virtual object and tried again with backoff. */
void sync_refused(struct sync_run *run, const struct err *err);
/* A create without an answer may still be executed: the key comes back when it no longer can be. */
bool sync_create_may_come(struct sync_run *run);
/* The virtual object is gone: removes what the mapping proves, then the mapping. True: nothing is
 * left (and mapping_remove() was called). */
bool sync_finish_gone(struct sync_run *run, int64_t grace_s);
/* Where a host object is not this virtual object's. True: it was dealt with, the run is over. */
bool sync_settle_owner(struct sync_run *run);
/* The record's host object was in another life: it is to be created again, with an Event. */
void sync_begin_again(struct sync_run *run);
/* Has the virtual object a version that is not committed yet? */
bool sync_is_being_written(const struct sync_run *run);
/* Is it deleted on a request from before the restore? It is waited for, and created again. */
bool sync_is_leaving(const struct sync_run *run, const cJSON *object);
struct str sync_uid(const cJSON *object);

/* --- refs.c: which ConfigMaps, Secrets and claims pods need --- */
struct refs *refs_new(struct syncer *s);
struct refs *refs_free(struct refs *r);
/* pod NULL: it is gone. Adds the keys of what is wanted, or no longer, to their controllers. */
void refs_pod(struct refs *r, struct str pod_key, const cJSON *pod);
bool refs_wanted(const struct refs *r, enum sync_id id, struct str ns, struct str name);
/* It is on the host now: the pods that may wait for it come again. */
void refs_wake(struct refs *r, enum sync_id id, struct str ns, struct str name);

/* --- tokens.c --- */
/* True: the pod's token Secret is as it must be (or none is wanted). False: the run does it, or
 * waits. */
bool tokens_ensure(struct sync_run *run);
/* True: it is gone. */
bool tokens_remove(struct sync_run *run);

/* --- pod_down.c, pod_up.c --- */
const cJSON *pod_namespace_labels(struct syncer *s, struct arena *a, struct str ns);
int pod_choose(struct syncer *s, struct arena *a, const cJSON *pod, struct pool_choice *ret,
               struct err *err) MUST_CHECK;
int pod_translate(struct syncer *s, struct arena *a, const cJSON *pod,
                  const struct pool_choice *choice, bool with_services, cJSON **ret,
                  struct err *err) MUST_CHECK;
void pod_create(struct sync_run *run);
/* Does this pod's host pod, as watched, run on the node? */
bool pod_is_on(struct syncer *s, struct arena *a, const cJSON *pod, struct str node);
/* True: a change is under way. */
bool pod_update_down(struct sync_run *run);
/* True: a write is under way; when it turns out to have changed nothing, pod_settled() follows. */
bool pod_update_up(struct sync_run *run);
void pod_settled(struct sync_run *run); /* what is left to do when the tenant knows it all */
void pod_remove_virtual(struct sync_run *run, int64_t grace_s);
/* It has to run again: its node and what was reported of it are taken back. */
void pod_unbind(struct sync_run *run);
/* Is the host's pod, of another uid, what this virtual pod would be made into? */
bool pod_fits_host(struct sync_run *run);
/* The virtual pod's PodScheduled condition while it is not on the host. */
void pod_say_waiting(struct sync_run *run, const char *reason, struct str message);

/* --- relabel.c: labels that go down under other keys than before --- */
/* True: pods still lack the keys the Service is about to select by; its key comes again. */
bool relabel_service_waits(struct sync_run *run, const cJSON *object);
void relabel_service_changed(struct syncer *s, const struct host_object *now,
                             const struct host_object *before);
/* The patch without the removal of keys that a Service still selects by; NULL: nothing is left. */
cJSON *relabel_pod_keep(struct sync_run *run, const cJSON *wanted, cJSON *patch);

/* --- departed.c: removals on the host, until they are on record --- */
void departed_note(struct syncer *s, enum sync_id id, struct str ns, struct str name,
                   struct str uid, const cJSON *host_object);
/* What m lacks because its transaction failed. */
void departed_apply(const struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                    struct str name, struct mapping *m);
void departed_again(struct syncer *s); /* after a failed transaction */
void departed_fini(struct syncer *s);

/* --- failed.c: the cap on failed pods --- */
struct failed_pods *failed_new(struct syncer *s);
struct failed_pods *failed_free(struct failed_pods *f);
/* True: this one has to go. */
bool failed_note(struct failed_pods *f, struct str key, bool failed);

/* --- ledger.c: GPUs, exactly --- */
/* Row of a pod: which pool it is charged to. NULL when it is charged to none. */
const struct config_binding *ledger_charged(struct syncer *s, struct str uid);
/* Checks the limit and (unless dry_run) charges. FORBIDDEN when over and the binding rejects; 0
 * with *ret_queued when it has to wait. */
int ledger_charge(struct syncer *s, struct arena *a, const struct pool_choice *choice,
                  struct str uid, struct str pod_name, bool dry_run, bool *ret_queued,
                  struct err *err) MUST_CHECK;
/* Wakes the pods that wait for the pool. */
void ledger_release(struct syncer *s, struct str uid);
struct rational ledger_used(struct syncer *s, const struct config_pool *pool);
/* True when it may start: it is charged already, or is now. False: it waits, and says so. */
bool ledger_admit(struct sync_run *run, const struct pool_choice *choice);
/* A pod that runs already is charged whatever the limit. */
void ledger_force(struct syncer *s, const struct pool_choice *choice, struct str uid);
struct ledger *ledger_new(struct syncer *s);
struct ledger *ledger_free(struct ledger *l);

/* --- nodes.c --- */
struct nodes *nodes_new(struct syncer *s);
struct nodes *nodes_free(struct nodes *n);
void nodes_pod_changed(struct nodes *n, const cJSON *now, const cJSON *before); /* host pods */
void nodes_host_changed(struct nodes *n); /* the host's nodes are not what they were */
/* What a tenant means that names this node; ctx of translate_tenant.node_ctx is the nodes. */
enum translate_node nodes_meaning(void *nodes, struct str name);
/* The hook: would the host place what the syncer makes of this pod on the node? True where nothing
 * is known of it, or it is the tenant's own. */
bool nodes_admit(struct syncer *s, struct arena *a, struct str ns, const cJSON *pod,
                 struct str node);
/* Sets tenant.nodes_shown, for messages that count nodes. */
void nodes_count(struct syncer *s);
/* True when the host's nodes are known, or known to be unreadable. */
bool nodes_known(const struct nodes *n);
/* True when the virtual cluster has this node; else it will, and the pod's key comes again. */
bool nodes_ensure(struct nodes *n, struct str node, struct str pod_key);
void nodes_map_event(struct controller *c, const struct store_event *e);
/* Hook admit: whoever changes what the host has the last word on is told so by a Warning. */
bool node_wants_notice(const cJSON *object, const cJSON *old);
void node_notice(struct syncer *s, struct arena *a, void (*done)(void *ctx, const struct err *err),
                 void *ctx);

/* --- claims.c --- */
/* Of a class that is not offered, but that the tenant has a StorageClass or volumes of: the claim
 * is for a provisioner of its own, and never goes down. */
bool claim_is_own(struct syncer *s, struct arena *a, const cJSON *claim);

/* --- classes.c --- */
bool class_is_default(const cJSON *class); /* a StorageClass of the host */
/* The host's StorageClasses were read, changed, or may not be read: which is the default? */
void classes_look(struct syncer *s);
void classes_priority_changed(struct syncer *s, const struct host_object *now,
                              const struct host_object *before);

/* --- events.c --- */
struct events_up *events_up_new(struct syncer *s);
struct events_up *events_up_free(struct events_up *e);
void events_changed(struct syncer *s, const struct host_object *now,
                    const struct host_object *before);
/* A pod, claim or service as it is now (NULL: gone): events that came ahead of it are told. */
void events_object_known(struct syncer *s, const struct host_object *now);

/* --- services.c, admit_service.c --- */
bool service_wants_host(const cJSON *service);
bool service_is_headless(const cJSON *service);
/* One more of them on the host, of this key: FORBIDDEN in a quota's words beyond sync.maxServices.
 * m: the key's record; the caller puts it in the same turn of the loop, so the bound is exact. */
int service_check_room(struct syncer *s, const cJSON *service, const struct mapping *m,
                       struct err *err) MUST_CHECK;
/* The address this Service has goes into the host object made for it again, when the record says
 * that the host gave it. FORBIDDEN for any other. */
int service_keep_address(struct arena *a, const struct mapping *m, const cJSON *service,
                         cJSON *host_object, struct err *err) MUST_CHECK;
int service_before_store(struct syncer *s, struct arena *a, const cJSON *object, bool dry_run,
                         struct err *err) MUST_CHECK;
bool service_is_api(struct str ns, struct str name);
/* kube-system/kube-dns, unless it is the tenant's own. object NULL: it is gone. */
bool service_is_dns(struct syncer *s, const cJSON *object, struct str ns, struct str name);
void service_publish_dns(struct syncer *s); /* once its address is known */
void service_admit(struct syncer *s, struct arena *a, cJSON *object, const cJSON *old, bool dry_run,
                   void (*done)(void *ctx, const struct err *err), void *ctx);
void service_admit_undo(struct syncer *s, const cJSON *object);
bool service_wants_admit(struct syncer *s, const cJSON *object, const cJSON *old);
bool service_in_admission(const struct syncer *s, struct str ns, struct str name);
void service_stored(struct syncer *s, const cJSON *object);
struct admits *admits_new(struct syncer *s);
struct admits *admits_free(struct admits *a);

/* --- dry_run.c --- */
struct dry_runs *dry_runs_new(struct syncer *s);
struct dry_runs *dry_runs_free(struct dry_runs *d);
void dry_runs_forget(struct dry_runs *d); /* the host answers otherwise by now */
enum dry_run_patience {
    DRY_RUN_NOW,    /* not asked when others have to go first */
    DRY_RUN_URGENT, /* a write waits for it */
    DRY_RUN_PATIENT /* a tenant's own dry run: after those */
};
struct dry_run {
    enum sync_id id;
    const cJSON *object;   /* of the host, under its real name */
    struct str also_named; /* what else in it is only its own */
    enum dry_run_patience patience;
    int64_t timeout_ms;
};
/* host_name: under which it was asked about. err NULL: admitted, and body is the answer unless that
 * was long. TOO_MANY_REQUESTS: it had no turn; refused: see below; other errors: no answer. */
typedef void (*dry_run_cb)(void *ctx, struct str host_name, struct str body, const struct err *err);
/* done() comes exactly once, from the loop. */
void dry_run_ask(struct syncer *s, struct arena *a, const struct dry_run *q, dry_run_cb done,
                 void *ctx);
bool dry_run_refused(const struct err *err); /* the host would refuse the object itself */

/* --- verdict.c --- */
bool verdict_wanted(const struct syncer *s, const struct resource *r, const cJSON *object,
                    const cJSON *old);
void verdict_ask(struct syncer *s, struct arena *a, const struct resource *r, const cJSON *object,
                 bool dry_run, void (*done)(void *ctx, const struct err *err), void *ctx);

/* --- streams.c: logs, exec, attach, port-forward, proxies --- */
struct proxy;
struct streams *streams_new(void);
void streams_connect(struct syncer *s, struct proxy *p); /* the hook */

/* descriptions.c: one of the host's OpenAPI documents; the hook. */
void descriptions_ask(struct syncer *s, struct str path, int64_t timeout_ms,
                      void (*done)(void *ctx, struct str body, const struct err *err), void *ctx);
void streams_stop(struct streams *all);            /* ends all of them */
void streams_bar(struct streams *all);             /* but logs: nothing may change the host */
struct streams *streams_free(struct streams *all); /* takes NULL */

/* --- dialogue.c: what is wrong with the host, as standing notices --- */
void dialogue_watch(struct syncer *s);
/* A duty of its own towards the host is not done ("kubeconfig"); reason NULL: it is. */
void dialogue_note(struct syncer *s, const char *duty, const char *reason, struct str message,
                   struct str detail);

/* --- leader.c: what the Lease means for the API --- */
void leader_new(struct syncer *s);
void leader_start(struct syncer *s);
void leader_stop(struct syncer *s); /* answers what waits for the first decision */

/* --- lacking.c --- */
/* Finds out what of our data the life that took over lacks, writes all of it to `lacking.txt` in
 * the data directory, and says so to done(), at once or once deletions were read from disk. One at
 * a time. */
void lacking_start(struct syncer *s, struct str our_epoch, struct str fork,
                   void (*done)(struct syncer *s, struct str report));
void lacking_stop(struct syncer *s); /* done() is not called any more */

/* --- hooks.c --- */
void hooks_register(struct syncer *s);

/* --- address.c: under which addresses pods find this API and its DNS --- */
void address_find(struct syncer *s);
/* The host answered about this cluster: remembered, over restarts too. */
void syncer_host_reached(struct syncer *s);

/* --- runtime_classes.c: those of the pools, once at start --- */
void runtime_classes_publish(struct syncer *s);

/* --- publish.c --- */
struct publisher *publisher_new(struct syncer *s);
void publisher_kick(struct publisher *p); /* the host is back */
/* After host_stop(). Its memory goes with its timer. */
void publisher_close(struct publisher *p);
