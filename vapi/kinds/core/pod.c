/* SPDX-License-Identifier: Apache-2.0 */
/* Pods: which functions make up the kind, and the row of a pod: one word for where it stands, as
 * users know it from kubectl. Source: printPod of pkg/printers/internalversion/printers.go. */
#include "../rules/kind.h"
#include "../pod/pod.h"

#include <sublet/clock.h>
#include <sublet/object.h>

/* Old kubelets would spoil the owners. */
static void pod_prepare_status(struct arena *a, cJSON *pod, const cJSON *old)
{
    defaults_keep_old(a, pod, old, "metadata.ownerReferences");
    /* Set for good when the pod was made; clients that build a status leave it out. */
    if (!json_str_at(pod, "status.qosClass").n)
        json_set_str(a, json_ensure_object(a, pod, "status"), "qosClass", kinds_pod_qos(old));
}

static void pod_warn_create(struct arena *a, const cJSON *pod, void (*warn)(void *, struct str),
                            void *ctx)
{
    const char *why = name_check_dns1123_label(json_str_at(pod, "metadata.name"));

    if (why)
        warn(ctx, arena_printf(a,
                               "metadata.name: this is used in the Pod's hostname, which can "
                               "result in surprising behavior; a DNS label is recommended: [%s]",
                               why));
    warn_pod_app_armor(a, pod, warn, ctx);
}

struct pod_state {
    const struct row *r;
    const cJSON *spec, *status;
    struct str reason;
    int64_t restarts, sidecar_restarts;
    int64_t last_us, sidecar_last_us; /* latest end of a container; 0 for none */
    size_t ready, total;
};

static bool any_condition(const cJSON *status, const char *type, const char *key, const char *text)
{
    json_each(c, json_get(status, "conditions"))
    {
        if (str_eqc(json_str(json_get(c, "type")), type) &&
            str_eqc(json_str(json_get(c, key)), text))
            return true;
    }
    return false;
}

/* ---- one container ---- */

static int64_t count_restarts(const cJSON *container, int64_t *last_us)
{
    struct str end = json_str_at(container, "lastState.terminated.finishedAt");
    int64_t us;

    if (time_parse(end, &us) && us > *last_us)
        *last_us = us;
    return json_i64_at(container, "restartCount", 0);
}

static struct str terminated_text(struct arena *a, const cJSON *terminated, const char *prefix)
{
    struct str reason = json_str(json_get(terminated, "reason"));
    int64_t signal = json_i64_at(terminated, "signal", 0);

    if (reason.n)
        return arena_printf(a, "%s%.*s", prefix, STR_F(reason));
    if (signal)
        return arena_printf(a, "%sSignal:%lld", prefix, (long long)signal);
    return arena_printf(a, "%sExitCode:%lld", prefix,
                        (long long)json_i64_at(terminated, "exitCode", 0));
}

/* ---- init containers ---- */

static bool is_sidecar(const cJSON *spec, struct str name)
{
    json_each(c, json_get(spec, "initContainers"))
    {
        if (str_eq(json_str(json_get(c, "name")), name))
            return container_is_sidecar(c);
    }
    return false;
}

/* Whether the pod still initialises. */
static bool init_containers(struct pod_state *p)
{
    const cJSON *specs = json_get(p->spec, "initContainers");
    size_t index = 0;

    json_each(c, json_get(p->status, "initContainerStatuses"))
    {
        bool sidecar = is_sidecar(p->spec, json_str(json_get(c, "name")));
        const cJSON *terminated = json_path(c, "state.terminated");
        struct str waiting = json_str_at(c, "state.waiting.reason");

        p->restarts += count_restarts(c, &p->last_us);
        if (sidecar)
            p->sidecar_restarts += count_restarts(c, &p->sidecar_last_us);
        if (terminated && !json_i64_at(terminated, "exitCode", 0)) {
            index++;
        } else if (sidecar && json_true(json_get(c, "started"))) {
            p->ready += json_true(json_get(c, "ready")); /* runs beside the others */
            index++;
        } else {
            if (terminated)
                p->reason = terminated_text(p->r->a, terminated, "Init:");
            else if (waiting.n && !str_eqc(waiting, "PodInitializing"))
                p->reason = arena_printf(p->r->a, "Init:%.*s", STR_F(waiting));
            else
                p->reason = arena_printf(p->r->a, "Init:%zu/%zu", index, json_count(specs));
            return true;
        }
    }
    return false;
}

/* ---- containers ---- */

/* From the last to the first: the first has the last word. */
static void containers(struct pod_state *p)
{
    const cJSON *list = json_get(p->status, "containerStatuses");
    struct str error = STR("");
    bool running = false;

    p->restarts = p->sidecar_restarts;
    p->last_us = p->sidecar_last_us;
    for (size_t i = json_count(list); i--;) {
        const cJSON *container = json_at(list, i);
        const cJSON *terminated = json_path(container, "state.terminated");
        struct str waiting = json_str_at(container, "state.waiting.reason");

        p->restarts += count_restarts(container, &p->last_us);
        if (waiting.n) {
            p->reason = waiting;
        } else if (terminated) {
            p->reason = terminated_text(p->r->a, terminated, "");
            if (json_i64_at(terminated, "exitCode", 0))
                error = p->reason;
        } else if (json_true(json_get(container, "ready")) &&
                   json_path(container, "state.running")) {
            running = true;
            p->ready++;
        }
    }
    if (!str_eqc(p->reason, "Completed"))
        return;
    if (running && any_condition(p->status, "Ready", "status", "True"))
        p->reason = STR("Running");
    else if (error.n)
        p->reason = error;
    else if (running)
        p->reason = STR("NotReady");
}

