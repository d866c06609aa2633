/* SPDX-License-Identifier: Apache-2.0 */
/* The Pod Security Standards as one table: what is forbidden at which level, since which version of
 * Kubernetes, and in which words. A policy that names a version is judged as that version did it,
 * so a row must never change: a new form is a new row. Source: k8s.io/pod-security-admission. */
#include "pod_security_impl.h"

#include <assert.h>
#include <string.h>

#include <sublet/object.h>

/* The last version in which anything changed; later ones are the same. */
enum { NEWEST = 35, NEVER = NEWEST + 1 };
/* Of one rule of the fence, so many containers and values are named. */
enum { FENCE_NAMED = 16 };

enum scope { POD = 1, CONTAINERS = 2, BOTH = POD | CONTAINERS };
enum exemption { EXEMPT_NONE, EXEMPT_WINDOWS, EXEMPT_OWN_USERS };
enum {
    IN_ORDER = 1,     /* values stay as they were found; else they are sorted, each once */
    SORTED_NAMES = 2, /* names are sorted as well */
    OTHERWISE = 4     /* only where the row before, of the same rule, found nothing */
};

/* One thing a rule forbids. Rows of one id are one rule. In reason and words, %w is the pod and the
 * containers at fault, %v the values, %q the values in quotes; {is|are} goes by the number of the
 * former, <is|are> by that of the latter. */
struct row {
    const char *id;
    enum pod_security_level level;
    int since, until; /* minor versions */
    enum scope scope;
    security_find_cb *find;
    const char *reason, *words;
    int fence; /* place in what the fence reports; 0: no part of it */
    enum exemption exempt;
    int flags;
    const char *instead_of; /* the baseline rule that this one includes */
    const char *noun;       /* of names; NULL: container */
    void (*compose)(struct security_found *f);
};

