/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * What a living host object gets after its creation. Pure functions, as all of the room. */
#pragma once

#include <sublet/json.h>

/* Changes a living host object may get from us: a JSON merge patch of the fields we own that
 * differ, or NULL when nothing does. What others added stays. So do images and quantities that they
 * changed, until the tenant changes them: the host pod has a record of what was sent last. changed:
 * has the tenant changed the pod since it was created? It counts where a host pod has no record,
 * which an earlier version created. */
cJSON *translate_pod_update(struct arena *a, const cJSON *host_now, const cJSON *host_wanted,
                            bool changed);
/* Has the host pod the wanted containers, but for what a patch can change? */
bool translate_pod_is_made_of(const cJSON *host_now, const cJSON *host_wanted);
/* Changed cpu and memory, as a strategic merge patch for pods/resize; NULL for none. */
cJSON *translate_pod_resize(struct arena *a, const cJSON *host_now, const cJSON *host_wanted,
                            bool changed);
/* ... and once the host has taken it: the record of it, as a merge patch of the pod. */
cJSON *translate_pod_resized(struct arena *a, const cJSON *host_wanted);
cJSON *translate_service_update(struct arena *a, const cJSON *host_now, const cJSON *host_wanted);
cJSON *translate_pvc_update(struct arena *a, const cJSON *host_now, const cJSON *host_wanted);
/* data, labels, annotations of ConfigMaps and Secrets. */
cJSON *translate_data_update(struct arena *a, const cJSON *host_now, const cJSON *host_wanted);
