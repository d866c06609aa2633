/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Applies init.manifests, once the API serves: with server-side apply as one field manager, one
 * after the other, again until each is there. What was applied last is noted in a ConfigMap, so
 * that a restart leaves the tenant's changes alone; other manifests are applied anew. It must never
 * delete an object, and never keep the API from serving.
 *
 *   IDLE --start--> APPLYING --all were tried, some not applied--> WAITING (1 s, doubling to 60 s)
 *                    ^   `--all applied, and noted--> IDLE            |
 *                    `------------------------------------------------' */
#include "control_plane.h"

#include <assert.h>

#include <sublet/api_version.h>
#include <sublet/encode.h>
#include <sublet/json_build.h>
#include <sublet/log.h>
#include <sublet/notice.h>

#define INITIAL_MAGIC 0x1a171a1u
#define MANAGER       "sublet-init"
#define NOTE          "sublet-init"
#define MOST_WAIT_MS  60000
#define SILENT_ROUNDS 2 /* a kind whose definition was applied just now is served in a moment */

static const struct str ADMIN_GROUPS[] = {{"system:masters", 14}, {"system:authenticated", 20}};
static const struct user ADMIN = {
    .name = {"system:sublet:init", 18},
    .groups = ADMIN_GROUPS,
    .n_groups = 2,
};

struct initial {
    unsigned magic;
    struct vapi *api;
    struct arena *arena, *round;
    uv_timer_t timer;
    const cJSON *manifests;
    cJSON *note; /* the ConfigMap, applied last */
    bool *applied;
    size_t n, at, left;
    unsigned rounds;
    struct str why; /* of the first that is left */
    bool under_way, closing;
    void (*closed)(void *ctx);
    void *ctx;
};

static void step(struct initial *x);

/* ---- what was applied last ---- */

static cJSON *note_of(struct arena *a, const cJSON *manifests)
{
    unsigned char digest[32];
    char encoded[53];

    sha256(json_text(a, manifests), digest);
    base32_lower(digest, sizeof(digest), encoded, sizeof(encoded) - 1);
    encoded[sizeof(encoded) - 1] = 0;
    return json_object(
        a, JSON("apiVersion", "v1"), JSON("kind", "ConfigMap"),
        JSON("metadata", json_object(a, JSON("name", NOTE), JSON("namespace", "kube-system"))),
        JSON("data", json_object(a, JSON("applied", arena_str(a, str_c(encoded))))));
}

static bool is_noted(struct initial *x)
{
    const struct resource *r =
        registry_find(x->api->registry, STR(""), STR("v1"), STR("configmaps"));
    const struct store_object *o =
        r ? store_latest(x->api->o.store, r->storage, STR("kube-system"), STR(NOTE)) : NULL;

    return o && str_eq(json_str_at(vapi_tree(x->round, o), "data.applied"),
                       json_str_at(x->note, "data.applied"));
}

/* ---- one object ---- */

static void left_out(struct initial *x, const cJSON *object, struct str why)
{
    if (!x->left++)
        x->why =
            arena_printf(x->round, "%.*s %.*s: %.*s", STR_F(json_str(json_get(object, "kind"))),
                         STR_F(json_str_at(object, "metadata.name")), STR_F(str_clip(why, 512)));
}

static const cJSON *object_at(const struct initial *x)
{
    return x->at < x->n ? json_at(x->manifests, x->at) : x->note;
}

static void on_step(void *ctx)
{
    struct initial *x = ctx;

    assert(x->magic == INITIAL_MAGIC);
    x->under_way = false;
    if (!x->closing)
        step(x);
}

static void on_applied(void *ctx, const struct err *err, const struct store_object *object)
{
    struct initial *x = ctx;

    (void)object;
    assert(x->magic == INITIAL_MAGIC);
    if (err)
        left_out(x, object_at(x), err->message);
    else
        x->applied[x->at] = true;
    x->at++;
    on_step(x);
}

