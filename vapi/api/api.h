/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api)
 *
 * What the files of the API core share: the control plane's body, the life of a call, and the steps
 * between a request's bytes and its verb handler. Must never be included outside vapi/api. */
#pragma once

#include <sys/queue.h>

#include <uv.h>

#include <sublet/admission.h>
#include <sublet/call.h>
#include <sublet/clock.h>
#include <sublet/controller.h>
#include <sublet/crd.h>
#include <sublet/net.h>
#include <sublet/read_only.h>

#include "read.h"

#define VAPI_MAGIC     0x5AB1E7A0u
#define CALL_MAGIC     0xCA11CA11u
#define API_MAX_BODY   (3u * 1024 * 1024)
#define API_MAX_CHECKS 16
/* An arena's limit for one call: the decoders check it (bodies are at most 3 MiB of JSON). */
#define API_CALL_ARENA (256u * 1024 * 1024)
#define API_GZIP_FROM  (128u * 1024)

struct events;
struct held_call;
struct expiry;
struct notices;
struct api_audit;
struct budget;
struct api_metrics;
struct call_audit;
struct flow;
struct flows;
struct series;
struct openapi;
struct streaming;
struct vapi_renewals;

struct api_check {
    char *name;
    const char *(*check)(void *ctx);
    void *ctx;
};

struct api_metric_writer {
    void (*write)(void *ctx, struct buf *out);
    void *ctx;
};

/* new -> starting -> serving -> draining -> stopping -> closed */
enum api_state { API_NEW, API_STARTING, API_SERVING, API_DRAINING, API_STOPPING, API_CLOSED };

/* Revisions of the last minutes, oldest first; see list_token.c. */
struct token_marks {
    struct {
        int64_t at_ms, revision;
    } mark[16];
    size_t n;
    int64_t floor; /* the newest revision that is too old to list from */
};

