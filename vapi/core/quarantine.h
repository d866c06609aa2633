/* SPDX-License-Identifier: Apache-2.0 */
/* Stored objects that cannot be read (store.h): the answer to a request for one, and its report.
 * Private to vapi. */
#pragma once

#include "core.h"

/* The unreadable object a call names; NULL when it names none. */
const struct store_object *quarantine_of(const struct call *c);
/* Sets the error such a call is answered with; returns -1. Source: the status reason
 * StorageReadError of k8s.io/apimachinery pkg/apis/meta/v1 types.go. */
int quarantine_refuse(const struct call *c, const struct store_object *o, struct err *err);
/* Its known metadata: kind, version, name, namespace, uid. */
cJSON *quarantine_stand_in(struct arena *a, const struct resource *r, const struct store_object *o);
/* Sets a notice for each, and from then on when the file of the store was rebuilt; called once, at
 * start. */
void quarantine_report(struct vapi *api);
void quarantine_unwatch(struct vapi *api);
void quarantine_over(struct vapi *api, const struct resource *r, struct str ns, struct str name);
