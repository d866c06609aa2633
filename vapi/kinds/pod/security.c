/* SPDX-License-Identifier: Apache-2.0 */
/* Security contexts of pods and containers: well-formed, not whether they are allowed (that is
 * policy). Source: validatePodSpecSecurityContext and ValidateSecurityContext in
 * pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <ctype.h>
#include <string.h>

/* ---- profiles ---- */

static void check_seccomp(struct field_errors *e, const struct field_path *p, const cJSON *profile)
{
    struct str type = json_str(json_get(profile, "type"));
    const cJSON *file = json_get(profile, "localhostProfile");

    if (!profile)
        return;
    if (!type.n)
        field_required(e, FIELD(p, "type"), "type is required when seccompProfile is set");
    else if (!one_of(type, ENUM_SECCOMP_PROFILE_TYPE))
        field_not_supported(e, FIELD(p, "type"), type, ENUM_SECCOMP_PROFILE_TYPE);
    if (!str_eqc(type, "Localhost")) {
        if (file)
            field_invalid(e, FIELD(p, "localhostProfile"), profile,
                          "can only be set when seccomp type is Localhost");
    } else if (!file) {
        field_required(e, FIELD(p, "localhostProfile"),
                       "must be set when seccomp type is Localhost");
    } else {
        check_descending_path(e, FIELD(p, "localhostProfile"), json_str(file));
    }
}

static void check_local_app_armor(struct field_errors *e, const struct field_path *p,
                                  const cJSON *file)
{
    struct str name = json_str(file);

    if (!file || !str_trim(name).n)
        field_required(e, p, "must be set when AppArmor type is Localhost");
    else if (str_trim(name).n != name.n)
        field_invalid(e, p, file, "must not be padded with whitespace");
    if (name.n > 4095)
        field_too_long(e, p, 4095);
}

static void check_app_armor(struct field_errors *e, const struct field_path *p,
                            const cJSON *profile)
{
    struct str type = json_str(json_get(profile, "type"));
    const cJSON *file = json_get(profile, "localhostProfile");

    if (!profile)
        return;
    if (!type.n)
        field_required(e, FIELD(p, "type"), "type is required when appArmorProfile is set");
    else if (!one_of(type, ENUM_SECCOMP_PROFILE_TYPE))
        field_not_supported(e, FIELD(p, "type"), type, ENUM_SECCOMP_PROFILE_TYPE);
    else if (str_eqc(type, "Localhost"))
        check_local_app_armor(e, FIELD(p, "localhostProfile"), file);
    else if (file)
        field_invalid(e, FIELD(p, "localhostProfile"), file,
                      "can only be set when AppArmor type is Localhost");
}

/* ---- containers ---- */

static bool adds_capability(const cJSON *context, const char *name)
{
    return json_list_has(json_path(context, "capabilities.add"), str_c(name));
}

