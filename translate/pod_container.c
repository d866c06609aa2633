/* SPDX-License-Identifier: Apache-2.0 */
/* Containers. Why: almost everything a tenant can do to a node is a field of a container, so these
 * tables are the longest allow-list there is. Must never name a field whose effect on the host is
 * not understood; what only a privileged tenant may have is marked in the table. */

#include <string.h>

#include <sublet/config_sync.h>
#include <sublet/fraction.h>
#include <sublet/vgpu.h>

#include "shape.h"

/* ---- security context ---- */

const struct field TRANSLATE_POD_SELINUX_FIELDS[] = {
    {"level", FIELD_SCALAR},
    {"type", FIELD_SCALAR},
    {"user", FIELD_SCALAR, .privileged = true},
    {"role", FIELD_SCALAR, .privileged = true},
    {0},
};

const struct field TRANSLATE_POD_WINDOWS_FIELDS[] = {
    {"gmsaCredentialSpecName", FIELD_SCALAR, .privileged = true},
    {"gmsaCredentialSpec", FIELD_SCALAR, .privileged = true},
    {"runAsUserName", FIELD_SCALAR},
    {"hostProcess", FIELD_SCALAR, .privileged = true},
    {0},
};

const struct field TRANSLATE_POD_SECCOMP_FIELDS[] = {
    {"type", FIELD_SCALAR},
    {"localhostProfile", FIELD_SCALAR, .privileged = true},
    {0},
};

static const struct field CAPABILITY_FIELDS[] = {
    {"add", FIELD_SCALARS},
    {"drop", FIELD_SCALARS},
    {0},
};

static const struct field SECURITY_FIELDS[] = {
    {"capabilities", FIELD_OBJECT, .fields = CAPABILITY_FIELDS},
    {"privileged", FIELD_SCALAR, .privileged = true},
    {"seLinuxOptions", FIELD_OBJECT, .fields = TRANSLATE_POD_SELINUX_FIELDS},
    {"windowsOptions", FIELD_OBJECT, .fields = TRANSLATE_POD_WINDOWS_FIELDS},
    {"runAsUser", FIELD_SCALAR},
    {"runAsGroup", FIELD_SCALAR},
    {"runAsNonRoot", FIELD_SCALAR},
    {"readOnlyRootFilesystem", FIELD_SCALAR},
    {"allowPrivilegeEscalation", FIELD_SCALAR},
    {"procMount", FIELD_SCALAR, .privileged = true},
    {"seccompProfile", FIELD_OBJECT, .fields = TRANSLATE_POD_SECCOMP_FIELDS},
    {"appArmorProfile", FIELD_OBJECT, .fields = TRANSLATE_POD_SECCOMP_FIELDS},
    {0},
};

/* ---- probes and hooks ---- */

static const struct field EXEC_FIELDS[] = {{"command", FIELD_SCALARS}, {0}};

static const struct field HEADER_FIELDS[] = {
    {"name", FIELD_SCALAR},
    {"value", FIELD_SCALAR},
    {0},
};

static const struct field HTTP_FIELDS[] = {
    {"path", FIELD_SCALAR},
    {"port", FIELD_SCALAR},
    {"host", FIELD_SCALAR, .privileged = true},
    {"scheme", FIELD_SCALAR},
    {"httpHeaders", FIELD_LIST, .fields = HEADER_FIELDS},
    {0},
};

static const struct field TCP_FIELDS[] = {
    {"port", FIELD_SCALAR},
    {"host", FIELD_SCALAR, .privileged = true},
    {0},
};

static const struct field GRPC_FIELDS[] = {
    {"port", FIELD_SCALAR},
    {"service", FIELD_SCALAR},
    {0},
};

static const struct field PROBE_FIELDS[] = {
    {"exec", FIELD_OBJECT, .fields = EXEC_FIELDS},
    {"httpGet", FIELD_OBJECT, .fields = HTTP_FIELDS},
    {"tcpSocket", FIELD_OBJECT, .fields = TCP_FIELDS},
    {"grpc", FIELD_OBJECT, .fields = GRPC_FIELDS},
    {"initialDelaySeconds", FIELD_SCALAR},
    {"timeoutSeconds", FIELD_SCALAR},
    {"periodSeconds", FIELD_SCALAR},
    {"successThreshold", FIELD_SCALAR},
    {"failureThreshold", FIELD_SCALAR},
    {"terminationGracePeriodSeconds", FIELD_SCALAR},
    {0},
};

