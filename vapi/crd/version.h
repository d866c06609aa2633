/* SPDX-License-Identifier: Apache-2.0 */
/* One version of a CRD and its compiled schema. The schema is compiled on first use and costs
 * memory only then: until then it is a JSON string. Internal to vapi/crd. */
#pragma once

#include <sublet/pattern.h>
#include <sublet/crd.h>

enum rule_flags {
    RULE_NULLABLE = 1,
    RULE_PRESERVE = 2,
    RULE_EMBEDDED = 4,
    RULE_INT_OR_STRING = 8,
    RULE_MIN = 16,
    RULE_MAX = 32,
    RULE_MIN_EXCLUSIVE = 64,
    RULE_MAX_EXCLUSIVE = 128,
    RULE_MULTIPLE = 256,
    RULE_TYPED = 512,   /* `type` or int-or-string was given: values of other types are errors */
    RULE_MORE = 1024,   /* additionalProperties was given */
    RULE_CLOSED = 2048, /* ... and is false */
};

/* Of a node; see schema.h. Nodes of allOf and the like have rules only. */
struct schema_rules {
    uint16_t flags;
    uint8_t format;          /* enum rule_format */
    const char *format_text; /* as written */
    double min, max, multiple;
    int64_t min_length, max_length, min_items, max_items, min_properties,
        max_properties;         /* -1: none */
    struct pattern *pattern;    /* NULL: none */
    const cJSON *enumeration;   /* array, or NULL */
    const cJSON *default_value; /* of the node wherever it is used, or NULL */
    const struct str *required;
    size_t n_required;
    const uint32_t *all_of, *any_of, *one_of; /* nodes */
    size_t n_all_of, n_any_of, n_one_of;
    uint32_t not_node; /* 0: none */
};

enum rule_format {
    FORMAT_NONE,
    FORMAT_INT32,
    FORMAT_INT64,
    FORMAT_FLOAT,
    FORMAT_DOUBLE,
    FORMAT_FIRST_TEXT, /* later ones apply to strings; see format.c */
};
/* FORMAT_NONE for a format that upstream does not check. type: of the schema, may be empty. */
uint8_t crd_format_find(struct str type, struct str name);
bool crd_format_holds(uint8_t format, struct str text);

/* Patterns are RE2's. Their cost is bounded: *budget counts down, and when it is exhausted no
 * pattern holds. */
#define PATTERN_BUDGET 64

struct printer_column {
    const char *name, *type, *format, *description;
    int priority;
    struct jsonpath *path;
};

struct crd_version {
    unsigned magic;
    struct arena *arena;       /* everything below except memory owned by compiled */
    struct resource *resource; /* registered; its memory lives in arena */
    const char *schema_text;   /* openAPIV3Schema, NULL when there is none */
    size_t schema_bytes;
    bool preserve_all; /* spec.preserveUnknownFields or no schema */
    bool has_defaults;
    bool changed; /* the CRD's spec differs from the one it was created with */
    bool namespaced;
    struct str deprecation;
    struct printer_column *columns;
    size_t n_columns;
    struct arena *compiled; /* NULL until first needed */
    struct schema schema;
    uint32_t root;
    struct pattern *patterns; /* all, chained */
    cJSON *openapi;           /* tree of schema_text, in `compiled` */
    struct crd_rules *rules;  /* x-kubernetes-validations, in `compiled`; NULL: there are none */
    /* The schema objects are stored with, without a resource; NULL: this one. All versions of a CRD
     * share it. */
    struct crd_version *stored;
    unsigned references; /* of what others have as `stored` */
};

#define CRD_VERSION_MAGIC 0x63726476u
#define CRD_MAX_DEPTH     128
#define CRD_MAX_NODES     200000
#define CRD_MAX_FIELDS    65535 /* of one object */

/* Compiles v->schema_text into v->compiled. The schema passed the checks of checks.c before it was
 * stored. */
void crd_version_compile(struct crd_version *v);
void crd_version_release(struct crd_version *v); /* what crd_version_compile() made */
/* Node `id` of the compiled schema. */
const struct schema_rules *crd_version_rules(const struct crd_version *v, uint32_t node);
const struct crd_version *crd_version_ready(const struct crd_version *v); /* compiles if need be */
