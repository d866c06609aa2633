/* SPDX-License-Identifier: Apache-2.0 */
/* The kubeconfig of this virtual cluster in Secret `<name>-kubeconfig` of the host namespace, under
 * key `value`, where Cluster API, Flux and Argo CD look for it. Retried until it is written. Must
 * never overwrite a Secret that is not this cluster's.
 *
 *   IDLE --GET, then POST or PATCH--> SENDING --current, or written--> DONE
 *     ^                                 | failed: timer; not ours       | another kubeconfig
 *     '---------------------------------+-------------------------------'
 *   IDLE, DONE --sync_publisher_close()--> CLOSED */

#include "objects/objects.h"
#include "core/leader.h"
#include "core/life.h"
#include <assert.h>

#include <uv.h>

#include <sublet/encode.h>

#define PUBLISHER_MAGIC 0x7075626cu
#define RETRY_MS        5000
#define MANAGER         "sublet"
#define LABEL_MANAGER   "app.kubernetes.io/managed-by"
#define LABEL_INSTANCE  "app.kubernetes.io/instance"

enum publisher_state { PUBLISHER_IDLE, PUBLISHER_SENDING, PUBLISHER_DONE, PUBLISHER_CLOSED };

#define TO(state) (1u << PUBLISHER_##state)
static const unsigned TRANSITIONS[] = {
    [PUBLISHER_IDLE] = TO(SENDING) | TO(CLOSED),
    [PUBLISHER_SENDING] = TO(IDLE) | TO(DONE),
    [PUBLISHER_DONE] = TO(IDLE) | TO(CLOSED),
    [PUBLISHER_CLOSED] = 0,
};

struct publisher {
    unsigned magic;
    enum publisher_state state;
    struct syncer *syncer;
    uv_timer_t timer;
    struct str kubeconfig; /* heap; empty: nothing to publish */
    bool replaced;         /* since the pending requests were made */
};

static void send_read(struct publisher *p);

static void move(struct publisher *p, enum publisher_state to)
{
    assert(TRANSITIONS[p->state] & (1u << to));
    p->state = to;
}

static struct str secret_name(const struct publisher *p, struct arena *a)
{
    return arena_printf(a, "%.*s-kubeconfig", STR_F(p->syncer->config->name));
}

static void on_timer(uv_timer_t *timer)
{
    struct publisher *p = timer->data;

    assert(p->magic == PUBLISHER_MAGIC);
    send_read(p);
}

static void retry(struct publisher *p)
{
    move(p, PUBLISHER_IDLE);
    uv_timer_start(&p->timer, on_timer, RETRY_MS, 0);
}

static void note(struct publisher *p, const char *reason, const char *message, struct str detail)
{
    sync_dialogue_note(p->syncer, "kubeconfig", reason, str_c(message), detail);
}

static void published(struct publisher *p)
{
    note(p, NULL, "", STR_NULL);
    move(p, p->replaced ? PUBLISHER_IDLE : PUBLISHER_DONE);
    send_read(p);
}

static void failed(struct publisher *p, const struct err *err)
{
    note(p, "KubeconfigNotPublished",
         "the Secret with this virtual cluster's kubeconfig cannot be written on the host cluster",
         err->message);
    retry(p);
}

static void on_written(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct publisher *p = ctx;

    (void)answer;
    if (err && (err->kind == &ERR_CONFLICT || err->kind == &ERR_ALREADY_EXISTS))
        retry(p); /* written concurrently: whose it is by now is to be read */
    else if (err)
        failed(p, err);
    else
        published(p);
}

/* Only this version of one that exists: another may be of another owner. */
static void name_version(struct arena *a, cJSON *metadata, const cJSON *existing)
{
    json_set_str(a, metadata, "uid", sync_uid(existing));
    json_set_str(a, metadata, "resourceVersion", json_str_at(existing, "metadata.resourceVersion"));
}

/* existing: NULL for none. */
static void write_secret(struct publisher *p, const cJSON *existing)
{
    bool exists = existing != NULL;
    struct arena *a = arena_new(0);
    struct host_request q = {.method = exists ? "PATCH" : "POST"};
    cJSON *secret = json_new_object(a), *metadata = json_ensure_object(a, secret, "metadata");
    cJSON *labels = json_ensure_object(a, metadata, "labels");
    cJSON *notes = json_ensure_object(a, metadata, "annotations");

    json_set_str(a, secret, "apiVersion", STR("v1"));
    json_set_str(a, secret, "kind", STR("Secret"));
    json_set_str(a, metadata, "name", secret_name(p, a));
    json_set_str(a, labels, LABEL_MANAGER, STR(MANAGER));
    json_set_str(a, labels, LABEL_INSTANCE, p->syncer->config->name);
    json_set_str(a, notes, NOTE_CLUSTER, p->syncer->tenant.cluster_uid);
    json_set_str(a, notes, ANNOTATION_EPOCH, p->syncer->tenant.epoch);
    if (exists)
        name_version(a, metadata, existing);
    json_set_str(a, json_ensure_object(a, secret, "data"), "value",
                 base64_encode(a, p->kubeconfig));
    if (exists)
        q.content_type = "application/merge-patch+json";
    q.path = sync_path(a, p->syncer, SYNC_SECRETS, exists ? secret_name(p, a) : STR(""), "");
    q.body = json_text(a, secret);
    host_send(p->syncer->host, &q, on_written, p);
    arena_free(a);
}

