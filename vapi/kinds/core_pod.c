/* SPDX-License-Identifier: Apache-2.0 */
/* Pods and PodTemplates: which functions make up these kinds. */
#include "cells.h"

const struct kind_ops POD_OPS = {
    .defaults = defaults_pod,
    .prepare_create = prepare_pod_create,
    .cells = cells_pod,
};

static void template_defaults(struct arena *a, cJSON *object)
{
    defaults_pod_template(a, json_get(object, "template"));
}

const struct kind_ops POD_TEMPLATE_OPS = {
    .defaults = template_defaults,
    .cells = cells_pod_template,
};
