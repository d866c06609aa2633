/* SPDX-License-Identifier: Apache-2.0 */
/* Containers of a pod: those that run, those that run first, those added to look around. Source:
 * validateContainerCommon, validateContainers, validateInitContainers and
 * validateEphemeralContainers in pkg/apis/core/validation/validation.go. */
#include "parts.h"

/* ---- ports ---- */

static void check_container_port(struct pod_check *c, const struct field_path *p, const cJSON *port,
                                 struct names *names)
{
    const cJSON *name = json_get(port, "name"), *host = json_get(port, "hostPort");
    int64_t number = json_i64_at(port, "containerPort", 0);

    if (json_str(name).n && check_port_name(c->e, FIELD(p, "name"), json_str(name)) &&
        !names_add(names, json_str(name), port))
        field_duplicate(c->e, FIELD(p, "name"), name);
    if (!number)
        field_required(c->e, FIELD(p, "containerPort"), "");
    else
        check_port(c->e, FIELD(p, "containerPort"), json_get(port, "containerPort"));
    if (host)
        check_port(c->e, FIELD(p, "hostPort"), host);
    check_enum(c->e, FIELD(p, "protocol"), json_str(json_get(port, "protocol")), ENUM_PROTOCOL);
}

static void check_ports(struct pod_check *c, const struct field_path *p, const cJSON *ports)
{
    struct names names = {.arena = c->e->arena};
    size_t i = 0;

    json_each(port, ports) check_container_port(c, FIELD_INDEX(p, i++), port, &names);
}

/* A port of the node can be taken once. */
static void check_host_ports(struct pod_check *c, const struct field_path *p,
                             const cJSON *container, struct names *taken)
{
    const struct field_path *ports = FIELD(p, "ports");
    size_t i = 0;

    json_each(port, json_get(container, "ports"))
    {
        const struct field_path *at = FIELD_INDEX(ports, i++);
        int64_t host = json_i64_at(port, "hostPort", 0);
        struct str key =
            arena_printf(c->e->arena, "%.*s/%.*s/%lld", STR_F(json_str(json_get(port, "protocol"))),
                         STR_F(json_str(json_get(port, "hostIP"))), (long long)host);

        if (host && !names_add(taken, key, port))
            field_duplicate(c->e, FIELD(at, "hostPort"), json_new_string(c->e->arena, key));
    }
}

/* ---- mounts and devices ---- */

