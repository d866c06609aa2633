/* SPDX-License-Identifier: Apache-2.0 */
/* What the Pod Security Standards forbid, each as one function of a pod or a container; the table
 * in pod_security.c says at which level and since when. A finder must never change its mind: a
 * policy may name the version it came with. */
#include "pod_security_impl.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/encode.h>

#define APPARMOR_PREFIX          "container.apparmor.security.beta.kubernetes.io/"
#define SECCOMP_POD              "seccomp.security.alpha.kubernetes.io/pod"
#define SECCOMP_CONTAINER_PREFIX "container.seccomp.security.alpha.kubernetes.io/"

/* ---- lists ---- */

void security_add(const struct security_found *f, struct security_list *list, struct str s)
{
    ARENA_GROW(f->pod->arena, list->items, list->n, list->cap);
    list->items[list->n++] = s;
}

void security_unite(struct security_list *list)
{
    size_t kept = 0;

    if (list->n)
        qsort(list->items, list->n, sizeof *list->items, str_order);
    for (size_t i = 0; i < list->n; i++) {
        if (!kept || !str_eq(list->items[kept - 1], list->items[i]))
            list->items[kept++] = list->items[i];
    }
    list->n = kept;
}

static void add_value(struct security_found *f, struct str s)
{
    security_add(f, &f->values, s);
}

static bool is_listed(struct str s, const char *const *list)
{
    for (; *list; list++) {
        if (str_eqc(s, *list))
            return true;
    }
    return false;
}

/* What is allowed since a minor version; a NULL ends the list. */
struct allowed {
    const char *name;
    int since;
};

static bool is_allowed(struct str s, const struct allowed *list, int64_t minor)
{
    for (; list->name; list++) {
        if (list->since <= minor && str_eqc(s, list->name))
            return true;
    }
    return false;
}

/* Adds the strings that are not allowed to the values; true when there is one. */
static bool add_others(struct security_found *f, const cJSON *list, const char *const *allowed)
{
    size_t before = f->values.n;

    json_each(item, list)
    {
        if (!is_listed(json_str(item), allowed))
            add_value(f, json_str(item));
    }
    return f->values.n > before;
}

static const cJSON *context(const cJSON *object, const char *path)
{
    return json_path(json_get(object, "securityContext"), path);
}

static bool is_false(const cJSON *node)
{
    return json_is_bool(node) && !json_true(node);
}

/* ---- profiles ---- */

/* The fence refuses Localhost as well: such a profile is a file of the node. */
static bool find_profile(struct security_found *f, const cJSON *profile)
{
    struct str type = json_str(json_get(profile, "type"));

    if (!json_is_object(profile) || str_eqc(type, "RuntimeDefault") ||
        (str_eqc(type, "Localhost") && !f->pod->fence))
        return false;
    add_value(f, type);
    return true;
}

void security_compose_apparmor(struct security_found *f)
{
    for (size_t i = 0; i < f->annotations.n; i++)
        add_value(f, f->annotations.items[i]);
}

bool security_find_apparmor(struct security_found *f, const cJSON *object)
{
    if (object == f->pod->spec && !f->pod->fence) {
        json_each(item, json_get(f->pod->metadata, "annotations"))
        {
            struct str value = json_str(item);

            if (!str_has_prefix(json_key(item), STR(APPARMOR_PREFIX)) || !value.n ||
                str_eqc(value, "runtime/default") || str_has_prefix(value, STR("localhost/")))
                continue;
            security_add(f, &f->annotations,
                         arena_printf(f->pod->arena, "%s=%.*s", item->string,
                                      STR_F(go_quote(f->pod->arena, value))));
        }
        security_unite(&f->annotations);
    }
    return find_profile(f, context(object, "appArmorProfile"));
}

bool security_find_seccomp(struct security_found *f, const cJSON *object)
{
    return find_profile(f, context(object, "seccompProfile"));
}

static void add_seccomp_annotation(struct security_found *f, struct str key)
{
    const cJSON *value = json_get_str(json_get(f->pod->metadata, "annotations"), key);
    struct str text = json_str(value);

    if (!value || str_eqc(text, "runtime/default") || str_eqc(text, "docker/default") ||
        str_has_prefix(text, STR("localhost/")))
        return;
    add_value(f, arena_printf(f->pod->arena, "%.*s=%.*s", STR_F(key),
                              STR_F(go_quote(f->pod->arena, text))));
}

bool security_find_seccomp_annotations(struct security_found *f, const cJSON *object)
{
    if (object == f->pod->spec)
        add_seccomp_annotation(f, STR(SECCOMP_POD));
    else
        add_seccomp_annotation(f, arena_printf(f->pod->arena, SECCOMP_CONTAINER_PREFIX "%.*s",
                                               STR_F(json_str_at(object, "name"))));
    return false;
}

