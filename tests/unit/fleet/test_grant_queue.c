/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of KAI behind grants of parts of GPUs, on a host of a few objects: what is written in
 * which order, what is never written, and that a process which is ended between any two writes
 * leaves nothing that its successor promises twice, though KAI may decide by the limit of before
 * for a time. */
#include "test.h"
#include "../../quoted.h"

#include <sublet/buf.h>
#include <sublet/clock.h>
#include <sublet/fraction.h>
#include <sublet/json_build.h>
#include <sublet/object.h>

#include "grants/grant_queue.h"

#define TENANTS 3
#define PARTS   400 /* of two nodes with two GPUs each */
#define NOW     INT64_C(1790000000)
#define QUEUES  8
#define PARENT  "sublet-parts"

struct queue_here {
    cJSON *tree;
    int64_t before, until_s; /* by which KAI may decide still */
};
struct host_of {
    struct arena *a;
    uint64_t random;
    int64_t version, now_s;
    cJSON *pool, *nodes[2], *bindings[TENANTS], *quotas[TENANTS];
    int64_t holds[TENANTS]; /* hundredths, on nodes */
    int64_t waits[TENANTS]; /* the same, for KAI to place them */
    struct queue_here queues[QUEUES];
    bool without; /* Queues are not listed */
    struct str why;
    const char *refuses; /* a name of a Queue */
    bool by_hand;        /* Queues may be gone */
};

static cJSON *object(struct host_of *h, const char *text)
{
    return quoted_json(h->a, str_c(text));
}

static void stamp(struct host_of *h, cJSON *tree)
{
    json_set_str(h->a, json_ensure_object(h->a, tree, "metadata"), "resourceVersion",
                 arena_printf(h->a, "%lld", (long long)++h->version));
}

static void make_pool(struct host_of *h)
{
    h->pool = object(
        h,
        "{'metadata':{'name':'parts','generation':1},'spec':{'mode':'kai-fraction',"
        "'nodeSelector':{'pool':'parts'},'scheduler':{'kind':'kai','queueTemplate':"
        "'{namespace}-parts'}},'status':{'conditions':[{'type':'Converting','status':'False'}]}}");
    stamp(h, h->pool);
}

static void begin(struct host_of *h, uint64_t seed)
{
    *h =
        (struct host_of){.a = arena_new(0), .random = seed * 0x9e3779b97f4a7c15u + 1, .now_s = NOW};
    make_pool(h);
    for (int i = 0; i < 2; i++) {
        h->nodes[i] = object(
            h, "{'metadata':{'labels':{'pool':'parts'}},'status':{'capacity':{'nvidia.com/gpu':"
               "'2'},'allocatable':{'nvidia.com/gpu':'2'},'conditions':[{'type':'Ready',"
               "'status':'True'}]}}");
        json_set_str(h->a, json_get(h->nodes[i], "metadata"), "name", arena_printf(h->a, "n%d", i));
    }
}

static void bind_team(struct host_of *h, int i, const char *spec)
{
    h->bindings[i] = json_object(
        h->a,
        JSON("metadata", json_object(h->a, JSON("name", "parts"),
                                     JSON("namespace", arena_printf(h->a, "team-%d", i)),
                                     JSON("creationTimestamp", time_format_s(h->a, NOW - 100 + i)),
                                     JSON_I64("generation", 1))),
        JSON("spec", object(h, spec)));
    stamp(h, h->bindings[i]);
}

/* Pods of half a GPU and less, of so many parts. */
static void look_at_pods(struct host_of *h, struct grant_state *s, int i, int64_t parts,
                         const char *text)
{
    for (int64_t left = parts; left > 0; left -= 50) {
        cJSON *pod = object(h, text);
        cJSON *meta = json_get(pod, "metadata");
        struct grant_pod *fact = ARENA_NEW(h->a, struct grant_pod);

        json_set_str(h->a, meta, "namespace", arena_printf(h->a, "team-%d", i));
        json_set_str(h->a, json_ensure_object(h->a, meta, "labels"), "kai.scheduler/queue",
                     arena_printf(h->a, "team-%d-parts", i));
        json_set_str(h->a, json_ensure_object(h->a, meta, "annotations"), FRACTION_NOTE,
                     fraction_format(h->a, left < 50 ? left : 50));
        assert_true(grant_pod_of(h->a, pod, fact));
        grant_state_pod(s, fact);
    }
}

