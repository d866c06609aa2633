/* SPDX-License-Identifier: Apache-2.0 */
/* What an update may change of a pod, and what a status update may not. Must never look at the
 * fields both forbid: they are compared whole. Source: ValidatePodUpdate and
 * ValidatePodStatusUpdate in pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <string.h>

static const struct field_path ANNOTATIONS = {
    .name = "annotations", .parent = &(const struct field_path){.name = "metadata"}};

#define MIRROR   "kubernetes.io/config.mirror"
#define APPARMOR "container.apparmor.security.beta.kubernetes.io/"
#define UPDATABLE                                                                                  \
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"      \
    "`spec.tolerations` (only additions to existing tolerations),"                                 \
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

/* ---- annotations ---- */

static void check_kept(struct field_errors *e, struct str key, const char *app_armor,
                       const char *mirror)
{
    if (str_has_prefix(key, STR(APPARMOR)))
        field_forbidden(e, FIELD_KEY(&ANNOTATIONS, key), app_armor);
    if (str_eqc(key, MIRROR))
        field_forbidden(e, FIELD_KEY(&ANNOTATIONS, key), mirror);
}

static void check_annotation_changes(const struct check *c)
{
    struct names current = {.arena = c->e->arena}, former = current;

    names_add_keys(&current, c->value);
    names_add_keys(&former, c->old);
    json_each(a, c->old)
    {
        struct str key = str_c(a->string);
        const cJSON *value = names_get(&current, key);

        if (!value || !str_eq(json_str(value), json_str(a)))
            check_kept(c->e, key, "may not remove or update AppArmor annotations",
                       "may not remove or update mirror pod annotation");
    }
    json_each(a, c->value)
    {
        if (!names_has(&former, str_c(a->string)))
            check_kept(c->e, str_c(a->string), "may not add AppArmor annotations",
                       "may not add mirror pod annotation");
    }
}

/* ---- the fields that may change ---- */

static bool check_list_kept(struct field_errors *e, const cJSON *spec, const cJSON *old,
                            const char *list)
{
    if (json_count(json_get(spec, list)) == json_count(json_get(old, list)))
        return true;
    field_forbidden(e, FIELD(&KINDS_SPEC, list), "pod updates may not add or remove containers");
    return false;
}

/* From none to some, or to less. */
static bool check_deadline(struct field_errors *e, const cJSON *spec, const cJSON *old)
{
    const struct field_path *p = FIELD(&KINDS_SPEC, "activeDeadlineSeconds");
    const cJSON *deadline = json_get(spec, "activeDeadlineSeconds");
    int64_t now, before;
    bool had = json_i64(json_get(old, "activeDeadlineSeconds"), &before);

    if (!json_i64(deadline, &now)) {
        if (had)
            field_invalid(e, p, NULL, "must not update from a positive integer to nil value");
        return true;
    }
    if (!check_range(e, p, deadline, 0, INT32_MAX))
        return false;
    if (!had || before >= now)
        return true;
    field_invalid(e, p, deadline, "must be less than or equal to previous value");
    return false;
}

static cJSON *without_seconds(struct arena *a, const cJSON *toleration)
{
    cJSON *copy = json_copy(a, toleration);

    json_remove(copy, "tolerationSeconds");
    return copy;
}

struct str kinds_toleration_key(struct arena *a, const cJSON *toleration)
{
    static const char *const parts[] = {"key", "operator", "value", "effect"};
    cJSON *key = json_new_array(a);

    for (size_t i = 0; i < COUNT(parts); i++)
        json_append(key, json_new_string(a, json_str(json_get(toleration, parts[i]))));
    return json_text(a, key);
}

static void check_tolerations(struct field_errors *e, const cJSON *now, const cJSON *before)
{
    struct names kept = {.arena = e->arena};

    json_each(t, now) names_add(&kept, kinds_toleration_key(e->arena, t), t);
    json_each(t, before)
    {
        const cJSON *same = names_get(&kept, kinds_toleration_key(e->arena, t));

        if (same && json_equal(without_seconds(e->arena, same), without_seconds(e->arena, t)))
            continue;
        field_forbidden(e, FIELD(&KINDS_SPEC, "tolerations"),
                        "existing toleration can not be modified except its tolerationSeconds");
        return;
    }
}

