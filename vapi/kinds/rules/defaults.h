/* SPDX-License-Identifier: Apache-2.0
 *
 * Defaults as rows, and changes of an object before it is validated. Internal to vapi/kinds. */
#pragma once

#include <sublet/json.h>

enum default_type {
    DEFAULT_STRING,
    DEFAULT_NUMBER,
    DEFAULT_BOOL,
    DEFAULT_OBJECT,
    DEFAULT_BY,
    DEFAULT_DROPPED
};

/* One default. The path names object members; `[]` behind a member goes into each of its items or
 * values, `+` makes it when it is absent; a member that is absent otherwise ends the path. */
struct default_rule {
    const char *path;
    enum default_type type;
    bool zero; /* also in place of "" or 0: the field is no pointer in Go */
    union {
        const char *text; /* of a string */
        int64_t number;   /* of a number or bool */
        void (*by)(struct arena *a, cJSON *member);
    };
};
#define SET(path_, type_, zero_, ...)                                                              \
    {                                                                                              \
        .path = (path_), .type = DEFAULT_##type_, .zero = (zero_), __VA_ARGS__                     \
    }
#define SET_TEXT(path, value)     SET(path, STRING, false, .text = (value))
#define SET_TEXT_Z(path, value)   SET(path, STRING, true, .text = (value))
#define SET_NUMBER(path, value)   SET(path, NUMBER, false, .number = (value))
#define SET_NUMBER_Z(path, value) SET(path, NUMBER, true, .number = (value))
#define SET_BOOL(path, value)     SET(path, BOOL, false, .number = (value))
#define SET_OBJECT(path)          SET(path, OBJECT, false, .number = 0)
/* Of a member that is there: by the function; of a feature that upstream has off: dropped. */
#define SET_BY(path, function) SET(path, BY, false, .by = (function))
#define DROPPED(path)          SET(path, DROPPED, false, .number = 0)

void defaults_apply(struct arena *a, cJSON *object, const struct default_rule *rules, size_t n);
/* Members of `from` that `to` lacks. */
void defaults_merge(struct arena *a, cJSON *to, const cJSON *from);
/* Quantities of a ResourceList, rounded up to milli units. */
void defaults_resource_list(struct arena *a, cJSON *list);
void defaults_resources(struct arena *a, cJSON *requirements); /* limits and requests */
/* A member, by dotted path, as the old object has it. */
void defaults_keep_old(struct arena *a, cJSON *object, const cJSON *old, const char *path);
/* A fresh status from JSON. */
void defaults_set_status(struct arena *a, cJSON *object, const char *json);
