/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a pod, from the host to the tenant. Why: every client waits for status, so it is
 * copied whole where the host decides it, and version skew must not stop it. Must never show what
 * is not the tenant's: injected containers, device ids, host names. */

#include <string.h>

#include <sublet/json_build.h>
#include <sublet/object.h>
#include <sublet/translate_gang.h>

#include "shape.h"

cJSON *translate_pod_status_copy(struct arena *a, const char *const *keys, const cJSON *host,
                                 const cJSON *v)
{
    cJSON *ret = json_new_object(a);

    if (!json_is_object(host))
        return NULL;
    for (; *keys; keys++) {
        const cJSON *value = json_get(host, *keys);

        if (value && !json_is_null(value))
            object_add(a, ret, str_c(*keys), json_copy(a, value));
    }
    if (json_equal(ret, v) || (!v && !json_count(ret)))
        return NULL;
    return ret;
}

struct up {
    struct arena *arena;
    const struct translate_tenant *tenant;
    const cJSON *vpod, *host_pod;
    bool applied;
    const struct config_pool *pool;
    struct message_names names;
};

/* At most so many names that a pod refers to are replaced in messages. */
enum { KNOWN_NAMES_MAX = 64 };

struct known {
    struct message_name names[KNOWN_NAMES_MAX];
    size_t n;
    struct arena *arena;
};

static void on_ref(void *ctx, enum translate_ref_kind kind, struct str name, bool optional)
{
    struct known *known = ctx;

    (void)kind;
    (void)optional;
    if (known->n < KNOWN_NAMES_MAX)
        known->names[known->n++].name = arena_str(known->arena, name);
}

/* ---- messages ---- */

static void message_member_up(struct up *u, cJSON *object)
{
    struct str text = json_str(json_get(object, "message"));

    if (text.n)
        json_set_str(u->arena, object, "message",
                     translate_message_up(u->arena, u->tenant, text, &u->names));
}

/* ---- container statuses ---- */

static bool has_container(struct up *u, const char *list, struct str name)
{
    json_each(container, json_get(json_get(u->vpod, "spec"), list))
    {
        if (str_eq(json_str(json_get(container, "name")), name))
            return true;
    }
    return false;
}

/* The resource under the name the tenant wrote. */
static const char *resource_up(struct up *u, const char *host_name)
{
    for (size_t i = 0; u->pool && i < u->pool->n_resources; i++) {
        if (str_eqc(u->pool->resources[i].host_name, host_name))
            return arena_cstr(u->arena, u->pool->resources[i].name);
    }
    return host_name;
}

static void quantities_up(struct up *u, cJSON *map)
{
    if (!json_is_object(map))
        return;
    json_each(member, map)
    {
        if (name_has_domain(json_key(member)))
            member->string = arena_cstr(u->arena, str_c(resource_up(u, member->string)));
    }
}

static void resources_up(struct up *u, cJSON *holder)
{
    cJSON *resources = json_get(holder, "resources");

    quantities_up(u, json_get(holder, "allocatedResources"));
    quantities_up(u, json_get(resources, "limits"));
    quantities_up(u, json_get(resources, "requests"));
}

/* Then the message is the termination message of the program, or the end of its log. */
static bool has_ended_itself(const cJSON *terminated)
{
    struct str reason = json_str(json_get(terminated, "reason"));

    return str_eqc(reason, "Completed") || str_eqc(reason, "Error") || str_eqc(reason, "OOMKilled");
}

static cJSON *container_up(struct up *u, const cJSON *from)
{
    static const char *const states[] = {"state", "lastState"};
    static const char *const kinds[] = {"waiting", "terminated"};
    cJSON *ret = json_copy(u->arena, from);

    json_remove(ret, "allocatedResourcesStatus"); /* ids of devices */
    resources_up(u, ret);
    for (size_t i = 0; i < 4; i++) {
        cJSON *state = json_get(json_get(ret, states[i / 2]), kinds[i % 2]);

        u->names.program = i % 2 && has_ended_itself(state);
        message_member_up(u, state);
    }
    u->names.program = false;
    return ret;
}

static cJSON *containers_up(struct up *u, const cJSON *statuses, const char *list)
{
    cJSON *ret = json_new_array(u->arena);

    json_each(status, statuses)
    {
        if (json_is_object(status) && has_container(u, list, json_str(json_get(status, "name"))))
            json_append(ret, container_up(u, status));
    }
    return ret;
}

/* ---- conditions ---- */

static bool is_gate(struct up *u, struct str type)
{
    json_each(gate, json_path(u->vpod, "spec.readinessGates"))
    {
        if (str_eq(json_str(json_get(gate, "conditionType")), type))
            return true;
    }
    return false;
}

/* A condition that the virtual cluster owns: readiness gates, those of the tenant's controllers,
 * and the mark of an eviction that it began. */
