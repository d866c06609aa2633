/* SPDX-License-Identifier: Apache-2.0
 * room: translate (private)
 *
 * Allow-lists as tables: which fields of an object go down, and how each is copied. What no table
 * names does not exist for the host. */
#pragma once

#include "pool.h"

/* Context of the translation of one pod (or Service, or claim). */
struct down {
    struct arena *arena;
    const struct translate_tenant *tenant;
    const cJSON *object, *meta, *spec; /* virtual */
    struct str ns, name;
    bool privileged;                /* the tenant may have what Pod Security forbids */
    bool ephemeral;                 /* containers that no scheduler counts: they get no device */
    bool claims;                    /* resource claims go down */
    const struct config_pool *pool; /* NULL: no devices */
    struct device_counts requested;
    const cJSON *services; /* for the environment; may be NULL */
    char token_secret[64];
    cJSON *notes;        /* annotations of the host object, under construction */
    size_t links_budget; /* bytes of service variables one container may get */
};

enum field_how {
    FIELD_SCALAR,  /* a string, number or bool */
    FIELD_SCALARS, /* an array of such */
    FIELD_MAP,     /* an object of such */
    FIELD_OBJECT,  /* an object with a table of its own */
    FIELD_LIST,    /* an array of such objects */
    FIELD_NAME,    /* the name of an object of the same namespace: translated */
    FIELD_MAKE,    /* made by a function; NULL leaves the field out */
    FIELD_EACH,    /* an array, every item of which is made by a function */
};

struct field {
    const char *key; /* NULL ends a table */
    enum field_how how;
    bool privileged; /* only at level privileged */
    const struct field *fields;
    cJSON *(*make)(struct down *d, const cJSON *value);
};

/* The fields of the table that value has, in the order of the table. */
cJSON *shape_copy(struct down *d, const struct field *fields, const cJSON *value);
/* Like shape_copy, into an object that is there. */
void shape_into(struct down *d, const struct field *fields, const cJSON *value, cJSON *to);
struct str shape_name_down(struct down *d, struct str name);

/* ---- kind_device_claim.c ---- */
bool translate_pod_claims_allowed(const struct translate_tenant *t);
cJSON *translate_pod_claim_down(struct down *d, const cJSON *entry);

/* ---- pod_volumes.c ---- */
cJSON *translate_pod_volume_down(struct down *d, const cJSON *volume);
/* "metadata.labels['k']" is key k of "metadata.labels"; false for another path. */
bool translate_pod_field_path_key(struct str path, const char *map, struct str *ret_key);
/* The key of a token in the pod's token Secret. */
struct str translate_pod_token_key(struct arena *a, struct str volume, size_t source);
/* The level that the source of a volume needs; unsupported sources are refused. */
enum volume_class { VOLUME_PLAIN, VOLUME_PRIVILEGED, VOLUME_UNSUPPORTED };
/* The key of the volume's source ("configMap"), or NULL: it has none, and is an emptyDir. */
const char *translate_pod_volume_source(const cJSON *volume, enum volume_class *ret_class);

/* ---- pod_env.c ---- */
/* Service variables of all containers of a pod together; those beyond it are left out. The
 * kubelet has no such limit, but there they are not part of the object. */
enum { LINKS_BYTES_MAX = 192 * 1024 };
/* The environment of a container: ours first, then the tenant's. given: the devices it gets. */
cJSON *translate_pod_env_down(struct down *d, const cJSON *container,
                              const struct device_counts *given);
extern const struct field TRANSLATE_POD_ENV_FROM_FIELDS[];

/* ---- pod_dns.c ---- */
void translate_pod_dns_down(struct down *d, cJSON *spec); /* dnsPolicy and dnsConfig */

