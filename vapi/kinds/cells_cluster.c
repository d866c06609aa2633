/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the kinds about networks, storage, admission, devices and the API itself. Source:
 * pkg/printers/internalversion/printers.go. */
#include "cells.h"

#include <sublet/clock.h>
#include <sublet/object.h>

#include <ctype.h>

static bool annotated_true(const cJSON *object, const char *name)
{
    return str_eqc(json_str(json_get(json_path(object, "metadata.annotations"), name)), "true");
}

static void mark_default(const struct row *r)
{
    cell_first(
        r, arena_printf(r->a, "%.*s (default)", STR_F(json_str_at(r->object, "metadata.name"))));
}

/* ---- networking ---- */

ROW_CELLS(cells_ingress_class)
{
    struct row r = {a, object, now, cells};
    const cJSON *p = json_path(object, "spec.parameters");
    struct str group = json_str(json_get(p, "apiGroup"));

    if (annotated_true(object, "ingressclass.kubernetes.io/is-default-class"))
        mark_default(&r);
    cell_text_at(&r, "spec.controller");
    if (p)
        cell_text(&r, arena_printf(a, "%.*s%s%.*s/%.*s", STR_F(json_str(json_get(p, "kind"))),
                                   json_get(p, "apiGroup") ? "." : "", STR_F(group),
                                   STR_F(json_str(json_get(p, "name")))));
    else
        cell_text(&r, STR("<none>"));
    cell_age(&r);
}

ROW_CELLS(cells_network_policy)
{
    struct row r = {a, object, now, cells};
    const cJSON *selector = json_path(object, "spec.podSelector");

    cell_selector(&r, selector, "<none>");
    cell_age(&r);
}

/* One cell more than there are columns: upstream's row has the age too. */
ROW_CELLS(cells_ip_address)
{
    struct row r = {a, object, now, cells};
    const cJSON *p = json_path(object, "spec.parentRef");
    struct str group = json_str(json_get(p, "group")), ns = json_str(json_get(p, "namespace"));
    struct str text = STR("<none>");

    if (p)
        text = arena_printf(a, "%.*s%s%.*s%s%.*s/%.*s", STR_F(json_str(json_get(p, "resource"))),
                            group.n ? "." : "", STR_F(group), ns.n ? "/" : "", STR_F(ns),
                            STR_F(json_str(json_get(p, "name"))));
    cell_text(&r, text);
    cell_age(&r);
}

ROW_CELLS(cells_service_cidr)
{
    struct row r = {a, object, now, cells};

    cell_text(&r, join(a, json_path(object, "spec.cidrs"), ","));
    cell_age(&r);
}

struct first_three {
    struct buf b;
    size_t count;
};

static void three_add(struct first_three *t, struct str text)
{
    if (t->count++ >= 3)
        return;
    buf_addc(&t->b, t->count > 1 ? "," : "");
    buf_add(&t->b, text);
}

static void three_cell(const struct row *r, struct first_three *t)
{
    if (t->count > 3)
        buf_printf(&t->b, " + %zu more...", t->count - 3);
    cell_or(r, buf_str(&t->b), "<unset>");
    buf_fini(&t->b);
}

ROW_CELLS(cells_endpoint_slice)
{
    struct row r = {a, object, now, cells};
    struct first_three ports = {.b = BUF_INIT(0)}, addresses = {.b = BUF_INIT(0)};

    cell_text_at(&r, "addressType");
    json_each(p, json_get(object, "ports"))
    {
        int64_t number;

        if (json_i64(json_get(p, "port"), &number))
            three_add(&ports, arena_printf(a, "%lld", (long long)number));
        else
            three_add(&ports, json_get(p, "name") ? json_str(json_get(p, "name")) : STR("*"));
    }
    three_cell(&r, &ports);
    json_each(endpoint, json_get(object, "endpoints"))
    {
        json_each(address, json_get(endpoint, "addresses"))
            three_add(&addresses, json_str(address));
    }
    three_cell(&r, &addresses);
    cell_age(&r);
}

/* ---- rbac ---- */

static void cell_subjects(const struct row *r, const char *kind)
{
    struct buf b = BUF_INIT(0);
    bool account = str_eqc(str_c(kind), "ServiceAccount"), some = false;

    json_each(s, json_get(r->object, "subjects"))
    {
        if (!str_eqc(json_str(json_get(s, "kind")), kind))
            continue;
        buf_addc(&b, some ? ", " : "");
        some = true;
        if (account) {
            buf_add(&b, json_str(json_get(s, "namespace")));
            buf_char(&b, '/');
        }
        buf_add(&b, json_str(json_get(s, "name")));
    }
    cell_text(r, buf_str(&b));
    buf_fini(&b);
}