#define B      POD_SECURITY_BASELINE
#define R      POD_SECURITY_RESTRICTED
#define ALWAYS 0, NEWEST
/* In the order of upstream's messages: the level, then the id. */
static const struct row ROWS[] = {
    {"appArmorProfile", B, ALWAYS, BOTH, security_find_apparmor,
     "forbidden AppArmor <profile|profiles>", "%w must not set AppArmor profile type to %q", 8,
     .compose = security_compose_apparmor},
    {"capabilities_baseline", B, ALWAYS, CONTAINERS, security_find_capabilities,
     "non-default capabilities", "%w must not include %q in securityContext.capabilities.add", 4},
    {"hostNamespaces", B, ALWAYS, POD, security_find_host_namespaces, "host namespaces", "%v", 2,
     .flags = IN_ORDER},
    {"hostPathVolumes", B, ALWAYS, POD, security_find_host_path, "hostPath volumes",
     "<volume|volumes> %q", 5, .flags = IN_ORDER},
    {"hostPorts", B, ALWAYS, CONTAINERS, security_find_host_ports, "hostPort",
     "%w {uses|use} <hostPort|hostPorts> %v", 6},
    {"hostProbesAndHostLifecycle", B, 34, NEWEST, CONTAINERS, security_find_handler_hosts,
     "probe or lifecycle host",
     "%w {uses|use} <probe or lifecycle host|probe or lifecycle hosts> %q", 7,
     .flags = SORTED_NAMES},
    {"privileged", B, ALWAYS, CONTAINERS, security_find_privileged, "privileged",
     "%w must not set securityContext.privileged=true", 3},
    {"procMount", B, ALWAYS, CONTAINERS, security_find_proc_mount, "procMount",
     "%w must not set securityContext.procMount to %q", 10, EXEMPT_OWN_USERS},
    {"seLinuxOptions", B, ALWAYS, BOTH, security_find_selinux, "seLinuxOptions",
     "%w set forbidden securityContext.seLinuxOptions: %v", 9, .compose = security_compose_selinux},
    {"seccompProfile_baseline", B, 0, 18, BOTH, security_find_seccomp_annotations, "seccompProfile",
     "forbidden <annotation|annotations> %v", 0},
    {"seccompProfile_baseline", B, 19, NEWEST, BOTH, security_find_seccomp, "seccompProfile",
     "%w must not set securityContext.seccompProfile.type to %q", 11},
    {"sysctls", B, ALWAYS, POD, security_find_sysctls, "forbidden sysctls", "%v", 12,
     .flags = IN_ORDER},
    {"windowsHostProcess", B, ALWAYS, BOTH, security_find_host_process, "hostProcess",
     "%w must not set securityContext.windowsOptions.hostProcess=true", 1},
    {"mountPropagation", B, NEVER, NEVER, CONTAINERS, security_find_mount_propagation,
     "mount propagation", "%w must not set volumeMounts.mountPropagation to %q", 13},

    {"allowPrivilegeEscalation", R, 8, NEWEST, CONTAINERS, security_find_escalation,
     "allowPrivilegeEscalation != false",
     "%w must set securityContext.allowPrivilegeEscalation=false", 14, EXEMPT_WINDOWS},
    {"capabilities_restricted", R, 22, NEWEST, CONTAINERS, security_find_undropped,
     "unrestricted capabilities", "%w must set securityContext.capabilities.drop=[\"ALL\"]", 15,
     EXEMPT_WINDOWS, .instead_of = "capabilities_baseline"},
    {"capabilities_restricted", R, 22, NEWEST, CONTAINERS, security_find_added_capabilities,
     "unrestricted capabilities", "%w must not include %q in securityContext.capabilities.add", 16,
     EXEMPT_WINDOWS, .instead_of = "capabilities_baseline"},
    {"procMount_restricted", R, 35, NEWEST, CONTAINERS, security_find_proc_mount, "procMount",
     "%w must not set securityContext.procMount to %q", 0, .instead_of = "procMount"},
    {"restrictedVolumes", R, ALWAYS, POD, security_find_volumes, "restricted volume types",
     "%w {uses|use} <restricted volume type|restricted volume types> %q", 0,
     .instead_of = "hostPathVolumes", .noun = "volume"},
    {"runAsNonRoot", R, ALWAYS, BOTH, security_find_root_chosen, "runAsNonRoot != true",
     "%w must not set securityContext.runAsNonRoot=false", 0, EXEMPT_OWN_USERS},
    {"runAsNonRoot", R, ALWAYS, CONTAINERS, security_find_root_unsaid, "runAsNonRoot != true",
     "pod or %w must set securityContext.runAsNonRoot=true", 0, EXEMPT_OWN_USERS,
     .flags = OTHERWISE},
    {"runAsNonRoot", R, NEVER, NEVER, BOTH, security_find_root_allowed, "runAsNonRoot != true",
     "%w must set securityContext.runAsNonRoot=true", 17},
    {"runAsUser", R, 23, NEWEST, BOTH, security_find_user_0, "runAsUser=0",
     "%w must not set runAsUser=0", 18, EXEMPT_OWN_USERS},
    {"seccompProfile_restricted", R, 19, NEWEST, BOTH, security_find_seccomp, "seccompProfile",
     "%w must not set securityContext.seccompProfile.type to %q", 0, EXEMPT_WINDOWS,
     .instead_of = "seccompProfile_baseline"},
    {"seccompProfile_restricted", R, 19, NEWEST, CONTAINERS, security_find_seccomp_unsaid,
     "seccompProfile",
     "pod or %w must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
     "\"Localhost\"",
     0, EXEMPT_WINDOWS, .flags = OTHERWISE, .instead_of = "seccompProfile_baseline"},
    {"seccompProfile_restricted", R, NEVER, NEVER, CONTAINERS, security_find_seccomp_unconfined,
     "seccompProfile", "%w must set securityContext.seccompProfile.type to \"RuntimeDefault\"", 19},
};
#undef B
#undef R
#undef ALWAYS
enum { N_ROWS = COUNT(ROWS), N_FENCE = 19 };

/* ---- finding ---- */

static struct security_found scan(const struct security_pod *pod, const struct row *row)
{
    struct security_found f = {.pod = pod};

    if (row->scope & POD)
        f.in_pod = row->find(&f, pod->spec);
    for (size_t i = 0; row->scope & CONTAINERS && i < 3; i++) {
        json_each(container, json_get(pod->spec, POD_CONTAINER_LISTS[i]))
        {
            if (row->find(&f, container))
                security_add(&f, &f.names, json_str(json_get(container, "name")));
        }
    }
    return f;
}

static bool found_any(const struct security_found *f)
{
    return f->in_pod || f->names.n || f->values.n || f->annotations.n;
}

/* ---- words ---- */

/* What the words of a row stand for, written out. */
struct phrase {
    struct str who, values, quoted;
    bool many_names, many_values;
};

