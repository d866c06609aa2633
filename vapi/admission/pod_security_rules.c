/* SPDX-License-Identifier: Apache-2.0 */
/* The Pod Security Standards as one table: each check with its level and the first version of
 * Kubernetes that has it. A policy that names a version is evaluated as of that version, so a row
 * must never change: a changed check gets another row. Source: k8s.io/pod-security-admission
 * policy. */
#include "pod_security_helpers.h"

#include <assert.h>
#include <string.h>

#define MAX_FORMS 4
/* The last version in which anything changed; later ones are the same. */
#define NEWEST 35

struct form {
    unsigned since; /* minor version */
    bool (*passes)(struct check *k);
};

struct rule {
    const char *id;
    enum security_level level;
    const char *instead_of; /* the baseline check that this one includes */
    struct form forms[MAX_FORMS];
};

#define B SECURITY_BASELINE
#define R SECURITY_RESTRICTED
/* In the order of messages: by level, then by id. */
static const struct rule RULES[] = {
    {"appArmorProfile", B, NULL, {{0, security_apparmor}}},
    {"capabilities_baseline", B, NULL, {{0, security_capabilities_baseline}}},
    {"hostNamespaces", B, NULL, {{0, security_host_namespaces}}},
    {"hostPathVolumes", B, NULL, {{0, security_host_path_volumes}}},
    {"hostPorts", B, NULL, {{0, security_host_ports}}},
    {"hostProbesAndHostLifecycle", B, NULL, {{34, security_host_handlers}}},
    {"privileged", B, NULL, {{0, security_privileged}}},
    {"procMount", B, NULL, {{0, security_proc_mount}, {35, security_proc_mount_35}}},
    {"seLinuxOptions", B, NULL, {{0, security_selinux_0}, {31, security_selinux_31}}},
    {"seccompProfile_baseline",
     B,
     NULL,
     {{0, security_seccomp_baseline_0}, {19, security_seccomp_baseline_19}}},
    {"sysctls",
     B,
     NULL,
     {{0, security_sysctls_0},
      {27, security_sysctls_27},
      {29, security_sysctls_29},
      {32, security_sysctls_32}}},
    {"windowsHostProcess", B, NULL, {{0, security_host_process}}},
    {"allowPrivilegeEscalation", R, NULL, {{8, security_escalation}, {25, security_escalation_25}}},
    {"capabilities_restricted",
     R,
     "capabilities_baseline",
     {{22, security_capabilities_restricted}, {25, security_capabilities_restricted_25}}},
    {"procMount_restricted", R, "procMount", {{35, security_proc_mount}}},
    {"restrictedVolumes", R, "hostPathVolumes", {{0, security_restricted_volumes}}},
    {"runAsNonRoot", R, NULL, {{0, security_non_root}, {35, security_non_root_35}}},
    {"runAsUser", R, NULL, {{23, security_not_user_0}, {35, security_not_user_0_35}}},
    {"seccompProfile_restricted",
     R,
     "seccompProfile_baseline",
     {{19, security_seccomp_restricted}, {25, security_seccomp_restricted_25}}},
};
#undef B
#undef R
#define N_RULES (sizeof(RULES) / sizeof(*RULES))

static const struct form *form_at(const struct rule *r, int64_t minor)
{
    const struct form *form = NULL;

    for (size_t i = 0; i < MAX_FORMS && r->forms[i].passes; i++)
        if (r->forms[i].since <= minor)
            form = &r->forms[i];
    return form;
}

/* A restricted check that includes a baseline check replaces it. */
static bool replaced(const struct rule *baseline, const struct security_policy *p, int64_t minor)
{
    if (p->level != SECURITY_RESTRICTED)
        return false;
    for (size_t i = 0; i < N_RULES; i++)
        if (RULES[i].instead_of && !strcmp(RULES[i].instead_of, baseline->id) &&
            form_at(&RULES[i], minor))
            return true;
    return false;
}

static void tell(const struct check *k, struct buf *reasons, struct buf *details)
{
    const char *separator = reasons->n ? ", " : "";

    buf_printf(reasons, "%s%s", separator, k->reason);
    buf_printf(details, "%s%s", separator, k->reason);
    if (k->detail.n)
        buf_printf(details, " (%.*s)", STR_F(k->detail));
}

struct security_verdict pod_security_judge(struct arena *a, const struct security_policy *policy,
                                           const cJSON *metadata, const cJSON *spec)
{
    int64_t minor = policy->latest || policy->minor > NEWEST ? NEWEST : policy->minor;
    struct buf reasons = BUF_INIT(0), details = BUF_INIT(0);
    struct security_verdict verdict = {.allowed = true};

    for (size_t i = 0; i < N_RULES; i++) {
        struct check k = {.arena = a, .metadata = metadata, .spec = spec};
        const struct form *form = form_at(&RULES[i], minor);

        if (RULES[i].level > policy->level || !form || replaced(&RULES[i], policy, minor) ||
            form->passes(&k))
            continue;
        assert(k.reason);
        verdict.allowed = false;
        tell(&k, &reasons, &details);
    }
    if (!verdict.allowed) {
        verdict.reasons = arena_str(a, buf_str(&reasons));
        verdict.details = arena_str(a, buf_str(&details));
    }
    buf_fini(&reasons);
    buf_fini(&details);
    return verdict;
}
