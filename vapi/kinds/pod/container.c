/* SPDX-License-Identifier: Apache-2.0 */
/* Containers of a pod: those that run, those that run first, those added to look around. Source:
 * validateContainerCommon, validateContainers, validateInitContainers and
 * validateEphemeralContainers in pkg/apis/core/validation/validation.go. */
#include "parts.h"

/* ---- ports ---- */

static void check_number(struct field_errors *e, const struct field_path *p, const cJSON *number)
{
    int64_t n;

    if (!json_i64(number, &n) || !n)
        field_required(e, p, "");
    else
        check_port(e, p, number);
}

static const struct rule PORT_RULES[] = {
    CHECK_ALWAYS("containerPort", check_number),
    WITHIN("hostPort", PORT(NULL)),
    ENUM("protocol", ENUM_PROTOCOL),
};

static void check_port_name_once(const struct check *c)
{
    struct str name = json_str(c->value);

    if (name.n && check_port_name(c->e, c->at, name) && !names_add(c->seen, name, c->value))
        field_duplicate(c->e, c->at, c->value);
}

/* A port of the node can be taken once. */
static void check_host_ports(struct pod_check *c, const struct field_path *p,
                             const cJSON *container, struct names *taken)
{
    const struct field_path *ports = FIELD(p, "ports");

    field_each(port, at, ports, json_get(container, "ports"))
    {
        int64_t host = json_i64_at(port, "hostPort", 0);
        struct str key =
            arena_printf(c->e->arena, "%.*s/%.*s/%lld", STR_F(json_str(json_get(port, "protocol"))),
                         STR_F(json_str(json_get(port, "hostIP"))), (long long)host);

        if (host && !names_add(taken, key, port))
            field_duplicate(c->e, FIELD(at, "hostPort"), json_new_string(c->e->arena, key));
    }
}

/* ---- mounts and devices ---- */

static void check_propagation(const struct check *c, const struct field_path *p, const cJSON *mount)
{
    const cJSON *way = json_get(mount, "mountPropagation");
    const cJSON *recursive = json_get(mount, "recursiveReadOnly");

    check_enum_if(c->e, FIELD(p, "mountPropagation"), way, ENUM_MOUNT_PROPAGATION_MODE);
    if (str_eqc(json_str(way), "Bidirectional") &&
        !json_true(json_path(c->object, "securityContext.privileged")))
        field_forbidden(
            c->e, FIELD(p, "mountPropagation"),
            "Bidirectional mount propagation is available only to privileged containers");
    if (!check_enum_if(c->e, FIELD(p, "recursiveReadOnly"), recursive,
                       ENUM_RECURSIVE_READ_ONLY_MODE) ||
        !recursive || str_eqc(json_str(recursive), "Disabled"))
        return;
    if (!json_true(json_get(mount, "readOnly")))
        field_forbidden(c->e, FIELD(p, "recursiveReadOnly"),
                        "may only be specified when readOnly is true");
    if (way && !str_eqc(json_str(way), "None"))
        field_forbidden(c->e, FIELD(p, "recursiveReadOnly"),
                        "may only be specified when mountPropagation is None or not specified");
}

static void check_sub_path(const struct check *c, const struct field_path *list,
                           const struct field_path *p, const cJSON *mount)
{
    struct str path = json_str(json_get(mount, "subPath"));
    struct str expression = json_str(json_get(mount, "subPathExpr"));

    if (path.n)
        check_descending_path(c->e, FIELD(list, "subPath"), path);
    if (!expression.n)
        return;
    if (path.n)
        field_invalid_str(c->e, FIELD(p, "subPathExpr"), expression,
                          "subPathExpr and subPath are mutually exclusive");
    check_descending_path(c->e, FIELD(list, "subPathExpr"), expression);
}

