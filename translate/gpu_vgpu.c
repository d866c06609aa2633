/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of GPUs by HAMi and Volcano. Why one share: a tenant writes a percentage, a whole GPU, or
 * HAMi's memory and compute, and each becomes hundredths of one GPU, rounded up; the container gets
 * this share of both, and is charged it: what is charged, no other can have. Must never
 * send a quantity that a tenant wrote, and never guess between two of them.
 *
 * Only containers have parts: neither system counts those of init containers and sidecars in every
 * version as the host's scheduler and quota do. */

#include <string.h>

#include <sublet/fraction.h>
#include <sublet/vgpu.h>

#include "shape.h"

struct wish {
    int64_t percent;                           /* sublet.dev/gpu-percent */
    int64_t number, memory, percentage, cores; /* HAMi's words; 0: not written */
};

static struct wish wish_of(const struct device_counts *own)
{
    const struct vgpu_system *hami = vgpu_system(POOL_HAMI);
    struct wish w = {0};
    const struct {
        const char *name;
        int64_t *into;
    } words[] = {
        {FRACTION_RESOURCE, &w.percent},   {hami->number, &w.number}, {hami->memory, &w.memory},
        {hami->percentage, &w.percentage}, {hami->cores, &w.cores},
    };

    for (size_t i = 0; i < own->n; i++)
        for (size_t k = 0; k < COUNT(words); k++)
            if (str_eqc(own->items[i].name, words[k].name))
                *words[k].into = own->items[i].units;
    return w;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* In hundredths; beyond VGPU_WHOLE: no GPU has it. 0: nothing is requested. */
static int64_t share_of(const struct config_pool *pool, const struct wish *w)
{
    int64_t share = most(w->percent, most(w->percentage, w->cores));

    if (w->memory)
        share = most(share, vgpu_percent(pool, w->memory));
    return share || !w->number ? share : VGPU_WHOLE;
}

/* ---- what a tenant may request ---- */

/* What says how much beside another word that does; NULL: nothing. */
static const char *ambiguous(const struct wish *w)
{
    const struct vgpu_system *hami = vgpu_system(POOL_HAMI);

    if (w->percent)
        return w->memory       ? hami->memory
               : w->percentage ? hami->percentage
               : w->cores      ? hami->cores
               : w->number     ? hami->number
                               : NULL;
    return w->memory && w->percentage ? hami->percentage : NULL;
}

static int check_amounts(const struct resolve *r, struct str name, const struct wish *w)
{
    const struct vgpu_system *hami = vgpu_system(POOL_HAMI);
    const struct {
        const char *resource;
        int64_t units;
    } shares[] = {{FRACTION_RESOURCE, w->percent},
                  {hami->percentage, w->percentage},
                  {hami->cores, w->cores}};

    for (size_t i = 0; i < COUNT(shares); i++)
        if (shares[i].units > VGPU_WHOLE)
            return pool_refuse(r,
                               "%s=%lld of container \"%.*s\": a container of pool \"%.*s\" has at "
                               "most one GPU, 1 to 100",
                               shares[i].resource, (long long)shares[i].units, STR_F(name),
                               STR_F(r->pool->name));
    if (w->memory > r->pool->gpu_memory_mib)
        return pool_refuse(r, "%s=%lld of container \"%.*s\": a GPU of pool \"%.*s\" has %lld MiB",
                           hami->memory, (long long)w->memory, STR_F(name), STR_F(r->pool->name),
                           (long long)r->pool->gpu_memory_mib);
    return 0;
}

static int check_container(const struct resolve *r, const cJSON *container, bool is_init,
                           int64_t *sum)
{
    struct str name = json_str(json_get(container, "name"));
    struct device_counts own;
    const char *other;
    struct wish w;

    if (gpu_count_container(r->arena, container, &own, r->err))
        return pool_refuse(r, "%.*s", STR_F(arena_str(r->arena, r->err->message)));
    if (!own.n)
        return 0;
    if (is_init)
        return pool_refuse(r, "%.*s of init container \"%.*s\": a part of a GPU is for a container",
                           STR_F(own.items[0].name), STR_F(name));
    w = wish_of(&own);
    if (w.number > 1)
        return pool_refuse(r, "a shared GPU request must be 1 per container, got %lld",
                           (long long)w.number);
    other = ambiguous(&w);
    if (other)
        return pool_refuse(r, "%s and %s of container \"%.*s\": only one of them can say how much",
                           w.percent ? FRACTION_RESOURCE : vgpu_system(POOL_HAMI)->memory, other,
                           STR_F(name));
    if (check_amounts(r, name, &w))
        return -1;
    *sum = i64_add_most(*sum, share_of(r->pool, &w));
    return 0;
}

/* HAMi refuses a pod with a GPU and such a container, its own or another. */
static int check_privileged(const struct resolve *r)
{
    for (size_t i = 0; i < 2 && r->pool->mode == POOL_HAMI; i++) {
        json_each(container, json_get(r->spec, POD_CONTAINER_LISTS[i]))
        {
            if (json_true(json_path(container, "securityContext.privileged")))
                return pool_refuse(r,
                                   "container \"%.*s\" is privileged, and HAMi gives such a pod no "
                                   "GPU",
                                   STR_F(json_str(json_get(container, "name"))));
        }
    }
    return 0;
}

int gpu_vgpu_count(struct resolve *r)
{
    int64_t sum = 0;

    if (!vgpu_system(r->pool->mode))
        return 0;
    for (size_t i = 0; i < 2; i++) {
        json_each(container, json_get(r->spec, POD_CONTAINER_LISTS[i]))
        {
            if (check_container(r, container, i == 0, &sum))
                return -1;
        }
    }
    r->counts.items = arena_alloc(r->arena, sizeof(*r->counts.items));
    r->counts.items[0] = (struct device_count){STR(FRACTION_RESOURCE), sum};
    r->counts.n = 1;
    return check_privileged(r);
}

/* ---- down ---- */

int64_t gpu_vgpu_share(const struct config_pool *pool, const struct device_counts *own)
{
    struct wish w = wish_of(own);
    int64_t share = pool && vgpu_system(pool->mode) ? share_of(pool, &w) : 0;

    return share < VGPU_WHOLE ? share : share ? VGPU_WHOLE : 0;
}

static void set_units(struct arena *a, cJSON *map, const char *name, int64_t units)
{
    json_set_str(a, map, name, arena_printf(a, "%lld", (long long)units));
}

void translate_pod_vgpu_down(struct down *d, const struct device_counts *own, cJSON *resources)
{
    static const char *const maps[] = {"limits", "requests"};
    int64_t share = d->ephemeral ? 0 : gpu_vgpu_share(d->pool, own);
    const struct vgpu_system *system = d->pool ? vgpu_system(d->pool->mode) : NULL;

    for (size_t i = 0; i < COUNT(maps) && share; i++) {
        cJSON *map = json_ensure_object(d->arena, resources, maps[i]);

        set_units(d->arena, map, system->number, 1);
        set_units(d->arena, map, system->memory, vgpu_memory(d->pool, share));
        set_units(d->arena, map, system->cores, share);
    }
}

/* ---- a host pod ---- */

bool gpu_vgpu_of_host(const struct config_pool *pool, const struct device_counts *counts,
                      struct rational *ret)
{
    const struct vgpu_system *system = vgpu_system(pool->mode);
    int64_t cores = 0, number = 0;

    for (size_t i = 0; i < counts->n; i++) {
        if (str_eqc(counts->items[i].name, system->cores))
            cores = counts->items[i].units;
        if (str_eqc(counts->items[i].name, system->number))
            number = counts->items[i].units;
    }
    /* Each container that is sent has both; GPUs without their shares would be whole ones. */
    *ret = (struct rational){number, 1};
    return cores == 0
               ? number > 0
               : rational_mul((struct rational){cores, 1}, (struct rational){1, VGPU_WHOLE}, ret);
}
