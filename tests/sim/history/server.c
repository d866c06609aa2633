/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the host's API server: just enough of Kubernetes to be wrong about nothing the
 * syncer relies on: uid preconditions, resourceVersion conflicts, graceful deletion, pages of one
 * moment, 410 for what is forgotten. */
#include "wire_impl.h"

#include <assert.h>
#include <string.h>

#include <sublet/schema.h>

struct target {
    struct request *q;
    struct wires *w;
    struct host_model *h;
    struct arena *arena;
    char *plural, *name;
    bool dry_run;
    const struct host_object_model *found;
    cJSON *tree; /* of found */
};

/* /api/v1[/namespaces/ns]/plural[/name[/sub]] */
static void read_path(struct request *q, struct arena *a, struct target *t)
{
    struct str rest = str_c(q->path), part;

    *t = (struct target){.q = q, .w = q->wires, .h = q->wires->o.host, .arena = a};
    str_cut(&rest, '/');
    part = str_cut(&rest, '/');
    if (str_eqc(part, "apis"))
        str_cut(&rest, '/');
    str_cut(&rest, '/');
    part = str_cut(&rest, '/');
    if (str_eqc(part, "namespaces") && rest.p && str_find(rest, '/') < rest.n) {
        str_cut(&rest, '/');
        part = str_cut(&rest, '/');
    }
    t->plural = arena_cstr(a, part);
    t->name = arena_cstr(a, rest.p ? str_cut(&rest, '/') : STR(""));
    t->dry_run = strstr(q->query, "dryRun=All") != NULL;
    if (*t->name)
        t->found = host_model_find(t->h, t->plural, t->name);
    if (t->found)
        t->tree = host_parse(a, t->found->bytes);
}

static struct str query_of(const struct target *t, const char *key)
{
    struct str rest = str_c(t->q->query);

    while (rest.p) {
        struct str pair = str_cut(&rest, '&'), name = str_cut(&pair, '=');

        if (str_eqc(name, key))
            return pair;
    }
    return STR_NULL;
}

static void tell(struct target *t, struct str bytes)
{
    struct request *q = t->q;

    if (q->wire && !q->lose && !q->truncate && !q->answered)
        t->w->o.told(t->w->o.ctx, t->plural, host_parse(t->arena, bytes));
}

static void answer_object(struct target *t, int status, struct str bytes)
{
    struct str copy = arena_str(t->arena, bytes);

    tell(t, copy);
    request_answer(t->q, status, copy);
}

/* --- reading --- */

struct str request_form(const struct request *q, struct arena *a, struct str bytes)
{
    cJSON *whole, *part;

    if (!q->metadata_only)
        return bytes;
    whole = host_parse(a, bytes);
    part = json_new_object(a);
    json_set_str(a, part, "kind", STR("PartialObjectMetadata"));
    json_set(a, part, "metadata", json_copy(a, json_get(whole, "metadata")));
    return json_text(a, part);
}

static struct pages *collect(struct target *t, bool labelled)
{
    struct pages *p = NEW(struct pages);

    p->id = ++t->w->n_pages;
    p->revision = host_model_revision(t->h);
    p->next = t->w->pages;
    t->w->pages = p;
    for (const struct host_object_model *o = host_model_first(t->h); o; o = o->next) {
        if (strcmp(o->plural, t->plural) != 0 ||
            (labelled && !host_is_ours(host_parse(t->arena, o->bytes))))
            continue;
        p->items = mem_realloc(p->items, (p->n + 1) * sizeof(*p->items));
        p->items[p->n++] = mem_strdup(o->bytes);
    }
    return p;
}

/* A token is "list.position": the same one gives the same page, however often it is used. */
static struct pages *continued(struct target *t, struct str token, uint64_t *ret_at)
{
    struct str id_text = str_cut(&token, '.');
    uint64_t id = 0;

