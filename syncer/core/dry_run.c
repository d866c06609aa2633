/* SPDX-License-Identifier: Apache-2.0 */
/* Dry runs of host objects, for verdicts and for a tenant's own dry runs. Objects that differ by
 * name only share one request, and its answer while that is fresh. Must never cache a failure to
 * answer (no connection, a deadline), nor delay a write: dry runs have a rate of their own
 * (host/client.c).
 *
 *   sent -> PENDING (identical ones wait for it) -- 2xx, a refusal --> fresh until it expires
 *                                                '- no answer -------> dropped at once */
#include "core/dry_run.h"

#include "core/kept.h"
#include "core/run.h"

#include <assert.h>
#include <stdio.h>
#include <sys/queue.h>

#include <sublet/encode.h>

#define DRY_MAGIC   0x64727972u
#define ADMITTED_MS 10000
#define REFUSED_MS  3000 /* a quota may have room again */
#define ENTRIES_MAX 256
#define MESSAGE_MAX 2048
#define BODY_MAX    16384 /* a longer answer is cached without its body */
#define DIGEST      53
/* plugin/pkg/admission/serviceaccount of Kubernetes */
#define TOKEN_VOLUME "kube-api-access-"
#define TOKEN_SUFFIX 5

struct waiter {
    SLIST_ENTRY(waiter) place;
    dry_run_cb done;
    void *ctx;
};

struct dry_answer {
    const struct err_kind *kind; /* NULL: admitted */
    struct str message, body, dropped;
    bool changes_pod;
    char host_name[64]; /* metadata.name of the dry run */
};

struct entry {
    unsigned magic;
    TAILQ_ENTRY(entry) place; /* in order of arrival */
    struct dry_runs *all;
    bool pending;
    enum dry_run_patience patience; /* of the caller that sent it */
    SLIST_HEAD(, waiter) waiters;
    int64_t until_ms;
    struct str sent;          /* while it is pending; heap */
    struct dry_answer answer; /* heap */
    char digest[DIGEST];
};

TAILQ_HEAD(entries, entry);

struct dry_runs {
    struct syncer *syncer;
    struct entries entries;
    size_t n;
};

/* --- recent dry runs --- */

static int64_t now_ms(const struct dry_runs *d)
{
    return clock_mono_ms(vapi_clock(d->syncer->api));
}

static void drop(struct entry *e)
{
    TAILQ_REMOVE(&e->all->entries, e, place);
    e->all->n--;
    mem_free(e->answer.message.p);
    mem_free(e->answer.body.p);
    mem_free(e->answer.dropped.p);
    mem_free(e->sent.p);
    e->magic = 0;
    mem_free(e);
}

/* Drops expired answers, and the oldest when there are too many; or all. */
static void sweep(struct dry_runs *d, bool all)
{
    int64_t now = now_ms(d);

    for (struct entry *e = TAILQ_FIRST(&d->entries), *next; e; e = next) {
        next = TAILQ_NEXT(e, place);
        if (!e->pending && (all || e->until_ms <= now || d->n >= ENTRIES_MAX))
            drop(e);
    }
}

/* A write does not wait for a pending dry run of lower priority. */
static struct entry *find(const struct dry_runs *d, const char *digest,
                          enum dry_run_patience patience)
{
    struct entry *e = TAILQ_FIRST(&d->entries);

    while (e && (!str_eqc(str_c(e->digest), digest) || (e->pending && e->patience > patience)))
        e = TAILQ_NEXT(e, place);
    return e;
}

void sync_dry_runs_forget(struct dry_runs *d)
{
    sweep(d, true);
}

/* --- the digest: equal for objects that differ by name only --- */

/* Removes every occurrence of word, and `more` characters after each. */
static struct str without(struct arena *a, struct str text, struct str word, size_t more)
{
    struct buf b = BUF_INIT(0);
    struct str ret;

    for (size_t i = 0; i < text.n;) {
        if (word.n && text.n - i >= word.n + more && str_eq((struct str){text.p + i, word.n}, word))
            i += word.n + more;
        else
            buf_char(&b, text.p[i++]);
    }
    ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return ret;
}

