/* SPDX-License-Identifier: Apache-2.0 */
/* VolumeAttachments. Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "class.h"

static void attachment_defaults(struct arena *a, cJSON *attachment)
{
    cJSON *spec = json_path(attachment, "spec.source.inlineVolumeSpec");

    if (!spec)
        return;
    defaults_resource_list(a, json_get(spec, "capacity"));
    defaults_volume_source(a, spec);
}

static void attachment_prepare_create(struct arena *a, cJSON *attachment)
{
    set_status(a, attachment, "{\"attached\":false}");
}

static void check_attachment_source(struct field_errors *e, const struct field_path *p,
                                    const cJSON *source)
{
    const cJSON *name = given(source, "persistentVolumeName");
    bool is_inline = given(source, "inlineVolumeSpec") != NULL;
    const char *one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

    if (!name && !is_inline)
        field_required(e, p, one);
    else if (name && is_inline)
        field_forbidden(e, p, one);
    else if (name && !json_str(name).n)
        field_required(e, FIELD(p, "persistentVolumeName"),
                       "must specify non empty persistentVolumeName");
    else if (is_inline)
        validate_inline_volume(e, FIELD(p, "inlineVolumeSpec"), given(source, "inlineVolumeSpec"));
}

static void check_volume_error(struct field_errors *e, const struct field_path *p,
                               const cJSON *error)
{
    if (json_str(json_get(error, "message")).n > 1024)
        field_too_long(e, FIELD(p, "message"), MAX_SIZE);
    check_range(e, FIELD(p, "errorCode"), given(error, "errorCode"), 0, INT32_MAX);
}

static void attachment_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *status = json_get(object, "status");
    const cJSON *name = given(spec, "source.persistentVolumeName");
    AT(p, NULL, "spec");
    AT(at, NULL, "status");
    size_t total = 0;

    check_driver_name(e, FIELD(p, "attacher"), json_str(json_get(spec, "attacher")));
    check_attachment_source(e, FIELD(p, "source"), json_get(spec, "source"));
    check_rule(e, FIELD(p, "nodeName"), NAME_DNS1123_SUBDOMAIN,
               json_str(json_get(spec, "nodeName")));
    json_each(item, json_get(status, "attachmentMetadata")) total +=
        str_c(item->string).n + json_str(item).n;
    if (total > MAX_SIZE)
        field_too_long(e, FIELD(at, "attachmentMetadata"), MAX_SIZE);
    check_volume_error(e, FIELD(at, "attachError"), given(status, "attachError"));
    check_volume_error(e, FIELD(at, "detachError"), given(status, "detachError"));
    if (name)
        check_rule(e, FIELD(NULL, "spec.source.persistentVolumeName"), NAME_DNS1123_SUBDOMAIN,
                   json_str(name));
    if (old)
        check_immutable(e, p, spec, json_get(old, "spec"));
}

static ROW_CELLS(cells_attachment)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "spec.attacher");
    cell_text_at(&r, "spec.source.persistentVolumeName");
    cell_text_at(&r, "spec.nodeName");
    cell_bool(&r, json_true(json_path(object, "status.attached")));
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Attacher", "string", "name", "", 0}, {"PV", "string", "", "", 0},
    {"Node", "string", "", "", 0},         {"Attached", "boolean", "", "", 0},
    {"Age", "string", "", "", 0},          {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_VOLUME_ATTACHMENT = {
    .resource =
        {
            RESOURCE("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments",
                     "volumeattachment"),
            .verbs = VERBS_ALL,
            .flags = RES_STATUS | RES_CONDITIONAL_UPDATE | RES_DELETE_RETURNS_OBJECT |
                     RES_NAME_ON_UPDATE | RES_STATUS_KEEPS_META,
            .columns = COLUMNS,
            SUBRESOURCES(STATUS_OF("VolumeAttachment")),
        },
    .defaults = attachment_defaults,
    .prepare_create = attachment_prepare_create,
    .validate = attachment_validate,
    .validate_status = attachment_validate,
    .cells = cells_attachment,
};
