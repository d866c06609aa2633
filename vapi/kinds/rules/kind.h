/* SPDX-License-Identifier: Apache-2.0
 *
 * What the file of a kind begins with: the pieces its one `struct kind` is made of. Internal to
 * vapi/kinds. */
#pragma once

#include "cells.h"
#include "check.h"
#include "defaults.h"
#include "rows.h"

#include <sublet/kinds.h>

/* ---- the resource of a kind, as discovery reports it ---- */

#define KIND_STR(text)                                                                             \
    {                                                                                              \
        ("" text), sizeof(text) - 1                                                                \
    }
#define RESOURCE_OF(verbs_, group_, version_, kind_, plural_, singular_)                           \
    .resource.group = KIND_STR(group_), .resource.version = KIND_STR(version_),                    \
    .resource.kind = KIND_STR(kind_), .resource.list_kind = KIND_STR(kind_ "List"),                \
    .resource.plural = KIND_STR(plural_), .resource.singular = KIND_STR(singular_),                \
    .resource.verbs = (verbs_)
#define RESOURCE(...) RESOURCE_OF(VERBS_ALL, __VA_ARGS__)
#define SUBRESOURCES(...)                                                                          \
    .resource.subresources = (const struct subresource[]){__VA_ARGS__},                            \
    .resource.n_subresources = COUNT(((const struct subresource[]){__VA_ARGS__}))
/* Columns after the name; fields that a list can select by. */
#define COLUMNS(...)                                                                               \
    .resource.columns = (const struct column[])                                                    \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            NULL                                                                                   \
        }                                                                                          \
    }
#define FIELDS(...)                                                                                \
    .resource.fields = (const struct selectable_field[])                                           \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            NULL, NULL, NULL                                                                       \
        }                                                                                          \
    }
#define VERBS_SUB (VERB_GET | VERB_UPDATE | VERB_PATCH)
/* Paths after the kind: what a write to status does not change, instead of the spec. */
#define STATUS_OF(kind_, ...)                                                                      \
    {                                                                                              \
        "status", SUB_STATUS, VERBS_SUB, "", "", kind_, NULL, __VA_OPT__(NAMES(__VA_ARGS__))       \
    }
#define SCALE_BY(paths)                                                                            \
    {                                                                                              \
        "scale", SUB_SCALE, VERBS_SUB, "autoscaling", "v1", "Scale", &(paths)                      \
    }
extern const struct scale_paths SCALE_SELECTOR; /* spec.selector is a LabelSelector */
extern const struct scale_paths SCALE_MAP;      /* spec.selector is a map of labels */
extern const struct column COLUMNS_AGE[];
extern const struct column COLUMNS_CREATED[]; /* "Created At", as of upstream's default table */

/* ---- rows and functions of a kind ---- */

#define RULES(rows_)                                                                               \
    {                                                                                              \
        (rows_), COUNT(rows_)                                                                      \
    }
#define DEFAULTS(rows_) RULES(rows_)

/* object, and what it replaces or NULL */
#define VALIDATES(name) void name(struct field_errors *e, const cJSON *object, const cJSON *old)
#define WARNS(name)                                                                                \
    void name(struct arena *a, const cJSON *object, void (*warn)(void *, struct str), void *ctx)
