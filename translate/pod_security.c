/* SPDX-License-Identifier: Apache-2.0 */
/* Pod Security Standards, levels baseline and restricted (k8s.io/pod-security-admission, v1.36).
 * Why: these are the fields with which a container leaves its box. Must be at least as strict as
 * upstream; it is stricter in one thing: Localhost profiles are files of the node, so they are
 * refused as well. All violations are told at once. */

#include <string.h>

#include "shape.h"

enum { VALUES_MAX = 16 };

/* What one rule found. */
struct found {
    struct str values[VALUES_MAX];
    size_t n_values;
};

static void add_value(struct found *f, struct str value)
{
    for (size_t i = 0; i < f->n_values; i++) {
        if (str_eq(f->values[i], value))
            return;
    }
    if (f->n_values < VALUES_MAX)
        f->values[f->n_values++] = value;
}

/* Where a rule looks: the pod itself when container is NULL. */
struct where {
    struct arena *arena;
    const cJSON *spec, *container;
};

static const cJSON *context(const struct where *w)
{
    return json_get(w->container ? w->container : w->spec, "securityContext");
}

static const cJSON *pod_context(const struct where *w)
{
    return json_get(w->spec, "securityContext");
}

/* ---- baseline ---- */

static bool host_process(const struct where *w, struct found *f)
{
    (void)f;
    return json_true(json_get(json_get(context(w), "windowsOptions"), "hostProcess"));
}

static bool host_namespaces(const struct where *w, struct found *f)
{
    static const char *const keys[] = {"hostNetwork", "hostPID", "hostIPC"};

    if (w->container)
        return false;
    for (size_t i = 0; i < 3; i++) {
        if (json_true(json_get(w->spec, keys[i])))
            add_value(f, arena_printf(w->arena, "%s=true", keys[i]));
    }
    return f->n_values;
}

static bool privileged(const struct where *w, struct found *f)
{
    (void)f;
    return w->container && json_true(json_get(context(w), "privileged"));
}

static bool listed(struct str word, const char *const *words)
{
    for (; *words; words++) {
        if (str_eqc(word, *words))
            return true;
    }
    return false;
}

static bool add_capabilities(const struct where *w, struct found *f, const char *const *allowed)
{
    if (!w->container)
        return false;
    json_each(one, json_get(json_get(context(w), "capabilities"), "add"))
    {
        if (!listed(json_str(one), allowed))
            add_value(f, json_str(one));
    }
    return f->n_values;
}

static bool capabilities_baseline(const struct where *w, struct found *f)
{
    static const char *const allowed[] = {
        "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",       "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT", NULL};

    return add_capabilities(w, f, allowed);
}

static bool host_path(const struct where *w, struct found *f)
{
    if (w->container)
        return false;
    json_each(volume, json_get(w->spec, "volumes"))
    {
        const cJSON *source = json_get(volume, "hostPath");

        if (source && !json_is_null(source))
            add_value(f, json_str(json_get(volume, "name")));
    }
    return f->n_values;
}

static bool host_port(const struct where *w, struct found *f)
{
    if (!w->container)
        return false;
    json_each(port, json_get(w->container, "ports"))
    {
        const cJSON *host = json_get(port, "hostPort");
        int64_t number;

        if (host && !json_is_null(host) && !(json_i64(host, &number) && number == 0))
            add_value(f, json_text(w->arena, host));
    }
    return f->n_values;
}

static void add_handler_hosts(const cJSON *handler, struct found *f)
{
    struct str http = json_str(json_get(json_get(handler, "httpGet"), "host"));
    struct str tcp = json_str(json_get(json_get(handler, "tcpSocket"), "host"));

    if (http.n)
        add_value(f, http);
    if (tcp.n)
        add_value(f, tcp);
}

static bool handler_host(const struct where *w, struct found *f)
{
    static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
    const cJSON *lifecycle = json_get(w->container, "lifecycle");

    for (size_t i = 0; i < 3; i++)
        add_handler_hosts(json_get(w->container, probes[i]), f);
    add_handler_hosts(json_get(lifecycle, "postStart"), f);
    add_handler_hosts(json_get(lifecycle, "preStop"), f);
    return f->n_values;
}

static bool profile_type(const cJSON *profile, struct found *f)
{
    struct str type = json_str(json_get(profile, "type"));

    if (type.n && !str_eqc(type, "RuntimeDefault"))
        add_value(f, type);
    return f->n_values;
}

static bool app_armor(const struct where *w, struct found *f)
{
    return profile_type(json_get(context(w), "appArmorProfile"), f);
}

static bool seccomp(const struct where *w, struct found *f)
{
    return profile_type(json_get(context(w), "seccompProfile"), f);
}

