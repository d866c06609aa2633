/* SPDX-License-Identifier: Apache-2.0 */
/* Both sides compared, for `sublet check --host` of a running virtual cluster: a fresh list of each
 * kind on the host beside the store. Why: what watches and records missed, or what the host does
 * not take back, is seen by nothing else. Must never delete, nor change an object that no record
 * proves ours: a repair writes fields we own back, or adds a key, which takes the step it always
 * would.
 *
 *   kind by kind: list, page by page --> judged --> repairs sent --> answered --> next kind
 */
#include "engine.h"

#include "core/kept.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include <sublet/encode.h>
#include <sublet/hash.h>
#include <sublet/json_build.h>
#include <sublet/store_quarantine.h>
#include <sublet/translate_alias.h>

#define COMPARE_MAGIC 0x636d7072u
#define TIMEOUT_MS    20000

enum { FINDINGS_MAX = 1000, BATCH = 64 }; /* so many objects in a turn of the loop */

struct compare {
    unsigned magic;
    struct syncer *syncer;
    struct arena *arena; /* of the answer */
    struct arena *kind;  /* of the present kind */
    enum sync_id id;
    struct map host; /* struct item by host name */
    struct str cont;
    struct str after_ns, after_name; /* the last object of the store that was judged */
    size_t batch;
    SLIST_HEAD(, item) items;
    cJSON *findings;
    size_t checked, found, repaired, pending;
    bool repair, listed;
    struct err err;
    syncer_answer_cb done;
    void *ctx;
};

struct item {
    struct map_entry entry;
    SLIST_ENTRY(item) place;
    cJSON *tree;
    bool known; /* it is a virtual object's */
};

/* One object of either side, or both. */
struct pair {
    struct str ns, name, host_name;
    const cJSON *virtual_, *host;
};

static void next_kind(struct compare *c);
static void list_page(struct compare *c);

/* --- findings --- */

static void report(struct compare *c, const char *state, const struct pair *p, struct str why,
                   struct str action)
{
    struct arena *a = c->arena;

    if (c->found++ >= FINDINGS_MAX)
        return;
    json_append(c->findings,
                json_object(a, JSON("state", state),
                            JSON("resource", c->syncer->kinds[c->id].plural),
                            JSON("namespace", p->ns), JSON("name", p->name),
                            JSON("host", p->host_name), JSON("why", why), JSON("action", action)));
}

/* What only an admin may decide: the command that would do it. */
static struct str by_hand(struct compare *c, const struct pair *p)
{
    return arena_printf(c->arena, "kubectl --namespace %.*s delete %s %.*s",
                        STR_F(c->syncer->tenant.host_namespace), c->syncer->kinds[c->id].plural,
                        STR_F(p->host_name));
}

static struct str by_us(const struct compare *c)
{
    return c->repair ? STR("requested") : STR("--repair");
}

static void add_key(struct compare *c, const struct pair *p)
{
    if (!c->repair)
        return;
    syncer_add(c->syncer, c->id, p->ns, p->name);
    c->repaired++;
}

/* --- what should be there --- */

static const struct sync_handlers *handlers(const struct compare *c)
{
    return c->syncer->kinds[c->id].handlers;
}

static bool wants_host(struct compare *c, const struct pair *p)
{
    return !object_is_terminating(p->virtual_) &&
           handlers(c)->wants_host(c->syncer, c->kind, c->id, p->virtual_);
}

/* A pod that waits for its quota says so in its condition. */
static bool is_waiting(const struct pair *p)
{
    const cJSON *condition =
        condition_find(json_path(p->virtual_, "status.conditions"), STR("PodScheduled"));

    return str_eqc(json_str(json_get(condition, "reason")), "SchedulingGated");
}

static void judge_missing(struct compare *c, const struct pair *p)
{
    struct mapping m = sync_mapping_get(c->syncer, c->kind, c->id, p->ns, p->name);
    bool was = m.host_uid.n && str_eq(m.uid, sync_uid(p->virtual_));

    if (!wants_host(c, p) || (c->id == SYNC_PODS && is_waiting(p)))
        return;
    if (c->id == SYNC_PODS && was) {
        report(c, "missing", p, STR("its host pod was deleted, and a pod is never run twice"),
               STR("delete the pod in the virtual cluster"));
        return;
    }
    report(c, "missing", p,
           was ? STR("its host object was deleted")
               : STR("it has not been created; see the Events of the object"),
           by_us(c));
    add_key(c, p);
}

/* --- what differs --- */

