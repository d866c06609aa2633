/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant may read of the kubelet of a node it is shown: a table of endpoints, each cut to
 * the tenant's own pods. A host object counts as the tenant's when it carries its uid and both are
 * on record. Must never forward a path, a query or a byte of a request that is not in the table,
 * show what was not read and written again, or hold more than a limit of an answer. */

#include "core/mapping.h"
#include "nodes/nodes.h"
#include "streams/streams.h"

#include <assert.h>

#include <sublet/encode.h>
#include <sublet/proxy.h>
#include <sublet/translate_kubelet.h>

#define KUBELET_MAGIC 0x6b75626cu
#define DOCUMENT_MAX  (16u * 1024 * 1024) /* bytes read of JSON */
#define METRICS_MAX   (128u * 1024 * 1024)
#define HEALTH_MAX    4096
#define NAMES_MAX     1024 /* of pods and claims, per request */

typedef cJSON *(*translate_cb)(struct arena *a, const struct kubelet_view *v, const cJSON *from);

static const struct endpoint {
    const char *path; /* as it is forwarded */
    size_t limit;
    translate_cb translate; /* of a document; NULL: a stream */
    bool health;            /* its words and its status are shown as they are */
} ENDPOINTS[] = {
    {"/stats/summary", DOCUMENT_MAX, translate_kubelet_summary, false},
    {"/pods", DOCUMENT_MAX, translate_kubelet_pods, false},
    {"/runningpods/", DOCUMENT_MAX, translate_kubelet_running, false},
    {"/metrics", METRICS_MAX, NULL, false},
    {"/metrics/cadvisor", METRICS_MAX, NULL, false},
    {"/metrics/probes", METRICS_MAX, NULL, false},
    {"/metrics/resource", METRICS_MAX, NULL, false},
    {"/healthz", HEALTH_MAX, NULL, true},
};

/* A reason for those that clients know; all others are refused without one. */
static const struct {
    const char *path, *why;
} REFUSED[] = {
    {"/configz", "the configuration of a node belongs to the host cluster"},
    {"/logs", "the logs of a node belong to the host cluster"},
    {"/containerLogs", "logs are read by pods/log"},
    {"/exec", "commands are run by pods/exec"},
    {"/run", "commands are run by pods/exec"},
    {"/attach", "containers are attached to by pods/attach"},
    {"/portForward", "ports are forwarded by pods/portforward"},
};

struct kubelet {
    unsigned magic;
    struct syncer *syncer;
    const struct endpoint *endpoint;
    struct str node;
    struct arena *arena; /* own: it holds the virtual objects and the document */
    struct kubelet_view view;
    struct series_filter *series;
    struct buf document;
    size_t n_bytes;
    struct seen {
        struct seen *next;
        enum kubelet_kind kind;
        struct str host_name, host_uid;
        const cJSON *own;
    } *seen;
    size_t n_seen;
};

/* --- whose host object it is --- */

static const cJSON *prove(struct kubelet *k, enum sync_id id, struct str host_name, struct str *uid)
{
    struct syncer *s = k->syncer;
    const struct host_object *o = reflector_get(s->watches[id].reflector, host_name);
    struct str ns, name, owner;
    struct mapping m;
    cJSON *tree = NULL, *own;

    if (!o || json_parse(k->arena, o->bytes, &tree, NULL) ||
        !translate_owner(&s->tenant, tree, &ns, &name, &owner))
        return NULL;
    *uid = sync_uid(tree);
    m = sync_mapping_get(s, k->arena, id, ns, name);
    if (!m.exists || !str_eq(m.uid, owner) || !str_eq(m.host_uid, *uid))
        return NULL;
    own = syncer_virtual(s, k->arena, id, ns, name);
    return own && str_eq(sync_uid(own), owner) ? own : NULL;
}

/* Each name is proved once per request. Names of others are not in the cache of host objects. */
static const cJSON *own(void *ctx, enum kubelet_kind kind, struct str host_name,
                        struct str host_uid)
{
    struct kubelet *k = ctx;
    struct seen *one = k->seen;

    while (one && (one->kind != kind || !str_eq(one->host_name, host_name)))
        one = one->next;
    if (!one) {
        if (k->n_seen++ >= NAMES_MAX)
            return NULL;
        one = ARENA_NEW(k->arena, struct seen);
        *one = (struct seen){.next = k->seen, .kind = kind};
        one->host_name = arena_str(k->arena, host_name);
        one->own =
            prove(k, kind == KUBELET_POD ? SYNC_PODS : SYNC_CLAIMS, host_name, &one->host_uid);
        k->seen = one;
    }
    if (host_uid.n && !str_eq(one->host_uid, host_uid))
        return NULL;
    return one->own;
}

/* --- which endpoint --- */

