/* SPDX-License-Identifier: Apache-2.0 */
/* storage.k8s.io. Source: pkg/apis/storage/v1/defaults.go. */
#include "validate.h"

#include <sublet/encode.h>
#include <sublet/quantity.h>

#include <stdlib.h>

/* ---- what classes share ---- */

#define MAX_PARAMETERS 512
#define MAX_SIZE       (256 * 1024)

static void check_provisioner(struct field_errors *e, const struct field_path *p,
                              const cJSON *value)
{
    if (check_given(e, p, json_str(value)))
        check_rule(e, p, NAME_QUALIFIED, lower_case(e->arena, json_str(value)));
}

static void check_parameters(struct field_errors *e, const struct field_path *p,
                             const cJSON *parameters, bool may_be_empty)
{
    size_t total = 0;

    if (json_count(parameters) > MAX_PARAMETERS) {
        field_too_long(e, p, MAX_PARAMETERS);
        return;
    }
    json_each(item, parameters)
    {
        if (!*item->string)
            field_invalid_str(e, p, STR(""), "field can not be empty.");
        total += str_c(item->string).n + json_str(item).n;
    }
    if (total > MAX_SIZE)
        field_too_long(e, p, MAX_SIZE);
    if (!may_be_empty && !json_count(parameters))
        field_required(e, p, "must contain at least one key/value pair");
}

/* ---- StorageClass ---- */

static void class_defaults(struct arena *a, cJSON *class)
{
    static const struct default_rule rules[] = {
        SET_TEXT("reclaimPolicy", "Delete"),
        SET_TEXT("volumeBindingMode", "Immediate"),
    };

    defaults_apply(a, class, rules, COUNT(rules));
}

static void check_topology(struct field_errors *e, const struct field_path *p, const cJSON *term)
{
    struct names keys = {.arena = e->arena};
    AT(list, p, "matchLabelExpressions");
    size_t i = 0;

    json_each(requirement, json_get(term, "matchLabelExpressions"))
    {
        const struct field_path *at = FIELD_INDEX(list, i++);
        const cJSON *key = json_get(requirement, "key"), *values = json_get(requirement, "values");
        struct names seen = {.arena = e->arena};
        size_t k = 0;

        if (!json_count(values))
            field_required(e, FIELD(at, "values"), "");
        json_each(value, values)
        {
            const struct field_path *here = FIELD_INDEX(FIELD(at, "values"), k++);

            if (!names_add(&seen, json_str(value), value))
                field_duplicate(e, here, value);
        }
        check_rule(e, FIELD(at, "key"), NAME_QUALIFIED, json_str(key));
        if (!names_add(&keys, json_str(key), requirement))
            field_duplicate(e, FIELD(at, "key"), key);
    }
}

/* The texts of a set in one order, in brackets. */
static void print_set(struct buf *b, struct arena *a, struct str *texts, size_t n)
{
    qsort(texts, n, sizeof(*texts), str_order);
    buf_addc(b, "[");
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !str_eq(texts[i], texts[i - 1]))
            buf_add(b, go_quote(a, texts[i]));
    }
    buf_addc(b, "]");
}

static struct str requirement_text(struct arena *a, const cJSON *requirement)
{
    const cJSON *values = json_get(requirement, "values");
    size_t n = json_count(values), i = 0;
    struct str *texts = arena_alloc(a, (n + 1) * sizeof(*texts)), text;
    struct buf b = BUF_INIT(4 << 20);

    json_each(value, values) texts[i++] = json_str(value);
    buf_add(&b, go_quote(a, json_str(json_get(requirement, "key"))));
    print_set(&b, a, texts, n);
    text = str_c(arena_cstr(a, buf_str(&b)));
    buf_fini(&b);
    return text;
}

/* What a term asks for, whatever the order of its parts. */
static struct str term_text(struct arena *a, const cJSON *term)
{
    const cJSON *list = json_get(term, "matchLabelExpressions");
    size_t n = json_count(list), i = 0;
    struct str *texts = arena_alloc(a, (n + 1) * sizeof(*texts)), text;
    struct buf b = BUF_INIT(4 << 20);

    json_each(requirement, list) texts[i++] = requirement_text(a, requirement);
    print_set(&b, a, texts, n);
    text = str_c(arena_cstr(a, buf_str(&b)));
    buf_fini(&b);
    return text;
}

static void check_topologies(struct field_errors *e, const struct field_path *p,
                             const cJSON *topologies)
{
    struct names seen = {.arena = e->arena};
    size_t i = 0;

    json_each(term, topologies)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);

        check_topology(e, at, term);
        /* Upstream finds a term without expressions in the places it has not filled yet. */
        if (!names_add(&seen, term_text(e->arena, term), term) ||
            !json_count(json_get(term, "matchLabelExpressions")))
            field_duplicate(e, FIELD(at, "matchLabelExpressions"),
                            json_new_string(e->arena, STR("")));
    }
}