static bool is_virtual(struct up *u, const cJSON *condition, const cJSON *host)
{
    struct str type = json_str(json_get(condition, "type"));

    if (is_gate(u, type))
        return true;
    if (str_eqc(type, "DisruptionTarget") || str_find(type, '/') < type.n)
        return !condition_find(host, type);
    return false;
}

/* The host counts the changes of its own pod. Its number is the virtual pod's present one once the
 * host pod has all changes and the number is the host pod's present one. */
static bool is_present_generation(const struct up *u, const cJSON *host_number)
{
    int64_t number;

    return u->applied && json_i64(host_number, &number) &&
           number >= json_i64_at(u->host_pod, "metadata.generation", 1);
}

static void observed_up(struct up *u, cJSON *condition, const cJSON *old)
{
    static const char key[] = "observedGeneration";
    const cJSON *present = json_path(u->vpod, "metadata.generation");
    const cJSON *before = json_get(condition_find(old, json_str_at(condition, "type")), key);

    if (!json_get(condition, key) || !present)
        return;
    if (is_present_generation(u, json_get(condition, key)))
        before = present;
    if (!before)
        before = json_path(u->vpod, "status.observedGeneration");
    json_set(u->arena, condition, key,
             before ? json_copy(u->arena, before) : json_new_i64(u->arena, 1));
}

static cJSON *conditions_up(struct up *u, const cJSON *host)
{
    const cJSON *old = json_path(u->vpod, "status.conditions");
    cJSON *ret = json_new_array(u->arena);

    json_each(condition, host)
    {
        struct str text;
        cJSON *copy;

        if (!json_is_object(condition) || is_gate(u, json_str(json_get(condition, "type"))))
            continue;
        copy = json_append(ret, json_copy(u->arena, condition));
        observed_up(u, copy, old);
        if (translate_queue_condition_up(u->arena, u->pool, condition, &text))
            json_set_str(u->arena, copy, "message", text);
        else
            message_member_up(u, copy);
    }
    json_each(condition, old)
    {
        if (is_virtual(u, condition, host))
            json_append(ret, json_copy(u->arena, condition));
    }
    return ret;
}

/* ---- the status ---- */

static cJSON *whole(struct up *u, const cJSON *value, const char *unused)
{
    (void)unused;
    return json_copy(u->arena, value);
}

static cJSON *conditions(struct up *u, const cJSON *value, const char *unused)
{
    (void)unused;
    return conditions_up(u, value);
}

static cJSON *message(struct up *u, const cJSON *value, const char *unused)
{
    (void)unused;
    return json_new_string(u->arena,
                           translate_message_up(u->arena, u->tenant, json_str(value), &u->names));
}

/* Where a node stands for a pool, the addresses of machines stay with the host. */
static cJSON *of_node(struct up *u, const cJSON *value, const char *unused)
{
    (void)unused;
    return u->tenant->config->nodes_per_pool ? NULL : json_copy(u->arena, value);
}

static const struct {
    const char *key;
    cJSON *(*make)(struct up *u, const cJSON *value, const char *list);
    const char *list;
} FIELDS[] = {
    {"phase", whole, NULL},
    {"conditions", conditions, NULL},
    {"message", message, NULL},
    {"reason", whole, NULL},
    {"hostIP", of_node, NULL},
    {"hostIPs", of_node, NULL},
    {"podIP", whole, NULL},
    {"podIPs", whole, NULL},
    {"startTime", whole, NULL},
    {"initContainerStatuses", containers_up, "initContainers"},
    {"containerStatuses", containers_up, "containers"},
    {"ephemeralContainerStatuses", containers_up, "ephemeralContainers"},
    {"resize", whole, NULL},
    {"allocatedResources", whole, NULL},
    {"resources", whole, NULL},
};

static const struct config_pool *pool_of(const struct translate_tenant *t, const cJSON *host_pod)
{
    struct str name = json_str(json_get(json_path(host_pod, "metadata.labels"), LABEL_POOL));

    for (size_t i = 0; i < t->config->n_pools; i++) {
        if (str_eq(t->config->pools[i].name, name))
            return &t->config->pools[i];
    }
    return NULL;
}

/* Kubelets before 1.33 report no generation: they have seen what the host pod has once it left
 * Pending. A number that is not the present one leaves what was observed before. */
static const cJSON *observed_generation(const struct up *u)
{
    const cJSON *number = json_path(u->host_pod, "status.observedGeneration");
    struct str phase = json_str_at(u->host_pod, "status.phase");
    bool legacy = !number && u->applied && phase.n && !str_eqc(phase, "Pending");

    return json_path(u->vpod, legacy || is_present_generation(u, number)
                                  ? "metadata.generation"
                                  : "status.observedGeneration");
}

