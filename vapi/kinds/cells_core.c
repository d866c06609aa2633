/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the core kinds other than pods and workloads. Source:
 * pkg/printers/internalversion/printers.go. */
#include "cells.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/object.h>

/* ---- ConfigMap, Secret, Namespace ---- */

ROW_CELLS(cells_config_map)
{
    struct row r = {a, object, now, cells};
    size_t n = json_count(json_get(object, "data")) + json_count(json_get(object, "binaryData"));

    cell_number(&r, (int64_t)n);
    cell_age(&r);
}

ROW_CELLS(cells_secret)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "type");
    cell_count(&r, "data");
    cell_age(&r);
}

ROW_CELLS(cells_namespace)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "status.phase");
    cell_age(&r);
}

/* ---- sorted sets of texts ---- */

struct set {
    struct str items[64];
    size_t n;
};

static void set_add(struct set *s, struct str text)
{
    size_t at = 0;

    while (at < s->n && str_cmp(s->items[at], text) < 0)
        at++;
    if (s->n == COUNT(s->items) || (at < s->n && str_eq(s->items[at], text)))
        return;
    memmove(&s->items[at + 1], &s->items[at], (s->n - at) * sizeof(s->items[0]));
    s->items[at] = text;
    s->n++;
}

static void set_print(struct buf *b, const struct set *s)
{
    for (size_t i = 0; i < s->n; i++) {
        buf_addc(b, b->n ? "," : "");
        buf_add(b, s->items[i]);
    }
}

/* ---- Service, Ingress ---- */

static void balancer_addresses(struct buf *b, const cJSON *object)
{
    struct set s = {.n = 0};

    json_each(ingress, json_path(object, "status.loadBalancer.ingress"))
    {
        struct str ip = json_str(json_get(ingress, "ip"));
        struct str host = json_str(json_get(ingress, "hostname"));

        if (ip.n || host.n)
            set_add(&s, ip.n ? ip : host);
    }
    set_print(b, &s);
}

static void cell_external(const struct row *r)
{
    struct str type = json_str_at(r->object, "spec.type");
    const cJSON *external = json_path(r->object, "spec.externalIPs");
    bool balanced = str_eqc(type, "LoadBalancer");
    struct buf b = BUF_INIT(0);

    if (str_eqc(type, "ExternalName")) {
        cell_text_at(r, "spec.externalName");
        return;
    }
    if (balanced)
        balancer_addresses(&b, r->object);
    if (json_count(external)) {
        buf_addc(&b, b.n ? "," : "");
        buf_add(&b, join(r->a, external, ","));
    }
    cell_or(r, buf_str(&b), balanced ? "<pending>" : "<none>");
    buf_fini(&b);
}

static void cell_service_ports(const struct row *r)
{
    struct buf b = BUF_INIT(0);

    json_each(port, json_path(r->object, "spec.ports"))
    {
        int64_t node = json_i64_at(port, "nodePort", 0);

        buf_addc(&b, b.n ? "," : "");
        buf_i64(&b, json_i64_at(port, "port", 0));
        if (node > 0) {
            buf_char(&b, ':');
            buf_i64(&b, node);
        }
        buf_char(&b, '/');
        buf_add(&b, json_str(json_get(port, "protocol")));
    }
    cell_or(r, buf_str(&b), "<none>");
    buf_fini(&b);
}

ROW_CELLS(cells_service)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "spec.type");
    cell_or(&r, json_str(json_at(json_path(object, "spec.clusterIPs"), 0)), "<none>");
    cell_external(&r);
    cell_service_ports(&r);
    cell_age(&r);
    cell_map(&r, json_path(object, "spec.selector"));
}

static void cell_hosts(const struct row *r)
{
    const cJSON *rules = json_path(r->object, "spec.rules");
    size_t shown = 0;
    bool more = false;
    struct buf b = BUF_INIT(0);

    json_each(rule, rules)
    {
        struct str host = json_str(json_get(rule, "host"));

        more |= shown == 3;
        if (more || !host.n)
            continue;
        buf_addc(&b, shown++ ? "," : "");
        buf_add(&b, host);
    }
    if (more)
        buf_printf(&b, " + %zu more...", json_count(rules) - 3);
    cell_or(r, buf_str(&b), "*");
    buf_fini(&b);
}