static struct str refusal(void *ctx, struct str path, struct str part)
{
    const struct host_of *h = ctx;

    (void)part;
    return h->refuses && str_has_suffix(path, str_c(h->refuses)) ? STR("not this one") : STR("");
}

static void look(struct host_of *h, struct grant_state *s)
{
    struct grant_times times = {.now_s = h->now_s, .grace_s = 60, .pause_s = 300};

    grant_state_begin(s, h->a, &times);
    s->keeps_queues = true;
    s->queues_known = !h->without;
    s->queues_why = h->why;
    s->ctx = h;
    s->refused = refusal;
    if (h->pool)
        grant_state_pool(s, h->pool);
    for (int i = 0; i < TENANTS; i++)
        if (h->bindings[i])
            grant_state_binding(s, h->bindings[i]);
    for (int i = 0; i < TENANTS; i++)
        if (h->quotas[i])
            grant_state_quota(s, h->quotas[i]);
    for (int k = 0; k < QUEUES && !h->without; k++)
        if (h->queues[k].tree)
            grant_queue_add(s, h->queues[k].tree);
    for (int i = 0; i < 2; i++) {
        struct grant_node *node = ARENA_NEW(h->a, struct grant_node);

        grant_node_of(h->a, h->nodes[i], node);
        grant_state_node(s, node);
    }
    for (int i = 0; i < TENANTS; i++) {
        look_at_pods(h, s, i, h->holds[i],
                     "{'metadata':{},'spec':{'nodeName':'n0','nodeSelector':{'pool':'parts'},"
                     "'containers':[{}]}}");
        look_at_pods(h, s, i, h->waits[i],
                     "{'metadata':{},'spec':{'nodeSelector':{'pool':'parts'},'containers':[{}]}}");
    }
    grant_state_settle(s);
}

/* --- the host --- */

static struct queue_here *queue_named(struct host_of *h, struct str name)
{
    for (int k = 0; k < QUEUES; k++)
        if (h->queues[k].tree && str_eq(meta_name(h->queues[k].tree), name))
            return &h->queues[k];
    return NULL;
}

/* Ours. */
static struct queue_here *queue_of(struct host_of *h, int i)
{
    struct str owner = arena_printf(h->a, "team-%d/parts", i);

    for (int k = 0; k < QUEUES; k++)
        if (h->queues[k].tree && meta_label(h->queues[k].tree, "app.kubernetes.io/managed-by").n &&
            str_eq(meta_annotation(h->queues[k].tree, GRANT_QUEUE_OF), owner))
            return &h->queues[k];
    return NULL;
}

/* As KAI reads it: the most hundredths whose sum is at most the limit. */
static int64_t limit_of(const struct queue_here *q)
{
    const cJSON *limit = q ? json_path(q->tree, "spec.resources.gpu.limit") : NULL;

    return !limit ? 0 : limit->valuedouble < 0 ? PARTS : (int64_t)(limit->valuedouble * 100);
}

static int64_t usable(const struct host_of *h, const struct queue_here *q)
{
    int64_t now = limit_of(q);

    return q && q->until_s > h->now_s && q->before > now ? q->before : now;
}

static int64_t grant_of(const struct host_of *h, int i)
{
    struct rational r = RATIONAL_ZERO;

    (void)rational_parse(json_str_at(h->bindings[i], "status.grant"), &r);
    return r.num * 100 / r.den;
}

static void check_host(struct host_of *h)
{
    int64_t sum = 0;

    for (int i = 0; i < TENANTS; i++) {
        struct queue_here *q = queue_of(h, i);
        int64_t most = usable(h, q);

        sum += most > h->holds[i] ? most : h->holds[i];
        if (h->pool && !h->by_hand)
            assert_true(grant_of(h, i) <= limit_of(q));
    }
    assert_true(sum <= PARTS);
}

static struct queue_here *free_place(struct host_of *h)
{
    for (int k = 0; k < QUEUES; k++)
        if (!h->queues[k].tree)
            return &h->queues[k];
    fail_msg("too many Queues");
    return NULL;
}

