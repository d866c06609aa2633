/* SPDX-License-Identifier: Apache-2.0 */
/* The life of simulated containers. Those of pods that restart run for ever; those of pods that may
 * end do so after a second; hints change both. Must stay pure: the pod's stored status and the
 * clock decide, in whole seconds, since that is what a status can hold.
 *
 *   (none) -> running -> terminated (stays, or) -> waiting CrashLoopBackOff -> running ...
 *
 * Source: k8s.io/kubernetes pkg/kubelet/kubelet_pods.go, status/generate.go. */
#include "pod_status.h"

#include <sublet/json_build.h>
#include <sublet/object.h>
#define RUN_SECONDS     1 /* of a pod that may end */
#define BACKOFF_SECONDS 10
#define BACKOFF_MAX     300
#define EXIT_TERMINATED 143 /* ended by SIGTERM */
#define DEADLINE_WORDS  "Pod was active on the node longer than the specified deadline"

/* How a container of this pod lives. */
struct life {
    struct arena *arena;
    const struct pod_view *view;
    int64_t default_seconds; /* FOREVER: it does not end */
    bool restart_always, restart_failed;
    bool held; /* must not start yet */
    const char *held_reason;
    int64_t due;
};

/* --- hints --- */

static struct str env_of(const cJSON *container, const char *name)
{
    json_each(e, json_get(container, "env"))
    {
        if (str_eqc(json_str_at(e, "name"), name))
            return json_str_at(e, "value");
    }
    return STR_NULL;
}

static bool seconds_of(struct str text, int64_t *ret)
{
    int64_t ns;

    if (!text.n || !duration_parse(text, &ns) || ns < 0)
        return false;
    *ret = ns / 1000000000 + (ns % 1000000000 != 0);
    return true;
}

static int64_t run_seconds(const struct life *l, const cJSON *container)
{
    int64_t seconds = l->default_seconds;

    if (!seconds_of(env_of(container, ENV_DURATION), &seconds))
        seconds_of(meta_annotation(l->view->pod, HINT_DURATION), &seconds);
    return seconds;
}

static int64_t exit_code(const struct life *l, const cJSON *container)
{
    int64_t code = 0;

    if (!str_to_i64(env_of(container, ENV_EXIT_CODE), &code))
        str_to_i64(meta_annotation(l->view->pod, HINT_EXIT_CODE), &code);
    return code < 0 || code > 255 ? 1 : code;
}

int64_t embedded_pod_stop_seconds(const cJSON *pod)
{
    int64_t seconds = 0, grace = json_i64_at(pod, "metadata.deletionGracePeriodSeconds", 0);

    seconds_of(meta_annotation(pod, HINT_STOP), &seconds);
    return seconds < grace ? seconds : grace;
}

/* --- one container --- */

static const cJSON *find_status(const cJSON *list, struct str name)
{
    json_each(s, list)
    {
        if (str_eq(json_str_at(s, "name"), name))
            return s;
    }
    return NULL;
}

static cJSON *status_of(struct life *l, const cJSON *container, const cJSON *old)
{
    struct arena *a = l->arena;
    const cJSON *last = json_get(old, "lastState"), *resources = json_get(container, "resources");

    if (!json_count(resources))
        resources = NULL;
    return json_object(
        a, JSON("name", json_str_at(container, "name")), JSON("state", json_new_object(a)),
        JSON("lastState", last ? json_copy(a, last) : json_new_object(a)),
        JSON_BOOL("ready", false), JSON_I64("restartCount", json_i64_at(old, "restartCount", 0)),
        JSON("image", json_str_at(container, "image")), JSON("imageID", ""),
        JSON_BOOL("started", false),
        JSON("allocatedResources", json_copy(a, json_get(resources, "requests"))),
        JSON("resources", json_copy(a, resources)));
}