static void check_mounts(const struct check *c)
{
    const struct pod_check *pod = c->context;
    struct names paths = {.arena = c->e->arena}, devices = paths, device_paths = paths;

    names_add_members(&devices, json_get(c->object, "volumeDevices"), "name");
    names_add_members(&device_paths, json_get(c->object, "volumeDevices"), "devicePath");
    field_each(mount, at, c->at, c->value)
    {
        struct str name = json_str(json_get(mount, "name"));
        struct str path = json_str(json_get(mount, "mountPath"));

        check_given(c->e, FIELD(at, "name"), name);
        if (!names_has(&pod->volumes, name))
            field_not_found(c->e, FIELD(at, "name"), json_get(mount, "name"));
        check_given(c->e, FIELD(at, "mountPath"), path);
        if (!names_add(&paths, path, mount))
            field_invalid_str(c->e, FIELD(at, "mountPath"), path, "must be unique");
        if (names_has(&devices, name))
            field_invalid_str(c->e, FIELD(at, "name"), name,
                              "must not already exist in volumeDevices");
        if (names_has(&device_paths, path))
            field_invalid_str(c->e, FIELD(at, "mountPath"), path,
                              "must not already exist as a path in volumeDevices");
        check_sub_path(c, c->at, at, mount);
        check_propagation(c, c->at, mount);
    }
}

static void check_devices(const struct check *c)
{
    struct names names = {.arena = c->e->arena}, paths = names, mounts = names, mount_paths = names;
    const struct pod_check *pod = c->context;

    names_add_members(&mounts, json_get(c->object, "volumeMounts"), "name");
    names_add_members(&mount_paths, json_get(c->object, "volumeMounts"), "mountPath");
    field_each(device, item, c->at, c->value)
    {
        struct str name = json_str(json_get(device, "name"));
        struct str path = json_str(json_get(device, "devicePath"));
        const cJSON *volume = names_get(&pod->volumes, name);
        AT(at, item, "name");
        AT(path_at, item, "devicePath");

        check_given(c->e, at, name);
        if (!names_add(&names, name, device) && name.n)
            field_invalid_str(c->e, at, name, "must be unique");
        if (!volume)
            field_not_found(c->e, at, json_get(device, "name"));
        else if (!json_get(volume, "persistentVolumeClaim") && !json_get(volume, "ephemeral"))
            field_invalid_str(c->e, at, name,
                              "can only use volume source type of PersistentVolumeClaim or "
                              "Ephemeral for block mode");
        check_given(c->e, path_at, path);
        if (!names_add(&paths, path, device))
            field_invalid_str(c->e, path_at, path, "must be unique");
        if (str_eqc(path, "..") || str_contains(path, STR("/..")) ||
            str_has_prefix(path, STR("../")))
            field_invalid_str(c->e, path_at, path, "can not contain backsteps ('..')");
        if (names_has(&mounts, name))
            field_invalid_str(c->e, at, name, "must not already exist in volumeMounts");
        if (names_has(&mount_paths, path))
            field_invalid_str(c->e, path_at, path,
                              "must not already exist as a path in volumeMounts");
    }
}

/* ---- what every container has ---- */

