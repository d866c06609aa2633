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

static void check_port_of(struct field_errors *e, const struct field_path *p, const cJSON *port,
                          struct names *names)
{
    const cJSON *name = json_get(port, "name");

    if (json_str(name).n && check_port_name(e, FIELD(p, "name"), json_str(name)) &&
        !names_add(names, json_str(name), port))
        field_duplicate(e, FIELD(p, "name"), name);
    rules_check_value(e, p, port, NULL, PORT_RULES, COUNT(PORT_RULES));
}

static void check_ports(const struct check *c)
{
    struct names names = {.arena = c->e->arena};

    field_each(port, at, c->at, c->value) check_port_of(c->e, at, port, &names);
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
    static const char *const read_only[] = {"Disabled", "Enabled", "IfPossible", NULL};
    const cJSON *way = json_get(mount, "mountPropagation");
    const cJSON *recursive = json_get(mount, "recursiveReadOnly");

    check_enum_if(c->e, FIELD(p, "mountPropagation"), way, ENUM_MOUNT_PROPAGATION_MODE);
    if (str_eqc(json_str(way), "Bidirectional") &&
        !json_true(json_path(c->object, "securityContext.privileged")))
        field_forbidden(
            c->e, FIELD(p, "mountPropagation"),
            "Bidirectional mount propagation is available only to privileged containers");
    if (!check_enum_if(c->e, FIELD(p, "recursiveReadOnly"), recursive, read_only) || !recursive ||
        str_eqc(json_str(recursive), "Disabled"))
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

static void check_device(const struct check *c, const struct field_path *p, const cJSON *device,
                         struct names *names, struct names *paths)
{
    struct str name = json_str(json_get(device, "name"));
    struct str path = json_str(json_get(device, "devicePath"));
    const struct pod_check *pod = c->context;
    const cJSON *volume = names_get(&pod->volumes, name);

    check_given(c->e, FIELD(p, "name"), name);
    if (!names_add(names, name, device) && name.n)
        field_invalid_str(c->e, FIELD(p, "name"), name, "must be unique");
    if (volume && !json_get(volume, "persistentVolumeClaim") && !json_get(volume, "ephemeral"))
        field_invalid_str(c->e, FIELD(p, "name"), name,
                          "can only use volume source type of PersistentVolumeClaim or Ephemeral "
                          "for block mode");
    if (!volume)
        field_not_found(c->e, FIELD(p, "name"), json_get(device, "name"));
    check_given(c->e, FIELD(p, "devicePath"), path);
    if (!names_add(paths, path, device))
        field_invalid_str(c->e, FIELD(p, "devicePath"), path, "must be unique");
    if (str_contains(path, STR("..")) &&
        (str_eqc(path, "..") || str_contains(path, STR("/..")) || str_has_prefix(path, STR("../"))))
        field_invalid_str(c->e, FIELD(p, "devicePath"), path, "can not contain backsteps ('..')");
}

static void check_devices(const struct check *c)
{
    struct names names = {.arena = c->e->arena}, paths = names, mounts = names, mount_paths = names;

    names_add_members(&mounts, json_get(c->object, "volumeMounts"), "name");
    names_add_members(&mount_paths, json_get(c->object, "volumeMounts"), "mountPath");
    field_each(device, at, c->at, c->value)
    {
        struct str name = json_str(json_get(device, "name"));
        struct str path = json_str(json_get(device, "devicePath"));

        check_device(c, at, device, &names, &paths);
        if (names_has(&mounts, name))
            field_invalid_str(c->e, FIELD(at, "name"), name,
                              "must not already exist in volumeMounts");
        if (names_has(&mount_paths, path))
            field_invalid_str(c->e, FIELD(at, "devicePath"), path,
                              "must not already exist as a path in volumeMounts");
    }
}

/* ---- what every container has ---- */

static void check_resize_policy(const struct check *c)
{
    static const char *const resources[] = {"cpu", "memory", NULL};
    static const char *const policies[] = {"NotRequired", "RestartContainer", NULL};
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
        check_enum(c->e, c->at, policy, policies);
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

static const char *const MESSAGES[] = {"File", "FallbackToLogsOnError", NULL};

static const struct rule CONTAINER[] = {
    NAME("name", DNS1123_LABEL),
    GIVEN("image"),
    ENUM("terminationMessagePolicy", MESSAGES),
    CALL("ports", check_ports),
    CHECK("env", validate_env),
    CHECK("envFrom", validate_env_from),
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

static const char *const ACTIONS[] = {"Restart", "RestartAllContainers", NULL};
static const char *const OPERATORS[] = {"In", "NotIn", NULL};

static void check_has_policy(const struct check *c)
{
    if (!c->value && json_count(json_get(c->object, "restartPolicyRules")))
        field_required(c->e, c->at, RULES_NEED_POLICY);
}

static const struct rule RESTART_RULES[] = {
    CALL("restartPolicy", check_has_policy),
    ENUM_IF_GIVEN("restartPolicy", ENUM_RESTART_POLICY),
    MAX_ITEMS("restartPolicyRules", 20),
    EACH("restartPolicyRules", ENUM_ALWAYS("action", ACTIONS),
         REQUIRED("exitCodes", "must be specified"),
         WITHIN("exitCodes", ENUM_ALWAYS("operator", OPERATORS), MAX_ITEMS("values", 255))),
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

static void check_starting(struct pod_check *c, const struct field_path *p, const cJSON *container)
{
    static const char *const forbidden[] = {"lifecycle", "livenessProbe", "readinessProbe",
                                            "startupProbe"};

    for (size_t k = 0; k < COUNT(forbidden); k++) {
        if (json_get(container, forbidden[k]))
            field_forbidden(c->e, FIELD(p, forbidden[k]),
                            "may not be set for init containers without restartPolicy=Always");
    }
    member_each(policy, at, p, container, "resizePolicy")
    {
        if (str_eqc(json_str(json_get(policy, "restartPolicy")), "RestartContainer"))
            field_invalid_str(
                c->e, FIELD(at, "restartPolicy"), STR("RestartContainer"),
                "must not be set to 'RestartContainer' for non-sidecar initContainers");
    }
}

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
            check_starting(c, at, container);
            continue;
        }
        if (json_get(container, "lifecycle"))
            validate_lifecycle(c, FIELD(at, "lifecycle"), json_get(container, "lifecycle"));
        validate_probes(c, at, container);
    }
}

static void check_look_in(struct pod_check *c, const struct field_path *p, const cJSON *container,
                          const struct names *others)
{
    enum { RESOURCES = 1 };
    static const char *const forbidden[] = {"ports",          "resources",          "resizePolicy",
                                            "restartPolicy",  "restartPolicyRules", "livenessProbe",
                                            "readinessProbe", "startupProbe",       "lifecycle"};
    const cJSON *target = json_get(container, "targetContainerName");

    if (json_str(target).n && !names_has(others, json_str(target)))
        field_not_found(c->e, FIELD(p, "targetContainerName"), target);
    for (size_t k = 0; k < COUNT(forbidden); k++) {
        const cJSON *value = json_get(container, forbidden[k]);
        bool unset = k == RESOURCES && !json_count(value); /* it is printed when it is empty */

        if (value && !unset)
            field_forbidden(c->e, FIELD(p, forbidden[k]),
                            "cannot be set for an Ephemeral Container");
    }
    member_each(mount, at, p, container, "volumeMounts")
    {
        if (json_str(json_get(mount, "subPath")).n)
            field_forbidden(c->e, FIELD(at, "subPath"), "cannot be set for an Ephemeral Container");
        if (json_str(json_get(mount, "subPathExpr")).n)
            field_forbidden(c->e, FIELD(at, "subPathExpr"),
                            "cannot be set for an Ephemeral Container");
    }
}

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
        check_look_in(c, at, container, &others);
    }
}

void pod_each_container(const struct field_path *p, const cJSON *spec, pod_container_cb visit,
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
