/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The served resources: one descriptor per group, version and resource, built-in (vapi/kinds) or
 * from a CRD. Code tests properties of the descriptor, never the name of a kind. */
#pragma once

#include <sublet/field.h>
#include <sublet/schema.h>
#include <sublet/store.h>

struct vapi;
struct resource;
struct kind;
struct row;
struct call;

enum verb_bits {
    VERB_GET = 1,
    VERB_LIST = 2,
    VERB_WATCH = 4,
    VERB_CREATE = 8,
    VERB_UPDATE = 16,
    VERB_PATCH = 32,
    VERB_DELETE = 64,
    VERB_DELETECOLLECTION = 128,
    VERBS_ALL = 255,
    VERBS_READ = 7,
    VERBS_BY_NAME = VERB_GET | VERB_UPDATE | VERB_PATCH | VERB_DELETE
};

enum resource_flags {
    RES_NAMESPACED = 1,
    RES_STATUS = 2,              /* spec and status are written separately */
    RES_GENERATION = 4,          /* metadata.generation counts spec changes */
    RES_CREATE_ON_UPDATE = 8,    /* PUT to an absent name creates */
    RES_CONDITIONAL_UPDATE = 16, /* PUT requires a resourceVersion */
    RES_GRACEFUL = 32,           /* pods: deletion has a grace period */
    RES_REVIEW = 64,             /* never stored: created only, or measured when it is read */
    RES_ORPHAN_DEFAULT = 128,    /* default propagation is Orphan (Job of batch/v1, rc) */
    RES_ITEM_TYPE_META = 256,    /* list items carry apiVersion and kind (CRs) */
    RES_DELETE_RETURNS_OBJECT = 512,
    RES_SYSTEM_NAME = 1024,      /* path-segment names (RBAC) */
    RES_STATUS_ON_CREATE = 2048, /* a create may set status (nodes) */
    RES_NAME_ON_UPDATE = 4096,   /* updates validate generateName again */
    RES_ANY_FINALIZER = 8192,    /* finalizers need no domain */
    /* A write to status keeps labels, owners and the like, and owns no field of the metadata. */
    RES_STATUS_KEEPS_META = 16384,
    RES_ANY_PREFIX = 32768,       /* generateName is checked last, and only as a part of a path */
    RES_META_LAST = 65536,        /* creates check metadata after everything else */
    RES_EXPIRES = 131072,         /* Events: expire */
    RES_CLAIM = 262144,           /* the host judges it as a PersistentVolumeClaim */
    RES_CLAIM_TEMPLATES = 524288, /* spec.volumeClaimTemplates are such claims */
    RES_BINDING = 1048576         /* a create is one of the binding of the pod of its name */
};

struct column {
    const char *name, *type, *format, *description; /* format, description: NULL for none */
    int priority;                                   /* 1: `kubectl get -o wide` only */
    void (*cell)(const struct row *r, const struct column *c); /* of a built-in kind */
    const char *path, *otherwise;                              /* what cell prints */
};
/* A selectable field beside metadata.name and metadata.namespace. */
struct selectable_field {
    const char *name;      /* "spec.nodeName" */
    const char *path;      /* dotted; `a.b|c`: the first that is not empty */
    const char *otherwise; /* value when the path is absent */
};
/* A further endpoint of a kind: data of the object, or an operation of its own. */
enum subresource_kind {
    SUB_STATUS, /* data: status and scale */
    SUB_SCALE,
    SUB_APPROVAL, /* operations */
    SUB_BINDING,
    SUB_EPHEMERAL_CONTAINERS,
    SUB_EVICTION,
    SUB_FINALIZE,
    SUB_PROXY, /* log, exec, attach, portforward, proxy */
    SUB_RESIZE,
    SUB_TOKEN,
    SUB_REPLACE, /* in-process only: no request can name it */
    N_SUBRESOURCES
};
struct subresource {
    const char *name;
    enum subresource_kind kind;
    unsigned verbs;
    /* Of the body, for discovery ("autoscaling","v1","Scale"). */
    const char *group, *version, *object_kind;
    const struct scale_paths *scale;
    const char *const *reset; /* see struct kind; NULL: what the endpoint usually does not change */
};
struct scale_paths {
    /* Dotted; selector NULL: spec.selector. */
    const char *spec_replicas, *status_replicas, *selector;
};

struct resource {
    struct str group, version, kind, list_kind, plural, singular; /* group "" is core */
    const char *const *short_names, *const *categories;           /* NULL-ended, may be NULL */
    unsigned verbs, flags;
    unsigned storage;           /* id in the store; the same for all versions */
    struct str storage_version; /* apiVersion of the stored bytes (group/version) */
    const struct schema *schema;
    uint32_t node;
    const struct kind *built_in;           /* what its kind decides; NULL for a custom resource */
    const struct column *columns;          /* after Name; ended by name == NULL */
    const struct selectable_field *fields; /* ended by name == NULL; may be NULL */
    const struct subresource *subresources;
    size_t n_subresources;
    struct crd_version *crd; /* defaults, prunes, validates; NULL: the schema is built in */
    /* Of a custom resource: the webhook that converts it between versions; NULL: none does. */
    const struct crd_conversion *conversion;
    struct str group_resource; /* "deployments.apps", "pods": in the store and in messages */
    struct str api_version;    /* "apps/v1", "v1" */
    unsigned skip;             /* length of `{"kind":"..","apiVersion":"..",` as stored */
    const struct column *first_column; /* what kind->first_cell prints; NULL: Name */
    const char *converted_annotation;  /* made from a field: not in metadata alone; or NULL */
};

bool resource_namespaced(const struct resource *r);
bool resource_is_pod(const struct resource *r);       /* the built-in one, of any version */
bool resource_is_namespace(const struct resource *r); /* likewise */
struct field_type;
void resource_field_type(const struct resource *r, struct field_type *ret); /* fields.h */
bool resource_of_crd(const struct resource *r); /* a CRD defines it; else the server's own */
const struct subresource *resource_sub(const struct resource *r, struct str name);
/* The priorities kube-apiserver's aggregator gives its group and its version; higher comes
 * first. */
int resource_group_priority(const struct resource *r);
int resource_version_priority(const struct resource *r);
