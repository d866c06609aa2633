/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * One request in the API's own terms, from the network or in-process. It lives in its arena from
 * routing to answer. Its holder must answer it exactly once: call_error(), call_object(), ...
 *
 *   route -> authenticate -> authorize -> decode body -> verb handler (read, write, delete, ...)
 *         -> answer (network: negotiated and sent; in-process: vapi_done_cb) */
#pragma once

#include <sublet/selector.h>
#include <sublet/vapi.h>

enum call_verb {
    CALL_GET,
    CALL_LIST,
    CALL_WATCH,
    CALL_CREATE,
    CALL_UPDATE,
    CALL_PATCH,
    CALL_DELETE,
    CALL_DELETECOLLECTION,
    CALL_N_VERBS
};
extern const char *const CALL_VERBS[CALL_N_VERBS]; /* "get", "list", ... as RBAC names them */

enum patch_type { PATCH_TYPE_JSON, PATCH_TYPE_MERGE, PATCH_TYPE_STRATEGIC, PATCH_TYPE_APPLY };
enum field_validation { VALIDATION_WARN, VALIDATION_IGNORE, VALIDATION_STRICT };
enum table_include { INCLUDE_METADATA, INCLUDE_NONE, INCLUDE_OBJECT };
enum output_form {
    /* as=Table, as=PartialObjectMetadata[List] */
    OUTPUT_OBJECT,
    OUTPUT_TABLE,
    OUTPUT_PARTIAL
};

struct call_options {
    /* all writes */
    bool dry_run;
    enum field_validation validation;
    struct str field_manager;
    bool force;
    /* get, list, watch */
    struct str label_selector, field_selector; /* as sent */
    struct selector labels, fields;            /* parsed; n == 0: everything */
    bool rv_set;
    int64_t rv; /* resourceVersion, 0 included */
    struct str rv_match, cont;
    int64_t limit, timeout_s;
    bool bookmarks, send_initial, send_initial_set, watch;
    /* delete: from the body, otherwise the query */
    int64_t grace_seconds; /* -1: not given */
    struct str propagation, uid;
    int64_t delete_rv;         /* 0: not given */
    struct str delete_rv_text; /* as sent */
};

struct call {
    unsigned magic;
    struct vapi *api;
    struct arena *arena;
    struct net_exchange *exchange; /* NULL: in-process */
    const struct net_request *request;
    struct user user;
    enum call_verb verb;
    const struct resource *resource;
    const struct subresource *sub; /* NULL: the resource itself */
    struct str ns, name;
    struct call_options options;
    cJSON *body; /* decoded; POST, PUT, PATCH (and DELETE's options) */
    enum patch_type patch;
    struct strict_errors strict;
    enum output_form output;
    enum table_include include;
    bool pretty, yaml, protobuf; /* form of the answer; protobuf: the client accepts nothing else */
    struct str *warnings;        /* messages for Warning: 299 */
    size_t n_warnings;
    vapi_done_cb done; /* in-process */
    void *done_ctx;
    void (*admitted)(void *done_ctx, const cJSON *object); /* of vapi_try_create() */
    const char *controller; /* in-process: its account; admission sees what it creates; or NULL */
    void *state;            /* owned by the handler */
    /* The client disconnected: release c, the frame frees it when this returns; NULL: finish, the
     * answer is dropped. */
    void (*cancel)(struct call *call);
    void (*drained)(struct call *call); /* a streamed answer's backlog fell to zero */
    bool gone;                          /* the client disconnected */
    bool form_beta; /* Table or PartialObjectMetadata of meta.k8s.io/v1beta1, equal to v1's */
};

void call_warn(struct call *c, struct str text); /* at most 64; respond.c bounds their size */
/* An annotation of the request's audit event. Both are copied; of equal keys the first value stays,
 * as upstream. At most 32, each value cut to 16 KiB. Does nothing when the request is not
 * audited. */
void call_audit_annotate(struct call *c, struct str key, struct str value);
/* Adds a header to the answer (name in lower case, at most 8); before the answer. */
void call_header(struct call *c, const char *name, struct str value);
/* Answers. Each takes over the call: it may be freed at once. */
void call_error(struct call *c, const struct err *err);
/* A stored object in the requested form (bytes by reference where possible). */
void call_stored(struct call *c, int status, const struct store_object *o);
/* A tree made by the handler (dry run, reviews, Scale), with apiVersion and kind. */
void call_tree(struct call *c, int status, cJSON *object);
/* Status Success with details of the resource, name and uid (after a deletion). */
void call_success(struct call *c, struct str uid);
/* Raw bytes of another type (openapi, discovery, health, metrics). headers: additional ones. */
void call_raw(struct call *c, int status, struct str content_type, struct str body);
/* A JSON answer in pieces, by reference (LIST). Falls back to a tree for YAML or pretty
 * printing. */
void call_slices(struct call *c, int status, const struct net_slice *body, size_t n);
/* A streamed answer: headers now, then net_write(c->exchange, ...), then call_end() frees c. */
void call_begin(struct call *c, int status, struct str content_type);
void call_end(struct call *c);
/* A handler that streams by itself (proxy.c) calls it when it begins; call_begin() does. */
void call_streams(struct call *c, int status);

/* err (INVALID etc.) as a metav1.Status, as a tree or as JSON. */
cJSON *status_tree(struct arena *a, const struct err *err);
/* The inverse of status_tree(), for the answer of another server. */
int status_parse(struct arena *a, const cJSON *status, struct err *err);
/* Label set and selectable fields of an object, in the store's form. */
struct str index_labels(struct arena *a, const cJSON *object);
struct str index_fields(struct arena *a, const struct resource *r, const cJSON *object);
bool index_match(const struct call_options *o, const struct store_object *obj); /* both selectors */
/* The object in a version other than the stored one (apiVersion rewritten; CRD pruning and defaults
 * on read). */
cJSON *convert_tree(struct arena *a, const struct resource *r, const struct store_object *o);
/* One row's cells; the Table, PartialObjectMetadata forms of objects. */
cJSON *respond_table_row(struct arena *a, const struct resource *r, const cJSON *object,
                         enum table_include include, int64_t now);
cJSON *respond_table_head(struct arena *a, const struct resource *r, int64_t revision,
                          bool columns);
cJSON *respond_partial_metadata(struct arena *a, const struct resource *r, const cJSON *object);

/* In-process only: stores the whole object, status included, where the kind's update rules would
 * refuse it: fields that the host assigns and reassigns. It carries the resourceVersion it was made
 * from. */
void vapi_replace(struct vapi *api, const struct resource *r, const cJSON *object,
                  vapi_done_cb done, void *ctx);

/* In-process only: a dry run. admitted() receives the object before the syncer's checks. */
void vapi_try_create(struct vapi *api, const struct resource *r, struct str ns, const cJSON *object,
                     void (*admitted)(void *ctx, const cJSON *object), vapi_done_cb done,
                     void *ctx);

/* Handlers of subresources that are not data (vapi/api/verbs/sub_*.c). */
void sub_binding(struct call *c), sub_eviction(struct call *c), sub_finalize(struct call *c);
void sub_ephemeral_containers(struct call *c);
void sub_resize(struct call *c), sub_approval(struct call *c);
void sub_proxy(struct call *c); /* log, exec, attach, portforward, proxy: served by the host */