static void delete_queue(struct host_of *h, struct queue_here *q, const struct grant_write *w)
{
    struct str owner = meta_annotation(q->tree, GRANT_QUEUE_OF);

    if (!str_eq(json_str_at(w->body, "preconditions.resourceVersion"),
                json_str_at(q->tree, "metadata.resourceVersion")))
        return;
    assert_str(json_str_at(w->body, "preconditions.uid"), arena_cstr(h->a, meta_uid(q->tree)));
    assert_true(owner.n > 0);
    for (int i = 0; i < TENANTS && h->pool; i++)
        if (h->bindings[i])
            assert_false(str_eq(owner, arena_printf(h->a, "team-%d/parts", i)));
    for (int i = 0; i < TENANTS; i++)
        if (str_has_prefix(owner, arena_printf(h->a, "team-%d/", i)))
            assert_int_equal(h->holds[i], 0);
    *q = (struct queue_here){0};
}

static void write_queue(struct host_of *h, const struct grant_write *w)
{
    struct str name = str_from(w->path, sizeof(GRANT_QUEUES));
    struct queue_here *q = queue_named(h, name);
    int64_t was = usable(h, q), had = limit_of(q);

    if (str_eqc(str_c(w->method), "DELETE")) {
        if (q)
            delete_queue(h, q, w);
        return;
    }
    if (str_eqc(str_c(w->method), "POST")
            ? q != NULL
            : !q || !str_eq(json_str_at(q->tree, "metadata.resourceVersion"), w->version))
        return;
    if (q) /* never one of another component */
        assert_str(meta_label(q->tree, "app.kubernetes.io/managed-by"), "sublet-fleet");
    q = q ? q : free_place(h);
    q->tree = json_copy(h->a, w->body);
    stamp(h, q->tree);
    json_set_str(h->a, json_get(q->tree, "metadata"), "uid",
                 arena_printf(h->a, "u-%.*s", STR_F(name)));
    if (limit_of(q) < had) {
        q->before = was;
        q->until_s = h->now_s + GRANT_QUEUE_SETTLES_S;
    }
}

static void apply(struct host_of *h, const struct grant_write *w)
{
    cJSON **at = &h->pool;

    if (str_has_prefix(w->path, STR(GRANT_QUEUES))) {
        write_queue(h, w);
        return;
    }
    for (int i = 0; i < TENANTS; i++)
        if (str_contains(w->path, arena_printf(h->a, "/namespaces/team-%d/", i)))
            at = str_has_suffix(w->path, STR("/" GRANT_QUOTA)) ? &h->quotas[i] : &h->bindings[i];
    if (!*at && str_eqc(str_c(w->method), "POST")) /* of a namespace that has a binding, by now */
        *at = object(h, "{}");
    else if (!*at || !str_eq(json_str_at(*at, "metadata.resourceVersion"), w->version))
        return;
    *at = json_copy(h->a, w->body);
    stamp(h, *at);
}

static size_t step(struct host_of *h, struct buf *out)
{
    struct grant_state s;
    struct grant_write w;
    size_t at = 0, n = 0;

    look(h, &s);
    for (; grant_next_write(&s, &at, &w); n++) {
        const cJSON *limit = json_path(w.body, "spec.resources.gpu.limit");

        buf_printf(out, "%s %.*s %.*s\n", w.method, STR_F(str_from(w.path, str_rfind(w.path, '/'))),
                   STR_F(limit ? json_text(h->a, limit) : json_str_at(w.body, "status.grant")));
        if (h->refuses && str_has_suffix(w.path, str_c(h->refuses))) {
            n--;
            continue;
        }
        apply(h, &w);
        check_host(h);
    }
    grant_state_end(&s);
    return n;
}

#define SETTLE_ROUNDS 20
#include "grant_steps.h"

/* --- cases --- */

#define STATUS "PUT /status "

