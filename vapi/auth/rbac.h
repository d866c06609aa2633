/* SPDX-License-Identifier: Apache-2.0 */
/* Roles and bindings as rules, compiled from the store on the first use after a change. Internal to
 * vapi/auth. Must never answer from rules older than the last committed change. */
#pragma once

#include <sublet/vapi.h>

struct rbac;

struct rule {
    struct str_list verbs, groups, resources, names, urls;
};

/* The origin of a rule, for reasons: the binding, its role and the subject that matched. */
struct rule_origin {
    const char *binding_kind, *role_kind, *subject_kind;
    struct str binding, role, subject, ns;
    struct str subject_ns; /* of a service account */
};

struct rbac *rbac_new(struct vapi *api);
struct rbac *rbac_free(struct rbac *r);
/* Every rule that applies to u in ns (empty: cluster-wide rules only) until each() returns false; a
 * NULL rule for each binding whose role does not exist. */
typedef bool (*rule_cb)(void *ctx, const struct rule *rule, const struct rule_origin *origin);
void rbac_each(struct rbac *r, const struct user *u, struct str ns, rule_cb each, void *ctx);
/* Those roles, in the message of an authorizer that could not read them; at most this many. */
#define MISSING_MOST 16
struct missing_roles {
    struct str texts[MISSING_MOST];
    size_t n;
};
void rbac_missing_add(struct missing_roles *m, struct arena *a, const struct rule_origin *o);
struct str rbac_missing_message(const struct missing_roles *m, struct arena *a); /* "" for none */
bool rbac_rule_allows(const struct rule *rule, const struct attributes *what);
/* The rules of a tree (Role, ClusterRole), and of a role by reference; n = 0 when it does not
 * exist. */
const struct rule *rbac_rules_read(struct arena *a, const cJSON *role, size_t *ret_n);
const struct rule *rbac_role_rules(struct rbac *r, struct arena *a, struct str ns, struct str kind,
                                   struct str name, size_t *ret_n);
/* True when one of the rules allows it. */
bool rbac_rules_allow(const struct rule *rules, size_t n, const struct attributes *what);
/* True when `held` together cover every permission of `wanted`. */
bool rbac_rules_cover(const struct rule *held, size_t n_held, const struct rule *wanted);
/* Limit of the single permissions to check, as the lists multiply; beyond it, nothing is covered: a
 * client's lists must not block the loop. */
#define RULES_MAX_PERMISSIONS ((size_t)4000000)
size_t rbac_rules_permissions(size_t n_held, const struct rule *wanted);
