/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * PersistentVolumes of a tenant, by sync.toHost.persistentVolumes: which are for the host, and
 * whose claims may have them. What goes down is in their rules (translate_kind.h). */
#pragma once

#include <sublet/translate_kind.h>

/* Is it of a driver that the admin listed? */
bool translate_volume_is_listed(const struct translate_tenant *t, const cJSON *volume);
/* One that is to be created: FORBIDDEN, with the field, for every other source. */
int translate_check_volume(const struct translate_tenant *t, const cJSON *volume,
                           struct err *err) MUST_CHECK;
/* Why a claim that names the volume cannot have it, in the words of upstream's binder
 * (checkVolumeSatisfyClaim); NULL: it can. */
const char *translate_volume_mismatch(const cJSON *volume, const cJSON *claim);