static bool is_path(struct str path, const char *wanted)
{
    struct str w = str_c(wanted);

    if (str_has_suffix(w, STR("/")))
        w.n--;
    return str_has_prefix(path, w) && (path.n == w.n || (path.n == w.n + 1 && path.p[w.n] == '/'));
}

static bool is_below(struct str path, const char *wanted)
{
    struct str w = str_c(wanted);

    return str_has_prefix(path, w) && (path.n == w.n || path.p[w.n] == '/');
}

static int refuse_path(const struct proxy_request *r, struct err *err)
{
    const char *why = "only its statistics, metrics and pods are served";

    for (size_t i = 0; i < COUNT(REFUSED); i++) {
        if (is_below(r->path, REFUSED[i].path))
            why = REFUSED[i].why;
    }
    return err_forbidden(err, STR(""), STR("nodes"), r->name, "%s %.*s of its kubelet: %s",
                         r->method, STR_F(r->path.n ? r->path : STR("/")), why);
}

static int find_endpoint(const struct proxy_request *r, const struct endpoint **ret,
                         struct err *err)
{
    *ret = NULL;
    for (size_t i = 0; i < COUNT(ENDPOINTS); i++) {
        if (is_path(r->path, ENDPOINTS[i].path))
            *ret = &ENDPOINTS[i];
    }
    if (!*ret || !str_eqc(str_c(r->method), "GET") || r->port.n || r->scheme.n)
        return refuse_path(r, err);
    return 0;
}

struct kubelet *sync_kubelet_new(struct syncer *s, const struct proxy_request *r, struct err *err)
{
    const struct endpoint *endpoint;
    struct kubelet *k;

    if (find_endpoint(r, &endpoint, err))
        return NULL;
    if (sync_nodes_meaning(s->nodes, r->name) != NODE_SHOWN) {
        (void)!err_not_found(err, STR(""), STR("nodes"), r->name);
        return NULL;
    }
    k = NEW(struct kubelet);
    *k = (struct kubelet){.magic = KUBELET_MAGIC,
                          .syncer = s,
                          .endpoint = endpoint,
                          .arena = arena_new(0),
                          .document = BUF_INIT(DOCUMENT_MAX)};
    k->node = arena_str(k->arena, r->name);
    k->view = (struct kubelet_view){&s->tenant, own, k, s->config->metrics_whole_nodes};
    if (!endpoint->translate && !endpoint->health)
        k->series = series_filter_new(&k->view);
    return k;
}

struct kubelet *sync_kubelet_free(struct kubelet *k)
{
    if (!k)
        return NULL;
    assert(k->magic == KUBELET_MAGIC);
    series_filter_free(k->series);
    buf_fini(&k->document);
    arena_free(k->arena);
    k->magic = 0;
    return mem_free(k);
}

struct str sync_kubelet_path(const struct kubelet *k)
{
    return arena_printf(k->arena, "/api/v1/nodes/%.*s/proxy%s",
                        STR_F(url_encode(k->arena, k->node)), k->endpoint->path);
}

/* --- its answer --- */

bool sync_kubelet_accepts(const struct kubelet *k, int status)
{
    return status == 200 || (k->endpoint->health && status == 500);
}

int sync_kubelet_refuse(const struct kubelet *k, struct err *err)
{
    return err_set(err, &ERR_UNAVAILABLE,
                   "the kubelet of node \"%.*s\" gave no answer that can be "
                   "shown",
                   STR_F(k->node));
}

bool sync_kubelet_is_document(const struct kubelet *k)
{
    return k->endpoint->translate;
}

struct str sync_kubelet_type(const struct kubelet *k)
{
    if (k->endpoint->translate)
        return STR("application/json");
    return k->series ? STR("text/plain; version=0.0.4; charset=utf-8")
                     : STR("text/plain; charset=utf-8");
}

bool sync_kubelet_data(struct kubelet *k, struct str bytes, struct buf *out)
{
    assert(k->magic == KUBELET_MAGIC);
    k->n_bytes += bytes.n;
    if (k->n_bytes > k->endpoint->limit)
        return false;
    if (k->series)
        series_filter_add(k->series, bytes, out);
    else
        buf_add(k->endpoint->translate ? &k->document : out, bytes);
    return true;
}

bool sync_kubelet_end(struct kubelet *k, struct buf *out)
{
    cJSON *tree = NULL, *shown;

    if (k->series)
        series_filter_end(k->series, out);
    if (!k->endpoint->translate)
        return true;
    if (json_parse(k->arena, buf_str(&k->document), &tree, NULL))
        return false;
    shown = k->endpoint->translate(k->arena, &k->view, tree);
    if (shown)
        buf_add(out, json_text(k->arena, shown));
    return shown;
}
