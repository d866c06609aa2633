/* SPDX-License-Identifier: Apache-2.0 */
/* VolumeAttachments. Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "class.h"

static const struct default_rule DEFAULT_RULES[] = {
    SET_BY("spec.source.inlineVolumeSpec.capacity", defaults_resource_list),
    SET_BY("spec.source.inlineVolumeSpec", defaults_volume_source),
};

static void check_attachment_source(struct field_errors *e, const struct field_path *p,
                                    const cJSON *source)
{
    const cJSON *name = kinds_given(source, "persistentVolumeName");
    bool is_inline = kinds_given(source, "inlineVolumeSpec") != NULL;
    const char *one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

    if (!name && !is_inline)
        field_required(e, p, one);
    else if (name && is_inline)
        field_forbidden(e, p, one);
    else if (name && !json_str(name).n)
        field_required(e, FIELD(p, "persistentVolumeName"),
                       "must specify non empty persistentVolumeName");
    else if (is_inline)
        validate_inline_volume(e, FIELD(p, "inlineVolumeSpec"),
                               kinds_given(source, "inlineVolumeSpec"));
}

static void check_message(struct field_errors *e, const struct field_path *p, const cJSON *message)
{
    if (json_str(message).n > 1024)
        field_too_long(e, p, MAX_SIZE); /* upstream names another limit than it checks */
}

static void check_size(struct field_errors *e, const struct field_path *p, const cJSON *map)
{
    size_t total = 0;

    json_each(item, map) total += str_c(item->string).n + json_str(item).n;
    if (total > MAX_SIZE)
        field_too_long(e, p, MAX_SIZE);
}

static const struct rule VOLUME_ERROR[] = {
    CHECK("message", check_message),
    RANGE("errorCode", 0, INT32_MAX),
};

static const struct rule ATTACHMENT_RULES[] = {
    DRIVER_NAME("spec.attacher"),
    CHECK_ALWAYS("spec.source", check_attachment_source),
    NAME_ALWAYS("spec.nodeName", DNS1123_SUBDOMAIN),
    CHECK("status.attachmentMetadata", check_size),
    WITHIN("status.attachError", ALL(VOLUME_ERROR)),
    WITHIN("status.detachError", ALL(VOLUME_ERROR)),
    NAME_IF_GIVEN("spec.source.persistentVolumeName", DNS1123_SUBDOMAIN),
    FIXED("spec"),
};

/* ---- the kind ---- */

const struct kind KIND_VOLUME_ATTACHMENT = {
    RESOURCE("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "volumeattachment"),
    .resource.flags = RES_STATUS | RES_CONDITIONAL_UPDATE | RES_DELETE_RETURNS_OBJECT |
                      RES_NAME_ON_UPDATE | RES_STATUS_KEEPS_META,
    COLUMNS({"Attacher", "string", .format = "name", .cell = show_text, .path = "spec.attacher"},
            {"PV", "string", .cell = show_text, .path = "spec.source.persistentVolumeName"},
            {"Node", "string", .cell = show_text, .path = "spec.nodeName"},
            {"Attached", "boolean", .cell = show_bool, .path = "status.attached"},
            {"Age", "string", .cell = show_age}),
    SUBRESOURCES(STATUS_OF("VolumeAttachment")),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .new_status = "{\"attached\":false}",
    .rules = RULES(ATTACHMENT_RULES),
    .status_rules = RULES(ATTACHMENT_RULES),
};