ROW_CELLS(cells_binding)
{
    struct row r = {a, object, now, cells};

    cell_text(&r, arena_printf(a, "%.*s/%.*s", STR_F(json_str_at(object, "roleRef.kind")),
                               STR_F(json_str_at(object, "roleRef.name"))));
    cell_age(&r);
    cell_subjects(&r, "User");
    cell_subjects(&r, "Group");
    cell_subjects(&r, "ServiceAccount");
}

/* ---- storage ---- */

ROW_CELLS(cells_storage_class)
{
    struct row r = {a, object, now, cells};

    if (annotated_true(object, "storageclass.kubernetes.io/is-default-class") ||
        annotated_true(object, "storageclass.beta.kubernetes.io/is-default-class"))
        mark_default(&r);
    cell_text_at(&r, "provisioner");
    cell_text_or(&r, "reclaimPolicy", "Delete");
    cell_text_or(&r, "volumeBindingMode", "Immediate");
    cell_bool(&r, json_true(json_get(object, "allowVolumeExpansion")));
    cell_age(&r);
}

ROW_CELLS(cells_csi_driver)
{
    struct row r = {a, object, now, cells};
    const cJSON *spec = json_get(object, "spec"), *attach = json_get(spec, "attachRequired");
    struct buf b = BUF_INIT(0);

    cell_bool(&r, !attach || json_true(attach));
    cell_bool(&r, json_true(json_get(spec, "podInfoOnMount")));
    cell_bool(&r, json_true(json_get(spec, "storageCapacity")));
    json_each(t, json_get(spec, "tokenRequests"))
    {
        buf_addc(&b, t == json_first(json_get(spec, "tokenRequests")) ? "" : ",");
        buf_add(&b, json_str(json_get(t, "audience")));
    }
    cell_text(&r, json_get(spec, "tokenRequests") ? buf_str(&b) : STR("<unset>"));
    buf_fini(&b);
    cell_bool(&r, json_true(json_get(spec, "requiresRepublish")));
    cell_or(&r, join(a, json_get(spec, "volumeLifecycleModes"), ","), "<none>");
    cell_age(&r);
}

ROW_CELLS(cells_csi_node)
{
    struct row r = {a, object, now, cells};

    cell_count(&r, "spec.drivers");
    cell_age(&r);
}

ROW_CELLS(cells_attachment)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "spec.attacher");
    cell_text_at(&r, "spec.source.persistentVolumeName");
    cell_text_at(&r, "spec.nodeName");
    cell_bool(&r, json_true(json_path(object, "status.attached")));
    cell_age(&r);
}

ROW_CELLS(cells_attributes_class)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "driverName");
    cell_age(&r);
}

/* ---- admission ---- */

ROW_CELLS(cells_webhooks)
{
    struct row r = {a, object, now, cells};

    cell_count(&r, "webhooks");
    cell_age(&r);
}

static void policy_cells(const struct row *r, const char *rules)
{
    const cJSON *kind = json_path(r->object, "spec.paramKind");

    cell_count(r, rules);
    if (kind)
        cell_text(r, arena_printf(r->a, "%.*s/%.*s", STR_F(json_str(json_get(kind, "apiVersion"))),
                                  STR_F(json_str(json_get(kind, "kind")))));
    else
        cell_text(r, STR("<unset>"));
    cell_age(r);
}

ROW_CELLS(cells_validating_policy)
{
    struct row r = {a, object, now, cells};

    policy_cells(&r, "spec.validations");
}

ROW_CELLS(cells_mutating_policy)
{
    struct row r = {a, object, now, cells};

    policy_cells(&r, "spec.mutations");
}

ROW_CELLS(cells_policy_binding)
{
    struct row r = {a, object, now, cells};
    const cJSON *ref = json_path(object, "spec.paramRef");
    struct str name = json_str(json_get(ref, "name")), ns = json_str(json_get(ref, "namespace"));

    cell_text_at(&r, "spec.policyName");
    if (name.n)
        cell_text(&r, arena_printf(a, "%.*s/%.*s", STR_F(ns.n ? ns : STR("*")), STR_F(name)));
    else if (json_get(ref, "selector"))
        cell_text(&r, label_selector_text(a, json_get(ref, "selector")));
    else
        cell_text(&r, STR("<unset>"));
    cell_age(&r);
}

/* ---- scheduling, leases, runtimes ---- */