/* Of the object without its names, wherever they occur, its owner annotations, and the random name
 * of its token volume. A patch belongs to the one pod whose uid it has. */
static void digest_of(struct arena *a, const struct syncer *s, const struct dry_run *q,
                      char out[DIGEST])
{
    static const char *const own[] = {ANNOTATION_NAME, ANNOTATION_UID};
    cJSON *shape = json_copy(a, q->object), *metadata = json_get(shape, "metadata");
    struct str name = json_str_at(q->object, "metadata.name"), text;
    const char *verb = q->resizes.n ? "resize" : "create";
    unsigned char digest[32];

    for (size_t i = 0; i < COUNT(own); i++)
        json_remove(json_get(metadata, "annotations"), own[i]);
    json_remove(metadata, "name");
    json_remove(json_get(shape, "spec"), "hostname");
    text = without(a, without(a, json_text(a, shape), name, 0), q->also_named, 0);
    text = without(a, text, STR(TOKEN_VOLUME), TOKEN_SUFFIX);
    sha256(arena_printf(a, "%s %s %.*s", verb, s->kinds[q->id].record, STR_F(text)), digest);
    base32_lower(digest, sizeof(digest), out, DIGEST - 1);
    out[DIGEST - 1] = 0;
}

/* --- answers --- */

static void deliver(const struct dry_answer *answer, dry_run_cb done, void *ctx)
{
    struct arena *a = arena_new(0);
    struct err err;

    err_init(&err, a);
    if (answer->kind)
        err_set(&err, answer->kind, "%.*s", STR_F(answer->message));
    done(ctx,
         &(struct dry_result){str_c(answer->host_name), answer->body, answer->dropped,
                              answer->changes_pod},
         answer->kind ? &err : NULL);
    arena_free(a);
}

/* The host would give the same answer for the same object again. */
static bool is_decided(const struct err *err)
{
    return err->kind == &ERR_FORBIDDEN || err->kind == &ERR_INVALID ||
           err->kind == &ERR_BAD_REQUEST;
}

/* Compared with what this dry run sent: a later object that shares the answer has other random
 * names. */
static void note_dropped(struct entry *e, struct str body)
{
    struct arena *a = arena_new(0);
    cJSON *sent = NULL, *got = NULL;
    struct dropped d;

    if (!json_parse(a, e->sent, &sent, NULL) && !json_parse(a, body, &got, NULL)) {
        sync_dropped(a, sent, got, &d);
        e->answer.dropped = mem_str(sync_dropped_text(a, &d));
        e->answer.changes_pod = sync_dropped_changes_pod(&d);
    }
    arena_free(a);
}

static void on_answer(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct entry *e = ctx;
    struct waiter *w;

    assert(e->magic == DRY_MAGIC && e->pending);
    e->answer.kind = err ? err->kind : NULL;
    if (err)
        e->answer.message = mem_str(str_sub(err->message, 0, MESSAGE_MAX));
    else if (answer->body.n <= BODY_MAX)
        e->answer.body = mem_str(answer->body);
    if (!err)
        note_dropped(e, answer->body);
    mem_free(e->sent.p);
    e->sent = STR_NULL;
    while ((w = SLIST_FIRST(&e->waiters))) { /* a callback may add more */
        SLIST_REMOVE_HEAD(&e->waiters, place);
        deliver(&e->answer, w->done, w->ctx);
        mem_free(w);
    }
    e->pending = false;
    e->until_ms = now_ms(e->all) + (err ? REFUSED_MS : ADMITTED_MS);
    if (err && !is_decided(err))
        drop(e);
}

/* A cached answer is delivered from the loop, too. */
struct later {
    struct dry_answer answer;
    dry_run_cb done;
    void *ctx;
};

static void on_later(void *ctx)
{
    struct later *l = ctx;

    deliver(&l->answer, l->done, l->ctx);
}