/* Adds the part of "one|many", up to the closing bracket, that fits; returns what follows it. */
static const char *say_number(struct buf *b, const char *words, bool many, char closing)
{
    const char *bar = strchr(words, '|'), *end = strchr(words, closing);

    assert(bar && end && bar < end);
    buf_add(b, many ? (struct str){bar + 1, (size_t)(end - bar) - 1}
                    : (struct str){words, (size_t)(bar - words)});
    return end + 1;
}

static void say(struct buf *b, const char *words, const struct phrase *p)
{
    while (*words) {
        size_t plain = strcspn(words, "%{<");

        buf_add(b, (struct str){words, plain});
        words += plain;
        if (*words == '{') {
            words = say_number(b, words + 1, p->many_names, '}');
        } else if (*words == '<') {
            words = say_number(b, words + 1, p->many_values, '>');
        } else if (*words == '%') {
            buf_add(b, words[1] == 'w' ? p->who : words[1] == 'q' ? p->quoted : p->values);
            words += 2;
        }
    }
}

static struct str join(struct arena *a, const struct security_list *list, const char *separator)
{
    struct buf b = BUF_INIT(0);
    struct str ret;

    for (size_t i = 0; i < list->n; i++)
        buf_printf(&b, "%s%.*s", i ? separator : "", STR_F(list->items[i]));
    ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return ret;
}

/* "a", "b": in quotes, nothing escaped. */
static struct str join_quoted(struct arena *a, const struct security_list *list)
{
    struct str inner = join(a, list, "\", \"");

    return list->n ? arena_printf(a, "\"%.*s\"", STR_F(inner)) : STR("");
}

/* `pod and containers "a", "b" and annotation` */
static struct str who(const struct security_found *f, const struct row *row)
{
    struct arena *a = f->pod->arena;
    struct str ret = f->in_pod ? STR("pod") : STR("");

    if (f->names.n)
        ret = arena_printf(a, "%.*s%s%s%s %.*s", STR_F(ret), ret.n ? " and " : "",
                           row->noun ? row->noun : "container", f->names.n == 1 ? "" : "s",
                           STR_F(join_quoted(a, &f->names)));
    if (f->annotations.n)
        ret = arena_printf(a, "%.*s%sannotation%s", STR_F(ret), ret.n ? " and " : "",
                           f->annotations.n == 1 ? "" : "s");
    return ret;
}

/* ---- a policy, as upstream judges it ---- */

static bool applies(const struct row *row, int64_t minor)
{
    return row->since <= minor && minor <= row->until;
}

/* Restricted rules that include a baseline rule stand for it. */
static bool is_replaced(const struct row *row, enum pod_security_level level, int64_t minor)
{
    if (level != POD_SECURITY_RESTRICTED)
        return false;
    for (size_t i = 0; i < N_ROWS; i++) {
        if (ROWS[i].instead_of && strcmp(ROWS[i].instead_of, row->id) == 0 &&
            applies(&ROWS[i], minor))
            return true;
    }
    return false;
}

static bool is_exempt(const struct row *row, const struct security_pod *pod)
{
    const cJSON *own_users = json_get(pod->spec, "hostUsers");

    switch (row->exempt) {
    case EXEMPT_WINDOWS:
        return pod->minor >= 25 && str_eqc(json_str_at(pod->spec, "os.name"), "windows");
    case EXEMPT_OWN_USERS: /* root of the pod is not root of the node */
        return pod->minor >= 35 && json_is_bool(own_users) && !json_true(own_users);
    case EXEMPT_NONE:
        break;
    }
    return false;
}

/* The findings of a row, in words; empty when there are none. */
static struct phrase judge_row(const struct security_pod *pod, const struct row *row, bool *ret_bad)
{
    struct security_found f = scan(pod, row);
    struct arena *a = pod->arena;

    *ret_bad = found_any(&f);
    if (!*ret_bad)
        return (struct phrase){0};
    if (row->flags & SORTED_NAMES)
        security_unite(&f.names);
    if (!(row->flags & IN_ORDER))
        security_unite(&f.values);
    if (row->compose)
        row->compose(&f);
    return (struct phrase){.who = who(&f, row),
                           .values = join(a, &f.values, ", "),
                           .quoted = join_quoted(a, &f.values),
                           .many_names = f.names.n != 1,
                           .many_values = f.values.n != 1};
}