static void the_queue_is_raised_before_the_grant(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    settle(&h); /* what is in force is on record; without a binding there is no Queue */
    assert_null(queue_named(&h, STR(PARENT)));
    bind_team(&h, 0, "{'pool':'parts','guarantee':'1.5','burst':'0.46'}");
    check_step(&h, "POST /sublet-gpu \n" STATUS "0\n" STATUS "\n"
                   "POST /" PARENT " -1\n");
    /* Whole GPUs of the nodes are granted to no one. */
    assert_str(json_text(h.a, json_path(h.quotas[0], "spec.hard")),
               "{\"requests.nvidia.com/gpu\":\"0\"}");
    check_step(&h, "POST /team-0-parts 1.965\n");
    check_step(&h, STATUS "1.96\n");
    check_step(&h, STATUS "\n");
    check_step(&h, "");
    assert_str(json_str_at(queue_of(&h, 0)->tree, "spec.parentQueue"), PARENT);
    assert_str(
        json_text(h.a, json_path(queue_of(&h, 0)->tree, "spec.resources")),
        "{\"cpu\":{\"quota\":-1,\"limit\":-1,\"overQuotaWeight\":1},\"memory\":{\"quota\":-1,"
        "\"limit\":-1,\"overQuotaWeight\":1},\"gpu\":{\"quota\":1.965,\"limit\":1.965,"
        "\"overQuotaWeight\":1}}");
    assert_str(condition_text(&h, h.bindings[0], "Bounded"), "True Queue Queue \"team-0-parts\"");
    assert_str(json_str_at(h.bindings[0], "status.pool.scheduler.queueTemplate"), "team-0-parts");
    assert_str(condition_text(&h, h.pool, "Fenced"), "True OwnQueues ");
    assert_str(json_str_at(h.pool, "status.granted"), "1.96");
    arena_free(h.a);
}

/* Down: the grant, then the pods, then the Queue, and others once KAI has seen it. */
static void a_queue_follows_what_is_given_back(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'parts','guarantee':'1','burst':'3'}");
    settle(&h);
    h.holds[0] = 400;
    bind_team(&h, 1, "{'pool':'parts','guarantee':'2.5'}");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 150);
    assert_int_equal(limit_of(queue_of(&h, 0)), 400);
    assert_null(queue_of(&h, 1));
    h.holds[0] = 200;
    settle(&h);
    assert_int_equal(limit_of(queue_of(&h, 0)), 200);
    assert_null(queue_of(&h, 1)); /* KAI may have bound a pod by the limit of before */
    h.now_s += GRANT_QUEUE_SETTLES_S - 1;
    settle(&h);
    assert_null(queue_of(&h, 1));
    h.now_s++;
    settle(&h);
    assert_int_equal(limit_of(queue_of(&h, 1)), 200);
    assert_int_equal(grant_of(&h, 1), 200);
    h.holds[0] = 100;
    settle(&h);
    h.now_s += GRANT_QUEUE_SETTLES_S;
    settle(&h);
    assert_int_equal(grant_of(&h, 1), 250);
    assert_int_equal(limit_of(queue_of(&h, 0)), 150);
    h.now_s += 3600;
    check_step(&h, "");
    arena_free(h.a);
}

/* A tenant that lets pods wait keeps no limit by them: KAI binds them by the Queue. */
static void pods_that_wait_hold_nothing(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'parts','guarantee':'1','burst':'3'}");
    settle(&h);
    h.waits[0] = 400;
    h.holds[0] = 50;
    bind_team(&h, 1, "{'pool':'parts','guarantee':'2.5'}");
    settle(&h);
    assert_int_equal(limit_of(queue_of(&h, 0)), 150);
    assert_null(json_path(h.bindings[0], "status.reclaim"));
    h.now_s += GRANT_QUEUE_SETTLES_S;
    settle(&h);
    assert_int_equal(grant_of(&h, 1), 250);
    arena_free(h.a);
}

static void a_refusal_is_said_and_stops_no_other(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'parts','guarantee':'1'}");
    settle(&h);
    h.refuses = "/team-1-parts";
    bind_team(&h, 1, "{'pool':'parts','guarantee':'1'}");
    bind_team(&h, 2, "{'pool':'parts','guarantee':'1'}");
    settle(&h);
    assert_int_equal(grant_of(&h, 1), 0);
    assert_int_equal(grant_of(&h, 2), 100);
    assert_str(condition_text(&h, h.bindings[1], "Bounded"),
               "False QueueRefused its Queue cannot be kept now: the GPUPool says why");
    assert_str(condition_text(&h, h.bindings[2], "Bounded"), "True Queue Queue \"team-2-parts\"");
    assert_str(condition_text(&h, h.pool, "Fenced"),
               "False QueueRefused Queue \"team-1-parts\": not this one");
    h.refuses = NULL;
    settle(&h);
    assert_int_equal(grant_of(&h, 1), 100);
    assert_str(condition_text(&h, h.bindings[1], "Bounded"), "True Queue Queue \"team-1-parts\"");
    assert_str(condition_text(&h, h.pool, "Fenced"), "True OwnQueues ");
    h.refuses = "/" PARENT; /* it exists: nothing is raised, and a lower limit is written */
    h.bindings[2] = NULL;
    bind_team(&h, 0, "{'pool':'parts','guarantee':'1.5'}");
    settle(&h);
    assert_int_equal(limit_of(queue_of(&h, 0)), 100);
    assert_int_equal(grant_of(&h, 0), 100);
    assert_int_equal(limit_of(queue_of(&h, 2)), 0);
    arena_free(h.a);
}

