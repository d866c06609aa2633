/* SPDX-License-Identifier: Apache-2.0 */
/* Security contexts of pods and containers: well-formed, not whether they are allowed (that is
 * policy). Source: validatePodSpecSecurityContext and ValidateSecurityContext in
 * pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <ctype.h>
#include <string.h>

/* ---- profiles ---- */

static void check_seccomp_file(const struct check *c)
{
    const cJSON *file = json_get(c->value, "localhostProfile");
    AT(at, c->at, "localhostProfile");

    if (!kinds_text_is(c->value, "type", "Localhost") && file)
        field_invalid(c->e, at, c->value, "can only be set when seccomp type is Localhost");
    else if (kinds_text_is(c->value, "type", "Localhost") && !file)
        field_required(c->e, at, "must be set when seccomp type is Localhost");
    else if (file)
        check_descending_path(c->e, at, json_str(file));
}

#define SECCOMP_PROFILE                                                                            \
    WITHIN("seccompProfile",                                                                       \
           ENUM_SAID("type", ENUM_SECCOMP_PROFILE_TYPE,                                            \
                     "type is required when seccompProfile is set"),                               \
           CALL(NULL, check_seccomp_file))

static void check_app_armor_file(const struct check *c)
{
    const cJSON *file = json_get(c->value, "localhostProfile");
    AT(at, c->at, "localhostProfile");

    if (kinds_text_is(c->value, "type", "Localhost")) {
        struct str name = json_str(file);

        if (!file || !str_trim(name).n)
            field_required(c->e, at, "must be set when AppArmor type is Localhost");
        else if (str_trim(name).n != name.n)
            field_invalid(c->e, at, file, "must not be padded with whitespace");
        if (name.n > 4095)
            field_too_long(c->e, at, 4095);
    } else if (file &&
               kinds_one_of(json_str(json_get(c->value, "type")), ENUM_APP_ARMOR_PROFILE_TYPE)) {
        field_invalid(c->e, at, file, "can only be set when AppArmor type is Localhost");
    }
}

#define APP_ARMOR_PROFILE                                                                          \
    WITHIN("appArmorProfile",                                                                      \
           ENUM_SAID("type", ENUM_APP_ARMOR_PROFILE_TYPE,                                          \
                     "type is required when appArmorProfile is set"),                              \
           CALL(NULL, check_app_armor_file))

/* ---- containers ---- */