ROW_CELLS(cells_ingress)
{
    struct row r = {a, object, now, cells};
    struct buf b = BUF_INIT(0);

    cell_text_or(&r, "spec.ingressClassName", "<none>");
    cell_hosts(&r);
    balancer_addresses(&b, object);
    cell_text(&r, buf_str(&b));
    buf_fini(&b);
    cell_text(&r, json_count(json_path(object, "spec.tls")) ? STR("80, 443") : STR("80"));
    cell_age(&r);
}

/* ---- Endpoints ---- */

struct shown {
    struct buf b;
    size_t n, count;
    bool more;
};

static void show_address(struct shown *s, struct str ip, const cJSON *port)
{
    if (s->n == 3) {
        s->more = true;
        return;
    }
    buf_addc(&s->b, s->n++ ? "," : "");
    bool v6 = port && str_find(ip, ':') < ip.n;
    buf_addc(&s->b, v6 ? "[" : "");
    buf_add(&s->b, ip);
    buf_addc(&s->b, v6 ? "]" : "");
    if (port) {
        buf_char(&s->b, ':');
        buf_i64(&s->b, json_i64_at(port, "port", 0));
    }
}

static void show_subset(struct shown *s, const cJSON *subset)
{
    const cJSON *addresses = json_get(subset, "addresses"), *ports = json_get(subset, "ports");
    const cJSON *port = json_first(ports);

    do { /* a headless service has no ports */
        s->count += json_count(addresses);
        json_each(address, addresses) show_address(s, json_str(json_get(address, "ip")), port);
        port = port ? port->next : NULL;
    } while (port);
}

ROW_CELLS(cells_endpoints)
{
    struct row r = {a, object, now, cells};
    const cJSON *subsets = json_get(object, "subsets");
    struct shown s = {.b = BUF_INIT(0)};

    json_each(subset, subsets) show_subset(&s, subset);
    if (s.more)
        buf_printf(&s.b, " + %zu more...", s.count - 3);
    cell_text(&r, json_count(subsets) ? buf_str(&s.b) : STR("<none>"));
    buf_fini(&s.b);
    cell_age(&r);
}

/* ---- Event ---- */

static struct str lower(struct arena *a, struct str s)
{
    char *copy = arena_cstr(a, s);

    for (size_t i = 0; i < s.n; i++)
        copy[i] = (char)tolower((unsigned char)copy[i]);
    return (struct str){copy, s.n};
}

/* Both versions of the API come here; the first name that has a value counts. */
static const cJSON *either(const cJSON *event, const char *core, const char *events)
{
    const cJSON *value = json_get(event, core);

    return value ? value : json_get(event, events);
}

static struct str first_of(struct str one, struct str other)
{
    return one.n ? one : other;
}

static void cell_source(const struct row *r)
{
    const cJSON *source = either(r->object, "source", "deprecatedSource");
    struct str component =
        first_of(json_str(json_get(source, "component")),
                 json_str(either(r->object, "reportingComponent", "reportingController")));
    struct str instance = first_of(json_str(json_get(source, "host")),
                                   json_str(json_get(r->object, "reportingInstance")));

    if (instance.n)
        component = arena_printf(r->a, "%.*s, %.*s", STR_F(component), STR_F(instance));
    cell_text(r, component);
}

static void cell_target(const struct row *r, const cJSON *target)
{
    struct str kind = lower(r->a, json_str(json_get(target, "kind")));
    struct str name = json_str(json_get(target, "name"));

    if (name.n)
        kind = arena_printf(r->a, "%.*s/%.*s", STR_F(kind), STR_F(name));
    cell_text(r, kind);
    cell_text(r, json_str(json_get(target, "fieldPath")));
}

