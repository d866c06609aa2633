/* SPDX-License-Identifier: Apache-2.0
 *
 * Defaults as rows, and changes of an object before it is validated. Internal to vapi/kinds. */
#pragma once

#include <sublet/json.h>

enum default_type { DEFAULT_STRING, DEFAULT_NUMBER, DEFAULT_BOOL, DEFAULT_OBJECT };

/* One default. The path names object members; `[]` behind a member goes into each of its items, `+`
 * makes it when it is absent; a member that is absent otherwise ends the path. */
struct default_rule {
    const char *path;
    enum default_type type;
    bool zero;        /* also in place of "" or 0: the field is no pointer in Go */
    const char *text; /* of a string */
    int64_t number;   /* of a number or bool */
};
#define SET_TEXT(path, text)                                                                       \
    {                                                                                              \
        path, DEFAULT_STRING, false, text, 0                                                       \
    }
#define SET_TEXT_Z(path, text)                                                                     \
    {                                                                                              \
        path, DEFAULT_STRING, true, text, 0                                                        \
    }
#define SET_NUMBER(path, n)                                                                        \
    {                                                                                              \
        path, DEFAULT_NUMBER, false, NULL, n                                                       \
    }
#define SET_NUMBER_Z(path, n)                                                                      \
    {                                                                                              \
        path, DEFAULT_NUMBER, true, NULL, n                                                        \
    }
#define SET_BOOL(path, value)                                                                      \
    {                                                                                              \
        path, DEFAULT_BOOL, false, NULL, value                                                     \
    }
#define SET_OBJECT(path)                                                                           \
    {                                                                                              \
        path, DEFAULT_OBJECT, false, NULL, 0                                                       \
    }

void defaults_apply(struct arena *a, cJSON *object, const struct default_rule *rules, size_t n);
/* Members of `from` that `to` lacks. */
void defaults_merge(struct arena *a, cJSON *to, const cJSON *from);
/* Quantities of a ResourceList, rounded up to milli units. */
void defaults_resource_list(struct arena *a, cJSON *list);
void defaults_resources(struct arena *a, cJSON *requirements); /* limits and requests */
/* Removes a member, by a path as of a default: fields of features upstream has off. */
void drop_member(cJSON *object, const char *path);
/* A member, by dotted path, as the old object has it. */
void keep_old(struct arena *a, cJSON *object, const cJSON *old, const char *path);
/* A fresh status from JSON. */
void set_status(struct arena *a, cJSON *object, const char *json);
