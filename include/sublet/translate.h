/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * Virtual objects to host objects and back: pure functions over JSON trees. No I/O, no globals, no
 * clock: the same input gives the same bytes. Host specs are built by allow-list from what the type
 * is known to hold; what is not known does not go down. */
#pragma once

#include <sublet/pool.h>
#include <sublet/selector.h>
#include <sublet/translate_claim.h>
#include <sublet/translate_namespaces.h>
#include <sublet/translate_up.h>
#include <sublet/translate_update.h>

#define LABEL_CLUSTER    "sublet.dev/cluster"   /* cluster uid; on every host object */
#define LABEL_NAMESPACE  "sublet.dev/namespace" /* virtual namespace (<= 63 by its name rule) */
#define LABEL_MODE       "sublet.dev/mode"      /* of a host pod with devices: its pool's mode */
#define LABEL_GPU_POOL   "sublet.dev/gpu-pool"  /* a tenant's wish, on a virtual pod or namespace */
#define ANNOTATION_NAME  "sublet.dev/name"
#define ANNOTATION_NS    "sublet.dev/namespace"
#define ANNOTATION_UID   "sublet.dev/uid"
#define ANNOTATION_EPOCH "sublet.dev/epoch" /* of the store that wrote it last */

/* What a name of a node means to a tenant. */
enum translate_node {
    NODE_UNKNOWN, /* nothing, or what it must not learn of */
    NODE_SHOWN,   /* a node of the host that the tenant is shown, of the same name there */
    NODE_OWN,     /* one the tenant registered itself: no host node is meant */
    NODE_POOL     /* one that stands for the nodes of a pool: translate_pool_node.h */
};

/* What translation must know of the tenant and its surroundings, gathered by the caller. */
struct translate_tenant {
    const struct config *config;
    struct str cluster_uid; /* UUID, a valid label value */
    struct str epoch;       /* store_identity.h; empty: none is written */
    struct str host_namespace;
    struct str api_ip; /* of the tenant's API, for KUBERNETES_* and hostAliases */
    int64_t api_port;
    struct str dns_ip;     /* empty: pods keep the host's DNS policy */
    struct str host_class; /* the host's default StorageClass, once it is known; empty: none */
    bool host_class_known;
    struct str_list unfenced; /* host nodes that pods without devices are kept off by name */
    size_t nodes_shown;       /* how many nodes the tenant sees, for messages that count them */
    const struct translate_namespaces *namespaces; /* NULL: only {} (all of them) selects any */
    const struct translate_related *related;       /* translate_kind.h; NULL: there are none */
    /* The same answer for the same name while one object is translated; NULL: all are unknown. */
    enum translate_node (*node)(void *ctx, struct str name);
    /* The node under which the tenant is shown the host node of this name; p NULL: the host has
     * none; empty: it is not shown. NULL: names of nodes are the host's. */
    struct str (*node_up)(void *ctx, struct str host_node);
    void *node_ctx;
    struct translate_shown shown; /* classes of the host, by sync.fromHost */
    /* The value of a PriorityClass of the host; NULL, or false: it is not known. */
    bool (*host_priority)(void *ctx, struct str class, int64_t *ret);
    void *host_priority_ctx;
    /* Has the tenant a StorageClass, or a PersistentVolume, of this name for the host? NULL: no. */
    bool (*class_down)(void *ctx, struct str class);
    bool (*volume_down)(void *ctx, struct str volume);
    void *down_ctx;
};

/* `<name cut to 46>-<16 of base32(sha256(len-prefixed uid, ns, name))>`; a valid RFC 1123 label,
 * and valid 1035 (starts with a letter) where name does. At most 63. out has room for 64. */
void translate_name(const struct translate_tenant *t, struct str ns, struct str name, char out[64]);

/* Allow-listed keys stay; others go under `sublet.dev/l-<16 of base32(sha256(key))>` with the same
 * value. Adds cluster and namespace labels. Selectors are translated by the same rule and ANDed
 * with them. */
cJSON *translate_labels(struct arena *a, const struct translate_tenant *t, struct str ns,
                        const cJSON *labels);
cJSON *translate_match_labels(struct arena *a, const struct translate_tenant *t, struct str ns,
                              const cJSON *map); /* Service spec.selector */
cJSON *translate_label_selector(struct arena *a, const struct translate_tenant *t, struct str ns,
                                const cJSON *selector); /* metav1.LabelSelector */
struct str translate_label_key(struct arena *a, const struct translate_tenant *t, struct str key);
/* metadata of a host object: name, namespace, labels, allow-listed annotations, our four, and
 * `sublet.dev/owned`: which keys without our prefix are ours, for later updates. */