/* ---- the whole ---- */

static struct pod_state state_of(const struct row *r)
{
    const cJSON *spec = json_get(r->object, "spec"), *status = json_get(r->object, "status");
    struct str phase = json_str(json_get(status, "phase"));
    struct pod_state p = {.r = r, .spec = spec, .status = status};

    p.reason = json_str(json_get(status, "reason"));
    if (!p.reason.n)
        p.reason = phase;
    if (any_condition(status, "PodScheduled", "reason", "SchedulingGated"))
        p.reason = STR("SchedulingGated");
    p.total = json_count(json_get(spec, "containers"));
    json_each(c, json_get(spec, "initContainers")) p.total +=
        kinds_text_is(c, "restartPolicy", "Always");
    if (!init_containers(&p) || condition_is_true(json_get(status, "conditions"), "Initialized"))
        containers(&p);
    if (!object_is_terminating(r->object))
        return p;
    if (kinds_text_is(status, "reason", "NodeLost"))
        p.reason = STR("Unknown");
    else if (!str_eqc(phase, "Failed") && !str_eqc(phase, "Succeeded"))
        p.reason = STR("Terminating");
    return p;
}

CELL(cell_ready_containers)
{
    struct pod_state p = state_of(r);

    cell_printf(r, "%zu/%zu", p.ready, p.total);
}

CELL(cell_status)
{
    cell_text(r, state_of(r).reason);
}

CELL(cell_restarts)
{
    struct pod_state p = state_of(r);

    if (p.restarts && p.last_us)
        cell_printf(r, "%lld (%.*s ago)", (long long)p.restarts,
                    STR_F(duration_human(r->a, r->now - p.last_us / 1000000)));
    else
        cell_printf(r, "%lld", (long long)p.restarts);
}

CELL(cell_ip)
{
    cell_or(r, json_str_at(json_at(json_path(r->object, "status.podIPs"), 0), "ip"), "<none>");
}

CELL(cell_gates)
{
    const cJSON *gates = json_path(r->object, "spec.readinessGates");
    size_t open = 0;

    json_each(gate, gates)
    {
        struct str type = json_str(json_get(gate, "conditionType"));

        open += str_eqc(
            json_str_at(condition_find(json_path(r->object, "status.conditions"), type), "status"),
            "True");
    }
    if (json_count(gates))
        cell_printf(r, "%zu/%zu", open, json_count(gates));
    else
        cell_text(r, STR("<none>"));
}

/* ---- the kind ---- */

const struct kind KIND_POD = {
    RESOURCE("", "v1", "Pod", "pods", "pod"),
    .resource.short_names = NAMES("po"),
    .resource.categories = NAMES("all"),
    .resource.flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_GRACEFUL |
                      RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
    COLUMNS({"Ready", "string", .cell = cell_ready_containers},
            {"Status", "string", .cell = cell_status},
            {"Restarts", "string", .cell = cell_restarts}, {"Age", "string", .cell = show_age},
            {"IP", "string", .priority = 1, .cell = cell_ip},
            {"Node", "string", .priority = 1, .cell = show_text, .path = "spec.nodeName",
             .otherwise = "<none>"},
            {"Nominated Node", "string", .priority = 1, .cell = show_text,
             .path = "status.nominatedNodeName", .otherwise = "<none>"},
            {"Readiness Gates", "string", .priority = 1, .cell = cell_gates}),
    FIELDS({"spec.nodeName", "spec.nodeName", ""}, {"spec.restartPolicy", "spec.restartPolicy", ""},
           {"spec.schedulerName", "spec.schedulerName", ""},
           {"spec.serviceAccountName", "spec.serviceAccountName", ""},
           {"spec.hostNetwork", "spec.hostNetwork", "false"}, {"status.phase", "status.phase", ""},
           {"status.podIP", "status.podIP", ""}, {"status.podIPs", "status.podIPs", ""},
           {"status.nominatedNodeName", "status.nominatedNodeName", ""}),
    SUBRESOURCES(
        {"attach", SUB_PROXY, VERB_GET | VERB_CREATE, "", "", "PodAttachOptions", NULL},
        {"binding", SUB_BINDING, VERB_CREATE, "", "", "Binding", NULL},
        {"ephemeralcontainers", SUB_EPHEMERAL_CONTAINERS, VERB_GET | VERB_UPDATE | VERB_PATCH, "",
         "", "Pod", NULL},
        {"eviction", SUB_EVICTION, VERB_CREATE, "policy", "v1", "Eviction", NULL},
        {"exec", SUB_PROXY, VERB_GET | VERB_CREATE, "", "", "PodExecOptions", NULL},
        {"log", SUB_PROXY, VERB_GET, "", "", "Pod", NULL},
        {"portforward", SUB_PROXY, VERB_GET | VERB_CREATE, "", "", "PodPortForwardOptions", NULL},
        {"proxy", SUB_PROXY, VERB_GET | VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE, "",
         "", "PodProxyOptions", NULL},
        {"resize", SUB_RESIZE, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Pod", NULL},
        STATUS_OF("Pod", "metadata.deletionTimestamp", "metadata.ownerReferences", "spec")),
    .defaults = defaults_pod,
    .prepare_create = prepare_pod_create,
    .rules = RULES(RULES_POD),
    .status_rules = RULES(RULES_POD_STATUS),
    .prepare_status = pod_prepare_status,
    .warnings = warn_pod,
    .warnings_before_create = pod_warn_create,
};