/* ---- pod_container.c ---- */
cJSON *translate_pod_container_down(struct down *d, const cJSON *container);
/* Sets the key by policy.imagePullPolicy, whatever was copied. */
void translate_pod_pull_policy_down(struct down *d, cJSON *to, const char *key);
/* What the configuration has in place of an image, or the image. */
cJSON *translate_pod_image_down(struct down *d, const cJSON *image);
/* image.c: the image of the host for one of a pod, by sync.toHost.pods.translateImage. */
struct str translate_image(struct arena *a, const cJSON *map, struct str image);
/* Limits and requests: what has no domain stays, devices become the pool's. */
cJSON *translate_pod_resources_down(struct down *d, const cJSON *resources);
extern const struct field TRANSLATE_POD_SECCOMP_FIELDS[], TRANSLATE_POD_SELINUX_FIELDS[],
    TRANSLATE_POD_WINDOWS_FIELDS[];

/* ---- pod_affinity.c ---- */
enum translate_node translate_pod_node_meaning(const struct translate_tenant *t, struct str name);
cJSON *translate_pod_affinity_down(struct down *d, const cJSON *affinity);
cJSON *translate_pod_node_selector_down(struct down *d, const cJSON *selector);
cJSON *translate_pod_tolerations_down(struct down *d, const cJSON *tolerations);
cJSON *translate_pod_spread_down(struct down *d, const cJSON *constraint);

/* ---- pod_pool_node.c: names of nodes, where each stands for a pool ---- */
struct str translate_pod_pool_node(const struct down *d); /* that of the pod's own pool */
/* Do nodeName and the node selector name that node, or none? */
bool translate_pod_pool_node_fits(const struct down *d);
/* Is the label the name of such a node? Then no node of the host has it. */
bool translate_pod_pool_node_is_key(const struct down *d, struct str key);
/* Of a node selector term: *ret without what is said of the node's name; false: it does not hold
 * for the node. Without such nodes: the term itself. */
bool translate_pod_pool_node_settle(struct down *d, const cJSON *term, const cJSON **ret);

/* ---- gpu_fraction.c, gpu_vgpu.c: in a pool of parts of GPUs, and nothing elsewhere ---- */
void translate_pod_fraction_down(struct down *d, cJSON *notes);
/* The variable by which the container gets it; NULL: it has none. */
cJSON *translate_pod_fraction_variable(struct down *d, const cJSON *container);
void translate_pod_vgpu_down(struct down *d, const struct device_counts *own, cJSON *resources);

/* ---- pod_sent.c ---- */
#define SENT_WHOLE "/" /* the pod as a whole, among names of containers */
/* What a host pod was sent last. Of images the record has what the tenant wrote: another name for
 * them in the configuration replaces no container that runs. */
struct sent {
    struct arena *arena;
    const cJSON *images, *resources; /* NULL: no record, an earlier version sent it */
    const cJSON *written;            /* the record of images to come; NULL: as in its spec */
    bool changed; /* without a record: has the tenant changed the pod since it was created? */
};
bool translate_pod_is_resizable(struct str name);
/* Adds the record of this spec to the annotations of a host pod. virtual_spec: what it is made
 * of. */
void translate_pod_sent_note(struct arena *a, cJSON *annotations, const cJSON *spec,
                             const cJSON *virtual_spec);
const cJSON *translate_sent_read(struct arena *a, const cJSON *host_now, const char *annotation);
/* Is it what was sent last? Then whatever the host has there now, the host put there. */
bool translate_sent_same_image(const struct sent *sent, struct str container, struct str image);
bool translate_sent_same_quantity(const struct sent *sent, struct str container, const char *map,
                                  const cJSON *wanted);

/* ---- service.c ---- */
/* A merge patch of our metadata and this spec; NULL when neither differs. */
cJSON *translate_service_update_patch(struct arena *a, const cJSON *host_now,
                                      const cJSON *host_wanted, cJSON *spec);

/* ---- kubelet.c ---- */
bool translate_kubelet_has_container(const cJSON *pod, struct str name); /* of any of its lists */

/* ---- pod_status.c ---- */
/* Is it a type that Kubernetes keeps for itself ("Ready", and whatever a later version adds)? */
bool translate_pod_condition_is_reserved(struct str type);
/* The listed members of a host status, whole, as the new virtual status; NULL when it equals the
 * present one. Subtrees are copied, so that fields of another version of the host come through. */
cJSON *translate_pod_status_copy(struct arena *a, const char *const *keys, const cJSON *host,
                                 const cJSON *v);