struct vapi {
    unsigned magic;
    enum api_state state;
    struct vapi_options o;
    struct vapi_hooks hooks;
    const struct call_handlers *handlers;
    void (*call_ended)(struct vapi *api); /* one call less; vapi.c */
    void (*all_closed)(struct vapi *api); /* open_handles is 0; vapi.c */
    size_t call_arena;                    /* the limit of one call's arena */
    char *version;
    struct registry *registry;
    struct auth *auth;
    struct crds *crds;
    struct controllers *controllers;
    struct net_server *server;
    struct admission_memo *admission_memo;
    struct events *events;
    struct notices *notices;
    struct expiry *expiry;
    struct openapi *openapi; /* NULL until somebody asks */
    char flow_uid[37],
        level_uid[37]; /* of the headers that tell clients not to throttle themselves */
    struct api_check checks[API_MAX_CHECKS];
    size_t n_checks;
    bool store_asked; /* whether it answers; health_checks.c */
    int64_t store_asked_ms;
    struct api_metric_writer metric_writers[API_MAX_CHECKS];
    size_t n_metric_writers;
    struct api_audit *audit;     /* NULL: there is no audit log */
    struct api_metrics *metrics; /* NULL until the first request */
    struct flows *flows;
    struct streaming *streaming;
    struct budget *budget;
    struct token_marks tokens;
    struct vapi_order *orders; /* read_only.c */
    struct held_call *held;    /* writes that wait, in order of their arrival */
    bool holding;
    struct vapi_address address; /* where it is reached */
    struct arena *address_texts; /* of it; NULL: it was not published yet */
    void (*address_changed)(void *ctx);
    void *address_ctx;
    uv_timer_t deadline; /* of the call that is due first */
    int64_t deadline_ms;
    /* Calls that were not answered, or whose exchange is still open; oldest first. */
    struct call_entry *first, **last;
    uint64_t sequence;
    /* Answers that must not be given before the caller returned. */
    uv_idle_t idle;
    struct deferred *deferred, **last_deferred;
    uv_timer_t renewal;             /* of certificates */
    struct vapi_renewals *renewals; /* NULL before it listens, and without keys */
    bool watches_stale;             /* watch.c looks at them when the caller returned */
    unsigned open_handles, closing_parts;
    void (*ready)(void *ctx, const struct err *err);
    void *ready_ctx;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* The call and its place in the list of calls; the call is given out. */
struct call_entry {
    struct call call; /* first: a call's address is its entry's */
    struct call_entry *next, **prev;
    uint64_t sequence;
    bool answered, exchange_open, delivering, running;
    struct str audit_id;
    bool gzip;
    struct net_header *headers; /* call_header() */
    size_t n_headers;
    const struct store_object *object; /* what an in-process caller will be shown */
    struct err *error;
    const struct err *unacceptable; /* of an endpoint: why Accept cannot be met, or no kind */
    /* observe.c; all of it stays zero for a call from inside */
    int64_t began_us;
    bool observed, long_running;
    int stream_code; /* of a streamed answer that began */
    bool streaming;  /* a whole answer began, and is sent while it is made */
    struct call_audit *audit;
    struct series *series;        /* of the gauge that counts it */
    int64_t due_ms, final_due_ms; /* deadline.c; 0: never */
    /* flow.c */
    struct flow *flow;
    TAILQ_ENTRY(call_entry) in_queue;
    struct str flow_uid, level_uid;
    void (*run)(void *ctx);
    void *run_ctx;
    uint64_t queued_us;              /* when, while it is queued; then for how long */
    size_t answer_bytes, body_bytes; /* the latter while it waits */
    bool mutating, queued, seated;
    size_t reserved; /* budget.c */
};

/* context.c */
/* Runs run(ctx) once from the loop, after everything that is on the stack has returned. */
void api_defer(struct vapi *api, void (*run)(void *ctx), void *ctx);
/* One of api->open_handles is closed. */
void api_handle_closed(struct vapi *api);

/* registry.c */
void registry_sweep(struct registry *g, uint64_t oldest_call);
void registry_set_clock(struct registry *g, const uint64_t *sequence);

/* call.c */
struct call *call_new(struct vapi *api);
struct call_entry *call_entry(struct call *c);
/* A call from inside as `user`, which must outlive it; answers go to done(). */
struct call *call_inside(struct vapi *api, const struct user *user, enum call_verb verb,
                         const struct resource *r, const struct subresource *sub, struct str ns,
                         struct str name, vapi_done_cb done, void *ctx);
/* Takes over the call, its body decoded into c->body, and answers it once. */
typedef void (*call_handler)(struct call *c);
/* What the files above the call do for it. */
struct call_handlers {
    call_handler verbs[CALL_N_VERBS];          /* of objects and their status */
    call_handler subresources[N_SUBRESOURCES]; /* SUB_STATUS: none */
    /* Non-resource endpoints, ended by NULL: true when path was theirs, and answered. */
    bool (*const *endpoints)(struct call *c, struct str path);
    /* In place of its handler, for a write that has to wait or is refused; NULL: as it is. */
    call_handler (*instead)(const struct call *c);
    /* Its answer, as call.h has them. */
    void (*error)(struct call *c, const struct err *err);
    void (*give_up)(struct call *c, const struct err *err, struct str text);
    void (*tree)(struct call *c, int status, cJSON *object);
    void (*raw)(struct call *c, int status, struct str content_type, struct str body);
    void (*annotate)(struct call *c, struct str key, struct str value);
    void (*ended)(struct call *c); /* right before it is freed */
};
call_handler read_only_handler(const struct call *c); /* read_only.c: call_handlers.instead */
/* Of c, for the admission of operation: "CREATE", "UPDATE", "DELETE". */
void call_admission(struct call *c, const char *operation, struct admission_call *ret);
/* The group, version and kind a body of this call must have (the subresource's where it has one).
 */
void body_expected(const struct call *c, struct str *group, struct str *version, struct str *kind);
/* Whether writes are possible may have changed: who pauses learns it. */
void read_only_settle(struct vapi *api);
/* disk.c */
void disk_watch(struct vapi *api);
void disk_unwatch(struct vapi *api);
/* A refused write that the notice stands for. */
bool disk_excuses(const struct vapi *api, const struct err *err);
void call_run(struct call *c); /* the handler of its verb and subresource */
void call_exchange_closed(void *ctx);
void call_exchange_drained(void *ctx);
/* A copy in a of err and all it points to. */
struct err *call_keep_error(struct arena *a, const struct err *err);
/* Around handing an answer to the network, which may close the exchange at once. */
void call_hold(struct call *c);
void call_release(struct call *c);
/* The handler is through with c. An in-process caller is told err or object (a reference is taken).
 */
void call_finish(struct call *c, const struct err *err, const struct store_object *object);

/* call.c */
/* Answers a call whose handler has not: it is let go of, or goes on and answers nobody. text in
 * place of err as a Status, where there is one. */
void call_give_up(struct call *c, const struct err *err, struct str text);

/* Verb handlers (read.c, watch.c, write.c, delete.c, collection.c). */
void call_get(struct call *c);
void call_list(struct call *c);
void call_watch(struct call *c);
void watch_registry_changed(void *ctx); /* the vapi; for registry_on_change() */
void call_create(struct call *c);
void call_update(struct call *c); /* also /status and /scale, by c->sub */
void call_patch(struct call *c);
void call_delete(struct call *c);
void call_delete_collection(struct call *c);

/* request.c */
struct target {
    bool is_resource;   /* an API path with a resource in it */
    bool by_path_watch; /* the deprecated /watch/ prefix */
    enum net_method method;
    const char *verb; /* as RBAC names it; of a non-resource request the lower-case method */
    struct str group, version, resource, sub, ns, name;
    struct str path_name; /* name as in the path; a field selector may set the other one */
    struct str path;      /* decoded */
    struct str rest;      /* what follows the subresource, without the slash */
};
/* What is asked, as authorisers, audit policies and FlowSchemas look at it. */
struct attributes request_attributes(const struct target *t);
/* False when the path cannot be decoded. */
bool request_target(struct arena *a, const struct net_request *r, struct target *ret);

/* query.c */
struct query_item {
    struct str name, value;
};
struct query {
    const struct query_item *items;
    size_t n;
};
/* %XX and + decoded; a pair that cannot be decoded is left out, as Go's URL.Query() does. */
void query_parse(struct arena *a, struct str text, struct query *ret); /* drops what is too much */
int query_parse_all(struct arena *a, struct str text, struct query *ret,
                    struct err *err) MUST_CHECK;               /* refuses it */
struct str query_get(const struct query *q, const char *name); /* first; STR_NULL when absent */
bool query_truth(struct str value); /* the parameter codec's idea of a boolean */

/* options.c */
int options_parse(struct call *c, const struct query *q, struct err *err) MUST_CHECK;
/* DeleteOptions from a decoded body: it replaces what the query said. */
int options_from_body(struct call *c, const cJSON *body, struct err *err) MUST_CHECK;
/* Checks and parses the selectors of c->options (they were copied there by options_parse). */
int options_selectors(struct call *c, struct err *err) MUST_CHECK;

/* status.c: a decoder's message without the place, which Go does not report. */
struct str body_error_text(struct str message);

/* body.c */
/* c->patch by the content type: 415 for what this resource cannot be patched with. */
int body_patch_type(struct call *c, struct err *err) MUST_CHECK;
/* Reads c->request->body into c->body. */
int body_decode(struct call *c, struct err *err) MUST_CHECK;
/* A body decoded with another kind or version than the URL's is refused; absent ones are set. */
int body_check_kind(struct call *c, struct err *err) MUST_CHECK;
/* What a patch made: still of its kind, and of its shape. */
int body_check_patched(struct call *c, cJSON *patched, struct err *err) MUST_CHECK;
/* Types, nulls and canonical texts by the schema; unknown fields are noted in c->strict. */
int body_normalise(struct call *c, cJSON *object, struct err *err) MUST_CHECK;
/* c->body as a question or an order that is not stored as it is (a review, a Binding, an Eviction):
 * normalised and judged, in the namespace of the request, without what its type does not know. */
int body_take(struct call *c, struct err *err) MUST_CHECK;
/* 422 about what a patch made. */
int body_refuse_patched(struct call *c, const cJSON *patched, struct str why,
                        struct err *err) MUST_CHECK;
/* `Pod in version "v1" cannot be handled as a Pod: why` */
int body_refuse(struct call *c, const char *why, struct err *err) MUST_CHECK;
/* The kind and version of the URL, whatever the tree says. */
void body_set_kind(struct call *c, cJSON *tree);
/* Why a tree that is no object is no body. */
struct str body_not_object(const struct call *c, const cJSON *tree);
/* Turns c->strict into warnings, or into 400 (422 for patches) when validation is strict. */
int body_strict(struct call *c, const cJSON *patched, struct err *err) MUST_CHECK;

/* Non-resource endpoints: discovery.c, openapi.c, health.c; see call_handlers. */
bool discovery_handle(struct call *c, struct str path);
bool openapi_handle(struct call *c, struct str path);
bool health_handle(struct call *c, struct str path);

/* negotiate.c */
/* Chooses the form of the answer from Accept, Accept-Encoding, User-Agent and the query. */
int respond_negotiate(struct call *c, const struct query *q, struct err *err) MUST_CHECK;
/* Whether Accept names one of types (NULL-ended) or anything: what upstream's router looks at. */
bool respond_routable(const struct call *c, const char *const *types);
/* 406 in the words of that router. */
int respond_unroutable(struct err *err, const char *available) MUST_CHECK;
/* Tables and partial objects are not for reviews and the like. */
bool respond_forms(const struct call *c);

/* The media types of an Accept header by falling quality; an empty one accepts all. */
size_t respond_accepted(struct str accept, struct str *types, size_t max);

/* openapi.c */
void openapi_close(struct openapi *o, void (*closed)(void *ctx), void *ctx);

/* respond.c */
void respond_error(struct call *c, const struct err *err);
void respond_give_up(struct call *c, const struct err *err, struct str text);
void respond_tree(struct call *c, int status, cJSON *object);
void respond_raw(struct call *c, int status, struct str content_type, struct str body);
/* Like call_raw(), by reference. */
void respond_slice(struct call *c, int status, struct str content_type, struct net_slice body);
void respond_text(struct call *c, int status, const char *text);
/* An object that is not stored, a dry run's or one that went away, in the form asked for. */
void respond_object(struct call *c, int status, cJSON *object);

/* meta.c */
/* Kind, apiVersion and metadata first, metadata's members in upstream's order. */
void meta_canonical(cJSON *object);
cJSON *meta_of(struct arena *a, cJSON *object);
void meta_wipe(struct arena *a, cJSON *object);
void meta_fill(struct vapi *api, struct arena *a, cJSON *object);
int meta_wrong_namespace(struct err *err) MUST_CHECK;
int meta_check_namespace(const struct call *c, struct arena *a, cJSON *object,
                         struct err *err) MUST_CHECK;
/* Duplicate entries of ownerReferences leave, with upstream's warning. */
void meta_dedup_owners(struct call *c, cJSON *object, bool after_admission);
void meta_generate_name(struct vapi *api, struct arena *a, cJSON *object);
void meta_validate(struct field_errors *e, const struct resource *r, const cJSON *object);
/* What upstream looks at when a new object's kind found nothing wrong with it. */
void meta_validate_last(struct field_errors *e, const struct resource *r, const cJSON *object);
void meta_validate_update(struct field_errors *e, const struct resource *r, const cJSON *object,
                          const cJSON *old, bool on_status);
void meta_warn_finalizers(struct call *c, const cJSON *object, const cJSON *old);
/* Carries over what an update cannot change: generation, uid, creation and deletion. */
void meta_carry_over(struct arena *a, cJSON *object, const cJSON *old);
/* All but kind, apiVersion, metadata and status: what metadata.generation counts. */
bool meta_spec_equal(const cJSON *a, const cJSON *b);
bool meta_has_finalizers(const cJSON *object);
void meta_set_revision(struct arena *a, cJSON *object, int64_t revision);

/* write.c */
/* How a subresource differs from a plain write. All members may be NULL. */
struct write_plan {
    /* What is stored, from the base (a fresh tree, the handler's to change) and c->body. */
    int (*make)(struct call *c, cJSON *base, cJSON **ret, struct err *err);
    /* Instead of ops->validate; old is never NULL. */
    void (*validate)(struct field_errors *e, const cJSON *object, const cJSON *old);
    /* Instead of the object; it has its revision (the old one in a dry run). */
    void (*answer)(struct call *c, int status, cJSON *object);
    /* Instead of ops->prepare_update: what is kept of the object. */
    cJSON *(*prepare)(struct arena *a, cJSON *object, const cJSON *old);
    bool uncounted; /* no change of the spec for metadata.generation */
    bool whole;     /* the handler owns the whole object: no status split, no ops->prepare_update */
};
/* By c->verb: create, update or patch; update of c->name with a plan that makes the object needs no
 * body. */
void write_start(struct call *c, const struct write_plan *plan);
/* body, merged, applied or as it is, onto object by c->patch (verb PATCH) or in its place (UPDATE).
 */
int write_apply_body(struct call *c, cJSON *object, cJSON **ret, struct err *err) MUST_CHECK;

/* commit.c */
/* Prints object with the next revision and hands it to the store; uid, ns and name are the
 * object's. old: what it replaces, before: its tree; NULL for a create. *ret (may be NULL) gets a
 * reference to the new latest. */
int commit_object(struct call *c, enum store_op op, cJSON *object, const struct store_object *old,
                  const cJSON *before, const struct store_object **ret, struct err *err) MUST_CHECK;
/* Turns a call about a built-in kind to the version that is stored; returns the one that was asked
 * for, which must be put back before the answer. */
const struct resource *commit_hub(struct call *c);
bool resource_is_pod(const struct resource *r);
bool resource_is_namespace(const struct resource *r);
/* 404 of c->name. */
int commit_not_found(struct call *c, struct err *err) MUST_CHECK;
/* 409: the object has been modified. */
int commit_modified(struct call *c, struct err *err) MUST_CHECK;

/* managed.c, apply.c */
/* Keeps managedFields of object in step with what a create (old NULL) or update changed. Both are
 * in the stored version; asked is that of the request. */
void managed_update(struct call *c, const struct resource *asked, const cJSON *old, cJSON *object);
/* c->body applied to live (NULL: there is none yet), which is used up. */
int managed_apply(struct call *c, cJSON *live, cJSON **ret, struct err *err) MUST_CHECK;
/* An object that differs from the old one in the times of managedFields only gets those back. */
void managed_keep_times(struct arena *a, cJSON *object, const cJSON *old);

/* admit.c */
/* hooks.check_pod and check_claim on a pod or claim (refusal), or on the templates of them in
 * object (warning). old NULL: a create. */
int admit_shape(struct call *c, const cJSON *object, const cJSON *old, struct err *err) MUST_CHECK;

/* sub_*.c */
void sub_scale(struct call *c);
void sub_replace(struct call *c);
/* 201 and a Status Success without details: what binding and eviction answer. */
void sub_answer_status(struct call *c);
/* A condition of a pod becomes true, now unless it was. */
void sub_pod_condition(struct call *c, cJSON *pod, const char *type, struct str reason,
                       struct str message);
/* delete.c */
/* Why a removal would be refused: uid and revision preconditions against o. */
int delete_preconditions(struct call *c, const struct store_object *o, struct err *err) MUST_CHECK;
/* What upstream tells whoever deletes without saying what is to become of the dependents. */
void delete_warn(struct call *c);

/* client.c */
struct events *events_new(struct vapi *api);
struct events *events_free(struct events *e);

/* server.c */
void server_handler(struct vapi *api, struct net_handler *ret);