bool security_find_seccomp_unsaid(struct security_found *f, const cJSON *container)
{
    return !context(f->pod->spec, "seccompProfile") && !context(container, "seccompProfile");
}

bool security_find_seccomp_unconfined(struct security_found *f, const cJSON *container)
{
    const cJSON *own = context(container, "seccompProfile");

    own = own ? own : context(f->pod->spec, "seccompProfile");
    return !str_eqc(json_str(json_get(own, "type")), "RuntimeDefault");
}

/* ---- SELinux ---- */

bool security_find_selinux(struct security_found *f, const cJSON *object)
{
    static const struct allowed types[] = {
        {"", 0},
        {"container_t", 0},
        {"container_init_t", 0},
        {"container_kvm_t", 0},
        {"container_engine_t", 31},
        {NULL, 0},
    };
    const cJSON *options = context(object, "seLinuxOptions");
    struct str type = json_str(json_get(options, "type"));
    bool bad_type = !is_allowed(type, types, f->pod->minor);
    bool user = json_str(json_get(options, "user")).n > 0;
    bool role = json_str(json_get(options, "role")).n > 0;

    if (bad_type)
        add_value(f,
                  f->pod->fence ? arena_printf(f->pod->arena, "type \"%.*s\"", STR_F(type)) : type);
    if (user && f->pod->fence)
        add_value(f, STR("user may not be set"));
    if (role && f->pod->fence)
        add_value(f, STR("role may not be set"));
    f->user |= user;
    f->role |= role;
    return bad_type || user || role;
}

void security_compose_selinux(struct security_found *f)
{
    struct buf b = BUF_INIT(0);

    for (size_t i = 0; i < f->values.n; i++) {
        buf_addc(&b, i ? "\", \"" : f->values.n == 1 ? "type \"" : "types \"");
        buf_add(&b, f->values.items[i]);
    }
    if (b.n)
        buf_char(&b, '"');
    if (f->user)
        buf_printf(&b, "%suser may not be set", b.n ? "; " : "");
    if (f->role)
        buf_printf(&b, "%srole may not be set", b.n ? "; " : "");
    f->values.n = 0;
    add_value(f, arena_str(f->pod->arena, buf_str(&b)));
    buf_fini(&b);
}

/* ---- privileges of a container ---- */

bool security_find_privileged(struct security_found *f, const cJSON *container)
{
    (void)f;
    return json_true(context(container, "privileged"));
}

bool security_find_host_process(struct security_found *f, const cJSON *object)
{
    (void)f;
    return json_true(context(object, "windowsOptions.hostProcess"));
}

bool security_find_proc_mount(struct security_found *f, const cJSON *container)
{
    const cJSON *type = context(container, "procMount");

    if (!json_is_string(type) || str_eqc(json_str(type), "Default"))
        return false;
    add_value(f, json_str(type));
    return true;
}

bool security_find_capabilities(struct security_found *f, const cJSON *container)
{
    static const char *const allowed[] = {
        "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",       "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT", NULL};

    return add_others(f, context(container, "capabilities.add"), allowed);
}

bool security_find_added_capabilities(struct security_found *f, const cJSON *container)
{
    static const char *const allowed[] = {"NET_BIND_SERVICE", NULL};

    return add_others(f, context(container, "capabilities.add"), allowed);
}

bool security_find_undropped(struct security_found *f, const cJSON *container)
{
    (void)f;
    return !json_list_has(context(container, "capabilities.drop"), STR("ALL"));
}

bool security_find_escalation(struct security_found *f, const cJSON *container)
{
    (void)f;
    return !is_false(context(container, "allowPrivilegeEscalation"));
}

bool security_find_root_chosen(struct security_found *f, const cJSON *object)
{
    (void)f;
    return is_false(context(object, "runAsNonRoot"));
}

bool security_find_root_unsaid(struct security_found *f, const cJSON *container)
{
    return !json_true(context(f->pod->spec, "runAsNonRoot")) &&
           !json_is_bool(context(container, "runAsNonRoot"));
}

bool security_find_root_allowed(struct security_found *f, const cJSON *object)
{
    return security_find_root_chosen(f, object) ||
           (object != f->pod->spec && security_find_root_unsaid(f, object));
}

bool security_find_user_0(struct security_found *f, const cJSON *object)
{
    int64_t user;

    (void)f;
    return json_i64(context(object, "runAsUser"), &user) && user == 0;
}

/* ---- the host ---- */

