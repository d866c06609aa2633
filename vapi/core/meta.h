/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * metadata of an object as the API server reads, fills and keeps it. */
#pragma once

#include <sublet/call.h>

/* Puts members in upstream's order: metadata's as its struct has them, its maps sorted; all members
 * of a custom resource sorted. kind and apiVersion are first. */
void vapi_meta_canonical(struct arena *a, const struct resource *r, cJSON *object);
cJSON *vapi_meta_of(struct arena *a, cJSON *object);
void vapi_meta_wipe(struct arena *a, cJSON *object);
void vapi_meta_fill(struct vapi *api, struct arena *a, cJSON *object);
int vapi_meta_wrong_namespace(struct err *err) MUST_CHECK;
int vapi_meta_check_namespace(const struct call *c, struct arena *a, cJSON *object,
                              struct err *err) MUST_CHECK;
/* Removes duplicate entries of ownerReferences, with upstream's warning. */
void vapi_meta_dedup_owners(struct call *c, cJSON *object, bool after_admission);
void vapi_meta_generate_name(struct vapi *api, struct arena *a, cJSON *object);
void vapi_meta_warn_finalizers(struct call *c, const cJSON *object, const cJSON *old);
/* Copies from old what an update cannot change: generation, uid, creation and deletion. */
void vapi_meta_carry_over(struct arena *a, cJSON *object, const cJSON *old);
/* Compares all fields but kind, apiVersion, metadata and status: those metadata.generation
 * counts. */
bool vapi_meta_spec_equal(const cJSON *a, const cJSON *b);
bool vapi_meta_has_finalizers(const cJSON *object);
void vapi_meta_set_revision(struct arena *a, cJSON *object, int64_t revision);
