/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * metadata of an object as the API server reads, fills and keeps it. */
#pragma once

#include <sublet/call.h>

/* Puts members in upstream's order: metadata's as its struct has them, its maps sorted; all members
 * of a custom resource sorted. kind and apiVersion are first. */
void meta_canonical(struct arena *a, const struct resource *r, cJSON *object);
cJSON *meta_of(struct arena *a, cJSON *object);
void meta_wipe(struct arena *a, cJSON *object);
void meta_fill(struct vapi *api, struct arena *a, cJSON *object);
int meta_wrong_namespace(struct err *err) MUST_CHECK;
int meta_check_namespace(const struct call *c, struct arena *a, cJSON *object,
                         struct err *err) MUST_CHECK;
/* Removes duplicate entries of ownerReferences, with upstream's warning. */
void meta_dedup_owners(struct call *c, cJSON *object, bool after_admission);
void meta_generate_name(struct vapi *api, struct arena *a, cJSON *object);
void meta_warn_finalizers(struct call *c, const cJSON *object, const cJSON *old);
/* Copies from old what an update cannot change: generation, uid, creation and deletion. */
void meta_carry_over(struct arena *a, cJSON *object, const cJSON *old);
/* Compares all fields but kind, apiVersion, metadata and status: those metadata.generation
 * counts. */
bool meta_spec_equal(const cJSON *a, const cJSON *b);
bool meta_has_finalizers(const cJSON *object);
void meta_set_revision(struct arena *a, cJSON *object, int64_t revision);