static const struct field SLEEP_FIELDS[] = {{"seconds", FIELD_SCALAR}, {0}};

static const struct field HANDLER_FIELDS[] = {
    {"exec", FIELD_OBJECT, .fields = EXEC_FIELDS},
    {"httpGet", FIELD_OBJECT, .fields = HTTP_FIELDS},
    {"tcpSocket", FIELD_OBJECT, .fields = TCP_FIELDS},
    {"sleep", FIELD_OBJECT, .fields = SLEEP_FIELDS},
    {0},
};

static const struct field LIFECYCLE_FIELDS[] = {
    {"postStart", FIELD_OBJECT, .fields = HANDLER_FIELDS},
    {"preStop", FIELD_OBJECT, .fields = HANDLER_FIELDS},
    {"stopSignal", FIELD_SCALAR},
    {0},
};

/* ---- resources ---- */

/* The quantities of one map. A device of quantity 0 is left out: the host would tolerate its taint.
 */
static cJSON *quantities_down(struct down *d, const cJSON *map)
{
    cJSON *ret = json_new_object(d->arena);

    json_each(member, map)
    {
        const struct pool_resource *resource;

        if (!json_is_scalar(member))
            continue;
        if (!name_has_domain(json_key(member))) {
            object_add(d->arena, ret, json_key(member), json_copy(d->arena, member));
            continue;
        }
        resource =
            d->pool && !d->ephemeral ? config_pool_resource(d->pool, json_key(member)) : NULL;
        if (resource && !gpu_count_is_zero(member) && !vgpu_system(d->pool->mode) &&
            !str_eqc(resource->host_name, FRACTION_RESOURCE)) /* gpu_vgpu.c, gpu_fraction.c */
            object_add(d->arena, ret, resource->host_name, json_copy(d->arena, member));
    }
    return ret;
}

cJSON *translate_pod_resources_down(struct down *d, const cJSON *resources)
{
    static const char *const maps[] = {"limits", "requests"};
    cJSON *ret = json_new_object(d->arena);

    for (size_t i = 0; i < COUNT(maps); i++) {
        const cJSON *map = json_get(resources, maps[i]);

        if (json_is_object(map))
            object_add(d->arena, ret, str_c(maps[i]), quantities_down(d, map));
    }
    return ret;
}

static const struct field CLAIM_FIELDS[] = {
    {"name", FIELD_SCALAR},
    {"request", FIELD_SCALAR},
    {0},
};

static cJSON *container_resources_down(struct down *d, const cJSON *resources)
{
    cJSON *ret = translate_pod_resources_down(d, resources), *claims;
    struct device_counts own;

    if (!gpu_count_resources(d->arena, resources, &own, NULL))
        translate_pod_vgpu_down(d, &own, ret);
    if (!d->claims || d->ephemeral || !json_count(json_get(resources, "claims")))
        return ret;
    claims = object_add(d->arena, ret, STR("claims"), json_new_array(d->arena));
    json_each(one, json_get(resources, "claims"))
        json_append(claims, shape_copy(d, CLAIM_FIELDS, one));
    return ret;
}

/* ---- containers ---- */

static const struct field PORT_FIELDS[] = {
    {"name", FIELD_SCALAR},
    {"hostPort", FIELD_SCALAR, .privileged = true},
    {"containerPort", FIELD_SCALAR},
    {"protocol", FIELD_SCALAR},
    {"hostIP", FIELD_SCALAR, .privileged = true},
    {0},
};

static const struct field RESIZE_FIELDS[] = {
    {"resourceName", FIELD_SCALAR},
    {"restartPolicy", FIELD_SCALAR},
    {0},
};

static const struct field EXIT_CODE_FIELDS[] = {
    {"operator", FIELD_SCALAR},
    {"values", FIELD_SCALARS},
    {0},
};

static const struct field RESTART_RULE_FIELDS[] = {
    {"action", FIELD_SCALAR},
    {"exitCodes", FIELD_OBJECT, .fields = EXIT_CODE_FIELDS},
    {0},
};

static const struct field MOUNT_FIELDS[] = {
    {"name", FIELD_SCALAR},
    {"readOnly", FIELD_SCALAR},
    {"recursiveReadOnly", FIELD_SCALAR},
    {"mountPath", FIELD_SCALAR},
    {"subPath", FIELD_SCALAR},
    {"subPathExpr", FIELD_SCALAR},
    {"mountPropagation", FIELD_SCALAR, .privileged = true},
    {0},
};

