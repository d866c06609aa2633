/* SPDX-License-Identifier: Apache-2.0
 *
 * An audit event as a line of JSON, its members in upstream's order. Why: readers of a cluster's
 * audit log read this one too. It must never print a client's string unescaped, nor a line break
 * inside an event. Source: k8s.io/apiserver pkg/apis/audit/v1 types.go. */
#include <sublet/audit.h>

#include <assert.h>

#include <sublet/clock.h>

static const char *const LEVELS[] = {"None", "Metadata", "Request", "RequestResponse"};
static const char *const STAGES[] = {"RequestReceived", "ResponseStarted", "ResponseComplete",
                                     "Panic"};

static void add_key(struct buf *out, const char *key, bool *comma)
{
    if (*comma)
        buf_char(out, ',');
    *comma = true;
    buf_char(out, '"');
    buf_addc(out, key);
    buf_addc(out, "\":");
}

static void add_text(struct buf *out, const char *key, struct str value, bool *comma)
{
    if (!value.n)
        return;
    add_key(out, key, comma);
    buf_json_string(out, value);
}

static void add_texts(struct buf *out, const char *key, const struct str *items, size_t n,
                      bool *comma)
{
    if (!n)
        return;
    add_key(out, key, comma);
    for (size_t i = 0; i < n; i++) {
        buf_char(out, i ? ',' : '[');
        buf_json_string(out, items[i]);
    }
    buf_char(out, ']');
}

static void add_user(struct buf *out, const char *key, const struct user *u, bool *comma)
{
    bool inner = false;

    add_key(out, key, comma);
    buf_char(out, '{');
    if (u) {
        add_text(out, "username", u->name, &inner);
        add_text(out, "uid", u->uid, &inner);
        add_texts(out, "groups", u->groups, u->n_groups, &inner);
        if (json_first(u->extra)) {
            add_key(out, "extra", &inner);
            json_print(out, u->extra);
        }
    }
    buf_char(out, '}');
}

static void add_constraint(struct buf *out, const struct audit_event *e, bool *comma)
{
    bool inner = false;

    if (!e->impersonation_constraint.n)
        return;
    add_key(out, "authenticationMetadata", comma);
    buf_char(out, '{');
    add_text(out, "impersonationConstraint", e->impersonation_constraint, &inner);
    buf_char(out, '}');
}

static void add_ref(struct buf *out, const struct audit_event *e, bool *comma)
{
    bool inner = false;

    if (!e->has_ref)
        return;
    add_key(out, "objectRef", comma);
    buf_char(out, '{');
    add_text(out, "resource", e->resource, &inner);
    add_text(out, "namespace", e->ns, &inner);
    add_text(out, "name", e->name, &inner);
    add_text(out, "uid", e->uid, &inner);
    add_text(out, "apiGroup", e->group, &inner);
    add_text(out, "apiVersion", e->version, &inner);
    add_text(out, "resourceVersion", e->revision, &inner);
    add_text(out, "subresource", e->subresource, &inner);
    buf_char(out, '}');
}

static void add_status(struct buf *out, const struct audit_event *e, bool *comma)
{
    bool inner = true;

    if (!e->code)
        return;
    add_key(out, "responseStatus", comma);
    buf_addc(out, "{\"metadata\":{}");
    add_text(out, "status", e->status, &inner);
    add_text(out, "message", e->message, &inner);
    add_text(out, "reason", e->reason, &inner);
    if (e->details) {
        add_key(out, "details", &inner);
        json_print(out, e->details);
    }
    add_key(out, "code", &inner);
    buf_i64(out, e->code);
    buf_char(out, '}');
}

/* The key after `last` in sorted order. There are few, each once. */
static const struct audit_annotation *next_annotation(const struct audit_event *e, struct str last)
{
    const struct audit_annotation *best = NULL;

    for (size_t i = 0; i < e->n_annotations; i++) {
        const struct audit_annotation *a = &e->annotations[i];

        if ((!last.p || str_cmp(a->key, last) > 0) && (!best || str_cmp(a->key, best->key) < 0))
            best = a;
    }
    return best;
}

static void add_annotations(struct buf *out, const struct audit_event *e, bool *comma)
{
    const struct audit_annotation *a = next_annotation(e, STR_NULL);
    bool inner = false;

    if (!a)
        return;
    add_key(out, "annotations", comma);
    buf_char(out, '{');
    for (; a; a = next_annotation(e, a->key)) {
        if (inner)
            buf_char(out, ',');
        inner = true;
        buf_json_string(out, a->key);
        buf_char(out, ':');
        buf_json_string(out, a->value);
    }
    buf_char(out, '}');
}

static void add_object(struct buf *out, const char *key, struct str json, bool *comma)
{
    if (!json.n)
        return;
    add_key(out, key, comma);
    buf_add(out, str_trim(json));
}

void audit_event_print(struct buf *out, const struct audit_event *e, enum audit_stage stage,
                       int64_t stage_us)
{
    bool comma = false;
    struct arena *a;

    assert(stage < AUDIT_N_STAGES);
    buf_char(out, '{');
    add_text(out, "kind", STR("Event"), &comma);
    add_text(out, "apiVersion", STR("audit.k8s.io/v1"), &comma);
    add_text(out, "level", str_c(LEVELS[e->decision.level]), &comma);
    add_text(out, "auditID", e->id, &comma);
    add_text(out, "stage", str_c(STAGES[stage]), &comma);
    add_text(out, "requestURI", e->uri, &comma);
    add_key(out, "verb", &comma); /* present even when the method maps to no verb */
    buf_json_string(out, e->verb);
    add_user(out, "user", e->user, &comma);
    if (e->impersonated)
        add_user(out, "impersonatedUser", e->impersonated, &comma);
    add_constraint(out, e, &comma);
    add_texts(out, "sourceIPs", e->source_ips, e->n_source_ips, &comma);
    add_text(out, "userAgent", e->user_agent, &comma);
    add_ref(out, e, &comma);
    add_status(out, e, &comma);
    add_object(out, "requestObject", e->request_object, &comma);
    add_object(out, "responseObject", e->answer_object, &comma);

    a = arena_new(0);
    add_text(out, "requestReceivedTimestamp", time_format_us(a, e->received_us), &comma);
    add_text(out, "stageTimestamp", time_format_us(a, stage_us), &comma);
    arena_free(a);

    add_annotations(out, e, &comma);
    buf_addc(out, "}\n");
}

/* ---- managed fields ---- */

static void strip(cJSON *object)
{
    json_remove(json_get(object, "metadata"), "managedFields");
}

struct str audit_without_managed_fields(struct arena *a, struct str json)
{
    cJSON *tree;

    if (!str_contains(json, STR("\"managedFields\"")) || json_parse(a, json, &tree, NULL) ||
        !json_is_object(tree))
        return json;
    strip(tree);
    json_each(item, json_get(tree, "items")) strip(item);
    json_each(row, json_get(tree, "rows")) strip(json_get(row, "object"));
    return json_text(a, tree);
}