static void set_ran(struct life *l, cJSON *s, const cJSON *container)
{
    struct arena *a = l->arena;
    struct str id = arena_printf(a, "simulated://%.*s/%.*s/%lld", STR_F(meta_uid(l->view->pod)),
                                 STR_F(json_str_at(container, "name")),
                                 (long long)json_i64_at(s, "restartCount", 0));

    struct str image = arena_printf(a, "simulated://%.*s", STR_F(json_str_at(container, "image")));

    json_put(a, s, JSON("imageID", image), JSON("containerID", id));
}

static cJSON *set_waiting(struct life *l, cJSON *s, const char *reason, struct str message)
{
    json_put(l->arena, json_ensure_path(l->arena, s, "state.waiting"), JSON("reason", reason),
             JSON_NONEMPTY("message", message));
    return s;
}

static cJSON *set_running(struct life *l, cJSON *s, const cJSON *container, int64_t since)
{
    json_set_str(l->arena, json_ensure_path(l->arena, s, "state.running"), "startedAt",
                 time_format_s(l->arena, since));
    json_put(l->arena, s, JSON_BOOL("ready", true), JSON_BOOL("started", true));
    set_ran(l, s, container);
    return s;
}

static cJSON *set_terminated(struct life *l, cJSON *s, const cJSON *container, int64_t since,
                             int64_t until, int64_t code)
{
    struct arena *a = l->arena;

    set_ran(l, s, container);
    json_put(a, json_ensure_path(a, s, "state.terminated"), JSON_I64("exitCode", code),
             JSON("reason", code ? "Error" : "Completed"),
             JSON("startedAt", time_format_s(a, since)),
             JSON("finishedAt", time_format_s(a, until)),
             JSON("containerID", json_str_at(s, "containerID")));
    return s;
}

static void note_due(struct life *l, int64_t at)
{
    l->due = at < l->due ? at : l->due;
}

static bool restarts(const struct life *l, const cJSON *terminated)
{
    return l->restart_always || (l->restart_failed && json_i64_at(terminated, "exitCode", 0) != 0);
}

static int64_t backoff(int64_t restarts_so_far)
{
    int64_t seconds = BACKOFF_SECONDS;

    while (restarts_so_far-- > 0 && seconds < BACKOFF_MAX)
        seconds *= 2;
    return seconds < BACKOFF_MAX ? seconds : BACKOFF_MAX;
}

static cJSON *crash_loop(struct life *l, const cJSON *container, const cJSON *old,
                         const cJSON *terminated)
{
    int64_t count = json_i64_at(old, "restartCount", 0), wait = backoff(count);
    int64_t at = object_time_s(terminated, "finishedAt") + wait;
    cJSON *s = status_of(l, container, old);

    if (at <= l->view->now_s) {
        json_set_i64(l->arena, s, "restartCount", count + 1);
        return set_running(l, s, container, l->view->now_s);
    }
    json_set(l->arena, json_get(s, "lastState"), "terminated", json_copy(l->arena, terminated));
    set_ran(l, s, container);
    note_due(l, at);
    return set_waiting(l, s, "CrashLoopBackOff",
                       arena_printf(l->arena, "back-off %llds restarting failed container=%.*s",
                                    (long long)wait, STR_F(json_str_at(container, "name"))));
}

static cJSON *go_on_running(struct life *l, const cJSON *container, const cJSON *old, int64_t since)
{
    int64_t seconds = run_seconds(l, container);
    cJSON *s = status_of(l, container, old), *ended;

    if (seconds == FOREVER || seconds > l->view->now_s - since) {
        if (seconds != FOREVER)
            note_due(l, since + seconds);
        return set_running(l, s, container, since);
    }
    ended = set_terminated(l, s, container, since, since + seconds, exit_code(l, container));
    const cJSON *t = json_path(ended, "state.terminated");
    return restarts(l, t) ? crash_loop(l, container, old, t) : ended;
}

