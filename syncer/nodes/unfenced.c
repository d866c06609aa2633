/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that pods without devices must avoid by name. The fence of such pods is made of labels of
 * pools and of discovery; a machine with nothing but a device plugin has none of them, and may have
 * no taint, but its capacity shows the devices. Must never let such a pod go down without a known
 * name to avoid: if there are too many, it waits. Without the right to read nodes none is known. */

#include "nodes/unfenced.h"

#include <string.h>

#include <sublet/notice.h>

/* Each is a requirement in each node selector term of each pod. */
enum { UNFENCED_MAX = 128 };

struct unfenced {
    struct syncer *syncer;
    struct str *names; /* sorted; heap, as are they */
    size_t n, capacity;
};

/* Its place, or where it would be. */
static size_t place_of(const struct unfenced *u, struct str name)
{
    size_t at = 0;

    while (at < u->n && str_cmp(u->names[at], name) < 0)
        at++;
    return at;
}

static void insert(struct unfenced *u, size_t at, struct str name)
{
    GROW(u->names, u->n, u->capacity);
    memmove(u->names + at + 1, u->names + at, (u->n - at) * sizeof(*u->names));
    u->names[at] = mem_str(name);
    u->n++;
}

static void drop(struct unfenced *u, size_t at)
{
    mem_free(u->names[at].p);
    memmove(u->names + at, u->names + at + 1, (u->n - at - 1) * sizeof(*u->names));
    u->n--;
}

static bool is_unfenced(const struct syncer *s, const struct host_object *o)
{
    struct arena *a;
    cJSON *node = NULL;
    bool ret;

    if (!o)
        return false;
    a = arena_new(0);
    ret = !json_parse(a, o->bytes, &node, NULL) && translate_node_unfenced(a, s->config, node);
    arena_free(a);
    return ret;
}

void sync_unfenced_changed(struct unfenced *u, const struct host_object *now,
                           const struct host_object *before)
{
    struct str name = now ? now->name : before->name;
    size_t at = place_of(u, name);
    bool has = at < u->n && str_eq(u->names[at], name), is = is_unfenced(u->syncer, now);

    if (is && !has)
        insert(u, at, name);
    else if (has && !is)
        drop(u, at);
}

bool sync_unfenced_list(const struct unfenced *u, struct str_list *ret)
{
    *ret = (struct str_list){u->names, u->n < UNFENCED_MAX ? u->n : UNFENCED_MAX};
    return u->n <= UNFENCED_MAX;
}

void sync_unfenced_report(struct unfenced *u)
{
    struct arena *a;

    if (!u->n) {
        vapi_notice_over(u->syncer->api, NOTICE_POOL_NODES, STR(""));
        return;
    }
    a = arena_new(0);
    vapi_notice(
        u->syncer->api,
        &(struct vapi_notice){
            .topic = NOTICE_POOL_NODES,
            .subject = STR(""),
            .reason = u->n > UNFENCED_MAX ? "TooManyUnlabelledNodes" : "NodesWithDevicesUnlabelled",
            .message = arena_printf(a,
                                    "%zu nodes of the host have devices and no label that keeps "
                                    "other pods off: label them sublet.dev/pool",
                                    u->n),
            .detail = u->names[0]});
    arena_free(a);
}

/* --- life --- */

struct unfenced *sync_unfenced_new(struct syncer *s)
{
    struct unfenced *u = NEW(struct unfenced);

    u->syncer = s;
    return u;
}

struct unfenced *sync_unfenced_free(struct unfenced *u)
{
    if (!u)
        return NULL;
    while (u->n)
        drop(u, u->n - 1);
    mem_free(u->names);
    mem_free(u);
    return NULL;
}