/* By hand. What was granted stays promised. */
static void a_queue_that_is_gone_is_made_again(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'parts','guarantee':'3'}");
    settle(&h);
    bind_team(&h, 1, "{'pool':'parts','guarantee':'1','burst':'3'}");
    settle(&h);
    h.holds[0] = 200;
    *queue_of(&h, 0) = (struct queue_here){0};
    *queue_named(&h, STR(PARENT)) = (struct queue_here){0};
    h.by_hand = true;
    settle(&h);
    h.by_hand = false;
    check_host(&h);
    assert_int_equal(limit_of(queue_of(&h, 0)), 300);
    assert_int_equal(grant_of(&h, 0), 300);
    assert_int_equal(limit_of(queue_of(&h, 1)), 100);
    assert_non_null(queue_named(&h, STR(PARENT)));
    arena_free(h.a);
}

static void a_queue_of_another_component_stays_as_it_is(void **state)
{
    static const char *const foreign[] = {
        "{'metadata':{'name':'team-0-parts'},'spec':{'resources':{'gpu':{'limit':-1}}}}",
        "{'metadata':{'name':'team-0-parts','annotations':{'sublet.dev/queue-of':'team-0/parts'}},"
        "'spec':{}}",
        "{'metadata':{'name':'team-0-parts','labels':{'app.kubernetes.io/managed-by':"
        "'sublet-fleet'}},'spec':{}}",
        "{'metadata':{'name':'team-0-parts','labels':{'app.kubernetes.io/managed-by':"
        "'sublet-fleet'},'annotations':{'sublet.dev/queue-of':'team-0/other'}},'spec':{}}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(foreign); i++) {
        struct host_of h;
        cJSON *before;

        begin(&h, 1);
        h.queues[0].tree = object(&h, foreign[i]);
        stamp(&h, h.queues[0].tree);
        before = json_copy(h.a, h.queues[0].tree);
        bind_team(&h, 0, "{'pool':'parts','guarantee':'1'}");
        bind_team(&h, 1, "{'pool':'parts','guarantee':'1'}");
        h.holds[2] = 0;
        if (i == 3)
            before = NULL; /* of a GPUPool that was deleted: it is left over */
        if (before) {
            settle(&h);
            assert_true(json_equal(h.queues[0].tree, before));
            assert_int_equal(grant_of(&h, 0), 0);
            assert_str(condition_text(&h, h.bindings[0], "Bounded"),
                       "False QueueNotOurs Queue \"team-0-parts\" exists and belongs to another "
                       "component: it stays as it is, and nothing is granted");
        }
        settle(&h);
        assert_int_equal(grant_of(&h, 1), 100);
        assert_int_equal(grant_of(&h, 0), before ? 0 : 100);
        arena_free(h.a);
    }
}

static void a_parent_of_another_component_stops_the_pool(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    h.queues[0].tree = object(&h, "{'metadata':{'name':'" PARENT "'},'spec':{}}");
    stamp(&h, h.queues[0].tree);
    bind_team(&h, 0, "{'pool':'parts','guarantee':'1'}");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 0);
    assert_str(condition_text(&h, h.pool, "Fenced"),
               "False QueueNotOurs Queue \"" PARENT "\" exists and belongs to another component: "
               "it stays as it is, and nothing is granted");
    assert_str(condition_text(&h, h.bindings[0], "Bounded"),
               "False QueueNotOurs its Queue cannot be kept now: the GPUPool says why");
    assert_null(queue_of(&h, 0));
    arena_free(h.a);
}

static void without_a_list_nothing_is_written(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'parts','guarantee':'1'}");
    settle(&h);
    h.without = true;
    h.why = STR("queues.scheduling.run.ai is forbidden");
    h.bindings[0] = NULL;
    bind_team(&h, 1, "{'pool':'parts','guarantee':'2'}");
    /* What bounds the resources of other pools goes on. */
    check_step(&h, "POST /sublet-gpu \n" STATUS "\n");
    check_step(&h, "");
    assert_str(condition_text(&h, h.pool, "Fenced"),
               "False QueuesUnknown queues.scheduling.run.ai is forbidden");
    assert_int_equal(limit_of(queue_of(&h, 0)), 100);
    arena_free(h.a);
}

