/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the checks of the Pod Security Standards, and the checks themselves. Internal to the
 * pod_security_*.c files. */
#pragma once

#include "pod_security.h"

/* One check of one pod. A check that returns false has set reason, and detail if it has any. */
struct check {
    struct arena *arena;
    const cJSON *metadata, *spec;
    const char *reason;
    struct str detail;
};

struct strings {
    struct arena *arena;
    struct str *items;
    size_t n, cap;
};

void security_strings_add(struct strings *t, struct str s);
void security_strings_unite(struct strings *t); /* makes it a set: sorted, without duplicates */
struct str security_join(const struct strings *t, const char *separator);
struct str security_join_quoted(const struct strings *t); /* "a", "b"; nothing is escaped */
const char *security_plural(size_t n, const char *one, const char *many);
/* `container "a"`; `containers "a", "b"` */
struct str security_named(const char *one, const char *many, const struct strings *t);

/* Violations: by the pod itself, by these containers, these values. */
struct found {
    struct arena *arena;
    void *ctx; /* the check's own */
    bool pod;
    struct strings containers, values;
};

struct found security_found(const struct check *k);
/* True when the container violates the check; may add to values. */
typedef bool (*visit_cb)(struct found *f, const cJSON *container);
/* Visits every container: init, regular, ephemeral. */
void security_visit(const struct check *k, struct found *f, visit_cb bad);
bool security_any(const struct found *f);
struct str security_bad_containers(const struct found *f);
struct str security_setters(const struct found *f); /* `pod and containers "a", "b"` */
/* Adds the items of list that are not in allowed to the values; true when there were any. */
bool security_others(struct found *f, const cJSON *list, const char *const *allowed);

bool security_refuse(struct check *k, const char *reason, struct str detail); /* false */
const cJSON *security_context(const cJSON *pod_or_container, const char *path);
bool security_is_false(const cJSON *node);
bool security_is_windows(const struct check *k);
bool security_own_users(const struct check *k); /* hostUsers: false */
bool security_listed(struct str s, const char *const *list);

/* pod_security_baseline.c: true when the pod passes; named as upstream's, with the first minor
 * version of this form where there are several. */
bool security_apparmor(struct check *k);
bool security_capabilities_baseline(struct check *k);
bool security_host_namespaces(struct check *k);
bool security_host_path_volumes(struct check *k);
bool security_host_ports(struct check *k);
bool security_host_handlers(struct check *k);
bool security_privileged(struct check *k);
bool security_proc_mount(struct check *k);
bool security_proc_mount_35(struct check *k);
bool security_selinux_0(struct check *k);
bool security_selinux_31(struct check *k);
bool security_seccomp_baseline_0(struct check *k);
bool security_seccomp_baseline_19(struct check *k);
bool security_sysctls_0(struct check *k);
bool security_sysctls_27(struct check *k);
bool security_sysctls_29(struct check *k);
bool security_sysctls_32(struct check *k);
bool security_host_process(struct check *k);

/* pod_security_restricted.c */
bool security_escalation(struct check *k);
bool security_escalation_25(struct check *k);
bool security_capabilities_restricted(struct check *k);
bool security_capabilities_restricted_25(struct check *k);
bool security_restricted_volumes(struct check *k);
bool security_non_root(struct check *k);
bool security_non_root_35(struct check *k);
bool security_not_user_0(struct check *k);
bool security_not_user_0_35(struct check *k);
bool security_seccomp_restricted(struct check *k);
bool security_seccomp_restricted_25(struct check *k);