static bool selinux(const struct where *w, struct found *f)
{
    static const char *const types[] = {
        "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t", NULL};
    const cJSON *options = json_get(context(w), "seLinuxOptions");
    struct str type = json_str(json_get(options, "type"));

    if (type.n && !listed(type, types))
        add_value(f, arena_printf(w->arena, "type \"%.*s\"", STR_F(type)));
    if (json_str(json_get(options, "user")).n)
        add_value(f, STR("user may not be set"));
    if (json_str(json_get(options, "role")).n)
        add_value(f, STR("role may not be set"));
    return f->n_values;
}

static bool proc_mount(const struct where *w, struct found *f)
{
    struct str value = json_str(json_get(context(w), "procMount"));

    if (w->container && value.n && !str_eqc(value, "Default"))
        add_value(f, value);
    return f->n_values;
}

static bool sysctls(const struct where *w, struct found *f)
{
    static const char *const allowed[] = {"kernel.shm_rmid_forced",
                                          "net.ipv4.ip_local_port_range",
                                          "net.ipv4.ip_local_reserved_ports",
                                          "net.ipv4.ip_unprivileged_port_start",
                                          "net.ipv4.ping_group_range",
                                          "net.ipv4.tcp_fin_timeout",
                                          "net.ipv4.tcp_keepalive_intvl",
                                          "net.ipv4.tcp_keepalive_probes",
                                          "net.ipv4.tcp_keepalive_time",
                                          "net.ipv4.tcp_rmem",
                                          "net.ipv4.tcp_syncookies",
                                          "net.ipv4.tcp_wmem",
                                          NULL};

    if (w->container)
        return false;
    json_each(one, json_get(context(w), "sysctls"))
    {
        struct str name = json_str(json_get(one, "name"));

        if (!listed(name, allowed))
            add_value(f, name);
    }
    return f->n_values;
}

static bool mount_propagation(const struct where *w, struct found *f)
{
    json_each(mount, json_get(w->container, "volumeMounts"))
    {
        struct str mode = json_str(json_get(mount, "mountPropagation"));

        if (mode.n && !str_eqc(mode, "None"))
            add_value(f, mode);
    }
    return f->n_values;
}

/* ---- restricted ---- */

static bool escalation(const struct where *w, struct found *f)
{
    const cJSON *value = json_get(context(w), "allowPrivilegeEscalation");

    (void)f;
    return w->container && !(json_is_bool(value) && !json_true(value));
}

static bool may_be_root(const struct where *w, struct found *f)
{
    const cJSON *own = json_get(context(w), "runAsNonRoot");

    (void)f;
    if (!w->container)
        return json_is_bool(own) && !json_true(own);
    return !json_true(json_is_bool(own) ? own : json_get(pod_context(w), "runAsNonRoot"));
}

static bool is_root(const struct where *w, struct found *f)
{
    (void)f;
    return json_i64_at(context(w), "runAsUser", 1) == 0;
}

static bool no_seccomp(const struct where *w, struct found *f)
{
    const cJSON *own = json_get(context(w), "seccompProfile");

    (void)f;
    if (!w->container)
        return false;
    own = json_get(own ? own : json_get(pod_context(w), "seccompProfile"), "type");
    return !str_eqc(json_str(own), "RuntimeDefault");
}

static bool no_drop(const struct where *w, struct found *f)
{
    (void)f;
    return w->container &&
           !json_list_has(json_get(json_get(context(w), "capabilities"), "drop"), STR("ALL"));
}

static bool capabilities_restricted(const struct where *w, struct found *f)
{
    static const char *const allowed[] = {"NET_BIND_SERVICE", NULL};

    return add_capabilities(w, f, allowed);
}

/* ---- the rules ---- */

enum show { SHOW_NONE, SHOW_QUOTED, SHOW_PLAIN };

struct rule {
    enum config_pod_security level;
    const char *reason;
    bool (*find)(const struct where *w, struct found *f);
    bool who;           /* name the pod or container first */
    const char *before; /* then this, the values, and what follows */
    enum show show;
    const char *after;
};