static void check_resize_policy(const struct check *c)
{
    static const char *const resources[] = {"cpu", "memory", NULL};
    const struct pod_check *pod = c->context;
    struct names seen = {.arena = c->e->arena};
    bool never = str_eqc(json_str(json_get(pod->spec, "restartPolicy")), "Never");
    size_t i = 0;

    json_each(item, c->value)
    {
        struct str name = json_str(json_get(item, "resourceName"));
        struct str policy = json_str(json_get(item, "restartPolicy"));

        if (!names_add(&seen, name, item))
            field_duplicate(c->e, FIELD_INDEX(c->at, i), json_get(item, "resourceName"));
        check_enum(c->e, c->at, name, resources);
        check_enum(c->e, c->at, policy, ENUM_RESOURCE_RESIZE_RESTART_POLICY);
        if (never && !str_eqc(policy, "NotRequired"))
            field_invalid_str(c->e, c->at, policy,
                              "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
        i++;
    }
}

static void check_resources(const struct check *c)
{
    const struct pod_check *pod = c->context;

    validate_requirements(c->e, c->at, c->value, &pod->claims, false);
}

static void check_security(const struct check *c)
{
    const struct pod_check *pod = c->context;

    validate_container_security(c->e, c->at, c->value, pod->host_users);
}

static const struct rule CONTAINER[] = {
    NAME("name", DNS1123_LABEL),
    GIVEN("image"),
    ENUM("terminationMessagePolicy", ENUM_TERMINATION_MESSAGE_POLICY_DECLARED),
    EACH("ports", CALL("name", check_port_name_once), ALL(PORT_RULES)),
    INSIDE("env", ALL(RULES_ENV)),
    INSIDE("envFrom", ALL(RULES_ENV_FROM)),
    CALL("volumeMounts", check_mounts),
    CALL("volumeDevices", check_devices),
    ENUM("imagePullPolicy", ENUM_PULL_POLICY),
    CALL("resources", check_resources),
    CALL("resizePolicy", check_resize_policy),
    CALL("securityContext", check_security),
};

static void check_common(struct pod_check *c, const struct field_path *p, const cJSON *container)
{
    rules_check_value(c->e, p, container, c, CONTAINER, COUNT(CONTAINER));
}

/* ---- restart rules ---- */

#define RULES_NEED_POLICY "must specify restartPolicy when restart rules are used"

static const struct rule RESTART_RULES[] = {
    WHEN_GIVEN(NULL, "restartPolicyRules", REQUIRED("restartPolicy", RULES_NEED_POLICY)),
    ENUM_IF_GIVEN("restartPolicy", ENUM_RESTART_POLICY),
    MAX_ITEMS("restartPolicyRules", 20),
    EACH("restartPolicyRules", ENUM_ALWAYS("action", ENUM_CONTAINER_RESTART_RULE_ACTION),
         REQUIRED("exitCodes", "must be specified"),
         WITHIN("exitCodes",
                ENUM_ALWAYS("operator", ENUM_CONTAINER_RESTART_RULE_ON_EXIT_CODES_OPERATOR),
                MAX_ITEMS("values", 255))),
};

static void check_restart(struct pod_check *c, const struct field_path *p, const cJSON *container)
{
    rules_check_value(c->e, p, container, NULL, RESTART_RULES, COUNT(RESTART_RULES));
}

/* ---- the three lists ---- */

static void check_regular(struct pod_check *c, const struct field_path *p)
{
    struct names names = {.arena = c->e->arena}, taken = names;
    const cJSON *containers = json_get(c->spec, "containers");

    if (!json_count(containers)) {
        field_required(c->e, p, "");
        return;
    }
    field_each(container, at, p, containers)
    {
        check_common(c, at, container);
        if (!names_add(&names, json_str(json_get(container, "name")), container))
            field_duplicate(c->e, FIELD(at, "name"), json_get(container, "name"));
        if (json_get(container, "lifecycle"))
            validate_lifecycle(c, FIELD(at, "lifecycle"), json_get(container, "lifecycle"));
        validate_probes(c, at, container);
        check_restart(c, at, container);
    }
    field_each(container, at, p, containers) check_host_ports(c, at, container, &taken);
}

#define NOT_SIDECAR "may not be set for init containers without restartPolicy=Always"

static const struct rule STARTING[] = {
    FORBIDDEN("lifecycle", NOT_SIDECAR),
    FORBIDDEN("livenessProbe", NOT_SIDECAR),
    FORBIDDEN("readinessProbe", NOT_SIDECAR),
    FORBIDDEN("startupProbe", NOT_SIDECAR),
    EACH("resizePolicy",
         WHEN(NULL, "restartPolicy", "RestartContainer",
              INVALID("restartPolicy",
                      "must not be set to 'RestartContainer' for non-sidecar initContainers"))),
};

static void check_init(struct pod_check *c, const struct field_path *p)
{
    struct names names = {.arena = c->e->arena};

    names_add_members(&names, json_get(c->spec, "containers"), "name");
    field_each(container, at, p, json_get(c->spec, "initContainers"))
    {
        struct names taken = {.arena = c->e->arena};
        struct str name = json_str(json_get(container, "name"));

        check_common(c, at, container);
        if (json_get(container, "restartPolicy"))
            check_restart(c, at, container);
        else if (json_count(json_get(container, "restartPolicyRules")))
            field_required(c->e, FIELD(at, "restartPolicy"), RULES_NEED_POLICY);
        if (names_has(&names, name))
            field_duplicate(c->e, FIELD(at, "name"), json_get(container, "name"));
        else if (name.n)
            names_add(&names, name, container);
        check_host_ports(c, FIELD_INDEX(p, 0), container, &taken);
        if (!str_eqc(json_str(json_get(container, "restartPolicy")), "Always")) {
            rules_check_value(c->e, at, container, NULL, STARTING, COUNT(STARTING));
            continue;
        }
        if (json_get(container, "lifecycle"))
            validate_lifecycle(c, FIELD(at, "lifecycle"), json_get(container, "lifecycle"));
        validate_probes(c, at, container);
    }
}

#define NOT_EPHEMERAL "cannot be set for an Ephemeral Container"

/* context: names of the other containers. */
static void check_target(const struct check *c)
{
    if (json_str(c->value).n && !names_has(c->context, json_str(c->value)))
        field_not_found(c->e, c->at, c->value);
}

static const struct rule EPHEMERAL[] = {
    CALL("targetContainerName", check_target),
    FORBIDDEN("ports", NOT_EPHEMERAL),
    NO_ITEMS("resources", NOT_EPHEMERAL),
    FORBIDDEN("resizePolicy", NOT_EPHEMERAL),
    FORBIDDEN("restartPolicy", NOT_EPHEMERAL),
    FORBIDDEN("restartPolicyRules", NOT_EPHEMERAL),
    FORBIDDEN("livenessProbe", NOT_EPHEMERAL),
    FORBIDDEN("readinessProbe", NOT_EPHEMERAL),
    FORBIDDEN("startupProbe", NOT_EPHEMERAL),
    FORBIDDEN("lifecycle", NOT_EPHEMERAL),
    EACH("volumeMounts", FORBIDDEN("subPath", NOT_EPHEMERAL),
         FORBIDDEN("subPathExpr", NOT_EPHEMERAL)),
};

static void check_ephemeral(struct pod_check *c, const struct field_path *p)
{
    struct names others = {.arena = c->e->arena}, names = others;

    names_add_members(&others, json_get(c->spec, "containers"), "name");
    names_add_members(&others, json_get(c->spec, "initContainers"), "name");
    field_each(container, at, p, json_get(c->spec, "ephemeralContainers"))
    {
        struct str name = json_str(json_get(container, "name"));

        check_common(c, at, container);
        if (names_has(&others, name) || !names_add(&names, name, container))
            field_duplicate(c->e, FIELD(at, "name"), json_get(container, "name"));
        rules_check_value(c->e, at, container, &others, EPHEMERAL, COUNT(EPHEMERAL));
    }
}

void kinds_pod_each_container(const struct field_path *p, const cJSON *spec, pod_container_cb visit,
                              void *ctx)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};

    for (size_t i = 0; i < COUNT(lists); i++) {
        member_each(container, at, p, spec, lists[i]) visit(ctx, at, container);
    }
}

void validate_containers(struct pod_check *c, const struct field_path *p)
{
    check_regular(c, FIELD(p, "containers"));
    check_init(c, FIELD(p, "initContainers"));
    check_ephemeral(c, FIELD(p, "ephemeralContainers"));
}