/* What another hand made of it counts as it is, and becomes what was granted again. */
static void another_hand_is_followed_and_undone(void **state)
{
    struct host_of h;
    cJSON *gpu;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'parts','guarantee':'1'}");
    settle(&h);
    gpu = json_path(queue_of(&h, 0)->tree, "spec.resources.gpu");
    json_set(h.a, gpu, "limit", json_new_double(h.a, 0.5));
    check_step(&h, "PUT /team-0-parts 1.005\n");
    check_step(&h, "");
    gpu = json_path(queue_of(&h, 0)->tree, "spec.resources.gpu");
    json_set_i64(h.a, gpu, "limit", -1);
    bind_team(&h, 1, "{'pool':'parts','guarantee':'3'}");
    check_step(&h, "POST /sublet-gpu \n"
                   "PUT /team-0-parts 1.005\n" STATUS "0\n" STATUS "\n");
    settle(&h);
    assert_null(queue_of(&h, 1)); /* all of the pool may be used by the first */
    h.now_s += GRANT_QUEUE_SETTLES_S;
    settle(&h);
    assert_int_equal(grant_of(&h, 1), 300);
    json_set_i64(h.a, json_get(queue_of(&h, 1)->tree, "spec"), "priority", 7);
    json_set_str(h.a, json_get(queue_of(&h, 1)->tree, "spec"), "parentQueue", STR("other"));
    settle(&h);
    assert_str(json_str_at(queue_of(&h, 1)->tree, "spec.parentQueue"), PARENT);
    assert_int_equal(json_i64_at(queue_of(&h, 1)->tree, "spec.priority", 0), 7);
    arena_free(h.a);
}

static void a_queue_is_deleted_after_its_binding(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'parts','guarantee':'1'}");
    bind_team(&h, 1, "{'pool':'parts','guarantee':'1'}");
    settle(&h);
    h.holds[0] = 50;
    h.bindings[0] = NULL;
    settle(&h);
    assert_int_equal(limit_of(queue_of(&h, 0)), 50);
    h.holds[0] = 0;
    settle(&h);
    assert_int_equal(limit_of(queue_of(&h, 0)), 0);
    h.now_s += GRANT_QUEUE_SETTLES_S;
    check_step(&h, "DELETE /team-0-parts \n");
    check_step(&h, "");
    /* A pool that makes no sense is there still; one that was deleted is not. */
    h.holds[1] = 50;
    json_set_str(h.a, json_get(h.pool, "spec"), "mode", STR("fast"));
    json_remove(json_get(h.pool, "status"), "inForce");
    settle(&h);
    assert_int_equal(limit_of(queue_of(&h, 1)), 100);
    h.pool = NULL;
    settle(&h);
    assert_int_equal(limit_of(queue_of(&h, 1)), 100); /* its pods run */
    h.holds[1] = 0;
    check_step(&h, "DELETE /team-1-parts \n");
    check_step(&h, "DELETE /" PARENT " \n");
    check_step(&h, "");
    arena_free(h.a);
}

/* Queues that exist keep their names; a name that is none is refused. */
static void a_template_names_what_is_made(void **state)
{
    struct host_of h;
    char text[128];

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'parts','guarantee':'1'}");
    settle(&h);
    json_set_str(h.a, json_path(h.pool, "spec.scheduler"), "queueTemplate", STR("{namespace}-new"));
    bind_team(&h, 1, "{'pool':'parts','guarantee':'1'}");
    settle(&h);
    assert_non_null(queue_of(&h, 0));
    assert_null(queue_named(&h, STR("team-0-new")));
    assert_int_equal(limit_of(queue_named(&h, STR("team-1-new"))), 100);
    assert_str(json_str_at(h.bindings[0], "status.pool.scheduler.queueTemplate"), "team-0-parts");
    snprintf(text, sizeof(text), "{namespace}-%060d", 7);
    json_set_str(h.a, json_path(h.pool, "spec.scheduler"), "queueTemplate", str_c(text));
    bind_team(&h, 2, "{'pool':'parts','guarantee':'1'}");
    settle(&h);
    assert_true(str_has_prefix(condition_text(&h, h.bindings[2], "Ready"),
                               STR("False Invalid the name \"team-2-000")));
    make_pool(&h);
    bind_team(&h, 2, "{'pool':'parts','guarantee':'1','burst':'1/3'}");
    settle(&h);
    assert_str(
        condition_text(&h, h.bindings[2], "Ready"),
        "False Invalid guarantee, burst and lend of mode kai-fraction are hundredths of GPUs");
    make_pool(&h);
    json_set_str(h.a, json_path(h.pool, "spec.scheduler"), "queueTemplate", STR("one"));
    settle(&h);
    assert_true(str_contains(condition_text(&h, h.pool, "Ready"), STR("{namespace}")));
    arena_free(h.a);
}

