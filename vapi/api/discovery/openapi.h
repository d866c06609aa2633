/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api/discovery)
 *
 * The OpenAPI documents, from the type table, the registry and the CRDs to bytes; the README lists
 * the purpose of each file. */
#pragma once

#include "discovery.h"

#define OPENAPI_MAX_DOCUMENT (64u * 1024 * 1024)

/* A document under construction. Trees are built part by part in `arena`, printed, and dropped. */
struct document {
    struct vapi *api;
    bool v2, protobuf;
    struct str group, version; /* v3: group and version of the document; both empty for v2 */
    bool of_group;             /* v3: of a group, or of no group: no schemas of kinds */
    const cJSON *text;         /* components.schemas of the host's, or NULL */
    struct arena *keep;        /* of the current resource */
    struct arena *arena;       /* of the current part; emptied when the part is added */
    unsigned char *seen;       /* per built-in node: its component is built or queued */
    uint32_t *todo;
    size_t n_todo;
    struct buf paths, schemas; /* members, or NamedX messages */
};

/* openapi_document.c */
struct openapi_request {
    bool v2, protobuf;
    struct str root; /* v3: "apis/apps/v1", "api", "version", ... */
    const cJSON *text;
};
/* Heap bytes (mem_free), empty when there is no such document or it exceeds the limit. */
struct str openapi_document(struct vapi *api, const struct openapi_request *q);
/* Adds a path or a schema; the tree is in d->arena, which is empty afterwards. */
void openapi_document_add_path(struct document *d, struct str name, const cJSON *tree);
void openapi_document_add_schema(struct document *d, const char *name, const cJSON *tree);
/* Every root that v3 serves, in order. */
void openapi_each_root(struct vapi *api, void (*each)(void *ctx, struct str root), void *ctx);
/* True when root holds built-in kinds: the host may have descriptions of them. */
bool openapi_is_builtin(struct vapi *api, struct str root);
/* A digest of the inputs of root's document (v2: empty), except the host's descriptions. */
#define OPENAPI_DIGEST 32
void openapi_hash_table(unsigned char ret[OPENAPI_DIGEST]);
void openapi_hash(struct vapi *api, const unsigned char table[OPENAPI_DIGEST], struct str root,
                  unsigned char ret[OPENAPI_DIGEST]);

/* openapi_path.c */
void openapi_resource_paths(struct document *d, const struct resource *r);
void openapi_version_path(struct document *d, bool core, struct str group, struct str version);
void openapi_group_path(struct document *d, struct str group);
/* Documents with a single path: "api", "apis", "version", ... False when root is none. all: v2. */
bool openapi_single_path(struct document *d, struct str root);
extern const char *const OPENAPI_SINGLE_ROOTS[]; /* NULL-ended */
/* "io.k8s.api.apps.v1.Deployment"; adds it to the components to build. */
const char *openapi_kind(struct document *d, struct str group, struct str version, struct str kind);
/* "com.example.stable.v1.CronTab" of group stable.example.com. */
const char *openapi_custom_kind(struct arena *a, const struct resource *r, struct str kind);

/* openapi_operation.c */
/* Bits of parameters, in the order of their names; see PARAMETERS there. */
typedef uint64_t openapi_params;
extern const openapi_params PARAMS_LIST, PARAMS_CREATE, PARAMS_PATCH, PARAMS_DELETE, PARAMS_GET;
extern const openapi_params PARAMS_DELETE_ALL, PARAM_PRETTY, PARAM_NAME, PARAM_NAMESPACE;
extern const openapi_params PARAM_PATH, PARAMS_LOG, PARAMS_ATTACH, PARAMS_EXEC, PARAMS_FORWARD;
extern const openapi_params PARAMS_PROXY;

enum { ANSWER_CREATED = 1, ANSWER_ACCEPTED = 2 };

struct openapi_operation {
    const char *method, *action; /* "get"; x-kubernetes-action, NULL for none */
    struct str id;
    openapi_params params;
    const char *body, *answer; /* components; NULL: no body, a string */
    bool body_optional;
    unsigned answers;                              /* besides 200 and 401 */
    const char *const *consumes, *const *produces; /* NULL-ended; NULL: none */
    /* Of the x-kubernetes-group-version-kind extension; kind empty: none. */
    struct str group, version, kind;
};
#define OPENAPI_MAX_OPERATIONS 7

struct openapi_path {
    struct str path, tag;
    struct openapi_operation operations[OPENAPI_MAX_OPERATIONS];
    size_t n;
};
/* Parameters shared by all operations are listed once. */
void openapi_add_path(struct document *d, const struct openapi_path *p);
/* v2: the members of "parameters". */
cJSON *openapi_parameters(struct arena *a);

/* openapi_schema.c */
/* {"$ref": ...}; the caller makes sure that the component is in the document. */
cJSON *openapi_ref(struct document *d, const char *component);
/* Adds it to the components to build; returns the component's name. */
const char *openapi_want(struct document *d, uint32_t node);
const char *openapi_want_type(struct document *d, const char *type); /* by its component's name */
/* Builds the queued components, and those they refer to. */
void openapi_make_wanted(struct document *d);
cJSON *openapi_gvk(struct arena *a, struct str group, struct str version, struct str kind);
/* The host's description of a built-in type, or of its field (NULL: of the type); without it, a
 * short one of our own for the fields of every object. May be empty. */
struct str openapi_describe(struct document *d, const char *type, const char *field);

/* openapi_crd.c */
/* The components of a custom resource: its object and its list. */
void openapi_add_custom(struct document *d, const struct resource *r);

/* openapi_gnostic.c */
enum gnostic {
    GNOSTIC_V2_PATHS, /* NamedPathItem, as a field of Paths */
    GNOSTIC_V2_SCHEMA,
    GNOSTIC_V3_PATHS,
    GNOSTIC_V3_SCHEMA,
};
/* Appends a named entry of a map as a field of its message. */
void gnostic_add_named(struct buf *out, enum gnostic what, struct str name, const cJSON *tree);
/* The Document around the parts: head is the tree without paths and schemas. */
void gnostic_document(struct buf *out, bool v2, const cJSON *head, struct str paths,
                      struct str schemas);