/* The container's status now; old: as stored, or NULL. */
static cJSON *container_next(struct life *l, const cJSON *container, const cJSON *old)
{
    const cJSON *running = json_path(old, "state.running");
    const cJSON *terminated = json_path(old, "state.terminated");
    const cJSON *last = json_path(old, "lastState.terminated");

    if (running)
        return go_on_running(l, container, old, object_time_s(running, "startedAt"));
    if (terminated)
        return restarts(l, terminated) ? crash_loop(l, container, old, terminated)
                                       : json_copy(l->arena, old);
    if (last)
        return crash_loop(l, container, old, last);
    if (l->held)
        return set_waiting(l, status_of(l, container, old), l->held_reason,
                           str_eqc(str_c(l->held_reason), "PodInitializing")
                               ? STR_NULL
                               : l->view->blockage.message);
    return go_on_running(l, container, old, l->view->now_s);
}

/* --- init containers: one after the other; sidecars stay --- */

enum init_state { INIT_DONE, INIT_UNDER_WAY, INIT_FAILED };

static enum init_state init_containers(struct life *l, const cJSON *old, cJSON *status)
{
    struct life one = *l;
    enum init_state state = l->held ? INIT_UNDER_WAY : INIT_DONE;
    const cJSON *list = json_path(l->view->pod, "spec.initContainers");
    cJSON *out;

    if (!json_count(list))
        return INIT_DONE;
    out = json_set(l->arena, status, "initContainerStatuses", json_new_array(l->arena));
    json_each(c, list)
    {
        bool sidecar = container_is_sidecar(c);

        one.held |= state != INIT_DONE;
        one.held_reason = state == INIT_DONE || l->held ? l->held_reason : "PodInitializing";
        one.default_seconds = sidecar ? FOREVER : 0;
        one.restart_always = sidecar;
        one.restart_failed = l->restart_always || l->restart_failed;
        cJSON *s =
            json_append(out, container_next(&one, c,
                                            find_status(json_get(old, "initContainerStatuses"),
                                                        json_str_at(c, "name"))));
        const cJSON *t = json_path(s, "state.terminated");
        if (t && !sidecar && !json_i64_at(t, "exitCode", 0))
            json_set_bool(l->arena, s, "ready", true);
        else if (t && !sidecar)
            state = INIT_FAILED;
        else if (!sidecar || !json_path(s, "state.running"))
            state = state == INIT_FAILED ? state : INIT_UNDER_WAY;
    }
    l->due = one.due < l->due ? one.due : l->due;
    return state;
}

/* --- the whole pod --- */

static void set_condition(struct arena *a, cJSON *object, const char *type, bool yes,
                          const char *reason, struct str message, const struct pod_view *v)
{
    int64_t generation = json_i64_at(v->pod, "metadata.generation", 0);
    cJSON *c;

    condition_set(a, object, type, yes ? "True" : "False", reason, message, v->now_s);
    c = condition_get(json_path(object, "status.conditions"), type);
    if (!*reason)
        json_remove(c, "reason");
    if (!message.n)
        json_remove(c, "message");
    if (generation)
        json_set_i64(a, c, "observedGeneration", generation);
}

static struct str unready_names(struct arena *a, const cJSON *list)
{
    struct buf b = BUF_INIT(0);