static void check_gates(struct field_errors *e, const cJSON *now, const cJSON *before)
{
    struct names former = {.arena = e->arena};

    names_add_members(&former, before, "name");
    field_each(gate, at, FIELD(&KINDS_SPEC, "schedulingGates"), now)
    {
        struct str name = json_str(json_get(gate, "name"));

        if (!names_has(&former, name))
            field_forbidden_printf(e, FIELD(at, "name"),
                                   "only deletion is allowed, but found new scheduling gate '%.*s'",
                                   STR_F(name));
    }
}

/* ---- a gated pod may still choose its node more narrowly ---- */

static void check_node_selector(struct field_errors *e, const cJSON *now, const cJSON *before)
{
    struct names current = {.arena = e->arena};

    names_add_keys(&current, now);
    json_each(label, before)
    {
        const cJSON *value = names_get(&current, str_c(label->string));

        if (value && str_eq(json_str(value), json_str(label)))
            continue;
        field_invalid(
            e, FIELD(&KINDS_SPEC, "nodeSelector"), now,
            "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
        return;
    }
}

#define WHEN_REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

/* Each previous list is the beginning of the one now. */
static bool extends(const cJSON *now, const cJSON *old, const char *list)
{
    const cJSON *a = json_first(json_get(now, list)), *b = json_first(json_get(old, list));

    for (; b; a = a->next, b = b->next) {
        if (!a || !json_equal(a, b))
            return false;
    }
    return true;
}

static void check_node_affinity(struct field_errors *e, const cJSON *now, const cJSON *before)
{
    const struct field_path *p = FIELD(FIELD(&KINDS_SPEC, "affinity"), "nodeAffinity");
    const struct field_path *required = FIELD(p, WHEN_REQUIRED);
    const struct field_path *terms = FIELD(required, "nodeSelectorTerms");
    const cJSON *a = json_path(now, WHEN_REQUIRED ".nodeSelectorTerms");
    const cJSON *b = json_path(before, WHEN_REQUIRED ".nodeSelectorTerms");
    const cJSON *term = json_first(a);

    if (!json_count(b))
        return;
    if (json_count(a) != json_count(b)) {
        field_invalid(e, terms, a,
                      "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
        return;
    }
    field_each(old, at, terms, b)
    {
        bool empty = !json_count(old) && json_count(term);

        if (empty || !extends(term, old, "matchExpressions") || !extends(term, old, "matchFields"))
            field_invalid(e, at, term, "only additions are allowed (no mutations or deletions)");
        term = term->next;
    }
}

/* Checks what a gated pod may change, and takes it back in `munged`. */
static void check_gated(struct field_errors *e, cJSON *munged, const cJSON *old)
{
    const cJSON *now = json_path(munged, "affinity.nodeAffinity");
    const cJSON *before = json_path(old, "affinity.nodeAffinity");
    cJSON *affinity;

    check_node_selector(e, json_get(munged, "nodeSelector"), json_get(old, "nodeSelector"));
    defaults_keep_old(e->arena, munged, old, "nodeSelector");
    if (kinds_same_value(now, before))
        return;
    check_node_affinity(e, now, before);
    affinity = json_ensure_object(e->arena, munged, "affinity");
    defaults_keep_old(e->arena, affinity, json_get(old, "affinity"), "nodeAffinity");
    if (!affinity->child && !json_get(old, "affinity"))
        json_remove(munged, "affinity");
}

/* ---- everything else is fixed ---- */

static void take_images(struct arena *a, cJSON *munged, const cJSON *old, const char *list)
{
    const cJSON *from = json_first(json_get(old, list));

    json_each(container, json_get(munged, list))
    {
        defaults_keep_old(a, container, from, "image");
        from = from->next;
    }
}

static void list_changes(struct buf *b, const cJSON *now, const cJSON *before)
{
    json_each(member, before)
    {
        if (!kinds_same_value(json_get(now, member->string), member))
            buf_printf(b, "\n- spec.%s", member->string);
    }
    json_each(member, now)
    {
        if (!json_get(before, member->string))
            buf_printf(b, "\n+ spec.%s", member->string);
    }
}

static void check_fixed(struct field_errors *e, const cJSON *spec, const cJSON *old)
{
    cJSON *munged = json_copy(e->arena, spec);
    struct buf b = BUF_INIT(8192);
    int64_t grace;

    take_images(e->arena, munged, old, "containers");
    take_images(e->arena, munged, old, "initContainers");
    defaults_keep_old(e->arena, munged, old, "activeDeadlineSeconds");
    defaults_keep_old(e->arena, munged, old, "schedulingGates");
    defaults_keep_old(e->arena, munged, old, "tolerations");
    if (json_i64(json_get(old, "terminationGracePeriodSeconds"), &grace) && grace < 0 &&
        json_i64_at(munged, "terminationGracePeriodSeconds", 0) == 1)
        defaults_keep_old(e->arena, munged, old, "terminationGracePeriodSeconds");
    if (json_count(json_get(old, "schedulingGates")))
        check_gated(e, munged, old);
    if (json_equal(munged, old))
        return;
    buf_addc(&b, "pod updates may not change fields other than " UPDATABLE);
    list_changes(&b, munged, old);
    field_forbidden(e, &KINDS_SPEC, arena_cstr(e->arena, buf_str(&b)));
    buf_fini(&b);
}

static void check_spec_update(const struct check *c)
{
    const cJSON *spec = c->value, *before = c->old;

    if (!check_list_kept(c->e, spec, before, "containers") ||
        !check_list_kept(c->e, spec, before, "initContainers") ||
        !check_deadline(c->e, spec, before))
        return;
    check_tolerations(c->e, json_get(spec, "tolerations"), json_get(before, "tolerations"));
    check_gates(c->e, json_get(spec, "schedulingGates"), json_get(before, "schedulingGates"));
    if (!json_equal(spec, before))
        check_fixed(c->e, spec, before);
}

static void check_pod(const struct check *c)
{
    validate_whole_pod(c->e, c->value);
}

static void check_gated_node(const struct check *c)
{
    if (json_str(c->value).n && json_count(json_path(c->object, "spec.schedulingGates")))
        field_forbidden(c->e, c->at, "cannot be set until all schedulingGates have been cleared");
}

const struct rule RULES_POD[3] = {
    CALL(NULL, check_pod),
    ON_CREATE(FORBIDDEN("spec.ephemeralContainers", "cannot be set on create"),
              CALL("spec.nodeName", check_gated_node)),
    ON_UPDATE(CALL("metadata.annotations", check_annotation_changes),
              CALL("spec", check_spec_update)),
};

/* ---- status ---- */

/* Upstream's type has no names of JSON for them. */
static cJSON *addresses_shown(struct arena *a, const cJSON *list)
{
    cJSON *shown = json_new_array(a);

    json_each(address, list) json_set_str(a, json_append(shown, json_new_object(a)), "IP",
                                          json_str(json_get(address, "ip")));
    return shown;
}

/* Two addresses are one of each family. */
static void check_dual_stack(struct field_errors *e, const struct field_path *p, const cJSON *list)
{
    bool found[2] = {false};
    size_t i = 0;

    json_each(address, list)
    {
        struct str ip = json_str(json_get(address, "ip"));

        if (!kinds_is_ip(e->arena, ip)) {
            field_internal(e, p,
                           problem_printf(e->arena,
                                          "failed to check for dual stack with error:invalid "
                                          "IP[%zu]: %.*s",
                                          i, STR_F(ip)));
            found[0] = false;
            break;
        }
        found[kinds_is_ipv6(ip)] = true;
        i++;
    }
    if (!found[0] || !found[1] || json_count(list) > 2)
        field_invalid(e, p, addresses_shown(e->arena, list),
                      "may specify no more than one IP for each IP family");
}

/* podIPs or hostIPs: what was accepted before stays so. */
static void check_addresses(const struct check *c)
{
    struct names known = {.arena = c->e->arena};

    names_add_members(&known, c->old, "ip");
    field_each(address, at, c->at, c->value)
    {
        struct str ip = json_str(json_get(address, "ip"));

        if (!names_has(&known, ip))
            check_ip(c->e, at, ip);
    }
    if (json_count(c->value) > 1)
        check_dual_stack(c->e, c->at, c->value);
}

static void check_host_address(const struct check *c)
{
    struct str ip = json_str(json_get(json_first(c->value), "ip"));

    if (json_count(c->value) && !str_eq(json_str_at(c->object, "status.hostIP"), ip))
        field_invalid_str(c->e, FIELD(FIELD_INDEX(c->at, 0), "ip"), ip,
                          "must be equal to `hostIP`");
}

static void check_condition_type(const struct check *c)
{
    if (!kinds_one_of(json_str(c->value), NAMES("PodScheduled", "Ready", "Initialized")))
        check_rule(c->e, FIELD(c->at->parent, "Type"), NAME_QUALIFIED, json_str(c->value));
}

static void check_nominated(const struct check *c)
{
    if (!json_str(c->value).n || kinds_same_value(c->value, c->old))
        return;
    check_rule(c->e, c->at, NAME_DNS1123_SUBDOMAIN, json_str(c->value));
    if (json_str_at(c->before, "spec.nodeName").n)
        field_forbidden(c->e, c->at, "may not be set on pods that are already bound to a node");
}

static void check_claim_statuses(const struct check *c)
{
    struct names known = {.arena = c->e->arena}, seen = known;

    names_add_members(&known, json_path(c->object, "spec.resourceClaims"), "name");
    field_each(status, at, c->at, c->value)
    {
        const cJSON *claim = kinds_given(status, "resourceClaimName");
        struct str name = json_str(json_get(status, "name"));

        if (!names_has(&known, name))
            field_invalid_str(c->e, FIELD(at, "name"), name,
                              "must match the name of an entry in `spec.resourceClaims`");
        if (!names_add(&seen, name, status))
            field_duplicate(c->e, FIELD(at, "name"), json_new_string(c->e->arena, name));
        if (claim)
            check_rule(c->e, FIELD(at, "resourceClaimName"), NAME_DNS1123_SUBDOMAIN,
                       json_str(claim));
    }
}

static const struct rule USER[] = {
    USER_ID("uid"),
    USER_ID("gid"),
    CHECK("supplementalGroups", check_user_ids),
};

/* The user of a container's first process, as its node reports it. */
static void check_user(const struct check *c)
{
    struct str os = json_str_at(c->object, "spec.os.name");

    if (c->value && str_eqc(os, "windows"))
        field_forbidden(c->e, c->at, "cannot be set for a windows pod");
    else if (c->value && (!os.n || str_eqc(os, "linux")))
        rules_check(c, USER, COUNT(USER));
}

#define NO_LESS_THAN_0 "must be a non-negative integer"

const struct rule RULES_POD_STATUS[11] = {
    CALL("metadata.annotations", check_annotation_changes),
    EACH("status.conditions", AT_LEAST("observedGeneration", 0, NO_LESS_THAN_0),
         CALL("type", check_condition_type)),
    CALL("status.nominatedNodeName", check_nominated),
    AT_LEAST("status.observedGeneration", 0, NO_LESS_THAN_0),
    WITHIN("status.qosClass", FIXED(NULL)),
    CALL("status.resourceClaimStatuses", check_claim_statuses),
    CALL("status.podIPs", check_addresses),
    INSIDE("status.hostIPs", CALL(NULL, check_host_address), CALL(NULL, check_addresses)),
    EACH("status.containerStatuses", CALL("user.linux", check_user)),
    EACH("status.initContainerStatuses", CALL("user.linux", check_user)),
    EACH("status.ephemeralContainerStatuses", CALL("user.linux", check_user)),
};
