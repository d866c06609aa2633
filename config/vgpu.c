/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of GPUs as HAMi and Volcano read them. Why one share for memory and compute: a GPU whose
 * memory one pod has and whose compute another one has would be charged twice, and a sum of charges
 * beyond what there is is no account. Must never count a part that is not understood as less than a
 * whole GPU, and must never trust a record of a node for more than 100 hundredths a GPU. */

#include <sublet/vgpu.h>

#include <sublet/object.h>
#include <sublet/quantity.h>

#include "impl.h"

#define HAMI_MEMORY     "nvidia.com/gpumem"
#define HAMI_PERCENTAGE "nvidia.com/gpumem-percentage"

enum { GPUS_MAX = 1024 }; /* of one node; no machine has as many */

static const struct vgpu_system HAMI = {VGPU_HAMI_NUMBER, HAMI_MEMORY, HAMI_PERCENTAGE,
                                        VGPU_HAMI_CORES, SCHEDULER_HAMI};
static const struct vgpu_system VOLCANO = {"volcano.sh/vgpu-number", "volcano.sh/vgpu-memory",
                                           "volcano.sh/vgpu-memory-percentage",
                                           "volcano.sh/vgpu-cores", SCHEDULER_VOLCANO};

const struct vgpu_system *vgpu_system(enum pool_mode mode)
{
    return mode == POOL_HAMI ? &HAMI : mode == POOL_VOLCANO ? &VOLCANO : NULL;
}

bool vgpu_is_request(struct str name)
{
    return str_eqc(name, HAMI.number) || str_eqc(name, HAMI.memory) ||
           str_eqc(name, HAMI.percentage) || str_eqc(name, HAMI.cores);
}

int64_t vgpu_memory(const struct config_pool *pool, int64_t percent)
{
    return (int64_t)((__int128)pool->gpu_memory_mib * percent / VGPU_WHOLE);
}

int64_t vgpu_percent(const struct config_pool *pool, int64_t memory_mib)
{
    __int128 percent =
        ((__int128)memory_mib * VGPU_WHOLE + pool->gpu_memory_mib - 1) / pool->gpu_memory_mib;

    return percent > VGPU_WHOLE ? VGPU_WHOLE + 1 : (int64_t)percent;
}

/* ---- what a host pod holds ---- */

/* Of limits, else of requests, as HAMi reads them. -1: it is not there. */
static int64_t units_of(const cJSON *container, const char *name)
{
    static const char *const maps[] = {"limits", "requests"};

    for (size_t i = 0; i < COUNT(maps); i++) {
        const cJSON *value = json_get(json_get(json_get(container, "resources"), maps[i]), name);
        struct quantity q;
        int64_t units;

        if (!value)
            continue;
        if (json_i64(value, &units))
            return units < 0 ? 0 : units;
        return quantity_parse(json_str(value), &q) && q.nano > 0 ? quantity_units(q) : 0;
    }
    return -1;
}

const struct vgpu_system *vgpu_by_cores(struct str resource)
{
    return str_eqc(resource, HAMI.cores)      ? &HAMI
           : str_eqc(resource, VOLCANO.cores) ? &VOLCANO
                                              : NULL;
}

int64_t vgpu_of_container(const struct vgpu_system *system, const cJSON *container)
{
    int64_t number = units_of(container, system->number);
    int64_t cores = units_of(container, system->cores);
    int64_t percentage = units_of(container, system->percentage), ret;

    if (number < 0)
        number = cores > 0 || percentage > 0 || units_of(container, system->memory) > 0;
    if (cores <= 0 || cores > VGPU_WHOLE)
        cores = VGPU_WHOLE;
    if (percentage > cores)
        cores = percentage < VGPU_WHOLE ? percentage : VGPU_WHOLE;
    return __builtin_mul_overflow(number, cores, &ret) ? INT64_MAX : ret;
}

/* ---- what a node has ---- */

/* Of one GPU; in mode mig slices are handed out, which are not this. */
static int64_t hundredths(int64_t cores, struct str mode)
{
    if (cores <= 0 || str_eqc(mode, "mig"))
        return 0;
    return cores < VGPU_WHOLE ? cores : VGPU_WHOLE;
}

static int64_t number_of(struct str text)
{
    struct quantity q;

    return quantity_parse(text, &q) && quantity_is_integer(q) && q.nano > 0 ? quantity_units(q) : 0;
}