    if (!str_to_u64(id_text, &id) || !str_to_u64(token, ret_at))
        return NULL;
    for (struct pages *p = t->w->pages; p; p = p->next)
        if (p->id == id && p->revision >= host_model_forgotten(t->h))
            return p;
    return NULL;
}

static void do_list(struct target *t)
{
    struct str token = query_of(t, "continue");
    bool only_revision =
        str_eqc(query_of(t, "limit"), "1"); /* the items that come with it are not read */
    unsigned page = only_revision ? 1 : t->w->faults.page;
    uint64_t at = 0, from;
    struct buf b = BUF_INIT(0);
    struct pages *p = token.n ? continued(t, token, &at)
                              : collect(t, strstr(t->q->query, "labelSelector=") != NULL);

    if (token.n && (!p || wire_fault(t->w, t->w->faults.expire, COUNT_EXPIRED))) {
        request_refuse(t->q, 410, "Expired");
        return;
    }
    buf_addc(&b, "{\"kind\":\"List\",\"items\":[");
    for (from = at; at < p->n && (!page || at - from < page); at++) {
        buf_addc(&b, at == from ? "" : ",");
        buf_add(&b, request_form(t->q, t->arena, str_c(p->items[at])));
        if (!only_revision)
            tell(t, str_c(p->items[at]));
    }
    buf_printf(&b, "],\"metadata\":{\"resourceVersion\":\"%llu\"", (unsigned long long)p->revision);
    if (at < p->n) {
        buf_printf(&b, ",\"continue\":\"%u.%llu\"", p->id, (unsigned long long)at);
        t->w->counts[COUNT_PAGES]++;
    }
    buf_addc(&b, "}}");
    request_answer(t->q, 200, buf_str(&b));
    buf_fini(&b);
}

static void do_get(struct target *t)
{
    if (!*t->name)
        do_list(t);
    else if (!t->found)
        request_refuse(t->q, 404, "NotFound");
    else
        answer_object(t, 200, t->found->bytes);
}

static void do_watch(struct target *t)
{
    struct wire *wire = t->q->wire;
    uint64_t revision = 0;

    if (!wire || wire->watching)
        return;
    str_to_u64(query_of(t, "resourceVersion"), &revision);
    if (revision < host_model_forgotten(t->h) ||
        wire_fault(t->w, t->w->faults.expire, COUNT_EXPIRED)) {
        wire->handler.data(wire->handler.ctx,
                           STR("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                               "\"reason\":\"Expired\"}}\n"));
        if (t->q->wire)
            wire_end(t->q->wire, 200, HOST_FINE, NULL);
        return;
    }
    wire->watching = true;
    wire->plural = mem_strdup(str_c(t->plural));
    wire->labelled = strstr(t->q->query, "labelSelector=") != NULL;
    wire->from = revision;
    wire_feed_soon(wire);
}

/* --- writing --- */

static bool is_address_taken(const struct target *t, const cJSON *tree)
{
    struct str wanted = json_str_at(tree, "spec.clusterIP");

    for (const struct host_object_model *o = host_model_first(t->h);
         o && wanted.n && !str_eqc(wanted, "None"); o = o->next)
        if (!strcmp(o->plural, "services") &&
            str_eq(json_str_at(host_parse(t->arena, o->bytes), "spec.clusterIP"), wanted))
            return true;
    return false;
}

static void judge(struct target *t, const cJSON *before, const cJSON *after)
{
    t->w->o.judge(t->w->o.ctx, t->plural, before, after);
}