static void class_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const policies[] = {"Delete", "Retain", NULL};
    static const char *const modes[] = {"Immediate", "WaitForFirstConsumer", NULL};
    static const char *const fixed[] = {"parameters", "provisioner", "reclaimPolicy",
                                        "volumeBindingMode"};
    struct str policy = json_str(json_get(object, "reclaimPolicy"));

    for (size_t i = 0; old && i < COUNT(fixed); i++) {
        const cJSON *was = given(old, fixed[i]);

        if (!same_value(given(object, fixed[i]), was) &&
            (was || json_count(json_get(object, fixed[i]))))
            field_invalid(e, FIELD(NULL, fixed[i]), json_get(object, fixed[i]), IMMUTABLE);
    }
    check_provisioner(e, FIELD(NULL, "provisioner"), json_get(object, "provisioner"));
    check_parameters(e, FIELD(NULL, "parameters"), json_get(object, "parameters"), true);
    if (policy.n)
        check_enum(e, FIELD(NULL, "reclaimPolicy"), policy, policies);
    if (given(object, "volumeBindingMode"))
        check_enum_if(e, FIELD(NULL, "volumeBindingMode"), given(object, "volumeBindingMode"),
                      modes);
    else
        field_required(e, FIELD(NULL, "volumeBindingMode"), "");
    check_topologies(e, FIELD(NULL, "allowedTopologies"), json_get(object, "allowedTopologies"));
}

const struct kind_ops STORAGE_CLASS_OPS = {
    .defaults = class_defaults,
    .validate = class_validate,
    .warnings = warn_storage_class,
    .cells = cells_storage_class,
};

/* ---- CSIDriver ---- */

static const struct default_rule DRIVER[] = {
    SET_BOOL("spec.attachRequired", true),
    SET_BOOL("spec.podInfoOnMount", false),
    SET_BOOL("spec.storageCapacity", false),
    SET_TEXT("spec.fsGroupPolicy", "ReadWriteOnceWithFSType"),
    SET_BOOL("spec.requiresRepublish", false),
    SET_BOOL("spec.seLinuxMount", false),
};

static void driver_defaults(struct arena *a, cJSON *driver)
{
    cJSON *spec = json_get(driver, "spec");

    defaults_apply(a, driver, DRIVER, COUNT(DRIVER));
    drop_member(driver, "spec.preventPodSchedulingIfMissing"); /* a feature upstream has off */
    if (json_is_object(spec) && !json_count(json_get(spec, "volumeLifecycleModes")))
        json_append(json_set(a, spec, "volumeLifecycleModes", json_new_array(a)),
                    json_new_string(a, STR("Persistent")));
}

/* Counted from 0, unlike elsewhere. */
static void driver_prepare_update(struct arena *a, cJSON *driver, const cJSON *old)
{
    if (!json_equal(json_get(driver, "spec"), json_get(old, "spec")))
        json_set_i64(a, json_get(driver, "metadata"), "generation",
                     json_i64_at(old, "metadata.generation", 0) + 1);
}

static void check_tokens(struct field_errors *e, const struct field_path *p, const cJSON *tokens)
{
    struct names audiences = {.arena = e->arena};
    size_t i = 0;

    json_each(token, tokens)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        struct str audience = json_str(json_get(token, "audience"));
        const cJSON *seconds = given(token, "expirationSeconds");
        int64_t n;

        if (!names_add(&audiences, audience, token)) {
            field_duplicate(e, FIELD(at, "audience"), json_new_string(e->arena, audience));
            continue;
        }
        if (!json_i64(seconds, &n))
            continue;
        if (n < 600)
            field_invalid(e, FIELD(at, "expirationSeconds"), seconds,
                          "may not specify a duration less than 10 minutes");
        if (n > INT64_C(1) << 32)
            field_invalid(e, FIELD(at, "expirationSeconds"), seconds,
                          "may not specify a duration larger than 2^32 seconds");
    }
}

static void check_driver_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    static const char *const policies[] = {"File", "None", "ReadWriteOnceWithFSType", NULL};
    static const char *const modes[] = {"Persistent", "Ephemeral", NULL};
    const cJSON *period = given(spec, "nodeAllocatableUpdatePeriodSeconds");
    const cJSON *in_secrets = given(spec, "serviceAccountTokenInSecrets");
    int64_t n;

    check_enum_if(e, FIELD(p, "fsGroupPolicy"), given(spec, "fsGroupPolicy"), policies);
    check_tokens(e, FIELD(p, "tokenRequests"), json_get(spec, "tokenRequests"));
    json_each(mode, json_get(spec, "volumeLifecycleModes"))
        check_enum_if(e, FIELD(p, "volumeLifecycleModes"), mode, modes);
    if (json_i64(period, &n) && n < 10)
        field_invalid(e, FIELD(p, "nodeAllocatableUpdatePeriodSeconds"), period,
                      "must be greater than or equal to 10 seconds");
    if (in_secrets && !json_count(json_get(spec, "tokenRequests")))
        field_invalid(e, FIELD(p, "serviceAccountTokenInSecrets"), in_secrets,
                      "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
}