/* False: its kind is not served. */
static bool apply(struct initial *x, const cJSON *object)
{
    struct api_version v = api_version_read(json_str(json_get(object, "apiVersion")));
    const struct resource *r = registry_find_kind(x->api->registry, v.group, v.version,
                                                  json_str(json_get(object, "kind")));
    struct str ns = json_str_at(object, "metadata.namespace");
    struct call *c;

    if (!r || !v.version.n || (r->flags & RES_REVIEW))
        return false;
    if (!resource_namespaced(r))
        ns = STR("");
    else if (!ns.n)
        ns = STR("default");
    c = call_inside(x->api, &ADMIN, CALL_PATCH, r, NULL, ns, json_str_at(object, "metadata.name"),
                    on_applied, x);
    c->patch = PATCH_TYPE_APPLY;
    c->options.field_manager = STR(MANAGER);
    c->options.force = true;
    c->body = json_copy(c->arena, object);
    x->under_way = true;
    call_run(c);
    return true;
}

/* ---- the rounds ---- */

static void on_timer(uv_timer_t *timer)
{
    struct initial *x = timer->data;

    assert(x->magic == INITIAL_MAGIC);
    if (x->under_way || x->closing)
        return;
    x->at = x->left = 0;
    arena_free(x->round);
    x->round = arena_new(0);
    step(x);
}

static void end_round(struct initial *x)
{
    struct vapi_notice n = {.topic = NOTICE_INIT,
                            .reason = "ManifestsNotApplied",
                            .message = arena_printf(x->round,
                                                    "%zu of %zu init.manifests are not "
                                                    "applied; the first is %.*s",
                                                    x->left, x->n, STR_F(x->why))};
    uint64_t wait = 1000ull << (x->rounds < 6 ? x->rounds : 6);

    x->rounds++;
    if (!x->left) {
        log_info("init: applied manifests=%zu", x->n);
        vapi_notice_over(x->api, NOTICE_INIT, STR(""));
        return;
    }
    if (x->rounds > SILENT_ROUNDS)
        vapi_notice(x->api, &n);
    uv_timer_start(&x->timer, on_timer, wait < MOST_WAIT_MS ? wait : MOST_WAIT_MS, 0);
}

/* The note follows when nothing is left. */
static void step(struct initial *x)
{
    for (; x->at < x->n || (x->at == x->n && !x->left); x->at++) {
        if (x->applied[x->at])
            continue;
        if (apply(x, object_at(x)))
            return;
        left_out(x, object_at(x), STR("its kind is not served"));
    }
    end_round(x);
}

/* ---- interface ---- */

struct initial *initial_start(struct vapi *api)
{
    const cJSON *manifests = api->o.config->manifests;
    struct initial *x;

    if (!json_count(manifests))
        return NULL;
    x = NEW(struct initial);
    x->magic = INITIAL_MAGIC;
    x->api = api;
    x->arena = arena_new(0);
    x->round = arena_new(0);
    x->manifests = manifests;
    x->note = note_of(x->arena, manifests);
    x->n = json_count(manifests);
    x->applied = arena_alloc(x->arena, (x->n + 1) * sizeof(*x->applied));
    for (size_t i = 0; i <= x->n; i++)
        x->applied[i] = false;
    uv_timer_init(api->o.loop, &x->timer);
    uv_unref((uv_handle_t *)&x->timer);
    x->timer.data = x;
    if (!is_noted(x))
        uv_timer_start(&x->timer, on_timer, 0, 0);
    return x;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct initial *x = handle->data;
    void (*closed)(void *) = x->closed;
    void *ctx = x->ctx;

    arena_free(x->round);
    arena_free(x->arena);
    x->magic = 0;
    mem_free(x);
    closed(ctx);
}

void initial_stop(struct initial *x)
{
    x->closing = true;
    uv_timer_stop(&x->timer);
}

void initial_close(struct initial *x, void (*closed)(void *ctx), void *ctx)
{
    assert(x->magic == INITIAL_MAGIC && x->closing && !x->under_way);
    x->closed = closed;
    x->ctx = ctx;
    uv_close((uv_handle_t *)&x->timer, on_timer_closed);
}