ROW_CELLS(cells_event)
{
    struct row r = {a, object, now, cells};
    const cJSON *series = json_get(object, "series");
    struct str first = json_str(either(object, "firstTimestamp", "deprecatedFirstTimestamp"));
    struct str last = json_str(either(object, "lastTimestamp", "deprecatedLastTimestamp"));
    int64_t count = 0;

    if (!json_i64(either(object, "count", "deprecatedCount"), &count) || !count)
        count = 1;
    first = first_of(first, json_str(json_get(object, "eventTime")));
    last = first_of(last, first);
    if (json_is_object(series)) {
        last = json_str(json_get(series, "lastObservedTime"));
        count = json_i64_at(series, "count", 0);
    }
    cell_first(&r, since(&r, last));
    cell_text_at(&r, "type");
    cell_text_at(&r, "reason");
    cell_target(&r, either(object, "involvedObject", "regarding"));
    cell_source(&r);
    cell_text(&r, str_trim(json_str(either(object, "message", "note"))));
    cell_text(&r, since(&r, first));
    cell_number(&r, count);
    cell_text_at(&r, "metadata.name");
}

/* ---- Node ---- */

#define ROLE_PREFIX "node-role.kubernetes.io/"

static void cell_roles(const struct row *r)
{
    struct set s = {.n = 0};
    struct buf b = BUF_INIT(0);

    json_each(label, json_path(r->object, "metadata.labels"))
    {
        struct str key = str_c(label->string);

        if (str_has_prefix(key, STR(ROLE_PREFIX))) {
            if (key.n > strlen(ROLE_PREFIX))
                set_add(&s, str_from(key, strlen(ROLE_PREFIX)));
        } else if (str_eqc(key, "kubernetes.io/role") && json_str(label).n) {
            set_add(&s, json_str(label));
        }
    }
    set_print(&b, &s);
    cell_or(r, buf_str(&b), "<none>");
    buf_fini(&b);
}

static void cell_node_status(const struct row *r)
{
    struct str ready = STR("Unknown");

    json_each(c, json_path(r->object, "status.conditions"))
    {
        if (str_eqc(json_str(json_get(c, "type")), "Ready"))
            ready =
                str_eqc(json_str(json_get(c, "status")), "True") ? STR("Ready") : STR("NotReady");
    }
    if (json_true(json_path(r->object, "spec.unschedulable")))
        ready = arena_printf(r->a, "%.*s,SchedulingDisabled", STR_F(ready));
    cell_text(r, ready);
}

static void cell_address(const struct row *r, const char *type)
{
    struct str found = STR("<none>");

    json_each(address, json_path(r->object, "status.addresses"))
    {
        if (str_eqc(json_str(json_get(address, "type")), type)) {
            found = json_str(json_get(address, "address"));
            break;
        }
    }
    cell_text(r, found);
}

ROW_CELLS(cells_node)
{
    struct row r = {a, object, now, cells};
    struct str kernel = json_str_at(object, "status.nodeInfo.kernelVersion");
    struct str arch = json_str_at(object, "status.nodeInfo.architecture");

    if (!kernel.n)
        kernel = STR("<unknown>");
    if (arch.n)
        kernel = arena_printf(a, "%.*s (%.*s)", STR_F(kernel), STR_F(arch));
    cell_node_status(&r);
    cell_roles(&r);
    cell_age(&r);
    cell_text_at(&r, "status.nodeInfo.kubeletVersion");
    cell_address(&r, "InternalIP");
    cell_address(&r, "ExternalIP");
    cell_text_or(&r, "status.nodeInfo.osImage", "<unknown>");
    cell_text(&r, kernel);
    cell_text_or(&r, "status.nodeInfo.containerRuntimeVersion", "<unknown>");
}

/* ---- PersistentVolume, PersistentVolumeClaim ---- */