struct pod_security_verdict pod_security_judge(struct arena *a,
                                               const struct pod_security_policy *policy,
                                               const cJSON *metadata, const cJSON *spec)
{
    struct security_pod pod = {.arena = a, .metadata = metadata, .spec = spec};
    struct buf reasons = BUF_INIT(0), details = BUF_INIT(0);
    const char *open = ""; /* the rule whose details are being written */

    pod.minor = policy->latest || policy->minor > NEWEST ? NEWEST : policy->minor;
    for (size_t i = 0; i < N_ROWS; i++) {
        const struct row *row = &ROWS[i];
        bool same = strcmp(open, row->id) == 0, bad;
        struct phrase p;

        if (row->level > policy->level || !applies(row, pod.minor) || is_exempt(row, &pod) ||
            is_replaced(row, policy->level, pod.minor) || (same && row->flags & OTHERWISE))
            continue;
        p = judge_row(&pod, row, &bad);
        if (!bad)
            continue;
        if (!same) {
            buf_addc(&reasons, reasons.n ? ", " : "");
            say(&reasons, row->reason, &p);
            buf_addc(&details, details.n ? "), " : "");
            say(&details, row->reason, &p);
        }
        buf_addc(&details, same ? "; " : " (");
        say(&details, row->words, &p);
        open = row->id;
    }
    buf_addc(&details, details.n ? ")" : "");

    struct pod_security_verdict verdict = {.allowed = !details.n,
                                           .reasons = arena_str(a, buf_str(&reasons)),
                                           .details = arena_str(a, buf_str(&details))};

    buf_fini(&reasons);
    buf_fini(&details);
    return verdict;
}

/* ---- the fence ---- */

/* Each once, in the order found, at most FENCE_NAMED. */
static void say_each(struct buf *b, const struct security_list *list, bool quoted)
{
    struct str said[FENCE_NAMED];
    size_t n = 0;

    for (size_t i = 0; i < list->n && n < FENCE_NAMED; i++) {
        struct str_list before = {said, n};

        if (str_list_has(before, list->items[i]))
            continue;
        buf_addc(b, n ? ", " : "");
        if (quoted)
            buf_json_string(b, list->items[i]);
        else
            buf_add(b, list->items[i]);
        said[n++] = list->items[i];
    }
}

static void say_fence_who(struct buf *b, const struct security_found *f)
{
    buf_addc(b, f->in_pod ? "pod" : "");
    if (f->names.n)
        buf_addc(b, f->in_pod ? " and container " : "container ");
    for (size_t i = 0; i < f->names.n && i < FENCE_NAMED; i++) {
        buf_addc(b, i ? ", " : "");
        buf_json_string(b, f->names.items[i]);
    }
}

static void fence_row(const struct security_pod *pod, const struct row *row, struct buf *text)
{
    struct buf name = BUF_INIT(4096), values = BUF_INIT(0), quoted = BUF_INIT(0);
    struct security_found f = scan(pod, row);
    struct phrase p;

    if (!found_any(&f))
        return;
    say_fence_who(&name, &f);
    say_each(&values, &f.values, false);
    say_each(&quoted, &f.values, true);
    p = (struct phrase){
        .who = buf_str(&name), .values = buf_str(&values), .quoted = buf_str(&quoted)};
    buf_addc(text, text->n ? ", " : "");
    say(text, row->reason, &p);
    buf_addc(text, " (");
    say(text, row->words, &p);
    buf_addc(text, ")");
    buf_fini(&name);
    buf_fini(&values);
    buf_fini(&quoted);
}

bool pod_security_fence(struct arena *a, enum pod_security_level level, const cJSON *spec,
                        struct str *ret_violations)
{
    struct security_pod pod = {.arena = a, .spec = spec, .minor = NEWEST, .fence = true};
    struct buf text = BUF_INIT(16 * 1024);
    bool admitted;

    for (int place = 1; place <= N_FENCE; place++) {
        for (size_t i = 0; i < N_ROWS; i++) {
            if (ROWS[i].fence == place && ROWS[i].level <= level)
                fence_row(&pod, &ROWS[i], &text);
        }
    }
    admitted = !text.n && !text.failed;
    *ret_violations = arena_str(a, buf_str(&text));
    buf_fini(&text);
    return admitted;
}