    json_each(s, list)
    {
        if (json_true(json_get(s, "ready")))
            continue;
        buf_addc(&b, b.n ? " " : "");
        buf_add(&b, json_str_at(s, "name"));
    }
    struct str text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

static bool gates_open(const cJSON *pod)
{
    const cJSON *conditions = json_path(pod, "status.conditions");

    json_each(g, json_path(pod, "spec.readinessGates"))
    {
        const char *type = json_is_string(json_get(g, "conditionType"))
                               ? json_get(g, "conditionType")->valuestring
                               : "";

        if (!condition_is_true(conditions, type))
            return false;
    }
    return true;
}

static void set_conditions(struct arena *a, const struct pod_view *v, cJSON *object,
                           bool initialized)
{
    const cJSON *status = json_get(object, "status");
    struct str phase = json_str_at(status, "phase");
    struct str unready = unready_names(a, json_get(status, "containerStatuses"));
    struct str uninit = unready_names(a, json_get(status, "initContainerStatuses"));
    bool over = pod_phase_is_final(phase);
    const char *why = str_eqc(phase, "Succeeded") ? "PodCompleted"
                      : over                      ? "PodFailed"
                                                  : "ContainersNotReady";
    struct str words =
        over || !unready.n
            ? STR_NULL
            : arena_printf(a, "containers with unready status: [%.*s]", STR_F(unready));
    bool ready = !over && !unready.n && initialized;
    bool gates = gates_open(v->pod);

    set_condition(a, object, "PodReadyToStartContainers", v->pod_ip.n && !over, "", STR_NULL, v);
    set_condition(a, object, "Initialized", initialized,
                  !initialized                  ? "ContainersNotInitialized"
                  : str_eqc(phase, "Succeeded") ? "PodCompleted"
                                                : "",
                  initialized
                      ? STR_NULL
                      : arena_printf(a, "containers with incomplete status: [%.*s]", STR_F(uninit)),
                  v);
    set_condition(a, object, "Ready", ready && gates,
                  !ready  ? why
                  : gates ? ""
                          : "ReadinessGatesNotReady",
                  !ready  ? words
                  : gates ? STR_NULL
                          : STR("the status of pod readiness gates is not \"True\""),
                  v);
    set_condition(a, object, "ContainersReady", ready, ready ? "" : why, ready ? STR_NULL : words,
                  v);
    set_condition(a, object, "PodScheduled", true, "", STR_NULL, v);
}

/* Ended only when all containers ended for good. */
static const char *phase_of(const struct life *l, const cJSON *statuses, enum init_state init)
{
    bool failed = false, started = false, lives = false;

    if (init == INIT_FAILED)
        return "Failed";
    json_each(s, statuses)
    {
        const cJSON *t = json_path(s, "state.terminated");

        started |= !json_path(s, "state.waiting") || json_path(s, "lastState.terminated");
        lives |= !t || restarts(l, t);
        failed |= json_i64_at(t, "exitCode", 0) != 0;
    }
    if (init == INIT_UNDER_WAY || !started)
        return "Pending";
    return lives ? "Running" : failed ? "Failed" : "Succeeded";
}

static void set_addresses(struct arena *a, const struct pod_view *v, cJSON *status)
{
    static const char *const keys[][2] = {{"hostIP", "hostIPs"}, {"podIP", "podIPs"}};
    const struct str ips[] = {v->host_ip, v->pod_ip};

    for (size_t i = 0; i < 2; i++) {
        if (!ips[i].n || json_str_at(status, keys[i][0]).n)
            continue;
        json_set_str(a, status, keys[i][0], ips[i]);
        json_set(a, status, keys[i][1], json_array(a, json_object(a, JSON("ip", ips[i]))));
    }
}

static cJSON *new_status(struct arena *a, const struct pod_view *v)
{
    const cJSON *old = json_get(v->pod, "status");
    cJSON *status = json_is_object(old) ? json_copy(a, old) : json_new_object(a);
    int64_t generation = json_i64_at(v->pod, "metadata.generation", 0);

    if (!json_str_at(status, "startTime").n)
        json_set_str(a, status, "startTime", time_format_s(a, v->now_s));
    if (generation)
        json_set_i64(a, status, "observedGeneration", generation);
    json_remove(status, "nominatedNodeName");
    set_addresses(a, v, status);
    return status;
}

static void set_life(struct life *l, struct arena *a, const struct pod_view *v)
{
    struct str policy = json_str_at(v->pod, "spec.restartPolicy");
    bool always = !policy.n || str_eqc(policy, "Always");

    *l = (struct life){
        .arena = a,
        .view = v,
        .default_seconds = always ? FOREVER : RUN_SECONDS,
        .restart_always = always,
        .restart_failed = str_eqc(policy, "OnFailure"),
        .held = v->blockage.reason != NULL,
        .held_reason = v->blockage.reason,
        .due = FOREVER,
    };
}

static void add_ephemeral(struct life *l, const cJSON *old, cJSON *status)
{
    const cJSON *list = json_path(l->view->pod, "spec.ephemeralContainers");
    struct life one = *l;
    cJSON *out;

    if (!json_count(list))
        return;
    one.default_seconds = FOREVER;
    out = json_set(l->arena, status, "ephemeralContainerStatuses", json_new_array(l->arena));
    json_each(c, list)
        json_append(out, container_next(&one, c,
                                        find_status(json_get(old, "ephemeralContainerStatuses"),
                                                    json_str_at(c, "name"))));
}

/* Past its deadline the pod is over, whatever its containers do. */
static bool past_deadline(struct life *l, const cJSON *status)
{
    int64_t deadline = json_i64_at(l->view->pod, "spec.activeDeadlineSeconds", 0);
    int64_t at = object_time_s(status, "startTime") + deadline;

    if (!deadline)
        return false;
    if (at > l->view->now_s)
        note_due(l, at);
    return at <= l->view->now_s;
}

static void terminate_all(struct life *l, cJSON *status, const char *key, const char *spec_key,
                          int64_t code)
{
    cJSON *list = json_get(status, key);

    json_each(c, json_path(l->view->pod, spec_key))
    {
        cJSON *s = NULL;

        json_each(one, list) s = str_eq(json_str_at(one, "name"), json_str_at(c, "name")) ? one : s;
        if (!s || json_path(s, "state.terminated"))
            continue;
        const cJSON *running = json_path(s, "state.running");
        int64_t since = running ? object_time_s(running, "startedAt") : l->view->now_s;
        json_replace(list, s,
                     set_terminated(l, status_of(l, c, s), c, since, l->view->now_s, code));
    }
}

cJSON *embedded_pod_status_next(struct arena *a, const struct pod_view *v, int64_t *ret_due_s)
{
    const cJSON *old = json_get(v->pod, "status");
    cJSON *object = json_new_object(a), *status = json_set(a, object, "status", new_status(a, v));
    cJSON *list;
    struct life l;

    set_life(&l, a, v);
    enum init_state init = init_containers(&l, old, status);
    bool initialized = init == INIT_DONE;
    if (!initialized && !l.held) {
        l.held = true;
        l.held_reason = "PodInitializing";
    }
    list = json_set(a, status, "containerStatuses", json_new_array(a));
    json_each(c, json_path(v->pod, "spec.containers")) json_append(
        list, container_next(
                  &l, c, find_status(json_get(old, "containerStatuses"), json_str_at(c, "name"))));
    add_ephemeral(&l, old, status);
    json_set_str(a, status, "phase", str_c(phase_of(&l, list, init)));
    if (past_deadline(&l, status)) {
        terminate_all(&l, status, "containerStatuses", "spec.containers", 137);
        json_put(a, status, JSON("phase", "Failed"), JSON("reason", "DeadlineExceeded"),
                 JSON("message", DEADLINE_WORDS));
    }
    set_conditions(a, v, object, initialized);
    *ret_due_s = l.due;
    return status;
}

cJSON *embedded_pod_status_stopped(struct arena *a, const struct pod_view *v)
{
    cJSON *object = json_new_object(a), *status = json_set(a, object, "status", new_status(a, v));
    struct life l;

    set_life(&l, a, v);
    int64_t code = l.restart_always ? 0 : EXIT_TERMINATED;
    terminate_all(&l, status, "initContainerStatuses", "spec.initContainers", 0);
    terminate_all(&l, status, "containerStatuses", "spec.containers", code);
    json_set_str(a, status, "phase", str_c(code ? "Failed" : "Succeeded"));
    set_conditions(a, v, object, true);
    return status;
}

bool embedded_pod_has_running(const cJSON *pod)
{
    json_each(s, json_path(pod, "status.containerStatuses"))
    {
        if (json_path(s, "state.running"))
            return true;
    }
    return false;
}