cJSON *translate_metadata(struct arena *a, const struct translate_tenant *t, const cJSON *vobject,
                          struct str host_name);
/* Whose is it: reads labels and annotations of a host object. False when it is not this tenant's,
 * or not under the name translate_name or translate_token_secret_name gives it (a copy). */
bool translate_owner(const struct translate_tenant *t, const cJSON *host_object, struct str *ret_ns,
                     struct str *ret_name, struct str *ret_uid);

/* The checks below and translate_check_pvc(): what a stored object (metadata.resourceVersion is
 * set) carries from the host (nodeName; clusterIP, nodePort; volumeName) is refused only while it
 * is not stored yet.
 *
 * Fields of a pod that could escape (hostPath, privileged, host namespaces, nodeName, ...):
 * FORBIDDEN with the field, at apply time. Also for pod templates. Level from config.pod_security
 * plus what must never pass whatever the level. */
int translate_check_pod(struct arena *a, const struct translate_tenant *t, struct str ns,
                        const cJSON *pod, struct err *err) MUST_CHECK;
int translate_check_service(struct arena *a, const struct translate_tenant *t, const cJSON *service,
                            struct err *err) MUST_CHECK;
/* What the host allocated to a Service (addresses, node ports), as "10.0.0.7,30080". */
struct str translate_service_given(struct arena *a, const cJSON *service);
bool translate_service_gave(struct str given, const cJSON *value);
/* An update: the same, where `old` did not have it on the host and `given` does not list it. */
int translate_check_service_change(struct arena *a, const struct translate_tenant *t,
                                   const cJSON *service, const cJSON *old, struct str given,
                                   struct err *err) MUST_CHECK;

/* What a pod needs on the host before it can start. */
enum translate_ref_kind {
    REF_CONFIG_MAP,
    REF_SECRET,
    REF_PVC,
    REF_SERVICE_ACCOUNT,
    REF_DEVICE_CLAIM /* a ResourceClaim */
};
typedef void (*translate_ref_cb)(void *ctx, enum translate_ref_kind kind, struct str name,
                                 bool optional);
void translate_pod_refs(const cJSON *pod, translate_ref_cb each, void *ctx);
/* Projected serviceAccountToken sources of a pod: one call each, with the key under which the token
 * is put into the pod's token Secret (see translate_token_secret_name). */
typedef void (*translate_token_cb)(void *ctx, struct str key, struct str audience,
                                   int64_t expiration_s);
void translate_pod_tokens(struct arena *a, const cJSON *pod, translate_token_cb each, void *ctx);
/* Host name of the Secret that carries a pod's tokens. */
void translate_token_secret_name(const struct translate_tenant *t, struct str ns,
                                 struct str pod_name, char out[64]);
/* The host pod; name, namespace and uid must be set. Checks again what translate_check_pod checks.
 * Service environment of a pod (`enableServiceLinks`): name and cluster IP and ports of its
 * namespace's services, gathered by the caller as an array of Service objects; may be NULL. */
int translate_pod(struct arena *a, const struct translate_tenant *t,
                  const struct pool_choice *choice, const cJSON *vpod, const cJSON *services,
                  cJSON **ret, struct err *err) MUST_CHECK;
/* The virtual claim that an entry of a pod's spec.resourceClaims means; empty: none was made of its
 * template yet. */
struct str translate_pod_claim(const cJSON *pod, const cJSON *entry);
/* True while the tenant's own scheduling gates hold the pod: it is not to be created on the host
 * yet. (Gates never go down; those on the host are the host's.) */
bool translate_pod_gated(const cJSON *vpod);
/* Ephemeral containers of vpod the host pod lacks, as a strategic merge patch for the subresource
 * pods/ephemeralcontainers; *ret is NULL when there are none. */
int translate_ephemeral(struct arena *a, const struct translate_tenant *t,
                        const struct pool_choice *choice, const cJSON *vpod, const cJSON *host_now,
                        cJSON **ret, struct err *err) MUST_CHECK;
/* *ret is NULL (and 0 returned) for what has no host object: type ExternalName. */
int translate_service(struct arena *a, const struct translate_tenant *t, const cJSON *vservice,
                      cJSON **ret, struct err *err) MUST_CHECK;
cJSON *translate_config_map(struct arena *a, const struct translate_tenant *t, const cJSON *v);
/* What of a ConfigMap or Secret pods do not get. */
void translate_data_warnings(struct arena *a, const struct translate_tenant *t, const cJSON *v,
                             void (*warn)(void *ctx, struct str text), void *ctx);
/* Opaque where a host controller would act on the type. */
cJSON *translate_secret(struct arena *a, const struct translate_tenant *t, const cJSON *v);
