/* SPDX-License-Identifier: Apache-2.0 */
/* The standing notices of one control plane: a short list per topic, and the reporting of its
 * changes. Events wait until the API serves. Must never let the number of subjects, which a tenant
 * may choose, decide how much memory is used or how many samples /metrics has. */
#include "notice.h"

#include <sublet/json_build.h>
#include <sublet/log.h>
#include <sublet/metrics.h>
#include <sublet/store_disk.h>

#define COMPONENT "sublet"

struct notice {
    LIST_ENTRY(notice) place;
    struct arena *arena; /* of all fields below */
    struct str subject, message;
    const char *reason;
    const cJSON *involved;
    bool recorded; /* as an Event */
};

struct topic {
    LIST_HEAD(, notice) list;
    size_t n;
    uint64_t dropped;
};

struct notices {
    struct topic topics[N_NOTICE_TOPICS];
};

static const char *const NAMES[N_NOTICE_TOPICS] = {
    [NOTICE_HOST] = "host",
    [NOTICE_HOST_RIGHTS] = "host-rights",
    [NOTICE_GRANTS] = "grants",
    [NOTICE_POOL_NODES] = "pool-nodes",
    [NOTICE_STORED_OBJECT] = "stored-object",
    [NOTICE_HOST_OBJECT] = "host-object",
    [NOTICE_MEMORY] = "memory",
    [NOTICE_LEASE] = "lease",
    [NOTICE_INIT] = "init",
    [NOTICE_DISK] = "disk",
};

struct notices *notices_new(void)
{
    return NEW(struct notices);
}

static void remove_notice(struct notice *n)
{
    LIST_REMOVE(n, place);
    arena_free(n->arena);
    mem_free(n);
}

struct notices *notices_free(struct notices *all)
{
    for (size_t i = 0; all && i < N_NOTICE_TOPICS; i++)
        while (!LIST_EMPTY(&all->topics[i].list))
            remove_notice(LIST_FIRST(&all->topics[i].list));
    return mem_free(all);
}

static struct notice *find(struct topic *t, struct str subject)
{
    struct notice *n;

    LIST_FOREACH(n, &t->list, place)
    {
        if (str_eq(n->subject, subject))
            break;
    }
    return n;
}

/* --- reporting --- */

static const cJSON *kube_system(struct arena *a)
{
    return json_object(a, JSON("kind", "Namespace"), JSON("apiVersion", "v1"),
                       JSON("name", "kube-system"));
}

static void record(struct vapi *api, struct notice *n)
{
    if (n->recorded || api->state != API_SERVING || store_disk(api->o.store))
        return;
    n->recorded = true;
    vapi_event(api, n->involved, "Warning", n->reason, n->message, COMPONENT);
}

void notices_serving(struct vapi *api)
{
    struct notice *n;

    for (size_t i = 0; i < N_NOTICE_TOPICS; i++) {
        LIST_FOREACH(n, &api->notices->topics[i].list, place)
        {
            record(api, n);
        }
    }
}

/* --- the list --- */

static struct notice *add(struct topic *t, struct str subject)
{
    struct notice *n;

    if (t->n == NOTICES_PER_TOPIC)
        return NULL;
    n = NEW(struct notice);
    n->arena = arena_new(0);
    n->subject = arena_str(n->arena, subject);
    LIST_INSERT_HEAD(&t->list, n, place);
    t->n++;
    return n;
}

void vapi_notice(struct vapi *api, const struct vapi_notice *from)
{
    struct topic *t = &api->notices->topics[from->topic];
    struct notice *n = find(t, from->subject);
    bool changed = !n || !str_eqc(str_c(n->reason), from->reason);
    struct arena *a;

    if (changed) {
        log_warn("%s: %s subject=\"%.*s\" message=\"%.*s\"%s%.*s%s", NAMES[from->topic],
                 from->reason, STR_F(from->subject), STR_F(from->message),
                 from->detail.n ? " detail=\"" : "", STR_F(from->detail),
                 from->detail.n ? "\"" : "");
    }
    if (!n)
        n = add(t, from->subject);
    if (!n) {
        t->dropped++;
        return;
    }

    /* In an arena of its own, so that repeated changes of messages do not accumulate. */
    a = arena_new(0);
    n->subject = arena_str(a, n->subject);
    n->message = arena_str(a, from->message);
    n->involved = from->involved ? json_copy(a, from->involved) : kube_system(a);
    n->reason = from->reason;
    arena_free(n->arena);
    n->arena = a;

    n->recorded = n->recorded && !changed;
    record(api, n);
}

void vapi_notice_over(struct vapi *api, enum notice_topic topic, struct str subject)
{
    struct topic *t = &api->notices->topics[topic];
    struct notice *n = find(t, subject);

    if (!n)
        return;
    log_info("%s: no longer %s subject=\"%.*s\"", NAMES[topic], n->reason, STR_F(subject));
    t->n--;
    remove_notice(n);
}

/* --- readers --- */

/* True for the first notice with its reason: each reason of a topic is written once. */
static bool is_first(const struct topic *t, const struct notice *n)
{
    const struct notice *at;

    LIST_FOREACH(at, &t->list, place)
    {
        if (str_eqc(str_c(at->reason), n->reason))
            break;
    }
    return at == n;
}

static uint64_t count(const struct topic *t, const char *reason)
{
    const struct notice *at;
    uint64_t n = 0;

    LIST_FOREACH(at, &t->list, place)
    {
        n += str_eqc(str_c(at->reason), reason);
    }
    return n;
}

void notices_reasons(const struct vapi *api, struct buf *out)
{
    for (size_t i = 0; i < N_NOTICE_TOPICS; i++) {
        const struct topic *t = &api->notices->topics[i];
        const struct notice *n;

        LIST_FOREACH(n, &t->list, place)
        {
            if (is_first(t, n))
                buf_printf(out, "[!]%s warning: %s\n", NAMES[i], n->reason);
        }
    }
}

void notices_messages(const struct vapi *api, struct buf *out)
{
    for (size_t i = 0; i < N_NOTICE_TOPICS; i++) {
        const struct topic *t = &api->notices->topics[i];
        const struct notice *n;

        LIST_FOREACH(n, &t->list, place)
        {
            buf_printf(out, "%s %s%s%.*s: %.*s\n", NAMES[i], n->reason, n->subject.n ? " " : "",
                       STR_F(n->subject), STR_F(n->message));
        }
        if (t->dropped)
            buf_printf(out, "%s: %llu more are in the log\n", NAMES[i],
                       (unsigned long long)t->dropped);
    }
}

void notices_metrics(const struct vapi *api, struct buf *out)
{
    metrics_family(out, METRIC_NOTICES);
    for (size_t i = 0; i < N_NOTICE_TOPICS; i++) {
        const struct topic *t = &api->notices->topics[i];
        const struct notice *n;

        LIST_FOREACH(n, &t->list, place)
        {
            struct buf labels = BUF_INIT(0);

            if (!is_first(t, n))
                continue;
            metrics_label(&labels, "topic", str_c(NAMES[i]));
            metrics_label(&labels, "reason", str_c(n->reason));
            metrics_sample_u64(out, METRIC_NOTICES, buf_str(&labels), count(t, n->reason));
            buf_fini(&labels);
        }
    }
}