static void check_escalation(struct field_errors *e, const struct field_path *p,
                             const cJSON *context)
{
    const cJSON *allow = json_get(context, "allowPrivilegeEscalation");

    if (!allow || json_true(allow))
        return;
    if (json_true(json_get(context, "privileged")))
        field_invalid(e, p, context,
                      "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    if (adds_capability(context, "CAP_SYS_ADMIN"))
        field_invalid(e, p, context,
                      "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                      "CAP_SYS_ADMIN");
}

void validate_container_security(struct field_errors *e, const struct field_path *p,
                                 const cJSON *context, bool host_users)
{
    const cJSON *proc = json_get(context, "procMount");

    if (!context)
        return;
    check_user_id(e, FIELD(p, "runAsUser"), json_get(context, "runAsUser"));
    check_user_id(e, FIELD(p, "runAsGroup"), json_get(context, "runAsGroup"));
    check_enum_if(e, FIELD(p, "procMount"), proc, ENUM_PROC_MOUNT_TYPE);
    if (host_users && str_eqc(json_str(proc), "Unmasked"))
        field_invalid(e, FIELD(p, "procMount"), proc,
                      "`hostUsers` must be false to use `Unmasked`");
    check_seccomp(e, FIELD(p, "seccompProfile"), json_get(context, "seccompProfile"));
    check_escalation(e, p, context);
    validate_windows_options(e, FIELD(p, "windowsOptions"), json_get(context, "windowsOptions"));
    check_app_armor(e, FIELD(p, "appArmorProfile"), json_get(context, "appArmorProfile"));
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

static void check_host_sysctl(struct field_errors *e, const struct field_path *p, struct str name,
                              const cJSON *spec)
{
    static const char *const ipc[] = {"kernel.sem", "kernel.shm", "kernel.msg",
                                      "fs.mqueue.", "kernel/sem", "kernel/shm",
                                      "kernel/msg", "fs/mqueue/", NULL};
    static const char *const net[] = {"net.", "net/", NULL};

    if (json_true(json_get(spec, "hostNetwork")) && starts_with_one(name, net))
        field_invalid_str(e, p, name, "may not be specified when 'hostNetwork' is true");
    else if (json_true(json_get(spec, "hostIPC")) && starts_with_one(name, ipc))
        field_invalid_str(e, p, name, "may not be specified when 'hostIPC' is true");
}

static void check_sysctls(struct field_errors *e, const struct field_path *p, const cJSON *list,
                          const cJSON *spec)
{
    struct names names = {.arena = e->arena};
    size_t i = 0;

    json_each(sysctl, list)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        struct str name = json_str(json_get(sysctl, "name"));

        if (!name.n)
            field_required(e, FIELD(at, "name"), "");
        else if (!is_sysctl(name))
            field_invalid_str(e, FIELD(at, "name"), name,
                              "must have at most 253 characters and match regex " SYSCTL_REGEX);
        else if (!names_add(&names, name, sysctl))
            field_duplicate(e, FIELD(at, "name"), json_get(sysctl, "name"));
        check_host_sysctl(e, FIELD(at, "name"), name, spec);
    }
}

/* ---- pods ---- */

void validate_pod_security(struct field_errors *e, const struct field_path *p, const cJSON *context,
                           const cJSON *spec)
{
    static const char *const selinux[] = {"Recursive",
                                          NULL}; /* the other is a feature that is off */

    if (!context)
        return;
    check_user_id(e, FIELD(p, "fsGroup"), json_get(context, "fsGroup"));
    check_user_id(e, FIELD(p, "runAsUser"), json_get(context, "runAsUser"));
    check_user_id(e, FIELD(p, "runAsGroup"), json_get(context, "runAsGroup"));
    check_user_ids(e, FIELD(p, "supplementalGroups"), json_get(context, "supplementalGroups"));
    if (json_true(json_get(spec, "shareProcessNamespace")) && json_true(json_get(spec, "hostPID")))
        field_invalid(e, FIELD(p, "shareProcessNamespace"), json_get(spec, "shareProcessNamespace"),
                      "ShareProcessNamespace and HostPID cannot both be enabled");
    check_sysctls(e, FIELD(p, "sysctls"), json_get(context, "sysctls"), spec);
    check_enum_if(e, FIELD(p, "fsGroupChangePolicy"), json_get(context, "fsGroupChangePolicy"),
                  ENUM_POD_FS_GROUP_CHANGE_POLICY);
    check_seccomp(e, FIELD(p, "seccompProfile"), json_get(context, "seccompProfile"));
    validate_windows_options(e, FIELD(p, "windowsOptions"), json_get(context, "windowsOptions"));
    check_app_armor(e, FIELD(p, "appArmorProfile"), json_get(context, "appArmorProfile"));
    check_enum_if(e, FIELD(p, "supplementalGroupsPolicy"),
                  json_get(context, "supplementalGroupsPolicy"), ENUM_SUPPLEMENTAL_GROUPS_POLICY);
    check_enum_if(e, FIELD(p, "seLinuxChangePolicy"), json_get(context, "seLinuxChangePolicy"),
                  selinux);
}