/* --- random histories --- */

static void tenant_acts(struct host_of *h)
{
    int i = (int)BELOW(&h->random, TENANTS);
    int64_t next = BELOW(&h->random, PARTS + 1);

    h->waits[i] = BELOW(&h->random, PARTS + 1);
    if (next <= h->holds[i] || next <= usable(h, queue_of(h, i)))
        h->holds[i] = next;
}

static void process_of(struct host_of *h)
{
    struct grant_write writes[32];
    struct grant_state s;
    size_t at = 0, n = 0;

    look(h, &s);
    while (n < COUNT(writes) && grant_next_write(&s, &at, &writes[n]))
        n++;
    for (size_t k = n ? (size_t)BELOW(&h->random, n + 1) : 0; k-- > 0;) {
        struct grant_write *w = &writes[BELOW(&h->random, n)];

        if (!str_eqc(str_c(w->method), "DELETE")) { /* those: as a process sends them at once */
            apply(h, w);
            check_host(h);
        }
        tenant_acts(h);
        check_host(h);
    }
    grant_state_end(&s);
}

static void an_admin_acts(struct host_of *h)
{
    static const char *const specs[] = {
        "{'pool':'parts','guarantee':'0.5','burst':'3.5'}",
        "{'pool':'parts','guarantee':'1','burst':'0.33'}",
        "{'pool':'parts','burst':'4'}",
        "{'pool':'parts','guarantee':'2.25'}",
    };
    int i = (int)BELOW(&h->random, TENANTS);

    if (!h->bindings[i])
        bind_team(h, i, specs[BELOW(&h->random, COUNT(specs))]);
    else if (BELOW(&h->random, 3) == 0)
        h->bindings[i] = NULL;
}

static void a_process_may_end_between_any_two_writes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct host_of h;
        struct buf unused = BUF_INIT(0);

        begin(&h, seed);
        for (int k = 0; k < 20; k++) {
            h.now_s += BELOW(&h.random, 20);
            if (BELOW(&h.random, 3) == 0)
                an_admin_acts(&h);
            process_of(&h);
        }
        for (int k = 0; k < 20; k++) { /* tenants obey: it comes to rest */
            h.now_s += GRANT_QUEUE_SETTLES_S;
            step(&h, &unused);
            for (int i = 0; i < TENANTS; i++)
                h.holds[i] = h.holds[i] > grant_of(&h, i) ? grant_of(&h, i) : h.holds[i];
            for (int i = 0; i < TENANTS; i++) /* pods that wait keep it, without a limit */
                if (k == 10) {
                    assert_true(h.bindings[i] || !limit_of(queue_of(&h, i)));
                    h.waits[i] = 0;
                }
        }
        assert_int_equal(step(&h, &unused), 0);
        for (int i = 0; i < TENANTS; i++) {
            assert_int_equal(limit_of(queue_of(&h, i)), grant_of(&h, i));
            if (!h.bindings[i])
                assert_null(queue_of(&h, i));
        }
        buf_fini(&unused);
        arena_free(h.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_queue_is_raised_before_the_grant),
        cmocka_unit_test(a_queue_follows_what_is_given_back),
        cmocka_unit_test(pods_that_wait_hold_nothing),
        cmocka_unit_test(a_refusal_is_said_and_stops_no_other),
        cmocka_unit_test(a_queue_that_is_gone_is_made_again),
        cmocka_unit_test(a_queue_of_another_component_stays_as_it_is),
        cmocka_unit_test(a_parent_of_another_component_stops_the_pool),
        cmocka_unit_test(without_a_list_nothing_is_written),
        cmocka_unit_test(another_hand_is_followed_and_undone),
        cmocka_unit_test(a_queue_is_deleted_after_its_binding),
        cmocka_unit_test(a_template_names_what_is_made),
        cmocka_unit_test(a_process_may_end_between_any_two_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