static const struct field DEVICE_FIELDS[] = {
    {"name", FIELD_SCALAR},
    {"devicePath", FIELD_SCALAR},
    {0},
};

static cJSON *mount_down(struct down *d, const cJSON *mount)
{
    struct str path = json_str(json_get(mount, "mountPath"));
    enum pool_mode mode = d->pool ? d->pool->mode : POOL_EXCLUSIVE;

    return gpu_mount_refused(path) || gpu_mount_unlimits(path, mode)
               ? NULL
               : shape_copy(d, MOUNT_FIELDS, mount);
}

static cJSON *env_from_down(struct down *d, const cJSON *from)
{
    enum pool_mode mode = d->pool ? d->pool->mode : POOL_EXCLUSIVE;

    return gpu_env_prefix_refused(d->tenant->config, json_str(json_get(from, "prefix")), mode)
               ? NULL
               : shape_copy(d, TRANSLATE_POD_ENV_FROM_FIELDS, from);
}

cJSON *translate_pod_image_down(struct down *d, const cJSON *image)
{
    const cJSON *map = d->tenant->config->to_host->images;

    if (!json_is_string(image) || !json_count(map))
        return json_is_scalar(image) ? json_copy(d->arena, image) : NULL;
    return json_new_string(d->arena, translate_image(d->arena, map, json_str(image)));
}

/* Before and after the environment, which is made from more than its own list. */
static const struct field HEAD_FIELDS[] = {
    {"name", FIELD_SCALAR},
    {"image", FIELD_MAKE, .make = translate_pod_image_down},
    {"command", FIELD_SCALARS},
    {"args", FIELD_SCALARS},
    {"workingDir", FIELD_SCALAR},
    {"ports", FIELD_LIST, .fields = PORT_FIELDS},
    {"envFrom", FIELD_EACH, .make = env_from_down},
    {0},
};

static const struct field TAIL_FIELDS[] = {
    {"resources", FIELD_MAKE, .make = container_resources_down},
    {"resizePolicy", FIELD_LIST, .fields = RESIZE_FIELDS},
    {"restartPolicy", FIELD_SCALAR},
    {"restartPolicyRules", FIELD_LIST, .fields = RESTART_RULE_FIELDS},
    {"volumeMounts", FIELD_EACH, .make = mount_down},
    {"volumeDevices", FIELD_LIST, .fields = DEVICE_FIELDS},
    {"livenessProbe", FIELD_OBJECT, .fields = PROBE_FIELDS},
    {"readinessProbe", FIELD_OBJECT, .fields = PROBE_FIELDS},
    {"startupProbe", FIELD_OBJECT, .fields = PROBE_FIELDS},
    {"lifecycle", FIELD_OBJECT, .fields = LIFECYCLE_FIELDS},
    {"terminationMessagePath", FIELD_SCALAR},
    {"terminationMessagePolicy", FIELD_SCALAR},
    {"imagePullPolicy", FIELD_SCALAR},
    {"securityContext", FIELD_OBJECT, .fields = SECURITY_FIELDS},
    {"stdin", FIELD_SCALAR},
    {"stdinOnce", FIELD_SCALAR},
    {"tty", FIELD_SCALAR},
    {"targetContainerName", FIELD_SCALAR}, /* of ephemeral containers */
    {0},
};

/* What of the pool this container is given; quantities that are no counts give nothing. */
static struct device_counts devices_of(struct down *d, const cJSON *container)
{
    struct device_counts own = {0};

    if (d->ephemeral || !d->pool || gpu_count_container(d->arena, container, &own, NULL))
        return (struct device_counts){0};
    if (gpu_vgpu_share(d->pool, &own)) {
        own.items[0] = (struct device_count){STR(FRACTION_RESOURCE), 1};
        own.n = 1;
    }
    return own;
}

/* An image that is on a node already is started without the secret it was pulled with. */
void translate_pod_pull_policy_down(struct down *d, cJSON *to, const char *key)
{
    if (d->tenant->config->pull_always)
        json_set_str(d->arena, to, key, STR("Always"));
}

cJSON *translate_pod_container_down(struct down *d, const cJSON *container)
{
    cJSON *ret = shape_copy(d, HEAD_FIELDS, container);
    struct device_counts given = devices_of(d, container);
    cJSON *env = translate_pod_env_down(d, container, &given);

    if (json_count(env))
        object_add(d->arena, ret, STR("env"), env);
    shape_into(d, TAIL_FIELDS, container, ret);
    translate_pod_pull_policy_down(d, ret, "imagePullPolicy");
    return ret;
}