static struct str note_of(const cJSON *secret, const char *key)
{
    return json_str(json_get(json_path(secret, "metadata.annotations"), key));
}

/* A later epoch's is not. Another cluster's, of an earlier epoch, is from one that had this name
 * before, if the Lease of the name is ours. Earlier versions wrote no annotations. */
static bool is_ours(const struct publisher *p, const cJSON *secret)
{
    const cJSON *labels = json_path(secret, "metadata.labels");
    struct str cluster = note_of(secret, NOTE_CLUSTER);

    if (!str_eqc(json_str(json_get(labels, LABEL_MANAGER)), MANAGER) ||
        !str_eq(json_str(json_get(labels, LABEL_INSTANCE)), p->syncer->config->name) ||
        !sync_life_owns(p->syncer, secret))
        return false;
    return !cluster.n || str_eq(cluster, p->syncer->tenant.cluster_uid) ||
           sync_lease_state(p->syncer->lease) == LEASE_HELD;
}

static bool is_current(const struct publisher *p, struct arena *a, const cJSON *secret)
{
    return str_eq(json_str_at(secret, "data.value"), base64_encode(a, p->kubeconfig)) &&
           str_eq(note_of(secret, NOTE_CLUSTER), p->syncer->tenant.cluster_uid) &&
           str_eq(note_of(secret, ANNOTATION_EPOCH), p->syncer->tenant.epoch);
}

static void take_existing(struct publisher *p, struct str body)
{
    struct arena *a = arena_new(0);
    cJSON *secret = NULL;

    if (json_parse(a, body, &secret, NULL)) {
        retry(p);
    } else if (!is_ours(p, secret)) {
        note(p, "KubeconfigSecretExists",
             "the Secret for this virtual cluster's kubeconfig exists on the host cluster and is "
             "not this virtual cluster's",
             secret_name(p, a));
        move(p, PUBLISHER_IDLE);
    } else if (is_current(p, a, secret)) {
        published(p);
    } else {
        write_secret(p, secret);
    }
    arena_free(a);
}

static void on_read(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct publisher *p = ctx;

    assert(p->magic == PUBLISHER_MAGIC);
    if (!err)
        take_existing(p, answer->body);
    else if (err->kind == &ERR_NOT_FOUND)
        write_secret(p, NULL);
    else
        failed(p, err);
}

static void send_read(struct publisher *p)
{
    struct arena *a;
    struct host_request q = {.method = "GET"};

    if (p->state != PUBLISHER_IDLE || !p->kubeconfig.n || !sync_lease_may_act(p->syncer->lease))
        return;
    move(p, PUBLISHER_SENDING);
    p->replaced = false;
    a = arena_new(0);
    q.path = sync_path(a, p->syncer, SYNC_SECRETS, secret_name(p, a), "");
    host_send(p->syncer->host, &q, on_read, p);
    arena_free(a);
}

void syncer_publish_kubeconfig(struct syncer *s, struct str kubeconfig)
{
    struct publisher *p = s->publisher;

    mem_free(p->kubeconfig.p);
    p->kubeconfig = mem_str(kubeconfig);
    p->replaced = true;
    if (p->state == PUBLISHER_DONE)
        move(p, PUBLISHER_IDLE);
    send_read(p);
}

void sync_publisher_kick(struct publisher *p)
{
    send_read(p);
}

struct publisher *sync_publisher_new(struct syncer *s)
{
    struct publisher *p = NEW(struct publisher);

    *p = (struct publisher){.magic = PUBLISHER_MAGIC, .syncer = s};
    uv_timer_init(vapi_loop(s->api), &p->timer);
    p->timer.data = p;
    return p;
}

static void on_closed(uv_handle_t *handle)
{
    struct publisher *p = handle->data;

    mem_free(p->kubeconfig.p);
    p->magic = 0;
    mem_free(p);
}

void sync_publisher_close(struct publisher *p)
{
    move(p, PUBLISHER_CLOSED); /* asserts that no request is pending */
    uv_close((uv_handle_t *)&p->timer, on_closed);
}
