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
#include <sublet/hash.h>
#include <sublet/proxy.h>
#include <sublet/translate_kubelet.h>

#define KUBELET_MAGIC 0x6b75626cu
#define DOCUMENT_MAX  (16u * 1024 * 1024) /* bytes read of JSON */
#define METRICS_MAX   (128u * 1024 * 1024)
#define HEALTH_MAX    4096
#define NAMES_MAX     4096 /* of pods and claims, per request */
#define MEMORY_MAX    ((size_t)256 * 1024 * 1024)

typedef cJSON *(*translate_cb)(struct arena *a, const struct kubelet_view *v, const cJSON *from);

static const struct endpoint {
    const char *path; /* as it is forwarded */
    size_t limit;
    translate_cb translate; /* of a document; NULL: a stream */
    bool health;            /* of its answer only the status counts */
    bool query;             /* options that vapi let through are for it */
} ENDPOINTS[] = {
    {"/stats/summary", DOCUMENT_MAX, translate_kubelet_summary, false, true},
    {"/pods", DOCUMENT_MAX, translate_kubelet_pods, false, false},
    {"/runningpods/", DOCUMENT_MAX, translate_kubelet_running, false, false},
    {"/metrics", METRICS_MAX, NULL, false, false},
    {"/metrics/cadvisor", METRICS_MAX, NULL, false, false},
    {"/metrics/probes", METRICS_MAX, NULL, false, false},
    {"/metrics/resource", METRICS_MAX, NULL, false, false},
    {"/healthz", HEALTH_MAX, NULL, true, false},
};

/* A reason for those that clients know; all others are refused without one. */
static const struct {
    const char *path, *why;
} REFUSED[] = {
    {"/configz", "the configuration of a node belongs to the host cluster"},
    {"/logs", "the logs of a node belong to the host cluster"},
    {"/exec", "commands are run by pods/exec"},
    {"/run", "commands are run by pods/exec"},
    {"/attach", "containers are attached to by pods/attach"},
    {"/portForward", "ports are forwarded by pods/portforward"},
};

struct kubelet {
    unsigned magic;
    struct syncer *syncer;
    const struct endpoint *endpoint;
    struct str node, query;
    struct arena *arena; /* own: it holds the virtual objects and the document */
    struct kubelet_view view;
    struct series_filter *series;
    struct buf document;
    size_t n_bytes;
    struct map seen[2]; /* struct seen by host name, of each kind */
    bool over;          /* more names than are proved, or more memory than a request has */
};

struct seen {
    struct map_entry entry;
    struct str host_uid;
    const cJSON *own;
};

/* --- whose host object it is --- */

const cJSON *sync_streams_prove(struct syncer *s, struct arena *a, enum sync_id id,
                                struct str host_name, struct str *uid)
{
    const struct host_object *o = reflector_get(s->watches[id].reflector, host_name);
    struct arena *scratch = arena_new(0);
    struct str ns, name, owner;
    struct mapping m;
    cJSON *tree = NULL, *own = NULL;

    if (o && !json_parse(scratch, o->bytes, &tree, NULL) &&
        translate_owner(&s->tenant, tree, &ns, &name, &owner)) {
        *uid = arena_str(a, sync_uid(tree));
        m = sync_mapping_get(s, scratch, id, ns, name);
        if (m.exists && str_eq(m.uid, owner) && str_eq(m.host_uid, *uid))
            own = syncer_virtual(s, a, id, ns, name);
        if (own && !str_eq(sync_uid(own), owner))
            own = NULL;
    }
    arena_free(scratch);
    return own;
}

static struct seen *see(struct kubelet *k, enum kubelet_kind kind, struct str host_name)
{
    struct seen *one = ARENA_NEW(k->arena, struct seen);

    one->own =
        sync_streams_prove(k->syncer, k->arena, kind == KUBELET_POD ? SYNC_PODS : SYNC_CLAIMS,
                           host_name, &one->host_uid);
    map_put(&k->seen[kind], &one->entry, arena_str(k->arena, host_name));
    return one;
}

