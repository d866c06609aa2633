/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the baseline level: known privilege escalations. Each check has upstream's message
 * (k8s.io/pod-security-admission policy); the table in pod_security_rules.c has its first version.
 * A check must never change: a policy may name the version it came with. */
#include "pod_security_helpers.h"

#include <sublet/encode.h>

#define APPARMOR_PREFIX          "container.apparmor.security.beta.kubernetes.io/"
#define SECCOMP_POD              "seccomp.security.alpha.kubernetes.io/pod"
#define SECCOMP_CONTAINER_PREFIX "container.seccomp.security.alpha.kubernetes.io/"

static bool bad_apparmor(struct found *f, const cJSON *object)
{
    static const char *const fine[] = {"RuntimeDefault", "Localhost", NULL};
    const cJSON *profile = security_context(object, "appArmorProfile");
    struct str type = json_str_at(profile, "type");

    if (!profile || security_listed(type, fine))
        return false;
    security_strings_add(&f->values, type);
    return true;
}

static bool apparmor_annotation_fine(struct str value)
{
    return !value.n || str_eqc(value, "runtime/default") ||
           str_has_prefix(value, STR("localhost/"));
}

static struct strings apparmor_annotations(const struct check *k)
{
    struct strings bad = {.arena = k->arena};

    json_each(item, json_get(k->metadata, "annotations"))
    {
        if (str_has_prefix(str_c(item->string), STR(APPARMOR_PREFIX)) &&
            !apparmor_annotation_fine(json_str(item)))
            security_strings_add(&bad, arena_printf(k->arena, "%s=%.*s", item->string,
                                                    STR_F(go_quote(k->arena, json_str(item)))));
    }
    security_strings_unite(&bad);
    return bad;
}

bool security_apparmor(struct check *k)
{
    struct found f = security_found(k);
    struct strings annotations = apparmor_annotations(k);
    struct str who;

    f.pod = bad_apparmor(&f, k->spec);
    security_visit(k, &f, bad_apparmor);
    security_strings_unite(&f.values);
    if (!security_any(&f) && !annotations.n)
        return true;
    who = security_setters(&f);
    if (annotations.n)
        who = arena_printf(k->arena, "%.*s%s%s", STR_F(who), who.n ? " and " : "",
                           security_plural(annotations.n, "annotation", "annotations"));
    for (size_t i = 0; i < annotations.n; i++)
        security_strings_add(&f.values, annotations.items[i]);
    return security_refuse(
        k, security_plural(f.values.n, "forbidden AppArmor profile", "forbidden AppArmor profiles"),
        arena_printf(k->arena, "%.*s must not set AppArmor profile type to %.*s", STR_F(who),
                     STR_F(security_join_quoted(&f.values))));
}

static bool bad_capability(struct found *f, const cJSON *container)
{
    static const char *const fine[] = {
        "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",       "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT", NULL};

    return security_others(f, security_context(container, "capabilities.add"), fine);
}

bool security_capabilities_baseline(struct check *k)
{
    struct found f = security_found(k);

    security_visit(k, &f, bad_capability);
    security_strings_unite(&f.values);
    return !security_any(&f) ||
           security_refuse(
               k, "non-default capabilities",
               arena_printf(
                   k->arena, "%.*s must not include %.*s in securityContext.capabilities.add",
                   STR_F(security_bad_containers(&f)), STR_F(security_join_quoted(&f.values))));
}

bool security_host_namespaces(struct check *k)
{
    static const char *const fields[] = {"hostNetwork", "hostPID", "hostIPC"};
    struct strings set = {.arena = k->arena};

    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (json_true(json_get(k->spec, fields[i])))
            security_strings_add(&set, arena_printf(k->arena, "%s=true", fields[i]));
    return !set.n || security_refuse(k, "host namespaces", security_join(&set, ", "));
}

bool security_host_path_volumes(struct check *k)
{
    struct strings bad = {.arena = k->arena};

    json_each(volume, json_get(k->spec, "volumes"))
    {
        if (json_get(volume, "hostPath"))
            security_strings_add(&bad, json_str_at(volume, "name"));
    }
    return !bad.n ||
           security_refuse(k, "hostPath volumes", security_named("volume", "volumes", &bad));
}

static bool bad_port(struct found *f, const cJSON *container)
{
    bool bad = false;

    json_each(port, json_get(container, "ports"))
    {
        int64_t number = json_i64_at(port, "hostPort", 0);

        if (!number)
            continue;
        security_strings_add(&f->values, arena_printf(f->arena, "%lld", (long long)number));
        bad = true;
    }
    return bad;
}

bool security_host_ports(struct check *k)
{
    struct found f = security_found(k);

    security_visit(k, &f, bad_port);
    security_strings_unite(&f.values);
    return !security_any(&f) ||
           security_refuse(k, "hostPort",
                           arena_printf(k->arena, "%.*s %s %s %.*s",
                                        STR_F(security_bad_containers(&f)),
                                        security_plural(f.containers.n, "uses", "use"),
                                        security_plural(f.values.n, "hostPort", "hostPorts"),
                                        STR_F(security_join(&f.values, ", "))));
}