bool security_find_host_namespaces(struct security_found *f, const cJSON *spec)
{
    static const char *const keys[] = {"hostNetwork", "hostPID", "hostIPC"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        if (json_true(json_get(spec, keys[i])))
            add_value(f, arena_printf(f->pod->arena, "%s=true", keys[i]));
    }
    return f->values.n > 0;
}

bool security_find_host_ports(struct security_found *f, const cJSON *container)
{
    size_t before = f->values.n;

    json_each(port, json_get(container, "ports"))
    {
        const cJSON *host = json_get(port, "hostPort");
        int64_t number;

        if (host && !json_is_null(host) && !(json_i64(host, &number) && number == 0))
            add_value(f, json_text(f->pod->arena, host));
    }
    return f->values.n > before;
}

bool security_find_handler_hosts(struct security_found *f, const cJSON *container)
{
    static const char *const handlers[] = {"livenessProbe", "readinessProbe", "startupProbe",
                                           "lifecycle.postStart", "lifecycle.preStop"};
    static const char *const hosts[] = {"httpGet.host", "tcpSocket.host"};
    size_t before = f->values.n;

    for (size_t i = 0; i < COUNT(handlers); i++) {
        for (size_t k = 0; k < COUNT(hosts); k++) {
            struct str host = json_str_at(json_path(container, handlers[i]), hosts[k]);

            if (host.n)
                add_value(f, host);
        }
    }
    return f->values.n > before;
}

bool security_find_sysctls(struct security_found *f, const cJSON *spec)
{
    static const struct allowed sysctls[] = {
        {"kernel.shm_rmid_forced", 0},
        {"net.ipv4.ip_local_port_range", 0},
        {"net.ipv4.ip_local_reserved_ports", 27},
        {"net.ipv4.ip_unprivileged_port_start", 0},
        {"net.ipv4.ping_group_range", 0},
        {"net.ipv4.tcp_fin_timeout", 29},
        {"net.ipv4.tcp_keepalive_intvl", 29},
        {"net.ipv4.tcp_keepalive_probes", 29},
        {"net.ipv4.tcp_keepalive_time", 29},
        {"net.ipv4.tcp_rmem", 32},
        {"net.ipv4.tcp_syncookies", 0},
        {"net.ipv4.tcp_wmem", 32},
        {NULL, 0},
    };

    json_each(sysctl, context(spec, "sysctls"))
    {
        struct str name = json_str(json_get(sysctl, "name"));

        if (!is_allowed(name, sysctls, f->pod->minor))
            add_value(f, name);
    }
    return f->values.n > 0;
}

bool security_find_mount_propagation(struct security_found *f, const cJSON *container)
{
    size_t before = f->values.n;

    json_each(mount, json_get(container, "volumeMounts"))
    {
        struct str mode = json_str(json_get(mount, "mountPropagation"));

        if (mode.n && !str_eqc(mode, "None"))
            add_value(f, mode);
    }
    return f->values.n > before;
}

/* ---- volumes ---- */

bool security_find_host_path(struct security_found *f, const cJSON *spec)
{
    json_each(volume, json_get(spec, "volumes"))
    {
        const cJSON *source = json_get(volume, "hostPath");

        if (source && !json_is_null(source))
            add_value(f, json_str(json_get(volume, "name")));
    }
    return f->values.n > 0;
}

/* The type of a volume that is not allowed; NULL for an allowed one. */
static const char *restricted_type(const cJSON *volume)
{
    static const char *const allowed[] = {
        "configMap", "csi",   "downwardAPI",           "emptyDir",
        "ephemeral", "image", "persistentVolumeClaim", "projected",
        "secret",    NULL};
    static const char *const restricted[] = {"hostPath",
                                             "gcePersistentDisk",
                                             "awsElasticBlockStore",
                                             "gitRepo",
                                             "nfs",
                                             "iscsi",
                                             "glusterfs",
                                             "rbd",
                                             "flexVolume",
                                             "cinder",
                                             "cephfs",
                                             "flocker",
                                             "fc",
                                             "azureFile",
                                             "vsphereVolume",
                                             "quobyte",
                                             "azureDisk",
                                             "photonPersistentDisk",
                                             "portworxVolume",
                                             "scaleIO",
                                             "storageos",
                                             NULL};

    for (const char *const *type = allowed; *type; type++) {
        if (json_get(volume, *type))
            return NULL;
    }
    for (const char *const *type = restricted; *type; type++) {
        if (json_get(volume, *type))
            return *type;
    }
    return "unknown";
}

bool security_find_volumes(struct security_found *f, const cJSON *spec)
{
    json_each(volume, json_get(spec, "volumes"))
    {
        const char *type = restricted_type(volume);

        if (!type)
            continue;
        security_add(f, &f->names, json_str_at(volume, "name"));
        add_value(f, str_c(type));
    }
    return false;
}
