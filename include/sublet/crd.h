/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/crd
 *
 * CustomResourceDefinitions: what one may look like, and its versions compiled into schemas. */
#pragma once

#include <sublet/resource.h>

struct crd_version; /* one served version, compiled */

/* kind_ops of the CustomResourceDefinition kind itself: defaults, validation (structural schema,
 * names, versions, printer columns, ...), warnings. */
extern const struct kind_ops CRD_OPS;

/* What the write path asks of a custom resource's version. */
/* Unknown fields: noted in strict (may be NULL) and removed unless preserved; metadata is checked
 * by the caller. */
void crd_prune(const struct crd_version *v, struct arena *a, cJSON *object,
               struct strict_errors *strict);
void crd_default(const struct crd_version *v, struct arena *a, cJSON *object);
/* True when reading must go through crd_prune/crd_default: the schema has defaults, or it changed
 * since the CRD was made, so that objects may hold what it does not know. */
bool crd_defaults_on_read(const struct crd_version *v);
/* Of a version that is not the stored one. An object as the store has it: the stored version's
 * schema prunes and defaults it, v's only prunes. The other way nothing is filled in. apiVersion is
 * the caller's. */
void crd_from_stored(const struct crd_version *v, struct arena *a, cJSON *object);
void crd_to_stored(const struct crd_version *v, struct arena *a, cJSON *object);
void crd_validate(const struct crd_version *v, struct field_errors *e, const cJSON *object,
                  const cJSON *old);
/* Fills cells after Name (printer columns by JSONPath, Age by default). */
void crd_cells(const struct crd_version *v, struct arena *a, const cJSON *object, int64_t now,
               cJSON *cells);
/* The OpenAPI v3 schema of the version as published (JSON text, borrowed). */
const cJSON *crd_openapi(const struct crd_version *v);
/* The same as text, without compiling anything; empty when there is none. */
struct str crd_schema_text(const struct crd_version *v);
/* spec.preserveUnknownFields, or no schema at all. */
bool crd_preserves_all(const struct crd_version *v);
/* Flags of the nodes of a compiled schema. */
enum node_flags {
    NODE_PRESERVE = 1,  /* x-kubernetes-preserve-unknown-fields */
    NODE_CLOSED = 2,    /* additionalProperties: false */
    NODE_EMBEDDED = 4,  /* x-kubernetes-embedded-resource */
    NODE_FORMATTED = 8, /* a string with a format other than byte */
    NODE_TYPE_SAID = 16 /* built-in: OpenAPI tells the list or map type here, though it may be the
                         * default one or another than that of the type itself */
};
/* The compiled schema and its root, as walks by type need them; NULL when any object goes. */
const struct schema *crd_schema(const struct crd_version *v, uint32_t *ret_root);
struct str crd_deprecation(const struct crd_version *v); /* warning text, or empty */

/* JSONPath as printer columns and scale paths use it: .a.b[0].c, ['x.y'], [*], filters
 * [?(@.a=="b")]. */
struct jsonpath;
int jsonpath_compile(struct arena *a, struct str text, struct jsonpath **ret,
                     struct err *err) MUST_CHECK;
typedef bool (*jsonpath_cb)(void *ctx, const cJSON *node);
void jsonpath_eval(const struct jsonpath *p, const cJSON *root, jsonpath_cb each, void *ctx);