/* GPUs that end in colons, of members between commas. */
struct text_form {
    size_t least; /* members */
    size_t cores, health, mode;
};
#define NONE 9
/* "id,count,memory,cores,type,numa,health,index,mode:": of HAMi before 2.6. */
static const struct text_form HAMI_FORM = {7, 3, 6, 8};
/* "id,count,memory,type,health,mode:" */
static const struct text_form VOLCANO_FORM = {5, NONE, 4, 5};

static int64_t sum_of_text(struct str text, const struct text_form *form, bool healthy)
{
    int64_t sum = 0;

    for (size_t n = 0; text.n && n < GPUS_MAX; n++) {
        struct str rest = str_cut(&text, ':'), members[NONE + 1] = {0};
        size_t count = 0;

        while (rest.p && count < NONE)
            members[count++] = str_cut(&rest, ',');
        if (count < form->least || (healthy && !str_eqc(members[form->health], "true")))
            continue;
        sum += hundredths(form->cores == NONE ? VGPU_WHOLE : number_of(members[form->cores]),
                          members[form->mode]);
    }
    return sum;
}

static int64_t sum_of_list(const cJSON *list, bool healthy)
{
    int64_t sum = 0;
    size_t n = 0;

    json_each(gpu, list)
    {
        if (n++ >= GPUS_MAX)
            break;
        if (!healthy || json_true(json_get(gpu, "health")))
            sum += hundredths(json_i64_at(gpu, "devcore", 0), json_str(json_get(gpu, "mode")));
    }
    return sum;
}

static int64_t registered(struct arena *a, const struct vgpu_system *system, struct str record,
                          bool healthy)
{
    cJSON *list;

    record = str_trim(record);
    if (system == &VOLCANO)
        return sum_of_text(record, &VOLCANO_FORM, healthy);
    if (!str_has_prefix(record, STR("[")))
        return sum_of_text(record, &HAMI_FORM, healthy);
    return json_parse(a, record, &list, NULL) ? 0 : sum_of_list(list, healthy);
}

static void note_system(struct arena *a, const struct vgpu_system *system, struct str record,
                        cJSON *node)
{
    static const char *const lists[] = {"capacity", "allocatable"};

    for (size_t i = 0; i < COUNT(lists); i++) {
        cJSON *map = json_get(json_get(node, "status"), lists[i]);
        int64_t sum = 0;

        /* Plugins of Volcano that count it for the kubelet know better. */
        if (!json_is_object(map) || (system == &VOLCANO && json_get(map, system->cores)))
            continue;
        /* The record outlives its device plugin. */
        if (number_of(json_str(json_get(map, system->number))) > 0)
            sum = registered(a, system, record, i == 1);
        json_set_str(a, map, system->cores, arena_printf(a, "%lld", (long long)sum));
    }
}

void vgpu_note_node(struct arena *a, cJSON *node)
{
    static const struct {
        const char *annotation;
        const struct vgpu_system *system;
    } records[] = {{VGPU_HAMI_RECORD, &HAMI}, {VGPU_VOLCANO_RECORD, &VOLCANO}};
    const cJSON *annotations = json_path(node, "metadata.annotations");

    for (size_t i = 0; i < COUNT(records); i++) {
        struct str record = json_str(json_get(annotations, records[i].annotation));

        if (record.n)
            note_system(a, records[i].system, record, node);
    }
}

/* ---- pools of these modes ---- */

int config_check_vgpu(const struct place *at, const struct config_pool *p, bool has_resources)
{
    const struct vgpu_system *system = vgpu_system(p->mode);
    struct str mode = config_mode_name(p->mode);

    if (!system)
        return p->gpu_memory_mib
                   ? place_error(at, "gpuMemoryMiB is for modes hami and volcano-vgpu")
               : p->scheduler_kind == SCHEDULER_HAMI
                   ? place_error(at, "scheduler.kind hami is for mode hami")
                   : 0;
    if (has_resources)
        return place_error(at,
                           "resources, profiles and rename are not for mode %.*s: pods request a "
                           "GPU or a part of one",
                           STR_F(mode));
    if (p->per_pod || p->per_container)
        return place_error(at,
                           "caps.perPodGPU and caps.perContainerGPU are not for mode %.*s: a "
                           "container has at most one GPU",
                           STR_F(mode));
    if (p->scheduler_kind != system->scheduler)
        return place_error(at, "scheduler.kind %s is needed for mode %.*s",
                           system->scheduler == SCHEDULER_HAMI ? "hami" : "volcano", STR_F(mode));
    if (p->gpu_memory_mib < VGPU_WHOLE)
        return place_error(at,
                           "gpuMemoryMiB is needed for mode %.*s, at least 100: what each GPU of "
                           "the pool has, as its node says in label nvidia.com/gpu.memory",
                           STR_F(mode));
    return 0;
}
