/* SPDX-License-Identifier: Apache-2.0 */
/* What changes the fake host's objects without a request of the syncer: its scheduler, its kubelet,
 * other clients. Must never touch the way to the host. */
#include "fake_host_impl.h"
#include "kubelet.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <sublet/object.h>
#include <sublet/schema.h>

/* --- scheduler, kubelet, and the passage of time --- */

/* The node of the pod does not answer: nothing of it changes. Before the host's node controller
 * notices it, only the annotation "dead" says so. */
static bool is_silent(struct fake_host *h, struct arena *a, const cJSON *pod)
{
    struct str name = json_str_at(pod, "spec.nodeName");
    struct object **node = name.n ? fake_find(h, "nodes", arena_cstr(a, name)) : NULL;
    const cJSON *tree = node && *node ? fake_parse(a, (*node)->bytes) : NULL;
    const cJSON *ready = condition_get(json_path(tree, "status.conditions"), "Ready");

    return str_eqc(json_str(json_get(ready, "status")), "Unknown") ||
           json_path(tree, "metadata.annotations.dead");
}

/* One step of one pod. */
static void advance_pod(struct fake_host *h, struct arena *a, struct object **at)
{
    cJSON *pod = fake_parse(a, (*at)->bytes), *spec = json_ensure_object(a, pod, "spec");
    struct str phase = json_str_at(pod, "status.phase");

    if (is_silent(h, a, pod))
        return;
    if (json_path(pod, "metadata.deletionTimestamp")) {
        if (!json_count(json_path(pod, "metadata.finalizers")))
            fake_drop(h, a, at);
    } else if (!json_get(spec, "nodeName")) {
        struct str node = scheduler_pinned_node(spec);

        if (!node.n)
            node = h->place[0]
                       ? str_c(h->place)
                       : arena_printf(a, "node-%llu", (unsigned long long)(h->revision % 3));
        json_set_str(a, spec, "nodeName", node);
        fake_store(h, a, "pods", pod);
    } else if (str_eqc(phase, "Pending")) {
        kubelet_run_pod(a, pod, h->revision);
        fake_store(h, a, "pods", pod);
    } else if (str_eqc(phase, "Running") && kubelet_judge_ready(a, pod)) {
        fake_store(h, a, "pods", pod);
    }
}

void fake_advance(struct fake_host *h)
{
    struct object **at = &h->objects;

    while (*at) {
        struct object *o = *at;

        if (!strcmp(o->plural, "pods") && fake_chance(h, 500)) {
            struct arena *a = arena_new(0);

            advance_pod(h, a, at);
            arena_free(a);
        }
        if (*at == o)
            at = &o->next;
    }
}

/* --- policies --- */

static void rewrite_images(struct fake_host *h, struct arena *a, cJSON *containers)
{
    struct str prefix = str_c(h->image_prefix);

    json_each(container, containers)
    {
        struct str image = json_str(json_get(container, "image"));

        if (image.n && !str_has_prefix(image, prefix))
            json_set_str(a, container, "image",
                         arena_printf(a, "%.*s%.*s", STR_F(prefix), STR_F(image)));
    }
}

void fake_mutate_pod(struct fake_host *h, struct arena *a, cJSON *pod, const cJSON *before)
{
    const cJSON *label;

    if (h->image_prefix && (before ? h->rewrite_updated : h->rewrite_created)) {
        rewrite_images(h, a, json_path(pod, "spec.containers"));
        rewrite_images(h, a, json_path(pod, "spec.initContainers"));
    }
    json_each(container, before && h->fixed_cpu ? json_path(pod, "spec.containers") : NULL)
        json_set_str(a, json_ensure_path(a, container, "resources.requests"), "cpu",
                     str_c(h->fixed_cpu));
    if (!before || !h->undone_label)
        return;
    label = json_get(json_path(before, "metadata.labels"), h->undone_label);
    if (label)
        json_set(a, json_path(pod, "metadata.labels"), h->undone_label, json_copy(a, label));
    else
        json_remove(json_path(pod, "metadata.labels"), h->undone_label);
}

void fake_host_rewrite_images(struct fake_host *h, const char *prefix, bool on_create,
                              bool on_update)
{
    h->image_prefix = prefix;
    h->rewrite_created = on_create;
    h->rewrite_updated = on_update;
}

void fake_host_undo_label(struct fake_host *h, const char *key)
{
    h->undone_label = key;
}

void fake_host_fix_cpu(struct fake_host *h, const char *cpu)
{
    h->fixed_cpu = cpu;
}

/* --- others on the host --- */

cJSON *fake_host_list(struct fake_host *h, struct arena *a, const char *plural)
{
    cJSON *list = json_new_array(a);

    for (struct object *o = h->objects; o; o = o->next)
        if (!strcmp(o->plural, plural))
            json_append(list, fake_parse(a, o->bytes));
    return list;
}

size_t fake_host_count(struct fake_host *h, const char *plural)
{
    struct arena *a = arena_new(0);
    size_t n = 0;

    json_each(object, fake_host_list(h, a, plural)) n += fake_is_ours(object);
    arena_free(a);
    return n;
}

void fake_host_put(struct fake_host *h, const char *plural, const char *json)
{
    struct arena *a = arena_new(0);
    cJSON *tree = fake_parse(a, str_c(json));

    assert(tree);
    fake_fill(h, a, plural, tree);
    fake_store(h, a, plural, tree);
    arena_free(a);
}

void fake_host_patch(struct fake_host *h, const char *plural, const char *name, const char *json)
{
    struct arena *a = arena_new(0);
    struct object *o = *fake_find(h, plural, name);
    cJSON *made;

    assert(o);
    if (!patch_merge(a, fake_parse(a, o->bytes), fake_parse(a, str_c(json)), &made, NULL))
        fake_store(h, a, plural, made);
    arena_free(a);
}

void fake_host_place(struct fake_host *h, const char *node)
{
    snprintf(h->place, sizeof(h->place), "%s", node);
}

static struct object **choose(struct fake_host *h, struct arena *a, const char *plural)
{
    size_t n = fake_host_count(h, plural), k = n ? fake_host_random(h) % n : 0;

    for (struct object **at = &h->objects; *at && n; at = &(*at)->next)
        if (!strcmp((*at)->plural, plural) && fake_is_ours(fake_parse(a, (*at)->bytes)) && k-- == 0)
            return at;
    return NULL;
}

bool fake_host_remove(struct fake_host *h, const char *plural, const char *name)
{
    struct arena *a = arena_new(0);
    struct object **at = name ? fake_find(h, plural, name) : choose(h, a, plural);
    bool found = at && *at;

    if (found)
        fake_drop(h, a, at);
    arena_free(a);
    return found;
}

bool fake_host_finish_pod(struct fake_host *h, const char *phase)
{
    struct arena *a = arena_new(0);
    struct object **at = choose(h, a, "pods");
    cJSON *pod = at ? fake_parse(a, (*at)->bytes) : NULL;
    bool runs = str_eqc(json_str_at(pod, "status.phase"), "Running");

    if (runs) {
        json_set_str(a, json_get(pod, "status"), "phase", str_c(phase));
        fake_store(h, a, "pods", pod);
    }
    arena_free(a);
    return runs;
}
