/* SPDX-License-Identifier: Apache-2.0 */
/* HorizontalPodAutoscalers between autoscaling/v1 and v2, the stored version. Internal to
 * vapi/kinds. */
#pragma once

#include "../rules/kind.h"

void kinds_autoscaler_from_storage(struct arena *a, cJSON *object);
void kinds_autoscaler_to_storage(struct arena *a, cJSON *object);
/* part: "target" of a spec or "current" of a status. */
cJSON *kinds_autoscaler_cpu_metric(struct arena *a, const char *part, const cJSON *utilization);
/* What the conversion to v2 fills in. */
void kinds_autoscaler_default_v1(struct arena *a, const cJSON *object, cJSON *spec);