ROW_CELLS(cells_priority_class)
{
    struct row r = {a, object, now, cells};

    cell_number_at(&r, "value");
    cell_bool(&r, json_true(json_get(object, "globalDefault")));
    cell_age(&r);
    cell_text_at(&r, "preemptionPolicy");
}

ROW_CELLS(cells_lease)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "spec.holderIdentity");
    cell_age(&r);
}

ROW_CELLS(cells_runtime_class)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "handler");
    cell_age(&r);
}

/* ---- devices ---- */

ROW_CELLS(cells_resource_claim)
{
    struct row r = {a, object, now, cells};
    bool deleting = object_is_terminating(object);
    const cJSON *status = json_get(object, "status");
    struct str state = deleting ? STR("deleted") : STR("pending");

    if (json_get(status, "allocation"))
        state = arena_printf(a, "%sallocated%s", deleting ? "deleted," : "",
                             json_count(json_get(status, "reservedFor")) ? ",reserved" : "");
    cell_text(&r, state);
    cell_age(&r);
}

ROW_CELLS(cells_resource_slice)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "spec.nodeName");
    cell_text_at(&r, "spec.driver");
    cell_text_at(&r, "spec.pool.name");
    cell_age(&r);
}

/* ---- flow control ---- */

ROW_CELLS(cells_flow_schema)
{
    struct row r = {a, object, now, cells};
    struct str missing = STR("?");

    cell_text_at(&r, "spec.priorityLevelConfiguration.name");
    cell_number_at(&r, "spec.matchingPrecedence");
    cell_text_or(&r, "spec.distinguisherMethod.type", "<none>");
    cell_age(&r);
    json_each(c, json_path(object, "status.conditions"))
    {
        if (str_eqc(json_str(json_get(c, "type")), "Dangling")) {
            missing = json_str(json_get(c, "status"));
            break;
        }
    }
    cell_text(&r, missing);
}

static void cell_number_or_none(const struct row *r, const char *path)
{
    int64_t number;

    if (json_i64(json_path(r->object, path), &number))
        cell_number(r, number);
    else
        cell_text(r, STR("<none>"));
}

ROW_CELLS(cells_priority_level)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "spec.type");
    cell_number_or_none(&r, "spec.limited.nominalConcurrencyShares");
    cell_number_or_none(&r, "spec.limited.limitResponse.queuing.queues");
    cell_number_or_none(&r, "spec.limited.limitResponse.queuing.handSize");
    cell_number_or_none(&r, "spec.limited.limitResponse.queuing.queueLengthLimit");
    cell_age(&r);
}

/* ---- certificates, APIServices ---- */

static struct str request_state(struct arena *a, const cJSON *object)
{
    bool approved = false, denied = false, failed = false;
    const char *state;

    json_each(c, json_path(object, "status.conditions"))
    {
        struct str type = json_str(json_get(c, "type"));

        approved |= str_eqc(type, "Approved");
        denied |= str_eqc(type, "Denied");
        failed |= str_eqc(type, "Failed");
    }
    state = denied ? "Denied" : approved ? "Approved" : "Pending";
    return arena_printf(a, "%s%s%s", state, failed ? ",Failed" : "",
                        json_str_at(object, "status.certificate").n ? ",Issued" : "");
}

ROW_CELLS(cells_certificate_request)
{
    struct row r = {a, object, now, cells};
    int64_t seconds;

    cell_age(&r);
    cell_text_or(&r, "spec.signerName", "<none>");
    cell_text_at(&r, "spec.username");
    if (json_i64(json_path(object, "spec.expirationSeconds"), &seconds))
        cell_text(&r, duration_human(a, seconds));
    else
        cell_text(&r, STR("<none>"));
    cell_text(&r, request_state(a, object));
}

ROW_CELLS(cells_api_service)
{
    struct row r = {a, object, now, cells};
    const cJSON *service = json_path(object, "spec.service");
    struct str available = STR("Unknown");

    if (json_is_object(service))
        cell_text(&r, arena_printf(a, "%.*s/%.*s", STR_F(json_str(json_get(service, "namespace"))),
                                   STR_F(json_str(json_get(service, "name")))));
    else
        cell_text(&r, STR("Local"));
    json_each(c, json_path(object, "status.conditions"))
    {
        struct str status = json_str(json_get(c, "status"));
        struct str reason = json_str(json_get(c, "reason"));

        if (!str_eqc(json_str(json_get(c, "type")), "Available"))
            continue;
        available = str_eqc(status, "True") || !reason.n
                        ? status
                        : arena_printf(a, "%.*s (%.*s)", STR_F(status), STR_F(reason));
        break;
    }
    cell_text(&r, available);
    cell_age(&r);
}
