/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of vapi/kinds share: tables of defaults, and the pieces of kinds that other kinds
 * contain. Internal to vapi/kinds. */
#pragma once

#include <sublet/field.h>
#include <sublet/kinds.h>
#include <sublet/object.h>
#include <sublet/selector.h>

#include "ops.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- defaults.c ---- */

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
/* A fresh status from JSON text. */
void set_status(struct arena *a, cJSON *object, const char *json);

/* ---- pod_defaults.c ---- */
void defaults_pod(struct arena *a, cJSON *pod);
void defaults_pod_spec(struct arena *a, cJSON *spec); /* of pods and templates */
/* pod_resources.c: spec.resources from what the containers say. */
void defaults_pod_resources(struct arena *a, cJSON *spec);
bool image_reference_ok(struct str image);

/* ---- pod_prepare.c ---- */
void prepare_pod_create(struct arena *a, cJSON *pod);
struct str pod_qos(const cJSON *pod);
/* pod_annotations.c: AppArmor profiles of annotations become fields. */
void pod_sync_app_armor(struct arena *a, cJSON *pod);

/* ---- storage of volumes ---- */
void defaults_volume_source(struct arena *a, cJSON *source); /* what PVs and volumes share */
void defaults_claim_spec(struct arena *a, cJSON *spec);
void defaults_claim(struct arena *a, cJSON *claim);

/* ---- apps.c, core_event.c, autoscaling_convert.c ---- */
const char *daemon_set_unreadable(struct arena *a, const cJSON *object);
void event_from_storage(struct arena *a, cJSON *event);
void event_to_storage(struct arena *a, cJSON *event);
void autoscaler_from_storage(struct arena *a, cJSON *object);
/* What the conversion to v2 fills in. */
void autoscaler_default_v1(struct arena *a, const cJSON *object, cJSON *spec);
void autoscaler_to_storage(struct arena *a, cJSON *object);