static void driver_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *before = json_get(old, "spec");
    AT(p, NULL, "spec");

    check_driver_spec(e, p, spec);
    if (!old)
        return;
    check_immutable(e, FIELD(p, "attachedRequired"), json_get(spec, "attachRequired"),
                    json_get(before, "attachRequired"));
    check_immutable(e, FIELD(p, "volumeLifecycleModes"), json_get(spec, "volumeLifecycleModes"),
                    json_get(before, "volumeLifecycleModes"));
}

const struct kind_ops CSIDRIVER_OPS = {
    .defaults = driver_defaults,
    .prepare_update = driver_prepare_update,
    .validate = driver_validate,
    .warnings = warn_csi_driver,
    .cells = cells_csi_driver,
};

/* ---- VolumeAttachment ---- */

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

const struct kind_ops VOLUME_ATTACHMENT_OPS = {
    .defaults = attachment_defaults,
    .prepare_create = attachment_prepare_create,
    .validate = attachment_validate,
    .validate_status = attachment_validate,
    .cells = cells_attachment,
};

/* ---- CSINode ---- */

static void check_node_driver(struct field_errors *e, const struct field_path *p,
                              const cJSON *driver)
{
    struct names keys = {.arena = e->arena};
    const cJSON *id = json_get(driver, "nodeID");

    check_driver_name(e, FIELD(p, "name"), json_str(json_get(driver, "name")));
    check_given(e, FIELD(p, "nodeID"), json_str(id));
    if (json_str(id).n > 256)
        field_invalid(e, FIELD(p, "nodeID"), id, "must be 256 characters or less");
    check_nonnegative(e, FIELD(FIELD(p, "allocatable"), "count"),
                      given(driver, "allocatable.count"));
    json_each(key, json_get(driver, "topologyKeys"))
    {
        check_given(e, p, json_str(key));
        if (!names_add(&keys, json_str(key), key))
            field_duplicate(e, p, key);
        check_rule(e, p, NAME_QUALIFIED, json_str(key));
    }
}

/* Of a driver that stays, only how many volumes it takes may change. */
static void check_driver_kept(struct field_errors *e, const cJSON *driver, const cJSON *old)
{
    cJSON *now, *before;

    if (!old)
        return;
    now = json_copy(e->arena, driver);
    before = json_copy(e->arena, old);
    json_remove(now, "allocatable");
    json_remove(before, "allocatable");
    check_immutable(e, FIELD(FIELD(NULL, "spec"), "drivers"), now, before);
}

static void csi_node_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    struct names names = {.arena = e->arena}, before = {.arena = e->arena};
    const struct field_path *p = FIELD(FIELD(NULL, "spec"), "drivers");
    const cJSON *drivers = json_path(object, "spec.drivers");
    size_t i = 0;

    json_each(driver, drivers)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);

        check_node_driver(e, at, driver);
        if (!names_add(&names, json_str(json_get(driver, "name")), driver))
            field_duplicate(e, FIELD(at, "name"), json_get(driver, "name"));
    }
    names_add_members(&before, json_path(old, "spec.drivers"), "name");
    if (!before.n)
        return;
    json_each(driver, drivers)
        check_driver_kept(e, driver, names_get(&before, json_str(json_get(driver, "name"))));
}

const struct kind_ops CSINODE_OPS = {
    .validate = csi_node_validate,
    .cells = cells_csi_node,
};

/* ---- CSIStorageCapacity ---- */

static void capacity_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *capacity = given(object, "capacity");
    AT(topology, NULL, "nodeTopology");
    AT(class_, NULL, "storageClassName");
    struct quantity q;

    if (old) {
        check_immutable(e, topology, json_get(object, "nodeTopology"),
                        json_get(old, "nodeTopology"));
        check_immutable(e, class_, json_get(object, "storageClassName"),
                        json_get(old, "storageClassName"));
    }
    validate_label_selector(e, topology, given(object, "nodeTopology"));
    check_rule(e, class_, NAME_DNS1123_SUBDOMAIN, json_str(json_get(object, "storageClassName")));
    if (quantity_parse(json_str(capacity), &q) && q.nano < 0)
        field_invalid(e, FIELD(NULL, "capacity"), capacity, NEGATIVE);
}

const struct kind_ops CSISTORAGE_CAPACITY_OPS = {
    .validate = capacity_validate,
    .cells = kinds_cells_created_at,
};

/* ---- VolumeAttributesClass ---- */

static void attributes_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    AT(driver, NULL, "driverName");
    AT(parameters, NULL, "parameters");

    if (old && !same_value(json_get(object, "driverName"), json_get(old, "driverName")))
        field_forbidden(e, driver, "updates to driverName are forbidden.");
    if (old && !same_value(json_get(object, "parameters"), json_get(old, "parameters")))
        field_forbidden(e, parameters, "updates to parameters are forbidden.");
    check_provisioner(e, driver, json_get(object, "driverName"));
    check_parameters(e, parameters, json_get(object, "parameters"), false);
}

const struct kind_ops VOLUME_ATTRIBUTES_CLASS_OPS = {
    .validate = attributes_validate,
    .cells = cells_attributes_class,
};