/* "metadata.labels, spec.selector": never a value, which may be a Secret's. */
static struct str fields_of(struct compare *c, const cJSON *patch)
{
    struct str ret = STR("");

    json_each(part, patch)
    {
        bool nested = strcmp(part->string, "metadata") == 0 || strcmp(part->string, "spec") == 0;

        json_each(field, nested ? part : NULL)
        {
            if (strcmp(field->string, "resourceVersion") != 0)
                ret = arena_printf(c->arena, "%.*s%s%s.%s", STR_F(ret), ret.n ? ", " : "",
                                   part->string, field->string);
        }
        if (!nested)
            ret = arena_printf(c->arena, "%.*s%s%s", STR_F(ret), ret.n ? ", " : "", part->string);
    }
    return ret;
}

static void after_repair(struct compare *c);

static void on_patched(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct compare *c = ctx;

    (void)answer;
    assert(c->magic == COMPARE_MAGIC);
    if (err && !c->err.kind)
        err_set(&c->err, err->kind, "the repair failed: %.*s", STR_F(err->message));
    c->repaired += !err;
    c->pending--;
    after_repair(c);
}

/* Data that another client changed twice is not written back at once (objects/data.c): here it is.
 * Of the very object that was compared: another uid or version is a conflict. */
static void patch_data(struct compare *c, const struct pair *p, cJSON *patch)
{
    struct host_request q = {.method = "PATCH",
                             .content_type = "application/merge-patch+json",
                             .timeout_ms = TIMEOUT_MS};
    cJSON *metadata = json_ensure_object(c->kind, patch, "metadata");

    json_set_str(c->kind, metadata, "uid", sync_uid(p->host));
    json_set_str(c->kind, metadata, "resourceVersion",
                 json_str_at(p->host, "metadata.resourceVersion"));
    q.path = sync_path(c->kind, c->syncer, c->id, p->host_name, "");
    q.body = json_text(c->kind, patch);
    c->pending++;
    host_send(c->syncer->host, &q, on_patched, c);
}

static void judge_drift(struct compare *c, const struct pair *p)
{
    cJSON *patch;

    if (!wants_host(c, p) || object_is_terminating(p->host))
        return;
    patch = handlers(c)->difference(c->syncer, c->kind, c->id, p->virtual_, p->host);
    if (!patch)
        return;
    report(c, "drifted", p, arena_printf(c->arena, "differs in %.*s", STR_F(fields_of(c, patch))),
           by_us(c));
    if (c->repair && c->syncer->kinds[c->id].metadata_only)
        patch_data(c, p, patch);
    else
        add_key(c, p);
}

/* What the pod was sent with and runs without. Only what the tenant's own pod has, too: the pool
 * may add today what it did not then. Of other kinds it is a difference, and written back. */
static void judge_dropped(struct compare *c, const struct pair *p)
{
    struct pool_choice choice;
    struct dropped sent, own;
    struct err err;
    cJSON *wanted;

    err_init(&err, c->kind);
    if (c->id != SYNC_PODS || object_is_terminating(p->host) ||
        sync_pod_choose(c->syncer, c->kind, p->virtual_, &choice, &err) ||
        sync_pod_translate(c->syncer, c->kind, p->virtual_, &choice, false, &wanted, &err))
        return;
    sync_dropped(c->kind, wanted, p->host, &sent);
    if (!sent.n)
        return;
    sync_dropped(c->kind, p->virtual_, p->host, &own);
    sync_dropped_both(&sent, &own);
    if (sent.n)
        report(c, "dropped", p,
               arena_printf(c->arena, "the host runs it without %.*s: " DROPPED_WHY,
                            STR_F(sync_dropped_text(c->arena, &sent))),
               STR("enable them on the host, then delete the pod in the virtual cluster"));
}

/* --- objects of the virtual cluster --- */

static void judge_both(struct compare *c, const struct pair *p)
{
    struct str ns, name, uid;

    if (!translate_owner(&c->syncer->tenant, p->host, &ns, &name, &uid)) {
        if (wants_host(c, p))
            report(c, "foreign", p, STR("the host has an object of this name that is not ours"),
                   by_hand(c, p));
    } else if (str_eq(uid, sync_uid(p->virtual_))) {
        judge_drift(c, p);
        judge_dropped(c, p);
    } else if (sync_quarantine_has(c->syncer, c->id, p->host_name)) {
        report(c, "quarantined", p,
               STR("the host's was made for another object of this name, and no record proves it"),
               by_hand(c, p));
    } else {
        report(c, "extra", p, STR("the host's was made for a previous object of this name"),
               by_us(c));
        add_key(c, p);
    }
}