static void check_propagation(struct pod_check *c, const struct field_path *p, const cJSON *mount,
                              const cJSON *container)
{
    static const char *const read_only[] = {"Disabled", "Enabled", "IfPossible", NULL};
    const cJSON *way = json_get(mount, "mountPropagation");
    const cJSON *recursive = json_get(mount, "recursiveReadOnly");

    check_enum_if(c->e, FIELD(p, "mountPropagation"), way, ENUM_MOUNT_PROPAGATION_MODE);
    if (str_eqc(json_str(way), "Bidirectional") &&
        !json_true(json_path(container, "securityContext.privileged")))
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

static void check_sub_path(struct pod_check *c, const struct field_path *list,
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

static void check_mounts(struct pod_check *c, const struct field_path *p, const cJSON *container)
{
    struct names paths = {.arena = c->e->arena}, devices = paths, device_paths = paths;
    size_t i = 0;

    names_add_members(&devices, json_get(container, "volumeDevices"), "name");
    names_add_members(&device_paths, json_get(container, "volumeDevices"), "devicePath");
    json_each(mount, json_get(container, "volumeMounts"))
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        struct str name = json_str(json_get(mount, "name"));
        struct str path = json_str(json_get(mount, "mountPath"));

        check_given(c->e, FIELD(at, "name"), name);
        if (!names_has(&c->volumes, name))
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
        check_sub_path(c, p, at, mount);
        check_propagation(c, p, mount, container);
    }
}

static void check_device(struct pod_check *c, const struct field_path *p, const cJSON *device,
                         struct names *names, struct names *paths)
{
    struct str name = json_str(json_get(device, "name"));
    struct str path = json_str(json_get(device, "devicePath"));
    const cJSON *volume = names_get(&c->volumes, name);

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

static void check_devices(struct pod_check *c, const struct field_path *p, const cJSON *container)
{
    struct names names = {.arena = c->e->arena}, paths = names, mounts = names, mount_paths = names;
    size_t i = 0;

    names_add_members(&mounts, json_get(container, "volumeMounts"), "name");
    names_add_members(&mount_paths, json_get(container, "volumeMounts"), "mountPath");
    json_each(device, json_get(container, "volumeDevices"))
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
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

static void check_resize_policy(struct pod_check *c, const struct field_path *p, const cJSON *list)
{
    static const char *const resources[] = {"cpu", "memory", NULL};
    static const char *const policies[] = {"NotRequired", "RestartContainer", NULL};
    struct names seen = {.arena = c->e->arena};
    bool never = str_eqc(json_str(json_get(c->spec, "restartPolicy")), "Never");
    size_t i = 0;

    json_each(item, list)
    {
        struct str name = json_str(json_get(item, "resourceName"));
        struct str policy = json_str(json_get(item, "restartPolicy"));

        if (!names_add(&seen, name, item))
            field_duplicate(c->e, FIELD_INDEX(p, i), json_get(item, "resourceName"));
        check_enum(c->e, p, name, resources);
        check_enum(c->e, p, policy, policies);
        if (never && !str_eqc(policy, "NotRequired"))
            field_invalid_str(c->e, p, policy,
                              "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
        i++;
    }
}

static void check_common(struct pod_check *c, const struct field_path *p, const cJSON *container)
{
    static const char *const messages[] = {"File", "FallbackToLogsOnError", NULL};
    struct field_errors *e = c->e;
    struct str name = json_str(json_get(container, "name"));

    if (check_given(e, FIELD(p, "name"), name))
        check_rule(e, FIELD(p, "name"), NAME_DNS1123_LABEL, name);
    check_given(e, FIELD(p, "image"), json_str(json_get(container, "image")));
    check_enum(e, FIELD(p, "terminationMessagePolicy"),
               json_str(json_get(container, "terminationMessagePolicy")), messages);
    check_ports(c, FIELD(p, "ports"), json_get(container, "ports"));
    validate_env(e, FIELD(p, "env"), json_get(container, "env"));
    validate_env_from(e, FIELD(p, "envFrom"), json_get(container, "envFrom"));
    check_mounts(c, FIELD(p, "volumeMounts"), container);
    check_devices(c, FIELD(p, "volumeDevices"), container);
    check_enum(e, FIELD(p, "imagePullPolicy"), json_str(json_get(container, "imagePullPolicy")),
               ENUM_PULL_POLICY);
    validate_requirements(e, FIELD(p, "resources"), json_get(container, "resources"), &c->claims,
                          false);
    check_resize_policy(c, FIELD(p, "resizePolicy"), json_get(container, "resizePolicy"));
    validate_container_security(e, FIELD(p, "securityContext"),
                                json_get(container, "securityContext"), c->host_users);
}

/* ---- restart rules ---- */

#define RULES_NEED_POLICY "must specify restartPolicy when restart rules are used"

static void check_restart_rule(struct pod_check *c, const struct field_path *p, const cJSON *rule)
{
    static const char *const actions[] = {"Restart", "RestartAllContainers", NULL};
    static const char *const ops[] = {"In", "NotIn", NULL};
    const cJSON *codes = json_get(rule, "exitCodes");
    struct str action = json_str(json_get(rule, "action"));
    struct str op = json_str(json_get(codes, "operator"));
    size_t n = json_count(json_get(codes, "values"));

    if (!one_of(action, actions))
        field_not_supported(c->e, FIELD(p, "action"), action, actions);
    if (!codes) {
        field_required(c->e, FIELD(p, "exitCodes"), "must be specified");
        return;
    }
    if (!one_of(op, ops))
        field_not_supported(c->e, FIELD(FIELD(p, "exitCodes"), "operator"), op, ops);
    if (n > 255)
        field_too_many(c->e, FIELD(FIELD(p, "exitCodes"), "values"), n, 255);
}

static void check_restart(struct pod_check *c, const struct field_path *p, const cJSON *container)
{
    const cJSON *policy = json_get(container, "restartPolicy");
    const cJSON *rules = json_get(container, "restartPolicyRules");
    const struct field_path *list = FIELD(p, "restartPolicyRules");
    size_t i = 0;

    if (!policy && json_count(rules))
        field_required(c->e, FIELD(p, "restartPolicy"), RULES_NEED_POLICY);
    check_enum_if(c->e, FIELD(p, "restartPolicy"), policy, ENUM_RESTART_POLICY);
    if (json_count(rules) > 20)
        field_too_many(c->e, list, json_count(rules), 20);
    json_each(rule, rules) check_restart_rule(c, FIELD_INDEX(list, i++), rule);
}

/* ---- the three lists ---- */

static void check_regular(struct pod_check *c, const struct field_path *p)
{
    struct names names = {.arena = c->e->arena}, taken = names;
    const cJSON *containers = json_get(c->spec, "containers");
    size_t i = 0;

    if (!json_count(containers)) {
        field_required(c->e, p, "");
        return;
    }
    json_each(container, containers)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);

        check_common(c, at, container);
        if (!names_add(&names, json_str(json_get(container, "name")), container))
            field_duplicate(c->e, FIELD(at, "name"), json_get(container, "name"));
        if (json_get(container, "lifecycle"))
            validate_lifecycle(c, FIELD(at, "lifecycle"), json_get(container, "lifecycle"));
        validate_probes(c, at, container);
        check_restart(c, at, container);
    }
    i = 0;
    json_each(container, containers) check_host_ports(c, FIELD_INDEX(p, i++), container, &taken);
}

static void check_starting(struct pod_check *c, const struct field_path *p, const cJSON *container)
{
    static const char *const forbidden[] = {"lifecycle", "livenessProbe", "readinessProbe",
                                            "startupProbe"};
    const struct field_path *list = FIELD(p, "resizePolicy");
    size_t i = 0;

    for (size_t k = 0; k < COUNT(forbidden); k++) {
        if (json_get(container, forbidden[k]))
            field_forbidden(c->e, FIELD(p, forbidden[k]),
                            "may not be set for init containers without restartPolicy=Always");
    }
    json_each(policy, json_get(container, "resizePolicy"))
    {
        const struct field_path *at = FIELD_INDEX(list, i++);

        if (str_eqc(json_str(json_get(policy, "restartPolicy")), "RestartContainer"))
            field_invalid_str(
                c->e, FIELD(at, "restartPolicy"), STR("RestartContainer"),
                "must not be set to 'RestartContainer' for non-sidecar initContainers");
    }
}

static void check_init(struct pod_check *c, const struct field_path *p)
{
    struct names names = {.arena = c->e->arena};
    size_t i = 0;

    names_add_members(&names, json_get(c->spec, "containers"), "name");
    json_each(container, json_get(c->spec, "initContainers"))
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
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
    const struct field_path *mounts = FIELD(p, "volumeMounts");
    size_t i = 0;

    if (json_str(target).n && !names_has(others, json_str(target)))
        field_not_found(c->e, FIELD(p, "targetContainerName"), target);
    for (size_t k = 0; k < COUNT(forbidden); k++) {
        const cJSON *value = json_get(container, forbidden[k]);
        bool unset = k == RESOURCES && !json_count(value); /* it is printed when it is empty */

        if (value && !unset)
            field_forbidden(c->e, FIELD(p, forbidden[k]),
                            "cannot be set for an Ephemeral Container");
    }
    json_each(mount, json_get(container, "volumeMounts"))
    {
        const struct field_path *at = FIELD_INDEX(mounts, i++);

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
    size_t i = 0;

    names_add_members(&others, json_get(c->spec, "containers"), "name");
    names_add_members(&others, json_get(c->spec, "initContainers"), "name");
    json_each(container, json_get(c->spec, "ephemeralContainers"))
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
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
        const struct field_path *list = FIELD(p, lists[i]);
        size_t at = 0;

        json_each(container, json_get(spec, lists[i]))
            visit(ctx, FIELD_INDEX(list, at++), container);
    }
}

void validate_containers(struct pod_check *c, const struct field_path *p)
{
    check_regular(c, FIELD(p, "containers"));
    check_init(c, FIELD(p, "initContainers"));
    check_ephemeral(c, FIELD(p, "ephemeralContainers"));
}