static void cell_modes(const struct row *r, const cJSON *modes)
{
    static const struct {
        const char *mode, *abbreviation;
    } names[] = {
        {"ReadWriteOnce", "RWO"},
        {"ReadOnlyMany", "ROX"},
        {"ReadWriteMany", "RWX"},
        {"ReadWriteOncePod", "RWOP"},
    };
    struct buf b = BUF_INIT(0);

    for (size_t i = 0; i < COUNT(names); i++) {
        if (!json_list_has(modes, str_c(names[i].mode)))
            continue;
        buf_addc(&b, b.n ? "," : "");
        buf_addc(&b, names[i].abbreviation);
    }
    cell_text(r, buf_str(&b));
    buf_fini(&b);
}

static void cell_class(const struct row *r)
{
    const cJSON *beta = json_get(json_path(r->object, "metadata.annotations"),
                                 "volume.beta.kubernetes.io/storage-class");

    cell_text(r, beta ? json_str(beta) : json_str_at(r->object, "spec.storageClassName"));
}

static void cell_phase(const struct row *r)
{
    if (object_is_terminating(r->object))
        cell_text(r, STR("Terminating"));
    else
        cell_text_at(r, "status.phase");
}

ROW_CELLS(cells_claim)
{
    struct row r = {a, object, now, cells};
    bool bound = json_str_at(object, "spec.volumeName").n > 0;

    cell_phase(&r);
    cell_text_at(&r, "spec.volumeName");
    if (bound)
        cell_text_or(&r, "status.capacity.storage", "0");
    else
        cell_text(&r, STR(""));
    cell_modes(&r, bound ? json_path(object, "status.accessModes") : NULL);
    cell_class(&r);
    cell_text_or(&r, "spec.volumeAttributesClassName", "<unset>");
    cell_age(&r);
    cell_text_or(&r, "spec.volumeMode", "<unset>");
}

ROW_CELLS(cells_volume)
{
    struct row r = {a, object, now, cells};
    const cJSON *claim = json_path(object, "spec.claimRef");

    cell_text_or(&r, "spec.capacity.storage", "0");
    cell_modes(&r, json_path(object, "spec.accessModes"));
    cell_text_at(&r, "spec.persistentVolumeReclaimPolicy");
    cell_phase(&r);
    if (claim)
        cell_text(&r, arena_printf(a, "%.*s/%.*s", STR_F(json_str(json_get(claim, "namespace"))),
                                   STR_F(json_str(json_get(claim, "name")))));
    else
        cell_text(&r, STR(""));
    cell_class(&r);
    cell_text_or(&r, "spec.volumeAttributesClassName", "<unset>");
    cell_text_at(&r, "status.reason");
    cell_age(&r);
    cell_text_or(&r, "spec.volumeMode", "<unset>");
}

/* ---- ResourceQuota ---- */

static int by_name(const void *x, const void *y)
{
    return strcmp((*(const cJSON *const *)x)->string, (*(const cJSON *const *)y)->string);
}

ROW_CELLS(cells_quota)
{
    struct row r = {a, object, now, cells};
    const cJSON *hard = json_path(object, "status.hard"), *used = json_path(object, "status.used");
    size_t n = json_count(hard), i = 0;
    const cJSON **sorted = arena_alloc(a, (n + 1) * sizeof(const cJSON *));
    struct buf requests = BUF_INIT(0), limits = BUF_INIT(0);

    json_each(item, hard) sorted[i++] = item;
    qsort(sorted, n, sizeof(const cJSON *), by_name);
    for (i = 0; i < n; i++) {
        struct str name = str_c(sorted[i]->string), amount = json_str(json_get(used, name.p));
        struct buf *b = str_has_prefix(name, STR("limits.")) ? &limits : &requests;

        buf_addc(b, b->n ? ", " : "");
        buf_printf(b, "%.*s: %.*s/%.*s", STR_F(name), STR_F(amount.n ? amount : STR("0")),
                   STR_F(json_str(sorted[i])));
    }
    cell_text(&r, buf_str(&requests));
    cell_text(&r, buf_str(&limits));
    buf_fini(&requests);
    buf_fini(&limits);
    cell_age(&r);
}