static bool on_virtual(void *ctx, const struct store_object *o)
{
    struct compare *c = ctx;
    struct pair p = {.ns = o->ns, .name = o->name};
    struct map_entry *e;
    cJSON *tree = NULL;
    char host_name[64];

    c->after_ns = arena_str(c->kind, o->ns);
    c->after_name = arena_str(c->kind, o->name);
    c->batch++;
    if (json_parse(c->kind, o->bytes, &tree, NULL))
        return c->batch < BATCH;
    c->checked++;
    translate_name(&c->syncer->tenant, o->ns, o->name, host_name);
    p.virtual_ = tree;
    p.host_name = str_c(host_name);
    e = map_get(&c->host, p.host_name);
    if (e) {
        CONTAINER(e, struct item, entry)->known = true;
        p.host = CONTAINER(e, struct item, entry)->tree;
        judge_both(c, &p);
    } else {
        judge_missing(c, &p);
    }
    return c->batch < BATCH;
}

/* --- objects that only the host has --- */

static bool has_our_label(struct compare *c, const cJSON *host)
{
    return str_eq(json_str(json_get(json_path(host, "metadata.labels"), LABEL_CLUSTER)),
                  c->syncer->tenant.cluster_uid);
}

static bool is_token_secret(struct compare *c, const struct pair *p)
{
    char tokens[64];

    translate_token_secret_name(&c->syncer->tenant, p->ns, p->name, tokens);
    return c->id == SYNC_SECRETS && str_eqc(p->host_name, tokens);
}

/* Its object may be there, and only not be readable. */
static bool may_be_hidden(struct compare *c, const struct pair *p)
{
    return !store_is_absent(c->syncer->store, syncer_storage(c->syncer, c->id), p->ns, p->name);
}

/* A Service under a name that the admin chose, with a controller of its own (objects/aliases.h).
 * What differs in it is put right as soon as it is seen. */
static bool judge_alias(struct compare *c, struct pair *p)
{
    enum sync_settlement settlement = SETTLE_QUARANTINE;
    struct str uid;

    if (c->id != SYNC_SERVICES ||
        !translate_alias_owner(&c->syncer->tenant, p->host, &p->ns, &p->name, &uid))
        return false;
    sync_alias_settle(c->syncer, c->kind, p->host_name, json_copy(c->kind, p->host), &settlement,
                      &p->ns, &p->name);
    if (settlement == SETTLE_DELETE) {
        report(c, "extra", p, STR("no mapping gives it this name any more, as the record proves"),
               by_us(c));
        if (c->repair) {
            sync_aliases_changed(c->syncer->aliases, p->host_name);
            c->repaired++;
        }
    } else if (settlement == SETTLE_QUARANTINE) {
        report(c, "extra", p, STR("it has a mapping's name, and no record proves it"),
               by_hand(c, p));
    }
    return true;
}

static void judge_host_only(struct compare *c, const cJSON *host)
{
    struct pair p = {.host = host, .host_name = json_str_at(host, "metadata.name")};
    struct syncer *s = c->syncer;
    struct str uid;
    struct mapping m;

    if (judge_alias(c, &p))
        return;
    if (!translate_owner(&s->tenant, host, &p.ns, &p.name, &uid)) {
        if (has_our_label(c, host))
            report(c, "extra", &p,
                   STR("it has this virtual cluster's label, but no name of an object here"),
                   by_hand(c, &p));
        return;
    }
    if (is_token_secret(c, &p)) {
        if (!syncer_has_virtual(s, SYNC_PODS, p.ns, p.name))
            report(c, "extra", &p, STR("the tokens of a pod that does not exist"), by_hand(c, &p));
        return;
    }
    m = sync_mapping_get(s, c->kind, c->id, p.ns, p.name);
    if (sync_quarantine_has(s, c->id, p.host_name)) {
        report(c, "quarantined", &p, STR("no object here, and no record proves it"),
               by_hand(c, &p));
    } else if (sync_mapping_proves(s, c->id, &m, uid) && may_be_hidden(c, &p)) {
        report(c, "damaged", &p, STR("its object here cannot be read, or was lost by damage"),
               STR("delete the object in the virtual cluster, or restore a backup"));
    } else if (sync_mapping_proves(s, c->id, &m, uid)) {
        report(c, "extra", &p, STR("its object here was deleted, as the record proves"), by_us(c));
        add_key(c, &p);
    } else {
        report(c, "extra", &p, STR("no object here, and no record proves it"), by_hand(c, &p));
    }
}

/* --- kind by kind --- */