static bool bad_host(struct found *f, const cJSON *container)
{
    static const char *const handlers[] = {"livenessProbe", "readinessProbe", "startupProbe",
                                           "lifecycle.postStart", "lifecycle.preStop"};
    static const char *const hosts[] = {"httpGet.host", "tcpSocket.host"};
    bool bad = false;

    for (size_t i = 0; i < sizeof(handlers) / sizeof(*handlers); i++)
        for (size_t j = 0; j < sizeof(hosts) / sizeof(*hosts); j++) {
            struct str host = json_str_at(json_path(container, handlers[i]), hosts[j]);

            if (!host.n)
                continue;
            security_strings_add(&f->values, host);
            bad = true;
        }
    return bad;
}

bool security_host_handlers(struct check *k)
{
    struct found f = security_found(k);

    security_visit(k, &f, bad_host);
    security_strings_unite(&f.values);
    security_strings_unite(&f.containers);
    return !security_any(&f) ||
           security_refuse(k, "probe or lifecycle host",
                           arena_printf(k->arena, "%.*s %s %s %.*s",
                                        STR_F(security_bad_containers(&f)),
                                        security_plural(f.containers.n, "uses", "use"),
                                        security_plural(f.values.n, "probe or lifecycle host",
                                                        "probe or lifecycle hosts"),
                                        STR_F(security_join_quoted(&f.values))));
}

static bool is_privileged(struct found *f, const cJSON *container)
{
    (void)f;
    return json_true(security_context(container, "privileged"));
}

bool security_privileged(struct check *k)
{
    struct found f = security_found(k);

    security_visit(k, &f, is_privileged);
    return !security_any(&f) ||
           security_refuse(k, "privileged",
                           arena_printf(k->arena,
                                        "%.*s must not set securityContext.privileged=true",
                                        STR_F(security_bad_containers(&f))));
}

static bool bad_proc_mount(struct found *f, const cJSON *container)
{
    const cJSON *type = security_context(container, "procMount");

    if (!type || str_eqc(json_str(type), "Default"))
        return false;
    security_strings_add(&f->values, json_str(type));
    return true;
}

bool security_proc_mount(struct check *k)
{
    struct found f = security_found(k);

    security_visit(k, &f, bad_proc_mount);
    security_strings_unite(&f.values);
    return !security_any(&f) ||
           security_refuse(k, "procMount",
                           arena_printf(k->arena,
                                        "%.*s must not set securityContext.procMount to %.*s",
                                        STR_F(security_bad_containers(&f)),
                                        STR_F(security_join_quoted(&f.values))));
}

bool security_proc_mount_35(struct check *k)
{
    return security_own_users(k) || security_proc_mount(k);
}

struct selinux {
    const char *const *types;
    struct strings bad_types;
    bool user, role;
};

static bool bad_selinux(struct found *f, const cJSON *object)
{
    struct selinux *s = f->ctx;
    const cJSON *options = security_context(object, "seLinuxOptions");
    struct str type = json_str_at(options, "type");
    bool bad_type = type.n && !security_listed(type, s->types);
    bool user = json_str_at(options, "user").n > 0, role = json_str_at(options, "role").n > 0;

    if (bad_type)
        security_strings_add(&s->bad_types, type);
    s->user = s->user || user;
    s->role = s->role || role;
    return bad_type || user || role;
}

static struct str selinux_faults(struct check *k, struct selinux *s)
{
    struct strings faults = {.arena = k->arena};

    security_strings_unite(&s->bad_types);
    if (s->bad_types.n)
        security_strings_add(&faults, security_named("type", "types", &s->bad_types));
    if (s->user)
        security_strings_add(&faults, STR("user may not be set"));
    if (s->role)
        security_strings_add(&faults, STR("role may not be set"));
    return security_join(&faults, "; ");
}

static bool selinux(struct check *k, const char *const *types)
{
    struct selinux s = {.types = types, .bad_types = {.arena = k->arena}};
    struct found f = security_found(k);

    f.ctx = &s;
    f.pod = bad_selinux(&f, k->spec);
    security_visit(k, &f, bad_selinux);
    return !security_any(&f) ||
           security_refuse(k, "seLinuxOptions",
                           arena_printf(k->arena,
                                        "%.*s set forbidden securityContext.seLinuxOptions: %.*s",
                                        STR_F(security_setters(&f)), STR_F(selinux_faults(k, &s))));
}

bool security_selinux_0(struct check *k)
{
    static const char *const types[] = {"container_t", "container_init_t", "container_kvm_t", NULL};

    return selinux(k, types);
}

bool security_selinux_31(struct check *k)
{
    static const char *const types[] = {"container_t", "container_init_t", "container_kvm_t",
                                        "container_engine_t", NULL};

    return selinux(k, types);
}

