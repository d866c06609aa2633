/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/crd
 *
 * CustomResourceDefinitions: their validation, and their versions compiled into schemas. */
#pragma once

#include <sublet/kind.h>

struct crd_version; /* one served version, compiled */

/* The kind CustomResourceDefinition itself: defaults, validation (structural schema, names,
 * versions, printer columns, ...), warnings. */
extern const struct kind KIND_CUSTOM_RESOURCE_DEFINITION;

/* Checks of the write path for a version of a custom resource. */
/* Removes unknown fields unless preserved, and records them in strict (may be NULL); the caller
 * checks metadata. */
void crd_prune(const struct crd_version *v, struct arena *a, cJSON *object,
               struct strict_errors *strict);
/* Sets defaults; drops members that are null where the schema permits none and has no default. The
 * second is for what a request writes. Applied: it keeps those, for validation to refuse, as
 * upstream does with a server-side apply. False: it has some of its defaults, and with all of them
 * would be larger than any object may be. */
void crd_default(const struct crd_version *v, struct arena *a, cJSON *object);
bool crd_default_written(const struct crd_version *v, struct arena *a, cJSON *object, bool applied)
    __attribute__((warn_unused_result));
/* True when reads must go through crd_prune/crd_default: the schema has defaults, or it changed
 * since the CRD was created, so that objects may hold unknown fields. */
bool crd_defaults_on_read(const struct crd_version *v);
/* What is stored in v, before a webhook converts it: pruned, with defaults. */
void crd_from_own(const struct crd_version *v, struct arena *a, cJSON *object);
/* An object as stored: the stored version's schema prunes and defaults it, v's, if it is another,
 * only prunes. The inverse sets no defaults. The caller sets apiVersion. */
void crd_from_stored(const struct crd_version *v, struct arena *a, cJSON *object);
void crd_to_stored(const struct crd_version *v, struct arena *a, cJSON *object);
/* kept: errors of x-kubernetes-validations whose value did not change, which are warnings; may be
 * NULL. */
void crd_validate(const struct crd_version *v, struct field_errors *e, struct field_errors *kept,
                  const cJSON *object, const cJSON *old);
/* Fills cells after Name (printer columns by JSONPath, Age by default). */
void crd_cells(const struct crd_version *v, struct arena *a, const cJSON *object, int64_t now,
               cJSON *cells);
/* The OpenAPI v3 schema of the version as published (borrowed). */
const cJSON *crd_openapi(const struct crd_version *v);
/* The same as a JSON string, without compiling anything; empty when there is none. */
struct str crd_schema_text(const struct crd_version *v);
/* spec.preserveUnknownFields, or no schema at all. */
bool crd_preserves_all(const struct crd_version *v);
/* Flags of the nodes of a compiled schema. */
enum node_flags {
    NODE_PRESERVE = 1,  /* x-kubernetes-preserve-unknown-fields */
    NODE_CLOSED = 2,    /* additionalProperties: false */
    NODE_EMBEDDED = 4,  /* x-kubernetes-embedded-resource */
    NODE_FORMATTED = 8, /* a string with a format other than byte */
    NODE_TYPE_PUBLISHED =
        16 /* built-in: OpenAPI publishes the list or map type here, though it may be the default
            * or differ from that of the type itself */
};
/* The compiled schema and its root, for walks by type; NULL when any object is valid. */
const struct schema *crd_schema(const struct crd_version *v, uint32_t *ret_root);
struct str crd_deprecation(const struct crd_version *v); /* message of a warning, or empty */

/* JSONPath in printer columns and scale paths: .a.b[0].c, ['x.y'], [*], filters [?(@.a=="b")]. */
struct jsonpath;
int jsonpath_compile(struct arena *a, struct str text, struct jsonpath **ret,
                     struct err *err) MUST_CHECK;
typedef bool (*jsonpath_cb)(void *ctx, const cJSON *node);
void jsonpath_eval(const struct jsonpath *p, const cJSON *root, jsonpath_cb each, void *ctx);