static void answer_later(struct syncer *s, struct arena *a, const struct dry_answer *answer,
                         dry_run_cb done, void *ctx)
{
    struct later *l = ARENA_NEW(a, struct later);

    *l = (struct later){*answer, done, ctx};
    l->answer.message = arena_str(a, answer->message);
    l->answer.body = arena_str(a, answer->body);
    l->answer.dropped = arena_str(a, answer->dropped);
    syncer_defer(s, on_later, l);
}

/* A right that this process lacks says nothing about the object. */
bool sync_dry_run_refused(const struct err *err)
{
    return is_decided(err) && !translate_refusal_is_of_rights(err);
}

/* --- sending --- */

static void wait_with(struct entry *e, dry_run_cb done, void *ctx)
{
    struct waiter *w = NEW(struct waiter);

    *w = (struct waiter){.done = done, .ctx = ctx};
    SLIST_INSERT_HEAD(&e->waiters, w, place);
}

/* A create goes under a random name: the real one may still belong to a terminating predecessor. */
static struct entry *entry_new(struct dry_runs *d, const struct dry_run *q, const char *digest)
{
    struct entry *e = NEW(struct entry);
    char suffix[11];

    *e = (struct entry){.magic = DRY_MAGIC, .all = d, .pending = true};
    for (size_t i = 0; i < DIGEST; i++)
        e->digest[i] = digest[i];
    rng_suffix(vapi_rng(d->syncer->api), suffix, sizeof(suffix) - 1);
    if (q->resizes.n)
        snprintf(e->answer.host_name, sizeof(e->answer.host_name), "%.*s", STR_F(q->resizes));
    else
        snprintf(e->answer.host_name, sizeof(e->answer.host_name), "verdict-%s", suffix);
    TAILQ_INSERT_TAIL(&d->entries, e, place);
    d->n++;
    return e;
}

static void send(struct entry *e, struct arena *a, const struct dry_run *q)
{
    struct syncer *s = e->all->syncer;
    struct host_request request = {.method = "POST",
                                   .timeout_ms = q->timeout_ms,
                                   .urgent = q->patience != DRY_RUN_PATIENT,
                                   .dry_run = true};
    cJSON *object = json_copy(a, q->object);

    if (q->resizes.n) {
        request.method = "PATCH";
        request.content_type = "application/strategic-merge-patch+json";
        request.path = sync_path(a, s, q->id, q->resizes, "/resize?dryRun=All");
    } else {
        json_set_str(a, json_ensure_object(a, object, "metadata"), "name",
                     str_c(e->answer.host_name));
        request.path = sync_path(a, s, q->id, STR(""), "?dryRun=All");
    }
    request.body = json_text(a, object);
    e->sent = mem_str(request.body);
    host_send(s->host, &request, on_answer, e);
}

void sync_dry_run_send(struct syncer *s, struct arena *a, const struct dry_run *q, dry_run_cb done,
                       void *ctx)
{
    static const struct dry_answer none = {.kind = &ERR_TOO_MANY_REQUESTS,
                                           .message = {"no turn", 7}};
    struct dry_runs *d = s->dry_runs;
    char digest[DIGEST];
    struct entry *e;

    sweep(d, false);
    digest_of(a, s, q, digest);
    e = find(d, digest, q->patience);
    if (e && !e->pending) {
        answer_later(s, a, &e->answer, done, ctx);
    } else if (e) {
        wait_with(e, done, ctx);
    } else if (q->patience == DRY_RUN_NOW && !host_has_dry_turn(s->host)) {
        answer_later(s, a, &none, done, ctx);
    } else {
        e = entry_new(d, q, digest);
        e->patience = q->patience;
        wait_with(e, done, ctx);
        send(e, a, q);
    }
}

/* --- life --- */

struct dry_runs *sync_dry_runs_new(struct syncer *s)
{
    struct dry_runs *d = NEW(struct dry_runs);

    d->syncer = s;
    TAILQ_INIT(&d->entries);
    return d;
}

struct dry_runs *sync_dry_runs_free(struct dry_runs *d)
{
    if (!d)
        return NULL;
    sync_dry_runs_forget(d);
    assert(TAILQ_EMPTY(&d->entries)); /* the host answered everything before it closed */
    mem_free(d);
    return NULL;
}
