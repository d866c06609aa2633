/* SPDX-License-Identifier: Apache-2.0
 * room: kube (private)
 *
 * What the table of the Pod Security Standards needs of its finders. Must never be included outside
 * kube. */
#pragma once

#include <sublet/pod_security.h>

/* A pod under judgement. */
struct security_pod {
    struct arena *arena;
    const cJSON *metadata, *spec;
    int64_t minor; /* as of this version */
    bool fence;    /* judged by the administrator's fence, which is stricter */
};

struct security_list {
    struct str *items;
    size_t n, cap;
};

/* What one rule found: in the pod itself, by these names, with these values. */
struct security_found {
    const struct security_pod *pod;
    bool in_pod;
    struct security_list names; /* of containers, or of volumes */
    struct security_list values;
    struct security_list annotations; /* of AppArmor, from before there was a field */
    bool user, role;                  /* of SELinux */
};

void security_add(const struct security_found *f, struct security_list *list, struct str s);
void security_unite(struct security_list *list); /* makes a set of it: sorted, each once */

/* A finder is given the pod's spec or one container; true when that violates the rule. It may add
 * to the values. */
typedef bool security_find_cb(struct security_found *f, const cJSON *object);

security_find_cb security_find_apparmor;
security_find_cb security_find_capabilities; /* that are not Docker's default ones */
security_find_cb security_find_host_namespaces;
security_find_cb security_find_host_path;
security_find_cb security_find_host_ports;
security_find_cb security_find_handler_hosts;
security_find_cb security_find_privileged;
security_find_cb security_find_proc_mount;
security_find_cb security_find_selinux;
security_find_cb security_find_seccomp_annotations; /* before there was a field */
security_find_cb security_find_seccomp;
security_find_cb security_find_sysctls;
security_find_cb security_find_host_process;
security_find_cb security_find_mount_propagation;
security_find_cb security_find_escalation;
security_find_cb security_find_undropped;          /* keeps capabilities */
security_find_cb security_find_added_capabilities; /* beyond NET_BIND_SERVICE */
security_find_cb security_find_volumes;
security_find_cb security_find_root_chosen;  /* runAsNonRoot: false */
security_find_cb security_find_root_unsaid;  /* no runAsNonRoot, neither of the pod */
security_find_cb security_find_root_allowed; /* either of the two */
security_find_cb security_find_user_0;
security_find_cb security_find_seccomp_unsaid;
security_find_cb security_find_seccomp_unconfined; /* not RuntimeDefault, said or unsaid */

/* Adds the annotations behind the values. */
void security_compose_apparmor(struct security_found *f);
/* Values of SELinux as upstream lists them: `type "a"; user may not be set`. */
void security_compose_selinux(struct security_found *f);