static void do_create(struct target *t)
{
    cJSON *tree = host_parse(t->arena, t->q->body);

    assert(tree);
    t->name = arena_cstr(t->arena, json_str_at(tree, "metadata.name"));
    if (!strcmp(t->plural, "services") && is_address_taken(t, tree)) {
        request_refuse(t->q, 422, "Invalid");
        return;
    }
    if (host_model_find(t->h, t->plural, t->name)) {
        request_refuse(t->q, 409, "AlreadyExists");
        return;
    }
    if (t->dry_run) {
        host_model_fill(t->h, t->arena, t->plural, tree);
        request_answer(t->q, 201, json_text(t->arena, tree));
        return;
    }
    judge(t, NULL, tree);
    host_model_create(t->h, t->arena, t->plural, tree);
    answer_object(t, 201, host_model_find(t->h, t->plural, t->name)->bytes);
}

static bool fits(const cJSON *wanted, const cJSON *tree, const char *path)
{
    struct str value = json_str(wanted);

    return !value.n || str_eq(value, json_str_at(tree, path));
}

static bool is_same(const cJSON *metadata, const cJSON *tree)
{
    return fits(json_get(metadata, "uid"), tree, "metadata.uid") &&
           fits(json_get(metadata, "resourceVersion"), tree, "metadata.resourceVersion");
}

static void do_change(struct target *t, bool is_patch)
{
    cJSON *body = host_parse(t->arena, t->q->body), *made = body;

    if (!t->found) {
        request_refuse(t->q, 404, "NotFound");
        return;
    }
    if (!is_same(json_get(body, "metadata"), t->tree)) {
        request_refuse(t->q, 409, "Conflict");
        return;
    }
    if (is_patch && patch_merge(t->arena, t->tree, body, &made, NULL)) {
        request_refuse(t->q, 400, "BadRequest");
        return;
    }
    if (!is_patch) {
        cJSON *metadata = json_ensure_object(t->arena, made, "metadata");

        json_set_str(t->arena, metadata, "uid", json_str_at(t->tree, "metadata.uid"));
    }
    judge(t, t->tree, made);
    if (!t->dry_run)
        host_model_store(t->h, t->arena, t->plural, made);
    answer_object(t, 200, host_model_find(t->h, t->plural, t->name)->bytes);
}

static void mark_deleted(struct target *t, int64_t grace)
{
    cJSON *metadata = json_get(t->tree, "metadata");

    json_set_str(t->arena, metadata, "deletionTimestamp", STR("2026-02-01T00:00:30Z"));
    json_set_i64(t->arena, metadata, "deletionGracePeriodSeconds", grace);
    host_model_store(t->h, t->arena, t->plural, t->tree);
}

static void do_delete(struct target *t)
{
    cJSON *options = t->q->body.n ? host_parse(t->arena, t->q->body) : NULL;
    int64_t grace = json_i64_at(options, "gracePeriodSeconds", 30);

    if (!t->found) {
        request_refuse(t->q, 404, "NotFound");
        return;
    }
    if (!is_same(json_get(options, "preconditions"), t->tree)) {
        request_refuse(t->q, 409, "Conflict");
        return;
    }
    judge(t, t->tree, NULL);
    if (!strcmp(t->plural, "pods") && json_path(t->tree, "spec.nodeName") && grace > 0 &&
        !host_pod_is_finished(t->tree))
        mark_deleted(t, grace);
    else
        host_model_drop(t->h, t->plural, t->name, true);
    request_answer(t->q, 200, STR("{\"kind\":\"Status\",\"status\":\"Success\"}"));
}

void server_execute(struct request *q)
{
    struct arena *a = arena_new(0);
    struct target t;

    read_path(q, a, &t);
    q->wires->sender = q->sender;
    q->wires->sent_us = q->sent_us;
    q->wires->earlier = q->age != q->wires->age;
    if (strstr(q->query, "watch=1"))
        do_watch(&t);
    else if (!strcmp(q->method, "GET"))
        do_get(&t);
    else if (!strcmp(q->method, "POST"))
        do_create(&t);
    else if (!strcmp(q->method, "PATCH") || !strcmp(q->method, "PUT"))
        do_change(&t, !strcmp(q->method, "PATCH"));
    else
        do_delete(&t);
    arena_free(a);
}