static void check_escalation(struct field_errors *e, const struct field_path *p,
                             const cJSON *context)
{
    const cJSON *allow = json_get(context, "allowPrivilegeEscalation");

    if (!allow || json_true(allow))
        return;
    if (json_true(json_get(context, "privileged")))
        field_invalid(e, p, context,
                      "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    if (json_list_has(json_path(context, "capabilities.add"), STR("CAP_SYS_ADMIN")))
        field_invalid(e, p, context,
                      "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                      "CAP_SYS_ADMIN");
}

/* context: whether the pod is in the user namespace of its host. */
static void check_proc_mount(const struct check *c)
{
    const bool *host_users = c->context;

    if (*host_users && str_eqc(json_str(c->value), "Unmasked"))
        field_invalid(c->e, c->at, c->value, "`hostUsers` must be false to use `Unmasked`");
}

static const struct rule CONTAINER_CONTEXT[] = {
    USER_ID("runAsUser"),
    USER_ID("runAsGroup"),
    ENUM_IF_GIVEN("procMount", ENUM_PROC_MOUNT_TYPE),
    CALL("procMount", check_proc_mount),
    SECCOMP_PROFILE,
    CHECK(NULL, check_escalation),
    INSIDE("windowsOptions", ALL(RULES_WINDOWS_OPTIONS)),
    APP_ARMOR_PROFILE,
};

void validate_container_security(struct field_errors *e, const struct field_path *p,
                                 const cJSON *context, bool host_users)
{
    if (context)
        rules_check_value(e, p, context, &host_users, CONTAINER_CONTEXT, COUNT(CONTAINER_CONTEXT));
}

/* ---- sysctls ---- */

#define SYSCTL_REGEX "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"

static bool is_sysctl_segment(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        bool alnum = islower((unsigned char)s.p[i]) || isdigit((unsigned char)s.p[i]);

        if (!alnum && ((s.p[i] != '-' && s.p[i] != '_') || i == 0 || i + 1 == s.n))
            return false;
    }
    return s.n > 0;
}

static bool is_sysctl(struct str name)
{
    size_t from = 0;

    for (size_t i = 0; i <= name.n; i++) {
        if (i < name.n && name.p[i] != '.' && name.p[i] != '/')
            continue;
        if (!is_sysctl_segment(str_sub(name, from, i - from)))
            return false;
        from = i + 1;
    }
    return name.n <= 253;
}

static bool starts_with_one(struct str s, const char *const *prefixes)
{
    for (size_t i = 0; prefixes[i]; i++) {
        if (str_has_prefix(s, str_c(prefixes[i])))
            return true;
    }
    return false;
}

/* context: the spec of the pod. */
static void check_sysctl(const struct check *c)
{
    static const char *const ipc[] = {"kernel.sem", "kernel.shm", "kernel.msg",
                                      "fs.mqueue.", "kernel/sem", "kernel/shm",
                                      "kernel/msg", "fs/mqueue/", NULL};
    struct str name = json_str(c->value);

    if (!name.n)
        field_required(c->e, c->at, "");
    else if (!is_sysctl(name))
        field_invalid(c->e, c->at, c->value,
                      "must have at most 253 characters and match regex " SYSCTL_REGEX);
    else if (!names_add(c->seen, name, c->value))
        field_duplicate(c->e, c->at, c->value);
    if (json_true(json_get(c->context, "hostNetwork")) &&
        starts_with_one(name, NAMES("net.", "net/")))
        field_invalid(c->e, c->at, c->value, "may not be specified when 'hostNetwork' is true");
    else if (json_true(json_get(c->context, "hostIPC")) && starts_with_one(name, ipc))
        field_invalid(c->e, c->at, c->value, "may not be specified when 'hostIPC' is true");
}

/* ---- pods ---- */

static void check_shared_processes(const struct check *c)
{
    const cJSON *share = json_get(c->context, "shareProcessNamespace");

    if (json_true(share) && json_true(json_get(c->context, "hostPID")))
        field_invalid(c->e, FIELD(c->at, "shareProcessNamespace"), share,
                      "ShareProcessNamespace and HostPID cannot both be enabled");
}

/* context: the spec of the pod. */
static const struct rule POD_CONTEXT[] = {
    USER_ID("fsGroup"),
    USER_ID("runAsUser"),
    USER_ID("runAsGroup"),
    CHECK("supplementalGroups", check_user_ids),
    CALL(NULL, check_shared_processes),
    EACH("sysctls", CALL("name", check_sysctl)),
    ENUM_IF_GIVEN("fsGroupChangePolicy", ENUM_POD_FS_GROUP_CHANGE_POLICY),
    SECCOMP_PROFILE,
    INSIDE("windowsOptions", ALL(RULES_WINDOWS_OPTIONS)),
    APP_ARMOR_PROFILE,
    ENUM_IF_GIVEN("supplementalGroupsPolicy", ENUM_SUPPLEMENTAL_GROUPS_POLICY),
    /* The other value belongs to a feature that is off upstream. */
    ENUM_IF_GIVEN("seLinuxChangePolicy", NAMES("Recursive")),
};

void validate_pod_security(struct field_errors *e, const struct field_path *p, const cJSON *context,
                           const cJSON *spec)
{
    if (context)
        rules_check_value(e, p, context, spec, POD_CONTEXT, COUNT(POD_CONTEXT));
}