/* Each name is proved once per request. Names of others are not in the cache of host objects. */
static const cJSON *own(void *ctx, enum kubelet_kind kind, struct str host_name,
                        struct str host_uid)
{
    struct kubelet *k = ctx;
    struct map_entry *e = map_get(&k->seen[kind], host_name);
    struct seen *one;

    k->over |= (!e && map_count(&k->seen[kind]) >= NAMES_MAX) || arena_over(k->arena);
    if (k->over)
        return NULL;
    one = e ? CONTAINER(e, struct seen, entry) : see(k, kind, host_name);
    return !host_uid.n || str_eq(one->host_uid, host_uid) ? one->own : NULL;
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
    /* Without the host's pods no pod is proved, and none would look like an answer. */
    if (!endpoint->health && !reflector_synced(syncer_watch(s, SYNC_PODS))) {
        (void)!err_set(err, &ERR_UNAVAILABLE, "the host cluster has not been read yet");
        return NULL;
    }
    k = NEW(struct kubelet);
    *k = (struct kubelet){.magic = KUBELET_MAGIC,
                          .syncer = s,
                          .endpoint = endpoint,
                          .arena = arena_new(MEMORY_MAX),
                          .document = BUF_INIT(DOCUMENT_MAX)};
    k->node = arena_str(k->arena, r->name);
    k->query = arena_str(k->arena, r->query);
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
    map_clear(&k->seen[KUBELET_POD]);
    map_clear(&k->seen[KUBELET_CLAIM]);
    buf_fini(&k->document);
    arena_free(k->arena);
    k->magic = 0;
    return mem_free(k);
}

struct str sync_kubelet_path(const struct kubelet *k)
{
    bool query = k->endpoint->query && k->query.n;

    return arena_printf(k->arena, "/api/v1/nodes/%.*s/proxy%s%s%.*s",
                        STR_F(url_encode(k->arena, k->node)), k->endpoint->path, query ? "?" : "",
                        STR_F(query ? k->query : STR("")));
}

/* --- its answer --- */

/* A failing check is a 500 of plain text; one of JSON is the host's own, about the node. */
bool sync_kubelet_accepts(const struct kubelet *k, int status, const struct net_header *headers,
                          size_t n)
{
    struct str wanted = k->endpoint->translate ? STR("application/json") : STR("text/plain"), type;
    bool typed = false;

    if (status != 200 && !(k->endpoint->health && status == 500))
        return false;
    for (size_t i = 0; i < n; i++) {
        type = headers[i].value;
        if (str_eqc(headers[i].name, "content-encoding"))
            return false;
        if (str_eqc(headers[i].name, "content-type"))
            typed = str_eq_nocase(str_trim(str_cut(&type, ';')), wanted);
    }
    return typed;
}

int sync_kubelet_refuse(const struct kubelet *k, struct err *err)
{
    return err_set(err, &ERR_UNAVAILABLE,
                   "the kubelet of node \"%.*s\" gave no answer that can be "
                   "shown",
                   STR_F(k->node));
}

bool sync_kubelet_is_stream(const struct kubelet *k)
{
    return k->series;
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
    else if (k->endpoint->translate)
        buf_add(&k->document, bytes);
    return !k->over;
}

bool sync_kubelet_end(struct kubelet *k, int status, struct buf *out)
{
    cJSON *tree = NULL, *shown;

    if (k->series)
        series_filter_end(k->series, out);
    if (k->endpoint->health)
        buf_addc(out, status == 200 ? "ok" : "healthz check failed\n");
    if (!k->endpoint->translate)
        return !k->over;
    if (json_parse(k->arena, buf_str(&k->document), &tree, NULL))
        return false;
    shown = k->endpoint->translate(k->arena, &k->view, tree);
    if (!shown || k->over || arena_over(k->arena))
        return false;
    json_print(out, shown);
    return true;
}
