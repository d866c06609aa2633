/* SPDX-License-Identifier: Apache-2.0 */
/* Stored objects that cannot be read (store.h): what a request for one is answered, and what is
 * reported. Private to vapi. */
#pragma once

#include "core.h"

/* The object a call names, when it is one of them; else NULL. */
const struct store_object *quarantine_of(const struct call *c);
/* Sets the error such a call is answered with; returns -1. Source: the status reason
 * StorageReadError of k8s.io/apimachinery pkg/apis/meta/v1 types.go. */
int quarantine_refuse(const struct call *c, const struct store_object *o, struct err *err);
/* What is known of it: kind, version, name, namespace, uid. */
cJSON *quarantine_stand_in(struct arena *a, const struct resource *r, const struct store_object *o);
/* A notice for each there is; called once, at start. */
void quarantine_report(struct vapi *api);
void quarantine_over(struct vapi *api, const struct resource *r, struct str ns, struct str name);