static void add_own(struct up *u, cJSON *status)
{
    const cJSON *qos = json_path(u->vpod, "status.qosClass");
    const cJSON *generation = observed_generation(u);
    const cJSON *claims = json_path(u->vpod, "status.resourceClaimStatuses");

    if (qos)
        object_add(u->arena, status, STR("qosClass"), json_copy(u->arena, qos));
    if (generation)
        object_add(u->arena, status, STR("observedGeneration"), json_copy(u->arena, generation));
    if (claims)
        object_add(u->arena, status, STR("resourceClaimStatuses"), json_copy(u->arena, claims));
}

/* The scheduler of the host does not look at pods of a gang of Kubernetes itself before all of it
 * are there (PreEnqueue of its plugin GangScheduling), and has no condition for it. */
static void add_wait_for_gang(struct up *u, cJSON *status)
{
    const cJSON *have = json_path(u->host_pod, "status.conditions");
    cJSON *list, *condition;

    if (!translate_gang_of_host_pod(u->host_pod, SCHEDULER_NATIVE).n ||
        json_str_at(u->host_pod, "spec.nodeName").n || condition_find(have, STR("PodScheduled")) ||
        !str_eqc(json_str_at(u->host_pod, "status.phase"), "Pending"))
        return;
    list = json_get(status, "conditions");
    list = list ? list : json_set(u->arena, status, "conditions", json_new_array(u->arena));
    condition = json_append(
        list, json_object(u->arena, JSON("type", "PodScheduled"), JSON("status", "False"),
                          JSON("lastTransitionTime",
                               json_str_at(u->host_pod, "metadata.creationTimestamp")),
                          JSON("reason", "Unschedulable"),
                          JSON("message", "waiting for the other pods of its gang")));
    json_set(u->arena, condition, "lastProbeTime", json_new_null(u->arena));
}

cJSON *translate_pod_status_up(struct arena *a, const struct translate_tenant *t,
                               const cJSON *host_pod, const cJSON *vpod, bool applied)
{
    const cJSON *host = json_get(host_pod, "status");
    struct up u = {.arena = a,
                   .tenant = t,
                   .vpod = vpod,
                   .host_pod = host_pod,
                   .applied = applied,
                   .pool = pool_of(t, host_pod)};
    struct known *known = ARENA_NEW(a, struct known);
    cJSON *ret = json_new_object(a);

    if (!json_count(host))
        return NULL;
    known->arena = a;
    translate_pod_refs(vpod, on_ref, known);
    u.names = (struct message_names){json_str_at(host_pod, "metadata.name"),
                                     json_str_at(vpod, "metadata.namespace"),
                                     json_str_at(vpod, "metadata.name"),
                                     known->names,
                                     known->n,
                                     false};
    for (size_t i = 0; i < COUNT(FIELDS); i++) {
        const cJSON *value = json_get(host, FIELDS[i].key);
        cJSON *made =
            value && !json_is_null(value) ? FIELDS[i].make(&u, value, FIELDS[i].list) : NULL;

        if (made)
            object_add(a, ret, str_c(FIELDS[i].key), made);
    }
    add_wait_for_gang(&u, ret);
    resources_up(&u, ret);
    add_own(&u, ret);
    return json_equal(ret, json_get(vpod, "status")) ? NULL : ret;
}

/* ---- readiness gates, down ---- */

/* Types of Kubernetes' own begin with a capital and have no domain. */
bool translate_pod_condition_is_reserved(struct str type)
{
    return type.n && type.p[0] >= 'A' && type.p[0] <= 'Z' && str_find(type, '/') == type.n;
}

cJSON *translate_pod_gates_down(struct arena *a, const cJSON *host_pod, const cJSON *vpod)
{
    static const char *const keys[] = {
        "type", "status", "reason", "message", "lastTransitionTime", "lastProbeTime", NULL};
    const cJSON *have = json_path(host_pod, "status.conditions");
    struct up u = {.arena = a, .vpod = vpod};
    cJSON *list = NULL, *ret;

    json_each(condition, json_path(vpod, "status.conditions"))
    {
        const cJSON *other = condition_find(have, json_str(json_get(condition, "type")));
        cJSON *copy;

        if (!is_gate(&u, json_str(json_get(condition, "type"))) ||
            translate_pod_condition_is_reserved(json_str(json_get(condition, "type"))) ||
            str_eq(json_str(json_get(other, "status")), json_str(json_get(condition, "status"))))
            continue;
        copy = translate_pod_status_copy(a, keys, condition, NULL);
        if (!copy)
            continue;
        list = list ? list : json_new_array(a);
        json_append(list, copy);
    }
    if (!list)
        return NULL;
    ret = json_new_object(a);
    json_set(a, json_ensure_object(a, ret, "status"), "conditions", list);
    return ret;
}
