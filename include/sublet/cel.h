/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/cel
 *
 * The Common Expression Language as Kubernetes uses it: compile once, evaluate often. Pure: no
 * request, no store; what an expression may look at is bound by the caller. Every evaluation has
 * a cost limit. Source: cel-spec; k8s.io/apiserver pkg/cel (environment/base.go, library). */
#pragma once

#include <sublet/json.h>

#define CEL_CALL_LIMIT   1000000  /* upstream's PerCallLimit */
#define CEL_POLICY_LIMIT 10000000 /* upstream's RuntimeCELCostBudget */
#define CEL_MATCH_LIMIT  2500000  /* upstream's RuntimeCELCostBudgetMatchConditions */

enum cel_kind {
    CEL_ERROR, /* s: its message */
    CEL_NULL,
    CEL_BOOL,
    CEL_INT,
    CEL_UINT,
    CEL_DOUBLE,
    CEL_STRING,
    CEL_BYTES,
    CEL_TIMESTAMP, /* i: microseconds since 1970 */
    CEL_DURATION,  /* i: nanoseconds */
    CEL_LIST,
    CEL_MAP,
    CEL_TYPE, /* s: its name */
    CEL_OPTIONAL,
    CEL_QUANTITY,
    CEL_IP,
    CEL_CIDR,
    CEL_AUTHORIZER,
    CEL_PATH_CHECK,
    CEL_GROUP_CHECK,
    CEL_RESOURCE_CHECK,
    CEL_DECISION,
    CEL_FORMAT,
    CEL_URL,
    CEL_SEMVER,
    CEL_VARIABLES, /* members come from the activation */
    CEL_OBJECT,    /* `Object.spec{...}`, `JSONPatch{...}` of a mutation */
};

struct cel_list;
struct cel_map;
struct cel_object;

struct cel_value {
    enum cel_kind kind;
    bool is_json;        /* a list or map: json, otherwise list or map */
    unsigned shape : 24; /* of a list or map, see cel_shape.h; 0: none */
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double d;
        struct str s;
        const cJSON *json;
        const struct cel_list *list;
        const struct cel_map *map;
        const struct cel_object *object;
        const struct cel_value *inner; /* of an optional; NULL: none */
        const void *p;
    };
};
struct cel_list {
    size_t n;
    const struct cel_value *items;
};
struct cel_map {
    size_t n;
    const struct cel_value *keys, *values;
};
struct cel_object {
    struct str type;
    struct cel_map fields; /* keys are strings */
};

/* JSON as CEL sees it, by reference; NULL gives null. */
struct cel_value cel_from_json(const cJSON *node);
struct cel_value cel_string(struct str s);
/* As JSON, in a. NULL with *ret_why: a value that JSON cannot have; an object that does not stand
 * where its type says, `Object.spec` in `spec` of an `Object`. */
cJSON *cel_to_json(struct arena *a, struct cel_value v, struct str *ret_why);

/* What an authorizer of an expression is requested to decide. */
struct cel_check {
    struct str service_account_ns, service_account; /* instead of the user of the request */
    struct str path;                                /* empty: of a resource */
    struct str group, resource, subresource, ns, name, verb;
    struct str label_selector, field_selector;
};

struct cel_run;
struct cel_shapes;
/* For what a callback does in a run. */
void cel_charge(struct cel_run *r, uint64_t units);
/* The variables of one evaluation. */
struct cel_variable {
    const char *name;
    struct cel_value value;
};
struct cel_activation {
    const struct cel_variable *variables;
    size_t n;
    /* A member of a value of kind CEL_VARIABLES, evaluated now; may be NULL. */
    struct cel_value (*member)(void *ctx, struct cel_run *run, struct str name);
    /* Sets *ret_reason; may be NULL. */
    bool (*authorize)(void *ctx, const struct cel_check *check, struct str *ret_reason);
    void *ctx;
    const struct cel_shapes *shapes; /* of the values that have one; may be NULL */
};

/* Declarations to compile against. Types are written as letters (vapi/cel/README.md): "*" is
 * dyn, "Ls" a list of strings. */
struct cel_declaration {
    const char *name, *type;
};
struct cel_environment {
    const struct cel_declaration *variables;
    size_t n;
    bool objects; /* `Object{...}` and `JSONPatch{...}` are declared */
    /* Of `variables`: the type of a member, or NULL; may be NULL itself. */
    const char *(*member)(void *ctx, struct str name);
    void *ctx;
    const struct cel_shapes *shapes; /* of the types that are objects of a schema; may be NULL */
};

struct cel_program;
/* Everything lives in a; source is copied. Errors: INVALID with the message of upstream's
 * compiler ("ERROR: <input>:1:8: ..."). */
int cel_compile(struct arena *a, struct str source, const struct cel_environment *e,
                struct cel_program **ret, struct err *err) MUST_CHECK;
/* Releases what is not in the arena (compiled patterns). Takes NULL. */
void cel_program_release(struct cel_program *p);
const char *cel_program_type(const struct cel_program *p); /* of its result, letters */
/* Levels of its tree, at most 1000: what an evaluation needs of the stack. */
unsigned cel_program_depth(const struct cel_program *p);
struct str cel_type_text(struct arena *a, const char *type); /* "list(string)" */
struct str cel_program_source(const struct cel_program *p);
bool cel_program_names(const struct cel_program *p, struct str name); /* as a variable */

/* Evaluates in a: an error is a value. Adds to *cost and fails once it passes limit. Values may
 * point into a, into the program and into what is bound. */
struct cel_value cel_evaluate(struct arena *a, const struct cel_program *p,
                              const struct cel_activation *activation, int64_t limit,
                              int64_t *cost);
bool cel_is_true(struct cel_value v);
