/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of vapi/cel share: the syntax tree, the run, the table of functions. */
#pragma once

#include "value.h"

#include <sublet/pattern.h>

#define CEL_MAX_DEPTH  250    /* nesting of the source, as cel-go */
#define CEL_MAX_TREE   1000   /* of the tree: chains of operators nest to the left */
#define CEL_MAX_SOURCE 100000 /* characters, as cel-go */
#define CEL_MAX_NODES  50000
#define CEL_MAX_VALUE  500 /* nesting of values that are compared */

enum cel_op {
    CEL_LITERAL,
    CEL_IDENT,
    CEL_SELECT,
    CEL_HAS,
    CEL_CALL,
    CEL_AND,
    CEL_OR,
    CEL_COND,
    CEL_NEW_LIST,
    CEL_NEW_MAP,
    CEL_NEW_OBJECT,
    CEL_FOLD,
};

enum cel_fold {
    FOLD_ALL,
    FOLD_EXISTS,
    FOLD_ONE,
    FOLD_MAP,
    FOLD_FILTER,
    FOLD_SORT_BY,
    FOLD_OPT_MAP,
    FOLD_OPT_FLAT,
    FOLD_TRANSFORM_LIST,
    FOLD_TRANSFORM_MAP,
    FOLD_TRANSFORM_ENTRIES
};

struct cel_function;

/* args: the operand of a select; the target of a member call first; elements; keys and values in
 * turn, of an object fields and values; of a fold: range, then predicate and transform as its kind
 * has them. */
struct cel_node {
    enum cel_op op;
    enum cel_fold fold;
    unsigned depth;
    bool member, optional;   /* of a call; of a select or index: `.?`, `[?` */
    const bool *optionals;   /* of elements: `?x` */
    size_t at;               /* offset in the source */
    struct str name, second; /* identifier, field, function; the variables of a fold */
    struct cel_value value;
    struct cel_node **args;
    size_t n;
    const struct cel_function *const *functions; /* the rows of its name; NULL ends them */
    struct pattern *pattern;                     /* of a literal regular expression */
};

struct cel_program {
    struct str source;
    struct cel_node *root;
    const char *type;
    struct pattern *patterns;
};

struct cel_scope {
    const struct cel_scope *up;
    struct str name;
    struct cel_value value;
};

struct cel_run {
    struct arena *arena;
    const struct cel_activation *activation;
    const struct cel_scope *scope;
    int64_t cost, limit;
    bool over;                   /* the limit is passed: nothing absorbs this */
    unsigned depth;              /* of values being compared */
    unsigned steps;              /* that are free upstream */
    struct cel_zone *zones;      /* times.c */
    const struct cel_node *node; /* the call being evaluated */
};

/* One overload. Arguments and result in letters; a member's target comes first. Several rows of a
 * name follow each other. */
struct cel_function {
    const char *name;
    bool member;
    const char *args, *result;
    struct cel_value (*call)(struct cel_run *r, const struct cel_value *a, size_t n);
};
struct cel_functions {
    const struct cel_function *rows;
    size_t n;
};
extern const struct cel_functions CEL_OPERATORS, CEL_STANDARD, CEL_STRINGS, CEL_LISTS,
    CEL_KUBERNETES, CEL_FORMATS, CEL_URLS, CEL_SEMVERS, CEL_TIMES;

/* parse.c */
int cel_parse(struct arena *a, struct str source, struct cel_program *p,
              struct err *err) MUST_CHECK;
/* "ERROR: <input>:LINE:COLUMN: message", the line and a caret; returns -1. */
int cel_report(struct arena *a, struct str source, size_t at, struct err *err, const char *format,
               ...) __attribute__((format(printf, 5, 6)));

/* table.c */
const struct cel_function *cel_function_first(struct str name);
const struct cel_function *cel_function_next(const struct cel_function *f);

/* letters.c */
const char *cel_type_skip(const char *type); /* behind one type */
bool cel_kind_fits(char letter, enum cel_kind kind);

/* check.c */
int cel_check_types(struct arena *a, struct cel_program *p, const struct cel_environment *e,
                    struct err *err) MUST_CHECK;

/* url.c: why it is none, in Go's words; or empty */
struct str cel_url_problem(struct arena *a, struct str raw);
int cel_semver_order(struct cel_value a, struct cel_value b); /* semver.c */

/* eval.c */
void cel_charge_walk(struct cel_run *r, size_t steps); /* over JSON, names, keys: a quarter */
void cel_charge_text(struct cel_run *r, size_t bytes); /* a tenth for each */
/* Of a string that is converted: numbers and times are short, a tenant's string need not be. */
void cel_charge_long(struct cel_run *r, struct cel_value v);
/* Room for n bytes more, or the run ends. */
void *cel_room(struct cel_run *r, size_t n);
