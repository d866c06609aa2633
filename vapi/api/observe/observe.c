/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The one place that knows when a request began, was answered and ended; it calls the audit log and
 * the counters. It must never change an answer, except for a request that cannot be audited where
 * the configuration requires it. */
#include "observe.h"

#include "../flow/flow.h"

#include <assert.h>

#include <sublet/net.h>

static int64_t now_us(void)
{
    return (int64_t)(uv_hrtime() / 1000);
}

static int64_t took_us(const struct call_entry *e)
{
    return now_us() - e->began_us;
}

static int64_t waited_us(const struct call_entry *e)
{
    return e->flow_stage == FLOW_WAITING ? took_us(e) : (int64_t)e->queued_us;
}

/* Source: k8s.io/apiserver pkg/server config.go, the check of kube-apiserver's options. */
bool observe_long_running(const struct call *c, const struct target *t)
{
    static const char *const subs[] = {"attach", "exec", "proxy", "log", "portforward"};

    (void)c;
    if (!t->is_resource)
        return false;
    if (str_eqc(str_c(t->verb), "watch") || str_eqc(str_c(t->verb), "proxy"))
        return true;
    for (size_t i = 0; t->sub.n && i < COUNT(subs); i++)
        if (str_eqc(t->sub, subs[i]))
            return true;
    return false;
}

void observe_begin(struct call *c)
{
    call_entry(c)->began_us = now_us();
}

int observe_attributes(struct call *c, const struct target *t, const struct user *user,
                       struct err *err)
{
    return audit_attributes(c, t, user, err);
}

void observe_answer(struct call *c, int status, struct str content_type,
                    const struct net_slice *body, size_t n)
{
    struct call_entry *e = call_entry(c);

    if (e->observed)
        return;
    e->observed = true;
    if (e->audit)
        audit_answer(c, status, content_type, body, n);
    metrics_request(c, status, took_us(e), waited_us(e));
    flow_leave(c);
}

void call_streams(struct call *c, int status)
{
    struct call_entry *e = call_entry(c);

    if (e->observed || e->stream_code)
        return;
    e->stream_code = status;
    if (e->audit)
        audit_stream(c, status);
    metrics_long_running(c, 1);
    flow_stream(c);
}

void observe_end(struct call *c)
{
    struct call_entry *e = call_entry(c);

    if (e->stream_code)
        metrics_long_running(c, -1);
    if (!e->observed && e->began_us) {
        e->observed = true;
        if (e->audit)
            audit_end(c);
        if (e->stream_code)
            metrics_request(c, e->stream_code, took_us(e), waited_us(e));
    }
    flow_end(c);
}
