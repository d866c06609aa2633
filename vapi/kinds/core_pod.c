/* SPDX-License-Identifier: Apache-2.0 */
/* Pods and PodTemplates: which functions make up these kinds. */
#include "validate.h"

/* Old kubelets would spoil the owners. */
static void pod_prepare_status(struct arena *a, cJSON *pod, const cJSON *old)
{
    keep_old(a, pod, old, "metadata.ownerReferences");
    /* Set for good when the pod was made; clients that build a status leave it out. */
    if (!json_str_at(pod, "status.qosClass").n)
        json_set_str(a, json_ensure_object(a, pod, "status"), "qosClass", pod_qos(old));
}

static void pod_warn_create(struct arena *a, const cJSON *pod, void (*warn)(void *, struct str),
                            void *ctx)
{
    const char *why = name_check_dns1123_label(json_str_at(pod, "metadata.name"));

    if (why)
        warn(ctx, arena_printf(a,
                               "metadata.name: this is used in the Pod's hostname, which can "
                               "result in surprising behavior; a DNS label is recommended: [%s]",
                               why));
    warn_pod_app_armor(a, pod, warn, ctx);
}

const struct kind_ops POD_OPS = {
    .defaults = defaults_pod,
    .prepare_create = prepare_pod_create,
    .validate = validate_pod,
    .validate_status = validate_pod_status,
    .prepare_status = pod_prepare_status,
    .warnings = warn_pod,
    .warnings_before_create = pod_warn_create,
    .cells = cells_pod,
};

static void template_defaults(struct arena *a, cJSON *object)
{
    defaults_pod_template(a, json_get(object, "template"));
}

static void template_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    (void)old;
    validate_pod_template(e, FIELD(NULL, "template"), json_get(object, "template"));
}

const struct kind_ops POD_TEMPLATE_OPS = {
    .validate = template_validate,
    .defaults = template_defaults,
    .warnings = warn_template_bare,
    .cells = cells_pod_template,
};