static void bad_seccomp_annotation(struct check *k, struct str key, struct strings *bad)
{
    const cJSON *value = json_get_str(json_get(k->metadata, "annotations"), key);
    struct str text = json_str(value);

    if (!value || str_eqc(text, "runtime/default") || str_eqc(text, "docker/default") ||
        str_has_prefix(text, STR("localhost/")))
        return;
    security_strings_add(
        bad, arena_printf(k->arena, "%.*s=%.*s", STR_F(key), STR_F(go_quote(k->arena, text))));
}

static bool all(struct found *f, const cJSON *container)
{
    (void)f;
    (void)container;
    return true;
}

bool security_seccomp_baseline_0(struct check *k)
{
    struct found f = security_found(k);
    struct strings bad = {.arena = k->arena};

    security_visit(k, &f, all);
    bad_seccomp_annotation(k, STR(SECCOMP_POD), &bad);
    for (size_t i = 0; i < f.containers.n; i++)
        bad_seccomp_annotation(
            k,
            arena_concat(k->arena, 2,
                         (struct str[]){STR(SECCOMP_CONTAINER_PREFIX), f.containers.items[i]}),
            &bad);
    security_strings_unite(&bad);
    return !bad.n ||
           security_refuse(k, "seccompProfile",
                           arena_printf(k->arena, "forbidden %s %.*s",
                                        security_plural(bad.n, "annotation", "annotations"),
                                        STR_F(security_join(&bad, ", "))));
}

static bool bad_seccomp(struct found *f, const cJSON *object)
{
    static const char *const fine[] = {"RuntimeDefault", "Localhost", NULL};
    const cJSON *profile = security_context(object, "seccompProfile");
    struct str type = json_str_at(profile, "type");

    if (!profile || security_listed(type, fine))
        return false;
    security_strings_add(&f->values, type);
    return true;
}

bool security_seccomp_baseline_19(struct check *k)
{
    struct found f = security_found(k);

    f.pod = bad_seccomp(&f, k->spec);
    security_visit(k, &f, bad_seccomp);
    security_strings_unite(&f.values);
    return !security_any(&f) ||
           security_refuse(
               k, "seccompProfile",
               arena_printf(k->arena,
                            "%.*s must not set securityContext.seccompProfile.type to %.*s",
                            STR_F(security_setters(&f)), STR_F(security_join_quoted(&f.values))));
}

static const struct {
    unsigned since;
    const char *name;
} SYSCTLS[] = {
    {0, "kernel.shm_rmid_forced"},
    {0, "net.ipv4.ip_local_port_range"},
    {0, "net.ipv4.tcp_syncookies"},
    {0, "net.ipv4.ping_group_range"},
    {0, "net.ipv4.ip_unprivileged_port_start"},
    {27, "net.ipv4.ip_local_reserved_ports"},
    {29, "net.ipv4.tcp_keepalive_time"},
    {29, "net.ipv4.tcp_fin_timeout"},
    {29, "net.ipv4.tcp_keepalive_intvl"},
    {29, "net.ipv4.tcp_keepalive_probes"},
    {32, "net.ipv4.tcp_rmem"},
    {32, "net.ipv4.tcp_wmem"},
};

static bool sysctl_fine(struct str name, unsigned minor)
{
    for (size_t i = 0; i < sizeof(SYSCTLS) / sizeof(*SYSCTLS); i++)
        if (SYSCTLS[i].since <= minor && str_eqc(name, SYSCTLS[i].name))
            return true;
    return false;
}

static bool sysctls(struct check *k, unsigned minor)
{
    struct strings bad = {.arena = k->arena};

    json_each(sysctl, security_context(k->spec, "sysctls"))
    {
        if (!sysctl_fine(json_str_at(sysctl, "name"), minor))
            security_strings_add(&bad, json_str_at(sysctl, "name"));
    }
    return !bad.n || security_refuse(k, "forbidden sysctls", security_join(&bad, ", "));
}

bool security_sysctls_0(struct check *k)
{
    return sysctls(k, 0);
}

bool security_sysctls_27(struct check *k)
{
    return sysctls(k, 27);
}

bool security_sysctls_29(struct check *k)
{
    return sysctls(k, 29);
}

bool security_sysctls_32(struct check *k)
{
    return sysctls(k, 32);
}

static bool is_host_process(struct found *f, const cJSON *object)
{
    (void)f;
    return json_true(security_context(object, "windowsOptions.hostProcess"));
}

bool security_host_process(struct check *k)
{
    struct found f = security_found(k);

    f.pod = is_host_process(&f, k->spec);
    security_visit(k, &f, is_host_process);
    return !security_any(&f) ||
           security_refuse(
               k, "hostProcess",
               arena_printf(k->arena,
                            "%.*s must not set securityContext.windowsOptions.hostProcess=true",
                            STR_F(security_setters(&f))));
}
