/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * PersistentVolumeClaims: which are refused, which class they have, and the host object. */
#pragma once

#include <sublet/err.h>
#include <sublet/json.h>

struct translate_tenant;

/* A field that could escape: FORBIDDEN. A volumeName that is no volume of the tenant's is refused
 * only while the claim is not stored yet. */
int translate_check_pvc(struct arena *a, const struct translate_tenant *t, const cJSON *pvc,
                        struct err *err) MUST_CHECK;
/* Whether the class of a claim is offered: one of policy.storageClasses, of which the first stands
 * for none, or else the host's default, or shown. UNAVAILABLE while that is not known. */
int translate_check_pvc_class(const struct translate_tenant *t, const cJSON *claim,
                              struct err *err) MUST_CHECK;
struct str translate_pvc_class(const cJSON *claim); /* as it is written; may be empty */
bool translate_class_offered(const struct translate_tenant *t, struct str class);
/* Does spec.volumeName lead to a PersistentVolume of the tenant's that is for the host? */
bool translate_pvc_names_volume(const struct translate_tenant *t, const cJSON *claim);
/* Was the host claim created for that volume? */
bool translate_pvc_has_volume(const struct translate_tenant *t, const cJSON *host, const cJSON *v);
struct str translate_default_class(const struct translate_tenant *t); /* empty: none is known */

/* host_now: the host object that is to be updated, whose class is settled; NULL: to be created. */
int translate_pvc(struct arena *a, const struct translate_tenant *t, const cJSON *v,
                  const cJSON *host_now, cJSON **ret, struct err *err) MUST_CHECK;