#define B POD_SECURITY_BASELINE
#define R POD_SECURITY_RESTRICTED
static const struct rule RULES[] = {
    {B, "hostProcess", host_process, true,
     " must not set securityContext.windowsOptions.hostProcess=true", SHOW_NONE, ""},
    {B, "host namespaces", host_namespaces, false, "", SHOW_PLAIN, ""},
    {B, "privileged", privileged, true, " must not set securityContext.privileged=true", SHOW_NONE,
     ""},
    {B, "non-default capabilities", capabilities_baseline, true, " must not include ", SHOW_QUOTED,
     " in securityContext.capabilities.add"},
    {B, "hostPath volumes", host_path, false, "volume ", SHOW_QUOTED, ""},
    {B, "hostPort", host_port, true, " uses hostPort ", SHOW_PLAIN, ""},
    {B, "probe or lifecycle host", handler_host, true, " uses probe or lifecycle host ",
     SHOW_QUOTED, ""},
    {B, "forbidden AppArmor profile", app_armor, true, " must not set AppArmor profile type to ",
     SHOW_QUOTED, ""},
    {B, "seLinuxOptions", selinux, true,
     " set forbidden securityContext.seLinuxOptions: ", SHOW_PLAIN, ""},
    {B, "procMount", proc_mount, true, " must not set securityContext.procMount to ", SHOW_QUOTED,
     ""},
    {B, "seccompProfile", seccomp, true, " must not set securityContext.seccompProfile.type to ",
     SHOW_QUOTED, ""},
    {B, "forbidden sysctls", sysctls, false, "", SHOW_PLAIN, ""},
    {B, "mount propagation", mount_propagation, true,
     " must not set volumeMounts.mountPropagation to ", SHOW_QUOTED, ""},
    {R, "allowPrivilegeEscalation != false", escalation, true,
     " must set securityContext.allowPrivilegeEscalation=false", SHOW_NONE, ""},
    {R, "unrestricted capabilities", no_drop, true,
     " must set securityContext.capabilities.drop=[\"ALL\"]", SHOW_NONE, ""},
    {R, "unrestricted capabilities", capabilities_restricted, true, " must not include ",
     SHOW_QUOTED, " in securityContext.capabilities.add"},
    {R, "runAsNonRoot != true", may_be_root, true, " must set securityContext.runAsNonRoot=true",
     SHOW_NONE, ""},
    {R, "runAsUser=0", is_root, true, " must not set runAsUser=0", SHOW_NONE, ""},
    {R, "seccompProfile", no_seccomp, true,
     " must set securityContext.seccompProfile.type to \"RuntimeDefault\"", SHOW_NONE, ""},
};
#undef B
#undef R

/* ---- telling ---- */

struct report {
    struct buf who;
    size_t containers, n;
    struct found found;
};

static void note_container(struct report *r, struct str name)
{
    if (r->containers++ >= VALUES_MAX)
        return;
    if (r->containers == 1)
        buf_addc(&r->who, r->n > 1 ? " and container " : "container ");
    else
        buf_addc(&r->who, ", ");
    buf_json_string(&r->who, name);
}

static void run(const struct rule *rule, struct where *w, struct report *r)
{
    if (rule->find(w, &r->found)) {
        r->n++;
        buf_addc(&r->who, "pod");
    }
    for (size_t i = 0; i < 3; i++) {
        json_each(container, json_get(w->spec, CONTAINER_LISTS[i]))
        {
            struct found one = {0};

            w->container = container;
            if (!rule->find(w, &one))
                continue;
            r->n++;
            note_container(r, json_str(json_get(container, "name")));
            for (size_t k = 0; k < one.n_values; k++)
                add_value(&r->found, one.values[k]);
        }
    }
    w->container = NULL;
}

static void tell(const struct rule *rule, const struct report *r, struct buf *text)
{
    if (text->n)
        buf_addc(text, ", ");
    buf_printf(text, "%s (", rule->reason);
    if (rule->who)
        buf_add(text, buf_str(&r->who));
    buf_addc(text, rule->before);
    for (size_t i = 0; rule->show != SHOW_NONE && i < r->found.n_values; i++) {
        if (i)
            buf_addc(text, ", ");
        if (rule->show == SHOW_QUOTED)
            buf_json_string(text, r->found.values[i]);
        else
            buf_add(text, r->found.values[i]);
    }
    buf_printf(text, "%s)", rule->after);
}

int security_check(struct arena *a, enum config_pod_security level, const cJSON *spec,
                   struct str pod_name, struct err *err)
{
    struct where w = {.arena = a, .spec = spec};
    struct buf text = BUF_INIT(16 * 1024);
    int rc = 0;

    for (size_t i = 0; i < sizeof RULES / sizeof RULES[0]; i++) {
        struct report r = {.who = BUF_INIT(4096)};

        if (RULES[i].level <= level)
            run(&RULES[i], &w, &r);
        if (r.n)
            tell(&RULES[i], &r, &text);
        buf_fini(&r.who);
    }
    if (text.n || text.failed)
        rc = err_forbidden(
            err, STR_NULL, STR("pods"), pod_name, "violates policy.podSecurity \"%s\": %.*s",
            level == POD_SECURITY_RESTRICTED ? "restricted" : "baseline", STR_F(buf_str(&text)));
    buf_fini(&text);
    return rc;
}
