/* SPDX-License-Identifier: Apache-2.0 */
/* May a pod run on a node: the filters in upstream's order. The first that refuses gives the
 * reason, and whether preemption could help. Must never change the cluster. Source:
 * k8s.io/kubernetes pkg/scheduler/framework/plugins. */
#include "attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what the node says of itself --- */

static bool cordoned(const struct attempt *t, const struct node_entry *n)
{
    static const char *const words = "{\"key\":\"node.kubernetes.io/unschedulable\","
                                     "\"effect\":\"NoSchedule\"}";
    cJSON *taint;

    if (!json_true(json_get(n->spec, "unschedulable")))
        return false;
    return json_parse(t->arena, str_c(words), &taint, NULL) ||
           !toleration_find(json_path(t->pod, "spec.tolerations"), taint);
}

bool filter_untolerated(const struct attempt *t, const struct node_entry *n)
{
    json_each(taint, json_get(n->spec, "taints"))
    {
        if (!str_eqc(json_str_at(taint, "effect"), "PreferNoSchedule") &&
            !toleration_find(json_path(t->pod, "spec.tolerations"), taint))
            return true;
    }
    return false;
}

bool filter_node_wanted(const struct attempt *t, const struct node_entry *n)
{
    struct str value;

    json_each(want, json_path(t->pod, "spec.nodeSelector"))
    {
        if (!labels_get(n->object->labels, str_c(want->string), &value) ||
            !str_eq(value, json_str(want)))
            return false;
    }
    return embedded_node_selector_matches(
        t->arena,
        json_path(t->pod, "spec.affinity.nodeAffinity."
                          "requiredDuringSchedulingIgnoredDuringExecution"),
        n);
}

/* --- ports --- */

static bool any_address(struct str ip)
{
    return str_eqc(ip, "0.0.0.0") || str_eqc(ip, "::");
}

static bool ports_clash(const struct host_port *a, const struct host_port *b)
{
    return a->port == b->port && str_eq(a->protocol, b->protocol) &&
           (any_address(a->ip) || any_address(b->ip) || str_eq(a->ip, b->ip));
}

static bool pod_clashes(const struct pod_entry *mine, const struct pod_entry *other)
{
    for (size_t i = 0; i < mine->n_ports; i++) {
        for (size_t k = 0; k < other->n_ports; k++) {
            if (ports_clash(&mine->ports[i], &other->ports[k]))
                return true;
        }
    }
    return false;
}

static bool ports_taken(const struct attempt *t, const struct node_entry *n)
{
    const struct pod_entry *p;

    if (!t->entry->n_ports)
        return false;
    LIST_FOREACH(p, &n->pods, place_on_node)
    {
        if (!p->hidden && pod_clashes(t->entry, p))
            return true;
    }
    return false;
}

/* --- resources --- */

static void say(struct verdict *v, struct str reason)
{
    if (v->n < MAX_REASONS)
        v->reasons[v->n++] = reason;
}

/* Pods of the same or higher priority that are nominated to this node count as if they ran here. */
static int64_t nominated_use(const struct attempt *t, const struct node_entry *n, struct str name)
{
    struct pod_entry *p, *tmp;
    int64_t sum = 0;

    if (!t->cluster->n_nominated)
        return 0;
    HASH_ITER(hh, t->cluster->pods, p, tmp)
    {
        if (p != t->entry && p->nominated && p->place != POD_PLACED &&
            str_eqc(n->name, p->nominated) && p->priority >= t->entry->priority)
            sum += name.n ? quantities_get(&p->requests, name) : 1;
    }
    return sum;
}

static void check_resources(const struct attempt *t, const struct node_entry *n, struct verdict *v)
{
    int64_t pods = (int64_t)(n->n_pods - n->n_hidden) + nominated_use(t, n, STR_NULL) + 1;
    size_t hopeless = 0;

    if (pods > quantities_get(&n->allocatable, STR("pods")))
        say(v, STR("Too many pods"));
    for (size_t i = 0; i < t->entry->requests.n; i++) {
        const struct named_quantity *want = &t->entry->requests.list[i];
        int64_t have = quantities_get(&n->allocatable, want->name);

        if (!want->value || want->value <= have - quantities_get(&n->used, want->name) -
                                               nominated_use(t, n, want->name))
            continue;
        say(v, arena_printf(t->arena, "Insufficient %.*s", STR_F(want->name)));
        hopeless += want->value > have;
    }
    v->hopeless = hopeless > 0;
}

static bool volumes_elsewhere(const struct attempt *t, const struct node_entry *n)
{
    for (size_t i = 0; i < t->n_volume_selectors; i++) {
        if (!embedded_node_selector_matches(t->arena, t->volume_selectors[i], n))
            return true;
    }
    return false;
}

/* --- all of them --- */

static bool refuse(struct verdict *v, const char *reason, bool hopeless)
{
    say(v, str_c(reason));
    v->hopeless = hopeless;
    return false;
}

static bool other_name(const struct attempt *t, const struct node_entry *n)
{
    struct str wanted = json_str_at(t->pod, "spec.nodeName");

    return wanted.n && !str_eq(wanted, n->name);
}

static bool wrong_node(const struct attempt *t, const struct node_entry *n)
{
    return !filter_node_wanted(t, n);
}

bool filter_node(struct attempt *t, const struct node_entry *n, struct verdict *ret)
{
    static const struct {
        bool (*refuses)(const struct attempt *t, const struct node_entry *n);
        const char *reason;
        bool hopeless;
    } filters[] = {
        {cordoned, "node(s) were unschedulable", true},
        {other_name, "node(s) didn't match the requested node name", true},
        {filter_untolerated, "node(s) had untolerated taint(s)", true},
        {wrong_node, "node(s) didn't match Pod's node affinity/selector", true},
        {ports_taken, "node(s) didn't have free ports for the requested pod ports", false},
    };
    const char *why;
    bool hopeless;

    *ret = (struct verdict){.n = 0};
    for (size_t i = 0; i < COUNT(filters); i++) {
        if (filters[i].refuses(t, n))
            return refuse(ret, filters[i].reason, filters[i].hopeless);
    }
    check_resources(t, n, ret);
    if (ret->n)
        return false;
    if (volumes_elsewhere(t, n))
        return refuse(ret, "node(s) didn't match PersistentVolume's node affinity", true);
    if ((why = filter_spread(t, n, &hopeless)) || (why = filter_affinity(t, n, &hopeless)))
        return refuse(ret, why, hopeless);
    return true;
}

/* --- what is said when none fits --- */

void histogram_add(struct histogram *h, struct str reason)
{
    for (size_t i = 0; i < h->n; i++) {
        if (str_eq(h->rows[i].reason, reason)) {
            h->rows[i].n++;
            return;
        }
    }
    if (h->n == COUNT(h->rows))
        return;
    h->rows[h->n].reason = reason;
    h->rows[h->n++].n = 1;
}

struct str histogram_text(struct histogram *h)
{
    struct str texts[COUNT(h->rows)];
    struct buf b = BUF_INIT(0);

    for (size_t i = 0; i < h->n; i++)
        texts[i] = arena_printf(h->arena, "%zu %.*s", h->rows[i].n, STR_F(h->rows[i].reason));
    qsort(texts, h->n, sizeof(*texts), str_order);
    for (size_t i = 0; i < h->n; i++) {
        buf_addc(&b, i ? ", " : "");
        buf_add(&b, texts[i]);
    }
    struct str text = arena_str(h->arena, buf_str(&b));
    buf_fini(&b);
    return text;
}
