/* SPDX-License-Identifier: Apache-2.0 */
/* Stored objects that cannot be read keep their key and their bytes: they are reported, answered
 * with an error, and can be deleted. Must never show the contents of such an object. */
#include "quarantine.h"

#include <sublet/clock.h>
#include <sublet/json_build.h>
#include <sublet/kinds.h>
#include <sublet/notice.h>
#include <sublet/store_quarantine.h>

const struct store_object *quarantine_of(const struct call *c)
{
    if (!c->resource->storage || !c->name.n)
        return NULL;
    return store_quarantined(vapi_store(c->api), c->resource->storage, c->ns, c->name);
}

/* A version that the store lost has no bytes; any other has damaged ones. */
static const char *why_of(struct str resource, const struct store_object *o)
{
    const char *why = o->bytes.n ? kinds_stored_problem(resource, o) : "its row is damaged";

    return why ? why : "it cannot be decoded";
}

int quarantine_refuse(const struct call *c, const struct store_object *o, struct err *err)
{
    const char *why = why_of(store_resource_name(vapi_store(c->api), o->resource), o);

    return err_set(err, &ERR_STORE_READ,
                   "failed to read %.*s \"%.*s\" from the storage: %s; it can only be deleted",
                   STR_F(c->resource->group_resource), STR_F(c->name), why);
}

cJSON *quarantine_stand_in(struct arena *a, const struct resource *r, const struct store_object *o)
{
    return json_object(
        a, JSON("kind", r->kind), JSON("apiVersion", r->storage_version),
        JSON("metadata", json_object(a, JSON("name", o->name), JSON_NONEMPTY("namespace", o->ns),
                                     JSON("uid", o->uid))));
}

static struct str subject_of(struct arena *a, struct str resource, struct str ns, struct str name)
{
    return arena_printf(a, "%.*s %.*s%s%.*s", STR_F(resource), STR_F(ns), ns.n ? "/" : "",
                        STR_F(name));
}

static bool report_one(void *ctx, const struct store_object *o)
{
    struct vapi *api = ctx;
    struct arena *a = arena_new(0);
    struct str resource = store_resource_name(vapi_store(api), o->resource);
    const struct resource *r = registry_by_storage(vapi_registry(api), o->resource);
    struct vapi_notice n = {
        .topic = NOTICE_STORED_OBJECT,
        .subject = subject_of(a, resource, o->ns, o->name),
        .reason = "StoredObjectUnreadable",
        .involved = r ? json_object(a, JSON("kind", r->kind),
                                    JSON("apiVersion", r->storage_version), JSON("name", o->name),
                                    JSON_NONEMPTY("namespace", o->ns), JSON("uid", o->uid))
                      : NULL,
    };

    n.message = arena_printf(a,
                             "%.*s is stored but cannot be read: %s; it is not served and can only "
                             "be deleted",
                             STR_F(n.subject), why_of(resource, o));
    vapi_notice(api, &n);
    arena_free(a);
    return true;
}

static void report_damage(struct vapi *api, bool is, const char *subject, const char *reason,
                          const char *message)
{
    struct vapi_notice n = {.topic = NOTICE_STORED_OBJECT,
                            .subject = str_c(subject),
                            .reason = reason,
                            .message = str_c(message)};

    if (is)
        vapi_notice(api, &n);
}

/* What is over, and may be reported by several starts. */
static void report_made_good(struct vapi *api, const struct store_damage *d)
{
    struct arena *a = arena_new(0);
    const char *at = arena_printf(a, " (found at %.*s)", STR_F(time_format_s(a, d->reported_at))).p;
    const struct {
        bool is;
        const char *subject, *reason, *message;
    } made_good[] = {
        {d->salvaged, "store file", "StoreSalvaged",
         "the file of the store was damaged and was rebuilt from its readable parts; "
         "the damaged file is kept as state.db.damaged, once the disk takes writes"},
        {d->log_missing, "store log", "StoreLogMissing",
         "the log of the store, state.db-wal, was missing, and the newest writes may be "
         "lost with it: it continues as a restored store, once the disk takes writes"},
        {d->log, "store log", "StoreLogLost",
         "the log of the store was damaged, or that of another file, and the newest writes are "
         "lost: it continues as a restored store; the log is kept as state.db-wal.damaged"},
        {d->own_account, "store identity", "StoreIdentityLost",
         "the identity of the store was damaged: it continues as a restored store"},
    };

    for (size_t i = 0; i < COUNT(made_good); i++)
        report_damage(api, made_good[i].is, made_good[i].subject, made_good[i].reason,
                      arena_printf(a, "%s%s", made_good[i].message, at).p);
    arena_free(a);
}

/* Reports damage beyond the named objects. */
static void report_store(struct vapi *api)
{
    struct store_damage d;

    store_damage(vapi_store(api), &d);
    report_damage(
        api, d.nameless, "store nameless", "StoredObjectLost",
        "stored objects are damaged and their names unknown; a request for one is refused "
        "unless it deletes it");
    report_damage(api, d.records, "store records", "StoredRecordLost",
                  "records of the cluster's own book-keeping are damaged or missing");
    report_damage(api, d.unattributed, "store rows", "StoreDamaged",
                  "rows of the store are damaged and it is unknown what they were: nothing is "
                  "deleted because its owner is missing");
    report_damage(api, d.history, "store history", "StoreHistoryLost",
                  "events were damaged: the history restarts and watchers list again");
    report_damage(api, d.copies_full, "store copies", "StoreCopiesFull",
                  "nine copies of damaged files are kept beside the store: the next one replaces "
                  "the newest, which ends in .damaged.9; move them elsewhere");
    report_made_good(api, &d);
}

#define REBUILD_SUBJECT "store rebuild"

static void on_rebuilt(void *ctx, const struct err *err)
{
    struct vapi *api = ctx;
    struct arena *a = arena_new(0);

    if (err) {
        struct str why = arena_printf(a,
                                      "the file of the store is damaged and could not be rebuilt; "
                                      "writes fail: %.*s",
                                      STR_F(err->message));
        report_damage(api, true, REBUILD_SUBJECT, "StoreRebuildFailed", why.p);
    } else {
        vapi_notice_over(api, NOTICE_STORED_OBJECT, STR(REBUILD_SUBJECT));
        report_store(api);
    }
    arena_free(a);
}

void quarantine_report(struct vapi *api)
{
    store_scan_quarantined(vapi_store(api), 0, STR_NULL, report_one, api);
    report_store(api);
    store_on_rebuilt(vapi_store(api), on_rebuilt, api);
}

void quarantine_unwatch(struct vapi *api)
{
    store_on_rebuilt(vapi_store(api), NULL, NULL);
}

void quarantine_over(struct vapi *api, const struct resource *r, struct str ns, struct str name)
{
    struct arena *a = arena_new(0);
    struct str resource = store_resource_name(vapi_store(api), r->storage);
    const struct vapi_hooks *h = vapi_get_hooks(api);

    vapi_notice_over(api, NOTICE_STORED_OBJECT, subject_of(a, resource, ns, name));
    arena_free(a);
    if (h->quarantine_over)
        h->quarantine_over(h->ctx);
}