static void finish(struct compare *c)
{
    struct syncer *s = c->syncer;
    cJSON *answer = json_object(
        c->arena, JSON("findings", c->findings), JSON_I64("checked", (int64_t)c->checked),
        JSON_I64("found", (int64_t)c->found), JSON_I64("repaired", (int64_t)c->repaired));

    c->done(c->ctx, c->err.kind ? STR("") : json_text(c->arena, answer),
            c->err.kind ? &c->err : NULL);
    if (c->kind) {
        map_clear(&c->host);
        arena_free(c->kind);
    }
    c->magic = 0;
    arena_free(c->arena);
    syncer_release(s);
}

static void after_repair(struct compare *c)
{
    if (!c->listed || c->pending)
        return;
    if (c->err.kind)
        finish(c);
    else
        next_kind(c);
}

static void judge_unknown(struct compare *c)
{
    const struct item *i;

    SLIST_FOREACH(i, &c->items, place)
    {
        if (!i->known)
            judge_host_only(c, i->tree);
    }
}

static void judge_some(void *ctx)
{
    struct compare *c = ctx;

    assert(c->magic == COMPARE_MAGIC);
    c->batch = 0;
    if (!store_scan(c->syncer->store, syncer_storage(c->syncer, c->id), STR_NULL, c->after_ns,
                    c->after_name, 0, on_virtual, c, &c->err) &&
        c->batch == BATCH) {
        syncer_defer(c->syncer, judge_some, c);
        return;
    }
    if (!c->err.kind)
        judge_unknown(c);
    c->listed = true;
    after_repair(c);
}

static void on_listed(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct compare *c = ctx;
    cJSON *page = NULL;

    assert(c->magic == COMPARE_MAGIC);
    if (err || json_parse(c->kind, answer->body, &page, &c->err)) {
        if (err)
            err_set(&c->err, err->kind, "%s on the host: %.*s", c->syncer->kinds[c->id].plural,
                    STR_F(err->message));
        finish(c);
        return;
    }
    json_each(tree, json_get(page, "items"))
    {
        struct item *i = ARENA_NEW(c->kind, struct item);

        *i = (struct item){.tree = tree};
        SLIST_INSERT_HEAD(&c->items, i, place);
        if (!map_get(&c->host, json_str_at(tree, "metadata.name")))
            map_put(&c->host, &i->entry, json_str_at(tree, "metadata.name"));
    }
    c->cont = json_str_at(page, "metadata.continue");
    if (c->cont.n)
        list_page(c);
    else
        judge_some(c);
}

/* Of the whole namespace: what stands under our names without our label counts, too. */
static void list_page(struct compare *c)
{
    struct host_request q = {.method = "GET", .timeout_ms = TIMEOUT_MS};

    q.path = arena_printf(c->kind, "%.*s?limit=500%s%.*s",
                          STR_F(sync_path(c->kind, c->syncer, c->id, STR(""), "")),
                          c->cont.n ? "&continue=" : "", STR_F(url_encode(c->kind, c->cont)));
    host_send(c->syncer->host, &q, on_listed, c);
}

/* A configured kind may not be served by the virtual cluster: its definition is the tenant's. */
static bool is_compared(struct syncer *s, enum sync_id id)
{
    const struct sync_kind *kind = &s->kinds[id];

    return kind->maps && registry_find_group_resource(vapi_registry(s->api), str_c(kind->group),
                                                      str_c(kind->plural));
}

static void next_kind(struct compare *c)
{
    if (c->kind) {
        map_clear(&c->host);
        c->kind = arena_free(c->kind);
        c->id++;
    }
    while ((size_t)c->id < c->syncer->n_kinds && !is_compared(c->syncer, c->id))
        c->id++;
    if ((size_t)c->id == c->syncer->n_kinds) {
        finish(c);
        return;
    }
    c->kind = arena_new(0);
    SLIST_INIT(&c->items);
    c->cont = c->after_ns = c->after_name = STR_NULL;
    c->listed = false;
    list_page(c);
}

void syncer_compare_host(struct syncer *s, bool repair, syncer_answer_cb done, void *ctx)
{
    struct arena *a = arena_new(0);
    struct compare *c = ARENA_NEW(a, struct compare);

    *c = (struct compare){.magic = COMPARE_MAGIC,
                          .syncer = s,
                          .arena = a,
                          .repair = repair,
                          .findings = json_new_array(a),
                          .done = done,
                          .ctx = ctx};
    err_init(&c->err, a);
    if (repair)
        sync_fights_clear(s->fights);
    syncer_hold(s);
    next_kind(c);
}
